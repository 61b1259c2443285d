"""Find the language of a file, parse it with tree-sitter and run the language's queries, `queries/*.scm`.

The captures of a query are kinds of definitions, and `call`. Three have another meaning: `comment`; `holder` gives its
name to what it holds and is no definition itself; `wrapper` stretches the definition in it.
"""

from __future__ import annotations

import importlib
import re
import threading
import warnings
from functools import cache
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from foreword.projects import ENDINGS, LANGUAGES

if TYPE_CHECKING:  # loaded when the first source file is seen
    from tree_sitter import Language, Node, Query, Tree

LARGEST = 1_000_000  # bytes; nobody writes a longer file by hand
LONGEST = 20_000  # lines, for the same reason
WIDE = 400  # bytes a line on average: minified
# Milliseconds; a file of 100 KB takes 15 to 30. While a file is parsed no other Python runs, and no hook is answered.
PARSE_MS = 100.0
# Each language with its wheel, tree_sitter_NAME, which is also the name of its query; tsx has a query of its own.
GRAMMARS = {name: wheel for name, (_, _, wheel) in LANGUAGES.items() if wheel} | {"tsx": "typescript"}
_LOADERS = {"typescript": "language_typescript", "tsx": "language_tsx", "php": "language_php"}  # else `language`

_BY_HEAD = {b"sh": "shell", b"bash": "shell", b"zsh": "shell", b"node": "javascript"}
_BY_NAME = {"rakefile": "ruby", "gemfile": "ruby", "vagrantfile": "ruby"}
_MORE_ENDINGS = {"tsx": "tsx", "ipynb": "", "hxx": "c++", "tpp": "c++", "phtml": "php", "ksh": "shell", "bats": "shell"}
_IS_CPP = re.compile(rb"^[ \t]*(class|namespace|template|using)\b|::|\b(public|private|protected)\s*:", re.MULTILINE)

_lock = threading.Lock()  # the filters of warnings are those of all threads


def language_of(path: str, *, head: bytes = b"") -> str:
    """Return the language of a file by its name, else by its first line; empty where we have no grammar for it."""
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    if name in _BY_NAME:
        return _BY_NAME[name]
    stem, _, ending = name.rpartition(".")
    if not stem:
        found = re.match(rb"#!.*?\b(python|bash|sh|zsh|ruby|node|php|lua)[\d.]*\b", head[:100])
        return _BY_HEAD.get(found[1], found[1].decode()) if found else ""
    if ending == "h":
        return "c++" if _IS_CPP.search(head) else "c"
    language = _MORE_ENDINGS.get(ending, ENDINGS.get(ending, ""))
    return language if language in GRAMMARS else ""


def is_too_large(source: bytes) -> bool:
    """Return whether *source* is larger than people write, or minified."""
    size, lines = len(source), source.count(b"\n") + 1
    return size > LARGEST or lines > LONGEST or (size > 10 * WIDE and size / lines > WIDE)


def parse(source: bytes, *, language: str) -> Tree | None:
    """Return the tree of *source*; None without a grammar, or where parsing takes longer than PARSE_MS."""
    loaded = _load(language)
    if loaded is None:
        return None
    from tree_sitter import Parser

    parser = Parser(loaded)
    _limit_time(parser)
    try:
        return parser.parse(source)
    except ValueError:  # it took too long
        return None


def captures(tree: Tree, *, language: str, part: str) -> dict[str, list[Node]] | None:
    """Return the nodes that the *part* `definitions` or `calls` of a query finds, by capture.

    None without a query, or where it takes too long: where something is nested a thousand times, the time grows with
    the square of the depth.
    """
    query = compile_query(language, part)
    if query is None:
        return None
    from tree_sitter import QueryCursor

    cursor = QueryCursor(query)
    _limit_time(cursor)
    until = monotonic() + PARSE_MS / 1000
    found = cursor.captures(tree.root_node)
    return found if monotonic() <= until else None


@cache
def compile_query(language: str, part: str) -> Query | None:
    """Return the compiled *part* of a language's query; None where its grammar is not there or does not fit."""
    loaded = _load(language)
    if loaded is None:
        return None
    from tree_sitter import Query

    try:
        return Query(loaded, _query_text("tsx" if language == "tsx" else GRAMMARS[language])[part == "calls"])
    except ValueError:  # a version of the grammar that calls things by other names
        return None


def _query_text(name: str) -> tuple[str, str]:
    """Return the definitions and the calls of a query file, each behind those of the file that it inherits from."""
    text = (Path(__file__).parent / "queries" / f"{name}.scm").read_text(encoding="utf-8")
    definitions, _, calls = text.partition("; calls\n")
    if inherited := re.match(r"; inherits: (\w+)\n", text):
        first = _query_text(inherited[1])
        definitions, calls = first[0] + definitions, first[1] + calls
    return definitions, calls


def _limit_time(parser: Any) -> None:
    """Make a tree-sitter parser or query cursor give up after PARSE_MS.

    The attribute is deprecated, but its successor is worse: a progress callback of the parser crashes the interpreter
    (0.25.2 and 0.26.0 alike), and each piece of text that a read callback hands over is never freed.
    """
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parser.timeout_micros = int(PARSE_MS * 1000)


@cache
def _load(language: str) -> Language | None:
    """Return the grammar, where its wheel is there and of a version that this parser reads."""
    try:
        from tree_sitter import Language

        module: Any = importlib.import_module(f"tree_sitter_{GRAMMARS[language]}")
        with _lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # older wheels hand over a number, which still works
            return Language(getattr(module, _LOADERS.get(language, "language"))())
    except (ImportError, AttributeError, ValueError, TypeError, OSError, KeyError):
        return None
