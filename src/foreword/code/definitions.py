"""Find the functions, methods and classes that a file defines, each with its signature, lines and a hash."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

from foreword.code.languages import captures, is_too_large, language_of, parse

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

MOST = 3_000  # definitions of one file; the densest module of CPython's library has 2,000
WIDTH = 200  # characters of a signature
LONGEST_NAME = 100
PARTS = 4  # of a qualified name, the innermost

_CALLABLE = ("function", "method", "macro")
_NAMING_FIELDS = ("name", "left", "key", "property", "type")  # `left` of an assignment, `type` of a Rust impl
_IN_OBJECTS = ("pair", "method_definition", "field")  # nothing, unless what holds them has a name
_NOT_NAMES = ("module", "exports", "prototype", "this", "self", "globalThis", "window")


@dataclass(frozen=True)
class Definition:
    """What a file defines under a name: `body` is the same for the same code, whatever its comments and white space."""

    name: str
    qualified: str  # `Class.method`
    kind: str  # function, method, macro, class, struct, interface, …
    signature: str  # on one line: `Class.method(self, a)`, `class Store(Base)`
    line: int  # from 1 on
    end_line: int
    body: str


def definitions_in(source: bytes, *, file: str) -> tuple[Definition, ...] | None:
    """Return what the bytes of *file* define, in their order; None where they cannot be parsed.

    Never raises. Empty for what is larger than people write, or minified, and for other languages.
    """
    language = language_of(file, head=source[:4096])
    if not language or is_too_large(source):
        return ()
    tree = parse(source, language=language)
    return in_tree(tree, source, language=language) if tree else None


@dataclass
class _Scope:
    """A captured node that may enclose others; `inside` are the ranges of the definitions in a definition."""

    parts: tuple[str, ...]
    kind: str
    named: bool
    start: int
    end: int
    defined: bool = False
    inside: list[tuple[int, int]] = field(default_factory=list)


def in_tree(tree: Tree, source: bytes, *, language: str) -> tuple[Definition, ...] | None:
    """Return what the parsed *source* defines; None where that takes too long."""
    captured = captures(tree, language=language, part="definitions")
    if captured is None:
        return None
    code = bytearray(source)  # with blanks in place of comments: every other byte stays where it is
    for node in captured.pop("comment", []):
        code[node.start_byte : node.end_byte] = b" " * (node.end_byte - node.start_byte)
    nodes = [(node.start_byte, -node.end_byte, kind, node) for kind, found in captured.items() for node in found]
    nodes.sort(key=lambda each: each[:3])  # the places of the nodes alone show what encloses what
    found: list[tuple[_Scope, Node, Node | None]] = []
    around: list[_Scope] = []
    wrapper = (-1, -1)
    for start, minus_end, kind, node in nodes[: 4 * MOST]:
        end = -minus_end
        if kind == "wrapper":  # a decorator or an `export` belongs to the definition in it
            wrapper = start, end
            continue
        while around and around[-1].end <= start:
            around.pop()
        outer = around[-1] if around else _Scope((), "", False, 0, len(source))
        name = _name_node(node)
        parts = _parts(node, name, code)
        scope = _Scope((*outer.parts, *parts)[-PARTS:], kind, bool(parts) or outer.named, start, end)
        if parts and _is_definition(node, kind, around) and len(found) < MOST:
            if wrapper[0] < start and end <= wrapper[1]:
                scope.start, scope.end = wrapper
            nearest = next((each for each in reversed(around) if each.defined), scope)
            if nearest is not scope:
                nearest.inside.append((scope.start, scope.end))
            scope.defined = True
            found.append((scope, node, name))
        around.append(scope)
        wrapper = (-1, -1)
    breaks = [each.start() for each in re.finditer(rb"\n", source)]
    text = bytes(code)
    return tuple(_definition(*each, text, breaks, indented=language == "python") for each in found)


def _is_definition(node: Node, kind: str, around: list[_Scope]) -> bool:
    """Return whether a named node is a definition: functions within functions, and in nameless objects, are none."""
    if kind != "function":
        return kind != "holder"
    outer = around[-1] if around else None
    if node.type in _IN_OBJECTS and not (outer and outer.named):
        return False
    nearest = next((each.kind for each in reversed(around) if each.kind != "holder"), "")
    in_impl = node.type == "function_item" and outer is not None and outer.kind == "holder"  # Rust's own way
    return nearest != "function" or in_impl


def _definition(
    scope: _Scope, node: Node, name: Node | None, code: bytes, breaks: list[int], *, indented: bool
) -> Definition:
    kind = "method" if scope.kind == "function" and len(scope.parts) > 1 else scope.kind
    at = name.start_byte if name else node.start_byte
    qualified = ".".join(scope.parts)
    header = _header(node, name, code)
    gap = " " if header and name and code[name.end_byte : name.end_byte + 1].isspace() else ""
    signature = f"{'' if kind in _CALLABLE else f'{kind} '}{qualified}{gap}{header}"
    return Definition(
        name=scope.parts[-1],
        qualified=qualified,
        kind=kind,
        signature=signature if len(signature) <= WIDTH else signature[: WIDTH - 1] + "…",
        line=bisect_left(breaks, at) + 1,
        end_line=bisect_left(breaks, max(at, scope.end - 1)) + 1,
        body=_hash(scope, code, indented=indented),
    )


# ---- names


def _name_node(node: Node) -> Node | None:
    """Return the node that holds the name of a definition."""
    if node.type in ("function_definition", "type_definition") and node.child_by_field_name("declarator"):
        inner: Node | None = node.child_by_field_name("declarator")
        for _ in range(20):  # C's declarators: pointers to functions that return pointers to functions …
            if inner is None or inner.type.endswith(("identifier", "_name")):
                return inner
            inner = inner.child_by_field_name("declarator") or inner.named_child(0)
        return None
    if node.type == "assignment_statement":
        variables = node.named_child(0)
        return variables.child_by_field_name("name") if variables else None
    named = (node.child_by_field_name(field) for field in _NAMING_FIELDS)
    return next((each for each in named if each is not None), None)


def _parts(node: Node, name: Node | None, code: bytearray) -> tuple[str, ...]:
    """Return the name, after the names of what it says it belongs to: `Foo::bar`, `(s *Server)`, `M.f`."""
    if name is None:
        return {"export_statement": ("default",), "init_declaration": ("init",)}.get(node.type, ())
    text = _slice(code, name.start_byte, name.end_byte)[: 4 * LONGEST_NAME]
    if name.type == "operator_name" or text[:1] in "[\"'`":
        quoted = text.strip("\"'`")[:LONGEST_NAME]
        return (quoted,) if quoted else ()
    receiver = node.child_by_field_name("receiver") if node.type == "method_declaration" else None
    if receiver is not None:
        owners = re.findall(r"[^\W\d]\w*", _plain(_slice(code, receiver.start_byte, receiver.end_byte)))
        return (*owners[-1:], text)
    if node.type == "impl_item":
        return tuple(re.findall(r"[^\W\d]\w*", _plain(text))[-1:])
    parts = [part.strip().lstrip("$") for part in re.split(r"::|\.|:", _plain(text) if "::" in text else text)]
    kept = [part for part in parts if part and part not in _NOT_NAMES] or parts[-1:]
    return tuple(part[:LONGEST_NAME] for part in kept if part)[-PARTS:]


def _plain(text: str) -> str:
    """Return *text* without type arguments, lifetimes and the like."""
    for _ in range(5):
        text = re.sub(r"<[^<>]*>|\[[^\[\]]*\]", "", text)
    return re.sub(r"'\w+|\b(mut|dyn|const)\b", "", text)


# ---- signatures


def _header(node: Node, name: Node | None, code: bytes) -> str:
    """Return what follows the name of a definition up to its body, or up to the end of the line."""
    start = name.end_byte if name else node.start_byte
    body = node.child_by_field_name({"type_spec": "type"}.get(node.type, "body"))
    end = body.start_byte if body else code.find(b"\n", start) % (len(code) + 1)
    line = " ".join(_slice(code, start, min(end, node.end_byte)).split())
    line = re.sub(r"(=>.*|\{[^()]*|\bend)$", "", line).rstrip(" :={;")
    line = line if name else line[line.find("(") :]  # `init(…)`, `export default (…) => …`
    return line.replace("( ", "(").replace(", )", ")").replace(",)", ")").replace(" )", ")")


def _slice(code: bytes | bytearray, start: int, end: int) -> str:
    return code[start : min(end, start + 8 * WIDTH)].decode("utf-8", "replace")  # what is longer is cut anyway


# ---- what is the same code


def _hash(scope: _Scope, code: bytes, *, indented: bool) -> str:
    """Hash the code without white space and without the definitions inside it; where indents have a meaning, they stay.

    So a class has not changed where only one of its methods has.
    """
    pieces, at = [], scope.start
    for start, end in scope.inside:
        pieces.append(code[at:start])
        at = max(at, end)
    own = b" ".join([*pieces, code[at : scope.end]])
    if indented:
        lines = [line for line in own.split(b"\n") if line.strip()]
        own = b" ".join(b"%d:%s" % (len(line) - len(line.lstrip()), line) for line in lines)
    return blake2b(b"".join(own.split()), digest_size=8).hexdigest()
