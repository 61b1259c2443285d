"""Forget memories, sessions and projects: remove them from every file of the home, and prove it by a receipt.

In this order, so that a kill at any point leaves nothing undone: note what is to go, hide it and bury it; replace
copies of its texts in everything that stays, backups last; delete its rows; sweep the file. Until the rows are gone
they tell what to look for, and the next worker begins again.
"""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreword.capture.parse import project_at
from foreword.encoding import storable
from foreword.errors import BadRequest, ForewordError, NotFound, StoreError
from foreword.extract.summary import without_opening
from foreword.maintenance.dedupe import same_statement
from foreword.maintenance.rescan import rewrite_files
from foreword.models import Memory, Query
from foreword.paths import Home
from foreword.redact import redact
from foreword.store import Store
from foreword.store.backup import remove_unfinished
from foreword.store.forget import UNFINISHED, Backup, Forgetter, Target
from foreword.store.projects import counts_as
from foreword.store.verbatim import Cutter, Sentences
from foreword.terms import terms

if TYPE_CHECKING:
    from foreword.worker.app import App

MOST_IDS = 10_000
MOST_COMPARED = 50  # memories for which others that say the same are looked for
MOST_WHY = 500  # characters
MOST_NAMED = 100  # ids that the log keeps of one forgetting
PIECE = 1 << 16  # bytes of a file that are read at once
SWEEPS = 3  # a reader that is in the middle of something keeps the write-ahead log from being emptied
USERS = ("config.toml", "synonyms.toml", "installed")  # the user's own words, byte for byte
OURS = ("logs", "spool", "backups")
PACKED = (".gz", ".zip", ".xz", ".bz2", ".zst", ".7z", ".tar", ".tgz")
FOR_EVER = "this cannot be undone: there is no copy left to take it from"
NOT_OURS = (
    "the git repository: its commits, files and messages",
    "exports and copies outside of the home, backups of your disk, snapshots",
    "what a terminal shows and keeps in its scrollback",
    "remnants on an SSD, which no program can overwrite",
)


def forget(app: App, body: Mapping[str, Any], who: str = "user") -> dict[str, Any]:
    """Forget what a caller names, or only tell what would go; what was left unfinished comes first."""
    target = _target(body, app.store)
    if body.get("dry_run"):
        return _preview(app, target)  # it only reads, and a session's start would wait in line behind it
    if who == "agent":
        target = replace(target, only=app.store.memories.get(target.ids[:1], forgotten=True)[0].project)
    if app.imports.is_busy():
        raise BadRequest("an import is running", hint="run this again when it is done: it may import what you forget")
    app.capture.drain()
    why = redact(str(body.get("why") or ""))[:MOST_WHY]

    def in_turn() -> dict[str, Any]:
        _finish(app)
        return _carry_out(app, target, who=who, why=why, at=app.now())

    return app.extraction.apart(in_turn).result()  # no session is extracted meanwhile


def resume(app: App) -> None:
    """Finish in the background what a killed worker left."""

    def finish() -> None:
        try:
            _finish(app)
        except Exception as exc:  # noqa: BLE001 - nobody waits for this, so it must say what went wrong
            app.report("forget", f"an unfinished forget failed, and is tried again: {exc}")

    with suppress(ForewordError):
        if app.store.checkpoint(UNFINISHED):
            app.extraction.apart(finish)


def _finish(app: App) -> None:
    """Do what a killed worker was about to do; once the rows are gone, only the sweep is left."""
    if text := app.store.checkpoint(UNFINISHED):
        noted = json.loads(text)
        parts: dict[str, Any] = noted.get("target", {})
        parts = {name: tuple(each) if isinstance(each, list) else each for name, each in parts.items()}
        why, at = "finished after an interruption", noted.get("at", app.now())
        _carry_out(app, Target(**parts), who="worker", why=why, at=at)


