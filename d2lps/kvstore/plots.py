"""A picture of where a store keeps what."""
from matplotlib import pyplot as plt

from d2lps.kvstore.server import place
from d2lps.plots import CHUNK_COLORS


def plot_placement(sizes, num_servers, split_from=1_000_000, ax=None):
    """A bar for each server of a store, made of the keys that lie there.

    sizes: a dict from each key to its number of elements. See
    `d2lps.server.place` for the rest.
    """
    ax = ax or plt.subplots(figsize=(6, 1 + 0.35 * num_servers))[1]
    filled = [0] * num_servers
    for k, (key, size) in enumerate(sizes.items()):
        for server, start, end in place(key, size, num_servers, split_from):
            color = CHUNK_COLORS[k % len(CHUNK_COLORS)]
            ax.barh(server, end - start, left=filled[server], label=repr(key),
                    color=color, edgecolor='white')
            filled[server] += end - start
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(*zip(*dict(zip(labels, zip(handles, labels))).values()),
              loc='upper left', bbox_to_anchor=(1, 1), frameon=False,
              ncols=1 + len(sizes) // 9, title='key')
    ax.set_yticks(range(num_servers),
                  [f'server {i}' for i in range(num_servers)])
    ax.set_xlabel('elements')
    ax.invert_yaxis()
    return ax
