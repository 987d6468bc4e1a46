"""How much memory and processor time a chapter takes: for a class's machines.

    python benchmarks/memory.py [--to FILE.csv] [CHAPTER ...]

Runs each chapter alone, in a fresh kernel, and reads every half second how
much memory the kernel and all its processes have: the proportional set size,
in which a page that two processes share counts half for each. On Linux only.
The rows of chapters that are not named stay as they are.
"""
import argparse
import threading
from pathlib import Path

import nbformat
import pandas as pd
import psutil
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / 'notebooks'
LIMIT = 600  # seconds for a cell


def ours():
    """Bytes and processes below this one, and their processor seconds."""
    nbytes, seconds = [], {}
    for process in psutil.Process().children(recursive=True):
        try:
            nbytes.append(process.memory_full_info().pss)
            times = process.cpu_times()
            seconds[process.pid] = times.user + times.system
        except psutil.Error:  # it has just ended
            continue
    return sum(nbytes), len(nbytes), seconds


def execute(notebook):
    """Run a notebook; its peak of memory, processes then, processor seconds.

    Processes that live for less than half a second may not be counted.
    """
    peak, used, done = (0, 0), {}, threading.Event()

    def watch():
        nonlocal peak
        while not done.wait(0.5):
            nbytes, processes, seconds = ours()
            peak = max(peak, (nbytes, processes))
            used.update(seconds)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        NotebookClient(notebook, timeout=LIMIT, record_timing=False,
                       resources={'metadata': {'path': str(NOTEBOOKS)}}
                       ).execute()
    finally:
        done.set()
        watching.join()
    return {'megabytes': round(peak[0] / 1e6), 'processes': peak[1],
            'processor seconds': round(sum(used.values()))}


def note(to, rows):
    """Write rows, by chapter, beside those that are there."""
    table = pd.DataFrame.from_dict(rows, orient='index')
    if to.exists():
        table = table.combine_first(pd.read_csv(to, index_col='chapter'))
    table = table.astype(int)[['megabytes', 'processes', 'processor seconds']]
    table.sort_index().rename_axis('chapter').to_csv(to)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('chapters', nargs='*', metavar='CHAPTER',
                        help='only these, such as 01 04 (default: all)')
    parser.add_argument('--to', type=Path,
                        default=NOTEBOOKS / 'results' / 'memory.csv')
    arguments = parser.parse_args()
    for path in sorted(NOTEBOOKS.glob('[0-9]*.ipynb')):
        if not arguments.chapters or any(
                path.name.startswith(name) for name in arguments.chapters):
            row = execute(nbformat.read(path, 4))
            print(path.stem, row, flush=True)
            note(arguments.to, {path.stem: row})


if __name__ == '__main__':
    main()
