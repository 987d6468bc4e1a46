"""Topologies in NCCL's XML: dumps of what it found, and files given to it."""
import numpy as np
import pytest
from d2lps.collectives.machines.nccl_xml import MOST_TEXT, read_xml
from d2lps.collectives.machines.rates import GPUS, SOCKETS

INTEL = 'vendor="GenuineIntel" familyid="6" modelid="85"'
SWITCHES = [('f0', 5, '0x068000'), ('f1', 4, '0x068000'),
            ('f2', 5, '0x068000'), ('f3', 4, '0x068000')]


def gpu(k, links=(), sm=70, device='0x1db1', slot='8.0 GT/s PCIe', width=16,
        dev=None):
    inside = ''.join(f'<nvlink target="0000:{bus}:00.0" count="{count}" '
                     f'tclass="{kind}"/>' for bus, count, kind in links)
    return (f'<pci busid="0000:0{k}:00.0" class="0x030200" vendor="0x10de" '
            f'device="{device}" link_speed="{slot}" link_width="{width}">'
            f'<gpu dev="{k if dev is None else dev}" sm="{sm}" rank="{k}" '
            f'gdr="1">{inside}</gpu></pci>')


def chip(k, kind='class="0x030200"', speed='8 GT/s'):
    """A GPU in a file that is given to NCCL."""
    return (f'<pci busid="0000:1{k}:00.0" {kind} link_speed="{speed}" '
            'link_width="16"/>')


def to(*others):
    return [(f'0{other}', count, '0x030200') for other, count in others]


def card(bus, *ports):
    nets = ''.join(f'<net name="{port}" dev="0" speed="100000"/>'
                   for port in ports)
    return (f'<pci busid="0000:{bus}:00.0" class="0x020000" vendor="0x15b3">'
            f'<nic>{nets}</nic></pci>')


def switch(bus, *below):
    return (f'<pci busid="0000:{bus}:00.0" class="0x060400">{"".join(below)}'
            '</pci>')


def system(*cpus, kind=INTEL):
    inside = ''.join(f'<cpu numaid="{k}" affinity="ff" arch="x86_64" {kind}>'
                     f'{"".join(cpu)}</cpu>' for k, cpu in enumerate(cpus))
    return f'<system version="1">{inside}</system>'


FOUR = system(
    [switch('a1', gpu(0, to((1, 2), (2, 1))), card('c1', 'mlx5_0')),
     switch('a2', gpu(1, to((0, 2), (3, 1))))],
    [switch('a3', gpu(2, to((3, 2), (0, 1))), gpu(3, to((2, 2), (1, 1)))),
     card('c2', 'mlx5_1', 'mlx5_2')])


def test_nvlinks_paths_cards_and_sockets():
    wiring = read_xml(FOUR)
    assert wiring.gpus == (0, 1, 2, 3)
    np.testing.assert_array_equal(wiring.cables, [
        [0, 2, 1, 0], [2, 0, 0, 1], [1, 0, 0, 2], [0, 1, 2, 0]])
    assert not wiring.switched.any()
    assert wiring.paths == (('', '', '', 'SYS'), ('', '', 'SYS', ''),
                            ('', 'SYS', '', ''), ('SYS', '', '', ''))
    assert wiring.cards == {'mlx5_0': ('PIX', 'PHB', 'SYS', 'SYS'),
                            'mlx5_1': ('SYS', 'SYS', 'PHB', 'PHB'),
                            'mlx5_2': ('SYS', 'SYS', 'PHB', 'PHB')}
    assert wiring.sockets == ('0', '0', '1', '1')
    assert (wiring.gpu, wiring.cpu, wiring.notes) == ('V100', 'Skylake', ())
    assert wiring.nvlinks_said


def test_nvlinks_to_switches_are_counted():
    """Eight H100, each with 18 NVLinks to four NVSwitches."""
    wiring = read_xml(system(*(
        [switch(f'a{k}', gpu(k, SWITCHES, 90, '0x2330', '32.0 GT/s PCIe'))
         for k in half] for half in (range(4), range(4, 8)))))
    assert wiring.switched.tolist() == [18] * 8
    assert not wiring.cables.any()
    assert (wiring.gpu, wiring.notes) == ('H100', ())
    # Both are known here: the NVLinks, and the way over PCIe.
    assert wiring.paths[0] == ('', 'PHB', 'PHB', 'PHB', *['SYS'] * 4)


