"""Pictures that play: they begin when they are seen, and stand on paper.

A browser plays them when it paints them, which may be long before a reader
sees them: `static/plays.js` holds them back, and plays them again. Chromium
prints them as they are at that moment, even where their `<picture>` has
another source for print. So what stands still, at the end, is on the page,
too; it is hidden but on paper.
"""
import re
from base64 import b64decode, b64encode

from docutils import nodes
from sphinx.transforms import SphinxTransform

from frames import is_wide, size_of

SVG = 'src="data:image/svg+xml;base64,'
IMAGE = re.compile(rf'(<img [^>]*?){re.escape(SVG)}([^"]+)("[^>]*>)')
# What notebooks have for it, where no script plays a picture again.
AGAIN = re.compile(r'<details><summary>Play it once more</summary>'
                   r'<img [^>]*></details>')
STOPPED = '<style>*{animation:none!important}</style></svg>'


def playing(match):
    """The picture, and if it plays, the one for paper; others as they are."""
    begin, data, end = match.groups()
    svg = b64decode(data).decode()
    moves, wide = '@keyframes' in svg, is_wide(svg, size_of(svg)[0])
    kind = ' '.join(['plays'] * moves + ['wide'] * wide)
    picture = match[0].replace('<img ', f'<img class="{kind}" ', bool(kind))
    if not moves:
        return picture
    still = b64encode(svg.replace('</svg>', STOPPED).encode()).decode()
    return picture + f'{begin}{SVG}{still}{end}'.replace(
        '<img ', '<img class="on-paper" ', 1).replace(
        'alt="', 'alt="Standing still: ', 1)


class AddStills(SphinxTransform):
    default_priority = 100

    def apply(self):
        for raw in self.document.findall(nodes.raw):
            words = IMAGE.sub(playing, AGAIN.sub('', raw.astext()))
            raw.rawsource, raw[:] = words, [nodes.Text(words)]


def add_script(app, page, template, context, document):
    """Before the pictures: it must be there when the first one comes."""
    if 'class="plays' in context.get('body', ''):
        script = context['pathto']('_static/plays.js', 1)
        context['metatags'] += f'<script src="{script}"></script>'


def setup(app):
    app.add_transform(AddStills)
    app.connect('html-page-context', add_script)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
