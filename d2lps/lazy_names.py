"""Names of a package that are imported when they are first used.

So `import d2lps` is quick, and code without MXNet does not load MXNet.
"""
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy(package: str, names: Mapping[str, Sequence[str]],
         modules: Sequence[str] = ()
         ) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package that offers these names.

    names: by the module that has them, {'.engine': ('devices', ...), ...}; a
    dot in front means one of the package itself. modules: such whole ones.
    """
    home = {name: module for module, offered in names.items()
            for name in offered}
    whole = {module.split('.')[-1]: module
             for module in modules}

    def __getattr__(name):
        if name in whole:
            return import_module(whole[name], package)
        if name not in home:
            raise AttributeError(f'{package} has no {name!r}', name=name,
                                 obj=sys.modules[package])
        return getattr(import_module(home[name], package), name)

    def __dir__():
        return sorted({*vars(sys.modules[package]), *home, *whole})
    return __getattr__, __dir__
