"""A real training that somebody hurts, and its loss while it goes on."""
import asyncio
import re
import threading
import time
import weakref
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import ipywidgets
import numpy as np

from d2lps import recovery
from d2lps.annotations import PathLike
from d2lps.checks import (checked, folder, instance_of, integer, number,
                          refuse, text)
from d2lps.figures import describe
from d2lps.pictures.board import show, widget_of
from d2lps.pictures.controls import menu
from d2lps.pictures.rows import WIDE, new_figure
from d2lps.pictures.style import BLUE, GRAY, ORANGE, RED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Step: TypeAlias = tuple[float, float, float]  # its number, loss and time
Death: TypeAlias = tuple[float, str]  # seconds since 1970, and who died
LINES = 5  # of names of the dead, one above the other
NOTHING = ('all steps are done already: run the cells of this training '
           'again, from the first one')
ROW = re.compile(r'\d+,\d+(\.\d*)?,\d+(\.\d*)?')


def _progress(folder):
    """[(step, loss, seconds since 1970), ...] as training has written it."""
    path = Path(folder, 'progress.csv')
    text = (path.read_text('utf-8', errors='replace') if path.is_file()
            else '')
    return [tuple(map(float, line.split(',')))
            for line in text.split('\n')[1:-1] if ROW.fullmatch(line)]


def draw_progress(rows: Sequence[Step], num_steps: int,
                  deaths: Sequence[Death] = (), unhurt: Sequence[float] = ()
                 ) -> 'Figure':
    """The loss of each step, and when it was taken.

    rows: what `_progress` gives. deaths: [(seconds since 1970, who), ...].
    unhurt: the losses of another run, for comparison.
    """
    step, loss, when = np.array(rows).reshape(-1, 3).T
    begin = min([*when, *(moment for moment, _ in deaths)], default=0)
    when, deaths = when - begin, [(at - begin, who) for at, who in deaths]
    again = np.array([number in step[:k]
                      for k, number in enumerate(step)], bool)
    highest = max([*loss, *unhurt, 0.1])
    last = max([*when, *(at for at, _ in deaths)], default=1) or 1
    figure = new_figure(WIDE, 3, None)
    figure.subplots_adjust(0.1, 0.27, 0.98, 0.96, 0.24)
    left, right = figure.subplots(1, 2)
    left.set(xlim=(0, num_steps + 1), ylim=(0, 1.05 * highest), xlabel='step',
             ylabel='loss')
    right.set(xlim=(0, 1.03 * last), ylim=(0, num_steps + 1),
              xlabel='time / s', ylabel='step')
    left.plot(range(1, len(unhurt) + 1), unhurt, '-', color=GRAY, linewidth=5,
              label='a run without deaths' if unhurt else '')
    dead = {'color': RED, 'linestyle': '-', 'linewidth': 1.5}
    for number, (moment, who) in enumerate(deaths):
        back = min(when[when > moment], default=moment)
        left.axvline(max(step[when < moment], default=0), **dead)
        right.axvspan(moment, back, color='gray', alpha=0.25, linewidth=0)
        # Each line ends at its name, and no other goes through the words.
        early = 2 * moment < last
        top = 1 - 0.08 * ((number if early else len(deaths) - 1 - number)
                          % LINES)
        right.axvline(moment, 0, top, **dead)
        right.annotate(who, (moment, top), (4 if early else -4, -5),
                       right.get_xaxis_transform(), 'offset points',
                       color=RED, va='center', ha='left' if early else 'right')
    for ax, x, y in (left, step, loss), (right, when, step):
        ax.plot(x[~again], y[~again], '.', color=BLUE, label='first time')
        # Rings, or what is below could not be seen.
        ax.plot(x[again], y[again], 'o', color=ORANGE, fillstyle='none',
                label='done again')
    left.plot([], [], label='a death', **dead)
    figure.legend(handles=left.get_legend_handles_labels()[0], ncols=4,
                  loc='lower left')
    describe(left, f'Left, the loss of each step: {sum(~again)} of '
                   f'{num_steps} steps, {sum(again)} of them done again.')
    describe(right, ' '.join(('Right, when each was taken.', *(
        f'{who} died after {at:.1f} seconds.' for at, who in deaths))))
    return figure


def _cluster(name, value):
    if not all(hasattr(value, needed) for needed in ('run', 'kill', 'deaths')):
        refuse(name, value, 'a Cluster, such as Cluster(2, 2, restarts=3)')
    return value


def _victims(name, value):
    instance_of(dict, "a dict such as {30: 'server 1'}")(name, value)
    return {integer(f'a step in {name}', step): text(f'{name}[{step}]', who)
            for step, who in value.items()}


