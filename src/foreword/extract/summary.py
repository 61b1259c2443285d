"""Say in a few words what a session was about, what came of it and what it found out, in its own sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from foreword.extract.actions import Action
from foreword.extract.text import (
    blocks,
    capitalised,
    cut,
    holds,
    names_code,
    plain_line,
    sentences,
    split_sentences,
    stems,
)
from foreword.extract.turns import Turn

TITLE = 110  # characters; two commit subjects
OUTCOME = 300  # characters of what came of one turn
SESSION_OUTCOME = 450  # characters; 350 keep 52 of 218 facts, 400 57, 450 and 500 60, each the most on any two projects
LEARNED = 4  # sentences a session; more of them are seldom worth more, and a summary stays within 350 tokens
LEARNED_EACH = 320  # characters, two or three sentences; with 240 fewer facts are found, with 360 no more
LEARNED_ALL = 750  # characters of all of them; title, outcome and open items need the rest of the 350 tokens
# Weights beside those of `_MARKS`. Their neighbours give the same within noise (2 of 218 facts), so they are round.
MARKED = 0.4  # the least that a sentence must show of stating a fact: one mark
WRITTEN_FOR_LATER = 0.5  # for the body of a commit or a pull request
TOPIC = 0.4  # for each of up to three words of the session's title
COMMIT_BODY = 1.0  # what a sentence of a commit's body is worth as outcome before its own marks count
WHOLLY = 0.9  # share of a passage's words that a paragraph holds which has it
SAME = 0.6  # share of words from which on a sentence says again what another has said


# --- commits and pull requests -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Commit:
    """A commit that a session made."""

    subject: str
    body: str = field(default="", repr=False)
    hash: str = ""
    branch: str = ""
    at: float = 0.0


@dataclass(frozen=True)
class PullRequest:
    """A pull request that a session opened."""

    title: str
    number: str = ""
    url: str = ""
    body: str = field(default="", repr=False)
    at: float = 0.0


def commits_of(turns: Sequence[Turn]) -> tuple[Commit, ...]:
    """Return the commits that were made, in order; an amended one in its last form."""
    found: list[Commit] = []
    for run in _runs(turns):
        if not COMMITS.search(run.command):
            continue
        made = [Commit(each[3].strip(), hash=each[2], branch=each[1], at=run.at) for each in MADE.finditer(run.output)]
        subject, body = _message(run.command)
        if not made and subject and not run.failed and not REFUSED.search(run.output):
            made = [Commit(subject, at=run.at)]
        made = [
            Commit(each.subject, body, each.hash, each.branch, each.at) if each.subject == subject else each
            for each in made
        ]
        if made and found and _AMENDS.search(run.command):
            body = made[0].body or found[-1].body
            made[0] = Commit(made[0].subject, body, made[0].hash, made[0].branch, made[0].at)
            found.pop()
        for each in made:
            found = [*(other for other in found if other.subject != each.subject), each]
    return tuple(found)


def pull_requests_of(turns: Sequence[Turn]) -> tuple[PullRequest, ...]:
    """Return the pull requests that were opened, in order."""
    found: dict[str, PullRequest] = {}
    for run in _runs(turns):
        at = _OPENS.search(run.command)
        if not at or run.failed:
            continue
        title = _option(run.command, at.end(), _TITLE_OPTION)
        url = _PULL_URL.search(run.output)
        if title:
            number = url[1] if url else ""
            body = _option(run.command, at.end(), _BODY_OPTION)
            found[number or title] = PullRequest(title.strip(), number, url[0] if url else "", body, run.at)
    return tuple(found.values())


def _runs(turns: Sequence[Turn]) -> Iterator[Action]:
    return (run for turn in turns for run in turn.runs)


COMMITS = re.compile(r"(?:^|[\n;&|(])[ \t]*(?:[\w./-]{1,20} )?git(?:\s+-[Cc]\s+(?:\"[^\"\n]*\"|\S+))*\s+commit\b")
_AMENDS = re.compile(r"\bcommit\b[^\n;&|]{0,400}--amend\b")
MADE = re.compile(r"^\[([^\]\s]+)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
REFUSED = re.compile(
    r"\bFAILED\b|nothing (?:added )?to commit|no changes added|husky .*(?:failed|exited)|^(?:error|fatal)\b"
    r"|hook declined|✖",
    re.MULTILINE | re.IGNORECASE,
)
_OPENS = re.compile(r"\b(?:gh pr create|glab mr create|hub pull-request)\b")
_PULL_URL = re.compile(r"https?://[^\s\"'<>]+?/(?:pull|pulls|merge_requests)/(\d+)")
_TITLE_OPTION = re.compile(r"(?:--title|-t)[ =]")
_BODY_OPTION = re.compile(r"(?:--body|-b|--description)[ =]")
_MESSAGE_OPTION = re.compile(r"(?:\s-[a-z]*m|\s--message)[ =]?|\s-F\s*-|\s--file=-")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*\n")
_TRAILER = re.compile(
    r"^(?:co-authored-by|signed-off-by|generated with|🤖|change-id|reviewed-by)\b.*$|^\S*🤖.*$",
    re.IGNORECASE | re.MULTILINE,
)


def _message(command: str) -> tuple[str, str]:
    """Return subject and body of the message in a `git commit` command."""
    start = COMMITS.search(command)
    text = _option(command, start.end(), _MESSAGE_OPTION) if start else ""
    text = _TRAILER.sub("", text).strip()
    subject, _, body = text.partition("\n")
    return subject.strip(), body.strip()


def _option(command: str, start: int, option: re.Pattern[str]) -> str:
    """Return what a command's option is set to: a here-document, a quoted string or a word."""
    at = option.search(command, start)
    if not at:
        return ""
    rest = command[at.end() :]
    head = rest[:40]
    document = _HEREDOC.search(rest[:120])
    if document and (head.lstrip("\"' ").startswith(("$(cat", "<<", "`cat")) or "<<" in head):
        end = re.search(rf"^[ \t]*{re.escape(document[2])}[ \t]*$", rest[document.end() :], re.MULTILINE)
        return rest[document.end() :][: end.start() if end else None]
    rest = rest.lstrip()
    if rest.startswith(("@'", '@"')):  # a here-string of PowerShell
        return rest[2:].partition(f"\n{rest[1]}@")[0].strip()
    if rest[:1] in "'\"" and rest:
        return _quoted(rest)
    return rest.split()[0] if rest else ""


