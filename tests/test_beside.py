"""A chapter that was copied away from the files beside it says so."""
import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from d2lps import Cluster, beside
from d2lps.cluster import WorkerError
from nbclient import NotebookClient
from test_notebooks import CHAPTERS, code_of

NOTEBOOKS = Path(__file__).parents[1] / 'notebooks'
OPENED = re.compile(r"'((?:results|launch|larger_models)/[^']+|glossary.md)'")


def test_all_that_chapters_open_is_known_and_lies_beside_them(monkeypatch):
    opened = {path for chapter in CHAPTERS for code in code_of(chapter)
              for path in OPENED.findall(code)}
    assert len(opened) > 10
    monkeypatch.chdir(NOTEBOOKS)
    assert all(Path(path).exists() for path in opened)
    assert not any(map(beside.lacking, opened))
    monkeypatch.chdir(NOTEBOOKS / 'exercises')
    assert all(f'{path} is not in this folder' in beside.lacking(path)
               for path in opened)


def test_a_notebook_elsewhere_shows_one_line(tmp_path):
    """And what else is not found is shown as usual."""
    sources = ['import d2lps\nimport pandas as pd',
               "pd.read_csv('results/13-seeds.csv')",
               'import larger_models.kept',
               "pd.read_csv('mine.csv')"]
    notebook = nbformat.v4.new_notebook(
        cells=[*map(nbformat.v4.new_code_cell, sources)])
    NotebookClient(notebook, kernel_name='python3', allow_errors=True,
                   resources={'metadata': {'path': tmp_path}}).execute(
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)})
    _, results, scripts, mine = [cell.outputs for cell in notebook.cells]
    [error] = results
    assert len(error.traceback) == 1
    assert error.traceback[0].startswith(
        'FileNotFoundError: results/13-seeds.csv is not in this folder. It '
        'lies beside the chapters: open this notebook in the folder notebo')
    assert 'larger_models is not in this folder' in scripts[0].evalue
    assert len(mine[0].traceback) > 1 and 'mine.csv' in mine[0].evalue


def test_workers_elsewhere_say_it_of_scripts(tmp_path, monkeypatch):
    from d2lps import run_script
    monkeypatch.chdir(tmp_path)
    with Cluster(1, num_servers=0) as cluster:
        with pytest.raises(WorkerError, match='launch/by_hand.sh is not in t'):
            cluster.run(run_script, 'launch/by_hand.sh')
