"""Parse a hook call into a redacted event; everything passes here before it is written."""

from __future__ import annotations

import json
from _imp import source_hash
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from foreword.agents import HookInput, find
from foreword.capture.payload import CUT, HookCall, ends_of, payload_of
from foreword.encoding import storable
from foreword.errors import BadPayload, BadRequest
from foreword.models import BASE32, TOOL_BEGIN, Event, Project, Trigger, is_resent
from foreword.projects import resolve
from foreword.redact import PRIVATE, each_text, leaves_open, mark, redact, redact_all, shorten

if TYPE_CHECKING:
    from foreword.store import Store

# Signs that a payload holds a tool's call or a diff.
_CALLS = (b'"tool', b'"args"', b'"arguments"', b'"input"', b'"parameters"', b"+++ ")
TEXT_CAP = 65_536  # characters of a text, where the setting `event_text_kb` is not known
INJECTION_KEY = 0  # of the hash behind an injection's id: the worker and a hook of the same package must agree
UNREADABLE = "foreword_unreadable"  # the field that holds a payload which is no JSON object


class ParsedHook(NamedTuple):
    """What a hook call says, redacted; unknown agents and events are of kind "other"."""

    payload: Mapping[str, Any]
    input: HookInput
    kind: str
    project: Project | None  # None where the payload holds no usable folder


