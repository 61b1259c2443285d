"""Say in a few words what a session was about, what came of it and what it found out, in its own sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from foreword.extract.actions import Turn
from foreword.extract.facts import PUSHES, commits_of, pull_requests_of, runs_in
from foreword.extract.text import (
    OPEN_TRANSLATED,
    blocks,
    capitalised,
    cut,
    holds,
    names_code,
    plain_line,
    says_something,
    sentences,
    split_sentences,
    stems,
)
from foreword.terms import terms

TITLE = 110  # characters; two commit subjects
OUTCOME = 300  # characters of what came of one turn
SESSION_OUTCOME = 450  # characters; 350 keep 52 of 218 facts, 400 57, 450 and 500 60, each the most on any two projects
LEARNED = 4  # passages a session; more of them are seldom worth more, and a summary stays within 350 tokens
LEARNED_EACH = 320  # characters, two or three sentences; with 240 fewer facts are found, with 360 no more
LEARNED_ALL = 750  # characters of all of them; title, outcome and open items need the rest of the 350 tokens
# Weights; their neighbours give the same within noise (2 of 218 facts), so they are round.
WRITTEN_FOR_LATER = 0.5  # for the body of a commit or a pull request
TOPIC = 0.4  # for each of up to three words of the session's title
SAME = 0.6  # share of words from which on a sentence repeats another


Weigh = Callable[[Sequence[str], int], tuple[str, float]]  # sentences, which one -> a passage and what it is worth


# --- title ---------------------------------------------------------------------------------------------------------


def title_of(turns: Sequence[Turn]) -> str:
    """Return what a session was about, in at most `TITLE` characters; empty where nothing tells."""
    subjects = [_numbered(_subject(each.title), each.number) for each in pull_requests_of(turns)]
    for commit in commits_of(turns):
        closed = _ISSUE.search(commit.body)
        subjects.append(_numbered(_subject(commit.subject), closed[1] if closed else ""))
    if subjects:
        return _joined(subjects)
    if plan := plan_title(turns):
        return cut(plan, TITLE)
    done = next((point for turn in reversed(turns) if turn.edited and (point := _headline(turn))), "")
    title = done or next((request for turn in turns if (request := request_of(turn))), "")
    return cut(title or next((point for turn in reversed(turns) if (point := _headline(turn))), ""), TITLE)


def _headline(turn: Turn) -> str:
    """Return the sentence of a turn's final messages that says most about what was done, as a headline."""
    found = _outcomes([turn])
    return max(found, key=lambda each: each.weight).text.rstrip(". ") if found else ""


def plan_title(turns: Sequence[Turn]) -> str:
    """Return the heading of the plan that the session carried out or wrote; empty without one."""
    carried_out = (turn.text[found.end() :] for turn in turns if (found := _PLAN_PROMPT.match(turn.text)))
    accepted = (action.plan for turn in reversed(turns) for action in reversed(turn.actions))
    return next(filter(None, map(plan_heading, chain(carried_out, accepted))), "")


def request_of(turn: Turn) -> str:
    """Return the main clause of what a person typed; empty for a reply, a greeting, a link or a command."""
    plain = (without_opening(sentence) for sentence in sentences(turn.typed))
    long = (each for each in plain if len(each.split()) >= 3 or len(terms(each)) > 6)  # some scripts part no words
    asking = (each for each in long if each[0] not in "/<@" and _WORD.search(each))
    return capitalised(next(asking, ""))


def without_opening(sentence: str) -> str:
    """Return a sentence that a person typed without links, greeting and the words that only ask for something."""
    return _OPENING.sub("", _URL.sub("", sentence).strip()).strip(" .!?—–-:,;")


def _numbered(subject: str, number: str) -> str:
    return f"{subject} (#{number})" if number and f"#{number}" not in subject else subject


def _joined(subjects: Sequence[str]) -> str:
    """Join subjects that say different things, as far as there is room."""
    title, known = cut(subjects[0], TITLE), stems(subjects[0])
    for subject in subjects[1:]:
        words = stems(subject)
        if holds(known, words, share=SAME):
            continue
        if len(title) + 2 + len(subject) <= TITLE:
            title, known = f"{title}; {subject}", known | words
    return title


def _subject(text: str) -> str:
    """Return a commit's subject without the type of conventional commits; its scope stays where it is a word."""
    found = _CONVENTIONAL.match(text)
    if not found:
        return text
    rest, scope = text[found.end() :], found[1] or ""
    if _WORD.fullmatch(scope) and scope.lower() not in rest.lower():
        return f"{scope}: {rest}"
    return capitalised(rest) if rest else text


