"""Lists of chapters stand on many pages: each is what the chapters' code says.

Which chapters need MXNet, PyTorch, the slow network, or processes that fork
is read from their code cells, and compared with the words of every page.
"""
import ast
import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
CODE = {}  # the code cells by the number of their chapter
for path in sorted(ROOT.glob('notebooks/[0-9]*.ipynb')):
    CODE[int(path.name[:2])] = [
        ''.join(cell['source']) for cell in json.loads(path.read_text())[
            'cells'] if cell['cell_type'] == 'code']
CORE = {1, 3, 5, 8, 9, 15, 18, 19}  # see test_readme.py


def chapters(pattern, without='(?!)'):
    """Those with a cell in which one pattern is found, and the other not."""
    return {number for number, cells in CODE.items() if any(
        re.search(pattern, cell, re.M) and not re.search(without, cell)
        for cell in cells)}


def needs_of(cell):
    """What the calls of `cluster_or_record` in a cell need, such as torch."""
    if 'cluster_or_record' not in cell:
        return ''
    calls = [node for node in ast.walk(ast.parse(cell)) if isinstance(
        node, ast.Call) and 'cluster_or_record' in ast.unparse(node.func)]
    return ' '.join(ast.unparse(dict(
        {one.arg: one.value for one in call.keywords},
        **dict(zip(('record', 'num_workers', 'needs'), call.args))).get(
            'needs', ast.Name('torch'))) for call in calls)


# %%px cells run on the workers of a cluster or of a record.
MXNET = chapters(r'^(import mxnet|from mxnet|from d2l )', without='%%px')
NO_MXNET = CODE.keys() - MXNET
RECORDED = chapters(r'cluster_or_record\(')
TORCH = {number for number, cells in CODE.items()
         if any('torch' in needs_of(cell) for cell in cells)}
CLUSTER = chapters(r'd2lps\.Cluster\(|cluster_or_record\(')
NETWORK = chapters(r'd2lps\.Network\(')
# Chapter 10 takes a recorded table.
WITHOUT_IT = NETWORK - RECORDED - chapters(
    'if problem:  # take what was measured')
STORE = CLUSTER & (MXNET | chapters(r'mx\.kv\.create\('))
ANIMATED = chapters(r'pictures\.animate\(|\banimate\(')


def lists(path):
    """All lists of chapters in a file, in order, each as a set of numbers."""
    text = re.sub(r'\n *(# |\')', '\n', path.read_text())  # of code, of YAML
    return [{number for first, last in re.findall(
        r'(\d+)(?:\s+to\s+(\d+))?', words)
        for number in range(int(first), int(last or first) + 1)}
        for words in re.findall(r'[Cc]hapters?\s+(\d+(?:(?:,\s+|\s+and\s+|'
                                r',\s+and\s+|\s+to\s+)\d+)*)', text)]


@pytest.mark.parametrize('name, wanted', [
    ('README.md', [NO_MXNET, TORCH, NETWORK, WITHOUT_IT]),
    ('CONTRIBUTING.md', [CLUSTER, NETWORK, RECORDED]),
    ('docs/install.md', [NO_MXNET, NO_MXNET & RECORDED, TORCH, NETWORK,
                         WITHOUT_IT]),
    ('docs/bare-mxnet.md', [STORE]),
    ('docs/book/index.md', [NO_MXNET]), ('setup/install.py', [NO_MXNET]),
    ('d2lps/missing.py', [NO_MXNET]), ('compose.yaml', [NETWORK]),
    ('Makefile', [TORCH]), ('pyproject.toml', [TORCH]),
    ('teaching/README.md', [NETWORK, ANIMATED, CORE]),
    ('tests/test_torch.py', [TORCH])])
def test_a_page_lists_what_the_chapters_need(name, wanted):
    """And has no other long list, such as an old one in a second place."""
    there = lists(ROOT / name)
    for one in wanted:
        assert one in there, f'{name}: chapters {sorted(one)}, not {there}'
    for one in there:
        assert len(one) < 5 or one in wanted, f'{name}: {sorted(one)}'


def test_the_workflow_runs_the_chapters_without_mxnet():
    """Also on Windows, where some show what was recorded."""
    light = yaml.safe_load((ROOT / '.github/workflows/test.yml').read_text())[
        'jobs']['light']['steps']
    run = set()
    for step in light:
        words = re.findall(r'notebooks/\S+', step.get('run', ''))
        found = subprocess.run(
            ['sh', '-c', f'ls {" ".join(words)}'], cwd=ROOT, check=True,
            text=True, stdout=subprocess.PIPE).stdout if words else ''
        run |= {int(number) for number in re.findall(
            r'notebooks/(\d\d)', found)}
    assert run == NO_MXNET
