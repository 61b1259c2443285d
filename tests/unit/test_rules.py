"""What says the same is one rule: corrections that repeat one count for it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from foreword.audit import PlanContext
from foreword.maintenance.dedupe import plan_confirmed, same_statement
from foreword.models import TRUSTS, Memory, Project, lowest_trust
from foreword.store import Store

ROOMS = Project(key="git:rooms", name="rooms", root="/rooms")
DAY = 86_400.0


def rule(kind: str, text: str, sessions: dict[str, int], *, at=1.0, instead_of="", trust="user") -> Memory:
    return Memory(
        kind,
        text,
        uid=f"{kind[:3]}:{ROOMS.key}:{text.lower()}",
        project=ROOMS.key,
        scope=ROOMS.scope,
        session=next(iter(sessions)),
        source="claude-code",
        trust=trust,
        confidence=0.8,
        seen=sum(sessions.values()),
        created=at * DAY,
        confirmed=at * DAY,
        detail={"seen_in": sessions, **({"instead_of": instead_of} if instead_of else {})},
    )


def confirmed(store: Store, *memories: Memory) -> list[Memory]:
    """Store memories, plan and carry it out; return what became of them. Planned again, there is nothing to do."""
    store.memories.put(memories)
    about = PlanContext(now=99 * DAY)
    for _ in range(2):
        kept = [memory for _, memory in store.memories.page(scopes=(ROOMS.scope,))]
        planned = plan_confirmed(kept, about=about)
        store.audit.apply(planned, who="tidy", at=99 * DAY)
    assert planned == ()
    return list(store.memories.get_by_uid([each.uid for each in memories]))


LAW = rule("preference", "Use pnpm instead of npm", {"s1": 1, "s2": 1}, instead_of="npm")


def test_a_correction_of_what_is_a_rule_counts_for_the_rule(store):
    again = rule("correction", "No npm here, use pnpm", {"s3": 1}, at=9, instead_of="npm")
    law, again = confirmed(store, LAW, again)
    assert (law.seen, law.confirmed, law.status) == (3, 9 * DAY, "active")
    assert (again.status, again.superseded_by) == ("superseded", law.id)


def test_a_correction_that_is_made_again_in_other_words_counts_for_the_first(store):
    first, *again = confirmed(
        store,
        rule("correction", "Use uv run pytest instead of plain pytest", {"s1": 1}, instead_of="plain pytest"),
        rule("correction", "Use uv run pytest instead of pytest, it is pinned", {"s2": 1}, at=5, instead_of="pytest"),
        rule("correction", "No, use uv run pytest instead of plain pytest", {"s3": 1}, at=9, instead_of="plain pytest"),
    )
    assert (first.seen, first.confirmed, first.status) == (3, 9 * DAY, "active")
    assert {(each.status, each.superseded_by) for each in again} == {("superseded", first.id)}


def test_what_somebody_took_back_is_not_counted_again(store):
    first, second, third = (
        rule("correction", f"{words}use uv run pytest instead of pytest", {f"s{at}": 1}, at=at, instead_of="pytest")
        for at, words in ((1, ""), (2, "No, "), (3, "Please, "))
    )
    store.memories.put([first, second, third])
    kept = [memory for _, memory in store.memories.page(scopes=(ROOMS.scope,))]
    ids = {memory.uid: memory.id for memory in kept}
    for what in ("confirm", "merge"):
        taken_back = frozenset({(what, frozenset({ids[first.uid], ids[second.uid]}))})
        planned = plan_confirmed(kept, about=PlanContext(now=99 * DAY, taken_back=taken_back))
        assert [after.id for each in planned for _, after in each.changed if after.status == "superseded"] == [
            ids[third.uid]
        ]


def test_the_same_in_place_of_something_else_is_another_correction(store):
    pairs = (
        ("Use pnpm instead of npm in the web folder", "Use yarn instead of npm in the web folder", "npm"),
        ("log errors with logger.error instead of print", "log progress with rich instead of print", "print"),
        (
            "Use the staging database instead of sqlite for tests",
            "Use the postgres database instead of sqlite",
            "sqlite",
        ),
    )
    for one, other, wrong in pairs:
        kept = confirmed(
            store,
            rule("correction", one, {"s1": 1}, instead_of=wrong),
            rule("correction", other, {"s2": 1}, at=5, instead_of=wrong),
        )
        assert [each.status for each in kept] == ["active", "active"], one


def test_a_correction_of_something_else_or_by_another_counts_for_no_rule(store):
    other = rule("correction", "Use uv instead of pip", {"s3": 1}, at=9, instead_of="pip")
    agents = rule("correction", "No npm here, use pnpm", {"s3": 1}, at=9, instead_of="npm", trust="agent")
    law, *others = confirmed(store, LAW, other, agents)
    assert (law.seen, [each.status for each in others]) == (2, ["active", "active"])


def test_what_is_to_go_may_be_named_in_more_words(store):
    law = rule("preference", "Use uv run pytest instead of plain pytest", {"s1": 1}, instead_of="plain pytest")
    again = rule("correction", "Use uv run pytest instead of pytest", {"s2": 1}, at=2, instead_of="pytest")
    law, again = confirmed(store, law, again)
    assert (law.seen, again.status) == (2, "superseded")


# ---- what is true of all


CORRECTION = st.tuples(
    st.sampled_from(
        ("use uv run pytest", "use make test", "run pytest with uv", "please use uv run pytest", "use tox")
    ),
    st.sampled_from(("pytest", "plain pytest", "make", "")),
    st.sampled_from(("correction", "correction", "preference")),
)


@given(st.lists(CORRECTION, max_size=9))
def test_whatever_was_corrected_counts_once_for_one_rule(corrections):
    memories = [
        replace(rule(kind, f"{words} instead of {wrong}", {f"s{at}": 1}, at=at, instead_of=wrong), id=f"{kind}-{at}")
        for at, (words, wrong, kind) in enumerate(corrections, 1)
    ]
    kept = {each.id: each for each in memories}
    for planned in plan_confirmed(memories, about=PlanContext(now=99 * DAY)):
        for before, after in planned.changed:
            assert kept[before.id] == before, "each change begins where the last one ended"
            kept[after.id] = after
    active = [each for each in kept.values() if each.status == "active"]
    superseded = [each for each in kept.values() if each.status == "superseded"]
    assert sum(each.seen for each in active) == len(memories)
    assert all(kept[each.superseded_by].status == "active" and each.kind == "correction" for each in superseded)
    assert plan_confirmed(list(kept.values()), about=PlanContext(now=99 * DAY)) == ()


@given(st.lists(st.sampled_from(TRUSTS), min_size=1))
def test_trust_never_rises(trusts):
    assert TRUSTS.index(lowest_trust(trusts)) == max(map(TRUSTS.index, trusts))


WORDS = (
    *("database", "rows", "vanish", "rebuilt", "schema", "cache", "worker", "queue", "mail"),
    *("never", "not", "before", "after"),
)
SENTENCE = st.lists(st.sampled_from(WORDS), min_size=4, max_size=9).map(" ".join)


@given(SENTENCE, SENTENCE)
def test_alike_goes_both_ways(one, other):
    assert same_statement(one, other) == same_statement(other, one)
