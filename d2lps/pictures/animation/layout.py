"""Where devices, switches and cables are drawn, in pixels."""
import numpy as np

from d2lps.pictures.plots import _positions

GAP, CABLE, BAR, SMALL = 40, 84, 40, 32  # between boxes; heights


class Layout:
    """Places for the nodes of a topology, and the ways between them.

    at: the centre of each box, (x, y). size: its width and height.
    bars: switches that are drawn as bars, {switch: (left, right, y)}.
    frames: around machines, (x, y, width, height, name).
    roads: pairs of nodes that a line joins: cables, or sends.
    spread: pixels that messages side by side may take.
    """

    def __init__(self, at, size, roads, spread, bars=None, ports=None,
                 frames=(), arcs=()):
        self.arcs = {*arcs, *(pair[::-1] for pair in arcs)}
        self.at, self.size, self.roads, self.spread = at, size, roads, spread
        self.bars, self.ports, self.frames = bars or {}, ports or {}, frames
        areas = [(x - w / 2, y - h / 2, w, h) for (x, y), (w, h) in (
            (at[node], size(node)) for node in at)]
        areas += [frame[:4] for frame in frames]
        areas += [(x, y, end - x, 0) for x, end, y in self.bars.values()]
        x, y, w, h = np.transpose(areas)
        self.origin = x.min() - 12, y.min() - 12
        self.width = (x + w).max() - x.min() + 24
        self.height = (y + h).max() - y.min() + 24

    def way(self, src, dst):
        """Where a cable runs: points, an array, from edge to edge of boxes."""
        a, b = (np.array(self.ports.get(pair, self.at[pair[0]]), float)
                for pair in ((src, dst), (dst, src)))
        if (src, dst) not in self.arcs:
            return np.array([self._edge(src, a, b), self._edge(dst, b, a)])
        turn = np.arctan2(a[1], a[0]), np.arctan2(b[1], b[0])
        by = (turn[1] - turn[0] + np.pi) % (2 * np.pi) - np.pi
        turns = turn[0] + by * np.linspace(0, 1, 61)
        arc = np.hypot(*a) * np.stack([np.cos(turns), np.sin(turns)], axis=1)
        inside = [(np.abs(arc - end) < np.array(self.size(node)) / 2).all(1)
                  for node, end in ((src, a), (dst, b))]
        arc = arc[~(inside[0] | inside[1])]
        return arc[np.linspace(0, len(arc) - 1, 5).round().astype(int)]

    def _edge(self, node, a, b):
        """The point where the way from `a`, a box's middle, leaves the box."""
        if node in self.bars:
            return a
        way, half = b - a, np.array(self.size(node)) / 2
        share = np.min(half / np.maximum(np.abs(way), 1e-9))
        return a + way * min(share, 0.45)


def choose(topology, plan, box, layout=None, positions=None):
    """A `Layout` for this plan on this topology."""
    used = {end for sends in plan.rounds for send in sends
            for end in send[:2]} | {*range(plan.num_devices)}

    def size(node):
        if node in topology.switches:
            return 74, BAR
        return box if node in used else (max(56, box[0] * 0.6), SMALL)

    cables = list(dict.fromkeys(
        tuple(sorted(link[:2], key=str)) for link in topology.links))
    across = max(box) + 2 * GAP
    if positions is not None:
        at = {node: tuple(map(float, positions[node])) for node in positions}
        return Layout(at, size, cables, box[0] + GAP)
    if layout is not None:
        sends = list(dict.fromkeys(
            tuple(sorted(send[:2], key=str))
            for sends in plan.rounds for send in sends))
        at = {'circle': _circle, 'tree': _tree, 'cube': _cube}[layout](
            plan, box, across)
        return Layout(at, size, sends, box[0] + GAP)
    rows = _rows(topology, size, box)
    if rows:
        return Layout(*rows[:1], size, cables, box[0] + GAP, *rows[1:])
    if topology.switches:
        at = {node: tuple(np.array([1, -1]) * across * (
            len(topology.nodes) / 5 + 0.6) * xy)
            for node, xy in _positions(topology).items()}
        return Layout(at, size, cables, box[0] + GAP)
    order = _walk(topology)
    return Layout(_round(order, box), size, cables, box[0] + GAP,
                  arcs=[*zip(order, order[1:] + order[:1])])


def _round(nodes, box, gap=70):
    """Nodes on a circle, from the top on, as the clock goes."""
    n = len(nodes)
    apart = np.hypot(*box) * 0.8 + gap
    radius = apart / 2 / np.sin(np.pi / max(n, 3))
    return {node: (radius * np.sin(2 * np.pi * k / n),
                   -radius * np.cos(2 * np.pi * k / n))
            for k, node in enumerate(nodes)}


