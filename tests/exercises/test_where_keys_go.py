"""The exercise's network is the chapter's, and its judge misses no element."""
import random

from d2lps import init_params
from d2lps.exercises.where_keys_go import LENET, not_whole


def test_lenet_has_these_sizes():
    assert LENET == [param.size for param in init_params()]


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
        assert bool(not_whole(pieces, sizes, 2)) is not right
        refused += not right
    assert 50 < refused < 250
