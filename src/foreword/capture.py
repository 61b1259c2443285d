"""Delivery -> what it tells, without secrets: what everything passes before it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foreword.errors import BadPayload, BadRequest
from foreword.hosts import Told, find
from foreword.payloads import CUT, Delivery, ends_of, payload_of
from foreword.projects import resolve
from foreword.redact import PRIVATE, each_text, leaves_open, mark, redact, redact_all
from foreword.types import BASE32, Moment, Project, stands

# Where a payload tells of a tool's call, or holds a diff.
_CALLS = (b'"tool', b'"args"', b'"arguments"', b'"input"', b'"parameters"', b"+++ ")
UNREADABLE = "foreword_unreadable"  # the field that holds a payload which is no JSON object


@dataclass(frozen=True)
class Captured:
    """What a delivery tells, redacted; hosts and events that we do not know are of kind "other"."""

    payload: Mapping[str, Any]
    told: Told
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
    delivery: Delivery,
    *,
    find_project: Callable[[str], Project] = project_at,
    deny: Sequence[str] = (),
    hide: Callable[[str], str] | None = None,
) -> Captured:
    """Read a delivery; capturing what was captured already changes nothing, so the key of an event stays the same.

    What denied files hold goes first, then what *hide* knows of the environment, then what looks like a secret.
    """
    try:
        raw = payload_of(delivery)
    except BadPayload:
        text = _unreadable(delivery, hide=hide or str)
        return Captured(payload={UNREADABLE: text}, told=Told(), kind="other", project=None)
    cut = raw.pop(CUT, None) if delivery.head >= 0 else None
    shown = raw
    if any(sign in delivery.raw for sign in _CALLS):
        from foreword.redact.files import without_denied  # 0.1 ms that a prompt need not pay

        shown = without_denied(raw, more=deny)
    payload: dict[str, Any] = redact_all(each_text(shown, hide) if hide else shown)
    if cut is not None:
        tail = mark("path") if shown != raw else _tail(delivery, (hide or str)(cut["tail"]))
        payload[CUT] = {"total": cut["total"], "tail": tail}
    try:
        host = find(delivery.host)
    except BadPayload:
        return Captured(payload=payload, told=Told(), kind="other", project=None)
    told = host.read(payload)
    # The folder as it is called, not as it is written down: a name that looks like a secret is a folder all the same.
    project = _project(host.read(raw).cwd, known=delivery.project, find_project=find_project)
    return Captured(payload=payload, told=told, kind=host.events.get(delivery.event, "other"), project=project)


def moment_of(delivery: Delivery, captured: Captured) -> Moment | None:
    """The moment at which a delivery may be answered with context; None where its host takes none."""
    told, project = captured.told, captured.project
    if told.inner or project is None:  # as of a host that nobody knows
        return None
    host = find(delivery.host)
    name = host.moments.get(delivery.event)
    if name is None:
        return None
    form = "plain" if name == "compaction" else host.form
    return Moment(
        name=name,
        project=project,
        session=told.session,
        prompt=told.prompt,
        host=delivery.host,
        source=told.source or ("startup" if name == "session_start" else ""),  # a host that tells none starts anew
        model=told.model,
        form=form,
        stable=stands(name, form) and told.session != "",
    )


def injection_id(delivery: Delivery) -> str:
    """The same for the same call of a hook, whether the worker answers it or the hook itself."""
    import hashlib  # 3 ms, and only where there is something to give

    called = f"{delivery.host} {delivery.event} {delivery.at:.6f} ".encode() + delivery.raw[:4096]
    number = int.from_bytes(hashlib.blake2b(called, digest_size=8).digest(), "big")
    return "inj-" + "".join(BASE32[number >> 5 * place & 31] for place in range(10))


def _project(folder: str, *, known: str, find_project: Callable[[str], Project]) -> Project | None:
    if known:
        return Project(key=known, name="", root=folder)
    try:
        return find_project(folder)
    except BadRequest:
        return None


def _unreadable(delivery: Delivery, *, hide: Callable[[str], str]) -> str:
    head, tail = map(hide, ends_of(delivery))
    if delivery.head < 0:
        return redact(head)
    return redact(head, cut="head") + _tail(delivery, tail)


def _tail(delivery: Delivery, tail: str) -> str:
    """The end of a payload that was cut; none of it where something private was still open before the cut."""
    head, _ = ends_of(delivery)
    if leaves_open(head):
        return PRIVATE
    return redact(tail, cut="tail")