def plan_heading(text: str) -> str:
    """Return the heading of a plan without the word plan; empty where it has none, or a single word."""
    line = next((line for line in text.lstrip().splitlines()[:12] if line.startswith("#")), "")
    title = _PLAN_WORD.sub("", plain_line(line.lstrip("# "))).strip(" :—–-")
    return capitalised(title) if len(title.split()) >= 2 else ""


_CONVENTIONAL = re.compile(
    r"(?:feat|fix|docs?|chore|refactor|tests?|ci|build|perf|style|revert|security)(?:\(([^()\n]*)\))?!?:\s+"
)
_PLAN_PROMPT = re.compile(r"\s*(?:please )?implement (?:the|this) (?:following )?plan\b[^\n#]*", re.IGNORECASE)
_PLAN_WORD = re.compile(r"^(?:the )?(?:\w+ )?plan\s*[:—–-]\s*", re.IGNORECASE)
_URL = re.compile(r"https?://\S+")
_WORD = re.compile(r"[^\W\d_]{3,}")
_ISSUE = re.compile(r"\b(?:closes|fixes|resolves)\b.{0,20}#(\d+)", re.IGNORECASE)
_OPENING = re.compile(
    r"^(?:(?:hi|hey|hello|ok(?:ay)?|so|now|well|great|good|perfect|thanks?|please|also|and|then|next|first|yes|no)\b[\s,.!:;—-]*)*"
    r"(?:(?:can|could|would|will) (?:you|we) (?:please |also )?|i(?:'d| would)? (?:want|need|like) (?:you )?to "
    r"|(?:let'?s|we (?:need|have|want) to|go ahead and|please) )?",
    re.IGNORECASE,
)


# --- outcome and learned --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Passage:
    """What a turn's final messages or commits say in a sentence or two, and how much that tells."""

    text: str
    weight: float
    place: int  # in its session
    turn: Turn
    written_down: bool  # in a commit or a pull request: for others, after the work


def outcome_of(turn: Turn) -> str:
    """Return what came of one turn, in one or two sentences of its final message; empty where it brought nothing."""
    return _outcome(_outcomes([turn]), OUTCOME)


def outcome_of_session(turns: Sequence[Turn]) -> str:
    """Return what came of a session: the best sentences of its messages, and what became of the work."""
    parts = _fate(turns)
    worked = [turn for turn in turns if turn.edited or commits_of([turn])] or turns
    outcome = _outcome(_outcomes(worked, about=title_of(turns)), SESSION_OUTCOME - len(", ".join(parts)) - 2)
    fate = ", ".join(each for each in parts if not (_TESTS.search(each) and _TESTS.search(outcome)))
    return f"{outcome} {fate}{'.' if fate else ''}".strip()


def learned_of(turns: Sequence[Turn]) -> list[Passage]:
    """Return the passages that state a cause, a constraint or how something works, and name the code it is about."""
    found = _passages(turns, _fact, about=title_of(turns))
    later = [replace(each, weight=each.weight + WRITTEN_FOR_LATER * each.written_down) for each in found]
    # Do not repeat the outcome.
    return _chosen(later, most=LEARNED, room=LEARNED_ALL, known=stems(outcome_of_session(turns)))


def _passages(turns: Sequence[Turn], weigh: Weigh, *, about: str = "") -> list[Passage]:
    """Return what *weigh* finds in the messages and commits of these turns, more for words that it is *about*."""
    found: list[Passage] = []
    topic = stems(about)
    for turn in turns:
        bodies = [each.body for each in commits_of([turn])] + [each.body for each in pull_requests_of([turn])]
        messages = [each.text for each in turn.actions if each.kind in ("answer", "compaction")]
        for number, text in enumerate((*messages, *bodies)):
            for block in blocks(text):
                if block.kind == "heading" or _SKIPPED_HEADING.search(block.heading):
                    continue
                parts = split_sentences(block.text)
                for at in range(len(parts)):
                    passage, weight = weigh(parts, at)
                    if weight:
                        plain = capitalised(_LEAD.sub("", passage))
                        plain = plain if plain[-1:] in ".!?…。！？" else f"{plain}."
                        weight += TOPIC * min(3, len(stems(plain) & topic)) - 0.5 * (block.kind == "item")
                        found.append(Passage(plain, max(0.1, weight), len(found), turn, number >= len(messages)))
    return found


