"""What cells show: pictures in words, and code without what sets it up."""
import re

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform

SETS_UP = re.compile(r'^%matplotlib inline\n+')


class TellPictures(SphinxTransform):
    """The alternative texts of pictures are in the metadata of cells.

    The solved exercises have none. There, the words before say what one sees.
    """
    default_priority = 300

    def apply(self):
        for cell in self.document.findall(nodes.container):
            if cell.get('nb_element') == 'cell_code':
                images = list(cell.findall(nodes.image))
                words = cell['cell_metadata'].get('alt') or before(cell)
                if images and not words:
                    raise ExtensionError(
                        f'{self.env.docname}: cell {cell["cell_index"]} has '
                        'a picture, but no "alt" in its metadata')
                for k, image in enumerate(images):
                    image['alt'] = words if k == 0 else (
                        f'Picture {k + 1} of {len(images)}, described with '
                        'the first.')


def before(cell):
    """The title and the first paragraph of the section of a cell."""
    section = cell.parent
    paragraph = next(section.findall(nodes.paragraph), None)
    return paragraph and f'{section[0].astext()}. {paragraph.astext()}'


class HideSetUp(SphinxTransform):
    default_priority = 300

    def apply(self):
        for code in self.document.findall(nodes.literal_block):
            words = SETS_UP.sub('', code.astext())
            if words != code.astext():
                code.rawsource = words
                code[:] = [nodes.Text(words)]


def setup(app):
    app.add_transform(TellPictures)
    app.add_transform(HideSetUp)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
