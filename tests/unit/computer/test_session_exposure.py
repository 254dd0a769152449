"""What is open to others, and what a server's last words mean."""

import os
import socket
from pathlib import Path

import pytest

from computer.session.diagnosis import diagnose, is_taken
from computer.session.exposure import listeners_of, parse_tcp, parse_unix

# Taken from a Debian 12 machine: Xvnc as portabledesktop starts it, on port 5961.
TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1749 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7001 1 0 0 10 0
   1: 0100007F:1749 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 7002 1 0 0 10 0
   2: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7003 1 0 0 10 0
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:1749 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7004 1 0 0 10 0
   1: 00000000000000000000000001000000:1749 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7005 1 0 0 10 0
"""  # noqa: E501  as the kernel writes it
UNIX = """\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 7101 @/tmp/.X11-unix/X61
0000000000000000: 00000002 00000000 00010000 0001 01  7102 /run/a b/rfb.sock
0000000000000000: 00000003 00000000 00000000 0001 03 7103 @/tmp/.X11-unix/X61
0000000000000000: 00000003 00000000 00000000 0001 03 7104
"""


def test_listening_tcp_sockets_are_read_with_their_addresses() -> None:
    """Source: proc(5)."""
    found = {listener.inode: str(listener) for text in (TCP, TCP6) for listener in parse_tcp(text)}

    assert found == {
        7001: "0.0.0.0:5961",
        7003: "127.0.0.1:8080",
        7004: ":::5961",
        7005: "::1:5961",
    }


def test_listening_unix_sockets_are_read_with_their_paths() -> None:
    """Source: proc(5); a connection is no listener."""
    assert {listener.inode: str(listener) for listener in parse_unix(UNIX)} == {
        7101: "@/tmp/.X11-unix/X61",
        7102: "/run/a b/rfb.sock",
    }


def test_own_sockets_are_found_in_the_kernel(tmp_path: Path) -> None:
    """Ours: of this process, and of no other."""
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        unix.bind(str(tmp_path / "s"))
        unix.listen()
        found = {str(listener) for listener in listeners_of(os.getpid())}

        assert {f"127.0.0.1:{tcp.getsockname()[1]}", str(tmp_path / "s")} <= found


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            "sh: 1: /usr/bin/xkbcomp: not found\nXKB: Failed to compile keymap",
            ("/usr/bin/xkbcomp: not found", "x11-xkb-utils"),
        ),
        ("sh: 1: /usr/bin/xkbcomp: Permission denied", ("/usr/bin/xkbcomp: Permission denied",)),
        ("Couldn't open rules file /usr/share/X11/xkb/rules/evdev", ("rules/evdev is missing",)),
        ("XKB: Failed to compile keymap\nKeyboard init", ("/usr/share/X11/xkb", "xkb-data")),
        ("could not open default font 'fixed'", ("fixed", "xfonts-base")),
        ("write: No space left on device", ("disk is full",)),
    ],
)  # fmt: skip
def test_last_words_name_the_file_and_the_remedy(log: str, words: tuple[str, ...]) -> None:
    """BUGS 46."""
    meaning = diagnose(f"Xvnc TigerVNC\n{log}\n(EE) Fatal server error")

    assert meaning is not None
    assert all(word in meaning for word in words)


def test_unknown_last_words_mean_nothing() -> None:
    """Ours: no guess."""
    assert diagnose("(EE) Caught signal 11 (Segmentation fault). Server aborting") is None


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("(EE) Server is already active for display 12", True),
        ("(EE) vncExtInit: failed to bind socket: Address already in use (98)", True),
        ("(EE) Caught signal 11 (Segmentation fault). Server aborting", False),
        ("", False),
    ],
)
def test_number_or_port_that_another_took_is_told_from_a_failure(log: str, *, expected: bool) -> None:
    """Ours: only then the next one is tried."""
    assert is_taken(log) is expected
