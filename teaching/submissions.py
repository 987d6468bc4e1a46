"""What students handed in: found in a folder, and read."""
import json
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import PathFinder
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
LARGEST_MODULE, MOST_MODULES = 1_000_000, 50  # characters; beside a notebook
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
    modules: exercise to the student's own modules beside its notebook, from
    the name of a file to its text. prefix: what the platform writes before
    the name of a file of the student's, if one has named them.
    """
    student: str
    notebooks: dict[str, NotebookNode]
    remarks: dict[str, list[str]]
    folder: str
    number: str = ''
    times: dict[str, str] = {}
    modules: dict[str, dict[str, str]] = {}
    prefix: str = ''


class File(NamedTuple):
    """A file that may be an answer, or a module that one imports.

    name: as the student called it. told: as remarks call it. attachment: its
    number in Canvas, which grows. is_late: by the mark of Canvas.
    """
    path: Path
    name: str
    told: str
    attachment: int = 0
    is_late: bool = False


class Student(NamedTuple):
    """Whose files these are, as a teacher or a platform calls the student.

    modules: files with Python's code beside a notebook. prefix: see
    `Submission`; empty for Canvas, where each file has its own.
    """
    called: str
    number: str
    files: list[File]
    modules: list[File]
    remarks: list[str]
    prefix: str = ''


def read_all(folder: PathLike,
             known: Mapping[str, str] | None = None) -> list[Submission]:
    """What was handed in, from a folder with a folder for each student.

    Or with no such folders, but files that Canvas or Moodle have named after
    students. known: of an earlier grading, from what a student's folder is
    called to the student.
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
    _remark_shared(students.values())
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
        raise ValueError(f'FROM must be a folder; {folder} is ' + (
            'an archive: unpack it' if _is_archive(folder.name) else 'none'))
    students: dict[str, Student] = {}
    others = []
    for path in sorted(folder.iterdir()):
        found = _of_folder(path) if path.is_dir() else _of_file(path)
        if found is None:
            others.append(path.name)
        elif found.called in students:
            students[found.called].files.extend(found.files)
            students[found.called].modules.extend(found.modules)
        else:
            students[found.called] = found
    return students, others


def _of_folder(folder: Path) -> Student | None:
    """The student of a folder, with files at any depth; None for no student.
    """
    if folder.is_symlink() or folder.name.startswith(NOT_LOOKED_INTO):
        return None
    called, number, prefix = _called(folder.name)
    student = Student(called, number, [], [], [], prefix)
    links: list[str] = []
    unused: list[str] = []
    errors: list[OSError] = []
    try:
        for place, folders, names in os.walk(folder, onerror=errors.append):
            folders[:] = [name for name in folders
                          if not name.startswith(NOT_LOOKED_INTO)]
            links += [_below(folder, Path(place, name)) for name in folders
                      if Path(place, name).is_symlink()]
            has_notebook = any(map(_is_notebook, names))
            for name in names:
                path = Path(place, name)
                file = File(path, name, _below(folder, path))
                if name.startswith('.'):
                    continue
                if name.endswith('.py') and has_notebook:
                    student.modules.append(file)
                elif _may_be_answer(name):
                    student.files.append(file)
                elif path.is_symlink():
                    links.append(file.told)
                elif name.endswith('.py'):
                    unused.append(file.told)
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
    if unused:
        student.remarks.append(f'not used: {_some(unused)} (no notebook is '
                               'beside it)')
    return student


def _below(folder: Path, path: PathLike) -> str:
    return os.path.relpath(path, folder)


def _some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - 5
    return ', '.join(names[:5]) + (f' and {more:,} more' if more > 0 else '')


def _called(folder: str) -> tuple[str, str, str]:
    """How a student with this folder is called; the platform's number; and
    the platform's prefix."""
    parts = MOODLE.fullmatch(folder)
    if not parts:
        return folder, '', ''
    name, number = parts['name'], parts['number']
    # Moodle writes a space for each _ of a name: it cuts prefixes at _.
    return f'{name}_{number}', number, (
        f'{name.replace("_", " ")}_{number}_assignsubmission_file_/')


def without_number(called: str, number: str) -> str:
    """A student's name, of what the student is called here."""
    return called.removesuffix(f'_{number}') if number else called


