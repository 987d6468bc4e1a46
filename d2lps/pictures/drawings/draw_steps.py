"""Drawings of a training step with data parallelism, and of its minibatch."""
from functools import partial

from d2lps.checks import checked, integer
from d2lps.pictures.drawing import FRAME, INK, Drawing
from d2lps.pictures.drawings.draw_splits import CROSSING, cuts, few_devices


@checked(rows=partial(integer, most=8), num_devices=partial(integer, most=4))
def draw_split_batch(rows: int = 4, num_devices: int = 2) -> Drawing:
    """Examples X (rows, 5) and labels y (rows,), cut up by `split_batch`.

    rows: 1 to 8; num_devices: 1 to 4. With fewer rows than devices, the last
    devices get none.
    """
    parts = cuts(rows, min(rows, num_devices))
    high = 28 * rows + 44 * num_devices + 20
    drawing = Drawing(720, high, (
        f'A matrix X of {rows} rows and 5 columns with the numbers 0 to '
        f'{5 * rows - 1}, and {rows} labels y, cut between rows: ' + ', '.join(
            f'device {d} gets rows {start} to {end - 1} of both'
            for d, (start, end) in enumerate(parts)) + '.'))
    top, y = (high - 28 * rows) / 2 + 8, 12
    drawing.text(108, top - 14, 'X', 14, bold=True)
    drawing.text(250, top - 14, 'y', 14, bold=True)
    for device in range(num_devices):
        start, end = parts[device] if device < len(parts) else (0, 0)
        size = 28 * (end - start)
        drawing.box(414, y, 300, size + 36, fill='white', dashed=True)
        names = [f'X_shards[{device}]', f'y_shards[{device}]']
        if start == end:
            names = ['no examples']
        drawing.text(406, y + size / 2 + 18, f'device {device}', 13, 'end')
        for x, name in zip((524, 664), names):
            drawing.text(x, y + 17, name, 12)
        for left, above in ((8, top), (424, y + 30 - 28 * start)):
            for row in range(start, end):
                for column in range(5):
                    drawing.box(left + 40 * column, above + 28 * row, 40, 28,
                                5 * row + column, device)
                drawing.box(left + 222, above + 28 * row, 40, 28, row, device)
        if start < end:
            drawing.arrow((278, top + 14 * (start + end)),
                          (338, y + size / 2 + 18))
        if start:
            drawing.line((0, top + 28 * start), (284, top + 28 * start),
                         dashed=True, stroke='#222', width=2)
        y += size + 44
    return drawing


FRAMES = ('split the\nminibatch', 'loss and\ngradient on\neach device',
          'sum the\ngradients', 'give the sum\nto every\ndevice',
          'each device\nupdates\nits copy')
LEFT, PITCH = 50, 134  # where frames begin, and how far apart they are


@checked(num_devices=few_devices)
def draw_training_step(num_devices: int = 2) -> Drawing:
    """One step of data parallelism in five frames; num_devices: 2 to 4."""
    n = num_devices
    drawing = Drawing(720, 88 + 76 * n, (
        'A training step in five frames. 1: the minibatch is cut into '
        f'{n} parts, one for each device. 2: each device computes the '
        'gradient of its part with its own copy of the parameters w. 3: the '
        f'{n} gradients are summed. 4: the sum is on every device. 5: each '
        'device multiplies it by the learning rate, divides it by the number '
        'of examples, and subtracts the result from its own copy, '
        'and all copies are the same again.'))
    for k, words in enumerate(FRAMES):
        left = LEFT + PITCH * k
        drawing.box(left, 56, 130, 76 * n + 8, fill='white', stroke='#ccc')
        drawing.badge(left + 12, 26, k + 1)
        drawing.text(left + 28, 26, words, 12, 'start')
    y = 76 * n + 74
    left, right = LEFT + 2 * PITCH + 6, LEFT + 3 * PITCH + 124
    drawing.line((left, y - 4), (left, y), (right, y), (right, y - 4),
                 stroke=INK)
    drawing.text((left + right) / 2, y, 'all-reduce', 13, bold=True,
                 plate=True)
    middle, everybody = 60 + 38 * n, [*range(n)]

    def box(frame, x, y, words, fill, stroke=FRAME):
        drawing.box(LEFT + PITCH * frame + x, y - 15, 34, 30, words, fill,
                    stroke=stroke)

    def arrow(frame, x1, y1, x2, y2, **style):
        left = LEFT + PITCH * frame
        drawing.arrow((left + x1, y1), (left + x2, y2), **style)

    box(2, 90, middle, 'sum', everybody)
    box(3, 6, middle, 'sum', everybody)
    for d in everybody:
        y, part = 98 + 76 * d, middle + 45 * (d - n / 2 + 0.5)
        drawing.text(LEFT - 5, y, f'device\n{d}', 12, 'end')
        _part(drawing, LEFT + 6, part, d)
        arrow(0, 38, part, 88, y)
        box(0, 90, y, 'w', 'white')
        _part(drawing, LEFT + PITCH + 4, y, d)
        arrow(1, 34, y, 45, y, width=1.5)
        box(1, 46, y, 'w', 'white')
        arrow(1, 81, y, 92, y, width=1.5)
        box(1, 93, y, f'g{d}', d)
        box(2, 6, y, f'g{d}', d)
        arrow(2, 42, y, 87, middle, **CROSSING)
        arrow(3, 42, middle, 87, y, **CROSSING)
        box(3, 90, y, 'sum', everybody)
        drawing.text(LEFT + 4 * PITCH + 65, y - 28, '− lr / len(X) · sum', 12)
        box(4, 10, y, 'w', 'white')
        arrow(4, 46, y, 84, y)
        box(4, 86, y, 'w', 'white', INK)
    return drawing


def _part(drawing, x, y, device):
    """Six examples of a device, around the height y."""
    for k in range(6):
        drawing.box(x + 15 * (k % 2), y + 15 * (k // 2) - 21, 13, 13,
                    fill=device)
