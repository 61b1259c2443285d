"""The audit log: carry out changes that somebody made on purpose, list them, and undo them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from foreword.audit import AuditEntry, MemoryChange, UndoResult, detail_after, is_undoable, patch_of
from foreword.errors import Conflict
from foreword.models import Link, Memory
from foreword.store.sql import Repository, as_json, transaction, where

MERGE = "merge project"  # an entry of projects, not of memories
GONE = {"forget": "what was forgotten is gone for good", MERGE: "projects that were merged stay one"}
LISTS = ("tags", "files", "functions")


class Audit(Repository):
    """The audit log."""

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
                patch, ids = self._undo(entry)
            except Conflict as exc:
                refused[entry.number] = str(exc)
                continue
            why = f"takes back {entry.number}: {entry.what}"
            written = self.note("undo", why, patch, who=who, run=run, at=at, project=entry.project, ids=ids)
            self._db.execute("UPDATE log SET undone = ? WHERE number = ?", (written.number, entry.number))
            done.append(written)
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
        rows = self._all(
            f"""SELECT number, at, who, what, why, run, project, patch, undone FROM log {clause}
            ORDER BY number DESC LIMIT ?""",
            (*parameters, limit),
        )
        entries: Iterable[Any] = ((*row[:7], self._memories_of(row[0]), json.loads(row[7]), row[8]) for row in rows)
        return tuple(AuditEntry(*each) for each in entries)

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

    @transaction
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
        """Write an entry, in the commit of the change that it is about."""
        ((number,),) = self._all(
            "INSERT INTO log (at, who, what, why, run, project, patch) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING number",
            (at, who, what, why, run, project, as_json(patch)),
        )
        about = tuple(dict.fromkeys(ids))
        self._db.execute_many("INSERT OR IGNORE INTO log_memories VALUES (?, ?)", [(id, number) for id in about])
        return AuditEntry(number, at, who, what, why, run, project, about, patch)

    # -- inside a change ----------------------------------------------------------------------------------------
    def _apply(self, one: MemoryChange, *, who: str, run: str, at: float) -> AuditEntry:
        new = self._store.memories.put(one.new)
        if len(new) < len(one.new):
            raise Conflict(
                "this change would bring back what was forgotten",
                hint="add it again with `foreword add`, if you want it back",
            )
        ids = {memory.uid: memory.id for memory in new}  # by which the others can be superseded
        patches = {
            before.id: patch_of(before, replace(after, superseded_by=ids.get(after.superseded_by, after.superseded_by)))
            for before, after in one.changed
        }
        changed, patch = self._change(patches, links=one.links, unlinked=one.unlinked)
        kept = (*changed, *new)
        patch["new"] = list(ids.values())
        project = next((memory.project for memory in kept), "")
        about = [memory.id for memory in kept]
        return self.note(one.what, one.why, patch, who=who, run=run, at=at, project=project, ids=about)

    def _undo(self, entry: AuditEntry) -> tuple[Mapping[str, Any], Iterable[str]]:
        """Revert what an entry did; return the patch and the memories of the entry that says so."""
        if why := GONE.get(entry.what):
            raise Conflict(f"entry {entry.number} cannot be taken back: {why}")
        # As it is now: two who ask at once have both read it as it was before.
        rows = self._all("SELECT undone FROM log WHERE number = ?", (entry.number,))
        if not rows:
            raise Conflict(f"the log no longer has entry {entry.number}")
        if undone := rows[0][0]:
            raise Conflict(f"entry {entry.number} was taken back by entry {undone} already")
        if not is_undoable(entry):
            raise Conflict(f"entry {entry.number} ({entry.what}) cannot be taken back")
        changed: Mapping[str, Any] = entry.patch.get("changed", {})
        led = [patch["superseded_by"][0] for patch in changed.values() if patch.get("superseded_by", ("",))[0]]
        if gone := set(led) - {memory.id for memory in self._store.memories.get(led)}:
            raise Conflict(f"{gone.pop()}, which took its place then, is no longer there")
        patches = {id: {name: [new, old] for name, (old, new) in patch.items()} for id, patch in changed.items()}
        # What was made is discarded, not removed: nothing is lost by taking something back.
        for made in self._store.memories.get(entry.patch.get("new", ())):
            other_status = "active" if made.status == "discarded" else "discarded"
            patches[made.id] = {"status": [made.status, other_status]}
        links, unlinked = ([Link(*each) for each in entry.patch.get(name, ())] for name in ("unlinked", "links"))
        after, patch = self._change(patches, links=links, unlinked=unlinked)
        return patch, [memory.id for memory in after]

    def _change(
        self, patches: Mapping[str, Any], *, links: Sequence[Link], unlinked: Sequence[Link]
    ) -> tuple[tuple[Memory, ...], dict[str, Any]]:
        """Apply patches to memories, by id, and to links; return the memories, and the patch of the entry."""
        present = {memory.id: memory for memory in self._store.memories.get(list(patches))}
        after = [_patched(present.get(id), patch, id=id) for id, patch in patches.items()]
        links = self._between_memories(links)
        kept = self._store.memories.put(after, links=links)
        for memory in after:
            if "pinned" in patches[memory.id]:  # which `put` leaves as it is
                self._db.execute("UPDATE memories SET pinned = ? WHERE id = ?", (int(memory.pinned), memory.id))
        for link in unlinked:
            sql = "DELETE FROM links WHERE source = ? AND relation = ? AND target = ?"
            self._db.execute(sql, tuple(vars(link).values()))
        rows = {
            name: [list(vars(link).values()) for link in some]
            for name, some in (("links", links), ("unlinked", unlinked))
        }
        return kept, {"changed": dict(patches), "new": [], **rows}

    def _between_memories(self, links: Sequence[Link]) -> Sequence[Link]:
        """Return the links both ends of which are there, as ids, whether they were given as ids or uids."""
        ends = [end for link in links for end in (link.source, link.target)]
        ids = {memory.uid: memory.id for memory in self._store.memories.get_by_uid(ends)}
        ids |= {memory.id: memory.id for memory in self._store.memories.get(ends)}
        return [
            Link(ids[link.source], link.relation, ids[link.target])
            for link in links
            if link.source in ids and link.target in ids
        ]


def _patched(present: Memory | None, patch: Mapping[str, Any], *, id: str) -> Memory:
    """Return a memory with a patch; what it is not based on any more raises Conflict."""
    if present is None:
        raise Conflict(f"{id} is no longer there")
    wanted: dict[str, Any] = {name: tuple(each[1]) if name in LISTS else each[1] for name, each in patch.items()}
    if "detail" in patch:
        wanted["detail"] = detail_after(present.detail, patch["detail"])
    after = replace(present, **wanted)
    for name, (now, then) in patch_of(present, after).items():
        known = patch[name][0]
        if name == "detail":
            known = {part: each for part, each in known.items() if part in now or part in then}
        if now != known:
            raise Conflict(
                f"the {name} of {present.id} has changed since", hint="`foreword show` shows it as it is now"
            )
    return after
