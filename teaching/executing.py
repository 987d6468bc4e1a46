"""Run a student's notebook in a kernel of its own, with limits that hold."""
import asyncio
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import psutil
import zmq
from jupyter_client import AsyncKernelClient, AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode

from d2lps.exercises.checking import CASES, MOST_NOTES, NOTES, Case
from teaching import walls
from teaching.kernel_messages import Outputs, Replies
from teaching.start import MODULES

HiddenCases: TypeAlias = Mapping[str, Sequence[Case]]  # by part of an exercise

# Seconds of processor time, which others at work do not take from anybody:
SECONDS = 10  # for a cell; then it is interrupted
FIRST = 60  # for the first: it imports
WHOLE = 120  # for all cells of a notebook
# Seconds by the clock on the wall, for what waits and computes nothing. Who is
# not alone and takes longer is executed again, alone.
WAIT = 2  # times as many for a cell
OUTPUTS = 10  # until all that a cell has shown is here, once it has ended
LONGEST = 300  # for all cells of a notebook
ALONE = 120  # the same, when no other is executed at the same time
START = 600  # for a kernel to start, which takes one or two
LOOK = 0.5  # between two looks at the processor time
CORES = os.cpu_count() or 1

CELLS = 2  # that may need longer: at the next the kernel is ended
TEXT = 100_000  # characters that the outputs of a notebook keep
MESSAGE = 4 * MOST_NOTES  # bytes: a kernel that sends more in one is cut off
WAITING = 20  # messages, beyond which a kernel has to keep its own


def hidden_cases(folder: Path, exercise: str) -> dict[str, list[Case]]:
    """The cases of an exercise's hidden checks, by part."""
    return json.loads((folder / f'{exercise}.json').read_text())


class Stopped(Exception):
    """A notebook did what it may not; the text says what."""


class Disturbed(Exception):
    """What others did at the same time may be why a notebook was stopped."""


class Problem(NamedTuple):
    """Why a cell has no outputs, in words.

    skipped: was it not even started, because a cell above had ended all?
    """
    words: str
    skipped: bool = False


class ProcessorTime:
    """Counts what a process and all that it has started have computed.

    seconds: of one processor, as if the work of many processes were divided
    among all processors, but at least those of the process that computes most.
    """

    def __init__(self, process: psutil.Process) -> None:
        self.seconds, self._process = 0., process
        self._own, self._sum = self._read()

    def look(self) -> float:
        """Count until now: the seconds so far."""
        own, total = self._read()
        most = max((seconds - self._own.get(pid, 0)
                    for pid, seconds in own.items()), default=0)
        self.seconds += max(0, most, (total - self._sum) / CORES)
        self._own, self._sum = own, total
        return self.seconds

    def _read(self) -> tuple[dict[int, float], float]:
        """Seconds of each process, and of all, with those that have ended."""
        own, total = {}, 0.
        with suppress(psutil.Error):  # all have ended
            for one in [self._process, *self._process.children(True)]:
                with suppress(psutil.Error):
                    used = one.cpu_times()
                    own[one.pid] = used.user + used.system
                    total += (own[one.pid] + used.children_user
                              + used.children_system)
        return own, total


class Manager(AsyncKernelManager):
    """Refuses long messages as they come, and keeps few of them waiting."""

    # jupyter_client declares a blocking client, and returns this one.
    def client(  # type: ignore[override]
            self, **settings: Any) -> AsyncKernelClient:
        client = super().client(**settings)
        client.iopub_channel_class = Outputs
        client.shell_channel_class = Replies
        client.context.setsockopt(zmq.MAXMSGSIZE, MESSAGE)
        client.context.setsockopt(zmq.RCVHWM, WAITING)
        return client


class Client(NotebookClient):
    """Runs cells one by one, and keeps only what outputs we can use."""

    def __init__(self, notebook: NotebookNode, **settings: Any) -> None:
        super().__init__(notebook, timeout=None, allow_errors=True,
                         startup_timeout=START,
                         record_timing=False, store_widget_state=False,
                         shutdown_kernel='immediate',
                         **settings)
        self.text, self.notes = 0, 0  # characters of outputs, and of notes
        self.late = 0  # cells that did not end in time

    def start_clocks(self, kernel: psutil.Process, alone: bool) -> None:
        """Start the limits for all cells. kernel: its process."""
        self.used, self.alone = ProcessorTime(kernel), alone
        self.longest = ALONE if alone else LONGEST
        self.until = time.monotonic() + self.longest

    def limit(self, cell: NotebookNode) -> int:
        """Seconds that a cell has."""
        first = next(one for one in self.nb.cells if one.cell_type == 'code')
        return FIRST if cell is first else SECONDS

    async def run(self, cell: NotebookNode, k: int) -> None:
        """Run the cell with number k.

        Raises `Disturbed` or `Stopped` if no further cell can be run.
        """
        if self.used.seconds > WHOLE:
            raise Stopped(f'all cells together had taken {WHOLE} s')
        try:
            await self.async_execute_cell(cell, k)
        except DeadKernelError:
            raise Disturbed('the process ended (too much memory, or it ended '
                            'itself)') from None
        except (Disturbed, Stopped, OSError, psutil.Error, zmq.ZMQError):
            raise
        except Exception:  # all else comes from the kernel
            raise Stopped('what its process sent could not be '
                          'understood') from None

    def _cleanup_kernel(self):
        """nbclient's at exit: the kernel has ended before, see below."""

    async def _async_poll_kernel_alive(self):
        """nbclient's, which a cell that Ctrl-C ended leaves behind."""
        try:
            await super()._async_poll_kernel_alive()
        except AssertionError:  # the client has closed since: no more to ask
            assert self.kc is None

    def process_message(self, msg: dict[str, Any], cell: NotebookNode,
                        cell_index: int) -> NotebookNode | None:
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

    async def _async_poll_for_reply(self, msg_id, cell, _, outputs, alive):
        """nbclient's, but with our limits."""
        reply = asyncio.ensure_future(self._reply(msg_id))
        try:
            if not await self._ends_within(self.limit(cell), reply):
                self.late += 1
                if self.late > CELLS:
                    raise Stopped(f'{self.late} cells did not end within '
                                  f'{self.limit(cell)} s')
                await self.km.interrupt_kernel()  # it may have caught that
            await asyncio.wait([outputs], timeout=OUTPUTS)
            if outputs.done():
                outputs.result()  # or the error in it
            elif reply.done() and not self.alone:
                raise Disturbed(f'outputs did not come within {OUTPUTS} s')
            return reply.result() if reply.done() else {
                'content': {'status': 'error'}}
        finally:
            for task in reply, outputs, alive:
                task.cancel()

    async def _reply(self, msg_id):
        while True:
            message = await self.kc.shell_channel.get_msg(timeout=None)
            if message['parent_header'].get('msg_id') == msg_id:
                return message

    async def _ends_within(self, seconds, task):
        """Does a task end within so many seconds of processor time?"""
        computed = self.used.look() + seconds
        waited = time.monotonic() + WAIT * seconds
        while self.used.look() < computed:
            await asyncio.wait([task], timeout=LOOK)
            if task.done():
                return True
            if time.monotonic() > self.until:
                raise Disturbed('all cells together had taken '
                                f'{self.longest} s')
            if time.monotonic() > waited:
                if not self.alone:
                    raise Disturbed(f'a cell had taken {WAIT * seconds} s')
                return False
        return False


