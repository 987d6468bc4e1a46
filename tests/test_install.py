"""setup/: what `make lab` and `make test` do on a newcomer's machine.

A small project with packages of its own is really installed here, from a
folder, without a network.
"""
import errno
import fcntl
import filecmp
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / 'setup'))
spec = importlib.util.spec_from_file_location(
    'install', ROOT / 'setup' / 'install.py')
install = importlib.util.module_from_spec(spec)
spec.loader.exec_module(install)
waiting = sys.modules['waiting']


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
    book = wheel(folder, 'sphinx', '9.1', {'sphinx/__init__.py': ''})
    wheel(folder, 'torch', '2.14', {'torch/__init__.py': ''})
    return folder, lock, tests, book


@pytest.fixture
def project(tmp_path, packages):
    """A small project in a folder whose name has a space."""
    folder, lock, tests, book = packages
    project = tmp_path / 'my clone'
    project.mkdir()
    for name in ('Makefile', 'environment.yml', 'pyproject.toml',
                 'README.md'):
        shutil.copy(ROOT / name, project)
    (project / 'requirements-light.lock').write_text(lock.splitlines()[0])
    shutil.copytree(ROOT / 'setup', project / 'setup')
    (project / 'requirements.lock').write_text(lock)
    (project / 'requirements-test.lock').write_text(tests)
    (project / 'requirements-book.lock').write_text(book)
    for path in ROOT.glob('d2lps*/**/__init__.py'):
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
            ['make', target, f'PYTHON={python}'], cwd=project, timeout=300,
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env=env | more)
        assert bool(done.returncode) == fails, done.stdout
        return done.stdout
    return run


def has(project, package):
    return bool(list(project.glob(f'.venv/lib/*/site-packages/{package}*')))


UNREACHABLE = {'PIP_NO_INDEX': '0', 'PIP_FIND_LINKS': '', 'PIP_RETRIES': '1',
               'PIP_INDEX_URL': 'http://127.0.0.1:1/simple'}


@pytest.mark.full
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
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)
    monkeypatch.setattr(install.subprocess, 'run', run)
    note.write_text(str(tmp_path / 'gone'))
    install.prepare(install.VENV, 1)
    assert 'made anew' in capsys.readouterr().out
    assert commands == [[sys.executable, '-m', 'venv', install.VENV]]
    assert note.read_text() == str(tmp_path)
    # What may still work, if it is moved back, is aside.
    old = tmp_path / '.venv.old'
    assert (old / 'folder').read_text() == str(tmp_path / 'gone')
    assert (old / 'bin' / 'pip').exists()
    assert not (install.VENV / 'bin').exists()


