"""What a careless reader types: an error names the argument and a remedy.

One or two calls for each room; the checks themselves are tested in
test_checks.py.
"""
import d2lps
import pytest
from d2lps import pictures, simulate, strategies, topology
from d2lps.recovery import best_interval

RING, SWITCH = strategies.ring(4), topology.pcie_switch(4)
CALLS = {
    'no device': (lambda: d2lps.devices(0), 'n must be .* was 0'),
    'no learning rate': (
        lambda: d2lps.train(2, 256, lr=float('nan')), 'lr must be .* was nan'),
    'data that there is not': (
        lambda: d2lps.load_data(64, data='imagenet'), "data must be .*digits"),
    'half a device': (lambda: strategies.ring(2.5), 'n must be .* was 2.5'),
    'negative bytes': (lambda: simulate.time(RING, SWITCH, nbytes=-1),
                       'nbytes must be .* was -1'),
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
    'too many devices to draw': (
        lambda: pictures.explore_plans(num_devices=1000),
        'num_devices must be .* was 1000')}


@pytest.mark.parametrize('name', CALLS)
def test_a_bad_call_is_refused(name):
    call, words = CALLS[name]
    with pytest.raises(ValueError, match=words):
        call()
