"""An endpoint is asked in time, in batches, with its key and nothing else; what it does wrong costs only vectors."""

from __future__ import annotations

import json

import pytest

from foreword.errors import EmbedError
from foreword.llm.embeddings import BATCH, Remote, TextRefused
from tests import endpoint
from tests.endpoint import DIM, body_of, hangs_up, says, status, well
from tests.tables import table


@pytest.fixture
def server():
    with endpoint.listening() as here:
        yield here


def remote(server, **more) -> Remote:
    return Remote(endpoint=server.url, model="all-minilm", **more)


def embed(model: Remote, texts: list[str], *, seconds: float = 5.0, tries: int = 1):
    return model.embed(texts, seconds=seconds, tries=tries)


def test_each_text_gets_its_vector_in_order(server, monkeypatch):
    # Many texts are asked in batches.
    assert len(embed(remote(server), [f"t {n}" for n in range(2 * BATCH + 1)])) == 2 * BATCH + 1
    assert [len(told["input"]) for _, _, told in server.requests] == [BATCH, BATCH, 1]
    # Each text gets its own vector in order.
    asked = remote(server)
    texts = [f"walrus number {n}" for n in range(5)]
    together = embed(asked, texts)
    assert together == tuple(embed(asked, [text])[0] for text in texts)
    assert {(each.model, len(each.data)) for each in together} == {("remote:all-minilm", DIM)}
    assert asked.dim == DIM
    # No proxy of the environment gets the texts.
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert embed(remote(server), ["walrus"])[0].data

    # A failure that passes is not noticed.
    def once(asked):
        server.answer = well
        asked.send(503, b"")

    server.answer = once
    assert embed(remote(server), ["walrus"], tries=2)[0].data
    # Nobody listening is an error with a way out.
    asked = Remote(endpoint="http://127.0.0.1:9/v1", model="m")
    with pytest.raises(EmbedError, match="cannot be reached") as failed:
        embed(asked, ["walrus"])
    assert "off" in failed.value.hint


def test_an_empty_text_is_not_sent_and_means_nothing(server):
    got = embed(remote(server), ["", "walrus", " \n"])
    assert [bool(each.data) for each in got] == [False, True, False]
    assert server.texts() == ["walrus"]
    assert embed(remote(server), []) == ()


def test_the_path_and_the_model_are_the_users_and_the_key_is_a_header(server):
    embed(remote(server, key="k-1"), ["walrus"])
    server.url += "/embeddings"
    embed(remote(server), ["walrus"])
    (path, headers, told), (same, without, _) = server.requests
    assert path == same == "/v1/embeddings"
    assert headers["Authorization"] == "Bearer k-1"
    assert "Authorization" not in without
    assert (told["model"], told["input"]) == ("all-minilm", ["walrus"])


def numbers(*embeddings: object) -> bytes:
    data = [{"index": at, "embedding": each} for at, each in enumerate(embeddings)]
    return json.dumps({"data": data}).encode()


@table(
    "body",
    [
        b"",
        b"<html>welcome to the hotel</html>",
        b"[]",
        b"null",
        b'{"data": null}',
        b'{"data": [1]}',
        b'{"data": []}',
        b"\xff\xfe",
        b"[" * 100_000,
        numbers([1.0, 2.0]),
        numbers([1.0, 2.0], [1.0]),
        numbers([1.0, 2.0], [1.0, 2.0], [1.0, 2.0]),
        numbers([], []),
        numbers(["1", "2"], ["1", "2"]),
        numbers([None, 1.0], [1.0, 2.0]),
        numbers([[1.0]], [[1.0]]),
        numbers(1.0, 2.0),
        numbers("AAAA", "AAAA"),
        numbers([float("nan"), 1.0], [1.0, 1.0]),
        numbers([1e999, 1.0], [1.0, 1.0]),
        numbers([10**400, 1], [1, 1]),
        numbers([0.5] * 9000, [0.5] * 9000),
        b'{"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]}',
        b'{"data": [{"index": "0", "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}]}',
    ],
)
def test_an_answer_that_is_no_list_of_vectors_is_an_error_and_no_vector(server, body):
    server.answer = says(body)
    asked = remote(server)
    with pytest.raises(EmbedError, match="embeddings endpoint"):
        embed(asked, ["walrus", "penguin"])
    server.answer = well
    assert len(embed(asked, ["walrus", "penguin"])) == 2


def test_a_vector_of_another_length_than_before_is_refused(server):
    asked = remote(server)
    embed(asked, ["walrus"])
    server.answer = says(body_of(["walrus"], dim=DIM + 1))
    with pytest.raises(EmbedError, match="another length"):
        embed(asked, ["walrus"])
    assert asked.dim == DIM


@table(("wrong", "tries"), [(status(429), 2), (status(500), 2), (hangs_up, 2), (status(401), 1), (status(404), 1)])
def test_what_may_pass_is_tried_once_more(server, wrong, tries):
    server.requests.clear()
    server.answer = wrong
    with pytest.raises(EmbedError) as failed:
        embed(remote(server), ["walrus"], tries=2)
    assert len(server.requests) == tries
    assert "embeddings_key_env" in failed.value.hint


@table("code", [400, 413, 422])
def test_a_text_that_is_refused_says_nothing_about_the_endpoint(server, code):
    server.requests.clear()
    server.answer = status(code)
    asked = remote(server)
    for _ in range(4):
        with pytest.raises(TextRefused):
            embed(asked, ["walrus"], tries=2)
    assert len(server.requests) == 4
