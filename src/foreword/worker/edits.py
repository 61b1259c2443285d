"""Change memories on the user's word: revise, pin, discard, supersede, review, undo; and list the audit log.

Every change is a MemoryChange: one entry of the audit log that can be undone.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from foreword.audit import AuditEntry, MemoryChange, differing, revised, version
from foreword.errors import BadRequest, Conflict, NotFound
from foreword.maintenance.proposals import same
from foreword.models import UNIVERSAL, Link, Memory, texts
from foreword.redact import redact
from foreword.worker import requests, serialize
from foreword.worker.app import App

MOST_UNDONE = 100_000  # entries of one run
MOST_TITLE = 1_000  # characters
# What a note may become: what happens by itself in sessions is none of it.
BECOMES = ("decision", "pattern", "learning", "preference", "correction", "goal", "handoff", "failure", "project")
DECISIONS = {"accept": "accepted", "refuse": "refused", "promote": "promoted", "discard": "discarded"}
LIST_HINT = "`foreword review` lists what waits"


def revise(app: App, id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Put a memory into the user's words."""
    memory = requests.known(app.store, id)
    if body.get("as_of") not in (None, version(memory)):
        raise Conflict(f"{memory.id} was changed since you read it", hint="look at it again")
    changes = requests.changes(body)
    if changes.get("scope") == "project":
        if not memory.project:
            raise BadRequest(f"{memory.id} came from no project", hint="universal, or language:NAME")
        changes["scope"] = f"project:{memory.project}"
    return revise_memory(app, memory, changes, who="user")


def revise_memory(app: App, memory: Memory, changes: Mapping[str, Any], *, who: str, why: str = "") -> dict[str, Any]:
    """Apply *changes* to a memory's words and fields, and embed it again."""
    after = revised(memory, changes, who=who)
    if after == memory:
        raise BadRequest(f"{memory.id} says all of that already", hint="say what is to be different")
    change = MemoryChange("revise", why + ", ".join(differing(memory, after)), changed=((memory, after),))
    (entry,) = app.store.audit.apply([change], who=who, at=app.now())
    return {"memory": _embedded(app, memory.uid), "entry": serialize.entry(entry)}


