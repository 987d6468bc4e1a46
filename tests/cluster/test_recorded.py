"""What chapters show where PyTorch, MXNet or the slow network is missing."""
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from d2lps import join_peers, strategies, travel
from d2lps.asynchrony.clock import Point
from d2lps.cluster import Cluster, Network, WorkerError, recorded
from d2lps.cluster.processes import cells
from d2lps.cluster.recorded import (Here, Record, Recorder, cluster_or_record,
                                    here_or_record, key_of)

NOTEBOOKS = Path(__file__).resolve().parents[2] / 'notebooks'
CHAPTERS = [path for path in sorted(NOTEBOOKS.glob('[0-9]*.ipynb'))
            if 'cluster_or_record' in path.read_text()]
NETWORK = Network(1e9)
CELL = 'print("hello")\nx = 1'


@pytest.fixture
def no_torch(monkeypatch):
    monkeypatch.setenv('D2LPS_WITHOUT', 'torch')


@pytest.fixture
def record(tmp_path):
    """A file as a Recorder writes it, of a cluster that is made up."""
    path = tmp_path / 'record.json'

    class MadeUp:
        num_workers, values = 2, iter([
            [None, None], [1, 2], [3, 4],
            [np.arange(4.0).reshape(2, 2), {'a': [1.5]}]])

        def run(self, function, *args):
            if function is cells.execute:
                print('[worker 0] hello')
            return next(self.values)

        def traffic(self):
            return {'worker 0': (10, 20)}

    recorder = Recorder(MadeUp(), str(path), ['numpy'])
    recorder.run(cells.execute, CELL)
    for _ in range(2):
        recorder.run(cells.get, 'x')
    recorder.run(cells.get, 'y')
    recorder.traffic()
    return path


def test_a_record_gives_what_was_written(record, capsys):
    known = Record(record, 'no torch')
    assert known.num_workers == 2
    known.run(cells.execute, CELL)
    assert [known.view['x'] for _ in range(3)] == [[1, 2], [3, 4], [3, 4]]
    array, other = known.view['y']
    assert array.dtype == float and array.tolist() == [[0, 1], [2, 3]]
    assert other == {'a': [1.5]}
    assert known.traffic() == {'worker 0': (10, 20)}
    said = capsys.readouterr().out
    assert said.startswith('(recorded elsewhere: numpy ')
    assert '[worker 0] hello\n' in said
    assert repr(known).startswith('no torch. What follows was recorded')
    with known as same:
        assert same is known
    known.close()


def test_another_cell_is_not_run_and_says_why(record, capsys):
    known = Record(record, 'PyTorch is missing')
    assert known.run(cells.execute, CELL + '0') is None
    assert known.view['unknown'] is None
    assert capsys.readouterr().out == 2 * 'Not run: PyTorch is missing.\n'


def test_it_is_said_once_for_each_cell(record, capsys, monkeypatch):
    numbers = iter([7, 7, 8])
    monkeypatch.setattr(recorded, 'number_of_cell', lambda: next(numbers))
    known = Record(record, 'no torch')
    for name in 'x', 'y', 'x':
        known.view[name]
    assert capsys.readouterr().out.count('(recorded elsewhere') == 2


def test_where_nothing_is_missing_it_is_a_cluster(tmp_path):
    path = str(tmp_path / 'none.json')
    with cluster_or_record(path, 1, needs=['mxnet']) as cluster:
        assert isinstance(cluster, Cluster) and cluster.num_servers == 0
    assert not os.path.exists(path)


def test_with_a_word_in_the_environment_it_writes(tmp_path, monkeypatch):
    monkeypatch.setenv('D2LPS_RECORD', 'yes')
    path = tmp_path / 'new.json'
    with cluster_or_record(str(path), 1, needs=['mxnet']) as cluster:
        cluster.run(os.getpid)
    found = json.loads(path.read_text())
    assert found['from'].startswith('mxnet 1.9.1, ')
    assert [*found['calls']] == [key_of(os.getpid, [])]


def test_what_is_missing_is_named(record, no_torch):
    words = repr(cluster_or_record(str(record), 2, network=NETWORK))
    assert words.startswith('PyTorch is not installed here: make lab '
                            'TORCH=yes.')


