"""A model of a disk: the power can go after any of its operations.

Of a text that was written but not flushed, all, half or nothing is left then.
"""

from collections.abc import Mapping

from d2lps.exercises.checking import Wrong


class PowerCut(BaseException):
    """The power is gone. No `except Exception` catches this."""


class Disk:
    """A folder of text files.

    ends_after: the power goes after so many operations (write, flush, rename,
    remove); None: never. `diary` lists the operations in words. `most_files`
    is the largest number of files that existed at the same time.
    """

    def __init__(self, files: Mapping[str, str] | tuple[()] = (),
                 ends_after: int | None = None) -> None:
        self._files = {name: (text, True)  # whether it is flushed
                       for name, text in dict(files).items()}
        self._known = dict(self._files)  # as the last operation left them
        self.ends_after, self.most_files = ends_after, len(files)
        self.diary: list[str] = []

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
        self._entry(name)
        self._begin(f'flush({name!r})')
        self._files[name] = self._files[name][0], True
        self._end()

    def rename(self, old: str, new: str) -> None:
        """Give a file another name; a file that had this name is gone."""
        self._entry(old)
        self._begin(f'rename({old!r}, {new!r})')
        self._files[new] = self._files.pop(old)
        self._end()

    def remove(self, name: str) -> None:
        self._entry(name)
        self._begin(f'remove({name!r})')
        del self._files[name]
        self._end()

    def read(self, name: str) -> str:
        return self._entry(name)[0]

    def names(self) -> list[str]:
        """The names of all files, sorted as texts are."""
        return sorted(self._files)

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

    def _entry(self, name):
        if name not in self._files:
            raise FileNotFoundError(f'there is no file {name!r}; there are '
                                    f'{self.names()}')
        return self._files[name]

    def _begin(self, operation):
        self._unchanged()
        self._cut()  # a `finally` may try to write when the power is gone
        self.diary.append(operation)

    def _end(self):
        self._known = dict(self._files)
        self.most_files = max(self.most_files, len(self._files))
        self._cut()

    def _cut(self):
        if len(self.diary) == self.ends_after:
            raise PowerCut
