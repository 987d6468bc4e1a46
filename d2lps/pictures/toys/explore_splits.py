"""Three ways to split LeNet over devices, and what each of them costs."""
from functools import partial
from typing import NamedTuple

from d2lps.checks import checked, integer, one_of
from d2lps.figures import describe
from d2lps.pictures.controls import choose, menu
from d2lps.pictures.drawing import Drawing, Row
from d2lps.pictures.rows import new_figure
from d2lps.pictures.style import BLUE, GRAY, GREEN, SKY
from d2lps.pictures.widgets import live_picture

WAYS = 'network partitioning', 'layer partitioning', 'data parallelism'
# For each layer: channels, pixels of each, weights behind each channel, and
# the outputs of a convolution and of its ReLU before pooling.
LAYERS = ((20, 13 * 13, 1 * 3 * 3, 2 * 26 * 26),
          (50, 4 * 4, 20 * 5 * 5, 2 * 9 * 9), (128, 1, 800, 0),
          (10, 1, 128, 0))
IMAGE, NUMBER = 28 * 28, 4  # pixels; bytes of a float32, or of a label
few_devices = partial(integer, least=2, most=4)


class Costs(NamedTuple):
    """Costs of a training step; lists have an entry for each device.

    `parameters` in bytes, and as much again for their gradients;
    `activations`: bytes that are kept for the backward pass: what the layers
    on a device take in and give out, and, before pooling, what convolutions
    and their ReLUs give out;
    `sent`: bytes that go from one device to another in a step;
    `barriers`: points that no device passes before all have reached them;
    `hand_overs`: how often one device waits for what another hands on.
    """
    parameters: list[int]
    activations: list[int]
    sent: int
    barriers: int = 0
    hand_overs: int = 0


def _share(total, i, k):
    """The share of device i of k in `total`."""
    return total * (i + 1) // k - total * i // k


@checked(way=one_of(*WAYS), num_devices=few_devices,
         batch_size=partial(integer, least=4, most=1_000_000))
