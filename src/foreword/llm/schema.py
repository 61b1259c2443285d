"""Data of any kind -> the same data, known to have a form; or the place where it has not. As much as we need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Text:
    """A text of at most so many characters."""

    most: int


@dataclass(frozen=True)
class Many:
    """A list; what comes behind the first so many is left out."""

    of: Schema
    most: int


@dataclass(frozen=True)
class Object:
    """These fields, each of its form; others are left out."""

    fields: Mapping[str, Schema]


Schema: TypeAlias = Text | Many | Object


class BadShape(ValueError):
    """Something is not what it should be; the message says where, and never what it is."""


def checked(schema: Schema, given: object, *, where: str = "") -> Any:
    """*given* with what the schema knows and nothing else; BadShape where a part is missing, too long or another."""
    if isinstance(schema, Text):
        if not isinstance(given, str):
            raise BadShape(f"{where or 'it'} is no text")
        if len(given) > schema.most:
            raise BadShape(f"{where or 'it'} has more than {schema.most} characters")
        return given
    if isinstance(schema, Many):
        if not isinstance(given, list):
            raise BadShape(f"{where or 'it'} is no list")
        return [checked(schema.of, each, where=f"{where}[{at}]") for at, each in enumerate(given[: schema.most])]
    if not isinstance(given, dict):
        raise BadShape(f"{where or 'it'} is no object")
    missing = [name for name in schema.fields if name not in given]
    if missing:
        raise BadShape(f"`{missing[0]}` is missing")
    inside = f"{where}." if where else ""
    return {name: checked(form, given[name], where=f"{inside}{name}") for name, form in schema.fields.items()}


def as_json(schema: Schema) -> dict[str, Any]:
    """The same as a JSON schema, in the few words that every endpoint understands; lengths are ours to check."""
    if isinstance(schema, Text):
        return {"type": "string"}
    if isinstance(schema, Many):
        return {"type": "array", "items": as_json(schema.of)}
    return {
        "type": "object",
        "properties": {name: as_json(form) for name, form in schema.fields.items()},
        "required": list(schema.fields),
        "additionalProperties": False,
    }
