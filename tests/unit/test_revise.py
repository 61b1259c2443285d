"""A memory in other words: whose they are, what may change them, and what nobody overwrites."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from foreword.audit import AuditEntry, accepted, chronicle, differing, is_the_users, line, proposed, revised, said_again
from foreword.extract.merge import merge
from foreword.llm.refine import Refined, apply
from foreword.models import TRUSTS, Memory

TEXT = st.text(max_size=20)
DECISION = Memory(
    "decision",
    "Use Redis",
    id="dec-1",
    uid="u",
    scope="project:here",
    project="here",
    created=1.0,
    confirmed=1.0,
    detail={"why": "speed", "seen_in": {"s1": 1}},
)


def test_revised_words_are_the_users_and_sessions_leave_them():
    # Other words leave all else as it is.
    after = revised(DECISION, {"title": "Use Valkey", "why": "licence", "tags": ("cache",)}, who="user")
    assert (after.title, after.detail["why"], after.tags) == ("Use Valkey", "licence", ("cache",))
    assert after.detail["revised"] == "user"
    assert replace(after, title=DECISION.title, tags=(), detail=DECISION.detail) == DECISION
    assert differing(DECISION, after) == ("title", "tags", "why")
    # What changes nothing marks nothing.
    assert revised(DECISION, {"title": "Use Redis", "why": "speed", "fixed_by": ""}, who="user") == DECISION
    # What the user once revised stays the users.
    agents = replace(DECISION, trust="agent")
    assert not is_the_users(agents)
    assert not is_the_users(revised(agents, {"title": "x"}, who="agent"))
    mine = revised(agents, {"title": "x"}, who="user")
    assert is_the_users(mine)
    assert is_the_users(revised(mine, {"title": "y"}, who="agent"))
    # A session that says it again counts and leaves the words.
    mine = revised(DECISION, {"title": "Use Valkey", "why": ""}, who="user")
    fresh = replace(
        DECISION, id="", title="Use Redis!", body="more", confirmed=9.0, detail={"why": "speed", "seen_in": {"s2": 2}}
    )
    after = merge(mine, fresh)
    assert (after.title, after.body, after.detail["why"]) == ("Use Valkey", "", "")
    assert (after.seen, after.confirmed, after.created) == (3, 9.0, 1.0)
    assert after.detail["seen_in"] == {"s1": 1, "s2": 2}
    assert merge(after, fresh) == after  # told again, it counts once
    # What somebody put aside or has yet to decide is not said back to life.
    for status in ("superseded", "discarded", "proposed", "forgotten"):
        mine = replace(DECISION, status=status, superseded_by="dec-2" if status == "superseded" else "")
        after = merge(mine, replace(DECISION, confirmed=9.0))
        assert (after.status, after.superseded_by) == (status, mine.superseded_by)
        assert merge(revised(mine, {"title": "x"}, who="user"), replace(DECISION, confirmed=9.0)).status == status
    stale = revised(replace(DECISION, status="stale"), {"title": "x"}, who="user")
    assert merge(stale, replace(DECISION, confirmed=9.0)).status == "active"


@given(st.sampled_from(TRUSTS), TEXT, st.sampled_from(["user", "agent"]))
def test_other_words_never_give_more_trust(trust, title, who):
    assert revised(replace(DECISION, trust=trust), {"title": title}, who=who).trust == trust
    made = proposed(replace(DECISION, trust=trust), {"title": title}, source="codex", session="s", at=2.0)
    assert TRUSTS.index(made.trust) >= TRUSTS.index("agent")
    again = said_again(replace(DECISION, trust=trust), replace(DECISION, trust="user", title=title))
    assert TRUSTS.index(again.trust) >= TRUSTS.index(trust)


@given(kind=st.sampled_from(["summary", "failure", "observation", "preference"]), title=TEXT, body=TEXT, why=TEXT)
def test_nobody_but_who_revises_changes_revised_words(kind, title, body, why):
    mine = revised(replace(DECISION, kind=kind), {"title": "mine", "body": "my body"}, who="user")
    fresh = Memory(kind, title, body, uid="u", scope="project:here", project="here", detail={"why": why}, confirmed=5.0)
    for after in (merge(mine, fresh), said_again(mine, fresh)):
        assert (after.title, after.body, after.detail["why"], after.id) == ("mine", "my body", "speed", "dec-1")
        assert after.confirmed == 5.0


def test_models_and_proposals_change_words_only_with_a_yes():
    # A model leaves a revised summary alone.
    told = Refined(
        title="Better",
        request="",
        done="",
        learned=(),
        decisions=(("Use UTC", ""),),
        next=(),
        source="model:m",
        trust="agent",
    )
    summary = Memory("summary", "T", uid="sum:here:s", project="here", session="s", pinned=True, used=3)
    assert [each.kind for each in apply(revised(summary, {"title": "mine"}, who="user"), told)] == ["decision"]
    better, decision = apply(summary, told)
    assert better.title == "Better"
    assert (decision.pinned, decision.used) == (False, 0)
    # A proposal is shown to nobody and says what it would change.
    made = proposed(DECISION, {"title": "Use Valkey", "tags": ("a",)}, source="codex", session="s", at=5.0)
    assert (made.status, made.trust, made.source, made.id, made.kind) == ("proposed", "agent", "codex", "", "decision")
    assert (made.detail["proposal"], made.detail["revises"]) == ("revise", "dec-1")
    again = proposed(DECISION, {"title": "Use Valkey", "tags": ("a",)}, source="gemini", session="t", at=6.0)
    assert again.uid == made.uid  # the same wish is the same proposal, whoever has it
    assert proposed(DECISION, {"title": "Use KeyDB"}, source="codex", session="s", at=5.0).uid != made.uid
    # A yes makes the words the users and nothing but words.
    made = proposed(DECISION, {"title": "Use Valkey", "tags": ("a",)}, source="codex", session="s", at=5.0)
    later = replace(DECISION, body="said since")
    after = accepted(later, made)
    assert (after.title, after.body, after.tags, after.trust) == ("Use Valkey", "said since", ("a",), "user")
    forged = replace(made, detail={**made.detail, "changes": {"scope": "universal", "kind": "preference"}})
    assert accepted(DECISION, forged) == DECISION


# ---- who did what


def entry(number: int, **more: object) -> AuditEntry:
    told = {"at": float(number), "who": "tidy", "what": "merge", "why": "words alike", "run": "", "project": "here"}
    return AuditEntry(**{"number": number, "memories": ("dec-1", "dec-2"), **told, **more})  # type: ignore[arg-type]


def test_the_chronicle_is_one_list_by_time():
    # The chronicle is one list by time that people can read.
    changed = {"dec-1": {"status": ["active", "superseded"], "superseded_by": ["", "dec-2"]}, "dec-2": {"seen": [1, 2]}}
    entries = [
        entry(3, what="undo", who="user", why="takes back 2: merge", memories=("dec-1",)),
        entry(2, patch={"changed": changed}, run="tidy-1", undone=3),
    ]
    written = [replace(DECISION, created=2.5, trust="agent", source="claude-code"), replace(DECISION, created=1.0)]
    told = chronicle(entries, written, limit=10)
    assert [each.at for each in told] == [3.0, 2.5, 2.0, 1.0]
    assert [line(each, when="t").split() for each in told] == [
        ["t", "3", "user", "undid", "dec-1:", "takes", "back", "2:", "merge"],
        ["t", "-", "claude-code", "added", "dec-1:", "Use", "Redis"],
        ["t", "2", "tidy", "merged", "dec-1", "into", "dec-2:", "words", "alike", "(tidy-1;", "undone", "by", "3)"],
        ["t", "-", "user", "added", "dec-1:", "Use", "Redis"],
    ]
    assert len(chronicle(entries, written, limit=2)) == 2
    # The chronicle counts what was pruned and says what was forgotten whole.
    pruned = entry(1, what="prune", why="old", memories=(), patch={"pruned": {"events": 1200, "aside": 3}})
    forgot = entry(2, what="forget", why="", memories=(), patch={"receipt": {"projects": 1, "sessions": 4}})
    told = chronicle([forgot, pruned], (), limit=2)
    assert [each.about for each in told] == ["all of a project, all of 4 sessions", "1,200 events, 3 aside"]
    # Nobody else is told as the user.
    for source in ("user", "codex"):
        (told,) = chronicle((), [replace(DECISION, trust="imported", source=source)], limit=1)
        assert told.who != "user"
