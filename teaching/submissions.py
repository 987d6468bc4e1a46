"""What students handed in: found, read, and made into what is graded."""
import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from d2lps.annotations import PathLike
from d2lps.checks import writable
from d2lps.exercises.checking import EXERCISES, Case
from teaching import late

LARGEST = 20_000_000  # bytes of a notebook
MOST_FILES = 100_000  # that are looked at in a student's folder
MOST_NOTEBOOKS = 1000
MOST_CELLS = 1000
BEGIN, END = '### BEGIN HIDDEN TESTS', '### END HIDDEN TESTS'
# Before each check: what a student has called the same is not meant.
IMPORT = 'from d2lps.exercises import check, hidden\n'
STUB = "raise NotImplementedError('write your answer here')"


# What learning platforms call a student's folder, or, where there is none,
# what they write before the name of a file.
MOODLE = re.compile(r'(?P<name>.*)_(?P<number>\d+)_assignsubmission_file_?'
                    r'(?P<file>.*)', re.DOTALL)
MOODLE_TEXT = re.compile(r'.*_(\d+)_assignsubmission_onlinetext_?')
CANVAS = re.compile(r'(?P<name>.*?)_(?P<late>LATE_)?(?P<number>\d+)_'
                    r'(?P<attachment>\d+)_(?P<file>.+)', re.DOTALL)
