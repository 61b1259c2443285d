"""A delivery without a worker -> the spool, and what the host accepts as an answer, from SQLite read-only. Light."""

from __future__ import annotations

from time import monotonic, time

from foreword import trouble
from foreword.capture import capture, injection_id, moment_of
from foreword.errors import ForewordError
from foreword.hosts import cap_of, find
from foreword.jsontext import dumps, loads
from foreword.payloads import Delivery
from foreword.redact import redact
from foreword.spool import append, naming
from foreword.switches import off
from foreword.types import GOING_ON, TOOL_BEGIN, stands

try:
    import posix as system
except ImportError:  # not on Windows
    import os as system  # type: ignore[no-redef]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from foreword.capture import Captured
    from foreword.hook.pipe import Call
    from foreword.store.reading import Reader
    from foreword.types import Moment, Recalled, Skipped

_REGULAR = 0o10  # the kind of an ordinary file in st_mode
START_EVERY = 10.0  # seconds between two tries to start a worker: a crash loop makes six a minute at most


def answer(config: Mapping[str, Any], call: Call, *, until: float, why: str, values: Sequence[bytes] = ()) -> bytes:
    """Keep the event, build the context, start a worker: each failure costs only itself and leaves a trace."""
    delivery = Delivery(*call)
    config = {**config, "host": delivery.host}
    if why and not _is_starting(config["stamp"]):
        _note(config, "worker", why)
    spoken = b""
    if delivery.raw.strip():
        try:
            captured = capture(delivery, deny=config["deny"], hide=_hiding(values, delivery.raw))
        except Exception as exc:  # noqa: BLE001 - the hook's own rule: memory must never break the agent
            _note(config, "redact", f"{type(exc).__name__}: {exc}")
            return b""  # what cannot be redacted is neither kept nor looked at
        switched = off(captured.project, config)
        if not (switched.capture and switched.inject):
            allowed = {**config, "capture": not switched.capture, "inject": not switched.inject}
            spoken = _told(allowed, delivery, captured, until=until, asked=bool(why))
    try:
        start(config)
    except Exception as exc:  # noqa: BLE001
        _note(config, "start", f"{type(exc).__name__}: {exc}")
    return spoken


def _hiding(values: Sequence[bytes], raw: bytes) -> Callable[[str], str] | None:
    """What takes the values of secret variables out of a text; None where the payload holds none of them."""
    held: list[str] = []
    for value in sorted(values, key=len, reverse=True):
        text = value.decode("utf-8", "surrogateescape")
        escaped = dumps(text)[1:-1]
        if value in raw or escaped.encode() in raw:
            held += (text, escaped)
    if not held:
        return None

    def hidden(text: str) -> str:
        for each in held:
            text = text.replace(each, "[redacted:env]")
        return text

    return hidden


def _told(config: Mapping[str, Any], delivery: Delivery, captured: Captured, *, until: float, asked: bool) -> bytes:
    """The host's answer; the event is written before it is built, and what was given behind it, both synced at once."""
    spoken: list[bytes] = []

    def give() -> Delivery | None:
        if spoken:
            return None  # the spool tries again; there is one answer
        spoken.append(b"")
        try:
            spoken[0], record = context_for(config, delivery, captured, until=until, asked=asked)
        except Exception as exc:  # noqa: BLE001
            _note(config, "context", f"{type(exc).__name__}: {exc}")
            return None
        return record

    try:
        keep(config, delivery, captured, then=give)
    except Exception as exc:  # noqa: BLE001
        _note(config, "spool", f"{type(exc).__name__}: {exc}")
    give()  # where the spool failed before it came to that
    return spoken[0]


def keep(
    config: Mapping[str, Any], delivery: Delivery, captured: Captured, *, then: Callable[[], Delivery | None]
) -> None:
    """The event, redacted, in the spool, and what *then* brings behind it."""
    if not config["capture"] or captured.told.inner or captured.kind == TOOL_BEGIN:
        given = then()
        if given is not None:
            append(config["spool"], given, most=config["spool_most"])
        return
    kept = Delivery(
        host=redact(delivery.host),
        event=redact(delivery.event),
        at=delivery.at,
        raw=dumps(captured.payload).encode(),
        project=captured.project.key if captured.project else "",
    )
    append(config["spool"], kept, most=config["spool_most"], then=then)


