"""What students wrote and their code has shown, so that no page runs it.

A teacher opens graded notebooks in nbgrader's formgrader, in JupyterLab and as
pages of nbgrader's, all of which can act for the teacher. So what would be
HTML, a script, a link or a picture from elsewhere is not even in the notebook:
outputs are texts, errors, and pictures in PNG and JPEG, and text cells have a
space where these things would begin, whatever turns them into HTML. Formulas,
tables, lists, code and emphasis stay.
"""
import base64
import re

from nbformat import from_dict

from d2lps.checks import writable

PICTURES = {'image/png': b'\x89PNG\r\n\x1a\n', 'image/jpeg': b'\xff\xd8\xff'}
MOST_PIXELS = 20_000_000  # a file of few bytes can have more than memory
STREAMS = 'stdout', 'stderr'
KINDS = 'code', 'markdown', 'raw'
LARGEST_COUNT = 10 ** 6
# Characters that are shown: what makes HTML of them may take a time that grows
# with the square of a cell's length. A cell that is hardly longer stays whole.
CELL, NOTEBOOK, HARDLY = 10_000, 100_000, 100
NAME = re.compile(r'[\w-]{1,64}', re.ASCII)
METADATA = {  # of cells: what nbgrader has to know, and of which form it is
    'grade': bool, 'grade_id': NAME, 'locked': bool, 'points': (int, float),
    'schema_version': int, 'solution': bool, 'task': bool, 'cell_type': NAME,
    'checksum': NAME}
# Behind each of these comes the space. An address alone becomes a link, too.
ADDRESS = re.compile(r':(?=//)|\bwww(?=\.)', re.IGNORECASE)
ACTIVE = re.compile(
    r'<(?=[a-z/!?])'  # HTML, <javascript:...>
    r'|&(?=[a-z#])'  # &lt; and the like, which could hide others of these
    r'|\](?=[(:])'  # [words](link), ![words](picture), [words]: link
    r'|mer(?=maid)'  # a fence of this name is drawn, with pictures from afar
    # What MathJax makes links of, gives a style, or takes up more commands
    # with. Whatever follows: TeX ends a name before a digit, as in \href0.
    r'|\\(?=href|url|csname|require|mmltoken|class|cssid|style|data|bbox)'
    r'|@(?=[\w-])|'  # a mail address
    + ADDRESS.pattern, re.IGNORECASE)
# A frame in JPEG: FF C0 to CF, length, bits, height, width, colours. Wherever
# it stands: programs differ in where they look for one.
FRAME = re.compile(rb'(?=\xff[\xc0-\xc3\xc5-\xc7\xc9-\xcb\xcd-\xcf]\0.'
                   rb'.(....)[\1-\4])', re.DOTALL)
# A terminal's codes but for colours, such as those of links.
CODES = re.compile(r'\x1b(?!\[)')


def words(text):
    """Markdown that has no HTML, no links and no pictures."""
    return ACTIVE.sub(r'\g<0> ', writable(str(text)))


def harmless(notebook, ours=()):
    """A graded notebook that can be shown to a teacher: a new one.

    ours: sources of text cells that are not a student's; they stay. Of a
    student's long cells the beginning is shown, and how much is not.
    """
    room = {'code': NOTEBOOK, 'text': NOTEBOOK}
    return from_dict({
        'nbformat': 4, 'nbformat_minor': 5, 'metadata': {
            'kernelspec': {'name': 'python3', 'display_name': 'Python 3',
                           'language': 'python'},
            'language_info': {'name': 'python'}},
        'cells': [_cell(cell, k, ours, room)
                  for k, cell in enumerate(notebook.cells)]})


def _cell(cell, k, ours, room):
    found = {'cell_type': cell.cell_type if cell.cell_type in KINDS else 'raw',
             'id': _fitting(cell.get('id'), NAME) or f'c{k}', 'metadata': {}}
    told = cell.metadata.get('nbgrader')
    if isinstance(told, dict) and _fitting(told.get('grade_id'), NAME):
        found['metadata']['nbgrader'] = {
            key: told[key] for key, form in METADATA.items()
            if _fitting(told.get(key), form) is not None}
    if found['cell_type'] == 'code':
        outputs = map(_output, cell.get('outputs', ()))
        source = writable(str(cell.source))
        if not found['metadata'].get('nbgrader', {}).get('grade'):
            source = _cut(source, room, 'code', NOTEBOOK, '# ')
        count = cell.get('execution_count')
        return found | {'source': source,
                        'execution_count': count if is_count(count) else None,
                        'outputs': [one for one in outputs if one]}
    if cell.cell_type == 'markdown' and cell.source in ours:
        return found | {'source': cell.source}
    return found | {'source': _cut(words(cell.source), room, 'text', CELL)}


def _cut(text, room, kind, most, before=''):
    """The beginning of a text, for which there is room in its notebook."""
    length = min(most, room[kind])
    room[kind] -= min(length, len(text))
    more = len(text) - length
    return text if more <= HARDLY else (
        f'{text[:length]}\n\n{before}[cut: {more} more characters]')


def _fitting(value, form):
    """The value if it is of this form, else None."""
    if form is NAME:
        return value if isinstance(value, str) and NAME.fullmatch(value) else (
            None)
    return value if isinstance(value, form) else None


def is_count(value):
    """Can it be the number of a cell's run?"""
    return type(value) is int and 0 <= value < LARGEST_COUNT


def _output(told):
    """An output without what is active, or None if nothing is left."""
    kind, data = told.get('output_type'), told.get('data')
    if kind == 'stream':
        name = told.get('name')
        return {'output_type': kind, 'text': _plain(told.get('text')),
                'name': name if name in STREAMS else STREAMS[0]}
    if kind == 'error':
        return {'output_type': kind, 'ename': _plain(told.get('ename')),
                'evalue': _plain(told.get('evalue')),
                'traceback': [*map(_plain, told.get('traceback') or ())]}
    if not isinstance(data, dict):
        return None
    left = {name: picture for name, begin in PICTURES.items()
            if (picture := _picture(data.get(name), begin))}
    if 'text/plain' in data:
        left['text/plain'] = _plain(data['text/plain'])
    return left and {'output_type': 'display_data', 'data': left,
                     'metadata': {}}


def _plain(told):
    """Text, without the addresses that JupyterLab makes links of."""
    return ADDRESS.sub(r'\g<0> ', CODES.sub('', writable(_joined(told))))


def _joined(told):
    return ''.join(map(str, told)) if isinstance(told, list) else str(told)


def _picture(told, begin):
    """A picture in base64, if it is one, and none that fills the memory."""
    try:
        found = base64.b64decode(''.join(_joined(told).split()), validate=True)
    except ValueError:
        return None
    if not found.startswith(begin) or _pixels(found) > MOST_PIXELS:
        return None
    return base64.b64encode(found).decode()


def _pixels(picture):
    """How many a PNG or JPEG says that it has, or 0: then none is drawn."""
    if picture.startswith(PICTURES['image/png']):
        sizes = [picture[16:24]] if picture[12:16] == b'IHDR' else []
    else:
        sizes = [found[1] for found in FRAME.finditer(picture)]
    return max((int.from_bytes(one[:len(one) // 2], 'big')
                * int.from_bytes(one[len(one) // 2:], 'big')
                for one in sizes), default=0)
