"""How much of a class is graded, and how long the rest may take."""
import pytest

from teaching.grade import Progress


@pytest.mark.parametrize('seconds, words', [
    (1, 'less than a minute left'), (20, 'about 1 minute left'),
    (75, 'about 5 minutes left')])
def test_the_rest_takes_as_long_as_what_is_done(monkeypatch, capsys, seconds,
                                                words):
    now = [100.]
    monkeypatch.setattr('time.monotonic', lambda: now[0])
    progress = Progress(8, together=2)
    for k in range(8):
        now[0] += seconds
        progress.tell(f'ada, tree-{k}: 10 of 10')
    lines = capsys.readouterr().out.splitlines()
    # The first two were done together: they tell nothing yet.
    assert lines[1] == '2 of 8: ada, tree-1: 10 of 10'
    assert lines[3] == f'4 of 8, {words}: ada, tree-3: 10 of 10'
    assert lines[7] == '8 of 8: ada, tree-7: 10 of 10'
