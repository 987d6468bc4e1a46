"""Machines that were posted, drawn; and what they should show, in words."""
import re
from xml.etree import ElementTree

import ipywidgets
import numpy as np
import pandas as pd
import pytest

from d2lps import figures, pictures
from d2lps.collectives.machines.examples import all_alike, posted
from d2lps.collectives.machines.expectation import expected_bandwidth
from d2lps.collectives.machines.gpu_machine import (from_nvidia_smi,
                                                    machine_of)
from d2lps.collectives.machines.wiring import Wiring
from d2lps.collectives.topology import P3_CABLES, rings_of
from d2lps.pictures.drawing import width_of
from d2lps.pictures.drawings.draw_plans import RING_COLORS
from d2lps.pictures.style import BLUE, GRAY
from d2lps.pictures.toys import explore_gpu_machine

SVG = '{http://www.w3.org/2000/svg}'
HALVES = '00001111'


def machine(cables, gpu, sockets, use=None, rates='usable', ways='NODE',
            cards=(), cpu=None):
    """A machine; ways: between GPUs of one socket. cards: one for each pair
    of GPUs, with which it is on a PCIe switch."""
    cables, n = np.asarray(cables), len(cables)

    def way(i, j):
        if i == j or cables[i, j]:
            return ''
        return ways if sockets[i] == sockets[j] else 'SYS'
    return machine_of(Wiring(
        tuple(range(n)), cables, np.zeros(n, int),
        tuple(tuple(way(i, j) for j in range(n)) for i in range(n)),
        {name: tuple(
            'PIX' if i // 2 == k else
            'PHB' if sockets[2 * k:] and sockets[i] == sockets[2 * k]
            else 'SYS'
            for i in range(n)) for k, name in enumerate(cards)},
        tuple(sockets), cpu=cpu), gpu, use, rates)


def full(n, nvlinks):
    """A table as of n GPUs on an NVSwitch."""
    return nvlinks * (1 - np.eye(n, dtype=int))


