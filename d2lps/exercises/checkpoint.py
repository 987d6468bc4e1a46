"""Checkpoints that a power cut at any moment leaves whole.

To chapter 17, notebooks/17-when-a-server-dies.ipynb. The student writes a
class that saves and loads, on a disk that is a model.
"""
from collections.abc import Sequence
from itertools import count
from typing import Any, TypeAlias

from d2lps.exercises.charts import row_chart
from d2lps.exercises.checking import Answer, Check, Picture, Wrong
from d2lps.exercises.disk import LEFT, state_of, train
from d2lps.explaining import brief

Note: TypeAlias = dict[str, Any]  # see `train`
MOST_FILES = 2


def run_whole(answer: Answer, steps: Sequence[int], seed: int,
              size: int) -> list[Note]:
    """A new process loads from an empty disk, and after each save."""
    return [train(answer, [None], 'all', steps[:k], seed, size)
            for k in range(len(steps) + 1)]


def judge_whole(notes: list[Note], steps: Sequence[int], seed: int,
                size: int) -> None:
    for step, note in zip([None, *steps], notes, strict=True):
        wrong = fault(note, seed, size)
        if wrong:
            raise Wrong(('no save: ' if step is None else
                         f'after save({step}, …): ') + wrong)


def run_crashes(answer: Answer, steps: Sequence[int], seed: int, size: int,
                again: int = 0, shift: int = 0) -> list[Note]:
    """The power goes after each operation; then one loads.

    again: the training goes on after the cut, with the steps that are missing,
    and the power goes a second time, after so many operations more. shift:
    from then on it saves so many steps later than planned.
    """
    notes: list[Note] = []
    for k in count():
        notes += [train(answer, [k, again] if again else [k], left, steps,
                        seed, size, shift) for left in LEFT]
        if notes[-1]['cuts'] == 0:  # all was saved before
            break
    return notes


def judge_crashes(notes: list[Note], steps: Sequence[int], seed: int,
                  size: int, again: int = 0, shift: int = 0) -> None:
    for note in notes:
        wrong = fault(note, seed, size, roughly=True)
        if wrong:
            done = 'the last save' if len(note['may']) == 1 else (
                ' and '.join(note['diary'][-2:]))
            raise Wrong(f'after {done}, the power fails: {wrong}')
        if again and len(note['most']) > MOST_FILES:
            raise Wrong(f'the disk had {len(note["most"])} files at once, '
                        f'{_files(note["most"])}; {MOST_FILES} are right at '
                        'most.')


def fault(note: Note, seed: int, size: int, roughly: bool = False) -> str:
    """The fault of a checkpoint that was loaded, in words, or ''.

    roughly: forgive what the first check tells of: other things than
    parameters, rounding, an error or an empty state in place of no
    checkpoint, and a step that is a text.
    """
    may, loaded, error = note['may'], note.get('loaded'), note.get('error')
    step, state = loaded or (None, None)
    if roughly and None in may and not state and (
            not error or 'FileNotFound' in error):
        return ''
    if roughly and isinstance(step, str) and step.isdecimal():
        step = int(step)
    if error:
        reply = f'stops with {error}'
    else:
        reply = f'returns {f"step {step!r:.40}" if loaded else None}'
        if step in may:
            wrong = step is not None and _difference(state, step, seed, size,
                                                     roughly)
            return f'load {reply} {wrong}' if wrong else (
                '' if note['again'] else f'load {reply}; a second load of '
                'this disk returns something else')
    right = ' or '.join('None' if number is None else f'step {number}'
                        for number in may)
    return f'load {reply}; {right} is right. {_fact(note, step)}'.rstrip()


def _files(names):
    return ' and '.join(map(repr, names[:4])) or 'no file'


