"""Hand pages back: python -m teaching.handback GRADED TO.

GRADED is what `make grade` wrote. TO is the course of nbgrader whose folder
`submitted` was graded: then `nbgrader release_feedback` finds the pages there.
Or it is a new archive, such as feedback.zip, for Moodle or Canvas.
"""
import argparse
import shutil
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

from d2lps.units import several
from teaching.results import known_people, people

# Files of a submission by which a student's command finds its page.
SIGNS = 'timestamp.txt', 'submission_secret.txt'


class HandedBack(NamedTuple):
    """Pages that were handed back. left_out: students without page or signs.
    """
    exercises: list[str]
    left_out: list[str]


def hand_back(graded: Path, course: Path) -> HandedBack:
    """Copy each student's page to where nbgrader looks for it.

    graded: the folder of the results. course: of nbgrader.
    """
    exercises: set[str] = set()
    left_out: set[str] = set()
    known = known_people(graded)  # two names of users can look alike
    for submitted in sorted((course / 'submitted').glob('*/*')):
        student, exercise = submitted.parts[-2:]
        page = graded / 'feedback' / f'{known.get(student, "")}.html'
        signs = [submitted / name for name in SIGNS]
        if not page.is_file() or not all(map(_is_text, signs)):
            left_out.add(student)
            continue
        place = course / 'feedback' / student / exercise
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, place / f'{exercise}.html')
        for sign in signs:
            shutil.copy(sign, place)
        exercises.add(exercise)
    return HandedBack(sorted(exercises), sorted(left_out))


def _is_text(sign: Path) -> bool:
    """Can nbgrader read it? If not, its command would end for all."""
    try:
        return (sign.is_file() and not sign.is_symlink()
                and bool(sign.read_text('utf-8')))
    except (OSError, ValueError):
        return False


def pack(graded: Path, archive: Path) -> HandedBack:
    """Write the pages into an archive, by the names that a platform knows.

    Moodle reads the participant in the name of a folder, Canvas the user and
    the submitted file in the name of a file. Raises ValueError if the archive
    has something else in it.
    """
    left_out = []
    pages = {}
    for student, folder_name in people(graded).items():
        page = graded / 'feedback' / f'{student}.html'
        if folder_name.prefix and page.is_file():
            pages[f'{folder_name.prefix}feedback.html'] = page
        else:
            left_out.append(student)
    if pages:
        _check_is_ours(archive)
        with zipfile.ZipFile(archive, 'w', zipfile.ZIP_DEFLATED) as file:
            for name, page in pages.items():
                file.write(page, name)
    return HandedBack([*pages], left_out)


def _check_is_ours(archive: Path) -> None:
    """Raise ValueError if another file, such as a download, is there."""
    if archive.exists() and not (zipfile.is_zipfile(archive) and all(
            name.endswith('feedback.html')
            for name in zipfile.ZipFile(archive).namelist())):
        raise ValueError(f'{archive} has something else in it: choose another '
                         'name with TO')


def main(graded: Path, course: Path) -> None:
    """Hand the pages of the folder `graded` back.

    course: nbgrader's folder, or an archive, whose name ends with .zip.
    """
    graded, course = graded.expanduser(), course.expanduser()
    to_archive = course.suffix.lower() == '.zip'
    for folder in [graded / 'feedback',
                   course.parent if to_archive else course / 'submitted']:
        if not folder.is_dir():
            sys.exit(f'd2lps: there is no folder {folder}')
    try:
        done, left_out = (pack if to_archive else hand_back)(graded, course)
    except (ValueError, OSError) as error:
        sys.exit(f'd2lps: {error}')
    if left_out:
        print('without a page, or not collected by',
              'Moodle or Canvas:' if to_archive else 'nbgrader:', *left_out)
    if not done:
        sys.exit('d2lps: there is nothing to hand back')
    if to_archive:
        print(f'{several(len(done), "page")} in {course}')
        return
    print(f'pages are in {course / "feedback"}. To hand them back, there:')
    for exercise in done:
        print(f'nbgrader release_feedback {exercise}')


if __name__ == '__main__':
    parser = argparse.ArgumentParser(prog='teaching.handback')
    parser.add_argument('graded', type=Path,
                        help='the folder that make grade wrote')
    parser.add_argument('to', type=Path,
                        help='a course of nbgrader, or a new archive')
    args = parser.parse_args()
    main(args.graded, args.to)
