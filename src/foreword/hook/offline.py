"""Serve a hook call without a worker: spool the event, answer from SQLite read-only, start a worker for the next event.

Ordinary Python, but the standard library alone: the client runs with `-I -S`, so no site-packages are on the path.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from foreword import spool, switches, trouble
from foreword.capture import Captured, capture, injection_id, moment_of
from foreword.config import Settings, load, load_synonyms
from foreword.encoding import dumps, loads
from foreword.errors import ForewordError
from foreword.hosts import cap_of, find
from foreword.paths import Home
from foreword.payloads import Delivery
from foreword.recall import caps, injection_of, recall, thresholds
from foreword.redact import redact
from foreword.store.reading import SCHEMA, Reader
from foreword.types import GOING_ON, TOOL_BEGIN, Moment, Recalled, Skipped, stands

if TYPE_CHECKING:
    import sqlite3

START_EVERY = 10.0  # seconds between two tries to start a worker: a crash loop makes six a minute at most
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER")  # of the agent's environment, for the worker


@dataclass(frozen=True)
class Offline:
    """What one call of a hook knows: where things are, the settings, and how a worker is started."""

    home: Home
    settings: Settings
    worker: list[str]
    host: str

    def log(self, where: str, exc: object) -> None:
        """Append a swallowed failure to the log that `doctor` reads."""
        what = f"{type(exc).__name__}: {exc}" if isinstance(exc, Exception) else str(exc)
        where = f"hook of {self.host}: {where}"
        trouble.note(str(self.home.trouble), trouble.Trouble(at=time.time(), where=where, what=redact(what)))


def answer(
    config: Mapping[str, Any],
    call: tuple[str, str, float, bytes, int, int],
    *,
    until: float,
    why: str,
    secrets: Sequence[bytes] = (),
) -> bytes:
    """Keep the event, build the context, start a worker: each failure costs only itself and is logged."""
    delivery = Delivery(*call)
    home = Home(Path(config["home"]))
    settings = load(home, os.environ).settings
    here = Offline(home=home, settings=settings, worker=config["worker"], host=delivery.host)
    if why and not _just_started(home.stamp):
        here.log("worker", why)
    reply = b""
    if delivery.raw.strip():
        try:
            captured = capture(delivery, deny=settings.deny_paths, hide=_hider(secrets, delivery.raw))
        except Exception as exc:  # noqa: BLE001 - the hook's own rule: memory must never break the agent
            here.log("redact", exc)
            return b""  # what cannot be redacted is neither kept nor looked at
        off = switches.off(captured.project, switches.chosen(settings))
        if not (off.capture and off.inject):
            reply = _reply(here, delivery, captured, off=off, until=until, worker_asked=bool(why))
    try:
        start_worker(home, here.worker)
    except Exception as exc:  # noqa: BLE001
        here.log("start", exc)
    return reply


def _hider(secrets: Sequence[bytes], raw: bytes) -> Callable[[str], str] | None:
    """Return what takes the values of secret variables out of a text; None where the payload holds none of them."""
    held: list[str] = []
    for value in sorted(secrets, key=len, reverse=True):
        text = value.decode("utf-8", "surrogateescape")
        escaped = dumps(text)[1:-1]
        if value in raw or escaped.encode() in raw:
            held += (text, escaped)
    if not held:
        return None

    def hide(text: str) -> str:
        for each in held:
            text = text.replace(each, "[redacted:env]")
        return text

    return hide


def _reply(
    here: Offline, delivery: Delivery, captured: Captured, *, off: switches.Off, until: float, worker_asked: bool
) -> bytes:
    """Return the agent's answer; the event is written before it is built, its record behind it, both synced at once."""
    replies: list[bytes] = []

    def build() -> Delivery | None:
        if replies:
            return None  # the spool tries again; there is one answer
        replies.append(b"")
        try:
            if not off.inject:
                replies[0], record = context_for(here, delivery, captured, until=until, worker_asked=worker_asked)
                return record
        except Exception as exc:  # noqa: BLE001
            here.log("context", exc)
        return None

    try:
        keep(here, delivery, captured, wanted=not off.capture, then=build)
    except Exception as exc:  # noqa: BLE001
        here.log("spool", exc)
    build()  # where the spool failed before it came to that
    return replies[0]


