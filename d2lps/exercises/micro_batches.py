"""Exercise: in which order a pipeline does its passes, and what it holds.

To chapter 2, notebooks/02-three-ways-to-split.ipynb, and to chapter 22.
"""
from collections.abc import Sequence
from operator import index
from reprlib import repr as short
from typing import TypeAlias

from d2lps.exercises.checking import (Answer, Check, Notes, Picture, Wrong,
                                      call_twice, forbidding)
from d2lps.figures import describe

Order: TypeAlias = Sequence[tuple[str, int]]  # a device's: ('F', 0), ...


def needs(device: int, kind: str, m: int,
          num_devices: int) -> tuple[int, str, int] | None:
    """The pass of a neighbour that this one waits for; None if there is none.

    A pass: (device, 'F' or 'B', micro-batch).
    """
    other = device - 1 if kind == 'F' else device + 1
    return (other, kind, m) if 0 <= other < num_devices else None


def timetable(orders: Sequence[Order]
             ) -> tuple[dict[tuple[int, str, int], int], list[int]]:
    """When each pass begins, if each device keeps to its list.

    Returns {pass: slot}, and how many passes of its list each device has
    done when nobody can go on.
    """
    begins: dict[tuple[int, str, int], int] = {}
    done = [0] * len(orders)
    free = [0] * len(orders)  # the next slot of each device

    def earliest(device):
        """The slot of its next pass; None if that cannot be known yet."""
        if done[device] == len(orders[device]):
            return None
        kind, m = orders[device][done[device]]
        needed = [needs(device, kind, m, len(orders))]
        if kind == 'B':
            needed.append((device, 'F', m))
        ends = [begins.get(one, -1) + 1 for one in needed if one]
        return max([free[device], *ends]) if all(ends) else None

    going = True
    while going:
        going = False
        for device, order in enumerate(orders):
            slot = earliest(device)
            while slot is not None:
                kind, m = order[done[device]]
                begins.setdefault((device, kind, m), slot)
                free[device] = slot + 1
                done[device] += 1
                going, slot = True, earliest(device)
    return begins, done


def held(order: Order) -> list[int]:
    """Of how many micro-batches a device holds activations, after each pass
    of its list."""
    counts, number = [], 0
    for kind, _ in order:
        number += 1 if kind == 'F' else -1
        counts.append(number)
    return counts


def run(answer: Answer, K: int, M: int) -> Notes:
    from d2lps.pictures.toys import explore_pipeline
    with forbidding(explore_pipeline._order, explore_pipeline.draw_pipeline):
        return call_twice(answer, _notes, K, M)


def _notes(found):
    """What a student's function returned, as lists."""
    if found is None:
        raise Wrong('your function returned nothing: is there a `return`?')
    if not _is_list(found):
        raise Wrong(f'your function returned a {type(found).__name__}. A '
                    'list with a list of passes for each device is wanted.')
    lists = [*found]
    are_lists = [*map(_is_list, lists)]
    if isinstance(found, tuple) and any(are_lists) and not all(are_lists):
        raise Wrong(f'your function returned a tuple of {len(found)}, and '
                    f'{short(lists[are_lists.index(False)])} in it is not a '
                    'list. Return only the lists.')
    return {'orders': [_order(d, one) for d, one in enumerate(lists)],
            'shared': len({*map(id, lists)}) < len(lists)}


def _order(device, passes):
    """The passes of a device as a student gave them, as lists."""
    if isinstance(passes, (list, tuple)) and _pass(passes):
        raise Wrong(f'your function returned a list with {short(passes)} in '
                    'it. It must have a list for each device, and these '
                    'lists must have the passes.')
    if isinstance(passes, (set, frozenset)):
        raise Wrong(f'for device {device} you returned a set, which has no '
                    'order. A list is wanted.')
    if not _is_list(passes):
        raise Wrong(f'for device {device} you returned {short(passes)}. A '
                    "list is wanted, such as [('F', 0), ('B', 0)].")
    order = []
    for one in passes:
        if not _pass(one):
            raise Wrong(f'the list of device {device} has {short(one)} in '
                        "it. A pair is wanted, such as ('F', 0) or ('B', 0): "
                        f'the letter, and a whole number.{_text_in(one)}')
        kind, m = one
        order.append([str(kind), index(m)])
    return order


def _text_in(one):
    """A remark, if the number of a pass is a text."""
    try:
        _, m = one
    except (TypeError, ValueError):
        return ''
    if not isinstance(m, str) or isinstance(one, str) or not m.isdigit():
        return ''
    why = (' A NumPy array holds only one type, so it turns everything into '
           'a text.') * hasattr(one, 'dtype')
    return f' The number has become a text, {str(m)!r}.{why}'


def _is_list(one):
    """Is it one, or something that gives one thing after the other?"""
    return hasattr(one, '__iter__') and not isinstance(one, (str, dict))


def _pass(one):
    """Is it a pair of a letter and a whole number?"""
    try:
        kind, m = one
        return not isinstance(one, (str, dict)) and kind in ('F', 'B') and (
            index(m) is not None)
    except (TypeError, ValueError):
        return False


