"""Tell which files a project works on: those of the last turns, and those that change together."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple

from foreword.extract.text import is_routine
from foreword.models import Memory, texts
from foreword.recall.relevance import content_words, memory_words
from foreword.terms import lazy_pattern


class TurnRecord(NamedTuple):
    """The files of an earlier turn, the names that it spelled otherwise, and the prompt of a routine."""

    session: str
    ended: float  # seconds since the epoch
    edited: tuple[str, ...] = ()  # relative to the project's root
    read: tuple[str, ...] = ()
    respelled: tuple[str, ...] = ()
    routine: str = ""


def record_of(memory: Memory) -> TurnRecord:
    """Return the record of a turn's memory."""
    user = memory.detail.get("user")
    return TurnRecord(
        session=memory.session,
        ended=memory.created,
        edited=memory.files,
        read=tuple(file for file in texts(memory.detail, "read") if not file.startswith("/")),
        respelled=tuple(texts(memory.detail, "respelled")),
        routine=user if isinstance(user, str) and is_routine(user) else "",
    )


HALF_LIFE_TURNS = 8  # turns after which a file counts half; between 4 and 16 the figures hardly change


def recent_files(records: Sequence[TurnRecord]) -> list[str]:
    """Return the files that were worked on lately, most first: each turn counts, the newer the more."""
    scores: defaultdict[str, float] = defaultdict(float)
    sessions: defaultdict[str, set[str]] = defaultdict(set)
    for number, turn in enumerate(sorted(records, key=lambda each: -each.ended)):
        acts = dict.fromkeys(turn.read, READ) | dict.fromkeys(turn.edited, 1.0)
        for path in filter(is_source, acts):
            # By the root of their number: a turn of fifty files must not outvote one of two.
            scores[path] += acts[path] / math.sqrt(len(acts)) * 0.5 ** (number / HALF_LIFE_TURNS)
        for path in turn.edited:
            sessions[path].add(turn.session)
    for path in scores:
        scores[path] *= 1.0 + AGAIN * max(0, len(sessions[path]) - 1)
    return sorted(scores, key=lambda path: (-scores[path], path))


AGAIN = 0.2  # more for each further session that edited a file: better than 0 on each project left out
READ = 0.6  # of a vote for an edited file: as good as 0.4 or better on each project


TIMES, SHARE = 2, 0.5  # turns in which a file changed with another, of all in which that one changed
Often = list[tuple[str, int, int]]  # files, each with how often it was edited, of how many times


def changed_together(named: Collection[str], history: Sequence[TurnRecord]) -> Often:
    """Return the files that mostly change together with a named one."""
    turns = [turn.edited for turn in history if any(is_named(path, named) for path in turn.edited)]
    return [each for each in _often(turns, least=TIMES) if not is_named(each[0], named)]


OFTEN = 3  # times a test changed with its file before it is named for a plan that leaves it out
_TEST = lazy_pattern(r"^test_|[._-](?:tests?|spec)(?=\.)", re.IGNORECASE)


def missing_tests(named: Collection[str], history: Sequence[TurnRecord]) -> Often:
    """Return the tests that mostly change with a named file and are not named.

    Of what changes together with the files of a plan, only tests were edited with it too: 5 of 7, all others 0 of 30.
    """
    found: Often = []
    for file in dict.fromkeys(path for turn in history for path in turn.edited if is_named(path, named)):
        turns = [turn.edited for turn in history if file in turn.edited]
        found += [each for each in _often(turns, least=OFTEN) if _is_test(each[0], file)]
    return sorted((each for each in found if not is_named(each[0], named)), key=lambda each: (-each[1], each[0]))


RUNS = 3  # of a routine, the last ones, that tell its files
ALIKE = 0.5  # of the words of two short prompts, from which on they ask for the same routine


def files_of_routine(prompt: str, history: Sequence[TurnRecord]) -> Often:
    """Return the files that most of the last runs of the routine edited; *history* is newest first."""
    words, runs = content_words(prompt), []
    for turn in (each for each in history if each.routine and each.edited):
        other = memory_words(turn.routine)
        if len(words & other) > ALIKE * len(words | other):
            runs.append(turn.edited)
    return _often(runs[:RUNS], least=TIMES)


def _often(turns: Sequence[Sequence[str]], *, least: int) -> Often:
    """Return the files that half of *turns* edited, and *least* of them, most often first."""
    counts = Counter(path for edited in turns for path in dict.fromkeys(edited) if is_source(path))
    often = [(path, count, len(turns)) for path, count in counts.items() if count >= max(least, SHARE * len(turns))]
    return sorted(often, key=lambda each: (-each[1], each[0]))


def _is_test(path: str, file: str) -> bool:
    name = path.rpartition("/")[2]
    return _TEST.sub("", name) == file.rpartition("/")[2] != name


def is_source(path: str) -> bool:
    """Return whether a person would edit this file: in the project, not generated, locked, scratch or a dependency."""
    return not _OTHERS.search(path) and not path.startswith(("/", "~", "../")) and path[1:3] != ":/"


_OTHERS = lazy_pattern(
    r"(?:^|/)(?:node_modules|bower_components|site-packages|vendor|third_party|dist|build|out|target|coverage|htmlcov"
    r"|generated|__generated__|__pycache__|__snapshots__|\.next|\.nuxt|\.cache|\.venv|venv|\.tox|\.git|\.gradle"
    r"|tmp|temp|scratch|scratchpad)/"
    r"|(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|bun\.lockb?|go\.sum)$"
    r"|(?:^|/)(?:zz_)?(?:tmp|temp|scratch)[_.-]"
    r"|\.(?:lock|min\.js|min\.css|map|snap|log|tmp|bak|orig|rej|pyc|class|o|so|exe|pb\.go)$|_pb2(?:_grpc)?\.py$"
    r"|\.(?:generated|gen)\.\w+$",
    re.IGNORECASE,
)


def is_changed(path: str, changed: Collection[str]) -> bool:
    """Return whether git calls *path* changed, or a folder of nothing but new files, which ends with a slash."""
    return path in changed or any(path[: at + 1] in changed for at, letter in enumerate(path) if letter == "/")


def is_named(path: str, named: Collection[str]) -> bool:
    """Return whether a prompt names *path*: as it is, or by its last parts in any case."""
    whole = f"/{path.lower()}"
    return any(whole.endswith(f"/{each.strip('/').lower()}") for each in named if each.strip("/"))
