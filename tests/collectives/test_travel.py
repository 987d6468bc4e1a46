"""Plans that travel: processes that a test forks, over Unix sockets and TCP.

What comes out must be, bit for bit, what `Schedule.run` makes of the same
arrays. What is wrong must be said, by all, and nobody may hang.
"""
import contextlib
import os
import random
import re
import signal
import socket
import stat
import time
import traceback

import numpy as np
import pytest
from clusters import HANGS, wait_for
from d2lps.collectives import Schedule, Send, strategies, travel
from d2lps.cluster import Network
from d2lps.cluster.peers import joining
from d2lps.cluster.peers.exchange import (PeerError, Peers, PlanError)
from d2lps.collectives.schedule import ScheduleError
from hypothesis import given
from hypothesis import strategies as st
from plans import BY_N, BY_TWO, schedules
from travellers import (Crew, first, go, in_round, join, memory, open_now,
                        settled, still_well)


@pytest.fixture(scope='module')
def crews(tmp_path_factory):
    """Crews that stay, by their number of workers."""
    made = {}

    def crew(n):
        if n not in made:
            made[n] = Crew(n, n % 2 and tmp_path_factory.mktemp('c')).joined()
        return made[n]
    yield crew
    for one in made.values():
        one.close()


@pytest.fixture
def crew(tmp_path):
    """Makes crews for one test, which may break them."""
    with contextlib.ExitStack() as stack:
        yield lambda n, tcp=False, **more: stack.enter_context(
            Crew(n, None if tcp else tmp_path, **more))


LAYOUTS = {'plain': lambda a: a, 'turned round': lambda a: a[..., ::-1],
           'with gaps': lambda a: np.repeat(a, 2, -1)[..., ::2],
           'Fortran': np.asfortranarray, 'transposed': lambda a: a.T}


def go_with(me, plan, array, op, layout):
    """Run a plan on an array that lies like this in memory."""
    return np.ascontiguousarray(go(me, plan, LAYOUTS[layout](array), op))


def same(plan, arrays, crew, op=np.add, layout='plain'):
    """Run a plan both ways; compare all bits."""
    want = [LAYOUTS[layout](array.copy()) for array in arrays]
    plan.run(want, op)
    helpers = [np.empty_like(arrays[0])] * (len(plan.nodes) - len(arrays))
    results = crew.each(go_with, [(plan, array, op, layout)
                                  for array in [*arrays, *helpers]])
    for rank, array in enumerate(want):
        found = results[rank]
        assert isinstance(found, np.ndarray), found
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tobytes() == array.tobytes(), (plan, rank)


def some(plan, shape, dtype='f4', seed=0):
    numbers = np.random.default_rng(seed)
    return [numbers.normal(size=shape).astype(dtype)
            for _ in range(plan.num_devices)]


# What comes out.

@pytest.mark.parametrize('name', [*BY_N, *BY_TWO])
def test_every_plan(crews, name):
    plan = BY_N[name](5) if name in BY_N else BY_TWO[name](3, 2)
    for size in 0, 7, 1000:
        same(plan, some(plan, size), crews(len(plan.nodes)))


OPS = {'add': np.add, 'maximum': np.maximum, 'multiply': np.multiply,
       'minimum': np.minimum, 'hypot': lambda a, b: a + b * 2}
DTYPES = ['?', 'i1', 'u2', 'i4', 'i8', 'f2', 'f4', 'f8', '>f4', 'c8', 'c16']


@given(plan=schedules(5), dtype=st.sampled_from(DTYPES),
       op=st.sampled_from(sorted(OPS)), layout=st.sampled_from([*LAYOUTS]),
       shape=st.lists(st.integers(0, 9), min_size=1, max_size=3),
       seed=st.integers(0, 99))
def test_any_plan(crews, plan, dtype, op, layout, shape, seed):
    if (op, dtype) == ('hypot', '?'):
        op = 'maximum'
    arrays = [(array * 3).astype(dtype)
              for array in some(plan, shape, 'f4', seed)]
    same(plan, arrays, crews(len(plan.nodes)), OPS[op], layout)


