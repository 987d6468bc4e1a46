"""Tables that can be read on a phone, too.

There, tables of text with three columns or more become cards, a row each: so
each cell knows its heading. And headings of numbers break once, at most.
"""
import re
from html import escape, unescape

from docutils import nodes
from sphinx.transforms import SphinxTransform

TABLE = re.compile(r'<table class="docutils.*?</table>', re.S)
ROW = re.compile(r'<tr.*?</tr>', re.S)
CELL = re.compile(r'<t([dh])\b[^>]*>(.*?)</t[dh]>', re.S)
TAG = re.compile(r'<[^>]+>')
ROLES = {'table': 'table', 'thead': 'rowgroup', 'tbody': 'rowgroup',
         'tr': 'row', 'td': 'cell', 'th': 'columnheader'}
HEAD = re.compile(r'(<th[^>]*>)([^<]*)(?=</th>)')
SHORT, LONG = 14, 34  # letters of a heading that does not break; that may
STAYS = '\N{NO-BREAK SPACE}'


def with_headings(table):
    """A table whose rows can be cards; as it was, with two columns."""
    head, *rows = ROW.findall(table)
    names = [unescape(TAG.sub('', words)).strip()
             for _, words in CELL.findall(head)]
    if len(names) < 3:
        return table
    for row in rows:
        begin, *cells = re.split(r'<td\b', row)
        named = ''.join(f'<td data-head="{escape(name)}"{cell}'
                        for name, cell in zip(names, cells))
        table = table.replace(row, begin + named)
    # What is shown as cards is still a table, for who hears it.
    table = re.sub(r'<(table|thead|tbody|tr|td|th)\b', lambda it: (
        f'{it[0]} role="{ROLES[it[1]]}"'), table)
    return table.replace('class="docutils', 'class="cards docutils', 1)


def name_cells(app, page, template, context, document):
    if 'body' in context:
        context['body'] = TABLE.sub(lambda found: with_headings(found[0]),
                                    context['body'])


def unbroken(words):
    """A heading with one space, near its middle, where it may break."""
    if len(words) > LONG:
        return words
    spaces = [] if len(words) <= SHORT else [
        k for k, letter in enumerate(words) if letter == ' '
        and '/' not in words[k - 1:k + 2]]  # kB / s
    middle = min(spaces, key=lambda k: abs(2 * k - len(words)), default=None)
    return ''.join(STAYS if letter == ' ' and k != middle else letter
                   for k, letter in enumerate(words))


class KeepHeadings(SphinxTransform):
    """Of pandas's tables."""
    default_priority = 100

    def apply(self):
        for raw in self.document.findall(nodes.raw):
            if '</thead>' in raw.astext():
                head, rest = raw.astext().split('</thead>', 1)
                head = HEAD.sub(lambda it: it[1] + unbroken(it[2]), head)
                words = f'{head}</thead>{rest}'
                raw.rawsource, raw[:] = words, [nodes.Text(words)]


def setup(app):
    app.add_transform(KeepHeadings)
    app.connect('html-page-context', name_cells)
    app.add_css_file('tables.css')
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
