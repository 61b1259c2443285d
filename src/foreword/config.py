"""Define every setting, load them from config.toml and the environment, and change one line of that file.

Nothing that a user writes raises while loading: a broken value means the default, and a sentence says why.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from foreword import models
from foreword.encoding import did_you_mean
from foreword.errors import BadConfig, ForewordError
from foreword.layout import LAYOUT, TriggerLayout, merge_layout, shorten
from foreword.paths import Home, expand, replacing

MOST_BYTES = 64 * 1024  # every setting written out with its comment is 4 KB
PACKAGED_SYNONYMS = Path(__file__).with_name("synonyms.toml")
TOKENIZERS = ("auto", *models.TOKENIZERS)
# Texts that are free but for their form; each may be empty. A key does not fit, so that none is written down.
FORMS = {
    "address": (r"https?://[^\s@?#]+", "an http or https address, without a name, key or query in it"),
    "model": (r"[\w./:-]{1,128}", "a model's name"),
    "key_source": (r"[A-Z_][A-Z0-9_]{0,63}|~?/\S{1,255}", "the name of an environment variable, or the path of a file"),
}
_SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class Setting(NamedTuple):
    """One thing the user may change: its kind is bool, int, float, str, list, patterns, or one of FORMS."""

    name: str
    default: Any
    kind: str
    unit: str
    what: str
    between: tuple[float, float]
    choices: tuple[str, ...]  # of a str

    @property
    def env(self) -> str:
        return f"FOREWORD_{self.name.upper()}"


def _setting(
    default: object, what: str, unit: str = "", between: tuple[float, float] = (0, 0), kind: str = "", *choices: str
) -> Any:
    kind = kind or type(default).__name__
    return field(
        default=default, metadata={"what": what, "kind": kind, "unit": unit, "between": between, "choices": choices}
    )


def _choice(what: str, *choices: str) -> Any:
    return _setting(choices[0], what, "", (0, 0), "str", *choices)


# Unit, range and kind of settings that are alike.
_PROJECTS: Any = ("folders or project keys", (0, 0), "list")
_DEADLINE: Any = ("ms", (50, 4500))  # agents stop a hook after 5 s, and the interpreter needs some of it
_MINUTES: Any = ("minutes", (0.01, 1e4))
_SCORE: Any = ("score", (0, 1))


@dataclass(frozen=True, kw_only=True, repr=False)
class Settings:
    """Every setting with its default, its range and what it does; docs/settings.md is written from it."""

    capture: bool = _setting(True, "Store what happens in sessions.")
    inject: bool = _setting(True, "Give context to sessions and prompts.")
    off_projects: tuple[str, ...] = _setting((), "Neither capture nor inject in these projects.", *_PROJECTS)
    read_only_projects: tuple[str, ...] = _setting((), "Inject in these projects, and capture nothing.", *_PROJECTS)
    silent_projects: tuple[str, ...] = _setting((), "Capture in these projects, and inject nothing.", *_PROJECTS)
    deny_paths: tuple[str, ...] = _setting(
        (), "Files whose contents are never stored, besides the built-in ones.", "ends of paths", kind="patterns"
    )
    deadline_prompt_ms: int = _setting(300, "Longest wait of a prompt for its context.", *_DEADLINE)
    deadline_start_ms: int = _setting(1000, "Longest wait of a session start for its context.", *_DEADLINE)
    deadline_huge_ms: int = _setting(1500, "Longest time a hook spends on huge input.", *_DEADLINE)
    worker_autostart: bool = _setting(True, "Let a hook that finds no worker start one for the next event.")
    worker_idle_minutes: float = _setting(30.0, "The worker exits after so long without a request.", *_MINUTES)
    viewer_idle_minutes: float = _setting(30.0, "The viewer exits after so long without a request.", *_MINUTES)
    log_level: str = _choice("How much the worker writes to its log.", "info", "debug", "warning", "error")
    spool_max_mb: int = _setting(256, "Maximum size of the events that wait for a worker.", "MB", (1, 10_240))
    tokenizer: str = _choice("The tokenizer family of budgets; auto takes the one of the session's model.", *TOKENIZERS)
    search_limit: int = _setting(20, "Default number of search results.", "memories", (1, 200))
    # recall/rank.py owns the score; these are where it cuts. Strictest where the user has not said anything yet.
    threshold_session_start: float = _setting(0.12, "Minimum score of a memory at session start.", *_SCORE)
    threshold_prompt: float = _setting(0.093, "Minimum score of a memory with a prompt.", *_SCORE)
    threshold_question: float = _setting(0.03, "Minimum score of a memory for a question.", *_SCORE)
    prompt_style: str = _choice("What comes with a prompt: full notes, or an index of one-liners.", "notes", "index")
    hints: bool = _setting(True, "Give hints before commands that failed before, and after failures with a known fix.")
    agent_notes: bool = _setting(False, "Ask the agent for its own notes after substantial work, once a session.")
    # Off: they help a little and weigh 146 MB (docs/log.md). Nothing leaves the machine.
    embeddings: str = _choice("Search with embeddings too, from a table on this machine.", "off", "local")
    # Off, and nothing of it is imported. A session costs some 4,000 tokens: the cap is a dozen sessions a day.
    model_provider: str = _choice("Let a model of yours improve summaries.", "off", "anthropic", "openai")
    model_name: str = _setting("", "The name of the model.", kind="model")
    model_url: str = _setting("", "Its address, if not the maker's own; any compatible endpoint.", kind="address")
    model_key_env: str = _setting("", "The worker's variable, or the file, that holds the key.", kind="key_source")
    model_daily_tokens: int = _setting(50_000, "Maximum in any 24 hours.", "tokens", (0, 100_000_000))
    model_seconds: float = _setting(60.0, "Timeout of one request to the model.", "seconds", (1, 600))
    # 0 keeps them for ever; after a jump of the clock nothing goes by age (docs/maintenance.md).
    events_keep_days: int = _setting(180, "How long raw events are kept after extraction.", "days", (0, 36_500))
    # A year of eight sessions a day is some hundred MB.
    store_max_mb: int = _setting(
        2048, "Maximum size of the store; beyond it the oldest goes, raw events first; 0 is none.", "MB", (0, 1_048_576)
    )
    # Once a day for each project; five minutes without a hook are a break, and the worker stays for thirty.
    tidy: bool = _setting(True, "Let the idle worker merge duplicates, resolve contradictions and mark stale.")
    tidy_idle_minutes: float = _setting(5.0, "The worker tidies after so long without a request.", *_MINUTES)
    backups_keep: int = _setting(7, "Daily copies to keep, besides four weekly ones; 0: none.", "copies", (0, 100))
    layout: Mapping[str, TriggerLayout] = field(default_factory=lambda: LAYOUT)

    # Fixed, because nobody would look for them.
    worker_log_kb: ClassVar[int] = 1024  # the log is rotated at this size
    stdin_head_kb: ClassVar[int] = 1024  # what a hook keeps of huge input: it may use 96 MB in all, and a text is held
    stdin_tail_kb: ClassVar[int] = 256  # a few times over while it is parsed and redacted
    traces_keep_days: ClassVar[int] = 365  # texts of injections, fetches, reasons for no context, undo data
    inactive_keep_days: ClassVar[int] = 365  # memories that are superseded, stale or discarded
    observations_keep_days: ClassVar[int] = 730


SETTINGS = tuple(Setting(name=each.name, default=each.default, **each.metadata) for each in fields(Settings)[:-1])


# ---- load


class Loaded(NamedTuple):
    """Settings that can always be used, the origin of each, and a sentence for each mistake."""

    settings: Settings
    origin: Mapping[str, str]  # name -> default, file or environment
    problems: tuple[str, ...]


def load(home: Home, environ: Mapping[str, str]) -> Loaded:
    """Read the settings: the environment over the file over the defaults."""
    table, _, problem = _read(home.config)
    problems = [problem] if problem else []
    values: dict[str, Any] = {setting.name: setting.default for setting in SETTINGS}
    origin = dict.fromkeys((*values, "layout"), "default")
    layout, wrong = merge_layout(table.pop("layout", {}))
    problems += [f"{home.config}: {each}" for each in wrong]
    if layout != LAYOUT:
        origin["layout"] = "file"
    written = [(name, value, "file", str(home.config)) for name, value in table.items()]
    for setting in SETTINGS:
        if text := environ.get(setting.env, ""):
            written.append((setting.name, from_text(setting, text), "environment", f"{setting.env} is ignored"))
    for name, value, place, problem in written:
        try:
            values[name] = _expanded(check(find_setting(name), value), environ)
            origin[name] = place
        except BadConfig as exc:
            problems.append(f"{problem}: {exc}; {exc.hint}")
    return Loaded(settings=Settings(**values, layout=layout), origin=origin, problems=tuple(problems))


def load_synonyms(home: Home) -> tuple[Mapping[str, tuple[str, ...]], tuple[str, ...]]:
    """Return each word with its synonyms, the user's lines in the place of ours, and what is wrong with the file."""
    packaged = tomllib.loads(PACKAGED_SYNONYMS.read_text("utf-8"))
    words = {word: _synonyms(word, others) for word, others in packaged.items()}
    table, _, problem = _read(home.synonyms)
    problems = [problem] if problem else []
    for word, value in table.items():
        try:
            words[word.lower()] = _synonyms(word, value)
        except BadConfig as exc:
            problems.append(f"{home.synonyms}: {exc}; {exc.hint}")
    # With an empty list a user takes one of our words out.
    return {word: value for word, value in words.items() if value}, tuple(problems)


