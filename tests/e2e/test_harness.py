"""What the end-to-end suite is judged by, without any client: the fake model, requests, places, homes, the verdict."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.clients.fake_model import FakeModel, Say, Use
from tests.clients.install import Installed, Missing, binary, clients, install
from tests.clients.run import CLIENTS, Answer
from tests.clients.versions import VERSIONS
from tests.e2e import homes, places, steps
from tests.e2e.requests import Part, parts_of
from tests.e2e.run import PLANS, Report, Result, ended
from tests.e2e.trial import hooks_that_failed, ours

TOOL = {"name": "look"}
# A request of each dialect: the path, a system prompt, what a hook said, the prompt, and a tool's result.
DIALECTS: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic": (
        "/v1/messages",
        {
            "system": [{"type": "text", "text": "be good"}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hello"}]},
                {"role": "system", "content": "noted"},
                {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "seen"}]}]},
            ],
            "tools": [TOOL],
        },
    ),
    "chat": (
        "/v1/chat/completions",
        {
            "messages": [
                {"role": "system", "content": "be good"},
                {"role": "system", "content": "noted"},
                {"role": "user", "content": "hello"},
                {"role": "tool", "content": "seen"},
            ],
            "tools": [{"type": "function", "function": TOOL}],
        },
    ),
    "responses": (
        "/v1/responses",
        {
            "instructions": "be good",
            "input": [
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "noted"}]},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
                {"type": "function_call", "name": "look", "arguments": "{}"},
                {"type": "function_call_output", "output": "seen"},
            ],
            "tools": [{"type": "function", **TOOL}],
        },
    ),
    "gemini": (
        "/v1beta/models/fake:generateContent",
        {
            "systemInstruction": {"parts": [{"text": "be good"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "<hook_context>noted</hook_context>\n\nhello"}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "seen"}}}]},
            ],
            "tools": [{"functionDeclarations": [TOOL]}],
        },
    ),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_model_follows_its_steps_in_every_dialect(dialect: str) -> None:
    path, body = DIALECTS[dialect]
    with FakeModel([Use("look", {"at": "this"}), Say("I saw it.", read=99_000)]) as model:
        first, second, beyond = (json.dumps(_post(model.url + path, body)) for _ in range(3))
    assert "look" in first
    assert "this" in first
    assert "I saw it." in second
    assert "99000" in second
    assert "I saw it." not in beyond
    assert [each.turn for each in model.requests] == [True] * 3


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_wish_for_a_summary_takes_no_step(dialect: str) -> None:
    path, body = DIALECTS[dialect]
    import_request = json.loads(
        json.dumps(body).replace("hello", "Write a <summary>, please").replace("seen", "<summary>")
    )
    with FakeModel([Say("I saw it.")]) as model:
        assert "<summary>" in json.dumps(_post(model.url + path, import_request))
        assert "I saw it." in json.dumps(_post(model.url + path, body))
    assert [each.compaction for each in model.requests] == [True, False]


def test_a_tool_that_is_not_offered_is_said_so() -> None:
    path, body = DIALECTS["anthropic"]
    with FakeModel([Use("fly")]) as model:
        assert "fly is not offered, only look" in json.dumps(_post(model.url + path, body))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_was_said_is_read_from_every_dialect(dialect: str) -> None:
    parts = parts_of(DIALECTS[dialect][1])
    assert [part.text for part in parts if part.role == "tool"] == ["seen"]
    assert parts[0] == Part("system", 0 if dialect == "chat" else -1, "be good")
    assert any("hello" in part.text and part.role == "user" for part in parts)
    assert any("noted" in part.text for part in parts)


def test_a_text_that_is_not_in_its_place_or_there_twice_is_told() -> None:
    prompt = Part("user", 1, "hello")
    right = [Part("developer", 0, "noted"), prompt]
    assert places.at_start("codex", right, "noted", prompt="hello") == ""
    late = [prompt, Part("developer", 2, "noted")]
    assert "not a developer message before the prompt" in places.at_start("codex", late, "noted", prompt="hello")
    assert places.at_prompt("codex", late, "noted", prompt="hello") == ""
    assert "2 times" in places.at_start("codex", [*right, *late], "noted", prompt="hello")
    assert "0 times" in places.at_start("codex", [prompt], "noted", prompt="hello")


def test_every_client_has_its_places_settings_state_and_tools() -> None:
    hosts = set(VERSIONS)
    for known in (CLIENTS, places.STARTS, places.PROMPTS, homes.OWN, homes.STATE, steps.TOOLS):
        assert set(known) == hosts
    assert {plan.host for plan in PLANS.values()} == hosts


def test_a_block_is_told_from_a_word_about_blocks() -> None:
    about = Part("system", 0, "if no block that begins with `--- foreword:` or `<foreword_context` is there")
    block = Part("system", 1, "--- foreword: notes from earlier sessions ---")
    assert ours([about, block]) == [block]


def test_a_changed_byte_a_right_and_a_lost_file_are_seen_and_the_clients_own_are_not(tmp_path: Path) -> None:
    names = (".codex/config.toml", ".codex/hooks.json", ".codex/gone", ".codex/sessions/1.jsonl", "project/x")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a")
    before = homes.looked_at(tmp_path)
    (tmp_path / ".codex/config.toml").write_text("b")
    (tmp_path / ".codex/hooks.json").chmod(0o600)
    (tmp_path / ".codex/gone").unlink()
    (tmp_path / ".codex/left").mkdir()
    (tmp_path / ".codex/sessions/1.jsonl").write_text("b")
    (tmp_path / "project/x").write_text("b")
    expected = ["changed: .codex/config.toml", "gone: .codex/gone", "changed: .codex/hooks.json", "new: .codex/left/"]
    assert homes.differences(before, homes.looked_at(tmp_path), host="codex") == expected


def test_a_hook_that_failed_is_seen_in_what_a_client_prints() -> None:
    well = {"subtype": "hook_response", "exit_code": 0, "stderr": "", "outcome": "success"}
    assert hooks_that_failed(Answer(json.dumps(well), "", 0, 1.0)) == []
    for wrong in ({"exit_code": 1}, {"stderr": "oh"}, {"outcome": "cancelled"}):
        assert hooks_that_failed(Answer(json.dumps({**well, **wrong}), "", 0, 1.0))
    assert hooks_that_failed(Answer("", "SessionStart hook failed: exit 1", 0, 1.0))


def test_clients_lie_where_the_environment_says_else_in_the_cache(tmp_path: Path) -> None:
    assert clients({"FOREWORD_CLIENTS": "/c", "HOME": "/h"}) == Path("/c")
    assert clients({"XDG_CACHE_HOME": "/x", "HOME": "/h"}) == Path("/x/foreword/clients")
    assert clients({"HOME": "/h"}) == Path("/h/.cache/foreword/clients")


def test_what_is_installed_is_used_again_and_without_npm_it_is_said_so(tmp_path: Path) -> None:
    there = binary(VERSIONS["codex"], tmp_path)
    there.parent.mkdir(parents=True)
    there.write_text("")
    nothing = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    found = install(["codex", "gemini"], folder=tmp_path, environ=nothing)
    assert found[0] == Installed("codex", there)
    assert isinstance(found[1], Missing)
    assert not found[1].served


@pytest.mark.parametrize(
    ("outcomes", "served", "required", "code"),
    [
        (["ok"], None, False, 0),
        (["cannot"], None, True, 0),
        (["FAILED", "ok"], None, True, 0),  # both are told
        (["FAILED", "FAILED"], None, False, 1),
        (["ok"], True, False, 1),  # npm has it, and it did not run
        (["ok"], False, False, 0),  # told loudly
        (["ok"], False, True, 1),
    ],
)
def test_the_verdict(
    outcomes: list[str], served: bool | None, required: bool, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Report([Result("codex", "install", how, "", 1.0, run) for run, how in enumerate(outcomes, start=1)])
    found = [Installed("codex", Path("/codex"))]
    missing = [] if served is None else [Missing("gemini", "no network", served=served)]
    assert ended(report, [*found, *missing], took=1.0, required=required) == code
    out = capsys.readouterr().out
    assert "ran, in 1 s: @openai/codex@0.166.0" in out
    assert ("DID NOT RUN: @google/gemini-cli@0.61.0" in out) == bool(missing)
    assert out.count(" FAILED ") == outcomes.count("FAILED")
    assert ("passed when it was repeated" in out) == (outcomes == ["FAILED", "ok"])


def test_the_page_names_every_client_and_every_step() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "testing.md").read_text()
    for pinned in VERSIONS.values():
        assert f"`{pinned.spec}`" in page
    for plan in PLANS.values():
        for step in plan.steps:
            assert f"| {step} |" in page or step.removeprefix("worker ") in page


def _post(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)
