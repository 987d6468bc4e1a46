"""Cards for what a class does together: python -m teaching.cards [TO].

Five activities of `afternoons.md`, one page to print for each. The students'
cards come first, the teacher's sheet with the results last. The programs of
the chapters make both, so they agree with them.
"""
import argparse
import html
import sys
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd

from d2lps import strategies
from d2lps.asynchrony.overlap import (Message, backward_pass, forward_pass,
                                      make_messages, send)
from d2lps.collectives.schedule import Schedule
from d2lps.kvstore import KVStore
from d2lps.planning import LLAMA3_70B, model_states
from d2lps.units import several
from teaching.results import write_whole

STYLE = '''
body { font: 12pt/1.4 sans-serif; }
section { border: 1px dashed; padding: 1em 2em; margin: 1em;
          break-inside: avoid; }
.teacher { border: none; break-before: page; }
table { border-collapse: collapse; margin: 1em 0; }
td, th { border: 1px solid; padding: .3em .8em; text-align: right; }
'''


def table(rows: list, columns: list[str]) -> str:
    """An HTML table; None is an empty cell, for the students to fill in."""
    cells = [['' if one is None else one for one in row] for row in rows]
    return pd.DataFrame(cells, columns=columns).to_html(
        index=False, float_format='{:g}'.format)


def card(title: str, *paragraphs: str, kind: str = 'card') -> str:
    """A card. A paragraph that begins with < is HTML already."""
    inside = ''.join(text if text.startswith('<')
                     else f'<p>{html.escape(text)}</p>' for text in paragraphs)
    return (f'<section class="{kind}"><h2>{html.escape(title)}</h2>'
            f'{inside}</section>\n')


def teacher(*paragraphs: str) -> str:
    return card('For the teacher', *paragraphs, kind='teacher')


def a_step(w: float = 1, lr: float = 0.1) -> str:
    """A training step of y = w x on two devices."""
    X, y = np.array([1., 2, 1, 3]), np.array([3., 4, 1, 9])
    gradients = (w * X - y) * X
    sums = gradients.reshape(2, 2).sum(axis=1)
    new = w - lr * sums.sum() / len(X)
    cards = ''
    for device in range(2):
        rows = [[a, b, None, None] for a, b in
                zip(X[2 * device:][:2], y[2 * device:][:2])]
        cards += card(
            f'Device {device}', f'w = {w:g}, learning rate {lr:g}. '
            'These are your two of the four examples of the minibatch.',
            table(rows, ['x', 'y', 'w x - y', '(w x - y) x']),
            'Add the last column: this is your gradient. Send it to the other '
            'device, on paper. Add both gradients, divide by 4, multiply by '
            'the learning rate, and subtract the result from w.')
    return cards + teacher(
        table([[*row] for row in zip(X, y, w * X - y, gradients)],
              ['x', 'y', 'w x - y', '(w x - y) x']),
        f'Device 0 has {sums[0]:g}, device 1 has {sums[1]:g}, the sum is '
        f'{sums.sum():g}. Both devices have w = {new:g} after the step, and '
        'so has one device with all four examples.')


def all_to_all_sum(plan: Schedule, title: str) -> str:
    """A plan as a card for each student. The digits of a number show whose
    contributions are in it."""
    n, chunks = plan.num_devices, len(plan.weights)
    arrays = [np.full(chunks, 10 ** device) for device in range(n)]
    cards = ''
    for device in range(n):
        rows = []
        for number, sends in enumerate(plan.rounds, 1):
            out = [f'{s.chunk} to {s.dst}' for s in sends if s.src == device]
            coming = [f'{s.chunk} from {s.src}, '
                      f'{"add" if s.reduce else "replace"}'
                      for s in sends if s.dst == device]
            rows.append([number, '; '.join(out), '; '.join(coming)])
        cards += card(
            f'{title}: device {device}',
            f'Take {several(chunks, "sheet")}, one for each chunk; chunk 0 is '
            f'the first. Write {10 ** device} on each. In a round, first '
            'copy what you send, then give the copy away.',
            table(rows, ['round', 'send chunk', 'receive chunk']))
    plan.run(arrays)
    assert all((array == arrays[0]).all() for array in arrays)
    return cards + teacher(
        f'{title}: {several(len(plan.rounds), "round")}. At the end each '
        f'device has {arrays[0][0]} on each of its sheets: one digit 1 for '
        'each device. A 2 is a contribution that was added twice, a 0 one '
        'that is missing.')


