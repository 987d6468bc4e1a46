"""Run a student's notebook in a kernel of its own, with limits that hold."""
import asyncio
import json
import subprocess
import tempfile
import time
from pathlib import Path

import zmq
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

from classroom import walls
from d2lps_exercises.checking import CASES, MOST_NOTES, NOTES

SECONDS = 10  # for a cell; then it is interrupted
FIRST = 60  # for the first: it imports, which a busy machine does slowly
WHOLE = 120  # seconds for all cells of a notebook
CELLS = 2  # that may need longer: at the next the kernel is ended
TEXT = 100_000  # characters that the outputs of a notebook keep
MESSAGE = 4 * MOST_NOTES  # bytes: a kernel that sends more in one is cut off
WAITING = 20  # messages, beyond which a kernel has to keep its own
START = 60  # seconds for a kernel to start on a busy machine


class Stopped(Exception):
    """A notebook did what it may not; the text says what."""


class Manager(AsyncKernelManager):
    """Refuses long messages as they come, and keeps few of them waiting."""

    def client(self, **settings):
        client = super().client(**settings)
        client.context.setsockopt(zmq.MAXMSGSIZE, MESSAGE)
        client.context.setsockopt(zmq.RCVHWM, WAITING)
        return client


class Client(NotebookClient):
    """Runs cells one by one, and keeps only what outputs we can use."""

    def __init__(self, notebook, **settings):
        super().__init__(notebook, timeout_func=self.limit, allow_errors=True,
                         error_on_timeout={}, startup_timeout=START,
                         record_timing=False, store_widget_state=False,
                         shutdown_kernel='immediate',
                         **settings)
        self.text, self.notes, self.late = 0, 0, 0

    def limit(self, cell):
        """Seconds that a cell has."""
        first = next(one for one in self.nb.cells if one.cell_type == 'code')
        return FIRST if cell is first else SECONDS

    def _cleanup_kernel(self):
        """nbclient's at exit: the kernel has ended before, see below."""

    async def _async_poll_kernel_alive(self):
        """nbclient's, which a cell that Ctrl-C ended leaves behind."""
        try:
            await super()._async_poll_kernel_alive()
        except AssertionError:  # the client has closed since: no more to ask
            assert self.kc is None

    def process_message(self, msg, cell, cell_index):
        """Outputs beyond a limit are dropped, and what changes others."""
        kind, content = msg['msg_type'], msg['content']
        if kind in ('stream', 'display_data', 'execute_result', 'error'):
            size = len(json.dumps(content, default=str))
            if NOTES in content.get('data', ()):
                self.notes += size
                if self.notes > 10 * MOST_NOTES:
                    return None
            else:
                room = self.text < TEXT
                self.text += size
                if not room:
                    return None
                if self.text > TEXT and kind == 'stream':
                    content['text'] = content['text'][:TEXT] + '\n[cut]\n'
        elif kind not in ('status', 'execute_input'):
            return None
        return super().process_message(msg, cell, cell_index)

    async def _async_handle_timeout(self, timeout, cell=None):
        """Interrupt a cell that takes too long; it may have caught that."""
        self.late += 1
        if self.late > CELLS:
            raise Stopped(f'{self.late} cells did not end within {timeout} s')
        await self.km.interrupt_kernel()
        return {'msg_type': 'execute_reply', 'content': {
            'status': 'error', 'ename': 'TimeoutError', 'traceback': [],
            'evalue': f'did not end within {timeout} s', 'late': True}}


async def execute(notebook, cases, slot, behind_walls=True):
    """Run all code cells of `notebook`; outputs go into it.

    cases: the hidden cases of its exercise, a dictionary.
    slot: a number that no other notebook has at the same time.
    Returns a dictionary from a cell's id to why it has no outputs, in words:
    it did not end in time, or the process had ended before.
    """
    for cell in notebook.cells:
        if cell.cell_type == 'code':
            cell.outputs, cell.execution_count = [], None
    for again in True, False:  # a busy machine may fail to start one
        folder = Path(tempfile.mkdtemp(prefix='d2lps-'))
        try:
            return await _execute(notebook, cases, slot, behind_walls, folder)
        except RuntimeError:
            if not again:
                raise
        finally:
            # Python's own rmtree fails where folders are nested too deep.
            await asyncio.to_thread(subprocess.run, ['rm', '-rf', folder])


async def _execute(notebook, cases, slot, behind_walls, folder):
    manager = Manager(
        transport='ipc', ip=str(folder / 'k'),
        connection_file=str(folder / 'connection.json'))
    manager._kernel_spec = KernelSpec(
        argv=walls.command(folder, slot, behind_walls),
        interrupt_mode='message', language='python', display_name='d2lps')
    client = Client(notebook, km=manager)
    problems, ended, until = {}, '', None
    shown = False
    # nbclient's would end one kernel, and the grading would go on.
    asyncio.get_running_loop().add_signal_handler = lambda *_: None
    async with client.async_setup_kernel(env={
            **walls.environment(), CASES: str(folder / 'cases.json')},
            cwd=str(folder), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cleanup_kc=True):
        for k, cell in enumerate(notebook.cells):
            if cell.cell_type != 'code' or not cell.source.strip():
                continue
            until = until or time.monotonic() + WHOLE
            if not ended and time.monotonic() > until:
                ended = f'all cells together had taken {WHOLE} s'
            if not ended:
                late = client.late
                try:
                    if cell.id.startswith('hidden') and not shown:
                        _show(cases, folder)
                        shown = True
                    await client.async_execute_cell(cell, k)
                except (DeadKernelError, Stopped) as error:
                    ended = _why(error)
                    problems[cell.id] = ended
                    continue
                if client.late > late:
                    problems[cell.id] = (
                        f'it did not end within {client.limit(cell)} s')
            else:
                problems[cell.id] = f'before it came to this cell, {ended}'
    return problems


def _show(cases, folder):
    """Only now: no cell above the first hidden check can read them.

    Exclusive, because a link that a cell made here would lead us elsewhere.
    """
    try:
        with open(folder / 'cases.json', 'x') as file:
            json.dump(cases, file)
    except OSError as error:
        raise Stopped('a cell above changed the folder of the grading: '
                      f'{error.strerror}') from None


def _why(error):
    if isinstance(error, Stopped):
        return str(error)
    return 'the process ended (too much memory, or it ended itself)'
