"""Put a value into the text of a JSON file with comments, or take one out, and change no other byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from foreword.errors import BadConfig

Path = tuple[str | int, ...]
Keys = tuple[str, ...]

SPACE = " \t\r\n\ufeff"
_TRIVIA = re.compile(r"(?>(?:[ \t\r\n\ufeff]++|//[^\r\n]*+|/\*.*?\*/)*)", re.DOTALL)
_COMMENT = re.compile(r"//[^\r\n]*+|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?>(?:[^"\\\r\n]++|\\.)*)"')
_SCALAR = re.compile(r"[-+.\w]++")
_CLOSE = {"{": "}", "[": "]"}
_DECODE = json.JSONDecoder(strict=False).decode
DEFAULT_INDENT = "  "  # what all six agents write themselves
MISSING: Any = object()  # no value; unlike null, which is one


@dataclass(frozen=True)
class Put:
    """A text with a value inserted, and what is needed to remove it without a trace."""

    text: str
    made: tuple[Keys, ...] = ()  # containers that were not there; () is the whole document
    was: Mapping[Keys, str] = field(default_factory=dict, hash=False)  # the inside of the one that was empty


class _Node(NamedTuple):  # as cheap as possible: a file of megabytes has a hundred thousand
    key: str | None  # None in a list
    start: int  # of the key, or of the value in a list
    at: int  # where the value begins
    end: int
    comma: int  # behind it; -1 where there is none
    children: tuple[_Node, ...] | None  # None for a scalar
    scalar: Any


def read(text: str) -> Any:
    """Return the whole document as plain values; MISSING where there is none."""
    return find(text, ())


def find(text: str, path: Path) -> Any:
    """Return the value at *path*; MISSING where there is none."""
    node = _at(text, path)
    return MISSING if node is None else _plain(text, node)


def same(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON value: the order of keys does not count, and true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def put(text: str, keys: Keys, new: Any, *, append: bool = False) -> Put:
    """Set *new* at *keys*, where nothing is yet, or append it to the list there; what is missing on the way is made."""
    node = _tree(text)
    if node is None:  # an empty file: begin a document
        newline = _newline(text)
        gap = newline if text.strip(SPACE) and not text.endswith("\n") else ""
        done = put(f"{text}{gap}{{}}{newline}", keys, new, append=append)
        return Put(done.text, ((), *done.made), {(): text})
    for depth, key in enumerate(keys):
        _expect(node, "{", text, keys[:depth])
        place = _place(text, node, key)
        if place is None:
            inner = [new] if append else new
            for each in reversed(keys[depth + 1 :]):
                inner = {each: inner}
            made = tuple(keys[:end] for end in range(depth + 1, len(keys) + append))
            name = f"{json.dumps(key, ensure_ascii=False)}: "
            return _inserted(text, node, name, inner, path=keys[:depth], made=made)
        node = (node.children or ())[place]
    _expect(node, "[", text, keys)
    return _inserted(text, node, "", new, path=keys)


def remove(text: str, path: Path) -> str:
    """Remove the value at *path* with its key, its comma and the space before it."""
    parent = _at(text, path[:-1])
    place = _place(text, parent, path[-1]) if parent and path else None
    if parent is None or place is None:
        return text
    siblings = parent.children or ()
    child = siblings[place]
    cuts = [(_start_of_gap(text, parent, place), child.end)]
    if child.comma >= 0:
        cuts.append((child.comma, child.comma + 1))
    elif place and siblings[place - 1].comma >= 0:
        cuts.insert(0, (siblings[place - 1].comma, siblings[place - 1].comma + 1))
    for start, end in reversed(cuts):
        text = text[:start] + text[end:]
    return text


def emptied(text: str, *, made: Iterable[Keys], was: Mapping[Keys, str]) -> str:
    """Remove containers that were made and are empty again; others get back the inside that they had when empty."""
    made = sorted(made, key=len, reverse=True)
    for path in made:
        if path and _inside(text, path).isspace():
            text = remove(text, path)
    for path, inside in was.items():
        node = _at(text, path)
        if node and _inside(text, path).split() == inside.split() and node.children == ():
            text = text[: node.at + 1] + inside + text[node.end - 1 :]
    root = _at(text, ())
    if root and () in made and () in was and _inside(text, ()).isspace():
        text = text[: root.at] + text[root.end :]  # the document that we began
        return was[()] if text.split() == was[()].split() else text
    return text


def _inserted(text: str, node: _Node, key: str, new: Any, *, path: Keys, made: tuple[Keys, ...] = ()) -> Put:
    """Insert a value as the last child of *node*, on a line of its own."""
    newline, unit, outer = _newline(text), _unit(text), _indent_of_line(text, node.at)
    last = node.children[-1] if node.children else None
    if last is not None:
        spot = _behind_comments(text, max(last.comma + 1, last.end))
    else:
        spot = max((found.end() for found in _comments(text, node.at + 1, node.end - 1)), default=node.at + 1)
    indent = outer + unit
    body = key + json.dumps(new, ensure_ascii=False, indent=unit).replace("\n", newline + indent)
    tail = newline + outer if last is None and "\n" not in text[spot : node.end - 1] else ""
    if last is not None and last.comma >= 0:
        tail = ","
    changed = text[:spot] + newline + indent + body + tail + text[spot:]
    if last is not None and last.comma < 0:
        changed = changed[: last.end] + "," + changed[last.end :]
    return Put(changed, made, {path: text[node.at + 1 : node.end - 1]} if last is None else {})


def _behind_comments(text: str, at: int) -> int:
    """Return the place behind the comments on the same line, which describe what stands before them."""
    while found := _COMMENT.match(text, at + len(text[at:]) - len(text[at:].lstrip(" \t"))):
        at = found.end()
        if found[0].startswith("//"):
            break
    return at


def _start_of_gap(text: str, parent: _Node, place: int) -> int:
    """Return where the space in front of a child begins; what a line comment would swallow keeps its line."""
    siblings = parent.children or ()
    child = siblings[place]
    low = max(siblings[place - 1].end, siblings[place - 1].comma + 1) if place else parent.at + 1
    start = child.start
    while start > low and text[start - 1] in SPACE:
        start -= 1
    ends_line = any(found.end() == start and found[0].startswith("//") for found in _comments(text, low, child.start))
    after = max(child.comma + 1, child.end)
    return child.start if ends_line and text[after : after + 1] not in ("\r", "\n") else start


def _comments(text: str, start: int, end: int) -> Iterable[re.Match[str]]:
    """Yield the comments in a stretch that holds only space and commas besides."""
    while found := _COMMENT.search(text, start, end):
        yield found
        start = found.end()


def _inside(text: str, path: Keys) -> str:
    """Return the text inside a container that has no children, between two spaces; empty where there is none."""
    node = _at(text, path)
    return f" {text[node.at + 1 : node.end - 1].strip(SPACE)} " if node and node.children == () else ""


# --- the file's own style ---


def _newline(text: str) -> str:
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def _unit(text: str) -> str:
    """Return what the file indents by: the first indentation in it."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else DEFAULT_INDENT


