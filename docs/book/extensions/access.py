"""What helps readers who do not see the page, or have no mouse.

Words for the pictures, which stand in the metadata of their cells; levels of
the headings beside the page; and Tab reaches what scrolls sideways.
"""
import re

from docutils import nodes
from sphinx.transforms import SphinxTransform

COLUMNS = re.compile(r'^.*\S {2,}\S.*$|^ *\[.*\]$', re.M)
CAPTION = 'class="caption" role="heading"'


class DescribePictures(SphinxTransform):
    """The alternative text of a cell describes all of its pictures."""
    default_priority = 100

    def apply(self):
        for cell in self.document.findall(nodes.container):
            words = cell.get('cell_metadata', {}).get('alt')
            pictures = [*cell.findall(nodes.image)] if words else []
            for number, picture in enumerate(pictures, 1):
                picture['alt'] = words if len(pictures) == 1 else (
                    f'Picture {number} of {len(pictures)}. {words}')


class MarkColumns(SphinxTransform):
    """Printed lines that stand in columns; other lines may be wrapped."""
    default_priority = 100

    def apply(self):
        for words in self.document.findall(nodes.literal_block):
            if 'output' in words['classes'] and (
                    len(COLUMNS.findall(words.astext())) > 1):
                words['classes'].append('columns')


def level_captions(app, page, template, context, document):
    """Of the table of contents; Sphinx calls them headings of no level."""
    tree = context.get('furo_navigation_tree')
    if tree:
        context['furo_navigation_tree'] = tree.replace(
            CAPTION, f'{CAPTION} aria-level="2"')


def setup(app):
    app.add_transform(DescribePictures)
    app.add_transform(MarkColumns)
    app.connect('html-page-context', level_captions, priority=900)
    app.add_css_file('access.css')
    app.add_js_file('access.js', loading_method='defer')
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
