"""Decide whether a prompt deserves context, and which earlier notes concern the very thing that it is about.

Two steps, both pure: `classify` looks at the prompt and at what its session has talked about; `choose` compares the
prompt's words with candidate notes. Most prompts get nothing, and every silence has its reason in plain English.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from foreword.extract.text import PARTICLE, is_routine
from foreword.terms import GENERIC, MOST_TEXT, STOP_WORDS, TALK, lazy_pattern, rarity, root, terms

Kind = Literal["machine", "plan", "pasted", "reply", "routine", "same topic", "new topic", "past"]


class PromptKind(NamedTuple):
    """What kind of prompt this is, and the words that name its things."""

    kind: Kind
    topic: tuple[str, ...] = ()  # words that name its things, as `content_words` writes them


class Candidate(NamedTuple):
    """An earlier note, as the search found it."""

    id: str
    at: float  # seconds since the epoch
    words: frozenset[str]  # of everything that it holds, as `content_words` writes them
    shown: frozenset[str]  # of the passage that would be rendered
    anchored: bool = False  # about a thing that the prompt names: a file, an identifier, a quoted name, an issue
    titled: bool = False  # a word of the prompt is in it and in the name of one of its files
    same_thing: bool = False  # about the very issue, pull request or advisory that the prompt names
    substance: bool = True  # whether that passage says what came of it: an outcome, a cause, a decision
    without_changes: bool = False  # an answer after which nothing was changed: shown where nothing else fits
    in_context: bool = False  # the agent has it: its own session since the last compaction, or shown in full before


class Choice(NamedTuple):
    """The notes to give, best first, and by id why the others were left out."""

    notes: tuple[Candidate, ...]
    rejected: Mapping[str, str]


# --- words -----------------------------------------------------------------------------------------------------------

CHUNK = 120  # words at a time: `terms` sifts longer texts, and a note is known by all of its words
_URL = lazy_pattern(r"\b(?:https?|ssh|git)://\S+|\bwww\.\S+")
_HEX = lazy_pattern(r"(?=[a-z]*\d)[0-9a-f]{6,}$|\d+$")


_REFERENCE = lazy_pattern(
    r"/(?:issues|pull|pulls|merge_requests|discussions)/(\d{1,7})\b|(?<![\w&])#(\d{2,7})\b"
    r"|\b(?:pr|issue|pull request|merge request) #?(\d{2,7})\b|\b(GHSA(?:-\w{4}){3}|CVE-\d{4}-\d{3,7})\b",
    re.I,
)


def content_words(text: str) -> frozenset[str]:
    """Return the words of *text* that can be compared: small letters, no endings, identifiers also in their parts.

    The numbers of issues and pull requests are among them, as `#41`, however they are written.
    """
    text = text[:MOST_TEXT]
    return frozenset(_comparable(text)) | frozenset(references(text))


@lru_cache(30_000)
def memory_words(text: str) -> frozenset[str]:
    """Return the content words of a memory's text, a sentence of it or a path, which many prompts are compared with."""
    return content_words(text)


def references(text: str) -> tuple[str, ...]:
    """Return the issues, pull requests and advisories that *text* names, by number or by link."""
    found = (next(filter(None, each)) for each in _REFERENCE.findall(text[:MOST_TEXT]))
    return tuple(dict.fromkeys(f"#{each}" if each.isdigit() else each.lower() for each in found))


def topic_words(text: str) -> tuple[str, ...]:
    """Return the words of *text* that name its things: no function words, no words of any project's day, no links."""
    found = dict.fromkeys(_comparable(_URL.sub(" ", text[:MOST_TEXT])))
    long = (word for word in found if (len(word) > 2 or word > "\u0e00") and not PARTICLE.match(word))
    named = (word for word in long if word not in _EVERYDAY and not _HEX.match(word))
    return tuple(dict.fromkeys((*references(text), *named)))


def is_reference(word: str) -> bool:
    """Return whether a topic word is the number of an issue, a pull request or an advisory."""
    return word[0] == "#" or word.startswith(("ghsa-", "cve-"))


def _comparable(text: str) -> Iterable[str]:
    words = text.split()
    for at in range(0, len(words), CHUNK):
        for term in terms(" ".join(words[at : at + CHUNK]), limit=10 * CHUNK):
            yield root(term).strip()


