"""Who sent to whom, by the kernel's counters, against what was really sent."""
import os
import socket
import sys

import numpy as np
import pytest
from d2lps.cluster.connections import bytes_received, who_to_whom

pytestmark = pytest.mark.skipif(sys.platform != 'linux', reason='Linux only')


@pytest.fixture
def connection():
    """Two ends of a TCP connection of this process."""
    with socket.create_server(('127.0.0.1', 0)) as server:
        with socket.create_connection(server.getsockname()) as near:
            far, _ = server.accept()
            with far:
                yield near, far


def received(end, size):
    while size:
        size -= len(end.recv(size))


def test_bytes_are_counted_where_they_arrive(connection):
    near, far = connection
    to_far = f'{near.getsockname()} > {far.getsockname()}'
    to_near = f'{far.getsockname()} > {near.getsockname()}'
    before = bytes_received()
    near.sendall(b'x' * 10_000)
    received(far, 10_000)
    far.sendall(b'x' * 300)
    received(near, 300)
    after = bytes_received()
    assert after[to_far] - before[to_far] == 10_000
    assert after[to_near] - before[to_near] == 300


def test_all_files_stay_open_and_no_more_are(connection, tmp_path):
    before = os.listdir('/proc/self/fd')
    with open(tmp_path / 'file', 'w'):
        bytes_received()
    assert os.listdir('/proc/self/fd') == before
    near, far = connection
    near.sendall(b'y')
    assert far.recv(1) == b'y'


def test_who_sent_what_to_whom():
    found = who_to_whom([{'b > a': 5, 'c > a': 7, 'nobody > a': 9},
                         {'a > b': 1, 'c > b2': 0}, {'a > c': np.int64(2)}])
    assert found.tolist() == [[0, 1, 2], [5, 0, 0], [7, 0, 0]]


def test_elsewhere_it_says_so(monkeypatch):
    monkeypatch.delattr(socket, 'TCP_INFO')
    with pytest.raises(OSError, match='only Linux'):
        bytes_received()


@pytest.mark.parametrize('bad', [None, [{'a': 1}]])
def test_bad_arguments_are_named(bad):
    with pytest.raises(ValueError, match='^workers'):
        who_to_whom(bad)
