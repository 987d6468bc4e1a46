"""The chapters that run without MXNet and PyTorch, on any Python from 3.11."""
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from d2lps import Cluster, network_problem
from d2lps.missing import Finder, NoFork, NoMXNet
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from test_chapter_lists import NO_MXNET, RECORDED, TORCH
from traitlets.config import PyFileConfigLoader

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = {number: next(ROOT.glob(f'notebooks/{number:02}-*.ipynb'))
            for number in sorted(NO_MXNET)}
CHAPTERS = [*NOTEBOOK.values()]
NO_MODULE = "No module named 'mxnet'"
OF_CLUSTERS = 'A cluster with num_servers=0 needs no MXNet.'


def says(why=NO_MODULE, besides=''):
    """The message where MXNet is missing, on this machine."""
    return str(NoMXNet(why, besides))


def cells(path):
    return [cell for cell in nbformat.read(path, 4).cells
            if cell.cell_type == 'code']


# What `make lab` brings along, and what Windows lacks, is hidden.
WITHOUT = '''
import json, os, select, signal, socket, sys
from importlib.machinery import PathFinder
lacks, find_spec = {lacks}, PathFinder.find_spec
PathFinder.find_spec = lambda name, path=None, target=None: (
    None if name in lacks else find_spec(name, path, target))
for name in lacks:
    sys.modules.pop(name, None)
'''
NAMES = WITHOUT + '''
import d2lps.pictures.board  # Jupyter is not our business
for module, names in {functions}.items():
    for name in names.split():
        delattr(sys.modules[module], name)
from importlib import import_module
import d2lps
errors = {{}}
for room in 'd2lps', 'd2lps.pictures', 'd2lps.cluster', 'd2lps.recovery':
    module = import_module(room)
    for name in dir(module):
        try:
            getattr(module, name)
            errors[f'{{room}}.{{name}}'] = None
        except Exception as error:
            errors[f'{{room}}.{{name}}'] = (
                f'{{type(error).__name__}}: {{error}}')
print(json.dumps(errors))
'''
EXTRA = ['mxnet', 'd2l', 'pooch', 'scipy', 'tqdm']
WINDOWS = ['fcntl', 'grp', 'pwd', 'pyroute2', 'resource', 'termios']
NOT_THERE = {'os': 'fork forkpty getpgrp geteuid getuid killpg setpgid setsid',
             'select': 'poll', 'socket': 'AF_UNIX',
             'signal': 'SIGALRM SIGHUP SIGKILL alarm'}
NEED_MXNET = {'d2lps.train', 'd2lps.copy_bandwidth', 'd2lps.devices',
              'd2lps.follow', 'd2lps.training',
              'd2lps.Checkpoint', 'd2lps.pictures.explore_devices',
              'd2lps.recovery.ReplicatedStore'}
NEED_NONE = {f'd2lps{room}.{name}' for room in ('', '.cluster') for name in (
    'Cluster', 'ClusterError', 'Network', 'StoreError', 'WorkerError',
    'bare_mxnet', 'network_problem')} | {
        'd2lps.PeerError', 'd2lps.PlanError', 'd2lps.join_peers',
        'd2lps.machine', 'd2lps.KVStore'}


def used():
    """The names that the chapters use, such as d2lps.pictures.animate.

    But those in cells for MXNet, which are left out without it, and
    `follow`, which `here.run` then does not call.
    """
    text = '\n'.join(one.source for path in CHAPTERS for one in cells(path)
                     if 'mx.' not in one.source)
    names = {f'd2lps.{name}' for name in re.findall(
        r'\b(pictures\.[a-zA-Z]\w+|(?<=d2lps\.)\w+)', text)}
    return {name for name in names if not re.search(
        'BLUE|GREEN|RED|follow', name)}


@pytest.mark.full
@pytest.mark.parametrize('lacks, functions', [
    (EXTRA, {}), (EXTRA + WINDOWS, NOT_THERE)], ids=['Linux', 'Windows'])
