"""What doctor says of a host: every wrong finding has its way out, and what is well is one line."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from foreword.agents.setup import Entry, Setup
from foreword.cli import codex, hosts
from foreword.install.status import Gap, InstallStatus
from foreword.problems import NOTE, OK, WRONG, Finding, Problem
from foreword.worker.sessions import WAYS
from tests.tables import table

NOW = time.time()
FOLDER = Path("/home/u/.codex")
SETUP = Setup(
    binary="codex",
    folder=FOLDER,
    changes=(
        Entry(FOLDER / "hooks.json", ("hooks", "SessionStart"), {"hooks": [{"command": "foreword-hook"}]}, append=True),
        Entry(FOLDER / "hooks.json", ("hooks", "Stop"), {"hooks": [{"command": "foreword-hook"}]}, append=True),
    ),
    transcripts=("sessions/**/*.jsonl",),
)
SEEN: dict[str, Any] = {
    "last_event": {"at": NOW - 7200, "name": "Stop", "session": "s", "project": "p"},
    "last_injection": {"at": NOW - 7300, "trigger": "prompt", "tokens": 412},
    "sessions": 12,
    "events": 300,
}
WELL = hosts.Standing(
    host="codex",
    program="/usr/bin/codex",
    version="0.166.0",
    wired=InstallStatus(setup=SETUP, there=2),
    strays=(),
    trust={"sessionStart": "trusted", "stop": "trusted"},
    silent=0.0,
    seen=SEEN,
    troubles=(),
)


def said(standing: hosts.Standing) -> list[Finding]:
    return list(hosts.findings(standing, now=NOW))


def test_what_is_well_is_one_line_and_the_rest_is_told():
    # A host that is well is one line with all of it.
    (finding,) = said(WELL)
    assert finding.state == OK
    for word in ("0.166.0", "hooks.json", "trusted", "last event 2h ago (Stop)", "412 tokens", "12 sessions"):
        assert word in finding.says
    # Launchers that are gone are all named and a worker that runs is ended first.
    ours = ("/f/bin/foreword-hook", "/f/bin/foreword-mcp")
    setup = replace(SETUP, changes=(Entry(FOLDER / "hooks.json", ("hooks",), {"command": ours[0]}, append=True),))
    wrong, _ = said(replace(WELL, wired=InstallStatus(setup, 1), strays=ours))
    assert all(each in wrong.says for each in ours)
    assert wrong.way_out.index("foreword worker stop") < wrong.way_out.index("foreword worker start")
    # Without a worker nobody claims that nothing was told.
    (finding,) = said(replace(WELL, seen={}, asked=False))
    assert "no event" not in finding.says
    assert finding.state == OK
    # Hosts that are not here share a line and those not wired are a note.
    nobody = replace(
        WELL, program="", wired=InstallStatus(Setup(binary="x", folder=Path("/nowhere"), changes=())), seen={}
    )
    assert [finding.says for finding in hosts.absent([nobody, WELL])] == ["not found here: codex"]
    (finding,) = said(replace(WELL, wired=InstallStatus(SETUP), seen={}))
    assert (finding.state, finding.way_out) == (NOTE, "run `foreword install codex`")
    # One that was wired by hand and is heard is well.
    (finding,) = said(replace(WELL, wired=InstallStatus(SETUP)))
    assert finding.state == OK
    assert "uninstall" in finding.says  # which nobody can tell from it for a week
    # Troubles of its hooks are counted.
    found = said(replace(WELL, troubles=(Problem(NOW - 60, "hook of codex: worker", "TimeoutError"),) * 2))
    assert any(each.state == NOTE and "2 calls" in each.says for each in found)
    # Every host is told to programs.
    told = hosts.as_json(WELL)
    assert json.loads(json.dumps(told)) == told
    assert told["last_event"] == SEEN["last_event"]
    assert hosts.as_json(replace(WELL, seen={}))["last_event"] is None


WRONGS = {
    "lacks": replace(WELL, wired=InstallStatus(SETUP, 1, (Gap("missing", "hooks.Stop", FOLDER / "hooks.json"),))),
    "something else": replace(
        WELL, wired=InstallStatus(SETUP, 1, (Gap("changed", "hooks.Stop", FOLDER / "hooks.json"),))
    ),
    "cannot be read": replace(
        WELL, wired=InstallStatus(SETUP, 1, (Gap("unreadable", "hooks", FOLDER / "hooks.json"),))
    ),
    "is gone": replace(WELL, strays=("/old/bin/foreword-hook",)),
    "runs no hooks": replace(WELL, wired=InstallStatus(SETUP, 2, off="features.hooks is false in config.toml")),
    "not trusted": replace(WELL, trust={"sessionStart": "trusted", "stop": "modified"}),
}


@table("word", WRONGS)
def test_what_is_wrong_is_said_with_its_way_out(word):
    wrong = [finding for finding in said(WRONGS[word]) if finding.state == WRONG]
    assert len(wrong) == 1
    assert word in wrong[0].says
    assert wrong[0].way_out


# ---- calls of tools


def test_calls_of_tools_are_told_with_how_their_session_was_found():
    # No calls and an older worker say nothing.
    assert hosts.mcp({}) == []
    assert hosts.mcp({"mcp": {"calls": 0}}) == []
    # Calls that could be of several sessions are a note.
    told = {"calls": 5, "by_tool_use": 3, "by_variable": 1, "by_newest": 0, "ambiguous": 1, "none": 0}
    (finding,) = hosts.mcp({"mcp": told})
    assert finding.state == NOTE
    assert "3 by the id of the tool's use, 1 by the host's variable" in finding.says
    (finding,) = hosts.mcp({"mcp": {"calls": 2, "by_call": 2}})
    assert "sessions found: 2 by the call itself" in finding.says
    (finding,) = hosts.mcp({"mcp": {**told, "ambiguous": 0}})
    assert finding.state == OK
    # Every way to find a session is told.
    for way in WAYS:
        (finding,) = hosts.mcp({"mcp": {"calls": 7, way: 7}})
        assert "7 " in finding.says.partition("of its tools")[2], way


# ---- the clients themselves


def program(folder: Path, body: str) -> str:
    path = folder / "codex"
    script = folder / "codex.py"
    script.write_text(body)
    # Not as `#!PYTHON`: a path with a blank in it is no interpreter.
    path.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(script))}\n")
    path.chmod(0o700)
    return str(path)


SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"method": "configWarning", "params": {}}), flush=True)
    hooks = [
        {"eventName": event, "sourcePath": SOURCE, "command": command, "enabled": True, "trustStatus": trust}
        for event, command, trust in (
            ("sessionStart", "exec bin/foreword-hook", "trusted"), ("stop", "exec bin/foreword-hook", "untrusted"),
            ("stop", "exec mine", "untrusted"))
    ]
    result = {"data": [{"hooks": hooks}]} if asked["method"] == "hooks/list" else {}
    print(json.dumps({"id": asked["id"], "result": result}), flush=True)
"""


