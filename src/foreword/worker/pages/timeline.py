"""List sessions, newest first: what each was about, and what it changed, broke and decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foreword.errors import BadRequest
from foreword.extract.actions import action_of
from foreword.extract.fixes import elsewhere, fate_of
from foreword.extract.merge import fixes_of, open_items
from foreword.extract.session import is_test
from foreword.extract.text import cut
from foreword.models import Change, Event, Memory, Session, text
from foreword.store.projects import counts_as, names
from foreword.worker.handlers import describe_sessions

if TYPE_CHECKING:
    from foreword.models import KnownProject
    from foreword.worker.app import App

FEW = 5  # of one sort, in a row of the list; its story has all
MOST_CHANGES, MOST_CAME = 300, 1_000  # of a session, that are looked at
TITLE, SUMMARY, FIX, BY = 160, 320, 150, 60  # characters
QUIET = 30 * 60.0  # seconds: an agent that works tells something within minutes
KINDS = ("summary", "handoff", "decision", "failure", "learning", "preference", "correction")
UNACCEPTED = ("proposed", "discarded")  # shown among the memories only


def timeline(app: App, *, project: str = "", before: str = "", limit: int = 30) -> dict[str, Any]:
    """Return sessions of a project and its aliases, or of all, older than *before*; `next` leads to older ones."""
    store = app.store
    registry = store.projects.all()
    name = names(registry)
    limit = max(1, limit)
    found = store.sessions.before(*_place(before), projects=_counting_as(project, registry), limit=limit + 1)
    shown = found[:limit]
    came = {
        each.id: [
            memory
            for memory in store.memories.of_session(each.id, limit=MOST_CAME)
            if memory.kind in KINDS and memory.status not in UNACCEPTED
        ]
        for each in shown
    }
    fixed, now = fixing(app, came), app.now()
    sessions = []
    for each in shown:
        prompts = () if summary_of(each, came[each.id]) else store.events.prompts(each.id, limit=1, oldest=True)
        sessions.append(
            {
                **head(each, came[each.id], name=name, now=now, prompt=prompts[0] if prompts else None),
                **_row(each, came[each.id], changes_of(app, each, came[each.id]), fixed=fixed),
                "injected": store.injections.totals(each.id),
            }
        )
    return {"sessions": sessions, "next": f"{shown[-1].last!r}/{shown[-1].id}" if len(found) > limit else ""}


def head(
    session: Session, came: Sequence[Memory], *, name: Callable[[str], str], now: float, prompt: Event | None
) -> dict[str, Any]:
    """Return what identifies a session; its title is that of its summary, or until there is one its first prompt."""
    summary = summary_of(session, came)
    first = action_of(prompt, root="") if prompt and not summary else None
    return {
        "id": session.id,
        "host": session.host,
        "project": session.project,
        "project_name": name(session.project),
        "started": session.started,
        "last": session.last,
        "ended": session.ended,
        "running": is_running(session.last, session.ended, now=now),
        "events": session.events,
        "title": cut(summary.title if summary else first.text if first else "", TITLE),
    }


def is_running(last: float, ended: float, *, now: float) -> bool:
    """Return whether a session has not ended and had an event not long ago."""
    return not ended and abs(now - last) < QUIET  # a clock that was set back leaves sessions of tomorrow behind


def summary_of(session: Session, came: Iterable[Memory]) -> Memory | None:
    """Return the summary of a session; where it was in several projects, that of its own project."""
    found = [memory for memory in came if memory.kind == "summary"]
    return next((memory for memory in found if memory.project == session.project), found[0] if found else None)


def changes_of(app: App, session: Session, came: Iterable[Memory]) -> list[Change]:
    """Return the functions that a session changed in every project that it is known to have been in, newest first."""
    projects = dict.fromkeys((session.project, *(memory.project for memory in came)))
    found = [app.store.sessions.changes(each, session=session.id, limit=MOST_CHANGES) for each in projects]
    return sorted((each for some in found for each in some), key=lambda each: -each.at)


def fixing(app: App, came: Mapping[str, Sequence[Memory]]) -> dict[str, dict[str, Any]]:
    """Return by id the sessions that fixed what others left broken, each with its title."""
    ids = elsewhere(came)
    found = app.store.sessions.get_many(ids) if ids else ()
    return {each["id"]: each for each in describe_sessions(app, found)}


def failure(memory: Memory, *, session: Session, fixed: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what broke, how often, and what fixed it: in this session or in another."""
    ended = {id: fixed[id]["last"] for id in fixes_of(memory.detail) if id in fixed}
    fate = fate_of(memory, session=session, ended=ended)
    by = fixed[fate.by] if fate.by else None
    return {
        **named(memory),
        "fix": cut(fate.fix, FIX) or None,
        "open": fate.open,
        "seen": memory.seen,
        "times": fate.times,
        "by": {"session": by["id"], "title": cut(by["title"], BY), "last": by["last"]} if by else None,
        "later": fate.later,
    }


