"""Equal answers are found whatever names are in them; nothing is run."""

import pytest
from handins import (
    EXERCISES,
    answer_cell,
    answered,
    answers_of,
    released,
    solution,
    with_answer,
    with_cell,
)

from teaching import equal
from teaching.results import Result
from teaching.submissions import imports_of, rebuild

OWN = '''\
def up_and_down(n):
    """A tree."""
    rounds = []  # of messages
    for k in range(n):
        if k % 2:
            rounds.append([Send(k, k - 1, 0, True)])
    rounds += [[Send(0, k, 0, False)] for k in range(1, n)]
    return Schedule(rounds, n)
'''


def seen(notebook, exercise='tree'):
    template = solution(exercise)
    imports = imports_of(template)
    made, _ = rebuild(template, notebook)
    return equal.answer_of(made, imports)


def of_code(code):
    return seen(with_answer(released('tree'), code))


@pytest.mark.parametrize('change', [
    lambda code: code.replace('rounds', 'plan').replace('k', 'device'),
    lambda code: code.replace('"""A tree."""', '"""My own."""'),
    lambda code: code.replace('    """A tree."""\n', ''),
    lambda code: code.replace('# of messages', '# mine\n\n\n    # all mine'),
    lambda code: code.replace(' % ', '%').replace('Send(k, k', 'Send(k,\n k'),
    lambda code: f'import os\nprint("mine")\n{code}\nup_and_down(3)'])
def test_equal_but_for_words_that_say_nothing(change):
    assert change(OWN) != OWN and of_code(change(OWN)) == of_code(OWN)
    assert of_code(OWN)[1] == 6


@pytest.mark.parametrize('old, new', [
    ('k % 2', 'k % 3'), ('Send(k, k - 1', 'Send(k - 1, k'),
    ('range(1, n)', 'reversed(range(1, n))'), ('True', 'False'),
    ('rounds.append', 'rounds.extend'), ('range(n)', 'range(len(n))')])
def test_other_answers_are_not_equal(old, new):
    assert of_code(OWN.replace(old, new)) != of_code(OWN)


def test_in_another_cell_it_is_the_same():
    assert seen(with_cell(released('tree'), OWN)) == of_code(OWN)


def test_attributes_of_self_are_names():
    first = """\
class Gate:
    def __init__(self, n):
        self.a = [0] * n

    def f(self, k):
        self.a[k] += 1
        return k
"""

    def code(text):
        return seen(with_answer(released('bounded-delay'), text),
                    'bounded-delay')
    assert code(first) == code(first.replace('.a', '.pushed'))


def test_a_stub_is_no_answer():
    for exercise in EXERCISES:
        assert seen(released(exercise), exercise) is None, exercise


@pytest.mark.full
def test_kept_answers_are_all_different():
    """Made by different mistakes, so nobody copied."""
    for exercise in EXERCISES:
        found = {}
        for one in answers_of(exercise):
            answer = seen(with_answer(released(exercise), one.code), exercise)
            if answer and answer[1] > equal.SHORT:
                found.setdefault(answer[0], []).append(one.title)
        # A right and a wrong one may differ in lines outside of functions.
        assert all(len(titles) < 3 for titles in found.values()), found


@pytest.mark.full
@pytest.mark.parametrize('code', [
    'def up_and_down(n):\n    x = ' + '(' * 9000,
    'def up_and_down(n):\n' + ''.join(' ' * k + 'if 1:\n'
                                      for k in range(1, 190)),
    'def up_and_down(n):\n    x = ' + r'"\"\"\"' * 1500,
    'def up_and_down(n):\n    x = """', 'def up_and_down(n):\n    \0',
    'def up_and_down(n):\n   a\n  b',
    'def up_and_down(n):\n\x0c    ü = \udcff',
    'def up_and_down(n):\n' + '    x = 1\n' * 10 ** 6])
def test_no_code_stops_or_crashes_the_look_at_it(code):
    """What takes quadratic time would not end with the last of these."""
    found = of_code(code)
    assert found is None or found[1] > 0


def test_the_table_for_the_teacher():
    own, short = of_code(OWN), of_code('def up_and_down(n):\n    return n')
    published = seen(answered())
    template = solution('tree')
    solutions = {'tree': equal.answer_of(template, imports_of(template))}
    assert published == solutions['tree'] and short[1] == 1
    results = [Result(student, 'tree', 1., 10., [], [], None, answer)
               for student, answer in (
                   ('ada', own), ('bob', own), ('cyn', short), ('dan', short),
                   ('eve', published), ('fay', None), ('gus', None),
                   ('hal', of_code(OWN.replace('2', '4'))))]
    assert equal.table(results, solutions).splitlines() == [
        'exercise,equal,statements,students',
        f'tree,{equal.AS_OTHERS},6,"ada, bob"',
        f'tree,{equal.AS_SOLUTION},{published[1]},eve']
    assert answer_cell(answered()).source
