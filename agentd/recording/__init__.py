"""Recordings of the daemon's desktops: who may start them, how long they run, how long they are kept."""

from agentd.recording.handlers import recording_handlers
from agentd.recording.recordings import RecordingLimits, Recordings, make_recordings

__all__ = ["RecordingLimits", "Recordings", "make_recordings", "recording_handlers"]
