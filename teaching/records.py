"""The plain values that go from module to module: submissions and results."""
from collections.abc import Sequence
from typing import NamedTuple

from nbformat import NotebookNode

from d2lps.exercises.checking import NO_ANSWER


class FolderName(NamedTuple):
    """The name of a student's folder; a platform's number and prefix.

    prefix: what the platform writes before the name of a file of the student.
    """
    folder: str
    number: str = ''
    prefix: str = ''

    @property
    def name(self) -> str:
        """The student's name: without the platform's number."""
        return (self.folder.removesuffix(f'_{self.number}') if self.number
                else self.folder)


class Submission(NamedTuple):
    """The notebooks of a student, as they were read.

    student: a name that can be the name of a file. notebooks: exercise to
    notebook. remarks: exercise to a list of texts; '' for none of them.
    folder_name: of the student's folder, or what a platform gives. times:
    exercise to a time in UTC, or `late.MARKED`; those that are known.
    """
    student: str
    notebooks: dict[str, NotebookNode]
    remarks: dict[str, list[str]]
    folder_name: FolderName
    times: dict[str, str] = {}


class Verdict(NamedTuple):
    """The verdict on a check.

    part: of the exercise. hidden: is it the hidden check? wrong: the reason
    why it failed, or None. points: for a right answer. by_hand: the points
    that a teacher gave in their place, or None.
    """
    part: str
    hidden: bool
    wrong: str | None
    points: float
    by_hand: float | None = None


class Result(NamedTuple):
    """A student's result of an exercise; `verdicts` as `judge` gives them.

    Without verdicts nothing was graded: the remarks say why. Then there are 0
    points, or None, where that is not the student's fault. max_points: of the
    exercise. time: see `Submission`. comments: of a teacher. days: how
    late it was. penalty: the points that it lost for that.
    """
    student: str
    exercise: str
    points: float | None
    max_points: float
    remarks: list[str]
    verdicts: list[Verdict]
    time: str | None = None
    comments: list[str] = []
    days: int = 0
    penalty: float = 0


def no_answer(verdicts: Sequence[Verdict]) -> bool:
    """Did no check find an answer?"""
    visible = [verdict for verdict in verdicts if not verdict.hidden]
    return bool(visible) and all(NO_ANSWER in (verdict.wrong or '')
                                 for verdict in visible) and all(
        verdict.wrong and verdict.by_hand is None for verdict in verdicts)
