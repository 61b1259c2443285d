"""Use: judged from what was done and said after, never from our own words, and only where it can be told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

from foreword.deeds import Deed
from foreword.store.judged import UNTOLD
from foreword.types import Edit, Injection, Item, Memory
from foreword.use import MOST_FILES, Footprint, judge

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


def prompt(text: str, at=100.0) -> Deed:
    return Deed("prompt", at, text=text)


def answer(text: str, at=150.0) -> Deed:
    return Deed("answer", at, text=text)


def run(command: str, at=120.0, **more) -> Deed:
    return Deed("tool", at, act="run", tool="Bash", command=command, **more)


def reads(file: str, at=120.0, **more) -> Deed:
    return Deed("tool", at, act="read", tool="Read", files=(file,), **more)


def edits(file: str, before: str, after: str, at=120.0) -> Deed:
    return Deed("tool", at, act="edit", tool="Edit", files=(file,), edits=(Edit(file, before, after),))


OTHER = reads("shop/cart.py", at=119.0)  # work that has nothing to do with any of them
ASKED = prompt("why are offers not going out?")


def verdicts(*deeds: Deed, given=(), over=True, memories=MEMORIES, functions=(), **more):
    footprint = Footprint()
    for deed in deeds:
        footprint.add(deed, project=P, root=ROOT, functions=functions if deed.edits else ())
    got = judge(given or [injection(FAILURE)], memories=memories, footprint=footprint, over=over, **more)
    return {(each.injection, each.memory): (each.used, each.how) for each in got}


def of_failure(*deeds: Deed, **more):
    return verdicts(ASKED, OTHER, *deeds, **more).get(("inj-1", FAILURE.id))


# ---- what tells use


def test_a_memory_that_was_fetched_was_used():
    assert of_failure(fetched=[(FAILURE.id, 110.0)]) == (True, "fetched")
    assert of_failure(run(f"foreword show {FAILURE.id} --json")) == (True, "fetched")
    assert of_failure(run(f"cd /tmp && uv run foreword show pre-00000001 {FAILURE.id}; ls")) == (True, "fetched")


def test_naming_an_id_without_fetching_it_is_no_use():
    assert of_failure(run(f"echo {FAILURE.id} >> notes.txt"), fetched=[(PREFERENCE.id, 110.0)]) == (False, "")


def test_a_file_that_was_read_or_edited_tells_use():
    assert of_failure(reads("shop/mail.py")) == (True, "file")
    assert of_failure(edits("tests/test_mail.py", "a = 1", "a = 2")) == (True, "file")


@pytest.mark.parametrize(
    "command",
    ["sed -n 1,80p shop/mail.py", f"cat {ROOT}/shop/mail.py | head -40", "cd src && nl ./shop/mail.py"],
)
def test_a_file_that_was_read_by_a_command_tells_use(command):
    assert of_failure(run(command)) == (True, "file")


def test_a_file_that_could_not_be_read_tells_nothing():
    assert of_failure(reads("shop/mail.py", failed=True)) == (False, "")


def test_a_function_that_was_changed_or_called_in_a_changed_line_tells_use():
    assert of_failure(edits("shop/jobs.py", "pass", "send_offer(guest)")) == (True, "function")
    assert of_failure(edits("shop/jobs.py", "x = 1", "x = 2"), functions=["Mailer.deliver_later"]) == (True, "function")


def test_a_function_in_lines_that_stayed_tells_nothing():
    around = "def send_offer(guest):\n    {}\n"
    assert of_failure(edits("shop/jobs.py", around.format("a = 1"), around.format("a = 2"))) == (False, "")


def test_a_command_that_was_run_tells_use_whatever_stands_around_it():
    assert of_failure(run("uv run pytest -x tests/test_mail.py 2>&1 | tail -5")) == (True, "command")
    assert of_failure(run("cd backend && alembic upgrade head")) == (True, "command")
    preference = verdicts(ASKED, run("uv run pytest -n auto tests"), given=[injection(PREFERENCE)])
    assert preference == {("inj-1", PREFERENCE.id): (True, "command")}


@pytest.mark.parametrize(
    "command", ["pytest -q", "make test", "git commit", "npm run build", "ruff", "cat a.txt", "ls -la"]
)
def test_a_command_that_everybody_runs_tells_nothing(command):
    memory = replace(FAILURE, files=(), functions=(), detail={"command": command})
    got = verdicts(ASKED, run(command), given=[injection(memory)], memories={memory.id: memory})
    assert got == {("inj-1", memory.id): (None, UNTOLD)}


def test_code_in_backticks_is_no_command():
    memory = replace(DECISION, title="Return `None or default` from `get_rate`, see `rates.lookup(day)`")
    got = verdicts(ASKED, OTHER, given=[injection(memory)], memories={memory.id: memory})
    assert got == {("inj-1", memory.id): (None, UNTOLD)}


def test_an_answer_that_says_it_in_other_words_tells_use():
    said = answer("The scanners in the warehouse had stalled, so reconciling happens at night.")
    assert verdicts(ASKED, said, given=[injection(DECISION)]) == {("inj-1", DECISION.id): (True, "words")}


def test_words_count_by_their_roots_and_together_in_one_answer():
    words = ["scanner", "invoice", "reconciliations postponing"]
    apart = [answer(f"There is a {each}.", at=150.0 + number) for number, each in enumerate(words)]
    assert verdicts(ASKED, *apart, given=[injection(DECISION)])[("inj-1", DECISION.id)] == (None, UNTOLD)
    together = answer("An invoice, a scanner, and what was postponed.")
    assert verdicts(ASKED, together, given=[injection(DECISION)])[("inj-1", DECISION.id)] == (True, "words")


def test_other_scripts_are_understood_too():
    memory = replace(DECISION, title="倉庫の在庫は夜間に照合する", body="請求書の処理が遅延したため")
    quoting = answer("了解。倉庫の在庫は夜間に照合する。")
    meant = answer("夜間照合にしたのは、請求書で処理遅延があり在庫が…")
    one = {memory.id: memory}
    assert verdicts(ASKED, quoting, given=[injection(memory)], memories=one)[("inj-1", memory.id)] == (None, UNTOLD)
    assert verdicts(ASKED, meant, given=[injection(memory)], memories=one)[("inj-1", memory.id)] == (True, "words")


# ---- what does not


def test_being_shown_is_no_use():
    assert verdicts(ASKED, given=[injection(FAILURE, DECISION, PREFERENCE)], over=False) == {}
    assert set(verdicts(ASKED, given=[injection(FAILURE, DECISION, PREFERENCE)]).values()) == {(None, UNTOLD)}


def test_what_was_done_before_it_was_given_is_no_use():
    for deed in (reads("shop/mail.py", at=90.0), run("pytest tests/test_mail.py -q", at=90.0)):
        assert of_failure(deed) == (None, UNTOLD)
    said = answer("The scanners in the warehouse had stalled, so reconciling happens at night.", at=90.0)
    assert verdicts(said, ASKED, given=[injection(DECISION)])[("inj-1", DECISION.id)] == (None, UNTOLD)
    assert of_failure(fetched=[(FAILURE.id, 99.0)]) == (False, "")


def test_what_had_been_touched_before_proves_nothing_when_it_is_touched_again():
    assert of_failure(reads("shop/mail.py", at=90.0), edits("shop/mail.py", "a", "b", at=130.0)) == (None, UNTOLD)


def test_a_function_of_a_file_that_was_known_still_proves_something():
    assert of_failure(reads("shop/mail.py", at=90.0), edits("shop/mail.py", "a", "send_offer()")) == (True, "function")


@pytest.mark.parametrize(
    "named", ["look at shop/mail.py", "what does `mail.py` do?", 'File "/app/shop/mail.py", line 3']
)
def test_a_file_that_the_prompt_named_proves_nothing(named):
    assert verdicts(prompt(named), OTHER, reads("shop/mail.py")) == {("inj-1", FAILURE.id): (None, UNTOLD)}
    later = (ASKED, OTHER, prompt(named, at=110.0), reads("shop/mail.py"))
    assert verdicts(*later) == {("inj-1", FAILURE.id): (None, UNTOLD)}


def test_a_file_that_was_named_only_after_it_was_touched_was_found_by_the_memory():
    assert verdicts(ASKED, reads("shop/mail.py"), prompt("yes, mail.py it is", at=130.0))[("inj-1", FAILURE.id)] == (
        True,
        "file",
    )


def test_a_command_or_function_that_the_prompt_named_proves_nothing():
    assert verdicts(prompt("please run alembic upgrade head"), run("alembic upgrade head"))[("inj-1", FAILURE.id)] == (
        None,
        UNTOLD,
    )
    assert verdicts(prompt("rename send_offer"), edits("shop/jobs.py", "a", "send_offer()"))[("inj-1", FAILURE.id)] == (
        None,
        UNTOLD,
    )


def test_an_answer_that_repeats_our_lines_is_no_use():
    given = injection(FAILURE, DECISION, text=f"{DECISION.title}: {DECISION.body}\n{FAILURE.title}\n{FAILURE.body}")
    quoting = answer(f"My notes say: “{given.text}”. Shall I go on?")
    assert set(verdicts(ASKED, quoting, given=[given]).values()) == {(None, UNTOLD)}
    pieces = answer("I know that **postponed invoices are** special; *stalled the warehouse scanners* is noted.")
    assert set(verdicts(ASKED, pieces, given=[given]).values()) == {(None, UNTOLD)}


def test_an_answer_that_repeats_what_was_never_shown_of_a_memory_is_no_use_either():
    assert verdicts(ASKED, answer(DECISION.body), given=[injection(DECISION)])[("inj-1", DECISION.id)] == (None, UNTOLD)


def test_words_that_the_user_or_a_tool_said_first_tell_nothing():
    said = answer("The scanners in the warehouse had stalled, so reconciling happens at night.")
    theirs = prompt("did warehouse scanners stall while it reconciled?")
    read = reads("docs/x.txt", output="scanner: stalled\nwarehouse 7\nreconcile: yes, nightly")
    for deeds in ((theirs, said), (ASKED, read, said)):
        assert verdicts(*deeds, given=[injection(DECISION)])[("inj-1", DECISION.id)] == (None, UNTOLD)


def test_words_of_every_day_tell_nothing():
    memory = replace(
        DECISION, title="Always update the changelog", body="before you release a new version of the package"
    )
    said = answer("I will update the version, the package and its changelog, then release a build and push the branch.")
    got = verdicts(ASKED, said, given=[injection(memory)], memories={memory.id: memory})
    assert got[("inj-1", memory.id)] == (None, UNTOLD)


def test_words_that_many_of_the_given_memories_hold_tell_nothing_about_one():
    alike = [replace(DECISION, id=f"dec-0000000{number}", title=f"{DECISION.title} {number}") for number in range(4)]
    said = answer("The scanners in the warehouse had stalled, so reconciling happens at night.")
    got = verdicts(ASKED, said, given=[injection(*alike)], memories={each.id: each for each in alike})
    assert set(got.values()) == {(None, UNTOLD)}


def test_files_that_every_session_reads_tell_nothing():
    memory = replace(FAILURE, files=("README.md", "web/package.json"), functions=(), detail={})
    got = verdicts(ASKED, reads("README.md"), given=[injection(memory)], memories={memory.id: memory})
    assert got == {("inj-1", memory.id): (None, UNTOLD)}


def test_the_same_file_of_another_project_tells_nothing():
    footprint = Footprint()
    for deed in (ASKED, OTHER):
        footprint.add(deed, project=P, root=ROOT)
    footprint.add(reads("shop/mail.py"), project="git:other", root="/elsewhere")
    (said,) = judge([injection(FAILURE)], memories=MEMORIES, footprint=footprint, over=True)
    assert said.used is False


# ---- what was for nothing


def test_nothing_is_called_unused_while_the_session_goes_on():
    assert of_failure(over=False) is None
    assert of_failure(over=True) == (False, "")


def test_a_later_turn_may_still_tell_use():
    assert of_failure(answer("Looking."), over=False) is None
    assert of_failure(answer("Looking."), reads("shop/mail.py", at=900.0), over=False) == (True, "file")


@pytest.mark.parametrize("close", [Deed("compaction", 130.0), Deed("start", 130.0, source="clear")])
def test_a_window_that_closed_is_judged_to_the_end_and_what_follows_is_not_its_use(close):
    assert of_failure(close, reads("shop/mail.py", at=140.0), over=False) == (False, "")


def test_a_resumed_session_goes_on_in_the_same_window():
    assert of_failure(Deed("start", 130.0, source="resume"), over=False) is None


def test_what_is_sent_again_with_every_request_outlives_compactions():
    standing = injection(FAILURE, moment="session_start", form="xml")
    closed = (ASKED, OTHER, Deed("compaction", 130.0))
    assert verdicts(*closed, given=[standing], over=False) == {}
    assert verdicts(*closed, reads("shop/mail.py", at=140.0), given=[standing]) == {
        ("inj-1", FAILURE.id): (True, "file")
    }


def test_the_window_that_an_injection_begins_is_its_own():
    start = injection(FAILURE, moment="session_start", at=50.0)
    assert verdicts(Deed("start", 50.0, source="startup"), ASKED, OTHER, given=[start], over=False) == {}


def test_rules_and_what_names_nothing_to_touch_or_run_are_never_called_unused():
    given = injection(PREFERENCE, DECISION, replace(PREFERENCE, id="cor-00000001", kind="correction"))
    memories = {**MEMORIES, "cor-00000001": replace(PREFERENCE, id="cor-00000001", kind="correction", files=("a.py",))}
    got = verdicts(ASKED, OTHER, answer("Done."), given=[given], memories=memories)
    assert set(got.values()) == {(None, UNTOLD)}
    handoff = Memory("handoff", "Ask Ana about the vouchers", id="han-00000001")
    got = verdicts(ASKED, OTHER, given=[injection(handoff)], memories={handoff.id: handoff})
    assert got == {("inj-1", handoff.id): (None, UNTOLD)}


def test_where_the_agent_did_nothing_nobody_can_tell():
    assert verdicts(ASKED, answer("Hello!"))[("inj-1", FAILURE.id)] == (None, UNTOLD)


def test_where_a_sub_agent_worked_nobody_can_tell_what_it_left_alone():
    assert of_failure(Deed("tool", 130.0, act="delegate", tool="Task")) == (None, UNTOLD)
    assert of_failure(Deed("tool", 130.0, act="delegate", tool="Task"), reads("shop/mail.py")) == (True, "file")


def test_a_memory_that_is_gone_cannot_be_told():
    assert verdicts(ASKED, OTHER, memories={}) == {("inj-1", FAILURE.id): (None, UNTOLD)}


# ---- over time


def test_what_was_used_is_not_judged_again_and_nothing_is_said_twice():
    used = replace(injection(FAILURE), items=(Item(FAILURE.id, "index", 0.5, 10, {}, used=True, how="file"),))
    assert verdicts(ASKED, OTHER, given=[used]) == {}
    for known, how in ((False, ""), (None, UNTOLD)):
        item = Item(FAILURE.id, "index", 0.5, 10, {}, used=known, how=how)
        deeds = (ASKED, OTHER) if known is False else (ASKED,)
        assert verdicts(*deeds, given=[replace(injection(FAILURE), items=(item,))]) == {}


def test_what_was_called_unused_too_early_becomes_used_when_the_session_goes_on():
    item = Item(FAILURE.id, "index", 0.5, 10, {}, used=False)
    given = replace(injection(FAILURE), items=(item,))
    assert verdicts(ASKED, OTHER, given=[given], over=False) == {}
    got = verdicts(ASKED, OTHER, reads("shop/mail.py", at=9000.0), given=[given], over=False)
    assert got == {("inj-1", FAILURE.id): (True, "file")}


@examples(st.permutations([prompt("why?"), reads("shop/cart.py"), reads("shop/mail.py", at=90.0), answer("ok")]))
@settings(deadline=None)
def test_the_order_in_which_deeds_arrive_does_not_matter(deeds):
    assert verdicts(*deeds) == {("inj-1", FAILURE.id): (None, UNTOLD)}


def test_a_footprint_is_bounded_and_then_says_less():
    footprint = Footprint()
    for number in range(MOST_FILES + 10):
        footprint.add(reads(f"f{number}.py", at=101.0 + number), project=P, root=ROOT)
    assert footprint.touched(f"f{MOST_FILES + 5}.py", project=P) is None
    (said,) = judge([injection(FAILURE)], memories=MEMORIES, footprint=footprint, over=True)
    assert (said.used, said.how) == (None, UNTOLD)
    for number in range(60):
        footprint.add(answer("words " * 10_000 + str(number), at=9000.0 + number), project=P)
    assert sum(len(text) for _, text in footprint.answers) < 500_000


TEXTS = st.text(max_size=80)


@examples(title=TEXTS, body=TEXTS, before=TEXTS, after=TEXTS)
@settings(max_examples=150, deadline=None)
def test_an_answer_made_of_our_words_alone_is_never_use_and_any_text_is_judged(title, body, before, after):
    memory = Memory("decision", title, body=body, id="dec-00000001")
    given = injection(memory, text=f"{title}\n{body}")
    quoted = answer(f"{title}\n{body}")
    assert verdicts(prompt(before), quoted, run(before), edits("a", before, after), given=[given], memories={
        memory.id: memory
    }).get(("inj-1", memory.id)) != (True, "words")  # fmt: skip
