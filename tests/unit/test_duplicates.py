"""What merging promises: what says the same becomes one, with all evidence; what only sounds the same stays two."""

from __future__ import annotations

from dataclasses import replace

from foreword.audit import PlanContext
from foreword.maintenance.dedupe import plan
from foreword.models import Memory, Project
from tests.tables import table

HERE = Project(key="here", name="here", root="/here")
ABOUT = PlanContext(now=100.0)


def memory(title: str, id: str = "dec-1", kind: str = "decision", **more: object) -> Memory:
    made = Memory(kind, title, id=id, uid=id, scope=HERE.scope, project=HERE.key, created=1.0, confirmed=1.0)
    return replace(made, **more)


def after(memories: list[Memory], about: PlanContext = ABOUT) -> dict[str, Memory]:
    """The memories by id when all that was planned is done."""
    now = {each.id: each for each in memories}
    for memory_change in plan(memories, about=about):
        for before, then in memory_change.changed:
            assert now[before.id] == before
            now[before.id] = then
    return now


def merged(one: Memory, other: Memory) -> bool:
    return any(each.what == "merge" for each in plan([one, other], about=ABOUT))


def test_a_merge_takes_no_name_from_the_one_that_stays():
    many = {each: tuple(f"{each}{n}" for n in range(60)) for each in ("files", "functions", "tags")}
    kept = memory("Use Redis for the cache", "dec-1", pinned=True, **many)
    few = {"files": ("more",), "functions": ("more",), "tags": ("more",)}
    both = after([kept, memory("use redis for cache.", "dec-2", **few)])["dec-1"]
    assert both.seen == 2
    assert {each: getattr(both, each) for each in many} == many


SAME = [
    ("Use Redis for the cache", "use redis for cache."),
    ("Run the tests with uv run pytest", "Run tests with `uv run pytest`"),
    ("Don't commit generated files", "Do not commit generated files"),
    ("Actions are registered by plugins through register_actions", "Actions are registered by plugins through register actions"),
    ("For sessions use Redis", "Use Redis for sessions"),
]  # fmt: skip
DIFFERENT = [
    ("Use Redis rather than Valkey for sessions", "Use Valkey rather than Redis for sessions"),
    ("Use port 8080 for the internal API of the gateway that our mobile clients ask for their tokens", "Use port 8081 for the internal API of the gateway that our mobile clients ask for their tokens"),
    ("Always squash the commits of a branch with a good message when it is merged to main", "Never squash the commits of a branch with a good message when it is merged to main"),
    ("Store the sessions of all users and the tokens they were given in Redis with a lifetime that the settings tell", "Store the sessions of all users and the tokens they were given in Valkey with a lifetime that the settings tell"),
    ("Run the linter before the tests in each job of the pipeline that checks a pull request of somebody", "Run the linter after the tests in each job of the pipeline that checks a pull request of somebody"),
    ("Migrate from Flask to Django", "Migrate from Django to Flask"),
    ("Use Redis for the cache", "Use Redis for the queue"),
]  # fmt: skip


@table(("one", "other"), SAME)
def test_what_says_the_same_is_merged(one, other):
    assert merged(memory(one, "dec-1"), memory(other, "dec-2"))


@table(("one", "other"), DIFFERENT)
def test_what_only_sounds_the_same_stays_two(one, other):
    assert not merged(memory(one, "dec-1"), memory(other, "dec-2"))


