"""The ``agentd`` command."""

from agentd.cli.app import main

__all__ = ["main"]
