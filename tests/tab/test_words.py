"""What the package says in a tab about what is not there."""
import pytest

from d2lps import equipment, missing


@pytest.fixture(autouse=True)
def in_a_tab(monkeypatch):
    for module in equipment, missing:
        monkeypatch.setattr(module, 'IN_A_TAB', True)


def test_a_machine_that_is_a_tab_promises_nothing():
    machine = equipment.machine()
    assert machine.cores == 1 and machine.memory is None
    assert str(machine).startswith('a browser tab with Python 3.')


def test_what_is_missing_is_on_a_computer():
    assert 'On a computer, "make lab"' in str(missing.NoExtra('psutil'))
    said = str(missing.NoMXNet('no mxnet'))
    assert 'MXNet does not run in a browser tab' in said
    assert 'pip install' not in said
    with pytest.raises(missing.NoFork, match='a browser tab cannot'):
        missing.check_fork()
