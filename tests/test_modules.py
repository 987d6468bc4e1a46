"""A name in a package is a module or something else, never both."""
import pkgutil
from importlib import import_module
from inspect import getclosurevars
from types import ModuleType

import d2lps
import pytest

PACKAGES = ['d2lps', *(
    module.name for module in pkgutil.walk_packages(d2lps.__path__, 'd2lps.')
    if module.ispkg)]


@pytest.mark.parametrize('name', PACKAGES)
def test_no_name_hides_a_module(name):
    """Otherwise `import d2lps.planning.step as step` gives a function."""
    package = import_module(name)
    modules = {module.name for module in pkgutil.iter_modules(
        package.__path__)}
    names = {one for one, value in vars(package).items()
             if not isinstance(value, ModuleType)}
    if '__getattr__' in names:  # of `lazy`: names that are looked up late
        names |= {*getclosurevars(package.__getattr__).nonlocals['home']}
    assert not modules & names
