"""The disk whose power can go."""
import pytest

from d2lps.exercises.disk import Disk, PowerCut


@pytest.mark.parametrize('use', [
    lambda disk: disk.write('a', ''), lambda disk: disk.flush('none'),
    lambda disk: disk.rename('none', 'a'), lambda disk: disk.remove('none'),
    lambda disk: disk.read('a'), lambda disk: disk.names()])
def test_nothing_answers_when_the_power_is_gone(use):
    disk = Disk({'a': 'text'}, ends_after=1)
    with pytest.raises(PowerCut):
        disk.write('b', 'text')
    with pytest.raises(PowerCut):
        use(disk)
