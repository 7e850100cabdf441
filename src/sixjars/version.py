"""The versions of packages; apart from `__init__`, so that every package may import it."""

from functools import cache


@cache
def version_of(package: str = "sixjars") -> str:
    """As installed; one that is run from its sources, or comes inside another package, has none.

    >>> version_of("no-such-package")
    'not installed'
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
