"""Forget memories, sessions and projects: remove them from every file of the home, and prove it by a receipt.

In this order, so that a kill at any point leaves nothing undone: note what is to go, hide it and bury it; replace
copies of its texts in everything that stays, backups last; delete its rows; sweep the file. Until the rows are gone
they tell what to look for, and the next worker begins again.
"""

from __future__ import annotations

import codecs
import os
import stat
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from foreword.capture.parse import project_at
from foreword.encoding import storable
from foreword.errors import BadRequest, ForewordError, NotFound, StoreError
from foreword.extract.summary import without_opening
from foreword.maintenance.rescan import files
from foreword.maintenance.similarity import alike
from foreword.models import Memory, Query
from foreword.paths import Home
from foreword.redact import redact
from foreword.store import Store
from foreword.store import forget as rows
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
    """Forgets, one thing after another, while no session is distilled."""

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
        selection = _wish(request, store=self._services.store)
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
        store, live = self._services.store, self._services.store.forgetter
        target, texts = _all_of([live], self._doomed(live, selection))
        about = live.preview(target)
        cutter = rows.cutter([live], target, _with_titles(texts))
        cut, in_files = _cut(store, cutter, dry_run=True), _cut_files(self._services.home, cutter, dry_run=True)
        return {
            "dry_run": True,
            "tables": dict(about.tables),
            "memories": [_named_memory(each) for each in about.memories[:MOST_TITLES]],
            "more": len(about.memories[MOST_TITLES:]),
            **self._changed(cut, in_files, cutter=cutter, about=about),
            "similar": self._similar(about.memories, target),
            "sessions": list(target.sessions),
            "projects": list(target.projects),
            "copies": [_name(path, self._services.home) for path in _backups(self._services.home)],
            "undo": FOR_EVER,
            "not_ours": _not_ours(about),
        }

    def _forget(self, selection: Mapping[str, Any], *, who: str, why: str) -> dict[str, Any]:
        live = self._services.store.forgetter
        if left := live.unfinished():
            self._finish(left)
        target = self._doomed(live, selection)
        if who == "agent":
            [of_agent, *_] = self._services.store.memories.get(target.ids[:1])
            target = replace(target, only=of_agent.project)
        return self._carry_out(target, who=who, why=why, at=self._services.now())

    def _finish_quietly(self) -> None:
        try:
            if left := self._services.store.forgetter.unfinished():
                self._finish(left)
        except Exception as exc:  # noqa: BLE001 - nobody waits for this, so it must say what went wrong
            self._services.report("forget", f"an unfinished forget failed, and is tried again: {exc}")

    def _finish(self, left: Mapping[str, Any]) -> None:
        """Do what a killed worker was about to do."""
        store = self._services.store
        live = store.forgetter
        if left.get("sweep"):  # the rows are gone, and with them what to look for
            store.maintenance.sweep()
            receipt = {"interrupted": True, "sentences": None, "left": None, "undo": FOR_EVER}
            live.end(receipt, who="worker", why="finished", at=self._services.now(), ids=())
        else:
            why = "finished after an interruption"
            self._carry_out(live.again(left), who="worker", why=why, at=float(left["at"]))

    def _doomed(self, live: Forgetter, selection: Mapping[str, Any]) -> Target:
        target = live.find(**selection)
        missing = [id for id in selection["ids"] if id not in target.ids]
        if missing:
            raise NotFound(f"there is no memory {', '.join(missing[:5])}", hint="`foreword search` finds ids")
        if not target.ids and not target.sessions and not target.projects:
            raise NotFound("nothing here is like that", hint="`foreword search` and `foreword sessions` tell what is")
        return target

    def _carry_out(self, target: Target, *, who: str, why: str, at: float) -> dict[str, Any]:
        began = time.perf_counter()
        store, home = self._services.store, self._services.home
        live = store.forgetter
        copies, unread = _opened(home)
        try:
            sources = [live, *copies]
            target, texts = _all_of(sources, target)
            cutter = rows.cutter(sources, target, _with_titles(texts))
            about = live.preview(target)
            similar = self._similar(about.memories, target)
            live.begin(target, at=at)
            self._refine.drop()
            self._working_set.forget(target.near)
            cut = _cut(store, cutter)
            live.bury_cut(cutter.cut, at=at)
            in_files = _cut_files(home, cutter)
            stones = live.stones()
            for copy in copies:
                in_files[_name(copy.path, home)] = copy.forget(cutter, stones=stones, at=at)
            removed = live.remove(target)
        finally:
            for copy in copies:
                copy.close()
        store.maintenance.sweep()
        found = scan(home, live, cutter.sentences)
        for _ in range(SWEEPS if found["left"] else 0):
            store.maintenance.vacuum()
            found = scan(home, live, cutter.sentences)
        receipt = {
            "memories": len(target.ids),
            "sessions": len(target.sessions),
            "projects": len(target.projects),
            "removed": dict(removed),
            **self._changed(cut, in_files, cutter=cutter, about=about),
            "similar": [each["id"] for each in similar],
            "tombstones": len(stones[1]),
            "sentences": {"looked_for": len(cutter.sentences.all), "too_short": sum(map(_is_short, set(texts)))},
            **found,
            "not_looked_into": [*unread, *found["not_looked_into"]],
            "undo": FOR_EVER,
            "seconds": round(time.perf_counter() - began, 2),
        }
        own = {memory.project for memory in about.memories}  # of a whole project not even its name is kept
        project = "".join(own) if len(own) == 1 and not target.projects else ""
        named = cutter.text(redact(why))[:MOST_WHY]
        entry = live.end(receipt, who=who, why=named, at=at, ids=target.ids[:MOST_NAMED], project=project)
        more = {"ids": list(target.ids), "entry": entry, "not_ours": _not_ours(about), "dry_run": False}
        return {**receipt, **more, "similar": similar}

    def _changed(
        self, cut: Counter[str], in_files: Counter[str], *, cutter: Cutter, about: rows.Preview
    ) -> dict[str, Any]:
        """Return what stays without copies: rows by table, lines by file, and the ids of memories."""
        memories = self._services.store.memories.get_by_uid(sorted(cutter.cut))
        cut["log"] = max(cut["log"], about.entries)
        return {"cut": dict(+cut), "files": dict(+in_files), "cut_memories": [memory.id for memory in memories]}

    def _similar(self, memories: Sequence[Memory], target: Target) -> list[dict[str, str]]:
        """Return the memories that stay and say the same in other words: whoever asked decides about them."""
        found: dict[str, dict[str, str]] = {}
        for memory in memories[:MOST_COMPARED]:
            text = f"{memory.title}. {memory.body}"
            query = Query(scopes=(memory.scope, "universal"), terms=terms(text), plain=True)
            for other in (hit.memory for hit in self._services.store.search.by_words(query)):
                if other.uid not in target.uids and alike(text, f"{other.title}. {other.body}"):
                    found[other.id] = _named_memory(other)
        return list(found.values())


