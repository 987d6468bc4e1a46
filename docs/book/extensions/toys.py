"""Toys that move in the pages, without a kernel.

Where a notebook shows widgets, a page has controls of its own. Scripts count
and draw what two of the toys show, from plans and topologies as data: see
`static/player.js`. Of the others, all pictures are drawn while the book is
built, by the functions that draw them in a notebook: see `frames.py`. What
times the reader's machine, or starts processes, stands still.
"""
import ast
import json
import re
import shutil
from html import escape
from inspect import getdoc, signature
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError

from d2lps import pictures
from d2lps.collectives import Schedule
from d2lps.pictures.animation.layout import standing
from d2lps.pictures.menus import CHOICES, LINKS, PLANS, STEPPED, STRATEGIES
from d2lps.pictures.style import CHUNK_COLORS, IDLE_TO_BUSY
from folding import is_cell, raw
from frames import Toy, code, named

SCRIPTED = 'explore_plans', 'explore_synchronisation'
# By the name of the toy, or of what shows pictures that are drawn before.
SCRIPTS = {'frames': ['controls.js', 'frames.js']} | dict.fromkeys(SCRIPTED, [
    'controls.js', 'toys-data.js', 'counting.js', 'flows.js', 'holdings.js',
    'player.js', 'explorer.js'])
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


def call_of(code):
    """(name, arguments by name) of the toy that a cell calls."""
    for call in ast.walk(ast.parse(code)):
        name = getattr(getattr(call, 'func', None), 'attr', None)
        if name in STILL:
            return name, {}
        if str(name).startswith('explore_'):
            try:
                given = [*map(ast.literal_eval, call.args)]
                named = {one.arg: ast.literal_eval(one.value)
                         for one in call.keywords}
            except ValueError as error:
                raise ExtensionError(f'the book runs no code: {name} needs '
                                     f'plain values in\n{code}') from error
            found = signature(getattr(pictures, name)).bind(*given, **named)
            if name in SCRIPTED:
                found.apply_defaults()
            return name, found.arguments
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
            elif name in SCRIPTED:
                output.insert(0, raw(opening(name, settings) +
                                     '<noscript>'))
                output.append(raw('</noscript></div>'))
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


def opening(name, settings):
    """The tag of a toy; a script of this name makes it move."""
    return (f'<div class="toy" data-toy="{name}" '
            f'data-settings="{escape(json.dumps(settings))}">')


def framed(toy, function, prefix):
    """The page's HTML for a toy: its first picture, to which others follow.

    prefix: of the names in its SVGs, which are those of the page.
    """
    name = getdoc(function).split('\n')[0]
    return (opening('frames', {
        'file': toy.file, 'name': name, 'prefix': prefix, 'room': toy.room,
        'controls': toy.controls}) +
            f'<div class="toy-picture">{named(toy.picture, prefix)}</div>'
            f'<p class="toy-words">{escape(toy.words)}</p></div>')


def kept(app):
    """The folder of pictures, beside what else Sphinx keeps."""
    return Path(app.doctreedir) / 'toys'


def add_scripts(app, page, template, context, document):
    """To the pages that have a toy."""
    names = set(re.findall('<div class="toy" data-toy="([a-z_]+)"',
                           context.get('body', '')))
    for script in dict.fromkeys(
            script for name in sorted(names) for script in SCRIPTS[name]):
        app.add_js_file(script, loading_method='defer')


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


def data():
    """All that the scripts know of plans and links; names are d2lps's."""
    return {
        'colors': CHUNK_COLORS, 'idleToBusy': IDLE_TO_BUSY,
        'stepped': [*STEPPED], 'timed': STRATEGIES, 'choices': CHOICES,
        'plans': {name: {'words': words, 'schedules': {
            n: plain_schedule(make(n)) for n in offered(name)}}
            for name, (words, make) in PLANS.items()},
        'links': {name: {n: plain_topology(make, n)
                         for n in CHOICES['devices']}
                  for name, make in LINKS.items()}}


def offered(name):
    """The numbers of devices that a strategy can be asked for."""
    return sorted({*STEPPED, *(CHOICES['devices'] if name in STRATEGIES
                               else ())})


def plain_schedule(plan):
    """A send is four numbers: src, dst (places in nodes), chunk, reduce."""
    if not isinstance(plan, Schedule):
        return plan  # a text
    rounds = [[*zip(*sends.columns())] for sends in plan.rounds]
    return {'name': plan.name, 'nodes': plan.nodes,
            'weights': plan.weights.tolist(),
            'rounds': [[[*map(int, send)] for send in sends]
                       for sends in rounds]}


def plain_topology(make, n):
    """Places, and links between them with what is known of their speed.

    Places are (x, y) from -1 to 1. `wide` has the least and the largest width
    of each box. A bandwidth of 0 is that of the controls; all latencies are
    theirs.
    """
    chosen = 1e9
    joined = make(n, chosen, 1.0)
    vertices = [*joined.nodes, *joined.switches]
    place = {vertex: k for k, vertex in enumerate(vertices)}
    layout = standing(joined)
    scale = [2 / (long or 1) for long in (layout.width, layout.height)]

    def point(x, y):
        return [round(float(scale[0] * (x - layout.left) - 1), 4),
                round(float(1 - scale[1] * (y - layout.top)), 4)]

    def size(*extents):
        return [round(float(k * long), 4) for k, long in zip(scale, extents)]

    assert {link.latency for link in joined.links} == {1.0}
    return {
        'vertices': vertices, 'nodes': len(joined.nodes),
        'at': [point(*layout.at[vertex]) for vertex in vertices],
        'wide': [[size(layout.room(vertex, wide))[0]
                  for wide in (0, layout.width)] for vertex in vertices],
        'frames': [[point(x, y), size(wide, high), name]
                   for x, y, wide, high, name in layout.frames],
        'ends': [[point(*end) for end in layout.ends(link[:2])]
                 for link in joined.links],
        'links': [[place[link.src], place[link.dst]]
                  for link in joined.links],
        'bandwidth': [0 if link.bandwidth == chosen else link.bandwidth
                      for link in joined.links]}


def write_data(app):
    """A script, since a page from a file may not read other files."""
    folder = Path(app.outdir) / '_static'
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'toys-data.js').write_text(
        f"d2lps.data = {json.dumps(data(), separators=(',', ':'))};\n")


def setup(app):
    app.connect('builder-inited', write_data)
    app.connect('env-get-outdated', changed_toys)
    app.connect('doctree-read', replace_widgets)
    app.connect('html-page-context', add_scripts)
    app.connect('build-finished', copy_frames)
    app.add_css_file('toys.css')
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