def keep(
    here: Offline, delivery: Delivery, captured: Captured, *, wanted: bool, then: Callable[[], Delivery | None]
) -> None:
    """Append the redacted event to the spool, and what *then* returns behind it."""
    folder, most = str(here.home.spool), here.settings.spool_max_mb * 1024 * 1024
    if not wanted or captured.told.inner or captured.kind == TOOL_BEGIN:
        record = then()
        if record is not None:
            spool.append(folder, record, most=most)
        return
    kept = Delivery(
        host=redact(delivery.host),
        event=redact(delivery.event),
        at=delivery.at,
        raw=dumps(captured.payload).encode(),
        project=captured.project.key if captured.project else "",
    )
    spool.append(folder, kept, most=most, then=then)


def context_for(
    here: Offline, delivery: Delivery, captured: Captured, *, until: float, worker_asked: bool
) -> tuple[bytes, Delivery | None]:
    """Return the agent's answer, built from the database as it lies on the disk, and its record for the spool."""
    moment = moment_of(delivery, captured)
    if moment is None or time.monotonic() > until:
        return b"", None
    found = recalled(here, moment, now=time.time(), until=until)
    if found is None:
        return b"", None
    if isinstance(found, str):  # it stands in every request, and is recorded already
        return find(delivery.host).spoken(delivery.event, found), None
    text = found.text if isinstance(found, Recalled) else ""
    if not (text or worker_asked):  # a worker that was asked may have recorded what nobody saw: then say so
        return b"", None
    injection = injection_of(moment, found, id=injection_id(delivery), at=delivery.at, away=True)
    fields = {**vars(injection), "items": [vars(item) for item in injection.items]}
    record = Delivery(host=moment.host, event="given", at=delivery.at, raw=dumps(fields).encode(), given=True)
    return find(delivery.host).spoken(delivery.event, text), record


def recalled(here: Offline, moment: Moment, *, now: float, until: float) -> Recalled | Skipped | str | None:
    """Run the recall pipeline over a read-only connection; None where there is no database yet."""
    import sqlite3  # not every interpreter has it, and the event must be spooled all the same

    database = here.home.database
    try:
        mode = database.stat().st_mode
    except FileNotFoundError:
        return None  # nothing was ever kept
    if not stat.S_ISREG(mode):
        raise ForewordError(f"{database} is no file")  # opening a pipe would wait for ever
    connection = _connect(database)
    try:
        return _recall(here, moment, Reader(connection.execute, failures=(sqlite3.Error,)), now=now, until=until)
    finally:
        connection.close()


def _recall(here: Offline, moment: Moment, reader: Reader, *, now: float, until: float) -> Recalled | Skipped | str:
    schema = reader.schema()
    if schema > SCHEMA:
        raise ForewordError(f"the database has schema {schema}, newer than this hook's {SCHEMA}")
    if schema == SCHEMA:  # an older one knows no aliases
        moment = replace(moment, project=reader.counts_as(moment.project))
    if moment.stable and schema == SCHEMA and (first := _standing(here, moment, reader)):
        return str(first["text"])

    @cache
    def window() -> tuple[frozenset[str], Mapping[str, int]]:
        counted = moment.session and schema == SCHEMA  # an older one knows no ledger until a worker has been there
        return _window(here, moment, reader) if counted else (frozenset(), {})

    settings = here.settings
    found = recall(
        reader,
        moment,
        recipe=settings.recipes[moment.name],
        threshold=thresholds(settings)[moment.name],
        now=now,
        shown=lambda: window()[0],
        spent=lambda: window()[1],
        begun=lambda: reader.begun(moment.session),
        synonyms=load_synonyms(here.home)[0],
        expired=lambda: time.monotonic() > until,
        most_terms=settings.terms_max,
        postings=settings.postings_budget,
        family=settings.tokenizer,
        cap=cap_of(moment.host, raised=caps(settings)),
        away=True,
    )
    for problem in found.problems:
        here.log("context", problem)
    return found


