"""Use: judged from what was done and said after, never from our own words, and only where it can be told."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

from foreword.extract.actions import Action
from foreword.store.judged import UNTOLD
from foreword.types import Edit, Injection, Item, Memory
from foreword.use import MOST_FILES, Footprint, judge
from tests.tables import table

P = "git:shop"
ROOT = "/home/ana/shop"

FAILURE = Memory(
    "failure",
    "KeyError: 'sender' (test_offer)",
    body="The queue drops the envelope because the mailer forgets its originator.",
    id="fai-00000001",
    files=("shop/mail.py", "tests/test_mail.py"),
    functions=("send_offer", "Mailer.deliver_later"),
    detail={"command": "pytest tests/test_mail.py -q", "fixed_by": "ran `alembic upgrade head`", "open": False},
)
PREFERENCE = Memory("preference", "Run the tests with `uv run pytest -n auto`", id="pre-00000001")
DECISION = Memory(
    "decision",
    "Postponed invoices are reconciled nightly",
    body="Reconciling during checkout stalled the warehouse scanners.",
    id="dec-00000001",
)
MEMORIES = {each.id: each for each in (FAILURE, PREFERENCE, DECISION)}


def injection(*memories: Memory, at=100.0, id="inj-1", moment="prompt", form="markdown", text="") -> Injection:
    items = tuple(Item(each.id, "index", 0.5, 10, {}) for each in memories)
    shown = text or "\n".join(f"[{each.kind}] {each.id} | {each.title} | 5d | 0.81" for each in memories)
    empty: dict[str, int] = {}
    return Injection(
        id, moment, "s1", P, "claude-code", at, 60, 500, 1.0, empty, {}, items, form=form, text=f"--- foreword\n{shown}"
    )


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


OTHER = reads("shop/cart.py", at=119.0)  # work that has nothing to do with any of them
ASKED = prompt("why are offers not going out?")


def verdicts(*actions: Action, given=(), over=True, memories=MEMORIES, functions=(), **more):
    footprint = Footprint()
    for action in actions:
        footprint.add(action, project=P, root=ROOT, functions=functions if action.edits else ())
    got = judge(given or [injection(FAILURE)], memories=memories, footprint=footprint, over=over, **more)
    return {(each.injection, each.memory): (each.used, each.how) for each in got}


def of_failure(*actions: Action, **more):
    return verdicts(ASKED, OTHER, *actions, **more).get(("inj-1", FAILURE.id))


# ---- what tells use


def test_what_was_fetched_touched_or_run_was_used():
    # A memory that was fetched was used.
    assert of_failure(fetched=[(FAILURE.id, 110.0)]) == (True, "fetched")
    assert of_failure(run(f"foreword show {FAILURE.id} --json")) == (True, "fetched")
    assert of_failure(run(f"cd /tmp && uv run foreword show pre-00000001 {FAILURE.id}; ls")) == (True, "fetched")
    # Naming an id without fetching it is no use.
    assert of_failure(run(f"echo {FAILURE.id} >> notes.txt"), fetched=[(PREFERENCE.id, 110.0)]) == (False, "")
    # A file that was read or edited tells use.
    assert of_failure(reads("shop/mail.py")) == (True, "file")
    assert of_failure(edits("tests/test_mail.py", "a = 1", "a = 2")) == (True, "file")
    # A file that could not be read tells nothing.
    assert of_failure(reads("shop/mail.py", failed=True)) == (False, "")
    # A function that was changed or called in a changed line tells use.
    assert of_failure(edits("shop/jobs.py", "pass", "send_offer(guest)")) == (True, "function")
    assert of_failure(edits("shop/jobs.py", "x = 1", "x = 2"), functions=["Mailer.deliver_later"]) == (True, "function")
    # A function in lines that stayed tells nothing.
    around = "def send_offer(guest):\n    {}\n"
    assert of_failure(edits("shop/jobs.py", around.format("a = 1"), around.format("a = 2"))) == (False, "")
    # A command that was run tells use whatever stands around it.
    assert of_failure(run("uv run pytest -x tests/test_mail.py 2>&1 | tail -5")) == (True, "command")
    assert of_failure(run("cd backend && alembic upgrade head")) == (True, "command")
    preference = verdicts(ASKED, run("uv run pytest -n auto tests"), given=[injection(PREFERENCE)])
    assert preference == {("inj-1", PREFERENCE.id): (True, "command")}
    # Code in backticks is no command.
    memory = replace(DECISION, title="Return `None or default` from `get_rate`, see `rates.lookup(day)`")
    got = verdicts(ASKED, OTHER, given=[injection(memory)], memories={memory.id: memory})
    assert got == {("inj-1", memory.id): (None, UNTOLD)}


@table(
    "command",
    ["sed -n 1,80p shop/mail.py", f"cat {ROOT}/shop/mail.py | head -40", "cd src && nl ./shop/mail.py"],
)
def test_a_file_that_was_read_by_a_command_tells_use(command):
    assert of_failure(run(command)) == (True, "file")


@table("command", ["pytest -q", "make test", "git commit", "npm run build", "ruff", "cat a.txt", "ls -la"])
def test_a_command_that_everybody_runs_tells_nothing(command):
    memory = replace(FAILURE, files=(), functions=(), detail={"command": command})
    got = verdicts(ASKED, run(command), given=[injection(memory)], memories={memory.id: memory})
    assert got == {("inj-1", memory.id): (None, UNTOLD)}


def test_an_answer_in_other_words_tells_use():
    # An answer that says it in other words tells use.
    said = answer("The scanners in the warehouse had stalled, so reconciling happens at night.")
    assert verdicts(ASKED, said, given=[injection(DECISION)]) == {("inj-1", DECISION.id): (True, "words")}
    # Words count by their roots and together in one answer.
    words = ["scanner", "invoice", "reconciliations postponing"]
    apart = [answer(f"There is a {each}.", at=150.0 + number) for number, each in enumerate(words)]
    assert verdicts(ASKED, *apart, given=[injection(DECISION)])[("inj-1", DECISION.id)] == (None, UNTOLD)
    together = answer("An invoice, a scanner, and what was postponed.")
    assert verdicts(ASKED, together, given=[injection(DECISION)])[("inj-1", DECISION.id)] == (True, "words")
    # Other scripts are understood too.
    memory = replace(DECISION, title="倉庫の在庫は夜間に照合する", body="請求書の処理が遅延したため")
    quoting = answer("了解。倉庫の在庫は夜間に照合する。")
    meant = answer("夜間照合にしたのは、請求書で処理遅延があり在庫が…")
    one = {memory.id: memory}
    assert verdicts(ASKED, quoting, given=[injection(memory)], memories=one)[("inj-1", memory.id)] == (None, UNTOLD)
    assert verdicts(ASKED, meant, given=[injection(memory)], memories=one)[("inj-1", memory.id)] == (True, "words")


# ---- what does not


def test_what_was_known_before_or_named_by_the_user_proves_nothing():
    # Being shown is no use.
    assert verdicts(ASKED, given=[injection(FAILURE, DECISION, PREFERENCE)], over=False) == {}
    assert set(verdicts(ASKED, given=[injection(FAILURE, DECISION, PREFERENCE)]).values()) == {(None, UNTOLD)}
    # What was done before it was given is no use.
    for action in (reads("shop/mail.py", at=90.0), run("pytest tests/test_mail.py -q", at=90.0)):
        assert of_failure(action) == (None, UNTOLD)
    said = answer("The scanners in the warehouse had stalled, so reconciling happens at night.", at=90.0)
    assert verdicts(said, ASKED, given=[injection(DECISION)])[("inj-1", DECISION.id)] == (None, UNTOLD)
    assert of_failure(fetched=[(FAILURE.id, 99.0)]) == (False, "")
    # What had been touched before proves nothing when it is touched again.
    assert of_failure(reads("shop/mail.py", at=90.0), edits("shop/mail.py", "a", "b", at=130.0)) == (None, UNTOLD)
    # A function of a file that was known still proves something.
    assert of_failure(reads("shop/mail.py", at=90.0), edits("shop/mail.py", "a", "send_offer()")) == (True, "function")
    # A file that was named only after it was touched was found by the memory.
    assert verdicts(ASKED, reads("shop/mail.py"), prompt("yes, mail.py it is", at=130.0))[("inj-1", FAILURE.id)] == (
        True,
        "file",
    )
    # A command or function that the prompt named proves nothing.
    assert verdicts(prompt("please run alembic upgrade head"), run("alembic upgrade head"))[("inj-1", FAILURE.id)] == (
        None,
        UNTOLD,
    )
    assert verdicts(prompt("rename send_offer"), edits("shop/jobs.py", "a", "send_offer()"))[("inj-1", FAILURE.id)] == (
        None,
        UNTOLD,
    )


@table("named", ["look at shop/mail.py", "what does `mail.py` do?", 'File "/app/shop/mail.py", line 3'])
def test_a_file_that_the_prompt_named_proves_nothing(named):
    assert verdicts(prompt(named), OTHER, reads("shop/mail.py")) == {("inj-1", FAILURE.id): (None, UNTOLD)}
    later = (ASKED, OTHER, prompt(named, at=110.0), reads("shop/mail.py"))
    assert verdicts(*later) == {("inj-1", FAILURE.id): (None, UNTOLD)}


def test_our_own_and_everyones_words_tell_nothing():
    # An answer that repeats our lines is no use.
    given = injection(FAILURE, DECISION, text=f"{DECISION.title}: {DECISION.body}\n{FAILURE.title}\n{FAILURE.body}")
    quoting = answer(f"My notes say: “{given.text}”. Shall I go on?")
    assert set(verdicts(ASKED, quoting, given=[given]).values()) == {(None, UNTOLD)}
    pieces = answer("I know that **postponed invoices are** special; *stalled the warehouse scanners* is noted.")
    assert set(verdicts(ASKED, pieces, given=[given]).values()) == {(None, UNTOLD)}
    # An answer that repeats what was never shown of a memory is no use either.
    assert verdicts(ASKED, answer(DECISION.body), given=[injection(DECISION)])[("inj-1", DECISION.id)] == (None, UNTOLD)
    # Words that the user or a tool said first tell nothing.
    said = answer("The scanners in the warehouse had stalled, so reconciling happens at night.")
    theirs = prompt("did warehouse scanners stall while it reconciled?")
    read = reads("docs/x.txt", output="scanner: stalled\nwarehouse 7\nreconcile: yes, nightly")
    for actions in ((theirs, said), (ASKED, read, said)):
        assert verdicts(*actions, given=[injection(DECISION)])[("inj-1", DECISION.id)] == (None, UNTOLD)
    # Words of every day tell nothing.
    memory = replace(
        DECISION, title="Always update the changelog", body="before you release a new version of the package"
    )
    said = answer("I will update the version, the package and its changelog, then release a build and push the branch.")
    got = verdicts(ASKED, said, given=[injection(memory)], memories={memory.id: memory})
    assert got[("inj-1", memory.id)] == (None, UNTOLD)
    # Words that many of the given memories hold tell nothing about one.
    alike = [replace(DECISION, id=f"dec-0000000{number}", title=f"{DECISION.title} {number}") for number in range(4)]
    said = answer("The scanners in the warehouse had stalled, so reconciling happens at night.")
    got = verdicts(ASKED, said, given=[injection(*alike)], memories={each.id: each for each in alike})
    assert set(got.values()) == {(None, UNTOLD)}
    # Files that every session reads tell nothing.
    memory = replace(FAILURE, files=("README.md", "web/package.json"), functions=(), detail={})
    got = verdicts(ASKED, reads("README.md"), given=[injection(memory)], memories={memory.id: memory})
    assert got == {("inj-1", memory.id): (None, UNTOLD)}
    # The same file of another project tells nothing.
    footprint = Footprint()
    for action in (ASKED, OTHER):
        footprint.add(action, project=P, root=ROOT)
    footprint.add(reads("shop/mail.py"), project="git:other", root="/elsewhere")
    (said,) = judge([injection(FAILURE)], memories=MEMORIES, footprint=footprint, over=True)
    assert said.used is False


# ---- what was for nothing


def test_nothing_is_called_unused_while_its_window_is_open():
    # Nothing is called unused while the session goes on.
    assert of_failure(over=False) is None
    assert of_failure(over=True) == (False, "")
    # A later turn may still tell use.
    assert of_failure(answer("Looking."), over=False) is None
    assert of_failure(answer("Looking."), reads("shop/mail.py", at=900.0), over=False) == (True, "file")
    # A resumed session goes on in the same window.
    assert of_failure(Action("start", 130.0, source="resume"), over=False) is None
    # What is sent again with every request outlives compactions.
    standing = injection(FAILURE, moment="session_start", form="xml")
    closed = (ASKED, OTHER, Action("compaction", 130.0))
    assert verdicts(*closed, given=[standing], over=False) == {}
    assert verdicts(*closed, reads("shop/mail.py", at=140.0), given=[standing]) == {
        ("inj-1", FAILURE.id): (True, "file")
    }
    # The window that an injection begins is its own.
    start = injection(FAILURE, moment="session_start", at=50.0)
    assert verdicts(Action("start", 50.0, source="startup"), ASKED, OTHER, given=[start], over=False) == {}


@table("close", [Action("compaction", 130.0), Action("start", 130.0, source="clear")])
def test_a_window_that_closed_is_judged_to_the_end_and_what_follows_is_not_its_use(close):
    assert of_failure(close, reads("shop/mail.py", at=140.0), over=False) == (False, "")


def test_what_cannot_be_told_is_not_called_unused():
    # Rules and what names nothing to touch or run are never called unused.
    given = injection(PREFERENCE, DECISION, replace(PREFERENCE, id="cor-00000001", kind="correction"))
    memories = {**MEMORIES, "cor-00000001": replace(PREFERENCE, id="cor-00000001", kind="correction", files=("a.py",))}
    got = verdicts(ASKED, OTHER, answer("Done."), given=[given], memories=memories)
    assert set(got.values()) == {(None, UNTOLD)}
    handoff = Memory("handoff", "Ask Ana about the vouchers", id="han-00000001")
    got = verdicts(ASKED, OTHER, given=[injection(handoff)], memories={handoff.id: handoff})
    assert got == {("inj-1", handoff.id): (None, UNTOLD)}
    # Where the agent did nothing nobody can tell.
    assert verdicts(ASKED, answer("Hello!"))[("inj-1", FAILURE.id)] == (None, UNTOLD)
    # Where a sub agent worked nobody can tell what it left alone.
    assert of_failure(Action("tool", 130.0, act="delegate", tool="Task")) == (None, UNTOLD)
    assert of_failure(Action("tool", 130.0, act="delegate", tool="Task"), reads("shop/mail.py")) == (True, "file")
    # A memory that is gone cannot be told.
    assert verdicts(ASKED, OTHER, memories={}) == {("inj-1", FAILURE.id): (None, UNTOLD)}


# ---- over time


def test_verdicts_are_said_once_and_footprints_bounded():
    # What was used is not judged again and nothing is said twice.
    used = replace(injection(FAILURE), items=(Item(FAILURE.id, "index", 0.5, 10, {}, used=True, how="file"),))
    assert verdicts(ASKED, OTHER, given=[used]) == {}
    for known, how in ((False, ""), (None, UNTOLD)):
        item = Item(FAILURE.id, "index", 0.5, 10, {}, used=known, how=how)
        actions = (ASKED, OTHER) if known is False else (ASKED,)
        assert verdicts(*actions, given=[replace(injection(FAILURE), items=(item,))]) == {}
    # What was called unused too early becomes used when the session goes on.
    item = Item(FAILURE.id, "index", 0.5, 10, {}, used=False)
    given = replace(injection(FAILURE), items=(item,))
    assert verdicts(ASKED, OTHER, given=[given], over=False) == {}
    got = verdicts(ASKED, OTHER, reads("shop/mail.py", at=9000.0), given=[given], over=False)
    assert got == {("inj-1", FAILURE.id): (True, "file")}
    # A footprint is bounded and then says less.
    footprint = Footprint()
    for number in range(MOST_FILES + 10):
        footprint.add(reads(f"f{number}.py", at=101.0 + number), project=P, root=ROOT)
    assert footprint.touched(f"f{MOST_FILES + 5}.py", project=P) is None
    (said,) = judge([injection(FAILURE)], memories=MEMORIES, footprint=footprint, over=True)
    assert (said.used, said.how) == (None, UNTOLD)
    for number in range(60):
        footprint.add(answer("words " * 10_000 + str(number), at=9000.0 + number), project=P)
    assert sum(len(text) for _, text in footprint.answers) < 500_000


@examples(st.permutations([prompt("why?"), reads("shop/cart.py"), reads("shop/mail.py", at=90.0), answer("ok")]))
@settings(deadline=None)
def test_the_order_in_which_deeds_arrive_does_not_matter(actions):
    assert verdicts(*actions) == {("inj-1", FAILURE.id): (None, UNTOLD)}


TEXTS = st.text(max_size=80)


@examples(title=TEXTS, body=TEXTS, before=TEXTS, after=TEXTS)
@settings(max_examples=60, deadline=None)
def test_an_answer_made_of_our_words_alone_is_never_use_and_any_text_is_judged(title, body, before, after):
    memory = Memory("decision", title, body=body, id="dec-00000001")
    given = injection(memory, text=f"{title}\n{body}")
    quoted = answer(f"{title}\n{body}")
    assert verdicts(prompt(before), quoted, run(before), edits("a", before, after), given=[given], memories={
        memory.id: memory
    }).get(("inj-1", memory.id)) != (True, "words")  # fmt: skip
