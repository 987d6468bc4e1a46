"""The pages for teachers agree with the chapters, the exercises, and the
figures that were measured."""
import json
import re

import pandas as pd
import pytest

from d2lps.exercises.checking import EXERCISES
from teaching import cards
from teaching.walls import ROOT

PAGE = (ROOT / 'teaching' / 'afternoons.md').read_text(encoding='utf-8')
README = (ROOT / 'teaching' / 'README.md').read_text(encoding='utf-8')
MINUTES = dict(re.findall(  # of the exercises
    r'^\| \[([\w-]+)\]\(tasks/.*?\| (\d+) \|',
    (ROOT / 'notebooks/exercises/README.md').read_text(), re.M))
PLAN = re.findall(r'^\| (\d)\. [^|]+\| ([^|]+) \| ([^|]+) \|$', PAGE, re.M)


def chapter(number):
    """The title of a chapter, and its minutes."""
    [path] = ROOT.glob(f'notebooks/{int(number):02}-*.ipynb')
    top = ''.join(json.loads(path.read_text())['cells'][0]['source'])
    return (re.search('^# (.+)', top)[1],
            int(re.search(r'(\d+)\s+minutes', top)[1]))


@pytest.mark.parametrize('afternoon', PLAN, ids=lambda row: row[0])
def test_an_afternoon_is_two_times_90_minutes(afternoon):
    for half in afternoon[1:]:
        parts = [re.fullmatch(r'(\d+) (.+)', one)
                 for one in half.split(' · ')]
        assert sum(int(one[1]) for one in parts) == 90, half
        for minutes, what in (one.groups() for one in parts):
            if what in EXERCISES:  # done in class, from beginning to end
                assert minutes == MINUTES[what], what


def test_there_are_five_afternoons_with_cards_for_each():
    assert [row[0] for row in PLAN] == list('12345')
    assert re.findall(r'\*Cards: `([\w-]+)\.html`', PAGE) == [
        *cards.ACTIVITIES]


def test_the_course_has_the_minutes_of_chapters_and_exercises():
    rows = re.findall(r'^\| \d\. .+\| .*?chapters? ([\d and]+) \((\d+)\) \|'
                      r'(.*)', README, re.M)
    assert len(rows) == 5
    for chapters, minutes, rest in rows:
        assert int(minutes) == sum(
            chapter(one)[1] for one in chapters.split(' and ')), chapters
        for name, given in re.findall(r'([\w-]+) \((\d+)\)', rest):
            assert given == MINUTES[name], name


def test_the_electives_have_their_minutes():
    rows = re.findall(r'^\| \d \| (\d+)\. (.+?) \((\d+)\) \|.*?\|(.*)\|$',
                      README, re.M)
    assert len(rows) + 9 == len([*ROOT.glob('notebooks/[0-9]*.ipynb')])
    for number, title, minutes, exercises in rows:
        there, needed = chapter(number)
        assert (title.lower(), int(minutes)) == (there.lower(), needed)
        for name, given in re.findall(r'([\w-]+) \((\d+)\)', exercises):
            assert given == MINUTES[name], name


def test_a_class_needs_what_the_chapters_took():
    """30 times the memory that was measured, and that of a Jupyter server."""
    table = pd.read_csv(ROOT / 'notebooks/results/memory.csv')
    table.index = table.chapter.str[:2].astype(int)
    assert {*table.index} == {int(path.name[:2]) for path in ROOT.glob(
        'notebooks/[0-9]*.ipynb')}
    rows = re.findall(r'^\| ([\d, toand]+) \| (\d+) MB, .+\| (\d+) GB \|',
                      README, re.M)
    covered = []
    for names, most, gb in rows:
        numbers = [number for first, last in re.findall(
            r'(\d+)(?: to (\d+))?', names)
            for number in range(int(first), int(last or first) + 1)]
        covered += numbers
        peak = table.megabytes[numbers].max()
        # Another run, and another machine, differ by a little.
        assert abs(int(most) - peak) <= 0.05 * peak, names
        assert int(gb) == round(30 * (int(most) + 100) / 1000), names
    assert sorted(covered) == sorted(table.index)
