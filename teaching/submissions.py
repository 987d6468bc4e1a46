"""What students handed in: found in a folder, and read."""
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

from d2lps.annotations import PathLike
from d2lps.checks import writable
from d2lps.exercises.checking import EXERCISES
from teaching import late
from teaching.rebuilding import unanswered

LARGEST = 20_000_000  # bytes of a notebook
MOST_FILES = 1000  # of a student, that may be answers
MOST_CELLS = 1000
ARCHIVES = '.zip', '.gz', '.tgz', '.tar', '.bz2', '.xz', '.7z', '.rar'
NOT_LOOKED_INTO = '.', '__MACOSX'  # how such names begin

# What learning platforms call a student's folder, or, where there are none,
# what they write before the name of a file.
MOODLE = re.compile(r'(?P<name>.*)_(?P<number>\d+)_assignsubmission_'
                    r'(file|onlinetext)_?(?P<file>.*)', re.DOTALL)
CANVAS = re.compile(r'(?P<name>.*?)_(?P<late>LATE_)?(?P<number>\d+)_'
                    r'(?P<attachment>\d+)_(?P<file>.+)', re.DOTALL)
ANONYMOUS = re.compile(r'(?P<late>LATE_)?(?P<name>anon)_(?P<number>\w+?)_'
                       r'(?P<attachment>\d+)_(?P<file>.+)', re.DOTALL)


class Submission(NamedTuple):
    """What one student handed in.

    student: a name that can be the name of a file. notebooks: exercise to
    notebook. remarks: exercise to a list of texts; '' for none of them.
    folder: what the folder is called, or a platform calls the student.
    number: the platform's. times: exercise to when it was handed in, a text
    for `late.moment`, or `late.MARKED`; those that are known.
    """
    student: str
    notebooks: dict[str, NotebookNode]
    remarks: dict[str, list[str]]
    folder: str
    number: str = ''
    times: dict[str, str] = {}


class File(NamedTuple):
    """A file that may be an answer.

    name: as the student called it. told: as remarks call it. attachment: its
    number in Canvas, which grows. is_late: by the mark of Canvas.
    """
    path: Path
    name: str
    told: str
    attachment: int = 0
    is_late: bool = False


class Student(NamedTuple):
    """Whose files these are, as a teacher or a platform calls the student."""
    called: str
    number: str
    files: list[File]
    remarks: list[str]


def read_all(folder: PathLike,
             known: Mapping[str, str] | None = None) -> list[Submission]:
    """What was handed in, from a folder with a folder for each student.

    Or with no such folders, but files that Canvas or Moodle have named after
    students. known: of an earlier grading, from what a student's folder is
    called to the student.
    Raises ValueError if there is no student in it.
    """
    students, _ = _sorted_out(Path(folder).expanduser())
    if not students:
        raise ValueError(f'FROM must be a folder with a folder for each '
                         f'student in it; {folder} has none')
    names = dict(known or {})
    for called in students:
        if called not in names:
            names[called] = _new_name(called, names.values())
    return [_read(student, names[called])
            for called, student in students.items()]


def loose(folder: PathLike) -> list[str]:
    """The names of all in a folder that is no student's."""
    return _sorted_out(Path(folder).expanduser())[1]


def _sorted_out(folder: Path) -> tuple[dict[str, Student], list[str]]:
    """Students, by what they are called, and the names of all else."""
    if not folder.is_dir():
        raise ValueError(f'FROM must be a folder; {folder} is none')
    students: dict[str, Student] = {}
    others = []
    for path in sorted(folder.iterdir()):
        found = _of_folder(path) if path.is_dir() else _of_file(path)
        if found is None:
            others.append(path.name)
        elif found.called in students:
            students[found.called].files.extend(found.files)
        else:
            students[found.called] = found
    return students, others


