"""Read facts of the environment from a session's commands: branch, commits, pull request, and how checks are run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from foreword.extract.actions import Action, Turn
from foreword.extract.commands import commands_of, message_of, shape_of
from foreword.extract.outputs import ended_badly

CHECKS = ("test", "lint", "build")
MOST_COMMAND = 4_000  # characters of a command line that are read
MOST_SUBJECT = 140  # characters of a commit's subject


@dataclass(frozen=True)
class Facts:
    """What a session's own commands tell about the repository and how things are run in it."""

    branch: str = ""  # that was worked on last
    default_branch: str = ""
    repository: str = ""  # owner/name, as git or GitHub prints it for this project
    named_repository: str = ""  # owner/name that commands worked with; it may be another project's
    commits: tuple[str, ...] = ()  # subjects, in order
    pull_request: str = ""  # "#41"
    fate: str = ""  # merged, pushed, or empty where nothing tells
    uncommitted: tuple[str, ...] = ()  # files of the project, edited after the last commit that took them
    checks: tuple[str, ...] = ()  # how tests, linters and builds were run and passed, the most frequent first


def facts_of(turns: Sequence[Turn]) -> Facts:
    """Return the facts that the commands of *turns* tell."""
    reader = _Reader()
    for turn in turns:
        for action in turn.actions:
            reader.read(action)
    return reader.facts()


class _Reader:
    """Collects facts from actions in their order."""

    def __init__(self) -> None:
        self.branch = self.default_branch = self.pull_request = self.fate = ""
        self.repositories: dict[str, int] = {}
        self.named_repositories: dict[str, int] = {}
        self.commits: dict[str, None] = {}
        self.uncommitted: dict[str, None] = {}
        self.checks: dict[str, int] = {}

    def read(self, action: Action) -> None:
        if action.act == "edit" and not action.failed:
            for file in action.files:
                if not file.startswith("/"):
                    self.uncommitted[file] = None
        elif action.act == "run":
            self._run(action)

    def facts(self) -> Facts:
        return Facts(
            branch=self.branch,
            default_branch=self.default_branch,
            repository=max(self.repositories, key=self.repositories.__getitem__, default=""),
            named_repository=max(self.named_repositories, key=self.named_repositories.__getitem__, default=""),
            commits=tuple(self.commits),
            pull_request=self.pull_request,
            fate=self.fate,
            uncommitted=tuple(self.uncommitted),
            checks=tuple(sorted(self.checks, key=lambda shape: -self.checks[shape])),
        )

    def _run(self, action: Action) -> None:
        command, output = _ends(action.command), action.output
        if _GIT.search(command):
            self._git(command, output, failed=action.failed is True)
        failed = ended_badly(output) if action.failed is None else action.failed
        if failed is not False:
            return
        for part in commands_of(command):
            if part.kind in CHECKS and part.tells and (shape := shape_of(part)):
                self.checks[shape] = self.checks.get(shape, 0) + 1

    def _git(self, command: str, output: str, *, failed: bool) -> None:
        for found in _COMMITTED.finditer(output):
            self.branch = self.branch if found["branch"].startswith("detached") else found["branch"]
            self._commit(found["subject"], command)
            self.fate = ""
        quiet = not failed and _COMMITS.search(command) and not _COMMITTED.search(output)  # or its output was cut
        if quiet and (subject := message_of(command)):
            self._commit(subject, command)
        if not failed and (switched := _SWITCHED.search(command)):
            self.branch = switched["branch"]
        if on := _ON_BRANCH.search(output):
            self.branch = on["branch"]
        elif "branch --show-current" in command and re.fullmatch(r"[\w./-]+", output.strip()):
            self.branch = output.strip()
        if not failed and not _NOT_FOUND.search(output):  # an agent guesses owners
            self._name_repository(command, output)
        if default := _DEFAULT.search(output):
            self.default_branch = default["branch"]
        if not failed and (pull := _own_pull_request(command, output)):
            self.pull_request = f"#{pull}"
        if not failed and re.search(r"\bgit\b[^\n;|&]*\bpush\b", command):
            self.fate = self.fate or "pushed"
        if not failed and re.search(r"\bgh pr merge\b", command):
            self.fate = "merged"
        if not failed and re.search(
            r"\bgit (?:stash(?! (?:list|show))|checkout (?:-- )?\.|restore \.|reset --hard)", command
        ):
            self.uncommitted.clear()

    def _name_repository(self, command: str, output: str) -> None:
        """Count the repository that git or GitHub prints for this project, else the one that the command names."""
        printed = None
        if not _ELSEWHERE.search(command):
            for asks, prints in _OWN_REPOSITORY:
                printed = printed or (prints.search(output) if asks.search(command) else None)
        found, counts = printed, self.repositories
        if found is None:
            found, counts = _NAMED_REPOSITORY.search(command), self.named_repositories
        if found is not None:
            name = "/".join(part for part in found.groups() if part)
            counts[name] = counts.get(name, 0) + 1

    def _commit(self, subject: str, command: str) -> None:
        self.commits[subject[:MOST_SUBJECT].strip()] = None
        added = [name for found in _ADDED.finditer(command) for name in found["files"].split()]
        named = [name.strip("'\"") for name in added if not name.startswith("-") and name not in (".", ":/")]
        if not named or re.search(r"\bgit add (?:-A|--all|-u|\.)(?:\s|$)|\bcommit\s+-\w*a", command):
            self.uncommitted.clear()
        for file in list(self.uncommitted):
            if any(file == name or file.startswith(name.rstrip("/") + "/") for name in named):
                del self.uncommitted[file]


