"""Answer requests about memories, sessions, injections, goals, links, imports, statistics and upkeep.

One function a route: the app and the request's values in, a JSON object out. No HTTP here, and no SQL.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foreword import __version__
from foreword.agents import FILES
from foreword.audit import MemoryChange, said_again
from foreword.encoding import storable
from foreword.errors import BadRequest, NotFound
from foreword.extract.fixes import elsewhere
from foreword.extract.merge import open_items
from foreword.extract.session import session_uid
from foreword.hook.client import without_values
from foreword.importers.jsonl import export_rows as rows_of
from foreword.maintenance.rescan import scrub
from foreword.models import (
    FORMS,
    TRIGGERS,
    Hit,
    NoContext,
    NoContextRecord,
    Project,
    Query,
    Session,
    Trigger,
)
from foreword.recall.pipeline import requested_trigger
from foreword.recall.rank import rank
from foreword.recall.start import resume
from foreword.redact import redact
from foreword.store.scrub import Cleaner
from foreword.worker import requests, serialize
from foreword.worker.app import App
from foreword.worker.jobs.maintenance import settle_choices
from foreword.worker.services import log_to

MOST_SHOWN_IN = 50  # injections that a memory's explanation names
MOST_CHANGES = 1000  # code changes in the story of a session
MOST_INJECTIONS = 50  # injections in it, and triggers without context
USAGE_DAYS = 7
MOST_GOALS = 1000


# ---- context


def show_context(
    app: App,
    *,
    project_path: str,
    session_id: str = "",
    trigger: str = "",
    prompt: str = "",
    budget: int = 0,
    model: str = "",
    form: str = "",
    host: str = "",
    source: str = "",
    stable: bool = False,
    preview: bool = False,
) -> dict[str, Any]:
    """Return the context of a trigger, and what it costs; a preview is not recorded."""
    name = trigger or ("prompt" if prompt else "session_start")
    if name not in TRIGGERS:
        raise BadRequest(f"unknown trigger {name!r}", hint=f"one of {', '.join(TRIGGERS)}")
    if form and form not in FORMS:
        raise BadRequest(f"unknown form {form!r}", hint=f"one of {', '.join(FORMS)}")
    if host and host not in FILES:
        raise BadRequest(f"unknown host {host!r}", hint=f"one of {', '.join(FILES)}, or leave it out")
    if stable and not session_id:
        raise BadRequest("`stable` needs a `session_id`", hint="send the session that must see the same bytes")
    wanted = requested_trigger(
        Trigger(
            name=name,
            project=app.projects.at(project_path),
            session=redact(storable(session_id)),
            prompt=redact(storable(prompt)),  # its words are recorded
            host=host,
            source=redact(storable(source)),
            model=model,
            budget=budget,
            form=form or ("plain" if name == "compaction" else "markdown"),
            stable=stable,
        )
    )
    if app.projects.policy(wanted.project).inject:
        return serialize.context(NoContext("off", budget=budget), "")
    app.capture.catch_up()
    if stable:
        return app.context.stable(wanted, preview=preview)
    return serialize.context(*app.context.recall(wanted, preview=preview), trigger=wanted.name)


def answer_question(app: App, prompt: str, *, project: Project, session: str, host: str) -> dict[str, Any]:
    """Return the context for an agent that asks, within its window's budget."""
    prompt = redact(storable(prompt))
    wanted = requested_trigger(Trigger(name="question", project=project, session=session, prompt=prompt, host=host))
    if app.projects.policy(project).inject:
        return serialize.context(NoContext("off"), "")
    app.capture.catch_up()
    if wanted.name == "session_start":
        app.extraction.settle(project.key)
    return serialize.context(*app.context.recall(wanted), trigger=wanted.name)


# ---- memories


