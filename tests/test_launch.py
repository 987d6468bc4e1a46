"""The scripts with which chapter 20 starts a training, on two machines."""
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from d2lps import network_problem

NOTEBOOKS = Path(__file__).resolve().parents[1] / 'notebooks'
SCRIPTS = sorted((NOTEBOOKS / 'launch').glob('*.sh'))
RATE = 125e6  # bytes per second of each machine's link


@pytest.mark.parametrize('path', SCRIPTS, ids=lambda path: path.name)
def test_the_shell_understands_a_script(path):
    subprocess.run(['bash', '-n', path], check=True)


def test_who_forgets_a_machine_is_told():
    done = subprocess.run(
        ['bash', 'launch/by_hand.sh'], cwd=NOTEBOOKS, text=True,
        capture_output=True, env={'PATH': '/usr/bin:/bin'})
    assert done.returncode
    assert 'HEAD: is the name or address of machine 0' in done.stderr


def programs(folder, texts):
    """A PATH whose first folder has these shell programs."""
    for name, text in texts.items():
        (folder / name).write_text(f'#!/bin/bash\n{text}\n')
        (folder / name).chmod(0o755)
    return f'{folder}:/usr/bin:/bin'


def by_hand(folder, **places):
    """Starts by_hand.sh with a torchrun that only says that it was called."""
    path = programs(folder, {'torchrun': 'echo "torchrun $*"'})
    return subprocess.run(
        ['bash', 'by_hand.sh'], cwd=NOTEBOOKS / 'launch', text=True,
        capture_output=True, env={'PATH': path, **places})


@pytest.mark.skipif(not shutil.which('getent'), reason='no getent')
def test_a_head_without_an_address_ends_the_start_at_once(tmp_path):
    done = by_hand(tmp_path, HEAD='no..host', NODES='2', NODE='1')
    assert done.returncode == 1 and 'torchrun' not in done.stdout
    assert 'HEAD=no..host has no address on this machine' in done.stderr


@pytest.mark.parametrize('nodes, node, words', [
    ('2', '0', 'machine 0 waits at 127.0.0.1:29500 for NODE=1\n'),
    ('4', '0', 'machine 0 waits at 127.0.0.1:29500 for NODE=1 to NODE=3\n'),
    ('2', '1', ''), ('1', '0', '')])
def test_machine_0_says_for_whom_it_waits(tmp_path, nodes, node, words):
    done = by_hand(tmp_path, HEAD='127.0.0.1', NODES=nodes, NODE=node)
    assert done.stderr == words and done.returncode == 0
    assert f'torchrun --nnodes {nodes} --node-rank {node} ' in done.stdout


def test_a_job_calls_torchrun_once_on_each_machine(tmp_path):
    """With the machines' names and numbers that Slurm gives."""
    path = programs(tmp_path, {
        'scontrol': 'test "$*" = "show hostnames node[7-8]" &&'
                    ' printf "node7\\nnode8\\n"',
        'torchrun': 'echo "torchrun $*"',
        'getent': 'test "$*" = "ahosts node7"',
        'srun': 'echo "$SRUN_CPUS_PER_TASK cores";'
                'for k in 0 1; do SLURM_NODEID=$k "$@"; done'})
    done = subprocess.run(
        ['bash', 'job.sh', '--steps', '3'], cwd=NOTEBOOKS / 'launch',
        text=True, capture_output=True, check=True, env={
            'PATH': path, 'SLURM_JOB_ID': '123456',
            'SLURM_JOB_NODELIST': 'node[7-8]', 'SLURM_JOB_NUM_NODES': '2',
            'SLURM_GPUS_ON_NODE': '8', 'SLURM_CPUS_PER_TASK': '64'})
    assert done.stdout.splitlines() == ['64 cores'] + [
        f'torchrun --nnodes 2 --node-rank {k} --nproc-per-node 8 '
        '--master-addr node7 --master-port 23456 train.py '
        '--backend nccl --steps 3' for k in (0, 1)]


@pytest.mark.full
@pytest.mark.skipif(not find_spec('torch'), reason='make .venv/torch')
@pytest.mark.skipif(bool(network_problem()), reason='no slow network')
@pytest.mark.parametrize('script, options', [
    ('by_hand.sh', []), ('by_hand.sh', ['--shard', '--recompute']),
    ('without_slurm.sh', ['--accumulate', '2'])])
def test_two_machines_train(script, options):
    done = subprocess.run(
        [sys.executable, '-m', 'd2lps', 'cluster', '--num-servers', '0',
         '--bandwidth', str(RATE), f'launch/{script}', '--steps', '8',
         *options], cwd=NOTEBOOKS, text=True, capture_output=True,
        timeout=500)
    assert done.returncode == 0, done.stderr
    places = re.findall(r'rank (\d) of 4: process (\d) of machine (\d)',
                        done.stdout)
    assert sorted(places) == [('0', '0', '0'), ('1', '1', '0'),
                              ('2', '0', '1'), ('3', '1', '1')]
    begin, guessing, end = map(float, re.search(
        r'loss ([\d.]+) \(guessing: ([\d.]+)\), after 8 steps ([\d.]+)',
        done.stdout).groups())
    assert abs(begin - guessing) < 0.5 and end < begin - 0.5
    found = re.search(r'bus bandwidth (\d+) MB/s', done.stdout)
    assert 0 < float(found[1]) * 1e6 < 1.3 * RATE  # no link carries more
    assert re.search(r'\d+ ms a step, [\d,]+ tokens/s, MFU \d+\.\d%',
                     done.stdout)
