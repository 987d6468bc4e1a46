"""Exercise: who is to blame when an all-reduce hangs, from what ranks say.

To chapter 12, notebooks/12-when-a-ring-hangs.ipynb.
"""
from typing import Any

from d2lps.collectives import Schedule, strategies
from d2lps.collectives.hanging import carry_out
from d2lps.exercises.charts import result_or_none
from d2lps.exercises.checking import (Answer, Check, Differs, Picture, Wrong,
                                      returned, whole_numbers)
from d2lps.explaining import brief
from d2lps.figures import describe


def senders(plan: Schedule, rank: int, k: int) -> list[int]:
    """Ranks whose messages `rank` receives in round k, in plan order.

    Rounds are counted from 1; [] for a round that the plan does not have.
    """
    if not 1 <= k <= len(plan.rounds):
        return []
    return [send.src for send in plan.rounds[k - 1] if send.dst == rank]


def _hang(plan, n, says):
    """The plan of a case, and {rank: (waits_for, round)}.

    says: (rank, waits_for, round). Who should be named is in no case: a
    student's function could look there.
    """
    return (getattr(strategies, plan)(n),
            {rank: (src, k) for rank, src, k in says})


def _of_plan(plan, said):
    """The reports of messages that the plan has."""
    return {rank: (src, k) for rank, (src, k) in said.items()
            if src in senders(plan, rank, k)}


def _says(rank, src, k):
    return f'Rank {rank} waits for rank {src} in round {k}'


def _culprits(plan, said):
    """Ranks that must be looked at, the smallest first."""
    own = _of_plan(plan, said)
    return sorted(({*said} - {*own}) | {
        src for src, k in own.values() if src not in own or own[src][1] >= k})


def _why(rank, said, own):
    """Words about the report that decides whether a rank is a culprit."""
    blames = sorted((k, other) for other, (src, k) in own.items()
                    if src == rank)
    void = [other for other in said if other not in own
            and rank in (other, said[other][0])]
    if void and (rank in void or not blames):
        return (f'{_says(void[0], *said[void[0]])}, but the plan has no such '
                'message.')
    if not blames:
        return f'No rank waits for rank {rank}.'
    k, other = blames[0]
    text = _says(other, rank, k)
    if rank not in own:
        return f'{text}, and rank {rank} has no report.'
    waits = own[rank][1]
    return f'{text}, ' + (
        f'but rank {rank} waits earlier, in round {waits}.' if waits < k else
        f'and rank {rank} waits in round {waits}, not earlier.')


def _certain(plan, said):
    """The last round that each rank has begun for certain, and why."""
    own = _of_plan(plan, said)
    last = [(0, '')] * plan.num_devices

    def prove(rank, k, why):
        if k > last[rank][0]:
            last[rank] = k, why

    for rank, (src, k) in own.items():
        prove(rank, k, f'{_says(rank, src, k)}.')
    for rank, (src, k) in own.items():
        came = senders(plan, rank, k)
        for other in came[:came.index(src)]:
            prove(other, k, f'{_says(rank, src, k)}, and in plan order the '
                            f'message of rank {other} comes before that.')
    for k in range(len(plan.rounds), 0, -1):
        for src, dst, *_ in plan.rounds[k - 1]:
            if last[dst][0] > k:
                prove(src, k, f'Rank {dst} has begun round {last[dst][0]}, so '
                              f'it has received the message of rank {src} in '
                              f'round {k}.')
    return last


def run(answer: Answer, **case: Any) -> list[int]:
    return whole_numbers(returned(answer, *_hang(**case)), 1,
                         'a list of whole numbers is right.')


def judge(ranks: list[int], **case: Any) -> None:
    plan, said = _hang(**case)
    right = _culprits(plan, said)
    if ranks != right:
        own = _of_plan(plan, said)
        why = [_why(rank, said, own)
               for these, those in ((right, ranks), (ranks, right))
               for rank in these if rank not in those]
        raise Differs(f'you return {brief(ranks)}; {brief(right)} is right',
                      ranks, right, known={('why',): why[0]} if why else {})


def judge_begun(rounds: list[int], **case: Any) -> None:
    plan, said = _hang(**case)
    own, certain = _of_plan(plan, said), _certain(plan, said)
    right = [k for k, _ in certain]
    if len(rounds) != len(right):
        raise Wrong(f'you return {len(rounds)} numbers; {len(right)}, one for '
                    'each rank, are right.')
    # What a void report says may spoil all others.
    for rank in sorted(range(len(right)), key=lambda rank: (
            rank in own or rank not in said)):
        mine, (k, why) = rounds[rank], certain[rank]
        if mine > k:
            why = (f'{_says(rank, *own[rank])}.' if rank in own else
                   _why(rank, said, own) if rank in said else
                   f'No report shows that it has begun round {mine}.')
        if mine != k:
            raise Differs(f'for rank {rank} you return {mine}; {k} is right',
                          rounds, right, known={('why',): why})


