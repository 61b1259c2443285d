"""Settings and the package's light modules -> hook.py, one file that needs nothing but an interpreter."""

from __future__ import annotations
import __future__

import _imp
import ast
import binascii
import hashlib
import importlib.util
import marshal
import os
import secrets
import shlex
import sys
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import Any

from foreword import switches
from foreword.config import Settings, load_synonyms
from foreword.hosts import FILES, codex
from foreword.paths import Home, worker_command
from foreword.recipes import RECIPES, Recipe, ledger_of

# In the order of the data. What they import is checked by a test that loads them with `-I -S`.
LIGHT = (
    "values",
    "errors",
    "jsontext",
    "types",
    "words",
    "rarity",
    "tokens",
    "recipes",
    "projects",
    "switches",
    "languages",
    "tasks",
    "mentions",
    "payloads",
    "redact",
    "redact.patterns",
    "redact.keywords",
    "redact.private_tags",
    "redact.files",
    "capture",
    "spool",
    "trouble",
    "query",
    "search",
    "rank",
    "fit",
    "render",
    "render.text",
    "render.lines",
    "recall",
    "store.finding",
    "store.reading",
    "hosts",
    *(f"hosts.{file}" for file in FILES.values()),
    "hook.fallback",
)
# Packages whose own file is not light, or empty: inside the hook they are only names.
BARE = ("foreword", "foreword.store", "foreword.hook")
PACKAGE = Path(__file__).resolve().parent.parent
ANNOTATIONS = __future__.annotations.compiler_flag
MAGIC = importlib.util.MAGIC_NUMBER.hex()
MARSHAL = 2  # later formats refer to objects that happen to be shared, and so differ from process to process
OPTIMIZE = 2  # without docstrings and asserts: a third less to read at every call
STDIN_SECONDS = 2.0
ALL_SECONDS = 4.2  # hosts are told five
SYNONYMS_MOST = 8_000  # characters of synonyms; ours are 1,300, and cost a hook 0.03 ms


def interpreter() -> str:
    """The real interpreter behind a virtual environment: the hook needs no packages, so it outlives the environment."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def command(home: Home, *, host: str, event: str) -> list[str]:
    """The hook by the interpreter itself; hosts are told the launcher, whose path never changes."""
    return [interpreter(), "-I", "-S", str(home.hook), "--host", host, event]


def launchers(home: Home) -> dict[Path, str]:
    """What hosts start: two short scripts that find the interpreter, so that it may move without a word to any host.

    Without the hook or any Python they leave in peace: exit 2 would block a prompt in some hosts.
    """
    hook = LAUNCH_HOOK.format(python=shlex.quote(interpreter()), hook=shlex.quote(str(home.hook)))
    mcp = LAUNCH_MCP.format(
        python=shlex.quote(sys.executable),
        home=shlex.quote(str(home.root)),
        package=shlex.quote(str(PACKAGE.parent)),
        start=shlex.quote(START_MCP),
    )
    return {home.launcher: hook, home.mcp: mcp}


LAUNCH_HOOK = """\
#!/bin/sh
# Written by Foreword, and again whenever it or its Python moves. What your agents run as their hook.
python={python}
[ -x "$python" ] || python=$(command -v python3) || exit 0
[ -r {hook} ] || exit 0
exec "$python" -I -S {hook} "$@"
"""
LAUNCH_MCP = """\
#!/bin/sh
# Written by Foreword, and again whenever it or its Python moves. What your agents run as their MCP server.
python={python}
[ -x "$python" ] || {{ echo "foreword: $python is gone; install Foreword again and run foreword doctor" >&2; exit 1; }}
[ -n "$FOREWORD_HOME" ] || export FOREWORD_HOME={home}
[ -r {package}/foreword/mcp/__main__.py ] || exec "$python" -P -m foreword.mcp
exec "$python" -I -S -c {start} {package}
"""
# Without `site` and what it loads for others: a client waits for this at every start of a session.
START_MCP = "import sys; sys.path.append(sys.argv[1]); from foreword.mcp.__main__ import main; sys.exit(main())"


def refresh(home: Home, settings: Settings) -> bool:
    """Write hook.py and its cache if they would differ, each in one step; a hook that is running keeps the old ones."""
    worker = worker_command() if settings.worker_autostart else []
    changed = not _is_cached(home.hook_cache) and _write(home.hook_cache, cached())
    changed = _write(home.hook, built(home, settings, worker=worker).encode()) or changed
    for path, text in launchers(home).items():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        changed = _write(path, text.encode(), mode=0o700) or changed
    return changed


def built(home: Home, settings: Settings, *, worker: list[str]) -> str:
    """The text of hook.py; the same settings and modules give the same bytes.

    A head of a few lines runs the pipe, compiled already: compiling it at every call would cost 2 ms. Behind it, packed
    into one comment, comes the source of the pipe and of the light modules, for an interpreter of another version and
    for the day the cache is gone. The interpreter reads all of the file at every call, so small is fast.
    """
    pipe = _bare(ast.parse((PACKAGE / "hook" / "pipe.py").read_text(encoding="utf-8")))
    for statement in pipe.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "CONFIG":
            statement.value = ast.parse(repr(config(home, settings, worker=worker)), mode="eval").body
    source = ast.unparse(ast.fix_missing_locations(pipe))
    code = _without_lines(compile(source, "hook.py", "exec", dont_inherit=True, optimize=OPTIMIZE))
    head = HEAD.format(magic=MAGIC, code=marshal.dumps(code, MARSHAL).hex())
    packed = zlib.compress(marshal.dumps({"pipe": source, **_sources()}, MARSHAL), 9)
    return f"{head}#{binascii.b2a_base64(packed, newline=False).decode()}"


def cached() -> bytes:
    """The light modules as the hook wants them, without the unpacking that the one file needs: 1.5 ms less."""
    data = marshal.dumps((MAGIC, fingerprint(), _codes()))
    return _imp.source_hash(0, data) + data


def _is_cached(path: Path) -> bool:
    """Whether the cache is this build's; its bytes differ from process to process."""
    try:
        data = path.read_bytes()
        if data[:8] != _imp.source_hash(0, data[8:]):
            return False
        magic, build, _ = marshal.loads(data[8:])  # noqa: S302 - a file of our own, in a folder of our own
    except (OSError, ValueError, EOFError, TypeError):
        return False
    return bool((magic, build) == (MAGIC, fingerprint()))


