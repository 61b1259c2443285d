"""The command line as people use it: a real process, a real worker, a scratch home."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from foreword import models
from foreword.cli import memories
from foreword.cli.main import app
from foreword.config import SETTINGS
from foreword.problems import Problem, note
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.conftest import wait_for
from tests.flow.forked import Shell, foreword, scratch_shell
from tests.scratch import suspend

ROOT = Path(__file__).parents[2]
SECRET = "ghp_" + "a1B2" * 9
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    """One home and one worker for all that leaves the others alone."""
    with scratch_shell() as made:
        yield made


@pytest.fixture
def fresh() -> Iterator[Shell]:
    with scratch_shell() as made:
        yield made


def commands() -> dict[str, Any]:
    """Every command with its full name."""

    def walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
        for word, inner in getattr(command, "commands", {}).items():
            yield f"{name}{word}", inner
            yield from walk(inner, f"{name}{word} ")

    return dict(walk(typer.main.get_command(app), ""))


# ---- what holds for all


@pytest.mark.parametrize("name", commands())
def test_every_command_is_documented_with_its_options(name: str) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    found = re.search(rf"^### `foreword {name.split(maxsplit=1)[0]}`\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"docs/cli.md has no section on `foreword {name}`"
    assert f"foreword {name}" in found[0]
    options = [option for each in commands()[name].params for option in each.opts if option.startswith("--")]
    assert [option for option in options if option not in found[1] and option != "--help"] == []


@pytest.mark.parametrize("name", commands())
def test_every_command_explains_itself_with_an_example(name: str) -> None:
    group = name.split(maxsplit=1)[0]
    assert CliRunner().invoke(app, [*name.split(), "--help"]).exit_code == 0
    shown = CliRunner().invoke(app, [group, "--help"]).output
    assert "Example" in shown
    assert f"foreword {group}" in shown


def test_every_kind_is_explained() -> None:
    assert list(memories.KINDS) == list(models.KINDS)


def test_without_a_command_the_commands_are_listed(shell: Shell) -> None:
    output = shell.says()
    assert all(f"  {name} " in output for name in commands() if " " not in name)
    assert re.fullmatch(r"foreword \d+\.\d+\.\d+\n", shell.says("--version"))


def test_a_wrong_question_is_told_with_exit_code_2(shell: Shell) -> None:
    assert "No such command 'serach'. Did you mean `search`?" in shell.run("serach", code=2).stderr
    assert "No such option" in shell.run("search", "x", "--fuzzy", code=2).stderr
    assert "30m" in shell.run("search", "x", "--since", "soon", code=2).stderr
    assert "x>=1" in shell.run("search", "x", "--limit", "0", code=2).stderr


TYPOS = {
    "serach": "search", "instal": "install", "confg": "config", "docter": "doctor", "sesions": "sessions",
    "revew": "review", "forgt": "forget", "improt": "import", "explian": "explain", "contxt": "context",
    "delete": "forget", "remember": "add",
}  # fmt: skip
SETTING_TYPOS = {
    "injct": "inject", "capure": "capture", "search_limt": "search_limit", "of_projects": "off_projects",
    "model_provder": "model_provider", "tydy": "tidy", "store_max": "store_max_mb", "backups": "backups_keep",
    "deadline_promt_ms": "deadline_prompt_ms", "spool_max": "spool_max_mb",
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "meant"),
    [([typo], meant) for typo, meant in TYPOS.items()]
    + [(["config", "set", typo, "1"], meant) for typo, meant in SETTING_TYPOS.items()]
    + [(["install", "claude"], "claude-code"), (["add", "decison", "x"], "decision"), (["goal", "lst"], "list")],
)
def test_a_mistyped_name_is_answered_with_the_right_one(shell: Shell, words: list[str], meant: str) -> None:
    ended = foreword(*words, cwd=shell.folder, env=shell.environ)
    assert ended.returncode
    assert f"id you mean `{meant}`?" in ended.stderr


def test_the_beginning_of_an_id_is_enough_wherever_an_id_is_taken(fresh: Shell) -> None:
    old = fresh.add("decision", "Slots are stored in local time")
    new = fresh.add("learning", "Slots are stored in UTC")
    goal = fresh.says("goal", "add", "Bookings survive a restart").split()[0]
    assert old in fresh.says("show", old[:6])
    assert old in fresh.says("explain", "dec-")
    assert "Slots are kept in local time" in fresh.says("revise", "dec", "--title", "Slots are kept in local time")
    assert new in fresh.says("pin", "lea")
    assert old in fresh.says("graph", "dec")
    assert f"revised       {old}" in fresh.says("log", "--memory", "dec")
    assert new in fresh.says("supersede", "dec-", "lea-")
    assert f"[x] {goal}" in fresh.says("goal", "done", "goa")
    assert fresh.json("forget", "lea", "--yes")["removed"]["memories"] == 1
    fresh.add("decision", "Another one")
    several = fresh.run("show", "dec-", code=1).stderr
    assert "several ids begin with 'dec-'" in several
    assert old in several
    assert "there is no memory 'zzz'" in fresh.run("show", "zzz", code=1).stderr


def test_a_failure_is_one_line_and_its_hint(shell: Shell) -> None:
    result = shell.run("status", code=1, FOREWORD_HOME="relative").stderr.splitlines()
    assert len(result) == 2
    assert result[0].startswith("error: FOREWORD_HOME")
    assert result[1].startswith("hint: ")
    bad = shell.run("search", "x", "--kind", "rumour", code=1).stderr
    assert "error: unknown kind 'rumour'" in bad


def test_an_interrupted_command_exits_130(shell: Shell) -> None:
    waiting = subprocess.Popen(
        [sys.executable, "-m", "foreword", "note", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=shell.environ,
        cwd=shell.folder,
    )
    called = Path(f"/proc/{waiting.pid}/syscall")
    if called.exists():  # until it reads its stdin: 0 on x86, 63 on ARM
        wait_for(lambda: called.read_text().split()[:2] in (["0", "0x0"], ["63", "0x0"]))
    else:
        time.sleep(3)
    waiting.send_signal(signal.SIGINT)
    output = waiting.communicate(timeout=20)
    assert (waiting.returncode, output[1]) == (130, b"")


def test_a_reader_that_has_left_is_no_failure_to_talk_about(shell: Shell) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-m", "foreword", "config"],
        check=False, stdout=writing, stderr=subprocess.PIPE, env=shell.environ, timeout=60,
    )  # fmt: skip
    os.close(writing)
    assert b"Traceback" not in ended.stderr
    assert b"error" not in ended.stderr.lower()


# ---- memories


def test_what_is_added_is_found_and_shown(shell: Shell) -> None:
    id = shell.add(
        "decision", "Slots are stored in UTC", "--why", "two zones", "--body", "Only show.py converts.",
        "--file", "rooms/slots.py",
    )  # fmt: skip
    output = shell.says("search", "slots", "utc")
    assert "Slots are stored in UTC" in output
    assert id in output
    shown = shell.says("show", id)
    for each in (
        "Slots are stored in UTC",
        "two zones",
        "Only show.py converts.",
        "rooms/slots.py",
    ):
        assert each in shown
    [both] = shell.json("show", id)["memories"]
    assert both["memory"]["detail"] == {"why": "two zones"}
    assert shell.json("add", "learning", "a test", "--scope", "language:python")["scope"] == "language:python"


def test_a_body_may_come_from_stdin(shell: Shell) -> None:
    id = shell.add("failure", "Mail bounces", "--body", "-", "--fixed-by", "the right sender", typed="first\nsecond\n")
    [found] = shell.json("show", id)["memories"]
    assert found["memory"]["body"] == "first\nsecond\n"
    assert "the right sender" in shell.says("search", "mail", "bounces")


def test_a_note_takes_words_without_quotes(shell: Shell) -> None:
    id = shell.says("note", "ask", "the", "owner", "about", "holidays").split()[0]
    assert id.startswith("not-")
    assert "ask the owner about holidays" in shell.says("show", id)


def test_a_secret_is_neither_kept_nor_hidden_that_it_was_not(shell: Shell) -> None:
    kept = shell.run("add", "note", f"the token is {SECRET}")
    assert SECRET not in kept.stdout
    assert "[redacted:" in kept.stdout
    assert "taken out" in kept.stderr
    assert not any(SECRET.encode() in path.read_bytes() for path in shell.home.root.glob("memory.db*"))
    assert "taken out" not in shell.run("add", "note", "no secret here").stderr


def test_an_unknown_kind_is_answered_with_the_kinds(shell: Shell) -> None:
    result = shell.run("add", "rumour", "x", code=2).stderr
    assert all(f"  {kind} " in result for kind in models.KINDS)


def test_an_unknown_id_is_an_error(shell: Shell) -> None:
    assert "error: there is no memory 'not-00000000'" in shell.run("show", "not-00000000", code=1).stderr


def test_stored_text_cannot_steer_a_terminal(shell: Shell) -> None:
    evil = "[bold red]quiet[/bold red] \x1b[2J\x1b]0;owned\x07 \u202eegami \x9b31m"
    id = shell.add("learning", evil, "--body", f"{evil}\n{evil}", "--why", evil)
    for words in (["show", id], ["search", "quiet"], ["search", "quiet", "--compact"], ["search", "quiet", "--json"]):
        output = shell.run(*words)
        assert not CONTROL.search(output.stdout + output.stderr)
        assert "\u202e" not in output.stdout
    assert "[bold red]quiet[/bold red]" in shell.says("show", id)
    assert not CONTROL.search(shell.says("context", "quiet egami"))


# ---- finding


def test_search_has_a_line_a_reason_and_a_filter_for_those_who_ask(shell: Shell) -> None:
    id = shell.add("pattern", "Let the constraint decide", "--body", "gigantic hippopotamus")
    [line] = shell.says("search", "hippopotamus", "--compact").splitlines()
    assert re.fullmatch(rf"\[pattern\] {id} \| Let the constraint decide \| now \| .+ \| \d{{4}}-\d\d-\d\d", line)
    explained = shell.says("search", "hippopotamus", "--explain")
    assert all(factor in explained for factor in ("match", "recency", "importance", "reinforcement", "scope", "task"))
    assert [each["id"] for each in shell.json("search", "hippopotamus")["results"]] == [id]
    assert shell.json("search", "hippopotamus", "--kind", "note", "--kind", "goal")["results"] == []
    assert shell.json("search", "hippopotamus", "--since", "7d", "--limit", "1")["results"]
    assert shell.json("search", "hippopotamus", "--since", "2999-01-31")["results"] == []


def test_search_stays_in_its_project_and_reaches_others_when_told(shell: Shell) -> None:
    other = shell.root / "other"
    other.mkdir(exist_ok=True)
    (other / "pyproject.toml").write_text("")
    shell.add("note", "zebra crossing", "--project", str(other))
    silent = shell.run("search", "zebra")
    assert silent.stdout == ""
    assert "nothing found" in silent.stderr
    assert "zebra crossing" in shell.says("search", "zebra", "--project", "../other")


def test_context_is_exactly_what_an_agent_gets_and_its_cost_is_beside_it(shell: Shell) -> None:
    shell.add("decision", "Peacocks in the palace garden are counted twice, at dawn by ear and at dusk by eye")
    request = shell.run("context", "how", "are", "peacocks", "in", "the", "palace", "garden", "counted?")
    assert request.stdout.startswith("--- foreword")
    assert request.stdout.endswith("--- end foreword ---\n")
    assert re.match(r"\d+ of 500 tokens; \d+\.\d ms; layers: notes \d+", request.stderr)
    result = shell.json("context", "how are peacocks in the palace garden counted?")
    assert result["context"] + "\n" == request.stdout
    assert result["tokens"] <= result["budget"] == 500


def test_explain_replays_an_injection_word_for_word_with_every_factor(fresh: Shell) -> None:
    result = fresh.run("explain", code=1).stderr
    assert "nothing was injected in this project yet" in result
    assert "foreword context" in result
    walrus = "The walrus of the northern bay swims at night"
    id = fresh.add("decision", walrus, "--why", "it is too cold for boats, herrings and divers")
    client = Client(fresh.home)
    where = {"project_path": str(fresh.folder), "session_id": "s1", "host": "codex"}
    context = client.get("/api/context", prompt="when does the walrus of the northern bay swim?", **where)
    output = fresh.says("explain")
    assert f"\n{context['context']}\n" in output
    assert re.search(rf"^{id}  notes, \d+ tokens  {walrus}$", output, re.MULTILINE)
    assert re.search(r"^  match [01].\d{3} × recency 1.000 × importance 0.949 × .* = 0.\d{4}$", output, re.MULTILINE)
    for row in (
        r"id +inj-",
        "trigger +prompt",
        "agent +codex",
        "session +s1",
        r"cost +\d+ of 500",
        "searched for +.*walrus",
    ):
        assert re.search(f"^{row}", output, re.MULTILINE), row
    assert fresh.says("explain", context["injection"]) == output
    assert fresh.says("explain", context["injection"].upper()) == output
    assert fresh.json("explain", context["injection"])["injection"]["text"] == context["context"]
    client.get("/api/context", trigger="session_start", source="startup", **where)
    output = fresh.says("explain")
    assert "session_start (startup)" in output
    assert "skipped" not in output, "what is empty is no news"
    output = fresh.says("explain", id)
    assert "score now, without words to match: match" in output
    assert len(re.findall("^inj-", output, re.MULTILINE)) == 2
    assert [each["trigger"] for each in fresh.json("explain", id)["shown"]] == ["session_start", "prompt"]
    for unknown, hint in (("inj-0000000000", "foreword explain"), ("dec-00000000", "foreword search")):
        assert hint in fresh.run("explain", unknown, code=1).stderr
    never = fresh.add("note", "unseen")
    assert "shown 0x" in fresh.says("explain", never)


def test_resume_says_where_things_stand_and_is_not_counted_as_shown(fresh: Shell) -> None:
    nothing = fresh.run("resume")
    assert nothing.stdout == ""
    assert "nothing is known yet" in nothing.stderr
    client = Client(fresh.home)

    def keep(kind: str, title: str, ago: float, **detail: Any) -> None:
        where = {"project_path": str(fresh.folder), "created": time.time() - ago}
        client.post("/api/memories", {"kind": kind, "title": title, "body": "It works.", "detail": detail, **where})

    keep("handoff", "The mail is half done", 7200, next=["call offer_slot()"], blockers=["the sandbox"])
    keep("summary", "Wrote the waiting list", 9000, next=["long done"])
    keep("summary", "Tried the mail", 3600, next=["verify the domain"])
    output = fresh.says("resume")
    assert (
        output.index("Where things stand") < output.index("Open: verify the domain") < output.index("call offer_slot()")
    )
    assert "Open: the sandbox" in output
    assert "long done" not in output, "a handoff came after it"
    sessions = output[output.index("Recent sessions") :]
    assert sessions.index("Tried the mail") < sessions.index("Wrote the waiting list")
    assert "Wrote" not in fresh.says("resume", "--limit", "1")
    answer = fresh.json("resume")
    assert [point["kind"] for point in answer["standing"]] == ["summary", "handoff", "handoff", "handoff"]
    assert client.get("/api/injections")["injections"] == []


def test_context_with_nothing_to_say_says_nothing(shell: Shell) -> None:
    silent = shell.run("context", "xylophone maintenance")
    assert silent.stdout == ""
    assert "nothing" in silent.stderr


# ---- how it is


def test_status_tells_what_is_there_and_what_went_wrong_once(fresh: Shell) -> None:
    before = fresh.says("status")
    assert "not running" in before
    assert not fresh.home.root.exists()
    fresh.add("note", "one")
    fresh.says("context")
    client = Client(fresh.home)
    assert client.get("/api/injections")["injections"] == []  # looking is not giving
    for _ in range(3):
        note(str(fresh.home.trouble), Problem(at=time.time(), where="hook: spool", what="the disk was full"))
    result = fresh.json("status")
    assert result["running"]
    assert result["store"]["counts"]["memories"] == 1
    page = client.get("/api/health", full=1)["store"]
    assert result["store"]["bytes"] == page["bytes"] > 0
    assert [(each["what"], each["count"]) for each in result["troubles"]] == [("the disk was full", 3)]
    first, second = fresh.says("status"), fresh.says("status")
    assert "3x, hook: spool: the disk was full" in first
    assert page["counted"] in first
    assert "the disk was full" not in second
    assert "the disk was full" in fresh.says("doctor")


def test_doctor_finds_a_healthy_home_well(shell: Shell) -> None:
    shell.says("worker", "start")
    assert shell.says("doctor").endswith("all is well\n")
    result = shell.json("doctor")
    assert result["ok"]
    checked = {each["check"] for each in result["checks"]}
    assert checked >= {"home", "disk", "socket", "worker", "database", "hook"}


def test_doctor_names_the_wrong_setting_and_the_way_out(fresh: Shell) -> None:
    fresh.home.prepare()
    fresh.home.config.write_text("# mine\ninject = 7\n")
    fresh.home.synonyms.write_text("deploy = 3\n")
    output = fresh.says("doctor", code=1)
    assert "config.toml: `inject` must be true or false" in output
    assert "synonyms.toml: 'deploy' must be one word" in output
    assert not fresh.json("doctor", code=1)["ok"]
    assert "`inject` must be" in fresh.run("config").stderr


def test_doctor_speaks_of_a_home_that_is_missing_or_useless_without_touching_it(fresh: Shell) -> None:
    output = fresh.says("doctor")
    assert "is not there yet" in output
    assert not fresh.home.root.exists()
    assert "cannot be created" in fresh.says("doctor", code=1, FOREWORD_HOME=str(fresh.root / "no" / "such"))
    fresh.home.root.write_text("a file")
    assert "is a file" in fresh.says("doctor", code=1)
    assert "error: " in fresh.run("note", "x", code=1).stderr
    fresh.home.root.unlink()
    fresh.home.prepare()
    fresh.home.root.chmod(0o755)
    assert "accessible to you alone" in fresh.says("doctor")
    assert fresh.home.root.stat().st_mode & 0o777 == 0o700
    long = str(fresh.root / ("a" * 110))
    assert "socket" in fresh.says("doctor", code=1, FOREWORD_HOME=long)


def test_a_damaged_index_is_diagnosed_and_built_anew(fresh: Shell) -> None:
    fresh.add("note", "giraffes are tall")
    fresh.says("worker", "stop")
    database = sqlite3.connect(fresh.home.database)
    database.execute("DROP TABLE words")
    database.commit()
    database.close()
    assert "run `foreword index`" in fresh.says("doctor", code=1)
    assert "words" in fresh.run("search", "giraffes").stderr
    assert fresh.says("index") == "1 memory indexed\n"
    assert "giraffes" in fresh.says("search", "giraffes")
    assert fresh.says("doctor").endswith("all is well\n")


def test_a_database_of_a_newer_version_is_told_with_the_way_out(fresh: Shell) -> None:
    fresh.add("note", "from the future")
    fresh.says("worker", "stop")
    database = sqlite3.connect(fresh.home.database)
    database.execute("PRAGMA user_version = 99")
    database.commit()
    database.close()
    assert "upgrade Foreword" in fresh.says("doctor", code=1)
    assert "hint: upgrade Foreword" in fresh.run("search", "future", code=1).stderr
    assert "upgrade Foreword" in fresh.says("status")


def test_a_worker_that_hangs_is_told_as_such(fresh: Shell) -> None:
    fresh.says("worker", "start")
    pid = lifecycle.pid_of(fresh.home)
    suspend(pid)
    try:
        assert f"process {pid} runs and does not answer" in fresh.says("doctor", code=1)
    finally:
        os.kill(pid, signal.SIGCONT)


# ---- the worker


def test_the_worker_starts_tells_and_leaves(fresh: Shell) -> None:
    assert fresh.says("worker", "stop") == "no worker runs\n"
    assert f"process {lifecycle.pid_of(fresh.home)}" not in fresh.says("worker", "start")
    assert "already runs" in fresh.says("worker", "start")
    assert fresh.json("status")["worker"]["pid"] == lifecycle.pid_of(fresh.home)
    assert "already runs" in fresh.run("worker", "run", code=1).stderr
    assert fresh.says("worker", "stop") == "the worker has stopped\n"
    assert lifecycle.pid_of(fresh.home) == 0


def test_the_worker_can_be_run_in_a_terminal(fresh: Shell) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "foreword", "worker", "run"], env=fresh.environ, stderr=subprocess.PIPE
    )
    try:
        wait_for(lambda: lifecycle.pid_of(fresh.home) == running.pid)
        assert fresh.json("status")["worker"]["pid"] == running.pid
        assert fresh.says("status", "--line") == "foreword: quiet\n"
        fresh.says("worker", "stop")
        assert running.wait(20) == 0
        assert fresh.says("status", "--line") == "\n"
    finally:
        running.kill()
        running.communicate()


def test_after_an_upgrade_a_command_finds_a_worker_of_the_new_build(fresh: Shell) -> None:
    package = fresh.root / "lib" / "foreword"
    shutil.copytree(ROOT / "src" / "foreword", package, ignore=shutil.ignore_patterns("__pycache__"))
    fresh.environ["PYTHONPATH"] = str(package.parent)
    fresh.add("note", "before")
    old = Client(fresh.home).get("/api/health")["build"]
    (package / "projects.py").write_text((package / "projects.py").read_text() + "\n# newer\n")
    fresh.says("search", "before")
    assert Client(fresh.home).get("/api/health")["build"] != old


# ---- settings


def test_config_lists_every_setting_and_where_it_came_from(shell: Shell) -> None:
    output = shell.says("config", FOREWORD_SEARCH_LIMIT="7")
    assert all(re.search(rf"^{setting.name} ", output, re.MULTILINE) for setting in SETTINGS)
    assert re.search(r"^search_limit +7 +environment ", output, re.MULTILINE)
    result = shell.json("config")
    assert {each["name"] for each in result["settings"]} >= {setting.name for setting in SETTINGS}
    assert result["problems"] == []


def test_config_changes_one_setting_and_takes_it_back(fresh: Shell) -> None:
    def setting(name: str) -> tuple[Any, str]:
        return next((each["value"], each["from"]) for each in fresh.json("config")["settings"] if each["name"] == name)

    assert setting("inject") == (True, "default")
    assert fresh.says("config", "set", "inject", "off") == "inject = false\n"
    assert setting("inject") == (False, "file")
    assert "environment" in fresh.run("config", "set", "inject", "off", FOREWORD_INJECT="1").stderr
    assert "no longer" in fresh.says("config", "unset", "inject")
    assert "was not" in fresh.says("config", "unset", "inject")
    assert fresh.says("config", "set", "layout.prompt.budget", "300").endswith("= 300\n")
    assert setting("layout.prompt.budget") == (300, "file")
    assert "did you mean" in fresh.run("config", "set", "injekt", "on", code=1).stderr
    assert "docs/settings.md" in fresh.run("config", "set", "layout.lunch.cap", "1", code=1).stderr
    assert "true or false" in fresh.run("config", "set", "inject", "perhaps", code=1).stderr


def test_doctor_says_that_the_project_you_are_in_is_off(fresh: Shell) -> None:
    fresh.says("config", "set", "off_projects", str(fresh.folder))
    result = [each["says"] for each in fresh.json("doctor")["checks"] if each["check"] == "switches"]
    assert len(result) == 1
    assert "off_projects" in result[0]


# ---- the demo


def test_the_demo_shows_what_an_agent_gets_and_leaves_nothing(fresh: Shell) -> None:
    scratch = fresh.root / "t"
    scratch.mkdir()
    result = fresh.run("demo", TMPDIR=str(scratch), FOREWORD_OFF="1")
    assert result.stderr == ""
    assert not CONTROL.search(result.stdout)
    start, prompt = re.findall(r"^--- foreword.*?^--- end foreword ---$", result.stdout, re.MULTILINE | re.DOTALL)
    assert "## Where things stand" in start
    assert "rooms/db.py" in prompt
    assert re.search(r"^\[foreword, history\] `make unit` failed", result.stdout, re.MULTILINE)
    assert "(nothing: it answers or continues the running conversation)" in result.stdout
    assert len(re.findall(r"[1-9]\d* of \d+ tokens, \d+ ms", result.stdout)) == 3
    assert all(word in commands() for word in re.findall(r"^foreword (\w+)", result.stdout, re.MULTILINE))
    assert list(scratch.iterdir()) == []
    assert not fresh.home.root.exists()
