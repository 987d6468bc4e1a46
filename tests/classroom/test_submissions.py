"""Folders that are no submissions, and folders that must not be emptied."""
import os
import subprocess

import pytest

from classroom import walls
from classroom.grade import Result, chosen, empty, write
from classroom.grade import main as grade
from classroom.submissions import Submission, read_all


@pytest.mark.parametrize('make, words', [
    (lambda folder: folder / 'nowhere', 'FROM must be a folder'),
    (lambda folder: folder, 'FROM must be a folder with a folder for each')])
def test_what_is_no_folder_of_submissions(tmp_path, make, words):
    with pytest.raises(ValueError, match=words):
        read_all(make(tmp_path))


def test_submissions_are_never_emptied(tmp_path):
    anna = tmp_path / 'in' / 'anna'
    anna.mkdir(parents=True)
    (anna / 'tree.ipynb').write_text('{}')
    for to in tmp_path, tmp_path / 'in', anna:
        with pytest.raises(ValueError, match='TO must be'):
            empty(to, tmp_path / 'in')
    other = tmp_path / 'other'
    other.mkdir()
    (other / 'thesis.txt').write_text('important')
    for name in 'a', 'course':
        (other / name).mkdir(exist_ok=True)
    (other / 'course' / 'nbgrader_config.py').touch()
    with pytest.raises(ValueError, match='TO must be a new folder'):
        empty(other, tmp_path / 'in')
    assert (other / 'thesis.txt').exists() and (anna / 'tree.ipynb').exists()


def test_exercises_are_those_handed_in_or_named(tmp_path):
    (tmp_path / 'anna').mkdir()
    submissions = read_all(tmp_path)
    with pytest.raises(ValueError, match='FROM has no exercise in it'):
        chosen(submissions, [])
    assert chosen(submissions, ['tree', 'minibatch']) == ['minibatch', 'tree']
    with pytest.raises(ValueError, match='EXERCISES must be among .* treee'):
        chosen(submissions, ['treee'])


def test_without_walls_one_has_to_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(walls, 'problem', lambda: 'no bwrap')
    with pytest.raises(SystemExit, match='no bwrap.*WALLS=none'):
        grade([str(tmp_path)])


@pytest.mark.full
def test_one_folder_never_stops_the_reading_of_others(tmp_path):
    (tmp_path / ('x' * 250)).mkdir()
    place = str(tmp_path / 'deep')
    os.mkdir(place)
    fd = os.open(place, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir('a', dir_fd=fd)
        inner = os.open('a', os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)
    try:
        deep, long = read_all(tmp_path)
    finally:  # pytest, which removes old folders, would fail at this one
        subprocess.run(['rm', '-rf', place], check=True)
    assert 'cannot be read: RecursionError' in deep.remarks[''][0]
    assert len(long.student) == 60


def test_no_text_stops_the_table_or_is_a_formula(tmp_path):
    told = '=a\udcff\x1b.txt'
    one = Submission('ada', {}, {'tree': [told], '': [told]})
    write([Result('ada', 'tree', 0., 10., [told], [])], [one], tmp_path)
    assert ",'=a  .txt" in (tmp_path / 'grades.csv').read_text()