HEAD = """\
import marshal
from _frozen_importlib_external import MAGIC_NUMBER
if MAGIC_NUMBER.hex() == '{magic}':
    exec(marshal.loads(bytes.fromhex('{code}')))
else:
    from binascii import a2b_base64
    from zlib import decompress
    with open(__file__, 'rb') as file:
        exec(marshal.loads(decompress(a2b_base64(file.read().rpartition(b'\\n#')[2])))['pipe'])
"""


def _write(path: Path, data: bytes, *, mode: int = 0o600) -> bool:
    try:
        if path.read_bytes() == data and path.stat().st_mode & 0o777 == mode:
            return False
    except OSError:
        pass
    fd, unfinished = tempfile.mkstemp(prefix=".hook-", dir=path.parent)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        os.fchmod(file.fileno(), mode)
    os.replace(unfinished, path)
    return True


def config(home: Home, settings: Settings, *, worker: list[str]) -> dict[str, Any]:
    """Everything the hook must know; it reads no settings of its own."""
    return {
        "build": fingerprint(),
        "cache": str(home.hook_cache),
        "package": str(PACKAGE.parent),
        "worker": worker,
        "home": str(home.root),
        "socket": str(home.socket),
        "spool": str(home.spool),
        "spool_most": settings.spool_max_mb * 1024 * 1024,
        "stamp": str(home.stamp),
        "start_log": str(home.start_log),
        "database": str(home.database),
        "trouble": str(home.trouble),
        "head": settings.stdin_head_kb * 1024,
        "tail": settings.stdin_tail_kb * 1024,
        "deadline_prompt": settings.deadline_prompt_ms / 1000,
        "deadline_start": settings.deadline_start_ms / 1000,
        "deadline_huge": settings.deadline_huge_ms / 1000,
        "deadline_stdin": STDIN_SECONDS,
        "deadline_all": ALL_SECONDS,
        **switches.chosen(settings),
        "deny": settings.deny_paths,
        "key": key_of(home),
        "thresholds": thresholds(settings),
        "recipes": {} if settings.recipes == RECIPES else _plain(settings.recipes),
        "most_terms": settings.terms_max,
        "postings": settings.postings_budget,
        "family": settings.tokenizer,
        "caps": caps(settings),
        "synonyms": _packed(load_synonyms(home)[0]),
    }


def key_of(home: Home) -> int:
    """What keys the digests of a hook's environment: random, made once for a home, in a file for its user alone."""
    path = home.hook_key
    for _ in range(2):  # of two who make it at once, one is first
        with suppress(OSError, ValueError):
            return int(path.read_text(encoding="ascii"), 16)
        with suppress(OSError), open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{secrets.randbits(62) | 1:016x}")  # a C long, and not the 0 that means none
    return 0  # nobody can write here: the hook tells nothing


def _packed(synonyms: Mapping[str, Sequence[str]]) -> str:
    """A line for each word, the user's first, as many as fit: every hook reads this, and hardly any needs it."""
    packed = ""
    for word, others in reversed(list(synonyms.items())):
        line = f"{word} {' '.join(others)}\n"
        packed += line if len(packed) + len(line) <= SYNONYMS_MOST else ""
    return packed


def thresholds(settings: Settings) -> dict[str, float]:
    """The score below which nothing is shown, by moment; a compaction keeps what a start would show."""
    return {
        "session_start": settings.threshold_session_start,
        "compaction": settings.threshold_session_start,
        "prompt": settings.threshold_prompt,
        "question": settings.threshold_question,
    }


