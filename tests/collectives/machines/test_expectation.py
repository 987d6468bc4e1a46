"""Which bus bandwidth a machine should show, and what a measurement says."""
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from d2lps.__main__ import main
from d2lps.collectives import machines, simulate, strategies, topology
from d2lps.collectives.links import Topology, both_ways
from d2lps.collectives.machines import examples
from d2lps.collectives.machines.ask import numbers
from d2lps.collectives.machines.expectation import expected_bandwidth
from d2lps.collectives.machines.gpu_machine import machine_of
from d2lps.collectives.machines.rates import GPUS, find_gpu

N = 1e9  # bytes
CASES = (Path(__file__).parents[3] / 'notebooks/results/21-machines.csv')


def gpu_machine(wiring, gpu, n=8, nvlinks=0, use=None, rates='usable'):
    text = examples.posted(wiring, n, nvlinks)
    return machines.from_nvidia_smi(text, gpu, use, rates)


def bus_bandwidth(plan, links):
    """GB/s of a plan, as nccl-tests would state it."""
    seconds = simulate.timing(plan, links, N).seconds
    n = plan.num_devices
    return 2 * (n - 1) / n * N / seconds / 1e9


CUBE = gpu_machine('DGX-1', 'V100')
HGX = gpu_machine('NVSwitch', 'H100', 8, 18)


@pytest.mark.parametrize('use, ring', [
    ([0, 1, 2, 3], 80), ([0, 3, 4, 7], 40), ([0, 1, 4, 5], 40),
    ([0, 1, 2], 40), ([0, 1, 2, 3, 4, 7], 40), (range(1, 8), 80),
    (range(8), 120), ([0, 3], 40), ([0, 1], 20)])
def test_gpus_of_a_dgx_1(use, ring):
    """By how many rings they make, each NVLink with 20 GB/s."""
    machine = gpu_machine('DGX-1', 'V100', use=list(use))
    found = expected_bandwidth(machine)
    assert found.ring / 1e9 == pytest.approx(ring)
    assert found.low < found.ring < found.high < 1.3 * found.low
    assert found.predictable
    # The simulator says the same of the plan.
    rings = topology.rings_of(machine.cables)
    plan = strategies.rings(rings).check()
    assert bus_bandwidth(plan, machine) == pytest.approx(ring)
    numbers = [order for order, _ in found.rings]
    assert all(sorted(order) == sorted(use) for order in numbers)


def test_five_gpus_of_a_dgx_1_have_no_ring():
    found = expected_bandwidth(
        gpu_machine('DGX-1', 'V100', use=[0, 1, 2, 3, 4]))
    assert found.rings == [] and not found.predictable
    assert 'through a CPU' in found.why and 'would have one' in found.why
    # GPU 4 has two NVLinks, both to GPU 0, over which NCCL may send on.
    assert 'at most 40 GB/s' in found.why
    assert found.verdict(40e9).word == 'healthy'


def test_a_gpu_without_nvlinks_is_reached_through_a_cpu():
    found = expected_bandwidth(gpu_machine('pairs', 'A100', 8, 12, [0, 1, 2]))
    assert 'between' not in found.why and found.high < 31e9


@pytest.mark.parametrize('gpu, nvlinks, n, ring, best', [
    ('A100', 12, 8, 240, 240), ('H100', 18, 8, 370.8, 490.3),
    ('H100', 18, 4, 370.8, 370.8), ('B200', 18, 8, 721.8, 830.9),
    ('V100', 6, 16, 120, 120)])
def test_gpus_on_switches(gpu, nvlinks, n, ring, best):
    found = expected_bandwidth(gpu_machine('NVSwitch', gpu, n, nvlinks))
    assert found.ring / 1e9 == pytest.approx(ring)
    assert found.low / 1e9 < best < found.high / 1e9
    assert found.high < 1.3 * found.low
    assert ('NVLS' in found.why) == (best > ring)


def test_a_domain_of_several_machines_is_nearer_to_a_ring():
    found = expected_bandwidth(gpu_machine('NVSwitch', 'GB300', 16, 18))
    assert found.low < found.ring < found.high < 1.3 * found.low


