"""A memory in other words: whose they are, what may change them, and what nobody overwrites."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from foreword.agents import AGENTS, calling_agent, find
from foreword.audit import AuditEntry, describe, differing, is_the_users, merge_repeated, revised
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
    # What somebody put aside is not said back to life.
    for status in ("superseded", "discarded", "forgotten"):
        mine = replace(DECISION, status=status, superseded_by="dec-2" if status == "superseded" else "")
        after = merge(mine, replace(DECISION, confirmed=9.0))
        assert (after.status, after.superseded_by) == (status, mine.superseded_by)
        assert merge(revised(mine, {"title": "x"}, who="user"), replace(DECISION, confirmed=9.0)).status == status
    stale = revised(replace(DECISION, status="stale"), {"title": "x"}, who="user")
    assert merge(stale, replace(DECISION, confirmed=9.0)).status == "active"


@given(st.sampled_from(TRUSTS), TEXT, st.sampled_from(["user", "agent"]))
def test_other_words_never_give_more_trust(trust, title, who):
    assert revised(replace(DECISION, trust=trust), {"title": title}, who=who).trust == trust
    again = merge_repeated(replace(DECISION, trust=trust), replace(DECISION, trust="user", title=title))
    assert TRUSTS.index(again.trust) >= TRUSTS.index(trust)


@given(kind=st.sampled_from(["summary", "failure", "observation", "preference"]), title=TEXT, body=TEXT, why=TEXT)
def test_nobody_but_who_revises_changes_revised_words(kind, title, body, why):
    mine = revised(replace(DECISION, kind=kind), {"title": "mine", "body": "my body"}, who="user")
    fresh = Memory(kind, title, body, uid="u", scope="project:here", project="here", detail={"why": why}, confirmed=5.0)
    for after in (merge(mine, fresh), merge_repeated(mine, fresh)):
        assert (after.title, after.body, after.detail["why"], after.id) == ("mine", "my body", "speed", "dec-1")
        assert after.confirmed == 5.0


def test_a_model_leaves_a_revised_summary_alone():
    refined = Refined(title="Better", done="", learned=(), next=(), source="model:m", trust="agent")
    summary = Memory("summary", "T", uid="sum:here:s", project="here", session="s", pinned=True, used=3)
    assert apply(revised(summary, {"title": "mine"}, who="user"), refined).title == "mine"
    assert apply(summary, refined).title == "Better"


def test_an_entry_of_the_log_names_what_it_is_about():
    def entry(what: str, *memories: str, **patch: object) -> AuditEntry:
        return AuditEntry(1, 1.0, "user", what, "", "", "here", memories, patch)

    assert describe(entry("merge", "a", "b", "c", "d", "e")) == "a, b, c and 2 more"
    assert describe(entry("prune", pruned={"events": 1200, "spool": 3})) == "1,200 events, 3 spool"
    assert describe(entry("forget", receipt={"projects": 1, "sessions": 4})) == "1 projects, 4 sessions"


def test_an_agents_shell_is_known_by_what_agents_set():
    assert calling_agent({"PATH": "/bin", "HOME": "/home/ada", "CLAUDECODE": ""}) == ""
    assert calling_agent({"PATH": "/bin", "AI_AGENT": "1"}) == "agent"
    for agent in AGENTS:
        assert find(agent).shell_variables
        for name in find(agent).shell_variables:
            assert calling_agent({"PATH": "/bin", name: "1", "AI_AGENT": "1"}) == agent
