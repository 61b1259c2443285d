"""A project's own files tell what it is, how it is built and what was decided; none of it becomes a rule."""

from __future__ import annotations

import os
from pathlib import Path

from foreword.capture.parse import project_at
from foreword.importers import Batch, find
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
    return list(find("files").read(project_at(str(root))))


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


def decision(root: Path, text: str) -> Memory | None:
    put(root, **{"docs/adr/0001-it.md": text})
    return next(iter(memories(root, "decision")), None)


def test_decisions_are_understood_in_both_forms(tmp_path: Path):
    record = decision(tmp_path, NYGARD)
    assert record
    assert (record.title, record.status, record.created) == ("Store slots in UTC", "stale", 1_709_596_800.0)
    assert record.body == "We will store every slot in UTC."
    assert record.detail["why"] == "Bands book across the change to summer time"
    record = decision(tmp_path, MADR)
    assert record
    assert (record.title, record.status, record.created) == ("Use one writer", "active", 1_738_281_600.0)
    assert record.detail["alternatives"] == ["One writer", "A lock for each table"]
    assert record.detail["why"] == "a lock was forgotten twice"
    # Other pages are no decisions.
    assert decision(tmp_path, "# Index\n\nAll decisions are here.\n") is None
    assert decision(tmp_path, "no title") is None


@table(
    ("text", "title", "status"),
    [
        ("# A\n\n* Status: proposed\n\n## Decision\nx\n", "Proposed: A", "active"),
        ("# A\n\n**Status:** Rejected (2024-01-01)\n\n## Decision\nx\n", "Rejected: A", "active"),
        ("# A\n\n## Status\n\nDeprecated\n\n## Decision\nx\n", "A", "stale"),
        ("# A\n\nStatus: accepted, supersedes ADR-0001\n\n## Decision\nx\n", "A", "active"),
        ("# A\n\n## Decision\nx\n", "A", "active"),
    ],
)
def test_a_status_is_found_in_every_place_people_write_it(tmp_path: Path, text: str, title: str, status: str):
    record = decision(tmp_path, text)
    assert record
    assert (record.title, record.status) == (title, status)
    assert (record.confidence < CERTAIN) == (":" in title)  # what is not decided stays behind


def test_a_changed_decision_is_the_same_memory(tmp_path: Path):
    before = decision(tmp_path, "# A\n\nStatus: proposed\n\n## Decision\n\nx\n")
    after = decision(tmp_path, "# A\n\nStatus: accepted\n\n## Decision\n\ny\n")
    assert before
    assert after
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
    assert read(root)[0].memories == []
    # An empty folder offers nothing.
    tmp_path = tmp_path_factory.mktemp("x")
    assert find("files").offer(project_at(str(tmp_path))) == ""


@table("text", ["[" * 100_000, "<!--" * 50_000, "`" * 200_000, "#" * 100_000 + " ", "**" * 90_000])
def test_hostile_pages_cost_no_more_than_others(tmp_path: Path, text: str):
    put(
        tmp_path,
        **{"README.md": f"# {text}\n\n{text} a b c d e f g\n", "docs/adr/1.md": f"# A\n\n## Decision\n\n{text}\n"},
    )
    read(tmp_path)


@table("part", ["](", "(", "superseded by ", "superseded by ]("])
def test_a_hostile_status_is_read_once(tmp_path: Path, part: str):
    assert_linear(lambda text: decision(tmp_path, "# A\n\n## Status\n\n" + text), part)
