"""A prompt -> the answer of Anthropic's Messages API, or of one that speaks like it."""

from __future__ import annotations

import time
from typing import Any

from foreword.endpoint import BadAddress, Endpoint
from foreword.errors import ModelError
from foreword.llm import Completed, NoAnswer, named, posted, total, understood, usage_of, whole
from foreword.llm.schema import Schema

URL = "https://api.anthropic.com"
VERSION = "2023-06-01"


class Anthropic:
    """One model there."""

    provider = "anthropic"

    def __init__(self, *, model: str, url: str = "", key: str = "") -> None:
        self.name = named(model, provider=self.provider, such_as="claude-haiku-4-5")
        if not key:
            raise ModelError(
                "`model_provider = anthropic` needs a key",
                hint="foreword config set model_key_env ANTHROPIC_API_KEY, or the path of a file that holds the key",
            )
        try:
            self._endpoint = Endpoint(url or URL, key=key)
        except BadAddress as exc:
            raise ModelError(f"`model_url` {exc}", hint=f"leave it out for {URL}") from exc
        self.where = self._endpoint.host
        self._path = f"{self._endpoint.path.removesuffix('/v1')}/v1/messages"
        self._headers = {"x-api-key": key, "anthropic-version": VERSION}

    def complete(self, prompt: str, *, system: str, schema: Schema, most_tokens: int, seconds: float) -> Completed:
        began = time.perf_counter()
        told = {
            "model": self.name,
            "max_tokens": most_tokens,
            "system": system,
            "messages": [{"role": "user", "content": prompt}],
        }
        answer = posted(self._endpoint, self._path, told, headers=self._headers, seconds=seconds)
        used = _used(answer)
        text = _text(answer, used=used, who=self._who)
        data = understood(text, schema, who=self._who, used=used)
        return Completed(data, text, *used, ms=(time.perf_counter() - began) * 1000)

    def close(self) -> None:
        self._endpoint.close()

    @property
    def _who(self) -> str:
        return f"the model at {self.where}"


def _used(answer: Any) -> tuple[int, int]:
    told = usage_of(answer)
    cached = (told.get("cache_creation_input_tokens"), told.get("cache_read_input_tokens"))
    return total(told.get("input_tokens"), *cached), whole(told.get("output_tokens"))


def _text(answer: Any, *, used: tuple[int, int], who: str) -> str:
    try:
        return "".join([str(part["text"]) for part in answer["content"] if part["type"] == "text"])
    except (TypeError, KeyError) as exc:
        raise NoAnswer(f"{who} answered with no message", why="garbage", worked=True, used=used) from exc
