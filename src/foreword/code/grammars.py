"""A file's name and its first bytes -> the language it is written in, and what its grammar calls a definition."""

from __future__ import annotations

import importlib
import re
import threading
import warnings
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from foreword.projects import ENDINGS

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

LARGEST = 1_000_000  # bytes; nobody writes a longer file by hand
LONGEST = 20_000  # lines, for the same reason
WIDE = 400  # bytes a line on average: minified
# A file of 1 MB takes 150 to 300 ms; what takes longer is no code. No other Python runs while a file is parsed.
PARSE_MS = 400.0

_HEADS = re.compile(rb"#!.*?\b(python|bash|sh|zsh|ruby|node|php|lua)[\d.]*\b")
_BY_HEAD = {b"sh": "shell", b"bash": "shell", b"zsh": "shell", b"node": "javascript"}
_BY_NAME = {"rakefile": "ruby", "gemfile": "ruby", "vagrantfile": "ruby"}
_MORE_ENDINGS = {
    "hxx": "c++",
    "h++": "c++",
    "tpp": "c++",
    "phtml": "php",
    "ksh": "shell",
    "bats": "shell",
}
_PAGES = ("vue", "svelte")  # which hold scripts, among other things
_IS_CPP = re.compile(rb"^[ \t]*(class|namespace|template|using)\b|::|\b(public|private|protected)\s*:", re.MULTILINE)
_SCRIPT, _SCRIPT_END = re.compile(rb"<script\b", re.IGNORECASE), re.compile(rb"</script\s*>", re.IGNORECASE)


@dataclass(frozen=True)
class Grammar:
    """Where a language's parser is, and the queries that find what is defined and what is called.

    Captures are kinds. `holder` gives its name to what it holds and is no definition itself, `wrapper` stretches the
    definition in it, `block` marks where white space has a meaning.
    """

    module: str
    defines: str
    calls: str = ""
    load: str = "language"
    typed_first: bool = False  # `int add(int a)`: what stands in front of a name belongs to its signature
    joint: str = "."  # between a class and its method, as people write it in this language


def language_of(path: str, *, head: bytes = b"") -> str:
    """The language of a file by its name, else by its first line; empty where no grammar of ours reads such files."""
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    if name in _BY_NAME:
        return _BY_NAME[name]
    stem, _, ending = name.rpartition(".")
    if stem:
        if ending == "h":
            return "c++" if _IS_CPP.search(head) else "c"
        if ending in ("tsx", "ipynb"):
            return "tsx" if ending == "tsx" else ""
        language = _MORE_ENDINGS.get(ending) or ENDINGS.get(ending, "")
        return language if language in GRAMMARS or language in _PAGES else ""
    found = _HEADS.match(head[:100])
    return _BY_HEAD.get(found[1], found[1].decode()) if found else ""


def is_source(path: str) -> bool:
    """Whether the name alone says that something may be defined in this file."""
    return bool(language_of(path))


def too_much(source: bytes) -> bool:
    """Whether *source* is larger than people write, or minified."""
    size = len(source)
    if size > LARGEST:
        return True
    lines = source.count(b"\n") + 1
    return lines > LONGEST or (size > 10 * WIDE and size / lines > WIDE)


def only_code(source: bytes, *, language: str) -> tuple[bytes, str]:
    """The scripts of a page that holds other things too, each where it stands, and their language."""
    if language not in _PAGES:
        return source, language
    kept = bytearray(re.sub(rb"[^\n]", b" ", source))
    at = 0
    while found := _SCRIPT.search(source, at):
        start = source.find(b">", found.end()) + 1
        end = _SCRIPT_END.search(source, start) if start else None
        if end is None:
            break  # nor does any that follows end
        kept[start : end.start()] = source[start : end.start()]
        at = end.end()
    return bytes(kept), "typescript"


def parsed(source: bytes, *, language: str, most_ms: float = PARSE_MS, old: Tree | None = None) -> Tree | None:
    """The tree of *source*; nothing without a grammar, or where parsing takes longer than *most_ms*.

    *old* is the tree of an earlier text after `Tree.edit`: what it shares with *source* is not parsed again.
    """
    parser = _parser(language, most_ms)
    if parser is None:
        return None
    try:
        return parser.parse(source) if old is None else parser.parse(source, old)
    except ValueError:  # it took too long
        parser.reset()
        return None


