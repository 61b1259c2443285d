"""Read requests: queries by parameter, bodies into hook calls, memories and imports; every text is redacted."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, cast

from foreword.audit import REVISABLE
from foreword.capture.payload import HookCall
from foreword.encoding import storable
from foreword.errors import BadRequest, NotFound
from foreword.importers import ENVIRON
from foreword.models import KINDS, TRUSTS, UNIVERSAL, Injection, Item, Memory, Project
from foreword.redact import redact, redact_all

if TYPE_CHECKING:
    from foreword.models import Trust
    from foreword.store import Store
    from foreword.worker.http import Request


@dataclass(frozen=True)
class ImportRequest:
    """The sources to import into the project of a folder."""

    folder: str
    sources: tuple[str, ...]
    options: Mapping[str, Any]
    environ: Mapping[str, str]


def hook_call(body: Any) -> HookCall:
    """Return the hook call that a plugin sent."""
    if not isinstance(body, dict) or not isinstance(body.get("payload"), dict):
        raise BadRequest("an event needs a `payload` object", hint="send {host, event, payload}")
    if not body.get("host") or not body.get("event"):
        raise BadRequest("an event needs `host` and `event`", hint="send {host, event, payload}")
    return HookCall(
        host=str(body["host"]),
        event=str(body["event"]),
        at=_when(body, "at") or time.time(),
        raw=json.dumps(body["payload"]).encode(),
    )


def memory(body: Any, *, find_project: Callable[[str], Project], now: float) -> Memory:
    """Return the memory that a caller wrote, redacted; raise BadRequest for what makes no sense."""
    if not isinstance(body, dict):
        raise BadRequest("a memory is a JSON object", hint="send {kind, title, …}")
    clean = redact_all({name: body.get(name) for name in ("title", "body", "tags", "files", "functions", "detail")})
    source = redact(storable(str(body.get("source") or "user")))
    scope, project = _scope(body, find_project=find_project)
    created = _when(body, "created") or now
    seen, detail = body.get("seen", 1), clean.get("detail") or {}
    if not isinstance(seen, int) or isinstance(seen, bool) or not 1 <= seen <= 1_000_000:
        raise BadRequest("`seen` must be a whole number from 1 on", hint="leave it out for 1")
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
        confidence=_confidence(body.get("confidence", 1.0)),
        seen=seen,
        created=created,
        confirmed=_when(body, "confirmed") or created,
        detail=detail,
    )


def changes(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a caller wants to change about a memory, by field, redacted.

    An empty text or list empties its field.
    """
    value = {name: body[name] for name in REVISABLE if body.get(name) is not None}
    clean = redact_all({name: value[name] for name in value if name not in ("kind", "scope", "confidence")})
    lists = ("tags", "files", "functions")
    changed: dict[str, Any] = {name: (texts if name in lists else text)(clean, name) for name in clean}
    if "title" in changed:
        changed["title"] = _title(clean)
    if "kind" in value:
        changed["kind"] = _kind(value["kind"])
    if "confidence" in value:
        changed["confidence"] = _confidence(value["confidence"])
    if "scope" in value:
        changed["scope"] = beyond(text(value, "scope")) or "project"
    if not changed:
        raise BadRequest("nothing is to be different", hint=f"send any of {', '.join(REVISABLE)}")
    return changed


def new_uid() -> str:
    """Return a uid for a memory that is linked before it has an id."""
    return secrets.token_hex(16)


def import_request(body: Mapping[str, Any]) -> ImportRequest:
    """Return what to import, and where; the folders in `environ` are the caller's, not the worker's."""
    sources, options = body.get("sources"), body.get("options") or {}
    if not isinstance(sources, list) or not sources or not all(isinstance(each, str) for each in sources):
        raise BadRequest("`sources` must be a list of names", hint='send {"sources": ["git"], "project_path": …}')
    if not isinstance(options, dict):
        raise BadRequest("`options` must be an object", hint="send {…}, or leave it out")
    value = body.get("environ") or {}
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise BadRequest("`environ` must be an object of texts", hint="leave it out for the worker's own")
    path = text(body, "project_path")
    environ = {name: each for name, each in {**os.environ, **value}.items() if name in ENVIRON}
    return ImportRequest(folder=path, sources=tuple(dict.fromkeys(sources)), options=options, environ=environ)


def injection(hook_call: HookCall) -> Injection:
    """Return what a hook injected while no worker ran, as it wrote it into the spool."""
    body = json.loads(hook_call.raw)
    lists = {name: tuple(body[name]) for name in ("terms", "files")}
    items = tuple(Item(**item) for item in body["items"])
    return Injection(**{**body, **lists, "items": items, "at": _when(body, "at")})


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


