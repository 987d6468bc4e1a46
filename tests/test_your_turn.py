"""The lines that readers write in the chapters, right ones and wrong ones."""
import d2lps
import numpy as np
import pytest
from test_notebooks import CHAPTERS, cells_of, folded

HINT, WHY = 'Count the rounds.', 'Two halves have n - 1 rounds each.'
DOTS = 'Your turn: replace the dots'


def said(capsys, answer, wanted):
    d2lps.your_turn(answer, wanted, HINT, WHY)
    return capsys.readouterr().out


def rounds(n):
    return 2 * (n - 1)


def dots(n):
    return ...


@pytest.mark.parametrize('answer, wanted', [
    (6, 6), (np.int64(6), 6), (17.5, 17.5), (17.4, 17.5), (17, 17.0),
    (0.1 + 0.2 - 0.3, 0.0), ([0.1 + 0.2 - 0.3], [0.0]),
    ([1.0, 2.0], [1.004, 2.0]), (np.ones(3), [1, 1, 1]), ('ring', 'ring'),
    ((0, 1), [0, 1]), (True, True), (rounds, {4: 6, (8,): 14}),
    (max, {(1, 3): 3})])
def test_what_is_right_is_explained(capsys, answer, wanted):
    assert said(capsys, answer, wanted) == f'Right. {WHY}\n'


def test_arrays_of_mxnet_are_read(capsys):
    from mxnet import np as mxnet_np
    assert said(capsys, mxnet_np.ones(3), [1, 1, 1]) == f'Right. {WHY}\n'
    assert said(capsys, mxnet_np.ones(3), [1, 2, 1]).startswith('Not yet: ')


@pytest.mark.parametrize('answer, wanted, says', [
    (5, 6, '5 is too small'), (7, 6, '7 is too large'),
    (17.0, 17.5, '17.0 is too small'), (False, True, 'False is not right'),
    (float('nan'), 17.5, 'nan is not a number'),
    ('tree', 'ring', "'tree' is not right"), (None, 6, 'None is not right'),
    (rounds, {4: 6, 8: 16}, 'rounds(8) gave 14, and 16 is right'),
    (lambda: 3, {4: 6}, '<lambda>(4) raised TypeError')])
def test_what_is_wrong_gets_a_hint(capsys, answer, wanted, says):
    printed = said(capsys, answer, wanted)
    assert printed.startswith(f'Not yet: {says}')
    assert printed.endswith(f'. {HINT}\n')


def milliseconds(n):
    return 1e-3 * rounds(n)


def nothing(n):
    rounds(n)


@pytest.mark.parametrize('answer, wanted, fact, unit', [
    ([1, 2], [1, 2, 3], '[1, 2] is not right. The last of 3 is missing.', ''),
    (milliseconds, {4: 6.0, 8: 14.0}, 'milliseconds(4) gave 0.006, and 6.0 is '
     'right. Yours is in seconds; milliseconds are wanted.', 'milliseconds'),
    (nothing, {4: 6}, 'nothing(4) gave None, and 6 is right. It has no '
     '`return` with a value.', ''),
    (rounds, {4: 24, 5: 8}, 'rounds(4) gave 6, and 24 is right. ' + HINT, ''),
    (rounds, {4: 24, 5: 40}, 'rounds(4) gave 6, and 24 is right. Yours is 4 '
     'times too small, and `n` is 4.', '')],
    ids=['end', 'unit', 'nothing', 'no fact', 'factor'])
def test_a_fact_about_the_answer_takes_the_place_of_the_hint(
        capsys, answer, wanted, fact, unit):
    d2lps.your_turn(answer, wanted, HINT, WHY, unit)
    assert capsys.readouterr().out == f'Not yet: {fact}\n'


@pytest.mark.parametrize('answer', [..., dots])
def test_what_is_not_written_yet_is_asked_for(capsys, answer):
    assert said(capsys, answer, {4: 6}).startswith(DOTS)


def test_a_function_needs_cases():
    with pytest.raises(ValueError, match='wanted must be'):
        d2lps.your_turn(rounds, 6, HINT, WHY)


def turns(cells):
    """The cells with a line to write, each with the check below it."""
    for number, cell in enumerate(cells):
        if 'turn' in cell['metadata']:
            yield cell, cells[number + 1]


@pytest.mark.parametrize('path', CHAPTERS, ids=lambda path: path.stem)
def test_the_reader_writes_two_lines_in_each_chapter(path, capsys):
    """Each check tells a right line, a likely mistake, and no line, apart.

    A cell's metadata have the right line and the mistake, as what stands in
    place of the dots. It runs after the imports and the cells whose ids are
    in "needs".
    """
    cells = cells_of(path)
    found = [*turns(cells)]
    assert len(found) >= 2
    first = next(cell for cell in cells if cell['cell_type'] == 'code')
    for cell, check in found:
        turn, source = cell['metadata']['turn'], ''.join(cell['source'])
        assert source.count('...') == 1 and folded(check)
        names = {}
        for before in [first, *(one for one in cells
                                if one['id'] in turn.get('needs', ()))]:
            exec(''.join(before['source']), names)
        capsys.readouterr()
        for line, says in (('...', DOTS), (turn['mistake'], 'Not yet: '),
                           (turn['right'], 'Right. ')):
            exec(source.replace('...', line), names)
            exec(''.join(check['source']), names)
            assert capsys.readouterr().out.startswith(says), (source, line)