def test_a_ring_over_switches_in_the_simulator():
    plan = strategies.ring(8)
    assert bus_bandwidth(plan, HGX) == pytest.approx(370.8)


def several(machines, k, nvlink, slot, wire):
    """GPUs on an NVSwitch in each machine; a network with one port each."""
    links = []
    for m in range(machines):
        for d in range(k):
            links += both_ways(m * k + d, f'nvswitch {m}', nvlink)
            links += both_ways(m * k + d, f'cards {m}', slot)
        links += both_ways(f'cards {m}', 'network', wire)
    switches = ['network', *(f'{what} {m}' for m in range(machines)
                             for what in ('nvswitch', 'cards'))]
    return Topology(links, switches)


@pytest.mark.parametrize('gpu, nvlinks, machines, cards, gbit', [
    ('A100', 12, 2, 4, 100), ('A100', 12, 4, 8, 200), ('A100', 12, 3, 8, 100)])
def test_both_ends_for_several_machines_are_plans_of_the_simulator(
        gpu, nvlinks, machines, cards, gbit):
    machine = gpu_machine('NVSwitch', gpu, 8, nvlinks)
    found = expected_bandwidth(machine, machines=machines, cards=cards,
                               card_rate=gbit / 8 * 1e9)
    assert found.gpus == 8 * machines
    links = several(machines, 8, nvlinks * machine.nvlink, machine.slot,
                    found.wire)
    # A ring for each GPU, that leaves its machine there.
    orders = [[8 * m + (d + turn) % 8 for m in range(machines)
               for d in range(8)] for turn in range(8)]
    ring = strategies.rings([(order, 1) for order in orders], False)
    assert bus_bandwidth(ring, links) == pytest.approx(
        found.low / 0.95e9, rel=0.01)
    best = strategies.pipelined(strategies.hierarchical(machines, 8), 32)
    assert bus_bandwidth(best, links) == pytest.approx(
        found.high / 1.05e9, rel=0.06)


def test_a_slot_for_four_cards():
    """Four cards of 400 Gbit/s do not help one GPU: its slot is full."""
    one = gpu_machine('NVSwitch', 'H100', 8, 18, use=[0])
    found = expected_bandwidth(one, machines=2, cards=4, card_rate=50e9)
    assert found.gpus == 2 and found.wire == 48e9
    assert 'slots' in found.why
    single = expected_bandwidth(one, machines=2, cards=1, card_rate=50e9)
    assert single.wire == 48e9
    assert 'slots' in found.verdict(41e9).why


@pytest.mark.parametrize('wiring, gpu, use, predictable', [
    ('one PCIe switch', 'V100', None, True),
    ('one PCIe switch', 'RTX 4090', None, False),  # may not copy to others
    ('two sockets', 'V100', None, False), ('two sockets', 'L40S', [0, 1],
                                           False),
    ('pairs', 'A40', [1, 2], False), ('pairs', 'A40', None, False)])
def test_hops_through_a_cpu_are_not_predictable(wiring, gpu, use,
                                                predictable):
    found = expected_bandwidth(gpu_machine(wiring, gpu, 8, 4, use))
    assert found.predictable is predictable
    if not predictable:
        assert found.rings == [] and found.high > 8 * found.low
        assert 'host memory' in found.why


def test_between_sockets_the_slowest_processor_counts():
    inside, across = (
        expected_bandwidth(gpu_machine('two sockets', 'L40S', 4, use=use))
        for use in ([0, 1], [0, 2]))
    assert inside.low == pytest.approx(0.14 * 24e9)
    assert across.low == pytest.approx(0.14 * 6e9)  # a Broadwell
    assert across.high == inside.high == pytest.approx(1.27 * 24e9)


def test_the_same_affinity_is_the_same_socket():
    """NVLinks hide the ways over PCIe inside each half of a DGX-1."""
    sockets = [node for node in CUBE.nodes if str(node).startswith('cpu')]
    assert sockets == ['cpu 0', 'cpu 1']
    for gpu in range(8):
        assert (gpu, f'cpu {gpu // 4}') in CUBE.number


@pytest.mark.parametrize('measured, word, words', [
    (129, 'healthy', ''), (60, 'below', 'nvidia-smi nvlink'),
    (9, 'below', 'PCIe would carry as much'), (250, 'above', 'Gbit/s in'),
    (1032, 'above', 'other GPUs')])
