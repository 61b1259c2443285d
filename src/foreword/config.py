"""config.toml, synonyms.toml and the environment -> settings, where each came from, and what is wrong with them."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import tempfile
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreword.errors import BadConfig, ForewordError
from foreword.paths import expand
from foreword.recipes import MOST_ITEMS, MOST_TOKENS, MOST_TOTAL, RECIPES, Recipe, ledger_of, merged, shown
from foreword.tokens import FAMILIES
from foreword.types import POSTINGS
from foreword.values import value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from foreword.paths import Home

MOST_BYTES = 64 * 1024  # every setting written out with its comment is 4 KB
# Texts that are free but for their form; each may be empty. A key does not fit, so that none is written down.
FORMS = {
    "address": (r"https?://[^\s@?#]+", "an http or https address, without a name, key or query in it"),
    "model": (r"[\w./:-]{1,128}", "a model's name"),
    "variable": (r"[A-Z_][A-Z0-9_]{0,63}", "the name of an environment variable, in capitals"),
    "keyplace": (
        r"[A-Z_][A-Z0-9_]{0,63}|~?/[^\s]{1,255}",
        "the name of an environment variable, or the path of a file",
    ),
}
PACKAGED_SYNONYMS = Path(__file__).with_name("synonyms.toml")


@value
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


SETTINGS: tuple[Setting, ...] = (
    Setting("capture", True, "bool", "", "Keep what happens in sessions."),
    Setting("inject", True, "bool", "", "Put what is known in front of sessions and prompts."),
    Setting("off_projects", (), "list", "folders or project keys", "Neither capture nor inject in these projects."),
    Setting(
        "read_only_projects",
        (),
        "list",
        "folders or project keys",
        "Inject in these projects what is known, and keep nothing of them.",
    ),
    Setting("silent_projects", (), "list", "folders or project keys", "Capture in these projects, and inject nothing."),
    Setting(
        "deny_paths", (), "patterns", "names or ends of paths", "Files whose contents are never kept, besides ours."
    ),
    # Hosts stop a hook after 5 s; half a second is left for the interpreter to start and end.
    Setting("deadline_prompt_ms", 300, "int", "ms", "The longest a prompt waits for its context.", 50, 4500),
    Setting("deadline_start_ms", 1000, "int", "ms", "The longest a session start waits for its context.", 50, 4500),
    Setting("deadline_huge_ms", 1500, "int", "ms", "The longest a hook takes over huge input.", 50, 4500),
    Setting("worker_autostart", True, "bool", "", "Let a hook that finds no worker start one for the next time."),
    Setting(
        "worker_idle_minutes", 30.0, "float", "minutes", "The worker leaves when nobody asked for so long.", 0.01, 1e4
    ),
    Setting(
        "viewer_idle_minutes", 30.0, "float", "minutes", "The viewer closes when nobody looked for so long.", 0.01, 1e4
    ),
    Setting("worker_log_kb", 1024, "int", "KB", "The worker's log begins again at this size.", 16, 102400),
    Setting(
        "log_level",
        "info",
        "str",
        "",
        "How much the worker writes to its log.",
        choices=("debug", "info", "warning", "error"),
    ),
    Setting("event_text_kb", 64, "int", "KB", "A longer text of an event keeps its head and its tail.", 1, 1024),
    # The hook may use 96 MB in all, and a text is held a few times over while it is parsed and redacted.
    Setting("stdin_head_kb", 1024, "int", "KB", "How much of the start of huge input a hook reads.", 64, 8192),
    Setting("stdin_tail_kb", 256, "int", "KB", "How much of the end of huge input a hook keeps.", 16, 8192),
    Setting("spool_max_mb", 256, "int", "MB", "The most that waits on disk for a worker that is away.", 1, 10240),
    Setting(
        "tokenizer",
        "auto",
        "str",
        "family",
        "The tokenizer family that budgets count in; auto asks the session's model.",
        choices=("auto", *FAMILIES),
    ),
    # Codex's own default. Another number must stand in its hooks too, which `foreword install codex` writes.
    Setting(
        "codex_context_tokens",
        2500,
        "int",
        "Codex's tokens",
        "The most that Codex takes whole from one hook (`additionalContextLimit`); run `foreword install codex` after.",
        500,
        100_000,
    ),
    Setting("search_limit", 20, "int", "memories", "How many results a search gives unless told otherwise.", 1, 200),
    Setting("terms_max", 10, "int", "terms", "How many significant terms of a prompt are looked for.", 1, 32),
    Setting(
        "postings_budget",
        POSTINGS,
        "int",
        "postings",
        "How much of the word index one prompt may read, rarest terms first.",
        100,
        10_000_000,
    ),
    # rank.py owns the formula; these are where it cuts. Strictest where the user has not said anything yet.
    Setting("threshold_session_start", 0.12, "float", "score", "Below it nothing is shown at session start.", 0, 1),
    Setting("threshold_prompt", 0.093, "float", "score", "Below it nothing is shown with a prompt.", 0, 1),
    Setting("threshold_question", 0.03, "float", "score", "Below it nothing is shown to a question.", 0, 1),
    # Off: it helps a little and weighs 146 MB (docs/log.md). Nothing leaves the machine unless it is `remote`.
    Setting(
        "meaning",
        "off",
        "str",
        "",
        "Find by meaning too, with a table on this machine or with your own endpoint.",
        choices=("off", "local", "remote"),
    ),
    Setting("meaning_endpoint", "", "address", "", "The OpenAI-compatible endpoint of a remote meaning."),
    Setting("meaning_model", "", "model", "", "The model that the endpoint is asked for."),
    Setting("meaning_key_env", "", "variable", "", "Where the worker finds the key of the endpoint, if it wants one."),
    Setting("meaning_timeout_ms", 2000, "int", "ms", "The longest one request to the endpoint may take.", 50, 60000),
    # Off, and nothing of it is imported. A session costs some 4,000 tokens: the cap is a dozen sessions a day.
    Setting(
        "model_provider",
        "off",
        "str",
        "",
        "Let a model of yours improve the summaries of sessions.",
        choices=("off", "anthropic", "openai", "claude"),
    ),
    Setting("model_name", "", "model", "", "The model that is asked."),
    Setting(
        "model_url", "", "address", "", "Where it is, if not at its maker's; openai means any endpoint of its kind."
    ),
    Setting("model_key_env", "", "keyplace", "", "Where the worker finds the key, if it wants one."),
    Setting("model_daily_tokens", 50_000, "int", "tokens", "The most that any 24 hours may cost.", 0, 100_000_000),
    Setting("model_seconds", 60.0, "float", "seconds", "The longest that one request may take.", 1, 600),
    # Nothing goes by a date alone (docs/retention.md), and 0 keeps it for ever.
    Setting("events_keep_days", 180, "int", "days", "How long raw events are kept once they are distilled.", 0, 36500),
    Setting(
        "traces_keep_days",
        365,
        "int",
        "days",
        "How long traces are kept: texts of injections, who fetched what, what undoes an entry of the log.",
        0,
        36500,
    ),
    Setting(
        "aside_keep_days",
        365,
        "int",
        "days",
        "How long superseded, stale and discarded memories are kept; rules, decisions and the like always are.",
        0,
        36500,
    ),
    Setting(
        "observations_keep_days", 730, "int", "days", "How long observations and changed functions are kept.", 0, 36500
    ),
    # No database of 136 GB: a year of eight sessions a day is some hundred MB.
    Setting(
        "store_max_mb",
        2048,
        "int",
        "MB",
        "Past it the oldest of what may go goes, raw events first; 0 is no cap.",
        0,
        1048576,
    ),
    # Once a day for each project; five minutes without a hook are a break, and the worker stays for thirty.
    Setting(
        "tidy", True, "bool", "", "Let the idle worker merge, supersede and sink; `foreword log` tells what it did."
    ),
    Setting("tidy_idle_minutes", 5.0, "float", "minutes", "Nobody asked for so long: then it tidies.", 0.01, 1e4),
    Setting("backups_keep", 5, "int", "backups", "How many backups are kept, newest first.", 1, 100),
)
_BY_NAME = {setting.name: setting for setting in SETTINGS}


@value
class Settings:
    """Every setting at its value; SETTINGS holds the defaults and the meanings."""

    capture: bool
    inject: bool
    off_projects: tuple[str, ...]
    read_only_projects: tuple[str, ...]
    silent_projects: tuple[str, ...]
    deny_paths: tuple[str, ...]
    deadline_prompt_ms: int
    deadline_start_ms: int
    deadline_huge_ms: int
    worker_autostart: bool
    worker_idle_minutes: float
    viewer_idle_minutes: float
    worker_log_kb: int
    log_level: str
    event_text_kb: int
    stdin_head_kb: int
    stdin_tail_kb: int
    spool_max_mb: int
    tokenizer: str
    codex_context_tokens: int
    search_limit: int
    terms_max: int
    postings_budget: int
    threshold_session_start: float
    threshold_prompt: float
    threshold_question: float
    meaning: str
    meaning_endpoint: str
    meaning_model: str
    meaning_key_env: str
    meaning_timeout_ms: int
    model_provider: str
    model_name: str
    model_url: str
    model_key_env: str
    model_daily_tokens: int
    model_seconds: float
    events_keep_days: int
    traces_keep_days: int
    aside_keep_days: int
    observations_keep_days: int
    store_max_mb: int
    tidy: bool
    tidy_idle_minutes: float
    backups_keep: int
    recipes: Mapping[str, Recipe]


@value
class Loaded:
    """Settings that can always be used, with the origin of each and a sentence for all that was wrong."""

    settings: Settings
    origin: Mapping[str, str]  # name -> default, file or environment
    problems: tuple[str, ...]


def load(home: Home, environ: Mapping[str, str]) -> Loaded:
    """The environment over the file over the defaults; what is broken is left out and told, and nothing is raised."""
    file = _read(home.config)
    values: dict[str, Any] = {setting.name: setting.default for setting in SETTINGS}
    origin = dict.fromkeys((*values, "recipes"), "default")
    complaints: list[tuple[tuple[str, ...], str]] = []
    for name, given in file.table.items():
        if name == "recipes":
            continue
        try:
            values[name] = _expanded(_checked(_setting(name), given), environ)
            origin[name] = "file"
        except BadConfig as exc:
            complaints.append(((name,), f"{exc}; {exc.hint}"))
    recipes, wrong = merged(file.table.get("recipes", {}))
    complaints += [(("recipes", *each.path), each.says) for each in wrong]
    if recipes != RECIPES:
        origin["recipes"] = "file"
    problems = file.problems + _with_lines(home.config, file.text, complaints)
    for setting in SETTINGS:
        if text := environ.get(setting.env, ""):
            try:
                values[setting.name] = _expanded(_checked(setting, _from_text(setting, text)), environ)
                origin[setting.name] = "environment"
            except BadConfig as exc:
                problems += (f"{setting.env} in the environment is not used: {exc}",)
    return Loaded(settings=Settings(**values, recipes=recipes), origin=origin, problems=problems)


def change(home: Home, name: str, raw_value: str) -> None:
    """Write one setting, or one number such as `recipes.prompt.budget`, and leave the rest of the file as it was."""
    path, new = _to_write(name, raw_value)
    home.prepare()
    with _alone(home):
        file = _editable(home)
        expected = _with(file.table, path, new)
        if len(path) == 1 and name not in file.table:
            text = _with_line(file.text, name, new)
        else:
            text = _edited(home, file.text, lambda document: _put(document, path, new))
        _write(home, text, expected=expected)


def unset(home: Home, name: str) -> bool:
    """Take one name out of the file, so that the default counts again; False when it was not there."""
    path = tuple(name.split("."))
    if not home.root.exists():
        return False
    with _alone(home):
        file = _editable(home)
        if not _holds(file.table, path):
            if path[0] != "recipes":
                _setting(name)
            return False
        expected = _with(file.table, path, None)
        _write(home, _edited(home, file.text, lambda document: _take(document, path)), expected=expected)
    return True


def load_synonyms(home: Home) -> tuple[Mapping[str, tuple[str, ...]], tuple[str, ...]]:
    """Each word with the words it stands for: ours, with every word that the user's file has replaced by the user's."""
    words = {word: _words(word, given) for word, given in tomllib.loads(PACKAGED_SYNONYMS.read_text("utf-8")).items()}
    file = _read(home.synonyms)
    complaints: list[tuple[tuple[str, ...], str]] = []
    for word, given in file.table.items():
        try:
            words[word.lower()] = _words(word, given)
        except BadConfig as exc:
            complaints.append(((word,), f"{exc}; {exc.hint}"))
    # An empty list is how a user takes one of our words out.
    kept = {word: others for word, others in words.items() if others}
    return kept, file.problems + _with_lines(home.synonyms, file.text, complaints)


def settings_page() -> str:
    """The page docs/settings.md, byte for byte."""
    rows = [
        f"| `{each.name}` | {_default_shown(each)} | {each.unit or '-'} | {_range_shown(each)} | {each.what} "
        f"| `{each.env}` |"
        for each in SETTINGS
    ]
    recipe_rows = [
        f"| {moment} | {recipe.budget} | {layer.name} | {layer.cap} | {layer.limit} | {layer.limit_away or '-'} "
        f"| {', '.join(f'{name} {cap}' for name, cap in layer.groups.items()) or '-'} | {', '.join(layer.kinds)} |"
        for moment, recipe in RECIPES.items()
        for layer in recipe.layers
    ]
    return _PAGE.format(
        rows="\n".join(rows),
        recipe_rows="\n".join(recipe_rows),
        ledger_rows="\n".join(f"| {name} | {tokens} |" for name, tokens in ledger_of(RECIPES).items()),
        most_total=MOST_TOTAL,
        most_tokens=MOST_TOKENS,
        most_items=MOST_ITEMS,
    )


def _setting(name: str) -> Setting:
    if name in _BY_NAME:
        return _BY_NAME[name]
    import difflib

    near = difflib.get_close_matches(name.lower(), [*_BY_NAME, "recipes"], n=1)
    raise BadConfig(
        f"{shown(name)} is not a setting",
        hint=f"did you mean `{near[0]}`?" if near else "`foreword config` lists the settings",
    )


def _checked(setting: Setting, given: object) -> object:
    if setting.kind == "bool" and isinstance(given, bool):
        return given
    if setting.kind == "int" and isinstance(given, int) and _is_within(setting, given):
        return given
    if setting.kind == "float" and isinstance(given, int | float) and _is_within(setting, given):
        return float(given)
    if setting.kind == "str" and given in setting.choices:
        return given
    if setting.kind == "list" and isinstance(given, list) and all(_is_project(each) for each in given):
        return tuple(given)
    if setting.kind == "patterns" and isinstance(given, list) and all(_is_pattern(each) for each in given):
        return tuple(given)
    if setting.kind in FORMS:
        if isinstance(given, str) and (not given or re.fullmatch(FORMS[setting.kind][0], given)):
            return given
        # What was written may be the key itself: it is not repeated.
        raise BadConfig(f"`{setting.name}` must be {_range_shown(setting)}", hint="keys stay in the environment")
    raise BadConfig(
        f"`{setting.name}` must be {_range_shown(setting)}, not {shown(given)}",
        hint=f"the default is {_default_shown(setting)}",
    )


def _expanded(checked: object, environ: Mapping[str, str]) -> object:
    return tuple(expand(each, environ) for each in checked) if isinstance(checked, tuple) else checked


def _is_within(setting: Setting, given: float) -> bool:
    # true is an int to Python, and a slip to us.
    return not isinstance(given, bool) and setting.lowest <= given <= setting.highest


def _is_word(text: str) -> bool:
    return 0 < len(text) <= 64 and text.isprintable() and " " not in text


def _is_project(given: object) -> bool:
    # A relative folder would mean another project in every folder; a key never begins with a dot.
    return isinstance(given, str) and given.isprintable() and given.strip() == given and given[:1] not in ("", ".")


def _is_pattern(given: object) -> bool:
    # `*` alone would hide every file.
    return isinstance(given, str) and given.isprintable() and given.strip() == given and len(given.strip("*/.")) > 1


def _from_text(setting: Setting, text: str) -> object:
    """What a shell can say, as what TOML would have said; text that makes no sense stays text, to be refused."""
    text = text.strip()
    if setting.kind == "bool":
        return _SWITCHES.get(text.lower(), text)
    if setting.kind in ("list", "patterns"):
        return _list_from_text(text)
    try:
        return {"int": int, "float": float}.get(setting.kind, str)(text)
    except ValueError:
        return text


_SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def _list_from_text(text: str) -> object:
    if not text.startswith("["):
        return [each.strip() for each in text.split(",") if each.strip()]
    try:
        return tomllib.loads(f"it = {text}")["it"]
    except (ValueError, RecursionError):
        return text


def _range_shown(setting: Setting) -> str:
    if setting.kind == "bool":
        return "true or false"
    if setting.kind == "int":
        return f"a whole number from {setting.lowest} to {setting.highest}"
    if setting.kind == "float":
        return f"a number from {setting.lowest} to {setting.highest}"
    if setting.kind in FORMS:
        return FORMS[setting.kind][1]
    if setting.kind == "list":
        return "a list of absolute folders or project keys"
    if setting.kind == "patterns":
        return "a list such as `*.secret` or `deploy/vault/*`"
    return " or ".join(setting.choices)


def _default_shown(setting: Setting) -> str:
    return {"bool": str(setting.default).lower(), "list": "an empty list", "patterns": "an empty list"}.get(
        setting.kind, str(setting.default) or "-"
    )


def _words(word: str, given: object) -> tuple[str, ...]:
    if not (
        _is_word(word) and isinstance(given, list) and all(isinstance(each, str) and _is_word(each) for each in given)
    ):
        raise BadConfig(
            f"{shown(word)} must be one word with a list of single words, not {shown(given)}",
            hint='write it as: deploy = ["ci", "pipeline"]',
        )
    return tuple(dict.fromkeys(each.lower() for each in given if each.lower() != word.lower()))


@value
class _File:
    table: Mapping[str, Any]
    text: str = ""
    problems: tuple[str, ...] = ()


def _read(path: Path) -> _File:
    """The file as a table; absent is empty, and unreadable is empty with a problem."""
    try:
        data = _bytes(path)
        text = data.decode("utf-8-sig")
        return _File(tomllib.loads(text), text)
    except FileNotFoundError:
        broken = (f"{path} is a link that leads nowhere; built-in values are used",) if path.is_symlink() else ()
        return _File({}, problems=broken)
    except OSError as exc:
        return _File({}, problems=(f"{path} cannot be read: {exc.strerror}; built-in values are used",))
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        return _File({}, problems=(f"{path}, line {line}: not UTF-8 text; built-in values are used",))
    except (ValueError, RecursionError) as exc:  # tomllib lets through what int() and a 1,000-deep list raise
        return _File({}, problems=(f"{path}, {_why(exc, text)}; built-in values are used",))


def _bytes(path: Path) -> bytes:
    # A pipe or a device in its place would hang every door of ours.
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(None, "it is not a file")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(None, f"it has more than {MOST_BYTES // 1024} KB")
    return data


def _why(exc: Exception, text: str) -> str:
    says = str(exc) if isinstance(exc, tomllib.TOMLDecodeError) else "a value that is too long or too deep"
    found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", says)
    if found is None:
        excess = re.search(r"[0-9_]{4300}|(?:[\[{]\s*){100}", text)  # int() reads 4,300 digits, not more
        return f"line {_line_at(text, excess.start() if excess else 0)}: {says}"
    return f"line {found[1] or _line_at(text, len(text.rstrip()))}: {says[: found.start()]}"


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _with_lines(path: Path, text: str, complaints: list[tuple[tuple[str, ...], str]]) -> tuple[str, ...]:
    """Each complaint as a sentence with its file and line, in the order of the file."""
    if not complaints:
        return ()
    lines: dict[tuple[str, ...], int] = {}
    for line, _, paths in _statements(text):
        for each in paths:
            lines.setdefault(each, line)
    placed = sorted((_line_of(where, lines), says) for where, says in complaints)
    return tuple(f"{path}, line {line}: {says}" for line, says in placed)


def _line_of(where: tuple[str, ...], lines: Mapping[tuple[str, ...], int]) -> int:
    return next((lines[where[:size]] for size in range(len(where), 0, -1) if where[:size] in lines), 1)


def _statements(text: str) -> Iterator[tuple[int, bool, list[tuple[str, ...]]]]:
    """Every statement of a readable file: its first line, whether it is a `[table]`, and the keys it speaks of."""
    # tomllib tells no positions, but each statement of TOML is a document of its own.
    table: tuple[str, ...] = ()
    start, chunk = 1, ""
    for number, line in enumerate(text.split("\n"), 1):
        if not chunk:
            start = number
        chunk += line + "\n"
        # Only such a line can end a value that began on another one; asking more often is quadratic.
        may_end = start == number or any(mark in line for mark in ("]", "}", '"""', "'''"))
        parsed = _parse(chunk) if may_end else None
        if parsed is None:
            continue
        is_table = chunk.lstrip().startswith("[")
        if is_table:
            table = _paths(parsed)[-1]
        if parsed:
            yield start, is_table, [table] if is_table else [(*table, *each) for each in _paths(parsed)]
        chunk = ""


