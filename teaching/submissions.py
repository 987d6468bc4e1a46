"""The notebooks that students handed in: found in a folder, and read."""
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

from d2lps.annotations import PathLike
from d2lps.checks import writable
from d2lps.exercises.checking import EXERCISES
from teaching import late
from teaching.rebuilding import checked_names, unanswered
from teaching.records import FolderName, Submission

LARGEST = 20_000_000  # bytes of a notebook
MOST_FILES = 1000  # of a student, that may be answers
MOST_CELLS = 1000
ARCHIVES = '.zip', '.gz', '.tgz', '.tar', '.bz2', '.xz', '.7z', '.rar'
NOT_LOOKED_INTO = '.', '__MACOSX'  # how such names begin

# A learning platform's name of a student's folder, or, where there are no
# folders, of a file.
MOODLE = re.compile(r'(?P<name>.*)_(?P<number>\d+)_assignsubmission_'
                    r'(file|onlinetext)_?(?P<file>.*)', re.DOTALL)
CANVAS = re.compile(r'(?P<name>.*?)_(?P<late>LATE_)?(?P<number>\d+)_'
                    r'(?P<attachment>\d+)_(?P<file>.+)', re.DOTALL)
ANONYMOUS = re.compile(r'(?P<late>LATE_)?(?P<name>anon)_(?P<number>\w+?)_'
                       r'(?P<attachment>\d+)_(?P<file>.+)', re.DOTALL)


class File(NamedTuple):
    """A file that may be an answer.

    name: as the student called it. shown: its name in remarks. attachment: its
    number in Canvas, which grows. is_late: by the mark of Canvas.
    """
    path: Path
    name: str
    shown: str
    attachment: int = 0
    is_late: bool = False


class Student(NamedTuple):
    """The files of a student, as a teacher or a platform calls the student."""
    folder_name: FolderName
    files: list[File]
    remarks: list[str]


def read_all(folder: PathLike,
             known: Mapping[str, str] | None = None) -> list[Submission]:
    """All submissions, from a folder with a folder for each student.

    Or with no such folders, but files that Canvas or Moodle have named after
    students. known: of an earlier grading, from the name of a student's
    folder to the student.
    Raises ValueError if there is no student in it.
    """
    students, others = _sorted_out(Path(folder).expanduser())
    if not students:
        archives = [name for name in others if _is_archive(name)]
        raise ValueError(
            f'FROM must be a folder with a folder for each student in it; '
            f'{folder} has none' + ''.join(
                f'. {name} is an archive: unpack it there'
                for name in archives))
    names = dict(known or {})
    for name in students:
        if name not in names:
            names[name] = _new_name(name, names.values())
    return [_read(student, names[name])
            for name, student in students.items()]


def loose(folder: PathLike) -> list[str]:
    """The names in a folder that belong to no student."""
    return _sorted_out(Path(folder).expanduser())[1]


def _sorted_out(folder: Path) -> tuple[dict[str, Student], list[str]]:
    """Students, by the names of their folders, and all other names."""
    if not folder.is_dir():
        raise ValueError(f'FROM must be a folder; {folder} is ' + (
            'an archive: unpack it' if _is_archive(folder.name) else
            'no folder'))
    students: dict[str, Student] = {}
    others = []
    for path in sorted(folder.iterdir()):
        student = _of_folder(path) if path.is_dir() else _of_file(path)
        if student is None:
            others.append(path.name)
        elif (name := student.folder_name.folder) in students:
            students[name].files.extend(student.files)
            students[name].remarks.extend(student.remarks)
        else:
            students[name] = student
    return students, others


def _of_folder(folder: Path) -> Student | None:
    """The student of a folder, with files at any depth; None for no student.
    """
    if folder.is_symlink() or folder.name.startswith(NOT_LOOKED_INTO):
        return None
    student = Student(_folder_name(folder.name), [], [])
    links: list[str] = []
    modules: list[str] = []
    errors: list[OSError] = []
    try:
        for place, folders, names in os.walk(folder, onerror=errors.append):
            folders[:] = [name for name in folders
                          if not name.startswith(NOT_LOOKED_INTO)]
            links += [_below(folder, Path(place, name)) for name in folders
                      if Path(place, name).is_symlink()]
            for name in names:
                path = Path(place, name)
                if name.startswith('.'):
                    continue
                if _may_be_answer(name):
                    student.files.append(File(path, name,
                                              _below(folder, path)))
                elif path.is_symlink():
                    links.append(_below(folder, path))
                elif _is_module(name):
                    modules.append(_below(folder, path))
            if len(student.files) > MOST_FILES:
                student.remarks.append(f'there are more than {MOST_FILES:,} '
                                       'files: not all were looked at')
                del student.files[MOST_FILES:]
                break
    except RecursionError:
        student.remarks.append('its folders are nested too deeply: not all '
                               'were looked at')
    for error in errors:
        student.remarks.append(f'{_below(folder, error.filename)} cannot be '
                               f'read: {error.strerror}')
    if links:
        student.remarks.append(f'links are not read: {_some(links)}')
    if modules:
        student.remarks.append(_not_read(modules))
    return student


