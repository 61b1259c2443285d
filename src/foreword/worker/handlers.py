"""Answer requests about context, memories, sessions, injections, goals, statistics and upkeep.

One function a route: the app and the request's values in, a JSON object out. No HTTP here, and no SQL.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, time, timedelta
from typing import Any

from foreword.agents import FILES
from foreword.audit import MemoryChange, merge_repeated
from foreword.encoding import storable
from foreword.errors import BadRequest, NotFound
from foreword.extract.session import session_uid
from foreword.hook.client import without_values
from foreword.importers.jsonl import export_rows as rows_of
from foreword.maintenance.rescan import Cleaner, scrub
from foreword.models import FORMS, TRIGGERS, Injection, NoContext, Project, Query, Session, Trigger
from foreword.recall.pipeline import requested_trigger
from foreword.recall.start import resume
from foreword.redact import redact
from foreword.worker import serialize
from foreword.worker.app import App
from foreword.worker.jobs.maintenance import settle_choices
from foreword.worker.services import log_to

MOST_GOALS = 1000
MOST_DAYS = 3650  # of statistics


# ---- context


def show_context(
    app: App,
    *,
    project_path: str,
    session_id: str = "",
    trigger: str = "",
    prompt: str = "",
    budget: int = 0,
    form: str = "",
    host: str = "",
    source: str = "",
    preview: bool = False,
) -> dict[str, Any]:
    """Return the context of a trigger, and what it costs; a preview is not recorded."""
    name = trigger or ("prompt" if prompt else "session_start")
    for what, value, allowed in (("trigger", name, TRIGGERS), ("form", form, FORMS), ("host", host, FILES)):
        if value and value not in allowed:
            raise BadRequest(f"unknown {what} {value!r}", hint=f"one of {', '.join(allowed)}")
    wanted = Trigger(
        name=name,
        project=app.projects.at(project_path),
        session=redact(storable(session_id)),
        prompt=redact(storable(prompt)),  # its words are recorded
        host=host,
        source=redact(storable(source)),
        budget=budget,
        form=form or ("plain" if name == "compaction" else "markdown"),
    )
    return _context(app, requested_trigger(wanted), preview=preview)


def answer_question(app: App, prompt: str, *, project: Project, session: str, host: str) -> dict[str, Any]:
    """Return the context for an agent that asks, within its window's budget."""
    prompt = redact(storable(prompt))
    wanted = requested_trigger(Trigger(name="question", project=project, session=session, prompt=prompt, host=host))
    if wanted.name == "session_start":
        app.extraction.settle(project.key)
    return _context(app, wanted, preview=False)


def _context(app: App, wanted: Trigger, *, preview: bool) -> dict[str, Any]:
    if app.projects.policy(wanted.project).inject:
        return serialize.context(NoContext("off", budget=wanted.budget), "")
    app.capture.catch_up()
    return serialize.context(*app.context.recall(wanted, preview=preview), trigger=wanted.name)


# ---- memories