def test_without_a_private_network_ports_are_opened_only_if_told_so(
        record, monkeypatch):
    """Other users of this machine could reach them."""
    asked = []
    monkeypatch.setattr(recorded, 'network_problem', lambda delay=0: (
        asked.append(delay) or 'the slow network is not to be had'))
    monkeypatch.setattr(recorded, 'has', lambda library: True)
    found = cluster_or_record(str(record), 1, network=NETWORK)
    assert isinstance(found, Record)
    assert ('the slow network is not to be had. Without it, PyTorch would '
            'listen') in repr(found) and 'loopback=True' in repr(found)
    with cluster_or_record(str(record), 1, network=NETWORK,
                           loopback=True) as cluster:
        assert isinstance(cluster, Cluster)
        with pytest.raises(ValueError, match='network'):
            cluster.traffic()
    assert len(asked) == 2  # it takes a moment


@pytest.mark.parametrize('needs', [[], ['mxnet']])
def test_where_only_the_network_is_missing(needs, record, monkeypatch):
    """No library listens on ports then, and nothing is said of them."""
    monkeypatch.setattr(recorded, 'network_problem',
                        lambda delay=0: 'the slow network is not to be had')
    found = cluster_or_record(str(record), 1, needs, network=NETWORK)
    assert isinstance(found, Record)
    assert repr(found).startswith('the slow network is not to be had. ')
    assert 'PyTorch' not in repr(found)


def test_where_nothing_can_fork(record, monkeypatch):
    monkeypatch.delattr(os, 'fork')
    found = cluster_or_record(str(record), 1, ['mxnet'])
    assert 'cannot fork' in repr(found)


@pytest.mark.parametrize('name, value', [
    ('record', 7), ('num_workers', 0), ('num_workers', '2'),
    ('needs', ['numpy']), ('needs', 'torch'), ('num_servers', -1),
    ('network', 12.5e6), ('network', None), ('loopback', 'yes')])
def test_bad_arguments_are_named(name, value):
    with pytest.raises(ValueError, match=rf'^{name}\b'):
        cluster_or_record(**{'record': 'x', 'num_workers': 2, name: value})


def test_a_record_that_is_not_there(no_torch):
    with pytest.raises(FileNotFoundError, match='nowhere.json'):
        cluster_or_record('nowhere.json', 2, loopback=True)


def test_in_a_browser_tab_nothing_can_fork(record, monkeypatch):
    """Though its Python has os.fork."""
    monkeypatch.setattr('d2lps.missing.IN_A_TAB', True)
    assert repr(cluster_or_record(str(record), 1, [])).startswith(
        'a browser tab cannot fork the processes of a cluster. ')


def fail():
    peers = join_peers()

    def stop():
        if peers.rank == 1 and peers.round == 1:
            raise MemoryError('worker 1 has a broken memory')
    travel.run(peers, strategies.ring(3), np.ones(6), before_round=stop)


def test_a_recorded_error_is_the_one_of_the_workers(
        tmp_path, monkeypatch, capsys):
    monkeypatch.setenv('D2LPS_RECORD', 'yes')
    path = str(tmp_path / 'error.json')
    with cluster_or_record(path, 3, []) as cluster:
        with pytest.raises(WorkerError) as real:
            cluster.run(fail)
    with pytest.raises(WorkerError) as found:
        Record(path, 'no fork').run(fail)
    one, other = real.value, found.value
    assert (other.errors, other.first, str(other)) == (
        one.errors, 1, str(one)) and {*other.errors} == {0, 1, 2}
    assert 'MemoryError' in other.__notes__[1]
    assert ('File "' in ''.join(other.__notes__)
            and 'File "/' not in ''.join(other.__notes__))
    assert capsys.readouterr().out.startswith('(recorded elsewhere: ')


def test_errors_that_came_first_are_red_again(tmp_path, capsys):
    class MadeUp:
        num_workers = 1

        def run(self, function):
            print('[worker 0] waits', file=sys.stderr)
            raise WorkerError({0: 'ValueError: no'}, ['trace'])

    path = str(tmp_path / 'red.json')
    for one in (lambda: Recorder(MadeUp(), path, []),
                lambda: Record(path, 'no fork')):
        with pytest.raises(WorkerError, match='^worker 0: ValueError: no'):
            one().run(fail)
        assert capsys.readouterr().err == '[worker 0] waits\n'


