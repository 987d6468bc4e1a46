"""Which release of d2lps this is: what pyproject.toml says, as installed."""
from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version('d2lps')
except PackageNotFoundError:  # run from a folder that was not installed
    __version__ = 'unknown'
