"""Is this number normal? A machine, its rings, and what it should show."""
from functools import cache, partial
from typing import TYPE_CHECKING

from d2lps.checks import checked, instance_of, number, one_of, text
from d2lps.collectives.machines.ask import Answer, ask, numbers
from d2lps.collectives.machines.examples import pairs, table, two_sockets
from d2lps.collectives.machines.expectation import (Expectation,
                                                    expected_bandwidth,
                                                    rate_in_words)
from d2lps.collectives.machines.gpu_machine import from_nvidia_smi
from d2lps.collectives.machines.rates import GBIT, GPUS
from d2lps.figures import describe
from d2lps.pictures.controls import choose, menu
from d2lps.pictures.drawing import Drawing, Picture, Row, wrapped
from d2lps.pictures.drawings.draw_gpu_machine import (TOO_MANY, WIDTH,
                                                      draw_answer)
from d2lps.pictures.rows import LETTERS, new_axes
from d2lps.pictures.style import BLUE, GREEN
from d2lps.pictures.widgets import live_picture
from d2lps.units import BINARY, with_unit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# As `nvidia-smi topo -m` prints it (NVIDIA, DGX-1 with V100).
DGX1 = '''\
      GPU0 GPU1 GPU2 GPU3 GPU4 GPU5 GPU6 GPU7 mlx5_0 mlx5_1 mlx5_2 mlx5_3 CPU
GPU0    X  NV1  NV1  NV2  NV2  SYS  SYS  SYS   PIX    PHB    SYS    SYS   0-19
GPU1   NV1   X  NV2  NV1  SYS  NV2  SYS  SYS   PIX    PHB    SYS    SYS   0-19
GPU2   NV1 NV2    X  NV2  SYS  SYS  NV1  SYS   PHB    PIX    SYS    SYS   0-19
GPU3   NV2 NV1  NV2    X  SYS  SYS  SYS  NV1   PHB    PIX    SYS    SYS   0-19
GPU4   NV2 SYS  SYS  SYS    X  NV1  NV1  NV2   SYS    SYS    PIX    PHB  20-39
GPU5   SYS NV2  SYS  SYS  NV1    X  NV2  NV1   SYS    SYS    PIX    PHB  20-39
GPU6   SYS SYS  NV1  SYS  NV1  NV2    X  NV2   SYS    SYS    PHB    PIX  20-39
GPU7   SYS SYS  SYS  NV1  NV2  NV1  NV2    X   SYS    SYS    PHB    PIX  20-39
'''


def _hgx(nvlinks):
    return table(8, lambda i, j: f'NV{nvlinks}', [0, 0, 0, 0, 1, 1, 1, 1])


EXAMPLES = {  # by name: table, kind of GPU
    'DGX-1, 8 V100': (DGX1, 'V100'),
    'HGX, 8 A100 and NVSwitch': (_hgx(12), 'A100'),
    'HGX, 8 H100 and NVSwitch': (_hgx(18), 'H100'),
    '8 A100 in pairs': (pairs(8, 12), 'A100'),
    '8 L40S, PCIe only': (two_sockets(8), 'L40S')}
CHOICES = {'all': (*range(8),), '0 and 1': (0, 1), '0 and 2': (0, 2),
           '0 to 2': (0, 1, 2), '0 to 3': (0, 1, 2, 3),
           '0, 1, 4, 5': (0, 1, 4, 5), '0 to 4': (0, 1, 2, 3, 4),
           '0 to 5': (0, 1, 2, 3, 4, 5)}
WORDS, HIGH = 250, 640  # pixels: of the words beside a machine, of both


def _drawn(answer, high=0):
    """An `Answer` as a `Row`; in words alone if its GPUs are too many."""
    _, expected, verdict, notes, _ = answer
    told = [('Expected bus bandwidth', expected.in_words()),
            ('Why', expected.why)]
    if verdict:
        told.append((f'Measured: {verdict.word or "not yet known"}',
                     verdict.why))
    told += [('Note', note) for note in notes]
    drawing = draw_answer(answer)
    pictures = [drawing] if drawing else []
    if not drawing:
        told.append(('Note', TOO_MANY))
    pictures.append(_sections(told, WORDS if pictures else WIDTH))
    for picture in pictures:
        picture.height = max(high, picture.height)
    return Row(*pictures)


def _sections(told, width):
    """A `Drawing` of headings with text below; told: pairs of both."""
    lines = []
    for heading, text in told:
        lines += [(line, True)
                  for line in wrapped(heading, 13, width - 16, True)]
        lines += [(line, False) for line in wrapped(text, 12, width - 16)]
        lines.append(('', False))
    drawing = Drawing(width, 17 * len(lines), ' '.join(
        f'{heading}: {text}' + '.' * (text[-1] not in '.!?')
        for heading, text in told))
    for k, (line, bold) in enumerate(lines):
        drawing.text(8, 15 + 17 * k, line, 13 if bold else 12, 'start', bold)
    return drawing


@cache
def _example(machine, use):
    return from_nvidia_smi(*EXAMPLES[machine], use)


def draw_example(machine: str, use: str, measured: float) -> Row:
    """The picture of the toy."""
    example = _example(machine, CHOICES[use])
    expected = expected_bandwidth(example)
    return _drawn(Answer(example, expected, expected.verdict(measured * 1e9),
                         example.wiring.notes), HIGH)


