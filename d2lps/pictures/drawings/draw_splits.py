"""Drawings of how work is split over devices, and of their collectives."""
from collections.abc import Sequence
from typing import Any, TypeAlias

from d2lps.pictures.drawing import FRAME, Drawing, Row
from d2lps.pictures.style import RED

CROSSING = {'stroke': RED, 'width': 2.5}  # between two devices
NUM_EXAMPLES, NUM_LAYERS, PITCH = 12, 4, 52
WIDE, LABELS = 232, 60  # pixels: one way to split, and what is left of it
MIDDLES = 107.5, 190.5  # pixels, of the columns of both devices
# A row for each device: text and fill of each chunk, None for an empty box.
Stage: TypeAlias = Sequence[Sequence[tuple[object, Any] | None]]


def draw_splits() -> Row:
    """Three ways to split a network of four layers over two devices."""
    return Row(
        _by_layers('Network partitioning', 'some layers\non each device',
                   'activations and gradients\ncross at every cut',
                   'has some consecutive layers; all examples enter the first '
                   'one, and activations and gradients cross at every cut'),
        _by_channels('Layer partitioning', 'some channels of\nevery layer on '
                     'each', 'activations cross after\nevery layer, gradients'
                     '\nbetween layers', 'has a shard of the channels of '
                     'every layer and gets all examples; activations cross '
                     'after every layer, gradients between layers'),
        _by_examples('Data parallelism', 'all layers and\nsome examples on '
                     'each', 'sums of gradients cross\nonce per minibatch',
                     'has the whole network and a shard of the examples; sums '
                     'of gradients cross once per minibatch'))


def _split(title, held, crosses, alt):
    drawing = Drawing(WIDE, 424, f'{title}: each of 2 devices {alt}.')
    drawing.text(WIDE / 2, 16, title, 15, bold=True)
    drawing.text(WIDE / 2, 46, held, 12)
    return drawing.text(WIDE / 2, 398, crosses, 12, fill=RED, bold=True)


def _examples(drawing, columns):
    """The minibatch, cut into groups: (x of the middle, number, fill)."""
    drawing.text(LABELS, 83, 'examples', 12, 'end')
    for middle, number, fill in columns:
        for k in range(number):
            drawing.box(middle + 13 * (k - number / 2) + 1, 77, 11, 12,
                        fill=fill)


def _by_layers(*texts):
    drawing, middle = _split(*texts), (LABELS + WIDE) / 2
    _examples(drawing, [(middle, NUM_EXAMPLES, 'white')])
    drawing.arrow((middle, 93), (middle, 115))
    for device, y in enumerate((116, 224)):
        drawing.box(middle - 70, y, 140, 64, fill='white', dashed=True)
        drawing.text(LABELS, y + 32, f'device\n{device}', 12, 'end')
        for k in range(2):
            drawing.box(middle - 62, y + 28 * k + 6, 124, 24,
                        f'layer {2 * device + k + 1}', device)
    drawing.arrow((middle - 12, 181), (middle - 12, 223), **CROSSING)
    drawing.text(middle - 20, 202, 'activations', 12, 'end')
    drawing.arrow((middle + 12, 223), (middle + 12, 181), **CROSSING)
    return drawing.text(middle + 20, 202, 'gradients', 12, 'start')


def _columns(drawing, text):
    """The boxes of all layers on both devices."""
    drawing.text(LABELS, 125, 'device', 12, 'end')
    for device, middle in enumerate(MIDDLES):
        drawing.text(middle, 125, device, 12)
        drawing.arrow((middle, 93), (middle, 115))
        for k in range(NUM_LAYERS):
            drawing.box(middle - 37.5, 137 + PITCH * k, 75, 28, text, device)
    for k in range(NUM_LAYERS):
        drawing.text(LABELS, 151 + PITCH * k, f'layer {k + 1}', 12, 'end')


def _across(drawing, y, text):
    drawing.arrow((LABELS + 6, y), (WIDE - 2, y), both=True, **CROSSING)
    drawing.text((LABELS + 4 + WIDE) / 2, y, text, 12, plate=True)


def _by_channels(*texts):
    drawing = _split(*texts)
    _examples(drawing, [(sum(MIDDLES) / 2, NUM_EXAMPLES, 'white')])
    _columns(drawing, '1/2')
    for k in range(NUM_LAYERS - 1):
        _across(drawing, 177 + PITCH * k, 'activations, gradients')
    _across(drawing, 177 + PITCH * (NUM_LAYERS - 1), 'activations')
    return drawing


