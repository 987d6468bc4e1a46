"""Sentences of a page: where words may become links."""
from docutils import nodes
from sphinx.addnodes import pending_xref

# Not in these: headings, code, formulas, and what is a link already.
CLOSED = (nodes.title, nodes.literal, nodes.literal_block, nodes.math,
          nodes.math_block, nodes.reference, nodes.raw, nodes.Invisible,
          pending_xref)


def texts(node):
    """Texts below a node that are prose, in order, in one piece each.

    Outputs of cells are no prose. A paragraph comes as one text for each
    line; these are joined, as a name may stand at the end of a line.
    """
    if isinstance(node, CLOSED) or 'cell_output' in node.get('classes', ()):
        return
    join(node)
    for child in list(node.children):
        if isinstance(child, nodes.Text):
            yield child
        elif isinstance(child, nodes.Element):
            yield from texts(child)


def join(node):
    children = []
    for child in node.children:
        if (isinstance(child, nodes.Text) and children
                and isinstance(children[-1], nodes.Text)):
            child = nodes.Text(children.pop() + child)
        children.append(child)
    node[:] = children


def link(words, kind, target):
    """A link by a name that Sphinx knows, a 'ref' or a 'term'."""
    inner = nodes.inline(words, words, classes=[f'to-{kind}'])
    return pending_xref(words, inner, refdomain='std', reftype=kind,
                        reftarget=target, refexplicit=True, refwarn=True)


def put(text, found):
    """Replace parts of a text: a list of start, end and node, in order."""
    pieces, at = [], 0
    for start, end, node in found:
        pieces += [nodes.Text(text[at:start]), node]
        at = end
    pieces.append(nodes.Text(text[at:]))
    text.parent.replace(text, [piece for piece in pieces if piece.astext()])


def in_references(node):
    """Whether a node is in the section called References."""
    while node.parent is not None:
        node = node.parent
        if (isinstance(node, nodes.section)
                and node[0].astext() == 'References'):
            return True
    return False
