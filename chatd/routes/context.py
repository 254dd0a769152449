"""What every route reaches, by typed application keys."""

from aiohttp import web

from chatd.errors import AdminOnly, Forbidden
from chatd.scopes import Role, Scope
from chatd.settings import ChatdSettings
from chatd.store.accounts import Identity
from chatd.worker.services import Services

__all__ = ["IDENTITY", "SERVICES", "SETTINGS", "identity", "is_admin", "require_admin", "services"]

SERVICES: web.AppKey[Services] = web.AppKey("services", Services)
SETTINGS: web.AppKey[ChatdSettings] = web.AppKey("settings", ChatdSettings)
IDENTITY = web.RequestKey("identity", Identity)


def services(request: web.Request) -> Services:
    """The control plane's parts."""
    return request.app[SERVICES]


def identity(request: web.Request) -> Identity:
    """Who asks; set by the authentication middleware."""
    return request[IDENTITY]


def is_admin(request: web.Request) -> bool:
    """Whether the caller administers the deployment: by role, or named in CHATD_ADMINS."""
    who = identity(request)
    return who.role is Role.ADMIN or who.user_name in request.app[SETTINGS].admins


def require_admin(request: web.Request) -> None:
    """
    See that the caller may change what holds for everybody.

    Raises:
        AdminOnly: the caller is no administrator.
        Forbidden: the token is not good for that.
    """
    if not is_admin(request):
        raise AdminOnly("only an administrator of this deployment may do that")
    if not identity(request).has(Scope.ADMIN):
        raise Forbidden("this token lacks the scope 'admin'")
