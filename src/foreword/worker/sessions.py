"""Sessions -> what each was about; one of them -> its whole story."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from foreword.errors import NotFound
from foreword.extract.fixes import elsewhere
from foreword.extract.merge import open_items
from foreword.extract.session import session_uid
from foreword.models import Project, Session
from foreword.store import Store
from foreword.worker import serialize
from foreword.worker.injections import Given
from foreword.worker.jobs.extract import ExtractionJob

MOST_CHANGES = 1000  # of a session, in its story
MOST_GIVEN = 50  # injections in it, and silences


class Sessions:
    """Tells of sessions, after what they came to was waited for a moment."""

    def __init__(
        self,
        *,
        store: Callable[[], Store],
        project_of: Callable[[str], Project],
        extraction: ExtractionJob,
        given: Given,
    ) -> None:
        self._store, self._project_of, self._extraction, self._given = store, project_of, extraction, given

    def every(self, *, project_path: str = "", limit: int = 20) -> dict[str, Any]:
        """The newest sessions of a project, or of all."""
        project = self._project_of(project_path).key if project_path else ""
        return {"sessions": self.described(self._store().sessions.list(project, limit=limit))}

    def story(self, id: str) -> dict[str, Any]:
        """The whole story of one session: what it was about, what it came to, and what it was given."""
        found, store = self.settled(id), self._store()
        given = store.injections.list(session=found.id, limit=MOST_GIVEN)
        came = store.memories.of_session(found.id)
        others = store.timeline.sessions_with(elsewhere({found.id: came}))
        ended = {each.id: each.last for each in others}
        return {
            "session": self.described([found])[0],
            "memories": [serialize.seen_by(found, memory, ended=ended) for memory in came],
            "open": list(dict.fromkeys(item for each in came if each.status == "active" for item in open_items(each))),
            "changes": [
                vars(each) for each in store.sessions.changes(found.project, session=found.id, limit=MOST_CHANGES)
            ],
            "injections": [serialize.injection(each, text=False) for each in given],
            "silences": self._given.silences(session_id=found.id, limit=MOST_GIVEN)["silences"],
        }

    def described(self, sessions: Sequence[Session]) -> list[dict[str, Any]]:
        """Sessions with what each was about, where it is known."""
        uids = [session_uid("sum", project=each.project, session=each.id) for each in sessions]
        known = {(memory.uid, memory.scope): memory for memory in self._store().memories.get_by_uid(uids)}
        told = []
        for session, uid in zip(sessions, uids, strict=True):
            found = known.get((uid, f"project:{session.project}"))
            about = {"title": found.title if found else "", "summary": found.id if found else ""}
            told.append({**vars(session), **about})
        return told

    def settled(self, id: str) -> Session:
        """A session, by its id or the beginning of it, after what it came to was waited for a moment."""
        found = self._store().sessions.get(id) or self._store().sessions.find(id)
        if found is None:
            raise NotFound(f"there is no session {id!r}", hint="`foreword sessions` lists them")
        self._extraction.settle(found.project)
        return self._store().sessions.get(found.id) or found  # as it stands now
