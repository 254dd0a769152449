"""
What a token may be narrowed to, and which of it a request needs.

A token without scopes may all that its user may. Whether the user may is another question.
"""

from enum import StrEnum

__all__ = ["API_PREFIX", "METRICS_PATH", "SAFE_METHODS", "Role", "Scope", "needed_scope"]

API_PREFIX = "/api/experimental/"
METRICS_PATH = "/metrics"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Role(StrEnum):
    """What a user is to the deployment."""

    ADMIN = "admin"
    MEMBER = "member"


class Scope(StrEnum):
    """A part of what a user may."""

    READ = "read"
    WRITE = "write"
    DESKTOP = "desktop"
    ACCOUNT = "account"
    ADMIN = "admin"
    METRICS = "metrics"


# The first part of a path below the API that is about who may what, whatever the method.
_BY_FIRST_PART = {
    "tokens": Scope.ACCOUNT,
    "sessions": Scope.ACCOUNT,
    "logout": Scope.ACCOUNT,
    "login-tokens": Scope.ACCOUNT,
    "users": Scope.ADMIN,
    "audit": Scope.ADMIN,
}


def needed_scope(method: str, path: str) -> Scope:
    """
    The scope of one request; what is for administrators needs ``admin`` besides.

    Args:
        method: in capitals.
        path: of a route that wants a token.
    """
    if path == METRICS_PATH:
        return Scope.METRICS
    parts = path.removeprefix(API_PREFIX).split("/")
    if parts[0] in _BY_FIRST_PART:
        return _BY_FIRST_PART[parts[0]]
    # Of a chat (its stream, control, links) or of a workspace; how a desktop is, anybody may read.
    if "desktop" in parts[2:3] and parts[3:4] != ["status"]:
        return Scope.DESKTOP
    return Scope.READ if method in SAFE_METHODS else Scope.WRITE
