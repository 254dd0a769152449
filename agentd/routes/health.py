"""Local API: whether the daemon lives, and whether each of its parts does what it is there for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from aiohttp import web

__all__ = ["HEALTH", "Health", "Word", "routes"]

# off: nobody wants it.
Word = Literal["ok", "off", "starting", "down", "failed"]
WELL = frozenset({"ok", "off"})

routes = web.RouteTableDef()


@dataclass(frozen=True, slots=True)
class Health:
    """Asks the daemon's parts how they are."""

    look: Callable[[], Mapping[str, Word]]

    @property
    def is_well(self) -> bool:
        """Whether every part does what it should."""
        return WELL.issuperset(self.look().values())


HEALTH: web.AppKey[Health] = web.AppKey("health", Health)


@routes.get("/api/v0/health")
async def alive(_: web.Request) -> web.Response:
    """The process is alive."""
    return web.json_response({"status": "ok"})


@routes.get("/api/v0/health/parts")
async def parts(request: web.Request) -> web.Response:
    """Every part by itself; 503 while one is not well."""
    health = request.app[HEALTH]
    body = {"status": "ok" if health.is_well else "degraded", "checks": dict(health.look())}
    return web.json_response(body, status=200 if health.is_well else 503)
