"""A prompt -> the answer of an OpenAI-compatible endpoint: OpenAI, Ollama, llama.cpp, vLLM, LM Studio and others."""

from __future__ import annotations

import time
from typing import Any

from foreword.endpoint import BadAddress, Endpoint, Refused
from foreword.errors import ModelError
from foreword.llm import Completed, NoAnswer, named, posted, understood, usage_of, whole
from foreword.llm.schema import Schema, as_json


class OpenAI:
    """One model there, and what its endpoint turned out not to know."""

    provider = "openai"

    def __init__(self, *, model: str, url: str, key: str = "") -> None:
        self.name = named(model, provider=self.provider, such_as="qwen3:4b")
        if not url:
            raise ModelError(
                "`model_provider = openai` needs `model_url`",
                hint="such as http://127.0.0.1:11434/v1 for an Ollama on this machine",
            )
        try:
            self._endpoint = Endpoint(url, key=key)
        except BadAddress as exc:
            raise ModelError(f"`model_url` {exc}", hint="such as http://127.0.0.1:11434/v1") from exc
        self.where = self._endpoint.host
        self._path = f"{self._endpoint.path.removesuffix('/chat/completions')}/chat/completions"
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._most = "max_tokens"  # OpenAI's newer models take only the longer word, most others only this one
        self._formed = True  # whether it takes a schema; what it answers is checked all the same

    def complete(self, prompt: str, *, system: str, schema: Schema, most_tokens: int, seconds: float) -> Completed:
        began = time.perf_counter()
        end = time.monotonic() + seconds
        while True:
            told = self._told(prompt, system=system, schema=schema, most_tokens=most_tokens)
            try:
                left = max(0.001, end - time.monotonic())
                answer = posted(self._endpoint, self._path, told, headers=self._headers, seconds=left)
                break
            except NoAnswer as exc:
                if not self._learned(exc.__cause__):
                    raise
        used = _used(answer)
        text = _text(answer, used=used, who=self._who)
        data = understood(text, schema, who=self._who, used=used)
        return Completed(data, text, *used, ms=(time.perf_counter() - began) * 1000)

    def close(self) -> None:
        self._endpoint.close()

    def _told(self, prompt: str, *, system: str, schema: Schema, most_tokens: int) -> dict[str, Any]:
        told: dict[str, Any] = {
            "model": self.name,
            self._most: most_tokens,
            "stream": False,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt}],
        }
        if self._formed:
            form = {"name": "answer", "strict": True, "schema": as_json(schema)}
            told["response_format"] = {"type": "json_schema", "json_schema": form}
        return told

    def _learned(self, refusal: BaseException | None) -> bool:
        """Whether a refusal told that this endpoint wants other words; each is learned once, so this ends."""
        if not isinstance(refusal, Refused):
            return False
        if self._most == "max_tokens" and "max_completion_tokens" in refusal.complaint:
            self._most = "max_completion_tokens"
            return True
        if self._formed and ("response_format" in refusal.complaint or "json_schema" in refusal.complaint):
            self._formed = False
            return True
        return False

    @property
    def _who(self) -> str:
        return f"the model at {self.where}"


def _used(answer: Any) -> tuple[int, int]:
    told = usage_of(answer)
    return whole(told.get("prompt_tokens")), whole(told.get("completion_tokens"))


def _text(answer: Any, *, used: tuple[int, int], who: str) -> str:
    try:
        text = answer["choices"][0]["message"]["content"]
    except (TypeError, KeyError, IndexError) as exc:
        raise NoAnswer(f"{who} answered with no message", why="garbage", worked=True, used=used) from exc
    if not isinstance(text, str):
        raise NoAnswer(f"{who} answered with no text", why="garbage", worked=True, used=used)
    return text