def test_paths_over_pcie():
    plain = dict(sm=89, device='0x26b9', slot='16.0 GT/s PCIe')
    wiring = read_xml(system(
        [switch('a1', switch('a2', gpu(0, **plain), gpu(1, **plain)),
                switch('a3', gpu(2, **plain), card('c1', 'ib0'))),
         gpu(3, **plain), '<nic><net name="eth0"/></nic>'],
        [gpu(4, **plain)]))
    assert wiring.paths == (('', 'PIX', 'PXB', 'PHB', 'SYS'),
                            ('PIX', '', 'PXB', 'PHB', 'SYS'),
                            ('PXB', 'PXB', '', 'PHB', 'SYS'),
                            ('PHB', 'PHB', 'PHB', '', 'SYS'),
                            ('SYS', 'SYS', 'SYS', 'SYS', ''))
    assert wiring.cards == {'ib0': ('PXB', 'PXB', 'PIX', 'PHB', 'SYS'),
                            'eth0': ('PHB',) * 4 + ('SYS',)}
    assert (wiring.gpu, wiring.notes) == ('L40S', ())
    assert not wiring.cables.any()


def test_cards_have_names_of_their_own():
    wiring = read_xml(system([gpu(0), card('c1', 'ib0', 'ib0', 'nvswitch'),
                              card('c2', '', 'cpu 0')]))
    assert [*wiring.cards] == ['ib0', 'ib0 NIC1', 'nvswitch NIC2', 'NIC3',
                               'cpu 0 NIC4']
    wiring = read_xml(system([gpu(0), card('c1', 'NIC1', '', '')]))
    assert [*wiring.cards] == ['NIC1', 'NIC2', 'NIC3']


def test_a_link_without_tclass_leads_to_a_gpu_or_a_switch():
    bare = FOUR.replace(' tclass="0x030200"', '')
    np.testing.assert_array_equal(read_xml(bare).cables, read_xml(FOUR).cables)
    switched = system([gpu(0, [('f0', 6, '')]), gpu(1, [('f0', 6, '')])])
    assert read_xml(switched).switched.tolist() == [6, 6]


def test_capital_letters_in_bus_numbers_do_not_matter():
    text = FOUR.replace('0000:0', '0000:a').replace(
        'busid="0000:a', 'busid="0000:A')
    np.testing.assert_array_equal(read_xml(text).cables, read_xml(FOUR).cables)


@pytest.mark.parametrize(('devs', 'numbers'), [
    ((4, 5, 6, 7), (4, 5, 6, 7)), ((2, 3, 0, 1), (2, 3, 0, 1)),
    ((0, 0, 0, 0), (0, 1, 2, 3))])
def test_gpus_have_the_numbers_of_the_file_where_they_differ(devs, numbers):
    wiring = read_xml(system([gpu(k, dev=dev) for k, dev in enumerate(devs)]))
    assert wiring.gpus == numbers


@pytest.mark.parametrize(('sm', 'device', 'kind'), [
    (60, '0x15f9', 'P100'), (60, '0x0', 'P100'), (70, '0x0', 'V100'),
    (80, '0x20b0', 'A100'), (80, '0x20B7', 'A30'), (80, '0x0', 'A100'),
    (86, '0x2235', 'A40'), (86, '0x2204', 'RTX 3090'), (86, '0x0', 'A40'),
    (90, '0x2335', 'H200'), (90, '0x0', 'H100'), (100, '0x2901', 'B200'),
    (103, '0x0', 'B300'), (35, '0x0', None)])
def test_the_kind_of_gpu_is_its_device_or_its_sm(sm, device, kind):
    wiring = read_xml(system([gpu(k, sm=sm, device=device) for k in (0, 1)]))
    assert wiring.gpu == kind
    assert kind is None or kind in GPUS


@pytest.mark.parametrize(('cpu', 'kind'), [
    (INTEL, 'Skylake'), (INTEL.replace('85', '143'), 'Sapphire Rapids'),
    (INTEL.replace('85', '106'), None), (INTEL.replace('6"', 'six"'), None),
    ('vendor="AuthenticAMD" familyid="23" modelid="49"', 'EPYC'),
    ('vendor="AuthenticAMD" familyid="175" modelid="1"', 'EPYC'), ('', None),
    ('vendor="IBM"', None),
    ('vendor="GenuineIntel" familyid="15" modelid="85"', None)])
def test_the_processor_is_known_where_it_is_sure(cpu, kind):
    assert read_xml(system([gpu(0), gpu(1)], kind=cpu)).cpu == kind
    assert kind is None or kind in SOCKETS


@pytest.mark.parametrize(('slot', 'width'), [
    ('2.5 GT/s PCIe', 1), ('8.0 GT/s PCIe', 0), ('16 GT/s', 16), ('', 0)])
