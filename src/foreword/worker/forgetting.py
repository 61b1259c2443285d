"""What somebody wants forgotten -> gone from every file of the home, with a receipt that proves it.

In this order, so that a kill at any point loses nothing of what there is to do: what is to go is noted by its ids,
hidden and buried; its traces are cut from everything else, the copies last; then its rows go, and the file is swept.
Until the rows are gone they tell what to look for, and whoever comes next begins again.
"""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

from foreword.capture import project_at
from foreword.encoding import storable
from foreword.errors import BadRequest, ForewordError, NotFound, StoreError
from foreword.paths import Home
from foreword.redact import redact
from foreword.store import Store
from foreword.store import forgetting as rows
from foreword.store.forgetting import MAGIC, Copy, Cutter, Doomed, Forgetter
from foreword.store.registry import counts_as
from foreword.traces import WINDOW, Traces, held, traces_of
from foreword.worker.distilling import Distilling
from foreword.worker.importing import Importing
from foreword.worker.refining import Refining
from foreword.worker.scrub import files
from foreword.worker.work import Work

log = logging.getLogger("foreword")

MOST_IDS = 10_000
MOST_TITLES = 200  # that are told before
MOST_WHY = 500  # characters
MOST_NAMED = 100  # ids that the log keeps of one forgetting: of thousands, some would look like the noise they named
PIECE = 1 << 16  # bytes of a file that are read at once
SWEEPS = 2  # more: a reader that is in the middle of something keeps the log from being emptied
CODE = ("hook.py", "hook.cache", "hook.key", "bin", "run")  # made from the package alone
USERS = ("config.toml", "synonyms.toml", "installed")  # the user's own words, byte for byte
PACKED = (".gz", ".zip", ".xz", ".bz2", ".zst", ".7z", ".tar", ".tgz")
EXPORT = '"format": "foreword export"'
FOR_EVER = "this cannot be undone: there is no copy left to take it from"
NOT_OURS = (
    "the git repository: its commits, files and messages",
    "exports and copies outside of the home, backups of your disk, snapshots",
    "what a terminal shows and keeps in its scrollback",
    "remnants on an SSD, which no program can overwrite",
)


@dataclass(frozen=True)
class Wish:
    """What somebody wants forgotten: one of memories, a session, projects, or words in projects."""

    ids: tuple[str, ...] = ()
    session: str = ""
    projects: tuple[str, ...] = ()
    match: str = ""
    why: str = ""


