"""Put a memory into words that stand alone: what it says, when, from whom, about which files."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile
from time import gmtime, strftime
from typing import Any, NamedTuple

from foreword.extract.text import cut, names_code, split_sentences
from foreword.models import EMPTY, KINDS, Memory
from foreword.models import text as text_in
from foreword.models import texts as texts_in
from foreword.recall.relevance import content_words, memory_words, references, without_parts
from foreword.recall.sanitize import ago, neutral, shown_path
from foreword.terms import lazy_pattern

SENTENCE = 240  # characters of one note; some 60 tokens
OUTCOME = 140  # characters of what came of a session, in a list of sessions
ANSWER = 320  # characters of one that answers a question
DATED_AFTER = 14 * 86_400.0  # seconds, from which ages are told in weeks: then an answer names the day
QUOTE = 200  # characters of the user's own words
TITLE = 160
SIGNATURE = 140
MOST_FILES = 3  # that a note names
NO_ID = "-"
FAILURE = "failure"  # label of a failure with its command, which names no files
# The code of each kind in the form "codes".
CODES = {
    "turn": "impl", "summary": "impl", "change": "impl", "handoff": "next", "decision": "dec", "failure": "block",
    "learning": "know", "project": "know", "pattern": "pat", "observation": "obs", "preference": "rule",
    "correction": "rule", "goal": "goal",
}  # fmt: skip


class Note(NamedTuple):
    """One line of a context: all of it is safe to show."""

    text: str
    label: str = ""  # who and how long ago, in front of the text
    files: tuple[str, ...] = ()
    tail: str = ""  # behind the text, in brackets
    id: str = ""
    kind: str = "note"
    day: str = ""  # for forms that must not change with time
    by: str = ""  # its author, where that is not the user


def note_of(memory: Memory, *, now: float, weights: Mapping[str, float] = EMPTY, width: int = SENTENCE) -> Note:
    """Return what *memory* says; where it is long, the passage that holds most of the *weights* of a prompt's words."""
    note = _WORDS.get(memory.kind, _plain_words)(memory, now, weights, width)
    files = memory.files[:MOST_FILES] if note.label not in ("", FAILURE) else ()
    return note._replace(files=tuple(map(shown_path, files)), **_origin(memory))


def answer_note(memory: Memory, *, now: float, weights: Mapping[str, float], requested: bool = False) -> Note:
    """Return what *memory* says to a question, with its day.

    Where an agent *requested* it, an id is given only if there is more to fetch.
    """
    note = note_of(memory, now=now, weights=weights, width=ANSWER)
    if now - time_of(memory) > DATED_AFTER and (day := day_of(time_of(memory), "%d %B %Y").lstrip("0")):
        note = note._replace(label=note.label.replace(_when(memory, now), day))
    is_short = requested and not memory.detail and len(memory.body) <= ANSWER
    return note._replace(id=NO_ID) if is_short and neutral(memory.body, width=ANSWER) in note.text else note


def session_note(memory: Memory, *, now: float, files: Collection[str] | None = None, room: int = OUTCOME) -> Note:
    """Return a session in a line: its title and outcome; of its files those in *files* (None: the first)."""
    title = neutral(memory.title, width=TITLE).rstrip(".")
    outcome = neutral(_whole_sentences(memory.body, room), width=room)
    joint = " " if title.endswith("…") else ": "
    text = f"{title}{joint}{outcome}" if outcome and not _repeats(title, outcome) else outcome or title
    named = [file for file in memory.files if files is None or file in files][:MOST_FILES]
    label, paths = ago(now - memory.created), tuple(map(shown_path, named))
    return Note(neutral(text, width=room + TITLE), label, paths, **_origin(memory))


def _whole_sentences(text: str, room: int) -> str:
    """Return the first sentences that fit *room*; of a first one that is too long, what fits up to a clause."""
    lines = _lines(text)
    ends = accumulate(len(line) + 1 for line in lines)  # each with the space behind it
    whole = " ".join(line for line, end in zip(lines, ends, strict=True) if end <= room + 1)
    return whole or cut(next(iter(lines), ""), room)


