"""A walk through all public functions with what a careless reader passes.

Each argument of each function is replaced by each of `BAD`. The call must
raise a ValueError or TypeError that names the argument, or the value has to
make sense there and give what its plain twin gives.
"""
import functools
import importlib
import inspect
import pkgutil
import re
import signal
import tempfile
from contextlib import contextmanager
from types import SimpleNamespace

import d2lps
import d2lps.cluster
import d2lps.exercises
import d2lps.pictures
import numpy as onp
import pandas
import pytest
from amount import QUICK
from d2lps import asynchrony, kvstore, recovery
from d2lps.asynchrony import link, overlap
from d2lps.cluster import (Cluster, Network, bare, connections,
                           network_problem)
from d2lps.cluster.bare import bare_mxnet
from d2lps.cluster.processes import restarts
from d2lps.cluster.store import worker
from d2lps.collectives import (Schedule, Send, cables, simulate, strategies,
                               topology, travel)
from d2lps.cluster.peers import peers
from d2lps.engine import mx
from d2lps.pictures import player, plots, servers, table_plots
from d2lps.pictures import asynchrony as async_pictures
from d2lps.pictures import message_plots
from d2lps.pictures import overlap_plots as overlap_pictures
from d2lps.pictures import recovery as recovery_pictures
from d2lps.pictures import timeline_plots as timeline_pictures
from d2lps.pictures.drawing import Drawing
from d2lps.pictures.drawings import draw_cluster as cluster_drawings
from d2lps.pictures.drawings import draw_splits as split_drawings
from d2lps.pictures.drawings import draw_steps as step_drawings
from d2lps.pictures.drawings.draw_plans import draw_cables, draw_sums
from d2lps.pictures.drawings.draw_roads import draw_roads
from d2lps.pictures.drawings.draw_rounds import draw_rounds
from d2lps.pictures.drawings.draw_store import draw_store
from d2lps.pictures.toys import explore_devices as devices_toy
from d2lps.pictures.toys import (explore_keys, explore_latency, explore_meter, explore_pipeline, explore_plans,
                                 explore_rounding, explore_splits, explore_sums, explore_synchronisation)
from d2lps.pictures.toys import explore_store as store_toy
from d2lps.pictures.toys.explore_steps import explore_steps
from d2lps.training import data, data_parallel, partition, timeline

np = mx.np
lenet = importlib.import_module('d2lps.training.lenet')  # not the function
BAD = {'None': None, 'a text': 'two', 'an empty text': '', 'a fraction': 2.5,
       'zero': 0, 'minus one': -1, 'nan': float('nan'), 'inf': float('inf'),
       '-inf': -float('inf'), 'a billion': 10 ** 9, 'True': True,
       'int64': onp.int64(2), 'float32': onp.float32(0.5), 'a list': [],
       'a dict': {}, 'an object': object(), 'a NumPy array': onp.ones(3),
       'an MXNet array': np.ones(3)}
# In `make test`, one of each kind that is often met.
FEW = ('None', 'a text', 'minus one', 'nan', 'int64', 'a NumPy array')
TRIED = FEW if QUICK else BAD


class Tensor:
    """As another package's: it has a shape, and no dtype of NumPy's."""
    shape, ndim, dtype = (2, 3), 2, 'torch.float32'


# Some of these make sense here and there. Where they do not, the error is
# as clear, and short.
ODD = {'a huge int': 10 ** 400, 'huge ints': [10 ** 400],
       'a long text': 'x' * 100_000, 'a long key': ['k' * 100_000],
       'half a character': '\ud800', 'a NUL': 'a\0b', '1e308': 1e308,
       '5e-324': 5e-324, 'a table': pandas.DataFrame({'a': [1., 2.]}),
       'a memoryview': memoryview(b'abc'), 'a tensor': Tensor(),
       'a masked array': onp.ma.masked_array([1, 2, 3], [0, 1, 0]),
       'a matrix': onp.array([[1, 2]]).view(onp.matrix),
       'an object array': onp.array([1, None], object),
       'an array without dimensions': onp.array(2.5)}
FEW_ODD = 'a huge int', 'a long text', '1e308', 'a tensor', 'a masked array'
PLAIN = {'int64': 2, 'float32': 0.5}
LIMIT = 300.0  # seconds after which a call hangs; some start a Python

# What may make sense for an argument of a kind; anything else must not pass.
COUNT = {'int64', 'a billion'}
WHOLE = COUNT | {'zero'}
POSITIVE = {'a fraction', 'a billion', 'int64', 'float32'}
NUMBER = POSITIVE | {'zero'}
FLAG = {'True'}
TEXT = {'a text'}
KEY = {'a text', 'a list', 'an empty text', 'zero', 'minus one', 'a billion',
       'int64'}
NOTHING = set()
EVERYTHING = set(BAD)


PARAMS = d2lps.init_params()


def batch(n=4):
    return (np.zeros((n, 1, 28, 28)), np.zeros((n,), dtype='int32'))


def params():
    return [param.copy() for param in PARAMS]


def copies(k=2):
    return [d2lps.get_params(params(), device) for device in d2lps.devices(k)]


def losses():
    return np.zeros((4, 10)), np.zeros((4,), dtype='int32')


def store():
    one = kvstore.KVStore()
    one.init('w', np.ones(3))
    return one


def timing():
    return simulate.time(strategies.ring(2), topology.pcie_switch(2), 8)


def recorded():
    one = timeline.Timeline(d2lps.devices(1))
    one.events = [timeline.Event('cpu(0)', 'forward', 'x', 0.0, 1.0)]
    return one


def on_ring(**more):
    return dict(schedule=strategies.ring(2), **more)


