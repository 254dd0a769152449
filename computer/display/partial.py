"""Text that arrived in part, told as such."""

from collections.abc import Generator

from computer.display import Typed
from computer.errors import InvalidAction, NotConfirmed

__all__ = ["telling_how_far"]


def telling_how_far(bursts: Generator[int, None, Typed]) -> Generator[int, None, Typed]:
    """
    Pass on what ``Display.type_text`` yields and returns.

    Raises:
        InvalidAction: as *bursts* does, before the first of the text was delivered: nothing was done.
        NotConfirmed: the same later on; says how many characters were delivered.
    """
    done = 0
    try:
        while True:
            try:
                done = next(bursts)
            except StopIteration as end:
                typed: Typed = end.value
                return typed
            except InvalidAction as exc:
                if not done:
                    raise
                first = "the first character was" if done == 1 else f"the first {done} characters were"
                msg = f"{exc}; {first} delivered, the rest was not"
                raise NotConfirmed(msg) from exc
            yield done
    finally:
        bursts.close()
