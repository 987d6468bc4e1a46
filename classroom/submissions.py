"""What students handed in: found, read, and made into what is graded."""
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

from d2lps_exercises.checking import EXERCISES

LARGEST = 20_000_000  # bytes of a notebook
MOST_FILES = 100_000  # that are looked at in a student's folder
MOST_NOTEBOOKS = 1000
MOST_CELLS = 1000
BEGIN, END = '### BEGIN HIDDEN TESTS', '### END HIDDEN TESTS'
# Before each check: what a student has called the same is not meant.
IMPORT = 'from d2lps_exercises import check, hidden\n'
STUB = "raise NotImplementedError('write your answer here')"


class Submission(NamedTuple):
    """What one student handed in.

    student: a name that can be the name of a file. notebooks: exercise to
    notebook. remarks: exercise to a list of texts; '' for none of them.
    """
    student: str
    notebooks: dict
    remarks: dict


def read_all(folder):
    """A list of `Submission`, from a folder with a folder for each student.

    Raises ValueError if there is no student's folder in it.
    """
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise ValueError(f'FROM must be a folder; {folder} is none')
    people = sorted(path for path in folder.iterdir()
                    if path.is_dir() and not path.name.startswith('.'))
    if not people:
        raise ValueError(f'FROM must be a folder with a folder for each '
                         f'student in it; {folder} has none')
    found, names = [], set()
    for path in people:
        name = re.sub(r'[^\w.@-]', '_', path.name)
        name = name if re.match(r'\w', name) else f'student{name}'
        name = name[:60]  # a file's name has 255 bytes at most
        while name.lower() in names:
            name += '_'
        names.add(name.lower())
        try:
            submission = read(path, name)
        except (OSError, RecursionError) as error:
            submission = Submission(name, {}, {'': [
                f'the folder cannot be read: {type(error).__name__}']})
        if path.is_symlink():
            submission = Submission(name, {}, {'': [
                'the folder is a link to another place: not followed']})
        elif name != path.name:
            submission.remarks.setdefault('', []).append(
                f'the folder is called {path.name!r}')
        found.append(submission)
    return found


def read(folder, student):
    """The `Submission` in a student's folder, at whatever depth."""
    notebooks, remarks = {}, {}

    def remark(exercise, text):
        remarks.setdefault(exercise, []).append(text)

    files, all_of_them = _files(folder)
    if not all_of_them:
        remark('', f'there are more than {MOST_FILES:,} files or '
               f'{MOST_NOTEBOOKS:,} notebooks: not all were looked at')
    for path in files:
        told = str(path.relative_to(folder))
        name = _named(path)
        if path.suffix.lower() != '.ipynb':
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
        exercise = name if path.stem == name else _recognised(notebook) or name
        if not exercise:
            remark('', f'{told} is named like no exercise, and nothing in it '
                   'tells which it is')
            continue
        if path.stem != exercise:
            remark(exercise, f'wrongly named: {told} was taken for it')
        if exercise in notebooks:
            remark(exercise, f'handed in more than once: {told} was left out,'
                   ' as it is not newer')
        else:
            notebooks[exercise] = notebook
    return Submission(student, notebooks, remarks)


def _files(folder):
    """Files that may be a student's answers, and whether that is all.

    The newest first; of those of the same second, which may have come out of
    one archive, the ones with an exercise's exact name.
    """
    found, complete = [], True
    for looked_at, path in enumerate(folder.rglob('*'), 1):
        if looked_at > MOST_FILES or len(found) > MOST_NOTEBOOKS:
            complete = False
            break
        inner = path.relative_to(folder).parts
        if (not any(part.startswith('.') for part in inner)
                and (path.suffix.lower() == '.ipynb' or _named(path))
                and (path.is_symlink() or path.is_file())):
            found.append(path)
    found.sort(key=lambda path: (
        -int(path.lstat().st_mtime), path.stem not in EXERCISES, path))
    return found, complete


def _named(path):
    """The exercise that a file's name means, such as 'Tree (1).ipynb'."""
    words = re.sub(r'[^a-z]+', '-', path.name.split('.')[0].lower())
    fitting = [name for name in EXERCISES if name in words]
    return max(fitting, key=len, default=None)


def _notebook(path):
    """The notebook in a file; raises ValueError with what is wrong."""
    if path.stat().st_size > LARGEST:
        raise ValueError(f'it has more than {LARGEST:,} bytes')
    try:
        text = path.read_text(encoding='utf-8-sig')
        cells = json.loads(text)['cells']
        if len(cells) > MOST_CELLS:
            raise MemoryError  # validating it would take minutes
        notebook = nbformat.reads(text, 4)
        for cell in notebook.cells:
            cell.source = str(cell.source)
            if not isinstance(cell.metadata, dict) or cell.cell_type not in (
                    'code', 'markdown', 'raw'):
                raise ValueError('a cell is of no known kind')
    except MemoryError:
        raise ValueError(f'it has more than {MOST_CELLS} cells') from None
    except RecursionError:
        raise ValueError('it is nested too deeply') from None
    except Exception as error:
        raise ValueError(f'{type(error).__name__}') from None
    return notebook


