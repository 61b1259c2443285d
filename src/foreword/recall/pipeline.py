"""Choose the context of a trigger: query, search, rank, select within budget, render; or why nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

from foreword.config import Settings
from foreword.errors import ForewordError
from foreword.extract.authorship import MACHINE_START, Authorship, authorship_of
from foreword.extract.names import names_in
from foreword.layout import LayerRule, TriggerLayout
from foreword.models import (
    CONTINUING_SOURCES,
    EMPTY,
    KINDS,
    Cap,
    Context,
    Hit,
    Injection,
    Item,
    Memory,
    NoContext,
    Ranked,
    Rejected,
    Trigger,
    Vector,
    named,
    texts,
)
from foreword.recall import relevance, render
from foreword.recall.budget import SHARE, Fitted, Layer, Line, fit
from foreword.recall.files import (
    Often,
    TurnRecord,
    changed_together,
    files_of_routine,
    is_changed,
    is_named,
    missing_tests,
    record_of,
)
from foreword.recall.notes import MOST_FILES, Note, answer_note, id_of, is_torn, note_of, unique_notes
from foreword.recall.query import query_of
from foreword.recall.rank import CERTAIN, WORDED, Searchable, min_score, rank, ranked_search
from foreword.recall.sanitize import shown_path
from foreword.recall.start import SESSIONS, Entry, SessionStart, file_exists, parallel_entries, pull_request_note
from foreword.recall.tokens import count, family_of
from foreword.terms import lazy_pattern, root, terms

T = TypeVar("T")
Expired = Callable[[], bool]  # whether the time to answer is over
Synonyms = Mapping[str, Sequence[str]]  # of each term the words that may stand for it

POOL = 60  # candidates where words are looked for and code votes; with 40, LoCoMo loses half a percent of R@10
MOST_REJECTED = 20  # a screen full, best first
MOST_RECORDED = 32  # terms of a long prompt that its record names: it must not become the prompt
QUESTION = "question"  # the source of a session start that a tool requested
CANDIDATES = 12  # hits that are put into words and compared with a prompt
OFFLINE_TURNS = 60  # turns that tell the likely files where no worker keeps them at hand
CLEAR_SCORE = 0.15  # score of a hit that answers a question, whatever share of its words it holds
ANSWER_COVERAGE = 0.5  # of the weight of a question about the past, that the best note must hold ...
ANSWER_WORDS = 0.6  # ... or of all its words, everyday ones too: 6 answers more on devmem, no false one
# Words of a question that nothing here holds, from which on it is about something that was never spoken of, unless a
# note holds this share of its weight: silences 5 more of devmem's 25 questions without an answer, loses 1 of 175.
UNKNOWN_WORDS, UNKNOWN_COVERAGE = 2, 0.65
MIN_CONFIDENCE = 0.7  # of what an agent wrote before it comes with a prompt: found in two sessions, or by the user
SHORT_OUTCOME = 60  # characters of an outcome without a file: what an agent was about to do when it was stopped
MIN_NEW_WORDS = 0.4  # of a note's words that the prompt does not say itself
MOST_COMPANIONS = 3  # files that a line names, of those that changed with others
MOST_CALLED = 2  # files of a session that a note gets by their names: right in 5 of 8 notes before work
MOST_PICK = 80  # characters of a prompt that only picks an entry of the agent's list
MOST_TYPED = 3_000  # characters of a prompt whose words are weighed
MOST_WEIGHED = 60  # words
PROGRESS_SECONDS = 3 * 86_400.0  # after which it is old news
KINDS_WITH_NOTES = ("new topic", "past", "same topic")  # kinds of prompts that may get notes
NOTE_KINDS = tuple(kind for kind in KINDS if kind not in ("goal", "change"))
GOALS = 60  # goals that are looked through for the open ones
MOST_GOALS = 5
GOAL_WORDS = frozenset(("goal", "goals", "mission", "milestone", "milestones", "objective", "objectives", "roadmap"))

# Why nothing is injected, each as a sentence goes on behind "Nothing was injected: ".
REASONS = {
    "nothing": "nothing that is remembered here has to do with it",
    "below": "nothing that is remembered here is close enough to it",
    "reply": "it answers or continues the running conversation",
    "plan": "it is a detailed plan, which says itself what is needed",
    "machine": "no person wrote it",
    "topic": "the running conversation has this topic already",
    "repeated": "everything that fits was shown already in this context window",
    "given": "what a session begins with was given already in this context window",
    "old": "nothing is new since this context window began",
    "unsure": "what fits is not sure enough to come by itself",
    "room": "what fits is too long for the budget of {budget:,} tokens",
    "used": "this context window's budget for {of} is used up{so_far}",
    "late": "there was no time left to look",
    "wordless": "it names no topic: a thing, a file, a function",
    "failed": "something went wrong on the way; `foreword doctor` says what",
    "off": "injection is switched off",
}
FIRST_START = "nothing is remembered here yet that a session begins with"


# A line that needs no closer look at who wrote it, which takes 4 ms in a hook without a worker.
PLAIN = lazy_pattern(r"[0-9A-Za-z ,.?!'-]{1,300}")


class Window(NamedTuple):
    """What the running context window holds already; each part is read only where it is needed."""

    shown: Callable[[], frozenset[str]] = frozenset  # ids of memories that were shown in full
    spent: Callable[[], Mapping[str, int]] = dict  # tokens by trigger
    began: Callable[[], float] = lambda: 0.0  # when its last session start was injected; 0 for never
    history: Callable[[], Sequence[TurnRecord]] | None = None  # the project's turns, newest first; None: from the store


class Options(NamedTuple):
    """The settings of one recall."""

    layout: TriggerLayout
    threshold: float
    synonyms: Synonyms = EMPTY
    family: str = "auto"
    style: str = "notes"  # of prompts: notes or index
    cap: Cap | None = None
    offline: bool = False  # in a hook, without the worker


def recall(
    store: Searchable,
    trigger: Trigger,
    *,
    options: Options,
    now: float,
    window: Window = Window(),  # noqa: B008 - frozen, and reads nothing
    vector: Vector | None = None,
    expired: Expired = lambda: False,
) -> Context | NoContext:
    """Return what is worth saying at *trigger*, within all budgets, or why nothing is."""
    return _Recall(store, trigger, options, now=now, window=window, expired=expired).run(vector)


class _Recall:
    """One recall under way."""

    def __init__(
        self, store: Searchable, trigger: Trigger, options: Options, *, now: float, window: Window, expired: Expired
    ) -> None:
        if trigger.name == "prompt" and trigger.answer and len(trigger.prompt) <= MOST_PICK:
            from foreword.extract.statements import picked_option  # late: hooks without a worker know no answer

            if option := picked_option(trigger.prompt.strip(), trigger.answer):
                trigger = trigger._replace(prompt=option, first=True)  # a topic that the agent has put into words
        self.store, self.trigger, self.options, self.now = store, trigger, options, now
        self.window, self.expired = window, expired
        self.started = perf_counter()
        self.problems: list[str] = []
        self.rejected: list[Rejected] = []
        self.skipped: dict[str, str] = {}
        self.best: Ranked | None = None
        self.needed = 0.0
        self.known: frozenset[str] = frozenset()  # ids of memories that this window has seen in full
        self.taken: set[str] = set()  # ids of memories that a layer shows
        self.since = 0.0  # when the window began that is resumed: what did not fit its beginning is not new
        self.older = False  # whether something was there when the window began
        self.repeated = False  # whether something that fits was shown before
        self.reason = ""  # of the decision to say nothing, where one was made
        self.query = query_of(trigger, synonyms=options.synonyms)._replace(plain=options.offline)
        self.family = family_of(trigger.model) if options.family == "auto" else options.family
        self.form = render.form_at(trigger.name, trigger.form)

    def run(self, vector: Vector | None) -> Context | NoContext:
        """Decide, choose, fit and render; *vector* is the embedding of the prompt."""
        self.query = self.query._replace(vector=vector)
        trigger, layout = self.trigger, self.options.layout
        # A start, a clear and a compaction empty the window; without a source somebody asks in the middle of one.
        starts = trigger.name == "session_start"
        goes_on = trigger.name in WORDED or (starts and trigger.source in ("", QUESTION, *CONTINUING_SOURCES))
        used = self._safely(self.window.spent, EMPTY) if goes_on and trigger.session else EMPTY
        if trigger.source == QUESTION and used.get("session_start"):
            return self._nothing("given")
        wanted = trigger.budget or layout.budget
        spent, allowed = used.get(trigger.name, 0), layout.total  # of the window budget
        budget = min(wanted, max(0, allowed - spent)) if trigger.session else wanted
        if budget < min(wanted, 1):
            return self._nothing("used", spent=spent, allowed=allowed)
        self.known = self._safely(self.window.shown, self.known) if goes_on else self.known
        if trigger.session and trigger.source in CONTINUING_SOURCES:
            self.since = self._safely(self.window.began, 0.0)
        layers = self._layers()
        fitted = self._fit(layers, limit=budget)
        self.skipped.update(fitted.skipped)
        if not fitted.text:
            if budget < wanted and "does not fit" in self.skipped.values():
                return self._nothing("used", spent=spent, allowed=allowed)
            return self._nothing(self._why(), budget=budget)
        return self._context(layers, fitted, budget)

    # -- choosing ------------------------------------------------------------------------------------------------
    def _layers(self) -> list[Layer]:
        layers: list[Layer] = []
        for rule in self.options.layout.layers:
            if self.expired():
                self.skipped[rule.name] = "deadline"
                continue
            try:
                layers.append(self._layer(rule, self._entries(rule)))
            except Exception as exc:  # noqa: BLE001 - memory must never break the agent, nor one layer the others
                self.skipped[rule.name] = self._problem(exc, rule.name)
        return layers

    def _entries(self, rule: LayerRule) -> list[Entry]:
        """Return what a layer may say at this trigger, best first."""
        if self.trigger.name == "session_start":
            return self._session_start.entries(rule.name, self._rank_recent)
        if self.trigger.name == "prompt":
            return self._prompt.get(rule.name, [])
        return self._compaction(rule) if self.trigger.name == "compaction" else self._answer(rule)

    def _layer(self, rule: LayerRule, entries: Sequence[Entry]) -> Layer:
        lines: list[Line] = []
        for entry in entries:
            memory = entry.ranked.memory if entry.ranked else None
            if memory is not None:
                reason = self._passed_over(memory) or self._outdated(entry)
                if reason:
                    self._reject(entry, rule.name, *reason)
                    continue
                if rule.name != "standing":  # where things stand and what a session was about are two things
                    self.taken.add(memory.id)
            elif self.since and entry.at <= self.since:
                self.older = True
                continue  # what is put together from several memories was shown when the window began
            group = memory.scope.partition(":")[0] if memory else ""
            # Of each scope that has its own share: one must not hide the others.
            if sum(each.group == group or not rule.groups for each in lines) >= rule.limit * 3 // 2:
                self._reject(entry, rule.name, "limit", f"this part shows at most {rule.limit}")
                continue
            there = tuple(file for file in entry.note.files if file_exists(self.trigger.project.root, file))
            text = render.line(entry.note._replace(files=there), form=self.form, layer=rule.name)
            lines.append(Line(text=text, ranked=entry.ranked, group=group))
        if rule.name == "index":
            lines = self._index(lines)
        return Layer(rule.name, tuple(lines), cap=rule.cap, limit=rule.limit, groups=rule.groups)

    def _index(self, lines: list[Line]) -> list[Line]:
        """Return the lines of an index, with titles as long as its first entries leave room for."""
        budget = (self.trigger.budget or self.options.layout.budget) * SHARE // 100
        ranked = [line.ranked for line in lines if line.ranked]
        for width in render.INDEX_TITLES:
            lines = [Line(render.compact(each, now=self.now, width=width, form=self.form), each) for each in ranked]
            first = Layer("index", tuple(lines[: render.INDEX_LEAST]), cap=budget)
            if self._count(self._render([first])) <= budget:
                break
        return lines

    def _passed_over(self, memory: Memory) -> tuple[str, str] | None:
        """Return why a memory is not shown here; None where it may be."""
        if memory.id in self.taken:
            return "limit", "it is shown in another part"
        if memory.id in self.known:
            self.repeated = True
            own = memory.session and memory.session == self.trigger.session
            return "shown", "it came up in this session itself" if own else "already shown in this context window"
        if max(memory.created, memory.confirmed) <= self.since:
            self.older = True
            return "older", "it was there when this context window began"
        doubt = _doubt(memory, CERTAIN)
        return ("unsure", doubt) if doubt else None

    def _outdated(self, entry: Entry) -> tuple[str, str] | None:
        """Return why a line is not true any more: a later turn spelled a name of it otherwise."""
        memory = entry.ranked.memory if entry.ranked else None
        if memory is None or memory.pinned or self.trigger.name == "question" or not self._respellings:
            return None
        since, names = max(memory.created, memory.confirmed), names_in(entry.note.text)
        found = [name for ended, old in self._respellings if ended > since for name in old if name in names]
        return ("outdated", f"`{found[0]}` was spelled otherwise since") if found else None

    @cached_property
    def _respellings(self) -> list[tuple[float, tuple[str, ...]]]:
        return [(turn.ended, turn.respelled) for turn in self._history if turn.respelled]

    @cached_property
    def _session_start(self) -> SessionStart:
        return SessionStart(self.trigger, now=self.now, recent=self._recent, about=self._about, history=self._history)

    @cached_property
    def _history(self) -> Sequence[TurnRecord]:
        if self.window.history is not None:
            return self.window.history()
        return [record_of(each) for each in self._recent(("turn",), OFFLINE_TURNS)]

    def _recent(self, kinds: tuple[str, ...], limit: int) -> list[Memory]:
        query = self.query._replace(terms=(), kinds=kinds, limit=limit, session="")
        return [hit.memory for hit in self.store.by_recency(query)]

    def _about(self, files: Collection[str], kinds: tuple[str, ...]) -> list[Memory]:
        """Return memories that name these files, those of the user first, then the newest."""
        query = self.query._replace(kinds=kinds, limit=POOL)
        hits = self.store.by_code(query, dict.fromkeys(files, 1.0)) if files else ()
        return sorted((hit.memory for hit in hits), key=lambda each: (each.trust != "user", -each.created))

    def _rank_recent(self, memories: Sequence[Memory]) -> Sequence[Ranked]:
        hits = [Hit(memory=each, source="recency", score=each.created) for each in memories]
        ranked = rank({"recency": hits}, query=self.query._replace(terms=()), now=self.now, trigger=self.trigger.name)
        return [each for each in ranked if each.score >= self.options.threshold]

    @cached_property
    def _prompt(self) -> dict[str, list[Entry]]:
        """Return the notes and files for a prompt; nothing where the running conversation explains it."""
        prompt = self.trigger.prompt
        plain = PLAIN.fullmatch(prompt) and not MACHINE_START.match(prompt.lstrip())
        author = Authorship("typed", prompt, "plain words") if plain else authorship_of(prompt)
        typed = relevance.subject_of(prompt, author.typed) if author.author == "mixed" else author.typed
        first, session_words = self.trigger.first, self.trigger.session_words
        kind = relevance.classify(prompt, typed=typed, author=author.author, first=first, session_words=session_words)
        with_notes = self.options.style == "notes"
        implied = [*self._pull_request(author.typed), *self._parallel_work(author.typed)] if with_notes else []
        if kind.kind not in KINDS_WITH_NOTES:
            files = self._files_without_notes(kind.kind, author.typed) if with_notes else []
            self.reason = "" if implied or files else _REASON_OF_KIND.get(kind.kind, "topic")
            return {"files": files, "notes": implied}
        if not self.query.terms:
            self.reason = "wordless"
            return {}
        ranked = self._search(NOTE_KINDS if with_notes else ())
        goals = self._goals()
        if not with_notes:
            self.needed = self._min_score(ranked)
            shown = [each for each in ranked if each.score >= self.needed]
            return {"index": [Entry(Note(text=each.memory.title), each) for each in (*goals, *shown)]}
        sure = self._without_unsure(ranked)
        if kind.kind == "past":
            return {"notes": [*implied, *self._answers_about_past(kind, typed, [*goals, *sure])]}
        open_goals = (Entry(note_of(each.memory, now=self.now), each) for each in goals)
        notes = [*implied, *open_goals, *self._notes(kind, typed, sure)]
        return {"files": self._changed_together(), "notes": notes}

    def _search(self, kinds: Sequence[str], limit: int = POOL, **more: Any) -> tuple[Ranked, ...]:
        query = self.query._replace(kinds=tuple(kinds), limit=limit, **more)
        name = self.trigger.name
        ranked, wrong = ranked_search(self.store, query, now=self.now, trigger=name, expired=self.expired)
        self.problems += wrong
        if wrong and not ranked:
            raise ForewordError("; ".join(wrong), hint="run `foreword doctor`")
        if query.terms:
            self.best = ranked[0] if ranked else None
        return ranked

    def _min_score(self, ranked: Sequence[Ranked]) -> float:
        return min_score(ranked[0].score if ranked else 0.0, threshold=self.options.threshold)

    def _without_unsure(self, ranked: Sequence[Ranked]) -> list[Ranked]:
        """Leave out what is not sure enough to come by itself, before it pushes out what is."""
        doubts = [(each, _doubt(each.memory, MIN_CONFIDENCE)) for each in ranked]
        for each, doubt in doubts:
            if doubt:
                self._reject(Entry(Note(text=each.memory.title), each), "notes", "unsure", doubt)
        return [each for each, doubt in doubts if not doubt]

    def _notes(self, kind: relevance.PromptKind, typed: str, ranked: Sequence[Ranked]) -> list[Entry]:
        """Return the notes that concern the very thing the prompt is about."""
        weights = self._weights(kind.topic, typed)
        nearest = sorted(ranked, key=lambda each: -_weight_of(each.memory, weights))[:CANDIDATES]
        entries = {each.memory.id: Entry(note_of(each.memory, now=self.now, weights=weights), each) for each in nearest}
        prompt_words = relevance.content_words(self.trigger.prompt)
        anchors = relevance.anchors_of(self.trigger.prompt, files=self.query.files, functions=self.query.functions)
        candidates = [
            self._candidate(each, weights=weights, prompt=prompt_words, anchors=anchors) for each in entries.values()
        ]
        choice = relevance.choose(weights, candidates, kind=kind)
        chosen = [self._with_files(entries[match.id], weights, typed) for match in choice.notes]
        short = "topic" if kind.kind == "same topic" else "below"
        self.reason = "" if chosen else short if entries else "nothing"
        for id, why in choice.rejected.items():
            if why != relevance.NO_WORD:
                self._reject(entries[id], "notes", "relevance", why)
        return chosen

    def _with_files(self, entry: Entry, weights: Mapping[str, float], typed: str) -> Entry:
        """Return a note that names first those of its files, or of its session's, that are called like a word."""
        memory = entry.ranked.memory if entry.ranked else None
        if memory is None or not memory.session:
            return entry
        session = dict.fromkeys(
            file for turn in self._history if turn.session == memory.session for file in turn.edited
        )
        called = (file for file in memory.files or session if relevance.is_titled(weights, text=typed, files=(file,)))
        there = [shown_path(file) for file in called if file_exists(self.trigger.project.root, file)]
        files = dict.fromkeys((*there[:MOST_CALLED], *entry.note.files))
        return entry._replace(note=entry.note._replace(files=tuple(files)[:MOST_FILES]))

    def _answers_about_past(self, kind: relevance.PromptKind, typed: str, ranked: Sequence[Ranked]) -> list[Entry]:
        """Return what answers a question about the past: the best hits, where the search is sure of them."""
        weights = self._weights(kind.topic, typed)
        self.needed = self._min_score(ranked)
        best = _best_share(ranked, weights)
        if sum(weight == relevance.UNKNOWN_WEIGHT for weight in weights.values()) >= UNKNOWN_WORDS:
            sure = best >= UNKNOWN_COVERAGE
        else:
            every = self._weights(sorted(relevance.content_words(typed)), typed)
            sure = best >= ANSWER_COVERAGE or _best_share(ranked, every) >= ANSWER_WORDS
            sure = sure or (bool(ranked) and ranked[0].score >= CLEAR_SCORE)
        found: list[Entry] = []
        for each in ranked:
            entry = Entry(answer_note(each.memory, now=self.now, weights=weights), each)
            # A turn says what its session says, in more words or fewer.
            session = each.memory.session
            earlier = [
                other.note for other in found if session and other.ranked and other.ranked.memory.session == session
            ]
            new = len(earlier) < min(
                len(unique_notes([*earlier, entry.note])), len(unique_notes([entry.note, *earlier]))
            )
            fits = each.why.get("named") or (sure and each.score >= self.needed and new)
            if fits and each.memory.trust != "user" and is_torn(entry.note.text):
                self._reject(entry, "notes", "relevance", "it begins with a pronoun for something that it does not say")
            elif fits:
                found.append(entry)
            else:
                below = f"its score is {each.score:.3f} of {self.needed:.3f}; the best note holds {best:.0%}"
                self._reject(entry, "notes", "threshold", below)
        self.reason = "" if found else "below"
        return found

    def _changed_together(self) -> list[Entry]:
        """Return the files that mostly change together with those that the prompt names."""
        named = self.query.files
        found = changed_together(named, self._history) if named else []
        return self._files_line(f"Changed together with {shown_path(named[0])}", found) if found else []

    def _files_without_notes(self, kind: relevance.Kind, typed: str) -> list[Entry]:
        """Return the tests that a plan leaves out, or the files that the last runs of a routine edited."""
        text, found = "Not in this plan, but changed together with its files", Often()
        if kind == "plan":
            found = missing_tests(self.query.files, self._history)
        elif kind == "routine" and " " in typed.strip():  # "commit" alone says nothing of what is edited
            text, found = "Edited when you asked for this before", files_of_routine(typed, self._history)
            found = [each for each in found if each[0] not in self.trigger.touched]
        prompt = self.trigger.prompt.lower()
        return self._files_line(text, [each for each in found if each[0].rpartition("/")[2].lower() not in prompt])

    def _files_line(self, text: str, found: Often) -> list[Entry]:
        """Return a line with the files that are still there, each with how often it was edited."""
        there = [each for each in found if file_exists(self.trigger.project.root, each[0])][:MOST_COMPANIONS]
        paths = ", ".join(f"{shown_path(path)} ({count} of {times} times)" for path, count, times in there)
        return [Entry(Note(text=f"{text}: {paths}", kind="change"))] if there else []

    def _weights(self, topic: Sequence[str], typed: str) -> dict[str, float]:
        """Return what each word of a prompt's topic weighs: the fewer memories hold it, the more.

        Of a long prompt only the first words count: what compares them takes time by the square of their number.
        """
        topic = topic[:MOST_WEIGHED]
        term_of = {root(term).strip(): term for term in terms(typed[:MOST_TYPED], limit=MOST_WEIGHED)}
        term_of |= {word: word.rpartition("-")[2].lstrip("#") for word in topic if relevance.is_reference(word)}
        counts, size = self.store.holders([term_of[word] for word in topic if word in term_of], self.query.scopes)
        holders = {word: counts[term_of[word]] for word in topic if word in term_of}
        return relevance.word_weights(topic, holders, max(1, size))

    def _candidate(
        self, entry: Entry, *, weights: Mapping[str, float], prompt: frozenset[str], anchors: relevance.Anchors
    ) -> relevance.Candidate:
        assert entry.ranked is not None
        memory, shown = entry.ranked.memory, relevance.content_words(entry.note.text)
        words = relevance.memory_words(_text_of(memory)) | shown
        own_prompt = memory.detail.get("user")  # a turn is about the issue that its prompt names
        subject = shown.union(relevance.references(f"{memory.title} {own_prompt}"))
        return relevance.Candidate(
            id=memory.id,
            at=memory.created,
            words=words,
            shown=shown,
            anchored=_is_written(memory) or relevance.is_anchored(anchors, files=memory.files, words=words),
            titled=relevance.is_titled(weights, text=f"{memory.title} {entry.note.text}", files=memory.files),
            same_thing=not anchors.references.isdisjoint(subject),
            substance=_has_substance(memory, shown, prompt)
            and (memory.trust == "user" or not is_torn(entry.note.text)),
            without_changes=memory.kind == "turn" and not (memory.files or memory.detail.get("commits")),
            in_context=bool(memory.session) and memory.session == self.trigger.session,
        )

    def _pull_request(self, typed: str) -> list[Entry]:
        """Return the pull request that a prompt means without naming it; none where this session spoke of one."""
        if not relevance.means_pull_request(typed) or any(word.startswith("#") for word in self.trigger.session_words):
            return []
        summaries = self._recent(("summary",), SESSIONS)
        own = next((each for each in summaries if each.session and each.session == self.trigger.session), None)
        if own is not None and own.detail.get("pull_request"):
            return []
        others = [each for each in summaries if each is not own]
        found = pull_request_note(others, project=self.trigger.project, now=self.now, within=PROGRESS_SECONDS)
        return [Entry(found[0]._replace(id=id_of(found[1])), Ranked(found[1], 1.0, {}))] if found else []

    def _parallel_work(self, typed: str) -> list[Entry]:
        """Return what other sessions at work have not committed, where a prompt commits or names a file of it."""
        found = []
        for since, files in self.trigger.parallel:
            uncommitted = self.trigger.changed  # by git, or else by what the sessions themselves did
            if uncommitted is None:
                recent = (each for each in self._recent(("summary",), SESSIONS) if each.created >= since)
                uncommitted = frozenset(file for each in recent for file in texts(each.detail, "uncommitted"))
            kept = [file for file in files if is_changed(file, uncommitted)]
            named = not self.trigger.first and any(is_named(file, self.query.files) for file in kept)
            if kept and (named or relevance.asks_to_commit(typed)):
                found.append((since, kept))
        return parallel_entries(found, now=self.now, what=" and has not committed")

    def _compaction(self, rule: LayerRule) -> list[Entry]:
        """Return what this session established, then earlier sessions."""
        own = rule.name == "session"
        if own and not self.trigger.session:
            return []
        session = self.trigger.session if own else ""
        ranked = self._search(rule.kinds, limit=max(30, rule.limit * 2), terms=(), session=session)
        notes = [(note_of(each.memory, now=self.now)._replace(id=""), each) for each in ranked]
        kept = unique_notes([note for note, _ in notes])  # a turn, its session and what was learned repeat it
        return [
            Entry(note, each)
            for note, each in notes
            if note in kept and (own or each.memory.session != self.trigger.session)
        ]

    def _answer(self, rule: LayerRule) -> list[Entry]:
        """Return what answers a question, in full text."""
        if not self.query.terms:
            self.reason = "wordless"
            return []
        ranked = self._search(rule.kinds, limit=max(POOL, rule.limit * 2))
        self.needed = self._min_score(ranked)
        weights = self._weights(sorted(relevance.content_words(self.trigger.prompt)), self.trigger.prompt)
        kept = []
        for each in (*self._goals(), *ranked):
            entry = Entry(answer_note(each.memory, now=self.now, weights=weights, requested=True), each)
            if each.score < self.needed and not each.why.get("named"):
                below = f"its score of {each.score:.3f} is below {self.needed:.3f}"
                self._reject(entry, rule.name, "threshold", below)
            else:
                kept.append(entry)
        return kept

    def _goals(self) -> list[Ranked]:
        """Return the best open goals where the words speak of goals, whatever words they are put in."""
        if GOAL_WORDS.isdisjoint(self.query.terms):
            return []
        goals = self._search(("goal",), GOALS, terms=())
        open_goals = [each for each in goals if each.memory.detail.get("status") != "done"]
        return [each._replace(why={**each.why, "named": 1.0}) for each in open_goals[:MOST_GOALS]]

    # -- fitting -------------------------------------------------------------------------------------------------
    def _fit(self, layers: Sequence[Layer], *, limit: int) -> Fitted:
        """Return the lines that fit, as one text."""
        try:
            return fit(layers, limit=limit, render=self._render, count=self._count, cap=self.options.cap)
        except Exception as exc:  # noqa: BLE001 - memory must never break the agent
            self._problem(exc, "block")
            return Fitted((), "", 0, {})

    def _render(self, layers: Sequence[Layer]) -> str:
        trigger = self.trigger
        return render.block(layers, trigger=trigger.name, project=trigger.project.name, form=trigger.form)

    def _count(self, text: str) -> int:
        return count(text, family=self.family)

    def _context(self, layers: Sequence[Layer], fitted: Fitted, budget: int) -> Context:
        items = tuple(
            Item(line.ranked.memory.id, layer.name, line.ranked.score, self._count(line.text), line.ranked.why)
            for layer in fitted.layers
            for line in layer.lines
            if line.ranked
        )
        shown = {item.memory for item in items}
        for layer in layers:
            for line in layer.lines:
                if line.ranked and line.ranked.memory.id not in shown:
                    needs = f"no room: it needs {self._count(line.text)} tokens"
                    self._reject(Entry(Note(text=line.text), line.ranked), layer.name, "room", needs)
        tokens = {layer.name: sum(self._count(line.text) for line in layer.lines) for layer in fitted.layers}
        return Context(fitted.text, fitted.tokens, budget, layers=tokens, items=items, **self._record())

    def _record(self) -> dict[str, Any]:
        """Return what every answer tells about how it came about."""
        return {
            "build_ms": (perf_counter() - self.started) * 1000,
            "skipped": self.skipped,
            "problems": tuple(self.problems),
            "terms": self.query.terms[:MOST_RECORDED],
            "files": self.query.files[:MOST_RECORDED],
            "rejected": tuple(sorted(self.rejected, key=lambda each: -each.ranked.score)[:MOST_REJECTED]),
        }

    # -- saying nothing ------------------------------------------------------------------------------------------
    def _why(self) -> str:
        reasons = (  # the first that applies
            ("late", set(self.skipped.values()) == {"deadline"}),
            ("failed", self.problems),
            ("room", "does not fit" in self.skipped.values()),
            ("repeated", self.repeated),
            (self.reason, self.reason),
            ("old", self.older),
            ("below", self.best and self.best.score < self.needed),
            ("unsure", self.best and any(each.reason == "unsure" for each in self.rejected)),
        )
        return next((reason for reason, applies in reasons if applies), "nothing")

    def _nothing(self, reason: str, *, budget: int = 0, spent: int = 0, allowed: int = 0) -> NoContext:
        numbers: dict[str, Any] = {"budget": budget, "spent": spent, "allowed": allowed, "needed": self.needed}
        return NoContext(reason, nearest=self.best, **numbers, **self._record())

    def _reject(self, entry: Entry, layer: str, reason: str, text: str) -> None:
        if entry.ranked is not None and len(self.rejected) < 4 * MOST_REJECTED:
            line = entry.note.text
            self.rejected.append(Rejected(entry.ranked, layer=layer, reason=reason, text=text, line=line))

    # -- going wrong ---------------------------------------------------------------------------------------------
    def _safely(self, read: Callable[[], T], otherwise: T) -> T:
        """Return what the store says of the window; where it cannot, repeating something is better than silence."""
        try:
            return read()
        except Exception as exc:  # noqa: BLE001
            self._problem(exc, "window")
            return otherwise

    def _problem(self, exc: Exception, where: str) -> str:
        """Note what failed, in a line for whoever must know; return it in a line for the record."""
        text = str(exc) if isinstance(exc, ForewordError) else f"{type(exc).__name__}: {exc}"
        hint = f"; {exc.hint}" if isinstance(exc, ForewordError) else ""
        if (problem := f"{where}: {text}{hint}") not in self.problems:
            self.problems.append(problem)
        return text


