"""The scripts that start a training on two machines, by hand and by Slurm.

Those of chapter 24 start PyTorch's processes, and that of
docs/several-machines.md MXNet's.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from clusters import needs_network, wait_for

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
    ('2', '0', 'NODE=1'), ('4', '0', 'NODE=1 to NODE=3'),
    ('2', '1', ''), ('1', '0', '')])
def test_machine_0_says_for_whom_it_waits(tmp_path, nodes, node, words):
    done = by_hand(tmp_path, HEAD='127.0.0.1', NODES=nodes, NODE=node,
                   TIMEOUT='60')
    assert done.stderr == (f'machine 0 waits at 127.0.0.1:29500 for {words}, '
                           '60 s at most\n' if words else '')
    assert done.returncode == 0
    assert f'torchrun --nnodes {nodes} --node-rank {node} ' in done.stdout
    assert '--rdzv-conf timeout=60 train.py' in done.stdout


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
        '--master-addr node7 --master-port 23456 --rdzv-conf timeout=900 '
        'train.py --backend nccl --steps 3' for k in (0, 1)]


@pytest.mark.parametrize('node, words', [
    ('0', 'machine 0 waits at 127.0.0.1:29500 for NODE=1, 3 s at most\n'
     'machine 0 ended after '), ('1', '')])
def test_one_machine_starts_alone(tmp_path, node, words):
    path = programs(tmp_path, {'torchrun': 'echo more >&2; exit 1'})
    done = subprocess.run(
        ['bash', 'launch/alone.sh', '0'], cwd=NOTEBOOKS, text=True,
        capture_output=True, check=True, env={
            'PATH': path, 'HEAD': '127.0.0.1', 'NODES': '2', 'NODE': node})
    assert done.stdout.startswith(words) and 'more' not in done.stdout
    assert bool(done.stdout) == bool(words)


@pytest.mark.full
@pytest.mark.skipif(not find_spec('torch'), reason='make .venv/torch')
@needs_network
@pytest.mark.parametrize('script, options', [
    ('by_hand.sh', []), ('by_hand.sh', ['--shard', '--recompute']),
    ('without_slurm.sh', ['--accumulate', '2'])])
def test_two_machines_train(script, options):
    done = subprocess.run(
        [sys.executable, '-m', 'd2lps', 'cluster', '--num-servers', '0',
         '--bandwidth', str(RATE), f'launch/{script}', '--steps', '8',
         *options], cwd=NOTEBOOKS, text=True, capture_output=True,
        timeout=500, env=os.environ | {'PROCESSES': '2'})
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


@pytest.mark.skipif(not find_spec('torch'), reason='make .venv/torch')
def test_a_text_shorter_than_a_sequence_is_too_short(tmp_path):
    (tmp_path / 'short').write_text('short')
    done = subprocess.run(
        [sys.executable, 'launch/train.py', '--text', tmp_path / 'short',
         '--peak', '1e12'], cwd=NOTEBOOKS, text=True, capture_output=True,
        env=os.environ | {'RANK': '0', 'LOCAL_RANK': '0', 'GROUP_RANK': '0',
                          'WORLD_SIZE': '1', 'MASTER_ADDR': '127.0.0.1',
                          'MASTER_PORT': str(free_port())})
    assert 'short is too short: each process needs 8' in done.stderr


# MXNet's processes.

PAGE = (NOTEBOOKS.parent / 'docs' / 'several-machines.md').read_text()
IN_TERMINALS, OVER_SSH, BY_SRUN = re.findall(
    r'^```sh\n(.*?)^```', PAGE, re.M | re.S)
EVERY_ROLE = {'scheduler -c import mxnet': 1, 'server -c import mxnet': 1,
              'worker mine.py': 2}


@pytest.mark.parametrize('places, arguments, words', [
    ({'HEAD': ''}, [], 'HEAD: is the IPv4 address of the scheduler'),
    ({'HEAD': 'lab1'}, [], 'HEAD=lab1 is no IPv4 address'),
    ({'WORKERS': ''}, [], 'WORKERS: is the number of workers'),
    ({'ROLE': 'sever'}, [], 'ROLE=sever is no role of MXNet'),
    ({'ROLE': 'worker'}, [], 'is the script of a worker')])
def test_mxnet_is_not_started_with_what_would_hang(tmp_path, places,
                                                   arguments, words):
    path = programs(tmp_path, {'python': 'echo started'})
    done = subprocess.run(
        ['bash', 'mxnet_by_hand.sh', *arguments], cwd=NOTEBOOKS / 'launch',
        text=True, capture_output=True, timeout=60, env={
            'PATH': path, 'HEAD': '10.0.0.1', 'SERVERS': '1', 'WORKERS': '2',
            'ROLE': 'server'} | places)
    assert done.returncode and words in done.stderr
    assert 'started' not in done.stdout


@pytest.mark.parametrize('commands', [
    # The line of the worker is typed on two machines.
    re.sub('(ROLE=worker.*\n)', r'\1\1', IN_TERMINALS), OVER_SSH, BY_SRUN],
    ids=['terminals', 'ssh', 'srun'])
def test_the_page_starts_each_process_of_mxnet(tmp_path, commands):
    """With programs that stand for those of other machines."""
    clone = tmp_path / 'd2lps'
    python = 'echo "$DMLC_ROLE $* $DMLC_PS_ROOT_URI ${PORT-}"'
    folder = clone / '.venv' / 'bin'
    folder.mkdir(parents=True)
    (clone / 'notebooks').symlink_to(NOTEBOOKS)
    programs(folder, {'python': python})  # which the page puts into PATH
    path = programs(tmp_path, {
        'hostname': 'echo "10.0.0.1 fd00::2"',
        'ssh': 'cd "$HOME"; test "$1" = -n && exec sh -c "$3"',
        'srun': 'test "$1 $2" = "--ntasks 4" &&'
                ' for k in 0 1 2 3; do SLURM_PROCID=$k "${@:3}"; done'})
    done = subprocess.run(
        ['bash', '-c', commands], cwd=tmp_path, text=True, capture_output=True,
        timeout=60, check=True, env={
            'PATH': path, 'HOME': str(tmp_path), 'WAIT': '0', 'PORT': '2000'})
    assert sorted(done.stdout.splitlines()) == [
        f'{line} 10.0.0.1 ' for line, n in EVERY_ROLE.items()
        for _ in range(n)], done.stderr
    assert 'it waits at 10.0.0.1:2000 for the servers (1)' in done.stderr
    assert done.stderr.count('can run programs as you') == 4


ADD_UP = '''
import mxnet as mx
kv, out = mx.kv.create('dist_sync'), mx.nd.zeros(3)
kv.init('w', out)
kv.push('w', mx.nd.ones(3) * (kv.rank + 1))
kv.pull('w', out)
print('worker', kv.rank, 'of', kv.num_workers, out.asnumpy().tolist())
'''
SUMS = [f'worker {rank} of 2 [3.0, 3.0, 3.0]' for rank in range(2)]


@pytest.mark.full
@needs_network
def test_mxnet_adds_up_on_two_machines(tmp_path):
    """One has the scheduler, a server and a worker, the other a worker."""
    (tmp_path / 'mine.py').write_text(ADD_UP)
    script = tmp_path / 'start.sh'
    script.write_text(f'''
export SERVERS=1 WORKERS=2
start() {{
  ROLE=$1 timeout 200 bash launch/mxnet_by_hand.sh {tmp_path}/mine.py &
}}
start worker
[ $NODE = 1 ] || {{ start server; start scheduler; }}
wait
''')
    done = subprocess.run(
        [sys.executable, '-m', 'd2lps', 'cluster', '--num-servers', '0',
         '--bandwidth', str(RATE), str(script)], cwd=NOTEBOOKS, text=True,
        capture_output=True, timeout=300)
    sums = re.findall(r'\[worker (\d)\] (worker .*)', done.stdout)
    assert {node for node, _ in sums} == {'0', '1'}, done
    assert sorted(line for _, line in sums) == SUMS


SSHD = '/usr/sbin/sshd'


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


@pytest.fixture
def real_ssh(tmp_path):
    """A program `ssh` for which lab1 and lab2 are OpenSSH's server here."""
    if not os.access(SSHD, os.X_OK):
        pytest.skip(f'there is no {SSHD} (Debian: apt install openssh-server)')
    for key in 'key', 'host_key':
        subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f',
                        str(tmp_path / key)], check=True, timeout=60)
    port = free_port()
    (tmp_path / 'sshd_config').write_text(f'''
ListenAddress 127.0.0.1:{port}
HostKey {tmp_path}/host_key
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
AuthorizedKeysFile {tmp_path}/key.pub
''')
    (tmp_path / 'known').write_text(
        f'[127.0.0.1]:{port} {(tmp_path / "host_key.pub").read_text()}')
    (tmp_path / 'config').write_text(f'''
Host lab1 lab2
  HostName 127.0.0.1
  Port {port}
  IdentityFile {tmp_path}/key
  IdentitiesOnly yes
  BatchMode yes
  UserKnownHostsFile {tmp_path}/known
  GlobalKnownHostsFile none
''')
    start, log = [SSHD, '-D', '-e', '-f', f'{tmp_path}/sshd_config'], (
        tmp_path / 'log')
    if os.geteuid() == 0:  # it has to have this folder then
        start = ['unshare', '--mount', 'sh', '-c', 'mount -t tmpfs none /run '
                 '&& mkdir -m 755 /run/sshd && exec "$@"', '-', *start]
    with log.open('w') as errors:
        server = subprocess.Popen(start, stderr=errors)
    try:
        wait_for(lambda: 'listening' in log.read_text()
                 or server.poll() is not None, 60)
        if server.poll() is not None:
            pytest.skip(f'{SSHD} does not run here: {log.read_text()}')
        yield programs(tmp_path, {
            'ssh': f'exec {shutil.which("ssh")} -F {tmp_path}/config "$@"'})
    finally:
        server.kill()
        server.wait(60)


@pytest.mark.full
def test_mxnet_adds_up_over_openssh(tmp_path, real_ssh):
    """By the page's own lines, with this machine as lab1 and lab2."""
    (tmp_path / 'mine.py').write_text(ADD_UP)
    lines = OVER_SSH
    for of_the_page, here in {
            'cd d2lps': f'cd {NOTEBOOKS.parent}',
            '\\$HOME/d2lps/.venv/bin': str(Path(sys.executable).parent),
            'HEAD=10.0.0.1': 'HEAD=127.0.0.1 ADDRESS=127.0.0.1 '
                             f'PORT={free_port()}',
            'timeout 1h': 'timeout 100',
            'mine.py': str(tmp_path / 'mine.py')}.items():
        assert of_the_page in lines
        lines = lines.replace(of_the_page, here)
    done = subprocess.run(['bash', '-c', lines], text=True, timeout=200,
                          capture_output=True, env={'PATH': real_ssh})
    assert sorted(done.stdout.splitlines()) == SUMS, done.stderr
