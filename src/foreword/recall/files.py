"""Estimate which files the agent will need for a prompt, from what earlier turns did.

Five signals: words of earlier turns vote for the files that they edited or read; words of the prompt in a file's name;
how recently it was touched; files that were edited together with those of this session; names in the prompt. The score
is an estimate of the chance that the turn touches the file, so that one threshold serves all prompts.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from foreword.details import text, texts
from foreword.recall.relevance import memory_words
from foreword.types import Memory


@dataclass(frozen=True)
class TurnRecord:
    """What is needed of an earlier turn; words as `content_words` writes them."""

    session: str
    ended: float  # seconds since the epoch
    words: frozenset[str]  # of the prompt, the final message and commit subjects
    prompt_words: frozenset[str]  # of the prompt alone
    edited: tuple[str, ...] = ()  # relative to the project's root
    read: tuple[str, ...] = ()


def record_of(memory: Memory) -> TurnRecord:
    """Return the record of a turn's memory."""
    detail = memory.detail
    user = text(detail, "user")
    words = " ".join((memory.title, memory.body, user, *texts(detail, "commits")))
    return TurnRecord(
        session=memory.session,
        ended=memory.created,
        words=memory_words(words),
        prompt_words=memory_words(user),
        edited=memory.files,
        read=tuple(file for file in texts(detail, "read") if not file.startswith("/")),
    )


HALF = 8  # turns after which a file counts half; between 4 and 16 the figures hardly change


def recent_files(records: Sequence[TurnRecord]) -> list[str]:
    """Return the files that were worked on lately, most first: each turn counts, the newer the more."""
    scores: defaultdict[str, float] = defaultdict(float)
    for number, turn in enumerate(sorted(records, key=lambda each: -each.ended)):
        for path, share in _shares(turn).items():
            if is_source(path):
                scores[path] += share * 0.5 ** (number / HALF)
    return sorted(scores, key=lambda path: (-scores[path], path))


class LikelyFile(NamedTuple):
    """A file, the estimated chance that the turn touches it, and what each signal gives."""

    path: str
    score: float
    signals: Mapping[str, float]


# Logistic regressions on each two of the three recorded projects gave: constant -5.5 to -5.3, votes 2.1 to 2.8, prompts
# 0.3 to 1.0, name 1.0 to 1.8, recency 1.8 to 2.3. Rounded, they rank the third about as well as what was fitted.
BASE, VOTES, PROMPTS, NAME, RECENCY = -5.4, 2.5, 0.5, 1.5, 2.0
TOGETHER = 0.5  # made no measurable difference there; it orders files that are otherwise equal
READ = 0.4  # of a vote for an edited file


def likely_files(
    prompt_terms: Mapping[str, float],
    history: Sequence[TurnRecord],
    *,
    session: str,
    session_touched: Collection[str] = (),
    names_in_prompt: Collection[str] = (),
    only_named: bool = False,
    most: int = 8,
) -> list[LikelyFile]:
    """Return the files that a prompt will probably need, most likely first, without those that the agent has.

    *prompt_terms* are the content words of the prompt with their rarity; *history* the turns that ended before: those
    that a search for these words finds, and the turns of the last thirty sessions. *only_named* is for replies and
    routines, which hold too few words to vote: only files whose whole name the prompt says ("update the changelog").
    """
    turns = sorted(history, key=lambda turn: turn.ended)
    whole = sum(prompt_terms.values())
    rank = _session_ranks(turns, session)
    votes: defaultdict[str, float] = defaultdict(float)
    prompts: defaultdict[str, float] = defaultdict(float)
    touched: dict[str, int] = {}
    best = 0.0
    for turn in turns:
        shares = _shares(turn)
        alike = _weight(prompt_terms, turn.words) / whole if whole else 0.0
        asked_alike = _weight(prompt_terms, turn.prompt_words) / whole if whole else 0.0
        best = max(best, alike)
        for path, share in shares.items():
            votes[path] += alike * alike * share
            prompts[path] += asked_alike * share
            touched[path] = min(touched.get(path, len(rank)), rank[turn.session])
    together = _edited_together(turns, {*session_touched, *names_in_prompt})
    names = _name_shares(touched, frozenset(prompt_terms))
    most_votes = max(votes.values(), default=0.0) or 1.0
    had = {*session_touched, *names_in_prompt}
    known = _Known(had)
    found = []
    for path, sessions_ago in touched.items():
        if path in known or not is_source(path) or (only_named and names[path] < 1.0):
            continue
        signals = {
            "words of earlier turns": VOTES * best * votes[path] / most_votes,
            "earlier prompts alike": PROMPTS * math.log1p(5 * prompts[path]),
            "its name": NAME * names[path],
            "touched lately": RECENCY / (1 + sessions_ago),
            "edited together": TOGETHER * together.get(path, 0.0),
        }
        score = 1 / (1 + math.exp(-BASE - sum(signals.values())))
        found.append(LikelyFile(path, score, signals))
    found.sort(key=lambda each: (-each.score, each.path))
    return found[:most]


