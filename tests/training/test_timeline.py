"""What each device did when: recorded, counted, and run elsewhere."""
import collections
import os
import subprocess

import pytest
from mxnet import np

import d2lps
from d2lps import Operation, Timeline, devices, step_timeline
from d2lps.processor import cores
from d2lps.training.timeline import PHASES

STEP_PHASES = set(PHASES) - {'other'}


def made_of(*bars):
    """A timeline of two devices from (device, start, end)."""
    timeline = Timeline(devices(2))
    timeline.events = [Operation(f'cpu({device})', 'forward', 'op', start, end)
                       for device, start, end in bars]
    return timeline


def work(device, function=np.sin):
    function(np.ones(1000, ctx=device))


def assert_well_formed(timeline, names):
    events = timeline.events
    assert events == sorted(events, key=lambda event: event.start)
    assert events[0].start == 0
    assert all(0 <= event.start <= event.end <= timeline.seconds
               for event in events)
    assert {event.device for event in events} == set(names)
    assert {event.phase for event in events} <= set(PHASES)


def test_hand_worked_busy_and_overlap():
    # 0 1 2 3 4 5 6 7 8 9 10
    # ######      ##        #  device 0: 0-3, 6-7, 9.5-10
    #   ########             device 1: 1-5
    timeline = made_of((0, 0, 3), (1, 1, 5), (0, 6, 7), (0, 9.5, 10))
    assert timeline.seconds == 10
    assert timeline.busy('cpu(0)') == pytest.approx(0.45)
    assert timeline.busy(devices(2)[1]) == pytest.approx(0.4)
    assert timeline.overlap == pytest.approx(0.2)


def test_busy_knows_the_devices_that_were_recorded():
    for device in ('cpu(2)', devices(3)[2], None, 0):
        with pytest.raises(ValueError, match=r'device must be one of cpu\(0'):
            made_of((0, 0, 4)).busy(device)


def test_an_empty_timeline_has_no_time():
    timeline = made_of()
    assert (timeline.seconds, timeline.overlap) == (0, 0)
    assert timeline.busy('cpu(0)') == 0
    assert 'Timeline(2 devices, 0 operations' in repr(timeline)


def test_a_step_has_the_operations_that_one_can_count():
    for _ in range(12):  # operations that do not wait change their order
        timeline = step_timeline(2, 8)
        counts = collections.Counter((event.device, event.phase)
                                     for event in timeline.events)
        # cpu(0) has the batch: two halves of X and of y, then eight sums.
        # A copy is at the work of the device that it comes from.
        assert counts['cpu(0)', 'copy'] == 4 + 8
        assert counts['cpu(1)', 'copy'] == 8
        assert counts['cpu(0)', 'sum'] == 8
        assert counts['cpu(1)', 'sum'] == 0


def test_phases_do_not_depend_on_what_comes_late():
    # Nobody waits for the value of the loss: it may run after backward, and
    # the sums may come one after the other. Before, _npi_add is a bias.
    names = ('Convolution', '_npi_add', '_npi_multiply_scalar',
             'ImperativeBulk', 'pick', '_npi_add', 'slice', '_npi_add',
             'CopyCPU2CPU', '_npi_add', '_npi_multiply_scalar',
             '_npi_subtract', 'Convolution', '_npi_add')
    trace = [dict(ph=mark, cat='operator', name=name, pid=0, tid=7, ts=ts)
             for i, name in enumerate(names)
             for mark, ts in (('B', 10 * i), ('E', 10 * i + 9))]
    timeline = Timeline(devices(1))
    timeline._read(trace)
    assert [event.phase for event in timeline.events] == [
        'forward', 'forward', 'forward', 'backward', 'forward', 'sum', 'other',
        'sum', 'copy', 'sum', 'update', 'update', 'forward', 'forward']


def test_a_timeline_that_is_used_again_has_the_new_record():
    timeline = Timeline(devices(1))
    for function, name in (np.sin, '_npi_sin'), (np.cos, '_npi_cos'):
        with timeline:
            work(*devices(1), function)
        names = [event.name for event in timeline.events]
        assert [n for n in names if n in ('_npi_sin', '_npi_cos')] == [name]
        assert_well_formed(timeline, ['cpu(0)'])
        assert timeline.seconds < 1e6  # not since 1970


def test_one_timeline_at_a_time():
    with Timeline(devices(1)) as outer:
        for inner in outer, Timeline(devices(1)):
            with pytest.raises(RuntimeError, match='another Timeline is bei'):
                with inner:
                    pytest.fail('recorded in a record')
        work(*devices(1))
    assert '_npi_sin' in {event.name for event in outer.events}
    with Timeline(devices(1)) as timeline:
        work(*devices(1))
    assert '_npi_sin' in {event.name for event in timeline.events}


