"""Files that lie beside the chapters, and what to do where they do not.

Chapters open files such as results/21-log.txt. If a reader has copied a
chapter to another folder, one line says so, and no traceback of pandas.
"""
import os
import sys
from pathlib import Path

BESIDE = 'results', 'launch', 'larger_models', 'glossary.md'


def lacking(path: object) -> str:
    """A line for the reader if `path` should lie here; '' for other paths."""
    if not isinstance(path, (str, os.PathLike)):
        return ''
    first = Path(path).parts[:1]
    if not first or first[0] not in BESIDE or Path(first[0]).exists():
        return ''
    return (f'{path} is not in this folder. It lies beside the chapters: open '
            'this notebook in the folder notebooks/ of d2lps, where "make '
            'lab" opens it.')


def register() -> None:
    """In a notebook, show the line of `lacking` for such a missing file."""
    from IPython import get_ipython
    shell = get_ipython()
    if shell is not None:
        shell.set_custom_exc((FileNotFoundError,), _show)


def _show(shell, kind, error, traceback, tb_offset=None):
    """Show an error, in one line if the file lies beside the chapters."""
    line = lacking(error.filename)
    if line:
        error._render_traceback_ = lambda: [f'{kind.__name__}: {line}']
    shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)


class Finder:
    """Finds no module, but says where the scripts of `larger_models` lie."""

    @staticmethod
    def find_spec(name: str, path: object = None,
                  target: object = None) -> None:
        if name == 'larger_models' and lacking(name):
            raise ModuleNotFoundError(lacking(name), name=name)


sys.meta_path.append(Finder)
