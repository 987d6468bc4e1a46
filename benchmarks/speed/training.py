"""LeNet on one device and on two; its minibatches; its checkpoints."""
import shutil

import d2lps  # first: it prepares MXNet's engine
import mxnet as mx
import numpy as np

BATCH_SIZE, LR, STEPS, IMAGES = 256, 0.1, 8, 60_000


def batches(num_images):
    random = np.random.default_rng(0)
    return d2lps.Batches(
        random.integers(0, 256, (num_images, 28, 28), 'uint8'),
        random.integers(0, 10, num_images).astype('int32'), BATCH_SIZE,
        shuffle=True)


class Training:
    params, param_names = [1, 2], ['devices']
    rounds, repeat = 3, 4

    def setup(self, num_devices):
        self.devices = d2lps.devices(num_devices)
        self.data = [*batches(STEPS * BATCH_SIZE)]
        self.copies = [d2lps.get_params(d2lps.init_params(), device)
                       for device in self.devices]
        mx.nd.waitall()

    def time_8_steps(self, num_devices):
        for X, y in self.data:
            d2lps.train_batch(X, y, self.copies, self.devices, LR)
        mx.nd.waitall()


class Loader:
    rounds, repeat = 3, 4

    def setup(self):
        self.data = batches(IMAGES)

    def time_60000_images(self):
        for X, _ in self.data:
            X.wait_to_read()


class Checkpoints:
    """The 40 MB of 5,000,000 parameters and as many momenta."""
    rounds, repeat = 3, 4

    def setup(self):
        param = mx.np.ones(5_000_000)
        self.state = {'params': [param], 'momenta': [0 * param]}
        self.checkpoint = d2lps.Checkpoint('checkpoints', keep=1)
        self.checkpoint.save(1, self.state)

    def teardown(self):
        self.checkpoint.close()
        shutil.rmtree('checkpoints')

    def time_save(self):
        self.checkpoint.save(2, self.state)

    def time_load(self):
        self.checkpoint.load()