def _walk(topology):
    """The nodes in an order that follows the widest cables."""
    order = [topology.nodes[0]]
    while len(order) < len(topology.nodes):
        near = [link for link in topology.links if link.src == order[-1]
                and link.dst not in order]
        order.append(max(near, key=lambda link: link.bandwidth).dst if near
                     else next(n for n in topology.nodes if n not in order))
    return order


def _circle(plan, box, across):
    return _round(plan.nodes, box)


def _cube(plan, box, across):
    """A corner for each device: one direction for each bit of its number."""
    steps = np.array([(1.0, 0.0), (0.0, 1.0), (0.55, -0.5),
                      (2.1, 0.0)]) * (across + 40)
    return {node: tuple(sum(step for bit, step in enumerate(steps)
                            if k >> bit & 1) + np.zeros(2))
            for k, node in enumerate(plan.nodes)}


def _tree(plan, box, across):
    """Each below the node to which it sends first."""
    parent = {}
    for sends in plan.rounds:
        for src, dst, _, reduce in sends:
            if reduce:
                parent.setdefault(src, dst)
    children = {node: [k for k in plan.nodes if parent.get(k) == node]
                for node in plan.nodes}
    roots = [node for node in plan.nodes if node not in parent]
    at, leaves = {}, 0

    def put(node, depth):
        nonlocal leaves
        for child in children[node]:
            put(child, depth + 1)
        if children[node]:
            x = np.mean([at[child][0] for child in children[node]])
        else:
            x, leaves = leaves * (box[0] + GAP), leaves + 1
        at[node] = x, depth * (box[1] + 60)

    for root in roots:
        put(root, 0)
    if len(at) < len(plan.nodes):
        raise ValueError(f"layout='tree': the sends of {plan.name} make no "
                         "tree; layout='circle' shows any plan")
    return at


def _rows(topology, size, box):
    """Machines side by side, each with its devices below a switch.

    None where the topology is no such tree of switches.
    """
    near = {}
    for src, dst in (link[:2] for link in topology.links):
        near.setdefault(src, []).append(dst)
    switches = [node for node in near if node in topology.switches]
    inner = [s for s in switches if any(
        isinstance(node, int) for node in near[s])]
    top = [s for s in switches if s not in inner]
    if len(top) > 1 or not inner or (len(inner) > 1 and not top) or any(
            len(near[node]) != 1 or near[node][0] not in topology.switches
            for node in topology.nodes) or any(
            {*near[s]} & topology.switches != {*top} for s in inner):
        return None
    at, bars, ports, frames, left = {}, {}, {}, [], 0
    step = box[0] + GAP
    alone = [node for node in (near[top[0]] if top else ())
             if node not in topology.switches]
    lift = BAR + CABLE + 34 if top else 0
    if alone:
        lift += size(alone[0])[1] + CABLE
    for m, switch in enumerate(inner):
        nodes = [n for n in near[switch] if n not in topology.switches]
        below = [n for n in nodes if isinstance(n, int)]
        above = [n for n in nodes if n not in below]
        if len(below) > 8:
            half = (len(below) + 1) // 2
            below, above = below[half:], below[:half] + above
        width = step * max(len(below), len(above) + len(top))
        high = max((size(n)[1] for n in above), default=0)
        y = lift + (high + CABLE if above else 0) + BAR / 2
        bars[switch] = left, left + width, y
        at[switch] = left + width / 2, y
        slots = [*above, *top]
        for row, height in ((slots, lift + high / 2), (
                below, y + BAR / 2 + CABLE + box[1] / 2)):
            for k, node in enumerate(row):
                x = left + (k + 0.5) * width / len(row)
                ports[switch, node] = x, y
                if node in top:
                    ports[node, switch] = x, lift - CABLE - 34 - BAR / 2
                else:
                    at[node] = x, height
        if top:
            frames.append((left - 12, lift - 26, width + 24, y + BAR / 2
                           + CABLE + box[1] + 38 - lift, f'machine {m}'))
        left += width + GAP
    if top:
        y = lift - CABLE - 34 - BAR / 2
        bars[top[0]] = 0, left - GAP, y
        at[top[0]] = (left - GAP) / 2, y
        for k, node in enumerate(alone):
            x = (k + 0.5) * (left - GAP) / len(alone)
            at[node] = x, size(node)[1] / 2
            ports[top[0], node] = x, y
    return at, bars, ports, frames
