"""The book's sources: the files that its tables of contents name, no others.

Who works in a clone saves notebooks of their own beside them.
"""
import re
from os.path import normpath
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
EXERCISES = 'notebooks/exercises'
AROUND = ('docs/*.md', 'docs/book/*.md', 'teaching/*.md', 'notebooks/*.ipynb',
          f'{EXERCISES}/**/*.md', f'{EXERCISES}/**/*.ipynb')
FOLDERS = 'tasks', 'solutions'
TREE = re.compile(r'^```\{toctree\}\n(.*?)^```$', re.M | re.S)
ENTRY = re.compile(r'^(?:[^:\n].*<)?([^:<>\n]+)>?$', re.M)  # Title <name>
MADE = '<!-- Generated with Sphinx'  # what a page says at its top


def sources():
    """From the project's folder."""
    index = (ROOT / 'docs/book/index.md').read_text('utf-8')
    names = ['docs/book/index', *(
        f'docs/book/{name}' for tree in TREE.findall(index)
        for name in ENTRY.findall(tree))]
    readme = ROOT / EXERCISES / 'README.md'
    if readme.exists():
        names += [f'{EXERCISES}/{page}'
                  for page in exercises(readme.read_text('utf-8'))]
    files = [f'{normpath(name)}{suffix}'.replace('\\', '/')
             for name in names for suffix in ('.md', '.ipynb')]
    return [name for name in files if (ROOT / name).exists()]


def exercises(readme):
    """Each folder's pages in the order of the table, and before the next."""
    names = re.findall(r'^\| \[.*?\]\(tasks/(.+?)\.ipynb\)', readme, re.M)
    return [f'{folder}/{name}' for folder in FOLDERS for name in names]


def say_what_is_left_out(app):
    found = {path.relative_to(ROOT).as_posix() for pattern in AROUND
             for path in ROOT.glob(pattern)
             if '.ipynb_checkpoints' not in path.parts}
    names = sorted(found.difference(sources()))
    if names:
        print('The book leaves out what no table of contents names:',
              ', '.join(names), flush=True)


def remove_pages(app, error):
    """Those of earlier builds whose sources are gone."""
    if not error:
        pages = {Path(app.builder.get_outfilename(name))
                 for name in app.env.found_docs}
        for folder in ('docs', 'notebooks', 'teaching'):
            for path in (Path(app.outdir) / folder).rglob('*.html'):
                if path not in pages and MADE in path.read_text('utf-8'):
                    path.unlink()


def setup(app):
    app.connect('builder-inited', say_what_is_left_out)
    app.connect('build-finished', remove_pages)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
