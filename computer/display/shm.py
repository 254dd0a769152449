"""
Capture through MIT-SHM, by libxcb.

The server writes pixels into a memory file that both sides map: the time of one copy. The
picture is that memory itself; the next one goes into another file while somebody has it. Needs
``libxcb.so.1`` and ``libxcb-shm.so.0``; without them ``ShmUnavailable`` says so and the
display falls back to GetImage.

Source: MIT-SHM protocol 1.2 (file descriptor passing).
"""

import ctypes
import mmap
import os
import socket
import weakref
from contextlib import suppress
from typing import Any, Final

import numpy as np

from computer.errors import DisplayLost
from computer.geometry import Size
from computer.pixels import Framebuffer

__all__ = ["MAX_SEGMENTS", "ShmCapture", "ShmUnavailable"]

_COOKIE_NAME = b"MIT-MAGIC-COOKIE-1"
_ALL_PLANES = 0xFFFF_FFFF
_Z_PIXMAP = 2
# Pictures in use at a time before the memory of the oldest is left to whoever has it.
MAX_SEGMENTS: Final = 4


class ShmUnavailable(Exception):
    """No shared-memory capture here: a library is missing or the server refuses."""


class _Auth(ctypes.Structure):
    _fields_ = (
        ("namelen", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("datalen", ctypes.c_int),
        ("data", ctypes.c_char_p),
    )


class _Request(ctypes.Structure):
    _fields_ = (("sequence", ctypes.c_uint),)


class _Iterator(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("remaining", ctypes.c_int), ("index", ctypes.c_int))


class _Libraries:
    """The functions that we call, with their C signatures."""

    def __init__(self) -> None:
        try:
            self.xcb: Any = ctypes.CDLL("libxcb.so.1")
            self.shm: Any = ctypes.CDLL("libxcb-shm.so.0")
        except OSError as exc:
            raise ShmUnavailable(str(exc)) from exc
        self.free: Any = ctypes.CDLL(None).free
        pointer, u32, i16, u16, u8 = (
            ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int16, ctypes.c_uint16, ctypes.c_uint8,
        )  # fmt: skip
        table: tuple[tuple[Any, Any, tuple[Any, ...]], ...] = (
            (self.free, None, (pointer,)),
            (self.xcb.xcb_connect_to_display_with_auth_info, pointer, (ctypes.c_char_p, pointer, pointer)),
            (self.xcb.xcb_connection_has_error, ctypes.c_int, (pointer,)),
            (self.xcb.xcb_get_file_descriptor, ctypes.c_int, (pointer,)),
            (self.xcb.xcb_get_setup, pointer, (pointer,)),
            (self.xcb.xcb_setup_roots_iterator, _Iterator, (pointer,)),
            (self.xcb.xcb_generate_id, u32, (pointer,)),
            (self.xcb.xcb_disconnect, None, (pointer,)),
            (self.xcb.xcb_request_check, pointer, (pointer, _Request)),
            (self.shm.xcb_shm_attach_fd_checked, _Request, (pointer, u32, ctypes.c_int32, u8)),
            (self.shm.xcb_shm_detach, _Request, (pointer, u32)),
            (
                self.shm.xcb_shm_get_image,
                _Request,
                (pointer, u32, i16, i16, u16, u16, u32, u8, u32, u32),
            ),
            (self.shm.xcb_shm_get_image_reply, pointer, (pointer, _Request, pointer)),
        )
        for function, result, arguments in table:
            function.restype, function.argtypes = result, arguments


class _Segment:
    """Memory shared with the server; free while nobody has the picture in it."""

    def __init__(self, number: int, memory: mmap.mmap) -> None:
        self.number = number
        self._memory = memory
        self._frame: weakref.ref[Framebuffer] | None = None

    @property
    def is_free(self) -> bool:
        return self._frame is None or self._frame() is None

    def holds(self, length: int) -> bool:
        return len(self._memory) >= length

    def frame(self, size: Size) -> Framebuffer:
        pixels = np.frombuffer(self._memory, np.uint8, size.width * size.height * 4)
        # Whatever is cut out of the picture refers to this array, as long as it lives.
        self._frame = weakref.ref(pixels)
        return pixels.reshape(size.height, size.width, 4)


class ShmCapture:
    """
    One connection, and as many shared segments as there are pictures in use.

    Raises:
        ShmUnavailable: see the module.
    """

    def __init__(self, name: str, cookie: bytes | None) -> None:
        self._lib = _Libraries()
        self._connection: int | None = self._connect(name, cookie)
        self._segments: list[_Segment] = []
        setup = self._lib.xcb.xcb_get_setup(self._connection)
        screen = self._lib.xcb.xcb_setup_roots_iterator(setup)
        self._root = ctypes.c_uint32.from_address(screen.data).value
        try:
            self._attach(mmap.PAGESIZE)
        except ShmUnavailable:
            self.close()
            raise

    def grab(self, size: Size) -> Framebuffer | None:
        """
        Picture of the screen, which is *size* now; None when it shrank in this very moment.

        Nobody else has it, and nothing writes into it any more.

        Raises:
            DisplayLost: the connection is gone.
        """
        try:
            segment = self._find_segment(size.width * size.height * 4)
        except ShmUnavailable as exc:
            raise DisplayLost(str(exc)) from exc
        area = (0, 0, size.width, size.height)
        request = self._lib.shm.xcb_shm_get_image(
            self._connection, self._root, *area, _ALL_PLANES, _Z_PIXMAP, segment.number, 0
        )
        reply = self._lib.shm.xcb_shm_get_image_reply(self._connection, request, None)
        if self._lib.xcb.xcb_connection_has_error(self._connection):
            msg = "the X server gave no picture"
            raise DisplayLost(msg)
        if not reply:
            return None
        self._lib.free(reply)
        return segment.frame(size)

    def close(self) -> None:
        """Disconnect and give the memory back."""
        if self._connection is not None:
            self._lib.xcb.xcb_disconnect(self._connection)
            self._connection = None
        # Pictures that are in use keep their memory.
        self._segments.clear()

    def abort(self) -> None:
        """Break the connection, from any thread."""
        if self._connection is None:
            return
        with suppress(OSError):
            copy = os.dup(self._lib.xcb.xcb_get_file_descriptor(self._connection))
            with socket.socket(fileno=copy) as broken:
                broken.shutdown(socket.SHUT_RDWR)

    def _connect(self, name: str, cookie: bytes | None) -> int:
        auth = None
        if cookie:
            auth = ctypes.byref(_Auth(len(_COOKIE_NAME), _COOKIE_NAME, len(cookie), cookie))
        connection: int = self._lib.xcb.xcb_connect_to_display_with_auth_info(name.encode(), auth, None)
        if self._lib.xcb.xcb_connection_has_error(connection):
            self._lib.xcb.xcb_disconnect(connection)
            msg = f"cannot connect to {name}"
            raise ShmUnavailable(msg)
        return connection

    def _find_segment(self, length: int) -> _Segment:
        free = [segment for segment in self._segments if segment.is_free]
        fitting = next((segment for segment in free if segment.holds(length)), None)
        if fitting is not None:
            return fitting
        if free or len(self._segments) >= MAX_SEGMENTS:
            oldest = free[0] if free else self._segments[0]
            self._segments.remove(oldest)
            self._lib.shm.xcb_shm_detach(self._connection, oldest.number)
        return self._attach(length)

    def _attach(self, length: int) -> _Segment:
        memory = os.memfd_create("framebuffer", os.MFD_CLOEXEC)
        try:
            os.ftruncate(memory, length)
            mapped = mmap.mmap(memory, length)
        except OSError:
            os.close(memory)
            raise
        number = self._lib.xcb.xcb_generate_id(self._connection)
        # libxcb closes the descriptor once it has sent it.
        request = self._lib.shm.xcb_shm_attach_fd_checked(self._connection, number, memory, 0)
        refusal = self._lib.xcb.xcb_request_check(self._connection, request)
        if refusal or self._lib.xcb.xcb_connection_has_error(self._connection):
            if refusal:
                self._lib.free(refusal)
            msg = "the X server refuses shared memory"
            raise ShmUnavailable(msg)
        segment = _Segment(number, mapped)
        self._segments.append(segment)
        return segment
