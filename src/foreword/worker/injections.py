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


def status_line(app: App, *, project_path: str) -> dict[str, Any]:
    """Return what was injected into the project's last session, in a line for people."""
    project = app.projects.at(project_path)
    newest = app.store.sessions.list(project.key, limit=1)
    session = newest[0].id if newest else ""
    return {"line": app.hooks.status_line(session, project), "session": session}


def list_injections(
    app: App,
    *,
    session_id: str = "",
    project_path: str = "",
    memory: str = "",
    limit: int = 20,
    text: bool = False,
    empty: bool = False,
) -> dict[str, Any]:
    """Return what was injected, newest first; or with *empty* the triggers at which nothing was, with the reasons."""
    app.capture.catch_up()
    where = {"session": redact(storable(session_id)), "project": app.projects.key_at(project_path), "memory": memory}
    found = app.store.injections.list(**where, limit=limit, texts=text, empty=empty)
    return {"injections": describe_injections(app, found, text=text)}


def show_injection(app: App, id: str) -> dict[str, Any]:
    """Return all that is known of an injection, or of the trigger without context that has this id."""
    app.capture.catch_up()
    found = app.store.injections.get(id) or app.store.injections.get(app.store.full_id(id))
    if found is None:
        raise NotFound(f"there is no injection {id!r}", hint="`foreword explain` shows the last one")
    return {"injection" if found.tokens else "silence": describe_injections(app, [found], text=True)[0]}


def describe_injections(app: App, records: Sequence[Injection], *, text: bool = False) -> list[dict[str, Any]]:
    """Return injections as JSON, with what their memories are called, and with what was left out and why.

    What was left out is known for as long as the worker runs.
    """
    left_out = {each.id: app.context.rejected(each.id) for each in records}
    ids = {item.memory for each in records for item in each.items} | {each.nearest for each in records}
    known = {each.id: each for each in app.store.memories.get([*ids.union(*left_out.values())])}

    def named(id: str) -> dict[str, str]:
        if id not in known:
            return {"title": "", "kind": "", "status": "forgotten"}
        return {"title": known[id].title, "kind": known[id].kind, "status": known[id].status}

    rows = []
    for record in records:
        row = serialize.injection(record, text=text)
        row["items"] = [{**item, **named(item["memory"])} for item in row["items"]]
        reasons = left_out[record.id].items()
        row["rejected"] = [{"memory": id, **named(id), "why": why} for id, why in reasons if id in known]
        rows.append({**row, "title": named(record.nearest)["title"]})
    return rows
