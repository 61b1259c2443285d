"""Describe the form of a model's answer, and check an answer against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Text:
    """A text of at most *most* characters."""

    most: int


@dataclass(frozen=True)
class Many:
    """A list; items behind the first *most* are left out."""

    of: Schema
    most: int


@dataclass(frozen=True)
class Object:
    """These fields, each with its schema; others are left out."""

    fields: Mapping[str, Schema]


Schema: TypeAlias = Text | Many | Object


class BadShape(ValueError):
    """A value does not fit; the message says where, and never repeats the value."""


def checked(schema: Schema, value: object, *, where: str = "") -> Any:
    """Return *value* with the fields of the schema and nothing else; BadShape where a part does not fit."""
    if isinstance(schema, Text):
        if not isinstance(value, str):
            raise BadShape(f"{where or 'it'} is no text")
        if len(value) > schema.most:
            raise BadShape(f"{where or 'it'} has more than {schema.most} characters")
        return value
    if isinstance(schema, Many):
        if not isinstance(value, list):
            raise BadShape(f"{where or 'it'} is no list")
        return [checked(schema.of, each, where=f"{where}[{at}]") for at, each in enumerate(value[: schema.most])]
    if not isinstance(value, dict):
        raise BadShape(f"{where or 'it'} is no object")
    missing = [name for name in schema.fields if name not in value]
    if missing:
        raise BadShape(f"`{missing[0]}` is missing")
    inside = f"{where}." if where else ""
    return {name: checked(inner, value[name], where=f"{inside}{name}") for name, inner in schema.fields.items()}


def as_json(schema: Schema) -> dict[str, Any]:
    """Return the schema as a JSON schema, in the few words that every endpoint knows; we check lengths ourselves."""
    if isinstance(schema, Text):
        return {"type": "string"}
    if isinstance(schema, Many):
        return {"type": "array", "items": as_json(schema.of)}
    return {
        "type": "object",
        "properties": {name: as_json(inner) for name, inner in schema.fields.items()},
        "required": list(schema.fields),
        "additionalProperties": False,
    }
