"""The worker extracts every session that is due, and reads of files that events name no more than it may."""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path

import pytest

from foreword.models import Edit, Event, Project, Session
from foreword.redact.files import MARK
from foreword.store import Store
from foreword.worker.jobs import JobRunner
from foreword.worker.jobs.extract import AT_ONCE, LARGEST, ExtractionJob, _changes_of, _text
from foreword.worker.jobs.refine import RefineJob
from tests.services import OneProject, Reports
from tests.tables import table

CODE = "def open_vault(pin=4711):\n    return 1\n"


@table("file", ["deploy/vault/a.py", "secrets.py", "link.py", "deploy/Vault/b.py"])
@table("after", [CODE, MARK])
def test_nothing_of_a_denied_file_is_told(tmp_path: Path, file: str, after: str):
    (tmp_path / "deploy" / "vault").mkdir(parents=True)
    for each in ("deploy/vault/a.py", "secrets.py"):
        (tmp_path / each).write_text(CODE)
    (tmp_path / "link.py").symlink_to("deploy/vault/a.py")
    edit = Edit(file=file, before=None, after=after, whole=True)
    assert _changes_of(edit, root=str(tmp_path), deny=("Deploy/vault/*",)) == []


def test_hidden_and_odd_files_are_not_read(tmp_path_factory):
    # What a hook has hidden is not read from the disk.
    tmp_path = tmp_path_factory.mktemp("x")
    (tmp_path / "a.py").write_text(CODE)
    assert _changes_of(Edit(file="a.py", before=MARK, after=MARK), root=str(tmp_path)) == []
    (change,) = _changes_of(Edit(file="a.py", before=None, after=CODE, whole=True), root=str(tmp_path))
    assert change.function == "open_vault"
    # Only an ordinary file of some size is read.
    tmp_path = tmp_path_factory.mktemp("x")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "loop.py").symlink_to("loop.py")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "large.py").write_bytes(b"x" * (LARGEST + 1))
    (tmp_path / "fine.py").write_bytes(b"\xffx\r\n")
    for name in ("pipe.py", "loop.py", "folder.py", "large.py", "gone.py", "nul\0.py"):
        assert _text(str(tmp_path / name)) is None
    assert _text(str(tmp_path / "fine.py")) == "\ufffdx\r\n"


def test_sessions_that_cannot_be_extracted_hide_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    taken = []

    def extract(_: ExtractionJob, session: Session) -> None:
        taken.append(session.id)
        raise ValueError(session.id)

    monkeypatch.setattr(ExtractionJob, "_extract", extract)
    with closing(Store(tmp_path / "a.db", backups=tmp_path / "backups")) as store:
        ids = [f"s{number}" for number in range(AT_ONCE + 5)]
        store.events.append([Event(id, "codex", "Stop", "stop", id, "p", "/p", 10.0, {}) for id in ids])

        services = Reports(store)
        runner = JobRunner(services)
        project = Project(key="p", name="p", root="/p")
        ExtractionJob(services, runner, OneProject(services, project), RefineJob(services, runner))
        with closing(runner):
            until = time.monotonic() + 10
            while len(taken) < len(ids) and time.monotonic() < until:
                runner.tick()
                time.sleep(0.01)
    assert sorted(taken) == sorted(ids)
