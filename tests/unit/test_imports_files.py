"""A project's own files tell what it is, how it is built and what was decided; none of it becomes a rule."""

from __future__ import annotations

import os
from pathlib import Path

from foreword.capture.parse import project_at
from foreword.importers.base import Batch, find
from foreword.importers.files import parse_adr
from foreword.models import Memory
from foreword.recall.rank import CERTAIN
from tests.growth import assert_linear
from tests.tables import table

NYGARD = """# 2. Store slots in UTC

Date: 2024-03-05

## Status

Accepted

Superseded by [9. Store slots with their zone](0009-zones.md)

## Context

Bands book across the change to summer time. Two venues lie in different zones.

## Decision

We will store every slot in UTC.

## Consequences

Every page must convert.
"""
MADR = """---
status: accepted
date: 2025-01-31
---
# Use one writer

## Context and Problem Statement

Many processes wrote at once. Which of them may?

## Considered Options

* One writer
* A lock for each table

## Decision Outcome

Chosen option: "One writer", because a lock was forgotten twice. It is simple too.

### Consequences

* Good, because nothing is lost
"""


def put(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def read(root: Path) -> list[Batch]:
    return list(find("files").read(project_at(str(root)), environ={}, checkpoint=""))


def memories(root: Path, kind: str) -> list[Memory]:
    return [memory for batch in read(root) for memory in batch.memories if memory.kind == kind]


def test_a_project_tells_what_it_is_and_how_it_is_built(tmp_path_factory):
    # A readme tells what the project is past badges and headings.
    tmp_path = tmp_path_factory.mktemp("x")
    put(
        tmp_path,
        **{
            "README.md": "# Rooms\n\n[![ci](a.svg)](b) ![x](y)\n\n<p align='center'><img src='x'></p>\n\n"
            "**Rooms** rents out [rehearsal rooms](https://x) by the hour. It has one page.\n\n## More\n"
        },
    )
    (about,) = memories(tmp_path, "project")
    assert about.title.endswith(": Rooms rents out rehearsal rooms by the hour. It has one page.")
    assert (about.trust, about.files, about.source) == ("imported", ("README.md",), "readme")
    # A package describes itself best.
    tmp_path = tmp_path_factory.mktemp("x")
    put(
        tmp_path,
        **{
            "README.md": "# Rooms\n\nThis page is about a great many different things.\n",
            "pyproject.toml": '[project]\nname = "rooms"\ndescription = "Rehearsal rooms by the hour"\n',
        },
    )
    (about,) = memories(tmp_path, "project")
    assert about.title.endswith(": Rehearsal rooms by the hour")
    assert "great many" in about.body
    # Commands come from the projects own build files first.
    tmp_path = tmp_path_factory.mktemp("x")
    put(
        tmp_path,
        Makefile="test: ready\n\tpytest\ncheck:\n\tx\nbuild:\n\ty\nall: test\n",
        **{
            "package.json": '{"scripts": {"test": "vitest", "dev": "vite", "prepare": "x"}}',
            "pnpm-lock.yaml": "",
        },
    )
    found = {memory.tags[1]: memory for memory in memories(tmp_path, "learning")}
    assert found["test"].title == "Run the tests with `make test`"
    assert found["test"].detail["commands"] == ["make test", "make check", "pnpm test"]
    assert found["run"].title == "Run it with `pnpm run dev`"
    assert found["build"].title == "Build with `make build`"
    assert "setup" not in found
    assert all(memory.confidence >= CERTAIN for memory in found.values())
    # What a host reads anyway never comes by itself and is no rule.
    tmp_path = tmp_path_factory.mktemp("x")
    rules = "# Rules\n\n## Tests\nAlways run `make test`.\n"
    put(tmp_path, Makefile="test:\n\tpytest\n", **{"CLAUDE.md": rules, ".cursorrules": "Prefer tabs.\n"})
    os.symlink("CLAUDE.md", tmp_path / "AGENTS.md")
    found = memories(tmp_path, "learning")
    assert {memory.files[0] for memory in found} == {"Makefile", "CLAUDE.md", ".cursorrules"}
    assert all(memory.confidence < CERTAIN and memory.trust == "imported" for memory in found)
    assert not memories(tmp_path, "preference")


def test_decisions_are_understood_in_both_forms():
    # Nygards form is understood.
    record = parse_adr(NYGARD)
    assert record
    assert (record.title, record.status, record.date) == ("Store slots in UTC", "superseded", "2024-03-05")
    assert record.body == "We will store every slot in UTC."
    assert record.detail["why"] == "Bands book across the change to summer time"
    assert record.detail["outcome"] == "Every page must convert."
    assert record.superseded_by == ("0009-zones.md",)
    # Madrs form is understood.
    record = parse_adr(MADR)
    assert record
    assert (record.title, record.status, record.date) == ("Use one writer", "accepted", "2025-01-31")
    assert record.detail["alternatives"] == ["One writer", "A lock for each table"]
    assert record.detail["why"] == "a lock was forgotten twice"
    assert record.detail["outcome"].startswith("* Good")
    # Other pages are no decisions.
    assert parse_adr("# Index\n\nAll decisions are here.\n") is None
    assert parse_adr("no title") is None


@table(
    ("text", "status"),
    [
        ("# A\n\n* Status: proposed\n\n## Decision\nx\n", "proposed"),
        ("# A\n\n**Status:** Rejected (2024-01-01)\n\n## Decision\nx\n", "rejected"),
        ("# A\n\n## Status\n\nDeprecated\n\n## Decision\nx\n", "deprecated"),
        ("# A\n\n## Decision\nx\n", ""),
    ],
)
def test_a_status_is_found_in_every_place_people_write_it(text: str, status: str):
    record = parse_adr(text)
    assert record
    assert record.status == status


def test_decisions_are_superseded_and_stay_the_same_memory(tmp_path_factory):
    # A decision that another replaces is superseded by it.
    tmp_path = tmp_path_factory.mktemp("x")
    newer = "# 9. Store slots with their zone\n\nDate: 2025-05-05\n\n## Status\n\nAccepted\n\n## Decision\n\nBoth.\n"
    put(
        tmp_path, **{"docs/adr/0002-utc.md": NYGARD, "docs/adr/0009-zones.md": newer, "docs/adr/README.md": "# Index\n"}
    )
    batches = read(tmp_path)
    new, old = batches[-1].memories
    assert (new.status, old.status, old.superseded_by) == ("active", "superseded", new.uid)
    assert [(link.source, link.target) for link in batches[-1].links] == [(new.uid, old.uid)]
    assert old.detail["why"]
    # Supersedes may be record by the newer one and by number.
    tmp_path = tmp_path_factory.mktemp("x")
    older = "# 1. A\n\n## Status\n\nAccepted\n\n## Decision\n\na\n"
    newer = "# 2. B\n\n## Status\n\nAccepted, supersedes ADR-0001\n\n## Decision\n\nb\n"
    put(tmp_path, **{"doc/architecture/decisions/0001-a.md": older, "doc/architecture/decisions/0002-b.md": newer})
    assert {memory.title: memory.status for memory in memories(tmp_path, "decision")} == {
        "A": "superseded",
        "B": "active",
    }
    # What is only proposed or was rejected says so and stays behind.
    tmp_path = tmp_path_factory.mktemp("x")
    put(tmp_path, **{"docs/decisions/1.md": "# A\n\nStatus: rejected\n\n## Decision\n\nno\n"})
    (memory,) = memories(tmp_path, "decision")
    assert memory.title == "Rejected: A"
    assert memory.confidence < CERTAIN
    # A changed file is the same memory.
    tmp_path = tmp_path_factory.mktemp("x")
    put(tmp_path, **{"docs/adr/1.md": "# A\n\nStatus: proposed\n\n## Decision\n\nx\n"})
    (before,) = memories(tmp_path, "decision")
    put(tmp_path, **{"docs/adr/1.md": "# A\n\nStatus: accepted\n\n## Decision\n\ny\n"})
    (after,) = memories(tmp_path, "decision")
    assert before.uid == after.uid
    assert (after.title, after.body) == ("A", "y")


def test_what_leads_elsewhere_or_is_empty_is_passed_over(tmp_path_factory):
    # Files that lead elsewhere or are no files are passed over.
    tmp_path = tmp_path_factory.mktemp("x")
    root = tmp_path / "project"
    put(root, **{"pyproject.toml": ""})
    put(tmp_path, **{"secret.md": "# Secret\n\nThis is a long enough sentence about something else.\n"})
    os.symlink(tmp_path / "secret.md", root / "README.md")
    os.mkfifo(root / "CLAUDE.md")
    assert read(root)[0].memories == ()
    # An empty folder offers nothing.
    tmp_path = tmp_path_factory.mktemp("x")
    assert find("files").offer(project_at(str(tmp_path)), environ={}) is None


@table("text", ["[" * 100_000, "<!--" * 50_000, "`" * 200_000, "#" * 100_000 + " ", "**" * 90_000])
def test_hostile_pages_cost_no_more_than_others(tmp_path: Path, text: str):
    put(
        tmp_path,
        **{"README.md": f"# {text}\n\n{text} a b c d e f g\n", "docs/adr/1.md": f"# A\n\n## Decision\n\n{text}\n"},
    )
    read(tmp_path)


@table("part", ["](", "(", "superseded by ", "superseded by ]("])
def test_a_hostile_status_is_read_once(part: str):
    assert_linear(lambda text: parse_adr("# A\n\n## Status\n\n" + text), part)