# What people write to an agent whatever the topic is counts as everyday: in a small store such words would look rare.
_EVERYDAY = frozenset(root(word).strip() for word in (*GENERIC, *STOP_WORDS, *TALK))


# --- what kind of prompt ---------------------------------------------------------------------------------------------

MIN_PLAN = 600  # characters; a plan that is shorter is a request like any other
NEW_TOPIC_WORDS = 2  # words that the session has not used: one may be a slip of the pen, two are another topic
ANSWER_TOPIC_WORDS = 3  # fresh words with which a prompt that begins as an answer is a topic of its own all the same

_HEADING = lazy_pattern(r"^#{1,4} \S", re.MULTILINE)
_STEP = lazy_pattern(r"^\s{0,6}(?:[-*]|\d{1,2}[.)]) \S", re.MULTILINE)
_PLAN_START = lazy_pattern(
    r"\s*(?:please )?(?:implement|execute|carry out|follow) (?:the|this) (?:following |attached )?plan\b", re.I
)
_PAST = lazy_pattern(
    r"\bwhy (?:did|do|were|was|have|had|don't|didn't) (?:we|i)\b"
    r"|\b(?:didn'?t|haven'?t|hadn'?t) we\b|\b(?:did|have|had) we (?:already|ever|not)\b|\bhave there been\b"
    r"|\bhow (?:do|did) (?:i|we)\b[^.?!\n]{0,80}\bagain\b"
    r"|(?:^|[.,;:!?\n]\s*|\b(?:so|and|but|know|see|tell me) )"
    r"(?:what|where|how|when|which \w+) (?:was|were|did (?:we|i))\b"
    r"|\bwas there (?:a|any|some)\b"
    r"|\b(?:last|the other|the previous) (?:time|week|month|day|session)\b|\byesterday\b"
    r"|\ba (?:few )?(?:days?|weeks?) ago\b"
    r"|\b(?:do you )?(?:remember|recall) (?:when|how|what|why|the|that)\b|\bremind me\b|\bwalk me through\b"
    r"|\bwe (?:already )?(?:decided|agreed|discussed|talked|settled|investigated|tried)\b"
    r"|\bis [^.?!\n]{0,80}\balready (?:logged|done|there|implemented|planned|scoped|fixed|solved)\b"
    # German, French, Spanish and Japanese
    r"|\b(?:wie|was|wo|wann|warum|wieso|welche\w*) (?:war|wurden?|hatten?|haben wir|ging)\b|\bhatten wir\b|\bgestern\b"
    r"|\b(?:pourquoi|comment|quand|où|quel\w*)\b[^.?!\n]{0,80}\b(?:étai(?:t|ent)|avait|avions|avons)\b"
    r"|\bhab[ií]amos\b|\bayer\b|\b(?:dernière fois|última vez)\b|前に|前回|昨日|[たす]っけ",
    re.I,
)
_PAST_TENSE = lazy_pattern(
    r"\b(?:what|which|where|how|when|who|whose|why)\b(?:[ \w'-]{0,40}?) (?:did|was|were|has|have|had)\b[^?\n]{0,200}\?"
    r"|^\s*(?:did|has|have|had|was|were) \w[^?\n]{0,200}\?",
    re.I,
)
_QUESTION = lazy_pattern(
    r"[\s¿]*(?:what|which|where|how|when|who|whose|why|does|do|is|are"
    r"|wie|was|wo|wann|warum|wieso|weshalb|pourquoi|comment|quand|où|combien|por qu[eé]|c[oó]mo|d[oó]nde|cu[aá]\w+)\b"
    r"[^\n]{10,240}\?\s*$|[^\n]{0,200}(?:なぜ|どこ|いつ|どう|何)[^\n]{0,40}[?？]\s*$",
    re.I,
)
_ANSWER = lazy_pattern(
    r"\s*(?:[-*\"'(]\s*)?(?:"
    r"(?:y|n|yes|yeah|yep|yup|no|nope|sure|lgtm|thanks?|thank you|perfect|great|nice|cool|correct|exactly|agreed)\b"
    r"|(?:ok(?:ay)?,? )?(?:please )?(?:go ahead|go (?:on|for|with)|do (?:it|both|that|this|all|so|#?\d)"
    r"|continue|proceed|carry on|keep going"
    r"|sounds? good|looks? good|let'?s (?:do|go|try)|try (?:it|again|that)|make it so"
    r"|pick up|start (?:with|on)|move (?:on|to the next)|next\b)"
    r"|(?:option|number|the|#)? ?(?:\d{1,2}|[b-d])(?:$|[\s.,:;!)])(?!\w{0,20}\()"
    r"|(?:option |number )?a(?:$|[.,:;!)]|\s+(?:and|or|please|sounds|seems|looks|is|then)\b)"  # and no article
    r"|(?:the )?(?:first|second|third|last|former|latter|both|all|none|neither)"
    r"(?: of (?:them|these|those)| one| option)?\b"
    r")",
    re.I,
)
# A few words about something that only the conversation names: "post it", "delete them".
_POINTING = lazy_pattern(r"\s*(?:please )?\w{2,12} (?:it|this|that|them|these|those)\b(?: \w{1,8}){0,2}\W*$", re.I)


