"""Parts of all commands: errors of one line, and short help."""
import argparse
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn


class OneLine(argparse.ArgumentParser):
    """A parser whose errors are one line, which says what may be meant."""

    def __init__(self, **more: Any) -> None:
        super().__init__(
            **{'formatter_class': argparse.RawDescriptionHelpFormatter}
            | more)

    def parse_known_args(  # type: ignore[override]
            self, args: Sequence[str] | None = None,
            namespace: argparse.Namespace | None = None
            ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse unknown options: the parser above knows no similar ones."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            word = unknown[0].partition('=')[0]
            self.error(f'nothing here is called {word!r}'
                       + meant(word, self._option_string_actions))
        return known, []

    def error(self, message: str) -> NoReturn:
        line = one_line(message)
        end = '' if line.endswith('?') else '.'
        self.exit(2, f'{self.prog}: {line}{end} See "{self.prog} --help".\n')


def one_line(message: object, arguments: Iterable[str] = ()) -> str:
    """An error in a line, with `--num-devices` for 'num_devices'.

    arguments: those that are options of the command. (A file can have the
    name of an option, such as log.txt.)
    """
    if isinstance(message, OSError) and message.filename and message.strerror:
        message = f'{message.filename}: {message.strerror}'
        arguments = ()
    line = ' '.join(str(message).split())
    for name in arguments:
        option = f'--{name.replace("_", "-")}'
        line = re.sub(rf'^{name}(?=[ [])|(?<![-\w]){name}(?==)', option,
                      line)
    return line


def meant(word: str, names: Iterable[str]) -> str:
    """'; did you mean ...?' if a name is like this word."""
    near = get_close_matches(word, names, 1)
    return f'; did you mean {near[0]}?' if near else ''
