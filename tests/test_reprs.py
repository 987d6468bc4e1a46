"""What Python's prompt shows of an object: one line that one can read."""
import d2lps
import mxnet as mx
import numpy as np
import pytest
from d2lps import kvstore, planning, recovery, simulate, strategies, topology
from d2lps.collectives import machines
from d2lps.cluster import recorded
from d2lps.collectives.machines import examples
from d2lps.units import several

PAIR = topology.pcie_switch(2)


def store():
    made = d2lps.KVStore(2, num_servers=2)
    made.init(['w', 'b'], [mx.np.ones((5, 2)), mx.np.ones(5)])
    return made


def server():
    made = kvstore.Server(mx.cpu(1), num_workers=1)
    made.init(3, mx.np.ones(500))
    made.push(3, 0, mx.np.ones(500))
    return made


def record(tmp_path):
    path = tmp_path / 'record.json'
    path.write_text('{"from": "Linux", "num_workers": 1, "calls": {}}')
    return recorded.Record(str(path), 'no torch')


SHOWN = {
    "KVStore('dist_sync': 2 workers, 2 servers, 2 keys)": store,
    "KVStore('local': 1 worker, 1 server, 0 keys)": d2lps.KVStore,
    'Server(cpu(1): 1 worker, 1 key, received 2 kB, sent 0 bytes)': server,
    'ReplicatedStore(3 servers, 2 replicas of each of 0 keys)':
        lambda: recovery.ReplicatedStore(3),
    'Network(125 MB/s, delay 0)': d2lps.Network,
    'Network(1 GB/s, delay 10 ms, colocated, bucket 4 kB, queue 1 MB)':
        lambda: d2lps.Network(1e9, 0.01, True, 4000, 10 ** 6),
    '<pcie_switch(2): 3 nodes, 1 switch, 6 links>': lambda: PAIR,
    '<ring(4): 4 devices, 4 chunks, 6 rounds, 24 sends>':
        lambda: strategies.ring(4),
    '<gather_broadcast(2, 0): 2 devices, 1 chunk, 2 rounds, 2 sends>':
        lambda: strategies.gather_broadcast(2),
    '<gather_broadcast(2, 0) on pcie_switch(2): 125 µs, 2 sends>':
        lambda: simulate.timing(strategies.gather_broadcast(2), PAIR, 1e6),
    '<2 timed sends>': lambda: simulate.timing(
        strategies.gather_broadcast(2), PAIR, 1e6).events,
    'Expectation(8 GPUs: 108 to 139 GB/s, for arrays of 1 GiB or more)':
        lambda: d2lps.expected_bandwidth(machines.from_nvidia_smi(
            examples.posted('DGX-1'), 'V100')),
    'Wiring(8 GPUs, 24 NVLinks, 0 cards)': lambda: machines.from_nvidia_smi(
        examples.posted('DGX-1'), 'V100').wiring,
    "Gpu('H100': 989 TFLOP/s, 80 GB, NVLinks 371 GB/s, network 48 GB/s)":
        lambda: planning.H100,
    'Batches(2 minibatches of 4, 5 examples, shuffled)':
        lambda: d2lps.Batches(np.zeros((5, 28, 28), 'uint8'), np.zeros(5, int),
                              4, shuffle=True),
    'Stopwatch(no time yet)': d2lps.Stopwatch,
    'Timeline(2 devices, 0 operations in 0 µs, more than one device at work '
    '0% of it)': lambda: d2lps.Timeline(d2lps.devices(2))}


@pytest.mark.parametrize('words', SHOWN)
def test_an_object_is_shown_in_one_line(words):
    assert repr(SHOWN[words]()) == words


def test_a_record_says_what_it_stands_for(tmp_path):
    assert repr(record(tmp_path)) == (
        'no torch. What follows was recorded elsewhere: 1 worker, Linux')


def test_a_checkpoint_names_its_folder_and_steps(tmp_path):
    with d2lps.Checkpoint(tmp_path) as checkpoint:
        checkpoint.save(7, {'w': np.ones(2)})
        assert repr(checkpoint) == f'Checkpoint({str(tmp_path)!r}; steps: 7)'


def test_one_is_singular():
    assert several(1, 'switch', 'switches') == '1 switch'
    assert [several(k, 'switch', 'switches') for k in (0, 2)] == [
        '0 switches', '2 switches']
