"""Corrections that were made again are proposed as rules, and only the user makes them rules."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foreword.audit import PlanContext
from foreword.maintenance.dedupe import same_statement
from foreword.maintenance.proposals import plan, plan_confirmed, rule_of
from foreword.models import TRUSTS, Memory, Project, lowest_trust
from foreword.store import Store
from tests.tables import table

ROOMS = Project(key="git:rooms", name="rooms", root="/rooms")
DAY = 86_400.0


def rule(kind: str, text: str, sessions: dict[str, int], *, at=1.0, instead_of="", project=ROOMS) -> Memory:
    return Memory(
        kind,
        text,
        uid=f"{kind[:3]}:{project.key}:{text.lower()}",
        project=project.key,
        scope=project.scope,
        session=next(iter(sessions)),
        source="claude-code",
        trust="user",
        confidence=0.8,
        seen=sum(sessions.values()),
        created=at * DAY,
        confirmed=at * DAY,
        detail={"seen_in": sessions, **({"instead_of": instead_of} if instead_of else {})},
    )


def planned(store: Store, *, plan=plan):
    memories = [memory for _, memory in store.memories.page(scopes=(ROOMS.scope,), limit=5000)]
    return plan(memories, about=PlanContext(now=99 * DAY, taken_back=store.audit.undone()))


def proposed(store: Store, *memories: Memory, plan=plan):
    """Keep memories, plan and carry it out; whatever was proposed. Planned again, there is nothing to do."""
    store.memories.put(memories)
    store.audit.apply(planned(store, plan=plan), who="tidy", at=99 * DAY)
    again = planned(store, plan=plan)
    assert again == (), [(each.why, each.changed, each.new) for each in again]
    return [each for _, each in store.memories.page(limit=5000) if "proposed" in each.uid]


def test_a_correction_made_again_is_proposed(make_store):
    # A correction made again is proposed and not active.
    store = make_store()
    (got,) = proposed(store, rule("correction", "Use pnpm instead of npm", {"s1": 1, "s2": 1}, instead_of="npm"))
    assert (got.kind, got.status, got.trust, got.title) == ("preference", "proposed", "user", "Use pnpm instead of npm")
    (why,) = store.memories.links(got.id)
    assert (why.relation, store.memories.get([why.target])[0].kind) == ("caused-by", "correction")
    # The same swap in other words is the same correction.
    store = make_store()
    one = rule("correction", "Use pnpm instead of npm", {"s1": 1}, instead_of="npm")
    two = rule("correction", "Stop using npm here, use pnpm", {"s2": 1}, at=2, instead_of="npm")
    (got,) = proposed(store, one, two)
    assert got.title == "Stop using npm here, use pnpm"
    assert got.detail["seen_in"] == {"s1": 1, "s2": 1}
    # What is to go may be named in more words.
    store = make_store()
    one = rule("correction", "Use uv run pytest instead of plain pytest", {"s1": 1}, instead_of="plain pytest")
    two = rule("correction", "Use uv run pytest instead of pytest", {"s2": 1}, at=2, instead_of="pytest")
    (got,) = proposed(store, one, two)
    assert got.seen == 2
    # What is corrected again counts for the rule that it became.
    store = make_store()
    law = rule("preference", "Use pnpm instead of npm", {"s1": 1, "s2": 1}, instead_of="npm")
    again = rule("correction", "No npm here, use pnpm", {"s3": 1}, at=9, instead_of="npm")
    assert proposed(store, law, again, plan=plan_confirmed) == []
    law, again = store.memories.get_by_uid([law.uid, again.uid])
    assert (law.seen, law.confirmed, law.status) == (3, 9 * DAY, "active")
    assert (again.status, again.superseded_by) == ("superseded", law.id)
    # A refused proposal stays away, however often it is said.
    store = make_store()
    (got,) = proposed(store, rule("correction", "Use pnpm instead of npm", {"s1": 1, "s2": 1}, instead_of="npm"))
    store.memories.put([replace(got, status="discarded")])
    many = {f"s{number}": 1 for number in range(50)}
    (got,) = proposed(store, rule("correction", "Use pnpm instead of npm", many, instead_of="npm"))
    assert got.status == "discarded"
    # I said is no part of the rule.
    store = make_store()
    (got,) = proposed(store, rule("correction", "I told you to keep the answers short please", {"s1": 1, "s2": 1}))
    assert got.title == "Keep the answers short please"


@table(
    "corrections",
    [
        [rule("correction", "Use pnpm instead of npm", {"s1": 2}, instead_of="npm")],  # one sitting
        [
            rule("correction", "Use pnpm instead of npm", {"s1": 1}, instead_of="npm"),
            rule("correction", "Use uv instead of pip", {"s2": 1}, instead_of="pip"),
        ],
        [  # he changed his mind
            rule("correction", "Use tabs instead of spaces", {"s1": 1, "s2": 1}, instead_of="spaces"),
            rule("correction", "Use spaces instead of tabs", {"s3": 1}, at=9, instead_of="tabs"),
        ],
        [  # he has said it as a rule
            rule("correction", "Use pnpm instead of npm", {"s1": 1, "s2": 1}, instead_of="npm"),
            rule("preference", "Always use pnpm instead of npm", {"s3": 1}, instead_of="npm"),
        ],
        [replace(rule("correction", "Use pnpm instead of npm", {"s1": 1, "s2": 1}), trust="agent")],
        [replace(rule("correction", "Use pnpm instead of npm", {"s1": 1, "s2": 1}), status="superseded")],
    ],
)
def test_what_was_said_once_or_taken_back_or_by_another_is_not_proposed(store, corrections):
    assert proposed(store, *corrections) == []


def test_what_somebody_took_back_is_not_proposed_again(make_store):
    store = make_store()
    correction = rule("correction", "Use pnpm instead of npm", {"s1": 1, "s2": 1}, instead_of="npm")
    proposed(store, correction)
    store.audit.undo(store.audit.list(), who="user", at=100 * DAY)
    (got,) = proposed(store, replace(correction, seen=3))
    assert got.status == "discarded"


# ---- what is true of all


@given(st.lists(st.sampled_from(TRUSTS), min_size=1))
def test_trust_never_rises(trusts):
    assert TRUSTS.index(lowest_trust(trusts)) == max(map(TRUSTS.index, trusts))


WORDS = (
    "database",
    "rows",
    "vanish",
    "rebuilt",
    "schema",
    "cache",
    "worker",
    "queue",
    "mail",
    "never",
    "not",
    "before",
    "after",
)
SENTENCE = st.lists(st.sampled_from(WORDS), min_size=4, max_size=9).map(" ".join)


@given(SENTENCE, SENTENCE)
def test_alike_goes_both_ways(one, other):
    assert same_statement(one, other) == same_statement(other, one)


RULES = st.builds(
    rule,
    st.sampled_from(["correction", "preference", "decision"]),
    SENTENCE,
    st.dictionaries(st.sampled_from(["s1", "s2", "s3"]), st.integers(1, 3), min_size=1),
    instead_of=st.sampled_from(["", "cache", "queue", "mail sandbox"]),
    at=st.integers(1, 30),
)
UID = lambda memory: memory.uid  # noqa: E731


def carried_out(memories, memory_changes):
    """What the store makes of amendments."""
    after = {memory.uid: memory for memory in memories}
    for one in memory_changes:
        for before, changed in one.changed:
            assert after[before.uid] == before
            after[before.uid] = changed
        after |= {new.uid: replace(new, id=f"new-{len(after)}") for new in one.new}
    return list(after.values())


@given(st.lists(RULES, max_size=14, unique_by=UID))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine
def test_whatever_was_said_is_proposed_once_and_nothing_becomes_a_rule_by_itself(memories):
    about = PlanContext(now=99 * DAY)
    numbered = [replace(each, id=f"id-{number}") for number, each in enumerate(memories)]
    known = {each.uid: each for each in numbered}
    got = carried_out(numbered, plan(numbered, about=about))
    assert plan(got, about=about) == ()
    assert {each.uid: each for each in got if each.uid in known} == known
    fresh = [each for each in got if each.uid not in known]
    assert all((each.kind, each.status, each.trust) == ("preference", "proposed", "user") for each in fresh)


@given(st.text(max_size=60))
def test_a_rule_is_never_emptied(text):
    assert rule_of(text).strip() or not text.strip()
