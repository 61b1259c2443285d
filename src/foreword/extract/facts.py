"""Read what a session's commands tell: commits, pull requests, branch, what is not committed, how checks are run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from foreword.extract.actions import Action, Turn
from foreword.extract.commands import commands_of, shape_of
from foreword.extract.outputs import ended_badly

CHECKS = ("test", "lint", "build")
MOST_SUBJECT = 140  # characters of a commit's subject


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
    body: str = field(default="", repr=False)
    at: float = 0.0


def runs_in(turns: Sequence[Turn]) -> Iterator[Action]:
    """Return the commands of these turns, in order."""
    return (run for turn in turns for run in turn.runs)


def facts_of(turns: Sequence[Turn]) -> dict[str, Any]:
    """Return what the commands of *turns* tell about the work and how things are run, as a summary keeps it.

    `repository` is the owner/name that git or GitHub prints for this project; `fate` is pushed or merged; `checks` are
    the tests, linters and builds that passed most often.
    """
    branch = default_branch = pull_request = fate = ""
    repositories, checks = Counter[str](), Counter[str]()
    for run in runs_in(turns):
        command, output = run.command, run.output
        if (ended_badly(output) if run.failed is None else run.failed) is False:
            passed = [each for each in commands_of(command) if each.kind in CHECKS and each.tells]
            checks.update(filter(None, map(shape_of, passed)))
        if not _GIT.search(command):
            continue
        if made := list(_MADE.finditer(output)):
            branch, fate = _branch(made[-1]) or branch, ""
        if on := _ON_BRANCH.search(output):
            branch = on[1]
        elif "branch --show-current" in command and re.fullmatch(r"[\w./-]+", output.strip()):
            branch = output.strip()
        elif not run.failed and (switched := _SWITCHED.search(command)):
            branch = switched[1]
        if default := _DEFAULT.search(output):
            default_branch = default[1]
        if run.failed:
            continue
        repositories.update(_own_repository(command, output))
        pull_request = _own_pull_request(command, output) or pull_request
        if "gh pr merge" in command:
            fate = "merged"
        elif PUSHES.search(command):
            fate = fate or "pushed"
    found = {
        "branch": branch,
        "default_branch": default_branch,
        "repository": "".join(name for name, _ in repositories.most_common(1)),
        "commits": [each.subject[:MOST_SUBJECT] for each in commits_of(turns)][:5],
        "pull_request": pull_request,
        "fate": fate,
        "uncommitted": uncommitted_of(turns)[:12],
        "checks": [shape for shape, _ in checks.most_common(4)],
    }
    return {name: value for name, value in found.items() if value}


def commits_of(turns: Sequence[Turn]) -> tuple[Commit, ...]:
    """Return the commits that were made, in order; of those with one subject the last."""
    found: dict[str, Commit] = {}
    for run in runs_in(turns):
        if not (start := _COMMITS.search(run.command)):
            continue
        message = _TRAILER.sub("", _option(run.command, start.end(), _MESSAGE_OPTION)).strip()
        subject, body = (part.strip() for part in message.partition("\n")[::2])
        made = [Commit(each[3].strip(), "", each[2], _branch(each), run.at) for each in _MADE.finditer(run.output)]
        if not made and subject and is_commit(run):
            made = [Commit(subject, at=run.at)]
        if found and made and "--amend" in run.command:
            made[0] = replace(made[0], body=found.popitem()[1].body)
        for each in made:
            found.pop(each.subject, None)
            found[each.subject] = replace(each, body=body) if body and each.subject == subject else each
    return tuple(found.values())


def is_commit(run: Action) -> bool:
    """Return whether a run made a commit, in whatever way."""
    if not _COMMITS.search(run.command):
        return False
    return bool(_MADE.search(run.output)) or not (run.failed or _REFUSED.search(run.output))


def pull_requests_of(turns: Sequence[Turn]) -> tuple[PullRequest, ...]:
    """Return the pull requests that were opened, in order."""
    found: dict[str, PullRequest] = {}
    for run in runs_in(turns):
        start = _CREATES.search(run.command)
        title = _option(run.command, start.end(), _TITLE_OPTION).strip() if start and not run.failed else ""
        if start and title:
            url = _PULL_URL.search(run.output)
            number = url[1] if url else ""
            found[number or title] = PullRequest(title, number, _option(run.command, start.end(), _BODY_OPTION), run.at)
    return tuple(found.values())


def uncommitted_of(turns: Sequence[Turn]) -> list[str]:
    """Return the files of the project that were edited after the last commit; what it left out is seldom open work."""
    files: dict[str, None] = {}
    for action in (each for turn in turns for each in turn.actions):
        if action.act == "edit" and not action.failed:
            files |= dict.fromkeys(file for file in action.files if file[:1] != "/" and not _PRIVATE.search(file))
        elif action.act == "run" and (is_commit(action) or (_DISCARDS.search(action.command) and not action.failed)):
            files = {}
    return list(files)


def _branch(made: re.Match[str]) -> str:
    return "" if made[1].startswith("detached") else made[1]


def _own_repository(command: str, output: str) -> list[str]:
    """Return the repository that git or GitHub prints for this project; none where it is another folder's."""
    if _ELSEWHERE.search(command):
        return []
    printed = (prints.search(output) for asks, prints in _OWN_REPOSITORY if asks.search(command))
    return ["/".join(found.groups()) for found in printed if found][:1]


