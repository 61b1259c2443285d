"""Define every setting, load them from config.toml and the environment, and change one line of that file.

Nothing that a user writes raises while loading: a broken value means the default, and a sentence says why.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from foreword import models
from foreword.errors import BadConfig, ForewordError
from foreword.layout import LAYOUT, TriggerLayout, merge_layout, shorten
from foreword.models import POSTINGS
from foreword.paths import Home, expand

MOST_BYTES = 64 * 1024  # every setting written out with its comment is 4 KB
PACKAGED_SYNONYMS = Path(__file__).with_name("synonyms.toml")
TOKENIZERS = ("auto", *models.TOKENIZERS)
# Texts that are free but for their form; each may be empty. A key does not fit, so that none is written down.
FORMS = {
    "address": (r"https?://[^\s@?#]+", "an http or https address, without a name, key or query in it"),
    "model": (r"[\w./:-]{1,128}", "a model's name"),
    "variable": (r"[A-Z_][A-Z0-9_]{0,63}", "the name of an environment variable, in capitals"),
    "key_source": (
        r"[A-Z_][A-Z0-9_]{0,63}|~?/[^\s]{1,255}",
        "the name of an environment variable, or the path of a file",
    ),
}
_SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_FOREVER = 36_500  # days


@dataclass(frozen=True)
class Setting:
    """One thing the user may change: its kind is bool, int, float, str, list, patterns, or one of FORMS."""

    name: str
    default: Any
    kind: str
    unit: str
    what: str
    lowest: float = 0
    highest: float = 0
    choices: tuple[str, ...] = ()  # of a str

    @property
    def env(self) -> str:
        return f"FOREWORD_{self.name.upper()}"


def _setting(
    default: object,
    what: str,
    *,
    unit: str = "",
    kind: str = "",
    between: tuple[float, float] = (0, 0),
    choices: tuple[str, ...] = (),
) -> Any:
    about = {
        "what": what,
        "unit": unit,
        "kind": kind or type(default).__name__,
        "lowest": between[0],
        "highest": between[1],
        "choices": choices,
    }
    return field(default=default, metadata=about)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Every setting with its default, its range and what it does; docs/settings.md is written from it."""

    capture: bool = _setting(True, "Store what happens in sessions.")
    inject: bool = _setting(True, "Give context to sessions and prompts.")
    off_projects: tuple[str, ...] = _setting(
        (), "Neither capture nor inject in these projects.", kind="list", unit="folders or project keys"
    )
    read_only_projects: tuple[str, ...] = _setting(
        (), "Inject in these projects, and capture nothing.", kind="list", unit="folders or project keys"
    )
    silent_projects: tuple[str, ...] = _setting(
        (), "Capture in these projects, and inject nothing.", kind="list", unit="folders or project keys"
    )
    deny_paths: tuple[str, ...] = _setting(
        (),
        "Files whose contents are never stored, besides the built-in ones.",
        kind="patterns",
        unit="names or ends of paths",
    )
    # Agents stop a hook after 5 s; half a second is left for the interpreter to start and end.
    deadline_prompt_ms: int = _setting(300, "Longest wait of a prompt for its context.", unit="ms", between=(50, 4500))
    deadline_start_ms: int = _setting(
        1000, "Longest wait of a session start for its context.", unit="ms", between=(50, 4500)
    )
    deadline_huge_ms: int = _setting(1500, "Longest time a hook spends on huge input.", unit="ms", between=(50, 4500))
    worker_autostart: bool = _setting(True, "Let a hook that finds no worker start one for the next event.")
    worker_idle_minutes: float = _setting(
        30.0, "The worker exits after so long without a request.", unit="minutes", between=(0.01, 1e4)
    )
    viewer_idle_minutes: float = _setting(
        30.0, "The viewer exits after so long without a request.", unit="minutes", between=(0.01, 1e4)
    )
    worker_log_kb: int = _setting(1024, "The worker's log is rotated at this size.", unit="KB", between=(16, 102_400))
    log_level: str = _setting(
        "info", "How much the worker writes to its log.", choices=("debug", "info", "warning", "error")
    )
    event_text_kb: int = _setting(
        64, "A longer text of an event keeps its head and its tail.", unit="KB", between=(1, 1024)
    )
    # The hook may use 96 MB in all, and a text is held a few times over while it is parsed and redacted.
    stdin_head_kb: int = _setting(
        1024, "How much of the start of huge input a hook reads.", unit="KB", between=(64, 8192)
    )
    stdin_tail_kb: int = _setting(256, "How much of the end of huge input a hook keeps.", unit="KB", between=(16, 8192))
    spool_max_mb: int = _setting(
        256, "Maximum size of the spool, which holds events while no worker runs.", unit="MB", between=(1, 10_240)
    )
    tokenizer: str = _setting(
        "auto",
        "The tokenizer family that budgets count in; auto takes the one of the session's model.",
        unit="family",
        choices=TOKENIZERS,
    )
    # Codex's own default. Its hooks must hold the same number, which `foreword install codex` writes.
    codex_context_tokens: int = _setting(
        2500,
        "Maximum that Codex accepts from one hook (`additionalContextLimit`); run `foreword install codex` after.",
        unit="Codex's tokens",
        between=(500, 100_000),
    )
    search_limit: int = _setting(20, "Default number of search results.", unit="memories", between=(1, 200))
    terms_max: int = _setting(10, "Maximum number of search terms taken from a prompt.", unit="terms", between=(1, 32))
    postings_budget: int = _setting(
        POSTINGS,
        "How much of the word index one prompt may read, rarest terms first.",
        unit="postings",
        between=(100, 10_000_000),
    )
    # recall/rank.py owns the score; these are where it cuts. Strictest where the user has not said anything yet.
    threshold_session_start: float = _setting(
        0.12, "Minimum score of a memory at session start.", unit="score", between=(0, 1)
    )
    threshold_prompt: float = _setting(0.093, "Minimum score of a memory with a prompt.", unit="score", between=(0, 1))
    threshold_question: float = _setting(
        0.03, "Minimum score of a memory for a question.", unit="score", between=(0, 1)
    )
    prompt_style: str = _setting(
        "notes",
        "What comes with a prompt: a few notes with their substance, or an index of one-line entries to fetch from.",
        choices=("notes", "index"),
    )
    hints: bool = _setting(
        True, "Give a hint before a command that failed before, and after a failure with a known fix."
    )
    agent_notes: bool = _setting(False, "Ask the agent for its own notes after substantial work, once a session.")
    # Off: they help a little and weigh 146 MB (docs/log.md). Nothing leaves the machine unless it is `remote`.
    embeddings: str = _setting(
        "off",
        "Search with embeddings too, from a table on this machine or from your own endpoint.",
        choices=("off", "local", "remote"),
    )
    embeddings_url: str = _setting("", "The OpenAI-compatible endpoint of remote embeddings.", kind="address")
    embeddings_model: str = _setting("", "The model that the endpoint uses.", kind="model")
    embeddings_key_env: str = _setting(
        "", "The variable in the worker's environment that holds the endpoint's key, if it needs one.", kind="variable"
    )
    embeddings_timeout_ms: int = _setting(
        2000, "Timeout of one request to the endpoint.", unit="ms", between=(50, 60_000)
    )
    # Off, and nothing of it is imported. A session costs some 4,000 tokens: the cap is a dozen sessions a day.
    model_provider: str = _setting(
        "off", "Let a model of yours improve the summaries of sessions.", choices=("off", "anthropic", "openai")
    )
    model_name: str = _setting("", "The name of the model.", kind="model")
    model_url: str = _setting(
        "", "Its address, if not the maker's own; openai means any compatible endpoint.", kind="address"
    )
    model_key_env: str = _setting(
        "", "The variable in the worker's environment, or the file, that holds the key.", kind="key_source"
    )
    model_daily_tokens: int = _setting(
        50_000, "Maximum number of tokens in any 24 hours.", unit="tokens", between=(0, 100_000_000)
    )
    model_seconds: float = _setting(60.0, "Timeout of one request to the model.", unit="seconds", between=(1, 600))
    # 0 keeps it for ever; after a jump of the clock nothing goes by age (docs/maintenance.md).
    events_keep_days: int = _setting(
        180, "How long raw events are kept after extraction.", unit="days", between=(0, _FOREVER)
    )
    traces_keep_days: int = _setting(
        365,
        "How long traces are kept: texts of injections, fetches, reasons for no context, undo data of the log.",
        unit="days",
        between=(0, _FOREVER),
    )
    inactive_keep_days: int = _setting(
        365,
        "How long superseded, stale and discarded memories are kept; rules, decisions and the like always are.",
        unit="days",
        between=(0, _FOREVER),
    )
    observations_keep_days: int = _setting(
        730, "How long observations and changed functions are kept.", unit="days", between=(0, _FOREVER)
    )
    # A year of eight sessions a day is some hundred MB.
    store_max_mb: int = _setting(
        2048,
        "Maximum size of the store; beyond it the oldest goes, raw events first; 0 is no maximum.",
        unit="MB",
        between=(0, 1_048_576),
    )
    # Once a day for each project; five minutes without a hook are a break, and the worker stays for thirty.
    tidy: bool = _setting(
        True, "Let the idle worker merge duplicates, resolve contradictions and mark stale; `foreword log` lists it."
    )
    tidy_idle_minutes: float = _setting(
        5.0, "The worker tidies after so long without a request.", unit="minutes", between=(0.01, 1e4)
    )
    backups_keep: int = _setting(5, "Number of backups that are kept, newest first.", unit="backups", between=(1, 100))
    layout: Mapping[str, TriggerLayout] = field(default_factory=lambda: LAYOUT)


