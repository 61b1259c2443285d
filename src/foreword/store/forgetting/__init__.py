"""What is to be forgotten -> its rows, its traces in other rows, and a database without either. Any schema of ours."""

from foreword.store.forgetting.going import (
    MAGIC,
    Copy,
    Cutter,
    Doomed,
    Execute,
    Forgetter,
    Going,
    doomed,
    going_of,
    known_as,
    projects,
    stays,
    told,
    with_merged,
    would_cut,
)

__all__ = [
    "MAGIC",
    "Copy",
    "Cutter",
    "Doomed",
    "Execute",
    "Forgetter",
    "Going",
    "doomed",
    "going_of",
    "known_as",
    "projects",
    "stays",
    "told",
    "with_merged",
    "would_cut",
]
