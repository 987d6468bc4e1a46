"""Pages are put where nbgrader, Moodle and Canvas hand them back from."""
import json
import zipfile

import importers
import pytest

from teaching.handback import SIGNS, main
from teaching.results import KEPT, PEOPLE, Results
from teaching.submissions import read_all


@pytest.fixture
def folders(tmp_path):
    """ada has come by the exchange, bob's file by mail, eve is not graded.

    The grading has called Ada ada_, which is the name of another user, too.
    """
    graded, course = tmp_path / 'graded', tmp_path / 'course'
    (graded / 'feedback').mkdir(parents=True)
    (graded / KEPT).mkdir()
    (graded / KEPT / PEOPLE).write_text(json.dumps({
        'ada': ['ada', ''], 'ada_': ['Ada', ''], 'bob': ['bob', ''],
        'odd': ['odd', '']}))
    for student in 'ada', 'ada_', 'bob':
        (graded / 'feedback' / f'{student}.html').write_text(f'{student}: 10')
    for student in 'ada', 'ada_', 'bob', 'eve', 'odd':
        place = course / 'submitted' / student / 'tree'
        place.mkdir(parents=True)
        (place / 'tree.ipynb').write_text('{}')
        for sign in SIGNS if student != 'bob' else ():
            (place / sign).write_text(f'{sign} of {student}')
    (graded / 'feedback' / 'odd.html').write_text('odd: 10')
    for sign in SIGNS:
        (course / 'submitted' / 'odd' / 'tree' / sign).write_bytes(b'\xff')
    return graded, course


def test_pages_and_signs_are_beside_each_other(folders, capsys):
    graded, course = folders
    main(*folders)
    said = capsys.readouterr().out
    assert said.endswith('nbgrader release_feedback tree\n')
    assert 'not collected by nbgrader: ada_ bob eve odd\n' in said
    place = course / 'feedback' / 'ada' / 'tree'
    assert {path.name: path.read_text() for path in place.iterdir()} == {
        'tree.html': 'ada: 10', **{sign: f'{sign} of ada' for sign in SIGNS}}
    assert [path.name for path in (course / 'feedback').iterdir()] == ['ada']
    # A page that has changed since replaces the first.
    (graded / 'feedback' / 'ada.html').write_text('ada: 9')
    main(*folders)
    assert (place / 'tree.html').read_text() == 'ada: 9'
    for sign in SIGNS:
        (course / 'submitted' / 'ada' / 'tree' / sign).unlink()
    with pytest.raises(SystemExit, match='there is nothing to hand back'):
        main(*folders)


def packed(folder, *names):
    """The names in an archive of the pages of those who handed these in."""
    for name in names:
        (folder / 'in' / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / 'in' / name).write_text('{"cells": []}')
    submissions = read_all(folder / 'in')
    Results(folder / 'out', submissions).write(
        *(submission.student for submission in submissions))
    for _ in range(2):  # an archive of ours is made anew
        main(folder / 'out', folder / 'pages.zip')
    with zipfile.ZipFile(folder / 'pages.zip') as archive:
        for name in archive.namelist():
            yield name, archive.read(name).decode()


def test_an_archive_for_moodle(tmp_path, capsys):
    pages = dict(packed(
        tmp_path, 'Zoë Müller_12_assignsubmission_file_/tree.ipynb',
        'Ada_B_13_assignsubmission_file/tree.ipynb', 'eve/tree.ipynb',
        'Kim Lee_14_assignsubmission_file_tree.ipynb'))
    taken = importers.moodle_feedback(pages, {'12', '13', '14'})
    assert taken == dict.fromkeys(('12', '13', '14'), ['feedback.html'])
    page = pages['Zoë Müller_12_assignsubmission_file_/feedback.html']
    assert '<h1>Exercises: Zoë Müller</h1>' in page and '12' not in page
    assert 'Moodle or Canvas: eve' in capsys.readouterr().out


def test_an_archive_for_canvas(tmp_path):
    pages = dict(packed(
        tmp_path, 'lovelaceada_101_9001_tree.ipynb',
        'lovelaceada_101_9002_tree-1.ipynb',
        'gaußcarl_LATE_102_9003_link_5.ipynb',
        'LATE_anon_aB3x9_9005_tree.ipynb'))
    assert {user: len(files) for user, files in importers.canvas_feedback(
        pages, {'101': ['9002'], '102': ['9003'], 'aB3x9': ['9005']}).items()
        } == {'101': 1, '102': 1, 'aB3x9': 1}
    page = pages['lovelaceada_101_9002_feedback.html']
    assert '<h1>Exercises: lovelaceada</h1>' in page and '101' not in page


def test_a_download_is_not_written_over(tmp_path):
    [*packed(tmp_path, 'a_1_assignsubmission_file_/tree.ipynb')]
    with zipfile.ZipFile(tmp_path / 'moodle.zip', 'w') as archive:
        archive.writestr('a_1_assignsubmission_file_/tree.ipynb', '{}')
    with pytest.raises(SystemExit, match='moodle.zip has something else'):
        main(tmp_path / 'out', tmp_path / 'moodle.zip')