def caps(settings: Settings) -> dict[str, int]:
    """What hosts take in one output, where the user raised it there: host -> what its cap counts."""
    return {"codex": settings.codex_context_tokens * codex.BYTES_A_TOKEN}


def fingerprint() -> str:
    """Changes whenever any file of the package does: the same version may be another build."""
    seen = hashlib.blake2b(digest_size=8)
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in (".py", ".sql", ".toml", ".js", ".md"):
            stat = path.stat()
            seen.update(f"{path.relative_to(PACKAGE)} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return seen.hexdigest()


def _sources() -> dict[str, tuple[bool, str]]:
    """Each light module by name: whether it is a package, and its bare source.

    To write them bare takes a second, at every first start in a new home: what came of it is kept where the interpreter
    keeps what it compiled, and where nobody can write there, it is made again.
    """
    kept, build = PACKAGE / "hook" / "__pycache__" / f"light.{MAGIC}", fingerprint()
    with suppress(OSError, ValueError, EOFError, TypeError):
        data = kept.read_bytes()
        if data[:8] == _imp.source_hash(0, data[8:]):
            known, sources = marshal.loads(data[8:])  # noqa: S302 - as much ours as the package itself
            if known == build:
                return dict(sources)
    made = _bared()
    data = marshal.dumps((build, made))
    if not sys.dont_write_bytecode:
        with suppress(OSError):
            _write(kept, _imp.source_hash(0, data) + data)
    return made


def _bared() -> dict[str, tuple[bool, str]]:
    found = dict.fromkeys(BARE, (True, ""))
    for name in LIGHT:
        path = PACKAGE.joinpath(*name.split("."))
        is_package = path.is_dir()
        path = path / "__init__.py" if is_package else path.with_suffix(".py")
        bare = ast.unparse(_bare(ast.parse(path.read_text(encoding="utf-8"))))
        # The fields of a value are annotations, which name types that are not there.
        found[f"foreword.{name}"] = is_package, f"from __future__ import annotations\n{bare}"
    return found


def _codes() -> dict[str, tuple[bool, bytes]]:
    """The same, compiled for this interpreter."""
    return {
        name: (is_package, marshal.dumps(_without_lines(_compiled(name, source))))
        for name, (is_package, source) in _sources().items()
    }


def _compiled(name: str, source: str) -> CodeType:
    # The flag stands for the import, which would read a file at run time.
    bare = source.removeprefix("from __future__ import annotations\n")
    code: CodeType = compile(bare, name, "exec", dont_inherit=True, optimize=OPTIMIZE, flags=ANNOTATIONS)
    return code


def _without_lines(code: CodeType) -> CodeType:
    """Without line numbers: the interpreter reads the whole file at every call, and nobody reads these."""
    inner = tuple(_without_lines(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=inner)


def _plain(recipes: Mapping[str, Recipe]) -> dict[str, Any]:
    """Recipes as the table that `recipes.merged` reads."""
    return {"ledger": ledger_of(recipes)} | {
        moment: {
            "budget": recipe.budget,
            **{
                layer.name: {
                    "cap": layer.cap,
                    "limit": layer.limit,
                    **({"limit_away": layer.limit_away} if layer.limit_away else {}),
                    **layer.groups,
                }
                for layer in recipe.layers
            },
        }
        for moment, recipe in recipes.items()
    }


def _bare(tree: ast.Module) -> ast.Module:
    """The same program without what only people and mypy read: docstrings, annotations, TYPE_CHECKING blocks."""
    stripped: ast.Module = _Stripper().visit(tree)
    return ast.fix_missing_locations(stripped)


class _Stripper(ast.NodeTransformer):
    def __init__(self) -> None:
        self.apart: set[str] = set()  # functions that the hook never calls

    def visit_keyword(self, node: ast.keyword) -> ast.AST | None:
        self.generic_visit(node)
        name = node.value.func if isinstance(node.value, ast.Call) else node.value
        return None if isinstance(name, ast.Name) and name.id in {"apart", *self.apart} else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if node.module == "__future__" else node  # importing it at run time costs a file

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.orelse if ast.unparse(node.test) == "TYPE_CHECKING" else node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None or isinstance(getattr(node, "parent", None), ast.ClassDef):
            return node  # the fields of a value are its annotations
        return ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        for child in node.body:
            child.parent = node  # type: ignore[attr-defined]
        self.generic_visit(node)
        node.body = _without_docstring(node.body)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        if any(isinstance(each, ast.Name) and each.id == "apart" for each in node.decorator_list):
            self.apart.add(node.name)
            return None
        self.generic_visit(node)
        node.returns = None
        for argument in (
            *node.args.posonlyargs,
            *node.args.args,
            *node.args.kwonlyargs,
            node.args.vararg,
            node.args.kwarg,
        ):
            if argument is not None:
                argument.annotation = None
        node.body = _without_docstring(node.body)
        return node

    def visit_Module(self, node: ast.Module) -> ast.AST:
        self.generic_visit(node)
        node.body = _without_docstring(node.body)
        return node


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    prose = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    return (body[1:] or [ast.Pass()]) if prose else body
