"""What the exercise measures, in which order, and what of it is graded."""
from types import SimpleNamespace

import nbformat
import pytest
from answers import answer_cell, solution

from teaching.rebuilding import rebuild
from d2lps.exercises import predict_then_measure as exercise
from d2lps.exercises.checking import CASES, picture
from d2lps.figures import alt_text


@pytest.fixture
def predict():
    names = {}
    exec(answer_cell(solution('predict-then-measure')).source, names)
    return names['predict']


def table_of(notebook):
    """The rows with numbers in the notebook."""
    [text] = [cell.source for cell in notebook.cells
              if '| k, b |' in cell.source]
    rows = [line.strip('| ').split(' | ') for line in text.splitlines()
            if line.startswith('| ')]
    return {tuple(map(int, k_b.split(', '))): [float(one) for one in numbers]
            for k_b, *numbers in rows[1:]}


def test_the_figures_of_the_notebook(predict):
    table = table_of(solution('predict-then-measure'))
    assert len(table) == 2
    for (k, b), numbers in table.items():
        assert [*predict(k, b, exercise.MANY).values()] == pytest.approx(
            numbers)
    assert round(table[1, 64][-1] / table[4, 64][-1], 2) == 2.62
    names = {}
    exec(solution('predict-then-measure').cells[1].source, names)
    assert names['m'] == exercise.MANY


def test_shards_are_those_of_the_chapter():
    import d2lps
    import numpy as np
    from d2lps.engine import mx
    for k, b in (3, 64), (5, 7), (4, 4), (1, 9):
        devices = [mx.cpu(i) for i in range(k)]
        parts, _ = d2lps.split_batch(mx.np.zeros((b, 1)), mx.np.zeros(b),
                                     devices)
        assert [*map(len, parts)] == exercise.shards_of(k, b)
        assert np.ptp(exercise.shards_of(k, b)) <= 1


def test_a_part_is_judged_by_the_student_s_other_parts():
    case = exercise.CASES[0]

    def predict(k, b, m):
        found = exercise.model(k, b, m)
        return found | {'allreduce': 100, 'step': 119,
                        'work': found['work'] + (100 - 6.6) / m['cores']}

    for part in 'compute', 'python', 'work', 'step':
        exercise.judge(part, predict(4, 64, exercise.MANY), **case)


def test_jobs_take_turns_and_the_first_round_does_not_count():
    order, took = [], iter([9, 9, 1, 2, 3, 4, 5, 6])

    def job(name):
        return lambda: order.append(name) or [next(took)]

    found = exercise._in_turns({'a': job('a'), 'b': job('b')}, 60, most=4)
    assert ''.join(order) == 'baabbaab'
    assert found == {'a': [4], 'b': [3]}


def test_the_prediction_is_printed_before_anything_is_measured(
        predict, monkeypatch, capsys):
    monkeypatch.setattr(exercise, 'measured_parts', lambda: exercise.FEW)
    printed = []

    def step(k, b):
        printed.append(capsys.readouterr().out)
        return lambda: (7.0, 1.0)

    monkeypatch.setattr(exercise, '_step', step)
    figure = exercise.picture(predict)
    assert 'Your prediction for 256 images: 1 device: 140.0 ms' in printed[0]
    assert 'measured: 7 at 1 device, 7 at 2 devices' in alt_text(figure)


def test_nothing_is_measured_while_a_teacher_grades(predict, monkeypatch):
    monkeypatch.setenv(CASES, 'a-file.json')
    monkeypatch.setattr(exercise, 'measured_parts',
                        lambda: pytest.fail('it was measured'))
    assert picture('predict-then-measure', predict) is None


def test_what_a_student_writes_about_it_is_kept():
    handed_in = solution('predict-then-measure')
    [why] = [cell for cell in handed_in.cells if cell.get('id') == 'why']
    why.source += '\nOther programs used a core.'
    notebook, _ = rebuild(solution('predict-then-measure'), handed_in)
    assert any(cell.source == why.source for cell in notebook.cells
               if cell.cell_type == 'markdown')
    nbformat.validate(notebook)


def test_it_measures_on_this_machine():
    m = exercise.measured_parts(seconds=0.1)
    assert {*m} == {*exercise.MANY} and m['arrays'] == 8
    numbers = SimpleNamespace(**m)
    assert min(*numbers.ms, numbers.python_ms, numbers.call_ms,
               numbers.copy_ms, numbers.add_ms) > 0
