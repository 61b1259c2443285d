"""What was run and how it ended: the same command is known again, the same error has one fingerprint."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.extract.commands import command_of, commands_of, message_of, same
from foreword.distill.failures import ended_badly, outcome, problem_of
from tests.tables import table


@table(
    ("text", "program", "kind"),
    [
        ("cd app && uv run pytest -q tests/test_a.py 2>&1 | tail -20", "pytest", "test"),
        ("python -m pytest -q", "pytest", "test"),
        ("npm run test -- --watch=false", "npm run test", "test"),
        ("timeout 60 go test ./... -run TestX", "go test", "test"),
        ("make test", "make test", "test"),
        ("ruff check . && mypy", "ruff", "lint"),
        ("pip install -r requirements.txt", "pip install", "install"),
        ("git commit -m 'x; y && z'", "git commit", "git"),
        ("grep -rn foo . | head", "grep", "look"),
        ("git status", "git status", "look"),
        ("FOO=1 python manage.py migrate", "manage.py migrate", "migrate"),
        ("cat <<'EOF' > a.py\nimport os; rm -rf /\nEOF\npython a.py", "a.py", "other"),
        ("", "", "other"),
        ("'unclosed", "'unclosed", "other"),
    ],
)
def test_a_command_is_known_by_what_matters_in_it(text, program, kind):
    found = command_of(text)
    assert (found.program, found.kind) == (program, kind)


@table(
    ("failed", "later", "is_same"),
    [
        ("pytest -q", "python -m pytest -q -x", True),
        ("pytest tests/test_a.py::test_b", "uv run pytest tests/test_a.py", True),
        ("pytest tests/test_a.py", "pytest", True),
        ("pytest", "pytest tests/test_z.py", False),
        ("pytest tests/test_a.py", "pytest tests/test_z.py", False),
        ("pytest", "ruff check", False),
        ("cargo test", "cargo build", False),
    ],
)
def test_a_later_command_tries_the_same_again_or_not(failed, later, is_same):
    assert same(command_of(failed), command_of(later)) is is_same


def test_the_same_error_has_one_fingerprint():
    # Running only the tests that failed tries the same again.
    assert same(command_of("pytest"), command_of("pytest tests/test_a.py"), tests=("tests/test_a.py::test_b",))
    # The same error with other numbers paths and addresses has the same fingerprint.
    first = problem_of("OSError: cannot bind /run/user/1000/app.sock at 0x7f3a after 30 tries", program="app")
    again = problem_of("OSError: cannot bind /tmp/x/app.sock at 0x9c11 after 12 tries", program="app")
    other = problem_of("OSError: cannot open app.sock", program="app")
    assert first.fingerprint == again.fingerprint != other.fingerprint
    # The same words in two tests are two errors.
    first, second = (problem_of(f"E    assert not True\nFAILED t.py::{name} - x", program="pytest") for name in "ab")
    assert first.fingerprint != second.fingerprint
    # An exit code alone names no error.
    assert problem_of("Exit code 3", program="x") is None
    assert problem_of("", program="x") is None
    # A line that says what failed stays as it is.
    output = "E       DeadlockDetected: process 81 waits for ShareLock\n1 failed, 2 passed in 3.68s"
    problem = outcome(output, command_of("pytest -q"), failed=True)[1]
    assert problem == problem_of(output, program="pytest")
    assert problem.message == "DeadlockDetected: process 81 waits for ShareLock"


@table(
    ("text", "tells"),
    [
        ("pytest -q", [True]),
        ("pytest -q 2>&1 | tail -5", [False]),
        ("set -o pipefail; pytest -q | tail", [False, True]),
        ("pytest -q || true", [False, True]),
        ("pytest -q; echo $?", [False, True]),
        ("ruff check . && pytest -q;", [True, True]),
        ("npm start &", [False]),
    ],
)
def test_a_line_s_end_tells_of_a_command_only_where_the_shell_passes_it_on(text, tells):
    assert [each.tells for each in commands_of(text)] == tells


@table(
    ("text", "message"),
    [
        ("git add -A && git commit -m 'Queue: drain it'", "Queue: drain it"),
        ('git -C app commit -am "One" -m "A longer body of it"', "One"),
        ("git commit -m \"$(cat <<'EOF'\nSubject line\n\nBody.\nEOF\n)\"", "Subject line"),
        ("gh pr create --title 'Drain it' --body 'as told above'", "Drain it"),
        ("git commit --amend --no-edit", ""),
        ('git commit -m "$(date)"', ""),
    ],
)
def test_a_commit_is_known_by_its_first_line(text, message):
    assert message_of(text) == message


@table(
    ("output", "badly"),
    [
        ("3 passed in 0.1s", False),
        ("1 failed, 3 passed in 0.1s", True),
        ("ERROR: seen in a log\n12 passed in 3s", False),
        ("test result: FAILED. 2 passed; 1 failed", True),
        ("    Finished dev target(s) in 3.2s", False),
        ("0 errors, 2 warnings", False),
        ("done", None),
    ],
)
def test_a_check_whose_exit_code_is_not_known_is_judged_by_how_it_sums_up(output, badly):
    assert ended_badly(output) is badly


OUTPUTS = {
    "svc/a.py:1:8: F401 [*] `redis` imported but unused\nFound 1 error.": "F401: `redis` imported but unused",
    "F401 [*] `redis` imported but unused\n --> svc/a.py:1:8\nFound 1 error.": "F401: `redis` imported but unused",
    "/x/app.js\n  12:5  error  'x' is never used  no-unused-vars\n\n1 problem": "error: 'x' is never used",
    "thread 'q::drains' panicked at src/q.rs:31:9:\nassertion failed: a == b\n": "assertion failed: a == b",
    "E       assert not True\ntests/test_b.py:5: AssertionError\nFAILED tests/test_b.py::test_touch - assert not True": "assert not True",
    'Traceback (most recent call last):\n  File "/x/a.py", line 3, in <module>\nValueError: bad thing': "ValueError: bad thing",
    "src/a.ts(3,5): error TS2322: Type 'string' is not assignable.": "TS2322: Type 'string' is not assignable.",
    "bash: line 1: foo: command not found": "foo: command not found",
    "error[E0308]: mismatched types\n --> src/main.rs:4:5": "error[E0308]: mismatched types",
    "main.c:3:5: error: expected ';' before '}' token": "error: expected ';' before '}' token",
    "npm ERR! code ERESOLVE\nnpm ERR! ERESOLVE unable to resolve": "npm ERR!: ERESOLVE unable to resolve",
    "panic: runtime error: index out of range [3]\n\ngoroutine 1 [running]:": "panic: runtime error: index out of range [3]",
    "fatal: not a git repository": "fatal: not a git repository",
    "\x1b[31mTypeError: x is not a function\x1b[0m\n    at main (a.js:3:1)": "TypeError: x is not a function",
}


@table(("output", "message"), OUTPUTS.items())
def test_an_output_is_told_by_its_error(output, message):
    found = problem_of(output, program="x")
    assert found is not None
    assert found.message == message


@settings(deadline=None, max_examples=80)
@given(st.text(max_size=2000), st.text(max_size=300))
def test_any_output_and_any_command_are_read_without_an_error(output, command):
    problem_of(output, program=command_of(command).program)


@table(
    "part",
    [
        *("\n", " \n", "a", "A.", "abcdefa ", "E   ", "a/", "a.py ", "\t\n●", "✕ \n", "E  a.", "A\n at", "● a\n\n "),
        *(
            "Traceback (most recent call last):\n ",
            "  Failure/Error:\n",
            "  a_test.go:1:\n",
            "FAILED a - b ",
            "1) a::b\n",
        ),
    ],
)
def test_a_long_output_is_read_in_the_time_it_takes_to_read_it(part):
    began = time.process_time()
    problem_of(part * (200_000 // len(part)), program="x")
    assert time.process_time() - began < 10  # seconds; blank lines alone took a minute


@table("text", ["\n", " ", "a.", "a/", "12:", "E ", "npm error ", "a: "])
def test_the_time_to_read_an_output_grows_with_its_length_alone(text):
    began = time.process_time()
    problem_of(text * 20_000, program="make")
    ended_badly(text * 20_000)
    assert time.process_time() - began < 10  # a tenth of it; where it grows with the square, eight


@table(
    "output",
    [
        "1 failed, 2 passed in 3.68s",
        "..F\n===== 1 failed, 2 passed in 3.68s =====",
        "Tests:       1 failed, 2 total",
        "1 failing",
    ],
)
def test_what_tells_only_how_many_failed_is_called_by_what_was_run(output):
    one, other = (outcome(output, command_of(f"pytest -q tests/test_{name}.py"), failed=True)[1] for name in "ab")
    assert one.fingerprint != other.fingerprint
    assert one.message.startswith("pytest -q tests/test_a.py: ")
    assert "=" not in one.message
