"""Ask an agent, once a session and only after substantial work, to write its own notes (setting `agent_notes`)."""

from __future__ import annotations

import re
import threading

from foreword.capture.parse import CapturedEvent
from foreword.worker.services import Services
from foreword.worker.working_set import WorkingSet

FILES = 2  # edited files, and ...
TOOLS = 8  # ... uses of tools, that make work substantial
MOST_SESSIONS = 500
REQUEST = (
    "Before you finish: call memory_handoff once, for the next session here. `message`: what came of this work in one "
    "or two sentences, then what you learned about the code and what was decided, each in a line with its file; "
    "`next`: what is still open, if anything. Facts only, no praise, no secrets. Then end your turn without another "
    "answer."
)
# The agent waits for the user: asking it for notes now would talk over its question.
_ASKS = re.compile(
    r"\?\s*(?:$|\n)|\b(?:want me to|shall i|should i|let me know|would you like|which (?:one|option))\b", re.I
)
LAST = 400  # characters at the end of a message, where a question to the user stands


class AgentNotes:
    """Remembers which sessions were asked already."""

    def __init__(self, services: Services, working_set: WorkingSet) -> None:
        self._services, self._working_set = services, working_set
        self._lock = threading.Lock()
        self._sessions: dict[str, None] = {}

    def request(self, event: CapturedEvent) -> str:
        """Return what to ask the agent at this stop; nothing for almost all of them."""
        parsed, hook = event.parsed, event.parsed.input
        session = hook.session
        if not self._services.settings.agent_notes or parsed.kind != "stop" or not session or hook.inner:
            return ""
        if parsed.payload.get("stop_hook_active") or _ASKS.search(hook.answer[-LAST:]):
            return ""  # a hook made it go on already, or it waits for the user
        files, tools = self._working_set.work_done(session)
        if files < FILES or tools < TOOLS or self._was_asked(session):
            return ""
        written = any(
            each.kind == "handoff" and each.trust == "agent"
            for each in self._services.store.memories.of_session(session)
        )
        return "" if written else REQUEST

    def _was_asked(self, session: str) -> bool:
        with self._lock:
            before = session in self._sessions
            self._sessions[session] = None
            while len(self._sessions) > MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        return before
