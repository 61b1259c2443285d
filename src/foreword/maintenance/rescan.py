"""Remove from a home what is now known to be secret: from the database, logs, spooled hook calls and backups."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from foreword.encoding import decoded
from foreword.hook import spool
from foreword.paths import Home
from foreword.store import Store
from foreword.store.scrub import Cleaner, Cleans, Rewritten, kinds_of, rewrite_backup

FILES = "logs and spool"


def scrub(store: Store, home: Home, *, cleaner: Cleaner, dry_run: bool) -> dict[str, Any]:
    """Clean everything, and rewrite every file that could still hold an old byte; return what was found where.

    Begun again after an interruption, it finds what is left.
    """
    found = store.maintenance.rewrite(cleaner, dry_run=dry_run)
    parts = [rewrite_files(home, cleaner, dry_run=dry_run)]
    parts += [rewrite_backup(path, cleaner, dry_run=dry_run) for path in sorted(home.backups.glob("*.db"))]
    for part in parts:
        found.seen.update(part.seen)
        found.changed.update(part.changed)
        found.kinds.update(part.kinds)
    if not dry_run:
        store.maintenance.sweep()
    tables = {name: {"seen": seen, "changed": found.changed[name]} for name, seen in found.seen.items() if seen}
    return {"tables": tables, "kinds": dict(sorted(found.kinds.items())), "dry_run": dry_run}


def rewrite_files(home: Home, cleaner: Cleans, *, dry_run: bool = False) -> Rewritten:
    """Clean the logs, and the hook calls that were set aside."""
    found = Rewritten()
    for path in sorted(home.logs.glob("*")):
        with suppress(FileNotFoundError):  # a log that was turned over meanwhile
            _rewrite_log(path, cleaner, found, dry_run=dry_run)
    for path in sorted((home.spool / "aside").glob("*")):
        with suppress(FileNotFoundError):
            _rewrite_hook_calls(path, cleaner, found, dry_run=dry_run)
    return found


def _rewrite_log(path: Path, cleaner: Cleans, found: Rewritten, *, dry_run: bool) -> None:
    """Clean a log in place: somebody may be appending to it."""
    lines = decoded(path.read_bytes()).split("\n")
    clean = [cleaner.text(line) for line in lines]
    changed = sum(map(str.__ne__, lines, clean))
    if changed and not dry_run:
        with path.open("r+b") as file:
            file.write("\n".join(clean).encode("utf-8", "replace"))
            file.truncate()
            os.fsync(file.fileno())
    found.add(FILES, len(lines), changed, kinds_of("\n".join(clean)) - kinds_of("\n".join(lines)))


def _rewrite_hook_calls(path: Path, cleaner: Cleans, found: Rewritten, *, dry_run: bool) -> None:
    """Clean hook calls that were set aside; a torn record is skipped."""
    folder = Path(f"{path.parent}.new")
    seen = changed = 0
    kinds: Counter[str] = Counter()
    for record in spool.hook_calls(path.read_bytes()):
        if isinstance(record, bytes):
            continue
        raw = decoded(record.raw)
        clean = cleaner.text(raw)
        seen += 1
        changed += clean != raw
        kinds += kinds_of(clean) - kinds_of(raw)
        if not dry_run:
            spool.append(str(folder), replace(record, raw=clean.encode()), most=1 << 40)
    if changed and not dry_run:
        os.replace(folder / "current", path)
    if not dry_run:
        shutil.rmtree(folder, ignore_errors=True)
    found.add(FILES, seen, changed, kinds)