def a_ring(n: int = 4) -> str:
    return (all_to_all_sum(strategies.ring(n), 'Ring')
            + all_to_all_sum(strategies.gather_broadcast(n), 'One adder'))


# Who calls what; a pull has no number.
CALLS: list[tuple[int, str, float | None]] = [
    (0, 'push', 2), (0, 'push', 3), (0, 'pull', None), (1, 'push', 20),
    (1, 'pull', None), (1, 'push', 30), (1, 'pull', None)]


def a_server() -> str:
    """A server and two workers; a pull that must wait is tried again."""
    store = KVStore(2)
    zero = np.zeros(1)
    for rank in range(2):
        store.worker(rank).init('w', zero)
    happened: list[list[str]] = []
    waiting: list[int] = []

    def pull(rank):
        missing = store.worker(rank).missing('w')
        if missing:
            return f'waits for worker {missing[0]}'
        out = np.zeros(1)
        store.worker(rank).pull('w', out=out)
        return f'gets {out[0]:g}'

    for rank, call, value in CALLS:
        if value is not None:
            store.worker(rank).push('w', zero + value)
            happened.append([f'worker {rank}', f'push {value}', ''])
            for other in [*waiting]:
                result = pull(other)
                if result.startswith('gets'):
                    waiting.remove(other)
                    happened[-1][2] = f'worker {other} {result}'
        else:
            result = pull(rank)
            happened.append([f'worker {rank}', 'pull', result])
            if result.startswith('waits'):
                waiting.append(rank)
    assert not waiting
    cards = ''.join(card(
        f'Worker {rank}', 'Do these in order. Go to the server for each. '
        'A pull ends when the server has given you a number; until then you '
        'do nothing else.',
        table([[call if value is None else f'{call} {value}', None]
               for who, call, value in CALLS if who == rank],
              ['call', 'what you got'])) for rank in range(2))
    cards += card(
        'Server', 'You have a queue for each worker, and a value, which is 0. '
        'A push goes to the end of the queue of its worker. When no queue is '
        'empty, take the first number of each: their sum is the new value. A '
        'worker that has pushed waits in its pull until each of its pushes '
        'is in a sum.', table([[None] * 3] * 8,
                              ['queue of worker 0', 'queue of worker 1',
                               'value']))
    return cards + teacher(
        'If worker 0 is fast, and then worker 1 comes:',
        table(happened, ['who', 'call', 'result']),
        'A server that counts two pushes, from whomever, would add 2 and 3.')


