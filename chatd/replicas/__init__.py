"""Processes that share a database: who lives, hints, parts, and workspaces that are linked elsewhere."""
