"""What is read, what of it is the answer, and what a check may tell of it."""
import os
import resource

import pytest
from handins import (
    answer_cell,
    answered,
    executed,
    hand_in,
    released,
    with_cell,
)
from nbformat.v4 import new_output

from teaching.executing import TEXT
from teaching.results import Results, known_people
from teaching.submissions import loose, read_all


def put(folder, name, version, seconds, notebook=answered):
    hand_in(folder, 'ada', with_cell(notebook(), f'version = {version}'), name)
    os.utime(folder / 'in' / 'ada' / f'{name}.ipynb', (seconds, seconds))


def test_of_two_files_the_newer_is_graded_unless_it_is_a_stub(tmp_path):
    put(tmp_path, 'tree', 0, 1000)
    put(tmp_path, 'tree-1', 1, 1010)
    put(tmp_path, 'tree-2', 2, 1020, released)
    [ada] = read_all(tmp_path / 'in')
    assert 'version = 1' in str(ada.notebooks['tree'])
    assert ada.remarks['tree'] == [
        'wrongly named: tree-2.ipynb was taken for it',
        'wrongly named: tree-1.ipynb was taken for it',
        'handed in more than once: tree-2.ipynb was left out',
        'handed in more than once: tree.ipynb was left out']
    put(tmp_path, 'tree-1', 1, 1000)  # out of one archive
    [ada] = read_all(tmp_path / 'in')
    assert 'version = 0' in str(ada.notebooks['tree'])


def test_a_newer_file_without_the_answer_does_not_win(tmp_path):
    put(tmp_path, 'tree', 0, 1000)
    hand_in(tmp_path, 'ada', '{"cells": []}', 'tree (1)')
    hand_in(tmp_path, 'ada', '{"cells": []}', 'tree (2)')
    [ada] = read_all(tmp_path / 'in')
    assert 'version = 0' in str(ada.notebooks['tree'])


def test_what_a_browser_tab_has_saved_is_read_as_if_from_jupyterlab(tmp_path):
    for answer in answered(), released():
        hand_in(tmp_path, 'ada', answer)
        answer_cell(answer).update(execution_count=3, outputs=[new_output(
            'display_data', {'application/vnd.jupyter.widget-view+json': {
                'model_id': 'a1', 'version_major': 2, 'version_minor': 0}})])
        answer.metadata = {
            'kernelspec': {'name': 'python', 'language': 'python',
                           'display_name': 'Python (Pyodide)'},
            'language_info': {
                'name': 'python', 'version': '3.12.7', 'file_extension': '.py',
                'codemirror_mode': {'name': 'python', 'version': 3},
                'mimetype': 'text/x-python', 'nbconvert_exporter': 'python',
                'pygments_lexer': 'ipython3'},
            'widgets': {'application/vnd.jupyter.widget-state+json': {
                'state': {'a1': {'model_name': 'IntSliderModel'}}}}}
        hand_in(tmp_path, 'bob', answer, 'tree (1)')
        ada, bob = read_all(tmp_path / 'in')
        assert ada.notebooks == bob.notebooks
        assert bob.remarks == {'tree': [
            'wrongly named: tree (1).ipynb was taken for it']}


def test_of_two_downloads_the_later_is_graded(tmp_path):
    for k, name in enumerate(['tree', 'tree (9)', 'tree (10)']):
        put(tmp_path, name, k, 1000)  # out of one archive
    [ada] = read_all(tmp_path / 'in')
    assert 'version = 2' in str(ada.notebooks['tree'])


def test_a_folder_means_the_same_student_in_each_week(tmp_path):
    for week, names in (('1', ['a b', 'a-b', 'a+b', 'Ada', 'ada']),
                        ('2', ['a+b', 'ada', 'c'])):
        for name in names:
            (tmp_path / week / name).mkdir(parents=True)
    first = read_all(tmp_path / '1')
    assert [(submission.folder_name.folder, submission.student)
            for submission in first] == [
        ('Ada', 'Ada'), ('a b', 'a_b'), ('a+b', 'a_b_'), ('a-b', 'a-b'),
        ('ada', 'ada_')]
    Results(tmp_path / 'out', first)
    second = read_all(tmp_path / '2', known_people(tmp_path / 'out'))
    assert [(submission.folder_name.folder, submission.student)
            for submission in second] == [
        ('a+b', 'a_b_'), ('ada', 'ada_'), ('c', 'c')]


