"""Decide which of the injected memories an agent used, from what it did afterwards, against what it would do anyway.

Being shown is no use, and neither is a touched file that this project touches every day. A memory counts as used only
where the agent did something that the memory names, that nobody else had named in this session, and that few recent
sessions of the project did: it fetched the memory, opened a rare file, ran an alternative instead of the command that
fails, or wrote several rare words. What could not have shown use cannot show the contrary either.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice

from foreword.extract.actions import Action, relative
from foreword.extract.commands import Command, commands_of, has_shape, shape_of
from foreword.models import BASE32, GOING_ON, KINDS, UNTOLD, Injection, Memory, UsageVerdict, is_resent
from foreword.models import text as text_in
from foreword.models import texts as texts_in
from foreword.terms import GENERIC, STOP_WORDS, root

# The chance that a session does something without the memory: (sessions that did + 1) / (recent sessions + 10), without
# the session that the memory came from. The 10 stand for sessions that nobody recorded: in a new project something is
# rare until a second session did it. On recorded sessions whose agents saw no memory, 0.1, 0.15 and 0.2 credit 0.8, 1.2
# and 1.7 % of the items, and without any limit 3.2 %.
RARE = 0.15
UNRECORDED = 10
RECENT_SESSIONS = 30
# Two rare words are a topic. Three that neither user, tool nor agent had used before do not meet in a text by chance.
RARE_WORDS = 3
SHORTEST_WORD = 4  # letters of a word that tells anything
LONGEST_ENDING = 10  # letters of a file's ending
MOST_NAMED = 12  # files of a memory that are looked for: what names more is about everything

# What is kept of one session; where something did not fit, nothing is said to be ignored.
MOST_FILES = 5_000
MOST_RUNS = 2_000
MOST_WORDS = 20_000
MOST_TIMES = 20_000
MOST_WRITTEN = 100_000  # words that the agent wrote, each text for itself
MOST_OUTPUT = 16_000  # characters at both ends of an output whose words are noted

# A rule that was followed looks like a rule that did not apply; goals and what a project is are for reading.
NOT_JUDGED_KINDS = frozenset(("preference", "correction", "goal", "project"))
NOT_JUDGED_LAYERS = frozenset(("rules", "standing"))  # where things stand is the session's own work
# Files that every project has and every session reads, also where no history tells so.
EVERYDAY_FILES = frozenset(
    """.env .gitignore AGENTS.md CHANGELOG.md CLAUDE.md Cargo.lock Cargo.toml Dockerfile Gemfile LICENSE Makefile
    README.md README.rst __init__.py go.mod go.sum index.html package-lock.json package.json pnpm-lock.yaml poetry.lock
    pyproject.toml requirements.txt setup.cfg setup.py tsconfig.json uv.lock yarn.lock""".split()  # noqa: SIM905 - words are read better
)
NEVER = float("inf")


# ---- what a session did ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Window:
    """The time in which an injection was in the agent's context: after *begin*, up to *end*."""

    begin: float
    end: float

    def __contains__(self, at: float) -> bool:
        return self.begin < at <= self.end and at < NEVER


