"""The operations of each device, as MXNet's profiler recorded them."""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mxnet import profiler

from d2lps.annotations import Device
from d2lps.checks import checked, instance_of, integer, refuse
from d2lps.engine import device_list, devices, mx, npx, num_devices
from d2lps.processor import cores
from d2lps.training.data import load_data
from d2lps.training.data_parallel import get_params, train_batch
from d2lps.training.lenet_layers import init_params
from d2lps.units import TIMES, several, with_unit

PHASES = ('forward', 'backward', 'copy', 'sum', 'update', 'other')
# Operations that no phase of ours owns: bookkeeping, next to no time.
NEUTRAL = ('_np_reshape', 'SetValueOp', 'DeleteVariable')
LOSS = ('log_softmax', 'pick', '_npi_negative')
LIMIT = 120  # seconds that a step in a process of its own may take
START = ('Convolution', '_np_dot')  # of a forward pass
UPDATE = ('_npi_subtract', '_npi_multiply_scalar', '_npi_true_divide_scalar',
          'sgd_update', 'sgd_mom_update')


class Operation(NamedTuple):
    """Operation `name` ran on `device`; times in seconds from the start."""
    device: str
    phase: str
    name: str
    start: float
    end: float


def _phase(name, gradients_known):
    """The phase of operation `name`, before or after a backward pass."""
    if name.startswith('Copy'):
        return 'copy'
    # By default MXNet runs the backward pass in bulk, under this one name.
    if '_backward' in name or name == 'ImperativeBulk':
        return 'backward'
    if name in UPDATE and gradients_known:
        return 'update'
    if name == '_npi_add' and gradients_known:
        return 'sum'
    # The value of the loss may come late, as no gradient depends on it.
    return 'forward' if not gradients_known or name in LOSS else 'other'


@cache
def _profile_file():
    """Set up MXNet's profiler, which can be done once in a process only."""
    folder, owner = tempfile.mkdtemp(prefix='d2lps-'), os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(
        folder, ignore_errors=True))  # a fork's end is not ours
    file = Path(folder) / 'profile.json'
    profiler.set_config(filename=str(file), profile_imperative=True,
                        profile_symbolic=False, profile_memory=False,
                        profile_api=False, aggregate_stats=False)
    return file


def _end_of_record(file):
    """Stop MXNet's profiler and return the marks that it has written."""
    profiler.set_state('stop')
    profiler.dump()
    text = file.read_text('utf-8').strip()
    file.write_text('', 'utf-8')  # the next record is appended
    if not text.startswith('{'):  # a later record lacks the opening
        text = '{"traceEvents": [' + text.lstrip(',')
    try:
        return json.loads(text)['traceEvents']
    except json.JSONDecodeError:
        raise OSError(f'MXNet could not write its whole record to {file}: '
                      'is the disk full?') from None