def split_costs(way: str, num_devices: int = 2, batch_size: int = 256
               ) -> Costs:
    """`Costs` of a step of LeNet, worked out from its shapes.

    Network partitioning gives device i of k the layers from 4 i // k up to
    4 (i + 1) // k. The sum over devices is made on device 0, where images
    and labels are at first. ValueError for a bad argument.
    """
    k, b = num_devices, batch_size * NUMBER
    outputs = [channels * pixels for channels, pixels, *_ in LAYERS]
    inside = [channels * pixels for channels, *_, pixels in LAYERS]
    inputs = [IMAGE, *outputs[:-1]]
    sizes = [n * (weights + 1) * NUMBER for n, _, weights, _ in LAYERS]
    if way == WAYS[0]:
        cuts = [len(LAYERS) * i // k for i in range(k + 1)]
        stages = [slice(*cut) for cut in zip(cuts, cuts[1:])]
        return Costs([sum(sizes[stage]) for stage in stages],
                      [b * (inputs[stage][0] + sum(outputs[stage])
                            + sum(inside[stage])) for stage in stages],
                      b * (1 + 2 * sum(outputs[cut - 1] for cut in cuts[1:-1])
                           ), hand_overs=2 * (k - 1))
    if way == WAYS[1]:  # each device gets what all others computed
        return Costs(
            [sum(_share(n, i, k) * (weights + 1) * NUMBER
                 for n, _, weights, _ in LAYERS) for i in range(k)],
            [b * (sum(inputs) + sum(_share(n, i, k) * (pixels + before)
                                    for n, pixels, _, before in LAYERS))
             for i in range(k)],
            b * (k - 1) * (1 + sum(inputs) + sum(outputs)),
            barriers=2 * len(LAYERS) - 1)
    mine = [_share(batch_size, i, k) * NUMBER for i in range(k)]
    return Costs([sum(sizes)] * k,
                 [part * (IMAGE + sum(outputs) + sum(inside))
                  for part in mine],
                 sum(mine[1:]) * (IMAGE + 1) + 2 * (k - 1) * sum(sizes), 1)


def _pieces(way, k):
    """(layer, left, top, width, height, device) of each piece."""
    for layer in range(len(LAYERS)):
        for i in range(k):
            if way == WAYS[0]:
                if 4 * i // k <= layer < 4 * (i + 1) // k:
                    yield layer, 0, 0, 1, 1, i
            elif way == WAYS[1]:
                yield layer, i / k, 0, 1 / k, 1, i
            else:
                yield layer, 0, i / k, 1, 1 / k, i


def _often(costs):
    """The number of barriers or hand-overs, as a text."""
    if costs.hand_overs:
        return f'{costs.hand_overs} hand-overs'
    return f'{costs.barriers} barrier' + 's' * (costs.barriers > 1)


def _megabytes(nbytes):
    """A size in MB, with digits for comparing."""
    digits = 3 if nbytes < 1e4 else 2 if nbytes < 1e7 else 0
    return f'{nbytes / 1e6:.{digits}f}'


def _draw_pieces(picture, way, k):
    """A box for each layer; across are its channels, down the examples."""
    picture.text(8, 14, 'which device has what', 13, 'start', bold=True)
    for layer in range(len(LAYERS)):
        picture.text(8, 64 + 68 * layer, f'layer {layer + 1}', 12, 'start')
    for layer, left, top, width, height, device in _pieces(way, k):
        y = 34 + 68 * layer + 60 * top
        # Where pieces are flat, their pattern would hide the number.
        label = f'{device}' if height > 0.3 else ''
        picture.box(62 + 190 * left, y, 190 * width, 60 * height, label,
                    device)
        if not label:
            picture.text(260, y + 30 * height, device, 12, 'start')
    picture.text(157, 316, 'across: channels, down: examples', 12)


def _draw_memory(ax, costs):
    """A bar for each device: parameters and gradients, activations."""
    first = [2 * nbytes for nbytes in costs.parameters]
    names = [f'device {i}' for i in range(len(first))]
    ax.barh(names, first, color=GREEN, label='parameters, gradients')
    bars = ax.barh(names, costs.activations, left=first, color=SKY,
                   hatch='//', label='activations')
    ax.bar_label(bars, [' + '.join(map(_megabytes, both))
                        for both in zip(first, costs.activations)], padding=4)
    ax.set(title='MB in memory', ylim=(3.5, -0.5))
    ax.legend(loc='upper left', bbox_to_anchor=(-0.35, -0.02), ncols=2)


def _draw_sent(ax, chosen, k, batch_size):
    """A bar for each way, the chosen one dark: MB in a step."""
    costs = [split_costs(way, k, batch_size) for way in WAYS]
    bars = ax.barh([way.replace(' ', '\n') for way in WAYS],
                   [cost.sent for cost in costs],
                   color=[BLUE if way == chosen else GRAY for way in WAYS])
    ax.bar_label(bars, [f'{_megabytes(cost.sent)} MB,\n{_often(cost)}'
                        for cost in costs], padding=4)
    ax.get_yticklabels()[WAYS.index(chosen)].set_weight('bold')
    ax.set(title='sent in a step', ylim=(2.5, -0.5))


def draw_costs(way: str, num_devices: int, batch_size: int) -> Row:
    """The pieces of each device as boxes, and charts of costs beside them."""
    costs = split_costs(way, num_devices, batch_size)
    boxes = Drawing(280, 330, (
        f'LeNet on {num_devices} devices, {way}: each layer is a box, cut '
        'into the pieces that devices have.'))
    _draw_pieces(boxes, way, num_devices)
    charts = new_figure(4.4, 330 / 96, layout=None)
    charts.subplots_adjust(0.24, 0.02, 0.98, 0.93, hspace=0.45)
    memory, sent = charts.subplots(2)
    _draw_memory(memory, costs)
    _draw_sent(sent, way, num_devices, batch_size)
    for ax in memory, sent:
        ax.set_xticks([])
        ax.margins(x=0.45)  # room for words
        ax.grid(False)
    held = ', '.join(f'device {device} holds {_megabytes(2 * a + b)} MB'
                     for device, (a, b) in enumerate(zip(*costs[:2])))
    describe(memory, f'{batch_size} examples: {held}.')
    describe(sent, f'{_megabytes(costs.sent)} MB sent in a step, '
                   f'{_often(costs)}.')
    return Row(boxes, charts)


@checked(way=one_of(*WAYS), num_devices=few_devices)
def explore_splits(way: str = WAYS[0], num_devices: int = 2) -> None:
    """Choose a way to split LeNet; see who has what, and what it costs."""
    live_picture(draw_costs, {
        'way': menu(WAYS, way, 'way'),
        'num_devices': choose([2, 3, 4], num_devices, 'devices'),
        'batch_size': choose([16, 64, 256, 1024], 256, 'batch size')})
