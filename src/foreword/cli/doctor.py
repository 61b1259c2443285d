"""`doctor`: check the home, the worker, the hook and every agent, and say what to do about each problem.

No check raises, and none repairs anything; but a worker that does not run is started, to see whether it can.
"""

from __future__ import annotations

import json as jsonlib
import os
import re
import select
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from foreword.agents.setup import Entry
from foreword.cli import output
from foreword.cli.connection import this_home
from foreword.cli.options import Json
from foreword.errors import ForewordError, StoreError
from foreword.problems import BACKLOG, LATELY, NEVER_SEEN, NOTE, OK, SETTLE, WRONG, Finding, grouped, noted, spooled
from foreword.units import sized

if TYPE_CHECKING:
    from pathlib import Path

    from foreword.config import Settings
    from foreword.install.status import InstallStatus
    from foreword.paths import Home
    from foreword.problems import Group, Problem

MAX_PROBLEMS = 10  # printed; more would hide the checks above them
STYLES = {OK: "green", NOTE: "yellow", WRONG: "bold red"}
ANSWER_SECONDS = 5.0  # an idle worker answers in a millisecond, one that was just started in half a second
MIN_DISK = 200 * 1024 * 1024  # bytes; a busy month is some 50 MB, and a migration keeps a copy
# Run without site packages and with the C module alone, as the hook does.
SQLITE_PROBE = (
    "import _sqlite3; c = _sqlite3.connect(':memory:'); c.execute('CREATE VIRTUAL TABLE t USING fts5(x)'); "
    "print(_sqlite3.sqlite_version)"
)
MAX_FILES = 2  # of an agent that are named in its line
SILENT_SECONDS = 86_400.0  # agents append to transcripts for hours after a session has ended
TRUSTED = ("trusted", "managed")
TRUST_SECONDS = 6.0  # Codex answers in 0.9 to 2.5 seconds here
EXIT_SECONDS = 2.0  # until Codex is killed
CODEX_ENVIRON = ("PATH", "HOME", "LANG", "USER", "TMPDIR")  # passed on to Codex; none of the keys


@dataclass(frozen=True)
class AgentState:
    """What is known of one agent."""

    agent: str
    program: str  # path of its program; empty if the PATH has none
    version: str
    wired: InstallStatus
    missing_launchers: tuple[str, ...]  # that its files name and that are gone
    trust: Mapping[str, str]  # Codex: event -> trusted, modified, untrusted; empty if unknown
    silent: float  # when it last wrote a transcript, if that is long after its last event; else 0
    seen: Mapping[str, Any]  # from `GET /api/hosts`
    problems: tuple[Problem, ...]  # of its hooks, in the last week
    worker_answers: bool = True

    @property
    def used(self) -> bool:
        return bool(self.program or self.seen or self.wired.begun) or self.wired.setup.folder.is_dir()


def doctor(json: Json = False) -> None:
    """Check that everything works, and say how to fix what does not.

    Checks the home, the settings, the worker, the database and its index, the spool, the hook and its interpreter;
    whether every agent is installed, connected and trusted, and when it was last seen; and lists what went wrong in
    the last seven days. Exit 1 if something is wrong.

    \b
    Examples:
      foreword doctor
      foreword doctor --json
    """
    home = this_home()
    findings: list[Finding] = []
    agents: list[AgentState] = []
    for check in (check_installation(home, os.environ), check_agents(home, os.environ, agents)):
        for finding in check:
            findings.append(finding)
            if not json:
                _print(finding)
    recent = grouped([each for each in noted(str(home.trouble)) if each.at > time.time() - LATELY])
    wrong = sum(finding.state == WRONG for finding in findings)
    if json:
        output.write_json(
            {
                "ok": not wrong,
                "home": str(home.root),
                "checks": [vars(finding) for finding in findings],
                "agents": [as_json(each) for each in agents],
                "troubles": [vars(group) for group in recent],
            }
        )
    else:
        _print_problems(recent)
        output.write(f"\n{output.plural(wrong, 'problems')} found" if wrong else "\nall is well")
    if wrong:
        raise typer.Exit(1)