def _below(folder: Path, path: PathLike) -> str:
    return os.path.relpath(path, folder)


def _some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - 5
    return ', '.join(names[:5]) + (f' and {more:,} more' if more > 0 else '')


def _not_read(modules: Sequence[str]) -> str:
    """The remark on modules, which explains why their functions are missing.
    """
    return (f'not read: {_some(modules)}. An answer must stand in the '
            'notebook, with all that it needs')


def _folder_name(folder: str) -> FolderName:
    """A folder's name: Moodle's tells the student's number, too."""
    parts = MOODLE.fullmatch(folder)
    if not parts:
        return FolderName(folder)
    name, number = parts['name'], parts['number']
    # Moodle writes a space for each _ of a name: it cuts prefixes at _.
    return FolderName(f'{name}_{number}', number, (
        f'{name.replace("_", " ")}_{number}_assignsubmission_file_/'))


def _of_file(path: Path) -> Student | None:
    """The student after whom a platform has named a file, or None.

    None also if the name can be read in two ways: students choose the names
    of their files.
    """
    if 'assignsubmission' in path.name:
        parts = MOODLE.fullmatch(path.name)
        is_doubtful = path.name.count('assignsubmission') > 1
    else:
        parts = ANONYMOUS.fullmatch(path.name) or CANVAS.fullmatch(path.name)
        is_doubtful = bool(parts and re.match(r'\d+_', parts['file']))
    if not parts or is_doubtful:
        return None
    fields = parts.groupdict()
    file = File(path, fields['file'], fields['file'],
                int(fields.get('attachment', 0)), bool(fields.get('late')))
    folder_name = (
        FolderName(f'{fields["name"]}_{fields["number"]}', fields['number'],
                   path.name.removesuffix(file.name))
        if file.attachment else _folder_name(path.name))
    if _may_be_answer(file.name):
        return Student(folder_name, [file], [])
    if _is_module(file.name):
        return Student(folder_name, [], [_not_read([file.name])])
    return None


def _new_name(folder: str, taken: Iterable[str]) -> str:
    """A name for a student, which can be the name of a file."""
    lower = {name.lower() for name in taken}
    name = re.sub(r'[^\w.@-]', '_', folder)
    name = name if re.match(r'\w', name) else f'student{name}'
    name = name[:60]  # a file's name has 255 bytes at most
    while name.lower() in lower:
        name += '_'
    return name


def _read(files: Student, student: str) -> Submission:
    """The `Submission` of these files.

    Of two files for an exercise the one with an answer counts, or the newer.
    """
    chosen: dict[str, tuple[File, NotebookNode]] = {}  # by exercise
    remarks: dict[str, list[str]] = {}

    def remark(exercise, text):
        remarks.setdefault(exercise, []).append(text)

    for text in files.remarks:
        remark('', text)
    for file in sorted(files.files, key=_newest_first):
        try:
            notebook = _notebook(file)
        except ValueError as error:
            remark(_exercise_in(file.name) or '', f'{file.shown} {error}')
            continue
        exercise = _exercise_checked_in(notebook) or _exercise_in(file.name)
        if not exercise:
            remark('', f'{file.shown} is named like no exercise, and nothing '
                   'in it tells which it is')
            continue
        if Path(file.name).stem != exercise:
            remark(exercise, f'wrongly named: {file.shown} was taken for it')
        if exercise not in chosen:
            chosen[exercise] = file, notebook
            continue
        left_out, (newer, its_notebook) = file, chosen[exercise]
        checked = checked_names([*notebook.cells, *its_notebook.cells])
        if unanswered(notebook, checked) < unanswered(its_notebook, checked):
            left_out, chosen[exercise] = newer, (file, notebook)
        remark(exercise, f'handed in more than once: {left_out.shown} was '
               'left out')
    times = {}
    for exercise, (file, _) in chosen.items():
        try:
            time = late.MARKED if file.is_late else late.handed_in(file.path)
        except (OSError, ValueError):
            remark(exercise, 'its timestamp.txt tells no time')
        else:
            if time:
                times[exercise] = time
    folder_name = files.folder_name
    newest = max(files.files, key=lambda file: file.attachment, default=None)
    if newest and newest.attachment:
        folder_name = folder_name._replace(
            prefix=newest.path.name.removesuffix(newest.name))
    return Submission(student, {
        exercise: notebook for exercise, (_, notebook) in chosen.items()},
        remarks, folder_name, times)