def captured(tree: Tree, *, language: str, what: str, most_ms: float = PARSE_MS) -> dict[str, list[Node]] | None:
    """The nodes that *language* `defines` or `calls`, by kind; nothing without a query, or where it takes too long.

    It does where something is nested a thousand times: the time grows with the square of the depth.
    """
    cursor = _cursor(language, what, most_ms)
    if cursor is None:
        return None
    until = monotonic() + most_ms / 1000
    found = cursor.captures(tree.root_node)
    return found if monotonic() <= until else None


def query(language: str, what: str) -> Query | None:
    """The compiled query of *language* for what it `defines` or `calls`; nothing where there is none."""
    loaded, text = _loaded(language), getattr(GRAMMARS.get(language), what, "")
    if loaded is None or not text:
        return None
    key = (language, what)
    if key not in _queries:
        from tree_sitter import Query

        with _lock:
            try:
                _queries[key] = Query(loaded, text)
            except ValueError:  # a version of the grammar that calls things by other names
                _queries[key] = None
    return _queries[key]


class _OfThread(threading.local):
    """Parsers and cursors are at work for one thread only."""

    def __init__(self) -> None:
        self.parsers: dict[tuple[str, float], Parser] = {}
        self.cursors: dict[tuple[str, str, float], QueryCursor] = {}


_languages: dict[str, Language | None] = {}
_queries: dict[tuple[str, str], Query | None] = {}
_lock = threading.Lock()
_of_thread = _OfThread()


def _parser(language: str, most_ms: float) -> Parser | None:
    """This thread's parser of *language*, which gives up after *most_ms*."""
    loaded = _loaded(language)
    if loaded is None:
        return None
    mine = _of_thread.parsers
    key = (language, most_ms)
    if key not in mine:
        from tree_sitter import Parser

        mine[key] = Parser(loaded)
        _hurry(mine[key], most_ms)
    return mine[key]


def _cursor(language: str, what: str, most_ms: float) -> QueryCursor | None:
    """This thread's cursor of a query, which gives up after *most_ms*."""
    compiled = query(language, what)
    if compiled is None:
        return None
    mine = _of_thread.cursors
    key = (language, what, most_ms)
    if key not in mine:
        from tree_sitter import QueryCursor

        mine[key] = QueryCursor(compiled)
        _hurry(mine[key], most_ms)
    return mine[key]


def _hurry(worker: Any, most_ms: float) -> None:
    """Let a parser or a cursor give up after *most_ms*.

    Told to be old, but what should follow it is worse: a progress callback of the parser crashes the interpreter
    (0.25.2 and 0.26.0 alike), and each piece of text that a read callback hands over is never freed.
    """
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        worker.timeout_micros = max(1, int(most_ms * 1000))


def _loaded(language: str) -> Language | None:
    if language not in _languages:
        grammar = GRAMMARS.get(language)
        with _lock:
            _languages[language] = _load(grammar) if grammar else None
    return _languages[language]


def _load(grammar: Grammar) -> Language | None:
    """The grammar, where its wheel is there and of a version that this parser reads."""
    try:
        from tree_sitter import Language

        module: Any = importlib.import_module(grammar.module)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # older wheels hand over a number, which still works
            return Language(getattr(module, grammar.load)())
    except (ImportError, AttributeError, ValueError, TypeError, OSError):
        return None


