"""Open files of this process, for tests that look for leaks."""

from contextlib import suppress
from pathlib import Path

__all__ = ["count_descriptors"]


def count_descriptors() -> tuple[int, int]:
    """Those of shared pictures, which are a pool that fills as pictures overlap; and all others."""
    targets: list[str] = []
    for number in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists
            targets.append(str(number.readlink()))
    pool = sum(target.startswith("/memfd:framebuffer") for target in targets)
    return pool, len(targets) - pool
