"""What the index says about the chapters."""
import json
import re
from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parents[1] / 'notebooks'
INDEX = '\n'.join(''.join(cell['source']) for cell in json.loads(
    (NOTEBOOKS / 'index.ipynb').read_text())['cells'])
ROWS = re.findall(r'^\| \[(\d+)\..*\]\((.*\.ipynb)\).* \| \d+ minutes?,',
                  INDEX, re.MULTILINE)


def test_the_index_lists_every_chapter_once_in_order():
    chapters = sorted(path.name for path in NOTEBOOKS.glob('[0-9]*.ipynb'))
    assert [name for _, name in ROWS] == chapters
    assert [int(number) for number, _ in ROWS] == [
        int(name[:2]) for name in chapters]
