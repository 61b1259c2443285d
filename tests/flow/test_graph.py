"""`foreword graph --calls` in a real repository, as a person types it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.flow.forked import foreword

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed: no repository to ask")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "rooms").mkdir(parents=True)
    (folder / "rooms" / "waiting.py").write_text(
        "def offer_slot(slot):\n    return hold(slot)\n\n\ndef hold(slot):\n    return slot\n"
    )
    (folder / "rooms" / "bookings.py").write_text(
        "from rooms.waiting import offer_slot\n\n\nclass Bookings:\n    def cancel(self, slot):\n"
        "        return offer_slot(slot)\n\n    def hold(self):\n        pass\n"
    )
    (folder / "ignored.py").write_text("offer_slot(1)\n")
    (folder / ".gitignore").write_text("ignored.py\n")
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    return folder


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "FOREWORD_HOME": str(folder.parent / "h")}
    return foreword("graph", *words, cwd=folder, env=environ)


def test_a_function_is_shown_with_its_callers_and_what_it_calls(shop: Path):
    request = run(shop, "--calls", "offer_slot")
    assert request.returncode == 0, request.stderr
    assert request.stdout == (
        "offer_slot(slot)  rooms/waiting.py:1\n"
        "\ncalled by:\n"
        "  Bookings.cancel  rooms/bookings.py:6\n"
        "\ncalls:\n"
        "  hold  rooms/waiting.py:2\n"
    )
    assert not (shop.parent / "h").exists()  # nothing is stored, and no worker is started


def test_a_name_that_is_defined_twice_is_shown_from_any_folder_of_the_project(shop: Path):
    request = run(shop.parent, "--calls", "hold", "--project", str(shop / "rooms"))
    assert "Bookings.hold(self)  rooms/bookings.py:8\nhold(slot)  rooms/waiting.py:5\n" in request.stdout
    assert request.stdout.count("offer_slot  rooms/waiting.py:2") == 1


def test_json_holds_the_same(shop: Path):
    answer = json.loads(run(shop, "--calls", "Bookings.cancel", "--json").stdout)
    assert [each["function"] for each in answer["definitions"]] == ["Bookings.cancel"]
    assert [(each["function"], each["file"], each["line"]) for each in answer["calls"]] == [
        ("offer_slot", "rooms/bookings.py", 6)
    ]
    assert answer["called_by"] == []
    assert answer["files"] == 2
    assert answer["complete"] is True


def test_an_unknown_name_is_an_error_with_near_names(shop: Path):
    request = run(shop, "--calls", "offer_slots")
    assert request.returncode == 1
    assert "error: 'offer_slots' is not defined" in request.stderr
    assert "hint: did you mean offer_slot" in request.stderr
    assert run(shop).returncode == 2