def _recognised(notebook):
    """The exercise that a notebook's check cells name."""
    text = '\n'.join(cell.source for cell in notebook.cells)
    found = {name for name in re.findall(r"check\('([\w-]+)'", text)
             if name in EXERCISES}
    return found.pop() if len(found) == 1 else None


def rebuild(template, handed_in):
    """What is graded: the student's cells, and the check cells of the source.

    template: the solved source. Returns a notebook and a list of remarks.
    """
    ours = {cell.metadata.nbgrader.grade_id: cell for cell in template.cells
            if cell.metadata.get('nbgrader')}
    checks = [cell for cell in ours.values() if cell.metadata.nbgrader.grade]
    plain = {visible(cell.source) for cell in checks}
    cells, seen, place = [], {}, None
    for cell in handed_in.cells:
        grade_id = _grade_id(cell)
        if grade_id in ours and grade_id != 'answer' or cell.source in plain:
            seen.setdefault(grade_id, cell.source)
            place = len(cells) if place is None else place
        elif cell.cell_type == 'code':
            cells.append((grade_id, new_code_cell(cell.source)))
        else:
            cells.append((None, new_markdown_cell(cell.source)))
    place = len(cells) if place is None else place
    remarks = [f'the cell {name} was {what}: put back' for name, what in (
        (cell.metadata.nbgrader.grade_id, _change(cell, seen))
        for cell in checks) if what]
    answers = [cell for grade_id, cell in cells if grade_id == 'answer']
    if not answers:
        remarks.append('the cell for the answer is not there')
        answers = [new_code_cell('')]
        cells.insert(place, ('answer', answers[0]))
    written = [_written_in(cell) for _, cell in cells]
    missing = _asked_for(checks).difference(*written[:place])
    late = [k for k, names in enumerate(written) if names & missing]
    if late:
        place = late[-1] + 1
        remarks.append('an answer stands below its check: it was checked '
                       'there')
    elsewhere = set().union(*(names for names, (_, cell) in zip(written, cells)
                              if cell is not answers[-1]))
    answers[-1].source = _without_stubs(answers[-1].source, elsewhere)
    # What looks at hidden cases comes last: others' words would tell them.
    checks.sort(key=lambda cell: _grade_id(cell).startswith('hidden'))
    for cell in checks:
        cell.source = IMPORT + cell.source
    answers[-1].metadata = ours['answer'].metadata
    made = [cell for _, cell in cells]
    made[place:place] = checks
    for k, cell in enumerate(made):
        cell.id = cell.metadata.get('nbgrader', {}).get('grade_id', f'c{k}')
    template.cells = made
    return template, remarks


def _grade_id(cell):
    """nbgrader's name of a cell; a cell's id is the same in our notebooks."""
    found = cell.metadata.get('nbgrader')
    found = found.get('grade_id') if isinstance(found, dict) else None
    return found if isinstance(found, str) else cell.get('id')


def _change(cell, seen):
    """What was done to a check cell: 'deleted', 'changed', or None."""
    source = seen.get(cell.metadata.nbgrader.grade_id)
    if source is None:
        return 'deleted'
    return None if source in (cell.source, visible(cell.source)) else 'changed'


def visible(source):
    """One of our cells as students see it, without hidden tests."""
    before, begin, rest = source.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before.removesuffix('\n') + after if begin else source


def _asked_for(checks):
    """The names of the functions and classes that are checked."""
    return {name for cell in checks for name in re.findall(
        r"\('[\w-]+', '[\w-]+', (\w+)\)", cell.source)}


def _defined(source):
    """Functions and classes of a cell: (name, its lines, is it a stub?).

    Found without Python's parser, which deep nesting can crash.
    """
    lines = source.splitlines(keepends=True)
    edges = [k for k, line in enumerate(lines) if re.match(r'\S', line)]
    for begin, end in pairwise([*edges, len(lines)]):
        found = re.match(r'(?:async def|def|class) (\w+)', lines[begin])
        if found:
            text = ''.join(lines[begin:end])
            yield found[1], slice(begin, end), STUB in text


def _written_in(cell):
    """The names of functions and classes that a cell has an answer for."""
    if cell.cell_type != 'code':
        return set()
    return {name for name, _, is_stub in _defined(cell.source) if not is_stub}


def _without_stubs(source, names):
    """Without what is no answer yet, of these names."""
    lines = source.splitlines(keepends=True)
    for name, where, is_stub in reversed([*_defined(source)]):
        if is_stub and name in names:
            del lines[where]
    return ''.join(lines)


def hidden_cases(folder, exercise):
    """The cases of hidden checks: a dictionary from parts to lists."""
    return json.loads((Path(folder) / f'{exercise}.json').read_text())
