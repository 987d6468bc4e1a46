"""The panel follows a training, kills what it is told to, and ends."""
import asyncio
import gc
import time
import weakref
from types import SimpleNamespace

import pytest
from matplotlib import pyplot

from d2lps import figures, recovery
from d2lps.pictures import training_panel as panels
from d2lps.pictures.controls import NOT_RUN

pytestmark = pytest.mark.timeout(60)

LIMIT = 30  # seconds that something may take


@pytest.fixture
def shown(shown, monkeypatch):
    monkeypatch.setattr(recovery, 'train_with_checkpoints', train)
    return shown


def train():
    """Stands for `train_with_checkpoints`."""


LINES = 'step,loss,time\n1,2.5,100.0\n2,2.0,101.0\n3,1.5,102.0\n'


@pytest.mark.parametrize('text, rows', [
    ('step,lo', []), (LINES, [(1, 2.5, 100), (2, 2, 101), (3, 1.5, 102)]),
    (LINES[:25] + '\n\n2,2.0,107\n4,1', [(1, 2.5, 100), (2, 2, 107)]),
    ('step,loss,time\nx,y,z\n1,,\n', [])])
def test_progress_is_what_was_written_so_far(tmp_path, text, rows):
    assert panels._progress(tmp_path) == []
    (tmp_path / 'progress.csv').write_text(text)
    assert panels._progress(tmp_path) == rows


@pytest.mark.parametrize('rows, deaths, words', [
    ([], [(5.0, 'worker 0')], ('0 of 10 steps, 0 of them done again.',
                               'worker 0 died after 0.0 seconds.')),
    ([(1, 3, 100), (2, 9, 101), (2, 2, 107)], [(102.5, 'server 1')],
     ('2 of 10 steps, 1 of them done again.',
      'server 1 died after 2.5 seconds.'))])
def test_steps_done_again_and_deaths_are_told(readable, rows, deaths, words):
    readable(panels.draw_progress(rows, 10, deaths))
    figure = panels.draw_progress(rows, 10, deaths, [3, 2, 1.5])
    readable(figure)
    for one in words:
        assert one in figures.alt_text(figure)


def test_losses_and_times_are_drawn_and_deaths_at_their_moments():
    rows = [(1, 3, 100), (2, 2.5, 101), (2, 2, 107), (3, 1, 108)]
    figure = panels.draw_progress(
        rows, 10, [(101.5, 'server 1'), (107.5, 'worker 0')], [3, 2, 1.5])
    left, right = figure.axes
    curves = {line.get_label(): line.get_xydata().tolist()
              for line in left.lines}
    assert curves['first time'] == [[1, 3], [2, 2.5], [3, 1]]
    assert curves['done again'] == [[2, 2]]
    assert curves['a run without deaths'] == [[1, 3], [2, 2], [3, 1.5]]
    assert [line.get_xydata().tolist() for line in right.lines[-2:]] == [
        [[0, 1], [1, 2], [8, 3]], [[7, 2]]]
    assert [(text.get_text(), text.xy[0]) for text in right.texts] == [
        ('server 1', 1.5), ('worker 0', 7.5)]
    gaps = [patch.get_window_extent().transformed(
        right.transData.inverted()) for patch in right.patches]
    assert [[*gap.intervalx] for gap in gaps] == [
        pytest.approx([1.5, 7]), pytest.approx([7.5, 8])]
    assert {word.get_text() for word in figure.legends[0].get_texts()} == {
        'a run without deaths', 'first time', 'done again', 'a death'}


def test_the_figure_of_a_panel_is_not_shown_once_more_by_pyplot():
    before = pyplot.get_fignums()
    panels.draw_progress([(1, 3, 100)], 10)
    assert pyplot.get_fignums() == before


class Trained:
    """What is used of a cluster: `run` takes a step when it is told to."""

    def __init__(self, problem=None, steps=0):
        self.deaths, self.killed, self.closed = [], [], False
        self.pids = {'scheduler': 1, 'server 0': 2, 'server 1': 3}
        self.problem, self.steps = problem, steps

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


