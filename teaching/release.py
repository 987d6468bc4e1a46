"""Make the students' notebooks: python -m teaching.release [TO].

Without TO, those in `notebooks/exercises/tasks` are made anew.
"""
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

from d2lps.annotations import PathLike
from d2lps.exercises.checking import EXERCISES
from teaching.course import Course
from teaching.walls import ROOT

TASKS = ROOT / 'notebooks' / 'exercises' / 'tasks'


def release(to: Path) -> None:
    """Write every exercise without its solution and its hidden checks."""
    with tempfile.TemporaryDirectory() as folder:
        course = Course.make(Path(folder) / 'course')
        to.mkdir(parents=True, exist_ok=True)
        for name in EXERCISES:
            shutil.copy(course.released(name), to)


def main(folder: PathLike = TASKS) -> None:
    warnings.simplefilter('ignore')  # of nbgrader, for its own developers
    to = Path(folder).resolve()
    try:
        if to != TASKS and to.is_dir() and (
                {path.stem for path in to.iterdir()} - {*EXERCISES}):
            raise ValueError(f'TO must be a new folder, or one that was made '
                             f'by this command; {to} is neither')
        release(to)
    except (ValueError, OSError, RuntimeError) as error:
        sys.exit(f'd2lps: {error}')
    print(f'{len(EXERCISES)} notebooks for students: {to}')


if __name__ == '__main__':
    main(*sys.argv[1:])
