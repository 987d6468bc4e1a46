"""Six ideas in six small pictures: python -m d2lps.pictures.ideas FOLDER

They stand in the README, on the map and on the first page of the book. Each
picture leads to the chapter that explains the idea.
"""
import sys
from pathlib import Path

from d2lps.pictures.drawing import FRAME, INK, PALE, Drawing
from d2lps.pictures.style import BLUE, RED

WIDE, HIGH = 240, 150
# On a dark page light and dark are exchanged, and colours keep their hue.
# In JupyterLab and in the book our style does this; a code host has none.
NIGHT = ('<style>@media (prefers-color-scheme:dark){:root{filter:'
         'invert(.925) hue-rotate(180deg)}}</style></svg>')
WORKS, SENDS = '#c5dff0', '#f5d58f'  # backgrounds of words


def ring() -> Drawing:
    """After the first round each GPU has a chunk with two contributions."""
    drawing = Drawing(WIDE, HIGH, 'Four GPUs in a circle, each with four '
                      'chunks. One chunk of each GPU also contains the '
                      'contribution of its predecessor: the GPU sends this '
                      'chunk on.')
    at = [(120, 24), (200, 75), (120, 126), (40, 75)]
    for k, (x, y) in enumerate(at):
        before, (x2, y2) = (k - 1) % 4, at[(k + 1) % 4]
        start = x + 0.33 * (x2 - x), y + 0.33 * (y2 - y)
        end = x + 0.67 * (x2 - x), y + 0.67 * (y2 - y)
        drawing.arrow(start, end, stroke=FRAME, width=3)
        drawing.box(x - 31, y - 22, 62, 44, fill='white')
        drawing.text(x, y - 12, f'GPU {k}', 12, bold=True)
        for chunk in range(4):
            drawing.box(x - 28 + 14 * chunk, y - 1, 13, 18,
                        fill=[before, k] if chunk == before else k)
    return drawing


def queues() -> Drawing:
    """A store: a pushed gradient waits in a queue until it is added."""
    drawing = Drawing(WIDE, HIGH, 'Two workers push gradients into the queue '
                      'of a server. The server adds them one after the '
                      'other. Both workers pull the result.')
    for k, y in enumerate((14, 66)):
        drawing.box(6, y, 62, 34, f'worker {k}', size=12)
        drawing.arrow((68, y + 17), (92, 48 + 16 * k), stroke=INK)
    for k, device in enumerate((1, 0, 1)):
        drawing.box(94 + 24 * k, 40, 22, 32, str(device), device, 12)
    drawing.text(129, 28, 'a queue', 12)
    drawing.arrow((167, 56), (183, 56))
    drawing.box(184, 34, 50, 44, 'server', size=12)
    drawing.arrow((209, 78), (209, 130), (37, 130), (37, 102), stroke=BLUE)
    drawing.text(123, 120, 'pull', 12)
    return drawing


def killed() -> Drawing:
    """A server is killed, and its neighbour has a copy."""
    drawing = Drawing(WIDE, HIGH, 'Three servers with keys. The server in '
                      'the middle is crossed out. Its key is also on the '
                      'next server, and training continues.')
    for k, x in enumerate((8, 87, 166)):
        dead = k == 1
        drawing.box(x, 14, 66, 80, fill=PALE if dead else 'white',
                    dashed=dead)
        drawing.text(x + 33, 27, f'server {k}', 12, bold=True,
                     fill='#666' if dead else INK)
        drawing.box(x + 8, 40, 50, 20, f'key {k}', 'white' if dead else k, 12)
        if k != 1:
            drawing.box(x + 8, 66, 50, 20, f'key {(k + 2) % 3}',
                        (k + 2) % 3, 12)
    for x1, x2 in ((92, 148), (148, 92)):
        drawing.line((x1, 34), (x2, 90), stroke=RED, width=5)
    drawing.arrow((120, 96), (120, 112), (199, 112), (199, 92), stroke=RED)
    drawing.text(120, 133, 'killed: server 2 has a copy', 12)
    return drawing


