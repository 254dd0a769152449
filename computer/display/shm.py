"""
Capture through MIT-SHM, by libxcb.

The server writes pixels into a memory file that both sides map: the time of one copy. Needs
``libxcb.so.1`` and ``libxcb-shm.so.0``; without them ``ShmUnavailable`` says so and the
display falls back to GetImage.

Source: MIT-SHM protocol 1.2 (file descriptor passing).
"""

import ctypes
import mmap
import os
import socket
from contextlib import suppress
from typing import Any

import numpy as np

from computer.errors import DisplayLost
from computer.geometry import Size
from computer.pixels import Framebuffer

__all__ = ["ShmCapture", "ShmUnavailable"]

_COOKIE_NAME = b"MIT-MAGIC-COOKIE-1"
_ALL_PLANES = 0xFFFF_FFFF
_Z_PIXMAP = 2


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


class ShmCapture:
    """
    One connection and one shared segment, grown when the screen grows.

    Raises:
        ShmUnavailable: see the module.
    """

    def __init__(self, name: str, cookie: bytes | None) -> None:
        self._lib = _Libraries()
        self._connection: int | None = self._connect(name, cookie)
        self._map: mmap.mmap | None = None
        self._segment = 0
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
        Copy the screen, which is *size* now; None when it shrank in this very moment.

        Raises:
            DisplayLost: the connection is gone.
        """
        length = size.width * size.height * 4
        try:
            if self._map is None or len(self._map) < length:
                self._attach(length)
        except ShmUnavailable as exc:
            raise DisplayLost(str(exc)) from exc
        area = (0, 0, size.width, size.height)
        request = self._lib.shm.xcb_shm_get_image(
            self._connection, self._root, *area, _ALL_PLANES, _Z_PIXMAP, self._segment, 0
        )
        reply = self._lib.shm.xcb_shm_get_image_reply(self._connection, request, None)
        if self._lib.xcb.xcb_connection_has_error(self._connection) or self._map is None:
            msg = "the X server gave no picture"
            raise DisplayLost(msg)
        if not reply:
            return None
        self._lib.free(reply)
        shared = np.frombuffer(self._map, np.uint8, length)
        return shared.reshape(size.height, size.width, 4).copy()

    def close(self) -> None:
        """Disconnect and give the memory back."""
        if self._connection is not None:
            self._lib.xcb.xcb_disconnect(self._connection)
            self._connection = None
        if self._map is not None:
            self._map.close()
            self._map = None

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

    def _attach(self, length: int) -> None:
        if self._map is not None:
            self._lib.shm.xcb_shm_detach(self._connection, self._segment)
            self._map.close()
            self._map = None
        memory = os.memfd_create("framebuffer", os.MFD_CLOEXEC)
        try:
            os.ftruncate(memory, length)
            mapped = mmap.mmap(memory, length)
        except OSError:
            os.close(memory)
            raise
        self._segment = self._lib.xcb.xcb_generate_id(self._connection)
        # libxcb closes the descriptor once it has sent it.
        request = self._lib.shm.xcb_shm_attach_fd_checked(self._connection, self._segment, memory, 0)
        refusal = self._lib.xcb.xcb_request_check(self._connection, request)
        if refusal or self._lib.xcb.xcb_connection_has_error(self._connection):
            if refusal:
                self._lib.free(refusal)
            mapped.close()
            msg = "the X server refuses shared memory"
            raise ShmUnavailable(msg)
        self._map = mapped