def _own_pull_request(command: str, output: str) -> str:
    """Return the number of this branch's pull request, where a command opens it or asks for it; else nothing."""
    linked = _PULL_REQUEST.search(output) if _OPENS.search(command) else None
    found = linked or (_NUMBER.search(output[:2_000]) if _ASKS_OWN.search(command) else None)
    return next(filter(None, found.groups())) if found else ""


def _ends(command: str) -> str:
    """Return a command line without the middle of a long one, which is a message or a script."""
    return (
        command if len(command) <= MOST_COMMAND else f"{command[: MOST_COMMAND // 2]}\n{command[-MOST_COMMAND // 2 :]}"
    )


_GIT = re.compile(r"\b(?:git|gh)\b")
_COMMITS = re.compile(r"\bgit\b[^\n;|&]*\bcommit\b")
_COMMITTED = re.compile(
    r"^\[(?P<branch>detached HEAD|[^\s\]]+)(?: \(root-commit\))? [0-9a-f]{7,40}\] (?P<subject>[^\n]+)", re.MULTILINE
)
_SWITCHED = re.compile(
    r"\bgit (?:checkout|switch)(?: -[bBcC]| --create)? (?P<branch>[A-Za-z][\w./-]*)(?=\s*(?:$|[;&|\n]))"
)
_ON_BRANCH = re.compile(r"^On branch (?P<branch>\S+)$", re.MULTILINE)
_DEFAULT = re.compile(
    r"(?:HEAD branch: |origin/HEAD -> origin/|\"defaultBranchRef\":\{\"name\":\")(?P<branch>[\w./-]+)"
)
_NAMED_REPOSITORY = re.compile(
    r"\bgh api (?:-\S+ )*/?repos/([\w.-]+)/([\w.-]+)/|\bgh pr\b[^\n|;]* (?:--repo|-R)[ =]([\w.-]+)/([\w.-]+)"
    r"|\brepository\(owner: ?\"([\w.-]+)\", name: ?\"([\w.-]+)\""
)
_NOT_FOUND = re.compile(r"NOT_FOUND|\bHTTP 404\b|\"Not Found\"|Could not resolve to a|[Rr]epository not found")
_ELSEWHERE = re.compile(r"\bgit -C\b|\bcd +(?:\.\.|~)|(?:--repo|-R)[ =]|\bgit clone\b|\bgh repo clone\b")
_ADDRESS = r"github\.com[:/]([\w.-]+)/([\w-]+(?:\.[\w-]+)*?)(?:\.git)?(?=[/\s\"')]|$)"
# Commands that print where this project is, and how: an address in any other output may be anybody's.
_OWN_REPOSITORY = (
    (re.compile(r"\bgit remote\b"), re.compile(rf"^origin\s+\S*{_ADDRESS}", re.MULTILINE)),
    (re.compile(r"\bgit remote\b|\bgh repo view\b(?! [\w.-]+/)"), re.compile(_ADDRESS)),
    (
        re.compile(r"\bgh repo view\b(?! [\w.-]+/)"),
        re.compile(r"^(?:\{?\"nameWithOwner\": ?\")?([\w.-]+)/([\w.-]+)(?:\"\})?$", re.MULTILINE),
    ),
    (re.compile(r"\bgit (?:push|pull|fetch)\b"), re.compile(rf"^(?:To|From) \S*{_ADDRESS}", re.MULTILINE)),
    (re.compile(r"\bgh pr create\b"), re.compile(r"^https://github\.com/([\w.-]+)/([\w.-]+)/pull/\d+", re.MULTILINE)),
)
_PULL_REQUEST = re.compile(r"/pull/(\d+)\b")
_OPENS = re.compile(r"\bgh pr (?:create|view|edit|ready)\b")
_ASKS_OWN = re.compile(r"\bgh pr (?:list\b[^\n|;]* --head\b|(?:view|checks|status)\b(?! (?:\d|https?:)))")
_NUMBER = re.compile(r"/pull/(\d+)\b|\"number\": ?(\d+)\b|\A\s*(\d{1,6})\s*\Z")
_ADDED = re.compile(r"\bgit add (?P<files>[^\n;&|]+)")
