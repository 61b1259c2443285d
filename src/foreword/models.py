"""Define the values that travel between the stages: events, memories, queries, contexts and injections."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

Trust = Literal["user", "agent", "tool", "imported"]
Status = Literal["active", "superseded", "stale", "discarded", "forgotten"]

# Each kind of memory with the prefix of its ids, in the order of the specification.
KINDS = {
    "turn": "trn",
    "summary": "sum",
    "handoff": "han",
    "decision": "dec",
    "pattern": "pat",
    "failure": "fai",
    "observation": "obs",
    "change": "chg",
    "learning": "lea",
    "preference": "pre",
    "correction": "cor",
    "goal": "goa",
    "note": "not",
    "project": "prj",
}
BASE32 = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u: ids are read aloud and typed
TRUSTS = ("user", "agent", "tool", "imported")  # most trusted first
STATUSES = ("active", "superseded", "stale", "discarded", "forgotten")  # only the first is ever shown
UNIVERSAL = "universal"

# Kinds of events; an event that we do not know is kept as "other".
EVENTS = ("session_start", "prompt", "tool", "tool_failure", "stop", "compaction", "session_end", "other")
TOOL_BEGIN = "tool_begin"  # shows in whose session one of our tools is about to be called; it is not kept
TRIGGERS = ("session_start", "prompt", "compaction", "question")
CONTINUING_SOURCES = ("resume", "fork")  # sources of a session's start that continue a context window
FORMS = ("markdown", "xml", "plain", "codes")
TOKENIZERS = ("claude-4.7", "claude-3", "o200k")  # Claude 3 to 4.6 share one

# What one search may read of the words index, rarest first: of 1M memories 2,000 find 99 % of known items, 5,000 all.
POSTINGS = 5_000

EMPTY: Mapping[str, Any] = {}


# ---- what happened


@dataclass(frozen=True)
class Project:
    """Whose memory this is: `key` is the identity, `name` is for people, `root` is where its files are here."""

    key: str
    name: str
    root: str

    @property
    def scope(self) -> str:
        return f"project:{self.key}"


class Event(NamedTuple):
    """One thing that an agent's hook reported, redacted; `key` is the same for an event that arrives twice."""

    key: str
    host: str  # the agent
    name: str  # the agent's own word for it
    kind: str  # one of EVENTS
    session: str
    project: str  # a project key; empty where the payload holds no usable folder
    cwd: str
    at: float
    payload: Mapping[str, Any]
    lasting: bool = False  # the agent gave it an id of its own; else the same bytes count once within seconds
    number: int = 0  # set by the store, in the order of arrival


@dataclass(frozen=True)
class Session:
    """One conversation with an agent."""

    id: str
    host: str  # the agent
    project: str
    cwd: str
    started: float
    last: float
    ended: float = 0.0
    events: int = 0
    newest: int = 0  # the number of its last event
    extracted: int = 0  # the number of the last event that its memories cover


class Edit(NamedTuple):
    """One edit of a file: whole texts before and after it (None: no file), or only the piece that was replaced."""

    file: str
    before: str | None
    after: str | None
    whole: bool = False
    everywhere: bool = False  # every occurrence of the piece was replaced
    line: int = 0  # of the piece now, from 1 on, where that is known


@dataclass(frozen=True)
class Change:
    """A function that was NEW, MODIFIED or DELETED in a file of a project."""

    project: str
    file: str
    function: str
    what: str
    signature: str = ""
    line: int = 0
    end_line: int = 0
    session: str = ""
    at: float = 0.0


# ---- what is remembered


@dataclass(frozen=True)
class Memory:
    """One thing worth knowing later."""

    kind: str
    title: str
    body: str = ""
    id: str = ""  # set by the store
    uid: str = ""  # unique over machines; set by the store
    scope: str = ""  # universal, language:X or project:KEY
    project: str = ""  # the project it came from
    tags: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    session: str = ""
    source: str = "user"
    trust: Trust = "user"
    confidence: float = 1.0
    seen: int = 1
    created: float = 0.0
    confirmed: float = 0.0
    status: Status = "active"
    superseded_by: str = ""
    pinned: bool = False  # by the user; the store keeps this and the two below through every change
    used: int = 0  # times it was injected and the agent used it
    ignored: int = 0  # times it was injected for nothing
    detail: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Link:
    """One edge of the graph between memories: supersedes, resolves, caused-by, relates-to or part-of."""

    source: str
    relation: str
    target: str


class Vector(NamedTuple):
    """The embedding of a text by one model: whole numbers, one a byte, that `scale` makes unit length."""

    model: str
    scale: float
    data: bytes


def trust_rank(trust: str) -> int:
    """Return 0 for the user's own words; the higher, the less they count. What is not known counts least."""
    return TRUSTS.index(trust) if trust in TRUSTS else len(TRUSTS) - 1


