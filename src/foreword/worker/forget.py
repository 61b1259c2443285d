"""Forget memories, sessions and projects: remove them from every file of the home, and prove it by a receipt.

In this order, so that a kill at any point leaves nothing undone: note what is to go, hide it and bury it; replace
copies of its texts in everything that stays, backups last; delete its rows; sweep the file. Until the rows are gone
they tell what to look for, and the next worker begins again.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from foreword.capture.parse import project_at
from foreword.encoding import storable
from foreword.errors import BadRequest, ForewordError, NotFound, StoreError
from foreword.extract.summary import without_opening
from foreword.maintenance.rescan import rewrite_files
from foreword.maintenance.similarity import alike
from foreword.models import Memory, Query
from foreword.paths import Home
from foreword.redact import redact
from foreword.store import Store
from foreword.store.forget import Copy, Cutter, Forgetter, Sentences, Source, Target, is_long, split
from foreword.store.projects import counts_as
from foreword.terms import terms
from foreword.worker.hook import Capture
from foreword.worker.jobs.extract import ExtractionJob
from foreword.worker.jobs.imports import ImportJob
from foreword.worker.jobs.refine import RefineJob
from foreword.worker.services import Services
from foreword.worker.working_set import WorkingSet

MOST_IDS = 10_000
MOST_TITLES = 200  # that a preview names
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
        selection = _selection(request, store=self._services.store)
        if request.get("dry_run"):
            return self._preview(selection)  # it only reads, and a session's start would wait in line behind it
        why = redact(str(request.get("why") or ""))[:MOST_WHY]
        if self._imports.is_busy():
            raise BadRequest("an import is running", hint="wait until it is done: it may bring what is forgotten here")
        self._capture.drain()
        return self._extraction.apart(lambda: self._forget(selection, who=who, why=why)).result()

    def resume(self) -> None:
        """Finish in the background what a killed worker left."""
        try:
            if self._services.store.forgetter.unfinished():
                self._extraction.apart(self._finish_quietly)
        except ForewordError:
            return

    def _preview(self, selection: Mapping[str, Any]) -> dict[str, Any]:
        live = self._services.store.forgetter
        target, _ = _all_of([live], _found(live, selection))
        memories = self._services.store.memories.by_id(target.ids)
        return {
            "dry_run": True,
            "tables": live.row_counts(target),
            "memories": [_named(each) for each in memories[:MOST_TITLES]],
            "more": len(memories[MOST_TITLES:]),
            "similar": self._similar(memories, target),
            "backups": [path.name for path in _backups(self._services.home)],
            "undo": FOR_EVER,
            "not_ours": _not_ours(live, target),
        }

    def _forget(self, selection: Mapping[str, Any], *, who: str, why: str) -> dict[str, Any]:
        self._finish()
        store = self._services.store
        target = _found(store.forgetter, selection)
        if who == "agent":
            [of_agent, *_] = store.memories.get(target.ids[:1])
            target = replace(target, only=of_agent.project)
        return self._carry_out(target, who=who, why=why, at=self._services.now())

    def _finish_quietly(self) -> None:
        try:
            self._finish()
        except Exception as exc:  # noqa: BLE001 - nobody waits for this, so it must say what went wrong
            self._services.report("forget", f"an unfinished forget failed, and is tried again: {exc}")

    def _finish(self) -> None:
        """Do what a killed worker was about to do."""
        store = self._services.store
        if not (left := store.forgetter.unfinished()):
            return
        target, at = left
        if target:
            self._carry_out(target, who="worker", why="finished after an interruption", at=at)
        else:  # the rows are gone, and with them what to look for
            store.maintenance.sweep()
            store.forgetter.end({"interrupted": True, "undo": FOR_EVER}, who="worker", why="finished", at=at, ids=())

    def _carry_out(self, target: Target, *, who: str, why: str, at: float) -> dict[str, Any]:
        store, home = self._services.store, self._services.home
        live = store.forgetter
        with ExitStack() as opened:
            copies, unread = _open_backups(home, opened)
            target, texts = _all_of([live, *copies], target)
            cutter = Cutter(target, _with_titles(texts))
            memories = store.memories.by_id(target.ids)
            similar, not_ours = self._similar(memories, target), _not_ours(live, target)
            live.begin(target, at=at)
            self._refine.drop()
            self._working_set.forget(target.near)
            cut = store.maintenance.rewrite(cutter).changed
            live.bury_cut(cutter.cut, at=at)
            cut_memories = [memory.id for memory in store.memories.get_by_uid(sorted(cutter.cut))]
            files = rewrite_files(home, cutter).changed
            stones = live.stones()
            for copy in copies:
                files[f"backups/{copy.path.name}"] = copy.forget(cutter, stones=stones, at=at)
            removed = live.remove(target)
        store.maintenance.sweep()
        found = scan(home, live, cutter.sentences)
        for _ in range(SWEEPS if found["left"] else 0):
            store.maintenance.vacuum()
            found = scan(home, live, cutter.sentences)
        too_short = [text for text in set(texts) if text.strip() and not any(map(is_long, split(text)))]
        receipt = {
            "memories": len(target.ids),
            "sessions": len(target.sessions),
            "projects": len(target.projects),
            "removed": dict(removed),
            "cut": dict(+cut),
            "files": dict(+files),
            "cut_memories": cut_memories,
            "sentences": {"looked_for": len(cutter.sentences.all), "too_short": len(too_short)},
            **found,
            "not_looked_into": [*unread, *found["not_looked_into"]],
            "undo": FOR_EVER,
        }
        own = {memory.project for memory in memories}  # of a whole project not even its name is kept
        project = "".join(own) if len(own) == 1 and not target.projects else ""
        reason = cutter.text(redact(why))[:MOST_WHY]
        entry = live.end(receipt, who=who, why=reason, at=at, ids=target.ids[:MOST_NAMED], project=project)
        more = {"ids": list(target.ids), "entry": entry, "not_ours": not_ours, "similar": similar}
        return {**receipt, **more, "dry_run": False}

    def _similar(self, memories: Sequence[Memory], target: Target) -> list[dict[str, str]]:
        """Return the memories that stay and say the same in other words: whoever asked decides about them."""
        found: dict[str, dict[str, str]] = {}
        for memory in memories[:MOST_COMPARED]:
            text = f"{memory.title}. {memory.body}"
            query = Query(scopes=(memory.scope, "universal"), terms=terms(text), plain=True)
            for other in (hit.memory for hit in self._services.store.search.by_words(query)):
                if other.id not in target.ids and alike(text, f"{other.title}. {other.body}"):
                    found[other.id] = _named(other)
        return list(found.values())


# ---- what is to be forgotten


def _selection(request: Mapping[str, Any], *, store: Store) -> dict[str, Any]:
    """Return what is to be forgotten: memories, a session, or a project with its aliases."""
    ids = request.get("ids") or []
    session, project = (str(request.get(name) or "") for name in ("session", "project"))
    if sum(map(bool, (ids, session, project))) != 1:
        raise BadRequest("say one thing that is to be forgotten", hint="one of {ids: […]}, {session}, {project}")
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids) or len(ids) > MOST_IDS:
        raise BadRequest(f"`ids` must be a list of at most {MOST_IDS:,} ids", hint='send {"ids": ["dec-…"]}')
    return {
        "ids": tuple(dict.fromkeys(ids)),
        "session": _session(session, store=store) if session else "",
        "projects": _projects(project, store=store) if project else (),
    }


def _session(prefix: str, *, store: Store) -> str:
    """Find a session by its id, or by how that begins where it is the only one."""
    if store.sessions.get(prefix):
        return prefix
    found = [each.id for each in store.sessions.list(limit=100_000) if each.id.startswith(prefix)]
    if len(found) != 1:
        many = f"{len(found)} sessions begin with" if found else "there is no session"
        raise NotFound(f"{many} {prefix!r}", hint="`foreword sessions` lists them")
    return found[0]


def _projects(named: str, *, store: Store) -> tuple[str, ...]:
    """Find a folder's project, or the one of that key, with those that are its aliases."""
    key = counts_as(storable(project_at(named).key if named.startswith("/") else named), store.projects.all())
    found = store.forgetter.projects(key)
    if not found:
        raise NotFound(f"nothing is known of the project {key!r}", hint="give a folder of it, or its key")
    return found


