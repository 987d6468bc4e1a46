"""A model of a disk whose power can go, and a training that saves on it.

The power goes after any operation of the disk. Of a text that was written but
not flushed, one of the shares in `LEFT` is on the disk then.
"""
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from d2lps.exercises.checking import Answer, Wrong
from d2lps.explaining import nothing_returned, returns

LEFT: dict[str, Callable[[str], str]] = {
    'nothing': lambda text: '',
    'half': lambda text: text[:len(text) // 2],
    # It ends as the whole text does, for example with a bracket.
    'a part': lambda text: text[:text.rfind(text[-1:], 0, -1) + 1],
    'all': lambda text: text}


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
        self._ends_after = ends_after
        self.most = sorted(self._files)
        self.diary: list[str] = []
        self.reads: list[str] = []

    def write(self, name: str, text: str) -> None:
        """Make a file of this text, in place of what it had before."""
        self._cut()
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError('write takes two texts; it got '
                            f'{name!r:.40} and {text!r:.40}')
        self.diary.append(f'write({name!r}, …)')
        self._files[name] = text, False
        self._end()

    def flush(self, name: str) -> None:
        """Wait until a file's text is on the disk itself."""
        self._cut()
        text = self._text(name)
        self.diary.append(f'flush({name!r})')
        self._files[name] = text, True
        self._end()

    def rename(self, old: str, new: str) -> None:
        """Give a file another name; a file that had this name is gone."""
        self._cut()
        self._text(old)
        self.diary.append(f'rename({old!r}, {new!r})')
        self._files[new] = self._files.pop(old)
        self._end()

    def remove(self, name: str) -> None:
        self._cut()
        self._text(name)
        self.diary.append(f'remove({name!r})')
        del self._files[name]
        self._end()

    def read(self, name: str) -> str:
        self._cut()
        text = self._text(name)
        self.reads.append(name)
        return text

    def names(self) -> list[str]:
        """The names of all files, sorted as texts are."""
        self._cut()
        return sorted(self._files)

    @property
    def off(self) -> bool:
        """True if the power is gone."""
        return len(self.diary) == self._ends_after

    def after_power_cut(self, left: str) -> dict[str, str]:
        """The files; left: of each unflushed text, a name in `LEFT`."""
        return {name: text if flushed else LEFT[left](text)
                for name, (text, flushed) in self._files.items()}

    def unflushed(self) -> list[str]:
        """The names of files that are not flushed."""
        return [name for name, (_, flushed) in self._files.items()
                if not flushed]

    def _text(self, name):
        if name not in self._files:
            raise FileNotFoundError(f'there is no file {name!r}')
        return self._files[name][0]

    def _end(self):
        self.most = max(self.most, sorted(self._files), key=len)
        self._cut()

    def _cut(self):
        """Raise `PowerCut` if the power is gone: a `finally` may go on."""
        if self.off:
            raise PowerCut


def state_of(step: int, seed: int, size: int) -> dict[str, Any]:
    """The state that the chapter's training keeps in a checkpoint."""
    draw = random.Random(seed * 100_003 + step)
    return {'params': [draw.random() for _ in range(size)],
            'momenta': [draw.random() for _ in range(size)],
            'position': 64 * step, 'random': draw.randrange(2 ** 31)}


def save_all(answer: Answer, disk: Disk, steps: Sequence[int], seed: int,
             size: int) -> tuple[int | None, int | None]:
    """Save until the end or the power cut: the step that was saved last, and
    the one that was being saved (or None)."""
    done = None
    for step in steps:
        try:
            answer(disk).save(step, state_of(step, seed, size))
        except PowerCut:
            pass
        if disk.off:  # also if the student's code caught the error
            return done, step
        done = step
    return done, None


def load(answer: Answer, files: Mapping[str, str]) -> dict[str, Any]:
    """Notes of a new process that loads from these files."""
    disk = Disk(files)
    note = {'names': disk.names(), 'reads': disk.reads}
    load = answer(disk).load
    try:
        loaded = load()
    except NotImplementedError:  # the student has not begun
        raise
    except Exception as error:
        reason = f'{type(error).__name__}: {error}'
        return {**note, 'error': reason.split(': line ')[0][:80]}
    if loaded is None and not returns(load):
        raise Wrong(nothing_returned(load), anywhere=True)
    if loaded is not None and (not isinstance(loaded, (list, tuple)) or
                               len(loaded) != 2):
        raise Wrong(f'`load` returned {loaded!r:.30} …; (step, state) or None '
                    'is right.', anywhere=True)
    note['reads'] = [*disk.reads]
    try:
        again = answer(disk).load()
    except Exception:
        again = None
    return {**note, 'loaded': loaded, 'again': again == loaded}


def train(answer: Answer, cuts: Sequence[int | None], left: str,
          steps: Sequence[int], seed: int, size: int, shift: int = 0
          ) -> dict[str, Any]:
    """Save steps, and load after each power cut; notes of the last load.

    cuts: after how many operations the power goes; None: never. left: of an
    unflushed text, a name in `LEFT`. shift: after the first cut each step is
    later by so many.
    """
    files: Mapping[str, str] = {}
    done = None
    for number, cut in enumerate(cuts):
        disk = Disk(files, cut)
        last, now = save_all(answer, disk, steps, seed, size)
        done = done if last is None else last
        may = [done] if now is None else [done, now]
        # A class or a global variable outlives a power cut here. So another
        # training, on a disk of its own, now leaves its state there.
        others = [step for step in may if step is not None] or [1]
        save_all(answer, Disk(), others, seed + 1, size)
        files = disk.after_power_cut(left)
        note = {**load(answer, files), 'may': may, 'most': disk.most,
                'unflushed': disk.unflushed(), 'left': left,
                'cuts': number + (now is not None),
                'diary': ['a first power cut' if number else 'the start',
                          *disk.diary]}
        loaded = (note.get('loaded') or [None])[0]
        if now is None or 'error' in note or loaded not in may:
            break
        steps = [step + shift for step in steps
                 if loaded is None or step > loaded]
        done = loaded
    return note