def test_the_place_in_memory(crews, tmp_path):
    """Arrays with gaps are filled in place; so are files, and one number."""
    def there(me, plan, folder):
        base = np.zeros((6, 8), 'f4')
        views = base[::2, 1::3], base[1, ::-2], base[3, 3:4], base.T[5:7]
        for view in views:
            view[...] = me.rank + 1
            travel.run(me.peers, plan, view)
            assert (view == 6).all()
            view[...] = 0
        assert not base.any()
        single, empty = np.array(me.rank), np.zeros((0, 3))
        travel.run(me.peers, plan, single)
        travel.run(me.peers, plan, empty)
        file = np.memmap(f'{folder}/{me.rank}', 'i4', 'w+', shape=5)
        file[:] = me.rank
        travel.run(me.peers, plan, file)
        return int(single), file.tolist()
    assert crews(3)(there, strategies.ring(3), tmp_path) == [(3, [3] * 5)] * 3


def test_events(crews):
    def timed(me, plan):
        events, start = [], time.monotonic()
        travel.run(me.peers, plan, np.ones(1000), events=events)
        assert all(start <= one.start <= one.end <= time.monotonic()
                   for one in events)
        return [(one.round, *one.send) for one in events]
    plan = strategies.halving_doubling(4)
    results = crews(4)(timed, plan)
    assert sorted(sum(results, [])) == sorted(
        (number, *send) for number, sends in enumerate(plan.rounds, 1)
        for send in sends)


def test_a_function_before_each_round(crews):
    def paused(me, plan):
        rounds, array = [], np.ones(3)
        travel.run(me.peers, plan, array, before_round=lambda: rounds.append(
            me.peers.round))
        return rounds, array.tolist()
    found = crews(3)(paused, strategies.ring(3))
    assert found == [([0, 1, 2, 3], [3] * 3)] * 3


def test_an_error_before_a_round_ends_the_run(crew):
    c = crew(3).joined()

    def fails(me):
        def stop():
            if (me.rank, me.peers.round) == (1, 1):
                raise MemoryError('no more')
        travel.run(me.peers, strategies.ring(3), np.ones(3),
                   before_round=stop)
    errors = c(fails)
    assert isinstance(errors[1], MemoryError)
    assert isinstance(errors[2], PeerError) and errors[2].waits_for == 1


# Bad arguments.

READ_ONLY = np.ones(3)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize('arguments, words', [
    (dict(plan=strategies.ring(3)), 'plan must be for 2 nodes, as there are '
     r'so many workers; ring\(3\) has 3'),
    (dict(plan='ring'), 'plan must be a Schedule'),
    (dict(peers='me'), 'peers must be the Peers that d2lps.join_peers'),
    (dict(array=[1, 2]), 'array must be a NumPy array of numbers'),
    (dict(array=READ_ONLY), 'array is read-only'),
    (dict(op=3), 'op must be a function'),
    (dict(events=3), 'events must be a list'),
    (dict(before_round=3), 'before_round must be a function'),
    (dict(plan=Schedule([[Send('cpu', 0, 0, True)]], 1, ['cpu'])),
     'in round 1, cpu sends chunk 0, of which it has nothing yet')])
def test_bad_arguments(crews, arguments, words):
    """Nothing has been sent then, and all goes on."""
    def bad(me, plan, array, peers=None, **more):
        travel.run(peers or me.peers, plan, array, **more)
    found = crews(2)(lambda me: bad(me, **{
        'plan': strategies.ring(2), 'array': np.ones(3)} | arguments))
    for error in found:
        assert isinstance(error, ValueError), error
        assert re.search(words, str(error)), error
    assert isinstance(found[0], ScheduleError) == ('round 1' in words)
    assert still_well(crews(2))


@pytest.mark.parametrize('arguments, words', [
    (dict(rank=2), 'rank must be below 2, the number of addresses; it was 2'),
    (dict(addresses='/a'), 'addresses must be a list such as'),
    (dict(addresses=['/a', '/a']), 'addresses must be a list of different'),
    (dict(addresses=['/a', '']), r'addresses\[1] must be the path of a Unix'),
    (dict(addresses=['/a', '/b' * 60]), r'addresses\[1] must be .*at most 100'
     ' bytes'),
    (dict(addresses=['lab1:65536', '/a']), r'addresses\[0] must be'),
    (dict(timeout=0), 'timeout must be a number from 0.1 to 1e.06'),
    (dict(addresses=['127.0.0.1:20000', '/b']), 'secret must be a text that '
     'no stranger knows')])
def test_bad_arguments_of_peers(arguments, words):
    with pytest.raises(ValueError, match=words):
        Peers(**{'rank': 0, 'addresses': ['/a', '/b']} | arguments)


