"""What students wrote and their code has shown, so that no page runs it.

A teacher opens graded notebooks in nbgrader's formgrader, in JupyterLab and as
pages of nbgrader's, all of which can act for the teacher. So what would be
HTML, a script, a link or a picture from elsewhere is not even in the notebook:
outputs are texts, errors, and pictures in PNG and JPEG, and text cells are
shown as they were typed, as one block of code.
"""
import base64
import re
from collections.abc import Collection
from typing import Any, TypeGuard

from nbformat import NotebookNode, from_dict

from d2lps.checks import writable

PICTURES = {'image/png': b'\x89PNG\r\n\x1a\n', 'image/jpeg': b'\xff\xd8\xff'}
MOST_PIXELS = 20_000_000  # a file of few bytes can have more than memory
STREAMS = 'stdout', 'stderr'
LARGEST_COUNT = 10 ** 6
# Characters that are shown of a text cell, and of all cells of a notebook.
CELL, NOTEBOOK = 10_000, 100_000
HARDLY = 100  # a cell that is longer by no more than this stays whole
NAME = re.compile(r'[\w-]{1,64}', re.ASCII)
# What nbgrader has to know of a cell: keys of its metadata, each with a type,
# or with NAME, which the value has to match.
METADATA: dict[str, Any] = {
    'grade': bool, 'grade_id': NAME, 'locked': bool, 'points': (int, float),
    'schema_version': int, 'solution': bool, 'task': bool, 'cell_type': NAME,
    'checksum': NAME}
# A block of code in Markdown, with no such mark in it as begins and ends it.
BLOCK = re.compile(r'(`{3,})\n((?:(?!\1).)*)\n\1', re.DOTALL)
# JupyterLab makes links of addresses in outputs, but not with a space here.
ADDRESS = re.compile(r':(?=//)|\bwww(?=\.)', re.IGNORECASE)
# The header of a frame in JPEG: FF C0 to CF, length, bits, height and width,
# which the group takes, and colours. It is looked for everywhere, because
# programs differ in where they look for it.
FRAME = re.compile(rb'(?=\xff[\xc0-\xc3\xc5-\xc7\xc9-\xcb\xcd-\xcf]\0.'
                   rb'.(....)[\1-\4])', re.DOTALL)
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
        'cells': [_cell(cell, k, ours, room)
                  for k, cell in enumerate(notebook.cells)]})


def _cell(cell, k, ours, room):
    """The harmless version of the cell with number k, as a dictionary."""
    nbgrader = _nbgrader(cell)
    is_code = cell.cell_type == 'code'
    made = {'cell_type': 'code' if is_code else 'markdown',
            'id': _fitting(cell.get('id'), NAME) or f'c{k}',
            'metadata': {'nbgrader': nbgrader} if nbgrader else {}}
    if is_code:
        source = writable(str(cell.source))
        if not nbgrader.get('grade'):  # check cells are ours, and stay whole
            source = _cut(source, room, 'code', NOTEBOOK, '# ')
        outputs = map(_output, cell.get('outputs', ()))
        count = cell.get('execution_count')
        return made | {'source': source,
                       'execution_count': count if is_count(count) else None,
                       'outputs': [one for one in outputs if one]}
    if cell.cell_type == 'markdown' and cell.source in ours:
        return made | {'source': cell.source}
    source = writable(str(cell.source))
    block = BLOCK.fullmatch(source)  # ours, of an earlier grading
    return made | {'source': as_typed(
        _cut(block[2] if block else source, room, 'text', CELL))}


def _nbgrader(cell):
    """What nbgrader has to know of a cell; empty if that is not a cell of its.
    """
    metadata = cell.metadata.get('nbgrader')
    if not isinstance(metadata, dict) or not (
            _fitting(metadata.get('grade_id'), NAME)):
        return {}
    return {key: metadata[key] for key, form in METADATA.items()
            if _fitting(metadata.get(key), form) is not None}


def _cut(text, room, kind, most, before=''):
    """The beginning of a text: at most `most` characters, if there is room.

    before: what begins the line that says how much is not shown.
    """
    length = min(most, room[kind])
    room[kind] -= min(length, len(text))
    more = len(text) - length
    return text if more <= HARDLY else (
        f'{text[:length]}\n\n{before}[cut: {more} more characters]')


def _fitting(value, form):
    """The value if it is of this form, else None. form: see `METADATA`."""
    if form is NAME:
        fits = isinstance(value, str) and NAME.fullmatch(value)
    else:
        fits = isinstance(value, form)
    return value if fits else None


def is_count(value: object) -> TypeGuard[int]:
    """Can it be the number of a cell's run?"""
    return type(value) is int and 0 <= value < LARGEST_COUNT


def _output(output):
    """An output without what is active, or nothing if nothing is left."""
    kind, data = output.get('output_type'), output.get('data')
    if kind == 'stream':
        name = output.get('name')
        return {'output_type': kind, 'text': _plain(output.get('text')),
                'name': name if name in STREAMS else STREAMS[0]}
    if kind == 'error':
        return {'output_type': kind, 'ename': _plain(output.get('ename')),
                'evalue': _plain(output.get('evalue')),
                'traceback': [*map(_plain, output.get('traceback') or ())]}
    if not isinstance(data, dict):
        return None
    left = {name: picture for name, begin in PICTURES.items()
            if (picture := _picture(data.get(name), begin))}
    if 'text/plain' in data:
        left['text/plain'] = _plain(data['text/plain'])
    return left and {'output_type': 'display_data', 'data': left,
                     'metadata': {}}


def _plain(text):
    """Text, without the addresses that JupyterLab makes links of."""
    return ADDRESS.sub(r'\g<0> ', CODES.sub('', writable(_joined(text))))


def _joined(text):
    """One text; notebooks may have a list of its lines."""
    return ''.join(map(str, text)) if isinstance(text, list) else str(text)


def _picture(text, begin):
    """A picture in base64, if it is one, and none that fills the memory.

    begin: the bytes with which pictures of its kind begin.
    """
    try:
        found = base64.b64decode(''.join(_joined(text).split()), validate=True)
    except ValueError:
        return None
    if not found.startswith(begin) or _pixels(found) > MOST_PIXELS:
        return None
    return base64.b64encode(found).decode()


def _pixels(picture):
    """How many a PNG or JPEG says that it has, or 0: then none is drawn."""
    sizes = []  # bytes: one half is for a side, the other for the other side
    if not picture.startswith(PICTURES['image/png']):
        sizes = [found[1] for found in FRAME.finditer(picture)]
    elif picture[12:16] == b'IHDR':
        sizes = [picture[16:24]]
    return max((int.from_bytes(one[:len(one) // 2], 'big')
                * int.from_bytes(one[len(one) // 2:], 'big')
                for one in sizes), default=0)
