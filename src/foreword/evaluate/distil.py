"""Conversations with questions -> how many are answered from what was distilled, beside the messages themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from foreword.deeds import Deed
from foreword.distill import distil
from foreword.errors import BadRequest
from foreword.evaluate.scratch import Product, scratch
from foreword.evaluate.sets import Set
from foreword.tokens import count
from foreword.types import Memory, Project, Session
from foreword.words import told_in

FIRST = 5  # sessions that somebody would look at
SPEAKERS = {"user: ": "prompt", "assistant: ": "answer"}
SECOND = 1.0  # between two messages


def conversations(given: Set) -> dict[str, tuple[Deed, ...]]:
    """Each memory of a set as the session it tells: its messages in order."""
    found = {memory.uid: _messages(memory) for memory in given.memories}
    if not any(found.values()):
        raise BadRequest(
            f"{given.name} holds no conversations", hint="a message begins at a line starting `user: ` or `assistant: `"
        )
    return found


def distilled(given: Set) -> Set:
    """The set with what its sessions come to in the place of what was said."""
    project = Project(key=f"eval:{given.name}", name=given.name, root="/")
    kept = []
    for id, deeds in conversations(given).items():
        session = Session(id, "eval", project.key, "/", deeds[0].at if deeds else 0.0, 0.0)
        got = distil(deeds, session=session, project=project)
        kept += [
            replace(memory, uid=f"{id} {number}", scope="", session=id) for number, memory in enumerate(got.memories)
        ]
    return replace(given, memories=_in_time(kept))


def raw(given: Set) -> Set:
    """The set with every message a memory of its own."""
    messages = [
        Memory("observation", deed.text, uid=f"{id} {number}", session=id, created=deed.at, confirmed=deed.at)
        for id, deeds in conversations(given).items()
        for number, deed in enumerate(deeds)
    ]
    return replace(given, memories=_in_time(messages))


def answered(given: Set, *, product: Product, tick: Callable[[], object]) -> dict[str, Any]:
    """How many questions find a session that answers them among the first, and what the memories cost in all."""
    hits: list[bool] = []
    with scratch(given, product=product) as opened:
        for question in opened.questions():
            if question.relevant:
                sessions = dict.fromkeys(each.memory.session for each in opened.ranked(question.prompt, at=question.at))
                hits.append(any(id in question.relevant for id in list(sessions)[:FIRST]))
            tick()
    return {
        "answered": sum(hits) / len(hits) if hits else 0.0,
        "questions": len(hits),
        "memories": len(given.memories),
        "tokens": sum(count(_text(memory)) for memory in given.memories),
    }


def compared(name: str, messages: dict[str, Any], memories: dict[str, Any]) -> dict[str, Any]:
    """Both beside each other."""
    return {
        "name": name,
        "raw": messages,
        "distilled": memories,
        "ratio": memories["answered"] / messages["answered"] if messages["answered"] else None,
        "tokens": memories["tokens"] / messages["tokens"],
    }


def _messages(memory: Memory) -> tuple[Deed, ...]:
    deeds: list[Deed] = []
    for line in memory.body.split("\n"):
        speaker = next((each for each in SPEAKERS if line.startswith(each)), "")
        if speaker:
            at = memory.created + SECOND * len(deeds)
            deeds.append(Deed(kind=SPEAKERS[speaker], at=at, text=line[len(speaker) :]))
        elif deeds:
            deeds[-1] = replace(deeds[-1], text=f"{deeds[-1].text}\n{line}")
    return tuple(deeds)


def _text(memory: Memory) -> str:
    """Everything a memory says, its lists and details included; not which session saw it how often."""
    detail = {name: told for name, told in memory.detail.items() if name != "seen_in"}
    return " ".join((memory.title, memory.body, *memory.tags, *memory.files, *memory.functions, told_in(detail)))


def _in_time(memories: Iterable[Memory]) -> tuple[Memory, ...]:
    return tuple(sorted(memories, key=lambda memory: (memory.created, memory.uid)))


def readable(given: Sequence[Memory]) -> str:
    """What was distilled, for somebody who judges it by reading."""
    lines = []
    for memory in given:
        lines.append(f"{memory.session}  [{memory.kind}] {memory.title}")
        details = {name: told for name, told in memory.detail.items() if name != "seen_in"}
        lines += [
            f"      {name}: {'; '.join(told) if isinstance(told, list) else told}" for name, told in details.items()
        ]
        lines += [f"      about: {', '.join(memory.tags)}"] if memory.tags else []
    return "\n".join(lines)
