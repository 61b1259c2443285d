"""Remove from a home what is now known to be secret: from the database, logs, spooled hook calls and backups."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foreword.encoding import decoded
from foreword.hook import spool
from foreword.paths import Home
from foreword.redact import redact, redact_all
from foreword.redact.files import without_denied
from foreword.store import Store
from foreword.store.maintenance import Rewritten, rewrite_backup
from foreword.store.sql import as_json

FILES = "logs and spool"


@dataclass(frozen=True)
class Cleaner:
    """Takes secrets out: by the rules of today, files that are denied, and values that a caller knows."""

    deny: tuple[str, ...] = ()
    hide: Callable[[str], str] = str

    def text(self, text: str) -> str:
        """Clean a text, which may be JSON that holds texts."""
        if text[:1] in ("{", "["):
            with suppress(ValueError, RecursionError):
                clean = redact_all(without_denied(json.loads(self.hide(text)), deny=self.deny))
                return text if clean == json.loads(text) else as_json(clean)
        return redact(self.hide(text))

    def cell(self, _table: str, column: str, text: str, _row: Mapping[str, Any]) -> str:
        """Clean a text of a row; a project's key, which capture may have hashed, stays different from any other."""
        if column not in ("project", "scope"):
            return self.text(text)
        key = text.removeprefix("project:")
        clean = redact(self.hide(key))
        digest = hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=6).hexdigest()
        return text if clean == key else f"{text.removesuffix(key)}{clean}#{digest}"


def scrub(store: Store, home: Home, *, cleaner: Cleaner, dry_run: bool) -> dict[str, Any]:
    """Clean everything, and rewrite every file that could still hold an old byte; return what was found where.

    Begun again after an interruption, it finds what is left.
    """
    result = store.maintenance.rewrite(cleaner.cell, dry_run=dry_run)
    parts = {FILES: rewrite_files(home, cleaner.text, dry_run=dry_run)}
    for path in sorted(home.backups.glob("*.db")):
        parts[f"backups/{path.name}"] = rewrite_backup(path, cleaner.cell, dry_run=dry_run)
    for name, part in parts.items():
        result.seen[name] += part.seen.total()
        result.changed[name] += part.changed.total()
        result.kinds += part.kinds
    if not dry_run:
        store.maintenance.sweep()
    tables = {name: {"seen": seen, "changed": result.changed[name]} for name, seen in result.seen.items() if seen}
    return {"tables": tables, "kinds": dict(sorted(result.kinds.items())), "dry_run": dry_run}


def rewrite_files(home: Home, clean: Callable[[str], str], *, dry_run: bool = False) -> Rewritten:
    """Clean the logs, and the hook calls that could not be stored."""
    result = Rewritten()

    def cleaned(texts: list[str]) -> list[str] | None:
        """Return the texts, cleaned, where they are to be written again."""
        after = [clean(text) for text in texts]
        for text, new in zip(texts, after, strict=True):
            result.add(FILES, text, new)
        return None if dry_run or after == texts else after

    for path in sorted(home.logs.glob("*")):
        with suppress(FileNotFoundError):  # a log that was turned over meanwhile
            if lines := cleaned(decoded(path.read_bytes()).split("\n")):
                with path.open("r+b") as file:  # in place: somebody may be appending to it
                    file.write("\n".join(lines).encode("utf-8", "replace"))
                    file.truncate()
                    os.fsync(file.fileno())
    for path in sorted((home.spool / "aside").glob("*")):
        with suppress(FileNotFoundError):
            calls = [each for each in spool.hook_calls(path.read_bytes()) if not isinstance(each, bytes)]  # whole ones
            if after := cleaned([decoded(call.raw) for call in calls]):
                folder = Path(f"{path.parent}.new")
                shutil.rmtree(folder, ignore_errors=True)  # of one that was killed
                for call, raw in zip(calls, after, strict=True):
                    spool.append(str(folder), call._replace(raw=raw.encode()), most=1 << 40)
                os.replace(folder / "current", path)
                shutil.rmtree(folder, ignore_errors=True)
    return result
