"""Any text or JSON value -> the same without secrets; every path passes here before a byte is written.

Light: `re` is imported only where a text may hold a block or a password in a URL. The order: blocks (`private.py`), the
edges of a cut, tokens by their format (`formats.py`), values by their place (`telling.py`), passwords in URLs; and
again, until nothing is found any more: hence twice is the same as once. Every step is linear in its text. Before all of
it come files that hold secrets (`denied.py`) and the environment (`environment.py`), which only a payload has.
"""

from __future__ import annotations

from foreword.redact import formats, telling
from foreword.redact.private import PRIVATE, leaves_open, may_hold_key, may_hold_tag, without_blocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from re import Match
    from typing import Any, Literal

    Cut = Literal["", "head", "tail"]

__all__ = [
    "CUT",
    "DEEPEST",
    "EDGE",
    "PRIVATE",
    "each_text",
    "leaves_open",
    "mark",
    "redact",
    "redact_all",
    "suspicious",
]

CUT = "[cut]"
EDGE = 4096  # characters; longer than any token we know, and a longer run is data that must not be lost whole
DEEPEST = 100  # levels of a JSON value; no host nests past 20, and json itself gives up near 1,000
_ROUNDS = 8  # a mark may make a value of what stands beside it; two rounds are the most that was seen


def redact(text: str, *, cut: Cut = "") -> str:
    """The text with a typed mark for each secret; *cut* says whether it is the head or the tail of a longer one."""
    text = without_blocks(text)
    text = _without_edge(text, cut=cut)
    for _ in range(_ROUNDS):
        before, text = text, _redacted_once(text)
        if text == before:
            return before
    return text


def suspicious(text: str) -> bool:
    """False only where redact would return the text as it is; asked without `re`, whose import costs a hook 12 ms."""
    raw = _bytes(text)
    return bool(
        may_hold_tag(text)
        or may_hold_key(text)
        or formats.tokens(raw)
        or telling.secrets(raw)
        or _may_hold_password(text)
    )


def redact_all(item: Any) -> Any:
    """A JSON value with every string in it redacted, keys included; what lies deeper than DEEPEST levels is dropped."""
    texts = _texts_in(item)
    if texts is not None and not _names_a_secret(item) and not suspicious("\n".join(texts)):
        return item  # one look at everything: a payload without any trigger is the ordinary case
    return _redact_nested(item, room=DEEPEST)


def each_text(item: Any, change: Callable[[str], str], *, room: int = DEEPEST) -> Any:
    """A JSON value with every string in it changed, keys included; what lies deeper than *room* levels is dropped."""
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


def mark(name: str) -> str:
    """What stands where a secret of this kind stood."""
    return f"[redacted:{name}]"


def _redacted_once(text: str) -> str:
    raw = _bytes(text)
    if spans := formats.tokens(raw):
        raw = formats.replaced(raw, spans)
    if more := telling.secrets(raw):
        raw = formats.replaced(raw, more)
    if spans or more:
        text = without_blocks(raw.decode("utf-8", "surrogatepass"))
    return _without_passwords(text) if _may_hold_password(text) else text


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# --- JSON values ---


def _texts_in(item: Any) -> list[str] | None:
    """Every string of a JSON value, keys too; None where it is nested too deep to be shown."""
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
    """Whether a field anywhere has a name that tells, and a text or a list under it; or whether a list has a flag."""
    level: list[Any] = [item]
    while level:
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                for name, inner in each.items():
                    if isinstance(inner, str | list) and isinstance(name, str) and telling.is_telling(name):
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
    """What a field holds, where its name may tell more than its text does."""
    clean = _redact_nested(inner, room=room)
    if not isinstance(name, str) or not telling.is_telling(name):
        return clean
    if isinstance(inner, str):
        kind = telling.is_secret(name, inner) if clean == inner else ""
        return mark(kind) if kind else clean
    if isinstance(inner, list) and isinstance(clean, list) and len(clean) == len(inner):
        return [
            _redact_field(name, each, room=room - 1) if isinstance(each, str) else new
            for each, new in zip(inner, clean, strict=True)
        ]
    return clean


