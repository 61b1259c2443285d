"""A real worker and real hooks: what a session was given is judged by what it did, once, whoever was away meanwhile."""

from __future__ import annotations

import time
from typing import Any

import pytest
from typer.testing import CliRunner

from foreword.cli.main import app
from foreword.client import Client
from foreword.paths import Home
from foreword.projects import resolve
from foreword.store.sqlite import Store
from foreword.types import Memory
from tests.flow.conftest import Host, end_worker, wait_for

PROMPT = "why does the checkout transport time out for guests?"
NAMES = ("used", "ignored", "rule", "worded")


@pytest.fixture
def ids(home: Home, project: str) -> dict[str, str]:
    """A store with four memories about one thing; closed."""
    store = Store(home.database, backups=home.backups)
    owner = resolve(project)
    about: dict[str, Any] = {"project": owner.key, "scope": owner.scope, "created": time.time() - 60}
    kept = store.keep(
        [
            Memory("failure", "Checkout transport timed out for guests", files=("shop/bank.py",), **about),
            Memory("failure", "Guests saw the checkout transport time out", files=("shop/mail.py",), **about),
            Memory("preference", "Checkout transport of guests is tested with `make sandbox-bank`", **about),
            Memory(
                "decision",
                "Guests share one checkout transport",
                body="Pooling sockets exhausted the acquirer's quota in December.",
                **about,
            ),
        ]
    )
    store.close()
    return dict(zip(NAMES, (each.id for each in kept), strict=True))


class Agent:
    """A session of Claude Code: what its hooks are told, in their order."""

    def __init__(self, host: Host, project: str, *, session: str = "s1") -> None:
        self.host, self.project, self.session = host, project, session
        self.turn = 0

    def tell(self, event: str, **more: Any) -> str:
        self.turn += 1
        told = {"session_id": self.session, "cwd": self.project, "hook_event_name": event, **more}
        return self.host.context(event, told)

    def asks(self, prompt: str = PROMPT) -> str:
        return self.tell("UserPromptSubmit", prompt=prompt, prompt_id=f"p{self.turn}")

    def reads(self, file: str) -> None:
        self.tell(
            "PostToolUse",
            tool_name="Read",
            tool_use_id=f"t{self.turn}",
            tool_input={"file_path": f"{self.project}/{file}"},
            tool_response={"type": "text", "file": {"content": "pass"}},
        )

    def answers(self, text: str = "Done.") -> None:
        self.tell("Stop", last_assistant_message=text)

    def ends(self) -> None:
        self.tell("SessionEnd", reason="exit")


@pytest.fixture
def agent(host: Host, project: str) -> Agent:
    return Agent(host, project)


def told(client: Client, ids: dict[str, str], *, session: str = "s1") -> dict[str, tuple[Any, str]]:
    names = {id: name for name, id in ids.items()}
    found = client.get("/api/injections", session_id=session)["injections"]
    return {names[item["memory"]]: (item["used"], item["how"]) for each in found for item in each["items"]}


def counts(client: Client, ids: dict[str, str]) -> dict[str, tuple[int, int]]:
    got = {name: client.get(f"/api/memories/{id}", explain=1)["memory"] for name, id in ids.items()}
    return {name: (memory["used"], memory["ignored"]) for name, memory in got.items()}


JUDGED = {"used": (True, "file"), "ignored": (False, ""), "rule": (None, "untold"), "worded": (True, "words")}
SAID = "In December the acquirer blocked us: too many sockets were pooled, and the quota was gone."


def test_what_a_session_did_tells_what_it_used_and_what_it_did_not(ids, agent, start, home, project, monkeypatch):
    client = start()
    shown = agent.asks()
    assert all(id in shown for id in ids.values())
    assert set(told(client, ids).values()) == {(None, "")}
    agent.reads("shop/bank.py")
    agent.answers(SAID)
    wait_for(lambda: told(client, ids)["used"] == (True, "file"))
    assert told(client, ids) == {
        "used": (True, "file"),
        "worded": (True, "words"),
        "ignored": (None, ""),
        "rule": (None, ""),
    }
    agent.ends()
    wait_for(lambda: told(client, ids) == JUDGED)
    assert counts(client, ids) == {"used": (1, 0), "ignored": (0, 1), "rule": (0, 0), "worded": (1, 0)}

    about = client.get(f"/api/memories/{ids['used']}", explain=1)
    assert about["use"] == {"shown": 1, "used": 1, "ignored": 0}
    assert (about["shown"][0]["used"], about["shown"][0]["how"]) == (True, "file")
    assert about["why"]["reinforcement"] > 1
    lately = client.get("/api/use", project_path=project)
    assert {name: lately[name] for name in ("shown", "used", "ignored", "days")} == {
        "shown": 4,
        "used": 2,
        "ignored": 1,
        "days": 7,
    }

    monkeypatch.chdir(project)

    def says(*words: str) -> str:
        ended = CliRunner().invoke(app, list(words))
        assert ended.exit_code == 0, ended.output
        return ended.output

    explained = says("explain")
    for line in ("used: a file of it was read or edited", "not used", "cannot tell whether it was used", "other words"):
        assert line in explained
    assert "shown 1x: used 0x, not used 1x, not judged 0x" in says("explain", ids["ignored"])
    assert "2 of 4 shown in 7 days, 1 not used, 1 not judged" in says("status")