def test_where_it_cannot_listen(tmp_path):
    """Nothing that is there is removed, and files are closed."""
    before, other = open_now(), str(tmp_path / 'other')
    file = tmp_path / 'thesis'
    file.write_text('three years')
    with socket.create_server(('127.0.0.1', 0)) as server:
        port = server.getsockname()[1]
        for address, why in ((f'127.0.0.1:{port}', 'Address already in use'),
                             (str(file), 'Address already in use'),
                             ('192.0.2.1:2000', 'Cannot assign requested')):
            with pytest.raises(OSError, match=why) as error:
                Peers(0, [address, other], secret='x')
            assert f'cannot listen at {address}' in str(error.value)
    del error
    assert file.read_text() == 'three years'
    assert os.listdir(tmp_path) == ['thesis'] and settled(before)


def test_who_does_not_come(crew, tmp_path):
    """Both ends of a connection say whom they missed; then all can join."""
    before = open_now()
    c = crew(3, timeout=HANGS)
    c.tell(0, lambda me: join(me, timeout=1))
    c.tell(2, lambda me: join(me, timeout=1))
    for rank in 0, 2:
        error = c.hear(rank)
        assert isinstance(error, PeerError)
        assert (error.rank, error.waits_for, error.round) == (rank, 1, 0)
        assert f'worker {rank} waited 1 s for worker 1 to join' in str(error)
    assert c(open_now)[0][1] == 1
    assert still_well(c.joined()) and os.listdir(tmp_path) == []
    c.close()
    c.pids.clear()
    assert settled(before)


# Workers that do not do the same.

RING, TREE = strategies.ring(3), strategies.tree(3)
DIFFERENT = {
    'plan': [(RING, np.ones(6)), (TREE, np.ones(6)), (RING, np.ones(6))],
    'dtype': [(RING, np.ones(6)), (RING, np.ones(6, 'i8')),
              (RING, np.ones(6))],
    'weights': [(RING, np.ones(6)), (Schedule(
        RING.rounds, 3, weights=[1, 1, 2], name=RING.name), np.ones(6)),
        (RING, np.ones(6))]}


# Two of three workers have the first op, the one between them the second.
ONE_NAME = {
    'code': (lambda a, b: a + b, lambda a, b: a * b),
    'a name': (lambda a, b: np.fmin(a, b), lambda a, b: np.fmax(a, b))}
for about, ops in ONE_NAME.items():
    DIFFERENT[f'ops of one name: {about}'] = [
        (RING, np.ones(6), ops[k == 1]) for k in range(3)]


@pytest.mark.parametrize('what', DIFFERENT)
def test_workers_that_run_different_plans(crews, what):
    def run(me, plan, array, op=np.add):
        before = array.copy()
        try:
            travel.run(me.peers, plan, array, op)
        finally:
            assert (array == before).all()
    for _ in range(2):  # also when it is known
        errors = crews(3).each(run, DIFFERENT[what])
        assert {*map(type, errors)} == {PlanError}, errors
        assert len({*map(str, errors)}) == 1
        for rank, (plan, *_) in enumerate(DIFFERENT[what]):
            assert f'worker {rank} runs {plan.name[:200]}' in str(errors[0])
        assert still_well(crews(3))


def waits_alone(me):
    """The lines of the traceback of a worker that waits for worker 1."""
    me.peers.timeout = 0.1
    try:
        me.peers.receive(1, np.ones(2))
    except PeerError:
        return traceback.format_exc().splitlines()


def test_who_waits_too_long_sees_one_error(crew):
    c = crew(2, timeout=HANGS).joined()
    c.tell(0, waits_alone)
    lines = c.hear(0)
    assert 'PeerError: worker 0 waited 0.1 s for worker 1' in lines[-1]
    assert lines.count('Traceback (most recent call last):') == 1


def test_one_runs_a_plan_that_was_agreed_before(crew):
    """All end, nobody with a sum; and they can join again."""
    c = crew(3, timeout=3).joined()
    for plan in RING, TREE:
        c(go, plan, np.ones(6))
    new = Schedule(RING.rounds, 3, name='new')
    for others in TREE, new:
        errors = c.each(go, [(others if rank == 1 else RING, np.ones(6))
                             for rank in range(3)])
        assert {*map(type, errors)} == {PeerError}, errors
        # Those whose messages never meet hear of it when the time is over.
        assert any('it runs another plan' in str(one) or 'waited 3 s'
                   in str(one) for one in errors)
        errors = c(go, RING, np.ones(6))
        assert all(isinstance(one, RuntimeError) and not isinstance(
            one, PeerError) and 'closed (PeerError in round' in str(one)
            and 'join again' in str(one) for one in errors), errors
        assert still_well(c.joined())
        for plan in RING, TREE:
            c(go, plan, np.ones(6))


