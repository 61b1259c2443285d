"""Failures of a session: what failed, the line that says why, and what worked instead or fixed it."""

# ruff: noqa: E501 - a case a line
from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from foreword.extract.actions import Action, turns_of
from foreword.extract.failure_memory import (
    MOST_SESSIONS,
    confirm_failure_detail,
    failure_body,
    failure_detail,
    failure_title,
    merge_failure_detail,
    sessions_in,
    sessions_worked,
)
from foreword.extract.failures import failure_key, failure_of, failures_of, run_of, runs_of
from foreword.extract.merge import EARLIER
from foreword.extract.outputs import ended_badly, error_key, error_line, failed_test
from foreword.models import Edit
from tests.growth import assert_linear
from tests.tables import table

ROOT = "/srv/shop"


@dataclass(frozen=True)
class Step(Action):
    """An action with the folder that its host tells."""

    cwd: str = ""


def run(command: str, output: str = "", *, failed: bool = False, cwd: str = ROOT) -> Step:
    return Step("tool", 0.0, act="run", tool="Bash", command=command, output=output, failed=failed, cwd=cwd)


def edit(file: str, before: str, after: str) -> Step:
    return Step("tool", 0.0, act="edit", files=(file,), failed=False, edits=(Edit(file, before, after),), cwd=ROOT)


def session(*steps: Step):
    timed = [replace(step, at=float(at), id=str(at)) for at, step in enumerate(steps, 1)]
    return turns_of([Step("prompt", 0.0, text="go", cwd=ROOT), *timed])


def found(*steps: Step):
    return failures_of(session(*steps), root=ROOT)


NO_SCRIPT = 'error: Script not found "unit"'
UNSORTED = "src/cart.ts\n  × The imports are not sorted.\n"
NO_MODULE = "pattern ./...: directory prefix . does not contain main module or its selected dependencies"


@table(
    ("command", "output", "shape", "cause", "error"),
    [
        # A call that never works, by the words that made it fail.
        ("cd /srv/shop && shopctl yarn run test 2>&1", "error: unrecognized subcommand 'yarn'\n\nUsage: shopctl", "shopctl yarn", "usage", "error: unrecognized subcommand 'yarn'"),
        ("git -C /srv/shop add a.py", "error: unexpected argument '-C' found", "git -C", "usage", "error: unexpected argument '-C' found"),
        ("sed -n 1,3p a.txt | cat -A", "cat: illegal option -- A\nusage: cat [-belnstuv]", "cat -A", "usage", "cat: illegal option -- A"),
        ("docker compose up -d", "zsh: command not found: docker", "docker", "usage", "zsh: command not found: docker"),
        ("pnpm --filter web typecheck", 'ERR_NO_SCRIPT None of the selected packages has a "typecheck" script', "pnpm --filter web typecheck", "usage", 'ERR_NO_SCRIPT None of the selected packages has a "typecheck" script'),
        # One that works elsewhere: by the folder.
        ("yarn run unit", NO_SCRIPT, "yarn run unit", "folder", NO_SCRIPT),
        ("gofmt -l . && go vet ./...", NO_MODULE, "go ./...", "folder", NO_MODULE),
        # What it worked on was wrong.
        ("make lint", UNSORTED, "make lint", "content", "The imports are not sorted."),
        ("git add a.md && git commit -m x", "[FAILED] markdownlint\ndocs/a.md:26 error MD040/fenced-code-language Fenced code blocks should have a language", "git commit", "content", "docs/a.md:26 error MD040/fenced-code-language Fenced code blocks should have a language"),
        ("python3 -c 'import re\nre.x'", 'Traceback (most recent call last):\n  File "<string>", line 2, in <module>\nAttributeError: no x', "python -c (multi-line)", "content", "AttributeError: no x"),
        ("gh api graphql -f query=x", '{"errors":[{"message":"Field \'body\' doesn\'t accept argument \'cut\'"}]}', "gh api graphql -f", "usage", "Field 'body' doesn't accept argument 'cut'"),
        ("shopctl serve", "Command timed out after 2m 0s", "shopctl serve", "content", "Command timed out after 2m 0s"),
        ("npm test -- --testPathPattern=cart", "No tests found, exiting with code 0", "npm test --testPathPattern=", "usage", "No tests found, exiting with code 0"),
        ("git cherry-pick abc", "The previous cherry-pick is now empty.\n\n  git commit --allow-empty\n\non branch x\nclean", "git cherry-pick", "content", "The previous cherry-pick is now empty."),
    ],
)  # fmt: skip
def test_a_failure_is_a_call_with_the_line_that_names_the_cause(command, output, shape, cause, error):
    (failure,) = found(run(command, output, failed=True))
    assert (failure.shape, failure.cause, failure.error) == (shape, cause, error)


