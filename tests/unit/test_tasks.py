"""What a session left open, and what closes it later."""

from __future__ import annotations

from foreword.extract.actions import Action, Todo
from foreword.extract.tasks import MOST, closes, tasks_of
from foreword.models import Edit
from tests.growth import assert_linear
from tests.tables import table
from tests.unit.test_summary import answer, edit, prompt, run, session

COMMIT = run("git commit -m 'feat: waiting list'", "[main 1a2b3c4] feat: waiting list")
TOPIC = run("git commit -m 'feat: waiting list'", "[feat/waiting 1a2b3c4] feat: waiting list")


def todos(*entries: tuple[str, bool]) -> Action:
    listed = tuple(Todo(text, done) for text, done in entries)
    return Action(kind="tool", at=0, act="plan", tool="TodoWrite", todos=listed, failed=False)


@table(
    "actions, expected",
    [
        (
            [todos(("Offer slots by mail", False), ("Hold a slot", True)), answer("Stopped here.")],
            ("Offer slots by mail",),
        ),
        ([answer("Done.\n\n## Remaining\n- Offer slots by mail\n- [x] Prices in cents")], ("Offer slots by mail",)),
        ([answer("**Follow-ups:**\n- [ ] Zones in the templates\n- ✅ Prices in cents")], ("Zones in the templates",)),
        (
            [answer("Still open from the list: the mail templates and the zones.")],
            ("Still open from the list: the mail templates and the zones.",),
        ),
        (
            [answer("`confirm.txt` has not been tested with Lisbon.")],
            ("`confirm.txt` has not been tested with Lisbon.",),
        ),
        (
            [answer("Two minor findings left as-is (wrong label, odd colour), up to you whether they matter.")],
            ("Two minor findings left as-is (wrong label, odd colour)",),
        ),
        ([answer("Want me to test `confirm.txt` with Lisbon as well?")], ()),
        ([answer("## Optional ideas for next steps\n- Rewrite it all")], ()),
        ([answer("## Show the remaining places\n- The badge is blue")], ()),
        ([answer("The remaining warnings are pre-existing and still open.")], ()),
        ([answer("Done. All tests pass.")], ()),
        ([answer("Fertig.\n\n## Noch offen\n- Mails nach Zonen testen")], ("Mails nach Zonen testen",)),
        ([answer("Hecho.\n\n**Pendiente**\n- Probar los correos por zona")], ("Probar los correos por zona",)),
        ([answer("完了しました。\n\n## 残りの作業\n- 時差のあるメールの確認")], ("時差のあるメールの確認",)),
    ],
)
def test_takes_what_is_said_to_be_left_and_no_offers(actions: list[Action], expected: tuple[str, ...]) -> None:
    assert tasks_of(session(prompt("build the waiting list"), *actions)).open == expected


@table(
    "actions, expected",
    [
        ([edit("rooms/a.py"), answer("Added it.")], ("Change not committed: a.py",)),
        ([edit("rooms/a.py"), COMMIT, answer("Added it.")], ()),
        (
            [edit("rooms/a.py"), run("git commit -m 'x'", "FAILED: lint"), answer("Hm.")],
            ("Change not committed: a.py",),
        ),
        ([edit("rooms/.env"), edit("/tmp/notes.md"), answer("Added it.")], ()),
        ([COMMIT, answer("Committed on main, not pushed.")], ("Not pushed: 1 commit on main (1a2b3c4)",)),
        ([COMMIT, answer("Committed.")], ()),
        ([TOPIC, answer("Committed.")], ("Not pushed: 1 commit on feat/waiting (1a2b3c4)",)),
        ([TOPIC, run("git push"), answer("Committed and pushed.")], ()),
        (
            [run("gh pr create --title 'List'", "https://x.org/a/b/pull/7"), answer("Opened.")],
            ("PR #7: review and merge",),
        ),
        ([run("gh pr create --title 'List'", "https://x.org/a/b/pull/7"), run("gh pr merge 7"), answer("Merged.")], ()),
        (
            [run("git commit -m 'docs: add todo for zones in templates'"), answer("Noted.")],
            ("Todo: zones in templates",),
        ),
        (
            [run("uv run pytest", "E   AssertionError: 1 != 2\n1 failed, 3 passed", failed=True), answer("Hm.")],
            ("Failed in its last run: `uv run pytest`: AssertionError: 1 != 2",),
        ),
        ([run("uv run pytest", "1 failed", failed=True), run("uv run pytest", "4 passed"), answer("Green.")], ()),
    ],
)
def test_takes_what_commands_left_behind(actions: list[Action], expected: tuple[str, ...]) -> None:
    assert tasks_of(session(prompt("build the waiting list"), *actions)).open == expected


