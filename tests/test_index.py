"""What the index says about the chapters."""
import json
import re
from datetime import datetime
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parents[1] / 'notebooks'
INDEX = '\n'.join(''.join(cell['source']) for cell in json.loads(
    (NOTEBOOKS / 'index.ipynb').read_text())['cells'])
ROWS = re.findall(r'^\| \[(\d+)\..*\]\((.*\.ipynb)\).* \| (\d+) minutes?,',
                  INDEX, re.MULTILINE)


def seconds(notebook):
    """How long the cells took when the notebook was last executed."""
    marks = [datetime.fromisoformat(time.replace('Z', '+00:00'))
             for cell in json.loads(notebook.read_text())['cells']
             for time in cell['metadata'].get('execution', {}).values()]
    return (max(marks) - min(marks)).total_seconds()


def test_the_index_lists_every_chapter_once_in_order():
    chapters = sorted(path.name for path in NOTEBOOKS.glob('[0-9]*.ipynb'))
    assert [name for _, name, _ in ROWS] == chapters
    assert [int(number) for number, _, _ in ROWS] == [
        int(name[:2]) for name in chapters]


@pytest.mark.parametrize('name, minutes', [row[1:] for row in ROWS])
def test_a_chapter_takes_no_longer_than_the_index_says(name, minutes):
    # Half as much again, as other programs may have been at work.
    assert seconds(NOTEBOOKS / name) < 90 * int(minutes)
