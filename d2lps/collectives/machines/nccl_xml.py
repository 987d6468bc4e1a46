"""Reads a topology in NCCL's XML.

NCCL writes what it found to `NCCL_TOPO_DUMP_FILE`, and reads a file of the
same form from `NCCL_TOPO_FILE`. The PCIe tree, the NVLinks and the kinds of
processors are taken from it. The speeds are not: virtual machines report
wrong ones, and files that are given to NCCL say what it shall believe.
"""
import io
import re
from functools import partial
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from d2lps.checks import checked, shown
from d2lps.collectives.machines.nvidia_smi import MOST_GPUS
from d2lps.collectives.machines.posts import posted
from d2lps.collectives.machines.rates import GPUS
from d2lps.collectives.machines.wiring import Wiring

MOST_TEXT = 2_000_000  # characters
MOST_CARDS = 512
MOST_DEPTH = 64  # elements inside elements
MOST_PARTS = 10_000  # elements
NVSWITCH, GPU_CLASSES, CARD_CLASS = '0x0680', ('0x0302', '0x0300'), '0x02'
NVIDIA = '0x10de'

# GPUs by their PCI device number (The PCI ID Repository, vendor 10de) ...
DEVICES = {
    0x102d: 'K80', 0x15f7: 'P100', 0x15f8: 'P100', 0x15f9: 'P100',
    0x1b38: 'P40', 0x1db1: 'V100', 0x1db4: 'V100', 0x1db5: 'V100',
    0x1db6: 'V100', 0x1db8: 'V100', 0x1df6: 'V100S', 0x1eb8: 'T4',
    0x20b0: 'A100', 0x20b2: 'A100', 0x20b5: 'A100', 0x20f1: 'A100',
    0x20b7: 'A30', 0x20f3: 'A800', 0x20f5: 'A800', 0x2235: 'A40',
    0x2230: 'A6000', 0x2236: 'A10', 0x2237: 'A10G', 0x2204: 'RTX 3090',
    0x26b5: 'L40', 0x26b9: 'L40S', 0x27b8: 'L4', 0x26b1: 'RTX 6000 ADA',
    0x2684: 'RTX 4090', 0x2321: 'H100', 0x2330: 'H100', 0x2331: 'H100',
    0x2322: 'H800', 0x2324: 'H800', 0x2329: 'H20', 0x2335: 'H200',
    0x233b: 'H200', 0x2342: 'GH200', 0x2901: 'B200', 0x2941: 'GB200',
    0x2b85: 'RTX 5090'}
# ... or, less surely, by compute capability.
BY_SM = {60: 'P100', 70: 'V100', 80: 'A100', 86: 'A40', 90: 'H100',
         100: 'B200', 103: 'B300'}
INTEL = {85: 'Skylake', 143: 'Sapphire Rapids'}  # models of family 6
# NCCL adds the extended family wrongly in some versions: 143 is Zen 2 (23).
ZEN = {23, 25, 26, 143, 175, 191}
# PCIe generations by GT/s.
GENERATIONS = {'2.5': 1, '5': 2, '8': 3, '16': 4, '32': 5, '64': 6}


class _Device(NamedTuple):
    """A GPU or a card, with the elements above it, the CPU first."""
    element: ElementTree.Element
    above: tuple[ElementTree.Element, ...]


@checked(text=partial(posted, most=MOST_TEXT, example='<system ...>'))
def read_xml(text: str) -> Wiring:
    """The wiring in a file of NCCL: a dump of it, or one given to it.

    text: the XML, with whatever stands around its <system>.

    Raises ValueError for a text that is no such XML, is cut off, names no
    GPU, or contradicts itself; it says where.
    """
    notes: list[str] = []
    gpus, cards = _devices(_system(text), notes)
    buses = _buses(gpus)
    numbers = _numbers(gpus)
    kind = _kind(gpus, notes)
    cables, switched = _nvlinks(gpus, buses, numbers, notes)
    _unbelieved(gpus, kind, notes)
    # A dump says all NVLinks; GPUs without any are no question.
    said = any(map(_is_dumped, gpus)) or (
        kind is not None and not GPUS[kind].nvlinks)
    if not said:
        notes.append('The file does not say which NVLinks its GPUs have: it '
                     'was given to NCCL, which looks for them itself.')
    paths = tuple(tuple(
        '' if i == j or cables[i, j] else _path(a, b)
        for j, b in enumerate(gpus)) for i, a in enumerate(gpus))
    hosts = {_host(gpu) for gpu in gpus}
    if len(hosts) > 1:
        notes.append(f'The file joins {len(hosts)} machines; only NVLinks '
                     'lead from one to another.')
    return Wiring(numbers, cables, switched, paths,
                  {name: tuple(_path(card, gpu) for gpu in gpus)
                   for name, card in _named(cards).items()},
                  _sockets(gpus), kind, _cpu(gpus), tuple(notes), said)