def _newest_first(file: File) -> tuple[int, int, int, bool, Path]:
    """A key for sorting. Files of one archive have one time: see the names.

    A browser calls a later download 'tree (1).ipynb'.
    """
    later = re.search(r' \((\d{1,4})\)\.', file.name)
    return (-file.attachment, -int(file.path.lstat().st_mtime),
            -int(later[1]) if later else 0,
            Path(file.name).stem not in EXERCISES, file.path)


def _may_be_answer(name: str) -> bool:
    """May a file of this name be an answer, or have one in it?"""
    return (_is_notebook(name) or _is_archive(name)
            or _exercise_in(name) is not None)


def _is_notebook(name: str) -> bool:
    return name.lower().endswith('.ipynb')


def _is_module(name: str) -> bool:
    return name.lower().endswith('.py')


def _is_archive(name: str) -> bool:
    return name.lower().endswith(ARCHIVES)


def _exercise_in(name: str) -> str | None:
    """The exercise that a file's name means, such as 'Tree (1).ipynb'."""
    name = re.sub(r'[^a-z]+', '-', name.split('.')[0].lower())
    fitting = [exercise for exercise in EXERCISES if exercise in name]
    return max(fitting, key=len, default=None)


def _notebook(file: File) -> NotebookNode:
    """The notebook in a file, with nothing in it but what is graded.

    Raises ValueError with the reason why there is none, which follows its
    name.
    """
    if file.path.is_symlink():
        raise ValueError('is a link: not read')
    if not _is_notebook(file.name):
        raise ValueError('is no notebook: its name must end with .ipynb, and '
                         'an archive must be unpacked')
    if not file.path.is_file():  # a pipe would keep us waiting
        raise ValueError('is no plain file: not read')
    try:
        if file.path.stat().st_size > LARGEST:
            raise ValueError(f'is no notebook: it has more than {LARGEST:,} '
                             'bytes')
        text = file.path.read_text('utf-8-sig', errors='replace')
    except OSError as error:
        raise ValueError(f'cannot be read: {error.strerror}') from None
    try:
        content = json.loads(text)
    except RecursionError:
        raise ValueError('is no notebook: it is nested too deeply') from None
    except ValueError:
        raise ValueError('is no notebook: it is no text in JSON') from None
    try:  # of Jupyter's format 3 or 4
        sheets = content.get('worksheets', [content])
        cells = [cell for sheet in sheets for cell in sheet['cells']]
    except (AttributeError, TypeError, LookupError):
        raise ValueError('is no notebook: it has no cells') from None
    if len(cells) > MOST_CELLS:
        raise ValueError(f'is no notebook: it has more than {MOST_CELLS} '
                         'cells')
    return nbformat.from_dict({
        'nbformat': 4, 'nbformat_minor': 5, 'metadata': {},
        'cells': [_cell(cell) for cell in cells if isinstance(cell, dict)]})


def _cell(content):
    """A cell of a student's: type, name and source, of types they may have.

    The name is nbgrader's, or else Jupyter's.
    """
    source = content.get('source', content.get('input'))
    if isinstance(source, list):
        source = ''.join(line for line in source if isinstance(line, str))
    cell = {'cell_type': 'markdown', 'metadata': {},
            'source': writable(source) if isinstance(source, str) else ''}
    if content.get('cell_type') == 'code':
        cell |= {'cell_type': 'code', 'outputs': [], 'execution_count': None}
    try:
        name = content['metadata']['nbgrader']['grade_id']
    except (TypeError, LookupError):  # it has none
        name = content.get('id')
    if isinstance(name, str):
        cell['id'] = writable(name)
    return cell


def _exercise_checked_in(notebook: NotebookNode) -> str | None:
    """The exercise that a notebook's check cells name."""
    text = '\n'.join(cell.source for cell in notebook.cells
                     if cell.cell_type == 'code')
    names = {name for name in re.findall(r"check\('([\w-]+)'", text)
             if name in EXERCISES}
    return names.pop() if len(names) == 1 else None
