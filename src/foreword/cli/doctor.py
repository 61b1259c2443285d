"""`doctor`: check the home, the worker, the hook and every agent, and say what to do about each problem.

No check raises, and none repairs anything; but a worker that does not run is started, to see whether it can.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from foreword.cli import output
from foreword.cli.connection import this_home
from foreword.cli.options import Json
from foreword.encoding import sized
from foreword.errors import ForewordError, StoreError
from foreword.problems import BACKLOG, LATELY, NOTE, OK, SETTLE, WRONG, Finding, grouped, noted, spooled

if TYPE_CHECKING:
    from pathlib import Path

    from foreword.config import Settings
    from foreword.install.status import InstallStatus
    from foreword.paths import Home

MAX_PROBLEMS = 10  # printed; more would hide the checks above them
STYLES = {OK: "green", NOTE: "yellow", WRONG: "bold red"}
ANSWER_SECONDS = 5.0  # an idle worker answers in a millisecond, one that was just started in half a second
MIN_DISK = 200 * 1024 * 1024  # bytes; a busy month is some 50 MB, and a migration keeps a copy
SILENT_SECONDS = 86_400.0  # agents append to transcripts for hours after a session has ended
RESTART = "run `foreword worker stop`, then `foreword worker start`: the worker writes it"


def doctor(json: Json = False) -> None:
    """Check that everything works, and say how to fix what does not.

    Checks the home, the settings, the worker, the database and its index, the spool and the hook; whether every
    agent is connected and trusted, and when it was last seen; and lists what went wrong in the last seven days.
    Exit 1 if something is wrong.

    \b
    Examples:
      foreword doctor
      foreword doctor --json
    """
    home = this_home()
    findings = []
    for finding in check_all(home, os.environ):
        findings.append(finding)
        if not json:
            _print(finding)
    recent = grouped([each for each in noted(str(home.trouble)) if each.at > time.time() - LATELY])
    wrong = sum(finding.state == WRONG for finding in findings)
    if json:
        checks, problems = [vars(finding) for finding in findings], [vars(group) for group in recent]
        output.write_json({"ok": not wrong, "home": str(home.root), "checks": checks, "troubles": problems})
    else:
        if recent:
            output.write("\nwent wrong in the last seven days:")
        for each in recent[-MAX_PROBLEMS:]:
            output.write(f"  {output.age(each.last)}, {each.count}x, {each.where}: {each.what}")
        output.write(f"\n{output.plural(wrong, 'problems')} found" if wrong else "\nall is well")
    if wrong:
        raise typer.Exit(1)


def check_all(home: Home, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Run every check, in the order in which they depend on each other."""
    from foreword.config import load, load_synonyms

    loaded = load(home, environ)
    found = check_home(home)
    yield found
    yield _check_disk(home)
    yield _check_socket(home)
    yield from _check_file(home.config, loaded.problems)
    yield from _check_file(home.synonyms, load_synonyms(home)[1])
    yield from _check_switches(loaded.settings, environ)
    if found.state == OK:
        yield from _check_worker(home)
        if loaded.settings.model_provider != "off":
            yield from _check_model(home)
        yield _check_spool(home, loaded.settings)
        yield _check_hook(home, loaded.settings)
    yield from check_agents(home, environ, capture=loaded.settings.capture)


def check_home(home: Home) -> Finding:
    """Check that the home exists, is ours, closed to others and writable."""
    root, elsewhere = home.root, "set FOREWORD_HOME to another folder"
    chmod = f"chmod 700 {quote(str(root))}"
    try:
        found = root.stat()
    except FileNotFoundError:
        if os.access(root.parent, os.W_OK | os.X_OK):
            return Finding("home", NOTE, f"{root} is not there yet", "the first memory or hook creates it")
        says = f"{root} cannot be created: {root.parent} does not exist or is not writable"
        return Finding("home", WRONG, says, elsewhere)
    except OSError as exc:
        return Finding("home", WRONG, f"{root}: {exc.strerror}", elsewhere)
    if not stat.S_ISDIR(found.st_mode):
        return Finding("home", WRONG, f"{root} is not a folder", f"move it away, or {elsewhere}")
    if found.st_uid != os.geteuid():
        return Finding("home", WRONG, f"{root} belongs to another user", elsewhere)
    if found.st_mode & 0o077:
        return Finding("home", WRONG, f"{root} is open to other users", chmod)
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        return Finding("home", WRONG, f"{root} is not writable", f"{chmod}; or {elsewhere}")
    for path in (home.database, home.config, home.hook):
        if path.exists() and path.stat().st_mode & 0o022:
            return Finding("home", WRONG, f"{path} is writable by other users", f"chmod 600 {quote(str(path))}")
    return Finding("home", OK, f"{root}, accessible to you alone")