def _quoted(text: str) -> str:
    """Return the string that *text* begins with, without its quotes."""
    quote, at = text[0], 1
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" and quote == '"' else 1
    inner = text[1:at]
    return re.sub(r"\\([\"$`\\])", r"\1", inner) if quote == '"' else inner


# --- title ---------------------------------------------------------------------------------------------------------


def title_of(turns: Sequence[Turn]) -> str:
    """Return what a session was about, in at most `TITLE` characters; empty where nothing tells."""
    subjects = [_numbered(_subject(each.title), each.number) for each in pull_requests_of(turns)]
    subjects += [_numbered(_subject(each.subject), _issue(each.body)) for each in _by_weight(commits_of(turns))]
    if subjects:
        return _joined(subjects)
    if plan := plan_title(turns):
        return cut(plan, TITLE)
    worked = [turn for turn in turns if turn.edited] or list(turns)
    for turn in reversed(worked):
        if turn.edited and (points := _outcome_points(turn)):
            return cut(_headline(max(points, key=lambda point: point.weight).text), TITLE)
    for turn in turns:
        if request := request_of(turn):
            return cut(request, TITLE)
    for turn in reversed(worked):
        if points := _outcome_points(turn):
            return cut(_headline(max(points, key=lambda point: point.weight).text), TITLE)
    return ""


