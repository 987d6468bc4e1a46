"""Lines through pipes, and the group that hears them when all go wrong."""
import os
import selectors
import signal
import time

import pytest
from clusters import HANGS
from d2lps.cluster.processes import group, process
from d2lps.cluster.processes.lines import LONG, Inlet, Outlet, serve


class Pipe:
    """An inlet, and a file to write to; `heard` has what came."""

    def __init__(self, **more):
        self.selector, self.heard = selectors.DefaultSelector(), []
        out, into = os.pipe()
        self.into = os.fdopen(into, 'wb', 0)
        self.inlet = Inlet(self.selector, os.fdopen(out, 'rb', 0),
                           self.heard.extend, **more)

    def send(self, data):
        while data:
            sent, data = data[:30_000], data[30_000:]
            self.into.write(sent)
            serve(self.selector, 1)


@pytest.fixture
def pipe():
    yield (one := Pipe())
    one.into.close()
    one.inlet.close()
    one.selector.close()


@pytest.fixture
def cut():
    yield (one := Pipe(cut=True))
    one.into.close()
    one.inlet.close()
    one.selector.close()


def test_lines_come_whole_in_whatever_pieces(pipe):
    for piece in b'on', b'e\ntwo\n\nth', b'r', b'ee\r\n', b'\xff\nrest':
        pipe.send(piece)
    assert pipe.heard == ['one', 'two', '', 'three\r', '\ufffd']
    pipe.send(b'\n')
    assert pipe.heard[-1] == 'rest'


def test_of_a_printed_line_that_is_too_long_the_beginning_is_kept(cut):
    text = b' '.join(b'%d' % number for number in range(100_000))
    cut.send(b'before\n' + text + b'\nafter\n')
    before, line, after = cut.heard
    assert (before, after) == ('before', 'after')
    assert line == (text[:LONG].decode()
                    + f' … ({len(text) - LONG:,} bytes more)')
    cut.send(text)  # and does not end its line
    cut.into.close()
    serve(cut.selector, 1)
    assert cut.heard[3:] == [line]


def test_what_finds_no_room_waits(pipe):
    outlet = Outlet(pipe.selector, pipe.into)
    outlet.send('x' * 1_000_000)
    while not pipe.heard:
        serve(pipe.selector, 1)
    assert pipe.heard == ['x' * 1_000_000]


def test_how_a_process_ended():
    codes = 0, 3, -signal.SIGKILL
    assert [process.how_it_ended(code) for code in codes] == [
        'ended with exit code 0', 'ended with exit code 3',
        'was ended by SIGKILL']
    # A real-time signal has no name.
    assert process.how_it_ended(-40) == 'was ended by signal 40'


class Keeper:
    """The connection to a keeper that does all that it should not."""
    processes, beat = {}, 0.0
    code = None

    def __init__(self, *arguments):
        pass

    @property
    def loading(self):
        raise ValueError('a line that nobody understands')

    def close_stdin(self):
        self.code = 0

    def end(self):
        raise OSError('its pipe is gone')


def test_a_failure_is_heard_whatever_goes_wrong_while_all_are_ended(
        monkeypatch):
    heard = []
    monkeypatch.setattr(group, 'KeeperConnection', Keeper)
    watch = group.Group('keeper', None, '.', lambda *_: None, lambda now: None,
                        lambda text, *_: heard.append(text))
    try:
        end = time.monotonic() + HANGS
        while not heard and time.monotonic() < end:
            time.sleep(0.01)
        [text] = heard
        assert 'a line that nobody understands' in text
        assert 'its pipe is gone' in text
        assert not os.path.exists(watch.folder)
        assert watch.is_alive()
    finally:
        watch.close()
    assert not watch.is_alive()
