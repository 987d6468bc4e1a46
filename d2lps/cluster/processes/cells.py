"""A worker's main loop: it makes the reader's calls, one after another."""
import ast
import base64
import contextlib
import io
import itertools
import linecache
import os
import runpy
import signal
import subprocess
import sys
import traceback
import types
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NoReturn

from d2lps.cluster import messages
from d2lps.cluster.peers.exchange import PeerError
from d2lps.cluster.store.client import Channel

PART = 50_000  # characters of a call or a result that go into one message
MOST_CHARACTERS = 100_000  # characters of an error, and of its traceback
OURS = __file__, ast.__file__, '<frozen runpy>'  # not in tracebacks
variables = types.ModuleType('__main__')  # of all cells
_numbers = itertools.count(1)


class Output(io.TextIOWrapper):
    """The output of a worker; the reader sees each line as soon as it ends."""
    ended = True  # whether the last line has ended

    def __init__(self, file: int) -> None:
        super().__init__(open(file, 'wb', closefd=False), 'utf-8',
                         'backslashreplace', line_buffering=True)

    def write(self, text: str) -> int:
        self.ended = text.endswith('\n') if text else self.ended
        return super().write(text)

    def end(self) -> None:
        if not self.ended:
            self.write('\n')


def work(channel: Channel, calls: 'SimpleQueue[tuple[int, str]]') -> NoReturn:
    """Be a worker: make the calls that come out of the queue `calls`.

    calls: the number of each call, and the packed call.
    """
    sys.modules['__main__'] = variables
    outputs = sys.stdout, sys.stderr = Output(1), Output(2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel.tell(messages.Ready())
    pid = os.getpid()
    while True:
        number, packed = calls.get()
        result, done = call_packed(number, packed, channel)
        for output in outputs:
            with contextlib.suppress(ValueError):  # a cell has closed it
                output.end()
        if os.getpid() != pid:  # a cell has forked this process
            os._exit(0)
        channel.tell(messages.State(busy=False, error=done.error))
        for start in range(0, len(result), PART):
            channel.tell(messages.ResultPart(
                number, result[start:start + PART]))
        channel.tell(done)


def call_packed(number: int, packed: str,
                channel: Channel) -> tuple[str, messages.Done]:
    """Call a packed function; return its packed result, and what to say."""
    try:
        try:
            # Ctrl-C interrupts only what is inside this block.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            channel.tell(messages.State(busy=True))
            function, args, kwargs = unpack(packed)
            return (pack(function(*args, **kwargs), 'its result'),
                    messages.Done(number))
        finally:  # a Ctrl-C arriving here is raised by this call
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except BaseException as error:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return '', failure(number, error)


def pack(thing: Any, name: str = 'the function or an argument') -> str:
    """A thing as a text; functions and classes of a notebook go by value."""
    import cloudpickle  # here: a record needs this module, and not that one
    try:
        return base64.b64encode(cloudpickle.dumps(thing)).decode()
    except Exception as error:
        raise ValueError(f'{name} cannot be sent to another process '
                         f'({type(error).__name__}: {error})') from None


def unpack(text: str, name: str = 'the function or an argument') -> Any:
    """The thing that another process has packed."""
    import cloudpickle
    try:
        return cloudpickle.loads(base64.b64decode(text))
    except Exception as error:
        raise ValueError(f'{name} was received, but cannot be unpacked '
                         f'({type(error).__name__}: {error})') from None


def failure(number: int, error: BaseException) -> messages.Done:
    """The end of a call: its error, and the traceback from the caller's code.
    """
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename in OURS:
        trace = trace.tb_next
    lines = []
    try:
        lines = traceback.format_exception(error.with_traceback(trace))
        text = f'{type(error).__name__}: {error}'
    except BaseException as problem:
        text = f'{type(error).__name__}, which cannot show itself: {problem}'
    wait = None
    if isinstance(error, PeerError) and error.waits_for is not None:
        wait = error.waits_for, error.round, error.closed
    return messages.Done(number, cut(text), cut(''.join(lines)), wait)


def cut(text: str) -> str:
    more = len(text) - MOST_CHARACTERS
    if more <= 0:
        return text
    return f'{text[:MOST_CHARACTERS]} … ({more:,} characters more)'


# What a worker can be asked to call.

def execute(source: str) -> None:
    """Run a cell; as in a notebook, show what its last line gives."""
    name = f'<cell {next(_numbers)}>'
    linecache.cache[name] = (  # so that tracebacks can show its lines
        len(source), None, source.splitlines(True), name)
    last = []
    body = ast.parse(source, name).body
    if (body and isinstance(body[-1], ast.Expr)
            and not source.rstrip().endswith(';')):
        last = [body.pop()]
    exec(compile(ast.Module(body, []), name, 'exec'), variables.__dict__)
    exec(compile(ast.Interactive(last), name, 'single'), variables.__dict__)


def get(name: str) -> Any:
    """The value of a variable of the cells."""
    if name not in variables.__dict__:
        raise NameError(f'name {name!r} is not defined')
    return variables.__dict__[name]


FOR_CELLS = execute, get


def close_store() -> None:
    """Close this worker's store, if there is one; it needs MXNet."""
    from d2lps.cluster.store import worker  # is loaded here already
    worker.close_store()


def run_script(script: str, arguments: Sequence[str] = ()) -> str | None:
    """Run a script with arguments, as `python` or `bash` would.

    A script whose name ends in .sh is one of the shell. Its environment has
    what such scripts need on real machines: HEAD is the address of worker 0,
    NODES the number of workers, and NODE this worker's rank.

    Returns:
        The text that a shell script has printed.

    Raises:
        RuntimeError: the script ended with an exit code other than 0; or it
            is one of the shell, and the cluster has no network of its own.
        FileNotFoundError: there is no such script.
    """
    if not Path(script).is_file():
        raise FileNotFoundError(f'there is no script {script} in the folder '
                                f'{os.getcwd()}')
    if script.endswith('.sh'):
        return run_shell(script, arguments)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).parent))
    try:
        runpy.run_path(script, run_name='__main__')
    except SystemExit as end:
        if end.code:
            how = 'exit code ' if isinstance(end.code, int) else ''
            raise RuntimeError(f'{Path(script).name} ended with {how}'
                               f'{end.code}') from None
    return None


def run_shell(script: str, arguments: Sequence[str]) -> str:
    """Run a shell script, and print its output at once; see `run_script`."""
    names = {'HEAD': 'MASTER_ADDR', 'NODES': 'WORLD_SIZE', 'NODE': 'RANK'}
    places = {name: os.environ[known] for name, known in names.items()}
    if places['HEAD'].startswith('127.'):
        raise RuntimeError(
            'a shell script may start programs that listen on ports of this '
            'machine, where its other users can reach them. Give the cluster '
            'a private network: Cluster(..., network=Network(125e6)), or '
            '--bandwidth 125e6')
    programs = os.pathsep.join([str(Path(sys.executable).parent),
                                os.environ['PATH']])
    printed = ''
    with subprocess.Popen(
            ['bash', script, *arguments], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={
                **os.environ, **places, 'PATH': programs,
                # Hosts of a slow network have no names to look up.
                'TORCH_CPP_LOG_LEVEL': 'ERROR'}) as process:
        try:
            for line in process.stdout or ():
                print(line, end='', flush=True)
                printed += line
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        raise RuntimeError(f'{Path(script).name} ended with exit code '
                           f'{process.returncode}')
    return printed
