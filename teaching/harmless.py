"""Graded notebooks in a form that no page runs.

A teacher opens graded notebooks in nbgrader's formgrader, in JupyterLab and as
pages of nbgrader's. Scripts there would act with the teacher's rights. So the
notebook has no HTML, no script, no link and no picture from elsewhere: outputs
are texts, errors, and pictures in PNG, and text cells are shown as they were
typed, as one block of code.
"""
import base64
import re
from collections.abc import Collection

from nbformat import NotebookNode, from_dict
from nbgrader.utils import is_grade

from d2lps.checks import writable

PNG = b'\x89PNG\r\n\x1a\n\0\0\0\rIHDR'  # then come width and height
MOST_PIXELS = 20_000_000  # a file of few bytes can have more than memory
# Characters that are shown of a text cell, and of all cells of a notebook.
CELL, NOTEBOOK = 10_000, 100_000
HARDLY = 100  # so few more are shown all the same, also where no room is left
# JupyterLab makes links of addresses in outputs, but not with a space here.
ADDRESS = re.compile(r':(?=//)|\bwww(?=\.)', re.IGNORECASE)
# A terminal's codes but for colours, such as those of links.
CODES = re.compile(r'\x1b(?!\[)')


def as_typed(text: str) -> str:
    """Markdown that shows a text as it is: a block of code.

    Nothing in it can end the block, whose marks are longer than any in it.
    """
    longest = max(map(len, re.findall('`+', text)), default=0)
    mark = '`' * max(3, longest + 1)
    return f'{mark}\n{text}\n{mark}'


def harmless(notebook: NotebookNode,
             ours: Collection[str] = ()) -> NotebookNode:
    """A graded notebook that can be shown to a teacher: a new one.

    notebook: as `rebuild` makes it, so that names and metadata of its cells
    are ours, with outputs that came through `kernel_messages`.
    ours: sources of text cells that are not a student's; they stay. Of a
    student's long cells the beginning is shown, and how much is not.
    """
    # Characters that may still be shown, of code and of text.
    room = {'code': NOTEBOOK, 'text': NOTEBOOK}
    return from_dict({
        'nbformat': 4, 'nbformat_minor': 5, 'metadata': {
            'kernelspec': {'name': 'python3', 'display_name': 'Python 3',
                           'language': 'python'},
            'language_info': {'name': 'python'}},
        'cells': [_cell(cell, ours, room) for cell in notebook.cells]})


def _cell(cell, ours, room):
    """The harmless version of a cell, as a dictionary."""
    source = writable(cell.source)
    made = {'cell_type': cell.cell_type, 'id': cell.id, 'source': source,
            'metadata': cell.metadata}
    if cell.cell_type == 'code':
        if not is_grade(cell):  # check cells are ours, and stay whole
            made['source'] = _cut(source, room, 'code', NOTEBOOK, '# ')
        outputs = map(_output, cell.outputs)
        made |= {'execution_count': cell.execution_count,
                 'outputs': [output for output in outputs if output]}
    elif cell.source not in ours:
        made['source'] = as_typed(_cut(source, room, 'text', CELL))
    return made


def _cut(text, room, kind, most, before=''):
    """The beginning of a text: at most `most` characters, if there is room.

    before: what begins the line that says how much is not shown.
    """
    length = min(most, room[kind])
    room[kind] -= min(length, len(text))
    more = len(text) - length
    return text if more <= HARDLY else (
        f'{text[:length]}\n\n{before}[cut: {more} more characters]')


def _output(output):
    """An output without active parts, or nothing if no part is left."""
    kind = output.output_type
    if kind == 'stream':
        return {'output_type': kind, 'name': output.name,
                'text': _plain(output.text)}
    if kind == 'error':
        return {'output_type': kind, 'ename': _plain(output.ename),
                'evalue': _plain(output.evalue),
                'traceback': [*map(_plain, output.traceback)]}
    left = {}
    if picture := _picture(output.data.get('image/png', '')):
        left['image/png'] = picture
    if 'text/plain' in output.data:
        left['text/plain'] = _plain(output.data['text/plain'])
    return left and {'output_type': 'display_data', 'data': left,
                     'metadata': {}}


def _plain(text):
    """Text, without the addresses that JupyterLab makes links of."""
    return ADDRESS.sub(r'\g<0> ', CODES.sub('', writable(text)))


def _picture(text):
    """A picture in base64, if it is a PNG, and none that fills the memory."""
    try:
        data = base64.b64decode(''.join(text.split()), validate=True)
    except ValueError:
        return None
    width, height = (int.from_bytes(data[k:k + 4], 'big') for k in (16, 20))
    if not data.startswith(PNG) or width * height > MOST_PIXELS:
        return None
    return base64.b64encode(data).decode()
