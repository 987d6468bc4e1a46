"""A key-value store from inside: queues, a sum, an updater, a value."""
from d2lps.checks import checked, either, list_of, number, text
from d2lps_pictures.drawing import Drawing, INK

VALUE = either(number, text, words="a number, or a text such as 'g'")
QUEUES = list_of(list_of(VALUE, least=0), 'a list of queues, one per worker')


@checked(queues=QUEUES, value=VALUE, key=text)
def draw_store(queues=(('1', '1'), ()), value='0', key='w'):
    """Workers, what waits in the queues of a store, and its value.

    queues: for each worker what it has pushed and nobody has used, the
    oldest first; three of them are drawn. value: what a pull finds.
    """
    high = 70 * len(queues)
    queues = [[str(one) for one in queue] for queue in queues]
    picture = Drawing(860, high + 100, (
        f'{len(queues)} workers beside a store. A push goes into the queue of '
        f'its worker: {", ".join(" ".join(one) or "none" for one in queues)}. '
        'When no queue is empty, the oldest of each are added, the updater '
        'makes a new value of the old one and the sum, and a pull brings it, '
        f'{value}, back to a worker.'))
    picture.box(190, 8, 662, high + 84).text(
        204, 26, f'store, key {key!r}', 13, 'start', bold=True)
    middle = 42 + high / 2
    for rank, queue in enumerate(queues):
        y = 46 + 70 * rank
        picture.box(8, y, 96, 46, f'worker {rank}', rank)
        picture.arrow((106, y + 14), (242, y + 14))
        picture.text(140, y + 4, 'push', 12)
        for place in range(3):
            here = queue[place] if place < len(queue) else ''
            picture.box(330 - 42 * place, y + 4, 40, 34, here,
                        rank if here else 'white', dashed=not here)
        picture.text(309, y + 50, f'queue of worker {rank}', 11)
        picture.arrow((374, y + 20), (446, middle))
    picture.box(450, middle - 24, 48, 48, '+', 'white', 22)
    picture.text(474, middle - 36, 'one of each', 11)
    picture.arrow((500, middle), (556, middle), text='sum')
    picture.box(560, middle - 24, 90, 48, 'updater', 'white')
    picture.arrow((652, middle - 10), (706, middle - 10))
    picture.arrow((706, middle + 10), (652, middle + 10))  # the old value
    picture.box(710, middle - 24, 110, 48, value, '#fff6d5', 16)
    picture.text(765, middle - 36, f'value of {key!r}', 11)
    low = high + 74
    picture.line((765, middle + 26), (765, low), (176, low), stroke=INK,
                 width=2)
    for rank in range(len(queues)):
        y = 84 + 70 * rank
        picture.arrow((176, low), (176, y), (108, y))
    return picture.text(150, low - 4, 'pull', 12)