X, y = batch()
# name: (a function that makes what to call and good arguments, what may make
# sense for each argument; those that are not named take nothing of BAD)
CALLS = {}


def good(call, sense=None, /, **arguments):
    """Note a call; arguments that are functions make theirs anew."""
    CALLS[call.__qualname__] = call, arguments, sense or {}


def method(make, name, sense=None, /, **arguments):
    """Note a call of method `name` of what `make()` gives."""
    CALLS[f'{type(make()).__name__}.{name}'] = (
        lambda **kw: getattr(make(), name)(**kw)), arguments, sense or {}


class fresh:
    """An argument that is made anew for each call."""

    def __init__(self, make):
        self.make = make


good(d2lps.expect, {'words': TEXT, 'held': FLAG}, words='it is so', held=True)

# One device and several.
good(d2lps.devices, {'n': COUNT}, n=2)
good(d2lps.on_devices, arrays=[onp.ones(2), onp.zeros(3)])
good(d2lps.nbytes, {'array': {'a NumPy array', 'an MXNet array', 'int64',
                              'float32'}}, array=np.ones(3))
good(d2lps.copy_bandwidth, {'size': COUNT, 'repeats': {'int64'}}, size=4000,
     repeats=1)
good(lenet.init_params, {'scale': POSITIVE, 'seed': WHOLE}, scale=0.01,
     seed=0)
good(lenet.relu, {'X': {'an MXNet array'}}, X=X)
good(lenet.conv, X=X, W=fresh(lambda: params()[0]),
     b=fresh(lambda: params()[1]))
good(lenet.hidden, {'X': {'an MXNet array'}}, X=np.ones((2, 800)),
     W=fresh(lambda: params()[4]), b=fresh(lambda: params()[5]))
good(lenet.output, {'X': {'an MXNet array'}}, X=np.ones((2, 128)),
     W=fresh(lambda: params()[6]), b=fresh(lambda: params()[7]))
good(lenet.forward, X=X, params=fresh(params), layers=lenet.LAYERS)
good(lenet.lenet, X=X, params=fresh(params))
good(lenet.loss, y_hat=losses()[0], y=losses()[1])
good(d2lps.load_data, {'batch_size': {'int64'}, 'seed': WHOLE,
                       'root': {'None'}},
     batch_size=2, data='digits', root=None, seed=0)
good(d2lps.Batches, {'batch_size': COUNT, 'seed': WHOLE, 'shuffle': FLAG},
     images=onp.zeros((4, 28, 28), 'uint8'), labels=onp.zeros(4, 'int32'),
     batch_size=2, shuffle=False, seed=0)
good(data_parallel.get_params, {'params': NOTHING}, params=fresh(params),
     device=mx.cpu(1))
good(data_parallel.allreduce, data=fresh(lambda: [np.ones(2), np.ones(2)]))
good(data_parallel.split_batch, {}, X=X, y=y, devices=d2lps.devices(2))
for step in data_parallel.compute_gradients, data_parallel.train_batch:
    good(step, {'lr': NUMBER}, X=X, y=y, device_params=fresh(copies),
         devices=d2lps.devices(2),
         **({'lr': 0.1} if step is data_parallel.train_batch else {}))
good(data_parallel.evaluate_accuracy, data_iter=[(X, y)],
     device_params=fresh(copies), devices=d2lps.devices(2))
good(data_parallel.train, {
    'num_devices': {'int64'}, 'batch_size': {'int64'}, 'lr': POSITIVE,
    'num_epochs': {'int64'}, 'scale': POSITIVE | {'None'}, 'seed': WHOLE,
    'show': FLAG, 'step': {'None'}, 'root': {'None'}},
    num_devices=1, batch_size=64, lr=0.1, num_epochs=1, data='digits',
    root=None, scale=None, seed=0, show=False,
    step=lambda X, y, device_params, devices, lr: [np.zeros(1)])
good(timeline.Timeline, devices=d2lps.devices(1))
method(recorded, 'busy', device='cpu(0)')
good(timeline.step_timeline, {
    'num_devices': {'int64'}, 'batch_size': {'int64'},
    'settings': {'None', 'a dict'}},
    num_devices=1, batch_size=2, settings=None)
good(partition.split_by_layer, {'cut': {'int64', 'True'}},
     params=fresh(params), devices=d2lps.devices(2), cut=2)
good(partition.network_partition, X=X, y=y, devices=d2lps.devices(2),
     stages=fresh(lambda: partition.split_by_layer(params(),
                                                   d2lps.devices(2))))
good(partition.split_by_channel, params=fresh(params),
     devices=d2lps.devices(2))
for collective in partition.all_gather, partition.reduce_scatter:
    name = [*inspect.signature(collective).parameters][0]
    good(collective, **{name: fresh(lambda: [np.ones((2, 4))] * 2)})
good(partition.leaves, arrays=fresh(lambda: [np.ones(2)]))

# Schedules, and links to run them on.
for strategy in (
        strategies.sharded, strategies.running_sum, strategies.ring,
        strategies.bidirectional_ring, strategies.tree, strategies.double_tree,
        strategies.recursive_doubling, strategies.halving_doubling):
    good(strategy, {'n': {'int64'}}, n=4)
good(strategies.gather_broadcast, {'n': {'int64'}, 'root': KEY}, n=4, root=0)
good(strategies.two_rings, {'both_ways': FLAG}, both_ways=False)
good(strategies.hierarchical, {'num_machines': {'int64'},
                               'num_devices': {'int64'}},
     num_machines=2, num_devices=2, across=strategies.ring)