def plan_title(turns: Sequence[Turn]) -> str:
    """Return the heading of the plan that the session carried out or wrote; empty without one."""
    for turn in turns:
        found = _PLAN_PROMPT.match(turn.text)
        if found and (title := _plan_heading(turn.text[found.end() :])):
            return title
    for turn in reversed(turns):
        for action in reversed(turn.actions):
            if action.plan and (title := _plan_heading(action.plan)):
                return title
    return ""


def request_of(turn: Turn) -> str:
    """Return the main clause of what a person typed; empty for a reply, a greeting, a link or a command."""
    for sentence in sentences(turn.typed):
        plain = without_opening(sentence)
        if (
            len(plain.split()) >= 3
            and not _REPLY.match(sentence)
            and not plain.startswith(("/", "<", "@"))
            and _WORD.search(plain)
        ):
            return capitalised(plain)
    return ""


def without_opening(sentence: str) -> str:
    """Return a sentence that a person typed without links, greeting and the words that only ask for something."""
    plain = _GREETING.sub("", _URL.sub("", sentence))
    return _ASKING.sub("", plain).strip(" .!?—–-:,;")


def _by_weight(commits: Sequence[Commit]) -> list[Commit]:
    """Return the commits: what changes the product first, then tests, docs and chores; work in progress left out."""
    ranked = sorted(commits, key=lambda each: (bool(_MINOR.match(each.subject)), each.at))
    return [each for each in ranked if not _PASSING.match(each.subject)] or ranked


def _numbered(subject: str, number: str) -> str:
    return f"{subject} (#{number})" if number and f"#{number}" not in subject else subject


def _issue(body: str) -> str:
    """Return the number of the issue that a commit closes."""
    found = _ISSUE.search(body)
    return found[1] if found else ""


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
    text = text.lstrip("@ ")  # a here-string of PowerShell, run by another shell
    found = _CONVENTIONAL.match(text)
    if not found:
        return text
    rest, scope = text[found.end() :], found[1] or ""
    if _WORD.fullmatch(scope) and scope.lower() not in rest.lower():
        return f"{scope}: {rest}"
    return capitalised(rest) if rest else text


def _plan_heading(text: str) -> str:
    for line in text.lstrip().splitlines()[:12]:
        if line.startswith("#"):
            title = _PLAN_WORD.sub("", plain_line(line.lstrip("# "))).strip(" :—–-")
            return capitalised(title) if len(title.split()) >= 2 else ""
    return ""


def _headline(sentence: str) -> str:
    return capitalised(_LEAD.sub("", sentence).rstrip(". "))


_CONVENTIONAL = re.compile(
    r"(?:feat|fix|docs?|chore|refactor|tests?|ci|build|perf|style|revert|security)(?:\(([^()\n]*)\))?!?:\s+"
)
_MINOR = re.compile(
    r"(?:docs?|chore|tests?|ci|build|style)(?:\([^()\n]*\))?!?:|(?:bump|update (?:the )?(?:changelog|docs?"
    r"|readme)|merge)\b",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"(?:wip|fixup!|squash!|amend!|tmp|temp|checkpoint|merge (?:branch|remote|pull))\b", re.IGNORECASE
)
_PLAN_PROMPT = re.compile(
    r"\s*(?:please )?(?:implement|execute|carry out|follow) (?:the|this) (?:following |attached )?plan\b[^\n#]*",
    re.IGNORECASE,
)
_PLAN_WORD = re.compile(r"^(?:(?:the )?(?:implementation |fix |refactor(?:ing)? )?plan\s*[:—–-]\s*)", re.IGNORECASE)
_URL = re.compile(r"https?://\S+")
_WORD = re.compile(r"[^\W\d_]{3,}")
_GREETING = re.compile(
    r"^(?:(?:hi|hey|hello|ok(?:ay)?|so|now|well|right|alright|great|good|perfect|thanks?|please|also|and|btw"
    r"|by the way|hmm+|uh+m*"
    r"|quick(?:ly)?|next|then|first|sorry|yes|yeah|no|i think|one more thing|another thing)\b[\s,.!:;—-]*)+",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"^(?:(?:can|could|would|will) (?:you|we) (?:please |maybe |also |help me )?(?:to )?"
    r"|i(?:'d| would)? (?:also )?(?:want|need|like) (?:you )?(?:to )?|i'?m (?:trying|looking) to "
    r"|(?:let'?s|we (?:need|have|should|want)(?: to)?|you should|go ahead and|please|help me(?: to)?|time to"
    r"|it'?s time to|let us) )",
    re.IGNORECASE,
)
_REPLY = re.compile(
    r"^(?:continue|go on|yes|no|ok(?:ay)?|do it|proceed|thanks?|thank you|perfect|great|good|looks good|next"
    r"|try again|again|go|y|sure|lgtm"
    r"|nice|cool|keep going|never ?mind|commit|push|/\w+)\b[\w\s.!,]{0,20}$",
    re.IGNORECASE,
)


