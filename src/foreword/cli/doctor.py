"""`status` and `doctor`: what is stored and what happened last; and whether everything works, with the way out.

No check raises. The home is closed to others, and a worker that does not run is started, to see whether it can. What
the worker can tell is asked of its health page, which the viewer shows too.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer

from foreword.capture.parse import project_at
from foreword.cli import output
from foreword.cli.connection import connect, folder, this_home
from foreword.cli.options import Json
from foreword.config import Settings, load
from foreword.encoding import plural, sized
from foreword.errors import ForewordError, StoreError
from foreword.hook.build import files
from foreword.paths import Home, socket_problem
from foreword.policy import chosen, findings, off
from foreword.problems import LATELY, NOTE, OK, WRONG, Finding, Group, grouped, noted
from foreword.worker.client import Client
from foreword.worker.lifecycle import pid_of, start

MAX_PROBLEMS = 10  # printed; more would hide the checks above them
STYLES = {OK: output.GREEN, NOTE: output.YELLOW, WRONG: output.RED}
ANSWER_SECONDS = 5.0  # an idle worker answers in a millisecond, one that was just started in half a second
LINE_SECONDS = 0.5  # a status line is drawn often; an empty one is better than a late one
PATIENCE = 8.0  # seconds that `status` waits for a worker which migrates an old database
MIN_DISK = 200 * 1024 * 1024  # bytes; a busy month is some 50 MB, and a migration keeps a copy
NEARLY_FULL = 0.8  # share of `store_max_mb` from which on it is reported
COUNTED = ("memories", "sessions", "events", "injections")


def status(
    line: Annotated[bool, typer.Option("--line", help="Print one line: what the last session here was given.")] = False,
    json: Json = False,
) -> None:
    """Show what is stored, what happened last, and what went wrong.

    Problems are shown once; `foreword doctor` keeps showing them. With --line no worker is started, and without one
    the line is empty.
    """
    home = this_home()
    if line:
        answer = {"line": "", "session": ""}
        with suppress(ForewordError):
            answer = Client(home, seconds=LINE_SECONDS).get("/api/line", project_path=folder(""))
        output.exit_with_json(answer, enabled=json)
        output.write(answer["line"])
        return
    about, seen, reported = _collect_status(home), home.logs / "trouble.seen", 0.0
    with suppress(OSError, ValueError):
        reported = float(seen.read_text(encoding="utf-8"))
    problems = grouped([each for each in noted(str(home.trouble)) if each.at > reported])
    output.exit_with_json({**about, "troubles": [vars(each) for each in problems]}, enabled=json)
    output.fields(_fields(about))
    _print_problems(problems, "went wrong since you last looked (shown once; `foreword doctor` says what to do):")
    if problems:
        with suppress(OSError):  # then it is shown again
            seen.write_text(str(max(each.last for each in problems)), encoding="utf-8")


def doctor(json: Json = False) -> None:
    """Check that everything works, and say how to fix what does not.

    Checks the home, the settings, the worker, the database and its index, the spool and the hook; whether every
    agent is connected and trusted, and when it was last seen; and lists what went wrong in the last seven days.
    Exit 1 if something is wrong.
    """
    home = this_home()
    findings = []
    for finding in check_all(home, os.environ):
        findings.append(finding)
        if not json:
            level = output.paint(f"{finding.state:<6}", STYLES[finding.state])
            output.write_raw(f"{level}{output.escape(f'{finding.check}: {finding.says}')}")
            output.write(f"      {finding.way_out}") if finding.way_out else None
    recent = grouped([each for each in noted(str(home.trouble)) if each.at > time.time() - LATELY])
    wrong = sum(finding.state == WRONG for finding in findings)
    if json:
        checks, problems = [vars(finding) for finding in findings], [vars(group) for group in recent]
        output.write_json({"ok": not wrong, "home": str(home.root), "checks": checks, "troubles": problems})
    else:
        _print_problems(recent[-MAX_PROBLEMS:], "went wrong in the last seven days:")
        output.write(f"\n{plural(wrong, 'problems')} found" if wrong else "\nall is well")
    raise typer.Exit(1 if wrong else 0)


def check_all(home: Home, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Run every check, in the order in which they depend on each other."""
    settings, found = load(home, environ).settings, check_home(home)
    yield found
    free = shutil.disk_usage(next(each for each in (home.root, *home.root.parents) if each.exists())).free
    full = free < MIN_DISK
    yield Finding("disk", WRONG if full else OK, f"{sized(free)} free", f"{sized(MIN_DISK)} are needed" if full else "")
    problem, way_out = socket_problem(home), "set FOREWORD_HOME to a short path in a folder of your own"
    yield Finding("socket", WRONG, problem, way_out) if problem else Finding("socket", OK, "its path is safe")
    if environ.get("FOREWORD_OFF", "") not in ("", "0"):
        yield Finding("switches", NOTE, "FOREWORD_OFF is set: nothing is captured or injected", "unset FOREWORD_OFF")
    for says, way_out in _switched_off_here(settings):
        yield Finding("switches", NOTE, says, way_out)
    if found.state == OK:
        yield from _check_worker(home)
        yield _check_hook(home, settings)


