"""Answer calls of MCP tools: one function a tool, text for the agent and the same as data; stored text is quoted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foreword.audit import MemoryChange
from foreword.encoding import dumps, storable
from foreword.errors import BadRequest, ForewordError, NotFound
from foreword.hook.build import key_of
from foreword.models import KINDS, Link, Memory, Project, Trigger, agent_memory_uid
from foreword.recall import render
from foreword.recall.notes import note_of
from foreword.recall.query import scopes_of
from foreword.recall.relevance import content_words
from foreword.redact import each_text, mark, redact
from foreword.redact.env import hiding
from foreword.units import since
from foreword.worker import handlers, requests, serialize
from foreword.worker.app import App
from foreword.worker.edits import Proposed, revise_for_agent
from foreword.worker.mcp_schema import BY_NAME, CATEGORIES, unknown
from foreword.worker.projects import ProjectRegistry
from foreword.worker.sessions import Caller

TITLE = 300  # characters of a title that is shown in full
LINE = 500  # of a line of a body, a reason, a list of files
BODY = 8_000  # of a body; with ids for twenty of them, what a client takes from a tool is not far
DETAILS = 20  # entries of a detail
MARK = mark("")[:-1]  # how what stands for a secret begins
INDENT = 24  # columns of a line's own indentation that are kept
NOTHING = "Nothing that is remembered here fits; try other words, a file, a function, or fewer restrictions."


@dataclass(frozen=True)
class Answer:
    """The answer of a tool, as text and as data."""

    text: str
    structured: Mapping[str, Any]


def answer(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a call; an error says how to call it right."""
    try:
        result = _call(app, body)
    except ForewordError as exc:
        return {"text": f"{exc}; {exc.hint}", "structured": None, "failed": True}
    note = {} if "redacted" in result.structured else {"note": render.HISTORY}
    return {"text": result.text, "structured": {**note, **result.structured}, "failed": False}


def _call(app: App, body: Mapping[str, Any]) -> Answer:
    name, sent = body.get("tool"), body.get("caller")
    if not isinstance(name, str) or name not in TOOLS:
        raise BadRequest(unknown(str(name)), hint="call one of these")
    sent = sent if isinstance(sent, dict) else {}
    hide = hiding(str(sent.get("hidden") or ""), key=key_of(app.home)) or str
    arguments = each_text(checked(name, body.get("arguments") or {}), hide)
    caller = app.callers.resolve(sent)
    policy = app.projects.policy(caller.project)
    if policy.write and policy.inject:
        raise BadRequest("memory is switched off for this project", hint="go on without it")
    if policy.write and not BY_NAME[name]["annotations"]["readOnlyHint"]:
        raise BadRequest(f"this project's memory is read-only ({policy.write})", hint="go on; nothing is kept here")
    return TOOLS[name](app, caller, **arguments)


# ---- one function a tool


def search(
    app: App,
    caller: Caller,
    *,
    query: str,
    kinds: Sequence[str] = (),
    project: str = "",
    since: str = "",
    limit: int = 10,
    compact: bool = False,
) -> Answer:
    """Return the memories that match *query*, best first."""
    _refuse_other_project(app.projects, caller.project, project)
    now = app.now()
    found = app.context.search(
        query, project=caller.project, kinds=kinds, since=_since(since, now=now), limit=limit, now=now
    )
    problems = [render.neutral(each, width=LINE) for each in found.problems]
    if compact:
        lines = [serialize.compact(each, now)["line"] for each in found.ranked]
    else:
        weights = dict.fromkeys(content_words(query), 1.0)
        notes = [note_of(each.memory, now=now, weights=weights) for each in found.ranked]
        lines = [render.line(each, layer="answer") for each in notes]
    name = _name(caller.project)
    text = _framed(f"{len(lines)} found in {name}", lines, more="memory_get shows all") if lines else NOTHING
    results = [{**_entry(each.memory), "age": render.age(now - each.memory.created)} for each in found.ranked]
    scored = [{**result, "score": round(each.score, 4)} for result, each in zip(results, found.ranked, strict=True)]
    return Answer(
        text="\n".join((text, *(f"note: {each}" for each in problems))),
        structured={"project": name, "results": scored, "problems": problems},
    )