@table(
    ("command", "output"),
    [
        ("pytest", "Sibling tool call errored"),
        ("pytest", "The user doesn't want to proceed with this tool use."),
        ("pytest", "[Request interrupted by user for tool use]"),
        ("grep -rn nothing .", ""),
        ("cat missing.txt", "cat: missing.txt: No such file or directory"),
        ("ls docs/*.rst 2>/dev/null | wc -l; ls x", "ls: x: No such file or directory"),
        ("gh pr checks 4", "lint\tpass\t9s\thttps://ci\nbuild\tpending\t0\thttps://ci"),
        ("make build", "Exit code 2"),
        ("pytest", "3 failed, 4 passed in 2.31s"),
    ],
)
def test_messages_of_the_client_looking_around_and_bare_counts_are_no_failures(command, output):
    assert found(run(command, output, failed=True)) == ()


@table(
    ("command", "output", "fails"),
    [
        ("pytest -q | tail -3", "FAILED tests/test_a.py::test_b - ValueError: no cart\n1 failed in 0.2s", True),
        ("make test || true", "error: cart is empty\nmake: *** [test] Error 1", True),
        ("shopctl yarn run test 2>&1 | head", "error: unrecognized subcommand 'yarn'", True),
        ("npm test -- --testPathPattern=cart", "No tests found, exiting with code 0", True),
        ("npx markdownlint-cli2 '.x/*.md'", "Linting: 0 file(s)\nSummary: 0 error(s)", True),
        ("strings a.bin; echo done", "bash: line 1: strings: command not found\ndone", True),
        ("cat -A a.txt | head -2", "cat: illegal option -- A", True),
        (
            "wrap git commit -m x",
            'error: no stock\nerror: script "test" exited with code 1\nhusky - pre-commit script failed (code 1)',
            True,
        ),
        ("cat ci.log", 'error: script "test" exited with code 1', False),
        ("go vet ./... | tail -9", "cart\\map_windows.go:198:13: possible misuse of unsafe.Pointer", True),
        ("bun test | tail -4", "error: refused (expected by a test)\n 12 pass\n 0 fail", False),
        ("cat build.log | tail", "error: cart is empty\nBUILD FAILED", False),
        ("go test ./... | tail", "ok  \tshop/cart\t0.1s\n?   \tshop/api\t[no test files]", False),
    ],
)
def test_hidden_failures_count_by_what_the_output_says(command, output, fails):
    assert run_of(run(command, output)).failed is fails


def test_a_similar_command_that_succeeds_next_is_what_worked():
    (failure,) = found(
        run("shopctl yarn run test", "error: unrecognized subcommand 'yarn'", failed=True),
        run("yarn run lint"),
        run("yarn run test", "12 pass\n0 fail"),
    )
    assert (failure.worked, failure.open) == ("yarn run test", False)


def test_what_was_left_out_is_the_fix_where_nothing_else_changed():
    (failure,) = found(
        run("git add src/cart.ts src/api.ts dist/out.css", "The following paths are ignored by one of your .gitignore files:\ndist", failed=True),
        run("git add src/cart.ts src/api.ts"),
    )  # fmt: skip
    assert failure.fix == "worked without `dist/out.css`"


def test_a_linter_that_sets_things_right_is_what_worked_and_a_build_between_is_not():
    (failure,) = found(run("make lint", UNSORTED, failed=True), run("make fmt"), run("make lint"))
    assert failure.worked == "make fmt"
    (failure,) = found(run("make test", "ValueError: no cart\n", failed=True), run("make build"), run("make test"))
    assert failure.worked == ""