def test_speeds_of_slots_that_are_not_to_be_believed_are_said(slot, width):
    wiring = read_xml(system([gpu(0, slot=slot, width=width), gpu(1)]))
    assert len(wiring.notes) == 1
    assert f'width {width}. They are taken as PCIe 3' in wiring.notes[0]


def test_a_file_given_to_nccl_does_not_say_its_nvlinks():
    for kind in ('class="0x030200"', 'class="0x030000" vendor="0x10de"'):
        wiring = read_xml(system(
            [switch('a1', chip(0, kind), chip(1, kind),
                    '<pci busid="0000:1b:00.0" class="0x020700"/>')],
            [switch('a2', chip(2, kind), chip(3, kind))]))
        assert wiring.gpus == (0, 1, 2, 3)
        assert wiring.paths[0] == ('', 'PIX', 'SYS', 'SYS')
        assert wiring.cards == {'NIC0': ('PIX', 'PIX', 'SYS', 'SYS')}
        assert wiring.gpu is None
        assert 'does not say which NVLinks' in wiring.notes[0]
        assert not wiring.nvlinks_said
    kind = 'class="0x030200" vendor="0x10de" device="0x20b0"'
    wiring = read_xml(system([chip(0, kind), chip(1, kind)]))
    assert (wiring.gpu, wiring.nvlinks_said) == ('A100', False)


def test_no_note_about_nvlinks_where_the_gpus_have_none():
    kind = 'class="0x030200" vendor="0x10de" device="0x26b9"'
    wiring = read_xml(system([chip(k, kind, '16 GT/s') for k in range(4)]))
    assert (wiring.gpu, wiring.notes) == ('L40S', ())
    assert wiring.nvlinks_said


def test_chips_of_other_makers_are_no_gpus():
    other = 'class="0x030000" vendor="0x1a03"'  # the screen of a server
    assert read_xml(system([chip(1, other), gpu(0)])).gpus == (0,)
    with pytest.raises(ValueError, match='names no GPU'):
        read_xml(system([chip(1, other)]))


def test_gpus_that_did_not_take_part_are_left_out():
    wiring = read_xml(system([gpu(0, to((1, 2), (7, 1))), gpu(1, to((0, 2))),
                              chip(5)]))
    assert wiring.gpus == (0, 1)
    assert 'not in the file' in wiring.notes[1]


@pytest.mark.parametrize(('text', 'note'), [
    (system([gpu(0, [('f0', 3, '0x068001')]), gpu(1)]), 'lead to a CPU'),
    (system([gpu(0, SWITCHES), gpu(1), gpu(2, SWITCHES)]),
     'GPU1 has 0 of the 18 NVLinks'),
    (system([gpu(0), chip(5)]), '1 more GPUs stand'),
    (system([gpu(0), gpu(1, sm=80, device='0x20b0')]), 'A100 and V100')])
def test_what_is_odd_is_said(text, note):
    assert note in ' '.join(read_xml(text).notes)


def test_several_machines_in_one_file():
    one, two = (f'<cpu numaid="0" host_hash="0x{k}">' + ''.join(
        gpu(k + j, SWITCHES, dev=j, slot='8 GT/s') for j in (0, 1)) + '</cpu>'
        for k in (1, 3))
    wiring = read_xml(f'<system version="1">{one}{two}</system>')
    assert wiring.paths[0] == ('', 'PHB', '', '')
    assert wiring.gpus == (0, 1, 2, 3)
    assert len({*wiring.sockets}) == 2
    assert 'joins 2 machines' in wiring.notes[0]


@pytest.mark.parametrize('around', [
    '{}', '<?xml version="1.0" encoding="UTF-8"?>\n{}', 'Mine:\n```xml\n{}```',
    '<!-- a comment -->\n{}\n', '\ufeff{}', '$ cat topo.xml\n{}\n$'])
def test_what_stands_around_the_file(around):
    for text in (FOUR, FOUR.replace('><', '>\r\n  <')):
        wiring = read_xml(around.format(text))
        np.testing.assert_array_equal(wiring.cables, read_xml(FOUR).cables)


