"""Read models from the JSON bodies of requests, checked and redacted; turn models into the JSON of answers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from foreword.audit import REVISABLE, AuditEntry, describe, past_tense
from foreword.capture.payload import HookCall
from foreword.encoding import storable
from foreword.errors import BadRequest, NotFound
from foreword.models import KINDS, TRUSTS, UNIVERSAL, Context, Injection, Item, Memory, NoContext, Project, Ranked
from foreword.recall import render
from foreword.recall.pipeline import explain_nothing
from foreword.recall.rank import CERTAIN
from foreword.redact import redact, redact_all

if TYPE_CHECKING:
    from foreword.models import Trust
    from foreword.store import Store


# ---- from JSON


def read_hook_call(body: Any) -> HookCall:
    """Return the hook call that a plugin sent."""
    parts = body if isinstance(body, dict) else {}
    if not isinstance(parts.get("payload"), dict) or not parts.get("host") or not parts.get("event"):
        raise BadRequest("an event needs `host`, `event` and a `payload` object", hint="send {host, event, payload}")
    raw = json.dumps(parts["payload"]).encode()
    return HookCall(host=str(parts["host"]), event=str(parts["event"]), at=_when(parts, "at") or time.time(), raw=raw)


def read_injection(hook_call: HookCall) -> Injection:
    """Return what a hook injected while no worker ran, as it wrote it into the spool."""
    body = json.loads(hook_call.raw)
    lists = {name: tuple(body[name]) for name in ("terms", "files")}
    items = tuple(Item(**item) for item in body["items"])
    return Injection(**{**body, **lists, "items": items, "at": _when(body, "at")})


def read_memory(body: Any, *, find_project: Callable[[str], Project], now: float) -> Memory:
    """Return the memory that a caller wrote, redacted; raise BadRequest for what makes no sense."""
    if not isinstance(body, dict):
        raise BadRequest("a memory is a JSON object", hint="send {kind, title, …}")
    clean = redact_all({name: body.get(name) for name in ("title", "body", "tags", "files", "functions", "detail")})
    source = redact(storable(str(body.get("source") or "user")))
    scope, project = _scope(body, find_project=find_project)
    created = _when(body, "created") or now
    detail = clean.get("detail") or {}
    if not isinstance(detail, dict):
        raise BadRequest("`detail` must be an object", hint="send {…}, or leave it out")
    return Memory(
        kind=_kind(body.get("kind")),
        title=_title(clean),
        body=text(clean, "body"),
        uid=redact(str(body.get("uid") or "")),
        scope=scope,
        project=project.key if project else "",
        tags=texts(clean, "tags"),
        files=texts(clean, "files"),
        functions=texts(clean, "functions"),
        session=redact(str(body.get("session") or "")),
        source=source,
        trust=_trust(body, source),
        confidence=_number(body, "confidence", default=1.0, most=1.0),
        seen=int(_number(body, "seen", default=1, least=1, most=1_000_000)),
        created=created,
        confirmed=_when(body, "confirmed") or created,
        detail=detail,
    )


def read_changes(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a caller wants to change about a memory, by field, redacted; an empty text or list empties it."""
    values = {name: body[name] for name in REVISABLE if body.get(name) is not None}
    clean = redact_all({name: values[name] for name in values if name not in ("kind", "scope", "confidence")})
    lists = ("tags", "files", "functions")
    changed: dict[str, Any] = {name: (texts if name in lists else text)(clean, name) for name in clean}
    if "title" in changed:
        changed["title"] = _title(clean)
    if "kind" in values:
        changed["kind"] = _kind(values["kind"])
    if "confidence" in values:
        changed["confidence"] = _number(values, "confidence", default=1.0, most=1.0)
    if "scope" in values:
        changed["scope"] = wide_scope(text(values, "scope")) or "project"
    if not changed:
        raise BadRequest("no field to change", hint=f"send any of {', '.join(REVISABLE)}")
    return changed


def text(body: Mapping[str, Any], name: str) -> str:
    """Return a text that may be left out."""
    value = body.get(name) or ""
    if not isinstance(value, str):
        raise BadRequest(f"`{name}` must be text", hint="send a string")
    return storable(value)