@table(
    "actions, expected",
    [
        ([], ("Not finished: Offer free slots by mail",)),
        ([answer("Offers are sent by `send_offer()` now.")], ()),
    ],
)
def test_takes_what_was_asked_for_last_and_not_reached(actions: list[Action], expected: tuple[str, ...]) -> None:
    assert (
        tasks_of(session(prompt("hi"), answer("Hello."), prompt("offer free slots by mail"), *actions)).open == expected
    )


def test_knows_a_plan_that_was_not_carried_out() -> None:
    file = "/home/me/.agent/plans/brave-fox.md"
    plan = Action(kind="tool", at=0, act="edit", files=(file,), edits=(Edit(file, None, "# Plan: Zones in mails\n"),))
    planned = session(prompt("plan the zones"), plan, answer("Planned."))
    assert tasks_of(planned).open == ("Planned, not implemented: Zones in mails",)
    carried = session(prompt("plan the zones"), plan, edit("rooms/mail.py"), COMMIT, answer("Done."))
    assert tasks_of(carried).open == ()


@table(
    "done, item, expected",
    [
        ("Offer free slots by mail", "Offer slots by mail", True),
        ("Restyle the menu", "Offer slots by mail", False),
        ("Zones in mails", "Planned, not implemented: Zones in mails", True),
        ("Random keys for rooms", "Planned, not implemented: Switch room keys from derived to random", True),
        ("Restyle the rooms", "Planned, not implemented: Switch room keys from derived to random", False),
        ("Add settings page", "Planned, not implemented: Add login page", False),
        ("Rename the billing API client", "Planned, not implemented: Billing API v2", False),
        ("PR #7 merged", "PR #7: review and merge", True),
        ("PR #71 merged", "PR #7: review and merge", False),
        ("pushed feat/waiting", "Not pushed: 2 commits on feat/waiting (1a2b3c4)", True),
        ("pushed main", "Not pushed: 2 commits on feat/waiting (1a2b3c4)", False),
        ("Changes committed: prices.py, waiting.py", "Change not committed: waiting.py", True),
        ("Changes committed: prices.py", "Change not committed: waiting.py", False),
        ("ran /plan 14 --quick", "Next: `/plan 14`", True),
        ("ran /plan 13", "Next: `/plan 14`", False),
        ("passed make test", "Failed in its last run: `make test -k mail`: 1 failed", True),
        ("passed make lint", "Failed in its last run: `make test -k mail`: 1 failed", False),
        ("", "Offer slots by mail", False),
    ],
)
def test_a_later_session_closes_what_it_did(done: str, item: str, expected: bool) -> None:
    assert closes(done, item) is expected


def test_what_is_finished_closes_what_an_earlier_session_left() -> None:
    left = tasks_of(session(prompt("build it"), edit("rooms/waiting.py"), answer("Added it."))).open
    later = session(prompt("commit"), edit("rooms/waiting.py"), TOPIC, run("git push"), answer("Pushed."))
    assert left == ("Change not committed: waiting.py",)
    assert any(closes(done, left[0]) for done in tasks_of(later).done)


@table(
    "actions, closed",
    [
        ([prompt("now hold the slots for half an hour"), edit("a.py"), answer("`hold()` keeps slots held.")], True),
        ([prompt("hold the slots for half an hour"), run("slotctl hold --all"), answer("They are held now.")], True),
        (
            [
                prompt("hold slots for half an hour"),
                run("grep -rn hold ."),
                answer("`hold()` would have to keep them."),
            ],
            False,
        ),
        ([prompt("show the prices in cents"), edit("a.py"), answer("`show()` rounds prices now.")], False),
    ],
)
def test_what_a_later_turn_was_asked_to_do_and_did_is_not_open(actions: list[Action], closed: bool) -> None:
    left = [prompt("build it"), answer("Done.\n\n## Remaining\n- Hold a slot for half an hour")]
    (item,) = tasks_of(session(*left)).open
    assert any(closes(done, item) for done in tasks_of(session(*actions)).done) is closed
    assert (item not in tasks_of(session(*left, *actions)).open) is closed


def test_a_push_of_a_session_that_made_no_commit_closes_what_was_not_pushed() -> None:
    later = session(prompt("push"), run("git push", "To x.org:a/b.git\n   1a2b3c4..5d6e7f8  main -> main"))
    assert any(closes(done, "Not pushed: 2 commits on main (5d6e7f8)") for done in tasks_of(later).done)


def test_lists_few_items_and_reads_any_text_in_linear_time() -> None:
    many = "## Remaining\n" + "\n".join(f"- Offer slots of the venue number{at} by mail{at}" for at in range(4_000))
    assert len(tasks_of(session(prompt("go"), answer(many[:64_000]))).open) <= MOST
    for piece in ("not ", "still open: ", "- [ ] ", "a,", "- Offer slots of the venue by mail\n"):
        assert_linear(lambda text: tasks_of(session(prompt("go"), answer(text))), piece)
