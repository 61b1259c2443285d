"""What is to be forgotten -> a database without its rows, and without its traces in other rows. Any schema of ours.

going.py finds what goes and removes its rows, cutting.py takes its words out of what stays, and databases.py does both
to the live database and to copies.
"""

from foreword.store.forgetting.cutting import Cutter, stays
from foreword.store.forgetting.databases import MAGIC, Copy, Forgetter, made
from foreword.store.forgetting.going import (
    Doomed,
    Execute,
    Going,
    doomed,
    given_to,
    going_of,
    known_as,
    projects,
    told,
    with_merged,
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
    "given_to",
    "going_of",
    "known_as",
    "made",
    "projects",
    "stays",
    "told",
    "with_merged",
]
