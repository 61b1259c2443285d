"""What was said at moments, and at which nothing was -> what is told of it: to a list, one by one, in a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from foreword.encoding import storable
from foreword.errors import NotFound
from foreword.models import NoContextRecord, Project
from foreword.policy import Policy
from foreword.redact import redact
from foreword.store import Store
from foreword.worker import serialize
from foreword.worker.stats import Measuring

LATELY = 7  # days


class Given:
    """Tells what sessions were given, with what hooks gave while there was no worker."""

    def __init__(
        self,
        *,
        store: Callable[[], Store],
        project_of: Callable[[str], Project],
        catch_up: Callable[[], None],
        measuring: Measuring,
        off: Callable[[Project | None], Policy],
        rejected: Callable[[str], Mapping[str, str]],
        now: Callable[[], float],
    ) -> None:
        self._store, self._project_of, self._catch_up = store, project_of, catch_up
        self._measuring, self._off, self._rejected, self._now = measuring, off, rejected, now

    def injections(
        self, *, session_id: str = "", project_path: str = "", memory: str = "", limit: int = 20, text: bool = False
    ) -> dict[str, Any]:
        """What was given, newest first."""
        self._catch_up()
        session, project = redact(storable(session_id)), self._key(project_path)
        found = self._store().injections.list(session=session, project=project, memory=memory, limit=limit, texts=text)
        return {"injections": [serialize.injection(each, text=text) for each in found]}

    def injection(self, id: str) -> dict[str, Any]:
        """All that is known of one, or of the silence that has this id."""
        self._catch_up()
        found = self._store().injections.get(id)
        if found is None:
            self._measuring.look()
            if silent := self._told(self._store().injections.list_no_context(id=id)):
                return {"silence": silent[0]}
            raise NotFound(f"there is no injection {id!r}", hint="`foreword explain` tells the last one")
        titles = {
            memory.id: memory.title for memory in self._store().memories.get([item.memory for item in found.items])
        }
        told = serialize.injection(found, text=True)
        told["items"] = [{**item, "title": titles.get(item["memory"], "")} for item in told["items"]]
        told["rejected"] = self.rejected(found.id)
        return {"injection": told}

    def rejected(self, id: str) -> list[dict[str, Any]]:
        """What was weighed for an answer and left out, best first, and why; empty where nobody knows any more."""
        weighed = self._rejected(id)
        known = {memory.id: memory for memory in self._store().memories.get(list(weighed))} if weighed else {}
        return [serialize.rejected(known[id], why) for id, why in weighed.items() if id in known]

    def silences(self, *, session_id: str = "", project_path: str = "", limit: int = 20) -> dict[str, Any]:
        """The moments at which nothing was said, newest first, each with the reason."""
        self._catch_up()
        self._measuring.look()  # with those of the last second
        session, project = redact(storable(session_id)), self._key(project_path)
        return {
            "silences": self._told(
                self._store().injections.list_no_context(session=session, project=project, limit=limit)
            )
        }

    def use(self, *, project_path: str = "", days: int = 0) -> dict[str, Any]:
        """How many items a project was given lately, and how many of them were used."""
        self._catch_up()
        project, days = self._key(project_path), days or LATELY
        found = self._store().injections.usage(project=project, since=self._now() - days * 86_400)
        return {"project": project, "days": days, **vars(found)}

    def line(self, *, session_id: str = "", project_path: str = "") -> dict[str, Any]:
        """What a session was given, in a line for people; without an id, the last session of the project."""
        project = self._project_of(project_path) if project_path else None
        session = redact(storable(session_id))
        if not session and project:
            found = self._store().sessions.list(project.key, limit=1)
            session = found[0].id if found else ""
        return self.in_a_line(session, project)

    def in_a_line(self, session: str, project: Project | None) -> dict[str, Any]:
        """The same of a session that is known, whatever is spooled."""
        items, tokens = self._store().injections.totals(session) if session else (0, 0)
        said = f"{items} item{'' if items == 1 else 's'}, {tokens:,} tokens" if tokens else "quiet"
        if (switched := self._off(project)).inject:
            said = "off" if switched.capture else "silent"
        return {"line": f"foreword: {said}", "items": items, "tokens": tokens, "session": session}

    def _told(self, silences: Sequence[NoContextRecord]) -> list[dict[str, Any]]:
        near = [each.nearest for each in silences if each.nearest]
        known = {memory.id: memory for memory in self._store().memories.get(near)}
        return [{**serialize.silence(each, known), "rejected": self.rejected(each.id)} for each in silences]

    def _key(self, project_path: str) -> str:
        return self._project_of(project_path).key if project_path else ""
