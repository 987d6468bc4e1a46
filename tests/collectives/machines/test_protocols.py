"""Times of all-reduces of any size, by NCCL's protocols."""
import numpy as np
import pytest

from d2lps.collectives.machines.protocols import PROTOCOLS, _lines, call_time

MiB, US = 2**20, 1e-6

# Rows that owners of machines posted: bytes, and microseconds (nccl-tests,
# all_reduce, out of place). `smallest` is the time of 1 KiB.
POSTED = {
    '8 H100': ({'ranks': 8, 'rate': 490e9, 'gpu': 'H100'}, 16.43, {
        # awsome-distributed-training, aws-batch/README, a p5.48xlarge
        64 * 2**10: 19.09, 256 * 2**10: 20.27, MiB: 28.56, 4 * MiB: 55.44,
        16 * MiB: 124, 64 * MiB: 326.6, 256 * MiB: 1121.4, 1024 * MiB: 4253,
        4096 * MiB: 15791}),
    '8 V100': ({'ranks': 8, 'rate': 120e9, 'gpu': 'V100'}, 48.88, {
        # a blog of 2019: 8 V100-SXM2, cube mesh
        64 * 2**10: 52.78, 256 * 2**10: 60.26, MiB: 89.27, 4 * MiB: 147.4,
        16 * MiB: 324.1, 64 * MiB: 992.7, 128 * MiB: 1818.8}),
    '4 V100, PCIe': ({'ranks': 4, 'rate': 12e9, 'gpu': 'V100',
                      'hops': 'PCIe'}, 16.08, {
        # Sheffield HPC guide: 4 V100 at one PCIe switch
        64 * 2**10: 46.77, 256 * 2**10: 67.61, MiB: 165.5, 4 * MiB: 588.3,
        16 * MiB: 2269.2, 64 * MiB: 9013.1}),
    '16 H100': ({'ranks': 16, 'rate': 461e9, 'gpu': 'H100', 'machines': 2},
                26.65, {
        # NVIDIA/nccl-tests 309: 2 machines, 8 cards of 400 Gbit/s each
        64 * 2**10: 33.84, 256 * 2**10: 48.67, MiB: 71.93, 4 * MiB: 94.38,
        16 * MiB: 185.4, 64 * MiB: 466.1, 256 * MiB: 1282.8,
        1024 * MiB: 4484.9})}


def within(predicted, measured):
    return abs(np.divide(predicted, measured) - 1) <= 0.25


@pytest.mark.parametrize('name', POSTED)
def test_most_rows_of_a_posted_log_are_within_a_quarter(name):
    machine, smallest, rows = POSTED[name]
    found = [call_time(nbytes, smallest=smallest * US, **machine).seconds / US
             for nbytes in rows]
    assert within(found, [*rows.values()]).mean() > 0.8


def test_one_latency_and_one_rate_do_not_explain_the_middle():
    machine, smallest, rows = POSTED['16 H100']
    middle = [nbytes for nbytes in rows if MiB <= nbytes <= 64 * MiB]
    line = [smallest + nbytes * 30 / 16 / machine['rate'] / US
            for nbytes in middle]
    assert not within(line, [rows[nbytes] for nbytes in middle]).any()


def test_a_large_array_has_the_rate_of_the_links():
    for ranks in (2, 3, 8, 1000):
        found = call_time(1e15, ranks, 240e9, 'A100')
        busbw = 1e15 / found.seconds * 2 * (ranks - 1) / ranks
        assert busbw == pytest.approx(240e9, rel=1e-4)
        assert found.protocol == 'Simple'


def test_a_byte_costs_a_call_and_its_hops():
    # LL on 8 GPUs: 6.6 us and 14 hops of 0.6 us.
    found = call_time(1, 8, 370e9, 'H100')
    assert found == (pytest.approx(15 * US, rel=1e-5), 'LL')
    # PCIe: 6.6 us, and 6 hops of 1 us.
    assert call_time(1, 4, 12e9, 'V100', hops='PCIe').seconds == pytest.approx(
        12.6 * US, rel=1e-4)
    # 2 machines: 2 of the 30 hops go over the network.
    assert call_time(1, 16, 384e9, 'H100', 2).seconds == pytest.approx(
        (6.6 + 28 * 0.6 + 2 * 2.7) * US, rel=1e-5)


