"""The release of d2lps: the version in pyproject.toml, as installed."""
from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version('d2lps')
except PackageNotFoundError:  # run from a folder that was not installed
    __version__ = 'unknown'
