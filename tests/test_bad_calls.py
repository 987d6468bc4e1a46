"""What a careless reader types: an error names the argument and a remedy.

One or two calls for each room; the checks themselves are tested in
test_checks.py.
"""
import d2lps
import numpy as np
import pytest
from d2lps import pictures, simulate, strategies, topology
from d2lps.cluster.processes import cells
from d2lps.pipelines import Pass, Timed
from d2lps.recovery import best_interval

RING, SWITCH = strategies.ring(4), topology.pcie_switch(4)
CALLS = {
    'no device': (lambda: d2lps.devices(0), 'n must be .* was 0'),
    'no learning rate': (
        lambda: d2lps.train(2, 256, lr=float('nan')), 'lr must be .* was nan'),
    'data that there is not': (
        lambda: d2lps.load_data(64, data='imagenet'), "data must be .*digits"),
    'half a device': (lambda: strategies.ring(2.5), 'n must be .* was 2.5'),
    'negative bytes': (lambda: simulate.timing(RING, SWITCH, nbytes=-1),
                       'nbytes must be .* was -1'),
    'arrays of two lengths': (
        lambda: d2lps.Schedule([[d2lps.Send(np.arange(3), 5, np.arange(2),
                                            False)]], 9),
        'must be made of numbers, or of arrays of one length'),
    'a file for a folder': (lambda: d2lps.Checkpoint(__file__),
                            'folder must be a folder, and not a file'),
    'a store that is in use': (
        lambda: [d2lps.prepare_store(store, d2lps.init_params(), lr=1)
                 for store in [d2lps.KVStore()] * 2], 'store must be new'),
    'what no process can get': (lambda: cells.pack(one for one in 'ab'),
                                'cannot be sent to another process'),
    'no bandwidth': (lambda: topology.pcie_switch(4, bandwidth=0),
                     'bandwidth must be .* was 0'),
    'consistency': (lambda: d2lps.KVStore(consistency='sometimes'),
                    "consistency must be .*sync.*async.* was 'sometimes'"),
    'a word for a clock': (lambda: d2lps.virtual_clock('fast'),
                           "times must be .* was 'fast'"),
    'an order': (lambda: d2lps.simulate_step([1], [1], 1, order='best'),
                 "order must be .*fifo.* was 'best'"),
    'a cost below nothing': (lambda: best_interval(-1, 10),
                             'cost must be .* was -1'),
    'no worker': (lambda: d2lps.Cluster(num_workers=0),
                  'num_workers must be .* was 0'),
    'a word for a network': (lambda: d2lps.Network(bandwidth='fast'),
                             "bandwidth must be .* was 'fast'"),
    'a plan that is none': (lambda: pictures.plot_holdings('ring'),
                            "schedule must be .* was 'ring'"),
    'no plan to compare': (lambda: pictures.plot_staleness({}),
                           'plans must be a dict .* was {}'),
    'a pass without an end': (
        lambda: pictures.plot_pipeline([Timed(0, Pass('F', 0), 0,
                                              float('inf'))]),
        r'timed.0..end must be .* was inf'),
    'too many devices to draw': (
        lambda: pictures.explore_plans(num_devices=1000),
        'num_devices must be .* was 1000')}


def is_alone(error):
    """Does Python show its traceback only, and none of another error?"""
    return error.__cause__ is None and (
        error.__suppress_context__ or error.__context__ is None)


@pytest.mark.parametrize('name', CALLS)
def test_a_bad_call_is_refused(name):
    call, words = CALLS[name]
    with pytest.raises(ValueError, match=words) as error:
        call()
    assert is_alone(error.value)


@pytest.mark.parametrize('call', [
    lambda: strategies.ring(), lambda: d2lps.KVStore(lost=1),
    lambda: topology.pcie_switch(4, 1, 2, 3, 4, 5, 6)])
def test_a_call_with_other_arguments_is_refused_by_python(call):
    with pytest.raises(TypeError, match='argument') as error:
        call()
    assert is_alone(error.value)
