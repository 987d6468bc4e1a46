"""A real machine: its CPU sockets, PCIe switches, cards, GPUs and NVLinks."""
from collections.abc import Sequence
from itertools import combinations

from d2lps.checks import checked, instance_of, integer, list_of
from d2lps.collectives.machines.ask import Answer
from d2lps.collectives.machines.gpu_machine import GpuMachine
from d2lps.collectives.machines.rates import SOCKET_OF_PCIE
from d2lps.collectives.strategies import ring_over_cables
from d2lps.pictures.drawing import FRAME, PALE, Drawing, width_of, wrapped
from d2lps.pictures.drawings.draw_plans import (RING_COLORS, Ring, pairs_of,
                                               refuse_rings)
from d2lps.pictures.sockets import Socket, sockets_of
from d2lps.pictures.style import INK
from d2lps.units import RATES, several, with_unit

MOST_DRAWN = 32  # GPUs
TOO_MANY = f'Machines of more than {MOST_DRAWN} GPUs are not drawn.'
WIDTH = 460  # pixels: a phone shows as much as a whole
EDGE, PAD, GAP = 14, 6, 10  # around sockets, inside one, between two
BAR, CARD, BOX = 22, 20, 28  # heights: of a CPU or switch, a card, a GPU
TOP = 34  # below the title
SMALL = 11  # letters on cards and switches
SINGLE = 4  # so many NVLinks of a pair are lines of their own
DASHES = '', '9 4', '3 3', '14 3 3 3', '6 2', '2 5'  # one for each ring
FAINT, FAINT_WORDS, GPU = '#c8c8c8', '#767676', '#cfe3f3'


def _in_picture(machine, rings):
    """Refuse what nobody could read, and rings over NVLinks that are not."""
    integer('GPUs in a picture', len(machine.wiring.gpus), most=MOST_DRAWN)
    refuse_rings(machine.cables, rings, 'NVLink')


@checked(_in_picture, machine=instance_of(
    GpuMachine,
    "a GpuMachine, such as machines.from_nvidia_smi(text, gpu='V100')"),
    rings=list_of(ring_over_cables, 'a list of rings, as from rings_of',
                  least=0))
def draw_gpu_machine(machine: GpuMachine,
                     rings: Sequence[Ring] = ()) -> Drawing:
    """The GPUs of a machine with all that joins them, as its text says.

    CPU sockets are frames, GPUs have their numbers in the text, and those
    that take no part are pale. A line is an NVLink; where more than 4 join
    two GPUs, they are one thick line with their number. What the text does
    not show is dashed.

    rings: (order, NVLinks per hop) of `topology.rings_of(machine.cables)`;
    each has a colour and a pattern of its own.
    """
    return _Picture(machine, rings).draw()


def draw_answer(answer: Answer) -> Drawing | None:
    """The machine and the rings of an `Answer`; None if it is too large."""
    machine = answer.machine
    if len(machine.wiring.gpus) > MOST_DRAWN:
        return None
    rings = [] if machine.switched else [
        ([machine.gpus.index(gpu) for gpu in order], count)
        for order, count in answer.expectation.rings]
    return draw_gpu_machine(machine, rings)


