"""Several memories at once, and an edit that is half written: in a real browser, by keys, by touch, beside others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.viewer.conftest import LOOKS, visit
from tests.viewer.test_memories import ROW, begin, focused, rows, said, told, until, until_rows

PHONE = LOOKS[-1]
PICKED = ".mem-row.is-picked .row-title"


def kept(viewer: Any, word: str, count: int, **more: Any) -> list[str]:
    """Memories of this test's own, found by a word that nothing else has."""
    own = [
        {
            "kind": "decision",
            "title": f"{word} {n}",
            "project_path": viewer.projects["havn"],
            "created": 1e9 - n,
            **more,
        }
        for n in range(count)
    ]
    return [each["id"] for each in viewer.client.post("/api/memories", {"memories": own})["memories"]]


def memory(viewer: Any, id: str) -> dict[str, Any]:
    return dict(viewer.client.get(f"/api/memories/{id}", explain=1)["memory"])


def picked(page: Any) -> list[str]:
    return list(page.locator(PICKED).all_text_contents())


def bar(page: Any, count: int) -> Any:
    page.locator(".mem-bar-count", has_text=f"{count} selected").wait_for()
    return page.locator(".mem-bar")


def test_rows_are_selected_by_keys_and_pinned_and_taken_back_as_one(my_page, mine):
    page, ids = my_page, kept(mine, "quayside", 5)
    begin(page, mine, "?q=quayside")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("x")
    bar(page, 1)
    page.keyboard.press("Shift+J")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+K")  # one too far
    bar(page, 3)
    assert picked(page) == ["quayside 0", "quayside 1", "quayside 2"]
    assert page.locator("#said").inner_text() == "3 selected"
    assert page.get_by_label("Select: quayside 1").is_checked()
    assert focused(page) == ids[2]
    kept(mine, "quayside late", 1, created=2e9)  # what comes meanwhile takes nothing away
    page.locator(ROW, has_text="quayside late 0").wait_for()
    bar(page, 3)
    assert focused(page) == ids[2]
    page.keyboard.press("p")
    toast = said(page, "3 memories pinned")
    assert [memory(mine, id)["pinned"] for id in ids] == [True, True, True, False, False]
    toast.get_by_role("button", name="Undo").click()
    said(page, "Taken back")
    assert not any(memory(mine, id)["pinned"] for id in ids)
    page.get_by_label("Select: quayside 4").click(modifiers=["Shift"])  # from where the last range began
    bar(page, 5)
    page.locator("#mem-q").fill("quayside 4")  # another choice: what it lists stays selected
    until_rows(page, 1)
    bar(page, 1)
    page.locator(ROW).focus()
    page.keyboard.press("Escape")
    until(page, "document.querySelector('.mem-bar').hidden")
    page.keyboard.press("?")
    assert "Extend the selection down" in page.get_by_role("dialog").inner_text()


def test_a_tag_that_holds_a_comma_stays_whole_beside_others(my_page, mine):
    page, (id, other) = my_page, kept(mine, "capstan", 2, tags=["a,b", "c d", "UPPER", "b"])
    visit(page, f"{mine.origin}/memories/{id}")
    page.locator("[data-do=edit]").click()
    tags = page.get_by_role("form", name="Edit").get_by_label("Tags")
    assert tags.input_value() == "a,b, c d, UPPER, b"
    tags.fill("fresh, a,b, UPPER, b, a")
    page.keyboard.press("Control+Enter")
    said(page, "Revised: tags")
    assert memory(mine, id)["tags"] == ["fresh", "a,b", "UPPER", "b", "a"]
    begin(page, mine, "?q=capstan")
    for n in range(2):
        page.get_by_label(f"Select: capstan {n}").check()
    page.keyboard.press("t")
    page.get_by_role("dialog").get_by_label("Remove").fill("a,b, UPPER")
    page.keyboard.press("Enter")
    said(page, "Tags changed on 2 memories")
    assert [memory(mine, each)["tags"] for each in (id, other)] == [["fresh", "b", "a"], ["c d", "b"]]


def test_several_are_tagged_set_aside_and_forgotten_with_one_question(my_page, mine):
    page, ids = my_page, kept(mine, "windlass", 3)
    begin(page, mine, "?q=windlass")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("x")
    bar(page, 1).get_by_role("button", name="All 3 rows").click()
    page.keyboard.press("t")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Add").fill("deck, iron")
    page.keyboard.press("Enter")
    said(page, "Tags changed on 3 memories")
    assert memory(mine, ids[0])["tags"] == ["deck", "iron"]
    page.keyboard.press("a")
    said(page, "3 memories set aside")
    page.get_by_text("Nothing fits").wait_for()
    until(page, "document.querySelector('.mem-bar').hidden")
    page.keyboard.press("u")
    until_rows(page, 3)
    for n in range(2):
        page.get_by_label(f"Select: windlass {n}").check()
    page.keyboard.press("f")
    page.get_by_role("dialog", name="Forget these 2 for good?").wait_for()
    assert all(dialog.get_by_text(id).is_visible() for id in ids[:2])
    dialog.get_by_role("button", name="Forget 2 for good").click()
    page.locator(".mem-receipt", has_text="Forgotten for good").wait_for()
    until_rows(page, 1)
    assert rows(page) == ["windlass 2"]