def test_the_used_one_comes_before_an_equal_one_that_was_ignored(ids, agent, host, start, project):
    client = start()
    before = [each["id"] for each in client.get("/api/search", q=PROMPT, project_path=project)["results"]]
    agent.asks()
    agent.reads("shop/mail.py" if before.index(ids["used"]) < before.index(ids["ignored"]) else "shop/bank.py")
    agent.answers()
    agent.ends()
    wait_for(lambda: {used for used, _ in told(client, ids).values()} >= {True, False})
    after = [each["id"] for each in client.get("/api/search", q=PROMPT, project_path=project)["results"]]
    pair = {ids["used"], ids["ignored"]}
    assert [id for id in after if id in pair] == [id for id in before if id in pair][::-1]
    shown = Agent(host, project, session="s2").asks()
    assert sorted(pair, key=shown.index) == [id for id in after if id in pair]


def test_a_session_that_only_quotes_us_used_nothing(ids, agent, start):
    client = start()
    shown = agent.asks()
    body = "Pooling sockets exhausted the acquirer's quota in December."
    agent.answers(f"My notes say:\n> {shown}\nand: {body}")
    agent.ends()
    wait_for(lambda: (None, "") not in told(client, ids).values())
    assert not any(used for used, _ in told(client, ids).values())
    assert set(counts(client, ids).values()) == {(0, 0)}


def test_a_worker_that_dies_in_the_middle_costs_no_verdict_and_counts_nothing_twice(ids, agent, start, home):
    start()
    agent.asks()
    agent.reads("shop/bank.py")
    agent.answers()
    end_worker(home)
    client = start()
    client.get("/api/sessions/s1")  # whoever asks for a session does not wait until it fell silent
    wait_for(lambda: told(client, ids)["used"] == (True, "file"))
    end_worker(home)
    client = start()
    agent.answers(SAID)
    agent.ends()
    wait_for(lambda: told(client, ids) == JUDGED)
    end_worker(home)
    client = start()
    agent.tell("SessionStart", source="resume")
    agent.answers("And on it goes.")
    wait_for(lambda: client.get("/api/sessions/s1")["session"]["events"] >= 7)
    assert counts(client, ids) == {"used": (1, 0), "ignored": (0, 1), "rule": (0, 0), "worded": (1, 0)}


def test_what_a_hook_gave_itself_is_judged_when_the_spool_was_taken_in(ids, agent, host, start):
    host.write_hook()
    shown = agent.asks()
    assert all(id in shown for id in ids.values())
    agent.reads("shop/bank.py")
    agent.answers(SAID)
    agent.ends()
    client = start()
    wait_for(lambda: told(client, ids) == JUDGED)
    assert client.get("/api/injections", session_id="s1")["injections"][0]["away"] is True
    assert counts(client, ids) == {"used": (1, 0), "ignored": (0, 1), "rule": (0, 0), "worded": (1, 0)}


def test_a_hook_without_worker_ranks_by_use_too(ids, agent, host, start, home, project):
    client = start()
    agent.asks()
    agent.reads("shop/mail.py")
    agent.answers()
    agent.ends()
    wait_for(lambda: counts(client, ids)["ignored"] == (1, 0))
    with_worker = Agent(host, project, session="s2").asks()
    end_worker(home)
    host.write_hook()
    alone = Agent(host, project, session="s3").asks()
    pair = {ids["used"], ids["ignored"]}
    assert sorted(pair, key=alone.index) == sorted(pair, key=with_worker.index) == [ids["ignored"], ids["used"]]
