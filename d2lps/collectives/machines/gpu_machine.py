"""One real machine as a topology."""
from collections.abc import Sequence

import numpy as np

from d2lps.annotations import Node
from d2lps.checks import (checked, from_zero, instance_of, list_of, one_of,
                          refuse)
from d2lps.collectives.links import Topology, star
from d2lps.collectives.machines.nvidia_smi import read_table
from d2lps.collectives.machines.rates import (SOCKET_OF_PCIE, SOCKETS,
                                              Gpu, Rate, find_gpu)
from d2lps.collectives.machines.wiring import Wiring

# Ways that stay below one PCIe switch, or several of them; below one socket.
BELOW_SWITCH = {'PIX', 'PXB'}
BELOW_SOCKET = BELOW_SWITCH | {'PHB', 'NODE'}


class GpuMachine(Topology):
    """The GPUs of one machine that take part, and all that joins them.

    Nodes: k GPUs, 0 to k - 1; CPU sockets, 'cpu 0', ...; network cards, by
    their names in the text. Switches: 'nvswitch', and PCIe switches, 'pcie
    0', ... The numbers of the GPUs in the text are in `gpus`.

    wiring: what the text said, of all GPUs of the machine, and notes.
    gpu: a `rates.Gpu`. rates: 'usable' or 'nominal'.
    gpus: tuple of k numbers: which GPUs of the text are nodes 0 to k - 1.
    cables: integer array (k, k), NVLinks from GPU to GPU, without switches.
    links_to_switch: tuple of k numbers, NVLinks from each to NVSwitches.
    switched: the smallest of them; 0 if one cannot be reached so.
    nvlink, slot, socket: bytes/s of one NVLink (0 if there is none), of a
        PCIe slot, and between two sockets.
    """

    def __init__(self, wiring: Wiring, gpu: Gpu, use: Sequence[int] | None,
                 rates: str) -> None:
        def rate(link: Rate | None) -> float:
            return float(getattr(link, rates)) if link else 0.0

        self.gpu, self.rates = gpu, rates
        self.gpus = _known(wiring, use)
        self.nvlink, self.slot = rate(gpu.nvlink), rate(gpu.slot)
        self.socket = rate(SOCKETS[wiring.cpu or SOCKET_OF_PCIE[gpu.pcie]])
        switched = _through_switch(wiring, gpu)
        self.wiring = _with_note(wiring, gpu, switched)
        which = [wiring.gpus.index(number) for number in self.gpus]
        self.links_to_switch = tuple(switched[i] for i in which)
        self.switched = min(self.links_to_switch)
        self.cables = wiring.cables[np.ix_(which, which)]
        if any(switched):  # what the text names between two leads through it
            self.cables = np.zeros_like(self.cables)
        tree = PcieTree(wiring, which)
        switches = tree.switches + ['nvswitch'] * any(self.links_to_switch)
        super().__init__(self._links(tree), switches,
                         f'{len(which)} {gpu.name}')

    def _links(self, tree):
        """All `Link`s: NVLinks, slots, and what joins sockets."""
        links = []
        for i, j in np.argwhere(np.triu(self.cables)).tolist():
            links += star([i], j, int(self.cables[i, j]) * self.nvlink)
        for i, count in enumerate(self.links_to_switch):
            if count:
                links += star([i], 'nvswitch', count * self.nvlink)
        for device, above in tree.above.items():
            links += star([device], above, self.slot)
        for k, cpu in enumerate(tree.cpus):
            links += star(tree.cpus[:k], cpu, self.socket)
        return links

    def path(self, i: int, j: int) -> str:
        """The way between GPUs i and j of 0 to k - 1: 'NV2', 'PIX', ..."""
        a, b = (self.wiring.gpus.index(self.gpus[k]) for k in (i, j))
        cables = int(self.wiring.cables[a, b] or self.switched)
        return f'NV{cables}' if cables else self.wiring.paths[a][b]


class PcieTree:
    """The tree of PCIe: GPUs and cards, above them switches and sockets.

    above: a dict from each device or switch to the node above it.
    switches, cpus: their names.
    """

    def __init__(self, wiring: Wiring, which: Sequence[int]) -> None:
        self.above: dict[Node, str] = {}
        self.cpus: list[str] = []
        self.switches: list[str] = []
        devices = [*range(len(wiring.gpus)), *wiring.cards]
        switches = _groups(devices, _joined(wiring, BELOW_SWITCH))
        place = {i: k for k, i in enumerate(which)}  # GPU of text: our node
        for socket in _sockets(wiring, devices, switches):
            if any(i in place for i in socket):  # a GPU of it takes part
                self._hang([group for group in switches
                            if group[0] in socket], place)

    def _hang(self, groups, place):
        """Hang groups of devices on a new socket, each on a switch if need be.

        A device alone has a slot of the socket itself.
        """
        cpu = f'cpu {len(self.cpus)}'
        self.cpus.append(cpu)
        for group in groups:
            here = [place.get(i, i) for i in group
                    if isinstance(i, str) or i in place]
            above = cpu
            if len(group) > 1 and here:
                above = f'pcie {len(self.switches)}'
                self.switches.append(above)
                self.above[above] = cpu
            self.above |= dict.fromkeys(here, above)


