"""What is shown while a loop trains."""
import pytest

from d2lps.training import progress


def test_a_terminal_gets_a_progress_bar(capsys):
    with progress.accuracy_curve(2, show=True) as add:
        add(1, 0.25)
        add(2, 0.5)
    shown = capsys.readouterr().err
    assert 'test_accuracy=0.500' in shown and '2/2' in shown


@pytest.mark.filterwarnings('ignore')
def test_a_notebook_gets_a_curve(monkeypatch):
    from d2l import mxnet as d2l
    made = []

    class Animator:
        def __init__(self, *args, **kwargs):
            made.append((args, kwargs))

        def add(self, *point):
            made.append(point)

    monkeypatch.setattr(progress, 'in_notebook', lambda: True)
    monkeypatch.setattr(d2l, 'Animator', Animator)
    with progress.accuracy_curve(3, show=True) as add:
        add(1, 0.25)
    [(names, settings), point] = made
    assert names == ('epoch', 'test accuracy')
    assert settings['xlim'] == [1, 3] and settings['ylim'] == [0, 1]
    assert point == (1, 0.25)