def _system(text):
    """The element <system>; ValueError if there is none, or no whole one."""
    start, end = text.find('<system'), text.rfind('</system>')
    if start < 0:
        raise ValueError("text has no element <system>, with which NCCL's "
                         'topologies begin (NCCL_TOPO_DUMP_FILE)')
    if end < start:
        raise ValueError('text has no </system>: is it cut off?')
    if re.search('<(cpu|pci|gpu)[ >]', text[:start] + text[end:]):
        raise ValueError('text has parts of a topology outside its <system>')
    # What stands before <system> is left out, so the text can define no
    # entities, which may unfold to more than memory holds.
    depth = parts = 0
    source = io.StringIO(text[start:end + len('</system>')])
    try:
        steps = ElementTree.iterparse(source, ['start', 'end'])
        for event, element in steps:
            depth += 1 if event == 'start' else -1
            parts += 1
            if depth > MOST_DEPTH or parts > 2 * MOST_PARTS:
                raise ValueError(
                    'text must be XML of NCCL, with at most '
                    f'{MOST_DEPTH} elements inside each other and '
                    f'{MOST_PARTS:,} in all')
    except ElementTree.ParseError as error:
        raise ValueError(f'text is no good XML after its <system>: {error}; '
                         'is it cut off, or are there two?') from None
    return element


def _devices(system, notes):
    """The GPUs and network cards, in the text's order."""
    gpus, cards, chips = [], [], []
    stack = [(cpu, ()) for cpu in reversed(system)]
    while stack:
        element, above = stack.pop()
        if element.tag in ('pci', 'nic') and not above or (
                element.tag == 'cpu' and above):
            raise ValueError(f'<{element.tag}> stands in a wrong place: '
                             'each <cpu> is in <system>, and all else in a '
                             '<cpu>')
        if element.tag in ('gpu', 'nvlink') and (
                not above or above[-1].tag != {'gpu': 'pci',
                                               'nvlink': 'gpu'}[element.tag]):
            raise ValueError(f'<{element.tag}> stands in a wrong place: a '
                             '<gpu> is in a <pci>, an <nvlink> in a <gpu>')
        kind = element.get('class', '0x')
        if not re.fullmatch('0x[0-9a-fA-F]{0,6}', kind):
            raise ValueError('class in <pci> must be a number such as '
                             f'0x030200; it was {shown(kind)}')
        device = _Device(element, above)
        if element.find('gpu') is not None:
            gpus.append(device)
        elif _is_gpu(element):
            chips.append(device)
        elif element.tag == 'net' or (kind.startswith(CARD_CLASS)
                                      and element.find('.//net') is None):
            cards.append(device)
        stack += [(inner, (*above, element)) for inner in reversed(element)]
    if gpus and chips:
        notes.append(f'{len(chips)} more GPUs stand in the file without a '
                     '<gpu>; they are left out.')
    gpus = gpus or chips
    if not gpus:
        raise ValueError('text names no GPU: no <gpu>, and no <pci> of class '
                         f'{" or ".join(GPU_CLASSES)}; a dump of NCCL '
                         '(NCCL_TOPO_DUMP_FILE) names them')
    if len(gpus) > MOST_GPUS or len(cards) > MOST_CARDS:
        raise ValueError(f'text has {len(gpus)} GPUs and {len(cards)} cards; '
                         f'at most {MOST_GPUS} and {MOST_CARDS} are read')
    return gpus, cards


def _is_gpu(pci):
    return pci.get('class', '').startswith(GPU_CLASSES) and (
        pci.get('vendor', NVIDIA).lower() == NVIDIA)


def _is_dumped(gpu):
    return gpu.element.find('gpu') is not None


