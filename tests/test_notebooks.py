"""What all notebooks have in common."""
import ast
import csv
import json
import re
from copy import deepcopy
from functools import cache
from importlib import import_module
from pathlib import Path

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter

ROOT = Path(__file__).parents[1]
LESSON = ('', 'training', 'collectives', 'kvstore', 'asynchrony',
          'pipelines', 'recovery')  # rooms of the package that chapters build
NOTEBOOKS = sorted(path for path in (ROOT / 'notebooks').rglob('*.ipynb')
                   if '.ipynb_checkpoints' not in path.parts)
each_notebook = pytest.mark.parametrize('path', NOTEBOOKS,
                                        ids=lambda path: path.stem)
CHAPTERS = [path for path in NOTEBOOKS if path.parent.name == 'notebooks'
            and path.stem[0].isdigit()]
LATER = 'asynchrony', 'recovery'  # rooms of which they know nothing
EXERCISES = ROOT / 'notebooks' / 'exercises'  # from all chapters


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


@each_notebook
def test_d2lps_comes_first(path):
    """It makes the settings that MXNet reads when it starts."""
    first = next(node for code in code_of(path) for node in imports_of(code))
    assert ast.unparse(first) == 'import d2lps'


@each_notebook
def test_what_is_saved_came_as_expected(path):
    """Notebooks are saved on a quiet machine."""
    saved = json.dumps([cell.get('outputs') for cell in cells_of(path)])
    assert 'not here, not now: ' not in saved


def expected_in(code):
    """The words of the expectations in a cell."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(
                node.func).endswith('expect'):
            yield ast.literal_eval(node.args[0])


def test_the_table_of_make_measure_has_what_is_expected():
    """And no more; each held in nine of ten runs on a quiet machine."""
    with open(ROOT / 'notebooks/results/expectations.csv', newline='') as file:
        rows = [*csv.DictReader(file)]
    measured = {(row['chapter'], row['expectation']) for row in rows}
    assert measured == {(path.stem, words) for path in CHAPTERS
                        for code in code_of(path)
                        for words in expected_in(code)}
    for row in rows:
        assert int(row['held']) >= 0.9 * int(row['of']) > 0, row


class Bare(ast.NodeTransformer):
    """Drop what a package's function has and a lesson's does not.

    These are docstrings, annotations, the checks of `@checked(...)`,
    `@_as_tuple`, which keeps what a generator yields, and `__repr__`.
    """

    def visit_FunctionDef(self, node):
        if node.name == '__repr__':
            return None
        node.decorator_list = [
            one for one in node.decorator_list
            if not ast.unparse(one).startswith(('checked(', '_as_tuple'))]
        node.returns = None
        return self.without_docstring(node)

    def visit_ClassDef(self, node):
        return self.without_docstring(node)

    def without_docstring(self, node):
        if ast.get_docstring(node) is not None:
            del node.body[0]
        return self.generic_visit(node)

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_AnnAssign(self, node):
        if node.value is None:  # nothing but a type
            return None
        return ast.Assign([node.target], node.value, lineno=node.lineno)


def parts_of(tree):
    """The bare functions and classes of a syntax tree, by their names."""
    return {node.name: ast.unparse(Bare().visit(node)) for node in tree.body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


@cache
def parts_of_package(without=()):
    """Names and what they stand for; two modules may share a name."""
    parts = {}
    for room in set(LESSON) - set(without):
        for path in (ROOT / 'd2lps' / room).glob('[!_]*.py'):
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
    package = parts_of_package(without=() if all_rooms else LATER)
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


def folded(cell):
    """Whether a cell shows a bar in place of its source.

    JupyterLab looks at one mark, the book at the other.
    """
    marks = (cell['metadata'].get('jupyter', {}).get('source_hidden', False),
             'hide-input' in cell['metadata'].get('tags', ()))
    assert marks[0] == marks[1], ''.join(cell['source'])
    return marks[0]


@each_notebook
def test_pictures_have_alternative_texts(path):
    """Code cells have it in their metadata, as "alt"."""
    assert [number for number, cell in enumerate(cells_of(path))
            if '' in pictures_of(cell)] == []


# A cell teaches, or it checks: what checks is folded away, below its lesson
# or below the text that explains what the lesson has shown.
ASSERTS = re.compile(r'^\s*assert\b', re.M)
CHECKS = re.compile(r'^\s*assert\b|\bexpect\(|\byour_turn\(', re.M)
EXPECTS = re.compile(r'\bexpect\(')
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
            if not CHECKS.search(source):
                yield f'cell {number} is folded and checks nothing'
            if shown and 'your_turn(' not in source:
                yield f'cell {number} is folded and shows something'
            if not lesson:
                yield f'cell {number} is folded and not below a lesson'
        else:
            lesson = True
            if ASSERTS.search(source) or EXPECTS.search(source):
                yield f'cell {number} checks in sight'
            if not (shown or BUILDS.search(source)
                    or 'turn' in cell['metadata']):
                yield f'cell {number} shows nothing'


@pytest.mark.parametrize('path', CHAPTERS, ids=lambda path: path.stem)
def test_a_cell_teaches_or_it_checks(path):
    faults = [*mixed(cells_of(path))]
    assert faults == []


def answers(cells):
    """For each question, the cells between it and its answer."""
    below = None
    for cell in cells:
        source = ''.join(cell['source'])
        if cell['cell_type'] == 'markdown':
            if below is not None and '**Answer' in source:
                yield below
                below = None
            if '**Predict' in source:
                assert below is None, f'no answer before {source}'
                below = []
        elif below is not None:
            below.append(cell)
    assert below is None


@pytest.mark.parametrize('path', CHAPTERS, ids=lambda path: path.stem)
def test_answers_are_hidden(path, monkeypatch):
    """And no check, whose first line tells the answer, stands above it."""
    monkeypatch.syspath_prepend(ROOT / 'setup')
    hiding = import_module('fold')
    notebook = json.loads(path.read_text())
    for below in answers(notebook['cells']):
        for cell in below:
            assert not folded(cell), ''.join(cell['source'])
    shown = hiding.unfold(deepcopy(notebook))
    assert hiding.fold(deepcopy(shown)) == notebook, 'run make fold'
    assert hiding.unfold(hiding.fold(deepcopy(shown))) == shown
    hidden = [cell for cell in notebook['cells']
              if cell['metadata'].get('jupyter', {}).get('outputs_hidden')]
    assert len(hidden) >= 3
    for cell in hidden:  # JupyterLab shows the first line beside its bar
        assert cell['outputs'][0] == hiding.COVER


def test_a_program_that_hides_no_result_shows_no_cover(monkeypatch):
    """As nbconvert and nbviewer: nothing there is to be clicked."""
    monkeypatch.syspath_prepend(ROOT / 'setup')
    hiding = import_module('fold')
    notebook = nbformat.v4.new_notebook(cells=[
        nbformat.v4.new_markdown_cell('**Predict.** How many?'),
        nbformat.v4.new_code_cell('6 * 7', outputs=[nbformat.v4.new_output(
            'execute_result', {'text/plain': 'forty-two'})])])
    page, _ = HTMLExporter(template_name='classic').from_notebook_node(
        nbformat.reads(hiding.written(hiding.fold(notebook)), 4))
    assert 'forty-two' in page and hiding.GUESS not in page
