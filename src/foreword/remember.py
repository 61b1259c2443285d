"""Delivery -> payload -> redact -> event -> store: what a host told us, kept before its hook returns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foreword.capture import Captured, capture, project_at
from foreword.encoding import storable
from foreword.extract.actions import without_our_words
from foreword.payloads import Delivery
from foreword.redact import redact
from foreword.store.sqlite import Store
from foreword.types import TOOL_BEGIN, Event, Project


@dataclass(frozen=True)
class Read:
    """What a delivery says: its event, and whether that is to be kept."""

    event: Event
    captured: Captured
    wanted: bool


def remember(store: Store, told: Sequence[Read]) -> tuple[bool, ...]:
    """Keep what is wanted, and say of each whether it was new; when this returns, it is on the disk."""
    wanted = [each.event for each in told if each.wanted]
    fresh = iter(store.append(wanted) if wanted else ())
    return tuple(each.wanted and next(fresh) for each in told)


def read(
    delivery: Delivery,
    *,
    text_cap: int,
    keep: Callable[[Project | None], bool] = lambda _project: True,
    deny: tuple[str, ...] = (),
    hide: Callable[[str], str] | None = None,
    find_project: Callable[[str], Project] = project_at,
) -> Read:
    """The event a delivery tells, redacted and capped; hosts and events we do not know are kept, sub-agents are not."""
    captured = capture(delivery, find_project=find_project, deny=deny, hide=hide)
    told, project = captured.told, captured.project
    known = captured.kind != "other"  # then host and event are words of ours
    payload = captured.payload
    if known:
        payload = without_our_words(payload, host=delivery.host, kind=captured.kind)
    event = Event(
        key=_key(delivery, captured.payload),
        host=delivery.host if known else redact(storable(delivery.host)),
        name=delivery.event if known else redact(storable(delivery.event)),
        kind=captured.kind,
        session=told.session,
        project=project.key if project else "",
        cwd=told.cwd,
        at=delivery.at,
        payload=_capped(payload, text_cap),
        lasting=bool(told.id),
    )
    passing = told.inner or captured.kind == TOOL_BEGIN
    return Read(event=event, captured=captured, wanted=not passing and keep(project))


def _key(delivery: Delivery, payload: Mapping[str, Any]) -> str:
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
