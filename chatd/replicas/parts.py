"""
Fragments between replicas: whoever drives a chat has them, whoever is asked by a watcher copies them.

One WebSocket between two replicas carries those of all chats that are watched here and driven there,
each chat's once, however many watch. Frames of the watching side: ``{"watch": [chat, …]}`` and
``{"unwatch": […]}``; of the driving side: arrays of fragments. A chat that is watched (again) is told from
the first fragment of its current episode; fragments have episode and seq, so nothing is taken twice.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from uuid import UUID

import aiohttp
import structlog
from aiohttp import WSMsgType, web
from pydantic import TypeAdapter, ValidationError

from chatd.constants import COALESCE_S, MAX_BATCH, MAX_EPISODE_BYTES
from chatd.replicas.dialling import HEARTBEAT_S, Pauses, dial
from chatd.replicas.membership import Membership
from chatd.stream.buffer import Episode, PartBuffer
from chatd.stream.hub import Gathering, Hub
from chatd.wire import MessagePartEvent

__all__ = ["MAX_WATCHED", "PartRelay", "serve_parts"]

# Chats that one other replica may watch here.
MAX_WATCHED = 50_000
# Bytes of a frame of ids, and of one of fragments: 256 of them, an episode's worth at most, and their commas.
MAX_WISH_BYTES = 4 * 1024 * 1024
MAX_FRAME_BYTES = 2 * MAX_EPISODE_BYTES
# Chats named in one frame.
IDS_AT_ONCE = 1_000

_FRAGMENTS = TypeAdapter(list[MessagePartEvent])
log = structlog.get_logger("chatd.parts")


# -- the side that has them ------------------------------------------------------


async def serve_parts(request: web.Request, hub: Hub, buffer: PartBuffer) -> web.WebSocketResponse:
    """Tell another replica the fragments of the chats that it names, until either side ends."""
    websocket = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=MAX_WISH_BYTES, compress=False)
    await websocket.prepare(request)
    told: dict[UUID, tuple[Episode, int]] = {}
    with hub.gather() as watched:
        sender = asyncio.get_running_loop().create_task(_tell(websocket, watched, buffer, told))
        try:
            async for message in websocket:
                if message.type is not WSMsgType.TEXT or not _follow(message.data, watched, told):
                    break
        finally:
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)
            await websocket.close()
    return websocket


def _follow(text: str, watched: Gathering, told: dict[UUID, tuple[Episode, int]]) -> bool:
    """Watch what *text* names, from its beginning, or no longer; False when that makes no sense."""
    try:
        wish = json.loads(text)
        wanted = [UUID(one) for one in wish.get("watch", ())]
        unwanted = [UUID(one) for one in wish.get("unwatch", ())]
    except (ValueError, TypeError, AttributeError):
        return False
    for chat_id in unwanted:
        watched.remove(chat_id)
        told.pop(chat_id, None)
    if len(watched) + len(wanted) > MAX_WATCHED:
        return False
    for chat_id in wanted:
        told.pop(chat_id, None)
        watched.add(chat_id)
    return True


async def _tell(
    websocket: web.WebSocketResponse,
    watched: Gathering,
    buffer: PartBuffer,
    told: dict[UUID, tuple[Episode, int]],
) -> None:
    """Send what is new of the chats that were touched; a slow reader holds up nobody but itself."""
    with suppress(ConnectionError):
        while True:
            await watched.wait()
            for chat_id in watched.take_touched():
                while fragments := _fresh(buffer.written_here(chat_id), chat_id, told):
                    await websocket.send_str("[" + ",".join(one.to_json() for one in fragments) + "]")
            # Those that follow go together.
            await asyncio.sleep(COALESCE_S)


def _fresh(
    episode: Episode | None, chat_id: UUID, told: dict[UUID, tuple[Episode, int]]
) -> list[MessagePartEvent]:
    """The next fragments that were not told, of whatever episode is written now."""
    if episode is None:
        return []
    known, count = told.get(chat_id, (None, 0))
    if known is not episode:
        count = 0
    fragments = episode.fragments[count : count + MAX_BATCH]
    told[chat_id] = (episode, count + len(fragments))
    return fragments


# -- the side that wants them ----------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Watched:
    """A chat that is watched here: by how many, and who drives it as of which version."""

    watchers: int = 0
    worker_id: UUID | None = None
    snapshot_version: int = -1


@dataclass(slots=True, kw_only=True)
class _Feed:
    """What we want of one other replica; *news*: wishes that were not sent yet, by whether we want it."""

    chats: set[UUID] = field(default_factory=set)
    news: dict[UUID, bool] = field(default_factory=dict)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def wish(self, chat_id: UUID, *, is_wanted: bool) -> None:
        (self.chats.add if is_wanted else self.chats.discard)(chat_id)
        self.news[chat_id] = is_wanted
        self.wake.set()


class PartRelay:
    """
    Copies fragments of chats that other replicas drive into this process's buffer.

    Invariant: each chat that is watched here is wanted of the one replica that drives it, or of none.
    """

    def __init__(self, membership: Membership, buffer: PartBuffer) -> None:
        self._membership = membership
        self._buffer = buffer
        self._watched: dict[UUID, _Watched] = {}
        self._feeds: dict[UUID, _Feed] = {}
        self._session: aiohttp.ClientSession | None = None
        membership.on_change.append(self._drop_gone)

    def watching(self, chat_id: UUID) -> AbstractContextManager[None]:
        """Somebody watches the chat."""
        return self._watching(chat_id)

    @contextmanager
    def _watching(self, chat_id: UUID) -> Iterator[None]:
        watched = self._watched.setdefault(chat_id, _Watched())
        watched.watchers += 1
        try:
            yield
        finally:
            watched.watchers -= 1
            if not watched.watchers:
                del self._watched[chat_id]
                self._point(chat_id, watched, None)
                self._buffer.drop_copy(chat_id)

    def aim(self, chat_id: UUID, worker_id: UUID | None, snapshot_version: int) -> None:
        """As of that version the chat is driven by *worker_id*; what a slower watcher knows is older."""
        watched = self._watched.get(chat_id)
        if watched is None or snapshot_version < watched.snapshot_version:
            return
        watched.snapshot_version = snapshot_version
        self._point(chat_id, watched, worker_id)

    def _point(self, chat_id: UUID, watched: _Watched, worker_id: UUID | None) -> None:
        if worker_id == self._membership.replica_id:
            worker_id = None
        if worker_id == watched.worker_id:
            return
        if watched.worker_id is not None and watched.worker_id in self._feeds:
            self._feeds[watched.worker_id].wish(chat_id, is_wanted=False)
        watched.worker_id = worker_id
        if worker_id is not None:
            self._feed(worker_id).wish(chat_id, is_wanted=True)

    def _feed(self, replica_id: UUID) -> _Feed:
        feed = self._feeds.get(replica_id)
        if feed is None:
            feed = self._feeds[replica_id] = _Feed()
            name = f"parts of {replica_id}"
            feed.task = asyncio.get_running_loop().create_task(self._keep(replica_id, feed), name=name)
        return feed

    def _drop_gone(self) -> None:
        """Nothing comes from replicas that are gone; who drives their chats next is in the rows."""
        for replica_id in [one for one in self._feeds if one not in self._membership.addresses]:
            feed = self._feeds[replica_id]
            if not feed.chats and feed.task is not None:
                feed.task.cancel()
                del self._feeds[replica_id]

    async def close(self) -> None:
        """End every connection."""
        tasks = [feed.task for feed in self._feeds.values() if feed.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._feeds.clear()
        if self._session is not None:
            await self._session.close()

    async def _keep(self, replica_id: UUID, feed: _Feed) -> None:
        """Be connected for as long as something is wanted of that replica."""
        pauses = Pauses()
        while True:
            while not feed.chats:
                feed.wake.clear()
                feed.news.clear()
                await feed.wake.wait()
            try:
                await self._copy_from(replica_id, feed, pauses)
            except (aiohttp.ClientError, OSError, TimeoutError) as exc:
                log.info("no parts", action="parts_lost", replica_id=str(replica_id), reason=str(exc)[:200])
            await asyncio.sleep(pauses.take())

    async def _copy_from(self, replica_id: UUID, feed: _Feed, pauses: Pauses) -> None:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, connect=5))
        websocket = await dial(
            self._session, self._membership, replica_id, "/parts", max_bytes=MAX_FRAME_BYTES
        )
        async with websocket:
            pauses.reset()
            feed.news = dict.fromkeys(feed.chats, True)
            feed.wake.set()
            sender = asyncio.get_running_loop().create_task(_send_wishes(websocket, feed))
            try:
                async for message in websocket:
                    if message.type is not WSMsgType.TEXT:
                        break
                    self._take(message.data, feed)
            finally:
                sender.cancel()
                await asyncio.gather(sender, return_exceptions=True)

    def _take(self, text: str, feed: _Feed) -> None:
        try:
            fragments = _FRAGMENTS.validate_json(text)
        except ValidationError as exc:
            # A newer replica says what we don't know; the message itself will still come.
            log.warning("parts not read", action="parts_unreadable", reason=str(exc)[:200])
            return
        for fragment in fragments:
            if fragment.chat_id in feed.chats and not self._buffer.copy(fragment):
                # We were writing ourselves when it began: from the beginning, please.
                feed.wish(fragment.chat_id, is_wanted=True)
                break


async def _send_wishes(websocket: aiohttp.ClientWebSocketResponse, feed: _Feed) -> None:
    with suppress(ConnectionError):
        while True:
            await feed.wake.wait()
            feed.wake.clear()
            news, feed.news = feed.news, {}
            for name, is_wanted in (("unwatch", False), ("watch", True)):
                ids = [str(chat_id) for chat_id, wish in news.items() if wish is is_wanted]
                for some in _batches(ids):
                    await websocket.send_str(json.dumps({name: some}))


def _batches(ids: list[str]) -> Iterable[list[str]]:
    return (ids[start : start + IDS_AT_ONCE] for start in range(0, len(ids), IDS_AT_ONCE))
