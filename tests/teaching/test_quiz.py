"""The guesses of the chapters as a quiz for Moodle, and on paper."""
import html
import re
import subprocess
import sys

import pytest

from teaching import quiz
from teaching.walls import ROOT

CHAPTERS = sorted(quiz.NOTEBOOKS.glob('[0-9]*.ipynb'))


def read_by_moodle(text):
    """Names, questions and feedbacks, by the rules of Moodle's importer
    (question/format/gift/format.php): backslashes first, then an empty line
    ends a question."""
    marks = {f'\\{sign}': f'&&{ord(sign):03};' for sign in ':#={}~'}
    marks |= {'\\n': '&&010;'}
    text = text.replace('\\\\', '&&092;')
    for escaped, mark in marks.items():
        text = text.replace(escaped, mark)
    for entry in re.split(r'\n\s*\n', text):
        lines = [line for line in entry.split('\n')
                 if not line.startswith(('//', '$CATEGORY'))]
        if ''.join(lines).strip():
            fields = re.fullmatch(
                r'::(.*?)::\[html\]([^{}~=#]+)\{####([^{}~=#]*)\}',
                '\n'.join(lines).strip(), re.S)
            assert fields, entry
            yield [re.sub(r'&&(\d{3});', lambda code: chr(int(code[1])), one)
                   for one in fields.groups()]


@pytest.mark.parametrize('path', CHAPTERS, ids=lambda path: path.stem)
def test_moodle_reads_the_guesses_of_a_chapter(path):
    asked = quiz.questions(path)
    assert len(asked) >= 3, 'a chapter asks three times or more'
    text = quiz.gift('A chapter', asked)
    there = list(read_by_moodle(text))
    for number, (one, (name, question, answer)) in enumerate(
            zip(asked, there, strict=True), 1):
        assert name == f'{number}. {one.section}'.replace('`', '')
        assert question == quiz.as_html(one.text, quiz._for_moodle)
        assert answer == quiz.as_html(one.answer, quiz._for_moodle)
        assert '<p>' in question and '<p>' in answer
        assert '**Answer' not in one.text and '](' not in one.text
        assert one.answer not in one.text


def test_a_formula_is_for_mathjax_in_moodle_and_for_a_browser_on_paper():
    text = 'A sum $a_{i} < 2$, code `"$HEAD$"`, and\n\n$$\\sum_i x_i$$\n'
    moodle = quiz.as_html(text, quiz._for_moodle)
    assert r'\(a_{i} &lt; 2\)' in moodle and r'\[\sum_i x_i\]' in moodle
    assert '<code>' in moodle and '$HEAD$' in html.unescape(moodle)
    paper = quiz.as_html(text, quiz._mathml)
    assert paper.count('<math') == 2 and 'display="block"' in paper
    assert '$$' not in paper


def test_the_answers_on_paper_are_on_a_sheet_of_their_own():
    asked = [quiz.Question('A section', 'How *many*?', 'Four.')]
    page = quiz.paper('Chapter 1, <Name>', asked)
    questions, answers = page.split('<div class="answers">')
    assert '<em>many</em>' in questions and 'Four.' not in questions
    assert 'Four.' in answers and '&lt;Name&gt;' in page


def test_a_guess_without_an_answer_is_an_error(tmp_path):
    path = tmp_path / '99.ipynb'
    path.write_text('{"cells": [{"cell_type": "markdown", "source": '
                    '"**Predict.** How many?"}]}')
    with pytest.raises(ValueError, match='99.ipynb: no answer .* "How many'):
        quiz.questions(path)


def test_the_command_writes_two_files_for_each_chapter(tmp_path):
    subprocess.run([sys.executable, '-m', 'teaching.quiz', tmp_path / 'to'],
                   cwd=ROOT, check=True, timeout=120)
    assert {path.name for path in (tmp_path / 'to').iterdir()} == {
        f'{path.stem}.{kind}' for path in CHAPTERS
        for kind in ('gift', 'html')}