def _integer(element, name, default=None):
    """The whole number in an attribute; ValueError for what is none."""
    written = element.get(name)
    if written is None and default is not None:
        return default
    try:
        number = int(written[:20], 0) if written else -1
    except ValueError:
        number = -1
    if not 0 <= number < 1 << 63:
        raise ValueError(f'{name} in <{element.tag}> must be a whole number '
                         f'of 0 or more; it was {shown(written)}')
    return number


def _bus(element):
    """A bus number as the key of a dict: capitals do not matter."""
    return element.get('busid', '').lower()


def _buses(gpus):
    """The place of each GPU, by its bus number."""
    buses: dict[str, int] = {}
    for place, gpu in enumerate(gpus):
        bus = _bus(gpu.element)
        if not re.fullmatch('[0-9a-f:.]{1,20}', bus):
            raise ValueError('busid of each <pci> must be a bus number such '
                             f'as 0000:3b:00.0; it was {shown(bus)}')
        if bus in buses:
            raise ValueError(f'two GPUs have the busid {bus}')
        buses[bus] = place
    return buses


def _numbers(gpus):
    """Their numbers: `dev`, if all differ, or their order in the text."""
    numbers = tuple(_integer(gpu.element.find('gpu'), 'dev', 1 << 62)
                    for gpu in gpus if _is_dumped(gpu))
    good = len({*numbers}) == len(gpus) and max(numbers) < 10_000
    return numbers if good else tuple(range(len(gpus)))


def _nvlinks(gpus, buses, numbers, notes):
    """NVLinks between GPUs, (n, n), and of each to switches, (n,)."""
    n = len(gpus)
    cables, switched = np.zeros((n, n), int), np.zeros(n, int)
    left_out = set()
    for i, gpu in enumerate(gpus):
        name = f'GPU{numbers[i]}'
        for link in gpu.element.iterfind('gpu/nvlink'):
            count = _integer(link, 'count')
            if not 1 <= count < 100:
                raise ValueError(f'count of an <nvlink> of {name} must be 1 '
                                 f'to 99; it was {count}')
            place = buses.get(link.get('target', '').lower())
            if place == i:
                raise ValueError(
                    f'{name} is joined by NVLink to itself: the file invents '
                    'its NVLinks; a dump of NCCL (NCCL_TOPO_DUMP_FILE) has '
                    'the real ones')
            end = _end(link, place is not None, name)
            if end == 'GPU':
                cables[i, place] += count
            elif end == 'switch':
                switched[i] += count
            else:
                left_out.add(end)
    for i, j in np.argwhere(cables != cables.T).tolist():
        raise ValueError(f'GPU{numbers[i]} has {cables[i, j]} NVLinks to '
                         f'GPU{numbers[j]}, which has {cables[j, i]} back')
    if switched.any() and cables.any():
        raise ValueError('the file has NVLinks from GPU to GPU and to '
                         'NVSwitches; no machine has both')
    notes += [f'Some NVLinks lead to {end}; they are left out.'
              for end in sorted(left_out)]
    most = int(switched.max())
    fewer = ', '.join(f'GPU{numbers[i]} has {switched[i]}'
                      for i in np.flatnonzero(switched < most))
    if fewer:
        notes.append(f'{fewer} of the {most} NVLinks to switches that other '
                     'GPUs have: is one broken or switched off?')
    return cables, switched


def _end(link, to_gpu, name):
    """The other end of an NVLink of the GPU with this name.

    Its tclass says it: the PCI class of the device at its other end.
    """
    kind, target = link.get('tclass', ''), link.get('target', '').lower()
    if to_gpu:
        if kind and not kind.startswith('0x03'):
            raise ValueError(f'tclass of the <nvlink> to {target}, a GPU, '
                             f'must be 0x030200; it was {shown(kind)}')
        return 'GPU'
    if kind in ('0x068001', '0x06'):
        return 'a CPU'
    # Without a tclass, what has a bus number and is no GPU is a switch.
    if kind.startswith(NVSWITCH) or not kind and re.fullmatch(
            '[0-9a-f]+:[0-9a-f:.]+', target):
        return 'switch'
    if kind.startswith('0x03'):
        return 'GPUs that are not in the file'
    raise ValueError(f'an <nvlink> of {name} leads to {shown(target)} of '
                     f'tclass {shown(kind)}: neither a GPU of the file nor an '
                     'NVSwitch (0x068000)')


