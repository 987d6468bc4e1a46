"""Nothing that a student writes runs, or loads, where a teacher reads it."""
import base64
import re
from collections import Counter

import nbformat
import pytest
from handins import answered, graded, hand_in, judged, with_cell
from hostile import JS, MARKDOWN, OUT, OUTPUTS, SCRIPT, hostile_file
from nbconvert.exporters import HTMLExporter
from nbconvert.filters import markdown2html
from nbgrader.server_extensions.formgrader.handlers import template_path
from traitlets.config import Config

from teaching.harmless import as_typed, harmless

pytestmark = pytest.mark.filterwarnings('ignore')  # of nbformat, nbgrader
RESOURCES = {'assignment_id': 'tree', 'notebook_id': 'tree', 'base_url': '',
             'submission_id': 'a', 'index': 0, 'total': 1, 'student': 'eve',
             'last_name': None, 'first_name': None, 'notebook_path': 'a'}
OURS = [cell.source for cell in judged().cells if cell.cell_type == 'markdown']
# Tags that do nothing, without attributes that could.
HARMLESS = re.compile(r'<(div|pre|code|span|p)(\s+(class|id|style|tabindex|'
                      r'data-mime-type|data-type)="[^"]*")*>')


def tags(page):
    return Counter(re.findall('<[a-z!?][^>]*>', page, re.IGNORECASE))


def shown(notebook):
    """The page that the formgrader makes of a submission."""
    config = Config()
    config.HTMLExporter.template_name = 'formgrade'
    config.HTMLExporter.extra_template_basedirs = [template_path]
    page, _ = HTMLExporter(config=config).from_notebook_node(
        notebook, resources=dict(RESOURCES))
    return page


def test_each_text_is_shown_as_it_was_typed():
    for text in MARKDOWN:
        page = markdown2html(as_typed(text))
        assert all(map(HARMLESS.fullmatch, tags(page))), text
        assert page.count('<code>') == page.count('</pre>') == 1, text
    # Our own texts stay, with their links.
    assert any('](' in text for text in OURS)
    assert [cell.source for cell in harmless(judged(), OURS).cells
            if cell.cell_type == 'markdown'] == OURS


def test_a_picture_of_a_few_bytes_fills_no_memory():
    """Eight bytes of it can say that it has a thousand million pixels."""
    def png(width, height):
        return (b'\x89PNG\r\n\x1a\n\0\0\0\rIHDR' + width.to_bytes(4, 'big')
                + height.to_bytes(4, 'big') + b'\1\0\0\0\0')

    for picture, stays in (
            (png(4000, 5000), True), (png(4001, 5000), False),
            (png(30_000, 30_000), False)):
        cell = nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output(
            'display_data', {'image/png': base64.b64encode(
                picture).decode()})])
        made = harmless(nbformat.v4.new_notebook(cells=[cell]))
        assert bool(made.cells[0].outputs) == stays


def test_of_long_cells_the_beginning_is_shown():
    """Markdown takes a time that grows with the square of their length."""
    code, text = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell
    ours, check = text('x' * 10 ** 6), code('y' * 10 ** 6)
    check.metadata.nbgrader = {'grade': True, 'grade_id': 'check-sum'}
    made = harmless(nbformat.v4.new_notebook(cells=[
        text('short'), text('\\begin{a}' * 10 ** 5), code('x = 1\n' * 5000),
        *[text('a' * 9000) for _ in range(20)],
        *[code('y = 2\n' * 10 ** 4) for _ in range(3)], ours, check,
        text('last'), code('last')]), [ours.source])
    first, begin, whole, *others, kept, left, last, final = [
        cell.source for cell in made.cells]
    assert (first, last, final) == (as_typed('short'), as_typed('last'),
                                    'last')
    assert begin == as_typed(('\\begin{a}' * 1112)[:10_000] + (
        '\n\n[cut: 890000 more characters]'))
    assert whole == 'x = 1\n' * 5000
    assert (kept, left) == (ours.source, check.source)
    cut = [cell for cell in others if 'more characters]' in cell]
    assert cut[-1] == '\n\n# [cut: 60000 more characters]'
    assert sum(map(len, [first, begin, *others[:20]])) < 101_000
    assert sum(map(len, [whole, *others[20:]])) < 101_000


@pytest.mark.full
def test_from_what_is_handed_in_to_all_that_is_written(tmp_path, monkeypatch):
    """Names of folders and files, texts, outputs and errors of one student."""
    monkeypatch.setenv('JUPYTER_DATA_DIR', str(tmp_path / 'data'))
    name = f'<img src=x onerror={JS}>'.replace('/', '∕')
    notebook = hostile_file(answered())
    with_cell(notebook, f'raise type({SCRIPT!r}, (Exception,), {{}})('
              f'{SCRIPT!r})')
    displayed = [(output['data'], output['metadata']) for output in OUTPUTS
                 if output['output_type'] == 'display_data']
    with_cell(notebook, f'for data, more in {displayed!r}:\n'
              '    display(data, raw=True, metadata=more)')
    with_cell(notebook, f'from IPython.display import HTML\nHTML({SCRIPT!r})')
    notebook.cells[0].source += '\n'
    hand_in(tmp_path, name, notebook)
    hand_in(tmp_path, name, f'{{{SCRIPT}', f'tree{name}')
    hand_in(tmp_path, name, '{"cells": []}', name)
    [row] = graded(tmp_path).values()
    assert row['points'] == '10' and name in row['remarks']
    [page] = (tmp_path / 'out' / 'feedback').iterdir()
    text = page.read_text()
    assert name not in text and '&lt;img src=x' in text
    assert not re.search('<(script|img|a|svg) ', text)
    assert "default-src 'none'" in text
    expected = tags(shown(harmless(judged(), OURS)))
    for path in (tmp_path / 'out' / 'course').glob('*ed/*/tree/tree.ipynb'):
        notebook = nbformat.read(path, 4)
        assert len(notebook.cells) > 100
        assert all({*cell.metadata} <= {'nbgrader'} for cell in notebook.cells)
        assert OUT not in str([(cell.metadata, cell.id)
                               for cell in notebook.cells])
        added = tags(shown(notebook)) - expected
        assert not [tag for tag in added if not HARMLESS.fullmatch(tag)]
    # Nor does JupyterLab trust it: nothing was signed.
    assert not list((tmp_path / 'data').rglob('*'))
