"""``agentd doctor``: what is missing on this machine, and what to do about it."""

import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from agentd.cli.stack import read_run_file
from agentd.settings import AgentdSettings
from chatd.provider.catalog import sources_from_settings
from chatd.routes.misc import PAGE_DIR
from chatd.settings import ChatdSettings
from computer.session.sockets import X_SOCKETS, check_socket_directory

__all__ = ["Check", "run_checks"]

Status = Literal["ok", "warning", "missing"]
# Directories in which distributions keep fonts for X and for applications.
FONT_DIRS = (Path("/usr/share/fonts"), Path("/usr/local/share/fonts"))
# What every keymap is made from.
KEYMAP_RULES = Path("/usr/share/X11/xkb/rules/evdev")
# Oldest SQLite with RETURNING, which every insert of ours uses.
MIN_SQLITE = (3, 35, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line: what was looked at, how it is, what to do."""

    name: str
    status: Status
    detail: str
    advice: str = ""

    def as_json(self) -> dict[str, str]:
        """As ``--json`` prints it."""
        return asdict(self)


def run_checks(agentd: AgentdSettings, chatd: ChatdSettings) -> Iterator[Check]:
    """Every check, in the order a newcomer needs them."""
    checks: list[Callable[[AgentdSettings, ChatdSettings], Check]] = [
        _x_server,
        _keymaps,
        _display_sockets,
        _window_manager,
        _wallpaper,
        _clean_end,
        _fonts,
        _terminal,
        _database,
        _page,
        _models,
        _port,
        _runtime_dir,
        _data_dir,
    ]
    for check in checks:
        yield check(agentd, chatd)


def _program(name: str, program: str, package: str, why: str) -> Check:
    path = shutil.which(program)
    if path is not None:
        return Check(name=name, status="ok", detail=path)
    return Check(
        name=name,
        status="missing",
        detail=f"{program} was not found: {why}",
        advice=f"apt-get install {package}",
    )


def _x_server(agentd: AgentdSettings, _: ChatdSettings) -> Check:
    command = agentd.portabledesktop or shutil.which("portabledesktop")
    if agentd.desktop_backend != "xvnc" and command:
        if shutil.which(command):
            return Check(name="X server", status="ok", detail=f"portabledesktop: {command}")
        advice = "set AGENTD_PORTABLEDESKTOP to an executable, or unset it to use Xvnc"
        return Check(name="X server", status="missing", detail=f"{command} is no command", advice=advice)
    why = "no desktop can be started"
    return _program("X server", "Xvnc", "tigervnc-standalone-server", why)


def _is_own_server(agentd: AgentdSettings) -> bool:
    """Whether desktops are our own Xvnc's; portabledesktop brings what it needs."""
    if agentd.desktop_backend == "auto":
        return not shutil.which(agentd.portabledesktop or "portabledesktop")
    return agentd.desktop_backend == "xvnc"


def _keymaps(agentd: AgentdSettings, _: ChatdSettings) -> Check:
    if not _is_own_server(agentd):
        return Check(name="keymaps", status="ok", detail="portabledesktop brings its own")
    if not KEYMAP_RULES.is_file():
        detail = f"{KEYMAP_RULES} was not found: no keyboard, and so no desktop"
        return Check(name="keymaps", status="missing", detail=detail, advice="apt-get install xkb-data")
    return _program("keymaps", "xkbcomp", "x11-xkb-utils", "no keyboard, and so no desktop")


def _display_sockets(_: AgentdSettings, __: ChatdSettings) -> Check:
    problem = check_socket_directory()
    if problem is None:
        return Check(name="display sockets", status="ok", detail=f"{X_SOCKETS} can be used")
    detail, remedy = problem.split("; run: ", 1)
    return Check(name="display sockets", status="missing", detail=detail, advice=remedy)


def _window_manager(agentd: AgentdSettings, _: ChatdSettings) -> Check:
    if not _is_own_server(agentd):
        return Check(name="window manager", status="ok", detail="portabledesktop brings its own")
    check = _program(
        "window manager", "openbox", "openbox", "windows have no frames and can't be moved or switched"
    )
    return check if check.status == "ok" else replace(check, status="warning")


def _wallpaper(agentd: AgentdSettings, _: ChatdSettings) -> Check:
    path = agentd.desktop_wallpaper
    if path is None or os.access(path, os.R_OK):
        return Check(name="wallpaper", status="ok", detail=str(path or "one colour"))
    advice = "set AGENTD_DESKTOP_WALLPAPER to a picture, or unset it"
    return Check(name="wallpaper", status="warning", detail=f"{path} can't be read", advice=advice)


def _clean_end(_: AgentdSettings, __: ChatdSettings) -> Check:
    """What ends a desktop's programs when the daemon itself is killed."""
    missing = [name for name in ("setpriv", "grep") if shutil.which(name) is None]
    if not missing:
        return Check(name="clean end", status="ok", detail="programs end with a daemon that is killed")
    detail = f"{', '.join(missing)} not found: programs may outlive a daemon that is killed"
    return Check(name="clean end", status="warning", detail=detail, advice="apt-get install util-linux grep")


def _terminal(_: AgentdSettings, __: ChatdSettings) -> Check:
    return _program("terminal", "xterm", "xterm", "agents can't open a terminal at the desktop")


def _fonts(_: AgentdSettings, __: ChatdSettings) -> Check:
    kinds = ("*.pcf.gz", "*.ttf", "*.otf")
    found = {kind: any(next(d.rglob(kind), None) for d in FONT_DIRS if d.is_dir()) for kind in kinds}
    if not found["*.pcf.gz"]:
        detail = "no bitmap fonts: terminals can't draw text"
        return Check(name="fonts", status="missing", detail=detail, advice="apt-get install xfonts-base")
    if not (found["*.ttf"] or found["*.otf"]):
        detail = "no scalable fonts: browsers draw boxes"
        return Check(
            name="fonts", status="warning", detail=detail, advice="apt-get install fonts-dejavu-core"
        )
    return Check(name="fonts", status="ok", detail="bitmap and scalable fonts are there")


def _database(_: AgentdSettings, __: ChatdSettings) -> Check:
    detail = f"SQLite {sqlite3.sqlite_version}"
    if sqlite3.sqlite_version_info < MIN_SQLITE:
        advice = "use a Python whose sqlite3 is 3.35 or newer"
        return Check(name="database", status="missing", detail=detail, advice=advice)
    return Check(name="database", status="ok", detail=detail)


def _page(_: AgentdSettings, __: ChatdSettings) -> Check:
    if (PAGE_DIR / "index.html").is_file():
        return Check(name="browser page", status="ok", detail=str(PAGE_DIR))
    return Check(
        name="browser page", status="missing", detail="the page was not built", advice="run script/bootstrap"
    )


def _models(_: AgentdSettings, chatd: ChatdSettings) -> Check:
    sources = sources_from_settings(chatd)
    if sources:
        names = ", ".join(f"{source.provider}:{source.model}" for source in sources)
        return Check(name="model keys", status="ok", detail=names)
    return Check(
        name="model keys",
        status="warning",
        detail="no model key: rehearsal model",
        advice="set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or CHATD_COMPAT_BASE_URL",
    )


def _port(agentd: AgentdSettings, chatd: ChatdSettings) -> Check:
    where = f"{chatd.host}:{chatd.port}"
    running = read_run_file(agentd.runtime_dir)
    if running is not None and running.api.startswith(f"http://{where}/"):
        return Check(
            name="port", status="ok", detail=f"{where} is in use by your agentd up, pid {running.pid}"
        )
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((chatd.host, chatd.port))
        except OSError as exc:
            advice = "choose another with --port (0 takes a free one)"
            return Check(name="port", status="warning", detail=f"{where}: {exc.strerror}", advice=advice)
    return Check(name="port", status="ok", detail=f"{where} is free")


def _runtime_dir(agentd: AgentdSettings, _: ChatdSettings) -> Check:
    return _directory(
        "runtime directory", agentd.runtime_dir, "set AGENTD_RUNTIME_DIR to a directory of yours"
    )


def _data_dir(_: AgentdSettings, chatd: ChatdSettings) -> Check:
    return _directory("data directory", chatd.data_dir, "choose another with --data DIR")


def _directory(name: str, path: Path, advice: str) -> Check:
    """Writable, or makeable: tried, not guessed, and nothing is left behind."""
    existing = path
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as exc:
        return Check(name=name, status="missing", detail=f"{existing}: {exc.strerror}", advice=advice)
    if path.exists() and path.stat().st_uid != os.getuid():
        return Check(name=name, status="missing", detail=f"{path} belongs to another user", advice=advice)
    return Check(name=name, status="ok", detail=str(path))