def overlap() -> Drawing:
    """Sending while computing: the same work is done sooner."""
    drawing = Drawing(WIDE, HIGH, 'Two pairs of bars over time. Above, '
                      'sending begins after all computing. Below, each part '
                      'is sent while the next part is computed: the work is '
                      'done sooner.')
    for y, starts, label in ((22, (96, 130, 164), 'first compute, then send'),
                             (96, (34, 68, 102), 'send while computing')):
        drawing.text(6, y - 9, label, 12, 'start')
        for k in range(3):
            drawing.box(6 + 30 * k, y, 28, 20, str(k + 1), WORKS, 12)
            drawing.box(starts[k] + 2, y + 23, 32, 20, str(k + 1), SENDS,
                        12)
    drawing.line((199, 18), (199, 66), width=2)
    drawing.line((138, 92), (138, 140), width=2)
    drawing.arrow((196, 130), (142, 130), text='sooner')
    return drawing


def straggler() -> Drawing:
    """All workers wait for one slow worker."""
    drawing = Drawing(WIDE, HIGH, 'Bars of four workers over time. Three '
                      'workers have finished and wait for the fourth, which '
                      'takes three times as long.')
    for k, long in enumerate((52, 60, 160, 48)):
        y = 10 + 32 * k
        drawing.text(6, y + 11, f'worker {k}', 12, 'start')
        slow = long > 100
        drawing.box(66, y, long, 22, 'slow' if slow else '',
                    SENDS if slow else WORKS, 12)
        if not slow:
            drawing.box(66 + long, y, 160 - long, 22, 'waits', 'white', 12,
                        dashed=True)
    drawing.line((228, 4), (228, 134), width=3, stroke=INK)
    return drawing


def tree() -> Drawing:
    """Sums climb a tree in few rounds, which suits small arrays."""
    drawing = Drawing(WIDE, HIGH, 'Seven GPUs as a tree. Sums climb from '
                      'four GPUs to two, and then to the GPU at the top.')
    at = {k: (x, y) for k, (x, y) in enumerate(
        [(120, 22), (62, 74), (178, 74),
         (30, 126), (94, 126), (146, 126), (210, 126)])}
    for k in range(1, 7):
        (x1, y1), (x2, y2) = at[k], at[(k - 1) // 2]
        drawing.arrow((x1, y1 - 16), (x1 + 0.62 * (x2 - x1), y2 + 18),
                      stroke=FRAME, width=3)
    for k, (x, y) in at.items():
        below = [j for j in range(7) if k in (j, (j - 1) // 2, (
            (j - 1) // 2 - 1) // 2)]
        wide = 56 if k < 3 else 40
        drawing.box(x - wide / 2, y - 15, wide, 30, fill='white')
        drawing.box(x - wide / 2, y - 15, wide, 30, fill=below)
    return drawing


# For each idea: its name, the number of its chapter, a title, a sentence,
# and the picture. The order is the order of the chapters.
IDEAS = {
    'ring': (5, 'A ring', 'Chunks travel around a ring, and all cables carry '
             'equally many bytes.', ring),
    'tree': (6, 'A tree', 'Sums climb a tree in few rounds. When is a tree '
             'faster than a ring?', tree),
    'queues': (8, 'A queue', 'Workers push gradients into the queues of a '
               'server, and pull the sum.', queues),
    'overlap': (15, 'Overlap', 'Gradients are sent while others are computed. '
                'Which one goes first?', overlap),
    'straggler': (16, 'A straggler', 'One of four workers is slow. Must the '
                  'others wait for it?', straggler),
    'killed': (17, 'A server dies', 'You kill a server. Copies and '
               'checkpoints bring its parameters back.', killed)}


def drawings() -> dict[str, Drawing]:
    """A dict from the name of each idea's file to its `Drawing`."""
    return {f'idea-{name}': idea[-1]() for name, idea in IDEAS.items()}


def for_readme(drawing: Drawing) -> str:
    """SVG of a picture that becomes dark on a dark page."""
    return drawing.svg().removesuffix('</svg>') + NIGHT


if __name__ == '__main__':
    folder = Path(sys.argv[1] if sys.argv[1:] else 'notebooks/pictures')
    folder.mkdir(exist_ok=True)
    for name, drawing in drawings().items():
        (folder / f'{name}.svg').write_text(for_readme(drawing),
                                            encoding='utf-8')