def rule_note(memory: Memory, *, now: float) -> Note:
    """Return a standing rule with who laid it down, and how often."""
    often = f"{memory.seen} times, last {_when(memory, now)}" if memory.seen > 1 else _when(memory, now)
    who = "you" if memory.trust == "user" else source_of(memory)
    return Note(text=neutral(memory.title, width=SENTENCE), tail=f"{who}, {often}", **_origin(memory))


def _origin(memory: Memory) -> dict[str, Any]:
    """Return the fields of a note that say which memory it comes from."""
    by, day = source_of(memory), day_of(memory.created)
    return {"id": id_of(memory), "kind": kind_of(memory), "day": day, "by": by}


# -- by kind ---------------------------------------------------------------------------------------------------------
def _turn(memory: Memory, now: float, weights: Mapping[str, float], width: int) -> Note:
    """Return the user's own words where they hold more of what is looked for, else what came of the turn."""
    user, outcome = text_in(memory.detail, "user"), text_in(memory.detail, "outcome")
    subject = next(iter(texts_in(memory.detail, "commits")), "").rstrip(".")
    room = max(80, width - len(subject) - 2)
    searched_for = any(each in weights for each in references(user))  # then all that came of it is about this issue
    found = passage(memory.body, weights, room=room) if weights and not searched_for else ""
    answer = found or outcome or memory.title
    text = f"{subject}: {answer}" if subject and not _repeats(subject, answer) else answer
    ours = memory.trust in ("user", "agent")  # extracted here: who imports a turn could put words into the user's mouth
    if ours and user and not searched_for and len(user) <= QUOTE and _held(user, weights) > _held(answer, weights):
        quoted = neutral(user, width=QUOTE).replace('"', "'")
        rest = neutral(outcome or answer, width=max(60, width - len(quoted) - 2))
        return Note(f'"{quoted}": {rest}', f"you, {_when(memory, now)}")
    return Note(neutral(text, width=width), _when(memory, now))


def _summary(memory: Memory, now: float, weights: Mapping[str, float], width: int) -> Note:
    """Return a session's title with the sentences of its outcome that hold what is looked for."""
    room = max(80, width - len(memory.title))
    excerpt = passage(memory.body, weights, room=room) if weights else ""
    note = session_note(replace(memory, body=excerpt) if excerpt else memory, now=now, room=room)
    return note._replace(text=neutral(note.text, width=width))


def _statement(memory: Memory, now: float, _: Mapping[str, float], width: int) -> Note:
    """Return a rule, correction or decision: whose it is, and why."""
    why = neutral(text_in(memory.detail, "why"), width=TITLE).removeprefix("because ").rstrip(".")
    text = neutral(memory.title, width=width).rstrip(".")
    text = f"{text}, because {why}" if why and why not in memory.title else text
    who = "you" if memory.trust == "user" else f"{kind_of(memory)} ({source_of(memory)})"
    return Note(text, f"{who}, {_when(memory, now)}")


def _failure(memory: Memory, now: float, weights: Mapping[str, float], width: int) -> Note:
    # Without both it was written by hand or by an earlier version; an import may claim that anything worked.
    extracted = text_in(memory.detail, "error") and text_in(memory.detail, "command")
    if not extracted or memory.trust == "imported":
        return _plain_words(memory, now, weights, width)
    from foreword.recall.hints import failure_line  # compiles what a hook without failures does without

    return Note(neutral(failure_line(memory.detail, now=now), width=width), FAILURE)


def _change(memory: Memory, now: float, _: Mapping[str, float], width: int) -> Note:
    signature = neutral(text_in(memory.detail, "signature") or next(iter(memory.functions), ""), width=SIGNATURE)
    what = text_in(memory.detail, "what").upper()
    what = what if what in ("NEW", "MODIFIED", "DELETED") else "MODIFIED"
    return Note(f"{signature or neutral(memory.title, width=width)} {what}", _when(memory, now))


