"""Toys that move in the pages, without a kernel.

Where a notebook shows widgets, a page has controls of its own. All pictures
are drawn while the book is built, by the functions that draw them in a
notebook: see `frames.py`. Toys that time the reader's machine, or start
processes, stand still.
"""
import ast
import json
import shutil
from html import escape
from inspect import getdoc, signature
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError

from d2lps import pictures
from folding import is_cell, raw
from frames import Toy, code, named

# Toys that stand still in a page, and why.
TIMES = 'This toy times your own machine: it moves in the notebook.'
STILL = {
    'explore_devices': TIMES, 'explore_timeline': TIMES,
    'explore_store': 'The buttons of this toy push to a real store and pull '
                     'from it: they work in the notebook.',
    'TrainingPanel': 'The buttons of this toy kill real processes: they work '
                     'in the notebook.',
    'another': 'The controls move in the notebook.'}
WIDGET = 'application/vnd.jupyter.widget-view+json'
OPENING = '<div class="toy" '


def call_of(code):
    """(name, arguments by name) of the toy that a cell calls."""
    for call in ast.walk(ast.parse(code)):
        name = getattr(getattr(call, 'func', None), 'attr', None)
        if name in STILL:
            return name, {}
        if str(name).startswith('explore_'):
            try:
                given = [*map(ast.literal_eval, call.args)]
                by_name = {keyword.arg: ast.literal_eval(keyword.value)
                           for keyword in call.keywords}
            except ValueError as error:
                raise ExtensionError(f'the book runs no code: {name} needs '
                                     f'plain values in\n{code}') from error
            function = getattr(pictures, name)
            return name, signature(function).bind(*given, **by_name).arguments
    return 'another', {}


def replace_widgets(app, document):
    """Take widgets out of the cells, and put in toys, or why there is none."""
    for cell in document.findall(nodes.container):
        widgets = [bundle for bundle in cell.findall(nodes.container)
                   if bundle.get('nb_element') == 'mime_bundle' and any(
                       data.get('mime_type') == WIDGET for data in bundle)]
        if is_cell(cell) and widgets:
            for widget in widgets:
                widget.parent.remove(widget)
            source, output = cell.children[0], cell.children[-1]
            name, settings = call_of(source.astext())
            if name in STILL:
                output.insert(0, nodes.paragraph('', STILL[name],
                                                 classes=['toy-note']))
            else:
                toy = Toy(name, settings, kept(app))
                known = app.env.metadata[app.env.docname]
                known['code'] = code()
                known.setdefault('toys', []).append(toy.file)
                output[:] = [raw(framed(
                    toy, getattr(pictures, name),
                    f"toy-{app.env.new_serialno('toy')}-"))]


def changed_toys(app, env, *_):
    """Pages from before, with toys that may draw something else by now."""
    return [page for page, known in env.metadata.items()
            if known.get('code', code()) != code()]


def framed(toy, function, prefix):
    """The page's HTML for a toy: its first picture, to which others follow.

    prefix: of the names in its SVGs, which are those of the page.
    """
    settings = {'file': toy.file, 'name': getdoc(function).split('\n')[0],
                'prefix': prefix, 'controls': toy.controls}
    return (f'{OPENING}data-settings="{escape(json.dumps(settings))}">'
            f'<div class="toy-picture">{named(toy.picture, prefix)}</div>'
            f'<p class="toy-alt">{escape(toy.alt)}</p></div>')


def kept(app):
    """The folder of pictures, beside what else Sphinx keeps."""
    return Path(app.doctreedir) / 'toys'


def add_script(app, page, template, context, document):
    """To the pages that have a toy."""
    if OPENING in context.get('body', ''):
        app.add_js_file('frames.js', loading_method='defer')


def copy_frames(app, error):
    """The pictures of all pages, and of no others, to the pages' folder."""
    folder = Path(app.outdir) / '_static' / 'toys'
    if not error:
        folder.mkdir(parents=True, exist_ok=True)
        files = {file for known in app.env.metadata.values()
                 for file in known.get('toys', ())}
        for path in folder.iterdir():
            if path.name not in files:
                path.unlink()
        for file in files:
            shutil.copy(kept(app) / file, folder)


def setup(app):
    app.connect('env-get-outdated', changed_toys)
    app.connect('doctree-read', replace_widgets)
    app.connect('html-page-context', add_script)
    app.connect('build-finished', copy_frames)
    app.add_css_file('toys.css')
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
