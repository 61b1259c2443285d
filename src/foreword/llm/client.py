"""Ask a model of the user's choice for data that fits a schema: Anthropic's API, or an OpenAI-compatible endpoint.

A model has no tools: all it can do is answer.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from foreword.config import Settings
from foreword.endpoint import BadAddress, Endpoint, Failed, Refused
from foreword.errors import ModelError
from foreword.llm.schema import BadShape, Schema, as_json, checked
from foreword.paths import expand

ANTHROPIC_URL = "https://api.anthropic.com"
ANTHROPIC_VERSION = "2023-06-01"
UNKNOWN = -1  # tokens, where the provider does not say
MOST_TOKENS = 2_000_000  # of one call; no model reads more, and a higher figure is not believed
MOST_ANSWER = 1024 * 1024  # bytes; the longest answer that we ask for is 10 KB
MOST_KEY = 4096  # bytes of a file with a key
RETRIES = "it is tried again by itself; `foreword config set model_provider off` ends that"
CHECK_SETTINGS = "check `model_name`, `model_url` and what `model_key_env` names"


@dataclass(frozen=True)
class Completed:
    """An answer that fits its schema; tokens are UNKNOWN where the provider does not say."""

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
        """The network host that the texts go to."""

    def complete(self, prompt: str, *, system: str, schema: Schema, most_tokens: int, seconds: float) -> Completed: ...

    def close(self) -> None:
        """End a running request; it fails at once."""


class NoAnswer(Failed, ModelError):
    """A model did not answer with valid data; `used` are the tokens that it reports all the same."""

    def __init__(
        self,
        what: str,
        *,
        why: str,
        hint: str = RETRIES,
        passing: bool = True,
        after: float = 0.0,
        worked: bool = False,
        used: tuple[int, int] = (UNKNOWN, UNKNOWN),
    ) -> None:
        super().__init__(what, why=why, passing=passing, after=after, worked=worked)
        self.hint = hint
        self.used = used


def choose_model(settings: Settings, environ: Mapping[str, str]) -> Model | None:
    """Return the model that the settings name; None where it is off, and ModelError where they make no sense."""
    if settings.model_provider == "off":
        return None
    key = _key(settings.model_key_env, environ)
    make = Anthropic if settings.model_provider == "anthropic" else OpenAI
    return make(model=settings.model_name, url=settings.model_url, key=key)


class _Client:
    """One model at one endpoint; a subclass knows the form of request and answer."""

    provider = ""
    example = ""  # of a model's name

    def __init__(self, *, model: str, url: str, key: str, headers: Mapping[str, str], hint: str) -> None:
        if not model:
            raise ModelError(
                f"`model_provider = {self.provider}` needs `model_name`",
                hint=f"foreword config set model_name {self.example}",
            )
        try:
            self._endpoint = Endpoint(url, key=key)
        except BadAddress as exc:
            raise ModelError(f"`model_url` {exc}", hint=hint) from exc
        self.name = model
        self.where = self._endpoint.host
        self._headers = headers

    def close(self) -> None:
        self._endpoint.close()

    def _post(self, path: str, request: object, *, seconds: float) -> Any:
        """Return the JSON of an answer; anything else is a NoAnswer."""
        try:
            raw = self._endpoint.post(path, request, headers=self._headers, seconds=seconds, most=MOST_ANSWER)
        except Failed as exc:
            # The answer may repeat what was sent: it is not part of the message.
            raise NoAnswer(
                f"{self._who} {exc}",
                why=exc.why,
                hint=RETRIES if exc.passing else CHECK_SETTINGS,
                passing=exc.passing or exc.why == "http-400",  # perhaps only this text
                after=exc.after,
                worked=exc.worked,
            ) from exc
        try:
            return json.loads(raw)
        except (ValueError, RecursionError) as exc:
            raise NoAnswer(f"{self._who} answered with something that is no JSON", why="garbage", worked=True) from exc

    def _completed(
        self, find_text: Callable[[], object], schema: Schema, *, used: tuple[int, int], began: float
    ) -> Completed:
        """Return the data in a model's text, which may be in a fence, or behind its thoughts."""
        try:
            text = find_text()
        except (TypeError, KeyError, IndexError):
            text = None
        if not isinstance(text, str):
            raise NoAnswer(f"{self._who} answered with no text", why="garbage", worked=True, used=used)
        answer = text.rpartition("</think>")[2]
        try:
            found, _ = json.JSONDecoder().raw_decode(answer, max(0, answer.find("{")))
            data = checked(schema, found)
        except BadShape as exc:
            message = f"{self._who} did not keep to the form: {exc}"
            raise NoAnswer(message, why="schema", worked=True, used=used) from exc
        except (ValueError, RecursionError) as exc:
            raise NoAnswer(f"{self._who} answered without JSON", why="not-json", worked=True, used=used) from exc
        return Completed(data, text, *used, ms=(time.perf_counter() - began) * 1000)

    @property
    def _who(self) -> str:
        return f"the model at {self.where}"


