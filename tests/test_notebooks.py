"""What all notebooks have in common."""
import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / 'd2lps').rglob('*.py'))
NOTEBOOKS = sorted(path for path in (ROOT / 'notebooks').rglob('*.ipynb')
                   if '.ipynb_checkpoints' not in path.parts)
each_notebook = pytest.mark.parametrize('path', NOTEBOOKS,
                                        ids=lambda path: path.stem)
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


@pytest.mark.parametrize('code, lines', [
    ('import d2lps', 1), ('from d2lps import (a,\n                   b)', 2),
    ('def f():\n    import time\n', 1), ("text = '''\nimport os\n'''", 0),
    ('imported = 1', 0)])
def test_the_rule_counts_statements_and_not_words(code, lines):
    assert sum(map(lines_of, imports_of(code))) == lines


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


def parts_of_package():
    """Names and what they stand for; two modules may share a name."""
    parts = {}
    for path in MODULES:
        if path.stem != '__main__':
            for name, code in parts_of(ast.parse(path.read_text())).items():
                parts.setdefault(name, []).append(code)
    return parts


def parts_of_notebook(path):
    return [part for code in code_of(path)
            for part in parts_of(ast.parse(code)).items()]


@each_notebook
def test_code_in_notebook_and_package_is_the_same(path):
    package = parts_of_package()
    for name, code in parts_of_notebook(path):
        if name in package:
            assert code in package[name], name


def test_chapter_1_builds_data_parallelism_in_full():
    path = ROOT / 'notebooks' / '01-several-devices.ipynb'
    assert {'get_params', 'allreduce', 'split_batch',
            'train_batch'} <= set(dict(parts_of_notebook(path)))
