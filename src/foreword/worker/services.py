"""Hold what every part of the worker shares: the home, the clock, the settings, the open store and the problems log."""

from __future__ import annotations

import logging
import logging.handlers
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from foreword.config import Settings, load, load_synonyms
from foreword.encoding import dumps, loads
from foreword.errors import ForewordError, StoreError
from foreword.hook import spool
from foreword.hook.build import refresh
from foreword.paths import Home, replacing
from foreword.problems import Loss, Problem, losses, note, noted
from foreword.redact import redact
from foreword.store import Store

log = logging.getLogger("foreword")

UNKEPT = "hooks found no worker and no room in the spool: the disk was full, or `spool_max_mb` reached"
UNREADABLE = "they could not be read in the database that was replaced, which is kept in the backups folder"
DAY = 86_400.0  # seconds: a problem of the last day is not written to the log again


class Services:
    """One home's settings and store, reloaded and reopened in place: callers read them here each time."""

    def __init__(self, home: Home, *, now: Callable[[], float] = time.time, store: Store | None = None) -> None:
        self.home = home
        self.now = now
        self.last_request = time.monotonic()  # the time of the last request to the worker
        self.loaded = load(home, os.environ)
        self.synonyms: Mapping[str, Sequence[str]] = {}
        self._store = store
        self.is_closed = False
        self._store_error = StoreError("the store is not open yet", hint="try again")
        self._seen = self._stamps()
        self._reloading = threading.Lock()  # held while the settings are checked and read again
        self._reported = {each.what for each in noted(str(home.trouble)) if each.at > now() - DAY}
        self._unwritten: dict[str, str] = {}  # problems that found no room on the disk
        self._opening = threading.Lock()  # held while the store is opened, closed or replaced
        self.unrescued = ""  # why what only an open connection can read could not be written to files yet
        self.losses = losses(home.losses)
        self._saved_losses = self.losses

    # -- settings -----------------------------------------------------------------------------------------------
    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    def follow_settings(self) -> None:
        """Read the settings again where they changed; on return they hold, also where another thread reads them."""
        with self._reloading:
            if (stamps := self._stamps()) != self._seen:  # before they are read: a change meanwhile is another
                try:
                    self.reload()
                finally:
                    self._seen = stamps

    def reload(self) -> None:
        """Read the settings again, and write the hook that goes with them."""
        self.loaded = load(self.home, os.environ)
        log_to(self.home, self.settings)
        self.synonyms, wrong = load_synonyms(self.home)
        for problem in (*self.loaded.problems, *wrong):
            self.report("settings", problem)
        try:
            refresh(self.home, self.settings)
        except OSError as exc:
            self.report("hook", f"hook.py cannot be written: {exc}")

    def _stamps(self) -> tuple[float, ...]:
        return tuple(path.stat().st_mtime if path.exists() else 0.0 for path in (self.home.config, self.home.synonyms))

    # -- the store ----------------------------------------------------------------------------------------------
    @property
    def store(self) -> Store:
        """Return the open store, or raise why there is none."""
        if self._store is None:
            raise self._store_error
        return self._store

    @property
    def has_store(self) -> bool:
        return self._store is not None

    def store_problems(self) -> list[str]:
        """Return what is wrong with the store; nothing where it is well."""
        if self._store is None:
            return [f"{self._store_error}; {self._store_error.hint}"]
        return [*filter(None, [self.unrescued]), *self._store.database.problems()]

    def open_store(self) -> None:
        """Open the store where it is not; while it cannot be opened, every request is answered with the reason."""
        with self._opening:
            if self._store is not None and (why := self._store.database.files_lost()):
                self._store = self._rescue(self._store, why)
            if self._store is None:
                self._store = self._open()

    @contextmanager
    def closed_store(self) -> Iterator[None]:
        """Close the store, its files as they are, while they are replaced: requests fail, so that hooks spool."""
        with self._opening:
            store, self._store = self._store, None
            try:
                if store is not None:
                    store.database.close(checkpoint=False)
                yield
            finally:
                self._store = self._open()

    def _open(self, *, copy: str = "") -> Store | None:
        from foreword.store import backup  # not with the module: it needs apsw

        try:
            backup.recover_log(self.home.database, self.home.backups)
            store = Store(self.home.database, backups=self.home.backups)
        except (StoreError, OSError) as exc:
            self._store_error = (
                exc if isinstance(exc, StoreError) else StoreError(str(exc), hint="run `foreword doctor`")
            )
            self.report("store", f"{self._store_error}; {self._store_error.hint}")
            return None
        events, newest, cause = store.database.lost
        if events:
            self.note_loss(f"{self.home.database}: {cause}", events=events, newest=newest, copy=copy)
            store.database.note_present()
        self._finish_restore(store)
        return store

    def _finish_restore(self, store: Store) -> None:
        """Take over the events that a restore by an earlier version left for later."""
        from foreword.store import backup

        try:
            if noted := store.checkpoint(backup.RESTORED):
                counted = loads(noted)
                file = Path(counted.pop("file"))
                lost = backup.take_over(file, store, file.parent, **counted)[1]
                store.set_checkpoint(backup.RESTORED, "", at=self.now())
                if lost:
                    self.note_loss(UNREADABLE, events=lost)
        except (StoreError, OSError) as exc:
            self.report("store", f"events of the replaced database wait: {exc}")

    def _rescue(self, store: Store, why: str) -> Store | None:
        """Write back what an open store holds whose files are gone; without room for it, it stays open."""
        from foreword.store import backup
        from foreword.store.database import CUT, REPLACED

        database, folder, known, kept = self.home.database, self.home.backups, store.database.known_events, ""
        what, damage, before = f"{database} {why}", "", self.losses
        missing, newest = 0, known.number
        try:
            with backup.scratch(folder) as made:
                new, write = made / "new.db", backup.copy if why == CUT else backup.rescue
                rows = store.database.copy(lambda db: write(db, new), rescue=True).rows
                if why == CUT and rows["events"] < known.count:
                    raise backup.Damaged("events are missing")  # noqa: TRY301 - the files may have more
                if why == REPLACED and database.exists() and database.stat().st_size:  # somebody wants another one
                    kept = str(new.replace(backup.new_path(folder, backup.REPLACED)))
                    done = f"{what}; what it held is in {kept}"
                    if store.database.has_own_log():
                        backup.remove_log(database)
                else:
                    backup.put_in_place(new, database)
                    missing = known.count - rows["events"]
                    known.note(rows["newest"], rows["events"])
                    done = f"{what}; it was put back{'' if missing > 0 else ', and nothing is lost'}"
        except backup.Damaged as exc:  # it was cut: what is left of it is opened again, and can be salvaged
            done, damage = "", f"{what}, and cannot be read as a whole: {exc}"
        except (ForewordError, OSError) as exc:
            self.unrescued = f"{what}, and cannot be put back yet: {exc}; free some space"
            self.report("store", self.unrescued)
            return store
        self.unrescued = ""
        store.database.close(checkpoint=False)
        opened = self._store = self._open(copy=kept)  # before anybody reads that it was put back
        if done:
            self.report("store", done)
        if missing > 0:
            self.note_loss(f"{what}, and could not be read as a whole", events=missing, newest=newest)
        if (damage or (kept and not opened)) and self.losses == before:
            self.note_loss(damage or what, copy=kept)
        return opened

    def close(self) -> None:
        self.is_closed = True
        if self._store is not None:
            self._store.close()

    # -- problems -----------------------------------------------------------------------------------------------
    def report(self, where: str, what: str) -> None:
        """Write down a problem once, where `status` and `doctor` find it."""
        what = redact(what)
        if self.is_closed or what in self._reported:  # a request that finds the store closed asks the next worker
            return
        if note(str(self.home.trouble), Problem(at=self.now(), where=f"worker: {where}", what=what)):
            self._reported.add(what)
            self._unwritten.pop(what, None)
            log.warning("%s: %s", where, what)
        else:
            self._unwritten[what] = where

    def report_unwritten(self) -> None:
        """Write down the problems and losses for which the disk had no room before, and events that hooks lost."""
        for what, where in tuple(self._unwritten.items()):
            self.report(where, what)
        with suppress(OSError, ValueError):
            if lost := spool.lost(str(self.home.spool)):
                known = self.losses
                self.note_loss(UNKEPT, events=lost)
                if self.losses == self._saved_losses:
                    spool.lost(str(self.home.spool), -lost)
                else:  # no room yet: count them again in a second, once
                    self.losses = known
        self.save_losses(self.losses)

    def note_loss(self, what: str, *, events: int = 0, newest: int = 0, copy: str = "") -> None:
        """Note that data is gone; it is shown until somebody acknowledges it."""
        from foreword.store import backup

        others = [each for each in self.losses if each.what != what]
        events += sum(each.events for each in self.losses if each.what == what and not newest)
        self.report("store", what)
        copy = copy or next((each.copy for each in self.losses if each.what == what), "")
        copy = copy or str(next(iter(backup.copies(self.home.backups)), ""))
        self.save_losses((*others, Loss(self.now(), what, events, newest, copy)))

    def save_losses(self, found: Sequence[Loss]) -> None:
        """Keep the list of losses; where the disk takes nothing, it is tried again every second."""
        self.losses = tuple(found)
        with suppress(ForewordError, OSError):
            if self.losses != self._saved_losses:
                with replacing(self.home.losses) as file:
                    file.write(dumps([vars(each) for each in found]).encode())
                self._saved_losses = self.losses

    @property
    def idle_seconds(self) -> float:
        return time.monotonic() - self.last_request


def log_to(home: Home, settings: Settings) -> None:
    """Write the log as these settings have it, from now on."""
    handler = logging.handlers.RotatingFileHandler(
        home.log, maxBytes=settings.worker_log_kb * 1024, backupCount=2, encoding="utf-8", errors="replace"
    )
    handler.setFormatter(_RedactingFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)


class _RedactingFormatter(logging.Formatter):
    """Redact what is logged: an exception's text may hold what somebody sent."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))