# A pull request that is not named: "that PR", "the review comments", what a reviewing bot wrote.
_SOME_PULL_REQUEST = lazy_pattern(
    r"\b(?:that|the|this|my|our|your|same|last) (?:[\w-]+ ){0,2}(?:prs?|pull request|mr|merge request)\b"
    r"|\b(?:pr|pull request|merge request|review(?:er)?'?s?) (?:comment|feedback|finding|remark)s?\b"
    r"|\bcomments? (?:on|from|by|in|of) (?:the |that |this )?(?:review|reviewer|bot|rabbit|copilot|greptile|sourcery)\b"
    r"|\bcode ?rabbit\b",
    re.I,
)


def means_pull_request(typed: str) -> bool:
    """Return whether a prompt speaks of a pull request, or of its review, and does not say which."""
    return not references(typed) and bool(_SOME_PULL_REQUEST.search(typed[:1000]))


_COMMIT = lazy_pattern(r"\b(?:comm?it|amend|stash)\b", re.I)


def asks_to_commit(typed: str) -> bool:
    """Return whether a short prompt is about committing what has changed."""
    return is_routine(typed) and bool(_COMMIT.search(typed))


_LOGGED_ERROR = lazy_pattern(  # as logs write it, with what follows: prose speaks of errors too
    r"^.*\b(?:\w*error|\w*exception|fatal|failed|panic)\]?(?: \w+){0,4} ?[:=].*(?:\n.+){0,2}", re.I | re.MULTILINE
)
MOST_ERRORS, MOST_ERROR = 2, 400  # of a pasted log, the last ones, and characters of each


def subject_of(prompt: str, typed: str) -> str:
    """Return what a prompt is about: what was typed, and the errors of a log that was pasted behind it."""
    if len(typed) >= len(prompt.strip()):
        return typed
    errors = [error[:MOST_ERROR] for error in _LOGGED_ERROR.findall(prompt[-MOST_TEXT:]) if error not in typed]
    return "\n".join((typed, *errors[-MOST_ERRORS:]))


def classify(prompt: str, *, typed: str, author: str, first: bool, session_words: Collection[str]) -> PromptKind:
    """Return what kind of prompt this is.

    *typed* is the part that a person typed, *author* who wrote it (`extract.authorship`), *first* whether it is the
    first of its context window, *session_words* the content words of the session's prompts and answers so far.
    """
    if _is_plan(prompt):
        return PromptKind("plan")
    if author == "machine":
        return PromptKind("machine")
    if author == "pasted" or not typed.strip():
        return PromptKind("pasted")
    topic = topic_words(typed)
    fresh = topic if first else tuple(word for word in topic if word not in session_words)
    past_tense = (first or len(fresh) >= NEW_TOPIC_WORDS) and _PAST_TENSE.search(typed[:1000])
    if topic and (past_tense or _PAST.search(typed[:1000]) or (first and _QUESTION.match(typed))):
        return PromptKind("past", topic)
    if len(fresh) < NEW_TOPIC_WORDS and len(topic) <= NEW_TOPIC_WORDS and is_routine(typed):
        return PromptKind("routine", topic)
    if not topic or (not first and len(topic) < NEW_TOPIC_WORDS):
        return PromptKind("reply", topic)
    if len(fresh) <= ANSWER_TOPIC_WORDS and (_ANSWER.match(typed) or _POINTING.match(typed)):
        return PromptKind("reply", topic)
    return PromptKind("new topic" if first or len(fresh) >= NEW_TOPIC_WORDS else "same topic", topic)


