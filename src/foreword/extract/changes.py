"""Build the memory of a changed function, from wherever it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.models import Change, Memory, Project

if TYPE_CHECKING:
    from foreword.models import Trust


OF_TESTS = 0.4  # confidence: what a test is called says less than the function that it tests


def memory_of_change(change: Change, *, project: Project, source: str, trust: Trust) -> Memory:
    """One memory for each function of a project: whoever changes it last says what became of it."""
    name = f"{change.function}()" if "(" in change.signature else change.function
    return Memory(
        kind="change",
        title=f"{name} {'deleted from' if change.what == 'DELETED' else 'in'} {change.file}",
        uid=f"chg:{project.key}:{change.file}:{change.function}",
        scope=project.scope,
        project=project.key,
        session=change.session,
        source=source,
        trust=trust,
        confidence=OF_TESTS if is_test(change.file) else 1.0,
        created=change.at,
        confirmed=change.at,
        files=(change.file,),
        functions=(change.function,),
        detail={
            "what": change.what,
            "signature": change.signature,
            "line": change.line,
            "end_line": change.end_line,
        },
    )


def is_test(file: str) -> bool:
    """Whether a file holds tests, by its name and folders."""
    name = file.rpartition("/")[2].lower()
    return (
        name.startswith("test_") or "_test." in name or ".test." in name or ".spec." in name or "/tests/" in f"/{file}"
    )


def combine_changes(before: str, after: str) -> str:
    """Return what two changes of one function are as one; nothing where it was made and taken away again."""
    if before == "NEW":
        return "" if after == "DELETED" else "NEW"
    if before == "DELETED":
        return "MODIFIED" if after != "DELETED" else "DELETED"
    return "DELETED" if after == "DELETED" else "MODIFIED"
