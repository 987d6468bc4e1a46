"""Grade submissions: python -m teaching.grade FROM [--to TO] ..."""
import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from teaching import interruption


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """What was typed."""
    parser = argparse.ArgumentParser(prog='teaching.grade')
    parser.add_argument('submitted', help='a folder with one for each student')
    parser.add_argument('--to', default='graded', help='where results go',
                        type=lambda text: Path(text).expanduser())
    parser.add_argument('--exercises', nargs='*', default=[])
    parser.add_argument('--again', nargs='*', default=[], metavar='STUDENT',
                        help='also what has not changed since')
    parser.add_argument('--due', help='a table: exercise, due')
    parser.add_argument('--late', type=float, metavar='PERCENT',
                        help='of the points, for each day that one is late')
    parser.add_argument('--lms', help='a table that Moodle or Canvas exported')
    parser.add_argument('--scale', action='store_true',
                        help="points to the platform's maximum")
    parser.add_argument('--walls', choices=['bwrap', 'none'], default='bwrap')
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    args = arguments(words)
    warnings.simplefilter('ignore')  # of nbgrader, for its own developers
    try:
        from teaching.grading import grade  # takes seconds
        grade(args)
    except KeyboardInterrupt:
        interruption.ignore()
        sys.exit('d2lps: ended before all were graded; what was graded stays, '
                 'and the same again goes on from there')
    except (ValueError, OSError, RuntimeError) as error:
        sys.exit(f'd2lps: {error}')


if __name__ == '__main__':
    interruption.listen()
    main()