def picture(answer: Answer, begun: Answer) -> Picture:
    """A bar for the progress of each rank; culprits stand out."""
    from d2lps.pictures.rows import WIDE, new_figure
    figure = new_figure(WIDE, 3.6)
    for ax, case in zip(figure.subplots(1, len(SHOWN)), SHOWN):
        plan, said = _hang(**case)
        last = result_or_none(run, begun, **case) or []
        if len(last) != plan.num_devices:
            last = [said.get(rank, (0, 0))[1]
                    for rank in range(plan.num_devices)]
        _draw(ax, plan, said, run(answer, **case), last)
    return figure


def _draw(ax, plan, said, named, last):
    from d2lps.pictures import BLUE, GRAY, ORANGE
    from d2lps.pictures.rows import draw_bars, row_axes
    ranks = range(plan.num_devices)
    state = {rank: 'waits' if rank in said else 'silent' for rank in ranks}
    state |= {rank: 'culprit' for rank in ranks if rank in named}
    names = [f'rank {rank}' if state[rank] == 'waits' else
             f'{state[rank]}: rank {rank}' for rank in ranks]
    title = f'{plan.name}: {len(said)} wait, you name {named}'
    told = '; '.join(f'rank {rank}, {state[rank]}, has begun round '
                     f'{last[rank]}' for rank in ranks)
    most = max([*last, 1])
    row_axes(names, most * 1.05, ax=ax, title=title,
             xlabel='the last round that a rank has begun')
    ax.set_xticks(range(0, most + 1, 1 + most // 10))
    describe(ax, f'{title}. {told}.')
    for word, color, hatch in (('culprit', ORANGE, '//'), ('waits', BLUE, ''),
                               ('silent', GRAY, '')):
        draw_bars(ax, [(0, last[rank], rank) for rank in ranks
                       if state[rank] == word], color, hatch=hatch, height=0.5)
    for rank, (src, _) in said.items():
        if src in ranks:
            ax.annotate('', (last[src], src), (last[rank], rank), arrowprops={
                'arrowstyle': '-|>', 'color': 'gray', 'shrinkA': 0,
                'shrinkB': 0})


def _case(plan, n, stops=(), lost=(), mute=(), odd=()):
    """A case, carried out.

    mute: ranks of which nothing is heard. odd: (rank, waits_for, round),
    what these ranks say instead.
    """
    said = carry_out(getattr(strategies, plan)(n), dict(stops), lost)
    said.update({rank: (src, k) for rank, src, k in odd})
    return {'plan': plan, 'n': n, 'says': [
        [rank, *said[rank]] for rank in sorted(said) if rank not in mute]}


SHOWN = [_case('ring', 8, [(3, 4)]),
         _case('halving_doubling', 8, [(2, 2), (5, 4)])]
CASE = '{plan}({n})'
CHECKS = {
    'one': Check(
        [_case('ring', 8, [(3, 4)]), _case('ring', 5, [(0, 1)]),
         _case('ring', 6, [(2, 9)]), _case('tree', 7, [(5, 1)]),
         _case('halving_doubling', 8, [(6, 3)]),
         _case('sharded', 6, [(4, 2)])],
        run, judge, 'whichever rank stops, only this rank is named.',
        case=CASE),
    'several': Check(
        [_case('ring', 8, [(2, 3), (6, 5)]),
         _case('tree', 7, [(3, 1), (2, 4)]),
         _case('halving_doubling', 8, [(2, 2), (5, 4)]),
         _case('ring', 7, [(3, 2)], mute=[4]),
         _case('sharded', 5, [(1, 1), (3, 2)]),
         _case('gather_broadcast', 5, [(1, 1), (3, 1)]),
         _case('ring', 4)],
        run, judge, 'all culprits are named, and no rank that is only '
                    'silent.', case=CASE),
    'odd': Check(
        [_case('ring', 6, lost=[(2, 3, 4)]),
         _case('ring', 5, lost=[(1, 2, 8)]),
         _case('halving_doubling', 4, lost=[(1, 3, 1), (3, 1, 1)]),
         _case('ring', 6, [(1, 3)], odd=[(4, 5, 3)]),
         _case('recursive_doubling', 8, [(3, 2)], odd=[(6, 7, 9)])],
        run, judge, 'lost messages and ranks with another plan are found.',
        case=CASE),
    'begun': Check(
        [_case('ring', 8, [(3, 4)]), _case('sharded', 6, [(4, 1)]),
         _case('tree', 7, [(2, 4)]), _case('halving_doubling', 8, [(6, 3)]),
         _case('ring', 7, [(3, 9)], mute=[5]),
         _case('sharded', 6, [(4, 2)], mute=[1]),
         _case('ring', 6, [(1, 3)], odd=[(4, 5, 9)]), _case('tree', 3)],
        run, judge_begun,
        'the last round that each rank has begun for certain.', case=CASE)}