def find_setting(name: str) -> Setting:
    """Return the setting of a name; BadConfig where there is none."""
    by_name = {setting.name: setting for setting in SETTINGS}
    if name not in by_name:
        hint = did_you_mean(name, by_name, otherwise="`foreword config` lists the settings")
        raise BadConfig(f"{shorten(name)} is not a setting", hint=hint)
    return by_name[name]


def check(setting: Setting, value: object) -> object:
    """Return *value* as the setting holds it; BadConfig with what is allowed where it is not."""
    kind = setting.kind
    if kind in FORMS:
        if isinstance(value, str) and (not value or re.fullmatch(FORMS[kind][0], value)):
            return value
        # The value may be the key itself: do not repeat it.
        raise BadConfig(f"`{setting.name}` must be {range_shown(setting)}", hint="keys stay in the environment")
    is_valid = False
    if kind in ("int", "float") and type(value) in (int, float):  # not isinstance: true is an int to Python
        number: Any = value
        is_valid = setting.between[0] <= number <= setting.between[1] and (kind == "float" or isinstance(number, int))
        value = float(number) if kind == "float" and is_valid else value
    elif kind in ("bool", "str"):
        is_valid = isinstance(value, bool) if kind == "bool" else value in setting.choices
    elif isinstance(value, list):
        texts = [each for each in value if isinstance(each, str) and each.isprintable() and each.strip() == each]
        if kind == "list":  # a relative folder would be another project in every folder; a key never begins with a dot
            is_valid = texts == value and all(each[:1] not in ("", ".") for each in texts)
        else:  # `*` alone would hide every file
            is_valid = texts == value and all(len(each.strip("*/.")) > 1 for each in texts)
    if is_valid:
        return tuple(value) if isinstance(value, list) else value
    hint = f"the default is {default_shown(setting)}"
    raise BadConfig(f"`{setting.name}` must be {range_shown(setting)}, not {shorten(value)}", hint=hint)


