"""A prompt and a schema -> data that keeps to it, and what it cost: what a model is, and the one the settings choose.

Off unless the user turned it on; nothing of this is imported before. A model has no tools: all it can do is answer.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from foreword.endpoint import Endpoint, Failed
from foreword.errors import ModelError
from foreword.llm.schema import BadShape, Schema, checked
from foreword.paths import expand

if TYPE_CHECKING:
    from foreword.config import Settings

UNTOLD = -1  # tokens that nobody told
MOST_TOLD = 2_000_000  # tokens of one call; no model reads more, and who tells more is not believed
MOST_ANSWER = 1024 * 1024  # bytes; the longest answer that is asked for is 10 KB
MOST_KEY = 4096  # bytes of a file with a key
PASSES = "it is tried again by itself; `foreword config set model_provider off` ends that"
LOOK_AT = "look at `model_name`, `model_url` and what `model_key_env` names"


@dataclass(frozen=True)
class Completed:
    """An answer that keeps to its schema; tokens are UNTOLD where the provider does not tell them."""

    data: Any
    text: str
    tokens_in: int
    tokens_out: int
    ms: float


class Model(Protocol):
    """Answers in the form of a schema, or raises ModelError."""

    @property
    def provider(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def where(self) -> str:
        """The host that the texts go to."""

    def complete(self, prompt: str, *, system: str, schema: Schema, most_tokens: int, seconds: float) -> Completed: ...

    def close(self) -> None:
        """End what is being asked; it fails at once."""


class NoAnswer(Failed, ModelError):
    """A model did not answer with what was asked for; `used` is what it told of its cost all the same."""

    def __init__(
        self,
        what: str,
        *,
        why: str,
        hint: str = PASSES,
        passing: bool = True,
        after: float = 0.0,
        worked: bool = False,
        used: tuple[int, int] = (UNTOLD, UNTOLD),
    ) -> None:
        super().__init__(what, why=why, passing=passing, after=after, worked=worked)
        self.hint = hint
        self.used = used


def chosen(settings: Settings, environ: Mapping[str, str]) -> Model | None:
    """The model that the settings name; None where it is off, and ModelError where they make no sense."""
    if settings.model_provider == "off":
        return None
    key = _key(settings.model_key_env, environ)
    if settings.model_provider == "anthropic":
        from foreword.llm.anthropic import Anthropic

        return Anthropic(model=settings.model_name, url=settings.model_url, key=key)
    from foreword.llm.openai import OpenAI

    return OpenAI(model=settings.model_name, url=settings.model_url, key=key)


def posted(endpoint: Endpoint, path: str, told: object, *, headers: Mapping[str, str], seconds: float) -> Any:
    """The JSON that an endpoint answers with; whatever else it does is a NoAnswer that names it."""
    who = f"the model at {endpoint.host}"
    try:
        raw = endpoint.post(path, told, headers=headers, seconds=seconds, most=MOST_ANSWER)
    except Failed as exc:
        # What it answers with may repeat what it was sent: it is not told.
        hint = PASSES if exc.passing else LOOK_AT
        passing = exc.passing or exc.why == "http-400"  # perhaps only this text
        told_of = {"why": exc.why, "after": exc.after, "worked": exc.worked}
        raise NoAnswer(f"{who} {exc}", hint=hint, passing=passing, **told_of) from exc  # type: ignore[arg-type]
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise NoAnswer(f"{who} answered with something that is no JSON", why="garbage", worked=True) from exc


def understood(text: str, schema: Schema, *, who: str, used: tuple[int, int]) -> Any:
    """The data in a model's own words, which may stand in a fence, or behind its thoughts."""
    said = text.rpartition("</think>")[2]
    try:
        given, _ = json.JSONDecoder().raw_decode(said, max(0, said.find("{")))
    except (ValueError, RecursionError) as exc:
        raise NoAnswer(f"{who} answered without JSON", why="not-json", worked=True, used=used) from exc
    try:
        return checked(schema, given)
    except BadShape as exc:
        raise NoAnswer(f"{who} did not keep to the form: {exc}", why="schema", worked=True, used=used) from exc


def usage_of(answer: Any) -> Mapping[str, Any]:
    """What an answer tells of its cost, under whatever names; nothing where it tells none."""
    told = answer.get("usage") if isinstance(answer, dict) else None
    return told if isinstance(told, dict) else {}


def whole(told: object) -> int:
    """The tokens that somebody tells; UNTOLD where that can be no count."""
    return told if isinstance(told, int) and not isinstance(told, bool) and 0 <= told <= MOST_TOLD else UNTOLD


def total(*told: object) -> int:
    """The sum of what is told; UNTOLD where the first is."""
    counts = [whole(each) for each in told]
    return UNTOLD if counts[0] == UNTOLD else sum(each for each in counts if each != UNTOLD)


def named(model: str, *, provider: str, such_as: str) -> str:
    """The name of a model, which must be given."""
    if not model:
        raise ModelError(
            f"`model_provider = {provider}` needs `model_name`", hint=f"foreword config set model_name {such_as}"
        )
    return model


def _key(place: str, environ: Mapping[str, str]) -> str:
    """The key in the environment or in a file, wherever the setting says; nothing where it says nothing."""
    if not place:
        return ""
    key = _in_file(expand(place, environ)) if "/" in place else environ.get(place, "").strip()
    if not key and "/" not in place:
        raise ModelError(
            f"the environment variable {place} that `model_key_env` names is not set where the worker runs",
            hint=f"export {place}, then `foreword worker stop`; or put the key into a file, and name its path",
        )
    if not key.isascii() or not key.isprintable() or not key or " " in key:
        raise ModelError(f"what {place} holds is no key", hint="it must hold the key and nothing else")
    return key


def _in_file(path: str) -> str:
    try:
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode):
            raise ModelError(f"{path} is no file", hint="`model_key_env` names a file that holds the key")
        if about.st_mode & 0o077:
            raise ModelError(f"others can read the key in {path}", hint=f"chmod 600 {path}")
        with open(path, "rb") as file:
            return file.read(MOST_KEY).decode("utf-8", "replace").strip()
    except OSError as exc:
        raise ModelError(f"the key in {path} cannot be read: {exc.strerror}", hint="look at `model_key_env`") from exc
