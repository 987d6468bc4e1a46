"""Pages are put where nbgrader hands them back from."""
import pytest

from teaching.handback import SIGNS, main


@pytest.fixture
def folders(tmp_path):
    """ada has come by the exchange, bob's file by mail, eve is not graded."""
    graded, course = tmp_path / 'graded', tmp_path / 'course'
    (graded / 'feedback').mkdir(parents=True)
    for student in 'ada', 'bob':
        (graded / 'feedback' / f'{student}.html').write_text(f'{student}: 10')
    for student in 'ada', 'bob', 'eve':
        place = course / 'submitted' / student / 'tree'
        place.mkdir(parents=True)
        (place / 'tree.ipynb').write_text('{}')
        for sign in SIGNS if student != 'bob' else ():
            (place / sign).write_text(f'{sign} of {student}')
    return graded, course


def test_pages_and_signs_are_beside_each_other(folders, capsys):
    graded, course = folders
    main(*folders)
    said = capsys.readouterr().out
    assert said.endswith('nbgrader release_feedback tree\n')
    assert 'not collected by nbgrader: bob eve\n' in said
    place = course / 'feedback' / 'ada' / 'tree'
    assert {path.name: path.read_text() for path in place.iterdir()} == {
        'tree.html': 'ada: 10', **{sign: f'{sign} of ada' for sign in SIGNS}}
    assert [path.name for path in (course / 'feedback').iterdir()] == ['ada']
    # A page that has changed since replaces the first.
    (graded / 'feedback' / 'ada.html').write_text('ada: 9')
    main(*folders)
    assert (place / 'tree.html').read_text() == 'ada: 9'
