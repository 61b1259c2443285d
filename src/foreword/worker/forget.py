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
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

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
from foreword.store.forget import UNFINISHED, Backup, Cutter, Forgetter, Sentences, Target
from foreword.store.projects import counts_as
from foreword.terms import terms
from foreword.worker.hook import Capture
from foreword.worker.jobs.extract import ExtractionJob
from foreword.worker.jobs.imports import ImportJob
from foreword.worker.jobs.refine import RefineJob
from foreword.worker.services import Services
from foreword.worker.working_set import WorkingSet

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


class Forgetting:
    """Forgets, one thing after another, while no session is extracted."""

    def __init__(
        self,
        services: Services,
        *,
        extraction: ExtractionJob,
        refine: RefineJob,
        imports: ImportJob,
        working_set: WorkingSet,
        capture: Capture,
    ) -> None:
        self._services, self._extraction, self._refine = services, extraction, refine
        self._imports, self._working_set, self._capture = imports, working_set, capture

    def forget(self, request: Mapping[str, Any], *, who: str = "user") -> dict[str, Any]:
        """Forget what a caller names, or only tell what would go; what was left unfinished comes first."""
        store = self._services.store
        target = _target(request, store)
        if request.get("dry_run"):
            return self._preview(target)  # it only reads, and a session's start would wait in line behind it
        if who == "agent":
            target = replace(target, only=store.memories.by_id(target.ids[:1])[0].project)
        if self._imports.is_busy():
            raise BadRequest("an import is running", hint="wait until it is done: it may bring what is forgotten here")
        self._capture.drain()
        why = redact(str(request.get("why") or ""))[:MOST_WHY]

        def in_turn() -> dict[str, Any]:
            self._finish()
            return self._carry_out(target, who=who, why=why, at=self._services.now())

        return self._extraction.apart(in_turn).result()

    def resume(self) -> None:
        """Finish in the background what a killed worker left."""

        def finish() -> None:
            try:
                self._finish()
            except Exception as exc:  # noqa: BLE001 - nobody waits for this, so it must say what went wrong
                self._services.report("forget", f"an unfinished forget failed, and is tried again: {exc}")

        try:
            if self._services.store.checkpoint(UNFINISHED):
                self._extraction.apart(finish)
        except ForewordError:
            return

    def _finish(self) -> None:
        """Do what a killed worker was about to do; once the rows are gone, only the sweep is left."""
        if text := self._services.store.checkpoint(UNFINISHED):
            noted = json.loads(text)
            parts: dict[str, Any] = noted.get("target", {})
            parts = {name: tuple(each) if isinstance(each, list) else each for name, each in parts.items()}
            at = noted.get("at", self._services.now())
            self._carry_out(Target(**parts), who="worker", why="finished after an interruption", at=at)

    def _preview(self, target: Target) -> dict[str, Any]:
        live = self._services.store.forgetter
        target, _ = _with_copies([live], target)
        memories = self._services.store.memories.by_id(target.ids)
        return {
            "dry_run": True,
            "tables": live.row_counts(target),
            "memories": [_named(each) for each in memories],
            "similar": self._similar(memories),
            "backups": [path.name for path in _backups(self._services.home)],
            "undo": FOR_EVER,
            "not_ours": _not_ours(live, target),
        }

    def _carry_out(self, target: Target, *, who: str, why: str, at: float) -> dict[str, Any]:
        store, home = self._services.store, self._services.home
        live, write = store.forgetter, store.database.write
        with ExitStack() as opened:
            backups, unread = _open_backups(home, opened)
            target, texts = _with_copies([live, *backups], target)
            cutter = Cutter(target, texts)
            memories = store.memories.by_id(target.ids)
            remaining = {"not_ours": _not_ours(live, target), "similar": self._similar(memories)}

            def begin() -> None:
                store.set_checkpoint(UNFINISHED, json.dumps({"target": asdict(target), "at": at}), at=at)
                live.hide(target, at=at)

            write(begin)
            store.database.flush()  # what waits to be written may tell of it
            self._refine.drop()
            self._working_set.forget(target.near)
            cut = store.maintenance.rewrite(cutter.cell).changed
            write(live.bury_cut, cutter.cut, at=at)
            cut_memories = [memory.id for memory in store.memories.get_by_uid(sorted(cutter.cut))]
            files = rewrite_files(home, cutter.sentences.cut_json).changed
            for backup in backups:
                files[f"backups/{backup.path.name}"] = backup.forget(cutter, store.database.query, at=at)
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
            "undo": FOR_EVER,
        }
        own = {memory.project for memory in memories}  # of a whole project not even its name is kept
        project = "".join(own) if len(own) == 1 and not target.projects else ""
        reason = cutter.sentences.cut(why)[:MOST_WHY]
        about: dict[str, Any] = {"who": who, "at": at, "project": project, "ids": target.ids[:MOST_NAMED]}

        def end() -> int:
            store.set_checkpoint(UNFINISHED, "", at=at)
            return store.audit.note("forget", reason, {"receipt": receipt}, **about).number

        return {**receipt, "ids": list(target.ids), "entry": write(end), **remaining, "dry_run": False}

    def _similar(self, memories: Sequence[Memory]) -> list[dict[str, str]]:
        """Return the memories that stay and say the same in other words: whoever asked decides about them."""
        found: dict[str, dict[str, str]] = {}
        going = {memory.id for memory in memories}
        for memory in memories[:MOST_COMPARED]:
            text = f"{memory.title}. {memory.body}"
            query = Query(scopes=(memory.scope, "universal"), terms=terms(text), plain=True)
            for other in (hit.memory for hit in self._services.store.search.by_words(query)):
                if other.id not in going and same_statement(text, f"{other.title}. {other.body}"):
                    found[other.id] = _named(other)
        return list(found.values())