def test_the_edit_of_a_file_that_the_error_names_is_the_fix():
    steps = (
        run(
            "npx tsc", "src/cart.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.", failed=True
        ),
        edit("src/other.ts", "a", "b"),
        edit("src/cart.ts", "const n = '1';", "const n = 1;"),
        run("npx tsc"),
    )
    (failure,) = found(*steps)
    assert failure.fix == "edited src/cart.ts: `const n = 1;`"
    assert failure.fixed_files == ("src/cart.ts",)
    assert not failure.open
    assert found(*steps[:1])[0].open
    (only,) = found(steps[0], steps[1], steps[3])  # nothing else changed until it passed
    assert only.fixed_files == ("src/other.ts",)
    (unknown,) = found(steps[0], steps[1], edit("src/third.ts", "a", "b"), steps[3])
    assert unknown.fix == ""


def test_a_command_works_in_another_folder():
    (failure,) = found(run("cargo test", "error: could not find `Cargo.toml` in `/srv/shop`", failed=True), run("cd app && cargo test", cwd=f"{ROOT}/app"))  # fmt: skip
    assert (failure.folder, failure.worked, failure.worked_in) == ("", "cargo test", "app")


def test_paths_that_repeat_the_folder_of_the_shell_are_one_failure_whatever_the_program():
    (failure,) = found(
        run("cd src && go build", cwd=f"{ROOT}/src"),
        run("cd src && go test", "bash: line 1: cd: src: No such file or directory", failed=True, cwd=f"{ROOT}/src"),
        run("git add src/a.go", "fatal: pathspec 'src/a.go' did not match any files", failed=True, cwd=f"{ROOT}/src"),
    )
    assert (failure.shape, failure.folder, failure.times) == ("src/", "src", 2)


def test_the_same_error_has_one_key_with_other_numbers_paths_and_hashes():
    assert error_key("OSError: cannot bind /run/user/1000/app.sock at 0x7f3a after 30 tries") == error_key(
        "OSError: cannot bind /tmp/x/app.sock at 0x9c11 after 12 tries"
    )
    assert error_key("docs/a.md:26:1 error MD013/line-length") == error_key("b/c.md:3 error MD013/line-length")
    assert error_key("TypeError: a") != error_key("TypeError: b")
    one, other = (f"FAILED tests/test_cart.py::test_{name} - AssertionError: assert 1 == 2" for name in ("add", "pay"))
    keys = {each.key for each in found(run("pytest", one, failed=True), run("pytest", other, failed=True))}
    assert len(keys) == 2


def test_a_skill_that_the_project_does_not_have_is_a_failure():
    (failure,) = found(replace(run("", "Unknown skill: ship", failed=True), act="other", tool="Skill"))
    assert (failure.shape, failure.error) == ("Skill ship", "Unknown skill: ship")
    unknown = replace(run("", "Unknown skill: commit", failed=True), act="other", tool="Skill")
    (failure,) = found(unknown, run("git status && git diff"), run("git add a.py && git commit -m x"))
    assert failure.fix == "worked with `git status`, `git diff`, `git add`, `git commit`"


def details():
    (one,) = found(
        run("shopctl yarn run test", "error: unrecognized subcommand 'yarn'", failed=True), run("yarn run test")
    )
    return one, lambda name, worked="yarn run test": failure_detail(replace(one, worked=worked), name)


def test_the_fix_seen_most_often_stays():
    one, of = details()
    known = of("s1")
    for name, worked in (("s2", "yarn run test"), ("s3", "bun test"), ("s3", "bun test"), ("s4", "")):
        known = merge_failure_detail(known, of(name, worked))
    assert known["worked"] == {"yarn run test": ["s1", "s2"], "bun test": ["s3"]}
    assert known["seen_in"] == {"s1": 1, "s2": 1, "s3": 1, "s4": 1}
    assert merge_failure_detail(known, of("s4", "")) == known
    assert known["key"] == failure_key(one)
    assert failure_title(known) == "`shopctl yarn` fails: error: unrecognized subcommand 'yarn'"
    assert "Worked instead: `yarn run test` (2 sessions)." in failure_body(known)


def test_a_memory_names_the_last_sessions_and_counts_the_rest():
    _, of = details()
    known = of("s0")
    for number in range(1, MOST_SESSIONS + 20):
        known = merge_failure_detail(known, of(f"s{number}"))
    assert len(known["seen_in"]) == MOST_SESSIONS + 1
    assert known["seen_in"][EARLIER] == 20
    assert sessions_in(known["seen_in"]) == MOST_SESSIONS + 20


