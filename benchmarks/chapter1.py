"""Chapter 1's figures, all measured in one run: python chapter1.py

Each contestant is a process of its own, since MXNet reads its settings when
it starts. They take turns, an epoch each, so that a machine that grows slower
grows slower for all of them.
"""
import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time

BATCH_SIZE, LR = 256, 0.1
OURS = {'OMP_NUM_THREADS': '1', 'MXNET_CPU_TEMP_COPY': '64'}
# What d2lps chooses for itself by the processor, and others shall not have.
KERNELS = 'OPENBLAS_CORETYPE', 'DNNL_MAX_CPU_ISA'
ONE_DEVICE_ALL_CORES = {**OURS, 'OMP_NUM_THREADS': '2'}
DEFAULT = {}


def digits():
    """The training digits as NumPy arrays, for those who bring a loader."""
    import d2lps
    return d2lps.load_data(BATCH_SIZE)[0]


def book(num_devices):
    """The book's way: d2l's devices and helpers, npx.relu, in memory."""
    from mxnet import autograd, gluon, np, npx
    from d2l import mxnet as d2l
    npx.set_np()
    import warnings
    warnings.simplefilter('ignore')  # d2lps would warn of these settings
    from d2lps.training.lenet_layers import init_params
    data, devices = digits(), [d2l.try_gpu(i) for i in range(num_devices)]
    copies = []
    for device in devices:
        copies.append([param.copyto(device) for param in init_params()])
        for param in copies[-1]:
            param.attach_grad()
    loss = gluon.loss.SoftmaxCrossEntropyLoss()

    def net(X, p):
        for W, b in ((p[0], p[1]), (p[2], p[3])):
            X = npx.relu(npx.convolution(
                data=X, weight=W, bias=b, kernel=W.shape[2:],
                num_filter=W.shape[0]))
            X = npx.pooling(data=X, kernel=(2, 2), stride=(2, 2),
                            pool_type='avg')
        X = npx.relu(np.dot(X.reshape(X.shape[0], -1), p[4]) + p[5])
        return np.dot(X, p[6]) + p[7]

    def epoch():
        for X, y in data:
            if len(X) % num_devices:
                continue  # d2l.split_batch cannot split it
            X_shards, y_shards = d2l.split_batch(X, y, devices)
            with autograd.record():
                losses = [loss(net(a, p), b).sum() for a, b, p in
                          zip(X_shards, y_shards, copies)]
            for l in losses:
                l.backward()
            for params in zip(*copies):
                for other in params[1:]:
                    params[0].grad[:] += other.grad.copyto(devices[0])
                for other in params[1:]:
                    params[0].grad.copyto(other.grad)
            for params in copies:
                d2l.sgd(params, LR, len(X))
        npx.waitall()
    return epoch, data.num_examples


def ours(num_devices):
    import warnings
    warnings.simplefilter('ignore')  # of two threads; one device is safe
    import d2lps
    from mxnet import npx
    devices, data = d2lps.devices(num_devices), digits()
    copies = [d2lps.get_params(d2lps.init_params(), d) for d in devices]

    def epoch():
        for X, y in data:
            d2lps.train_batch(X, y, copies, devices, LR)
        npx.waitall()
    return epoch, data.num_examples


def pytorch(num_threads):
    data = digits()
    images, labels = data.images, data.labels
    import numpy
    import torch
    from torch import nn
    torch.set_num_threads(num_threads)
    net = nn.Sequential(
        nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2),
        nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10))
    loss = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=LR)
    X_all = torch.tensor(images[:, None])
    y_all = torch.tensor(labels.astype('int64'))

    def epoch():
        order = torch.from_numpy(numpy.random.permutation(len(images)))
        for rows in order.split(BATCH_SIZE):
            optimizer.zero_grad()
            loss(net(X_all[rows].float() / 255), y_all[rows]).backward()
            optimizer.step()
    return epoch, len(images)