def wired_in(folder: Path) -> InstallStatus:
    hook = {"hooks": [{"command": "foreword-hook"}]}
    changes = tuple(
        Entry(folder / "hooks.json", ("hooks", event), hook, append=True) for event in ("SessionStart", "Stop")
    )
    return InstallStatus(setup=Setup(binary="codex", folder=folder, changes=changes), there=2)


TRUSTED = '[hooks.state."FOLDER/hooks.json:session_start:0:0"]\ntrusted_hash = "sha256:1"\n'


def test_codex_is_asked_whom_it_trusts_only_where_it_trusts(tmp_path_factory):
    # Codex is asked whom it trusts and others hooks do not count.
    tmp_path = tmp_path_factory.mktemp("x")
    (tmp_path / "config.toml").write_text(TRUSTED.replace("FOLDER", str(tmp_path)))
    source = repr(str(tmp_path / "hooks.json"))
    run = program(tmp_path, SERVER.replace("SOURCE", source))
    found = codex.codex_trust(run, {"PATH": os.environ["PATH"]}, wired=wired_in(tmp_path))
    assert found == {"sessionStart": "trusted", "stop": "untrusted"}
    # Codex is not started where nothing was ever trusted.
    tmp_path = tmp_path_factory.mktemp("x")
    run = program(tmp_path, "import pathlib; pathlib.Path(__file__).with_name('started').touch()")
    found = codex.codex_trust(run, {"PATH": os.environ["PATH"]}, wired=wired_in(tmp_path))
    assert found == {"SessionStart": "untrusted", "Stop": "untrusted"}
    assert not (tmp_path / "started").exists()


@table(
    "body",
    ["raise SystemExit(1)", "print('no json', flush=True)", "print('[]', flush=True)", "import time; time.sleep(60)"],
)
def test_where_it_does_not_answer_its_settings_tell_as_much_as_they_can(tmp_path, body, monkeypatch):
    monkeypatch.setattr(codex, "TRUST_SECONDS", 1.0)
    monkeypatch.setattr(codex, "LEAVE_SECONDS", 0.1)
    (tmp_path / "config.toml").write_text(TRUSTED.replace("FOLDER", str(tmp_path)))
    found = codex.codex_trust(program(tmp_path, body), {"PATH": os.environ["PATH"]}, wired=wired_in(tmp_path))
    assert found == {"SessionStart": "trusted", "Stop": "untrusted"}
