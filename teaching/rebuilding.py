"""The notebook that is graded: a student's cells, and our check cells.

The student's cells are run in their order. Our check cells come once, below
the last cell that has one of our checks in it, or else at the end. Cells below
them that the answer needs are run above them. Of two answers above the checks
the lower one counts, as in Jupyter.
"""
import copy
import re
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.utils import is_grade

Cells: TypeAlias = list[NotebookNode]

# Before each check: a student's variable may have the same name.
IMPORT = 'from d2lps.exercises import check, hidden\n'
STUB = "raise NotImplementedError('write your answer here')"
# Names that a line binds: of a function or class, of a variable, by an import.
# (Python's own parser can be crashed, by deep nesting.)
DEFINITION = re.compile(r'(?:async def|def|class) (\w+)')
BINDING = re.compile(
    rf'^[ \t]*{DEFINITION.pattern}|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)'
    r'|^(?:from \S+ )?import ([^#\n]+)', re.MULTILINE)


class Rebuilt(NamedTuple):
    """A notebook to grade, and remarks on what its student had changed."""
    notebook: NotebookNode
    remarks: list[str]


def rebuild(template: NotebookNode, handed_in: NotebookNode) -> Rebuilt:
    """A student's notebook with the check cells of the solved source.

    template: the solved source.
    """
    made = copy.deepcopy(template)
    checks = [cell for cell in made.cells if is_grade(cell)]
    asked = checked_names(checks)
    above, below = _own_cells(handed_in, checks)
    remarks = _is_the_solution(handed_in, template)
    remarks += _changed_checks(handed_in, checks)
    remarks += _make_code(above, below, asked)
    _drop_stubs([*above, *below])
    remarks += _move_up(above, below, asked)
    if asked & _names_of(below):
        remarks.append('below the last check the answer is written once more: '
                       'the one above was checked')
    remarks += _mark_answer(above, asked, made)
    remarks += _put_imports_back(above, asked, made)
    for cell in checks:
        cell.source = IMPORT + cell.source
    # Hidden checks come last: a visible check's reason could tell their cases.
    checks.sort(key=lambda cell: grade_id(cell).startswith('hidden'))
    made.cells = [*above, *checks, *below]
    for k, cell in enumerate(made.cells):
        cell.id = cell.metadata.get('nbgrader', {}).get('grade_id', f'c{k}')
    return Rebuilt(made, remarks)


# Steps of `rebuild`. Those that change cells return remarks on that.
def _mark_answer(above: Cells, asked: set[str],
                 template: NotebookNode) -> list[str]:
    """Tell the gradebook which cell is the answer: the lowest one that is."""
    answers = [cell for cell in above if asked & _names_of([cell])]
    missing = [] if answers else [new_code_cell('')]
    above += missing
    [ours] = [cell for cell in template.cells if grade_id(cell) == 'answer']
    [*answers, *missing][-1].metadata = ours.metadata
    return ['the cell for the answer is not there'] if missing else []


def _put_imports_back(above: Cells, asked: set[str],
                      template: NotebookNode) -> list[str]:
    """Begin with our imports, unless they stand above the first answer."""
    imports = next(cell.source for cell in template.cells
                   if cell.cell_type == 'code')
    before: Cells = []
    for cell in above:
        if asked & _names_of([cell]):
            break
        before.append(cell)
    if _lines(imports) <= _union(_lines(_code(cell)) for cell in before):
        return []
    above.insert(0, new_code_cell(imports))
    return ['lines of the first cell, which imports, were changed, moved or '
            'deleted: they are run before yours']


def _own_cells(handed_in: NotebookNode, checks: Iterable[NotebookNode]
               ) -> tuple[Cells, Cells]:
    """Copies of the student's own cells, above and below the last check.

    A check cell in which other code stands is a student's own: a copy of a
    cell has the name of the cell.
    """
    names = {grade_id(cell) for cell in checks}
    lines = _union(_lines(cell.source) for cell in checks)
    cells: Cells = []
    place = None
    for cell in handed_in.cells:
        here = _lines(cell.source)
        is_ours = here <= lines and (here or grade_id(cell) in names)
        if not is_ours:
            make = (new_code_cell if cell.cell_type == 'code'
                    else new_markdown_cell)
            cells.append(make(cell.source))
        if any(line.startswith('check(') for line in here & lines):
            place = len(cells)
    return (cells, []) if place is None else (cells[:place], cells[place:])


def _is_the_solution(handed_in: NotebookNode,
                     template: NotebookNode) -> list[str]:
    """A remark if all code of the solved source is there, cell for cell.

    A student's version does not have the hidden checks.
    """
    theirs = {cell.source.strip() for cell in handed_in.cells}
    ours = {_code(cell).strip() for cell in template.cells} - {''}
    return ["it is the teacher's own solution, cell for cell"
            ] if ours <= theirs else []


