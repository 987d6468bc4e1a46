"""Which key of a store lies on which server, and how equal they are."""
from functools import partial

from d2lps.annotations import Key
from d2lps.checks import checked, integer
from d2lps.kvstore.placement import place
from d2lps.pictures.controls import choose
from d2lps.pictures.drawing import Drawing
from d2lps.pictures.drawings.draw_cluster import draw_keys, keyed_sizes
from d2lps.pictures.toys.explore_splits import LAYERS
from d2lps.pictures.widgets import live_picture

# Numbers of LeNet's parameters, in order: each layer's weights, and biases.
LENET: dict[Key, int] = dict(enumerate(
    size for channels, _, weights, _ in LAYERS
    for size in (channels * weights, channels)))


MOST = 8  # servers


def _in_words(sizes, num_servers, split_from):
    """How much the fullest server has, and how many keys are cut up."""
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


def draw_shares(sizes: dict[Key, int] | None, num_servers: int, split_from: int
               ) -> Drawing:
    """The picture of the toy, whose arguments these are."""
    shown = sizes or LENET
    picture = draw_keys(shown, num_servers, split_from)
    words = [_in_words(shown, num_servers, split_from)]
    if not sizes:
        words.append('Keys 0, 2, 4 and 6 are the weights of LeNet\'s '
                     'layers, 1, 3, 5 and 7 their biases.')
    picture.text(16, picture.height + 24, '\n'.join(words), 13, 'start')
    picture.height = 48 + max(picture.height, MOST * 46 + 30)
    picture.alt = ' '.join([*words, picture.alt])
    return picture


@checked(sizes=keyed_sizes, num_servers=partial(integer, most=MOST),
         split_from=integer)
def explore_keys(sizes: dict[Key, int] | None = None, num_servers: int = 2,
                 split_from: int = 1_000_000) -> None:
    """Choose how many servers share the keys; see what lies where.

    sizes: a dict from up to 12 keys to numbers of elements; without it, the
    eight parameters of LeNet under the keys 0 to 7, as in training.
    split_from: elements from which on a value is cut into parts.
    """
    live_picture(partial(draw_shares, sizes), {
        'num_servers': choose([*range(1, MOST + 1)], num_servers, 'servers'),
        'split_from': choose([100, 1000, 10_000, 20_000, 50_000, 100_000,
                              1_000_000], split_from, 'split from')})
