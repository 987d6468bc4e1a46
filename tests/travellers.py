"""Processes with `Peers`, forked by a test, which do what they are told."""
import multiprocessing
import os
import signal
import threading
import time
from types import SimpleNamespace

import cloudpickle
import numpy as np
import psutil
from clusters import HANGS
from d2lps.collectives import travel
from d2lps.cluster.peers.exchange import PeerError, Peers
from d2lps.cluster.processes.calls import first_of
from d2lps.cluster.processes.addresses import free_ports


class Crew:
    """n processes; `crew(function, ...)` calls it in all, as function(me, …).

    me: what a process keeps from call to call; has rank, addresses, timeout,
    secret, and `peers` after `joined`.
    """

    def __init__(self, n, folder=None, timeout=HANGS, secret='known'):
        self.addresses = [f'{folder}/{rank}' for rank in range(n)] if (
            folder) else [f'127.0.0.1:{port}' for port in free_ports(n)]
        self.pids, self._pipes = [], []
        for rank in range(n):
            here, there = multiprocessing.Pipe()
            self._pipes.append(here)
            pid = os.fork()
            if not pid:
                try:
                    serve(self._pipes, there, SimpleNamespace(
                        rank=rank, addresses=self.addresses, timeout=timeout,
                        secret=secret))
                finally:
                    os._exit(1)
            there.close()
            self.pids.append(pid)

    def tell(self, rank, function, *args):
        """Have one process call a function, and go on."""
        self._pipes[rank].send_bytes(cloudpickle.dumps((function, args)))

    def hear(self, rank):
        """What came of it: the result, or the error as it is."""
        if not self._pipes[rank].poll(HANGS):
            raise AssertionError(f'worker {rank} hangs')
        try:
            return cloudpickle.loads(self._pipes[rank].recv_bytes())
        except EOFError:
            return 'dead'

    def __call__(self, function, *args):
        """Have all call a function: a list of their results."""
        return self.each(function, [args] * len(self.pids))

    def each(self, function, args):
        for rank, some in enumerate(args):
            self.tell(rank, function, *some)
        return [self.hear(rank) for rank in range(len(args))]

    def joined(self):
        results = self(join)
        assert results == [0] * len(self.pids), results
        return self

    def close(self):
        for pid, pipe in zip(self.pids, self._pipes):
            pipe.close()
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def serve(pipes, pipe, me):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for other in pipes:
        other.close()
    while True:
        try:
            function, args = cloudpickle.loads(pipe.recv_bytes())
        except EOFError:  # the test has ended
            os._exit(0)
        try:
            result = function(me, *args)
        except BaseException as error:
            result = error.with_traceback(None)
            result.__context__ = None
            # What a debugger would keep must not hold files open.
        pipe.send_bytes(cloudpickle.dumps(result))
        del result


def join(me, **more):
    """Returns how many strangers were refused."""
    me.peers = None
    me.peers = Peers(me.rank, me.addresses, **{
        'timeout': me.timeout, 'secret': me.secret} | more)
    return me.peers.strangers


def go(me, plan, array, op=np.add):
    """Run a plan; returns the array."""
    travel.run(me.peers, plan, array, op)
    return array


def still_well(crew):
    """Do all get the sum?"""
    from d2lps.collectives import strategies
    n = len(crew.pids)
    results = crew.each(go, [(strategies.ring(n), np.arange(5) + rank)
                             for rank in range(n)])
    want = n * np.arange(5) + n * (n - 1) // 2
    return [str(one) for one in results] == [str(want)] * n


def in_round(me, number, act):
    """Have this worker call `act` as a round begins, once."""
    begin = me.peers.begin_round

    def begin_round():
        begin()
        if me.peers.round == number and me.peers._plan:
            me.peers.begin_round = begin
            act()
    me.peers.begin_round = begin_round


def first(results):
    """Who was first, by what these results say."""
    return first_of({
        rank: (one.waits_for, one.round, one.closed)
        for rank, one in enumerate(results) if isinstance(one, PeerError)})


def open_now(me=None):
    """How many files and threads this process has."""
    return len(os.listdir('/dev/fd')), threading.active_count()


def settled(before, seconds=HANGS):
    """Are there soon no more files and threads than before?"""
    end = time.monotonic() + seconds
    while any(now > old for now, old in zip(open_now(), before)):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def memory():
    return psutil.Process().memory_info().rss
