"""What an agent did after it was given memories -> which it used, which it did not, and of which nobody can tell.

Being shown is no use. Use leaves a footprint that nothing else explains: an id that was fetched, a file or a function
that was touched, a command that was run, words in an answer that nobody had said before.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from foreword import details
from foreword.extract.actions import Action, relative
from foreword.extract.commands import Command, commands_of
from foreword.store.judged import UNTOLD, Verdict
from foreword.types import BASE32, GOING_ON, KINDS, Edit, Injection, Memory, stands
from foreword.words import GENERIC, STOP_WORDS, root, told_in

# One rare word comes by chance and two are a topic; three that nobody had said before do not meet in one answer.
WORDS = 3
RUN = 3  # words in a row that equal ours are a quotation: as many as it takes to tell
SHARED = 2  # memories of one session that may hold a word; what more of them say is what the session is about
SHORTEST = 4  # letters of a word or a function that tells anything
NAMED = 12  # files of a memory that are looked for: what names more is about everything

# What a footprint holds of one session; of more than that, nothing is said to be unused.
MOST_FILES = 5_000
MOST_FUNCTIONS = 20_000
MOST_RUNS = 2_000
MOST_SEEN = 20_000  # words
MOST_TIMES = 20_000
MOST_ASKED = 200_000  # characters of prompts, the last ones
MOST_SAID = 400_000  # of answers
ENDS_OF = 4_000  # characters at both ends of an output whose words are noted

# A rule that was followed looks like a rule that did not apply; goals and what a project is are for reading.
SILENT = frozenset(("preference", "correction", "goal", "project"))
# Files that every project has and every session reads.
EVERYDAY = frozenset(
    """.env .gitignore AGENTS.md CHANGELOG.md CLAUDE.md Cargo.lock Cargo.toml Dockerfile Gemfile LICENSE Makefile
    README.md README.rst __init__.py go.mod go.sum index.html package-lock.json package.json pnpm-lock.yaml poetry.lock
    pyproject.toml requirements.txt setup.cfg setup.py tsconfig.json uv.lock yarn.lock""".split()  # noqa: SIM905 - words are read better
)
FOREVER = float("inf")


class Footprint:
    """What was done and said in one session, action by action: the first time of each thing, in bounded memory."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], float] = {}
        self._functions: dict[tuple[str, str], float] = {}
        self._runs: dict[str, tuple[Command, float]] = {}
        self._seen: dict[str, float] = {}  # roots of words, by whoever said them first: user, tool or agent
        self._prompts: list[tuple[float, str]] = []
        self.answers: list[tuple[float, str]] = []
        self.fetched: list[tuple[str, float]] = []
        self._did: list[float] = []
        self._closed: list[float] = []  # when a context window ended and the next began
        self._unseen: list[float] = []  # when something was done that is not held here

    def add(self, action: Action, *, project: str, root: str = "", functions: Iterable[str] = ()) -> None:
        """Take in what happened next in *project*, and which *functions* it changed."""
        if action.kind == "prompt":
            self._note_words(action.text, action.at)
            self._keep(self._prompts, action.text.lower(), action.at, most=MOST_ASKED)
        elif action.kind == "answer":
            self._note_words(action.text, action.at)
            self._keep(self.answers, action.text, action.at, most=MOST_SAID)
        elif action.kind == "tool":
            self._tool(action, project=project, root=root, functions=functions)
        elif action.kind == "compaction" or (action.kind == "start" and action.source not in GOING_ON):
            self._time(self._closed, action.at)

    def window(self, given: Injection) -> Window:
        """The time in which an injection was before the agent's eyes."""
        after = (at for at in self._closed if at > given.at)
        return Window(given.at, FOREVER if stands(given.moment, given.form) else min(after, default=FOREVER))

    def did(self, window: Window) -> bool:
        """Whether something was done then, and all of it was seen."""
        return any(at in window for at in self._did) and not any(at in window for at in self._unseen)

    def touched(self, file: str, *, project: str) -> float | None:
        """When a file was first read or edited."""
        return self._files.get((project, file))

    def changed(self, function: str, *, project: str) -> float | None:
        """When a function was first changed, or named in a line that was."""
        return self._functions.get((project, function))

    def ran(self, command: Command) -> float | None:
        """When a command was first run, with whatever more."""
        return min((at for run, at in self._runs.values() if _is_run(command, run)), default=None)

    def first(self, word: str) -> float | None:
        """When a word, by its root, was first said by anybody."""
        return self._seen.get(word)

    def asked(self, *names: str, until: float) -> bool:
        """Whether the user had named all of these in one prompt by then."""
        lowered = [name.lower() for name in names]
        return any(at <= until and all(name in text for name in lowered) for at, text in self._prompts)

    # -- taking in ----------------------------------------------------------------------------------------------
    def _tool(self, action: Action, *, project: str, root: str, functions: Iterable[str]) -> None:
        self._time(self._did, action.at)
        if action.act == "delegate":
            self._time(self._unseen, action.at)  # what a sub-agent touches is not told
        for end in (action.output[:ENDS_OF], action.output[ENDS_OF:][-ENDS_OF:]):
            self._note_words(end, action.at)
        if action.act == "run":
            self._run(action, project=project, root=root)
        if not action.failed:
            for file in action.files:
                self._note(self._files, (project, file), action.at, most=MOST_FILES)
            names = {name for edit in action.edits for name in _called(edit)}
            for name in names.union(*map(_names, functions)):
                self._note(self._functions, (project, name), action.at, most=MOST_FUNCTIONS)

    def _run(self, action: Action, *, project: str, root: str) -> None:
        for command in commands_of(action.command):
            _, first = self._runs.get(command.text, (command, FOREVER))
            if first < FOREVER or len(self._runs) < MOST_RUNS:
                self._runs[command.text] = command, min(first, action.at)
            else:
                self._time(self._unseen, action.at)
            for target in command.targets:  # whoever has no tool to read files reads them so
                file = relative(target.partition("::")[0], cwd=root, root=root)
                self._note(self._files, (project, file), action.at, most=MOST_FILES)
        for shown in _FETCHED.findall(action.command):
            for id in _ID.findall(shown):
                self.fetched = [*self.fetched, (id, action.at)][-MOST_RUNS:]

    def _note_words(self, text: str, at: float) -> None:
        seen, words = self._seen, _roots(text)
        if len(seen) + len(words) > MOST_SEEN:
            words &= seen.keys()
        for word in words:
            if seen.get(word, FOREVER) > at:
                seen[word] = at

    def _note(self, first: dict[tuple[str, str], float], name: tuple[str, str], at: float, *, most: int) -> None:
        if name in first or len(first) < most:
            first[name] = min(at, first.get(name, FOREVER))
        else:
            self._time(self._unseen, at)

    def _keep(self, kept: list[tuple[float, str]], text: str, at: float, *, most: int) -> None:
        kept.append((at, text))
        while len(kept) > 1 and sum(len(text) for _, text in kept) > most:
            self._time(self._unseen, kept.pop(0)[0])

    def _time(self, times: list[float], at: float) -> None:
        times.append(at)
        del times[:-MOST_TIMES]