def _of_folder(folder: Path) -> Student | None:
    """The student of a folder, with files at any depth; None for no student.
    """
    if folder.is_symlink() or folder.name.startswith(NOT_LOOKED_INTO):
        return None
    student = Student(*_called(folder.name), [], [])
    errors: list[OSError] = []
    try:
        for place, folders, names in os.walk(folder, onerror=errors.append):
            folders[:] = [name for name in folders
                          if not name.startswith(NOT_LOOKED_INTO)]
            for name in names:
                path = Path(place, name)
                if not name.startswith('.') and _may_be_answer(name):
                    student.files.append(File(
                        path, name, str(path.relative_to(folder))))
            if len(student.files) > MOST_FILES:
                student.remarks.append(f'there are more than {MOST_FILES:,} '
                                       'files: not all were looked at')
                del student.files[MOST_FILES:]
                break
    except RecursionError:
        student.remarks.append('its folders are nested too deeply: not all '
                               'were looked at')
    for error in errors:
        student.remarks.append(f'{error.filename} cannot be read: '
                               f'{error.strerror}')
    return student


def _called(folder: str) -> tuple[str, str]:
    """How a student with this folder is called; and the platform's number."""
    parts = MOODLE.fullmatch(folder)
    return (f'{parts["name"]}_{parts["number"]}', parts['number']) if (
        parts) else (folder, '')


def _of_file(path: Path) -> Student | None:
    """The student after whom a platform has named a file, or None.

    None also if the name can be read in two ways: students choose the names
    of their files.
    """
    if 'assignsubmission' in path.name:
        found = MOODLE.fullmatch(path.name)
        is_doubtful = path.name.count('assignsubmission') > 1
    else:
        found = ANONYMOUS.fullmatch(path.name) or CANVAS.fullmatch(path.name)
        is_doubtful = bool(found and re.match(r'\d+_', found['file']))
    if not found or is_doubtful or not _may_be_answer(found['file']):
        return None
    parts = found.groupdict()
    file = File(path, parts['file'], path.name,
                int(parts.get('attachment', 0)), bool(parts.get('late')))
    return Student(f'{parts["name"]}_{parts["number"]}', parts['number'],
                   [file], [])


def _new_name(called: str, taken: Iterable[str]) -> str:
    """A name for a student, which can be the name of a file."""
    lower = {name.lower() for name in taken}
    name = re.sub(r'[^\w.@-]', '_', called)
    name = name if re.match(r'\w', name) else f'student{name}'
    name = name[:60]  # a file's name has 255 bytes at most
    while name.lower() in lower:
        name += '_'
    return name


def _read(found: Student, student: str) -> Submission:
    """The `Submission` of these files.

    Of two files for an exercise the one with an answer counts, or the newer.
    """
    chosen: dict[str, tuple[File, NotebookNode]] = {}  # by exercise
    remarks: dict[str, list[str]] = {}

    def remark(exercise, text):
        remarks.setdefault(exercise, []).append(text)

    for text in found.remarks:
        remark('', text)
    for file in sorted(found.files, key=_newest_first):
        try:
            notebook = _notebook(file)
        except ValueError as error:
            remark(_exercise_in(file.name) or '', f'{file.told} {error}')
            continue
        exercise = _exercise_checked_in(notebook) or _exercise_in(file.name)
        if not exercise:
            remark('', f'{file.told} is named like no exercise, and nothing '
                   'in it tells which it is')
            continue
        if Path(file.name).stem != exercise:
            remark(exercise, f'wrongly named: {file.told} was taken for it')
        if exercise not in chosen:
            chosen[exercise] = file, notebook
            continue
        left_out, (newer, its_notebook) = file, chosen[exercise]
        if unanswered(notebook) < unanswered(its_notebook):
            left_out, chosen[exercise] = newer, (file, notebook)
        remark(exercise, f'handed in more than once: {left_out.told} was left '
               'out')
    times = {}
    for exercise, (file, _) in chosen.items():
        try:
            time = late.MARKED if file.is_late else late.handed_in(file.path)
        except (OSError, ValueError):
            remark(exercise, 'its timestamp.txt tells no time')
        else:
            if time:
                times[exercise] = time
    notebooks = {exercise: one for exercise, (_, one) in chosen.items()}
    return Submission(student, notebooks, remarks, found.called, found.number,
                      times)