def _changed_checks(handed_in: NotebookNode,
                    checks: Iterable[NotebookNode]) -> list[str]:
    """Remarks on checks of which the student's notebook has no line."""
    lines = _union(_lines(cell.source) for cell in handed_in.cells)
    names = {grade_id(cell) for cell in handed_in.cells}
    return [f'the cell {name} was '
            f'{"changed" if name in names else "deleted"}: put back'
            for cell in checks if (name := grade_id(cell)).startswith('check')
            and not _lines(cell.source) <= lines]


def _make_code(above: Cells, below: Cells, asked: set[str]) -> list[str]:
    """Make code of an answer that is text, unless another answer is code.

    One key turns a cell to text in Jupyter. A student with an answer in
    another cell may keep an old answer as text.
    """
    remarks = []
    for cells in above, below:
        missing = asked - _union(_answered_names(_code(cell))
                                 for cell in [*above, *cells])
        for k, cell in enumerate(cells):
            is_text = cell.cell_type != 'code'
            if is_text and _bound_names(cell.source) & missing:
                cells[k] = new_code_cell(cell.source)
                remarks = ['the cell for the answer was made text: it was run '
                           'as code']
    return remarks


def _move_up(above: Cells, below: Cells, asked: set[str]) -> list[str]:
    """Move cells that the answer needs above the checks."""
    needed, there = asked | _used_names(above), _names_of(above)
    moved: Cells = []
    while more := [cell for cell in below if cell not in moved
                   and (_names_of([cell]) - there) & needed]:
        moved += more
        needed, there = needed | _used_names(more), there | _names_of(more)
    above += [cell for cell in below if cell in moved]
    below[:] = [cell for cell in below if cell not in moved]
    return ['the answer, or what it needs, stands below its check: it was run '
            'above it'] if moved else []


def _drop_stubs(cells: Cells) -> None:
    """Drop functions without an answer that are written somewhere else."""
    codes = [cell for cell in cells if cell.cell_type == 'code']
    answered = _union(_answered_names(cell.source) for cell in codes)
    for cell in codes:
        cell.source = ''.join(block for block in _blocks(cell.source)
                              if _name_of_stub(block) not in answered)


def unanswered(notebook: NotebookNode, checked: set[str]) -> int:
    """The number of checked functions and classes that lack an answer.

    checked: their names. An answer in a text cell counts: see `_make_code`.
    """
    return len(checked - _union(_answered_names(cell.source)
                                for cell in notebook.cells))


def _code(cell: NotebookNode) -> str:
    """The code of a cell: none if it is text."""
    return cell.source if cell.cell_type == 'code' else ''


def _union(sets: Iterable[set[str]]) -> set[str]:
    return set().union(*sets)


def _lines(source: str) -> set[str]:
    """Lines that are neither empty nor comments."""
    return {line for line in map(str.strip, source.splitlines())
            if line and not line.startswith('#')}


def _names_of(cells: Cells) -> set[str]:
    """The names that these cells bind."""
    return _union(_bound_names(_code(cell)) for cell in cells)


def _used_names(cells: Cells) -> set[str]:
    """All names, and other words, in the code of these cells."""
    return _union({*re.findall(r'\w+', re.sub('#.*', '', _code(cell)))}
                  for cell in cells)


def _bound_names(source: str) -> set[str]:
    """The names that code binds."""
    names = set()
    for definition, variable, imported in BINDING.findall(source):
        names |= {definition, variable, *re.findall(r'\w+', imported)}
    return names - {'', 'as'}


def _answered_names(source: str) -> set[str]:
    """The names that code binds to more than a stub."""
    return _bound_names(''.join(block for block in _blocks(source)
                          if not _name_of_stub(block)))


def _blocks(source: str) -> list[str]:
    """Pieces of code that begin at the left margin."""
    return re.split(r'^(?=\S)', source, flags=re.MULTILINE)


def _name_of_stub(block: str) -> str | None:
    """The name of a function or class that has no answer yet, or None.

    It comes to our line before it can return anything.
    """
    definition = DEFINITION.match(block)
    before, our_line, _ = block.partition(STUB)
    lines = before.split('\n')
    if not definition or not our_line or '#' in lines[-1] or any(
            re.search(r'(^|:)\s*(return|yield)\b', line.partition('#')[0])
            for line in lines):
        return None
    return definition[1]


def grade_id(cell: NotebookNode) -> str:
    """nbgrader's name of a cell; a cell's id is the same in our notebooks."""
    name = cell.metadata.get('nbgrader', {}).get('grade_id')
    return name or cell.get('id', '')


def checked_names(cells: Iterable[NotebookNode]) -> set[str]:
    """The names of the functions and classes that these cells check."""
    return _union({*re.findall(r"\('[\w-]+', '[\w-]+', (\w+)\)", cell.source)}
                  for cell in cells)