def check_home(home: Home) -> Finding:
    """Check that the home is ours, closed to others and writable; one that is missing is not created."""
    root = home.root
    if not os.path.lexists(root) and os.access(root.parent, os.W_OK | os.X_OK):
        return Finding("home", NOTE, f"{root} is not there yet", "the first memory or hook creates it")
    if not os.path.lexists(root):
        says = f"{root} cannot be created: {root.parent} does not exist or is not writable"
        return Finding("home", WRONG, says, "set FOREWORD_HOME to another folder")
    try:
        home.prepare()
    except ForewordError as exc:
        return Finding("home", WRONG, str(exc), exc.hint)
    return Finding("home", OK, f"{root}, accessible to you alone")


def _switched_off_here(settings: Settings) -> list[tuple[str, str]]:
    """Return what is switched off in the current folder's project, each with how to change it."""
    with suppress(ForewordError, OSError):
        project = project_at(os.getcwd())
        return list(findings(off(project, chosen(settings)), project))
    return []


def _check_worker(home: Home) -> Iterator[Finding]:
    """Yield whether the worker answers, and what it says of its database, the settings and the agents."""
    pid = pid_of(home)
    try:
        start(home)
        health = Client(home, seconds=ANSWER_SECONDS).get("/api/health", full=1)
    except ForewordError as exc:
        says, way_out = str(exc), exc.hint
        if pid and pid_of(home) == pid:
            says = f"process {pid} runs and does not answer: {exc}"
            way_out = f"run `foreword worker stop`; if it does not stop: kill -9 {pid} (nothing is lost)"
        yield Finding("database" if isinstance(exc, StoreError) else "worker", WRONG, says, way_out)
        return
    worker, counts = health["worker"], health["store"]["counts"]
    up = output.duration(worker["uptime_s"]) if pid else "just started"
    yield Finding("worker", OK, f"process {worker['pid']}, version {worker['version']}, up: {up}")
    if counts:
        yield Finding("database", OK, f"{home.database}, {plural(counts['memories'], 'memories')}")
    for finding in health["findings"]:
        if finding["check"] != "project":  # what is switched off elsewhere explains nothing here
            says = finding["says"].removeprefix(f"{finding['check']}: ")
            yield Finding(finding["check"], finding["state"], says, finding["way_out"])
    for agent in health["hosts"]:
        name, how = agent["host"], "connected" if agent["connected"] else "connected by hand"
        if agent["connected"] or agent["last_event"]:
            yield Finding(name, OK, f"{how}; {agent_line(agent)}")
        else:
            yield Finding(name, NOTE, "not connected: nothing is captured", f"run `foreword install {name}`")


