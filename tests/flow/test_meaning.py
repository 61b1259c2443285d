"""A real worker finds by meaning where that is switched on, and carries nothing of it where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from foreword.config import change
from foreword.problems import noted
from foreword.worker import lifecycle
from tests.flow.conftest import wait_for

KEPT = {"kind": "decision", "title": "Login tokens expire after ten minutes"}
QUESTION = "how do we authenticate users"  # shares no word with it


def titles(client, project, q=QUESTION):
    return [each["title"] for each in client.get("/api/search", q=q, project_path=project)["results"]]


def test_a_memory_that_shares_no_word_with_the_question_is_found_where_the_user_wants_that(home, start, project):
    client = start()
    client.post("/api/memories", {**KEPT, "project_path": project})
    assert titles(client, project) == []
    change(home, "embeddings", "local")  # a worker that runs follows
    wait_for(lambda: titles(client, project) == [KEPT["title"]])
    client.post("/api/memories", {"kind": "note", "title": "Passwords are hashed with argon2", "project_path": project})
    wait_for(lambda: len(titles(client, project)) == 2)  # the job adds its vector within a second
    change(home, "embeddings", "off")
    wait_for(lambda: titles(client, project) == [])
    assert not noted(str(home.trouble))


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells what a process has loaded")
def test_a_worker_without_meaning_never_loads_what_it_needs(home, start, project):
    client = start()
    client.post("/api/memories", {**KEPT, "project_path": project})
    titles(client, project)
    client.get("/api/context", project_path=project, prompt=QUESTION)
    assert "numpy" not in Path(f"/proc/{lifecycle.pid_of(home)}/maps").read_text()