# --- outcome -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Point:
    """A sentence of a final message, and how much it says about what was done or found out."""

    text: str
    weight: float
    place: int


def outcome_of(turn: Turn) -> str:
    """Return what came of one turn, in one or two sentences of its final message; empty where it brought nothing."""
    return _best_points(_outcome_points(turn) or _commit_points(turn), OUTCOME)


def outcome_of_session(turns: Sequence[Turn]) -> str:
    """Return what came of a session: the best sentences of its messages, and what became of the work."""
    fate = _fate(turns)
    points: list[_Point] = []
    about = stems(title_of(turns))
    worked = [turn for turn in turns if turn.edited or commits_of([turn])] or list(turns)
    for turn in worked:
        for each in (*_outcome_points(turn), *_commit_points(turn)):
            weight = each.weight + TOPIC * min(3, len(stems(each.text) & about))
            points.append(_Point(each.text, weight, turn.number * 1000 + each.place))
    outcome = _best_points(points, SESSION_OUTCOME - len(fate) - 1)
    return " ".join(each for each in (outcome, fate) if each)


def _commit_points(turn: Turn) -> list[_Point]:
    """Return the sentences of the bodies of a turn's commits."""
    found: list[_Point] = []
    for commit in commits_of([turn]):
        for block in blocks(commit.body):
            for sentence in split_sentences(block.text) if block.kind != "heading" else ():
                if 40 <= len(sentence) <= 300 and not _is_talk(sentence) and not _ISSUE.match(sentence):
                    weight = (
                        COMMIT_BODY
                        + 1.0 * bool(_CAUSE.search(sentence))
                        + 0.7 * names_code(sentence)
                        - 0.5 * (block.kind == "item")
                    )
                    found.append(_Point(capitalised(sentence), weight, len(found)))
    return found


def _best_points(points: Sequence[_Point], room: int) -> str:
    """Return the two heaviest points that fit, in their order."""
    taken: list[_Point] = []
    for point in sorted(points, key=lambda each: -each.weight):
        used = sum(len(each.text) + 1 for each in taken)
        known = stems(" ".join(each.text for each in taken))
        if holds(known, stems(point.text), share=SAME):
            continue
        if used + len(point.text) <= room:
            taken.append(point)
        elif not taken:
            taken.append(_Point(cut(point.text, room), point.weight, point.place))
        if len(taken) == 2:
            break
    return " ".join(_ended(each.text) for each in sorted(taken, key=lambda each: each.place))


def _outcome_points(turn: Turn) -> list[_Point]:
    """Return the sentences of a turn's final messages that say what was done, found out or decided."""
    found: list[_Point] = []
    place = 0
    for answer in _answers(turn):
        for block in blocks(answer):
            if block.kind == "heading" or _SKIPPED_HEADING.search(block.heading):
                continue
            for sentence in split_sentences(block.text):
                place += 1
                text = _LEAD.sub("", sentence)
                if weight := _outcome_weight(text, item=block.kind == "item", place=place):
                    found.append(_Point(capitalised(text), weight, place))
    return found


