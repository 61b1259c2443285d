"""capture: which deliveries are moments, in which form, and whether the same bytes are wanted again."""

from __future__ import annotations

import json

from foreword.agents import AGENTS, find
from foreword.capture.parse import parse_hook, trigger_for
from foreword.capture.payload import HookCall
from foreword.models import Project, Trigger
from tests.tables import table

HERE = Project(key="here", name="here", root="/p")


def trigger(host: str, event: str, **payload: object) -> Trigger | None:
    fields = {"session_id": "s", "sessionID": "s", "conversation_id": "s", "cwd": "/p", "directory": "/p", **payload}
    hook_call = HookCall(host=host, event=event, at=1.0, raw=json.dumps(fields).encode())
    return trigger_for(hook_call, parse_hook(hook_call, find_project=lambda _: HERE))


@table("host", sorted(AGENTS))
def test_every_moment_of_a_host_is_one_in_the_form_it_takes(host):
    for event, name in find(host).triggers.items():
        found = trigger(host, event, prompt="why?")
        assert found is not None
        assert (found.name, found.host) == (name, host)
        assert found.form == ("plain" if name == "compaction" else find(host).form)
        assert found.stable is (host == "opencode" and name == "session_start")
    assert trigger(host, "nothing.we.know") is None


def test_sub_agents_unknown_hosts_and_resumed_sessions_are_known():
    # A sub agent and an unknown host have no moments.
    assert trigger("opencode", "chat.message", parentID="ses_1") is None
    assert trigger("claude-code", "SessionStart", agent_id="a") is None
    assert trigger("emacs", "SessionStart") is None
    # A session that a plugin did not see begin is resumed.
    new, old = trigger("opencode", "session.created"), trigger("opencode", "experimental.chat.system.transform")
    resumed = trigger("opencode", "experimental.chat.system.transform", source="resume")
    assert [each.source for each in (new, old, resumed) if each] == ["startup", "startup", "resume"]
    # Without a session nothing is the same again.
    found = trigger("opencode", "session.created", sessionID="", session_id="")
    assert found is not None
    assert not found.stable
