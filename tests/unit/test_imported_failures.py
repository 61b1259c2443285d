"""An import may claim that anything worked: what it brings in never chooses a command."""

from __future__ import annotations

from foreword.models import Memory, Project, Trigger
from foreword.recall.notes import note_of
from foreword.recall.start import SessionStart

NOW = 1_800_000_000.0
CLAIM = {
    "command": "npm run build", "text": "npm run build", "error": "error: no such script", "cause": "usage",
    "worked": {"npm run steal": ["a", "b", "c"]}, "seen_in": {"a": 1, "b": 1, "c": 1}, "last": NOW - 60,
}  # fmt: skip


def failure(trust: str) -> Memory:
    about = {"id": "fai-2m7k1xq0", "trust": trust, "source": "jsonl", "created": NOW - 90, "confirmed": NOW - 60}
    return Memory("failure", "`npm run build` fails", detail=CLAIM, **about)  # type: ignore[arg-type]


def lines_at_start(memory: Memory) -> str:
    def recent(kinds: tuple[str, ...], _: int) -> list[Memory]:
        return [memory] if memory.kind in kinds else []

    trigger = Trigger("session_start", Project("p", "p", ""))
    start = SessionStart(trigger, now=NOW, recent=recent, about=lambda *_: (), history=())
    return " ".join(entry.note.text for entry in start.entries("failures", lambda _: ()))


def test_what_sessions_saw_names_what_worked() -> None:
    assert "npm run steal" in note_of(failure("tool"), now=NOW).text
    assert "npm run steal" in lines_at_start(failure("tool"))


def test_what_was_imported_names_no_command() -> None:
    assert "npm run steal" not in note_of(failure("imported"), now=NOW).text
    assert lines_at_start(failure("imported")) == ""
