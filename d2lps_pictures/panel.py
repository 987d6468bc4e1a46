"""A real training that somebody hurts, and its loss while it goes on."""
import asyncio
import io
import re
import threading
import time
import weakref
from functools import partial
from pathlib import Path

import ipywidgets
import numpy as np
from IPython.display import Image
from matplotlib.figure import Figure

from d2lps import recovery
from d2lps.checks import a, checked, folder, number, refuse, text, whole
from d2lps_pictures.board import show, widget_of
from d2lps_pictures.controls import menu
from d2lps_pictures.style import BLUE, GRAY, ORANGE, RED

ROW = re.compile(r'\d+,\d+(\.\d*)?,\d+(\.\d*)?')


def _progress(folder):
    """[(step, loss, seconds since 1970), ...] as training has written it."""
    path = Path(folder, 'progress.csv')
    text = path.read_text(errors='replace') if path.is_file() else ''
    return [tuple(map(float, line.split(',')))
            for line in text.split('\n')[1:-1] if ROW.fullmatch(line)]


def _draw_progress(rows, num_steps, deaths=(), unhurt=()):
    """The loss of each step, and when it was taken: a Figure.

    rows: what `_progress` gives. deaths: [(seconds since 1970, who), ...].
    unhurt: the losses of another run, for comparison.
    """
    figure = Figure(figsize=(9.5, 3.4))  # not pyplot's: this is a thread
    left, right = figure.subplots(1, 2)
    left.plot(range(1, len(unhurt) + 1), unhurt, color=GRAY, linewidth=5,
              label='a run without deaths')
    step, loss, when = np.array(rows).reshape(-1, 3).T
    begin = min([*when, *(moment for moment, _ in deaths)], default=0)
    again = np.array([one in step[:k] for k, one in enumerate(step)], bool)
    for ax, x, y in (left, step, loss), (right, when - begin, step):
        ax.plot(x[~again], y[~again], '.', color=BLUE, label='first time')
        ax.plot(x[again], y[again], 'o', color=ORANGE, label='done again',
                markerfacecolor='none')
    for moment, who in deaths:
        left.axvline(max(step[when < moment], default=0), color=RED)
        back = min(when[when > moment], default=moment) - begin
        right.axvline(moment - begin, color=RED)
        right.axvspan(moment - begin, back, color='0.9')
        side = 'right' if 2 * moment > begin + max(when, default=0) else 'left'
        right.text(moment - begin, 0, f' {who} ', color=RED, va='bottom',
                   ha=side)
    left.set(xlabel='step', ylabel='loss', xlim=(0, num_steps + 1),
             ylim=(0, None))
    right.set(xlabel='seconds', ylabel='step', ylim=(0, num_steps + 1))
    left.legend(frameon=False)
    figure.subplots_adjust(0.07, 0.15, 0.98, 0.95)
    return figure


def _cluster(name, value):
    if not all(hasattr(value, one) for one in ('run', 'kill', 'deaths')):
        refuse(name, value, 'a Cluster, such as Cluster(2, 2, restarts=3)')
    return value


def _victims(name, value):
    a(dict, "a dict such as {30: 'server 1'}")(name, value)
    return {whole(f'a step in {name}', step): text(f'{name}[{step}]', who)
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

    @checked(cluster=_cluster, folder=folder, num_steps=whole,
             kill_at=_victims, unhurt=a((list, tuple), 'a list of losses'))
    def __init__(self, cluster, folder, num_steps, kill_at=None, unhurt=(),
                 **settings):
        if TrainingPanel._last:
            TrainingPanel._last.stop()
        self._cluster = cluster  # until the training has ended
        self._weak_cluster = weakref.ref(cluster)
        self.deaths = []
        # Wherever its processes are, and the reader goes.
        self.folder = folder.absolute()
        # Steps and deaths of an earlier training.
        self._skip = len(_progress(self.folder))
        self._died_before = len(cluster.deaths)
        self._kill_at, self._result = {**(kill_at or {})}, None
        if kill_at:
            settings['wait_at'] = [*kill_at]
        self._error = None
        self._draw = partial(_draw_progress, num_steps=num_steps,
                             deaths=self.deaths, unhurt=unhurt)
        who = widget_of(menu([*cluster.pids], 'server 0', 'process'))
        self._button, stop = (ipywidgets.Button(description=words) for words
                              in ('kill server 0', 'stop'))
        self._words = ipywidgets.Label()
        who.observe(lambda change: setattr(
            self._button, 'description', f'kill {change.new}'), 'value')
        self._button.on_click(lambda _: self.kill(who.value))
        stop.on_click(lambda _: self.stop())
        self._shown = show([who, self._button, stop, self._words],
                           self._picture())
        self._training, self._watching = (
            threading.Thread(target=work, args=args, daemon=True)
            for work, args in ((self._train, (num_steps, settings)),
                               (self._watch, ())))
        self._training.start()
        self._watching.start()
        TrainingPanel._last = self  # not before: it may fail

    @property
    def cluster(self):
        """The `Cluster`; None if it and the training have ended."""
        return self._weak_cluster()

    def rows(self):
        """The steps so far: [(step, loss, seconds since 1970), ...]"""
        return _progress(self.folder)[self._skip:]

    def kill(self, name):
        """Kill a process of the cluster, such as 'server 1'."""
        cluster = self.cluster
        if not cluster:
            self._words.value = 'the training has ended'
            return
        try:
            cluster.kill(name)
            self._words.value = f'{name} was killed'
        except (ValueError, RuntimeError) as error:  # it is dead already
            self._words.value = str(error).split('\n')[0]

    def _train(self, num_steps, settings):
        try:
            self._result, *_ = self.cluster.run(
                recovery.train_with_checkpoints, self.folder, num_steps,
                **settings)
        except BaseException as error:
            self._error = error

    def _watch(self):
        drawn = 0
        while self._training.is_alive():
            self._training.join(0.05)
            known = self._died_before + len(self.deaths)
            for death in self.cluster.deaths[known:]:
                self.deaths.append((time.time(), death.who))
            steps = max(self.rows(), default=(0,))[0]
            for step in [one for one in self._kill_at if one <= steps]:
                self.kill(self._kill_at.pop(step))
            if time.monotonic() > drawn + 0.5:
                self._shown.update(self._picture())
                drawn = time.monotonic()
        self._button.disabled = True
        # Widgets live as long as the kernel, but a cluster need not.
        self._cluster = None
        self._shown.update(self._picture())

    def _picture(self):
        png = io.BytesIO()
        self._draw(self.rows()).savefig(png, dpi=144)
        return Image(png.getvalue(), retina=True)

    def stop(self):
        """End the training, and the cluster with it, if it still goes on."""
        cluster = self.cluster
        if self._training.is_alive() and cluster:
            cluster.close()
        self._training.join()
        self._watching.join()

    @checked(seconds=number)
    async def wait(self, seconds=120):
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
