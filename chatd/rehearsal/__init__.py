"""
The rehearsal model: a stand-in that needs no key.

It speaks the vendors' wire protocols, so the vendors' own SDKs talk to it, and
follows a scenario file or a small imperative language. It works at a real
desktop by reading the terminal off the screenshots.
"""

from chatd.rehearsal.engine import MODEL
from chatd.rehearsal.scenario import Scenario
from chatd.rehearsal.server import RehearsalServer, create_app

__all__ = ["MODEL", "RehearsalServer", "Scenario", "create_app"]
