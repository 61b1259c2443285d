"""Prometheus text -> its families, or AssertionError: a strict reader of the format, as its specification says."""

from __future__ import annotations

import re
from collections.abc import Mapping

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:{LABEL}(?:,{LABEL})*)?)\}})? (\S+)")
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def families(text: str) -> dict[str, tuple[str, Samples]]:
    """Every family by its name: its type and its samples, each by name and labels."""
    assert text.endswith("\n")
    found: dict[str, tuple[str, Samples]] = {}
    helped = family = ""
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            _, _, helped, said = line.split(" ", 3)
            assert re.fullmatch(NAME, helped)
            assert said
        elif line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert family == helped, "a family is helped before it is typed"
            assert family not in found, "the lines of a family stand together"
            assert kind in SUFFIXES
            assert (kind == "counter") == family.endswith("_total")
            found[family] = (kind, {})
        else:
            _sample(line, family, found)
    for kind, samples in found.values():
        assert samples
        if kind == "histogram":
            _cumulative(samples)
    return found


def _sample(line: str, family: str, found: Mapping[str, tuple[str, Samples]]) -> None:
    matched = SAMPLE.fullmatch(line)
    assert matched, line
    name, labels, number = matched[1], matched[2] or "", float(matched[matched.lastindex or 0])
    kind, samples = found[family]
    assert name in [family + suffix for suffix in SUFFIXES[kind]], line
    pairs = tuple(sorted((each[0], _plain(each[1])) for each in re.findall(LABEL, labels)))
    assert len({key for key, _ in pairs}) == len(pairs)
    assert (name, pairs) not in samples, "each sample once"
    assert kind == "gauge" or number >= 0
    samples[name, pairs] = number


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", lambda each: "\n" if each[1] == "n" else each[1], text)


def _cumulative(samples: Samples) -> None:
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[float, float]]] = {}
    for (name, pairs), number in samples.items():
        if name.endswith("_bucket"):
            others = tuple(pair for pair in pairs if pair[0] != "le")
            groups.setdefault((name.removesuffix("_bucket"), others), []).append((float(dict(pairs)["le"]), number))
    assert groups
    for (name, others), buckets in groups.items():
        assert buckets == sorted(buckets)
        assert [number for _, number in buckets] == sorted(number for _, number in buckets)
        assert buckets[-1] == (float("inf"), samples[f"{name}_count", others])
        assert (f"{name}_sum", others) in samples