def get(app: App, caller: Caller, *, ids: Sequence[str]) -> Answer:
    """Return all of these memories, and record that they were fetched."""
    wanted = list(dict.fromkeys(id.strip() for id in ids))
    known = {memory.id: memory for memory in _visible(app, caller, wanted)}
    missing = [render.neutral(id, width=64) for id in wanted if id not in known]
    if not known:
        raise NotFound(
            f"no memory of this project has the id {', '.join(missing)[:200]}",
            hint='memory_search("...") finds ids; other projects are reached from the command line: foreword show ID',
        )
    app.store.memories.record_access(known, how="get", at=app.now(), session=caller.session)
    now = app.now()
    links = {id: _within(app, caller, app.store.memories.links(id)) for id in known}
    records = [_whole(memory, links[id], now=now) for id, memory in known.items()]
    text = _framed(f"{len(records)} of {_name(caller.project)}", records)
    if missing:
        text += f"\nnot found here: {', '.join(missing)}"
    return Answer(
        text=text,
        structured={
            "memories": [_data(memory, links[id]) for id, memory in known.items()],
            "missing": missing,
        },
    )


def timeline(app: App, caller: Caller, *, id: str = "", query: str = "", limit: int = 5) -> Answer:
    """Return what came before and after a memory in its project."""
    if bool(id.strip()) == bool(query.strip()):
        raise BadRequest("a timeline needs either an id or a query", hint='{"id": "dec-..."} or {"query": "words"}')
    if id.strip():
        seen = _visible(app, caller, [id.strip()])
        if not seen:
            raise NotFound(
                f"no memory of this project has the id {render.neutral(id, width=64)}",
                hint='memory_search("...") finds ids',
            )
        middle = seen[0]
    else:
        best = app.context.search(query, project=caller.project, limit=1, now=app.now()).ranked
        if not best:
            return Answer(text=NOTHING, structured={"id": "", "entries": []})
        middle = best[0].memory
    before, after = app.store.memories.neighbours(middle, scope=caller.project.scope, limit=limit)
    rows = [("before", each) for each in before] + [("here", middle)] + [("after", each) for each in after]
    lines = [
        f"{'>' if place == 'here' else '-'} {_minute(each)} {render.named(each)} | {_title(each)}"
        for place, each in rows
    ]
    entries = [
        {"id": each.id, "kind": _kind(each), "title": _title(each), "at": _minute(each), "place": place}
        for place, each in rows
    ]
    text = _framed(f"before and after {middle.id} in {_name(caller.project)}, UTC", lines, more="memory_get shows all")
    return Answer(text=text, structured={"id": middle.id, "entries": entries})


def context(app: App, caller: Caller, *, query: str = "", scope: str = "", category: str = "") -> Answer:
    """Return the context that matters now, within the window's budget; an empty one says why."""
    result = handlers.answer_question(
        app,
        query,
        project=caller.project,
        session=caller.window,
        host=caller.host,
        scope=scope,
        kinds=CATEGORIES.get(category, ()),
    )
    data = {name: result[name] for name in ("context", "tokens", "budget", "why")}
    more = "; memory_search is free" if result.get("reason") == "used" else ""
    return Answer(text=result["context"] or f"Nothing to tell: {result['why']}{more}.", structured=data)


def remember(
    app: App,
    caller: Caller,
    *,
    kind: str,
    title: str,
    body: str = "",
    why: str = "",
    fixed_by: str = "",
    files: Sequence[str] = (),
    functions: Sequence[str] = (),
    tags: Sequence[str] = (),
) -> Answer:
    """Keep what an agent writes with the agent's trust: whatever its kind, it does not become the user's rule."""
    detail = {name: text for name, text in (("why", why), ("fixed_by", fixed_by)) if text.strip()}
    lists = {"files": list(files), "functions": list(functions), "tags": list(tags)}
    return _keep(app, caller, {"kind": kind, "title": title, "body": body, "detail": detail, **lists})


