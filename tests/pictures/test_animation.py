"""Chunks that travel: what the picture says is what the simulator says."""
from xml.etree import ElementTree

import pytest

from d2lps import pictures
from d2lps.collectives import simulate, strategies, topology


def timing(plan, place, nbytes=160e6, **more):
    return simulate.time(plan, place, nbytes, **more)


def test_it_shows_itself_in_words_too():
    made = pictures.animate(timing(strategies.sharded(4),
                                   topology.pcie_switch(4)))
    ElementTree.fromstring(made.svg())
    ElementTree.fromstring(made.still().svg())
    html = made._repr_html_()
    assert 'max-width:100%' in html and '15 ms' in made.alt
    assert made.alt in html


def test_what_is_too_large_is_refused():
    with pytest.raises(ValueError, match='32 devices, .* at most 16'):
        pictures.animate(timing(strategies.ring(32), topology.pcie_switch(32)))
