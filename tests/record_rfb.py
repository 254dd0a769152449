"""
Record what real VNC servers send, as vectors for the tests of our RFB core.

    python -m tests.record_rfb

Each vector is the server's bytes from its greeting on (``*.bin``) and, in ``index.json``, which
server sent them, what the client had offered, and the picture that they make: its size and the
SHA-256 of its pixels (``<u4``, 0x00RRGGBB). Before a vector is written the picture is compared
with what the X server itself shows; for QEMU with what vncdotool, an independent client, shows.
"""

import hashlib
import json
import random
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
from PIL import Image
from Xlib import X

from computer.display.x11 import connect
from computer.display.x11.connection import XConnection, disconnect
from computer.geometry import Rect
from computer.rfb import Encoding, RfbClient, Updated
from computer.rfb.messages import render_fence, render_update_request
from tests.rfb_servers import RfbServer, run_qemu, run_x11vnc, run_xvnc

VECTORS = Path(__file__).parent / "vectors" / "rfb"
WIDTH, HEIGHT = 150, 100
QUIET_S = 0.5
MAX_READ_S = 3.0
LIMIT_S = 20


class Recorder:
    """A client that keeps every byte that it hears."""

    def __init__(self, server: RfbServer, encodings: tuple[Encoding, ...]) -> None:
        kind = socket.AF_INET if isinstance(server.address, tuple) else socket.AF_UNIX
        self._socket = socket.socket(kind)
        self._socket.connect(server.address if isinstance(server.address, tuple) else str(server.address))
        self.client = RfbClient(encodings=encodings)
        self.heard = bytearray()

    def read(self, quiet_s: float = QUIET_S) -> None:
        """Read until nothing has come for a while, or too much; ask for more after each update."""
        # A caret that blinks never falls silent.
        deadline = time.monotonic() + MAX_READ_S
        while time.monotonic() < deadline or not self.is_between_messages:
            self._socket.sendall(self.client.data_to_send())
            if not select.select([self._socket], [], [], quiet_s)[0]:
                return
            data = self._socket.recv(65_536)
            if not data:
                raise EOFError
            self.heard += data
            events = self.client.receive(data)
            if any(isinstance(event, Updated) for event in events):
                self.ask()

    @property
    def is_between_messages(self) -> bool:
        """Whether the last message is complete."""
        return self.client._needed == 1 and not self.client._buffer

    def ask(self, *, incremental: bool = True) -> None:
        """Ask for the whole screen."""
        size = self.client.size
        assert size is not None
        whole = Rect(left=0, top=0, right=size.width, bottom=size.height)
        self.client.send(render_update_request(whole, incremental=incremental))

    def fence(self) -> None:
        """Set a fence."""
        self.client.send(render_fence(1 | 1 << 31, b"vector"))

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


def _paint(connection: XConnection) -> None:
    """Flat areas, many colours, noise: something for every kind of tile."""
    screen, chance = connection.screen(), random.Random(7)  # noqa: S311  the same picture each time
    root = screen.root
    gc = root.create_gc(foreground=0x2E3440)
    root.fill_rectangle(gc, 0, 0, WIDTH, HEIGHT)
    for number in range(30):
        gc.change(foreground=chance.choice([0xFF0000, 0x00FF00, 0x0000FF, 0xFFFFFF, 0x123456])
                  if number < 20 else chance.randrange(1 << 24))  # fmt: skip
        root.fill_rectangle(gc, chance.randrange(WIDTH), chance.randrange(HEIGHT), 1 + number, 40 - number)
    noise = bytes(chance.randrange(256) for _ in range(30 * 30 * 4))
    root.put_image(gc, 100, 60, 30, 30, X.ZPixmap, screen.root_depth, 0, noise)
    connection.sync()


def _scroll(connection: XConnection) -> None:
    root = connection.screen().root
    gc = root.create_gc(graphics_exposures=False)
    root.copy_area(gc, root, 10, 20, 60, 50, 40, 5)
    connection.sync()


def _resize(connection: XConnection) -> None:
    name = connection.get_display_name()
    subprocess.run(["xrandr", "-d", name.removeprefix("unix/"), "-s", "640x480"], check=True)


