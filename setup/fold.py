"""Hide the answers of the chapters' questions: `make fold`.

A chapter asks **Predict.**, shows a result, and explains it in paragraphs of
which the first begins with **Answer.** In the committed notebooks JupyterLab
shows a bar in place of the result, and a line to click in place of the answer.
Running a cell opens its result: fold again before you commit a chapter.

Beside the bar JupyterLab shows the first line of the first output, which may
be the answer. So an output with a harmless line stands before the others. Its
other form, which is empty, is shown by programs that hide no results.
"""
import json
import re
import sys
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parents[1] / 'notebooks'
GUESS = 'Guess first, then click here'
COVER = {'data': {'text/latex': [], 'text/plain': [GUESS]}, 'metadata': {},
         'output_type': 'display_data'}
OPEN = ('<details><summary>Guess first, then open the answer</summary>\n\n')
CLOSE = '\n\n</details>'
# An answer ends before a heading, also one in bold at a paragraph's begin.
ENDS = re.compile(r'\n\n(?=#+ |\*\*[^*]+[.?]\*\*)')
TOYS = 'explore_'  # these are there to be played with
Notebook = dict[str, Any]


def source(cell: Notebook) -> str:
    return ''.join(cell['source'])


def fold(notebook: Notebook) -> Notebook:
    """Hide each answer, and nothing else."""
    unfold(notebook)
    asked = False
    for cell in notebook['cells']:
        text = source(cell)
        if cell['cell_type'] == 'markdown':
            if '**Answer' in text:
                asked = False
                _fold_answer(cell, text)
            asked = asked or '**Predict' in text
        elif asked and cell['outputs'] and TOYS not in text:
            cell['metadata'].setdefault('jupyter', {})['outputs_hidden'] = True
            cell['metadata']['collapsed'] = True  # JupyterLab writes both
            cell['metadata'] = dict(sorted(cell['metadata'].items()))
            cell['outputs'].insert(0, COVER)
    return notebook


def _fold_answer(cell: Notebook, text: str) -> None:
    begin = text.rfind('\n\n', 0, text.index('**Answer')) + 2
    begin = 0 if begin == 1 else begin
    found = ENDS.search(text, begin)
    end = found.start() if found else len(text)
    cell['source'] = (text[:begin] + OPEN + text[begin:end] + CLOSE
                      + text[end:]).splitlines(True)


def unfold(notebook: Notebook) -> Notebook:
    """Show all answers, as the book needs them, which has folds of its own."""
    for cell in notebook['cells']:
        if cell['cell_type'] == 'markdown':
            text = source(cell).replace(OPEN, '').replace(CLOSE, '')
            cell['source'] = text.splitlines(True)
        elif cell['cell_type'] == 'code':
            cell['outputs'] = [
                one for one in cell['outputs']
                if one.get('data', {}).get('text/plain') != [GUESS]]
            jupyter = cell['metadata'].get('jupyter', {})
            if jupyter.pop('outputs_hidden', None):
                cell['metadata'].pop('collapsed', None)
            if 'jupyter' in cell['metadata'] and not jupyter:
                del cell['metadata']['jupyter']
    return notebook


def written(notebook: Notebook) -> str:
    """A notebook as JupyterLab writes it into a file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + '\n'


if __name__ == '__main__':
    for name in sys.argv[1:] or sorted(NOTEBOOKS.glob('[0-9]*.ipynb')):
        path = Path(name)
        path.write_text(written(fold(json.loads(path.read_text()))))