@dataclass(frozen=True)
class Window:
    """A time with its end: from just after an injection to when it was gone from the context."""

    begin: float
    end: float

    def __contains__(self, at: float) -> bool:
        return self.begin < at <= self.end


def judge(
    given: Sequence[Injection],
    *,
    memories: Mapping[str, Memory],
    footprint: Footprint,
    fetched: Iterable[tuple[str, float]] = (),
    over: bool = False,
) -> tuple[Verdict, ...]:
    """What can be told by now: use as soon as it shows, the rest only where a window is closed or the session *over*.

    What was used stays used. A verdict that says nothing new is not among them.
    """
    words = {id: _roots(_text(memory)) for id, memory in memories.items()}
    common = _common(given, words)
    spoken = _spoken(given, memories, footprint)
    opened = (*footprint.fetched, *fetched)
    verdicts = []
    for each in given:
        window = footprint.window(each)
        for item in each.items:
            if item.used:
                continue
            memory = memories.get(item.memory)
            said = Verdict(each.id, item.memory, used=None, how=UNTOLD)
            if memory is not None:
                about = _About(memory, window, footprint, project=each.project)
                how = about.use(opened=opened, spoken=spoken, words=words[memory.id] - common)
                said = Verdict(each.id, item.memory, used=True, how=how) if how else said
                if not how and about.was_for_nothing():
                    said = Verdict(each.id, item.memory, used=False)
            if (said.used or over or window.end < FOREVER) and (said.used, said.how) != (item.used, item.how):
                verdicts.append(said)
    return tuple(verdicts)


