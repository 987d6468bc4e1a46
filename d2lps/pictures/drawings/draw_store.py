"""A key-value store from inside: queues, a sum, an updater, a value."""
from d2lps.pictures.drawing import INK, Drawing

# The pushes of each worker that wait, the oldest first.
QUEUES: list[list[str]] = [['1', '1'], []]


def draw_store() -> Drawing:
    """Two workers, the pushes that wait in a store's queues, and its value."""
    picture = Drawing(720, 240, (
        '2 workers beside a store. A push goes into the queue of its worker: '
        '1 1, none. When no queue is empty, the oldest of each are added, the '
        'updater makes a new value of the old one and the sum, and a pull '
        'brings it, 0, back to a worker.'))
    picture.box(150, 8, 564, 224).text(162, 26, "store, key 'w'", 13, 'start',
                                       bold=True)
    middle, low = 112, 214
    for rank, queue in enumerate(QUEUES):
        y = 46 + 70 * rank
        picture.box(6, y, 86, 46, f'worker {rank}', rank)
        picture.arrow((94, y + 14), (198, y + 14))
        picture.text(113, y + 4, 'push', 12)
        for place in range(3):
            full = place < len(queue)
            picture.box(280 - 40 * place, y + 4, 38, 34,
                        queue[place] if full else '', rank if full else
                        'white', dashed=not full)
        picture.text(259, y + 51, f'queue of worker {rank}', 12)
        picture.arrow((322, y + 20), (374, middle))
    picture.box(378, middle - 24, 44, 48, '+', 'white', 22)
    picture.text(400, middle - 36, 'one of each', 12)
    picture.arrow((424, middle), (468, middle), text='sum')
    picture.box(472, middle - 24, 78, 48, 'updater', 'white')
    picture.arrow((552, middle - 10), (594, middle - 10))
    picture.arrow((594, middle + 10), (552, middle + 10))  # the old value
    picture.box(598, middle - 24, 108, 48, '0', '#fff6d5', 16)
    picture.text(652, middle - 36, "value of 'w'", 12)
    picture.line((652, middle + 26), (652, low), (138, low), stroke=INK,
                 width=2)
    for y in 84, 154:
        picture.arrow((138, low), (138, y), (96, y))
    return picture.text(113, low - 4, 'pull', 12)
