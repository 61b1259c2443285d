"""Use the Memories page in a real browser: keys, several at once, half-written edits, failures, phones, way back."""

from __future__ import annotations

import pytest

from tests.viewer.conftest import LOOKS, still, visit
from tests.viewer.steps import ROW, bar, focused, keep, memory, open_list, rows, shows, toast, until, until_rows

pytestmark = pytest.mark.long

on_a_phone = pytest.mark.parametrize("look", [LOOKS[-1]], indirect=True, ids=str)
SCROLLED = "document.querySelector('.mem-list').scrollTop"


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


# -- several at once, and what waits ---------------------------------------------------------------------------------


def test_rows_are_selected_by_keys_and_pinned_and_taken_back_as_one(page, viewer):
    ids = keep(viewer, "quayside", 5)
    open_list(page, viewer, "?q=quayside")
    for key in ("ArrowDown", "x", "Shift+J", "Shift+ArrowDown", "Shift+ArrowDown", "Shift+K"):  # one too far, and back
        page.keyboard.press(key)
    bar(page, 3)
    assert page.locator("#said").inner_text() == "3 selected"
    keep(viewer, "quayside late", 1, created=2e9)  # what comes meanwhile takes nothing away
    page.locator(ROW, has_text="quayside late 0").wait_for()
    bar(page, 3)
    assert focused(page) == ids[2]
    page.keyboard.press("p")
    toast(page, "3 memories pinned").get_by_role("button", name="Undo").click()
    toast(page, "Taken back")
    assert not any(memory(viewer, id)["pinned"] for id in ids)
    page.get_by_label("Select: quayside 4").click(modifiers=["Shift"])  # from where the last range began
    bar(page, 5)
    page.locator("#mem-q").fill("quayside 4")  # another choice: what it lists stays selected
    until_rows(page, 1)
    bar(page, 1)
    page.locator(ROW).focus()
    page.keyboard.press("Escape")
    until(page, "document.querySelector('.mem-bar').hidden")


def test_several_are_unpinned_brought_back_lose_a_tag_and_are_forgotten(page, viewer):
    ids = keep(viewer, "scupper", 3, tags=["deck,iron", "wet"])
    open_list(page, viewer, "?q=scupper")
    for box in page.locator(".mem-tick input").all():
        box.check()
    bar(page, 3)
    for words, pinned in (("3 memories pinned", True), ("3 memories no longer pinned", False)):
        page.keyboard.press("p")
        toast(page, words)
        assert {memory(viewer, id)["pinned"] for id in ids} == {pinned}
    page.keyboard.press("t")
    page.get_by_role("dialog").get_by_label("Remove").fill("deck,iron")  # a tag that holds a comma stays whole
    page.keyboard.press("Enter")
    toast(page, "Tags changed on 3 memories")
    assert {tuple(memory(viewer, id)["tags"]) for id in ids} == {("wet",)}
    page.keyboard.press("a")
    toast(page, "3 memories set aside")
    open_list(page, viewer, "?q=scupper&status=discarded")
    for box in page.locator(".mem-tick input").all():
        box.check()
    bar(page, 3).get_by_role("button", name="Bring back").click()
    toast(page, "3 memories brought back")
    open_list(page, viewer, "?q=scupper")
    for n in range(2):
        page.get_by_label(f"Select: scupper {n}").check()
    bar(page, 2)
    page.keyboard.press("f")
    dialog = page.get_by_role("dialog", name="Forget these 2 for good?")
    dialog.get_by_role("button", name="Forget 2 for good").click()
    page.locator(".mem-receipt", has_text="Forgotten for good").wait_for()
    until_rows(page, 1)
    assert rows(page) == ["scupper 2"]


def test_what_waits_is_decided_one_by_one_together_and_for_everywhere(page, viewer):
    for word in ("gunwale", "transom"):
        for number, id in enumerate(keep(viewer, word, 2)):
            viewer.client.post(f"/api/memories/{id}", {"title": f"{word} {number}, in other words", "by": "codex"})
    notes = keep(viewer, "capstan", 3, kind="note")
    open_list(page, viewer, "?view=waiting")
    for word, button, words in (
        ("gunwale", "Accept", "2 memories accepted"),
        ("transom", "Refuse", "2 memories refused"),
    ):
        for row in page.locator(".mem-row", has_text=word).all():
            row.locator(".mem-tick input").check()
        bar(page, 2).get_by_role("button", name=button).click()
        toast(page, words)
        page.locator(".mem-row", has_text=word).first.wait_for(state="detached")
        still(page)
    note = page.locator(".mem-row", has_text="capstan 2")
    note.get_by_role("button", name="Discard").click()
    toast(page, "Discarded").get_by_role("button", name="Undo").click()
    note.get_by_label("What the note becomes").select_option("goal")
    note.get_by_role("button", name="Promote").click()
    toast(page, "it is a goal now")
    for n in range(2):
        page.get_by_label(f"Select: capstan {n}").check()
    bar(page, 2).get_by_role("button", name="Promote").click()
    page.get_by_role("dialog").get_by_label("What they become").select_option("goal")
    page.get_by_role("dialog").get_by_role("button", name="Promote").click()
    toast(page, "2 memories promoted: each is a goal now")
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


def test_a_half_written_edit_is_not_lost_by_leaving_or_forgetting_others(page, viewer, watch):
    watch.expects("^dialog")
    id, *_ = keep(viewer, "halyard", 3)
    open_list(page, viewer, "?q=halyard")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    shows(page, "halyard 0")
    for n in (1, 2):
        page.get_by_label(f"Select: halyard {n}").check()
    page.locator("[data-do=edit]").click()
    title = page.get_by_role("form", name="Edit").get_by_label("Title")
    title.fill("halyard 0 of hemp")
    question = page.get_by_role("dialog", name="Discard your changes?")
    for leave in (
        lambda: page.keyboard.press("Escape"),
        lambda: page.locator(ROW, has_text="halyard 1").click(),
        lambda: page.get_by_role("link", name="Health").click(),
        lambda: page.evaluate("history.back()"),
        lambda: bar(page, 2).get_by_role("button", name="Forget").click(),
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


# -- what comes too late, or not at all ------------------------------------------------------------------------------


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
def test_on_a_phone_a_button_lets_rows_be_selected(page, viewer, look, shot):
    keep(viewer, "fender", 4)
    open_list(page, viewer, "?q=fender")
    assert not page.locator(".mem-tick").first.is_visible()
    page.get_by_role("button", name="Select", exact=True).tap()
    page.locator(ROW).nth(0).tap()
    page.locator(ROW).nth(2).tap()
    shot(page, "memories-selected")
    bar(page, 2).get_by_role("button", name="Set aside").tap()
    toast(page, "2 memories set aside")
    until_rows(page, 2)
    page.get_by_role("button", name="Done").tap()
    page.locator(ROW).first.tap()
    shows(page, "fender")