class _About:
    """One memory in one window: what could be touched or run because of it, and what was."""

    def __init__(self, memory: Memory, window: Window, footprint: Footprint, *, project: str) -> None:
        self._memory = memory
        self._window = window
        self._footprint = footprint
        files = [file for file in memory.files[:NAMED] if os.path.basename(file) not in EVERYDAY]
        functions = [name for name in memory.functions[:NAMED] if _tells(name)]
        # Each thing with what a prompt would call it, and when it was first touched or run.
        self._handles: list[tuple[str, tuple[str, ...], float | None]] = [
            *(("command", (command.program, *command.targets), footprint.ran(command)) for command in _meant(memory)),
            *(("function", (_last(name),), footprint.changed(_last(name), project=project)) for name in functions),
            *(("file", (os.path.basename(file),), footprint.touched(file, project=project)) for file in files),
        ]

    def use(
        self,
        *,
        opened: Iterable[tuple[str, float]],
        spoken: Sequence[tuple[float, set[str]]],
        words: set[str],
    ) -> str:
        """What tells that it was used, the surest first; empty where nothing does."""
        if any(id == self._memory.id and at in self._window for id, at in opened):
            return "fetched"
        for how, names, first in self._handles:
            if first is not None and first in self._window and not self._footprint.asked(*names, until=first):
                return how
        return "words" if any(at in self._window and len(words & said) >= WORDS for at, said in spoken) else ""

    def was_for_nothing(self) -> bool:
        """Whether it could have been touched or run, the agent worked, and it was not; asked where it was not used."""
        if self._memory.kind in SILENT or not self._handles or not self._footprint.did(self._window):
            return False
        return not any(
            (first is not None and first <= self._window.end) or self._footprint.asked(*names, until=self._window.end)
            for _, names, first in self._handles
        )


# ---- words


def _text(memory: Memory) -> str:
    return f"{memory.title}\n{memory.body}\n{told_in(dict(memory.detail))}"


def _common(given: Sequence[Injection], words: Mapping[str, set[str]]) -> set[str]:
    """Words that several of the given memories hold."""
    ids = {item.memory for each in given for item in each.items}
    counted = Counter(word for id in ids for word in words.get(id, ()))
    return {word for word, times in counted.items() if times > SHARED}


def _spoken(
    given: Sequence[Injection], memories: Mapping[str, Memory], footprint: Footprint
) -> list[tuple[float, set[str]]]:
    """For each answer the words in it that nobody had said before, without what it quotes of ours."""
    since = min((each.at for each in given), default=FOREVER)
    answers = [(at, text) for at, text in footprint.answers if at > since]
    ours = _runs(text for text in (*(each.text for each in given), *map(_text, memories.values())) if answers)
    return [
        (at, {word for word in _roots(_unquoted(text, ours)) if footprint.first(word) == at}) for at, text in answers
    ]


