"""setup/: what `make lab` and `make test` do on a newcomer's machine.

A small project with packages of its own is really installed here, from a
folder, without a network.
"""
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location(
    'install', ROOT / 'setup' / 'install.py')
install = importlib.util.module_from_spec(spec)
spec.loader.exec_module(install)


def wheel(folder, name, version, files):
    """Write a package that pip can install; return its line for a lock."""
    path = folder / f'{name}-{version}-py3-none-any.whl'
    info = f'{name}-{version}.dist-info'
    files = {**files, f'{info}/WHEEL':
             'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
             f'{info}/METADATA':
             f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n',
             f'{info}/RECORD': ''}
    with zipfile.ZipFile(path, 'w') as archive:
        for place, content in files.items():
            archive.writestr(place, content)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return f'{name}=={version} --hash=sha256:{sha256}\n'


@pytest.fixture(scope='module')
def packages(tmp_path_factory):
    """A folder with the packages of a small project, and its lock."""
    folder = tmp_path_factory.mktemp('packages')
    found = importlib.metadata.distribution('setuptools')
    files = {str(file): file.locate().read_bytes() for file in found.files
             if not {'..', '__pycache__'} & {*file.parts}}
    lock = wheel(folder, 'setuptools', found.version, files)
    lock += wheel(folder, 'mxnet', '1.9.1', {
        'mxnet/__init__.py': '', 'mxnet/tests/__init__.py': ''})
    tests = wheel(folder, 'onlytests', '1.0', {'onlytests.py': ''})
    return folder, lock, tests


@pytest.fixture
def project(tmp_path, packages):
    """A small project in a folder whose name has a space."""
    folder, lock, tests = packages
    project = tmp_path / 'my clone'
    project.mkdir()
    for name in ('Makefile', 'environment.yml', 'pyproject.toml',
                 'README.md'):
        shutil.copy(ROOT / name, project)
    shutil.copytree(ROOT / 'setup', project / 'setup')
    (project / 'requirements.lock').write_text(lock)
    (project / 'requirements-test.lock').write_text(tests)
    for path in (ROOT / 'd2lps').rglob('__init__.py'):
        copy = project / path.relative_to(ROOT)
        copy.parent.mkdir()
        copy.write_text('')
    (project / 'd2lps' / 'engine.py').write_text('import mxnet\n')
    return project


