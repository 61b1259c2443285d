"""A command line is read as the shell reads it: its commands, their shapes, the folders they run in."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.extract.commands import (
    command_of,
    commands_of,
    folders_of,
    has_shape,
    shape_of,
    shown,
)
from tests.growth import assert_linear
from tests.tables import table

ROOT = "/srv/shop"


@table(
    ("line", "program", "kind"),
    [
        ("cd app && uv run pytest -q tests/test_a.py 2>&1 | tail -20", "pytest", "test"),
        ("npm run test -- --watch=false", "npm run test", "test"),
        ("timeout 60 go test ./... -run TestX", "go test", "test"),
        ("pnpm --filter shop test -- cart", "pnpm test", "test"),
        ("ruff check . && mypy", "ruff", "lint"),
        ("pip install -r requirements.txt", "pip install", "install"),
        ("git -C /srv/shop commit -m 'x; y && z'", "git commit", "git"),
        ("grep -rn foo . | head", "grep", "look"),
        ("shopctl git commit -m x", "git commit", "git"),  # a wrapper around a tool
        ("echo git commit x", "echo", "look"),
        ("gh pr checks 41", "gh pr checks", "look"),
        ("FOO=1 python manage.py migrate", "manage.py migrate", "migrate"),
        ("cat <<'EOF' > a.py\nimport os; rm -rf /\nEOF\npython a.py", "a.py", "other"),
        ("docker compose exec -T web python manage.py migrate", "manage.py migrate", "migrate"),
        ("docker compose up -d", "docker compose up", "other"),
        ("conda run -n lake dvc repro", "dvc", "other"),
        ("kubectl exec -it api-0 -c app -- pytest tests", "pytest", "test"),
        ("./gradlew connectedDebugAndroidTest", "./gradlew connectedDebugAndroidTest", "test"),
        ("./gradlew ktlintCheck", "./gradlew ktlintCheck", "lint"),
        ("tflint --recursive", "tflint", "lint"),
        ("", "", "other"),
        ("'unclosed", "'unclosed", "other"),
    ],
)
def test_a_line_is_known_by_the_command_that_matters(line, program, kind):
    found = command_of(line)
    assert (found.program, found.kind) == (program, kind)


@table(
    ("line", "shape"),
    [
        ("uv run pytest -n auto tests/test_a.py -q", "uv run pytest"),
        ("shopctl yarn run test 2>&1", "shopctl yarn run test"),
        ("git -C /srv/shop add a.py b.py", "git add -C"),
        ("pnpm --filter shop test -- --testPathPattern=cart", "pnpm test"),
        ("python3 -c 'print(1)\nprint(2)'", "python -c (multi-line)"),
        ("python -c 'print(1)'", "python -c"),
        ("sudo docker compose up -d", "docker compose up -d"),
        ("docker compose exec -T web pytest -x tests/test_a.py", "docker compose exec -T web pytest"),
        ("make -j8 check", "make check"),
        ("cargo clippy --workspace -- -D warnings", "cargo clippy --workspace"),
        ("npx eslint --fix src/a.ts src/b.ts", "npx eslint --fix"),
        ("cargo test --features fuse cart::adds", "cargo test --features"),
    ],
)
def test_a_shape_leaves_out_what_a_command_works_on(line, shape):
    command = command_of(line)
    found = shape_of(command)
    assert found == shape
    assert has_shape(command, found)


@table(
    ("shape", "line", "fits"),
    [
        ("shopctl yarn", "shopctl yarn run lint", True),
        ("shopctl yarn", "shopctl test yarn run lint", False),
        ("cat -A", "cat notes.txt", False),
        ("git -C", "git -C /x status", True),
        ("pnpm --filter web typecheck", "pnpm --filter web typecheck --watch", True),
        ("pnpm --filter web typecheck", "pnpm --filter api typecheck", False),
        ("npm test --pattern=", "npm test -- --pattern=cart", True),
        ("npm test --pattern=", "npm test -- --pattern cart", False),
        ("npm test --pattern", "npm test -- --pattern=cart", True),
        ("python -c (multi-line)", "python3 -c 'a\nb'", True),
        ("python -c (multi-line)", "python3 -c 'a'", False),
        ("", "ls", False),
    ],
)
def test_a_shape_fits_the_calls_that_hold_all_its_words(shape, line, fits):
    assert has_shape(command_of(line), shape) is fits


@table(
    ("line", "cwd", "folders"),
    [
        ("cd web && npm test", ROOT, ("", "web")),
        ("(cd web && npm test); ls", ROOT, ("", "web", "")),
        ("cd /srv/shop/api && go test", f"{ROOT}/web", ("web", "api")),
        ("git -C /srv/shop status && ls", f"{ROOT}/web", ("", "web")),
        ('cd "$X" && ls', ROOT, ("", None)),
        ("cd .. && ls", f"{ROOT}/web", ("web", "")),
        ("ls", "", (None,)),
        ("cd /tmp/x && ls", ROOT, ("", "/tmp/x")),
    ],
)
def test_the_folder_of_each_command_follows_cd(line, cwd, folders):
    assert folders_of(commands_of(line), cwd, root=ROOT) == folders


@table(
    ("line", "tells"),
    [
        ("pytest", [True]),
        ("pytest | tail", [False, True]),
        ("pytest || true", [False, True]),
        ("pytest; echo done", [False, True]),
        ("ruff check && pytest", [True, True]),
        ("set -o pipefail; pytest | tail", [False, True, True]),
    ],
)
def test_what_hides_a_failure_is_known(line, tells):
    assert [each.tells for each in commands_of(line)] == tells


@table(
    ("line", "text"),
    [
        ("cd web && npm run lint 2>&1 | tail -5", "npm run lint"),
        ("sed -n '1,3p' a.txt | od -c | head", "sed -n '1,3p' a.txt | od -c"),
        ("git add a.py && git commit -m \"$(cat <<'EOF'\nFix the cart\nEOF\n)\"", 'git add a.py && git commit -m "…"'),
        ("echo `date`", "echo 'date'"),
    ],
)
def test_a_command_is_shown_in_one_line_without_its_plumbing(line, text):
    assert shown(line) == text


def test_long_commands_are_cut_at_a_word():
    text = shown("pytest " + "tests/test_cart.py " * 50)
    assert len(text) <= 120
    assert text.endswith("tests/test_cart.py…")


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab'\"`\\$(){}<>|&;\n -=/.", max_size=200))
def test_any_text_is_read_without_an_error(line):
    for command in commands_of(line):
        assert command.words
        assert isinstance(shape_of(command), str)
    assert "\n" not in shown(line)
    folders_of(commands_of(line), ROOT, root=ROOT)


def test_hostile_lines_are_read_in_no_time():
    for piece in ("<<a ", "$(", "cd x && ", "((((", "'\"", "a=b ", "-x ", "\\", "| ; ", "docker exec -e "):
        assert_linear(lambda line: (commands_of(line), shown(line)), piece)
