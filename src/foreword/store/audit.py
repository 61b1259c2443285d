"""The audit log: carry out changes that somebody made on purpose, list them, and undo them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from foreword.audit import AuditEntry, MemoryChange, UndoResult, detail_after, is_undoable, patch_of
from foreword.errors import Conflict
from foreword.models import Link, Memory
from foreword.store.memories import Memories, as_json
from foreword.store.sql import Reader, transaction, where

if TYPE_CHECKING:
    from foreword.store.database import Database

ALIAS, MERGE = "alias project", "merge project"  # entries of projects, not of memories
LISTS = ("tags", "files", "functions")
ENTRY = "number, at, who, what, why, run, project, patch, undone"


class Audit(Reader):
    """The audit log."""

    def __init__(self, db: Database, memories: Memories) -> None:
        super().__init__(db)
        self._db, self._memories = db, memories

    @transaction
    def apply(
        self, memory_changes: Sequence[MemoryChange], *, who: str, at: float, run: str = ""
    ) -> tuple[AuditEntry, ...]:
        """Carry out changes, all or nothing, and log each so that it can be undone.

        A memory that is no longer as a change knows it raises Conflict. Ends of links may be uids, and `superseded_by`
        the uid of a new memory.
        """
        return tuple(self._apply(each, who=who, run=run, at=at) for each in memory_changes)

    @transaction
    def undo(self, entries: Sequence[AuditEntry], *, who: str, at: float, run: str = "") -> UndoResult:
        """Undo entries, the newest first; what was changed again since is left, and reported."""
        done: list[AuditEntry] = []
        refused: dict[int, str] = {}
        for entry in sorted(entries, key=lambda each: -each.number):
            try:
                done.append(self._undo(entry, who=who, run=run, at=at))
            except Conflict as exc:
                refused[entry.number] = str(exc)
        return UndoResult(tuple(done), refused)

    def list(
        self,
        *,
        project: str = "",
        memory: str = "",
        run: str = "",
        numbers: Sequence[int] = (),
        since: float = 0.0,
        undoable: bool = False,
        limit: int = 50,
    ) -> tuple[AuditEntry, ...]:
        """Return who changed what on purpose, newest first; *undoable*: only what was not undone and can be."""
        conditions = {
            "project = ?": project,
            "number IN (SELECT number FROM log_memories WHERE memory = ?)": memory,
            "run = ?": run,
            "number IN (SELECT value FROM json_each(?))": json.dumps(list(numbers)) if numbers else "",
            "at >= ?": since,
        }
        # What is gone stays so.
        clause, parameters = where(conditions, *["undone = 0 AND what NOT IN ('undo', 'forget')"] * undoable)
        rows = self._all(f"SELECT {ENTRY} FROM log {clause} ORDER BY number DESC LIMIT ?", (*parameters, limit))
        return tuple(_entry_of(row, self._memories_of(row[0])) for row in rows)

    def undone(self) -> frozenset[tuple[str, frozenset[str]]]:
        """Return what was done and undone, as verbs and the ids of memories: it is not done automatically again."""
        rows = self._all(
            """SELECT what, number FROM log WHERE undone <> 0 AND what <> 'undo'
            AND NOT EXISTS (SELECT 1 FROM log u WHERE u.number = log.undone AND u.undone <> 0)"""
        )
        return frozenset((what, frozenset(self._memories_of(number))) for what, number in rows)

    def _memories_of(self, number: int) -> tuple[str, ...]:
        rows = self._all("SELECT memory FROM log_memories WHERE number = ? ORDER BY memory", (number,))
        return tuple(memory for (memory,) in rows)

    # -- inside a change ----------------------------------------------------------------------------------------
    def note(
        self,
        what: str,
        why: str,
        patch: Mapping[str, Any],
        *,
        who: str,
        at: float,
        project: str,
        ids: Iterable[str],
        run: str = "",
    ) -> AuditEntry:
        """Write an entry, as part of the change that it is about."""
        ((number,),) = self._all(
            "INSERT INTO log (at, who, what, why, run, project, patch) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING number",
            (at, who, what, why, run, project, as_json(patch)),
        )
        about = tuple(dict.fromkeys(ids))
        self._db.execute_many("INSERT OR IGNORE INTO log_memories VALUES (?, ?)", [(id, number) for id in about])
        return AuditEntry(number, at, who, what, why, run, project, about, patch)

    def _apply(self, one: MemoryChange, *, who: str, run: str, at: float) -> AuditEntry:
        new = self._memories.put(one.new)
        if len(new) < len(one.new):
            raise Conflict("what it would make was forgotten", hint="say it anew, if it is to be known again")
        ids = {memory.uid: memory.id for memory in new}  # by which the others can be superseded
        patches = {
            before.id: patch_of(before, replace(after, superseded_by=ids.get(after.superseded_by, after.superseded_by)))
            for before, after in one.changed
        }
        changed, patch = self._change(patches, links=self._by_ids(one.links), unlinked=one.unlinked)
        kept = (*changed, *new)
        patch["new"] = list(ids.values())
        project = next((memory.project for memory in kept), "")
        about = [memory.id for memory in kept]
        return self.note(one.what, one.why, patch, who=who, run=run, at=at, project=project, ids=about)

    def _change(
        self, patches: Mapping[str, Any], *, links: Sequence[Link], unlinked: Sequence[Link]
    ) -> tuple[tuple[Memory, ...], dict[str, Any]]:
        """Apply patches to memories, by id, and to links; return the memories, and the patch of the entry."""
        present = {memory.id: memory for memory in self._memories.get(list(patches))}
        after = [self._patched(present.get(id), patch, id=id) for id, patch in patches.items()]
        kept = self._memories.put(after, links=links)
        for memory in after:
            if "pinned" in patches[memory.id]:  # which `put` leaves as it is
                self._db.execute("UPDATE memories SET pinned = ? WHERE id = ?", (int(memory.pinned), memory.id))
        for link in unlinked:
            sql = "DELETE FROM links WHERE source = ? AND relation = ? AND target = ?"
            self._db.execute(sql, tuple(vars(link).values()))
        return kept, {
            "changed": dict(patches),
            "new": [],
            "links": [list(vars(link).values()) for link in links],
            "unlinked": [list(vars(link).values()) for link in unlinked],
        }

    def _undo(self, entry: AuditEntry, *, who: str, run: str, at: float) -> AuditEntry:
        if entry.what == "forget":
            raise Conflict(f"entry {entry.number} cannot be taken back: what was forgotten is gone for good")
        if entry.what == MERGE:
            raise Conflict(f"entry {entry.number} cannot be taken back: projects that were merged stay one")
        # As it is now: two who ask at once have both read it as it was before.
        rows = self._all("SELECT undone FROM log WHERE number = ?", (entry.number,))
        if not rows:
            raise Conflict(f"the log no longer has entry {entry.number}")
        if undone := rows[0][0]:
            raise Conflict(f"entry {entry.number} was taken back by entry {undone} already")
        if entry.patch and entry.what == ALIAS:
            key, before, _ = entry.patch["alias"]
            self._db.execute("UPDATE projects SET alias_of = ? WHERE key = ?", (before, key))
            self._db.changed("projects")
            return self._note_undo(entry, {}, who=who, run=run, at=at, ids=entry.memories)
        if not is_undoable(entry):
            raise Conflict(f"entry {entry.number} ({entry.what}) cannot be taken back")
        changed: Mapping[str, Any] = entry.patch.get("changed", {})
        self._refuse_gone(changed)
        patches = {id: {name: [new, old] for name, (old, new) in patch.items()} for id, patch in changed.items()}
        # What was made is put aside, not removed: nothing is lost by taking something back.
        for made in self._memories.get(entry.patch.get("new", ())):
            other_status = "active" if made.status == "discarded" else "discarded"
            patches[made.id] = {"status": [made.status, other_status]}
        links = self._between([Link(*link) for link in entry.patch.get("unlinked", ())])
        unlinked = [Link(*link) for link in entry.patch.get("links", ())]
        after, patch = self._change(patches, links=links, unlinked=unlinked)
        return self._note_undo(entry, patch, who=who, run=run, at=at, ids=[memory.id for memory in after])

    def _note_undo(
        self, entry: AuditEntry, patch: Mapping[str, Any], *, who: str, run: str, at: float, ids: Sequence[str]
    ) -> AuditEntry:
        why = f"takes back {entry.number}: {entry.what}"
        written = self.note("undo", why, patch, who=who, run=run, at=at, project=entry.project, ids=ids)
        self._db.execute("UPDATE log SET undone = ? WHERE number = ?", (written.number, entry.number))
        return written

    def _patched(self, present: Memory | None, patch: Mapping[str, Any], *, id: str) -> Memory:
        if present is None:
            raise Conflict(f"{id} is no longer there")
        wanted = {name: each[1] for name, each in patch.items()}
        if "detail" in patch:
            wanted["detail"] = detail_after(present.detail, patch["detail"])
        after = replace(present, **_values(wanted))
        for name, (now, then) in patch_of(present, after).items():
            known = patch[name][0]
            if name == "detail":
                known = {part: each for part, each in known.items() if part in now or part in then}
            if now != known:
                raise Conflict(f"the {name} of {present.id} has changed since", hint="look at it again")
        return after

    def _refuse_gone(self, changed: Mapping[str, Any]) -> None:
        """Raise Conflict where what took a memory's place is no longer there."""
        led = [patch["superseded_by"][0] for patch in changed.values() if patch.get("superseded_by", ("",))[0]]
        there = {memory.id for memory in self._memories.get(led)}
        if gone := [id for id in led if id not in there]:
            raise Conflict(f"{gone[0]}, which took its place then, is no longer there")

    def _between(self, links: Sequence[Link]) -> Sequence[Link]:
        """Return the links both ends of which are there."""
        ends = [end for link in links for end in (link.source, link.target)]
        there = {memory.id for memory in self._memories.get(ends)}
        return [link for link in links if {link.source, link.target} <= there]

    def _by_ids(self, links: Sequence[Link]) -> Sequence[Link]:
        """Links whose ends are ids, whatever they were given as."""
        ends = [end for link in links for end in (link.source, link.target)]
        ids = {memory.uid: memory.id for memory in self._memories.get_by_uid(ends)}
        return [
            Link(ids.get(link.source, link.source), link.relation, ids.get(link.target, link.target)) for link in links
        ]


def _values(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a memory out of what JSON holds of them."""
    return {name: tuple(each) if name in LISTS else each for name, each in plain.items()}


def _entry_of(row: Sequence[Any], memories: tuple[str, ...]) -> AuditEntry:
    values: tuple[Any, ...] = (*row[:7], memories, json.loads(row[7]), row[8])
    return AuditEntry(*values)
