"""Answer calls of MCP tools: one function a tool, each returns text for the agent; stored text is quoted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from foreword.audit import MemoryChange, is_the_users
from foreword.encoding import dumps, storable
from foreword.encoding import since as parse_since
from foreword.errors import BadRequest, ForewordError, NotFound
from foreword.models import Memory, Trigger, agent_memory_uid
from foreword.recall import render
from foreword.recall.notes import note_of
from foreword.recall.query import scopes_of
from foreword.recall.relevance import content_words
from foreword.redact import mark, redact
from foreword.worker import edits, injections, memories, serialize
from foreword.worker.app import App
from foreword.worker.callers import Caller
from foreword.worker.forget import forget as forget_for_good
from foreword.worker.mcp_schema import BY_NAME, unknown

TITLE = 300  # characters of a title that is shown in full
LINE = 500  # of a line of a body, a reason, a list of files
BODY = 8_000  # of a body; with ids for twenty of them, what a client takes from a tool is not far
DETAILS = 20  # entries of a detail
MARK = mark("")[:-1]  # how what stands for a secret begins
TAKEN_OUT = "; what looked like a secret was taken out"
INDENT = 24  # columns of a line's own indentation that are kept
NOTHING = "Nothing that is remembered here fits; try other words, a file, a function, or fewer restrictions."
FIND_HINT = 'memory_search("...") finds ids; other projects are reached from the command line: foreword show ID'


def answer(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a call; an error says how to call it right."""
    name, sent = str(body.get("tool")), body.get("caller")
    try:
        if name not in TOOLS:
            raise BadRequest(unknown(name), hint="call one of these")
        arguments = checked(name, body.get("arguments") or {})
        caller = app.callers.resolve(sent if isinstance(sent, dict) else {})
        policy = app.projects.policy(caller.project)
        if policy.write and policy.inject:
            raise BadRequest("memory is switched off for this project", hint="continue without it")
        if policy.write and not BY_NAME[name]["annotations"]["readOnlyHint"]:
            raise BadRequest(
                f"this project's memory is read-only ({policy.write})",
                hint="continue without it; nothing is stored here",
            )
        return {"text": TOOLS[name](app, caller, **arguments), "failed": False}
    except ForewordError as exc:
        return {"text": f"{exc}; {exc.hint}", "failed": True}


# ---- one function a tool


def search(
    app: App,
    caller: Caller,
    *,
    query: str,
    kinds: Sequence[str] = (),
    since: str = "",
    limit: int = 10,
    compact: bool = False,
) -> str:
    """Return the memories that match *query*, best first."""
    now = app.now()
    after = parse_since(since, now=now) if since.strip() else 0.0
    about: dict[str, Any] = {"kinds": kinds, "since": after, "limit": limit, "now": now}
    found, problems = app.context.search(query, project=caller.project, **about)
    if compact:
        lines = [serialize.compact(each, now)["line"] for each in found]
    else:
        weights = dict.fromkeys(content_words(query), 1.0)
        notes = [note_of(each.memory, now=now, weights=weights) for each in found]
        lines = [render.line(each, layer="answer") for each in notes]
    text = _framed(f"{len(lines)} found in {_name(caller)}", lines, more="memory_get shows all") if lines else NOTHING
    return "\n".join((text, *(f"note: {render.neutral(each, width=LINE)}" for each in problems)))


def get(app: App, caller: Caller, *, ids: Sequence[str]) -> str:
    """Return all of these memories, and record that they were fetched."""
    known, missing = _found(app, caller, ids)
    app.store.memories.record_access(known, how="get", at=app.now(), session=caller.session)
    records = [_whole(app, caller, memory) for memory in known.values()]
    return "\n".join((_framed(f"{len(records)} of {_name(caller)}", records), *missing))


