"""
Secrets at rest: what the database keeps of them can't be read without a key that is not in it.

Keys come from the settings or from a file that only its owner can read. The file may change while we run
(``chatd secrets rotate``): it is looked at before each use, so that nothing is sealed with a key that was
replaced.

Source: Fernet (AES-128-CBC and HMAC-SHA256), of the ``cryptography`` package.
"""

import os
import stat
import threading
from collections.abc import Sequence
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from chatd.errors import Unavailable

__all__ = ["KEY_FILE", "KeyFile", "KeyUnusable", "SealBroken", "Sealer", "load_sealer", "new_key"]

KEY_FILE = "secrets.key"


class SealBroken(Unavailable):
    """A stored secret can't be opened: it was sealed with another key."""

    code = "seal_broken"


class KeyUnusable(Unavailable):
    """The key for stored secrets can't be read or is none."""

    code = "secret_key_unusable"


class KeyFile:
    """
    Keys in a file, the one that seals first, one a line.

    Raises:
        KeyUnusable: it can't be read or written, or others than its owner may.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def keys(self) -> list[str]:
        """The keys; one is made when there is no file."""
        try:
            if not self.path.exists():
                self.write([new_key()])
            with self.path.open() as file:
                # Of the file that is read, not of one that may have taken its place since.
                self._check(os.fstat(file.fileno()))
                return file.read().split()
        except OSError as exc:
            raise KeyUnusable(f"can't use {self.path}: {exc.strerror}") from exc

    def write(self, keys: Sequence[str]) -> None:
        """Replace the keys, whole or not at all: half a key would lose what it seals."""
        partial = self.path.with_suffix(".part")
        try:
            partial.unlink(missing_ok=True)
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write("".join(f"{key}\n" for key in keys))
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.path)
            _sync_directory(self.path.parent)
        except OSError as exc:
            raise KeyUnusable(f"can't write {self.path}: {exc.strerror}") from exc

    def version(self) -> tuple[int, int, int]:
        """What differs once the file was replaced."""
        try:
            found = self.path.stat()
        except OSError as exc:
            raise KeyUnusable(f"can't use {self.path}: {exc.strerror}") from exc
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _check(self, found: os.stat_result) -> None:
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise KeyUnusable(f"{self.path} can be read by others than its owner: chmod 600 {self.path}")
        if found.st_uid not in {os.geteuid(), 0}:
            raise KeyUnusable(f"{self.path} belongs to another user, who could replace it")


class Sealer:
    """
    Seals with the first key and opens what any of *keys* sealed, so that keys can be replaced.

    Args:
        keys: or the file that has them.

    Raises:
        KeyUnusable: a key is no Fernet key.
    """

    def __init__(self, keys: Sequence[str] | KeyFile) -> None:
        self._file = keys if isinstance(keys, KeyFile) else None
        # Used from the database's threads.
        self._lock = threading.Lock()
        self._version: tuple[int, int, int] | None = None
        if isinstance(keys, KeyFile):
            self._refresh()
        else:
            self._fernet = _fernet_of(keys)

    def seal(self, text: str) -> bytes:
        """Encrypt *text*."""
        self._refresh()
        return self._fernet.encrypt(text.encode())

    def open(self, sealed: bytes) -> str:
        """
        Decrypt what ``seal`` made.

        Raises:
            SealBroken: no key fits.
        """
        self._refresh()
        try:
            return self._fernet.decrypt(sealed).decode()
        except InvalidToken as exc:
            raise SealBroken("a stored secret was sealed with another key; enter it again") from exc

    def reseal(self, sealed: bytes) -> bytes:
        """
        The same secret, sealed with the first key.

        Raises:
            SealBroken: no key fits.
        """
        return self.seal(self.open(sealed))

    def _refresh(self) -> None:
        """Read the file anew if it was replaced."""
        if self._file is None:
            return
        with self._lock:
            if self._version is None:
                # Made if there is none.
                self._file.keys()
            version = self._file.version()
            if version != self._version:
                self._fernet = _fernet_of(self._file.keys())
                self._version = version


def new_key() -> str:
    """A random key."""
    return Fernet.generate_key().decode()


def load_sealer(keys: Sequence[str], data_dir: Path) -> Sealer:
    """
    A sealer of *keys*, or of the key kept in *data_dir*, which is made when there is none.

    Raises:
        KeyUnusable: the file can't be read or written, or holds no key.
    """
    return Sealer(keys or KeyFile(data_dir / KEY_FILE))


def _fernet_of(keys: Sequence[str]) -> MultiFernet:
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError as exc:
        raise KeyUnusable(
            "a key for stored secrets is 32 bytes in url-safe base64: openssl rand -base64 32 | tr +/ -_"
        ) from exc


def _sync_directory(path: Path) -> None:
    """See that the new name outlives a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
