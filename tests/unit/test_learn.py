"""What repeats over sessions becomes known, with its evidence; nothing else does, and only the user makes rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foreword import learn
from foreword.distill import gist, merged
from foreword.learn.alike import alike, opposite
from foreword.learn.confidence import confidence
from foreword.learn.said import plain
from foreword.recall.rank import CERTAIN
from foreword.recall.render import line
from foreword.store.sqlite import Store
from foreword.trust import lowest
from foreword.types import TRUSTS, Injection, Item, Memory, Project, Ranked
from tests.tables import table

ROOMS = Project(key="git:rooms", name="rooms", root="/rooms")
BARS = Project(key="git:bars", name="bars", root="/bars")
DAY = 86_400.0


@dataclass(frozen=True)
class About:
    project: Project
    taken_back: frozenset[tuple[str, frozenset[str]]] = frozenset()
    shown_to: Callable[[str], frozenset[str]] = lambda _memory: frozenset()
    give_way: Callable[[], object] = lambda: None


def summary(session: str, at: float, *, learned=(), files=(), checks=(), trust="agent", project=ROOMS) -> Memory:
    told = {"learned": list(learned), "checks": list(checks)}
    return Memory(
        "summary",
        f"What {session} was about",
        uid=f"sum:{project.key}:{session}",
        project=project.key,
        scope=project.scope,
        session=session,
        source="claude-code",
        trust=trust,
        files=tuple(files),
        created=at * DAY,
        confirmed=at * DAY,
        detail={name: each for name, each in told.items() if each},
    )


def rule(kind: str, text: str, sessions: dict[str, int], *, at=1.0, last=0.0, instead_of="", project=ROOMS) -> Memory:
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
        confirmed=(last or at) * DAY,
        detail={"seen_in": sessions, **({"instead_of": instead_of} if instead_of else {})},
    )


def failure(message: str, sessions, fixes: dict[str, str], *, at=1.0, last=5.0, print="f1", type="KeyError") -> Memory:
    fixed = {"fixed_by": list(fixes.values())[-1], "fixed_in": fixes} if fixes else {}
    return Memory(
        "failure",
        message,
        uid=f"fai:{ROOMS.key}:{print}",
        project=ROOMS.key,
        scope=ROOMS.scope,
        session="s1",
        source="claude-code",
        trust="tool",
        created=at * DAY,
        confirmed=last * DAY,
        detail={
            "command": "uv run pytest",
            "type": type,
            "message": message,
            "fingerprint": print,
            "open": not fixes,
            "seen_in": dict.fromkeys(sessions, 1),
            **fixed,
        },
    )


def planned(store: Store, *, plan=learn.plan, project=ROOMS, everything=False):
    scopes = () if everything else (project.scope,)
    memories = [memory for _, memory in store.page(scopes=scopes, limit=5000)]
    return plan(memories, about=About(project, store.taken_back(), store.shown_to))


def learnt(store: Store, *memories: Memory, plan=learn.plan, **more):
    """Keep memories, plan and carry it out; whatever was learned, by kind. Planned again, there is nothing to do."""
    store.keep(memories)
    store.amend(planned(store, plan=plan, **more), who="tidy", at=99 * DAY)
    again = planned(store, plan=plan, **more)
    assert again == (), [(each.why, each.changed, each.new) for each in again]
    found = [memory for _, memory in store.page(limit=5000)]
    return [each for each in found if each.source == "sessions" or "proposed" in each.uid or "everywhere" in each.uid]


def known_here(memory: Memory) -> str:
    return line(Ranked(memory, 1.0, {}), layer="knowledge", now=0.0)


REBUILT = "The internal database is rebuilt at start-up, so rows written in tests vanish"
REBUILT_TOO = "Turns out rows written in tests vanish because the internal database is rebuilt at startup"


# ---- what is said again


def test_what_two_sessions_say_becomes_one_learning(make_store):
    # What two sessions say alike becomes a learning that reads well.
    store = make_store()
    (got,) = learnt(store, summary("s1", 1, learned=[REBUILT]), summary("s2", 3, learned=[REBUILT_TOO]))
    assert known_here(got) == f"- Gotcha (sessions): {REBUILT}"
    assert got.detail["seen_in"] == {"s1": 1, "s2": 1}
    assert (got.seen, got.trust, got.created, got.confirmed) == (2, "agent", 3 * DAY, 3 * DAY)
    assert got.confidence == pytest.approx(0.67)
    # One session that says it three times is one session.
    store = make_store()
    assert learnt(store, summary("s1", 1, learned=[REBUILT, REBUILT_TOO, REBUILT])) == []
    # What the user laid down already is not learned again.
    store = make_store()
    laid = rule("decision", "The internal database is rebuilt at start-up so rows written in tests vanish", {"s0": 1})
    assert learnt(store, laid, summary("s1", 1, learned=[REBUILT]), summary("s2", 3, learned=[REBUILT_TOO])) == []
    # New evidence updates the same learning.
    store = make_store()
    (one,) = learnt(store, summary("s1", 1, learned=[REBUILT]), summary("s2", 3, learned=[REBUILT_TOO]))
    (two,) = learnt(store, summary("s3", 5, learned=[REBUILT]))
    assert (two.id, two.uid, two.title, two.created) == (one.id, one.uid, one.title, one.created)
    assert (two.seen, two.confirmed) == (3, 5 * DAY)
    assert two.confidence > one.confidence


@table(
    ("first", "second"),
    [
        (REBUILT, "The mail sandbox rejects our sender until the domain is verified"),  # two things
        (REBUILT, "The internal database is not rebuilt at start-up, so rows written in tests do stay"),  # the opposite
        ("The problem was a missing import", "The problem was a missing migration"),  # every day's words
        ("The tests pass now because overlaps() compares half-open hours", "The tests pass now because overlaps() "
         "compares half-open hours"),  # of that session
        ("Changed line 12 of bookings.py so that hours are half-open", "Changed line 30 of bookings.py so that hours "
         "are half-open"),
    ],
)  # fmt: skip
def test_what_is_not_the_same_or_only_of_its_session_is_not_learned(store, first, second):
    assert learnt(store, summary("s1", 1, learned=[first]), summary("s2", 3, learned=[second])) == []


def test_what_is_denied_sleeps_and_being_shown_confirms_nothing(make_store):
    # What sessions deny sleeps and wakes when it is confirmed.
    store = make_store()
    denied = "The internal database is not rebuilt at start-up, rows written in tests stay"
    learnt(store, summary("s1", 1, learned=[REBUILT]), summary("s2", 3, learned=[REBUILT_TOO]))
    (asleep,) = learnt(store, summary("s3", 5, learned=[denied]))
    assert asleep.confidence < CERTAIN
    assert learn.asleep(asleep)
    assert asleep.detail["against"] == {"s3": 1}
    (awake,) = learnt(store, summary("s4", 7, learned=[REBUILT]))
    assert awake.confidence >= CERTAIN
    assert not learn.asleep(awake)
    # Who was shown a learning and says it again confirms nothing.
    store = make_store()
    (one,) = learnt(store, summary("s1", 1, learned=[REBUILT]), summary("s2", 3, learned=[REBUILT_TOO]))
    shown(store, one, "s3", "s4")
    assert learnt(store, summary("s3", 5, learned=[REBUILT]), summary("s4", 6, learned=[REBUILT_TOO])) == [one]
    (by_itself,) = learnt(store, summary("s5", 7, learned=[REBUILT_TOO]))
    assert set(by_itself.detail["seen_in"]) == {"s1", "s2", "s5"}
    assert (by_itself.seen, by_itself.confirmed) == (3, 7 * DAY)
    # Who was shown a learning may deny it and who said it first has said it.
    store = make_store()
    (one,) = learnt(store, summary("s1", 1, learned=[REBUILT]), summary("s2", 3, learned=[REBUILT_TOO]))
    shown(store, one, "s2", "s3")
    assert learnt(store) == [one]
    otherwise = "The internal database is not rebuilt at start-up, rows written in tests stay"
    (denied,) = learnt(store, summary("s3", 5, learned=[otherwise]))
    assert (denied.detail["against"], set(denied.detail["seen_in"])) == ({"s3": 1}, {"s1", "s2"})


def shown(store: Store, memory: Memory, *sessions: str) -> None:
    item = Item(memory=memory.id, layer="knowledge", score=1.0, tokens=9, why={})
    for each in sessions:
        store.record(
            Injection(f"inj-{each}", "session_start", each, ROOMS.key, "codex", 4.0, 9, 500, 1.0, {}, {}, (item,))
        )


def test_evidence_stays_and_what_a_person_said_or_took_back_counts(make_store):
    # The evidence of sessions that are gone stays.
    store = make_store()
    summaries = [summary("s1", 1, learned=[REBUILT]), summary("s2", 3, learned=[REBUILT_TOO])]
    learnt(store, *summaries)
    store.keep([replace(each, status="forgotten", detail={}, session="") for each in summaries])
    (got,) = learnt(store, summary("s3", 5, learned=[REBUILT]))
    assert set(got.detail["seen_in"]) == {"s1", "s2", "s3"}
    # What a person wrote is not lowered by sessions but by the person.
    store = make_store()
    mine = Memory(
        "learning",
        REBUILT,
        uid="mine",
        project=ROOMS.key,
        scope=ROOMS.scope,
        created=DAY,
        confirmed=DAY,
        confidence=0.9,
    )
    denied = "The internal database is not rebuilt at start-up, rows written in tests stay"
    learnt(store, mine, summary("s1", 2, learned=[denied]), summary("s2", 3, learned=[denied]))
    (kept,) = store.by_uid(["mine"])
    assert (kept.confidence, kept.trust, set(kept.detail["against"])) == (0.9, "user", {"s1", "s2"})
    learnt(store, rule("correction", denied, {"s3": 1}, at=5))
    (lowered,) = store.by_uid(["mine"])
    assert learn.asleep(lowered)
    # What an agent wrote is not lowered by being confirmed.
    store = make_store()
    written = Memory(
        "learning",
        REBUILT,
        uid="agent-1",
        project=ROOMS.key,
        scope=ROOMS.scope,
        created=DAY,
        source="codex",
        trust="agent",
    )
    learnt(store, written, summary("s1", 2, learned=[REBUILT_TOO]))
    (kept,) = store.by_uid(["agent-1"])
    assert (kept.confidence, kept.detail["seen_in"]) == (1.0, {"s1": 1})
    # What somebody took back is not learned again.
    store = make_store()
    learnt(store, summary("s1", 1, learned=[REBUILT]), summary("s2", 3, learned=[REBUILT_TOO]))
    store.undo(store.log(), who="user", at=100 * DAY)
    (got,) = learnt(store, summary("s3", 5, learned=[REBUILT]))
    assert got.status == "discarded"


# ---- how checks are run

AUTO = "uv run pytest -n auto"


def test_the_way_checks_are_run_becomes_a_convention(make_store):
    # The command that three sessions test with becomes a convention.
    store = make_store()
    days = [summary(f"s{day}", day, checks=[AUTO]) for day in (1, 2, 3)]
    assert learnt(store, *days[:2]) == []
    (got,) = learnt(store, days[2])
    assert known_here(got) == f"- Convention (sessions): Tests are run with `{AUTO}`"
    # What anybody would type is not worth a line.
    store = make_store()
    assert learnt(store, *(summary(f"s{day}", day, checks=["pytest", "make"]) for day in range(1, 6))) == []
    # What the user said about it is enough.
    store = make_store()
    said = rule("preference", f"Always run the tests with `{AUTO}`", {"s0": 1})
    assert learnt(store, said, *(summary(f"s{day}", day, checks=[AUTO]) for day in (1, 2, 3))) == []
    # A way that is over is not learned late.
    store = make_store()
    days = [summary(f"s{day:02}", day, checks=[AUTO if day <= 10 else "make test"]) for day in range(1, 14)]
    got = {each.detail["command"]: each for each in learnt(store, *days)}
    assert got.keys() == {"make test"}  # nobody learns what is over
    # A command that was known sleeps when another takes over.
    store = make_store()
    learnt(store, *(summary(f"s{day:02}", day, checks=[AUTO]) for day in range(1, 11)))
    got = learnt(store, *(summary(f"s{day:02}", day, checks=["make test"]) for day in range(11, 14)))
    asleep = {each.detail["command"]: learn.asleep(each) for each in got}
    assert asleep == {AUTO: True, "make test": False}
    # Two kinds of tests are not against each other.
    store = make_store()
    days = [summary(f"s{day:02}", day, checks=["npm run test:ui" if day % 2 else AUTO]) for day in range(1, 13)]
    got = learnt(store, *days)
    assert {each.detail["command"]: learn.asleep(each) for each in got} == {AUTO: False, "npm run test:ui": False}


# ---- what changes together


def test_files_that_change_together_are_told_where_nobody_would_guess_it(make_store):
    # Files that change together are told where nobody would guess.
    store = make_store()
    pair = ("rooms/models.py", "web/schema.graphql")
    (got,) = learnt(store, *(summary(f"s{day}", day, files=(*pair, f"rooms/{day}.py")) for day in (1, 2, 3)))
    assert known_here(got) == "- Architecture (sessions): rooms/models.py and web/schema.graphql change together"
    assert got.files == pair
    # What changes with everything and in sweeps is not coupled.
    store = make_store()
    sweep = tuple(f"a{number}/f{number}.py" for number in range(12))
    busy = [summary(f"s{day:02}", day, files=("app/main.py", f"x{day % 3}/y.sql")) for day in range(1, 13)]
    assert learnt(store, *busy, *(summary(f"w{day}", day, files=sweep) for day in range(1, 6))) == []
    # Files that stop changing together sleep.
    store = make_store()
    pair = ("rooms/models.py", "web/schema.graphql")
    learnt(store, *(summary(f"s{day}", day, files=pair) for day in (1, 2, 3)))
    (got,) = learnt(store, *(summary(f"s{day}", day, files=pair[:1]) for day in (4, 5)))
    assert learn.asleep(got)
    # A project has few such lines.
    store = make_store()
    days = [
        (summary(f"s{n}-{day}", day, files=(f"a{n}/x{n}.py", f"b{n}/z{n}.sql"))) for day in (1, 2, 3) for n in range(9)
    ]
    assert len(learnt(store, *days)) == 3


@table(
    "pair",
    [
        ("rooms/models.py", "tests/test_models.py"),  # a test
        ("rooms/models.py", "rooms/views.py"),  # neighbours
        ("pyproject.toml", "docs/uv.lock"),
        ("rooms/models.py", "CHANGELOG.md"),
        ("rooms/models.py", "web/models.ts"),  # namesakes
    ],
)
def test_what_anybody_would_guess_is_not_worth_a_line_either(store, pair):
    assert learnt(store, *(summary(f"s{day}", day, files=pair) for day in range(1, 6))) == []


# ---- failures


def test_a_failure_that_nothing_fixed_is_a_gotcha_until_there_is_a_fix(make_store):
    # A failure that nothing fixed becomes a gotcha.
    store = make_store()
    (got,) = learnt(store, failure("ConnectionError: mail sandbox refused port 2525", ["s1", "s2"], {}))
    said = '- Gotcha (sessions): "ConnectionError: mail sandbox refused port 2525" comes back, and no fix is known'
    assert known_here(got) == said
    assert got.trust == "tool"
    (cause,) = store.linked(got.id)
    assert cause.relation == "caused-by"
    # A failure of one morning or with a fix is no gotcha.
    store = make_store()
    assert learnt(store, failure("ConnectionError: refused", ["s1", "s2"], {}, at=1.0, last=1.1)) == []
    assert learnt(store, failure("ConnectionError: refused", ["s1", "s2"], {"s2": "ran `make up`"}, print="f2")) == []
    # A gotcha sleeps once there is a fix.
    store = make_store()
    open_one = failure("ConnectionError: mail sandbox refused port 2525", ["s1", "s2"], {})
    learnt(store, open_one)
    fixed = failure(open_one.title, ["s1", "s2", "s3"], {"s3": "ran `make sandbox`"})
    (got,) = learnt(store, fixed)
    assert learn.asleep(got)


def test_the_same_fix_three_times_is_a_pattern(make_store):
    # Three sessions with the same fix make a pattern and the failure stays.
    store = make_store()
    message = "OperationalError: no such table: catalog_resources"
    fixes = {
        "s1": "client() in tests/conftest.py: added `await refresh_schemas()`",
        "s2": "changed client() in tests/conftest.py",
        "s3": "client() in tests/conftest.py: `yield app` became `await refresh_schemas(); yield app`",
    }
    (got,) = learnt(store, failure(f"{message} (test_token)", ["s1", "s2", "s3"], fixes))
    assert (got.kind, got.title, got.seen, got.trust) == ("pattern", message, 3, "tool")
    assert got.detail["problem"] == message
    assert got.detail["solution"] == fixes["s3"]
    assert got.detail["context"] == "running `uv run pytest`"
    (failed,) = store.by_uid([f"fai:{ROOMS.key}:f1"])
    assert failed.status == "active"
    assert [(link.source, link.relation, link.target) for link in store.linked(got.id)] == [
        (got.id, "caused-by", failed.id)
    ]
    # The same error of several tests is one problem.
    store = make_store()
    message = "OperationalError: no such table: catalog_resources"
    three = [
        failure(f"{message} (test_{each})", [each], {each: "changed client() in tests/conftest.py"}, print=each)
        for each in ("s1", "s2", "s3")
    ]
    (got,) = learnt(store, *three)
    assert len(store.linked(got.id)) == 3
    # A pattern that helps again is the same pattern.
    store = make_store()
    fixes = dict.fromkeys(("s1", "s2", "s3"), "changed client() in tests/conftest.py")
    (one,) = learnt(store, failure("KeyError: 'sender'", list(fixes), fixes))
    more = fixes | {"s4": "changed client() in tests/conftest.py"}
    (two,) = learnt(store, failure("KeyError: 'sender'", list(more), more))
    assert (two.id, two.seen) == (one.id, 4)
    # What fixed a failure is kept for every session.
    one = failure("KeyError: 'sender'", ["s1"], {"s1": "ran `make up`"})
    two = failure("KeyError: 'sender'", ["s2"], {"s2": "changed connect() in db.py"})
    assert merged(one, two).detail["fixed_in"] == {"s1": "ran `make up`", "s2": "changed connect() in db.py"}


@table(
    "fixes",
    [
        {"s1": "ran `make up`", "s2": "ran `make up`"},
        {"s1": "changed a() in x.py", "s2": "changed b() in x.py", "s3": "changed c() in x.py"},
        {"s1": "ran `make up`", "s2": "ran `make up`", "s3": "changed connect() in db.py"},
    ],
)
def test_two_sessions_or_other_fixes_make_no_pattern(store, fixes):
    got = learnt(store, failure("KeyError: 'sender'", ["s1", "s2", "s3"], fixes))
    assert [each for each in got if each.kind == "pattern"] == []


# ---- proposals


def test_a_correction_made_again_is_proposed(make_store):
    # A correction made again is proposed and not active.
    store = make_store()
    (got,) = learnt(store, rule("correction", "Use pnpm instead of npm", {"s1": 1, "s2": 1}, instead_of="npm"))
    assert (got.kind, got.status, got.trust, got.title) == ("preference", "proposed", "user", "Use pnpm instead of npm")
    (why,) = store.linked(got.id)
    assert (why.relation, store.by_id([why.target])[0].kind) == ("caused-by", "correction")
    # The same swap in other words is the same correction.
    store = make_store()
    one = rule("correction", "Use pnpm instead of npm", {"s1": 1}, instead_of="npm")
    two = rule("correction", "Stop using npm here, use pnpm", {"s2": 1}, at=2, instead_of="npm")
    (got,) = learnt(store, one, two)
    assert got.title == "Stop using npm here, use pnpm"
    assert got.detail["seen_in"] == {"s1": 1, "s2": 1}
    # What is to go may be named in more words.
    store = make_store()
    one = rule("correction", "Use uv run pytest instead of plain pytest", {"s1": 1}, instead_of="plain pytest")
    two = rule("correction", "Use uv run pytest instead of pytest", {"s2": 1}, at=2, instead_of="pytest")
    (got,) = learnt(store, one, two)
    assert got.seen == 2
    # What is corrected again counts for the rule that it became.
    store = make_store()
    law = rule("preference", "Use pnpm instead of npm", {"s1": 1, "s2": 1}, instead_of="npm")
    again = rule("correction", "No npm here, use pnpm", {"s3": 1}, at=9, instead_of="npm")
    assert learnt(store, law, again, plan=learn.plan_confirmed) == []
    law, again = store.by_uid([law.uid, again.uid])
    assert (law.seen, law.confirmed, law.status) == (3, 9 * DAY, "active")
    assert (again.status, again.superseded_by) == ("superseded", law.id)
    # A refused proposal comes back once and only with much new evidence.
    store = make_store()

    def said(sessions: int) -> Memory:
        return rule("correction", "Use pnpm instead of npm", {f"s{n}": 1 for n in range(sessions)}, instead_of="npm")

    (got,) = learnt(store, said(2))
    store.keep([replace(got, status="discarded", detail={**got.detail, "refused": {"sessions": 2, "times": 1}})])
    for sessions, status in ((3, "discarded"), (4, "discarded"), (5, "proposed")):
        (got,) = learnt(store, said(sessions))
        assert got.status == status
    store.keep([replace(got, status="discarded", detail={**got.detail, "refused": {"sessions": 5, "times": 2}})])
    (got,) = learnt(store, said(50))
    assert got.status == "discarded"
    # I said is no part of the rule.
    store = make_store()
    (got,) = learnt(store, rule("correction", "I told you to keep the answers short please", {"s1": 1, "s2": 1}))
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
    assert learnt(store, *corrections) == []


def test_what_two_projects_have_is_proposed_for_all(make_store):
    # What two projects have is proposed for all and names no other project.
    store = make_store()
    here = rule("preference", "Keep the answers short and plain", {"s1": 1})
    there = rule("correction", "Keep answers short and plain", {"s2": 1}, at=4, project=BARS)
    (got,) = learnt(store, here, there, plan=learn.plan_wider, everything=True)
    assert (got.status, got.scope, got.project) == ("proposed", ROOMS.scope, ROOMS.key)
    assert got.detail["scope"] == "universal"
    assert "bars" not in f"{got}"
    assert store.linked(got.id) == ()
    assert learnt(store, plan=learn.plan_wider, everything=True) == [got]
    # Projects of one language get a rule for that language.
    store = make_store()
    both = [
        replace(rule("preference", "Use pathlib instead of os.path", {"s1": 1}, project=each), files=("a/b.py", "c.py"))
        for each in (ROOMS, BARS)
    ]
    (got,) = learnt(store, *both, plan=learn.plan_wider, everything=True)
    assert got.detail["scope"] == "language:python"
    # What one project has is not proposed for all.
    store = make_store()
    rules = [
        rule("preference", text, {"s1": 1})
        for text in ("Keep the answers short and plain", "Keep answers short, plain")
    ]
    assert learnt(store, *rules, plan=learn.plan_wider, everything=True) == []


# ---- what is true of all


@given(st.lists(st.booleans(), max_size=30))
def test_confidence_never_falls_by_confirmation_nor_rises_by_contradiction(verdicts):
    sure = confidence(verdicts)
    assert 0 <= sure < 1
    assert confidence([*verdicts, True]) >= sure >= confidence([*verdicts, False])


@given(st.lists(st.sampled_from(TRUSTS), min_size=1))
def test_trust_never_rises(trusts):
    assert TRUSTS.index(lowest(trusts)) == max(map(TRUSTS.index, trusts))


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
def test_alike_goes_both_ways_and_nothing_is_alike_and_opposite(one, other):
    assert alike(one, other) == alike(other, one)
    assert opposite(one, other) == opposite(other, one)
    assert not (alike(one, other) and opposite(one, other))


SUMMARIES = st.builds(
    summary,
    st.sampled_from([f"s{n}" for n in range(9)]),
    st.integers(1, 30),
    learned=st.lists(SENTENCE, max_size=3),
    files=st.lists(st.sampled_from(["a/x.py", "b/y.sql", "c/z.ts", "d/w.md"]), max_size=3, unique=True),
    checks=st.lists(st.sampled_from([AUTO, "make test", "uv run pytest"]), max_size=2, unique=True),
    trust=st.sampled_from(["agent", "imported"]),
)
RULES = st.builds(
    rule,
    st.sampled_from(["correction", "preference", "decision"]),
    SENTENCE,
    st.dictionaries(st.sampled_from(["s1", "s2", "s3"]), st.integers(1, 3), min_size=1),
    instead_of=st.sampled_from(["", "cache", "queue", "mail sandbox"]),
    at=st.integers(1, 30),
)
FAILURES = st.builds(
    failure,
    SENTENCE,
    st.lists(st.sampled_from(["s1", "s2", "s3", "s4"]), min_size=1, unique=True),
    st.dictionaries(
        st.sampled_from(["s1", "s2", "s3", "s4"]), st.sampled_from(["changed a() in x.py", "ran `make up`"])
    ),
    print=st.sampled_from(["f1", "f2", "f3"]),
)
UID = lambda memory: memory.uid  # noqa: E731


def carried_out(memories, amendments):
    """What the store makes of amendments."""
    after = {memory.uid: memory for memory in memories}
    for one in amendments:
        for before, changed in one.changed:
            assert after[before.uid] == before
            after[before.uid] = changed
        after |= {new.uid: replace(new, id=f"new-{len(after)}") for new in one.new}
    return list(after.values())


@given(st.lists(st.one_of(SUMMARIES, RULES, FAILURES), max_size=14, unique_by=UID))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine
def test_whatever_is_remembered_is_learned_once_and_nothing_is_more_trusted_than_its_sources(memories):
    given = [replace(each, id=f"id-{number}") for number, each in enumerate(memories)]
    known = {each.uid: each for each in given}
    for plan in (learn.plan, learn.plan_wider):
        got = carried_out(given, plan(given, about=About(ROOMS)))
        assert plan(got, about=About(ROOMS)) == ()
        assert {each.uid: each for each in got if each.uid in known} == known
        for each in got:
            if each.uid not in known and each.kind == "preference":
                assert (each.status, each.trust) == ("proposed", "user")  # nothing proposed becomes active by itself
            elif each.uid not in known:
                assert each.trust != "user"
                assert each.confidence >= CERTAIN or each.kind == "pattern"


@table("told", ["Learned that", "We learnt that", "I found out that", "Lesson:"])
def test_what_a_session_calls_learned_is_what_it_learned(told):
    (unit,) = gist.units((), [f"{told} rows of the catalog vanish at start-up."])
    assert (unit.kind, plain(unit.text)) == (gist.LEARNED, "Rows of the catalog vanish at start-up")
