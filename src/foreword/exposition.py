"""What was counted since the store began -> the text that Prometheus reads. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from foreword.statistics import RECALLS, SILENCES
from foreword.store.statistics import BOUNDS, Totals
from foreword.types import KINDS, MOMENTS

SINCE_START = (
    ("hook_calls_total", "hooks", "Calls of hooks"),
    ("spooled_events_total", "spooled", "Events taken in from the spool"),
)


def exposition(
    totals: Totals,
    *,
    rows: Mapping[str, int],
    gauges: Mapping[str, float],
    since_start: Mapping[str, int],
    project: str = "",
    hosts: Sequence[str] = (),
) -> str:
    """All of it in the text format of Prometheus; no name of a project but the one that was asked for."""
    own = {"project": project} if project else {}
    page = _Page(own)
    page.family("uptime_seconds", "gauge", "Seconds since the worker began.", [({}, gauges["uptime_seconds"])])
    if not project:  # these are of all projects, and cannot be told apart
        page.family("database_bytes", "gauge", "Size of the database.", [({}, gauges["database_bytes"])])
        page.family("database_max_bytes", "gauge", "The cap of that, 0 for none.", [({}, gauges["database_max_bytes"])])
        page.family("rows", "gauge", "Rows of each table.", [({"table": name}, n) for name, n in sorted(rows.items())])
        for name, what, help in SINCE_START:
            page.family(name, "counter", f"{help} since the worker began.", [({}, since_start.get(what, 0))])
    moments = {name: totals.moments.get(name, (0, 0, 0.0, (0,) * len(BOUNDS))) for name in MOMENTS}
    told = [({"moment": name}, each[0]) for name, each in moments.items()]
    page.family("injections_total", "counter", "Injections that were given.", told)
    told = [({"moment": name}, each[1]) for name, each in moments.items()]
    page.family("injected_tokens_total", "counter", "Tokens that were given.", told)
    page.histogram("build_seconds", "Time to build what was given.", {"moment": moments})
    for what, prefix in (("recalls", RECALLS), ("silences", SILENCES)):
        told = [({"moment": name}, int(totals.tallies.get(f"{prefix}{name}", 0))) for name in MOMENTS]
        help = "Times that context was wanted." if what == "recalls" else "Times that nothing was worth giving."
        page.family(f"{what}_total", "counter", help, told)
    for name, number in zip(("shown", "used", "ignored"), totals.items, strict=True):
        page.family(f"items_{name}_total", "counter", f"Items of injections that were {name}.", [({}, number)])
    memories = [({"kind": kind}, totals.memories.get(kind, 0)) for kind in KINDS]
    page.family("memories", "gauge", "Active memories.", memories)
    sessions: Counter[str] = Counter()
    for host, number in totals.sessions.items():
        sessions[host if host in hosts else "other"] += number
    page.family(
        "sessions", "gauge", "Sessions that are known.", [({"host": h}, n) for h, n in sorted(sessions.items())]
    )
    calls_, into, out = totals.model
    page.family("model_calls_total", "counter", "Calls of the optional model.", [({}, calls_)])
    spent = [({"direction": "in"}, into), ({"direction": "out"}, out)]
    page.family("model_tokens_total", "counter", "Tokens that it was given and gave.", spent)
    return page.text()


class _Page:
    """Families of metrics, in the order in which they are written."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = labels
        self._lines: list[str] = []

    def family(self, name: str, kind: str, help: str, samples: Sequence[tuple[Mapping[str, str], float]]) -> None:
        if not samples:
            return
        self._head(name, kind, help)
        for labels, number in samples:
            self._sample(name, labels, number)

    def histogram(
        self, name: str, help: str, by: Mapping[str, Mapping[str, tuple[int, int, float, Sequence[int]]]]
    ) -> None:
        self._head(name, "histogram", help)
        for label, groups in by.items():
            for group, (count, _, total_ms, upto) in groups.items():
                for bound, number in zip(
                    (*(f"{each / 1000:g}" for each in BOUNDS), "+Inf"), (*upto, count), strict=True
                ):
                    self._sample(f"{name}_bucket", {label: group, "le": bound}, number)
                self._sample(f"{name}_sum", {label: group}, round(total_ms / 1000, 6))
                self._sample(f"{name}_count", {label: group}, count)

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def _head(self, name: str, kind: str, help: str) -> None:
        self._lines += [f"# HELP foreword_{name} {help}", f"# TYPE foreword_{name} {kind}"]

    def _sample(self, name: str, labels: Mapping[str, str], number: float) -> None:
        told = ",".join(f'{key}="{_escaped(each)}"' for key, each in {**self._labels, **labels}.items())
        self._lines.append(f"foreword_{name}{{{told}}} {number}" if told else f"foreword_{name} {number}")


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
