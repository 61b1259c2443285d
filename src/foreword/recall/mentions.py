"""Find the files and the functions that a prompt names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foreword.terms import lazy_pattern

MOST = 20  # of each; who pastes more names none in particular
READ = 800  # characters at the beginning and at the end, which are the user's own
PASTED = 6_000  # at the end of what lies between: where a failure ends, it is named; 1 ms for all three
LONGEST = 300  # characters that can be a name

_ENDINGS = frozenset(
    """adoc astro bash bat c cc cfg cjs clj cljs cmake conf cpp cs csproj css csv cts cxx dart ejs env erb erl
    ex exs fs fsx gemspec go gql gradle graphql groovy h hbs hh hpp hs htm html hxx ini ino ipynb java jinja
    jinja2 jl js json json5 jsonc jsonl jsx kt kts less lock log lua m md mdx mjs mk ml mli mm mod mts nim nix
    patch php pl plist pm po prisma properties proto ps1 py pyi pyx r rake rb rs rst sass sbt scala scss service
    sh sln sol sql sum svelte svg swift tcl tex tf tfvars toml ts tsv tsx txt vim vue wsdl xml xsd yaml yml zig
    zsh""".split()  # noqa: SIM905 - words are read better than quoted strings
)
_NAMES = frozenset(
    """.dockerignore .editorconfig .env .gitattributes .gitignore CODEOWNERS Containerfile Dockerfile Gemfile
    Jenkinsfile Justfile Makefile Pipfile Procfile README Rakefile Vagrantfile justfile""".split()  # noqa: SIM905
)
# What is written like a file or like a name in code, and is neither.
_PRODUCTS = frozenset(
    """asp.net backbone.js chart.js d3.js discord.js ember.js express.js moment.js next.js node.js nuxt.js p5.js
    react.js three.js vue.js chatgpt clickhouse deepseek devops dynamodb fastapi github gitlab graphql
    huggingface iphone javascript jquery langchain linkedin macos mariadb mongodb mysql nodejs numpy oauth
    openai opencode openapi opentelemetry postgresql powershell pypi pytorch rabbitmq sqlalchemy sqlite
    stackoverflow typescript webassembly websocket wordpress youtube""".split()  # noqa: SIM905
)
_FRAME = lazy_pattern(r'File "([^<\n][^\n]{0,300}?)", line \d+(?:, in ([^\n]{0,300}))?')  # of Python's tracebacks
_ELSEWHERE = ("/site-packages/", "/node_modules/", "/lib/python", "/usr/lib/", "/go/pkg/", "/.cargo/")
_NEVER_IN_A_PATH = frozenset("<>|\"*?\0{}$=(),;`'!^%")
_OPENING, _CLOSING = "([{<\"'`*,;:!?|=…“‘«", ")]}>\"'`*,;:!?|.…”’»"


def mentioned(text: str, *, root: str = "") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files that *text* names, relative to *root* where they lie in it, and the functions, as written.

    A qualified function is named by its last part too.
    """
    files: dict[str, None] = {}
    functions: dict[str, None] = {}
    folder = f"{root.rstrip('/')}/" if root.strip("/") else "\0"
    for part, most, step in _parts(text):
        patch = "+++ b/" in part or "diff --git " in part
        for word in dict.fromkeys(part.split()[::step]):
            bare = word.strip("\"'").rstrip(".,;:!?\"'")
            if bare.isalpha() and (bare.islower() or bare[1:].islower()) and bare not in _NAMES:
                continue  # most words of any prose
            if len(word) > LONGEST or word[:4].isdigit() or word[:3] == "```":
                continue  # data, a time, the language of a block
            file, function = _named(word[2:] if patch and word[:2] in ("a/", "b/") else word)
            _keep(files, (_placed(file, folder),), most=most)
            _keep(functions, _names(function), most=most)
    for file, function in reversed(_FRAME.findall(text)[-MOST:]):  # the innermost first
        _keep(files, (_placed(file, folder),), most=MOST)
        _keep(functions, _names(function.strip()), most=MOST)
    return tuple(files), tuple(functions)


