"""Ask a model of the user's choice for a JSON object within the daily cap: Anthropic's API, or one like OpenAI's.

No redirects, no proxies: texts go to the address that the user wrote, and nowhere else. A model has no tools: all it
can do is answer.
"""

from __future__ import annotations

import http.client
import json
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from foreword import __version__
from foreword.config import Settings
from foreword.errors import ModelError
from foreword.models import ModelCall
from foreword.paths import expand
from foreword.recall.tokens import count, family_of
from foreword.store import Store

ANTHROPIC_URL, ANTHROPIC_VERSION = "https://api.anthropic.com", "2023-06-01"
OLLAMA = "such as http://127.0.0.1:11434/v1 for an Ollama on this machine"
RETRY_AFTER = 0.5  # seconds between the two tries
DAY = 86_400.0  # seconds; the cap is for any 24 hours, so that midnight and time zones double nothing
MOST_TOKENS = 2_000_000  # of one call; no model reads more, and a higher figure is not believed
MOST_ANSWER = 1024 * 1024  # bytes; the longest answer that we ask for is 10 KB
MOST_COMPLAINT = 2_000  # bytes of a refusal that are read


Tokens = tuple[int | None, int | None]  # in and out; None where the provider does not say


@dataclass(frozen=True)
class Answer:
    """The JSON object of an answer, and its tokens."""

    data: dict[str, Any]
    tokens_in: int | None
    tokens_out: int | None


class NoAnswer(ModelError):
    """A model did not answer with a JSON object; `used` are its tokens, (0, 0) where it did not work on it."""

    def __init__(self, what: str, *, why: str, used: Tokens = (None, None), complaint: str = "") -> None:
        self.passing = why in ("late", "away", "http-429") or why.startswith("http-5")  # the same may succeed later
        hint = "the next session is tried again" if self.passing else "check `foreword config`, `model_…`"
        super().__init__(what, hint=hint)
        self.why, self.used, self.complaint = why, used, complaint


class Model:
    """One model at one address."""

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
            self._url = urlsplit(url or ANTHROPIC_URL)
            host = self._url.hostname if self._url.port != 0 else ""
        except ValueError:
            host = ""
        if not host:
            raise ModelError(f"`model_url` is not an address: {url}", hint=f"{OLLAMA}; nothing for {ANTHROPIC_URL}")
        if key and self._url.scheme == "http" and host not in ("localhost", "127.0.0.1", "::1"):
            hint = "use an https address, or no key"
            raise ModelError(f"`model_url` would send the key to {host} unencrypted", hint=hint)
        self.provider, self.name, self.where = provider, name, self._url.netloc
        path = self._url.path.rstrip("/")
        self._headers = {"Content-Type": "application/json", "User-Agent": f"foreword/{__version__}"}
        if is_anthropic:
            self._path = f"{path.removesuffix('/v1')}/v1/messages"
            self._headers |= {"x-api-key": key, "anthropic-version": ANTHROPIC_VERSION}
        else:
            self._path = f"{path.removesuffix('/chat/completions')}/chat/completions"
            self._headers |= {"Authorization": f"Bearer {key}"} if key else {}
        self._limit = "max_tokens"  # OpenAI's newer models take only the longer word, most others only this one

    def complete(self, prompt: str, *, system: str, most_tokens: int, seconds: float) -> Answer:
        """Return the object that the model answers with, or raise NoAnswer; what may pass is tried once more."""
        try:
            return self._ask(prompt, system, most_tokens, seconds)
        except NoAnswer as exc:
            if self._limit == "max_tokens" and "max_completion_tokens" in exc.complaint:
                self._limit = "max_completion_tokens"
            elif not exc.passing:
                raise
            else:
                time.sleep(RETRY_AFTER)
        return self._ask(prompt, system, most_tokens, seconds)

    def _ask(self, prompt: str, system: str, most_tokens: int, seconds: float) -> Answer:
        user = {"role": "user", "content": prompt}
        request: dict[str, Any] = {"model": self.name, self._limit: most_tokens, "messages": [user]}
        if self.provider == "anthropic":
            request["system"] = system
        else:
            request["messages"] = [{"role": "system", "content": system}, user]
        answer = self._post(json.dumps(request).encode(), seconds)
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
        raise NoAnswer(f"the model at {self.where} did not answer with a JSON object", why="not-json", used=used)

    def _post(self, body: bytes, seconds: float) -> Any:
        """Return the JSON of the answer, within *seconds*."""
        who, end, sent = f"the model at {self.where}", time.monotonic() + seconds, False
        make = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
        connection = make(str(self._url.hostname), self._url.port, timeout=seconds)
        data = b""
        try:
            connection.request("POST", self._path, body, self._headers)
            sent = True
            with connection.getresponse() as answer:
                while len(data) <= MOST_ANSWER and (part := answer.read1(1 << 16)):
                    data += part
                    if time.monotonic() >= end:  # the timeout is for each read, and a server may drip
                        raise TimeoutError
        except (OSError, http.client.HTTPException) as exc:
            used = (None, None) if sent else (0, 0)
            if isinstance(exc, TimeoutError):
                raise NoAnswer(f"{who} did not answer in time", why="late", used=used) from exc
            raise NoAnswer(f"{who} cannot be reached ({type(exc).__name__})", why="away", used=used) from exc
        finally:
            connection.close()
        if answer.status != 200:
            complaint = data[:MOST_COMPLAINT].decode("utf-8", "replace")  # it may repeat what was sent: never shown
            why = f"http-{answer.status}"
            raise NoAnswer(f"{who} answers {answer.status}", why=why, used=(0, 0), complaint=complaint)
        if len(data) > MOST_ANSWER:
            raise NoAnswer(f"{who} answered with more than {MOST_ANSWER:,} bytes", why="huge")
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as exc:
            raise NoAnswer(f"{who} answered with something that is no JSON", why="garbage") from exc