def random_images(n=60_000):
    import numpy
    random = numpy.random.default_rng(0)
    return (random.integers(0, 256, (n, 28, 28), 'uint8'),
            random.integers(0, 10, n).astype('int32'))


def d2l_loader(_):
    import mxnet
    from d2l import mxnet as d2l
    mxnet.npx.set_np()
    images, labels = random_images()

    class FashionMNIST(mxnet.gluon.data.vision.FashionMNIST):
        """As MXNet's own, with images that need no network."""
        def __init__(self, train):
            self._transform = None
            self._data = mxnet.np.array(images[..., None], dtype='uint8')
            self._label = labels

    mxnet.gluon.data.vision.FashionMNIST = FashionMNIST
    train_iter, _ = d2l.load_data_fashion_mnist(BATCH_SIZE)

    def epoch():
        for X, _ in train_iter:
            X.wait_to_read()
    return epoch, len(images)


def our_loader(_):
    import d2lps
    data = d2lps.Batches(*random_images(), BATCH_SIZE, shuffle=True)

    def epoch():
        for X, _ in data:
            X.wait_to_read()
    return epoch, data.num_examples


CONTESTANTS = {  # name: (function, its argument, environment)
    'book, 1 device': (book, 1, DEFAULT),
    'book, 2 devices': (book, 2, DEFAULT),
    'd2lps, 1 device': (ours, 1, OURS),
    'd2lps, 2 devices': (ours, 2, OURS),
    'one device, 2 threads': (ours, 1, ONE_DEVICE_ALL_CORES),
    'PyTorch, 1 thread': (pytorch, 1, DEFAULT),
    'PyTorch, 2 threads': (pytorch, 2, DEFAULT),
    'loader of d2l': (d2l_loader, 0, DEFAULT),
    'loader of d2lps': (our_loader, 0, OURS),
}


def serve(name):
    """Run an epoch for each line that comes in, and say how fast it was."""
    make, argument, _ = CONTESTANTS[name]
    epoch, num_images = make(argument)
    epoch()  # not counted: memory is allocated, code is chosen
    print('ready', flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        epoch()
        print(num_images / (time.perf_counter() - start), flush=True)


def start(*arguments, env):
    clean = {k: v for k, v in os.environ.items()
             if k not in {*OURS, *KERNELS}}
    return subprocess.Popen([sys.executable, __file__, *arguments],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True, env={**clean, **env})


def main(rounds):
    names = [n for n in CONTESTANTS if not n.startswith('PyTorch')
             or importlib.util.find_spec('torch')]
    processes = {}
    for name in names:
        processes[name] = start('--serve', name, env=CONTESTANTS[name][2])
        assert processes[name].stdout.readline() == 'ready\n', name
    speeds = {name: [] for name in names}
    for _ in range(rounds):
        for name, process in processes.items():
            process.stdin.write('\n')
            process.stdin.flush()
            speeds[name].append(float(process.stdout.readline()))
    for process in processes.values():
        process.stdin.close()
        process.wait(timeout=60)
    print(f'{"images per second":<24}{"median":>10}{"min":>10}{"max":>10}')
    for name, values in speeds.items():
        print(f'{name:<24}{statistics.median(values):>10,.0f}'
              f'{min(values):>10,.0f}{max(values):>10,.0f}')
    print('\nratios, median over rounds')
    for a, b in (('d2lps, 2 devices', 'd2lps, 1 device'),
                 ('d2lps, 2 devices', 'one device, 2 threads'),
                 ('d2lps, 2 devices', 'book, 1 device'),
                 ('d2lps, 2 devices', 'book, 2 devices'),
                 ('d2lps, 2 devices', 'PyTorch, 2 threads'),
                 ('d2lps, 1 device', 'PyTorch, 1 thread'),
                 ('loader of d2lps', 'loader of d2l')):
        if a in speeds and b in speeds:
            ratio = statistics.median(x / y for x, y in
                                      zip(speeds[a], speeds[b]))
            print(f'{a:<17} / {b:<22}{ratio:>6.2f}')


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--serve', help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve)
    else:
        main(args.rounds)
