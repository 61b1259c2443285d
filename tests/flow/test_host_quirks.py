"""What hosts do besides what they promise, by what they were recorded to send: nobody is answered who did not ask."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from foreword.agents import AGENTS, find
from foreword.capture.parse import capture_event
from foreword.capture.payload import HookCall
from foreword.config import load
from foreword.hook import build, offline
from foreword.models import TOOL_BEGIN, Memory
from foreword.paths import Home
from foreword.projects import resolve
from foreword.store import Store
from foreword.worker.app import App
from tests.flow.conftest import PATIENT
from tests.recorded import Recorded, recorded
from tests.scratch import scratch_home

RECORDED = {each.name: each for each in recorded()}
# Claude's own list of its events (2.1.325); those with a context that we neither ask for nor answer are among them.
CLAUDES = (
    "PreToolUse PostToolUse PostToolUseFailure PostToolBatch Notification UserPromptSubmit UserPromptExpansion "
    "SessionStart SessionEnd Stop StopFailure SubagentStart SubagentStop PreCompact PostCompact PreModelSwitch "
    "PostModelSwitch PermissionRequest PermissionDenied Setup TeammateIdle TaskCreated TaskCompleted Elicitation "
    "ElicitationResult ConfigChange WorktreeCreate WorktreeRemove InstructionsLoaded CwdChanged FileChanged "
    "DirectoryAdded MessageDisplay"
)


class Answering:
    """Answers calls with the keeper of a worker, or as a hook does without one; a second goes by with each."""

    def __init__(self, home: Home, *, worker: bool) -> None:
        self.home, self.app = home, App(home) if worker else None
        self.config = build.config(home, load(home, PATIENT).settings, worker=[])
        self.now = time.time()

    def keep(self, folder: str, title: str) -> None:
        """Something that the project of *folder* knows from now on."""
        self.now += 1
        owner = resolve(folder)
        about = {"project": owner.key, "scope": owner.scope, "created": self.now, "confirmed": self.now}
        store = self.app.store if self.app else Store(self.home.database, backups=self.home.backups)
        why = {"why": "the bank's gateway drops the first call"}
        store.memories.put([Memory(kind="decision", title=title, detail=why, **about)])
        if not self.app:
            store.close()

    def __call__(self, call: Recorded) -> bytes:
        self.now += 1
        if self.app:
            return self.app.hooks.answer(HookCall(host=call.host, event=call.event, at=self.now, raw=call.raw))
        response = (call.host, call.event, self.now, call.raw, -1, len(call.raw))
        return offline.answer(self.config, response, until=time.monotonic() + 5, why="")


@pytest.fixture(scope="module", params=["worker", "away"])
def answering(request: pytest.FixtureRequest) -> Iterator[Answering]:
    """One home for all: to write its hook takes a second. Tests have projects and sessions of their own."""
    with scratch_home() as home:
        made = Answering(home, worker=request.param == "worker")
        yield made
        if made.app:
            made.app.close()


@pytest.fixture
def answer(answering: Answering, project: str) -> Answering:
    """With a project that knows of its checkout transport."""
    answering.keep(project, "The checkout transport retries twice (#4107)")
    return answering


def shared(name: str, *, folder: str, session: str = "", **changes: Any) -> Recorded:
    """A recorded call; where the shared ones are not beside the checkout, the test is passed over."""
    if name not in RECORDED:
        pytest.skip(f"no samples: {name} is not beside this checkout")
    call = RECORDED[name].placed(folder=folder, session=session or f"of-{folder.replace('/', '-')}")
    kept = {field: each for field, each in {**call.payload, **changes}.items() if each is not None}
    return Recorded(call.host, call.event, kept, call.name)


def kind_of(call: Recorded, *, event: str = "") -> str:
    """What a call is kept as; "" where it is not kept."""
    found = capture_event(HookCall(call.host, event or call.event, 1.0, call.raw), text_cap=1000)
    return found.event.kind if found.wanted else ""


# ---- Gemini


@pytest.mark.parametrize("name", ["gemini.BeforeAgent", "gemini/BeforeAgent"])
def test_what_gemini_puts_before_the_first_prompt_is_nobodys_words(answer, project, name):
    call = shared(name, folder=project)
    block = "&lt;b&gt; --- foreword: notes ---\n- use the zeppelin\n--- end foreword ---"
    output = call.payload["prompt"].rpartition("</hook_context>")[2].lstrip()
    call = replace_prompt(call, f"<hook_context>{block}</hook_context>\n\n{output}")
    result = find("gemini").parse(call.payload)
    assert result.prompt == output
    kept = capture_event(HookCall(call.host, call.event, 1.0, call.raw), text_cap=9999).event.payload["prompt"]
    assert "zeppelin" not in kept
    assert output in kept
    assert b"transport" in answer(call)


def test_what_gemini_puts_before_the_first_prompt_is_not_searched_for(answer, project):
    call = shared("gemini/BeforeAgent", folder=project)
    assert answer(replace_prompt(call, "<hook_context>the checkout transport</hook_context>\n\nhello")) == b""
    assert answer(replace_prompt(call, "<hook_context>the checkout transport was cut off he")) == b""
    response = replace_prompt(
        call, "<hook_context>x</hook_context>\n\nwhat is </hook_context> in the checkout transport?"
    )
    assert find("gemini").parse(response.payload).prompt.startswith("what is </hook_context>")


def replace_prompt(call: Recorded, prompt: str) -> Recorded:
    return Recorded(call.host, call.event, {**call.payload, "prompt": prompt}, call.name)


# ---- Claude


@pytest.mark.parametrize("name", ["claude-interactive.SubagentStop", "claude.SubagentStop", "claude-code/SubagentStop"])
def test_a_sub_agent_is_left_out_and_compactions_own_too(answer, project, name):
    call = shared(name, folder=project)
    assert kind_of(call) == ""
    assert answer(call) == b""
    without_id = Recorded(call.host, call.event, {**call.payload, "agent_type": ""}, call.name)
    del without_id.payload["agent_id"]
    assert kind_of(without_id) == ""


def test_only_a_start_and_a_prompt_are_answered_whatever_claude_tells(answer, project):
    """Every event, each with fields that could be taken for a prompt's or a start's."""
    answered = []
    for event in CLAUDES.split():
        call = tempting("claude-code", event, project)
        answered += [event] if answer(call) else []
        known = find("claude-code").events.get(event, "other")
        passing = event.startswith("Subagent") or known == TOOL_BEGIN  # told, and not kept
        assert kind_of(call) == ("" if passing else known)
    assert answered == ["UserPromptSubmit", "SessionStart"]


def tempting(host: str, event: str, folder: str) -> Recorded:
    """A call with everything that a prompt or a start could be answered for, in a session of its own."""
    result = {"session_id": f"{folder}-{host}-{event}", "prompt": "the checkout transport, #4107", "source": "startup"}
    return Recorded(host, event, {**result, "cwd": folder, "directory": folder, "hook_event_name": event}, event)


@pytest.mark.parametrize("version", ["2.0.76", "2.1.197"])
def test_old_versions_of_claude_are_read_and_answered(answer, project, version):
    wanted = {"SessionStart.startup": "session_start", "UserPromptSubmit": "prompt", "Stop": "stop"}
    for number, (event, kind) in enumerate({**wanted, "SessionEnd.other": "session_end"}.items()):
        call = shared(f"claude-{version}.{event}", folder=project, session=f"{project}-{number}")
        result = find("claude-code").parse(call.payload)
        assert (result.session, result.cwd) == (f"{project}-{number}", project)
        assert kind_of(call) == kind
        assert bool(answer(call)) is (kind in ("session_start", "prompt"))


def test_what_a_slash_command_expands_to_is_not_answered_again(answer, project):
    """UserPromptExpansion comes behind the prompt itself: we do not register it, and are silent where somebody does."""
    call = shared("claude.UserPromptExpansion", folder=project, prompt="/hey checkout transport, #4107")
    assert answer(call) == b""
    assert kind_of(call) == "other"


@pytest.mark.parametrize(
    ("typed", "topic"),
    [
        ("/compact", False),
        ("/compact keep the checkout transport, #4107", False),
        ("/clear", False),
        ("/foreword:search checkout transport, #4107", False),
        ("/checkout", False),  # a name is no topic, whatever it is called
        ("/fix the checkout transport, #4107", True),
        ("<task-notification>the checkout transport, #4107, is done</task-notification>", False),
    ],
)
def test_a_slash_command_brings_what_its_arguments_are_about(answer, project, typed, topic):
    call = shared("claude-code/UserPromptSubmit", folder=project, prompt=typed)
    assert bool(answer(call)) is topic
    assert kind_of(call) == "prompt"


def test_a_replayed_start_sends_nothing_unless_the_items_differ(answer, project):
    """Claude resumes a session with what it was sent before; ages alone, which are seconds older here, are not new."""
    first = shared("claude.SessionStart.startup", folder=project)
    again = shared("claude.SessionStart.resume", folder=project)
    assert b"retries twice" in answer(first)
    assert answer(again) == b""
    assert answer(shared("claude.SessionStart.fork", folder=project)) == b""
    answer.keep(project, "Refunds are manual")
    new = answer(again)
    assert b"Refunds are manual" in new
    assert b"retries twice" not in new
    assert answer(again) == b""


@pytest.mark.parametrize("source", ["clear", "compact"])
def test_an_emptied_window_is_told_everything_again(answer, project, source):
    assert b"retries twice" in answer(shared("claude.SessionStart.startup", folder=project))
    assert b"retries twice" in answer(shared(f"claude.SessionStart.{source}", folder=project))


# ---- any host


@pytest.mark.parametrize("host", sorted(AGENTS))
def test_a_name_that_is_no_event_of_the_host_is_kept_as_other_and_not_answered(answer, project, host):
    """Another case is another name: a host is registered by its own."""
    own = find(host).events
    for event in {name for each in own for name in (each.lower(), each.upper(), each.swapcase(), f"{each}s")} - {*own}:
        call = tempting(host, event, project)
        assert answer(call) == b""
        assert kind_of(call) == "other"


@pytest.mark.parametrize("name", ["claude-code/UserPromptSubmit", "codex/UserPromptSubmit", "gemini/BeforeAgent"])
def test_a_call_without_a_session_is_answered_and_nothing_is_counted_to_anybody(answer, project, name):
    call = shared(name, folder=project, session_id=None)
    assert find(call.host).parse(call.payload).session == ""
    assert b"transport" in answer(call)
    assert b"transport" in answer(replace_prompt(call, f"{call.payload['prompt']}, again"))


@pytest.mark.parametrize("name", ["claude-code/UserPromptSubmit", "codex/SessionStart", "gemini/BeforeAgent"])
@pytest.mark.parametrize("cwd", [None, "", "relative/path", 7])
def test_a_call_without_a_folder_is_kept_without_a_project_and_not_answered(answer, project, name, cwd):
    call = shared(name, folder=project, cwd=cwd)
    assert answer(call) == b""
    assert kind_of(call) == find(call.host).events[call.event]
    found = capture_event(HookCall(call.host, call.event, 1.0, call.raw), text_cap=1000)
    assert found.event.project == ""


def test_hooks_that_are_wired_twice_are_answered_once(answer, project):
    """As by a plugin and by settings: Claude runs both, at once, and would show what both say."""
    if not answer.app:
        return  # hooks without a worker know nothing of each other
    call = shared("claude.SessionStart.startup", folder=project, session="wired-twice")
    response = [HookCall(call.host, call.event, answer.now + late, call.raw) for late in (0.0, 0.05, 60.0)]
    first, echo, later = map(answer.app.hooks.answer, response)
    assert b"retries twice" in first
    assert echo == b""
    assert b"retries twice" in later
