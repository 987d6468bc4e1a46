"""The panel follows a training, kills what it is told to, and ends."""
import asyncio
import gc
import re
import time
import weakref
from types import SimpleNamespace

import pytest

from d2lps import recovery
from d2lps.pictures import training_panel as panels
from d2lps.pictures.drawing import Drawing
from d2lps.pictures.widgets import NOT_RUN

pytestmark = pytest.mark.full

LIMIT = 30  # seconds that something may take


@pytest.fixture
def shown(shown, monkeypatch):
    monkeypatch.setattr(recovery, 'train_with_checkpoints', train)
    return shown


def train():
    """Stands for `train_with_checkpoints`."""


LINES = 'step,loss,time\n1,2.5,100.0\n2,2.0,101.0\n3,1.5,102.0\n'


def test_progress_is_what_was_written_so_far(tmp_path):
    assert panels._progress(tmp_path) == []
    file = tmp_path / 'progress.csv'
    for text, rows in (
            ('step,lo', []), ('step,loss,time\n', []),
            (LINES, [(1, 2.5, 100), (2, 2, 101), (3, 1.5, 102)]),
            (LINES + '4,1', [(1, 2.5, 100), (2, 2, 101), (3, 1.5, 102)]),
            (LINES + '4,1\n2,2,107\n', [(1, 2.5, 100), (2, 2, 101),
                                        (3, 1.5, 102), (2, 2, 107)]),
            (LINES[:25] + '\n\n2,2.0,107\n', [(1, 2.5, 100), (2, 2, 107)]),
            ('step,loss,time\nx,y,z\n1,,\n', [])):
        file.write_text(text)
        assert panels._progress(tmp_path) == rows


def points(drawing, kind):
    """(x, y) of the dots of a chart, or of the rings, in pixels."""
    if kind == 'first':
        return [tuple(map(float, pair)) for path in re.findall(
            r'class="first" d="(.*?)"', drawing.svg())
            for pair in re.findall(r'M([\d.]+) ([\d.]+)h0', path)]
    return [tuple(map(float, pair)) for pair in re.findall(
        r'<circle cx="([\d.]+)" cy="([\d.]+)"', drawing.svg())]


def test_steps_done_again_and_deaths_are_marked(texts):
    rows = [(1, 3, 100), (2, 2, 101), (3, 1.5, 102), (2, 2, 107),
            (3, 1.5, 108), (4, 1, 109)]
    drawing = panels.draw_progress(rows, 4, [(102.5, 'server 1')],
                                   [3, 2, 1.5, 1])
    assert drawing.alt.endswith('4 of 4 steps, 2 of them done again. '
                                'server 1 died after 2.5 seconds.')
    first, again = points(drawing, 'first'), points(drawing, 'again')
    assert len(first) == 2 * 4 and len(again) == 2 * 2
    left, right = again[:2], again[2:]
    assert left == first[1:3]  # the same steps, the same losses
    assert [y for _, y in right] == [y for _, y in first[5:7]]
    assert right[0][0] > first[6][0]  # later
    assert 'server 1' in texts(drawing)
    assert 'a run without deaths' in texts(drawing)


def test_nothing_is_there_yet(texts):
    for deaths in [], [(5.0, 'worker 0')]:
        drawing = panels.draw_progress([], 10, deaths)
        assert not points(drawing, 'first') + points(drawing, 'again')
        assert 'a run without deaths' not in texts(drawing)
        assert '0 of 10 steps' in drawing.alt


def test_a_loss_that_is_no_number_leaves_room_for_the_others():
    drawing = panels.draw_progress([(1, float('inf'), 100), (2, 2, 101)], 4)
    assert len(points(drawing, 'first')) == 1 + 2


