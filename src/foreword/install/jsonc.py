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
_TRIVIAL = frozenset((*SPACE, "/"))
_DECODE = json.JSONDecoder(strict=False).decode
DEFAULT_INDENT = "  "  # what all six agents write themselves


class Missing:
    """No value; unlike null, which is one."""


MISSING = Missing()


@dataclass(frozen=True)
class Put:
    """A text with a value put in, and what is needed to take it out without a trace."""

    text: str
    made: tuple[Keys, ...] = ()  # containers that were not there; () is the whole document
    was: Mapping[Keys, str] = field(default_factory=dict, hash=False)  # the inside of the one that was empty


def read(text: str) -> Any:
    """Return the whole document as plain values; MISSING where there is none."""
    return find(text, ())


def find(text: str, path: Path) -> Any:
    """Return the value at *path*; MISSING where there is none."""
    node = _at(text, path)
    return MISSING if node is None else _plain(node)


def same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same JSON value: the order of keys does not count, and true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def put(text: str, keys: Keys, new: Any, *, append: bool = False) -> Put:
    """Set *new* at *keys*, where nothing is yet, or append it to the list there; what is missing on the way is made."""
    root = _tree(text)
    if root is None:
        return _begun(text, keys, new, append=append)
    node = root
    for depth, key in enumerate(keys):
        _expect(node, "an object", text, keys[:depth])
        place = _place(node, key)
        if place is None:
            inner = [new] if append else new
            for each in reversed(keys[depth + 1 :]):
                inner = {each: inner}
            made = tuple(keys[:end] for end in range(depth + 1, len(keys) + append))
            return _inserted(text, node, key=key, new=inner, path=keys[:depth], made=made)
        node = node.children[place].node
    _expect(node, "a list", text, keys)
    return _inserted(text, node, key=None, new=new, path=keys)


def remove(text: str, path: Path) -> str:
    """Remove the value at *path* with its key, its comma and the space before it."""
    parent = _at(text, path[:-1])
    if parent is None or not path:
        return text
    place = _place(parent, path[-1])
    if place is None:
        return text
    child = parent.children[place]
    cuts = [(_start_of_gap(text, parent, place, child.node.end), child.node.end)]
    if child.comma >= 0:
        cuts.append((child.comma, child.comma + 1))
    elif place and parent.children[place - 1].comma >= 0:
        before = parent.children[place - 1].comma
        cuts.insert(0, (before, before + 1))
    for start, end in reversed(cuts):
        text = text[:start] + text[end:]
    return text


def emptied(text: str, *, made: Iterable[Keys], was: Mapping[Keys, str]) -> str:
    """Remove containers that were made and are empty again; others get back the inside that they had when empty."""
    for path in sorted(made, key=len, reverse=True):
        if path and _is_bare(text, path):
            text = remove(text, path)
    for path, inside in was.items():
        text = _closed(text, path, inside)
    return _ended(text, was[()]) if () in set(made) and () in was and _is_bare(text, ()) else text


# --- putting in ---


def _begun(text: str, keys: Keys, new: Any, *, append: bool) -> Put:
    newline = _newline(text)
    gap = newline if text.strip(SPACE) and not text.endswith("\n") else ""
    done = put(f"{text}{gap}{{}}{newline}", keys, new, append=append)
    return Put(done.text, ((), *done.made), {(): text})


def _inserted(text: str, node: _Node, *, key: str | None, new: Any, path: Keys, made: tuple[Keys, ...] = ()) -> Put:
    """Insert a value as the last child of *node*, on a line of its own."""
    newline, unit = _newline(text), _unit(text)
    last = node.children[-1] if node.children else None
    if last is not None:
        spot = _behind_comments(text, last.comma + 1 if last.comma >= 0 else last.node.end)
    else:
        spot = max((found.end() for found in _comments(text, node.start + 1, node.end - 1)), default=node.start + 1)
    indent = _indent_of_line(text, node.start) + unit
    body = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    body += json.dumps(new, ensure_ascii=False, indent=unit).replace("\n", newline + indent)
    tail = newline + _indent_of_line(text, node.start) if last is None and "\n" not in text[spot : node.end - 1] else ""
    if last is not None and last.comma >= 0:
        tail = ","
    changed = text[:spot] + newline + indent + body + tail + text[spot:]
    if last is not None and last.comma < 0:
        changed = changed[: last.node.end] + "," + changed[last.node.end :]
    was = {path: text[node.start + 1 : node.end - 1]} if last is None else {}
    return Put(changed, made, was)


def _behind_comments(text: str, at: int) -> int:
    """Return the place behind the comments on the same line, which describe what stands before them."""
    while True:
        start = at + len(text[at:]) - len(text[at:].lstrip(" \t"))
        found = _COMMENT.match(text, start)
        if found is None:
            return at
        at = found.end()
        if found[0].startswith("//"):
            return at


# --- taking out ---


def _start_of_gap(text: str, parent: _Node, place: int, end: int) -> int:
    """Return where the space in front of a child begins; what a line comment would swallow keeps its line."""
    child = parent.children[place]
    if place:
        before = parent.children[place - 1]
        low = max(before.node.end, before.comma + 1)
    else:
        low = parent.start + 1
    start = child.start
    while start > low and text[start - 1] in SPACE:
        start -= 1
    ends_line = any(found.end() == start and found[0].startswith("//") for found in _comments(text, low, child.start))
    after = child.comma + 1 if child.comma >= 0 else end
    return child.start if ends_line and text[after : after + 1] not in ("\r", "\n") else start