def switched_off_here(settings: Settings) -> list[tuple[str, str]]:
    """Return what is switched off in the current folder's project, each with how to change it."""
    from foreword.capture.parse import project_at
    from foreword.policy import chosen, findings, off

    with suppress(ForewordError, OSError):
        project = project_at(os.getcwd())
        return list(findings(off(project, chosen(settings)), project))
    return []


def _check_disk(home: Home) -> Finding:
    here = next((each for each in (home.root, *home.root.parents) if each.exists()), home.root)
    free = shutil.disk_usage(here).free
    if free < MIN_DISK:
        return Finding("disk", WRONG, f"only {sized(free)} free", f"free at least {sized(MIN_DISK)}")
    return Finding("disk", OK, f"{sized(free)} free")


def _check_socket(home: Home) -> Finding:
    from foreword.paths import socket_problem

    if problem := socket_problem(home):
        return Finding("socket", WRONG, problem, "set FOREWORD_HOME to a short path in a folder of your own")
    return Finding("socket", OK, "its path is short enough and safe")


def _check_file(path: Path, problems: Sequence[str]) -> list[Finding]:
    if not problems:
        return [Finding(path.name, OK, "valid" if os.path.lexists(path) else "none: the defaults apply")]
    return [Finding(path.name, WRONG, problem, "correct it; until then the default applies") for problem in problems]


