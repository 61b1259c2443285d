"""Files that sessions changed -> the few pairs that change together and that nobody would guess."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from foreword.distill.changes import is_test
from foreword.learn.findings import Finding, Verdict, uid_of
from foreword.trust import lowest
from foreword.types import Memory

LEAST = 3  # sessions that changed both
MOSTLY = 0.75  # of the sessions that changed either
MOST = 3  # pairs that a project has a line for
SWEEP = 10  # files of one session; one that changed more renamed something everywhere
COMMON = 0.5  # of the sessions: a file that changes in more of them changes with everything
MANY = 8  # sessions, from which on that can be told
# What changes with everything by its nature, or is made out of another file.
UNTELLING = ("changelog", "readme", "license", "version", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "uv.lock",
             "poetry.lock", "cargo.lock", "go.sum", "go.mod", "package.json", "pyproject.toml", "cargo.toml",
             "__init__", "constraints", "requirements", ".gitignore")  # fmt: skip


def findings(memories: Sequence[Memory], *, project: str) -> tuple[Finding, ...]:
    """Pairs that are known, and as many of the best new ones as there is room for."""
    sessions = [each for each in memories if each.kind == "summary" and each.session and 0 < len(each.files) <= SWEEP]
    sessions.sort(key=lambda each: (each.created, each.session))
    known = [each for each in memories if each.kind == "learning" and each.detail.get("by") == "files"]
    pairs = [(each.files[0], each.files[1]) for each in known if len(each.files) == 2]
    taken = {file for each in known if each.status == "active" for file in each.files}
    for pair in _telling(sessions):
        if len(pairs) >= MOST:
            break
        if taken.isdisjoint(pair) and pair not in pairs:
            pairs.append(pair)
            taken.update(pair)
    return tuple(_finding(pair, sessions, project=project) for pair in pairs)


def _telling(sessions: Sequence[Memory]) -> list[tuple[str, str]]:
    """Pairs that mostly change together, the most frequent first."""
    times = Counter(file for each in sessions for file in set(each.files))
    rare = {
        file
        for file, often in times.items()
        if often >= LEAST and not (len(sessions) >= MANY and often > COMMON * len(sessions))
        if not is_test(file) and not file.rpartition("/")[2].lower().startswith(UNTELLING)
    }
    together = Counter(
        pair for each in sessions for pair in combinations(sorted(rare.intersection(each.files)), 2) if _apart(*pair)
    )
    mostly = [
        pair
        for pair, often in together.items()
        if often >= LEAST and often >= MOSTLY * (times[pair[0]] + times[pair[1]] - often)
    ]
    return sorted(mostly, key=lambda pair: (-together[pair], pair))


def _apart(one: str, other: str) -> bool:
    """Whether it tells something: neighbours of one kind change together in every project, and so do namesakes."""
    (folder, _, name), (other_folder, _, other_name) = one.rpartition("/"), other.rpartition("/")
    (stem, _, ending), (other_stem, _, other_ending) = name.rpartition("."), other_name.rpartition(".")
    return stem != other_stem and (folder != other_folder or ending != other_ending)


def _finding(pair: tuple[str, str], sessions: Sequence[Memory], *, project: str) -> Finding:
    one, other = pair
    touching = [each for each in sessions if one in each.files or other in each.files]
    both = [each for each in touching if one in each.files and other in each.files]
    return Finding(
        uid=uid_of(f"{project}:files", "\0".join(pair)),
        title=f"{one} and {other} change together",
        category="architecture",
        verdicts=tuple(Verdict(session=each.session, at=each.created, confirms=each in both) for each in touching),
        trust=lowest(each.trust for each in both) if both else "agent",
        least=LEAST,
        files=pair,
        detail={"by": "files"},
    )
