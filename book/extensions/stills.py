"""On paper, pictures that play stand still, and show the end.

Chromium prints them as they are at that moment, even where their `<picture>`
has another source for print. So both are on the page, one of them hidden.
"""
import re
from base64 import b64decode, b64encode

from docutils import nodes
from sphinx.transforms import SphinxTransform

SVG = 'src="data:image/svg+xml;base64,'
PLAYS = re.compile(
    rf'(<img [^>]*?){re.escape(SVG)}([^"]+)(".*?>)(?=<details>)')
SOURCE = re.compile(r'<source media="print[^>]*?srcset="([^"]+)">(.*?)'
                    r'</picture>', re.S)
ENDS = re.compile(r'@media [^{]*\{(\*\{animation:none!important\})\}')


def stopped(match):
    """The picture that plays, and the one for paper."""
    begin, data, end = match.groups()
    still = ENDS.sub(r'\1', b64decode(data).decode())
    still = b64encode(still.encode()).decode()
    return pair(match[0], f'{begin}{SVG}{still}{end}')


def other(match):
    """For paper, the source that a `<picture>` has for it."""
    img = re.sub(r'src="[^"]+"', f'src="{match[1]}"', match[2].strip())
    return pair(match[0], img)


def pair(plays, still):
    still = still.replace('alt="', 'alt="Standing still: ', 1)
    return plays + still.replace('<img ', '<img class="on-paper" ', 1)


class AddStills(SphinxTransform):
    default_priority = 100

    def apply(self):
        for raw in self.document.findall(nodes.raw):
            words = PLAYS.sub(stopped, SOURCE.sub(other, raw.astext()))
            raw.rawsource, raw[:] = words, [nodes.Text(words)]


def setup(app):
    app.add_transform(AddStills)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