good(strategies.parameter_server, {'num_workers': COUNT, 'num_servers': COUNT,
                                 'colocated': FLAG},
     num_workers=2, num_servers=2, colocated=False)
good(strategies.pipelined, {'pieces': {'int64'}}, schedule=strategies.ring(2),
     pieces=2)
SEND = Send(0, 1, 0, True)
good(Schedule, {'num_devices': COUNT, 'rounds': {'a list'},
                         'helpers': {'a list'}, 'weights': {
                             'None', 'a NumPy array'},
                         'name': TEXT | {'an empty text'}},
     rounds=[[SEND]], num_devices=2, helpers=[], weights=None, name='mine')
method(lambda: strategies.ring(2), 'cuts', {'size': WHOLE}, size=8)
method(lambda: strategies.ring(2), 'chunk_bytes', {'nbytes': NUMBER}, nbytes=8)
method(lambda: strategies.ring(2), 'run',
       arrays=fresh(lambda: [onp.ones(2), onp.ones(2)]), op=onp.add)
good(simulate.time, {'nbytes': NUMBER, 'barrier': FLAG, 'overhead': NUMBER},
     schedule=strategies.ring(2), topology=topology.pcie_switch(2), nbytes=8,
     barrier=True, overhead=1e-6)
LINKS = topology.both_ways(0, 1, 1e9)
good(topology.Topology, {'links': {'a list'}, 'switches': {'a list'},
                         'name': TEXT | {'an empty text'}},
     links=LINKS, switches=[], name='mine')
NODES = {'zero', 'True'}
method(lambda: topology.pcie_switch(3), 'route', {
    'src': NODES | {'int64'}, 'dst': NODES | {'int64'}}, src=0, dst=1)
method(lambda: topology.pcie_switch(3), 'positions', {'nodes': {'a list'},
                                                     'what': TEXT},
       nodes=[0], what='nodes')
method(lambda: topology.pcie_switch(3), 'routes', src=onp.array([0]),
       dst=onp.array([1]))
NAME = EVERYTHING - {'a list', 'a dict', 'a NumPy array', 'an MXNet array'}
good(topology.both_ways, {'a': NAME, 'b': NAME, 'bandwidth': POSITIVE,
                          'latency': NUMBER}, a=3, b=4, bandwidth=1e9,
     latency=0)
good(topology.pcie_switch, {'n': {'int64'}, 'bandwidth': POSITIVE,
                            'latency': NUMBER}, n=2, bandwidth=1e9, latency=0)
good(topology.ethernet, {'hosts': {'int64'}, 'bandwidth': POSITIVE,
                         'latency': NUMBER}, hosts=2, bandwidth=1e9,
     latency=0)
good(cables.rings_of, cables=cables.P3_CABLES)
good(draw_cables, {'rings': {'a list'}}, cables=cables.P3_CABLES,
     rings=cables.rings_of(cables.P3_CABLES))
good(draw_sums, plans=[strategies.ring(2)], chunks=[0])
good(draw_rounds, {'rounds': WHOLE | {'None'}},
     schedule=strategies.ring(2), arrays=[[1, 2], [3, 4]], op=onp.add,
     rounds=1)
good(draw_roads, {'roads': {'a list'}}, towns=['A', 'B'], roads=[(0, 1, 7)])
good(draw_store, {'queues': {'a list'}, 'value': NUMBER | TEXT, 'key': TEXT},
     queues=[['2'], []], value='11', key='w')
good(topology.nvlink_p3, {'bandwidth': POSITIVE, 'latency': NUMBER},
     bandwidth=18e9, latency=0)
good(topology.cluster, {
    'num_machines': {'int64'}, 'num_devices': {'int64'}, 'inside': POSITIVE,
    'network': POSITIVE, 'num_servers': {'int64', 'zero'}, 'latency': NUMBER,
    'network_latency': NUMBER}, num_machines=2, num_devices=2, inside=1e9,
    network=1e9, num_servers=0, latency=0, network_latency=0)

# Pictures and things to play with.
WIDTH = {'width': {'int64'}}
TITLE = {'title': TEXT | {'None', 'an empty text'}}
good(messages.plot_messages, panels={'simulated': timing().events})
good(messages.explore_hang, {'stops': COUNT, 'late': {'int64', 'zero'}},
     plan='ring', late=2, stops=3)
good(pipeline.explore_pipeline, {'num_stages': {'int64'},
                                 'num_batches': {'int64'}},
     num_stages=2, num_batches=2, schedule='GPipe')
for drawn in pipeline.pass_slots, pipeline.draw_passes:
    good(drawn, orders=['FFBB', 'FBFB'])
good(rounding.explore_rounding, {'levels': {'int64'},
                                 'num_workers': {'int64'}},
     levels=7, num_workers=8)
EMPTY = TEXT | {'an empty text'}
good(tables.plot_curves, {
    'xlabel': EMPTY, 'ylabel': EMPTY, 'title': EMPTY, 'steps': FLAG,
    'xlim': {'None'}, 'ylim': {'None'}, 'xticks': {'None', 'a list', 'a dict',
                                                   'a NumPy array',
                                                   'an MXNet array'},
    'yticks': {'None', 'a list', 'a dict', 'a NumPy array',
               'an MXNet array'}, 'styles': {'None', 'a dict'},
    'colors': {'None', 'a dict'}, 'lines': {'None', 'a dict'},
    'verticals': {'None', 'a dict'}, 'points': {'None', 'a dict'},
    'width': {'int64'}, 'height': {'int64'}},
     curves={'a': ([1, 2], [3, 4])}, xlabel='x', ylabel='y', title='z',
     xscale='linear', yscale='log', xlim=(0, 1), ylim=(1, None), xticks=[1],
     yticks=[1], styles=['-'], colors=['#000000'], lines={'a': 1},
     verticals={'b': 1}, points={'c': (1, 2)}, steps=False, width=400,
     height=200)