_JAVASCRIPT = """
(comment) @comment
[(function_declaration) (generator_function_declaration) (method_definition)] @function
(class_declaration) @class
(variable_declarator name: (identifier) value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) value: (call_expression function: (identifier)
  arguments: (arguments . [(arrow_function) (function_expression)]))) @function
(variable_declarator name: (identifier) value: (class)) @class
(variable_declarator name: (identifier) value: (object)) @holder
(assignment_expression left: [(identifier) (member_expression)]
  right: [(arrow_function) (function_expression) (generator_function)]) @function
(assignment_expression left: [(identifier) (member_expression)] right: (object)) @holder
(pair key: (property_identifier) value: [(arrow_function) (function_expression) (generator_function)]) @function
(export_statement value: [(arrow_function) (function_expression)]) @function
(export_statement value: (object)) @holder
"""
_TYPESCRIPT = (
    _JAVASCRIPT
    + """
(abstract_class_declaration) @class
(public_field_definition name: (_) value: [(arrow_function) (function_expression)]) @function
(interface_declaration) @interface
(type_alias_declaration) @type
(enum_declaration) @enum
"""
)
_JS_CALLS = """
(call_expression function: [(identifier) @call (member_expression property: (property_identifier) @call)])
(new_expression constructor: [(identifier) @call (member_expression property: (property_identifier) @call)])
"""
_JSX_CALLS = """
(jsx_opening_element name: (identifier) @call)
(jsx_self_closing_element name: (identifier) @call)
"""
_C = """
(comment) @comment
(function_definition) @function
(preproc_function_def) @macro
(struct_specifier name: (_) body: (_)) @struct
(union_specifier name: (_) body: (_)) @union
(enum_specifier name: (_) body: (_)) @enum
(type_definition type: [(struct_specifier !name body: (_)) (union_specifier !name body: (_))
  (enum_specifier !name body: (_))] declarator: (type_identifier)) @type
"""
_C_CALLS = """
(call_expression function: [(identifier) @call (field_expression field: (field_identifier) @call)])
"""

