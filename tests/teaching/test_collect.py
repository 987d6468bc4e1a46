"""`nbgrader collect` in a course of ours: of each student's own files."""
import os
import pwd
import shutil
import subprocess
import sys

import nbformat
import pytest
from handins import answered

from teaching.course import Course
from teaching.submissions import read_all

pytestmark = pytest.mark.full
SECRET = 'what only the teacher can read'
RIGHT = nbformat.writes(answered())


class Exchange:
    """A course and its exchange, into which students put folders."""

    def __init__(self, folder, course):
        self.course = folder / 'course'
        shutil.copytree(course, self.course)
        with open(self.course / 'nbgrader_config.py', 'a') as config:
            config.write(f'c.Exchange.root = {str(folder / "exchange")!r}\n')
        self.inbound = folder / 'exchange' / 'd2lps' / 'inbound'
        self.inbound.mkdir(parents=True)

    def name(self, student, day=20):
        return self.inbound / f'{student}+tree+2026-11-{day} 10:00:00 UTC+x'

    def hand_in(self, student, text=None, day=20):
        """A folder as `nbgrader submit` makes it."""
        folder = self.name(student, day)
        folder.mkdir()
        (folder / 'timestamp.txt').write_text(f'2026-11-{day} 10:00:00 UTC')
        if text is not None:
            (folder / 'tree.ipynb').write_text(text)
        return folder

    def collect(self, *options):
        """What the command says, and the submissions by student."""
        done = subprocess.run(
            [sys.executable, '-m', 'nbgrader', 'collect', 'tree', '--update',
             *options], cwd=self.course, text=True, capture_output=True,
            timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stderr, {
            submission.student: submission
            for submission in read_all(self.course / 'submitted')}


@pytest.fixture(scope='module')
def course(tmp_path_factory):
    return Course.make(tmp_path_factory.mktemp('course'), ['tree']).folder


@pytest.fixture
def exchange(tmp_path, course):
    return Exchange(tmp_path, course)


def test_links_pipes_and_files_of_others_are_not_copied(exchange, tmp_path):
    secret = tmp_path / 'secret.ipynb'
    secret.write_text(SECRET)
    source = exchange.course / 'source' / 'tree'
    exchange.hand_in('ada', RIGHT)
    eve = exchange.hand_in('eve')
    (eve / 'tree.ipynb').symlink_to(source / 'tree.ipynb')
    (eve / 'submission_secret.txt').symlink_to(secret)
    (eve / 'more').symlink_to(exchange.course, target_is_directory=True)
    (eve / 'nowhere').symlink_to('/nonexistent')
    exchange.name('fay').symlink_to(source)
    os.mkfifo(exchange.hand_in('gus') / 'tree.ipynb')
    exchange.hand_in('ida', RIGHT).joinpath(*'d' * 99).mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(exchange.hand_in('hal', SECRET) / 'tree.ipynb', 61_001, -1)
    said, submissions = exchange.collect('--ExchangeCollect.check_owner=False')
    for path in exchange.inbound.iterdir():
        assert (f'{path.name} is not collected' in said) == (
            path.name[:3] in ('fay', 'gus', 'hal')), said
    assert {student for student, submission in submissions.items()
            if submission.notebooks} == {'ada', 'ida'}
    assert not submissions['ada'].remarks
    assert 'tree.ipynb is a link' in str(submissions['eve'].remarks['tree'])
    for path in (exchange.course / 'submitted').rglob('*'):
        assert path.is_symlink() or path.is_dir() or path.read_bytes() in (
            RIGHT.encode(), b'2026-11-20 10:00:00 UTC'), path


def test_a_folder_of_another_user_is_not_collected(exchange):
    """Nor does it displace the student's own folder, which is older."""
    me = pwd.getpwuid(os.getuid()).pw_name
    exchange.hand_in('zoe', SECRET)
    exchange.hand_in(me, RIGHT)
    if os.geteuid() == 0:
        os.chown(exchange.hand_in(me, SECRET, day=21), 61_001, -1)
    said, submissions = exchange.collect()
    assert 'zoe+tree+2026-11-20 10:00:00 UTC+x is not collected: another' in (
        said)
    assert [*submissions] == [me] and submissions[me].notebooks


def test_odd_names_and_times_stop_no_other_student(exchange):
    for name in ('odd+tree+nonsense+x', 'odd+tree+', 'odd+tree+9' + 20 * '9',
                 'odd+buckets+tree+2026-11-20 10:00:00 UTC',
                 '..+tree+2026-11-20 10:00:00 UTC+x'):
        (exchange.inbound / name).mkdir()
    times = {student: exchange.hand_in(student, RIGHT) / 'timestamp.txt'
             for student in ('bad', 'bit', 'dir', 'fix')}
    times['bad'].write_text('nonsense')
    times['bit'].write_bytes(b'\xff')
    times['dir'].unlink()
    times['dir'].mkdir()
    times['fix'].unlink()
    times['fix'].symlink_to('/dev/zero')  # to read it has no end
    exchange.hand_in('zac', RIGHT)
    (exchange.course / 'submitted').mkdir()
    (exchange.course / 'submitted' / 'non').touch()
    exchange.hand_in('non', RIGHT)  # no folder of this name can be made
    option = '--ExchangeCollect.check_owner=False'
    exchange.collect(option)
    for student in times:
        exchange.hand_in(student, RIGHT, day=21)
    said, submissions = exchange.collect(option)  # it reads the times
    assert 'odd+tree+nonsense+x is not collected: ' in said
    assert 'non+tree+2026-11-20 10:00:00 UTC+x is not collected' in said
    assert not (exchange.course / 'tree').exists()  # for the student ..
    assert {*submissions} == {*times, 'zac'}
    for student, submission in submissions.items():
        assert submission.notebooks, student
        assert submission.times['tree'][:10] == (
            '2026-11-21' if student in times else '2026-11-20'), student
