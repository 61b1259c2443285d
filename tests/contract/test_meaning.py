"""Embeddings cost only themselves: memories are kept without them, and what has none is caught up."""

from __future__ import annotations

import pytest
from tests.services import Reports

from foreword.config import load
from foreword.models import Memory, Query
from foreword.store import Store
from foreword.worker import embeddings as module
from foreword.worker.embeddings import Embeddings
from foreword.worker.jobs import JobRunner

PATIENCE = 20.0


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
    """Make embeddings that have loaded their table, or tried to."""
    made: list[tuple[Embeddings, JobRunner]] = []

    def chosen(how: str = "off", embeddings: Embeddings | None = None) -> Embeddings:
        if embeddings is None:
            runner = JobRunner(services)
            made.append((Embeddings(services, runner), runner))
            embeddings = made[-1][0]
        embeddings.configure(load(home, {"FOREWORD_EMBEDDINGS": how}).settings)
        made[-1][1].submit("embeddings", lambda: None).result(PATIENCE)
        return embeddings

    yield chosen
    for _, runner in made:
        runner.close()


def keep(store, *titles):
    return store.memories.put([Memory("note", title, project="here", created=1.0) for title in titles])


def near(store, vector):
    return [hit.memory.title for hit in store.search.by_vector(Query(scopes=("project:here",), vector=vector))]


def test_off_means_that_nothing_happens(choose, store, services):
    meaning = choose()
    keep(store, "walrus")
    meaning._catch_up()
    assert meaning.embed_prompt("walrus") is None
    assert (services.problems, store.stats.row_counts()["vectors"]) == ([], 0)


def test_the_table_gives_vectors_soon(choose, store):
    meaning = choose("local")
    keep(store, "sign-in fails with a bad token", "rye bread")
    meaning._catch_up()
    vector = meaning.embed_prompt("authentication is broken")
    assert near(store, vector)[0] == "sign-in fails with a bad token"
    assert choose("off", meaning).embed_prompt("authentication is broken") is None


def test_what_was_there_before_is_caught_up(choose, store):
    keep(store, *(f"walrus {n}" for n in range(300)))
    choose("local")._catch_up()
    assert store.memories.without_vectors("wordllama-256") == ()
    assert store.stats.row_counts()["vectors"] == 300


def test_a_table_that_cannot_be_read_is_told_with_the_way_out(choose, services, monkeypatch):
    monkeypatch.setattr(module, "TABLE", "weights/none.safetensors")
    assert choose("local").embed_prompt("walrus") is None
    assert "found by their words" in services.problems[0]
    assert "wordllama" in services.problems[0]