SETTINGS = tuple(Setting(name=each.name, default=each.default, **each.metadata) for each in fields(Settings)[:-1])
_BY_NAME = {setting.name: setting for setting in SETTINGS}


# ---- load


@dataclass(frozen=True)
class Loaded:
    """Settings that can always be used, the origin of each, and a sentence for each mistake."""

    settings: Settings
    origin: Mapping[str, str]  # name -> default, file or environment
    problems: tuple[str, ...]


def load(home: Home, environ: Mapping[str, str]) -> Loaded:
    """Read the settings: the environment over the file over the defaults."""
    file = _read(home.config)
    values: dict[str, Any] = {setting.name: setting.default for setting in SETTINGS}
    origin = dict.fromkeys((*values, "layout"), "default")
    mistakes: list[tuple[tuple[str, ...], str]] = []
    for name, value in file.table.items():
        if name == "layout":
            continue
        try:
            values[name] = _expanded(check(find_setting(name), value), environ)
            origin[name] = "file"
        except BadConfig as exc:
            mistakes.append(((name,), f"{exc}; {exc.hint}"))
    layout, wrong = merge_layout(file.table.get("layout", {}))
    mistakes += [(("layout", *each.path), each.message) for each in wrong]
    if layout != LAYOUT:
        origin["layout"] = "file"
    problems = file.problems + _with_lines(home.config, file.text, mistakes)
    for setting in SETTINGS:
        if text := environ.get(setting.env, ""):
            try:
                values[setting.name] = _expanded(check(setting, from_text(setting, text)), environ)
                origin[setting.name] = "environment"
            except BadConfig as exc:
                problems += (f"{setting.env} in the environment is ignored: {exc}",)
    return Loaded(settings=Settings(**values, layout=layout), origin=origin, problems=problems)