def die():
    peers = join_peers()
    if peers.num_workers == 2 and peers.rank == 1:
        os.kill(os.getpid(), 9)
    return peers.num_workers


def test_a_death_is_recorded(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv('D2LPS_RECORD', 'yes')
    path = str(tmp_path / 'death.json')
    with cluster_or_record(path, 2, [], restarts=1, elastic=True) as cluster:
        assert cluster.run(die) == [1]
        real, said = cluster.deaths, capsys.readouterr().out
    known = Record(path, 'no fork')
    assert known.run(die) == [1] and known.deaths == real
    assert str(known.deaths[0]) == 'worker 1 was ended by SIGKILL'
    assert said and said in capsys.readouterr().out


def learned(times, lr=0.1):
    print('learns')
    return [[Point(1, 2.0, lr * len(times))]]


def test_calls_in_this_process_are_recorded(tmp_path, monkeypatch, capsys):
    path, times = str(tmp_path / 'here.json'), np.ones((4, 2))
    here = here_or_record(path, ['mxnet'])
    assert isinstance(here, Here) and not os.path.exists(path)
    real = here.run(learned, times, lr=0.2)
    monkeypatch.setenv('D2LPS_RECORD', 'yes')
    assert here_or_record(path, ['mxnet']).run(learned, times, lr=0.2) == real
    monkeypatch.setenv('D2LPS_WITHOUT', 'mxnet')
    capsys.readouterr()
    known = here_or_record(path, ['mxnet'])
    assert known.run(learned, times, 0.2) == real == [[Point(1, 2.0, 0.8)]]
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith('MXNet is not installed here. What follows was '
                            'recorded elsewhere: mxnet 1.9.1, ')
    assert second.startswith('(recorded elsewhere: mxnet 1.9.1, ')
    assert third == 'learns'


def test_other_arguments_or_other_code_are_not_run(
        tmp_path, monkeypatch, capsys):
    path = str(tmp_path / 'here.json')
    monkeypatch.setenv('D2LPS_RECORD', 'yes')
    here_or_record(path, ['mxnet']).run(learned, [1])
    monkeypatch.setenv('D2LPS_WITHOUT', 'mxnet')
    known = here_or_record(path, ['mxnet'])
    assert known.run(learned, [1], lr=0.1)
    capsys.readouterr()
    assert known.run(learned, [1], lr=0.3) is None
    assert known.run(learned, [2]) is None
    monkeypatch.setattr(recorded.inspect, 'getsource', lambda _: 'changed')
    assert known.run(learned, [1]) is None
    assert capsys.readouterr().out == (
        3 * 'Not run: MXNet is not installed here.\n')


def test_workers_are_not_said_to_have_run_other_code(record, monkeypatch):
    class MadeUp:
        num_workers = 2

        def run(self, function, *args, **kwargs):
            return [[1]] * 2
    Recorder(MadeUp(), str(record), []).run(learned, [1], lr=0.2)
    known = Record(str(record), 'no fork')
    assert known.run(learned, [1], 0.2) == [[1], [1]]
    assert known.run(learned, [1]) is None
    monkeypatch.setattr(recorded.inspect, 'getsource', lambda _: 'changed')
    assert known.run(learned, [1], 0.2) is None


@pytest.mark.parametrize('path', CHAPTERS, ids=lambda path: path.stem)
def test_all_cells_of_a_chapter_are_in_its_records(path):
    """Or a reader without PyTorch would see nothing."""
    sources = [''.join(cell['source']) for cell
               in json.loads(path.read_text())['cells']
               if cell['cell_type'] == 'code']
    names = re.findall(r"'(results/[\w-]+\.json)'", '\n'.join(sources))
    known = {key for name in names for key in json.loads(
        (NOTEBOOKS / name).read_text())['calls']}
    assert names
    for source in sources:
        runs = re.match(r'%%px( --local)?\n', source)
        for code in ([source[runs.end():]] if runs else
                     re.findall(r'^\s*%px ([^{\n]*)$', source, re.M)):
            assert key_of(cells.execute, [code]) in known, code
