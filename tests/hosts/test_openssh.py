"""A cluster over OpenSSH's real server, on three "machines".

All tests share one lab (see `opensshlab`). What a test gives to `lab` runs
there, in a process of its own, as a program of the reader's.
"""
from pathlib import Path

import opensshlab
import pytest
from clusters import run_body, running

pytestmark = pytest.mark.full

HERE = Path(__file__).resolve().parent
HELPERS = [str(HERE), str(HERE.parent)]
PRELUDE = f'''
import io, os, shlex, signal, socket, sys, threading, time
from contextlib import redirect_stderr, redirect_stdout
sys.path[:0] = {HELPERS}
import psutil
from clusters import wait_for
from concurrent.futures import ThreadPoolExecutor
from d2lps.__main__ import main as command
from d2lps.cluster import Cluster, ClusterError
from d2lps.cluster.processes import group
from d2lps.cluster.hosts import machines
from opensshlab import *

ALL = ['one', 'two', 'three']
# The cables of these machines are short: notice all sooner.
FAST = (*ssh(), '-o', 'ServerAliveInterval=1', '-o', 'ConnectTimeout=5')

def make(workers=2, servers=1, hosts=ALL, ssh=ssh(), **kwargs):
    return Cluster(workers, servers, hosts=hosts, ssh=ssh, **kwargs)

def add_up():
    import mxnet as mx
    from mxnet import np
    kv = mx.kv.create('dist_sync')
    kv.init('w', np.zeros(3))
    out = np.zeros(3)
    kv.pushpull('w', np.ones(3) * (kv.rank + 1), out=out)
    return os.environ['MACHINE'], kv.rank, out.tolist()

def error_of(function):
    """Its ClusterError and the seconds that this took."""
    start = time.monotonic()
    try:
        function()
    except ClusterError as error:
        taken = time.monotonic() - start
        print(f'{{taken:.1f}} s: {{error}}', end='\\n\\n')
        return str(error), taken
    raise AssertionError('nothing failed')
'''


@pytest.fixture(scope='module')
def process(tmp_path_factory):
    problem = opensshlab.problem()
    if problem:
        pytest.skip(problem)
    with running(opensshlab, tmp_path_factory.mktemp('lab')) as process:
        yield process


@pytest.fixture
def lab(process, tmp_path):
    return lambda body: run_body(process, tmp_path, PRELUDE, body)


def test_many_processes_and_servers_of_their_own(lab):
    """11 on a machine, of which sshd lets in 10 at once; with few ports."""
    def body():
        def listening():
            return [(one.laddr.ip, one.laddr.port)
                    for one in psutil.net_connections('tcp')
                    if one.status == psutil.CONN_LISTEN]
        ports = range(20500, 20535)
        with make(2, 11, ['one'], server_hosts=['three'], ports=ports) as c:
            for _ in range(3):  # each time with new servers
                assert c.run(add_up) == [
                    ('one', 0, [3] * 3), ('one', 1, [3] * 3)]
            servers = {psutil.Process(c.pids[f'server {k}']).environ()[
                'MACHINE'] for k in range(11)}
            assert servers == {'three'}
            here = {port for ip, port in listening() if ip == HERE}
            assert len(here) == 1 and here <= {*ports}, here
            far = [found for found in sum(c.run(listening), [])
                   if found[0] != '127.0.0.1' and found[1] != 22]
            assert far and {port for _, port in far} <= {*ports}, far
            try:
                c.traffic()
            except ValueError as error:
                assert 'with hosts=, nobody counts' in str(error)
            else:
                raise AssertionError
            # For each machine one connection, and a keeper.
            assert len(sessions()) == 13 + 2 * 2, sessions()
        assert not left(30), left(0)
        for ports in (range(20500, 20506), range(80, 200), [20500], 3):
            try:
                make(4, 2, ports=ports)
            except ValueError as error:
                assert 'ports must be a range of 7 or more' in str(error)
            else:
                raise AssertionError(ports)
    lab(body)


ENDED = 'ended the connection without starting what it was asked to'
# Who or what is in the way, and what the error says.
FAIL_AT_ONCE = {
    'no.such.host': 'Could not resolve hostname',
    'absent': 'No route to host',
    'refusing': 'Connection refused',
    'dropping': 'timed out',
    'stranger': 'Permission denied',
    'unknown': 'Host key verification failed',
    'changed': 'has changed and you have requested strict checking',
    'reads@one': 'the first thing that came in was swallowed',
    'leaves@one': ENDED,
    'date@one': ENDED}


