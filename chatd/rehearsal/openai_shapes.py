"""What OpenAI's two APIs have in common: errors, models, and the computer as a function."""

import json
from collections.abc import Sequence

from chatd.rehearsal.codec import ApiError, Json, Stamp
from chatd.rehearsal.conversation import Call, ToolUse

__all__ = ["call_id_of", "error_body", "function_arguments", "model_list", "tool_use"]

_ERROR_TYPES = {401: "invalid_request_error", 403: "permission_error", 429: "rate_limit_error"}
_ERROR_CODES = {
    401: "invalid_api_key",
    404: "model_not_found",
    429: "rate_limit_exceeded",
    500: "server_error",
}


def error_body(error: ApiError) -> Json:
    """An error in the vendor's shape."""
    fallback = "server_error" if error.status >= 500 else "invalid_request_error"
    return {
        "error": {
            "message": error.user_text,
            "type": _ERROR_TYPES.get(error.status, fallback),
            "param": error.param,
            "code": error.reason or _ERROR_CODES.get(error.status),
        }
    }


def model_list(names: Sequence[str]) -> Json:
    """The list of models in the vendor's shape."""
    data = [
        {"id": name, "object": "model", "created": 1_767_225_600, "owned_by": "rehearsal"} for name in names
    ]
    return {"object": "list", "data": data}


def call_id_of(call: Call, stamp: Stamp, index: int) -> str:
    """An id for a call of the reply; carries its marker."""
    return "_".join(filter(None, ["call", call.marker, f"{stamp.nonce}{index}"]))


def function_arguments(call: Call) -> str:
    """A call's arguments as the JSON text of a function call."""
    if not call.actions:
        return json.dumps(call.arguments)
    return json.dumps(
        {"actions": [action.model_dump(mode="json", exclude_none=True) for action in call.actions]}
    )


def tool_use(call_id: str, name: str, arguments: str, where: str) -> ToolUse:
    """
    A function call of an earlier reply.

    Raises:
        ApiError: *arguments* is not the JSON of an object.
    """
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise ApiError(f"{where}: should be JSON", param=where) from error
    if not isinstance(value, dict):
        raise ApiError(f"{where}: should be the JSON of an object", param=where)
    actions = value.get("actions")
    count = len(actions) if name == "computer" and isinstance(actions, list) else 1
    return ToolUse(call_id=call_id, name=name, arguments=value, action_count=count)