def choose_model(settings: Settings, environ: Mapping[str, str]) -> Model:
    """Return the model that the settings name; ModelError where they make no sense."""
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

    All that the call may cost is recorded before it is made, so that a crash forgets nothing. Where the provider does
    not say what it was, that expectation stays.
    """
    now = time.time()
    entry = ModelCall(at=now, provider=model.provider, model=model.name, purpose=purpose, session=session)
    expected = count(f"{system}\n{prompt}", family=family_of(model.name))
    if store.stats.model_tokens(now - DAY) + expected + most_tokens > daily:
        store.stats.record_model_call(entry._replace(outcome="refused:cap"))
        message = f"the limit of {daily:,} tokens in 24 hours is used up, or this request could exceed it"
        raise ModelError(message, hint="wait, or raise `model_daily_tokens`")
    entry = store.stats.record_model_call(entry._replace(tokens_in=expected, tokens_out=most_tokens))

    def settle(tokens_in: int | None, tokens_out: int | None, outcome: str) -> None:
        tokens = (expected if tokens_in is None else tokens_in, most_tokens if tokens_out is None else tokens_out)
        ms = (time.time() - now) * 1000
        store.stats.record_model_call(entry._replace(ms=ms, outcome=outcome, tokens_in=tokens[0], tokens_out=tokens[1]))

    try:
        answer = model.complete(prompt, system=system, most_tokens=most_tokens, seconds=seconds)
    except NoAnswer as exc:
        settle(*exc.used, f"failed:{exc.why}")
        raise
    settle(answer.tokens_in, answer.tokens_out, "ok")
    return answer


def _usage(answer: Any) -> Tokens:
    """Return the tokens in and out of an answer of either kind; None where it has no figure that can be true."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    figures = usage.items() if isinstance(usage, dict) else ()
    known = {name: n for name, n in figures if type(n) is int and 0 <= n <= MOST_TOKENS}  # not isinstance: true is one
    tokens_in = known.get("prompt_tokens", known.get("input_tokens"))
    if tokens_in is not None:
        tokens_in += known.get("cache_creation_input_tokens", 0) + known.get("cache_read_input_tokens", 0)
    return tokens_in, known.get("completion_tokens", known.get("output_tokens"))


def _key(place: str, environ: Mapping[str, str]) -> str:
    """Return the key in the environment variable or the file that the setting names."""
    if not place:
        return ""
    if "/" not in place:
        key = environ.get(place, "").strip()
        if not key:
            raise ModelError(
                f"the environment variable {place} that `model_key_env` names is not set where the worker runs",
                hint=f"export {place}, then `foreword worker stop`; or put the key into a file, and name its path",
            )
    else:
        path = expand(place, environ)
        try:
            mode = os.stat(path).st_mode
            if not stat.S_ISREG(mode) or mode & 0o077:
                raise ModelError(f"{path} must be a file that only you can read", hint=f"chmod 600 {path}")
            key = Path(path).read_text("utf-8", "replace").strip()
        except OSError as exc:
            raise ModelError(f"the key in {path} cannot be read: {exc.strerror}", hint="check `model_key_env`") from exc
    if not key.isascii() or not key.isprintable() or not key or " " in key:
        raise ModelError(f"{place} does not hold a key", hint="put the key there and nothing else")
    return key
