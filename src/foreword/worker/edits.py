"""Change memories on purpose, for the user or for an agent: revise, pin, tag, supersede, review, undo.

Every change is one entry of the audit log and can be undone. Several memories at once are one run of the log in one
transaction; where a change makes no sense for one of them, it stays as it is, with the reason in `refused`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from foreword.audit import (
    OWN_TERMINAL,
    PROPOSAL,
    REVISES,
    USER_ONLY,
    WORDS,
    AuditEntry,
    MemoryChange,
    accepted,
    chronicle,
    differing,
    is_the_users,
    proposed,
    revised,
    version,
)
from foreword.encoding import storable
from foreword.errors import BadRequest, Conflict, NotFound
from foreword.maintenance.proposals import same
from foreword.models import UNIVERSAL, Link, Memory, text, texts
from foreword.redact import redact
from foreword.store import Store
from foreword.worker import requests, serialize
from foreword.worker.app import App
from foreword.worker.jobs.maintenance import rules_of_all

MOST_UNDONE = 100_000  # entries of one run
MOST_AT_ONCE = 500  # memories: what a list shows
MOST_TITLE = 1_000  # characters
# What a note may become: what happens by itself in sessions is none of it.
BECOMES = ("decision", "pattern", "learning", "preference", "correction", "goal", "handoff", "failure", "project")
DECISIONS = {"accept": "accepted", "refuse": "refused", "promote": "promoted", "discard": "discarded"}
LIST_HINT = "`foreword review` lists what waits"
UNDO_HINT = "undo in its history what made it so"

Planner = Callable[[Memory], MemoryChange]


@dataclass(frozen=True)
class Revised:
    """A memory that was changed."""

    memory: Memory
    entry: AuditEntry


@dataclass(frozen=True)
class Proposed:
    """An agent's proposal to change what the user said; *waits* unless the user refused the same before."""

    memory: Memory
    waits: bool


# ---- one memory