def test_later_sessions_confirm_what_works_and_what_no_longer_fails():
    _, of = details()
    known = confirm_failure_detail(of("s1"), runs_of(session(run("yarn run test -t cart"))), "s2")
    assert sessions_worked(known, "yarn run test") == 2
    assert known["succeeded_in"] == {}
    known = confirm_failure_detail(known, runs_of(session(run("shopctl yarn run test"))), "s3")
    assert known["succeeded_in"] == {"s3": 1}
    skipped = runs_of(session(run("shopctl yarn run lint", "Sibling tool call errored", failed=True)))
    assert confirm_failure_detail(known, skipped, "s4") == known


def test_hostile_outputs_are_read_in_no_time():
    for piece in (
        "error: ",
        "a/",
        "Traceback (most recent call last):\n  x\n",
        '"message":"',
        "\n",
        " at ",
        "E   x",
        "x: ",
        "'",
        "MD0",
    ):
        assert_linear(error_line, piece)
        assert_linear(lambda text: failure_of(run_of(run("pytest | tail", text, failed=True))), piece)


# Written after each tool's own format: `=== name | error | test`, then the output.
OUTPUTS = [
    (*(part.strip() for part in head.split(" | ")), output)
    for head, _, output in (
        each.partition("\n") for each in Path(__file__).with_name("runner_outputs.txt").read_text().split("\n=== ")[1:]
    )
]
SUMS_UP = ("pytest", "unittest", "jest", "vitest", "mocha", "node test", "go ", "cargo", "gradle", "maven", "kotlin",
           "rspec", "minitest", "phpunit", "pest", "dotnet test", "dotnet custom", "dotnet build", "gtest")  # fmt: skip


@table(("name", "error", "test", "output"), OUTPUTS)
def test_every_runner_is_told_by_its_error_and_its_test(name, error, test, output):
    line = error_line(output)
    assert line
    assert error.split(": ", 1)[-1][:40] in line or line in error
    assert failed_test(output) == test or not test
    assert ended_badly(output) is True or not name.startswith(SUMS_UP)


def test_what_a_call_must_differ_in_is_what_fixed_it():
    usage = found(
        run("shopctl orders --verbose --limit 5", "error: unexpected argument '--verbose' found", failed=True),
        run("shopctl orders --limit 5"),
    )
    assert usage[0].fix == "worked without `--verbose`"
    query = "shopctl api -f query='{ order(id: 7) { lines { note(cut:80) price } } }'"
    (query_failure,) = found(
        run(query, "Field 'note' doesn't accept argument 'cut'", failed=True), run(query.replace("(cut:80)", ""))
    )
    assert query_failure.fix == "worked without `cut`"
    (variable,) = found(
        run("shopctl sync -e bash", "shopctl: C:/shop/mnt: No such file or directory", failed=True),
        run("SHOP_NO_PATHS=1 shopctl sync -e bash"),
    )
    assert variable.fix == "worked with `SHOP_NO_PATHS=1` before it"


def test_a_word_that_the_error_names_is_replaced():
    query = 'shopctl api -f query=\'{ shop(owner: "anna", name: "cart") { orders } }\''
    error = "Could not resolve to a shop with the name 'anna/cart'."
    (failure,) = found(run(query, error, failed=True), run(query.replace("anna", "band")))
    assert (failure.fix, failure.blamed) == ("worked with `band`", ("anna", "cart"))
    (other,) = found(run(query.replace("anna", "mia"), error.replace("anna", "mia"), failed=True))
    assert failure_key(other) == failure_key(failure)


def test_the_same_tool_through_another_program_is_what_worked():
    missing = "ModuleNotFoundError: No module named 'shop'\n"
    (failure,) = found(run("pytest -q", missing, failed=True), run("uv run pytest -q", "3 passed"))
    assert (failure.worked, failure.open, failure.at_once) == ("uv run pytest -q", False, True)
    (narrower,) = found(run("pytest -q", missing, failed=True), run("uv run pytest -q tests/test_a.py", "3 passed"))
    assert narrower.worked == ""


