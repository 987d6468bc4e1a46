"""Pictures of all-to-alls: how many bytes go from each device to each."""
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from d2lps.checks import as_array, checked, refuse
from d2lps.figures import describe, use_style
from d2lps.pictures.rows import WIDE
from d2lps.pictures.style import BLUE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
MOST = 16  # devices whose numbers can be read


def _sizes(name, value):
    """A square array of bytes."""
    try:
        sizes = as_array(value, float)
    except ValueError:  # it has a mask, or words, or rows of several lengths
        sizes = np.zeros(0)
    if sizes.ndim != 2 or not 1 < len(sizes) == sizes.shape[1] <= MOST or (
            not np.all((sizes >= 0) & (sizes < np.inf))):
        refuse(name, value, f'a square array of bytes, of 2 to {MOST} rows, '
               'with numbers of 0 or more')
    return sizes


def _exchanges(name, value):
    """A dictionary of names and sizes."""
    if not isinstance(value, Mapping) or not value:
        refuse(name, value, 'a dictionary of names and sizes, such as '
               "{'equal': sizes}")
    return {key: _sizes(f'{name}[{key!r}]', sizes)
            for key, sizes in value.items()}


@checked(exchanges=_exchanges)
def plot_exchange(exchanges: Mapping[str, Any]) -> 'list[Axes]':
    """A table of MB for each exchange: a row sends, a column receives.

    What a device keeps (its own row and column) is left white.

    Args:
        exchanges: names, and bytes as arrays (n, n) with n of up to 16.
    """
    from matplotlib.colors import LinearSegmentedColormap
    colors = LinearSegmentedColormap.from_list('', ['#ffffff', BLUE])
    most = max(_sent(sizes).max() for sizes in exchanges.values()) / 1e6
    from matplotlib import pyplot as plt
    use_style()
    _, axes = plt.subplots(1, len(exchanges), figsize=(WIDE, 3.7),
                           layout='constrained', squeeze=False)
    columns = axes[0]
    for ax, (name, sizes) in zip(columns, exchanges.items()):
        n, sent = len(sizes), _sent(sizes) / 1e6
        ax.imshow(sent, cmap=colors, vmin=0, vmax=1.6 * most)
        for i, j in np.argwhere(sent):
            ax.text(j, i, f'{sent[i, j]:.3g}', ha='center', va='center',
                    fontsize=8)
        ax.set_xticks(range(n), range(n), fontsize=8)
        ax.set_yticks(range(n), range(n), fontsize=8)
        ax.set(title=f'{name}, MB', xlabel='to GPU', ylabel='from GPU')
        ax.grid(False)
        ax.tick_params(length=0)
        rows = '; '.join(' '.join(f'{mb:.3g}' for mb in row) for row in sent)
        describe(ax, f'{name}: MB from each of {n} GPUs to each: {rows}')
    return [*columns]


def _sent(sizes):
    """Without what stays where it is."""
    return sizes * (1 - np.eye(len(sizes)))