# ---- what is asked


def _wish(request: Mapping[str, Any], *, store: Store) -> dict[str, Any]:
    """Return what is to be forgotten, one of memories, a session, projects, or words in projects, as `doomed` asks."""
    ids, session, project, match = (request.get(name) or "" for name in ("ids", "session", "project", "match"))
    named = [name for name in ("ids", "session", "match") if request.get(name)]
    if len(named) > 1 or not (named or project):
        hint = "one of {ids: […]}, {session}, {project}, {match, project}"
        raise BadRequest("say one thing that is to be forgotten", hint=hint)
    if ids and (not isinstance(ids, list) or not all(isinstance(each, str) for each in ids) or len(ids) > MOST_IDS):
        raise BadRequest(f"`ids` must be a list of at most {MOST_IDS:,} ids", hint='send {"ids": ["dec-…"]}')
    if not all(isinstance(each, str) for each in (session, project, match)) or (named and project and not match):
        raise BadRequest("`session`, `project` and `match` must be texts", hint="a project goes with `match` alone")
    if match and (not str(match).strip() or not project):
        raise BadRequest("`match` needs words, and the project they stand in", hint="send {match, project}")
    return {
        "ids": tuple(dict.fromkeys(ids or ())),
        "session": _session(str(session), store=store) if session else "",
        "projects": _projects(str(project), store=store) if project else (),
        "match": str(match),
    }