@table(
    ("command", "output", "shape", "worked"),
    [
        ("python a.py", "bash: line 1: python: command not found", "python", "python3 a.py"),
        ("timeout 60 make test", "zsh: command not found: timeout", "timeout", "make test"),  # not what it was put before
        ("npm run tests", 'npm error Missing script: "tests"', "npm run tests", "npm run test:unit"),
        ("go test ./...", 'cgo: C compiler "gcc" not found: exec: "gcc": executable file not found in $PATH', "go test", "CGO_ENABLED=0 go test ./..."),
        ("git checkout master", "error: pathspec 'master' did not match any file(s) known to git", "git checkout master", "git checkout main"),
        ("docker-compose up -d", "bash: docker-compose: command not found", "docker-compose", "docker compose up -d"),
        ("./gradlew unitTest", "FAILURE: Build failed with an exception.\n\n* What went wrong:\nTask 'unitTest' not found in root project 'shop'.", "./gradlew unitTest", "./gradlew test"),
        ("npx jest --testPathPattern cart", '● Unrecognized CLI Parameter:\n\n  Option "testPathPattern" was replaced by "testPathPatterns".', "npx jest --testPathPattern", "npx jest --testPathPatterns cart"),
        ("gh pr view 12 --json checks", 'Unknown JSON field: "checks"\nAvailable fields:\n  additions', "gh pr view --json checks", "gh pr view 12 --json statusCheckRollup"),
        ("rake spec", "rake aborted!\nDon't know how to build task 'spec' (See the list of available tasks with `rake --tasks`)", "rake spec", "rake test"),
        ("make html", "make: *** No rule to make target 'html'.  Stop.", "make html", "make -C docs html"),
        ("terraform validate", "╷\n│ Error: No configuration files\n│ \n╵", "terraform validate", "terraform -chdir=infra validate"),
        ("kubectl get pods", "The connection to the server localhost:8080 was refused", "kubectl get", "kubectl --context staging get pods"),
        ("./scripts/deploy.sh staging", "bash: ./scripts/deploy.sh: Permission denied", "deploy.sh", "bash scripts/deploy.sh staging"),
    ],
)  # fmt: skip
def test_what_works_in_the_place_of_a_usual_mistake_is_kept(command, output, shape, worked):
    (failure,) = found(run(command, output, failed=True), run(worked))
    assert (failure.shape, failure.worked) == (shape, worked)
    detail = failure_detail(failure, "s1")
    assert confirm_failure_detail(detail, runs_of(session(run(worked))), "s2")["used_in"] == {worked: ["s2"]}


@table(
    ("command", "output", "shape", "error", "repair"),
    [
        ("poetry install", "pyproject.toml changed since poetry.lock was generated. This is an error.", "poetry install", "pyproject.toml changed since poetry.lock was generated. This is an error.", "poetry lock"),
        ("bin/rails test", "ActiveRecord::PendingMigrationError:\n\nMigrations are pending.", "rails test", "PendingMigrationError", "bin/rails db:migrate"),
        ("php artisan test", "\n  SQLSTATE[HY000] [2002] Connection refused", "php artisan test", "SQLSTATE[HY000] [2002] Connection refused", "docker compose up -d db"),
        ("vendor/bin/phpunit", 'PHP Fatal error:  Uncaught Error: Class "Cart" not found in /srv/x.php:9', "phpunit", 'Error: Class "Cart" not found', "composer dump-autoload"),
        ("black --check .", "would reformat shop/cart.py\n1 file would be reformatted.", "black --check", "1 file would be reformatted.", "black ."),
        ("mix test", "** (Mix) Can't continue due to errors on dependencies", "mix test", "Mix: Can't continue due to errors on dependencies", "mix deps.get"),
        ("terraform plan", "╷\n│ Error: Inconsistent dependency lock file\n╵", "terraform plan", "Error: Inconsistent dependency lock file", "terraform init"),
        ("make build", "main.c:3:10: fatal error: zlib.h: No such file or directory", "make build", "fatal error: zlib.h: No such file or directory", "apt-get install zlib1g-dev"),
        ('git commit -am "Add fee"', "trim whitespace....Failed\n- hook id: trailing-whitespace\n- exit code: 1\n- files were modified by this hook", "git commit", "trailing-whitespace: files were modified by this hook", "git add -u && git commit -m 'Add fee'"),
    ],
)  # fmt: skip
def test_what_was_set_right_before_the_same_call_passed_is_kept(command, output, shape, error, repair):
    again = () if repair.endswith("'Add fee'") else (run(command),)
    (failure,) = found(run(command, output, failed=True), run(repair), *again)
    assert (failure.shape, failure.error, failure.cause) == (shape, error, "content")
    assert (failure.worked, failure.passed, failure.open) == (repair, True, False)


