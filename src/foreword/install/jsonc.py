"""Put a value into the text of a JSON file with comments, or take one out, and change no other byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from foreword.errors import BadConfig

Path = tuple[str | int, ...]
Keys = tuple[str, ...]

SPACE = " \t\r\n\ufeff"
_COMMENT = re.compile(r"//[^\r\n]*+|/\*.*?\*/", re.DOTALL)
_GAP = rf"(?>(?:[{SPACE}]++|{_COMMENT.pattern})*)"
_COMMA = re.compile(f"{_GAP},", re.DOTALL)
# A string, which is kept; or what strict JSON does not have: a comment, a byte order mark, a last comma.
_STRING_OR_EXTRA = re.compile(rf'("(?>(?:[^"\\\r\n]++|\\.)*)")|{_COMMENT.pattern}|\ufeff|,(?={_GAP}[}}\]])', re.DOTALL)
_DECODE = json.JSONDecoder().raw_decode
DEFAULT_INDENT = "  "  # what all six agents write themselves
MISSING: Any = object()  # no value; unlike null, which is one


@dataclass(frozen=True)
class Put:
    """A text with a value inserted, and what is needed to remove it without a trace."""

    text: str
    added: tuple[Keys, ...] = ()  # containers that were not there; () is the whole document
    insides: Mapping[Keys, str] = field(default_factory=dict, hash=False)  # of the one that was empty, as it was


class _Node(NamedTuple):
    """Where a value is in a text."""

    key: str | None  # None in a list
    start: int  # of the key, or of the value in a list
    at: int  # where the value begins
    end: int
    comma: int  # behind it; -1 where there is none


def read(text: str) -> Any:
    """Return the whole document as plain values; MISSING where there is none."""
    return _parsed(text)[1]


def find(text: str, path: Path) -> Any:
    """Return the value at *path*; MISSING where there is none."""
    node = _at(text, path)
    return MISSING if node is None else _DECODE(_parsed(text)[0], node.at)[0]


def same(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON value: the order of keys does not count, and true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def put(text: str, keys: Keys, new: Any, *, append: bool = False) -> Put:
    """Set *new* at *keys*, where nothing is yet, or append it to the list there; what is missing on the way is made."""
    node = _at(text, ())
    if node is None:  # an empty file: begin a document
        newline = _newline(text)
        gap = newline if text.strip(SPACE) and not text.endswith("\n") else ""
        placed = put(f"{text}{gap}{{}}{newline}", keys, new, append=append)
        return Put(placed.text, ((), *placed.added), {(): text})
    for depth, key in enumerate(keys):
        _expect(node, "{", text, keys[:depth])
        index = _place(text, node, key)
        if index is None:
            value = [new] if append else new
            for inner_key in reversed(keys[depth + 1 :]):
                value = {inner_key: value}
            added = tuple(keys[:end] for end in range(depth + 1, len(keys) + append))
            name = f"{json.dumps(key, ensure_ascii=False)}: "
            return _inserted(text, node, name, value, path=keys[:depth], added=added)
        node = _children(text, node)[index]
    _expect(node, "[", text, keys)
    return _inserted(text, node, "", new, path=keys)


def remove(text: str, path: Path) -> str:
    """Remove the value at *path* with its key, its comma and the space before it."""
    parent = _at(text, path[:-1])
    index = _place(text, parent, path[-1]) if parent and path else None
    if parent is None or index is None:
        return text
    siblings = _children(text, parent)
    child = siblings[index]
    cuts = [(_start_of_gap(text, parent, siblings, index), child.end)]
    if child.comma >= 0:
        cuts.append((child.comma, child.comma + 1))
    elif index and siblings[index - 1].comma >= 0:
        cuts.insert(0, (siblings[index - 1].comma, siblings[index - 1].comma + 1))
    for start, end in reversed(cuts):
        text = text[:start] + text[end:]
    return text


def emptied(text: str, *, added: Iterable[Keys], insides: Mapping[Keys, str]) -> str:
    """Remove containers that were made and are empty again; others get back the inside that they had when empty."""
    added = sorted(added, key=len, reverse=True)
    for path in added:
        if path and _inside(text, path).isspace():
            text = remove(text, path)
    for path, inside in insides.items():
        node = _at(text, path)
        if node and _inside(text, path).split() == inside.split() and not _children(text, node):
            text = text[: node.at + 1] + inside + text[node.end - 1 :]
    root = _at(text, ())
    if root and () in added and () in insides and _inside(text, ()).isspace():
        text = text[: root.at] + text[root.end :]  # the document that we began
        return insides[()] if text.split() == insides[()].split() else text
    return text


def _inserted(text: str, node: _Node, key: str, new: Any, *, path: Keys, added: tuple[Keys, ...] = ()) -> Put:
    """Insert a value as the last child of *node*, on a line of its own."""
    newline, first_indent = _newline(text), re.search(r"\n([ \t]+)\S", text)
    unit = first_indent[1] if first_indent else DEFAULT_INDENT
    line = text[text.rfind("\n", 0, node.at) + 1 : node.at].lstrip("\ufeff")
    outer = line[: len(line) - len(line.lstrip(" \t"))]
    last_child = next(reversed(_children(text, node)), None)
    if last_child is not None:
        spot = _behind_comments(text, max(last_child.comma + 1, last_child.end))
    else:
        spot = max((comment.end() for comment in _comments(text, node.at + 1, node.end - 1)), default=node.at + 1)
    indent = outer + unit
    body = key + json.dumps(new, ensure_ascii=False, indent=unit).replace("\n", newline + indent)
    tail = newline + outer if last_child is None and "\n" not in text[spot : node.end - 1] else ""
    if last_child is not None and last_child.comma >= 0:
        tail = ","
    changed = text[:spot] + newline + indent + body + tail + text[spot:]
    if last_child is not None and last_child.comma < 0:
        changed = changed[: last_child.end] + "," + changed[last_child.end :]
    return Put(changed, added, {path: text[node.at + 1 : node.end - 1]} if last_child is None else {})


def _behind_comments(text: str, end: int) -> int:
    """Return the place behind the comments on the same line, which describe what stands before them."""
    while comment := _COMMENT.match(text, end + len(text[end:]) - len(text[end:].lstrip(" \t"))):
        end = comment.end()
        if comment[0].startswith("//"):
            break
    return end


def _start_of_gap(text: str, parent: _Node, siblings: Sequence[_Node], index: int) -> int:
    """Return where the space in front of a child begins; what a line comment would swallow keeps its line."""
    child = siblings[index]
    low = max(siblings[index - 1].end, siblings[index - 1].comma + 1) if index else parent.at + 1
    start = child.start
    while start > low and text[start - 1] in SPACE:
        start -= 1
    ends_line = any(note.end() == start and note[0].startswith("//") for note in _comments(text, low, child.start))
    after = max(child.comma + 1, child.end)
    return child.start if ends_line and text[after : after + 1] not in ("\r", "\n") else start


def _comments(text: str, start: int, end: int) -> Iterable[re.Match[str]]:
    """Yield the comments in a stretch that holds only space and commas besides."""
    while comment := _COMMENT.search(text, start, end):
        yield comment
        start = comment.end()


def _inside(text: str, path: Keys) -> str:
    """Return the text inside a container that has no children, between two spaces; empty where there is none."""
    node = _at(text, path)
    is_empty = node is not None and text[node.at] in "{[" and not _children(text, node)
    return f" {text[node.at + 1 : node.end - 1].strip(SPACE)} " if node and is_empty else ""


def _newline(text: str) -> str:
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


# --- where everything is ---


@lru_cache(maxsize=4)  # a change parses the same text several times, and Claude's own file may have megabytes
def _parsed(text: str) -> tuple[str, Any]:
    """Return the text as strict JSON, with spaces for all else, and its value; MISSING where there is none."""
    strict = _STRING_OR_EXTRA.sub(lambda found: found[1] or re.sub(r"[^\r\n]", " ", found[0]), text)
    try:
        return strict, json.loads(strict) if strict.strip(SPACE) else MISSING
    except json.JSONDecodeError as exc:
        message = f"it is not JSON: {exc.msg} in line {exc.lineno}"
        raise BadConfig(message, hint="correct that line, then try again") from exc
    except (RecursionError, ValueError) as exc:
        raise BadConfig("it is nested too deeply, or has a number too long", hint="simplify the file") from exc


def _at(text: str, path: Path) -> _Node | None:
    """Return where the value at *path* is; None where there is none."""
    strict, document = _parsed(text)
    if document is MISSING:
        return None
    start = _skip(strict, 0)
    node = _Node(None, start, start, len(strict.rstrip(SPACE)), -1)
    for step in path:
        index = _place(text, node, step)
        if index is None:
            return None
        node = _children(text, node)[index]
    return node


def _children(text: str, node: _Node) -> list[_Node]:
    """Return where the values in a container are; none for a scalar."""
    strict, children = _parsed(text)[0], []
    start = _skip(strict, node.at + 1) if strict[node.at] in "{[" else node.end - 1
    while start < node.end - 1:
        key, at = None, start
        if strict[node.at] == "{":
            key, at = _DECODE(strict, start)
            at = _skip(strict, strict.index(":", at) + 1)
        end = _DECODE(strict, at)[1]
        comma = _COMMA.match(text, end)
        children.append(_Node(key, start, at, end, comma.end() - 1 if comma else -1))
        start = _skip(strict, comma.end() if comma else end)
    return children


def _skip(strict: str, at: int) -> int:
    """Return the place behind space."""
    while strict[at] in SPACE:
        at += 1
    return at


def _place(text: str, node: _Node, step: str | int) -> int | None:
    """Return which child is meant; of a key that occurs twice the last, as agents take it."""
    if isinstance(step, int) != (text[node.at] == "["):
        return None
    keys = [child.key if isinstance(step, str) else place for place, child in enumerate(_children(text, node))]
    return len(keys) - 1 - keys[::-1].index(step) if step in keys else None


def _expect(node: _Node, opening: str, text: str, path: Keys) -> None:
    if text[node.at] != opening:
        line, what = text.count("\n", 0, node.at) + 1, {"{": "an object", "[": "a list"}[opening]
        where = f"`{'.'.join(path)}`" if path else "the whole document"
        raise BadConfig(f"{where} in line {line} is not {what}", hint=f"make it {what}, or take it out; then try again")
