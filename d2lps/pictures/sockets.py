"""The parts of a machine that a posted text names, to be drawn."""
from typing import NamedTuple

from d2lps.collectives.machines.gpu_machine import PcieTree
from d2lps.collectives.machines.wiring import Wiring


class Group(NamedTuple):
    """GPUs and cards on one PCIe switch, or else on the socket itself.

    gpus: places in the text, 0 to n - 1. cards: names. switch: its words, or
    '' for none. columns: how many devices stand side by side.
    """
    gpus: list[int]
    cards: list[str]
    switch: str = ''

    @property
    def columns(self) -> int:
        return max(len(self.gpus), len(self.cards) if self.switch else 1)


class Socket(NamedTuple):
    """A CPU socket, or all GPUs of which the text shows no socket.

    name: for a reader. known: does the text show it?
    hidden: GPUs of which the text does not show how they are joined to it,
        because it names an NVLink instead.
    """
    name: str
    groups: list[Group]
    known: bool
    hidden: frozenset[int]

    @property
    def gpus(self) -> list[int]:
        return [i for group in self.groups for i in group.gpus]

    @property
    def cards(self) -> list[str]:
        return [card for group in self.groups for card in group.cards]

    @property
    def columns(self) -> int:
        return sum(group.columns for group in self.groups)


def sockets_of(wiring: Wiring) -> list[Socket]:
    """The sockets of a machine, with the GPUs that take no part, too."""
    tree = PcieTree(wiring, range(len(wiring.gpus)))
    sockets: list[Socket] = []
    for cpu in tree.cpus:
        groups = _groups_of(wiring, tree, cpu)
        sockets.append(Socket('', groups, True, _hidden(wiring, groups)))
    lost = [socket for socket in sockets if any(
        other is not socket and not any(
            _apart(wiring, i, j) for i in socket.gpus for j in other.gpus)
        for other in sockets)]
    if not wiring.sockets_said:
        lost = sockets
    known = [socket for socket in sockets if socket not in lost]
    named = [socket._replace(name=f'socket {k}')
             for k, socket in enumerate(known)]
    if not lost:
        return named
    # Nothing says that these are different sockets: they may all be one.
    groups = [group for socket in lost for group in socket.groups]
    return named + [Socket(
        'sockets: not in the table', groups, False,
        frozenset(i for group in groups for i in group.gpus))]


def _groups_of(wiring, tree, cpu):
    """The groups of a socket: its own cards are the last one."""
    def below(parent):
        return [part for part, above in tree.above.items() if above == parent]

    groups, cards = [], []
    for part in below(cpu):
        if part in tree.switches:
            devices = below(part)
            gpus = [i for i in devices if isinstance(i, int)]
            own = [card for card in devices if isinstance(card, str)]
            groups.append(Group(gpus, own, _switch(wiring, gpus, own)))
        elif isinstance(part, int):
            groups.append(Group([part], []))
        else:
            cards.append(part)
    return groups + [Group([], cards)] * bool(cards)


def _hidden(wiring, groups):
    gpus = [i for group in groups for i in group.gpus]
    return frozenset(
        i for group in groups if not group.switch for i in group.gpus
        if not all(wiring.paths[i][j] for j in gpus if j != i))


def _switch(wiring, gpus, cards):
    ways = [wiring.paths[i][j] for i in gpus for j in gpus]
    ways += [wiring.cards[card][i] for card in cards for i in gpus]
    return 'PCIe switches' if 'PXB' in ways else 'PCIe switch'


def _apart(wiring, i, j):
    """Does the text say that GPUs i and j are on two sockets?"""
    if wiring.paths[i][j] == 'SYS':
        return True
    if wiring.sockets[i] and wiring.sockets[j]:
        return wiring.sockets[i] != wiring.sockets[j]
    # A card on the socket of one of them, and not on that of the other.
    return any(ways[i] and ways[j] and (ways[i] == 'SYS') != (
        ways[j] == 'SYS') for ways in wiring.cards.values())