def _newest_first(file: File) -> tuple[int, int, bool, Path]:
    """For sorting. Files out of one archive have one time: see the names."""
    return (-file.attachment, -int(file.path.lstat().st_mtime),
            Path(file.name).stem not in EXERCISES, file.path)


def _may_be_answer(name: str) -> bool:
    """May a file of this name be an answer, or have one in it?"""
    return (name.lower().endswith(('.ipynb', *ARCHIVES))
            or _exercise_in(name) is not None)


def _exercise_in(name: str) -> str | None:
    """The exercise that a file's name means, such as 'Tree (1).ipynb'."""
    words = re.sub(r'[^a-z]+', '-', name.split('.')[0].lower())
    fitting = [exercise for exercise in EXERCISES if exercise in words]
    return max(fitting, key=len, default=None)


def _notebook(file: File) -> NotebookNode:
    """The notebook in a file, with nothing in it but what is graded.

    Raises ValueError with what is wrong, in words that follow its name.
    """
    if file.path.is_symlink():
        raise ValueError('is a link to another place: not read')
    if not file.name.lower().endswith('.ipynb'):
        raise ValueError('is no notebook: its name must end with .ipynb, and '
                         'an archive must be unpacked')
    if not file.path.is_file():  # but a pipe, which would keep us waiting
        raise ValueError('is no plain file: not read')
    try:
        if file.path.stat().st_size > LARGEST:
            raise ValueError(f'is no notebook: it has more than {LARGEST:,} '
                             'bytes')
        text = file.path.read_text('utf-8-sig', errors='replace')
    except OSError as error:
        raise ValueError(f'cannot be read: {error.strerror}') from None
    try:
        told = json.loads(text)
    except RecursionError:
        raise ValueError('is no notebook: it is nested too deeply') from None
    except ValueError:
        raise ValueError('is no notebook: it is no text in JSON') from None
    try:  # of Jupyter's format 3 or 4
        sheets = told['worksheets'] if 'worksheets' in told else [told]
        cells = [one for sheet in sheets for one in sheet['cells']]
    except (TypeError, LookupError):
        raise ValueError('is no notebook: it has no cells') from None
    if len(cells) > MOST_CELLS:
        raise ValueError(f'is no notebook: it has more than {MOST_CELLS} '
                         'cells')
    return nbformat.from_dict({
        'nbformat': 4, 'nbformat_minor': 5, 'metadata': {},
        'cells': [_cell(one) for one in cells if isinstance(one, dict)]})


def _cell(told):
    """A cell of a student's: type, name and source, of types they may have.

    The name is nbgrader's, or else Jupyter's.
    """
    source = told.get('source', told.get('input'))
    if isinstance(source, list):
        source = ''.join(one for one in source if isinstance(one, str))
    found = {'cell_type': 'markdown', 'metadata': {},
             'source': writable(source) if isinstance(source, str) else ''}
    if told.get('cell_type') == 'code':
        found |= {'cell_type': 'code', 'outputs': [], 'execution_count': None}
    try:
        name = told['metadata']['nbgrader']['grade_id']
    except (TypeError, LookupError):  # it has none
        name = told.get('id')
    if isinstance(name, str):
        found['id'] = writable(name)
    return found


def _exercise_checked_in(notebook: NotebookNode) -> str | None:
    """The exercise that a notebook's check cells name."""
    text = '\n'.join(cell.source for cell in notebook.cells
                     if cell.cell_type == 'code')
    found = {name for name in re.findall(r"check\('([\w-]+)'", text)
             if name in EXERCISES}
    return found.pop() if len(found) == 1 else None
