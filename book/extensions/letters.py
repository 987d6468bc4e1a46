"""Above the glossary, the letters that its terms begin with, as links."""
from html import escape

from docutils import nodes
from sphinx.transforms import SphinxTransform


def shown(term):
    return term.astext().lower()  # as Sphinx sorts them


def name(letter):
    return letter.upper() if letter.isascii() else letter


class AddLetters(SphinxTransform):
    default_priority = 100

    def apply(self):
        if self.env.docname != 'book/glossary':
            return
        found = {}  # by its letter, the address of the first entry
        for term in sorted((entry[0] for entry in self.document.findall(
                nodes.definition_list_item)), key=shown):
            found.setdefault(shown(term)[0], term['ids'][0])
        links = ' '.join(f'<a href="#{escape(address)}">{name(letter)}</a>'
                         for letter, address in found.items())
        glossary = next(self.document.findall(nodes.definition_list)).parent
        glossary.parent.insert(glossary.parent.index(glossary), nodes.raw(
            '', f'<nav class="letters" aria-label="Letters">{links}</nav>',
            format='html'))


def setup(app):
    app.add_transform(AddLetters)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