def test_every_name_works_or_says_what_is_missing(python, lacks, functions):
    done = python('-c', NAMES.format(lacks=lacks, functions=functions))
    assert done.returncode == 0, done.stderr
    errors = json.loads(done.stdout)
    assert len(used()) > 12
    assert not {name: errors[name] for name in used() if errors[name]}
    lost = {name for name, error in errors.items() if error}
    assert NEED_MXNET <= lost and not NEED_NONE & lost
    assert NEED_NONE <= errors.keys()
    assert {errors[name] for name in lost} == {f'NoMXNet: {says()}'}


def test_what_the_chapters_use_loads_no_mxnet(python):
    """Not even where it is installed, which would take a second."""
    done = python('-c', 'import sys; from pydoc import locate\n'
                  'assert all([locate(name) for name in sys.argv[1:]])\n'
                  'print({"mxnet", "d2l"} & {*sys.modules})',
                  *used())
    assert done.stdout == 'set()\n', done.stderr


@pytest.mark.parametrize('first', ['import mxnet as mx', 'from mxnet import '
                                   'autograd', 'from d2l import mxnet'])
def test_an_import_in_a_notebook_says_it_too(python, first):
    """It stands below import d2lps in each chapter."""
    done = python('-c', WITHOUT.format(lacks=EXTRA) + f'import d2lps\n{first}')
    assert done.stderr.splitlines()[-1] == 'd2lps.missing.NoMXNet: ' + (
        says(f'No module named {first.split()[1]!r}'))


@pytest.mark.parametrize('call, besides', [
    ('Cluster(num_servers=1)', OF_CLUSTERS), ('bare_mxnet("1")', '')])
def test_so_does_what_needs_servers(python, call, besides):
    done = python('-c', WITHOUT.format(lacks=EXTRA) + 'import d2lps\n'
                  f'd2lps.{call}')
    assert done.stderr.splitlines()[-1] == 'd2lps.missing.NoMXNet: ' + (
        says(besides=besides))


@pytest.mark.parametrize('num_servers', [0, 1])
def test_windows_has_no_clusters(monkeypatch, num_servers):
    monkeypatch.delattr(os, 'fork')
    monkeypatch.setattr(platform, 'system', lambda: 'Windows')
    with pytest.raises(OSError) as error:
        Cluster(2, num_servers)
    [line] = error.value._render_traceback_()
    assert line == f'OSError: {error.value}' == f'OSError: {NoFork()}'
    assert 'which Windows cannot' in line


def test_a_notebook_shows_one_sentence(monkeypatch):
    """Whatever else is not found is not our business."""
    assert Finder in sys.meta_path and Finder.find_spec('mxnets') is None
    with pytest.raises(NoMXNet) as error:
        Finder.find_spec('mxnet')
    [line] = error.value._render_traceback_()
    assert line == f'ImportError: {error.value}'


@pytest.mark.parametrize('command, besides', [
    (['train'], ''), (['timeline'], ''),
    (['cluster', __file__], OF_CLUSTERS)],
    ids=lambda one: one[0] if one else '')
def test_a_terminal_shows_one_sentence(python, command, besides):
    done = python('-c', WITHOUT.format(lacks=EXTRA) + 'from d2lps.__main__ '
                  f'import main\nmain({command})')
    assert done.returncode == 1
    assert done.stderr == says(besides=besides) + '\n'


def test_cores_and_memory_need_no_mxnet(python):
    done = python('-c', WITHOUT.format(lacks=EXTRA) + 'from d2lps.__main__ '
                  "import main\nmain(['machine'])")
    assert re.fullmatch(
        r'\d+ cores?, \d+\.\d GB of memory \(.*, Python 3\..*\)\. MXNet, '
        r'which counts GPUs and copies between devices, is not here\n',
        done.stdout)
    assert not done.stderr


