"""The files around the code agree with each other and with the code."""
import os
import pydoc
import re
import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / 'pyproject.toml').read_text())
CONDA = yaml.safe_load((ROOT / 'environment.yml').read_text())
# What MXNet needs, and what the tests need as well; what the chapters without
# MXNet need, and the book, on any Python from 3.11.
LAB, TEST, LIGHT, BOOK = (f'requirements{what}.lock' for what in (
    '', '-test', '-light', '-book'))
LOCKS = {name: (ROOT / name).read_text() for name in (LAB, TEST, LIGHT, BOOK)}
each_lock = pytest.mark.parametrize('lock', LOCKS)
MODULES = sorted((ROOT / 'd2lps').rglob('*.py'))
TEACHING = sorted((ROOT / 'teaching').rglob('*.py'))


@cache
def lock_entries(lock):
    """A lock's entries, each in one line and without comments."""
    text = re.sub(r'^\s*#.*\n', '', LOCKS[lock], flags=re.MULTILINE)
    return text.replace('\\\n', ' ').strip().splitlines()


def pythons(lock):
    """The Pythons that may install what is in a lock."""
    return ['3.11'] if lock in (LAB, TEST) else [
        '3.11', '3.12', '3.13', '3.14']


def pinned(lock, python='3.11', **machine):
    """Names and versions that a lock installs on such a machine: one each."""
    there = {**default_environment(), 'python_version': python,
             'python_full_version': f'{python}.9', **machine}
    found = {}
    for entry in lock_entries(lock):
        one = Requirement(entry.split('--hash')[0])
        if not one.marker or one.marker.evaluate(there):
            name = canonicalize_name(one.name)
            assert name not in found, f'{lock}: {name} twice'
            found[name] = next(iter(one.specifier)).version
    return found


def conda_lines():
    """What conda installs itself, and its pip section."""
    plain = [line for line in CONDA['dependencies'] if isinstance(line, str)]
    [pip] = [line['pip'] for line in CONDA['dependencies']
             if isinstance(line, dict)]
    return plain, pip


def needs():
    """What pyproject.toml wants installed, and the lock that has it."""
    groups, project = PROJECT['dependency-groups'], PROJECT['project']
    assert groups['build'] == PROJECT['build-system']['requires']
    light = project['dependencies'] + groups['build']
    return [(lock, Requirement(line)) for lock, lines in (
        (LIGHT, light), (LAB, light),
        (LAB, project['optional-dependencies']['mxnet']),
        (TEST, groups['test']), (BOOK, groups['book'])) for line in lines]


def test_python_is_the_same_everywhere():
    plain, _ = conda_lines()
    assert 'python=3.11' in plain
    assert PROJECT['project']['requires-python'] == '>=3.11'
    assert 'PYTHON ?= python3.11' in (ROOT / 'Makefile').read_text()


@pytest.mark.parametrize('lock, need', needs(), ids=str)
def test_everything_needed_is_in_the_lock(lock, need):
    for python in pythons(lock):
        version = pinned(lock, python)[canonicalize_name(need.name)]
        assert need.specifier.contains(version), python


@pytest.mark.parametrize('one, other', [(LAB, TEST), (LIGHT, BOOK)])
def test_two_locks_agree(one, other):
    for python in pythons(one):
        a, b = pinned(one, python), pinned(other, python)
        assert len(a.keys() & b.keys()) > 30
        assert all(a[name] == b[name] for name in a.keys() & b.keys())


def test_the_notebooks_need_no_test_tools():
    lab, tests = pinned(LAB), pinned(TEST)
    assert 'playwright' in tests and not {
        'playwright', 'pytest', 'nbval', 'hypothesis'} & lab.keys()


@pytest.mark.parametrize('system, machine', [
    ('linux', 'x86_64'), ('linux', 'aarch64'), ('darwin', 'arm64'),
    ('darwin', 'x86_64'),
    ('win32', 'AMD64')])
