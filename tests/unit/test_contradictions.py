"""What superseding promises: a choice that was taken back is not told as the present one, and none is hidden wrongly."""

from __future__ import annotations

from dataclasses import replace

from foreword.audit import PlanContext
from foreword.maintenance.contradictions import plan
from foreword.models import Memory, Project

HERE = Project(key="here", name="here", root="/here")
ABOUT = PlanContext(now=100.0)

# Earlier, later: the later one takes the earlier one back.
TAKEN_BACK = [
    ("Use Redis for the cache", "Use Valkey for the cache instead of Redis"),
    ("Use Redis for the cache", "Use Valkey instead of Redis"),
    ("Use Redis", "Switch from Redis to Valkey"),
    ("Store the cache in Redis", "Move the cache to Valkey"),
    ("Use Redis for the cache", "Switch to Valkey for the cache"),
    ("Use Redis for sessions", "Replace Redis with Valkey for sessions"),
    ("Store sessions in Redis", "Store sessions in Postgres instead"),
    ("Store sessions in Redis", "Store sessions in Postgres instead of Redis"),
    ("Use tabs", "Never use tabs"),
    ("Use tabs for indentation", "Don't use tabs for indentation"),
    ("Never use mocks", "Use mocks"),
    ("Set the line length to 100", "Set the line length to 120"),
    ("The line length is 100", "Set the line length to 120"),
    ("Limit uploads to 10 MB", "Limit uploads to 25 MB"),
    ("Keep the timeout at 30 seconds", "The timeout should be 60 seconds"),
    ("Use npm", "Use pnpm rather than npm"),
    ("Use npm for the frontend", "Use pnpm, not npm"),
    ("Use Poetry", "Migrate from Poetry to uv because it is faster"),
    ("Run tests with tox", "Run tests with nox instead of tox"),
    ("We use GraphQL for the public API", "Let's use REST for the public API instead of GraphQL"),
    ("Use Flask", "Use FastAPI over Flask since we need async"),
    ("Go with MongoDB", "Instead of MongoDB use Postgres"),
    ("Use port 8080 for the API", "Use port 9090 for the API instead"),
    ("Deploy the docs on Netlify", "Deploy the docs on Pages instead of Netlify"),
    ("Use axios in the client", "Stop using axios in the client"),
    ("Store bookings in a SQLite file", "Store bookings in Postgres instead of SQLite"),
    ("Store bookings in Postgres instead of SQLite", "Store bookings in MySQL"),
    ("Keep prices as floats in euros", "Use integer cents for prices instead of floats"),
    ("Keep each forecast for an hour", "Keep each forecast for ten minutes"),
    (
        "Use single quotes instead of double quotes in TypeScript",
        "Use double quotes instead of single quotes in TypeScript",
    ),
    ("Use SendGrid for guest mails", "Use Postmark for guest mails, because SendGrid loses our mails"),
]
# Both hold.
BOTH_HOLD = [
    ("Use Redis for the cache", "Use Redis for the queue"),
    ("Use Redis for the cache", "Use Postgres for the users instead of MySQL"),
    ("Use Redis for the cache", "Use Valkey for the queue instead of Redis"),
    ("Use Redis for sessions and Postgres for everything else", "Use Valkey instead of Redis"),
    ("Never use Redis", "Use Valkey instead of Redis"),
    ("Use pytest for tests", "Use hypothesis for tests"),
    ("Use Postgres for storage", "Use S3 for storage"),
    ("Use tabs in Makefiles", "Never use tabs in Python files"),
    ("Use mocks for the payment API", "Don't use mocks"),
    ("Set the line length to 100", "Set the timeout to 120 seconds"),
    ("Run tests with pytest -x", "Run tests with coverage in CI"),
    ("Use uv", "Use ruff"),
    ("Use dataclasses for values", "Use pydantic for settings"),
    ("Keep functions short", "Keep commits small"),
    ("Use snake_case for functions", "Use PascalCase for classes"),
    ("Use feature flags for the rollout", "Move the rollout to next week"),
    ("Use Valkey instead of Redis", "Use Valkey for the cache"),
    ("Use Python 3.11", "Use Python 3.12 for the docs build"),
    ("Store sessions in Redis", "Store uploads in S3 instead of the disk"),
    ("Use REST for the public API", "Use gRPC between services instead of REST"),
    ("Write tests with pytest", "Write docs with mkdocs instead of sphinx"),
    ("Use the staging database if the tests need data", "Never use the staging database"),
    ("Deploy the docs on Netlify", "Deploy the API on Fly instead of Heroku"),
    ("Limit uploads to 10 MB", "Limit retries to 3"),
    ("Use British spelling in the docs", "Use American spelling in the API"),
    ("Use port 8080 for the API", "Switch to gRPC for the API"),
    ("Use Postgres for the API", "Move the API to Kubernetes"),
    ("Use async functions in the worker only", "Don't use async functions"),
    ("Use React for the frontend", "Use Tailwind for the frontend, because it goes well with React"),
    ("Keep docs in English", "Keep docs in docs/"),
    ("Keep each forecast for an hour", "Keep each invoice for ten years"),
    ("Store sessions in Redis", "Store uploads in S3"),
    ("Use single quotes in TypeScript", "Use double quotes instead of single quotes in Python"),
]


