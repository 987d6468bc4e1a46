"""MXNet imported in a third of the time.

When it is imported it writes a Python function for each of its operators, one
for arrays and one for symbols, 2,500 together, and compiles them all.  Most
are never called.  Here each is compiled at its first call, and modules that
few want are loaded when something in them is looked for.
"""
import sys
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

# MXNet would load these, a second, for classes that nobody needs; and those,
# half a second, for what few want.
UNWANTED = {'sklearn', 'scipy.stats'}
SELDOM = {'requests', 'scipy.sparse', 'numpy.testing', 'mxnet.contrib.onnx',
          'mxnet.gluon.model_zoo'}
# MXNet compares two versions: Python's own module, not that of setuptools,
# which would take the place of all of `distutils` and load a lot for it.
VERSIONS = {'distutils', 'distutils.version'}
WRITERS = 'mxnet.ndarray.register', 'mxnet.symbol.register'


class _Later(ModuleType):
    """A module that is loaded when something in it is looked for."""

    def __getattr__(self, name):
        if sys.modules.get(self.__name__) is self:  # MXNet is not ready yet
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


class _Postponed:
    """Loads such a module."""

    @staticmethod
    def create_module(spec):
        return None  # an empty one

    @staticmethod
    def exec_module(module):
        module.__class__ = _Later


class _Text:
    """The text of a function, and the names that are known in it."""

    def __init__(self, text, names):
        self._text, self._names = text, names

    @cached_property
    def function(self):
        exec(self._text, self._names, made := {})
        [function] = made.values()
        return function

    @property
    def __signature__(self):  # help() finds it
        import inspect
        return inspect.signature(self.function)


def _at_its_first_call(text):
    def operator(*args, **kwargs):
        return text.function(*args, **kwargs)
    operator.__wrapped__ = text
    return operator


class _Finder:
    """Finds the modules that write functions, with another `exec`."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in SELDOM:
            return ModuleSpec(name, _Postponed)
        if name in VERSIONS:
            return PathFinder.find_spec(name, path)
        if name not in WRITERS:
            return None
        spec = PathFinder.find_spec(name, path)
        run = spec.loader.exec_module

        def run_module(module):
            def later(text, _, made):
                name = text.split('(', 1)[0].split()[-1]  # def name(...
                made[name] = _at_its_first_call(_Text(text, vars(module)))
                made[name].__qualname__ = name
            module.exec = later
            run(module)
        spec.loader.exec_module = run_module
        return spec


@contextmanager
def _quickly():
    """MXNet is to be imported in this block."""
    others = (UNWANTED | SELDOM | VERSIONS) - {*sys.modules}
    sys.modules.update(dict.fromkeys(others & UNWANTED))
    sys.meta_path.insert(0, _Finder)
    try:
        yield
    finally:
        sys.meta_path.remove(_Finder)
        for name in others:
            sys.modules.pop(name, None)


class _Quick:
    """Finds MXNet for the first import of it, whoever writes that."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        spec = PathFinder.find_spec(name) if name == 'mxnet' else None
        if spec and spec.loader:
            run = spec.loader.exec_module

            def run_module(module):
                with _quickly():
                    run(module)
                sys.meta_path.remove(_Quick)
            spec.loader.exec_module = run_module
        return spec


if 'mxnet' not in sys.modules:
    sys.meta_path.insert(sys.meta_path.index(PathFinder), _Quick)
