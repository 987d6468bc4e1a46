"""The scripts with which chapter 20 starts a training, on two machines."""
import re
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


def test_a_job_calls_torchrun_once_on_each_machine(tmp_path):
    """With the machines' names and numbers that Slurm gives."""
    programs = {'scontrol': 'test "$*" = "show hostnames node[7-8]" &&'
                            ' printf "node7\\nnode8\\n"',
                'torchrun': 'echo "torchrun $*"',
                'srun': 'echo "$SRUN_CPUS_PER_TASK cores";'
                        'for k in 0 1; do SLURM_NODEID=$k "$@"; done'}
    for name, text in programs.items():
        (tmp_path / name).write_text(f'#!/bin/bash\n{text}\n')
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ['bash', 'job.sh', '--steps', '3'], cwd=NOTEBOOKS / 'launch',
        text=True, capture_output=True, check=True, env={
            'PATH': f'{tmp_path}:/usr/bin:/bin', 'SLURM_JOB_ID': '123456',
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
