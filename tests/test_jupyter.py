"""What setup/jupyter sets for the JupyterLab of `make lab`."""
import asyncio
import json
import os
import re
import shutil
import sys
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyterlab_server.config import get_federated_extensions
from tornado.web import HTTPError
from traitlets.config import PyFileConfigLoader

ROOT = Path(__file__).parents[1]
SETUP = ROOT / 'setup' / 'jupyter'


@pytest.fixture(autouse=True)
def path_as_it_was(monkeypatch):
    """The settings add their own folder to it."""
    monkeypatch.setattr(sys, 'path', [*sys.path])


@pytest.mark.parametrize('folder, transport', [
    ('r', 'ipc'), ('r' * 200, {}), ('a file/r', {})],
    ids=['as it should', 'a long name', 'no folder'])
def test_kernels_listen_where_nobody_else_can_connect(
        folder, transport, tmp_path, monkeypatch):
    """If Unix sockets can be had; otherwise they work all the same."""
    (tmp_path / 'a file').touch()
    monkeypatch.chdir(tmp_path)  # pytest's folders have long names
    monkeypatch.setenv('JUPYTER_RUNTIME_DIR', folder)
    config = PyFileConfigLoader('jupyter_server_config.py',
                                str(SETUP)).load_config()
    assert config.LanguageServerManager.autodetect is False
    assert config.get('KernelManager', {}).get('transport', {}) == transport
    if transport:
        assert [*(tmp_path / folder).iterdir()] == []


@pytest.fixture
def manager(tmp_path, monkeypatch):
    """What JupyterLab asks for files, with one notebook of chapter 3."""
    config = PyFileConfigLoader('jupyter_server_config.py',
                                str(SETUP)).load_config()
    module, name = config.ServerApp.contents_manager_class.split('.')
    monkeypatch.setenv('JUPYTER_DATA_DIR', str(tmp_path / 'data'))
    (tmp_path / 'root').mkdir()
    notebook = nbformat.read(ROOT / 'notebooks' / '03-where-to-sum.ipynb', 4)
    for cell in notebook.cells:
        if cell.cell_type == 'code':  # as JupyterLab notes when a cell ran
            cell.metadata.execution = {
                'iopub.status.busy': '2026-11-25T00:00:00.000000Z'}
    nbformat.write(notebook, tmp_path / 'root' / 'a.ipynb')
    made = getattr(__import__(module), name)(root_dir=str(tmp_path / 'root'))
    made._named = lambda spec: named(made, spec)
    made.file = tmp_path / 'root' / 'a.ipynb'
    return made


async def named(manager, spec):
    """As with a server, whose kernels have a name of their own."""
    server = SimpleNamespace(kernel_spec_manager=KernelSpecManager())
    told = await type(manager)._named(SimpleNamespace(parent=server), spec)
    return told | {'display_name': 'Python of this machine'}


def opened(manager, path='a.ipynb'):
    return json.loads(json.dumps(
        asyncio.run(manager.get(path))['content']))


def save(manager, notebook, path='a.ipynb'):
    return asyncio.run(manager.save(
        {'type': 'notebook', 'format': 'json', 'content': notebook}, path))


def test_a_notebook_comes_with_what_its_kernel_fills_in(manager):
    """So that JupyterLab finds nothing to change."""
    from ipykernel.ipkernel import IPythonKernel
    metadata = opened(manager)['metadata']
    assert metadata['language_info'] == IPythonKernel.language_info
    assert metadata['kernelspec'] == {
        'name': 'python3', 'language': 'python',
        'display_name': 'Python of this machine'}
    text = manager.file.read_text()
    notebook = json.loads(text)
    notebook['metadata'] = {'kernelspec': {'name': 'r', 'display_name': 'R'}}
    manager.file.write_text(json.dumps(notebook))
    assert opened(manager)['metadata'] == notebook['metadata']


def test_controls_of_an_earlier_run_are_words(manager):
    kind = 'application/vnd.jupyter.widget-view+json'
    assert kind in manager.file.read_text()
    shown = [output['data'] for cell in opened(manager)['cells']
             for output in cell.get('outputs', []) if 'data' in output]
    assert not any(kind in data for data in shown)
    assert 'Run this cell, and controls appear here.' in [
        data['text/plain'] for data in shown]


