"""What need not wait: sending while computing, and workers for each other."""
from d2lps.asynchrony.clock import Plan, step_times, virtual_clock
from d2lps.asynchrony.servers import BackupServer, DividingServer
from d2lps.asynchrony.training import follow
