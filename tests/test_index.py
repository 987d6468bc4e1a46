"""What the index says about the chapters, and the links between them."""
import json
import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from d2lps.pictures.ideas import IDEAS

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


def test_the_map_begins_with_six_pictures_that_lead_to_their_chapters():
    """Code comes later, and is one short cell."""
    cells = json.loads((NOTEBOOKS / 'index.ipynb').read_text())['cells']
    found = re.findall(
        r'\[!\[([^]]+)\]\((pictures/\S+?)\)\]\(((\d+)-\S+?)\)<br>'
        r'\*\*\[(.+?)\]\((\S+?)\)\*\*\. ([^|]+?) \|',
        ''.join(cells[0]['source']))
    assert sorted((int(number), title, words, path, alt)
                  for alt, path, _, number, title, _, words in found) == [
        (number, title, words, f'pictures/idea-{name}.svg', draw().alt)
        for name, (number, title, words, draw) in IDEAS.items()]
    for _, path, chapter, _, _, again, _ in found:
        assert chapter == again and (NOTEBOOKS / chapter).exists()
        assert (NOTEBOOKS / path).exists()
    code = [k for k, cell in enumerate(cells) if cell['cell_type'] == 'code']
    assert code == [2] and len(cells[2]['source']) <= 3


def test_its_routes_take_as_long_as_their_chapters():
    minutes = dict(re.findall(
        r'^\| \[(\d+)\..* \| \d+ minutes?, (\d+) minutes \|$',
        text_of('index.ipynb'), re.M))
    routes = text_of('index.ipynb').split('## Where to Begin')[1].split(
        '\nBelow are')[0]
    sums = {}
    for name, words in re.findall(r'^\* \*\*(.+?)\*\*: (.*?)(?=^\*|\Z)',
                                  routes, re.M | re.S):
        chapters = re.findall(r'\[(\d+)\]', words) or (
            'all twenty' in words and [*minutes])
        sums[name] = sum(int(minutes[number]) for number in chapters)
        assert f'{sums[name]:,} minutes' in words
    assert [*sums] == ['Two hours', 'One afternoon', 'A course']


def test_the_years_of_one_gpu_are_worked_out():
    said = text_of('index.ipynb')
    seconds = 6 * 70e9 * 1.4e12 / 4e14
    assert f'{seconds / 3600 / 24 / 365:.0f}\\ \\text{{years}}' in said
    assert f'{seconds / 1000 / 3600 / 24:.0f} days' in said
    assert f'{16 * 70e9 / 1e12:.2f} TB' in said
    assert f'{16 * 70e9 / 80e9:.0f} times its memory' in said


@pytest.mark.parametrize('name', [*CHAPTERS, 'index.ipynb'])
def test_links_to_files_lead_somewhere(name):
    for link in re.findall(r'\]\((?![a-z]+:|#)(.+?)(?:#.*?)?\)',
                           text_of(name)):
        assert (NOTEBOOKS / link).exists(), link


@pytest.mark.parametrize('name, then', [*pairwise(CHAPTERS)])
def test_a_chapter_leads_to_the_next_one(name, then):
    assert f']({then}' in text_of(name).split('\n## ')[-1]


@pytest.mark.parametrize('name', CHAPTERS)
def test_links_to_headings_lead_to_one(name):
    """JupyterLab's anchors: the heading, with - for each space."""
    for file, anchor in re.findall(
            r'\]\(([\w-]+\.ipynb)?#(.+?)\)(?=\W|$)', text_of(name)):
        headings = re.findall(r'^#+ (.*)', text_of(file or name), re.M)
        assert unquote(anchor) in {heading.replace(' ', '-')
                                   for heading in headings}, anchor


def test_every_bullet_of_a_summary_says_where_it_was_seen():
    for name in CHAPTERS:
        [summary] = re.findall(
            r'^## (?:Summary|What You Have Seen)\n(.*?)^## ', text_of(name),
            re.M | re.S)
        bullets = re.split(r'^\* ', summary, flags=re.M)[1:]
        assert len(bullets) > 2 and all('](' in one for one in bullets), name


def test_what_later_chapters_answer_leads_there():
    """There and back: from where their questions were left open."""
    for number, others in (('15', '03 10'), ('16', '08'), ('17', '09')):
        [new] = [name for name in CHAPTERS if name.startswith(number)]
        for other in others.split():
            [old] = [name for name in CHAPTERS if name.startswith(other)]
            assert f']({new}' in text_of(old), (old, new)
        assert re.search(r'\]\((0\d|10)-', text_of(new)), new
