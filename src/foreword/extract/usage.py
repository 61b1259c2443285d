"""Decide which of the injected memories an agent used, from what it did afterwards, against what it would do anyway.

Being shown is no use, and neither is a touched file that this project touches every day. A memory counts as used only
where the agent did something that the memory names, that nobody else had named in this session, and that few recent
sessions of the project did: it fetched the memory, opened a rare file, ran an alternative instead of the command that
fails, or wrote several rare words. What could not have shown use cannot show the contrary either.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from foreword.extract.actions import Action, relative
from foreword.extract.commands import Command, commands_of
from foreword.models import (
    BASE32,
    CONTINUING_SOURCES,
    EMPTY,
    KINDS,
    UNDECIDABLE,
    Injection,
    Memory,
    UsageVerdict,
    is_resent,
    named,
)
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
MOST_NAMED = 12  # files of a memory that are looked for: what names more is about everything
MOST_NOTED = 20_000  # words, files or commands of one session; what comes later is not noted, and nothing is ignored
MOST_WRITTEN = 100_000  # words that the agent wrote, each text for itself
MOST_OUTPUT = 16_000  # characters at both ends of an output whose words are noted

# A rule that was followed looks like a rule that did not apply; goals and what a project is are for reading.
NOT_JUDGED_KINDS = frozenset(("preference", "correction", "goal", "project"))
NOT_JUDGED_LAYERS = frozenset(("rules", "standing"))  # where things stand is the session's own work
# Every project has them and every session reads them, also where no history tells so.
EVERYDAY_FILES = frozenset(("AGENTS.md", "CHANGELOG.md", "CLAUDE.md", "Makefile", "README.md", "package.json"))
NEVER = float("inf")

Times = dict[str, float]  # when each thing was first there
Words = frozenset[str]  # of a command: a longer call that holds them all is the same call


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
        self.touched: Times = {}  # files, each behind its project
        self.mentioned: Times = {}  # roots of words and names of files, by anybody; of prompts the parts of names too
        self.fetched: list[tuple[str, float]] = []  # with `foreword show`
        self.runs: dict[Words, float] = {}
        self._written: list[tuple[float, set[str]]] = []  # roots of the words in each answer and piece of new code
        self._ends: list[float] = []  # of context windows
        self._worked: list[float] = []
        self._is_whole = True  # all that was done is held here

    def add(self, action: Action, *, project: str, root: str = "") -> None:
        """Read what happened next in *project*, whose folder is *root*."""
        at = action.at
        if action.kind == "prompt":
            self._say(action.text, at, _parts(action.text))
        elif action.kind == "answer":
            self._write(action.text, at)
        elif action.kind == "tool":
            self._add_tool(action, project=project, root=root)
        elif action.kind == "compaction" or (action.kind == "start" and action.source not in CONTINUING_SOURCES):
            self._ends.append(at)

    def window_of(self, injection: Injection) -> Window:
        """Return the time in which an injection was in the agent's context."""
        stays = is_resent(injection.trigger, injection.form)
        after = (at for at in self._ends if at > injection.at)
        return Window(injection.at, NEVER if stays else min(after, default=NEVER))

    def is_complete(self, window: Window) -> bool:
        """Return whether the agent worked in that time, and all of it is held here."""
        return self._is_whole and any(at in window for at in self._worked)

    def first_run(self, command: Words) -> float:
        """Return when a command was first run, with whatever else behind it."""
        return min((at for run, at in self.runs.items() if command <= run), default=NEVER)

    def first_mention(self, file: str) -> float:
        """Return when a file was first named, with or without its ending, or described in words by the user."""
        name = os.path.basename(file).lower()
        stem = self.mentioned.get(_root(name.partition(".")[0]), NEVER)
        return min(stem, self.mentioned.get(name, NEVER), self.first_described(_name_words(file)))

    def first_described(self, words: Iterable[str]) -> float:
        """Return when all of these words had been used."""
        return max((self.mentioned.get(word, NEVER) for word in words), default=NEVER)

    def new_words(self, window: Window) -> list[set[str]]:
        """Return, for each text that the agent wrote in that time, the words that nobody had used before it."""
        return [
            {word for word in words if self.mentioned.get(word) == at} for at, words in self._written if at in window
        ]

    def _add_tool(self, action: Action, *, project: str, root: str) -> None:
        at = action.at
        self._worked.append(at)
        del self._worked[:-MOST_NOTED]
        self._is_whole &= action.act != "delegate"  # what a sub-agent does is not reported
        for text in (action.output[:MOST_OUTPUT], action.output[MOST_OUTPUT:][-MOST_OUTPUT:], action.plan):
            self._say(text, at)
        files = list(action.files) if not action.failed else []
        for command in commands_of(action.command) if action.act == "run" else ():
            self._note(self.mentioned, _file_names(command.text), at)
            words = frozenset(command.text.split())
            if len(self.runs) < MOST_NOTED:
                self.runs[words] = min(at, self.runs.get(words, NEVER))
            # An agent without a tool to read files reads them so.
            files += [relative(each.partition("::")[0], cwd=root, root=root) for each in command.targets]
        self._note(self.touched, {f"{project} {file}" for file in files}, at)
        for arguments in _SHOW.findall(action.command):
            self.fetched += [(id, at) for id in _ID.findall(arguments)]
            del self.fetched[:-MOST_NOTED]
        for edit in action.edits if not action.failed else ():
            before = set((edit.before or "").splitlines())
            added = [line for line in (edit.after or "")[:MOST_OUTPUT].splitlines() if line not in before]
            self._write("\n".join(added), at)

    def _say(self, text: str, at: float, more: frozenset[str] | set[str] = frozenset()) -> None:
        self._note(self.mentioned, _roots(text) | _file_names(text) | more, at)

    def _write(self, text: str, at: float) -> None:
        self._say(text, at)
        self._written.append((at, _roots(text)))
        while len(self._written) > 1 and sum(len(words) for _, words in self._written) > MOST_WRITTEN:
            del self._written[0]

    def _note(self, known: Times, found: set[str], at: float) -> None:
        if len(known) + len(found) > MOST_NOTED:
            self._is_whole = False
            found &= known.keys()
        for each in found:
            known[each] = min(at, known.get(each, NEVER))


