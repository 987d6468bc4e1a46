"""What pages need in the book and nowhere else: places, links, titles.

They are read in JupyterLab and on code hosts, too. So it is added here,
while the book is built.
"""
import json
import re
from pathlib import Path

import fold
from docutils import nodes
from sources import FOLDERS, exercises
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform

README = Path(__file__).parents[3] / 'README.md'
CHAPTERS = 25
CHAPTER = re.compile(r'notebooks/\d\d-')
EXERCISES = 'notebooks/exercises/README'
SETS_UP = re.compile(r'^%matplotlib .*\n+')  # for pictures
GRADES = '### BEGIN HIDDEN TESTS'  # does nothing for readers


def adapt(app, docname, source):
    """Links lead to pages of the book, and answers are not folded twice."""
    source[0] = source[0].replace('](../README.md)',
                                  '](../docs/book/index.md)')
    if CHAPTER.match(docname):  # folding.py folds answers here
        source[0] = fold.written(fold.unfold(json.loads(source[0])))
    if docname == EXERCISES:
        source[0] = with_pages(source[0])
    if docname == 'docs/book/index':
        app.env.note_dependency(str(README))
        source[0] = source[0].replace(
            "% the chapters' rows of README.md", chapters())


def chapters():
    """The README's tables: what one sees in each chapter of the core, and
    in the electives, with the text between them."""
    found = re.search(r'^\*\*The core\*\* is the path.*?(?=^## )',
                      README.read_text('utf-8'), re.M | re.S)
    rows = re.findall(r'^\| \[\d+\. ', found[0] if found else '', re.M)
    if len(rows) != CHAPTERS:
        raise ExtensionError(
            f'{README} has {len(rows)} rows that begin with a chapter, such '
            f'as "| [1. ", after "**The core** is the path"; not {CHAPTERS}')
    return found[0].replace('](', '](../../')


def with_pages(readme):
    """The tasks of the table and then the solutions, as pages after it."""
    pages = exercises(readme)
    for folder in FOLDERS:  # which a page cannot open
        readme = readme.replace(f'[{folder}]({folder})', f'`{folder}`')
    return '\n'.join([readme, '```{toctree}', ':hidden:', '', *pages, '```'])


class NameSolutions(SphinxTransform):
    """A solved copy has its task's title; here it says what it is."""
    default_priority = 100

    def apply(self):
        if self.env.docname.startswith('notebooks/exercises/solutions/'):
            title = next(self.document.findall(nodes.title))
            title.insert(0, nodes.Text('Solved: '))
            for last in self.document.findall(nodes.paragraph):
                if 'A solved copy is in' in last.astext():  # it is this one
                    last[2:] = [nodes.Text('.')]


class NameChecks(SphinxTransform):
    """The bar of a folded cell says what it checks: its first line."""
    default_priority = 100

    def apply(self):
        for cell in self.document.findall(nodes.container):
            if cell.get('hide_mode'):
                code = next(cell.findall(nodes.literal_block)).astext()
                words = code.split('\n')[0].removeprefix('# ')
                cell['prompt_show'] = cell['prompt_hide'] = words


class LeaveOut(SphinxTransform):
    """What sets up pictures, and what only teachers run."""
    default_priority = 100

    def apply(self):
        for cell in list(self.document.findall(nodes.container)):
            if cell.get('nb_element') == 'cell_code' and (
                    GRADES in cell.astext()):
                cell.parent.remove(cell)
        for code in self.document.findall(nodes.literal_block):
            words = SETS_UP.sub('', code.astext())
            code.rawsource, code[:] = words, [nodes.Text(words)]


def setup(app):
    app.connect('source-read', adapt)
    app.add_transform(NameSolutions)
    app.add_transform(NameChecks)
    app.add_transform(LeaveOut)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
