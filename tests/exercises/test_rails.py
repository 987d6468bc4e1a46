"""The targets can be reached, and the cables are those of chapter 14."""
import nbformat
import numpy as np
import pytest
from answers import ROOT

from d2lps.collectives import simulate, strategies, topology
from d2lps.exercises import rails
from d2lps.exercises.plan_checks import notes_of

SIZES = [(4, 4), (3, 5), (1, 4), (4, 1), (1, 1)]


@pytest.mark.parametrize('machines, gpus', SIZES)
def test_the_package_has_such_a_plan(machines, gpus):
    """No target is out of reach, and none is above what it takes."""
    plan = strategies.hierarchical(machines, gpus)
    notes = notes_of(plan, machines * gpus)
    for check in rails.CHECKS.values():
        check.judge(notes, machines, gpus)
    timing = simulate.timing(plan, rails.cables(machines, gpus), 160e6)
    if machines > 1:
        cards = [load for (_, node), load in timing.load.items()
                 if str(node).startswith('rail')]
        assert np.allclose(cards, 160e6 * 2 * (machines - 1) / machines / gpus)
        assert len(cards) == machines * gpus


def test_the_target_is_that_of_the_notebook():
    plans = strategies.hierarchical(4, 4), rails.one_speaker(4, 4)
    ms = [1e3 * simulate.timing(plan, rails.cables(4, 4), 160e6).seconds
          for plan in plans]
    assert ms == pytest.approx([63.2, 252], rel=2e-3)
    assert ms[0] == pytest.approx(1e3 * rails.target_seconds(4, 4, 160e6))


def test_the_cables_are_the_chapter_s():
    chapter = nbformat.read(ROOT / 'notebooks' / '14-ten-thousand-gpus.ipynb',
                            4)
    [cell] = [cell for cell in chapter.cells
              if '\ndef rails(' in cell.source]
    names = {'topology': topology}
    exec(cell.source, names)
    hops = 2 * rails.LATENCY, 2 * rails.NETWORK_LATENCY  # of two cables each
    theirs = names['rails'](3, 4, hops, nvlink=topology.PCIE3,
                            card=topology.ETHERNET_10G)
    assert theirs.links == rails.cables(3, 4).links