def supersede(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Replace a memory by another one: one that is known (`new`), or one that is made for it (`title`, …)."""
    old = requests.known(app.store, requests.text(body, "old"))
    if old.status == "superseded":
        raise BadRequest(f"{old.id} is superseded by {old.superseded_by} already", hint="`foreword undo` undoes that")
    new = _successor(app, old, body)
    after = replace(old, status="superseded", superseded_by=new.id or new.uid)
    change = MemoryChange(
        "supersede",
        f"by {new.id or new.title}",
        changed=((old, after),),
        new=() if new.id else (new,),
        links=(Link(new.id or new.uid, "supersedes", old.id),),
    )
    (entry,) = app.store.audit.apply([change], who="user", at=app.now())
    memory = serialize.memory(requests.known(app.store, old.id))
    return {"memory": memory, "by": _embedded(app, new.uid), "entry": serialize.entry(entry)}


def _successor(app: App, old: Memory, body: Mapping[str, Any]) -> Memory:
    if body.get("new"):
        new = requests.known(app.store, requests.text(body, "new"))
        if new.id == old.id:
            raise BadRequest("a memory cannot supersede itself", hint="name another one, or give a --title")
        if new.status != "active":
            raise BadRequest(f"{new.id} is {new.status} itself", hint="name one that is active")
        if new.scope not in (old.scope, UNIVERSAL):
            raise BadRequest(
                f"{old.id} holds beyond {new.id} ({old.scope}, and {new.scope})",
                hint=f"say with --title what holds there now, or revise {new.id} --scope universal first",
            )
        return new
    changes = requests.changes({name: body[name] for name in ("title", "body", "why", "fixed_by") if name in body})
    if "title" not in changes:
        raise BadRequest("nothing takes its place", hint="name a memory, or say with --title what is true now")
    if old.project:
        app.projects.refuse_to_write(app.projects.named(old.project))
    detail = {name: changes[name] for name in ("why", "fixed_by") if changes.get(name)}
    return _made_from(old, old.kind, changes["title"], changes.get("body", ""), old.scope, now=app.now(), **detail)


def _made_from(old: Memory, kind: str, title: str, body: str, scope: str, *, now: float, **detail: Any) -> Memory:
    """Return a new memory of the user about the same files, functions and tags as *old*."""
    about = {name: getattr(old, name) for name in ("project", "tags", "files", "functions")}
    return Memory(
        kind, title, body, uid=requests.new_uid(), scope=scope, created=now, confirmed=now, detail=detail, **about
    )


def _embedded(app: App, uid: str) -> dict[str, Any]:
    """Return a changed memory, its vector stored where that is cheap; else the embeddings job catches up."""
    (memory,) = app.store.memories.get_by_uid([uid])
    (vector,) = app.embeddings.embed_memories([memory]) or (None,)
    if vector is not None:
        app.store.memories.add_vectors([memory], [vector])
    return serialize.memory(memory)


def pin(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Pin a memory, or with `off` unpin it."""
    pinned = not body.get("off")

    def plan(memory: Memory) -> MemoryChange:
        if memory.pinned == pinned:
            state = "pinned already" if pinned else "not pinned"
            raise BadRequest(f"{memory.id} is {state}", hint="`foreword show` shows it")
        return MemoryChange("pin" if pinned else "unpin", changed=((memory, replace(memory, pinned=pinned)),))

    return _change(app, body, plan)


def discard(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Keep a memory without showing it any more, or with `off` show it again."""
    off = bool(body.get("off"))

    def plan(memory: Memory) -> MemoryChange:
        if memory.status not in (("discarded",) if off else ("active", "stale")):
            raise BadRequest(f"{memory.id} is {memory.status}", hint="undo in its history what made it so")
        after = replace(memory, status="active" if off else "discarded")
        return MemoryChange("restore" if off else "discard", "by hand", changed=((memory, after),))

    return _change(app, body, plan)


def _change(app: App, body: Mapping[str, Any], plan: Callable[[Memory], MemoryChange]) -> dict[str, Any]:
    """Plan and apply the user's change of a memory; return what it became, and its entry in the log."""
    change = plan(requests.known(app.store, requests.text(body, "id")))
    (entry,) = app.store.audit.apply([change], who="user", at=app.now())
    became = change.new[0] if change.new else change.changed[0][1]
    (memory,) = app.store.memories.get_by_uid([became.uid])
    return {"memory": serialize.memory(memory), "entry": serialize.entry(entry)}


# ---- what waits for the user


def list_review(app: App, *, project_path: str = "", project: str = "", most: int = 1000) -> dict[str, Any]:
    """Return the proposals and notes that wait for the user in a project, or in all; at most so many of each."""
    key = project or (app.projects.at(project_path).key if project_path else "")
    scopes = (f"project:{key}",) if key else ()
    store = app.store
    proposals = [each for each in store.memories.proposed() if not scopes or each.scope in scopes]
    # A badge shows only a number, and there may be thousands of notes.
    notes = store.memories.list(("note",), scopes=scopes, statuses=("active",), limit=most) if most else ()
    return {
        "proposals": [serialize.memory(each) for each in proposals[:most]],
        "notes": [serialize.memory(each) for each in notes],
        "waiting": len(proposals) + store.memories.count("note", scopes=scopes),
        "becomes": list(BECOMES),
    }


def decide_review(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Accept, refuse, promote or discard what waits: `{do, id, scope?, as?, title?}`."""
    decision = str(body.get("do") or "")
    if decision not in DECISIONS:
        raise BadRequest(f"unknown answer {decision!r}", hint=f"one of {', '.join(DECISIONS)}")
    scope, kind = requests.beyond(requests.text(body, "scope")), requests.text(body, "as")
    if (kind or decision == "promote") and kind not in BECOMES:
        raise BadRequest(f"nothing becomes a {kind!r} in review", hint=f"one of {', '.join(BECOMES)}")
    title = redact(requests.text(body, "title")).strip()[:MOST_TITLE]

    def plan(memory: Memory) -> MemoryChange:
        is_note = memory.kind == "note" and memory.status == "active"
        if is_note != (decision in ("promote", "discard")) or not (is_note or memory.status == "proposed"):
            raise BadRequest(
                f"{memory.id} is a {memory.kind} that is {memory.status}, and cannot be {DECISIONS[decision]}",
                hint=f"proposals are accepted or refused, notes promoted or discarded; {LIST_HINT}",
            )
        if decision == "accept":
            return _accept(app, memory, scope=scope, kind=kind, title=title)
        if decision == "promote":
            return _promote(memory, scope=scope, kind=kind, title=title, now=app.now())
        why = "the user's no" if decision == "refuse" else "not worth keeping"
        return MemoryChange(decision, why, changed=((memory, replace(memory, status="discarded")),))

    return _change(app, body, plan)


def _accept(app: App, proposal: Memory, *, scope: str, kind: str, title: str) -> MemoryChange:
    """Activate a proposal as a rule of the user, and let it supersede what says the same in its project."""
    after = replace(
        proposal,
        kind=kind or proposal.kind,
        title=title or proposal.title,
        scope=scope or proposal.scope,
        status="active",
        trust="user",
        confidence=1.0,
        confirmed=app.now(),
    )
    rules = app.store.memories.list(("correction", "preference"), scopes=(proposal.scope,))
    covered = [
        each
        for each in rules
        if each.status in ("active", "proposed") and each.uid != proposal.uid
        if each.uid in texts(proposal.detail, "from") or same(each, proposal)
    ]
    superseded = ((each, replace(each, status="superseded", superseded_by=proposal.id)) for each in covered)
    return MemoryChange(
        "accept",
        f"the user's yes, for {after.scope}",
        changed=((proposal, after), *superseded),
        links=tuple(Link(proposal.id, "supersedes", each.id) for each in covered),
    )


def _promote(note: Memory, *, scope: str, kind: str, title: str, now: float) -> MemoryChange:
    """Make a memory of the kind that the user chose from a note, which stays and names it."""
    new = _made_from(note, kind, title or note.title, note.body, scope or note.scope, now=now)
    after = replace(note, status="superseded", superseded_by=new.uid)
    links = (Link(new.uid, "supersedes", note.id),)
    return MemoryChange("promote", f"a note became a {kind}", changed=((note, after),), new=(new,), links=links)


# ---- the audit log


def show_log(
    app: App, *, memory: str = "", project_path: str = "", project: str = "", since: float = 0.0, limit: int = 50
) -> dict[str, Any]:
    """Return who changed and forgot what, newest first; of one project, or of all."""
    key = project or (app.projects.at(project_path).key if project_path else "")
    entries = app.store.audit.list(project=key, memory=memory, since=since, limit=limit)
    return {"project": key, "log": [serialize.entry(each) for each in entries]}


def undo(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Undo an entry of the log, a run, or the last change of a project; what has changed again since is refused."""
    entries = _entries_to_undo(app, body)
    # Several are one run, so that all of it can be done again.
    run = f"undo-{secrets.token_hex(6)}" if body.get("run") or len(entries) > 1 else ""
    result = app.store.audit.undo(entries, who="user", at=app.now(), run=run)
    refused = {str(number): why for number, why in result.refused.items()}
    return {"undone": [serialize.entry(each) for each in result.entries], "refused": refused}


def _entries_to_undo(app: App, body: Mapping[str, Any]) -> tuple[AuditEntry, ...]:
    audit, number, run = app.store.audit, body.get("entry"), requests.text(body, "run")
    if number is not None:
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 1 << 62:
            raise BadRequest("`entry` must be a number of the log", hint="`foreword log` lists them")
        found, missing = audit.list(numbers=[number], limit=1), f"the log has no entry {number}"
    elif run:
        found, missing = audit.list(run=run, limit=MOST_UNDONE), f"the log has no run {run[:80]!r}"
    else:
        key = requests.text(body, "project")
        if not key:  # the last change of all projects may be somebody else's
            key = app.projects.at(requests.text(body, "project_path")).key
        found, missing = audit.list(project=key, undoable=True, limit=1), "there is nothing to undo"
    if not found:
        raise NotFound(missing, hint="`foreword log` lists the changes")
    return found
