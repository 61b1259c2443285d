"""A changed function -> the memory of it, from wherever it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.types import Change, Memory, Project

if TYPE_CHECKING:
    from foreword.types import Trust


def memory_of_change(change: Change, *, project: Project, source: str, trust: Trust) -> Memory:
    """One memory for each function of a project: whoever changes it last says what became of it."""
    name = f"{change.function}()" if "(" in change.signature else change.function
    return Memory(
        kind="change",
        title=f"{name} in {change.file}",
        uid=f"chg:{project.key}:{change.file}:{change.function}",
        scope=project.scope,
        project=project.key,
        session=change.session,
        source=source,
        trust=trust,
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