def _path(a, b):
    """The way between two devices over PCIe: one of `wiring.PATHS`, or ''."""
    if _host(a) != _host(b):
        return ''
    if a.above[0] is not b.above[0]:
        return 'SYS'
    common = [x for x, y in zip(a.above, b.above) if x is y]
    if common[-1].tag == 'cpu':
        return 'PHB'
    # A card's port stands in its <nic>, in its <pci>.
    below = [[x for x in device.above[len(common):] if x.tag == 'pci']
             for device in (a, b)]
    ports = [len(way) - (device.element.tag == 'net')
             for way, device in zip(below, (a, b))]
    return 'PIX' if max(ports) <= 0 else 'PXB'


def _host(device):
    return device.above[0].get('host_hash', '')


def _sockets(gpus):
    """The number of the CPU (NUMA node) of each GPU, and its machine's."""
    found: dict[tuple[str, str], ElementTree.Element] = {}
    sockets = []
    for gpu in gpus:
        cpu = gpu.above[0]
        node = _host(gpu), cpu.get('numaid', '')
        if found.setdefault(node, cpu) is not cpu:
            raise ValueError(f'two <cpu> have the numaid {shown(node[1])}')
        sockets.append(' '.join(filter(None, node)) or 'one')
    return tuple(sockets)


def _named(cards):
    """The cards by name: that of <net>, or NIC0, NIC1, ..."""
    named: dict[str, _Device] = {}
    for card in cards:
        name = card.element.get('name', '')
        if not re.fullmatch(r'[\w.+:-]{1,100}', name) or name in (
                *named, 'nvswitch'):  # a `GpuMachine` has a node of that name
            base, number = name[:20], len(named)
            while (name := f'{base} NIC{number}'.strip()) in named:
                number += 1
        named[name] = card
    return named


def _kind(gpus, notes):
    """The kind of the GPUs, or None; by device number, or by `sm`."""
    kinds = set()
    for gpu in gpus:
        pci, inner = gpu.element, gpu.element.find('gpu')
        sm = _integer(inner, 'sm', 0) if inner is not None else 0
        kind = None
        if pci.get('vendor', NVIDIA).lower() == NVIDIA:
            kind = DEVICES.get(_integer(pci, 'device', 0))
        if kind and sm and GPUS[kind].sm != sm:
            raise ValueError(f'device {shown(pci.get("device"))} means '
                             f'{kind}, whose sm is {GPUS[kind].sm}; the file '
                             f'says sm {sm}')
        kinds.add(kind or BY_SM.get(sm))
    if len(kinds) == 1:
        return kinds.pop()
    names = ' and '.join(sorted(filter(None, kinds)))
    notes.append(f'The file names several kinds of GPU ({names}).')
    return None


def _cpu(gpus):
    """The kind of processor, a name of `rates.SOCKETS`, or None."""
    kinds = set()
    for gpu in gpus:
        cpu = gpu.above[0]
        vendor, family, model = (cpu.get(name, '') for name in (
            'vendor', 'familyid', 'modelid'))
        family, model = (int(x) if re.fullmatch(r'\d{1,9}', x) else -1
                         for x in (family, model))
        if vendor == 'GenuineIntel' and family == 6:
            kinds.add(INTEL.get(model))
        else:
            kinds.add('EPYC' if vendor == 'AuthenticAMD' and family in ZEN
                      else None)
    return kinds.pop() if len(kinds) == 1 else None


def _unbelieved(gpus, kind, notes):
    """A note where the file's speed of a slot is not that of the GPU."""
    if kind is None:
        return
    said = set()
    for gpu in gpus:
        for pci in (*gpu.above[1:], gpu.element):
            speed, width = pci.get('link_speed'), pci.get('link_width')
            if speed is None and width is None:
                continue
            number = re.match(r'\d{1,3}(\.\d)?', speed or '')
            rate = f'{float(number[0]):g}' if number else ''
            if GENERATIONS.get(rate) != GPUS[kind].pcie or width != '16':
                said.add(f'{speed or "no speed"}, width {width}')
    if said:
        slots = '; '.join(sorted(said)[:3])
        notes.append(f'The file says of slots: {slots[:200]}. They are taken '
                     f'as PCIe {GPUS[kind].pcie} with 16 lanes, which GPUs of '
                     f'the kind {kind} have.')
