"""Checkpoints that a power cut at any moment leaves whole.

To chapter 17, notebooks/17-when-a-server-dies.ipynb. The student writes a
class that saves and loads, on a disk that is a model.
"""
import random
from collections.abc import Sequence
from reprlib import repr as short
from textwrap import shorten
from typing import Any

from d2lps.exercises.checking import Answer, Check, Notes, Picture, Wrong
from d2lps.figures import describe
from d2lps.exercises.disk import Disk, PowerCut

SHARES = 0, 0.5, 1  # of an unflushed text that a power cut leaves
MOST_FILES = 2


def state_of(step: int, seed: int, size: int) -> dict[str, Any]:
    """What the chapter's training keeps in a checkpoint."""
    draw = random.Random(seed * 100_003 + step)
    return {'params': [draw.random() for _ in range(size)],
            'momenta': [draw.random() for _ in range(size)],
            'position': 64 * step, 'random': draw.randrange(2 ** 31)}


def save_all(answer: Answer, disk: Disk, steps: Sequence[int], seed: int,
             size: int) -> tuple[int | None, int | None]:
    """Save until the end or the power cut: the step that was saved last, and
    the one that was being saved (or None)."""
    done, now = None, None
    try:
        for now in steps:
            answer(disk).save(now, state_of(now, seed, size))
            done = now
        now = None
    except PowerCut:
        pass
    return done, now


def load(answer: Answer, disk: Disk) -> dict[str, Any]:
    """What a new process loads, or how it failed."""
    try:
        found = answer(disk).load()
    except NotImplementedError:  # the student has not begun
        raise
    except Exception as error:
        return {'error': f'{type(error).__name__}: {error}'[:200]}
    if found is not None and (not isinstance(found, (list, tuple)) or
                              len(found) != 2):
        text = shorten(repr(found), 60, placeholder=' …')
        raise Wrong(f'load returned {text}; it must return step and '
                    'state, or None if there is no checkpoint.')
    return {'found': found, 'names': disk.names()[:10]}


def _meant(note):
    """Forgive what the first check tells of: a step that is a text, and an
    empty state in place of no checkpoint."""
    step, state = note.get('found') or (None, None)
    if not state:
        return {**note, 'found': None} if 'found' in note else note
    if isinstance(step, str) and step.isdecimal():
        step = int(step)
    return {**note, 'found': [step, state]}


def run_whole(answer: Answer, steps: Sequence[int], seed: int,
              size: int) -> Notes:
    """A new process loads after each save, and once from another disk."""
    disk, notes = Disk(), []
    notes.append(load(answer, disk))
    for step in steps:
        save_all(answer, disk, [step], seed, size)
        notes.append(load(answer, disk))
    # A checkpoint lives on its disk alone, even while another disk is used.
    files, state = disk.after_power_cut(1), state_of(steps[0], seed, size)
    save_all(answer, Disk(), steps, seed + 1, size)
    notes.append(load(answer, Disk(files)))
    answer(Disk()).save(steps[0], state)
    same = state == state_of(steps[0], seed, size)
    return [*notes, load(answer, Disk()), same]


def judge_whole(notes: Notes, steps: Sequence[int], seed: int,
                size: int) -> None:
    *notes, same = notes
    wanted = [None, *steps, steps[-1], None]
    for step, note in zip(wanted, notes, strict=True):
        when, why = 'with an empty disk, ', ''
        if step is not None:
            when, why = 'after save was done, ', ' Has load a `return`?' * (
                'found' in note and note['found'] is None)
        judge_found(note, [step], seed, size, when, why)
    if not same:
        raise Wrong('save changed the state that it was given, and the '
                    'training continues with this state.')


def judge_found(note: Notes, steps: Sequence[int | None], seed: int, size: int,
                when: str, why: str = '', roughly: bool = False) -> None:
    """One of these steps, whole; None stands for no checkpoint at all.

    roughly: only the parameters are compared, and these may be rounded.
    """
    words = ' or '.join('None' if step is None else f'step {step}'
                        for step in steps)
    if 'error' in note:
        raise Wrong(f'{when}load must return {words}, but stopped with '
                    f'{note["error"]}.{why}')
    if note['found'] is None:
        if None in steps:
            return
        raise Wrong(f'{when}load returned None, and must return {words}.'
                    f'{why}')
    step, state = note['found']
    if step not in steps or type(step) is not int:
        later = [one for one in steps if one is not None]
        named = any(str(step) in name for name in note['names'])
        hint = (' As texts, 10 comes before 9: are names compared?'
                if named and isinstance(step, int) and later and
                step < later[0] else '')
        if steps == [None] and state:
            hint = ' Only what is on the disk outlives a crash.'
        raise Wrong(f'{when}load returned step {step!r:.40}, and must return '
                    f'{words}.{hint}')
    right = state_of(step, seed, size)
    if not isinstance(state, dict):
        raise Wrong(f'{when}the state that load returned is not a '
                    f'dictionary: {state!r:.60}')
    for name in ['params'] if roughly else right:
        same = state.get(name) == right[name]
        if roughly and len(state.get(name, ())) == size:
            same = all(abs(one - other) < 1e-2 for one, other in zip(
                state[name], right[name]))
        if not same:
            what = ('is not in its state' if name not in state else
                    f'differs in its state: it is {short(state[name])}, and '
                    f'{short(right[name])} was saved')
            raise Wrong(f'{when}load returned step {step}, but {name!r} '
                        f'{what}. The training would continue, and end with '
                        'other parameters.')
    more = [*state.keys() - right.keys()]
    if more and not roughly:
        raise Wrong(f'{when}load returned a state with {more[0]!r:.40}, but '
                    'the saved state does not have it.')


