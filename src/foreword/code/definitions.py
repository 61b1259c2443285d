"""Find the functions, methods and classes that a file defines, each with its signature, lines and a hash."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from foreword.code.languages import GRAMMARS, Grammar, captures, is_too_large, language_of, parse

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

MOST = 3_000  # definitions of one file; the densest module of CPython's library has 2,000
WIDTH = 200  # characters of a signature
LONGEST_NAME = 100
PARTS = 4  # of a qualified name, the innermost
CALLABLE = frozenset({"function", "method", "macro"})

_BODIES = frozenset({"function_body", "class_body", "enum_class_body", "protocol_body", "template_body", "enum_body"})
_CUT_SHORT = frozenset({"field_initializer_list", "constructor_initializer"})  # code, in front of a body
_FUNCTIONS = frozenset({"arrow_function", "function_expression", "generator_function", "anonymous_function"})
_NAMING_FIELDS = ("name", "left", "key", "property", "type")  # `left` of an assignment, `type` of a Rust impl
_IN_OBJECTS = frozenset({"pair", "method_definition", "field"})  # nothing, unless what holds them has a name
_NOT_NAMES = frozenset({"module", "exports", "prototype", "this", "self", "globalThis", "window"})
_BREAK = re.compile(rb"\n")
_WORD = re.compile(r"[^\W\d]\w*")
_GENERIC = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")


@dataclass(frozen=True)
class Definition:
    """What a file defines under a name: `body` is the same for the same code, whatever its comments and white space."""

    name: str
    qualified: str  # `Class.method`
    kind: str  # function, method, macro, class, struct, interface, …
    signature: str  # on one line
    line: int  # from 1 on
    end_line: int
    body: str


def definitions(text: str, *, file: str) -> tuple[Definition, ...]:
    """Return what *text*, the content of *file*, defines, in its order.

    Never raises. Empty where no grammar is installed, where it takes longer than PARSE_MS, and for what is larger
    than people write, or minified.
    """
    return definitions_in(text.encode("utf-8", "replace"), file=file) or ()


def definitions_in(source: bytes, *, file: str) -> tuple[Definition, ...] | None:
    """Return what the bytes of *file* define; None where they cannot be parsed."""
    language = language_of(file, head=source[:4096])
    if not language or is_too_large(source):
        return ()
    tree = parse(source, language=language)
    return in_tree(tree, source, language=language) if tree else None


def in_tree(tree: Tree, source: bytes, *, language: str) -> tuple[Definition, ...] | None:
    """Return what the parsed *source* defines; None where that takes too long."""
    captured = captures(tree, language=language, part="definitions")
    if captured is None:
        return None
    seen = _without(source, captured.pop("comment", []))
    placed = sorted(
        ((node.start_byte, -node.end_byte, kind, node) for kind, nodes in captured.items() for node in nodes),
        key=lambda each: each[:3],
    )
    found = _Finder(GRAMMARS[language], seen).found(placed[: 4 * MOST])
    breaks = [each.start() for each in _BREAK.finditer(source)]
    return _with_bodies(found, bytes(seen), breaks=breaks, indented=language == "python")


# ---- nodes in the order of the text -> definitions


@dataclass(frozen=True)
class _Found:
    name: str
    parts: tuple[str, ...]
    kind: str
    signature: str
    at: int  # the byte where its name stands
    start: int
    end: int


@dataclass(frozen=True)
class _Around:
    """What encloses the node at hand."""

    end: int
    parts: tuple[str, ...]
    kind: str  # holder, function, or a kind of class
    named: bool


class _Finder:
    """Walk once over the captured nodes of a file; their places alone show what encloses what."""

    def __init__(self, grammar: Grammar, seen: bytearray) -> None:
        self.grammar = grammar
        self.seen = seen
        self.around: list[_Around] = []

    def found(self, placed: Iterable[tuple[int, int, str, Node]]) -> list[_Found]:
        kept: list[_Found] = []
        stretched = -1, -1
        for start, minus_end, kind, node in placed:
            if kind == "wrapper":
                stretched = start, -minus_end
                continue
            while self.around and self.around[-1].end <= start:
                self.around.pop()
            one = self._one(node, kind)
            if one and len(kept) < MOST:
                if stretched[0] < start and one.end <= stretched[1]:
                    one = replace(one, start=stretched[0], end=stretched[1])
                kept.append(one)
            stretched = -1, -1
        return kept

    def _one(self, node: Node, kind: str) -> _Found | None:
        """Return the definition that *node* is, if it is one; it is around the following ones in any case."""
        outer = self.around[-1] if self.around else None
        name = _name_node(node)
        parts = self._parts(node, name)
        within = outer.parts if outer else ()
        whole = (*within, *parts)[-PARTS:]
        self.around.append(_Around(node.end_byte, whole, kind, bool(parts) or bool(outer and outer.named)))
        if kind == "holder" or not parts:
            return None
        if kind == "function" and outer and not self._is_named_here(node, outer):
            return None
        if kind == "function" and node.type in _IN_OBJECTS and not (outer and outer.named):
            return None
        if kind == "function" and len(whole) > 1:
            kind = "method"
        start, end = node.start_byte, node.end_byte
        return _Found(
            name=parts[-1],
            parts=whole,
            kind=kind,
            signature=_cut(self._signature(node, name, whole, kind)),
            at=name.start_byte if name else start,
            start=start,
            end=end,
        )

    def _is_named_here(self, node: Node, outer: _Around) -> bool:
        """Tell whether a function stands in a class or an object, and not in another function."""
        if outer.kind != "holder":
            return outer.kind != "function"
        inner_first = reversed(self.around[:-1])
        nearest = next((each.kind for each in inner_first if each.kind != "holder"), "")
        return nearest != "function" or node.type == "function_item"  # an impl in a function is Rust's own way

    # ---- names

    def _parts(self, node: Node, name: Node | None) -> tuple[str, ...]:
        """Return the name, after the names of what it says it belongs to: `Foo::bar`, `(s *Server)`, `M.f`."""
        if name is None:
            return {"export_statement": ("default",), "init_declaration": ("init",)}.get(node.type, ())
        text = self._text(name)[: 4 * LONGEST_NAME]
        if name.type == "operator_name" or text[:1] in "[\"'`":
            quoted = text.strip("\"'`")[:LONGEST_NAME]
            return (quoted,) if quoted else ()
        receiver = node.child_by_field_name("receiver") if node.type == "method_declaration" else None
        if receiver is not None:
            owners = _WORD.findall(_plain(self._text(receiver)))
            return (owners[-1], text) if owners else (text,)
        if node.type == "impl_item":
            return tuple(_WORD.findall(_plain(text))[-1:])
        plain = _plain(text) if self.grammar.joint == "::" else text
        parts = [part.strip().lstrip("$") for part in re.split(r"::|\.|:", plain)]
        kept = [part for part in parts if part and part not in _NOT_NAMES] or parts[-1:]
        return tuple(part[:LONGEST_NAME] for part in kept if part)[-PARTS:]

    # ---- signatures

    def _signature(self, node: Node, name: Node | None, whole: tuple[str, ...], kind: str) -> str:
        qualified = self.grammar.joint.join(whole)
        function = _function_in(node)
        if function is not None:
            return qualified + "".join(self._pieces(function))
        start = name.end_byte if name else node.start_byte
        end = _header_end(node, self.seen)
        rest = _tidy(self._slice(start, end)) if end > start else ""
        if kind in CALLABLE:
            rest = rest if name else rest.removeprefix("init")
            rest = rest if rest[:1] in ("(", "[", "<") else f"() {rest}".rstrip()
            return f"{self._front(node, name)}{qualified}{rest}"
        words = self._slice(node.start_byte, name.start_byte).split() if name and name.start_byte < end else []
        word = kind if kind in words or not words else words[-1]
        if rest[:1] == "=" and kind != "type":  # `const A = class extends B`
            rest = rest[1:].strip().removeprefix("class").strip()
        apart = " " if rest and (rest[:1] == "=" or self.seen[start : start + 1].isspace()) else ""
        return f"{word} {qualified}{apart}{rest}"

    def _front(self, node: Node, name: Node | None) -> str:
        """Return the type that stands in front of a name, where a language puts it there."""
        typed = node.child_by_field_name("type") or node.child_by_field_name("returns")
        if not self.grammar.typed_first or not typed or not name or typed.start_byte >= name.start_byte:
            return ""
        front = self._slice(typed.start_byte, name.start_byte)
        return " ".join(front.split()) + (" " if front[-1:].isspace() else "")

    def _pieces(self, function: Node) -> Iterable[str]:
        """Yield what a function without a name of its own takes and returns."""
        yield _tidy(self._text(function.child_by_field_name("type_parameters")))
        single = function.child_by_field_name("parameter")
        yield f"({self._text(single)})" if single else _tidy(self._text(function.child_by_field_name("parameters")))
        result = _tidy(self._text(function.child_by_field_name("return_type")))
        yield result if result[:1] in ("", ":") else f": {result}"

    def _text(self, node: Node | None) -> str:
        return self._slice(node.start_byte, node.end_byte) if node else ""

    def _slice(self, start: int, end: int) -> str:
        end = min(end, start + 8 * WIDTH)  # what is longer is cut anyway
        return self.seen[start:end].decode("utf-8", "replace")


def _name_node(node: Node) -> Node | None:
    """Return the node that holds the name of a definition."""
    if node.type in ("function_definition", "type_definition") and node.child_by_field_name("declarator"):
        return _declared(node)
    if node.type == "assignment_statement":
        variables = node.named_child(0)
        return variables.child_by_field_name("name") if variables else None
    for field in _NAMING_FIELDS:
        named = node.child_by_field_name(field)
        if named is not None:
            return named
    return None


def _declared(node: Node) -> Node | None:
    """Return the name inside C's declarators, which are written as the thing is used."""
    inner: Node | None = node.child_by_field_name("declarator")
    for _ in range(20):  # pointers to functions that return pointers to functions …
        if inner is None or inner.type.endswith(("identifier", "_name")):
            return inner
        inner = inner.child_by_field_name("declarator") or inner.named_child(0)
    return None


