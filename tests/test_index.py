"""What the index says about the chapters, and the links between them."""
import json
import re
from pathlib import Path

import pytest
from test_notebooks import minutes_of

NOTEBOOKS = Path(__file__).resolve().parents[1] / 'notebooks'
CHAPTERS = sorted(path.name for path in NOTEBOOKS.glob('[0-9]*.ipynb'))


def text_of(name):
    cells = json.loads((NOTEBOOKS / name).read_text())['cells']
    return '\n'.join(''.join(cell['source']) for cell in cells
                     if cell['cell_type'] == 'markdown')


ROWS = re.findall(
    r'^\| \[(\d+)\..*\]\((.*\.ipynb)\).* \| \d+ minutes?, (.*) \|$',
    text_of('index.ipynb'), re.MULTILINE)


def test_the_index_lists_every_chapter_once_in_order():
    assert [name for _, name, _ in ROWS] == CHAPTERS
    assert [int(number) for number, *_ in ROWS] == [
        int(name[:2]) for name in CHAPTERS]


@pytest.mark.parametrize('name, time', [row[1:] for row in ROWS])
def test_reading_takes_as_long_as_the_chapter_says(name, time):
    top = text_of(name).split('\n## ')[0]
    assert minutes_of(f'To read: {time}.') == minutes_of(top)


@pytest.mark.parametrize('name', [*CHAPTERS, 'index.ipynb'])
def test_links_to_files_lead_somewhere(name):
    for link in re.findall(r'\]\((?![a-z]+:|#)(.+?)(?:#.*?)?\)',
                           text_of(name)):
        assert (NOTEBOOKS / link).exists(), link


def test_the_new_chapters_are_linked_with_the_older_ones():
    """There and back: from where their questions were left open."""
    for number, others in (('11', '2 4 5'), ('12', '4 5'), ('13', '4 5')):
        [new] = [name for name in CHAPTERS if name.startswith(number)]
        for other in others.split():
            [old] = [name for name in CHAPTERS if name.startswith(f'0{other}')]
            assert f']({new}' in text_of(old), (old, new)
        assert re.search(r'\]\(0\d-', text_of(new)), new