class Forgetting:
    """Forgets, one thing after another, while no session is distilled."""

    def __init__(
        self,
        *,
        home: Home,
        store: Callable[[], Store],
        distilling: Distilling,
        refining: Refining,
        importing: Callable[[], Importing],
        work: Work,
        drain: Callable[[], None],
        tell: Callable[[str, str], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._home, self._store, self._now, self._tell = home, store, now, tell
        self._distilling, self._refining, self._importing, self._work = distilling, refining, importing, work
        self._drain = drain

    def asked(self, told: Mapping[str, Any], *, who: str = "user") -> dict[str, Any]:
        """Forget what a caller names, or only tell what would go; what was left unfinished comes first."""
        wish = _wish(told, store=self._store())
        if told.get("dry_run"):
            return self._would(wish)  # it only reads, and a session's start would wait in line behind it
        if self._importing().busy():
            raise BadRequest("an import is running", hint="wait until it is done: it may bring what is forgotten here")
        self._drain()
        return self._distilling.apart(lambda: self._forget(wish, who=who)).result()

    def resume(self) -> None:
        """Finish aside what a killed worker left."""
        try:
            if not self._store().forgetting.unfinished():
                return
        except ForewordError:
            return
        self._distilling.apart(self._finish_aside)

    # -- what would go ------------------------------------------------------------------------------------------
    def _would(self, wish: Wish) -> dict[str, Any]:
        store, live = self._store(), self._store().forgetting
        going = self._doomed(live, wish)
        traces = _traces(live.ask(lambda execute: list(rows.told(execute, going))), self._home)
        going = live.ask(lambda execute: rows.with_merged(execute, going, traces))
        about = live.ask(lambda execute: rows.going_of(execute, going))
        cutter = _cutter([live.ask], going, traces)
        cut, in_files = _cut(store, cutter, dry_run=True), self._in_files(cutter, going, dry_run=True)
        named = [
            {"id": each.id, "kind": each.kind, "title": each.title, "project": each.project} for each in about.memories
        ]
        return {
            "dry_run": True,
            "tables": dict(about.tables),
            "memories": named[:MOST_TITLES],
            "more": len(named[MOST_TITLES:]),
            "cut": _told({**cut, "log": max(cut["log"], about.entries)}),
            "cut_memories": [memory.id for memory in store.by_uid(sorted(cutter.cut))],
            "files": _told(in_files),
            "sessions": list(going.sessions),
            "projects": list(going.projects),
            "copies": [str(path.relative_to(self._home.root)) for path in _databases(self._home)],
            "undo": FOR_EVER,
            "not_ours": _not_ours(about),
        }

    def _forget(self, wish: Wish, *, who: str) -> dict[str, Any]:
        if self._store().forgetting.unfinished():
            self._finish(self._store().forgetting.unfinished())
        return self._carry_out(self._doomed(self._store().forgetting, wish), who=who, why=wish.why, at=self._now())

    def _finish_aside(self) -> None:
        try:
            left = self._store().forgetting.unfinished()
            if left:
                self._finish(left)
        except (ForewordError, OSError) as exc:
            self._tell("forget", f"something that was to be forgotten is not gone yet: {exc}; it is tried again")

    def _finish(self, left: Mapping[str, Any]) -> dict[str, Any]:
        """What a killed worker was about to forget."""
        store = self._store()
        live = store.forgetting
        if left.get("sweep"):  # the rows are gone, and with them what to look for
            store.sweep()
            told = {"interrupted": True, "windows": None, "left": None, "undo": FOR_EVER}
            return {**told, "entry": live.end(told, who="worker", why="finished", at=self._now(), ids=())}
        going = live.ask(lambda execute: _again(execute, left))
        return self._carry_out(going, who="worker", why="finished after an interruption", at=float(left["at"]))

    def _doomed(self, live: Forgetter, wish: Wish) -> Doomed:
        going = live.ask(
            lambda execute: rows.doomed(
                execute, ids=wish.ids, session=wish.session, projects=wish.projects, match=wish.match
            )
        )
        missing = [id for id in wish.ids if id not in going.ids]
        if missing:
            raise NotFound(f"there is no memory {', '.join(missing[:5])}", hint="`foreword search` finds ids")
        if not going.ids and not going.sessions and not going.projects:
            raise NotFound("nothing here is like that", hint="`foreword search` and `foreword sessions` tell what is")
        return going

    def _carry_out(self, going: Doomed, *, who: str, why: str, at: float) -> dict[str, Any]:
        began = time.perf_counter()
        store, home = self._store(), self._home
        live = store.forgetting
        copies, strange = _opened(home)
        try:
            traces, going = self._known(live, copies, going)
            about = live.ask(lambda execute: rows.going_of(execute, going))
            live.begin(going, at=at)
            self._refining.drop()
            self._work.forget(going.near)
            sides = [live.ask, *(copy.ask for copy in copies)]
            cutter = _cutter(sides, going, traces)
            rest = cutter.rest
            changed = _cut(store, cutter)
            live.cut_done(cutter, at=at)
            in_files = self._in_files(cutter, going)
            stones = live.stones()
            for copy in copies:
                more = copy.ask(lambda execute: rows.with_merged(execute, going, traces))
                in_files[_named(copy.path, home)] = copy.forget(more, cutter, stones=stones, at=at).total()
            cut = [memory.id for memory in store.by_uid(sorted(cutter.cut))]
            removed = live.remove(going)
            sought = rest.without(cutter.left)
            for ask in sides:
                sought = sought.without(held(ask(rows.made), sought.telling))
        finally:
            for copy in copies:
                copy.close()
        store.sweep()
        scanned = scan(home, live, sought)
        for _ in range(SWEEPS):
            if not scanned.left:
                break
            store.give_back()
            before, scanned = scanned, scan(home, live, sought)
            if scanned.left == before.left:
                break  # it stands in what stays
        receipt = {
            "memories": len(going.ids),
            "sessions": len(going.sessions),
            "projects": len(going.projects),
            "removed": dict(removed),
            "cut": _told({**changed, "log": max(changed["log"], about.entries)}),
            "files": _told(in_files),
            "cut_memories": cut,
            "tombstones": len(stones.rows),
            "windows": {
                "of_the_text": len(traces.known) + traces.unsaid,
                "in_what_stays": len(traces.known) - len(sought.telling),
                "looked_for": len(sought.telling),
                "too_many": traces.unsaid,
            },
            "scanned": {"files": scanned.files, "bytes": scanned.size, "mb_per_s": round(scanned.speed, 1)},
            "left": scanned.left,
            "not_looked_into": [*strange, *scanned.packed],
            "undo": FOR_EVER,
            "seconds": round(time.perf_counter() - began, 2),
        }
        named = rest.near(redact(why))[:MOST_WHY]
        own = {memory.project for memory in about.memories}  # of a whole project not even its name is kept
        project = "".join(own) if len(own) == 1 and not going.projects else ""
        entry = live.end(receipt, who=who, why=named, at=at, ids=going.ids[:MOST_NAMED], project=project)
        return {**receipt, "ids": list(going.ids), "entry": entry, "not_ours": _not_ours(about), "dry_run": False}

    def _known(self, live: Forgetter, copies: Sequence[Copy], going: Doomed) -> tuple[Traces, Doomed]:
        """What tells of it, in every wording that any copy has, and all that goes with it."""
        sides = [live.ask, *(copy.ask for copy in copies)]

        def told(of: Doomed) -> list[str]:
            return [text for ask in sides for text in ask(lambda execute: list(rows.told(execute, of)))]

        for ask in sides:
            going = ask(partial(rows.known_as, going=going))
        traces = _traces(told(going), self._home)
        more = live.ask(lambda execute: rows.with_merged(execute, going, traces))
        return (traces if more == going else _traces(told(more), self._home)), more

    def _in_files(self, cutter: Cutter, going: Doomed, *, dry_run: bool = False) -> Counter[str]:
        """Logs, what was set aside, and any other text file in the home: how many lines changed in each."""
        changed: Counter[str] = Counter()
        for each in files(self._home, cleaner=cutter, dry_run=dry_run):
            changed[each.table] += each.changed
        for path in _texts(self._home):
            changed[_named(path, self._home)] += _rewritten(path, cutter, going, dry_run=dry_run)
        return changed


# ---- what is asked


def _wish(told: Mapping[str, Any], *, store: Store) -> Wish:
    ids, session, project, match = (told.get(name) or "" for name in ("ids", "session", "project", "match"))
    given = [name for name in ("ids", "session", "match") if told.get(name)]
    if len(given) > 1 or not (given or project):
        hint = "one of {ids: […]}, {session}, {project}, {match, project}"
        raise BadRequest("say one thing that is to be forgotten", hint=hint)
    if ids and (not isinstance(ids, list) or not all(isinstance(each, str) for each in ids) or len(ids) > MOST_IDS):
        raise BadRequest(f"`ids` must be a list of at most {MOST_IDS:,} ids", hint='send {"ids": ["dec-…"]}')
    if not all(isinstance(each, str) for each in (session, project, match)) or (given and project and not match):
        raise BadRequest("`session`, `project` and `match` must be texts", hint="a project goes with `match` alone")
    if match and (not str(match).strip() or not project):
        raise BadRequest("`match` needs words, and the project they stand in", hint="send {match, project}")
    why = redact(str(told.get("why") or ""))[:MOST_WHY]
    return Wish(
        ids=tuple(dict.fromkeys(ids or ())),
        session=_session(str(session), store=store) if session else "",
        projects=_projects(str(project), store=store) if project else (),
        match=str(match),
        why=why,
    )


def _session(named: str, *, store: Store) -> str:
    """A session by its id, or by how that begins where it is the only one."""
    if store.session(named):
        return named
    found = [each.id for each in store.sessions(limit=100_000) if each.id.startswith(named)]
    if len(found) != 1:
        many = f"{len(found)} sessions begin with" if found else "there is no session"
        raise NotFound(f"{many} {named!r}", hint="`foreword sessions` lists them")
    return found[0]


def _projects(named: str, *, store: Store) -> tuple[str, ...]:
    """A folder's project, or the one of that key, with those that are its aliases."""
    key = storable(project_at(named).key if named.startswith("/") else named)
    key = counts_as(key, store.registry())
    found = store.forgetting.ask(lambda execute: rows.projects(execute, key))
    if not found:
        raise NotFound(f"nothing is known of the project {key!r}", hint="give a folder of it, or its key")
    return found


def _again(execute: rows.Execute, left: Mapping[str, Any]) -> Doomed:
    by_ids = rows.doomed(execute, ids=left["ids"])
    near = tuple(sorted({*by_ids.near, *left["sessions"]}))
    return replace(by_ids, sessions=tuple(left["sessions"]), projects=tuple(left["projects"]), near=near)


def _not_ours(about: rows.Going) -> list[str]:
    """What is not ours to remove."""
    untold = [f"{session} of {host}" for session, host in about.hosts.items()]
    told = [f"the host's own transcript {path}" for path in about.transcripts]
    if untold and not told:
        told = [f"the host's own transcript of session {each}, wherever it keeps it" for each in untold]
    return [*told, *NOT_OURS]


# ---- what tells of it


def _traces(texts: Iterable[str], home: Home) -> Traces:
    ours = b"\n".join(path.read_bytes() for path in _code(home))
    return traces_of(texts, ours=ours, words=_ordinary())


@lru_cache(1)
def _ordinary() -> frozenset[str]:
    """How ordinary text looks: the words of this package, in its sentences and its names."""
    found: set[str] = set()
    folders = [resources.files("foreword")]
    while folders:
        for each in folders.pop().iterdir():
            if each.is_dir():
                folders.append(each)
            elif each.name.endswith((".py", ".toml")):
                found.update(re.findall(r"[a-z]{3,}", each.read_text(encoding="utf-8").lower()))
    return frozenset(found)


def _stays(sides: Iterable[Callable[..., Any]], going: Doomed, traces: Traces, *, kin: bool) -> frozenset[bytes]:
    found: frozenset[bytes] = frozenset()
    for ask in sides:
        found |= ask(lambda execute: rows.stays(execute, going, traces, kin=kin))
    return found


def _cutter(sides: Sequence[Callable[..., Any]], going: Doomed, traces: Traces) -> Cutter:
    kin = traces.without(_stays(sides, going, traces, kin=False))
    rest = kin.without(_stays(sides, going, kin, kin=True))
    given = frozenset[str]().union(*(ask(lambda execute: rows.given_to(execute, going)) for ask in sides))
    return Cutter(going, known=traces, kin=kin, rest=rest, given=given)


def _cut(store: Store, cutter: Cutter, *, dry_run: bool = False) -> Counter[str]:
    """Take it out of every row that stays; how many, by table."""
    changed: Counter[str] = Counter()
    after: Sequence[object] = ()
    while True:
        found = store.scrub(cutter, after=after, dry_run=dry_run)
        changed[found.table] += found.changed
        after = found.after
        if not after:
            return changed


def _told(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


# ---- the files of the home


@dataclass(frozen=True)
class Scanned:
    """What a look at every byte found."""

    files: int
    size: int
    speed: float  # MB a second
    left: list[dict[str, Any]]
    packed: list[str]


def scan(home: Home, live: Forgetter, sought: Traces) -> Scanned:
    """Look through every byte of every file for telling windows."""
    began = time.perf_counter()
    count = size = 0
    left: list[dict[str, Any]] = []
    packed: list[str] = []
    for path in _every(home):
        name = _named(path, home)
        if name == f"{home.database.name}-shm":
            continue  # page numbers alone; and to open it besides would drop SQLite's locks
        found: set[bytes] = set()
        before = b""
        try:
            for piece in live.pieces() if path == home.database else _pieces(path):
                found |= sought.held(before + piece)
                before = piece[-WINDOW + 1 :]
                size += len(piece)
        except FileNotFoundError:
            continue  # what is only there for a moment
        except OSError as exc:
            packed.append(f"{name}: {exc.strerror}")
        count += 1
        if path.suffix in PACKED:
            packed.append(f"{name}: packed")
        if found:
            why = "your own settings, which are never changed" if name.split("/")[0] in USERS else "it is not ours"
            ours = path == home.database or name.split("/")[0] in ("logs", "spool", "backups")
            left.append({"file": name, "windows": len(found), "why": "by chance, or written since" if ours else why})
    return Scanned(count, size, size / 1e6 / max(1e-6, time.perf_counter() - began), left, packed)


def _every(home: Home) -> Iterator[Path]:
    """Every ordinary file of the home."""
    for folder, _, names in os.walk(home.root):
        for name in sorted(names):
            path = Path(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                yield path


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def _code(home: Home) -> Iterator[Path]:
    return (path for path in _every(home) if _named(path, home).split("/")[0] in CODE)


def _databases(home: Home) -> Iterator[Path]:
    """Backups, and whatever else is a database beside the live one."""
    beside = home.database.name
    for path in _every(home):
        if not (path.parent == home.root and path.name.startswith(beside)):
            with path.open("rb") as file:
                if file.read(len(MAGIC)) == MAGIC:
                    yield path


def _opened(home: Home) -> tuple[list[Copy], list[str]]:
    """The copies that can be opened, and what is wrong with the others."""
    copies, strange = [], []
    for path in _databases(home):
        try:
            copies.append(Copy(path))
        except StoreError as exc:
            strange.append(f"{_named(path, home)}: {exc}")
    return copies, strange


def _texts(home: Home) -> Iterator[Path]:
    """Files that are neither ours by name nor a database: exports, and whatever somebody put there."""
    databases = set(_databases(home))
    for path in _every(home):
        first = _named(path, home).split("/")[0]
        beside = path.parent == home.root and path.name.startswith(home.database.name)
        if first not in (*CODE, *USERS, "logs", "spool") and not beside and path not in databases:
            yield path


def _rewritten(path: Path, cutter: Cutter, going: Doomed, *, dry_run: bool) -> int:
    """A text file without it, whole or not at all; of an export of ours whole rows go. How many lines changed."""
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except (UnicodeDecodeError, FileNotFoundError):
        return 0  # no text, or there for a moment only: where it holds something, the look at every byte tells
    ours = EXPORT in lines[0]
    clean = _export(lines, cutter, going) if ours else [cutter.text(line) for line in lines]
    if clean == lines or dry_run:
        return len(set(lines) - set(clean))
    handle, temporary = tempfile.mkstemp(prefix=".foreword-forget-", dir=path.parent)
    with open(handle, "wb") as out:
        out.write("\n".join(clean).encode())
        out.flush()
        os.fsync(out.fileno())
    os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
    os.replace(temporary, path)
    return len(set(lines) - set(clean))


def _export(lines: Sequence[str], cutter: Cutter, going: Doomed) -> list[str]:
    header = json.loads(lines[0])
    counts = Counter(header.get("counts") or {})
    kept = []
    for line in lines[1:]:
        try:
            (part, row), *_ = json.loads(line).items()
            gone = _goes(row, going)
        except (ValueError, AttributeError, TypeError):
            part, gone = "", False
        if gone:
            counts[part] -= 1
        else:
            kept.append(cutter.text(line))
    return [json.dumps({**header, "counts": dict(counts)}), *kept]


def _goes(row: Mapping[str, Any], going: Doomed) -> bool:
    if row.get("project") in going.projects or row.get("session") in going.sessions:
        return True
    named = {row.get(name) for name in ("uid", "source_uid", "target_uid")}
    return not named.isdisjoint(going.uids) or ("host" in row and row.get("id") in going.sessions)


def _named(path: Path, home: Home) -> str:
    return path.relative_to(home.root).as_posix()