# ---- what is to be forgotten


def _target(request: Mapping[str, Any], store: Store) -> Target:
    """Return what is to be forgotten: memories, a session, or a project with its aliases."""
    ids: list[str] = request.get("ids") or []
    session, project = (str(request.get(name) or "") for name in ("session", "project"))
    if sum(map(bool, (ids, session, project))) != 1:
        raise BadRequest("say one thing that is to be forgotten", hint="one of {ids: […]}, {session}, {project}")
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids) or len(ids) > MOST_IDS:
        raise BadRequest(f"`ids` must be a list of at most {MOST_IDS:,} ids", hint='send {"ids": ["dec-…"]}')
    live = store.forgetter
    if session:
        return live.find(session=_session(session, store))
    if project:
        named = project_at(project).key if project.startswith("/") else project
        key = counts_as(storable(named), store.projects.all())
        if not (projects := live.projects(key)):
            raise NotFound(f"nothing is known of the project {key!r}", hint="give a folder of it, or its key")
        return live.find(projects=projects)
    target = live.find(ids=ids)
    if missing := [id for id in ids if id not in target.ids]:
        raise NotFound(f"there is no memory {', '.join(missing[:5])}", hint="`foreword search` finds ids")
    return target


def _session(prefix: str, store: Store) -> str:
    """Find a session by its id, or by how that begins where it is the only one."""
    if store.sessions.get(prefix):
        return prefix
    found = [each.id for each in store.sessions.list(limit=100_000) if each.id.startswith(prefix)]
    if len(found) != 1:
        many = f"{len(found)} sessions begin with" if found else "there is no session"
        raise NotFound(f"{many} {prefix!r}", hint="`foreword sessions` lists them")
    return found[0]


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


def _not_ours(live: Forgetter, target: Target) -> list[str]:
    """Return what is not ours to remove."""
    return [*(f"the agent's own transcript {path}" for path in live.transcripts(target)), *NOT_OURS]


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
        return "it stands in a memory that stays, or was written since"
    return "a file that is not ours: remove it yourself"


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def _backups(home: Home) -> list[Path]:
    return sorted(home.backups.glob("*.db"))


def _open_backups(home: Home, opened: ExitStack) -> tuple[list[Backup], list[str]]:
    """Open the backups until *opened* is closed; return those that can be, and what is wrong with the others."""
    backups, unread = [], []
    for path in _backups(home):
        try:
            backups.append(backup := Backup(path))
            opened.callback(backup.db.close)
        except StoreError as exc:
            unread.append(f"backups/{path.name}: {exc}")
    return backups, unread
