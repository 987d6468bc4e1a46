"""What all notebooks have in common."""
import ast
import csv
import json
import re
from functools import cache
from pathlib import Path

import pytest
from d2lps.expectations import told_in

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / 'd2lps').rglob('*.py'))
NOTEBOOKS = sorted(path for path in (ROOT / 'notebooks').rglob('*.ipynb')
                   if '.ipynb_checkpoints' not in path.parts)
each_notebook = pytest.mark.parametrize('path', NOTEBOOKS,
                                        ids=lambda path: path.stem)
CHAPTERS = [path for path in NOTEBOOKS if path.parent.name == 'notebooks'
            and path.stem[0].isdigit()]
LATER = 'asynchrony', 'recovery'  # rooms of which they know nothing
EXERCISES = ROOT / 'notebooks' / 'exercises'  # from all chapters
MOST_IMPORTS = 5
WIDTH = 79


def cells_of(path):
    return json.loads(path.read_text())['cells']


def code_of(path):
    """The code that runs in the notebook itself, a text for each cell.

    Not what a worker runs (`%%px`) and not what the shell does; the lines
    stay, so that no block is left without a body.
    """
    for cell in cells_of(path):
        code = ''.join(cell['source'])
        if cell['cell_type'] == 'code' and not code.startswith('%%'):
            yield re.sub(r'^(\s*)(\w+ = )?[%!].*$', r'\1pass', code,
                         flags=re.M)


def imports_of(code):
    """The import statements of a cell, those inside functions as well."""
    return [node for node in ast.walk(ast.parse(code))
            if isinstance(node, (ast.Import, ast.ImportFrom))]


def lines_of(node):
    return node.end_lineno - node.lineno + 1


@each_notebook
def test_a_notebook_has_few_lines_of_imports(path):
    """A statement over three lines counts as three."""
    found = [node for code in code_of(path) for node in imports_of(code)]
    assert sum(map(lines_of, found)) <= MOST_IMPORTS
    assert all(len(node.names) == 1 for node in found
               if isinstance(node, ast.Import))


@each_notebook
def test_d2lps_comes_first(path):
    """It makes the settings that MXNet reads when it starts."""
    first = next(node for code in code_of(path) for node in imports_of(code))
    assert ast.unparse(first) == 'import d2lps'


@each_notebook
def test_lines_of_code_are_short(path):
    for cell in cells_of(path):
        if cell['cell_type'] == 'code':
            for line in ''.join(cell['source']).splitlines():
                assert len(line) <= WIDTH, line


@each_notebook
def test_what_is_saved_came_as_expected(path):
    """Notebooks are saved on a quiet machine."""
    saved = json.dumps([cell.get('outputs') for cell in cells_of(path)])
    assert 'not here, not now: ' not in saved


def test_the_table_of_make_measure_has_what_is_expected():
    """And no more; each held in nine of ten runs on a quiet machine."""
    with open(ROOT / 'notebooks/results/expectations.csv', newline='') as file:
        rows = [*csv.DictReader(file)]
    measured = {(row['chapter'], row['expectation']) for row in rows}
    assert measured == {
        (path.stem, words) for path in CHAPTERS for cell in cells_of(path)
        for output in cell.get('outputs', ())
        for words, _ in told_in(''.join(output.get('text', '')))}
    for row in rows:
        assert int(row['held']) >= 0.9 * int(row['of']) > 0, row