def context_for(
    config: Mapping[str, Any], delivery: Delivery, captured: Captured, *, until: float, asked: bool
) -> tuple[bytes, Delivery | None]:
    """The host's answer, built from the database as it lies on the disk, and its record for the spool."""
    moment = moment_of(delivery, captured)
    if moment is None or not config["inject"] or monotonic() > until:
        return b"", None
    got = recalled(config, moment, now=time(), until=until)
    if got is None:
        return b"", None
    if isinstance(got, str):  # it stands in every request, and is recorded already
        return find(delivery.host).spoken(delivery.event, got), None
    from foreword.recall import injection_of
    from foreword.types import Recalled
    from foreword.values import fields

    text = got.text if isinstance(got, Recalled) else ""
    if not (text or asked):  # a silence is told where a worker was asked, which may have recorded what nobody saw
        return b"", None

    given = injection_of(moment, got, id=injection_id(delivery), at=delivery.at, away=True)
    told = {**fields(given), "items": [fields(item) for item in given.items]}
    record = Delivery(host=moment.host, event="given", at=delivery.at, raw=dumps(told).encode(), given=True)
    return find(delivery.host).spoken(delivery.event, text), record


def recalled(config: Mapping[str, Any], moment: Moment, *, now: float, until: float) -> Recalled | Skipped | str | None:
    """The recall of the package, over a read-only connection of the stdlib's SQLite; None where there is none yet."""
    from foreword.store.reading import Reader

    try:
        kind = system.stat(config["database"]).st_mode >> 12
    except FileNotFoundError:
        return None  # nothing was ever kept
    if kind != _REGULAR:
        raise ForewordError(f"{config['database']} is no file")  # opening a pipe would wait for ever
    sqlite = _sqlite()
    connection = _connect(sqlite, config["database"])
    try:
        return _recalled(config, moment, Reader(connection.execute, failures=(sqlite.Error,)), now=now, until=until)
    finally:
        connection.close()


def _recalled(
    config: Mapping[str, Any], moment: Moment, reader: Reader, *, now: float, until: float
) -> Recalled | Skipped | str:
    from foreword.recall import recall
    from foreword.recipes import RECIPES, merged
    from foreword.store.reading import SCHEMA
    from foreword.values import replace

    schema = reader.schema()
    if schema > SCHEMA:
        raise ForewordError(f"the database has schema {schema}, newer than this hook's {SCHEMA}")
    if schema == SCHEMA:  # an older one knows no aliases
        moment = replace(moment, project=reader.counts_as(moment.project))
    if moment.stable and schema == SCHEMA and (first := _standing(config, moment, reader)):
        return str(first["text"])
    window: list[tuple[frozenset[str], Mapping[str, int]]] = []

    def given() -> tuple[frozenset[str], Mapping[str, int]]:
        if not window:
            counted = moment.session and schema == SCHEMA  # an older one knows no ledger until a worker has been there
            window.append(_window(config, moment, reader) if counted else (frozenset(), {}))
        return window[0]

    recipes = merged(config["recipes"])[0] if config["recipes"] else RECIPES
    got = recall(
        reader,
        moment,
        recipe=recipes[moment.name],
        threshold=config["thresholds"][moment.name],
        now=now,
        shown=lambda: given()[0],
        spent=lambda: given()[1],
        begun=lambda: reader.begun(moment.session),
        synonyms={word: others for word, *others in map(str.split, config["synonyms"].splitlines())},
        expired=lambda: monotonic() > until,
        most_terms=config["most_terms"],
        postings=config["postings"],
        family=config["family"],
        cap=cap_of(moment.host, raised=config["caps"]),
        away=True,
    )
    for problem in got.problems:
        _note(config, "context", problem)
    return got


def _window(config: Mapping[str, Any], moment: Moment, reader: Reader) -> tuple[frozenset[str], Mapping[str, int]]:
    """The memories and tokens that the present window was given, as the store and what waits in the spool tell."""
    host = find(moment.host)
    shown, spent = set(reader.shown(moment.session)), dict(reader.spent(moment.session))
    for record in naming(config["spool"], moment.session):
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
            if host.form == "xml" and (first := _standing(config, moment, reader)):
                shown.update(item["memory"] for item in first["items"])
                spent["session_start"] = first["tokens"]
    return frozenset(shown), spent