def handoff(
    app: App,
    caller: Caller,
    *,
    message: str,
    next: Sequence[str] = (),
    blockers: Sequence[str] = (),
    questions: Sequence[str] = (),
    files: Sequence[str] = (),
) -> Answer:
    """Keep the state of the work, for the next session."""
    title, _, body = message.strip().partition("\n")
    open_ones = (("next", next), ("blockers", blockers), ("questions", questions))
    detail = {name: list(each) for name, each in open_ones if each}
    values = {"kind": "handoff", "title": title, "body": body.strip("\n"), "detail": detail, "files": list(files)}
    return _keep(app, caller, values)


def forget(app: App, caller: Caller, *, ids: Sequence[str], why: str) -> Answer:
    """Forget what agents, tools and imports wrote; what the user said is discarded, for the user to decide."""
    wanted = list(dict.fromkeys(id.strip() for id in ids))
    own = {each.id: each for each in app.store.memories.get(wanted) if each.scope == caller.project.scope}
    missing = [render.neutral(id, width=64) for id in wanted if id not in own]
    users = [each for each in own.values() if each.trust == "user"]
    theirs = [each.id for each in own.values() if each.trust != "user"]
    if not own:
        raise NotFound(
            f"no memory of this project has the id {', '.join(missing)[:200]}", hint='memory_search("...") finds ids'
        )
    for each in users:
        if each.status == "discarded":
            continue
        one = MemoryChange("discard", redact(why), changed=((each, replace(each, status="discarded")),))
        app.store.audit.apply([one], who="agent", at=app.now())
    receipt = handlers.forget_memories(app, {"ids": theirs, "why": why}, who="agent") if theirs else {}
    lines = [f"{', '.join(theirs)} forgotten for good; no copy is left"] if theirs and not receipt["left"] else []
    lines += [f"{', '.join(theirs)} forgotten; see `left` in the receipt"] if theirs and receipt["left"] else []
    for each in users:
        lines.append(
            f"{each.id} is what the user said: it is set aside, can be undone, and the user can remove it "
            f"for good with `foreword forget {each.id}`"
        )
    lines += [f"not found here: {', '.join(missing)}"] if missing else []
    data = {"forgotten": theirs, "put_aside": [each.id for each in users], "missing": missing, "receipt": receipt}
    return Answer(text=".\n".join(lines) + ".", structured=data)


def revise(app: App, caller: Caller, *, id: str, **values: Any) -> Answer:
    """Put a memory of this project into other words, or propose some to the user where the user said it."""
    wanted = id.strip()
    found = [memory for memory in _visible(app, caller, [wanted]) if memory.status not in ("proposed", "forgotten")]
    if not found:
        raise NotFound(
            f"no memory of this project has the id {render.neutral(wanted, width=64)}",
            hint='memory_search("...") finds ids',
        )
    [memory] = found
    if memory.scope != caller.project.scope:
        raise BadRequest(
            f"{memory.id} counts in other projects too", hint=f"the user changes it: `foreword revise {memory.id}`"
        )
    source = caller.host or caller.client or "agent"
    changes = requests.changes(values)
    done = revise_for_agent(app, memory, changes, source=source, session=caller.session)
    redacted = MARK in dumps([*changes.values()])
    data = {"id": memory.id, "kind": _kind(done.memory), "title": _title(done.memory), "redacted": redacted}
    if isinstance(done, Proposed) and not done.waits:
        text = f"the user has seen this proposal for {memory.id} before, and decided; it is not made again"
    elif isinstance(done, Proposed):
        text = f"the user said {memory.id}: yours is a proposal that waits for a yes in `foreword review`; until then"
        text += " it stays as it is"
    else:
        text = f"{memory.id} is revised; its old text is in the log"
    text += "; what looked like a secret was taken out" if redacted else ""
    return Answer(text=text + ".", structured={**data, "proposed": isinstance(done, Proposed)})