def check_installation(home: Home, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Run every check but those of agents, in the order in which they depend on each other."""
    from foreword.config import load, load_synonyms

    home_finding = check_home(home)
    yield home_finding
    if home_finding.state != WRONG:
        yield _check_disk(home)
    yield _check_socket(home)
    loaded = load(home, environ)
    yield from _check_file(home.config, loaded.problems)
    yield from _check_file(home.synonyms, load_synonyms(home)[1])
    yield from _check_switches(loaded.settings, environ)
    if home_finding.state == WRONG:
        yield Finding("worker", NOTE, "not checked: repair the home first")
    elif not os.path.isdir(home.root):
        yield Finding("worker", NOTE, "not checked: the home does not exist yet")
    else:
        health: dict[str, Any] = {}
        for finding, answer in _check_worker(home):
            yield finding
            health = answer or health
        yield _check_model(home, loaded.settings)
        yield _check_spool(home, loaded.settings, uptime=float(health.get("uptime_s", 0)))
        yield _check_hook(home, loaded.settings)
    yield _check_interpreter()


def check_home(home: Home) -> Finding:
    """Check that the home exists, is ours, closed to others and writable."""
    root = home.root
    try:
        found = root.stat()
    except FileNotFoundError:
        near = _existing(root)
        if near.is_dir() and near == root.parent and os.access(near, os.W_OK | os.X_OK):
            return Finding("home", NOTE, f"{root} is not there yet", "the first memory or hook creates it")
        why = "does not exist" if near.is_dir() and near != root.parent else "is not writable"
        says = f"{root} cannot be created: {root.parent} {why}"
        return Finding("home", WRONG, says, "set FOREWORD_HOME to another folder")
    except OSError as exc:
        return Finding("home", WRONG, f"{root}: {exc.strerror}", "set FOREWORD_HOME to a folder of yours")
    chmod = f"chmod 700 {quote(str(root))}"
    if not stat.S_ISDIR(found.st_mode):
        return Finding("home", WRONG, f"{root} is not a folder", "move it away, or set FOREWORD_HOME to another folder")
    if found.st_uid != os.geteuid():
        return Finding("home", WRONG, f"{root} belongs to another user", "set FOREWORD_HOME to a folder of your own")
    if found.st_mode & 0o077:
        return Finding("home", WRONG, f"{root} is open to other users", chmod)
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        return Finding("home", WRONG, f"{root} is not writable", f"{chmod}; or set FOREWORD_HOME elsewhere")
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


def _existing(path: Path) -> Path:
    return next((each for each in (path, *path.parents) if os.path.lexists(each)), path)


def _check_disk(home: Home) -> Finding:
    free = shutil.disk_usage(_existing(home.root)).free
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


def _check_worker(home: Home) -> Iterator[tuple[Finding, dict[str, Any]]]:
    """Check that the worker starts, answers and is of this build; then the database, as the worker sees it."""
    from foreword.hook.build import fingerprint
    from foreword.worker.client import Client
    from foreword.worker.lifecycle import pid_of, start

    pid = pid_of(home)
    try:
        start(home)
        health = Client(home, seconds=ANSWER_SECONDS).get("/api/health")
    except StoreError as exc:
        yield Finding("worker", OK, f"process {pid_of(home)} answers"), {}
        yield Finding("database", WRONG, str(exc), exc.hint), {}
        return
    except ForewordError as exc:
        if pid and pid_of(home) == pid:
            way_out = f"run `foreword worker stop`; if it does not stop: kill -9 {pid} (nothing is lost)"
            yield Finding("worker", WRONG, f"process {pid} runs and does not answer: {exc}", way_out), {}
        else:
            yield Finding("worker", WRONG, str(exc), exc.hint), {}
        return
    says = f"process {health['pid']}, version {health['version']}, up {output.duration(health['uptime_s'])}"
    if health["build"] != fingerprint():
        yield Finding("worker", NOTE, f"{says}, of another build than this command", "it is replaced soon"), health
    else:
        yield Finding("worker", OK, says + ("" if pid else " (just started)")), health
    for finding in _check_database(home, health):
        yield finding, health


def _check_database(home: Home, health: Mapping[str, Any]) -> Iterator[Finding]:
    if not health["counts"]:
        way_out = f"run `foreword worker stop`, move {home.database}* away, and put the newest copy from "
        way_out += f"{home.backups} in its place; without one, an empty database is created"
        for problem in health["problems"]:
            yield Finding("database", WRONG, problem, way_out)
        return
    yield Finding("database", OK, f"{home.database}, {output.plural(health['counts'].get('memories', 0), 'memories')}")
    for problem in health["problems"]:
        yield Finding("index and tables", WRONG, problem, "run `foreword index`; the memories themselves are safe")
    if not health["problems"]:
        yield Finding("index and tables", OK, "complete")


def _check_model(home: Home, settings: Settings) -> Finding:
    from foreword.worker.client import Client

    if settings.model_provider == "off":
        return Finding("model", OK, "off")
    try:
        about = Client(home, seconds=ANSWER_SECONDS).get("/api/model")
    except ForewordError as exc:
        return Finding("model", NOTE, f"unknown: {exc}", exc.hint)
    if about["problem"]:
        return Finding("model", WRONG, about["problem"], "docs/model.md explains how to set it up or turn it off")
    says = f"{about['provider']} {about['model']}, {about['where']}: {about['spent_tokens']:,} of "
    says += f"{about['daily_tokens']:,} tokens in the last 24 hours"
    return Finding("model", OK, says)


def _check_spool(home: Home, settings: Settings, *, uptime: float) -> Finding:
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
    if uptime > SETTLE and age > BACKLOG:
        return Finding("spool", WRONG, f"{says}, though a worker runs", f"see {home.log}, and please report it")
    return Finding("spool", NOTE, f"{says}; the worker is reading it")


def _check_hook(home: Home, settings: Settings, *, retry: bool = True) -> Finding:
    """Check that the hook's files are those of this package and these settings."""
    from foreword.hook.build import files
    from foreword.paths import worker_command

    way_out = "run `foreword worker stop`, then `foreword worker start`: the worker writes it"
    wanted = files(home, settings, worker=worker_command() if settings.worker_autostart else [])
    paths = (home.hook, home.hook_client)
    try:
        texts = [path.read_text(encoding="utf-8") for path in paths]
    except FileNotFoundError as exc:
        return Finding("hook", WRONG, f"{exc.filename} is missing: agents cannot report anything", way_out)
    except (OSError, UnicodeDecodeError) as exc:
        return Finding("hook", WRONG, f"cannot read {home.hook}: {exc}", way_out)
    if texts == [wanted[path] for path in paths]:
        return Finding("hook", OK, f"{home.hook} is up to date")
    if retry:  # a worker needs a second to see changed settings
        time.sleep(1.5)
        return _check_hook(home, settings, retry=False)
    return Finding("hook", WRONG, f"{home.hook} is of another version, or of other settings", way_out)


def _check_interpreter() -> Finding:
    """Check that the Python which agents start exists and can search the database without the worker."""
    from foreword.hook.build import interpreter

    python = interpreter()
    way_out = "install Foreword with a Python 3.11 or newer whose SQLite has FTS5"
    command = [python, "-I", "-S", "-c", SQLITE_PROBE]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)  # noqa: S603 - our own
    except (OSError, subprocess.SubprocessError) as exc:
        return Finding("interpreter", WRONG, f"cannot run {python}: {exc}", way_out)
    if ended.returncode:
        last = ended.stderr.strip().rpartition("\n")[2]
        return Finding("interpreter", WRONG, f"{python} cannot search without the worker: {last}", way_out)
    return Finding("interpreter", OK, f"{python}, SQLite {ended.stdout.strip()} with FTS5")


