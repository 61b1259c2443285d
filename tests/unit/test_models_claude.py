"""The `claude` command is asked without tools or hooks, and whatever it does, nothing of it is left behind."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from foreword.models import NoAnswer
from foreword.models.claude import FLAGS, LEASH, Claude
from foreword.models.schema import Object, Text

SCHEMA = Object({"word": Text(20)})
WELL = {"type": "result", "is_error": False, "result": '{"word": "walrus"}'}
USED = {"input_tokens": 5, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300, "output_tokens": 7}


@pytest.fixture
def claude(tmp_path):
    """`claude(script)` -> a model whose command is this Python; it sees HERE, the folder of the test."""

    def made(script: str, **environ: str) -> Claude:
        file = tmp_path / "bin" / "claude"
        file.parent.mkdir(exist_ok=True)
        program = f"#!{sys.executable}\nimport json, os, signal, subprocess, sys, time\nHERE = {str(tmp_path)!r}\n"
        file.write_text(program + textwrap.dedent(script))
        file.chmod(0o700)
        path = f"{file.parent}{os.pathsep}{os.environ['PATH']}"
        return Claude(model="haiku", environ={"PATH": path, "HOME": str(tmp_path), **environ})

    return made


def ask(model, *, seconds=30.0, prompt="the prompt"):
    return model.complete(prompt, system="the system", schema=SCHEMA, most_tokens=99, seconds=seconds)


def failing(model, **more) -> NoAnswer:
    with pytest.raises(NoAnswer) as failed:
        ask(model, **more)
    return failed.value


def pids(folder: Path) -> list[int]:
    return [int(each) for file in folder.glob("pid*") for each in file.read_text().split()]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def gone(folder: Path, *, many: int) -> bool:
    """Whether all that wrote down its number has ended, within a while."""
    found = pids(folder)
    assert len(found) >= many
    end = time.monotonic() + 20
    while any(map(alive, found)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(alive, found))


def test_it_answers_with_its_cost(claude):
    got = ask(claude(f"sys.stdin.read(); print(json.dumps({dict(WELL, usage=USED)!r}))"))
    assert (got.data, got.tokens_in, got.tokens_out) == ({"word": "walrus"}, 325, 7)


def test_it_has_no_tools_hooks_or_memory_and_the_prompt_is_no_argument(claude, tmp_path):
    session = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s", "CLAUDE_CODE_MESSAGING_TOKEN": "t", "CLAUDE_PID": "1"}
    kept = {"CLAUDE_CODE_OAUTH_TOKEN": "o", "CLAUDE_CONFIG_DIR": "/c", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}
    ask(
        claude(
            f"""
            seen = {{"argv": sys.argv[1:], "environ": dict(os.environ), "cwd": os.getcwd(), "here": os.listdir(".")}}
            seen["stdin"] = sys.stdin.read()
            json.dump(seen, open(HERE + "/seen", "w"))
            print(json.dumps({WELL!r}))
            """,
            **session,
            **kept,
        )
    )
    seen = json.loads((tmp_path / "seen").read_text())
    assert seen["argv"] == ["-p", *FLAGS, "--model", "haiku", "--system-prompt", "the system"]
    argv = dict(itertools.pairwise(FLAGS))
    assert (argv["--tools"], argv["--max-turns"], argv["--output-format"]) == ("", "1", "json")
    assert json.loads(argv["--settings"]) == {"disableAllHooks": True}
    assert (seen["stdin"], seen["here"]) == ("the prompt", [])
    assert seen["environ"]["FOREWORD_OFF"] == "1"
    assert seen["environ"]["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "99"
    assert not session.keys() & seen["environ"].keys()
    assert {name: seen["environ"][name] for name in kept} == kept
    assert not Path(seen["cwd"]).exists()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("print('walrus')", "garbage"),
        ("print('[1]')", "garbage"),
        ("print(json.dumps({'is_error': True, 'result': 'Please run /login'}))", "error"),
        ("print(json.dumps({'result': 5}))", "error"),
        ("print(json.dumps({'result': 'walrus'}))", "not-json"),
        ("print(json.dumps({'result': json.dumps({'word': 'w' * 50})}))", "schema"),
        ("sys.exit(3)", "exit-3"),
        ("sys.stdin.close(); os.kill(os.getpid(), 9)", "exit-247"),
        ("", "garbage"),
    ],
)
def test_what_it_does_wrong_has_a_name_and_a_way_out(claude, script, why):
    failed = failing(claude(script), prompt="p" * 300_000)
    assert failed.why == why
    assert failed.hint


def test_a_command_that_cannot_be_run_is_a_failure(claude):
    model = claude("")
    Path(model.where).write_text("#!/no/such/interpreter\n")
    assert failing(model).why == "exit-127"


def test_more_than_anyone_would_say_is_not_read(claude, tmp_path):
    script = """
        open(HERE + "/pid", "w").write(str(os.getpid()))
        while True:
            sys.stdout.write("walrus " * 1000)
        """
    assert failing(claude(script)).why == "huge"
    assert gone(tmp_path, many=1)


FORKS = """
    def note(name):
        open(f"{HERE}/pid-{name}", "w").write(str(os.getpid()))
    note("first")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if not os.fork():
        note("child")
        time.sleep(600)
    if not os.fork():
        os.setsid()                     # a daemon: out of the group, and an orphan
        if os.fork():
            os._exit(0)
        note("daemon")
        for stream in (0, 1, 2):
            os.close(stream)
        time.sleep(600)
    while not os.path.exists(HERE + "/pid-daemon") or not os.path.exists(HERE + "/pid-child"):
        time.sleep(0.01)
    """
MANY = 3 if sys.platform == "linux" else 2


@pytest.mark.skipif(sys.platform != "linux", reason="a daemon that left its group is found only on Linux")
@pytest.mark.parametrize(
    ("ending", "why"), [(f"print(json.dumps({WELL!r}))", ""), ("sys.exit(1)", "exit-1"), ("time.sleep(600)", "late")]
)
def test_nothing_that_it_starts_outlives_the_call(claude, tmp_path, ending, why):
    model = claude(textwrap.dedent(FORKS) + ending)
    if why:
        assert failing(model, seconds=4.0 if why == "late" else 30.0).why == why
    else:
        assert ask(model).data == {"word": "walrus"}
    assert gone(tmp_path, many=MANY)


def test_closing_ends_it_at_once(claude, tmp_path):
    model = claude(textwrap.dedent(FORKS) + "time.sleep(600)")

    def close() -> None:
        while len(pids(tmp_path)) < MANY:
            time.sleep(0.01)
        model.close()

    closing = threading.Thread(target=close)
    closing.start()
    assert failing(model, seconds=300).why == "ended"
    closing.join()
    assert gone(tmp_path, many=MANY)
    assert failing(model).why == "ended"


def test_it_ends_with_a_worker_that_is_killed(claude, tmp_path):
    model = claude(textwrap.dedent(FORKS) + "time.sleep(600)")
    program = (
        "import json, sys\nfrom foreword.models.claude import Claude\nfrom foreword.models.schema import Text\n"
        "Claude(environ=json.loads(sys.argv[1])).complete('p', system='s', schema=Text(1), most_tokens=1, seconds=300)"
    )
    environ = {"PATH": f"{Path(model.where).parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    worker = subprocess.Popen([sys.executable, "-c", program, json.dumps(environ)])
    while len(pids(tmp_path)) < MANY:
        assert worker.poll() is None
        time.sleep(0.02)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert gone(tmp_path, many=MANY)


def test_the_leash_is_a_program_by_itself():
    ends, held = os.pipe()
    try:
        command = [sys.executable, "-I", "-S", str(LEASH), str(ends), "30", sys.executable, "-c", "exit(7)"]
        assert subprocess.run(command, check=False, pass_fds=(ends,), timeout=60).returncode == 7
    finally:
        os.close(ends)
        os.close(held)


def test_several_at_once_do_not_hold_each_other(claude):
    script = f"time.sleep(0.2); sys.stdin.read(); print(json.dumps({WELL!r}))"
    model = claude(script)
    got: list[object] = []
    threads = [threading.Thread(target=lambda: got.append(ask(model).data)) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert got == [{"word": "walrus"}] * 6