TOOLS: Mapping[str, Callable[..., Answer]] = {
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
    fields = schema["properties"]
    if not isinstance(arguments, dict):
        raise BadRequest("the arguments must be an object", hint=_usage(name))
    fitting: dict[str, Any] = {}
    for field, item in arguments.items():
        if field not in fields:
            raise BadRequest(f"{name} has no argument {str(field)[:60]!r}", hint=_usage(name))
        if item is not None:
            fitting[field] = _fitting(field, item, fields[field], name)
    for field in schema.get("required", ()):
        if field not in fitting:
            raise BadRequest(f"{name} needs `{field}`", hint=_usage(name))
    return fitting


def _fitting(field: str, item: Any, rule: Mapping[str, Any], name: str) -> Any:
    kind = rule["type"]
    if kind == "array":
        items = [item] if isinstance(item, str) else item
        if not isinstance(items, list) or not rule.get("minItems", 0) <= len(items) <= rule["maxItems"]:
            least = rule.get("minItems", 0)
            raise BadRequest(f"`{field}` must be a list of {least} to {rule['maxItems']} texts", hint=_usage(name))
        return [_fitting(field, each, rule["items"], name) for each in items]
    if kind == "boolean" and not isinstance(item, bool):
        raise BadRequest(f"`{field}` must be true or false", hint=_usage(name))
    if kind == "integer":
        if isinstance(item, bool) or not isinstance(item, (int, float)) or item % 1 != 0:
            raise BadRequest(f"`{field}` must be a whole number", hint=_usage(name))
        if not rule["minimum"] <= item <= rule["maximum"]:
            raise BadRequest(f"`{field}` must be from {rule['minimum']} to {rule['maximum']}", hint=_usage(name))
        return int(item)
    if kind == "string":
        return _text(field, item, rule, name)
    return item


def _text(field: str, item: Any, rule: Mapping[str, Any], name: str) -> str:
    if not isinstance(item, str):
        raise BadRequest(f"`{field}` must be text", hint=_usage(name))
    text = storable(item)
    if "enum" in rule and text not in rule["enum"]:
        raise BadRequest(f"`{field}` cannot be {text[:60]!r}", hint=f"one of {', '.join(rule['enum'])}")
    if rule.get("minLength") and not text.strip():
        raise BadRequest(f"`{field}` must not be empty", hint=_usage(name))
    if len(text) > rule.get("maxLength", len(text)):
        raise BadRequest(f"`{field}` has at most {rule['maxLength']} characters", hint="say it shorter")
    return text


def _usage(name: str) -> str:
    """Return how a tool is called, in a line."""
    schema = BY_NAME[name]["inputSchema"]
    needed = schema.get("required", ())
    names = [field if field in needed else f"{field}?" for field in schema["properties"]]
    return f"call {name}({', '.join(names)})"


def _since(text: str, *, now: float) -> float:
    return since(text, now=now) if text.strip() else 0.0


def _refuse_other_project(registry: ProjectRegistry, own: Project, name: str) -> None:
    """Refuse any project but the session's own and its aliases: what lies in others is nobody's business here."""
    if not name.strip() or name in (own.key, own.name, own.root) or registry.key(name) == own.key:
        return
    if name.startswith("/") and registry.at(name).key == own.key:
        return
    raise BadRequest(
        f"only this session's own project ({_name(own)}) can be searched here",
        hint="leave `project` out; the user reaches others with `foreword search --project PATH`",
    )


def _visible(app: App, caller: Caller, ids: Sequence[str]) -> tuple[Memory, ...]:
    """Return the memories of these ids that this project may see."""
    scopes = scopes_of(Trigger(name="question", project=caller.project))
    return tuple(memory for memory in app.store.memories.get(list(ids)) if memory.scope in scopes)


def _within(app: App, caller: Caller, links: Sequence[Link]) -> tuple[Link, ...]:
    """Return the links both ends of which this project may see."""
    ends = {
        memory.id for memory in _visible(app, caller, [end for link in links for end in (link.source, link.target)])
    }
    return tuple(link for link in links if {link.source, link.target} <= ends)


# ---- writing


def _keep(app: App, caller: Caller, values: Mapping[str, Any]) -> Answer:
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
    [kept] = handlers.add_memories(app, memory)["memories"]
    redacted = MARK in dumps([kept[name] for name in (*values, "detail")])  # also what was hidden before it came here
    text = f"{kept['id']} is kept{' (seen before)' if 'created' in again else ''}"
    if redacted:
        text += "; what looked like a secret was taken out"
    data = {"id": kept["id"], "kind": kept["kind"], "title": render.neutral(kept["title"], width=TITLE)}
    return Answer(text=text + ".", structured={**data, "redacted": redacted})


# ---- rendering


def _framed(about: str, lines: Sequence[str], *, more: str = "") -> str:
    head = f"{render.BEGIN}: {about} ({render.HISTORY}){f'; {more}' if more else ''} ---"
    return "\n".join((head, *lines, render.END))


def _whole(memory: Memory, links: Sequence[Link], *, now: float) -> str:
    """One record: its head at the margin, everything else set in, so that no text can pass for another record."""
    when = f"{render.ago(now - memory.created)}, {_date(memory)}"
    head = f"{render.named(memory)} | {_title(memory)} | {when} | said by {render.said_by(memory)}"
    rows = [head, *(f"  | {line}" for line in _lines(memory.body))]
    rows += [f"  {name}: {text}" for name, text in _facts(memory, links).items()]
    return "\n".join(rows)


def _facts(memory: Memory, links: Sequence[Link]) -> dict[str, str]:
    lists = {name: _joined(each) for name, each in (("files", memory.files), ("functions", memory.functions))}
    often = f"{memory.seen}x, last {_day(memory.confirmed)}" if memory.seen > 1 else ""
    status = "" if memory.status == "active" else " by ".join(filter(None, (memory.status, memory.superseded_by)))
    facts = {
        **{name: _joined(each) for name, each in _detail(memory).items()},
        **lists,
        "tags": _joined(memory.tags),
        "seen": often,
        "status": status,
        "links": "; ".join(_links(links)),
    }
    return {name: text for name, text in facts.items() if text}


def _data(memory: Memory, links: Sequence[Link]) -> dict[str, Any]:
    """The record as data, its texts quoted as in the text: some clients show their model this instead."""
    return {
        **_entry(memory),
        "body": "\n".join(_lines(memory.body)),
        "detail": {name: list(each) for name, each in _detail(memory).items()},
        "files": _neutrals(memory.files),
        "functions": _neutrals(memory.functions),
        "tags": _neutrals(memory.tags),
        "said_by": render.said_by(memory),
        "trust": memory.trust,
        "seen": memory.seen,
        "status": memory.status,
        "links": _links(links),
    }


def _entry(memory: Memory) -> dict[str, Any]:
    return {"id": memory.id, "kind": _kind(memory), "title": _title(memory), "date": _date(memory)}


def _lines(body: str) -> list[str]:
    """A body line by line, each unable to be anything but a line of it; where it is long, its beginning."""
    lines = []
    for line in body[:BODY].splitlines():
        bare = line.lstrip(" \t")
        lines.append(" " * min(len(line) - len(bare), INDENT) + render.neutral(bare, width=LINE))
    if len(body) > BODY:
        lines.append(f"({len(body) - BODY} more characters; the user can run `foreword show`)")
    return lines


def _detail(memory: Memory) -> dict[str, tuple[str, ...]]:
    """What a kind has of its own, as texts; what is no text, or under a name that is none, is left out."""
    found: dict[str, tuple[str, ...]] = {}
    for name, item in list(memory.detail.items())[:DETAILS]:
        texts = [
            each for each in (item if isinstance(item, list) else [item]) if isinstance(each, str) and each.strip()
        ]
        if texts and name.isidentifier() and name.isascii() and len(name) <= 40:
            found[name] = tuple(_neutrals(texts))
    return found


def _links(links: Sequence[Link]) -> list[str]:
    return [render.neutral(f"{link.source} {link.relation} {link.target}", width=120) for link in links]


def _neutrals(texts: Sequence[str]) -> list[str]:
    return [text for each in texts if (text := render.neutral(each, width=LINE))]


def _joined(texts: Sequence[str]) -> str:
    return "; ".join(_neutrals(texts))


def _title(memory: Memory) -> str:
    return (render.neutral(memory.title, width=TITLE) or "(untitled)").replace("|", "/")


def _kind(memory: Memory) -> str:
    return memory.kind if memory.kind in KINDS else "note"


def _name(project: Project) -> str:
    return render.neutral(project.name, width=60) or "this project"


def _date(memory: Memory) -> str:
    return _day(memory.created)


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))


def _minute(memory: Memory) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(memory.created))
