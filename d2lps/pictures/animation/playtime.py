"""Simulated time as the time of a picture that plays, or that stands still."""
import math
from collections.abc import Sequence

import numpy as np

from d2lps.pictures.drawing import Drawing, Point
from d2lps.units import TIMES, with_unit

LEAD, HOLD, PLAYS = 0.8, 2.0, 2  # s before and after what moves; how often


class Clock:
    """Simulated time in a picture.

    `visible`, `moving` and `growing` return attributes for a shape, or None
    where it is not there. seconds: simulated. unit: (its seconds, its name),
    the one in which the clock counts.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.unit = next((unit for unit in TIMES if seconds >= unit[0]),
                         TIMES[-1])

    def in_words(self, seconds: float) -> str:
        """A time in the clock's unit, such as 60 ms."""
        return with_unit(seconds, [self.unit])


class Playing(Clock):
    """A picture that moves by its style (CSS), and ends after two plays.

    With no style, or for readers who want less motion, the end is seen.
    seconds: of the simulation. real_seconds: in which they are played.
    """

    plays = PLAYS
    repeats = str(PLAYS)  # the same for CSS

    def __init__(self, seconds: float, real_seconds: float) -> None:
        super().__init__(seconds)
        self.real_seconds = real_seconds
        self.cycle = LEAD + real_seconds + HOLD
        # Names of CSS rules, by what stands before and inside the braces.
        self._names: dict[tuple[str, str], str] = {}

    def real(self, seconds: float) -> float:
        """Real seconds from the beginning of a play."""
        return LEAD + self.real_seconds * seconds / (self.seconds or 1)

    def share(self, seconds: float) -> str:
        """The same as a share of a play, in words of CSS."""
        return f'{100 * self.real(seconds) / self.cycle:.2f}%'

    def _keyframes(self, steps):
        """The name of a CSS animation with these steps, written once."""
        return self._names.setdefault(('@keyframes ', steps),
                                      f't{len(self._names)}')

    def _class(self, declarations):
        """The name of a CSS class with these declarations, written once."""
        return self._names.setdefault(('.', declarations),
                                      f't{len(self._names)}')

    def _times(self, name, start, stop, how=''):
        return ','.join(
            f'{name} {round(stop - start, 3):g}s '
            f'{round(start + play * self.cycle, 3):g}s{how}'
            for play in range(self.plays))

    def visible(self, begin: float, end: float | None = None) -> str:
        """Attributes of a shape that is there from `begin` on.

        end: when it goes; None if it stays.
        """
        start = self.real(begin) if begin > 0 else 0
        if end is None and not start:
            return ''
        rule = f'animation:{self._times("h", 0, start)}' if end is None else (
            'visibility:hidden;animation:'
            + self._times('s', start, self.real(end)))
        return f' class="{self._class(rule)}"'

    def moving(self, points: Sequence[Point], shares: Sequence[float],
               begin: float, end: float) -> str:
        """Attributes of a shape that travels from `begin` to `end`.

        It is at points[k] when shares[k] of its time have gone.
        """
        steps = ''.join(
            f'{100 * at:.0f}%{{transform:translate({x:.0f}px,{y:.0f}px)}}'
            for at, (x, y) in zip(shares, points))
        name = self._keyframes(steps)
        when = self._times('s', self.real(begin), self.real(end), ' linear')
        both = self._class(f'visibility:hidden;animation:{when},{when}')
        names = ','.join([name] * self.plays + ['s'] * self.plays)
        return f' class="{both}" style="animation-name:{names}"'

    def growing(self, end: float) -> str:
        """Attributes of a bar that grows to the right until `end`."""
        name = self._keyframes(
            f'0%,{self.share(0)}{{transform:scaleX(0)}}'
            f'{self.share(end)},to{{transform:none}}')
        return (' style="transform-box:fill-box;animation:'
                f'{name} {self.cycle:g}s linear {self.repeats}"')

    def counter(self, drawing: Drawing, x: float, y: float, size: int) -> None:
        """The time, as it runs: numbers on a strip, behind a window."""
        most, high = self.seconds, round(1.5 * size)
        size_of, unit = self.unit
        step = next(step for power in range(-15, 9) for step in (
            10.0 ** power, 2 * 10.0 ** power, 5 * 10.0 ** power)
            if most <= 80 * step)
        count = max(0, math.ceil(most / step - 1e-6) - 1)
        digits = max(0, -math.floor(math.log10(step / size_of) + 1e-9))
        drawing.add(
            f'<clipPath id="window"><rect x="{x - 200}" y="{y - high / 2}" '
            f'width="200" height="{high}"/></clipPath>'
            '<g clip-path="url(#window)"><g class="clock">')
        for k in range(count + 1):
            now = f'{k * step / size_of:.{digits}f} {unit}'
            drawing.text(x, y + k * high, now, size, 'end', True)
        drawing.text(x, y + k * high + high, self.in_words(most), size,
                     'end', True).add('</g></g>')
        first, last, end = map(self.share, (0, count * step, most))
        up, top = (f'transform:translateY({-high * n}px)' for n in (
            count, count + 1))
        how = 'animation-timing-function:step'
        drawing.add(
            f'<style>.clock{{{top};animation:clock {self.cycle:g}s '
            f'{self.repeats}}}'
            f'@keyframes clock{{0%,{first}{{transform:none;{how}s('
            f'{max(count, 1)})}}{last}{{{up};{how}-end}}{end},to{{{top}}}}}'
            '</style>')

    def _rules(self):
        return ('@keyframes h{0%,to{visibility:hidden}}@keyframes s{0%,to{'
                'visibility:visible}}' + ''.join(
                    f'{before}{name}{{{inside}}}'
                    for (before, inside), name in self._names.items()))

    def style(self) -> str:
        """The rules that move it, to be added when all has been drawn."""
        return (f'<style>{self._rules()}'
                '@media print,(prefers-reduced-motion:reduce){*{animation:'
                'none!important}}</style>')


