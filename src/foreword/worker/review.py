"""What waits for the user -> what becomes of it: proposals are accepted or refused, notes promoted or discarded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from foreword.audit import PROPOSAL, REVISES, AuditEntry, MemoryChange, accepted
from foreword.errors import BadRequest
from foreword.maintenance.proposals import same
from foreword.models import Link, Memory, text, texts
from foreword.redact import redact
from foreword.store import Store
from foreword.worker import bulk_edits, requests
from foreword.worker.jobs.proposals import rules_of_all

# What a note may become: what happens by itself in sessions is none of it.
BECOMES = ("decision", "pattern", "learning", "preference", "correction", "goal", "handoff", "failure", "project")
MOST_TITLE = 1_000  # characters
LIST = "`foreword review` lists what waits"


@dataclass(frozen=True)
class Waiting:
    """What waits for the user's word, newest first."""

    proposals: tuple[Memory, ...]
    notes: tuple[Memory, ...]
    in_all: int


def waiting(store: Store, *, scope: str = "", most: int | None = None) -> Waiting:
    """Proposals and notes of one scope, or of all, at most so many of each, and how many there are in all.

    What is proposed for all projects waits in each that says it itself.
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
    return Waiting(here[:most], notes, in_all=len(here) + store.memories.count("note", scopes=scopes))


def decide(store: Store, told: Mapping[str, Any], *, now: float) -> tuple[Memory, AuditEntry]:
    """Do with one thing what the user says: `{do, id, scope?, as?, title?}`; what became of it, and its log entry."""
    memory_change = _planned(store, requests.known(store, requests.text(told, "id"), hint=LIST), told, now=now)
    (entry,) = store.audit.apply([memory_change], who="user", at=now)
    became = memory_change.new[0] if memory_change.new else memory_change.changed[0][1]
    return store.memories.get_by_uid([became.uid])[0], entry


def decide_together(store: Store, told: Mapping[str, Any], *, now: float) -> dict[str, Any]:
    """Do with several things what the user says of all: `{do, ids, scope?, as?}`, in one run."""
    _does(told)
    plain = {**told, "title": ""}  # several things have several titles

    def planned(memory: Memory) -> MemoryChange:
        return _planned(store, memory, plain, now=now)

    return bulk_edits.together(store, bulk_edits.ids_of(told), planned, at=now)


_DOES = {"accept": "accepted", "refuse": "refused", "promote": "promoted", "discard": "discarded"}


def _planned(store: Store, memory: Memory, told: Mapping[str, Any], *, now: float) -> MemoryChange:
    what, given = _does(told), {name: requests.text(told, name) for name in ("scope", "as", "title")}
    is_note = memory.kind == "note" and memory.status == "active"
    if is_note != (what in ("promote", "discard")) or not (is_note or memory.status == "proposed"):
        raise BadRequest(
            f"{memory.id} is a {memory.kind} that is {memory.status}, and cannot be {_DOES[what]}",
            hint="proposals are accepted or refused, notes promoted or discarded; `foreword review` lists both",
        )
    title = redact(given["title"]).strip()[:MOST_TITLE]
    if what == "accept":
        return _accept(store, memory, scope=given["scope"], kind=given["as"], title=title, now=now)
    if what == "promote":
        return _promote(memory, kind=given["as"], scope=given["scope"], title=title, now=now)
    return _put_aside(memory, what, now=now)


def _does(told: Mapping[str, Any]) -> str:
    what = str(told.get("do") or "")
    if what not in _DOES:
        raise BadRequest(f"unknown answer {what!r}", hint=f"one of {', '.join(_DOES)}")
    return what


def _accept(store: Store, proposal: Memory, *, scope: str, kind: str, title: str, now: float) -> MemoryChange:
    """The proposal, active, and everything that says the same in its scope superseded by it."""
    if proposal.detail.get(PROPOSAL) == "revise":
        return _accept_words(store, proposal, title=title)
    if kind and kind not in BECOMES:
        raise BadRequest(f"nothing becomes a {kind!r} in review", hint=f"one of {', '.join(BECOMES)}")
    wanted = requests.beyond(scope or text(proposal.detail, "scope")) or proposal.scope
    detail = {name: told for name, told in proposal.detail.items() if name not in ("scope", "projects", "refused")}
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
    gone = ((each, replace(each, status="superseded", superseded_by=proposal.id)) for each in covered)
    return MemoryChange("accept", f"the user's yes, for {wanted}", changed=((proposal, after), *gone), links=links)


def _accept_words(store: Store, proposal: Memory, *, title: str) -> MemoryChange:
    """The memory that a proposal has other words for, in these words; the proposal stays, and names it."""
    memory = requests.known(store, text(proposal.detail, REVISES), hint=LIST)
    after = accepted(memory, proposal)
    after = replace(after, title=title) if title else after
    gone = replace(proposal, status="superseded", superseded_by=memory.id)
    why = f"the user's yes to other words, from {proposal.source}"
    return MemoryChange("accept", why, changed=((memory, after), (proposal, gone)))


def _put_aside(memory: Memory, what: str, *, now: float) -> MemoryChange:
    """Discarded; a refusal notes how often it had been said by then, for that decides whether it may be asked again."""
    detail = dict(memory.detail)
    if what == "refuse":
        before = detail.get("refused")
        times = int(before.get("times", 0)) if isinstance(before, dict) else 0
        said = detail.get("projects") or len(detail.get("seen_in") or ()) or memory.seen
        detail["refused"] = {"sessions": said, "times": times + 1, "at": now}
    after = replace(memory, status="discarded", detail=detail)
    return MemoryChange(what, "the user's no" if what == "refuse" else "not worth keeping", changed=((memory, after),))


def _promote(note: Memory, *, kind: str, scope: str, title: str, now: float) -> MemoryChange:
    """A memory of the kind that the user says, in the place of the note, which stays and names it."""
    if kind not in BECOMES:
        raise BadRequest(f"a note cannot become a {kind!r}", hint=f"one of {', '.join(BECOMES)}")
    new = Memory(
        kind=kind,
        title=title or note.title,
        body=note.body,
        uid=requests.new_uid(),
        scope=requests.beyond(scope) or note.scope,
        project=note.project,
        tags=note.tags,
        files=note.files,
        functions=note.functions,
        created=now,
        confirmed=now,
    )
    after = replace(note, status="superseded", superseded_by=new.uid)
    links = (Link(new.uid, "supersedes", note.id),)
    return MemoryChange("promote", f"a note became a {kind}", changed=((note, after),), new=(new,), links=links)
