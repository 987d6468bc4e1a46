"""A picture of where a store keeps what."""
from matplotlib import pyplot as plt

from d2lps.checks import checked, refuse, whole
from d2lps.kvstore.fits import store_key, up_to_1000
from d2lps.kvstore.server import place
from d2lps.pictures.plots import AXES
from d2lps.pictures.style import CHUNK_COLORS


def sizes(name, value):
    """A check: a dict from keys to numbers of elements."""
    if not isinstance(value, dict) or not value:
        refuse(name, value, "a dict from keys to sizes, such as {'w': 100}")
    return {store_key(f'a key of {name}', key):
            whole(f'{name}[{key!r}]', size) for key, size in value.items()}


@checked(sizes=sizes, num_servers=up_to_1000, split_from=whole,
         ax=AXES)
def plot_placement(sizes, num_servers, split_from=1_000_000, ax=None):
    """A bar for each server of a store, made of the keys that lie there.

    The axis ends where all keys together would, so that pictures of the same
    keys can be compared; beside each bar stands how many elements it has.

    sizes: a dict from each key to its number of elements. See
    `d2lps.kvstore.server.place` for the rest.
    """
    ax = ax or plt.subplots(figsize=(6, 1 + 0.35 * num_servers))[1]
    filled = [0] * num_servers
    for k, (key, size) in enumerate(sizes.items()):
        for server, start, end in place(key, size, num_servers, split_from):
            color = CHUNK_COLORS[k % len(CHUNK_COLORS)]
            ax.barh(server, end - start, left=filled[server], label=repr(key),
                    color=color, edgecolor='white')
            filled[server] += end - start
    for server, elements in enumerate(filled):
        ax.text(elements, server, f' {elements:,}', va='center')
    handles, labels = ax.get_legend_handles_labels()
    handle_of = dict(zip(labels, handles))  # one for each key
    ax.legend(handle_of.values(), handle_of, loc='upper left',
              bbox_to_anchor=(1, 1), frameon=False,
              ncols=1 + len(sizes) // 9, title='key')
    ax.set_yticks(range(num_servers),
                  [f'server {i}' for i in range(num_servers)])
    ax.set(xlabel='elements', xlim=(0, 1.2 * sum(sizes.values())))
    ax.invert_yaxis()
    return ax