def _indent_of_line(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


# --- a tree that knows where everything is ---


@lru_cache(maxsize=4)  # a change parses the same text several times, and Claude's own file may have megabytes
def _tree(text: str) -> _Node | None:
    """Parse the document with its positions; None where there is none. Comments and trailing commas are accepted."""
    at = _skip(text, 0)
    if at == len(text):
        return None
    try:
        end, children, scalar = _value(text, at)
    except RecursionError as exc:
        raise BadConfig("it is nested too deeply", hint="simplify the file") from exc
    if (rest := _skip(text, end)) != len(text):
        raise _wrong(text, rest, "something follows the end of the document")
    return _Node(None, at, at, end, -1, children, scalar)


def _value(text: str, at: int) -> tuple[int, tuple[_Node, ...] | None, Any]:
    """Parse one value; return its end, the children of a container, and the value of a scalar."""
    opening = text[at : at + 1]
    if opening not in _CLOSE:
        found = _STRING.match(text, at) or _SCALAR.match(text, at)
        if found is None:
            raise _wrong(text, at, "a value is expected")
        return found.end(), None, _scalar(text, found)
    close, children = _CLOSE[opening], []
    at = _skip(text, at + 1)
    while text[at : at + 1] != close:
        key, start = None, at
        if opening == "{":
            found = _STRING.match(text, at)
            if found is None:
                raise _wrong(text, at, "a key in double quotes is expected")
            key = _scalar(text, found)
            at = _skip(text, found.end())
            if text[at : at + 1] != ":":
                raise _wrong(text, at, "a colon is expected")
            at = _skip(text, at + 1)
        begin = at
        end, inner, scalar = _value(text, at)
        at = _skip(text, end)
        has_comma = text[at : at + 1] == ","
        children.append(_Node(key, start, begin, end, at if has_comma else -1, inner, scalar))
        if has_comma:
            at = _skip(text, at + 1)
        elif text[at : at + 1] != close:
            raise _wrong(text, at, f"a comma or {close} is expected")
    return at + 1, tuple(children), None


def _scalar(text: str, found: re.Match[str]) -> Any:
    raw = found[0]
    if raw[0] == '"' and "\\" not in raw:
        return raw[1:-1]
    try:
        return _DECODE(raw)
    except ValueError as exc:
        raise _wrong(text, found.start(), "this is no value") from exc


def _skip(text: str, at: int) -> int:
    """Return the place behind space and comments."""
    found = _TRIVIA.match(text, at)
    return found.end() if found else at


def _plain(text: str, node: _Node) -> Any:
    if node.children is None:
        return node.scalar
    if text[node.at] == "{":
        return {child.key: _plain(text, child) for child in node.children}
    return [_plain(text, child) for child in node.children]


def _at(text: str, path: Path) -> _Node | None:
    node = _tree(text)
    for step in path:
        place = _place(text, node, step) if node else None
        if node is None or place is None:
            return None
        node = (node.children or ())[place]
    return node


def _place(text: str, node: _Node, step: str | int) -> int | None:
    """Return which child is meant; of a key that occurs twice the last, as agents take it."""
    children = node.children or ()
    if isinstance(step, int):
        return step if text[node.at] == "[" and 0 <= step < len(children) else None
    places = [place for place, child in enumerate(children) if child.key == step]
    return places[-1] if places else None


def _expect(node: _Node, opening: str, text: str, path: Keys) -> None:
    if text[node.at] != opening:
        line, what = text.count("\n", 0, node.at) + 1, {"{": "an object", "[": "a list"}[opening]
        where = f"`{'.'.join(path)}`" if path else "the whole document"
        raise BadConfig(f"{where} in line {line} is not {what}", hint=f"make it {what}, or take it out; then try again")


def _wrong(text: str, at: int, what: str) -> BadConfig:
    line = text.count("\n", 0, at) + 1
    return BadConfig(f"it is not JSON: {what} in line {line}", hint="correct that line, then try again")