def _function_in(node: Node) -> Node | None:
    """Return the anonymous function that *node* gives a name to."""
    if node.type == "assignment_statement" or (node.type == "field" and node.child_by_field_name("value")):
        last = node.named_child(node.named_child_count - 1) if node.named_child_count else None
        if last is not None and last.type == "expression_list":
            last = last.child_by_field_name("value")
        return last if last is not None and last.type == "function_definition" else None
    held = node.child_by_field_name("value") or node.child_by_field_name("right")
    if held is not None and held.type == "call_expression":
        arguments = held.child_by_field_name("arguments")
        held = arguments.named_child(0) if arguments else None
    return held if held is not None and held.type in _FUNCTIONS else None


def _header_end(node: Node, seen: bytearray) -> int:
    """Return where the code begins."""
    if node.type in ("type_definition", "macro_definition"):
        return node.start_byte
    body = node.child_by_field_name({"type_spec": "type", "preproc_function_def": "value"}.get(node.type, "body"))
    if body is not None:
        end = body.start_byte
    else:
        end = node.end_byte - (3 if seen.endswith(b"end", node.start_byte, node.end_byte) else 0)  # an empty one
    for at in range(min(node.child_count, 40)):
        child = node.child(at)
        if child is None:
            break
        if child.type in _CUT_SHORT or (body is None and child.type in _BODIES):
            end = min(end, child.start_byte)
    return end


