"""Use the Memories page in a real browser: keys, several at once, half-written edits, failures, phones, way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.viewer.conftest import LOOKS, settled, still, visit
from tests.viewer.steps import ROW, focused, keep, memory, open_list, shows, toast, until, until_rows

pytestmark = pytest.mark.long

on_a_phone = pytest.mark.parametrize("look", [LOOKS[-1]], indirect=True, ids=str)
FRAMES = "() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))"
SCROLLED = "document.querySelector('.mem-list').scrollTop"


def hold(page: Any, path: str) -> tuple[list[Any], Callable[[], None]]:
    """Hold the next request of a path; the second value waits until there is one."""
    held: list[Any] = []
    page.route(path, lambda asked: held.extend([asked]), times=1)

    def waited() -> None:
        for _ in range(300):
            if held:
                return
            page.wait_for_timeout(50)  # lets the driver hear of it
        raise AssertionError(f"nobody asked for {path}")

    return held, waited


def answer(page: Any, path: str, held: list[Any]) -> None:
    """Let what was held go on, and wait until the page has had its answer."""
    with page.expect_response(path):
        held[0].continue_()
    still(page)


def away(page: Any) -> None:
    page.get_by_role("link", name="Health").click()
    page.wait_for_url("**/health")
    settled(page)


# -- keys, and where one was -----------------------------------------------------------------------------------------


def test_the_keys_move_open_and_come_back(page, viewer):
    open_list(page, viewer)
    ids = page.locator(ROW).evaluate_all("all => all.map(each => each.dataset.id)")
    page.keyboard.press("ArrowDown")  # out of the search box
    for key in ("j", "j", "k"):
        page.keyboard.press(key)
    assert focused(page) == ids[1]
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/memories/{ids[1]}")
    page.locator("#mem-title").wait_for()
    page.keyboard.press("j")  # what is open follows
    page.wait_for_url(f"**/memories/{ids[2]}")
    still(page)
    page.keyboard.press("Escape")
    until(page, "location.pathname === '/memories'")
    assert focused(page) == ids[2]
    for _ in range(3):
        page.keyboard.press("k")
    assert focused(page) == "mem-q"
    page.keyboard.press("Escape")
    page.keyboard.press("w")
    until(page, "new URL(location).searchParams.get('view') === 'waiting'")


def test_the_way_back_and_a_reload_lead_to_the_same_lines_of_the_list(page, viewer):
    open_list(page, viewer)
    until_rows(page, 50)
    page.keyboard.press("ArrowDown")
    for _ in range(25):
        page.keyboard.press("j")
    before, id = page.evaluate(f"[{SCROLLED}, document.activeElement.dataset.id]")
    assert before > 0
    page.keyboard.press("Enter")
    page.locator("#mem-title").wait_for()
    page.go_back()
    until(page, f"document.activeElement.dataset.id === '{id}' && Math.abs({SCROLLED} - {before}) < 100")
    page.reload()
    until(page, f"document.querySelectorAll('{ROW}').length > 40 && Math.abs({SCROLLED} - {before}) < 100")


def test_a_long_list_keeps_its_rows_and_its_place_and_says_where_it_ends(page, viewer):
    ids = keep(viewer, "ballast", 510)
    open_list(page, viewer, "?q=ballast")
    page.locator("#mem-q").press("ArrowDown")
    for count in range(100, 550, 50):
        page.keyboard.press("End")
        until(page, f"document.querySelectorAll('{ROW}').length >= {min(count, 500)}")
    page.locator(".mem-ends", has_text="The first 500 are listed.").wait_for()
    page.locator(f"[data-id='{ids[300]}']").focus()
    held = focused(page)
    page.keyboard.press("p")
    toast(page, "Pinned")
    assert page.locator(ROW).count() == 500
    assert focused(page) == held
    page.keyboard.press("Enter")
    shows(page, "ballast 300")
    viewer.client.post(f"/api/memories/{ids[300]}", {"title": "ballast of lead"})
    shows(page, "ballast of lead")  # it is followed, though the list is too long to be


def test_what_an_action_takes_away_or_renames_hands_its_focus_on(page, viewer):
    (id,) = keep(viewer, "futtock", 1, kind="note")
    open_list(page, viewer, "?view=waiting")
    count = page.locator(ROW).count()
    page.locator(".mem-row", has_text="futtock").get_by_role("button", name="Discard").focus()
    page.keyboard.press("Enter")
    until_rows(page, count - 1)
    assert page.evaluate("document.activeElement.matches('.row')")
    page.locator(".toast button").focus()
    page.keyboard.press("Enter")
    until_rows(page, count)
    assert page.evaluate("document.activeElement !== document.body")
    visit(page, f"{viewer.origin}/memories/{id}")
    page.locator("[data-do=pin]").focus()
    page.keyboard.press("Enter")
    toast(page, "Pinned")
    assert page.evaluate("document.activeElement.dataset.do") == "unpin"


def test_a_key_that_is_held_walks_on_but_does_nothing_twice(page, viewer):
    id, *_ = keep(viewer, "gudgeon", 5)
    open_list(page, viewer, f"/{id}?q=gudgeon")
    shows(page, "gudgeon 0")
    with page.expect_response("**/api/pin"):
        page.keyboard.down("p")
        page.keyboard.down("p")  # as a keyboard repeats it
        page.keyboard.up("p")
    toast(page, "Pinned")
    still(page)
    assert memory(viewer, id)["pinned"]
    page.locator(ROW).first.focus()
    for _ in range(3):
        page.keyboard.down("j")
    page.keyboard.up("j")
    until(page, f"document.activeElement === document.querySelectorAll('{ROW}')[3]")


def test_undo_twice_in_a_row_takes_back_two_things(page, viewer):
    """Also where the second key comes before the first is answered."""
    (id,) = keep(viewer, "pintle", 1)
    visit(page, f"{viewer.origin}/memories/{id}")
    page.locator("[data-do=pin]").click()
    toast(page, "Pinned")
    page.locator("[data-do='set aside']").click()
    toast(page, "Set aside")
    page.keyboard.press("u")
    page.keyboard.press("u")
    for words in ("set aside", "pinned"):
        toast(page, f"Taken back: {words}")
    assert (memory(viewer, id)["status"], memory(viewer, id)["pinned"]) == ("active", False)


# -- several at once, and what waits ---------------------------------------------------------------------------------


def test_what_waits_is_decided_and_for_everywhere(page, viewer):
    notes = keep(viewer, "capstan", 1, kind="note")
    open_list(page, viewer, "?view=waiting")
    note = page.locator(".mem-row", has_text="capstan 0")
    note.get_by_role("button", name="Discard").click()
    toast(page, "Discarded").get_by_role("button", name="Undo").click()
    note.get_by_label("What the note becomes").select_option("goal")
    note.get_by_role("button", name="Promote").click()
    toast(page, "it is a goal now")
    assert {memory(viewer, id)["status"] for id in notes} == {"superseded"}
    rule = page.locator(".mem-row", has=page.get_by_role("button", name="Accept everywhere")).first
    id = rule.get_attribute("data-of")
    rule.get_by_role("button", name="Accept everywhere").click()
    toast(page, "Accepted: it is a rule now")
    assert (memory(viewer, id)["scope"], memory(viewer, id)["status"]) == ("universal", "active")


# -- edits -----------------------------------------------------------------------------------------------------------


def test_an_edit_that_makes_no_sense_is_told_and_nothing_is_lost(page, viewer, watch):
    watch.expects("400")
    (id,) = keep(viewer, "tackle", 1, kind="note", confidence=0.5)
    visit(page, f"{viewer.origin}/memories/{id}")
    page.locator("[data-do=edit]").click()
    form = page.get_by_role("form", name="Edit")
    form.get_by_label("Counts for").fill("planet:mars")
    form.get_by_role("button", name="Save").click()
    toast(page, "Unknown scope")
    assert form.get_by_label("Counts for").input_value() == "planet:mars"
    form.get_by_label("Counts for").fill("universal")
    form.get_by_label("Kind").select_option("failure")
    form.get_by_label("Fixed by").fill("a new block")
    form.get_by_label("Kind").select_option("decision")
    assert form.get_by_label("Why").is_visible()
    assert form.get_by_label("Fixed by").is_visible()  # something stands there
    before = memory(viewer, id)["confidence"]
    form.get_by_label("Confidence").fill("")
    page.keyboard.press("Control+Enter")
    until(page, "document.activeElement.name === 'confidence'")
    form.get_by_label("Confidence").fill(str(before))
    page.keyboard.press("Control+Enter")
    toast(page, "Revised")
    assert memory(viewer, id)["confidence"] == before


def test_a_half_written_edit_is_not_lost_by_leaving(page, viewer, watch):
    watch.expects("^dialog")
    id, *_ = keep(viewer, "halyard", 3)
    open_list(page, viewer, "?q=halyard")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    shows(page, "halyard 0")
    page.locator("[data-do=edit]").click()
    title = page.get_by_role("form", name="Edit").get_by_label("Title")
    title.fill("halyard 0 of hemp")
    question = page.get_by_role("dialog", name="Discard your changes?")
    for leave in (
        lambda: page.keyboard.press("Escape"),
        lambda: page.locator(ROW, has_text="halyard 1").click(),
        lambda: page.get_by_role("link", name="Health").click(),
        lambda: page.evaluate("history.back()"),
    ):
        leave()
        question.get_by_role("button", name="Cancel").click()
        until(page, f"location.pathname === '/memories/{id}'")
        assert title.input_value() == "halyard 0 of hemp"
    title.press("End")
    title.press_sequentially("!")
    with page.expect_event("dialog"):  # the browser asks itself, and is told to stay
        page.evaluate("() => { setTimeout(() => location.reload()) }")
    assert title.input_value() == "halyard 0 of hemp!"
    page.get_by_role("link", name="Health").click()
    question.get_by_role("button", name="Discard").click()
    page.wait_for_url("**/health")
    assert memory(viewer, id)["title"] == "halyard 0"


@pytest.mark.parametrize(
    ("button", "title"), [("Keep mine", "spinnaker of silk"), ("Take theirs", "spinnaker of nylon")]
)
def test_what_somebody_changes_during_an_edit_is_told_and_never_overwritten_unseen(page, viewer, watch, button, title):
    watch.expects("409")
    (id,) = keep(viewer, "spinnaker", 1)
    visit(page, f"{viewer.origin}/memories/{id}")
    page.locator("[data-do=edit]").click()
    form = page.get_by_role("form", name="Edit")
    form.get_by_label("Title").fill("spinnaker of silk")
    viewer.client.post(f"/api/memories/{id}", {"title": "spinnaker of nylon", "tags": ["sail"]})
    form.get_by_text("Somebody changed this while you were writing").wait_for()
    assert form.get_by_label("Tags").input_value() == "sail"
    page.keyboard.press("Control+Enter")  # what was told is decided first
    assert memory(viewer, id)["title"] == "spinnaker of nylon"
    form.get_by_role("button", name=button).click()
    page.keyboard.press("Control+Enter")
    shows(page, title)
    assert (memory(viewer, id)["title"], memory(viewer, id)["tags"]) == (title, ["sail"])


def test_what_was_forgotten_during_an_edit_does_not_come_back_when_the_form_is_left(page, viewer, watch):
    watch.expects("404")
    id, _ = keep(viewer, "foresail", 2)
    open_list(page, viewer, "?q=foresail")
    page.locator(ROW).first.click()
    shows(page, "foresail 0")
    page.locator("[data-do=edit]").click()
    form = page.get_by_role("form", name="Edit")
    form.get_by_label("Title").fill("foresail of flax")
    viewer.client.post("/api/forget", {"ids": [id]})
    form.get_by_text("It was forgotten while you were writing").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").get_by_role("button", name="Discard").click()
    page.locator(".mem-detail").get_by_role("alert").get_by_text("There is no memory").wait_for()
    until_rows(page, 1)  # nor is it listed
    assert "foresail" not in page.title()
    assert page.evaluate("document.activeElement !== document.body")


# -- what comes too late, or not at all ------------------------------------------------------------------------------


def test_who_left_is_asked_nothing_and_told_what_was_done(page, viewer):
    first, second = keep(viewer, "sheave", 2)
    open_list(page, viewer, f"/{first}?q=sheave")
    shows(page, "sheave 0")
    held, waited = hold(page, "**/api/forget")
    page.keyboard.press("f")
    waited()
    away(page)
    answer(page, "**/api/forget", held)
    assert page.locator("dialog").count() == 0, "nothing is asked on another page"
    assert memory(viewer, first)["status"] == "active"
    open_list(page, viewer, f"/{second}?q=sheave")
    shows(page, "sheave 1")
    page.keyboard.press("f")
    dialog = page.get_by_role("dialog", name="Forget this for good?")
    dialog.wait_for()
    held, waited = hold(page, "**/api/forget")
    dialog.get_by_role("button", name="Forget for good").click()
    waited()
    away(page)
    answer(page, "**/api/forget", held)
    toast(page, "Forgotten for good. The receipt is entry")
    assert page.url == f"{viewer.origin}/health"


@pytest.mark.parametrize("look", [LOOKS[0], LOOKS[-1]], indirect=True, ids=str)
def test_the_way_back_from_a_receipt_leads_past_what_is_gone(page, viewer, look):
    word = f"bollard{look.place}"
    keep(viewer, word, 3)
    open_list(page, viewer, f"?q={word}")
    page.locator(ROW).first.click()
    shows(page, f"{word} 0")
    page.locator("[data-do=forget]").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget for good").click()
    page.locator(".mem-receipt").wait_for()
    page.evaluate("history.back()")
    page.locator(".mem-receipt").wait_for(state="detached")
    until_rows(page, 2)
    assert page.locator(".trouble").count() == 0


def test_what_is_typed_while_the_list_looks_again_by_itself_is_counted_too(page, viewer):
    open_list(page, viewer)
    still(page)
    held, waited = hold(page, "**/api/memories?*")
    keep(viewer, "tide table", 1)
    waited()
    page.locator("#mem-q").fill("tide table")
    with page.expect_request("**/api/facets?q=tide+table"):
        held[0].continue_()
    page.locator(ROW, has_text="tide table 0").wait_for()


def test_what_somebody_else_keeps_comes_by_itself_and_takes_neither_focus_nor_choice(page, viewer):
    keep(viewer, "derrick", 1, kind="note")
    open_list(page, viewer, "?view=waiting")
    choice = page.locator(".mem-row", has_text="derrick").locator("select[name=as]")
    choice.select_option("pattern")
    choice.focus()
    keep(viewer, "heron", 1, kind="note")
    page.locator(ROW, has_text="heron").wait_for()
    assert page.evaluate("document.activeElement.value") == "pattern"


# -- phones ----------------------------------------------------------------------------------------------------------


@on_a_phone
def test_on_a_phone_one_reads_on_at_the_same_line_whatever_comes(page, viewer, look):
    keep(viewer, "bowsprit", 40)
    open_list(page, viewer, "?q=bowsprit")
    until_rows(page, 40)
    row = page.locator(ROW).nth(20)
    page.evaluate(f"() => scrollBy(0, [...document.querySelectorAll('{ROW}')][20].getBoundingClientRect().top - 300)")
    page.evaluate(FRAMES)
    id, before = row.get_attribute("data-id"), row.bounding_box()["y"]
    stays = f"Math.abs(document.querySelector('[data-id=\"{id}\"]').getBoundingClientRect().top - {before}) < 30"
    keep(viewer, "bowsprit first", 1, created=2e9)
    page.locator(ROW, has_text="bowsprit first 0").wait_for()
    until(page, stays)
    page.locator(f"[data-id='{id}']").tap()
    page.locator("#mem-title").wait_for()
    keep(viewer, "bowsprit second", 1, created=2e9 + 1)
    page.locator(ROW, has_text="bowsprit second 0").wait_for(state="attached")
    page.get_by_role("button", name="All results").tap()
    until(page, f"document.activeElement.dataset.id === '{id}' && {stays}")
