"""Run a student's notebook in a kernel of its own, with limits that hold."""
import asyncio
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import psutil
import zmq
from jupyter_client import AsyncKernelClient, AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec
from nbformat import NotebookNode
from nbformat.v4 import output_from_msg

from d2lps.exercises.checking import CASES, MOST_NOTES, NOTES, Case
from teaching import walls
from teaching.kernel_messages import Content, Outputs, Replies

HiddenCases: TypeAlias = Mapping[str, Sequence[Case]]  # by part of an exercise

# Seconds of processor time, which no other process can take away:
SECONDS = 10  # for a cell; then it is interrupted
FIRST = 60  # for the first cell: it imports
WHOLE = 120  # for all cells of a notebook
# Seconds of real time, for a cell that waits and computes nothing. A notebook
# that is not alone and takes longer is executed again, alone.
WAIT = 2  # times as many for a cell
OUTPUTS = 10  # until all outputs of a cell have come, once it has ended
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
    """A notebook did something that it may not do; the text says what."""


class Disturbed(Exception):
    """Other notebooks at work may be the reason why a notebook was stopped."""


class Problem(NamedTuple):
    """The reason why a cell has no outputs.

    skipped: was it not even started, because a cell above had ended all?
    """
    reason: str
    skipped: bool = False


class ProcessorTime:
    """Processor time of a process and of all that it has started.

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
            for process in [self._process, *self._process.children(True)]:
                with suppress(psutil.Error):
                    used = process.cpu_times()
                    own[process.pid] = used.user + used.system
                    total += (own[process.pid] + used.children_user
                              + used.children_system)
        return own, total


class Manager(AsyncKernelManager):
    """Starts a kernel with a command of ours, and listens to it with care.

    Messages that are too long are refused as they come, and few wait.
    """

    def __init__(self, command: list[str], folder: Path) -> None:
        super().__init__(transport='ipc', ip=str(folder / 'k'),
                         connection_file=str(folder / 'connection.json'))
        self._command = command

    @property
    def kernel_spec(self) -> KernelSpec:
        return KernelSpec(argv=self._command, interrupt_mode='message',
                          language='python', display_name='d2lps')

    # jupyter_client declares a blocking client, and returns this one.
    def client(  # type: ignore[override]
            self, **settings: Any) -> AsyncKernelClient:
        client = super().client(**settings)
        client.iopub_channel_class = Outputs
        client.shell_channel_class = Replies
        client.context.setsockopt(zmq.MAXMSGSIZE, MESSAGE)
        client.context.setsockopt(zmq.RCVHWM, WAITING)
        return client

    async def end(self) -> None:
        """End the kernel, if it is still there, and remove its sockets."""
        try:
            if await self.is_alive():
                await self.shutdown_kernel(now=True)
        finally:
            await self.cleanup_resources()


class Session:
    """Cells that are run one by one in a kernel, and their limits."""

    def __init__(self, manager: Manager, client: AsyncKernelClient,
                 kernel: psutil.Process, alone: bool) -> None:
        self._manager, self._client, self.alone = manager, client, alone
        self._used = ProcessorTime(kernel)
        self._longest = ALONE if alone else LONGEST
        self._until = time.monotonic() + self._longest
        self._text, self._notes = 0, 0  # characters of outputs, and of notes
        self._late = 0  # cells that did not end in time

    async def run(self, cell: NotebookNode, seconds: int) -> bool:
        """Run a cell; its outputs go into it. Did it end within its seconds?

        Raises `Disturbed` or `Stopped` if no further cell can be run.
        """
        if self._used.seconds > WHOLE:
            raise Stopped(f'all cells together had taken {WHOLE} s')
        request = self._client.execute(cell.source, allow_stdin=False,
                                       stop_on_error=False)
        reply = asyncio.ensure_future(self._reply(request))
        outputs = asyncio.ensure_future(self._outputs(request, cell))
        try:
            in_time = await self._ends_within(seconds, reply)
            if not in_time:
                self._late += 1
                if self._late > CELLS:
                    raise Stopped(f'{self._late} cells did not end within '
                                  f'{seconds} s')
                await self._manager.interrupt_kernel()  # it may catch that
            await asyncio.wait([outputs], timeout=OUTPUTS)
            if outputs.done():
                outputs.result()  # or the error in it
            elif reply.done() and not self.alone:
                raise Disturbed(f'outputs did not come within {OUTPUTS} s')
            return in_time
        finally:
            for task in reply, outputs:
                task.cancel()

    async def _reply(self, request: str) -> None:
        """Wait for the kernel's reply: the cell has been run."""
        while (await self._client.get_shell_msg())['parent_header'].get(
                'msg_id') != request:
            pass

    async def _outputs(self, request: str, cell: NotebookNode) -> None:
        """Put outputs into the cell, until the kernel says that it is idle."""
        while True:
            message = await self._client.get_iopub_msg()
            if message['parent_header'].get('msg_id') != request:
                continue
            kind, content = message['msg_type'], message['content']
            if 'execution_count' in content:
                cell.execution_count = content['execution_count']
            if kind == 'status':
                if content['execution_state'] == 'idle':
                    return
            elif kind != 'execute_input' and self._has_room(kind, content):
                cell.outputs.append(output_from_msg(message))

    def _has_room(self, kind: str, content: Content) -> bool:
        """Count an output. Is it, or its beginning, within the limits?"""
        size = len(json.dumps(content))
        if NOTES in content.get('data', ()):
            self._notes += size
            return self._notes <= 10 * MOST_NOTES
        room = TEXT - self._text
        self._text += size
        if size <= room:
            return True
        if kind != 'stream' or room <= 0:
            return False
        content['text'] = content['text'][:room] + '\n[cut]\n'
        return True

    async def _ends_within(self, seconds: int, task: asyncio.Future) -> bool:
        """Does a task end within so many seconds of processor time?"""
        most = self._used.look() + seconds
        waited = time.monotonic() + WAIT * seconds
        while self._used.look() < most:
            await asyncio.wait([task], timeout=LOOK)
            if task.done():
                task.result()  # or the error in it
                return True
            if not await self._manager.is_alive():
                raise Disturbed('the process ended (too much memory, or it '
                                'ended itself)')
            if time.monotonic() > self._until:
                raise Disturbed('all cells together had taken '
                                f'{self._longest} s')
            if time.monotonic() > waited:
                if not self.alone:
                    raise Disturbed(f'a cell had taken {WAIT * seconds} s')
                return False
        return False


