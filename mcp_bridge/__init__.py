"""Hosts MCP servers and offers their tools; knows no daemon."""