class Activity:
    """What one session did and wrote: the first time of each thing, in bounded memory, in whatever order it arrives."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], float] = {}  # first read or edited
        self._runs: dict[str, tuple[Command, float]] = {}
        self._names: dict[str, float] = {}  # names of files, first written by anybody
        self._words: dict[str, float] = {}  # roots of words, first used by anybody
        self._prompt_words: dict[str, float] = {}
        self._written: list[tuple[float, set[str]]] = []  # roots of the words in each answer and piece of new code
        self.fetched: list[tuple[str, float]] = []
        self._worked: list[float] = []
        self._window_ends: list[float] = []
        self._incomplete: list[float] = []  # when something was done that is not held here

    def add(self, action: Action, *, project: str, root: str = "") -> None:
        """Take in what happened next in *project*, whose folder is *root*."""
        if action.kind == "prompt":
            self._note_text(action.text, action.at)
            self._note_all(self._prompt_words, _parts(action.text), action.at)
        elif action.kind == "answer":
            self._note_text(action.text, action.at)
            self._keep_written(action.text, action.at)
        elif action.kind == "tool":
            self._add_tool(action, project=project, root=root)
        elif action.kind == "compaction" or (action.kind == "start" and action.source not in GOING_ON):
            self._note_time(self._window_ends, action.at)

    def window_of(self, injection: Injection) -> Window:
        """Return the time in which an injection was in the agent's context."""
        after = (at for at in self._window_ends if at > injection.at)
        stays = is_resent(injection.trigger, injection.form)
        return Window(injection.at, NEVER if stays else min(after, default=NEVER))

    def is_complete(self, window: Window) -> bool:
        """Return whether the agent worked in that time, and all of it is held here."""
        return any(at in window for at in self._worked) and not any(at in window for at in self._incomplete)

    def first_touch(self, file: str, *, project: str) -> float:
        """Return when a file was first read or edited."""
        return self._files.get((project, file), NEVER)

    def first_mention(self, file: str) -> float:
        """Return when a file was first named, with or without its ending, or described in words by the user."""
        name = os.path.basename(file)
        described = self.first_described(_stem_words(file))
        stem = self._words.get(_root(name.partition(".")[0].lower()), NEVER)
        return min(described, stem, self._names.get(name.lower(), NEVER))

    def first_run(self, wanted: Wanted) -> float:
        """Return when a command was first run that does what is wanted."""
        return min((at for run, at in self._runs.values() if wanted.is_run_by(run)), default=NEVER)

    def first_failing_run(self, wanted: Wanted) -> float:
        """Return when the command was first run that the wanted one stands for."""
        runs = ((run, at) for run, at in self._runs.values() if wanted.failing and has_shape(run, wanted.failing))
        return min((at for run, at in runs if not wanted.is_run_by(run)), default=NEVER)

    def new_words(self, window: Window) -> list[set[str]]:
        """Return, for each text that the agent wrote in that time, the words that nobody had used before it."""
        return [{word for word in words if self._words.get(word) == at} for at, words in self._written if at in window]

    def first_described(self, words: Iterable[str]) -> float:
        """Return when the user had used all of these words."""
        return max((self._prompt_words.get(word, NEVER) for word in words), default=NEVER)

    def _add_tool(self, action: Action, *, project: str, root: str) -> None:
        self._note_time(self._worked, action.at)
        if action.act == "delegate":
            self._note_time(self._incomplete, action.at)  # what a sub-agent does is not reported
        for end in (action.output[:MOST_OUTPUT], action.output[MOST_OUTPUT:][-MOST_OUTPUT:]):
            self._note_text(end, action.at)
        self._note_text(action.plan, action.at)
        if action.act == "run":
            self._add_run(action, project=project, root=root)
        if action.failed:
            return
        for file in action.files:
            self._note_one(self._files, (project, file), action.at, most=MOST_FILES)
        for edit in action.edits:
            before = set((edit.before or "").splitlines())
            added = [line for line in (edit.after or "")[:MOST_OUTPUT].splitlines() if line not in before]
            self._note_text("\n".join(added), action.at)
            self._keep_written("\n".join(added), action.at)

    def _add_run(self, action: Action, *, project: str, root: str) -> None:
        self._note_all(self._names, _file_names(action.command), action.at)
        for command in commands_of(action.command):
            _, first = self._runs.get(command.text, (command, NEVER))
            if first < NEVER or len(self._runs) < MOST_RUNS:
                self._runs[command.text] = command, min(first, action.at)
            else:
                self._note_time(self._incomplete, action.at)
            for target in command.targets:  # an agent without a tool to read files reads them so
                file = relative(target.partition("::")[0], cwd=root, root=root)
                self._note_one(self._files, (project, file), action.at, most=MOST_FILES)
        for arguments in _SHOW.findall(action.command):
            self.fetched += [(id, action.at) for id in _ID.findall(arguments)]
            del self.fetched[:-MOST_RUNS]

    def _note_text(self, text: str, at: float) -> None:
        self._note_all(self._words, _roots(text), at)
        self._note_all(self._names, _file_names(text), at)

    def _note_all(self, known: dict[str, float], found: set[str], at: float) -> None:
        for each in found if len(known) + len(found) <= MOST_WORDS else found & known.keys():
            known[each] = min(at, known.get(each, NEVER))

    def _note_one(self, known: dict[tuple[str, str], float], key: tuple[str, str], at: float, *, most: int) -> None:
        if key in known or len(known) < most:
            known[key] = min(at, known.get(key, NEVER))
        else:
            self._note_time(self._incomplete, at)

    def _keep_written(self, text: str, at: float) -> None:
        self._written.append((at, _roots(text)))
        while len(self._written) > 1 and sum(len(words) for _, words in self._written) > MOST_WRITTEN:
            self._note_time(self._incomplete, self._written.pop(0)[0])

    def _note_time(self, times: list[float], at: float) -> None:
        times.append(at)
        del times[:-MOST_TIMES]