def judge_order(found: Notes, K: int, M: int) -> None:
    orders = found['orders']
    if len(orders) != K:
        why = ''
        if len(orders) == M:
            why = ' Is there one for each micro-batch?'
        raise Wrong(f'you returned {len(orders)} lists; one for each of {K} '
                    f'devices is wanted.{why}')
    for device, order in enumerate(orders):
        _look_at(device, order, M, found['shared'])
    begins, done = timetable(orders)
    if len(begins) < 2 * K * M:
        raise Wrong(_stands_still(orders, begins, done))


def _look_at(device, order, M, shared):
    """Each pass once, and the forward pass first."""
    for kind, m in order:
        if not 0 <= m < M:
            raise Wrong(f'device {device} does {_name(kind, m)}. The '
                        f'micro-batches are 0 to {M - 1}.')
        many = order.count([kind, m])
        if many > 1:
            same = (' Several devices have the same list object: what you '
                    'append for one device is appended for all.')
            raise Wrong(f'device {device} does {_name(kind, m)} {many} times.'
                        f'{same if shared else ""}')
    for kind, words in ('F', 'forward'), ('B', 'backward'):
        missing = [m for m in range(M) if [kind, m] not in order]
        if len(missing) == M:
            raise Wrong(f'device {device} does no {words} pass.')
        if missing:
            raise Wrong(f'device {device} never does '
                        f'{_name(kind, missing[0])}: of {M} {words} passes '
                        f'it does {M - len(missing)}.')
    for m in range(M):
        if order.index(['B', m]) < order.index(['F', m]):
            raise Wrong(f'device {device} would do {_name("B", m)} before '
                        f'{_name("F", m)}. It cannot compute this gradient '
                        'yet.')


def _name(kind, m):
    return f"('{kind}', {m})"


def _stands_still(orders, begins, done):
    """Two neighbours wait for each other: there is no other circle."""
    def waits_for(device):
        return needs(device, *orders[device][done[device]], len(orders))

    stuck = next(d for d, order in enumerate(orders) if done[d] < len(order))
    while waits_for(waits_for(stuck)[0])[0] != stuck:
        stuck = waits_for(stuck)[0]
    one, two = sorted((stuck, waits_for(stuck)[0]))
    first, second = (_name(*orders[d][done[d]]) for d in (one, two))
    total = sum(map(len, orders))
    return (f'after {len(begins)} of {total} passes no device can continue. '
            f'Device {one} would do {first} now, and needs {first} of device '
            f'{two}. Device {two} has this pass later in its list: it would '
            f'do {second} now, and needs {second} of device {one}, which has '
            f'this pass later. So {one} → {two} → {one}: each waits for the '
            'other, for ever.')


def _all_done(found, K, M):
    """When each pass begins; raises `Wrong` if not all can be done."""
    orders = found['orders']
    wanted = [[kind, m] for kind in 'BF' for m in range(M)]
    whole = len(orders) == K and all(sorted(one) == wanted for one in orders)
    begins = timetable(orders)[0] if whole else {}
    if len(begins) < 2 * K * M:
        raise Wrong('not every pass is done exactly once, so there is no '
                    'time to judge. See the message of the first check.')
    return begins


def judge_slots(found: Notes, K: int, M: int) -> None:
    begins = _all_done(found, K, M)
    slots, best = max(begins.values()) + 1, 2 * (M + K - 1)
    if slots > best:
        raise Wrong(f'your order takes {slots} slots, and 2(M + K - 1) = '
                    f'{best} are enough. {_waits(found["orders"], begins)}')


def _waits(orders, begins):
    """The first slot in which somebody waits without need."""
    last = len(orders) - 1
    busy = {slot: (kind, m) for (d, kind, m), slot in begins.items()
            if d == last}
    slot = last
    while slot in busy:
        slot += 1
    after = [one for one in sorted(busy) if one > slot]
    if after:
        kind, m = busy[after[0]]
        text = (f'Device {last} could be busy from slot {last} on, without a '
                f'pause. In your order it is idle in slot {slot}: it waits '
                f'for {_name(kind, m)} of device {last - 1}, which does this '
                f'pass in slot {begins[last - 1, kind, m]}')
        place = orders[last - 1].index([kind, m])
        before = orders[last - 1][place - 1] if place else None
        return f'{text}{f", after {_name(*before)}" * bool(before)}.'
    slow = next(d for d in range(last - 1, -1, -1) if max(
        begins[d, 'B', m] for _, m in orders[d]) > slot + last - 1 - d)
    return (f'Device {last} is done after slot {slot - 1}, and the last '
            'gradient could then go from device to device without a pause. '
            f'Where in its list does device {slow} have this backward pass?')


