"""Delivery -> its payload without secrets: what every path passes before anything is written. Light but for `re`."""

from __future__ import annotations

from foreword.errors import BadPayload
from foreword.jsontext import decoded
from foreword.payloads import CUT, payload_of
from foreword.redact import redact, redact_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from foreword.payloads import Delivery

UNREADABLE = "foreword_unreadable"  # the field that holds a payload which is no JSON object


def redacted(delivery: Delivery) -> dict[str, Any]:
    """The payload without secrets; redacting it again changes nothing, so the key of an event stays the same."""
    try:
        payload = payload_of(delivery)
    except BadPayload:
        return {UNREADABLE: redact(decoded(delivery.raw), cut="head" if delivery.head >= 0 else "")}
    cut = payload.pop(CUT, None) if delivery.head >= 0 else None
    clean: dict[str, Any] = redact_all(payload)
    if cut is not None:
        clean[CUT] = {"total": cut["total"], "tail": redact(cut["tail"], cut="tail")}
    return clean
