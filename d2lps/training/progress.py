"""Around a training loop: show its progress, and end it cleanly."""
import contextlib
import math
import signal
import threading
from collections.abc import Callable, Iterator, Sequence

from d2lps.annotations import Array
from d2lps.checks import checked
from d2lps.engine import array_list


def in_notebook() -> bool:
    """Can pictures be shown under the cell that is running?"""
    import IPython
    shell = IPython.get_ipython()
    return shell is not None and hasattr(shell, 'kernel')


@contextlib.contextmanager
def accuracy_curve(num_epochs: int, show: bool
                   ) -> Iterator[Callable[[int, float], object]]:
    """Yield a function `add(epoch, accuracy)` that shows the progress."""
    if not show:
        yield lambda epoch, accuracy: None
    elif in_notebook():
        from d2l import mxnet as d2l
        animator = d2l.Animator('epoch', 'test accuracy', ylim=[0, 1],
                                xlim=[1, max(2, num_epochs)])
        yield animator.add
    else:
        from tqdm import tqdm
        with tqdm(total=num_epochs, unit='epoch') as bar:
            yield lambda epoch, accuracy: (
                bar.set_postfix(test_accuracy=f'{accuracy:.3f}'), bar.update())


@contextlib.contextmanager
def interrupt_between_steps() -> Iterator[list[bool]]:
    """Yield a list that is no longer empty once the user pressed Ctrl-C.

    In the middle of a step some parameters are updated and some are not; so
    the first Ctrl-C only leaves a mark, and a second one interrupts at once.
    """
    pressed: list[bool] = []

    def mark(*_):
        if pressed:
            raise KeyboardInterrupt
        pressed.append(True)

    if threading.current_thread() is not threading.main_thread():
        yield pressed  # signals reach the main thread only
        return
    before = signal.signal(signal.SIGINT, mark)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


class LossWatch:
    """Stop when the loss is no number, without making the devices wait.

    Reading a loss waits for it; so each is read one step later, when the
    devices have the next step to work on.
    """

    def __init__(self, lr: float) -> None:
        self.lr, self.step = lr, 0
        self.sums: list[Array] = []

    @checked(losses=array_list)
    def __call__(self, losses: Sequence[Array]) -> None:
        self.check()
        self.step += 1
        self.sums = [l.sum() for l in losses]

    def check(self) -> None:
        """Raise FloatingPointError if the last step's loss is no number."""
        value = sum(float(s) for s in self.sums)
        if math.isfinite(value):
            return
        advice = (f'the learning rate lr={self.lr} is too large. Try '
                  f'lr={self.lr / 10:g}.')
        if self.step == 1:  # no update yet
            advice = ('before any update, so lr is not the cause. The '
                      'parameters were too large at the start.')
        raise FloatingPointError(
            f'the loss became {value} in step {self.step}: {advice}')
