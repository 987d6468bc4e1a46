"""What `pip install` brings, without and with extras, and what then works."""
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import d2lps
from d2lps.missing import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / 'notebooks' / 'results'
SERVER = ['server', str(RESULTS / '21-table.txt'), '--gpu', 'V100']
LOG = ['--log', str(RESULTS / '21-log.txt')]
# What a plain installation has besides.
CORE = '''
from d2lps import pipelines, planning
from d2lps.collectives import simulate, strategies, topology
ring, box = strategies.ring(4), topology.pcie_switch(4)
ring.check()
assert simulate.timing(ring, box, 1e6).seconds > 0 and box.route(0, 3)
assert [*pipelines.gpipe(0, 2, 4)] and sum(planning.model_states(8e9)) > 0
'''
# A finder finds none of them, as in a new environment.
WITHOUT = '''
import sys
from importlib.machinery import PathFinder
lacks, find_spec = {lacks}, PathFinder.find_spec
PathFinder.find_spec = lambda name, path=None, target=None: (
    None if name in lacks else find_spec(name, path, target))
'''


def needs(package, extra):
    return (f"d2lps needs {package} for this: pip install 'd2lps[{extra}]'")


def test_one_version():
    """In pyproject.toml; the package and the command say it."""
    [version] = re.findall(r'^version = "(.*)"$', (
        ROOT / 'pyproject.toml').read_text(), re.M)
    assert d2lps.__version__ == version
    said = subprocess.run([sys.executable, '-m', 'd2lps', '--version'],
                          text=True, check=True, stdout=subprocess.PIPE)
    assert said.stdout == f'd2lps {version}\n'


def test_a_wrong_name_is_answered_with_the_right_one(python):
    done = python('-c', 'import d2lps\nd2lps.strategie')
    assert done.stderr.splitlines()[-1].endswith(
        "Did you mean: 'strategies'?")


def main(*arguments):
    return f'from d2lps.__main__ import main\nmain({[*arguments]})'


def test_a_plain_installation_is_enough_for_plans_and_servers(python):
    done = python('-c', WITHOUT.format(lacks=[*EXTRAS, 'mxnet', 'd2l'])
                  + CORE + main(*SERVER, *LOG))
    assert done.stdout.startswith('GPUs      8 V100'), done.stderr
    assert 'verdict   healthy' in done.stdout


@pytest.mark.parametrize('code, package, extra', [
    ('import d2lps\nd2lps.pictures.explore_sums()', 'ipywidgets',
     'notebooks'),
    ('from d2lps import Cluster', 'cloudpickle', 'cluster'),
    ('import d2lps\nd2lps.machine()', 'psutil', 'cluster'),
    (f'import d2lps\nd2lps.read_nccl_tests(open({LOG[1]!r}).read())',
     'pandas', 'tables'),
    ("from d2lps import planning\nplanning.read_runs('runs.csv')", 'pandas',
     'tables')])
def test_what_needs_an_extra_names_it(python, code, package, extra):
    done = python('-c', WITHOUT.format(lacks=[*EXTRAS]) + code)
    assert done.stderr.splitlines()[-1] == (
        f'd2lps.missing.NoExtra: {needs(package, extra)}')


@pytest.mark.parametrize('arguments, package, extra', [
    (['machine'], 'psutil', 'cluster'),
    (['cluster', __file__], 'cloudpickle', 'cluster')],
    ids=lambda one: one[0] if isinstance(one, list) else '')
def test_a_command_that_needs_an_extra_names_it_in_a_line(
        python, arguments, package, extra):
    done = python('-c', WITHOUT.format(lacks=[*EXTRAS]) + main(*arguments))
    assert done.returncode == 1 and not done.stdout
    assert done.stderr == needs(package, extra) + '\n'


def test_the_extra_cluster_is_enough_for_a_cluster(python):
    lacks = [package for package, extra in EXTRAS.items()
             if extra != 'cluster'] + ['mxnet', 'd2l']
    done = python('-c', WITHOUT.format(lacks=lacks) + '''
import d2lps
with d2lps.Cluster(2, num_servers=0) as cluster:
    print(cluster.run(lambda: d2lps.join_peers().rank))
''')
    assert done.stdout == '[0, 1]\n', done.stderr


def test_others_may_look_for_what_is_missing(python):
    """As networkx does for pandas, and as d2lps itself does."""
    code = WITHOUT.format(lacks=[*EXTRAS]) + (
        'import d2lps\nfrom importlib.util import find_spec\n'
        'print(find_spec("pandas"))\nimport pandas')
    done = python('-c', code)
    assert done.stdout == 'None\n'
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: No module named 'pandas'")


@pytest.mark.full
def test_an_empty_environment(tmp_path):
    """`pip install .`, and then what the message says."""
    copy, venv = tmp_path / 'copy', tmp_path / 'venv'
    shutil.copytree(ROOT / 'd2lps', copy / 'd2lps', ignore=(
        shutil.ignore_patterns('__pycache__')))
    for name in 'pyproject.toml', 'README.md', 'LICENSE':
        shutil.copy(ROOT / name, copy)
    env = {name: value for name, value in os.environ.items()
           if not name.startswith('PYTHON')}

    def run(program, *arguments):
        done = subprocess.run(
            [venv / 'bin' / program, *arguments], cwd=tmp_path, text=True,
            env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=900)
        if program == 'pip' and 'Could not find a version' in done.stdout:
            pytest.skip('no network')
        return done.stdout
    subprocess.run([sys.executable, '-m', 'venv', venv], check=True)
    before = len(run('pip', 'list').splitlines())
    run('pip', 'install', str(copy))
    brought = run('pip', 'list').splitlines()
    assert len(brought) - before <= 12, brought
    assert run('python', '-c', CORE) == ''
    assert run('d2lps', *SERVER).startswith('GPUs      8 V100: 0 1 2 3 4')
    assert 'verdict   healthy' in run('d2lps', *SERVER, *LOG)
    said = run('d2lps', 'machine')
    assert said == needs('psutil', 'cluster') + '\n'
    run(*shlex.split(said.partition(': ')[2]))
    assert ' GB of memory (' in run('d2lps', 'machine')
