"""Places of devices, switches and cables, in pixels."""
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from d2lps.annotations import Node
from d2lps.collectives import Schedule
from d2lps.collectives.topology import Topology
from d2lps.pictures.drawing import Point
from d2lps.pictures.positions import positions as spread_out
from d2lps.pictures.positions import tree_places

Places: TypeAlias = Mapping[Node, Sequence[float]]  # x and y of each
Size: TypeAlias = tuple[float, float]  # width and height
Frame: TypeAlias = tuple[float, float, float, float, str]
Bars: TypeAlias = Mapping[Node, tuple[float, float, float]]
Ports: TypeAlias = Mapping[tuple[Node, Node], Point]
GAP, CABLE, BAR, SMALL = 10, 76, 44, 30  # between boxes; heights
ROOM = 20  # of a box, where nothing travels
EDGE = 12  # between a machine's frame and what is in it


class Layout:
    """Places for the nodes of a topology, and the paths between them.

    at: the middle of each box, (x, y); size(node): its width and height.
    bars: switches drawn as bars, {switch: (left, right, y)}; ports: where a
    cable meets a bar, {(switch, other end): (x, y)}. frames: around
    machines, (x, y, width, height, name). arcs: pairs joined by an arc of
    an ellipse with two radii.
    """

    def __init__(self, at: Places, size: Callable[[Node], Size],
                 bars: Bars | None = None,
                 ports: Ports | None = None,
                 frames: Iterable[Frame] = (),
                 arcs: Iterable[tuple[Node, Node]] = (),
                 radii: Sequence[float] = ()) -> None:
        self.at, self.size, self.frames = at, size, frames
        self.bars, self.ports = dict(bars or {}), dict(ports or {})
        self.radii = np.array(radii)
        self.arcs = {*arcs, *(pair[::-1] for pair in arcs)}
        areas = [(x - size(node)[0] / 2, y - size(node)[1] / 2, *size(node))
                 for node, (x, y) in at.items()]
        areas += [frame[:4] for frame in frames]
        areas += [(x, y, end - x, 0) for x, end, y in self.bars.values()]
        x, y, wide, high = np.transpose(areas)
        self.left, self.top = x.min(), y.min()
        self.width = (x + wide).max() - self.left
        self.height = (y + high).max() - self.top

    def ends(self, link: Sequence[Any]) -> list[Sequence[float]]:
        """Both ends of a cable, each in a box's middle or in a bar."""
        src, dst = link[:2]
        return [self.ports.get((src, dst), self.at[src]),
                self.ports.get((dst, src), self.at[dst])]

    def room(self, node: Node, wide: float) -> float:
        """The width of a box: a bar's length, or `wide`, if there is room.

        Devices in a row must not touch each other.
        """
        if node in self.bars:
            left, right, _ = self.bars[node]
            return right - left
        in_row = self.bars and isinstance(node, int)
        return min(wide, ROOM + GAP) if in_row else wide

    def path(self, src: Node, dst: Node, count: int = 6) -> np.ndarray:
        """Points from edge to edge, an array: 2, or `count` for an arc."""
        ends = np.array(self.ends((src, dst)), float)
        points = ends[0] + np.linspace(0, 1, 101)[:, None] * (
            ends[1] - ends[0])
        if (src, dst) in self.arcs:
            a, b = np.arctan2(*(ends / self.radii).T[::-1])
            turn = np.linspace(a, a + (b - a + np.pi) % (2 * np.pi) - np.pi,
                               101)
            points = self.radii * np.stack([np.cos(turn), np.sin(turn)], 1)
        seen = np.ones(len(points), bool)
        for node in {src, dst} - self.bars.keys():
            seen &= (np.abs(points - self.at[node])
                     > np.array(self.size(node)) / 2).any(axis=1)
        points = points[seen] if seen.any() else ends
        count = count if (src, dst) in self.arcs else 2
        return points[np.linspace(0, len(points) - 1, count).astype(int)]


def choose(topology: Topology, plan: Schedule, box: Size,
           layout: str | None = None, positions: Places | None = None
          ) -> Layout:
    """The `Layout` of a topology, or of a plan's sends; box: of a device."""
    used = {node for sends in plan.rounds for send in sends
            for node in send[:2]} | {*range(plan.num_devices)}

    def size(node):
        if node in topology.switches:
            return 74, BAR
        return box if node in used else (56, SMALL)

    if positions is not None:
        return Layout(positions, size)
    if layout is not None:
        return Layout(_tree(plan, box) if layout == 'tree' else
                      _cube(plan.nodes, box), size)
    rows = _rows(topology, size, box, CABLE, BAR)
    if rows:
        return Layout(rows[0], size, *rows[1:])
    if topology.switches:
        far = np.hypot(*box) * (0.6 + len(topology.nodes) / 6)
        return Layout({node: (far * x, -far * y) for node, (x, y)
                       in spread_out(topology).items()}, size)
    order = [topology.nodes[0]]  # along the widest cables
    while len(order) < len(topology.nodes):
        near = [link for link in topology.links
                if link.src == order[-1] and link.dst not in order]
        order.append(max(near, key=lambda link: link.bandwidth).dst if near
                     else next(n for n in topology.nodes if n not in order))
    return Layout(_circle(order, box), size, radii=_radii(len(order), box),
                  arcs=[*zip(order, order[1:] + order[:1])])


