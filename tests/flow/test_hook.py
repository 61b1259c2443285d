"""The hook as a host runs it: worker up, worker away, worker gone wrong; always exit 0, one object or nothing."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from foreword.capture.payload import HookCall
from foreword.config import load
from foreword.hook import build, context, offline
from foreword.hook.spool import hook_calls
from foreword.models import Context, Memory, Trigger
from foreword.paths import Home, worker_command
from foreword.problems import noted
from foreword.projects import resolve
from foreword.store import Store
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.conftest import CLEAN, PATIENT, PYTHON, HookRunner, end_worker, wait_for
from tests.scratch import processes_in, suspend

PROMPT = "why does the checkout transport time out?"
DIGS = "the wombat digs under the harbour wall at night"


def prompt(project: str, text: str = PROMPT, **more: str) -> dict[str, str]:
    return {"session_id": "s1", "cwd": project, "hook_event_name": "UserPromptSubmit", "prompt": text} | more


def opening(project: str) -> dict[str, str]:
    return {"session_id": "s1", "cwd": project, "hook_event_name": "SessionStart", "source": "startup"}


@pytest.fixture
def filled(home: Home, project: str) -> Home:
    """A store that knows why the transport times out, and a rule; closed."""
    store = Store(home.database, backups=home.backups)
    owner = resolve(project)
    now = time.time()
    about = {"project": owner.key, "scope": owner.scope, "created": now, "confirmed": now}
    store.memories.put(
        [
            Memory(
                kind="decision", title="The checkout HTTPTransport retries twice", body="because of the bank", **about
            ),
            Memory(
                kind="failure", title="checkout transport timeout after 5 s", detail={"fixed_by": "raise it"}, **about
            ),
            Memory(kind="preference", title="Run the tests with make test", **about),
            Memory(kind="handoff", title="Next: the bank's sandbox", detail={"next": ["ask for a sandbox"]}, **about),
        ]
    )
    store.close()
    return home


def test_what_was_added_comes_back_with_the_worker_up(filled: Home, host: HookRunner, start, project):
    client = start()
    got = host.context("UserPromptSubmit", prompt(project))
    assert "HTTPTransport" in got
    assert got.startswith("--- foreword")
    assert "Run the tests with make test" in host.context("SessionStart", opening(project))
    assert [event["hook_event_name"] for event in host.stored()] == ["UserPromptSubmit", "SessionStart"]
    assert [each["trigger"] for each in client.get("/api/injections")["injections"]] == ["session_start", "prompt"]


def test_what_was_added_comes_back_with_the_worker_away_and_the_event_waits_in_the_spool(
    filled, host: HookRunner, start, project
):
    host.write_hook()
    assert "HTTPTransport" in host.context("UserPromptSubmit", prompt(project))
    assert "Run the tests with make test" in host.context("SessionStart", opening(project))
    assert host.spooled() > 0
    start()
    wait_for(lambda: host.spooled() == 0)
    assert [event["hook_event_name"] for event in host.stored()] == ["UserPromptSubmit", "SessionStart"]
    assert noted(str(filled.trouble)) == ()


def test_a_plugin_that_tells_no_time_loses_nothing_and_keeps_nobody_waiting(
    filled: Home, host: HookRunner, start, project
):
    host.write_hook()
    words = build.command(filled, host="opencode", event="chat.message")
    odd = ["nan why", "inf why", "-1e308 why", "1" * 400, "then why", "² why", ""]
    payloads = [{"directory": project, "input": {"sessionID": f"s{n}"}, "prompt": PROMPT} for n in range(len(odd))]
    for stamp, payload in zip(odd, payloads, strict=True):
        ended = subprocess.run(
            [*words[:-1], "--asked", stamp, words[-1]],
            check=False,
            input=json.dumps(payload).encode(),
            capture_output=True,
            timeout=30,
            env=CLEAN,
        )
        assert (ended.returncode, ended.stderr) == (0, b""), stamp
        assert b"HTTPTransport" in ended.stdout, stamp
    start()
    wait_for(lambda: host.spooled() == 0)
    assert host.stored() == payloads
    assert noted(str(filled.trouble)) == ()


def test_synonyms_work_with_the_worker_away_too_and_the_users_come_first(filled: Home, host: HookRunner, project):
    filled.config.write_text('prompt_style = "index"\n')
    host.write_hook()
    store = Store(filled.database, backups=filled.backups)
    owner = resolve(project)
    store.memories.put([Memory("decision", "Checkout has a helm chart", project=owner.key, created=time.time())])
    store.close()
    assert host.context("UserPromptSubmit", prompt(project, "k8s")).count("helm") == 1  # k8s = [..., "helm"]
    assert host.context("UserPromptSubmit", prompt(project, "moneyhouse")) == ""
    many = "".join(f"padding{n} = ['{'x' * 60}']\n" for n in range(300))
    filled.synonyms.write_text(f"{many}k8s = []\nmoneyhouse = ['bank']\n")
    host.write_hook()
    assert host.context("UserPromptSubmit", prompt(project, "k8s")) == ""
    assert "bank" in host.context("UserPromptSubmit", prompt(project, "moneyhouse"))


def test_an_event_that_cannot_be_kept_in_time_is_kept_by_another_process(
    filled: Home, host: HookRunner, start, project
):
    hurried = build.config(filled, load(filled, PATIENT).settings, worker=[]) | {"deadline_all": 0.5}
    host.write_hook()
    filled.hook.write_text(build.hook_text(filled, hurried))
    with (filled.spool / "current").open("ab") as spool:
        fcntl.flock(spool, fcntl.LOCK_EX)  # nobody can append
        ended = host.tell("UserPromptSubmit", prompt(project))
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
        assert host.spooled() == 0
    wait_for(host.spooled)
    start()
    assert [payload["prompt"] for payload in host.stored()] == [prompt(project)["prompt"]]
    assert not noted(str(filled.trouble))


def test_settings_that_change_behind_the_hook_count_at_once(filled: Home, host: HookRunner, project):
    stop = {"session_id": "s1", "cwd": project, "hook_event_name": "Stop"}
    host.write_hook()
    filled.config.write_text("capture = false\n")
    host.tell("Stop", stop)
    assert host.spooled() == 0
    filled.config.unlink()
    host.tell("Stop", stop, FOREWORD_CAPTURE="false")
    assert host.spooled() == 0
    filled.config.write_text(f'off_projects = ["{project}"]\n')
    host.write_hook()
    host.tell("Stop", stop)
    assert host.spooled() == 0
    filled.config.write_text("capture = true\n")
    host.tell("Stop", stop)
    assert host.spooled()


@pytest.mark.parametrize("name", ["session_start", "prompt"])
def test_the_hook_and_the_package_give_the_same_bytes(filled: Home, host: HookRunner, project, name):
    host.write_hook()
    event, payload = {
        "session_start": ("SessionStart", opening(project)),
        "prompt": ("UserPromptSubmit", prompt(project)),
    }[name]
    got = host.context(event, payload)
    here = offline.Offline(build.config(filled, load(filled, {}).settings, worker=[]), agent="claude-code")
    trigger = Trigger(
        name=name, project=resolve(project), session="s2", prompt=payload.get("prompt", ""), host="claude-code"
    )
    assert got
    again = context.recalled(here, trigger, now=time.time(), until=time.monotonic() + 5)
    assert isinstance(again, Context)
    assert got == again.text


def test_the_hook_starts_a_worker_for_the_next_time(filled: Home, host: HookRunner, start, project):
    host.write_hook(worker=worker_command())
    host.context("UserPromptSubmit", prompt(project))
    wait_for(lambda: lifecycle.pid_of(filled))
    wait_for(lambda: host.spooled() == 0)
    assert len(host.stored()) == 1


def test_a_crash_loop_makes_few_starts(filled: Home, host: HookRunner, project, tmp_path: Path):
    counter = tmp_path / "starts"
    host.write_hook(worker=["/bin/sh", "-c", f"echo x >> {counter}; exit 1"])
    began = time.monotonic()
    for number in range(12):
        assert host.tell("UserPromptSubmit", prompt(project, prompt_id=str(number))).returncode == 0
    wait_for(counter.exists)
    assert counter.read_text().count("x") <= 1 + (time.monotonic() - began) // offline.START_EVERY


def test_a_hung_worker_is_not_waited_for_and_nothing_is_lost_or_doubled(filled, host: HookRunner, start, project):
    start()
    host.write_hook()
    host.context("UserPromptSubmit", prompt(project, "hello there, transport"))
    pid = lifecycle.pid_of(filled)
    suspend(pid)
    got = host.context("UserPromptSubmit", prompt(project, session_id="s2"))
    os.kill(pid, signal.SIGCONT)
    assert "HTTPTransport" in got, noted(str(filled.trouble))
    wait_for(lambda: host.spooled() == 0)
    wait_for(lambda: len(host.stored()) >= 2)
    assert lifecycle.stop(filled)  # the stopped worker had it in its backlog as well: it is through with that now
    assert [event["prompt"] for event in host.stored()] == ["hello there, transport", PROMPT]
    assert any("worker" in trouble.where for trouble in noted(str(filled.trouble)))


def test_a_worker_that_answers_nonsense_counts_as_away(filled: Home, host: HookRunner, project):
    host.write_hook()
    answers = [
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
        b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"half":',
        b"garbage",
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        b"SSH-2.0-OpenSSH_9.2\r\n",
    ]
    for number, answer in enumerate(answers):
        waiting = host.spooled()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(filled.socket))
            listener.listen()
            thread = threading.Thread(target=_answer_once, args=(listener, answer))
            thread.start()
            got = host.context("UserPromptSubmit", prompt(project, session_id=f"s{number}"))
            thread.join()
        filled.socket.unlink()
        assert "HTTPTransport" in got, answer
        assert host.spooled() > waiting, answer
        assert len(noted(str(filled.trouble))) >= 1, answer
        filled.trouble.unlink()


def test_a_refused_connection_is_no_trouble(filled: Home, host: HookRunner, project):
    host.write_hook()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(filled.socket))
    assert "HTTPTransport" in host.context("UserPromptSubmit", prompt(project))
    assert noted(str(filled.trouble)) == ()


def test_off_means_neither_captured_nor_injected(filled: Home, host: HookRunner, start, project):
    host.write_hook()
    assert host.context("UserPromptSubmit", prompt(project), FOREWORD_OFF="1") == ""
    assert host.spooled() == 0
    start()
    assert host.context("UserPromptSubmit", prompt(project), FOREWORD_OFF="1") == ""
    assert host.stored() == []


@pytest.mark.parametrize("worker", ["up", "away"])
def test_capture_and_inject_are_switched_each_alone(filled: Home, host: HookRunner, start, project, worker):
    for setting, got_context, kept in (("capture = false", True, False), ("inject = false", False, True)):
        filled.config.write_text(setting)
        client = start() if worker == "up" else None
        if worker == "away":
            host.write_hook()
        assert bool(host.context("UserPromptSubmit", prompt(project, prompt_id=setting))) is got_context
        if client:
            assert bool(host.stored()) is kept
            end_worker(filled)
        else:
            waiting = list(hook_calls(filled.spool.joinpath("current").read_bytes()))
            assert any(isinstance(each, HookCall) and not each.injection for each in waiting) is kept
            filled.spool.joinpath("current").unlink()


@pytest.mark.parametrize("worker", ["up", "away"])
def test_a_project_that_is_off_is_neither_captured_nor_shown(filled: Home, host: HookRunner, start, project, worker):
    filled.config.write_text(f"off_projects = [{json.dumps(project)}]")
    host.write_hook()
    if worker == "up":
        start()
    assert host.context("UserPromptSubmit", prompt(project)) == ""
    assert host.spooled() == 0
    assert worker == "away" or host.stored() == []


@pytest.mark.parametrize("worker", ["up", "away"])
def test_secrets_reach_no_file(filled: Home, host: HookRunner, start, project, worker):
    secret = "ghp_" + "Zq7" * 12
    host.write_hook()
    if worker == "up":
        start()
    host.context(
        "UserPromptSubmit", prompt(project, f"transport with {secret} and <private>the salary is 12345</private>")
    )
    end_worker(filled)
    files = [path for path in filled.root.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert secret.encode() not in path.read_bytes(), path
        assert b"the salary" not in path.read_bytes(), path


def test_another_project_is_never_shown(filled: Home, host: HookRunner, start, tmp_path: Path):
    other = tmp_path / "elsewhere" / "shop"  # the same folder name
    other.mkdir(parents=True)
    (other / "pyproject.toml").write_text("")
    host.write_hook()
    assert host.context("UserPromptSubmit", prompt(str(other))) == ""
    start()
    assert host.context("UserPromptSubmit", prompt(str(other))) == ""
    assert host.context("SessionStart", opening(str(other))) == ""


def test_a_sub_agent_is_neither_captured_nor_answered(filled: Home, host: HookRunner, start, project):
    start()
    assert host.context("UserPromptSubmit", prompt(project, agent_id="a1")) == ""
    assert host.stored() == []


def test_a_host_that_keeps_stdin_open_is_answered_all_the_same(filled: Home, host: HookRunner, project):
    host.write_hook(deadline_stdin=2.0)
    command = build.command(filled, host="claude-code", event="UserPromptSubmit")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as hook:
        assert hook.stdin is not None
        assert hook.stdout is not None
        hook.stdin.write(json.dumps(prompt(project)).encode())
        hook.stdin.flush()
        assert b"HTTPTransport" in hook.stdout.read()
        assert hook.wait(60) == 0


def test_the_client_imports_next_to_nothing_while_the_worker_is_up(filled: Home, host: HookRunner, start, project):
    start()
    heavy = {"re", "os", "json", "typing", "collections", "dataclasses", "functools", "enum", "sqlite3", "pathlib"}
    loaded = _loaded(filled, prompt(project))
    assert "foreword_hook" in loaded
    assert heavy.intersection(loaded) == set()
    assert not [name for name in loaded if name.startswith("foreword.")]


def test_a_hook_whose_client_or_package_is_gone_leaves_in_peace(filled: Home, host: HookRunner, project):
    host.write_hook()
    config = build.config(filled, load(filled, PATIENT).settings, worker=[]) | {"package": "/nowhere"}
    filled.hook.write_text(build.hook_text(filled, config))
    assert host.context("UserPromptSubmit", prompt(project)) == ""
    assert ["ModuleNotFoundError" in each.what for each in noted(str(filled.trouble))] == [True]
    shutil.rmtree(filled.hook_client.parent)
    assert host.context("UserPromptSubmit", prompt(project)) == ""


def _loaded(home: Home, payload: dict[str, str]) -> list[str]:
    """What a hook has imported when it ends."""
    watched = (
        "import posix, sys; end = posix._exit;"
        "posix._exit = lambda code: (posix.write(2, ' '.join(sys.modules).encode()), end(code));"
        f"__file__ = {str(home.hook)!r}; sys.argv = [__file__, '--host', 'claude-code', 'UserPromptSubmit'];"
        "exec(compile(open(__file__).read(), __file__, 'exec'))"
    )
    command = [build.interpreter(), "-I", "-S", "-c", watched]
    ended = subprocess.run(
        command, input=json.dumps(payload).encode(), capture_output=True, check=True, timeout=30, env=CLEAN
    )
    return ended.stderr.decode().split()


def _answer_once(listener: socket.socket, answer: bytes) -> None:
    line, _ = listener.accept()
    with line:
        line.recv(1 << 16)
        line.sendall(answer)


def test_nothing_is_shown_twice_in_a_window_however_fast_the_prompts_come(
    filled: Home, host: HookRunner, start, project
):
    start()
    for number in range(6):
        session = f"fast-{number}"
        first = host.context("SessionStart", opening(project) | {"session_id": session})
        second = host.context("UserPromptSubmit", prompt(project, session_id=session))
        assert "HTTPTransport" in first
        assert "HTTPTransport" not in second


def test_the_worker_imports_nothing_from_the_folder_it_is_started_in(filled: Home, host: HookRunner, start, project):
    for name in ("queue", "apsw", "json", "foreword"):
        Path(project, f"{name}.py").write_text("open(__file__ + '.ran', 'w'); raise SystemExit(3)")
    host.write_hook(worker=worker_command())
    command = build.command(filled, host="claude-code", event="Stop")
    payload = json.dumps({"session_id": "s", "cwd": project}).encode()
    subprocess.run(command, input=payload, cwd=project, check=True, timeout=30)
    wait_for(lambda: lifecycle.pid_of(filled) and host.spooled() == 0)
    assert not list(Path(project).glob("*.ran"))


@pytest.mark.parametrize("worker", ["up", "away"])
def test_a_folder_whose_name_looks_like_a_secret_is_one_project_and_is_not_written_down(
    filled: Home, host: HookRunner, start, tmp_path: Path, worker
):
    secret = "ghp_" + "Qx9" * 12
    folder = tmp_path / secret / "shop"
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    client = start()
    client.post("/api/memories", {"kind": "note", "title": DIGS, "project_path": str(folder)})
    client.get("/api/context", project_path=str(folder), session_id=secret, prompt="wombat?")
    client.post("/api/events", {"host": secret, "event": secret, "payload": {"x": secret}})
    filled.config.write_text(f'log_level = "{secret}"\n')
    if worker == "away":
        end_worker(filled)
        host.write_hook()
    assert DIGS in host.context("UserPromptSubmit", prompt(str(folder), "why does the wombat dig?"))
    start()
    wait_for(lambda: host.spooled() == 0)
    wait_for(lambda: any("settings" in trouble.where for trouble in noted(str(filled.trouble))))
    end_worker(filled)
    filled.config.unlink()  # the user's own
    for path in (each for each in filled.root.rglob("*") if each.is_file()):
        assert secret[4:24].encode() not in path.read_bytes(), path


def test_a_memory_put_away_under_the_worker_is_noticed(filled: Home, host: HookRunner, start, project):
    client = start()
    for file in (filled.database, Path(f"{filled.database}-wal"), Path(f"{filled.database}-shm")):
        file.unlink(missing_ok=True)
    wait_for(lambda: any("removed or replaced" in trouble.what for trouble in noted(str(filled.trouble))))
    client.post("/api/memories", {"kind": "note", "title": "the wombat digs", "project_path": project})
    assert lifecycle.stop(filled)
    assert [m["title"] for m in start().get("/api/search", q="wombat", project_path=project)["results"]]
    assert any("removed or replaced" in trouble.what for trouble in noted(str(filled.trouble)))


def test_a_home_made_anew_belongs_to_its_new_worker(home: Home, host: HookRunner, start, project):
    start()
    old = lifecycle.pid_of(home)
    home.root.rename(home.root.with_name("old"))  # at once: while it is removed, its worker still writes into it
    home.prepare()
    start()
    host.write_hook()
    assert lifecycle.pid_of(home) != old
    for number in range(5):
        host.tell("Stop", {"session_id": "s", "cwd": project, "prompt_id": str(number)})
    wait_for(lambda: old not in [each.pid for each in processes_in(home.root.parent)])
    assert home.socket.exists()
    wait_for(lambda: host.spooled() == 0)
    assert len(host.stored()) == 5


@pytest.mark.parametrize("worker", ["up", "away"])
@pytest.mark.parametrize("form", ["head", "middle", "key", "seam", "no JSON"])
def test_what_is_private_stays_so_when_a_huge_payload_is_cut(
    home: Home, host: HookRunner, start, project, worker, form
):
    host.write_hook()
    if worker == "up":
        start()
    canary, filler = "canarysecret", "lorem ipsum dolor " * 40_000
    token = "ghp_" + "Zk4" * 12
    text = {
        "head": f"<private> {f'{canary} ' * 200_000}",
        "middle": f"{filler * 2} <PRIVATE why='x'> {f'{canary} ' * 100_000}",
        "key": "-----BEGIN RSA PRIVATE " + "KEY-----\n" + f"{canary}\n" * 200_000,
        "seam": "x" * (1024 * 1024 - 30 - len(project)) + token + " tail " + filler * 2,
        "no JSON": "x" * (1024 * 1024 - 20) + token + " tail " + filler * 2,
    }[form]
    payload = {"cwd": project, "prompt": text, "session_id": "s"}
    raw = text.encode() if form == "no JSON" else json.dumps(payload).encode()
    ended = host.tell("UserPromptSubmit", raw)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    assert worker == "up" or host.spooled()
    start()
    wait_for(lambda: host.spooled() == 0)
    assert len(host.stored()) == 1
    end_worker(home)
    for path in (each for each in home.root.rglob("*") if each.is_file()):
        data = path.read_bytes()
        assert canary.encode() not in data, path
        assert all(token[at : at + 12].encode() not in data for at in range(4, 28)), path


def test_folders_that_differ_only_in_what_looks_like_a_secret_are_two_projects(
    home: Home, host: HookRunner, start, tmp_path
):
    client = start()
    for number, letters in enumerate(("Qx9", "Zk4")):
        folder = tmp_path / ("ghp_" + letters * 12)
        folder.mkdir()
        client.post("/api/memories", {"kind": "note", "title": f"wombat {number}: {DIGS}", "project_path": str(folder)})
    for number, letters in enumerate(("Qx9", "Zk4")):
        folder = str(tmp_path / ("ghp_" + letters * 12))
        found = client.get("/api/search", q="wombat", project_path=folder)["results"]
        assert [memory["title"] for memory in found] == [f"wombat {number}: {DIGS}"]
        seen = host.context("UserPromptSubmit", prompt(folder, "why does the wombat dig?", session_id=folder[-3:]))
        assert f"wombat {number}" in seen
        assert f"wombat {1 - number}" not in seen


def test_a_switch_acts_before_a_worker_is_there_again(filled: Home, host: HookRunner, project):
    environ = {**CLEAN, "FOREWORD_HOME": str(filled.root), "FOREWORD_WORKER_AUTOSTART": "0"}
    for setting in (("off_projects", project), ("capture", "no")):
        command = [PYTHON, "-m", "foreword", "config", "set", *setting]
        subprocess.run(command, env=environ, check=True, capture_output=True, timeout=30)
        host.tell("UserPromptSubmit", prompt(project))
        assert host.spooled() == 0, setting


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to mount a small disk")
def test_on_a_full_disk_events_go_into_the_reserve_and_the_user_is_told(tmp_path_factory, project, monkeypatch):
    disk = Path(tempfile.mkdtemp(prefix="fw-"))
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("cannot mount a tmpfs here")
    home = Home(root=disk / "h")
    try:
        home.prepare()
        monkeypatch.setenv("FOREWORD_HOME", str(home.root))
        host, client = HookRunner(home), Client(home, seconds=20)
        lifecycle.start(home)
        wait_for(lambda: Path(f"{home.spool}.reserve").exists())
        host.write_hook()
        with contextlib.suppress(OSError), open(disk / "ballast", "wb", buffering=0) as ballast:
            while True:
                ballast.write(b"x" * 4096)
        for number in range(10):
            ended = host.tell("Stop", {"session_id": "s", "cwd": project, "prompt_id": str(number)})
            assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
        (disk / "ballast").unlink()
        wait_for(lambda: host.spooled() == 0 and client.get("/api/health")["counts"]["events"] == 10)
        wait_for(lambda: Path(f"{home.spool}.reserve").exists())
        wait_for(lambda: any("full" in trouble.what for trouble in noted(str(home.trouble))))
    finally:
        end_worker(home)
        subprocess.run(["umount", str(disk)], check=True)
        disk.rmdir()


class TestTheLauncher:
    """What hosts start; its path stays the same whatever Python does."""

    def launch(self, home: Home, payload: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [str(home.launcher), "--host", "claude-code", "UserPromptSubmit"],
            check=False,
            input=json.dumps(payload).encode(),
            capture_output=True,
            timeout=30,
            env=CLEAN,
        )

    @pytest.fixture
    def written(self, home: Home) -> Home:
        build.refresh(home, load(home, {**PATIENT, "FOREWORD_WORKER_AUTOSTART": "false"}).settings)
        return home

    def test_is_the_hook(self, filled: Home, written: Home, project: str) -> None:
        ended = self.launch(written, prompt(project))
        assert (ended.returncode, ended.stderr) == (0, b"")
        assert "checkout transport timeout" in json.loads(ended.stdout)["hookSpecificOutput"]["additionalContext"]

    def test_finds_another_python_where_its_own_is_gone(self, filled: Home, written: Home, project: str) -> None:
        script = written.launcher.read_text().replace(build.interpreter(), "/nowhere/python3")
        written.launcher.write_text(script)
        ended = self.launch(written, prompt(project))
        assert (ended.returncode, ended.stderr) == (0, b"")
        assert b"checkout transport timeout" in ended.stdout

    def test_leaves_in_peace_where_the_hook_is_gone(self, written: Home, project: str) -> None:
        written.hook.unlink()
        ended = self.launch(written, prompt(project))
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
