"""Hand pages back by nbgrader: python -m teaching.handback GRADED COURSE.

GRADED is what `make grade` wrote, COURSE the course of nbgrader whose folder
`submitted` was graded. Then `nbgrader release_feedback` finds the pages there.
"""
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

# What came with a submission: by these, a student's command finds its page.
SIGNS = 'timestamp.txt', 'submission_secret.txt'


class HandedBack(NamedTuple):
    """What was handed back. left_out: students without page or signs."""
    exercises: list[str]
    left_out: list[str]


def hand_back(graded: Path, course: Path) -> HandedBack:
    """Copy each student's page beside the signs of what they submitted."""
    exercises: set[str] = set()
    left_out: set[str] = set()
    for submitted in sorted((course / 'submitted').glob('*/*')):
        student, exercise = submitted.parts[-2:]
        page = graded / 'feedback' / f'{student}.html'
        signs = [submitted / name for name in SIGNS]
        if not all(file.is_file() for file in [page, *signs]):
            left_out.add(student)
            continue
        place = course / 'feedback' / student / exercise
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, place / f'{exercise}.html')
        for sign in signs:
            shutil.copy(sign, place)
        exercises.add(exercise)
    return HandedBack(sorted(exercises), sorted(left_out))


def main(graded_folder: str, course_folder: str) -> None:
    graded = Path(graded_folder).expanduser()
    course = Path(course_folder).expanduser()
    for folder in graded / 'feedback', course / 'submitted':
        if not folder.is_dir():
            sys.exit(f'd2lps: there is no folder {folder}')
    exercises, left_out = hand_back(graded, course)
    if left_out:
        print('without a page, or not collected by nbgrader:', *left_out)
    print(f'pages are in {course / "feedback"}. To hand them back, there:')
    for exercise in exercises:
        print(f'nbgrader release_feedback {exercise}')


if __name__ == '__main__':
    main(*sys.argv[1:])
