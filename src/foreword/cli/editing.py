"""A memory -> a text for an editor; what was saved of it -> what is to be different."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from foreword.errors import BadRequest, ForewordError

LINES = ("title", "why", "fixed_by", "tags", "files", "functions", "kind", "scope", "confidence")
LISTS = ("tags", "files", "functions")
BODY = "---"  # what follows this line is the body
ABOUT = """\
# {id}: lines that begin with # are left out; lists have commas between their entries; what follows --- is the body.
# Save it to revise the memory. Leave it as it is to change nothing.
"""


def form(memory: Mapping[str, Any]) -> str:
    """A memory as a text that a person can change."""
    told = {name: _shown(memory, name) for name in LINES}
    lines = "".join(f"{name.replace('_', ' ')}: {text}\n" for name, text in told.items())
    return f"{ABOUT.format(id=memory['id'])}{lines}{BODY}\n{memory['body']}\n"


def read(text: str, *, memory: Mapping[str, Any]) -> dict[str, Any]:
    """What a saved form says otherwise than the memory; a line that is none of the form's is a BadRequest."""
    head, mark, body = f"\n{text}".partition(f"\n{BODY}\n")
    told: dict[str, Any] = {}
    for line in head.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, value = line.partition(":")
        name = name.strip().replace(" ", "_")
        if not colon or name not in LINES:
            raise BadRequest(
                f"{line[:60]!r} is no line of the form", hint="nothing was changed; write longer text below ---"
            )
        told[name] = value.strip()
    changed = {name: _meant(name, text) for name, text in told.items() if text != _shown(memory, name)}
    if mark and body.strip("\n") != memory["body"].strip("\n"):
        changed["body"] = body.strip("\n")
    return changed


def edited(text: str, *, environ: Mapping[str, str], folder: Path) -> str:
    """*text* as the user's editor leaves it; the file lies in *folder*, for the user alone, and is gone afterwards."""
    editor = shlex.split(environ.get("VISUAL") or environ.get("EDITOR") or "vi")
    number, path = tempfile.mkstemp(prefix="revise-", suffix=".txt", dir=folder)
    try:
        with open(number, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        ended = subprocess.run([*editor, path], check=False)  # noqa: S603 - the user's own editor
        if ended.returncode:
            raise ForewordError(f"{editor[0]} ended with {ended.returncode}", hint="nothing was changed; try again")
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            return file.read()
    except OSError as exc:
        raise ForewordError(f"{editor[0]} cannot be run: {exc.strerror}", hint="set EDITOR, or use options") from exc
    finally:
        with suppress(OSError):
            os.unlink(path)


def _shown(memory: Mapping[str, Any], name: str) -> str:
    if name in ("why", "fixed_by"):
        return _line(memory["detail"].get(name) or "")
    if name in LISTS:
        return _line(", ".join(memory[name]))
    if name == "scope":
        return "project" if memory["scope"].startswith("project:") else str(memory["scope"])
    return f"{memory[name]:g}" if name == "confidence" else _line(memory[name])


def _line(told: object) -> str:
    return " ".join(told.split()) if isinstance(told, str) else ""


def _meant(name: str, text: str) -> Any:
    if name in LISTS:
        return [each.strip() for each in text.split(",") if each.strip()]
    if name == "confidence":
        try:
            return float(text)
        except ValueError as exc:
            raise BadRequest("confidence must be a number from 0 to 1", hint="nothing was changed") from exc
    return text
