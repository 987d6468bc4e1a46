"""What a student may write so that it runs where a teacher reads it.

Whatever runs, or is loaded without a click, asks for an address with PWNED.
"""
import base64

from nbformat import from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell

PWNED = 'pwned'
JS = f"fetch('/{PWNED}');window.{PWNED}=1"
SVG = f'<svg xmlns="http://www.w3.org/2000/svg" onload="{JS}"></svg>'
HTML = [
    f'<script>{JS}</script>', f'<ScRiPt >{JS}</sCrIpT>',
    f'<img src=x onerror="{JS}">', f'<img src="/{PWNED}">', SVG,
    f'<iframe srcdoc="<script>{JS}</script>"></iframe>',
    f'<a href="javascript:{JS}">a</a>', f'<object data="javascript:{JS}">',
    f'<details open ontoggle="{JS}">', f'<style>@import "/{PWNED}";</style>',
    f'<link rel="stylesheet" href="/{PWNED}">',
    f'<p style="background: url(/{PWNED})">a</p>',
    f'<meta http-equiv="refresh" content="0; url=/{PWNED}">',
    f'<base href="/{PWNED}/">', f'<!--><script>{JS}</script>',
    f'<![CDATA[><script>{JS}</script>]]>',
    f'</div></div></textarea></title></style><script>{JS}</script>',
    '<math><mtext><table><mglyph><style><!--</style>'
    f'<img title="--&gt;&lt;img src=x onerror={JS}&gt;">',
    f'<p data-commandlinker-command="{PWNED}">a</p>',
    f'<template shadowrootmode=open><script>{JS}</script></template>']
# What ends a block of code, or may be taken for its end, or for mathematics.
MARKS = ['```', '`' * 12, ' ```', '\t```', '~~~', '> ```', '* ```',
         '```python', '\r```\r', '\x0c```', '\u2028```', '\0```',
         '</code></pre>', '-->', '$', '$$', '```$', '$```', '\\\\(',
         '\\begin{a}', '`', '``', ']]>']
MARKDOWN = [
    *HTML, *(f'{mark}\n{HTML[0]}\n{mark}' for mark in MARKS),
    *(f'{mark}{HTML[2]}{mark}\n\n{mark}' for mark in MARKS),
    f'[a](javascript:{JS})', f'![a](/{PWNED})', f'[a][b]\n\n[b]: /{PWNED}',
    '![a](attachment:a.svg)', f'<javascript:{JS}>',
    f'http://localhost/{PWNED}', f'eve@{PWNED}.org',
    f'&lt;script&gt;{JS}&lt;/script&gt;',
    f'```mermaid\nflowchart TD; A@{{ img: "/{PWNED}.png" }}\n```',
    f'$\\href{{javascript:{JS}}}{{x}}$', f'$$\\href{{/{PWNED}}}{{x}}$$',
    f'\\begin{{a}}\\href{{/{PWNED}}}{{x}}\\end{{a}}',
    '$\\require{html}\\class{a}{x}\\cssId{notebook}{x}$',
    f'| a | b |\n|---|---|\n| <script>{JS}</script> | [a](/{PWNED}) |']


def _base64(text):
    return base64.b64encode(text.encode()).decode()


def _display(kind, data, **more):
    return {'output_type': 'display_data', 'data': {kind: data},
            'metadata': {}} | more


SCRIPT = HTML[0]
OUT = f'"><script>{JS}</script>'
OUTPUTS = [
    *(_display('text/html', text) for text in HTML),
    _display('text/html', SCRIPT, metadata={'text/html': {'isolated': True}}),
    _display('application/javascript', JS), _display('image/svg+xml', SVG),
    _display('text/latex', f'$\\href{{javascript:{JS}}}{{x}}$'),
    *(_display('text/markdown', text) for text in MARKDOWN),
    _display('application/vnd.jupyter.widget-view+json', {'model_id': 'a'}),
    _display('application/vnd.vega.v5+json', {'data': {'url': f'/{PWNED}'}}),
    _display('application/json', {'a': SCRIPT}),
    _display('application/pdf', _base64(SCRIPT)), _display('text/xml', SVG),
    _display(SCRIPT, SCRIPT), _display('text/plain', SCRIPT),
    _display('text/plain', f'http://localhost/{PWNED}'),
    _display('text/plain', f'\x1b]8;;/{PWNED}\x1b\\a\x1b]8;;\x1b\\'),
    _display('text/plain', f'\x1b[31m{SCRIPT}\x1b[0m'),
    _display('image/png', OUT), _display('image/png', _base64(SVG)),
    _display('image/jpeg', f'iVBORw0KGgo=" onerror="{JS}'),
    _display('image/gif', _base64(SVG)),
    _display('image/png', 'iVBORw0KGgo=', metadata={
        'image/png': {'width': OUT, 'height': OUT, 'alt': OUT}}),
    {'output_type': 'execute_result', 'data': {'text/html': SCRIPT},
     'metadata': {}, 'execution_count': 1},
    {'output_type': 'stream', 'name': 'stdout', 'text': SCRIPT},
    {'output_type': 'error', 'ename': SCRIPT, 'evalue': SCRIPT,
     'traceback': [SCRIPT, f'\x1b[31m{SVG}']}]
# What only the file has that a student hands in.
METADATA = {
    'title': SCRIPT, 'authors': [{'name': SCRIPT}], 'trusted': True,
    'kernelspec': {'name': OUT, 'display_name': SCRIPT, 'language': OUT},
    'language_info': {'name': OUT, 'pygments_lexer': OUT, 'mimetype': OUT},
    'widgets': {'application/vnd.jupyter.widget-state+json': {'state': OUT}}}
OF_CELLS = {'tags': [OUT], 'name': OUT, 'alt': OUT, 'trusted': True,
            'raw_mimetype': 'text/html', 'format': 'text/html',
            'magics_language': OUT, 'jupyter': {'a': OUT}, 'slideshow': OUT,
            'nbgrader': {'grade_id': OUT, 'grade': False, 'locked': False,
                         'points': OUT, 'solution': True, 'task': OUT,
                         'schema_version': OUT, 'cell_type': OUT}}
ATTACHMENTS = {'a.svg': {'image/svg+xml': _base64(SVG)},
               'a.html': {'text/html': _base64(SCRIPT)}}


def hostile(notebook):
    """A graded notebook with all of it: a cell for each."""
    notebook.cells += [
        *(new_markdown_cell(text, id=f'm{k}')
          for k, text in enumerate(MARKDOWN)),
        *(new_code_cell('1', outputs=[from_dict(output)], id=f'o{k}')
          for k, output in enumerate(OUTPUTS)),
        *(new_code_cell(source, id=f'c{k}') for k, source in enumerate((
            SCRIPT, f'%%html\n{SCRIPT}', SVG, f'%%javascript\n{JS}',
            '# &lt;b&gt;')))]
    return notebook


def hostile_file(notebook):
    """A notebook as a student may hand it in: of all types, with all of it."""
    first = len(notebook.cells)
    notebook = hostile(notebook)
    for k, cell in enumerate(notebook.cells[first:]):
        cell.metadata = from_dict(OF_CELLS)
        if k % 9 == 0:
            cell.cell_type, cell.id = ('raw', OUT)[k % 2], OUT
        elif cell.cell_type == 'markdown':
            cell.attachments = from_dict(ATTACHMENTS)
    notebook.metadata.update(from_dict(METADATA))
    return notebook
