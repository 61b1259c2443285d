"""What somebody wants of a memory that is known -> an amendment and its entry in the log; entries -> taken back."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from foreword.audit import (
    ALONE,
    OWN_TERMINAL,
    WORDS,
    AuditEntry,
    MemoryChange,
    chronicle,
    differing,
    is_the_users,
    proposed,
    revised,
    version,
)
from foreword.encoding import storable
from foreword.errors import BadRequest, Conflict, NotFound
from foreword.models import UNIVERSAL, Link, Memory, Project, Vector
from foreword.redact import redact
from foreword.store import Store
from foreword.worker import bulk_edits, requests, serialize

MOST_TAKEN_BACK = 100_000  # entries of one run


@dataclass(frozen=True)
class Revised:
    """A memory that says something else now."""

    memory: Memory
    entry: AuditEntry


@dataclass(frozen=True)
class Proposed:
    """What an agent would have the user's memory say; *waits* unless the user refused the same before."""

    memory: Memory
    waits: bool


class Governing:
    """Changes memories on purpose, for the user or for an agent; all of it is logged and can be taken back."""

    def __init__(
        self,
        *,
        store: Callable[[], Store],
        project_of: Callable[[str], Project],
        project_named: Callable[[str], Project],
        vectors_of: Callable[[Sequence[Memory]], Sequence[Vector | None]],
        refuse: Callable[[Project], None],
        now: Callable[[], float],
    ) -> None:
        self._store = store
        self._project_of = project_of
        self._project_named = project_named
        self._vectors_of = vectors_of
        self._refuse = refuse
        self._now = now

    # -- what is asked of the worker ----------------------------------------------------------------------------
    def revise(self, id: str, told: Mapping[str, Any]) -> dict[str, Any]:
        """A memory in other words, or an agent's proposal of some."""
        memory = self._found(id, told)
        if told.get("as_of") not in (None, version(memory)):
            raise Conflict(f"{memory.id} was changed since you read it", hint="look at it again")
        changes = requests.changes(told)
        if "scope" in changes:
            changes["scope"] = _scope(changes["scope"], memory)
        by = redact(storable(str(told.get("by") or "")))
        if not by:
            got: Revised | Proposed = self._revise(memory, changes, who="user")
        else:
            got = self.revise_for(memory, changes, source=by, session="")
        if isinstance(got, Proposed):
            return {"memory": serialize.memory(got.memory), "proposed": True, "waits": got.waits}
        return {"memory": serialize.memory(got.memory), "entry": _entry(got.entry), "proposed": False}

    def pin(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """A memory that the user holds on to, or no longer; or several of them."""
        plan = partial(bulk_edits.pin, pinned=not told.get("off"))
        if "ids" in told:
            return self._together(told, plan)
        _by_the_user(told)
        memory = self._found(told.get("id"), told)
        return self._answer(memory.id, self._amend(plan(memory), who="user"))

    def put_aside(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Memories that are kept and no longer shown, or shown again."""
        return self._together(told, bulk_edits.bring_back if told.get("off") else bulk_edits.put_aside)

    def tag(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Memories with more tags, or with fewer."""
        add, remove = requests.tags(told, "add"), requests.tags(told, "remove")
        if not add and not remove:
            raise BadRequest("no tag is named", hint='send {"ids": ["…"], "add": ["…"]}, or `remove`')
        return self._together(told, partial(bulk_edits.tag, add=add, remove=remove))

    def supersede(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """A memory that another one takes the place of: one that is known, or one that is made for it."""
        _by_the_user(told)
        old = self._found(told.get("old"), told)
        if old.status == "superseded":
            raise BadRequest(
                f"{old.id} is superseded by {old.superseded_by} already", hint="`foreword undo` takes that back"
            )
        new = self._successor(old, told)
        links = (Link(new.id or new.uid, "supersedes", old.id),)
        after = replace(old, status="superseded", superseded_by=new.id or new.uid)
        made = () if new.id else (new,)
        entry = self._amend(MemoryChange("supersede", changed=((old, after),), new=made, links=links), who="user")
        self._give_vectors(made)
        (new,) = self._store().memories.get_by_uid([new.uid])
        return {**self._answer(old.id, entry), "by": serialize.memory(new)}

    def undo(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """What was last done in a project, an entry, or a run, taken back; a preview only says what would be."""
        preview = bool(told.get("preview"))
        if not preview:
            _by_the_user(told)
        entries = self._entries(told)
        about = [_entry(each) for each in entries]
        if preview:
            return {"entries": about, "undone": [], "refused": {}}
        several = told.get("run") or len(entries) > 1
        run = f"undo-{secrets.token_hex(6)}" if several else ""  # so that all of it can be done again
        got = self._store().audit.undo(entries, who="user", at=self._now(), run=run)
        refused = {str(number): why for number, why in got.refused.items()}
        return {"entries": about, "undone": [_entry(each) for each in got.entries], "refused": refused}

    def log(
        self, *, memory: str = "", project_path: str = "", project: str = "", since: float = 0.0, limit: int = 50
    ) -> dict[str, Any]:
        """Who wrote, changed and forgot what, newest first; of one project, or of all."""
        key = project or (self._project_of(project_path).key if project_path else "")
        about: dict[str, Any] = {"project": key, "memory": memory, "since": since, "limit": limit}
        found = chronicle(self._store().audit.list(**about), self._store().audit.created(**about), limit=limit)
        return {"project": key, "log": [{**vars(each), "memories": list(each.memories)} for each in found]}

    # -- what an agent may do -----------------------------------------------------------------------------------
    def revise_for(
        self, memory: Memory, changes: Mapping[str, Any], *, source: str, session: str
    ) -> Revised | Proposed:
        """What others wrote, an agent may put into other words; of what the user said it may only propose some."""
        if memory.status != "active":
            raise BadRequest(f"{memory.id} is {memory.status}", hint="keep what is true now with memory_remember")
        if strange := [name for name in changes if name not in WORDS]:
            raise BadRequest(f"{ALONE}: {', '.join(strange)}", hint=OWN_TERMINAL)
        if not is_the_users(memory):
            return self._revise(memory, changes, who="agent", why=f"{source}: ")
        one = proposed(memory, changes, source=source, session=session, at=self._now())
        if revised(memory, changes, who="agent") == memory:
            raise _nothing(memory)
        known = next(iter(self._store().memories.get_by_uid([one.uid])), None)
        if known is not None:
            return Proposed(known, waits=known.status == "proposed")
        what = ", ".join(differing(memory, revised(memory, changes, who="agent")))
        self._amend(MemoryChange("propose", f"{source} would revise {memory.id}: {what}", new=(one,)), who="agent")
        return Proposed(self._store().memories.get_by_uid([one.uid])[0], waits=True)

    # -- how it is done -----------------------------------------------------------------------------------------
    def _revise(self, memory: Memory, changes: Mapping[str, Any], *, who: str, why: str = "") -> Revised:
        after = revised(memory, changes, who=who)
        if after == memory:
            raise _nothing(memory)
        what = ", ".join(differing(memory, after))
        entry = self._amend(MemoryChange("revise", why + what, changed=((memory, after),)), who=who)
        (kept,) = self._store().memories.get_by_uid([memory.uid])
        self._give_vectors([kept])
        return Revised(kept, entry)

    def _together(self, told: Mapping[str, Any], plan: bulk_edits.Plan) -> dict[str, Any]:
        _by_the_user(told)
        key = self._key(told)

        def planned(memory: Memory) -> MemoryChange:
            _refuse_other(memory, key)
            return plan(memory)

        return bulk_edits.together(self._store(), bulk_edits.ids_of(told), planned, at=self._now())

    def _amend(self, one: MemoryChange, *, who: str) -> AuditEntry:
        (entry,) = self._store().audit.apply([one], who=who, at=self._now())
        return entry

    def _give_vectors(self, memories: Sequence[Memory]) -> None:
        """At once where that is cheap; else the worker catches up by itself."""
        kept = self._store().memories.get_by_uid([each.uid for each in memories])
        pairs = [pair for pair in zip(kept, self._vectors_of(kept), strict=False) if pair[1] is not None]
        if pairs:
            self._store().memories.add_vectors(
                [memory for memory, _ in pairs], [each for _, each in pairs if each is not None]
            )

    def _answer(self, id: str, entry: AuditEntry) -> dict[str, Any]:
        return {"memory": serialize.memory(self._store().memories.get([id])[0]), "entry": _entry(entry)}

    def _found(self, id: Any, told: Mapping[str, Any]) -> Memory:
        """The memory of an id, in the project that was named; in any where none was."""
        memory = requests.known(self._store(), str(id))
        if memory.status == "forgotten":
            raise NotFound(f"there is no memory {memory.id!r}", hint="`foreword search` finds ids")
        _refuse_other(memory, self._key(told))
        return memory

    def _key(self, told: Mapping[str, Any]) -> str:
        path = str(told.get("project_path") or "")
        return str(told.get("project") or "") or (self._project_of(path).key if path else "")

    def _successor(self, old: Memory, told: Mapping[str, Any]) -> Memory:
        if told.get("new"):
            new = self._found(told["new"], told)
            if new.id == old.id:
                raise BadRequest("a memory cannot take its own place", hint="name another one, or give a --title")
            if new.status != "active":
                raise BadRequest(f"{new.id} is {new.status} itself", hint="name one that is active")
            _refuse_narrower(new, old)
            return new
        changes = requests.changes({name: told[name] for name in ("title", "body", "why", "fixed_by") if name in told})
        if "title" not in changes:
            raise BadRequest("nothing takes its place", hint="name a memory, or say with --title what is true now")
        # Where it is said, and where it would be kept: a switch of either counts.
        if told.get("project_path"):
            self._refuse(self._project_of(str(told["project_path"])))
        if old.project:
            self._refuse(self._project_named(old.project))
        now = self._now()
        about = {name: changes[name] for name in ("why", "fixed_by") if changes.get(name)}
        return Memory(
            kind=old.kind,
            title=changes["title"],
            body=changes.get("body", ""),
            uid=requests.new_uid(),
            scope=old.scope,
            project=old.project,
            tags=old.tags,
            files=old.files,
            functions=old.functions,
            created=now,
            confirmed=now,
            detail=about,
        )

    def _entries(self, told: Mapping[str, Any]) -> tuple[AuditEntry, ...]:
        number, run = told.get("entry"), told.get("run")
        if number is not None:
            found = self._store().audit.list(numbers=[_whole(number)], limit=1)
            missing = f"the log has no entry {number}"
        elif run:
            found = self._store().audit.list(run=str(run), limit=MOST_TAKEN_BACK)
            missing = f"the log has no run {str(run)[:80]!r}"
        else:
            key = self._key(told)
            if not key:  # the last of anything would be somebody else's as well
                raise BadRequest("say what is to be taken back", hint="send `entry`, `run`, or a `project_path`")
            found = self._store().audit.list(project=key, standing=True, limit=1)
            if found and found[0].who == "user" and found[0].run:  # what was chosen together was done by one key
                found = self._store().audit.list(run=found[0].run, standing=True, limit=MOST_TAKEN_BACK)
            missing = "there is nothing to take back"
        if not found:
            raise NotFound(missing, hint="`foreword log` lists them")
        return found


def _refuse_other(memory: Memory, key: str) -> None:
    if key and memory.scope.startswith("project:") and memory.scope != f"project:{key}":
        raise BadRequest(
            f"{memory.id} is of another project ({memory.project})",
            hint=f"go there, or add --project with its folder or --project {memory.project}",
        )


def _refuse_narrower(new: Memory, old: Memory) -> None:
    """What holds in one place alone does not end what holds in others too."""
    if new.scope not in (old.scope, UNIVERSAL) and not old.scope.startswith("project:"):
        raise BadRequest(
            f"{old.id} holds beyond {new.id} ({old.scope}, and {new.scope})",
            hint=f"say with --title what holds there now, or revise {new.id} --scope {old.scope} first",
        )


def _scope(scope: str, memory: Memory) -> str:
    if scope == UNIVERSAL or scope.startswith("language:"):
        return scope
    if not memory.project:
        raise BadRequest(f"{memory.id} came from no project", hint="universal, or language:NAME")
    return f"project:{memory.project}"


def _by_the_user(told: Mapping[str, Any]) -> None:
    if told.get("by"):
        raise BadRequest(ALONE, hint=OWN_TERMINAL)


def _nothing(memory: Memory) -> BadRequest:
    return BadRequest(f"{memory.id} says all of that already", hint="say what is to be different")


def _whole(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 1 << 62:
        raise BadRequest("`entry` must be a number of the log", hint="`foreword log` lists them")
    return number


def _entry(entry: AuditEntry) -> dict[str, Any]:
    return {**vars(entry), "memories": list(entry.memories), "patch": dict(entry.patch)}