def test_a_record_that_fails_does_not_block_the_next(monkeypatch):
    end = d2lps.training.timeline._end_of_record
    for name, failing in (('_profile_file', lambda: 1 / 0),
                          ('_end_of_record', lambda file: end(file)[1 / 0])):
        with monkeypatch.context() as patch:
            patch.setattr(d2lps.training.timeline, name, failing)
            with pytest.raises(ZeroDivisionError), Timeline(devices(1)):
                work(*devices(1))
        test_a_timeline_that_is_used_again_has_the_new_record()


def test_only_the_given_devices_are_recorded_under_their_names():
    first, second, third = devices(3)
    with Timeline([third, second]) as timeline:
        work(first, np.sin)
        work(second, np.cos)
        work(third, np.tan)
    seen = {(event.device, event.name) for event in timeline.events}
    assert {('cpu(1)', '_npi_cos'), ('cpu(2)', '_npi_tan')} <= seen
    assert {device for device, _ in seen} == {'cpu(1)', 'cpu(2)'}


def test_too_many_devices_are_explained_before_anything_is_recorded():
    limit = cores() + 2 + d2lps.engine.npx.num_gpus()
    with pytest.raises(ValueError, match=f'has {limit + 1} devices, but .* '
                                         f'at most {limit}: '):
        Timeline(devices(limit + 1))


@pytest.mark.full
@pytest.mark.parametrize('few', [False, True])
def test_as_many_devices_as_promised_can_be_recorded(python, few):
    done = python('-c', f'''
import os, d2lps
if {few} and hasattr(os, 'sched_setaffinity'):
    os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])
limit = d2lps.processor.cores() + 2
with d2lps.Timeline(d2lps.devices(limit)) as timeline:
    for device in d2lps.devices(limit):
        d2lps.engine.mx.np.ones(9, ctx=device)
print(len({{event.device for event in timeline.events}}) - limit)
''')
    assert done.stdout == '0\n', done.stderr


def test_an_exception_in_the_block_ends_the_recording():
    for _ in range(2):
        with pytest.raises(KeyError), Timeline(devices(1)) as timeline:
            work(*devices(1))
            raise KeyError
        assert [e.name for e in timeline.events].count('_npi_sin') == 1
    with Timeline(devices(1)) as timeline:
        work(*devices(1))
    assert [e.name for e in timeline.events].count('_npi_sin') == 1


@pytest.mark.parametrize('settings', [None, {}])
@pytest.mark.parametrize('bad', [{'num_devices': 0}, {'batch_size': 20_000}])
def test_a_bad_argument_of_step_timeline_is_explained(settings, bad):
    arguments = {'num_devices': 1, 'batch_size': 8, **bad}
    with pytest.raises(ValueError, match=f'^{next(iter(bad))}[ =]'):
        step_timeline(**arguments, settings=settings)


@pytest.mark.full
def test_a_step_can_be_recorded_with_other_settings(monkeypatch):
    commands, run = [], subprocess.run
    monkeypatch.setattr(subprocess, 'run', lambda *args, **kwargs:
                        commands.append(kwargs) or run(*args, **kwargs))
    timeline = step_timeline(2, 64, {'MXNET_CPU_TEMP_COPY': 4})
    assert commands[0]['env']['MXNET_CPU_TEMP_COPY'] == '4'
    assert commands[0]['env']['PATH'] == os.environ['PATH']
    assert_well_formed(timeline, ['cpu(0)', 'cpu(1)'])
    assert {event.phase for event in timeline.events} >= STEP_PHASES
    assert isinstance(timeline.events[0], Operation)
    assert timeline.devices == ['cpu(0)', 'cpu(1)']
    assert 0 <= timeline.overlap <= 1


@pytest.mark.full
def test_a_step_that_fails_elsewhere_is_explained():
    with pytest.raises(RuntimeError, match='the step failed') as error:
        step_timeline(1, 8, {'MXNET_ENGINE_TYPE': 'NoSuchEngine'})
    assert 'NoSuchEngine' in str(error.value)


def test_temporary_files_are_gone_when_python_ends(python, tmp_path):
    folder = tmp_path / 'temporary'
    folder.mkdir()
    done = python('-c', '''
import atexit, os, d2lps
d2lps.step_timeline(2, 16)
pid = os.fork()
if not pid:
    atexit._run_exitfuncs()  # of what has no folder
    os._exit(0)
os.waitpid(pid, 0)
print(len(os.listdir(os.environ['TMPDIR'])))
''', TMPDIR=str(folder))
    assert done.stdout == '1\n', done.stderr
    assert done.stderr == ''
    assert os.listdir(folder) == []
