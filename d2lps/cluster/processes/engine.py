"""A worker of a cluster is an engine of ipyparallel."""
import json
import os
import signal

from ipyparallel.engine import app

from d2lps.cluster.store import worker


def work(channel, connection, faults, run):
    """Be a worker, once the queue `connection` says where the others are.

    `faults` is the list of what servers have failed in.
    """
    worker.attach(channel, faults)

    class Kernel(app.Kernel):
        """Tell the group when a cell or function begins, and how it ends."""

        def do_apply(self, *args, **kwargs):
            channel.tell('state', busy=True)
            try:
                reply = super().do_apply(*args, **kwargs)
            except Exception as error:  # an error that cannot show itself
                reply = {'status': 'error', 'ename': type(error).__name__,
                         'evalue': str(error), 'traceback': [],
                         'engine_info': self.get_engine_info('apply')}, []
            self._tell_end(reply[0])
            return reply

        async def do_execute(self, *args, **kwargs):
            channel.tell('state', busy=True)
            reply = await super().do_execute(*args, **kwargs)
            self._tell_end(reply)
            return reply

        def _tell_end(self, reply):
            channel.tell('state', busy=False, error=f"{reply['ename']}: "
                         f"{reply['evalue']}" if 'ename' in reply else '')

    class Engine(app.IPEngine):
        def init_signal(self):
            # Ctrl-C counts while a cell runs; SIGTERM ends, as elsewhere.
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    app.Kernel = Kernel
    os.environ['IPP_CONNECTION_INFO'] = json.dumps(connection.get()['info'])
    run(Engine, channel, f"--Engine.id={channel.job['rank']}",
        '--Engine.enable_nanny=False', '--Engine.timeout=30',
        '--Engine.max_heartbeat_misses=0')