def _session(named: str, *, store: Store) -> str:
    """Find a session by its id, or by how that begins where it is the only one."""
    if store.sessions.get(named):
        return named
    found = [each.id for each in store.sessions.list(limit=100_000) if each.id.startswith(named)]
    if len(found) != 1:
        many = f"{len(found)} sessions begin with" if found else "there is no session"
        raise NotFound(f"{many} {named!r}", hint="`foreword sessions` lists them")
    return found[0]


def _projects(named: str, *, store: Store) -> tuple[str, ...]:
    """Find a folder's project, or the one of that key, with those that are its aliases."""
    key = storable(project_at(named).key if named.startswith("/") else named)
    key = counts_as(key, store.projects.all())
    found = store.forgetter.projects(key)
    if not found:
        raise NotFound(f"nothing is known of the project {key!r}", hint="give a folder of it, or its key")
    return found


def _all_of(sources: Sequence[Source], target: Target) -> tuple[Target, list[str]]:
    """Return all that goes, and its texts in every wording that any of these databases has."""
    for source in sources:
        target = source.known_as(target)
    texts = [text for source in sources for text in source.texts(target)]
    sentences = Sentences(_with_titles(texts))
    for source in sources:
        target = source.with_copies(target, sentences)
    return target, texts


def _with_titles(texts: Sequence[str]) -> list[str]:
    """Return *texts*, and what a session would be called after each: a copy but for its first words."""
    return [*texts, *(title for text in texts if (title := without_opening(text)) != text)]


def _is_short(text: str) -> bool:
    """Return whether a text has no sentence that is looked for outside of its session."""
    return bool(text.strip()) and not any(map(is_long, split(text)))


def _cut(store: Store, cutter: Cutter, *, dry_run: bool = False) -> Counter[str]:
    """Replace copies in every row that stays; return how many rows change, by table."""
    changed: Counter[str] = Counter()
    after: Sequence[object] = ()
    while True:
        found = store.maintenance.scrub(cutter, after=after, dry_run=dry_run)
        changed[found.table] += found.changed
        after = found.after
        if not after:
            return changed


def _cut_files(home: Home, cutter: Cutter, *, dry_run: bool = False) -> Counter[str]:
    """Replace copies in logs and in what was set aside; return how many lines change."""
    changed: Counter[str] = Counter()
    for each in files(home, cleaner=cutter, dry_run=dry_run):
        changed[each.table] += each.changed
    return changed


# ---- what is told


def _named_memory(memory: Memory) -> dict[str, str]:
    return {"id": memory.id, "kind": memory.kind, "title": memory.title, "project": memory.project}


def _not_ours(about: rows.Preview) -> list[str]:
    """Return what is not ours to remove."""
    return [*(f"the agent's own transcript {path}" for path in about.transcripts), *NOT_OURS]


# ---- the files of the home


def scan(home: Home, live: Forgetter, sentences: Sentences) -> dict[str, Any]:
    """Search every byte of every file for the sentences; tell what was read, what is left, and what cannot be read."""
    count = size = 0
    left: list[dict[str, Any]] = []
    unread: list[str] = []
    for path in _every(home):
        name = _name(path, home)
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


def _every(home: Home) -> Iterator[Path]:
    """Yield every ordinary file of the home."""
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


def _opened(home: Home) -> tuple[list[Copy], list[str]]:
    """Open the backups; return those that can be, and what is wrong with the others."""
    copies, unread = [], []
    for path in _backups(home):
        try:
            copies.append(Copy(path))
        except StoreError as exc:
            unread.append(f"{_name(path, home)}: {exc}")
    return copies, unread


def _name(path: Path, home: Home) -> str:
    return path.relative_to(home.root).as_posix()
