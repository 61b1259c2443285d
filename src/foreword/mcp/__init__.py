"""Serve the memory as MCP tools over stdin and stdout, to any MCP client."""
