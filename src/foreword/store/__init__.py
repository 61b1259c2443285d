"""The Store protocol: the questions that any keeper of memory answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from foreword.types import EMPTY, Change, Event, Hit, Injection, Link, Memory, Project, Query, Session, Vector

if TYPE_CHECKING:
    from foreword.amendments import Amendment, Logged, Undone
    from foreword.retention import Limits
    from foreword.store.browsing import Facets, Page
    from foreword.store.forgetting import Forgetter
    from foreword.store.judged import Use, Verdict
    from foreword.store.ledger import Spending
    from foreword.store.pruning import Batch, Plan
    from foreword.store.registry import Held, Known, Moved
    from foreword.store.scrub import Cleans, Scrubbed
    from foreword.store.seen import Seen
    from foreword.store.silences import Silence
    from foreword.store.statistics import Counted
    from foreword.store.tallies import Size
    from foreword.store.timeline import Changed, Given
    from foreword.store.wanted import Wanted


class Store(Protocol):
    """Keeps memories and what they came from. What a writing method has returned from survives a crash."""

    # -- writing ------------------------------------------------------------------------------------------------
    def append(self, events: Sequence[Event]) -> tuple[bool, ...]:
        """Keep *events*, and say of each whether it is new; the same event told twice is one event."""

    def keep(
        self, memories: Sequence[Memory], *, links: Sequence[Link] = (), vectors: Sequence[Vector | None] = ()
    ) -> tuple[Memory, ...]:
        """Keep *memories*, new or changed (by uid), with the vectors of their texts, and return them with their ids."""

    def add_vectors(self, memories: Sequence[Memory], vectors: Sequence[Vector]) -> int:
        """Give vectors to memories that were kept without, unless a text has changed since; how many were given."""

    def note_changes(self, changes: Sequence[Change]) -> None:
        """Keep which functions were new, modified or deleted; of one function a session has one change, the last."""

    def settle(
        self,
        session: Session,
        *,
        upto: int = 0,
        memories: Sequence[Memory] = (),
        links: Sequence[Link] = (),
        changes: Sequence[Change] = (),
    ) -> tuple[Memory, ...]:
        """Keep what a session has come to, and that it tells of every event up to number *upto*, all or nothing.

        A session that no event told of becomes known; ends of links may be uids of these memories.
        """

    def bring(
        self,
        memories: Sequence[Memory],
        *,
        links: Sequence[Link] = (),
        changes: Sequence[Change] = (),
        session: Session | None = None,
        events: Sequence[Event] = (),
        mark: tuple[str, str] = ("", ""),
        row: tuple[str, int] = ("", 0),
        at: float = 0.0,
    ) -> tuple[Memory, ...]:
        """Keep what an import read, and under its name how far it came, all or nothing; oldest first are returned.

        Ids that are free are kept; ends of links and `superseded_by` may be uids of anything known by then. A *row*
        that is read from its newest end has a name, and so many older ones to come: they find their place below.
        """

    def set_mark(self, name: str, text: str, *, at: float) -> None:
        """Note how far something has come that may be interrupted."""

    def record(self, injection: Injection, *, at_once: bool = False) -> None:
        """Keep what was injected, a moment later unless *at_once*; of an id, what a hook gave itself is last."""

    def note_silences(self, silences: Sequence[Silence]) -> None:
        """Keep why nothing was said, a moment later; what was given after all is no silence."""

    def touch(self, ids: Iterable[str], *, how: str, at: float, session: str = "") -> None:
        """Keep that somebody fetched these memories; it may be written a moment later."""

    def spend(self, entry: Spending) -> Spending:
        """Keep a call of a model, new or changed (by number), and return it with its number."""

    def judge(self, verdicts: Sequence[Verdict]) -> int:
        """Keep whether items were used, and move their memories' counts by the difference; how many are now other.

        What was used stays used, and saying the same again changes nothing.
        """

    def tally(self, counted: Mapping[tuple[str, str, str], float]) -> None:
        """Add to what is only counted, (day, project, what) -> how many more; it may be written a moment later."""

    def note_day(self, day: str) -> bool:
        """Note where everything stands as a local day begins; whether that is new. How old things are hangs on it."""

    # -- governing ----------------------------------------------------------------------------------------------
    def amend(self, amendments: Sequence[Amendment], *, who: str, at: float, run: str = "") -> tuple[Logged, ...]:
        """Carry out *amendments*, all or nothing, and log each so that it can be taken back.

        What is no longer as an amendment knows it raises Conflict. Ends of links may be uids, and `superseded_by` the
        uid of a new one.
        """

    def undo(self, entries: Sequence[Logged], *, who: str, at: float, run: str = "") -> Undone:
        """Take back what entries of the log changed; what was changed again since is left, and told."""

    def log(
        self,
        *,
        project: str = "",
        memory: str = "",
        run: str = "",
        numbers: Sequence[int] = (),
        since: float = 0.0,
        standing: bool = False,
        limit: int = 50,
    ) -> tuple[Logged, ...]:
        """Who changed what on purpose, newest first; *standing*: what nobody took back and somebody may."""

    def written(
        self, *, project: str = "", memory: str = "", since: float = 0.0, limit: int = 50
    ) -> tuple[Memory, ...]:
        """The memories as they came to be, newest first, whatever their status, without those that an entry made."""

    def taken_back(self) -> frozenset[tuple[str, frozenset[str]]]:
        """What was done and undone, each as its verb and the ids of its memories: nobody does it by himself again."""

    def was_forgotten(self, memories: Sequence[Memory]) -> bool:
        """Whether one of these was forgotten, so that nobody may make it by himself again."""

    @property
    def forgetting(self) -> Forgetter:
        """What it takes to forget something, step by step. What was forgotten is never kept again by any method."""

    # -- projects -----------------------------------------------------------------------------------------------
    def registry(self) -> Mapping[str, Known]:
        """The projects that were seen, by key; another object whenever that has changed."""

    def held(self) -> Mapping[str, Held]:
        """What is kept of each project, by key."""

    def of_project(self, key: str) -> Mapping[str, int]:
        """How many rows of every table are a project's, whatever their status."""

    def see_projects(self, projects: Sequence[Project], *, at: float) -> None:
        """Note where projects were seen, and under which name the first time."""

    def call_project(self, key: str, name: str) -> None:
        """Give a project a name for people."""

    def alias_project(self, key: str, *, of: str, who: str, at: float) -> Logged:
        """Let a project count as another from now on, or with none named as itself again; logged, and can be undone.

        No alias leads to another one.
        """

    def merge_project(
        self, key: str, *, into: str, unite: Callable[[Memory, Memory], Memory], who: str, at: float
    ) -> Moved:
        """Make everything of a project another's, all or nothing, and its key an alias; logged, and cannot be undone.

        Uids become those of the new project. Where one exists there already, *unite* puts the two together, the known
        one first; the one that came stays as superseded by it.
        """

    def gather_project(self, key: str, *, into: str) -> None:
        """Bring along what was written under a key in the moment a merge made it an alias."""

    # -- asking -------------------------------------------------------------------------------------------------
    def by_id(self, ids: Sequence[str]) -> tuple[Memory, ...]:
        """The memories with these ids, in this order, without those that do not exist."""

    def by_uid(self, uids: Sequence[str]) -> tuple[Memory, ...]:
        """The memories with these uids, in this order, without those that do not exist."""

    def page(self, *, after: int = 0, scopes: Sequence[str] = (), limit: int = 500) -> tuple[tuple[int, Memory], ...]:
        """The next memories behind place *after*, each with its place, whatever their status; all scopes if none."""

    def of_session(self, session: str, *, limit: int = 500) -> tuple[Memory, ...]:
        """What a session has come to or seen, whatever its status, oldest first; also what later ones saw again."""

    def proposed(self) -> tuple[Memory, ...]:
        """What waits for the user's yes, in whatever scope, newest first."""

    def of_kinds(
        self, kinds: Sequence[str], *, scopes: Sequence[str] = (), statuses: Sequence[str] = (), limit: int = 20_000
    ) -> tuple[Memory, ...]:
        """The memories of these kinds, newest first; of all scopes if none, and whatever their status if none."""

    def how_many(self, kind: str, *, scopes: Sequence[str] = ()) -> int:
        """How many active memories there are of a kind; of all scopes if none."""

    def browse(self, wanted: Wanted, *, after: str = "", limit: int = 50) -> Page:
        """A page of what is wanted, of all projects: newest first, or where there are words best first.

        *after* is what the page before said; what is being forgotten is in none.
        """

    def facets(self, wanted: Wanted) -> Facets:
        """How many there are of what is wanted, by kind, scope, project, tag, file, status, trust and pin."""

    def around(self, memory: Memory, *, scope: str, limit: int) -> tuple[tuple[Memory, ...], tuple[Memory, ...]]:
        """What came just before and just after a memory in a scope, active ones only, each side oldest first."""

    def by_words(self, query: Query) -> tuple[Hit, ...]:
        """What holds any of the query's terms, best first, and what stood next to it in its session."""

    def by_code(
        self, query: Query, votes: Mapping[str, float], *, known: Mapping[str, Memory] = EMPTY
    ) -> tuple[Hit, ...]:
        """What names any of these files and functions, most votes first, each vote weighed by its rarity.

        What is *known* by its id already is not read again.
        """

    def by_recency(self, query: Query) -> tuple[Hit, ...]:
        """What came last in the query's scopes, newest first; each kind and scope has its share of the limit."""

    def by_meaning(self, query: Query) -> tuple[Hit, ...]:
        """What is nearest to the query's vector, among vectors of the same model; the score is the cosine."""

    def without_vectors(self, model: str, *, dim: int = 0, limit: int = 100) -> tuple[Memory, ...]:
        """Active memories that have no vector of this model (and, where known, of this length), newest first."""

    def linked(self, id: str) -> tuple[Link, ...]:
        """Every edge that begins or ends at this memory."""

    def changed(self, project: str, *, session: str = "", limit: int) -> tuple[Change, ...]:
        """The functions of a project that changed last, or in one session, newest first."""

    def sessions(self, project: str = "", *, limit: int = 20) -> tuple[Session, ...]:
        """The sessions of a project, or of all, newest first."""

    def session(self, id: str) -> Session | None:
        """One session."""

    def sessions_of(self, host: str, *, limit: int) -> tuple[Session, ...]:
        """The sessions of a host that its hooks told of, newest first."""

    def seen(self) -> tuple[Seen, ...]:
        """What was seen of each host that ever told something."""

    def prompts(self, session: str, *, limit: int = 20, oldest: bool = False) -> tuple[Event, ...]:
        """What a session was asked, the newest first, or the oldest."""

    def last_told(self, session: str, kind: str) -> Event | None:
        """The last event of a kind that a session told."""

    def sessions_before(
        self, last: float, id: str = "", *, projects: Sequence[str] = (), limit: int
    ) -> tuple[Session, ...]:
        """The sessions that come behind one in the list of all, newest first; with 0 for its time, the first ones."""

    def session_like(self, beginning: str) -> Session | None:
        """The newest session whose id begins so."""

    def sessions_with(self, ids: Sequence[str]) -> tuple[Session, ...]:
        """The sessions of these ids, as far as they are known."""

    def came_of(self, sessions: Sequence[str], *, kinds: Sequence[str], each: int) -> Mapping[str, tuple[Memory, ...]]:
        """What sessions have come to or seen, by session, whatever its status, oldest first; so many of a kind each.

        What several of them saw comes with each. What was merged into another that the session saw comes as that one.
        """

    def changed_in(self, sessions: Sequence[tuple[str, str]], *, each: int) -> Mapping[str, Changed]:
        """What sessions changed, each named by a project and its id, newest first; by session, at most so many each."""

    def given_to(self, sessions: Sequence[str]) -> Mapping[str, Given]:
        """What sessions were given since they began; by session, without those that were given nothing."""

    def undistilled(self, *, project: str = "", limit: int = 100) -> tuple[Session, ...]:
        """Sessions with events that their memories do not tell of yet, newest first."""

    def events(self, session: str, *, limit: int = 1000, newest: bool = False, after: int = -1) -> tuple[Event, ...]:
        """What happened in a session, in order; or what happened last, the newest first.

        Behind the event of number *after* they come as they arrived: what was spooled arrives late.
        """

    def began_with(self, sessions: Sequence[str]) -> Mapping[str, Event]:
        """The first prompt of each of these sessions that has one."""

    def events_before(self, session: str, number: int, *, limit: int) -> tuple[Event, ...]:
        """What a session told before the event of that number, the newest first."""

    def mark(self, name: str) -> str:
        """How far something had come when it was noted last; empty for never."""

    def injections(
        self, *, session: str = "", project: str = "", memory: str = "", limit: int = 20, texts: bool = False
    ) -> tuple[Injection, ...]:
        """What was injected, newest first, without its texts unless asked; kept silences are not told."""

    def injection(self, id: str) -> Injection | None:
        """One injection with its text."""

    def silences(self, *, id: str = "", session: str = "", project: str = "", limit: int = 20) -> tuple[Silence, ...]:
        """Moments at which nothing was said, newest first."""

    def given(self, like: Injection) -> Injection | None:
        """The first of the session's present context window that was asked for in the same way, with its text."""

    def shown(self, session: str) -> frozenset[str]:
        """The ids of the memories that are in the session's present context window: given to it, or made in it."""

    def begun(self, session: str) -> float:
        """When the session's present context window was last given what a session begins with; 0 for never."""

    def prompted(self, session: str, *, before: float) -> bool:
        """Whether the session's present context window saw a prompt before that time."""

    def spent(self, session: str) -> Mapping[str, int]:
        """The tokens that the session's present context window was given, by moment."""

    def given_in_all(self, session: str) -> tuple[int, int]:
        """How many memories a session was given since it began, each counted once, and for how many tokens."""

    def unjudged(self, session: str, *, limit: int = 500) -> tuple[Injection, ...]:
        """What a session was given and is not known to have used, with its texts, oldest first.

        Of windows that are closed, only what was not judged yet.
        """

    def overdue(self, *, since: float, before: float, limit: int = 20) -> tuple[Session, ...]:
        """Sessions whose last event lies between these times and that have items which nobody has judged."""

    def fetched(self, session: str, *, since: float = 0.0) -> tuple[tuple[str, float], ...]:
        """The ids that a session fetched from then on, each with its time."""

    def shown_to(self, memory: str) -> frozenset[str]:
        """The sessions that were given a memory, whenever that was."""

    def use(self, *, project: str = "", memory: str = "", session: str = "", since: float = 0.0) -> Use:
        """How many items were given from then on, and how many of them were used or were for nothing."""

    def spendings(self, since: float = 0.0, limit: int = 20) -> tuple[Spending, ...]:
        """The calls of models from then on, newest first."""

    def spent_on_models(self, since: float) -> int:
        """The tokens that models were given and gave from then on."""

    def counts(self) -> Mapping[str, int]:
        """How many rows of everything there are."""

    def statistics(self, *, project: str, since: float, until: float, first: str, last: str) -> Counted:
        """What was counted of a project, or of all, between two times, and on the days from *first* to *last*."""

    def size(self) -> Size:
        """How large the store is, and how much of that is in use."""

    def stirred(self, after: int, *, seconds: float) -> int:
        """The number of the last commit, as soon as it is another than *after*, or when the time is over."""

    # -- keeping itself well -----------------------------------------------------------------------------------
    def index(self) -> int:
        """Make the words index anew from the memories, and say how many it holds."""

    def scrub(self, cleaner: Cleans, *, after: Sequence[object] = (), dry_run: bool = False) -> Scrubbed:
        """Clean the next rows, a transaction at most, and say what was found and where the next ones begin."""

    def sweep(self) -> None:
        """Leave no byte of what was cleaned: indexes anew, free pages given back, the log emptied."""

    def prunable(self, limits: Limits, *, now: float) -> Plan:
        """What would go, by age and by size; nothing does."""

    def prune(
        self,
        plan: Plan,
        part: int,
        *,
        after: Sequence[object],
        who: str,
        now: float,
        told: Mapping[str, int] = EMPTY,
        noted: int = 0,
    ) -> Batch:
        """Take away the next rows of a part of the plan, a transaction at most, and note in the log how many went.

        *told* is what went before, by class, and *noted* its entry, 0 for none yet: a run has one entry.
        """

    def give_back(self) -> None:
        """Make the file as small as what it holds; nobody can write meanwhile."""

    def problems(self) -> tuple[str, ...]:
        """What is wrong with the store, in sentences that tell the way out."""

    def close(self) -> None:
        """Finish what is being written, and let go of the database."""
