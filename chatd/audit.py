"""
What the audit log tells of, and how text of others gets into it: one line, bounded, no cursor moved.

An entry never holds a secret: no token, no header, no body; only names and ids.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

__all__ = ["MAX_TEXT", "AuditAction", "AuditEntry", "plain"]

# Characters of one text; names that people gave are shorter.
MAX_TEXT = 300
# Control characters (also those of ISO 8859), line and paragraph separators, what turns the direction of
# text round or can't be seen, and halves of characters.
_UNPLAIN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


class AuditAction(StrEnum):
    """What happened."""

    LOGIN = "login"
    LOGIN_FAILED = "login_failed"
    LOGOUT = "logout"
    IDENTITY_TIED = "identity_tied"
    IDENTITY_UNTIED = "identity_untied"
    LOGIN_URL = "login_url_made"
    SESSION_ENDED = "session_ended"
    TOKEN_MADE = "token_made"  # noqa: S105 -- a name
    TOKEN_REVOKED = "token_revoked"  # noqa: S105
    USER_MADE = "user_made"
    USER_DISABLED = "user_disabled"
    USER_ENABLED = "user_enabled"
    ROLE_CHANGED = "role_changed"
    ADMIN_REFUSED = "admin_refused"
    GROUP_CHANGED = "group_changed"
    GROUP_DELETED = "group_deleted"
    ACL_CHANGED = "acl_changed"
    SHARE_MADE = "share_made"
    SHARE_OPENED = "share_opened"
    SHARE_REVOKED = "share_revoked"
    CONTROL_TAKEN = "control_taken"
    CONTROL_GIVEN_BACK = "control_given_back"
    SETTING_CHANGED = "setting_changed"
    LIMIT_CHANGED = "limit_changed"
    MCP_ADDED = "mcp_server_added"
    MCP_CHANGED = "mcp_server_changed"
    MCP_DELETED = "mcp_server_deleted"
    SECRETS_ROTATED = "secrets_rotated"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """
    One thing that somebody did, or was refused.

    Attributes:
        actor: the user's name; ``shell:NAME`` for who used the command line.
        target: what it was done to: a name or an id.
        remote: the address it came from.
        details: what else is to be known; texts only.
    """

    action: AuditAction
    actor: str
    actor_id: UUID | None = None
    target: str | None = None
    remote: str | None = None
    details: dict[str, str] = field(default_factory=dict)

    def plain(self) -> "AuditEntry":
        """The same, fit to be kept."""
        return AuditEntry(
            action=self.action,
            actor=plain(self.actor),
            actor_id=self.actor_id,
            target=None if self.target is None else plain(self.target),
            remote=None if self.remote is None else plain(self.remote),
            details={plain(name): plain(value) for name, value in self.details.items()},
        )


def plain(text: str) -> str:
    r"""*text* in one line: what could forge another, or a terminal's answer, is written as ``\xNN``."""
    kept = text[:MAX_TEXT]
    shown = _UNPLAIN.sub(_escaped, kept)
    return shown if len(text) <= MAX_TEXT else shown + "…"


def _escaped(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