def _plain_words(memory: Memory, now: float, weights: Mapping[str, float], width: int) -> Note:
    """Return the title with what holds the weights, and what solved it; of a project what the user wrote about it."""
    if memory.kind == "learning" and memory.trust == "user":
        return _statement(memory, now, weights, width)
    if memory.kind == "project" and (facts := facts_text(memory)):
        return Note(neutral(facts, width=width))
    fix = text_in(memory.detail, "solution") or text_in(memory.detail, "fixed_by")
    text = _title_and_body(memory, weights, width)
    text = neutral(f"{text.rstrip('.')}: {fix}", width=width) if fix else text
    when, who = _when(memory, now), "" if memory.trust == "user" else f" ({source_of(memory)})"
    labels = {"learning": f"learned {when}", "observation": f"commit, {when}" if memory.source == "git" else when}
    return Note(text, labels.get(memory.kind, f"{kind_of(memory)}{who}, {when}"))


_WORDS = {
    "turn": _turn, "summary": _summary, "failure": _failure, "change": _change, "decision": _statement,
    "preference": _statement, "correction": _statement,
}  # fmt: skip


def _title_and_body(memory: Memory, weights: Mapping[str, float], width: int) -> str:
    """Return the title and, of a body, the passage that holds the terms; the body alone where it repeats the title."""
    title, body = neutral(memory.title, width=width).rstrip("."), memory.body.strip()
    if not body or _repeats(body, title):
        return title or neutral(body, width=width)
    room = max(80, width - len(title))
    part = body if len(body) <= room else passage(body, weights, room=room) or body
    text = part if _repeats(title, part) else f"{title}: {part}"
    return neutral(text, width=width)


def facts_text(memory: Memory) -> str:
    """Return what the user wrote about a project; empty where only its files are known."""
    labels = {"role": "Project", "contracts": "contracts", "depends_on": "depends on", "related": "related to"}
    facts = {label: texts_in(memory.detail, name) for name, label in labels.items()}
    return "; ".join(
        f"{label}: {', '.join(neutral(each, width=TITLE) for each in texts)}" for label, texts in facts.items() if texts
    )


# -- parts -----------------------------------------------------------------------------------------------------------
def id_of(memory: Memory) -> str:
    """Return the id as it may be typed back; ids are ours, but an imported row may claim anything."""
    return memory.id if is_name(memory.id) else NO_ID


def kind_of(memory: Memory) -> str:
    """Return the kind, of those that we know."""
    return memory.kind if memory.kind in KINDS else "note"


def source_of(memory: Memory) -> str:
    """Return the author, where that is not the user; a source cannot claim more trust than the memory has."""
    if memory.trust == "user":
        return ""
    return memory.source if is_name(memory.source) and memory.source.strip("-_").lower() != "user" else memory.trust


def is_name(text: str) -> bool:
    """Return whether *text* is a plain word that cannot be taken for anything else where we put it."""
    return len(text) <= 40 and text.isascii() and text.replace("-", "").replace("_", "").isalnum()


def day_of(at: float, form: str = "%Y-%m-%d") -> str:
    """Return the calendar day of a time; empty where no calendar has it."""
    try:
        return strftime(form, gmtime(at))
    except (ValueError, OverflowError, OSError):
        return ""


def time_of(memory: Memory) -> float:
    """Return the last time for what repeats, the first time for what happened once."""
    repeats = memory.kind in ("failure", "preference", "correction", "learning")
    return max(memory.created, memory.confirmed) if repeats else memory.created


def _when(memory: Memory, now: float) -> str:
    return ago(now - time_of(memory))


def _held(text: str, weights: Mapping[str, float]) -> float:
    words = content_words(text)
    return sum(weight for word, weight in weights.items() if word in words)


def _repeats(one: str, other: str) -> bool:
    """Return whether *other* already says most of *one*."""
    words = {word for word in one.lower().split() if len(word) > 3}
    return bool(words) and len(words & set(other.lower().split())) >= 0.7 * len(words)


def unique_notes(notes: Sequence[Note]) -> list[Note]:
    """Return *notes* without those that an earlier one repeats."""
    kept: list[Note] = []
    for note in notes:
        if not any(_repeats(note.text, other.text) for other in kept):
            kept.append(note)
    return kept


