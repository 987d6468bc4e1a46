"""The pages on which one asks Python: "Your Server" and "Planner".

Here are their controls, and the answer to the example in them, made by the
function that the browser runs later; see `static/ask.js`.
"""
import json
from html import escape
from pathlib import Path, PurePosixPath
from posixpath import relpath

from d2lps.collectives.machines.nccl_xml import MOST_TEXT
from d2lps.collectives.machines.rates import GPUS
from d2lps.pictures.book_pages import (GPUS as KINDS, MODELS, SHAPE, answer,
                                       card_gbit)
from docutils import nodes
from sphinx.errors import ExtensionError

ROOT = Path(__file__).parents[3]
FOLDER, PLACE = 'docs/book/', '% the form'
EXAMPLES = [ROOT / 'notebooks' / 'results' / f'21-{name}.txt'
            for name in ('table', 'log')]
MACHINES = {'gpu': 'V100', 'use': '', 'machines': '1', 'cards': '',
            'card_gbit': ''}
NUMBERS = {  # of a model: words, and what an empty field means
    'layers': 'Layers', 'hidden': 'Numbers for each token',
    'heads': 'Heads of attention',
    'kv_heads': 'Heads of keys and values (empty: as many)',
    'ffn': 'Width of the feed-forward network (empty: 4 · hidden)',
    'vocab': 'Different tokens', 'sequence': 'Tokens in a sequence'}


def field(name, words, control, unit='', option=''):
    """A control with its label, its unit, and room for what is wrong."""
    code = f' <code>{option or name}</code>' * (name != 'model')
    unit = f' <span class="ask-unit">{unit}</span>' if unit else ''
    return (f'<div class="ask-field"><label for="ask-{name}">{words}{code}'
            f'</label><span class="ask-control">{control}{unit}</span>'
            f'<p class="ask-error" id="ask-{name}-error" hidden></p></div>')


def named(name):
    """What all controls have; browsers would restore what was typed."""
    return (f'id="ask-{name}" name="{name}" autocomplete="off" '
            f'aria-describedby="ask-{name}-error"')


def number(name, words, value, unit='', option='', kind='numeric'):
    return field(name, words, f'<input {named(name)} inputmode="{kind}" '
                 f'value="{escape(value)}">', unit, option)


def menu(name, words, options, chosen, more=''):
    """options: (value, words)."""
    inside = ''.join(
        f'<option value="{escape(value)}"{" selected" * (value == chosen)}>'
        f'{escape(said)}</option>' for value, said in options)
    return field(name, words, f'<select {named(name)}{more}>{inside}'
                 '</select>', option='--gpu' if name == 'gpu' and not more
                 else '')


def text(name, words, value, rows, option):
    """Text to paste, or a file."""
    area = (f'<textarea {named(name)} rows="{rows}" spellcheck="false" '
            f'wrap="off">{escape(value)}</textarea>')
    return field(name, words, area, option=option) + (
        f'<p class="ask-file"><label>or a file: <input type="file" '
        f'data-for="ask-{name}"></label></p>')


def server():
    """The controls of "Your Server", and what is in them."""
    table, log = (path.read_text('utf-8') for path in EXAMPLES)
    fields = {'table': table, 'log': log, **MACHINES}
    kinds = [('', 'as the table or the log says'), *zip(GPUS, GPUS)]
    return fields, (
        text('table', 'Your table', table, 11, 'FILE')
        + menu('gpu', 'Your GPU', kinds, MACHINES['gpu'])
        + text('log', 'Your log of nccl-tests, if you have one', log, 6,
               '--log')
        + '<details><summary>Some of the GPUs, or several machines</summary>'
        '<div class="ask-grid">'
        + number('use', 'GPUs that take part, such as 0,1,4-7 (empty: all)',
                 '', option='--use', kind='text')
        + number('machines', 'Machines like this one', '1',
                 option='--machines')
        + number('cards', 'Network cards of each machine', '',
                 option='--cards')
        + number('card_gbit', 'Rate of a card', '', 'Gbit/s', '--card-gbit',
                 'decimal') + '</div></details>')


def shape(model):
    """The numbers of a model, as texts."""
    return {**{name: str(getattr(model, name)) for name in SHAPE},
            'gated': 'yes' if model.gated else ''}


