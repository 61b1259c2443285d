"""capture: which deliveries are moments, in which form, and whether the same bytes are wanted again."""

from __future__ import annotations

import json

from foreword.capture import capture, moment_of
from foreword.hosts import FILES, find
from foreword.payloads import Delivery
from foreword.types import Moment, Project
from tests.tables import table

HERE = Project(key="here", name="here", root="/p")


def moment(host: str, event: str, **payload: object) -> Moment | None:
    told = {"session_id": "s", "sessionID": "s", "conversation_id": "s", "cwd": "/p", "directory": "/p", **payload}
    delivery = Delivery(host=host, event=event, at=1.0, raw=json.dumps(told).encode())
    return moment_of(delivery, capture(delivery, find_project=lambda _: HERE))


@table("host", sorted(FILES))
def test_every_moment_of_a_host_is_one_in_the_form_it_takes(host):
    for event, name in find(host).moments.items():
        found = moment(host, event, prompt="why?")
        assert found is not None
        assert (found.name, found.host) == (name, host)
        assert found.form == ("plain" if name == "compaction" else find(host).form)
        assert found.stable is (host == "opencode" and name == "session_start")
    assert moment(host, "nothing.we.know") is None


def test_sub_agents_unknown_hosts_and_resumed_sessions_are_known():
    # A sub agent and an unknown host have no moments.
    assert moment("opencode", "chat.message", parentID="ses_1") is None
    assert moment("claude-code", "SessionStart", agent_id="a") is None
    assert moment("emacs", "SessionStart") is None
    # A session that a plugin did not see begin is resumed.
    new, old = moment("opencode", "session.created"), moment("opencode", "experimental.chat.system.transform")
    told = moment("opencode", "experimental.chat.system.transform", source="resume")
    assert [each.source for each in (new, old, told) if each] == ["startup", "startup", "resume"]
    # Without a session nothing is the same again.
    found = moment("opencode", "session.created", sessionID="", session_id="")
    assert found is not None
    assert not found.stable