def _runs(texts: Iterable[str]) -> frozenset[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for text in texts:
        said = [word for word, _, _ in _tokens(text)]
        found.update(zip(*(said[at:] for at in range(RUN)), strict=False))
    return frozenset(found)


def _unquoted(text: str, ours: frozenset[tuple[str, ...]]) -> str:
    """*text* without the runs of words that stand in ours."""
    tokens = list(_tokens(text))
    quoted = {
        at + step
        for at in range(len(tokens) - RUN + 1)
        if tuple(word for word, _, _ in tokens[at : at + RUN]) in ours
        for step in range(RUN)
    }
    kept, last = [], 0
    for at in sorted(quoted):
        _, begin, end = tokens[at]
        kept.append(text[last:begin])
        last = end
    return "\n".join((*kept, text[last:]))


def _tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """The words of a text and where they stand; of scripts without spaces, each character."""
    for found in _TOKEN.finditer(text):
        yield found[0].lower(), found.start(), found.end()


_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u9fff\uac00-\ud7af"
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_WORD = re.compile(rf"[^\W\d{_UNSPACED}][^\W{_UNSPACED}]{{{SHORTEST - 1},}}")
_PAIR = re.compile(rf"(?=([{_UNSPACED}]{{2}}))")  # two characters are a word in scripts without spaces


def _roots(text: str) -> set[str]:
    """The words of a text that tell something, by their roots: an identifier is one word, however it is made up."""
    found = set(_WORD.findall(text.lower()))
    return {_root(word) for word in found - GENERIC - STOP_WORDS}.union(_PAIR.findall(text))


_root = lru_cache(1 << 14)(root)  # outputs say the same words all day


# ---- code


def _called(edit: Edit) -> set[str]:
    """The functions that the changed lines of an edit define or call."""
    before, after = set((edit.before or "").splitlines()), set((edit.after or "").splitlines())
    return set(_CALL.findall("\n".join(before ^ after)))


_CALL = re.compile(r"([^\W\d]\w{3,})\s*\(")


def _names(function: str) -> tuple[str, str]:
    return function, _last(function)


def _last(function: str) -> str:
    return function.replace("::", ".").rpartition(".")[2]


def _tells(function: str) -> bool:
    """Whether a name is seldom enough that touching it says something."""
    name = _last(function)
    return len(name) >= SHORTEST and not name.startswith("__") and name.lower() not in GENERIC


# ---- commands


def _meant(memory: Memory) -> list[Command]:
    """The commands that a memory names, and that not everybody runs all day."""
    texts = [memory.title, memory.body, details.text(memory.detail, "fixed_by")]
    quoted = [each for told in texts for each in _QUOTED.findall(told)]
    found = [
        *(each for each in commands_of(details.text(memory.detail, "command")) if _is_telling(each)),
        *(each for told in quoted for each in commands_of(told) if _is_telling(each) and _is_command(each)),
    ]
    return list({each.text: each for each in found}.values())


_QUOTED = re.compile(r"`([^`\n]{2,200})`")


def _is_command(command: Command) -> bool:
    """Whether what stands in backticks is one: code is quoted in the same way."""
    return command.kind != "other" or bool(_SCRIPT.fullmatch(command.program)) or " --" in command.text


_SCRIPT = re.compile(r"\.?/?[\w.-]+(?:/[\w.-]+)+|[\w-]+\.(?:sh|py|js|ts|rb)")


def _is_telling(command: Command) -> bool:
    """Whether running it says something: what is named, or said with an option, is not what everybody runs."""
    if not command.program or command.kind == "look":
        return False
    *_, verb = command.program.split()
    everyday = verb in GENERIC or (verb == command.program and command.kind in ("test", "lint", "build", "git"))
    return bool(command.targets or _options(command)) or not everyday


def _is_run(meant: Command, run: Command) -> bool:
    """Whether *run* is the command that was meant: the same program, on at least the same, with its options."""
    same = os.path.basename(meant.program) == os.path.basename(run.program)
    return same and set(meant.targets) <= set(run.targets) and _options(meant) <= _options(run)


def _options(command: Command) -> frozenset[str]:
    return frozenset(word for word in command.text.split() if word.startswith("--") and len(word) > 2)


# ---- ids

_ID = re.compile(rf"\b(?:{'|'.join(KINDS.values())})-[{BASE32}]{{8}}\b")
_FETCHED = re.compile(r"\bforeword\s+show\b([^;&|\n]*)")