def test_the_lines_have_the_constants_of_nccl():
    # Simple on 8 GPUs: 8.4 us and 14 hops of 3.4; LL at most 87.7 GB/s of
    # busbw on A100, and half of the rate where that is less.
    found = _lines(8, 240e9, 'A100')
    assert [*found] == ['LL', 'LL128', 'Simple']
    assert found['Simple'] == pytest.approx((56 * US, 14 / 8 / 240e9))
    assert found['LL128'] == pytest.approx((40.6 * US, 14 / 8 / 220.8e9))
    assert found['LL'] == pytest.approx((15 * US, 14 / 8 / 87.7e9))
    assert _lines(8, 60e9, 'A100')['LL'][1] == pytest.approx(14 / 8 / 30e9)


def test_ll_has_a_lower_limit_on_more_machines():
    busbw = [2 * 31 / 32 / _lines(32, 400e9, 'H100', machines)['LL'][1] / 1e9
             for machines in (1, 2, 4, 8)]
    assert busbw == pytest.approx([141, 39, 20.4, 20.4])


def test_nccl_takes_ll_for_small_then_ll128_then_simple():
    # What NCCL's formulas give for 8 A100 with 12 NVLinks each.
    taken = [call_time(size * MiB, 8, 240e9, 'A100').protocol
             for size in (0.5, 2, 4, 16, 32, 1024)]
    assert taken == ['LL', 'LL', 'LL128', 'LL128', 'Simple', 'Simple']


@pytest.mark.parametrize('where', [{'gpu': 'V100', 'hops': 'PCIe'},
                                   {'gpu': 'P100'}])
def test_there_is_no_ll128_over_pcie_nor_on_a_p100(where):
    assert [*_lines(4, 12e9, **where)] == ['LL', 'Simple']


@pytest.mark.parametrize('machines', [1, 2, 4])
@pytest.mark.parametrize('hops', ['NVLink', 'PCIe'])
def test_more_bytes_take_longer_and_reach_a_higher_rate(machines, hops):
    sizes = 2.0 ** np.arange(40)
    times = np.array([
        call_time(nbytes, 8, 100e9, 'V100', machines, hops).seconds
        for nbytes in sizes])
    assert (np.diff(times) > 0).all()
    assert (np.diff(sizes / times) > 0).all()


def test_the_smallest_row_of_a_log_moves_all_protocols_alike():
    for nbytes in (1, MiB, 8 * MiB, 1024 * MiB):
        usual = call_time(nbytes, 8, 120e9, 'V100')
        slow = call_time(nbytes, 8, 120e9, 'V100', smallest=45 * US)
        quick = call_time(nbytes, 8, 120e9, 'V100', smallest=10 * US)
        assert {slow.protocol, quick.protocol} == {usual.protocol}
        assert slow.seconds - usual.seconds == pytest.approx(30 * US)
        assert usual.seconds - quick.seconds == pytest.approx(5 * US)


def test_ll_is_the_protocol_of_the_shortest_hops():
    for link in ('NVLink', 'PCIe', 'network'):
        found = [protocol.hops[link] for protocol in PROTOCOLS
                 if link in protocol.hops]
        assert found == sorted(found)


@pytest.mark.parametrize('wrong, words', [
    ({'nbytes': 0}, 'nbytes must be a positive number'),
    ({'ranks': 1}, 'ranks must be 2 GPUs or more'),
    ({'machines': 3}, 'ranks must be as many GPUs on each of 3 machines'),
    ({'rate': -1}, 'rate must be a positive number'),
    ({'gpu': 'TPU'}, 'gpu must be the name of a GPU'),
    ({'hops': 'NVLINK'}, "hops must be 'NVLink' or 'PCIe'"),
    ({'smallest': 0}, 'smallest must be a positive number')])
def test_what_is_wrong_is_named(wrong, words):
    right = {'nbytes': MiB, 'ranks': 8, 'rate': 370e9, 'gpu': 'H100'}
    with pytest.raises(ValueError, match=words):
        call_time(**{**right, **wrong})
