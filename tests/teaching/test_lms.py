"""Tables of Moodle and Canvas come back filled in, as these import them."""
import importers
import pytest

from teaching import lms
from teaching.results import Result

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
    lms.fill_in(one, results, people, exercises, **options)
    return one.text(), '\n'.join(one.said)


FORMS = pytest.mark.parametrize('separator, bom', [
    (',', False), (';', True), (',', True), ('\t', False)])
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


def test_names_do_where_they_are_one_persons(tmp_path):
    people = {'ada': ('ada  LOVELACE', ''), 'kim': ('Lee, Kim', ''),
              'carl': ('Gauß, "Carl"', '')}
    results = graded(ada=(1, ''), kim=(2, ''), carl=(3, ''))
    text, said = fill(export(tmp_path, CANVAS), results, people)
    entered, _ = importers.canvas(text, {*map(str, range(101, 107))})
    assert (entered['101', 'tree'], entered['102', 'tree']) == ('1', '3')
    assert ('103', 'tree') not in entered
    assert entered['104', 'tree'] == '7.5'  # as it was
    assert 'Lee, Kim may be 2 students of exported.csv' in said


def test_nobody_in_two_folders_gets_either_grade(tmp_path):
    people = {'ada': ('ada@x.org', ''), 'carl': ('lovelaceada_101', '101')}
    text, said = fill(export(tmp_path, CANVAS), graded(
        ada=(1, ''), carl=(2, '')), people)
    entered, _ = importers.canvas(text, {*map(str, range(101, 107))})
    assert ('101', 'tree') not in entered
    assert ('ada@x.org and lovelaceada_101 are the same student of '
            'exported.csv: nothing is entered') in said


@FORMS
def test_moodles_worksheet_takes_the_sum(tmp_path, separator, bom):
    people = {'ada': ('Ada Lovelace_201_assignsubmission_file_', '201'),
              'carl': ('gauss@x.org', ''),
              'kim': ('Kim Lee_203_assignsubmission_file_', '203'),
              'zoe': ('Zoë_299_assignsubmission_file_', '299')}
    text, said = fill(export(tmp_path, WORKSHEET, separator, bom), RESULTS[
        :-2], people)
    modified = {'201': '-', '202': 'Monday, 23 November 2026', '203': '-',
                '204': '-'}
    assert importers.worksheet(text, 20, modified) == {
        '201': 17.25, '202': 0}
    assert 'kim, tree, buckets: Moodle says that this grade cannot' in said
    assert 'Well done' in text and '"Friday, 20' in text or separator != ','


def test_a_worksheet_for_one_exercise(tmp_path):
    people = {'ada': ('ada lovelace', '')}
    text, said = fill(export(tmp_path, WORKSHEET), graded(ada=(9, 8)), people,
                      ['buckets'])
    assert '201,Ada Lovelace,ada@x.org,"Submitted, late",8,20.00' in text
    assert 'buckets: of 10 points here, of 20 in exported.csv' in said
    text, _ = fill(export(tmp_path, WORKSHEET), graded(ada=(9, 8)), people,
                   ['buckets'], scale=True)
    assert '"Submitted, late",16,20.00' in text


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


def test_decimal_commas_and_points_by_hand(tmp_path):
    text = WORKSHEET.replace('20.00', '"20,00"')
    people = {'ada': ('ada lovelace', '')}
    filled, said = fill(export(tmp_path, text), graded(ada=(7.5, 10)), people)
    assert '"17,5","20,00"' in filled
    filled, said = fill(export(tmp_path, text), graded(ada=(12, 10)), people)
    assert 'late",20,"20,00"' in filled
    assert '22 points are more than Moodle takes, so 20' in said


@FORMS
def test_moodles_gradebook_takes_each_exercise(tmp_path, separator, bom):
    people = {'ada': ('Ada Lovelace_7_assignsubmission_file_', '7'),
              'carl': ('gauss@x.org', ''), 'kim': ('Kim Lee', ''),
              'zoe': ('zoe', '')}
    one = export(tmp_path, REPORT, separator, bom)
    text, said = fill(one, RESULTS, people)
    assert importers.report(
        text, 'Email address', {'Assignment: tree (Real)': 10, 'buckets': 10},
        {'ada@x.org', 'Gauss@x.org', 'kim1@x.org', 'kim2@x.org'}) == {
            ('ada@x.org', 'Assignment: tree (Real)'): 10,
            ('ada@x.org', 'buckets'): 7.25,
            ('Gauss@x.org', 'Assignment: tree (Real)'): 0}
    assert 'Kim Lee may be 2 students' in said
    assert 'zoe was not found' in said


def test_what_is_not_graded_yet_is_not_entered(tmp_path):
    people = {'ada': ('101', ''), 'carl': ('102', '')}
    text, said = fill(export(tmp_path, CANVAS), graded(
        ada=(None, 3), carl=('', '')), people)
    entered, _ = importers.canvas(text, {*map(str, range(101, 107))})
    assert ('101', 'tree') not in entered and entered['101', 'buckets'] == '3'
    assert entered['102', 'tree'] == '3'
    assert 'ada, tree: not graded yet' in said


@pytest.mark.parametrize('text', [
    '', 'a,b,c,d\n1,2,3,4\n', 'Student,ID,x,y\n',
    WORKSHEET.replace('Identifier', 'ID').replace('Email address', 'E-Mail')])
def test_other_tables_are_refused(tmp_path, text):
    with pytest.raises(ValueError, match='is no table that Moodle or Canvas'):
        export(tmp_path, text)


def test_a_column_that_canvas_keeps_for_itself(tmp_path):
    text = CANVAS.replace(',5,10,', ',5,(read only),')
    with pytest.raises(ValueError, match=r'tree \(72\) cannot be changed'):
        fill(export(tmp_path, text), graded(ada=(1, '')), {'ada': ('101', '')})


def test_the_importers_here_refuse_what_they_should():
    bad = REPORT.replace('-,-,', '12,-,', 1)
    with pytest.raises(importers.Ended):
        importers.report(bad, 'ID number', {'Assignment: tree (Real)': 10},
                         {'1', '2', '3', '4'})
    with pytest.raises(importers.Ended):
        importers.report(REPORT, 'ID number', {}, {'1', '2'})


def test_short_long_and_empty_lines(tmp_path):
    text = ('Student,ID,SIS Login ID,Section\n    Points Possible\n\n'
            '"Lovelace, Ada",101,ada,A,\n"Lee, Kim",102,kim,A\n\n')
    text, _ = fill(export(tmp_path, text), graded(ada=(7, ''), kim=(8, '')),
                   {'ada': ('ada', ''), 'kim': ('kim', '')})
    entered, points = importers.canvas(text, {'101', '102'})
    assert entered == {('101', 'tree'): '7', ('102', 'tree'): '8'}
    assert points['tree'] == '10'
    text, _ = fill(export(tmp_path, f'{REPORT}\n\n'), graded(ada=(7, '')),
                   {'ada': ('ada@x.org', '')})
    assert importers.report(text, 'ID number', {
        'Assignment: tree (Real)': 10}, {'1', '2', '3', '4'})


def test_a_worksheet_with_the_least_columns(tmp_path):
    text = 'Identifier,Grade,Last modified (grade)\nParticipant 201,,-\n'
    text, said = fill(export(tmp_path, text), graded(ada=(9, 8)), {
        'ada': ('Ada_201_assignsubmission_file_', '201')})
    assert importers.worksheet(text, 20, {'201': '-'}) == {'201': 17}
    assert not said