def planner():
    """The controls of "Planner", and what is in them."""
    name, gpu = next(iter(MODELS)), KINDS['H100']
    fields = {**shape(MODELS[name]), 'gpu': gpu.name, 'gpus': '64',
              'batch': '128', 'network': f'{card_gbit(gpu):g}',
              'domain': str(gpu.domain)}
    presets = {f'model={key}': shape(model) for key, model in MODELS.items()}
    presets |= {f'gpu={key}': {'network': f'{card_gbit(one):g}',
                               'domain': str(one.domain)}
                for key, one in KINDS.items()}
    own = [('', 'your own: give its numbers below'), *zip(MODELS, MODELS)]
    own = own[1:] + own[:1]
    checked = ' checked' * bool(fields['gated'])
    return fields, (
        f'<script type="application/json" class="ask-presets">'
        f'{json.dumps(presets)}</script>'
        + menu('model', 'Model', own, name, ' data-preset')
        + '<details><summary>Its numbers</summary><div class="ask-grid">'
        + ''.join(number(key, words, fields[key])
                  for key, words in NUMBERS.items())
        + field('gated', 'Three matrices in the feed-forward network, as in '
                'Llama', f'<input type="checkbox" value="yes" '
                f'{named("gated")}{checked}>') + '</div></details>'
        '<div class="ask-grid">'
        + number('gpus', 'Number of GPUs', fields['gpus'])
        + menu('gpu', 'GPU', [(key, f'{key}, {one.memory / 1e9:.0f} GB')
                              for key, one in KINDS.items()], gpu.name,
               ' data-preset')
        + number('network', 'Network card of each GPU, between NVLink domains',
                 fields['network'],
                 'Gbit/s', kind='decimal')
        + number('domain', 'GPUs joined by NVLink', fields['domain'])
        + number('batch', 'Sequences in a step, of all GPUs',
                 fields['batch']) + '</div>')


# Chapters that lead to a page: the page, its title, what it does.
CHAPTERS = {
    'notebooks/20-what-do-i-choose': (
        'planner', 'Planner', 'ranks divisions of your own model'),
    'notebooks/21-your-own-server': (
        'your-server', 'Your Server', 'answers for your own server')}
FORMS = {'your-server': server, 'planner': planner}


def html(page):
    fields, controls = FORMS[page]()
    found = json.loads(answer(page, json.dumps(fields)))
    if 'error' in found:
        raise ExtensionError(f'the example of {page}: {found["error"]}')
    return (
        f'<div class="ask" role="group" aria-label="What you ask" '
        f'data-page="{page}" data-most="{MOST_TEXT}">{controls}'
        '<p class="ask-go"><button type="button" disabled>Answer</button> '
        '<progress max="1" value="0" aria-label="Python is loading" hidden>'
        '</progress> <span class="ask-status" role="status"></span></p>'
        '<p class="ask-error" id="ask-error" role="alert" hidden></p></div>'
        '<p class="ask-whose">The answer to the example:</p>'
        f'<div class="ask-answer">{found["html"]}</div>'
        '<noscript><p>Without scripts, this page shows the example alone.</p>'
        '</noscript>')


def put_in(app, docname, source):
    page = docname.removeprefix(FOLDER)
    if page in FORMS and PLACE in source[0]:
        for path in EXAMPLES:
            app.env.note_dependency(str(path))
        source[0] = source[0].replace(
            PLACE, f'```{{raw}} html\n{html(page)}\n```')


def add_link(app, tree, docname):
    """Below the title of a chapter, or of the box that `tab` puts there."""
    if docname in CHAPTERS:
        page, name, does = CHAPTERS[docname]
        to = relpath(FOLDER + page, str(PurePosixPath(docname).parent))
        title = next(tree.findall(nodes.title))
        title.parent.insert(title.parent.index(title) + 1, nodes.raw(
            '', f'<p class="ask-link">The page <a href="{to}.html">{name}'
            f'</a> {does}, in this browser.</p>', format='html'))


def add_files(app, page, template, context, document):
    if page.removeprefix(FOLDER) in FORMS:
        app.add_css_file('ask.css')
        app.add_js_file('ask.js', loading_method='defer')


def setup(app):
    app.connect('source-read', put_in)
    app.connect('doctree-resolved', add_link)
    app.connect('html-page-context', add_files)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