def _check_hook(home: Home, settings: Settings) -> Finding:
    """Check that what agents run is there, and is of this package and these settings."""
    restart = "run `foreword worker stop`, then `foreword worker start`: the worker writes it"
    wanted = files(home, settings)
    for path in (home.launcher, home.mcp):
        if not os.access(path, os.X_OK):
            return Finding("hook", WRONG, f"{path} is gone or not executable: agents cannot report anything", restart)
    with suppress(OSError, UnicodeDecodeError):
        if all(path.read_text(encoding="utf-8") == wanted[path] for path in (home.hook, home.hook_client)):
            return Finding("hook", OK, f"{home.hook} is up to date")
    return Finding("hook", WRONG, f"{home.hook} is gone, of another version, or of other settings", restart)


def agent_line(seen: Mapping[str, Any]) -> str:
    """Return an agent's last event, last injection and number of sessions in a line."""
    event, injection = seen["last_event"], seen["last_injection"]
    if not event:
        return "no event yet"
    last = "no injection yet"
    if injection:
        last = f"last injection {output.age(injection['at'])} ({injection['trigger']}, {injection['tokens']} tokens)"
    sessions = plural(seen["sessions"], "sessions")
    return f"last event {output.age(event['at'])} ({event['name']}), {last}, {sessions}"


def _print_problems(problems: Sequence[Group], heading: str) -> None:
    output.write(f"\n{heading}") if problems else None
    for problem in problems:
        output.write(f"  {output.age(problem.last)}, {problem.count}x, {problem.where}: {problem.what}")


def _collect_status(home: Home) -> dict[str, Any]:
    """Return what the worker's health page says; where the worker cannot be reached, why."""
    about: dict[str, Any] = {"running": False, "home": str(home.root), "findings": []}
    about["switched_off"] = [says for says, _ in _switched_off_here(load(home, os.environ).settings)]
    if not os.path.isdir(home.root):
        found = check_home(home)
        return {**about, "findings": [vars(found)] if found.state == WRONG else []}
    try:
        client = connect(home, patience=PATIENCE)
        about |= {"running": True, **client.get("/api/health", full=1), "review": client.get("/api/review")["waiting"]}
    except ForewordError as exc:
        pid = pid_of(home)
        says = f"process {pid} does not answer: {exc}" if pid else str(exc)
        about["findings"].append(vars(Finding("worker", WRONG, says, exc.hint)))
    return about


def _fields(about: dict[str, Any]) -> list[tuple[str, str]]:
    names = {WRONG: "problem", NOTE: "note"}
    shown = [each for each in about["findings"] if each["check"] != "project"]
    findings = [(names[each["state"]], f"{each['says']}; {each['way_out']}") for each in shown]
    off = [("switched off", f"{says}; `foreword doctor` says how to change it") for says in about["switched_off"]]
    if not about["running"]:
        return [("worker", "not running"), ("home", about["home"]), *off, *findings]
    worker, store = about["worker"], about["store"]
    database = f"{sized(store['bytes'])} ({store['counted']})" if store["bytes"] else "none yet"
    if store["limit"] and store["bytes"] > store["limit"] * NEARLY_FULL:
        database += f", of {sized(store['limit'])} that `store_max_mb` allows; "
        database += "`foreword prune --dry-run` shows what would go"
    counts = [plural(store["counts"][name], name) for name in COUNTED if name in store["counts"]]
    waiting = f"{plural(about['review'], 'items')} to decide: `foreword review --all`"
    up = output.duration(worker["uptime_s"])
    return [
        ("worker", f"running, process {worker['pid']}, version {worker['version']}, up {up}"),
        ("home", about["home"]),
        *off,
        ("stored", ", ".join(counts) or "unknown"),
        ("database", database),
        ("spool", f"{sized(about['spool_bytes'])} waiting" if about["spool_bytes"] else "empty"),
        ("review", waiting if about["review"] else ""),
        *((each["host"], agent_line(each)) for each in about["hosts"] if each["last_event"]),
        *findings,
    ]
