"""What sessions say they learned -> what two of them say alike, and who denies it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foreword.details import named, texts
from foreword.distill.sentences import begun
from foreword.learn.alike import alike, opposite, same_topic, words_of
from foreword.learn.findings import Finding, Verdict, uid_of
from foreword.trust import lowest
from foreword.types import Memory

LEAST = 2  # sessions that say it
MOST = 300  # sentences, the newest, that are compared with each other: 90,000 pairs take a third of a second
SAYING = ("learning", "preference", "correction", "decision", "project", "pattern")  # what need not be learned again
MOST_SAID = 500  # of these, the newest
SHORTEST, LONGEST = 25, 160  # characters of a sentence that is worth a line


@dataclass(frozen=True)
class Sentence:
    """One thing that a session says it learned."""

    text: str
    session: str
    at: float
    trust: str


def sentences(memories: Sequence[Memory]) -> tuple[Sentence, ...]:
    """What the project's sessions say they learned, the newest of it, oldest first."""
    found = [
        Sentence(text=text, session=memory.session, at=memory.created, trust=memory.trust)
        for memory in memories
        if memory.kind == "summary" and memory.session and memory.status in ("active", "stale")
        for text in texts(memory.detail, "learned")
    ]
    return tuple(sorted(found, key=lambda each: (each.at, each.session, each.text))[-MOST:])


def findings(
    memories: Sequence[Memory], *, project: str, shown_to: Callable[[str], frozenset[str]] = lambda _: frozenset()
) -> tuple[Finding, ...]:
    """What is known and said again or denied, and what is said by two sessions and not known yet."""
    told = sentences(memories)
    known = [each for each in memories if each.kind == "learning" and "by" not in each.detail]
    again = [_about(memory, told, shown_to=shown_to) for memory in known]
    says = [each.title for each in memories if each.kind in SAYING and each.status != "forgotten"][-MOST_SAID:]
    rest = [each for each in told if _lasts(each.text) and not any(same_topic(each.text, title) for title in says)]
    return (*again, *_clusters(rest, told, project=project))


def plain(text: str) -> str:
    """A sentence without what only introduces it."""
    return begun(_LEAD.sub("", text).strip(" .;:—-"))


def category_of(text: str) -> str:
    """Whether a sentence tells of a trap, of how things are done here, or of how they are built."""
    if _GOTCHA.search(text):
        return "gotcha"
    if _CONVENTION.search(text):
        return "convention"
    return "architecture" if _ARCHITECTURE.search(text) else "gotcha"


_LEAD = re.compile(
    r"^(?:(?:it )?turns? out(?: that)?|(?:(?:i|we) )?(?:learn(?:ed|t)|found out)(?: that|:)?"
    r"|(?:important|note|gotcha|careful|reminder|lesson)\s*:|note that"
    r"|keep in mind(?: that)?|be careful(?: that)?\s*[:,]?|watch out\s*[:,]|for future reference\s*[:,]"
    r"|the (?:root )?(?:cause|issue|problem|catch|trick|lesson) (?:was|is) that)\s+",
    re.I,
)
_OF_NOW = re.compile(  # what was so in that session only
    r"\b(?:now|this (?:session|time|change|commit|pr|branch|diff)|just (?:added|fixed|changed|moved)|line \d+"
    r"|i (?:added|fixed|changed|moved|removed|will|have|am)|i['’](?:ve|ll|m)|let me|you (?:can|should|asked)"
    r"|earlier today|passes|passed)\b",
    re.I,
)
_GOTCHA = re.compile(
    r"\b(?:fail\w*|break\w*|vanish\w*|lost|loses?|crash\w*|hang\w*|careful|gotcha|trap|wrong|silently|ignore[sd]?|cannot|can['’]t"
    r"|must not|only works|otherwise|unless|stale|race\w*|deadlock\w*|leak\w*|flaky|twice|without|error|never)\b",
    re.I,
)
_CONVENTION = re.compile(
    r"\b(?:always|convention|naming|named|prefix\w*|suffix\w*|style|format\w*|we use|is used for|are written"
    r"|goes? (?:in|into)|instead of|rather than|must (?:be|have|use)|should)\b",
    re.I,
)
_ARCHITECTURE = re.compile(
    r"\b(?:modules?|layers?|services?|calls?|stored in|lives? in|owns?|depends? on|through|handled by|registered|loaded"
    r"|generated|built|sends?|reads?|writes?|queue|worker|database|schema|table|cache\w*|endpoint)\b",
    re.I,
)


def _about(memory: Memory, told: Sequence[Sentence], *, shown_to: Callable[[str], frozenset[str]]) -> Finding:
    """What sessions say for and against a learning; a person may have put it in other words since.

    Who was shown it and says it again confirms nothing: that is our own voice.
    """

    def echoes(session: str) -> bool:
        return session not in counted and session in shown_to(memory.id)

    counted = named(memory.detail, "seen_in")  # some said it first, and were shown it when they went on
    titles = tuple(dict.fromkeys((memory.title, str(memory.detail.get("first_said") or memory.title))))
    verdicts, trusts = _heard(titles, told, echoes=echoes)
    return Finding(memory.uid, memory.title, "", verdicts, lowest((memory.trust, *trusts)), LEAST)


def _clusters(rest: Sequence[Sentence], told: Sequence[Sentence], *, project: str) -> list[Finding]:
    """Sentences that say the same, put together around the one that most sessions agree with."""
    found: list[Finding] = []
    titles = [plain(each.text) for each in rest]
    agree = [len({other.session for other in rest if alike(title, other.text)}) for title in titles]
    for at in sorted(range(len(rest)), key=lambda at: (-agree[at], rest[at].at, rest[at].text)):
        if agree[at] < LEAST:
            break  # the others have no more
        title = titles[at]
        if any(same_topic(title, each.title) for each in found):
            continue
        verdicts, trusts = _heard((title,), told)
        found.append(
            Finding(
                uid=uid_of(project, " ".join(sorted(words_of(title)))),
                title=title,
                category=category_of(rest[at].text),
                verdicts=verdicts,
                trust=lowest(trusts),
                least=LEAST,
                detail={"first_said": title},
            )
        )
    return found


def _heard(
    titles: Sequence[str], told: Sequence[Sentence], *, echoes: Callable[[str], bool] = lambda _: False
) -> tuple[tuple[Verdict, ...], list[str]]:
    """What each session says of it, and the trust of those that confirm it."""
    verdicts: dict[str, Verdict] = {}
    trusts = []
    for each in told:
        confirms = any(alike(each.text, title) for title in titles)
        if confirms and echoes(each.session):
            continue
        if confirms or any(opposite(each.text, title) for title in titles):
            before = verdicts.get(each.session)
            if before is None or confirms:  # a session that says both has come round to it
                verdicts[each.session] = Verdict(session=each.session, at=each.at, confirms=confirms)
            trusts += [each.trust] if confirms else []
    return tuple(verdicts.values()), trusts


def _lasts(text: str) -> bool:
    return SHORTEST <= len(text) <= LONGEST and not _OF_NOW.search(text) and not text.endswith(("?", "…", ":"))