# ---- what sessions of the project do anyway --------------------------------------------------------------------------


@dataclass(frozen=True)
class BaseRates:
    """Which recent sessions of a project touched each file, used each word and ran each command."""

    sessions: frozenset[str] = frozenset()
    did: Mapping[str, set[str]] = field(default_factory=dict)  # sessions by file or word
    commands: Sequence[tuple[Words, str]] = ()  # each with its session

    def is_rare(self, file_or_word: str) -> bool:
        """Return whether so few sessions touched or used something that doing it needs a reason."""
        return self._few(self.did.get(file_or_word, ()))

    def is_rare_command(self, command: Words, *, driven: Iterable[str]) -> bool:
        """Return whether few sessions ran a command, but those that were *driven* to it."""
        return self._few({session for run, session in self.commands if command <= run}.difference(driven))

    def _few(self, did: Iterable[str]) -> bool:
        return (len(self.sessions.intersection(did)) + 1) / (len(self.sessions) + UNRECORDED) <= RARE


def base_rates_of(turns: Iterable[Memory], *, session: str, before: float) -> BaseRates:
    """Return the base rates of the newest sessions among *turns*, newest first, that were there before that time."""
    sessions: dict[str, None] = {}
    did: dict[str, set[str]] = {}
    commands: dict[tuple[Words, str], None] = {}
    for turn in turns:
        if turn.session == session or turn.created >= before:
            continue
        if turn.session not in sessions and len(sessions) >= RECENT_SESSIONS:
            break
        sessions[turn.session] = None
        words = _roots(f"{turn.title}\n{turn.body}\n{text_in(turn.detail, 'user')}")
        for each in (*turn.files, *texts_in(turn.detail, "read"), *words):
            did.setdefault(each, set()).add(turn.session)
        for line in texts_in(turn.detail, "commands"):
            for command in commands_of(line.rstrip("…")):
                commands[frozenset(command.text.split()), turn.session] = None
    return BaseRates(frozenset(sessions), did, tuple(commands))


# ---- the decision ----------------------------------------------------------------------------------------------------


def usage_of(
    injections: Sequence[Injection],
    *,
    memories: Mapping[str, Memory],
    activity: Activity,
    base_rates: Mapping[str, BaseRates] = EMPTY,
    fetched: Sequence[tuple[str, float]] = (),
    used_before: Mapping[str, frozenset[str]] = EMPTY,
    over: bool = False,
) -> tuple[UsageVerdict, ...]:
    """Return what is known by now: use as soon as it shows, the rest once its window is closed or the session *over*.

    *base_rates* are those of each project; *fetched* the ids that the agent fetched, with their times; *used_before*
    the sessions that used each memory: what they did because of it is no base rate. What was used stays used, and what
    says nothing new is left out.
    """
    found: list[UsageVerdict] = []
    for injection in injections:
        window = activity.window_of(injection)
        settled = over or window.end < NEVER
        rates = base_rates.get(injection.project, BaseRates())
        for item in injection.items:
            memory = memories.get(item.memory)
            used, how = None, UNDECIDABLE
            if any(id == item.memory and at in window for id, at in (*activity.fetched, *fetched)):
                used, how = True, "fetched"
            elif memory and memory.kind not in NOT_JUDGED_KINDS and item.layer not in NOT_JUDGED_LAYERS:
                # What a session did because of the memory says nothing about chance.
                because = used_before.get(memory.id, frozenset()) | {memory.session}
                others = replace(rates, sessions=rates.sessions - because)
                shown = shown_text(injection.text, memory)
                shows = _use(memory, shown, window, activity, others, project=injection.project)
                if shows or (settled and shows is not None):
                    used, how = bool(shows), shows or ""
            if not item.used and (used or settled) and (used, how) != (item.used, item.how):
                found.append(UsageVerdict(injection.id, item.memory, layer=item.layer, used=used, how=how))
    return tuple(found)


