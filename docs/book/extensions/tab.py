"""Pages lead to their notebooks in a browser tab: tab.toml says which run.

JupyterLite is in lite/; see setup/tab/build.py. A page from a file cannot
start it: then static/tab.js says how.
"""
import tomllib
from html import escape
from pathlib import Path, PurePosixPath
from posixpath import relpath

from docutils import nodes
from sphinx.errors import ExtensionError

TOML = Path(__file__).parents[1] / 'tab.toml'
PAGE, PLACE = 'docs/book/in-a-browser', '% the chapters of tab.toml'
TASKS = 'notebooks/exercises/tasks'
ROWS = tomllib.loads(TOML.read_text('utf-8'))
HOW = {'all': 'all cells run',
       'recorded': 'all cells run, with a recorded result for {why}',
       'parts': 'runs in part: {cells}',
       'no': 'does not run: {why}'}
EXPECT = ('Nothing to install, also on a tablet. Your browser downloads about '
          '35 MB, once; Python starts in about half a minute.')
RECORDED = ('A tab has no processes: for {why}, you see what was recorded on '
            'another machine.')
PARTS = 'What runs here: {cells}.'


def row_of(docname):
    """How the notebook of this page runs in a tab; None if it is none."""
    page = PurePosixPath(docname)
    folder = {'notebooks': 'chapters', TASKS: 'exercises'}.get(
        str(page.parent))
    return ROWS[folder].get(page.name) if folder else None


def address(docname, notebook):
    """From a page to a notebook in the tab."""
    up = relpath('.', str(PurePosixPath(docname).parent))
    return f'{up}/lite/notebooks/index.html?path={notebook}.ipynb'


def box(docname):
    """What stands below the title of a page."""
    row, why = row_of(docname), escape(row_of(docname).get('why', ''))
    if row['runs'] == 'no':
        install = relpath('docs/install', str(PurePosixPath(docname).parent))
        words = (f'Does not run in a browser tab: {why}. The page shows what '
                 f'it printed on our machine. To run it, <a href="{install}'
                 '.html">install d2lps</a>.')
        return f'<p class="tab-box">{words}</p>'
    words = {'recorded': RECORDED.format(why=why),
             'parts': PARTS.format(cells=escape(row.get('cells', '')))
             }.get(row['runs'], '')
    kind = 'exercise' if docname.startswith(TASKS) else 'chapter'
    return (f'<p class="tab-box"><a class="tab-start" '
            f'href="{escape(address(docname, docname))}">Run this {kind} '
            f'here</a> <span>{EXPECT} {words}</span></p>')


def add_boxes(app, tree, docname):
    if not row_of(docname):
        add_links(tree, docname)
        return
    title = next(tree.findall(nodes.title))
    title.parent.insert(title.parent.index(title) + 1,
                        nodes.raw('', box(docname), format='html'))
    if docname.startswith('notebooks/') and not docname.startswith(TASKS):
        add_links(tree, docname)


def add_links(tree, docname):
    """After each link to a task that runs in a tab: one that runs it."""
    for link in list(tree.findall(nodes.reference)):
        task = PurePosixPath(link.get('refuri', '').partition('#')[0])
        if task.suffix == '.html' and task.parent.name == 'tasks':
            row = ROWS['exercises'].get(task.stem, {'runs': 'no'})
            if row['runs'] != 'no':
                to = escape(address(docname, f'{TASKS}/{task.stem}'))
                raw = (f' <a class="tab-start" href="{to}" aria-label="'
                       f'{task.stem}, in this tab">▶\N{NO-BREAK SPACE}run</a>')
                link.parent.insert(link.parent.index(link) + 1,
                                   nodes.raw('', raw, format='html'))


def table(app, docname, source):
    if docname != PAGE:
        return
    app.env.note_dependency(str(TOML))
    lines = ['| Chapter | In a browser tab |', '|---|---|']
    for name, row in ROWS['chapters'].items():
        words = HOW[row['runs']].format(**row)
        number = f'{int(name[:2])}. ' if name[:2].isdigit() else ''
        lines.append(f'| {number}[](../../notebooks/{name}.ipynb) | {words} |')
    source[0] = source[0].replace(PLACE, '\n'.join(lines))


def check(app):
    """Each notebook has a row, and each row a notebook."""
    root = TOML.parents[2]
    for name, folder in (('chapters', 'notebooks'), ('exercises', TASKS)):
        here = {path.stem for path in (root / folder).glob('*.ipynb')}
        pages = {one for one in here
                 if f'{folder}/{one}' in app.env.found_docs}
        if pages - set(ROWS[name]) or set(ROWS[name]) - here:
            raise ExtensionError(
                f'{TOML}, [{name}]: no row for '
                f'{sorted(pages - set(ROWS[name]))}, no notebook for '
                f'{sorted(set(ROWS[name]) - here)}')
    return []


def setup(app):
    app.connect('source-read', table)
    app.connect('doctree-resolved', add_boxes)
    app.connect('env-before-read-docs', lambda app, env, names: check(app))
    app.add_css_file('tab.css')
    app.add_js_file('tab.js', loading_method='defer')
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
