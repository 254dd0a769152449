"""
Names that every model vendor takes, and the way back.

A tool is offered as ``<server>__<tool>``. Where that is legal it is used as it is, and the first
``__`` splits it again. Where not, a readable legal form is made that ends in a hash of the real
names; only the table that made it knows the way back.

Source: Anthropic ``^[a-zA-Z0-9_-]{1,128}$``, OpenAI ``^[a-zA-Z0-9_-]{1,64}$``, Google: a letter or
underscore first, then letters, digits, ``_``, ``.``, ``:``, ``-``, 64 in all.
"""

import hashlib
import re
from collections.abc import Container

__all__ = ["MAX_TOOL_NAME", "SEPARATOR", "is_legal", "offered_name", "split_name"]

SEPARATOR = "__"
# Characters; the strictest vendor's.
MAX_TOOL_NAME = 64
# Characters of the server's name in a name that had to be changed.
MAX_SERVER_PART = 24
# Hexadecimal digits that tell changed names apart.
DIGEST_LENGTH = 8

_LEGAL = re.compile(rf"[A-Za-z_][A-Za-z0-9_-]{{0,{MAX_TOOL_NAME - 1}}}")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]+")


def is_legal(name: str) -> bool:
    """Whether every vendor takes *name* for a function."""
    return _LEGAL.fullmatch(name) is not None


def offered_name(server: str, tool: str, taken: Container[str] = ()) -> str:
    """
    The name under which models see *tool* of *server*: the same for the same names, every time.

    *taken* are names in use; a clash changes this one.
    """
    plain = f"{server}{SEPARATOR}{tool}"
    if is_legal(plain) and plain not in taken:
        return plain
    salt = 0
    while (name := _changed(server, tool, salt)) in taken:
        salt += 1
    return name


def _changed(server: str, tool: str, salt: int) -> str:
    digest = hashlib.sha256(f"{server}\0{tool}\0{salt}".encode(errors="surrogatepass")).hexdigest()
    head = re.sub("_+", "_", _ILLEGAL.sub("_", server)).strip("_-")[:MAX_SERVER_PART].rstrip("_-")
    if not head[:1].isalpha():
        head = f"s{head}"
    room = MAX_TOOL_NAME - DIGEST_LENGTH - 1
    readable = f"{head}{SEPARATOR}{_ILLEGAL.sub('_', tool)}"[:room].rstrip("_-")
    return f"{readable}_{digest[:DIGEST_LENGTH]}"


def split_name(name: str) -> tuple[str, str] | None:
    """Server and tool of a name that was not changed: the first ``__`` splits; None without one."""
    server, separator, tool = name.partition(SEPARATOR)
    return (server, tool) if separator and server and tool else None
