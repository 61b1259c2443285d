"""Find what a session left open and what it finished, so that a later session can take up the one and close it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, takewhile

from foreword.extract import facts
from foreword.extract.actions import Todo, Turn, todos_after
from foreword.extract.commands import CHECKS, alters, commands_of
from foreword.extract.failures import run_of
from foreword.extract.summary import OFFER, OPEN_LABEL, outcome_of, plan_heading, plan_title, request_of, title_of
from foreword.extract.text import OPEN_TRANSLATED, blocks, capitalised, cut, holds, split_sentences, stems
from foreword.terms import GENERIC

ITEM = 140  # characters of an open item
MOST = 6  # open items of a session; a longer list is a plan, and is in the plan
MOST_DONE = 60
LAST_ANSWERS = 2  # final messages of a session that are read for what is left; older ones were mostly dealt with
FEWEST = 2  # words that tell something; "waiting" alone does not
SAME_SESSION = 0.6  # of an item's words in what a later turn of its own session did
SAME = 0.75  # of an item's words that another must hold to say it too
SAME_PLAN = 0.5  # the same of a plan's heading, which commits hardly ever repeat as a whole ...
TELLING, LONG = 2, 4  # ... if they share so many words that not every project has, and the heading has so many
PLANNED = "Planned, not implemented: "


@dataclass(frozen=True)
class Tasks:
    """What a session left open, and short texts of what it finished."""

    open: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    todos: tuple[str, ...] = ()  # the unfinished entries of the agent's own list; they are in `open` too


def tasks_of(turns: Sequence[Turn]) -> Tasks:
    """Return what a session left open, the surest first, and what it finished."""
    no_list: tuple[Todo, ...] = ()
    listed = reduce(todos_after, (each.todos for turn in turns for each in turn.actions if each.todos), no_list)
    done = tuple(dict.fromkeys(_finished(turns, listed)))[-MOST_DONE:]
    # A list that nobody touched for turns was given up, not left open.
    recent = any(action.todos for turn in turns[-LAST_ANSWERS:] for action in turn.actions)
    unfinished = [each.text for each in listed if recent and not each.done and each.text.strip()]
    todos = tuple(cut(text, ITEM) for text in unfinished if not any(closes(one, text) for one in done))
    found: list[str] = []
    surest_first = (_not_reached, _statements, _backlog, _failing, _unfinished_git)
    for item in chain(todos, *(step(turns) for step in surest_first)):
        text = cut(item, ITEM)
        words = stems(text)
        if len(words) >= FEWEST and not any(holds(stems(other), words, share=SAME) for other in found):
            found.append(text)
        if len(found) == MOST:
            break
    return Tasks(tuple(found), done, todos[:MOST])


def closes(done_text: str, open_item: str) -> bool:
    """Return whether *done_text* says that *open_item* was done."""
    if number := _TO_MERGE.match(open_item):
        return done_text == f"PR #{number[1]} merged"
    if branch := _TO_PUSH.search(open_item):
        return done_text == f"pushed {branch[1]}"
    if check := _TO_PASS.match(open_item):
        return done_text == f"passed {_program(check[1])}"
    done, item = stems(done_text), stems(_STATE.sub("", open_item))
    telling = sum(word not in GENERIC for word in done & item) >= TELLING and len(item) >= LONG
    return holds(done, item, share=SAME_PLAN if open_item.startswith(PLANNED) and telling else SAME)


def replaces(later_item: str, open_item: str) -> bool:
    """Return whether a later session left the same thing open in another state: more commits of the same branch."""
    later, earlier = _TO_PUSH.search(later_item), _TO_PUSH.search(open_item)
    return later is not None and earlier is not None and later[1] == earlier[1]


_TO_MERGE = re.compile(r"PR #(\d+): review and merge")
_TO_PUSH = re.compile(r"Not pushed: \d+ commits? on (\S+)")
_PUSHED_TO = re.compile(r" -> (\S+)$", re.MULTILINE)
_TO_PASS = re.compile(r"Failed in its last run: `([^`]+)`")
_STATE = re.compile(r"^(?:Changes? not committed|Planned, not implemented|Not finished|Todo): ")


def _program(command: str) -> str:
    return " ".join(command.split()[:2])


# --- done ----------------------------------------------------------------------------------------------------------


def _finished(turns: Sequence[Turn], listed: Sequence[Todo]) -> Iterator[str]:
    """Yield what a session finished: to-dos, commits with their files, pull requests, pushes, merges, its title."""
    yield from (cut(each.text, ITEM) for each in listed if each.done)
    commits = facts.commits_of(turns)
    yield from (commit.subject for commit in commits)
    yield from (pull.title for pull in facts.pull_requests_of(turns))
    for action in facts.runs_in(turns):
        run = run_of(action)
        if not run.failed:
            yield from (f"PR #{number} merged" for number in facts.MERGES.findall(action.command))
            if facts.PUSHES.search(action.command):
                earlier = [each.branch for each in commits if each.at <= action.at and each.branch]
                earlier = earlier or [each.branch for each in commits] or _PUSHED_TO.findall(run.text)
                yield from (f"pushed {branch}" for branch in earlier[-1:])
            if not run.skipped:
                yield from (f"passed {_program(each.text)}" for each in run.commands if each.kind in CHECKS)
    if any(turn.edited for turn in turns):
        if commits:
            left = set(facts.uncommitted_of(turns))
            names = [file for turn in turns for file in turn.edited if file not in left]
            yield "Changes committed: " + ", ".join(file.rpartition("/")[2] for file in dict.fromkeys(names))
        yield from filter(None, (plan_title([turn for turn in turns if turn.edited]), title_of(turns)))
    yield from filter(None, map(_work_of, turns))


def _work_of(turn: Turn) -> str:
    """Return what a turn was asked to do and says that it did, in one text; empty where it changed nothing."""
    commits = facts.commits_of([turn])
    ran = any(alters(each) for run in turn.runs if run.failed is False for each in commands_of(run.command))
    if turn.typed.rstrip().endswith("?") or not (turn.edited or commits or ran):
        return ""
    return " ".join((cut(turn.typed, ITEM), outcome_of(turn), *(each.subject for each in commits)))


# --- open ----------------------------------------------------------------------------------------------------------


def _not_reached(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield what was planned and not carried out, and the last request where nobody answered it."""
    if planned := _last_plan(turns):
        yield f"{PLANNED}{planned}"
    elif turns and not turns[-1].answer and not turns[-1].typed.endswith("?") and (request := request_of(turns[-1])):
        yield f"Not finished: {request}"