def test_links_lead_to_the_folder_beside_the_notebooks(manager):
    beside = manager.file.parents[1] / 'docs'
    beside.mkdir()
    (beside / 'install.md').write_text('How to install')
    (beside.parent / 'secret.md').write_text('not for links')

    def read(path):
        return asyncio.run(manager.get(path))['content']
    assert read('docs/install.md') == 'How to install'
    assert opened(manager, 'notebooks/a.ipynb') == opened(manager)
    for path in ('docs/none.md', 'docs/../../secret.md', 'secret.md',
                 'docs/../secret.md', 'notebooks/../../secret.md'):
        with pytest.raises(HTTPError, match='404|No such'):
            read(path)
    own = manager.file.with_name('docs')
    own.mkdir()
    (own / 'install.md').write_text("The reader's own")
    assert read('docs/install.md') == "The reader's own"


@pytest.mark.parametrize('written', [
    lambda text: text, lambda text: json.dumps(json.loads(text))],
    ids=['as committed', 'in one line'])
def test_a_notebook_that_did_not_change_is_not_written(manager, written):
    """With another Python, trusted, or with cells run without a change."""
    text = written(manager.file.read_text())
    manager.file.write_text(text)
    os.utime(manager.file, (1, 1))
    notebook = opened(manager)
    notebook['metadata']['language_info']['version'] = '3.99'
    for cell in notebook['cells']:
        if cell['cell_type'] == 'code':
            cell['metadata']['trusted'] = True
            cell['metadata'].pop('execution', None)
    saved = save(manager, notebook)
    assert manager.file.read_text() == text
    assert manager.file.stat().st_mtime == saved['last_modified'].timestamp()
    assert saved['last_modified'].timestamp() == 1
    cells = [cell for cell in opened(manager)['cells']
             if cell['cell_type'] == 'code']
    assert all(cell['metadata']['trusted'] for cell in cells)


def test_a_change_is_written_and_nothing_else(manager):
    before = json.loads(manager.file.read_text())
    notebook = opened(manager)
    cell = next(one for one in notebook['cells']
                if one['cell_type'] == 'code' and one['outputs'])
    ran = cell['metadata'].pop('execution')
    cell.update(outputs=[], execution_count=None)
    save(manager, notebook)
    wanted = deepcopy(before)
    one = next(one for one in wanted['cells'] if one['id'] == cell['id'])
    assert one['metadata'].pop('execution') == ran
    one.update(outputs=[], execution_count=None)
    assert json.loads(manager.file.read_text()) == wanted != before


def test_another_kernel_and_a_new_notebook_are_written(manager):
    notebook = opened(manager)
    notebook['metadata']['kernelspec'] = other = {
        'name': 'other', 'display_name': 'Other', 'language': 'python'}
    save(manager, notebook)
    assert json.loads(manager.file.read_text())['metadata'][
        'kernelspec'] == other
    save(manager, notebook, 'new.ipynb')
    assert manager.file.with_name('new.ipynb').exists()
    manager.file.write_text('no notebook')
    save(manager, notebook)
    assert nbformat.read(manager.file, 4).metadata.kernelspec == other


def test_jupyterlab_finds_the_extension_where_it_was_copied(tmp_path):
    """As on Windows, where all settings are copied."""
    shutil.copytree(SETUP, tmp_path / 'jupyter')
    config = PyFileConfigLoader('jupyter_lab_config.py', str(
        tmp_path / 'jupyter')).load_config()
    [one] = get_federated_extensions(
        config.LabApp.extra_labextensions_path).values()
    folder = tmp_path / 'jupyter' / 'labextensions' / one['name']
    assert Path(one['ext_path']) == folder
    script = (folder / one['jupyterlab']['_build']['load']).read_text()
    assert f'_JUPYTERLAB ??= {{}}).{one["name"]} =' in script
    [style] = re.findall(r"new URL\('(.*)', here\)", script)
    assert 'invert(0.925) hue-rotate(180deg)' in (
        folder / 'static' / style).read_text()
