"""What runs at the far end of an SSH connection: it keeps one process.

The connection carries the lines of JSON that group and process exchange
(see `member`).  The keeper passes them on, and does what the process itself
may be too busy to do: signals, and the end of it all when the connection or
the reader's machine is gone.  It runs as a plain file, in a Python that may
lack everything, so it imports nothing of ours.
"""
import json
import os
import queue
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path


def tell(**message):
    try:
        os.write(1, json.dumps({'keeper': message}).encode() + b'\n')
    except OSError:  # the connection is gone
        pass


def lines(silence):
    """Lines that come in, until there are none for `silence` seconds."""
    rest = b''
    while select.select([0], [], [], silence)[0]:
        data = os.read(0, 1 << 16)
        if not data:
            return
        *full, rest = (rest + data).split(b'\n')
        yield from full
    print(f'nothing was heard of the reader for {silence:.0f} s',
          file=sys.stderr)


def is_free(address, port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def look(job):
    """Tell the group what it must know of this machine.

    An SSH server says at which addresses the connection arrived here, and
    from where it came.
    """
    words = os.environ.get('SSH_CONNECTION', '').split()
    if len(words) != 4:
        sys.exit('the SSH server did not set SSH_CONNECTION')
    reader, _, address, _ = words
    tell(reader=reader, address=address, ports=[
        port for port in job['ports'] if is_free(address, port)])


class Kept:
    """The process that is kept, and a folder for its files."""

    def __init__(self, job):
        folder = tempfile.mkdtemp(prefix='d2lps-cluster-')
        path = list(sys.path)
        try:  # where machines share their files, go where the reader is
            os.chdir(job['cwd'])
            path.append(job['cwd'])
        except OSError:
            pass
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(('DMLC_', 'PS_', 'PORT'))}
        program = str(Path(__file__).parents[1] / 'member.py')
        self._process = subprocess.Popen(
            [sys.executable, '-u', '-P', program], bufsize=0,
            stdin=subprocess.PIPE, start_new_session=True,
            env=environment | job['settings'])
        self._folder, self._queue = folder, queue.SimpleQueue()
        self._lock = threading.Lock()
        self.send(json.dumps(job | {'folder': folder, 'path': path}).encode())
        tell(pid=self._process.pid)
        for work in (self._write, self._wait):
            threading.Thread(target=work, daemon=True).start()

    def send(self, line):
        self._queue.put(line + b'\n')

    def signal(self, number):
        self._process.send_signal(number)

    def _write(self):
        """In a thread, as a stopped process does not read."""
        try:
            while True:
                self._process.stdin.write(self._queue.get())
        except OSError:  # it has died, which `_wait` will notice
            pass

    def _wait(self):
        code = self._process.wait()
        tell(code=code)
        self.end(max(code, 0))

    def end(self, code=0):
        """End the process and what it has started, tidy up, and end."""
        with self._lock:
            for _ in range(50):
                try:
                    os.killpg(self._process.pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    break
                self._process.wait()
            shutil.rmtree(self._folder, ignore_errors=True)
            os._exit(code)


def main():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the end of input says it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    incoming = lines(float(sys.argv[1]))
    job = json.loads(next(incoming, None) or sys.exit(1))
    here = list(sys.version_info[:2])
    if here != job['python']:
        sys.exit('Python {}.{} is here, and Python {}.{} at the reader\'s: '
                 'they must be the same'.format(*here, *job['python']))
    if 'ports' in job:
        return look(job)
    kept = Kept(job)
    try:
        for line in incoming:
            message = json.loads(line)
            if message.get('do') == 'signal':
                kept.signal(message['number'])
            elif message.get('do') != 'ping':
                kept.send(line)
    finally:
        kept.end()


if __name__ == '__main__':
    main()