def test_what_worked_comes_back_if_nothing_new_can_be_made(
        monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    install.VENV.mkdir()
    (install.VENV / 'folder').write_text('/elsewhere')
    (install.VENV / 'what worked').touch()
    monkeypatch.setattr(install.subprocess, 'run', lambda *args, **_: (
        subprocess.CompletedProcess(args, 0)))

    def fill(venv, requirements, module):
        assert not (venv / 'what worked').exists()
        (venv / 'begun').touch()
        raise ends
    monkeypatch.setattr(install, 'fill', fill)
    for ends in SystemExit('no network'), OSError('no room'):
        with pytest.raises(type(ends)):
            install.install(install.VENV, 'all needs', 1, [], 'mxnet')
        assert {path.name for path in install.VENV.iterdir()} == {
            'folder', 'what worked'}
        assert {path.name for path in tmp_path.iterdir()} == {'.venv'}
    # After Ctrl-C, what was begun goes on, and then the old one goes.
    ends = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        install.install(install.VENV, 'all needs', 1, [], 'mxnet')
    assert (install.VENV / 'begun').exists()
    assert (tmp_path / '.venv.old' / 'what worked').exists()
    monkeypatch.setattr(install, 'runs', lambda venv: True)
    monkeypatch.setattr(install, 'fill', lambda *args: None)
    install.install(install.VENV, 'all needs', 1, [], 'mxnet')
    assert (install.VENV / 'begun').exists()
    assert {path.name for path in tmp_path.iterdir()} == {'.venv'}


def test_what_others_have_made_is_not_touched(monkeypatch, tmp_path):
    """uv and editors make a .venv, too."""
    monkeypatch.chdir(tmp_path)
    (install.VENV / 'bin').mkdir(parents=True)
    (install.VENV / 'bin' / 'theirs').touch()
    with pytest.raises(SystemExit, match=r'^d2lps: \.venv was not made here'):
        install.install(install.VENV, 'all needs', 1, [], 'mxnet')
    assert (install.VENV / 'bin' / 'theirs').exists()
    assert {path.name for path in tmp_path.iterdir()} == {'.venv'}


def test_a_disk_with_too_little_room(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(install.shutil, 'disk_usage', lambda _: (
        SimpleNamespace(free=899_999_999)))
    with pytest.raises(SystemExit, match='takes 900 MB of disk, and 899 MB '
                       'are free here. Nothing was downloaded yet'):
        install.lab('installed', [])
    assert not (tmp_path / '.venv').exists()


@pytest.mark.full
def test_a_disk_that_is_full(project):
    """No file may have a byte, which is much the same."""
    done = subprocess.run(
        ['sh', '-c', 'ulimit -f 0; exec "$0" setup/install.py light',
         sys._base_executable], cwd=project, text=True, capture_output=True,
        timeout=300)
    assert done.returncode and 'Traceback' not in done.stderr
    assert re.fullmatch(r'd2lps: this folder cannot be written: .* File too '
                        r'large.*\n', done.stderr)


def test_a_folder_that_cannot_be_written(monkeypatch, tmp_path):
    """Or whatever else the system says."""
    monkeypatch.chdir(tmp_path)

    def refused(*_):
        raise PermissionError(errno.EACCES, 'Permission denied', '.venv')
    monkeypatch.setattr(Path, 'mkdir', refused)
    with pytest.raises(PermissionError) as error:
        install.prepare(install.VENV, 1)
    for code, words in [(errno.EACCES, 'this folder cannot be written: '),
                        (errno.EIO, 'the installation failed: ')]:
        error.value.errno = code
        with pytest.raises(SystemExit, match=f'^d2lps: {words}.*Permission '
                           "denied: '.venv'$"):
            install.failing.of_system(error.value)


@pytest.mark.full
def test_a_certificate_that_is_not_known(monkeypatch, tmp_path, capsys):
    """What pip says behind a proxy that opens what is encrypted."""
    pip = tmp_path / 'bin' / 'python'
    pip.parent.mkdir()
    pip.write_text("#!/bin/sh\necho \"WARNING: Retrying (Retry(total=4)) "
                   "after connection broken by 'SSLError(... "
                   "CERTIFICATE_VERIFY_FAILED'\"\nexit 1\n")
    pip.chmod(0o755)
    with pytest.raises(SystemExit, match='PIP_CERT'):
        install.pip(tmp_path)


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
    assert install.lacking(install.LIBRARIES) == []


def test_on_arm_mxnet_finds_what_it_calls(monkeypatch, tmp_path):
    folder, mxnet = tmp_path / 'lib64', (
        tmp_path / '.venv/lib/python3.11/site-packages/mxnet')
    folder.mkdir()
    mxnet.mkdir(parents=True)
    for name in install.ARM:
        (folder / name).write_text(name)
    monkeypatch.setattr(install, 'FOLDERS', [tmp_path / 'none', folder])
    for again in range(2):
        install.link_for_arm(tmp_path / '.venv')
        assert {link.name: link.read_text() for link in mxnet.iterdir()} == {
            wanted: here for here, wanted in install.ARM.items()}


def test_without_make_it_says_how_to_go_on(monkeypatch, tmp_path, capsys):
    """On Windows, programs are elsewhere, and called otherwise."""
    monkeypatch.delenv('MAKELEVEL', raising=False)
    monkeypatch.setattr(install, 'PROGRAMS', 'Scripts')
    monkeypatch.setattr(install, 'EXE', '.exe')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(install.os, 'chdir', lambda _: None)
    shutil.copytree(ROOT / 'setup', tmp_path / 'setup')
    ran = []

    def run(command, **_):
        ran.append([*map(str, command)])
        (tmp_path / install.LIGHT).mkdir(exist_ok=True)
        return subprocess.CompletedProcess(command, 0)
    monkeypatch.setattr(install.subprocess, 'run', run)
    monkeypatch.setattr(install, 'pip', lambda venv, *arguments: run(
        [install.program(venv, 'pip'), *arguments]))
    install.main('light')
    assert ran[0] == [sys.executable, '-m', 'venv', '.venv-light']
    assert ran[1] == ['.venv-light/Scripts/pip.exe', '-r',
                      'requirements-light.lock']
    assert capsys.readouterr().out.endswith(
        'Now:\n    .venv-light/Scripts/jupyter.exe lab notebooks\n')
    monkeypatch.setattr(install.sys, 'version_info', (3, 10, 4))
    with pytest.raises(SystemExit, match='Python 3.11 or later'):
        install.main('light')


def test_one_installation_at_a_time(monkeypatch, tmp_path, capsys):
    """The second waits, and does not make anew what the first has made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(install.os, 'chdir', lambda _: None)
    lock, stamp = Path('setup/install.py'), install.LIGHT / 'installed'
    for file in lock, stamp:
        file.parent.mkdir()
        file.touch()
    os.utime(stamp, (0, 0))
    ran = []
    monkeypatch.setattr(install, 'light', lambda: ran.append('light'))
    first = install.turn(lock)

    def finishes(seconds):
        os.utime(stamp, (9e9, 9e9))
        first.close()
    monkeypatch.setattr(waiting.time, 'sleep', finishes)
    install.main('light')
    assert not ran and capsys.readouterr().out == (
        'd2lps: another make is installing here; waiting for it\n')
    os.utime(stamp, (0, 0))
    install.main('light')
    assert ran and not capsys.readouterr().out
    monkeypatch.setattr(waiting.time, 'sleep', ran.append)
    with install.turn(lock), pytest.raises(SystemExit, match='30 minutes'):
        install.main('light')
    assert len(ran) == 1 + 30 * 60
    # A disk, or a system, without locks.
    for broken in SimpleNamespace(**vars(fcntl) | {'flock': fails}), None:
        monkeypatch.setattr(waiting, 'fcntl', broken)
        install.main('light')


def fails(*_):
    raise OSError(errno.ENOLCK, 'no locks')


class Computer:
    """A computer with some programs only, which note how they were called."""

    def __init__(self, folder, system='Linux', machine='x86_64'):
        self.bin, self.log = folder / 'bin', folder / 'log'
        self.bin.mkdir()
        self.log.touch()
        for name in ('id', 'grep', 'make', 'sh', 'sed', 'cat', 'touch', 'ln',
                     'mkdir', 'chmod', 'dirname', 'rm', 'echo'):
            (self.bin / name).symlink_to(shutil.which(name))
        self.has('uname', f'case $1 in -s) echo {system};; '
                 f'-m) echo {machine};; esac')

    def has(self, name, script=':', folder=None):
        program = (folder or self.bin) / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!{shutil.which("sh")}\n{script}\n')
        program.chmod(0o755)
        return program

    def has_python(self, name, version, system='Linux x86_64', **where):
        """One that says its version, and notes what it is told to do."""
        return self.has(name, f'case $1 in -c) echo {version} {system};; '
                        f'*) echo {name} "$@" >> {self.log};; esac', **where)

    def run(self, *command, cwd=ROOT, **more):
        done = subprocess.run(
            [*map(str, command)], cwd=cwd, text=True, timeout=300,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={
                'PATH': str(self.bin), 'HOME': str(self.bin.parent), **more})
        return done.returncode, done.stdout

    def install(self, stamp='installed', python='python3.11', **more):
        """What make runs: its exit code and its words, and what was called."""
        code, said = self.run('sh', ROOT / 'setup' / 'install.sh', stamp,
                              PYTHON=python, **more)
        return code, said, self.log.read_text().splitlines()


@pytest.fixture
def computer(tmp_path):
    return Computer(tmp_path)


ADVICE = {'apt-cache': 'apt install python3.11-venv libgomp1 libquadmath0',
          'dnf': 'dnf install python3.11 libgomp libquadmath',
          'brew': 'brew install python@3.11',
          None: 'curl -LsSf https://astral.sh/uv/install.sh | sh'}


@pytest.mark.full
@pytest.mark.parametrize('program', [*ADVICE, 'an apt-cache'])
def test_how_to_get_python(computer, program):
    """Ubuntu 22.04 has a release candidate, which will not do."""
    candidate = program == 'an apt-cache'
    if candidate or program == 'apt-cache':
        computer.has('apt-cache', 'echo Version: ' + (
            '3.11.0~rc1-1' if candidate else '3.11.2-6'))
        program = None if candidate else program
    elif program:
        computer.has(program)
    code, said, _ = computer.install(python='my python')
    assert code == 1 and said.startswith('d2lps: needs Python 3.11, and')
    assert '"my python" is not that' in said and ADVICE[program] in said
    assert 'make lab PYTHON=/path' in said and len(said.splitlines()) < 9
    sudo = os.getuid() and program in ('apt-cache', 'dnf')
    assert ('    sudo ' in said) == bool(sudo)


@pytest.mark.full
@pytest.mark.parametrize('name, python, light, works', [
    ('python3.11', '3.11.2 Linux x86_64', True, True),
    ('python3', '3.11.2 Linux x86_64', True, True),
    ('python3.12', '3.12.1 Linux x86_64', True, False),
    ('python3', '3.13.5 Linux aarch64', True, False),
    ('python', '3.15.0 Darwin arm64', True, False),
    ('py', '3.13.0 Windows AMD64', True, False),
    ('python3', '3.10.12 Linux x86_64', False, False),
    ('python3.11', '3.11.0rc1 Linux x86_64', False, False),
    ('python3', '3.12.9 CYGWIN_NT-10.0 x86_64', False, False)])
def test_which_python_will_do(computer, name, python, light, works):
    """Without MXNet any from 3.11; else 3.11, and it is asked by its name."""
    computer.has_python(name, *python.split(' ', 1))
    code, said, called = computer.install('light', '')
    assert (code == 0) == light
    assert called == [f'{name} setup/install.py light'] * light
    assert light or 'needs Python 3.11 or later, and none was found (but ' + (
        python) in said and 'make lab-light' in said
    code, said, called = computer.install()
    assert (code == 0) == (works and name == 'python3.11')
    if name == 'python3' and python.startswith('3.13.5 Linux'):
        first, *ways = said.splitlines()
        assert first.endswith('needs Python 3.11, as there is no MXNet for a '
                              'later one. Here is 3.13.5. Three ways:')
        assert [way.split()[0] for way in ways] == [
            'make', 'docker', 'curl', 'and']
    else:
        assert code == 0 or 'needs Python 3.11, and none was found' in said
    assert computer.install(python=name)[0] == (not works)


@pytest.mark.full
def test_an_apt_without_lists_is_updated_first(computer):
    """As in a fresh image, where it knows no Python at all."""
    computer.has('apt-cache', 'exit 100')
    code, said, _ = computer.install()
    assert code == 1 and re.search(r'\n    (sudo )?apt update\n', said)


UV = """echo uv "$@" >> {log}
case "$2" in
  install) touch {log}.has ;;
  find) [ -e {log}.has ] && echo {python} ;;