def _outcome_weight(text: str, *, item: bool, place: int) -> float:
    """Return how much a sentence tells about what came of a turn; 0 for what tells nothing."""
    if (
        not 25 <= len(text) <= 400
        or _URL.search(text)
        or _is_talk(text)
        or _TO_THE_USER.match(text)
        or _GIT_TALK.match(text)
        or _STILL_OPEN.match(text)
    ):
        return 0.0
    weight = 2.0 if _DONE.match(text) else 1.0 * bool(_WAS_DONE.match(text))
    weight += 0.8 * bool(_NOW.search(text)) + 1.0 * bool(_CAUSE.search(text))
    words = len(stems(text))
    if not weight or words < 4:
        return 0.0
    weight += 0.8 * names_code(text) + 0.05 * min(words, 20)
    weight -= 0.5 * item + 1.0 * bool(_TRIVIAL.search(text)) + 1.5 * bool(_DANGLING.match(text))
    return max(0.1, weight - 0.02 * min(place, 30))


# What is left to do is no outcome.
_STILL_OPEN = re.compile(r"(?:still (?:open|missing|to do)|open|to-?do|next(?: steps?)?|remaining)\s*:", re.IGNORECASE)


def _fate(turns: Sequence[Turn]) -> str:
    """Return what became of the work, from the session's own commands: committed, pushed, pull request, tests."""
    commits, pulls = commits_of(turns), pull_requests_of(turns)
    parts = []
    if commits:
        last = commits[-1]
        pushed = any(_PUSHES.search(run.command) and not run.failed and run.at >= last.at for run in _runs(turns))
        some = f"Committed {last.hash[:8]}".strip() if len(commits) == 1 else f"{len(commits)} commits"
        where = f" {'to' if pushed else 'on'} {last.branch}" if last.branch and not pulls else ""
        parts.append(f"{some}{(' and pushed' if len(commits) == 1 else ' pushed') if pushed else ''}{where}")
    if pulls:
        parts.append(" and ".join(f"PR #{each.number}" if each.number else "a pull request" for each in pulls[-3:]))
    if tests := _tests_pass(turns):
        parts.append(tests)
    return f"{', '.join(parts)}." if parts else ""


def _tests_pass(turns: Sequence[Turn]) -> str:
    for turn in reversed(turns):
        found = list(_TESTS.finditer(turn.answer))
        if found:
            return f"{found[-1][1]} tests pass"
    return ""


def _answers(turn: Turn) -> list[str]:
    """Return the agent's messages that ended its work in a turn."""
    return [each.text for each in turn.actions if each.kind == "answer"]


def _ended(text: str) -> str:
    return text if text[-1:] in ".!?…" else f"{text}."


