"""A real worker finds by meaning where that is switched on, and carries nothing of it where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from foreword.config import change
from foreword.problems import noted
from foreword.worker import lifecycle
from tests import endpoint
from tests.flow.conftest import wait_for

KEPT = {"kind": "decision", "title": "Login tokens expire after ten minutes"}
ASKED = "how do we authenticate users"  # shares no word with it


def titles(client, project, q=ASKED):
    return [each["title"] for each in client.get("/api/search", q=q, project_path=project)["results"]]


def test_a_memory_that_shares_no_word_with_the_question_is_found_where_the_user_wants_that(home, start, project):
    client = start()
    client.post("/api/memories", {**KEPT, "project_path": project})
    assert titles(client, project) == []
    change(home, "embeddings", "local")  # a worker that runs follows
    wait_for(lambda: titles(client, project) == [KEPT["title"]])
    client.post("/api/memories", {"kind": "note", "title": "Passwords are hashed with argon2", "project_path": project})
    assert len(titles(client, project)) == 2  # a fresh one is found at once
    change(home, "embeddings", "off")
    wait_for(lambda: titles(client, project) == [])
    assert not noted(str(home.trouble))


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells what a process has loaded")
def test_a_worker_without_meaning_never_loads_what_it_needs(home, start, project):
    client = start()
    client.post("/api/memories", {**KEPT, "project_path": project})
    titles(client, project)
    client.get("/api/context", project_path=project, prompt=ASKED)
    assert "numpy" not in Path(f"/proc/{lifecycle.pid_of(home)}/maps").read_text()


def test_an_endpoint_gets_what_is_remembered_only_when_the_user_names_it(home, start, project, monkeypatch):
    with endpoint.listening() as server:
        monkeypatch.setenv("FOREWORD_EMBEDDINGS_URL", server.url)
        monkeypatch.setenv("FOREWORD_EMBEDDINGS_MODEL", "m")
        monkeypatch.setenv("FOREWORD_EMBEDDINGS_KEY_ENV", "WALRUS_KEY")
        monkeypatch.setenv("WALRUS_KEY", "k-1")
        client = start()
        client.post("/api/memories", {**KEPT, "project_path": project})
        titles(client, project)
        assert server.requests == []
        change(home, "embeddings", "remote")
        wait_for(lambda: KEPT["title"] in " ".join(server.texts()))
        wait_for(lambda: titles(client, project, q="logins") == [KEPT["title"]])  # begins as `login` does
        assert {headers["Authorization"] for _, headers, _ in server.requests} == {"Bearer k-1"}
    assert "k-1" not in "".join(path.read_text(errors="replace") for path in home.root.rglob("*") if path.is_file())


def test_an_endpoint_that_is_away_costs_nothing_but_its_vectors(home, start, project, monkeypatch):
    url = "http://127.0.0.1:9/v1"
    for name, text in (("EMBEDDINGS", "remote"), ("EMBEDDINGS_URL", url), ("EMBEDDINGS_MODEL", "m")):
        monkeypatch.setenv(f"FOREWORD_{name}", text)
    client = start()
    client.post("/api/memories", {**KEPT, "project_path": project})
    assert titles(client, project, q="login tokens") == [KEPT["title"]]
    assert KEPT["title"] in client.get("/api/context", project_path=project, prompt="login tokens")["context"]
    wait_for(lambda: noted(str(home.trouble)))
    for _ in range(3):
        titles(client, project, q="login tokens")
    (trouble,) = noted(str(home.trouble))
    assert "127.0.0.1:9" in trouble.what
