"""Who can connect with a cluster on one machine, and what it leaves.

That no death leaves a socket is in `test_cluster`, where all deaths are.
"""
import errno
import os
import random
import socket
import stat
import time
from pathlib import Path

import mxnet as mx
import psutil
import pytest
from clusters import group_members, sockets_of
from d2lps.cluster import Cluster
from d2lps.cluster.processes import sockets
from mxnet import np

pytestmark = pytest.mark.full


def add_up():
    kv, out = mx.kv.create('dist_sync'), np.zeros(3)
    kv.init('w', out)
    kv.pushpull('w', np.ones(3), out=out)
    return out.tolist()


@pytest.fixture(scope='module')
def shared():
    """A cluster that has a store; for it the reader has opened no port."""
    before = ports_here()
    with Cluster(num_workers=2, num_servers=2) as cluster:
        assert cluster.run(add_up) == [[2.0] * 3] * 2
        assert ports_here() == before
        yield cluster


def ports_here():
    return [one.laddr for one in psutil.Process().net_connections('inet')]


def inet(pids):
    """What these processes, and what they started, listen on."""
    return [one.laddr for pid in group_members(pids)
            for one in psutil.Process(pid).net_connections('inet')]


def test_no_port_is_open(shared):
    assert inet(shared.pids.values()) == []
    shared.run(add_up)  # with new servers
    assert inet(shared.pids.values()) == []


def test_the_sockets_are_the_readers_alone(shared):
    def create():
        os.umask(0)  # whatever a cell has set
        return add_up()
    old = sockets_of(shared)
    shared.run(create)
    paths = sockets_of(shared)
    assert not {*old} & {*paths} and not any(map(os.path.lexists, old))
    assert len(paths) == 5  # a scheduler, two servers, two workers
    for path in paths:
        mode = os.stat(path).st_mode
        assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) & 0o077 == 0


def as_nobody(path):
    """The number of the error when `nobody` connects; 0 if it can."""
    pid = os.fork()
    if not pid:
        code = 255
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            with socket.socket(socket.AF_UNIX) as one:
                code = one.connect_ex(str(path))
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can be nobody')
def test_another_user_cannot_connect(shared):
    for path in sockets_of(shared):
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(path)
        assert as_nobody(path) == errno.EACCES
    # There are no others, and their folder is closed to other users.
    folder = Path(shared._supervisor._group.folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not [path for path in folder.rglob('*') if path.is_socket()]
    # And one that is open to all can be reached by `nobody`.
    path = f'/tmp/{random.randrange(2 ** 32, 2 ** 33)}'
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path)
        one.listen()
        os.chmod(path, 0o777)
        assert as_nobody(path) == 0
    os.unlink(path)


def is_the_scheduler_there():
    """When the last worker is about to register with it."""
    from d2lps.cluster.store import worker
    native, seen = worker.native_store, []

    def late(kind):
        time.sleep(worker._client.rank / 2)
        seen.append(os.path.lexists(sockets.socket_of(
            os.environ['DMLC_PS_ROOT_PORT'])))
        return native(kind)
    worker.native_store = late
    try:
        mx.kv.create('dist_sync')
    finally:
        worker.native_store = native
    return seen


def test_the_scheduler_begins_last(shared):
    """MXNet may crash or hang if it answers one that is still sending."""
    assert shared.run(is_the_scheduler_there) == [[False], [False]]
    assert shared.run(add_up) == [[2.0] * 3] * 2


def test_only_sockets_of_this_cluster_and_user_are_removed(tmp_path):
    def make(name, kind=socket.AF_UNIX):
        path = tmp_path / name
        with socket.socket(kind) as one:
            one.bind(str(path))
        return path
    ours, foreign, other = map(make, ('ours', 'foreign', 'other'))
    file, link, gone = (tmp_path / name for name in ('file', 'link', 'gone'))
    file.touch()
    link.symlink_to(other)
    folder = tmp_path / 'folder'
    folder.mkdir()
    listed = [ours, file, link, gone]
    if os.geteuid() == 0:
        os.chown(foreign, 65534, 65534)
        listed.append(foreign)
    (folder / 'sockets').write_text(' '.join(map(str, listed)))
    sockets.tidy(folder)
    assert {path.name for path in tmp_path.iterdir()} == {
        'foreign', 'other', 'file', 'link'}
    sockets.tidy(folder)  # nothing is left to do


def test_where_sockets_cannot_be_had(monkeypatch):
    """Nothing listens on an address that others reach, unless it is named."""
    monkeypatch.setattr(sockets, 'socket_of', lambda port: f'/no/{port}')
    with pytest.raises(OSError, match=r'no Unix sockets in /no \(.*\)\. .*'
                       r"use Cluster\(address='127\.0\.0\.1'\)"):
        Cluster(num_workers=2, num_servers=2)
    with Cluster(2, 2, address='127.0.0.1') as c:
        assert c.run(add_up) == [[2.0] * 3] * 2
        listening = inet(c.pids.values())
        assert {address.ip for address in listening} == {'127.0.0.1'}