def load_synonyms(home: Home) -> tuple[Mapping[str, tuple[str, ...]], tuple[str, ...]]:
    """Return each word with its synonyms, the user's lines in the place of ours, and what is wrong with the file."""
    words = {word: _synonyms(word, them) for word, them in tomllib.loads(PACKAGED_SYNONYMS.read_text("utf-8")).items()}
    file = _read(home.synonyms)
    mistakes: list[tuple[tuple[str, ...], str]] = []
    for word, value in file.table.items():
        try:
            words[word.lower()] = _synonyms(word, value)
        except BadConfig as exc:
            mistakes.append(((word,), f"{exc}; {exc.hint}"))
    # With an empty list a user takes one of our words out.
    kept = {word: others for word, others in words.items() if others}
    return kept, file.problems + _with_lines(home.synonyms, file.text, mistakes)


def find_setting(name: str) -> Setting:
    """Return the setting of a name; BadConfig with the nearest one where there is none."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    near = difflib.get_close_matches(name.lower(), [*_BY_NAME, "layout"], n=1)
    raise BadConfig(
        f"{shorten(name)} is not a setting",
        hint=f"did you mean `{near[0]}`?" if near else "`foreword config` lists the settings",
    )


def check(setting: Setting, value: object) -> object:
    """Return *value* as the setting holds it; BadConfig with what is allowed where it is not."""
    if setting.kind in FORMS:
        if isinstance(value, str) and (not value or re.fullmatch(FORMS[setting.kind][0], value)):
            return value
        # The value may be the key itself: do not repeat it.
        raise BadConfig(f"`{setting.name}` must be {range_shown(setting)}", hint="keys stay in the environment")
    if setting.kind == "bool" and isinstance(value, bool):
        return value
    if setting.kind == "int" and isinstance(value, int) and _is_within(setting, value):
        return value
    if setting.kind == "float" and isinstance(value, int | float) and _is_within(setting, value):
        return float(value)
    if setting.kind == "str" and value in setting.choices:
        return value
    is_valid = {"list": _is_project, "patterns": _is_pattern}.get(setting.kind)
    if is_valid and isinstance(value, list) and all(map(is_valid, value)):
        return tuple(value)
    raise BadConfig(
        f"`{setting.name}` must be {range_shown(setting)}, not {shorten(value)}",
        hint=f"the default is {default_shown(setting)}",
    )


def from_text(setting: Setting, text: str) -> object:
    """Parse a value from a shell as TOML would have given it; text that makes no sense stays text."""
    text = text.strip()
    if setting.kind == "bool":
        return _SWITCHES.get(text.lower(), text)
    if setting.kind in ("list", "patterns"):
        if not text.startswith("["):
            return [each.strip() for each in text.split(",") if each.strip()]
        return (_parse(f"it = {text}") or {"it": text})["it"]
    try:
        return {"int": int, "float": float}.get(setting.kind, str)(text)
    except ValueError:
        return text


def range_shown(setting: Setting) -> str:
    """Return the allowed values of a setting in words."""
    if setting.kind in FORMS:
        return FORMS[setting.kind][1]
    return {
        "bool": "true or false",
        "int": f"a whole number from {setting.lowest} to {setting.highest}",
        "float": f"a number from {setting.lowest} to {setting.highest}",
        "str": " or ".join(setting.choices),
        "list": "a list of absolute folders or project keys",
        "patterns": "a list such as `*.secret` or `deploy/vault/*`",
    }[setting.kind]


def default_shown(setting: Setting) -> str:
    """Return the default of a setting in words."""
    if setting.kind in ("list", "patterns"):
        return "an empty list"
    return str(setting.default).lower() if setting.kind == "bool" else str(setting.default) or "-"


def _is_within(setting: Setting, value: float) -> bool:
    # true is an int to Python, and a slip to us.
    return not isinstance(value, bool) and setting.lowest <= value <= setting.highest


def _is_project(value: object) -> bool:
    # A relative folder would be another project in every folder; a key never begins with a dot.
    return isinstance(value, str) and value.isprintable() and value.strip() == value and value[:1] not in ("", ".")


def _is_pattern(value: object) -> bool:
    # `*` alone would hide every file.
    return isinstance(value, str) and value.isprintable() and value.strip() == value and len(value.strip("*/.")) > 1


def _expanded(value: object, environ: Mapping[str, str]) -> object:
    return tuple(expand(each, environ) for each in value) if isinstance(value, tuple) else value


def _synonyms(word: str, value: object) -> tuple[str, ...]:
    def is_word(text: object) -> bool:
        return isinstance(text, str) and 0 < len(text) <= 64 and text.isprintable() and " " not in text

    if not (is_word(word) and isinstance(value, list) and all(map(is_word, value))):
        raise BadConfig(
            f"{shorten(word)} must be one word with a list of single words, not {shorten(value)}",
            hint='write it as: deploy = ["ci", "pipeline"]',
        )
    return tuple(dict.fromkeys(each.lower() for each in value if each.lower() != word.lower()))


# ---- the file


@dataclass(frozen=True)
class _File:
    table: Mapping[str, Any]
    text: str = ""
    problems: tuple[str, ...] = ()


def _read(path: Path) -> _File:
    """Parse a TOML file; absent is empty, and unreadable is empty with a problem."""
    data, text = b"", ""
    try:
        data = _bytes(path)
        text = data.decode("utf-8-sig")
        return _File(tomllib.loads(text), text)
    except FileNotFoundError:
        why = " is a link that leads nowhere" if path.is_symlink() else ""
    except OSError as exc:
        why = f" cannot be read: {exc.strerror}"
    except UnicodeDecodeError as exc:
        why = f", line {_line_at(data, exc.start)}: not UTF-8 text"
    except (ValueError, RecursionError) as exc:  # tomllib lets through what int() and a 1,000-deep list raise
        why = f", {_syntax_error(exc, text)}"
    return _File({}, problems=(f"{path}{why}; built-in values are used",) if why else ())


def _bytes(path: Path) -> bytes:
    # A pipe or a device in its place would hang every command.
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(None, "it is not a file")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(None, f"it has more than {MOST_BYTES // 1024} KB")
    return data


def _syntax_error(exc: Exception, text: str) -> str:
    message = str(exc) if isinstance(exc, tomllib.TOMLDecodeError) else "a value that is too long or too deep"
    if found := re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", message):
        return f"line {found[1] or _line_at(text, len(text.rstrip()))}: {message[: found.start()]}"
    excess = re.search(r"[0-9_]{4300}|(?:[\[{]\s*){100}", text)  # int() reads 4,300 digits, not more
    return f"line {_line_at(text, excess.start() if excess else 0)}: {message}"


def _line_at(text: str | bytes, position: int) -> int:
    before = text[:position]
    return (before.count("\n") if isinstance(before, str) else before.count(b"\n")) + 1


def _with_lines(path: Path, text: str, mistakes: list[tuple[tuple[str, ...], str]]) -> tuple[str, ...]:
    """Return each mistake as a sentence with its file and line, in the order of the file."""
    if not mistakes:
        return ()
    lines = _key_lines(text)

    def line_of(key: tuple[str, ...]) -> int:
        return next((lines[key[:size]] for size in range(len(key), 0, -1) if key[:size] in lines), 1)

    return tuple(f"{path}, line {line}: {why}" for line, why in sorted((line_of(key), why) for key, why in mistakes))


def _key_lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the line of each key and table, which tomllib does not tell."""
    text = re.sub(r"(\"{3}|'{3}).*?\1", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        if found := re.match(r"\s*\[([^\[\]]+)\]", line):
            key = table = _key(found[1])
        elif found := re.match(r"""\s*((?:[\w.\- \t]|"[^"]*"|'[^']*')+)=""", line):
            key = (*table, *_key(found[1]))
        else:
            continue
        for size in range(1, len(key) + 1):
            lines.setdefault(key[:size], number)
    return lines


def _key(dotted: str) -> tuple[str, ...]:
    inner: Any = _parse(f"{dotted} = 0")
    parts = []
    while isinstance(inner, dict):
        [(name, inner)] = inner.items()
        parts.append(name)
    return tuple(parts)


def _parse(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


# ---- change the file


def change(home: Home, name: str, raw_value: str) -> None:
    """Write one setting, or one number such as `layout.prompt.budget`; leave every other byte as it is."""
    path = tuple(name.split("."))
    if path[0] == "layout":
        value = from_text(Setting(name, 0, "int", "", ""), raw_value)
        if wrong := merge_layout(_with({}, path, value)["layout"])[1]:
            hint = "docs/settings.md lists the layout, as in layout.session_start.rules.cap"
            raise BadConfig(wrong[0].message, hint=hint)
    else:
        setting = find_setting(name)
        value = from_text(setting, raw_value)
        check(setting, value)
    home.prepare()
    with _locked(home):
        file = _editable(home)
        expected = _with(file.table, path, value)
        if len(path) == 1 and name not in file.table:
            text = _with_line(file.text, name, value)
        else:
            text = _edited(home, file.text, lambda document: _put(document, path, value))
        _write(home, text, expected=expected)


def unset(home: Home, name: str) -> bool:
    """Remove one name from the file, so that the default counts again; False when it was not there."""
    path = tuple(name.split("."))
    if not home.root.exists():
        return False
    with _locked(home):
        file = _editable(home)
        table: Any = file.table
        for each in path:
            if not isinstance(table, dict) or each not in table:
                if path[0] != "layout":
                    find_setting(name)
                return False
            table = table[each]
        text = _edited(home, file.text, lambda document: _remove(document, path))
        _write(home, text, expected=_with(file.table, path, None))
    return True


def _editable(home: Home) -> _File:
    file = _read(home.config)
    if file.problems:
        raise BadConfig(file.problems[0], hint=f"repair {home.config} first, or move it away; it was not touched")
    return file


def _edited(home: Home, text: str, edit: Callable[[Any], None]) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        edit(document)
        return tomlkit.dumps(document)
    except (TOMLKitError, ValueError, RecursionError) as exc:
        raise _not_editable(home) from exc


def _put(document: Any, path: tuple[str, ...], value: object) -> None:
    import tomlkit
    from tomlkit.items import InlineTable

    for name in path[:-1]:
        if name not in document:
            inline = isinstance(document, InlineTable)
            document[name] = tomlkit.inline_table() if inline else tomlkit.table(is_super_table=name != path[-2])
        document = document[name]
    document[path[-1]] = value


def _remove(document: Any, path: tuple[str, ...]) -> None:
    for name in path[:-1]:
        document = document[name]
    del document[path[-1]]


def _with_line(text: str, name: str, value: object) -> str:
    """Return the text with a new top-level setting before the first `[table]` and the comment that belongs to it."""
    import tomlkit

    lines = re.findall(r"[^\n]*\n|[^\n]+", text)  # not splitlines(), which also splits at characters TOML allows
    at = next((number for number, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    while 0 < at < len(lines) and lines[at - 1].lstrip().startswith("#"):
        at -= 1
    before, after = "".join(lines[:at]), "".join(lines[at:])
    if before and not before.endswith("\n"):
        before += "\n"
    return f"{before}{name} = {tomlkit.item(value).as_string()}\n" + (f"\n{after}" if after else "")


def _with(table: Mapping[str, Any], path: tuple[str, ...], value: object) -> dict[str, Any]:
    """Return the table with one value more, or less where *value* is None."""
    name, *rest = path
    changed = {key: inner for key, inner in table.items() if key != name}
    if not rest:
        return changed if value is None else {**changed, name: value}
    inner = table.get(name, {})
    if not isinstance(inner, dict):
        raise BadConfig(f"`{name}` in config.toml must be a table", hint="remove that line, then try again")
    return {**changed, name: _with(inner, tuple(rest), value)}


def _write(home: Home, text: str, *, expected: Mapping[str, Any]) -> None:
    # tomlkit keeps comments but has its own idea of TOML: check that the text means what was wanted, and no more.
    try:
        same = _parse(text) == expected
    except RecursionError:  # a.a.a… = 1 is a table as deep as the line is long
        same = False
    if not same:
        raise _not_editable(home)
    home.prepare()
    _replace(Path(os.path.realpath(home.config)), text.encode())  # the user's link to their dotfiles stays a link


@contextmanager
def _locked(home: Home) -> Iterator[None]:
    """Allow one change at a time: of two at once, the second must see what the first wrote."""
    try:
        folder = os.open(home.root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as exc:
        raise BadConfig(f"{home.root} cannot be opened: {exc}", hint="run `foreword doctor`") from exc
    try:
        import fcntl  # not on every system, and a hook that reads settings does without

        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _not_editable(home: Home) -> BadConfig:
    message = f"cannot edit {home.config} without changing more than this setting"
    return BadConfig(message, hint="make this change in your editor")


def _replace(path: Path, data: bytes) -> None:
    """Replace the file as a whole or not at all, readable by the user alone."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp makes it 0600
        try:
            with open(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as exc:
        raise ForewordError(f"cannot write {path}: {exc.strerror}", hint="make room or make it writable") from exc