def test_machines_that_fail_at_the_start(lab):
    def body():
        from test_openssh import FAIL_AT_ONCE

        def fail(host, words, **options):
            found, taken = error_of(lambda: make(hosts=[host], **options))
            assert words in found, (words, found)
            return taken
        cases = [*FAIL_AT_ONCE.items()]
        with ThreadPoolExecutor(14) as pool:
            slow = [pool.submit(fail, f'{user}@two',
                                f'host {user}@two did not answer within 14 s')
                    for user in ('swallows', 'sleep', 'cat')]
            soon = [pool.submit(fail, *case) for case in cases]
            soon.append(pool.submit(
                fail, 'one', 'one could not start what it was asked to\nthe '
                'last lines that host one wrote:\n    bash: line 1: '
                '/no/python3: No such file or directory',
                python='/no/python3'))
            assert max(one.result() for one in soon) < 14
            assert all(one.result() >= 14 for one in slow)
        # What a host runs in place of our program is not ours to end.
        assert not left(30, ['sleep 20', 'sshd: sleep@notty']), left(0)
        crowd = [socket.create_connection((HOSTS['one'], 22))
                 for _ in range(10)]
        fail('one', 'kex_exchange_identification')
        for one in crowd:
            one.close()
    lab(body)


def test_what_people_have_in_their_configuration(lab):
    """A greeting without a newline, and ControlMaster without Persist."""
    def body():
        first = make(1, 1, ['mastered'], ports=range(22_000, 22_100))
        with make(2, 1, ['mastered', 'greeting@two'],
                  ports=range(20_500, 20_504)) as c:  # just enough
            first.close()  # and with it what others might have shared
            assert [out for *_, out in c.run(add_up)] == [[3] * 3] * 2
        assert not left(30), left(0)
    lab(body)


def test_what_ends_midway(lab):
    """Several clusters, each of which meets with something else."""
    def body():
        group.SILENCE = 4.0

        def watch(c):
            def check():
                while True:
                    c.check()
                    time.sleep(0.1)
            return error_of(check)

        def go(k, hosts, what, *words):
            first = 20_000 + 100 * k  # they all start at once
            c = make(len(hosts), 1, hosts, ssh=FAST,
                     ports=range(first, first + 100))
            try:
                pid = c._supervisor.places._hosts[0].status['pid']
                keeper = psutil.Process(pid)
                assert keeper in server(hosts[0]).children(True)
                what(c, keeper)
                found, taken = watch(c)
                assert all(word in found for word in words), found
                return taken
            finally:
                c.close()

        def session(c, keeper):
            keeper.parent().kill()

        cases = [
            (['one', 'three'], lambda c, keeper: keeper.kill(),
             'host one lost its connection'),
            (['two'], lambda c, keeper: keeper.suspend(),
             'host two has not given a sign of life for 4 s'),
            (['one'], lambda c, keeper: keeper.terminate(),
             'host one ended the connection', 'it had to end'),
            (['two'], session, 'host two lost its connection')]
        with ThreadPoolExecutor(len(cases)) as pool:
            taken = [*pool.map(lambda k: go(k, *cases[k]), range(len(cases)))]
        assert max(taken) < 120, taken  # none hangs
        assert not left(30), left(0)
    lab(body)


def test_a_cable_that_is_pulled(lab):
    """Nobody tells; each end notices it, and the server's session ends."""
    def body():
        from pyroute2 import IPRoute
        machines.SILENCE = 4.0
        c = make(1, 1, ['one'], server_hosts=['three'], ssh=FAST)
        with IPRoute() as ip:
            index = ip.link_lookup(ifname='three')[0]
            ip.link('set', index=index, state='down')
            found, _ = error_of(lambda: [
                (c.check(), time.sleep(0.1)) for _ in range(200)])
            assert 'host three lost its connection' in found
            assert not left(30), left(0)
            ip.link('set', index=index, state='up')
    lab(body)


