"""The workspace's desktop as an MCP server, over stdio and HTTP: any MCP client can drive it."""
