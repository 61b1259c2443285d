"""Delivery -> payload -> redact -> event -> store: what a host told us, kept before its hook returns."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from foreword.capture import UNREADABLE, redacted
from foreword.errors import BadPayload, BadRequest
from foreword.hosts import Told, find
from foreword.jsontext import storable
from foreword.payloads import Delivery
from foreword.projects import is_off, resolve
from foreword.store import Store
from foreword.types import Event
from foreword.values import value


@value
class Remembered:
    """What became of a delivery: its event, and whether it was new."""

    event: Event
    told: Told
    new: bool


def remember(
    store: Store,
    deliveries: list[Delivery],
    *,
    text_cap: int,
    capture: bool = True,
    off_projects: tuple[str, ...] = (),
) -> list[Remembered]:
    """Keep what hosts told us, redacted; when this returns, it is on the disk. Sub-agents are passed over."""
    read = [_event(delivery, text_cap=text_cap, off_projects=off_projects) for delivery in deliveries]
    wanted = [event for event, told, off in read if capture and not told.inner and not off]
    fresh = dict(zip((event.key for event in wanted), store.append(wanted), strict=True)) if wanted else {}
    return [Remembered(event=event, told=told, new=fresh.get(event.key, False)) for event, told, _ in read]


def _event(delivery: Delivery, *, text_cap: int, off_projects: tuple[str, ...]) -> tuple[Event, Told, bool]:
    """The event a delivery tells, redacted and capped, and whether its project is off; an unknown one is kept too."""
    payload = redacted(delivery)
    try:
        host = find(delivery.host)
        told, kind = host.read(payload), host.events.get(delivery.event, "other")
    except BadPayload:
        told, kind = Told(), "other"
    if UNREADABLE in payload:
        kind = "other"
    try:
        project = resolve(told.cwd)
        key, off = project.key, is_off(project, off_projects)
    except BadRequest:
        key, off = "", False  # no usable folder: kept, and shown to no project
    event = Event(
        key=_key(delivery, payload),
        host=storable(delivery.host),
        name=storable(delivery.event),
        kind=kind,
        session=told.session,
        project=key,
        cwd=told.cwd,
        at=delivery.at,
        payload=_capped(payload, text_cap),
        lasting=bool(told.id),
    )
    return event, told, off


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
