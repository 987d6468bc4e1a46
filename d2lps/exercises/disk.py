"""A model of a disk: the power can go after any of its operations.

Of a text that was written but not flushed, all, half or nothing is left then.
"""
from collections.abc import Mapping

from d2lps.exercises.checking import Wrong


class PowerCut(BaseException):
    """The power is gone. No `except Exception` catches this."""


class Disk:
    """A folder of text files.

    files: texts by name, all of them flushed. ends_after: the power goes
    after so many operations (write, flush, rename, remove); None: never.
    `diary` lists the operations in words, and `reads` the names that were
    read. `most` has the names of the time when there were most files.
    """

    def __init__(self, files: Mapping[str, str] | None = None,
                 ends_after: int | None = None) -> None:
        self._files = {name: (text, True)  # whether it is flushed
                       for name, text in (files or {}).items()}
        self._known = dict(self._files)  # as the last operation left them
        self._ends_after = ends_after
        self.most = self.names()
        self.diary: list[str] = []
        self.reads: list[str] = []

    def write(self, name: str, text: str) -> None:
        """Make a file of this text, in place of what it had before."""
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError('write(name, text) takes two texts; it got a '
                            f'{type(name).__name__} and a '
                            f'{type(text).__name__}')
        self._begin(f'write({name!r}, …)')
        self._files[name] = text, False
        self._end()

    def flush(self, name: str) -> None:
        """Wait until a file's text is on the disk itself."""
        text = self._text(name)
        self._begin(f'flush({name!r})')
        self._files[name] = text, True
        self._end()

    def rename(self, old: str, new: str) -> None:
        """Give a file another name; a file that had this name is gone."""
        self._text(old)
        self._begin(f'rename({old!r}, {new!r})')
        self._files[new] = self._files.pop(old)
        self._end()

    def remove(self, name: str) -> None:
        self._text(name)
        self._begin(f'remove({name!r})')
        del self._files[name]
        self._end()

    def read(self, name: str) -> str:
        self.reads.append(name)
        return self._text(name)

    def names(self) -> list[str]:
        """The names of all files, sorted as texts are."""
        return sorted(self._files)

    @property
    def off(self) -> bool:
        """Is the power gone?"""
        return len(self.diary) == self._ends_after

    def after_power_cut(self, share: float) -> dict[str, str]:
        """The files after a power cut.

        share: how much of each unflushed text is left, from 0 to 1.
        """
        self._unchanged()
        return {name: text if flushed else text[:int(share * len(text))]
                for name, (text, flushed) in self._files.items()}

    def unflushed(self) -> list[str]:
        """The names of files that are not flushed."""
        return [name for name, (_, flushed) in self._files.items()
                if not flushed]

    def _unchanged(self):
        if self._files != self._known:
            raise Wrong('the disk was changed, and by none of its '
                        'operations: write, flush, rename, remove.')

    def _text(self, name):
        if name not in self._files:
            raise FileNotFoundError(f'there is no file {name!r}; there are '
                                    f'{self.names()}')
        return self._files[name][0]

    def _begin(self, operation):
        self._unchanged()
        self._cut()  # a `finally` may try to write when the power is gone
        self.diary.append(operation)

    def _end(self):
        self._known = dict(self._files)
        self.most = max(self.most, self.names(), key=len)
        self._cut()

    def _cut(self):
        if self.off:
            raise PowerCut
