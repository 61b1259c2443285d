"""Turn models into the JSON that callers of the API get."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from foreword.audit import PAST, AuditEntry, describe
from foreword.extract.fixes import fate_of
from foreword.models import Context, Injection, Memory, NoContext, Ranked, Session
from foreword.recall import render
from foreword.recall.pipeline import explain_nothing
from foreword.recall.rank import CERTAIN

if TYPE_CHECKING:
    from foreword.models import AgentActivity, NoContextRecord


def host(seen: AgentActivity) -> dict[str, Any]:
    """Return what was seen of an agent; null for what never was."""
    event = {"at": seen.at, "name": seen.name, "session": seen.session, "project": seen.project}
    injected = {"at": seen.injected, "trigger": seen.trigger, "tokens": seen.tokens}
    return {
        "last_event": event if seen.at else None,
        "last_injection": injected if seen.injected else None,
        "sessions": seen.sessions,
        "events": seen.events,
    }


def context(got: Context | NoContext, id: str, *, trigger: str = "prompt") -> dict[str, Any]:
    """Return a context as JSON; no context is an answer too."""
    found = got if isinstance(got, Context) else None
    return {
        "context": found.text if found else "",
        "tokens": found.tokens if found else 0,
        "budget": got.budget,
        "layers": dict(found.layers) if found else {},
        "skipped": dict(got.skipped),
        "build_ms": round(got.build_ms, 3),
        "injection": id,
        "why": "" if isinstance(got, Context) else _sentence(trigger, got),
        "reason": "" if isinstance(got, Context) else got.reason,
    }


def _sentence(trigger: str, got: NoContext) -> str:
    numbers = {"budget": got.budget, "spent": got.spent, "allowed": got.allowed}
    return explain_nothing(trigger, got.reason, **numbers) or got.reason


def again(record: Injection) -> dict[str, Any]:
    """Return context that was injected before, byte for byte."""
    same = {name: getattr(record, name) for name in ("tokens", "budget", "build_ms")}
    why = "" if record.text else "nothing was worth injecting when this was first asked in this context window"
    layers = {"layers": dict(record.layers), "skipped": dict(record.skipped)}
    id = record.id if record.text else ""
    return {"context": record.text, **same, **layers, "injection": id, "why": why, "reason": ""}


def injection(record: Injection, *, text: bool) -> dict[str, Any]:
    """Return an injection as JSON, with or without its text."""
    row = {
        **vars(record),
        "layers": dict(record.layers),
        "skipped": dict(record.skipped),
        "items": [{**vars(item), "why": dict(item.why)} for item in record.items],
        "terms": list(record.terms),
        "files": list(record.files),
    }
    return row if text else {name: each for name, each in row.items() if name != "text"}


def silence(kept: NoContextRecord, known: Mapping[str, Memory]) -> dict[str, Any]:
    """Return a trigger without context as JSON, with its reason in words and the title of the nearest memory."""
    nearest = known.get(kept.nearest)
    numbers = {"budget": kept.budget, "spent": kept.spent, "allowed": kept.allowed}
    says = explain_nothing(kept.trigger, kept.why, **numbers)
    return {**vars(kept), "says": says, "title": nearest.title if nearest else ""}


def rejected(kept: Memory, why: str) -> dict[str, Any]:
    """Return a memory that was rejected, and why."""
    return {"memory": kept.id, "kind": kept.kind, "title": kept.title, "why": why}


def memory(kept: Memory) -> dict[str, Any]:
    """Return a memory as JSON."""
    return {
        **vars(kept),
        "tags": list(kept.tags),
        "files": list(kept.files),
        "functions": list(kept.functions),
        "detail": dict(kept.detail),
        **({"asleep": True} if kept.kind == "learning" and kept.confidence < CERTAIN else {}),
    }


def entry(logged: AuditEntry) -> dict[str, Any]:
    """Return an entry of the audit log as JSON, with its verb and memories in words."""
    words = {"done": PAST.get(logged.what, logged.what), "about": describe(logged)}
    return {**vars(logged), "memories": list(logged.memories), "patch": dict(logged.patch), **words}


def seen_by(session: Session, kept: Memory, *, ended: Mapping[str, float]) -> dict[str, Any]:
    """Return a memory as JSON, and of a failure whether the session that saw it fixed it."""
    if kept.kind != "failure":
        return memory(kept)
    return {**memory(kept), "here": vars(fate_of(kept, session=session, ended=ended))}


def compact(ranked: Ranked, now: float) -> dict[str, Any]:
    """Return one line of a search result, with its project and day."""
    memory = ranked.memory
    day = time.strftime("%Y-%m-%d", time.gmtime(memory.created))
    line = f"{render.compact(ranked, now=now)} | {render.neutral(memory.project or memory.scope, width=60)} | {day}"
    return {"id": memory.id, "kind": memory.kind, "score": ranked.score, "line": line}
