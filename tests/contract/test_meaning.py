"""Meaning costs only itself: prompts do not wait, memories are kept, and everything is caught up when it can be."""

from __future__ import annotations

import pytest
from tests import endpoint
from tests.services import Reports

from foreword.config import load
from foreword.models import Memory, Query
from foreword.store import Store
from foreword.worker.embeddings import Embeddings
from foreword.worker.jobs import JobRunner

PATIENCE = 20.0


@pytest.fixture
def server():
    with endpoint.listening() as here:
        yield here


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "memory.db", backups=tmp_path / "backups")
    yield made
    made.close()


@pytest.fixture
def services(home, store) -> Reports:
    return Reports(store, home)


@pytest.fixture
def choose(home, services):
    """Make embeddings that have loaded their model, or tried to."""
    made: list[tuple[Embeddings, JobRunner]] = []

    def chosen(**given: str) -> Embeddings:
        runner = JobRunner(services)
        made.append((Embeddings(services, runner), runner))
        environ = {f"FOREWORD_{name.upper()}": text for name, text in given.items()}
        made[-1][0].configure(load(home, environ).settings, environ)
        runner.submit("embeddings", lambda: None).result(PATIENCE)
        return made[-1][0]

    yield chosen
    for embeddings, runner in made:
        embeddings.close()
        runner.close()


@pytest.fixture
def remote(choose, server):
    return lambda **more: choose(
        embeddings="remote",
        embeddings_url=server.url,
        embeddings_model="m",
        **more,
    )


def caught_up(meaning, store) -> None:
    meaning._catch_up()


def keep(store, *titles):
    return store.memories.put([Memory("note", title, project="here", created=1.0) for title in titles])


def near(store, vector):
    return [hit.memory.title for hit in store.search.by_meaning(Query(scopes=("project:here",), vector=vector))]


def test_off_means_that_nothing_happens(choose, store, services):
    meaning = choose()
    keep(store, "walrus")
    caught_up(meaning, store)
    assert meaning.embed_prompt("walrus", seconds=1) is None
    assert meaning.embed_memories(store.memories.without_vectors("m")) == ()
    assert (services.problems, store.stats.row_counts()["vectors"]) == ([], 0)


def test_the_table_gives_vectors_in_the_same_commit(choose, store):
    meaning = choose(embeddings="local")
    memories = [Memory("note", title, project="here") for title in ("sign-in fails with a bad token", "rye bread")]
    store.memories.put(memories, vectors=meaning.embed_memories(memories))
    vector = meaning.embed_prompt("authentication is broken", seconds=30)
    assert near(store, vector)[0] == "sign-in fails with a bad token"


def test_what_was_there_before_is_caught_up(choose, remote, store):
    keep(store, *(f"walrus {n}" for n in range(300)))
    caught_up(choose(embeddings="local"), store)
    assert store.memories.without_vectors("wordllama-256") == ()
    caught_up(remote(), store)  # another model begins anew
    assert store.memories.without_vectors("remote:m") == ()
    assert store.stats.row_counts()["vectors"] == 300


def test_the_endpoint_is_not_asked_while_a_memory_is_kept(remote, server):
    assert remote().embed_memories([Memory("note", "walrus")]) == ()
    assert server.requests == []


def test_a_broken_endpoint_costs_vectors_and_nothing_else(remote, store, server, services):
    server.answer = endpoint.status(401)
    meaning = remote()
    (kept,) = keep(store, "walrus")
    for _ in range(3):
        caught_up(meaning, store)
        assert meaning.embed_prompt("walrus", seconds=5) is None
    assert store.memories.get([kept.id])
    assert len(server.requests) == len(services.problems) == 1
    assert "found by their words" in services.problems[0]


def test_what_an_endpoint_could_not_do_it_does_when_it_is_well(remote, store, server):
    server.answer = endpoint.status(500)
    meaning = remote()
    keep(store, "walrus")
    caught_up(meaning, store)
    assert len(store.memories.without_vectors("remote:m")) == 1
    server.answer = endpoint.well
    meaning._not_before = 0.0  # the pause is over
    caught_up(meaning, store)
    assert near(store, meaning.embed_prompt("walrus", seconds=PATIENCE)) == ["walrus"]


def test_one_text_that_is_refused_does_not_cost_the_others_theirs(remote, store, server):
    server.answer = endpoint.refuses("poison")
    keep(store, *(f"walrus {n}" for n in range(20)), "poison", *(f"penguin {n}" for n in range(20)))
    caught_up(remote(), store)
    assert store.memories.without_vectors("remote:m") == ()  # it is not tried for ever
    assert store.stats.row_counts()["vectors"] == 41
    many = len(server.requests)
    caught_up(remote(), store)
    assert len(server.requests) == many


def test_a_prompt_does_not_wait_for_a_slow_endpoint_and_that_is_reported_once(remote, server, services):
    server.answer = endpoint.silent
    meaning = remote()
    for _ in range(5):
        assert meaning.embed_prompt("walrus", seconds=0.05) is None
    assert len(services.problems) == len(server.requests) == 1
    assert "in time" in services.problems[0]


def test_a_secret_or_a_private_part_of_a_prompt_does_not_leave(remote, server):
    meaning = remote()
    prompt = "why does ghp_" + "a1B2" * 9 + " fail <private>the merger</private> walrus"
    assert meaning.embed_prompt(prompt, seconds=PATIENCE) is not None
    (sent,) = server.texts()
    assert "walrus" in sent
    assert "ghp_a1B2" not in sent
    assert "merger" not in sent


def test_a_wrong_setting_is_told_with_the_way_out(choose, services):
    meaning = choose(embeddings="remote")
    assert meaning.embed_prompt("walrus", seconds=1) is None
    assert len(services.problems) == 1
    assert "embeddings_url" in services.problems[0]


def test_turning_it_off_ends_it(choose, home, server, remote):
    meaning = remote()
    assert meaning.embed_prompt("walrus", seconds=PATIENCE) is not None
    meaning.configure(load(home, {}).settings, {})
    assert meaning.embed_prompt("walrus", seconds=PATIENCE) is None
    assert len(server.requests) == 1
