"""What a session's own commands tell: branch, commits, pull request, what is not committed, and how checks are run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from foreword.extract.actions import Action, turns_of
from foreword.extract.facts import facts_of
from foreword.extract.text import is_routine, most_frequent
from tests.growth import assert_linear
from tests.tables import table


def run(command: str, output: str = "", *, failed: bool | None = False) -> Action:
    return Action("tool", 0.0, act="run", tool="Bash", command=command, output=output, failed=failed)


def edit(*files: str, failed: bool = False) -> Action:
    return Action("tool", 0.0, act="edit", tool="Edit", files=files, failed=failed)


def facts(*actions: Action) -> dict[str, Any]:
    timed = [replace(each, at=float(place), id=str(place)) for place, each in enumerate(actions, 1)]
    return facts_of(turns_of([Action("prompt", 0.0, text="go"), *timed]))


COMMITTED = "[waiting-list 1a2b3c4] Offer waiting slots\n 2 files changed, 20 insertions(+)"


@table(
    ("actions", "expected"),
    [
        # Branches: as git says, as was switched to, and not where switching failed.
        ((run("git status", "On branch waiting-list\nnothing to commit"),), {"branch": "waiting-list"}),
        ((run("git branch --show-current", "fix/mail\n"),), {"branch": "fix/mail"}),
        ((run("git checkout -b prices", "Switched to a new branch"),), {"branch": "prices"}),
        ((run("git switch main && git pull", ""),), {"branch": "main"}),
        ((run("git checkout -b prices", "fatal: a branch named 'prices' exists", failed=True),), {"branch": ""}),
        ((run("git checkout -- rooms/a.py"),), {"branch": ""}),
        ((run("git commit -m x", "[detached HEAD 1a2b3c4] Offer it"),), {"branch": "", "commits": ["Offer it"]}),
        # Commits: from the output, else from the message; never one that failed.
        ((run("git commit -m 'x'", COMMITTED),), {"commits": ["Offer waiting slots"], "branch": "waiting-list"}),
        ((run("git commit -q -m 'Round prices'"),), {"commits": ["Round prices"]}),
        ((run("git commit -m 'Round prices'", "husky: lint failed", failed=True),), {"commits": []}),
        # The repository and its default branch.
        ((run("git remote -v", "origin  git@github.com:band/rooms.git (fetch)"),), {"repository": "band/rooms"}),
        ((run("gh repo view", "https://github.com/band/rooms.js/issues"),), {"repository": "band/rooms.js"}),
        ((run("git remote show origin", "  HEAD branch: trunk\n"),), {"default_branch": "trunk"}),
        ((run("gh repo view --json nameWithOwner --jq .nameWithOwner", "band/rooms\n"),), {"repository": "band/rooms"}),
        # An address in some output, and what another folder tells, may be anybody's.
        ((run("git log -1", "Port https://github.com/lib/dates/pull/4"),), {"repository": ""}),
        ((run("git -C ../dates remote -v", "origin  https://github.com/lib/dates (fetch)"),), {"repository": ""}),
        (
            (run("git push", "To github.com:band/rooms.git\n   1a2b3c4..5d6e7f8  main -> main"),),
            {"repository": "band/rooms"},
        ),
        (
            (
                run(
                    "git remote -v", "fork\tgit@github.com:ada/rooms (fetch)\norigin\tgit@github.com:band/rooms (fetch)"
                ),
            ),
            {"repository": "band/rooms"},
        ),
        (
            (
                run("gh repo view --json nameWithOwner", '{"nameWithOwner":"band/rooms"}'),
                run("gh api repos/lib/dates/issues/4", "{}"),
                run("gh api repos/lib/dates/issues/5", "{}"),
            ),
            {"repository": "band/rooms"},
        ),
        # Pull requests: of one's own, not any that is named.
        (
            (run("gh pr list --head prices --json number,title", '[{"number":44,"title":"x"}]'),),
            {"pull_request": "#44"},
        ),
        ((run("gh pr view --json number --jq .number", "44\n"),), {"pull_request": "#44"}),
        ((run("gh pr view 12 --json number", '{"number":12}'),), {"pull_request": ""}),
        ((run("gh pr list --json number", '[{"number":44}]'),), {"pull_request": ""}),
        ((run("gh pr create -t x", "https://github.com/band/rooms/pull/41\n"),), {"pull_request": "#41"}),
        ((run("gh pr list", "https://github.com/band/rooms/pull/12"),), {"pull_request": ""}),
        # What became of it.
        ((run("git push -u origin prices"),), {"fate": "pushed"}),
        ((run("git push"), run("gh pr merge 41 --squash")), {"fate": "merged"}),
        ((run("gh pr merge 41"), run("git commit -m x", COMMITTED)), {"fate": ""}),
        ((run("git push", "! [rejected]", failed=True),), {"fate": ""}),
    ],
)
def test_commands_of_git_tell_branch_commits_pull_request_and_fate(
    actions: tuple[Action, ...], expected: dict[str, object]
) -> None:
    got = facts(*actions)
    assert {name: got.get(name, type(expected[name])()) for name in expected} == expected


@table(
    ("actions", "left"),
    [
        ((edit("a.py", "b/c.py"),), ("a.py", "b/c.py")),
        ((edit("a.py"), run("git add -A && git commit -m x", COMMITTED)), ()),
        ((edit("a.py"), run("git commit -am x", COMMITTED)), ()),
        ((edit("a.py"), run("git commit -m x", COMMITTED), edit("a.py")), ("a.py",)),
        ((edit("a.py"), run("git add -A && git commit -m x", "lint failed", failed=True)), ("a.py",)),
        ((edit("a.py"), run("git stash")), ()),
        ((edit("a.py"), run("git stash list")), ("a.py",)),
        ((edit("a.py"), run("git reset --hard")), ()),
        ((edit("/etc/hosts"), edit("a.py", failed=True)), ()),
    ],
)
def test_what_was_edited_after_the_last_commit_is_not_committed(
    actions: tuple[Action, ...], left: tuple[str, ...]
) -> None:
    assert tuple(facts(*actions).get("uncommitted", ())) == left


def test_checks_are_run_as_they_passed_most_often() -> None:
    got = facts(
        run("uv run pytest -q tests/test_a.py", "3 passed"),
        run("cd app && uv run pytest -x 2>&1", "9 passed"),
        run("make lint"),
        run("yarn unit", "error: no script", failed=True),
        run("make test | tail -3", "1 failed"),  # its end tells nothing
        run("ls && cat a.py"),
    )
    assert got["checks"] == ["uv run pytest", "make lint"]
    # Where a host does not tell how a command ended, the output does.
    assert facts(run("python -m pytest -q", "3 passed in 1s", failed=None))["checks"] == ["python -m pytest"]
    assert facts(run("python -m pytest -q", "1 failed", failed=None)) == {}
    assert facts(run("cargo test", "", failed=None)) == {}
    assert most_frequent(["b", "a", "b", "c"], most=2) == ["b", "a"]


@table(
    "piece",
    ["git ", "git commit -m ", "git add a ", "git push ", "github.com/a/", "[a 1234567] ", "On branch "],
)  # fmt: skip
def test_long_commands_and_outputs_are_read_in_no_time(piece: str) -> None:
    assert_linear(lambda text: facts(run(text, text), run("git status", text), run(f"git {text}")), piece)


@table(
    ("typed", "routine"),
    [
        *(
            (text, True)
            for text in ("commit", "ok, commit it please", "and push", "open a PR", "rebase on main", "restart")
        ),
        *(
            (text, True)
            for text in ("restart", "run the tests", "fix the linter", "bump the version", "add it to CHANGELOG.md")
        ),
        ("why is the mail late?", False),
        ("", False),
        ("commit " * 40, False),  # who says more asks for more
    ],
)
def test_short_prompts_ask_for_a_routine(typed: str, routine: bool) -> None:
    assert is_routine(typed) is routine
