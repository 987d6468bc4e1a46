"""What stands in a tab, before any browser sees it."""
import hashlib
import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / 'docs' / 'book' / 'extensions'))
BUILD = runpy.run_path(str(ROOT / 'setup' / 'tab' / 'build.py'))
NAMES = {*BUILD['LOADED'], *BUILD['KERNEL']}


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A small Pyodide: each package is its name."""
    folder = tmp_path / 'files'
    folder.mkdir()
    packages = {name: {'file_name': f'{name}.whl', 'sha256': sha256(name),
                       'depends': ['six']} for name in NAMES}
    packages['six'] = {'file_name': 'six.whl', 'sha256': sha256('six'),
                       'depends': []}
    packages['torch'] = {'file_name': 'torch.whl', 'sha256': sha256('torch'),
                         'depends': []}
    for name in packages:
        (folder / f'{name}.whl').write_text(name)
    lock = json.dumps({'packages': packages})
    (folder / 'pyodide-lock.json').write_text(lock)
    (folder / 'pyodide.js').write_text('js')
    (tmp_path / 'pyodide.sha256').write_text(
        f'{sha256(lock)}  pyodide-lock.json\n{sha256("js")}  pyodide.js\n')
    monkeypatch.setitem(BUILD['copy_pyodide'].__globals__, 'HERE', tmp_path)
    return folder


@pytest.mark.parametrize('there', [(), ('lite',), ('lite', 'lite.new')])
def test_a_new_site_takes_the_place_of_the_old_one(tmp_path, there):
    """Somebody may be reading from it: see `replace`."""
    for name in (*there, 'made'):
        (tmp_path / name).mkdir()
        (tmp_path / name / 'tab.json').write_text(name)
    BUILD['replace'](tmp_path / 'lite', tmp_path / 'made')
    assert [path.name for path in tmp_path.iterdir()] == ['lite']
    assert (tmp_path / 'lite' / 'tab.json').read_text() == 'made'


def test_what_a_tab_loads_is_copied(folder, tmp_path):
    BUILD['copy_pyodide'](folder, tmp_path / 'to')
    assert {path.name for path in (tmp_path / 'to').iterdir()} == {
        'pyodide-lock.json', 'pyodide.js',
        *(f'{name}.whl' for name in NAMES | {'six'})}


@pytest.mark.parametrize('name, text, words', [
    ('pyodide-lock.json', None, 'no file pyodide-lock.json in it.'),
    ('pyodide-lock.json', '{}', 'is not that of Pyodide'),
    ('six.whl', None, 'has no file six.whl: get it from https://cdn.'),
    ('six.whl', 'seven', 'six.whl is damaged, or not of Pyodide'),
    ('pyodide.js', 'jss', 'pyodide.js is damaged')])
def test_a_file_that_is_missing_or_damaged_is_named(folder, tmp_path, name,
                                                    text, words):
    (folder / name).unlink()
    if text is not None:
        (folder / name).write_text(text)
    with pytest.raises(SystemExit, match=f'^d2lps: [^\n]*{words}[^\n]*$'):
        BUILD['copy_pyodide'](folder, tmp_path / 'to')


def test_each_notebook_has_a_row_and_each_row_a_notebook(monkeypatch):
    import tab
    pages = [f'notebooks/{name}' for name in tab.ROWS['chapters']]
    app = SimpleNamespace(env=SimpleNamespace(found_docs=pages))
    tab.check(app)
    monkeypatch.delitem(tab.ROWS['chapters'], '05-rings')
    with pytest.raises(ExtensionError, match=r"no row for \['05-rings'\]"):
        tab.check(app)
    monkeypatch.setitem(tab.ROWS['exercises'], 'forest', {'runs': 'all'})
    with pytest.raises(ExtensionError, match=r"no notebook for \['forest'\]"):
        tab.check(SimpleNamespace(env=SimpleNamespace(found_docs=[])))
