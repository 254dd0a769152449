"""The data directory: private, and owned by one process at a time."""

import fcntl
import os
from pathlib import Path

from chatd.errors import Refused, Unavailable

__all__ = ["DataDir", "DataDirBusy", "DataDirUnusable"]


class DataDirBusy(Refused):
    """Another process owns it."""

    code = "data_dir_busy"


class DataDirUnusable(Unavailable):
    """It can't be written."""

    code = "data_dir_unusable"


class DataDir:
    """
    A directory of mode 0700 with a lock that dies with its holder.

    Raises:
        DataDirUnusable: it can't be made or written.
        DataDirBusy: another process holds the lock; the text names its pid.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.chmod(0o700)
            self._open()
        except OSError as exc:
            msg = f"can't write to {path}: {exc.strerror}; choose another place with --data DIR"
            raise DataDirUnusable(msg) from exc
        self._take()
        while not self._is_current():
            # Its holder removed the file between our opening and our lock: the next one gets a new file.
            os.close(self._file)
            self._open()
            self._take()
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def _open(self) -> None:
        self._file = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _is_current(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file), (self.path / "lock").stat())
        except FileNotFoundError:
            return False

    def _take(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = os.pread(self._file, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            msg = f"{self.path} is in use by process {pid}; stop it, or choose another place with --data DIR"
            raise DataDirBusy(msg) from None

    def release(self) -> None:
        """Let the next one in; the lock file is removed first, so that none is left behind."""
        (self.path / "lock").unlink(missing_ok=True)
        os.close(self._file)
