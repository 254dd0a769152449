"""Resolves, watches and pushes the workspace's context: AGENTS.md, skills, MCP config."""
