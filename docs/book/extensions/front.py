"""The first page's six ideas, and its routes, which are the README's."""
import re
from html import escape
from pathlib import Path

from d2lps.pictures.ideas import HIGH, IDEAS, WIDE
from sphinx.errors import ExtensionError

ROOT = Path(__file__).parents[3]
PAGE = 'docs/book/index'


def ideas():
    """A link with a picture and a sentence for each."""
    out = ''
    for name, (number, title, sentence, draw) in IDEAS.items():
        [path] = (ROOT / 'notebooks').glob(f'{number:02}-*.ipynb')
        image = (f'<img width="{WIDE}" height="{HIGH}" '
                 f'alt="{escape(draw().alt)}" '
                 f'src="../../_static/idea-{name}.svg">')
        out += (f'<a href="../../notebooks/{path.stem}.html">{image}'
                f'<b>{number}. {title}</b>{escape(sentence)}</a>')
    return f'```{{raw}} html\n<div class="ideas">{out}</div>\n```'


def routes():
    """Where to begin, with links as they are here."""
    readme = (ROOT / 'README.md').read_text('utf-8')
    found = re.search(r'^\* \*\*Two hours\*\*.*?(?=^$)', readme, re.M | re.S)
    if not found:
        raise ExtensionError('README.md has no list that begins with '
                             '"* **Two hours**"')
    return found[0].replace('](', '](../../')


def put_in(app, docname, source):
    if docname == PAGE:
        app.env.note_dependency(str(ROOT / 'README.md'))
        for mark, made in (('% the six ideas', ideas),
                           ('% the routes of README.md', routes)):
            if mark in source[0]:
                source[0] = source[0].replace(mark, made())


def add_style(app, page, template, context, document):
    if page == PAGE:
        app.add_css_file('front.css')


def setup(app):
    app.connect('source-read', put_in)
    app.connect('html-page-context', add_style)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