def texts(body: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a list of texts that may be left out."""
    value = body.get(name) or []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadRequest(f"`{name}` must be a list of texts", hint='send ["…"]')
    return tuple(storable(each) for each in value)


def wide_scope(scope: str) -> str:
    """Return a scope that is wider than a project; empty where the project's own is meant."""
    name = scope.lower()
    if name == UNIVERSAL or (name.startswith("language:") and name[9:].strip()):
        return redact(name)
    if name not in ("", "project"):
        raise BadRequest(f"unknown scope {scope!r}", hint="universal, language:NAME, or project")
    return ""


def known(store: Store, id: str, *, hint: str = "`foreword search` finds ids") -> Memory:
    """Return the memory of an id, which may be the beginning of it, or raise NotFound."""
    found = store.memories.get([id]) or store.memories.get([store.full_id(id)])
    if not found:
        raise NotFound(f"there is no memory {id[:80]!r}", hint=hint)
    return found[0]


def _title(body: Mapping[str, Any]) -> str:
    title = text(body, "title").strip()
    if not title:
        raise BadRequest("a memory needs a title", hint="give a title of one line")
    return title


def _kind(kind: Any) -> str:
    if not isinstance(kind, str) or kind not in KINDS:
        raise BadRequest(f"unknown kind {kind!r}", hint=f"one of {', '.join(KINDS)}")
    return kind


def _trust(body: Mapping[str, Any], source: str) -> Trust:
    """Return the trust of a memory: the user's only for the user; left out, anybody else counts as an agent."""
    trust = body.get("trust") or ("user" if source == "user" else "agent")
    if trust not in TRUSTS:
        raise BadRequest(f"unknown trust {trust!r}", hint=f"one of {', '.join(TRUSTS)}")
    if trust == "user" and source != "user":
        raise BadRequest(
            f"memories from {source[:40]!r} cannot have the trust `user`", hint="leave out `source` or `trust`"
        )
    return cast("Trust", trust)


def _number(body: Mapping[str, Any], name: str, *, default: float, least: float = 0.0, most: float) -> float:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise BadRequest(f"`{name}` must be a number from {least:g} to {most:g}", hint="leave it out for the default")
    return float(value)


def _when(body: Mapping[str, Any], name: str) -> float:
    """Return a time in Unix seconds; 0 where there is none."""
    return _number({name: body.get(name) or 0.0}, name, default=0.0, most=1e11)


def _scope(body: Mapping[str, Any], *, find_project: Callable[[str], Project]) -> tuple[str, Project | None]:
    """Return the scope and project of a memory; without a scope of its own it is its project's."""
    scope, path = text(body, "scope"), body.get("project_path") or ""
    if not isinstance(path, str):
        raise BadRequest("`project_path` must be text", hint="send a string")
    project = find_project(path) if path or not scope else None
    if wide := wide_scope("" if project and scope == project.scope else scope):
        return wide, project
    if project is None:
        raise BadRequest("a project's memory needs `project_path`", hint="send an absolute path")
    return project.scope, project


# ---- to JSON


def memory(kept: Memory) -> dict[str, Any]:
    """Return a memory as JSON; a learning that is too unsure to come by itself is `asleep`."""
    lists = {name: list(getattr(kept, name)) for name in ("tags", "files", "functions")}
    asleep = {"asleep": True} if kept.kind == "learning" and kept.confidence < CERTAIN else {}
    return {**vars(kept), **lists, "detail": dict(kept.detail), **asleep}


def waits(kept: Memory) -> bool:
    """Return whether a memory is a note that waits for the user's decision."""
    return (kept.kind, kept.status) == ("note", "active")


def compact(ranked: Ranked, now: float) -> dict[str, Any]:
    """Return one line of a search result, with its project and day."""
    memory = ranked.memory
    day = time.strftime("%Y-%m-%d", time.gmtime(memory.created))
    line = f"{render.compact(ranked, now=now)} | {render.neutral(memory.project or memory.scope, width=60)} | {day}"
    return {"id": memory.id, "kind": memory.kind, "score": ranked.score, "line": line}


def entry(logged: AuditEntry) -> dict[str, Any]:
    """Return an entry of the audit log as JSON, with its verb and memories in words."""
    words = {"done": past_tense(logged.what), "about": describe(logged)}
    return {**vars(logged), "memories": list(logged.memories), "patch": dict(logged.patch), **words}


def context(got: Context | NoContext, id: str, *, trigger: str = "prompt") -> dict[str, Any]:
    """Return a context as JSON; no context is an answer too."""
    found = got if isinstance(got, Context) else None
    reason = why = ""
    if isinstance(got, NoContext):
        reason = got.reason
        why = explain_nothing(trigger, reason, budget=got.budget, spent=got.spent, allowed=got.allowed) or reason
    return {
        "context": found.text if found else "",
        "tokens": found.tokens if found else 0,
        "budget": got.budget,
        "layers": dict(found.layers) if found else {},
        "skipped": dict(got.skipped),
        "build_ms": round(got.build_ms, 3),
        "injection": id,
        "why": why,
        "reason": reason,
    }


def injection(record: Injection, *, text: bool) -> dict[str, Any]:
    """Return an injection as JSON, with or without its text; where nothing was injected, with the reason in words."""
    numbers = {"budget": record.budget, "spent": record.spent, "allowed": record.allowed}
    says = explain_nothing(record.trigger, record.why, **numbers) if record.why else ""
    row = {name: each for name, each in vars(record).items() if text or name != "text"}
    lists = {"terms": list(record.terms), "files": list(record.files)}
    return {**row, **lists, "items": [{**vars(item), "why": dict(item.why)} for item in record.items], "says": says}