class Timeline:
    """Record what `devices` do in a `with` block, anew in each block.

    Args:
        devices: the devices that are used in the block (a list).

    Attributes:
        events: a list of `Operation`, ordered by start; empty until the block
            ends. Times are in seconds from the first event's start.

    Raises:
        ValueError: if MXNet's profiler cannot follow so many devices; it
            would end the whole Python process.
        RuntimeError: if another one is recording: MXNet makes one at a time.
        OSError: if the folder for temporary files has no room.
    """

    _recording = threading.Lock()

    @checked(devices=device_list)
    def __init__(self, devices: Sequence[Device]) -> None:
        limit = cores() + 2 + npx.num_gpus()
        worst = max(device.device_id for device in devices) + 1
        if worst > limit:
            raise ValueError(
                f'devices has {worst} devices, but on this machine MXNet can '
                f'record at most {limit}: try d2lps.devices({limit})')
        self.devices = [str(device) for device in devices]
        self.events: list[Operation] = []
        self._names = {}
        for device in devices:
            # The profiler numbers CPU devices first, one a core, GPUs after.
            first = cores() if device.device_type == 'gpu' else 0
            self._names[first + device.device_id] = str(device)

    def __enter__(self) -> 'Timeline':
        if not self._recording.acquire(blocking=False):
            raise RuntimeError('another Timeline is being recorded, and MXNet '
                               'records one at a time: end its block first')
        try:
            mx.nd.waitall()  # earlier operations are no part of this
            self._file = _profile_file()
            profiler.set_state('run')
        except BaseException:
            self._recording.release()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            mx.nd.waitall()
        finally:
            try:
                trace = _end_of_record(self._file)
            finally:
                self._recording.release()
        self._read(trace)

    def _read(self, trace):
        """Make events from begin ('B') and end ('E') marks of a trace."""
        open_marks, gradients_known = {}, dict.fromkeys(self.devices, False)
        self.events = []
        marks = [m for m in trace
                 if m['ph'] in 'BE' and m.get('cat') == 'operator'
                 and m['name'] not in NEUTRAL]
        for mark in sorted(marks, key=lambda mark: mark['ts']):
            name, thread = mark['name'], (mark['pid'], mark['tid'])
            if mark['ph'] == 'B':
                open_marks[thread] = mark['ts']
            elif thread in open_marks and mark['pid'] in self._names:
                device = self._names[mark['pid']]
                if name in START:
                    gradients_known[device] = False
                phase = _phase(name, gradients_known[device])
                if phase == 'backward':
                    gradients_known[device] = True
                self.events.append(Operation(
                    device, phase, name, open_marks.pop(thread) / 1e6,
                    mark['ts'] / 1e6))
        self.events.sort(key=lambda event: event.start)
        zero = self.events[0].start if self.events else 0
        self.events = [e._replace(start=e.start - zero, end=e.end - zero)
                       for e in self.events]

    @property
    def seconds(self) -> float:
        """Time from the first event's start to the last one's end."""
        return max((e.end for e in self.events), default=0)

    def busy(self, device: Device | str) -> float:
        """The share of `seconds` in which `device` worked, 0 to 1.

        ValueError if `device` was not recorded.
        """
        if str(device) not in self.devices:
            refuse('device', device, 'one of ' + ', '.join(self.devices))
        return self._share(1, [str(device)])

    @property
    def overlap(self) -> float:
        """The share of `seconds` with more than one device at work, 0 to 1."""
        return self._share(2, self.devices)

    def _share(self, least, devices):
        """Share of the time when at least `least` of `devices` worked."""
        # Each start and end is a change in who works; sum the gaps between.
        changes = sorted((t, change, e.device) for e in self.events
                         if e.device in devices
                         for t, change in ((e.start, 1), (e.end, -1)))
        at_work, total = dict.fromkeys(devices, 0), 0
        for (t, change, device), (next_t, _, _) in zip(changes, changes[1:]):
            at_work[device] += change
            if sum(n > 0 for n in at_work.values()) >= least:
                total += next_t - t
        return total / self.seconds if self.seconds else 0.0

    def __repr__(self) -> str:
        return (f'Timeline({several(len(self.devices), "device")}, '
                f'{several(len(self.events), "operation")} in '
                f'{with_unit(self.seconds, TIMES)}, more than one device '
                f'at work {self.overlap:.0%} of it)')


@checked(num_devices=num_devices, batch_size=integer,
         settings=instance_of(
             dict, "a dict such as {'MXNET_CPU_TEMP_COPY': '4'}"))
def step_timeline(num_devices: int, batch_size: int,
                  settings: Mapping[str, object] | None = None) -> Timeline:
    """Record one training step of LeNet on digits and return its `Timeline`.

    Args:
        num_devices, batch_size: as in `train`.
        settings: environment variables, for example
            {'MXNET_CPU_TEMP_COPY': '4'}. MXNet reads them only when it
            starts, so the step is then run in a Python process of its own.

    Raises:
        ValueError: for a bad number of devices or batch size.
        RuntimeError: if the other process failed or took too long.
        OSError: if there is no room for temporary files.
    """
    device_list = devices(num_devices)
    timeline = Timeline(device_list)
    train_iter, _ = load_data(batch_size)
    if settings is not None:
        timeline.events = _elsewhere(num_devices, batch_size, settings)
        return timeline
    params = init_params()
    device_params = [get_params(params, device) for device in device_list]
    X, y = next(iter(train_iter))
    for _ in range(3):  # the first steps also allocate memory
        train_batch(X, y, device_params, device_list, lr=0.1)
    with timeline:
        train_batch(X, y, device_params, device_list, lr=0.1)
    return timeline


def _elsewhere(num_devices, batch_size, settings):
    """The events of a step in a Python process with other `settings`."""
    command = [sys.executable, '-m', 'd2lps', 'timeline', '--json',
               f'--num-devices={num_devices}', f'--batch-size={batch_size}']
    env = {**os.environ, **{k: str(v) for k, v in settings.items()}}
    try:
        done = subprocess.run(command, env=env, capture_output=True,
                              text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f'with {settings} the step did not end within '
                           f'{LIMIT} seconds') from None
    if done.returncode != 0:
        raise RuntimeError(f'with {settings} the step failed:\n{done.stderr}')
    return [Operation(*event) for event in json.loads(done.stdout)]