def _outcomes(turns: Sequence[Turn], *, about: str = "") -> list[Passage]:
    """Return what these turns say that they did; where no sentence says so in words that are known, what names code."""
    return _passages(turns, _done, about=about) or _passages(turns, partial(_done, any_code=True), about=about)


def _chosen(found: Sequence[Passage], *, most: int, room: int, known: frozenset[str] = frozenset()) -> list[Passage]:
    """Return the heaviest passages that fit and say something new, in their order."""
    taken: list[Passage] = []
    for each in sorted(found, key=lambda one: -one.weight):
        words = stems(each.text)
        if len(taken) < most and len(each.text) <= room and not holds(known, words, share=SAME):
            taken.append(each)
            known, room = known | words, room - len(each.text) - 1
    return sorted(taken, key=lambda each: each.place)


def _outcome(found: Sequence[Passage], room: int) -> str:
    """Return the two passages that tell most; the best one cut where it is too long."""
    taken = _chosen(found, most=2, room=room)
    best = max(found, key=lambda each: each.weight).text if found else ""
    return " ".join(each.text for each in taken) or cut(best, room)


def _done(parts: Sequence[str], at: int, *, any_code: bool = False) -> tuple[str, float]:
    """Return a sentence, and how much it tells about what was done or found out; 0 for what tells nothing."""
    text = parts[at]
    weight = 1.0 * bool(_WAS_DONE.match(_CODE.sub("`", text))) + _marks(text)
    if not 25 <= len(text) <= 400 or not (weight or (any_code and names_code(text))):
        return "", 0.0
    if _is_talk(text) or len(stems(text)) < 4 or not says_something(text):
        return "", 0.0
    weight += 0.8 * names_code(text) + 0.05 * min(len(stems(text)), 20) - 1.5 * bool(_DANGLING.match(text))
    return text, max(0.1, weight)


def _fact(parts: Sequence[str], at: int) -> tuple[str, float]:
    """Return a sentence with what it needs to be understood, and how surely it states a fact about the code."""
    marks, passage = _marks(parts[at]), _standing(parts, at)
    if len(passage) < 60 or not marks or _is_talk(parts[at]) or not names_code(passage):
        return "", 0.0
    return passage, marks + 0.15 * min(4, len(set(_NAMES.findall(passage)))) + len(passage) / 150


def _fate(turns: Sequence[Turn]) -> list[str]:
    """Return what became of the work, from the session's own commands: committed, pushed, pull request, tests."""
    commits, pulls = commits_of(turns), pull_requests_of(turns)
    parts = []
    if commits:
        last = commits[-1]
        pushed = any(PUSHES.search(run.command) and not run.failed and run.at >= last.at for run in runs_in(turns))
        some = f"Committed {last.hash[:8]}".strip() if len(commits) == 1 else f"{len(commits)} commits"
        where = f" on {last.branch}" if last.branch and not pulls else ""
        parts.append(f"{some}{where}{', pushed' if pushed else ''}")
    parts += [f"PR #{each.number}" if each.number else "a pull request" for each in pulls[-3:]]
    passed = [each[1] for turn in turns for each in _TESTS.finditer(turn.answer)]
    return parts + ([f"{passed[-1]} tests pass"] if passed else [])


OPEN_LABEL = re.compile(
    rf"(?:(?:still )?(?:open|to do|pending|remaining|left|to-?dos?|next steps?)|{OPEN_TRANSLATED})(?: ?:| —|：)\s*",
    re.IGNORECASE,
)


def _is_talk(sentence: str) -> bool:
    """Return whether a sentence is an offer, a question, a guess, an announcement, a to-do or chatter."""
    found = _URL.search(sentence) or OFFER.search(sentence) or _TALK.match(sentence) or OPEN_LABEL.match(sentence)
    return sentence.endswith((":", "?", "？")) or found is not None