def lowest_trust(trusts: Iterable[str]) -> Trust:
    """Return the lowest of *trusts*, which is what a memory made of several has; for none, the lowest of all."""
    return cast("Trust", TRUSTS[max(map(trust_rank, trusts), default=len(TRUSTS) - 1)])


def agent_memory_uid(*, project: str, kind: str, title: str) -> str:
    """Return the uid of what an agent asked us to remember: the same thing twice is one memory of a project."""
    identity = "\0".join((project, kind, " ".join(title.casefold().split())))
    return f"agent-{hashlib.blake2b(identity.encode(), digest_size=12).hexdigest()}"


def moved(uid: str, *, old: str, new: str, kind: str = "", title: str = "") -> str:
    """Return *uid* as extraction and imports write it in project *new*; one that names no project stays as it is."""
    if uid == agent_memory_uid(project=old, kind=kind, title=title):
        return agent_memory_uid(project=new, kind=kind, title=title)
    prefix, colon, rest = uid.partition(":")
    if colon and (rest == old or rest.startswith(f"{old}:")):
        return f"{prefix}:{new}{rest[len(old) :]}"
    return uid


def text(detail: Mapping[str, Any], name: str) -> str:
    """Return the first text under *name* in a memory's detail; empty where there is none."""
    return next(iter(texts(detail, name)), "")


