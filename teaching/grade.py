"""Grade submissions: python -m teaching.grade FROM [--to TO] ..."""
import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from teaching import interruption


def arguments(command_line: Sequence[str] | None) -> argparse.Namespace:
    """The arguments of the command."""
    parser = argparse.ArgumentParser(prog='teaching.grade')
    parser.add_argument('submitted',
                        help='a folder with a folder for each student')
    parser.add_argument('--to', default='graded', help='where results go',
                        type=lambda text: Path(text).expanduser())
    parser.add_argument('--exercises', nargs='*', default=[])
    parser.add_argument('--late', type=float, metavar='PERCENT',
                        help='of the points, for each late day')
    parser.add_argument('--lms', help='a table that Moodle or Canvas exported')
    parser.add_argument('--walls', choices=['bwrap', 'none'], default='bwrap')
    return parser.parse_args(command_line)


def main(command_line: Sequence[str] | None = None) -> None:
    """Grade, and end with a message if that is not possible."""
    args = arguments(command_line)
    warnings.simplefilter('ignore')  # of nbgrader, for its own developers
    try:
        from teaching.grading import grade  # takes seconds
        grade(args)
    except KeyboardInterrupt:
        interruption.ignore()
        sys.exit('d2lps: ended before all were graded; the results so far '
                 'stay, and the same command goes on from there')
    except (ValueError, OSError, RuntimeError) as error:
        sys.exit(f'd2lps: {error}')


if __name__ == '__main__':
    interruption.listen()
    main()
