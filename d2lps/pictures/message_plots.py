"""Times of messages over cables, as simulated or as measured."""
from collections.abc import Mapping, Sequence
from functools import partial
from math import cos, hypot, pi, sin
from typing import TYPE_CHECKING

from d2lps.checks import checked, instance_of, integer, list_of, one_of, refuse
from d2lps.collectives import strategies
from d2lps.collectives.hanging import carry_out
from d2lps.collectives.simulate import TimedSend
from d2lps.figures import describe, format_number, use_style
from d2lps.pictures.controls import choose, menu
from d2lps.pictures.drawing import TITLE, WORDS, Drawing, color
from d2lps.pictures.rows import WIDE, draw_bars, name_bar, row_axes
from d2lps.pictures.style import GRAY, GREEN, RED, ink_on
from d2lps.pictures.widgets import live_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HUNG = {'ring': strategies.ring, 'tree': strategies.tree,
        'sharded': strategies.sharded,
        'halving and doubling': strategies.halving_doubling}


def _panels(name, value):
    """A dict of lists of events."""
    if not isinstance(value, dict) or not value:
        refuse(name, value, 'a dict such as {"measured": events}')
    events = list_of(instance_of(TimedSend, 'a TimedSend'),
                     'a list of TimedSend')
    return {title: events(f'{name}[{title!r}]', [*given] if isinstance(
        given, Sequence) else given) for title, given in value.items()}


@checked(panels=_panels)
def plot_messages(panels: Mapping[str, Sequence[TimedSend]]
                  ) -> 'list[Axes]':
    """A row for each worker, with a bar for each message that comes to it.

    panels: {title: a list of `TimedSend`}; the panels share their axes. A bar
    goes from the first byte to the last, its number is the round, and its
    colour the chunk. Times count from the first byte of the panel.
    """
    from matplotlib import pyplot as plt
    use_style()
    begins = {title: min(event.start for event in events)
              for title, events in panels.items()}
    until = max(event.end - begins[title] for title, events in panels.items()
                for event in events)
    rows = sorted({event.send.dst for events in panels.values()
                   for event in events})
    _, axes = plt.subplots(
        len(panels), sharex=True, sharey=True, squeeze=False,
        figsize=(WIDE, 0.4 + len(panels) * (0.4 + 0.27 * len(rows))))
    for ax, (title, events) in zip(axes.flat, panels.items()):
        row_axes([f'to worker {row}' for row in rows],
                 1e3 * (until or 1e-6) * 1.02, ax=ax, title=title)
        for event in events:
            start = (event.start - begins[title]) * 1e3
            bar = (start, start + max(event.end - event.start, 1e-6) * 1e3,
                   rows.index(event.send.dst))
            draw_bars(ax, [bar], color(event.send.chunk))
            name_bar(ax, *bar, event.round, color(event.send.chunk))
        for artist in [*ax.patches, *ax.texts]:
            artist.set_zorder(2)  # a later bar hides an earlier number
        describe(ax, _alt_text(title, events, begins[title]))
    ax.set_xlabel('time / ms (a colour for each chunk; numbers are rounds)')
    return [*axes.flat]


def _alt_text(title, events, begin):
    """The number of messages, and when the last one ends."""
    end = 1e3 * max(event.end - begin for event in events)
    workers = len({event.send.dst for event in events})
    return (f'{title}: {len(events)} messages to {workers} workers in '
            f'{max(event.round for event in events)} rounds, the last ends '
            f'after {format_number(end)} ms.')


def _draw(plan, late, stops):
    made = HUNG[plan](8)
    waiting = dict(sorted(carry_out(made, {late: stops}).items(),
                          key=lambda report: report[1][1]))  # by round
    count = len(made.rounds)
    when = (f'before round {stops} of {count}' if stops <= count else
            f'at {stops}, after its {count} rounds')
    title = f'{plan}: worker {late} stops {when}'
    drawing = Drawing(440, 410, f'{title}. {_waiting_alt_text(waiting)}')
    drawing.text(4, 15, title, TITLE, 'start', bold=True)
    at = [(220 + 150 * sin(pi * k / 4), 195 - 150 * cos(pi * k / 4))
          for k in range(8)]
    for worker, (other, number) in waiting.items():
        (x1, y1), (x2, y2) = at[worker], at[other]
        part = 20 / hypot(x2 - x1, y2 - y1)
        drawing.arrow((x1 + part * (x2 - x1), y1 + part * (y2 - y1)),
                      (x2 - part * (x2 - x1), y2 - part * (y2 - y1)),
                      stroke='#555')
    for worker, (other, number) in waiting.items():
        (x1, y1), (x2, y2) = at[worker], at[other]
        drawing.text(0.65 * x1 + 0.35 * x2, 0.65 * y1 + 0.35 * y2, number,
                     WORDS, plate=True)
    for worker, (x, y) in enumerate(at):
        waits = GRAY if worker in waiting else GREEN
        fill = RED if worker == late else waits
        drawing.add(f'<circle class="worker" cx="{x:g}" cy="{y:g}" r="16" '
                    f'fill="{fill}"/>')
        drawing.text(x, y, worker, 13, bold=True, fill=ink_on(fill))
    return drawing.text(220, 386, 'arrow: waits for, in which round\n'
                        'orange: has stopped; green: is done', WORDS)


def _waiting_alt_text(waiting):
    parts = [f'{worker} waits for {other} in round {number}'
            for worker, (other, number) in waiting.items()]
    return f'Worker {"; ".join(parts)}.' if parts else 'Nobody waits.'


@checked(plan=one_of(*HUNG), late=partial(integer, least=0, most=7),
         stops=integer)
def explore_hang(plan: str = 'ring', late: int = 2, stops: int = 3) -> None:
    """Stop a worker of eight before a round, and see who waits for whom."""
    live_picture(_draw, dict(
        plan=menu([*HUNG], plan, 'plan'),
        late=choose([*range(8)], late, 'worker that stops'),
        stops=choose([*range(1, 15)], stops, 'before round')))
