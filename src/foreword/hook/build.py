"""Write what agents start: the launchers, hook.py with its settings, and the client that it runs."""

from __future__ import annotations

import hashlib
import os
import py_compile
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from foreword.config import Settings
from foreword.paths import Home, replacing, worker_command

PACKAGE = Path(__file__).resolve().parent.parent
CLIENT = PACKAGE / "hook" / "client.py"
STDIN_SECONDS = 2.0
ALL_SECONDS = 2.0  # then another process goes on; agents wait for five, and to start one may take long by then
LATE_SECONDS = 20.0  # that process


def interpreter() -> str:
    """Return the real interpreter behind a virtual environment: the client needs no packages."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def command(home: Home, *, host: str, event: str) -> list[str]:
    """Return the hook's command line by the interpreter itself; agents get the launcher, whose path is stable."""
    return [interpreter(), "-I", "-S", str(home.hook), "--host", host, event]


def launchers(home: Home) -> dict[Path, str]:
    """Return the two scripts that agents start: they find the interpreter, so that it may move.

    Without the hook or any Python they exit with 0, because exit 2 would block a prompt in some agents.
    """
    hook = LAUNCH_HOOK.format(python=shlex.quote(interpreter()), hook=shlex.quote(str(home.hook)))
    mcp = LAUNCH_MCP.format(
        python=shlex.quote(sys.executable),
        home=shlex.quote(str(home.root)),
        package=shlex.quote(str(PACKAGE.parent)),
        start=shlex.quote(START_MCP),
    )
    return {home.launcher: hook, home.mcp: mcp}


LAUNCH_HOOK = """\
#!/bin/sh
# Written by Foreword, and again whenever it or its Python moves. What your agents run as their hook.
python={python}
[ -x "$python" ] || python=$(command -v python3) || exit 0
[ -r {hook} ] || exit 0
exec "$python" -I -S {hook} "$@"
"""
LAUNCH_MCP = """\
#!/bin/sh
# Written by Foreword, and again whenever it or its Python moves. What your agents run as their MCP server.
python={python}
[ -x "$python" ] || {{ echo "foreword: $python is gone; install Foreword again and run foreword doctor" >&2; exit 1; }}
[ -n "$FOREWORD_HOME" ] || export FOREWORD_HOME={home}
[ -r {package}/foreword/mcp/__main__.py ] || exec "$python" -P -m foreword.mcp
exec "$python" -I -S -c {start} {package}
"""
# Without `site` and what it loads for others: a client waits for this at every start of a session.
START_MCP = "import sys; sys.path.append(sys.argv[1]); from foreword.mcp.__main__ import main; sys.exit(main())"

# The client is a module of its own, because Python keeps the bytecode of modules: compiling it takes 2 ms.
HOOK = """\
# Written by Foreword, and again whenever its settings or its place change.
import sys
sys.path.insert(0, {library!r})
try:
    from foreword_hook import run
except Exception:
    import posix, time
    try:
        with open({problems!r}, "a") as log:
            line = '{{"at":%d,"where":"hook","what":"its client is missing or damaged"}}\\n' % time.time()
            log.write(line if log.tell() < 1 << 18 else "")
    finally:
        posix._exit(0)
run({config!r})
"""


def refresh(home: Home, settings: Settings) -> bool:
    """Write the hook, its client and the launchers where they differ, each atomically; return whether any did."""
    changed = False
    for path, text in files(home, settings).items():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        mode = 0o700 if path in (home.launcher, home.mcp) else 0o600
        changed = _write(path, text.encode(), mode=mode) or changed
    if changed and not sys.dont_write_bytecode:
        with suppress(OSError, py_compile.PyCompileError):
            py_compile.compile(str(home.hook_client), doraise=True)
    return changed


def files(home: Home, settings: Settings, *, worker: list[str] | None = None) -> dict[Path, str]:
    """Return every file that `refresh` writes, with its text; *worker* is another command to start one than ours."""
    if worker is None:
        worker = worker_command() if settings.worker_autostart else []
    return {
        home.hook_client: CLIENT.read_text(encoding="utf-8"),
        home.hook: hook_text(home, config(home, settings, worker=worker)),
        **launchers(home),
    }


def hook_text(home: Home, config: dict[str, Any]) -> str:
    """Return the text of hook.py, which runs the client with *config*."""
    return HOOK.format(library=str(home.hook_client.parent), problems=str(home.trouble), config=config)


def config(home: Home, settings: Settings, *, worker: list[str]) -> dict[str, Any]:
    """Return what the client and the offline path must know."""
    return {
        "package": str(PACKAGE.parent),
        "home": str(home.root),
        "worker": worker,  # the command that starts one; empty where none may be started
        "socket": str(home.socket),
        "problems": str(home.trouble),
        "spool": str(home.spool),
        "stamp": str(home.stamp),
        "start_log": str(home.start_log),
        "head": settings.stdin_head_kb * 1024,
        "tail": settings.stdin_tail_kb * 1024,
        "deadline_prompt": settings.deadline_prompt_ms / 1000,
        "deadline_start": settings.deadline_start_ms / 1000,
        "deadline_huge": settings.deadline_huge_ms / 1000,
        "deadline_stdin": STDIN_SECONDS,
        "deadline_all": ALL_SECONDS,
        "deadline_late": LATE_SECONDS,
    }


def _write(path: Path, data: bytes, *, mode: int) -> bool:
    try:
        if path.read_bytes() == data and path.stat().st_mode & 0o777 == mode:
            return False
    except OSError:
        pass
    with replacing(path, mode=mode) as file:
        file.write(data)
    return True


def fingerprint() -> str:
    """Return a hash that changes whenever any file of the package does: the same version may be another build."""
    seen = hashlib.blake2b(digest_size=8)
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in (".py", ".sql", ".toml", ".txt", ".js", ".md", ".scm"):
            stat = path.stat()
            seen.update(f"{path.relative_to(PACKAGE)} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return seen.hexdigest()
