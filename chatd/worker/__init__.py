"""Acquires runnable chats and drives each to the end of its turn."""
