"""What runs in each process of a cluster, be it scheduler, server or worker.

A `keeper` forks it.  The two talk in lines of JSON.  All that the program
prints goes to another pipe.  When what comes in ends, the keeper is gone, and
this process ends itself.
"""
import ctypes
import importlib
import itertools
import json
import os
import queue
import re
import signal
import sys
import threading
import time
import traceback

BEAT = 1.0  # seconds between signs of life
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
NEEDS = {'controller': 'ipyparallel.controller.app',
         'worker': 'd2lps.cluster.processes.engine'}


def may_be_forked():
    """Can MXNet be loaded before a process is forked?

    It prepares for that, but gives the new process only one OpenMP thread
    (other settings are possible, if not wise); and GPUs do not allow it.
    """
    return (os.environ.get('OMP_NUM_THREADS') == '1'
            and not os.path.exists('/dev/nvidiactl'))


def load(role):
    """Load what a process with this role needs, which takes a while."""
    if 'mxnet' not in sys.modules and role != 'controller':
        # MXNet would load it, half a second, for a class that nobody needs.
        sys.modules['sklearn'] = None
        importlib.import_module('mxnet')
        del sys.modules['sklearn']
    importlib.import_module(NEEDS.get(role, 'mxnet'))


class Channel:
    """The line to the group; `job` says what this process is."""

    def __init__(self, job, incoming, outgoing):
        self.job, self._in, self._out = job, os.fdopen(incoming), outgoing
        self._lock, self._numbers = threading.Lock(), itertools.count()
        self._answers, self._handlers = {}, {}

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
        end_all()

    def _answer(self, message):
        waiting = self._answers.get(message['number'])
        if waiting:  # and was not interrupted meanwhile
            waiting.put(message)

    def _beat(self):
        try:
            while True:
                self.tell('beat')
                time.sleep(BEAT)
        except OSError:  # nobody reads any more
            end_all()


def end_all():
    """End this process and whatever it has started."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


def control(channel):
    """Be ipyparallel's controller, between the workers and the reader."""
    from ipyparallel.controller.app import IPController

    class Controller(IPController):
        def save_connection_dict(self, name, info):
            kind, base = info['interface'].split('://')
            # ipyparallel 9 listens on one name and connects to another.
            for port in re.findall(r'\b\d+\b', str([*info.values()])):
                if kind == 'ipc' and not os.path.lexists(f'{base}:{port}'):
                    os.symlink(f'{base}-{port}', f'{base}:{port}')
            channel.tell('connection', info=info, whose=name)

        def cleanup_connection_files(self):
            pass

    channel.start()
    run(Controller, channel, *channel.job['listen'], '--nodb',
        '--usethreads', '--HeartMonitor.period=500',
        # The group watches the workers, in its own way.
        '--HeartMonitor.max_heartmonitor_misses=1000000')


def work(channel):
    """Be a worker, which is an engine of ipyparallel."""
    connection, faults = queue.SimpleQueue(), []
    channel.start(connect=connection.put, fault=faults.append)
    load('worker')
    from d2lps.cluster.processes import engine
    engine.work(channel, connection, faults, run)


def serve(channel):
    """Be a scheduler or server."""
    from d2lps.cluster.processes import server
    server.serve(channel)


def run(application, channel, *options):
    """Run a program of ipyparallel, with its files in the group's folder."""
    own = os.path.join(channel.job['folder'], channel.job['name'])
    os.environ['IPYTHONDIR'] = own  # else it looks into the home folder
    program = application.instance()
    program.initialize([f'--ipython-dir={own}', f'--profile-dir={own}/profile',
                        '--log-level=ERROR', *options,
                        '--BaseIPythonApplication.auto_create=True'])
    program.start()


def main(job, pipes, lab):
    """Be a process of a cluster, which was just forked from its keeper.

    Args:
        job: what it is to be, and what it must know.
        pipes: what it hears, says and prints go through these.
        lab: the keeper's slow network, if there is one.
    """
    os.setpgid(0, 0)  # its keeper ends it and all that it starts
    for number in signal.SIGHUP, signal.SIGTERM:
        signal.signal(number, signal.SIG_DFL)
    if lab:
        lab.enter(job['host'])
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY),
                                   pipes[2], pipes[2])):
        os.dup2(file, number)
    for file in map(int, os.listdir('/dev/fd')):
        if file > 2 and file not in pipes[:2]:  # our keeper's
            try:
                os.close(file)
            except OSError:  # it was the list of them
                pass
    if sys.platform == 'linux':
        prctl = ctypes.CDLL(None).prctl
        # End even when this process is stopped or hangs.
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        prctl(PR_SET_NAME, job['name'].encode())
    if 'numpy' in sys.modules:  # else all draw the same random numbers
        sys.modules['numpy'].random.seed()
    channel = Channel(job, *pipes[:2])
    if job['role'] not in NEEDS:  # without a role, mxnet starts no server
        load(job['role'])
    os.environ.update(job['env'])
    {'controller': control, 'worker': work}.get(job['role'], serve)(channel)
