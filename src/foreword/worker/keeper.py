"""What the worker does, one function a route: a call in, an answer out. No HTTP here, and no SQL."""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from foreword import __version__, answers, spool
from foreword.capture import capture, moment_of
from foreword.config import load, load_synonyms
from foreword.distill import session_uid
from foreword.distill.fixes import elsewhere
from foreword.errors import BadRequest, ForewordError, NotFound, StoreError
from foreword.export import rows
from foreword.hook.build import fingerprint, key_of, refresh
from foreword.hosts import FILES, find
from foreword.install import wired
from foreword.jsontext import storable
from foreword.paths import Home
from foreword.payloads import Delivery
from foreword.rank import rank
from foreword.recall import meant
from foreword.redact import redact
from foreword.redact.environment import hiding
from foreword.remember import Read, read, remember
from foreword.resume import resume
from foreword.revise import said_again
from foreword.silences import of_hook
from foreword.store import Store
from foreword.store.scrub import Cleaner
from foreword.store.silences import Silence
from foreword.store.sqlite import SqliteStore
from foreword.switched import refuse_to_write
from foreword.switches import Off, chosen, off
from foreword.trouble import Trouble, note, noted
from foreword.types import (
    FORMS,
    GOING_ON,
    MOMENTS,
    TOOL_BEGIN,
    Event,
    Hit,
    Moment,
    Project,
    Query,
    Session,
    Skipped,
)
from foreword.values import fields
from foreword.web import Viewer
from foreword.worker import asked, reviewing
from foreword.worker.callers import Callers
from foreword.worker.distilling import Distilling
from foreword.worker.forgetting import Forgetting
from foreword.worker.goals import Goals
from foreword.worker.governing import Governing
from foreword.worker.graph import Graph
from foreword.worker.importing import Courtesy, Importing
from foreword.worker.logs import log_to
from foreword.worker.meaning import Meaning
from foreword.worker.measuring import Measuring
from foreword.worker.projects import Projects
from foreword.worker.pruning import Pruning
from foreword.worker.recalling import Recalling
from foreword.worker.refining import Refining
from foreword.worker.registry import Registry
from foreword.worker.scrub import scrub
from foreword.worker.tidying import Tidying, settle_choices
from foreword.worker.watch import Watching, untold
from foreword.worker.work import EVENTS, Work

log = logging.getLogger("foreword")

SPOOL_BATCH = 200  # deliveries in one commit when the spool is read
SOON = 256 * 1024  # bytes in the spool that a prompt waits for: some hooks' worth, a few milliseconds
MOST_CHANGES = 1000  # of a session, in its story
LATELY = 7  # days
SHOWN_IN = 50  # injections that a memory's explanation names
ECHO_SECONDS = 0.8  # a host starts both copies of a hook at once; a busy machine, some hundred milliseconds apart
MOST_ANSWERED = 256  # events that are kept in mind for so long
STATUS_LINE = "statusLine"  # what Claude calls it; hook/pipe.py knows the word too