_ISSUE = re.compile(r"\b(?:closes|fixes|resolves|fixed|closed)\b.{0,20}#(\d+)", re.IGNORECASE)
_PUSHES = re.compile(r"\bgit(?:\s+-C\s+\S+){0,3}\s+push\b")
_TESTS = re.compile(
    r"\b(\d[\d,]*) (?:[a-z]+ ){0,2}tests?\b[^.\n]{0,20}\b(?:pass|passed|passing|green)\b", re.IGNORECASE
)
OFFER = re.compile(
    r"\b(?:want me to|shall i|should i|would you like|do you want|let me know|say the word|if you(?:'d"
    r"| would) like|if you want|happy to|ready (?:when|to|for)"
    r"|i can (?:also )?(?:add|do|fix|open|push|run)|your call|up to you|feel free|go ahead and|try (?:it"
    r"|reloading|again))\b|\?$",
    re.IGNORECASE,
)
_CHATTER = re.compile(
    r"(?:all (?:changes|tests|checks|done|clean|good|set|pass\w*|green|\d+)|everything|here(?:'s| is| are)"
    r"|done\b|great|good|perfect|yes\b|you'?re right|sure|got it|understood"
    r"|commit(?:ted)? (?:was )?success\w*|successfully|summary|the (?:build|tests?|lint|commit) (?:pass"
    r"|succeed|is|was|are)|build (?:pass|succeed)|tests?\b.{0,30}pass|lint\b|typecheck"
    r"|\d+ (?:files?|tests?)|pr created|pull request created|on `|note:|verified|waiting)",
    re.IGNORECASE,
)
_INTENT = re.compile(
    r"(?:let me|i'?ll|i will|i'?m going to|i need to|now (?:let|i)|next,? i|first,? (?:let|i)|going to|i should)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:(?:great|good|perfect|noted|got it|sure|done|okay|ok|understood|yes|excellent|confirmed|right|clean"
    r"|fixed|summary|in short|tl;dr|result|bottom line|what (?:changed|landed|i did"
    r"|was wrong))\b\s*[—–:.,!-]+\s*)+"
    r"|^(?:i'?ve|i have|we'?ve|i|we) (?:now |also |successfully )?(?=[a-z]+(?:ed|t|n)\b)",
    re.IGNORECASE,
)
_VERBS = (
    "add|fix|remov|mov|renam|replac|updat|chang|implement|creat|delet|refactor|rewr|rewrote|wrote|built"
    "|made|switch|split|extract|introduc|extend|convert|migrat|merg|revert|restor|correct"
    r"|simplif|dedup|wir|expos|disabl|enabl|configur|drop|clean|reduc|improv|document|identif|reproduc|diagnos"
    r"|trac|investigat|address|resolv|log|insert|widen|bump|confirm|found"
)
_DONE = re.compile(
    rf"(?:(?:also|both|now|then) )?(?:(?:{_VERBS})\w*(?:ed|ote|ilt|ade|plit|ound)\b|the (?:fix|change"
    rf"|root cause|cause|problem|issue|bug)\b.{{0,20}}?(?::| is| was)|root cause)",
    re.IGNORECASE,
)
_WAS_DONE = re.compile(r".{0,90}?\b(?:[a-z]{3,}ed|built|rewrote|written|made|split|now)\b", re.IGNORECASE)
_TO_THE_USER = re.compile(
    r"(?:try|restart|reload|run|please|open|check|go|use|see|make sure|note that|you)\b", re.IGNORECASE
)
_GIT_TALK = re.compile(
    r"(?:fixed and |both |all |done and |the )?(?:\w+ )?(?:commits?|committed|amended|pushed|staged"
    r"|todo added)\b.{0,80}$",
    re.IGNORECASE,
)
_TRIVIAL = re.compile(
    r"\b(?:imports?|imported|jsdoc|comments?|changelog|readme|unused|typos?|formatting|prefixed|renumbered"
    r"|dependenc\w+)\b",
    re.IGNORECASE,
)
_NOW = re.compile(r"\b(?:now|no longer|instead of|rather than|so that|falls? back)\b", re.IGNORECASE)
_CAUSE = re.compile(
    r"\b(?:because|root cause|caused by|the (?:reason|cause|culprit|problem|issue|bug) (?:is|was)|turns? out"
    r"|due to|since (?:the|it|`)|which (?:means|made|breaks|broke|caused)|so (?:the|it|that|when|a|an|any"
    r"|every|no|`|[a-z]+ (?:is|are|was|were|never|always|must))"
    r"|only (?:when|if|works|runs|on|in)|never|must|requires?|cannot|can'?t|doesn'?t|isn'?t|won'?t|unless"
    r"|otherwise|without|by default|ignores?|silently|actually|fails? (?:when|if|with|because)|breaks?)\b",
    re.IGNORECASE,
)
_DANGLING = re.compile(
    r"(?:this|that|it|its|it'?s|these|those|they|both|same|such|he|she|then|so|and|but|or|also|which|there"
    r"|here|however|instead|neither|either|the (?:former|latter|first|second|third|other|same|rest)"
    r"|one|two|three|none|all (?:of )?(?:them|these|three|four|five|of)|each|everything|nothing|my|your|i|i'?m"
    r"|i'?ve|we|you|you'?ll|you'?re)\b",
    re.IGNORECASE,
)
_SKIPPED_HEADING = re.compile(
    r"\b(?:next steps?|next up|remaining|still to do|to-?dos?|follow[- ]?ups?|deferred|out of scope"
    r"|not (?:done|included)|options?|alternatives?|open questions?|pending|proposal|proposed|plan"
    r"|recommend\w*|verification|how to (?:test|verify)|manual)\b",
    re.IGNORECASE,
)