def test_verdicts_for_one_machine(measured, word, words):
    verdict = expected_bandwidth(CUBE).verdict(measured * 1e9)
    assert verdict.word == word and words in verdict.why


def test_a_rings_rate_where_switches_could_add():
    verdict = expected_bandwidth(HGX).verdict(369e9)
    assert verdict.word == 'below' and 'NVLS' in verdict.why
    assert expected_bandwidth(HGX).verdict(482e9).word == 'healthy'


@pytest.mark.parametrize('measured, word, words', [
    (78, 'healthy', 'no mistake'), (47, 'healthy', ''),
    (20, 'below', 'GPUDirect'), (200, 'above', 'SHARP')])
def test_verdicts_for_two_machines(measured, word, words):
    found = expected_bandwidth(gpu_machine('NVSwitch', 'A100', 8, 12),
                               machines=2, cards=4, card_rate=12.5e9)
    verdict = found.verdict(measured * 1e9)
    assert verdict.word == word and words in verdict.why
    assert ('This is no mistake' in verdict.why) == (48 < measured < 95)


def test_between_two_gpus_no_plan_sends_fewer_bytes():
    found = expected_bandwidth(gpu_machine('NVSwitch', 'H100', 8, 18, [0]),
                               machines=2, cards=4, card_rate=50e9)
    assert found.verdict(50e9) == ('healthy', '50 GB/s is in the range.')


def curve(*points):
    return pd.DataFrame(points, columns=['size', 'busbw'])


def test_a_log_that_ends_too_early_is_not_judged():
    found = expected_bandwidth(CUBE)
    for last, busbw in ((1 << 21, 31e9), (1 << 27, 100e9)):
        short = curve((1 << 20, 20e9), (last, busbw))
        assert found.verdict(short).word is None
        assert f'ends at {last >> 20} MiB' in found.verdict(short).why
    assert found.verdict(curve((1 << 27, 129e9))).word == 'healthy'
    assert found.verdict(curve((1 << 27, 30e9))).word == 'below'
    assert found.verdict(curve((1 << 30, 100e9))).word == 'below'


@pytest.mark.parametrize('change, words', [
    (dict(machines=2), 'cards, card_rate: 2 machines'),
    (dict(machines=2, cards=0, card_rate=1e9), 'cards must be'),
    (dict(machines=0), 'machines must be'),
    (dict(cards=2, card_rate=1e9), 'say machines=2'),
    (dict(topology=topology.nvlink_p3()), 'topology must be a GpuMachine')])
def test_what_is_not_expected(change, words):
    with pytest.raises(ValueError, match=words):
        expected_bandwidth(**{'topology': CUBE, **change})


def test_one_gpu_alone():
    with pytest.raises(ValueError, match='no partner for a sum'):
        expected_bandwidth(gpu_machine('DGX-1', 'V100', use=[0]))


@pytest.mark.parametrize('name, gpu', [
    ('NVIDIA A100-SXM4-80GB', 'A100'), ('Tesla V100-SXM2-16GB', 'V100'),
    ('NVIDIA GeForce RTX 2080Ti', 'RTX 2080 TI'), ('3090', 'RTX 3090'),
    ('rtx a6000', 'A6000'), ('RTX 6000 Ada Generation', 'RTX 6000 ADA'),
    ('Quadro RTX 6000', 'RTX 6000'), ('H100 NVL', 'H100'),
    ('NVIDIA GB300', 'GB300'), ('h200', 'H200'),
    ('NVIDIA RTX PRO 5000 Blackwell', 'RTX PRO 5000')])
def test_names_of_gpus(name, gpu):
    assert find_gpu(name) == GPUS[gpu]


@pytest.mark.parametrize('name', ['', 'GPU', 'MI300X', '80GB', 7,
                                  'RTX 3090 SUPER'])
def test_what_is_no_gpu(name):
    with pytest.raises(ValueError, match='^gpu must be the name'):
        find_gpu(name)


