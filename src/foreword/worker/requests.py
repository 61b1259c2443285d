"""JSON that a caller wrote -> deliveries and memories; what makes no sense is told, every text is redacted."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from foreword.audit import REVISABLE
from foreword.capture.payload import HookCall
from foreword.encoding import storable
from foreword.errors import BadRequest, NotFound
from foreword.importers.base import ENVIRON
from foreword.models import KINDS, TRUSTS, UNIVERSAL, Injection, Item, Memory, Project
from foreword.redact import redact, redact_all
from foreword.worker.jobs.imports import ImportRequest

if TYPE_CHECKING:
    from foreword.models import Trust
    from foreword.store import Store


def hook_call(told: Any) -> HookCall:
    if not isinstance(told, dict) or not isinstance(told.get("payload"), dict):
        raise BadRequest("an event needs a `payload` object", hint="send {host, event, payload}")
    if not told.get("host") or not told.get("event"):
        raise BadRequest("an event needs `host` and `event`", hint="send {host, event, payload}")
    return HookCall(
        host=str(told["host"]),
        event=str(told["event"]),
        at=_when(told, "at") or time.time(),
        raw=json.dumps(told["payload"]).encode(),
    )


def memory(told: Any, *, find_project: Callable[[str], Project], now: float) -> Memory:
    """A memory out of what a caller wrote; every text is redacted, and what makes no sense is told."""
    if not isinstance(told, dict):
        raise BadRequest("a memory is a JSON object", hint="send {kind, title, …}")
    kind, title = _kind(told.get("kind")), told.get("title")
    if not isinstance(title, str) or not title.strip():
        raise BadRequest("a memory needs a title", hint="say in one line what is worth knowing")
    source = redact(storable(str(told.get("source") or "user")))
    trust = _trust(told, source)
    confidence = _confidence(told.get("confidence", 1.0))
    scope, project = _scope(told, find_project=find_project)
    said = redact_all({name: told.get(name) for name in ("title", "body", "tags", "files", "functions", "detail")})
    when = _when(told, "created") or now
    seen = told.get("seen", 1)
    if not isinstance(seen, int) or isinstance(seen, bool) or not 1 <= seen <= 1_000_000:
        raise BadRequest("`seen` must be a whole number from 1 on", hint="leave it out for 1")
    return Memory(
        kind=kind,
        title=text(said, "title").strip(),
        body=text(said, "body"),
        uid=redact(str(told.get("uid") or "")),
        scope=scope,
        project=project.key if project else "",
        tags=texts(said, "tags"),
        files=texts(said, "files"),
        functions=texts(said, "functions"),
        session=redact(str(told.get("session") or "")),
        source=source,
        trust=trust,
        confidence=confidence,
        seen=seen,
        created=when,
        confirmed=_when(told, "confirmed") or when,
        detail=_detail(said),
    )


def changes(told: Mapping[str, Any]) -> dict[str, Any]:
    """What a caller wants to be different about a memory, by field; texts are redacted, what makes no sense is told.

    An empty text or list is a wish too: what it names goes.
    """
    given = {name: told[name] for name in REVISABLE if told.get(name) is not None}
    said = redact_all({name: given[name] for name in given if name not in ("kind", "scope", "confidence")})
    lists = ("tags", "files", "functions")
    changed: dict[str, Any] = {name: (texts if name in lists else text)(said, name) for name in said}
    if "title" in changed:
        changed["title"] = changed["title"].strip()
        if not changed["title"]:
            raise BadRequest("a memory needs a title", hint="say in one line what is worth knowing")
    if "kind" in given:
        changed["kind"] = _kind(given["kind"])
    if "confidence" in given:
        changed["confidence"] = _confidence(given["confidence"])
    if "scope" in given:
        changed["scope"] = beyond(text(given, "scope")) or "project"
    if not changed:
        raise BadRequest("nothing is to be different", hint=f"send any of {', '.join(REVISABLE)}")
    return changed


def new_uid() -> str:
    """A uid for a memory that is linked before it has an id."""
    return secrets.token_hex(16)


def import_request(told: Mapping[str, Any]) -> ImportRequest:
    """What is to be imported, and where; the folders in `environ` are the caller's, not the worker's."""
    sources, options = told.get("sources"), told.get("options") or {}
    if not isinstance(sources, list) or not sources or not all(isinstance(each, str) for each in sources):
        raise BadRequest("`sources` must be a list of names", hint='send {"sources": ["git"], "project_path": …}')
    if not isinstance(options, dict):
        raise BadRequest("`options` must be an object", hint="send {…}, or leave it out")
    given = told.get("environ") or {}
    if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
        raise BadRequest("`environ` must be an object of texts", hint="leave it out for the worker's own")
    path = text(told, "project_path")
    environ = {name: each for name, each in {**os.environ, **given}.items() if name in ENVIRON}
    return ImportRequest(folder=path, sources=tuple(dict.fromkeys(sources)), options=options, environ=environ)


def injection(hook_call: HookCall) -> Injection:
    """What a hook gave while the worker was away, as it wrote it into the spool."""
    told = json.loads(hook_call.raw)
    lists = {name: tuple(told[name]) for name in ("terms", "files")}
    items = tuple(Item(**item) for item in told["items"])
    return Injection(**{**told, **lists, "items": items, "at": _when(told, "at")})


def text(told: Mapping[str, Any], name: str) -> str:
    """A text that may be left out."""
    given = told.get(name) or ""
    if not isinstance(given, str):
        raise BadRequest(f"`{name}` must be text", hint="send a string")
    return storable(given)


def texts(told: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list of texts that may be left out."""
    given = told.get(name) or []
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise BadRequest(f"`{name}` must be a list of texts", hint='send ["…"]')
    return tuple(storable(each) for each in given)


