"""Checkpoints that a power cut at any moment leaves whole.

To chapter 17, notebooks/17-when-a-server-dies.ipynb. The student writes a
class that saves and loads, on a disk that is a model.
"""
from collections.abc import Sequence
from typing import Any

from d2lps.exercises.checking import Answer, Check, Notes, Picture, Wrong
from d2lps.exercises.disk import Disk, state_of, train
from d2lps.figures import describe

SHARES = {0: 'nothing', 0.5: 'half', 1: 'all'}  # left of an unflushed text
MOST_FILES = 2


def run_whole(answer: Answer, steps: Sequence[int], seed: int,
              size: int) -> Notes:
    """A new process loads from an empty disk, and after each save."""
    notes = [train(answer, [None], 1, steps[:k], seed, size)
             for k in range(len(steps) + 1)]
    state, before = (state_of(steps[0], seed, size) for _ in range(2))
    answer(Disk()).save(steps[0], state)
    changed = [name for name in {**before, **state}
               if state.get(name) != before.get(name)]
    return {'loaded': notes, 'changed': changed}


def judge_whole(notes: Notes, steps: Sequence[int], seed: int,
                size: int) -> None:
    for step, note in zip([None, *steps], notes['loaded'], strict=True):
        words = fault(note, seed, size)
        if words:
            raise Wrong(('with an empty disk, ' if step is None else
                         f'after save({step}, …), ') + words)
    if notes['changed']:
        raise Wrong(f'save changed {notes["changed"][0]!r:.40} in the state '
                    'that it was given, and the training continues with this '
                    'state.')


def run_crashes(answer: Answer, steps: Sequence[int], seed: int, size: int,
                again: int = 0, shift: int = 0) -> Notes:
    """The power goes after each operation; then one loads.

    again: the training goes on after the cut, with the steps that are missing,
    and the power goes a second time, after so many operations more. shift:
    from then on it saves so many steps later than planned.
    """
    notes: list[dict[str, Any]] = []
    for k in range(40 * len(steps)):
        notes += [train(answer, [k, again] if again else [k], share, steps,
                        seed, size, shift) for share in SHARES]
        if notes[-1]['cuts'] == 0:  # all was saved before
            return notes
    raise Wrong('your save needs more than 40 operations of the disk.')


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
    may, (step, state) = note['may'], note.get('found') or (None, None)
    words = ' or '.join('None' if one is None else f'step {one}'
                        for one in may)
    if 'error' in note:
        if roughly and may[0] is None and note['error'].startswith(
                FileNotFoundError.__name__):
            return ''
        return (f'load must return {words}, but stopped with {note["error"]}'
                f'{_hint(note)}')
    what = 'load returned ' + (f'step {step!r:.40}' if note['found'] else
                               'None')
    if roughly and not state and None in may:
        step = None
    elif roughly and isinstance(step, str) and step.isdecimal():
        step = int(step)
    if state and note['letters'] <= 2 * size:
        return (f'{what}, but the disk has {_files(note["names"])}, '
                f'{note["letters"]} characters in all, and the state has '
                f'{2 * size + 2} numbers. Only what is on the disk outlives a '
                'crash.')
    if note['found'] and type(step) not in (int, type(None)):
        return f'{what}, a {type(step).__name__}, and must return {words}.'
    if step not in may or (step is None and state):
        return f'{what}, and must return {words}.{_hint(note)}'
    wrong = step is not None and _difference(
        state, step, [one for one in may if one not in (None, step)], seed,
        size, roughly)
    return f'{what}, but {wrong}' if wrong else ''


def _files(names):
    return ', '.join(f'{name!r:.40}' for name in names[:4]) or 'no file'


def _hint(note):
    """What load read, and what it should have read."""
    reads, wanted = note['reads'], note['may'][0]
    disk = f' The disk has {_files(note["names"])}.'
    found = note.get('found')
    step, state = found or (None, None)
    for name in note['unflushed']:
        text = f'{SHARES[note["share"]]} of its text is there.'
        if any(f', {name!r})' in done for done in note['diary'][-3:]):
            return (f' {name!r} got its name by rename before its text was '
                    f'flushed: {text} Which of the two must come first?')
        if name in reads:
            return (f' load read {name!r}, which was written and not flushed: '
                    f'{text}{disk} Which file is whole at this moment?')
    if isinstance(state, dict) and state.get('position') == step:
        return f" {step} is the 'position' of this state."
    if wanted is None:
        return ''
    if type(step) is int and step < wanted:
        return disk + (f' As texts, {wanted} comes before {step}: are names '
                       'compared?' if str(step) > str(wanted) else '')
    if reads and not found and 'error' not in note:
        return (f' load read {reads[-1]!r}, and returned None. Has it a '
                '`return`?')
    if found or 'FileNotFound' not in note.get('error', 'FileNotFound'):
        return ''
    return (f'{disk} At each moment, a whole checkpoint must have a name that '
            'load knows.')


def _difference(state, step, other_steps, seed, size, roughly):
    """The first wrong place of a state that was loaded, in words, or ''."""
    if not isinstance(state, dict):
        return f'its state is a {type(state).__name__}, not a dictionary.'
    mine, right = _numbers(state), _numbers(state_of(step, seed, size))
    others = _numbers(state_of(step, seed + 1, size))
    for place, true in right.items():
        if roughly and 'params' not in place or mine.get(place) == true:
            continue
        if place not in mine:
            return (f'{place} is not in its state. The training would '
                    'continue, and end with other parameters.')
        one = mine[place]
        if one == others[place]:
            return (f'its {place} is what another training saved, on another '
                    'disk. Only what is on its own disk outlives a crash.')
        for other in other_steps:
            if one == _numbers(state_of(other, seed, size))[place]:
                return f'its {place} is that of step {other}.'
        if not (roughly and isinstance(one, float) and abs(one - true) < .01):
            return (f'its {place} is {one!r:.40}, and {true} was saved. The '
                    'training would continue, and end with other parameters.')
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
    rows = [note['diary'][-1] for note in notes[::len(SHARES)]]
    rows[-1], none = 'the end', steps[0] - 1
    lost = [fault(note, seed, size) != '' for note in notes]
    ax = row_axes(rows, steps[-1] + 0.5, begin=none - 0.5,
                  ax=new_figure(WIDE, 1 + 0.23 * len(rows)).subplots(),
                  xlabel='step that load returns if the power fails after …',
                  title=f'{sum(lost)} of {len(notes)} times not as it must be')
    ax.set_xticks([none, *steps], ['none', *map(str, steps)])
    for k, note in enumerate(notes):
        may = [none if step is None else step for step in note['may']]
        draw_bars(ax, [(may[0] - 0.1, may[-1] + 0.1, k // len(SHARES))],
                  '#d9d9d9', height=0.6)
        step = (note.get('found') or [None])[0]
        ax.plot(step if isinstance(step, int) else none, k // len(SHARES),
                'x' if lost[k] else 'o', color=RED if lost[k] else BLUE,
                markeredgewidth=2)
    describe(ax, f'What is loaded after a power cut at each of {len(rows)} '
                 f'moments: {ax.get_title()}.')
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