async def execute(notebook: NotebookNode, cases: HiddenCases, slot: int,
                  behind_walls: bool = True, alone: bool = True
                  ) -> dict[str, Problem]:
    """Run all code cells of `notebook`; outputs go into it.

    cases: the hidden cases of its exercise.
    slot: a number that no other notebook has at the same time. alone: is none
    executed at the same time?
    Returns, from a cell's id, why it has no outputs: it did not end in time,
    or the process had ended before.
    Raises `Disturbed` if it ended, or did not start, and is not alone: another
    notebook may have taken all memory, or have filled the disk.
    """
    for cell in notebook.cells:
        if cell.cell_type == 'code':
            cell.outputs, cell.execution_count = [], None
    try:
        folder = Path(tempfile.mkdtemp(prefix='d2lps-'))
        try:
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


async def _execute(notebook, cases, slot, behind_walls, alone, folder):
    manager = Manager(walls.command(folder, slot, behind_walls), folder)
    async with AsyncExitStack() as stack:  # ends all, the last one first
        stack.push_async_callback(manager.end)
        await manager.start_kernel(
            env={**walls.environment(), CASES: str(folder / 'cases.json')},
            cwd=str(folder), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        kernel = psutil.Process(manager.provisioner.pid)
        stack.push_async_callback(asyncio.to_thread, walls.end, kernel,
                                  None if behind_walls else folder)
        client = manager.client()
        stack.callback(client.stop_channels)
        client.start_channels()
        await client.wait_for_ready(timeout=START)
        return await _run_cells(Session(manager, client, kernel, alone),
                                notebook, cases, folder)


async def _run_cells(session, notebook, cases, folder):
    """Run one cell after the other: from a cell's id to its `Problem`."""
    problems = {}
    ended = ''  # why no further cell is run
    are_shown = False
    first = next(cell for cell in notebook.cells if cell.cell_type == 'code')
    for cell in notebook.cells:
        if cell.cell_type != 'code' or not cell.source.strip():
            continue
        if ended:
            problems[cell.id] = Problem(
                f'before it came to this cell, {ended}', skipped=True)
            continue
        seconds = FIRST if cell is first else SECONDS
        try:
            # No cell above the first hidden check can read the cases.
            if cell.id.startswith('hidden') and not are_shown:
                _show(cases, folder)
                are_shown = True
            if not await session.run(cell, seconds):
                problems[cell.id] = Problem(
                    f'it did not end within {seconds} s')
        except (Disturbed, Stopped) as error:
            if isinstance(error, Disturbed) and not session.alone:
                raise
            ended = str(error)
            problems[cell.id] = Problem(ended)
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
