"""Ask a model of the user's choice for a JSON object within the daily cap: Anthropic's API, or one like OpenAI's.

A model has no tools: all it can do is answer.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from foreword.config import Settings
from foreword.endpoint import BadAddress, Endpoint, Failed
from foreword.errors import ModelError
from foreword.models import ModelCall
from foreword.paths import expand
from foreword.recall.tokens import count, family_of
from foreword.store import Store

ANTHROPIC_URL, ANTHROPIC_VERSION = "https://api.anthropic.com", "2023-06-01"
OLLAMA = "such as http://127.0.0.1:11434/v1 for an Ollama on this machine"
DAY = 86_400.0  # seconds; the cap is for any 24 hours, so that midnight and time zones double nothing
MOST_TOKENS = 2_000_000  # of one call; no model reads more, and a higher figure is not believed
MOST_ANSWER = 1024 * 1024  # bytes; the longest answer that we ask for is 10 KB
MOST_KEY = 4096  # bytes of a file with a key


@dataclass(frozen=True)
class Answer:
    """The JSON object of an answer, and its tokens; None where the provider does not say."""

    data: dict[str, Any]
    tokens_in: int | None
    tokens_out: int | None


class NoAnswer(ModelError):
    """A model did not answer with a JSON object; `used` are its tokens, (0, 0) where it did not work on it."""

    def __init__(self, what: str, *, why: str, hint: str, used: tuple[int | None, int | None]) -> None:
        super().__init__(what, hint=hint)
        self.why, self.used = why, used


class Model:
    """One model at one endpoint."""

    def __init__(self, provider: str, name: str, *, url: str = "", key: str = "") -> None:
        is_anthropic = provider == "anthropic"
        if not name:
            example = "claude-haiku-4-5" if is_anthropic else "qwen3:4b"
            hint = f"foreword config set model_name {example}"
            raise ModelError(f"`model_provider = {provider}` needs `model_name`", hint=hint)
        if is_anthropic and not key:
            hint = "foreword config set model_key_env ANTHROPIC_API_KEY, or the path of a file that holds the key"
            raise ModelError("`model_provider = anthropic` needs a key", hint=hint)
        if not is_anthropic and not url:
            raise ModelError("`model_provider = openai` needs `model_url`", hint=OLLAMA)
        try:
            self._endpoint = Endpoint(url or ANTHROPIC_URL, key=key)
        except BadAddress as exc:
            hint = f"leave it out for {ANTHROPIC_URL}" if is_anthropic else OLLAMA
            raise ModelError(f"`model_url` {exc}", hint=hint) from exc
        self.provider, self.name, self.where = provider, name, self._endpoint.host
        path = self._endpoint.path
        if is_anthropic:
            self._path = f"{path.removesuffix('/v1')}/v1/messages"
            self._headers = {"x-api-key": key, "anthropic-version": ANTHROPIC_VERSION}
        else:
            self._path = f"{path.removesuffix('/chat/completions')}/chat/completions"
            self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._limit = "max_tokens"  # OpenAI's newer models take only the longer word, most others only this one

    def complete(self, prompt: str, *, system: str, most_tokens: int, seconds: float) -> Answer:
        """Return the object that the model answers with, or raise NoAnswer."""
        answer = self._post(prompt, system, most_tokens, seconds)
        used = _usage(answer)
        try:
            if self.provider == "anthropic":
                text = "".join([part["text"] for part in answer["content"] if part["type"] == "text"])
            else:
                text = answer["choices"][0]["message"]["content"]
            text = text.rpartition("</think>")[2]  # it may be in a fence, or behind the model's thoughts
            data, _ = json.JSONDecoder().raw_decode(text, max(0, text.find("{")))
            if isinstance(data, dict):
                return Answer(data, *used)
        except (TypeError, KeyError, IndexError, AttributeError, ValueError, RecursionError):
            pass
        raise NoAnswer(
            f"the model at {self.where} did not answer with a JSON object",
            why="not-json",
            hint="try another model, or `foreword config set model_provider off`",
            used=used,
        )

    def close(self) -> None:
        """End a running request; it fails at once."""
        self._endpoint.close()

    def _post(self, prompt: str, system: str, most_tokens: int, seconds: float) -> Any:
        user = {"role": "user", "content": prompt}
        request: dict[str, Any] = {"model": self.name, self._limit: most_tokens, "messages": [user]}
        if self.provider == "anthropic":
            request["system"] = system
        else:
            request["messages"] = [{"role": "system", "content": system}, user]
        try:
            return self._endpoint.post(
                self._path, request, headers=self._headers, seconds=seconds, most=MOST_ANSWER, tries=2
            )
        except Failed as exc:
            if self._limit == "max_tokens" and "max_completion_tokens" in exc.complaint:
                self._limit = "max_completion_tokens"
                return self._post(prompt, system, most_tokens, seconds)
            # The answer may repeat what was sent: it is not part of the message.
            raise NoAnswer(
                f"the model at {self.where} {exc}",
                why=exc.why,
                hint="the next session is tried again" if exc.passing else "check `foreword config`, `model_…`",
                used=(None, None) if exc.worked else (0, 0),
            ) from exc


def choose_model(settings: Settings, environ: Mapping[str, str]) -> Model | None:
    """Return the model that the settings name; None where it is off, and ModelError where they make no sense."""
    if settings.model_provider == "off":
        return None
    key = _key(settings.model_key_env, environ)
    return Model(settings.model_provider, settings.model_name, url=settings.model_url, key=key)


def call(
    model: Model,
    prompt: str,
    *,
    system: str,
    most_tokens: int,
    seconds: float,
    store: Store,
    daily: int,
    purpose: str,
    session: str = "",
) -> Answer:
    """Ask the model where the cap of *daily* tokens has room for it, and record what it cost.

    All that the call may cost is recorded before it is made, so that a crash forgets nothing.
    """
    now = time.time()
    entry = ModelCall(at=now, provider=model.provider, model=model.name, purpose=purpose, session=session)
    expected = count(f"{system}\n{prompt}", family=family_of(model.name))
    if store.stats.model_tokens(now - DAY) + expected + most_tokens > daily:
        store.stats.record_model_call(replace(entry, outcome="refused:cap"))
        raise ModelError(
            f"a model may cost {daily:,} tokens in 24 hours, which are spent",
            hint="wait, or raise `model_daily_tokens`",
        )
    entry = store.stats.record_model_call(replace(entry, tokens_in=expected, tokens_out=most_tokens))
    try:
        answer = model.complete(prompt, system=system, most_tokens=most_tokens, seconds=seconds)
    except NoAnswer as exc:
        _settle(store, entry, exc.used, began=now, outcome=f"failed:{exc.why}")
        raise
    _settle(store, entry, (answer.tokens_in, answer.tokens_out), began=now, outcome="ok")
    return answer


def _settle(store: Store, entry: ModelCall, used: tuple[int | None, int | None], *, began: float, outcome: str) -> None:
    """Replace what was expected by what the provider says; where it says nothing, the expectation stays."""
    figures = zip(("tokens_in", "tokens_out"), used, strict=True)
    known: dict[str, Any] = {name: figure for name, figure in figures if figure is not None}
    ms = (time.time() - began) * 1000
    store.stats.record_model_call(replace(entry, ms=ms, outcome=outcome, **known))


def _usage(answer: Any) -> tuple[int | None, int | None]:
    """Return the tokens in and out of an answer of either kind; None where it has no figure that can be true."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    usage = usage if isinstance(usage, dict) else {}
    known = {
        name: n
        for name, n in usage.items()
        if type(n) is int and 0 <= n <= MOST_TOKENS  # not isinstance: true is one
    }
    tokens_in = known.get("prompt_tokens", known.get("input_tokens"))
    if tokens_in is not None:
        tokens_in += known.get("cache_creation_input_tokens", 0) + known.get("cache_read_input_tokens", 0)
    return tokens_in, known.get("completion_tokens", known.get("output_tokens"))


def _key(place: str, environ: Mapping[str, str]) -> str:
    """Return the key in the environment variable or the file that the setting names."""
    if not place:
        return ""
    key = _read_key(expand(place, environ)) if "/" in place else environ.get(place, "").strip()
    if not key and "/" not in place:
        raise ModelError(
            f"the environment variable {place} that `model_key_env` names is not set where the worker runs",
            hint=f"export {place}, then `foreword worker stop`; or put the key into a file, and name its path",
        )
    if not key.isascii() or not key.isprintable() or not key or " " in key:
        raise ModelError(f"what {place} holds is no key", hint="it must hold the key and nothing else")
    return key


def _read_key(path: str) -> str:
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) or mode & 0o077:
            raise ModelError(f"{path} must be a file that only you can read", hint=f"chmod 600 {path}")
        with open(path, "rb") as file:
            return file.read(MOST_KEY).decode("utf-8", "replace").strip()
    except OSError as exc:
        raise ModelError(f"the key in {path} cannot be read: {exc.strerror}", hint="check `model_key_env`") from exc