class Anthropic(_Client):
    """A model behind Anthropic's Messages API, or one that is compatible with it."""

    provider = "anthropic"
    example = "claude-haiku-4-5"

    def __init__(self, *, model: str, url: str = "", key: str = "") -> None:
        headers = {"x-api-key": key, "anthropic-version": ANTHROPIC_VERSION}
        hint = f"leave it out for {ANTHROPIC_URL}"
        super().__init__(model=model, url=url or ANTHROPIC_URL, key=key, headers=headers, hint=hint)
        if not key:
            raise ModelError(
                "`model_provider = anthropic` needs a key",
                hint="foreword config set model_key_env ANTHROPIC_API_KEY, or the path of a file that holds the key",
            )
        self._path = f"{self._endpoint.path.removesuffix('/v1')}/v1/messages"

    def complete(self, prompt: str, *, system: str, schema: Schema, most_tokens: int, seconds: float) -> Completed:
        began = time.perf_counter()
        request = {
            "model": self.name,
            "max_tokens": most_tokens,
            "system": system,
            "messages": [{"role": "user", "content": prompt}],
        }
        answer = self._post(self._path, request, seconds=seconds)
        usage = _usage(answer)
        read = _tokens(usage.get("input_tokens"))
        cached = [usage.get("cache_creation_input_tokens"), usage.get("cache_read_input_tokens")]
        total = read if read == UNKNOWN else read + sum(max(0, _tokens(each)) for each in cached)

        def text() -> str:
            return "".join([str(part["text"]) for part in answer["content"] if part["type"] == "text"])

        return self._completed(text, schema, used=(total, _tokens(usage.get("output_tokens"))), began=began)


class OpenAI(_Client):
    """A model behind an OpenAI-compatible endpoint: OpenAI, Ollama, llama.cpp, vLLM, LM Studio and others."""

    provider = "openai"
    example = "qwen3:4b"

    def __init__(self, *, model: str, url: str, key: str = "") -> None:
        hint = "such as http://127.0.0.1:11434/v1 for an Ollama on this machine"
        if model and not url:
            raise ModelError("`model_provider = openai` needs `model_url`", hint=hint)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        super().__init__(model=model, url=url, key=key, headers=headers, hint=hint)
        self._path = f"{self._endpoint.path.removesuffix('/chat/completions')}/chat/completions"
        self._limit = "max_tokens"  # OpenAI's newer models take only the longer word, most others only this one
        self._sends_schema = True  # until the endpoint refuses it; every answer is checked all the same

    def complete(self, prompt: str, *, system: str, schema: Schema, most_tokens: int, seconds: float) -> Completed:
        began = time.perf_counter()
        while True:
            request: dict[str, Any] = {
                "model": self.name,
                self._limit: most_tokens,
                "stream": False,
                "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt}],
            }
            if self._sends_schema:
                form = {"name": "answer", "strict": True, "schema": as_json(schema)}
                request["response_format"] = {"type": "json_schema", "json_schema": form}
            try:
                left = max(0.001, seconds - (time.perf_counter() - began))
                answer = self._post(self._path, request, seconds=left)
                break
            except NoAnswer as exc:
                if not self._adapts_to(exc.__cause__):
                    raise
        usage = _usage(answer)
        used = _tokens(usage.get("prompt_tokens")), _tokens(usage.get("completion_tokens"))
        return self._completed(lambda: answer["choices"][0]["message"]["content"], schema, used=used, began=began)

    def _adapts_to(self, refusal: BaseException | None) -> bool:
        """Change the form of requests where a refusal asks for it; each change happens once, so that this ends."""
        if not isinstance(refusal, Refused):
            return False
        if self._limit == "max_tokens" and "max_completion_tokens" in refusal.complaint:
            self._limit = "max_completion_tokens"
            return True
        if self._sends_schema and ("response_format" in refusal.complaint or "json_schema" in refusal.complaint):
            self._sends_schema = False
            return True
        return False


def _usage(answer: Any) -> Mapping[str, Any]:
    usage = answer.get("usage") if isinstance(answer, dict) else None
    return usage if isinstance(usage, dict) else {}


def _tokens(value: object) -> int:
    """Return a token count; UNKNOWN where it cannot be one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else UNKNOWN


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
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode):
            raise ModelError(f"{path} is no file", hint="`model_key_env` names a file that holds the key")
        if about.st_mode & 0o077:
            raise ModelError(f"others can read the key in {path}", hint=f"chmod 600 {path}")
        with open(path, "rb") as file:
            return file.read(MOST_KEY).decode("utf-8", "replace").strip()
    except OSError as exc:
        raise ModelError(f"the key in {path} cannot be read: {exc.strerror}", hint="check `model_key_env`") from exc
