"""The API's description, OpenAPI 3.1, made of the routes and of what stands beside their handlers."""

import html
import inspect
import re
from typing import Any, get_args

from aiohttp import hdrs, web
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from agentd.wire.version import VERSION
from chatd.model_wire import OverrideContext
from chatd.routes.describe import Operation, operation_of

__all__ = ["build_openapi", "routes"]

REF = "#/components/schemas/{model}"
ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["message", "code"],
    "properties": {
        "message": {"type": "string"},
        "code": {"type": "string"},
        "detail": {"type": "string"},
        "spent_micros": {"type": "integer"},
        "limit_micros": {"type": "integer"},
        "resets_at": {"type": "string", "format": "date-time"},
    },
}
# What every route may answer.
COMMON = {
    400: "the request makes no sense",
    401: "no valid token",
    403: "not from our own page, for administrators, or not within the token's scopes",
    429: "too many requests: Retry-After says when to come back",
}
ID_TYPES: dict[str, dict[str, Any]] = {
    "chat_id": {"type": "string", "format": "uuid"},
    "file_id": {"type": "string", "format": "uuid"},
    "message_id": {"type": "integer", "minimum": 0},
    "queued_id": {"type": "integer", "minimum": 0},
    "context": {"type": "string", "enum": list(get_args(OverrideContext))},
}

routes = web.RouteTableDef()


def build_openapi(router: web.UrlDispatcher) -> dict[str, Any]:
    """The whole document, for the routes that are described (aiohttp's HEADs go with their GETs)."""
    found = [
        (resource.canonical, route.method.lower(), route.handler, operation)
        for resource in router.resources()
        for route in resource
        if (operation := operation_of(route.handler)) is not None and route.method != hdrs.METH_HEAD
    ]
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {"Error": ERROR}
    for path, method, handler, operation in found:
        paths.setdefault(path, {})[method] = _operation(path, method, handler, operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "chatd", "version": VERSION, "description": "Durable chats with model vendors."},
        "security": [{"bearer": []}, {"session": []}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "agentd_session"},
            },
        },
    }


def _operation(
    path: str, method: str, handler: object, operation: Operation, schemas: dict[str, Any]
) -> dict[str, Any]:
    text = inspect.getdoc(handler) or ""
    document: dict[str, Any] = {
        "operationId": getattr(handler, "__name__", method),
        "summary": text.split("\n\n")[0].replace("\n", " "),
        "parameters": _path_parameters(path) + _query_parameters(operation, schemas),
        "responses": _responses(path, operation, schemas),
    }
    if operation.body is not None:
        schema = _schema(operation.body, schemas, mode="validation")
        document["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    elif operation.raw_body:
        # Bytes of that type have no schema.
        content: dict[str, Any] = {media_type: {} for media_type in operation.raw_body}
        document["requestBody"] = {"required": True, "content": content}
    return document


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": ID_TYPES.get(name, {"type": "string"})}
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _query_parameters(operation: Operation, schemas: dict[str, Any]) -> list[dict[str, Any]]:
    if operation.query is None:
        return []
    schema = operation.query.model_json_schema(ref_template=REF)
    schemas.update(schema.get("$defs", {}))
    return [
        {"name": name, "in": "query", "required": False, "schema": value}
        for name, value in schema["properties"].items()
    ]


def _responses(path: str, operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "done"}
    if operation.is_stream:
        # Over a WebSocket it has no media type; each of its models is a schema all the same.
        success["content"] = {"text/event-stream": {"schema": {"type": "string"}}}
        schema = _schema(operation.answer, schemas, mode="serialization")
        if "oneOf" in schema:
            schemas["StreamEvent"] = schema
    elif operation.media_type is not None:
        success["content"] = {"*/*": {}}
    elif operation.answer is not None:
        schema = _schema(operation.answer, schemas, mode="serialization")
        success["content"] = {"application/json": {"schema": schema}}
    errors = COMMON | ({404: "no such thing, or not yours"} if "{" in path else {}) | dict(operation.errors)
    error = {"application/json": {"schema": {"$ref": REF.format(model="Error")}}}
    answers = {str(status): {"description": text, "content": error} for status, text in errors.items()}
    return {str(operation.status): success} | dict(sorted(answers.items()))


def _schema(kind: Any, schemas: dict[str, Any], *, mode: Any) -> dict[str, Any]:  # noqa: ANN401 -- types
    if inspect.isclass(kind) and issubclass(kind, BaseModel):
        refs, document = models_json_schema([(kind, mode)], ref_template=REF)
        schemas.update(document.get("$defs", {}))
        return dict(refs[kind, mode])
    schema = TypeAdapter(kind).json_schema(ref_template=REF, mode=mode)
    schemas.update(schema.pop("$defs", {}))
    return schema


@routes.get("/api/openapi.json")
async def openapi(request: web.Request) -> web.Response:
    """The description itself; it tells nothing that the source does not."""
    return web.json_response(build_openapi(request.app.router))


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>chatd API</title>
<style>body{{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem}}
code{{background:#8882;padding:.1em .3em}}td{{padding:.2em .8em .2em 0;vertical-align:top}}</style>
<h1>chatd API</h1><p>The whole of it, for machines: <a href="/api/openapi.json">openapi.json</a>.</p>
<table>{rows}</table></html>
"""


@routes.get("/api/docs")
async def docs(request: web.Request) -> web.Response:
    """The description for people: a table without scripts."""
    document = build_openapi(request.app.router)
    rows = [
        f"<tr><td><code>{method.upper()}</code></td><td><code>{html.escape(path)}</code></td>"
        f"<td>{html.escape(operation['summary'])}</td>"
        f"<td>{html.escape(', '.join(operation['responses']))}</td></tr>"
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    response = web.Response(text=PAGE.format(rows="\n".join(rows)), content_type="text/html")
    response.headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'"
    return response
