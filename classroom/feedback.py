"""The page that a student gets: what was right, and what was not, and why."""
from jinja2 import Environment

from d2lps_exercises.checking import check_of

PAGE = Environment(autoescape=True, trim_blocks=True,
                   lstrip_blocks=True).from_string('''\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Exercises: {{ student }}</title>
<style>
body { font: 16px/1.5 sans-serif; max-width: 46em; margin: 2em auto;
       padding: 0 1em; color: #222 }
h2 { border-bottom: 1px solid #999; margin-top: 2em }
li { margin: .5em 0 } .remark { background: #eee; padding: .3em .6em }
.comment { white-space: pre-wrap }
.right::before { content: "\\2713  " } .wrong::before { content: "\\2717  " }
</style></head><body>
<h1>Exercises: {{ student }}</h1>
<p>{{ '%g' % points }} of {{ '%g' % most }} points.</p>
{% for remark in remarks %}<p class="remark">{{ remark }}</p>
{% endfor %}
<p>Each check runs twice: on the cases that your notebook has, and on others
that no notebook has.</p>
{% for result, verdicts in exercises %}
<h2>{{ result.exercise }}: {{ 'no points yet' if result.points is none
   else '%g of %g' % (result.points, result.of) }}</h2>
{% for remark in result.remarks %}<p class="remark">{{ remark }}</p>
{% endfor %}
<ul>
{% for one, right in verdicts %}
<li class="{{ 'wrong' if one.wrong else 'right' }}">
<b>{{ '%g' % (one.by_hand if one.by_hand is not none else
   0 if one.wrong else one.points) }} of {{ '%g' % one.points }}
{{- ' by hand' if one.by_hand is not none }}</b>, {{ one.part }}
{{- ', other cases' if one.hidden }}:
{{ 'not yet: ' + one.wrong if one.wrong else right }}
</li>
{% endfor %}
</ul>
{% for comment in result.comments %}
<h3>Your teacher's comment</h3>
<p class="comment">{{ comment }}</p>
{% endfor %}
{% endfor %}
</body></html>
''')


def page(submission, results):
    """HTML that needs nothing else. results: those of this student."""
    exercises = [(result, [
        (one, check_of(result.exercise, one.part).right)
        for one in result.verdicts]) for result in results]
    graded = [result for result in results if result.points is not None]
    return PAGE.render(
        student=submission.student, exercises=exercises,
        remarks=submission.remarks.get('', []),
        points=sum(result.points for result in graded),
        most=sum(result.of for result in graded))