class Looping(Playing):
    """A picture that plays over and over, with a pause at the end.

    It is for a page on which nobody knows when a reader looks at it.
    """

    repeats = 'infinite'

    def __init__(self, seconds: float, real_seconds: float) -> None:
        super().__init__(seconds, real_seconds)
        self.cycle = LEAD + real_seconds + 2 * HOLD

    def visible(self, begin: float, end: float | None = None) -> str:
        if begin <= 0 and end is None:
            return ''
        steps = (f'{self.share(begin) if begin > 0 else "0%"}'
                 '{visibility:visible}')
        if end is not None:
            steps += f'{self.share(end)}{{visibility:hidden}}'
        return self._cycle(steps, 'step-end', end is None)

    def moving(self, points: Sequence[Point], shares: Sequence[float],
               begin: float, end: float) -> str:
        first, last = self.real(begin), self.real(end)
        steps = ';visibility:visible}'.join(
            f'{100 * (first + at * (last - first)) / self.cycle:.2f}%{{'
            f'transform:translate({x:.0f}px,{y:.0f}px)'
            for at, (x, y) in zip(shares, points))
        return self._cycle(f'{steps};visibility:hidden}}', 'linear', False)

    def _cycle(self, steps, how, last):
        """A class that takes steps in each cycle; last: seen in the end."""
        if not steps.startswith('0%'):
            steps = ('0%{visibility:hidden;animation-timing-function:step-end}'
                     + steps)
        name = self._keyframes(steps)
        hidden = 'visibility:hidden;' * (not last)
        both = self._class(f'{hidden}animation:{name} {self.cycle:g}s {how} '
                           f'{self.repeats}')
        return f' class="{both}"'


class Driven(Playing):
    """A picture at the moment that its page says: the page sets --now.

    --now counts in the clock's unit: a ms, say, is a second of the style.
    """

    plays, repeats = 1, '1'

    def real(self, seconds: float) -> float:
        return seconds / self.unit[0]

    def _times(self, name, start, stop, how=' linear'):
        # Rounded down: at the last moment all has come to its end.
        start, stop = (math.floor(1e4 * time) / 1e4 for time in (start, stop))
        return (f'{name} {round(stop - start, 4):g}s{how} '
                f'calc({start:.9g}s - var(--now)*1s) paused')

    def style(self) -> str:
        """The rules without those for the whole page, which has others."""
        return f'<style>{self._rules()}</style>'


class Stopped(Clock):
    """The picture at one moment."""

    def __init__(self, seconds: float, now: float) -> None:
        super().__init__(seconds)
        self.now = now

    def visible(self, begin: float, end: float | None = None) -> str | None:
        """Attributes, as of `Playing`; None if it is not there now."""
        now = self.now + 1e-9 * self.seconds
        return '' if begin <= now and (end is None or now < end) else None

    def moving(self, points: Sequence[Point], shares: Sequence[float],
               begin: float, end: float) -> str | None:
        """Attributes, as of `Playing`; None if it does not travel now."""
        if not begin < self.now < end:
            return None
        gone = (self.now - begin) / (end - begin)
        x, y = (np.interp(gone, shares, side) for side in np.transpose(points))
        return f' transform="translate({x:.4g} {y:.4g})"'

    def growing(self, end: float) -> str:
        """Attributes of a bar that grows to the right until `end`."""
        share = min(1, self.now / end) if end else 1
        return f' style="transform-box:fill-box;transform:scaleX({share:.3g})"'

    def counter(self, drawing: Drawing, x: float, y: float, size: int) -> None:
        """The time at this moment."""
        drawing.text(x, y, self.in_words(self.now), size, 'end', True)