_REASON_OF_KIND = {"reply": "reply", "routine": "reply", "plan": "plan", "pasted": "plan", "machine": "machine"}


def explain_nothing(trigger: str, reason: str, *, budget: int = 0, spent: int = 0, allowed: int = 0) -> str:
    """Return the reason for no context as a sentence goes on behind "Nothing was injected: "."""
    if reason == "nothing" and trigger not in WORDED:
        return FIRST_START
    of = {"prompt": "prompts", "question": "questions", "tool": "hints"}.get(trigger, "session starts")
    so_far = f" ({spent:,} of {allowed:,} tokens)" if allowed else ""
    return REASONS.get(reason, "").format(of=of, so_far=so_far, budget=budget)


def requested_trigger(trigger: Trigger) -> Trigger:
    """Return the trigger that is answered: a question without words asks for what a session begins with."""
    asks_for_all = trigger.name == "question" and not trigger.prompt.strip()
    return trigger._replace(name="session_start", source=QUESTION) if asks_for_all else trigger


def injection_of(trigger: Trigger, got: Context | NoContext, *, id: str, at: float, away: bool = False) -> Injection:
    """Return the record of an answer; one without context holds the reason, and none of the prompt's words."""
    if isinstance(got, Context):
        names = ("tokens", "layers", "skipped", "items", "terms", "files", "text")
        result: dict[str, Any] = {name: getattr(got, name) for name in names}
    else:
        result = {"tokens": 0, "layers": EMPTY, "skipped": EMPTY, "items": (), "why": got.reason}
        result |= {"needed": got.needed, "spent": got.spent, "allowed": got.allowed}
        result |= {"nearest": got.nearest.memory.id, "score": got.nearest.score} if got.nearest else {}
    about = {name: getattr(trigger, name) for name in ("session", "host", "source", "form")}
    about |= {"trigger": trigger.name, "project": trigger.project.key}
    return Injection(id=id, at=at, budget=got.budget, build_ms=round(got.build_ms, 3), away=away, **about, **result)


