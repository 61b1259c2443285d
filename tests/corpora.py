"""Read the made-up texts of tests/corpora: one a line, in parts; a `~` before a line marks what is known to fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).parent / "corpora"
SHARE = "developed on"  # the part that `make test` reads; `make prove` reads those that were kept aside, too


def read_corpus(name: str, *, held_out: bool) -> dict[str, bool]:
    """Return the rows of a corpus, each with whether it is known to fail; *held_out*: those that were kept aside."""
    part, rows = "", {}
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            part = line[3:]
        elif line and not line.startswith("# ") and (part != SHARE) is held_out:
            rows[line.removeprefix("~").replace("\\n", "\n")] = line.startswith("~")
    return rows


def assert_holds(rows: dict[str, bool], passes: Callable[[str], bool]) -> None:
    """Fail where a row does not pass, and where one passes that is marked: then its mark can go."""
    fail = [row for row, known in rows.items() if not known and not passes(row)]
    fixed = [row for row, known in rows.items() if known and passes(row)]
    assert not fail, f"{len(fail)} of {len(rows)}: {fail}"
    assert not fixed, f"these pass, remove their marks: {fixed}"