def tags(told: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Tags that a caller names, each once, without secrets."""
    return tuple(dict.fromkeys(filter(None, (redact(each).strip() for each in texts(told, name)))))


def beyond(scope: str) -> str:
    """A scope wider than a project, as it is kept; empty where the project's own is meant, and all else is told."""
    name = scope.lower()
    if name == UNIVERSAL or (name.startswith("language:") and name[9:].strip()):
        return redact(name)
    if name not in ("", "project"):
        raise BadRequest(f"unknown scope {scope!r}", hint="universal, language:NAME, or project")
    return ""


def known(store: Store, id: str, *, hint: str = "`foreword search` finds ids") -> Memory:
    """The memory of an id that a caller named."""
    found = store.memories.get([id])
    if not found:
        raise NotFound(f"there is no memory {id[:80]!r}", hint=hint)
    return found[0]


def _kind(kind: Any) -> str:
    if not isinstance(kind, str) or kind not in KINDS:
        raise BadRequest(f"unknown kind {kind!r}", hint=f"one of {', '.join(KINDS)}")
    return kind


def _trust(told: Mapping[str, Any], source: str) -> Trust:
    """As much as was said, and only of the user himself the user's; left out, whoever else it is counts as an agent."""
    trust = told.get("trust") or ("user" if source == "user" else "agent")
    if trust not in TRUSTS:
        raise BadRequest(f"unknown trust {trust!r}", hint=f"one of {', '.join(TRUSTS)}")
    if trust == "user" and source != "user":
        raise BadRequest(f"what {source[:40]!r} said has not the user's trust", hint="leave out `source` or `trust`")
    return cast("Trust", trust)


def _confidence(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= 1:
        raise BadRequest("`confidence` must be a number from 0 to 1", hint="leave it out for 1")
    return float(given)


def _detail(told: Mapping[str, Any]) -> dict[str, Any]:
    given = told.get("detail") or {}
    if not isinstance(given, dict):
        raise BadRequest("`detail` must be an object", hint="send {…}, or leave it out")
    return given


def _when(told: Mapping[str, Any], name: str) -> float:
    """A time in Unix seconds; 0 where none was given."""
    given = told.get(name) or 0.0
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given < 1e11:
        raise BadRequest(f"`{name}` must be Unix seconds", hint="leave it out for now")
    return float(given)


def _scope(told: Mapping[str, Any], *, find_project: Callable[[str], Project]) -> tuple[str, Project | None]:
    """Where a memory belongs; without a scope of its own it is its project's."""
    scope = told.get("scope") or ""
    path = told.get("project_path") or ""
    if not isinstance(scope, str) or not isinstance(path, str):
        raise BadRequest("`scope` and `project_path` must be texts", hint="send strings")
    project = find_project(path) if path or not scope else None
    if wide := beyond("" if project and scope == project.scope else scope):
        return wide, project
    if project is None:
        raise BadRequest("a project's memory needs `project_path`", hint="send an absolute path")
    return project.scope, project
