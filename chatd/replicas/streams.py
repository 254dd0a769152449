"""
Desktop streams that a workspace dials back to another replica than the one that asked for them.

A stream's id begins with the id of the replica that made it up, so whoever is dialled knows whose it is
and hands the bytes on.
"""

import asyncio
from uuid import UUID

import aiohttp
from aiohttp import WSCloseCode, web

from chatd.agents.copying import copy
from chatd.agents.streams import STREAM_SILENCE_S
from chatd.errors import NotFound
from chatd.replicas.dialling import dial
from chatd.replicas.links import RemoteAgents
from chatd.replicas.membership import Membership

__all__ = ["owner_of", "pass_on", "stream_prefix"]


def stream_prefix(membership: Membership) -> str:
    """What ids of our streams begin with."""
    return f"{membership.replica_id.hex}."


def owner_of(stream_id: str) -> UUID | None:
    """The replica that made *stream_id* up; None when none did."""
    head, dot, _ = stream_id.partition(".")
    try:
        return UUID(hex=head) if dot else None
    except ValueError:
        return None


async def pass_on(
    request: web.Request, agents: RemoteAgents, membership: Membership, agent_id: UUID, stream_id: str
) -> web.WebSocketResponse:
    """
    Carry a stream to the replica that asked for it, until either side ends.

    Raises:
        NotFound: that one does not live, or does not wait for it.
    """
    owner = owner_of(stream_id)
    if owner is None:
        raise NotFound("nobody waits for this stream")
    path, query = f"/streams/{stream_id}", {"agent_id": str(agent_id)}
    try:
        async with asyncio.timeout(10):
            there = await dial(
                agents.session, membership, owner, path, max_bytes=0, query=query, autoping=False
            )
    except (aiohttp.ClientError, OSError, TimeoutError) as exc:
        raise NotFound("nobody waits for this stream") from exc
    async with there:
        here = web.WebSocketResponse(
            max_msg_size=0, compress=False, receive_timeout=STREAM_SILENCE_S, autoping=False
        )
        await here.prepare(request)
        loop = asyncio.get_running_loop()
        tasks = [
            loop.create_task(copy(here, there, "the desktop ended the stream")),
            loop.create_task(copy(there, here, "the viewer left")),
        ]
        code, reason = int(WSCloseCode.GOING_AWAY), "the server is going away"
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            ending = done.pop().result()
            code, reason = ending.code, ending.reason
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for side in (here, there):
                await side.close(code=code, message=reason.encode()[:123])
    return here