@table(
    ("command", "output", "shape"),
    [
        ("npm test", "npm error code ENOENT\nnpm error syscall open\nnpm error enoent Could not read package.json: Error: ENOENT", "npm test"),
        ("python manage.py test", "python: can't open file '/srv/shop/manage.py': [Errno 2] No such file or directory", "python manage.py test"),
        ("mix test", "** (Mix) Could not find a Mix.Project, please ensure you are running Mix in a directory with a mix.exs file", "mix test"),
    ],
)  # fmt: skip
def test_a_call_in_the_wrong_folder_is_known_by_the_folder_where_it_works(command, output, shape):
    (failure,) = found(run(command, output, failed=True), run(f"cd web && {command}", cwd=f"{ROOT}/web"))
    assert (failure.shape, failure.cause, failure.folder) == (shape, "folder", "")
    assert (failure.worked, failure.worked_in) == (command, "web")


def test_a_call_with_other_values_does_not_confirm_one_that_failed():
    query = "shopctl api -f query='{ order(id: 7) { note(cut:80) } }'"
    (failure,) = found(run(query, "Field 'note' doesn't accept argument 'cut'", failed=True))
    fine = runs_of(session(run(query.replace("(cut:80)", ""))))
    assert confirm_failure_detail(failure_detail(failure, "s1"), fine, "s2")["succeeded_in"] == {}


def test_an_edit_after_which_the_same_error_came_again_did_not_fix_it():
    error = "src/cart.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'."
    fixed = (run("npx tsc", error, failed=True), edit("src/cart.ts", "a", "b"), run("npx tsc"))
    assert found(*fixed)[0].fix
    assert found(*fixed, run("npx tsc", error, failed=True))[0].fix == ""


def test_what_the_agent_says_of_a_failure_is_kept_with_it():
    failing = run("yarn test", "tmp/orders/a1/cart.test.ts:\n(fail) pays in cents\n 1 fail\n", failed=True)
    why = "The failure is from `tmp/orders/`, which an import left behind."
    answer = Step("answer", 9.0, text=f"Prices are in cents now. {why} Shall I commit?", cwd=ROOT)
    (failure,) = failures_of(turns_of([Step("prompt", 0.0, text="go", cwd=ROOT), failing, answer]), root=ROOT)
    assert failure.explained == why
    assert f"The agent said then: {why}" in failure_body(failure_detail(failure, "s1"))
    other = replace(answer, text="The failure was caused by `src/prices.ts`, which is fixed.")
    (failure,) = failures_of(turns_of([Step("prompt", 0.0, text="go", cwd=ROOT), failing, other]), root=ROOT)
    assert failure.explained == ""


def test_a_refused_commit_is_known_by_the_script_that_failed():
    hook = '$ shoplint\nChecked 7 files. Found 1 of them wrong.\nerror: script "lint" exited with code 1\n'
    (failure,) = found(
        run('git commit -m "Add x"', hook, failed=True), run("yarn lint:fix"), run('git commit -m "Add x"')
    )
    assert (failure.shape, failure.error, failure.worked) == ("git commit", "script 'lint' failed", "yarn lint:fix")
    (failure,) = found(run('git commit -m "Add x"', f"ValueError: no cart\n{hook}", failed=True))
    assert failure.error == "ValueError: no cart"
    assert "The script `lint` failed." in failure_body(failure_detail(failure, "s1"))


def test_paths_of_the_project_are_relative_to_its_root():
    (failure,) = found(run(f"shopctl check {ROOT}/a/cart.ts", f"error: {ROOT}/a/cart.ts has no owner", failed=True))
    assert (failure.command, failure.error) == ("shopctl check ./a/cart.ts", "error: ./a/cart.ts has no owner")
