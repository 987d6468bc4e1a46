"""What runs in each process of a cluster, be it scheduler, server or worker.

`group` starts this file as a program.  The two talk in lines of JSON: what
comes in on standard input is from the group, what goes out on standard
output is for it.  All that the program prints goes to standard error.  When
standard input ends, the group's process is gone, and this one ends itself.
"""
import ctypes
import itertools
import json
import os
import queue
import runpy
import shutil
import signal
import stat
import sys
import threading
import time
import traceback
from pathlib import Path

BEAT = 1.0  # seconds between signs of life


def socket_of(port):
    """The Unix socket by which MXNet means `port`, if DMLC_LOCAL is 1."""
    return f'/tmp/{port}'  # whatever TMPDIR says


def remove_sockets(folder):
    """Remove those that the file `sockets` in a cluster's folder names.

    A process that ends well removes its own; one that is killed does not.
    """
    try:
        paths = Path(folder, 'sockets').read_text().split()
    except OSError:
        return
    for path in paths:
        try:
            found = os.lstat(path)
            if stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid():
                os.unlink(path)
        except OSError:
            pass


def tidy(folder):
    """Remove all that a cluster with this folder has left."""
    remove_sockets(folder)
    shutil.rmtree(folder, ignore_errors=True)


class Channel:
    """The line to the group; `job` is the first thing that came in."""

    def __init__(self):
        self._in, self._out = os.fdopen(os.dup(0)), os.dup(1)
        os.dup2(2, 1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        self._lock, self._numbers = threading.Lock(), itertools.count()
        self._answers, self._handlers = {}, {}
        self.parent = os.getppid()
        self.job = json.loads(self._in.readline() or sys.exit(1))

    def start(self, **handlers):
        """Listen; a message goes to the handler that its `do` names.

        They have to be here already: what the group says may be in the pipe.
        """
        self._handlers = handlers | {'answer': self._answer}
        for work in (self._listen, self._beat):
            threading.Thread(target=work, daemon=True).start()

    def tell(self, kind, **message):
        """Send a message and go on."""
        line = json.dumps({'kind': kind} | message).encode() + b'\n'
        with self._lock:
            while line:
                line = line[os.write(self._out, line):]

    def ask(self, **message):
        """Send a message and wait for the answer, a dictionary.

        The group answers every question in bounded time, if only to say
        that it took too long.
        """
        number = next(self._numbers)
        answer = self._answers[number] = queue.SimpleQueue()
        try:
            self.tell('question', number=number, **message)
            return answer.get()
        except BaseException:  # Ctrl-C: the group must not count on us
            self.tell('cancel', number=number)
            raise
        finally:
            del self._answers[number]

    def _listen(self):
        for line in self._in:
            try:
                message = json.loads(line)
                self._handlers[message['do']](message)
            except Exception:  # nobody would hear of it in this thread
                self.tell('broken', text=f'cannot handle {line[:200].strip()}'
                          f':\n{traceback.format_exc()}')
        self.end()

    def _answer(self, message):
        waiting = self._answers.get(message['number'])
        if waiting:  # and was not interrupted meanwhile
            waiting.put(message)

    def _beat(self):
        try:
            while os.getppid() == self.parent:
                self.tell('beat')
                time.sleep(BEAT)
        except OSError:  # nobody reads any more
            pass
        self.end()

    def end(self):
        """End this process and whatever it has started, and tidy up."""
        for _ in range(20):  # others may write there until they end
            tidy(self.job['folder'])
            if not os.path.exists(self.job['folder']):
                break
            time.sleep(0.05)
        os.killpg(os.getpgrp(), signal.SIGKILL)


def die_with_parent():
    """On Linux, end even when this process is stopped or hangs."""
    if sys.platform == 'linux':
        PR_SET_PDEATHSIG = 1
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def work(channel):
    """Be a worker; the rest that it takes needs a while to load."""
    calls, faults = queue.SimpleQueue(), []
    channel.start(call=calls.put, fault=faults.append)
    # MXNet would load these, a second, for classes that nobody needs.
    unwanted = 'sklearn', 'scipy.stats'
    sys.modules.update(dict.fromkeys(unwanted))
    from d2lps.cluster.processes import cells
    for name in unwanted:
        del sys.modules[name]
    cells.work(channel, calls, faults)


def serve(channel):
    """Be a scheduler or server."""
    beside('server')['serve'](channel)


def wait(channel):
    """Be the keeper or the network lab, which need only to be there."""
    channel.start()
    threading.Event().wait()


def beside(name):
    """What the file `name` has, without importing the rest of d2lps."""
    return runpy.run_path(str(Path(__file__).with_name(f'{name}.py')))


def main():
    channel = Channel()
    os.environ.update(channel.job['env'])
    sys.path[:] = channel.job['path']
    role = channel.job['role']
    if role == 'network' or 'join' in channel.job:
        lab = beside('lab')
        lab['join'](channel.job.get('join', ()))
        if role == 'network':
            lab['serve'](channel)
    if role != 'keeper':  # which tidies up if all else dies
        die_with_parent()
    {'keeper': wait, 'worker': work, 'network': wait}.get(
        role, serve)(channel)


if __name__ == '__main__':
    main()
