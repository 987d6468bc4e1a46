"""Messages in the picture of who holds what: none touches another."""
import re
from itertools import pairwise

import pytest
from d2lps.collectives import strategies
from d2lps.pictures import plot_holdings


def arrows(plan, number):
    """(x, y of the tip, y where it begins) of each, and how many replace."""
    svg = plot_holdings(plan, number).svg()
    found = {kind: re.findall(
        r'M([\d.]+) ([\d.]+)L\S+ \S+?H\S+?V([\d.]+)', ''.join(
            re.findall(rf'class="{kind}" d="(.*?)"', svg)))
        for kind in ('adds', 'replaces')}
    return [tuple(map(float, one)) for one in sum(found.values(), [])], len(
        found['replaces'])


@pytest.mark.parametrize('plan, number', [
    (strategies.sharded(4), 1), (strategies.sharded(8), 1),
    (strategies.sharded(8), 2), (strategies.gather_broadcast(8, 0), 2),
    (strategies.recursive_doubling(8), 3), (strategies.ring(8), 3)], ids=repr)
def test_arrows_side_by_side_do_not_touch(plan, number):
    found, replacing = arrows(plan, number)
    sends = plan.rounds[number - 1]
    assert len(found) == len(sends)
    assert replacing == sum(not send.reduce for send in sends)
    assert all(x2 - x > 5.5 for (x, *_), (x2, *_) in pairwise(sorted(found)))
    y = sorted({y for _, *both in found for y in both})
    nodes = sorted({node for send in sends for node in (send.src, send.dst)})
    assert {(y.index(begin), y.index(tip)) for _, tip, begin in found} == {
        (nodes.index(send.src), nodes.index(send.dst)) for send in sends}