@contextmanager
def _client(
    server: RfbServer, encodings: tuple[Encoding, ...]
) -> Iterator[tuple[Recorder, XConnection | None]]:
    connection = connect(server.display, None) if server.display is not None else None
    if connection is not None:
        _paint(connection)
    recorder = Recorder(server, encodings)
    try:
        recorder.read()
        recorder.ask(incremental=False)
        recorder.read()
        yield recorder, connection
    finally:
        recorder.close()
        if connection is not None:
            disconnect(connection)


def _record(
    name: str, running: AbstractContextManager[RfbServer], encodings: tuple[Encoding, ...],
    act: Callable[[XConnection], None] | None = None,
) -> dict[str, object]:  # fmt: skip
    with running as server:
        if server.display is None:
            # The firmware has nothing more to say after some seconds.
            time.sleep(8)
        with _client(server, encodings) as (recorder, connection):
            if act is not None and connection is not None:
                act(connection)
                recorder.read()
            if recorder.client.has_fences:
                recorder.fence()
                recorder.read()
            _compare(recorder.client, server, connection)
            pixels = recorder.client.framebuffer
    (VECTORS / f"{name}.bin").write_bytes(recorder.heard)
    print(name, len(recorder.heard), "bytes")  # noqa: T201
    return {
        "server": name.rpartition("-")[0],
        "encodings": [int(encoding) for encoding in encodings],
        "size": [pixels.shape[1], pixels.shape[0]],
        "sha256": hashlib.sha256(pixels.tobytes()).hexdigest(),
    }


def _compare(client: RfbClient, server: RfbServer, connection: XConnection | None) -> None:
    """Stop unless the picture is the one that somebody else sees."""
    ours = client.framebuffer
    if connection is not None:
        root = connection.screen().root
        geometry = root.get_geometry()
        image = root.get_image(0, 0, geometry.width, geometry.height, X.ZPixmap, 0xFFFF_FFFF)
        theirs = np.frombuffer(bytes(image.data), np.uint8).reshape(geometry.height, geometry.width, 4)[
            ..., :3
        ]
    else:
        with tempfile.NamedTemporaryFile(suffix=".png") as file:
            argv = [
                sys.executable,
                "-m",
                "vncdotool.command",
                "-s",
                str(server.address),
                "capture",
                file.name,
            ]
            subprocess.run(argv, check=True, timeout=LIMIT_S, capture_output=True)
            theirs = np.asarray(Image.open(file.name).convert("RGB"))[..., ::-1]
    different = int((ours[..., :3] != theirs).any(axis=2).sum())
    # The server draws its pointer, or a blinking caret, into one of the two.
    if ours.shape[:2] != theirs.shape[:2] or different > 300:
        raise SystemExit(f"the pictures differ in {different} pixels")


def main() -> None:
    """Record all vectors anew."""
    VECTORS.mkdir(parents=True, exist_ok=True)
    index = {}
    size = ("-geometry", f"{WIDTH}x{HEIGHT}")
    plain, zrle, zlib = (Encoding.RAW, Encoding.COPY_RECT), (Encoding.ZRLE,), (Encoding.ZLIB,)
    with tempfile.TemporaryDirectory(prefix="rec-") as directory:
        place = Path(directory)
        plan = {
            "xvnc-raw": (run_xvnc(place, extra=size), plain, None),
            "xvnc-zrle": (run_xvnc(place, extra=size), zrle, None),
            "xvnc-copyrect": (run_xvnc(place, extra=size), (Encoding.ZRLE, Encoding.COPY_RECT), _scroll),
            "xvnc-resize": (run_xvnc(place, extra=size), zrle, _resize),
            "x11vnc-zlib": (run_x11vnc(place, size=(WIDTH, HEIGHT)), zlib, None),
            "x11vnc-zrle": (run_x11vnc(place, size=(WIDTH, HEIGHT)), zrle, None),
            "qemu-zrle": (run_qemu(place), zrle, None),
            "qemu-zlib": (run_qemu(place), zlib, None),
        }
        for name, (running, encodings, act) in plan.items():
            index[name] = _record(name, running, encodings, act)
    (VECTORS / "index.json").write_text(json.dumps(index, indent=2) + "\n")


if __name__ == "__main__":
    main()
