"""Folders with memories.jsonl and queries.jsonl -> sets of memories and questions, every line checked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foreword.encoding import storable
from foreword.errors import BadRequest
from foreword.types import KINDS, Memory

MEMORIES, QUERIES = "memories.jsonl", "queries.jsonl"
FORM = (
    "a set is a folder with memories.jsonl (id, kind, at, title, body, files, functions, session)"
    " and queries.jsonl (id, at, prompt, files, relevant: id -> grade)"
)


@dataclass(frozen=True)
class Question:
    """A prompt at a time, with the memories that would help and the files that were really changed."""

    id: str
    prompt: str
    at: float
    files: tuple[str, ...]
    relevant: Mapping[str, int]  # the id of a memory -> its grade; empty where silence is the right answer


@dataclass(frozen=True)
class Set:
    """The memories of one project and what is asked of them; a memory's `uid` is its id in the file."""

    name: str
    group: str
    memories: tuple[Memory, ...]  # oldest first
    questions: tuple[Question, ...]  # in the order they are asked


def read(folders: Sequence[Path]) -> tuple[Set, ...]:
    """Every set in *folders*, however deep, each once; names that occur twice get their folder's in front."""
    paths = list(dict.fromkeys(path for folder in folders for path in _expanded(folder.absolute())))
    names = [path.name for path in paths]
    return tuple(
        replace(_read(path), name=f"{path.parent.name}/{path.name}" if names.count(path.name) > 1 else path.name)
        for path in paths
    )


def _expanded(folder: Path) -> list[Path]:
    """*folder* itself where it is a set, else all sets below it, by name."""
    if not folder.is_dir():
        raise BadRequest(f"{folder} is not a folder", hint=FORM)
    if (folder / MEMORIES).exists() or (folder / QUERIES).exists():
        return [folder]
    found = sorted({path.parent for name in (MEMORIES, QUERIES) for path in folder.rglob(name)})
    if not found:
        raise BadRequest(f"there is no set in {folder}", hint=FORM)
    return found


def _read(path: Path) -> Set:
    memories = [_memory(line) for line in lines(path / MEMORIES)]
    known = _once(path / MEMORIES, [memory.uid for memory in memories])
    questions = [_question(line, known) for line in lines(path / QUERIES)]
    _once(path / QUERIES, [question.id for question in questions])
    return Set(
        name=path.name,
        group=_group(path),
        memories=tuple(sorted(memories, key=lambda memory: memory.created)),
        questions=tuple(sorted(questions, key=lambda question: question.at)),
    )


def _group(path: Path) -> str:
    """Sets that lie side by side are a group, named after their folder; one that lies alone is its own."""
    beside = [each for each in path.parent.iterdir() if (each / MEMORIES).exists()]
    return path.parent.name if len(beside) > 1 else path.name


def _once(path: Path, ids: Sequence[str]) -> frozenset[str]:
    if not ids:
        raise BadRequest(f"{path} is empty", hint=FORM)
    known: set[str] = set()
    for id in ids:
        if id in known:
            raise BadRequest(f"{path} has the id {id!r} twice", hint="give every line an id of its own")
        known.add(id)
    return frozenset(known)


class Line:
    """One line of a file: its fields, checked as they are asked for, and errors that name the place."""

    def __init__(self, path: Path, number: int, told: Mapping[str, Any], *, hint: str) -> None:
        self.path = path
        self.number = number
        self.told = told
        self.hint = hint

    def wrong(self, what: str, *, hint: str = "") -> BadRequest:
        return BadRequest(f"{self.path}, line {self.number}: {what}", hint=hint or self.hint)

    def text(self, name: str, *, default: str | None = None) -> str:
        given = self.told.get(name, default)
        if not isinstance(given, str) or (default is None and not given.strip()):
            raise self.wrong(f"`{name}` must be {'a text' if default is not None else 'a text that is not empty'}")
        return storable(given)

    def texts(self, name: str) -> tuple[str, ...]:
        given = self.told.get(name, [])
        if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
            raise self.wrong(f"`{name}` must be a list of texts")
        return tuple(given)

    def time(self, name: str) -> float:
        given = self.told.get(name)
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < _END_OF_TIME:
            raise self.wrong(f"`{name}` must be a time in Unix seconds")
        return float(given)


_END_OF_TIME = 1e11  # the year 5138; what is larger was meant as milliseconds


def lines(path: Path, *, hint: str = FORM) -> Iterator[Line]:
    """The objects of a JSONL file; empty lines are passed over, and *hint* goes with whatever is wrong."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors of Windows put a mark in front
    except FileNotFoundError as exc:
        raise BadRequest(f"{path} is missing", hint=hint) from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise BadRequest(f"{path} cannot be read: {exc}", hint="it must be a file of UTF-8 text") from exc
    for number, raw in enumerate(text.split("\n"), start=1):
        if raw.strip():
            yield Line(path, number, _object(path, number, raw), hint=hint)


def _object(path: Path, number: int, raw: str) -> Mapping[str, Any]:
    try:
        told = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise BadRequest(f"{path}, line {number} is not JSON: {exc}", hint="one JSON object on every line") from exc
    if not isinstance(told, dict):
        raise BadRequest(f"{path}, line {number} is not an object", hint="one JSON object on every line")
    return told


def _memory(line: Line) -> Memory:
    kind, at = line.text("kind"), line.time("at")
    if kind not in KINDS:
        raise line.wrong(f"unknown kind {kind!r}", hint=f"one of {', '.join(KINDS)}")
    return Memory(
        kind=kind,
        title=line.text("title"),
        body=line.text("body", default=""),
        uid=line.text("id"),
        files=line.texts("files"),
        functions=line.texts("functions"),
        session=line.text("session", default=""),
        created=at,
        confirmed=at,
    )


def _question(line: Line, known: frozenset[str]) -> Question:
    return Question(
        id=line.text("id"),
        prompt=line.text("prompt"),
        at=line.time("at"),
        files=line.texts("files"),
        relevant=_relevant(line, known),
    )


def _relevant(line: Line, known: frozenset[str]) -> Mapping[str, int]:
    given = line.told.get("relevant")
    if not isinstance(given, dict) or not all(type(grade) is int and 0 <= grade <= 10 for grade in given.values()):
        raise line.wrong("`relevant` must give each memory's id a grade from 0 to 10")
    unknown = [id for id in given if id not in known]
    if unknown:
        raise line.wrong(
            f"`relevant` names {', '.join(map(repr, unknown[:3]))}, which {MEMORIES} does not have",
            hint=f"take {'it' if len(unknown) == 1 else 'them'} out, or add the memory",
        )
    return {id: grade for id, grade in given.items() if grade > 0}
