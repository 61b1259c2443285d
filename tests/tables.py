"""Run one test over a table of rows, as one case that reports every row that fails."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Test = Callable[..., None]


def table(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Call the decorated test once for each of *rows*, within one case.

    All rows run; failures are raised together, each with its row. A row has its own `tmp_path` and its own `store`, and
    what it changes with `monkeypatch` ends with it; it shares all other fixtures with the other rows.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    listed = list(rows)
    assert listed, "a table without rows tests nothing"

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            failures: list[Exception] = []
            for number, row in enumerate(listed):
                values = dict(zip(columns, row if len(columns) > 1 else (row,), strict=True))
                try:
                    call(test, args, fixtures, values, number)
                except (Exception, pytest.fail.Exception) as error:
                    failure = error if isinstance(error, Exception) else AssertionError(str(error))
                    failure.add_note(f"in row {number}: {values!r}")
                    failures.append(failure)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(listed)} rows fail", failures)

        def call(test: Test, args: Any, fixtures: dict[str, Any], values: dict[str, Any], number: int) -> None:
            mine = dict(fixtures)
            if "store" in signature.parameters:
                mine["store"] = mine["make_store"]()
                if "make_store" not in signature.parameters:
                    del mine["make_store"]
            if "tmp_path" in mine:
                mine["tmp_path"] = mine["tmp_path"] / f"row{number}"
                mine["tmp_path"].mkdir()
            if "monkeypatch" not in mine:
                test(*args, **mine, **values)
                return
            with mine["monkeypatch"].context() as mine["monkeypatch"]:
                test(*args, **mine, **values)

        wanted = {name: each for name, each in signature.parameters.items() if name not in columns}
        if wanted.pop("store", None) is not None and "make_store" not in wanted:
            wanted["make_store"] = inspect.Parameter("make_store", inspect.Parameter.KEYWORD_ONLY)
        run.__signature__ = signature.replace(parameters=list(wanted.values()))  # type: ignore[attr-defined]
        del run.__wrapped__
        return run

    return decorate