def texts(detail: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the texts under *name*, whether one or several were stored; anything else says nothing."""
    value = detail.get(name)
    several = value if isinstance(value, list | tuple) else (value,)
    return tuple(each for each in several if isinstance(each, str) and each.strip())


def named(detail: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the object under *name*, such as one entry for each session; empty where there is none."""
    value = detail.get(name)
    return dict(value) if isinstance(value, Mapping) else {}


# ---- what is injected


class Cap(NamedTuple):
    """The longest answer that an agent takes whole."""

    most: int
    counts: str = "characters"  # or "utf-16" units, or "utf-8" bytes

    def size(self, text: str) -> int:
        """Return how much of it *text* takes."""
        if self.counts == "characters" or text.isascii():
            return len(text)
        size = len(text.encode(self.counts, "surrogatepass"))
        return size if self.counts == "utf-8" else size // 2 - 1  # without the byte order mark


class Trigger(NamedTuple):
    """A moment at which context is wanted: which one, of which session and agent, and how much."""

    name: str  # one of TRIGGERS
    project: Project
    session: str = ""
    prompt: str = ""
    host: str = ""  # the agent
    source: str = ""  # of a start: startup, resume, clear, compact or fork; `question` for an explicit request
    model: str = ""
    budget: int = 0  # 0 means the layout's own
    form: str = "markdown"  # one of FORMS
    stable: bool = False  # a repeated call gets the same bytes: in this window, or in the session where it is resent
    touched: tuple[str, ...] = ()  # files of this session and of git, newest first, relative to the root
    recent: tuple[str, ...] = ()  # the kinds of the last tool events, newest first
    languages: tuple[str, ...] | None = None  # None: not determined yet
    scope: str = ""  # only this one of project, language and universal; empty means all
    first: bool = True  # whether the prompt is the first of its context window
    session_words: frozenset[str] = frozenset()  # words that came up in this session before the prompt
    answer: str = ""  # the end of the agent's last message
    parallel: tuple[tuple[float, tuple[str, ...]], ...] = ()  # other sessions in this folder: since when, their files
    changed: frozenset[str] | None = None  # files that git calls changed; None where that is not known


def is_resent(trigger: str, form: str) -> bool:
    """Return whether an agent sends a block again with every request, so that no compaction removes it."""
    return trigger == "session_start" and form == "xml"


class Query(NamedTuple):
    """A search: the significant terms of a prompt, the files and functions in it, and the scopes that may be shown."""

    scopes: tuple[str, ...]  # the project's first
    terms: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()  # two words each that are side by side in the prompt
    session: str = ""  # only what this session itself established; empty means any
    kinds: tuple[str, ...] = ()  # empty means all
    since: float = 0.0
    limit: int = 60
    most_terms: int = 10  # the rarest of the terms are searched for
    postings: int = POSTINGS
    # Words that are not in the prompt, each with the term that it may replace
    synonyms: Mapping[str, str] = {}
    files: tuple[str, ...] = ()  # named in the prompt; relative to the root where they lie in it
    functions: tuple[str, ...] = ()  # named in the prompt; a qualified one is followed by its last part
    touched: tuple[str, ...] = ()  # touched in this session or changed in git, newest first, relative to the root
    task: str = ""  # coding, debugging, documentation, architecture, or open
    vector: Vector | None = None  # of the prompt, where embeddings are switched on
    plain: bool = False  # words alone: neither neighbours of a hit nor the code it is about


class Near(NamedTuple):
    """A memory near a hit in its session: how many places later, which terms it holds, whether it is a question."""

    gap: int
    held: tuple[str, ...]
    asks: bool


class Hit(NamedTuple):
    """A memory that one source found; `held` are the terms of the query that it holds, each with its rarity."""

    memory: Memory
    source: str
    score: float = 0.0  # as that source sees it
    strength: float = 0.0  # of its own text, without its neighbours
    held: Mapping[str, float] = {}
    full: float = 0.0  # the rarities of what makes a full match
    size: int = 0  # the memories that were searched
    near: tuple[Near, ...] = ()


class Ranked(NamedTuple):
    """A memory with its place: the product of every factor in `why`."""

    memory: Memory
    score: float
    why: Mapping[str, float]


@dataclass(frozen=True)
class Item:
    """One memory in an injection."""

    memory: str
    layer: str
    score: float
    tokens: int
    why: Mapping[str, float]
    used: bool | None = None  # None: not known yet, or nobody can tell
    how: str = ""  # by which sign: fetched, file, function, command, words


@dataclass(frozen=True)
class Injection:
    """The answer to one trigger: the text that was injected with its cost and memories, or why there was none."""

    id: str
    trigger: str
    session: str
    project: str
    host: str  # the agent
    at: float
    tokens: int
    budget: int
    build_ms: float
    layers: Mapping[str, int]
    skipped: Mapping[str, str]
    items: tuple[Item, ...]
    source: str = ""
    form: str = "markdown"
    terms: tuple[str, ...] = ()  # what was searched for; never the prompt itself
    files: tuple[str, ...] = ()
    away: bool = False  # by the hook itself, without the worker
    text: str = ""  # exactly what was injected; left out of lists
    why: str = ""  # nothing was injected: one of `recall.pipeline.REASONS`, and then ...
    nearest: str = ""  # ... the id of the best memory that was considered
    score: float = 0.0
    needed: float = 0.0  # the score that it would have needed
    spent: int = 0  # where the window budget is used up: tokens ...
    allowed: int = 0  # ... of so many


class Rejected(NamedTuple):
    """A memory that was considered and is not shown, and why."""

    ranked: Ranked
    layer: str
    reason: str  # one word, such as threshold, shown, room
    text: str  # the same as a sentence
    line: str  # what it would have shown


class Context(NamedTuple):
    """The text that is injected, within its budget."""

    text: str
    tokens: int
    budget: int
    layers: Mapping[str, int]  # layer -> tokens
    skipped: Mapping[str, str]  # layer -> why
    items: tuple[Item, ...]
    build_ms: float
    problems: tuple[str, ...] = ()  # what failed on the way and must be reported
    terms: tuple[str, ...] = ()  # what was searched for
    files: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = ()


class NoContext(NamedTuple):
    """Nothing is injected, and why."""

    reason: str  # one of `recall.pipeline.REASONS`
    budget: int = 0
    build_ms: float = 0.0
    skipped: Mapping[str, str] = {}
    problems: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    nearest: Ranked | None = None  # the best memory that was considered
    needed: float = 0.0  # the score that it would have needed
    spent: int = 0  # tokens of the window budget that are used, where that is the reason ...
    allowed: int = 0  # ... of so many
    rejected: tuple[Rejected, ...] = ()


UNDECIDABLE = "untold"  # `how` of an item of which nobody can tell: its window is closed, and nothing shows its use


class UsageVerdict(NamedTuple):
    """Whether an item of an injection was used, and what shows it; None: nobody can tell."""

    injection: str
    memory: str
    used: bool | None
    how: str = ""  # fetched, file, command or words; or UNDECIDABLE
    layer: str = ""  # in which the memory was shown; empty: in any


# ---- what the store counts

PENDING_CALL = "asked"  # the outcome of a call that has not ended, or that a crash ended: its estimate counts


class ModelCall(NamedTuple):
    """One call of a model, made or refused; its number is set by the store."""

    at: float
    provider: str
    model: str
    purpose: str
    session: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    ms: float = 0.0
    outcome: str = PENDING_CALL  # asked, ok, failed:why, refused:cap or paused
    number: int = 0


class KnownProject(NamedTuple):
    """A project that was seen: under which name and where, and as which other one it counts."""

    key: str
    name: str = ""
    root: str = ""
    roots: tuple[str, ...] = ()  # the last first
    alias_of: str = ""
    first: float = 0.0
    last: float = 0.0


class ProjectContents(NamedTuple):
    """What is stored of a project: active memories by kind, sessions, and the time of the last one."""

    kinds: Mapping[str, int] = {}
    sessions: int = 0
    last: float = 0.0

    @property
    def memories(self) -> int:
        return sum(self.kinds.values())