def timeline(app: App, caller: Caller, *, id: str = "", query: str = "", limit: int = 5) -> str:
    """Return what came before and after a memory in its project."""
    if bool(id.strip()) == bool(query.strip()):
        raise BadRequest("a timeline needs either an id or a query", hint='{"id": "dec-..."} or {"query": "words"}')
    if id.strip():
        middle = next(iter(_found(app, caller, [id])[0].values()))
    else:
        best = app.context.search(query, project=caller.project, limit=1, now=app.now())[0]
        if not best:
            return NOTHING
        middle = best[0].memory
    before, after = app.store.memories.neighbours(middle, scope=caller.project.scope, limit=limit)
    lines = []
    for each in (*before, middle, *after):
        at = _time(each.created, "%Y-%m-%d %H:%M")
        lines.append(f"{'>' if each is middle else '-'} {at} {render.named(each)} | {_title(each)}")
    return _framed(f"before and after {middle.id} in {_name(caller)}, UTC", lines, more="memory_get shows all")


def context(app: App, caller: Caller, *, query: str = "") -> str:
    """Return the context that matters now, within the window's budget; an empty one says why."""
    result = injections.answer_question(app, query, project=caller.project, session=caller.window, host=caller.host)
    more = "; memory_search is free" if result["reason"] == "used" else ""
    return result["context"] or f"Nothing to tell: {result['why']}{more}."


def remember(app: App, caller: Caller, *, kind: str, title: str, why: str = "", fixed_by: str = "", **more: Any) -> str:
    """Keep what an agent writes with the agent's trust: whatever its kind, it does not become the user's rule."""
    detail = {name: text for name, text in (("why", why), ("fixed_by", fixed_by)) if text.strip()}
    return _keep(app, caller, {"kind": kind, "title": title, "detail": detail, **more})


def handoff(app: App, caller: Caller, *, message: str, files: Sequence[str] = (), **lists: Sequence[str]) -> str:
    """Keep the state of the work, for the next session: a message, and lists of next steps, blockers and questions."""
    title, _, body = message.strip().partition("\n")
    detail = {name: list(items) for name, items in lists.items() if items}
    values = {"kind": "handoff", "title": title, "body": body.strip("\n"), "detail": detail, "files": list(files)}
    return _keep(app, caller, values)


def revise(app: App, caller: Caller, *, id: str, **values: Any) -> str:
    """Put a memory of this project into other words, unless the user said it."""
    memory = next(iter(_found(app, caller, [id])[0].values()))
    ask = f"ask the user to run `foreword revise {memory.id}`"
    if memory.scope != caller.project.scope:
        raise BadRequest(f"{memory.id} counts in other projects too", hint=ask)
    if memory.status != "active":
        raise BadRequest(f"{memory.id} is {memory.status}", hint="keep what is true now with memory_remember")
    if is_the_users(memory):
        raise BadRequest(f"{memory.id} is what the user said", hint=ask)
    changes = serialize.read_changes(values)
    edits.revise_memory(app, memory, changes, who="agent", why=f"{caller.host or caller.client or 'agent'}: ")
    taken_out = TAKEN_OUT if MARK in dumps([*changes.values()]) else ""
    return f"{memory.id} is revised; its old text is in the log{taken_out}."


def forget(app: App, caller: Caller, *, ids: Sequence[str], why: str) -> str:
    """Forget what agents, tools and imports wrote; what the user said is discarded, for the user to decide."""
    known, missing = _found(app, caller, ids, scopes=(caller.project.scope,))
    users = [each for each in known.values() if each.trust == "user"]
    discarded = [
        MemoryChange("discard", redact(why), changed=((each, replace(each, status="discarded")),))
        for each in users
        if each.status != "discarded"
    ]
    app.store.audit.apply(discarded, who="agent", at=app.now())
    lines = []
    if theirs := [id for id, each in known.items() if each.trust != "user"]:
        left = forget_for_good(app, {"ids": theirs, "why": why}, "agent")["left"]
        state = f"forgotten, but copies are left: {left}" if left else "forgotten for good; no copy is left"
        lines.append(f"{', '.join(theirs)} {state}")
    lines += [
        f"{each.id} is what the user said: it is set aside, can be undone, and the user can remove it for good with "
        f"`foreword forget {each.id}`"
        for each in users
    ]
    return "\n".join((*lines, *missing))


