"""Find what a session left open and what it finished, so that a later session can take up the one and close it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from foreword.extract.actions import Action, Todo, todos_after
from foreword.extract.failures import run_of
from foreword.extract.summary import (
    COMMITS,
    MADE,
    OFFER,
    REFUSED,
    Commit,
    commits_of,
    plan_title,
    pull_requests_of,
    request_of,
    title_of,
)
from foreword.extract.text import blocks, capitalised, cut, holds, plain_line, split_sentences, stems
from foreword.extract.turns import Turn

ITEM = 140  # characters of an open item
MOST = 6  # open items of a session; a longer list is a plan, and is in the plan
MOST_DONE = 40
LAST_ANSWERS = 2  # final messages of a session that are read for what is left; older ones were mostly dealt with
FEWEST = 2  # words that tell something; "waiting" alone does not
SAME = 0.75  # of an item's words that another must hold to say it too


@dataclass(frozen=True)
class Tasks:
    """What a session left open, and short texts of what it finished."""

    open: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    todos: tuple[str, ...] = ()  # the unfinished entries of the agent's own list; they are in `open` too


def tasks_of(turns: Sequence[Turn]) -> Tasks:
    """Return what a session left open, the surest first, and what it finished."""
    listed = _todos(turns)
    done = tuple(dict.fromkeys(_finished(turns, listed)))[-MOST_DONE:]
    # A list that nobody touched for turns was given up, not left open.
    recent = any(action.todos for turn in turns[-LAST_ANSWERS:] for action in turn.actions)
    unfinished = [each.text for each in listed if recent and not each.done and each.text.strip()]
    todos = tuple(cut(text, ITEM) for text in unfinished if not any(closes(one, text) for one in done))
    found: list[str] = []
    for item in (
        *todos,
        *_not_reached(turns),
        *_statements(turns),
        *_backlog(turns),
        *_failing(turns),
        *_unfinished_git(turns),
    ):
        text = cut(item, ITEM)
        words = stems(text)
        if len(words) >= FEWEST and not any(holds(stems(other), words, share=SAME) for other in found):
            found.append(text)
        if len(found) == MOST:
            break
    return Tasks(tuple(found), done, todos[:MOST])


def closes(done_text: str, open_item: str) -> bool:
    """Return whether *done_text* says that *open_item* was done."""
    number = _TO_MERGE.match(open_item)
    if number:
        return bool(re.search(rf"\bPR #{number[1]} merged\b", done_text))
    branch = _TO_PUSH.search(open_item)
    if branch:
        return f"pushed {branch[1]}" == done_text.strip()
    if command := _TO_RUN.match(open_item):
        return done_text.removeprefix("ran ").startswith(command[1])
    if check := _TO_PASS.match(open_item):
        return done_text.startswith("passed ") and _program(done_text.removeprefix("passed ")) == _program(check[1])
    return holds(stems(done_text), stems(_STATE.sub("", open_item)), share=SAME)


_TO_MERGE = re.compile(r"PR #(\d+): review and merge")
_TO_PUSH = re.compile(r"Not pushed: \d+ commits? on (\S+)")
_TO_RUN = re.compile(r"Next: `(/[^`]+)`$")
_TO_PASS = re.compile(r"Failed in its last run: `([^`]+)`")
_STATE = re.compile(r"^(?:Changes? not committed|Planned, not implemented|Not finished|Todo|Failed in its last run): ")


def replaces(later_item: str, open_item: str) -> bool:
    """Return whether a later session left the same thing open in another state: more commits of the same branch."""
    later, earlier = _TO_PUSH.search(later_item), _TO_PUSH.search(open_item)
    return later is not None and earlier is not None and later[1] == earlier[1]


def _program(command: str) -> list[str]:
    return command.split()[:2]


# --- done ----------------------------------------------------------------------------------------------------------


def _finished(turns: Sequence[Turn], listed: Sequence[Todo]) -> Iterator[str]:
    """Yield what a session finished: to-dos, commits with their files, pull requests, pushes, merges, its title."""
    yield from (cut(each.text, ITEM) for each in listed if each.done)
    commits = commits_of(turns)
    for commit in commits:
        yield commit.subject
    for pull in pull_requests_of(turns):
        yield pull.title
    for run in _runs(turns):
        if run.failed:
            continue
        for merged in _MERGES.finditer(run.command):
            yield f"PR #{merged[1]} merged"
        if _PUSH.search(run.command) and commits:
            yield f"pushed {_branch_at(commits, run.at)}"
    yield from _carried_out(turns)
    if any(turn.edited for turn in turns):
        if commits:
            left = set(_uncommitted(turns))
            names = [file for turn in turns for file in turn.edited if file not in left]
            yield "Changes committed: " + ", ".join(_base(file) for file in dict.fromkeys(names))
        if plan := plan_title([turn for turn in turns if turn.edited]):
            yield plan
        if title := title_of(turns):
            yield title


def _carried_out(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield the checks that passed and the client's commands that the user ran."""
    for run in map(run_of, _runs(turns)):
        if not run.failed and not run.skipped:
            yield from (f"passed {' '.join(_program(each.text))}" for each in run.commands if each.kind in _CHECKED)
    for turn in turns:
        if (found := _SLASH.match(turn.text.lstrip())) and turn.answer:
            yield f"ran {' '.join(part for part in found.groups() if part)}"


