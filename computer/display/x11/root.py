"""What belongs to a whole server: what its root window shows, and who may connect."""

from pathlib import Path

from PIL import Image, ImageOps
from Xlib import X

from computer.display.x11.connection import connected
from computer.errors import WallpaperUnreadable

__all__ = ["enforce_cookie", "paint_root", "paint_wallpaper"]

# Bytes of one request with pixels; without BIG-REQUESTS a server takes 256 KiB.
STRIP_BYTES = 200_000
# The root window's depth everywhere we draw, and bytes of one of its pixels.
DEPTH = 24
PIXEL_BYTES = 4


def enforce_cookie(name: str, cookie: bytes) -> None:
    """
    Have a server that was started without access control refuse whoever lacks its cookie.

    Hosts and users that were let in by name are struck off.

    Raises:
        DisplayLost: the server is gone, or refuses.
    """
    with connected(name, cookie) as connection:
        connection.set_access_control(X.EnableAccess)
        for host in connection.list_hosts().hosts:
            connection.change_hosts(X.HostDelete, host.family, host.name)
        connection.sync()


def paint_root(name: str, cookie: bytes | None, colour: int) -> None:
    """
    Fill the root window with ``0xRRGGBB``, to stay so.

    Raises:
        DisplayLost: the server is gone.
    """
    with connected(name, cookie) as connection:
        root = connection.screen().root
        root.change_attributes(background_pixel=colour)
        root.clear_area(0, 0, 0, 0)
        connection.sync()


def paint_wallpaper(name: str, cookie: bytes | None, path: Path) -> None:
    """
    Fill the root window with a picture, cut to the shape of the screen, to stay so.

    Raises:
        WallpaperUnreadable: there is no picture at *path*.
        DisplayLost: the server is gone.
    """
    with connected(name, cookie) as connection:
        root = connection.screen().root
        geometry = root.get_geometry()
        width, height = geometry.width, geometry.height
        pixels = _read_picture(path, width, height)
        pixmap = root.create_pixmap(width, height, DEPTH)
        context = pixmap.create_gc()
        rows = max(1, STRIP_BYTES // (width * PIXEL_BYTES))
        for top in range(0, height, rows):
            count = min(rows, height - top)
            strip = pixels[top * width * PIXEL_BYTES : (top + count) * width * PIXEL_BYTES]
            pixmap.put_image(context, 0, top, width, count, X.ZPixmap, DEPTH, 0, strip)
        root.change_attributes(background_pixmap=pixmap)
        root.clear_area(0, 0, 0, 0)
        connection.sync()


def _read_picture(path: Path, width: int, height: int) -> bytes:
    """Pixels as the server takes them, BGRX."""
    try:
        with Image.open(path) as picture:
            fitted = ImageOps.fit(picture.convert("RGB"), (width, height))
    except (OSError, ValueError, Image.DecompressionBombError) as exc:
        msg = f"the wallpaper {path} can't be read: {exc}"
        raise WallpaperUnreadable(msg) from exc
    return fitted.tobytes("raw", "BGRX")
