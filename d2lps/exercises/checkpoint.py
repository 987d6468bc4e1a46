"""Checkpoints that a power cut at any moment leaves whole.

To chapter 17, notebooks/17-when-a-server-dies.ipynb. The student writes a
class that saves and loads, on a disk that is a model.
"""
from collections.abc import Sequence
from itertools import count
from typing import Any

from d2lps.exercises.checking import Answer, Check, Notes, Picture, Wrong
from d2lps.exercises.disk import LEFT, state_of, train
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
            raise Wrong(('with an empty disk, ' if step is None else
                         f'after save({step}, …), ') + words)


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
        when = f'the power fails after {", ".join(note["diary"][-3:])}: '
        if len(note['may']) == 1:
            when = 'after the last save, '
        words = fault(note, seed, size, roughly=True)
        if words:
            raise Wrong(when + words)
        if again and len(note['most']) > MOST_FILES:
            raise Wrong(f'{when}there were {len(note["most"])} files at the '
                        f'same time, {_files(note["most"])}, and the target '
                        f'is {MOST_FILES}. Which of them does load still '
                        'need?')


def fault(note: Notes, seed: int, size: int, roughly: bool = False) -> str:
    """What is wrong with a checkpoint that was loaded, in words, or ''.

    roughly: forgive what the first check tells of: other things than
    parameters, rounding, an error or an empty state in place of no
    checkpoint, and a step that is a text.
    """
    may, found = note['may'], note.get('found')
    step, state = found or (None, None)
    words = ' or '.join('None' if one is None else f'step {one}'
                        for one in may)
    if 'error' in note:
        if roughly and None in may and 'FileNotFound' in note['error']:
            return ''
        return (f'load must return {words}, but stopped with {note["error"]}'
                f'{_hint(note)}')
    what = f'load returned {f"step {step!r:.40}" if found else None}'
    if roughly and not state and None in may:
        return ''
    if roughly and isinstance(step, str) and step.isdecimal():
        step = int(step)
    if step not in may:
        return f'{what}, and must return {words}.{_hint(note)}'
    wrong = step is not None and _difference(state, step, seed, size, roughly)
    return f'{what}, but {wrong}' if wrong else ''


def _files(names):
    return ', '.join(map(repr, names[:4])) or 'no file'


def _hint(note):
    """What load read, and what is on the disk."""
    reads, wanted = note['reads'], note['may'][0]
    disk = f' The disk has {_files(note["names"])}.'
    for name in note['unflushed']:
        text = f'{note["left"]} of its text is there.'
        if any(f', {name!r})' in done for done in note['diary'][-3:]):
            return (f' {name!r} got its name by rename before its text was '
                    f'flushed: {text} Which of the two must come first?')
        if name in reads:
            return (f' load read {name!r}, which was written and not flushed: '
                    f'{text}{disk} Which file is whole at this moment?')
    step, state = note.get('found') or (None, None)
    if state and not note['names']:
        return f'{disk} Only what is on the disk outlives a crash.'
    if wanted is None:
        return ''
    if not reads:
        return (f'{disk} At each moment, a whole checkpoint must have a name '
                'that load knows.')
    if type(step) is int and step < wanted:
        return disk + (f' As texts, {wanted} comes before {step}: are names '
                       'compared?' if str(step) > str(wanted) else '')
    return f' load read {reads[-1]!r}.{disk}' if step is None else ''


def _difference(state, step, seed, size, roughly):
    """The first wrong place of a state that was loaded, in words, or ''."""
    if not isinstance(state, dict):
        return f'its state is a {type(state).__name__}, not a dictionary.'
    mine, right = _numbers(state), _numbers(state_of(step, seed, size))
    others = _numbers(state_of(step, seed + 1, size))
    for place, true in right.items():
        one = mine.get(place)
        if one == true or roughly and 'params' not in place:
            continue
        if one == others[place]:
            return (f'its {place} is what another training saved, on another '
                    'disk. Only what is on its own disk outlives a crash.')
        if not (roughly and isinstance(one, float) and abs(one - true) < .01):
            what = (f'its {place} is {one!r:.40}, and {true} was saved'
                    if place in mine else f'{place} is not in its state')
            return (f'{what}. The training would continue, and end with '
                    'other parameters.')
    more = [] if roughly else [*mine.keys() - right.keys()]
    return f'its state has {more[0]:.40}, which was not saved.' if more else ''


def _numbers(state):
    """The numbers of a state, by place, such as "'params'[0]"."""
    return {f'{name!r}' + f'[{k}]' * isinstance(value, list): one
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
                   'a new process loads all of the newest state.'),
    'crash': Check([{'steps': [20, 40, 60], 'seed': 2, 'size': 4},
                    {'steps': [8, 9, 10], 'seed': 3, 'size': 3}],
                   run_crashes, judge_crashes,
                   'a power cut at any moment leaves a whole checkpoint, and '
                   'no saved checkpoint is lost.'),
    'again': Check([{'steps': [9, 10, 11], 'seed': 4, 'size': 3, 'again': k}
                    for k in (1, 2, 3, 5, 8)] +
                   [{'steps': [20, 40, 60], 'seed': 5, 'size': 3, 'again': 4,
                     'shift': 7}], run_crashes, judge_crashes,
                   'a second power cut does no harm either, and there are '
                   'never more than 2 files.')}
