"""A cluster's processes, and those that take their place after a death."""
import os
import threading
import time

from d2lps import processor
from d2lps.cluster.processes.addresses import LocalPlaces
from d2lps.cluster.processes.calls import ClusterError, show
from d2lps.cluster.processes.group import Death
from d2lps.cluster.processes.supervisor import Supervisor
from d2lps.cluster.store.client import defer_sigint
from d2lps.units import several

# Seconds that a start may take on a machine that has nothing else to do.
START = 120.0


class Restarts:
    """The `Supervisor` of a cluster, and those that come after it.

    Args:
        places: where the first processes run.
        timeout, restarts, elastic: as in `Cluster`.

    Attributes:
        supervisor: that of the processes that run now, or ran last.
        deaths: all that were noticed so far, a list of `Death`.
        starting: are the processes being started anew just now?
        closed: why no others will be started, or ''.

    While `recover` works in one thread, another may call `close`.
    """

    def __init__(self, places: LocalPlaces, timeout: float, restarts: int,
                 elastic: bool) -> None:
        self.deaths: list[Death] = []
        self.starting = False
        self.closed = ''
        self.pid = os.getpid()
        # The reader may change the folder later.
        self._options = timeout, self.deaths, os.getcwd()
        self._most_restarts, self._num_restarts = restarts, 0
        self._elastic = elastic
        self._cells_ran = False  # on the processes that run now
        self._cells_lost = False  # were variables of cells lost by a restart?
        self._recovering, self._changing = threading.Lock(), threading.Lock()
        with defer_sigint():
            self.supervisor = Supervisor(places, *self._options)

    def start(self) -> None:
        """Start all processes, and wait until the workers are ready.

        Raises:
            OSError, ClusterError: if they cannot be started.
        """
        begun = time.monotonic()
        try:
            self.supervisor.start(START * processor.load())
        except OSError:  # a death may be its cause
            self._check()
            raise
        while self.supervisor.num_ready < self.supervisor.num_workers:
            self._check()
            limit = START * processor.load()
            if time.monotonic() - begun > limit:
                raise ClusterError(
                    f'the workers did not start in {limit:.0f} s. Start again '
                    'when the machine is less busy')
            time.sleep(0.02)

    def _check_process(self) -> None:
        if os.getpid() != self.pid:
            raise ClusterError(f'this cluster belongs to process {self.pid};'
                               ' a process forked from it has none')

    def check(self) -> None:
        """Raise ClusterError if the processes do not run."""
        self._check_process()
        if self.starting:
            raise ClusterError('all processes are being started anew; '
                               'try again in a moment')
        self._check()

    def _check(self) -> None:
        if self.closed:
            raise ClusterError(self.closed)
        if self.supervisor.failure:
            text = (f'{self.supervisor.failure}\nAll other processes of this '
                    'cluster have been ended; ')
            if self._next():
                raise ClusterError(text + 'the next run starts them anew.')
            text += 'start a new one.'
            if self._most_restarts and self.deaths:
                text += (f' It was started anew {self._num_restarts} times '
                         f'of {self._most_restarts}. All deaths: '
                         f'{self._list()}.')
                if (self.supervisor.died
                        and self._num_restarts < self._most_restarts):
                    text += ' So no worker is left.'
            raise ClusterError(text)

    def _list(self) -> str:
        return '; '.join(map(str, self.deaths))

    def _next(self) -> LocalPlaces | None:
        """Places for new processes, or None if there may be none."""
        dead = [death.who for death in self.supervisor.died]
        if not dead or self.closed or (
                self._num_restarts == self._most_restarts):
            return None
        gone = [who for who in dead
                if self._elastic and who.startswith('worker ')]
        return self.supervisor.places.without(len(gone))

    def recover(self) -> None:
        """If a process has died, start all of them anew.

        Raises:
            ClusterError: if that may not be, or cannot be.
        """
        begun = time.monotonic()
        self._check_process()
        with self._recovering:
            places = self._next()
            while places:
                self._start_anew(places)
                places = self._next()  # one may have died again
            self._check()
            for death in self.deaths:
                if death.seconds is None:
                    death.seconds = time.monotonic() - max(
                        begun, death.noticed)

    def _start_anew(self, places: LocalPlaces) -> None:
        self._num_restarts += 1
        left = len(places.workers)
        deaths = '; '.join(map(str, self.supervisor.died))
        fewer = (f', with {several(left, "worker")}'
                 if left < self.supervisor.num_workers else '')
        show(f'{deaths}; all processes are started anew{fewer} '
             f'(restart {self._num_restarts} of {self._most_restarts})')
        self.starting = True
        try:
            with defer_sigint():
                self._replace(places)
            self.start()
        except BaseException as error:
            if (isinstance(error, ClusterError) and self.supervisor.died
                    and self.supervisor.places is places):
                return  # the next death; `recover` goes on
            with defer_sigint():
                self.close('its processes could not be started anew ('
                           f'{str(error) or type(error).__name__}) after '
                           f'{self._list()}; start a new cluster')
            if isinstance(error, Exception):
                raise ClusterError(self.closed) from error
            raise
        finally:
            self.starting = False

    def _replace(self, places: LocalPlaces) -> None:
        self.supervisor.close()
        with self._changing:
            if not self.closed:
                self.supervisor = Supervisor(places, *self._options)
                self._cells_lost = self._cells_lost or self._cells_ran
                self._cells_ran = False

    def begin_cell(self) -> None:
        """Note that a cell is going to run on the workers.

        Raises:
            ClusterError: once, if a restart has lost the variables of cells.
        """
        if self._cells_lost:
            self._cells_lost = False
            raise ClusterError(
                'all processes were started anew, so the variables of the '
                'workers are lost: run the %%px cells again, from the first '
                f'cell on. Deaths: {self._list()}')
        self._cells_ran = True

    def close(self,
              why: str = 'this cluster is closed; start a new one') -> None:
        """End all processes for good; may be called twice."""
        if os.getpid() == self.pid:  # a forked process may copy a taken lock
            with self._changing:
                self.closed = self.closed or why
            self.supervisor.close()
