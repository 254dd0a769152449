"""What an X server leaves behind; other tests take display numbers that have become free, at once."""

from pathlib import Path

__all__ = ["left_of_display"]


def left_of_display(display: str, server_pid: int) -> list[Path]:
    """Lock and socket of the server *server_pid* at *display* that are still there, and still its own."""
    number = display.removeprefix(":")
    lock = Path(f"/tmp/.X{number}-lock")
    try:
        owner = int(lock.read_text())
    except (OSError, ValueError):
        owner = server_pid
    if owner != server_pid:
        return []
    return [path for path in (lock, Path(f"/tmp/.X11-unix/X{number}")) if path.exists()]
