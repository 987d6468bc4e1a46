"""A training step in one picture: which device does what when."""
from d2lps.checks import checked, instance_of, integer, positive
from d2lps.engine import cores
from d2lps.pictures.chart import Span, format_number, row_chart
from d2lps.pictures.controls import choose
from d2lps.pictures.drawing import Drawing
from d2lps.pictures.style import BLUE, GRAY, GREEN, ORANGE, RED, SKY
from d2lps.pictures.table_plots import TEXT
from d2lps.pictures.widgets import live_picture
from d2lps.training.timeline import PHASES, Timeline, step_timeline

ROW = 30  # pixels
PHASE_COLORS = dict(zip(PHASES, (SKY, BLUE, ORANGE, RED, GREEN, GRAY)))
# Lines on what is as light as another, for who sees no colours.
PHASE_PATTERNS = dict(zip(PHASES, (None, None, 3, 1, 2, None)))


@checked(timeline=instance_of(
    Timeline, 'a Timeline, such as step_timeline(2, 256)'),
    title=TEXT, until=positive)
def plot_timeline(timeline: Timeline, title: str | None = None,
                  until: float | None = None) -> Drawing:
    """Draw a `Timeline`: a row for each device, a bar for each operation.

    title: words above; how much the devices overlapped is added.
    until: end of the time axis in seconds, to compare two pictures.
    Returns a `Drawing`.
    """
    rows = len(timeline.devices)
    # By phase: one shape for all bars, since one for each bar is large.
    bars: dict[str, list[Span]] = {}
    for event in timeline.events:
        row = timeline.devices.index(event.device)
        bars.setdefault(event.phase, []).append((
            event.start * 1e3, event.end * 1e3, row - 0.36, row + 0.36))
    words = f'{timeline.seconds * 1e3:.0f} ms'
    if title:
        words = f'{title}: {words}'
    if rows > 1:
        words += (f', more than one device at work {timeline.overlap:.0%} '
                  'of the time')
    chart = row_chart(
        timeline.devices, (until or timeline.seconds or 1) * 1e3,
        f'{words}. {_alt_text(timeline)}', title=words, high=ROW,
        xlabel='time / ms', legend=[
            *((phase, color, f'box {PHASE_PATTERNS[phase] or 0}')
              for phase, color in PHASE_COLORS.items() if phase in bars),
            ('idle', 'white', 'box')])
    for phase, spans in bars.items():
        chart.bars(spans, PHASE_COLORS[phase], PHASE_PATTERNS[phase])
    return chart.drawing


def _alt_text(timeline):
    """How long each device was at what."""
    rows = []
    for device in timeline.devices:
        took = {}
        for event in timeline.events:
            if event.device == device:
                took[event.phase] = took.get(event.phase, 0) + (
                    event.end - event.start)
        rows.append(f'{device}: ' + (', '.join(
            f'{phase} {format_number(1e3 * took[phase])} ms'
            for phase in PHASES if phase in took) or 'idle'))
    return f'{"; ".join(rows)}.'


@checked(num_devices=integer, batch_size=integer)
def explore_timeline(num_devices: int = 2, batch_size: int = 16) -> None:
    """Choose devices and batch size, see one training step's timeline.

    Four steps are made for each picture, the last of which is recorded; so
    the menu has small batches, which take a moment only.
    """
    most = min(cores() + 2, 8)  # what MXNet can record, see `Timeline`
    integer('num_devices', num_devices, most=most)

    def draw(num_devices, batch_size):
        picture = plot_timeline(
            step_timeline(num_devices, batch_size),
            f'{batch_size / num_devices:.3g} examples on each device')
        picture.height += ROW * (most - num_devices)  # that of all devices
        return picture

    live_picture(draw, {
        'num_devices': choose([*range(1, most + 1)], num_devices, 'devices'),
        'batch_size': choose([4, 8, 16, 32, 64, 128], batch_size,
                             'batch size')})
