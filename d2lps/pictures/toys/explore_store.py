"""A server to push to and to pull from, button by button."""
from typing import Literal, TypeAlias

from d2lps.engine import mx
from d2lps.kvstore.store import KVStore
from d2lps.pictures.controls import menu
from d2lps.pictures.drawing import INK, Drawing

Consistency: TypeAlias = int | Literal['sync', 'async']
KEY, MOST_SHOWN = 'w', 6
RED = '#B00020'
MODES: dict[str, Consistency] = {
    'sync: an update waits for all': 'sync',
    'async: nobody waits': 'async', 'at most 1 step ahead': 1}


def _names(ranks):
    """Workers in words: worker 0, 2, 3."""
    return 'worker ' + ', '.join(map(str, ranks))


def _add(key, summed, stored):
    """The updater of the toy: the sum is added to what is stored."""
    stored += summed


class _Play:
    """A `Server`, its workers, and the last thing that happened.

    told: sentences about it. arrows: (rank, 'push' or 'pull', text) of each.

    Worker k pushes 10 ** k, so that a value's digits count its pushes.
    """

    def __init__(self, num_workers: int, consistency: Consistency) -> None:
        self.begin(num_workers, consistency)

    def begin(self, num_workers: int, consistency: Consistency) -> None:
        """A server with the value 0; worker 0 pushes, and then pulls."""
        [self.server] = KVStore(num_workers, consistency=consistency).servers
        self.at_once = consistency not in ('sync', 0)
        self.server.updater = _add
        self.server.init(KEY, mx.np.zeros(1))
        self.shard = self.server.shards[KEY]
        self.pulled: list[str | None] = [None] * num_workers
        self.waiting: dict[int, list[int]] = {}
        for call in 'push', 'pull':
            self.do(call, 0)

    def do(self, call: str, rank: int) -> None:
        """'push' or 'pull' of a worker, and the pulls that it lets go on."""
        self.told: list[str] = []
        self.arrows: list[tuple[int, str, object]] = []
        if rank in self.waiting:
            self.told = [f'Worker {rank} waits in its pull: it cannot {call}. '
                         f'Let {_names(self.waiting[rank])} push.']
            return
        if call == 'push':
            self._push(rank)
        else:
            self.waiting[rank] = self.server.missing(KEY, rank)
            if self.waiting[rank]:
                self.told = [f'Worker {rank} pulls, and waits for '
                             f'{_names(self.waiting[rank])}.']
                self.arrows = [(rank, 'pull', 'waits')]
        for other in [*self.waiting]:
            self.waiting[other] = self.server.missing(KEY, other)
            if not self.waiting[other]:
                self._pull(other)

    def _push(self, rank):
        updates = self.shard.updates
        value = mx.np.array([10 ** rank], ctx=mx.cpu(rank))
        self.server.push(KEY, rank, value)
        self.arrows.append((rank, 'push', 10 ** rank))
        empty = [k for k, queue in enumerate(self.shard.pushes) if not queue]
        then = 'The server adds it to its value.'
        if self.shard.updates == updates:
            then = f'It waits in the queue for a push of {_names(empty)}.'
        elif not self.at_once:
            then = 'The server adds one push of each worker to its value.'
        self.told.append(f'Worker {rank} pushes {10 ** rank}. {then}')

    def _pull(self, rank):
        del self.waiting[rank]
        self.pulled[rank] = f'{self.server.pull(KEY, rank).item():g}'
        self.arrows.append((rank, 'pull', self.pulled[rank]))
        self.told.append(f'Worker {rank} pulls {self.pulled[rank]}.')

    def draw(self) -> Drawing:
        """The server, its queues, and the workers below it."""
        width, end = 720, 118 + 30 * self.server.num_workers
        value = f'{self.shard.value.item():g}'
        picture = Drawing(width, end + 190, ' '.join(
            [*self.told, f"The server's value is {value}."]))
        picture.text(16, 16, self.told[0], 14, 'start', bold=True)
        picture.text(16, 36, ' '.join(self.told[1:]), 14, 'start')
        picture.box(16, 52, width - 32, end - 52)
        picture.box(30, 92, 150, 54, value, 'white', 22)
        for x, y, label in (
                (30, 72, 'server'), (250, 72, 'pushes that wait'),
                (556, 72, 'pulls that wait'),
                (30, 160, f'key {KEY!r}, updates: {self.shard.updates}')):
            picture.text(x, y, label, 13, 'start')
        for rank, pushes in enumerate(self.shard.pushes):
            self._queue(picture, rank, pushes)
            self._worker(picture, rank, end)
        return picture

    def _queue(self, picture, rank, pushes):
        y = 88 + 30 * rank
        picture.text(250, y + 12, f'worker {rank}: {len(pushes)}', 12, 'start')
        for k, push in enumerate(pushes[:MOST_SHOWN]):
            picture.box(336 + 36 * k, y, 34, 24, f'{push.item():g}', rank, 12)
        if rank in self.waiting:
            picture.box(556, y, 136, 24, f'worker {rank} waits', rank, 12)

    def _worker(self, picture, rank, top):
        x = picture.width / self.server.num_workers * (rank + 0.5)
        y, has, whom = top + 90, self.pulled[rank], self.waiting.get(rank)
        ink, fill = (RED, '#fff0f0') if whom else (INK, 'white')
        picture.box(x - 80, y, 160, 84, '', fill, stroke=ink)
        picture.box(x - 80, y, 160, 24, f'worker {rank}', rank)
        picture.text(x, y + 42, 'has pulled nothing yet' if has is None else
                     f'its last pull: {has}', 12)
        picture.text(x, y + 65, f'waits for {_names(whom)}' if whom else
                     f'pushes {10 ** rank}', 12, fill=ink, bold=bool(whom))
        for arrow_rank, call, label in self.arrows:
            if arrow_rank != rank:
                continue
            side, ends, anchor = (-1, (y - 4, top + 6), 'end') if (
                call == 'push') else (1, (top + 6, y - 4), 'start')
            picture.arrow(*[(x + 30 * side, end) for end in ends], width=3,
                          stroke=ink, dashed=bool(whom))
            picture.text(x + 38 * side, y - 42, f'{call} {label}', 13, anchor)


def explore_store() -> None:
    """Push to a server and pull from it; see what waits for whom.

    It is a `Server` of `d2lps.kvstore`, and a pull waits while its
    `missing` names somebody. Worker 0 pushes 1, worker 1 pushes 10;
    the server adds one push of each worker to its value. At the beginning,
    worker 0 has pushed, and waits in its pull.
    """
    import ipywidgets

    from d2lps.pictures.board import show, widget_of
    play = _Play(2, 'sync')
    chosen = widget_of(menu(MODES, 'sync', 'server'))

    def button(label, call, *arguments):
        def act(_):
            call(*arguments)
            shown.update(play.draw())
        made = ipywidgets.Button(description=label)
        made.on_click(act)
        return made

    again = button('start again', lambda: play.begin(2, chosen.value))
    chosen.observe(lambda _: again.click(), 'value')
    shown = show([ipywidgets.VBox([
        button(f'worker {k}: push {10 ** k}', play.do, 'push', k),
        button(f'worker {k}: pull', play.do, 'pull', k)])
        for k in range(2)] + [ipywidgets.VBox([chosen, again])],
        play.draw())
