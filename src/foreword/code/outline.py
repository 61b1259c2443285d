"""Lines of any language -> what they seem to define: some words open a definition, and margins tell where it ends."""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 500  # characters of a line that may open a definition
CONTAINERS = frozenset(
    """class struct interface trait enum module object protocol contract library record package defmodule extension
    actor namespace mixin impl""".split()  # noqa: SIM905
)

_NAME = r"[^\W\d][\w$']*(?:(?:::|[.:])[^\W\d][\w$']*)*[?!]?"
_MODIFIERS = (
    r"(?:(?:pub(?:\([^)]*\))?|public|private|protected|internal|static|final|abstract|sealed|open|override|virtual|async"
    r"|suspend|inline|export|default|local|unsafe|extern|data|case|implicit|partial|mutating|declare|pure|recursive)\s+)*"
)
_WORDS = {
    "python": "def class",
    "ruby": "def class module",
    "javascript": "function class",
    "typescript": "function class interface enum type",
    "go": "func type",
    "rust": "fn struct enum trait macro_rules! impl",
    "kotlin": "fun class object interface",
    "scala": "def class object trait enum",
    "swift": "func class struct enum protocol extension actor",
    "php": "function class interface trait enum",
    "lua": "function",
    "perl": "sub package",
    "elixir": "def defp defmacro defmodule defprotocol",
    "julia": "function macro struct module",
    "nim": "proc func method template macro iterator",
    "zig": "fn",
    "solidity": "function contract library interface modifier event struct",
    "groovy": "def class interface enum trait",
    "powershell": "class",
    "dart": "class mixin enum extension",
    "ocaml": "let module type",
    "f#": "let module type member",
    "shell": "function",
    "java": "class interface enum record",
    "c#": "class interface enum record struct",
    "c++": "class struct",
    "c": "struct",
    "objective-c": "@interface @implementation @protocol",
}
_WORDS["tsx"] = _WORDS["typescript"]
_TYPED = re.compile(  # `static int *name(…`, not a call and not a declaration
    r"^\s*(?!(?:return|else|new|throw|await|case|using|delete|goto|do)\b)[A-Za-z_][\w:<>,.\[\]]*+[\s*&]++"
    r"(?:[\w:<>,.\[\]]++[\s*&]++){0,4}(?P<name>~?[A-Za-z_][\w:~]*)\s*\([^;{]*(?:\{.*)?$"
)
_OWN: dict[str, tuple[re.Pattern[str], ...]] = {
    "javascript": (
        re.compile(
            r"^\s*(?:export\s+)?(?:const|let|var)\s+(?P<name>[\w$]+)\s*(?::[^=]{0,100})?="
            r"\s*(?:async\s+)?(?:function\b|\([^()]*\)[^=]{0,60}=>|\w+\s*=>)"
        ),
    ),
    "go": (re.compile(r"^func\s+\(\s*+(?:\w++\s*+(?=[*\w]))?\*?\s*+(?P<owner>\w++)[^)]*+\)\s*(?P<name>\w+)"),),
    "shell": (re.compile(r"^\s*(?P<name>[\w:.-]+)\s*\(\)\s*[{(]?\s*(?:#.*)?$"),),
    "erlang": (re.compile(r"^(?P<name>[a-z]\w*)\([^%]*->"),),
    "haskell": (
        re.compile(r"^(?P<name>[a-z_][\w']*)\s*::"),
        re.compile(r"^(?P<kind>data|newtype|class|type)\s+(?P<name>[A-Z][\w']*)"),
    ),
    "clojure": (
        re.compile(
            r"^\((?P<kind>defn-?|defmacro|defprotocol|defrecord|defmulti|deftype|deftest)\s+(?:\^\S+\s+)*(?P<name>[^\s()\[\]]+)"
        ),
    ),
    "r": (re.compile(r"^\s*(?P<name>[\w.]+)\s*(?:<-|=)\s*function\s*\("),),
    "sql": (
        re.compile(
            r"^\s*create\s+(?:or\s+(?:replace|alter)\s+)?(?:temp(?:orary)?\s+|unique\s+|materialized\s+|unlogged\s+)*"
            r"(?P<kind>function|procedure|trigger|view|table|index|type)\s+(?:if\s+not\s+exists\s+)?(?P<name>[\w.\"`\[\]]+)",
            re.IGNORECASE,
        ),
    ),
    "make": (re.compile(r"^(?P<name>[\w/%][\w./%-]*)(?:\s+[\w./%-]+)*\s*::?(?![=:])"),),  # not .PHONY
    "terraform": (
        re.compile(r'^(?P<kind>resource|data)\s+"(?P<owner>[\w-]+)"\s+"(?P<name>[\w-]+)"'),
        re.compile(r'^(?P<kind>module|variable|output|provider)\s+"(?P<name>[\w-]+)"'),
    ),
    "powershell": (re.compile(r"^\s*(?P<kind>function|filter)\s+(?P<name>[\w:-]+)", re.IGNORECASE),),
    "objective-c": (re.compile(r"^[-+]\s*\([^)]*\)\s*(?P<name>\w+)"), _TYPED),
    "c": (_TYPED,),
    "c++": (_TYPED,),
    "java": (_TYPED,),
    "c#": (_TYPED,),
    "dart": (_TYPED,),
}
_OWN["typescript"] = _OWN["tsx"] = _OWN["javascript"]
_NOT_TYPED = frozenset("if for while switch catch return sizeof elif else foreach lock using".split())  # noqa: SIM905
_REMARKS = {
    "//": "javascript typescript tsx go rust kotlin scala swift php zig solidity groovy dart f# java c# c++ c "
    "objective-c",
    "#": "python ruby perl elixir julia nim shell r make terraform powershell",
    "--": "lua haskell sql",
    "%": "erlang",
    ";": "clojure",
}
_REMARK = {language: mark for mark, names in _REMARKS.items() for language in names.split()}
_UNTIL_NEXT = frozenset({"sql", "haskell", "erlang"})  # what is defined goes on at the margin
_CLOSING = ("}", "end", ")", "]", "$$")
_OPENING = ("{", ")", "begin")  # on a line of its own it goes on with what the line before began
_FUNCTION_WORDS = frozenset("def fn func fun sub proc let defp member filter defn defn- function".split())  # noqa: SIM905
_patterns: dict[str, tuple[re.Pattern[str], ...]] = {}