def poll(condition):
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_death_is_seen_however_soon_the_training_ends(panel, monkeypatch):
    """And it is not told of the next training of the same cluster."""
    watch = panels.TrainingPanel._watch

    def late(self):  # its thread may get a processor only then
        self._training.join()
        watch(self)
    monkeypatch.setattr(panels.TrainingPanel, '_watch', late)
    cluster = Trained(steps=20)
    cluster.kill('server 1')
    first = panel(cluster)
    wait(first)
    second = panel(cluster)
    wait(second)
    assert [who for _, who in first.deaths] == ['server 1']
    assert second.deaths == []


def test_a_click_kills_and_the_training_goes_on(panel, shown):
    one = panel(every=5)
    who, kill, stop, words = shown[0].children
    assert shown[0]._repr_mimebundle_()['text/plain'] == NOT_RUN
    who.value = 'server 1'
    assert kill.description == 'kill server 1'
    one.cluster.steps = 13
    poll(lambda: len(one.rows()) == 13)
    kill.click()
    poll(lambda: len(one.rows()) == 16)
    one.cluster.steps = 20
    assert wait(one) == wait(one, 0) == 'worker 0'
    assert one.cluster.killed == ['server 1']
    [(moment, name)] = one.deaths
    assert name == 'server 1' and abs(time.time() - moment) < LIMIT
    assert words.value == 'server 1 was killed' and kill.disabled
    assert not one.cluster.closed and one.cluster.settings == {'every': 5}
    one.kill('worker 7')  # what cannot be killed is told
    assert words.value == 'name must be another'


def test_it_kills_by_itself_where_it_is_told_to(panel, tmp_path):
    (tmp_path / 'progress.csv').write_text(LINES)  # of an earlier training
    one = panel(kill_at={2: 'server 0', 12: 'scheduler'})
    assert one.rows() == []
    poll(lambda: hasattr(one.cluster, 'settings'))
    assert one.cluster.settings == {'wait_at': [2, 12]}
    one.cluster.steps = 1
    poll(lambda: len(one.rows()) == 1)
    assert not one.cluster.killed
    one.cluster.steps = 8
    poll(lambda: one.cluster.killed == ['server 0'])
    one.cluster.steps = 12
    poll(lambda: one.cluster.killed == ['server 0', 'scheduler'])
    one.cluster.steps = 20
    assert wait(one) == 'worker 0'
    assert [name for _, name in one.deaths] == ['server 0', 'scheduler']


def test_what_ends_the_training_reaches_the_reader(panel):
    with pytest.raises(OSError, match='the disk is full'):
        wait(panel(Trained(OSError('the disk is full'))))


async def interrupted(seconds):
    raise KeyboardInterrupt


@pytest.mark.parametrize('end', ['click', 'new', 'late', 'interrupt'])
def test_it_can_be_ended(panel, shown, monkeypatch, end):
    one = panel()
    if end == 'click':
        shown[0].children[2].click()
    elif end == 'new':
        assert not panel().cluster.closed
    elif end == 'late':
        with pytest.raises(TimeoutError, match='took over 0.01 s'):
            wait(one, 0.01)
    else:
        monkeypatch.setattr(panels.asyncio, 'sleep', interrupted)
        with pytest.raises(KeyboardInterrupt):
            wait(one)
    assert one.cluster.closed
    assert not one._training.is_alive() and not one._watching.is_alive()


@pytest.mark.parametrize('cluster, more, words', [
    (3, {}, 'cluster must be'),
    (Trained(), {'num_steps': 0}, 'num_steps must be'),
    (Trained(), {'kill_at': {3: 0}}, r'kill_at\[3\] must be a text')])
def test_what_cannot_be_is_refused(panel, cluster, more, words):
    with pytest.raises(ValueError, match=words):
        panel(cluster, **more)


def test_a_panel_does_not_keep_a_cluster_when_the_training_has_ended(
        tmp_path, shown):
    cluster = Trained(steps=20)
    gone = weakref.ref(cluster)
    one = panels.TrainingPanel(cluster, tmp_path, 20)
    wait(one)
    del cluster
    gc.collect()
    assert gone() is None and one.cluster is None
    one.kill('server 0')
    assert one._message.value == 'the training has ended'