# Readers call a line of mostly wrong paths noise. Without a note beside it, the line held a file that the turn touched
# in 6 of 39 cases from 0.1 on, 5 of 19 from 0.2, 3 of 9 from 0.3: alone it comes only where it is likelier than not.
ALONE = 0.5
WITH_NOTE = 0.2
MOST_FILES = 3


def select_files(
    found: Sequence[LikelyFile], *, with_note: bool, opens_topic: bool = True, most: int = MOST_FILES
) -> list[LikelyFile]:
    """Return the files that are likely enough to be named: few, and none for most prompts.

    *opens_topic* tells that the agent may lack what the prompt is about (`PromptKind.opens_topic`), or that only files
    were looked for whose name it says (*only_named*).
    """
    if not with_note and (not opens_topic or not found or found[0].score < ALONE):
        return []
    return [each for each in found[:most] if each.score >= WITH_NOTE]


TIMES, SHARE = 2, 0.5  # turns in which a file changed with another, of all in which that one changed


def changed_together(
    named: Collection[str], history: Sequence[TurnRecord], *, most: int = 3
) -> list[tuple[str, int, int]]:
    """Return the files that mostly change together with a named one: each with how often, of how many times."""
    known = _Known(named)
    turns = [turn for turn in history if any(path in known for path in turn.edited)]
    counts = Counter(path for turn in turns for path in turn.edited if path not in known and is_source(path))
    often = [(path, count, len(turns)) for path, count in counts.items() if count >= max(TIMES, SHARE * len(turns))]
    return sorted(often, key=lambda each: (-each[1], each[0]))[:most]


def is_source(path: str) -> bool:
    """Return whether a person would edit this file: in the project, not generated, locked, scratch or a dependency."""
    return not _OTHERS.search(path) and not path.startswith(("/", "~", "../")) and path[1:3] != ":/"


_OTHERS = re.compile(
    r"(?:^|/)(?:node_modules|bower_components|site-packages|vendor|third_party|dist|build|out|target|coverage|htmlcov"
    r"|generated|__generated__|__pycache__|__snapshots__|\.next|\.nuxt|\.cache|\.venv|venv|\.tox|\.git|\.gradle"
    r"|tmp|temp|scratch|scratchpad)/"
    r"|(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|bun\.lockb?|go\.sum)$"
    r"|(?:^|/)(?:zz_)?(?:tmp|temp|scratch)[_.-]"
    r"|\.(?:lock|min\.js|min\.css|map|snap|log|tmp|bak|orig|rej|pyc|class|o|so|exe|pb\.go)$|_pb2(?:_grpc)?\.py$"
    r"|\.(?:generated|gen)\.\w+$",
    re.IGNORECASE,
)


class _Known:
    """The files that the agent has: by path, or as the prompt wrote them, which may be the last parts in any case."""

    def __init__(self, paths: Collection[str]) -> None:
        self._ends = {f"/{path.strip('/').lower()}" for path in paths if path.strip("/")}

    def __contains__(self, path: str) -> bool:
        parts = path.lower().split("/")
        return any("/" + "/".join(parts[at:]) in self._ends for at in range(len(parts)))


def _session_ranks(turns: Sequence[TurnRecord], session: str) -> dict[str, int]:
    """Return how many other sessions are newer than each; the running one, whose files the agent has, comes last."""
    newest_first = dict.fromkeys(turn.session for turn in reversed(turns) if turn.session != session)
    return {each: number for number, each in enumerate((*newest_first, session))}


def _shares(turn: TurnRecord) -> dict[str, float]:
    """Return a turn's vote for each of its files: a turn of fifty files must not outvote one of two."""
    acts = dict.fromkeys(turn.edited, 1.0) | {path: READ for path in turn.read if path not in turn.edited}
    return {path: act / math.sqrt(len(acts)) for path, act in acts.items()}


def _weight(terms: Mapping[str, float], words: Collection[str]) -> float:
    return sum(weight for term, weight in terms.items() if term in words)


def _name_shares(paths: Collection[str], words: frozenset[str]) -> dict[str, float]:
    """Return how much of each file's name the prompt says; words that many paths hold count less."""
    name_words = {path: memory_words(path.rpartition("/")[2].rpartition(".")[0] or path) for path in paths}
    holders = Counter(word for path in paths for word in name_words[path] | memory_words(path.rpartition("/")[0]))
    shares = {}
    for path, own in name_words.items():
        weights = {word: math.log((len(paths) + 1) / (holders[word] + 0.5)) for word in own}
        whole = sum(weights.values())
        shares[path] = sum(weights[word] for word in own & words) / whole if whole > 0 else 0.0
    return shares


def _edited_together(turns: Sequence[TurnRecord], paths: Collection[str]) -> dict[str, float]:
    """Return the share of turns with a file of *paths* that touched each other file too, of the best of *paths*."""
    best: dict[str, float] = {}
    sets = [{*turn.edited, *turn.read} for turn in turns if turn.edited]
    for path in paths:
        holding = [files for files in sets if path in files]
        for other, count in Counter(file for files in holding for file in files).items():
            if other != path:
                best[other] = max(best.get(other, 0.0), count / (len(holding) + 1))
    return best