def _fact(note, step):
    """Words about the files on the disk that load has read."""
    reads, wanted = note['reads'], note['may'][0]
    if step is not None and type(step) is not int:
        return ''
    for name in note['unflushed']:
        if name in reads:
            return (f'{name!r} was not flushed: {note["left"]} of its text is '
                    'there.')
    if step and wanted and step < wanted and str(step) > str(wanted):
        return f'As texts, {wanted} comes before {step}.'
    return (f'Before load, the disk has {_files(note["names"])}'
            + f', and load then reads {_files(reads)}' * bool(note['names'])
            + '.')


def _difference(state, step, seed, size, roughly):
    """The first wrong place of a state that was loaded, in words, or ''."""
    if not isinstance(state, dict):
        return f'and {brief(state)}; a dictionary is right.'
    mine, right = _numbers(state), _numbers(state_of(step, seed, size))
    others = _numbers(state_of(step, seed + 1, size))
    for place, true in right.items():
        given = mine.get(place)
        if given == true or roughly and (
                'params' not in place or given != others[place]
                and isinstance(given, float) and abs(given - true) < .01):
            continue
        shown = brief if brief(given) != brief(true) else repr
        start = f'with {place} = {shown(given)}' if place in mine else (
            f'without {place}')
        return f'{start}; {shown(true)} is right.' + (
            ' That was saved on another disk, by another training.'
            * (given == others[place]))
    more = [] if roughly else [*mine.keys() - right.keys()]
    return f'with {more[0]:.40}, which was not saved.' if more else ''


def _numbers(state):
    """The numbers of a state, by place, such as "state['params'][0]"."""
    return {f'state[{name!r}]' + f'[{k}]' * isinstance(value, list): number
            for name, value in state.items() for k, number in enumerate(
                value if isinstance(value, list) else [value])}


def picture(answer: Answer, steps: Sequence[int] = (8, 9, 10), seed: int = 1,
            size: int = 20) -> Picture:
    """Steps that are loaded after a power cut at each moment."""
    from d2lps.pictures import BLUE, GRAY, RED
    from d2lps.pictures.rows import draw_bars
    notes = run_crashes(answer, steps, seed, size)
    rows = [note['diary'][-1] for note in notes[::len(LEFT)]]
    rows[-1], none = 'the end', steps[0] - 1
    lost = [fault(note, seed, size) != '' for note in notes]
    ax = row_chart(rows, steps[-1] + 0.5, 'What is loaded after a power cut '
                   f'at each of {len(rows)} moments.', begin=none - 0.5,
                   height=1 + 0.23 * len(rows),
                   xlabel='step that load returns if the power fails after …',
                   title=f'{sum(lost)} of {len(notes)} times not as it must '
                         'be')
    ax.set_xticks([none, *steps], ['none', *map(str, steps)])
    for k, note in enumerate(notes):
        row = k // len(LEFT)
        may = [none if step is None else step for step in note['may']]
        draw_bars(ax, [(may[0] - 0.1, may[-1] + 0.1, row)], GRAY, height=0.6)
        step = (note.get('loaded') or [None])[0]
        ax.plot(step if isinstance(step, int) else none, row,
                'x' if lost[k] else 'o', color=RED if lost[k] else BLUE,
                markeredgewidth=2)
    return ax.figure


CHECKS = {
    'whole': Check([{'steps': [8, 9, 10, 11], 'seed': 1, 'size': 5}],
                   run_whole, judge_whole,
                   'a new process loads all of the newest state.', case=''),
    'crash': Check([{'steps': [20, 40, 60], 'seed': 2, 'size': 4},
                    {'steps': [8, 9, 10], 'seed': 3, 'size': 3}],
                   run_crashes, judge_crashes,
                   'a power cut at any moment leaves a whole checkpoint, and '
                   'no saved checkpoint is lost.', case=''),
    'again': Check([{'steps': [9, 10, 11], 'seed': 4, 'size': 3, 'again': k}
                    for k in (1, 2, 3, 5, 8)] +
                   [{'steps': [20, 40, 60], 'seed': 5, 'size': 3, 'again': 4,
                     'shift': 7}], run_crashes, judge_crashes,
                   'a second power cut does no harm either, and there are '
                   'never more than 2 files.', case='')}
