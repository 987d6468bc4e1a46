"""A key-value store from inside: queues, a sum, an updater, a value."""
from collections.abc import Sequence
from typing import Any

from d2lps.checks import checked, either, list_of, number, text
from d2lps.pictures.drawing import INK, Drawing

VALUE = either(number, text, words="a number, or a text such as 'g'")
QUEUES = list_of(list_of(VALUE, least=0), 'a list of queues, one per worker')


@checked(queues=QUEUES, value=VALUE, key=text)
def draw_store(queues: Sequence[Sequence[Any]] = (('1', '1'), ()),
               value: float | str = '0', key: str = 'w') -> Drawing:
    """Workers, what waits in the queues of a store, and its value.

    queues: for each worker what it has pushed and nobody has used, the
    oldest first; three of them are drawn. value: what a pull finds.
    """
    high = 70 * len(queues)
    queues = [[str(one) for one in queue] for queue in queues]
    picture = Drawing(720, high + 100, (
        f'{len(queues)} workers beside a store. A push goes into the queue of '
        f'its worker: {", ".join(" ".join(one) or "none" for one in queues)}. '
        'When no queue is empty, the oldest of each are added, the updater '
        'makes a new value of the old one and the sum, and a pull brings it, '
        f'{value}, back to a worker.'))
    picture.box(150, 8, 564, high + 84).text(
        162, 26, f'store, key {key!r}', 13, 'start', bold=True)
    middle = 42 + high / 2
    for rank, queue in enumerate(queues):
        y = 46 + 70 * rank
        picture.box(6, y, 86, 46, f'worker {rank}', rank)
        picture.arrow((94, y + 14), (198, y + 14))
        picture.text(113, y + 4, 'push', 12)
        for place in range(3):
            here = queue[place] if place < len(queue) else ''
            picture.box(280 - 40 * place, y + 4, 38, 34, here,
                        rank if here else 'white', dashed=not here)
        picture.text(259, y + 51, f'queue of worker {rank}', 12)
        picture.arrow((322, y + 20), (374, middle))
    picture.box(378, middle - 24, 44, 48, '+', 'white', 22)
    picture.text(400, middle - 36, 'one of each', 12)
    picture.arrow((424, middle), (468, middle), text='sum')
    picture.box(472, middle - 24, 78, 48, 'updater', 'white')
    picture.arrow((552, middle - 10), (594, middle - 10))
    picture.arrow((594, middle + 10), (552, middle + 10))  # the old value
    picture.box(598, middle - 24, 108, 48, value, '#fff6d5', 16)
    picture.text(652, middle - 36, f'value of {key!r}', 12)
    low = high + 74
    picture.line((652, middle + 26), (652, low), (138, low), stroke=INK,
                 width=2)
    for rank in range(len(queues)):
        y = 84 + 70 * rank
        picture.arrow((138, low), (138, y), (96, y))
    return picture.text(113, low - 4, 'pull', 12)
