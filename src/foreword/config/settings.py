"""Every setting there is, with its default, range and meaning -> a value that is one of it, or why it is not."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from foreword.errors import BadConfig
from foreword.layout import Layout, shown
from foreword.models import POSTINGS, TOKENIZERS

if TYPE_CHECKING:
    from collections.abc import Mapping

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
_SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


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
        choices=("auto", *TOKENIZERS),
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
    Setting(
        "prompt_style",
        "notes",
        "str",
        "",
        "What a prompt is given: a few notes with their substance, or an index of one-line entries to fetch from.",
        choices=("notes", "index"),
    ),
    Setting(
        "hints",
        True,
        "bool",
        "",
        "Say a line before a command that failed before, and after a failure that was solved.",
    ),
    Setting(
        "agent_notes", False, "bool", "", "Ask the agent for its own notes after substantial work, once a session."
    ),
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
        choices=("off", "anthropic", "openai"),
    ),
    Setting("model_name", "", "model", "", "The model that is asked."),
    Setting(
        "model_url", "", "address", "", "Where it is, if not at its maker's; openai means any endpoint of its kind."
    ),
    Setting("model_key_env", "", "keyplace", "", "Where the worker finds the key, if it wants one."),
    Setting("model_daily_tokens", 50_000, "int", "tokens", "The most that any 24 hours may cost.", 0, 100_000_000),
    Setting("model_seconds", 60.0, "float", "seconds", "The longest that one request may take.", 1, 600),
    # 0 keeps it for ever; after a jump of the clock nothing goes by age (docs/retention.md).
    Setting("events_keep_days", 180, "int", "days", "How long raw events are kept once they are distilled.", 0, 36500),
    Setting(
        "traces_keep_days",
        365,
        "int",
        "days",
        "How long traces are kept: texts of injections, who fetched what, why nothing was said, what undoes the log.",
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


@dataclass(frozen=True)
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
    prompt_style: str
    hints: bool
    agent_notes: bool
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
    recipes: Mapping[str, Layout]


def named(name: str) -> Setting:
    """The setting of a name, or BadConfig with the nearest one there is."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    import difflib

    near = difflib.get_close_matches(name.lower(), [*_BY_NAME, "recipes"], n=1)
    raise BadConfig(
        f"{shown(name)} is not a setting",
        hint=f"did you mean `{near[0]}`?" if near else "`foreword config` lists the settings",
    )


def checked(setting: Setting, given: object) -> object:
    """The value as the setting holds it, or BadConfig with what it may be."""
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
        raise BadConfig(f"`{setting.name}` must be {range_shown(setting)}", hint="keys stay in the environment")
    raise BadConfig(
        f"`{setting.name}` must be {range_shown(setting)}, not {shown(given)}",
        hint=f"the default is {default_shown(setting)}",
    )


def from_text(setting: Setting, text: str) -> object:
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


def range_shown(setting: Setting) -> str:
    """What a setting may be, in words."""
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


def default_shown(setting: Setting) -> str:
    """What a setting is when nobody changes it, in words."""
    return {"bool": str(setting.default).lower(), "list": "an empty list", "patterns": "an empty list"}.get(
        setting.kind, str(setting.default) or "-"
    )


def _is_within(setting: Setting, given: float) -> bool:
    # true is an int to Python, and a slip to us.
    return not isinstance(given, bool) and setting.lowest <= given <= setting.highest


def _is_project(given: object) -> bool:
    # A relative folder would mean another project in every folder; a key never begins with a dot.
    return isinstance(given, str) and given.isprintable() and given.strip() == given and given[:1] not in ("", ".")


def _is_pattern(given: object) -> bool:
    # `*` alone would hide every file.
    return isinstance(given, str) and given.isprintable() and given.strip() == given and len(given.strip("*/.")) > 1


def _list_from_text(text: str) -> object:
    if not text.startswith("["):
        return [each.strip() for each in text.split(",") if each.strip()]
    try:
        return tomllib.loads(f"it = {text}")["it"]
    except (ValueError, RecursionError):
        return text