# ---- what sessions of the project do anyway --------------------------------------------------------------------------


@dataclass(frozen=True)
class BaseRates:
    """Which recent sessions of a project touched each file, ran each command and used each word."""

    sessions: frozenset[str] = frozenset()
    files: Mapping[str, frozenset[str]] = field(default_factory=dict)
    words: Mapping[str, frozenset[str]] = field(default_factory=dict)
    commands: Sequence[tuple[Command, str]] = ()  # each with its session

    def without(self, sessions: frozenset[str]) -> BaseRates:
        """Return the base rates of the others: what a session did because of a memory says nothing about chance."""
        return replace(self, sessions=self.sessions - sessions)

    def is_rare(self, sessions: Iterable[str]) -> bool:
        """Return whether so few sessions did something that doing it needs a reason."""
        did = self.sessions.intersection(sessions)
        return (len(did) + 1) / (len(self.sessions) + UNRECORDED) <= RARE

    def ran(self, wanted: Wanted) -> set[str]:
        """Return the sessions that ran a command."""
        return {session for command, session in self.commands if wanted.is_run_by(command)}


def base_rates_of(turns: Iterable[Memory], *, session: str, before: float) -> BaseRates:
    """Return the base rates of the newest sessions among *turns*, newest first, that were there before that time."""
    sessions: dict[str, None] = {}
    files: dict[str, set[str]] = {}
    words: dict[str, set[str]] = {}
    commands: dict[tuple[str, str], tuple[Command, str]] = {}
    for turn in turns:
        if turn.session == session or turn.created >= before:
            continue
        if turn.session not in sessions and len(sessions) >= RECENT_SESSIONS:
            break
        sessions[turn.session] = None
        for file in (*turn.files, *texts_in(turn.detail, "read")):
            files.setdefault(file, set()).add(turn.session)
        for word in _roots(f"{turn.title}\n{turn.body}\n{text_in(turn.detail, 'user')}"):
            words.setdefault(word, set()).add(turn.session)
        for line in texts_in(turn.detail, "commands"):
            for command in commands_of(line.rstrip("…")):
                commands[command.text, turn.session] = command, turn.session
    return BaseRates(
        frozenset(sessions),
        {file: frozenset(some) for file, some in files.items()},
        {word: frozenset(some) for word, some in words.items()},
        tuple(commands.values()),
    )


# ---- the decision ----------------------------------------------------------------------------------------------------


def usage_of(
    injections: Sequence[Injection],
    *,
    memories: Mapping[str, Memory],
    activity: Activity,
    base_rates: Mapping[str, BaseRates] | None = None,
    fetched: Iterable[tuple[str, float]] = (),
    used_before: Mapping[str, frozenset[str]] | None = None,
    over: bool = False,
) -> tuple[UsageVerdict, ...]:
    """Return what is known by now: use as soon as it shows, the rest once its window is closed or the session *over*.

    *base_rates* are those of each project; *fetched* the ids that the agent asked for, with their times; *used_before*
    the sessions that used each memory: what they did because of it is no base rate. What was used stays used, and what
    says nothing new is left out.
    """
    fetches = (*activity.fetched, *fetched)
    found: list[UsageVerdict] = []
    for injection in injections:
        window = activity.window_of(injection)
        settled = over or window.end < NEVER
        rates = (base_rates or {}).get(injection.project, BaseRates())
        for item in injection.items:
            if item.used:
                continue
            memory = memories.get(item.memory)
            used: bool | None = None
            how = UNTOLD
            if any(id == item.memory and at in window for id, at in fetches):
                used, how = True, "fetched"
            elif memory and memory.kind not in NOT_JUDGED_KINDS and item.layer not in NOT_JUDGED_LAYERS:
                because = (used_before or {}).get(memory.id, frozenset())
                evidence = _Evidence(
                    memory,
                    shown=shown_text(injection.text, memory),
                    project=injection.project,
                    window=window,
                    activity=activity,
                    rates=rates.without(because | {memory.session}),
                )
                if how_used := evidence.use():
                    used, how = True, how_used
                elif settled and evidence.was_ignored():
                    used, how = False, ""
            if (used or settled) and (used, how) != (item.used, item.how):
                found.append(UsageVerdict(injection.id, item.memory, layer=item.layer, used=used, how=how))
    return tuple(found)