def _parse(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _paths(table: Mapping[str, Any], depth: int = 4) -> list[tuple[str, ...]]:
    # recipes.session_start.rules.cap is the deepest name there is.
    found: list[tuple[str, ...]] = []
    for name, inner in table.items():
        found.append((name,))
        if isinstance(inner, dict) and depth > 1:
            found += [(name, *each) for each in _paths(inner, depth - 1)]
    return found


def _to_write(name: str, raw_value: str) -> tuple[tuple[str, ...], Any]:
    path = tuple(name.split("."))
    if path[0] != "recipes":
        setting = _setting(name)
        new = _from_text(setting, raw_value)
        _checked(setting, new)
        return path, new
    new = _from_text(Setting(name, 0, "int", "", ""), raw_value)
    if wrong := merged(_with({}, path, new)["recipes"])[1]:
        raise BadConfig(wrong[0].says, hint="docs/settings.md lists the recipes, as in recipes.session_start.rules.cap")
    return path, new


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
        raise _too_unusual(home) from exc


def _put(document: Any, path: tuple[str, ...], new: object) -> None:
    import tomlkit
    from tomlkit.items import InlineTable

    for name in path[:-1]:
        if name not in document:
            inline = isinstance(document, InlineTable)
            document[name] = tomlkit.inline_table() if inline else tomlkit.table(is_super_table=name != path[-2])
        document = document[name]
    document[path[-1]] = new


def _take(document: Any, path: tuple[str, ...]) -> None:
    for name in path[:-1]:
        document = document[name]
    del document[path[-1]]


def _with_line(text: str, name: str, new: object) -> str:
    """The text with a new top-level setting before the first `[table]` and the comment that belongs to it."""
    import tomlkit

    lines = re.findall(r"[^\n]*\n|[^\n]+", text)  # not splitlines(), which also splits at characters TOML allows
    at = next((line - 1 for line, is_table, _ in _statements(text) if is_table), len(lines))
    while 0 < at < len(lines) and lines[at - 1].lstrip().startswith("#"):
        at -= 1
    before, after = "".join(lines[:at]), "".join(lines[at:])
    if before and not before.endswith("\n"):
        before += "\n"
    return f"{before}{name} = {tomlkit.item(new).as_string()}\n" + (f"\n{after}" if after else "")


def _holds(table: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(table, dict) or name not in table:
            return False
        table = table[name]
    return True


def _with(table: Mapping[str, Any], path: tuple[str, ...], new: object) -> dict[str, Any]:
    """The table with one value more, or less where *new* is None."""
    name, *rest = path
    changed = {key: inner for key, inner in table.items() if key != name}
    if not rest:
        return changed if new is None else {**changed, name: new}
    inner = table.get(name, {})
    if not isinstance(inner, dict):
        raise BadConfig(f"`{name}` in config.toml must be a table", hint="remove that line, then try again")
    return {**changed, name: _with(inner, tuple(rest), new)}


def _write(home: Home, text: str, *, expected: Mapping[str, Any]) -> None:
    # The editor keeps comments but has its own idea of TOML; what is written must mean what was asked, and no more.
    try:
        same = _parse(text) == expected
    except RecursionError:  # a.a.a… = 1 is a table as deep as the line is long
        same = False
    if not same:
        raise _too_unusual(home)
    home.prepare()
    _replace(Path(os.path.realpath(home.config)), text.encode())  # the user's link to their dotfiles stays a link


@contextmanager
def _alone(home: Home) -> Iterator[None]:
    """One change at a time: of two at once, the second must see what the first wrote."""
    try:
        folder = os.open(home.root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as exc:
        raise BadConfig(f"{home.root} cannot be opened: {exc}", hint="run `foreword doctor`") from exc
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _too_unusual(home: Home) -> BadConfig:
    return BadConfig(
        f"{home.config} is written in a way that we cannot edit without changing more",
        hint="make this change in your editor",
    )


def _replace(path: Path, data: bytes) -> None:
    """Put *data* in the file's place, whole or not at all, readable by the user alone."""
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
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as exc:
        raise ForewordError(f"cannot write {path}: {exc.strerror}", hint="make room or make it writable") from exc


_PAGE = """\
# Settings

Everything has a default that works; change only what you must. Settings live in `config.toml` in your Foreword home
(`~/.foreword`, or the folder that `FOREWORD_HOME` names). `foreword config` shows and changes them and leaves your
comments alone.

The environment counts before the file, and the file before the default. A switch in the environment is `1` or `0`,
`true` or `false`, `yes` or `no`, `on` or `off`; a list has commas between its entries. What is broken never stops
Foreword: a wrong value means the default for that one setting, a file that is not TOML means the defaults for all, and
`foreword doctor` gives the file and the line.

| setting | default | unit | may be | what it does | environment |
|---|---|---|---|---|---|
{rows}

Two more names are read from the environment alone: `FOREWORD_HOME`, the folder that holds everything, and
`FOREWORD_OFF=1`, which neither captures nor injects.

## Meaning

A question may find what shares no word with it. That is off, and needs an extra: `pip install 'foreword[meaning]'`.

```sh
foreword config set meaning local     # a table on this disk; nothing leaves the machine

foreword config set meaning remote    # or an endpoint of yours: what is remembered and asked goes there, redacted
foreword config set meaning_endpoint http://127.0.0.1:11434/v1
foreword config set meaning_model all-minilm
foreword config set meaning_key_env OPENAI_API_KEY    # the variable's name, if it wants a key; never the key
```

What was remembered before is caught up. A prompt waits a quarter of its deadline for an endpoint, then goes without; an
endpoint that fails is left to rest, and everything is kept and found by its words meanwhile. In memory there are at
most 64 MB of vectors, of the projects that were asked for last and, of one with more, the newest.

## Model

A model may improve what is written about a session. That is off: [model](model.md) says what it sends where, what it
costs, and how to turn it on.

## Recipes

For each moment a budget in tokens, frame and headings included, and its layers in order. `cap` is what a layer gets
before another gets more, `limit` the most memories in it, `limit_away` the same while the worker is away. Some caps are
divided by scope. What a layer or a scope does not use goes to those that need it.

| moment | budget | layer | cap | limit | limit_away | by scope | kinds |
|---|---|---|---|---|---|---|---|
{recipe_rows}

Every number can be changed, from 0 to {most_tokens} for tokens and from 0 to {most_items} for limits. Caps that you do
not name grow and shrink with their budget, scopes with their cap, and compaction follows session_start at one half.
A budget of 0 turns that moment off.

```toml
[recipes.session_start]
budget = 1500

[recipes.session_start.rules]
cap = 400
project = 250

[recipes.session_start.past]
limit = 5
```

A ledger counts what one context window was given; it begins again at a start, a clear and a compaction. `together` is
what session start and questions may have between them. A block that would pass its total is cut to fit, and then there
is silence; searching and fetching are free. Totals that you do not name grow and shrink with the budgets.

| in `[recipes.ledger]` | tokens in one window |
|---|---|
{ledger_rows}

Each may be from 0 to {most_total}.

## Synonyms

`synonyms.toml` in the same folder gives a word the other words that a search for it may find. Your line takes the
place of ours for that word, and an empty list takes ours away.

```toml
deploy = ["ci", "pipeline", "helm"]
test = []
```
"""
