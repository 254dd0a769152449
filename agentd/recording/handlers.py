"""The link's methods for recordings."""

from typing import Any

from agentd.recording.recordings import Recordings
from agentd.wire.peer import Handler
from agentd.wire.recordings import (
    RECORDINGS_LIST,
    RECORDINGS_READ,
    RECORDINGS_START,
    RECORDINGS_STOP,
    RecordingInfo,
    RecordingList,
    RecordingPiece,
    RecordingReadParams,
    RecordingStartParams,
    RecordingStopParams,
    RecordingStopped,
)

__all__ = ["recording_handlers"]


def recording_handlers(recordings: Recordings) -> dict[str, Handler]:
    """Methods by name, answered by *recordings*."""

    async def start(params: dict[str, Any]) -> RecordingInfo:
        wish = RecordingStartParams.model_validate(params)
        return await recordings.start(
            wish.id, desktop=wish.desktop, chat_id=wish.chat_id, agent_chat_id=wish.agent_chat_id
        )

    async def stop(params: dict[str, Any]) -> RecordingStopped:
        wish = RecordingStopParams.model_validate(params)
        return await recordings.stop(wish.id, settle_s=wish.settle_s)

    async def every(_: dict[str, Any]) -> RecordingList:
        return RecordingList(recordings=await recordings.every())

    async def read(params: dict[str, Any]) -> RecordingPiece:
        wish = RecordingReadParams.model_validate(params)
        return await recordings.read(wish.id, wish.offset, wish.length)

    return {
        RECORDINGS_START: start,
        RECORDINGS_STOP: stop,
        RECORDINGS_LIST: every,
        RECORDINGS_READ: read,
    }
