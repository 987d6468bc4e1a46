"""A term leads to the glossary where a page uses it first."""
import re
from pathlib import Path

from docutils import nodes
from prose import in_references, link, put, texts
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform

GLOSSARY = Path(__file__).parents[1] / 'glossary.md'
# Whose pages have links to terms. The teacher's page has other plans.
ROOMS = 'notebooks/', 'docs/bare-mxnet', 'docs/several-machines'
# Other forms than with an s at the end.
FORMS = {
    'all-gather': ['all-gathers', 'all-gathered'],
    'all-reduce': ['all-reduces', 'all-reduced'],
    'asynchronous': ['asynchronously'],
    'batch normalisation': ['batch norm'],
    'bounded delay': ['bound'],
    'broadcast': ['broadcasts', 'broadcasting'],
    'gather': ['gathers', 'gathered', 'gathering'],
    'hand-over': ['hands over', 'hand over'],
    'key–value store': ['key-value store', 'kvstore'],
    'hash': ['hashes'],
    'latency': ['latencies'],
    'loss': ['losses'],
    'micro-batch': ['micro-batches'],
    'minibatch': ['minibatches'],
    'part': [],
    'pipeline': ['pipelines', 'pipelined'],
    'process': ['processes'],
    'pull': ['pulls', 'pulled', 'pulling'],
    'push': ['pushes', 'pushed', 'pushing'],
    'quantise': ['quantised'],
    'reduce': ['reduces', 'reduced', 'reduction', 'reductions'],
    'staleness': ['stale'],
    'switch': ['switches'],
    'synchronous': ['synchronously'],
    'topology': ['topologies'],
    'two trees': ['pairs of trees'],
    "Young's formula": ['Young’s formula'],
}
# Terms that are everyday words, too. Only where a page explains them, that
# is, in bold or italics, are they surely terms.
EVERYDAY = {
    'bounded delay', 'bulk', 'chain', 'elastic', 'handle', 'head',
    'helper', 'link', 'measured', 'model', 'overlap', 'part', 'port',
    'predicted', 'priority', 'process', 'protocol', 'reduce', 'root', 'round',
    'simulated', 'slice', 'step', 'store', 'tail', 'window'}
# Words that mean something else there.
OTHERWISE = {
    'docs/bare-mxnet': {'message'},
    'docs/several-machines': {'key', 'message', 'pull'},
    'notebooks/02-three-ways-to-split': {'gather'},
    'notebooks/08-a-store-from-scratch': {'message'},
    'notebooks/09-a-real-parameter-server': {'message'},
    'notebooks/10-many-machines': {'loss'},
    'notebooks/12-asynchrony': {'plan'},
    'notebooks/13-when-a-server-dies': {'asynchronous', 'running sum'},
    'notebooks/14-today': {'gather'},
    'notebooks/exercises/tasks/learning-rate': {'message'},
    'notebooks/exercises/solutions/learning-rate': {'message'}}


def terms():
    """The glossary's terms: lines of its directive that are not indented."""
    inside = GLOSSARY.read_text('utf-8').split('```')[1]
    return re.findall(r'^(?![{:])(\S.*)', inside, re.M)


def forms():
    """All forms, of which the longest come first, with their terms."""
    found = {form: term for term in terms()
             for form in (term, *FORMS.get(term, [f'{term}s']))}
    return dict(sorted(found.items(), key=lambda pair: -len(pair[0])))


def expression(form):
    """A space is also the end of a line; capitals inside have a meaning."""
    words = re.escape(form).replace(r'\ ', r'\s+')
    return f'(?i:{words})' if form[1:] == form[1:].lower() else words


unknown = {*FORMS, *EVERYDAY, *set().union(*OTHERWISE.values())} - {*terms()}
if unknown:
    raise ExtensionError(f'{GLOSSARY} does not have {unknown}')
FOUND = {form.lower(): term for form, term in forms().items()}
ALL = '|'.join(map(expression, forms()))
PATTERN = re.compile(rf'(?<![\w-])(?:{ALL})(?![\w-]|\.\w)')


class LinkTerms(SphinxTransform):
    default_priority = 800  # when the page is complete

    def apply(self):
        seen = set(OTHERWISE.get(self.env.docname, ()))
        if self.env.docname.startswith(ROOMS):
            self.env.note_dependency(str(GLOSSARY))
            self.env.note_dependency(__file__)
            for text in texts(self.document):
                if not in_references(text):
                    self.link(text, seen)

    def link(self, text, seen):
        found = []
        explained = isinstance(text.parent, (nodes.strong, nodes.emphasis))
        for match in PATTERN.finditer(text):
            term = FOUND[re.sub(r'\s+', ' ', match[0]).lower()]
            if term not in seen and (explained or term not in EVERYDAY):
                seen.add(term)
                found.append((*match.span(), link(match[0], 'term', term)))
        if found:
            put(text, found)


def setup(app):
    app.add_transform(LinkTerms)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
