"""Tables of Moodle and Canvas come back filled in, as these import them."""
import re

import importers
import pytest

from teaching import lms
from teaching.records import FolderName, Result

CANVAS = '''\
Student,ID,SIS User ID,SIS Login ID,Section,Intro (71),tree (72),Final Score
,,,,,Manual Posting,,
    Points Possible,,,,,5,10,(read only)
"Lovelace, Ada",101,s-1,ada@x.org,"A, B",4,,80
"Gauß, ""Carl""",102,s-2,gauss,A,EX,3,
"Lee, Kim",103,s-3,kim1,A,,,
"Lee, Kim",104,s-4,kim2,B,-,7.5,
"Zoë",105,s-5,zoe,B,,EX,
"Student, Test",106,,abc,B,,,
'''
WORKSHEET = '''\
Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be \
changed,Last modified (submission),Last modified (grade),Feedback comments
Participant 201,Ada Lovelace,ada@x.org,"Submitted, late",,20.00,Yes,"Friday, \
20 November 2026, 1:45 PM",-,
Participant 202,"Carl ""Gauß""",gauss@x.org,Submitted,3.00,20.00,Yes,-,"Monday\
, 23 November 2026",Well done
Participant 203,Kim Lee,kim1@x.org,Submitted,,20.00,No,-,-,
Participant 204,Kim Lee,kim2@x.org,No submission,,20.00,Yes,-,-,
'''

def fill_in(folder, text, points, people=None):
    """The filled-in table, and its notes.

    points: from a student to those for tree and buckets. people: from a
    student to the folder, and the platform's number.
    """
    (folder / 'exported.csv').write_text(text, encoding='utf-8', newline='')
    export = lms.Export(folder / 'exported.csv')
    lms.fill_in(export, [
        Result(student, exercise, of_exercise, 10., [], [])
        for student, both in points.items()
        for exercise, of_exercise in zip(('tree', 'buckets'), both)],
        {student: FolderName(*folder_name)
         for student, folder_name in (people or {}).items()},
        ('tree', 'buckets'))
    return export.text(), '\n'.join(export.notes)


@pytest.mark.parametrize('separator, bom', [(',', ''), (';', '\ufeff')])
def test_canvas(tmp_path, separator, bom):
    exported = CANVAS.replace('A, B', 'A. B').replace(', ', '%').replace(
        ',', separator).replace('%', ', ')
    text, said = fill_in(tmp_path, bom + exported, {
        'ada': (10., 7.25), 'S-2': (0.,), 'kim2': (5., 5.), 'eve': (9., 9.),
        'zoë': (8.,), 'Kim Lee': (1.,), 'twice': (3.,), 'Ada Lovelace': (3.,)},
        {'ada': ('lovelaceada_101', '101'), 'twice': ('LEE, kim', '')})
    assert text.startswith(bom) and 'A. B' in text
    entered, points = importers.canvas(text, {*map(str, range(101, 107))})
    assert entered == {
        ('101', 'Intro'): '4', ('102', 'Intro'): 'EX', ('102', 'tree'): '0',
        ('104', 'tree'): '5', ('104', 'buckets'): '5', ('105', 'tree'): 'EX'}
    assert points == {'Intro': '5', 'tree': '10', 'buckets': '10'}
    for note in ('eve is not in exported.csv', 'zoë, tree: is excused',
                  'Ada Lovelace and lovelaceada_101 are the same student',
                  'LEE, kim may be 2 students', 'Kim Lee may be 2 students',
                  '2 in exported.csv without a result here: Lee, Kim'):
        assert note in said


def test_moodles_worksheet_takes_the_sum(tmp_path):
    text, said = fill_in(
        tmp_path, WORKSHEET, {'ada': (10., 7.25), 'gauss@x.org': (0.,),
                              'kim': (5., 5.), 'zoe': (None, 1.)},
        {'ada': ('Ada Lovelace_201', '201'),
         'kim': ('Kim Lee_203', '203'),
         'zoe': ('Kim Lee_204', '204')})
    modified = {'201': '-', '202': 'Monday, 23 November 2026', '203': '-',
                '204': '-'}
    assert importers.worksheet(text, 20, modified) == {
        '201': 17.25, '202': 0}
    assert 'zoe, tree, buckets: not graded yet' in said
    assert 'Well done' in text and '"Friday, 20' in text


def test_moodles_grade_is_that_of_what_a_student_handed_in(tmp_path):
    text, said = fill_in(
        tmp_path, WORKSHEET, {'ada@x.org': (10.,), 'gauss@x.org': (5., 5.)})
    modified = dict.fromkeys(('201', '203', '204'), '-') | {
        '202': 'Monday, 23 November 2026'}
    assert importers.worksheet(text, 20, modified) == {'201': 20, '202': 10}
    assert 'tree, buckets: 10 points here are 20 in exported.csv' in said


def test_points_are_scaled_to_the_maximum_of_the_table(tmp_path):
    for maximum, scaled in (
            (WORKSHEET.replace('20.00', '15.00'), ',11.25,15.00'),
            (CANVAS.replace(',5,10,', ',5,4,'), '"A, B",4,4,80,5')):
        text, notes = fill_in(tmp_path, maximum, {'ada lovelace': (10., 5.)})
        assert scaled in text
        assert re.search(r'^tree.*: .0 points here are \d+ in exported.csv$',
                         notes, re.M)


def test_other_tables_are_refused(tmp_path):
    with pytest.raises(ValueError, match='is no table that Moodle or Canvas'):
        fill_in(tmp_path, 'a,b,c,d\n1,2,3,4\n', {})
    for content, why in ((b'', 'is empty'), (b'\xff', 'no text in UTF-8')):
        (tmp_path / 'exported.csv').write_bytes(content)
        with pytest.raises(ValueError, match=why):
            lms.Export(tmp_path / 'exported.csv')