def named(memory: Memory) -> dict[str, Any]:
    """Return what identifies a memory in a list."""
    return {"id": memory.id, "kind": memory.kind, "title": cut(memory.title, TITLE), "status": memory.status}


def change(each: Change) -> dict[str, Any]:
    return {"file": each.file, "function": each.function, "what": each.what, "signature": each.signature}


def _row(
    session: Session, came: Sequence[Memory], changed: Sequence[Change], *, fixed: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the first few of each sort, and how many more there are."""
    summary = summary_of(session, came)
    of = {kind: [memory for memory in came if memory.kind == kind] for kind in KINDS}
    failures = [failure(memory, session=session, fixed=fixed) for memory in of["failure"][:FEW]]
    rules = [named(memory) for kind in ("preference", "correction") for memory in of[kind]]
    learned = [named(memory) for memory in of["learning"]]
    left = [*of["handoff"], *([summary] if summary else [])]
    steps = [step for memory in left for step in open_items(memory)]
    # A function says more than the name of its test.
    code = sorted(changed, key=lambda each: is_test(each.file))
    several: dict[str, tuple[list[Any], int]] = {
        "changed": ([change(each) for each in code], len(code)),
        "failures": (failures, len(of["failure"])),
        "decisions": ([named(memory) for memory in of["decision"]], len(of["decision"])),
        "rules": (rules, len(rules)),
        "learned": (learned, len(learned)),
        "next": (list(dict.fromkeys(steps)), len(set(steps))),
    }
    return {
        "summary": cut(summary.body, SUMMARY) if summary else "",
        "work": work_of(summary),
        **{name: items[:FEW] for name, (items, _) in several.items()},
        "more": {name: count - FEW for name, (_, count) in several.items() if count > FEW},
    }


def work_of(summary: Memory | None) -> str:
    """Return the branch, the pull request and the fate of a session's work in one line."""
    detail: Mapping[str, Any] = summary.detail if summary else {}
    branch, pull, fate = (text(detail, name) for name in ("branch", "pull_request", "fate"))
    parts = [f"branch {branch}" if branch else "", f"pull request {pull}" if pull else "", fate]
    return ", ".join(filter(None, parts))


def _counting_as(project: str, registry: Mapping[str, KnownProject]) -> tuple[str, ...]:
    """Return a project's key and those of its aliases, whose older sessions are stored under their own keys."""
    if not project:
        return ()
    key = counts_as(project, registry)
    return (key, *(each for each, about in registry.items() if about.alias_of == key))


def _place(before: str) -> tuple[float, str]:
    """Return the time and id in a `next` of an earlier answer."""
    last, _, id = before.partition("/")
    try:
        at = float(last or 0.0)
    except ValueError:
        at = -1.0
    if not 0 <= at < float("inf"):
        raise BadRequest(f"invalid `before`: {before[:40]!r}", hint="send the `next` of an earlier answer")
    return at, id
