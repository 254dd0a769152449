"""
Film what a desktop agent does while somebody waits for it.

Best effort throughout: whatever goes wrong with a film is logged and never fails the wait. The film of a
child has the child's id, so a wait that is repeated goes on with the same one.
"""

import asyncio
import base64
import binascii
import uuid
from dataclasses import dataclass, field
from typing import Protocol, TypeVar
from uuid import UUID

import structlog
from pydantic import BaseModel

from agentd.wire.recordings import (
    RECORDINGS_READ,
    RECORDINGS_START,
    RECORDINGS_STOP,
    RecordingInfo,
    RecordingPiece,
    RecordingReadParams,
    RecordingStartParams,
    RecordingStopParams,
    RecordingStopped,
)
from chatd.constants import RECORDING_STOP_S
from chatd.store.rows import NewFile
from chatd.wire import Chat

__all__ = ["ChildFilm", "FilmedWorkspace", "Filming"]

T = TypeVar("T", bound=BaseModel)

# Seconds until a desktop that had to be started is filmed.
START_LIMIT_S = 60.0
# Seconds that the workspace may take to speed the stills up before the film is fetched as it is.
SETTLE_S = 20.0
# Bytes of a film that is kept with the chat; a larger one stays in the workspace under its id.
MAX_FILM_BYTES = 32 * 2**20
# Films that are fetched at the same time: bounds what they take in memory.
MAX_FETCHES = 4
_fetching = asyncio.Semaphore(MAX_FETCHES)

log = structlog.get_logger("chatd.recording")


class FilmedWorkspace(Protocol):
    """What answers the link's methods."""

    async def ask(
        self, agent_id: UUID, method: str, params: BaseModel, answer: type[T], *, timeout_s: float
    ) -> T:
        """Ask the agent; raises AgentUnavailable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildFilm:
    """What a wait's result says of a film, and the files it names."""

    fields: dict[str, str] = field(default_factory=dict)
    files: tuple[NewFile, ...] = ()


class Filming:
    """
    Films of one workspace's desktop agents.

    Args:
        workspace: where they work.
        agent_id: of its daemon.
    """

    def __init__(self, workspace: FilmedWorkspace, agent_id: UUID) -> None:
        self._workspace, self._agent_id = workspace, agent_id

    async def start(self, child: Chat) -> None:
        """Begin to film, or go on."""
        params = RecordingStartParams(
            id=child.id, chat_id=str(child.root_chat_id), agent_chat_id=str(child.id)
        )
        try:
            await self._workspace.ask(
                self._agent_id, RECORDINGS_START, params, RecordingInfo, timeout_s=START_LIMIT_S
            )
        except Exception as exc:  # noqa: BLE001 -- see the module
            _log_failure("start", child, exc)

    async def stop(self, child: Chat) -> ChildFilm:
        """End the film and fetch it; empty where there is none."""
        try:
            async with asyncio.timeout(RECORDING_STOP_S):
                return await self._stop(child)
        except Exception as exc:  # noqa: BLE001 -- see the module
            _log_failure("stop", child, exc)
            return ChildFilm()

    async def _stop(self, child: Chat) -> ChildFilm:
        stopped = await self._workspace.ask(
            self._agent_id,
            RECORDINGS_STOP,
            RecordingStopParams(id=child.id, settle_s=SETTLE_S),
            RecordingStopped,
            timeout_s=RECORDING_STOP_S,
        )
        fields, files = {"recording_id": str(child.id)}, []
        thumbnail = _file(stopped.thumbnail, "image/jpeg", "recording.jpg")
        if thumbnail is not None:
            fields["thumbnail_file_id"] = str(thumbnail.id)
            files.append(thumbnail)
        if stopped.recording.size_bytes and stopped.recording.size_bytes <= MAX_FILM_BYTES:
            async with _fetching:
                film = await self._fetch(child.id)
            fields["recording_file_id"] = str(film.id)
            files.append(film)
        return ChildFilm(fields=fields, files=tuple(files))

    async def _fetch(self, number: UUID) -> NewFile:
        data = bytearray()
        while True:
            piece = await self._workspace.ask(
                self._agent_id,
                RECORDINGS_READ,
                RecordingReadParams(id=number, offset=len(data)),
                RecordingPiece,
                timeout_s=RECORDING_STOP_S,
            )
            data += base64.b64decode(piece.data, validate=True)
            if len(data) > MAX_FILM_BYTES:
                msg = f"the film grew beyond {MAX_FILM_BYTES} bytes while it was fetched"
                raise ValueError(msg)
            if len(data) >= piece.total_bytes or not piece.data:
                return NewFile(
                    id=uuid.uuid4(), media_type="video/mp4", data=bytes(data), name="recording.mp4"
                )


def _file(text: str | None, media_type: str, name: str) -> NewFile | None:
    if not text:
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return NewFile(id=uuid.uuid4(), media_type=media_type, data=data, name=name)


def _log_failure(what: str, child: Chat, exc: Exception) -> None:
    log.info(
        "film failed",
        action=f"film_{what}_failed",
        chat_id=str(child.id),
        reason=str(exc) or type(exc).__name__,
    )
