"""Bounds as worked out by hand; verdicts that no margin could turn."""
import json

import numpy as np
import pytest
from answers import ROOT
from d2lps.figures import alt_text

from d2lps.exercises import posted_machines
from d2lps.exercises.checking import Wrong
from d2lps.exercises.posted_machines import (POSTS, REASONS, SCATTER, _bounds,
                                             _expected, _verdict, post_of,
                                             run_verdict)

HIDDEN = json.loads(
    (ROOT / 'teaching' / 'hidden' / 'posted-machines.json').read_text())
SEEN = {part: check.cases for part, check in posted_machines.CHECKS.items()}


@pytest.mark.parametrize('post, bounds', [
    ('8 V100', [6 * 20, 6 * 20]),  # three rings, both ways
    ('2 of 8 A100', [12 * 20, 12 * 20]),
    ('3 of 8 A100', None),
    ('8 A100', [12 * 20, 12 * 20]),
    ('8 H100', 2 * [18 * 20.6 * 14 / 9 * 0.85]),
    ('3 of 8 H100', [18 * 20.6, 18 * 20.6]),
    ('8 B200', 2 * [18 * 40.1 * 14 / 9 * 0.74]),
    # Cards carry 48 GB/s; between two machines goes each byte once.
    ('2 x 8 A100', [48, 48 * 15 / 8]),
    # Here the slower part of the best plan is inside the machines.
    ('2 x 8 A100, more cards', [8 * 24, 240 * (15 / 8) / (7 / 4)]),
    ('4 x 8 H100', [18 * 20.6, 8 * 48 * (2 * 31 / 32) / (2 * 3 / 4)]),
    ('2 x 1 H100', [48, 48])])
def test_the_bounds_are_those_worked_out_by_hand(post, bounds):
    case = next(case for cases in SEEN.values() for case in cases
                if case['post'] == post)
    assert _bounds(post_of(**case)) == (bounds and pytest.approx(bounds))


@pytest.mark.parametrize('cases', [SEEN['verdict'], HIDDEN['verdict']],
                         ids=['seen', 'hidden'])
def test_all_reasons_occur_and_no_number_is_near_the_end_of_a_range(cases):
    assert {_verdict(post_of(**case))[1] for case in cases} == {*REASONS}
    for case in cases:
        post = post_of(**case)
        found, bounds = _expected(post), _bounds(post)
        ends = [found.low / 1e9, found.high / 1e9]
        if bounds:  # and the notebook's simpler margins
            ends += [0.85 * bounds[0], SCATTER * bounds[1]]
        for end in ends:
            assert abs(post.measured / end - 1) > 0.015, case['post']


def test_more_than_the_wire_is_healthy_where_it_was_measured():
    """As 78 GB/s on four cards of 100 Gbit/s."""
    case = {**posted_machines.POSTS[3], 'measured': 78.3}
    post = post_of(**case)
    assert post.cards * post.gbit / 8 == 50
    assert _verdict(post) == ('healthy', 'fewer bytes')


def test_a_picture_of_the_first_function_alone():
    def none(*_):
        raise NotImplementedError

    drawn = posted_machines.picture(lambda post: (100.0, 200.0), none)
    assert ('8 V100: measured 124.6, your range 100 to 200 GB/s, you '
            'say nothing') in alt_text(drawn)


@pytest.mark.parametrize('found', [
    ('healthy', ['links']), (['healthy'], 'links'), 'ab', None, ('healthy',),
    ('healthy', np.array(['links', 'PIX'])), (np.array([1, 2]), 'links'),
    ('well', 'links'), ('healthy', 'weather')])
def test_what_is_not_a_word_and_a_reason_is_said(found):
    with pytest.raises(Wrong):
        run_verdict(lambda post, bounds: found, **POSTS[0])
    assert run_verdict(lambda post, bounds: ['healthy', 'links'],
                       **POSTS[0]) == ['healthy', 'links']
