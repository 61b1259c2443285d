"""Measure how many questions about conversations are answered from the extracted memories, against the raw messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench.eval.datasets import Dataset
from bench.eval.scratch import open_scratch
from foreword.extract.actions import Action
from foreword.extract.session import extract_session
from foreword.models import Memory, Project, Session
from foreword.recall.pipeline import Options
from foreword.recall.tokens import count
from foreword.terms import text_in

FIRST = 5  # sessions that somebody would look at
SPEAKERS = {"user: ": "prompt", "assistant: ": "answer"}
SECOND = 1.0  # between two messages

Conversations = Mapping[str, Sequence[Action]]


def conversations_of(dataset: Dataset) -> Conversations:
    """Return the messages of each memory that tells a session, by its id; empty where no memory holds messages."""
    found = {memory.uid: _messages(memory) for memory in dataset.memories}
    return found if any(found.values()) else {}


def measure_extraction(
    dataset: Dataset, conversations: Conversations, memories: Sequence[Memory], *, options: Options
) -> dict[str, Any]:
    """Return what the extracted *memories* of a set answer and cost, and what its raw messages do."""
    messages = [
        Memory("observation", action.text, uid=f"{id} {number}", session=id, created=action.at, confirmed=action.at)
        for id, actions in conversations.items()
        for number, action in enumerate(actions)
    ]
    raw = _answered(dataset, messages, options=options)
    extracted = _answered(dataset, memories, options=options)
    return {
        "name": dataset.name,
        "raw": raw,
        "extracted": extracted,
        "ratio": extracted["answered"] / raw["answered"] if raw["answered"] else None,
        "tokens": extracted["tokens"] / raw["tokens"],
    }


def extract(dataset: Dataset, conversations: Conversations) -> list[Memory]:
    """Return the memories that the conversations of a set come to."""
    project = Project(key=f"eval:{dataset.name}", name=dataset.name, root="/")
    memories: list[Memory] = []
    for id, actions in conversations.items():
        session = Session(id, "eval", project.key, "/", actions[0].at if actions else 0.0, 0.0)
        got = extract_session(actions, session=session, project=project)
        memories += [
            replace(memory, uid=f"{id} {number}", scope="", session=id) for number, memory in enumerate(got.memories)
        ]
    return memories


def describe(memories: Iterable[Memory]) -> str:
    """Return the extracted memories as text for somebody who judges them by reading."""
    lines = []
    for memory in memories:
        lines.append(f"{memory.session}  [{memory.kind}] {memory.title}")
        for name, value in _detail(memory).items():
            lines.append(f"      {name}: {'; '.join(value) if isinstance(value, list) else value}")
        lines += [f"      about: {', '.join(memory.tags)}"] if memory.tags else []
    return "\n".join(lines)


def _answered(dataset: Dataset, memories: Iterable[Memory], *, options: Options) -> dict[str, Any]:
    """Return the share of questions that find a session that answers them among the first, and what all cost."""
    ordered = tuple(sorted(memories, key=lambda memory: (memory.created, memory.uid)))
    hits: list[bool] = []
    with open_scratch(replace(dataset, memories=ordered), options=options) as scratch:
        for question in scratch.questions():
            if question.relevant:
                sessions = dict.fromkeys(each.memory.session for each in scratch.rank(question.prompt, at=question.at))
                hits.append(any(id in question.relevant for id in list(sessions)[:FIRST]))
    return {
        "answered": sum(hits) / len(hits) if hits else 0.0,
        "questions": len(hits),
        "memories": len(ordered),
        "tokens": sum(count(_text(memory)) for memory in ordered),
    }


def _messages(memory: Memory) -> list[Action]:
    actions: list[Action] = []
    for line in memory.body.split("\n"):
        speaker = next((each for each in SPEAKERS if line.startswith(each)), "")
        if speaker:
            at = memory.created + SECOND * len(actions)
            actions.append(Action(kind=SPEAKERS[speaker], at=at, text=line[len(speaker) :]))
        elif actions:
            actions[-1] = replace(actions[-1], text=f"{actions[-1].text}\n{line}")
    return actions


def _text(memory: Memory) -> str:
    """Return everything that a memory says, its lists and details included."""
    parts = (memory.title, memory.body, *memory.tags, *memory.files, *memory.functions, text_in(_detail(memory)))
    return " ".join(parts)


def _detail(memory: Memory) -> dict[str, Any]:
    return {name: value for name, value in memory.detail.items() if name != "seen_in"}  # that is counting, not telling