def add_memories(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Keep memories that somebody wrote: one, or a list under `memories`; redacted like everything else."""
    items = body.get("memories", [body])
    if not isinstance(items, list) or not items:
        raise BadRequest("`memories` must be a list with at least one memory", hint="send {kind, title, …}")
    memories = [requests.memory(each, find_project=app.projects.seen_at, now=app.now()) for each in items]
    for each in items:
        if path := each.get("project_path"):
            app.projects.refuse_to_write(app.projects.at(path))
    known = {
        memory.uid: memory for memory in app.store.memories.get_by_uid([each.uid for each in memories if each.uid])
    }
    memories = [said_again(known.get(each.uid, each), each) for each in memories]
    kept = app.store.memories.put(memories, vectors=app.embeddings.embed_memories(memories))
    superseded = settle_choices(app.store, kept, at=app.now())
    return {"memories": [serialize.memory(memory) for memory in kept], "superseded": superseded}


def search_memories(
    app: App,
    *,
    q: str,
    project_path: str,
    kinds: Sequence[str] = (),
    since: float = 0.0,
    at: float = 0.0,
    limit: int = 0,
    compact: bool = False,
    explain: bool = False,
) -> dict[str, Any]:
    """Return what holds the words of *q* or is about the same code, best first; a search has no threshold."""
    now = at or app.now()
    project = app.projects.at(project_path)
    found = app.context.search(q, project=project, kinds=kinds, since=since, at=at, limit=limit, now=now)
    results = [
        serialize.compact(each, now) if compact else {**serialize.memory(each.memory), "score": each.score}
        for each in found.ranked
    ]
    if explain:
        results = [{**result, "why": dict(each.why)} for result, each in zip(results, found.ranked, strict=True)]
    return {"project": project.key, "results": results, "problems": list(found.problems)}


def show_memory(app: App, id: str, *, explain: bool = False) -> dict[str, Any]:
    """Return a memory with its links; with *explain* also its rank factors and where it was shown."""
    memory = requests.known(app.store, id)
    about = {"memory": serialize.memory(memory), "links": [vars(link) for link in app.store.memories.links(id)]}
    if not explain:
        app.store.memories.record_access([id], how="get", at=app.now())
        return about
    # Without words all match: these are the factors that the memory brings along.
    hits = {"recency": (Hit(memory=memory, source="recency"),)}
    (ranked,) = rank(hits, query=Query(scopes=(memory.scope,)), now=app.now(), trigger="session_start")
    shown = [
        {
            **vars(item),
            "why": dict(item.why),
            "injection": each.id,
            **{name: getattr(each, name) for name in ("at", "trigger", "session", "host")},
        }
        for each in app.store.injections.list(memory=id, limit=MOST_SHOWN_IN)
        for item in each.items
        if item.memory == id
    ]
    usage = vars(app.store.injections.usage(memory=id))
    return {**about, "score": ranked.score, "why": dict(ranked.why), "use": usage, "shown": shown}


def ids_with_prefix(app: App, *, prefix: str) -> dict[str, Any]:
    """Return up to five ids of memories and injections that begin with *prefix*."""
    prefix, store = prefix.strip().lower(), app.store
    repository = store.injections if prefix.startswith("inj-") else store.memories
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


def show_session(app: App, id: str) -> dict[str, Any]:
    """Return the story of one session: its memories, code changes, what it left open, and what was injected."""
    session, store = settled_session(app, id), app.store
    injections = store.injections.list(session=session.id, limit=MOST_INJECTIONS)
    memories = store.memories.of_session(session.id)
    ended = {each.id: each.last for each in store.sessions.get_many(elsewhere({session.id: memories}))}
    active = [each for each in memories if each.status == "active"]
    return {
        "session": describe_sessions(app, [session])[0],
        "memories": [serialize.seen_by(session, memory, ended=ended) for memory in memories],
        "open": list(dict.fromkeys(item for each in active for item in open_items(each))),
        "changes": [
            vars(each) for each in store.sessions.changes(session.project, session=session.id, limit=MOST_CHANGES)
        ],
        "injections": [serialize.injection(each, text=False) for each in injections],
        "no_context": list_no_context(app, session_id=session.id, limit=MOST_INJECTIONS)["no_context"],
    }


def describe_sessions(app: App, sessions: Sequence[Session]) -> list[dict[str, Any]]:
    """Return sessions with the titles of their summaries, where there are some."""
    uids = [session_uid("sum", project=each.project, session=each.id) for each in sessions]
    known = {(memory.uid, memory.scope): memory for memory in app.store.memories.get_by_uid(uids)}
    rows = []
    for session, uid in zip(sessions, uids, strict=True):
        summary = known.get((uid, f"project:{session.project}"))
        about = {"title": summary.title if summary else "", "summary": summary.id if summary else ""}
        rows.append({**vars(session), **about})
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
        if silent := _no_context_rows(app, app.store.injections.list_no_context(id=id)):
            return {"silence": silent[0]}
        raise NotFound(f"there is no injection {id!r}", hint="`foreword explain` shows the last one")
    titles = {memory.id: memory.title for memory in app.store.memories.get([item.memory for item in found.items])}
    injection = serialize.injection(found, text=True)
    injection["items"] = [{**item, "title": titles.get(item["memory"], "")} for item in injection["items"]]
    injection["rejected"] = rejected_memories(app, found.id)
    return {"injection": injection}


def rejected_memories(app: App, id: str) -> list[dict[str, Any]]:
    """Return what an answer left out, best first, and why; empty where the worker does not know it any more."""
    reasons = app.context.rejected(id)
    known = {memory.id: memory for memory in app.store.memories.get(list(reasons))} if reasons else {}
    return [serialize.rejected(known[id], why) for id, why in reasons.items() if id in known]


def list_no_context(app: App, *, session_id: str = "", project_path: str = "", limit: int = 20) -> dict[str, Any]:
    """Return the triggers at which nothing was injected, newest first, each with the reason."""
    app.capture.catch_up()
    session, project = redact(storable(session_id)), project_key(app, project_path)
    return {
        "no_context": _no_context_rows(
            app, app.store.injections.list_no_context(session=session, project=project, limit=limit)
        )
    }


def _no_context_rows(app: App, records: Sequence[NoContextRecord]) -> list[dict[str, Any]]:
    nearest = [each.nearest for each in records if each.nearest]
    known = {memory.id: memory for memory in app.store.memories.get(nearest)}
    return [{**serialize.silence(each, known), "rejected": rejected_memories(app, each.id)} for each in records]


def count_usage(app: App, *, project_path: str = "", days: int = 0) -> dict[str, Any]:
    """Return how many items were injected in a project lately, and how many of them were used."""
    app.capture.catch_up()
    project, days = project_key(app, project_path), days or USAGE_DAYS
    found = app.store.injections.usage(project=project, since=app.now() - days * 86_400)
    return {"project": project, "days": days, **vars(found)}


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
    before = requests.known(app.store, id, hint="`foreword goal list` shows their ids")
    if before.kind != "goal":
        raise BadRequest(f"{id} is a {before.kind}", hint="`foreword goal list` shows the ids of goals")
    outcome = redact(requests.text(body, "outcome")).strip()
    after = replace(before, detail={**before.detail, "status": "done", "outcome": outcome}, confirmed=app.now())
    change = MemoryChange("goal", f"done: {before.title}", changed=((before, after),))
    app.store.audit.apply([change], who="user", at=app.now())
    return {"memory": serialize.memory(requests.known(app.store, id))}


# ---- jobs and upkeep


def start_import(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Begin to fill a project's memory in the background from what lies on this machine."""
    return {"import": app.imports.start(requests.import_request(body))}


def list_imports(app: App, *, project_path: str = "") -> dict[str, Any]:
    return app.imports.status(project_key(app, project_path))


def prune(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Remove what is old or too much; with `dry_run` only count it."""
    return app.prune.preview() if body.get("dry_run") else app.prune.run(who="user")


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
    dry_run = bool(body.get("dry_run"))
    answer = scrub(app.store, app.home, cleaner=cleaner, dry_run=dry_run)
    if not dry_run:
        log_to(app.home, app.settings)  # the log may be another file now
    return answer


def forget_memories(app: App, body: Mapping[str, Any], *, who: str = "user") -> dict[str, Any]:
    """Remove something for good, and prove it; with `dry_run` only list what would be removed."""
    return app.forgetting.forget(body, who=who)


# ---- the worker itself


def list_agents(app: App) -> dict[str, Any]:
    """Return what was seen of each agent that ever sent an event."""
    app.capture.catch_up()
    return {"hosts": {each.host: serialize.host(each) for each in app.store.stats.agents()}}


def health(app: App) -> dict[str, Any]:
    """Return whether the worker is well, and what its store holds; a store that cannot be opened is a problem."""
    about: dict[str, Any] = {
        "version": __version__,
        "build": app.build,
        "pid": os.getpid(),
        "home": str(app.home.root),
        "uptime_s": round(max(0.0, app.now() - app.started), 1),  # a clock may be set back
        "mcp": app.callers.counts(),
    }
    if not app.services.has_store:
        return {**about, "ok": False, "problems": app.services.store_problems(), "counts": {}, "database_bytes": None}
    problems = app.services.store_problems()
    size = {"counts": dict(app.store.stats.row_counts()), "database_bytes": app.store.stats.size().total}
    return {**about, "ok": not problems, "problems": problems, **size}


def show_stats(app: App, *, project_path: str = "", project: str = "", days: int = 30) -> dict[str, Any]:
    """Return what was injected, whether it was used and what it cost; without a path or key, of all projects."""
    named = app.projects.at(project_path) if project_path else app.projects.counted(Project(project, "", ""))
    return app.stats.stats(project=named.key, name=named.name, days=days)
