"""Drawings of a training step with data parallelism, and of its minibatch."""
from d2lps.pictures.drawing import FRAME, INK, Drawing
from d2lps.pictures.drawings.draw_splits import CROSSING


def draw_split_batch() -> Drawing:
    """Examples X (4, 5) and labels y (4,), cut for two devices."""
    drawing = Drawing(720, 220, (
        'A matrix X of 4 rows and 5 columns with the numbers 0 to 19, and 4 '
        'labels y, cut between rows: device 0 gets rows 0 to 1 of both, '
        'device 1 gets rows 2 to 3 of both.'))
    top = 62
    drawing.text(108, top - 14, 'X', 14, bold=True)
    drawing.text(250, top - 14, 'y', 14, bold=True)
    for device, y in enumerate((12, 112)):
        start = 2 * device
        drawing.box(414, y, 300, 92, fill='white', dashed=True)
        drawing.text(406, y + 46, f'device {device}', 13, 'end')
        drawing.text(524, y + 17, f'X_shards[{device}]', 12)
        drawing.text(664, y + 17, f'y_shards[{device}]', 12)
        for left, above in ((8, top), (424, y + 30 - 28 * start)):
            for row in range(start, start + 2):
                for column in range(5):
                    drawing.box(left + 40 * column, above + 28 * row, 40, 28,
                                5 * row + column, device)
                drawing.box(left + 222, above + 28 * row, 40, 28, row, device)
        drawing.arrow((278, top + 28 * (start + 1)), (338, y + 46))
    return drawing.line((0, top + 56), (284, top + 56), dashed=True,
                        stroke='#222', width=2)


FRAMES = ('split the\nminibatch', 'loss and\ngradient on\neach device',
          'sum the\ngradients', 'give the sum\nto every\ndevice',
          'each device\nupdates\nits copy')
LEFT, PITCH = 50, 134  # where frames begin, and how far apart they are


def draw_training_step() -> Drawing:
    """A step of data parallelism on two devices, in five frames."""
    drawing = Drawing(720, 240, (
        'A training step in five frames. 1: the minibatch is cut into '
        '2 shards, one for each device. 2: each device computes the '
        'gradient of its shard with its own copy of the parameters w. 3: the '
        '2 gradients are summed. 4: the sum is on every device. 5: each '
        'device multiplies it by the learning rate, divides it by the number '
        'of examples, and subtracts the result from its own copy, '
        'and all copies are the same again.'))
    for k, title in enumerate(FRAMES):
        left = LEFT + PITCH * k
        drawing.box(left, 56, 130, 160, fill='white', stroke='#ccc')
        drawing.badge(left + 12, 26, k + 1)
        drawing.text(left + 28, 26, title, 12, 'start')
    y = 226
    left, right = LEFT + 2 * PITCH + 6, LEFT + 3 * PITCH + 124
    drawing.line((left, y - 4), (left, y), (right, y), (right, y - 4),
                 stroke=INK)
    drawing.text((left + right) / 2, y, 'all-reduce', 13, bold=True,
                 plate=True)
    middle, everybody = 136, [0, 1]

    def box(frame, x, y, text, fill, stroke=FRAME):
        drawing.box(LEFT + PITCH * frame + x, y - 15, 34, 30, text, fill,
                    stroke=stroke)

    def arrow(frame, x1, y1, x2, y2, **style):
        left = LEFT + PITCH * frame
        drawing.arrow((left + x1, y1), (left + x2, y2), **style)

    box(2, 90, middle, 'sum', everybody)
    box(3, 6, middle, 'sum', everybody)
    for d in everybody:
        y, part = 98 + 76 * d, middle + 45 * (d - 0.5)
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