@pytest.mark.full
def test_visible_checks_cannot_tell_hidden_cases():
    notebook = with_cell(answered(), """
import os
import threading
import time
seen = []
def watch():
    while not seen:
        try:
            seen.append(open(os.environ['D2LPS_CASES']).read())
        except OSError:
            time.sleep(0.001)
threading.Thread(target=watch, daemon=True).start()
""")
    answer_cell(notebook).source += """
right = up_and_down
def up_and_down(n):
    if n == 5:
        time.sleep(2)
    if seen:
        raise Exception(seen)
    return right(n)
"""
    _, verdicts, _ = executed(notebook)
    said = {(verdict.part, verdict.hidden): verdict.wrong
            for verdict in verdicts}
    assert [*said] == [(part, hidden) for part in ('sum', 'rounds', 'time')
                       for hidden in (False, True)]
    for (_, is_hidden), wrong in said.items():
        assert is_hidden or not wrong, said
    assert said['time', True] and 'microseconds' not in said['time', True]


@pytest.mark.full
@pytest.mark.parametrize('error', [
    'Exception(cases)', 'type(cases, (BaseException,), {})'])
def test_hidden_cases_stay_hidden(error):
    notebook = answered()
    answer_cell(notebook).source = (
        'def up_and_down(n):\n    import os\n    cases = open('
        f'os.environ["D2LPS_CASES"]).read()\n    raise {error}')
    for verdict in executed(notebook)[1]:
        assert verdict.wrong
        assert not (verdict.hidden and '{' in verdict.wrong), verdict


@pytest.mark.full
def test_what_a_notebook_shows_does_not_fill_our_memory():
    code = """
print('x' * 300_000_000)
for i in range(100):
    get_ipython().display_pub.publish({'text/plain': 'z' * 3_000_000})
"""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made, verdicts, _ = executed(with_cell(answered(), code))
    assert not any(verdict.wrong for verdict in verdicts)
    assert len(str(made)) < 2 * TEXT
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 300_000  # KiB


def test_links_are_named_and_not_followed(tmp_path):
    for name in 'ada', 'bob':
        hand_in(tmp_path, name, answered())
    folder = tmp_path / 'in'
    (folder / 'ada' / 'work').symlink_to(folder / 'bob')
    (folder / 'ada' / 'picture.png').symlink_to('/etc/hostname')
    (folder / 'ada' / 'buckets.ipynb').symlink_to(folder / 'bob/tree.ipynb')
    (folder / 'fay').symlink_to(folder / 'bob')
    ada, bob = read_all(folder)
    assert ada.remarks[''] == ['links are not read: work, picture.png']
    assert 'buckets.ipynb is a link' in ada.remarks['buckets'][0]
    assert [*ada.notebooks] == ['tree'] and not bob.remarks
    assert loose(folder) == ['fay']


def test_modules_are_named_and_not_read(tmp_path):
    hand_in(tmp_path, 'ada', answered())
    ada = tmp_path / 'in' / 'ada'
    (ada / 'venv').mkdir()
    for name in ('helpers.py', 'data.csv', '.hidden.py', *(
            f'venv/m{k}.py' for k in range(1100))):
        (ada / name).touch()
    [submission] = read_all(tmp_path / 'in')
    assert [*submission.notebooks] == ['tree']
    [remark] = submission.remarks['']
    assert remark.startswith('not read: helpers.py, venv/m')
    assert remark.endswith(' and 1,096 more. An answer must stand in the '
                           'notebook, with all that it needs')
    assert [*submission.remarks] == ['']


def test_archives_in_place_of_folders_are_named(tmp_path):
    (tmp_path / 'moodle.zip').touch()
    with pytest.raises(ValueError, match='moodle.zip is an archive: unpack'):
        read_all(tmp_path)
    with pytest.raises(ValueError, match='moodle.zip is an archive: unpack'):
        read_all(tmp_path / 'moodle.zip')