class Keeper:
    """Owns the store and the settings of one home, for as long as the worker runs."""

    def __init__(
        self,
        home: Home,
        *,
        now: Callable[[], float] = time.time,
        choose: Callable[[str], str] = secrets.choice,
    ) -> None:
        self.home = home
        self.now = now
        self._choose = choose  # the characters of new ids
        self.started = now()
        self.asked = time.monotonic()
        self.counted: Counter[str] = Counter()
        day_ago = self.now() - 86_400
        self._told = {trouble.what for trouble in noted(str(home.trouble)) if trouble.at > day_ago}
        self._unsaid: dict[str, str] = {}
        self._build = fingerprint()
        self._draining = threading.Lock()
        self._answering = threading.Lock()
        self._answered: dict[str, float] = {}  # key of an event -> when it was told
        self._writing = ThreadPoolExecutor(8, thread_name_prefix="writing")
        self.registry = Registry(store=lambda: self.store, now=now)
        self._project = self.registry.at
        self.callers = Callers(store=lambda: self.store, project_of=self._project, now=now)
        self._work = Work(earlier=lambda id: self.store.events(id, limit=EVENTS, newest=True), tell=self.tell, now=now)
        self._store: SqliteStore | None = None
        self._broken = StoreError("the store is not open yet", hint="ask again")
        self._meaning = Meaning(tell=self.tell)
        self._refining = Refining(store=lambda: self.store, tell=self.tell)
        self._distilling = Distilling(
            store=lambda: self.store,
            project_of=self._project,
            tell=self.tell,
            refining=self._refining,
            now=now,
            deny=lambda: self.settings.deny_paths,
            counts_as=self.registry.key,
        )
        self._watching = Watching(
            store=lambda: self.store,
            settings=lambda: self.settings,
            project_of=self._project,
            hosts=self.wiring,
            tell=self.tell,
        )
        self.courtesy = Courtesy()
        self._measuring = Measuring(store=lambda: self.store, now=now)
        self.recalling = Recalling(
            store=lambda: self.store,
            settings=lambda: self.settings,
            synonyms=lambda: self._synonyms,
            meaning=self._meaning,
            work=self._work,
            measuring=self._measuring,
            hush=self._hush,
            tell=self.tell,
            now=now,
        )
        self._pruning = Pruning(
            store=lambda: self.store,
            settings=lambda: self.settings,
            courtesy=self.courtesy,
            tell=self.tell,
            asked=lambda: self.asked,
            now=now,
        )
        self._importing = Importing(
            store=lambda: self.store,
            settings=lambda: self.settings,
            courtesy=self.courtesy,
            tell=self.tell,
            registry=self.registry,
        )
        self.projects = Projects(
            store=lambda: self.store,
            registry=self.registry,
            settings=lambda: self.settings,
            alone=self._distilling.alone,
            importing=self._importing.busy,
            now=now,
        )
        self._forgetting = Forgetting(
            home=home,
            store=lambda: self.store,
            distilling=self._distilling,
            refining=self._refining,
            importing=lambda: self._importing,
            work=self._work,
            drain=self.drain,
            tell=self.tell,
            now=now,
        )
        self._tidying = Tidying(
            store=lambda: self.store,
            settings=lambda: self.settings,
            project_of=self._project,
            courtesy=self.courtesy,
            tell=self.tell,
            quiet=lambda: 0.0 if self._importing.busy() else time.monotonic() - self.asked,
            now=now,
        )
        self.governing = Governing(
            store=lambda: self.store,
            project_of=self._project,
            vectors_of=self._meaning.of_memories,
            refuse=self._refuse,
            now=now,
        )
        self.goals = Goals(store=lambda: self.store, registry=self.registry, refuse=self._refuse, now=now)
        self.graph = Graph(store=lambda: self.store, now=now)
        self.viewer = Viewer(self)
        self.reload()
        self._store = self._opened()
        self._forgetting.resume()
        self._importing.resume()

    # -- its own life -------------------------------------------------------------------------------------------
    def reload(self) -> None:
        """Read the settings again, and write the hook that goes with them."""
        self._settings_seen = self._stamps()
        self.loaded = load(self.home, os.environ)
        self.settings = self.loaded.settings
        log_to(self.home, self.settings)
        self._meaning.choose(self.settings, os.environ)
        self._refining.choose(self.settings, os.environ)
        self._synonyms, wrong = load_synonyms(self.home)
        for problem in (*self.loaded.problems, *wrong):
            self.tell("settings", problem)
        try:
            refresh(self.home, self.settings)
        except OSError as exc:
            self.tell("hook", f"hook.py cannot be written: {exc}")

    def _opened(self) -> SqliteStore | None:
        """The store; while it cannot be opened, every question is answered with the reason."""
        try:
            return SqliteStore(
                self.home.database,
                backups=self.home.backups,
                backups_keep=self.settings.backups_keep,
                choose=self._choose,
            )
        except StoreError as exc:
            self._broken = exc
            self.tell("store", f"{exc}; {exc.hint}")
            return None

    def tend(self) -> None:
        """What is done every second: changed settings, waiting deliveries, a store that may open again."""
        self.viewer.tend()
        if self._stamps() != self._settings_seen:
            self.reload()
        for what, where in tuple(self._unsaid.items()):
            self.tell(where, what)
        if self._store is not None and not self._store.is_there():
            self.tell("store", f"{self.home.database} was taken away or replaced; it was opened anew")
            gone, self._store = self._store, self._opened()
            gone.close()
        if self._store is None:
            self._store = self._opened()
        if self._store is not None:
            try:
                self.drain()
                spool.reserve(str(self.home.spool))
                self.registry.note()
            except (ForewordError, OSError) as exc:
                self.tell("spool", f"what hooks spooled waits: {exc}")
            for problem in self._store.problems():
                self.tell("store", problem)
            self._meaning.catch_up(self._store)
            self._distilling.look()
            self._watching.look()
            self._measuring.look()
            self._pruning.look()
            self._tidying.look()

    def upgraded(self) -> bool:
        """Whether the package on the disk is no longer the one that runs."""
        try:
            return fingerprint() != self._build
        except OSError:
            return False  # in the middle of an upgrade; the next look decides

    def idle(self) -> bool:
        quiet = time.monotonic() - self.asked > self.settings.worker_idle_minutes * 60
        aside = (self._importing, self._pruning, self._tidying, self.viewer)
        return quiet and not self._refining.busy and not any(each.busy() for each in aside)

    def tell(self, where: str, what: str) -> None:
        """Say what went wrong once, where `status` and `doctor` find it."""
        what = redact(what)
        if what in self._told:
            return
        if note(str(self.home.trouble), Trouble(at=self.now(), where=f"worker: {where}", what=what)):
            self._told.add(what)
            self._unsaid.pop(what, None)
            log.warning("%s: %s", where, what)
        else:
            self._unsaid[what] = where  # no room on the disk: it is told when there is

    def close(self) -> None:
        self.viewer.close()
        self._importing.close()
        self._pruning.close()
        self._tidying.close()
        self._meaning.close()
        self._distilling.close()
        self._watching.close()
        self._refining.close()
        self._work.close()
        self._writing.shutdown()
        self._measuring.close()
        if self._store is not None:
            self._store.close()

    @property
    def store(self) -> Store:
        if self._store is None:
            raise self._broken
        return self._store

    def _stamps(self) -> tuple[float, ...]:
        return tuple(path.stat().st_mtime if path.exists() else 0.0 for path in (self.home.config, self.home.synonyms))

    # -- remember -----------------------------------------------------------------------------------------------
    def hook(self, delivery: Delivery) -> bytes:
        """One call of a hook: keep what it told, and answer with the bytes its host accepts."""
        if delivery.event == STATUS_LINE:
            captured = capture(delivery, find_project=self._project)
            return str(self._line(captured.told.session, captured.project)["line"]).encode()
        self.counted["hooks"] += 1
        if not delivery.raw.strip():
            return b""
        told = self._read(delivery)
        moment = moment_of(delivery, told.captured)
        if moment is None or self.off(moment.project).inject:
            self._remember([told])
            return b""
        if not moment.stable and moment.source not in GOING_ON and self._is_echo(told.event):
            self._remember([told])
            return b""
        if moment.name == "session_start":
            self._distilling.settle(moment.project.key)
        writing = self._writing.submit(self._remember, [told])  # while it waits for the disk, we look
        try:
            self._catch_up()
            text = self.recalling.answer(moment, delivery, told.captured)
        finally:
            writing.result()
        return find(delivery.host).spoken(delivery.event, text)

    def _is_echo(self, event: Event) -> bool:
        """Whether the same was told just now: of hooks wired twice, by plugin and by settings, one is answered."""
        with self._answering:
            before = self._answered.pop(event.key, -ECHO_SECONDS)
            self._answered[event.key] = event.at
            while len(self._answered) > MOST_ANSWERED:
                del self._answered[next(iter(self._answered))]
        return abs(event.at - before) < ECHO_SECONDS

    def events(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Events from a plugin: `{host, event, payload, at?}`, or a list of them under `events`."""
        given = told.get("events", [told])
        if not isinstance(given, list) or not given:
            raise BadRequest("`events` must be a list with at least one event", hint="send {host, event, payload}")
        new = self._remember([self._read(asked.delivery(each)) for each in given])
        return {"stored": sum(new), "known": len(new) - sum(new)}

    def drain(self) -> None:
        """Take in what hooks spooled; a file goes only when all of it is in the store."""
        with self._draining:
            self._drain()

    def _drain(self) -> None:
        spool.take(str(self.home.spool), f"taken-{time.time_ns()}")
        for path in sorted(self.home.spool.glob("taken-*")):
            batch: list[Delivery] = []
            for record in spool.deliveries(path.read_bytes()):
                if isinstance(record, bytes):
                    self.tell("spool", f"{len(record)} bytes of a torn record were passed over in {path.name}")
                    continue
                batch.append(record)
                if len(batch) == SPOOL_BATCH:
                    self._take_in(batch)
                    batch = []
            self._take_in(batch)
            path.unlink()

    def _catch_up(self) -> None:
        """Take in at once the little that hooks spooled a moment ago: it tells what this window was given."""
        if not self._draining.acquire(timeout=self.settings.deadline_prompt_ms / 1000 / 3):
            return  # much is being taken in, and a prompt cannot wait for all of it
        try:
            if 0 < os.stat(self.home.spool / "current").st_size < SOON:
                self._drain()
        except FileNotFoundError:
            pass  # nothing waits
        except (ForewordError, OSError) as exc:
            self.tell("spool", f"what hooks spooled waits: {exc}")
        finally:
            self._draining.release()

    def _take_in(self, waiting: list[Delivery]) -> None:
        """Keep a batch; one delivery that cannot be understood must not keep the others waiting for ever."""
        try:
            told = [self._read(each) for each in waiting if not each.given]
            for given in [self.registry.own(asked.injection(each)) for each in waiting if each.given]:
                self.store.record(given, at_once=not any(each.wanted for each in told))  # else with the events
                if not given.tokens:
                    self._hush(Project(given.project, "", ""), of_hook(given))
            self.counted["spooled"] += sum(self._remember(told))
        except StoreError:
            raise  # the store's trouble, not theirs: they wait
        except Exception as exc:
            if len(waiting) > 1:
                for each in waiting:
                    self._take_in([each])
                return
            log.exception("a spooled delivery was set aside")
            self.tell("spool", f"a delivery was set aside in {self.home.spool / 'aside'}: {type(exc).__name__}: {exc}")
            (self.home.spool / "aside").mkdir(mode=0o700, exist_ok=True)
            spool.append(str(self.home.spool / "aside"), waiting[0], most=self.settings.spool_max_mb * 1024 * 1024)

    def _remember(self, told: Sequence[Read]) -> tuple[bool, ...]:
        """Keep what was told; what it came to is looked at afterwards, and nobody waits for that."""
        new = remember(self.store, told)
        for each, fresh in zip(told, new, strict=True):
            if fresh:
                self._distilling.saw(each.event.kind, each.event.session)
                self._watching.saw(each.event.kind, host=each.event.host, session=each.event.session)
        return new

    def _read(self, delivery: Delivery) -> Read:
        told = read(
            self.registry.own(delivery),
            text_cap=self.settings.event_text_kb * 1024,
            keep=lambda project: not self.off(project).capture,
            deny=self.settings.deny_paths,
            hide=hiding(delivery.hidden, key=key_of(self.home)) if delivery.hidden else None,
            find_project=self._project,
        )
        if told.captured.kind == TOOL_BEGIN:
            self.callers.saw(told.captured, host=delivery.host)
        if told.wanted:
            self._work.saw(told)
            self.registry.saw(told.captured.project)
        return told

    def off(self, project: Project | None) -> Off:
        """What is switched off in a project; of one that a hook named by its key alone, its root is looked for."""
        if project is not None and not project.name:
            with suppress(BadRequest):
                found = self._project(project.root)
                project = found if found.key == project.key else project
        return off(project, chosen(self.settings))

    def _hush(self, project: Project, silence: Silence) -> None:
        """Keep why nothing was said, where anything is captured."""
        if not self.off(project).capture:
            self._measuring.silent(silence)

    def _refuse(self, project: Project) -> None:
        refuse_to_write(self.off(project), project)

    def add(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Memories that somebody wrote: one, or a list under `memories`; redacted like everything else."""
        given = told.get("memories", [told])
        if not isinstance(given, list) or not given:
            raise BadRequest("`memories` must be a list with at least one memory", hint="send {kind, title, …}")
        memories = [asked.memory(each, find_project=self.registry.seen_at, now=self.now()) for each in given]
        for each in given:
            if path := each.get("project_path"):
                self._refuse(self._project(path))
        known = {memory.uid: memory for memory in self.store.by_uid([each.uid for each in memories if each.uid])}
        memories = [said_again(known.get(each.uid, each), each) for each in memories]
        kept = self.store.keep(memories, vectors=self._meaning.of_memories(memories))
        superseded = settle_choices(self.store, kept, at=self.now())
        return {"memories": [answers.memory(memory) for memory in kept], "superseded": superseded}

    def review(self, *, project_path: str = "", project: str = "", most: int | None = None) -> dict[str, Any]:
        """What waits for the user in a project, by folder or key, or in all, at most so many of each sort; how many."""
        key = project or (self._project(project_path).key if project_path else "")
        found = fields(reviewing.waiting(self.store, scope=f"project:{key}" if key else ""))
        told = {name: [answers.memory(each) for each in memories[:most]] for name, memories in found.items()}
        return {**told, "waiting": sum(map(len, found.values())), "becomes": list(reviewing.BECOMES)}

    def decide(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Do with one thing that waits what the user says, or with several."""
        if "ids" in told:
            return reviewing.decide_together(self.store, told, now=self.now())
        memory, entry = reviewing.decide(self.store, told, now=self.now())
        return {"memory": answers.memory(memory), "entry": entry.number}

    def import_(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Fill a project's memory aside from what lies on this machine; where it stands."""
        return {"import": self._importing.start(asked.wish(told))}

    def imports(self, *, project_path: str = "") -> dict[str, Any]:
        return self._importing.told(self._project(project_path).key if project_path else "")

    def export(
        self, *, part: str, project_path: str = "", everything: bool = False, after: int = 0, of: str = ""
    ) -> dict[str, Any]:
        """The next rows of an export, and the place to go on from."""
        project = None if everything else self._project(project_path)
        found, following = rows(self.store, part, project=project, after=after, of=of)
        return {"rows": found, "next": following, "project": project.key if project else ""}

    # -- recall -------------------------------------------------------------------------------------------------
    def context(
        self,
        *,
        project_path: str,
        session_id: str = "",
        moment: str = "",
        prompt: str = "",
        budget: int = 0,
        model: str = "",
        form: str = "",
        host: str = "",
        source: str = "",
        stable: bool = False,
        preview: bool = False,
    ) -> dict[str, Any]:
        """What is put in front of this moment, and what it costs; a preview is not recorded as given."""
        name = moment or ("prompt" if prompt else "session_start")
        if name not in MOMENTS:
            raise BadRequest(f"unknown moment {name!r}", hint=f"one of {', '.join(MOMENTS)}")
        if form and form not in FORMS:
            raise BadRequest(f"unknown form {form!r}", hint=f"one of {', '.join(FORMS)}")
        if host and host not in FILES:
            raise BadRequest(f"unknown host {host!r}", hint=f"one of {', '.join(FILES)}, or leave it out")
        if stable and not session_id:
            raise BadRequest("`stable` needs a `session_id`", hint="send the session that must see the same bytes")
        wanted = meant(
            Moment(
                name=name,
                project=self._project(project_path),
                session=redact(storable(session_id)),
                prompt=redact(storable(prompt)),  # its words are recorded
                host=host,
                source=redact(storable(source)),
                model=model,
                budget=budget,
                form=form or ("plain" if name == "compaction" else "markdown"),
                stable=stable,
            )
        )
        if by := self.off(wanted.project).inject:
            return answers.context(Skipped(why=f"injection is switched off ({by})", budget=budget), "")
        self._catch_up()
        if stable:
            return self.recalling.same(wanted, preview=preview)
        return answers.context(*self.recalling.recall(wanted, preview=preview))

    def question(
        self, prompt: str, *, project: Project, session: str, host: str, scope: str = "", kinds: Sequence[str] = ()
    ) -> dict[str, Any]:
        """What an agent that asks is given, in its window's ledger; *scope* and *kinds* narrow it."""
        wanted = meant(
            Moment(
                name="question",
                project=project,
                session=session,
                prompt=redact(storable(prompt)),
                host=host,
                scope=scope,
            )
        )
        if by := self.off(project).inject:
            return answers.context(Skipped(why=f"injection is switched off ({by})"), "")
        self._catch_up()
        if wanted.name == "session_start":
            self._distilling.settle(project.key)
        return answers.context(*self.recalling.recall(wanted, kinds=kinds))

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
        now = at or self.now()
        project = self._project(project_path)
        found = self.recalling.found(q, project=project, kinds=kinds, since=since, at=at, limit=limit, now=now)
        results = [
            answers.compact(each, now) if compact else {**answers.memory(each.memory), "score": each.score}
            for each in found.ranked
        ]
        if explain:
            results = [{**result, "why": dict(each.why)} for result, each in zip(results, found.ranked, strict=True)]
        return {"project": project.key, "results": results, "problems": list(found.problems)}

    def memory(self, id: str, *, explain: bool = False) -> dict[str, Any]:
        """All that is known of a memory; explained, with its factors and where it was shown, and not as fetched."""
        found = self.store.by_id([id])
        if not found:
            raise NotFound(f"there is no memory {id!r}", hint="`foreword search` finds ids")
        about = {"memory": answers.memory(found[0]), "links": [fields(link) for link in self.store.linked(id)]}
        if not explain:
            self.store.touch([id], how="get", at=self.now())
            return about
        # Without words all match: these are the factors that the memory brings along.
        (ranked,) = rank(
            {"recency": (Hit(memory=found[0], source="recency"),)},
            query=Query(scopes=(found[0].scope,)),
            now=self.now(),
            moment="session_start",
        )
        shown = [
            {
                **fields(item),
                "why": dict(item.why),
                "injection": each.id,
                "at": each.at,
                "moment": each.moment,
                "session": each.session,
                "host": each.host,
            }
            for each in self.store.injections(memory=id, limit=SHOWN_IN)
            for item in each.items
            if item.memory == id
        ]
        use = fields(self.store.use(memory=id))
        return {**about, "score": ranked.score, "why": dict(ranked.why), "use": use, "shown": shown}

    def resume(self, *, project_path: str, limit: int = 10) -> dict[str, Any]:
        """Where things stand in a project, for a person; nothing is recorded."""
        project = self._project(project_path)
        found = resume(self.store, project, now=self.now(), limit=limit)
        told = {name: [fields(point) for point in points] for name, points in fields(found).items()}
        return {"project": project.key, "name": project.name, **told}

    # -- what is known about itself -----------------------------------------------------------------------------
    def sessions(self, *, project_path: str = "", limit: int = 20) -> dict[str, Any]:
        project = self._project(project_path).key if project_path else ""
        return {"sessions": self.described(self.store.sessions(project, limit=limit))}

    def session(self, id: str) -> dict[str, Any]:
        """The whole story of one session: what it was about, what it came to, and what it was given."""
        found = self.settled(id)
        given = self.store.injections(session=found.id, limit=SHOWN_IN)
        came = self.store.of_session(found.id)
        others = self.store.sessions_with(elsewhere({found.id: came}))
        ended = {each.id: each.last for each in others}
        return {
            "session": self.described([found])[0],
            "memories": [answers.seen_by(found, memory, ended=ended) for memory in came],
            "changes": [
                fields(each) for each in self.store.changed(found.project, session=found.id, limit=MOST_CHANGES)
            ],
            "injections": [answers.injection(each, text=False) for each in given],
            "silences": self.silences(session_id=found.id, limit=SHOWN_IN)["silences"],
        }

    def described(self, sessions: Sequence[Session]) -> list[dict[str, Any]]:
        """Sessions with what each was about, where it is known."""
        uids = [session_uid("sum", project=each.project, session=each.id) for each in sessions]
        known = {(memory.uid, memory.scope): memory for memory in self.store.by_uid(uids)}
        told = []
        for session, uid in zip(sessions, uids, strict=True):
            found = known.get((uid, f"project:{session.project}"))
            about = {"title": found.title if found else "", "summary": found.id if found else ""}
            told.append({**fields(session), **about})
        return told

    def settled(self, id: str) -> Session:
        """A session, by its id or the beginning of it, after what it came to was waited for a moment."""
        found = self.store.session(id) or self.store.session_like(id)
        if found is None:
            raise NotFound(f"there is no session {id!r}", hint="`foreword sessions` lists them")
        self._distilling.settle(found.project)
        return self.store.session(found.id) or found  # as it stands now

    def injections(
        self, *, session_id: str = "", project_path: str = "", memory: str = "", limit: int = 20, text: bool = False
    ) -> dict[str, Any]:
        self._catch_up()  # with what hooks gave while there was no worker
        project = self._project(project_path).key if project_path else ""
        session = redact(storable(session_id))
        found = self.store.injections(session=session, project=project, memory=memory, limit=limit, texts=text)
        return {"injections": [answers.injection(each, text=text) for each in found]}

    def silences(self, *, session_id: str = "", project_path: str = "", limit: int = 20) -> dict[str, Any]:
        """The moments at which nothing was said, newest first, each with the reason."""
        self._catch_up()
        self._measuring.look()  # with those of the last second
        project = self._project(project_path).key if project_path else ""
        found = self.store.silences(session=redact(storable(session_id)), project=project, limit=limit)
        return {"silences": self._silences(found)}

    def _silences(self, found: Sequence[Silence]) -> list[dict[str, Any]]:
        known = {memory.id: memory for memory in self.store.by_id([each.nearest for each in found if each.nearest])}
        return [answers.silence(each, known) for each in found]

    def line(self, *, session_id: str = "", project_path: str = "") -> dict[str, Any]:
        """What a session was given, in a line for people; without an id, the last session of the project."""
        project = self._project(project_path) if project_path else None
        session = redact(storable(session_id))
        if not session and project:
            found = self.store.sessions(project.key, limit=1)
            session = found[0].id if found else ""
        return self._line(session, project)

    def _line(self, session: str, project: Project | None) -> dict[str, Any]:
        items, tokens = self.store.given_in_all(session) if session else (0, 0)
        said = f"{items} item{'' if items == 1 else 's'}, {tokens:,} tokens" if tokens else "quiet"
        if (switched := self.off(project)).inject:
            said = "off" if switched.capture else "silent"
        return {"line": f"foreword: {said}", "items": items, "tokens": tokens, "session": session}

    def injection(self, id: str) -> dict[str, Any]:
        self._catch_up()
        found = self.store.injection(id)
        if found is None:
            self._measuring.look()
            if silent := self._silences(self.store.silences(id=id)):
                return {"silence": silent[0]}
            raise NotFound(f"there is no injection {id!r}", hint="`foreword explain` tells the last one")
        titles = {memory.id: memory.title for memory in self.store.by_id([item.memory for item in found.items])}
        told = answers.injection(found, text=True)
        told["items"] = [{**item, "title": titles.get(item["memory"], "")} for item in told["items"]]
        return {"injection": told}

    def use(self, *, project_path: str = "", days: int = 0) -> dict[str, Any]:
        """How many items a project was given lately, and how many of them were used."""
        self._catch_up()
        project = self._project(project_path).key if project_path else ""
        days = days or LATELY
        found = self.store.use(project=project, since=self.now() - days * 86_400)
        return {"project": project, "days": days, **fields(found)}

    def hosts(self) -> dict[str, Any]:
        """What was seen of each host that ever told something, and which of its sessions went on untold."""
        self._catch_up()
        return {"hosts": {each.host: answers.host(each, untold(self.store, each.host)) for each in self.store.seen()}}

    def wiring(self) -> Mapping[str, wired.Wired]:
        """Of every host that can be wired, how much of that stands in its files."""
        return wired.look(self.home, os.environ)

    def health(self) -> dict[str, Any]:
        """Whether it is well, and what is in it; asked of a worker whose store is broken, it tells that."""
        about: dict[str, Any] = {
            "version": __version__,
            "build": self._build,
            "pid": os.getpid(),
            "home": str(self.home.root),
            "uptime_s": round(max(0.0, self.now() - self.started), 1),  # a clock may be set back
            "ok": self._store is not None and not self._store.problems(),
            "mcp": self.callers.counts(),
        }
        if self._store is None:
            return {**about, "problems": [f"{self._broken}; {self._broken.hint}"], "counts": {}, "database_bytes": None}
        held = {"counts": dict(self._store.counts()), "database_bytes": self._store.size().total}
        return {**about, "problems": list(self._store.problems()), **held}

    def stats(self, *, project_path: str = "", project_key: str = "", days: int = 30) -> dict[str, Any]:
        """What was given, what came of it and what it cost; without a path or key, of all projects. Only counts."""
        named = self.registry.counted(Project(project_key, "", ""))
        project = self._project(project_path) if project_path else named
        return self._measuring.stats(project=project.key, name=project.name, days=days)

    def metrics(self, *, project_path: str = "") -> str:
        """Prometheus text; without a path, of all projects and without a name of any."""
        project = self._project(project_path).key if project_path else ""
        most = self.settings.store_max_mb * 1024 * 1024
        return self._measuring.metrics(project=project, most_bytes=most, since_start=self.counted)

    def model(self, *, ledger: int = 0) -> dict[str, Any]:
        told = {"ledger": self._refining.spendings(limit=ledger)} if ledger else {}
        return {**self._refining.about(), **told}

    def try_model(self) -> dict[str, Any]:
        return self._refining.attempt()

    def index(self) -> dict[str, Any]:
        return {"indexed": self.store.index()}

    def prune(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """What is old or too much: shown, or a second's work of removing it; ask again until it is `done`."""
        return self._pruning.preview() if told.get("dry_run") else self._pruning.work(who="user")

    def tidy(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Merge, supersede and sink in a project or in all of them; with `dry_run`, tell what would be done."""
        self.drain()
        folder = str(told.get("project_path") or "")
        projects = self._tidying.projects() if told.get("all") else (self._project(folder),)
        return self._tidying.run(projects, dry_run=bool(told.get("dry_run")))

    def tidying(self) -> dict[str, Any]:
        return self._tidying.told()

    def scrub(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Take out of what is stored what is now known to be secret, a second's work; with `after` it goes on there."""
        if not told.get("after"):
            self.drain()
        cleaner = Cleaner(
            deny=self.settings.deny_paths,
            hide=hiding(str(told.get("hidden") or ""), key=key_of(self.home)) or str,
        )
        dry_run = bool(told.get("dry_run"))
        answer = scrub(self.store, self.home, cleaner=cleaner, after=told.get("after") or (), dry_run=dry_run)
        if not dry_run:
            log_to(self.home, self.settings)  # the log may be another file now
        return answer

    def forget(self, told: Mapping[str, Any], *, who: str = "user") -> dict[str, Any]:
        """Remove something for good, and prove it; or only tell what would go."""
        self._measuring.look()  # what is to be written with the next commit may name it
        return self._forgetting.asked(told, who=who)
