"""Use the Memories page in a real browser: keys, several at once, half-written edits, failures, phones, way back."""

from __future__ import annotations

import pytest

from tests.viewer.conftest import visit
from tests.viewer.steps import ROW, keep, memory, open_list, shows, toast, until

pytestmark = pytest.mark.long

SCROLLED = "document.querySelector('.mem-list').scrollTop"


# -- keys, and where one was -----------------------------------------------------------------------------------------


# -- several at once, and what waits ---------------------------------------------------------------------------------


def test_what_waits_is_decided(page, viewer):
    notes = keep(viewer, "capstan", 1, kind="note")
    open_list(page, viewer, "?view=waiting")
    note = page.locator(".mem-row", has_text="capstan 0")
    note.get_by_role("button", name="Discard").click()
    toast(page, "Discarded").get_by_role("button", name="Undo").click()
    note.get_by_label("What the note becomes").select_option("goal")
    note.get_by_role("button", name="Promote").click()
    toast(page, "it is a goal now")
    assert {memory(viewer, id)["status"] for id in notes} == {"superseded"}


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


def test_what_somebody_changes_during_an_edit_stays_in_the_log(page, viewer):
    (id,) = keep(viewer, "spinnaker", 1)
    visit(page, f"{viewer.origin}/memories/{id}")
    page.locator("[data-do=edit]").click()
    page.get_by_role("form", name="Edit").get_by_label("Title").fill("spinnaker of silk")
    viewer.client.post(f"/api/memories/{id}", {"title": "spinnaker of nylon", "tags": ["sail"]})
    page.keyboard.press("Control+Enter")
    shows(page, "spinnaker of silk")
    assert (memory(viewer, id)["title"], memory(viewer, id)["tags"]) == ("spinnaker of silk", ["sail"])
    log = viewer.client.get("/api/log", memory=id)["log"]
    assert any("spinnaker of nylon" in str(each["patch"]) for each in log)


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
