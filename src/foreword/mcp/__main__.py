"""Run the MCP server: `python -m foreword.mcp`."""

import sys

from foreword.mcp.server import main

sys.exit(main())
