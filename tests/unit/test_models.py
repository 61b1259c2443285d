"""A model is asked at the user's address in its own words, and what it does wrong is a failure with a name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.config import load
from foreword.endpoint import LONGEST_PAUSE, PAUSE, Failed, Pause, Paused, Refused
from foreword.errors import ModelError
from foreword.llm.client import UNKNOWN, Anthropic, NoAnswer, OpenAI, choose_model
from foreword.llm.schema import BadShape, Many, Object, Text, as_json, checked
from foreword.paths import Home
from tests import endpoint
from tests.endpoint import drips, hangs_up, says, silent, status
from tests.tables import table
from tests.talking import answers, cut_short, data, endless, said

SCHEMA = Object({"word": Text(20), "list": Many(Text(5), 2)})
GOOD = {"word": "walrus", "list": ["a", "b"]}
KEY = "k-" + "secret-1"


@pytest.fixture
def server():
    with endpoint.listening() as here:
        here.answer = data(GOOD)
        yield here


@pytest.fixture(params=[Anthropic, OpenAI], ids=lambda each: each.provider)
def model(request, server):
    made = request.param(model="m-1", url=server.url, key=KEY)
    yield made
    made.close()


def ask(model, *, seconds=5.0, prompt="the prompt"):
    return model.complete(prompt, system="the system", schema=SCHEMA, most_tokens=99, seconds=seconds)


def failing(model, **more) -> NoAnswer:
    with pytest.raises(NoAnswer) as failed:
        ask(model, **more)
    assert isinstance(failed.value, ModelError)
    assert failed.value.hint
    return failed.value


def test_each_kind_is_asked_in_its_own_words(server):
    ask(Anthropic(model="m-1", url=server.url, key=KEY))
    ask(OpenAI(model="m-1", url=server.url, key=KEY))
    (path, headers, told), (chat, bearer, asked) = server.requests
    assert (path, headers["x-api-key"], headers["anthropic-version"]) == ("/v1/messages", KEY, "2023-06-01")
    assert (told["system"], told["messages"]) == ("the system", [{"role": "user", "content": "the prompt"}])
    assert (chat, bearer["Authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert [each["role"] for each in asked["messages"]] == ["system", "user"]
    assert (told["model"], told["max_tokens"], asked["model"], asked["max_tokens"]) == ("m-1", 99, "m-1", 99)
    assert asked["response_format"]["json_schema"]["schema"] == as_json(SCHEMA)


def test_a_model_is_sent_the_prompt_alone_and_answers_with_its_cost(server, model, monkeypatch):
    # A model is given no tools.
    ask(model)
    ((_, _, told),) = server.requests
    assert not {"tools", "tool_choice", "functions", "mcp_servers"} & told.keys()
    # An answer comes with its cost.
    got = ask(model)
    assert (got.data, got.tokens_in, got.tokens_out) == (GOOD, 100, 50)
    assert got.ms > 0
    # Everything sent is the prompt and the system.
    ask(model, prompt="only this")
    assert "only this" in said(server)
    assert str(Path.home()) not in said(server)
    # No proxy of the environment gets the texts.
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert ask(model).data == GOOD


def test_the_paths_of_an_address_are_not_doubled(server):
    ask(Anthropic(model="m", url=server.url.removesuffix("/v1"), key=KEY))
    ask(OpenAI(model="m", url=f"{server.url}/chat/completions"))
    assert [path for path, _, _ in server.requests] == ["/v1/messages", "/v1/chat/completions"]
    assert "Authorization" not in server.requests[1][1]


@table(
    "text",
    [
        json.dumps(GOOD),
        f"```json\n{json.dumps(GOOD, indent=2)}\n```",
        f"Here it is:\n{json.dumps(GOOD)}\nAnything else?",
        f"<think>{{hm}} or {{}}</think>\n{json.dumps(GOOD)}",
        json.dumps({**GOOD, "more": 1, "list": ["a", "b", "c"]}),
    ],
)
def test_the_data_is_found_in_what_a_model_says_around_it(server, model, text):
    server.answer = answers(text)
    assert ask(model).data == GOOD


@table(
    ("text", "why"),
    [
        ("", "not-json"),
        ("I would rather talk.", "not-json"),
        (json.dumps(GOOD)[:-5], "not-json"),
        ("{" * 50_000, "not-json"),
        ('{"a":' * 50_000, "not-json"),
        ("[1, 2]", "schema"),
        ('{"word": "walrus"}', "schema"),
        (json.dumps({**GOOD, "word": 1}), "schema"),
        (json.dumps({**GOOD, "word": None}), "schema"),
        (json.dumps({**GOOD, "word": "w" * 21}), "schema"),
        (json.dumps({**GOOD, "list": "ab"}), "schema"),
        (json.dumps({**GOOD, "list": [["a"]]}), "schema"),
        (json.dumps({**GOOD, "list": {"a": 1}}), "schema"),
    ],
)
def test_what_is_not_of_the_form_is_a_failure_and_its_cost_is_known(server, model, text, why):
    server.answer = answers(text, usage=(7, 8))
    failed = failing(model)
    assert (failed.why, failed.used, failed.worked) == (why, (7, 8), True)


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
    assert failed.worked


@table("usage", [None, [], "much", {}, (-1, -1), (True, False), (1e9, 5.5), (10**18, 10**18)])
def test_a_usage_that_can_be_none_is_taken_for_untold(server, model, usage):
    server.answer = data(GOOD, usage=usage)
    got = ask(model)
    assert (got.tokens_in, got.tokens_out) == (UNKNOWN, UNKNOWN)


def test_what_was_cached_counts_too(server):
    usage = {"input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 400}
    server.answer = data(GOOD, usage=usage)
    assert ask(Anthropic(model="m", url=server.url, key=KEY)).tokens_in == 431


@table("slow", [silent, drips])
def test_a_model_that_takes_its_time_does_not_take_ours(server, model, slow):
    server.answer = slow
    failed = failing(model, seconds=0.3)
    assert (failed.why, failed.worked) == ("late", True)


def test_an_answer_without_end_is_not_read_to_its_end(server, model):
    server.answer = endless
    assert failing(model, seconds=30).why == "huge"


@table("broken", [hangs_up, cut_short])
def test_an_answer_that_breaks_off_may_have_cost_something(server, model, broken):
    server.answer = broken
    assert failing(model).worked


@table(
    ("code", "passing"), [(500, True), (503, True), (529, True), (429, True), (400, True), (401, False), (404, False)]
)
def test_a_status_tells_whether_to_ask_again_and_costs_nothing(server, model, code, passing):
    server.answer = status(code, Retry_After="17")
    failed = failing(model)
    assert (failed.why, failed.passing, failed.worked) == (f"http-{code}", passing, False)
    assert failed.after == (0.0 if code == 400 else 17.0)


def test_a_redirect_is_not_followed(server, model):
    with endpoint.listening() as elsewhere:
        server.answer = status(307, Location=f"{elsewhere.url}/chat/completions")
        assert failing(model).why == "http-307"
        assert elsewhere.requests == []


def test_neither_key_nor_text_is_in_a_failure(server, model):
    echo = json.dumps({"error": {"message": f"bad: the prompt {KEY}"}}).encode()
    for answer in (lambda asked: asked.send(400, echo), lambda asked: asked.send(500, echo), says(echo), hangs_up):
        server.answer = answer
        failed = failing(model)
        told = f"{failed} {failed.hint}"
        assert KEY not in told
        assert "the prompt" not in told


def test_an_endpoint_that_wants_other_words_is_asked_in_them_from_then_on(server):
    def picky(asked):
        if "max_tokens" in asked.told:
            asked.send(400, b'{"error": "use max_completion_tokens"}')
        elif "response_format" in asked.told:
            asked.send(400, b'{"error": "unknown field response_format"}')
        else:
            data(GOOD)(asked)

    server.answer = picky
    model = OpenAI(model="m", url=server.url)
    assert ask(model).data == ask(model).data == GOOD
    assert len(server.requests) == 4
    server.answer = status(400)
    failing(model)
    assert len(server.requests) == 5


def test_closing_ends_what_is_being_asked(server, model):
    server.answer = lambda asked: (model.close(), silent(asked))
    assert failing(model, seconds=60).why == "away"
    assert failing(model).why == "away"


# ---- the settings


def choosing(home: Home, **given: str):
    environ = {f"FOREWORD_{name.upper()}": text for name, text in given.items() if name.islower()}
    return choose_model(load(home, environ).settings, {**environ, **given})


def test_off_is_the_default_and_means_none(home):
    assert load(home, {}).settings.model_provider == "off"
    assert choosing(home) is None
    assert choosing(home, model_name="m", model_url="http://127.0.0.1:1/v1", model_key_env="KEY", KEY="k") is None


@table(
    ("given", "told"),
    [
        ({"model_provider": "openai"}, "model_name"),
        ({"model_provider": "openai", "model_name": "m"}, "model_url"),
        ({"model_provider": "openai", "model_name": "m", "model_url": "http://h:99999/v1"}, "no address"),
        ({"model_provider": "anthropic"}, "model_name"),
        ({"model_provider": "anthropic", "model_name": "m"}, "a key"),
        ({"model_provider": "anthropic", "model_name": "m", "model_key_env": "ABSENT"}, "ABSENT"),
        ({"model_provider": "anthropic", "model_name": "m", "model_key_env": "/no/such/file"}, "/no/such/file"),
        ({"model_provider": "anthropic", "model_name": "m", "model_key_env": "KEY", "KEY": "a b"}, "no key"),
        ({"model_provider": "anthropic", "model_name": "m", "model_key_env": "KEY", "KEY": "a\nX: y"}, "no key"),
        (
            {"model_provider": "anthropic", "model_name": "m", "model_key_env": "KEY", "KEY": "k"}
            | {"model_url": "http://h.example"},
            "in the open",
        ),
    ],
)
def test_settings_that_make_no_sense_are_told_with_the_way_out(home, given, told):
    with pytest.raises(ModelError, match=told) as refused:
        choosing(home, **given)
    assert refused.value.hint


def test_a_key_may_lie_in_a_file_that_is_the_users_alone(home, tmp_path):
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    file.chmod(0o600)
    given = {"model_provider": "anthropic", "model_name": "m", "model_key_env": "~/key", "HOME": str(tmp_path)}
    assert choosing(home, **given)._headers["x-api-key"] == KEY
    file.chmod(0o644)
    with pytest.raises(ModelError, match="others can read") as refused:
        choosing(home, **given)
    assert "chmod 600" in refused.value.hint
    assert KEY not in str(refused.value)
    for wrong in (b"", b"\xff\xfe", b"two lines\nof it"):
        file.chmod(0o600)
        file.write_bytes(wrong)
        with pytest.raises(ModelError, match="no key"):
            choosing(home, **given)
    with pytest.raises(ModelError, match="is no file"):
        choosing(home, **{**given, "model_key_env": str(tmp_path)})


def test_while_it_is_off_nothing_of_it_is_imported():
    program = (
        "import sys, foreword.worker.routes\n"
        "print([name for name in sys.modules if name.startswith(('foreword.llm', 'foreword.endpoint'))])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


# ---- the form, and the pause after a failure


FORMS = st.recursive(
    st.builds(Text, st.integers(0, 5)),
    lambda inner: (
        st.builds(Many, inner, st.integers(0, 3))
        | st.builds(Object, st.dictionaries(st.sampled_from("abc"), inner, max_size=3))
    ),
    max_leaves=6,
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=10,
)


def fits(form, given) -> bool:
    if isinstance(form, Text):
        return isinstance(given, str) and len(given) <= form.most
    if isinstance(form, Many):
        return isinstance(given, list) and len(given) <= form.most and all(fits(form.of, each) for each in given)
    return (
        isinstance(given, dict)
        and given.keys() == form.fields.keys()
        and all(fits(inner, given[name]) for name, inner in form.fields.items())
    )


@given(FORMS, ANYTHING)
def test_what_passes_the_form_has_it_and_nothing_else(form, given):
    try:
        passed = checked(form, given)
    except BadShape:
        assert not fits(form, given)
    else:
        assert fits(form, passed)
        assert checked(form, passed) == passed


def test_a_complaint_names_the_place_and_never_the_text():
    form = Object({"list": Many(Object({"what": Text(3)}), 5)})
    with pytest.raises(BadShape, match=r"list\[1\]\.what has more than 3") as wrong:
        checked(form, {"list": [{"what": "a"}, {"what": "walrus"}]})
    assert "walrus" not in str(wrong.value)


@pytest.mark.parametrize(("after", "seconds"), [(0.0, PAUSE), (120.0, 120.0), (1e9, LONGEST_PAUSE)])
def test_a_failure_begins_a_pause_and_a_success_ends_it(after, seconds):
    clock = Clock()
    pause = Pause(now=clock)
    with pytest.raises(Failed), pause.asking():
        raise Failed("no", after=after)
    assert pause.seconds == seconds
    with pytest.raises(Paused), pause.asking():
        pass
    with pause.asking(anyway=True):
        pass
    assert not pause.seconds
    with pytest.raises(Refused), pause.asking():  # the endpoint is well, the text is not
        raise Refused(400, "")
    assert not pause.seconds


class Clock:
    at = 1000.0

    def __call__(self) -> float:
        return self.at