TOOLS: Mapping[str, Callable[..., str]] = {
    "memory_search": search,
    "memory_get": get,
    "memory_timeline": timeline,
    "memory_context": context,
    "memory_remember": remember,
    "memory_revise": revise,
    "memory_handoff": handoff,
    "memory_forget": forget,
}


# ---- arguments


def checked(name: str, arguments: Any) -> dict[str, Any]:
    """Return the arguments as their schema wants them, or raise BadRequest with the right usage.

    Two slips of models are let pass: a single text for a list of texts, and null for what may be left out.
    """
    schema = BY_NAME[name]["inputSchema"]
    fields, needed = schema["properties"], schema.get("required", ())
    usage = f"call {name}({', '.join(field if field in needed else f'{field}?' for field in fields)})"
    if not isinstance(arguments, dict):
        raise BadRequest("the arguments must be an object", hint=usage)
    sent = {str(field): item for field, item in arguments.items() if item is not None}
    if other := [field for field in sent if field not in fields]:
        raise BadRequest(f"{name} has no argument {other[0][:60]!r}", hint=usage)
    if absent := [field for field in needed if field not in sent]:
        raise BadRequest(f"{name} needs `{absent[0]}`", hint=usage)
    for field, item in sent.items():
        sent[field], problem = _fitting(item, fields[field])
        if problem:
            raise BadRequest(f"`{field}` {problem}", hint=usage)
    return sent


def _fitting(item: Any, rule: Mapping[str, Any]) -> tuple[Any, str]:
    """Return an argument as its rule wants it, and what is wrong with it."""
    kind = rule["type"]
    if kind == "array":
        items = [item] if isinstance(item, str) else item
        if not isinstance(items, list) or not rule["minItems"] <= len(items) <= rule["maxItems"]:
            return item, f"must be a list of {rule['minItems']} to {rule['maxItems']} texts"
        fitted = [_fitting(each, rule["items"]) for each in items]
        return [each for each, _ in fitted], next((problem for _, problem in fitted if problem), "")
    if kind == "boolean":
        return item, "" if isinstance(item, bool) else "must be true or false"
    if kind == "integer":
        whole = isinstance(item, (int, float)) and not isinstance(item, bool) and item % 1 == 0
        if not whole or not rule["minimum"] <= item <= rule["maximum"]:
            return item, f"must be a whole number from {rule['minimum']} to {rule['maximum']}"
        return int(item), ""
    if not isinstance(item, str):
        return item, "must be text"
    text = storable(item)
    if "enum" in rule and text not in rule["enum"]:
        return text, f"cannot be {text[:60]!r}: one of {', '.join(rule['enum'])}"
    if rule.get("minLength") and not text.strip():
        return text, "must not be empty"
    if len(text) > rule.get("maxLength", len(text)):
        return text, f"has at most {rule['maxLength']} characters: say it shorter"
    return text, ""


# ---- what this project may see


def _found(
    app: App, caller: Caller, ids: Sequence[str], *, scopes: Sequence[str] = ()
) -> tuple[dict[str, Memory], list[str]]:
    """Return what this project may see of these memories, and a line about the others; raise NotFound for none."""
    wanted = list(dict.fromkeys(id.strip() for id in ids))
    scopes = scopes or scopes_of(Trigger(name="question", project=caller.project))
    known = {memory.id: memory for memory in app.store.memories.get(wanted) if memory.scope in scopes}
    missing = ", ".join(render.neutral(id, width=64) for id in wanted if id not in known)
    if not known:
        raise NotFound(f"no memory of this project has the id {missing[:200]}", hint=FIND_HINT)
    return known, [f"not found here: {missing}"] if missing else []


# ---- writing


