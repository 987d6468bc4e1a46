"""Chapters 3, 5, 6, 7, 11 and 13 where there is no MXNet: `make lab-light`."""
import fcntl
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from d2lps.missing import Finder, NoMXNet
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
LIGHT = ROOT / '.venv-light' / 'bin' / 'python'
CHAPTERS = [next(ROOT.glob(f'notebooks/{number}-*.ipynb'))
            for number in ('03', '05', '06', '07', '11', '13')]
each_chapter = pytest.mark.parametrize('path', CHAPTERS,
                                       ids=lambda path: path.stem)
WORDS = ("d2lps needs mxnet 1.9.1 ({why}) for all but chapters 3, 5, 6, "
         '7, 11 and 13. "make lab" installs it, and names what else it lacks.')


def cells(path):
    return [cell for cell in nbformat.read(path, 4).cells
            if cell.cell_type == 'code']


# What `make lab` brings along, and what Windows lacks, is hidden.
WITHOUT = '''
import json, sys
from importlib.machinery import PathFinder
lacks, find_spec = {lacks}, PathFinder.find_spec
PathFinder.find_spec = lambda name, path=None, target=None: (
    None if name in lacks else find_spec(name, path, target))
for name in lacks:
    sys.modules.pop(name, None)
'''
NAMES = WITHOUT + '''
from importlib import import_module
import d2lps
found = {{}}
for room in 'd2lps', 'd2lps_pictures', 'd2lps_cluster', 'd2lps.recovery':
    module = import_module(room)
    shown = room.replace('_', '.')  # d2lps.pictures, as readers write it
    for name in dir(module):
        try:
            getattr(module, name)
            found[f'{{shown}}.{{name}}'] = None
        except Exception as error:
            words = f'{{type(error).__name__}}: {{error}}'
            found[f'{{shown}}.{{name}}'] = words
print(json.dumps(found))
'''
EXTRA = ['mxnet', 'd2l', 'cloudpickle', 'pooch', 'pyroute2', 'scipy',
         'sklearn', 'tqdm']
WINDOWS = ['fcntl', 'grp', 'psutil', 'pwd', 'resource', 'termios']
NEED_MXNET = {'d2lps.train', 'd2lps.machine', 'd2lps.devices', 'd2lps.KVStore',
              'd2lps.Cluster', 'd2lps.virtual_clock', 'd2lps.training',
              'd2lps.Checkpoint', 'd2lps.pictures.explore_devices',
              'd2lps.cluster.WorkerError', 'd2lps.recovery.ReplicatedStore'}


def used():
    """The names that the chapters use, such as d2lps.pictures.animate."""
    text = '\n'.join(one.source for path in CHAPTERS for one in cells(path))
    names = {f'd2lps.{name}' for name in re.findall(
        r'\b(pictures\.[a-zA-Z]\w+|(?<=d2lps\.)\w+)', text)}
    return {name for name in names if not re.search('BLUE|GREEN|RED', name)}


@pytest.mark.full
@pytest.mark.parametrize('lacks', [EXTRA, EXTRA + WINDOWS],
                         ids=['Linux', 'Windows'])
def test_every_name_works_or_says_what_is_missing(python, lacks):
    done = python('-c', NAMES.format(lacks=lacks))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(used()) > 12
    assert not {name: found[name] for name in used() if found[name]}
    lost = {name for name, error in found.items() if error}
    assert NEED_MXNET <= lost
    says = 'NoMXNet: ' + WORDS.format(why="No module named 'mxnet'")
    assert {found[name] for name in lost} == {says}


def test_what_the_chapters_use_loads_no_mxnet(python):
    """Not even where it is installed, which would take a second."""
    done = python('-c', 'import sys; from pydoc import locate\n'
                  'assert all([locate(name) for name in sys.argv[1:]])\n'
                  'print({"mxnet", "d2l", "cloudpickle"} & {*sys.modules})',
                  *used())
    assert done.stdout == 'set()\n', done.stderr