@pytest.fixture
def ask(tmp_path, capsys):
    """Run `d2lps server` on a text; returns (code, output, errors)."""
    def run(text, *options, log=None):
        path = tmp_path / 'table.txt'
        path.write_text(text)
        if log is not None:
            (tmp_path / 'log.txt').write_text(log)
            options = *options, '--log', str(tmp_path / 'log.txt')
        try:
            main(['server', str(path), *options])
            code = 0
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()
    return run


LOG = '''# size count type redop root time algbw busbw #wrong
 67108864 16777216 float sum -1 992.7 67.60 118.30 0
134217728 33554432 float sum -1 1818.8 73.80 129.14 0
'''


def test_the_command(ask):
    code, out, _ = ask(examples.posted('DGX-1'), '--gpu', 'V100', log=LOG)
    assert code == 0
    assert 'ring      0-3-2-1-5-6-7-4-0, 2 NVLinks per hop' in out
    assert 'expected  bus bandwidth 108 to 139 GB/s' in out
    assert 'verdict   healthy: 129 GB/s' in out


NUMPY_ONLY = '''
import sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name.split('.')[0] not in {'numpy', 'd2lps',
                                      *sys.stdlib_module_names}:
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)
sys.meta_path.insert(0, Finder)
from d2lps.__main__ import main
main(sys.argv[1:])
'''


def test_the_command_needs_numpy_only(python, tmp_path):
    (tmp_path / 'table').write_text(examples.posted('DGX-1'))
    (tmp_path / 'log').write_text(LOG)
    done = python('-c', NUMPY_ONLY, 'server', 'table', '--gpu', 'V100',
                  '--log', 'log')
    assert 'verdict   healthy: 129 GB/s' in done.stdout, done.stderr


def test_the_command_prints_an_object(ask):
    code, out, _ = ask(examples.posted('DGX-1'), '--gpu', 'V100', '--json',
                       log=LOG)
    found = json.loads(out)
    assert code == 0 and found.pop('why')
    assert found == {
        'gpus': 8, 'rings': [[[0, 3, 2, 1, 5, 6, 7, 4], 2],
                             [[0, 1, 3, 7, 5, 4, 6, 2], 1]],
        'low': 108.0, 'high': 139.2, 'predictable': True,
        'verdict': 'healthy'}
    _, out, _ = ask(examples.posted('DGX-1'), '--gpu', 'V100', '--json',
                    '--use', '4,5,6,7', '--machines', '2', '--cards', '4',
                    '--card-gbit', '100')
    found = json.loads(out)
    assert found['gpus'] == 8 and found['verdict'] is None
    assert sorted(found['rings'][0][0]) == [4, 5, 6, 7]


@pytest.mark.parametrize('options, words', [
    ([], 'say A100'), (['--gpu', 'banana'], 'the name of a GPU'),
    (['--gpu', 'V100', '--use', '0,9'], 'use must be'),
    (['--gpu', 'V100', '--use', 'a'], 'GPUs are numbers'),
    (['--gpu', 'V100', '--machines', '2'], '--cards 8 --card-gbit 400'),
    (['--gpu', 'V100', '--machines', '0'], ' --machines=2'),
    (['--gpu', 'V100', '--log', 'nowhere.txt'], 'nowhere.txt'),
    (['--gpu', 'V100', '--use', '0'], 'no partner for a sum; take 2 GPUs'),
    (['--gpu', 'V100', '--cards', '4'], 'say --machines 2'),
    (['--gpu', 'V100', '--machines', '2', '--cards', '4', '--card-gbit',
      'nan'], '--card-gbit must be'), (['--gpu', 'A100, H100'], 'one GPU')])
def test_bad_input_is_one_line_and_exit_code_2(ask, options, words):
    code, out, err = ask(examples.posted('DGX-1'), *options)
    assert code == 2 and out == ''
    assert err.startswith('d2lps server: ') and err.count('\n') == 1
    assert words in err


def test_a_log_of_other_ranks_is_refused(ask):
    ranks = ''.join(f'#  Rank {i} Pid 7 on host device {i} [0x0] V100\n'
                    for i in range(4))
    code, _, err = ask(examples.posted('DGX-1'), '--gpu', 'V100',
                       log=ranks + LOG)
    assert code == 2 and '4 ranks, and 8 GPUs' in err


