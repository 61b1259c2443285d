"""Read a hook's payload from its bytes; of one that was too long, recover its ids, its beginning and its end."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from foreword.encoding import decoded, dumps, loads
from foreword.errors import BadPayload

# Fields that stand behind the long ones and name the event.
_AT_THE_END = ("tool_use_id", "hook_event_name", "session_id", "sessionId", "cwd", "prompt_id", "turn_id")
CUT = "foreword_cut"  # the field that holds the end of a payload whose middle was left out
_LONGEST_WORD = 4096  # a secret in one piece is shorter; a longer run of characters is data
_DEEPEST = 40  # levels of an unfinished value that are followed; real payloads have four
_MAX_TOKENS = 100_000  # texts, brackets and commas of one that are read: 0.1 s


class HookCall(NamedTuple):
    """One call of a hook: who called, when, and what was on stdin (*head* bytes of its beginning, then its end)."""

    host: str  # the agent
    event: str
    at: float
    raw: bytes
    head: int = -1  # -1: nothing was left out
    total: int = -1
    project: str = ""  # the project's key, where it was found already
    redacted: bool = False  # by the hook, which had no worker: it came through the spool
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
        raise BadPayload("the payload is not a JSON object", hint="an agent sends one JSON object on stdin")
    return found


def ends_of(hook_call: HookCall) -> tuple[str, str]:
    """Return the text before the cut and the text behind it; without a cut, all and nothing."""
    at = len(hook_call.raw) if hook_call.head < 0 else hook_call.head
    return decoded(hook_call.raw[:at]), decoded(hook_call.raw[at:])


def recovered(head: str, tail: str, total: int) -> dict[str, Any]:
    """Return what can be read from the two ends of a payload that was cut in the middle."""
    start = head.find("{")
    if start < 0:
        raise BadPayload("the payload is not a JSON object", hint="an agent sends one JSON object on stdin")
    found = _fields(head[start:])
    for name in _AT_THE_END:
        at = tail.rfind(f'"{name}"')
        if name not in found and at >= 0 and (value := re.compile(rf'"{name}"\s*:\s*({_STRING}")').match(tail, at)):
            with suppress(BadPayload):
                found[name] = loads(value[1])
    # A backslash in front may be the second half of a pair; what it is before is the first word and goes anyway.
    found[CUT] = {"total": total, "tail": _without_first_word(_unescaped(tail.lstrip("\\")))}
    return found


_STRING = r'"(?>(?:[^"\\]++|\\.)*)'
_TOKEN = re.compile(rf'{_STRING}(?P<end>"?)|[\[\]{{}},]', re.DOTALL)
_LAST_NAME = re.compile(r'"(\w+)"\s*:\s*\Z')


def _fields(text: str) -> dict[str, Any]:
    """Return the fields of an object that breaks off; of its last text, the last word goes, and half a number too."""
    closing: list[str] = []  # what closes the objects and lists that are open, the outermost last
    ends: list[tuple[int, str]] = []  # where the object may end, and what closes it there
    unfinished = ""
    for token in islice(_TOKEN.finditer(text), _MAX_TOKENS):
        if token[0][0] == '"':
            if not token["end"]:
                named = _LAST_NAME.search(text, max(0, token.start() - 200), token.start())
                if not (named and named[1] in _AT_THE_END):  # half an id is another id; its whole may be in the tail
                    piece = _without_last_word(_unescaped(text[token.start() + 1 :]))
                    unfinished = text[: token.start()] + dumps(piece) + "".join(closing)
                break
            ends[1:] = [(token.end(), "".join(closing))]  # unless it is the name of a field
            continue
        if token[0] in "[{":
            closing.insert(0, "]" if token[0] == "[" else "}")
        elif token[0] in "]}" and closing:
            del closing[0]
        ends = [(token.start() if token[0] == "," else token.end(), "".join(closing))]
        if not closing or len(closing) > _DEEPEST:
            break
    for whole in (unfinished, *(text[:end] + closed for end, closed in reversed(ends))):
        with suppress(BadPayload):
            found = loads(whole)
            return found if isinstance(found, dict) else {}
    return {}


def _unescaped(piece: str) -> str:
    """Return a piece of a JSON string without its escapes; an escape that was cut is dropped."""
    # A quote alone is the text's own; one behind a pair of backslashes is alone.
    quoted = "\\\\".join(part.replace('\\"', '"').replace('"', '\\"') for part in piece.split("\\\\"))
    for cut in range(12):  # a cut surrogate pair is eleven characters long
        with suppress(BadPayload):
            return str(loads(f'"{quoted[: len(quoted) - cut]}"'))
    return piece


def _without_last_word(piece: str) -> str:
    """Drop the last word of a text that was cut: half a secret would no longer look like one."""
    words = piece[-_LONGEST_WORD:].split()
    lost = len(words[-1]) if words and not piece[-1].isspace() else 0
    return f"{piece[: len(piece) - lost]}[cut]"


def _without_first_word(piece: str) -> str:
    words = piece[:_LONGEST_WORD].split(None, 1)
    return f"[cut]{piece[len(words[0]) if words and not piece[0].isspace() else 0 :]}"
