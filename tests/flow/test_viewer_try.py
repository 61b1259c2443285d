"""What the Try it page asks, through the real worker's loopback port: the worker's own answer, and no trace of it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from foreword.layout import LAYOUT, MOST_TOKENS
from foreword.models import TRIGGERS
from foreword.paths import Home
from foreword.projects import resolve
from foreword.recall.pipeline import REASONS
from foreword.worker import lifecycle
from foreword.worker.client import Client
from foreword.worker.preview import LEAST_BUDGET
from tests.flow.viewing import Page, Refused
from tests.scratch import asking, fact

PROMPT = "why does the checkout transport time out?"
LEFT_OUT = {"shown", "older", "unsure", "trust", "limit", "room", "relevance", "threshold"}
TOPICS = ("retries", "pool size", "TLS handshake", "proxy", "keep-alive", "backoff", "queue", "socket", "cache", "DNS")


@pytest.fixture
def client(home: Home, start) -> Client:
    """A worker whose prompts are answered with an index: what fits depends on the budget."""
    home.config.write_text('prompt_style = "index"\n')
    return start()


@pytest.fixture
def project(home: Home) -> str:
    folder = home.root.parent / "shop"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    return str(folder)


@pytest.fixture
def key(client: Client, project: str) -> str:
    """The project's key, with so much to say of checkout transports that not all of it fits."""
    answer = [
        {"kind": "decision", "title": f"The checkout transport and its {topic}: time out after {at} s"}
        for at, topic in enumerate(TOPICS * 2, 1)
    ]
    client.post("/api/memories", {"memories": [{**each, "project_path": project} for each in answer]})
    [known] = client.get("/api/projects")["projects"]  # as the page asks first
    assert known["key"] == resolve(project).key
    return str(known["key"])


@pytest.fixture
def page(client: Client) -> Page:
    return Page(client)


def everything(home: Home) -> dict[str, list[tuple]]:
    """Every row of every table, as the standard library reads it."""
    with sqlite3.connect(f"file:{home.database}?mode=ro", uri=True) as line:
        names = [name for (name,) in line.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        plain = [name for name in names if not name.startswith(("sqlite_", "words"))]
        return {name: line.execute(f'SELECT * FROM "{name}"').fetchall() for name in plain}


def test_a_trial_is_what_the_worker_would_say_and_what_just_missed_it(client, page, project, key):
    printed = client.get("/api/context", project_path=project, trigger="prompt", prompt=PROMPT, budget=300, preview=1)
    tried = page.post("/api/preview", {"prompt": PROMPT, "project": key, "budget": 300})
    assert tried["text"] == printed["context"]
    assert (tried["tokens"], tried["budget"], tried["trigger"]) == (printed["tokens"], 300, "prompt")
    assert tried["items"]
    assert tried["rejected"]
    assert all(each["line"] and "used" not in each for each in tried["items"])
    for each in (*tried["items"], *tried["rejected"]):
        assert set(each["why"]) == {"match", "recency", "importance", "reinforcement", "scope", "task"}
        assert each["title"].startswith("The checkout transport")
    assert all(each["line"] in tried["text"] for each in tried["items"])
    assert {each["reason"] for each in tried["rejected"]} <= LEFT_OUT
    assert all(each["says"] for each in tried["rejected"])
    assert tried["build_ms"] > 0
    ranges = {each.pop("name"): each for each in page.get("/api/preview", project=key)["triggers"]}
    assert ranges["prompt"] == {"least": LEAST_BUDGET, "usual": LAYOUT["prompt"].budget, "most": 2000}
    assert {each["name"]: each["spent"] for each in tried["layers"] if each["spent"]} == printed["layers"]


def test_nothing_of_a_trial_is_kept_counted_or_found_on_the_disk(page, home, key):
    marker = "zyzzyva-quokka-tapir"
    before = everything(home)
    for trigger in TRIGGERS:
        page.post("/api/preview", {"prompt": f"{PROMPT} {marker}", "project": key, "trigger": trigger})
    lifecycle.stop(home)  # what it counted is written now
    after = everything(home)
    its_own = dict.fromkeys(("tallies", "checkpoints", "projects"), ())  # what a worker notes by itself, every second
    assert {**after, **its_own} == {**before, **its_own}
    for path in (each for each in home.root.rglob("*") if each.is_file()):
        assert b"quokka" not in path.read_bytes(), path


def test_silence_tells_its_reason_and_still_what_came_nearest(home, start, project):
    client = start()
    client.post("/api/memories", {"kind": "decision", "title": fact("canary"), "project_path": project})
    [known] = client.get("/api/projects")["projects"]
    page = Page(client)
    request = {"project": known["key"], "prompt": asking("canary")}
    assert "the canary sings" in page.post("/api/preview", request)["text"]
    silent = page.post(
        "/api/preview", {**request, "prompt": "which cellar is near the zebra crossing of the lighthouse?"}
    )
    assert (silent["text"], silent["tokens"], silent["items"]) == ("", 0, [])
    assert silent["why"] == REASONS["below"]
    (left,) = silent["rejected"]
    assert (left["title"], left["reason"] in LEFT_OUT) == (fact("canary"), True)
    assert left["says"]
    assert page.post("/api/preview", {**request, "prompt": "yes, do that"})["why"] == REASONS["reply"]


def test_a_budget_that_holds_nothing_is_told_as_the_reason(page, key):
    silent = page.post("/api/preview", {"prompt": PROMPT, "project": key, "budget": LEAST_BUDGET})
    assert silent["why"] == REASONS["room"].format(budget=LEAST_BUDGET)


def test_a_project_that_is_switched_off_says_so(page, key, project):
    Path(project, ".foreword-off").touch()
    answer = page.post("/api/preview", {"prompt": PROMPT, "project": key})
    assert answer["off"] == ".foreword-off"
    assert "switched off" in answer["why"]
    assert (answer["text"], answer["items"], answer["rejected"]) == ("", [], [])
    assert page.get("/api/preview", project=key)["off"] == ".foreword-off"


def test_the_window_of_a_session_counts_where_one_is_chosen(client, page, host, key, project):
    session = {"session_id": "one", "cwd": project}
    host.tell("SessionStart", {**session, "hook_event_name": "SessionStart", "source": "startup"})
    injected = client.get(
        "/api/context", project_path=project, session_id="one", trigger="prompt", prompt=PROMPT, budget=200
    )
    assert injected["injection"]
    fresh, same = (
        page.post("/api/preview", {"prompt": PROMPT, "project": key, "session": each, "budget": 2000})
        for each in ("", "one")
    )
    shown = {each["memory"] for each in same["rejected"] if each["reason"] == "shown"}
    assert shown
    assert shown <= {each["memory"] for each in fresh["items"]}
    assert "one" in [each["id"] for each in page.get("/api/preview", project=key)["sessions"]]


def test_a_question_without_words_asks_for_what_a_session_begins_with(page, key):
    assert page.post("/api/preview", {"project": key, "trigger": "question"})["trigger"] == "session_start"


def test_what_cannot_be_is_refused_in_words(page, key):
    for wrong, status in (
        ({"project": ""}, 400),
        ({"project": "nowhere"}, 404),
        ({"trigger": "never"}, 400),
        ({"budget": MOST_TOKENS + 1}, 400),
        ({"budget": True}, 400),
        ({"budget": "500"}, 400),
        ({"prompt": ["a"]}, 400),
        ({"session": "of nobody"}, 404),
    ):
        with pytest.raises(Refused) as answer:
            page.post("/api/preview", {"project": key, **wrong})
        assert (answer.value.status, bool(str(answer.value))) == (status, True), wrong
