"""Tables of Moodle and Canvas come back filled in, as these import them."""
import importers
import pytest

from teaching import lms
from teaching.results import Called, Result

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
REPORT = '''\
First name,Last name,ID number,Email address,Assignment: tree (Real),Course \
total (Real),Last downloaded from this course
Ada,Lovelace,1,ada@x.org,-,-,1795960000
"Carl ""G.""","Gauß, Dr.",2,Gauss@x.org,3.00,3.00,1795960000
Kim,Lee,3,kim1@x.org,-,-,1795960000
Kim,Lee,4,kim2@x.org,-,-,1795960000
'''


def export(tmp_path, text, separator=',', bom=False):
    if separator != ',':
        import csv
        import io
        file = io.StringIO(newline='')
        csv.writer(file, delimiter=separator).writerows(
            csv.reader(io.StringIO(text)))
        text = file.getvalue()
    path = tmp_path / 'exported.csv'
    path.write_text(bom * '\ufeff' + text, encoding='utf-8', newline='')
    return lms.Export(path)


def graded(**points):
    """Results: student to points for tree and buckets."""
    return [Result(student, exercise, None if one is None else float(one),
                   10., [], [])
            for student, both in points.items()
            for exercise, one in zip(('tree', 'buckets'), both)
            if one != '']


def fill(one, results, people, exercises=('tree', 'buckets'), **options):
    people = {student: Called(*called) for student, called in people.items()}
    lms.fill_in(one, results, people, exercises, **options)
    return one.text(), '\n'.join(one.said)


RESULTS = graded(ada=(10, 7.25), carl=(0, ''), kim=(5, 5), eve=(9, 9),
                 zoe=(8, ''))


@pytest.mark.parametrize('separator, bom', [(',', False), (';', True)])
def test_canvas_takes_what_was_filled_in(tmp_path, separator, bom):
    text, said = fill(export(tmp_path, CANVAS, separator, bom), RESULTS, {
        'ada': ('lovelaceada_101', '101'), 'carl': ('S-2', ''),
        'kim': ('kim2', ''), 'eve': ('eve', ''), 'zoe': ('zoë', '')})
    assert text.startswith('\ufeff') == bom
    entered, points = importers.canvas(text, {*map(str, range(101, 107))})
    assert entered == {
        ('101', 'Intro'): '4', ('102', 'Intro'): 'EX',
        ('101', 'tree'): '10', ('101', 'buckets'): '7.25',
        ('102', 'tree'): '0', ('104', 'tree'): '5', ('104', 'buckets'): '5',
        ('105', 'tree'): 'EX'}
    assert points == {'Intro': '5', 'tree': '10', 'buckets': '10'}
    assert 'eve was not found in exported.csv' in said
    assert 'zoe, tree: is excused' in said
    assert '2 in exported.csv without a result here: Lee, Kim; Stud' in said


def test_moodles_worksheet_takes_the_sum(tmp_path):
    people = {'ada': ('Ada Lovelace_201_assignsubmission_file_', '201'),
              'carl': ('gauss@x.org', ''),
              'kim': ('Kim Lee_203_assignsubmission_file_', '203'),
              'zoe': ('Zoë_299_assignsubmission_file_', '299')}
    text, said = fill(export(tmp_path, WORKSHEET), RESULTS[:-2], people)
    modified = {'201': '-', '202': 'Monday, 23 November 2026', '203': '-',
                '204': '-'}
    assert importers.worksheet(text, 20, modified) == {
        '201': 17.25, '202': 0}
    assert 'kim, tree, buckets: Moodle says that this grade cannot' in said
    assert 'Well done' in text and '"Friday, 20' in text


def test_a_maximum_that_is_too_small_is_refused(tmp_path):
    people = {'ada': ('ada lovelace', '')}
    for kind, small in ((WORKSHEET, WORKSHEET.replace('20.00', '15.00')),
                        (CANVAS, CANVAS.replace(',5,10,', ',5,4,'))):
        with pytest.raises(ValueError, match='the maximum of tree.*SCALE=yes'):
            fill(export(tmp_path, small), graded(ada=(10, 10)), people)
        text, _ = fill(export(tmp_path, small), graded(ada=(10, 5)), people,
                       scale=True)
        assert (',11.25,15.00' if kind is WORKSHEET else
                '"A, B",4,4,80,5') in text


def test_moodles_gradebook_takes_each_exercise(tmp_path):
    people = {'ada': ('Ada Lovelace_7_assignsubmission_file_', '7'),
              'carl': ('gauss@x.org', ''), 'kim': ('Kim Lee', ''),
              'zoe': ('zoe', '')}
    text, said = fill(export(tmp_path, REPORT), RESULTS, people)
    assert importers.report(
        text, 'Email address', {'Assignment: tree (Real)': 10, 'buckets': 10},
        {'ada@x.org', 'Gauss@x.org', 'kim1@x.org', 'kim2@x.org'}) == {
            ('ada@x.org', 'Assignment: tree (Real)'): 10,
            ('ada@x.org', 'buckets'): 7.25,
            ('Gauss@x.org', 'Assignment: tree (Real)'): 0}
    assert 'Kim Lee may be 2 students' in said
    assert 'zoe was not found' in said


def test_other_tables_are_refused(tmp_path):
    with pytest.raises(ValueError, match='is no table that Moodle or Canvas'):
        export(tmp_path, 'a,b,c,d\n1,2,3,4\n')