def test_ranks_show_in_the_ratio_of_busbw_and_algbw(ask):
    table = examples.posted('DGX-1')
    code, _, err = ask(table, '--gpu', 'V100', '--use', '0,1', log=LOG)
    assert code == 2 and '8 ranks, and 2 GPUs' in err
    code, _, err = ask(table, '--gpu', 'V100', '--machines', '2', '--cards',
                       '1', '--card-gbit', '100', log=LOG)
    assert code == 2 and '8 ranks, and 16 GPUs' in err


def test_a_log_says_which_gpu_it_is(ask):
    ranks = ''.join(f'#  Rank {i} Group 0 Pid 7 on host device {i} [0000:04:0'
                    f'{i}] Tesla V100-SXM2-16GB\n' for i in range(8))
    code, out, _ = ask(examples.posted('DGX-1'), log=ranks + LOG)
    assert code == 0 and '8 V100' in out and 'healthy' in out


def test_a_number_can_be_judged_without_a_log(ask):
    table = examples.posted('DGX-1')
    assert 'healthy' in ask(table, '--gpu', 'V100', '--measured', '129')[1]
    assert 'below' in ask(table, '--gpu', 'V100', '--measured', '12')[1]
    code, _, err = ask(table, '--gpu', 'V100', '--measured', '0')
    assert code == 2 and '--measured must be' in err
    code, _, err = ask(table, '--gpu', 'V100', '--measured', '1', log=LOG)
    assert code == 2 and 'only one of them' in err


def test_gpus_are_named_by_ranges_too(ask):
    _, out, _ = ask(examples.posted('DGX-1'), '--gpu', 'V100', '--use',
                    '0-2,3')
    assert '4 V100: 0 1 2 3' in out


def test_a_log_of_other_gpus_is_refused(ask):
    named = f'#  Rank 0 Pid 7 on host device 0 [0x04] NVIDIA A100\n{LOG}'
    code, _, err = ask(examples.posted('DGX-1'), '--gpu', 'V100', log=named)
    assert code == 2 and 'the log is of A100 GPUs, and these are V100' in err


@pytest.mark.parametrize('machine, op, word', [
    (CUBE, 'all_gather', 'healthy'), (CUBE, 'sendrecv', None),
    (HGX, 'all_gather', None),
    (gpu_machine('NVSwitch', 'A100', 8, 12, [0, 1]), 'sendrecv', 'healthy')])
def test_a_log_of_another_collective(machine, op, word):
    """Over a ring, all-gather shows the same; where switches add, not."""
    found = expected_bandwidth(machine)
    log = curve((1 << 30, found.ring))
    log.attrs['op'] = op
    verdict = found.verdict(log)
    assert verdict.word == word
    assert word or 'run all_reduce_perf' in verdict.why


def test_a_log_with_wrong_sums_is_not_judged(ask):
    wrong = LOG.replace(' 0\n', ' 7\n')
    code, out, _ = ask(examples.posted('DGX-1'), '--gpu', 'V100', log=wrong)
    assert code == 0 and 'healthy' not in out and 'wrong results' in out


def test_a_switch_with_a_link_down():
    """GPU 5 has 17 NVLinks that work, so each pair with it has 17."""
    text = examples.table(8, lambda i, j: f'NV{17 if 5 in (i, j) else 18}')
    machine = machines.from_nvidia_smi(text, 'H100')
    note, = machine.wiring.notes
    assert 'GPU5 has 17 NVLinks to switches, and the H100 has 18' in note
    assert expected_bandwidth(machine).ring == pytest.approx(17 * 20.6e9)
    odd = examples.table(8, lambda i, j: f'NV{17 if i + j == 5 else 18}')
    with pytest.raises(ValueError, match='every pair would have as many'):
        machines.from_nvidia_smi(odd, 'H100')


def test_an_xml_that_says_nothing_of_nvlinks_is_not_predictable():
    wiring = gpu_machine('one PCIe switch', 'A100', 2).wiring
    silent = machine_of(wiring._replace(nvlinks_said=False), 'A100')
    assert expected_bandwidth(machine_of(wiring, 'A100')).predictable
    found = expected_bandwidth(silent)
    assert not found.predictable and 'says nothing of NVLinks' in found.why


