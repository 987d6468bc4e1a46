"""What setup/jupyter sets for the JupyterLab of `make lab`."""
from pathlib import Path

import pytest
from traitlets.config import PyFileConfigLoader

SETUP = Path(__file__).parents[1] / 'setup' / 'jupyter'


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