def _is_plan(prompt: str) -> bool:
    if _PLAN_START.match(prompt):
        return True
    if len(prompt) < MIN_PLAN:
        return False
    return len(_HEADING.findall(prompt)) >= 2 or len(_STEP.findall(prompt)) >= 8


# --- which notes -----------------------------------------------------------------------------------------------------

# A note's score is the share of the prompt's weight that the whole note holds, times the weight of the prompt's words
# in the passage that is shown. Above 1.1, which 7 % of the prompts reach, two readers found 15 of 25 blocks helpful and
# 2 noise; with the values below 12 % reach it, and the next turn touches a file of 18 of 40 blocks with notes.
MIN_SCORE = 0.5
ANCHORED_FACTOR = 0.7  # factor on the score that is enough where a note is about a thing that the prompt names
TITLED_FACTOR = 0.55  # the same where a feature is named: a word of the prompt in the note and in its file's name
ANCHORED_COVERAGE, TITLED_COVERAGE, OTHER_COVERAGE = 0.25, 0.5, 0.33  # of the prompt's weight, at least
MIN_WORDS, OTHER_MIN_WORDS = 2, 5  # different words of the prompt in the passage; with 4, two more misses, no hit
CLEAR_COVERAGE = 0.6  # of the prompt's weight, from which on two words are enough for any note
UNKNOWN_WEIGHT = 0.5  # weight of a word that no memory holds: a slip of the pen, or something new
HEAVIEST_WORDS = 12  # words that count as the whole of a prompt, so that long and short ones compare
SAME_TOPIC_FACTOR = 1.4  # on the score that is enough: a running conversation has most of its topic already
SAME_REFERENCE = 1.0  # added where prompt and note name the same issue, pull request or advisory
NEXT_NOTE = 0.8  # of the best note's score that a further one needs
ALIKE = 0.5  # share of common words from which two passages say the same; the newer one stays
MOST_NOTES = 4
NO_WORD = "shares no word with the prompt"  # a reason that is not worth recording


def word_weights(words: Iterable[str], holders: Mapping[str, int], size: int) -> dict[str, float]:
    """Return what each word of a prompt weighs: 1.0 if one memory of *size* holds it, less the more hold it."""
    one = rarity(1, size)
    return {word: rarity(held, size) / one if (held := holders.get(word, 0)) else UNKNOWN_WEIGHT for word in words}


def choose(weights: Mapping[str, float], candidates: Sequence[Candidate], *, kind: PromptKind) -> Choice:
    """Return the notes that concern the very thing a prompt is about, best first; for most prompts none.

    *weights* are those of the prompt's topic words (`word_weights`).
    """
    rejected: dict[str, str] = {}
    whole = sum(sorted((weights[word] for word in without_parts(weights)), reverse=True)[:HEAVIEST_WORDS])
    scores: dict[str, float] = {}
    for each in candidates:
        scores[each.id], why_not = _score(each, weights, whole=whole, kind=kind.kind)
        if why_not:
            rejected[each.id] = why_not
    fitting = [each for each in candidates if each.id not in rejected]
    taken: list[Candidate] = []
    for each in sorted(fitting, key=lambda one: (one.without_changes, -scores[one.id], -one.at)):
        alike = next((at for at, other in enumerate(taken) if _are_alike(each, other)), None)
        if taken and scores[each.id] < NEXT_NOTE * scores[taken[0].id]:
            rejected[each.id] = "much weaker than the best note"
        elif taken and each.without_changes and not taken[0].without_changes:
            rejected[each.id] = "nothing was changed after it, other than after the best note"
        elif alike is not None:
            older, newer = sorted((taken[alike], each), key=lambda one: one.at)
            rejected[older.id], taken[alike] = "a newer note says the same", newer
        elif len(taken) < MOST_NOTES:
            taken.append(each)
        else:
            rejected[each.id] = "enough notes without it"
    return Choice(tuple(taken), rejected)


