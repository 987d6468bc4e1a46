"""setup/: what `make lab` and `make test` do on a newcomer's machine."""
import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location(
    'install', ROOT / 'setup' / 'install.py')
install = importlib.util.module_from_spec(spec)
spec.loader.exec_module(install)
LIBRARIES = {'libgomp.so.1': ('libgomp1', 'libgomp'),
             'libquadmath.so.0': ('libquadmath0', 'libquadmath')}
# No outer make, no virtual environment, no settings of other programs.
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith((
        'MAKE', 'MFLAGS', 'PYTHON', 'VIRTUAL_ENV', 'JUPYTER'))}


def run(*command, fails=False, **how):
    """Run it and return what it said."""
    env = ENVIRONMENT | how.pop('env', {})
    done = subprocess.run([*map(str, command)], text=True, timeout=900,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=env, **how)
    assert bool(done.returncode) == fails, done.stdout
    assert 'Traceback' not in done.stdout
    return done.stdout


@pytest.fixture
def copy(tmp_path):
    """What is installed, in a folder whose name has a space."""
    copy = tmp_path / 'my copy'
    for name in ('d2lps', 'setup'):
        shutil.copytree(ROOT / name, copy / name)
    for path in (*ROOT.glob('requirements*.lock'), ROOT / 'Makefile',
                 ROOT / 'pyproject.toml', ROOT / 'README.md'):
        shutil.copy(path, copy)
    return copy


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty one, in which `install` works; where uv is, is known."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(install.os, 'chdir', lambda _: None)
    monkeypatch.delenv('PYTHON', raising=False)
    monkeypatch.setattr(install, 'is_here', lambda _: True)
    monkeypatch.setattr(install, 'find_uv', lambda: 'uv')
    Path('setup').mkdir()
    return tmp_path


@pytest.mark.full
def test_an_installation(copy, tmp_path):
    """With uv from pip; then without a network, in a folder that moves."""
    def make(folder, **env):
        return run('make', '.venv/installed', f'PYTHON={sys._base_executable}',
                   cwd=folder, env=env)
    try:
        said = make(copy)
    except AssertionError as error:
        if 'd2lps: pip failed' in str(error):
            pytest.skip('no network')
        raise
    assert 'MB of disk' in said and 'made anew' not in said
    assert 'up to date' in make(copy)
    moved = copy.rename(tmp_path / 'd2lps')
    assert 'made anew' in make(moved, UV_OFFLINE='1')
    assert 'up to date' in make(moved)
    # The package is found from elsewhere, and so is MXNet.
    beside = run(moved / '.venv/bin/python', '-c',
                 'import d2lps.engine\nprint(d2lps.__file__)', cwd=tmp_path)
    assert 'd2lps/d2lps/__init__.py' in beside
    for module in ('jupyterlab', 'd2l', 'ipywidgets'):
        assert list(moved.glob(f'.venv/lib/*/site-packages/{module}'))
    assert not list(moved.glob('.venv/lib/*/site-packages/pytest'))
    (moved / '.venv/bin/python').unlink()  # as after an upgrade
    # Without make, as on Windows, Jupyter finds our settings by itself.
    said = run(sys.executable, 'setup/install.py', cwd=moved,
               env={'UV_OFFLINE': '1'})
    assert 'made anew' in said and said.endswith(
        'd2lps: done. Now: .venv/bin/jupyter lab notebooks\n')
    assert (moved / '.venv/etc/jupyter/jupyter_lab_config.py').exists()


@pytest.mark.full
def test_without_a_network(copy, tmp_path):
    said = run('make', '.venv/installed', f'PYTHON={sys._base_executable}',
               cwd=copy, fails=True, env={
                   'PIP_INDEX_URL': 'http://127.0.0.1:1/simple',
                   'PIP_CONFIG_FILE': os.devnull,
                   'PIP_FIND_LINKS': '', 'HOME': str(tmp_path),
                   'UV_CACHE_DIR': str(tmp_path), 'UV_HTTP_RETRIES': '0',
                   'UV_DEFAULT_INDEX': 'http://127.0.0.1:1/simple'})
    assert 'Is this machine connected to the Internet?' in said
    # pip, if it gets uv, asks once more, not five times: minutes.
    assert ('Retry(total=0,' in said) == ('getting uv' in said)
    assert 'Retry(total=1,' not in said
    assert not (copy / '.venv' / 'installed').exists()


@pytest.mark.parametrize('manager, command', [
    ('apt', '    apt install libgomp1 libquadmath0 python3-venv\n'),
    ('dnf', '    dnf install libgomp libquadmath python3\n'),
    ('other', '\nFind it with what installs packages')])
