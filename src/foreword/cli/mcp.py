"""stdin of an MCP client -> answers on stdout: the same as the launcher that hosts are given."""

from __future__ import annotations

import typer


def mcp() -> None:
    """Serve this project's memory to an MCP client, over stdin and stdout.

    It is what agents start by themselves; by hand it is of use where a client must be told a command. The worker is
    started when the first tool is called. FOREWORD_PROJECT names the project's folder where a client starts it
    elsewhere.

    \b
    Example:
      claude mcp add foreword -- foreword mcp
    """
    from foreword.mcp.server import main

    raise typer.Exit(main())