def _preview(app: App, target: Target) -> dict[str, Any]:
    live = app.store.forgetter
    target, _ = _with_copies([live], target)
    memories = app.store.memories.get(target.ids, forgotten=True)
    return {
        "dry_run": True,
        "tables": live.row_counts(target),
        "memories": [_named(each) for each in memories],
        "backups": [path.name for path in sorted(app.home.backups.glob("*.db"))],
        **_remaining(app.store, target, memories),
    }


def _carry_out(app: App, target: Target, *, who: str, why: str, at: float) -> dict[str, Any]:
    store, home = app.store, app.home
    live, write = store.forgetter, store.database.write
    with ExitStack() as opened:
        backups, unread = _open_backups(home, opened)
        target, texts = _with_copies([live, *backups], target)
        cutter = Cutter(target, texts)
        memories = store.memories.get(target.ids, forgotten=True)
        remaining = _remaining(store, target, memories)

        def begin() -> None:
            store.set_checkpoint(UNFINISHED, json.dumps({"target": asdict(target), "at": at}), at=at)
            live.hide(target, at=at)

        write(begin)
        app.refine.drop()
        app.working_set.forget(target.near)
        cut = store.maintenance.rewrite(cutter.cell).changed
        write(live.bury_cut, cutter.cut, at=at)
        cut_memories = [memory.id for memory in store.memories.get_by_uid(sorted(cutter.cut))]
        files = rewrite_files(home, cutter.sentences.cut_json).changed
        for backup in backups:
            files[f"backups/{backup.path.name}"] = backup.forget(
                target, cutter.cell, cutter.cut, live=store.database.query, at=at
            )
        removed = write(live.remove, target)
    store.maintenance.sweep()
    found = scan(home, store, cutter.sentences)
    for _ in range(SWEEPS if found["left"] else 0):
        store.maintenance.vacuum()
        found = scan(home, store, cutter.sentences)
    receipt = {
        "memories": len(target.ids),
        "sessions": len(target.sessions),
        "projects": len(target.projects),
        "removed": dict(removed),
        "cut": dict(+cut),
        "files": dict(+files),
        "cut_memories": cut_memories,
        "sentences": {"looked_for": len(cutter.sentences.all), "too_short": len(cutter.sentences.too_short)},
        **found,
        "not_looked_into": [*unread, *found["not_looked_into"]],
    }
    own = {memory.project for memory in memories}  # of a whole project not even its name is kept
    project = "".join(own) if len(own) == 1 and not target.projects else ""
    about: dict[str, Any] = {"who": who, "at": at, "project": project, "ids": target.ids[:MOST_NAMED]}

    def end() -> int:
        store.set_checkpoint(UNFINISHED, "", at=at)
        return store.audit.note("forget", cutter.sentences.cut(why), {"receipt": receipt}, **about).number

    return {**receipt, "ids": list(target.ids), "entry": write(end), **remaining, "dry_run": False}


def _remaining(store: Store, target: Target, memories: Sequence[Memory]) -> dict[str, Any]:
    """Return what stays: memories that say the same in other words, for the user to decide, and what is not ours."""
    similar: dict[str, dict[str, str]] = {}
    for memory in memories[:MOST_COMPARED]:
        text = f"{memory.title}. {memory.body}"
        query = Query(scopes=(memory.scope, "universal"), terms=terms(text), plain=True)
        for other in (hit.memory for hit in store.search.by_words(query)):
            if other.id not in target.ids and same_statement(text, f"{other.title}. {other.body}"):
                similar[other.id] = _named(other)
    transcripts = [f"the agent's own transcript {path}" for path in store.forgetter.transcripts(target)]
    return {"similar": list(similar.values()), "not_ours": [*transcripts, *NOT_OURS], "undo": FOR_EVER}


# ---- what is to be forgotten