@pytest.mark.parametrize('first', ['import mxnet as mx', 'from mxnet import '
                                   'autograd', 'from d2l import mxnet'])
def test_an_import_in_a_notebook_says_it_too(python, first):
    """It stands below import d2lps in each chapter."""
    done = python('-c', WITHOUT.format(lacks=EXTRA) + f'import d2lps\n{first}')
    assert done.stderr.splitlines()[-1] == 'd2lps.missing.NoMXNet: ' + (
        WORDS.format(why=f'No module named {first.split()[1]!r}'))


def test_a_notebook_shows_one_sentence(monkeypatch):
    """Whatever else is not found is not our business."""
    assert Finder in sys.meta_path and Finder.find_spec('mxnets') is None
    with pytest.raises(NoMXNet) as error:
        Finder.find_spec('mxnet')
    [line] = error.value._render_traceback_()
    assert line == f'ImportError: {error.value}'


@pytest.mark.parametrize('command', [
    ['train'], ['machine'], ['timeline'], ['cluster', 'script.py']])
def test_a_terminal_shows_one_sentence(python, command):
    done = python('-c', WITHOUT.format(lacks=EXTRA) + 'from d2lps.__main__ '
                  f'import main\nmain({command})')
    assert done.returncode == 1
    assert done.stderr == WORDS.format(why="No module named 'mxnet'") + '\n'


# From here on in an environment that `make lab-light` would make.
UNREACHABLE = 'cannot reach its package index'
# What the first of its processes compiles, the others find.
COMPILED = {'PYTHONDONTWRITEBYTECODE': ''}


@pytest.fixture(scope='session')
def light():
    """Its Python. It stays; one test makes it, the others wait for that."""
    with open(ROOT / 'requirements-light.lock') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            ['make', '.venv-light/installed'], cwd=ROOT, text=True,
            timeout=900, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={
                name: value for name, value in os.environ.items()
                if not name.startswith(('MAKE', 'MFLAGS', 'PYTHON'))})
    if UNREACHABLE in done.stdout:
        pytest.skip(f'.venv-light: pip {UNREACHABLE}')
    assert done.returncode == 0, done.stdout
    return str(LIGHT)


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
    assert done.stderr.splitlines()[-1] == 'd2lps.missing.NoMXNet: ' + (
        WORDS.format(why="No module named 'mxnet'"))


def run(python, notebook):
    """Run a notebook with that Python's kernel; what it left is in it."""
    class Kernel(AsyncKernelManager):
        kernel_spec = KernelSpec(
            argv=[python, '-m', 'ipykernel_launcher', '-f',
                  '{connection_file}'], language='python',
            env=COMPILED | {'PYTHONPATH': '',
                            'PYTHONWARNINGS': 'default:::__main__'})
    NotebookClient(
        notebook, timeout=300, startup_timeout=180,
        kernel_manager_class=Kernel,
        resources={'metadata': {'path': ROOT / 'notebooks'}}).execute()


@pytest.mark.full
@each_chapter
def test_a_chapter_runs(light, path):
    """And nothing in it warns of what later versions will not have."""
    notebook = nbformat.read(path, 4)
    run(light, notebook)
    outputs = [output for cell in notebook.cells
               for output in cell.get('outputs', ())]
    assert len(outputs) > 10
    assert not [output.text for output in outputs
                if output.output_type == 'stream' and output.name == 'stderr']


@pytest.mark.full
def test_the_map_says_it_in_one_sentence(light):
    notebook = nbformat.read(ROOT / 'notebooks' / 'index.ipynb', 4)
    with pytest.raises(Exception, match='needs mxnet 1.9.1'):
        run(light, notebook)
    [error] = [output for cell in notebook.cells
               for output in cell.get('outputs', ())
               if output.output_type == 'error']
    assert error.traceback == ['ImportError: ' + WORDS.format(
        why="No module named 'mxnet'")]