def check_agents(home: Home, environ: Mapping[str, str], agents: list[AgentState]) -> Iterator[Finding]:
    """Check every agent, and add its state to *agents*."""
    from foreword.worker.client import Client

    seen: dict[str, Any] | None = None
    with suppress(ForewordError, OSError):
        seen = Client(home, seconds=ANSWER_SECONDS).get("/api/hosts")["hosts"]
    for each in _agent_states(home, environ, seen=seen):
        agents.append(each)
        if each.used:
            yield from agent_findings(each)
    yield from absent(agents)


def agent_findings(state: AgentState) -> Iterator[Finding]:
    """Report on one agent: first what is wrong, then its state in a line."""
    if not state.wired.begun:
        yield _not_connected(state)
        return
    wrong = list(_wrong(state))
    yield from wrong
    if state.silent:
        event = state.seen.get("last_event")
        events = f"the last event of {output.age(event['at'])}" if event else "no event was ever seen"
        says = f"its newest transcript is of {output.age(state.silent)}, {events}: its hooks may not run"
        way_out = f"run `foreword install {state.agent}`, and restart it; if capture was off meanwhile, ignore this"
        yield Finding(state.agent, NOTE, says, way_out)
    if state.problems:
        last = state.problems[-1]
        calls = output.plural(len(state.problems), "hook calls")
        says = f"{calls} had problems in the last seven days, the last {output.age(last.at)}: {last.what}"
        yield Finding(state.agent, NOTE, says, "no event was lost: they are in the spool or the database; see below")
    files = ", ".join(quote(str(file)) for file in state.wired.files[:MAX_FILES])
    more = len(state.wired.files) - MAX_FILES
    files += f" and {more} more" if more > 0 else ""
    trusted = "; trusted" if state.trust and all(each in TRUSTED for each in state.trust.values()) else ""
    seen = agent_line(state.seen) if state.worker_answers else "last event unknown without a worker"
    way_out = "" if state.program else f"if it is gone for good: foreword uninstall {state.agent}"
    level = NOTE if wrong or not state.program else OK
    yield Finding(state.agent, level, f"{_program(state)}, connected in {files}{trusted}; {seen}", way_out)


