"""Usage: shown by what an agent did afterwards and would not have done anyway, and only where it can be told."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.extract.actions import Action
from foreword.extract.usage import MOST_NOTED, Activity, base_rates_of, shown_text, usage_of
from foreword.models import UNDECIDABLE, Edit, Injection, Item, Memory
from tests.growth import assert_linear
from tests.tables import table

P = "git:shop"
ROOT = "/home/ana/shop"

LEARNING = Memory(
    "learning",
    "The queue drops an envelope when the mailer forgets its originator; `alembic upgrade head --sql` shows the column",
    id="lea-00000001",
    session="s0",
    files=("shop/mail.py", "tests/test_mail.py"),
)
FAILURE = Memory(
    "failure",
    "`yarn unit` fails: Couldn't find a script named 'unit'",
    id="fai-00000001",
    session="s0",
    detail={"command": "yarn unit", "seen_in": {"s0": 1}, "worked": {"yarn test:unit --ci": ["s0"]}, "used_in": {}},
)
DECISION = Memory(
    "decision",
    "Postponed invoices are reconciled nightly",
    body="Reconciling during checkout stalled the warehouse scanners.",
    id="dec-00000001",
)
RULE = Memory("preference", "Run the tests with `uv run pytest -n auto`", id="pre-00000001", files=("shop/mail.py",))
MEMORIES = {each.id: each for each in (LEARNING, FAILURE, DECISION, RULE)}
LINES = {
    LEARNING.id: f"- learned 3 days ago: {LEARNING.title}. shop/mail.py, tests/test_mail.py [{LEARNING.id}]",
    FAILURE.id: '- `yarn unit` fails (2 sessions): "Couldn\'t find a script"; `yarn test:unit --ci` worked in 2',
    DECISION.id: f"- you, 9 days ago: {DECISION.title}. {DECISION.body} [{DECISION.id}]",
    RULE.id: f"- {RULE.title} (you, 3 times)",
}


def injection(*memories: Memory, at=100.0, id="inj-1", trigger="prompt", form="markdown", layer="notes") -> Injection:
    items = tuple(Item(each.id, layer, 0.5, 10, {}) for each in memories)
    lines = [LINES.get(each.id) or f"- {each.title} {' '.join(each.files)} [{each.id}]" for each in memories]
    text = "\n".join(("--- foreword: from earlier sessions ---", *lines, "--- end foreword ---"))
    return Injection(id, trigger, "s1", P, "claude-code", at, 60, 500, 1.0, {}, {}, items, form=form, text=text)


def prompt(text: str, at=100.0) -> Action:
    return Action("prompt", at, text=text)


def answer(text: str, at=150.0) -> Action:
    return Action("answer", at, text=text)


def run(command: str, at=120.0, **more) -> Action:
    return Action("tool", at, act="run", tool="Bash", command=command, **more)


def reads(file: str, at=120.0, **more) -> Action:
    return Action("tool", at, act="read", tool="Read", files=(file,), **more)


def edits(file: str, before: str, after: str, at=120.0) -> Action:
    return Action("tool", at, act="edit", tool="Edit", files=(file,), edits=(Edit(file, before, after),))


def turn(session: str, *files: str, at=50.0, read=(), commands=(), body="") -> Memory:
    """A turn of an earlier session, as base rates are counted from."""
    detail = {"read": list(read), "commands": list(commands)}
    return Memory("turn", "Something", body=body, session=session, created=at, files=files, detail=detail)


QUESTION = prompt("why are offers not going out?")
OTHER = reads("shop/cart.py", at=119.0)  # work that has nothing to do with any of them
USED_BY_FILE, IGNORED, UNKNOWN = (True, "file"), (False, ""), (None, UNDECIDABLE)


def usage(*actions: Action, injections=(), over=True, memories=MEMORIES, history=(), **more):
    activity = Activity()
    for action in actions:
        activity.add(action, project=P, root=ROOT)
    rates = {P: base_rates_of(history, session="s1", before=100.0)}
    injections = injections or [injection(LEARNING)]
    found = usage_of(injections, memories=memories, activity=activity, base_rates=rates, over=over, **more)
    return {(each.injection, each.memory): (each.used, each.how) for each in found}


def usage_of_one(memory: Memory, *actions: Action, **more):
    """What is said of one memory in one injection, after a prompt and unrelated work."""
    found = usage(
        QUESTION, OTHER, *actions, injections=[injection(memory)], memories={**MEMORIES, memory.id: memory}, **more
    )
    return found.get(("inj-1", memory.id))


# ---- what shows use


def test_a_memory_that_was_fetched_was_used_whatever_its_kind():
    for memory in (LEARNING, RULE):
        assert usage_of_one(memory, fetched=[(memory.id, 110.0)]) == (True, "fetched")
        assert usage_of_one(memory, run(f"cd /tmp && uv run foreword show {memory.id} --json; ls")) == (True, "fetched")
    assert usage_of_one(LEARNING, fetched=[(LEARNING.id, 99.0)]) == IGNORED  # before it was shown
    assert usage_of_one(LEARNING, run(f"echo {LEARNING.id} >> notes.txt"), fetched=[(RULE.id, 110.0)]) == IGNORED


@table(
    "action",
    [
        reads("shop/mail.py"),
        edits("tests/test_mail.py", "a = 1", "a = 2"),
        run("sed -n 1,80p shop/mail.py"),
        run(f"cat {ROOT}/shop/mail.py | head -40"),
        run("cd src && nl ./shop/mail.py"),
    ],
)
def test_a_rare_file_that_nobody_had_named_shows_use(action):
    assert usage_of_one(LEARNING, action) == USED_BY_FILE


@table(
    "memory, command",
    [
        (LEARNING, "cd backend && alembic upgrade head --sql"),
        (FAILURE, "yarn test:unit --ci src/cart 2>&1 | tail -5"),
    ],
)
def test_a_rare_command_that_nobody_had_named_shows_use(memory, command):
    assert usage_of_one(memory, run(command)) == (True, "command")


def test_three_rare_words_that_nobody_had_used_show_use():
    repeated = answer("The scanners in the warehouse had stalled, so reconciling happens at night.")
    assert usage_of_one(DECISION, repeated) == (True, "words")
    assert usage_of_one(DECISION, answer(DECISION.body)) == (True, "words")  # word by word, too
    written = edits("shop/jobs.py", "pass", "# reconcile at night: the warehouse scanners stall by day")
    assert usage_of_one(DECISION, written) == (True, "words")
    apart = [
        answer(f"There is a {each}.", at=150.0 + at) for at, each in enumerate(("scanner", "invoice", "warehouse"))
    ]
    assert usage_of_one(DECISION, *apart) == UNKNOWN
    memory = replace(DECISION, id="dec-00000002", title="倉庫の在庫は夜間に照合する", body="")
    assert usage_of_one(memory, answer("夜間照合にしたのは、在庫が…")) == (True, "words")


# ---- what does not


def test_being_shown_is_no_use():
    block = [injection(LEARNING, DECISION, RULE, FAILURE)]
    assert usage(QUESTION, injections=block, over=False) == {}
    assert set(usage(QUESTION, injections=block).values()) == {UNKNOWN}


@table(
    "files, sessions, expected",
    [
        (("shop/mail.py",), 1, USED_BY_FILE),  # one more than the session that it came from
        (("shop/mail.py",), 3, UNKNOWN),
        (("shop/cart.py",), 30, USED_BY_FILE),
    ],
)
def test_a_file_that_many_sessions_touch_proves_nothing(files, sessions, expected):
    edited = [turn(f"e{number}", *files, at=90.0 - number) for number in range(sessions)]
    read = [turn(f"r{number}", read=files, at=90.0 - number) for number in range(sessions)]
    others = [turn(f"o{number}", "shop/jobs.py", at=30.0 - number) for number in range(10)]
    for history in ([*edited, *others][:30], [*read, *others][:30]):
        assert usage_of_one(LEARNING, reads("shop/mail.py"), history=history) == expected


def test_a_session_that_used_a_memory_says_nothing_about_chance():
    history = [turn(f"e{number}", "shop/mail.py", at=90.0 - number) for number in range(9)]
    assert usage_of_one(LEARNING, reads("shop/mail.py"), history=history) == UNKNOWN
    because = {LEARNING.id: frozenset(f"e{number}" for number in range(9))}
    assert usage_of_one(LEARNING, reads("shop/mail.py"), history=history, used_before=because) == USED_BY_FILE


@table(
    "named",
    [
        prompt("look at shop/mail.py"),
        prompt('File "/app/shop/mail.py", line 3'),
        prompt("does the mail hold a sender?"),
        run("ls shop", at=118.0, output="cart.py\nmail.py\n"),
        reads("shop/jobs.py", at=118.0, output="from shop import mail\n"),
        run("cat shop/mail.py", at=90.0),
        answer("It may be in mail.py", at=118.0),
    ],
)
def test_a_file_that_somebody_had_named_or_touched_proves_nothing(named):
    memory = replace(LEARNING, files=("shop/mail.py",))
    actions = (QUESTION, named, OTHER, reads("shop/mail.py"))
    found = usage(*actions, injections=[injection(memory)], memories={memory.id: memory})
    assert found == {("inj-1", memory.id): UNKNOWN}


def test_a_file_that_could_not_be_read_or_was_not_shown_or_is_everybodys_proves_nothing():
    assert usage_of_one(LEARNING, reads("shop/mail.py", failed=True)) == IGNORED
    hidden = replace(LEARNING, files=(*LEARNING.files, "shop/queue.py"))
    assert usage_of_one(hidden, reads("shop/queue.py")) == IGNORED  # its line does not name it
    everyday = Memory("learning", "Versions are pinned", id="lea-00000002", files=("README.md", "web/package.json"))
    assert usage_of_one(everyday, reads("README.md")) == UNKNOWN
    activity = Activity()
    for action in (QUESTION, OTHER):
        activity.add(action, project=P, root=ROOT)
    activity.add(reads("shop/mail.py"), project="git:other", root="/elsewhere")
    (verdict,) = usage_of([injection(LEARNING)], memories=MEMORIES, activity=activity, over=True)
    assert verdict.used is False


@table(
    "actions",
    [
        (run("yarn unit", at=118.0, failed=True), run("yarn test:unit --ci")),  # the failure leads everybody there
        (run("yarn test:unit --ci", at=90.0), run("yarn test:unit --ci")),
        (prompt("please run yarn test:unit"), run("yarn test:unit --ci")),
    ],
)
def test_a_command_that_the_session_would_have_come_to_proves_nothing(actions):
    assert usage_of_one(FAILURE, *actions) == UNKNOWN


def test_running_the_failing_command_is_no_use():
    assert usage_of_one(FAILURE, run("yarn unit", failed=True)) == IGNORED


def test_an_alternative_counts_against_sessions_that_ran_it_without_the_failure():
    driven = {f"f{number}": 1 for number in range(20)}
    history = [turn(f"f{number}", commands=("yarn test:unit --ci",), at=90.0 - number) for number in range(20)]
    memory = replace(FAILURE, detail={**FAILURE.detail, "seen_in": driven})
    assert usage_of_one(memory, run("yarn test:unit --ci"), history=history) == (True, "command")
    assert usage_of_one(FAILURE, run("yarn test:unit --ci"), history=history) == UNKNOWN


@table(
    "command", ["pytest -q", "make test", "git commit", "npm run build", "ruff", "cat a.txt", "ls -la", "x.lookup(1)"]
)
def test_a_command_that_everybody_runs_and_code_prove_nothing(command):
    memory = Memory("learning", f"Then `{command}` prints a table", id="lea-00000002")
    assert usage_of_one(memory, run(command)) == UNKNOWN


def test_words_that_others_used_first_or_that_are_common_here_tell_nothing():
    repeated = answer("The scanners in the warehouse had stalled, so reconciling happens at night.")
    first = (
        prompt("did warehouse scanners stall while it reconciled?"),
        reads("docs/x.txt", output="scanner: stalled\nwarehouse 7\nreconcile: yes, nightly"),
        answer("Warehouse scanners stalled. It reconciles.", at=90.0),
    )
    for action in first:
        assert usage_of_one(DECISION, action, repeated) == UNKNOWN
    history = [turn(f"e{number}", body=DECISION.body, at=90.0 - number) for number in range(9)]
    assert usage_of_one(DECISION, repeated, history=history) == UNKNOWN
    everyday = Memory("decision", "Always update the changelog before you release a new version", id="dec-00000002")
    assert usage_of_one(everyday, answer("I will update the version and its changelog, then release it.")) == UNKNOWN


# ---- what was ignored


def test_nothing_is_called_ignored_while_its_window_is_open():
    assert usage_of_one(LEARNING, over=False) is None
    assert usage_of_one(LEARNING, over=True) == IGNORED
    assert usage_of_one(LEARNING, Action("start", 130.0, source="resume"), over=False) is None
    assert usage_of_one(LEARNING, answer("Looking."), reads("shop/mail.py", at=900.0), over=False) == USED_BY_FILE
    # What is sent again with every request outlives compactions.
    standing = [injection(LEARNING, trigger="session_start", form="xml", layer="knowledge")]
    closed = (QUESTION, OTHER, Action("compaction", 130.0))
    assert usage(*closed, injections=standing, over=False) == {}
    found = usage(*closed, reads("shop/mail.py", at=140.0), injections=standing)
    assert found == {("inj-1", LEARNING.id): USED_BY_FILE}


@table("close", [Action("compaction", 130.0), Action("start", 130.0, source="clear")])
def test_what_follows_the_end_of_a_window_is_not_its_use(close):
    assert usage_of_one(LEARNING, close, reads("shop/mail.py", at=140.0), over=False) == IGNORED


def test_what_could_not_have_shown_use_is_not_called_ignored():
    assert usage_of_one(DECISION) == UNKNOWN  # it names nothing to open or run
    assert usage_of_one(LEARNING, prompt("leave the mail alone", at=110.0)) == UNKNOWN  # the user decides about it
    common = [turn(f"e{number}", *LEARNING.files, commands=("alembic upgrade head --sql",)) for number in range(9)]
    assert usage_of_one(LEARNING, history=common) == UNKNOWN
    assert usage(QUESTION, answer("Hello!"))["inj-1", LEARNING.id] == UNKNOWN  # the agent did nothing
    delegated = Action("tool", 130.0, act="delegate", tool="Task")
    assert usage_of_one(LEARNING, delegated) == UNKNOWN  # what a sub-agent did is not seen
    assert usage_of_one(LEARNING, delegated, reads("shop/mail.py")) == USED_BY_FILE
    assert usage(QUESTION, OTHER, memories={}) == {("inj-1", LEARNING.id): UNKNOWN}  # forgotten meanwhile


@table("layer, memory", [("rules", RULE), ("notes", RULE), ("standing", LEARNING), ("rules", DECISION)])
def test_rules_and_where_things_stand_are_not_judged(layer, memory):
    done = (reads("shop/mail.py"), run("uv run pytest -n auto"), answer(f"{memory.title} {memory.body}"))
    for actions in ((QUESTION, OTHER), (QUESTION, OTHER, *done)):
        found = usage(*actions, injections=[injection(memory, layer=layer)])
        assert found == {("inj-1", memory.id): UNKNOWN}


def test_a_memory_in_two_layers_is_judged_where_it_is_a_note():
    two = injection(LEARNING, layer="sessions")
    two = replace(two, items=(*two.items, replace(two.items[0], layer="standing")))
    activity = Activity()
    for action in (QUESTION, reads("shop/mail.py")):
        activity.add(action, project=P, root=ROOT)
    found = usage_of([two], memories=MEMORIES, activity=activity, over=True)
    assert {each.layer: each.used for each in found} == {"sessions": True, "standing": None}


# ---- over time


def test_what_is_known_is_not_said_again_and_use_can_come_late():
    for known, how, actions in ((True, "file", ()), (False, "", (OTHER,)), (None, UNDECIDABLE, ())):
        item = Item(LEARNING.id, "notes", 0.5, 10, {}, used=known, how=how)
        assert usage(QUESTION, *actions, injections=[replace(injection(LEARNING), items=(item,))]) == {}
    item = Item(LEARNING.id, "notes", 0.5, 10, {}, used=False)
    too_early = [replace(injection(LEARNING), items=(item,))]
    assert usage(QUESTION, OTHER, injections=too_early, over=False) == {}
    found = usage(QUESTION, OTHER, reads("shop/mail.py", at=9000.0), injections=too_early, over=False)
    assert found == {("inj-1", LEARNING.id): USED_BY_FILE}


def test_activity_is_bounded_and_then_calls_nothing_ignored():
    activity = Activity()
    for number in range(MOST_NOTED + 10):
        activity.add(reads(f"f{number}.py", at=101.0 + number), project=P, root=ROOT)
    (verdict,) = usage_of([injection(LEARNING)], memories=MEMORIES, activity=activity, over=True)
    assert (verdict.used, verdict.how) == UNKNOWN
    text = " ".join(f"word{number}" for number in range(20_000))
    for number in range(20):
        activity.add(answer(text, at=9000.0 + number), project=P)
    assert len(activity.new_words(activity.window_of(injection(LEARNING)))) < 10


@table("piece", [".", "A", "a_", "-a.", "`", "foreword show "])
def test_time_grows_with_the_length_of_a_text_and_no_more(piece):
    def read(text):
        activity = Activity()
        for action in (answer(text), run(text), prompt(text), reads("a.py", output=text), edits("a.py", "", text)):
            activity.add(action, project=P, root=ROOT)
        usage_of([replace(injection(LEARNING), text=text)], memories=MEMORIES, activity=activity, over=True)

    assert_linear(read, piece)


def test_only_the_lines_of_a_memory_count_as_shown():
    block = f'- one [{LEARNING.id}]\n- two [{DECISION.id}]\nMore: memory_get("{LEARNING.id}")'
    assert shown_text(block, LEARNING) == f"- one [{LEARNING.id}]"
    assert shown_text(f"- a\n{LINES[FAILURE.id]}", FAILURE) == LINES[FAILURE.id]
    assert LEARNING.title in shown_text("", LEARNING)  # the text was pruned: all of it may have been shown


@given(st.permutations([prompt("why?"), reads("shop/cart.py"), reads("shop/mail.py", at=90.0), answer("ok")]))
@settings(deadline=None)
def test_the_order_in_which_actions_arrive_does_not_matter(actions):
    assert usage(*actions) == {("inj-1", LEARNING.id): UNKNOWN}


TEXTS = st.text(max_size=80)


@given(title=TEXTS, body=TEXTS, before=TEXTS, after=TEXTS)
@settings(max_examples=60, deadline=None)
def test_what_the_user_had_said_is_never_use_and_any_text_is_judged(title, body, before, after):
    memory = Memory("decision", title, body=body, id="dec-00000002", files=(before,), detail={"command": after})
    actions = (run(before), run(after), edits("a", before, after), answer(f"{title}\n{body}"))
    history = [turn("e1", before, commands=(after,), body=body)]
    found = usage_of_one(memory, prompt(f"{title}\n{body}"), *actions, history=history)
    assert found != (True, "words")
