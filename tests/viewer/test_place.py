"""Where one was: the focus, the lines that one read and what was chosen outlast actions, updates and the way back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.viewer.conftest import Viewer, visit

ROW = ".mem-results .row"
SCROLLED = "document.querySelector('.mem-list').scrollTop"


def at(page: Any, viewer: Viewer, address: str) -> None:
    visit(page, f"{viewer.origin}{address}")
    page.locator(ROW).first.wait_for()


def until(page: Any, holds: str) -> None:
    page.wait_for_function(f"() => {holds}")


def test_the_way_back_and_a_reload_lead_to_the_same_lines_of_the_list(page, viewer):
    at(page, viewer, "/memories")
    page.keyboard.press("ArrowDown")
    until(page, f"document.querySelectorAll('{ROW}').length > 40")
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


def test_what_an_action_takes_away_hands_its_focus_on(my_page, mine):
    page = my_page
    at(page, mine, "/memories?view=waiting")
    count = page.locator(ROW).count()
    page.get_by_role("button", name="Discard").first.focus()
    page.keyboard.press("Enter")
    until(page, f"document.querySelectorAll('{ROW}').length === {count - 1}")
    assert page.evaluate("document.activeElement.matches('.row')")
    page.locator(".toast button").focus()
    page.keyboard.press("Enter")
    until(page, f"document.querySelectorAll('{ROW}').length === {count}")
    assert page.evaluate("document.activeElement !== document.body")


def test_a_filter_that_is_taken_back_by_its_chip_leaves_the_focus_on_the_page(page, viewer):
    at(page, viewer, "/memories?kind=decision")
    page.locator(".mem-chosen button").focus()
    page.keyboard.press("Enter")
    until(page, "document.activeElement.id === 'mem-q'")


def test_a_button_that_changes_its_name_keeps_the_focus(my_page, mine):
    page = my_page
    at(page, mine, f"/memories/{mine.ids['failure']}")
    page.locator("[data-do=pin]").focus()
    page.keyboard.press("Enter")
    page.locator("[data-do=unpin]").wait_for()
    page.locator(".toast").wait_for()
    assert page.evaluate("document.activeElement.dataset.do") == "unpin"


def test_what_is_being_chosen_is_left_alone_when_somebody_else_keeps_something(my_page, mine):
    page = my_page
    at(page, mine, "/memories?view=waiting")
    choice = page.locator("select[name=as]").last
    choice.select_option("pattern")
    choice.focus()
    told = {"kind": "note", "title": "the crane is serviced in May", "project_path": mine.projects["havn"]}
    mine.client.post("/api/memories", told)
    page.locator(ROW, has_text="the crane is serviced in May").wait_for()
    assert page.evaluate("document.activeElement.value") == "pattern"


def test_two_changes_in_a_row_are_both_seen(my_page, mine):
    page = my_page
    at(page, mine, "/memories")
    for title in ("the first gull came", "the second gull came"):
        mine.client.post("/api/memories", {"kind": "note", "title": title, "project_path": mine.projects["havn"]})
        page.locator(ROW, has_text=title).wait_for()


@pytest.mark.parametrize("address", ["/now", "/memories", "/timeline"])
def test_a_page_at_rest_asks_nothing(page, viewer, address):
    visit(page, f"{viewer.origin}{address}")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for _ in range(4):  # it looks once more when it begins to listen, whenever a busy machine gets to it
        asked.clear()
        page.wait_for_timeout(3_500)
        if not asked:
            return
    assert asked == []


def test_the_keys_are_listed_from_the_top_each_once_and_the_focus_comes_back(page, viewer):
    at(page, viewer, "/memories")
    page.keyboard.press("ArrowDown")
    held = page.evaluate("document.activeElement.dataset.id")
    page.keyboard.press("?")
    page.locator("dialog[open]").wait_for()
    labels = page.locator("dialog .keys td").all_text_contents()
    assert len(labels) == len(set(labels))
    assert page.evaluate("document.querySelector('dialog').scrollTop") == 0
    page.keyboard.press("Escape")
    until(page, f"document.activeElement.dataset.id === '{held}'")


def test_a_session_was_given_as_much_on_every_page(page, viewer):
    live = viewer.sessions["live"]
    visit(page, f"{viewer.origin}/now/{live}")
    names, told = (page.locator(f".totals {each}").all_text_contents() for each in ("dt", "dd"))
    figures = dict(zip(names, told, strict=True))
    items, memories = int(figures["items given"]), int(figures["different memories"])
    assert items == sum(int(figures[name]) for name in ("used", "not used", "not judged yet"))
    visit(page, f"{viewer.origin}/timeline/{live}")
    page.locator(".story-head", has_text=f"given {memories} memories in").wait_for()
    visit(page, f"{viewer.origin}/timeline")
    page.locator(f"[data-session='{live}']", has_text=f"given {memories} memories").wait_for()
