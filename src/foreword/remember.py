"""Delivery -> payload -> redact -> event -> store: what a host told us, kept before its hook returns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from foreword.capture import UNREADABLE, redacted
from foreword.errors import BadPayload, BadRequest
from foreword.hosts import Told, find
from foreword.jsontext import storable
from foreword.payloads import Delivery
from foreword.projects import is_off, resolve
from foreword.store import Store
from foreword.types import Event, Project
from foreword.values import value


@value
class Captured:
    """What a delivery says: its event, redacted, and whether that is to be kept."""

    event: Event
    told: Told
    project: Project | None  # None where the payload told no usable folder, or one that is switched off
    wanted: bool


def remember(store: Store, captured: Sequence[Captured]) -> tuple[bool, ...]:
    """Keep what is wanted, and say of each whether it was new; when this returns, it is on the disk."""
    wanted = [each.event for each in captured if each.wanted]
    fresh = iter(store.append(wanted) if wanted else ())
    return tuple(each.wanted and next(fresh) for each in captured)


def read(
    delivery: Delivery,
    *,
    text_cap: int,
    capture: bool = True,
    off_projects: tuple[str, ...] = (),
    resolve: Callable[[str], Project] = resolve,
) -> Captured:
    """The event a delivery tells, redacted and capped; hosts and events we do not know are kept, sub-agents are not."""
    payload = redacted(delivery)
    try:
        host = find(delivery.host)
        told, kind = host.read(payload), host.events.get(delivery.event, "other")
    except BadPayload:
        told, kind = Told(), "other"
    if UNREADABLE in payload:
        kind = "other"
    project: Project | None = None
    with suppress(BadRequest):  # no usable folder: kept, and shown to no project
        project = resolve(told.cwd)
    event = Event(
        key=_key(delivery, payload),
        host=storable(delivery.host),
        name=storable(delivery.event),
        kind=kind,
        session=told.session,
        project=project.key if project else "",
        cwd=told.cwd,
        at=delivery.at,
        payload=_capped(payload, text_cap),
        lasting=bool(told.id),
    )
    off = project is not None and is_off(project, off_projects)
    wanted = capture and not told.inner and not off
    return Captured(event=event, told=told, project=None if off else project, wanted=wanted)


def _key(delivery: Delivery, payload: dict[str, Any]) -> str:
    """The same for the same event told twice, whichever way it came: of the redacted payload, in one order."""
    canonical = json.dumps([delivery.host, delivery.event, payload], sort_keys=True, separators=(",", ":"))
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