def beyond(scope: str) -> str:
    """Return a scope that is wider than a project; empty where the project's own is meant."""
    name = scope.lower()
    if name == UNIVERSAL or (name.startswith("language:") and name[9:].strip()):
        return redact(name)
    if name not in ("", "project"):
        raise BadRequest(f"unknown scope {scope!r}", hint="universal, language:NAME, or project")
    return ""


def known(store: Store, id: str, *, hint: str = "`foreword search` finds ids") -> Memory:
    """Return the memory of an id, or raise NotFound."""
    found = store.memories.get([id])
    if not found or found[0].status == "forgotten":
        raise NotFound(f"there is no memory {id[:80]!r}", hint=hint)
    return found[0]


def _title(body: Mapping[str, Any]) -> str:
    title = text(body, "title").strip()
    if not title:
        raise BadRequest("a memory needs a title", hint="say in one line what is worth knowing")
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
        raise BadRequest(f"what {source[:40]!r} clean has not the user's trust", hint="leave out `source` or `trust`")
    return cast("Trust", trust)


def _confidence(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise BadRequest("`confidence` must be a number from 0 to 1", hint="leave it out for 1")
    return float(value)


def _when(body: Mapping[str, Any], name: str) -> float:
    """Return a time in Unix seconds; 0 where there is none."""
    value = body.get(name) or 0.0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e11:
        raise BadRequest(f"`{name}` must be Unix seconds", hint="leave it out for now")
    return float(value)


def _scope(body: Mapping[str, Any], *, find_project: Callable[[str], Project]) -> tuple[str, Project | None]:
    """Return the scope and project of a memory; without a scope of its own it is its project's."""
    scope = body.get("scope") or ""
    path = body.get("project_path") or ""
    if not isinstance(scope, str) or not isinstance(path, str):
        raise BadRequest("`scope` and `project_path` must be texts", hint="send strings")
    project = find_project(path) if path or not scope else None
    if wide := beyond("" if project and scope == project.scope else scope):
        return wide, project
    if project is None:
        raise BadRequest("a project's memory needs `project_path`", hint="send an absolute path")
    return project.scope, project


# ---- the query, and the body as JSON

MOST = {"limit": 1000, "budget": 100_000, "days": 36_500}  # of whole numbers in a query


def body(request: Request) -> dict[str, Any]:
    """Return the JSON object in a request's body."""
    try:
        found = json.loads(request.body)
    except (ValueError, RecursionError) as exc:
        raise BadRequest("the body is not JSON", hint="send one JSON object") from exc
    if not isinstance(found, dict):
        raise BadRequest("the body is no JSON object", hint="send one JSON object")
    return found


def last(request: Request) -> str:
    """Return the id at the end of a path such as /api/memories/ID."""
    return "/".join(request.path.split("/")[3:])


def arguments(handle: Callable[..., object], request: Request) -> dict[str, Any]:
    """Return the query's values for the keyword parameters of *handle*, each of the type of its default."""
    found: dict[str, Any] = {}
    for name, parameter in signature(handle).parameters.items():
        default = parameter.default
        if parameter.kind is not Parameter.KEYWORD_ONLY:
            continue
        if isinstance(default, bool):
            found[name] = flag(request, name)
        elif isinstance(default, int):
            found[name] = whole(request, name, default, most=MOST.get(name, 1 << 62))
        elif isinstance(default, float):
            found[name] = number(request, name, default)
        elif isinstance(default, tuple):
            found[name] = items(request, name)
        else:
            found[name] = word(request, name)
    return found


def word(request: Request, name: str) -> str:
    return request.query.get(name, "")


def items(request: Request, name: str) -> tuple[str, ...]:
    """Return the words of a list with commas."""
    return tuple(each for each in word(request, name).split(",") if each)


def flag(request: Request, name: str) -> bool:
    return word(request, name).lower() in ("1", "true", "yes")


def number(request: Request, name: str, default: float = 0.0) -> float:
    text = word(request, name)
    try:
        value = float(text) if text else default
    except ValueError:
        value = float("nan")
    if value != value or abs(value) == float("inf"):  # noqa: PLR0124 - NaN is the one number that is not itself
        raise BadRequest(f"`{name}` must be a number, not {text[:40]!r}", hint="leave it out for the default")
    return value


def whole(request: Request, name: str, default: int = 0, *, most: int) -> int:
    value = number(request, name, default)
    if not min(0, default) <= value <= most or value != int(value):
        raise BadRequest(f"`{name}` must be a whole number from 0 to {most}", hint="leave it out for the default")
    return int(value)
