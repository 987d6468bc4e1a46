"""Drawings of how work is split over devices, and what they exchange."""
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

from d2lps.checks import checked, integer, one_of
from d2lps.pictures.drawing import FRAME, Drawing, Picture, Row
from d2lps.pictures.style import RED

few_devices = partial(integer, least=2, most=4)
CROSSING = {'stroke': RED, 'width': 2.5}  # what goes from device to device
NUM_EXAMPLES, NUM_LAYERS, PITCH = 12, 4, 52
WIDE, LABELS = 232, 60  # pixels: one way to split, and what is left of it
SPLITS = {
    'layers': (
        'Network partitioning', 'some layers\non each device',
        'activations and gradients\ncross at every cut',
        'has some consecutive layers; all examples enter the first one, and '
        'activations and gradients cross at every cut'),
    'channels': (
        'Layer partitioning', 'some channels of\nevery layer on each',
        'activations cross after\nevery layer, gradients\nbetween layers',
        'has a part of the channels of every layer and gets all examples; '
        'activations cross after every layer, gradients between layers'),
    'examples': (
        'Data parallelism', 'all layers and\nsome examples on each',
        'sums of gradients cross\nonce per minibatch',
        'has the whole network and a part of the examples; sums of gradients '
        'cross once per minibatch')}
# Of each device a row: words and a fill for each chunk, None for an empty box.
Stage: TypeAlias = Sequence[Sequence[tuple[object, Any] | None]]


