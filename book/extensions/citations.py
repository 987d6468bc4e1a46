"""A paper that is named leads to its entry in the references, and back.

An entry has a label, such as (li-2014)=, and is found where a page says
"Li et al. (2014)", or begins a reference with "M. Li and others: ...".
"""
import re
from pathlib import Path

from docutils import nodes
from prose import in_references, link, put, texts
from sphinx.transforms import SphinxTransform
from sphinx.util.nodes import make_refnode

REFERENCES = 'book/references'
FILE = Path(__file__).parents[2] / f'{REFERENCES}.md'
LABELS = re.findall(r'^\(([\w-]+)\)=$', FILE.read_text('utf-8'), re.M)
DATED = {tuple(label.rsplit('-', 1)) for label in LABELS
         if re.search(r'-\d{4}$', label)}
NAME = r'(?:[Vv]an |Del )?[A-Z][\w-]+'
# Li, Andersen, Park, Smola et al. (2014)
CITED = re.compile(rf'({NAME})((?:,? and {NAME}|, {NAME}| et\s+al\.)*),?\s+'
                   r'(?:\((\d{4})\)|\(?(\d{4})\b)')
# R. Thakur, R. Rabenseifner, W. Gropp: ..., 2005
LISTED = re.compile(rf'(?:[A-Z]\. )+({NAME})[^:]*(?=:)')
# What has no author or no year. In tables, systems stand in the first column.
WORDS = {
    'Dive into Deep Learning': 'd2l', 'd2l.ai': 'd2l', 'Tesla V100': 'v100',
    'DGX-1 with Tesla V100 System Architecture': 'dgx-1', 'PCI-SIG': 'pcie',
    'IEEE 802.3': 'ethernet', 'MXNet': 'mxnet',
    'Linux manual pages': 'getrusage',
    'NVIDIA: NCCL': 'nccl', "NCCL's": 'nccl', 'NVIDIA/nccl-tests': 'nccl'}
SYSTEMS = {
    'ZeRO': 'zero', 'FSDP': 'pytorch', 'DDP': 'pytorch', 'GPipe': 'gpipe',
    'Horovod': 'horovod', 'NCCL': 'nccl', 'NVLink SHARP': 'sharp',
    'BytePS': 'byteps', 'Monolith': 'monolith', 'Megatron-LM': 'megatron',
    'DiLoCo': 'diloco', 'Llama 3': 'llama-3'}
BOOKS = {'How to Scale Your Model': 'scaling-book',
         'The Ultra-Scale Playbook': 'playbook'}


def label(name, year):
    """Of a paper by its first author and year, if it is in the references."""
    name = re.sub(r'\s+', '-', name).lower()
    return f'{name}-{year}' if (name, year) in DATED else None


def cited(text):
    """Start, end and label of what a text cites."""
    found = [(*match.span(), label(match[1], match[3] or match[4]))
             for match in CITED.finditer(text)]
    words = dict(BOOKS)
    if in_references(text):
        words |= WORDS
        item = text.parent.parent.astext()
        match = LISTED.match(text)
        years = re.findall(r'\b\d{4}\b', item)
        if match and years:
            found.append((*match.span(), label(match[1], years[-1])))
    elif first_in_row(text):
        words |= SYSTEMS
    for word, target in words.items():
        match = re.search(rf'(?<![\w/]){re.escape(word)}(?!\w)', text)
        if match:
            found.append((*match.span(), target))
    return apart(sorted(one for one in found if one[2]))


def first_in_row(text):
    cell = text.parent.parent
    return isinstance(cell, nodes.entry) and cell.parent.index(cell) == 0


def apart(found):
    """Without those that begin before the last one has ended."""
    kept = []
    for one in found:
        if not kept or one[0] >= kept[-1][1]:
            kept.append(one)
    return kept


class LinkCitations(SphinxTransform):
    default_priority = 790  # before terms: a name is no term

    def apply(self):
        docname = self.env.docname
        if docname.startswith(('notebooks/', 'docs/')):
            self.env.note_dependency(str(FILE))
            self.env.note_dependency(__file__)
            users = cited_by(self.env)
            for text in list(texts(self.document)):
                found = cited(text)
                for _, _, target in found:
                    users.setdefault(target, set()).add(docname)
                if found:
                    put(text, [(start, end, link(text[start:end], 'ref', to))
                               for start, end, to in found])


def cited_by(env):
    """For each label the pages that cite it; kept from build to build."""
    if not hasattr(env, 'cited_by'):
        env.cited_by = {}
    return env.cited_by


def forget(app, env, docname):
    for users in cited_by(env).values():
        users.discard(docname)


def also_references(app, env):
    """They say who cites them, so they change with any page."""
    return [REFERENCES]


def add_users(app, doctree, docname):
    """Each entry ends with the chapters that cite it."""
    if docname != REFERENCES:
        return
    users = cited_by(app.env)
    for paragraph in doctree.findall(nodes.paragraph):
        labels = [one for one in LABELS
                  if one in paragraph.get('ids', ()) and users.get(one)]
        for one in labels:
            note = nodes.inline(classes=['cited-by'])
            note += nodes.Text(' In ')
            for k, page in enumerate(sorted(users[one])):
                note += nodes.Text(', ' if k else '')
                note += make_refnode(app.builder, docname, page, '',
                                     nodes.Text(chapter(app.env, page)))
            paragraph += [note, nodes.Text('.')]


def chapter(env, page):
    number = re.match(r'notebooks/(\d\d)-', page)
    return (f'chapter {int(number[1])}' if number
            else env.titles[page].astext())


def setup(app):
    app.add_transform(LinkCitations)
    app.connect('env-purge-doc', forget)
    app.connect('env-updated', also_references)
    app.connect('doctree-resolved', add_users)
    return {'parallel_read_safe': False, 'parallel_write_safe': True}