def _standing(config: Mapping[str, Any], moment: Moment, reader: Reader) -> Mapping[str, Any] | None:
    """What every request of this session holds, as it was given first; None where nothing was."""
    from foreword.recall import injection_of
    from foreword.types import Skipped
    from foreword.values import fields, replace

    start = replace(moment, name="session_start", form="xml")
    first = reader.given(injection_of(start, Skipped(why=""), id="", at=0.0))
    if first is not None and first.text:
        return {**fields(first), "items": [fields(item) for item in first.items]}
    for record in naming(config["spool"], moment.session):
        told = loads(record.raw.decode()) if record.given else {}
        if told.get("session") == moment.session and told["text"] and stands(told["moment"], told["form"]):
            return told
    return None


def start(config: Mapping[str, Any]) -> None:
    """Start a worker, detached, unless somebody just did."""
    command = config["worker"]
    if not command or not _first_to_start(config["stamp"]):
        return
    anew = system.O_WRONLY | system.O_CREAT | system.O_TRUNC
    streams = [
        (system.POSIX_SPAWN_OPEN, 0, "/dev/null", system.O_RDONLY, 0),
        (system.POSIX_SPAWN_OPEN, 1, "/dev/null", system.O_WRONLY, 0),
        (system.POSIX_SPAWN_OPEN, 2, config["start_log"], anew, 0o600),
    ]
    # The agent's environment holds its tokens; a worker that lives for hours needs none of them.
    kept = (b"PATH", b"HOME", b"LANG", b"LC_ALL", b"TMPDIR", b"USER")
    environ = {
        name: text for name, text in system.environ.items() if name in kept or bytes(name).startswith(b"FOREWORD_")
    }
    environ[b"FOREWORD_HOME"] = config["home"].encode()
    try:
        system.posix_spawn(command[0], command, environ, file_actions=streams, setsid=True)
    except NotImplementedError:  # an old macOS
        system.posix_spawn(command[0], command, environ, file_actions=streams)


def _is_starting(stamp: str) -> bool:
    """Whether somebody started a worker a moment ago: one that is late then is no trouble."""
    try:
        return time() - system.stat(stamp).st_mtime < START_EVERY
    except OSError:
        return False


def _first_to_start(stamp: str) -> bool:
    """Whether nobody has started a worker for a while; of many hooks at once, one is first."""
    import fcntl

    fd = system.open(stamp, system.O_RDWR | system.O_CREAT | system.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        seen = system.fstat(fd)
        # A clock that jumped back must not keep the worker from starting.
        if seen.st_size and 0 <= time() - seen.st_mtime < START_EVERY:
            return False
        system.pwrite(fd, b"x", 0)
    except BlockingIOError:
        return False
    finally:
        system.close(fd)
    return True


def _sqlite() -> Any:
    """The stdlib's C module alone, without the `functools` it would import for a cache of statements: 9 ms become 2."""
    import sys

    stand_in = "functools" not in sys.modules
    if stand_in:
        functools: Any = type(sys)("functools")
        functools.lru_cache = lambda _size: _remembered
        sys.modules["functools"] = functools
    try:
        import _sqlite3
    finally:
        if stand_in:
            del sys.modules["functools"]
    return _sqlite3


def _remembered(prepare: Callable[[str], Any]) -> Callable[[str], Any]:
    """A cache for statements: a search asks the same of every word, and preparing it for each takes 0.5 ms in all."""
    prepared: dict[str, Any] = {}

    def get(sql: str) -> Any:
        if sql not in prepared:
            prepared[sql] = prepare(sql)
        return prepared[sql]

    return get


def _connect(sqlite: Any, path: str) -> Any:
    """Read-only; where not even the folder can be written to, the file is taken as nobody's but ours."""
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        connection = sqlite.connect(f"file:{_quoted(path)}?{mode}", uri=True, timeout=0.05)
        try:
            connection.execute("PRAGMA user_version").fetchone()
        except sqlite.OperationalError as exc:
            if "lock" in str(exc) or "busy" in str(exc):
                raise  # the file is not ours alone
            continue
        return connection
    raise ForewordError("the database cannot be opened for reading", hint="run `foreword doctor`")


def _quoted(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _note(config: Mapping[str, Any], where: str, what: str) -> None:
    where = f"hook of {config.get('host', 'unknown')}: {where}"
    trouble.note(config["trouble"], trouble.Trouble(at=time(), where=where, what=redact(what)))
