"""What the Memories page asks and does, through the real worker's loopback port as a browser speaks to it."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from foreword.errors import BadRequest
from foreword.paths import Home
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.viewing import Page, Refused


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    """Not tmp_path: its names are too long for a socket."""
    made = Path(tempfile.mkdtemp(prefix="fw-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def worker(root: Path) -> Iterator[Home]:
    """One worker for all that leaves the others alone."""
    home = Home(root=root / "h")
    home.prepare()
    lifecycle.start(home)
    yield home
    lifecycle.stop(home)


@pytest.fixture(scope="module")
def client(worker: Home) -> Client:
    return Client(worker, seconds=20)


@pytest.fixture
def page(client: Client) -> Page:
    return Page(client)


@pytest.fixture
def project(root: Path) -> str:
    """A project of the test's own, with a name of its own: projects of one name are told apart once both are stored."""
    folder = Path(tempfile.mkdtemp(prefix="shop-", dir=root))
    (folder / "pyproject.toml").write_text("")
    return str(folder)


@pytest.fixture
def add(client: Client, project: str) -> Callable[..., str]:
    def added(kind: str, title: str, **more: Any) -> str:
        answer = {"kind": kind, "title": title, "project_path": project, **more}
        return str(client.post("/api/memories", answer)["memories"][0]["id"])

    return added


def test_one_memory_is_told_with_where_it_is_from_and_what_it_is_linked_to(client, page, add, project):
    one = add("decision", "Slots are stored in UTC", detail={"why": "two venues"}, tags=["time"], files=["slots.py"])
    other = add("decision", "Slots are stored in local time")
    client.post("/api/supersede", {"old": other, "new": one})
    answer = page.get(f"/api/memories/{one}", full=1)
    memory = answer["memory"]
    expected = ("Slots are stored in UTC", "user", Path(project).name)
    assert (memory["title"], memory["trust"], memory["project_name"]) == expected
    assert memory["detail"]["why"] == "two venues"
    assert [(each["relation"], each["forth"], each["title"]) for each in answer["links"]] == [
        ("supersedes", True, "Slots are stored in local time")
    ]
    back = page.get(f"/api/memories/{other}", full=1)["links"]
    assert [(each["relation"], each["forth"], each["id"]) for each in back] == [("supersedes", False, one)]
    assert answer["why"]
    assert answer["score"] > 0
    assert [each["done"] for each in page.get(f"/api/memories/{other}", full=1)["history"]] == ["superseded"]


def test_a_scope_is_one_whatever_its_name_holds(client, page, root):
    folder = root / "a, b"
    folder.mkdir()
    answer = {"kind": "note", "title": "of a folder with a comma", "project_path": str(folder)}
    [kept] = client.post("/api/memories", answer)["memories"]
    assert "," in kept["scope"]
    assert page.get("/api/memories", scope=kept["scope"])["total"] == 1
    assert page.get("/api/facets", scope=kept["scope"])["facets"]["kind"][0]["count"] == 1


def test_looking_is_no_fetch_and_changes_no_rank(client, page, add, worker):
    id = add("decision", "Slots are stored in UTC")
    before = client.get(f"/api/memories/{id}", full=1)
    for _ in range(3):
        page.get(f"/api/memories/{id}", full=1)
    after = client.get(f"/api/memories/{id}", full=1)
    assert after["memory"] == before["memory"]
    assert set(after["why"]) == set(before["why"])
    assert after["use"] == before["use"]
    assert fetches(worker) == 0


def test_where_it_was_shown_and_in_which_session_is_told(client, page, add, project):
    id = add("decision", "Slots are stored in UTC because two venues lie in different zones")
    request = {"project_path": project, "session_id": "s-shown", "prompt": "why are slots stored in UTC?"}
    injected = client.get("/api/context", **request)
    assert id in injected["context"]
    answer = page.get(f"/api/memories/{id}", full=1)
    (shown,) = answer["shown"]
    assert (shown["trigger"], shown["session"], shown["injection"]) == ("prompt", "s-shown", injected["injection"])
    assert shown["tokens"] > 0
    assert shown["why"]
    assert answer["use"]["shown"] == 1


def test_an_edit_is_the_users_is_told_in_the_history_and_can_be_taken_back(page, add):
    id = add("decision", "Use Redis", detail={"why": "speed"}, source="codex", trust="agent")
    answer = page.post(f"/api/memories/{id}", {"title": "Use Valkey", "why": "its licence"})
    assert answer["memory"]["title"] == "Use Valkey"
    assert answer["entry"]["who"] == "user"
    last = page.get(f"/api/memories/{id}", full=1)["history"][0]
    assert (last["done"], last["who"], last["undo"]) == ("revised", "user", True)
    assert {each["field"]: (each["before"], each["after"]) for each in last["changes"]} == {
        "title": ("Use Redis", "Use Valkey"),
        "why": ("speed", "its licence"),
    }
    undone = page.post("/api/undo", {"entry": answer["entry"]["number"]})
    assert undone["refused"] == {}
    after = page.get(f"/api/memories/{id}", full=1)
    assert (after["memory"]["title"], after["memory"]["detail"]["why"]) == ("Use Redis", "speed")
    assert [each["undo"] for each in after["history"]] == [True, False]  # an undo can itself be taken back


def test_an_undo_that_names_nothing_takes_nothing_back(page, add):
    page.post(f"/api/memories/{(id := add('decision', 'Use Redis'))}", {"title": "Use Valkey"})
    for answer in ({}, {"id": id}, {"ids": [id]}, {"entry": None}, {"run": ""}):
        with pytest.raises(Refused) as refused:
            page.post("/api/undo", answer)
        assert refused.value.status == 400
    assert page.get(f"/api/memories/{id}", full=1)["memory"]["title"] == "Use Valkey"


def test_what_waits_says_so(page, add):
    note = add("note", "slots are in UTC")
    assert page.get(f"/api/memories/{note}", full=1)["waits"] is True
    assert note in [each["id"] for each in page.get("/api/review")["notes"]]


def test_what_holds_everywhere_is_not_ended_by_what_holds_in_one_project(client, add):
    everywhere = add("preference", "Always use tabs", scope="universal")
    here = add("preference", "Spaces in this one")
    with pytest.raises(BadRequest, match="holds beyond"):
        client.post("/api/supersede", {"old": everywhere, "new": here})
    client.post("/api/supersede", {"old": here, "new": everywhere})


def fetches(home: Home) -> int:
    """How many fetches the database knows of, read by the standard library."""
    connection = sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)
    try:
        ((count,),) = connection.execute("SELECT count(*) FROM access")
        return int(count)
    finally:
        connection.close()
