"""Which scope a request needs."""

import pytest

from chatd.scopes import Scope, needed_scope

API = "/api/experimental"
CHAT = f"{API}/chats/7b0c1a52-8d3e-4a55-9a63-0d2a9f3a7a11"


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", f"{API}/me", Scope.READ),
        ("HEAD", f"{API}/chats", Scope.READ),
        ("GET", f"{CHAT}/stream", Scope.READ),
        ("GET", f"{CHAT}/desktop/status", Scope.READ),
        ("POST", f"{API}/chats", Scope.WRITE),
        ("PUT", f"{API}/groups/x", Scope.WRITE),
        ("DELETE", f"{CHAT}/queue/1", Scope.WRITE),
        ("GET", f"{CHAT}/desktop", Scope.DESKTOP),
        ("POST", f"{CHAT}/desktop/control", Scope.DESKTOP),
        ("GET", f"{CHAT}/desktop/shares", Scope.DESKTOP),
        ("GET", f"{API}/agents/box/desktop", Scope.DESKTOP),
        ("GET", f"{API}/tokens", Scope.ACCOUNT),
        ("DELETE", f"{API}/sessions/x", Scope.ACCOUNT),
        ("POST", f"{API}/login-tokens", Scope.ACCOUNT),
        ("GET", f"{API}/users", Scope.ADMIN),
        ("GET", f"{API}/audit", Scope.ADMIN),
        ("GET", "/metrics", Scope.METRICS),
        # A chat's name in the path is not a part of the table.
        ("GET", f"{API}/chats/desktop", Scope.READ),
        ("GET", f"{API}/chats/tokens", Scope.READ),
    ],
)
def test_scope_of_a_request(method: str, path: str, scope: Scope) -> None:
    """Ours: cell by cell."""
    assert needed_scope(method, path) is scope
