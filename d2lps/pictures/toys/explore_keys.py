"""The keys of a store on its servers, and how equal their shares are."""
from d2lps.annotations import Key
from d2lps.kvstore.placement import place
from d2lps.pictures.controls import choose
from d2lps.pictures.drawing import Drawing
from d2lps.pictures.drawings.draw_cluster import draw_keys
from d2lps.pictures.toys.explore_splits import LAYERS
from d2lps.pictures.widgets import live_picture

# Numbers of LeNet's parameters, in order: each layer's weights, and biases.
LENET: dict[Key, int] = dict(enumerate(
    size for channels, _, weights, _ in LAYERS
    for size in (channels * weights, channels)))
MOST = 8  # servers


def _summary(sizes, num_servers, split_from):
    """The share of the fullest server, and how many keys are cut up."""
    filled, cut = [0] * num_servers, 0
    for key, size in sizes.items():
        places = place(key, size, num_servers, split_from)
        cut += len(places) > 1
        for server, start, end in places:
            filled[server] += end - start
    total = sum(filled)
    fullest = max(filled) * num_servers / total
    return (f'{total:,} elements, {cut} of {len(sizes)} keys cut into parts. '
            'The fullest server has ' + (
                f'{max(filled) / total:.1%} of them, {fullest:.2f} times its '
                'share.' if fullest > 1.005 else 'its share: they are equal.'))


def draw_shares(num_servers: int, split_from: int) -> Drawing:
    """The picture of the toy.

    split_from: elements from which on a value is cut into parts.
    """
    picture = draw_keys(LENET, num_servers, split_from)
    lines = [_summary(LENET, num_servers, split_from),
             "Keys 0, 2, 4 and 6 are the weights of LeNet's layers, 1, 3, 5 "
             'and 7 their biases.']
    picture.text(16, picture.height + 24, '\n'.join(lines), 13, 'start')
    picture.height = 48 + max(picture.height, MOST * 46 + 30)
    picture.alt = ' '.join([*lines, picture.alt])
    return picture


def explore_keys() -> None:
    """Choose how many servers share LeNet's parameters; see what lies where.

    The eight parameters have the keys 0 to 7, as in training.
    """
    live_picture(draw_shares, {
        'num_servers': choose([*range(1, MOST + 1)], 2, 'servers'),
        'split_from': choose([100, 1000, 10_000, 20_000, 50_000, 100_000,
                              1_000_000], 1_000_000, 'split from')})