def _wrong(state: AgentState) -> Iterator[Finding]:
    name, wired = state.agent, state.wired
    install = f"foreword install {name}"
    texts = {
        "unreadable": ("{file} cannot be read: {what}", f"correct the file, then run `{install}`"),
        "missing": ("{file} lacks what install wrote: {what}", f"run `{install}`: it adds only what is missing"),
        "changed": (
            "{file} differs from what install wrote: {what}",
            f"run `{install}` to restore it, or keep it if the change was yours",
        ),
    }
    for how, (says, way_out) in texts.items():
        lacks = [lack for lack in wired.gaps if lack.how == how]
        for file in dict.fromkeys(lack.file for lack in lacks):
            what = ", ".join(dict.fromkeys(lack.what for lack in lacks if lack.file == file))
            yield Finding(name, WRONG, says.format(what=what, file=file), way_out)
    if state.missing_launchers:
        ours = any(state.missing_launchers[0] in str(change) for change in wired.setup.changes)
        # A worker writes our launcher when it starts; one that runs already would not.
        restart = "run `foreword worker stop`, then `foreword worker start`: the worker writes it"
        says = f"it runs {', '.join(state.missing_launchers)}, which is gone or not executable"
        yield Finding(name, WRONG, says, restart if ours else f"run `{install}`")
    if wired.off:
        yield Finding(name, WRONG, f"it runs no hooks: {wired.off}", "remove that setting, or ask who manages it")
    untrusted = [event for event, trust in state.trust.items() if trust not in TRUSTED]
    if untrusted:
        says = f"it silently skips hooks that are not trusted: {', '.join(untrusted)}"
        yield Finding(name, WRONG, says, "start codex, open /hooks, and trust those that name foreword-hook")


def _not_connected(state: AgentState) -> Finding:
    event = state.seen.get("last_event")
    if event and time.time() - event["at"] < LATELY:
        says = "not connected by install, but seen: by hand, or before `foreword uninstall`"
        return Finding(state.agent, OK, f"{says}; {agent_line(state.seen)}")
    says = f"{_program(state)}, not connected: nothing is captured"
    return Finding(state.agent, NOTE, says, f"run `foreword install {state.agent}`")


def _program(state: AgentState) -> str:
    if not state.program:
        return f"its folder is here, but no `{state.wired.setup.binary}` on the PATH"
    return f"version {state.version}" if state.version else f"{state.program}, of unknown version"


def absent(agents: Sequence[AgentState]) -> list[Finding]:
    """Return one line for all agents that are not on this machine."""
    names = [each.agent for each in agents if not each.used]
    return [Finding("other agents", OK, f"not found here: {', '.join(names)}")] if names else []


