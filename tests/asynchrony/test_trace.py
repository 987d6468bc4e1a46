"""A trace of PyTorch's profiler as tasks."""
import pytest
from d2lps import Task, trace_tasks

EVENTS = [('gloo:all_reduce', 71, 12.0, 15.0), ('MmBackward0', 9, 10.0, 11.0),
          ('MmBackward0', 9, 11.0, 12.0), ('MmBackward0', 9, 12.0, 13.0),
          ('gloo:all_reduce', 70, 13.0, 14.0)]


def test_layers_and_buckets_are_tasks_from_the_first_event_on():
    tasks, rows = trace_tasks(EVENTS, [2, 1])
    assert tasks == [
        Task('backward', (2,), 0, 1), Task('backward', (1,), 1, 2),
        Task('backward', (0,), 2, 3), Task('push', (1, 2), 2, 5),
        Task('push', (0,), 3, 4)]
    assert rows == ['compute'] * 3 + ['Gloo 1', 'Gloo 2']


@pytest.mark.parametrize('in_buckets', [[3], [2, 2]])
def test_other_buckets_are_refused(in_buckets):
    with pytest.raises(ValueError, match='events has 3 layers and 2 sums'):
        trace_tasks(EVENTS, in_buckets)
