"""`python -m d2lps cluster`: a script on the workers of a cluster."""
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import contextmanager

import psutil
import pytest
from clusters import all_gone, needs_network
from d2lps.__main__ import main
from d2lps.cluster import Network

pytestmark = pytest.mark.full


@pytest.fixture
def script(tmp_path):
    def write(text, name='script.py'):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path
    return write


def test_a_script_works_as_it_would_alone(python, script):
    """From its folder's parent, with arguments and a module beside it."""
    script("""
        import sys
        import mxnet as mx
        from mxnet import np
        from beside import factor
        if __name__ == '__main__':
            kv = mx.kv.create('dist_sync')
            kv.init('w', np.zeros(1))
            out = np.zeros(1)
            kv.pushpull('w', np.ones(1) * factor, out=out)
            print(kv.rank, kv.num_workers, out.item(), sys.argv[1:])
            print('done', file=sys.stderr)
            sys.exit(0)
        """, 'there/script.py')
    script('factor = 7', 'there/beside.py')
    done = python('-m', 'd2lps', 'cluster', '--num-workers', '3',
                  '--num-servers', '2', 'there/script.py', '--lr', '0.1', '-h')
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == [
        f"[worker {rank}] {rank} 3 21.0 ['--lr', '0.1', '-h']"
        for rank in range(3)]
    assert sorted(done.stderr.splitlines()) == [
        f'[worker {rank}] done' for rank in range(3)]


def test_scripts_that_fail(python, script):
    """Each worker fails in a way of its own."""
    script("""
        import mxnet as mx
        import sys
        def go():
            if rank == 0:
                raise KeyError('oh')
            if rank == 1:
                sys.exit(3)
            if rank == 2:
                sys.exit('I give up')
        rank = mx.kv.create('dist_sync').rank
        go()
        """)
    done = python('-m', 'd2lps', 'cluster', '--num-workers', '4', 'script.py')
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[-3:] == [
        "d2lps: worker 0 failed with KeyError: 'oh'",
        'd2lps: worker 1 failed with RuntimeError: script.py ended with exit '
        'code 3',
        'd2lps: worker 2 failed with RuntimeError: script.py ended with I '
        'give up']
    # The script's own traceback, and nothing of ours.
    frames = [line for line in lines if 'File "' in line]
    assert len(frames) == 2 and all('script.py' in line for line in frames)


STORELESS = ('-m', 'd2lps', 'cluster', '--num-workers', '2',
             '--num-servers', '0')


@needs_network
def test_a_shell_script_learns_its_place(python, script):
    """It gets what such scripts are told on real machines."""
    path = script("""
        echo "machine $NODE of $NODES, $HEAD, $1"
        python -c 'import d2lps'
    """, 'place.sh')
    done = python(*STORELESS, '--bandwidth', '125e6', str(path), 'a b')
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    head = lines[0].split(', ')[1]
    assert head.startswith('10.0.')
    assert lines == [f'[worker {k}] machine {k} of 2, {head}, a b'
                     for k in (0, 1)]


@needs_network
def test_a_shell_script_that_fails(python, script):
    path = script('test $NODE = 0 || exit 3', 'fails.sh')
    done = python(*STORELESS, '--bandwidth', '125e6', str(path))
    assert done.returncode == 1
    assert 'worker 1 failed with' in done.stderr
    assert 'fails.sh ended with exit code 3' in done.stderr
    assert 'worker 0 failed' not in done.stderr


def test_a_shell_script_needs_a_network_of_its_own(python, script):
    """What it starts may listen where other users reach it."""
    path = script('echo it ran', 'listens.sh')
    done = python(*STORELESS, str(path))
    assert done.returncode == 1
    assert 'private network' in done.stderr and 'it ran' not in done.stdout


def test_help_needs_no_package_of_clusters(python):
    done = python('-c', """
import sys
sys.modules |= {'cloudpickle': None, 'psutil': None, 'pyroute2': None}
from d2lps.__main__ import main
main(['cluster', '--help'])
""")
    assert done.returncode == 0, done.stderr


def test_a_worker_that_dies(python, script):
    script('import os; os.write(2, b"I am going"); os._exit(7)')
    done = python('-m', 'd2lps', 'cluster', '--num-workers', '1',
                  '--num-servers', '0', 'script.py')
    assert done.returncode == 1
    assert done.stderr.startswith('[worker 0] I am going\nd2lps: worker 0 (')
    assert 'ended with exit code 7' in done.stderr
    assert '\n    I am going\n' in done.stderr
    assert 'Traceback' not in done.stderr


def test_ctrl_c_in_the_middle(script):
    path = script("""
        import time
        print('here', flush=True)
        while True:
            time.sleep(0.1)
        """)
    process = subprocess.Popen(
        [sys.executable, *STORELESS, str(path)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdout.readline().startswith('[worker ')
        pids = [one.pid for one in psutil.Process(
            process.pid).children(recursive=True)]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait(30)
    assert process.returncode == 130
    assert 'Traceback' not in out + err
    assert len(pids) == 3 and all_gone(pids)


@pytest.fixture
def terminal(capsys, monkeypatch, script):
    """Run the command with a cluster that only takes note."""
    script('')
    asked = []

    @contextmanager
    def cluster(*args, **kwargs):
        asked.append((args, {name: value for name, value in kwargs.items()
                             if value is not None}))
        yield cluster
    cluster.run = lambda *args: asked.append(args[1:])

    def run(*args, fake=True):
        if fake:
            monkeypatch.setattr('d2lps.cluster.cluster.Cluster', cluster)
        with pytest.raises(SystemExit) if not fake else nothing() as end:
            main(['cluster', *args])
        return asked if fake else (end.value.code, capsys.readouterr())
    return run


@contextmanager
def nothing():
    yield


@pytest.mark.parametrize('options, wanted', [
    (['--num-workers', '4', '--num-servers', '3', '--timeout', '5'],
     ((4, 3, 5), {})),
    (['--restarts', '3', '--elastic'],
     ((2, 1, 60), {'restarts': 3, 'elastic': True})),
    (['--delay', '0.1', '--colocated'],
     ((2, 1, 60), {'network': Network(delay=0.1, colocated=True)}))])
def test_all_arguments_are_passed_on(terminal, tmp_path, options, wanted):
    script = os.path.join(tmp_path, 'script.py')
    assert terminal(*options, script, '--more', '1') == [
        wanted, (script, ['--more', '1'])]


@pytest.mark.parametrize('args, words', [
    ([], 'name a script: d2lps cluster train.py'),
    (['no.py'], 'there is no script no.py'),
    (['--num-workers', '0', 'SCRIPT'], '--num-workers must be a whole number'),
    (['--elastic', 'SCRIPT'], '--elastic needs --restarts=')])
def test_bad_arguments_are_explained_in_one_line(
        terminal, tmp_path, args, words):
    args = [arg.replace('SCRIPT', str(tmp_path / 'script.py'))
            for arg in args]
    code, shown = terminal(*args, fake=False)
    assert code.startswith('d2lps: ') and words in code and '\n' not in code
    assert not shown.out and not shown.err
