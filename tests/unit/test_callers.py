"""Which session is behind a call: told, or found where there is one, and never guessed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from foreword.agents import HookInput
from foreword.capture.parse import ParsedHook, project_at
from foreword.errors import BadRequest
from foreword.models import Event
from foreword.store import Store
from foreword.worker.callers import MOST_USES, TURN_SECONDS, Callers
from foreword.worker.projects import ProjectRegistry
from tests.services import Reports
from tests.tables import table


@pytest.fixture
def folder(tmp_path: Path) -> str:
    made = tmp_path / "shop"
    made.mkdir()
    (made / "pyproject.toml").write_text("")
    return str(made)


@pytest.fixture
def callers(store: Store) -> Callers:
    services = Reports(store)
    return Callers(services, ProjectRegistry(services))


def seen(store: Store, folder: str, session: str, *kinds: str, host: str = "claude-code", ago: float = 1.0) -> None:
    project = project_at(folder).key
    for number, kind in enumerate(kinds):
        event = Event(
            key=f"{session} {number}",
            host=host,
            name=kind,
            kind=kind,
            session=session,
            project=project,
            cwd=folder,
            at=time.time() - ago + number / 1000,
            payload={},
        )
        store.events.append([event])


def about_to_use(callers: Callers, id: str, *, session: str, folder: str, inner: bool = False) -> None:
    hook_input = HookInput(session=session, cwd=folder, id=id, inner=inner)
    callers.note_tool_use(ParsedHook(payload={}, input=hook_input, kind="tool_begin", project=None), host="claude-code")


def request_from(folder: str, *, client: str = "claude-code", **more: Any) -> dict[str, Any]:
    return {"cwd": folder, "client": {"name": client, "version": "1"}, **more}


def variable(id: str, host: str = "claude-code") -> dict[str, Any]:
    return {"sessions": [{"host": host, "id": id}]}


def test_the_tool_use_counts_before_everything_else(callers: Callers, store: Store, folder: str):
    seen(store, folder, "live", "session_start", "prompt")
    about_to_use(callers, "toolu_1", session="mine", folder=folder)
    who = callers.resolve(request_from(folder, tool_use="toolu_1", session="told", **variable("named")))
    assert (who.session, who.window, who.host) == ("mine", "mine", "claude-code")


def test_a_session_brings_its_own_project_wherever_the_server_was_started(
    callers: Callers, tmp_path: Path, folder: str
):
    about_to_use(callers, "toolu_1", session="mine", folder=folder)
    assert callers.resolve(request_from(str(tmp_path), tool_use="toolu_1")).project == project_at(folder)


def test_tool_uses_are_kept_in_mind_within_bounds(callers: Callers, folder: str):
    for number in range(MOST_USES + 10):
        about_to_use(callers, f"toolu_{number}", session=str(number), folder=folder)
    assert callers.resolve(request_from(folder, tool_use="toolu_3")).session == ""
    assert callers.resolve(request_from(folder, tool_use=f"toolu_{MOST_USES + 9}")).session == str(MOST_USES + 9)


def test_a_sub_agent_is_known_and_has_another_window(callers: Callers, folder: str):
    about_to_use(callers, "toolu_1", session="mine", folder=folder, inner=True)
    who = callers.resolve(request_from(folder, tool_use="toolu_1"))
    assert (who.session, who.window) == ("mine", "")
    who = callers.resolve(request_from(folder, client="codex-mcp-client", session="c1", inner=True))
    assert (who.session, who.window) == ("c1", "")


def test_a_variable_names_the_session_of_its_own_host_alone(callers: Callers, store: Store, folder: str):
    assert callers.resolve(request_from(folder, **variable("named"))).session == "named"  # no hook need have told of it
    # Codex in a terminal that Claude Code opened inherits its variable.
    assert callers.resolve(request_from(folder, client="codex-mcp-client", **variable("named"))).session == ""
    assert callers.resolve(request_from(folder, client="some-editor", **variable("named"))).session == ""


def test_a_variable_of_a_session_that_has_ended_is_out_of_date(callers: Callers, store: Store, folder: str):
    seen(store, folder, "cleared", "session_start", "prompt", "session_end", ago=60)
    seen(store, folder, "after", "session_start", "prompt")
    assert callers.resolve(request_from(folder, **variable("cleared"))).session == "after"


@table(
    ("kinds", "ago", "found"),
    [
        (("session_start", "prompt"), 1, True),
        (("session_start", "prompt", "tool"), 1, True),
        (("session_start", "prompt", "tool", "stop"), 1, False),
        (("session_start", "prompt", "session_end"), 1, False),
        (("session_start", "prompt"), TURN_SECONDS + 60, False),
        (("session_start", "prompt"), -3600, False),  # a clock that jumped
    ],
)
def test_only_a_session_in_the_middle_of_a_turn_can_be_the_one(
    kinds: tuple[str, ...], ago: float, found: bool, store: Store, folder: str
):
    services = Reports(store)
    callers = Callers(services, ProjectRegistry(services))
    seen(store, folder, "one", *kinds, ago=ago)
    assert callers.resolve(request_from(folder)).session == ("one" if found else "")


def test_of_two_none_is_taken_and_both_hosts_have_their_own(callers: Callers, store: Store, folder: str):
    seen(store, folder, "one", "prompt")
    seen(store, folder, "gem", "prompt", host="gemini")
    assert callers.resolve(request_from(folder)).session == "one"
    assert callers.resolve(request_from(folder, client="gemini-cli-mcp-client")).session == "gem"
    seen(store, folder, "two", "prompt")
    assert callers.resolve(request_from(folder)).session == ""


def test_another_project_has_nothing_to_do_with_it(callers: Callers, store: Store, folder: str, tmp_path: Path):
    seen(store, folder, "one", "prompt")
    other = tmp_path / "other"
    other.mkdir()
    assert callers.resolve(request_from(str(other))).session == ""


def test_without_a_folder_it_says_how_to_name_one(callers: Callers):
    with pytest.raises(BadRequest) as caught:
        callers.resolve(request_from(""))
    assert "FOREWORD_PROJECT" in caught.value.hint


@table("nonsense", [{}, {"client": 3, "cwd": "/"}, {"cwd": "/", "sessions": "x", "tool_use": []}])
def test_nonsense_is_nobody(nonsense: dict[str, Any], callers: Callers):
    assert callers.resolve({"cwd": "/", **nonsense}).session == ""
