"""Answer requests about contexts: give one, show those that were given and why none was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foreword.agents import AGENTS
from foreword.encoding import storable
from foreword.errors import BadRequest, NotFound
from foreword.models import FORMS, TRIGGERS, Injection, NoContext, Project, Trigger
from foreword.recall.pipeline import requested_trigger
from foreword.redact import redact
from foreword.worker import serialize
from foreword.worker.app import App


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
    for what, value, allowed in (("trigger", name, TRIGGERS), ("form", form, FORMS), ("host", host, AGENTS)):
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


# ---- what was injected


def list_injections(
    app: App, *, session_id: str = "", project_path: str = "", memory: str = "", limit: int = 20, text: bool = False
) -> dict[str, Any]:
    """Return what was injected, newest first."""
    app.capture.catch_up()
    session, project = redact(storable(session_id)), app.projects.key_at(project_path)
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
    session, project = redact(storable(session_id)), app.projects.key_at(project_path)
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