def agent_line(seen: Mapping[str, Any]) -> str:
    """Return an agent's last event, last injection and number of sessions in a line."""
    event, injection = seen.get("last_event"), seen.get("last_injection")
    if not event:
        return "no event yet"
    last = "no injection yet"
    if injection:
        last = f"last injection {output.age(injection['at'])} ({injection['trigger']}, {injection['tokens']} tokens)"
    count = output.plural(seen["sessions"], "sessions") if seen.get("sessions") else ""
    return ", ".join(filter(None, (f"last event {output.age(event['at'])} ({event['name']})", last, count)))


def silent_agents(home: Home, environ: Mapping[str, str], seen: Mapping[str, Any]) -> dict[str, float]:
    """Return the connected agents that write transcripts but send no events, with the time of the last transcript."""
    from foreword.config import load
    from foreword.install.status import install_status

    if not load(home, environ).settings.capture:
        return {}
    found = {name: _silent(wired, seen.get(name, {})) for name, wired in install_status(home, environ).items()}
    return {name: at for name, at in found.items() if at}


def as_json(state: AgentState) -> dict[str, Any]:
    """Return an agent's state for `--json`."""
    wired = state.wired
    return {
        "agent": state.agent,
        "program": state.program,
        "version": state.version,
        "folder": str(wired.setup.folder),
        "found": state.used,
        "connected": wired.begun,
        "files": [str(file) for file in wired.files],
        "lacks": [{**vars(lack), "file": str(lack.file)} for lack in wired.gaps] if wired.begun else [],
        "missing_launchers": list(state.missing_launchers),
        "switched_off": wired.off,
        "trust": dict(state.trust),
        "silent_until": state.silent or None,
        "failures": len(state.problems),
        **NEVER_SEEN,
        **state.seen,
    }


def _agent_states(home: Home, environ: Mapping[str, str], *, seen: Mapping[str, Any] | None) -> Iterator[AgentState]:
    """Yield the agents one by one, since asking Codex takes seconds; *seen* is None where no worker answers."""
    from foreword.config import load
    from foreword.install.detect import place_of, version_of
    from foreword.install.status import install_status, missing_launchers

    capture = load(home, environ).settings.capture
    path = environ.get("PATH", "")
    programs = {
        name: shutil.which(wired.setup.binary, path=path) or "" for name, wired in install_status(home, environ).items()
    }
    versions = {name: version_of(program, environ=environ) for name, program in programs.items() if program}
    problems = [each for each in noted(str(home.trouble)) if each.at > time.time() - LATELY]
    for name, wired in install_status(home, environ, versions=versions).items():
        program, of_agent = programs[name], (seen or {}).get(name, {})
        yield AgentState(
            agent=name,
            program=program,
            version=versions.get(name, ""),
            wired=wired,
            missing_launchers=missing_launchers(wired, place=place_of(home, environ)),
            trust=codex_trust(program, environ, wired=wired) if name == "codex" and wired.begun and program else {},
            silent=_silent(wired, of_agent) if capture and seen is not None else 0.0,
            seen=of_agent,
            problems=tuple(each for each in problems if each.where.startswith(f"hook of {name}")),
            worker_answers=seen is not None,
        )


def _silent(wired: InstallStatus, seen: Mapping[str, Any]) -> float:
    """Return when a connected agent last wrote a transcript, if that is long after its last event; else 0."""
    event = seen.get("last_event")
    after = max(event["at"] if event else 0.0, wired.since)
    if not wired.begun or not after:
        return 0.0
    newest = 0.0
    for pattern in wired.setup.transcripts:
        for file in wired.setup.folder.glob(pattern):
            with suppress(OSError):
                newest = max(newest, file.stat().st_mtime)
    return newest if newest > after + SILENT_SECONDS else 0.0


