"""The page of a student: short, safe, and readable on a phone."""
import html
import re

from d2lps.exercises.checking import NO_ANSWER
from teaching import feedback
from teaching.records import Result, Verdict

PARTS = [(part, hidden) for part in ('sum', 'rounds', 'time')
         for hidden in (False, True)]


def page(*wrong, **more):
    """Of a tree with these verdicts; a text for each check, or None."""
    verdicts = [Verdict(*part, reason, 2.)
                for part, reason in zip(PARTS, wrong)]
    points = 2. * wrong.count(None)
    return feedback.page('Ada <b>', [], [Result(
        'ada', 'tree', points, 12., [], verdicts, **more)])


def text_of(text):
    return html.unescape(re.sub(r'\s+', ' ', re.sub('<[^>]*>', '', text)))


def test_no_answer_is_said_once():
    told = [f'With n = {k}: {NO_ANSWER}' if k % 2 == 0 else
            'your function stopped, or returned what is no answer at all.'
            for k in range(6)]
    text = text_of(page(*told))
    assert text.count('here is no answer yet') == 1
    assert 'no answer at all' not in text and 'tree: 0 of 12' in text
    half = text_of(page(*told[:4], None, None))
    assert half.count('here is no answer yet') == 1 and '2 of 2, time' in half


def test_a_reason_stands_there_once():
    long = 'your function stopped with NameError: name Send is not defined'
    text = text_of(page(f'With n = 2: {long}', 'other', f'With n = 8: {long}',
                      'other', None, None))
    assert text.count(long) == 1 and text.count('not yet: other') == 1
    assert '0 of 2, rounds: not yet: as in sum' in text
    assert 'rounds, other cases: not yet: as in sum, other cases' in text


def test_code_is_code_and_harmless():
    text = page('in line 3: `<script>alert(1)</script>`', 'one ` alone <i>',
                None, None, None, None)
    assert '<code>&lt;script&gt;alert(1)&lt;/script&gt;</code>' in text
    assert 'one ` alone &lt;i&gt;' in text
    assert '<h1>Exercises: Ada &lt;b&gt;</h1>' in text
    assert '<script' not in text
    assert 'href' not in text