def run_crashes(answer: Answer, steps: Sequence[int], seed: int, size: int,
                again: int = 0, shift: int = 0) -> Notes:
    """The power goes after each operation; then one loads.

    again: the training goes on after the cut, with the steps that are missing,
    and the power goes a second time, after so many operations more. shift:
    from then on it saves so many steps later than planned.
    """
    notes, k = [], 0
    while True:
        disk = Disk(ends_after=k)
        done, now = save_all(answer, disk, steps, seed, size)
        for share in SHARES:
            last_disk = disk
            files = disk.after_power_cut(share)
            loaded = _meant(load(answer, Disk(files)))
            note = {'done': done, 'now': now, 'share': share,
                    'diary': disk.diary[-4:]}
            found = (loaded.get('found') or [None])[0]
            if again and now is not None and 'error' not in loaded and (
                    found in (done, now)):
                last_disk = Disk(files, again)
                rest = [step + shift for step in steps
                        if found is None or step > found]
                last, note['now'] = save_all(answer, last_disk, rest, seed,
                                             size)
                note.update(done=found if last is None else last,
                            diary=['a first power cut',
                                   *last_disk.diary[-4:]])
                files = last_disk.after_power_cut(share)
                loaded = _meant(load(answer, Disk(files)))
            note.update(loaded, most=last_disk.most_files,
                        unflushed=last_disk.unflushed())
            notes.append(note)
        if now is None:
            return notes
        k += 1
        if k > 40 * len(steps):
            raise Wrong('your save needs more than 40 operations of the disk.')


def judge_crashes(notes: Notes, steps: Sequence[int], seed: int, size: int,
                  again: int = 0, shift: int = 0) -> None:
    if notes and all('found' in note and not note['found']
                     for note in notes):
        raise Wrong('load returned None after each power cut, and also after '
                    'the last save. Has load a `return`?')
    for note in notes:
        diary = ', '.join(note['diary'][-3:]) or 'nothing'
        kept = {0: 'nothing', 0.5: 'half', 1: 'all'}[note['share']]
        when = f'the power fails after {diary}: '
        if note['now'] is None:
            when = f'after the last save, which ended with {diary}: '
        allowed = [note['done']]
        if note['now'] is not None:
            allowed.append(note['now'])
        if note['done'] is None and note.get('error', '').startswith(
                FileNotFoundError.__name__):
            continue  # the first check tells of a disk without a checkpoint
        judge_found(note, allowed, seed, size, when, reason(note, kept),
                    roughly=True)
        if again and note['most'] > MOST_FILES:
            raise Wrong(f'{when}there were {note["most"]} files at the same '
                        f'time, and the target is {MOST_FILES}. Is an older '
                        'checkpoint left, or an unfinished file from before '
                        'a power cut?')
    if not notes or notes[-1]['done'] != steps[-1] or notes[-1]['now']:
        raise Wrong('not all steps were saved.')


def reason(note: Notes, kept: str) -> str:
    """What may have led to this."""
    renamed = [name for name in note['unflushed'] if any(
        f', {name!r})' in done for done in note['diary'])]
    if renamed:
        return (f' {renamed[0]!r} got its name by rename before its text was '
                f'flushed: {kept} of the text is there.')
    if note['unflushed']:
        return (f' {note["unflushed"][0]!r} was written and not flushed, so '
                f'{kept} of the text is there. Did load read it '
                'nevertheless, or is it the name of the last good checkpoint?')
    if note['done'] is None:  # so there is no old one
        return ''
    return ' Was the old checkpoint gone before the new one was in its place?'


def picture(answer: Answer, steps: Sequence[int] = (8, 9, 10), seed: int = 1,
            size: int = 20) -> Picture:
    """Which step is loaded after a power cut at each moment."""
    from d2lps.pictures import BLUE, RED
    from d2lps.pictures.rows import (WIDE, draw_bars, legend_below, new_figure,
                                     row_axes)
    notes = run_crashes(answer, steps, seed, size)
    first = steps[0] - 1  # stands for no checkpoint
    operations = [note['diary'][-1] if note['diary'] else 'at the start'
                  for note in notes[::len(SHARES)]]
    operations[-1] = 'the end'
    whole, broken, allowed = [], [], set()
    for k, note in enumerate(notes):
        k //= len(SHARES)
        low = first if note['done'] is None else note['done']
        allowed.add((low - 0.1, 0.1 + (
            low if note['now'] is None else note['now']), k))
        step = (note.get('found') or [None])[0]
        place = step if isinstance(step, int) else first, k
        try:
            judge_found(note, [note['done']] + [note['now']] * (
                note['now'] is not None), seed, size, '')
            whole.append(place)
        except Wrong:
            broken.append(place)
    title = f'{len(broken)} of {len(notes)} times not as it must be'
    figure = new_figure(WIDE, 1.3 + 0.23 * len(operations))
    ax = row_axes(
        operations, steps[-1] + 0.5, begin=first - 0.5, ax=figure.subplots(),
        title=title, xlabel='step that load returns if the power fails after '
                            '…')
    ax.set_xticks([first, *steps], ['none', *map(str, steps)])
    describe(ax, f'What is loaded after a power cut at each of '
                 f'{len(operations)} moments: {title}.')
    draw_bars(ax, sorted(allowed), '#d9d9d9', 'may be loaded', height=0.6)
    for places, color, marker, label in (
            (whole, BLUE, 'o', 'whole checkpoint'),
            (broken, RED, 'x', 'not as it must be')):
        ax.plot([x for x, _ in places], [y for _, y in places], marker,
                color=color, markeredgewidth=2, label=label)
    legend_below(ax)
    return figure


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
