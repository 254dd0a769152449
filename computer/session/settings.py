"""What a desktop session is asked to be."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from computer.errors import StartFailed
from computer.pixels import EncodingSettings
from computer.settling import SettleSettings

__all__ = ["MAX_SOCKET_PATH_BYTES", "SessionSettings"]

# Bytes. The kernel's limit for the path of a Unix socket is 107 and a terminator.
MAX_SOCKET_PATH_BYTES = 107


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """
    Settings of one session.

    Attributes:
        name: of the session; letters, digits, ``._-``.
        width, height: native pixels.
        dpi: of the X server.
        runtime_dir: private to this session; made with mode 0700.
        backend: ``auto`` takes portabledesktop where it is found, else our own Xvnc.
        portabledesktop: path of that command; looked up in PATH when None.
        wallpaper: picture that fills the screen, cut to its shape; one colour when None.
        settle: patience with the screen.
        encoding: of pictures.

    Raises:
        StartFailed: a setting can't work.
    """

    name: str = "main"
    width: int = 1280
    height: int = 800
    dpi: int = 96
    runtime_dir: Path
    backend: Literal["auto", "xvnc", "portabledesktop"] = "auto"
    portabledesktop: str | None = None
    wallpaper: Path | None = None
    settle: SettleSettings = field(default_factory=SettleSettings)
    encoding: EncodingSettings = field(default_factory=EncodingSettings)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", self.name):
            msg = f"{self.name!r} can't name a desktop session"
            raise StartFailed(msg)
        if not (1 <= self.width <= 32_767 and 1 <= self.height <= 32_767):
            msg = f"a desktop can't be {self.geometry}"
            raise StartFailed(msg)
        if len(bytes(self.rfb_socket)) >= MAX_SOCKET_PATH_BYTES:
            msg = f"{self.rfb_socket} is too long for a socket; choose a shorter runtime directory"
            raise StartFailed(msg)

    @property
    def geometry(self) -> str:
        """``WIDTHxHEIGHT``."""
        return f"{self.width}x{self.height}"

    @property
    def rfb_socket(self) -> Path:
        """Where our own Xvnc listens for viewers."""
        return self.runtime_dir / "rfb.sock"