def add_memories(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Keep memories that somebody wrote: one, or a list under `memories`; redacted like everything else."""
    items = body.get("memories", [body])
    if not isinstance(items, list) or not items:
        raise BadRequest("`memories` must be a list with at least one memory", hint="send {kind, title, …}")
    memories = [serialize.read_memory(each, find_project=app.projects.seen_at, now=app.now()) for each in items]
    for each in items:
        if path := each.get("project_path"):
            app.projects.refuse_to_write(app.projects.at(path))
    uids = [each.uid for each in memories if each.uid]
    known = {memory.uid: memory for memory in app.store.memories.get_by_uid(uids)}
    memories = [merge_repeated(known.get(each.uid, each), each) for each in memories]
    kept = app.store.memories.put(memories)
    superseded = settle_choices(app.store, kept, at=app.now())
    return {"memories": [serialize.memory(memory) for memory in kept], "superseded": superseded}


def search_memories(
    app: App,
    *,
    q: str,
    project_path: str,
    kinds: Sequence[str] = (),
    since: float = 0.0,
    limit: int = 0,
    compact: bool = False,
    explain: bool = False,
) -> dict[str, Any]:
    """Return what holds the words of *q* or is about the same code, best first; a search has no threshold."""
    now, project = app.now(), app.projects.at(project_path)
    found = app.context.search(q, project=project, kinds=kinds, since=since, limit=limit, now=now)
    results = [
        {
            **(serialize.compact(each, now) if compact else {**serialize.memory(each.memory), "score": each.score}),
            **({"why": dict(each.why)} if explain else {}),
        }
        for each in found.ranked
    ]
    return {"project": project.key, "results": results, "problems": list(found.problems)}


def show_memory(app: App, id: str) -> dict[str, Any]:
    """Return a memory with its links, and record that it was fetched."""
    memory = serialize.known(app.store, id)
    app.store.memories.record_access([id], how="get", at=app.now())
    return {"memory": serialize.memory(memory), "links": [vars(link) for link in app.store.memories.links(id)]}


def ids_with_prefix(app: App, *, prefix: str) -> dict[str, Any]:
    """Return up to five ids of memories and injections that begin with *prefix*."""
    prefix = prefix.strip().lower()
    repository = app.store.injections if prefix.startswith("inj-") else app.store.memories
    return {"ids": list(repository.ids_with_prefix(prefix, limit=5)) if prefix else []}


def export_rows(
    app: App, *, part: str, project_path: str = "", all: bool = False, after: int = 0, of: str = ""
) -> dict[str, Any]:
    """Return the next rows of an export, and the place to go on from."""
    project = None if all else app.projects.at(project_path)
    found, following = rows_of(app.store, part, project=project, after=after, of=of)
    return {"rows": found, "next": following, "project": project.key if project else ""}


# ---- sessions


def list_sessions(app: App, *, project_path: str = "", limit: int = 20) -> dict[str, Any]:
    """Return the newest sessions of a project, or of all."""
    return {"sessions": describe_sessions(app, app.store.sessions.list(project_key(app, project_path), limit=limit))}


def describe_sessions(app: App, sessions: Sequence[Session]) -> list[dict[str, Any]]:
    """Return sessions with the titles and ids of their summaries, where there are some."""
    uids = [session_uid("sum", project=each.project, session=each.id) for each in sessions]
    known = {(memory.uid, memory.scope): memory for memory in app.store.memories.get_by_uid(uids)}
    rows = []
    for session, uid in zip(sessions, uids, strict=True):
        summary = known.get((uid, f"project:{session.project}"))
        rows.append(
            {**vars(session), "title": summary.title if summary else "", "summary": summary.id if summary else ""}
        )
    return rows


def settled_session(app: App, id: str) -> Session:
    """Return a session, by its id or the beginning of it, after its extraction was waited for a moment."""
    session = app.store.sessions.get(id) or app.store.sessions.find(id)
    if session is None:
        raise NotFound(f"there is no session {id!r}", hint="`foreword sessions` lists them")
    app.extraction.settle(session.project)
    return app.store.sessions.get(session.id) or session  # as it is now


def show_resume(app: App, *, project_path: str, limit: int = 10) -> dict[str, Any]:
    """Return the state of a project for a person who comes back; nothing is recorded."""
    project = app.projects.at(project_path)
    points = resume(app.store.search, project, now=app.now(), limit=limit)
    return {"project": project.key, "name": project.name, **points}


# ---- injections


def list_injections(
    app: App, *, session_id: str = "", project_path: str = "", memory: str = "", limit: int = 20, text: bool = False
) -> dict[str, Any]:
    """Return what was injected, newest first."""
    app.capture.catch_up()
    session, project = redact(storable(session_id)), project_key(app, project_path)
    found = app.store.injections.list(session=session, project=project, memory=memory, limit=limit, texts=text)
    return {"injections": [serialize.injection(each, text=text) for each in found]}


def show_injection(app: App, id: str) -> dict[str, Any]:
    """Return all that is known of an injection, or of the trigger without context that has this id."""
    app.capture.catch_up()
    found = app.store.injections.get(id)
    if found is None:
        raise NotFound(f"there is no injection {id!r}", hint="`foreword explain` shows the last one")
    if not found.tokens:
        return {"silence": _no_context_rows(app, [found])[0]}
    titles = {memory.id: memory.title for memory in app.store.memories.get([item.memory for item in found.items])}
    injection = serialize.injection(found, text=True)
    injection["items"] = [{**item, "title": titles.get(item["memory"], "")} for item in injection["items"]]
    return {"injection": {**injection, "rejected": _rejected(app, id)}}


def list_no_context(app: App, *, session_id: str = "", project_path: str = "", limit: int = 20) -> dict[str, Any]:
    """Return the triggers at which nothing was injected, newest first, each with the reason."""
    app.capture.catch_up()
    session, project = redact(storable(session_id)), project_key(app, project_path)
    found = app.store.injections.list(session=session, project=project, limit=limit, empty=True)
    return {"no_context": _no_context_rows(app, found)}


def _no_context_rows(app: App, records: Sequence[Injection]) -> list[dict[str, Any]]:
    nearest = [each.nearest for each in records if each.nearest]
    known = {memory.id: memory for memory in app.store.memories.get(nearest)}
    return [
        {**serialize.no_context(each, known.get(each.nearest)), "rejected": _rejected(app, each.id)} for each in records
    ]


def _rejected(app: App, id: str) -> list[dict[str, Any]]:
    """Return what an answer left out, best first, and why; empty where the worker does not know it any more."""
    reasons = app.context.rejected(id)
    known = {each.id: each for each in app.store.memories.get(list(reasons))}
    return [
        {"memory": id, "kind": known[id].kind, "title": known[id].title, "why": why}
        for id, why in reasons.items()
        if id in known
    ]


def status_line(app: App, *, session_id: str = "", project_path: str = "") -> dict[str, Any]:
    """Return what was injected into a session, in a line for people; without an id, into the project's last one."""
    project = app.projects.at(project_path) if project_path else None
    session = redact(storable(session_id))
    if not session and project:
        newest = app.store.sessions.list(project.key, limit=1)
        session = newest[0].id if newest else ""
    return app.hooks.status_line(session, project)


def project_key(app: App, project_path: str) -> str:
    return app.projects.at(project_path).key if project_path else ""


# ---- goals


def list_goals(app: App, *, project_path: str, all: bool = False) -> dict[str, Any]:
    """Return a project's open goals, older before newer; with *all* those that are reached behind them."""
    project = app.projects.at(project_path)
    query = Query(scopes=(project.scope,), kinds=("goal",), limit=MOST_GOALS)
    goals = sorted((hit.memory for hit in app.store.search.by_recency(query)), key=lambda goal: goal.created)
    reached = [goal for goal in goals if goal.detail.get("status") == "done"]
    still_open = [goal for goal in goals if goal not in reached]
    listed = [serialize.memory(goal) for goal in still_open + (reached if all else [])]
    return {"project": project.key, "goals": listed, "open": len(still_open), "done": len(reached)}


def finish_goal(app: App, id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Mark a goal as done, with its outcome."""
    before = serialize.known(app.store, id, hint="`foreword goal list` shows their ids")
    if before.kind != "goal":
        raise BadRequest(f"{id} is a {before.kind}", hint="`foreword goal list` shows the ids of goals")
    outcome = redact(serialize.text(body, "outcome")).strip()
    after = replace(before, detail={**before.detail, "status": "done", "outcome": outcome}, confirmed=app.now())
    change = MemoryChange("goal", f"done: {before.title}", changed=((before, after),))
    app.store.audit.apply([change], who="user", at=app.now())
    return {"memory": serialize.memory(serialize.known(app.store, id))}


# ---- upkeep and statistics


def tidy(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Merge, supersede and sink memories in a project or in all; with `dry_run` only list the changes."""
    app.capture.drain()
    folder = str(body.get("project_path") or "")
    projects = app.tidy.projects() if body.get("all") else (app.projects.at(folder),)
    return app.tidy.run(projects, dry_run=bool(body.get("dry_run")))


def scrub_store(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Remove from all files what is now known to be secret; with `dry_run` only count it."""
    app.capture.drain()
    values = [os.fsencode(each) for each in body.get("values", ()) if isinstance(each, str)]

    def hide(text: str) -> str:
        return without_values(text.encode("utf-8", "surrogatepass"), values).decode("utf-8", "surrogatepass")

    cleaner = Cleaner(deny=app.settings.deny_paths, hide=hide)
    answer = scrub(app.store, app.home, cleaner=cleaner, dry_run=bool(body.get("dry_run")))
    if not body.get("dry_run"):
        log_to(app.home, app.settings)  # the log may be another file now
    return answer


def show_stats(app: App, *, project_path: str = "", project: str = "", days: int = 30) -> dict[str, Any]:
    """Return what was injected, whether it was used and what it cost; without a path or key, of all projects."""
    named = app.projects.at(project_path) if project_path else app.projects.counted(Project(project, "", ""))
    if not 1 <= days <= MOST_DAYS:
        raise BadRequest(f"`days` must be from 1 to {MOST_DAYS}", hint="leave it out for 30")
    last = datetime.fromtimestamp(app.now()).date()
    first = last - timedelta(days=days - 1)
    since, until = (datetime.combine(day, time()).timestamp() for day in (first, last + timedelta(days=1)))
    figures = app.store.stats.figures(project=named.key, since=since, until=until)
    span = {"from": first.isoformat(), "to": last.isoformat(), "days": days}
    return {"project": named.key, "name": named.name, **span, **figures}