def _joined(wiring, ways):
    """Pairs that one of these ways joins: places of GPUs, names of cards."""
    for j, row in enumerate(wiring.paths):
        yield from ((i, j) for i in range(j) if row[i] in ways)
    for card, row in wiring.cards.items():
        yield from ((i, card) for i, way in enumerate(row) if way in ways)


def _sockets(wiring, devices, switches):
    """Lists of devices, each of one socket.

    Where an NVLink hides the way between two GPUs, the same affinity says
    that they are of one socket; a text that says nothing is taken for one.
    """
    same = [*_joined(wiring, BELOW_SOCKET)]
    n, names = len(wiring.gpus), wiring.sockets
    same += [(i, j) for j in range(n) for i in range(j)
             if wiring.cables[i, j] and names[i] == names[j] != '']
    same += [(group[0], other) for group in switches for other in group]
    if not wiring.sockets_said:
        same += [(0, i) for i in range(n)]
    return _groups(devices, same)


def _groups(names, pairs):
    """Lists of those that some pairs join, in the order of `names`."""
    group = {name: [name] for name in names}
    for a, b in pairs:
        if group[a] is not group[b]:
            joined = group[a] + group[b]
            group |= dict.fromkeys(joined, joined)
    order = {name: k for k, name in enumerate(names)}
    groups = {id(members): sorted(members, key=order.get)
              for members in group.values()}
    return sorted(groups.values(), key=lambda members: order[members[0]])


def _known(wiring, use):
    """The GPUs in `use`, or all of them; ValueError for others."""
    if use is None:
        return wiring.gpus
    lost = [number for number in use if number not in wiring.gpus]
    if lost or len({*use}) < len(use):
        refuse('use', list(use), 'different GPUs out of '
               f'{list(wiring.gpus)}')
    return tuple(use)


def _with_note(wiring, gpu, switched):
    """The wiring, with a note if a GPU has fewer NVLinks than its kind."""
    for number, links in zip(wiring.gpus, switched):
        if any(switched) and links < gpu.nvlinks:
            return wiring._replace(notes=(*wiring.notes, (
                f'GPU{number} has {links or "no"} NVLinks to switches, and '
                f'the {gpu.name} has {gpu.nvlinks}: is one down (nvidia-smi '
                'nvlink --status)?')))
    return wiring


def _through_switch(wiring, gpu):
    """NVLinks of each GPU to NVSwitches: a list; ValueError if too many.

    A table names a number for each pair; where a GPU would need more NVLinks
    than it has, all pairs share the same ones, through switches.
    """
    if wiring.switched.any():
        return wiring.switched.tolist()
    most = int(wiring.cables.max(initial=0))
    if most > gpu.nvlinks:
        raise ValueError(f'gpu: the text joins two GPUs by NV{most}; the '
                         f'{gpu.name} has {gpu.nvlinks or "no"} NVLinks: '
                         'which GPU is it?')
    needed = wiring.cables.sum(axis=1)
    if needed.max(initial=0) <= gpu.nvlinks:
        return [0] * len(needed)
    # Through a switch, a pair has as many as the GPU with fewer has.
    own = wiring.cables.max(axis=1)
    pairs = np.minimum.outer(own, own)
    if (pairs - np.diag(own) != wiring.cables).any():
        raise ValueError(
            f'GPU{wiring.gpus[int(needed.argmax())]} has {needed.max()} '
            f'NVLinks in the text; the {gpu.name} has {gpu.nvlinks}, and '
            'through a switch every pair would have as many as its GPUs')
    return own.tolist()


@checked(use=list_of(from_zero, 'a list of GPUs, such as [0, 1]'),
         rates=one_of('usable', 'nominal'), wiring=instance_of(
             Wiring, 'a Wiring, which a text was read into'))
def machine_of(wiring: Wiring, gpu: str | None = None,
               use: Sequence[int] | None = None,
               rates: str = 'usable') -> GpuMachine:
    """The `GpuMachine` with the wiring of a text.

    gpu: which GPU it is, where the text does not say it.
    use: the numbers of the GPUs that take part; all if left out.
    rates: 'usable', NCCL's estimates, or 'nominal', of data sheets.
    """
    if gpu is None and wiring.gpu is None:
        raise ValueError('gpu is missing: the text does not say which GPU it '
                         'is, so the rate of its links is unknown; say A100, '
                         'for example')
    kind = find_gpu(gpu or wiring.gpu or '')
    if gpu and wiring.gpu:
        said = find_gpu(wiring.gpu)
        if said.sm != kind.sm:
            raise ValueError(f'gpu was {gpu!r}; the text says that it is '
                             f'{said.name}')
    return GpuMachine(wiring, kind, use, rates)


def from_nvidia_smi(text: str, gpu: str | None = None,
                    use: Sequence[int] | None = None,
                    rates: str = 'usable') -> GpuMachine:
    """The machine of a table that `nvidia-smi topo -m` printed.

    text: the table; other text around it is ignored.
    gpu: which GPU it is, such as 'A100': the table does not say it.
    use: the numbers of the GPUs that take part; all if left out.
    rates: 'usable' (NCCL's estimates, see `rates`) or 'nominal' (data
    sheets).

    Returns a `GpuMachine`, a `Topology` without latencies. Raises ValueError
    for a text that is cut off or contradicts itself; it says where.
    """
    return machine_of(read_table(text), gpu, use, rates)
