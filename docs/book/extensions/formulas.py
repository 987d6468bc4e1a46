"""Formulas as MathML, which browsers draw by themselves: no script, no font.
"""
from docutils import nodes
from latex2mathml.converter import convert


def inline(translator, node):
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(translator, node):
    formula = convert(node.astext(), display='block')
    translator.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer('mathml', (inline, None), (block, None))
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
