"""A chapter with a cluster is interrupted in a cell, run again, and left."""
import os
import sys
import time

import psutil
import pytest
from jupyter_client.manager import KernelManager
from test_notebooks import CHAPTERS, cells_of

pytestmark = pytest.mark.full
LIMIT = 300  # seconds for a cell, however busy the machine is
# A cell of each chapter in which workers are at work, and seconds after which
# it is interrupted. The cells above it run before.
CELLS = {'09': ('ps-08', 0.1), '10': ('mm-08', 0.2), '11': ('first-run', 0.1),
         '12': ('timed', 0.2), '13': ('train-ring', 0.3),
         '17': ('code-037', 2), '18': ('minibatches', 0.1),
         '19': ('train', 0.2)}
INTERRUPTED = [path for path in CHAPTERS if path.stem[:2] in CELLS]


class Kernel:
    """A kernel in a temporary folder of its own."""

    def __init__(self, cwd, folder):
        self.manager = KernelManager(kernel_name='python3')
        self.manager.start_kernel(cwd=str(cwd), env={
            **os.environ, 'TMPDIR': str(folder), 'JUPYTER_RUNTIME_DIR': str(
                folder), 'PYTHONPATH': os.pathsep.join(sys.path)},
            extra_arguments=['--HistoryManager.enabled=False'])
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=LIMIT)

    def run(self, code):
        """'' if the cell succeeds, else its error."""
        reply = self.client.execute_interactive(
            code, timeout=LIMIT, output_hook=lambda message: None)['content']
        return ('' if reply['status'] == 'ok' else
                f'{reply["ename"]}: {reply["evalue"]} in\n{code}')

    def run_and_interrupt(self, code, seconds):
        """Run a cell, and interrupt it `seconds` after it has begun.

        ipykernel sends no reply to a cell if the interrupt arrives after its
        last line. So the empty cells below are what is waited for; the first
        of them is there for an interrupt that arrives late.
        """
        cell = self.client.execute(code, stop_on_error=False)
        while True:
            message = self.client.get_iopub_msg(timeout=LIMIT)
            if (message['msg_type'] == 'execute_input' and
                    message['parent_header']['msg_id'] == cell):
                break
        time.sleep(seconds)
        self.manager.interrupt_kernel()
        self.client.execute('', stop_on_error=False)
        self.run('')

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel()


def sources_of(path, last=None):
    """The code of a chapter's cells, up to the one with the id `last`."""
    cells = [cell for cell in cells_of(path) if cell['cell_type'] == 'code']
    ids = [cell['id'] for cell in cells]
    end = ids.index(last) + 1 if last else None
    return [''.join(cell['source']) for cell in cells[:end]]


def processes_of(folder):
    """All processes that began in a kernel with this temporary folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if (process.environ().get('TMPDIR') == str(folder) and
                    process.status() != psutil.STATUS_ZOMBIE):
                found.append(process)
        except psutil.Error:
            pass
    return found


@pytest.mark.parametrize('path', INTERRUPTED, ids=lambda path: path.stem)
def test_a_chapter_can_be_interrupted(path, tmp_path, monkeypatch):
    # Gloo's all-reduce does not notice Ctrl-C: the cluster ends and says so.
    monkeypatch.setenv('D2LPS_WITHOUT', 'torch')
    last, seconds = CELLS[path.stem[:2]]
    sources = sources_of(path, last)
    kernel = Kernel(path.parent, tmp_path)
    try:
        errors = [kernel.run(source) for source in sources[:-1]]
        kernel.run_and_interrupt(sources[-1], seconds)
        errors += [kernel.run(source) for source in sources]
    finally:
        kernel.end()
    assert not any(errors), '\n'.join(errors)
    _, alive = psutil.wait_procs(processes_of(tmp_path), 60)
    assert alive == [] and os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    'path', [path for path in CHAPTERS if path.stem[:2] == '12'],
    ids=lambda path: path.stem)
def test_each_cell_may_be_run_twice_in_a_row(path, tmp_path):
    """Who changes a word in a cell runs it again, and then the next one."""
    kernel = Kernel(path.parent, tmp_path)
    try:
        errors = [kernel.run(source) for source in sources_of(path)
                  for _ in range(2)]
    finally:
        kernel.end()
    assert not any(errors), '\n'.join(errors)
