"""Checkpoints that a power cut at any moment leaves whole.

To chapter 17, notebooks/17-when-a-server-dies.ipynb. The student writes a
class that saves and loads, on a disk that is a model.
"""
from collections.abc import Sequence
from itertools import count
from typing import Any

from d2lps.exercises.checking import Answer, Check, Notes, Picture, Wrong
from d2lps.exercises.disk import LEFT, state_of, train
from d2lps.explaining import brief
from d2lps.figures import describe

MOST_FILES = 2


def run_whole(answer: Answer, steps: Sequence[int], seed: int,
              size: int) -> Notes:
    """A new process loads from an empty disk, and after each save."""
    return [train(answer, [None], 'all', steps[:k], seed, size)
            for k in range(len(steps) + 1)]


def judge_whole(notes: Notes, steps: Sequence[int], seed: int,
                size: int) -> None:
    for step, note in zip([None, *steps], notes, strict=True):
        words = fault(note, seed, size)
        if words:
            raise Wrong(('no save: ' if step is None else
                         f'after save({step}, …): ') + words)


def run_crashes(answer: Answer, steps: Sequence[int], seed: int, size: int,
                again: int = 0, shift: int = 0) -> Notes:
    """The power goes after each operation; then one loads.

    again: the training goes on after the cut, with the steps that are missing,
    and the power goes a second time, after so many operations more. shift:
    from then on it saves so many steps later than planned.
    """
    notes: list[dict[str, Any]] = []
    for k in count():
        notes += [train(answer, [k, again] if again else [k], left, steps,
                        seed, size, shift) for left in LEFT]
        if notes[-1]['cuts'] == 0:  # all was saved before
            break
    return notes


def judge_crashes(notes: Notes, steps: Sequence[int], seed: int, size: int,
                  again: int = 0, shift: int = 0) -> None:
    for note in notes:
        words = fault(note, seed, size, roughly=True)
        if words:
            done = 'the last save' if len(note['may']) == 1 else (
                ' and '.join(note['diary'][-2:]))
            raise Wrong(f'after {done}, the power fails: {words}')
        if again and len(note['most']) > MOST_FILES:
            raise Wrong(f'the disk had {len(note["most"])} files at once, '
                        f'{_files(note["most"])}; {MOST_FILES} are right at '
                        'most.')


def fault(note: Notes, seed: int, size: int, roughly: bool = False) -> str:
    """What is wrong with a checkpoint that was loaded, in words, or ''.

    roughly: forgive what the first check tells of: other things than
    parameters, rounding, an error or an empty state in place of no
    checkpoint, and a step that is a text.
    """
    may, found, error = note['may'], note.get('found'), note.get('error')
    step, state = found or (None, None)
    if roughly and None in may and not state and (
            not error or 'FileNotFound' in error):
        return ''
    if roughly and isinstance(step, str) and step.isdecimal():
        step = int(step)
    if error:
        what = f'stops with {error}'
    else:
        what = f'returns {f"step {step!r:.40}" if found else None}'
        if step in may:
            wrong = step is not None and _difference(state, step, seed, size,
                                                     roughly)
            return f'load {what} {wrong}' if wrong else (
                '' if note['again'] else f'load {what}; a second load of this '
                'disk returns something else')
    right = ' or '.join('None' if one is None else f'step {one}'
                        for one in may)
    return f'load {what}; {right} is right. {_fact(note, step)}'.rstrip()


def _files(names):
    return ' and '.join(map(repr, names[:4])) or 'no file'


def _fact(note, step):
    """What is on the disk, and what load has read of it."""
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
        one = mine.get(place)
        if one == true or roughly and (
                'params' not in place or one != others[place]
                and isinstance(one, float) and abs(one - true) < .01):
            continue
        words = brief if brief(one) != brief(true) else repr
        what = f'with {place} = {words(one)}' if place in mine else (
            f'without {place}')
        return f'{what}; {words(true)} is right.' + (
            ' That was saved on another disk, by another training.'
            * (one == others[place]))
    more = [] if roughly else [*mine.keys() - right.keys()]
    return f'with {more[0]:.40}, which was not saved.' if more else ''


def _numbers(state):
    """The numbers of a state, by place, such as "state['params'][0]"."""
    return {f'state[{name!r}]' + f'[{k}]' * isinstance(value, list): one
            for name, value in state.items() for k, one in enumerate(
                value if isinstance(value, list) else [value])}


def picture(answer: Answer, steps: Sequence[int] = (8, 9, 10), seed: int = 1,
            size: int = 20) -> Picture:
    """Which step is loaded after a power cut at each moment."""
    from d2lps.pictures import BLUE, RED
    from d2lps.pictures.rows import WIDE, draw_bars, new_figure, row_axes
    notes = run_crashes(answer, steps, seed, size)
    rows = [note['diary'][-1] for note in notes[::len(LEFT)]]
    rows[-1], none = 'the end', steps[0] - 1
    lost = [fault(note, seed, size) != '' for note in notes]
    ax = row_axes(rows, steps[-1] + 0.5, begin=none - 0.5,
                  ax=new_figure(WIDE, 1 + 0.23 * len(rows)).subplots(),
                  xlabel='step that load returns if the power fails after …',
                  title=f'{sum(lost)} of {len(notes)} times not as it must be')
    ax.set_xticks([none, *steps], ['none', *map(str, steps)])
    for k, note in enumerate(notes):
        may = [none if step is None else step for step in note['may']]
        draw_bars(ax, [(may[0] - 0.1, may[-1] + 0.1, k // len(LEFT))],
                  '#d9d9d9', height=0.6)
        step = (note.get('found') or [None])[0]
        ax.plot(step if isinstance(step, int) else none, k // len(LEFT),
                'x' if lost[k] else 'o', color=RED if lost[k] else BLUE,
                markeredgewidth=2)
    describe(ax, f'What is loaded after a power cut at each of {len(rows)} '
                 'moments.')
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
