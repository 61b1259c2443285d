"""Take secrets out of any text or JSON value; every path passes here before a byte is written.

The order: blocks (`private_tags.py`), the edges of a cut, tokens by their format (`patterns.py`), values by the names
beside them (`keywords.py`), passwords in URLs; and again, until nothing is found any more: hence twice is the same as
once. Every step is linear in its text. Before all of it come files that hold secrets (`files.py`) and the environment
(`env.py`), which only a payload has.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

from foreword.redact.keywords import find_secrets, is_secret, is_telling
from foreword.redact.patterns import find_tokens, mark, replace_spans
from foreword.redact.private_tags import PRIVATE, hide_blocks, leaves_open

__all__ = ["CUT", "DEEPEST", "EDGE", "PRIVATE", "each_text", "leaves_open", "mark", "redact", "redact_all", "shorten"]

Cut = Literal["", "head", "tail"]
CUT = "[cut]"
EDGE = 4096  # characters; longer than any token we know, and a longer run is data that must not be lost whole
DEEPEST = 100  # levels of a JSON value; no agent nests past 20, and json itself gives up near 1,000
_TOTAL_FACTOR = 4  # all texts of a value together may have 4 times as many characters as one
_SHORTEST_CAP = 256  # characters of a text
_MAX_ITEMS = 2_000  # of a list or an object
_ROUNDS = 8  # a mark may make a value of what stands beside it; two rounds are the most that was seen


def redact(text: str, *, cut: Cut = "") -> str:
    """Return *text* with a typed mark for each secret; *cut* tells that it is the head or the tail of a longer one."""
    text = hide_blocks(text)
    if cut:
        text = hide_blocks(_drop_edge(text, cut))  # the bound may have fallen on a tag: <private/[cut]
    for _ in range(_ROUNDS):
        before, text = text, _redact_once(text)
        if text == before:
            return before
    return text


def redact_all(item: Any) -> Any:
    """Return a JSON value with every string redacted, keys included, and without what lies below DEEPEST levels."""
    texts = _texts_in(item)
    if texts is not None and not _names_a_secret(item):
        together = "\n".join(texts)
        if hide_blocks(together) == together == _redact_once(together):
            return item  # one look at everything: a payload without any secret is the ordinary case
    return _redact_nested(item, room=DEEPEST)


def shorten(item: Any, *, max_chars: int) -> Any:
    """Return a JSON value whose texts have at most *max_chars* characters, and whose lists at most _MAX_ITEMS items.

    Longer ones keep their head and their tail, so that redaction reads a bounded part of any value. A secret that lies
    across the cut is redacted before, and a block that begins in what is left out hides what follows. Idempotent.
    """
    texts = _texts_in(item)
    cap = (
        min(max_chars, _level([len(text) for text in texts], _TOTAL_FACTOR * max_chars)) if texts is not None else 1024
    )
    return _shortened(item, cap=max(cap, _SHORTEST_CAP), depth=DEEPEST)


def _level(lengths: list[int], total: int) -> int:
    """Return the cap for each text with which all texts together have at most *total* characters."""
    lengths = sorted(lengths)
    for at, length in enumerate(lengths):
        share = total // (len(lengths) - at)
        if length > share:
            return share
        total -= length
    return lengths[-1] if lengths else 0


def _shortened(item: Any, *, cap: int, depth: int) -> Any:
    if isinstance(item, str):
        return _shortened_text(item, cap=cap) if len(item) > cap else item
    if not isinstance(item, dict | list | tuple) or not depth:
        return item
    if isinstance(item, dict):
        keys = list(item)
        left_out = frozenset(keys[_MAX_ITEMS // 2 : -_MAX_ITEMS // 2]) if len(keys) > _MAX_ITEMS else ()
        return {
            _shortened(name, cap=max(cap, 1024), depth=1): _shortened(item[name], cap=cap, depth=depth - 1)
            for name in keys
            if name not in left_out
        }
    if len(item) > _MAX_ITEMS:
        item = _head_and_tail(item)
    return [_shortened(inner, cap=cap, depth=depth - 1) for inner in item]


def _head_and_tail(items: list[Any] | tuple[Any, ...]) -> list[Any]:
    half = _MAX_ITEMS // 2 - 1
    head, tail = list(items[:half]), list(items[-half:])
    before = _texts_in(items[:-half])
    if before is None or leaves_open("\n".join(before)):
        tail = [PRIVATE]
    elif _is_flag(items[-half - 1]):
        tail[0] = mark("password")
    return [*head, f"[{len(items) - 2 * half} items left out]", *tail]


def _shortened_text(text: str, *, cap: int) -> str:
    text = hide_blocks(text)
    if len(text) <= cap:
        return text
    half = (cap - 64) // 2  # the note between them counts, too
    around = min(half, EDGE)  # a name and its value may lie on both sides of a cut: what is near it is redacted before
    head = text[: half - around] + redact(text[half - around : half + around], cut="head")[:around]
    tail = (
        redact(text[-half - around : -half + around or None], cut="tail")[-around:] + text[len(text) - half + around :]
    )
    left_out = len(text) - 2 * half
    return f"{_drop_edge(head, 'head')}\n[{left_out} characters left out]\n{_drop_edge(tail, 'tail')}"


def each_text(item: Any, change: Callable[[str], str], *, room: int = DEEPEST) -> Any:
    """Return a JSON value with every string changed, keys included; what lies below *room* levels is dropped."""
    if isinstance(item, str):
        return change(item)
    if not isinstance(item, dict | list | tuple):
        return item
    if not room:
        return mark("too-deep")
    if isinstance(item, dict):
        return {
            change(key) if isinstance(key, str) else key: each_text(inner, change, room=room - 1)
            for key, inner in item.items()
        }
    return [each_text(inner, change, room=room - 1) for inner in item]


def _redact_once(text: str) -> str:
    before = text
    for find in (find_tokens, find_secrets):
        if spans := find(text):
            text = replace_spans(text, spans)
    if text is not before:
        text = hide_blocks(text)
    return _hide_passwords(text) if "@" in text else text


# --- JSON values ---


def _texts_in(item: Any) -> list[str] | None:
    """Return every string of a JSON value, keys too; None where it is nested too deep to be shown."""
    texts: list[str] = []
    level: list[Any] = [item]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for each in level:
            if isinstance(each, str):
                texts.append(each)
            elif isinstance(each, dict):
                below += each
                below += each.values()
            elif isinstance(each, list | tuple):
                below += each
        if not below:
            return texts
        level = below
    return None


def _names_a_secret(item: Any) -> bool:
    """Tell whether any field has a telling name and a text or a list under it, or a list a telling flag."""
    level: list[Any] = [item]
    while level:
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                for name, inner in each.items():
                    if isinstance(inner, str | list) and isinstance(name, str) and is_telling(name):
                        return True
                if _paired(each):
                    return True
                below += each.values()
            elif isinstance(each, list | tuple):
                if any(_is_flag(inner) for inner in each):
                    return True
                below += each
        level = below
    return False


def _redact_nested(item: Any, *, room: int) -> Any:
    if isinstance(item, str):
        return redact(item)
    if not isinstance(item, dict | list | tuple):
        return item
    if not room:
        return mark("too-deep")
    if isinstance(item, dict):
        return _redact_dict(item, room=room)
    if item and all(isinstance(line, str) for line in item):
        return _redact_lines(item)
    return _redact_parts(item, room=room - 1)


def _redact_dict(item: dict[Any, Any], *, room: int) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    times: dict[Any, int] = {}
    named, held = _paired(item) or ("", "")
    for key, inner in item.items():
        clean = name = redact(key) if isinstance(key, str) else key
        while name in found:  # two secrets with one mark: neither value may be lost
            times[clean] = times.get(clean, 1) + 1
            name = f"{clean} {times[clean]}"
        hidden = isinstance(key, str) and leaves_open(key)
        found[name] = PRIVATE if hidden else _redact_field(named if key == held else key, inner, room=room - 1)
    return found


def _redact_field(name: Any, inner: Any, *, room: int) -> Any:
    """Return what a field holds, redacted; its name may tell more than its text does."""
    clean = _redact_nested(inner, room=room)
    if not isinstance(name, str) or not is_telling(name):
        return clean
    if isinstance(inner, str):
        kind = is_secret(name, inner) if clean == inner else ""
        return mark(kind) if kind else clean
    if isinstance(inner, list) and isinstance(clean, list) and len(clean) == len(inner):
        return [
            _redact_field(name, each, room=room - 1) if isinstance(each, str) else new
            for each, new in zip(inner, clean, strict=True)
        ]
    return clean


def _paired(item: dict[Any, Any]) -> tuple[str, str] | None:
    """Return the telling name and the field with its value: {"name": "DB_PASSWORD", "value": "…"}."""
    for name, held in (("name", "value"), ("key", "value"), ("Name", "Value"), ("Key", "Value")):
        if isinstance(item.get(held), str) and isinstance(label := item.get(name), str) and is_telling(label):
            return label, held
    return None


def _redact_parts(parts: list[Any] | tuple[Any, ...], *, room: int) -> list[Any]:
    # A message comes in parts: what one of them opens and does not close hides the rest of them.
    found: list[Any] = []
    for at, part in enumerate(parts):
        found.append(_redact_nested(part, room=room))
        if any(map(leaves_open, _texts_in(part) or ())):
            return found + [PRIVATE] * (len(parts) - at - 1)
    return found


def _redact_lines(lines: list[str] | tuple[str, ...]) -> list[str]:
    # Patches and notebooks come as lists of lines: a block opened in one of them may be closed in another.
    together = "\n".join(lines)
    if hide_blocks(together) != "\n".join(map(hide_blocks, lines)):
        return redact(together).split("\n")
    # A command may come as a list of its words: ["tool", "--password", "x"]
    flags = ("", *(line[2:] if _is_flag(line) else "" for line in lines))
    return [str(_redact_field(flag, line, room=1)) for flag, line in zip(flags, lines, strict=False)]


def _is_flag(word: Any) -> bool:
    return isinstance(word, str) and word[:2] == "--" and "=" not in word and is_telling(word[:64])


# --- the edges of a text that was cut: half a token has no format any more ---


def _drop_edge(text: str, cut: Cut) -> str:
    # Chinese and Japanese need no spaces, and no token holds them: a whole page must not count as one word.
    if cut == "head" and not _is_mark(text[text.rfind("[") :]):
        lost = re.match(_EDGE, text[: -EDGE - 1 : -1])
        return text[: len(text) - lost.end()] + CUT if lost else text
    if cut == "tail" and not _is_mark(text[: text.find("]") + 1]):
        lost = re.match(_EDGE, text[:EDGE])
        return CUT + text[lost.end() :] if lost else text
    return text


_EDGE = r"[^\s\u2e80-\U0010ffff]+"  # compiled where a text was cut: it takes 1 ms
_MARK = r"(?:\[cut\]|\[redacted:[0-9A-Za-z_-]{1,39}\])"


def _is_mark(text: str) -> bool:
    return re.fullmatch(_MARK, text) is not None


# --- scheme://user:password@host ---

_NOT = r"\s@\"'<>\\`"
# Up to the last @ before the path; a bare slash may be in it, unless it begins like a port or a variable.
_PASSWORD = (
    rf"(?P<before>:(?:\\{{0,4}}/){{2}}[^{_NOT}/:\[\]]*+(?>(?:{_MARK}[^{_NOT}/:\[\]]*+)*):)(?!{_MARK}@(?![^{_NOT}/?#]*+@))"
    rf"(?P<password>(?>(?:(?![0-9]*+[/?#]|[$%{{(])[^{_NOT}/]*+(?>(?:/(?!/)[^{_NOT}/]*+)*)@)?)(?>(?:[^{_NOT}/?#]*+@)*))(?<=@)"
)
# {password}, ${PASSWORD}, {{ password }}, %s, ***, the word itself or nothing: useful to the reader and no secret
_PLACEHOLDER = r"(?i:password|pass|passwd|pwd|token|secret)|\**|%s|\$*\{+[^\W\d][\w.]*\}+"


def _hide_passwords(text: str) -> str:
    def replace(found: re.Match[str]) -> str:
        password = found["password"][:-1]
        if re.fullmatch(_PLACEHOLDER, password):
            return found[0]
        return f"{found['before']}{mark('url-password')}@"

    return re.sub(_PASSWORD, replace, text)
