"""What all notebooks have in common."""
import ast
import json
import re
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / 'notebooks').glob('*.ipynb'))
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


@each_notebook
def test_a_notebook_has_few_lines_of_imports(path):
    """A statement over three lines counts as three."""
    found = [node for code in code_of(path) for node in imports_of(code)]
    assert sum(node.end_lineno - node.lineno + 1
               for node in found) <= MOST_IMPORTS
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
    assert sum(node.end_lineno - node.lineno + 1
               for node in imports_of(code)) == lines
