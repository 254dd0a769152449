"""What every route reaches, by typed application keys."""

from aiohttp import web

from chatd.settings import ChatdSettings
from chatd.store.accounts import Identity
from chatd.worker.services import Services

__all__ = ["IDENTITY", "SERVICES", "SETTINGS", "identity", "services"]

SERVICES: web.AppKey[Services] = web.AppKey("services", Services)
SETTINGS: web.AppKey[ChatdSettings] = web.AppKey("settings", ChatdSettings)
IDENTITY = web.RequestKey("identity", Identity)


def services(request: web.Request) -> Services:
    """The control plane's parts."""
    return request.app[SERVICES]


def identity(request: web.Request) -> Identity:
    """Who asks; set by the authentication middleware."""
    return request[IDENTITY]
