"""Change memories on the user's word: revise, pin, supersede, review, undo; and list the audit log.

Every change is a MemoryChange: one entry of the audit log that can be undone.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foreword.audit import MemoryChange, differing, revised
from foreword.errors import BadRequest, NotFound
from foreword.models import UNIVERSAL, Link, Memory
from foreword.redact import redact
from foreword.store.projects import names
from foreword.worker import serialize
from foreword.worker.app import App

MOST_UNDONE = 100_000  # entries of one run
MOST_TITLE = 1_000  # characters
# What a note may become: what happens by itself in sessions is none of it.
BECOMES = ("decision", "pattern", "learning", "preference", "correction", "goal", "handoff", "failure", "project")
DECISIONS = ("promote", "discard")


def revise(app: App, id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Put a memory into the user's words."""
    memory = serialize.known(app.store, id)
    changes = serialize.read_changes(body)
    if changes.get("scope") == "project":
        if not memory.project:
            raise BadRequest(f"{memory.id} came from no project", hint="universal, or language:NAME")
        changes["scope"] = f"project:{memory.project}"
    return revise_memory(app, memory, changes, who="user")


def revise_memory(app: App, memory: Memory, changes: Mapping[str, Any], *, who: str, why: str = "") -> dict[str, Any]:
    """Apply *changes* to a memory's words and fields, and embed it again."""
    after = revised(memory, changes, who=who)
    if after == memory:
        raise BadRequest(f"{memory.id} has these values already", hint="name a new value")
    change = MemoryChange("revise", why + ", ".join(differing(memory, after)), changed=((memory, after),))
    return _apply(app, change, who=who)


def pin(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Pin a memory, or with `off` unpin it."""
    memory, pinned = serialize.known(app.store, serialize.text(body, "id")), not body.get("off")
    if memory.pinned == pinned:
        state = "pinned already" if pinned else "not pinned"
        raise BadRequest(f"{memory.id} is {state}", hint="`foreword show` shows it")
    return _apply(app, MemoryChange("pin" if pinned else "unpin", changed=((memory, replace(memory, pinned=pinned)),)))


def supersede(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Replace a memory, `old`, by another one, `new`."""
    old, new = (serialize.known(app.store, serialize.text(body, name)) for name in ("old", "new"))
    if old.status == "superseded":
        raise BadRequest(f"{old.id} is superseded by {old.superseded_by} already", hint="`foreword undo` undoes that")
    if new.id == old.id or new.status != "active":
        raise BadRequest(f"{new.id} cannot replace {old.id}", hint="name an active memory")
    if new.scope not in (old.scope, UNIVERSAL):
        hint = f"revise {new.id} --scope universal first"
        raise BadRequest(f"{old.id} holds beyond {new.id} ({old.scope}, and {new.scope})", hint=hint)
    after = replace(old, status="superseded", superseded_by=new.id)
    links = (Link(new.id, "supersedes", old.id),)
    answer = _apply(app, MemoryChange("supersede", f"by {new.id}", changed=((old, after),), links=links))
    return {**answer, "by": serialize.memory(new)}


def _apply(app: App, change: MemoryChange, *, who: str = "user") -> dict[str, Any]:
    """Apply a change; return what the memory became, and the log's entry."""
    (entry,) = app.store.audit.apply([change], who=who, at=app.now())
    became = change.new[0] if change.new else change.changed[0][1]
    (memory,) = app.store.memories.get_by_uid([became.uid])
    return {"memory": serialize.memory(memory), "entry": serialize.entry(entry)}


# ---- what waits for the user


def list_review(app: App, *, project_path: str = "", project: str = "", limit: int = 1000) -> dict[str, Any]:
    """Return the notes that wait for the user in a project, or in all: at most so many."""
    key = project or app.projects.key_at(project_path)
    notes = app.store.memories.list(("note",), scopes=(f"project:{key}",) if key else (), statuses=("active",))
    name = names(app.store.projects.all())
    rows = [{**serialize.memory(each), "project_name": name(each.project)} for each in notes[:limit]]
    return {"notes": rows, "waiting": len(notes), "becomes": list(BECOMES)}


def decide_review(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Promote or discard a note that waits: `{do, id, scope?, as?, title?}`."""
    decision, kind = str(body.get("do") or ""), serialize.text(body, "as")
    if decision not in DECISIONS:
        raise BadRequest(f"unknown answer {decision!r}", hint=f"one of {', '.join(DECISIONS)}")
    if decision == "promote" and kind not in BECOMES:
        raise BadRequest(f"a note cannot become a {kind!r}", hint=f"one of {', '.join(BECOMES)}")
    note = serialize.known(app.store, serialize.text(body, "id"))
    title = redact(serialize.text(body, "title")).strip()[:MOST_TITLE] or note.title
    scope = serialize.wide_scope(serialize.text(body, "scope")) or note.scope
    if not serialize.waits(note):
        message = f"cannot {decision} {note.id}: it is a {note.kind} that is {note.status}"
        raise BadRequest(message, hint="`foreword review` lists the notes that wait")
    if decision == "discard":
        discarded = replace(note, status="discarded")
        return _apply(app, MemoryChange(decision, "not worth keeping", changed=((note, discarded),)))
    same: dict[str, Any] = {name: getattr(note, name) for name in ("body", "project", "tags", "files", "functions")}
    about: dict[str, Any] = {"title": title, "scope": scope, "created": app.now(), "confirmed": app.now()}
    new = Memory(kind, uid=secrets.token_hex(16), **same, **about)
    after = replace(note, status="superseded", superseded_by=new.uid)
    links = (Link(new.uid, "supersedes", note.id),)
    why = f"a note became a {kind}"
    return _apply(app, MemoryChange(decision, why, changed=((note, after),), new=(new,), links=links))


# ---- the audit log


def show_log(
    app: App, *, memory: str = "", project_path: str = "", project: str = "", since: float = 0.0, limit: int = 50
) -> dict[str, Any]:
    """Return who changed and forgot what, newest first; of one project, or of all."""
    key = project or app.projects.key_at(project_path)
    memory = app.store.full_id(memory)
    entries = app.store.audit.list(project=key, memory=memory, since=since, limit=limit)
    return {"project": key, "log": [serialize.entry(each) for each in entries]}


def undo(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Undo an entry of the log, a run, or the last change of a project; what has changed again since is refused."""
    audit, number, run = app.store.audit, body.get("entry"), serialize.text(body, "run")
    if number is not None:
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 1 << 62:
            raise BadRequest("`entry` must be a number of the log", hint="`foreword log` lists them")
        entries = audit.list(numbers=[number], limit=1)
    elif run:
        entries = audit.list(run=run, limit=MOST_UNDONE)
    else:  # of a project: the last change of all may be somebody else's
        key = serialize.text(body, "project") or app.projects.at(serialize.text(body, "project_path")).key
        entries = audit.list(project=key, undoable=True, limit=1)
    if not entries:
        raise NotFound("there is nothing to undo", hint="`foreword log` lists the changes")
    # Several are one run, so that all of it can be done again.
    again = f"undo-{secrets.token_hex(6)}" if run or len(entries) > 1 else ""
    result = audit.undo(entries, who="user", at=app.now(), run=again)
    refused = {str(number): why for number, why in result.refused.items()}
    return {"undone": [serialize.entry(each) for each in result.entries], "refused": refused}