@pytest.mark.parametrize('op, words', [
    (lambda a, b: np.add(a, b).sum(), 'op must work element by element'),
    (lambda a, b: 1 / 0, 'division by zero'),
    (lambda a, b: (a + b) * 1j, 'convert the arrays to complex128 first')])
def test_an_op_that_fails(crew, op, words):
    c = crew(3).joined()
    results = c(go, RING, np.ones(6), op)
    assert all(words in str(one) or isinstance(one, PeerError)
               for one in results) and words in ''.join(map(str, results))
    assert still_well(c.joined())


# Death and lateness.

def a_plan(numbers, most=5):
    """A plan, a worker, and a round, by chance."""
    name = numbers.choice([name for name in BY_N if name != 'gather_cpu'])
    plan = BY_N[name](numbers.randint(2, most))
    return (plan, numbers.randrange(plan.num_devices),
            numbers.randint(1, len(plan.rounds)))


def reference(plan, arrays):
    arrays = [array.copy() for array in arrays]
    plan.run(arrays)
    return arrays


def check_the_others(plan, arrays, victim, results):
    """The sum, or an error that leads to the victim."""
    want = reference(plan, arrays)
    for rank, one in enumerate(results):
        if rank != victim and not isinstance(one, PeerError):
            assert one.tobytes() == want[rank].tobytes()
    errors = [one for one in results if isinstance(one, PeerError)]
    assert not errors or first(results) == victim, (
        plan, victim, [str(one) for one in results])
    return bool(errors)


@pytest.mark.parametrize('how', ['killed', 'fails'])
def test_who_ends_in_the_middle(how, tmp_path):
    """Any worker, in any round of any plan, with small and large arrays."""
    numbers, told = random.Random(7), 0
    act = {'killed': lambda: os.kill(os.getpid(), signal.SIGKILL),
           'fails': lambda: 1 / 0}[how]
    many = 8
    before = open_now()
    for number in range(many):
        plan, victim, round = a_plan(numbers)
        arrays = some(plan, numbers.choice([10, 300_000]), seed=number)
        folder = tmp_path / str(number)
        folder.mkdir()
        with Crew(plan.num_devices, number % 2 and folder) as c:
            c.joined().tell(victim, in_round, round, act)
            assert c.hear(victim) is None
            results = c.each(go, [(plan, array) for array in arrays])
            assert (results[victim] == 'dead' if how == 'killed' else
                    isinstance(results[victim], ZeroDivisionError))
            told += check_the_others(plan, arrays, victim, results)
            for rank in range(plan.num_devices):
                if isinstance(results[rank], PeerError):
                    c.tell(rank, lambda me: settled((99, 1)))
                    assert c.hear(rank)
        assert not os.listdir(folder)
    assert told > many / 2 and settled(before)


@pytest.mark.parametrize('size', [10, pytest.param(
    2_000_000, marks=pytest.mark.full)])
def test_who_is_late(crew, tmp_path, size):
    """It goes on when the others have given up, and finds lines closed."""
    def sleep(me, wake):
        def act():
            while not os.path.exists(wake):
                time.sleep(0.01)
        in_round(me, 2, act)
    plan, victim, wake = strategies.ring(4), 2, tmp_path / 'wake'
    c = crew(4, tcp=True).joined()
    c(lambda me: setattr(me.peers, 'timeout', 3))
    c.tell(victim, sleep, wake)
    c.hear(victim)
    arrays = some(plan, size)
    for rank, array in enumerate(arrays):
        c.tell(rank, go, plan, array)
    results = [rank != victim and c.hear(rank) for rank in range(4)]
    assert check_the_others(plan, arrays, victim, results)
    assert any(f'waited 3 s for worker {victim}' in str(one)
               for one in results)
    wake.touch()
    results[victim] = c.hear(victim)
    assert isinstance(results[victim], PeerError)
    assert check_the_others(plan, arrays, victim, results)


def test_ctrl_c_and_again(crew):
    c = crew(3).joined()
    for victim in 0, 1:
        for rank in range(3):
            if rank != victim:
                c.tell(rank, go, RING, np.ones(9))
        c.tell(victim, lambda me: (
            signal.setitimer(signal.ITIMER_REAL, 0), time.sleep(0.2)))
        assert c.hear(victim)
        waits = (victim + 1) % 3
        os.kill(c.pids[waits], signal.SIGINT)
        assert isinstance(c.hear(waits), KeyboardInterrupt)
        # The third waits for this one, too, and hears of it when it comes.
        c.tell(victim, go, RING, np.ones(9))
        for rank in {0, 1, 2} - {waits}:
            error = c.hear(rank)
            assert isinstance(error, PeerError) and error.closed
        assert still_well(c.joined())