def shown_text(block: str, memory: Memory) -> str:
    """Return the lines of a context block that came from *memory*; all of the memory where the block does not tell."""
    lines = [line for line in block.splitlines() if memory.id in line and not line.startswith("More: ")]
    if not lines and (command := text_in(memory.detail, "command")):  # the line of a failure names no id
        lines = [line for line in block.splitlines() if f"`{command}" in line]
    return "\n".join(lines) or "\n".join((memory.title, memory.body, *memory.files))


class _Evidence:
    """What one memory in one window names that could show its use: rare files, rare commands, rare words."""

    def __init__(
        self, memory: Memory, *, shown: str, project: str, window: Window, activity: Activity, rates: BaseRates
    ) -> None:
        self._memory, self._project = memory, project
        self._window, self._activity, self._rates = window, activity, rates
        failing = text_in(memory.detail, "command") if memory.kind == "failure" else ""
        named = (file for file in memory.files if os.path.basename(file) in shown)
        self._files = [file for file in islice(named, MOST_NAMED) if os.path.basename(file) not in EVERYDAY_FILES]
        self._commands = _commands_in(shown, failing=failing)
        self._words = _roots(shown)

    def use(self) -> str:
        """Return what shows that the memory was used; empty where nothing does."""
        if any(self._was_followed(each) and self._is_rare_command(each) for each in self._commands):
            return "command"
        if any(self._was_opened(each) and self._is_rare_file(each) for each in self._files):
            return "file"
        return "words" if any(map(self._was_repeated, self._activity.new_words(self._window))) else ""

    def was_ignored(self) -> bool:
        """Return whether the agent worked and left alone all that the memory names, though it names something rare.

        What the user speaks of is left alone or touched for the user's sake.
        """
        if not self._activity.is_complete(self._window):
            return False
        firsts = (
            *(self._activity.first_touch(each, project=self._project) for each in self._files),
            *(self._activity.first_run(each) for each in self._commands),
            *(self._activity.first_described(_stem_words(each)) for each in self._files),
            *(self._activity.first_described(each.words) for each in self._commands),
        )
        if any(first < NEVER and first <= self._window.end for first in firsts):
            return False
        return any(map(self._is_rare_file, self._files)) or any(map(self._is_rare_command, self._commands))

    def _was_opened(self, file: str) -> bool:
        """Return whether the agent went to a file that nobody had named."""
        touched = self._activity.first_touch(file, project=self._project)
        return touched in self._window and self._activity.first_mention(file) >= touched

    def _was_followed(self, wanted: Wanted) -> bool:
        """Return whether the agent ran a command unasked, and not after the failure that leads everybody to it."""
        ran = self._activity.first_run(wanted)
        if ran not in self._window or self._activity.first_described(wanted.words) <= ran:
            return False
        return self._activity.first_failing_run(wanted) > ran

    def _was_repeated(self, new_words: set[str]) -> bool:
        """Return whether a text of the agent holds enough rare words of the memory that nobody had used before."""
        both = self._words & new_words
        return (
            len(both) >= RARE_WORDS
            and sum(self._rates.is_rare(self._rates.words.get(word, ())) for word in both) >= RARE_WORDS
        )

    def _is_rare_file(self, file: str) -> bool:
        return self._rates.is_rare(self._rates.files.get(file, ()))

    def _is_rare_command(self, wanted: Wanted) -> bool:
        return self._rates.is_rare(_sessions_running(wanted, self._memory, self._rates))


# ---- commands


@dataclass(frozen=True)
class Wanted:
    """A command that a memory names; of an alternative to a failing command, the way of calling is what counts."""

    command: Command
    shape: str = ""  # of an alternative
    failing: str = ""  # the shape of the command that it stands for

    @property
    def words(self) -> set[str]:
        """Return the words that name it."""
        return _parts(" ".join((self.command.program, *self.command.targets)))

    def is_run_by(self, run: Command) -> bool:
        """Return whether *run* does it: the same program, on at least the same, with its options."""
        if self.shape:  # a call that is of both shapes is of the one that says more
            return has_shape(run, self.shape) and not (
                len(self.failing.split()) > len(self.shape.split()) and has_shape(run, self.failing)
            )
        same = os.path.basename(self.command.program) == os.path.basename(run.program)
        return same and set(self.command.targets) <= set(run.targets) and _options(self.command) <= _options(run)


