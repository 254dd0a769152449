"""A login by OpenID Connect that begins at one replica and ends at another."""

from urllib.parse import urlsplit

from chatd.scopes import Role
from chatd.store import users
from tests.integration.chatd.http.site import API
from tests.integration.chatd.http.test_oidc import Browser
from tests.integration.chatd.replicas.conftest import NewReplica
from tests.support.oidc_provider import CLIENT, SECRET, lying

PUBLIC = "http://127.0.0.1:9"


async def test_a_login_ends_at_another_replica_and_works_once(new_replica: NewReplica) -> None:
    """Issue 10: nothing of it is in one process's memory, nor that it was used."""
    async with lying(f"{PUBLIC}/login/oidc/callback") as provider:
        provider.reuses_codes = True
        wish = {
            "public_url": PUBLIC,
            "oidc_issuer": provider.issuer,
            "oidc_client_id": CLIENT,
            "oidc_client_secret": SECRET,
        }
        first, second = await new_replica(**wish), await new_replica(**wish)
        await first.store.write(users.create_user, "ann", Role.MEMBER, now=first.store.now())
        begun, ended, again = (Browser(site, provider) for site in (first, second, first))
        back = urlsplit(await provider.log_in(await begun.begin(), "ann"))
        ended.cookies, again.cookies = dict(begun.cookies), dict(begun.cookies)
        place = f"{back.path}?{back.query}"
        status, _ = await ended.get(place)
        replayed, _ = await again.get(place)
        session = {"Cookie": f"agentd_session={ended.cookies['agentd_session']}"}

        assert (status, replayed) == (303, 401)
        assert await first.status("GET", f"{API}/me", session) == 200