def codex_trust(program: str, environ: Mapping[str, str], *, wired: InstallStatus) -> dict[str, str]:
    """Return each of our hooks and whether Codex trusts it: as Codex answers, else as its settings say."""
    on_file = _codex_trust_on_file(wired)
    if "trusted" not in on_file.values():
        return on_file  # starting Codex would create its databases where it was never used
    ours = {str(file) for file in wired.files}
    try:
        hooks = _codex_hooks(program, environ, folder=wired.setup.folder)
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError):
        hooks = None
    if hooks is None:
        return on_file
    return {
        str(hook.get("eventName")): str(hook.get("trustStatus")) if hook.get("enabled", True) else "disabled"
        for hook in hooks
        if isinstance(hook, dict)
        and str(hook.get("sourcePath")) in ours
        and "foreword-hook" in str(hook.get("command"))
    }


def _codex_hooks(program: str, environ: Mapping[str, str], *, folder: Path) -> list[Any] | None:
    """Return the answer of Codex's own server to `hooks/list`; None if it does not answer in time."""
    until = time.monotonic() + TRUST_SECONDS
    env = {**{name: environ[name] for name in CODEX_ENVIRON if name in environ}, "CODEX_HOME": str(folder)}
    client = {"clientInfo": {"name": "foreword", "title": "Foreword", "version": "0"}}
    with subprocess.Popen(  # noqa: S603 - the user's own client
        [program, "app-server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=env,
        cwd=folder,
        start_new_session=True,  # npm's wrapper starts the program itself as a child
    ) as server:
        assert server.stdin
        try:
            for number, (method, params) in enumerate(
                (("initialize", client), ("hooks/list", {"cwds": [str(folder)]}))
            ):
                request = {"id": number, "method": method, "params": params}
                server.stdin.write(jsonlib.dumps(request).encode() + b"\n")
                server.stdin.flush()
                answer = _codex_answer(server.stdout, number, until=until)
                if answer is None:
                    return None
            return [hook for each in answer["data"] for hook in each["hooks"]]
        finally:
            with suppress(OSError):
                server.stdin.close()  # then it exits by itself and leaves its databases intact
            try:
                server.wait(EXIT_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)


def _codex_answer(stream: Any, number: int, *, until: float) -> Any:
    """Return the result of a request from the server's lines; None when it is late or the server exits."""
    held = b""
    while (left := until - time.monotonic()) > 0:
        if not select.select([stream], [], [], left)[0]:
            return None
        part = os.read(stream.fileno(), 1 << 16)
        if not part:
            return None
        *lines, held = (held + part).split(b"\n")
        for line in lines:
            message = jsonlib.loads(line)
            if isinstance(message, dict) and message.get("id") == number:
                return message["result"]
    return None


def _codex_trust_on_file(wired: InstallStatus) -> dict[str, str]:
    """Return what Codex's settings say of our hooks; whether a trusted hook has changed since is not told by them."""
    from foreword.install.status import settings_of

    try:
        state = settings_of(wired.setup.folder / "config.toml").get("hooks", {}).get("state", {})
        trusted = {str(key) for key, entry in state.items() if entry.get("trusted_hash")}
    except (OSError, ValueError, AttributeError):
        trusted = set()
    lacking = [lack.what for lack in wired.gaps]
    found = {}
    for change in wired.setup.changes:
        if isinstance(change, Entry) and change.keys[0] == "hooks" and ".".join(change.keys) not in lacking:
            event = change.keys[-1]
            snake = re.sub(r"(?<!^)([A-Z])", r"_\1", event).lower()
            is_trusted = any(key.startswith(f"{change.file}:{snake}:") for key in trusted)
            found[event] = "trusted" if is_trusted else "untrusted"
    return found


def _print(finding: Finding) -> None:
    from rich.text import Text

    out = output.console()
    level = (f"{finding.state:<6}", STYLES[finding.state])
    out.print(Text.assemble(level, f"{finding.check}: {output.escape(finding.says)}"))
    if finding.way_out:
        out.print(Text(f"      {output.escape(finding.way_out)}", style="dim" if finding.state == NOTE else ""))


def _print_problems(groups: Sequence[Group]) -> None:
    if groups:
        output.write("\nwent wrong in the last seven days:")
    if len(groups) > MAX_PROBLEMS:
        output.write(f"  … and {len(groups) - MAX_PROBLEMS} more, in logs/trouble.jsonl")
    for each in groups[-MAX_PROBLEMS:]:
        output.write(f"  {output.age(each.last)}, {each.count}x, {each.where}: {each.what}")
