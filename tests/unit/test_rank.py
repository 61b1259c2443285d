"""rank: one formula, every factor told, the same order every time."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.models import KINDS, TRIGGERS, Hit, Memory, Near, Query
from foreword.recall.rank import (
    DAY,
    FAR,
    HALF_LIFE,
    REINFORCED,
    STRUCTURE,
    SURELY_NAMED,
    TASKS,
    UNITS,
    min_score,
    rank,
    votes,
    weighed,
)
from foreword.terms import GENERIC, rarity
from tests.tables import table

NOW = 1_000_000_000.0
FACTORS = ["match", "recency", "importance", "reinforcement", "scope", "task"]
QUERY = Query(scopes=("project:p",), terms=("walrus", "pool"))


def a_hit(id="not-1", *, kind="note", source="words", score=1.0, held=None, near=(), age=0.0, **more):
    memory = Memory(kind, **{"title": id, "id": id, "scope": "project:p", "created": NOW - age, **more})
    held = {"walrus": 5.0} if held is None else held
    return Hit(memory=memory, source=source, score=score, strength=score, held=held, full=10.0, size=100, near=near)


def ranked(*hits, trigger="prompt", now=NOW, query=QUERY):
    found = {}
    for hit in hits:
        found.setdefault(hit.source, []).append(hit)
    return rank(found, query=query, now=now, trigger=trigger)


def titled(*hits, query=QUERY):
    """The titles of hits of words, best first, as they are weighed."""
    scored = weighed(hits, query)
    return [hit.memory.title for hit in sorted(scored, key=lambda hit: -hit.score)]


HITS = st.builds(
    a_hit,
    st.sampled_from([f"not-{n}" for n in range(6)]),
    kind=st.sampled_from(list(KINDS)),
    source=st.sampled_from(["words", "structure", "recency", "meaning"]),
    score=st.floats(0, 100),
    held=st.dictionaries(st.sampled_from(["walrus", "pool", "walrus pool", "error"]), st.floats(0.1, 12)),
    age=st.floats(-1e8, 1e9),
    confidence=st.floats(0, 1),
    confirmed=st.floats(0, 2e9),
    scope=st.sampled_from(["project:p", "language:go", "universal"]),
    files=st.lists(st.sampled_from(["a.py", "b.py", "c.py"]), unique=True).map(tuple),
)
QUERIES = st.builds(
    Query,
    scopes=st.just(("project:p",)),
    terms=st.just(("walrus", "pool")),
    files=st.lists(st.sampled_from(["a.py", "walrus"])).map(tuple),
    touched=st.lists(st.sampled_from(["b.py", "z.py"])).map(tuple),
    task=st.sampled_from(["", *TASKS]),
)


@given(st.lists(HITS, max_size=8), st.sampled_from(TRIGGERS), QUERIES)
def test_the_score_is_the_product_of_the_factors_that_are_told(hits, trigger, query):
    for each in ranked(*hits, trigger=trigger, query=query):
        assert list(each.why) == FACTORS
        assert math.isclose(each.score, math.prod(each.why.values()), abs_tol=2e-4)
        assert 0 <= each.score <= 1.2


@given(st.lists(HITS, max_size=8, unique_by=lambda hit: hit.memory.id), st.randoms())
def test_the_order_is_the_same_whatever_the_order_of_the_lists(hits, random):
    shuffled = list(hits)
    random.shuffle(shuffled)
    assert [each.memory.id for each in ranked(*hits)] == [each.memory.id for each in ranked(*shuffled)]
    scores = [each.score for each in ranked(*hits)]
    assert scores == sorted(scores, reverse=True)


@given(st.lists(HITS, max_size=8), QUERIES)
def test_weighing_and_voting_take_any_hits(hits, query):
    scored = weighed(hits, query)
    assert [hit.memory for hit in scored] == [hit.memory for hit in hits]
    assert all(hit.score >= 0 for hit in scored)
    given_votes = votes(scored, query, now=NOW)
    assert len(given_votes) <= UNITS
    assert all(vote > 0 for name, vote in given_votes.items() if name in (*query.files, *query.touched))


def test_what_a_memory_says_decides_its_weight():
    # Ties go to the newer and then by id.
    old, new = a_hit("not-a", kind="decision", created=NOW + 1), a_hit("not-b", kind="decision", created=NOW + 2)
    same = a_hit("not-c", kind="decision", created=NOW + 2)
    assert [each.memory.id for each in ranked(same, old, new)] == ["not-b", "not-c", "not-a"]
    # Saying it often counts but not as often as it is said.
    once, twice, often = (weighed([a_hit(body="walrus " * times)], QUERY)[0].strength for times in (1, 2, 40))
    assert once < twice < often < 4 * once
    # A title says more than a body and a long body less than a short one.
    assert titled(
        a_hit("x", title="a", body="walrus"),
        a_hit("y", title="walrus b"),
        a_hit("z", title="c", body="walrus" + " other" * 900),
    ) == ["walrus b", "a", "c"]
    # Two words side by side say more than the same two apart.
    together = a_hit("x", title="together", held={"walrus": 5.0, "pool": 5.0, "walrus pool": 6.0})
    assert titled(a_hit("y", title="apart", held={"walrus": 5.0, "pool": 5.0}), together) == ["together", "apart"]
    # A word that nobody said says less.
    query = Query(scopes=("project:p",), terms=("walrus",), synonyms={"seal": "walrus"})
    assert titled(
        a_hit("x", title="meant", held={"seal": 6.0}), a_hit("y", title="said", held={"walrus": 3.0}), query=query
    ) == ["said", "meant"]
    # A question that names a whole title means it.
    assert (
        titled(a_hit("x", title="walrus", held={"walrus": 5.0}), a_hit("y", title="walrus club", held={"walrus": 5.0}))[
            0
        ]
        == "walrus"
    )
    # What follows a question answers it.
    asks = a_hit("x", title="asks", session="s", body="where is the walrus?", held={"walrus": 5.0})
    answer = a_hit("y", title="answers", session="s", body="by the pool", held={}, near=(Near(-1, ("walrus",), True),))
    later = a_hit("z", title="later", session="s", body="so", held={}, near=(Near(-2, ("walrus",), True),))
    before = a_hit("w", title="before", session="s", body="hm", held={}, near=(Near(1, ("walrus",), True),))
    titles = titled(later, before, answer, asks)
    assert titles.index("answers") < titles.index("later")
    assert titles.index("answers") < titles.index("before")
    # A neighbour counts less than the memory itself.
    own_hit = a_hit("x", title="said", session="s", held={"walrus": 5.0})
    beside = a_hit("y", title="beside", session="s", held={}, near=(Near(-1, ("walrus",), False),))
    assert titled(beside, own_hit) == ["said", "beside"]


# ---- what a memory says


# ---- the code it is about


def test_the_code_it_is_about_votes():
    # The files and functions of the best hits vote.
    best = a_hit("x", score=10.0, files=("app.py",), functions=("run",))
    worst = a_hit("y", score=1.0, files=("README.md",))
    counted = votes([worst, best], QUERY, now=NOW)
    assert counted["app.py"] > counted["run"] > counted["README.md"]
    # One who names everything has no more voices than one who names one.
    counted = votes(
        [a_hit("x", files=tuple(f"{n}.py" for n in range(20))), a_hit("y", files=("one.py",))], QUERY, now=NOW
    )
    assert counted["one.py"] == pytest.approx(20 * counted["3.py"])
    # A file that the prompt names outvotes the hits.
    query = Query(scopes=("project:p",), terms=("walrus",), files=("named.py",), touched=("touched.py",))
    counted = votes([a_hit("x", files=("a.py", "b.py"))], query, now=NOW)
    assert counted["named.py"] > counted["a.py"] > counted["touched.py"] > 0
    # What shares its code with the best comes without words.
    direct = a_hit("x", files=("app.py",))
    same = a_hit("y", source="structure", score=3.0, held={"app.py": 4.0}, files=("app.py",))
    first, second = ranked(direct, same, a_hit("x", source="structure", score=3.0, files=("app.py",)))
    assert (first.memory.id, second.memory.id) == ("x", "y")
    assert second.why["match"] > 0.3 * first.why["match"]
    # Votes say nothing where all are about the same code.
    by_words = [
        a_hit("x", kind="decision", score=9.0, files=("a.py",)),
        a_hit("y", kind="decision", score=3.0, files=("a.py",)),
    ]
    same = [a_hit(id, kind="decision", source="structure", score=5.0, files=("a.py",)) for id in "xy"]
    few, many = (ranked(*by_words, *(hit._replace(size=size) for hit in same)) for size in (2, 200))
    assert few[1].score == pytest.approx(few[0].score / 3, rel=0.01)
    assert many[1].score > 0.7 * many[0].score
    # What names no code is judged by its words alone.
    order = ranked(
        a_hit("x", kind="decision", score=9.0),
        a_hit("y", kind="decision", score=9.0, files=("a.py",)),
        a_hit("z", kind="decision", source="structure", score=5.0, files=("b.py",)),
    )
    by_id = {each.memory.id: each.why["match"] for each in order}
    assert by_id["x"] > by_id["z"] > by_id["y"]
    # A prompt that names code is about this project.
    query = Query(scopes=("project:p",), terms=("app",), files=("app.py",))
    (only,) = ranked(a_hit(source="structure", score=1.0, held={"app.py": 4.0}, files=("app.py",)), query=query)
    assert only.why["match"] == pytest.approx(SURELY_NAMED * STRUCTURE / (1 + STRUCTURE), rel=0.01)


def test_meaning_moves_what_words_have_found():
    # Meaning alone makes nothing sure.
    (only,) = ranked(a_hit(source="meaning", score=0.9))
    assert only.score == 0
    # Meaning moves what words have found.
    one, two = a_hit("not-a", score=9.0), a_hit("not-b", score=9.0)
    nearer = [a_hit("not-b", source="meaning", score=0.8), a_hit("not-a", source="meaning", score=0.2)]
    assert [each.memory.id for each in ranked(one, two, *nearer)] == ["not-b", "not-a"]


# ---- how sure


def sureness(**more):
    (only,) = ranked(*weighed([a_hit(**{"held": {"walrus": 5.0, "pool": 5.0}, **more})], QUERY))
    return only.why["match"]


def test_the_more_is_met_the_surer():
    # The more of the question is met the surer.
    assert sureness(held={"walrus": 5.0}) < sureness(held={"walrus": 5.0, "pool": 5.0})
    assert sureness() < sureness(held={"walrus": 5.0, "pool": 5.0, "walrus pool": 6.0})
    # Words of every project make less sure.
    assert {"error", "config"} < GENERIC
    assert sureness(held={"error": 5.0, "config": 5.0}) < 0.6 * sureness()
    # Of many memories one matches by chance.
    few, many = (
        ranked(*(Hit(hit.memory, "words", 5.0, 5.0, hit.held, 10.0, size) for hit in [a_hit()]))
        for size in (200, 50_000)
    )
    assert many[0].score < few[0].score
    # Hits about the same code make surer than scattered ones.
    together = ranked(*(a_hit(f"not-{n}", files=("a.py",)) for n in range(4)))
    scattered = ranked(*(a_hit(f"not-{n}", files=(f"{n}.py",)) for n in range(4)))
    assert together[0].why["match"] > scattered[0].why["match"]


def test_words_are_answered_with_silence_or_with_what_is_near_the_best():
    assert min_score(0.5, threshold=0.51) == 0.51
    assert min_score(0.5, threshold=0.4) == 0.5 * FAR
    assert min_score(0.0, threshold=0.1) == 0.1


# ---- the tables


@table("kind", KINDS)
def test_a_memory_counts_half_at_its_half_life(kind):
    (only,) = ranked(a_hit(kind=kind, age=HALF_LIFE[kind] * DAY), trigger="session_start")
    assert only.why["recency"] == 0.5


def test_age_scope_and_task_are_factors():
    # An observation fades in weeks and a decision hardly in a year.
    (observation,) = ranked(a_hit(kind="observation", age=90 * DAY), trigger="session_start")
    (decision,) = ranked(a_hit(kind="decision", age=365 * DAY), trigger="session_start")
    assert observation.why["recency"] < 0.35
    assert decision.why["recency"] >= 0.75
    # A memory from the future counts no more than a fresh one.
    future, fresh = ranked(a_hit("not-a", age=-1e9), a_hit("not-b", age=0), trigger="session_start")
    assert future.score == fresh.score
    # What was confirmed lately is as fresh as that.
    (only,) = ranked(a_hit(kind="note", age=365 * DAY, confirmed=NOW))
    assert only.why["recency"] == 1.0
    # The scope counts at session start alone.
    hits = [a_hit("not-p"), a_hit("not-l", scope="language:go"), a_hit("not-u", scope="universal")]
    assert [each.why["scope"] for each in ranked(*hits, trigger="session_start")] == [1.0, 0.7, 0.4]
    assert {each.why["scope"] for each in ranked(*hits, trigger="prompt")} == {1.0}
    # The task is a small factor.
    assert {0.8 < factor < 1.25 for kinds in TASKS.values() for factor in kinds.values()} == {True}
    debugging = Query(scopes=("project:p",), terms=("walrus",), task="debugging")
    assert ranked(a_hit(kind="failure"), query=debugging)[0].why["task"] > 1
    # Nothing found is nothing ranked.
    assert ranked() == rank({"words": []}, query=QUERY, now=NOW, trigger="prompt") == ()


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_fewer_hold_it_the_more_it_weighs(holders, size):
    assert rarity(holders, size) > rarity(holders + 1, size) > 0


# ---- reinforcement

TIMES = st.integers(0, 10_000)


def reinforcement(*, used=0, ignored=0, pinned=False):
    (got,) = ranked(a_hit(used=used, ignored=ignored, pinned=pinned))
    return got.why["reinforcement"]


def test_pins_and_use_reinforce():
    # What was never judged counts one however often it was shown.
    assert reinforcement() == 1.0
    # What is pinned has all that use could give.
    assert reinforcement(pinned=True, ignored=50) == 1 + REINFORCED


@given(used=TIMES, ignored=TIMES, more=st.integers(1, 1000))
def test_more_use_never_lowers_and_more_for_nothing_never_raises(used, ignored, more):
    assert reinforcement(used=used + more, ignored=ignored) >= reinforcement(used=used, ignored=ignored)
    assert reinforcement(used=used, ignored=ignored + more) <= reinforcement(used=used, ignored=ignored)


@given(used=TIMES, ignored=TIMES)
def test_use_moves_a_score_no_further_than_it_may(used, ignored):
    assert 1 - REINFORCED <= reinforcement(used=used, ignored=ignored) <= 1 + REINFORCED
    assert (reinforcement(used=used) > 1) == (used > 0)
    assert (reinforcement(ignored=ignored) < 1) == (ignored > 0)


@given(used=st.integers(1, 100))
def test_one_use_makes_up_for_four_times_for_nothing(used):
    assert reinforcement(used=used, ignored=4 * used) == 1.0
    assert reinforcement(used=used, ignored=4 * used - 1) > 1 > reinforcement(used=used, ignored=4 * used + 1)


@given(used=TIMES, ignored=TIMES, trigger=st.sampled_from(TRIGGERS))
def test_of_equal_memories_the_used_one_comes_before_the_ignored_one(used, ignored, trigger):
    first = a_hit("not-1", ignored=ignored + 1)
    second = a_hit("not-2", used=used + 1)
    assert [each.memory.id for each in ranked(first, second, trigger=trigger)] == ["not-2", "not-1"]
