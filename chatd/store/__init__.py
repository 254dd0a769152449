"""Chats in a database. The unit of writing is a transition."""