def _use(
    memory: Memory, shown: str, window: Window, activity: Activity, rates: BaseRates, *, project: str
) -> str | None:
    """Return what shows that a memory was used; empty where it was ignored, None where nobody can tell.

    It was ignored where the agent worked and left alone all that the memory names, though it names something rare. What
    the user speaks of is left alone or touched for the user's sake.
    """
    failing = text_in(memory.detail, "command") if memory.kind == "failure" else ""
    driven = named(memory.detail, "seen_in") if failing else {}  # the failure leads everybody to the alternative
    failed = activity.first_run(frozenset(failing.split())) if failing else NEVER
    done: list[float] = []  # when something that it names was done or spoken of
    names_rare = False
    for command in _commands_in(shown, failing=failing):
        bare = " ".join(word for word in command if not word.startswith("-"))
        ran, described = activity.first_run(command), activity.first_described(_parts(bare))
        is_rare = rates.is_rare_command(command, driven=driven)
        if is_rare and ran in window and described > ran and failed >= ran:
            return "command"
        done += [ran, described]
        names_rare |= is_rare
    for file in [file for file in memory.files if os.path.basename(file) in shown][:MOST_NAMED]:
        if os.path.basename(file) in EVERYDAY_FILES:
            continue
        touched, is_rare = activity.touched.get(f"{project} {file}", NEVER), rates.is_rare(file)
        if is_rare and touched in window and activity.first_mention(file) >= touched:
            return "file"
        done += [touched, activity.first_described(_name_words(file))]
        names_rare |= is_rare
    words = _roots(shown)
    if any(sum(map(rates.is_rare, words & new)) >= RARE_WORDS for new in activity.new_words(window)):
        return "words"
    left_alone = not any(at < NEVER and at <= window.end for at in done)
    return "" if names_rare and left_alone and activity.is_complete(window) else None


def shown_text(block: str, memory: Memory) -> str:
    """Return the lines of a context block that came from *memory*; all of the memory where the block does not tell."""
    lines = [line for line in block.splitlines() if memory.id in line and not line.startswith("More: ")]
    if not lines and (command := text_in(memory.detail, "command")):  # the line of a failure names no id
        lines = [line for line in block.splitlines() if f"`{command}" in line]
    return "\n".join(lines) or "\n".join((memory.title, memory.body, *memory.files))


# ---- commands and words


def _commands_in(shown: str, *, failing: str) -> list[Words]:
    """Return the commands that a text names in back-ticks and that not everybody runs, without the failing one."""
    quoted = (each.replace("…", " ") for each in _QUOTED.findall(shown) if each != failing)
    commands = (command for text in quoted for command in commands_of(text))
    return [frozenset(each.text.split()) for each in commands if _is_telling(each, of_failure=bool(failing))]


def _is_telling(command: Command, *, of_failure: bool) -> bool:
    """Return whether text in back-ticks is a command, and running it tells something: not `make test`."""
    tool, _, verb = command.program.rpartition(" ")
    script = bool(_SCRIPT.fullmatch(command.program)) or " --" in command.text
    if not command.program or command.kind == "look" or not (command.kind != "other" or tool or script):
        return False  # code is quoted in the same way
    everyday = verb in GENERIC or (not tool and command.kind in ("test", "lint", "build", "git"))
    return of_failure or bool(command.targets) or " --" in command.text or not everyday


_QUOTED = re.compile(r"`([^`\n]{2,200})`")
_SCRIPT = re.compile(r"\.?/?[\w.-]+(?:/[\w.-]+)+|[\w-]+\.(?:sh|py|js|ts|rb)")
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[^\W\d{_UNSPACED}][^\W{_UNSPACED}]{{3,}}")
_PAIR = re.compile(rf"(?=([{_UNSPACED}]{{2}}))")  # two characters are a word in scripts without spaces
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_FILE_NAME = re.compile(r"(?<![\w@+-])[\w@+-][\w@+.-]{0,150}\.[\w@+-]{1,10}(?![\w@+-])")
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


def _name_words(file: str) -> set[str]:
    """Return the words in a file's name, without its ending."""
    name = os.path.basename(file)
    return _parts(name.rpartition(".")[0] or name)


def _file_names(text: str) -> set[str]:
    """Return what looks like the name of a file: a token with an ending."""
    return set(_FILE_NAME.findall(text.lower()))
