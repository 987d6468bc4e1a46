"""Toys that move in the pages, without a kernel; see `static/player.js`.

Where a notebook shows widgets, a page keeps the picture that they left. Of
two toys the page has more: scripts build their controls and pictures anew.
These scripts read what is written here: plans and topologies as data.
"""
import ast
import json
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError

from d2lps import pictures
from d2lps.collectives import Schedule
from d2lps_pictures.menus import CHOICES, LINKS, PLANS, STEPPED, STRATEGIES
from d2lps_pictures.places import positions
from d2lps_pictures.style import CHUNK_COLORS, IDLE_TO_BUSY

# The toys that have scripts, and where their functions are.
TOYS = {'explore_plans': 'toys/plans.py',
        'explore_synchronisation': 'toys/synchronisation.py'}
SCRIPTS = ('toys-data.js', 'counting.js', 'flows.js', 'controls.js',
           'holdings.js', 'player.js', 'explorer.js')
WIDGET = 'application/vnd.jupyter.widget-view+json'
NOTE = 'The controls move in the notebook.'


def settings_of(code):
    """The toy that a cell calls, and all of its arguments; None if none."""
    for call in ast.walk(ast.parse(code)):
        name = getattr(getattr(call, 'func', None), 'attr', None)
        if name in TOYS:
            found = defaults(name)
            try:
                found.update(zip(found, map(ast.literal_eval, call.args)))
                found.update((one.arg, ast.literal_eval(one.value))
                             for one in call.keywords)
            except ValueError as error:
                raise ExtensionError(f'the book runs no code: {name} needs '
                                     f'plain values in\n{code}') from error
            return name, found
    return None


def defaults(name):
    """Of each argument of a toy, by name; read, as widgets are not here."""
    path = Path(pictures.__file__).parent / TOYS[name]
    for one in ast.parse(path.read_text()).body:
        if getattr(one, 'name', None) == name:
            return dict(zip([argument.arg for argument in one.args.args],
                            map(ast.literal_eval, one.args.defaults)))
    raise ExtensionError(f'{path} has no function {name}')


def replace_widgets(app, document):
    """Take widgets out of the cells, and put in toys, or a line instead."""
    for cell in document.findall(nodes.container):
        widgets = [bundle for bundle in cell.findall(nodes.container)
                   if bundle.get('nb_element') == 'mime_bundle' and any(
                       data.get('mime_type') == WIDGET for data in bundle)]
        if cell.get('nb_element') == 'cell_code' and widgets:
            for widget in widgets:
                widget.parent.remove(widget)
            source, output = cell.children[0], cell.children[-1]
            found = settings_of(source.astext())
            if found:
                name, settings = found
                settings = escape(json.dumps(settings))
                output.insert(0, raw(
                    f'<div class="toy" data-toy="{name}" '
                    f'data-settings="{settings}"><noscript>'))
                output.append(raw('</noscript></div>'))
            else:
                output.append(nodes.paragraph('', NOTE,
                                              classes=['toy-note']))


def raw(html):
    return nodes.raw('', html, format='html')


def add_scripts(app, page, template, context, document):
    """To the pages that have a toy."""
    if 'data-toy=' in context.get('body', ''):
        for script in SCRIPTS:
            app.add_js_file(script, loading_method='defer')


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

    A bandwidth of 0 is that of the controls; all latencies are theirs.
    """
    chosen = 1e9
    joined = make(n, chosen, 1.0)
    vertices = [*joined.nodes, *joined.switches]
    place = {vertex: k for k, vertex in enumerate(vertices)}
    at = positions(joined)
    assert {link.latency for link in joined.links} == {1.0}
    return {
        'vertices': vertices, 'nodes': len(joined.nodes),
        'at': [[round(float(x), 4) for x in at[vertex]]
               for vertex in vertices],
        'links': [[place[link.src], place[link.dst]]
                  for link in joined.links],
        'bandwidth': [0 if link.bandwidth == chosen else link.bandwidth
                      for link in joined.links]}


def write_data(app):
    """A script, since a page from a file may not read other files."""
    folder = Path(app.outdir) / '_static'
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SCRIPTS[0]).write_text(
        "'use strict';\nvar d2lps = {data: "
        f"{json.dumps(data(), separators=(',', ':'))}}};\n")


def setup(app):
    app.connect('builder-inited', write_data)
    app.connect('doctree-read', replace_widgets)
    app.connect('html-page-context', add_scripts)
    app.add_css_file('toys.css')
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
