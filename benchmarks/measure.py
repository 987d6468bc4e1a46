"""How often each expectation of the chapters holds: `make measure`.

    python benchmarks/measure.py [--times 10] [--to measured.csv] [CHAPTER ...]

Runs the chapters that expect something of the machine, each alone, in a fresh
kernel, round after round. The table is written after each run, so Ctrl-C
loses only the run that it stops. Each line shows how many cores other
programs used meanwhile, because a busy machine changes the result.

To see what another processor would find, name one that is older than this:
OPENBLAS_CORETYPE=Nehalem DNNL_MAX_CPU_ISA=SSE41 make measure
"""
import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import psutil
from d2lps.expectations import told_in
from d2lps.processor import cores, kernels_in_use
from d2lps.usage import usage
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

NOTEBOOKS = Path(__file__).parents[1] / 'notebooks'
COLUMNS = ['chapter', 'expectation', 'processor', 'held', 'of']
LIMIT = 600  # seconds for a cell
os.environ['D2LPS_TELL_ALL'] = 'yes'  # what held is counted, too


def processor():
    """This one's name, its cores, and the kernels that are taken for it."""
    name = platform.processor() or platform.machine()
    if sys.platform == 'linux':
        for line in Path('/proc/cpuinfo').read_text().splitlines():
            if line.startswith('model name'):
                name = line.split(':', 1)[1].strip()
                break
    elif sys.platform == 'darwin':
        name = subprocess.run(['sysctl', '-n', 'machdep.cpu.brand_string'],
                              text=True, capture_output=True).stdout.strip()
    most = os.environ.get('DNNL_MAX_CPU_ISA', 'its own choice')
    return (f'{name}, {cores()} cores, OpenBLAS: {kernels_in_use()}, '
            f'oneDNN: {most}')


def chapters(names):
    """The chapters that expect something; those named, if some are."""
    return [path for path in sorted(NOTEBOOKS.glob('[0-9]*.ipynb'))
            if 'd2lps.expect(' in path.read_text()
            and (not names or any(path.name.startswith(name)
                                  for name in names))]


def run(path):
    """Pairs (expectation, held) of a chapter; and how it failed, or ''."""
    notebook, failed = nbformat.read(path, 4), ''
    try:
        NotebookClient(notebook, timeout=LIMIT, resources={
            'metadata': {'path': str(NOTEBOOKS)}}).execute()
    except (CellExecutionError, DeadKernelError, TimeoutError) as error:
        failed = (str(error).strip().splitlines() or [repr(error)])[-1]
    results = [result for cell in notebook.cells
               for output in cell.get('outputs', ())
               for result in told_in(output.get('text', ''))]
    return results, failed


def used_by_others(start, end):
    return (end.all - start.all - end.ours + start.ours) / (
        end.now - start.now)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('chapters', nargs='*', metavar='CHAPTER',
                        help='only these, such as 01 04 (default: all)')
    parser.add_argument('--times', type=int, default=10)
    parser.add_argument('--to', type=Path, default=Path('measured.csv'))
    arguments = parser.parse_args()
    name, counts = processor(), {}
    print(name, flush=True)
    paths = chapters(arguments.chapters)
    try:
        for number in range(1, arguments.times + 1):
            for path in paths:
                start = usage()
                results, failed = run(path)
                end = usage()
                for expectation, held in results:
                    count = counts.setdefault(
                        (path.stem, expectation, name), [0, 0])
                    count[0] += held
                    count[1] += 1
                print(f'{number} of {arguments.times}: {path.stem}, '
                      f'{end.now - start.now:.0f} s, '
                      f'{sum(held for _, held in results)} of '
                      f'{len(results)} held, '
                      f'others used {used_by_others(start, end):.1f} of '
                      f'{psutil.cpu_count()} cores'
                      f'{failed and ", FAILED: " + failed}', flush=True)
                for expectation, held in results:
                    if not held:
                        print(f'    not held: {expectation}', flush=True)
                write(counts, arguments.to)
    except KeyboardInterrupt:
        print('stopped; the table keeps what was measured')
    with pd.option_context('display.width', 120, 'display.max_colwidth', 80,
                           'display.max_rows', None):
        print(table(counts)[['chapter', 'expectation', 'held', 'of']]
              .to_string(index=False))
    print(f'on {name}; written to {arguments.to}')


def table(counts):
    rows = [[*key, *count] for key, count in counts.items()]
    return pd.DataFrame(rows, columns=COLUMNS).sort_values(
        'chapter', kind='stable')


def write(counts, to):
    """Rows of these chapters on this processor are replaced, others stay."""
    new = table(counts)
    if to.exists():
        old = pd.read_csv(to).set_index(['chapter', 'processor'], drop=False)
        measured = old.index.isin(new.set_index(old.index.names).index)
        new = pd.concat([old[~measured], new])
    part = to.with_name(f'{to.name}.part')
    new.to_csv(part, index=False)
    part.replace(to)


if __name__ == '__main__':
    main()
