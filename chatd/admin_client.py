"""
The API's client with what concerns accounts besides: users, tokens, sessions, the audit log.

Example:
    async with AdminClient("http://127.0.0.1:7080", token) as client:
        await client.create_user("ann")
        token = await client.create_token("ci", scopes=["read"], expires_in_s=3600)
"""

from typing import Any
from urllib.parse import quote
from uuid import UUID

from chatd.account_wire import AuditLine, NewToken, Session, Token, User
from chatd.client import ChatClient

__all__ = ["AdminClient"]


class AdminClient(ChatClient):
    """One user's view of accounts; most of it is for administrators."""

    async def list_users(self) -> list[User]:
        """Every user."""
        return await self._ask("GET", "/users", list[User])

    async def create_user(self, name: str, role: str = "member") -> User:
        """A new user, without a token."""
        return await self._ask("POST", "/users", User, json={"name": name, "role": role})

    async def change_user(self, name: str, **fields: Any) -> User:  # noqa: ANN401 -- the body's fields
        """Another *role*, or *disabled*."""
        return await self._ask("PATCH", f"/users/{quote(name, safe='')}", User, json=fields)

    async def untie_user(self, name: str) -> None:
        """Forget who a user is at the OpenID provider."""
        await self._ask("DELETE", f"/users/{quote(name, safe='')}/identities", None)

    async def user_tokens(self, name: str) -> list[Token]:
        """A user's tokens and sessions."""
        return await self._ask("GET", f"/users/{quote(name, safe='')}/tokens", list[Token])

    async def revoke_user_token(self, name: str, token_id: UUID) -> None:
        """End one of them."""
        await self._ask("DELETE", f"/users/{quote(name, safe='')}/tokens/{token_id}", None)

    async def tokens(self) -> list[Token]:
        """The caller's own."""
        return await self._ask("GET", "/tokens", list[Token])

    async def create_token(self, name: str, **fields: Any) -> NewToken:  # noqa: ANN401 -- the body's fields
        """A token of the caller's; *kind*, *scopes*, *expires_in_s*, *workspace*."""
        return await self._ask("POST", "/tokens", NewToken, json={"name": name, **fields})

    async def revoke_token(self, token_id: UUID) -> None:
        """End one of the caller's."""
        await self._ask("DELETE", f"/tokens/{token_id}", None)

    async def sessions(self) -> list[Session]:
        """Browsers that are logged in as the caller."""
        return await self._ask("GET", "/sessions", list[Session])

    async def end_session(self, session_id: UUID) -> None:
        """Log one of them out."""
        await self._ask("DELETE", f"/sessions/{session_id}", None)

    async def logout(self) -> None:
        """End the session that asks; a token is refused."""
        await self._ask("POST", "/logout", None)

    async def audit(self, **query: Any) -> list[AuditLine]:  # noqa: ANN401 -- the route's query
        """What mattered for security, the newest first."""
        return await self._ask("GET", "/audit", list[AuditLine], params=query)
