"""
Bring pictures of any size onto a canvas that a video can have.

Pure. H.264 in 4:2:0 wants even sides: an odd screen gets one black line at its right or bottom edge.
"""

import numpy as np

from computer.geometry import Size, fit_within
from computer.pixels import Framebuffer, frame_size, to_rgb

__all__ = ["changed_pixels", "even_size", "onto_canvas"]


def even_size(size: Size) -> Size:
    """*size* with odd sides made one longer."""
    return Size(width=size.width + size.width % 2, height=size.height + size.height % 2)


def onto_canvas(frame: Framebuffer, canvas: Size, screen: Size) -> Framebuffer:
    """
    Copy *frame* to the top left of a black *canvas*.

    Args:
        frame: ``(height, width, 4)`` uint8, BGRX.
        canvas: even; what the video has.
        screen: size of the screen when the recording began; a frame of another size is scaled
            to fit into it.

    Returns:
        ``(canvas.height, canvas.width, 4)``; *frame* itself where it fits exactly.
    """
    size = frame_size(frame)
    if size == canvas:
        return np.ascontiguousarray(frame)
    if size != screen:
        fitting = fit_within(size, screen)
        scaled = np.zeros((fitting.height, fitting.width, 4), np.uint8)
        scaled[..., :3] = to_rgb(frame, fitting)[..., ::-1]
        frame, size = scaled, fitting
    whole = np.zeros((canvas.height, canvas.width, 4), np.uint8)
    whole[: size.height, : size.width] = frame
    return whole


def changed_pixels(before: Framebuffer, after: Framebuffer) -> int:
    """Number of pixels that differ; all of them when the sizes do."""
    if before.shape != after.shape:
        size = frame_size(after)
        return size.width * size.height
    return int(np.count_nonzero(before.view(np.uint32) != after.view(np.uint32)))
