"""Delivery -> payload -> redact -> event -> store: what a host told us, kept before its hook returns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
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
class Remembered:
    """What became of a delivery: its event, and whether it was new."""

    event: Event
    told: Told
    project: Project | None  # None where the payload told no usable folder, or one that is switched off
    new: bool


def remember(
    store: Store,
    deliveries: list[Delivery],
    *,
    text_cap: int,
    capture: bool = True,
    off_projects: tuple[str, ...] = (),
    resolve: Callable[[str], Project] = resolve,
) -> list[Remembered]:
    """Keep what hosts told us, redacted; when this returns, it is on the disk. Sub-agents are passed over."""
    read = [_event(delivery, text_cap=text_cap, off_projects=off_projects, resolve=resolve) for delivery in deliveries]
    wanted = [event for event, told, _, off in read if capture and not told.inner and not off]
    fresh = dict(zip((event.key for event in wanted), store.append(wanted), strict=True)) if wanted else {}
    return [
        Remembered(event=event, told=told, project=None if off else project, new=fresh.get(event.key, False))
        for event, told, project, off in read
    ]


def _event(
    delivery: Delivery, *, text_cap: int, off_projects: tuple[str, ...], resolve: Callable[[str], Project]
) -> tuple[Event, Told, Project | None, bool]:
    """The event a delivery tells, redacted and capped, its project, and whether that is off; unknown ones are kept."""
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
    return event, told, project, project is not None and is_off(project, off_projects)


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