class Trained:
    """What is used of a cluster: `run` takes a step when it is told to."""

    def __init__(self, problem=None):
        self.deaths, self.killed, self.closed = [], [], False
        self.pids = {'scheduler': 1, 'server 0': 2, 'server 1': 3}
        self.problem, self.steps, self.names = problem, 0, ()

    def run(self, function, folder, num_steps, **settings):
        assert function is train
        self.settings, done = settings, 0
        with open(folder / 'progress.csv', 'a', buffering=1) as file:
            file.write('' if file.tell() else 'step,loss,time\n')
            while done < num_steps:
                if self.closed or self.problem:
                    raise self.problem or RuntimeError('it is closed')
                if self.killed[len(self.deaths):]:
                    self.deaths.append(SimpleNamespace(
                        who=self.killed[len(self.deaths)]))
                    done -= done % 5
                if done < self.steps:
                    done += 1
                    file.write(f'{done},{1 / done},{time.time()}\n')
                time.sleep(0.001)
        return ['worker 0', 'worker 1']

    def kill(self, name):
        if name not in self.pids:
            raise ValueError(f'name must be another\n{name}')
        self.killed.append(name)

    def close(self):
        self.closed = True


@pytest.fixture
def panel(tmp_path, shown):
    made, clusters = [], []

    def make(cluster=None, num_steps=20, **more):
        clusters.append(cluster or Trained())
        made.append(panels.TrainingPanel(clusters[-1], tmp_path, num_steps,
                                         **more))
        return made[-1]
    yield make
    for one in made:
        one.stop()
    panels.TrainingPanel._last = None


def wait(panel, seconds=LIMIT):
    return asyncio.run(panel.wait(seconds))


def hurt():
    """A server of it dies at once; all steps may be taken."""
    cluster = Trained()
    cluster.steps = 20
    cluster.kill('server 1')
    return cluster


def test_deaths_of_an_earlier_training_are_not_this_one_s(panel):
    cluster = hurt()
    first = panel(cluster)
    wait(first)
    assert [who for _, who in first.deaths] == ['server 1']
    second = panel(cluster)
    wait(second)
    assert second.deaths == []


def test_a_death_is_seen_however_soon_the_training_ends(panel, monkeypatch):
    watch = panels.TrainingPanel._watch

    def late(self):  # its thread may get a processor only then
        self._training.join()
        watch(self)
    monkeypatch.setattr(panels.TrainingPanel, '_watch', late)
    one = panel(hurt())
    wait(one)
    assert [who for _, who in one.deaths] == ['server 1']


async def interrupted(seconds):
    raise KeyboardInterrupt


def poll(condition):
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_click_kills_and_the_training_goes_on(panel, shown):
    one = panel(every=5)
    who, kill, stop, words = shown[0].children
    assert shown[0]._repr_mimebundle_()['text/plain'] == NOT_RUN
    assert [words for words, _ in who.options] == [
        'scheduler', 'server 0', 'server 1']
    who.value = 'server 1'
    assert kill.description == 'kill server 1'
    one.cluster.steps = 13
    poll(lambda: len(panels._progress(one.folder)) == 13)
    kill.click()
    poll(lambda: len(panels._progress(one.folder)) == 16)
    one.cluster.steps = 20
    assert wait(one) == wait(one, 0) == 'worker 0'
    assert one.cluster.killed == ['server 1']
    [(moment, name)] = one.deaths
    assert name == 'server 1' and abs(time.time() - moment) < LIMIT
    assert words.value == 'server 1 was killed' and kill.disabled
    assert not one.cluster.closed and one.cluster.settings == {'every': 5}
    assert isinstance(shown[-1], Drawing) and len(shown) >= 4


def test_it_kills_by_itself_where_it_is_told_to(panel):
    one = panel(kill_at={7: 'server 0', 12: 'scheduler'})
    poll(lambda: hasattr(one.cluster, 'settings'))
    assert one.cluster.settings == {'wait_at': [7, 12]}
    one.cluster.steps = 6
    poll(lambda: len(panels._progress(one.folder)) == 6)
    assert not one.cluster.killed
    one.cluster.steps = 8
    poll(lambda: one.cluster.killed == ['server 0'])
    one.cluster.steps = 12
    poll(lambda: one.cluster.killed == ['server 0', 'scheduler'])
    one.cluster.steps = 20
    assert wait(one) == 'worker 0'
    assert [name for _, name in one.deaths] == ['server 0', 'scheduler']


