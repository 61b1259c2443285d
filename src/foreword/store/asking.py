"""A question of the Store protocol -> its answer, by the reader of its area, on one SQLite file."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from foreword.errors import DamagedIndex
from foreword.store.mending import WAYS_OUT
from foreword.store.readers import (
    BROWSING,
    JUDGED,
    KINDS,
    LEDGER,
    SEEN,
    SILENCES,
    STATISTICS,
    TALLIES,
    TIMELINE,
    VECTORS,
    Area,
    R,
    Readers,
)
from foreword.store.reading import Reader
from foreword.store.writing import Writing
from foreword.types import EMPTY, Change, Event, Hit, Injection, Link, Memory, Query, Session

if TYPE_CHECKING:
    from foreword.store.browsing import BrowsingReader, Facets, Page
    from foreword.store.counts import Counts
    from foreword.store.judged import Use
    from foreword.store.ledger import Spending
    from foreword.store.seen import Seen
    from foreword.store.silences import Silence
    from foreword.store.statistics import Counted
    from foreword.store.tallies import Size
    from foreword.store.timeline import Changed, Given
    from foreword.store.vectors import Nearest
    from foreword.store.wanted import Wanted

T = TypeVar("T")


class Asking(Writing):
    """The questions, beside the writing: what was left for later is written before somebody asks for it."""

    def __init__(self, path: Path, *, choose: Callable[[str], str] = secrets.choice) -> None:
        super().__init__(path, choose=choose)
        self._readers = Readers(path, check_open=self._check_open)
        self._reader = self._readers.taken
        self._nearest: Nearest | None = None
        self._all_have: tuple[object, ...] = ()  # the model and the `_bare` with which nothing was lacking
        self._browsed: Counts | None = None  # what was counted for whoever looks around

    def by_id(self, ids: Sequence[str]) -> tuple[Memory, ...]:
        found = self._ask(lambda reader: reader.by_id(ids))
        return tuple(memory for memory in found if memory.status != "forgotten")  # its bytes are about to go

    def by_uid(self, uids: Sequence[str]) -> tuple[Memory, ...]:
        return self._ask(lambda reader: reader.by_uid(uids))

    def page(self, *, after: int = 0, scopes: Sequence[str] = (), limit: int = 500) -> tuple[tuple[int, Memory], ...]:
        return self._ask(lambda reader: reader.page(after=after, scopes=scopes, limit=limit))

    def of_session(self, session: str, *, limit: int = 500) -> tuple[Memory, ...]:
        return self._ask_of(TIMELINE, lambda reader: reader.of_session(session, limit=limit))

    def proposed(self) -> tuple[Memory, ...]:
        return self._ask_of(KINDS, lambda reader: reader.proposed())

    def of_kinds(
        self, kinds: Sequence[str], *, scopes: Sequence[str] = (), statuses: Sequence[str] = (), limit: int = 20_000
    ) -> tuple[Memory, ...]:
        asked: dict[str, Any] = {"scopes": scopes, "statuses": statuses, "limit": limit}
        return self._ask_of(KINDS, lambda reader: reader.of_kinds(kinds, **asked))

    def how_many(self, kind: str, *, scopes: Sequence[str] = ()) -> int:
        return self._ask_of(KINDS, lambda reader: reader.how_many(kind, scopes=scopes))

    def browse(self, wanted: Wanted, *, after: str = "", limit: int = 50) -> Page:
        return self._ask_browsing(wanted, lambda reader, known: reader.browse(wanted, known, after=after, limit=limit))

    def facets(self, wanted: Wanted) -> Facets:
        return self._ask_browsing(wanted, lambda reader, known: reader.facets(wanted, known))

    def around(self, memory: Memory, *, scope: str, limit: int) -> tuple[tuple[Memory, ...], tuple[Memory, ...]]:
        return self._ask(lambda reader: reader.around(memory, scope=scope, limit=limit))

    def by_words(self, query: Query) -> tuple[Hit, ...]:
        self._check_words()
        try:
            return self._ask(lambda reader: reader.by_words(query))
        except DamagedIndex as exc:
            self._trouble["index"] = str(exc)
            raise

    def by_code(
        self, query: Query, votes: Mapping[str, float], *, known: Mapping[str, Memory] = EMPTY
    ) -> tuple[Hit, ...]:
        return self._ask(lambda reader: reader.by_code(query, votes, known=known))

    def by_recency(self, query: Query) -> tuple[Hit, ...]:
        return self._ask(lambda reader: reader.by_recency(query))

    def by_meaning(self, query: Query) -> tuple[Hit, ...]:
        if query.vector is None or not query.vector.data:
            return ()
        from foreword.store.vectors import Nearest  # with numpy, which a worker without vectors never loads

        nearest = self._nearest
        if nearest is None or not nearest.fits(query.vector):
            nearest = self._nearest = Nearest(query.vector, ask=lambda question: self._ask_of(VECTORS, question))
        return nearest.hits(query)

    def without_vectors(self, model: str, *, dim: int = 0, limit: int = 100) -> tuple[Memory, ...]:
        # Asked every second: to look through all memories for nothing is done once.
        seen = (model, dim, self._bare)
        if self._all_have == seen:
            return ()
        lacking = self._ask_of(VECTORS, lambda reader: reader.lacking(model, dim=dim, limit=limit))
        if not lacking:
            self._all_have = seen
        return lacking

    def linked(self, id: str) -> tuple[Link, ...]:
        return self._ask(lambda reader: reader.linked(id))

    def changed(self, project: str, *, session: str = "", limit: int) -> tuple[Change, ...]:
        return self._ask(lambda reader: reader.changed(project, session=session, limit=limit))

    def sessions(self, project: str = "", *, limit: int = 20) -> tuple[Session, ...]:
        return self._ask(lambda reader: reader.sessions(project, limit=limit))

    def session(self, id: str) -> Session | None:
        return self._ask(lambda reader: reader.session(id))

    def sessions_of(self, host: str, *, limit: int) -> tuple[Session, ...]:
        return self._ask_of(SEEN, lambda reader: reader.sessions_of(host, limit=limit))

    def seen(self) -> tuple[Seen, ...]:
        self._flush()
        return self._ask_of(SEEN, lambda reader: reader.seen())

    def prompts(self, session: str, *, limit: int = 20, oldest: bool = False) -> tuple[Event, ...]:
        return self._ask_of(SEEN, lambda reader: reader.prompts(session, limit=limit, oldest=oldest))

    def last_told(self, session: str, kind: str) -> Event | None:
        return self._ask_of(SEEN, lambda reader: reader.last_told(session, kind))

    def sessions_before(
        self, last: float, id: str = "", *, projects: Sequence[str] = (), limit: int
    ) -> tuple[Session, ...]:
        return self._ask_of(TIMELINE, lambda reader: reader.sessions_before(last, id, projects=projects, limit=limit))

    def session_like(self, beginning: str) -> Session | None:
        return self._ask_of(TIMELINE, lambda reader: reader.session_like(beginning))

    def sessions_with(self, ids: Sequence[str]) -> tuple[Session, ...]:
        return self._ask_of(TIMELINE, lambda reader: reader.sessions_with(ids))

    def came_of(self, sessions: Sequence[str], *, kinds: Sequence[str], each: int) -> Mapping[str, tuple[Memory, ...]]:
        return self._ask_of(TIMELINE, lambda reader: reader.came_of(sessions, kinds=kinds, each=each))

    def changed_in(self, sessions: Sequence[tuple[str, str]], *, each: int) -> Mapping[str, Changed]:
        return self._ask_of(TIMELINE, lambda reader: reader.changed_in(sessions, each=each))

    def given_to(self, sessions: Sequence[str]) -> Mapping[str, Given]:
        self._flush()
        return self._ask_of(TIMELINE, lambda reader: reader.given_to(sessions))

    def began_with(self, sessions: Sequence[str]) -> Mapping[str, Event]:
        return self._ask_of(TIMELINE, lambda reader: reader.began_with(sessions))

    def events_before(self, session: str, number: int, *, limit: int) -> tuple[Event, ...]:
        return self._ask_of(TIMELINE, lambda reader: reader.events_before(session, number, limit=limit))

    def undistilled(self, *, project: str = "", limit: int = 100) -> tuple[Session, ...]:
        return self._ask(lambda reader: reader.undistilled(project=project, limit=limit))

    def events(self, session: str, *, limit: int = 1000, newest: bool = False, after: int = -1) -> tuple[Event, ...]:
        return self._ask(lambda reader: reader.events(session, limit=limit, newest=newest, after=after))

    def mark(self, name: str) -> str:
        return self._ask(lambda reader: reader.mark(name))

    def injections(
        self, *, session: str = "", project: str = "", memory: str = "", limit: int = 20, texts: bool = False
    ) -> tuple[Injection, ...]:
        self._flush()
        asked: dict[str, Any] = {"session": session, "project": project, "memory": memory}
        return self._ask(lambda reader: reader.injections(**asked, limit=limit, texts=texts))

    def injection(self, id: str) -> Injection | None:
        self._flush()
        return self._ask(lambda reader: reader.injection(id))

    def silences(self, *, id: str = "", session: str = "", project: str = "", limit: int = 20) -> tuple[Silence, ...]:
        self._flush()
        asked: dict[str, Any] = {"id": id, "session": session, "project": project}
        return self._ask_of(SILENCES, lambda reader: reader.silences(**asked, limit=limit))

    def given(self, like: Injection) -> Injection | None:
        self._flush()
        return self._ask(lambda reader: reader.given(like))

    def shown(self, session: str) -> frozenset[str]:
        self._flush()
        return self._ask(lambda reader: reader.shown(session))

    def begun(self, session: str) -> float:
        self._flush()
        return self._ask(lambda reader: reader.begun(session))

    def prompted(self, session: str, *, before: float) -> bool:
        return self._ask(lambda reader: reader.prompted(session, before=before))

    def spent(self, session: str) -> Mapping[str, int]:
        self._flush()
        return self._ask(lambda reader: reader.spent(session))

    def given_in_all(self, session: str) -> tuple[int, int]:
        self._flush()
        return self._ask(lambda reader: reader.given_in_all(session))

    def unjudged(self, session: str, *, limit: int = 500) -> tuple[Injection, ...]:
        self._flush()
        return self._ask_of(JUDGED, lambda reader: reader.unjudged(session, limit=limit))

    def overdue(self, *, since: float, before: float, limit: int = 20) -> tuple[Session, ...]:
        self._flush()
        return self._ask_of(JUDGED, lambda reader: reader.overdue(since=since, before=before, limit=limit))

    def fetched(self, session: str, *, since: float = 0.0) -> tuple[tuple[str, float], ...]:
        self._flush()
        return self._ask_of(JUDGED, lambda reader: reader.fetched(session, since=since))

    def shown_to(self, memory: str) -> frozenset[str]:
        self._flush()
        return self._ask_of(JUDGED, lambda reader: reader.shown_to(memory))

    def use(self, *, project: str = "", memory: str = "", session: str = "", since: float = 0.0) -> Use:
        self._flush()
        asked = {"project": project, "memory": memory, "session": session}
        return self._ask_of(JUDGED, lambda reader: reader.use(**asked, since=since))

    def spendings(self, since: float = 0.0, limit: int = 20) -> tuple[Spending, ...]:
        return self._ask_of(LEDGER, lambda reader: reader.spendings(since=since, limit=limit))

    def spent_on_models(self, since: float) -> int:
        return self._ask_of(LEDGER, lambda reader: reader.spent_on_models(since))

    def counts(self) -> Mapping[str, int]:
        self._flush()
        return self._ask(lambda reader: reader.counts())

    def statistics(self, *, project: str, since: float, until: float, first: str, last: str) -> Counted:
        self._flush()
        asked: dict[str, Any] = {"project": project, "since": since, "until": until, "first": first, "last": last}
        return self._ask_of(STATISTICS, lambda reader: reader.statistics(**asked))

    def size(self) -> Size:
        return self._ask_of(TALLIES, lambda reader: reader.size())

    def _ask(self, question: Callable[[Reader], T]) -> T:
        return self._readers.ask(Reader, question)

    def _ask_of(self, area: Area[R], question: Callable[[R], T]) -> T:
        return self._readers.ask(area.reader(), question)

    def _ask_browsing(self, wanted: Wanted, question: Callable[[BrowsingReader, Counts], T]) -> T:
        from foreword.store.counts import Counts

        if wanted.words or wanted.tag or wanted.file:
            self._check_words()
        known = self._browsed = Counts.at(self._memories_of, before=self._browsed)
        return self._ask_of(BROWSING, lambda reader: question(reader, known))

    def _check_words(self) -> None:
        if "index" in self._trouble:
            raise DamagedIndex(self._trouble["index"], hint=WAYS_OUT["index"])
