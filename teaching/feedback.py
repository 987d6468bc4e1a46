"""The page that a student gets: points for each check, and reasons."""
import re
from collections.abc import Sequence

from jinja2 import Environment
from markupsafe import Markup, escape

from d2lps.exercises.checking import NO_ANSWER, check_of
from teaching.records import Result, Verdict, no_answer

PAGE = Environment(autoescape=True, trim_blocks=True,
                   lstrip_blocks=True).from_string('''\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
      content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Exercises: {{ name }}</title>
<style>
body { font: 16px/1.5 sans-serif; max-width: 46em; margin: 2em auto;
       padding: 0 1em; color: #222; overflow-wrap: anywhere }
h2 { border-bottom: 1px solid #999; margin-top: 2em }
ul { padding-left: 1.2em } li { margin: .5em 0; list-style: none }
code { background: #eee; padding: 0 .2em; white-space: pre-wrap }
.remark { background: #eee; padding: .3em .6em }
.comment { white-space: pre-wrap }
.right::before { content: "\\2713  " } .wrong::before { content: "\\2717  " }
</style></head><body>
<h1>Exercises: {{ name }}</h1>
<p>{{ '%g' % points }} of {{ '%g' % most }} points.</p>
{% for remark in remarks %}<p class="remark">{{ remark }}</p>
{% endfor %}
<p>Each check runs twice: on the cases that your notebook has, and on others
that no notebook has.</p>
{% for result, remarks, lines in exercises %}
<h2>{{ result.exercise }}: {{ 'no points yet' if result.points is none
   else '%g of %g' % (result.points|round(2), result.max_points) }}</h2>
{% for remark in remarks %}<p class="remark">{{ remark }}</p>
{% endfor %}
{% if not lines and result.verdicts %}<p>{{ no_answer }}</p>
{% else %}
<ul>
{% for verdict, part, text in lines %}
<li class="{{ 'wrong' if verdict.wrong else 'right' }}">
<b>{{ '%g' % (verdict.by_hand if verdict.by_hand is not none else
   0 if verdict.wrong else verdict.points) }} of {{ '%g' % verdict.points }}
{{- ' by hand' if verdict.by_hand is not none }}</b>, {{ part }}:
{{ text }}
</li>
{% endfor %}
</ul>
{% endif %}
{% for comment in result.comments %}
<h3>Your teacher's comment</h3>
<p class="comment">{{ comment }}</p>
{% endfor %}
{% endfor %}
</body></html>
''')


def page(name: str, remarks: Sequence[str],
         results: Sequence[Result]) -> str:
    """HTML that needs no other file.

    name: of the student. remarks: on the student's files, of no exercise.
    results: those of this student.
    """
    graded = [result for result in results if result.points is not None]
    return PAGE.render(
        name=name,
        exercises=[(result, *_shown(result)) for result in results],
        no_answer=NO_ANSWER[0].upper() + NO_ANSWER[1:],
        remarks=remarks,
        points=round(sum(result.points or 0 for result in graded), 2),
        most=sum(result.max_points for result in graded))


def _shown(result: Result) -> tuple[list[str], list]:
    """Remarks and lines: no lines if one sentence says all."""
    if not no_answer(result.verdicts):
        return result.remarks, _lines(result)
    return [remark for remark in result.remarks
            if remark not in NO_ANSWER], []


def _lines(result: Result) -> list[tuple[Verdict, str, Markup]]:
    """A verdict, its part, and a text on it: a long reason only once."""
    lines = []
    reasons: dict[str, Verdict] = {}  # to the first check that it was for
    for verdict in result.verdicts:
        if not verdict.wrong:
            text = check_of(result.exercise, verdict.part).right
        else:
            reason = verdict.wrong.partition(': ')[2] or verdict.wrong
            first = reasons.setdefault(reason, verdict)
            text = 'not yet: ' + (verdict.wrong if first is verdict else
                                  f'as in {_part(first)}')
        lines.append((verdict, _part(verdict), _code(text)))
    return lines


def _part(verdict: Verdict) -> str:
    return f'{verdict.part}{", other cases" if verdict.hidden else ""}'


def _code(text: str) -> Markup:
    """The text as HTML: code where it stands between two backticks."""
    return Markup().join(
        Markup('<code>{}</code>').format(part) if k % 2 else escape(part)
        for k, part in enumerate(re.split(r'`([^`]+)`', text)))