def _own_pull_request(command: str, output: str) -> str:
    """Return the number of this branch's pull request, where a command opens it or asks for it; else nothing."""
    linked = _PULL_URL.search(output) if _OPENS.search(command) else None
    found = linked or (_NUMBER.search(output[:2_000]) if _ASKS_OWN.search(command) else None)
    return f"#{next(filter(None, found.groups()))}" if found else ""


def _option(command: str, start: int, option: re.Pattern[str]) -> str:
    """Return what a command's option is set to: a here-document, a quoted string or a word."""
    at = option.search(command, start)
    rest = command[at.end() :] if at else ""
    document = _HEREDOC.search(rest[:120])
    if document and "<<" in rest[:40]:
        text = rest[document.end() :]
        end = re.search(rf"^[ \t]*{re.escape(document[2])}[ \t]*$", text, re.MULTILINE)
        return text[: end.start() if end else None]
    value = _VALUE.match(rest)
    return (value[2] or value[3] or _ESCAPED.sub(r"\1", value[1] or "")) if value else ""


PUSHES = re.compile(r"\bgit(?:\s+-C\s+\S+){0,3}\s+push\b")
MERGES = re.compile(r"\bgh pr merge\s+(?:--?\S+\s+)*#?(\d+)")
_GIT = re.compile(r"\b(?:git|gh|glab|hub)\b")
_COMMITS = re.compile(r"(?:^|[\n;&|(])[ \t]*(?:[\w./-]{1,20} )?git(?:\s+-[Cc]\s+\S+)*\s+commit\b")
_MADE = re.compile(r"^\[(detached HEAD|[^\]\s]+)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
_REFUSED = re.compile(
    r"\bFAILED\b|nothing (?:added )?to commit|no changes added|^(?:error|fatal)\b|hook declined",
    re.MULTILINE | re.IGNORECASE,
)
_DISCARDS = re.compile(
    r"\bgit (?:stash(?! (?:list|show|pop|apply))|checkout (?:-- )?\.(?:\s|$)|restore \.|reset --hard)"
)
_PRIVATE = re.compile(r"(?:^|/)\.env\b")  # never committed
_SWITCHED = re.compile(r"\bgit (?:checkout|switch)(?: -[bBcC]| --create)? ([A-Za-z][\w./-]*)(?=\s*(?:$|[;&|\n]))")
_ON_BRANCH = re.compile(r"^On branch (\S+)$", re.MULTILINE)
_DEFAULT = re.compile(r"(?:HEAD branch: |origin/HEAD -> origin/|\"defaultBranchRef\":\{\"name\":\")([\w./-]+)")
_ELSEWHERE = re.compile(r"\bgit -C\b|\bcd +(?:\.\.|~)|(?:--repo|-R)[ =]|\bgit clone\b|\bgh repo clone\b")
_ADDRESS = r"github\.com[:/]([\w.-]+)/([\w-]+(?:\.[\w-]+)*?)(?:\.git)?(?=[/\s\"')]|$)"
# Commands that print where this project is, and how: an address in any other output may be anybody's.
_OWN_REPOSITORY = tuple(
    (re.compile(asks), re.compile(prints, re.MULTILINE))
    for asks, prints in (
        (r"\bgit remote\b", rf"^origin\s+\S*{_ADDRESS}"),
        (r"\bgit remote\b|\bgh repo view\b(?! [\w.-]+/)", _ADDRESS),
        (r"\bgh repo view\b(?! [\w.-]+/)", r"^(?:\{?\"nameWithOwner\": ?\")?([\w.-]+)/([\w.-]+)(?:\"\})?$"),
        (r"\bgit (?:push|pull|fetch)\b", rf"^(?:To|From) \S*{_ADDRESS}"),
        (r"\bgh pr create\b", r"^https://github\.com/([\w.-]+)/([\w.-]+)/pull/\d+"),
    )
)
_CREATES = re.compile(r"\b(?:gh pr create|glab mr create|hub pull-request)\b")
_PULL_URL = re.compile(r"https?://[^\s\"'<>]+?/(?:pull|pulls|merge_requests)/(\d+)\b")
_OPENS = re.compile(r"\b(?:gh pr (?:create|view|edit|ready)|glab mr create)\b")
_ASKS_OWN = re.compile(r"\bgh pr (?:list\b[^\n|;]* --head\b|(?:view|checks|status)\b(?! (?:\d|https?:)))")
_NUMBER = re.compile(r"/pull/(\d+)\b|\"number\": ?(\d+)\b|\A\s*(\d{1,6})\s*\Z")
_TITLE_OPTION = re.compile(r"(?:--title|-t)[ =]")
_BODY_OPTION = re.compile(r"(?:--body|-b|--description)[ =]")
_MESSAGE_OPTION = re.compile(r"(?:\s-[a-z]*m|\s--message)[ =]?|\s-F\s*-|\s--file=-")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*\n")
_TRAILER = re.compile(r"^(?:co-authored-by|signed-off-by|change-id|reviewed-by)\b.*$|^\S*🤖.*$", re.I | re.M)
_VALUE = re.compile(r"\s*(?:\"((?:[^\"\\]|\\.)*)\"?|'([^']*)'?|([^\s\"']\S*))", re.DOTALL)
_ESCAPED = re.compile(r"\\([\"$`\\])")
