"""Whole sessions of real clients: an edit, a failing test, an edit, a passing test, a decision told.

tests/golden/distilled.txt holds what each came to, for a person to judge; the session is the same in every client.
"""

from __future__ import annotations

import json
from pathlib import Path

from foreword.code import changes
from foreword.distill import Distilled, distil
from foreword.extract.actions import action_of
from foreword.payloads import Delivery
from foreword.remember import read
from foreword.types import Project, Session
from tests.tables import table
from tests.unit.test_distill import readable

HERE = Path(__file__).parent.parent
PROJECT = Project(key="rooms", name="rooms", root="/home/user/project")
CLIENTS = sorted(path.stem for path in (HERE / "payloads" / "sessions").glob("*.jsonl"))
TOLD_NO_PLAN = ("codex", "copilot")  # their hooks tell no list of to-dos
TOLD_NO_ANSWER = ("copilot",)  # it tells the file that holds it, which is not here


def came_to(client: str) -> Distilled:
    actions = []
    for number, line in enumerate((HERE / "payloads" / "sessions" / f"{client}.jsonl").read_text().splitlines()):
        told = json.loads(line)
        given = Delivery(client, told["event"], 1000.0 + number, json.dumps(told["payload"]).encode())
        event = read(given, text_cap=65536, find_project=lambda _: PROJECT).event
        actions.append(action_of(event, root=PROJECT.root))
    session = Session("s", client, PROJECT.key, PROJECT.root, 0.0, 0.0)
    return distil(filter(None, actions), session=session, project=PROJECT, changes_of=lambda edit: changes([edit]))


def test_what_the_sessions_of_real_clients_came_to_reads_well():
    golden = (HERE / "golden" / "distilled.txt").read_text(encoding="utf-8")
    assert "".join(f"# {client}\n{readable(came_to(client).memories)}\n" for client in CLIENTS) == golden


@table("client", CLIENTS)
def test_every_client_tells_the_failure_with_its_fix_the_decision_with_its_reason_and_the_rule(client):
    got = {memory.kind: memory for memory in came_to(client).memories}
    assert got["failure"].title == "AssertionError: assert False (test_back_to_back_is_free)"
    assert "`" in got["failure"].detail["fixed_by"]
    assert "<=" in got["failure"].detail["fixed_by"]
    assert got["decision"].title == "Use integer cents for prices instead of floats"
    assert got["decision"].detail["why"] == "the rounding of 17.50 / 3 bit us last month"
    assert got["preference"].trust == "user"
    assert got["change"].detail["what"] in ("NEW", "MODIFIED")
    assert "pytest passes" in got["summary"].detail["done"][0]


@table("client", [each for each in CLIENTS if each not in TOLD_NO_PLAN])
def test_what_is_left_to_do_is_handed_over(client):
    got = {memory.kind: memory for memory in came_to(client).memories}
    assert got["handoff"].detail["next"] == ["show the price in the booking form"]


@table("client", [each for each in CLIENTS if each not in TOLD_NO_ANSWER])
def test_what_the_agent_says_last_becomes_next_steps_too(client):
    summary = next(memory for memory in came_to(client).memories if memory.kind == "summary")
    assert [item.lower() for item in summary.detail["next"]] == ["show the price in the booking form"]