def _keep(app: App, caller: Caller, values: Mapping[str, Any]) -> str:
    """Keep a memory once: the same again is the same memory, seen once more."""
    title = redact(str(values["title"])).strip()
    uid = agent_memory_uid(project=caller.project.key, kind=str(values["kind"]), title=title)
    known = next(iter(app.store.memories.get_by_uid([uid])), None)
    again: dict[str, Any] = {"uid": uid}
    if known is not None and known.status == "active":
        again |= {"seen": known.seen + 1, "created": known.created, "confirmed": app.now()}
    elif known is not None:
        again = {}  # what somebody discarded stays so, and this is another
    memory = {
        **values,
        **again,
        "project_path": caller.project.root,
        "session": caller.session,
        "source": caller.host or caller.client or "agent",
        "trust": "agent",
    }
    [kept] = memories.add_memories(app, memory)["memories"]
    redacted = MARK in dumps([kept[name] for name in (*values, "detail")])  # also what was hidden before it came here
    return f"{kept['id']} is kept{' (seen before)' if 'created' in again else ''}{TAKEN_OUT if redacted else ''}."


# ---- rendering


def _framed(about: str, lines: Sequence[str], *, more: str = "") -> str:
    head = f"{render.BEGIN}: {about} ({render.HISTORY}){f'; {more}' if more else ''} ---"
    return "\n".join((head, *lines, render.END))


def _head(memory: Memory, *, now: float) -> str:
    """Return a record's first line: what it is, when it was written, and by whom."""
    when = f"{render.ago(now - memory.created)}, {_time(memory.created)}"
    return f"{render.named(memory)} | {_title(memory)} | {when} | said by {render.author_label(memory)}"


def _whole(app: App, caller: Caller, memory: Memory) -> str:
    """Return one record: its head at the margin, the rest set in, so that no text can pass for another record."""
    rows = [_head(memory, now=app.now())]
    for line in memory.body[:BODY].splitlines():
        bare = line.lstrip(" \t")
        rows.append(f"  | {' ' * min(len(line) - len(bare), INDENT)}{render.neutral(bare, width=LINE)}")
    if len(memory.body) > BODY:
        rows.append(f"  | ({len(memory.body) - BODY} more characters; the user can run `foreword show`)")
    # Links are shown where this project may see both ends.
    links = app.store.memories.links(memory.id)
    ends = app.store.memories.get([end for link in links for end in (link.source, link.target)])
    seen = {each.id for each in ends if each.scope in scopes_of(Trigger(name="question", project=caller.project))}
    linked = [link for link in links if {link.source, link.target} <= seen]
    facts = {
        **_detail(memory),
        "files": _joined(memory.files),
        "functions": _joined(memory.functions),
        "tags": _joined(memory.tags),
        "seen": f"{memory.seen}x, last {_time(memory.confirmed)}" if memory.seen > 1 else "",
        "status": f"{memory.status} {memory.superseded_by}".strip() if memory.status != "active" else "",
        "links": _joined([f"{link.source} {link.relation} {link.target}" for link in linked]),
    }
    return "\n".join((*rows, *(f"  {name}: {text}" for name, text in facts.items() if text)))


def _detail(memory: Memory) -> dict[str, str]:
    """Return what a kind has of its own; what is no text, or under a name that is none, is left out."""
    found: dict[str, str] = {}
    for name, item in list(memory.detail.items())[:DETAILS]:
        texts = [each for each in (item if isinstance(item, list) else [item]) if isinstance(each, str)]
        if name.isidentifier() and name.isascii() and len(name) <= 40:
            found[name] = _joined(texts)
    return found


def _joined(texts: Sequence[str]) -> str:
    return "; ".join(text for each in texts if (text := render.neutral(each, width=LINE)))


def _title(memory: Memory) -> str:
    return (render.neutral(memory.title, width=TITLE) or "(untitled)").replace("|", "/")


def _name(caller: Caller) -> str:
    return render.neutral(caller.project.name, width=60) or "this project"


def _time(at: float, form: str = "%Y-%m-%d") -> str:
    return time.strftime(form, time.gmtime(at))