@dataclass(frozen=True)
class Outlined:
    """What a line seems to define; `own` is its text without remarks and without what is defined inside it."""

    name: str
    qualified: str
    kind: str
    signature: str
    line: int
    end_line: int
    own: str


class _Open:
    """A definition whose end is not seen yet."""

    def __init__(self, place: int, *, indent: int, kind: str, name: str, qualified: str, told: bool) -> None:
        self.place, self.end, self.indent = place, place, indent
        self.kind, self.name, self.qualified, self.told = kind, name, qualified, told
        self.own: list[str] = []


def outline(text: str, *, language: str, most: int) -> tuple[Outlined, ...]:
    """What *text* seems to define, at most so many, in its order; nothing for a language that we know no words of."""
    patterns = _compiled(language)
    if not patterns:
        return ()
    remark = _REMARK.get(language, "\0")
    lines = text.split("\n")
    found: list[_Open] = []
    around: list[_Open] = []
    for place, line in enumerate(lines):
        bare = line.strip()
        if not bare or bare.startswith(remark):
            continue
        indent = len(line) - len(line.lstrip())
        opened = _opened(line, patterns) if len(line) <= LONGEST and len(found) < most else None
        goes_on = (bare.startswith(_OPENING) and bare[-1:] in "{n") or (not opened and language in _UNTIL_NEXT)
        while around and indent <= around[-1].indent and not goes_on:
            closed = around.pop()
            if bare.startswith(_CLOSING) and indent == closed.indent:
                closed.end = place
                break
        if opened:
            kind, owner, name = opened
            outer = around[-1] if around else None
            told = outer is None or outer.kind in CONTAINERS or kind in CONTAINERS
            front = outer.qualified if outer and outer.kind in CONTAINERS else owner
            qualified = f"{front}.{name}" if front else name
            around.append(_Open(place, indent=indent, kind=kind, name=name, qualified=qualified, told=told))
            found.append(around[-1])
        for each in around[-1:]:
            _owner(around).own.append(bare)
            each.end = place
        for each in around[:-1]:
            each.end = place
    return tuple(
        Outlined(
            name=each.name,
            qualified=each.qualified,
            kind=_kind(each),
            signature=lines[each.place].strip().removesuffix(" do").rstrip(" :={;("),
            line=each.place + 1,
            end_line=each.end + 1,
            own="\n".join(each.own),
        )
        for each in found
        if each.told
    )


def _owner(around: list[_Open]) -> _Open:
    """The innermost that is told of: what stands inside a function is its own."""
    return next((each for each in reversed(around) if each.told), around[-1])


def _opened(line: str, patterns: tuple[re.Pattern[str], ...]) -> tuple[str, str, str] | None:
    for pattern in patterns:
        match = pattern.match(line)
        if match and match["name"] not in _NOT_TYPED:
            groups = match.groupdict()
            name = match["name"].strip('"`[]')
            if name:
                return (groups.get("kind") or "function").lower(), groups.get("owner") or "", name
    return None


def _kind(one: _Open) -> str:
    word = one.kind.lstrip("@").rstrip("!")
    if word in _FUNCTION_WORDS:
        return "method" if "." in one.qualified and one.qualified != one.name else "function"
    return {"defmodule": "module", "macro_rules": "macro", "defmacro": "macro"}.get(word, word)


def _compiled(language: str) -> tuple[re.Pattern[str], ...]:
    if language not in _patterns:
        words = "|".join(re.escape(word) for word in _WORDS.get(language, "").split())
        # A name goes on over dots and colons where it is qualified, and may end with a question mark.
        by_word = (
            (re.compile(rf"^\s*{_MODIFIERS}(?P<kind>{words})\*?\s+(?:rec\s+|<[^>]*>\s*)?(?P<name>{_NAME})"),)
            if words
            else ()
        )
        _patterns[language] = (*_OWN.get(language, ()), *by_word)
    return _patterns[language]
