"""Prose as it is written: no line of it becomes something else by chance.

Where a line of a sentence begins with `1.`, `+` or `#`, because an editor
broke it there, Markdown begins a list or a heading, and the sentence falls
apart. Formulas are looked at in the pages, in tests/book.
"""
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLACES = '*', 'book/*', 'docs/*', 'notebooks/*', 'notebooks/exercises/**/*'
FENCE = re.compile(r'\s*(`{3,}|~{3,}|:{3,})')
ITEM = re.compile(r'( *)([-+*]|\d{1,9}[.)]) ')
OTHER = re.compile(r' {0,3}(?:#{1,6} |>|(?:=+|-{2,})\s*$)')


def broken(text):
    """The lines of paragraphs that begin something else."""
    found, fence, items, before = [], '', [], ''
    for line in text.split('\n'):
        mark = FENCE.match(line)
        if fence or mark:
            closes = mark and line.strip() == mark[1] and (
                line.strip().startswith(fence))
            fence = '' if fence and closes else fence or mark[1]
            items, before = [], ''
            continue
        item = ITEM.match(line)
        if before and item and not (
                before.endswith(':') or kind(item) in items):
            found.append(line)
        elif before and OTHER.match(line) and not before.startswith('>'):
            found.append(line)
        if item:
            items.append(kind(item))
        elif not line.strip():
            items = []
        # After a heading or a row of a table no paragraph goes on.
        before = '' if re.match(r'\s*(#|\||<|---)', line) else line.strip()
    return found


def kind(item):
    """Of a list's item: how far from the left, and its mark."""
    return item[1], item[2].lstrip('0123456789')


def texts(path):
    """What of a file is Markdown."""
    words = path.read_text('utf-8')
    if path.suffix == '.md':
        return [words]
    return [''.join(cell['source']) for cell in json.loads(words)['cells']
            if cell['cell_type'] == 'markdown']


FILES = sorted({path.relative_to(ROOT) for place in PLACES
                for suffix in ('md', 'ipynb')
                for path in ROOT.glob(f'{place}.{suffix}')
                if '.ipynb_checkpoints' not in path.parts})


@pytest.mark.parametrize('path', FILES, ids=str)
def test_no_line_of_a_paragraph_becomes_something_else(path):
    assert [line for text in texts(ROOT / path)
            for line in broken(text)] == []


# In the model of a message, α + βM, β is the seconds of a byte: it multiplies.
DIVIDED = re.compile(r'[A-Za-z}]\s*(/\s*|\}\{)(β|\\?beta\b)')


@pytest.mark.parametrize('path', FILES, ids=str)
def test_beta_is_no_bandwidth(path):
    assert [found[0] for text in texts(ROOT / path)
            for found in DIVIDED.finditer(text)] == []


def test_there_are_many_files():
    assert len(FILES) > 50


@pytest.mark.parametrize('line', [
    '1. So a worker', '18. So they', '+ S_k$ bytes', '- 3 is', '* that',
    '# and', '> 3', '---'])
@pytest.mark.parametrize('start', ['', '* ', '3. '])
def test_what_falls_apart_is_found(start, line):
    text = f'Words.\n\n{start}A sentence with the sum\n{" " * len(start)}'
    assert broken(f'{text}{line}\nand more.') == [' ' * len(start) + line]


@pytest.mark.parametrize('text', [
    'Words.\n\n* one\n* two\n  and more\n\n1. this\n2. that',
    'We need:\n- one\n- two', '## A Heading\n* one', '> said\n> again',
    '```\nx\n1. y\n```\n* z', 'A sum of 3\n+4 and a\n1.5th, #4',
    '| a | b |\n|---|---|\n| 1 | 2 |', '* one:\n  * two\n  * three\n* four'])
def test_what_is_a_list_may_stay(text):
    assert broken(text) == []