def test_all_posted_measurements():
    """As chapter 21 shows them: who is inside of the range."""
    cases = pd.read_csv(CASES)
    for case in cases.itertuples():
        found = examples.predicted(case)
        inside = found.low <= case.busbw * 1e9 <= found.high
        assert inside == (case.healthy == 'yes' or case.kind == 'PCIe'), case
        if case.kind == 'NVLink':
            assert found.predictable and found.high < 1.3 * found.low
        if case.kind == 'PCIe':
            assert found.predictable == (case.wiring == 'one PCIe switch')


def test_a_gpu_that_the_switches_do_not_reach():
    """All links of GPU 7 to the switches are down."""
    text = examples.table(8, lambda i, j: 'SYS' if 7 in (i, j) else 'NV12')
    machine = machines.from_nvidia_smi(text, 'A100')
    assert machine.links_to_switch == (12,) * 7 + (0,)
    assert machine.switched == 0 and not machine.cables.any()
    assert 'GPU7 has no NVLinks to switches' in machine.wiring.notes[-1]
    found = expected_bandwidth(machine)
    assert not found.predictable
    assert 'GPU7 cannot be reached over the switches' in found.why
    without = machines.from_nvidia_smi(text, 'A100', [*range(7)])
    assert expected_bandwidth(without).ring == pytest.approx(240e9)


def test_more_gpus_than_rings_are_searched_for():
    text = examples.posted('pairs', 20, 4)
    with pytest.raises(ValueError, match='^use must be 16 GPUs or fewer'):
        expected_bandwidth(machines.from_nvidia_smi(text, 'A40'))
    some = expected_bandwidth(machines.from_nvidia_smi(text, 'A40', [0, 1, 2]))
    assert not some.predictable
    rack = expected_bandwidth(machines.from_nvidia_smi(
        examples.posted('NVSwitch', 72, 18), 'GB200'))
    assert rack.gpus == 72 and rack.predictable


@pytest.mark.parametrize('cards, gbit, limit', [
    (1, 400, False), (8, 400, False), (9, 400, True), (5, 800, False),
    (16, 200, False), (17, 200, True)])
def test_when_more_cards_gain_nothing(cards, gbit, limit):
    """Eight slots of 48 GB/s, and a card has a slot of its own."""
    found = expected_bandwidth(HGX, machines=2, cards=cards,
                               card_rate=gbit / 8e-9)
    assert found.slots_limit == limit
    said = found.verdict(1e9).why
    assert ('more cards would not help' in said) == limit


def test_a_verdict_needs_usable_rates():
    nominal = expected_bandwidth(gpu_machine('DGX-1', 'V100', rates='nominal'))
    assert nominal.ring == pytest.approx(150e9)
    with pytest.raises(ValueError, match="needs rates='usable'"):
        nominal.verdict(129e9)


@pytest.mark.parametrize('measured', [
    'x', None, [1], pd.DataFrame({'busbw': [1e9]}), float('nan')])
def test_what_is_no_measurement(measured):
    with pytest.raises(ValueError, match='^measured must be'):
        expected_bandwidth(CUBE).verdict(measured)


def test_numbers_of_numpy_are_measurements():
    found = expected_bandwidth(CUBE)
    assert found.verdict(np.float32(129e9)).word == 'healthy'
    assert found.verdict(np.int64(12e9)).word == 'below'


def test_large_numbers_are_no_powers():
    words = [expected_bandwidth(gpu_machine('NVSwitch', 'B200', n, 18)).why
             for n in (2, 8, 16, 72)]
    words += [expected_bandwidth(CUBE).verdict(1864e9).why]
    assert not any('e+' in line for line in words) and '1,860' in words[-1]


@pytest.mark.parametrize('words, found', [
    ('0', [0]), ('0,1 , 3', [0, 1, 3]), ('2-4,7', [2, 3, 4, 7])])
def test_numbers_of_gpus(words, found):
    assert numbers(words) == found


@pytest.mark.parametrize('words', ['', ',', '1-', '-1', '4-2', 'a', '0-99999',
                                   '1,,2'])
def test_what_is_no_number_of_gpus(words):
    with pytest.raises(ValueError, match='GPUs are numbers'):
        numbers(words)
