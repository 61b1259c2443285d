"""rank: one formula, every factor told, the same order every time."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.rank import CERTAIN, DAY, HALF_LIFE, IMPORTANCE, SCOPE_AT_START, WORDS_FLOOR, rank
from foreword.store.reading import _logarithm
from foreword.types import KINDS, MOMENTS, Hit, Memory

NOW = 1_000_000_000.0
FACTORS = ["match", "recency", "importance", "reinforcement", "scope", "task"]


def a_hit(id="not-1", *, kind="note", source="words", score=1.0, matched=1.0, age=0.0, **more):
    memory = Memory(kind, id, id=id, **{"scope": "project:p", "created": NOW - age, **more})
    return Hit(memory=memory, source=source, score=score, matched=matched)


def ranked(*hits, moment="prompt", now=NOW):
    found = {}
    for hit in hits:
        found.setdefault(hit.source, []).append(hit)
    return rank(found, now=now, moment=moment)


HITS = st.builds(
    a_hit,
    st.sampled_from([f"not-{n}" for n in range(6)]),
    kind=st.sampled_from(list(KINDS)),
    source=st.sampled_from(["words", "recency"]),
    score=st.floats(0, 100),
    matched=st.floats(0, 1),
    age=st.floats(-1e8, 1e9),
    confidence=st.floats(0, 1),
    confirmed=st.floats(0, 2e9),
    scope=st.sampled_from(["project:p", "language:go", "universal"]),
)


@given(st.lists(HITS, max_size=8), st.sampled_from(MOMENTS))
def test_the_score_is_the_product_of_the_factors_that_are_told(hits, moment):
    for each in ranked(*hits, moment=moment):
        assert list(each.why) == FACTORS
        assert math.isclose(each.score, math.prod(each.why.values()), abs_tol=2e-4)
        assert 0 <= each.score <= 1


@given(st.lists(HITS, min_size=1, max_size=8), st.sampled_from(MOMENTS))
def test_the_formula_is_match_recency_importance_and_scope(hits, moment):
    expected = {}
    for hit in hits:
        memory = hit.memory
        top = max(other.score for other in hits if other.source == hit.source)
        place = hit.score / top if top > 0 else 1.0
        match = hit.matched * (WORDS_FLOOR + (1 - WORDS_FLOOR) * place) if hit.source == "words" else 1.0
        age = max(0.0, NOW - max(memory.created, memory.confirmed))
        recency = 1 / (1 + age / (HALF_LIFE[memory.kind] * DAY))
        scope = SCOPE_AT_START[memory.scope.partition(":")[0]] if moment == "session_start" else 1.0
        score = match * recency * IMPORTANCE[memory.kind] * memory.confidence * scope
        expected[memory.id] = max(expected.get(memory.id, 0.0), score)
    assert {each.memory.id: each.score for each in ranked(*hits, moment=moment)} == {
        id: pytest.approx(score, abs=1e-6) for id, score in expected.items()
    }


@given(st.lists(HITS, max_size=8, unique_by=lambda hit: hit.memory.id), st.randoms())
def test_the_order_is_the_same_whatever_the_order_of_the_lists(hits, random):
    shuffled = list(hits)
    random.shuffle(shuffled)
    assert ranked(*hits) == ranked(*shuffled)
    scores = [each.score for each in ranked(*hits)]
    assert scores == sorted(scores, reverse=True)


def test_ties_go_to_the_newer_and_then_by_id():
    old, new = a_hit("not-a", kind="decision", created=NOW + 1), a_hit("not-b", kind="decision", created=NOW + 2)
    same = a_hit("not-c", kind="decision", created=NOW + 2)
    assert [each.memory.id for each in ranked(same, old, new)] == ["not-b", "not-c", "not-a"]


def test_a_memory_that_several_sources_found_counts_once_by_its_best():
    (only,) = ranked(a_hit(source="words", matched=0.5), a_hit(source="recency"))
    assert only.why["match"] == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_memory_counts_half_at_its_half_life(kind):
    (only,) = ranked(a_hit(kind=kind, age=HALF_LIFE[kind] * DAY))
    assert only.why["recency"] == 0.5


def test_an_observation_fades_in_weeks_and_a_decision_hardly_in_a_year():
    (observation,) = ranked(a_hit(kind="observation", age=90 * DAY))
    (decision,) = ranked(a_hit(kind="decision", age=365 * DAY))
    assert observation.why["recency"] < 0.35
    assert decision.why["recency"] >= 0.75


def test_a_memory_from_the_future_counts_no_more_than_a_fresh_one():
    future, fresh = ranked(a_hit("not-a", age=-1e9), a_hit("not-b", age=0))
    assert future.score == fresh.score


def test_what_was_confirmed_lately_is_as_fresh_as_that():
    (only,) = ranked(a_hit(kind="note", age=365 * DAY, confirmed=NOW))
    assert only.why["recency"] == 1.0


def test_the_scope_counts_at_session_start_alone():
    hits = [a_hit("not-p"), a_hit("not-l", scope="language:go"), a_hit("not-u", scope="universal")]
    assert [each.why["scope"] for each in ranked(*hits, moment="session_start")] == [1.0, 0.7, 0.4]
    assert {each.why["scope"] for each in ranked(*hits, moment="prompt")} == {1.0}


def test_every_kind_has_its_weights_and_the_specifications_are_kept():
    assert IMPORTANCE.keys() == HALF_LIFE.keys() == KINDS.keys()
    told = {"pattern": 1.0, "decision": 0.9, "failure": 0.8, "handoff": 0.7, "project": 0.6, "note": 0.3}
    assert IMPORTANCE.items() >= told.items()
    assert CERTAIN == 0.5


def test_nothing_found_is_nothing_ranked():
    assert rank({}, now=NOW, moment="prompt") == rank({"words": []}, now=NOW, moment="prompt") == ()


@given(st.floats(1, 1e9))
def test_the_light_logarithm_is_the_logarithm(number):
    assert _logarithm(number) == pytest.approx(math.log(number), abs=2e-6)
