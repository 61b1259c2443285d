"""What the Health page asks of a real worker: how everything stands, and why where it does not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foreword.config import change
from foreword.models import Injection, Item, Memory, ModelCall
from foreword.paths import Home
from foreword.problems import Problem, note
from foreword.projects import resolve
from foreword.store import Store
from foreword.worker.client import Client
from tests.flow.viewing import Page

Ask = Callable[..., dict[str, Any]]
NOW = time.time()


@pytest.fixture
def ask(start: Callable[[], Client]) -> Ask:
    """Opens the viewer once, and asks it; anything but a good answer fails."""
    pages: list[Page] = []

    def request(path: str = "/api/health", *, status: int = 200, **query: Any) -> dict[str, Any]:
        pages[:] = pages or [Page(start())]
        return pages[0].ask(path, status=status, **(query or {"full": 1}))

    return request


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user in which no host is installed."""
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def fill(home: Home, *, project: str = "dir:/shop") -> None:
    store = Store(home.database, backups=home.backups)
    (kept,) = store.memories.put([Memory("decision", "Prices are cents", project=project, created=NOW, confirmed=NOW)])
    item = Item(kept.id, "index", 0.5, 20, {})
    store.injections.record(Injection("inj-1", "prompt", "s", project, "codex", NOW, 40, 500, 3.0, {}, {}, (item,)))
    for outcome, number in (("ok", 2), ("refused:cap", 1)):
        store.stats.record_model_call(ModelCall(NOW - number, "openai", "m-1", "refine", "s", 30, 10, 120.0, outcome))
    store.close()


def test_a_new_home_is_well_and_told_that_no_agent_is_connected(ask: Ask, home: Home) -> None:
    health = ask()
    assert health["ok"]
    assert health["says"].startswith("All is well: no memories")
    assert [(each["check"], each["state"], each["way_out"]) for each in health["findings"]] == [
        ("hosts", "note", "run `foreword install`")
    ]
    assert not any(each["connected"] for each in health["hosts"])
    assert health["home"] == str(home.root)
    assert health["spool_bytes"] == 0
    assert 0 < health["store"]["bytes"] < health["store"]["limit"]
    assert health["troubles"] == []


def test_figures_are_of_the_project_and_the_days_that_were_asked_for(ask: Ask, home: Home) -> None:
    fill(home)
    answer = ask("/api/stats", days=7)
    assert (answer["tokens"]["given"], answer["items"]["unjudged"], answer["memories"]["total"]) == (40, 1, 1)
    assert answer["build_ms"]["prompt"]["count"] == 1
    assert answer["store"]["bytes"] > 0
    assert ask("/api/stats", days=7, project="dir:/shop")["injections"]["total"] == 1
    elsewhere = ask("/api/stats", days=7, project="dir:/elsewhere")
    assert elsewhere["injections"]["total"] == elsewhere["memories"]["total"] == 0
    for days in ("0", "99999", "x", "1.5"):
        assert "days" in ask("/api/stats", status=400, days=days)["error"]


def test_a_worker_whose_store_is_broken_tells_why_and_the_way_out(ask: Ask, home: Home) -> None:
    home.prepare()
    home.database.write_bytes(b"this is no database, and never was one. " * 200)
    answer = ask()
    assert not answer["ok"]
    assert "Not all is well: cannot open" in answer["says"]
    (wrong,) = [each for each in answer["findings"] if each["state"] == "wrong"]
    assert "foreword restore" in wrong["way_out"]
    assert answer["store"]["bytes"] == 0
    assert answer["worker"]["pid"]
    assert any("cannot open" in each["what"] for each in answer["troubles"])
    assert "cannot open" in ask("/api/stats", status=503, days=7)["error"]


def test_the_same_trouble_is_one_entry_and_the_newest_is_first(ask: Ask, home: Home) -> None:
    home.prepare()
    for at, what in ((1.0, "old"), (2.0, "again"), (3.0, "again"), *((10.0 + n, f"number {n}") for n in range(60))):
        note(str(home.trouble), Problem(at=at, where="hook of codex", what=what))
    answer = ask()["troubles"]
    assert len(answer) == 50
    assert [each["at"] for each in answer] == sorted((each["at"] for each in answer), reverse=True)
    assert answer[0] == {"at": 69.0, "where": "hook of codex", "what": "number 59", "count": 1}


def test_switched_projects_and_what_is_off_are_told(ask: Ask, home: Home, project: str) -> None:
    change(home, "silent_projects", json.dumps([project]))
    change(home, "capture", "off")
    store = Store(home.database, backups=home.backups)
    store.projects.see([resolve(project)], at=NOW)
    store.close()
    answer = ask()
    assert any(each["says"].startswith("shop is silent (silent_projects)") for each in answer["findings"])
    assert any(each["says"].startswith("capture is off") for each in answer["findings"])
