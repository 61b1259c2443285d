"""What somebody wrote -> memories that are kept; a search -> those that it finds; one of them -> all that is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from foreword.audit import said_again
from foreword.errors import BadRequest, NotFound
from foreword.models import Hit, Project, Query
from foreword.recall.rank import rank
from foreword.store import Store
from foreword.worker import requests, serialize
from foreword.worker.context import Recalling
from foreword.worker.embeddings import Meaning
from foreword.worker.jobs.tidy import settle_choices
from foreword.worker.project_lookup import Registry

SHOWN_IN = 50  # injections that a memory's explanation names


class Memories:
    """Memories as people and agents write, look for and read them."""

    def __init__(
        self,
        *,
        store: Callable[[], Store],
        registry: Registry,
        meaning: Meaning,
        recalling: Recalling,
        refuse: Callable[[Project], None],  # where nothing may be kept
        now: Callable[[], float],
    ) -> None:
        self._store, self._registry, self._meaning, self._recalling = store, registry, meaning, recalling
        self._refuse, self._now = refuse, now

    def add(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Memories that somebody wrote: one, or a list under `memories`; redacted like everything else."""
        given = told.get("memories", [told])
        if not isinstance(given, list) or not given:
            raise BadRequest("`memories` must be a list with at least one memory", hint="send {kind, title, …}")
        memories = [requests.memory(each, find_project=self._registry.seen_at, now=self._now()) for each in given]
        for each in given:
            if path := each.get("project_path"):
                self._refuse(self._registry.at(path))
        known = {
            memory.uid: memory
            for memory in self._store().memories.get_by_uid([each.uid for each in memories if each.uid])
        }
        memories = [said_again(known.get(each.uid, each), each) for each in memories]
        kept = self._store().memories.put(memories, vectors=self._meaning.of_memories(memories))
        superseded = settle_choices(self._store(), kept, at=self._now())
        return {"memories": [serialize.memory(memory) for memory in kept], "superseded": superseded}

    def search(
        self,
        *,
        q: str,
        project_path: str,
        kinds: Sequence[str] = (),
        since: float = 0.0,
        at: float = 0.0,
        limit: int = 0,
        compact: bool = False,
        explain: bool = False,
    ) -> dict[str, Any]:
        """What holds the words of *q* or is about the same code, best first; an explicit search has no threshold."""
        now = at or self._now()
        project = self._registry.at(project_path)
        found = self._recalling.found(q, project=project, kinds=kinds, since=since, at=at, limit=limit, now=now)
        results = [
            serialize.compact(each, now) if compact else {**serialize.memory(each.memory), "score": each.score}
            for each in found.ranked
        ]
        if explain:
            results = [{**result, "why": dict(each.why)} for result, each in zip(results, found.ranked, strict=True)]
        return {"project": project.key, "results": results, "problems": list(found.problems)}

    def one(self, id: str, *, explain: bool = False) -> dict[str, Any]:
        """All that is known of a memory; explained, with its factors and where it was shown, and not as fetched."""
        found = self._store().memories.get([id])
        if not found:
            raise NotFound(f"there is no memory {id!r}", hint="`foreword search` finds ids")
        about = {
            "memory": serialize.memory(found[0]),
            "links": [vars(link) for link in self._store().memories.links(id)],
        }
        if not explain:
            self._store().memories.record_access([id], how="get", at=self._now())
            return about
        # Without words all match: these are the factors that the memory brings along.
        (ranked,) = rank(
            {"recency": (Hit(memory=found[0], source="recency"),)},
            query=Query(scopes=(found[0].scope,)),
            now=self._now(),
            trigger="session_start",
        )
        shown = [
            {
                **vars(item),
                "why": dict(item.why),
                "injection": each.id,
                "at": each.at,
                "trigger": each.trigger,
                "session": each.session,
                "host": each.host,
            }
            for each in self._store().injections.list(memory=id, limit=SHOWN_IN)
            for item in each.items
            if item.memory == id
        ]
        use = vars(self._store().injections.usage(memory=id))
        return {**about, "score": ranked.score, "why": dict(ranked.why), "use": use, "shown": shown}