def options_of(
    settings: Settings, trigger: str, *, synonyms: Synonyms, cap: Cap | None = None, offline: bool = False
) -> Options:
    """Return the settings of a recall at *trigger*."""
    name = "session_start" if trigger == "compaction" else trigger  # a compaction keeps what a start would show
    return Options(
        layout=settings.layout[trigger],
        threshold=getattr(settings, f"threshold_{name}"),
        synonyms=synonyms,
        family=settings.tokenizer,
        style=settings.prompt_style,
        cap=cap,
        offline=offline,
    )


def _text_of(memory: Memory) -> str:
    """Return everything that a memory holds in words."""
    return " ".join((memory.title, memory.body, *texts(memory.detail, "user"), *memory.files))


def _weight_of(memory: Memory, weights: Mapping[str, float]) -> float:
    words = relevance.memory_words(_text_of(memory))
    return sum(weight for word, weight in weights.items() if word in words)


def _best_share(ranked: Sequence[Ranked], weights: Mapping[str, float]) -> float:
    """Return the largest share of *weights* that a memory holds."""
    whole = sum(weights.values()) or 1.0
    return max((_weight_of(each.memory, weights) for each in ranked), default=0.0) / whole


def _has_substance(memory: Memory, shown: frozenset[str], prompt: frozenset[str]) -> bool:
    """Return whether a note says what came of something, and more than the prompt itself.

    A failure of one session is shown where it comes back.
    """
    if _is_written(memory):
        return True
    if memory.kind == "failure" and memory.trust != "user" and len(named(memory.detail, "seen_in")) < 2:
        return False
    if memory.kind == "turn" and not (memory.detail.get("outcome") or memory.detail.get("commits")):
        return False
    outcome = memory.body if memory.kind == "summary" else str(memory.detail.get("outcome", ""))
    if memory.kind in ("turn", "summary") and not memory.files and len(outcome) < SHORT_OUTCOME:
        return False
    return len(shown - prompt) >= MIN_NEW_WORDS * len(shown)


WRITTEN = ("decision", "pattern", "failure", "learning", "preference", "correction", "note")


def _is_written(memory: Memory) -> bool:
    """Return whether somebody wrote a memory on purpose; what extraction finds has a uid of its kind."""
    extracted = memory.uid.startswith(f"{memory.kind[:3]}:")
    return memory.kind in WRITTEN and memory.trust in ("user", "agent") and not extracted


def _doubt(memory: Memory, needed: float) -> str:
    """Return why a learning does not come by itself; nothing where it may."""
    sure = needed if memory.trust != "user" else CERTAIN
    if memory.kind != "learning" or memory.confidence >= sure:
        return ""
    return f"not sure enough: {memory.confidence:.2f}, and below {sure} it must be asked for"
