"""Any MCP client -> the worker: our memory as tools, over stdin and stdout."""