def _commands_in(shown: str, *, failing: str) -> list[Wanted]:
    """Return the commands that a text names in back-ticks and that not everybody runs, without the failing one."""
    found: dict[str, Wanted] = {}
    for quoted in _QUOTED.findall(shown):
        for command in commands_of(quoted.replace("…", " ")):
            shape = shape_of(command)
            if failing and failing in {quoted, shape}:
                continue
            if _is_command(command) and (failing or _is_specific(command)):
                found[command.text] = Wanted(command, shape, failing) if failing else Wanted(command)
    return list(found.values())


def _sessions_running(wanted: Wanted, memory: Memory, rates: BaseRates) -> set[str]:
    """Return the recent sessions that ran a command without having been driven to it by the failure."""
    ran = rates.ran(wanted)
    if memory.kind != "failure":
        return ran
    failed = set(_names(memory.detail.get("seen_in")))
    used = memory.detail.get("used_in")
    for line, sessions in used.items() if isinstance(used, dict) else ():
        if any(wanted.is_run_by(each) for each in commands_of(str(line))):
            ran.update(_names(sessions))
    return ran - failed


def _names(found: object) -> Iterator[str]:
    yield from (str(each) for each in found) if isinstance(found, (dict, list, tuple)) else ()


_QUOTED = re.compile(r"`([^`\n]{2,200})`")
_SCRIPT = re.compile(r"\.?/?[\w.-]+(?:/[\w.-]+)+|[\w-]+\.(?:sh|py|js|ts|rb)")


def _is_command(command: Command) -> bool:
    """Return whether what stands in back-ticks is a command: code is quoted in the same way."""
    if not command.program or command.kind == "look":
        return False
    known = command.kind != "other" or " " in command.program  # a tool with its verb: `make sandbox`
    return known or bool(_SCRIPT.fullmatch(command.program)) or " --" in command.text


def _is_specific(command: Command) -> bool:
    """Return whether running it tells something: not `make test`, which everybody runs."""
    *_, verb = command.program.split()
    everyday = verb in GENERIC or (verb == command.program and command.kind in ("test", "lint", "build", "git"))
    return bool(command.targets or _options(command)) or not everyday


def _options(command: Command) -> frozenset[str]:
    return frozenset(word for word in command.text.split() if word.startswith("--") and len(word) > 2)


# ---- words

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[^\W\d{_UNSPACED}][^\W{_UNSPACED}]{{{SHORTEST_WORD - 1},}}")
_PAIR = re.compile(rf"(?=([{_UNSPACED}]{{2}}))")  # two characters are a word in scripts without spaces
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_TOKEN = re.compile(r"[\w@+.-]{3,200}")
_ID = re.compile(rf"\b(?:{'|'.join(KINDS.values())})-[{BASE32}]{{8}}\b")
_SHOW = re.compile(r"\bforeword\s+show\b([^;&|\n]*)")
_root = lru_cache(1 << 14)(root)  # outputs repeat the same words


def _roots(text: str) -> set[str]:
    """Return the words of a text that tell something, by their roots: an identifier is one word."""
    found = set(_WORD.findall(text.lower()))
    return {_root(word) for word in found - GENERIC - STOP_WORDS}.union(_PAIR.findall(text))


def _parts(text: str) -> set[str]:
    """Return all words of a text by their roots, identifiers and file names in their parts."""
    return {_root(word.lower()) for word in _PART.findall(text) if len(word) > 1}


def _stem_words(file: str) -> set[str]:
    """Return the words in a file's name, without its ending."""
    name = os.path.basename(file)
    return _parts(name.rpartition(".")[0] or name)


def _file_names(text: str) -> set[str]:
    """Return what looks like the name of a file: a token with an ending."""
    tokens = (token.strip(".-") for token in _TOKEN.findall(text.lower()) if "." in token)
    return {token for token in tokens if 1 <= len(token.rpartition(".")[2]) <= LONGEST_ENDING and "." in token}
