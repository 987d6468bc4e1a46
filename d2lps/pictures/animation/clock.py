"""Simulated time as the time of a picture that plays, or that stands still."""
import math

import numpy as np

LEAD, HOLD, PLAYS = 0.8, 2.0, 2  # real seconds before and after; how often


def unit_of(seconds):
    """A unit that fits, and how many of it are a second."""
    return next((pair for pair in ((1, 's'), (1e3, 'ms'))
                 if seconds * pair[0] >= 1), (1e6, 'µs'))


def words(seconds, of=None):
    """A time in three digits, with the unit that fits `of`, or itself."""
    factor, unit = unit_of(seconds if of is None else of)
    return f'{float(f"{seconds * factor:.3g}"):,g} {unit}'


class Playing:
    """Moves things as the style of an SVG: CSS, which ends after two plays.

    Without the style, and for readers who want less motion, the end is seen.
    seconds: simulated; they are played in `play` real ones.
    """

    def __init__(self, seconds, rounds):
        self.seconds, self.play = seconds, min(12, 5 + 0.5 * rounds)
        self.cycle = LEAD + self.play + HOLD
        self._rules, self._names = [], {}

    def real(self, seconds):
        """When, in real seconds after the beginning of a play."""
        return LEAD + self.play * seconds / (self.seconds or 1)

    def _twice(self, name, start, stop, how=''):
        return ','.join(
            f'{name} {stop - start:.4g}s {start + k * self.cycle:.4g}s{how}'
            for k in range(PLAYS))

    def visible(self, begin, end=None):
        """For what is there from `begin` to `end`, or for good."""
        start = self.real(begin) if begin > 0 else 0
        if end is None and not start:
            return ''
        if end is None:
            rule = '{animation:' + self._twice('h', 0, start) + '}'
        else:
            rule = '{visibility:hidden;animation:' + self._twice(
                's', start, self.real(end)) + '}'
        return f' class="{self._name("t", rule)}"'

    def _name(self, letter, rule):
        if rule not in self._names:
            name = self._names[rule] = f'{letter}{len(self._names)}'
            self._rules.append(f'@keyframes {name}{rule}' if letter == 'k'
                               else f'.{name}{rule}')
        return self._names[rule]

    def moving(self, points, shares, begin, end):
        """The attributes of what moves along points; hidden else.

        shares: of the time that has gone by at each point, from 0 to 1.
        """
        steps = ''.join(
            f'{100 * at:.3g}%{{transform:translate({x:.4g}px,{y:.4g}px)'
            f'{";visibility:visible" * (at in (0, 1))}}}'
            for at, (x, y) in zip(shares, points))
        name = self._name('k', f'{{{steps}}}')
        flight = self._twice(name, self.real(begin), self.real(end), ' linear')
        return f' class="m" style="animation:{flight}"'

    def counter(self, drawing, x, y, size):
        """A clock that runs: numbers on a strip behind a window."""
        most = self.seconds
        step = next(s for k in range(-15, 9) for s in (
            10.0 ** k, 2 * 10.0 ** k, 5 * 10.0 ** k) if most / s <= 80)
        count = max(0, math.ceil(most / step - 1e-6) - 1)
        high = round(1.5 * size)
        drawing.add(
            f'<clipPath id="window"><rect x="{x - 200}" y="{y - high / 2}" '
            f'width="400" height="{high}"/></clipPath>'
            '<g clip-path="url(#window)"><g class="clock" style="transform:'
            f'translateY({-high * (count + 1)}px)">')
        factor, unit = unit_of(most)
        digits = max(0, -math.floor(math.log10(step * factor) + 1e-9))
        for k in range(count + 2):
            now = words(most) if k > count else (
                f'{k * step * factor:.{digits}f} {unit}')
            drawing.text(x, y + k * high, now, size, 'end', True)
        drawing.add('</g></g>')
        first, last, end = (100 * self.real(t) / self.cycle
                            for t in (0, count * step, most))
        self._rules.append(
            f'.clock{{animation:clock {self.cycle:g}s {PLAYS}}}'
            f'@keyframes clock{{0%,{first:.2f}%{{transform:none;'
            f'animation-timing-function:steps({max(count, 1)})}}{last:.2f}%{{'
            f'transform:translateY({-high * count}px);'
            f'animation-timing-function:step-end}}{end:.2f}%,to{{transform:'
            f'translateY({-high * (count + 1)}px)}}}}')

    def growing(self, begin, end):
        """The attributes of a bar that grows to the right."""
        # Nothing to see before, full after: two animations of two plays.
        hidden = self._twice('h', 0, self.real(begin))
        grow = self._twice('g', self.real(begin), self.real(end), ' linear')
        return (' style="transform-box:fill-box;'
                f'animation:{hidden},{grow}"')

    def style(self):
        """All of it: add it when everything has been drawn."""
        return ('<style>.m{visibility:hidden}@keyframes h{0%,to{visibility:'
                'hidden}}@keyframes s{0%,to{visibility:visible}}'
                '@keyframes g{0%{transform:scaleX(0)}}'
                f'{"".join(self._rules)}@media print,(prefers-reduced-motion:'
                'reduce){*{animation:none!important}}</style>')


class Stopped:
    """The picture at one moment: attributes, or None for what is not seen."""

    def __init__(self, seconds, now):
        self.seconds, self.now = seconds, now

    def visible(self, begin, end=None):
        """For what is there from `begin` to `end`, or for good."""
        tiny = 1e-9 * self.seconds
        return '' if begin <= self.now + tiny and (
            end is None or self.now + tiny < end) else None

    def moving(self, points, shares, begin, end):
        """For what moves along points from `begin` to `end`."""
        if not begin < self.now < end:
            return None
        at = (self.now - begin) / (end - begin)
        x, y = (np.interp(at, shares, side) for side in np.transpose(points))
        return f' transform="translate({x:.4g} {y:.4g})"'

    def counter(self, drawing, x, y, size):
        """What the clock shows."""
        drawing.text(x, y, words(self.now, self.seconds), size, 'end', True)

    def growing(self, begin, end):
        """A bar that has grown for a while."""
        share = (self.now - begin) / ((end - begin) or 1)
        if share <= 0:
            return None
        return (' style="transform-box:fill-box;transform:scaleX('
                f'{min(share, 1):.3g})"')