def an_order(backward: tuple[float, ...] = (12, 6, 3, 3),
             megabytes: tuple[float, ...] = (2, 4, 12, 18),
             forward: tuple[float, ...] = (6, 3, 2, 2)) -> str:
    """Messages of a step, in which order? The link carries 1 MB in 1 ms."""
    computed = backward_pass(backward)
    messages = make_messages(computed, megabytes)

    def ends(urgency: Callable[[Message], float]) -> tuple[float, float]:
        sent = send('push', messages, 1, urgency=urgency)
        return sent[-1].end, forward_pass(forward, sent)[-1].end

    orders: dict[str, Callable[[Message], float]] = {
        'as they are ready': lambda message: message.ready,
        'the first layer first': lambda message: message.layers[0],
        'the largest first': lambda message: -message.nbytes}
    rows = [[name, *ends(order)] for name, order in orders.items()]

    def ends_in(order: tuple[int, ...]) -> float:
        return ends(lambda message: order[message.layers[0]])[1]

    best = min(map(ends_in, permutations(range(len(backward)))))
    cards = ''.join(card(
        f'Layer {layer + 1}', f'Backward pass: {backward[layer]} ms. '
        f'Gradient: {megabytes[layer]} MB, so {megabytes[layer]} ms on the '
        f'link. Forward pass of the next step: {forward[layer]} ms.',
        'Your gradient is ready when your backward pass has ended. The last '
        'layer begins.') for layer in reversed(range(len(backward))))
    cards += card(
        'Link', 'You carry one message at a time, and never interrupt it. '
        'When you are free, the class chooses one of the layers that are '
        'ready.', table([[None] * 3] * len(backward),
                        ['layer', 'start / ms', 'end / ms']))
    return cards + teacher(
        f'The backward pass ends after {computed[-1].end:g} ms. Milliseconds '
        'until the last gradient is sent, and until the next forward pass '
        'has ended. A layer begins its forward pass when its own gradient '
        'has been sent, and the layer before it is done:',
        table(rows, ['order', 'sent', 'next forward pass']),
        f'No order of messages that leave as soon as the link is free ends '
        f'before {best:g} ms.')


def a_division(gpus: int = 64, gb: float = 80) -> str:
    """Who holds what of Llama 3 70B, and what it sends in a step."""
    parameters = LLAMA3_70B.parameters
    share = (gpus - 1) / gpus
    ways = {'DDP': (0, 2), 'ZeRO-1': (1, 2), 'ZeRO-2': (2, 2),
            'ZeRO-3': (3, 3)}
    rows: list[list] = []
    fits = []
    for name, (zero, halves) in ways.items():
        held = [number / 1e9 for number in
                model_states(parameters, gpus, zero)]
        rows.append([name, *(round(number, 1) for number in held),
                     round(sum(held), 1),
                     round(halves * share * 2 * parameters / 1e9)])
        if sum(held) < gb:
            fits.append(name)
    columns = ['', 'weights', 'gradients', 'optimizer', 'together', 'sends']
    cards = ''.join(card(
        f'Group {number}: {row[0]}',
        f'A model has {parameters / 1e9:.1f} billion parameters, and {gpus} '
        f'GPUs have {gb:g} GB each. A parameter takes 2 bytes for the weight, '
        '2 for the gradient, and 12 for the optimizer. How many GB of each '
        'does a GPU hold, and how many GB does it send in a step? Weights and '
        'gradients are sent with 2 bytes for each number.',
        table([[row[0]] + [None] * 5], columns),
        f'Does it fit into {gb:g} GB? What is left for the activations?')
        for number, row in enumerate(rows, 1))
    return cards + teacher(
        'GB on each GPU, and GB that it sends in a step, one micro-batch:',
        table(rows, columns),
        f'These fit into {gb:g} GB: {", ".join(fits)}. The next question is '
        'where the activations go: chapter 20.')


ACTIVITIES: dict[str, Callable[[], str]] = {
    '1-a-step': a_step, '2-a-ring': a_ring, '3-a-server': a_server,
    '4-an-order': an_order, '5-a-division': a_division}


def main(folder: str) -> None:
    to = Path(folder).resolve()
    try:
        to.mkdir(parents=True, exist_ok=True)
        for name, make in ACTIVITIES.items():
            write_whole(to / f'{name}.html', (
                f'<!DOCTYPE html>\n<html lang="en"><head><meta charset='
                f'"utf-8"><title>{name}</title><style>{STYLE}</style></head>'
                f'<body>\n{make()}</body></html>\n'))
    except OSError as error:
        sys.exit(f'd2lps: {error}')
    print(f'{len(ACTIVITIES)} pages of cards: {to}')


if __name__ == '__main__':
    parser = argparse.ArgumentParser(prog='teaching.cards')
    parser.add_argument('to', nargs='?', default='cards')
    main(parser.parse_args().to)