@pytest.fixture
def make(packages, tmp_path):
    """Run make with packages from a folder alone; return what it said."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(('MAKE', 'MFLAGS', 'PYTHON', 'PIP_'))}
    env |= {'PIP_NO_INDEX': '1', 'PIP_FIND_LINKS': str(packages[0]),
            'PIP_CONFIG_FILE': os.devnull, 'HOME': str(tmp_path)}

    def run(project, target='.venv/installed', fails=False, python=None,
            **more):
        python = python or sys._base_executable
        done = subprocess.run(
            ['make', target, f'PYTHON={python}'], cwd=project, timeout=120,
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env=env | more)
        assert bool(done.returncode) == fails, done.stdout
        return done.stdout
    return run


def has(project, package):
    return bool(list(project.glob(f'.venv/lib/*/site-packages/{package}*')))


UNREACHABLE = {'PIP_NO_INDEX': '0', 'PIP_FIND_LINKS': '', 'PIP_RETRIES': '1',
               'PIP_INDEX_URL': 'http://127.0.0.1:1/simple'}


@pytest.mark.processes
def test_an_installation(make, project, tmp_path):
    """It fails, and goes on from there; with a space in Python's path, too,
    and with PIP_USER."""
    folder = tmp_path / 'my python'
    folder.mkdir()
    (folder / 'python').symlink_to(sys._base_executable)
    settings = dict(python=folder / 'python', PIP_USER='1')

    def fails(words, **more):
        said = make(project, fails=True, **settings, **more)
        assert words in said and 'Traceback' not in said
        assert not (project / '.venv' / 'installed').exists()
    fails('d2lps: pip cannot reach its package index. Is this machine '
          'connected', **UNREACHABLE)
    fails('pip failed:\nERROR: Could not find a version', PIP_FIND_LINKS='')
    start = project / 'd2lps' / 'engine.py'
    works = start.read_text()
    start.write_text('import ctypes; ctypes.CDLL("libnowhere.so.1")')
    fails('does not start:\nOSError: libnowhere.so.1: cannot open')
    start.write_text(works)
    said = make(project, **settings)
    assert 'MB to download' in said and 'made anew' not in said
    assert has(project, 'mxnet') and not has(project, 'onlytests')
    assert has(project, 'mxnet/__pycache__/__init__.*.pyc')
    assert not has(project, 'mxnet/tests/__pycache__')
    assert 'up to date' in make(project)
    make(project, '.venv/installed-tests')
    assert has(project, 'onlytests') and has(project, '__pycache__/onlytests')
    assert 'up to date' in make(project, '.venv/installed-tests')
    # A copy does not use the packages of the first. Python finds its package
    # also beside it, where it is called d2lps.
    clone = tmp_path / 'd2lps'
    shutil.copytree(project, clone, symlinks=True)
    assert 'made anew' in make(clone, '.venv/installed-tests')
    assert has(clone, 'onlytests') and 'up to date' in make(clone)
    assert 'up to date' in make(project)
    beside = subprocess.run(
        [clone / '.venv/bin/python', '-c', 'import d2lps.engine\n'
         'print(d2lps.__file__, d2lps.engine.mxnet)'], cwd=tmp_path, text=True,
        capture_output=True)
    assert 'd2lps/d2lps/__init__.py' in beside.stdout, beside.stderr
    # And programs run that knew the first.
    program = subprocess.run([clone / '.venv/bin/pip', '--version'],
                             capture_output=True, text=True)
    assert str(clone) in program.stdout


def test_what_was_made_in_a_folder_that_is_gone(
        monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    programs = install.VENV / 'bin'
    programs.mkdir(parents=True)
    for name in ('python', 'pip'):
        (programs / name).touch()
    note, commands = install.VENV / 'folder', []

    def run(command, check):
        assert check and not install.VENV.exists()
        install.VENV.mkdir()
        commands.append(command)
    monkeypatch.setattr(install.subprocess, 'run', run)
    note.write_text(str(tmp_path / 'gone'))
    install.prepare()
    assert 'made anew' in capsys.readouterr().out
    assert commands == [[sys.executable, '-m', 'venv', install.VENV]]
    assert note.read_text() == str(tmp_path)


@pytest.mark.processes
def test_a_certificate_that_is_not_known(monkeypatch, tmp_path, capsys):
    """What pip says behind a proxy that opens what is encrypted."""
    pip = tmp_path / 'python'
    pip.write_text("#!/bin/sh\necho \"WARNING: Retrying (Retry(total=4)) "
                   "after connection broken by 'SSLError(... "
                   "CERTIFICATE_VERIFY_FAILED'\"\nexit 1\n")
    pip.chmod(0o755)
    monkeypatch.setattr(install, 'PYTHON', pip)
    with pytest.raises(SystemExit, match='PIP_CERT'):
        install.pip()


@pytest.mark.parametrize('manager, user, command', [
    ('apt-get', 1000, 'sudo apt install libgomp1 libquadmath0 '
     'python3.11-venv'),
    ('apt-get', 0, 'apt install libgomp1 libquadmath0 python3.11-venv'),
    ('dnf', 1000, 'sudo dnf install libgomp libquadmath python3.11'),
    ('other', 1000, 'find them with')])
def test_what_the_system_lacks_is_named_before(
        monkeypatch, tmp_path, manager, user, command):
    def load(name):
        if name.startswith(('libgomp', 'libquadmath')):
            raise OSError(name)
    monkeypatch.setattr(sys, 'platform', 'linux')
    monkeypatch.setattr(install, 'LIBRARIES', [
        'libgomp.so.1', 'libstdc++.so.6', 'libquadmath.so.0'])
    monkeypatch.setattr(install.ctypes, 'CDLL', load)
    monkeypatch.setattr(install.importlib.util, 'find_spec', lambda _: None)
    monkeypatch.setattr(install.shutil, 'which', lambda name: name == manager)
    monkeypatch.setattr(install.os, 'geteuid', lambda: user)
    monkeypatch.setattr(install, 'VENV', tmp_path / '.venv')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        install.main('installed')
    assert re.fullmatch(
        r'd2lps: this system lacks libgomp.so.1, libquadmath.so.0, the '
        r'module venv of Python\. Nothing .* First:\n    (.*)\nThen .*',
        str(stop.value))[1].startswith(command)
    assert not (tmp_path / '.venv').exists()


def test_this_machine_lacks_nothing():
    assert install.lacking() == []


ADVICE = {'apt-cache': 'apt install python3.11-venv libgomp1 libquadmath0',
          'dnf': 'dnf install python3.11 libgomp libquadmath',
          'brew': 'brew install python@3.11',
          'conda': 'conda create -n py311 -c conda-forge python=3.11',
          'uv': 'uv python install 3.11',
          None: '~/.local/bin/uv python install 3.11'}


@pytest.mark.processes
@pytest.mark.parametrize('program', [*ADVICE, 'an apt-cache'])
def test_how_to_get_python(tmp_path, program):
    for name in ('uname', 'id', 'grep'):
        (tmp_path / name).symlink_to(shutil.which(name))
    if program and program.endswith('apt-cache'):
        # Ubuntu 22.04 has a release candidate, which will not do.
        version = '3.11.2-6' if program == 'apt-cache' else '3.11.0~rc1-1'
        apt = tmp_path / 'apt-cache'
        apt.write_text(f'#!{shutil.which("sh")}\necho Version: {version}\n')
        apt.chmod(0o755)
        program = program if program == 'apt-cache' else None
    elif program:
        (tmp_path / program).symlink_to(shutil.which('true'))
    done = subprocess.run(
        [shutil.which('sh'), 'setup/install.sh', 'installed'], cwd=ROOT,
        env={'PATH': str(tmp_path), 'PYTHON': 'my python'}, text=True,
        capture_output=True)
    assert done.returncode == 1 and not done.stderr
    assert '"my python" is not that' in done.stdout
    assert ADVICE[program] in done.stdout
    sudo = os.getuid() and program in ('apt-cache', 'dnf')
    assert ('    sudo ' in done.stdout) == bool(sudo)
