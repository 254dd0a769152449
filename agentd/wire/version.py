"""The version of the installed distribution."""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["VERSION"]


def _read() -> str:
    try:
        return version("agentd")
    except PackageNotFoundError:
        return "0+source"


VERSION = _read()