def _last_plan(turns: Sequence[Turn]) -> str:
    """Return the heading of a plan that the session ended with; empty where the project was edited after it."""
    heading = ""
    for turn in turns:
        for action in turn.actions:
            if action.act == "edit" and not action.failed:
                plans = [edit for edit in action.edits if _PLAN_FILE.search(edit.file)]
                if plans:
                    heading = next((plan_heading(edit.after or "") for edit in plans if edit.after), "") or heading
                elif any(not file.startswith("/") for file in action.files):
                    heading = ""
            elif action.plan:
                heading = plan_heading(action.plan) or heading
            elif heading and action.act == "run" and facts.is_commit(action):
                heading = ""
    return heading


def _statements(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield what the last messages list or state as left to do."""
    messages = [(turn, text) for turn in turns for text in (*turn.summaries, turn.answer) if text]
    for turn, message in messages[-LAST_ANSWERS:]:
        works = [stems(_work_of(other)) for other in turns if other.number > turn.number]
        later = any(other.edited or facts.commits_of([other]) for other in turns if other.number > turn.number)
        for block in blocks(message):
            listed = block.kind == "item" and _OPEN_HEADING.match(block.heading) and not _SETTLED.search(block.heading)
            if block.kind == "heading" or block.done:
                continue
            if block.done is False or listed:
                first = split_sentences(block.text)[0]
                done = any(holds(words, stems(first), share=SAME_SESSION) for words in works)
                if not done and not _SETTLED.search(block.text) and not OFFER.search(first):
                    yield first.rstrip(" :")
                continue
            for sentence in split_sentences(block.text):
                # Later work has mostly dealt with what a message said; a list of what is still open outlives it.
                is_open = _OPEN_LABEL.match(sentence) or (not later and _LEFT.search(sentence))
                kept = takewhile(lambda clause: not OFFER.search(clause), _CLAUSE.split(OPEN_LABEL.sub("", sentence)))
                text = ", ".join(kept).rstrip(" :")
                if is_open and text and not _SETTLED.search(sentence) and not _OF_GIT.search(text):
                    yield capitalised(text)


def _backlog(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield the to-dos that a session wrote into the project's own list and committed."""
    for commit in facts.commits_of(turns):
        if found := _TODO_COMMIT.search(commit.subject):
            yield f"Todo: {found[1].strip()}"


def _failing(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield the checks that failed in their last run; a commit, or a check of this kind that passes, clears them."""
    failing: dict[str, str] = {}
    for action in facts.runs_in(turns[-LAST_ANSWERS:]):  # after turns of other work its state is unknown
        run = run_of(action)
        cleared = CHECKS if facts.is_commit(action) else {each.kind for each in run.commands}
        failing = {kind: text for kind, text in failing.items() if kind not in cleared}
        if run.failed and run.error and run.commands[run.place].kind in CHECKS:
            command = run.commands[run.place]
            failing[command.kind] = f"Failed in its last run: `{cut(command.text, 60)}`: {cut(run.error, 70)}"
    yield from failing.values()


def _unfinished_git(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield the state of the work that a later session has to know: pull requests, commits and edits that wait."""
    commits, runs = facts.commits_of(turns), [run for run in facts.runs_in(turns) if not run.failed]
    pushed = max((run.at for run in runs if facts.PUSHES.search(run.command)), default=0.0)
    merged = {number for run in runs for number in facts.MERGES.findall(run.command)}
    opened = [
        pull.number
        for pull in facts.pull_requests_of(turns)
        if not any(run.at > pull.at and _BACK.search(run.command) for run in runs)
    ]
    answers = [turn.answer for turn in turns if turn.answer]
    opened += _ON_PULL.findall(answers[-1]) if answers and pushed else []
    yield from (f"PR #{number}: review and merge" for number in opened if number and number not in merged)
    waiting = [each for each in commits if each.at > pushed]
    # Some never push from a session. A push waits where the agent says so, or where a topic branch is nowhere else yet.
    topic = bool(waiting) and "/" in waiting[-1].branch
    if waiting and (topic or any(_PUSH_WAITS.search(turn.answer) for turn in turns if turn.ended > pushed)):
        many = f"{len(waiting)} commits" if len(waiting) > 1 else "1 commit"
        last = waiting[-1]
        where = f" on {last.branch}" if last.branch else ""
        yield f"Not pushed: {many}{where}{f' ({last.hash[:8]})' if last.hash else ''}"
    if files := facts.uncommitted_of(turns):
        shown = ", ".join(file.rpartition("/")[2] for file in files[:3])
        more = f" and {len(files) - 3} more" if len(files) > 3 else ""
        yield f"{'Change' if len(files) == 1 else 'Changes'} not committed: {shown}{more}"


_BACK = re.compile(r"\bgit (?:checkout|switch) (?:main|master|develop|trunk)\b")
_ON_PULL = re.compile(r"\b(?:on|to) PR #(\d+)")
_PUSH_WAITS = re.compile(
    r"\b(?:not|nothing|n't|never)(?: been| is| was| yet)? pushed|\bunpushed|\bready to push|\b(?:want|like) me to push",
    re.IGNORECASE,
)
_PLAN_FILE = re.compile(r"^/.*/\.?plans?/[^/]+\.md$")
# At the head of a heading: "Remaining work", "What is left"; not "Show the remaining items".
_OPEN_HEADING = re.compile(
    r"(?:\W|\d|the |some |what'?s |what is |things? |work |items? |also |suggested )*"
    r"(?:next steps?|next up|next$|remain(?:s|ing)?|still (?:to do|open|missing)|to-?dos?|follow-?ups?|deferred"
    r"|not (?:yet )?(?:done|implemented|covered|finished|included)|left (?:to do|open|over|for (?:later|you))|left$"
    r"|loose ends?|outstanding|unfinished|pending|open (?:items?|issues?|points?|tasks?|work)"
    rf"|{OPEN_TRANSLATED})\b",
    re.IGNORECASE,
)
_OPEN_LABEL = re.compile(
    r"(?:still (?:open|to do|left|pending|missing)|remaining|left (?:to do|open)|open|to-?dos?|next steps?"
    rf"|not (?:yet )?done|follow-?ups?|pending|outstanding|{OPEN_TRANSLATED})\b(?! \w+ed\b)[^:.—]{{0,40}}(?::|—)\s+"
    r"|(?=(?:phase|step|task|part|stage|milestone) \S+ (?:is )?next\b)",
    re.IGNORECASE,
)
_LEFT = re.compile(
    r"\b(?:(?:has|have|had|is|are|was|were)(?: not|n't| never) (?:yet )?(?:been )?"
    r"(?:run|tested|verified|covered|merged|implemented|wired|exercised|configured)"
    r"|not yet \w+ed|n't (?:been )?\w+ yet|still (?:needs?|fails?|missing|open|broken|pending|watching|running|waiting)"
    r"|(?:is|are|was|were|be|been) left out"
    r"|left (?:open|as-is|as is|undone|for later)|remains? (?:to be|open|unfixed|unresolved|failing|broken)"
    r"|not (?:fixed|addressed|covered) (?:here|in this|yet)|you(?:'ll| will)? need to (?:add|set|create|install)"
    r"|once (?:the|these|that|those|all) [^.,]{3,60} (?:configured|set|merged|deployed|added|in place))\b",
    re.IGNORECASE,
)
_SETTLED = re.compile(
    r"\b(?:pre-?existing|unrelated|no longer|already (?:done|fixed|handled|resolved)|as (?:agreed|planned|intended)"
    r"|but (?:it )?(?:now )?(?:passes|works)"
    r"|by design|on purpose|intentional\w*|optional(?:ly)?|not (?:needed|required))\b",
    re.IGNORECASE,
)
_TODO_COMMIT = re.compile(
    r"\b(?:add|capture|record)\b[^:]{0,20}\bto-?do\b\s*(?:for|to|[-:–—])?\s*(.{8,})", re.IGNORECASE
)
_CLAUSE = re.compile(r"[,;] | [—–] ")
_OF_GIT = re.compile(
    r"\bun(?:committed|pushed|staged)\b|(?:\b(?:not|never|nothing)|n't)\b.{0,25}\b(?:commit|push)", re.I
)