def _remark_shared(students: Iterable[Student]) -> None:
    """Remark files that are one with another student's, by hard links.

    An archive can have such links to what was unpacked before.
    """
    seen: dict[tuple[int, int], list[tuple[Student, File]]] = {}
    for student in students:
        for file in [*student.files, *student.modules]:
            status = file.path.lstat()
            if status.st_nlink > 1:
                seen.setdefault((status.st_dev, status.st_ino), []).append(
                    (student, file))
    for several in seen.values():
        if len({student.called for student, _ in several}) > 1:
            for student, file in several:
                student.remarks.append(f"{file.told} is one file with another "
                                       "student's, by a hard link")


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
    if not found or is_doubtful or not (
            _may_be_answer(found['file']) or found['file'].endswith('.py')):
        return None
    parts = found.groupdict()
    file = File(path, parts['file'], parts['file'],
                int(parts.get('attachment', 0)), bool(parts.get('late')))
    called, number, prefix = f'{parts["name"]}_{parts["number"]}', (
        parts['number']), ''
    if not file.attachment:
        called, number, prefix = _called(path.name)
    is_module = file.name.endswith('.py')
    return Student(called, number, [] if is_module else [file],
                   [file] if is_module else [], [], prefix)


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
    by_folder, unused = _modules(found.modules)
    for text in unused:
        remark('', text)
    modules = {exercise: by_folder.get(file.path.parent, {})
               for exercise, (file, _) in chosen.items()}
    newest = max([*found.files, *found.modules], default=None,
                 key=lambda file: file.attachment)
    prefix = (newest.path.name.removesuffix(newest.name)
              if newest and newest.attachment else found.prefix)
    return Submission(student, notebooks, remarks, found.called, found.number,
                      times, modules, prefix)


def _modules(files: Iterable[File]
             ) -> tuple[dict[Path, dict[str, str]], list[str]]:
    """The modules in each folder, and remarks on those that are not used.

    From the name of a file to its text. Of two with one name, as Canvas marks
    them, the newer is taken.
    """
    modules: dict[Path, dict[str, str]] = {}
    unused: dict[str, list[str]] = {}  # by the reason
    room = MOST_MODULES
    for file in sorted(files, key=_newest_first):
        name = (re.sub(r'-\d+\.py$', '.py', file.name) if file.attachment
                else file.name)
        here = modules.setdefault(file.path.parent, {})
        if name in here:
            continue
        try:
            if not room:
                raise ValueError(f'there are more than {MOST_MODULES}')
            here[name] = _module(file.path, name)
            room -= 1
        except (ValueError, OSError) as error:
            why = getattr(error, 'strerror', None) or str(error)
            unused.setdefault(why, []).append(file.told)
    return modules, [f'not used: {_some(told)} ({why})'
                     for why, told in unused.items()]


def _module(path: Path, name: str) -> str:
    """The text of a module; raises ValueError if it is not used."""
    stem = name.removesuffix('.py')
    if not re.fullmatch(r'[A-Za-z_]\w*', stem, re.ASCII):
        raise ValueError('its name is no name of a module')
    if _is_taken(stem):
        raise ValueError('Python, or a package, has a module of this name')
    if path.is_symlink() or not path.is_file():
        raise ValueError('it is a link, or no plain file')
    with open(path, encoding='utf-8-sig', errors='replace') as file:
        text = file.read(LARGEST_MODULE + 1)
    if len(text) > LARGEST_MODULE:
        raise ValueError(f'it has more than {LARGEST_MODULE:,} characters')
    return text


def _is_taken(module: str) -> bool:
    """Is there a module of this name where students' code runs?"""
    places = [sysconfig.get_path(name) for name in ('purelib', 'platlib')]
    return module == 'd2lps' or module in sys.stdlib_module_names or (
        PathFinder.find_spec(module, places) is not None)


def _newest_first(file: File) -> tuple[int, int, int, bool, Path]:
    """For sorting. Files out of one archive have one time: see the names.

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


def _is_archive(name: str) -> bool:
    return name.lower().endswith(ARCHIVES)


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
        raise ValueError('is a link, or was left out by nbgrader collect: '
                         'not read')
    if not _is_notebook(file.name):
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