_TESTS = re.compile(
    r"\b(\d[\d,]*) (?:[a-z]+ ){0,2}tests?\b[^.\n]{0,20}\b(?:pass|passed|passing|green)\b", re.IGNORECASE
)
OFFER = re.compile(
    r"\b(?:want me to|shall i|should i|would you like|do you want|let me know|if you(?:'d| would) like|if you want"
    r"|happy to|ready (?:when|to|for)|i can (?:also )?\w+|your call|up to you|probably|maybe|perhaps|i think|i suspect"
    r"|not sure)\b|\?$",
    re.IGNORECASE,
)
_TALK = re.compile(
    r"(?:all (?:changes|tests|checks|done|clean|good|set|pass\w*|green|\d+)|everything|here(?:'s| is| are)|done\b|great"
    r"|perfect|yes\b|you'?re right|sure|got it|summary|the (?:build|tests?|lint|commit) (?:pass|succeed|is|was|are)"
    r"|tests?\b.{0,30}pass|\d+ (?:files?|tests?)|let me|let'?s"
    r"|i'?ll|i will|i need to|now (?:let|i)|next,?|waiting|you\b|run\b|on `|no \w+ (?:issues|comments)"
    r"|(?:also )?(?:loading|fetching|checking|looking|looks)\b|moved? [^.]{0,30}\bto done"
    r"|lint(?:ing)?:|posted\b|subagent"
    r"|(?:\w+ )?(?:commit|committ?et|committed|pushed|gepusht|poussé|amended)\b|co-authored|fixes #|closes #)",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:(?:great|good|perfect|noted|got it|sure|done|ok(?:ay)?|understood|yes|confirmed|right|fixed|summary|result"
    r"|root cause|cause|note|caveat|gotcha|why|finding|the fix|fix|problem)\b\s*[—–:.,!-]+\s*)+"
    r"|^(?:i'?ve|i have|we'?ve|i|we) (?:now |also |successfully )?(?=[a-z]+(?:ed|t|n)\b)",
    re.IGNORECASE,
)
_WAS_DONE = re.compile(r".{0,90}?\b(?:[a-z]{3,}ed|built|rewrote|written|made|split|now)\b", re.IGNORECASE)
_DANGLING = re.compile(
    r"(?:this|that|it|its|it'?s|these|those|they|both|same|then|so|and|but|or|also|which|there|here|however|instead"
    r"|the (?:former|latter|first|second|other|same|rest)|each|everything|nothing|my|your|i|i'?m|i'?ve|we|you)\b",
    re.IGNORECASE,
)
_SKIPPED_HEADING = re.compile(
    r"\b(?:next|remaining|still to do|to-?dos?|follow[- ]?ups?|deferred|out of scope|options?|alternatives?|questions?"
    r"|pending|proposal|proposed|plan|recommend\w*|verification|how to (?:test|verify)|user messages"
    rf"|{OPEN_TRANSLATED}|vorschlag|propuesta|proposition|提案)\b",
    re.IGNORECASE,
)


def _standing(parts: Sequence[str], at: int) -> str:
    """Return the sentence at *at* with what it needs to be understood and has room for; empty where that is missing."""
    sentence = parts[at]
    if _DANGLING.match(sentence):
        before = parts[at - 1] if at else ""
        if not before or _DANGLING.match(before) or _is_talk(before):
            return ""
        sentence = f"{before} {sentence}"
    after = parts[at + 1] if at + 1 < len(parts) else ""
    if after and not _is_talk(after) and len(sentence) + len(after) < LEARNED_EACH:
        sentence = f"{sentence} {after}"
    return sentence if len(sentence) <= LEARNED_EACH else ""


def _marks(sentence: str) -> float:
    return sum(weight for mark, weight in _MARKS if mark.search(sentence))


# What shows that a sentence states a cause, a constraint or a way something works, and how surely (lift over any
# sentence that names code, in sessions whose facts people wrote down).
_MARKS = tuple(
    (re.compile(rf"\b(?:{words})\b", re.IGNORECASE), weight)
    for words, weight in (
        (
            r"root cause|turns? out|caused by|due to|because|never|silently|unless|otherwise|without|until"
            r"|must|requires?|cannot|only (?:when|if|works|in|on)",
            1.0,
        ),
        (r"now|no longer|instead of|rather than|by default|defaults? to|falls? back|actually|via|not", 0.5),
        (r"fails?|breaks?|broke|crash\w*|errors?|wrong|ignored?s?|bypass\w*|overrid\w*|overwrit\w*|hangs?", 0.4),
        (r"returns?|runs?|reads?|uses?|calls?|writes?|stores?|renders?|resolves?|treats?|lives? in|loads?", 0.4),
    )
)
_CODE = re.compile(r"`[^`]{1,300}`")
_NAMES = re.compile(r"`[^`]+`|\b\w+\(\)|\b[\w/-]+\.[a-z]{1,4}\b")
