"""Parse a hook call into a redacted event; everything passes here before it is written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from foreword.agents import HookInput, find
from foreword.capture.payload import CUT, HookCall, ends_of, payload_of
from foreword.encoding import storable
from foreword.errors import BadPayload, BadRequest
from foreword.models import BASE32, TOOL_BEGIN, Event, Project, Trigger, is_resent
from foreword.projects import resolve
from foreword.redact import PRIVATE, leaves_open, mark, redact, redact_all, shorten
from foreword.redact.files import without_denied

if TYPE_CHECKING:
    from foreword.store import Store

TEXT_CAP = 65_536  # characters of a text of an event: a longer one keeps its head and its tail
IDENTIFYING = 4096  # bytes of a payload that the id of its injection is made of
UNREADABLE = "foreword_unreadable"  # the field that holds a payload which is no JSON object


class ParsedHook(NamedTuple):
    """The redacted content of a hook call; unknown agents and events are of kind "other"."""

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
    # Two folders must not become one project because redaction removed what tells them apart.
    digest = hashlib.blake2b(found.key.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return replace(found, key=f"{key}#{digest}", name=redact(found.name))


def parse_hook(
    hook_call: HookCall,
    *,
    find_project: Callable[[str], Project] = project_at,
    deny: Sequence[str] = (),
    text_cap: int = TEXT_CAP,
) -> ParsedHook:
    """Parse and redact a hook call; what a hook redacted before it spooled the call is not redacted again.

    The payload is shortened first, so that redaction takes a bounded time whatever it holds; then goes what denied
    files hold, then what looks like a secret.
    """
    try:
        raw = payload_of(hook_call)
    except BadPayload:
        payload = {UNREADABLE: _unreadable(hook_call, text_cap=text_cap)}
        return ParsedHook(payload=payload, input=HookInput(), kind="other", project=None)
    payload = raw if hook_call.redacted else _redacted(hook_call, raw, deny=deny, text_cap=text_cap)
    try:
        adapter = find(hook_call.host)
    except BadPayload:
        return ParsedHook(payload=payload, input=HookInput(), kind="other", project=None)
    # The folder as it is called, not as it is written down: a name that looks like a secret is a folder all the same.
    folder, project = adapter.parse(raw).cwd, None
    with suppress(BadRequest):
        project = Project(hook_call.project, name="", root=folder) if hook_call.project else find_project(folder)
    kind = adapter.events.get(hook_call.event, "other")
    return ParsedHook(payload=payload, input=adapter.parse(payload), kind=kind, project=project)


def _redacted(hook_call: HookCall, raw: dict[str, Any], *, deny: Sequence[str], text_cap: int) -> dict[str, Any]:
    short = shorten(raw, max_chars=text_cap)
    shown = without_denied(short, deny=deny)
    if CUT in raw and hook_call.head >= 0:
        # What was private or denied before the cut may go on behind it.
        tail = PRIVATE if leaves_open(ends_of(hook_call)[0]) else mark("path") if shown != short else short[CUT]["tail"]
        shown = {**shown, CUT: {"total": hook_call.total, "tail": tail}}
    redacted: dict[str, Any] = redact_all(shown)
    return redacted


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
        # An agent that sends none starts a new window.
        source=fields.source or ("startup" if name == "session_start" else ""),
        model=fields.model,
        form=form,
        stable=is_resent(name, form) and fields.session != "",
    )


def injection_id(hook_call: HookCall) -> str:
    """Return an id that is the same for a hook call, whether the worker answers it or the hook itself."""
    called = f"{hook_call.host} {hook_call.event} {hook_call.at:.6f} ".encode() + hook_call.raw[:IDENTIFYING]
    number = int.from_bytes(hashlib.blake2b(called, digest_size=8).digest(), "big")
    return "inj-" + "".join(BASE32[number >> 5 * place & 31] for place in range(10))


def _unreadable(hook_call: HookCall, *, text_cap: int) -> str:
    """Return what is kept of bytes that are no JSON object."""
    head, tail = ends_of(hook_call)
    if hook_call.head < 0:
        return redact(str(shorten(head, max_chars=text_cap)))
    first = redact(str(shorten(head, max_chars=text_cap)), cut="head")
    return first + (PRIVATE if leaves_open(head) else redact(str(shorten(tail, max_chars=text_cap)), cut="tail"))


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
    text_cap: int = TEXT_CAP,
    keep: Callable[[Project | None], bool] = lambda _project: True,
    deny: tuple[str, ...] = (),
    find_project: Callable[[str], Project] = project_at,
) -> CapturedEvent:
    """Return the event of a hook call, redacted and capped; unknown ones are kept, those of sub-agents are not."""
    parsed = parse_hook(hook_call, find_project=find_project, deny=deny, text_cap=text_cap)
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
    return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()
