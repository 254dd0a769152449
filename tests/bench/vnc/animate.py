"""A window of 640x480 that changes at 30 frames a second: ``animate.py SECONDS``."""

import sys
import time

import numpy as np
from Xlib import X
from Xlib.display import Display

WIDTH, HEIGHT, FPS, STRIP = 640, 480, 30, 40


def main(seconds: float) -> None:
    """Draw until the time is over."""
    display = Display()
    screen = display.screen()
    window = screen.root.create_window(
        50, 50, WIDTH, HEIGHT, 0, screen.root_depth, override_redirect=True, background_pixel=0
    )
    window.map()
    context = window.create_gc()
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    frames = []
    for step in range(15):
        pixels = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
        for channel in range(3):
            wave = np.sin(x / (17 + 9 * channel) + step / 2) + np.cos(y / (23 - 5 * channel) - step / 3)
            pixels[:, :, channel] = ((wave + 2) * 63).astype(np.uint8)
        frames.append([pixels[top : top + STRIP].tobytes() for top in range(0, HEIGHT, STRIP)])
    ends, number = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        began = time.monotonic()
        for index, strip in enumerate(frames[number % len(frames)]):
            window.put_image(context, 0, index * STRIP, WIDTH, STRIP, X.ZPixmap, screen.root_depth, 0, strip)
        display.sync()
        number += 1
        time.sleep(max(0.0, 1 / FPS - (time.monotonic() - began)))


if __name__ == "__main__":
    main(float(sys.argv[1]))