def cuts(num_rows: int, num_parts: int) -> list[tuple[int, int]]:
    """(start, end) of each part, as `split_batch` cuts."""
    bounds = [num_rows * i // num_parts for i in range(num_parts + 1)]
    return list(zip(bounds, bounds[1:]))


@checked(only=one_of(*SPLITS), num_devices=few_devices)
def draw_splits(only: str | None = None, num_devices: int = 2) -> Picture:
    """Three ways to split a network over devices, or `only` one of them.

    only: 'layers', 'channels' or 'examples'; num_devices: 2 to 4.
    """
    if only:
        return _split(only, num_devices)
    return Row(*(_split(way, num_devices) for way in SPLITS))


def _split(way, n):
    title, what, crosses, words = SPLITS[way]
    drawing = Drawing(WIDE, 424,
                      f'{title}: each of {n} devices {words}.')
    drawing.text(WIDE / 2, 16, title, 15, bold=True)
    drawing.text(WIDE / 2, 46, what, 12)
    drawing.text(WIDE / 2, 398, crosses, 12, fill=RED, bold=True)
    {'layers': _by_layers, 'channels': _by_channels,
     'examples': _by_examples}[way](drawing, n)
    return drawing


def _examples(drawing, columns):
    """The minibatch, cut into groups: (x of the middle, number, fill)."""
    drawing.text(LABELS, 83, 'examples', 12, 'end')
    for middle, number, fill in columns:
        for k in range(number):
            drawing.box(middle + 13 * (k - number / 2) + 1, 77, 11, 12,
                        fill=fill)


def _by_layers(drawing, n):
    middle = (LABELS + WIDE) / 2
    _examples(drawing, [(middle, NUM_EXAMPLES, 'white')])
    gap = 44 if n < 4 else 32
    drawing.arrow((middle, 93), (middle, 115))
    y = 116
    for device, (start, end) in enumerate(cuts(NUM_LAYERS, n)):
        high = 28 * (end - start) + 8
        drawing.box(middle - 70, y, 140, high, fill='white', dashed=True)
        drawing.text(LABELS, y + high / 2, f'device\n{device}', 12, 'end')
        for k in range(start, end):
            drawing.box(middle - 62, y + 28 * (k - start) + 6, 124, 24,
                        f'layer {k + 1}', device)
        y += high
        if device < n - 1:
            drawing.arrow((middle - 12, y + 1), (middle - 12, y + gap - 1),
                          **CROSSING)
            drawing.text(middle - 20, y + gap / 2, 'activations', 12, 'end')
            drawing.arrow((middle + 12, y + gap - 1), (middle + 12, y + 1),
                          **CROSSING)
            drawing.text(middle + 20, y + gap / 2, 'gradients', 12, 'start')
            y += gap


def _columns(drawing, n, words):
    """The boxes of all layers on all devices; returns the middles."""
    wide = (WIDE - LABELS - 6) / n
    middles = [LABELS + 6 + wide * (k + 0.5) for k in range(n)]
    drawing.text(LABELS, 125, 'device', 12, 'end')
    for device, middle in enumerate(middles):
        drawing.text(middle, 125, device, 12)
        drawing.arrow((middle, 93), (middle, 115))
        for k in range(NUM_LAYERS):
            drawing.box(middle - wide / 2 + 4, 137 + PITCH * k, wide - 8, 28,
                        words, device)
    for k in range(NUM_LAYERS):
        drawing.text(LABELS, 151 + PITCH * k, f'layer {k + 1}', 12, 'end')
    return middles


def _across(drawing, y, words):
    drawing.arrow((LABELS + 6, y), (WIDE - 2, y), both=True, **CROSSING)
    drawing.text((LABELS + 4 + WIDE) / 2, y, words, 12, plate=True)


def _by_channels(drawing, n):
    middle = (LABELS + 6 + WIDE) / 2
    _examples(drawing, [(middle, NUM_EXAMPLES, 'white')])
    _columns(drawing, n, f'1/{n}')
    for k in range(NUM_LAYERS - 1):
        _across(drawing, 177 + PITCH * k, 'activations, gradients')
    _across(drawing, 177 + PITCH * (NUM_LAYERS - 1), 'activations')


def _by_examples(drawing, n):
    middles = _columns(drawing, n, 'all')
    _examples(drawing, [
        (middle, end - start, device) for device, (middle, (start, end))
        in enumerate(zip(middles, cuts(NUM_EXAMPLES, n)))])
    for middle in middles:
        for k in range(NUM_LAYERS - 1):
            drawing.line((middle, 165 + PITCH * k),
                         (middle, 137 + PITCH * (k + 1)))
    _across(drawing, 177 + PITCH * 3, 'sums of gradients')


COLLECTIVES = {
    'all-reduce': 'before, device d has numbers of its own in each chunk; '
                  'after, every device has the sum of each chunk',
    'reduce-scatter': 'before, each device has numbers of its own in each '
                      'chunk; after, device i has the sum of chunk i alone',
    'all-gather': 'before, device i has chunk i alone; after, every device '
                  'has every chunk'}


def draw_layer_partition() -> Drawing:
    """One layer of which each of two devices has half, there and back."""
    drawing = Drawing(720, 372, (
        'Above, the forward pass: each of two devices has the whole input H '
        'of a layer, computes its half of the output, and an all-gather '
        'gives both the whole output. Below, the backward pass, from right '
        'to left: from the gradient of its half of the output each device '
        'computes what its half contributes to the gradient of all of H; a '
        'reduce-scatter adds these, and each gets the sum for its half.'))
    drawing.text(4, 18, 'forward pass', 14, 'start', bold=True)
    drawing.text(4, 218, 'backward pass', 14, 'start', bold=True)
    for top in (34, 234):
        for d in range(2):
            y = top + 74 * d
            drawing.text(4, y + 27, f'device {d}', 12, 'start')
            drawing.box(372, y, 88, 54, 'half of the\nlayer', d, 12)
    for d in range(2):
        y = 34 + 74 * d
        drawing.box(250, y, 96, 54, 'input H,\nwhole', 'white', 12)
        drawing.arrow((348, y + 27), (370, y + 27))
        drawing.arrow((462, y + 27), (484, y + 27))
        drawing.box(486, y, 76, 54, 'half of\noutput', d, 12)
        drawing.arrow((564, y + 27), (582, y + 27))
        drawing.arrow((636, y + 27), (654, y + 27))
        drawing.box(656, y, 62, 54, 'output,\nwhole', 'white', 12)
        y += 200
        drawing.box(486, y, 76, 54, 'gradient\nof half', d, 12)
        drawing.arrow((484, y + 27), (462, y + 27))
        drawing.arrow((370, y + 27), (348, y + 27))
        drawing.box(250, y, 96, 54, 'contribution\nto all of H', 'white', 12)
        drawing.arrow((248, y + 27), (228, y + 27))
        drawing.arrow((158, y + 27), (140, y + 27))
        drawing.box(62, y, 76, 54, 'gradient\nof half', d, 12)
    drawing.box(584, 34, 50, 128, 'all-\ngather', '#eee', 12)
    return drawing.box(160, 234, 66, 128, 'reduce-\nscatter', '#eee', 12)


@checked(only=one_of(*COLLECTIVES), num_devices=few_devices)
def draw_collectives(only: str | None = None, num_devices: int = 3) -> Drawing:
    """All-reduce as reduce-scatter and all-gather, or `only` one of the three.

    The number of a box is that of device d times 10 ** d, so that a sum shows
    who is in it. only: 'all-reduce', 'reduce-scatter' or 'all-gather';
    num_devices: 2 to 4.
    """
    n = num_devices
    own: Stage = [[((c + 1) * 10 ** d, d) for c in range(n)]
                  for d in range(n)]
    sums = [((c + 1) * int('1' * n), [*range(n)]) for c in range(n)]
    after: Stage = [sums] * n
    if only == 'all-gather':
        after = [[own[c][c] for c in range(n)]] * n
    piece = [[after[d][c] if c == d else None for c in range(n)]
             for d in range(n)]
    stages = {'all-reduce': [own, after], 'reduce-scatter': [own, piece],
              'all-gather': [piece, after], None: [own, piece, after]}[only]
    wide = n * (44 if n < 4 else 42)
    gap = 122 if n < 4 else 69
    high = 68 + 38 * n + 60 * (not only)
    drawing = Drawing(74 + len(stages) * (wide + gap) - gap + 4, high, (
        f'{only}: {COLLECTIVES[only]}' if only else
        'All-reduce is reduce-scatter, then all-gather: first each device '
        'gets the sum of one chunk, then everybody gets all of these sums')
        + f'. {n} devices, {n} chunks.')
    names = [only] if only else ['reduce-scatter', 'all-gather']
    middle = 58 + 19 * n
    for k, stage in enumerate(stages):
        left = 74 + k * (wide + gap)
        drawing.text(left + wide / 2, 16,
                     ('before', 'after')[k > 0] if only else
                     ('numbers of its own', 'a sum each', 'all sums')[k],
                     13, bold=True)
        _grid(drawing, left, stage, wide / n)
        if k:
            drawing.arrow((left - gap + 8, middle), (left - 8, middle),
                          width=3)
            name = names[k - 1].replace('-', '-\n' if n == 4 else '-')
            drawing.text(left - gap / 2, middle - 14 - 8 * ('\n' in name),
                         name, 12, bold=True)
    drawing.text(66, 42, 'chunk', 12, 'end')
    for d in range(n):
        drawing.text(66, 77 + 38 * d, f'device {d}', 12, 'end')
    if not only:
        y, ends = high - 22, (74 + wide / 2, left + wide / 2)
        drawing.arrow((ends[0], y - 28), (ends[0], y), (ends[1], y),
                      (ends[1], y - 28), width=3)
        drawing.text(sum(ends) / 2, y, 'all-reduce', 13, bold=True,
                     plate=True)
    return drawing


@checked(num_devices=partial(integer, least=2, most=3))
def draw_sharded_update(num_devices: int = 3) -> Drawing:
    """A reduce-scatter, an update of a chunk on each device, an all-gather.

    num_devices: 2 or 3.
    """
    n = num_devices
    own = [[((c + 1) * 10 ** d, d) for c in range(n)] for d in range(n)]
    sums = [((c + 1) * int('1' * n), [*range(n)]) for c in range(n)]
    weights = [(f'w{c}', '#f4f4f4') for c in range(n)]

    def one_each(row):
        return [[row[c] if c == d else None for c in range(n)]
                for d in range(n)]
    stages: dict[str, Stage] = {
        'gradients': own, 'a sum each': one_each(sums),
        'new weights': one_each(weights), 'all weights': [weights] * n}
    gap = (720 - 74 - 4 * 38 * n) / 3
    drawing = Drawing(720, 104 + 38 * n, (
        f'{n} devices with a gradient each, in {n} chunks. A reduce-scatter '
        'leaves one chunk of the sum on each device. It updates that chunk '
        f'of the weights, and keeps 1/{n} of the momentum. An all-gather '
        'gives all new weights to everybody.'))
    arrows = 'reduce-scatter', 'update', 'all-gather'
    for k, (name, stage) in enumerate(stages.items()):
        left = 72 + k * (38 * n + gap)
        drawing.text(left + 19 * n, 16, name, 12, bold=True)
        _grid(drawing, left, stage, 38)
        if k:
            y, name = 58 + 19 * n, arrows[k - 1].replace('-', '-\n')
            drawing.arrow((left - gap + 6, y), (left - 6, y), width=3)
            drawing.text(left - gap / 2, y - 14 - 8 * ('\n' in name), name,
                         12, bold=True)
        if k == 2:
            y = 66 + 38 * n
            drawing.line((left - gap / 2, y - 38), (left - gap / 2, y),
                         width=1, dashed=True)
            drawing.text(left - gap / 2, y + 18, f'each keeps 1/{n}\nof the '
                         'momentum', 12)
    drawing.text(66, 42, 'chunk', 12, 'end')
    for d in range(n):
        drawing.text(66, 77 + 38 * d, f'device {d}', 12, 'end')
    return drawing


def _grid(drawing, left, stage, wide):
    for c in range(len(stage)):
        drawing.text(left + wide * (c + 0.5), 42, c, 12,
                     fill=FRAME)
    for d, row in enumerate(stage):
        for c, cell in enumerate(row):
            x, y = left + wide * c + 2, 60 + 38 * d
            if cell:
                drawing.box(x, y, wide - 4, 34, *cell, 12 if wide < 44 else 13)
            else:
                drawing.box(x, y, wide - 4, 34, fill='white', dashed=True,
                            stroke='#bbb')
