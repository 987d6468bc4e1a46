"""What runs at the far end of an SSH connection: it keeps processes there.

The connection carries lines of JSON.  The keeper starts processes, passes on
what group and processes say to each other (see `member`), and does what a
process may be too busy to do: signals, and the end of it all when the
connection or the reader's machine is gone.  It runs as a plain file, in a
Python that may lack everything, so it imports nothing of ours.
"""
import contextlib
import json
import os
import queue
import runpy
import select
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

LONG = 1000  # bytes of a line that a process printed
PREFIX = 'd2lps-cluster-'  # of folders
PROBE = runpy.run_path(str(Path(__file__).with_name('probe.py')))


def tell(**message):
    """Say something to the group; a greeting may have left a line open."""
    line = b'\n' + json.dumps({'keeper': message}).encode() + b'\n'
    try:
        while line:
            line = line[os.write(1, line):]
    except OSError:  # the connection is gone
        pass


class Kept:
    """A process that is kept; `number` is its name between both ends."""

    def __init__(self, number, job, folder):
        path = list(sys.path)
        try:  # where machines share their files, go where the reader is
            os.chdir(job['cwd'])
            path.append(job['cwd'])
        except OSError:
            pass
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(('DMLC_', 'PS_', 'PORT'))}
        program = str(Path(__file__).parents[1] / 'member.py')
        self.number, self.process = number, subprocess.Popen(
            [sys.executable, '-u', '-P', program], bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
            env=environment | job['settings'])
        self.server = job['role'] == 'server'
        self._rest, self._queue = {}, queue.SimpleQueue()
        self.send(job | {'folder': folder, 'path': path})
        threading.Thread(target=self._write, daemon=True).start()
        tell(number=number, pid=self.process.pid)

    def send(self, message):
        self._queue.put(json.dumps(message).encode() + b'\n')

    def _write(self):
        """In a thread, as a stopped process does not read."""
        try:
            while True:
                self.process.stdin.write(self._queue.get())
        except (OSError, ValueError):  # it has ended
            pass

    def read(self, stream):
        """Pass on what it said or printed; False at the end of that."""
        data = os.read(stream.fileno(), 1 << 16)
        *lines, rest = (self._rest.get(stream, b'') + data).split(b'\n')
        said = stream is self.process.stdout
        if not said:
            lines, rest = [line[:LONG] for line in lines], rest[-LONG:]
        self._rest[stream] = rest
        if lines:
            tell(number=self.number, lines=[
                line.decode(errors='replace') for line in lines], said=said)
        return bool(data)

    def kill(self):
        """End the process and what it has started."""
        for _ in range(50):
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                break
            self.process.wait()
        return self.process.wait()


class Keeper:
    """All processes of a cluster on this machine.

    Args:
        silence: seconds without a word of the reader until all is ended.
    """

    def __init__(self, silence):
        self._silence, self._heard = silence, time.monotonic()
        self._kept, self._rest, self._lock = {}, b'', threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._selector.register(0, selectors.EVENT_READ)
        self._folder = ''
        threading.Thread(target=self._watch, daemon=True).start()

    def run(self):
        """Pass messages on until standard input ends."""
        beat = 0
        while True:
            ready = [(key.data, key.fileobj)
                     for key, _ in self._selector.select(0.1)]
            # A server's report of a fault goes before a worker's question.
            for one, stream in sorted(ready, key=lambda pair: not (
                    pair[0] and pair[0].server)):
                if not one:
                    self._listen()
                elif not one.read(stream):
                    self._selector.unregister(stream)
            for one in [*self._kept.values()]:
                if one.process.poll() is not None:
                    self._bury(one)
            if time.monotonic() - beat > 1:
                beat = time.monotonic()
                tell(beat=True)

    def _listen(self):
        data = os.read(0, 1 << 16)
        if not data:
            self.end()
        self._heard = time.monotonic()
        *lines, self._rest = (self._rest + data).split(b'\n')
        for line in lines:
            self._do(json.loads(line))

    def _do(self, message):
        do, one = message.get('do'), self._kept.get(message.get('number'))
        if message.get('role') == 'host':
            self._folder = tempfile.mkdtemp(prefix=PREFIX)
            tell(pid=os.getpid(), folder=self._folder, **PROBE['look'](
                message['python'], message['ports']))
        elif not self._folder:
            sys.exit('the first thing that came in was swallowed: what runs '
                     'at a login here (.bashrc, …) must not read')
        elif do == 'start':
            one = Kept(message['number'], message['job'], self._folder)
            self._kept[one.number] = one
            for stream in (one.process.stdout, one.process.stderr):
                self._selector.register(stream, selectors.EVENT_READ, one)
        elif do in ('load', 'listen', 'reach'):
            tell(**{do: PROBE[do](*message['args'])})
        elif one and do == 'pass':
            one.send(message['message'])
        elif one and do == 'signal':
            one.process.send_signal(message['signal'])
        elif one and do == 'end':
            self._bury(one)

    def _bury(self, one):
        """It has ended, or has to."""
        code = one.kill()
        for stream in (one.process.stdout, one.process.stderr):
            for _ in range(20):  # its last words
                if select.select([stream], [], [], 0)[0]:
                    one.read(stream)
            if stream in self._selector.get_map():
                self._selector.unregister(stream)
            stream.close()
        tell(number=one.number, code=code)
        del self._kept[one.number]

    def _watch(self):
        """In a thread, as nobody may take what the keeper has to say."""
        while time.monotonic() - self._heard < self._silence:
            time.sleep(0.5)
        print(f'nothing was heard of the reader for {self._silence:.0f} s',
              file=sys.stderr)
        self.end(1, lost=True)

    def end(self, code=0, lost=False):
        """End all processes, tidy up, and end."""
        with self._lock:
            for one in [*self._kept.values()]:
                one.kill()
            shutil.rmtree(self._folder or '/nothing', ignore_errors=True)
            if lost:  # nobody else would end the server's end of the line
                end_session(os.getppid())
            os._exit(code)


def end_session(pid):
    """End an SSH session whose other end is gone, if `pid` is one."""
    if command_of(pid).startswith('sshd'):
        os.kill(pid, signal.SIGTERM)


def command_of(pid):
    """The command line of a process, '' if there is none (or no Linux)."""
    try:
        return Path(f'/proc/{pid}/cmdline').read_text()
    except OSError:
        return ''


def sweep(folder, pids):
    """Remove what a keeper has left that was stopped or killed."""
    for pid in pids:
        if 'd2lps' in (command_of(pid) or 'd2lps'):  # no number used anew
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
    if Path(folder).name.startswith(PREFIX):
        shutil.rmtree(folder, ignore_errors=True)


def main():
    if sys.argv[1] == 'sweep':
        return sweep(sys.argv[2], map(int, sys.argv[3:]))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the end of input says it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('it had to end'))
    keeper = Keeper(float(sys.argv[1]))
    try:
        keeper.run()
    except SystemExit as end:
        print(end, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    keeper.end(1)


if __name__ == '__main__':
    main()