def _plain(text: str) -> str:
    """Return *text* without type arguments, lifetimes and the like."""
    for _ in range(5):
        shorter = _GENERIC.sub("", text)
        if shorter == text:
            break
        text = shorter
    return re.sub(r"'\w+|\b(mut|dyn|const)\b", "", text)


def _tidy(text: str) -> str:
    """Return *text* on one line, without what only leads over to the code."""
    line = " ".join(text.split()).rstrip(" :={;")
    return line.replace("( ", "(").replace(", )", ")").replace(",)", ")").replace(" )", ")")


def _cut(signature: str) -> str:
    signature = " ".join(signature.split())
    return signature if len(signature) <= WIDTH else signature[: WIDTH - 1] + "…"


# ---- what is the same code


def _without(source: bytes, comments: Iterable[Node]) -> bytearray:
    """Return *source* with blanks in place of comments: every other byte stays where it is."""
    seen = bytearray(source)
    for node in comments:
        start, end = node.start_byte, node.end_byte
        seen[start:end] = b" " * (end - start)
    return seen


def _with_bodies(found: list[_Found], seen: bytes, *, breaks: list[int], indented: bool) -> tuple[Definition, ...]:
    """Hash of each what belongs to none of those inside it: a class has not changed where one of its methods has."""
    cuts: list[list[tuple[int, int]]] = [[] for _ in found]
    around: list[int] = []
    for at, one in enumerate(found):
        while around and found[around[-1]].end <= one.start:
            around.pop()
        if around:
            cuts[around[-1]].append((one.start, one.end))
        around.append(at)
    return tuple(
        Definition(
            name=one.name,
            qualified=".".join(one.parts),
            kind=one.kind,
            signature=one.signature,
            line=bisect_left(breaks, one.at) + 1,
            end_line=bisect_left(breaks, max(one.at, one.end - 1)) + 1,
            body=_hash(_own(seen, one, inside), indented=indented),
        )
        for one, inside in zip(found, cuts, strict=True)
    )


def _own(seen: bytes, one: _Found, inside: list[tuple[int, int]]) -> bytes:
    pieces, at = [], one.start
    for start, end in inside:
        pieces.append(seen[at:start])
        at = max(at, end)
    pieces.append(seen[at : one.end])
    return b" ".join(pieces)


def _hash(code: bytes, *, indented: bool) -> str:
    """Hash code without its white space; where indents have a meaning, they stay."""
    if indented:
        code = b" ".join(
            b"%d:%s" % (len(line) - len(line.lstrip()), line) for line in code.split(b"\n") if line.strip()
        )
    return blake2b(b"".join(code.split()), digest_size=8).hexdigest()
