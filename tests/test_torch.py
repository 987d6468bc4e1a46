"""Chapters 18, 19, 22, 24 and 25 with PyTorch, which `make test-all` installs.

`make test` runs them, too, in their recorded form.
"""
import json
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from clusters import needs_network
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parents[1] / 'notebooks'
CHAPTERS = [next(NOTEBOOKS.glob(f'{number}-*.ipynb'))
            for number in (18, 19, 22, 24, 25)]
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not find_spec('torch'), reason='make .venv/torch'),
    needs_network]


@pytest.mark.parametrize('path', CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_runs(path, monkeypatch):
    """Its folded cells check what it says; and nothing comes from a file."""
    monkeypatch.delenv('D2LPS_WITHOUT', raising=False)
    monkeypatch.delenv('D2LPS_RECORD', raising=False)
    notebook = nbformat.read(path, 4)
    NotebookClient(notebook, timeout=300, startup_timeout=180,
                   resources={'metadata': {'path': NOTEBOOKS}}).execute()
    shown = json.dumps([cell.get('outputs') for cell in notebook.cells])
    assert 'running)' in shown
    assert 'recorded elsewhere' not in shown and 'Not run:' not in shown