# --- learned -------------------------------------------------------------------------------------------------------


def learned_from(turns: Sequence[Turn], *, most: int = LEARNED) -> tuple[str, ...]:
    """Return the passages that state a cause, a constraint or how something works, and name the code they are about."""
    return tuple(text for text, _ in learned_with_turns(turns, most=most))


def learned_with_turns(turns: Sequence[Turn], *, most: int = LEARNED) -> tuple[tuple[str, Turn], ...]:
    """Return what `learned_from` returns, each passage with the turn that it comes from."""
    about, outcome = stems(title_of(turns)), stems(outcome_of_session(turns))
    found: list[tuple[_Point, frozenset[str], Turn]] = []
    for turn in turns:
        bodies = [*(each.body for each in commits_of([turn])), *(each.body for each in pull_requests_of([turn]))]
        for text in (*_answers(turn), *bodies):
            # What was written to be read later, by people who were not there, is clearer than what is told at once.
            more = WRITTEN_FOR_LATER if text in bodies else 0.0
            for fact, weight in _facts(text):
                words = stems(fact)
                bonus = more + TOPIC * min(3, len(words & about))
                found.append((_Point(fact, weight + bonus, len(found)), words, turn))
    taken: list[tuple[_Point, Turn]] = []
    known, room = outcome, LEARNED_ALL  # what the outcome says is not said again
    for point, words, turn in sorted(found, key=lambda each: (-each[0].weight, -each[0].place)):
        if len(taken) < most and len(point.text) <= room and not holds(known, words, share=SAME):
            taken.append((point, turn))
            known, room = known | words, room - len(point.text)
    return tuple((_ended(point.text), turn) for point, turn in sorted(taken, key=lambda each: each[0].place))


def is_written_down(learned: str, turn: Turn) -> bool:
    """Return whether a passage stands in a commit or a pull request: it was written for others, after the work."""
    bodies = (*(each.body for each in commits_of([turn])), *(each.body for each in pull_requests_of([turn])))
    words = stems(learned)
    return any(holds(stems(sentence.text), words, share=WHOLLY) for body in bodies for sentence in blocks(body))


def _facts(text: str) -> Iterator[tuple[str, float]]:
    """Yield the passages of a message that state a fact, with their weight."""
    for block in blocks(text):
        if block.kind == "heading" or _SKIPPED_HEADING.search(block.heading):
            continue
        parts = split_sentences(block.text)
        for at, sentence in enumerate(parts):
            passage = _standing(parts, at)
            if passage and (weight := _fact_weight(sentence, passage, heading=block.heading)):
                yield capitalised(_LABEL.sub("", _LEAD.sub("", passage))), weight


def _standing(parts: Sequence[str], at: int) -> str:
    """Return the sentence at *at* with what it needs to be understood and has room for; empty where that is missing."""
    sentence = parts[at]
    if _DANGLING.match(sentence):
        before = parts[at - 1] if at else ""
        if not before or _DANGLING.match(before) or _is_talk(before) or len(before) + len(sentence) >= LEARNED_EACH:
            return ""
        sentence = f"{before} {sentence}"
    after = parts[at + 1] if at + 1 < len(parts) else ""
    if after and not _is_talk(after) and len(sentence) + len(after) < LEARNED_EACH:
        sentence = f"{sentence} {after}"
    return sentence if len(sentence) <= LEARNED_EACH else ""