def parts_of(tree):
    """The functions and classes of a syntax tree.

    Without docstrings, and without `@checked(...)`: the package checks the
    arguments of what a notebook builds, and that is no part of the lesson.
    """
    parts = [node for node in tree.body
             if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    for part in parts:
        for node in ast.walk(part):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                node.decorator_list = [
                    one for one in node.decorator_list
                    if not ast.unparse(one).startswith('checked(')]
                if ast.get_docstring(node) is not None:
                    del node.body[0]
    return {part.name: ast.unparse(part) for part in parts}


@cache
def parts_of_package(without=()):
    """Names and what they stand for; two modules may share a name."""
    parts = {}
    for path in MODULES:
        if path.stem != '__main__' and path.parent.name not in without:
            for name, code in parts_of(ast.parse(path.read_text())).items():
                parts.setdefault(name, []).append(code)
    return parts


def grown(tree):
    """The tree, with functions moved into the classes that they are put in.

    A class may grow: `Server.push = push` makes a function its method.
    """
    found = {node.name: node for node in tree.body
             if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for line in [one for one in tree.body if isinstance(one, ast.Assign)]:
        [names, *_], values = line.targets, line.value
        for name, value in zip(getattr(names, 'elts', [names]),
                               getattr(values, 'elts', [values])):
            owner = found.get(getattr(getattr(name, 'value', None), 'id', ''))
            method = found.get(getattr(value, 'id', ''))
            if method and isinstance(name, ast.Attribute) and (
                    isinstance(owner, ast.ClassDef)):
                assert method.name == name.attr
                owner.body.append(method)
                tree.body.remove(method)
    return tree


def parts_of_notebook(path):
    tree = ast.parse('\n'.join(code_of(path)))
    return list(parts_of(grown(tree)).items())


@each_notebook
def test_code_in_notebook_and_package_is_the_same(path):
    all_rooms = path in CHAPTERS or EXERCISES in path.parents
    package = parts_of_package(('exercises',) + (() if all_rooms else LATER))
    for name, code in parts_of_notebook(path):
        if name in package:
            assert code in package[name], name


def test_chapter_8_builds_a_server_in_full():
    path = ROOT / 'notebooks' / '08-a-store-from-scratch.ipynb'
    assert {'total', 'Shard', 'Server', 'place',
            'train_batch_store'} <= set(dict(parts_of_notebook(path)))


def test_chapter_1_builds_data_parallelism_in_full():
    path = ROOT / 'notebooks' / '01-data-parallelism.ipynb'
    assert {'get_params', 'allreduce', 'split_batch',
            'train_batch'} <= set(dict(parts_of_notebook(path)))


# The form of a chapter.
MOST_LINES, MOST_MINUTES = 12, 65
FIRST_SCREEN, LEAST_GUESSES = 5, 3  # cells; before a surprising result
LAST_HEADINGS = ('Summary|What You Have Seen', 'Exercises', 'References',
                 r'.*\bNext\b.*')


def prose_of(cells):
    return '\n\n'.join(''.join(cell['source']) for cell in cells
                       if cell['cell_type'] == 'markdown')


def pictures_of(cell):
    """The alternative text of each picture in a cell; '' where none is."""
    if cell['cell_type'] == 'markdown':
        return re.findall(r'!\[(.*?)\]\(', ''.join(cell['source']))
    texts = []
    for output in cell.get('outputs', []):
        data = output.get('data', {})
        if any(kind.startswith('image/') for kind in data):
            texts.append(cell['metadata'].get('alt', ''))
        for image in re.findall(r'<img[^>]*>', ''.join(
                data.get('text/html', ''))):
            found = re.search(r'alt="([^"]+)"', image)
            texts.append(found[1] if found else '')
    return texts


def minutes_of(text):
    """The reading time that a text begins with; None if it has none."""
    for line in re.split(r'(?<=[.!?|])\s|\n\s*\n', text):
        times = re.findall(r'\b(\d+|half an|an)\s(?:minute|hour)s?\b', line)
        if times and re.search(r'\bread', line, re.I):
            return max(int({'half an': 30, 'an': 60}.get(time, time))
                       for time in times)  # to run it takes less


def folded(cell):
    """Whether a cell shows a bar in place of its source.

    JupyterLab looks at one mark, the book at the other.
    """
    marks = (cell['metadata'].get('jupyter', {}).get('source_hidden', False),
             'hide-input' in cell['metadata'].get('tags', ()))
    assert marks[0] == marks[1], ''.join(cell['source'])
    return marks[0]


def faults_of(cells):
    """What keeps the cells of a notebook from being a chapter, in lines."""
    cells = [cell for cell in cells if not folded(cell)]
    faults, code = [], [cell['cell_type'] for cell in cells].index('code')
    for number, cell in enumerate(cells):
        lines = ''.join(cell['source']).splitlines()
        if cell['cell_type'] == 'code' and len(lines) > MOST_LINES:
            faults.append(f'cell {number}: {len(lines)} lines')
        if '' in pictures_of(cell):
            faults.append(f'cell {number}: no alternative text; code cells '
                          'have it in their metadata, as "alt"')
    minutes = minutes_of(prose_of(cells[:code]))
    if not minutes or minutes > MOST_MINUTES:
        faults.append(f'before the first code, minutes to read: {minutes}')
    if not any(map(pictures_of, cells[:FIRST_SCREEN])):
        faults.append(f'no picture in the first {FIRST_SCREEN} cells')
    toys = [number for number, cell in enumerate(cells) if re.search(
        r'\bexplore_\w+\(', ''.join(cell['source']))
        and cell['cell_type'] == 'code']
    if not toys or toys[0] > len(cells) / 3:
        faults.append(f'nothing to play with in the first third: {toys}')
    guesses = re.findall(r'\b(?:Predict|[Gg]uess)\b', prose_of(cells))
    if len(guesses) < LEAST_GUESSES:
        faults.append(f'asks for a guess {len(guesses)} times')
    headings = re.findall(r'^## (.*)', prose_of(cells), re.M)[-4:]
    if len(headings) < 4 or not all(map(re.fullmatch, LAST_HEADINGS,
                                        headings)):
        faults.append(f'the last headings: {headings}')
    return faults


# Markdown begins a list, a heading or a quotation with it, wherever a line
# of a paragraph happens to be broken.
MARK = re.compile(r'\s{0,3}([-+*]|\d+[.)])\s|\s{0,3}([=-]+\s*$|[>#])')


def broken_lines(text):
    """Lines of paragraphs that do not look like what they are."""
    for paragraph in re.split(r'\n\s*\n', text):
        if '```' in paragraph or paragraph.startswith(('|', '<')):
            continue
        before = ':'
        for line in paragraph.split('\n'):
            if MARK.match(line):
                if not before.rstrip('* ').endswith(':'):
                    yield line
                break
            before = line


def test_broken_lines_are_found():
    for bad in ('over $a\n+ b$ bytes', 'times\n1. So', 'from\n- a to b',
                'is more\n> 3', 'a\n---', 'number\n# 3'):
        assert len([*broken_lines(f'Some words.\n\nIt is {bad}')]) == 1
    for good in ('two:\n* a\n* b', '* a\n  b\n* c', 'over\n$a + b$',
                 '| a |\n|---|\n| 1 |', '```\na\n# b\n```', '1.5\n2.5'):
        assert [*broken_lines(f'Some words.\n\n{good}')] == []


@each_notebook
def test_no_line_of_a_paragraph_becomes_a_list(path):
    assert [*broken_lines(prose_of(cells_of(path)))] == []


@pytest.mark.parametrize('path', CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_has_the_form(path):
    assert faults_of(cells_of(path)) == []


# A cell teaches, or it checks: what checks is folded away, below its lesson
# or below the text that explains what the lesson has shown.
ASSERTS = re.compile(r'^\s*assert\b', re.M)
BUILDS = re.compile(r'^(def|class|import|from|@|%%px|%%capture)\b', re.M)


def mixed(cells):
    """Cells that are neither plainly a lesson nor plainly a check."""
    lesson = False  # whether one stands above, in the same section
    for number, cell in enumerate(cells):
        source, shown = ''.join(cell['source']), cell.get('outputs')
        if cell['cell_type'] == 'markdown':
            lesson &= not re.search('^#', source, re.M)
        elif folded(cell):
            # JupyterLab and the book show the first line of a folded cell.
            if not source.startswith('# Check: '):
                yield f'cell {number} does not say what it checks'
            if not ASSERTS.search(source):
                yield f'cell {number} is folded and checks nothing'
            if shown:
                yield f'cell {number} is folded and shows something'
            if not lesson:
                yield f'cell {number} is folded and not below a lesson'
        else:
            lesson = True
            if ASSERTS.search(source):
                yield f'cell {number} checks in sight'
            if not shown and not BUILDS.search(source):
                yield f'cell {number} shows nothing'


@pytest.mark.parametrize('path', CHAPTERS, ids=lambda path: path.stem)
def test_a_cell_teaches_or_it_checks(path):
    faults = [*mixed(cells_of(path))]
    assert faults == []


def test_mixed_cells_are_found():
    def cell(source, *shown, marks=()):
        return {'cell_type': 'code', 'source': source, 'outputs': [*shown],
                'metadata': {'jupyter': {'source_hidden': bool(marks)},
                             'tags': [*marks]}}
    text = {'cell_type': 'markdown', 'source': 'words', 'metadata': {}}
    check = cell('# Check: one\nassert x == 1', marks=['hide-input'])
    heading = text | {'source': 'words\n\n## Next'}
    assert not [*mixed([text, cell('print(1)', '1'), check])]
    assert not [*mixed([cell('print(1)', '1'), text, check, heading])]
    assert not [*mixed([text, cell('def f(x):\n    return x'), check])]
    for bad in ([cell('x = 1')], [cell('print(1)\nassert x == 1', '1')],
                [text, check], [cell('print(1)', '1'), heading, check],
                *([cell('print(1)', '1'), one] for one in (
                    cell('# Check: one\nx = 1', marks=['hide-input']),
                    cell('assert x == 1', marks=['hide-input']),
                    cell(check['source'], '1', marks=['hide-input'])))):
        assert len([*mixed(bad)]) == 1