@pytest.mark.parametrize('has_mxnet, begins', [
    (True, 'index'), (False, '03-where-to-sum')])
def test_jupyterlab_begins_with_what_runs(monkeypatch, has_mxnet, begins):
    monkeypatch.setattr('importlib.util.find_spec', lambda _: has_mxnet)
    config = PyFileConfigLoader('jupyter_lab_config.py', str(
        ROOT / 'setup' / 'jupyter')).load_config()
    assert config.LabApp.default_url == f'/lab/tree/{begins}.ipynb'
    assert (ROOT / 'notebooks' / f'{begins}.ipynb').exists()


# From here on with a Python for which there is no MXNet.
# What the first of its processes compiles, the others find.
COMPILED = {'PYTHONDONTWRITEBYTECODE': ''}


def later_python():
    """A Python from 3.12 on this machine."""
    found = [shutil.which(f'python3.{minor}') for minor in (14, 13, 12)]
    found += sorted(Path.home().glob('.pyenv/versions/3.1[2-9]*/bin/python'))
    for one in filter(None, found):  # some are of a program that has none
        if not subprocess.run([one, '-c', ''], capture_output=True).returncode:
            return one
    pytest.skip('no Python from 3.12 here')


@pytest.fixture(scope='session')
def light():
    """What `make lab` installs for it. One test does so, the others wait."""
    venv = ROOT / '.venv-later'
    done = subprocess.run(
        ['make', f'VENV={venv.name}', f'PYTHON={later_python()}',
         f'{venv.name}/installed'], cwd=ROOT, text=True, timeout=900,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env={
            name: value for name, value in os.environ.items()
            if not name.startswith(('MAKE', 'MFLAGS', 'PYTHON'))})
    if 'connected to the Internet' in done.stdout:
        pytest.skip('no network')
    assert done.returncode == 0, done.stdout
    return str(venv / 'bin' / 'python')


@pytest.mark.full
def test_it_has_no_mxnet_and_the_numpy_of_today(light):
    done = subprocess.run(
        [light, '-c', 'import importlib.util, numpy, pandas, d2lps, sys\n'
         'print(importlib.util.find_spec("jupyterlab") is not None,\n'
         '      numpy.__version__, pandas.__version__, d2lps.__file__)\n'
         'import mxnet'], cwd=ROOT / 'notebooks', text=True,
        capture_output=True, timeout=300, env=os.environ | COMPILED)
    lab, numpy, pandas, file = done.stdout.split()
    assert lab == 'True' and int(numpy.split('.')[0]) >= 2
    assert int(pandas.split('.')[0]) >= 3
    assert Path(file) == ROOT / 'd2lps' / '__init__.py'
    message = done.stderr.splitlines()[-1]
    assert message.startswith('d2lps.missing.NoMXNet: d2lps needs mxnet')
    assert 'remove the folder .venv' in message


def run(python, notebook, **settings):
    """Run a notebook with that Python's kernel; what it left is in it."""
    class Kernel(AsyncKernelManager):
        kernel_spec = KernelSpec(
            argv=[python, '-m', 'ipykernel_launcher', '-f',
                  '{connection_file}'], language='python',
            env=COMPILED | settings | {
                'PYTHONPATH': '', 'PYTHONWARNINGS': 'default:::__main__'})
    NotebookClient(
        notebook, timeout=300, startup_timeout=180,
        kernel_manager_class=Kernel,
        resources={'metadata': {'path': ROOT / 'notebooks'}}).execute()


