"""The exercise's network is the chapter's, and its figures are the rule's."""
import random

import pytest

from d2lps import init_params
from d2lps.kvstore import place
from d2lps.exercises.checking import Wrong
from d2lps.exercises.where_keys_go import (LENET, judge_even, judge_pieces,
                                           judge_whole, load_of)


def by_rule(sizes, n, split_from=1_000_000):
    return [[server, key, start, end] for key, size in enumerate(sizes)
            for server, start, end in place(key, size, n, split_from)]


def test_lenet_has_these_sizes():
    assert LENET == [param.size for param in init_params()]


def test_figures_of_the_story_are_those_of_the_rule():
    assert load_of(by_rule(LENET, 2), 2) == [128_860, 208]
    assert sum(LENET) / 2 == 64_534
    cut = by_rule(LENET, 2, 10_000)
    assert len(cut) == 10 and max(load_of(cut, 2)) == 65_160


def elements_of(pieces):
    return sorted((key, element) for _, key, start, end in pieces
                  for element in range(start, end))


def test_the_judge_finds_what_is_lost_or_doubled():
    """Against a list of all elements, in placements made up by chance."""
    chance, refused = random.Random(0), 0
    for _ in range(300):
        sizes = [chance.randrange(5) for _ in range(3)] + [1]
        pieces = []
        for key, size in enumerate(sizes):
            cut = chance.randint(0, size)
            pieces += [[0, key, 0, cut], [1, key, cut, size]]
        if chance.random() < 0.5:
            piece = chance.choice(pieces)
            piece[3] = chance.randint(piece[2], sizes[piece[1]])
        if chance.random() < 0.3:
            pieces.remove(chance.choice(pieces))
        right = elements_of(pieces) == [
            (key, element) for key, size in enumerate(sizes)
            for element in range(size)]
        found = {'pieces': pieces, 'same': True, 'sizes': sizes}
        if right:
            judge_whole(found, sizes, 2)
        else:
            refused += 1
            with pytest.raises(Wrong):
                judge_whole(found, sizes, 2)
    assert 50 < refused < 250


def test_the_rule_fails_in_what_it_does_not_do():
    whole, cut = ({'pieces': by_rule(LENET, 2, most), 'same': True,
                   'sizes': LENET} for most in (1_000_000, 10_000))
    for found in whole, cut:
        judge_whole(found, LENET, 2)
        with pytest.raises(Wrong):
            judge_even(found, LENET, 2)
    with pytest.raises(Wrong, match='server 0 has 128,860 elements, and a sh'):
        judge_pieces(whole, LENET, 2)
    with pytest.raises(Wrong, match='there are 10 pieces'):
        judge_pieces(cut, LENET, 2)