def _paired(item: dict[Any, Any]) -> tuple[str, str] | None:
    """{"name": "DB_PASSWORD", "value": "…"}: the name, and the field with its value."""
    for name, held in (("name", "value"), ("key", "value"), ("Name", "Value"), ("Key", "Value")):
        if isinstance(item.get(held), str) and isinstance(told := item.get(name), str) and telling.is_telling(told):
            return told, held
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
    if without_blocks(together) != "\n".join(map(without_blocks, lines)):
        return redact(together).split("\n")
    # A command may come as a list of its words: ["tool", "--password", "x"]
    flags = ("", *(line[2:] if _is_flag(line) else "" for line in lines))
    return [str(_redact_field(flag, line, room=1)) for flag, line in zip(flags, lines, strict=False)]


def _is_flag(word: Any) -> bool:
    return isinstance(word, str) and word[:2] == "--" and "=" not in word and telling.is_telling(word[:64])


# --- the edges of a text that was cut: half a token has no format any more ---


def _without_edge(text: str, *, cut: Cut) -> str:
    if cut == "head" and not _is_mark(text[text.rfind("[") :]):
        lost = _run_length(reversed(text[-EDGE:]))
        text = text[: len(text) - lost] + CUT if lost else text
    if cut == "tail" and not _is_mark(text[: text.find("]") + 1]):
        lost = _run_length(text[:EDGE])
        text = CUT + text[lost:] if lost else text
    return without_blocks(text) if cut else text  # the bound may have fallen on a tag: <private/[cut]


def _is_mark(text: str) -> bool:
    name = text[len("[redacted:") : -1].encode("ascii", "replace")
    return text == CUT or (
        0 < len(name) < 40 and text == mark(name.decode()) and not name.translate(None, formats.WORD + b"-")
    )


def _run_length(chars: Any) -> int:
    # Chinese and Japanese need no spaces, and no token holds them: a whole page must not count as one word.
    length = 0
    for char in chars:
        if char.isspace() or char >= "\u2e80":
            break
        length += 1
    return length


# --- scheme://user:password@host ---

_NOT = r"\s@\"'<>\\`"
# Up to the last @ before the path; a bare slash may stand in it, unless it begins like a port or a variable.
_PASSWORD = (
    rf"(?P<before>:(?:\\{{0,4}}/){{2}}(?:[^{_NOT}/:\[\]]|\[redacted:[a-z0-9-]{{1,40}}\])*+:)"
    rf"(?P<password>(?:(?![0-9]*+[/?#]|[$%{{(])(?:[^{_NOT}/]|/(?!/))*+@)?+(?:[^{_NOT}/?#]*+@)*+)(?<=@)"
)


def _may_hold_password(text: str) -> bool:
    if "//" not in text and "\\/" not in text:
        return False
    plain = text.replace("\\", "")
    if "://" not in plain or "@" not in plain:
        return False
    for piece in plain.split("://")[1:]:
        login, at, _ = piece.partition("@")
        user, colon, rest = login.partition(":")
        is_port = rest.lstrip("0123456789").startswith(("/", "?", "#"))
        if at and colon and "/" not in user and not is_port and login.split() == [login]:
            return True
    return False


def _without_passwords(text: str) -> str:
    import re

    def marked(found: Match[str]) -> str:
        given = found["password"][:-1]
        if _is_mark(given) or _stands_for_one(given):
            return found[0]
        return f"{found['before']}{mark('url-password')}@"

    return re.sub(_PASSWORD, marked, text)


def _stands_for_one(given: str) -> bool:
    # {password}, ${PASSWORD}, {{ password }}, %s, ***, the word itself or nothing: useful to the reader and no secret
    if given.lower() in ("password", "pass", "passwd", "pwd", "token", "secret"):
        return True
    name = given.lstrip("$")
    braced = name.startswith("{") and name.endswith("}")
    return not given.strip("*") or given == "%s" or (braced and name.strip("{}").replace(".", "_").isidentifier())
