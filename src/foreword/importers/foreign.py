"""Read rows of another tool's SQLite file as plain values, whatever columns it has."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from foreword.errors import StoreError

PATIENCE = 2.0  # seconds that somebody else may hold it; its owner writes for milliseconds
PAGE = 200  # rows at a time


class Foreign:
    """A database of another tool while it is open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._translated_errors():
            how = "immutable=1" if _rests(path) else "mode=ro"
            self._db = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=PATIENCE)
            self._db.text_factory = lambda raw: raw.decode("utf-8", "replace")

    def __enter__(self) -> Foreign:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def columns(self, table: str) -> frozenset[str]:
        """What a table's columns are called; none where there is no such table."""
        with self._translated_errors():
            return frozenset(row[1] for row in self._db.execute(f"PRAGMA table_info({_quoted(table)})"))

    def counts(self, table: str, *, by: Sequence[str]) -> Mapping[tuple[Any, ...], int]:
        """How many rows there are of each combination of these columns; one that is missing is None."""
        there = self.columns(table)
        if not there:
            return {}
        names = ", ".join(_quoted(name) if name in there else "NULL" for name in by)
        places = ", ".join(str(number) for number in range(1, len(by) + 1))
        with self._translated_errors():
            rows = self._db.execute(f"SELECT {names}, count(*) FROM {_quoted(table)} GROUP BY {places}")
            return {tuple(row[:-1]): row[-1] for row in rows}

    def rows(self, table: str, *, columns: Sequence[str], ids: Sequence[Any] | None = None) -> Iterator[dict[str, Any]]:
        """The rows of a table, or those with these ids; a column that is missing is None."""
        there = self.columns(table)
        if not there:
            return
        names = ", ".join(_quoted(name) if name in there else "NULL" for name in columns)
        which = "" if ids is None else f" WHERE id IN ({', '.join('?' * len(ids))})"
        with self._translated_errors():
            found = self._db.execute(f"SELECT {names} FROM {_quoted(table)}{which}", tuple(ids or ()))
            while page := found.fetchmany(PAGE):
                for row in page:
                    yield dict(zip(columns, row, strict=True))

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as exc:
            busy = "locked" in str(exc) or "busy" in str(exc)
            hint = "close the program that uses it and try again" if busy else "see whether its own tool can open it"
            raise StoreError(f"cannot read {self.path}: {exc}", hint=f"{hint}; nothing in it was changed") from exc


def _rests(path: Path) -> bool:
    """Whether it has a write-ahead log and nobody has it open; to open it as usual would leave two files beside it."""
    try:
        with open(path, "rb") as file:
            is_wal = file.read(20)[18:20] == b"\x02\x02"  # the versions in the header that writers and readers need
    except OSError:
        return False
    return is_wal and not Path(f"{path}-wal").exists()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