async def execute(notebook: NotebookNode, cases: HiddenCases, slot: int,
                  behind_walls: bool = True, alone: bool = True,
                  modules: Mapping[str, str] = MappingProxyType({})
                  ) -> dict[str, Problem]:
    """Run all code cells of `notebook`; outputs go into it.

    cases: the hidden cases of its exercise.
    slot: a number that no other notebook has at the same time. alone: is none
    executed at the same time? modules: texts by the names of files, which
    the cells can import, unless Python or a package has such a module.
    Returns, from a cell's id, why it has no outputs: it did not end in time,
    or the process had ended before.
    Raises `Disturbed` if it ended, or did not start, and is not alone: others
    may have taken all memory, or have filled the disk.
    """
    for cell in notebook.cells:
        if cell.cell_type == 'code':
            cell.outputs, cell.execution_count = [], None
    try:
        folder = Path(tempfile.mkdtemp(prefix='d2lps-'))
        try:
            _write_modules(folder / MODULES, modules)
            return await _execute(notebook, cases, slot, behind_walls, alone,
                                  folder)
        finally:
            # Python's own rmtree fails where folders are nested too deep. In
            # a session of its own, a Ctrl-C does not end it.
            await asyncio.to_thread(subprocess.run, ['rm', '-rf', str(folder)],
                                    start_new_session=True)
    except (RuntimeError, OSError, psutil.Error) as error:
        if alone:
            raise
        raise Disturbed from error


def _write_modules(folder, modules):
    """Write files that each user can read: code may run as another user."""
    folder.mkdir()
    folder.chmod(0o755)
    for name, text in modules.items():
        (folder / name).write_text(text, encoding='utf-8', errors='replace')
        (folder / name).chmod(0o644)


async def _execute(notebook, cases, slot, behind_walls, alone, folder):
    manager = Manager(
        transport='ipc', ip=str(folder / 'k'),
        connection_file=str(folder / 'connection.json'))
    manager._kernel_spec = KernelSpec(
        argv=walls.command(folder, slot, behind_walls),
        interrupt_mode='message', language='python', display_name='d2lps')
    client = Client(notebook, km=manager)
    # nbclient's would end one kernel, and the grading would go on.
    asyncio.get_running_loop().add_signal_handler = lambda *_: None
    async with client.async_setup_kernel(env={
            **walls.environment(), CASES: str(folder / 'cases.json')},
            cwd=str(folder), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cleanup_kc=True):
        kernel = psutil.Process(manager.provisioner.pid)
        client.start_clocks(kernel, alone)
        try:
            return await _run_cells(client, cases, folder)
        finally:
            await asyncio.to_thread(walls.end, kernel,
                                    None if behind_walls else folder)


async def _run_cells(client, cases, folder):
    """Run one cell after the other: from a cell's id to its `Problem`."""
    problems = {}
    ended = ''  # why no further cell is run
    are_shown = False
    for k, cell in enumerate(client.nb.cells):
        if cell.cell_type != 'code' or not cell.source.strip():
            continue
        if ended:
            problems[cell.id] = Problem(
                f'before it came to this cell, {ended}', skipped=True)
            continue
        late = client.late
        try:
            # No cell above the first hidden check can read the cases.
            if cell.id.startswith('hidden') and not are_shown:
                _show(cases, folder)
                are_shown = True
            await client.run(cell, k)
        except (Disturbed, Stopped) as error:
            if isinstance(error, Disturbed) and not client.alone:
                raise
            ended = str(error)
            problems[cell.id] = Problem(ended)
        else:
            if client.late > late:
                problems[cell.id] = Problem(
                    f'it did not end within {client.limit(cell)} s')
    return problems


def _show(cases, folder):
    """Write the hidden cases where the checks read them.

    Exclusive, because a link that a cell made here would lead us elsewhere.
    """
    try:
        with open(folder / 'cases.json', 'x') as file:
            json.dump(cases, file)
    except OSError as error:
        raise Disturbed('a cell above changed the folder of the grading: '
                        f'{error.strerror}') from None