def project_at(folder: str) -> Project:
    """Return the project of a folder, with a key and a name that may be written down."""
    found = resolve(folder)
    key = redact(found.key)
    if key == found.key:
        return found
    import hashlib  # 10 ms that most hooks do without

    # Two folders must not become one project because redaction removed what tells them apart.

    mark = hashlib.blake2b(found.key.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return replace(found, key=f"{key}#{mark}", name=redact(found.name))


def parse_hook(
    hook_call: HookCall,
    *,
    find_project: Callable[[str], Project] = project_at,
    deny: Sequence[str] = (),
    hide: Callable[[str], str] | None = None,
    text_cap: int = TEXT_CAP,
) -> ParsedHook:
    """Parse and redact a hook call; doing so twice changes nothing, so the key of an event stays the same.

    What denied files hold goes first, then what *hide* knows of the environment, then what looks like a secret. Texts
    are cut to *text_cap* characters before that, so that redaction takes a bounded time for every payload.
    """
    try:
        raw = payload_of(hook_call)
    except BadPayload:
        text = _unreadable(hook_call, hide=hide or str)
        return ParsedHook(payload={UNREADABLE: text}, input=HookInput(), kind="other", project=None)
    cut = raw.pop(CUT, None) if hook_call.head >= 0 else None
    shown = raw
    if any(sign in hook_call.raw for sign in _CALLS):
        from foreword.redact.files import without_denied  # 0.1 ms that a prompt need not pay

        shown = without_denied(raw, more=deny)
    short = shorten(each_text(shown, hide) if hide else shown, max_chars=text_cap)
    payload: dict[str, Any] = shorten(redact_all(short), max_chars=text_cap)  # marks may be longer than secrets
    if cut is not None:
        tail = mark("path") if shown != raw else _tail(hook_call, (hide or str)(cut["tail"]))
        payload[CUT] = {"total": cut["total"], "tail": tail}
    try:
        adapter = find(hook_call.host)
    except BadPayload:
        return ParsedHook(payload=payload, input=HookInput(), kind="other", project=None)
    fields = adapter.parse(payload)
    # The folder as it is called, not as it is written down: a name that looks like a secret is a folder all the same.
    project = _project(adapter.parse(raw).cwd, known=hook_call.project, find_project=find_project)
    kind = adapter.events.get(hook_call.event, "other")
    return ParsedHook(payload=payload, input=fields, kind=kind, project=project)


def trigger_for(hook_call: HookCall, parsed: ParsedHook) -> Trigger | None:
    """Return the trigger of a hook call that may be answered with context; None where its agent takes none."""
    fields, project = parsed.input, parsed.project
    if fields.inner or project is None:  # as of an unknown agent
        return None
    adapter = find(hook_call.host)
    name = adapter.triggers.get(hook_call.event)
    if name is None:
        return None
    form = "plain" if name == "compaction" else adapter.form
    return Trigger(
        name=name,
        project=project,
        session=fields.session,
        prompt=fields.prompt,
        host=hook_call.host,
        source=fields.source
        or ("startup" if name == "session_start" else ""),  # an agent that sends none starts a new window
        model=fields.model,
        form=form,
        stable=is_resent(name, form) and fields.session != "",
    )


def injection_id(hook_call: HookCall) -> str:
    """Return an id that is the same for a hook call, whether the worker answers it or the hook itself."""
    called = f"{hook_call.host} {hook_call.event} {hook_call.at:.6f} ".encode() + hook_call.raw[:4096]
    number = int.from_bytes(source_hash(INJECTION_KEY, called), "big")  # hashlib would take 2 ms to load
    return "inj-" + "".join(BASE32[number >> 5 * place & 31] for place in range(10))


def _project(folder: str, *, known: str, find_project: Callable[[str], Project]) -> Project | None:
    if known:
        return Project(key=known, name="", root=folder)
    try:
        return find_project(folder)
    except BadRequest:
        return None


def _unreadable(hook_call: HookCall, *, hide: Callable[[str], str]) -> str:
    head, tail = map(hide, ends_of(hook_call))
    if hook_call.head < 0:
        return redact(head)
    return redact(head, cut="head") + _tail(hook_call, tail)


def _tail(hook_call: HookCall, tail: str) -> str:
    """Return the end of a payload that was cut; none of it where something private was open before the cut."""
    head, _ = ends_of(hook_call)
    if leaves_open(head):
        return PRIVATE
    return redact(tail, cut="tail")


class CapturedEvent(NamedTuple):
    """The event of a hook call, and whether it is to be kept."""

    event: Event
    parsed: ParsedHook
    wanted: bool


def store_events(store: Store, captured: Sequence[CapturedEvent]) -> tuple[bool, ...]:
    """Store what is wanted, and return of each whether it was new; when this returns, it is on the disk."""
    wanted = [each.event for each in captured if each.wanted]
    fresh = iter(store.events.append(wanted) if wanted else ())
    return tuple(each.wanted and next(fresh) for each in captured)


def capture_event(
    hook_call: HookCall,
    *,
    text_cap: int,
    keep: Callable[[Project | None], bool] = lambda _project: True,
    deny: tuple[str, ...] = (),
    hide: Callable[[str], str] | None = None,
    find_project: Callable[[str], Project] = project_at,
) -> CapturedEvent:
    """Return the event of a hook call, redacted and capped; unknown ones are kept, those of sub-agents are not."""
    parsed = parse_hook(hook_call, find_project=find_project, deny=deny, hide=hide, text_cap=text_cap)
    fields, project = parsed.input, parsed.project
    known = parsed.kind != "other"  # then agent and event need no redaction
    payload = parsed.payload
    if known:
        from foreword.extract.actions import without_our_words  # only the worker reads events

        payload = without_our_words(payload, host=hook_call.host, kind=parsed.kind)
    event = Event(
        key=_key(hook_call, parsed.payload),
        host=hook_call.host if known else redact(storable(hook_call.host)),
        name=hook_call.event if known else redact(storable(hook_call.event)),
        kind=parsed.kind,
        session=fields.session,
        project=project.key if project else "",
        cwd=fields.cwd,
        at=hook_call.at,
        payload=payload,
        lasting=bool(fields.id),
    )
    passing = fields.inner or parsed.kind == TOOL_BEGIN
    return CapturedEvent(event=event, parsed=parsed, wanted=not passing and keep(project))


def _key(hook_call: HookCall, payload: Mapping[str, Any]) -> str:
    """Return a hash of the redacted payload: the same for an event that arrives twice, whichever way."""
    canonical = json.dumps([hook_call.host, hook_call.event, payload], sort_keys=True, separators=(",", ":"))
    import hashlib

    return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()
