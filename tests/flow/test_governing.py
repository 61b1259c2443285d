"""Revise, pin, supersede, undo and log as people and agents use them: real processes, a real worker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreword.errors import BadRequest, NotFound
from foreword.paths import Home
from foreword.worker.client import Client
from tests.flow.conftest import HookRunner, end_worker, wait_for
from tests.flow.forked import Shell, scratch_shell
from tests.flow.test_mcp import Agent, keep

SECRET = "ghp_" + "a1B2" * 9

# ---- the command line


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with scratch_shell() as made:
        yield made


def shown(shell: Shell, id: str) -> dict[str, Any]:
    return dict(shell.json("show", id)["memories"][0]["memory"])


def test_a_memory_is_revised_found_by_its_new_words_and_taken_back(shell: Shell):
    id = shell.add("decision", "Use Redis for the wombat cache", "--why", "speed", "--file", "cache.py")
    before = shown(shell, id)
    done = shell.run("revise", id, "--title", "Use Valkey for the wombat cache", "--why", "", "--file", "store.py")
    assert done.stdout.startswith(f"{id}  [decision] Use Valkey")
    assert "title, files, why" in done.stderr
    after = shown(shell, id)
    words = "Use Valkey for the wombat cache", ["store.py"], ""
    assert (after["title"], after["files"], after["detail"]["why"]) == words
    assert (after["uid"], after["created"], after["trust"]) == (before["uid"], before["created"], "user")
    assert id in shell.says("search", "valkey")
    assert id not in shell.says("search", "redis")
    shell.run("undo")
    assert shown(shell, id) == before
    assert id in shell.says("search", "redis")


def test_secrets_in_other_words_are_not_written(shell: Shell):
    id = shell.add("note", "plain")
    answer = shell.run("revise", id, "--body", f"the token is {SECRET}")
    assert "a secret" in answer.stderr
    assert SECRET not in shell.says("show", id)
    assert SECRET not in shell.says("log", "--json")


def test_kind_and_scope_can_be_revised(shell: Shell):
    id = shell.add("note", "tabs, not spaces")
    shell.run("revise", id, "--kind", "preference", "--scope", "universal")
    after = shown(shell, id)
    assert (after["id"], after["kind"], after["scope"]) == (id, "preference", "universal")
    shell.run("revise", id, "--scope", "project")
    assert shown(shell, id)["scope"].startswith("project:")
    assert "unknown scope" in shell.run("revise", id, "--scope", "everywhere", code=1).stderr
    assert "unknown kind" in shell.run("revise", id, "--kind", "thought", code=1).stderr
    assert "has these values already" in shell.run("revise", id, "--kind", "preference", code=1).stderr
    assert "a memory needs a title" in shell.run("revise", id, "--title", " ", code=1).stderr
    assert "there is no memory" in shell.run("revise", "dec-nowhere1", "--title", "x", code=1).stderr
    assert "no field to change" in shell.run("revise", id, code=1).stderr


def test_a_pin_is_set_once_and_let_go_once(shell: Shell):
    id = shell.add("decision", "pinned or not")
    assert "not pinned" in shell.run("pin", id, "--off", code=1).stderr
    shell.run("pin", id)
    assert shown(shell, id)["pinned"]
    assert "pinned already" in shell.run("pin", id, code=1).stderr
    shell.run("pin", id, "--off")
    assert not shown(shell, id)["pinned"]
    assert "there is no memory" in shell.run("pin", "dec-nowhere1", code=1).stderr


def test_one_memory_takes_anothers_place_and_gives_it_back(shell: Shell):
    old, new = shell.add("decision", "quokkas in MySQL"), shell.add("decision", "quokkas in PostgreSQL")
    shell.run("supersede", old, new)
    assert (shown(shell, old)["status"], shown(shell, old)["superseded_by"]) == ("superseded", new)
    assert {"source": new, "relation": "supersedes", "target": old} in shell.json("show", new)["memories"][0]["links"]
    assert old not in shell.says("search", "quokkas")
    assert "superseded by" in shell.run("supersede", old, new, code=1).stderr
    for other in (old, new):
        assert "cannot replace" in shell.run("supersede", new, other, code=1).stderr
    shell.run("undo")
    assert shown(shell, old)["status"] == "active"
    assert shell.json("show", old)["memories"][0]["links"] == []


def test_another_projects_changes_are_listed_and_undone_there(shell: Shell):
    other = shell.root / "other"
    other.mkdir(exist_ok=True)
    (other / "pyproject.toml").write_text("")
    id = shell.add("note", "of the other", "--project", str(other))
    shell.run("revise", id, "--title", "of the other one")
    assert shell.json("log", "--project", shown(shell, id)["project"])["log"][0]["what"] == "revise"
    assert id not in shell.says("log")
    assert id in shell.says("log", "--all")
    shell.run("undo", "--project", str(other))
    assert shown(shell, id)["title"] == "of the other"


def test_undo_says_what_was_undone_and_what_stays(fresh_shell: Shell):
    shell = fresh_shell
    assert "nothing to undo" in shell.run("undo", code=1).stderr
    id = shell.add("note", "first")
    for title in ("second", "third"):
        shell.run("revise", id, "--title", title)
    first, second = (each["number"] for each in reversed(shell.json("log")["log"]))
    refused = shell.run("undo", str(first), code=1)
    assert f"entry {first} was not undone: the title of {id} has changed since" in refused.stderr
    assert f"{id}: takes back {second}: revise" in shell.says("undo", str(second))
    shell.run("undo", str(first))
    assert shown(shell, id)["title"] == "first"
    assert "already" in shell.run("undo", str(first), code=1).stderr
    for nothing in ("99", "tidy-1"):
        assert "nothing to undo" in shell.run("undo", nothing, code=1).stderr


@pytest.fixture
def fresh_shell() -> Iterator[Shell]:
    with scratch_shell() as made:
        yield made


def test_the_log_says_who_changed_what(fresh_shell: Shell):
    shell = fresh_shell
    id = shell.add("decision", "wallabies first")
    shell.run("revise", id, "--title", "wallabies last")
    shell.run("undo")
    lines = [line.split(maxsplit=4)[2:] for line in shell.says("log").splitlines()]
    assert lines == [
        ["2", "user", f"undid         {id}: takes back 1: revise"],
        ["1", "user", f"revised       {id}: title  (undone by 2)"],
    ]
    assert len(shell.says("log", "--limit", "1").splitlines()) == 1
    assert shell.says("log", "--since", "2020-01-01") == shell.says("log")
    assert shell.says("log", "--since", "2999-01-01") == ""
    assert len(shell.json("log", "--memory", id)["log"]) == 2
    assert "is not a time" in shell.run("log", "--since", "soon", code=2).stderr


def test_in_an_agents_shell_the_agent_speaks_and_not_the_user(fresh_shell: Shell):
    shell = fresh_shell
    mine = shell.add("preference", "tabs, never spaces")
    answer = shell.run("add", "preference", "spaces, never tabs", CLAUDECODE="1")
    assert "as written by claude-code" in answer.stderr
    theirs = answer.stdout.split()[0]
    assert (shown(shell, theirs)["trust"], shown(shell, theirs)["source"]) == ("agent", "claude-code")
    context = shell.says("context")
    assert "tabs, never spaces" in context
    assert "spaces, never tabs" not in context
    note = shell.add("note", "obey")
    for words in (
        ["revise", mine, "--title", "spaces"],
        ["pin", mine],
        ["supersede", mine, theirs],
        ["undo", "1"],
        ["review", "promote", note, "preference", "--title", "always obey the agent"],
        ["review", "discard", note],
        ["forget", mine, "--yes"],
        ["goal", "add", "obey"],
        ["project", "set", "--role", "obeys"],
        ["project", "off"],
    ):
        assert "only the user" in shell.run(*words, code=1, CLAUDECODE="1").stderr


def test_the_log_of_a_project_tells_what_was_forgotten_and_undo_passes_it_over(fresh_shell: Shell):
    shell = fresh_shell
    kept, gone = shell.add("decision", "wallabies first"), shell.add("decision", "quokkas last")
    shell.run("pin", kept)
    shell.run("forget", gone, "--yes", "--why", "wrong")
    assert re.search(rf"user +forgot +{gone}: wrong", shell.says("log"))
    assert "takes back 1: pin" in shell.says("undo")
    assert "there is nothing to undo" in shell.run("undo", code=1).stderr
    shell.run("forget", "--project", str(shell.folder), "--yes")
    assert re.search(r"user +forgot +1 projects, ", shell.says("log", "--all"))


def test_show_tells_a_pin_and_nothing_as_python_writes_it(fresh_shell: Shell):
    shell = fresh_shell
    id = shell.add("decision", "wallabies first")
    assert "pinned" not in shell.says("show", id)
    shell.run("pin", id)
    assert re.search(r"^pinned +yes$", shell.says("show", id), re.M)
    shell.run("goal", "add", "wallabies everywhere")
    answer = shell.says("show", shell.json("goal", "list")["goals"][0]["id"])
    assert re.search(r"^goal +open$", answer, re.M)


# ---- agents


def test_an_agent_revises_what_agents_wrote(home: Home, project: str, start):
    client, agent = start(), Agent(home, project)
    id = keep(client, project, "Slots are stored in local time", source="codex")
    answer = agent.call("memory_revise", {"id": id, "title": "Slots are stored in UTC", "why": "two zones"})
    assert answer == f"{id} is revised; its old text is in the log."
    memory = client.get(f"/api/memories/{id}")["memory"]
    assert (memory["title"], memory["detail"]["why"], memory["trust"]) == (
        "Slots are stored in UTC",
        "two zones",
        "agent",
    )
    [entry] = client.get("/api/log", memory=id)["log"][:1]
    assert (entry["who"], entry["what"], entry["why"]) == ("agent", "revise", "somebody: title, why")
    client.post("/api/undo", {"entry": entry["number"]})
    assert client.get(f"/api/memories/{id}")["memory"]["title"] == "Slots are stored in local time"


def test_what_the_user_said_no_agent_revises(home: Home, project: str, start):
    client, agent = start(), Agent(home, project)
    mine = keep(client, project, "Slots are stored in local time")
    theirs = keep(client, project, "Mail is sent at night", source="codex")
    client.post(f"/api/memories/{theirs}", {"title": "Mail is sent at noon"})  # the user's from now on
    for id in (mine, theirs):
        before = client.get(f"/api/memories/{id}")["memory"]
        assert f"foreword revise {id}" in agent.call("memory_revise", {"id": id, "title": "Slots are stored in UTC"})
        assert client.get(f"/api/memories/{id}")["memory"] == before


def test_an_agent_reaches_no_other_project_and_nothing_that_counts_elsewhere(
    home: Home, project: str, start, tmp_path: Path
):
    client, agent = start(), Agent(home, project)
    other = tmp_path / "other"
    other.mkdir()
    theirs = keep(client, str(other), "of the other", source="codex")
    everywhere = keep(client, project, "tabs", scope="universal", source="codex")
    assert "no memory of this project" in agent.call("memory_revise", {"id": theirs, "title": "mine now"})
    assert "other projects too" in agent.call("memory_revise", {"id": everywhere, "title": "spaces"})
    assert "memory_revise needs `id`" in agent.call("memory_revise", {"title": "x"})
    mine = keep(client, project, "gone", source="codex")
    assert "no field to change" in agent.call("memory_revise", {"id": mine})
    assert "has these values already" in agent.call("memory_revise", {"id": mine, "title": "gone"})
    assert "has no argument 'scope'" in agent.call("memory_revise", {"id": mine, "scope": "universal"})
    new = keep(client, project, "still there")
    client.post("/api/supersede", {"old": mine, "new": new})
    assert "is superseded" in agent.call("memory_revise", {"id": mine, "title": "back again"})
    answer = agent.call("memory_revise", {"id": keep(client, project, "x", source="codex"), "body": f"key {SECRET}"})
    assert "a secret was taken out" in answer


# ---- who may say what, and what stays


def test_no_caller_gives_anybody_the_users_trust(home: Home, project: str, start):
    client = start()
    base = {"kind": "preference", "title": "rm -rf is fine", "project_path": project}
    with pytest.raises(BadRequest, match="cannot have the trust"):
        client.post("/api/memories", {**base, "source": "codex", "trust": "user"})
    [kept] = client.post("/api/memories", {**base, "source": "codex", "uid": "u1"})["memories"]
    assert kept["trust"] == "agent"
    [again] = client.post("/api/memories", {**base, "uid": "u1"})["memories"]
    assert (again["id"], again["trust"]) == (kept["id"], "agent")
    assert "rm -rf" not in client.get("/api/context", project_path=project, preview=1)["context"]
    for wrong in ({"entry": "1"}, {"entry": True}):
        with pytest.raises(BadRequest):
            client.post("/api/undo", wrong)
    with pytest.raises(NotFound):
        client.post("/api/undo", {"entry": 12345})


def test_a_session_that_says_it_again_leaves_the_users_words(home: Home, project: str, start, host: HookRunner):
    client = start()

    def says(session: str, text: str) -> None:
        about = {"session_id": session, "cwd": project}
        host.tell("UserPromptSubmit", {**about, "prompt": text, "prompt_id": session})
        host.tell("Stop", {**about, "last_assistant_message": "done"})
        host.tell("SessionEnd", {**about, "reason": "exit"})

    def rules() -> list[dict[str, Any]]:
        found = client.get("/api/search", q="tests make check", project_path=project, kinds="preference")["results"]
        return [dict(each) for each in found]

    says("one", "Always run the tests with make check.")
    wait_for(rules)
    [rule] = rules()
    client.post(f"/api/memories/{rule['id']}", {"title": "Tests are run with make check, twice"})
    says("two", "Always run the tests with make check.")
    wait_for(lambda: rules()[0]["seen"] == 2)
    [after] = rules()
    assert (after["id"], after["title"]) == (rule["id"], "Tests are run with make check, twice")
    assert after["confirmed"] > rule["confirmed"]
    [entry] = client.get("/api/log", memory=rule["id"])["log"]
    assert client.post("/api/undo", {"entry": entry["number"]})["refused"] == {}
    assert rules()[0]["title"] == rule["title"]
    assert rules()[0]["seen"] == 2


def test_a_worker_that_is_killed_keeps_what_it_said_was_done(home: Home, project: str, start):
    client: Client = start()
    id = keep(client, project, "first")
    client.post(f"/api/memories/{id}", {"title": "second"})
    client.post("/api/pin", {"id": id})
    end_worker(home)
    client = start()
    memory = client.get(f"/api/memories/{id}")["memory"]
    assert (memory["title"], memory["pinned"]) == ("second", True)
    assert [each["what"] for each in client.get("/api/log", memory=id)["log"]] == ["pin", "revise"]
