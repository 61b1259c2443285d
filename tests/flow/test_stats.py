"""`foreword stats`, through a real worker: counts that last, and nobody's words."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from foreword.errors import BadRequest
from foreword.models import Injection, Item, Memory
from foreword.paths import Home
from foreword.projects import resolve
from foreword.store import Store
from tests.flow.conftest import CLEAN, end_worker
from tests.flow.forked import foreword

SECRET = "quetzalcoatl"  # a word of another project
PROMPT = "why does the checkout transport retry a timeout twice?"


@pytest.fixture
def known(home: Home, project: str, tmp_path: Path) -> tuple[str, str]:
    """Two projects, of which the other one's words must not be seen."""
    other = tmp_path / SECRET
    other.mkdir()
    (other / "pyproject.toml").write_text("")
    store, now = Store(home.database, backups=home.backups), time.time()
    for folder, title in ((project, "The transport retries twice"), (str(other), f"{SECRET} retries twice")):
        owner = resolve(folder)
        (kept,) = store.memories.put(
            [Memory(kind="decision", title=title, project=owner.key, scope=owner.scope, created=now, confirmed=now)]
        )
        item = Item(kept.id, "index", 0.5, 20, {})
        for number in range(3):
            one = Injection(
                f"inj-{title[0]}{number}", "prompt", "s", owner.key, "codex", now, 40, 500, 3.0, {}, {}, (item,)
            )
            store.injections.record(one)
    store.close()
    return project, str(other)


def run(home: Home, *words: str, cwd: str) -> subprocess.CompletedProcess[str]:
    return foreword("stats", *words, cwd=cwd, env={**CLEAN, "FOREWORD_HOME": str(home.root), "COLUMNS": "200"})


def test_a_project_is_told_its_own_counts_and_no_words(home, start, known):
    client = start()
    project, other = known
    mine = client.get("/api/stats", project_path=project)
    assert mine["injections"]["by_trigger"] == {"prompt": 3}
    assert mine["tokens"]["given"] == 120
    assert mine["memories"]["by_kind"] == {"decision": 1}
    everything = client.get("/api/stats")
    assert everything["injections"]["total"] == 6
    assert SECRET not in json.dumps([mine, everything])
    assert client.get("/api/stats", project_path=other, days=1)["injections"]["total"] == 3
    with pytest.raises(BadRequest):
        client.get("/api/stats", days=99_999)


def test_why_nothing_was_given_outlives_the_worker_and_a_preview_counts_nothing(home, start, known):
    client, (project, _) = start(), known
    for prompt in (PROMPT, "say hello", "say hello again"):
        client.get("/api/context", project_path=project, prompt=prompt)
    client.get("/api/context", project_path=project, prompt="say hello", preview=1)
    before = client.get("/api/stats", project_path=project)["no_context"]
    assert sum(before["prompt"].values()) == 2
    end_worker(home)
    assert start().get("/api/stats", project_path=project)["no_context"] == before


def test_the_command_prints_and_gives_json(home, start, known):
    start()
    project, _ = known
    result = run(home, cwd=project)
    assert result.returncode == 0, result.stderr
    assert "injections     3" in result.stdout
    assert "local days" in result.stdout
    assert SECRET not in result.stdout
    assert json.loads(run(home, "--all", "--json", "--days", "2", cwd=project).stdout)["injections"]["total"] == 6


def test_an_empty_memory_has_figures_too(home, start, project):
    start()
    result = run(home, cwd=project)
    assert result.returncode == 0, result.stderr
    assert "injections     0" in result.stdout