def _named(word: str) -> tuple[str, str]:
    """Return the file and the function that *word* names; both empty where it names none."""
    quoted = "`" in word
    word = word.rpartition("](")[2].lstrip(_OPENING)  # also the target of a link
    chosen = word[:1] == "@"  # as hosts write what was picked from a list of files
    word = word[1:].lstrip(_OPENING) if chosen else word.removeprefix("file://")
    if "://" in word:
        return "", ""
    word, scoped, inner = word.partition("::")
    word, called, rest = word.partition("(")
    name = word.rstrip(_CLOSING).removesuffix("'s").removesuffix("’s")
    path = _path(name, chosen=chosen)
    inner = inner.partition("(")[0].rstrip(_CLOSING)
    if path:
        return path, inner.partition("[")[0]  # a node id of pytest
    if scoped:
        return "", f"{word}::{inner}"
    is_function = (called and rest[:1] == ")") or (quoted and len(name) > 2) or _is_compound(name)
    return "", name if is_function else ""


def _path(word: str, *, chosen: bool) -> str:
    """Return *word* without its line number, with slashes, if it is the path of a file; else nothing."""
    word = word.partition("#L")[0]
    for _ in range(2):  # line and column
        name, _, number = word.rpartition(":")
        word = name if name and number.replace("-", "").isdigit() else word
    if "\\" in word:
        word = word.replace("\\\\", "\\").replace("\\", "/")
    name = word.rpartition("/")[2]
    stem, _, ending = name.rpartition(".")
    known = (stem.strip(".") and ending.lower() in _ENDINGS and stem not in ("self", "this")) or name in _NAMES
    # A name without an ending may be a folder: only if it is written as a path, or was chosen as one.
    if not (known or ((chosen or word[:2] in ("./", "..")) and word.strip("./") and "/" in word)):
        return ""
    return "" if word.lower() in _PRODUCTS or not _NEVER_IN_A_PATH.isdisjoint(word) else word


def _placed(path: str, folder: str) -> str:
    """Return *path* relative to the project's *folder*; nothing for what belongs to somebody else."""
    if path.startswith(folder):
        path = path[len(folder) :]
    elif path[:1] == "/":
        return "" if any(place in path for place in _ELSEWHERE) else path
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _is_compound(name: str) -> bool:
    """Return whether only code spells like this: `snake_case`, `CamelCase`, `Class.method`."""
    if name.lower() in _PRODUCTS:
        return False
    first, dot, second = name.partition(".")
    if dot and first[:1].isupper() and first[1:].islower() and (second[:1].islower() or second[:1] == "_"):
        return True
    return any(
        ("_" in part.strip("_") and part.lower() == part)
        or (len(part) > 3 and part[1:].lower() != part[1:] and part.rstrip("s").upper() != part.rstrip("s"))
        for part in name.split(".")
    )


def _keep(kept: dict[str, None], names: Sequence[str], *, most: int) -> None:
    for name in names:
        if name and len(kept) < most:
            kept[name] = None


def _names(function: str) -> tuple[str, ...]:
    """Return a function's name and, where it is qualified, its last part; none for what is no name anywhere."""
    function = function.removeprefix("self.").removeprefix("this.")
    parts = function.replace("::", ".").split(".")
    if not all(part.isidentifier() for part in parts):
        return ()
    return (function, parts[-1]) if len(parts) > 1 else () if function[:2] == "__" else (function,)


def _parts(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield what is read of *text*, how much is kept then, and the step: its beginning, then backwards from its end."""
    if len(text) <= 2 * READ + PASTED:
        yield text, MOST, 1
        return
    head, tail = text[:READ].rsplit(None, 1), text[-READ - PASTED :].split(None, 1)  # no word is cut in two
    yield head[0] if head else "", MOST // 2, 1
    yield tail[-1] if tail else "", MOST, -1
