"""Build the context of a hook call without a worker, from the database opened read-only.

Ordinary Python, but the standard library alone: the hook runs without site-packages.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreword.agents import find
from foreword.capture.parse import injection_id
from foreword.capture.payload import HookCall
from foreword.config import load_synonyms
from foreword.encoding import dumps, loads
from foreword.errors import ForewordError
from foreword.hook import spool
from foreword.hook.offline import Offline
from foreword.models import CONTINUING_SOURCES, Context, NoContext, Trigger, is_resent
from foreword.recall.pipeline import Window, injection_of, options_of, recall
from foreword.store import SCHEMA, StoreReader
from foreword.store.projects import counts_as

if TYPE_CHECKING:
    import sqlite3


def context_for(
    here: Offline, hook_call: HookCall, trigger: Trigger, *, until: float, worker_tried: bool
) -> tuple[bytes, HookCall | None]:
    """Return the agent's answer, built from the database as it lies on the disk, and its record for the spool."""
    found = recalled(here, trigger, now=time.time(), until=until)
    if found is None:
        return b"", None
    if isinstance(found, str):  # it is in every request, and recorded already
        return find(hook_call.host).encode_answer(hook_call.event, found), None
    text = found.text if isinstance(found, Context) else ""
    if not (text or worker_tried):  # a worker that was asked may have recorded what nobody saw: then say so
        return b"", None
    injection = injection_of(trigger, found, id=injection_id(hook_call), at=hook_call.at, away=True)
    fields = {**vars(injection), "items": [vars(item) for item in injection.items]}
    record = HookCall(host=trigger.host, event="injection", at=hook_call.at, raw=dumps(fields).encode(), injection=True)
    return find(hook_call.host).encode_answer(hook_call.event, text), record


def recalled(here: Offline, trigger: Trigger, *, now: float, until: float) -> Context | NoContext | str | None:
    """Run the recall pipeline over a read-only connection; None where there is no database of today yet."""
    import sqlite3  # not every interpreter has it, and the event must be spooled all the same

    database = here.home.database
    try:
        mode = database.stat().st_mode
    except FileNotFoundError:
        return None  # nothing was ever kept
    if not stat.S_ISREG(mode):
        raise ForewordError(f"{database} is no file")  # opening a pipe would wait for ever
    with closing(_connect(database)) as connection:
        return _recall(here, trigger, StoreReader(connection.execute, failures=(sqlite3.Error,)), now=now, until=until)


def _recall(
    here: Offline, trigger: Trigger, reader: StoreReader, *, now: float, until: float
) -> Context | NoContext | str | None:
    schema = reader.schema()
    if schema > SCHEMA:
        raise ForewordError(f"the database has schema {schema}, newer than this hook's {SCHEMA}")
    if schema < SCHEMA:
        return None  # the worker that was just started brings it up to date
    known, project = reader.projects.all(), trigger.project
    key = counts_as(project.key, known)
    name = known[key].name if key in known else ""
    trigger = trigger._replace(project=replace(project, key=key, name=name or project.name))
    if trigger.stable and (first := _resent_block(here, trigger, reader)):
        return str(first["text"])

    @cache
    def window() -> tuple[frozenset[str], Mapping[str, int]]:
        return _window(here, trigger, reader) if trigger.session else (frozenset(), {})

    settings = here.settings
    cap = find(trigger.host).cap if trigger.host else None
    found = recall(
        reader.search,
        trigger,
        options=options_of(settings, trigger.name, synonyms=load_synonyms(here.home)[0], cap=cap, offline=True),
        now=now,
        window=Window(
            shown=lambda: window()[0],
            spent=lambda: window()[1],
            began=lambda: reader.injections.last_start_at(trigger.session),
        ),
        expired=lambda: time.monotonic() > until,
    )
    for problem in found.problems:
        here.log("context", problem)
    return found


def _window(here: Offline, trigger: Trigger, reader: StoreReader) -> tuple[frozenset[str], Mapping[str, int]]:
    """Return the memories and tokens that are in the present window, as the store and the spool record."""
    adapter = find(trigger.host)
    shown, spent = set(reader.injections.shown(trigger.session)), dict(reader.injections.window_tokens(trigger.session))
    for record in spool.naming(here.config["spool"], trigger.session):
        if record.host != trigger.host:
            continue
        kind = "injection" if record.injection else adapter.events.get(record.event)
        if kind not in ("injection", "session_start", "compaction"):
            continue
        payload = loads(record.raw.decode())
        read = adapter.parse(payload)
        if kind == "injection" and payload["session"] == trigger.session:
            shown.update(item["memory"] for item in payload["items"])
            spent[payload["trigger"]] = spent.get(payload["trigger"], 0) + payload["tokens"]
        elif kind != "injection" and read.session == trigger.session and read.source not in CONTINUING_SOURCES:
            shown, spent = set(), {}
            if adapter.form == "xml" and (first := _resent_block(here, trigger, reader)):
                shown.update(item["memory"] for item in first["items"])
                spent["session_start"] = first["tokens"]
    return frozenset(shown), spent


def _resent_block(here: Offline, trigger: Trigger, reader: StoreReader) -> Mapping[str, Any] | None:
    """Return the block that the agent sends again with every request of this session; None where there is none."""
    first = reader.injections.first_start(trigger.session, project=trigger.project.key, form="xml")
    if first is not None and first.text:
        return {**vars(first), "items": [vars(item) for item in first.items]}
    for record in spool.naming(here.config["spool"], trigger.session):
        injection = loads(record.raw.decode()) if record.injection else {}
        if injection.get("session") != trigger.session or not injection["text"]:
            continue
        if is_resent(injection["trigger"], injection["form"]):
            return dict(injection)
    return None


def _connect(path: Path) -> sqlite3.Connection:
    """Open read-only; where not even the folder can be written to, the file is taken as nobody's but ours."""
    import sqlite3

    quoted = str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")  # `urllib.parse` would take 3 ms
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        connection = sqlite3.connect(f"file:{quoted}?{mode}", uri=True, timeout=0.05)
        try:
            connection.execute("PRAGMA user_version").fetchone()
        except sqlite3.OperationalError as exc:
            connection.close()
            if "lock" in str(exc) or "busy" in str(exc):
                raise  # the file is not ours alone
            continue
        return connection
    raise ForewordError("the database cannot be opened for reading", hint="run `foreword doctor`")
