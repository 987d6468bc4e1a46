"""Make the students' notebooks: python -m teaching.release [TO].

Without TO, those in `notebooks/exercises/tasks` are made anew.
"""
import argparse
import re
import sys
import tempfile
import warnings
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from d2lps.annotations import PathLike
from d2lps.exercises.checking import EXERCISES
from teaching.course import Course
from teaching.walls import ROOT

TASKS = ROOT / 'notebooks' / 'exercises' / 'tasks'
# The sentence of a notebook that links to its solution.
LINK = re.compile(r'\s*A solved copy\s+is\s+in\s+\[solutions\]\([^)]*\);'
                  r'\s+open\s+it\s+when\s+you\s+have\s+tried\.')


def release(to: Path, solutions: bool = True) -> None:
    """Write every exercise without its solution and its hidden checks.

    solutions: keep the links to the solved notebooks?
    """
    with tempfile.TemporaryDirectory() as folder:
        course = Course.make(Path(folder) / 'course')
        to.mkdir(parents=True, exist_ok=True)
        for name in EXERCISES:
            text = course.released(name).read_text()
            if not solutions:
                text = nbformat.writes(
                    without_link(nbformat.reads(text, 4))) + '\n'
            (to / f'{name}.ipynb').write_text(text)


def without_link(notebook: NotebookNode) -> NotebookNode:
    """The notebook, changed: without the link to the solved one."""
    for cell in notebook.cells:
        cell.source = LINK.sub('', cell.source)
    return notebook


def main(folder: PathLike = TASKS, solutions: bool = True) -> None:
    """Write the notebooks into a folder, which may only have such in it.

    JupyterLab may keep a hidden folder beside them.
    """
    warnings.simplefilter('ignore')  # of nbgrader, for its own developers
    to = Path(folder).resolve()
    try:
        if to != TASKS and to.is_dir() and (
                {path.stem for path in to.iterdir()
                 if not path.name.startswith('.')} - {*EXERCISES}):
            raise ValueError(f'TO must be a new folder, or one that was made '
                             f'by this command; {to} is neither')
        release(to, solutions)
    except (ValueError, OSError, RuntimeError) as error:
        sys.exit(f'd2lps: {error}')
    print(f'{len(EXERCISES)} notebooks for students: {to}')


if __name__ == '__main__':
    parser = argparse.ArgumentParser(prog='teaching.release')
    parser.add_argument('to', nargs='?', default=TASKS, type=Path)
    parser.add_argument('--no-solutions', action='store_true',
                        help='leave out the links to the solved notebooks')
    args = parser.parse_args()
    main(args.to, not args.no_solutions)
