"""What a teacher wrote into nbgrader's gradebook: comments, and points."""
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from nbgrader.api import Comment, Grade, Gradebook
from sqlalchemy import or_

if TYPE_CHECKING:
    from teaching.results import Result


class ByHand(NamedTuple):
    """points: from the name of a check cell to its points, with all extra.

    comments: texts. older: was the notebook graded anew since?
    """
    points: dict[str, float]
    comments: list[str]
    older: bool


Written: TypeAlias = dict[tuple[str, str], ByHand]  # by student and exercise


def written(gradebook: Gradebook) -> Written:
    """From (student, exercise) to a `ByHand`, where there is something."""
    found: Written = {}

    def of(row):
        return found.setdefault(_key(row), ByHand({}, [], False))

    # An extra of 0 is what the formgrader saves with the points.
    for row in gradebook.db.query(Grade).filter(
            or_(Grade.manual_score.is_not(None), Grade.extra_credit > 0)):
        by_hand = of(row)
        by_hand.points[row.name] = row.score
        if row.needs_manual_grade:
            found[_key(row)] = by_hand._replace(older=True)
    for row in gradebook.db.query(Comment).filter(Comment.manual_comment > ''):
        of(row).comments.append(row.manual_comment)
    return found


def _key(row):
    return row.student.id, row.assignment.name


def applied(result: 'Result', by_hand: ByHand | None) -> 'Result':
    """The result with the points that a teacher gave, and the comments."""
    if by_hand is None or not result.verdicts:
        return result
    assert result.points is not None  # since it was graded
    verdicts = [one._replace(by_hand=by_hand.points.get(
        f'{"hidden" if one.hidden else "check"}-{one.part}'))
        for one in result.verdicts]
    more = sum(one.by_hand - (0 if one.wrong else one.points)
               for one in verdicts if one.by_hand is not None)
    remarks = [*result.remarks]
    if any(one.by_hand is not None for one in verdicts):
        remarks.append(f'by hand: {result.points + more:g} points, not '
                       f'{result.points:g}')
    if by_hand.older:
        remarks.append('graded anew since points were changed by hand: look '
                       'at them again')
    return result._replace(points=result.points + more, verdicts=verdicts,
                           remarks=remarks, comments=by_hand.comments)