def _is_talk(sentence: str) -> bool:
    """Return whether a sentence is an offer, a question, a guess, an announcement or chatter about the state."""
    return bool(
        sentence.endswith((":", "?"))
        or OFFER.search(sentence)
        or _GUESS.search(sentence)
        or _INTENT.match(sentence)
        or _CHATTER.match(sentence)
    )


def _fact_weight(sentence: str, passage: str, *, heading: str) -> float:
    """Return how surely a sentence states a fact about the code; 0 where it does not."""
    if len(passage) < 60 or _is_talk(sentence) or not names_code(passage):
        return 0.0
    marks = sum(weight for mark, weight in _MARKS if mark.search(sentence))
    if marks < MARKED:
        return 0.0
    names = len(set(_NAMES.findall(passage)))
    root = bool(_ROOT.search(heading))
    return marks + 0.5 * root + 0.15 * min(names, 4) + len(passage) / 150 - 0.4 * bool(_FIRST_PERSON.search(passage))


_GUESS = re.compile(
    r"\b(?:probably|might|maybe|perhaps|likely|possibly|presumably|i think|i believe|i suspect|seems?"
    r"|appears? to|could be|may be"
    r"|should (?:now )?(?:work|be)|almost certainly|not sure|unclear|worth (?:checking|verifying|a look))\b",
    re.IGNORECASE,
)
# What shows that a sentence states a cause, a constraint or a way something works, and how surely (lift over any
# sentence that names code, in sessions whose facts people wrote down).
_MARKS = tuple(
    (re.compile(pattern, re.IGNORECASE), weight)
    for pattern, weight in (
        (
            r"\b(?:root cause|culprit|turns? out|the (?:cause|reason|problem|issue|bug) (?:is|was)|caused by"
            r"|due to|because)\b",
            1.0,
        ),
        (r"\b(?:never|silently|unless|otherwise|without|until)\b", 1.0),
        (
            r"(?:[,;—–-]|^) ?(?:so|hence|therefore|which (?:means|made|breaks?|broke|caused))\b|\bso (?:the|it"
            r"|that|any|every|a|an|`)",
            0.8,
        ),
        (r"\b(?:must|requires?|needs?|has to|have to|cannot|can'?t|doesn'?t|isn'?t|won'?t|don'?t|only)\b", 0.6),
        (r"\b(?:when|if|once|whenever|after|before)\b", 0.5),
        (r"\b(?:now|no longer|instead of|rather than|by default|defaults? to|falls? back|actually|via|not)\b", 0.5),
        (
            r"\b(?:fails?|breaks?|broke|crash\w*|panics?|errors?|wrong|ignores?|ignored|bypass\w*|overrid\w*"
            r"|overwrit\w*|hangs?|blocks)\b",
            0.4,
        ),
        (
            r"\b(?:returns?|runs?|reads?|uses?|calls?|writes?|stores?|renders?|resolves?|treats?|lives? in"
            r"|is set in|derives?|exits?|loads?)\b",
            0.4,
        ),
    )
)
_ROOT = re.compile(
    r"\b(?:root cause|cause|culprit|wrong|gotchas?|caveats?|problem|bugs?|why|findings?|found|hit|how it works)\b",
    re.IGNORECASE,
)
_NAMES = re.compile(r"`[^`]+`|\b\w+\(\)|\b[\w/-]+\.[a-z]{1,4}\b")
_FIRST_PERSON = re.compile(r"\b(?:i|i'?ve|i'?m|my|you|your)\b", re.IGNORECASE)
_LABEL = re.compile(
    r"^(?:root cause|cause|note|important|caveat|gotcha|why|finding|the fix|fix|problem|reason|conclusion"
    r"|bug)(?: found| confirmed)?(?: and fixed)?\s*[:—–-]\s*",
    re.IGNORECASE,
)
