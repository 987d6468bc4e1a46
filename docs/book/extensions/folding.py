"""What most readers pass over is folded; a click, or a search, opens it.

Imports, code that only draws (its picture stays), and what answers a
**Predict.**: the first result below the question (with its code, if that tells
the answer), and all from there to the paragraph that begins with **Answer.**
Checks have tags in the notebooks, which MyST-NB folds by. It folds a single
cell: not an answer, which is several cells and the paragraphs after them. And
imports and code that draws need no tag here, which one could forget.
"""
import ast
import re
from html import escape

from docutils import nodes

LEAST = 4  # lines; shorter code that draws stays as it is
TELLS = 'answers'  # the tag of a cell whose code says what its result says
MODULES, METHOD = {'pictures', 'plt'}, 'plot'  # pandas has a method
TOYS = 'explore_'  # these are played with, and never folded
RESULTS = {'image': 'a picture', 'table': 'a table'}


def fold_all(app, document):
    cells = [*filter(is_cell, document.findall(nodes.container))]
    question = None
    for paragraph in [*document.findall(nodes.paragraph)]:
        if says(paragraph, 'Answer'):
            fold_answer(question, paragraph)
        question = paragraph if says(paragraph, 'Predict') else question
    for number, cell in enumerate(cells):
        names = imports(code_of(cell)) if number == 0 else ''
        if cell.get('hide_mode'):
            continue
        if names:
            wrap([cell.children[0]], 'imports', names)
        elif drawing(cell):
            wrap([cell.children[0]], 'drawing', 'How this picture is drawn')


def wrap(children, kind, words):
    """Put a <details> around neighbours."""
    begin, end = children[0], children[-1]
    parent = begin.parent
    parent.insert(parent.index(begin), raw(
        f'<details class="fold {kind}"><summary>{escape(words)}</summary>'))
    parent.insert(parent.index(end) + 1, raw('</details>'))


def raw(html):
    return nodes.raw('', html, format='html')


def code_of(cell):
    """Its code as Python, without what is said to IPython."""
    lines = next(cell.findall(nodes.literal_block)).astext().split('\n')
    return '\n'.join(line for line in lines if line[:1] not in ('%', '!'))


def statements(code):
    try:
        return ast.parse(code).body
    except SyntaxError:  # it is no Python: magic inside
        return []


def imports(code):
    """What the bar of imports says, or '' if the code begins otherwise."""
    body = statements(code)
    found = [one for one in body
             if isinstance(one, (ast.Import, ast.ImportFrom))]
    if not found or body[0] is not found[0]:
        return ''
    names = [name.split('.')[0] for one in found for name in (
        [one.module] if isinstance(one, ast.ImportFrom) else
        [alias.name for alias in one.names])]
    more = ', and what is prepared' if len(found) < len(body) else ''
    return f'Imports: {", ".join(dict.fromkeys(names))}{more}'


def drawing(cell):
    """Whether there is a picture, and its code does nothing but draw it."""
    code = code_of(cell)
    lines = [line for line in code.split('\n') if line.strip()]
    return (len(lines) >= LEAST and TOYS not in code
            and has(cell, 'image') and only_draws(code))


def only_draws(code):
    """Each statement draws, or uses what came of it, or lists ticks."""
    drawn, body = {*MODULES}, statements(code)
    for one in body:
        names = [node for node in ast.walk(one) if isinstance(node, ast.Name)]
        made, used = ({name.id for name in names if isinstance(name.ctx, how)}
                      for how in (ast.Store, ast.Load))
        plots = any(isinstance(node, ast.Attribute) and node.attr == METHOD
                    for node in ast.walk(one))
        if not plots and not used & drawn and (used or one is body[0]):
            return False
        drawn |= made
    return bool(body)


def has(cell, what):
    """Whether a cell shows a picture, a table, or words."""
    for data in outputs(cell):
        html = ''.join(raw.astext() for raw in data.findall(nodes.raw))
        image = '<img' in html or any(data.findall(nodes.image))
        kind = 'image' if image else 'table' if '<table' in html else 'words'
        if kind == what:
            return True
    return False


def outputs(cell):
    """Its outputs, one for each thing that is shown."""
    if len(cell) > 1 and is_output(cell.children[-1]):
        return cell.children[-1].children
    return []


def is_output(node):
    return isinstance(node, nodes.Element) and (
        node.get('nb_element') == 'cell_code_output')


def says(paragraph, word):
    """Whether a paragraph has these bold words; an answer begins so."""
    return any(re.match(rf'{word}\b', bold.astext()) and (
        word != 'Answer' or paragraph.astext().startswith(bold.astext()))
        for bold in paragraph.findall(nodes.strong))


def fold_answer(question, said):
    """What comes out below a question, and what is said of it."""
    answer = [*results(question, said), said, *formula_after(said)]
    kinds = [words for what, words in RESULTS.items()
             if any(has(cell, what) for cell in answer if is_cell(cell))]
    if is_cell(answer[0]) and TELLS not in tags_of(answer[0]):
        answer[0] = result_of(answer[0])
    shown = f', with {" and ".join(kinds)}' if kinds else ''
    wrap(answer, 'answer', f'Guess, then open the answer{shown}')


def results(question, said):
    """The cells before an answer, from the first that shows something.

    None, if there is a toy among them, or no question before them.
    """
    siblings = said.parent.children
    cells, k = [], siblings.index(said)
    while k and is_cell(siblings[k - 1]):
        k -= 1
        cells.insert(0, siblings[k])
    toy = any(TOYS in cell.astext() for cell in cells)
    if toy or question is None or question not in siblings[:k]:
        return []
    first = next((n for n, cell in enumerate(cells) if outputs(cell)),
                 len(cells))
    return cells[first:]


def formula_after(said):
    after = said.parent.children[said.parent.index(said) + 1:][:1]
    return [node for node in after if isinstance(node, nodes.math_block)]


def is_cell(node):
    return isinstance(node, nodes.container) and (
        node.get('nb_element') == 'cell_code')


def tags_of(cell):
    return cell.get('cell_metadata', {}).get('tags', ())


def result_of(cell):
    """Take what a cell shows out of it, as a cell of its own, after it."""
    shown = cell.children[-1]
    cell.remove(shown)
    alone = nodes.container('', shown, classes=['cell'])
    cell.parent.insert(cell.parent.index(cell) + 1, alone)
    return alone


def setup(app):
    app.connect('doctree-read', fold_all, priority=900)  # after the toys
    app.add_css_file('folding.css')
    app.add_js_file('folding.js', loading_method='defer')
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