good(tables.plot_bars, {
    'xlabel': EMPTY, 'title': EMPTY, 'stacked': FLAG,
    'until': POSITIVE | {'None'},
    'colors': {'None', 'a dict'}, 'marks': {'None', 'a dict'},
    'labels': {'None'}, 'columns': {'None'}, 'verticals': {'a list'},
    'width': {'int64'},
    'alt': EMPTY | {'None'}}, values={'a': 1}, xlabel='x', title='z',
     stacked=False, colors=['#000000'], marks={'b': [1]}, labels=['one'],
     verticals=[1], columns=['a'], until=2, width=400, alt='A bar.')
good(tables.plot_grid, {
    'xlabel': EMPTY, 'ylabel': EMPTY, 'title': EMPTY, 'rows': {'None'},
    'columns': {'None'}, 'most': NUMBER | {'None'}}, values=[[1]],
     rows=['a'], columns=['b'], xlabel='x', ylabel='y', title='z', most=1)
good(timeline_pictures.plot_timeline, {
    'until': POSITIVE | {'None'}, **TITLE},
     timeline=fresh(recorded), title='x', until=1)
good(plots.plot_topology, {'load': {'None', 'a dict'}, 'scale': FLAG,
                           'device': TEXT | {'an empty text'}, **TITLE,
                           **WIDTH},
     topology=topology.pcie_switch(2), load=None, scale=True, device='GPU ',
     title='x', width=400)
good(plots.plot_comparison, {
    'title': TEXT | {'an empty text'}, 'target': POSITIVE | {'None'},
    **WIDTH}, timings=fresh(lambda: [timing()]), title='', width=400,
    target=None)
good(plots.plot_timing, {'most': COUNT, 'until': POSITIVE | {'None'},
                         **TITLE},
     timing=fresh(timing), most=24, title='x', until=1)
good(player.plot_holdings, {
    'number': {'int64', 'zero'}, 'sums': FLAG, 'signs': FLAG,
    'width': {'int64', 'None'}, **TITLE},
     schedule=strategies.ring(2), number=0, title='x', sums=True, width=400,
     signs=True)
good(plans.explore_plans, {
    'num_devices': {'int64'}, 'number': WHOLE, 'plans': {'None'},
    'sums': FLAG}, plan='ring', num_devices=2, number=0, plans=None,
    sums=False)
good(latency.explore_latency, {
    'num_devices': {'int64'}, 'megabytes': {'a fraction', 'int64', 'float32'},
    'latency': NUMBER - {'a billion'}, 'sharded': FLAG,
    'bandwidth': {'a fraction', 'int64', 'float32'}}, num_devices=2,
    megabytes=1, latency=0, bandwidth=1, sharded=False)
for split in splits.split_costs, splits.draw_costs, splits.explore_splits:
    good(split, {'num_devices': {'int64'}}, way='data parallelism',
         num_devices=2, batch_size=256)
good(meter.Meter, layers=[lambda X: X])
good(meter.Meter([abs]).noted, function=lambda X: X)
good(meter.Meter([abs]).measure, {'X': {'an MXNet array'},
     'y': {'an MXNet array'}}, X=X, y=y, step=lambda *_: None, placed=[[X]],
     devices=d2lps.devices(1))
good(devices_toy.explore_devices, {
    'num_devices': {'int64'}, 'megabytes': {'a fraction', 'int64', 'float32'}},
    num_devices=2, megabytes=.01, way='sharded')
good(keys.explore_keys, {'sizes': {'None'}, 'num_servers': {'int64'},
                         'split_from': COUNT}, sizes=None, num_servers=2,
     split_from=100)
good(sums.explore_sums, {'seed': WHOLE}, order='ring', precision='float16',
     num_numbers=4, seed=0)
good(store_toy.explore_store, {'num_workers': {'int64'},
                               'consistency': WHOLE}, num_workers=2,
     consistency='sync')
good(timeline_pictures.explore_timeline, {'num_devices': {'int64'},
                                'batch_size': {'int64'}},
     num_devices=1, batch_size=16)
good(synchronisation.explore_synchronisation, {
    'num_devices': {'int64'}, 'megabytes': POSITIVE, 'bandwidth': POSITIVE,
    'latency': NUMBER, 'plans': {'None'}}, links='one PCIe switch',
    num_devices=2, megabytes=1, bandwidth=1, latency=0, plans=['ring'])
SERVERS = dict(num_workers=2, num_servers=1, nbytes=8, bandwidth=1e9,
               colocated=False)
for call in (servers.predicted_seconds, servers.simulated,
             servers.plot_servers):
    good(call, {'num_workers': COUNT, 'num_servers': COUNT, 'nbytes': NUMBER,
                'bandwidth': POSITIVE, 'colocated': FLAG,
                'pieces': {'None', 'int64'}}, **SERVERS,
         **({'pieces': 2} if call is servers.simulated else {}))
LINKED = {'bandwidth': POSITIVE, 'latency': NUMBER, 'pull': FLAG,
          'forward': {'a list'}}
STEP = dict(backward=[1, 1], nbytes=[1, 1], bandwidth=1, latency=0,
            pull=False, forward=[1, 1])
good(overlap.best_possible, LINKED, **STEP)
good(overlap.simulate_step, LINKED | {
    'bucket_size': NUMBER, 'slice_size': POSITIVE | {'None'}}, **STEP,
     order='fifo', bucket_size=0, slice_size=1)
