"""Hosts MCP servers for the workspace and offers their tools."""
