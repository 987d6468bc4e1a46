"""A chapter runs in Python for the browser, which has no threads.

In Node.js, because this is quick; tests/browser/test_tab.py sees all that
claim to run, in a browser.
"""
import json
import os
import shutil
import subprocess
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).resolve().parents[2]
PYODIDE = os.environ.get('D2LPS_PYODIDE')
NODE = shutil.which('node')


@pytest.mark.skipif(not PYODIDE, reason='D2LPS_PYODIDE names no folder with '
                                        'the files of Pyodide 0.27.7')
@pytest.mark.skipif(not NODE, reason='there is no node (Node.js 18 or later)')
def test_chapter_23_runs_without_threads_processes_and_mxnet():
    notebook = ROOT / 'notebooks' / '23-today.ipynb'
    done = subprocess.run(
        [NODE, Path(__file__).with_name('run.mjs'), PYODIDE,
         Path(networkx.__file__).parents[1], ROOT, notebook],
        text=True, capture_output=True, timeout=600)
    found = json.loads(done.stdout.splitlines()[-1])
    cells = json.loads(notebook.read_text())['cells']
    assert found == {'wrong': [], 'ran': sum(
        cell['cell_type'] == 'code' for cell in cells)}, done.stderr