def test_what_the_system_lacks_is_named_before(
        monkeypatch, folder, manager, command):
    monkeypatch.setattr(sys, 'platform', 'linux')
    monkeypatch.setattr(install, 'LIBRARIES', LIBRARIES)
    monkeypatch.setattr(install, 'is_here', lambda _: False)
    monkeypatch.setattr(install, 'find_uv', lambda: None)
    monkeypatch.setattr(install.importlib.util, 'find_spec', lambda _: None)
    monkeypatch.setattr(install.shutil, 'which', lambda name: name == manager)
    with pytest.raises(SystemExit) as stop:
        install.main()
    assert str(stop.value).startswith(
        "d2lps: this system lacks libgomp.so.1, libquadmath.so.0, Python's "
        'module venv. Nothing was downloaded yet.')
    assert command in str(stop.value) and not Path('.venv').exists()
    # The way for those who cannot be root.
    assert 'pip install --user uv' in str(stop.value)


@pytest.mark.skipif(not install.MXNET_RUNS, reason='MXNet does not run here')
def test_this_machine_lacks_nothing():
    assert all(map(install.is_here, install.LIBRARIES))
    assert not install.is_here('libnowhere.so.1')


def test_a_disk_with_too_little_room(monkeypatch, folder):
    monkeypatch.setattr(install.shutil, 'disk_usage', lambda _: (
        SimpleNamespace(free=99_999_999)))
    with pytest.raises(SystemExit, match=r'takes \d+ MB of disk, and 99 MB '
                       'are free here. Nothing was downloaded yet'):
        install.main()
    assert not Path('.venv').exists()


def test_a_folder_that_cannot_be_written_to(folder):
    Path('setup/install.py').mkdir()  # root may write to all files
    with pytest.raises(SystemExit, match=r'^d2lps: you cannot write into the '
                       f'folder {folder} '):
        install.main()
    assert not Path('.venv').exists()


def test_a_name_that_nothing_is_installed_under(folder):
    with pytest.raises(SystemExit, match='installs packages, installed.*it '
                       'was told tests'):
        install.main('tests')


def test_what_others_have_made_is_not_touched(folder):
    Path('.venv').mkdir()
    Path('.venv/theirs').touch()
    with pytest.raises(SystemExit, match=r'^d2lps: \.venv was not made here'):
        install.main()
    assert Path('.venv/theirs').exists()
    Path('.venv').rename('theirs')
    Path('theirs/folder').write_text('/elsewhere')
    Path('.venv').symlink_to('theirs')
    with pytest.raises(SystemExit, match=r'^d2lps: \.venv was not made here'):
        install.main()
    assert Path('theirs/theirs').exists()


@pytest.mark.parametrize('found, brought', [
    (True, False), (False, True), (False, False)])
def test_which_python(monkeypatch, capsys, found, brought):
    """One that is named; 3.11, which uv may bring; else 3.11 to 3.14."""
    called = []

    def succeeds(uv, python, command, *rest, **_):
        called.append(command)
        return found if command == 'find' else brought
    monkeypatch.delenv('PYTHON', raising=False)
    monkeypatch.setattr(install, 'succeeds', succeeds)
    monkeypatch.setattr(install, 'MXNET_RUNS', True)
    chosen = install.choose_python('uv')
    assert called == ['find', 'install'][:1 if found else 2]
    assert chosen == ('>=3.11,<3.12' if found or brought else
                      sys._base_executable)
    said = capsys.readouterr().out
    assert ('this goes on without MXNet' in said) == (
        not found and not brought)
    monkeypatch.setattr(install, 'MXNET_RUNS', False)
    for version in (3, 10), (3, 15):
        monkeypatch.setattr(install.sys, 'version_info', version)
        assert install.choose_python('uv') == '>=3.11,<3.15'
    monkeypatch.setattr(install.sys, 'version_info', (3, 14, 9))
    assert install.choose_python('uv') == sys._base_executable
    monkeypatch.setenv('PYTHON', '3.13')
    assert install.choose_python('uv') == '3.13'


@pytest.mark.parametrize('before, locks', [
    ([], ['requirements.lock']),
    (['installed', 'torch'], ['requirements.lock', 'requirements-torch.lock']),
    (['installed', 'installed-tests'], ['requirements-dev.lock'])])
def test_what_was_installed_before_stays(monkeypatch, folder, before, locks):
    """Also if `make lab` brings only what the notebooks need."""
    called = []
    monkeypatch.setattr(install, 'succeeds', lambda *command, **_: (
        called.append([*map(str, command)]) or True))
    monkeypatch.setattr(install, 'is_ready', lambda: True)
    monkeypatch.setattr(install, 'try_it', lambda _: None)
    monkeypatch.setenv('MAKELEVEL', '1')
    Path('.venv').mkdir()
    for name in ('folder', *before):
        (Path('.venv') / name).touch()
    install.main('installed')
    [sync] = [command for command in called if 'sync' in command]
    assert '--require-hashes' in sync and '--only-binary' in sync
    assert [word for word in sync if word.endswith('.lock')] == locks
    assert {path.name for path in Path('.venv').iterdir()} == {
        'folder', 'installed', *before}


