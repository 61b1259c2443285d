"""Remove from a home what is now known to be secret, a second's work at a time.

The database first, then logs and hook calls that were set aside, then the backups; at last every file that could still
hold an old byte is written again. The caller repeats with `after`; begun again, it finds what is left.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from foreword.encoding import decoded, dumps, loads
from foreword.errors import BadRequest
from foreword.hook import spool
from foreword.paths import Home
from foreword.redact import redact_all
from foreword.store import Store
from foreword.store.maintenance import Cleaner, Cleans, Scrubbed, kinds_of, scrub_file

SECONDS = 1.0  # of one answer: so often a person sees how far it is
FILES, BACKUPS, SETTLE = "(files)", "(backups)", "(settle)"  # no table has such a name


def scrub(store: Store, home: Home, *, cleaner: Cleaner, after: Sequence[Any], dry_run: bool) -> dict[str, Any]:
    """Return what was found in this second, by table; `after` is where to go on, empty when all is done."""
    if not isinstance(after, (list, tuple)) or not all(isinstance(each, (str, int, float)) for each in after):
        raise BadRequest("`after` must be what the last answer gave", hint="leave it out to begin")
    until = time.monotonic() + SECONDS
    found: dict[str, dict[str, Any]] = {}
    while True:
        for each in _step(store, home, cleaner=cleaner, after=after, dry_run=dry_run):
            about = found.setdefault(each.table, {"seen": 0, "changed": 0, "kinds": Counter()})
            about["seen"] += each.seen
            about["changed"] += each.changed
            about["kinds"].update(each.kinds)
            after = each.after
        if not after or time.monotonic() > until:
            return {"tables": found, "after": list(after), "dry_run": dry_run}


def _step(store: Store, home: Home, *, cleaner: Cleaner, after: Sequence[Any], dry_run: bool) -> Iterator[Scrubbed]:
    stage = after[0] if after else ""
    if stage == SETTLE:
        if not dry_run:
            store.maintenance.sweep()
        yield Scrubbed(SETTLE)
    elif stage == FILES:
        yield from files(home, cleaner=cleaner, dry_run=dry_run)
        yield Scrubbed("logs and spool", after=(BACKUPS,))
    elif stage == BACKUPS:
        done = after[1] if len(after) > 1 else ""
        later = sorted(path for path in home.backups.glob("*.db") if path.name > done)
        if later:
            for each in scrub_file(later[0], cleaner=cleaner, dry_run=dry_run):
                yield replace(each, table=f"backups/{later[0].name}")
        yield Scrubbed("backups", after=(BACKUPS, later[0].name) if later else (SETTLE,))
    else:
        each = store.maintenance.scrub(cleaner, after=after, dry_run=dry_run)
        yield each if each.after else replace(each, after=(FILES,))


def files(home: Home, *, cleaner: Cleans, dry_run: bool) -> Iterator[Scrubbed]:
    """Clean the logs, and the hook calls that were set aside."""
    for path in sorted(home.logs.glob("*")):
        with suppress(FileNotFoundError):  # a log that was turned over meanwhile
            yield _lines(path, cleaner=cleaner, dry_run=dry_run)
    for path in sorted((home.spool / "aside").glob("*")):
        with suppress(FileNotFoundError):
            yield _records(path, cleaner=cleaner, dry_run=dry_run)


def _lines(path: Path, *, cleaner: Cleans, dry_run: bool) -> Scrubbed:
    """Clean a log in place: somebody may be appending to it."""
    old = path.read_bytes()
    lines = decoded(old).split("\n")
    clean = [cleaner.text(line) for line in lines]
    changed = sum(map(str.__ne__, lines, clean))
    if changed and not dry_run:
        with path.open("r+b") as file:
            file.write("\n".join(clean).encode("utf-8", "replace"))
            file.truncate()
            os.fsync(file.fileno())
    kinds = kinds_of("\n".join(clean)) - kinds_of("\n".join(lines))
    return Scrubbed("logs and spool", len(lines), changed, kinds)


def _records(path: Path, *, cleaner: Cleans, dry_run: bool) -> Scrubbed:
    """Clean hook calls that were set aside; a torn record is skipped."""
    folder = f"{path.parent}.new"
    seen = changed = 0
    kinds: Counter[str] = Counter()
    for record in spool.hook_calls(path.read_bytes()):
        if isinstance(record, bytes):
            continue
        raw = decoded(record.raw)
        try:
            clean = dumps(redact_all(loads(cleaner.hide(raw))))
        except Exception:  # noqa: BLE001 - it was set aside because it cannot be parsed
            clean = cleaner.text(raw)
        seen += 1
        changed += clean != raw
        kinds += kinds_of(clean) - kinds_of(raw)
        if not dry_run:
            spool.append(folder, replace(record, raw=clean.encode()), most=1 << 40)
    if changed and not dry_run:
        os.replace(f"{folder}/current", path)
    if not dry_run and os.path.isdir(folder):
        for left in Path(folder).iterdir():
            left.unlink()
        os.rmdir(folder)
    return Scrubbed("logs and spool", seen, changed, kinds)