good(link.seen_tasks, {'start': NUMBER}, ready=[1],
     samples=[(0, 0, 0), (1, 2, 2)], start=0)
good(overlap_pictures.plot_step, {
    'title': TEXT | {'an empty text'},
    'until': POSITIVE | {'None'}, 'best': NUMBER | {'None'},
    'rows': {'None'}},
     tasks=[overlap.Task('push', (0,), 0, 1)], title='', until=None,
     best=None, rows=['sent'])
good(overlap_pictures.explore_overlap, {
    'bandwidth': POSITIVE, 'latency': NUMBER, 'bucket_size': NUMBER},
     bandwidth=1000, latency=0, bucket_size=0, order='fifo')
good(servers.explore_servers, {
    'num_workers': {'int64'}, 'num_servers': {'int64'},
    'megabytes': POSITIVE, 'gigabits': POSITIVE, 'colocated': FLAG},
    num_workers=2, num_servers=1, megabytes=1, gigabits=1, colocated=False)
good(explore_steps, {'step': {'int64'}}, step=2)
good(recovery_pictures.plot_circle, {
    'replicas': COUNT, 'num_keys': {'int64'}, 'num_points': {'int64'}},
     before=[0, 1], after=[0], replicas=1, num_keys=4, num_points=2)
good(recovery_pictures.explore_circle, {
    'replicas': {'int64'}, 'num_points': {'int64'}}, event='server 1 dies',
     replicas=1, num_servers=4, num_points=2)

# Drawings.
good(Drawing, {'width': POSITIVE, 'height': POSITIVE, 'alt': TEXT},
     width=9, height=9, alt='A.')
good(split_drawings.draw_splits, {'only': {'None'}, 'num_devices': {'int64'}},
     only='layers', num_devices=2)
good(split_drawings.draw_collectives, {
    'only': {'None'}, 'num_devices': {'int64'}}, only='all-reduce',
     num_devices=2)
good(split_drawings.draw_sharded_update, {'num_devices': {'int64'}},
     num_devices=2)
good(step_drawings.draw_split_batch, {
    'rows': {'int64'}, 'num_devices': {'int64'}}, rows=4, num_devices=2)
good(step_drawings.draw_training_step, {'num_devices': {'int64'}},
     num_devices=2)
good(cluster_drawings.draw_cluster, {
    'num_workers': {'int64'}, 'num_servers': {'int64'}, 'machines': {'None'}},
     num_workers=2, num_servers=2, machines='apart')
good(cluster_drawings.draw_keys, {'num_servers': {'int64'},
                                  'split_from': COUNT},
     sizes={'a': 3}, num_servers=2, split_from=10)
good(cluster_drawings.draw_seven_steps, {'step': {'int64', 'None'}}, step=2)

# Stores.
good(kvstore.place, {'key': KEY, 'size': WHOLE, 'num_servers': COUNT,
                     'split_from': COUNT}, key=0, size=3, num_servers=2,
     split_from=10)
good(kvstore.KVStore, {'num_workers': {'int64'}, 'num_servers': {'int64'},
                       'consistency': WHOLE, 'timeout': POSITIVE,
                       'split_from': COUNT}, num_workers=1, num_servers=1,
     consistency='sync', timeout=1, split_from=10)
method(store, 'worker', {'rank': {'zero'}}, rank=0)
method(store, 'missing', {'key': KEY}, key='w')
method(store, 'run', function=lambda handle: handle.rank)
method(store, 'set_updater', {'updater': {'None'}}, updater=print)
method(store, 'set_optimizer', optimizer=mx.optimizer.SGD())
method(store, 'init', {'key': KEY, 'value': {'an MXNet array'}}, key='v',
       value=np.ones(3))
for call, argument in (('push', 'value'), ('pull', 'out')):
    method(store, call, {'key': {'a list'}, argument: {'an MXNet array'},
                         'priority': EVERYTHING}, key='w',
           **{argument: np.ones(3)}, priority=0)
method(store, 'pushpull', {'key': {'a list'}, 'value': {'an MXNet array'},
                           'out': {'an MXNet array', 'None'},
                           'priority': EVERYTHING}, key='w',
       value=np.ones(3), out=np.ones(3), priority=0)
good(kvstore.prepare_store, {'lr': POSITIVE},
     store=fresh(kvstore.KVStore), params=fresh(params), lr=0.1)


def prepared():
    one = kvstore.KVStore()
    kvstore.prepare_store(one, params(), 0.1)
    return one


good(kvstore.train_batch_store, X=X, y=y, device_params=fresh(copies),
     devices=d2lps.devices(2), store=fresh(prepared))
good(kvstore.store_step, store=fresh(kvstore.KVStore))

# Stores that lose servers.
good(recovery.ReplicatedStore, {
    'num_servers': {'int64'}, 'replicas': COUNT, 'num_workers': {'int64'},
    'num_points': {'int64'}}, num_servers=2, replicas=2, num_workers=1,
    num_points=4)


def replicated():
    one = recovery.ReplicatedStore(3)
    one.init(0, np.ones(3))
    return one


method(replicated, 'set_updater', {'updater': {'None'}}, updater=print)
method(replicated, 'chain', {'key': {'zero'}}, key=0)
method(replicated, 'init', {'key': KEY - {'zero'}, 'value': {
    'an MXNet array'}}, key='v', value=np.ones(3))
for call in 'push', 'messages':
    method(replicated, call, {'key': {'zero'}}, key=0, values=[np.ones(3)])
method(replicated, 'pull', {'key': {'zero'}, 'out': {'an MXNet array'}},
       key=0, out=np.ones(3))
