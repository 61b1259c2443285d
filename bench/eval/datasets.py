"""Read sets of memories and questions, and texts with their token counts, from JSON lines; check every line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foreword.errors import BadRequest
from foreword.models import KINDS, Memory
from foreword.recall.tokens import FAMILIES

MEMORIES, QUERIES = "memories.jsonl", "queries.jsonl"
FORM = "bench/README.md lists the fields"
COLUMNS = {family: family.replace("-", "_").replace(".", "_") for family in FAMILIES}  # claude-4.7 -> claude_4_7
END_OF_TIME = 1e11  # the year 5138; a larger number is in milliseconds


@dataclass(frozen=True)
class Question:
    """A prompt at a time, with the memories that would help and the files that were really changed."""

    id: str
    prompt: str
    at: float
    files: tuple[str, ...]
    relevant: Mapping[str, int]  # the id of a memory -> its grade; empty where silence is the right answer


@dataclass(frozen=True)
class Dataset:
    """The memories of one project and the questions about them; a memory's `uid` is its id in the file."""

    name: str
    group: str
    memories: tuple[Memory, ...]  # oldest first
    questions: tuple[Question, ...]  # in the order they are asked


@dataclass(frozen=True)
class Sample:
    """A text, and its true number of tokens by tokenizer family."""

    category: str
    text: str
    counts: Mapping[str, int]


def read_sets(folders: Sequence[Path]) -> list[Dataset]:
    """Return every set in *folders*, however deep, each once; equal names get their parent folder in front."""
    paths = list(dict.fromkeys(path for folder in folders for path in _set_folders(folder.absolute())))
    names = [path.name for path in paths]
    return [
        _read_set(path, name=f"{path.parent.name}/{path.name}" if names.count(path.name) > 1 else path.name)
        for path in paths
    ]


def read_samples(path: Path) -> list[Sample]:
    """Return the samples of a file of texts with their token counts."""
    samples = [_sample(row) for row in _rows(path)]
    if not samples:
        raise BadRequest(f"{path} is empty", hint=FORM)
    return samples


def _set_folders(folder: Path) -> list[Path]:
    """Return *folder* itself where it is a set, else all sets below it, by name."""
    if not folder.is_dir():
        raise BadRequest(f"{folder} is not a folder", hint=FORM)
    if (folder / MEMORIES).exists() or (folder / QUERIES).exists():
        return [folder]
    found = sorted({path.parent for name in (MEMORIES, QUERIES) for path in folder.rglob(name)})
    if not found:
        raise BadRequest(f"there is no set in {folder}", hint=FORM)
    return found


def _read_set(path: Path, *, name: str) -> Dataset:
    memories = [_memory(row) for row in _rows(path / MEMORIES)]
    known = _unique(path / MEMORIES, [memory.uid for memory in memories])
    questions = [_question(row, known) for row in _rows(path / QUERIES)]
    _unique(path / QUERIES, [question.id for question in questions])
    # Sets that lie side by side are a group, named after their folder.
    siblings = [each for each in path.parent.iterdir() if (each / MEMORIES).exists()]
    return Dataset(
        name=name,
        group=path.parent.name if len(siblings) > 1 else path.name,
        memories=tuple(sorted(memories, key=lambda memory: memory.created)),
        questions=tuple(sorted(questions, key=lambda question: question.at)),
    )


def _unique(path: Path, ids: Sequence[str]) -> frozenset[str]:
    if not ids:
        raise BadRequest(f"{path} is empty", hint=FORM)
    twice = sorted({id for id in ids if ids.count(id) > 1}) if len(set(ids)) < len(ids) else []
    if twice:
        raise BadRequest(f"{path} has the id {twice[0]!r} twice", hint="give every line an id of its own")
    return frozenset(ids)


@dataclass(frozen=True)
class _Row:
    """One line of a file; its fields are checked when they are read, and errors name the place."""

    place: str
    fields: Mapping[str, Any]

    def error(self, problem: str) -> BadRequest:
        return BadRequest(f"{self.place}: {problem}", hint=FORM)

    def text(self, name: str, *, default: str | None = None) -> str:
        value = self.fields.get(name, default)
        if not isinstance(value, str) or (default is None and not value.strip()):
            raise self.error(f"`{name}` must be a text{' that is not empty' if default is None else ''}")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.fields.get(name, [])
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.error(f"`{name}` must be a list of texts")
        return tuple(value)

    def time(self, name: str) -> float:
        value = self.fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < END_OF_TIME:
            raise self.error(f"`{name}` must be a time in Unix seconds")
        return float(value)


def _rows(path: Path) -> Iterator[_Row]:
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors on Windows write a byte order mark
    except FileNotFoundError as exc:
        raise BadRequest(f"{path} is missing", hint=FORM) from exc
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except ValueError as exc:
            raise BadRequest(f"{path}, line {number} is not JSON: {exc}", hint="one JSON object on every line") from exc
        if not isinstance(fields, dict):
            raise BadRequest(f"{path}, line {number} is not an object", hint="one JSON object on every line")
        yield _Row(f"{path}, line {number}", fields)


def _memory(row: _Row) -> Memory:
    kind, at = row.text("kind"), row.time("at")
    if kind not in KINDS:
        raise row.error(f"unknown kind {kind!r}, not one of {', '.join(KINDS)}")
    return Memory(
        kind=kind,
        title=row.text("title"),
        body=row.text("body", default=""),
        uid=row.text("id"),
        files=row.texts("files"),
        functions=row.texts("functions"),
        session=row.text("session", default=""),
        created=at,
        confirmed=at,
    )


def _question(row: _Row, known: frozenset[str]) -> Question:
    relevant = row.fields.get("relevant")
    if not isinstance(relevant, dict) or not all(type(each) is int and 0 <= each <= 10 for each in relevant.values()):
        raise row.error("`relevant` must give each memory's id a grade from 0 to 10")
    unknown = [id for id in relevant if id not in known]
    if unknown:
        raise row.error(f"`relevant` names {', '.join(map(repr, unknown[:3]))}, which {MEMORIES} does not have")
    return Question(
        id=row.text("id"),
        prompt=row.text("prompt"),
        at=row.time("at"),
        files=row.texts("files"),
        relevant={id: grade for id, grade in relevant.items() if grade > 0},
    )


def _sample(row: _Row) -> Sample:
    counts = {family: row.fields[column] for family, column in COLUMNS.items() if column in row.fields}
    if not counts or not all(type(each) is int and each > 0 for each in counts.values()):
        raise row.error(f"needs a count of at least 1 under one of {', '.join(COLUMNS.values())}")
    return Sample(category=row.text("category"), text=row.text("text"), counts=counts)
