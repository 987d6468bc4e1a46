"""A cluster in a real notebook kernel: `%%px`, Ctrl-C, restart, death."""
import os
import sys

import pytest
from clusters import all_gone, wait_for
from jupyter_client.manager import KernelManager

pytestmark = pytest.mark.full

START = '''
import d2lps
from d2lps.cluster import Cluster
c = Cluster(num_workers=2, num_servers=1)
print(*c.pids.values())
'''
STORE = '''%%px
import mxnet as mx
from mxnet import np
kv = mx.kv.create('dist_sync')
kv.init('w', np.zeros(3))
kv.push('w', np.ones(3) * (kv.rank + 1))
out = np.zeros(3)
kv.pull('w', out)
print(out)
'''


class Notebook:
    """A kernel; `run` executes a cell."""

    def __init__(self, env):
        self.manager = KernelManager(kernel_name='python3')
        self.manager.start_kernel(env=env, extra_arguments=[
            '--HistoryManager.enabled=False'])
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=300)
        self.start()

    def start(self):
        """Start a cluster; returns the processes of the last one."""
        old, output = getattr(self, 'pids', []), self.run(START)[1]
        self.pids = [int(pid) for pid in output.split()]
        assert len(self.pids) == 5
        return old

    def run(self, code, begun=None):
        """Returns the reply and all output; `begun()` is called once."""
        output = []

        def hook(message):
            content = message['content']
            if message['msg_type'] == 'status' and begun and not output:
                output.append('')
                begun()
            output.append(content.get('text', '')
                          + content.get('data', {}).get('text/plain', '')
                          + '\n'.join(content.get('traceback', [])))
        reply = self.client.execute_interactive(code, timeout=300,
                                                output_hook=hook)
        return reply['content'], ''.join(output)


@pytest.fixture(scope='module')
def notebook(tmp_path_factory):
    folder = tmp_path_factory.mktemp('tmp')
    notebook = Notebook({**os.environ, 'TMPDIR': str(folder),
                         'PYTHONPATH': os.pathsep.join(sys.path)})
    yield notebook
    notebook.client.stop_channels()
    if notebook.manager.has_kernel:
        notebook.manager.shutdown_kernel(now=True)
    assert all_gone(notebook.pids)
    assert wait_for(lambda: not os.listdir(folder)), os.listdir(folder)


def test_cells_on_the_workers(notebook):
    reply, output = notebook.run(STORE)
    assert reply['status'] == 'ok', output
    assert output.count('[3. 3. 3.]') == 2
    # Again: the store is a new one, as in the first run of the cell.
    reply, output = notebook.run(STORE)
    assert output.count('[3. 3. 3.]') == 2

    # One worker fails: so does the cell; the other is told.
    reply, output = notebook.run(
        "%%px\nif kv.rank == 1:\n    1 / 0\nkv.push('w', out)\n"
        "kv.pull('w', out)")
    assert reply['status'] == 'error'
    assert 'ZeroDivisionError' in output
    assert "worker 1 has not pushed 'w'" in output
    assert "failed with ZeroDivisionError: division by zero" in output
    reply, output = notebook.run(STORE)
    assert output.count('[3. 3. 3.]') == 2

    # Ctrl-C, while worker 0 waits for worker 1 and that for nothing.
    import threading
    interrupt = threading.Timer(6, notebook.manager.interrupt_kernel)
    reply, output = notebook.run(
        "%%px\nimport time\nif kv.rank == 1:\n    time.sleep(50)\n"
        "kv.pushpull('w', out)", interrupt.start)
    assert reply['status'] == 'error' and 'KeyboardInterrupt' in output
    reply, output = notebook.run(STORE)
    assert output.count('[3. 3. 3.]') == 2, output

    # A server dies in the middle of a cell.
    reply, output = notebook.run(
        "import threading\nthreading.Timer(6, c.kill, ['server 0']).start()")
    reply, output = notebook.run(
        "%%px\nif kv.rank == 1:\n    time.sleep(50)\nkv.pushpull('w', out)")
    assert reply['status'] == 'error' and reply['ename'] == 'ClusterError'
    assert 'server 0' in output and 'was ended by SIGKILL' in output
    assert "worker 0: waiting in pull('w')" in output
    assert all_gone(notebook.pids)
    reply, output = notebook.run('%%px\n1 + 1')
    assert reply['ename'] == 'ClusterError'


def test_the_end_of_a_cluster_that_is_not_closed(notebook):
    # A new one under the same name ends the old one, which no traceback
    # keeps alive.
    notebook.start()
    notebook.run('%%px\n1 / 0')
    assert all_gone(notebook.start())
    _, output = notebook.run(STORE)
    assert output.count('[3. 3. 3.]') == 2
    # And so does a restart of the kernel while a cell runs.
    notebook.client.execute("%%px\nimport time\ntime.sleep(60)")
    notebook.manager.restart_kernel(now=False)
    assert all_gone(notebook.pids)
