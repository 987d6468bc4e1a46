"""Folders as learning platforms give them: with and without folders in them.
"""
import os

import importers
import nbformat
import pytest
from handins import answered, graded, with_cell

from teaching.late import MARKED
from teaching.submissions import loose, read_all


def put(path, version=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(with_cell(answered(), f'version = {version}'), path)
    os.utime(path, (1000, 1000))


def test_canvas_gives_one_folder_of_files(tmp_path):
    for k, name in enumerate((
            'lovelaceada_101_9001_tree.ipynb',
            'lovelaceada_101_9002_tree-1.ipynb',
            'lovelaceada_101_9000_tree.ipynb',
            'müller_zoë_LATE_102_9003_tree.ipynb', 'x_103_9004_my plan.ipynb',
            'LATE_anon_aB3x9_9005_tree.ipynb', 'anon_12345_9006_tree.ipynb')):
        put(tmp_path / name, k)
    for name in ('lee_104_text.html', 'x_103_9008_photo.png', 'tree.ipynb',
                 'x_103_9007_helpers.py', 'kim_105_9009_helpers.py',
                 'grades_2026_11_all.csv'):
        (tmp_path / name).touch()
    by_number = {submission.folder_name.number: submission
                 for submission in read_all(tmp_path)}
    assert {number: submission.student
            for number, submission in by_number.items()} == {
        '101': 'lovelaceada_101', '102': 'müller_zoë_102', '103': 'x_103',
        '105': 'kim_105', 'aB3x9': 'anon_aB3x9', '12345': 'anon_12345'}
    kim = by_number.pop('105')
    assert not kim.notebooks and kim.folder_name.prefix == 'kim_105_9009_'
    for submission in kim, by_number['103']:
        assert 'not read: helpers.py. An answer must' in (
            submission.remarks[''][0])
    assert all('tree' in submission.notebooks
               for submission in by_number.values())
    assert 'version = 1' in str(by_number['101'].notebooks)
    assert len([remark for remark in by_number['101'].remarks['tree']
                if 'handed in more than once' in remark]) == 2
    assert {number: submission.times
            for number, submission in by_number.items() if submission.times
            } == {'102': {'tree': MARKED}, 'aB3x9': {'tree': MARKED}}
    assert 'my plan.ipynb was taken for it' in str(by_number['103'].remarks)
    assert loose(tmp_path) == ['grades_2026_11_all.csv', 'lee_104_text.html',
                               'tree.ipynb', 'x_103_9008_photo.png']


@pytest.mark.parametrize('name', [
    'eve_105_101_9001_tree.ipynb', 'eve_99_105_9001_tree.ipynb',
    'Eve_5_assignsubmission_file_Ada_6_assignsubmission_file_tree.ipynb'])
def test_nobody_hands_in_for_others_by_the_name_of_a_file(tmp_path, name):
    put(tmp_path / name)
    put(tmp_path / 'ada_101_9001_tree.ipynb')
    [ada] = read_all(tmp_path)
    assert ada.student == 'ada_101'
    assert loose(tmp_path) == [name]


def test_moodle_gives_folders(tmp_path):
    put(tmp_path / 'Zoë Müller_12_assignsubmission_file_' / 'tree.ipynb')
    put(tmp_path / 'Ada_B_13_assignsubmission_file' / 'tree.ipynb')
    text = tmp_path / 'Zoë Müller_12_assignsubmission_onlinetext_'
    text.mkdir()
    (text / 'onlinetext.html').touch()
    (tmp_path / 'Kim Lee_14_assignsubmission_onlinetext_').mkdir()
    submissions = read_all(tmp_path)
    assert [(submission.student, submission.folder_name.number)
            for submission in submissions] == [
        ('Ada_B_13', '13'), ('Kim_Lee_14', '14'), ('Zoë_Müller_12', '12')]
    assert submissions[2].folder_name.folder == 'Zoë Müller_12'
    assert all(not submission.remarks for submission in submissions)


def test_from_canvas_and_back(tmp_path, capsys):
    """The one grading in `make test` from end to end."""
    put(tmp_path / 'in' / 'lovelaceada_LATE_101_9001_tree.ipynb')
    put(tmp_path / 'in' / 'gaußcarl_102_9002_tree.ipynb')
    (tmp_path / 'in' / 'gaußcarl_102_9003_helpers.py').touch()
    (tmp_path / 'exported.csv').write_text(
        'Student;ID;SIS Login ID;Section;tree (72)\n'
        '    Points Possible;;;;10\n'
        '"Gauß; ""Carl""";102;gauss;A;\n"Lovelace, Ada";101;ada;A;\n'
        '"Student, Test";103;;A;\n')
    graded(tmp_path, '--lms', str(tmp_path / 'exported.csv'), '--late', '10')
    entered, _ = importers.canvas(
        (tmp_path / 'out' / 'for-import.csv').read_text(),
        {'101', '102', '103'})
    assert entered == {('101', 'tree'): '9', ('102', 'tree'): '10'}
    for name in 'students.csv', 'feedback/gaußcarl_102.html':
        assert 'not read: helpers.py. An answer must stand in' in (
            tmp_path / 'out' / name).read_text('utf-8')
    said = capsys.readouterr().out
    assert '2 of 2: ' in said and 'without a result here: Student, Te' in said