def _comments(text: str, start: int, end: int) -> Iterable[re.Match[str]]:
    """Yield the comments in a stretch that holds only space and commas besides."""
    while found := _COMMENT.search(text, start, end):
        yield found
        start = found.end()


def _is_bare(text: str, path: Path) -> bool:
    node = _at(text, path)
    if node is None or node.kind == "scalar" or node.children:
        return False
    return not path or not text[node.start + 1 : node.end - 1].strip(SPACE)


def _closed(text: str, path: Keys, inside: str) -> str:
    node = _at(text, path)
    if node is None or node.kind == "scalar" or node.children:
        return text
    now = text[node.start + 1 : node.end - 1]
    return text[: node.start + 1] + inside + text[node.end - 1 :] if now.split() == inside.split() else text


def _ended(text: str, original: str) -> str:
    """Remove the document that we began."""
    root = _tree(text)
    assert root is not None
    if text[root.start + 1 : root.end - 1].strip(SPACE):
        return text
    rest = text[: root.start] + text[root.end :]
    return original if rest.split() == original.split() else rest


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


# --- a tree that knows where everything stands ---


class _Node(NamedTuple):  # as cheap as possible: a file of megabytes has a hundred thousand
    kind: str  # object, array or scalar
    start: int
    end: int
    children: tuple[_Child, ...] = ()
    scalar: Any = None


class _Child(NamedTuple):
    key: str | None  # None in a list
    start: int  # of the key, or of the item
    node: _Node
    comma: int  # behind it; -1 where there is none


@lru_cache(maxsize=4)  # a change parses the same text several times, and Claude's own file may have megabytes
def _tree(text: str) -> _Node | None:
    """Parse the document with its positions; None where there is none. Comments and trailing commas are accepted."""
    try:
        at = _skip(text, 0)
        if at == len(text):
            return None
        root = _parse(text, at)
    except RecursionError as exc:
        raise BadConfig("it is nested too deeply", hint="simplify the file") from exc
    end = _skip(text, root.end)
    if end != len(text):
        raise _wrong(text, end, "something follows the end of the document")
    return root


def _parse(text: str, at: int) -> _Node:
    char = text[at : at + 1]
    if char == "{":
        return _container(text, at, kind="object", close="}")
    if char == "[":
        return _container(text, at, kind="array", close="]")
    found = _STRING.match(text, at) or _SCALAR.match(text, at)
    if found is None:
        raise _wrong(text, at, "a value is expected")
    return _Node("scalar", at, found.end(), (), _scalar(text, found))


def _container(text: str, start: int, *, kind: str, close: str) -> _Node:
    children = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != close:
        key, begin = None, at
        if kind == "object":
            found = _STRING.match(text, at)
            if found is None:
                raise _wrong(text, at, "a key in double quotes is expected")
            key = _scalar(text, found)
            at = _skip(text, found.end())
            if text[at : at + 1] != ":":
                raise _wrong(text, at, "a colon is expected")
            at = _skip(text, at + 1)
        node = _parse(text, at)
        at = _skip(text, node.end)
        comma = at if text[at : at + 1] == "," else -1
        children.append(_Child(key, begin, node, comma))
        if comma >= 0:
            at = _skip(text, at + 1)
        elif text[at : at + 1] != close:
            raise _wrong(text, at, f"a comma or {close} is expected")
    return _Node(kind, start, at + 1, tuple(children), None)


def _scalar(text: str, found: re.Match[str]) -> Any:
    raw = found[0]
    if raw[0] == '"' and "\\" not in raw:
        return raw[1:-1]
    try:
        return _DECODE(raw)
    except ValueError as exc:
        raise _wrong(text, found.start(), "this is no value") from exc


def _skip(text: str, at: int) -> int:
    if text[at : at + 1] not in _TRIVIAL:
        return at
    found = _TRIVIA.match(text, at)
    assert found is not None
    return found.end()


def _plain(node: _Node) -> Any:
    if node.kind == "object":
        return {child.key: _plain(child.node) for child in node.children}
    if node.kind == "array":
        return [_plain(child.node) for child in node.children]
    return node.scalar


def _at(text: str, path: Path) -> _Node | None:
    node = _tree(text)
    for step in path:
        place = _place(node, step) if node else None
        if node is None or place is None:
            return None
        node = node.children[place].node
    return node


def _place(node: _Node, step: str | int) -> int | None:
    if isinstance(step, int):
        return step if node.kind == "array" and 0 <= step < len(node.children) else None
    # Of a key that occurs twice, agents take the last.
    places = [place for place, child in enumerate(node.children) if node.kind == "object" and child.key == step]
    return places[-1] if places else None


def _expect(node: _Node, what: str, text: str, path: Keys) -> None:
    if node.kind != {"an object": "object", "a list": "array"}[what]:
        line = text.count("\n", 0, node.start) + 1
        where = f"`{'.'.join(path)}`" if path else "the whole document"
        raise BadConfig(f"{where} in line {line} is not {what}", hint=f"make it {what}, or take it out; then try again")


def _wrong(text: str, at: int, what: str) -> BadConfig:
    line = text.count("\n", 0, at) + 1
    return BadConfig(f"it is no JSON: {what} in line {line}", hint="correct that line, then try again")