method(replicated, 'kill', {'server': {'zero', 'int64'}}, server=0)
method(replicated, 'join', {'server': WHOLE - {'a billion', 'zero'}},
       server=7)

# Workers on a virtual clock.
good(asynchrony.step_times, {
    'num_workers': {'int64'}, 'num_steps': {'int64'}, 'seed': WHOLE,
    'slowdown': {'a fraction', 'int64'}},
    kind='heavy tail', num_workers=2, num_steps=3, slowdown=5, seed=0)
good(asynchrony.virtual_clock, {
    'consistency': WHOLE, 'num_gradients': {'int64'}, 'backups': {'zero'}},
    times=[[1], [2]], consistency='async', num_gradients=4, backups=0)


def plan():
    return asynchrony.virtual_clock([[1], [2]], 'async', 4)


good(asynchrony.follow, {
    'lr': POSITIVE, 'batch_size': {'int64'}, 'num_points': {'int64'},
    'divide': FLAG, 'seed': WHOLE}, plan=fresh(plan), lr=0.1, batch_size=2,
    num_points=2, divide=False, seed=0)
good(async_pictures.plot_plan, {
    'until': POSITIVE | {'None'}, **TITLE, **WIDTH}, plan=fresh(plan),
    until=2, title='x', width=400)
good(async_pictures.plot_progress, {
    'until': POSITIVE | {'None'}, 'height': {'int64'}, **WIDTH},
    plans=fresh(lambda: {'sync': plan()}), until=3, width=400, height=200)
good(async_pictures.plot_staleness, plans=fresh(lambda: {'sync': plan()}))
good(async_pictures.plot_accuracy, curves=fresh(
    lambda: {'sync': [asynchrony.follow(plan(), 0.1, 2, 2)[0]]}))
good(async_pictures.explore_clock, {
    'bound': {'zero'}, 'slowdown': {'a fraction', 'int64'}, 'seed': WHOLE},
    kind='one straggler', bound=4, slowdown=5, seed=0)

# Checkpoints.
FOLDERS = tempfile.TemporaryDirectory()
FOLDER = fresh(lambda: tempfile.mkdtemp(dir=FOLDERS.name))
good(recovery.Checkpoint, {'folder': TEXT, 'keep': COUNT}, folder=FOLDER,
     keep=3)


def teardown_module():
    FOLDERS.cleanup()


def a_checkpoint():
    return recovery.Checkpoint(FOLDER.make())


method(a_checkpoint, 'save', {'step': WHOLE, 'state': {'a dict'}}, step=3,
       state={'params': [onp.ones(3)]})
method(a_checkpoint, 'load', {'like': {'None'}, 'at_most': WHOLE | {'None'}},
       like=[np.ones(3)], at_most=3)
good(recovery.train_with_checkpoints, {
    'folder': TEXT, 'num_steps': {'int64'}, 'batch_size': {'int64'},
    'lr': POSITIVE, 'momentum': {'zero', 'float32'}, 'every': COUNT,
    'keep': COUNT, 'seed': WHOLE, 'store': {'None'}, 'wait_at': {'a list'}},
    folder=FOLDER, num_steps=1, batch_size=2, lr=0.02, momentum=0.9, every=1,
    keep=3, seed=0, store=fresh(kvstore.KVStore), wait_at=[5])

# How often: what is too often or too seldom is refused.
TIMES = dict(interval=3, cost=1, between_failures=1000, restart=0)
RARE = {'interval': POSITIVE, 'cost': NUMBER, 'between_failures': POSITIVE,
        'restart': NUMBER}
good(recovery.best_interval, {'cost': POSITIVE, 'between_failures': POSITIVE},
     cost=1, between_failures=1000)
good(recovery.overhead, RARE, **TIMES)
good(recovery.exact_overhead, RARE, **TIMES)
good(recovery.simulated_overhead, RARE | {
    'num_intervals': {'int64'}, 'seed': WHOLE}, **TIMES, num_intervals=9,
    seed=0)

# Plans that travel, from one worker to none.
good(peers.Peers, {'rank': {'zero'}, 'timeout': POSITIVE, 'secret': {
    'a text', 'an empty text'}}, rank=0, addresses=fresh(
        lambda: [f'{tempfile.mkdtemp()}/0']), timeout=60, secret='')
good(peers.join_peers, {'timeout': POSITIVE | {'None'}, 'ranks': {'None'}},
     timeout=60, ranks=None)
good(travel.run, {'events': {'None', 'a list'}, 'array': {'a NumPy array'}},
     peers=fresh(lambda: peers.Peers(0, [f'{tempfile.mkdtemp()}/0'])),
     plan=strategies.ring(1), array=fresh(lambda: onp.ones(3)), op=onp.add,
     events=None)

# Clusters; none is started here (see `no_processes`).
good(Network, {'bandwidth': {'a billion'}, 'delay': NUMBER,
               'colocated': FLAG, 'bucket': {'a billion'},
               'queue': {'a billion', 'None'}}, bandwidth=1e8,
     delay=0, colocated=False, bucket=4000, queue=4000)
good(network_problem, {'delay': NUMBER}, delay=0)
good(Cluster, {'num_workers': {'int64'}, 'num_servers': {'int64', 'zero'},
               'timeout': POSITIVE, 'restarts': WHOLE, 'elastic': FLAG,
               **{name: {'None'} for name in (
                   'port', 'network', 'hosts', 'address', 'python', 'ssh',
                   'server_hosts', 'ports')}},
     num_workers=2, num_servers=1, timeout=60, restarts=3, elastic=False,
     **{name: None for name in inspect.signature(Cluster).parameters
        if name not in ('num_workers', 'num_servers', 'timeout', 'restarts',
                        'elastic')})