def test_ports_that_are_blocked_or_taken(lab):
    def body():
        from d2lps.cluster.processes import restarts

        def use(**kwargs):
            with make(**kwargs) as c:
                c.run(add_up)
        ports = range(21_600, 21_620)  # taken after they were looked at
        busy = [socket.create_server((HERE, port)) for port in ports]
        is_free, machines.is_free = machines.is_free, lambda *_: True
        found, _ = error_of(lambda: use(hosts=['two'], ports=ports,
                                        address=HERE))
        assert 'scheduler' in found and 'bind failed' in found
        machines.is_free = is_free
        for one in busy:
            one.close()
        block('two', HOSTS['three'])
        with make(1, 1, ['two'], server_hosts=['three'], timeout=4) as c:
            found, _ = error_of(lambda: c.run(add_up))
            assert 'worker 0 got no answer from the servers' in found, found
        unblock('two')
        block('two', HERE)
        with make(1, 1, ['two'], timeout=4) as c:
            found, _ = error_of(lambda: c.run(add_up))
            assert 'worker 0 got no answer from the servers' in found, found
        unblock('two')
        restarts.START = 0
        found, _ = error_of(lambda: make(1, 1, ['two']))
        assert 'the workers did not start in 0 s' in found, found
        assert not left(30), left(0)
    lab(body)


def test_ctrl_c_a_death_and_a_reader_who_is_killed(lab):
    def body():
        def wait():
            while True:
                time.sleep(0.1)
        with make(2, 1, ['one']) as c:
            timer = threading.Timer(1, os.kill, [os.getpid(), signal.SIGINT])
            timer.start()
            try:
                c.run(wait)
            except KeyboardInterrupt:
                pass
            assert [out for *_, out in c.run(add_up)] == [[3] * 3] * 2
            c.kill('worker 0')
            found, _ = error_of(lambda: c.run(wait))
            assert 'worker 0 (process' in found
            assert 'on one) was ended by SIGKILL' in found
        child = os.fork()
        if child == 0:
            c = make(1, 1, ['one'], server_hosts=['three'])
            threading.Thread(target=c.run, args=[wait]).start()
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        assert not left(30), left(0)
    lab(body)


def test_check(lab):
    def body():
        from test_openssh import FAIL_AT_ONCE
        from d2lps.cluster.hosts.check import ADVICE

        def check(*hosts, more=()):
            start, out, err = time.monotonic(), io.StringIO(), io.StringIO()
            try:
                with redirect_stdout(out), redirect_stderr(err):
                    command(['cluster', '--check', '--hosts', ','.join(hosts),
                             '--ssh', shlex.join(FAST), *more])
            except SystemExit as end:
                print(out.getvalue(), err.getvalue(), time.monotonic() - start)
                assert not err.getvalue()
                return end.code, out.getvalue().splitlines()
        code, lines = check('one', 'two')
        assert code == 0 and lines[-1] == 'all is well'
        assert all(line.startswith('ok    ') for line in lines[:-1])
        names = ['this machine', 'one', 'two']
        assert [line[6:] for line in lines if ' reaches ' in line] == [
            f'{a} reaches {b}' for a in names for b in names if a != b]
        code, lines = check(*FAIL_AT_ONCE)
        assert code == 1 and len(lines) == len(FAIL_AT_ONCE) + 1
        for (host, _), line in zip(FAIL_AT_ONCE.items(), lines):
            assert line.startswith(f'FAIL  {host}: SSH and Python: '), line
            assert any(line.endswith(advice.format(host=host))
                       for advice in ADVICE.values()), line
        assert any('reads@one' in line and 'swallowed' in line
                   for line in lines)
        block('two', HOSTS['three'])
        code, lines = check('two', 'three')
        failed = [line for line in lines if line.startswith('FAIL')]
        assert code == 1 and len(failed) == 1, failed
        assert failed[0].startswith('FAIL  two reaches three: 10.9.0.3:20000: '
                                    'Permission denied, ')
        assert failed[0].endswith("Open three's TCP ports 20000 to 20999 for "
                                  'two')
        unblock('two')
        taken = [socket.create_server(('', port)) for port in (31000, 31001)]
        code, lines = check('one', more=['--ports', '31000-31001'])
        assert code == 1 and any(line.startswith(
            'FAIL  this machine: free ports: none of 31000 to 31001 is free')
            for line in lines), lines
        for one in taken:
            one.close()
        assert not left(30), left(0)
    lab(body)
