"""Supersede choices that a later choice took back; precise rather than greedy.

A wrong guess hides a true decision, so nothing is guessed from likeness alone. A later choice takes an earlier one back
where it names it ("Valkey instead of Redis"), turns it round ("never use tabs" after "use tabs"), gives the same thing
another number ("line length 120" after 100) or another location ("store sessions in Postgres" after Redis), or says
that it changes what there is ("move the cache to Valkey"). The forms of such sentences stand in `choices.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from foreword import models
from foreword.audit import MemoryChange, PlanContext, still_wanted
from foreword.encoding import read_table
from foreword.extract.text import stem
from foreword.models import Link, Memory, trust_rank
from foreword.terms import broken

KINDS = ("decision", "preference", "correction")  # what is chosen; a correction may take back a decision
CHOSEN_SINCE = "chosen_since"  # in the detail of one that was taken back: by which


def plan(memories: Sequence[Memory], *, about: PlanContext) -> tuple[MemoryChange, ...]:
    """Supersede choices that a later one of no lower trust took back, and restore those that were chosen again."""
    restored = list(_chosen_again(memories))
    restored_ids = {memory.id for memory_change in restored for memory, _ in memory_change.changed}
    choices = [
        (memory, choice)
        for memory in memories
        if memory.kind in KINDS and memory.status == "active" and memory.id not in restored_ids
        if (choice := choice_of(memory)) is not None
    ]
    choices.sort(key=lambda each: (each[0].confirmed, each[0].id))
    earlier: dict[str, tuple[Memory, Choice]] = {}
    by_word: dict[str, dict[str, None]] = {}
    planned = []
    for memory, choice in choices:
        words = sorted(choice.value | choice.purpose | choice.instead_of)
        candidates = dict.fromkeys(id for word in words for id in by_word.get(word, ()) if id in earlier)
        superseded = [earlier[id][0] for id in candidates if takes_back(choice, earlier[id][1])]
        if len(superseded) > 1 and _only_changes(choice):
            superseded = []  # ambiguous: one of several may be meant
        for other in superseded:
            if _may_supersede(memory, other):
                # Both are named, so that the log of both shows it.
                changed = ((other, _superseded(other, by=memory.id)), (memory, memory))
                links = (Link(memory.id, "supersedes", other.id),)
                planned.append(MemoryChange("supersede", f"{memory.id} chose otherwise", changed=changed, links=links))
                del earlier[other.id]
        earlier[memory.id] = memory, choice
        for word in choice.words | choice.value | choice.purpose:
            by_word.setdefault(word, {})[memory.id] = None
    return still_wanted((*restored, *planned), about=about)


@dataclass(frozen=True)
class Choice:
    """What a sentence chooses: a value for a purpose, in place of another value; or what it rules out."""

    value: frozenset[str]
    purpose: frozenset[str] = frozenset()
    instead_of: frozenset[str] = frozenset()
    against: bool = False  # it says what not to choose
    changes: bool = False  # it says itself that something else was chosen before
    number: bool = False  # the value is a number, of which a thing has one
    in_place: bool = False  # the value is where a thing is kept
    is_location: bool = False  # ... and a thing is kept in one place
    words: frozenset[str] = frozenset()  # all that it says, but for what it is not


def takes_back(later: Choice, earlier: Choice) -> bool:
    """Return whether *later* takes *earlier* back."""
    if earlier.against or later.against:
        # "use tabs" and "never use tabs", for the same purpose; in whatever order they were said.
        turned = later.against != earlier.against and later.value == earlier.value
        return turned and later.purpose == earlier.purpose and bool(later.value)
    if later.value == earlier.value:
        return False
    if later.instead_of and later.instead_of == earlier.value:
        return later.purpose <= earlier.purpose | earlier.value  # for no other purpose
    if later.instead_of and later.purpose and later.instead_of | later.purpose <= earlier.words:
        return True  # it names both, in whatever words they were said
    same_thing = bool(later.purpose) and later.purpose == earlier.purpose
    if (later.number and earlier.number) or (later.is_location and earlier.is_location):
        return same_thing
    return same_thing and _only_changes(later) and (later.number, later.in_place) == (earlier.number, earlier.in_place)


def _only_changes(choice: Choice) -> bool:
    """Return whether it says that something else was chosen before, and not what."""
    return choice.changes and not choice.instead_of


def choice_of(memory: Memory) -> Choice | None:
    """Return what a memory chooses, as far as it is plainly written; None where it is not."""
    text = f"{memory.detail.get('choice') or memory.title}"[:LONGEST]
    text = _LEADS.sub("", text.replace("\u2019", "'").strip())
    return _choice(text, old_value=models.text(memory.detail, "instead_of"))


LONGEST = 240  # characters; a longer text says more than one thing
MOST_WORDS = 5  # of a value; more is a story

_PARTS = {}  # of the forms, by name
_FORMS = []
for _line in read_table(__file__, "choices.txt"):
    if _line[0] != "^":
        _name, _, _PARTS[_name] = _line.partition(" = ")
    else:
        _FORMS.append(re.compile(re.sub(r"\{([A-Z]+)\}", lambda part: _PARTS[part[1]], _line), re.I))
_LEADS, _TIME = re.compile(_PARTS["LEADS"], re.I), _PARTS["TIME"]
_SEVERAL = re.compile(r"\b(?:and|or|but|plus|unless|except|only|if|both|either|until|while|where)\b|[/&+]", re.I)
_WHEN = re.compile(r"(?:the )?(?:next|this|last|later|today|tomorrow|monday|friday|phase|sprint)\b", re.I)
# Words that name nothing: without them a value or a purpose is the same.
_LITTLE = frozenset(
    """a all an any at be every everything everywhere here its my now our project repo repository that the their these
    this those code codebase again anymore instead of""".split()  # noqa: SIM905
)


def _choice(text: str, *, old_value: str) -> Choice | None:
    for form in _FORMS:
        match = form.match(text)
        if match is None:
            continue
        parts = {name: part for name, part in match.groupdict().items() if part}
        value, purpose = parts["value"], " ".join(filter(None, (parts.get("thing"), parts.get("purpose"))))
        if _SEVERAL.search(f"{value} {purpose}") or _WHEN.match(value):
            return None  # two things, or one with a condition: half of it may still hold
        words = _words(value)
        not_chosen, where = _apart(parts.get("old", "") or old_value)
        purpose = purpose or where
        old = _words(not_chosen)
        if not words or len(words) > MOST_WORDS or (old and old == words):
            return None
        return Choice(
            value=words,
            purpose=_words(purpose),
            instead_of=old,
            against="not" in parts,
            changes="changes" in parts or "instead" in parts,
            in_place="in_place" in parts,
            is_location="is_location" in parts,
            number=bool(purpose) and (any(map(str.isdigit, value)) or bool(re.fullmatch(_TIME, value, re.I))),
            words=_words(text) - old,
        )
    return _swapped(text, old_value=old_value) if old_value else None


def _apart(old: str) -> tuple[str, str]:
    """Split what was not chosen from its purpose: "single quotes in TypeScript" names both."""
    what, _, where = re.sub(r"\s(?:for|in|on|when|during)\s", "\n", old, count=1).partition("\n")
    return what, where


def _swapped(text: str, *, old_value: str) -> Choice | None:
    """Return the choice of a sentence that names what was not chosen, whatever its form."""
    words, old = _words(text), _words(_apart(old_value)[0])
    if not old or len(old) > MOST_WORDS or _SEVERAL.search(old_value):
        return None
    purposes = re.findall(r"\b(?:for|in|on|when|during|inside|between) (?:the |our |all |a )?(\w+)", text.lower())
    return Choice(value=words - old, purpose=_words(" ".join(purposes)), instead_of=old, words=words - old)


def _words(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in broken(text.lower()).split() if word not in _LITTLE)


def _may_supersede(later: Memory, earlier: Memory) -> bool:
    """Return whether *later* may supersede *earlier*: not pinned, of no higher trust, and really earlier."""
    return (
        not earlier.pinned
        and (later.scope, later.project) == (earlier.scope, earlier.project)
        and trust_rank(later.trust) <= trust_rank(earlier.trust)
        and later.confirmed > earlier.confirmed
    )


def _superseded(memory: Memory, *, by: str) -> Memory:
    return replace(memory, status="superseded", superseded_by=by, detail={**memory.detail, CHOSEN_SINCE: by})


def _chosen_again(memories: Sequence[Memory]) -> Iterator[MemoryChange]:
    """Restore choices that were taken back and chosen again since; supersede what took them back."""
    known = {memory.id: memory for memory in memories}
    for memory in memories:
        since = known.get(memory.superseded_by)
        if since is None or memory.status != "superseded" or memory.detail.get(CHOSEN_SINCE) != since.id:
            continue
        if memory.confirmed > since.confirmed and since.status == "active" and _may_supersede(memory, since):
            detail = {name: value for name, value in memory.detail.items() if name != CHOSEN_SINCE}
            again = replace(memory, status="active", superseded_by="", detail=detail)
            yield MemoryChange(
                "supersede",
                f"{memory.id} was chosen again",
                changed=((memory, again), (since, _superseded(since, by=memory.id))),
                links=(Link(memory.id, "supersedes", since.id),),
                unlinked=(Link(since.id, "supersedes", memory.id),),
            )