class _Picture:
    """A picture, with its parts in one row of sockets or in two, mirrored."""

    def __init__(self, machine: GpuMachine, rings: Sequence[Ring]) -> None:
        self.machine, self.wiring, self.rings = machine, machine.wiring, rings
        self.used = [self.wiring.gpus.index(socket) for socket in machine.gpus]
        self.sockets = sockets_of(self.wiring)
        half = len(self.wiring.gpus) / 2
        rows: list[list[Socket]] = [[], []]
        for socket in self.sockets:
            placed = sum(len(other.gpus) for other in rows[0])
            rows[placed >= half or bool(rows[1])].append(socket)
        self.rows = [row for row in rows if row]
        self._measure()
        self.strands = [] if machine.switched else self._strands()
        self.gap = self._gap()  # below a row, or between both
        self.legend = self._legend()
        self.below = TOP + len(self.rows) * self.high + self.gap + 12
        lines = [line for *_, lines in self.legend for line in lines]
        self.drawing = Drawing(
            self.width, self.below + 18 * len(lines) + 8, self._alt())

    def _gap(self):
        rows = len(self.rows)
        if self.machine.switched:
            return BAR + 24 * rows
        lowest = [0.0] * rows  # points of curves that return to their row
        for pair, *_, deep in self.strands:
            for row in {self.at[i][1] for i in pair}:
                # Where a curve of this kind is, 3/4 of the way to its handles.
                lowest[row] = max(lowest[row], 0.75 * deep)
        room = sum(lowest) + 20 * (rows - 1)
        return max(room, 90) if rows > 1 and self.strands else room

    def _measure(self):
        """Sizes in pixels, and `at`: {GPU: (x, number of its row)}."""
        groups = [group for socket in self.sockets for group in socket.groups]
        need = [(width_of(name, SMALL) + 10) * (
                    len(group.cards) / group.columns if group.switch else 1)
                for group in groups for name in group.cards]
        need += [width_of(str(number), 13, True) + 10
                 for number in self.wiring.gpus]
        columns = [sum(socket.columns for socket in row) for row in self.rows]
        frames = [2 * PAD * len(row) + GAP * (len(row) - 1)
                  for row in self.rows]
        self.pitch = max(need + [min(
            (WIDTH - 2 * EDGE - frame) / number
            for number, frame in zip(columns, frames))])
        wide = [number * self.pitch + frame
                for number, frame in zip(columns, frames)]
        self.width = max(WIDTH, 2 * EDGE + max(wide))
        own = any(group.cards and group.switch for group in groups)
        switches = any(group.switch for group in groups)
        stack = max([len(group.cards) for group in groups
                     if not group.switch], default=0)
        # From the outer edge of a row: CPU, cards, switches, GPUs.
        self.switch_y = PAD + BAR + 16 + own * (CARD + 8)
        self.gpu_y = max(self.switch_y + switches * (BAR + 12),
                         PAD + BAR + 8 + CARD * stack - BOX)
        self.high = self.gpu_y + BOX + PAD  # of a row
        self.lefts: list[float] = []
        self.at: dict[int, tuple[float, int]] = {}
        for k, row in enumerate(self.rows):
            x = EDGE
            for socket in row:
                self.lefts.append(x)
                self._place(socket, k, x + PAD)
                x += socket.columns * self.pitch + 2 * PAD + GAP

    def _place(self, socket, row, x):
        for group in socket.groups:
            wide = group.columns * self.pitch
            for k, i in enumerate(group.gpus):
                self.at[i] = x + wide * (k + 0.5) / len(group.gpus), row
            x += wide

    def _strands(self):
        """The lines: [(pair, NVLinks, number of the ring or None, depth)].

        Depth is that of a curve from GPU to GPU of one row, in pixels.
        """
        rings = [[{self.used[i] for i in pair} for pair in pairs_of(order)]
                 for order, _ in self.rings]
        strands = []
        for pair in combinations(range(len(self.wiring.gpus)), 2):
            total = int(self.wiring.cables[pair])
            parts = [(self.rings[k][1], k) for k, hops in enumerate(rings)
                     if {*pair} in hops]
            parts.append((total - sum(count for count, _ in parts), None))
            if total <= SINGLE:
                parts = [(1, k) for count, k in parts for _ in range(count)]
            (x, _), (x2, _) = (self.at[i] for i in pair)
            deep = 26 + 20 * abs(x2 - x) / self.pitch
            strands += [(pair, count, k, deep + 8 * number)
                      for number, (count, k) in enumerate(parts) if count]
        return strands

    def _y(self, row, y, high=0):
        """From the top of the picture: y from the outer edge of a row."""
        return TOP + y if row == 0 else (
            TOP + 2 * self.high + self.gap - y - high)

    def draw(self) -> Drawing:
        self.drawing.text(EDGE, 15, self._title(), 14, 'start', bold=True)
        self._between_sockets()
        lefts = iter(self.lefts)
        for row, sockets in enumerate(self.rows):
            for socket in sockets:
                self._socket(socket, row, next(lefts))
        self._nvlinks()
        for i, (x, row) in self.at.items():
            self._gpu(i, x, row)
        y = self.below + 9
        for stroke, width, dash, lines in self.legend:
            self._path(f'M{EDGE} {y:g}H{EDGE + 36}', stroke, width, dash)
            for line in lines:
                self.drawing.text(EDGE + 46, y, line, 13, 'start')
                y += 18
        return self.drawing

    def _title(self):
        n, k = len(self.wiring.gpus), len(self.used)
        return (f'{k}{f" of {n}" * (k < n)} {self.machine.gpu.name}; '
                f'{self.machine.rates} rates, each way')

    def _path(self, path, stroke, width, dash=''):
        dash = f' stroke-dasharray="{dash}"' if dash else ''
        self.drawing.add(f'<path d="{path}" fill="none" stroke="{stroke}" '
                         f'stroke-width="{width:g}"{dash}/>')

    def _between_sockets(self):
        """One line along the edge and from frame to frame."""
        known = [socket for socket in self.sockets if socket.known]
        if len(known) < 2:
            return
        y = [self._y(row, PAD + BAR / 2) for row in range(len(self.rows))]
        ends = [max(x for x, socket in zip(self.lefts, self.sockets)
                    if socket in row and socket.known) for row in self.rows
                if any(socket.known for socket in row)]
        points = [(ends[0] + 20, y[0]), (5, y[0])]
        if len(ends) > 1:
            points += [(5, y[1]), (ends[1] + 20, y[1])]
        self.drawing.line(*points, stroke=FRAME, width=4)

    def _socket(self, socket, row, left):
        wide = socket.columns * self.pitch + 2 * PAD
        self.drawing.box(left, self._y(row, 0, self.high), wide, self.high,
                         fill=PALE, dashed=not socket.known)
        x = left + PAD
        for group in socket.groups:
            self._group(socket, group, row, x)
            x += group.columns * self.pitch
        name = f'CPU {socket.name}'
        if width_of(name, 12) > wide - 2 * PAD - 4:
            name = name.replace('socket ', '')
        self.drawing.box(left + PAD, self._y(row, PAD, BAR), wide - 2 * PAD,
                         BAR, name, 'white', 12, dashed=not socket.known)

    def _group(self, socket, group, row, x):
        wide, cpu = group.columns * self.pitch, PAD + BAR
        if group.switch:
            name = group.switch
            if width_of(name, SMALL) > wide - 8:
                name = 'PCIe'
            up = x + 5 if group.cards else x + wide / 2
            self._slot(up, row, cpu, self.switch_y, not socket.known)
            for k, card in enumerate(group.cards):
                middle = x + wide * (k + 0.5) / len(group.cards)
                self._slot(middle, row, cpu + 12 + CARD, self.switch_y)
                self._card(card, middle, row, cpu + 8)
            for i in group.gpus:
                self._slot(self.at[i][0], row, self.switch_y, self.gpu_y)
            self.drawing.box(
                x + 2, self._y(row, self.switch_y, BAR), wide - 4, BAR, name,
                'white', SMALL)
            return
        for i in group.gpus:
            self._slot(self.at[i][0], row, cpu, self.gpu_y,
                       i in socket.hidden)
        for k, card in enumerate(group.cards):
            self._slot(x + wide / 2, row, cpu, cpu + 8, not socket.known)
            self._card(card, x + wide / 2, row, cpu + 8 + CARD * k)

    def _slot(self, x, row, start, end, unknown=False):
        self.drawing.line((x, self._y(row, start)), (x, self._y(row, end)),
                          dashed=unknown)

    def _card(self, name, middle, row, y):
        wide = width_of(name, SMALL) + 6
        self.drawing.box(middle - wide / 2, self._y(row, y, CARD), wide, CARD,
                         name, 'white', SMALL)

    def _gpu(self, i, x, row):
        wide, name = min(self.pitch - 4, 60), f'GPU {self.wiring.gpus[i]}'
        if width_of(name, 13, True) > wide - 4:
            name = name.removeprefix('GPU ')
        used = i in self.used
        y = self._y(row, self.gpu_y, BOX)
        self.drawing.box(x - wide / 2, y, wide, BOX,
                         fill=GPU if used else 'white', dashed=not used,
                         stroke=INK if used else FAINT)
        self.drawing.text(x, y + BOX / 2, name, 13, bold=used,
                          fill=INK if used else FAINT_WORDS)

    def _nvlinks(self):
        if self.machine.switched:
            self._nvswitch()
        ends = self._ends()
        labels = []
        for k, (pair, count, ring, deep) in enumerate(self.strands):
            (x, y, down), (x2, y2, down2) = (ends[i, k] for i in pair)
            if down != down2:
                deep = 0.5 * self.gap
            path = (f'M{x:.4g} {y:.4g}C{x:.4g} {y + down * deep:.4g} '
                    f'{x2:.4g} {y2 + down2 * deep:.4g} {x2:.4g} {y2:.4g}')
            self._path(path, *self._look(pair, count, ring))
            if count > 1:
                labels.append(((x + x2) / 2, (y + y2) / 2 + 0.375 * deep * (
                    down + down2), count, pair))
        for x, y, count, pair in labels:
            used = {*pair} <= {*self.used}
            self.drawing.text(x, y, count, 13, bold=True, plate=True,
                              fill=INK if used else FAINT_WORDS)

    def _look(self, pair, count, ring):
        """Colour, width and pattern of a line."""
        width = 7 if count > 1 else 2.5
        if not {*pair} <= {*self.used}:
            return FAINT, width / 2
        if ring is None:
            return FRAME if not self.rings else '#999', width
        return _of_ring(ring, width + 0.5)

    def _ends(self):
        """{(GPU, number of a strand): (x, y, 1 for down or -1 for up)}.

        At each GPU, lines stand in an order in which few of them cross.
        """
        touching: dict[int, list] = {i: [] for i in self.at}
        for k, (pair, *_) in enumerate(self.strands):
            for i, j in (pair, pair[::-1]):
                (x, row), (x2, row2) = self.at[i], self.at[j]
                order = ((1 / (x2 - x), -k if x2 > x else k) if row == row2
                         else ((x2 - x) * 1e-9, k))
                touching[i].append((order, k))
        ends = {}
        for i, strands in touching.items():
            x, row = self.at[i]
            wide = min(self.pitch - 4, 60) - 8
            step = min(6, wide / max(1, len(strands) - 1))
            for slot, (_, k) in enumerate(sorted(strands)):
                ends[i, k] = (x + step * (slot - (len(strands) - 1) / 2),
                              self._y(row, self.gpu_y + BOX), 1 - 2 * row)
        return ends

    def _nvswitch(self):
        top = self._y(0, self.high) + 24
        for i, (x, row) in self.at.items():
            used = i in self.used
            self.drawing.line((x, self._y(row, self.gpu_y + BOX)),
                              (x, top + BAR / 2), width=7 if used else 3,
                              stroke=FRAME if used else FAINT)
        label = f'NVSwitch: {several(self.machine.switched, "NVLink")} each'
        self.drawing.box(EDGE, top, self.width - 2 * EDGE, BAR, label,
                         'white', 13, stroke=INK)

    def _legend(self):
        """[(colour, width and pattern of a sample, lines of words), ...]"""
        def entry(stroke, width, dash, text):
            entries.append((stroke, width, dash, wrapped(
                text, 13, self.width - 2 * EDGE - 46)))
        entries: list = []
        machine = self.machine
        known = [socket for socket in self.sockets if socket.known]
        if machine.switched:
            entry(FRAME, 7, '', f'{several(machine.switched, "NVLink")} of '
                  + _rate(machine.nvlink))
        if self.strands:
            many = any(count > 1 for _, count, *_ in self.strands)
            entry(FRAME, 7 if many else 2.5, '', 'one NVLink: '
                  + _rate(machine.nvlink)
                  + '; numbers count NVLinks' * many)
        hidden = {i for socket in self.sockets for i in socket.hidden}
        gpus = {i for socket in self.sockets for i in socket.gpus}
        slot = f'PCIe slot: {_rate(machine.slot)}'
        if gpus - hidden or any(socket.cards for socket in self.sockets):
            entry(FRAME, 1.5, '', slot)
            slot = 'PCIe'
        if hidden:
            entry(FRAME, 1.5, '5 4', f'{slot}, by a way not in the table')
        if len(known) > 1:
            kind = SOCKET_OF_PCIE[machine.gpu.pcie]
            entry(FRAME, 4, '', f'between sockets: {_rate(machine.socket)}'
                  + ('' if self.wiring.cpu else f' if the CPUs are {kind}'))
        near = [card for socket in self.sockets for card in socket.cards]
        far = [card for card in self.wiring.cards if card not in near]
        if far:
            entry('none', 0, '', f'on no socket of a GPU: {", ".join(far)}')
        if len(self.used) < len(self.wiring.gpus):
            entry(FAINT, 3, '', 'pale: takes no part')
        for k, (order, count) in enumerate(self.rings):
            entry(*_of_ring(k, 4), f'a ring of {several(count, "NVLink")} '
                  f'per hop: {self._hops_of(order)}')
        return entries

    def _hops_of(self, order):
        gpus = [str(self.machine.gpus[i]) for i in order]
        return ' - '.join([*gpus, gpus[0]])

    def _alt(self):
        """The alternative text."""
        def numbers(group):
            gpus = ', '.join(str(self.wiring.gpus[i]) for i in group.gpus)
            parts = [f'GPU{"s" * (len(group.gpus) > 1)} {gpus}'
                     ] * bool(gpus) + group.cards
            return (f'{group.switch} with ' * bool(group.switch)
                    + ' and '.join(parts))
        told = [f'{self._title()}.']
        if len(self.used) < len(self.wiring.gpus):
            told.append('GPUs that take part: '
                        + ', '.join(map(str, self.machine.gpus)) + '.')
        told += [f'CPU {socket.name}: '
                 + '; '.join(map(numbers, socket.groups)) + '.'
                 for socket in self.sockets]
        if self.machine.switched:
            told.append(f'{several(self.machine.switched, "NVLink")} from '
                        'each GPU to an NVSwitch.')
        joined = {pair: int(self.wiring.cables[pair])
                  for pair, *_ in self.strands}
        if joined:
            told.append('NVLinks: ' + ', '.join(
                f'{self.wiring.gpus[i]}-{self.wiring.gpus[j]}'
                + (f' ({count})' if count > 1 else '')
                for (i, j), count in joined.items()) + '.')
        told += [' '.join(lines) + '.' for *_, lines in self.legend]
        return ' '.join(told)


def _of_ring(k, width):
    """Colour, width and pattern of the lines of ring k."""
    colors, dashes = len(RING_COLORS), len(DASHES)
    return RING_COLORS[k % colors], width, DASHES[(k + k // colors) % dashes]


def _rate(rate):
    return with_unit(rate, RATES)
