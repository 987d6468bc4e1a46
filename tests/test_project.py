"""The files around the code agree with each other and with the code."""
import pydoc
import re
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
# What readers need, what developers need, and PyTorch for both.
LOCKS = {path.name: path.read_text()
         for path in ROOT.glob('requirements*.lock')}
READERS, DEVELOPERS, TORCH = (f'requirements{what}.lock'
                              for what in ('', '-dev', '-torch'))
MODULES = sorted((ROOT / 'd2lps').rglob('*.py'))
TEACHING = sorted((ROOT / 'teaching').rglob('*.py'))


@cache
def lock_entries(lock):
    """A lock's entries, each in one line and without comments."""
    text = re.sub(r'^\s*#.*\n', '', LOCKS[lock], flags=re.MULTILINE)
    return text.replace('\\\n', ' ').strip().splitlines()


def pinned(lock, **machine):
    """Names and versions that a lock installs on such a machine: one each."""
    found = {}
    for entry in lock_entries(lock):
        one = Requirement(entry.split('--hash')[0])
        if not one.marker or one.marker.evaluate(machine):
            name = canonicalize_name(one.name)
            assert name not in found, f'{lock}: {name} twice'
            found[name] = next(iter(one.specifier)).version
    return found


def test_conda_installs_the_lock_and_names_what_the_notebooks_are_about():
    *plain, section = CONDA['dependencies']
    assert 'python=3.11' in plain
    assert section == {'pip': ['-r requirements.lock', 'mxnet', 'd2l',
                               'matplotlib', 'jupyterlab', 'ipywidgets']}
    assert PROJECT['project']['requires-python'] == '>=3.11'


def test_there_are_three_locks():
    assert {*LOCKS} == {READERS, DEVELOPERS, TORCH}


@pytest.mark.parametrize('lock', LOCKS)
def test_a_lock_has_versions_and_hashes_and_no_address(lock):
    assert len(lock_entries(lock)) > 20
    for entry in lock_entries(lock):
        requirement, *hashes = re.split(r'\s+--hash=', entry)
        assert re.match(r'[\w.-]+==[\w.]+( ; .+)?$', requirement), entry
        assert hashes, entry
        assert all(re.fullmatch(r'sha256:[0-9a-f]{64}\s*', hash)
                   for hash in hashes), entry
    assert not re.search(r'://|file:| @ |(^|\s)[~.]*/', LOCKS[lock])


@pytest.mark.parametrize('python, system, machine, has_mxnet', [
    ('3.11', 'linux', 'x86_64', True), ('3.11', 'linux', 'aarch64', True),
    ('3.11', 'darwin', 'x86_64', True), ('3.11', 'darwin', 'arm64', False),
    ('3.11', 'win32', 'AMD64', False), ('3.12', 'linux', 'x86_64', False),
    ('3.13', 'darwin', 'arm64', False), ('3.14', 'win32', 'AMD64', False)])
def test_each_machine_gets_what_the_project_needs(
        python, system, machine, has_mxnet):
    """Once; with MXNet the NumPy that d2l wants, else one of today."""
    there = {**default_environment(), 'python_version': python,
             'python_full_version': f'{python}.9', 'sys_platform': system,
             'platform_machine': machine,
             'os_name': 'nt' if system == 'win32' else 'posix'}
    readers, developers, torch = (pinned(lock, **there) for lock in (
        READERS, DEVELOPERS, TORCH))
    assert readers.items() <= developers.items()
    assert not {'pytest', 'playwright', 'sphinx'} & readers.keys()
    assert {**developers, **torch} == {**torch, **developers}
    groups = PROJECT['dependency-groups']
    assert groups['build'] == PROJECT['build-system']['requires']
    for found, lines in [
            (readers, PROJECT['project']['dependencies'] + groups['build']),
            (developers, groups['dev'] + groups['book']),
            (torch, groups['torch'])]:
        for need in (Requirement(line) for line in lines
                     if isinstance(line, str)):
            if not need.marker or need.marker.evaluate(there):
                assert need.specifier.contains(
                    found[canonicalize_name(need.name)]), need
    assert has_mxnet == ('mxnet' in readers) == ('d2l' in readers)
    assert has_mxnet == readers['numpy'].startswith('1.23.')


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