CUT = FOUR[:FOUR.index('</system>')]
REFUSED = {
    'nothing': ('', 'text is empty'),
    'no XML': ('\tGPU0\tGPU1\n', 'no element <system>'),
    'cut off': (CUT, 'no </system>: is it cut off'),
    'cut out of its middle': (FOUR.replace('</pci></cpu>', '', 1),
                              'no good XML .*cut off'),
    'two files': (FOUR + FOUR, 'no good XML .*are there two'),
    'no GPU': (system([card('c1', 'ib0'), '<pci busid="0000:00:16.0"/>']),
               'names no GPU.*NCCL_TOPO_DUMP_FILE'),
    'entities in entities': (
        '<!DOCTYPE a [<!ENTITY b0 "b">' + ''.join(
            f'<!ENTITY b{k} "{f"&b{k - 1};" * 10}">' for k in range(1, 20))
        + ']>' + FOUR.replace('"Genuine', '"&b19;'), 'undefined entity'),
    'entities within': (FOUR.replace('<cpu', '<!DOCTYPE a [<!ENTITY b "c">]>'
                                     '<cpu', 1), 'no good XML'),
    'an unknown entity': (FOUR.replace('GenuineIntel', '&b;'), 'no good XML'),
    'deep': ('<system>' + '<cpu>' * 9000 + '</cpu>' * 9000 + '</system>',
             '64 elements inside'),
    'wide': ('<system>' + '<cpu/>' * 20_000 + '</system>', '10,000 in all'),
    'too long': (FOUR + ' ' * MOST_TEXT, 'characters'),
    'a GPU joined to itself': (
        system([gpu(0, to((0, 2)))]), 'GPU0 .* to itself: the file invents'),
    'NVLinks one way only': (
        system([gpu(0, to((1, 2))), gpu(1)]),
        'GPU0 has 2 NVLinks to GPU1, which has 0 back'),
    'NVLinks to a switch and a GPU': (
        system([gpu(0, [*to((1, 2)), *SWITCHES]), gpu(1, to((0, 2)))]),
        'no machine has both'),
    'an NVLink to something else': (
        system([gpu(0, [('f0', 1, '0x020000')])]), 'neither a GPU'),
    'an NVLink to a number': (
        system([gpu(0), gpu(1)]).replace(
            '</gpu>', '<nvlink target="1" count="4"/></gpu>', 1),
        "leads to '1'"),
    'a GPU called a switch': (FOUR.replace('0x030200"/>', '0x068000"/>'),
                              'tclass .* must be 0x030200'),
    'no count': (FOUR.replace('count="2"', ''), 'count in <nvlink>'),
    'a count of 0': (FOUR.replace('count="2"', 'count="0"'), 'must be 1 to'),
    'a count in words': (FOUR.replace('count="2"', 'count="two"'), "'two'"),
    'a negative count': (FOUR.replace('count="2"', 'count="-2"'), "'-2'"),
    'two GPUs with one bus number': (
        system([gpu(0), gpu(0)]), 'two GPUs have the busid 0000:00:00.0'),
    'a damaged class': (FOUR.replace('0x060400', '0z060400'), '0z060400'),
    'no bus number': (FOUR.replace('busid', 'bus'), 'busid of each <pci>'),
    'two sockets with one number': (FOUR.replace('numaid="1"', 'numaid="0"'),
                                    "two <cpu> have the numaid '0'"),
    'a device of another kind': (
        system([gpu(0, sm=90, device='0x20b0')]), 'means A100, .* sm 90'),
    'sm in words': (FOUR.replace('sm="70"', 'sm="Volta"'), "'Volta'"),
    'GPUs without CPUs': (f'<system>{gpu(0)}</system>', 'wrong place'),
    'a <gpu> in a <cpu>': ('<system><cpu><gpu dev="0"/></cpu></system>',
                           'wrong place'),
    'a <cpu> in a <cpu>': (
        FOUR.replace('</cpu>', '<cpu numaid="2"/></cpu>', 1), 'wrong place'),
    'a <gpu> in <system>': ('<system><gpu dev="0"/></system>', 'wrong place'),
    'an <nvlink> in a <pci>': (
        system([switch('a0', '<nvlink target="1" count="2"/>', gpu(0))]),
        'wrong place'),
    'white space': (' \n', 'text is empty'),
    'too many cards': (system([gpu(0), *[card('c0', 'ib0')] * 600]),
                       '600 cards; at most'),
    'too many GPUs': (system([
        f'<pci busid="{k:04x}:00:00.0"><gpu dev="{k}" sm="90"/></pci>'
        for k in range(200)]), '200 GPUs'),
}


@pytest.mark.parametrize('reason', REFUSED)
def test_what_contradicts_itself_is_refused(reason):
    text, words = REFUSED[reason]
    with pytest.raises(ValueError, match=words) as error:
        read_xml(text)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('value', [None, 3, b'<system/>', ['a'], '\ud800'])
def test_only_texts_are_read(value):
    with pytest.raises(ValueError, match='text must be'):
        read_xml(value)
