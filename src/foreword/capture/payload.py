"""Read a hook's payload from its bytes; of one that was too long, recover its ids, its beginning and its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from foreword.encoding import decoded, loads
from foreword.errors import BadPayload

# Fields that stand behind the long ones and name the event.
_AT_THE_END = ("tool_use_id", "hook_event_name", "session_id", "sessionId", "cwd", "prompt_id", "turn_id")
CUT = "foreword_cut"  # the field that holds the end of a payload whose middle was left out
_LONGEST_WORD = 4096  # a secret in one piece is shorter; a longer run of characters is data
_DEEPEST = 40  # levels of an unfinished value that are followed; real payloads have four


@dataclass(frozen=True)
class HookCall:
    """One call of a hook: who called, when, and what was on stdin (*head* bytes of its beginning, then its end)."""

    host: str  # the agent
    event: str
    at: float
    raw: bytes
    head: int = -1  # -1: nothing was left out
    total: int = -1
    project: str = ""  # the project's key, where it was found already
    hidden: str = ""  # of the hook's secret variables: lengths and keyed digests, never the values
    injection: bool = False  # no event, but the record of a context that the hook built without a worker


def payload_of(hook_call: HookCall) -> dict[str, Any]:
    """Return the payload; bytes that are no JSON object raise BadPayload."""
    head, tail = ends_of(hook_call)
    try:
        found = loads(head)
    except BadPayload:
        if hook_call.head < 0:
            raise
        return recovered(head, tail, hook_call.total)
    if not isinstance(found, dict):
        raise BadPayload("the payload is no JSON object", hint="an agent sends one JSON object on stdin")
    return found


def ends_of(hook_call: HookCall) -> tuple[str, str]:
    """Return the text before the cut and the text behind it; without a cut, all and nothing."""
    at = len(hook_call.raw) if hook_call.head < 0 else hook_call.head
    return decoded(hook_call.raw[:at]), decoded(hook_call.raw[at:])


def recovered(head: str, tail: str, total: int) -> dict[str, Any]:
    """Return what can be read from the two ends of a payload that was cut in the middle."""
    start = head.find("{")
    if start < 0:
        raise BadPayload("the payload is no JSON object", hint="an agent sends one JSON object on stdin")
    found = _fields(head, start + 1, 0)[0]
    for name in _AT_THE_END:
        at = tail.rfind(f'"{name}"')
        if name not in found and at >= 0:
            value, _, whole = _value(tail, _skip(tail, _skip(tail, at + len(name) + 2) + 1), 0)
            if whole and isinstance(value, str):
                found[name] = value
    # A backslash in front may be the second half of a pair; what it stands before is the first word and goes anyway.
    found[CUT] = {"total": total, "tail": _without_first_word(_unescaped(tail.lstrip("\\")))}
    return found


def _fields(text: str, at: int, depth: int) -> tuple[dict[str, Any], int, bool]:
    """Return the fields of an object from *at* on, where it ended, and whether it was whole."""
    found: dict[str, Any] = {}
    while True:
        at = _skip(text, at)
        if text[at : at + 1] == "}":
            return found, at + 1, True
        if text[at : at + 1] == ",":
            at += 1
            continue
        name, at, whole = _value(text, at, depth)
        if not whole or not isinstance(name, str):
            return found, at, False
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            return found, at, False
        found[name], at, whole = _value(text, _skip(text, at + 1), depth)
        if not whole:
            # Half an id is another id; its whole may stand in the tail.
            if found[name] is None or name in _AT_THE_END:
                del found[name]
            return found, at, False


def _value(text: str, at: int, depth: int) -> tuple[Any, int, bool]:
    first = text[at : at + 1]
    if first == '"':
        end = _closing_quote(text, at + 1)
        if end < len(text):
            return _unescaped(text[at + 1 : end]), end + 1, True
        return _without_last_word(_unescaped(text[at + 1 :])), end, False
    if first == "{" and depth < _DEEPEST:
        return _fields(text, at + 1, depth + 1)
    if first == "[" and depth < _DEEPEST:
        return _items(text, at + 1, depth + 1)
    end = at
    while end < len(text) and text[end] not in ",}] \t\r\n":
        end += 1
    if end == len(text):
        return None, end, False  # 12 may be the beginning of 123
    try:
        return loads(text[at:end]), end, True
    except BadPayload:
        return None, end, False


def _items(text: str, at: int, depth: int) -> tuple[list[Any], int, bool]:
    found: list[Any] = []
    while True:
        at = _skip(text, at)
        if text[at : at + 1] == "]":
            return found, at + 1, True
        if text[at : at + 1] == ",":
            at += 1
            continue
        item, at, whole = _value(text, at, depth)
        if whole or item is not None:
            found.append(item)
        if not whole:
            return found, at, False


def _closing_quote(text: str, at: int) -> int:
    """Return where the string ends: its quote, or the end of the text."""
    while True:
        quote = text.find('"', at)
        if quote < 0:
            return len(text)
        backslashes = 0
        while text[quote - 1 - backslashes] == "\\" and quote - 1 - backslashes >= at:
            backslashes += 1
        if backslashes % 2 == 0:
            return quote
        at = quote + 1


def _unescaped(piece: str) -> str:
    """Return a piece of a JSON string without its escapes; an escape that was cut is dropped."""
    # Between doubled backslashes, a quote alone is the text's own.
    parts = (["\\u0022".join(each.split('"')) for each in part.split('\\"')] for part in piece.split("\\\\"))
    quote = "\\\\".join('\\"'.join(part) for part in parts)
    for cut in range(12):  # a cut surrogate pair is eleven characters long
        try:
            found = loads(f'"{quote[: len(quote) - cut]}"')
        except BadPayload:
            continue
        return str(found)
    return piece


def _without_last_word(piece: str) -> str:
    """Drop the last word of a text that was cut: half a secret would no longer look like one."""
    end = len(piece)
    while end > max(0, len(piece) - _LONGEST_WORD) and not piece[end - 1].isspace():
        end -= 1
    return f"{piece[:end]}[cut]"


def _without_first_word(piece: str) -> str:
    start = 0
    while start < min(len(piece), _LONGEST_WORD) and not piece[start].isspace():
        start += 1
    return f"[cut]{piece[start:]}"


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
