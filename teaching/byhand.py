"""Comments and points that a teacher wrote into nbgrader's gradebook."""
from typing import NamedTuple, TypeAlias

from nbgrader.api import Comment, Grade, Gradebook
from sqlalchemy import or_

from teaching.records import Result


class ByHand(NamedTuple):
    """A teacher's points and comments on a notebook.

    points: from the name of a check cell to its points, extra points
    included. older: was the notebook graded again since?
    """
    points: dict[str, float]
    comments: list[str]
    older: bool


Entries: TypeAlias = dict[tuple[str, str], ByHand]  # by student and exercise


def entries(gradebook: Gradebook) -> Entries:
    """The points and comments that a teacher wrote, by student and exercise.
    """
    notes: Entries = {}

    def entry(row):
        return notes.setdefault(_key(row), ByHand({}, [], False))

    # An extra of 0 is what the formgrader saves with the points.
    for row in gradebook.db.query(Grade).filter(
            or_(Grade.manual_score.is_not(None), Grade.extra_credit > 0)):
        entry(row).points[row.name] = row.score
        if row.needs_manual_grade:
            notes[_key(row)] = entry(row)._replace(older=True)
    for row in gradebook.db.query(Comment).filter(Comment.manual_comment > ''):
        entry(row).comments.append(row.manual_comment)
    return notes


def _key(row):
    return row.student.id, row.assignment.name


def applied(result: Result, by_hand: ByHand | None) -> Result:
    """The result with the points that a teacher gave, and the comments."""
    if by_hand is None or not result.verdicts:
        return result
    assert result.points is not None  # since it was graded
    verdicts = [verdict._replace(by_hand=by_hand.points.get(
        f'{"hidden" if verdict.hidden else "check"}-{verdict.part}'))
        for verdict in result.verdicts]
    changes = [verdict.by_hand - (0 if verdict.wrong else verdict.points)
               for verdict in verdicts if verdict.by_hand is not None]
    points = result.points + sum(changes)
    remarks = [*result.remarks]
    if changes:
        remarks.append(f'by hand: {points:g} points, not {result.points:g}')
    if by_hand.older:
        remarks.append('graded again since points were changed by hand: look '
                       'at them again')
    return result._replace(points=points, verdicts=verdicts,
                           remarks=remarks, comments=by_hand.comments)