def _by_examples(*texts):
    drawing = _split(*texts)
    _columns(drawing, 'all')
    _examples(drawing, [(middle, NUM_EXAMPLES // 2, device)
                        for device, middle in enumerate(MIDDLES)])
    for middle in MIDDLES:
        for k in range(NUM_LAYERS - 1):
            drawing.line((middle, 165 + PITCH * k),
                         (middle, 137 + PITCH * (k + 1)))
    _across(drawing, 177 + PITCH * 3, 'sums of gradients')
    return drawing


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


def _one_each(row):
    """A stage in which device i has chunk i of a row alone."""
    return [[row[c] if c == d else None for c in range(3)] for d in range(3)]


# Device d has a number times 10 ** d, so that a sum shows who is in it.
OWN: Stage = [[((c + 1) * 10 ** d, d) for c in range(3)] for d in range(3)]
SUMS = [((c + 1) * 111, [0, 1, 2]) for c in range(3)]


def draw_collectives() -> Drawing:
    """All-reduce as reduce-scatter and all-gather, with three devices."""
    stages: dict[str, Stage] = {
        'numbers of its own': OWN, 'a sum each': _one_each(SUMS),
        'all sums': [SUMS] * 3}
    wide, gap, middle = 132, 122, 115
    drawing = Drawing(718, 242, (
        'All-reduce is reduce-scatter, then all-gather: first each device '
        'gets the sum of one chunk, then everybody gets all of these sums. '
        '3 devices, 3 chunks.'))
    for k, (name, stage) in enumerate(stages.items()):
        left = 74 + k * (wide + gap)
        drawing.text(left + wide / 2, 16, name, 13, bold=True)
        _grid(drawing, left, stage, wide / 3)
        if k:
            drawing.arrow((left - gap + 8, middle), (left - 8, middle),
                          width=3)
            drawing.text(left - gap / 2, middle - 14,
                         ('reduce-scatter', 'all-gather')[k - 1], 12,
                         bold=True)
    _name_rows(drawing)
    y, ends = 220, (74 + wide / 2, left + wide / 2)
    drawing.arrow((ends[0], y - 28), (ends[0], y), (ends[1], y),
                  (ends[1], y - 28), width=3)
    return drawing.text(sum(ends) / 2, y, 'all-reduce', 13, bold=True,
                        plate=True)


def draw_sharded_update() -> Drawing:
    """A reduce-scatter, an update of a chunk on each device, an all-gather."""
    weights = [(f'w{c}', '#f4f4f4') for c in range(3)]
    stages: dict[str, Stage] = {
        'gradients': OWN, 'a sum each': _one_each(SUMS),
        'new weights': _one_each(weights), 'all weights': [weights] * 3}
    gap = (720 - 74 - 4 * 38 * 3) / 3
    drawing = Drawing(720, 218, (
        '3 devices with a gradient each, in 3 chunks. A reduce-scatter '
        'leaves one chunk of the sum on each device. It updates that chunk '
        'of the weights, and keeps 1/3 of the momentum. An all-gather '
        'gives all new weights to everybody.'))
    arrows = 'reduce-\nscatter', 'update', 'all-\ngather'
    for k, (name, stage) in enumerate(stages.items()):
        left = 72 + k * (38 * 3 + gap)
        drawing.text(left + 57, 16, name, 12, bold=True)
        _grid(drawing, left, stage, 38)
        if k:
            name, middle = arrows[k - 1], left - gap / 2
            drawing.arrow((left - gap + 6, 115), (left - 6, 115), width=3)
            drawing.text(middle, 101 - 8 * ('\n' in name), name, 12,
                         bold=True)
        if k == 2:
            drawing.line((middle, 142), (middle, 180), width=1, dashed=True)
            drawing.text(middle, 198, 'each keeps 1/3\nof the momentum', 12)
    _name_rows(drawing)
    return drawing


def _name_rows(drawing):
    drawing.text(66, 42, 'chunk', 12, 'end')
    for d in range(3):
        drawing.text(66, 77 + 38 * d, f'device {d}', 12, 'end')


def _grid(drawing, left, stage, wide):
    """The boxes of a stage, `wide` pixels each, and numbers of chunks."""
    for c in range(3):
        drawing.text(left + wide * (c + 0.5), 42, c, 12, fill=FRAME)
    for d, row in enumerate(stage):
        for c, cell in enumerate(row):
            x, y = left + wide * c + 2, 60 + 38 * d
            if cell:
                drawing.box(x, y, wide - 4, 34, *cell, 12 if wide < 44 else 13)
            else:
                drawing.box(x, y, wide - 4, 34, fill='white', dashed=True,
                            stroke='#bbb')