def _found(live: Forgetter, selection: Mapping[str, Any]) -> Target:
    target = live.find(**selection)
    missing = [id for id in selection["ids"] if id not in target.ids]
    if missing:
        raise NotFound(f"there is no memory {', '.join(missing[:5])}", hint="`foreword search` finds ids")
    if not target.ids and not target.sessions and not target.projects:
        raise NotFound("nothing here is like that", hint="`foreword search` and `foreword sessions` tell what is")
    return target


def _all_of(sources: Sequence[Source], target: Target) -> tuple[Target, list[str]]:
    """Return all that goes, and its texts in every wording that any of these databases has."""
    texts = [text for source in sources for text in source.texts(target)]
    sentences = Sentences(_with_titles(texts))
    for source in sources:
        target = source.with_copies(target, sentences)
    return target, texts


def _with_titles(texts: Sequence[str]) -> list[str]:
    """Return *texts*, and what a session would be called after each: a copy but for its first words."""
    return [*texts, *(title for text in texts if (title := without_opening(text)) != text)]


def _named(memory: Memory) -> dict[str, str]:
    return {"id": memory.id, "kind": memory.kind, "title": memory.title, "project": memory.project}


def _not_ours(live: Forgetter, target: Target) -> list[str]:
    """Return what is not ours to remove."""
    return [*(f"the agent's own transcript {path}" for path in live.transcripts(target)), *NOT_OURS]


# ---- the files of the home


def scan(home: Home, live: Forgetter, sentences: Sentences) -> dict[str, Any]:
    """Search every byte of every file for the sentences; tell what was read, what is left, and what cannot be read."""
    count = size = 0
    left: list[dict[str, Any]] = []
    unread: list[str] = []
    for path in _every_file(home):
        name = path.relative_to(home.root).as_posix()
        if name == f"{home.database.name}-shm":
            continue  # page numbers alone; and to open it besides would drop SQLite's locks
        found: set[str] = set()
        before = ""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            for piece in live.pieces() if path == home.database else _pieces(path):
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


def _every_file(home: Home) -> Iterator[Path]:
    for folder, _, names in os.walk(home.root):
        for name in sorted(names):
            path = Path(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                yield path


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def _backups(home: Home) -> list[Path]:
    return sorted(home.backups.glob("*.db"))


def _open_backups(home: Home, opened: ExitStack) -> tuple[list[Copy], list[str]]:
    """Open the backups until *opened* is closed; return those that can be, and what is wrong with the others."""
    copies, unread = [], []
    for path in _backups(home):
        try:
            copies.append(copy := Copy(path))
            opened.callback(copy.db.close)
        except StoreError as exc:
            unread.append(f"backups/{path.name}: {exc}")
    return copies, unread