GRAMMARS: dict[str, Grammar] = {
    "python": Grammar(
        module="tree_sitter_python",
        defines="""
(comment) @comment
(block) @block
(function_definition) @function
(class_definition) @class
(decorated_definition) @wrapper
""",
        calls="(call function: [(identifier) @call (attribute attribute: (identifier) @call)])\n"
        "(decorator [(identifier) @call (attribute attribute: (identifier) @call)])",
    ),
    "javascript": Grammar(
        module="tree_sitter_javascript",
        defines=_JAVASCRIPT
        + "(field_definition property: (_) value: [(arrow_function) (function_expression)]) @function",
        calls=_JS_CALLS + _JSX_CALLS,
    ),
    "typescript": Grammar(
        module="tree_sitter_typescript", load="language_typescript", defines=_TYPESCRIPT, calls=_JS_CALLS
    ),
    "tsx": Grammar(
        module="tree_sitter_typescript", load="language_tsx", defines=_TYPESCRIPT, calls=_JS_CALLS + _JSX_CALLS
    ),
    "go": Grammar(
        module="tree_sitter_go",
        defines="""
(comment) @comment
[(function_declaration) (method_declaration)] @function
(type_spec type: (struct_type)) @struct
(type_spec type: (interface_type)) @interface
(type_spec type: [(type_identifier) (qualified_type) (map_type) (slice_type) (array_type) (pointer_type)
  (function_type) (channel_type) (generic_type)]) @type
""",
        calls="(call_expression function: [(identifier) @call (selector_expression field: (field_identifier) @call)])",
    ),
    "rust": Grammar(
        module="tree_sitter_rust",
        joint="::",
        defines="""
[(line_comment) (block_comment)] @comment
[(function_item) (function_signature_item)] @function
(struct_item) @struct
(enum_item) @enum
(union_item) @union
(trait_item) @trait
(type_item) @type
(macro_definition) @macro
(impl_item) @holder
""",
        calls="""
(call_expression function: [(identifier) @call (field_expression field: (field_identifier) @call)
  (scoped_identifier name: (identifier) @call) (generic_function function: [(identifier) @call
  (field_expression field: (field_identifier) @call) (scoped_identifier name: (identifier) @call)])])
(macro_invocation macro: (identifier) @call)
""",
    ),
    "java": Grammar(
        module="tree_sitter_java",
        typed_first=True,
        defines="""
[(line_comment) (block_comment)] @comment
[(method_declaration) (constructor_declaration) (compact_constructor_declaration)] @function
(class_declaration) @class
(interface_declaration) @interface
(enum_declaration) @enum
(record_declaration) @record
(annotation_type_declaration) @interface
""",
        calls="(method_invocation name: (identifier) @call)\n"
        "(object_creation_expression type: [(type_identifier) @call (generic_type . (type_identifier) @call)])",
    ),
    "c": Grammar(module="tree_sitter_c", typed_first=True, defines=_C, calls=_C_CALLS),
    "c++": Grammar(
        module="tree_sitter_cpp",
        typed_first=True,
        joint="::",
        defines=_C + "(class_specifier name: (_) body: (_)) @class\n(template_declaration) @wrapper",
        calls=_C_CALLS
        + """
(call_expression function: [(qualified_identifier name: (identifier) @call)
  (template_function name: (identifier) @call)])
(new_expression type: (type_identifier) @call)
""",
    ),
    "ruby": Grammar(
        module="tree_sitter_ruby",
        defines="""
(comment) @comment
[(method) (singleton_method)] @function
(class) @class
(module) @module
""",
        calls="(call method: [(identifier) (constant)] @call)",
    ),
    "php": Grammar(
        module="tree_sitter_php",
        load="language_php",
        joint="::",
        defines="""
(comment) @comment
[(function_definition) (method_declaration)] @function
(assignment_expression left: (variable_name) right: [(anonymous_function) (arrow_function)]) @function
(class_declaration) @class
(interface_declaration) @interface
(trait_declaration) @trait
(enum_declaration) @enum
""",
        calls="""
(function_call_expression function: [(name) @call (qualified_name (name) @call)])
(member_call_expression name: (name) @call)
(nullsafe_member_call_expression name: (name) @call)
(scoped_call_expression name: (name) @call)
(object_creation_expression [(name) @call (qualified_name (name) @call)])
""",
    ),
    "c#": Grammar(
        module="tree_sitter_c_sharp",
        typed_first=True,
        defines="""
(comment) @comment
[(method_declaration) (constructor_declaration) (local_function_statement)] @function
(class_declaration) @class
(struct_declaration) @struct
(interface_declaration) @interface
(record_declaration) @record
(enum_declaration) @enum
""",
        calls="""
(invocation_expression function: [(identifier) @call (generic_name (identifier) @call)
  (member_access_expression name: [(identifier) @call (generic_name (identifier) @call)])])
(object_creation_expression type: [(identifier) @call (generic_name (identifier) @call)])
""",
    ),
    "shell": Grammar(
        module="tree_sitter_bash",
        defines="(comment) @comment\n(function_definition) @function",
        calls="(command name: (command_name (word) @call))",
    ),
    "lua": Grammar(
        module="tree_sitter_lua",
        defines="""
(comment) @comment
(function_declaration) @function
(assignment_statement (variable_list . name: (_)) (expression_list . value: (function_definition))) @function
(assignment_statement (variable_list . name: (_)) (expression_list . value: (table_constructor))) @holder
(field name: (identifier) value: (function_definition)) @function
""",
        calls="(function_call name: [(identifier) @call (dot_index_expression field: (identifier) @call)\n"
        "  (method_index_expression method: (identifier) @call)])",
    ),
    "kotlin": Grammar(
        module="tree_sitter_kotlin",
        defines="""
[(line_comment) (block_comment)] @comment
(function_declaration) @function
(class_declaration) @class
(object_declaration) @object
""",
        calls="(call_expression . [(identifier) @call (navigation_expression (identifier) @call .)])",
    ),
    "scala": Grammar(
        module="tree_sitter_scala",
        defines="""
[(comment) (block_comment)] @comment
[(function_definition) (function_declaration)] @function
(class_definition) @class
(object_definition) @object
(trait_definition) @trait
(enum_definition) @enum
""",
        calls="(call_expression function: [(identifier) @call (field_expression field: (identifier) @call)])\n"
        "(instance_expression (type_identifier) @call)",
    ),
    "swift": Grammar(
        module="tree_sitter_swift",
        defines="""
[(comment) (multiline_comment)] @comment
[(function_declaration) (init_declaration)] @function
(class_declaration) @class
(protocol_declaration) @protocol
""",
        calls="(call_expression . [(simple_identifier) @call\n"
        "  (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @call))])",
    ),
}
