"""What all repositories share: the version of the schema, how rows become memories, and read-only access to a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from foreword.encoding import loads, storable
from foreword.errors import DamagedIndex
from foreword.models import CONTINUING_SOURCES, Memory

if TYPE_CHECKING:
    from foreword.store import Store
    from foreword.store.database import Database

T = TypeVar("T")
P = ParamSpec("P")

SCHEMA = 11  # the version of store/schema.sql, and the newest that this code can read
FOREVER = float("inf")
SEQUENCE_BITS = 32  # place = owner << 32 | sequence
EACH = "(SELECT value FROM json_each(?1))"  # any number of values as one parameter: the statement is prepared once

# A field of `Memory` is a column of the same name, but for the scope, which `owners` has.
FIELDS = tuple(field.name for field in fields(Memory))
MEMORY = ", ".join("o.scope" if name == "scope" else f"m.{name}" for name in FIELDS)
FROM = "FROM memories m JOIN owners o ON o.number = m.owner"
SESSION = "id, host, project, cwd, started, last, ended, events, newest, extracted"

# When the present context window of session ?1 began; an answered start tells it too, for capture may be off.
_CONTINUING = ",".join(f"'{source}'" for source in CONTINUING_SOURCES)
WINDOW = f"""max(coalesce((SELECT window FROM sessions WHERE id = ?1), 0), coalesce((SELECT max(at) FROM injections
 WHERE session = ?1 AND trigger = 'session_start' AND source NOT IN ('', 'question', {_CONTINUING})), 0))"""
# Injections that are in that window: those since it began, and a block that is sent again with every request.
IN_WINDOW = f"(j.at >= {WINDOW} OR (j.trigger = 'session_start' AND j.form = 'xml'))"


class ReadOnly:
    """What a `Database` has for reading, on a connection of the standard library: for a hook without a worker."""

    def __init__(self, execute: Callable[..., Iterable[Any]], *, failures: tuple[type[Exception], ...]) -> None:
        self._execute = execute
        self.failures = failures
        self.trouble: dict[str, str] = {}
        self.commits = 0

    def query(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """Return the rows of a statement."""
        return list(self._execute(sql, bound(parameters)))

    def flush(self) -> None:
        """Do nothing: nothing is written here."""

    @contextmanager
    def same_connection(self) -> Iterator[None]:
        """Do nothing: there is one connection."""
        yield


class Repository:
    """Some tables of a store, which leads to the others."""

    def __init__(self, store: Store) -> None:
        self._store, self._db = store, store.database

    def _all(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        return self._db.query(sql, parameters)

    def _check_index(self) -> None:
        """Raise DamagedIndex where the words index is known to be damaged."""
        if "index" in self._db.trouble:
            raise DamagedIndex(self._db.trouble["index"], hint="run `foreword index`")

    def _owners(self, scopes: Sequence[str]) -> list[Any]:
        """Return number and size of the scopes that exist."""
        return self._all(f"SELECT number, newest FROM owners WHERE scope IN ({marks(scopes)})", tuple(scopes))

    def _memories_at(self, places: Iterable[int]) -> dict[int, Memory]:
        sql = f"SELECT {MEMORY}, m.place {FROM} WHERE m.place IN {EACH}"
        listed = json_list(places)
        return {row[-1]: memory_of(row) for row in self._all(sql, (listed,))} if listed != "[]" else {}


W = TypeVar("W", bound=Any)  # what has a Database as `_db`


def transaction(method: Callable[Concatenate[W, P], T]) -> Callable[Concatenate[W, P], T]:
    """Let a method run in the next commit, all or nothing; called by another such method, it is part of its commit."""

    @wraps(method)
    def in_transaction(self: W, /, *args: P.args, **named: P.kwargs) -> T:
        db: Database = self._db
        return db.write(method, self, *args, **named)

    return in_transaction


def bound(parameters: Sequence[Any] | Mapping[str, Any]) -> Any:
    """Return the parameters of a statement without lone surrogates, which no database takes."""
    if isinstance(parameters, Mapping):
        return {name: storable(each) if isinstance(each, str) else each for name, each in parameters.items()}
    return tuple(storable(each) if isinstance(each, str) else each for each in parameters)


def marks(parameters: Sequence[Any]) -> str:
    return ",".join("?" * len(parameters))


def where(conditions: Mapping[str, Any], *always: str) -> tuple[str, tuple[Any, ...]]:
    """Return a WHERE clause of the conditions that have a value and those of *always*, and these values."""
    set_ones = {condition: value for condition, value in conditions.items() if value}
    every = (*set_ones, *always)
    return f"WHERE {' AND '.join(every)}" if every else "", tuple(set_ones.values())


def json_list(numbers: Iterable[int]) -> str:
    """Return numbers as one parameter of a statement, for `json_each`."""
    return f"[{','.join(map(str, numbers))}]"


def range_of(owner: int) -> tuple[int, int]:
    """Return the first and the last place that can be an owner's."""
    return owner << SEQUENCE_BITS, ((owner + 1) << SEQUENCE_BITS) - 1


def texts(stored: str) -> tuple[str, ...]:
    return tuple(loads(stored)) if stored != "[]" else ()


_DECODE: dict[str, Callable[[Any], Any]] = {  # by the type of a field; text and numbers are stored as they are
    "tuple[str, ...]": texts,
    "Mapping[str, Any]": lambda stored: loads(stored) if stored != "{}" else {},
    "bool": bool,
}
_DECODERS = tuple(_DECODE.get(str(field.type)) for field in fields(Memory))


def as_json(value: Any) -> str:
    """Return *value* as the store writes JSON."""
    return storable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def encoded(value: Any) -> Any:
    """Return a field of a memory as its column holds it."""
    if isinstance(value, (tuple, Mapping)):
        return as_json(dict(value) if isinstance(value, Mapping) else value)
    return int(value) if isinstance(value, bool) else value


def memory_of(row: Sequence[Any]) -> Memory:
    """Return the memory of a row that begins with the columns of MEMORY."""
    values: Any = (decode(value) if decode else value for decode, value in zip(_DECODERS, row, strict=False))
    return Memory(*values)