def test_a_folder_with_letters_of_any_language(tmp_path):
    """Also for a Python that writes no UTF-8 by itself, as on Windows."""
    folder = tmp_path / 'Übung 練習'
    shutil.copytree(ROOT / 'setup', folder / 'setup')
    said = run(sys.executable, '-X', 'utf8=0', '-c', """
import os, sys
sys.path.insert(0, 'setup')
import install
install.succeeds = lambda *command, **_: True
install.make_venv('uv')
print(install.is_ready(), install.VENV.is_dir())
""", cwd=folder, env={'LC_ALL': 'C', 'PYTHONCOERCECLOCALE': '0',
                      'PYTHON': '3.11'})
    assert said == 'True True\n'
    assert (folder / '.venv' / 'folder').read_bytes() == os.fsencode(folder)


def test_without_any_python(tmp_path):
    """Also without a program but sh."""
    said = run(shutil.which('sh'), ROOT / 'setup' / 'install.sh', fails=True,
               env={'PATH': str(tmp_path), 'HOME': str(tmp_path)})
    assert 'sudo apt install python3-venv libgomp1 libquadmath0\n' in said


def test_one_installation_at_a_time(tmp_path):
    shutil.copytree(ROOT / 'setup', tmp_path / 'setup')
    (tmp_path / '.venv').mkdir()
    with open(tmp_path / 'setup' / 'install.py', 'a') as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        second = subprocess.Popen(
            [sys.executable, tmp_path / 'setup' / 'install.py'], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
        assert 'waiting for it' in second.stdout.readline()
    said, error = second.communicate(timeout=60)
    assert not said and 'was not made here' in error


def test_on_arm_mxnet_finds_what_it_calls(monkeypatch, tmp_path):
    library = tmp_path / 'libopenblas.so.0'
    library.touch()
    monkeypatch.setattr(install, 'ARM', {str(library): 'libarmpl_lp64_mp.so'})
    for again in range(2):
        install.link_for_arm(tmp_path)
        assert (tmp_path / 'libarmpl_lp64_mp.so').samefile(library)
    library.unlink()
    with pytest.raises(SystemExit, match='MXNet needs the library .*openblas'):
        install.link_for_arm(tmp_path)


@pytest.fixture
def lab(copy):
    """A copy in which `make lab` finds all installed: it says with what it
    was started."""
    programs = copy / '.venv' / 'bin'
    programs.mkdir(parents=True)
    (copy / 'notebooks').mkdir()
    (copy / '.venv' / 'folder').write_text(str(copy))
    for name, words in ('python', 'exit'), ('jupyter', (
            'echo "$@, path $PYTHONPATH, $JUPYTER_CONFIG_PATH"')):
        (programs / name).write_text(f'#!/bin/sh\n{words}\n')
        (programs / name).chmod(0o755)
    (copy / '.venv' / 'installed').touch()

    def lab(*words, **more):
        return run('make', 'lab', *words, cwd=copy, **more)
    return lab


def test_how_jupyterlab_is_started(lab, copy):
    """For this machine alone, with our settings, with no other Python's
    modules."""
    said = lab('ARGS=--no-browser', env={'PYTHONPATH': '/modules',
                                         'JUPYTER_CONFIG_PATH': '/mine'})
    arguments, path, settings = said.splitlines()[-1].split(', ')
    assert arguments.startswith('lab --ip=127.0.0.1 ')
    assert arguments.endswith(' --no-browser') and path == 'path '
    assert settings == f'{copy}/setup/jupyter:/mine'
    assert ', path mine, ' in lab('PYTHONPATH=mine')


def test_a_home_that_jupyter_cannot_write_to(lab, copy):
    nowhere = str(copy / 'Makefile' / 'home')  # below a file
    cannot = ('d2lps: JupyterLab writes into your home folder, and cannot. Is '
              'it full, or not yours? HOME={}\n')
    said = lab(env={'HOME': nowhere}, fails=True)
    assert said.startswith(cannot.format(nowhere))
    lab(env={'HOME': nowhere, 'JUPYTER_DATA_DIR': 'here'})
    # No file may have a byte, as on a full disk, with a home that is ours.
    (copy / 'home').mkdir()
    said = run('sh', '-c', "trap '' XFSZ; ulimit -f 0; exec make lab",
               cwd=copy, env={'HOME': str(copy / 'home')}, fails=True)
    assert said.startswith(cannot.format(copy / 'home'))
    assert not [*(copy / 'home').iterdir()]
