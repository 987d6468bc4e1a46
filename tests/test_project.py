"""The files around the code agree with each other and with the code."""
import ast
import pydoc
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from d2lps.missing import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / 'pyproject.toml').read_text())
WORKFLOW = yaml.safe_load(
    (ROOT / '.github' / 'workflows' / 'test.yml').read_text())
CONDA = yaml.safe_load((ROOT / 'environment.yml').read_text())
# What readers need, what developers need, PyTorch for both, and what builds
# the notebooks for a browser tab.
LOCKS = {path.name: path.read_text()
         for path in ROOT.glob('requirements*.lock')}
READERS, DEVELOPERS, TORCH, TAB = (
    f'requirements{what}.lock' for what in ('', '-dev', '-torch', '-tab'))
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


def test_conda_installs_the_lock_and_no_name_without_a_hash():
    """Such as mxnet, which the lock does not have for each system."""
    *plain, section = CONDA['dependencies']
    assert 'python=3.11' in plain
    assert section == {'pip': ['-r requirements.lock']}
    assert PROJECT['project']['requires-python'] == '>=3.11'


def test_there_are_four_locks():
    assert {*LOCKS} == {READERS, DEVELOPERS, TORCH, TAB}


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
    groups, extras = PROJECT['dependency-groups'], PROJECT['project'][
        'optional-dependencies']
    assert groups['build'] == PROJECT['build-system']['requires']
    # No wheels of earlier ones for each promised Python.
    assert has_mxnet or readers['contourpy'] > '1.3.2'
    for found, lines in [
            (readers, PROJECT['project']['dependencies'] + groups['build']),
            *((readers, extras[name]) for name in extras if name != 'check'),
            (developers, extras['check']),
            (developers, groups['dev'] + groups['book']),
            (torch, groups['torch']),
            (pinned(TAB, **there), groups['tab'])]:
        for need in (Requirement(line) for line in lines
                     if isinstance(line, str)):
            if not need.marker or need.marker.evaluate(there):
                if need.name == 'd2lps':  # an extra with others in it
                    assert need.extras <= {*extras} - {'check'}
                    continue
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
    assert PROJECT['project']['license'] == 'Apache-2.0'


def test_every_extra_that_a_message_names_brings_the_package():
    """See the import errors of d2lps/missing.py."""
    extras = PROJECT['project']['optional-dependencies']
    for package, extra in EXTRAS.items():
        names = {Requirement(line).name for line in extras[extra]}
        # IPython comes with ipywidgets.
        assert package in names or package == 'IPython' and (
            'ipywidgets' in names)


def test_a_ci_job_is_the_same_on_each_page():
    """README's lines, the workflow's, and those of environment.yml."""
    [lines] = re.findall(r'^```sh\n(python3\.11 -m venv .*?)^```',
                         (ROOT / 'README.md').read_text(), re.M | re.S)
    *_, last = WORKFLOW['jobs']['nbval']['steps']
    assert last['run'] == lines
    conda = re.sub('^# ?', '', (ROOT / 'environment.yml').read_text(),
                   flags=re.M)
    install_and_run = lines.splitlines(True)[2:]
    assert len(install_and_run) == 2 and ''.join(install_and_run) in conda
    extras = re.search(r"pip install '\.\[(.*)\]'", lines)[1].split(',')
    assert {*extras} <= {*PROJECT['project']['optional-dependencies']}


def test_what_a_ci_job_loads_is_in_the_extra_check():
    """conftest.py at the top, in a new environment without the others."""
    imported = {name.split('.')[0] for node in ast.walk(ast.parse(
        (ROOT / 'conftest.py').read_text())) if isinstance(
            node, (ast.Import, ast.ImportFrom)) for name in (
                [node.module] if isinstance(node, ast.ImportFrom) else
                [alias.name for alias in node.names])}
    assert imported - {*sys.stdlib_module_names} <= {
        'pytest', 'nbval', 'd2lps'}