def _target(request: Mapping[str, Any], store: Store) -> Target:
    """Return what is to be forgotten: memories, a session, or a project with its aliases."""
    ids: list[str] = request.get("ids") or []
    session, project = (str(request.get(name) or "") for name in ("session", "project"))
    if sum(map(bool, (ids, session, project))) != 1:
        raise BadRequest(
            "name what to forget: ids, a session or a project", hint="one of {ids: […]}, {session}, {project}"
        )
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids) or len(ids) > MOST_IDS:
        raise BadRequest(f"`ids` must be a list of at most {MOST_IDS:,} ids", hint='send {"ids": ["dec-…"]}')
    live = store.forgetter
    if session:
        return live.find(session=_session(session, store))
    if project:
        known = store.projects.all()
        key = counts_as(storable(project_at(project).key if project.startswith("/") else project), known)
        if key not in known and key not in store.projects.contents():
            raise NotFound(
                f"unknown project {key!r}", hint="give its folder or its key; `foreword project list` lists them"
            )
        return live.find(projects=[key, *(alias for alias in known if known[alias].alias_of == key)])
    ids = [store.full_id(id) for id in ids]
    target = live.find(ids=ids)
    if missing := [id for id in ids if id not in target.ids]:
        raise NotFound(f"there is no memory {', '.join(missing[:5])}", hint="`foreword search` finds ids")
    return target


def _session(prefix: str, store: Store) -> str:
    """Find a session by its id, or by how that begins where it is the only one."""
    if store.sessions.get(prefix):
        return prefix
    found = store.sessions.list(prefix=prefix, limit=2)
    if len(found) != 1:
        many = "several sessions begin with" if found else "there is no session"
        raise NotFound(f"{many} {prefix!r}", hint="`foreword sessions` lists them")
    return found[0].id


def _with_copies(sources: Iterable[Forgetter], target: Target) -> tuple[Target, list[str]]:
    """Return all that goes, and its texts in every wording that any of these databases has."""
    texts = [text for source in sources for text in source.texts(target)]
    # What a session would be called after a text is a copy but for its first words.
    texts += [title for text in texts if (title := without_opening(text)) != text]
    sentences = Sentences(texts)
    for source in sources:
        target = source.with_copies(target, sentences)
    return target, texts


def _named(memory: Memory) -> dict[str, str]:
    return {"id": memory.id, "kind": memory.kind, "title": memory.title, "project": memory.project}


# ---- the files of the home


def scan(home: Home, store: Store, sentences: Sentences) -> dict[str, Any]:
    """Search every byte of every file for the sentences; tell what was read, what is left, and what cannot be read."""
    count = size = 0
    left: list[dict[str, Any]] = []
    unread: list[str] = []
    for path in sorted(Path(folder, name) for folder, _, names in os.walk(home.root) for name in names):
        name = path.relative_to(home.root).as_posix()
        if name == f"{home.database.name}-shm" or path.is_symlink() or not path.is_file():
            continue  # the first has page numbers alone; and to open it besides would drop SQLite's locks
        found: set[str] = set()
        before = ""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            for piece in store.database.pieces() if path == home.database else _pieces(path):
                text = before + decoder.decode(piece)
                found |= sentences.found(text)
                before = text[-2 * sentences.longest :]  # twice: white space and escapes take room
                size += len(piece)
        except FileNotFoundError:
            continue  # what is only there for a moment
        except OSError as exc:
            unread.append(f"{name}: {exc.strerror}")
        count += 1
        if path.suffix in PACKED:
            unread.append(f"{name}: packed")
        if found:
            left.append({"file": name, "sentences": len(found), "why": _why_left(name, home)})
    return {"scanned": {"files": count, "bytes": size}, "left": left, "not_looked_into": unread}


def _why_left(name: str, home: Home) -> str:
    first = name.partition("/")[0]
    if first in USERS:
        return "your own settings, which are never changed"
    if first in OURS or first.startswith(home.database.name):
        return "it is in a memory that stays, or was written since"
    return "a file that is not ours: remove it yourself"


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def _open_backups(home: Home, opened: ExitStack) -> tuple[list[Backup], list[str]]:
    """Open the backups until *opened* is closed; return those that can be, and what is wrong with the others."""
    backups, unread = [], []
    remove_unfinished(home.backups)
    for path in sorted(home.backups.glob("*.db")):
        try:
            backups.append(backup := Backup(path))
            opened.callback(backup.db.close)
        except StoreError as exc:
            unread.append(f"backups/{path.name}: {exc}")
    return backups, unread