@pytest.mark.parametrize('lock', [LIGHT, BOOK])
def test_what_any_laptop_installs_is_small_and_of_today(
        lock, system, machine):
    """No MXNet, nor what holds NumPy at 1.23; JupyterLab is the same."""
    for python in pythons(lock):
        found = pinned(lock, python, sys_platform=system,
                       platform_machine=machine,
                       os_name='nt' if system == 'win32' else 'posix')
        assert int(found['numpy'].split('.')[0]) >= 2
        assert not {'mxnet', 'd2l', 'scipy', 'pytest'} & found.keys()
        for name in {'jupyterlab', 'ipywidgets', 'ipykernel'} & found.keys():
            assert found[name] == pinned(LAB)[name]


def test_no_later_python_installs_mxnet():
    """For it has no distutils, which MXNet imports."""
    found = {one.name: one.marker for one in map(
        Requirement, PROJECT['project']['optional-dependencies']['mxnet'])}
    for name in ('mxnet', 'd2l'):
        assert found[name].evaluate({'python_version': '3.11'})
        assert not found[name].evaluate({'python_version': '3.12'})


@each_lock
def test_every_entry_of_the_lock_has_one_version_and_hashes(lock):
    assert len(lock_entries(lock)) > 40
    for entry in lock_entries(lock):
        requirement, *hashes = re.split(r'\s+--hash=', entry)
        assert re.match(r'[\w.-]+==[\w.]+( ; .+)?$', requirement), entry
        assert hashes, entry
        assert all(re.fullmatch(r'sha256:[0-9a-f]{64}\s*', hash)
                   for hash in hashes), entry


@each_lock
def test_the_lock_names_no_index_and_no_path(lock):
    text = LOCKS[lock]
    assert '://' not in text and 'file:' not in text and ' @ ' not in text
    assert not re.search(r'^\s*-(?!-hash=)', text, re.MULTILINE)
    assert not re.search(r'(^|\s)[~.]*/', text)


def clean_environment(**more):
    """Without what an outer make hands down."""
    return {**{name: value for name, value in os.environ.items()
               if not name.startswith(('MAKE', 'MFLAGS', 'PYTHON'))}, **more}


@pytest.fixture
def copy(tmp_path):
    """A copy of what the Makefile reads."""
    for name in ('Makefile', 'environment.yml', 'pyproject.toml', *LOCKS):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def make(folder, *args):
    return subprocess.run(['make', *args], cwd=folder, text=True, timeout=300,
                          env=clean_environment(), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.mark.full
@pytest.mark.parametrize('target, locks', [
    ('lab', [LAB]), ('test', [LAB, TEST]), ('lab-light', [])])
def test_make_installs_what_is_needed_and_no_more(copy, target, locks):
    """Conda installs what `make lab` does."""
    _, pip = conda_lines()
    assert pip == ['-r requirements.lock']
    done = make(copy, '--dry-run', target)
    assert done.returncode == 0
    assert re.findall(r'-r (\S+)', done.stdout) == locks


TEXTS = [ROOT / name for name in ('README.md', 'CONTRIBUTING.md', 'Makefile',
                              'environment.yml')
         ] + [path for kind in ('docs/*.md', 'setup/*.*', 'notebooks/*.ipynb',
                                'notebooks/exercises/*/*.ipynb')
              for path in sorted(ROOT.glob(kind))]


def test_files_that_are_named_exist():
    """In one of our folders, or such as a lock; `make book` makes its own."""
    pattern = re.compile(
        r'(?<![\w./~-])((?:benchmarks|d2lps|docs|notebooks|setup|teaching|tests)/[\w./-]*|'
        r'[\w-]+\.(?:toml|yml)|requirements[\w-]*\.lock)')
    missing = [f'{text.relative_to(ROOT)}: {path}'
               for text in [*TEXTS, *MODULES, *TEACHING]
               for path in pattern.findall(text.read_text())
               if not path.startswith('docs/_build')
               and not (ROOT / path.rstrip('.')).exists()]
    assert not missing, '\n'.join(missing)


@pytest.mark.parametrize('text', sorted([
    ROOT / 'CONTRIBUTING.md', *ROOT.glob('docs/*.md')]),
    ids=lambda path: path.stem)
def test_names_of_the_package_exist(text):
    names = {*re.findall(r'\bd2lps\w*(?:\.\w+)+', text.read_text())}
    assert names and all(map(pydoc.locate, names)), names


def test_the_licence_is_apache_2():
    assert 'Apache License' in (ROOT / 'LICENSE').read_text()[:200]
    assert PROJECT['project']['license'] == {'text': 'Apache-2.0'}