def test_the_winner_holds_all_evidence_and_the_highest_trust():
    # The winner holds the evidence of both and the loser points at it.
    one = memory("Use Redis", "dec-1", seen=2, created=5.0, confirmed=9.0, files=("a.py",), confidence=0.7,
                 detail={"seen_in": {"s1": 2}})  # fmt: skip
    two = memory("use redis", "dec-2", seen=3, created=2.0, confirmed=4.0, files=("b.py",), tags=("cache",),
                 confidence=0.9, detail={"seen_in": {"s1": 1, "s2": 2}, "why": "it is there"})  # fmt: skip
    now = after([one, two])
    winner, loser = now["dec-1"], now["dec-2"]
    assert (winner.seen, winner.detail["seen_in"]) == (5, {"s1": 3, "s2": 2})
    assert (winner.created, winner.confirmed, winner.confidence) == (2.0, 9.0, 0.9)
    assert (winner.files, winner.tags, winner.detail["why"]) == (("a.py", "b.py"), ("cache",), "it is there")
    assert (loser.status, loser.superseded_by, loser.title) == ("superseded", "dec-1", "use redis")
    (memory_change,) = plan([one, two], about=ABOUT)
    assert [(each.source, each.relation, each.target) for each in memory_change.links] == [
        ("dec-1", "supersedes", "dec-2")
    ]
    # Another fix is another failure.
    one = memory("no such table: users", "fai-1", "failure", detail={"fixed_by": "ran `migrate`"})
    two = memory("no such table: users", "fai-2", "failure", detail={"fixed_by": "added await to setup()"})
    assert not merged(one, two)
    assert merged(one, replace(two, detail={}))
    # What the user said stays the users.
    user, agent = (
        memory("Use Redis", "dec-9", confirmed=1.0),
        memory("Use Redis", "dec-1", trust="agent", confirmed=9.0),
    )
    now = after([user, agent])
    assert (now["dec-9"].status, now["dec-9"].trust) == ("active", "user")
    assert now["dec-1"].superseded_by == "dec-9"
    # The words of a lower trust are not put into the users mouth.
    user = memory("Use Redis", "dec-1")
    agent = memory("Use Redis", "dec-2", trust="agent", detail={"why": "I like it"})
    assert "why" not in after([user, agent])["dec-1"].detail
    assert not merged(user, replace(agent, body="as everybody does who has no time"))
    # A pinned memory is never put aside.
    pinned = memory("Use Redis", "dec-1", trust="tool", pinned=True)
    assert not merged(pinned, memory("Use Redis", "dec-2"))  # nor is the user's own for a tool's
    assert not merged(pinned, memory("Use Redis", "dec-2", trust="tool", pinned=True))
    assert after([pinned, memory("Use Redis", "dec-2", trust="tool", confirmed=9.0)])["dec-1"].seen == 2


@table("kind", ["summary", "handoff", "change", "observation", "goal", "note", "project"])
def test_events_and_own_lines_stay_as_they_are(kind):
    assert not merged(memory("Use Redis", "a", kind), memory("Use Redis", "b", kind))


def test_merges_stay_within_project_and_kind_and_are_not_redone():
    # Never across projects or kinds.
    one = memory("Use Redis", "dec-1")
    assert not merged(one, replace(one, id="dec-2", project="there", scope="project:there"))
    assert not merged(one, replace(one, id="pre-2", kind="preference"))
    # What was taken back is not done again.
    one, two = memory("Use Redis", "dec-1"), memory("Use Redis", "dec-2")
    taken_back = PlanContext(now=1.0, taken_back=frozenset({("merge", frozenset({"dec-1", "dec-2"}))}))
    assert plan([one, two], about=taken_back) == ()
    # A merged memory that wins no more gives way again.
    first = after([memory("Use Redis", "dec-1"), memory("Use Redis", "dec-2", confirmed=2.0)])
    now = after([*first.values(), memory("Use Redis", "dec-3", confirmed=3.0)])
    assert [each.id for each in now.values() if each.status == "active"] == ["dec-3"]
    assert now["dec-3"].seen == 3
    assert not plan(list(now.values()), about=ABOUT)


@table("status", ["superseded", "stale", "discarded", "forgotten"])
def test_only_what_is_active_is_merged(status):
    assert not merged(memory("Use Redis", "dec-1"), memory("Use Redis", "dec-2", status=status))
