"""A model is called at the user's address in its own form, and what it does wrong is a failure with a name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from foreword.config import load
from foreword.errors import ModelError
from foreword.llm.client import Model, NoAnswer, choose_model
from foreword.paths import Home
from tests import endpoint
from tests.endpoint import drips, hangs_up, says, silent, status
from tests.tables import table
from tests.talking import answers, cut_short, data, endless, sent_texts

GOOD = {"word": "walrus", "list": ["a", "b"]}
KEY = "k-" + "secret-1"


@pytest.fixture
def server():
    with endpoint.listening() as here:
        here.answer = data(GOOD)
        yield here


@pytest.fixture(params=["anthropic", "openai"])
def model(request, server):
    return Model(request.param, "m-1", url=server.url, key=KEY)


def ask(model, *, seconds=5.0, prompt="the prompt"):
    return model.complete(prompt, system="the system", most_tokens=99, seconds=seconds)


def failing(model, **more) -> NoAnswer:
    with pytest.raises(NoAnswer) as failed:
        ask(model, **more)
    assert failed.value.hint
    return failed.value


def test_each_provider_gets_requests_of_its_own_form(server):
    ask(Model("anthropic", "m-1", url=server.url, key=KEY))
    ask(Model("openai", "m-1", url=server.url, key=KEY))
    (path, headers, message), (chat, bearer, completion) = server.requests
    assert (path, headers["x-api-key"], headers["anthropic-version"]) == ("/v1/messages", KEY, "2023-06-01")
    assert (message["system"], message["messages"]) == ("the system", [{"role": "user", "content": "the prompt"}])
    assert (chat, bearer["Authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert [each["role"] for each in completion["messages"]] == ["system", "user"]
    assert (message["max_tokens"], completion["max_tokens"]) == (99, 99)
    # The paths of an address are not doubled, and no key means no header.
    ask(Model("anthropic", "m", url=server.url.removesuffix("/v1"), key=KEY))
    ask(Model("openai", "m", url=f"{server.url}/chat/completions"))
    assert [path for path, _, _ in server.requests[2:]] == ["/v1/messages", "/v1/chat/completions"]
    assert "Authorization" not in server.requests[3][1]


def test_a_model_is_sent_the_prompt_alone_and_answers_with_its_cost(server, model, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):  # no proxy gets the texts
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    got = ask(model, prompt="only this")
    assert (got.data, got.tokens_in, got.tokens_out) == (GOOD, 100, 50)
    ((_, _, request),) = server.requests
    assert not {"tools", "tool_choice", "functions", "mcp_servers"} & request.keys()
    assert "only this" in sent_texts(server)
    assert str(Path.home()) not in sent_texts(server)


@table(
    "text",
    [
        json.dumps(GOOD),
        f"```json\n{json.dumps(GOOD, indent=2)}\n```",
        f"Here it is:\n{json.dumps(GOOD)}\nAnything else?",
        f"<think>{{hm}} or {{}}</think>\n{json.dumps(GOOD)}",
    ],
)
def test_the_object_is_found_in_the_text_around_it(server, model, text):
    server.answer = answers(text)
    assert ask(model).data == GOOD


@table(
    "text",
    ["", "I would rather talk.", json.dumps(GOOD)[:-5], "{" * 50_000, '{"a":' * 50_000, "[1, 2]"],
)
def test_an_answer_without_an_object_is_a_failure_with_its_cost(server, model, text):
    server.answer = answers(text, usage=(7, 8))
    failed = failing(model)
    assert (failed.why, failed.used) == ("not-json", (7, 8))


@table(
    "body",
    [
        *(b"", b"<html>a hotel</html>", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'"text"'),
        *(b'{"choices": []}', b'{"choices": [{"message": {"content": 5}}]}', b'{"choices": 5}'),
        *(b'{"content": 5}', b'{"content": ["text"]}', b'{"content": null}', b'{"content": []}'),
    ],
)
def test_garbage_is_a_failure_that_may_have_cost_something(server, model, body):
    server.answer = says(body)
    failed = failing(model)
    assert failed.why in ("garbage", "not-json")
    assert failed.used == (None, None)


@table("usage", [None, [], "much", {}, (-1, -1), (True, False), (1e9, 5.5), (10**18, 10**18)])
def test_a_usage_that_cannot_be_true_is_unknown(server, model, usage):
    server.answer = data(GOOD, usage=usage)
    got = ask(model)
    assert (got.tokens_in, got.tokens_out) == (None, None)


def test_cached_tokens_count_too(server):
    usage = {"input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 400}
    server.answer = data(GOOD, usage=usage)
    assert ask(Model("anthropic", "m", url=server.url, key=KEY)).tokens_in == 431


@table(
    ("answer", "why"),
    [(silent, "late"), (drips, "late"), (hangs_up, "away"), (cut_short, "garbage"), (endless, "huge")],
)
def test_a_request_ends_in_time_and_may_have_cost_something(server, model, answer, why):
    server.answer = answer
    failed = failing(model, seconds=0.3 if why == "late" else 10)
    assert (failed.why, failed.used) == (why, (None, None))


@table(("code", "tries"), [(500, 2), (529, 2), (429, 2), (400, 1), (401, 1), (307, 1)])
def test_a_passing_failure_is_tried_once_more_and_costs_nothing(server, model, code, tries):
    with endpoint.listening() as elsewhere:
        server.requests.clear()
        server.answer = status(code, Location=f"{elsewhere.url}/chat/completions")
        failed = failing(model)
        assert (failed.why, failed.used, len(server.requests)) == (f"http-{code}", (0, 0), tries)
        assert elsewhere.requests == []  # a redirect is not followed


def test_neither_key_nor_text_is_in_a_failure(server, model):
    echo = json.dumps({"error": {"message": f"bad: the prompt {KEY}"}}).encode()
    for answer in (
        lambda request: request.send(400, echo),
        lambda request: request.send(401, echo),
        says(echo),
        hangs_up,
    ):
        server.answer = answer
        failed = failing(model)
        shown = f"{failed} {failed.hint}"
        assert KEY not in shown
        assert "the prompt" not in shown


def test_an_endpoint_that_wants_the_other_limit_gets_it_from_then_on(server):
    def picky(request):
        if "max_tokens" in request.body:
            request.send(400, b'{"error": "use max_completion_tokens"}')
        else:
            data(GOOD)(request)

    server.answer = picky
    model = Model("openai", "m", url=server.url)
    assert ask(model).data == ask(model).data == GOOD
    assert len(server.requests) == 3


# ---- the settings


def choosing(home: Home, **variables: str):
    environ = {f"FOREWORD_{name.upper()}": text for name, text in variables.items() if name.islower()}
    return choose_model(load(home, environ).settings, {**environ, **variables})


@table(
    ("settings", "message"),
    [
        ({"model_provider": "openai"}, "model_name"),
        ({"model_provider": "openai", "model_name": "m"}, "model_url"),
        ({"model_provider": "openai", "model_name": "m", "model_url": "http://h:99999/v1"}, "not an address"),
        ({"model_provider": "anthropic"}, "model_name"),
        ({"model_provider": "anthropic", "model_name": "m"}, "a key"),
        ({"model_provider": "anthropic", "model_name": "m", "model_key_env": "ABSENT"}, "ABSENT"),
        ({"model_provider": "anthropic", "model_name": "m", "model_key_env": "/no/such/file"}, "/no/such/file"),
        ({"model_provider": "anthropic", "model_name": "m", "model_key_env": "KEY", "KEY": "a b"}, "hold a key"),
        ({"model_provider": "anthropic", "model_name": "m", "model_key_env": "KEY", "KEY": "a\nX: y"}, "hold a key"),
        (
            {"model_provider": "anthropic", "model_name": "m", "model_key_env": "KEY", "KEY": "k"}
            | {"model_url": "http://h.example"},
            "unencrypted",
        ),
    ],
)
def test_wrong_settings_are_refused_with_a_hint(home, settings, message):
    with pytest.raises(ModelError, match=message) as refused:
        choosing(home, **settings)
    assert refused.value.hint


def test_a_key_may_lie_in_a_file_that_only_the_user_can_read(home, tmp_path):
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    file.chmod(0o600)
    settings = {"model_provider": "anthropic", "model_name": "m", "model_key_env": "~/key", "HOME": str(tmp_path)}
    assert choosing(home, **settings)._headers["x-api-key"] == KEY
    file.chmod(0o644)
    with pytest.raises(ModelError, match="only you can read") as refused:
        choosing(home, **settings)
    assert "chmod 600" in refused.value.hint
    assert KEY not in str(refused.value)
    file.chmod(0o600)
    file.write_bytes(b"two lines\nof it")
    with pytest.raises(ModelError, match="hold a key"):
        choosing(home, **settings)
    with pytest.raises(ModelError, match="only you can read"):
        choosing(home, **{**settings, "model_key_env": str(tmp_path)})


def test_while_it_is_off_nothing_of_it_is_imported():
    program = (
        "import sys, foreword.worker.routes\nprint([name for name in sys.modules if name.startswith('foreword.llm')])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