def still_layout(topology: Topology) -> Layout:
    """The `Layout` of a topology in which nothing travels.

    Machines that are joined by a switch stand as in the animation. Other
    nodes stand on a circle, and switches between the nodes that they join.
    """
    def size(node):
        return ROOM, ROOM

    rows = _rows(topology, size, (ROOM, ROOM), 40, ROOM)
    if rows and rows[3]:
        return Layout(rows[0], size, *rows[1:])
    return Layout({node: (100 * x, -100 * y) for node, (x, y)
                   in spread_out(topology).items()}, lambda node: (0, 0))


def _radii(n, box):
    """Width and height of a circle with room for n boxes, halved.

    It is flat if the boxes are wide.
    """
    radius = (0.45 * np.hypot(*box) + 28) / np.sin(np.pi / max(n, 3))
    return radius, radius * (0.8 if box[0] > 1.3 * box[1] else 1)


def _circle(nodes, box):
    """Nodes on a circle, from the top on, as the clock goes."""
    wide, high = _radii(len(nodes), box)
    turns = 2 * np.pi * np.arange(len(nodes)) / len(nodes)
    return {node: (wide * np.sin(turn), -high * np.cos(turn))
            for node, turn in zip(nodes, turns)}


def _cube(nodes, box):
    """A corner for each node, with a direction for each bit of its number."""
    steps = (max(box) + 120) * np.array(
        [(1, 0), (0, 1), (0.55, -0.5), (2.1, 0), (0, 2.1)])
    return {node: np.array([k >> bit & 1 for bit in range(5)]) @ steps
            for k, node in enumerate(nodes)}


def _tree(plan, box):
    """Each node below the one that it sends its sum to."""
    parents = {}
    for send in (send for sends in plan.rounds for send in sends):
        if send.reduce:
            parents.setdefault(send.src, send.dst)
    at = tree_places(parents, plan.nodes)
    if len(at) < len(plan.nodes):
        raise ValueError(f"layout='tree': the sends of {plan.name} make no "
                         'tree; without layout=, any plan is shown')
    return {node: (x * (box[0] + GAP), depth * (box[1] + 60))
            for node, (x, depth) in at.items()}


def _rows(topology, size, box, cable, bar):
    """Machines side by side, each with its devices below its switch.

    cable, bar: how long cables are, and how high switches. None where the
    topology is no such tree of switches.
    """
    near = {}
    for src, dst, *_ in topology.links:
        near.setdefault(src, []).append(dst)
    switches = [node for node in near if node in topology.switches]
    inner = [s for s in switches if any(isinstance(n, int) for n in near[s])]
    top = [s for s in switches if s not in inner]
    alone = all(len(near.get(node, ())) == 1 and near[node][0] in switches
                for node in topology.nodes)
    below_top = all([node for node in near[switch] if node in switches] == top
                    for switch in inner)
    one_tree = len(top) == 1 or not top and len(inner) == 1
    if not (inner and one_tree and alone and below_top):
        return None
    at, bars, ports, frames, left = {}, {}, {}, [], 0
    step, level = box[0] + GAP, -box[1] / 2 - cable - bar / 2

    def row(nodes, left, width, y, switch, port):
        for k, node in enumerate(nodes):
            x = left + (k + 0.5) * width / len(nodes)
            ports[switch, node] = x, port
            at.setdefault(node, (x, y))

    for m, switch in enumerate(inner):
        ints = [n for n in near[switch] if isinstance(n, int)]
        below = ints[len(ints) // 2:] if len(ints) > 8 else ints
        above = [n for n in near[switch] if n not in below]
        high = max((size(n)[1] for n in above), default=0)
        width = step * max(len(below), len(above))
        bars[switch] = left, left + width, level
        at[switch] = left + width / 2, level
        middle = level - bar / 2 - cable - high / 2
        upper = middle - high / 2 - cable - bar / 2
        for node in top:
            at[node] = 0, upper
        row(below, left, width, 0, switch, level)
        row(above, left, width, middle, switch, level)
        for node in top:
            ports[node, switch] = ports[switch, node][0], upper
            frames.append((left - EDGE, middle - high / 2 - 26,
                           width + 2 * EDGE,
                           box[1] / 2 + 38 - middle + high / 2,
                           f'machine {m}'))
        left += width + GAP + 2 * EDGE
    width = left - GAP - 2 * EDGE
    for node in top:
        bars[node], at[node] = (0, width, upper), (width / 2, upper)
        row([n for n in near[node] if n not in inner], 0, width,
            upper - bar / 2 - cable - box[1] / 2, node, upper)
    return at, bars, ports, frames