def _branch_at(commits: Sequence[Commit], at: float) -> str:
    return next((each.branch for each in reversed(commits) if each.at <= at and each.branch), commits[-1].branch)


# A command of the client that a person typed, as it is or as Claude Code writes it down.
_SLASH = re.compile(
    r"(/[\w:-]+(?: [^\n]{1,80})?)"
    r"|(?:<command-message>[^<]*</command-message>\s*)?<command-name>(/[^<]+)</command-name>"
    r"(?:\s*<command-message>[^<]*</command-message>)?(?:\s*<command-args>([^<]{1,80})</command-args>)?"
)
_MERGES = re.compile(r"\bgh pr merge\s+(?:--?\S+\s+)*#?(\d+)")
_PUSH = re.compile(r"\bgit(?:\s+-C\s+\S+){0,3}\s+push\b")


# --- open ----------------------------------------------------------------------------------------------------------


def _todos(turns: Sequence[Turn]) -> tuple[Todo, ...]:
    """Return the agent's list as it stands at the end."""
    listed: tuple[Todo, ...] = ()
    for turn in turns:
        for action in turn.actions:
            if action.todos:
                listed = todos_after(listed, action.todos)
    return listed


def _not_reached(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield what was asked for last and not carried out: nothing answered, only announced, planned or blocked."""
    if not turns:
        return
    last = turns[-1]
    planned = _last_plan(turns)
    if planned:
        yield f"Planned, not implemented: {planned}"
        return
    if last.edited and last.answer and not _BROKEN_OFF.search(_last_sentence(last.answer)):
        return
    if not last.answer or _BROKEN_OFF.search(_last_sentence(last.answer)):
        request = request_of(last)
        if request and not _NO_ORDER.match(request):
            yield f"Not finished: {request}"


def _last_plan(turns: Sequence[Turn]) -> str:
    """Return the heading of a plan that the session ended with; empty where the project was edited after it."""
    heading = ""
    for turn in turns:
        for action in turn.actions:
            if action.act == "edit" and not action.failed:
                outside = [edit for edit in action.edits if _PLAN_FILE.search(edit.file)]
                if outside:
                    heading = next((_heading(edit.after or "") for edit in outside if edit.after), "") or heading
                elif any(not file.startswith("/") for file in action.files):
                    heading = ""
            elif action.plan:
                heading = _heading(action.plan) or heading
            elif action.act == "run" and heading and commits_of([turn]):
                heading = ""
    return heading


def _heading(text: str) -> str:
    for line in text.splitlines()[:12]:
        if line.startswith("#"):
            return capitalised(_PLAN_WORD.sub("", plain_line(line.lstrip("# "))).strip(" :—–-"))
    return ""


def _statements(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield what the last messages list or state as left to do."""
    answered = [turn for turn in turns if turn.answer]
    for turn in answered[-LAST_ANSWERS:]:
        later = any(other.edited or commits_of([other]) for other in turns if other.number > turn.number)
        for block in blocks(turn.answer):
            if block.kind == "heading" or block.done or _DONE_WORD.match(block.text):
                continue
            listed = (
                block.kind == "item" and _OPEN_HEADING.search(block.heading) and not _ON_PURPOSE.search(block.heading)
            )
            if block.done is False or listed:
                first = _without_offers(split_sentences(block.text)[0])
                if first and not _SETTLED.search(block.text):
                    yield first
                continue
            for sentence in split_sentences(block.text):
                label = _OPEN_LABEL.match(sentence)
                # Later work has mostly dealt with what a message said; a list of what is still open outlives it.
                if not label and (later or not _LEFT.search(sentence)):
                    continue
                text = _without_offers(_BARE_LABEL.sub("", sentence))
                if not _SETTLED.search(sentence) and not _OF_GIT.search(text):
                    yield capitalised(text)
            command = _READY.search(block.text)
            if command and not later:
                yield f"Next: {command[1]}"


def _without_offers(sentence: str) -> str:
    """Return a sentence without the clauses that offer something; empty where nothing else is in it."""
    if not OFFER.search(sentence):
        return _LEAD.sub("", sentence).rstrip(" :")
    clauses = [each for each in _CLAUSE.split(sentence) if each and not OFFER.search(each)]
    kept = _LEAD.sub("", ", ".join(clauses)).rstrip(" :")
    return kept if clauses and sentence.startswith(clauses[0]) else ""


def _backlog(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield the to-dos that a session wrote into the project's own list and committed."""
    for commit in commits_of(turns):
        found = _TODO_COMMIT.search(commit.subject)
        if found:
            yield f"Todo: {found[1].strip()}"


def _failing(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield the checks that failed in their last run; a commit, or a check of this kind that passes, clears them."""
    failing: dict[str, str] = {}
    for turn in turns[-LAST_ANSWERS:]:  # after turns of other work nobody knows how it stands
        checked: dict[str, str] = {}
        for action in turn.runs:
            run = run_of(action)
            if _is_commit(action):
                failing, checked = {}, {}
            kinds = {each.kind for each in run.commands if each.kind in _CHECKED}
            failing = {kind: text for kind, text in failing.items() if kind not in kinds}
            checked = {kind: text for kind, text in checked.items() if kind not in kinds}
            if run.failed and run.error and run.commands[run.place].kind in _CHECKED:
                command = run.commands[run.place]
                checked[command.kind] = f"Failed in its last run: `{cut(command.text, 60)}`: {cut(run.error, 70)}"
        failing = {**failing, **checked}
    yield from failing.values()


def _unfinished_git(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield the state of the work that a later session has to know: pull requests, commits and edits that wait."""
    commits, runs = commits_of(turns), list(_runs(turns))
    merged = {found[1] for run in runs for found in _MERGES.finditer(run.command)}
    for pull in pull_requests_of(turns):
        left = any(run.at > pull.at and _BACK.search(run.command) and not run.failed for run in runs)
        if pull.number and pull.number not in merged and not left:
            yield f"PR #{pull.number}: review and merge"
    answered = [turn for turn in turns if turn.answer]
    for number in _ON_PULL.findall(answered[-1].answer) if answered else ():
        if number not in merged and any(_PUSH.search(run.command) and not run.failed for run in runs):
            yield f"PR #{number}: review and merge"
    pushed = max((run.at for run in runs if _PUSH.search(run.command) and not run.failed), default=0.0)
    waiting = [each for each in commits if each.at > pushed]
    # Some never push from a session. A push waits where the agent says so, or where a topic branch is nowhere else yet.
    topic = bool(waiting) and "/" in waiting[-1].branch
    if waiting and (topic or any(_PUSH_WAITS.search(turn.answer) for turn in turns if turn.ended > pushed)):
        many = f"{len(waiting)} commits" if len(waiting) > 1 else "1 commit"
        last = waiting[-1]
        where = f" on {last.branch}" if last.branch else ""
        yield f"Not pushed: {many}{where}{f' ({last.hash[:8]})' if last.hash else ''}"
    files = _uncommitted(turns)
    if files:
        shown = ", ".join(_base(file) for file in files[:3])
        more = f" and {len(files) - 3} more" if len(files) > 3 else ""
        yield f"{'Change' if len(files) == 1 else 'Changes'} not committed: {shown}{more}"


def _uncommitted(turns: Sequence[Turn]) -> list[str]:
    """Return the files of the project that were edited after the last commit."""
    files: dict[str, None] = {}
    for turn in turns:
        for action in turn.actions:
            if action.act == "edit" and not action.failed:
                files.update(
                    dict.fromkeys(
                        file for file in action.files if not file.startswith("/") and not _PRIVATE.search(file)
                    )
                )
            elif action.act == "run" and (
                _is_commit(action) or (_DISCARDS.search(action.command) and not action.failed)
            ):
                files = {}
        if _SAYS_COMMITTED.search(turn.answer):
            files = {}
    return list(files)


def _is_commit(action: Action) -> bool:
    """Return whether a run made a commit, in whatever way."""
    if not COMMITS.search(action.command):
        return False
    return bool(MADE.search(action.output)) or not (action.failed or REFUSED.search(action.output))


def _runs(turns: Sequence[Turn]) -> Iterator[Action]:
    return (run for turn in turns for run in turn.runs)


def _base(file: str) -> str:
    return file.rpartition("/")[2]


def _last_sentence(answer: str) -> str:
    found = [sentence for block in blocks(answer)[-1:] for sentence in split_sentences(block.text)]
    return found[-1] if found else ""


_BACK = re.compile(r"\bgit (?:checkout|switch) (?:main|master|develop|trunk)\b")
_PUSH_WAITS = re.compile(
    r"\b(?:not|nothing|n't|never)(?: been| is| was| yet| currently)? pushed|\bunpushed|\bready to push"
    r"|\b(?:want|like) me to (?:force-?)?push|\bshould i push|\bto push\b|`git push\b",
    re.IGNORECASE,
)
_SAYS_COMMITTED = re.compile(
    r"\b(?:commit(?:ted)? (?:all|everything|success\w*|as `)|is (?:now )?committed|working tree (?:is )?clean)\b",
    re.IGNORECASE,
)
# At the head of a heading: "Remaining work", "What is left"; not "Show the remaining items".
_OPEN_HEADING = re.compile(
    r"^(?:\W|\d|the |one |two |three |some |what'?s |what is |things? |work |items? |also |natural |suggested )*"
    r"(?:next steps?|next up|next$|remain(?:s|ing)?|still (?:to do|open|missing)|to-?dos?|follow-?ups?"
    r"|not (?:yet )?(?:done|implemented|covered|finished|included)|deferred|out of scope for now"
    r"|loose ends?|left (?:to do|open|over|for (?:later|you))|left$|outstanding|unfinished|pending"
    r"|before (?:the )?next|you (?:still )?need to|open (?:items?|issues?|points?|tasks?|work))\b",
    re.IGNORECASE,
)
_ON_PURPOSE = re.compile(
    r"\b(?:intentional\w*|deliberate\w*|on purpose|by design|optional\w*|ideas?|suggest\w*|nice to have"
    r"|also available|questions?)\b",
    re.IGNORECASE,
)
_LEFT = re.compile(
    r"\b(?:(?:has|have|had) (?:not|never) (?:yet )?(?:been )?(?:run|ran|tested|verified|covered|merged"
    r"|implemented|wired|exercised)|(?:is|are|was|were)(?: not|n't) (?:yet )?(?:tested|verified|covered"
    r"|implemented|exercised|configured|wired|run|merged|posted|analysed|analyzed)"
    r"|not yet (?:done|implemented|tested|verified|covered|merged|wired|run|committed|deployed|configured)"
    r"|n't (?:been )?\w+ yet|still (?:needs?|fails?|failing|missing|open|broken|to do|pending|has to|have to)"
    r"|left (?:open|as-is|as is|out|undone|unfixed|for later)|remains? (?:to be|open|unfixed|unresolved"
    r"|unanswered|failing|broken)|(?:only|one|two|three) (?:remaining|thing left|open)|flagged but not fixed"
    r"|noted,? (?:but )?not fixed"
    r"|not (?:fixed|addressed|covered|examined) (?:here|in this|yet)|you(?:'ll"
    r"| will)? (?:still )?need to (?:add|set|configure|create|install|enable|deploy)|must (?:still )?be (?:set"
    r"|configured|added)|to complete the setup|never (?:run|ran) in ci|still (?:watching|running|waiting)"
    r"|once (?:the|these|that|those|all) [^.,]{3,60} (?:configured|set|merged|deployed|added|in place))\b",
    re.IGNORECASE,
)
_SETTLED = re.compile(
    r"\b(?:pre-?existing|unrelated|not related|no longer|was (?:already|fixed)|already (?:done|fixed|handled"
    r"|resolved)|as (?:agreed|planned|expected|intended)|by design|on purpose|intentional\w*|optional(?:ly)?"
    r"|nothing (?:left|remains|else)|low[- ]risk"
    r"|not (?:needed|required|necessary)|was wrong|declined|won'?t fix|rejected|but now)\b",
    re.IGNORECASE,
)
_DONE_WORD = re.compile(
    r"(?:done|fixed|completed?|resolved|added|removed|updated|merged|passed|verified)\b", re.IGNORECASE
)
_BROKEN_OFF = re.compile(
    r"^(?:let me|i'?ll|i will|i'?m (?:going to|on|now)|now (?:let me|i|the|for)|next,? (?:let me|i)|waiting"
    r"|i need to|first,? let|i have (?:everything|what) i need)\b|\b(?:waiting (?:on|for)"
    r"|let me (?:now )?(?:\w+ )|in the background|i'?m blocked|need to switch|could ?n[o']t (?:finish"
    r"|complete))\b",
    re.IGNORECASE,
)
_NO_ORDER = re.compile(
    r"(?:why|what|how|where|when|who|which|is|are|was|were|does|do|did|has|have|any|should|got|i'?m|i|it|its"
    r"|it'?s|this|that|these|those|there|there'?s|the|a|an|my|we|you|still|same)\b",
    re.IGNORECASE,
)
_PLAN_FILE = re.compile(r"^/.*/(?:plans?|\.plans?)/[^/]+\.md$")
_PLAN_WORD = re.compile(r"^(?:(?:the )?(?:implementation |fix |refactor(?:ing)? )?plan\s*[:—–-]\s*)", re.IGNORECASE)
_TODO_COMMIT = re.compile(
    r"\b(?:add|capture|record|create|write)\b[^:]{0,20}\bto-?do\b\s*(?:for|to|about|[-:–—])?\s*(.{8,})", re.IGNORECASE
)
_CHECKED = ("test", "lint", "build")
_PRIVATE = re.compile(r"(?:^|/)\.env\b|\.local(?:\.|$)")  # never committed
_DISCARDS = re.compile(
    r"\bgit (?:stash(?! (?:list|show|pop|apply))|checkout (?:-- )?\.(?:\s|$)|restore \.|reset --hard|rebase"
    r"|cherry-pick)"
)
_ON_PULL = re.compile(r"\b(?:on|to) PR #(\d+)")
_OPEN_LABEL = re.compile(
    r"(?:still (?:open|to do|left|pending|missing)|remaining|left (?:to do|open)|open|to-?dos?|next steps?"
    r"|not (?:yet )?done|not covered|follow-?ups?|pending|outstanding)\b(?! (?:saved|added|created|list"
    r"|captured|written|moved|is|was))[^:.—]{0,40}(?::|—)\s+"
    r"|(?=(?:phase|step|task|part|stage|milestone) \S+ (?:is )?next\b)",
    re.IGNORECASE,
)
_BARE_LABEL = re.compile(r"(?:still )?(?:open|to do|pending|remaining|to-?dos?|next steps?)(?::| —)\s+", re.IGNORECASE)
_OF_GIT = re.compile(
    r"\bun(?:committed|pushed|staged)\b|(?:\b(?:not|never|nothing)|n't)\b.{0,25}\b(?:commit|push)", re.IGNORECASE
)  # commands tell it better
_READY = re.compile(r"\bready for (`[^`\n]{3,80}`)", re.IGNORECASE)
_CLAUSE = re.compile(r"(?:,|;| —| –| -|\.) ")
_LEAD = re.compile(r"^(?:note|caveat|however|but|also|one thing|heads up|reminder)\s*[:,—–-]\s*", re.IGNORECASE)