def from_text(setting: Setting, text: str) -> object:
    """Parse a value from a shell as TOML would have given it; text that makes no sense stays text."""
    text = text.strip()
    if setting.kind == "bool":
        return _SWITCHES.get(text.lower(), text)
    if setting.kind in ("list", "patterns"):
        if not text.startswith("["):
            return [each.strip() for each in text.split(",") if each.strip()]
        text = f"it = {text}"
    try:
        if setting.kind in ("list", "patterns"):
            return tomllib.loads(text)["it"]
        return {"int": int, "float": float}.get(setting.kind, str)(text)
    except (ValueError, RecursionError):
        return text


def range_shown(setting: Setting) -> str:
    """Return the allowed values of a setting in words."""
    if setting.kind in FORMS:
        return FORMS[setting.kind][1]
    lowest, highest = setting.between
    return {
        "bool": "true or false",
        "int": f"a whole number from {lowest} to {highest}",
        "float": f"a number from {lowest} to {highest}",
        "str": " or ".join(setting.choices),
        "list": "a list of absolute folders or project keys",
        "patterns": "a list such as `*.secret` or `deploy/vault/*`",
    }[setting.kind]


def default_shown(setting: Setting) -> str:
    """Return the default of a setting in words."""
    if setting.kind in ("list", "patterns"):
        return "an empty list"
    return str(setting.default).lower() if setting.kind == "bool" else str(setting.default) or "-"


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


