"""A server to push to and to pull from, button by button."""
from functools import partial

import ipywidgets
from IPython.display import display

from d2lps.checks import checked, whole
from d2lps.engine import mx
from d2lps.kvstore.fits import how_consistent
from d2lps.kvstore.store import KVStore
from d2lps.pictures.drawing import Drawing

KEY, MOST_SHOWN = 'w', 6
RED = '#B00020'


def _names(ranks):
    """Workers in words: worker 0, 2, 3."""
    return 'worker ' + ', '.join(map(str, ranks))


def _add(key, summed, stored):
    """The updater of the toy: the sum is added to what is stored."""
    stored += summed


class _Play:
    """A `Server`, those who push and pull, and what happened last.

    Worker k pushes 10 ** k, so that a value's digits count its pushes.
    """

    def __init__(self, num_workers, consistency):
        [self.server] = KVStore(num_workers, consistency=consistency).servers
        self.at_once = consistency not in ('sync', 0)
        self.server.updater = _add
        self.server.init(KEY, mx.np.zeros(1))
        self.shard = self.server.shards[KEY]
        self.pulled, self.waiting = [None] * num_workers, {}
        self.words, self.arrows = ['Nobody has pushed yet.'], []

    def do(self, what, rank):
        """'push' or 'pull' of a worker, and the pulls that it lets go on."""
        self.words, self.arrows = [], []
        if rank in self.waiting:
            whom = _names(self.waiting[rank])
            self.words = [f'Worker {rank} waits in its pull: it cannot '
                          f'{what}. Let {whom} push.']
            return
        if what == 'push':
            self._push(rank)
        else:
            self.waiting[rank] = self.server.missing(KEY, rank)
            if self.waiting[rank]:
                self.words = [f'Worker {rank} pulls, and waits for '
                              f'{_names(self.waiting[rank])}.']
                self.arrows = [('wait', rank, '')]
        for other in [*self.waiting]:
            self.waiting[other] = self.server.missing(KEY, other)
            if not self.waiting[other]:
                self._pull(other)

    def _push(self, rank):
        rounds = self.shard.round
        value = mx.np.array([10 ** rank], ctx=mx.cpu(rank))
        self.server.push(KEY, rank, value)
        self.arrows.append(('push', rank, 10 ** rank))
        missing = [other for other, pushes in enumerate(self.shard.pushes)
                   if not pushes]
        self.words.append(f'Worker {rank} pushes {10 ** rank}. ' + (
            f'It waits in the queue for a push of {_names(missing)}.'
            if self.shard.round == rounds else 'The server adds '
            f'{"it" if self.at_once else "one push of each worker"} '
            'to its value.'))

    def _pull(self, rank):
        del self.waiting[rank]
        self.pulled[rank] = self._value(self.server.pull(KEY, rank))
        self.arrows.append(('pull', rank, self.pulled[rank]))
        self.words.append(f'Worker {rank} pulls {self.pulled[rank]}.')

    def _value(self, array):
        return int(array.item())

    def draw(self):
        """The server, its queues, and the workers below it."""
        n = self.server.num_workers
        width, end = 760, 118 + 30 * n
        value = self._value(self.shard.value)
        picture = Drawing(width, end + 190, ' '.join(
            [*self.words, f"The server's value is {value}."]))
        for k, words in enumerate(self.words[:2]):
            picture.text(16, 18 + 20 * k, words, 14, 'start', bold=not k)
        picture.box(16, 52, width - 32, end - 52)
        picture.text(30, 72, 'server', 14, 'start', bold=True)
        picture.box(30, 92, 150, 54, f'{value}', 'white', 22)
        picture.text(30, 160, f'key {KEY!r}, updates: {self.shard.round}', 12,
                     'start')
        picture.text(250, 72, 'pushes that wait', 13, 'start')
        picture.text(570, 72, 'pulls that wait', 13, 'start')
        for rank, pushes in enumerate(self.shard.pushes):
            self._queue(picture, rank, [*map(self._value, pushes)])
            self._worker(picture, rank, end)
        return picture

    def _queue(self, picture, rank, values):
        y = 88 + 30 * rank
        picture.text(250, y + 12, f'worker {rank}', 12, 'start')
        for k, value in enumerate(values[:MOST_SHOWN]):
            picture.box(316 + 36 * k, y, 34, 24, str(value), rank, 12)
        if len(values) > MOST_SHOWN:
            picture.text(316 + 36 * MOST_SHOWN, y + 12,
                         f'+ {len(values) - MOST_SHOWN}', 12, 'start')
        if rank in self.waiting:
            picture.box(570, y, 160, 24, f'worker {rank} waits', rank, 12)

    def _worker(self, picture, rank, top):
        n = self.server.num_workers
        x, y = 760 / n * (rank + 0.5), top + 90
        waits = rank in self.waiting
        picture.box(x - 80, y, 160, 84, fill='#fff0f0' if waits else 'white',
                    stroke=RED if waits else '#555', dashed=waits)
        picture.box(x - 80, y, 160, 24, f'worker {rank}', rank)
        has = self.pulled[rank]
        picture.text(x, y + 42, 'has pulled nothing yet' if has is None else
                     f'its last pull: {has}', 12)
        picture.text(x, y + 65, f'waits for {_names(self.waiting[rank])}'
                      if waits else
                     f'pushes {10 ** rank}', 12, fill=RED if waits else '#222',
                     bold=waits)
        for what, who, words in self.arrows:
            if who == rank and what == 'push':
                picture.arrow((x - 30, y - 4), (x - 30, top + 6), width=3)
                picture.text(x - 38, y - 42, f'push {words}', 13, 'end')
            elif who == rank:
                picture.arrow((x + 30, top + 6), (x + 30, y - 4), width=3,
                              dashed=waits, stroke=RED if waits else '#222')
                picture.text(x + 38, y - 42, 'pull waits' if waits else
                             f'pull {words}', 13, 'start')


@checked(num_workers=partial(whole, most=4), consistency=how_consistent)
def explore_store(num_workers=2, consistency='sync'):
    """Push to a server and pull from it; see what waits for whom.

    It is a `Server` of `d2lps.kvstore`, and a pull waits while its
    `missing` names somebody. Worker 0 pushes 1, worker 1 pushes 10, and so
    on; the server adds the sum of a round to its value. At the beginning,
    worker 0 has pushed, and waits in its pull.
    """
    play = _Play(num_workers, consistency)
    for what in 'push', 'pull':
        play.do(what, 0)
    rows = []
    for rank in range(num_workers):
        buttons = {'push': ipywidgets.Button(
            description=f'worker {rank}: push {10 ** rank}'),
            'pull': ipywidgets.Button(description=f'worker {rank}: pull')}
        for what, button in buttons.items():
            button.on_click(lambda _, do=(what, rank): act(*do))
        rows.append(ipywidgets.VBox([*buttons.values()]))
    ways = {'sync: a round waits for all': 'sync',
            'async: nobody waits': 'async'}
    for k in sorted({1, 2, *[consistency] * isinstance(consistency, int)}):
        ways[f'at most {k} rounds ahead'] = k
    menu = ipywidgets.Dropdown(options=ways, value=consistency,
                               description='server')
    again = ipywidgets.Button(description='start again')

    def act(*do):
        play.do(*do)
        shown.update(play.draw())

    def restart(change):
        play.__init__(num_workers, menu.value)
        shown.update(play.draw())

    again.on_click(restart)
    menu.observe(restart, 'value')
    display(ipywidgets.Box([*rows, ipywidgets.VBox([menu, again])],
                           layout={'flex_flow': 'row wrap'}))
    shown = display(play.draw(), display_id=True)