good(bare_mxnet, {'num_workers': {'int64'}, 'seconds': POSITIVE,
                  'script': TEXT}, script='pass', num_workers=1, seconds=1)
good(worker.create_store, kind='dist_sync')

good(connections.who_to_whom, workers=[{'a > b': 1}, {'b > a': 2}])

# What readers do not call themselves: what does is walked through above.
INSIDE = {
    'd2lps.exercises': 'check, hidden and picture: tests/exercises',
    'd2lps.lazy': 'our own tables',
    'd2lps.pictures.night': 'our own drawings: pictures/test_animation.py',
    'd2lps.missing': 'what is installed: tests/test_light.py',
    'd2lps.checks': 'the checks themselves: tests/test_checks.py',
    'd2lps.collectives.limits': 'more checks',
    'd2lps.collectives.reading': 'Schedule',
    'd2lps.collectives.flows': 'simulate.time',
    'd2lps.collectives.routes': 'Topology.routes',
    'd2lps.training.array_checks': 'more checks',
    'd2lps.kvstore.store_arguments': 'more checks',
    'd2lps.settings': 'no arguments',
    'd2lps.usage': 'no arguments',
    'd2lps.collectives.execute': 'Schedule.run',
    'd2lps.cluster.peers.joining': 'Peers',
    'd2lps.cluster.peers.ops': 'travel.run',
    'd2lps.training.progress': 'train',
    'd2lps.recovery.file': 'Checkpoint',
    'd2lps.cluster.cluster': 'needs processes: tests/cluster/test_cluster.py',
    'd2lps.cluster.store.diststore': 'in a worker: below',
    'd2lps.cluster.bare': 'what its processes do; bare_mxnet is below',
    'd2lps.cluster.recorded': 'tests/cluster/test_recorded.py',
    'd2lps.cluster.command': 'the command', 'd2lps.cluster.network': 'below',
    'd2lps.pictures.drawing': 'boxes of a drawing: pictures/test_drawing.py',
    'd2lps.pictures.chart': 'what our pictures are drawn with: '
                            'pictures/test_chart.py',
    'd2lps.pictures.animation': 'animate, which takes any number of timings: '
                                'tests/pictures/test_animation.py',
    'd2lps.pictures.training_panel': 'starts threads: tests/pictures/test_panel.py',
    'd2lps.cluster.store': 'the machine room',
    'd2lps.cluster.processes': 'the machine room'}
RECORDS = {'Machine', 'Send', 'Round', 'Link', 'Event', 'Timing', 'Shard',
           'Server', 'BoundedServer', 'BackupServer', 'DividingServer',
           'Plan', 'Step',
           'Point', 'TrainResult', 'live_picture', 'total', 'parts', 'share',
           'Schedule.states', 'Schedule.check_sends', 'Trained', 'forever',
           'newest_for_all', 'sum_gradients', 'Task', 'Message',
           'push_then_pull', 'in_flight', 'Costs', 'told_in', 'known',
           'channels', 'backward_pass', 'make_messages', 'send', 'replies',
           'forward_pass', 'position', 'circle', 'chain',
           # of Peers; `travel.run` calls them, or is above
           'Peers.running', 'Peers.send', 'Peers.receive', 'Peers.close',
           'combine', 'digest', 'readable', 'part_of', 'carry_out', 'check',
           'send_all', 'receive_all', 'Peers.begin_round'}


@functools.cache
def public_functions():
    """{name: function} of all that a reader may call with arguments."""
    return dict(_public_functions())


def _public_functions():
    packages = d2lps, d2lps.cluster, d2lps.exercises, d2lps.pictures
    for found in [module for package in packages
                  for module in pkgutil.walk_packages(
                      package.__path__, f'{package.__name__}.')]:
        if found.name.endswith('__main__') or any(
                found.name.startswith(name) for name in INSIDE):
            continue
        module = importlib.import_module(found.name)
        for name, one in vars(module).items():
            if (name.startswith('_') or name in RECORDS or
                    getattr(one, '__module__', None) != found.name or
                    found.name.startswith('d2lps.pictures') and
                    not hasattr(d2lps.pictures, name)
                    or inspect.isclass(one) and issubclass(one, Exception)):
                continue
            if (inspect.isclass(one) or inspect.isfunction(one)) and (
                    arguments(one)[:2] != ['name', 'value']):  # a check
                yield name, one
            for inner, call in vars(one).items() if (
                    inspect.isclass(one)) else ():
                if not inner.startswith('_') and inspect.isfunction(call):
                    yield f'{name}.{inner}', call


def arguments(call):
    return [name for name, parameter in
            inspect.signature(call).parameters.items() if name != 'self']


def test_every_public_function_is_in_the_walk():
    missing = [name for name, call in public_functions().items()
               if name not in CALLS and arguments(call)
               and name not in RECORDS]
    assert not missing


def test_every_argument_is_in_the_walk():
    known = public_functions()
    wrong = {name: {*arguments(known[name])} ^ {*CALLS[name][1]}
             for name in CALLS if name in known}
    assert not any(wrong.values()), wrong