def _window(here: Offline, moment: Moment, reader: Reader) -> tuple[frozenset[str], Mapping[str, int]]:
    """Return the memories and tokens that the present window was given, as the store and the spool tell."""
    host = find(moment.host)
    shown, spent = set(reader.shown(moment.session)), dict(reader.spent(moment.session))
    for record in spool.naming(str(here.home.spool), moment.session):
        if record.host != moment.host:
            continue
        kind = "given" if record.given else host.events.get(record.event)
        if kind not in ("given", "session_start", "compaction"):
            continue
        payload = loads(record.raw.decode())
        told = host.read(payload)
        if kind == "given" and payload["session"] == moment.session:
            shown.update(item["memory"] for item in payload["items"])
            spent[payload["moment"]] = spent.get(payload["moment"], 0) + payload["tokens"]
        elif kind != "given" and told.session == moment.session and told.source not in GOING_ON:
            shown, spent = set(), {}
            if host.form == "xml" and (first := _standing(here, moment, reader)):
                shown.update(item["memory"] for item in first["items"])
                spent["session_start"] = first["tokens"]
    return frozenset(shown), spent


def _standing(here: Offline, moment: Moment, reader: Reader) -> Mapping[str, Any] | None:
    """Return what every request of this session holds, as it was given first; None where nothing was."""
    start = replace(moment, name="session_start", form="xml")
    first = reader.given(injection_of(start, Skipped(why=""), id="", at=0.0))
    if first is not None and first.text:
        return {**vars(first), "items": [vars(item) for item in first.items]}
    for record in spool.naming(str(here.home.spool), moment.session):
        told = loads(record.raw.decode()) if record.given else {}
        if told.get("session") == moment.session and told["text"] and stands(told["moment"], told["form"]):
            return dict(told)
    return None


def start_worker(home: Home, command: list[str]) -> None:
    """Start a worker, detached, unless somebody just did; nobody waits for it."""
    if not command or not _may_start(home.stamp):
        return
    streams = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, str(home.start_log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
    ]
    # The agent's environment holds its tokens; a worker that lives for hours needs none of them.
    environ = {
        name: text for name, text in os.environ.items() if name in KEPT_VARIABLES or name.startswith("FOREWORD_")
    }
    environ["FOREWORD_HOME"] = str(home.root)
    try:
        os.posix_spawn(command[0], command, environ, file_actions=streams, setsid=True)
    except NotImplementedError:  # an old macOS
        os.posix_spawn(command[0], command, environ, file_actions=streams)


def _just_started(stamp: Path) -> bool:
    """Tell whether somebody started a worker a moment ago: one that is late then is no problem."""
    try:
        return time.time() - stamp.stat().st_mtime < START_EVERY
    except OSError:
        return False


def _may_start(stamp: Path) -> bool:
    """Tell whether nobody has started a worker for a while; of many hooks at once, one is first."""
    import fcntl  # not on Windows

    fd = os.open(stamp, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        seen = os.fstat(fd)
        # A clock that jumped back must not keep the worker from starting.
        if seen.st_size and 0 <= time.time() - seen.st_mtime < START_EVERY:
            return False
        os.pwrite(fd, b"x", 0)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def _connect(path: Path) -> sqlite3.Connection:
    """Open read-only; where not even the folder can be written to, the file is taken as nobody's but ours."""
    import sqlite3

    for mode in ("mode=ro", "mode=ro&immutable=1"):
        connection = sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True, timeout=0.05)
        try:
            connection.execute("PRAGMA user_version").fetchone()
        except sqlite3.OperationalError as exc:
            connection.close()
            if "lock" in str(exc) or "busy" in str(exc):
                raise  # the file is not ours alone
            continue
        return connection
    raise ForewordError("the database cannot be opened for reading", hint="run `foreword doctor`")