def _score(each: Candidate, weights: Mapping[str, float], *, whole: float, kind: Kind) -> tuple[float, str]:
    """Return how well a note fits (1.0 holds all the weight of the prompt's words), and why that is not enough."""
    held = without_parts([word for word in weights if word in each.words])
    shown = without_parts([word for word in weights if word in each.shown])
    coverage = min(1.0, sum(weights[word] for word in held) / whole) if whole else 0.0
    # The passage itself, or what the note is about as a whole; not one of ten that it lists.
    same_reference = each.same_thing or any(is_reference(word) for word in shown)
    factor, min_coverage = 1.0, OTHER_COVERAGE
    min_words = MIN_WORDS if coverage >= CLEAR_COVERAGE else OTHER_MIN_WORDS
    if each.anchored:
        factor, min_coverage, min_words = ANCHORED_FACTOR, ANCHORED_COVERAGE, MIN_WORDS
    elif each.titled and coverage >= TITLED_COVERAGE:
        factor, min_words = TITLED_FACTOR, MIN_WORDS
    needed = MIN_SCORE * factor * (SAME_TOPIC_FACTOR if kind == "same topic" else 1.0)
    score = coverage * sum(weights[word] for word in shown) + SAME_REFERENCE * same_reference
    if each.in_context:
        return score, "the agent has it already"
    if not held:
        return score, NO_WORD
    if not same_reference and (coverage < min_coverage or len(shown) < min_words or score < needed):
        return score, f"holds {coverage:.0%} of what the prompt is about, score {score:.2f} of {needed:.2f}"
    return score, "" if each.substance else "says nothing of what came of it"


def without_parts(words: Iterable[str]) -> list[str]:
    """Leave out words that are part of another: `powershell` must not count three times."""
    every = list(words)
    return [word for word in every if not any(word != other and word in other for other in every)]


def _are_alike(one: Candidate, other: Candidate) -> bool:
    fewer = min(len(one.shown), len(other.shown))
    return bool(fewer) and len(one.shown & other.shown) >= ALIKE * fewer


# --- anchors ---------------------------------------------------------------------------------------------------------

_QUOTED = lazy_pattern(r"[\"\u201c`']([A-Z][\w.-]{2,30}(?: [\w.-]{2,20}){0,2})[\"\u201d`']")


class Anchors(NamedTuple):
    """The things that a prompt names."""

    files: frozenset[str]  # last parts of paths, in small letters
    names: tuple[frozenset[str], ...]  # identifiers and quoted names, each as its content words
    references: frozenset[str]


def anchors_of(prompt: str, *, files: Iterable[str], functions: Iterable[str]) -> Anchors:
    """Return the things that a prompt names; *files* and *functions* are those that `mentions` found in it."""
    names = (content_words(name) for name in (*functions, *_QUOTED.findall(prompt[:MOST_TEXT])))
    return Anchors(
        files=frozenset(file.rpartition("/")[2].lower() for file in files),
        names=tuple(words for words in names if words),
        references=frozenset(references(prompt)),
    )


def is_anchored(anchors: Anchors, *, files: Iterable[str], words: Collection[str]) -> bool:
    """Return whether a note of these *files* and *words* is about a thing that the prompt names."""
    if any(name <= set(words) for name in anchors.names) or not anchors.references.isdisjoint(words):
        return True
    return any(file.rpartition("/")[2].lower() in anchors.files for file in files)


def is_titled(weights: Mapping[str, float], *, text: str, files: Iterable[str]) -> bool:
    """Return whether a word of the prompt names what a note is about: in its *text* and in a file's name."""
    named = [word for word, weight in weights.items() if weight >= MIN_NAME_WEIGHT and word in memory_words(text)]
    stems = (file.rpartition("/")[2].partition(".")[0] for file in files)
    return bool(named) and any(
        word in memory_words(stem) for stem in stems if stem.lower() not in _CONVENTIONAL for word in named
    )


# Names that every project gives to files, whatever they are about.
_CONVENTIONAL = frozenset(
    "readme changelog skill agents claude index main mod lib app init setup config".split()  # noqa: SIM905
)
MIN_NAME_WEIGHT = 0.35  # weight of a word that names a feature; below, half of the project's notes hold it