def test_steps_of_an_earlier_training_are_left_out(panel, tmp_path):
    (tmp_path / 'progress.csv').write_text(LINES)
    one = panel(num_steps=1, kill_at={3: 'server 0'})
    assert one.rows() == []
    with open(tmp_path / 'progress.csv', 'a') as file:
        file.write('1,2.5,104.0\n')
    assert one.rows() == [(1, 2.5, 104)] and not one.cluster.killed


def test_who_is_dead_cannot_be_killed(panel, shown):
    one = panel()
    one.kill('worker 7')
    assert shown[0].children[-1].value == 'name must be another'


def test_what_ends_the_training_reaches_the_reader(panel):
    one = panel(Trained(OSError('the disk is full')))
    with pytest.raises(OSError, match='the disk is full'):
        wait(one)


@pytest.mark.parametrize('end', ['click', 'new', 'late', 'interrupt'])
def test_it_can_be_ended(panel, shown, monkeypatch, end):
    one = panel()
    if end == 'click':
        shown[0].children[2].click()
    elif end == 'new':
        other = panel()
        assert not other.cluster.closed
    elif end == 'late':
        with pytest.raises(TimeoutError, match='took over 0.01 s'):
            wait(one, 0.01)
    else:
        monkeypatch.setattr(panels.asyncio, 'sleep', interrupted)
        with pytest.raises(KeyboardInterrupt):
            wait(one)
    assert one.cluster.closed
    assert not one._training.is_alive() and not one._watching.is_alive()
    if end in ('click', 'new'):
        with pytest.raises(RuntimeError, match='it is closed'):
            wait(one)


@pytest.mark.parametrize('show, words', [
    (lambda: panels.TrainingPanel(None, 'x', 3), 'cluster must be'),
    (lambda: panels.TrainingPanel(Trained(), 'x', 0), 'num_steps must'),
    (lambda: panels.TrainingPanel(Trained(), 'x', 3, kill_at=7),
     'kill_at must be'),
    (lambda: panels.TrainingPanel(Trained(), 'x', 3, unhurt=7),
     'unhurt must be')])
def test_bad_arguments_are_named(shown, show, words):
    with pytest.raises(ValueError, match=words):
        show()
    assert not shown


def test_a_panel_that_fails_is_not_in_the_way_of_the_next(panel):
    class Closed(Trained):
        @property
        def pids(self):
            raise RuntimeError('this cluster is closed')

        @pids.setter
        def pids(self, value):
            pass
    with pytest.raises(RuntimeError, match='this cluster is closed'):
        panel(Closed())
    cluster = Trained()
    cluster.steps = 20
    assert wait(panel(cluster)) == 'worker 0'


@pytest.mark.parametrize('more, words', [
    (dict(num_steps=0), 'num_steps must be'),
    (dict(kill_at={'x': 'server 0'}), 'a step in kill_at must be'),
    (dict(kill_at={3: 0}), r'kill_at\[3\] must be a text')])
def test_what_cannot_be_is_refused(panel, more, words):
    with pytest.raises(ValueError, match=words):
        panel(**more)


def test_a_panel_does_not_keep_a_cluster_when_the_training_has_ended(
        tmp_path, shown):
    cluster = Trained()
    cluster.steps, gone = 20, weakref.ref(cluster)
    one = panels.TrainingPanel(cluster, tmp_path, 20)
    wait(one)
    assert one.cluster is cluster
    del cluster
    gc.collect()
    assert gone() is None and one.cluster is None
    one.kill('server 0')
    assert one._words.value == 'the training has ended'
