"""At what percentage of a model's window the caller's chats are summarised."""

from uuid import UUID

from aiohttp import web

from chatd.errors import BadRequest, NotFound
from chatd.routes.bodies import Threshold, ThresholdList
from chatd.routes.chats import answer
from chatd.routes.context import identity, services
from chatd.routes.describe import describe
from chatd.routes.errors import read_body
from chatd.store import thresholds

__all__ = ["routes"]

routes = web.RouteTableDef()
PATH = "/api/experimental/chats/config/user-compaction-thresholds"


@routes.get(PATH)
@describe(answer=ThresholdList)
async def list_thresholds(request: web.Request) -> web.Response:
    """Percentages by model; a model that is not listed has its own."""
    user_id = identity(request).user_id
    return answer(
        ThresholdList(thresholds=await services(request).store.read(thresholds.list_thresholds, user_id))
    )


@routes.put(PATH + "/{model_config_id}")
@describe(body=Threshold, status=204)
async def save_threshold(request: web.Request) -> web.Response:
    """Summarise earlier or later with this model; 100: never."""
    model_config_id, wish = _model(request), await read_body(request, Threshold)
    user_id = identity(request).user_id
    await services(request).store.write(
        thresholds.save_threshold, user_id, model_config_id, wish.threshold_percent
    )
    return web.Response(status=204)


@routes.delete(PATH + "/{model_config_id}")
@describe(status=204)
async def delete_threshold(request: web.Request) -> web.Response:
    """Go back to the model's own percentage."""
    user_id = identity(request).user_id
    await services(request).store.write(thresholds.delete_threshold, user_id, _model(request))
    return web.Response(status=204)


def _model(request: web.Request) -> UUID:
    try:
        return services(request).catalog.source(UUID(request.match_info["model_config_id"])).id
    except (ValueError, BadRequest):
        raise NotFound("no such model") from None