class TrainingPanel:
    """A real training, its loss while it goes on, and a button that kills.

    Args:
        cluster: a `Cluster` with restarts=; it is in use until `wait`.
        folder: for the checkpoints.
        num_steps, settings: for `train_with_checkpoints`.
        kill_at: {step: name of a process} to be killed without a click. The
            training waits there, so that it does not go on meanwhile.
        unhurt: losses of another run, drawn behind.

    The training runs in a thread, and other cells may run meanwhile. A panel
    that is made anew ends the one before. `deaths` is a list of (seconds
    since 1970, who).
    """
    _last = None

    @checked(cluster=_cluster, folder=folder, num_steps=integer,
             kill_at=_victims,
             unhurt=instance_of((list, tuple), 'a list of losses'))
    def __init__(self, cluster: Any, folder: PathLike, num_steps: int,
                 kill_at: dict[int, str] | None = None,
                 unhurt: Sequence[float] = (), **settings: Any) -> None:
        if TrainingPanel._last:
            TrainingPanel._last.stop()
        self._cluster = cluster  # until the training has ended
        self._weak_cluster = weakref.ref(cluster)
        self.deaths: list[Death] = []
        # Wherever its processes are, and the reader goes.
        self.folder = Path(folder).absolute()
        # Steps and deaths of an earlier training.
        self._skip = len(_progress(self.folder))
        self._died_before = len(cluster.deaths)
        self._kill_at, self._result = {**(kill_at or {})}, None
        if kill_at:
            settings['wait_at'] = [*kill_at]
        self._error = None
        self._draw = partial(draw_progress, num_steps=num_steps,
                             deaths=self.deaths, unhurt=unhurt)
        who = widget_of(menu([*cluster.pids], 'server 0', 'process'))
        self._button, self._stop = (
            ipywidgets.Button(description=label)
            for label in ('kill server 0', 'stop'))
        self._message = ipywidgets.Label()
        who.observe(lambda change: setattr(
            self._button, 'description', f'kill {change.new}'), 'value')
        self._button.on_click(lambda _: self.kill(who.value))
        self._stop.on_click(lambda _: self.stop())
        self._shown = show([who, self._button, self._stop, self._message],
                           self._picture())
        self._training, self._watching = (
            threading.Thread(target=work, args=args, daemon=True)
            for work, args in ((self._train, (num_steps, settings)),
                               (self._watch, ())))
        self._training.start()
        self._watching.start()
        TrainingPanel._last = self  # not before: it may fail

    @property
    def cluster(self) -> Any:
        """The `Cluster`; None if it and the training have ended."""
        return self._weak_cluster()

    def rows(self) -> list[Step]:
        """The steps so far: [(step, loss, seconds since 1970), ...]"""
        return _progress(self.folder)[self._skip:]

    def kill(self, name: str) -> None:
        """Kill a process of the cluster, such as 'server 1'."""
        cluster = self.cluster
        if not cluster:
            self._message.value = 'the training has ended'
            return
        try:
            cluster.kill(name)
            self._message.value = f'{name} was killed'
        except (ValueError, RuntimeError) as error:  # it is dead already
            self._message.value = str(error).split('\n')[0]

    def _train(self, num_steps, settings):
        try:
            self._result, *_ = self.cluster.run(
                recovery.train_with_checkpoints, self.folder, num_steps,
                **settings)
        except BaseException as error:
            self._error = error

    def _watch(self):
        drawn, goes_on = 0, True
        while goes_on:  # and once more when it has ended, however soon
            self._training.join(0.05)
            goes_on = self._training.is_alive()
            known = self._died_before + len(self.deaths)
            for death in self.cluster.deaths[known:]:
                self.deaths.append((time.time(), death.who))
            steps = max(self.rows(), default=(0,))[0]
            for step in [step for step in self._kill_at if step <= steps]:
                self.kill(self._kill_at.pop(step))
            if time.monotonic() > drawn + 0.5:
                self._shown.update(self._picture())
                drawn = time.monotonic()
        self._button.disabled = self._stop.disabled = True
        if not self._error and not self.rows():
            self._message.value = NOTHING
        # Widgets live as long as the kernel, but a cluster need not.
        self._cluster = None
        self._shown.update(self._picture())

    def _picture(self):
        return self._draw(self.rows())

    def stop(self) -> None:
        """End the training, and the cluster with it, if it still goes on."""
        cluster = self.cluster
        if self._training.is_alive() and cluster:
            cluster.close()
        self._training.join()
        self._watching.join()

    @checked(seconds=number)
    async def wait(self, seconds: float = 120) -> Any:
        """Wait for the end of the training; an interrupt ends it.

        `await panel.wait()` lets clicks through, which wait for the end of
        other cells. It gives what `train_with_checkpoints` returns.

        Raises:
            TimeoutError: if it takes longer; it is ended then.
        """
        end = time.monotonic() + seconds
        try:
            while self._training.is_alive() and time.monotonic() < end:
                await asyncio.sleep(0.05)
            late = self._training.is_alive()
        finally:
            self.stop()
        if late:
            raise TimeoutError(f'the training took over {seconds:g} s')
        if self._error:
            raise self._error
        self._shown.update(self._picture())  # by the cell, so that it stays
        return self._result