def test_notes_that_wait_are_promoted_together(my_page, mine):
    page = my_page
    kept(mine, "capstan", 2, kind="note")
    begin(page, mine, "?view=waiting")
    for n in range(2):
        page.get_by_label(f"Select: capstan {n}").check()
    bar(page, 2).get_by_role("button", name="Promote").click()
    page.get_by_role("dialog").get_by_label("What they become").select_option("goal")
    page.get_by_role("dialog").get_by_role("button", name="Promote").click()
    said(page, "2 memories promoted: each is a goal now")


@pytest.mark.parametrize("look", [PHONE], indirect=True, ids=str)
def test_by_touch_a_button_lets_rows_be_selected(my_page, mine, look, shot):
    page = my_page
    kept(mine, "bollard", 4)
    begin(page, mine, "?q=bollard")
    assert not page.locator(".mem-tick").first.is_visible()
    page.get_by_role("button", name="Select", exact=True).tap()
    page.locator(ROW).nth(0).tap()
    page.locator(ROW).nth(2).tap()
    bar(page, 2)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(page, "memories-selected")
    bar(page, 2).get_by_role("button", name="Set aside").tap()
    said(page, "2 memories set aside")
    until_rows(page, 2)
    page.get_by_role("button", name="Done").tap()
    page.locator(ROW).first.tap()
    told(page, "bollard")


def test_a_half_written_edit_is_not_lost_by_leaving(my_page, mine, watch):
    watch.expects("^dialog")
    page, (id, other) = my_page, kept(mine, "halyard", 2)
    begin(page, mine, "?q=halyard")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    told(page, "halyard 0")
    page.keyboard.press("e")
    title = page.get_by_role("form", name="Edit").get_by_label("Title")
    title.press_sequentially(" of hemp")
    question = page.get_by_role("dialog", name="Discard your changes?")
    for away in (
        lambda: page.keyboard.press("Escape"),
        lambda: page.locator(ROW, has_text="halyard 1").click(),
        lambda: page.get_by_role("link", name="Health").click(),
        lambda: page.evaluate("history.back()"),
    ):
        away()
        question.get_by_role("button", name="Cancel").click()
        until(page, f"location.pathname === '/memories/{id}'")
        assert title.input_value() == "halyard 0 of hemp"
    title.press("End")
    title.press_sequentially("!")
    page.evaluate("() => { setTimeout(() => location.reload()) }")  # the browser asks itself, and is told to stay
    for _ in range(200):
        if any(each.startswith("dialog") for each in watch.said):
            break
        page.wait_for_timeout(50)
    assert any(each.startswith("dialog") for each in watch.said)
    assert title.input_value() == "halyard 0 of hemp!"
    page.get_by_role("link", name="Health").click()
    question.get_by_role("button", name="Discard").click()
    page.wait_for_url("**/health")
    assert memory(mine, id)["title"] == "halyard 0"
    assert memory(mine, other)["title"] == "halyard 1"


def test_what_somebody_changes_during_an_edit_is_told_and_never_overwritten_unseen(my_page, mine, watch):
    watch.expects("409")
    page, (id,) = my_page, kept(mine, "spinnaker", 1)
    visit(page, f"{mine.origin}/memories/{id}")
    page.locator("[data-do=edit]").click()
    form = page.get_by_role("form", name="Edit")
    form.get_by_label("Title").fill("spinnaker of silk")
    mine.client.post(f"/api/memories/{id}", {"title": "spinnaker of nylon", "tags": ["sail"]})
    form.get_by_text("Somebody changed this while you were writing").wait_for()
    assert form.get_by_role("alert").get_by_text("spinnaker of nylon").is_visible()
    assert form.get_by_label("Tags").input_value() == "sail"
    page.keyboard.press("Control+Enter")  # what was told is decided first
    assert memory(mine, id)["title"] == "spinnaker of nylon"
    form.get_by_role("button", name="Keep mine").click()
    page.keyboard.press("Control+Enter")
    told(page, "spinnaker of silk")
    assert (memory(mine, id)["title"], memory(mine, id)["tags"]) == ("spinnaker of silk", ["sail"])


@pytest.mark.parametrize("look", [LOOKS[0], PHONE], indirect=True, ids=str)
def test_what_was_forgotten_during_an_edit_does_not_come_back_when_the_form_is_left(my_page, mine, watch, look):
    watch.expects("404")
    page, (id, _) = my_page, kept(mine, f"foresail {look.place}", 2)
    begin(page, mine, f"?q=foresail+{look.place}")
    page.locator(ROW).first.click()
    told(page, f"foresail {look.place} 0")
    page.locator("[data-do=edit]").click()
    form = page.get_by_role("form", name="Edit")
    form.get_by_label("Title").fill("foresail of flax")
    mine.client.post("/api/forget", {"ids": [id]})
    form.get_by_text("It was forgotten while you were writing").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").get_by_role("button", name="Discard").click()
    page.locator(".mem-detail").get_by_role("alert").get_by_text("There is no memory").wait_for()
    assert page.locator(".mem-one").count() == 0
    until_rows(page, 1)  # nor is it listed
    assert "foresail" not in page.title()
    assert page.evaluate("document.activeElement !== document.body")
    page.keyboard.press("Escape")
    until(page, "location.pathname === '/memories'")
    page.locator(ROW, has_text=f"foresail {look.place} 1").wait_for()
