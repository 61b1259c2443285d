"""Delivery -> what it tells, without secrets: what everything passes before it is written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from foreword.agents import HookInput, find
from foreword.capture.payload import CUT, HookCall, ends_of, payload_of
from foreword.encoding import storable
from foreword.errors import BadPayload, BadRequest
from foreword.models import BASE32, TOOL_BEGIN, Event, Project, Trigger, stands
from foreword.projects import resolve
from foreword.redact import PRIVATE, each_text, leaves_open, mark, redact, redact_all

if TYPE_CHECKING:
    from foreword.store import Store

# Where a payload tells of a tool's call, or holds a diff.
_CALLS = (b'"tool', b'"args"', b'"arguments"', b'"input"', b'"parameters"', b"+++ ")
UNREADABLE = "foreword_unreadable"  # the field that holds a payload which is no JSON object


@dataclass(frozen=True)
class ParsedHook:
    """What a delivery tells, redacted; hosts and events that we do not know are of kind "other"."""

    payload: Mapping[str, Any]
    told: HookInput
    kind: str
    project: Project | None  # None where the payload told no usable folder


def project_at(folder: str) -> Project:
    """The project of a folder, with a key and a name that may be written down."""
    found = resolve(folder)
    key = redact(found.key)
    if key == found.key:
        return found
    import hashlib  # 10 ms, and seldom: two folders must not become one project by losing what tells them apart

    mark = hashlib.blake2b(found.key.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return replace(found, key=f"{key}#{mark}", name=redact(found.name))


def capture(
    hook_call: HookCall,
    *,
    find_project: Callable[[str], Project] = project_at,
    deny: Sequence[str] = (),
    hide: Callable[[str], str] | None = None,
) -> ParsedHook:
    """Read a delivery; capturing what was captured already changes nothing, so the key of an event stays the same.

    What denied files hold goes first, then what *hide* knows of the environment, then what looks like a secret.
    """
    try:
        raw = payload_of(hook_call)
    except BadPayload:
        text = _unreadable(hook_call, hide=hide or str)
        return ParsedHook(payload={UNREADABLE: text}, told=HookInput(), kind="other", project=None)
    cut = raw.pop(CUT, None) if hook_call.head >= 0 else None
    shown = raw
    if any(sign in hook_call.raw for sign in _CALLS):
        from foreword.redact.files import without_denied  # 0.1 ms that a prompt need not pay

        shown = without_denied(raw, more=deny)
    payload: dict[str, Any] = redact_all(each_text(shown, hide) if hide else shown)
    if cut is not None:
        tail = mark("path") if shown != raw else _tail(hook_call, (hide or str)(cut["tail"]))
        payload[CUT] = {"total": cut["total"], "tail": tail}
    try:
        host = find(hook_call.host)
    except BadPayload:
        return ParsedHook(payload=payload, told=HookInput(), kind="other", project=None)
    told = host.read(payload)
    # The folder as it is called, not as it is written down: a name that looks like a secret is a folder all the same.
    project = _project(host.read(raw).cwd, known=hook_call.project, find_project=find_project)
    return ParsedHook(payload=payload, told=told, kind=host.events.get(hook_call.event, "other"), project=project)


def trigger_for(hook_call: HookCall, parsed: ParsedHook) -> Trigger | None:
    """The moment at which a delivery may be answered with context; None where its host takes none."""
    told, project = parsed.told, parsed.project
    if told.inner or project is None:  # as of a host that nobody knows
        return None
    host = find(hook_call.host)
    name = host.triggers.get(hook_call.event)
    if name is None:
        return None
    form = "plain" if name == "compaction" else host.form
    return Trigger(
        name=name,
        project=project,
        session=told.session,
        prompt=told.prompt,
        host=hook_call.host,
        source=told.source or ("startup" if name == "session_start" else ""),  # a host that tells none starts anew
        model=told.model,
        form=form,
        stable=stands(name, form) and told.session != "",
    )


def injection_id(hook_call: HookCall) -> str:
    """The same for the same call of a hook, whether the worker answers it or the hook itself."""
    import hashlib  # 3 ms, and only where there is something to give

    called = f"{hook_call.host} {hook_call.event} {hook_call.at:.6f} ".encode() + hook_call.raw[:4096]
    number = int.from_bytes(hashlib.blake2b(called, digest_size=8).digest(), "big")
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
    """The end of a payload that was cut; none of it where something private was still open before the cut."""
    head, _ = ends_of(hook_call)
    if leaves_open(head):
        return PRIVATE
    return redact(tail, cut="tail")


@dataclass(frozen=True)
class CapturedEvent:
    """What a delivery says: its event, and whether that is to be kept."""

    event: Event
    parsed: ParsedHook
    wanted: bool


def remember(store: Store, told: Sequence[CapturedEvent]) -> tuple[bool, ...]:
    """Keep what is wanted, and say of each whether it was new; when this returns, it is on the disk."""
    wanted = [each.event for each in told if each.wanted]
    fresh = iter(store.events.append(wanted) if wanted else ())
    return tuple(each.wanted and next(fresh) for each in told)


def read(
    hook_call: HookCall,
    *,
    text_cap: int,
    keep: Callable[[Project | None], bool] = lambda _project: True,
    deny: tuple[str, ...] = (),
    hide: Callable[[str], str] | None = None,
    find_project: Callable[[str], Project] = project_at,
) -> CapturedEvent:
    """The event a delivery tells, redacted and capped; hosts and events we do not know are kept, sub-agents are not."""
    parsed = capture(hook_call, find_project=find_project, deny=deny, hide=hide)
    told, project = parsed.told, parsed.project
    known = parsed.kind != "other"  # then host and event are words of ours
    payload = parsed.payload
    if known:
        from foreword.extract.actions import without_our_words  # only the worker reads events

        payload = without_our_words(payload, host=hook_call.host, kind=parsed.kind)
    event = Event(
        key=_key(hook_call, parsed.payload),
        host=hook_call.host if known else redact(storable(hook_call.host)),
        name=hook_call.event if known else redact(storable(hook_call.event)),
        kind=parsed.kind,
        session=told.session,
        project=project.key if project else "",
        cwd=told.cwd,
        at=hook_call.at,
        payload=_capped(payload, text_cap),
        lasting=bool(told.id),
    )
    passing = told.inner or parsed.kind == TOOL_BEGIN
    return CapturedEvent(event=event, parsed=parsed, wanted=not passing and keep(project))


def _key(hook_call: HookCall, payload: Mapping[str, Any]) -> str:
    """The same for the same event told twice, whichever way it came: of the redacted payload, in one order."""
    canonical = json.dumps([hook_call.host, hook_call.event, payload], sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()


def _capped(item: Any, most: int) -> Any:
    """Texts longer than *most* characters keep their head and their tail."""
    if isinstance(item, str) and len(item) > most:
        half = most // 2
        return f"{item[:half]}\n[{len(item) - 2 * half} characters left out]\n{item[-half:]}"
    if isinstance(item, dict):
        return {name: _capped(each, most) for name, each in item.items()}
    if isinstance(item, list):
        return [_capped(each, most) for each in item]
    return item