@pytest.mark.full
@pytest.mark.parametrize('path', CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_runs(light, path):
    """And nothing in it warns of what later versions will not have."""
    notebook = nbformat.read(path, 4)
    run(light, notebook)
    outputs = [output for cell in notebook.cells
               for output in cell.get('outputs', ())]
    assert len(outputs) > 10
    said = ''.join(output.text for output in outputs if
                   output.output_type == 'stream' and output.name == 'stderr')
    # What a worker says at once of another, as chapter 12 wants to see it.
    assert not re.sub(r'\[worker \d\] PeerError: .*\n', '', said)


CLUSTER = '''
import sys, d2lps
from d2lps.collectives import strategies, travel

def ring(n):
    import numpy as np
    peers = d2lps.join_peers()
    array = np.full(10_000, peers.rank + 1.0)
    travel.run(peers, strategies.ring(n), array)
    return sorted(set(array.tolist())), 'mxnet' in sys.modules

with d2lps.Cluster(3, 0, network={network}) as cluster:
    print(cluster.run(ring, 3))
'''


@pytest.mark.full
@pytest.mark.parametrize('network', ['None', 'd2lps.Network(12.5e6)'])
def test_a_cluster_without_servers_runs(light, network):
    """Nothing in its processes warns of what later versions will not have."""
    if network != 'None' and network_problem():
        pytest.skip(network_problem())
    done = subprocess.run(
        [light, '-c', CLUSTER.format(network=network)], text=True,
        capture_output=True, timeout=300, cwd=ROOT / 'notebooks',
        env=os.environ | COMPILED | {
            'PYTHONWARNINGS': 'error::DeprecationWarning'})
    assert done.returncode == 0, done.stderr
    assert done.stdout == f'{[([6.0], False)] * 3}\n' and not done.stderr


# Read when a kernel starts: it cannot fork, as on Windows.
NO_FORK = 'import os, platform\ndel os.fork, os.forkpty\n' + (
    "platform.system = lambda: 'Windows'\n")


@pytest.mark.full
@pytest.mark.parametrize('number', sorted(NO_MXNET & RECORDED))
def test_without_fork_a_chapter_shows_what_was_recorded(
        light, tmp_path, number):
    start = tmp_path / 'profile_default' / 'startup'
    start.mkdir(parents=True)
    (start / 'no_fork.py').write_text(NO_FORK)
    notebook = nbformat.read(NOTEBOOK[number], 4)
    run(light, notebook, IPYTHONDIR=str(tmp_path))
    texts = [text for cell in notebook.cells
             for output in cell.get('outputs', ())
             for text in [output.get('text', '')]]
    why = ('PyTorch is not installed here' if number in TORCH else
           'MXNet is not installed here' if number == 16 else
           'Windows cannot fork the processes')
    assert any(why in text for text in texts)
    assert not any('Not run:' in text for text in texts) or number in TORCH


@pytest.mark.parametrize('number', [12, 16])
def test_a_chapter_shows_its_record_where_all_is_missing(tmp_path, number):
    """As in a browser tab: no MXNet, no processes, no packages for them."""
    start = tmp_path / 'profile_default' / 'startup'
    start.mkdir(parents=True)
    lacks = [*EXTRA, *WINDOWS, 'cloudpickle', 'psutil', 'jinja2']
    (start / 'hide.py').write_text(WITHOUT.format(lacks=lacks) + NO_FORK)
    notebook = nbformat.read(NOTEBOOK[number], 4)
    run(sys.executable, notebook, IPYTHONDIR=str(tmp_path),
        D2LPS_WITHOUT='mxnet')
    said = ''.join(output.get('text', '') for cell in notebook.cells
                   for output in cell.get('outputs', ()))
    assert 'What follows was recorded elsewhere: ' in said
    assert said.count('(recorded elsewhere: ') > 2 and 'Not run:' not in said


@pytest.mark.full
def test_the_map_runs(light):
    notebook = nbformat.read(ROOT / 'notebooks' / 'index.ipynb', 4)
    run(light, notebook)
    [text] = [output.text for cell in notebook.cells
              for output in cell.get('outputs', ())]
    assert re.match(r'\d+ cores?, \d+\.\d GB of memory \(', text)
