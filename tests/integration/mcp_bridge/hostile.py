"""
A server that does everything wrong that servers in the field do. Standard library only: it starts fast.

HOSTILE holds words: noise, silent, stubborn, old, picky, many, pages, liar, start-fork.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

MODES = set(os.environ.get("HOSTILE", "").split())
TOOLS: list[dict[str, Any]] = [
    {"name": name, "inputSchema": {"type": "object"}}
    for name in (
        "echo", "hang", "giant", "exit", "fork", "slow", "lie", "sample", "elicit", "cancelled", "grow",
        "pid", "env", "fail", "deaf",
    )
]  # fmt: skip
cancelled: list[Any] = []
answers: dict[str, Any] = {}
answered = threading.Condition()
out = threading.Lock()


def send(message: dict[str, Any]) -> None:
    """One line."""
    with out:
        sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        sys.stdout.buffer.flush()


def raw(data: bytes) -> None:
    """Bytes that are no message."""
    with out:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def start_grandchild() -> int:
    """A process in a session of its own, that ignores a polite request."""
    code = "import signal,time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
    argv = [sys.executable, "-c", code]
    child = subprocess.Popen(argv, start_new_session=True, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    return child.pid


def ask(method: str, params: dict[str, Any]) -> Any:
    """A request to the client, and its answer."""
    request_id = f"s-{method}"
    send({"id": request_id, "method": method, "params": params})
    with answered:
        answered.wait_for(lambda: request_id in answers, 30)
        return answers.get(request_id)


def call(request_id: Any, params: dict[str, Any]) -> None:
    """Run a tool in a thread of its own."""
    name, arguments = params["name"], params.get("arguments") or {}
    token = (params.get("_meta") or {}).get("progressToken")
    result = RUN.get(name, RUN["echo"])(arguments, token)
    if isinstance(result, str):
        result = {"content": [{"type": "text", "text": result}]}
    if result is not None:
        send({"id": request_id, "result": result})


def work(arguments: dict[str, Any], token: Any) -> str:
    """Take a while, and say so."""
    for step in range(int(arguments["steps"])):
        time.sleep(arguments.get("pause_s", 0.05))
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": step}})
    return "done"


def grow() -> str:
    """One more tool."""
    TOOLS.append({"name": f"grown{len(TOOLS)}", "inputSchema": {"type": "object"}})
    send({"method": "notifications/tools/list_changed"})
    return "grown"


LIE = {"content": [{"type": "hologram"}, 7, {"type": "text"}], "structuredContent": [1], "isError": "no"}
FORM = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
# What each tool does; None: no answer ever.
RUN: dict[str, Any] = {
    "echo": lambda arguments, _: json.dumps(arguments),
    "hang": lambda *_: None,
    "giant": lambda arguments, _: "x" * int(arguments["bytes"]),
    "exit": lambda *_: os._exit(7),
    "fork": lambda *_: str(start_grandchild()),
    "slow": work,
    "lie": lambda *_: LIE,
    "sample": lambda *_: json.dumps(ask("sampling/createMessage", {"messages": [], "maxTokens": 1})),
    "elicit": lambda *_: json.dumps(ask("elicitation/create", FORM)),
    "cancelled": lambda *_: json.dumps(cancelled),
    "grow": lambda *_: grow(),
    "pid": lambda *_: str(os.getpid()),
    "env": lambda arguments, _: os.environ.get(arguments["name"], ""),
    "fail": lambda *_: {"content": [{"type": "text", "text": "it failed"}], "isError": True},
}


def listing(params: dict[str, Any]) -> dict[str, Any]:
    """All tools, or pages of them, or a cursor that never ends."""
    tools = list(TOOLS)
    if "liar" in MODES:
        tools += [
            {"name": "bad", "inputSchema": False},
            {"name": "loop", "inputSchema": {"$ref": "#"}},
            "x",
            {},
        ]
        tools += [
            {"name": "odd", "inputSchema": {"type": "object"}, "outputSchema": {"type": "string"}, "title": 7}
        ]
    if "many" in MODES:
        tools += [{"name": f"t{number}", "inputSchema": {"type": "object"}} for number in range(10_000)]
    if "pages" in MODES:
        at = int(params.get("cursor") or 0)
        return {"tools": tools[at : at + 5], "nextCursor": str(at + 5 if at + 5 < len(tools) else at)}
    return {"tools": tools}


def serve(message: dict[str, Any]) -> None:
    """One message of the client."""
    method, request_id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if "silent" in MODES:
        return
    if "picky" in MODES and method != "initialize" and not initialized:
        os._exit(9)
    match method:
        case "initialize":
            initialized.append(True)
            version = "2024-11-05" if "old" in MODES else params["protocolVersion"]
            info = {"name": "hostile", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            send({"id": request_id, "result": {
                "protocolVersion": version, "capabilities": capabilities, "serverInfo": info}})  # fmt: skip
        case "tools/list":
            send({"id": request_id, "result": listing(params)})
        case "tools/call":
            if params["name"] == "deaf":
                time.sleep(600)
            threading.Thread(target=call, args=(request_id, params), daemon=True).start()
        case "notifications/cancelled":
            cancelled.append(params.get("requestId"))
        case None:
            with answered:
                answers[request_id] = message.get("error") or message.get("result")
                answered.notify_all()
        case _ if request_id is not None:
            send({"id": request_id, "error": {"code": -32601, "message": "unknown method"}})


initialized: list[bool] = []
if "stubborn" in MODES:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "start-fork" in MODES:
    sys.stderr.write(f"grandchild {start_grandchild()}\n")
if "noise" in MODES:
    raw(b'Welcome to my server!\n\xff\xfe\x00 not text\n\n{"half": \n[1,2]\n"word"\n')
    sys.stderr.write("a warning with s3cret-value\n")
    sys.stderr.flush()
for line in sys.stdin.buffer:
    if "noise" in MODES:
        raw(b"debug: got something\r\n")
    serve(json.loads(line))
if "stubborn" in MODES:
    time.sleep(600)
