"""Everyday prompts without a topic get nothing, and prompts with one get its memory: over real stores, as installed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.eval.datasets import read_sets
from foreword.config import load, load_synonyms
from foreword.models import Context, Project, Trigger
from foreword.paths import Home
from foreword.recall.pipeline import options_of, recall
from foreword.store import Store
from tests.everyday import DAY, EVERYDAY, TOPICAL, remembered
from tests.tables import table

NOW = 1_750_000_000.0
SILENT = 95  # of 100
ANSWERED = {"notes": 22, "index": 27}  # of 30, by style
REPLAYED = ("aider", "datasette", "httpx", "litestream")


@pytest.fixture(scope="module")
def ask_store(tmp_path_factory):
    """Asks a store as an installation without any file of the user's would."""
    home = Home(root=tmp_path_factory.mktemp("home"))
    settings = load(home, {}).settings
    synonyms, wrong = load_synonyms(home)
    assert not wrong

    def ask(there, prompt, style="notes"):
        got = recall(
            there.store.search,
            Trigger(name="prompt", project=there.project, prompt=prompt, languages=()),
            options=options_of(settings, "prompt", synonyms=synonyms)._replace(style=style),
            now=there.now,
        )
        assert got.problems == ()
        return got

    return ask


def opened(folder: Path, memories, *, now: float):
    """A store of one project's memories."""
    project = Project(key="there", name="there", root="/nowhere")
    store = Store(folder / "memory.db", backups=folder / "backups")
    kept = store.memories.put([replace(memory, project=project.key) for memory in memories])
    return SimpleNamespace(store=store, project=project, now=now, titles={each.id: each.title for each in kept})


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A store of made-up memories."""
    made = opened(tmp_path_factory.mktemp("shop"), remembered(project="there", now=NOW), now=NOW)
    yield made
    made.store.close()


@pytest.fixture(scope="module", params=REPLAYED)
def replayed(request, shared: Path, tmp_path_factory):
    """A store of what really happened in a public project."""
    folder = shared / "bench" / "replay" / request.param
    if not folder.is_dir():
        pytest.skip(f"no replay of {request.param} beside this checkout")
    (dataset,) = read_sets([folder])
    now = dataset.memories[-1].created + DAY
    made = opened(tmp_path_factory.mktemp(request.param), dataset.memories, now=now)
    yield made
    made.store.close()


def spoken(there, ask_store):
    """What a store says to prompts that have no topic: the prompt, the best score and title, and the words."""
    answers = {prompt: ask_store(there, prompt) for prompt in EVERYDAY}
    return [
        f"{prompt!r} -> {got.items[0].score:.3f} {there.titles[got.items[0].memory]!r} for {got.terms}"
        for prompt, got in answers.items()
        if isinstance(got, Context)
    ]


def test_the_everyday_prompts_are_a_hundred_different_ones():
    assert len(set(EVERYDAY)) == len(EVERYDAY) == 100
    assert len(TOPICAL) == 30


def test_made_up_memories_stay_silent_at_everyday_prompts(shop, ask_store):
    answered = spoken(shop, ask_store)
    assert len(answered) <= len(EVERYDAY) - SILENT, "\n".join(answered)


def test_replayed_projects_stay_silent_at_everyday_prompts(replayed, ask_store):
    answered = spoken(replayed, ask_store)
    assert len(answered) <= len(EVERYDAY) - SILENT, "\n".join(answered)


@table("style", ANSWERED)
def test_prompts_with_a_topic_are_answered_with_its_memory(shop, ask_store, style):
    missed = []
    for prompt, title in TOPICAL.items():
        got = ask_store(shop, prompt, style)
        titles = [shop.titles[item.memory] for item in got.items] if isinstance(got, Context) else []
        if not any(each.startswith(title) for each in titles):
            missed.append(f"{prompt!r} should bring {title!r}; it brought {titles or got.reason}")
    assert len(missed) <= len(TOPICAL) - ANSWERED[style], "\n".join(missed)