def _read(path: Path) -> tuple[dict[str, Any], str, str]:
    """Return table and text of a TOML file, and what is wrong with it; absent is empty, and so is unreadable."""
    try:
        # A pipe or a device in its place would hang every command.
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(None, "it is not a file")  # noqa: TRY301 - told below, with the others
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1).decode("utf-8-sig")
        if len(text) > MOST_BYTES:
            raise OSError(None, f"it has more than {MOST_BYTES // 1024} KB")  # noqa: TRY301
        return tomllib.loads(text), text, ""
    except FileNotFoundError:
        why = "it is a link that leads nowhere" if path.is_symlink() else ""
    except OSError as exc:
        why = str(exc.strerror)
    except UnicodeDecodeError:
        why = "it is not UTF-8 text"
    except (ValueError, RecursionError) as exc:  # tomllib lets through what int() and a 1,000-deep list raise
        is_syntax = isinstance(exc, tomllib.TOMLDecodeError)
        why = str(exc) if is_syntax and str(exc).isprintable() else "a value is too long or too deep"
    return {}, "", f"{path} cannot be read: {why}; built-in values are used" if why else ""


def change(home: Home, name: str, raw_value: str) -> None:
    """Write one setting, or one number such as `layout.prompt.budget`; leave every other line as it is."""
    path = name.split(".")
    if path[0] == "layout":
        value: object = int(raw_value) if raw_value.strip().isdigit() else raw_value
        nested: Any = value
        for key in reversed(path[1:]):
            nested = {key: nested}
        if wrong := merge_layout(nested)[1]:
            raise BadConfig(wrong[0], hint="docs/settings.md lists the layout, as in layout.session_start.rules.cap")
    else:
        setting = find_setting(name)
        value = from_text(setting, raw_value)
        check(setting, value)
    home.prepare()
    _edit(home, path, value)


def unset(home: Home, name: str) -> bool:
    """Remove one name from the file, so that the default counts again; False when it was not there."""
    path = name.split(".")
    try:
        _edit(home, path, None)
    except KeyError:
        if path[0] != "layout":
            find_setting(name)
        return False
    return True


def _edit(home: Home, path: list[str], value: object) -> None:
    """Set or, where *value* is None, remove one value of the file."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    expected, written, problem = _read(home.config)
    if problem:
        raise BadConfig(problem, hint=f"repair {home.config} first, or move it away; it was not touched")
    _set(expected, path, value)
    try:
        document = tomlkit.parse(written)
        _set(document, path, value)
        text = tomlkit.dumps(document)
        # tomlkit keeps comments but has its own idea of TOML: check that the text means what was wanted, and no more.
        is_exact = tomllib.loads(text) == expected
    except (TOMLKitError, ValueError, RecursionError):
        is_exact = False
    if not is_exact:
        message = f"cannot edit {home.config} without changing more than this setting"
        raise BadConfig(message, hint="make this change in your editor")
    real = os.path.realpath(home.config)  # the user's link to their dotfiles stays a link
    try:
        with replacing(real) as file:
            file.write(text.encode())
    except OSError as exc:
        raise ForewordError(f"cannot write {real}: {exc.strerror}", hint="make room or make it writable") from exc


def _set(table: Any, path: list[str], value: object) -> None:
    for name in path[:-1]:
        if name not in table:
            table[name] = {}
        table = table[name]
        if not isinstance(table, dict):
            raise BadConfig(f"`{name}` in config.toml must be a table", hint="remove that line, then try again")
    if value is None:
        del table[path[-1]]
    else:
        table[path[-1]] = value