@checked(use=one_of(*CHOICES), measured=partial(number, least=0.1, most=1e4))
def explore_gpu_machine(use: str = 'all', measured: float = 130) -> None:
    """Choose a machine and GPUs of it; see its rings, and what is normal.

    use: which GPUs take part, one of `CHOICES`. measured: bus bandwidth of a
    large all-reduce, GB/s, to be judged.
    """
    live_picture(draw_example, {
        'machine': menu([*EXAMPLES], 'DGX-1, 8 V100', 'machine'),
        'use': menu([*CHOICES], use, 'GPUs that take part'),
        'measured': choose([4, 10, 20, 40, 80, 130, 200, 240, 370, 480],
                           measured, 'measured GB/s')})


def answer(text: str, gpu: str | None, use: str, log: str, machines: int,
           cards: int, gigabits: float) -> Picture:
    """The pictures of `ask_gpu_machine`, or a text that says what is wrong."""
    try:
        reply = ask(text, gpu, numbers(use) if use.strip() else None,
                    log.strip() and log, machines=machines,
                    cards=cards or None, card_rate=gigabits * GBIT or None)
        row = _drawn(reply)
        if reply.log is None:
            return row
        return Row(*row.pictures, plot_expected(reply.expectation,
                                                reply.log.table()))
    except ValueError as error:
        return _sections([('This cannot be answered', str(error))], WIDTH)


@checked(text=text, gpu=one_of(*GPUS))
def ask_gpu_machine(text: str = DGX1, gpu: str | None = 'V100') -> None:
    """Paste the table of a machine and a log; see what is normal for it.

    text: of `nvidia-smi topo -m`, or NCCL's XML. gpu: which GPU it is; None
    where the text or the log says it.
    """
    import ipywidgets

    from d2lps.pictures.board import NARROW, Problem, show

    def area(label, value, rows):
        return ipywidgets.Textarea(
            value, description=label, rows=rows, style=NARROW,
            layout={'width': '100%'})

    boxes = {
        'text': area('nvidia-smi topo -m', text, 10),
        'gpu': ipywidgets.Dropdown(
            options=[('as the texts say', None), *zip(GPUS, GPUS)],
            value=gpu, description='GPU', style=NARROW),
        'use': ipywidgets.Text(
            style=NARROW, placeholder='all',
            description='GPUs that take part'),
        'machines': ipywidgets.BoundedIntText(
            1, 1, 10_000, description='machines', style=NARROW),
        'cards': ipywidgets.BoundedIntText(
            0, 0, 1000, description='cards of each', style=NARROW),
        'gigabits': ipywidgets.BoundedFloatText(
            0, min=0, max=10_000, description='Gbit/s of a card',
            style=NARROW),
        'log': area('log of nccl-tests', '', 4)}

    def picture():
        return answer(**{name: box.value for name, box in boxes.items()})

    def follow(_):
        try:
            shown.update(picture())
        except Exception as error:
            shown.update(Problem(error))

    shown = show(boxes.values(), picture())
    for box in boxes.values():
        box.observe(follow, 'value')


def _has_columns(log, **_):
    lost = {'size', 'busbw'} - {*getattr(log, 'columns', ())}
    if lost:
        raise ValueError('log must be a table of read_nccl_tests(text); it '
                         f'has no {" and no ".join(sorted(lost))}')


@checked(_has_columns, expectation=instance_of(
    Expectation, 'an Expectation, such as expected_bandwidth(machine)'))
def plot_expected(expectation: Expectation, log: 'pd.DataFrame',
                  ax: 'Axes | None' = None) -> 'Axes':
    """Measured bus bandwidth by size, and the range for large arrays.

    log: a table of `read_nccl_tests`, with columns size (bytes) and busbw
    (bytes/s). The verdict stands in the title.
    """
    verdict = expectation.verdict(log)
    ax = new_axes(ax)
    ax.axhspan(expectation.low / 1e9, expectation.high / 1e9, color=GREEN,
               alpha=0.25, linewidth=0, label='expected of large arrays')
    log = log.sort_values('size')
    ax.plot(log['size'], log['busbw'] / 1e9, 'o-', color=BLUE, markersize=4,
            label='measured')
    ax.set_xscale('log', base=2)
    ax.set(xlabel='size on each GPU', ylabel='bus bandwidth, GB/s')
    ax.set_ylim(bottom=0)
    least, most = log['size'].min(), log['size'].max()
    powers = [2.0 ** k for k in range(0, 61, 5)
              if least / 2 <= 2.0 ** k <= most * 2] or [most]
    ax.set_xticks(powers, [with_unit(size, BINARY) for size in powers])
    ax.minorticks_off()
    title = f'{verdict.word or "no verdict"}: '
    title += verdict.why.split('. ')[0].rstrip('.')
    width = 96 * ax.figure.get_figwidth() * 0.85
    ax.set_title('\n'.join(wrapped(title, LETTERS, width, True)))
    ax.legend(loc='best')
    describe(ax, f'{title}. Expected: {expectation.in_words()}. Measured: '
             + ', '.join(f'{rate_in_words(busbw)} at {with_unit(size, BINARY)}'
                         for size, busbw in zip(log['size'], log['busbw'])))
    return ax