def revise(app: App, id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Put a memory into other words, or keep an agent's proposal of some."""
    memory = _memory(app, id, body)
    if body.get("as_of") not in (None, version(memory)):
        raise Conflict(f"{memory.id} was changed since you read it", hint="look at it again")
    changes = requests.changes(body)
    if "scope" in changes:
        changes["scope"] = _scope(changes["scope"], memory)
    by = redact(storable(str(body.get("by") or "")))
    if by:
        done = revise_for_agent(app, memory, changes, source=by, session="")
    else:
        done = _revise(app, memory, changes, who="user")
    if isinstance(done, Proposed):
        return {"memory": serialize.memory(done.memory), "proposed": True, "waits": done.waits}
    return {"memory": serialize.memory(done.memory), "entry": _entry(done.entry), "proposed": False}


def revise_for_agent(
    app: App, memory: Memory, changes: Mapping[str, Any], *, source: str, session: str
) -> Revised | Proposed:
    """Let an agent put into other words what others wrote; of what the user said it may only propose some."""
    if memory.status != "active":
        raise BadRequest(f"{memory.id} is {memory.status}", hint="keep what is true now with memory_remember")
    if forbidden := [name for name in changes if name not in WORDS]:
        raise BadRequest(f"{USER_ONLY}: {', '.join(forbidden)}", hint=OWN_TERMINAL)
    if not is_the_users(memory):
        return _revise(app, memory, changes, who="agent", why=f"{source}: ")
    proposal = proposed(memory, changes, source=source, session=session, at=app.now())
    after = revised(memory, changes, who="agent")
    if after == memory:
        raise _unchanged(memory)
    known = next(iter(app.store.memories.get_by_uid([proposal.uid])), None)
    if known is not None:
        return Proposed(known, waits=known.status == "proposed")
    why = f"{source} would revise {memory.id}: {', '.join(differing(memory, after))}"
    _amend(app, MemoryChange("propose", why, new=(proposal,)), who="agent")
    return Proposed(app.store.memories.get_by_uid([proposal.uid])[0], waits=True)


def _revise(app: App, memory: Memory, changes: Mapping[str, Any], *, who: str, why: str = "") -> Revised:
    after = revised(memory, changes, who=who)
    if after == memory:
        raise _unchanged(memory)
    why += ", ".join(differing(memory, after))
    entry = _amend(app, MemoryChange("revise", why, changed=((memory, after),)), who=who)
    (kept,) = app.store.memories.get_by_uid([memory.uid])
    _embed(app, [kept])
    return Revised(kept, entry)


def supersede(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Replace a memory by another one: one that is known, or one that is made for it."""
    _refuse_agents(body)
    old = _memory(app, body.get("old"), body)
    if old.status == "superseded":
        raise BadRequest(f"{old.id} is superseded by {old.superseded_by} already", hint="`foreword undo` undoes that")
    new = _successor(app, old, body)
    links = (Link(new.id or new.uid, "supersedes", old.id),)
    after = replace(old, status="superseded", superseded_by=new.id or new.uid)
    made = () if new.id else (new,)
    entry = _amend(app, MemoryChange("supersede", changed=((old, after),), new=made, links=links), who="user")
    _embed(app, made)
    (new,) = app.store.memories.get_by_uid([new.uid])
    return {**_result(app, old.id, entry), "by": serialize.memory(new)}


def _successor(app: App, old: Memory, body: Mapping[str, Any]) -> Memory:
    if body.get("new"):
        new = _memory(app, body["new"], body)
        if new.id == old.id:
            raise BadRequest("a memory cannot supersede itself", hint="name another one, or give a --title")
        if new.status != "active":
            raise BadRequest(f"{new.id} is {new.status} itself", hint="name one that is active")
        _refuse_narrower(new, old)
        return new
    changes = requests.changes({name: body[name] for name in ("title", "body", "why", "fixed_by") if name in body})
    if "title" not in changes:
        raise BadRequest("nothing takes its place", hint="name a memory, or say with --title what is true now")
    # The folder of the caller and the project of the memory: a switch of either counts.
    if body.get("project_path"):
        app.projects.refuse_to_write(app.projects.at(str(body["project_path"])))
    if old.project:
        app.projects.refuse_to_write(app.projects.named(old.project))
    detail = {name: changes[name] for name in ("why", "fixed_by") if changes.get(name)}
    return _made_from(old, kind=old.kind, title=changes["title"], body=changes.get("body", ""), now=app.now(), **detail)


def _made_from(old: Memory, *, kind: str, title: str, body: str, now: float, scope: str = "", **detail: Any) -> Memory:
    """Return a new memory of the user about the same files, functions and tags as *old*."""
    return Memory(
        kind=kind,
        title=title,
        body=body,
        uid=requests.new_uid(),
        scope=scope or old.scope,
        project=old.project,
        tags=old.tags,
        files=old.files,
        functions=old.functions,
        created=now,
        confirmed=now,
        detail=detail,
    )


# ---- one or several memories


def pin(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Pin a memory or several, or with `off` unpin them."""
    plan = partial(_pinned, pinned=not body.get("off"))
    if "ids" in body:
        return _bulk(app, body, plan)
    _refuse_agents(body)
    memory = _memory(app, body.get("id"), body)
    return _result(app, memory.id, _amend(app, plan(memory), who="user"))


def discard(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Keep memories without showing them any more, or with `off` show them again."""
    return _bulk(app, body, _restored if body.get("off") else _discarded)


def tag(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Add tags to memories, or remove some."""
    add, remove = requests.tags(body, "add"), requests.tags(body, "remove")
    if not add and not remove:
        raise BadRequest("no tag is named", hint='send {"ids": ["…"], "add": ["…"]}, or `remove`')
    return _bulk(app, body, partial(_tagged, add=add, remove=remove))


def _bulk(app: App, body: Mapping[str, Any], plan: Planner) -> dict[str, Any]:
    _refuse_agents(body)
    key = _project_key(app, body)

    def plan_own(memory: Memory) -> MemoryChange:
        _refuse_other(memory, key)
        return plan(memory)

    return change_together(app.store, _ids(body), plan_own, at=app.now())


def change_together(store: Store, ids: Sequence[str], plan: Planner, *, at: float) -> dict[str, Any]:
    """Carry out the user's change of several memories; one that changes meanwhile leaves all as they were."""
    known = {memory.id: memory for memory in store.memories.get(ids) if memory.status != "forgotten"}
    planned: list[MemoryChange] = []
    changed_for: dict[str, str] = {}  # id of a memory -> the one for whose sake it changes
    refused: dict[str, str] = {}
    for id in ids:
        if id not in known:
            refused[id] = f"there is no memory {id[:80]!r}"
            continue
        try:
            change = plan(known[id])
        except (BadRequest, NotFound) as exc:
            refused[id] = str(exc)
            continue
        # One transaction, but planned from what was there before it: nothing is changed twice.
        if twice := [each for each in change.about if each in changed_for]:
            refused[id] = f"{twice[0]} was changed with {changed_for[twice[0]]} just now"
            continue
        planned.append(change)
        changed_for |= dict.fromkeys(change.about, id)
    run = f"together-{secrets.token_hex(6)}" if planned else ""
    entries = store.audit.apply(planned, who="user", at=at, run=run) if planned else ()
    changed = [id for id in ids if id not in refused]
    return {"run": run, "entries": [each.number for each in entries], "changed": changed, "refused": refused}


def _ids(body: Mapping[str, Any]) -> tuple[str, ...]:
    ids = requests.texts(body, "ids")
    if not ids:
        raise BadRequest("no memory is named", hint='send {"ids": ["…"]}')
    if len(ids) > MOST_AT_ONCE:
        raise BadRequest(
            f"{len(ids)} memories at once are too many", hint=f"at most {MOST_AT_ONCE} at once, the others after it"
        )
    return tuple(dict.fromkeys(ids))


def _pinned(memory: Memory, *, pinned: bool) -> MemoryChange:
    if memory.pinned == pinned:
        state = "pinned already" if pinned else "not pinned"
        raise BadRequest(f"{memory.id} is {state}", hint="`foreword show` shows it")
    return MemoryChange("pin" if pinned else "unpin", changed=((memory, replace(memory, pinned=pinned)),))


def _discarded(memory: Memory) -> MemoryChange:
    if memory.status == "proposed":
        raise BadRequest(f"{memory.id} is proposed", hint="accept or refuse it")
    if memory.status not in ("active", "stale"):
        raise BadRequest(f"{memory.id} is {memory.status} already", hint="it is not shown as it is")
    return MemoryChange("discard", "set aside", changed=((memory, replace(memory, status="discarded")),))


def _restored(memory: Memory) -> MemoryChange:
    """Return the change that shows a discarded memory again; what was refused or superseded is undone instead."""
    if memory.status != "discarded":
        raise BadRequest(f"{memory.id} is {memory.status}, and was not set aside", hint=UNDO_HINT)
    if PROPOSAL in memory.detail or "refused" in memory.detail:
        raise BadRequest(f"{memory.id} was a proposal, and refused", hint=UNDO_HINT)
    return MemoryChange("restore", "brought back", changed=((memory, replace(memory, status="active")),))


def _tagged(memory: Memory, *, add: tuple[str, ...], remove: tuple[str, ...]) -> MemoryChange:
    kept = [each for each in memory.tags if each not in remove]
    tags = tuple(dict.fromkeys((*kept, *add)))
    if tags == memory.tags:
        raise BadRequest(f"{memory.id} has these tags already", hint="`foreword show` shows them")
    return MemoryChange("revise", "tags", changed=((memory, revised(memory, {"tags": tags}, who="user")),))


# ---- what waits for the user


@dataclass(frozen=True)
class Waiting:
    """The proposals and notes that wait for the user's decision, newest first."""

    proposals: tuple[Memory, ...]
    notes: tuple[Memory, ...]
    total: int


def list_review(app: App, *, project_path: str = "", project: str = "", most: int | None = None) -> dict[str, Any]:
    """Return what waits for the user in a project, by folder or key, or in all; at most so many of each kind."""
    key = project or (app.projects.at(project_path).key if project_path else "")
    found = waiting(app.store, scope=f"project:{key}" if key else "", most=most)
    lists = {name: [serialize.memory(each) for each in getattr(found, name)] for name in ("proposals", "notes")}
    return {**lists, "waiting": found.total, "becomes": list(BECOMES)}


def waiting(store: Store, *, scope: str = "", most: int | None = None) -> Waiting:
    """Return the proposals and notes of one scope, or of all.

    What is proposed for all projects waits in each that has the same rule.
    """
    scopes = (scope,) if scope else ()
    proposals = store.memories.proposed()
    wider = scope and any("scope" in each.detail and each.scope != scope for each in proposals)
    own = store.memories.list(("correction", "preference"), scopes=scopes, statuses=("active",)) if wider else ()
    here = tuple(
        each
        for each in proposals
        if not scope or each.scope == scope or ("scope" in each.detail and any(same(each, rule) for rule in own))
    )
    # A badge shows only a number, and there may be thousands of notes.
    limit = {} if most is None else {"limit": most}
    notes = store.memories.list(("note",), scopes=scopes, statuses=("active",), **limit) if most != 0 else ()
    return Waiting(here[:most], notes, total=len(here) + store.memories.count("note", scopes=scopes))


def decide_review(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Accept, refuse, promote or discard what waits: `{do, id, scope?, as?, title?}`, or several `{do, ids, …}`."""
    if "ids" in body:
        _decision(body)
        plain = {**body, "title": ""}  # several things have several titles

        def plan(memory: Memory) -> MemoryChange:
            return _decided(app.store, memory, plain, now=app.now())

        return change_together(app.store, _ids(body), plan, at=app.now())
    memory, entry = decide(app.store, body, now=app.now())
    return {"memory": serialize.memory(memory), "entry": entry.number}


def decide(store: Store, body: Mapping[str, Any], *, now: float) -> tuple[Memory, AuditEntry]:
    """Carry out the user's decision about one thing; return the memory that it became, and the log entry."""
    memory = requests.known(store, requests.text(body, "id"), hint=LIST_HINT)
    change = _decided(store, memory, body, now=now)
    (entry,) = store.audit.apply([change], who="user", at=now)
    became = change.new[0] if change.new else change.changed[0][1]
    return store.memories.get_by_uid([became.uid])[0], entry


def _decided(store: Store, memory: Memory, body: Mapping[str, Any], *, now: float) -> MemoryChange:
    decision, values = _decision(body), {name: requests.text(body, name) for name in ("scope", "as", "title")}
    is_note = memory.kind == "note" and memory.status == "active"
    if is_note != (decision in ("promote", "discard")) or not (is_note or memory.status == "proposed"):
        raise BadRequest(
            f"{memory.id} is a {memory.kind} that is {memory.status}, and cannot be {DECISIONS[decision]}",
            hint="proposals are accepted or refused, notes promoted or discarded; `foreword review` lists both",
        )
    title = redact(values["title"]).strip()[:MOST_TITLE]
    if decision == "accept":
        return _accept(store, memory, scope=values["scope"], kind=values["as"], title=title, now=now)
    if decision == "promote":
        return _promote(memory, kind=values["as"], scope=values["scope"], title=title, now=now)
    return _reject(memory, decision, now=now)


def _decision(body: Mapping[str, Any]) -> str:
    decision = str(body.get("do") or "")
    if decision not in DECISIONS:
        raise BadRequest(f"unknown answer {decision!r}", hint=f"one of {', '.join(DECISIONS)}")
    return decision


def _accept(store: Store, proposal: Memory, *, scope: str, kind: str, title: str, now: float) -> MemoryChange:
    """Activate a proposal, and let it supersede everything that says the same in its scope."""
    if proposal.detail.get(PROPOSAL) == "revise":
        return _accept_revision(store, proposal, title=title)
    if kind and kind not in BECOMES:
        raise BadRequest(f"nothing becomes a {kind!r} in review", hint=f"one of {', '.join(BECOMES)}")
    wanted = requests.beyond(scope or text(proposal.detail, "scope")) or proposal.scope
    detail = {name: item for name, item in proposal.detail.items() if name not in ("scope", "projects", "refused")}
    after = replace(
        proposal,
        kind=kind or proposal.kind,
        title=title or proposal.title,
        scope=wanted,
        status="active",
        trust="user",
        confidence=1.0,
        confirmed=now,
        detail=detail,
    )
    from_uids = texts(proposal.detail, "from")
    covered = [
        each
        for each in rules_of_all(store)
        if each.kind in ("correction", "preference") and each.status in ("active", "proposed")
        if each.uid != proposal.uid and (each.uid in from_uids or same(each, proposal))
        if each.scope == proposal.scope or (each.scope.startswith("project:") and not wanted.startswith("project:"))
    ]
    # No link leads from one project into another; what was superseded there names what is now everybody's.
    links = tuple(Link(proposal.id, "supersedes", each.id) for each in covered if each.project == proposal.project)
    superseded = ((each, replace(each, status="superseded", superseded_by=proposal.id)) for each in covered)
    changed = ((proposal, after), *superseded)
    return MemoryChange("accept", f"the user's yes, for {wanted}", changed=changed, links=links)


def _accept_revision(store: Store, proposal: Memory, *, title: str) -> MemoryChange:
    """Put a memory into the words of a proposal; the proposal stays, and names the memory."""
    memory = requests.known(store, text(proposal.detail, REVISES), hint=LIST_HINT)
    after = accepted(memory, proposal)
    after = replace(after, title=title) if title else after
    done = replace(proposal, status="superseded", superseded_by=memory.id)
    why = f"the user's yes to other words, from {proposal.source}"
    return MemoryChange("accept", why, changed=((memory, after), (proposal, done)))


def _reject(memory: Memory, decision: str, *, now: float) -> MemoryChange:
    """Discard; a refusal notes how often it was said by then, for that decides whether it is proposed again."""
    detail = dict(memory.detail)
    if decision == "refuse":
        before = detail.get("refused")
        times = int(before.get("times", 0)) if isinstance(before, dict) else 0
        sessions = detail.get("projects") or len(detail.get("seen_in") or ()) or memory.seen
        detail["refused"] = {"sessions": sessions, "times": times + 1, "at": now}
    after = replace(memory, status="discarded", detail=detail)
    why = "the user's no" if decision == "refuse" else "not worth keeping"
    return MemoryChange(decision, why, changed=((memory, after),))


def _promote(note: Memory, *, kind: str, scope: str, title: str, now: float) -> MemoryChange:
    """Make a memory of the kind that the user chose from a note, which stays and names it."""
    if kind not in BECOMES:
        raise BadRequest(f"a note cannot become a {kind!r}", hint=f"one of {', '.join(BECOMES)}")
    new = _made_from(note, kind=kind, title=title or note.title, body=note.body, scope=requests.beyond(scope), now=now)
    after = replace(note, status="superseded", superseded_by=new.uid)
    links = (Link(new.uid, "supersedes", note.id),)
    return MemoryChange("promote", f"a note became a {kind}", changed=((note, after),), new=(new,), links=links)


# ---- the audit log


def undo(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Undo the last change of a project, an entry, or a run; a preview only lists what would be undone."""
    preview = bool(body.get("preview"))
    if not preview:
        _refuse_agents(body)
    entries = _entries_to_undo(app, body)
    listed = [_entry(each) for each in entries]
    if preview:
        return {"entries": listed, "undone": [], "refused": {}}
    several = body.get("run") or len(entries) > 1
    run = f"undo-{secrets.token_hex(6)}" if several else ""  # so that all of it can be done again
    result = app.store.audit.undo(entries, who="user", at=app.now(), run=run)
    refused = {str(number): why for number, why in result.refused.items()}
    return {"entries": listed, "undone": [_entry(each) for each in result.entries], "refused": refused}


def show_log(
    app: App, *, memory: str = "", project_path: str = "", project: str = "", since: float = 0.0, limit: int = 50
) -> dict[str, Any]:
    """Return who wrote, changed and forgot what, newest first; of one project, or of all."""
    key = project or (app.projects.at(project_path).key if project_path else "")
    about: dict[str, Any] = {"project": key, "memory": memory, "since": since, "limit": limit}
    found = chronicle(app.store.audit.list(**about), app.store.audit.created(**about), limit=limit)
    return {"project": key, "log": [{**vars(each), "memories": list(each.memories)} for each in found]}


def _entries_to_undo(app: App, body: Mapping[str, Any]) -> tuple[AuditEntry, ...]:
    number, run = body.get("entry"), body.get("run")
    if number is not None:
        found = app.store.audit.list(numbers=[_entry_number(number)], limit=1)
        missing = f"the log has no entry {number}"
    elif run:
        found = app.store.audit.list(run=str(run), limit=MOST_UNDONE)
        missing = f"the log has no run {str(run)[:80]!r}"
    else:
        key = _project_key(app, body)
        if not key:  # the last change of all projects may be somebody else's
            raise BadRequest("nothing to undo is named", hint="send `entry`, `run`, or a `project_path`")
        found = app.store.audit.list(project=key, standing=True, limit=1)
        if found and found[0].who == "user" and found[0].run:  # what was chosen together is undone together
            found = app.store.audit.list(run=found[0].run, standing=True, limit=MOST_UNDONE)
        missing = "there is nothing to undo"
    if not found:
        raise NotFound(missing, hint="`foreword log` lists the changes")
    return found


def _entry_number(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 1 << 62:
        raise BadRequest("`entry` must be a number of the log", hint="`foreword log` lists them")
    return number


def _entry(entry: AuditEntry) -> dict[str, Any]:
    return {**vars(entry), "memories": list(entry.memories), "patch": dict(entry.patch)}


# ---- helpers


def _amend(app: App, change: MemoryChange, *, who: str) -> AuditEntry:
    (entry,) = app.store.audit.apply([change], who=who, at=app.now())
    return entry


def _embed(app: App, memories: Sequence[Memory]) -> None:
    """Store the vectors of changed memories where that is cheap; else the embeddings job catches up."""
    kept = app.store.memories.get_by_uid([each.uid for each in memories])
    pairs = [pair for pair in zip(kept, app.embeddings.embed_memories(kept), strict=False) if pair[1] is not None]
    if pairs:
        app.store.memories.add_vectors([memory for memory, _ in pairs], [each for _, each in pairs if each is not None])


def _result(app: App, id: str, entry: AuditEntry) -> dict[str, Any]:
    return {"memory": serialize.memory(app.store.memories.get([id])[0]), "entry": _entry(entry)}


def _memory(app: App, id: Any, body: Mapping[str, Any]) -> Memory:
    """Return the memory of an id, in the project that the request names; in any where it names none."""
    memory = requests.known(app.store, str(id))
    if memory.status == "forgotten":
        raise NotFound(f"there is no memory {memory.id!r}", hint="`foreword search` finds ids")
    _refuse_other(memory, _project_key(app, body))
    return memory


def _project_key(app: App, body: Mapping[str, Any]) -> str:
    path = str(body.get("project_path") or "")
    return str(body.get("project") or "") or (app.projects.at(path).key if path else "")


def _scope(scope: str, memory: Memory) -> str:
    if scope == UNIVERSAL or scope.startswith("language:"):
        return scope
    if not memory.project:
        raise BadRequest(f"{memory.id} came from no project", hint="universal, or language:NAME")
    return f"project:{memory.project}"


def _refuse_other(memory: Memory, key: str) -> None:
    if key and memory.scope.startswith("project:") and memory.scope != f"project:{key}":
        raise BadRequest(
            f"{memory.id} is of another project ({memory.project})",
            hint=f"go there, or add --project with its folder or --project {memory.project}",
        )


def _refuse_narrower(new: Memory, old: Memory) -> None:
    """Refuse that a memory of one project supersedes one that counts in others too."""
    if new.scope not in (old.scope, UNIVERSAL) and not old.scope.startswith("project:"):
        raise BadRequest(
            f"{old.id} holds beyond {new.id} ({old.scope}, and {new.scope})",
            hint=f"say with --title what holds there now, or revise {new.id} --scope {old.scope} first",
        )


def _refuse_agents(body: Mapping[str, Any]) -> None:
    if body.get("by"):
        raise BadRequest(USER_ONLY, hint=OWN_TERMINAL)


def _unchanged(memory: Memory) -> BadRequest:
    return BadRequest(f"{memory.id} says all of that already", hint="say what is to be different")
