"""Take secrets out of any text or JSON value; every path passes here before a byte is written.

The order: blocks (`private_tags.py`), the edges of a cut, tokens by their format (`patterns.py`), values by the names
beside them (`keywords.py`), passwords in URLs; and again, until nothing is found any more: hence twice is the same as
once. Every step is linear in its text. Before all of it come files that hold secrets (`files.py`) and the environment
(`env.py`), which only a payload has.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from foreword.redact.keywords import find_secrets, find_words, is_key, is_secret, is_telling
from foreword.redact.patterns import SEAM, find_tokens, mark, replace_spans
from foreword.redact.private_tags import PRIVATE, hide_blocks, leaves_open

__all__ = ["CUT", "DEEPEST", "EDGE", "PRIVATE", "leaves_open", "mark", "redact", "redact_all", "shorten"]

Cut = Literal["", "head", "tail"]
CUT = "[cut]"
EDGE = 4096  # characters; longer than any token we know, and a longer run is data that must not be lost whole
DEEPEST = 100  # levels of a JSON value; no agent nests past 20, and json itself gives up near 1,000
MAX_PARTS = 20_000  # keys, texts, numbers, lists and objects of a payload; 20 ms to walk
_MAX_ITEMS = 2_000  # of a list or an object
_TOTAL_FACTOR = 4  # all texts of a payload together may have 4 times as many characters as one
_SHORTEST_CAP = 48  # characters of a text that are never cut
_MARGIN = 256  # characters left out beside a cut: a name and its value may lie on both sides of it
_ROUNDS = 8  # a mark may make a value of what is beside it; two rounds are the most that was seen


def redact(text: str, *, cut: Cut = "") -> str:
    """Return *text* with a typed mark for each secret; *cut* tells that it is the head or the tail of a longer one."""
    text = hide_blocks(text)
    if cut:
        text = hide_blocks(_drop_edge(text, cut))  # the bound may have fallen on a tag: <private/[cut]
    words = find_words(text)
    for _ in range(_ROUNDS):
        before, text = text, _redact_once(text, words)
        if text == before:
            return before
    return text


def redact_all(item: Any) -> Any:
    """Return a JSON value with every string redacted, keys included, and without what lies below DEEPEST levels."""
    texts, depth = _measure(item)
    unique = list(dict.fromkeys(texts))
    # All at once, because one call takes as long as reading 300 characters.
    clean = redact(SEAM.join(map(hide_blocks, unique))).split(SEAM)
    if clean == unique and depth < DEEPEST and not _names_a_secret(item):
        return item
    known = dict(zip(unique, clean, strict=True)) if len(clean) == len(unique) else {}
    return _Redactor(known).value(item, depth=DEEPEST)


def _redact_once(text: str, words: set[str]) -> str:
    before = text
    text = replace_spans(text, find_tokens(text))
    text = replace_spans(text, find_secrets(text, words))
    if text is not before:
        text = hide_blocks(text)
    return _hide_passwords(text) if "@" in text else text


# --- payloads are shortened before they are read, so that each takes a bounded time ---


def shorten(item: Any, *, max_chars: int) -> Any:
    """Return a JSON value of bounded size: short texts, few items in a list, few parts in all, few levels.

    A text of more than *max_chars* characters keeps its head and its tail. What lies beside a cut goes too, so that no
    half of a secret is left, and a block that begins in what is left out hides what follows.
    """
    texts, depth = _measure(item, max_parts=MAX_PARTS)
    cap = max(_SHORTEST_CAP, min(max_chars, _level([len(text) for text in texts], _TOTAL_FACTOR * max_chars)))
    return _shortened(item, cap=cap, depth=depth)


def _measure(item: Any, *, max_parts: int = 1 << 60) -> tuple[list[str], int]:
    """Return the texts of a JSON value, keys too, and how many of its levels have at most *max_parts* parts in all."""
    texts: list[str] = []
    level: list[Any] = [item]
    parts = 0
    for depth in range(DEEPEST):
        below: list[Any] = []
        for each in level:
            if isinstance(each, str):
                texts.append(each)
            elif isinstance(each, dict):
                below += each
                below += each.values()
            elif isinstance(each, list | tuple):
                below += each if len(each) <= _MAX_ITEMS or max_parts > MAX_PARTS else each[:_MAX_ITEMS]
        parts += len(below)
        if not below or (depth and parts > max_parts):
            return texts, depth
        level = below
    return texts, DEEPEST


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
    if not isinstance(item, dict | list | tuple):
        return item
    if not depth and item:
        return mark("too-deep")
    if isinstance(item, dict):
        names = list(item)
        if len(names) > _MAX_ITEMS:
            names = names[: _MAX_ITEMS // 2] + names[-_MAX_ITEMS // 2 :]
        return {_shortened(name, cap=cap, depth=0): _shortened(item[name], cap=cap, depth=depth - 1) for name in names}
    if len(item) > _MAX_ITEMS:
        item = _head_and_tail(item)
    return [_shortened(inner, cap=cap, depth=depth - 1) for inner in item]


def _head_and_tail(items: list[Any] | tuple[Any, ...]) -> list[Any]:
    half = _MAX_ITEMS // 2 - 1
    head, tail = list(items[:half]), list(items[-half:])
    if leaves_open("\n".join(_measure(items[:-half])[0])):
        tail = [PRIVATE]
    elif _is_flag(items[-half - 1]):
        tail[0] = mark("password")
    return [*head, f"[{len(items) - 2 * half} items left out]", *tail]


def _shortened_text(text: str, *, cap: int) -> str:
    text = hide_blocks(text)
    if len(text) <= cap:
        return text
    if cap < 8 * _MARGIN:  # of a payload of many texts: no name of a secret lies behind its value
        kept = text[:cap]
        return f"{_drop_edge(kept, 'head')}\n[{len(text) - cap} characters left out]\n"
    half = cap // 2 - 32
    head, tail = text[: half - _MARGIN], text[_MARGIN - half :]
    middle = len(text) - len(tail)
    note = f"[{middle - len(head)} characters left out]"
    # A search may name a file above its lines: the last heading before the tail tells whose lines these are.
    found = re.compile(_HEADING).findall(text, max(len(head), middle - 65_536), middle)[-1:]
    headings = [f"==> {each.rstrip(':')} <==" for each in found if "/" in each or "." in each]
    return "\n".join((_drop_edge(head, "head"), note, *headings, _drop_edge(tail, "tail")))


# The path in `==> path <==`, `File: path`, `path:`, and one above numbered lines or behind an empty one
_HEADING = (
    r"(?m)(?<=^==> )\S{1,255}(?= <==$)|(?<=^File: )\S{1,255}|^(?!\d+[:-])\S{1,255}+(?=\n\d+[:-])"
    r"|^\S{0,255}/\S{0,255}(?=:$)|(?<=\n\n)[^\s=:]{1,255}$"
)


# --- JSON values ---


def _names_a_secret(item: Any) -> bool:
    """Return whether any field has a telling name and a text or a list under it, or a list a telling flag."""
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


class _Redactor:
    """Redacts the texts of one JSON value in their order, and counts those that open a block and do not close it."""

    def __init__(self, known: dict[str, str]) -> None:
        self.known = known  # texts that are redacted already
        self.opened = 0

    def value(self, item: Any, *, depth: int) -> Any:
        if isinstance(item, str):
            return self.text(item)
        if not isinstance(item, dict | list | tuple):
            return item
        if not depth:
            return mark("too-deep")
        if isinstance(item, dict):
            return self.fields(item, depth=depth - 1)
        if item and all(isinstance(line, str) for line in item):
            return self.lines(item)
        # A message comes in parts: what one of them opens and does not close hides the rest of them.
        found: list[Any] = []
        before = self.opened
        for part in item:
            found.append(PRIVATE if self.opened > before else self.value(part, depth=depth - 1))
        return found

    def text(self, text: str) -> str:
        self.opened += leaves_open(text)
        return self.clean(text)

    def clean(self, text: str) -> str:
        return self.known[text] if text in self.known else redact(text)

    def fields(self, item: dict[Any, Any], *, depth: int) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        times: dict[Any, int] = {}
        named, held = _paired(item) or ("", "")
        for key, inner in item.items():
            before = self.opened
            clean = name = self.text(key) if isinstance(key, str) else key
            while name in found:  # two secrets with one mark: neither value may be lost
                times[clean] = times.get(clean, 1) + 1
                name = f"{clean} {times[clean]}"
            hidden = self.opened > before
            found[name] = PRIVATE if hidden else self.field(named if key == held else key, inner, depth=depth)
        return found

    def field(self, name: Any, inner: Any, *, depth: int) -> Any:
        """Return what a field holds, redacted; its name may tell more than its text does."""
        clean = self.value(inner, depth=depth)
        if not isinstance(name, str) or not is_telling(name):
            return clean
        if isinstance(inner, str):
            return _by_name(name, inner, clean)
        if isinstance(inner, list) and isinstance(clean, list) and len(clean) == len(inner):
            return [
                _by_name(name, each, new) if isinstance(each, str) else new
                for each, new in zip(inner, clean, strict=True)
            ]
        return clean

    def lines(self, lines: list[str] | tuple[str, ...]) -> list[str]:
        # Patches and notebooks come as lists of lines: a block opened in one of them may be closed in another.
        together = "\n".join(lines)
        self.opened += leaves_open(together)
        if hide_blocks(together) != "\n".join(map(hide_blocks, lines)):
            return redact(together).split("\n")
        # A command may come as a list of its words: ["tool", "--password", "x"]
        flags = ("", *(line[2:] if _is_flag(line) else "" for line in lines))
        clean = map(self.clean, lines)
        return [_by_name(flag, line, new) for flag, line, new in zip(flags, lines, clean, strict=False)]


def _by_name(name: str, text: str, clean: str) -> str:
    """Return *clean*, or a mark where the text is not clean because of the name beside it."""
    kind = is_secret(name, text) if clean == text and is_telling(name) else ""
    return mark(kind) if kind else clean


def _paired(item: dict[Any, Any]) -> tuple[str, str] | None:
    """Return the telling name and the field with its value: {"name": "DB_PASSWORD", "value": "…"}."""
    for name, held in (("name", "value"), ("key", "value"), ("Name", "Value"), ("Key", "Value")):
        if isinstance(item.get(held), str) and isinstance(label := item.get(name), str) and is_telling(label):
            return label, held
    return None


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

# {password}, ${PASSWORD}, {{ password }}, %s, ***, the word itself or nothing: useful to the reader and no secret
_PLACEHOLDER = (
    r"(?:(?i:password|pass|passwd|pwd|token|secret|x-oauth-basic|x-access-token)|\*{0,64}|%s"
    r"|\${0,9}\{{1,9}[^\W\d][\w.]{0,64}\}{1,9})"
)
_NOT = r"\s@\"'<>\\`"
# Up to the last @ before the path; a bare slash may be in it, unless it begins like a port or a variable.
_PASSWORD = (
    rf"(?P<before>:(?:\\{{0,4}}/){{2}}[^{_NOT}/:\[\]]*+(?>(?:{_MARK}[^{_NOT}/:\[\]]*+)*):)"
    rf"(?!(?:{_MARK}|{_PLACEHOLDER})@(?![^{_NOT}/?#]*+@))"
    rf"(?>(?:(?![0-9]*+[/?#]|[$%{{(])[^{_NOT}/]*+(?>(?:/(?!/)[^{_NOT}/]*+)*)@)?)(?>(?:[^{_NOT}/?#]*+@)*)(?<=@)"
)
# A token in place of the user, with any password or none
_USER = rf"(?P<before>:(?:\\{{0,4}}/){{2}})(?P<user>[\w.~%\-]{{16,255}}+)(?=(?::(?:{_MARK}|[^{_NOT}/]{{0,64}}+))?@)"


def _hide_passwords(text: str) -> str:
    hidden = mark("url-password")

    def replace_user(found: re.Match[str]) -> str:
        return f"{found['before']}{hidden}" if is_key(found["user"]) else found[0]

    text = re.sub(_PASSWORD, lambda found: f"{found['before']}{hidden}@", text)  # a template takes twice as long
    return re.sub(_USER, replace_user, text)
