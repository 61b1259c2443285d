"""The Memories page in a real browser: search as you type, facets, keys, all of one memory, and every action."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest

from tests.viewer.conftest import LOOKS, every_look, visit

ROW = ".mem-results .row"


def rows(page: Any) -> list[str]:
    return list(page.locator(f"{ROW} .row-title").all_text_contents())


def until(page: Any, holds: str) -> None:
    """Wait until something holds; as a function, for the policy of the page lets no string be evaluated."""
    page.wait_for_function(f"() => {holds}")


def until_rows(page: Any, count: int) -> None:
    until(page, f"document.querySelectorAll('{ROW}').length === {count}")


def told(page: Any, title: str) -> None:
    page.locator("#mem-title", has_text=title).wait_for()


def begin(page: Any, viewer: Any, more: str = "") -> None:
    visit(page, f"{viewer.origin}/memories{more}")
    page.locator(ROW).first.wait_for()


def said(page: Any, words: str) -> Any:
    toast = page.locator(".toast", has_text=words).last
    toast.wait_for()
    return toast


def focused(page: Any) -> str:
    return str(page.evaluate("document.activeElement.dataset.id ?? document.activeElement.id"))


@every_look
def test_a_list_and_one_of_it_are_readable_at_any_width_and_nothing_scrolls_sideways(page, viewer, look, shot):
    begin(page, viewer)
    page.locator("details.mem-facets").wait_for()
    shot(page, "memories")
    page.get_by_role("link", name=re.compile("Money is stored as integer cents")).last.click()
    told(page, "Money is stored as integer cents")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(ROW).first.is_visible() is (look.place == "desktop")
    shot(page, "memory")
    if look.place == "phone":
        page.get_by_role("button", name="All results").click()
        page.locator(ROW).first.wait_for()
        assert not page.locator("#mem-title").is_visible()


RIGHT_TO_LEFT = "قرار: نستخدم UTC في كل الجداول (MySQL)."
# Where the first word and the last stand in what is shown of a text, and in what room.
STAND = """(node) => {
    const texts = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    const side = (word) => {
        for (texts.currentNode = node; texts.nextNode(); ) {
            const at = texts.currentNode.data.indexOf(word), range = document.createRange();
            if (at < 0) continue;
            range.setStart(texts.currentNode, at);
            range.setEnd(texts.currentNode, at + word.length);
            return range.getBoundingClientRect();
        }
    };
    const room = node.getBoundingClientRect(), [first, last] = [side("قرار"), side("MySQL")];
    return { first: first.left, last: last?.right ?? -Infinity, within: first.right <= room.right + 1 };
}"""


@pytest.mark.parametrize("look", [LOOKS[0], LOOKS[-1]], indirect=True, ids=str)
def test_words_that_run_from_right_to_left_do_so_wherever_they_stand(my_page, mine, look, shot):
    tag = f"قرار {look} (MySQL)"
    about = {"title": f"{RIGHT_TO_LEFT} {look}", "body": f"{RIGHT_TO_LEFT} " * 8, "tags": [tag]}
    known = {"kind": "decision", "project_path": mine.projects["havn"], **about}
    mine.client.post("/api/memories", known)
    page = my_page
    begin(page, mine, f"?tag={quote(tag)}&q=UTC")
    until_rows(page, 1)

    def runs(*places: str) -> None:
        for place in places:
            node = page.locator(place, has_text="قرار").first
            stand = node.evaluate(STAND)
            assert stand["last"] < stand["first"], place
            assert stand["within"], f"{place} begins out of sight"

    if look.place == "phone":
        page.locator("details.mem-facets > summary").click()
    page.locator("[data-facet=tag]").wait_for(state="attached")
    shot(page, "memories-right-to-left")
    runs(".row-title", ".row-gist", ".mem-chosen bdi", "[data-facet=tag] .mem-value")
    page.locator(ROW).click()
    told(page, RIGHT_TO_LEFT)
    runs("#mem-title", ".mem-body", ".mem-named .mem-chip")
    page.locator("[data-do=edit]").click()
    form = page.get_by_role("form", name="Edit")
    form.wait_for()
    shot(page, "memory-edited-right-to-left")
    for name in ("title", "body", "tags"):
        assert form.locator(f"[name={name}]").evaluate("node => getComputedStyle(node).direction") == "rtl"
    assert form.locator("[name=files]").evaluate("node => getComputedStyle(node).direction") == "ltr"
    page.keyboard.press("Escape")
    page.locator("[data-do=forget]").click()
    runs("dialog bdi")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    visit(page, f"{mine.origin}/memories")
    page.locator("#mem-q").fill("قرار")
    assert page.locator("#mem-q").evaluate("node => getComputedStyle(node).direction") == "rtl"


def test_what_is_typed_narrows_the_list_at_once_and_stands_in_the_address(page, viewer):
    begin(page, viewer)
    all_of_it = page.locator(".mem-count").inner_text()
    page.keyboard.press("/")
    page.keyboard.type("picking queue")
    until(page, "new URL(location).searchParams.get('q') === 'picking queue'")
    assert any("picking queue" in each for each in rows(page))
    assert len(rows(page)) < 10
    assert page.locator(f"{ROW} mark").first.inner_text().lower() in ("picking", "queue")
    page.reload()
    page.locator(f"{ROW} mark").first.wait_for()
    assert page.locator("#mem-q").input_value() == "picking queue"
    page.locator("#mem-q").focus()
    page.keyboard.press("Escape")
    until(page, f"document.querySelector('.mem-count').textContent === {all_of_it!r}")


def test_facets_narrow_and_are_taken_back(page, viewer):
    begin(page, viewer)
    box = page.get_by_label(re.compile("^decision")).first
    box.wait_for()
    with page.expect_response("**/api/facets*"):  # what is counted anew is drawn anew, under the pointer
        box.check()
    until(page, "new URL(location).searchParams.get('kind') === 'decision'")
    assert set(page.locator(f"{ROW} .chip:first-child").all_text_contents()) == {"decision"}
    with page.expect_response("**/api/facets*"):
        page.get_by_label(re.compile("^pattern")).first.check()
    until(page, "new URL(location).searchParams.get('kind') === 'decision,pattern'")
    with page.expect_response("**/api/facets*"):
        page.locator("details[data-facet=project] label", has_text="tern").click()
    until_rows(page, 1)
    assert rows(page) == ["Close every response body"]
    page.get_by_role("button", name="Clear all").click()
    until(page, "location.search === ''")
    assert len(rows(page)) > 1


def test_every_part_of_a_memory_is_told_and_leads_on(page, viewer):
    begin(page, viewer, f"/{viewer.ids['locks']}")
    told(page, "Use PostgreSQL advisory locks for the picking queue")
    one = page.locator(".mem-one")
    for part in ("Where it is from", "Links", "How it ranks now", "Shown and used", "History"):
        one.get_by_role("heading", name=part).wait_for()
    assert "the user said it" in one.inner_text()
    one.locator(".mem-part", has_text="Links").get_by_role("link").click()
    told(page, "psycopg.errors.DeadlockDetected in reserve_stock")
    page.wait_for_url(f"**/memories/{viewer.ids['failure']}")
    page.go_back()
    told(page, "Use PostgreSQL advisory locks for the picking queue")
    one.get_by_title("All with this file").first.click()
    until(page, "new URL(location).searchParams.has('file')")
    assert "Use PostgreSQL advisory locks for the picking queue" in rows(page)


def test_a_memory_leads_to_the_session_it_came_from_and_to_those_that_saw_it(page, viewer):
    given = viewer.client.get("/api/injections", session_id=viewer.sessions["live"], limit=20)["injections"]
    id = next(item["memory"] for each in given for item in each["items"])
    begin(page, viewer, f"/{id}")
    shown = page.locator(".mem-part", has_text="Shown and used")
    shown.locator("summary").first.click()
    shown.locator(".factors").first.wait_for()
    assert shown.locator("a[href^='/timeline/']").count() > 0


def test_the_keys_move_open_and_come_back(page, viewer):
    begin(page, viewer)
    ids = page.locator(ROW).evaluate_all("all => all.map(each => each.dataset.id)")
    page.keyboard.press("ArrowDown")  # out of the search box
    assert focused(page) == ids[0]
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert focused(page) == ids[1]
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/memories/{ids[1]}")
    page.locator("#mem-title").wait_for()
    page.keyboard.press("j")  # what is open follows
    page.wait_for_url(f"**/memories/{ids[2]}")
    page.keyboard.press("Escape")
    until(page, "location.pathname === '/memories'")
    assert focused(page) == ids[2]
    page.keyboard.press("k")
    page.keyboard.press("k")
    page.keyboard.press("k")
    assert focused(page) == "mem-q"
    page.keyboard.press("Escape")
    page.keyboard.press("w")
    until(page, "new URL(location).searchParams.get('view') === 'waiting'")


def test_more_comes_when_the_end_is_near(page, viewer):
    begin(page, viewer)
    until_rows(page, 50)
    page.locator(ROW).last.focus()
    page.keyboard.press("j")
    until(page, f"document.querySelectorAll('{ROW}').length > 50")
    page.keyboard.press("Home")
    assert focused(page) == page.locator(ROW).first.get_attribute("data-id")
    page.keyboard.press("End")
    until(page, f"[...document.querySelectorAll('{ROW}')].at(-1) === document.activeElement")


def test_a_note_that_is_opened_by_its_address_can_be_promoted(my_page, mine):
    told = {"kind": "note", "title": "the crane needs oil", "project_path": mine.projects["havn"]}
    id = mine.client.post("/api/memories", told)["memories"][0]["id"]
    visit(my_page, f"{mine.origin}/memories/{id}")
    my_page.get_by_label("What the note becomes").select_option("learning")
    my_page.locator(".mem-detail").get_by_role("button", name="Promote").click()
    my_page.locator(".mem-head", has_text="Superseded by the crane needs oil").wait_for()


def test_an_edit_is_saved_told_and_taken_back(my_page, mine):
    page = my_page
    begin(page, mine, f"/{mine.ids['failure']}?q=reserve_stock")
    told(page, "DeadlockDetected in reserve_stock")
    page.keyboard.press("e")
    form = page.get_by_role("form", name="Edit")
    form.get_by_label("Title").fill("Deadlocks in reserve_stock, as never before")
    form.get_by_label("Tags").fill("locks, shop")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.keyboard.press("Control+Enter")
    told(page, "as never before")
    toast = said(page, "Revised: title, tags")
    page.locator(ROW, has_text="as never before").first.wait_for()  # the list is asked behind it
    page.locator("#mem-title").focus()
    toast.get_by_role("button", name="Undo").click()
    said(page, "Taken back")
    until(page, "!document.querySelector('#mem-title').textContent.includes('never')")
    page.locator(ROW, has_text="as never before").wait_for(state="detached")
    page.get_by_role("button", name="Do it again").first.click()
    told(page, "as never before")


def test_an_edit_that_makes_no_sense_is_told_and_nothing_is_lost(my_page, mine, watch):
    watch.expects("400")
    page = my_page
    begin(page, mine, f"/{mine.ids['successor']}")
    page.locator("[data-do=edit]").click()
    form = page.get_by_role("form", name="Edit")
    form.get_by_label("Counts for").fill("planet:mars")
    form.get_by_role("button", name="Save").click()
    assert said(page, "unknown scope").inner_text().startswith("Unknown scope")
    assert form.get_by_label("Counts for").input_value() == "planet:mars"
    page.keyboard.press("Escape")
    page.get_by_role("dialog").get_by_role("button", name="Discard").click()
    told(page, "Search uses Meilisearch")


def test_a_pin_is_shown_at_once_and_let_go_by_the_same_key(my_page, mine):
    page = my_page
    begin(page, mine, f"/{mine.ids['goal']}")
    page.locator("[data-do=pin]").click()
    page.locator(".mem-head .chip", has_text="pinned").wait_for()
    said(page, "Pinned")
    page.locator(f"{ROW}.chosen .chip", has_text="pinned").wait_for()
    page.keyboard.press("p")
    said(page, "No longer pinned")
    page.keyboard.press("u")
    said(page, "Taken back")
    page.locator("[data-do=unpin]").wait_for()


def test_a_memory_is_superseded_by_another_or_by_new_words(my_page, mine):
    page = my_page
    begin(page, mine, f"/{mine.ids['locks']}")
    told(page, "Use PostgreSQL advisory locks")
    page.keyboard.press("s")
    form = page.get_by_role("form", name="Supersede")
    form.get_by_role("button", name="Supersede").click()
    form.get_by_text("Say what is true now, or choose a memory.").wait_for()
    form.get_by_label("Find").fill("kafka outbox")
    form.get_by_role("radio").first.check()
    form.get_by_role("button", name="Supersede").click()
    page.locator(".mem-head", has_text="Superseded by Kafka is not introduced").wait_for()
    page.get_by_role("link", name=re.compile("^Kafka is not introduced")).first.click()
    told(page, "Kafka is not introduced")
    page.locator("[data-do=supersede]").click()
    form.get_by_label("Title").fill("The outbox is read by a listener")
    form.get_by_label("Why").fill("polling costs")
    page.keyboard.press("Control+Enter")
    page.locator(".mem-head", has_text="Superseded by The outbox is read by a listener").wait_for()
    page.locator(ROW, has_text="The outbox is read by a listener").first.wait_for()  # the list is asked behind it


def test_forgetting_shows_what_will_go_asks_and_gives_a_receipt(my_page, mine):
    page, id = my_page, mine.ids["pattern"]
    begin(page, mine, f"/{id}")
    told(page, "Close every response body")
    page.keyboard.press("f")
    dialog = page.get_by_role("dialog", name="Forget this for good?")
    dialog.get_by_text("Close every response body").wait_for()
    page.keyboard.press("Enter")  # too easily done: it forgets nothing
    dialog.get_by_role("button", name="Cancel").click()
    told(page, "Close every response body")
    assert mine.client.get(f"/api/memories/{id}", explain=1)["memory"]["status"] == "active"
    page.locator("[data-do=forget]").click()
    dialog.get_by_label("Why, for the log").fill("no longer mine to keep")
    dialog.get_by_role("button", name="Forget for good").click()
    page.locator(".mem-receipt", has_text="of the text: none left").wait_for()
    page.locator(ROW, has_text="Close every response body").wait_for(state="detached")
    page.keyboard.press("Escape")
    page.locator(".mem-hint").wait_for()


def test_what_waits_is_counted_and_decided_one_by_one(my_page, mine):
    page = my_page
    begin(page, mine, "?view=waiting")
    count = len(rows(page))
    assert page.get_by_role("link", name=f"Waiting for you {count}").count() == 1

    def row(title: str) -> Any:
        return page.locator(".mem-row", has_text=title)

    words = row("in the tenant's currency")
    assert words.locator("del").inner_text() == "Money is stored as integer cents"
    words.get_by_role("button", name="Accept").click()
    said(page, "Accepted")
    until_rows(page, count - 1)
    note = row("ask Priya who owns the DNS of tern")
    note.get_by_role("button", name="Discard").click()
    toast = said(page, "Discarded")
    until_rows(page, count - 2)
    toast.get_by_role("button", name="Undo").click()
    until_rows(page, count - 1)
    note.get_by_label("What the note becomes").select_option("goal")
    note.get_by_role("button", name="Promote").click()
    said(page, "it is a goal now")
    until_rows(page, count - 2)
    rule = page.locator(".mem-row", has=page.get_by_role("button", name="Accept everywhere")).first
    rule.get_by_role("button", name="Refuse").click()
    said(page, "Refused")
    until_rows(page, count - 3)


def test_what_somebody_else_keeps_comes_by_itself_and_takes_no_focus(my_page, mine):
    page = my_page
    begin(page, mine)
    page.keyboard.press("ArrowDown")
    held = focused(page)
    told = {"kind": "decision", "title": "The heron nests on pier four", "project_path": mine.projects["havn"]}
    page.wait_for_timeout(2_500)  # what was read just now is not read again
    mine.client.post("/api/memories", told)
    page.locator(ROW, has_text="The heron nests on pier four").wait_for()
    assert focused(page) == held


def test_what_is_typed_while_the_list_looks_again_by_itself_is_counted_too(my_page, mine):
    page = my_page
    with page.expect_response("**/api/facets"):
        begin(page, mine)
    held: list[Any] = []
    page.route("**/api/memories?*", lambda asked: asked.continue_() if held else held.append(asked))
    told = {"kind": "decision", "title": "The tide table hangs by the door", "project_path": mine.projects["havn"]}
    mine.client.post("/api/memories", told)
    for _ in range(200):
        if held:
            break
        page.wait_for_timeout(50)
    page.locator("#mem-q").fill("tide table")
    with page.expect_request("**/api/facets?q=tide+table"):
        held[0].continue_()
    page.locator(ROW, has_text="The tide table hangs by the door").wait_for()


def test_an_id_that_nobody_knows_is_told_so(page, viewer, watch):
    watch.expects("404")
    visit(page, f"{viewer.origin}/memories/dec-00000000")
    page.get_by_role("alert").get_by_text("there is no memory").wait_for()


@pytest.mark.parametrize("view", ["", "?view=waiting"])
def test_looking_around_changes_nothing(page, viewer, view):
    before = viewer.client.get(f"/api/memories/{viewer.ids['decision']}", explain=1)
    begin(page, viewer, view)
    visit(page, f"{viewer.origin}/memories/{viewer.ids['decision']}")
    told(page, "Money is stored as integer cents")
    after = viewer.client.get(f"/api/memories/{viewer.ids['decision']}", explain=1)
    assert (after["memory"], after["use"]) == (before["memory"], before["use"])