def test_a_fork_and_a_thread(crew):
    """Neither disturbs the run of the worker itself."""
    def fork(me, plan):
        pid = os.fork()
        if not pid:
            try:
                travel.run(me.peers, plan, np.ones(3))
            except RuntimeError as error:
                me.peers.close()
                os._exit(7 if 'forked' in str(error) else 1)
            finally:
                os._exit(1)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def while_another_runs(me, plan):
        with me.peers._turn, pytest.raises(RuntimeError, match='another thre'
                                           'ad of this worker runs a plan'):
            go(me, plan, np.ones(3))
    c, plan = crew(3).joined(), strategies.ring(3)
    assert c(fork, plan) == [7] * 3
    assert c(while_another_runs, plan) == [None] * 3
    assert still_well(c)


# Strangers.

def connected(address):
    """A line to who listens there, once it does."""
    family, where = joining.place_of(address)
    end = time.monotonic() + HANGS
    while True:
        line = socket.socket(family)
        line.settimeout(HANGS)
        try:
            line.connect(where)
            return line
        except OSError:
            line.close()
            assert time.monotonic() < end
            time.sleep(0.01)


def closes(line):
    """Is the line closed, sooner or later?"""
    with line, contextlib.suppress(ConnectionError):
        while line.recv(100):
            pass
    return True


def says_nothing(line, rank):
    return closes(line)


def says_garbage(line, rank):
    line.sendall(os.urandom(60))
    return closes(line)


def echoes(line, rank):
    with line, contextlib.suppress(ConnectionError):
        while data := line.recv(100):
            line.sendall(data)
    return True


def knows_another_secret(line, rank):
    """As a worker of an older run would."""
    with line, pytest.raises(ConnectionError):
        joining.greet(line, rank, b'older', time.monotonic() + HANGS)
        joining.exactly(line, 1, time.monotonic() + HANGS)
    return True


@pytest.mark.parametrize('stranger', [
    says_nothing, says_garbage, echoes, knows_another_secret])
def test_strangers_that_connect(crew, stranger):
    def with_short_patience(me):
        joining.STRANGER = 0.5
        return join(me)
    c = crew(2, tcp=True)
    c.tell(0, with_short_patience)
    for rank in 1, 1:
        assert stranger(connected(c.addresses[0]), rank)
    c.tell(1, join)
    assert c.hear(0) >= 2 and c.hear(1) == 0
    assert still_well(c)
    for address in c.addresses:  # nobody listens any more
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(joining.place_of(address)[1], 5)


def test_a_worker_behind_a_long_delay_is_no_stranger():
    """Its proof comes after two delays."""
    with pytest.raises(ValueError, match='^delay'):
        Network(delay=joining.STRANGER / 2)


def test_a_socket_is_its_users_own(crew, tmp_path):
    """Whatever the umask; and it is gone when all have joined."""
    c = crew(2)
    c(lambda me: os.umask(0) and None)
    c.tell(0, join)
    path = tmp_path / '0'

    def listens():
        return path.exists() and not stat.S_IMODE(path.stat().st_mode) & 0o77
    assert wait_for(listens)
    says_garbage(connected(c.addresses[0]), 0)
    c.tell(1, join)
    assert c.hear(0) == 1 and c.hear(1) == 0
    assert not os.listdir(tmp_path) and still_well(c)


# Again and again.

def test_many_runs_keep_nothing(crew):
    def runs(me, plans, times, start=0):
        for number in range(start, start + times):
            numbers = random.Random(number)
            plan = plans[numbers.randrange(len(plans))]
            array = np.full(numbers.choice([0, 1, 10, 1000, 100_000]),
                            me.rank + 1.0)
            travel.run(me.peers, plan, array)
            assert (array == 6).all()
        return *open_now(), memory()
    plans = [BY_N[name](3) for name in BY_N if name != 'gather_cpu']
    c = crew(3).joined()
    before = c(runs, plans, 100)
    after = c(runs, plans, 300, 100)
    for (files, threads, bytes), (more_files, more_threads, more_bytes) in zip(
            before, after):
        assert more_files == files and more_threads <= 3  # one for each other
        assert more_bytes - bytes < 2e7
