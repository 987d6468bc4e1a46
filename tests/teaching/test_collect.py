"""`nbgrader collect` in a course of ours copies only files of students."""
import os
import pwd
import subprocess
import sys

import nbformat
import pytest
from handins import answered
from nbgrader.api import Gradebook

from teaching.course import Course
from teaching.submissions import read_all

pytestmark = pytest.mark.full
SECRET = 'what only the teacher can read'


class Exchange:
    """A course, with its exchange, into which students put folders."""

    def __init__(self, folder):
        self.course = Course.make(folder / 'course', ['tree']).folder
        with open(self.course / 'nbgrader_config.py', 'a') as config:
            config.write(f'c.Exchange.root = {str(folder / "exchange")!r}\n')
        self.inbound = folder / 'exchange' / 'd2lps' / 'inbound'
        self.inbound.mkdir(parents=True)

    def name(self, student, day=20):
        return self.inbound / f'{student}+tree+2026-11-{day} 10:00:00 UTC+x'

    def hand_in(self, student, day=20, text=None):
        """A folder as `nbgrader submit` makes it."""
        place = self.name(student, day)
        place.mkdir()
        (place / 'timestamp.txt').write_text(f'2026-11-{day} 10:00:00 UTC')
        if text is not None:
            (place / 'tree.ipynb').write_text(text)
        return place

    def collect(self, *options):
        """What it says; from a student to what was read of it."""
        done = subprocess.run(
            [sys.executable, '-m', 'nbgrader', 'collect', 'tree', '--update',
             *options], cwd=self.course, text=True, capture_output=True,
            timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stderr, {
            one.student: one for one in read_all(self.course / 'submitted')}


@pytest.fixture(scope='module')
def exchange(tmp_path_factory):
    return Exchange(tmp_path_factory.mktemp('exchange'))


def test_links_pipes_and_files_of_others_are_left_out(exchange, tmp_path):
    secret = tmp_path / 'secret.ipynb'
    secret.write_text(SECRET)
    right = nbformat.writes(answered())
    exchange.hand_in('ada', text=right)
    (exchange.hand_in('eve') / 'tree.ipynb').symlink_to(
        exchange.course / 'source' / 'tree' / 'tree.ipynb')
    eve = exchange.name('eve')
    (eve / 'submission_secret.txt').symlink_to(secret)
    (eve / 'more').symlink_to(exchange.course, target_is_directory=True)
    (eve / 'nowhere').symlink_to('/nonexistent')
    (eve / 'below').mkdir()
    (eve / 'below' / 'buckets.ipynb').symlink_to(secret)
    exchange.name('fay').symlink_to(exchange.course / 'source' / 'tree')
    os.mkfifo(exchange.hand_in('gus') / 'tree.ipynb')
    deep = exchange.hand_in('ida', text=right).joinpath(*'d' * 99)
    deep.mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(exchange.hand_in('hal', text=SECRET) / 'tree.ipynb', 61_001,
                 -1)
    said, found = exchange.collect('--ExchangeCollect.check_owner=False')
    assert 'tree.ipynb is left out' in said and 'it is no folder' in said
    assert found['ada'].notebooks and not found['ada'].remarks
    assert found['ida'].notebooks
    for name in {'eve', 'fay', 'gus', 'hal'} & {*found}:
        assert not found[name].notebooks
        assert 'tree.ipynb is a link' in str(found[name].remarks['tree']), name
    assert {'eve', 'fay', 'gus'} <= {*found}
    submitted = exchange.course / 'submitted'
    for path in submitted.rglob('*'):
        assert not path.is_symlink() or not path.exists(), path
        assert not path.is_file() or path.read_bytes() in (
            right.encode(), b'2026-11-20 10:00:00 UTC'), path


def test_nobody_hands_in_for_others(exchange):
    """A folder with another's name does not hide what the other hands in."""
    me = pwd.getpwuid(os.getuid()).pw_name
    exchange.hand_in('zoe', text=nbformat.writes(answered()))
    exchange.hand_in(me, 20, text=nbformat.writes(answered()))
    if os.geteuid() == 0:
        for day in 18, 21:
            os.chown(exchange.hand_in(me, day, text=SECRET), 61_001, -1)
    with Gradebook(f'sqlite:///{exchange.course}/gradebook.db') as book:
        book.update_or_create_assignment('tree', duedate='2026-11-19')
    said, found = exchange.collect('--before-duedate')
    assert 'zoe+tree+2026-11-20 10:00:00 UTC+x is refused: another user' in (
        said)
    assert 'zoe' not in found and found[me].notebooks


def test_odd_names_and_times_stop_nobody(exchange):
    right = nbformat.writes(answered())
    for name in ('odd+tree+nonsense+x', 'odd+tree+', 'odd+tree+9' + 20 * '9',
                 'odd+buckets+tree+2026-11-20 10:00:00 UTC'):
        (exchange.inbound / name).mkdir()
    for student, time in ('bad', b'nonsense'), ('bit', b'\xff'), ('dir', b''):
        path = exchange.hand_in(student, text=right) / 'timestamp.txt'
        if time:
            path.write_bytes(time)
        else:
            path.unlink()
            path.mkdir()
            (path / 'a.txt').write_text('a')
    exchange.hand_in('zac', text=right)
    for _ in range(2):  # the second reads what the first has copied
        said, found = exchange.collect('--ExchangeCollect.check_owner=False')
    assert 'odd+tree+nonsense+x is refused: its name tells no student' in said
    for student in 'bad', 'bit', 'dir', 'zac':
        assert found[student].notebooks, student
    assert 'odd' not in found
