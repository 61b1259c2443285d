"""Check fitted constants by leaving one project out: fit each on the other projects, and report on this one.

    python -m bench.eval.lopo [PROJECT ...]

Each project is replayed once. What decides about notes and about the files of a session start is recorded, and decided
again with other values. A note counts for its value if the next turn touches a file of it, and against it if not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.eval.replay import Result, replay_project
from bench.eval.sessions import SESSIONS, projects
from foreword.recall import files, pipeline, relevance, start

Grid = dict[tuple[Any, str], tuple[float, ...]]  # module and constant -> values that are tried
NOTES: Grid = {
    (relevance, "MIN_SCORE"): (0.3, 0.4, 0.5, 0.6, 0.7, 0.9, 1.1),
    (relevance, "ANCHORED_FACTOR"): (0.4, 0.55, 0.7, 0.85, 1.0),
    (relevance, "TITLED_FACTOR"): (0.4, 0.55, 0.7, 1.0),
    (relevance, "ANCHORED_COVERAGE"): (0.15, 0.25, 0.35, 0.45),
    (relevance, "TITLED_COVERAGE"): (0.35, 0.5, 0.65),
    (relevance, "OTHER_COVERAGE"): (0.25, 0.33, 0.45, 0.6),
    (relevance, "CLEAR_COVERAGE"): (0.5, 0.6, 0.7, 1.1),
    (relevance, "OTHER_MIN_WORDS"): (2, 3, 4, 5),
    (relevance, "SAME_TOPIC_FACTOR"): (1.0, 1.2, 1.4, 1.8, 2.5),
    (relevance, "NEXT_NOTE"): (0.6, 0.8, 0.9),
}
STARTS: Grid = {
    (start, "FILES"): (7, 8, 9, 10, 11, 12, 14),
    (files, "HALF_LIFE_TURNS"): (4, 8, 16),
    (files, "READ"): (0.0, 0.2, 0.4, 0.6, 0.8),
    (files, "AGAIN"): (0.0, 0.1, 0.2, 0.5, 1.0),
}


@dataclass
class Recorded:
    """What was decided about in one project's replay, and what its agents did."""

    choices: list[dict[str, Any]] = field(default_factory=list)  # arguments of `choose`, with session and time
    starts: list[dict[str, Any]] = field(default_factory=list)  # turns that were known, with session and time
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of each memory that was a candidate
    result: Result = field(default_factory=dict)

    def truth(self, moment: str, session: str, at: float) -> Mapping[str, Any] | None:
        """Return the replay's record of a prompt or a session start."""
        rows = (row for row in self.result["records"] if row["moment"] == moment and row["session"] == session)
        return next((row for row in rows if abs(row["at"] - at) < 1), None)


def main(argv: Sequence[str] | None = None) -> int:
    """Replay the projects, and print a table for notes and one for session starts."""
    names = list(sys.argv[1:] if argv is None else argv) or projects(SESSIONS)
    recorded = {name: record(SESSIONS / name) for name in names}
    for title, grid, judge in (("notes", NOTES, judge_notes), ("session starts", STARTS, judge_starts)):
        print(f"\n| {title} | now | fitted without: {', '.join(names)} | left-out sum, fitted | now |")
        print("|---|---|---|---|---|")
        for constant, values in grid.items():
            print(row(constant, values, recorded, judge))
    return 0


