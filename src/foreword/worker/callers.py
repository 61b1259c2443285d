"""Find the session and the project behind a call of an MCP tool.

Claude Code's hook sends the id of a tool use before the tool is called: whoever calls with that id is that session.
Codex sends its session with every call. Else the agent's own variable names it, else it is the one session of that
agent and project that is in the middle of a turn. A guess would charge one window for what another was shown, so two
candidates count as none.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foreword.agents import agent_of_client
from foreword.capture.parse import ParsedHook
from foreword.encoding import storable
from foreword.errors import BadRequest
from foreword.models import Project, Session
from foreword.redact import redact
from foreword.worker.projects import ProjectRegistry
from foreword.worker.services import Services

MOST_USES = 2000  # ids of tool uses that are kept in mind; a call follows its hook within the second
# Seconds since its last event for which a session may be in the middle of a turn: the longest command that an agent
# runs by default takes ten minutes, tells of itself when it ends, and the model has some time to think.
TURN_SECONDS = 15 * 60.0
MOST_LIVE = 20  # sessions of a project that are looked at
ENDS = ("stop", "session_end")  # kinds of events after which nobody calls a tool


@dataclass(frozen=True)
class Caller:
    """Who calls: the project, and the session and its window where they are known."""

    project: Project
    session: str = ""
    window: str = ""  # the session whose context window the answer lands in; none for a sub-agent, which has its own
    host: str = ""  # one of our adapters
    client: str = ""  # as it calls itself


class Callers:
    """Knows which session used which tool, for as long as the worker runs."""

    def __init__(self, services: Services, projects: ProjectRegistry) -> None:
        self._services, self._projects = services, projects
        self._lock = threading.Lock()
        self._uses: dict[str, tuple[str, str, str, bool]] = {}  # session, folder, agent, whether by a sub-agent

    def note_tool_use(self, parsed: ParsedHook, *, host: str) -> None:
        """Remember the session of a tool use that a hook announced."""
        hook = parsed.input
        if hook.id and hook.session:
            with self._lock:
                self._uses[hook.id] = (hook.session, hook.cwd, host, hook.inner)
                while len(self._uses) > MOST_USES:
                    del self._uses[next(iter(self._uses))]

    def resolve(self, sent: Mapping[str, Any]) -> Caller:
        """Return who calls, by what its process sent about itself."""
        client, cwd = _text(_dict(sent.get("client")), "name"), _text(sent, "cwd")
        host, inner = agent_of_client(client), False
        if use := self._uses.get(_text(sent, "tool_use")):
            session, where, host, inner = use
        elif host and (session := redact(storable(_text(sent, "session")))):
            known = self._services.store.sessions.get(session)
            where, inner = known.cwd if known else "", sent.get("inner") is True
        else:
            session, where = self._by_variable(sent, host) or self._by_newest(cwd, host)
        return Caller(self._project(where, cwd), session, window="" if inner else session, host=host, client=client)

    def _by_variable(self, sent: Mapping[str, Any], host: str) -> tuple[str, str] | None:
        """Return the session that the agent's variable names; one inherited from another agent does not count."""
        named = sent.get("sessions")
        ids = {
            redact(storable(_text(each, "id")))
            for each in map(_dict, named if isinstance(named, list) else ())
            if host and _text(each, "host") == host and _text(each, "id")
        }
        known = {id: self._services.store.sessions.get(id) for id in ids}
        # A process outlives a `/clear`, and with it the session that it was started for.
        open_ones = [(id, session) for id, session in known.items() if session is None or not session.ended]
        if len(open_ones) != 1:
            return None
        [(id, session)] = open_ones
        return id, session.cwd if session else ""

    def _by_newest(self, cwd: str, host: str) -> tuple[str, str]:
        """Return the one session of this agent and project that is in the middle of a turn."""
        try:
            project = self._projects.at(cwd).key
        except BadRequest:
            return "", ""
        # A client that is no agent of ours has no session that a hook could have named.
        found = self._services.store.sessions.list(project, limit=MOST_LIVE) if host else ()
        live = [each for each in found if each.host == host and self._in_a_turn(each)]
        return (live[0].id, live[0].cwd) if len(live) == 1 else ("", "")

    def _in_a_turn(self, session: Session) -> bool:
        if session.ended or not 0 <= self._services.now() - session.last < TURN_SECONDS:
            return False
        last = self._services.store.events.list(session.id, limit=1, newest=True)
        return not last or last[0].kind not in ENDS

    def _project(self, *folders: str) -> Project:
        for folder in folders:
            try:
                return self._projects.at(folder)
            except BadRequest:
                continue
        raise BadRequest(
            "the project of this call is not known", hint="set FOREWORD_PROJECT to its folder for the MCP server"
        )


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""
