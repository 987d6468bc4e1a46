"""A model of a disk: the power can go after any of its operations.

What was written and not flushed may then be there, or half of it, or nothing.
"""

from d2lps.exercises.checking import Wrong


class PowerCut(BaseException):
    """The power is gone: no `except Exception` of a program sees this."""


class Disk:
    """A folder of text files.

    ends_after: how many operations (write, flush, rename, remove) are done
    before the power goes; None: all of them. `diary` has them in words, and
    `most` how many files there were at most at the same time.
    """

    def __init__(self, files=(), ends_after=None):
        self._files = {name: (text, True)  # is it flushed?
                       for name, text in dict(files).items()}
        self._known = dict(self._files)  # after the last operation
        self.ends_after, self.diary, self.most = ends_after, [], len(files)

    def write(self, name, text):
        """Make a file of this text, in place of what it had before."""
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError('write(name, text) takes two texts; it got a '
                            f'{type(name).__name__} and a '
                            f'{type(text).__name__}')
        self._begin(f'write({name!r}, …)')
        self._files[name] = text, False
        self._end()

    def flush(self, name):
        """Wait until a file's text is on the disk itself."""
        self._there(name)
        self._begin(f'flush({name!r})')
        self._files[name] = self._files[name][0], True
        self._end()

    def rename(self, old, new):
        """Give a file another name; a file that had this name is gone."""
        self._there(old)
        self._begin(f'rename({old!r}, {new!r})')
        self._files[new] = self._files.pop(old)
        self._end()

    def remove(self, name):
        self._there(name)
        self._begin(f'remove({name!r})')
        del self._files[name]
        self._end()

    def read(self, name):
        return self._there(name)[0]

    def names(self):
        """The names of all files, sorted as texts are."""
        return sorted(self._files)

    def left(self, share):
        """The files after a power cut, with this share of what was not
        flushed."""
        self._unchanged()
        return {name: text if flushed else text[:int(share * len(text))]
                for name, (text, flushed) in self._files.items()}

    def loose(self):
        """The names of files that are not flushed."""
        return [name for name, (_, flushed) in self._files.items()
                if not flushed]

    def _unchanged(self):
        if self._files != self._known:
            raise Wrong('the disk was changed, and by none of its '
                        'operations: write, flush, rename, remove.')

    def _there(self, name):
        if name not in self._files:
            raise FileNotFoundError(f'there is no file {name!r}; there are '
                                    f'{self.names()}')
        return self._files[name]

    def _begin(self, operation):
        self._unchanged()
        self._cut()  # also for what a `finally` wants to do without power
        self.diary.append(operation)

    def _end(self):
        self._known = dict(self._files)
        self.most = max(self.most, len(self._files))
        self._cut()

    def _cut(self):
        if len(self.diary) == self.ends_after:
            raise PowerCut