@contextmanager
def at_most(seconds):
    """A call that hangs is an error, too."""
    def stop(*_):
        raise RuntimeError(f'the call took more than {seconds} s')
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def no_processes(monkeypatch, request, tmp_path):
    """Clusters check arguments and start nothing; there are few digits."""
    monkeypatch.chdir(tmp_path)
    if 'one_worker' in request.fixturenames:
        yield
        return
    few = [(images[:64], labels[:64]) for images, labels in data._digits()]
    monkeypatch.setattr(data, '_digits', lambda: few)
    monkeypatch.setattr(restarts, 'Supervisor', lambda *args: SimpleNamespace(
        start=lambda: None, close=lambda: None, failure='', busy=list,
        num_ready=0, num_workers=0))
    for name, value in {'RANK': '0', 'D2LPS_SECRET': '', 'D2LPS_TIMEOUT': '9',
                        'D2LPS_PEERS': f'["{tempfile.mkdtemp()}/0"]'}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(bare, 'FIRST', 'pass')  # the script runs in test_bare
    monkeypatch.setattr(worker, '_asking', 'the cluster')
    monkeypatch.setattr(worker, 'DistStore', lambda *args: None)
    monkeypatch.setattr(mx.kv, 'create', lambda kind: kvstore.KVStore())
    yield


def made(value):
    return value.make() if isinstance(value, fresh) else value


def essence(result):
    """What two results must have in common to be the same; None: unknown."""
    if isinstance(result, (list, tuple)):
        return [essence(one) for one in result]
    if isinstance(result, Schedule):
        return [[*map(tuple, rounds)] for rounds in result.rounds]
    if isinstance(result, simulate.Timing):
        return result.seconds
    if isinstance(result, topology.Topology):
        return result.links
    if isinstance(result, (np.ndarray, onp.ndarray)):
        return onp.asarray(result.asnumpy() if hasattr(result, 'asnumpy')
                           else result).tolist()
    if isinstance(result, (int, float, str, onp.generic, mx.Context)):
        return str(result)
    return None


STARTING = 'bare_mxnet', 'network_problem', 'step_timeline'
each_call = pytest.mark.parametrize('name', [
    pytest.param(name, marks=pytest.mark.full if name in STARTING else ())
    for name in CALLS])


def problem(call, arguments, argument, what, sense):
    """What is wrong with a call with one bad argument, or ''."""
    def attempt(value):
        with at_most(LIMIT):
            return essence(call(**{name: made(one) for name, one in
                                   (arguments | {argument: value}).items()}))
    try:
        result = attempt(BAD[what])
    except (ValueError, TypeError) as error:
        # What would make sense alone may not go with another argument.
        names = '|'.join(arguments if what in sense else [argument])
        return '' if re.search(rf'\b({names})\b', str(error)) else (
            f'does not name it: {error!r}')
    except Exception as error:
        return f'a raw error: {error!r}'
    if what not in sense:
        return 'accepted without a word'
    if result is None or call is d2lps.copy_bandwidth:
        return ''  # nothing to compare, or measured: never the same twice
    if what in PLAIN and result != attempt(PLAIN[what]):
        return 'not what the plain number gives'
    return ''


@each_call
def test_the_good_arguments_are_good(name):
    call, arguments, _ = CALLS[name]
    call(**{name: made(value) for name, value in arguments.items()})


def problems(name, call, arguments, sense):
    """All that is wrong with one function, in lines."""
    found = []
    for argument in arguments:
        for what in TRIED:
            words = problem(call, arguments, argument, what,
                            sense.get(argument, NOTHING))
            if words:
                found.append(f'{name}({argument}: {what}): {words}')
    return found


@pytest.mark.cases
@each_call
def test_bad_arguments_are_named(name, capsys):
    assert '\n'.join(problems(name, *CALLS[name])) == ''


@pytest.mark.cases
@each_call
def test_odd_arguments_are_named_in_few_words(name, capsys):
    call, arguments, _ = CALLS[name]
    found = []
    for argument in arguments:
        for what in FEW_ODD if QUICK else ODD:
            try:
                with at_most(LIMIT):
                    call(**{name: made(one) for name, one in
                            (arguments | {argument: ODD[what]}).items()})
            except (ValueError, TypeError) as error:
                # It may be that it does not go with another argument.
                words = '|'.join(arguments)
                if len(str(error)) > 1500 or isinstance(
                        error, UnicodeError) or not re.search(
                            rf'\b({words})\b', str(error)):
                    found.append(f'{argument}, {what}: {str(error):.300}')
            except Exception as error:
                found.append(f'{argument}, {what}: {error!r:.300}')
    assert not found


def walk_through_the_store():
    """In a worker of a cluster: its end of MXNet's store."""
    kv = mx.kv.create('dist_sync')
    kv.init('w', np.ones(3))
    array, known = {'an MXNet array'}, {'a text', 'an empty text'}
    value = dict(key='w', value=np.ones(3), priority=0)
    out = dict(key='w', out=np.ones(3), priority=0)
    calls = [
        ('init', dict(key='v', value=np.ones(3)), {
            'key': known, 'value': array}),
        ('push', value, {'key': known, 'value': array,
                         'priority': EVERYTHING}),
        ('pull', out, {'key': known, 'out': array, 'priority': EVERYTHING}),
        ('pushpull', value | out, {
            'key': known, 'value': array, 'out': array | {'None'},
            'priority': EVERYTHING}),
        ('set_updater', dict(updater=print), {'updater': NOTHING}),
        ('set_optimizer', dict(optimizer=mx.optimizer.SGD()), {}),
        ('set_gradient_compression', dict(
            params={'type': '2bit', 'threshold': 0.5}), {})]
    return [line for name, arguments, sense in calls
            for line in problems(name, getattr(kv, name), arguments, sense)]


@pytest.fixture
def one_worker():
    with Cluster(1, 1) as running:
        yield running


@pytest.mark.full
def test_bad_arguments_of_the_distributed_store_are_named(one_worker):
    [lines] = one_worker.run(walk_through_the_store)
    assert '\n'.join(lines) == ''
