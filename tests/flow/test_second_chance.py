"""A host that may lose what a session begins with: it comes again with the first prompt, once, and within bounds."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from foreword.models import Memory
from foreword.paths import Home
from foreword.projects import resolve
from foreword.store import Store
from foreword.worker.client import Client
from tests.flow.conftest import HookRunner

PROMPT = "why does the checkout transport retry a timeout twice?"
PAYLOADS = Path(__file__).resolve().parents[1] / "payloads" / "cursor"


@pytest.fixture
def filled(home: Home, project: str) -> Home:
    store = Store(home.database, backups=home.backups)
    owner = resolve(project)
    about: dict[str, Any] = {"project": owner.key, "scope": owner.scope, "created": time.time() - 60}
    old = {**about, "created": time.time() - 900 * 86400}
    store.memories.put(
        [
            Memory("preference", "Run the tests with make test", **about),
            Memory("observation", "The checkout HTTPTransport was looked at", **old),  # too old for a start
        ]
    )
    store.close()
    return home


@pytest.fixture
def tell(host: HookRunner, project: str):
    """An event of Cursor; the whole answer, as it stands on stdout."""

    def send(event: str, *, session: str = "c1", **more: Any) -> dict[str, Any]:
        payload = json.loads((PAYLOADS / f"{event}.json").read_text(encoding="utf-8"))["payload"]
        own = {"conversation_id": session, "generation_id": str(time.time_ns()), "workspace_roots": [project]}
        ended = host.tell(event, {**payload, **own, **more}, host="cursor")
        assert (ended.returncode, ended.stderr) == (0, b"")
        return dict(json.loads(ended.stdout)) if ended.stdout else {}

    return send


def triggers(client: Client) -> list[str]:
    return sorted(each["trigger"] for each in client.get("/api/injections")["injections"])


def test_the_first_prompt_brings_the_start_again_and_its_own_block_behind_it(filled: Home, start, tell):
    client = start()
    began = tell("sessionStart")["additional_context"]
    assert "make test" in began
    answer = tell("beforeSubmitPrompt", prompt=PROMPT)
    assert answer["continue"] is True
    again, end, own = answer["additional_context"].partition("--- end foreword ---\n\n")
    assert again + end.rstrip() == began
    assert "HTTPTransport" in own
    assert triggers(client) == ["prompt", "session_start"]  # the ledger counts it once
    assert "additional_context" not in tell("beforeSubmitPrompt", prompt=PROMPT)


def test_a_start_that_was_never_told_is_built_at_the_first_prompt(filled: Home, start, tell):
    client = start()
    text = tell("beforeSubmitPrompt", prompt=PROMPT)["additional_context"]
    assert text.index("make test") < text.index("HTTPTransport")
    assert text.count("--- end foreword ---") == 2
    assert triggers(client) == ["prompt", "session_start"]
    late = tell("sessionStart")["additional_context"]  # it was under way, and arrives behind the prompt
    assert "make test" in late
    assert tell("beforeSubmitPrompt", session="c2", prompt="hello there")["additional_context"].count("make test") == 1


def test_a_transcript_that_shows_the_block_is_believed(filled: Home, start, tell, tmp_path: Path):
    client = start()
    transcript = tmp_path / "transcript.jsonl"
    began = tell("sessionStart")["additional_context"]
    transcript.write_text("x" * 300_000 + json.dumps({"system": began}) + "\n")
    answer = tell("beforeSubmitPrompt", prompt=PROMPT, transcript_path=str(transcript))
    assert "make test" not in answer["additional_context"]
    assert "HTTPTransport" in answer["additional_context"]
    tell("preCompact")
    text = tell("beforeSubmitPrompt", prompt=PROMPT, transcript_path=str(transcript))["additional_context"]
    assert "make test" in text  # a new window: what the transcript tells was before it
    assert triggers(client) == ["prompt", "prompt", "session_start", "session_start"]


def test_without_capture_a_start_that_was_given_is_not_given_again(filled: Home, start, tell):
    filled.config.write_text("capture = false")
    start()
    assert "make test" in tell("beforeSubmitPrompt", prompt="hello there")["additional_context"]
    assert tell("beforeSubmitPrompt", prompt="hello again") == {}


def test_both_blocks_together_stay_within_what_the_host_shows(filled: Home, start, tell, project):
    filled.config.write_text(
        """[layout.session_start]
budget = 6000
[layout.session_start.rules]
limit = 50
[layout.prompt]
budget = 3000
"""
    )
    client = start()
    rules = [("preference", f"Rule {number}: " + "aa bb " * 24) for number in range(60)]
    seen = [("observation", f"checkout transport {number} " + "x" * 30) for number in range(30)]
    memories = [{"kind": kind, "title": title, "project_path": project} for kind, title in (*rules, *seen)]
    client.post("/api/memories", {"memories": memories})
    text = tell("beforeSubmitPrompt", prompt=PROMPT)["additional_context"]
    assert 8_000 < len(text) <= 10_000
    beside = "[observation] " in text.partition("--- end foreword")[2]
    assert triggers(client) == ["prompt"] * beside + ["session_start"]  # what does not fit counts as not given


def test_other_hosts_start_once(filled: Home, start, host: HookRunner, project):
    start()
    fields = {"session_id": "s1", "cwd": project}
    assert "make test" in host.context("SessionStart", {**fields, "source": "startup"})
    assert "make test" not in host.context("UserPromptSubmit", {**fields, "prompt": PROMPT})


# -- what a fork and a resumed session are given ----------------------------------------------------------------------


@pytest.fixture
def claude(host: HookRunner, shared: Path, project: str):
    """A recorded start of Claude Code, of this project."""

    def started(source: str, session: str) -> str:
        name = f"claude.SessionStart.{source}.json"
        stdin = json.loads((shared / "payloads" / name).read_text(encoding="utf-8"))["stdin"]
        return host.context("SessionStart", {**stdin, "session_id": session, "cwd": project})

    return started


def test_a_fork_is_given_everything_for_it_does_not_tell_its_parent(filled: Home, start, claude, project):
    client = start()
    began = claude("startup", "parent")
    assert claude("resume", "parent") == ""  # ages alone are not new
    assert claude("fork", "child") == began
    assert claude("resume", "child") == ""
    assert claude("fork", "child") == ""
    client.post("/api/memories", {"kind": "preference", "title": "No wombats on Friday", "project_path": project})
    for session in ("parent", "child"):
        news = claude("resume", session)
        assert "wombats" in news
        assert "make test" not in news


@pytest.mark.parametrize("source", ["clear", "compact"])
def test_an_emptied_window_is_given_everything_again(filled: Home, start, claude, source):
    start()
    assert claude("startup", "s") == claude(source, "s") != ""