# -- passages --------------------------------------------------------------------------------------------------------
SHORTEST = 25  # characters of a sentence that says something
ENOUGH = 1.2  # words' worth that the best sentence holds
HEAD = 12  # characters at the beginning of a line that name the issue which it is about
NEXT = 0.6  # of the best sentence's weight that the second one needs
TELLS = 0.5  # words' worth of a sentence that states a cause or what was done
# A sentence that was torn out of its context begins in the middle, or announces what does not follow.
_WHOLE = lazy_pattern(
    r"[\"'`(\[*]{0,3}(?:[A-Z0-9`]|(?![\U00010000-\U0010ffff])[^\x00-\xbf])[^\n]*[^:\n]$|[`.][\w./-]+[^\n]*[^:\n]$"
)
_OFFER = lazy_pattern(
    r"\b(?:want me to|shall i|should i|would you like|do you want|let me know|if you want)\b|\?$", re.I
)
_TELLS = lazy_pattern(
    r"\b(?:because|root cause|caused by|so that|turns out|instead of|only (?:works|when|if)|due to|fixed|added|removed"
    r"|changed|moved|renamed|replaced|now|set in|must|requires?|fails? (?:when|if|with))\b",
    re.I,
)


# Whose subject stands in a sentence before it: "It is mentioned", "The tradeoff: it works"; not "This project uses".
_POINTS_BACK = lazy_pattern(
    r"(?:(?:the|one|another|main|only) [\w -]{3,30}: )?"
    r"(?:it|they|these|those|this|that|both|neither)(?:'(?:s|re|ll|d))? "
    r"(?!(?:project|repo|repository|codebase|app|application|package|library|monorepo|machine|environment)\b)",
    re.I,
)
_CLAUSE_END = lazy_pattern(r"[,;]? [\u2013\u2014-] |[,;:.] ")


def is_torn(text: str) -> bool:
    """Return whether *text* begins with a pronoun for something that it does not say, and names no code there."""
    pointing = _POINTS_BACK.match(text)
    if not pointing:
        return False
    end = _CLAUSE_END.search(text, pointing.end())
    return not names_code(text[: end.start() if end else None])


def passage(text: str, weights: Mapping[str, float], *, room: int) -> str:
    """Return up to two sentences of *text* that hold most of the weight of a prompt's words; empty where none do."""
    lines = _lines(text)
    if section := _section_on(lines, weights, room=room):
        return section
    ranked = []
    for place, sentence in enumerate(lines):
        if len(sentence) < SHORTEST or _OFFER.search(sentence) or not _WHOLE.match(sentence):
            continue
        words = memory_words(cut(sentence, room))  # what is not shown does not count
        held = sum(weights[word] for word in without_parts([word for word in weights if word in words]))
        if held:
            ranked.append((held + TELLS * bool(_TELLS.search(sentence)), place, sentence))
    ranked.sort(key=lambda each: (-each[0], each[1]))
    if not ranked or ranked[0][0] < ENOUGH:
        return ""  # one word in passing: what came of the whole says more
    taken: list[tuple[int, str]] = []
    for weight, place, sentence in ranked[:2]:
        if taken and (weight < NEXT * ranked[0][0] or len(sentence) > room or room < SHORTEST):
            break
        taken.append((place, cut(sentence, room)))
        room -= len(sentence) + 1
    return " ".join(each if each[-1] in ".!:。" else f"{each}." for _, each in sorted(taken))


def _section_on(lines: Sequence[str], weights: Mapping[str, float], *, room: int) -> str:
    """Return what a list of issues says about the one that a prompt names: its heading and what follows."""
    for place, line in enumerate(lines):
        named = references(line[:HEAD])
        if len(named) != 1 or named[0] not in weights:
            continue
        following = list(takewhile(lambda after: not references(after[:HEAD]), lines[place + 1 :]))
        if rest := " ".join(after for after in following if not _OFFER.search(after)):
            return cut(f"{line.rstrip('.:')}: {rest}", room)
    return ""


def _lines(text: str) -> list[str]:
    """Return the sentences of a text: extraction writes one a line, other texts hold several."""
    return [sentence for line in text.splitlines() for sentence in split_sentences(line)]


def is_about_process(title: str) -> bool:
    """Return whether a sentence is about branches and commits: it settled how to go on then, and soon expires."""
    return bool(_PROCESS.search(title))


_PROCESS = lazy_pattern(
    r"\b(?:branch(?:es|ing)?|commit(?:s|ted)?|rebase|merged?|push(?:ed)?|pull request|PRs?)\b", re.IGNORECASE
)
