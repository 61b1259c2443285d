"""An endpoint is asked in time, in batches, with its key and nothing else; what it does wrong costs only vectors."""

from __future__ import annotations

import json

import pytest

from foreword.embeddings.embedder import BATCH, Paused, Remote, TextRefused
from foreword.endpoint import PAUSE
from foreword.errors import EmbedError
from tests import endpoint
from tests.endpoint import DIM, body_of, drips, hangs_up, says, silent, status, well
from tests.tables import table


@pytest.fixture
def server():
    with endpoint.listening() as here:
        yield here


class Clock:
    """Time that passes when it is told to, and pauses that are written down."""

    def __init__(self) -> None:
        self.at = 1000.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.at


def remote(server, *, clock=None, seconds=5.0, **more) -> Remote:
    clock = clock or Clock()
    return Remote(
        endpoint=server.url, model="all-minilm", seconds=seconds, now=clock, sleep=clock.pauses.append, **more
    )


def test_each_text_gets_its_vector_in_order(server, monkeypatch):
    # Many texts are asked in batches.
    assert len(remote(server).embed([f"t {n}" for n in range(2 * BATCH + 1)])) == 2 * BATCH + 1
    assert [len(told["input"]) for _, _, told in server.requests] == [BATCH, BATCH, 1]
    # Each text gets its own vector in order.
    asked = remote(server)
    texts = [f"walrus number {n}" for n in range(5)]
    together = asked.embed(texts)
    assert together == tuple(asked.embed([text])[0] for text in texts)
    assert {(each.model, len(each.data)) for each in together} == {("remote:all-minilm", DIM)}
    assert asked.dim == DIM
    # No proxy of the environment gets the texts.
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert remote(server).embed(["walrus"])[0].data

    # A failure that passes is not noticed.
    def once(asked):
        server.answer = well
        asked.send(503, b"")

    server.answer = once
    assert remote(server).embed(["walrus"], tries=2)[0].data
    # Nobody listening is an error with a way out.
    asked = Remote(endpoint="http://127.0.0.1:9/v1", model="m")
    with pytest.raises(EmbedError, match="cannot be reached") as failed:
        asked.embed(["walrus"])
    assert "embeddings off" in failed.value.hint


def test_an_empty_text_is_not_sent_and_means_nothing(server):
    got = remote(server).embed(["", "walrus", " \n"])
    assert [bool(each.data) for each in got] == [False, True, False]
    assert server.texts() == ["walrus"]
    assert remote(server).embed([]) == ()


def test_the_path_and_the_model_are_the_users_and_the_key_is_a_header(server):
    remote(server, key="k-1").embed(["walrus"])
    server.url += "/embeddings"
    remote(server).embed(["walrus"])
    (path, headers, told), (same, without, _) = server.requests
    assert path == same == "/v1/embeddings"
    assert headers["Authorization"] == "Bearer k-1"
    assert "Authorization" not in without
    assert (told["model"], told["input"]) == ("all-minilm", ["walrus"])


def test_a_redirect_is_not_followed(server):
    with endpoint.listening() as elsewhere:
        server.answer = status(307, Location=f"{elsewhere.url}/embeddings")
        with pytest.raises(EmbedError, match="307"):
            remote(server, key="k-1").embed(["walrus"])
        assert elsewhere.requests == []


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
    clock = Clock()
    asked = remote(server, clock=clock)
    with pytest.raises(EmbedError, match="embeddings endpoint"):
        asked.embed(["walrus", "penguin"])
    server.answer = well
    clock.at += PAUSE + 1
    assert len(asked.embed(["walrus", "penguin"])) == 2


def test_a_vector_of_another_length_than_before_is_refused(server):
    asked = remote(server)
    asked.embed(["walrus"])
    server.answer = says(body_of(["walrus"], dim=DIM + 1))
    with pytest.raises(EmbedError, match=f"{DIM + 1} numbers, before {DIM}"):
        asked.embed(["walrus"])
    assert asked.dim == DIM


@table("slow", [silent, drips])
def test_a_server_that_takes_its_time_does_not_take_ours(server, slow):
    server.answer = slow
    with pytest.raises(EmbedError, match="in time"):  # else this test would never end
        remote(server, seconds=0.3).embed(["walrus"])


def test_an_answer_without_end_is_not_read_to_its_end(server):
    def endless(asked):
        asked.send_response(200)
        asked.end_headers()
        while True:
            asked.wfile.write(b" " * 2**20)

    server.answer = endless
    with pytest.raises(EmbedError, match="more than 16,777,216 bytes"):
        remote(server, seconds=30).embed(["walrus"])


@table("wrong", [status(429), status(500), status(503), hangs_up])
def test_what_may_pass_is_tried_again_and_then_not(server, wrong):
    server.requests.clear()
    server.answer = wrong
    clock = Clock()
    with pytest.raises(EmbedError):
        remote(server, clock=clock).embed(["walrus"], tries=3)
    assert len(server.requests) == 3
    assert clock.pauses == [0.25, 0.25]


def test_an_endpoint_that_says_when_is_asked_then(server):
    server.answer = status(429, Retry_After="2")
    clock = Clock()
    with pytest.raises(EmbedError):
        remote(server, clock=clock).embed(["walrus"], tries=2)
    assert clock.pauses == [2.0]


def test_one_that_wants_minutes_is_left_alone_for_minutes(server):
    server.answer = status(429, Retry_After="120")
    clock = Clock()
    asked = remote(server, clock=clock)
    with pytest.raises(EmbedError, match="429"):
        asked.embed(["walrus"], tries=3)
    clock.at += 119
    with pytest.raises(Paused):
        asked.embed(["walrus"])
    assert (len(server.requests), clock.pauses) == (1, [])
    clock.at += 2
    server.answer = well
    assert asked.embed(["walrus"])


@table("code", [401, 403, 404, 405])
def test_a_wrong_key_or_address_is_told_at_once_and_not_tried_again(server, code):
    server.requests.clear()
    server.answer = status(code)
    asked = remote(server)
    with pytest.raises(EmbedError, match=str(code)) as failed:
        asked.embed(["walrus"], tries=3)
    assert "embeddings_key_env" in failed.value.hint
    with pytest.raises(Paused):
        asked.embed(["walrus"])
    assert len(server.requests) == 1


def test_after_a_failure_it_is_left_alone_for_a_while(server):
    server.answer = status(500)
    clock = Clock()
    asked = remote(server, clock=clock)
    with pytest.raises(EmbedError, match="500"):
        asked.embed(["walrus"])
    clock.at += PAUSE - 1
    with pytest.raises(Paused):
        asked.embed(["walrus"])
    clock.at += 2
    server.answer = well
    assert asked.embed(["walrus"])
    assert len(server.requests) == 2


@table("code", [400, 413, 422])
def test_a_text_that_is_refused_says_nothing_about_the_endpoint(server, code):
    server.requests.clear()
    server.answer = status(code)
    asked = remote(server)
    for _ in range(4):
        with pytest.raises(TextRefused):
            asked.embed(["walrus"], tries=3)
    assert len(server.requests) == 4


def test_neither_key_nor_text_is_in_an_error(server):
    for answer in (status(401), status(400), says(b"walrus"), hangs_up):
        server.answer = answer
        with pytest.raises(EmbedError) as failed:
            remote(server, key="k-secret-1").embed(["walrus"])
        said = f"{failed.value} {failed.value.hint} {failed.value.__cause__}"
        assert "k-secret-1" not in said
        assert "walrus" not in said
