"""What the toys let one choose from: tables alone, without widgets.

The notebooks' toys read them, and the book's, which have no kernel.
"""
from d2lps.collectives import strategies, topology

# Strategies by name: words for the menu, and a function of the number of
# devices that returns the schedule, or a text that says why there is none.
PLANS = {
    'gather_broadcast': ('gather and broadcast', strategies.gather_broadcast),
    'cpu': ('gather and broadcast on CPU',
            lambda n: strategies.gather_broadcast(n, 'cpu')),
    'sharded': ('sharded', strategies.sharded),
    'running_sum': ('running sum', strategies.running_sum),
    'pipelined': ('running sum, pipelined', lambda n: strategies.pipelined(
        strategies.running_sum(n), n)),
    'ring': ('ring', strategies.ring),
    'bidirectional_ring': ('ring in both directions',
                           strategies.bidirectional_ring),
    'two_rings': ('two rings of 8 V100 GPUs', lambda n: (
        strategies.two_rings() if n == 8 else
        'The cables of 8 GPUs make two rings.\n\n'
        'Move the slider "devices" to 8.')),
    'tree': ('tree', strategies.tree),
    'double_tree': ('double tree', strategies.double_tree),
    'recursive_doubling': ('recursive doubling',
                           strategies.recursive_doubling),
    'halving_doubling': ('halving and doubling', strategies.halving_doubling),
    'hierarchical': ('hierarchical, 2 machines', lambda n: (
        strategies.hierarchical(2, n // 2) if n % 2 == 0 else
        'Two machines share the devices equally: take an even number.\n\n'
        f'Move the slider "devices" to {n - 1} or {n + 1}.')),
    'parameter_server': ('one parameter server', lambda n: (
        strategies.parameter_server(n, 1))),
    'parameter_servers': ('as many servers as workers', lambda n: (
        strategies.parameter_server(n, n)))}
STEPPED = range(2, 9)  # devices, where one steps through a plan
# Those that are timed: for any links and any even number of devices.
STRATEGIES = ('gather_broadcast', 'cpu', 'sharded', 'running_sum', 'ring',
              'bidirectional_ring', 'tree', 'double_tree',
              'recursive_doubling', 'halving_doubling', 'hierarchical')
CHOICES = {'devices': [*range(2, 17, 2)],
           'MB': [.01, .1, 1, 10, 40, 160, 1000],
           'GB/s': [1, 2, 4, 10, 16, 32, 100],
           'µs per cable': [0, 1, 5, 20, 100, 1000]}


def _cables_in_a_ring(n, bandwidth, latency):
    """n devices with cables to their neighbours; two share one cable."""
    pairs = [(i, (i + 1) % n) for i in range(n)] if n > 2 else [(0, 1)]
    return topology.Topology([
        link for a, b in pairs
        for link in topology.both_ways(a, b, bandwidth, latency)])


def _two_machines(n, bandwidth, latency):
    """Two machines of n // 2 devices, joined by 10 Gbit/s Ethernet."""
    return topology.cluster(2, n // 2, bandwidth, latency=latency,
                            network_latency=latency)


# What can join n devices, given bytes/s and seconds of latency per cable.
LINKS = {'one PCIe switch': topology.pcie_switch,
         'cables in a ring': _cables_in_a_ring,
         'two machines, 10 Gbit/s apart': _two_machines}
