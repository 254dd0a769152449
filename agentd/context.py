"""The workspace's context as the daemon has it: where it looks, and how a push goes over the link."""

from pathlib import Path

from agentd.settings import AgentdSettings
from agentd.wire.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, REFUSED
from agentd.wire.peer import JsonRpcPeer, RpcError
from context_push.errors import PushRefused, PushUnavailable
from context_push.manager import ContextManager
from context_push.push import Pusher
from context_push.sources import Sources
from context_push.wire.push import CONTEXT_PUSH, ContextPush, PushAnswer

__all__ = ["make_context", "push_context"]

# Seconds for the control plane to take a push: one transaction over every chat of the workspace.
PUSH_TIMEOUT_S = 30.0


def make_context(settings: AgentdSettings) -> ContextManager:
    """The context of this daemon's user."""
    sources = Sources(
        home=Path.home(), working_dir=settings.working_dir.absolute(), seeds=settings.context_sources
    )
    return ContextManager(sources)


async def push_context(context: ContextManager, peer: JsonRpcPeer) -> None:
    """
    Push over one connection until it ends, or until the control plane takes no pushes.

    Raises:
        LinkLost: the connection ended.
    """

    async def send(push: ContextPush) -> PushAnswer:
        try:
            return await peer.call(CONTEXT_PUSH, push, PushAnswer, timeout_s=PUSH_TIMEOUT_S)
        except RpcError as exc:
            return _rejection(exc)
        except TimeoutError as exc:
            raise PushUnavailable(f"no answer within {PUSH_TIMEOUT_S:g} s") from exc

    await Pusher(context, send).run()


def _rejection(exc: RpcError) -> PushAnswer:
    """What an error means: never, not this one, or not now."""
    if exc.rpc_code == METHOD_NOT_FOUND:
        raise PushRefused(exc.message) from exc
    if exc.rpc_code in {INVALID_PARAMS, REFUSED}:
        return PushAnswer(accepted=False, reason=exc.message)
    raise PushUnavailable(exc.message) from exc