def record(folder: Path) -> Recorded:
    """Replay one project and keep what notes and session starts were chosen from."""
    kept = Recorded()
    choose, candidate, begin = relevance.choose, pipeline._Recall._candidate, start.SessionStart.__init__
    position: dict[str, Any] = {}

    def keep_candidate(self: Any, entry: Any, **more: Any) -> Any:
        position.update(session=self.trigger.session, at=self.now)
        kept.files[entry.ranked.memory.id] = entry.ranked.memory.files
        return candidate(self, entry, **more)

    def keep_choice(weights: Any, candidates: Any, *, kind: Any) -> Any:
        if candidates:
            kept.choices.append({**position, "weights": weights, "candidates": candidates, "kind": kind})
        return choose(weights, candidates, kind=kind)

    def keep_start(self: Any, trigger: Any, *, now: float, history: Any, **more: Any) -> None:
        kept.starts.append({"session": trigger.session, "at": now, "turns": list(history[: start.TURNS])})
        begin(self, trigger, now=now, history=history, **more)

    with (
        patch.object(relevance, "choose", keep_choice),
        patch.object(pipeline._Recall, "_candidate", keep_candidate),
        patch.object(start.SessionStart, "__init__", keep_start),
    ):
        kept.result = replay_project(folder, each_turn=True)
    return kept


Judge = Callable[[Recorded], tuple[float, str]]  # -> what is to be made large, and how it is told


WORTH = 0.4  # share of blocks that must help: a note that is right more often than that is worth giving


def judge_notes(kept: Recorded) -> tuple[float, str]:
    """Return what the notes in front of turns that did some work are worth: touched, less WORTH of all."""
    touched = shown = 0
    for each in kept.choices:
        chosen = relevance.choose(each["weights"], each["candidates"], kind=each["kind"]).notes
        record = kept.truth("UserPromptSubmit", each["session"], each["at"])
        work = {*record["truth"]["edited"], *record["truth"]["read"]} if record else set()
        if chosen and work:
            shown += 1
            touched += not work.isdisjoint(path for match in chosen for path in kept.files[match.id])
    return touched - WORTH * shown, f"{touched} of {shown}"


def judge_starts(kept: Recorded) -> tuple[float, str]:
    """Return hit and precision of the files of a session start, added: both are wanted."""
    named = right = hit = knowable = 0
    for each in kept.starts:
        record = kept.truth("SessionStart", each["session"], each["at"])
        if record is None or not record["truth"]["edited"]:
            continue
        turns = [turn for turn in each["turns"] if turn.session != each["session"]]
        paths, edited = set(files.recent_files(turns)[: int(start.FILES)]), set(record["truth"]["edited"])
        named, right = named + len(paths), right + len(paths & edited)
        knowable, hit = knowable + bool(record["knowable"]), hit + bool(record["knowable"] and paths & edited)
    precision, share = right / max(1, named), hit / max(1, knowable)
    return precision + share, f"{share:.2f} at {precision:.3f}"


def row(constant: tuple[Any, str], values: Sequence[float], recorded: Mapping[str, Recorded], judge: Judge) -> str:
    """Return a line of the table: the value that fits best without each project, and what it gives on that project."""
    module, name = constant
    now = getattr(module, name)
    judged = {value: dict(_judged(module, name, value, recorded, judge)) for value in (now, *values)}
    fitted = {
        left: max(values, key=lambda value: (_others(judged[value], left), value == now, -abs(value - now)))
        for left in recorded
    }
    texts = {left: judged[value][left] for left, value in fitted.items()}
    return " | ".join(
        (
            f"| `{name}`",
            f"{now:g}",
            ", ".join(f"{fitted[left]:g}" for left in recorded),
            "; ".join(text for _, text in texts.values()),
            "; ".join(judged[now][left][1] for left in recorded) + " |",
        )
    )


def _judged(
    module: Any, name: str, value: float, recorded: Mapping[str, Recorded], judge: Judge
) -> Iterator[tuple[str, tuple[float, str]]]:
    with _set(module, name, value):
        yield from [(project, judge(kept)) for project, kept in recorded.items()]


def _others(judged: Mapping[str, tuple[float, str]], left: str) -> float:
    return sum(good for project, (good, _) in judged.items() if project != left)


@contextmanager
def _set(module: Any, name: str, value: float) -> Iterator[None]:
    with patch.object(module, name, value):
        yield


if __name__ == "__main__":
    sys.exit(main())
