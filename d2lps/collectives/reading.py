"""How a `Schedule` reads the sends that it is made from."""
import numpy as np

from d2lps.collectives import limits
from d2lps.checks import refuse


class Reader:
    """Checks sends and makes them arrays; equal arrays are made once.

    What can be written to is copied, so that nobody changes a schedule
    later on. What cannot is kept: many rounds may be windows of one array.

    last_chunk: the highest number of a chunk so far.
    """

    def __init__(self, nodes, devices, weights):
        self.last_chunk = 0
        self._position = {name: devices + k
                          for k, name in enumerate(nodes[devices:])}
        chunks = limits.MOST_CHUNKS if weights is None else len(weights)
        self._most = {'src': len(nodes), 'dst': len(nodes), 'chunk': chunks}
        self._seen, self._kept, self._apart = {}, {}, set()

    def read(self, name, sends):
        """A list of `Send` as a list of (src, dst, chunk, reduce), arrays."""
        parts = [self._send(f'{name}.sends[{k}]', send)
                 for k, send in enumerate(sends)]
        sizes = [np.broadcast(*part).size for part in parts]
        if len(parts) > 1 and sum(sizes) < 100 * len(parts):
            # Many small ones are slow. Large ones have other rounds, too.
            whole = [np.broadcast_arrays(*part) for part in parts]
            parts = [[self._keep(np.concatenate([one.ravel() for one in column]))
                      for column in zip(*whole)]]
            sizes = [sum(sizes)]
        return [part for part, size in zip(parts, sizes) if size]

    def _send(self, name, send):
        if not isinstance(send, tuple) or len(send) != 4:
            refuse(name, send, 'a Send(src, dst, chunk, reduce)')
        part = [self._field(f'{name}.{field}', field, value) for field, value
                in zip(('src', 'dst', 'chunk', 'reduce'), send)]
        try:
            np.broadcast(*part)
        except ValueError:
            refuse(name, send, 'made of numbers, or of arrays of one length')
        src, dst, *_ = part
        if (id(src), id(dst)) not in self._apart:
            if (src == dst).any():
                raise ValueError(f'{name}: a node sends to itself')
            self._apart.add((id(src), id(dst)))
        return part

    def _field(self, name, field, value):
        """A field as an array; what was seen before is not looked at again."""
        key = field, id(value)
        if key not in self._seen:  # with the value, or another might get its id
            self._seen[key] = value, self._array(name, field, value)
        return self._seen[key][1]

    def _array(self, name, field, value):
        array = self._place(name, value) if isinstance(value, str) else value
        kinds, must = ('b', 'True or False') if field == 'reduce' else (
            'iu', 'a whole number')
        try:
            array = np.asarray(array)
        except ValueError:  # a list of lists that are not of one length
            array = np.array(None)
        if array.size and array.dtype.kind not in kinds:
            refuse(name, value, f'{must}, or an array of them')
        array = self._keep(array.astype(bool if kinds == 'b' else int,
                                        copy=False))
        if field != 'reduce' and array.size:
            # Without its sign, a negative number is a very large one.
            last, most = int(array.view(np.uint).max()), self._most[field]
            if last >= most:
                what = 'chunk' if field == 'chunk' else 'node'
                raise ValueError(f'{name} names a {what} outside 0 to '
                                 f'{most - 1}')
            if field == 'chunk':
                self.last_chunk = max(self.last_chunk, last)
        return array

    def _place(self, name, node):
        if node not in self._position:
            raise ValueError(f'{name}: {node!r} is no helper; name it')
        return self._position[node]

    def _keep(self, array):
        """The array, or one that is equal to it and is kept already."""
        owner = array if array.base is None else array.base
        if not getattr(owner, 'flags', array.flags).writeable:
            return array
        array = array.copy()
        array.flags.writeable = False
        return self._kept.setdefault((array.shape, array.tobytes()), array)