def pairs(n, nvlinks):
    return np.kron(np.eye(n // 2, dtype=int), full(2, nvlinks))


CARDS = [f'mlx5_{k}' for k in range(4)]


def dgx1(**how):
    return machine(P3_CABLES, 'V100', HALVES, cards=CARDS, **how)


MACHINES = {
    'DGX-1': dgx1(), 'four of a DGX-1': dgx1(use=[4, 5, 6, 7]),
    'HGX': machine(full(8, 12), 'A100', HALVES, cards=CARDS),
    'five of an HGX, no sockets': machine(
        full(8, 18), 'H100', [''] * 8, [0, 1, 2, 3, 4]),
    'pairs': machine(pairs(8, 12), 'A100', HALVES),
    'PCIe only': machine(np.zeros((4, 4), int), 'L40S', '0011', ways='PHB'),
    'one switch': machine(np.zeros((4, 4), int), 'V100', '0000', ways='PIX'),
    'DGX-2': machine(full(16, 6), 'V100', '0' * 8 + '1' * 8,
                     cards=[f'mlx5_{k}' for k in range(8)]),
    'two GPUs': machine(full(2, 3), 'V100', '00'),
    'four NUMA nodes': machine(np.zeros((8, 8), int), 'A10', '00112233',
                               ways='PHB')}


def lines(drawing, color='[^"]*', width='[^"]*'):
    """The patterns of curved lines; '' for a line without."""
    return [dash or '' for dash in re.findall(
        rf'<path d="M[^"]*C[^"]*" fill="none" stroke="{color}" '
        rf'stroke-width="{width}"(?: stroke-dasharray="([^"]*)")?',
        drawing.svg())]


@pytest.mark.parametrize('name', MACHINES)
def test_words_neither_leave_the_picture_nor_hide_each_other(name, readable):
    drawing = pictures.draw_gpu_machine(MACHINES[name])
    readable(drawing)
    assert drawing.width == 460  # a phone shows it as a whole
    places = []
    for text in ElementTree.fromstring(drawing.svg()).iter(f'{SVG}text'):
        size = float(text.get('font-size'))
        wide = width_of(text.text, size, text.get('font-weight') == 'bold')
        x, y = float(text.get('x')), float(text.get('y'))
        x -= wide / 2 * (text.get('text-anchor') == 'middle')
        places.append((x, x + wide, y - 0.8 * size, y))
    for k, (left, right, top, bottom) in enumerate(places):
        assert left > 0 and right < 460
        assert top > 0 and bottom < drawing.height
        assert all(right < x or x2 < left or bottom < y or y2 < top
                   for x, x2, y, y2 in places[:k])


def test_a_dgx1_has_sockets_switches_cards_and_a_line_for_each_nvlink(texts):
    drawing = pictures.draw_gpu_machine(MACHINES['DGX-1'])
    words = texts(drawing)
    assert [word for word in words if word.startswith('GPU')] == [
        f'GPU {i}' for i in range(8)]
    assert {'CPU socket 0', 'CPU socket 1', *CARDS} <= {*words}
    assert words.count('PCIe switch') == 4
    assert len(lines(drawing)) == P3_CABLES.sum() / 2
    assert 'PCIe switch with GPUs 2, 3 and mlx5_1' in drawing.alt
    assert '0-3 (2), 0-4 (2), 1-2 (2), 1-3,' in drawing.alt


def test_a_card_far_from_all_gpus_is_named(texts):
    drawing = pictures.draw_gpu_machine(machine(
        np.zeros((2, 2), int), 'L40S', '00', cards=['near', 'far']))
    assert texts(drawing).count('near') == 1
    assert 'on no socket of a GPU: far' in texts(drawing)


def test_many_nvlinks_are_one_thick_line_with_their_number(texts):
    drawing = pictures.draw_gpu_machine(MACHINES['pairs'])
    assert texts(drawing).count('12') == 4 == len(lines(drawing, width='7'))
    assert 'NVLinks: 0-1 (12), 2-3 (12), 4-5 (12), 6-7 (12).' in drawing.alt


def test_all_gpus_touch_an_nvswitch(texts):
    drawing = pictures.draw_gpu_machine(MACHINES['HGX'])
    assert 'NVSwitch: 12 NVLinks each' in texts(drawing)
    assert lines(drawing) == []
    thick = re.findall(r'd="M(\S+) \S+L\1 \S+" .* stroke-width="7"/>',
                       drawing.svg().replace('>', '>\n'))
    assert len(thick) == 8
    assert '12 NVLinks from each GPU to an NVSwitch' in drawing.alt


def test_rings_have_colours_patterns_and_the_numbers_of_the_text(texts):
    drawing = pictures.draw_gpu_machine(MACHINES['DGX-1'], [
        ([0, 3, 2, 1, 5, 6, 7, 4], 2), ([0, 1, 3, 7, 5, 4, 6, 2], 1)])
    first, second = (lines(drawing, color) for color in RING_COLORS[:2])
    assert first == [''] * 16 and len(second) == 8 and second[0]
    assert len(lines(drawing)) == 24
    part = MACHINES['four of a DGX-1']
    rings = rings_of(part.cables)
    drawing = pictures.draw_gpu_machine(part, rings)
    assert [len(lines(drawing, color)) for color, _ in zip(
        RING_COLORS, rings)] == [4 * count for _, count in rings]
    words = texts(drawing)
    assert [*filter(re.compile('a ring .* per hop: 4 - .* - 4$').match, words)]


def test_two_gpus_have_one_ring_over_all_their_nvlinks():
    drawing = pictures.draw_gpu_machine(MACHINES['two GPUs'], [([0, 1], 3)])
    assert len(lines(drawing, RING_COLORS[0])) == 3 == len(lines(drawing))


def test_gpus_that_take_no_part_are_pale(texts):
    drawing = pictures.draw_gpu_machine(MACHINES['four of a DGX-1'])
    words = texts(drawing)
    assert words[0] == '4 of 8 V100; usable rates, each way'
    assert 'pale: takes no part' in words and 'GPU 0' in words
    pale = re.findall(r'fill="#767676">([^<]*)<', drawing.svg())
    assert pale == ['GPU 0', 'GPU 1', 'GPU 2', 'GPU 3']
    assert 'GPUs that take part: 4, 5, 6, 7.' in drawing.alt
    ours = P3_CABLES[4:, 4:].sum() / 2
    assert len(lines(drawing, width='2.5')) == ours


def test_what_the_text_does_not_say_is_not_drawn_as_known(texts):
    unknown = 'by a way not in the table'

    def told(name):
        drawing = pictures.draw_gpu_machine(MACHINES[name])
        return texts(drawing), drawing.svg().count('stroke-dasharray')
    words, dashed = told('five of an HGX, no sockets')
    assert 'CPU sockets: not in the table' in words
    assert any(unknown in line for line in words)
    assert not any(word.startswith('CPU socket ') for word in words)
    words, dashed = told('pairs')  # is 1 on the switch of 0? NV12 hides it
    assert any(unknown in line for line in words)
    assert dashed == 8 + 1  # and the legend
    for name in 'DGX-1', 'PCIe only', 'one switch':
        words, dashed = told(name)
        assert not any(unknown in line for line in words) and not dashed


def test_known_sockets_are_counted_from_zero_beside_unknown_ones(texts):
    ways = [['' if i == j or max(i, j) < 7 else 'SYS' for j in range(8)]
            for i in range(8)]
    cables = 12 * (np.array(ways) == '') - 12 * np.eye(8, dtype=int)
    drawing = pictures.draw_gpu_machine(machine_of(Wiring(
        tuple(range(8)), cables, np.zeros(8, int),
        tuple(map(tuple, ways)), {}, ('',) * 7 + ('1',)), 'A100'))
    told = drawing.alt
    assert 'sockets: not in the table' in told
    assert 'CPU socket 0: GPU 7' in told


def test_32_gpus_in_one_row_are_wide_enough_for_their_numbers(texts):
    drawing = pictures.draw_gpu_machine(
        from_nvidia_smi(all_alike(32, 6), 'V100'))
    assert {str(k) for k in range(32)} <= {*texts(drawing)}
    boxes = [float(wide) for wide in re.findall(
        r'<rect[^>]* width="([\d.]+)"[^>]*fill="#cfe3f3"', drawing.svg())]
    assert len(boxes) == 32
    assert min(boxes) > width_of('31', 13, True)


@pytest.mark.parametrize('rates, nvlink, slot, between', [
    ('usable', '20', '12', '10'), ('nominal', '25', '15.8', '20.8')])
def test_rates_are_written_at_the_kinds_of_links(texts, rates, nvlink, slot,
                                                 between):
    words = texts(pictures.draw_gpu_machine(dgx1(rates=rates)))
    assert words[0] == f'8 V100; {rates} rates, each way'
    assert f'one NVLink: {nvlink} GB/s' in words
    assert f'PCIe slot: {slot} GB/s' in words
    between = f'between sockets: {between} GB/s'
    assert f'{between} if the CPUs are Skylake' in words
    known = texts(pictures.draw_gpu_machine(dgx1(rates=rates, cpu='Skylake')))
    assert between in known


@pytest.mark.parametrize('one, rings, words', [
    (P3_CABLES, [], 'machine must be a GpuMachine'),
    (MACHINES['DGX-1'], [([0, 7, 1], 1)], '1 NVLink from'),
    (MACHINES['DGX-1'], [([0, 3, 2], 2)], '2 NVLinks from'),
    (MACHINES['HGX'], [([0, 1, 2], 1)], 'not there'),
    (MACHINES['DGX-1'], [3], r'rings\[0\] must be a pair'),
    (MACHINES['DGX-1'], [([], 1)], r'rings\[0\]\[0\] is too short'),
    (MACHINES['DGX-1'], [([0], 1)], r'rings\[0\]\[0\] is too short'),
    (MACHINES['DGX-1'], [(5, 1)], r'rings\[0\]\[0\] must be a list'),
    (MACHINES['DGX-1'], [([0, 'a'], 1)], r'rings\[0\]\[0\]\[1\] must'),
    (MACHINES['DGX-1'], [([0, 3, 0], 1)], 'must be different devices'),
    (MACHINES['DGX-1'], [([0, 3], 0)], r'rings\[0\]\[1\] must'),
    (MACHINES['DGX-1'], [([0, 3], -3)], r'rings\[0\]\[1\] must'),
    (from_nvidia_smi(all_alike(33, 6), 'V100'), [], 'from 1 to 32')])
def test_a_wrong_argument_is_named(one, rings, words):
    with pytest.raises(ValueError, match=words):
        pictures.draw_gpu_machine(one, rings)


# Toys.
def test_each_choice_fits_into_the_same_height():
    for name in explore_gpu_machine.EXAMPLES:
        for use in explore_gpu_machine.CHOICES:
            for measured in 4, 480:
                row = explore_gpu_machine.draw_example(name, use, measured)
                assert [one.height for one in row.pictures] == [
                    explore_gpu_machine.HIGH] * 2, (name, use, measured)


def test_it_begins_with_a_dgx1_that_is_healthy(shown):
    pictures.explore_gpu_machine()
    told = shown[-1].alt
    assert told.startswith('8 V100;')
    assert 'per hop: 0 - ' in told and 'Measured: healthy: ' in told
    boxes = {box.description: box for box in shown[0].children}
    boxes['measured GB/s'].value = 40
    assert 'Measured: below: 40 GB/s' in shown[-1].alt
    boxes['GPUs that take part'].value = '0 to 4'
    assert 'No ring over direct NVLinks' in shown[-1].alt
    assert 'not predictable' in shown[-1].alt


@pytest.fixture
def boxes(shown):
    """What one types in, by its description, of `ask_gpu_machine`."""
    pictures.ask_gpu_machine()
    return {box.description: box for box in shown[0].children
            if isinstance(box, ipywidgets.ValueWidget)}


def test_one_asks_with_a_table_and_the_picture_follows(shown, boxes):
    assert shown[-1].alt.startswith('8 V100;')
    boxes['GPUs that take part'].value = '0, 1'
    assert shown[-1].alt.startswith('2 of 8 V100;')
    boxes['GPUs that take part'].value = ''
    boxes['GPU'].value = 'A100'
    boxes['nvidia-smi topo -m'].value = 'GPU0 X NV12\nGPU1 NV12 X'
    assert shown[-1].alt.startswith('2 A100;')
    boxes['cards of each'].value, boxes['Gbit/s of a card'].value = 1, 100
    boxes['machines'].value = 2
    assert 'One ring through all 4 GPUs' in shown[-1].alt


@pytest.mark.parametrize('box, value, words', [
    ('nvidia-smi topo -m', 'hello', 'text has no table'),
    ('nvidia-smi topo -m', 'GPU0 X NV1\nGPU1 SYS X', 'GPU'),
    ('GPU', None, 'does not say which GPU'), ('GPU', 'L40S', 'NV2'),
    ('GPUs that take part', '0, 9', 'use must be'),
    ('GPUs that take part', 'two', "such as 0,1,2 or 0-3; it was 'two'"),
    ('machines', 2, 'cards'), ('log of nccl-tests', 'hello', '')])
def test_what_is_wrong_stands_in_place_of_the_picture(shown, boxes, readable,
                                                      box, value, words):
    boxes[box].value = value
    readable(shown[-1])
    assert re.match(f'This cannot be answered: .*{words}', shown[-1].alt)


def test_a_range_of_gpus_takes_part_as_in_the_command(shown, boxes):
    boxes['GPUs that take part'].value = '0-3'
    assert shown[-1].alt.startswith('4 of 8 V100;')


def posted_log(gpu, last=''):
    """A log of nccl-tests on eight GPUs, up to 4 GiB at 130 GB/s."""
    ranks = [f'#  Rank {k} Group 0 Pid 9 on host device {k} [0x{k}a] {gpu}'
             for k in range(8)]
    rows = []
    for size in 1 << 20, 1 << 30, 4 << 30:
        time = size * 1.75 / 130e3
        out = f'{time:.1f} {130 / 1.75:.2f} 130.00 0 '
        rows.append(f'{size} {size // 4} float sum -1 {out}{out}')
    return '\n'.join([*ranks, *rows, last])


def test_a_log_is_judged_and_what_it_lacks_is_noted(shown, boxes, readable):
    boxes['log of nccl-tests'].value = posted_log(
        'Tesla V100-SXM2-32GB', '8589934592 214')
    told = shown[-1].alt
    assert 'Measured: healthy: 130 GB/s is in the range' in told
    assert 'Note: The last row (line 12) is cut off, and left out.' in told
    assert '130 GB/s at 4 GiB' in told
    assert len(shown[-1].pictures) == 3


def test_a_log_of_another_gpu_is_refused_or_says_which_it_is(shown, boxes):
    boxes['log of nccl-tests'].value = posted_log('NVIDIA A100-SXM4-40GB')
    assert re.match('This cannot be answered: .* A100 .* V100', shown[-1].alt)
    boxes['GPU'].value = None
    boxes['nvidia-smi topo -m'].value = posted('NVSwitch', 8, 12)
    assert shown[-1].alt.startswith('8 A100;')
    assert 'Measured: below: 130 GB/s' in shown[-1].alt


def test_of_72_gpus_one_reads_words_alone(shown, boxes, readable):
    boxes['GPU'].value = 'GB200'
    boxes['nvidia-smi topo -m'].value = posted('NVSwitch', 72, 18)
    [words] = shown[-1].pictures
    readable(words)
    assert words.alt.startswith('Expected bus bandwidth: ')
    assert 'Machines of more than 32 GPUs are not drawn' in words.alt


def test_numbers_are_written_without_powers(shown, boxes):
    boxes['GPU'].value = 'GB200'
    boxes['nvidia-smi topo -m'].value = posted('NVSwitch', 16, 18)
    told = shown[-1].alt
    assert re.search(r'Expected bus bandwidth: \d+ to \d+ GB/s', told)
    assert not re.search(r'\de\+', told)
    found = expected_bandwidth(
        from_nvidia_smi(*explore_gpu_machine.EXAMPLES[EIGHT]))
    ax = pictures.plot_expected(found, pd.DataFrame(
        {'size': [1000 << 20, 8 << 30], 'busbw': [1864e9, 1864e9]}))
    assert '1,860 GB/s at 1,000 MiB' in figures.alt_text(ax.figure)


def log(peak):
    """A table like that of `read_nccl_tests`, up to 4 GiB."""
    size = 2.0 ** np.arange(10, 33)
    return pd.DataFrame({'size': size,
                         'busbw': peak * size / (size + 4e6)})


EIGHT = 'HGX, 8 A100 and NVSwitch'


def test_a_log_is_drawn_over_the_range(readable):
    found = expected_bandwidth(
        from_nvidia_smi(*explore_gpu_machine.EXAMPLES[EIGHT]))
    ax = pictures.plot_expected(found, log(230e9))
    readable(ax)
    assert ax.get_title('left') == 'healthy: 230 GB/s is in the range'
    [band] = ax.patches
    ends = ax.transData.inverted().transform(band.get_extents())[:, 1]
    assert [*ends] == pytest.approx([found.low / 1e9, found.high / 1e9])
    [line] = ax.lines
    assert max(line.get_ydata()) == pytest.approx(230, rel=0.01)
    assert {'1 KiB', '1 MiB', '1 GiB'} <= {
        label.get_text() for label in ax.get_xticklabels()}
    told = figures.alt_text(ax.figure)
    assert 'Expected: 216 to 278 GB/s' in told and 'at 4 GiB' in told


def test_it_is_drawn_where_one_says_and_a_bad_number_is_called_so():
    found = expected_bandwidth(
        from_nvidia_smi(*explore_gpu_machine.EXAMPLES[EIGHT]))
    ax = pictures.plot_expected(found, log(230e9))
    assert pictures.plot_expected(found, log(20e9), ax=ax) is ax
    assert 'below: 20 GB/s is 91% below the range' in (
        ax.get_title('left').replace('\n', ' '))
    with pytest.raises(ValueError, match='no busbw'):
        pictures.plot_expected(found, log(1e9)[['size']])


def test_a_ring_over_cables_has_as_many_lines_as_it_takes():
    cables, ring = 2 * (1 - np.eye(3, dtype=int)), ([0, 1, 2], 1)
    svg = pictures.draw_cables(cables, [ring]).svg()
    lines = re.findall('<path [^>]*stroke="([^"]*)"', svg)
    assert sorted(lines) == sorted(3 * [BLUE, GRAY])
    for table, rings in (0 * cables, [ring]), (cables, 3 * [ring]), (
            cables, [([0, 3], 1)]), (cables, [([0, 1, 0, 2], 1)]):
        with pytest.raises(ValueError, match=r'^rings(\[0\])?'):
            pictures.draw_cables(table, rings)