esac"""
CONDA = """echo CONDA_SUBDIR=$CONDA_SUBDIR {name} "$@" >> {log}
mkdir .python311 .python311/bin
ln -s {python} .python311/bin/python"""


@pytest.mark.full
@pytest.mark.parametrize('stamp, where', [
    ('installed', 'in ~/.local/bin'), ('light', 'on the path')])
def test_uv_gets_a_python(computer, stamp, where):
    """Once; the second time it only says where that is."""
    python = computer.has_python('its', '3.11.9', folder=computer.bin / 'uvs')
    computer.has('uv', UV.format(log=computer.log, python=python),
                 None if where == 'on the path' else
                 computer.bin.parent / '.local' / 'bin')
    named = 'python3.11' if stamp == 'installed' else ''
    code, said, called = computer.install(stamp, named)
    assert code == 0 and len(said.splitlines()) == 1
    assert re.match('d2lps: no Python 3.11 (or later )?here, so uv gets one: '
                    r'\S*uv python install 3.11$', said)
    find = 'uv python find --system 3.11'
    last = f'its setup/install.py {stamp}'
    assert called == [find, 'uv python install 3.11', find, last]
    code, said, called = computer.install(stamp, named)
    assert code == 0 and not said and called[4:] == [find, last]


@pytest.mark.full
def test_uv_without_a_network(computer):
    computer.has('uv', 'exit 1')
    code, said, _ = computer.install()
    assert code == 1 and 'uv did not get it' in said


@pytest.fixture
def folder_with_conda(tmp_path):
    """A place to run setup/install.sh in: conda writes beside it."""
    folder = tmp_path / 'my clone'
    (folder / 'setup').mkdir(parents=True)
    shutil.copy(ROOT / 'setup' / 'install.sh', folder / 'setup')
    return folder


@pytest.mark.full
@pytest.mark.parametrize('name, machine', [
    ('conda', 'x86_64'), ('conda', 'arm64'), ('micromamba', 'arm64'),
    ('mamba', 'x86_64')])
def test_conda_gets_a_python(tmp_path, folder_with_conda, name, machine):
    """On Apple silicon one for Intel Macs, even if there is another one."""
    computer = Computer(tmp_path, 'Darwin', machine)
    computer.has_python('python3.11', '3.11.9' if machine == 'arm64' else
                        '3.10.1', f'Darwin {machine}')
    computer.has('uv' if machine == 'arm64' else 'other', 'echo never; exit 1')
    python = computer.has_python('its', '3.11.9', 'Darwin x86_64',
                                 folder=tmp_path / 'pkgs')
    computer.has(name, CONDA.format(log=computer.log, python=python,
                                    name=name))

    def run():
        code, said = computer.run('sh', 'setup/install.sh', 'installed',
                                  cwd=folder_with_conda, PYTHON='python3.11')
        assert code == 0, said
        return said, computer.log.read_text().splitlines()
    said, called = run()
    assert len(said.splitlines()) == 1
    assert f'so {name} puts one into .python311' in said
    assert ('for Intel Macs' in said) == (machine == 'arm64')
    subdir = 'osx-64' if machine == 'arm64' else ''
    create, last = called
    assert create == (
        f'CONDA_SUBDIR={subdir} {name} create --yes --quiet --prefix '
        '.python311 --override-channels --channel conda-forge python=3.11')
    assert last == 'its setup/install.py installed'
    said, called = run()
    assert not said and called[2:] == [last]


@pytest.mark.full
@pytest.mark.parametrize('system, machine, python', [
    ('MINGW64_NT-10.0-22631', 'x86_64', None),
    ('MINGW64_NT-10.0-22631', 'x86_64', '3.11.9 Windows AMD64'),
    ('CYGWIN_NT-10.0', 'x86_64', '3.11.9 CYGWIN_NT-10.0 x86_64'),
    ('Darwin', 'arm64', None), ('Darwin', 'arm64', '3.12.1 Darwin arm64'),
    ('Darwin', 'arm64', '3.11.9 Darwin arm64')])
def test_where_mxnet_has_no_wheel_there_are_three_ways(
        tmp_path, system, machine, python):
    computer = Computer(tmp_path, system, machine)
    if python:
        computer.has_python('python3.11', *python.split(' ', 1))
    code, said, called = computer.install()
    assert code == 1 and not called and len(said.splitlines()) == 4
    assert said.startswith('d2lps: there is no MXNet for ')
    for way in ('make lab-light', 'docker compose up', {
            'Darwin': 'conda'}.get(system, 'wsl --install')):
        assert way in said


@pytest.mark.full
def test_an_intel_python_on_apple_silicon_will_do(tmp_path):
    computer = Computer(tmp_path, 'Darwin', 'arm64')
    computer.has_python('python3.11', '3.11.9', 'Darwin x86_64')
    assert computer.install()[::2] == (
        0, ['python3.11 setup/install.py installed'])


@pytest.mark.full
@pytest.mark.parametrize('target', ['lab', 'test', 'lab-light', 'book'])
def test_make_says_what_is_missing(project, tmp_path, target):
    """A Python that is named is taken, or refused; nothing else is got."""
    computer = Computer(tmp_path)
    computer.has('uv', 'exit 1')
    code, said = computer.run('make', target, 'PYTHON=no-such-python',
                              cwd=project)
    assert code and re.search(r'needs Python 3\.11( or later)?, and "no-such-'
                              r'python" is not that\.\n', said)
    assert target == 'test' or f'make {target} PYTHON=/path' in said
    assert not list(project.glob('.venv*'))


@pytest.mark.full
def test_an_installation_without_mxnet(project, tmp_path, packages):
    """With a real Python, which uv got: a folder of its own, our settings."""
    computer = Computer(tmp_path)
    computer.has('uv', UV.format(log=computer.log,
                                 python=sys._base_executable))

    def make():
        return computer.run(
            'make', '.venv-light/installed', cwd=project, PIP_NO_INDEX='1',
            PIP_FIND_LINKS=str(packages[0]), PIP_CONFIG_FILE=os.devnull)
    code, said = make()
    assert code == 0 and 'so uv gets one' in said, said
    assert 'chapters 3, 5, 6, 7, 11, 12, 14, 18 and 19' in said
    assert 'made anew' not in said
    assert not (project / '.venv').exists() and 'Now:' not in said
    assert not list(project.glob('.venv-light/lib/*/site-packages/mxnet'))
    assert 'up to date' in make()[1]
    settings = project / '.venv-light' / 'etc' / 'jupyter'
    ours = ROOT / 'setup' / 'jupyter'
    [(begins, lab), (begins_ours, lab_ours)] = [
        (found.pop('default_url'), found) for found in (
            json.loads((folder / 'jupyter_lab_config.json').read_text())[
                'LabApp'] for folder in (settings, ours))]
    assert lab == lab_ours and begins_ours == '/lab/tree/index.ipynb'
    assert begins == '/lab/tree/03-where-to-sum.ipynb'
    assert filecmp.cmp(settings / 'labconfig' / 'page_config.json',
                       ours / 'labconfig' / 'page_config.json')
    assert (ROOT / 'notebooks' / '03-where-to-sum.ipynb').exists()


@pytest.mark.full
def test_pytorch_is_added_when_it_is_asked_for(make, project):
    """After the rest, once; and its size is said before."""
    lock = project / 'requirements-torch.lock'
    lock.write_text('')
    said = make(project, '.venv/torch', fails=True)
    assert "does not start:\nModuleNotFoundError: No module named 'torch'" in (
        said)
    assert re.search(r'PyTorch to .venv: about \d+ MB to download', said)
    assert not (project / '.venv' / 'torch').exists()
    lock.write_text('torch==2.14\n')
    said = make(project, '.venv/torch')
    assert 'adding PyTorch' in said and 'what the notebooks need' not in said
    assert has(project, 'torch') and has(project, 'mxnet')
    assert 'up to date' in make(project, '.venv/torch')


def test_an_intel_mac_has_no_pytorch(monkeypatch):
    monkeypatch.setattr(install.sys, 'platform', 'darwin')
    monkeypatch.setattr(install.platform, 'machine', lambda: 'x86_64')
    with pytest.raises(SystemExit, match='make lab-light TORCH=yes'):
        install.torch(install.VENV)


def test_pytorch_needs_room(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(install.failing.shutil, 'disk_usage',
                        lambda _: SimpleNamespace(free=10 ** 8))
    with pytest.raises(SystemExit, match='Nothing was downloaded yet'):
        install.torch(install.VENV)


@pytest.mark.full
def test_the_book_needs_a_python_that_runs(project, tmp_path):
    """The first on the path may be of a program that has none."""
    computer = Computer(tmp_path)
    computer.has('python3.11', 'exit 127')
    computer.has_python('python3.12', '3.12.3')
    code, said = computer.run('make', '.venv-book/installed', cwd=project)
    assert code == 0, said
    assert computer.log.read_text() == 'python3.12 setup/install.py book\n'


@pytest.mark.full
def test_an_installation_for_the_book(make, project, tmp_path):
    """It is where Sphinx is, and not where settings would lead pip."""
    def fails(words, **more):
        said = make(project, '.venv-book/installed', fails=True, **more)
        assert words in said and not (
            project / '.venv-book' / 'installed').exists()
    fails('d2lps: pip cannot reach its package index', **UNREACHABLE)
    lock = project / 'requirements-book.lock'
    wanted = lock.read_text()
    lock.write_text('')
    fails("does not start:\nModuleNotFoundError: No module named 'sphinx'")
    lock.write_text(wanted)
    other = tmp_path / 'other'
    make(project, '.venv-book/installed', PIP_TARGET=str(other), PIP_USER='1')
    assert not other.exists() and not (project / '.venv').exists()
    assert list(project.glob('.venv-book/lib/*/site-packages/sphinx'))
    assert not list(project.glob('.venv-book/lib/*/site-packages/*d2lps*'))
    assert 'up to date' in make(project, '.venv-book/installed')


class Installed:
    """A project in which make finds everything installed."""

    def __init__(self, project, computer, venv='.venv-light'):
        self.project, self.computer = project, computer
        self.bin = project / venv / 'bin'
        (project / 'notebooks').mkdir()
        self.python = computer.has('python', folder=self.bin)
        (project / venv / 'folder').write_text(str(project))
        (project / venv / 'installed').touch()

    def make(self, *words, **more):
        return self.computer.run('make', *words, cwd=self.project, **more)


@pytest.mark.full
@pytest.mark.parametrize('venv', ['.venv', '.venv-light', '.venv-book'])
def test_a_python_that_is_gone_is_found(project, computer, venv):
    here = Installed(project, computer, venv)
    computer.has_python('python3.11', '3.11.2')
    assert 'up to date' in here.make(f'{venv}/installed')[1]
    for gone in 'exit 1', None:
        here.python.write_text(f'#!/bin/sh\n{gone}\n')
        if not gone:
            here.python.unlink()
            here.python.symlink_to('no-such-python')
        assert not install.runs(here.bin.parent)
        here.computer.log.write_text('')
        assert here.make(f'{venv}/installed')[0] == 0
        assert 'python3.11 setup/install.py' in here.computer.log.read_text()


ANOTHER = {'PYTHONPATH': '/modules', 'PYTHONHOME': '/usr'}
SHOW = 'echo "path $PYTHONPATH, home $PYTHONHOME"'


@pytest.mark.full
@pytest.mark.parametrize('target, venv', [
    ('lab', '.venv'), ('lab-light', '.venv-light'), ('book', '.venv-book')])
def test_modules_of_another_python_are_not_for_ours(
        project, computer, target, venv):
    here = Installed(project, computer, venv)
    for name in 'jupyter', 'python':
        computer.has(name, f'[ $1 = -Ic ] || {SHOW}', folder=here.bin)
    assert 'path , home \n' in here.make(target, **ANOTHER)[1]
    said = here.make(target, 'PYTHONPATH=mine', **ANOTHER)[1]
    assert 'path mine, home \n' in said


@pytest.mark.full
def test_nor_are_they_for_the_installation(computer):
    computer.has('python3.11', f'case $1 in -c) echo 3.11.2 Linux x86_64;; '
                 f'*) {SHOW};; esac')
    assert computer.install(**ANOTHER)[1] == 'path , home \n'


@pytest.mark.full
@pytest.mark.parametrize('target, venv', [
    ('lab', '.venv'), ('lab-light', '.venv-light')])
def test_a_home_that_jupyter_cannot_write_to(project, computer, target, venv):
    here = Installed(project, computer, venv)
    computer.has('jupyter', 'echo JupyterLab', folder=here.bin)
    nowhere = str(here.python / 'home')  # below a file
    code, said = here.make(target, HOME=nowhere)
    assert code and 'JupyterLab\n' not in said
    assert said.startswith('d2lps: JupyterLab writes into your home folder, '
                           f'and cannot: HOME={nowhere}\n')
    code, said = here.make(target, HOME=nowhere, JUPYTER_DATA_DIR='here')
    assert code == 0 and said.endswith('JupyterLab\n')