ANONYMOUS = re.compile(r'(?P<late>LATE_)?(?P<name>anon_(?P<number>\w+?))_'
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
    folder: str = ''
    number: str = ''
    times: dict[str, str] = {}


class File(NamedTuple):
    """A file that may be an answer.

    name: as the student called it. told: as remarks call it. is_late: by the
    platform's mark.
    """
    path: Path
    name: str
    told: str
    is_late: bool = False


class Flat(NamedTuple):
    """Files of one student in a folder without folders, the newest first."""
    number: str
    files: list[File]


class Rebuilt(NamedTuple):
    """A notebook to grade, and remarks on what its student had changed."""
    notebook: NotebookNode
    remarks: list[str]


class Definition(NamedTuple):
    """A function or class that a cell defines. lines: of the cell's source."""
    name: str
    lines: slice
    is_stub: bool


class Cell(NamedTuple):
    """A student's cell, with the name that nbgrader has for it."""
    grade_id: str | None
    cell: NotebookNode


class Apart(NamedTuple):
    """A student's notebook without our check cells.

    seen: from the name of a check (None: it had none) to the texts of its
    cells. places: where the checks may go, each before the cell of this index.
    """
    cells: list[Cell]
    seen: dict[str | None, set[str]]
    places: list[int]


def read_all(folder: PathLike,
             known: Mapping[str, str] | None = None) -> list[Submission]:
    """What was handed in, from a folder with a folder for each student.

    Or with no such folders, but files that Canvas or Moodle have named after
    students. known: of an earlier grading, from what a folder is called to
    the student.
    Raises ValueError if there is no student in it.
    """
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise ValueError(f'FROM must be a folder; {folder} is none')
    people, flat = _people(folder), _flat(folder)
    if not people and not flat:
        raise ValueError(f'FROM must be a folder with a folder for each '
                         f'student in it; {folder} has none')
    names = _Names(known or {})
    found = []
    for path in people:
        found.append(_read_safely(path, names.of(path.name)))
    for called, one in flat.items():
        student = names.of(called)
        found.append(_read(one.files, student)._replace(
            folder=called, number=one.number))
    return found


def loose(folder: PathLike) -> list[str]:
    """The names of files that are no student's."""
    folder = Path(folder).expanduser()
    taken = {file.path for one in _flat(folder).values()
             for file in one.files}
    return [path.name for path in sorted(folder.iterdir())
            if path.is_file() and not path.name.startswith('.')
            and path not in taken]


def _people(folder: Path) -> list[Path]:
    """Students' folders; of those with Moodle's texts, what has no file."""
    paths = sorted(path for path in folder.iterdir()
                   if path.is_dir() and not path.name.startswith('.'))
    numbers = {found['number'] for path in paths
               if (found := MOODLE.fullmatch(path.name))}
    return [path for path in paths if not (
        (text := MOODLE_TEXT.fullmatch(path.name)) and text[1] in numbers)]


def _flat(folder: Path) -> dict[str, Flat]:
    """The files that a platform named after students, by student."""
    # By the student's number: what the student is called, and the files, each
    # with the parts of its name.
    found: dict[str, tuple[str, list[tuple[re.Match[str], Path]]]] = {}
    for path in sorted(folder.iterdir()):
        parts = None if path.is_dir() else _parts(path.name)
        if parts and _may_be_one(parts['file']):
            number, files = found.setdefault(parts['number'], (
                f'{parts["name"]}_{parts["number"]}'
                if parts.re is not ANONYMOUS else parts['name'], []))
            files.append((parts, path))
    flat = {}
    for number, (called, files) in found.items():
        files.sort(key=lambda one: _newest_first(
            one[1], one[0]['file'], int(one[0].groupdict().get(
                'attachment') or 0)))
        flat[called] = Flat(number, [
            File(path, parts['file'], path.name,
                 bool(parts.groupdict().get('late')))
            for parts, path in files])
    return flat


def _parts(name: str) -> re.Match[str] | None:
    """What a platform's name of a file tells; None if it is no such name.

    Nor if it can be read in two ways: students choose the names of files.
    """
    if 'assignsubmission' in name:
        found = MOODLE.fullmatch(name)
        once = name.count('assignsubmission') == 1
        return found if once and found and found['file'] else None
    found = ANONYMOUS.fullmatch(name) or CANVAS.fullmatch(name)
    return None if not found or re.match(r'\d+_', found['file']) else found


class _Names:
    """Students' names, which can be names of files, and are no one else's."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known
        self._taken = {name.lower() for name in known.values()}

    def of(self, called: str) -> str:
        """The name of whose folder is called so."""
        if called in self._known:
            return self._known[called]
        moodle = MOODLE.fullmatch(called)
        name = called[:moodle.end('number')] if moodle else called
        name = re.sub(r'[^\w.@-]', '_', name)
        name = name if re.match(r'\w', name) else f'student{name}'
        name = name[:60]  # a file's name has 255 bytes at most
        while name.lower() in self._taken:
            name += '_'
        self._taken.add(name.lower())
        return name


def _read_safely(path: Path, student: str) -> Submission:
    try:
        submission = read(path, student)
    except (OSError, RecursionError) as error:
        submission = Submission(student, {}, {'': [
            f'the folder cannot be read: {type(error).__name__}']})
    if path.is_symlink():
        submission = Submission(student, {}, {'': [
            'the folder is a link to another place: not followed']})
    moodle = MOODLE.fullmatch(path.name)
    return submission._replace(folder=path.name,
                               number=moodle['number'] if moodle else '')


def read(folder: Path, student: str) -> Submission:
    """The `Submission` in a student's folder, at whatever depth."""
    files, all_of_them = _files(folder)
    submission = _read([File(path, path.name, str(path.relative_to(folder)))
                        for path in files], student)
    if not all_of_them:
        submission.remarks.setdefault('', []).append(
            f'there are more than {MOST_FILES:,} files or '
            f'{MOST_NOTEBOOKS:,} notebooks: not all were looked at')
    return submission


def _read(files: Iterable[File], student: str) -> Submission:
    """The `Submission` of these files; of two answers the first counts."""
    notebooks: dict[str, NotebookNode] = {}
    remarks: dict[str, list[str]] = {}
    times: dict[str, str] = {}

    def remark(exercise, text):
        remarks.setdefault(exercise, []).append(text)

    for path, called, told, is_late in files:
        name, stem = _named(called), Path(called).stem
        if Path(called).suffix.lower() != '.ipynb':
            if name:
                remark(name, f'{told} is no notebook: its name must end with '
                       '.ipynb')
            continue
        if path.is_symlink():
            remark(name or '', f'{told} is a link to another place: not read')
            continue
        try:
            notebook = _notebook(path)
        except ValueError as error:
            remark(name or '', f'{told} is no notebook: {error}')
            continue
        exercise = name if stem == name else _recognised(notebook) or name
        if not exercise:
            remark('', f'{told} is named like no exercise, and nothing in it '
                   'tells which it is')
            continue
        if stem != exercise:
            remark(exercise, f'wrongly named: {told} was taken for it')
        if exercise in notebooks:
            remark(exercise, f'handed in more than once: {told} was left out,'
                   ' as it is not newer')
            continue
        notebooks[exercise] = notebook
        try:
            time = late.MARKED if is_late else late.handed_in(path)
        except (OSError, ValueError):
            remark(exercise, 'its timestamp.txt tells no time')
            continue
        if time:
            times[exercise] = time
    return Submission(student, notebooks, remarks, times=times)


def _files(folder: Path) -> tuple[list[Path], bool]:
    """Files that may be a student's answers, and whether that is all.

    The newest first; of those of the same second, which may have come out of
    one archive, the ones with an exercise's exact name.
    """
    found: list[Path] = []
    complete = True
    for looked_at, path in enumerate(folder.rglob('*'), 1):
        if looked_at > MOST_FILES or len(found) > MOST_NOTEBOOKS:
            complete = False
            break
        inner = path.relative_to(folder).parts
        if (not any(part.startswith('.') for part in inner)
                and _may_be_one(path.name)
                and (path.is_symlink() or path.is_file())):
            found.append(path)
    found.sort(key=lambda path: _newest_first(path, path.name))
    return found, complete


def _newest_first(path, called, attachment=0):
    """Canvas numbers attachments; files out of one archive have one time."""
    return (-attachment, -int(path.lstat().st_mtime),
            Path(called).stem not in EXERCISES, path)


def _may_be_one(called: str) -> bool:
    return called.lower().endswith('.ipynb') or bool(_named(called))


def _named(called: str) -> str | None:
    """The exercise that a file's name means, such as 'Tree (1).ipynb'."""
    words = re.sub(r'[^a-z]+', '-', called.split('.')[0].lower())
    fitting = [name for name in EXERCISES if name in words]
    return max(fitting, key=len, default=None)


def _notebook(path: Path) -> NotebookNode:
    """The notebook in a file, with nothing in it but what is graded.

    Raises ValueError with what is wrong.
    """
    if path.stat().st_size > LARGEST:
        raise ValueError(f'it has more than {LARGEST:,} bytes')
    try:
        told = json.loads(path.read_text('utf-8-sig', errors='replace'))
    except RecursionError:
        raise ValueError('it is nested too deeply') from None
    except ValueError:
        raise ValueError('it is no text in JSON') from None
    try:  # of Jupyter's format 3 or 4
        sheets = told['worksheets'] if 'worksheets' in told else [told]
        cells = [one for sheet in sheets for one in sheet['cells']]
    except (TypeError, LookupError):
        raise ValueError('it has no cells') from None
    if len(cells) > MOST_CELLS:
        raise ValueError(f'it has more than {MOST_CELLS} cells')
    return nbformat.from_dict({
        'nbformat': 4, 'nbformat_minor': 5, 'metadata': {},
        'cells': [_cell(one) for one in cells if isinstance(one, dict)]})


def _cell(told):
    """A cell of a student's, and only parts of types that it may have."""
    source = told.get('source', told.get('input'))
    if isinstance(source, list):
        source = ''.join(one for one in source if isinstance(one, str))
    kind, name = told.get('cell_type'), told.get('id')
    found = {'cell_type': 'markdown', 'metadata': {},
             'source': writable(source) if isinstance(source, str) else ''}
    if kind == 'code':
        found |= {'cell_type': kind, 'outputs': [], 'execution_count': None}
    elif kind == 'raw':
        found['cell_type'] = kind
    if isinstance(name, str):
        found['id'] = writable(name)
    try:
        found['metadata'] = {'nbgrader': {
            key: value for key, value in told['metadata']['nbgrader'].items()
            if isinstance(value, (str, bool))}}
    except (TypeError, LookupError, AttributeError):  # it has none
        pass
    return found


def _recognised(notebook: NotebookNode) -> str | None:
    """The exercise that a notebook's check cells name."""
    text = '\n'.join(cell.source for cell in notebook.cells)
    found = {name for name in re.findall(r"check\('([\w-]+)'", text)
             if name in EXERCISES}
    return found.pop() if len(found) == 1 else None


def rebuild(template: NotebookNode, handed_in: NotebookNode) -> Rebuilt:
    """What is graded: the student's cells, and the check cells of the source.

    template: the solved source.
    """
    made = copy.deepcopy(template)
    checks = [cell for cell in made.cells if is_check(cell)]
    asked = asked_for(checks)
    cells, seen, places = _taken_apart(handed_in, checks)
    remarks = _changed_checks(checks, seen)
    number = len(cells)
    answers, more = _answers(cells, asked, places[0])
    remarks += more
    if len(cells) > number:  # an empty answer: the cells below it moved down
        places = [place + (place > places[0]) for place in places]
    written = _written(cells, asked)
    place, more = _place_of_checks(cells, written, asked, places)
    remarks += more
    _drop_stubs(cells, written, answers)
    [ours] = [cell for cell in made.cells if _grade_id(cell) == 'answer']
    answers[-1].metadata = ours.metadata
    before = [cell for _, cell in cells[:place]]
    if not _has_lines(before, imports_of(template)):
        remarks.append('lines of the first cell, which imports, were changed, '
                       'moved or deleted: they are run before yours')
        before.insert(0, new_code_cell(imports_of(template)))
    for cell in checks:
        cell.source = IMPORT + cell.source
    # Hidden checks come last: a visible check's reason could tell their cases.
    checks.sort(key=lambda cell: cell.metadata.nbgrader.grade_id.startswith(
        'hidden'))
    made.cells = [*before, *checks, *(cell for _, cell in cells[place:])]
    for k, cell in enumerate(made.cells):
        cell.id = cell.metadata.get('nbgrader', {}).get('grade_id', f'c{k}')
    return Rebuilt(made, remarks)


def _changed_checks(checks: Iterable[NotebookNode],
                    seen: Mapping[str | None, set[str]]) -> list[str]:
    """Remarks on check cells that a student changed or deleted."""
    changes = [(_grade_id(cell), _change(cell, seen)) for cell in checks]
    return [f'the cell {name} was {change}: put back'
            for name, change in changes if change]


def _answers(cells: list[Cell], asked: set[str],
             place: int) -> tuple[list[NotebookNode], list[str]]:
    """The student's cells with an answer, and remarks on them.

    An answer that was made text becomes code again. If there is none, an
    empty one is inserted at `place`.
    """
    remarks = []
    if _code_again(cells, asked):
        remarks.append('the cell for the answer was made text: it was run as '
                       'code')
    answers = [cell for grade_id, cell in cells
               if grade_id == 'answer' and cell.cell_type == 'code']
    if not answers:
        remarks.append('the cell for the answer is not there')
        answers = [new_code_cell('')]
        cells.insert(place, Cell('answer', answers[0]))
    return answers, remarks


def _place_of_checks(cells: Sequence[Cell], written: Sequence[set[str]],
                     asked: set[str],
                     places: Sequence[int]) -> tuple[int, list[str]]:
    """Before which of the cells the checks are run, and remarks on that.

    places: those where the student's check cells were. They go to the first
    one with the whole answer above it; of two answers the lower one counts,
    if one of the places is below it.
    """
    remarks, needed = [], _needed(cells, written, asked)

    def missing(place):
        return needed.difference(*written[:place])

    complete = [place for place in places if not missing(place)]
    place = (complete or places)[0]
    for lower in complete:
        if needed.intersection(set().union(*written[place:lower])):
            place = lower
    below = [k for k, names in enumerate(written) if names & missing(place)]
    if below:
        place = below[-1] + 1
        remarks.append('the answer, or what it needs, stands below its check: '
                       'it was checked there')
    if asked.intersection(set().union(*written[place:])):
        remarks.append('below the last check the answer is written once more: '
                       'the one above was checked')
    return place, remarks


def _drop_stubs(cells: Sequence[Cell], written: Sequence[set[str]],
                answers: Iterable[NotebookNode]) -> None:
    """Drop stubs from the answers, of names that another cell writes."""
    for answer in answers:
        elsewhere = set().union(*(names for names, (_, cell) in zip(
            written, cells) if cell is not answer))
        answer.source = _without_stubs(answer.source, elsewhere)


def _taken_apart(handed_in: NotebookNode,
                 checks: Iterable[NotebookNode]) -> Apart:
    """What a student wrote, and where our check cells were.

    A check cell in which something else stands is a student's own: who copies
    one, copies its name.
    """
    names = {cell.metadata.nbgrader.grade_id for cell in checks}
    plain = {text for cell in checks
             for text in (cell.source, visible(cell.source))}
    lines = {line for text in plain for line in _lines(text)}
    calls = {line for line in lines if line.startswith('check(')}
    cells: list[Cell] = []
    seen: dict[str | None, set[str]] = {}
    places: list[int] = []
    changed: list[int] = []
    for cell in handed_in.cells:
        grade_id = _grade_id(cell)
        named = grade_id in names
        is_ours = cell.source in plain or named and lines.issuperset(
            _lines(cell.source))
        if is_ours or named:
            seen.setdefault(grade_id if named else None, set()).add(
                cell.source)
        if is_ours:
            places.append(len(cells))
            continue
        make = (new_code_cell if cell.cell_type == 'code'
                else new_markdown_cell)
        cells.append(Cell(grade_id, make(cell.source)))
        if named:
            changed.append(len(cells))
        if places and calls & _lines(cell.source):  # an answer with its check
            places.append(len(cells))
    return Apart(cells, seen, places or changed or [len(cells)])


def _lines(source: str) -> set[str]:
    """Lines that are neither empty nor comments."""
    return {line for line in map(str.strip, source.splitlines())
            if line and not line.startswith('#')}


def _code_again(cells: list[Cell], asked: set[str]) -> bool:
    """Make code of an answer that is text now, unless one is code: was it?

    One key does that in Jupyter. Who has answered in another cell may keep an
    old answer as text.
    """
    places = [k for k, (grade_id, cell) in enumerate(cells)
              if grade_id == 'answer' and cell.cell_type != 'code']
    there = set().union(*_written(cells, asked))
    lost = [k for k in places if asked - there & _names(cells[k].cell.source)]
    if not any(grade_id == 'answer' and cell.cell_type == 'code'
               for grade_id, cell in cells):
        lost = lost or places[-1:]
    for k in lost:
        cells[k] = Cell('answer', new_code_cell(cells[k].cell.source))
    return bool(lost)


def _grade_id(cell: NotebookNode) -> str | None:
    """nbgrader's name of a cell; a cell's id is the same in our notebooks."""
    found = cell.metadata.get('nbgrader')
    found = found.get('grade_id') if isinstance(found, dict) else None
    return found if isinstance(found, str) else cell.get('id')


def _change(cell: NotebookNode,
            seen: Mapping[str | None, set[str]]) -> str | None:
    """What was done to a check cell: 'deleted', 'changed', or None."""
    named = seen.get(cell.metadata.nbgrader.grade_id, set())
    if {cell.source, visible(cell.source)} & (named | seen.get(None, set())):
        return None
    return 'changed' if named else 'deleted'


def visible(source: str) -> str:
    """One of our cells as students see it, without hidden tests."""
    before, begin, rest = source.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before.removesuffix('\n') + after if begin else source


def is_check(cell: NotebookNode) -> bool:
    """Is it one of our cells that check, and give points?"""
    return bool(cell.metadata.get('nbgrader', {}).get('grade'))


def imports_of(notebook: NotebookNode) -> str:
    """The first cell with code, which imports."""
    return next(cell.source for cell in notebook.cells
                if cell.cell_type == 'code')


def _has_lines(cells: Iterable[NotebookNode], text: str) -> bool:
    """Is each line of a text in some code cell?"""
    there = {line.strip() for cell in cells if cell.cell_type == 'code'
             for line in cell.source.splitlines()}
    return there.issuperset(map(str.strip, text.splitlines()))


def asked_for(checks: Iterable[NotebookNode]) -> set[str]:
    """The names of the functions and classes that are checked."""
    return {name for cell in checks for name in re.findall(
        r"\('[\w-]+', '[\w-]+', (\w+)\)", cell.source)}


def defined(source: str) -> Iterator[Definition]:
    """The functions and classes of a cell.

    Found without Python's parser, which deep nesting can crash.
    """
    lines = source.splitlines(keepends=True)
    edges = [k for k, line in enumerate(lines) if re.match(r'\S', line)]
    for begin, end in pairwise([*edges, len(lines)]):
        found = re.match(r'(?:async def|def|class) (\w+)', lines[begin])
        if found:
            text = ''.join(lines[begin:end])
            yield Definition(found[1], slice(begin, end), _is_stub(text))


def _is_stub(text: str) -> bool:
    """Does a function come to our line before it can return anything?"""
    returns = True
    for line in text.splitlines():
        code = line.partition('#')[0]
        if re.match(r'\s*(?:async )?def ', code):
            returns = False
        returns |= bool(re.search(r'(?:^|:)\s*(?:return|yield)\b', code))
        if STUB in code and not returns:
            return True
    return False


def _names(source: str) -> set[str]:
    """The names of functions and classes that are written, and no stubs."""
    return {one.name for one in defined(source) if not one.is_stub}


def _written(cells: Sequence[Cell], asked: set[str]) -> list[set[str]]:
    """Of each cell the names of `_names`, a list of sets.

    A name that is asked for and nowhere written so may be in `name = other`,
    or written within `if` or `try`.
    """
    codes = [cell.source if cell.cell_type == 'code' else ''
             for _, cell in cells]
    written = [_names(code) for code in codes]
    for name in asked.difference(*written):
        for names, code in zip(written, codes):
            if re.search(rf'^{name}\s*(:[^=\n]*)?=(?!=)|^[ \t]+(async def|def|'
                         rf'class) {name}\b', code, re.MULTILINE) and (
                             STUB not in code):
                names.add(name)
    return written


def _needed(cells: Sequence[Cell], written: Sequence[set[str]],
            asked: set[str]) -> set[str]:
    """Names asked for, and those that their cells name in turn, if written."""
    there: set[str] = set().union(*written)
    needed: set[str] = set()
    more = set(asked)
    words = [{*re.findall(r'\w+', cell.source)} & there for _, cell in cells]
    while more:
        needed |= more
        more = set().union(*(found for found, names in zip(words, written)
                             if names & more)) - needed
    return needed & there


def _without_stubs(source: str, names: set[str]) -> str:
    """Without what is no answer yet, of these names."""
    lines = source.splitlines(keepends=True)
    for one in reversed([*defined(source)]):
        if one.is_stub and one.name in names:
            del lines[one.lines]
    return ''.join(lines)


def hidden_cases(folder: PathLike, exercise: str) -> dict[str, list[Case]]:
    """The cases of hidden checks, by part of the exercise."""
    return json.loads((Path(folder) / f'{exercise}.json').read_text())
