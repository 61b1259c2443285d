"""How sessions ran their checks -> how tests, linters and builds are run here, until another way takes over."""

from __future__ import annotations

from collections.abc import Sequence

from foreword.details import texts
from foreword.distill.commands import command_of
from foreword.learn.findings import Finding, Verdict, uid_of
from foreword.trust import lowest
from foreword.types import Memory

LEAST = 3  # sessions in which it went well
SAYS = {"test": "Tests are run with `{}`", "lint": "Code is checked with `{}`", "build": "It is built with `{}`"}
# What anybody would type first tells nobody anything.
OBVIOUS = frozenset(
    ("pytest", "python -m pytest", "npm test", "npm run test", "npm run build", "npm run lint", "cargo test", "make",
     "cargo build", "cargo check", "cargo run", "go test", "go test ./...", "go build", "go build ./...",
     "go vet ./...", "go run", "ruff check", "ruff check .", "mypy", "mypy .", "tsc", "npx tsc", "eslint", "eslint .",
     "gcc", "g++", "black .", "mvn test")
)  # fmt: skip


def findings(memories: Sequence[Memory], *, project: str) -> tuple[Finding, ...]:
    """The ways to run checks that sessions used and that went well, each with who used another way."""
    sessions = [each for each in memories if each.kind == "summary" and each.session and _checks(each)]
    sessions.sort(key=lambda each: (each.created, each.session))
    shapes = {shape for each in sessions for shape in _checks(each)}
    known = {str(each.detail["command"]) for each in memories if each.kind == "learning" and "command" in each.detail}
    said = [
        each.title
        for each in memories
        if each.status == "active" and each.kind in ("preference", "correction", "project", "learning")
        if "command" not in each.detail
    ]
    wanted = {shape for shape in shapes - OBVIOUS if not any(shape in title for title in said)}
    return tuple(_finding(shape, sessions, project=project) for shape in sorted(wanted | known) if _purpose(shape)[0])


def _finding(shape: str, sessions: Sequence[Memory], *, project: str) -> Finding:
    purpose = _purpose(shape)
    using = [place for place, each in enumerate(sessions) if shape in _checks(each)]
    last = max(using, default=-1)
    verdicts = []
    for place, each in enumerate(sessions):
        others = [other for other in _checks(each) if _purpose(other)[0] == purpose[0]]
        if place in using:
            verdicts.append(Verdict(session=each.session, at=each.created, confirms=True))
        # A project may have two kinds of tests: another program is against it only where this one was not used since.
        elif any(_purpose(other) == purpose or (place > last and purpose[0] != "lint") for other in others):
            verdicts.append(Verdict(session=each.session, at=each.created, confirms=False))
    return Finding(
        uid=uid_of(f"{project}:command", shape),
        title=SAYS.get(purpose[0], "{}").format(shape),
        category="convention",
        verdicts=tuple(verdicts),
        trust=lowest(sessions[place].trust for place in using) if using else "agent",
        least=LEAST,
        detail={"by": "commands", "command": shape},
    )


def _purpose(shape: str) -> tuple[str, str]:
    """What a command is for, and its program; nothing where it is no check."""
    command = command_of(shape)
    return (command.kind, command.program) if command.kind in SAYS else ("", "")


def _checks(memory: Memory) -> tuple[str, ...]:
    return texts(memory.detail, "checks")