def judge_kept(found: Notes, K: int, M: int) -> None:
    begins, orders = _all_done(found, K, M), found['orders']
    for device, order in enumerate(orders):
        counts = held(order)
        most = max(counts)
        if most > K - device:
            at = counts.index(most)
            more = f'K - d = {K - device} {"is" if device == K - 1 else "are"}'
            raise Wrong(
                f'device {device} holds the activations of {most} '
                f'micro-batches after {_name(*order[at])}, pass {at + 1} of '
                f'its list; {more} enough. From this device to the last one, '
                'through how many devices does a micro-batch go before its '
                'gradient comes back?')
    slots = max(begins.values()) + 1
    if min(K, M) > 2 and slots == 2 * K * M:
        raise Wrong('your devices hold few micro-batches, but only because '
                    f'one device works at a time: {slots} slots. Let devices '
                    'work at the same time.')


def picture(answer: Answer) -> Picture:
    """A row for each device: its passes, and below them what it holds."""
    from d2lps.pictures import BLUE, ORANGE, PURPLE
    from d2lps.pictures.rows import (WIDE, draw_bars, legend_below, name_bar,
                                     new_figure, row_axes)
    orders = run(answer, **SHOWN)['orders']
    other = _other_passes(orders, **SHOWN)
    orders = orders[:MOST_ROWS] or [[]]
    begins, done = timetable(orders)
    slots = 1 + max(begins.values(), default=0)
    busy = len(begins) / slots / max(len(orders), 1)
    title = f'{slots} slots; {busy:.0%} of them are busy'
    if [*map(len, orders)] != done:
        title = (f'after slot {slots - 1} no device can '
                 'continue' if begins else
                 'no device can begin')
    title = other or title
    kept = [max(held(order[:many]), default=0)
            for order, many in zip(orders, done)]
    told = '; '.join(f'device {d} holds {most} at most, K - d = '
                     f'{len(orders) - d}' for d, most in enumerate(kept))
    figure = new_figure(WIDE, 1.2 + 0.5 * len(orders))
    ax = row_axes([name for d, _ in enumerate(orders)
                   for name in (f'device {d}', 'holds')], slots,
                  ax=figure.subplots(), title=title, xlabel='slots of time')
    ax.locator_params(axis='x', integer=True)
    describe(ax, f'{title}. {told}.')
    draw_bars(ax, [(0, slots, 2 * d) for d, _ in enumerate(orders)],
              '#88888840', 'idle', height=0.9)
    for which, color, label in (('F', BLUE, 'forward'),
                                ('B', ORANGE, 'backward')):
        draw_bars(ax, [(slot, slot + 1, 2 * d) for (d, kind, _), slot
                       in begins.items() if kind == which], color, label, '',
                  0.9)
        for (d, kind, m), slot in begins.items():
            if kind == which:
                name_bar(ax, slot, slot + 1, 2 * d, m, color)
    for d, order in enumerate(orders):
        floor, high = 2 * d + 1.4, 0.8 / max([*kept, len(orders)])
        ax.fill_between(
            range(slots + 1), floor, [floor - high * count for count in
                                      (*_by_slot(d, begins, slots), 0)],
            step='post', color=PURPLE, linewidth=0, label='held')
        limit = len(orders) - d
        ax.hlines(floor - high * limit, 0, slots, 'gray', '--', label='K - d')
        side = {'transform': ax.get_yaxis_transform(), 'va': 'center'}
        if done[d] < len(order):
            ax.text(1.01, 2 * d, f'cannot begin {_name(*order[done[d]])}',
                    **side)
        ax.text(1.01, 2 * d + 1, f'at most {kept[d]}; K - d = {limit}',
                weight='bold' if kept[d] > limit else 'normal', **side)
    legend_below(ax)
    return figure


def _other_passes(orders, K, M):
    """In what the lists are other than K times all passes, in words."""
    if len(orders) != K:
        return f'{len(orders)} lists; one for each of {K} devices is wanted'
    for device, order in enumerate(orders):
        different = {*map(tuple, order)}
        wanted = {(kind, m) for kind in 'FB' for m in range(M)}
        for many, what in ((len(wanted - different), 'missing on'),
                           (len(different - wanted), 'too much on'),
                           (len(order) - len(different), 'done again by')):
            if many:
                are = 'pass is' if many == 1 else 'passes are'
                return f'{many} {are} {what} device {device}'
    return ''


def _by_slot(device, begins, slots):
    """Of how many micro-batches it holds activations in each slot."""
    own = [(kind, slot) for (d, kind, _), slot in begins.items()
           if d == device]
    for now in range(slots):
        came = sum(kind == 'F' and slot <= now for kind, slot in own)
        went = sum(kind == 'B' and slot < now for kind, slot in own)
        yield came - went


MOST_ROWS = 8
SHOWN = {'K': 4, 'M': 8}
SIZES = [SHOWN, {'K': 2, 'M': 2}, {'K': 3, 'M': 7}]
CHECKS = {
    'order': Check(
        [*SIZES, {'K': 4, 'M': 2}, {'K': 2, 'M': 1}], run, judge_order,
        'each device does each pass once, and no device waits for ever.'),
    'slots': Check(
        SIZES, run, judge_slots,
        '22 slots for four devices and eight micro-batches; one micro-batch '
        'after the other takes 64.'),
    'kept': Check(
        SIZES, run, judge_kept,
        'device d never holds the activations of more than K - d '
        'micro-batches.')}