def memory(title: str, id: str, at: float, kind: str = "decision", **more: object) -> Memory:
    base = Memory(kind, title, id=id, uid=id, scope=HERE.scope, project=HERE.key, created=at, confirmed=at)
    return replace(base, **more)


def superseded(earlier: Memory, later: Memory, about: PlanContext = ABOUT) -> bool:
    return bool(plan([later, earlier], about=about))


def pair(one: str, other: str) -> tuple[Memory, Memory]:
    return memory(one, "dec-1", 1.0), memory(other, "dec-2", 2.0)


def test_of_fifty_pairs_precision_is_one_and_most_that_was_taken_back_is_found():
    assert len(TAKEN_BACK) >= 20
    assert len(BOTH_HOLD) >= 20
    found = [superseded(*pair(*each)) for each in TAKEN_BACK]
    wrong = [each for each in BOTH_HOLD if superseded(*pair(*each))]
    missed = [each for each, hit in zip(TAKEN_BACK, found, strict=True) if not hit]
    assert wrong == [], "precision"
    assert sum(found) / len(found) >= 0.9, missed


def test_what_was_taken_back_is_superseded_by_whom_it_may_be():
    # The earlier points at the later and both tell of it.
    earlier, later = pair("Use Redis for the cache", "Use Valkey for the cache instead of Redis")
    (memory_change,) = plan([earlier, later], about=ABOUT)
    (_, after), (_, same) = memory_change.changed
    assert (after.status, after.superseded_by, after.title) == ("superseded", "dec-2", earlier.title)
    assert same == later
    assert [(each.source, each.relation, each.target) for each in memory_change.links] == [
        ("dec-2", "supersedes", "dec-1")
    ]
    # What was not chosen may be told beside the text.
    earlier = memory("Use Redis for the cache", "dec-1", 1.0)
    assert superseded(earlier, memory("Use Valkey", "cor-2", 2.0, "correction", detail={"instead_of": "Redis"}))
    # A correction in whatever words takes back what it names.
    earlier = memory("Use Redis for the cache", "dec-1", 1.0)
    sentence = "That should be Valkey, not Redis"
    assert superseded(earlier, memory(sentence, "cor-2", 2.0, "correction", detail={"instead_of": "Redis"}))
    elsewhere = f"{sentence}, in the queue"
    assert not superseded(earlier, memory(elsewhere, "cor-2", 2.0, "correction", detail={"instead_of": "Redis"}))
    # An agent never supersedes what the user said.
    earlier, later = pair("Use Redis", "Use Valkey instead of Redis")
    assert not superseded(earlier, replace(later, trust="agent"))
    assert superseded(replace(earlier, trust="agent"), later)
    assert superseded(replace(earlier, trust="agent"), replace(later, trust="agent"))
    # What was said last counts whichever was kept first.
    early, late = pair("Use Redis", "Use Valkey instead of Redis")
    assert not superseded(replace(early, confirmed=3.0), late)
    # What is pinned stays.
    early, late = pair("Use Redis", "Use Valkey instead of Redis")
    assert not superseded(replace(early, pinned=True), late)
    # Another projects choice takes nothing back.
    early, late = pair("Use Redis", "Use Valkey instead of Redis")
    assert not superseded(replace(early, project="there", scope="project:there"), late)
    # What was taken back by hand is not done again.
    taken_back = PlanContext(now=1.0, taken_back=frozenset({("supersede", frozenset({"dec-1", "dec-2"}))}))
    assert not superseded(*pair("Use Redis", "Use Valkey instead of Redis"), taken_back)


def done(memories: list[Memory]) -> dict[str, Memory]:
    now = {each.id: each for each in memories}
    for memory_change in plan(memories, about=ABOUT):
        now.update((after.id, after) for _, after in memory_change.changed)
    return now


def test_of_choices_that_changed_often_one_is_present():
    # What the user chose again counts again.
    now = done(list(pair("Use Redis", "Use Valkey instead of Redis")))
    again = replace(now["dec-1"], confirmed=5.0)
    then = done([again, now["dec-2"]])
    assert (then["dec-1"].status, then["dec-1"].superseded_by) == ("active", "")
    assert (then["dec-2"].status, then["dec-2"].superseded_by) == ("superseded", "dec-1")
    assert plan(list(then.values()), about=ABOUT) == ()
    # What a person superseded is not brought back.
    by_hand = memory("Use Redis", "dec-1", 5.0, status="superseded", superseded_by="dec-2")
    assert plan([by_hand, memory("Use Valkey", "dec-2", 2.0)], about=ABOUT) == ()
    # Of two that may be meant none is hidden.
    early = [memory("Use Postgres for the API", "dec-1", 1.0), memory("Use Flask for the API", "dec-2", 2.0)]
    assert plan([*early, memory("Switch to FastAPI for the API", "dec-3", 3.0)], about=ABOUT) == ()
    # One mind that changes thrice has one present choice.
    titles = ("Use Redis", "Use Valkey instead of Redis", "Use Memcached instead of Valkey")
    now = done([memory(title, f"dec-{at}", float(at)) for at, title in enumerate(titles)])
    assert [each.id for each in now.values() if each.status == "active"] == ["dec-2"]
    assert plan(list(now.values()), about=ABOUT) == ()