def _check_switches(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Report what the user has switched off, because it explains why nothing happens."""
    if environ.get("FOREWORD_OFF", "") not in ("", "0"):
        yield Finding("switches", NOTE, "FOREWORD_OFF is set: nothing is captured or injected", "unset FOREWORD_OFF")
    if not settings.capture:
        yield Finding("switches", NOTE, "capture is off: sessions are not stored", "foreword config set capture on")
    if not settings.inject:
        yield Finding("switches", NOTE, "inject is off: agents are given nothing", "foreword config set inject on")
    yield from (Finding("switches", NOTE, says, way_out) for says, way_out in switched_off_here(settings))


def _check_worker(home: Home) -> Iterator[Finding]:
    """Check that the worker starts and answers; then the database, as the worker sees it."""
    from foreword.worker.client import Client
    from foreword.worker.lifecycle import pid_of, start

    pid = pid_of(home)
    try:
        start(home)
        health = Client(home, seconds=ANSWER_SECONDS).get("/api/health")
    except StoreError as exc:
        yield Finding("database", WRONG, str(exc), exc.hint)
        return
    except ForewordError as exc:
        says, way_out = str(exc), exc.hint
        if pid and pid_of(home) == pid:
            says = f"process {pid} runs and does not answer: {exc}"
            way_out = f"run `foreword worker stop`; if it does not stop: kill -9 {pid} (nothing is lost)"
        yield Finding("worker", WRONG, says, way_out)
        return
    up = output.duration(health["uptime_s"]) if pid else "just started"
    yield Finding("worker", OK, f"process {health['pid']}, version {health['version']}, up: {up}")
    way_out = "run `foreword index`; the memories themselves are safe"
    if health["counts"]:
        memories = output.plural(health["counts"].get("memories", 0), "memories")
        yield Finding("database", OK, f"{home.database}, {memories}")
    else:
        way_out = f"run `foreword worker stop`, move {home.database}* away, and put the newest copy from "
        way_out += f"{home.backups} in its place; without one, an empty database is created"
    for problem in health["problems"]:
        yield Finding("index" if health["counts"] else "database", WRONG, problem, way_out)


def _check_model(home: Home) -> Iterator[Finding]:
    from foreword.worker.client import Client

    try:
        about = Client(home, seconds=ANSWER_SECONDS).get("/api/model")
    except ForewordError as exc:
        yield Finding("model", NOTE, f"unknown: {exc}", exc.hint)
        return
    name = f"{about['provider']} {about['model']}"
    if about["problem"]:
        yield Finding("model", WRONG, about["problem"], "docs/model.md explains how to set it up or turn it off")
    else:
        spent = f"{about['spent_tokens']:,} of {about['daily_tokens']:,} tokens in the last 24 hours"
        yield Finding("model", OK, f"{name}, {about['where']}: {spent}")


def _check_spool(home: Home, settings: Settings) -> Finding:
    """Check that events which hooks could not send to the worker are being read in."""
    try:
        spool = spooled(home.spool)
    except OSError as exc:
        way_out = f"chmod 700 {quote(str(home.spool))}"
        return Finding("spool", WRONG, f"cannot read {home.spool}: {exc.strerror}", way_out)
    if not spool.bytes:
        return Finding("spool", OK, "empty")
    age = time.time() - spool.oldest
    says = f"{sized(spool.bytes)} waiting for {output.duration(max(age, 0))}"
    if spool.bytes > 0.8 * settings.spool_max_mb * 1024 * 1024:
        return Finding("spool", WRONG, f"{says}; it is almost full", "run `foreword worker start`, then check again")
    started = home.socket.stat().st_mtime if home.socket.exists() else time.time()  # the worker
    if age > BACKLOG and time.time() - started > SETTLE:
        return Finding("spool", WRONG, f"{says}, though a worker runs", f"see {home.log}, and please report it")
    return Finding("spool", NOTE, f"{says}; the worker is reading it")


def _check_hook(home: Home, settings: Settings, *, retry: bool = True) -> Finding:
    """Check that what agents run is there, and is of this package and these settings."""
    from foreword.hook.build import files
    from foreword.paths import worker_command

    wanted = files(home, settings, worker=worker_command() if settings.worker_autostart else [])
    for path in (home.launcher, home.mcp):
        if not os.access(path, os.X_OK):
            return Finding("hook", WRONG, f"{path} is gone or not executable: agents cannot report anything", RESTART)
    try:
        current = all(path.read_text(encoding="utf-8") == wanted[path] for path in (home.hook, home.hook_client))
    except (OSError, UnicodeDecodeError) as exc:
        return Finding("hook", WRONG, f"cannot read the hook: {exc}", RESTART)
    if current:
        return Finding("hook", OK, f"{home.hook} is up to date")
    if retry:  # a worker needs a second to see changed settings
        time.sleep(1.5)
        return _check_hook(home, settings, retry=False)
    return Finding("hook", WRONG, f"{home.hook} is of another version, or of other settings", RESTART)


def check_agents(home: Home, environ: Mapping[str, str], *, capture: bool = True) -> Iterator[Finding]:
    """Check every agent that is on this machine or was seen."""
    from foreword.install.status import install_status
    from foreword.worker.client import Client

    seen: dict[str, Any] | None = None
    with suppress(ForewordError, OSError):
        seen = Client(home, seconds=ANSWER_SECONDS).get("/api/hosts")["hosts"]
    absent = []
    for agent, status in install_status(home, environ).items():
        program = shutil.which(status.setup.binary, path=environ.get("PATH"))
        about = (seen or {}).get(agent, {})
        if program or about or status.files or status.setup.folder.is_dir():
            known = agent_line(about) if seen is not None else "last event unknown without a worker"
            yield from agent_findings(agent, status, about, line=known, capture=capture and seen is not None)
        else:
            absent.append(agent)
    if absent:
        yield Finding("other agents", OK, f"not found here: {', '.join(absent)}")


def agent_findings(
    agent: str, status: InstallStatus, seen: Mapping[str, Any], *, line: str, capture: bool = True
) -> Iterator[Finding]:
    """Report on one agent: first what is wrong, then its state in a line."""
    if not status.files:
        event = seen.get("last_event")
        if event and time.time() - event["at"] < LATELY:
            yield Finding(agent, OK, f"connected by hand, or before `foreword uninstall`; {line}")
        else:
            yield Finding(agent, NOTE, "not connected: nothing is captured", f"run `foreword install {agent}`")
        return
    yield from status.findings
    if capture and (at := silent_since(status, seen)):
        says = f"its newest transcript is of {output.age(at)}, long after its last event: its hooks may not run"
        way_out = f"run `foreword install {agent}`, and restart it; if capture was off meanwhile, ignore this"
        yield Finding(agent, NOTE, says, way_out)
    yield Finding(agent, NOTE if status.findings else OK, f"connected in {', '.join(status.files[:2])}; {line}")


def agent_line(seen: Mapping[str, Any]) -> str:
    """Return an agent's last event, last injection and number of sessions in a line."""
    event, injection = seen.get("last_event"), seen.get("last_injection")
    if not event:
        return "no event yet"
    last = "no injection yet"
    if injection:
        last = f"last injection {output.age(injection['at'])} ({injection['trigger']}, {injection['tokens']} tokens)"
    return (
        f"last event {output.age(event['at'])} ({event['name']}), {last}, {output.plural(seen['sessions'], 'sessions')}"
    )


def silent_since(status: InstallStatus, seen: Mapping[str, Any]) -> float:
    """Return when a connected agent last wrote a transcript, if that is long after its last event; else 0."""
    event = seen.get("last_event")
    after = max(event["at"] if event else 0.0, status.installed_at)
    newest = 0.0
    for pattern in status.setup.transcripts if status.files else ():
        for file in status.setup.folder.glob(pattern):
            with suppress(OSError):
                newest = max(newest, file.stat().st_mtime)
    return newest if newest > after + SILENT_SECONDS else 0.0


def _print(finding: Finding) -> None:
    from rich.text import Text

    out = output.console()
    level = (f"{finding.state:<6}", STYLES[finding.state])
    out.print(Text.assemble(level, f"{finding.check}: {output.escape(finding.says)}"))
    if finding.way_out:
        out.print(Text(f"      {output.escape(finding.way_out)}", style="dim" if finding.state == NOTE else ""))
