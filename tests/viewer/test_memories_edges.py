"""The edges of the Memories page in a real browser: what is left half way, long lists, failures, the way back."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.viewer.conftest import LOOKS, Look, settled, still, visit, watched, window
from tests.viewer.test_memories import ROW, begin, focused, rows, said, told, until, until_rows
from tests.viewer.test_memories_several import bar, kept, memory, picked

PHONE = LOOKS[-1]
FRAMES = "() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))"
ENDS = ".mem-ends"


def hold(page: Any, path: str) -> tuple[list[Any], Callable[[], None]]:
    """The next request of a path, not answered yet; and what waits until there is one."""
    held: list[Any] = []
    page.route(path, lambda asked: held.extend([asked]), times=1)

    def waited() -> None:
        for _ in range(300):
            if held:
                return
            page.wait_for_timeout(50)
        raise AssertionError(f"nobody asked for {path}")

    return held, waited


def answer(page: Any, path: str, held: list[Any]) -> None:
    """Let what was held go on, and wait until the page has had its answer."""
    with page.expect_response(path):
        held[0].continue_()
    page.evaluate(FRAMES)


def away(page: Any) -> None:
    page.get_by_role("link", name="Health").click()
    page.wait_for_url("**/health")
    settled(page)


# -- what is half written, or half done ------------------------------------------------------------------------------


def test_forgetting_several_asks_before_it_takes_a_half_written_edit(my_page, mine):
    page, ids = my_page, kept(mine, "fairlead", 3)
    begin(page, mine, f"/{ids[2]}?q=fairlead")
    told(page, "fairlead 2")
    for n in range(2):
        page.get_by_label(f"Select: fairlead {n}").check()
    page.locator("[data-do=edit]").click()
    title = page.get_by_role("form", name="Edit").get_by_label("Title")
    title.fill("fairlead of bronze")
    bar(page, 2).get_by_role("button", name="Forget").click()
    question = page.get_by_role("dialog", name="Discard your changes?")
    question.get_by_role("button", name="Cancel").click()
    assert title.input_value() == "fairlead of bronze"
    bar(page, 2).get_by_role("button", name="Forget").click()
    question.get_by_role("button", name="Discard").click()
    page.get_by_role("dialog", name="Forget these 2 for good?").get_by_role("button", name="Cancel").click()
    told(page, "fairlead 2")


def test_who_leaves_a_form_before_it_hears_that_all_was_forgotten_hears_it_then(my_page, mine, watch):
    watch.expects("404")
    page, (id,) = my_page, kept(mine, "topsail", 1)
    begin(page, mine, f"/{id}?q=topsail")
    told(page, "topsail 0")
    page.keyboard.press("e")
    page.get_by_role("form", name="Edit").wait_for()
    held, waited = hold(page, f"**/api/memories/{id}")
    mine.client.post("/api/forget", {"ids": [id]})
    waited()
    page.keyboard.press("Escape")
    told(page, "topsail 0")
    answer(page, f"**/api/memories/{id}", held)
    page.locator(".mem-detail").get_by_text("There is no memory").wait_for()


def test_who_left_before_anything_was_asked_is_not_asked_on_another_page(my_page, mine):
    page, (id,) = my_page, kept(mine, "sheave", 1)
    begin(page, mine, f"/{id}?q=sheave")
    told(page, "sheave 0")
    held, waited = hold(page, "**/api/forget")
    page.keyboard.press("f")
    waited()
    away(page)
    answer(page, "**/api/forget", held)
    assert page.locator("dialog").count() == 0
    assert memory(mine, id)["status"] == "active"


def test_a_question_goes_with_the_page_that_asked_it(my_page, mine):
    page, (id,) = my_page, kept(mine, "thimble", 1)
    begin(page, mine, "?q=thimble")
    page.locator(ROW).click()
    told(page, "thimble 0")
    page.keyboard.press("f")
    page.get_by_role("dialog", name="Forget this for good?").wait_for()
    page.evaluate("history.back()")
    until(page, "location.pathname === '/memories' && !document.querySelector('dialog')")
    assert memory(mine, id)["status"] == "active"


def test_what_was_forgotten_after_one_left_is_told_and_leads_nowhere(my_page, mine):
    page, (id,) = my_page, kept(mine, "grommet", 1)
    begin(page, mine, f"/{id}?q=grommet")
    told(page, "grommet 0")
    page.keyboard.press("f")
    dialog = page.get_by_role("dialog", name="Forget this for good?")
    dialog.wait_for()
    held, waited = hold(page, "**/api/forget")
    dialog.get_by_role("button", name="Forget for good").click()
    waited()
    away(page)
    answer(page, "**/api/forget", held)
    said(page, "Forgotten for good. The receipt is entry")
    assert page.url == f"{mine.origin}/health"


def test_the_way_back_from_a_receipt_leads_past_what_is_gone_and_loses_nothing_written(my_page, mine):
    page = my_page
    kept(mine, "oakum", 3)
    begin(page, mine, "?q=oakum")
    page.locator(ROW).first.click()
    told(page, "oakum 0")
    page.keyboard.press("f")
    page.get_by_role("dialog").get_by_role("button", name="Forget for good").click()
    page.locator(".mem-receipt").wait_for()
    until_rows(page, 2)
    page.evaluate("history.back()")
    until(page, "history.state.nth === 0")
    page.evaluate(FRAMES)
    assert page.locator(".trouble").count() == 0
    page.locator(ROW).first.click()
    told(page, "oakum 1")
    page.keyboard.press("e")
    page.get_by_role("form", name="Edit").get_by_label("Title").fill("oakum and tar")
    here = page.url
    page.evaluate("history.back()")
    page.get_by_role("dialog", name="Discard your changes?").get_by_role("button", name="Cancel").click()
    page.wait_for_url(here)


@pytest.mark.parametrize("look", [PHONE], indirect=True, ids=str)
def test_on_a_phone_one_step_back_leads_from_a_receipt_to_the_list(my_page, mine, look):
    page = my_page
    kept(mine, "bollard", 2)
    begin(page, mine, "?q=bollard")
    page.locator(ROW).first.click()
    told(page, "bollard 0")
    page.locator("[data-do=forget]").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget for good").click()
    page.locator(".mem-receipt").wait_for()
    page.evaluate("history.back()")
    page.locator(".mem-receipt").wait_for(state="detached")
    page.locator(ROW, has_text="bollard 1").wait_for()


def test_a_list_and_a_memory_that_were_not_had_once_are_asked_for_again(my_page, mine, watch):
    watch.expects("ERR_FAILED")
    page, (id,) = my_page, kept(mine, "hawser", 1)
    for path in ("**/api/memories?*", f"**/api/memories/{id}", "**/api/facets?*"):
        page.route(path, lambda asked: asked.abort(), times=1)
    page.goto(f"{mine.origin}/memories/{id}?q=hawser")
    told(page, "hawser 0")
    page.locator(ROW, has_text="hawser 0").wait_for()
    page.locator("details[data-facet=kind]").wait_for(state="attached")
    page.locator(".trouble").first.wait_for(state="detached")


def test_an_action_is_told_once_and_a_dry_run_that_got_no_answer_has_done_nothing(my_page, mine, watch):
    watch.expects("ERR_FAILED")
    page, (id,) = my_page, kept(mine, "cleat", 1)
    begin(page, mine, f"/{id}?q=cleat")
    told(page, "cleat 0")
    page.keyboard.press("p")
    said(page, "Pinned: it ranks higher.")
    assert "Pinned" not in page.locator("#said").inner_text()  # both are read aloud: once is enough
    still(page)
    page.route("**/api/forget", lambda asked: asked.abort())
    page.keyboard.press("f")
    toast = said(page, "The viewer does not answer.")
    assert "look whether" not in toast.inner_text()
    assert toast.locator("code").inner_text() == "foreword view"
    page.route("**/api/pin", lambda asked: asked.abort())
    page.keyboard.press("p")
    said(page, "The viewer does not answer: look whether this was done.")


# -- supersede, edit, undo -------------------------------------------------------------------------------------------


def test_what_supersedes_is_chosen_by_arrows_and_only_what_is_seen_is_used(my_page, mine):
    page, ids = my_page, kept(mine, "hawser", 4)
    begin(page, mine, f"/{ids[0]}?q=hawser")
    told(page, "hawser 0")
    page.keyboard.press("s")
    form = page.get_by_role("form", name="Supersede")
    form.get_by_label("Title").fill("a chain, no hawser")
    form.get_by_label("Find").fill("hawser")
    radios = form.get_by_role("radio")
    radios.nth(2).wait_for()
    radios.first.check()
    page.keyboard.press("ArrowDown")
    assert radios.nth(1).is_checked()
    form.get_by_role("status").get_by_text("takes its place. The new words are not used.").wait_for()
    assert form.get_by_label("Title").input_value() == "a chain, no hawser"
    form.get_by_label("Find").fill("zzzqqq")
    form.get_by_text("Nothing like that.").wait_for()
    assert form.get_by_role("status").inner_text() == ""
    page.keyboard.press("Control+Enter")
    page.locator(".mem-head", has_text="Superseded by a chain, no hawser").wait_for()


def test_undo_of_a_memory_takes_back_its_own_change_and_says_which(my_page, mine):
    page, (first, second) = my_page, kept(mine, "marlin", 2)
    mine.client.post("/api/pin", {"id": second})
    begin(page, mine, f"/{first}?q=marlin")
    told(page, "marlin 0")
    page.keyboard.press("p")
    said(page, "Pinned")
    page.locator(ROW, has_text="marlin 1").click()
    told(page, "marlin 1")
    page.locator("[data-do=undo]").click()
    said(page, "Taken back: pinned “marlin 1”.")
    assert [memory(mine, id)["pinned"] for id in (first, second)] == [True, False]
    page.keyboard.press("u")  # what was done last here
    toast = said(page, "Taken back: pinned “marlin 0”.")
    assert not memory(mine, first)["pinned"]
    toast.get_by_role("button", name="Undo").click()
    said(page, "Done again: pinned “marlin 0”.")


def test_a_kind_brings_the_fields_that_it_needs_and_an_empty_confidence_is_not_saved(my_page, mine):
    page, (id,) = my_page, kept(mine, "tackle", 1, kind="note", confidence=0.5)
    visit(page, f"{mine.origin}/memories/{id}")
    before = memory(mine, id)["confidence"]
    page.locator("[data-do=edit]").click()
    form = page.get_by_role("form", name="Edit")
    assert not form.get_by_label("Why").is_visible()
    form.get_by_label("Kind").select_option("failure")
    form.get_by_label("Fixed by").fill("a new block")
    form.get_by_label("Kind").select_option("decision")
    assert form.get_by_label("Why").is_visible()
    assert form.get_by_label("Fixed by").is_visible()  # something stands there
    form.get_by_label("Confidence").fill("")
    page.keyboard.press("Control+Enter")
    until(page, "document.activeElement.name === 'confidence'")
    form.get_by_label("Confidence").fill(str(before))
    page.keyboard.press("Control+Enter")
    said(page, "Revised")
    assert memory(mine, id)["confidence"] == before


# -- long lists, and lists that fail ---------------------------------------------------------------------------------


def test_a_long_list_keeps_its_rows_its_place_and_its_selection_and_says_where_it_ends(my_page, mine):
    page, ids = my_page, kept(mine, "ballast", 510)
    begin(page, mine, "?q=ballast")
    page.locator("#mem-q").press("ArrowDown")
    for count in range(100, 550, 50):
        page.keyboard.press("End")
        until(page, f"document.querySelectorAll('{ROW}').length >= {min(count, 500)}")
    page.locator(ENDS, has_text="The first 500 are listed.").wait_for()
    page.locator(f"[data-id='{ids[300]}']").focus()
    for key in ("x", "Shift+J"):
        page.keyboard.press(key)
    bar(page, 2)
    held = focused(page)
    page.keyboard.press("p")
    said(page, "2 memories pinned")
    bar(page, 2)
    assert page.locator(ROW).count() == 500
    assert focused(page) == held
    assert page.locator(".mem-row.is-picked .chip", has_text="pinned").count() == 2
    page.keyboard.press("Enter")
    told(page, "ballast 301")
    mine.client.post(f"/api/memories/{ids[301]}", {"title": "ballast of lead"})
    told(page, "ballast of lead")  # it is followed, though the list is too long to be


def test_what_is_kept_below_the_rows_that_are_listed_is_counted(my_page, mine):
    page = my_page
    kept(mine, "dunnage", 60)
    begin(page, mine, "?q=dunnage")
    page.locator(".mem-count", has_text="60 memories").wait_for()
    kept(mine, "dunnage of old", 1, created=1e8)
    page.locator(".mem-count", has_text="61 memories").wait_for()


@pytest.mark.parametrize("look", [PHONE], indirect=True, ids=str)
def test_on_a_phone_the_line_that_one_reads_stays_when_something_is_kept(my_page, mine, look):
    page = my_page
    begin(page, mine)
    until_rows(page, 50)
    top = f"[...document.querySelectorAll('{ROW}')][30].getBoundingClientRect().top"
    page.evaluate(f"() => scrollBy(0, {top} - 100)")
    page.evaluate(FRAMES)
    id = page.locator(ROW).nth(30).get_attribute("data-id")
    mine.client.post("/api/memories", {"kind": "note", "title": "a tern", "project_path": mine.projects["havn"]})
    page.locator(ROW, has_text="a tern").wait_for()
    until(page, f"Math.abs(document.querySelector('[data-id=\"{id}\"]').getBoundingClientRect().top - 100) < 30")


@pytest.mark.parametrize("look", [PHONE], indirect=True, ids=str)
@pytest.mark.parametrize("way", ["button", "key"])
def test_on_a_phone_all_results_lead_back_to_the_line_that_one_left(my_page, mine, look, way):
    page = my_page
    begin(page, mine)
    until_rows(page, 50)
    page.evaluate("() => scrollTo(0, 500)")
    page.evaluate(FRAMES)
    row = page.locator(ROW).nth(
        page.locator(ROW).evaluate_all("all => all.findIndex((each) => each.getBoundingClientRect().top > 250)")
    )
    id, before = row.get_attribute("data-id"), row.bounding_box()["y"]
    top = f"document.querySelector('[data-id=\"{id}\"]').getBoundingClientRect().top"
    row.tap()
    page.locator("#mem-title").wait_for()
    page.evaluate("() => scrollTo(0, 200)")
    if way == "button":  # and lines that came above meanwhile move nothing
        kept(mine, "a wagtail", 1, created=2e9)
        page.locator(ROW, has_text="a wagtail 0").wait_for(state="attached")
        page.get_by_role("button", name="All results").tap()
    else:
        page.keyboard.press("Escape")
    until(page, f"document.activeElement.dataset.id === '{id}'")
    page.evaluate(FRAMES)
    assert abs(page.evaluate(top) - before) < 5


@pytest.mark.parametrize("look", [PHONE], indirect=True, ids=str)
def test_on_a_phone_who_went_on_to_another_memory_comes_back_to_its_row(my_page, mine, look):
    page, ids = my_page, kept(mine, "bowsprit", 40)
    mine.client.post("/api/links", {"source": ids[0], "relation": "relates-to", "target": ids[39]})
    begin(page, mine, "?q=bowsprit")
    until_rows(page, 40)
    page.locator(ROW).first.tap()
    told(page, "bowsprit 0")
    page.locator(".mem-part", has_text="Links").get_by_role("link").tap()
    told(page, "bowsprit 39")
    page.get_by_role("button", name="All results").tap()
    until(page, f"document.activeElement.dataset.id === '{ids[39]}'")
    assert page.locator(ROW).last.evaluate("row => row.getBoundingClientRect().bottom <= innerHeight")


@pytest.mark.parametrize("look", [PHONE], indirect=True, ids=str)
def test_on_a_phone_what_saves_a_form_is_wholly_in_sight_wherever_one_writes(my_page, mine, look, shot):
    page, (id,) = my_page, kept(mine, "spritsail", 1, body="\n".join(["a line of canvas"] * 40))
    visit(page, f"{mine.origin}/memories/{id}")
    page.locator("[data-do=edit]").tap()
    save = page.get_by_role("form", name="Edit").locator(".actions")
    save.wait_for()
    for scrolled in ("0", "300", "document.documentElement.scrollHeight"):
        page.evaluate(f"() => scrollTo(0, {scrolled})")
        page.evaluate(FRAMES)
        if scrolled == "0":
            shot(page, "memory-edited")
        assert save.evaluate("bar => bar.getBoundingClientRect().bottom <= innerHeight + 0.5")


def test_a_look_that_fails_by_itself_takes_nothing_away(my_page, mine, watch):
    watch.expects("500")
    page, (id, _) = my_page, kept(mine, "bobstay", 2)
    begin(page, mine, f"/{id}?q=bobstay")
    told(page, "bobstay 0")
    failed: list[str] = []

    def fail(asked: Any) -> None:
        failed.append(asked.request.url)
        asked.fulfill(status=500, content_type="application/json", body='{"error": "no luck", "hint": "none"}')

    page.route(re.compile(r"/api/memories[/?]"), fail)
    mine.client.post(f"/api/memories/{id}", {"title": "bobstay of wire"})
    for _ in range(300):
        if any("?" in each for each in failed) and any(id in each for each in failed):
            break
        page.wait_for_timeout(50)
    assert len(failed) > 1
    page.evaluate(FRAMES)
    assert page.locator(".trouble").count() == 0
    assert rows(page) == ["bobstay 0", "bobstay 1"]
    told(page, "bobstay 0")


def test_lists_that_are_not_whole_say_so(my_page, mine):
    page = my_page
    kept(mine, "jetsam", 101, kind="note")
    kept(mine, "flotsam", 1, tags=[f"tag{n}" for n in range(21)])
    begin(page, mine, "?view=waiting")
    page.locator(ENDS, has_text="are listed. Others follow as you decide.").wait_for()
    begin(page, mine, "?q=flotsam")
    page.locator("details[data-facet=tag] p", has_text="Up to 20 are listed").wait_for(state="attached")


# -- the address, the way back, the focus ----------------------------------------------------------------------------


def test_the_same_address_is_no_step_and_what_was_typed_last_is_in_the_one_that_is_left(my_page, mine):
    page = my_page
    kept(mine, "capstone", 3)
    begin(page, mine)
    page.locator("#mem-q").press_sequentially("capston")
    until_rows(page, 3)
    page.locator("#mem-q").press_sequentially("e")
    page.keyboard.press("Enter")
    page.locator("#mem-title").wait_for()
    count = page.evaluate("history.length")
    page.locator(f"{ROW}[aria-current]").click()
    page.evaluate(FRAMES)
    assert page.evaluate("history.length") == count
    page.evaluate("history.back()")
    until(page, "location.pathname === '/memories'")
    assert page.evaluate("new URL(location).searchParams.get('q')") == "capstone"
    begin(page, mine)
    count = page.evaluate("history.length")
    page.get_by_role("link", name="All", exact=True).click()
    page.evaluate(FRAMES)
    assert page.evaluate("history.length") == count


def test_the_way_back_leads_to_what_was_selected_and_to_what_can_be_taken_back(my_page, mine):
    page, ids = my_page, kept(mine, "gunwale", 3)
    begin(page, mine, "?q=gunwale")
    for n in range(2):
        page.get_by_label(f"Select: gunwale {n}").check()
    page.keyboard.press("p")
    said(page, "2 memories pinned")
    page.locator(ROW, has_text="gunwale 2").click()
    told(page, "gunwale 2")
    page.evaluate("history.back()")
    until(page, "location.pathname === '/memories'")
    bar(page, 2)
    assert picked(page) == ["gunwale 0", "gunwale 1"]
    away(page)
    page.evaluate("history.back()")
    bar(page, 2)
    page.keyboard.press("u")
    said(page, "Taken back: 2 memories pinned.")
    assert not any(memory(mine, id)["pinned"] for id in ids)


def test_where_nothing_is_listed_that_is_heard_and_escape_leaves_the_box(page, viewer):
    visit(page, f"{viewer.origin}/memories?tag=nobody-has-this")
    page.get_by_text("Nothing fits").wait_for()
    assert page.locator(".mem-count[role=status]").inner_text() == "0 memories"
    page.locator("#mem-q").focus()
    page.keyboard.press("Escape")
    assert focused(page) == "main"


def test_a_filter_is_called_by_name_and_its_button_by_what_is_seen(page, viewer):
    key = next(each["key"] for each in viewer.client.get("/api/projects")["projects"] if each["name"] == "tern")
    begin(page, viewer, f"?scope=project:{key}&kind=pattern")
    page.get_by_role("button", name="Remove scope: tern", exact=True).wait_for()
    page.get_by_role("button", name="Remove kind: pattern", exact=True).click()
    until(page, "!new URL(location).searchParams.has('kind')")


def test_a_proposal_names_the_memory_that_it_has_other_words_for(page, viewer):
    begin(page, viewer, f"/{viewer.ids['proposal']}")
    waits = page.locator(".mem-detail .mem-waits")
    waits.get_by_text("Other words for “Money is stored as integer cents”, proposed by codex.").wait_for()


def test_a_wide_window_without_a_mouse_has_the_button_that_shows_the_boxes(browser, viewer, watch):
    tablet = Look("tablet", "light", 1100, 800)
    with window(browser, tablet, is_mobile=True) as own, watched(own, viewer, watch) as page:
        begin(page, viewer)
        assert page.evaluate("matchMedia('(hover: none)').matches")
        page.get_by_role("button", name="Select", exact=True).tap()
        page.locator(ROW).first.tap()
        bar(page, 1)
        assert page.locator(".mem-tick input").first.is_visible()
        assert page.get_by_role("button", name="Done").get_attribute("aria-pressed") is None


def test_no_address_that_a_browser_reads_as_another_host_is_ever_made(page, viewer):
    visit(page, f"{viewer.origin}/memories")
    refused = page.evaluate(
        """async (all) => { const { make } = await import("/static/dom.js");
            return all.filter((href) => { try { make("a", { href }); } catch { return true; } }); }""",
        hosts := ["/\t/there.example", "/\n/there.example", "/\r\\there.example", "//there.example"],
    )
    assert refused == hosts


def test_undo_twice_in_a_row_takes_back_two_things(my_page, mine):
    """Also where the second key comes before the first is answered."""
    visit(my_page, f"{mine.origin}/memories/{mine.ids['pattern']}")
    my_page.locator("[data-do=pin]").click()
    my_page.locator(".toast", has_text="Pinned").wait_for()
    my_page.locator("[data-do='set aside']").click()
    my_page.locator(".toast", has_text="Set aside").wait_for()
    with my_page.expect_response("**/api/undo"), my_page.expect_response("**/api/undo"):
        my_page.keyboard.press("u")
        my_page.keyboard.press("u")
    for words in ("set aside", "pinned"):
        my_page.locator(".toast", has_text=f"Taken back: {words}").wait_for()
    told = mine.client.get(f"/api/memories/{mine.ids['pattern']}")["memory"]
    assert (told["status"], told["pinned"]) == ("active", False)


def test_a_key_that_is_held_walks_on_but_does_nothing_twice(my_page, mine):
    visit(my_page, f"{mine.origin}/memories/{mine.ids['decision']}")
    my_page.locator("[data-do=forget]").wait_for()
    with my_page.expect_response("**/api/pin") as told:
        my_page.keyboard.down("p")
        my_page.keyboard.down("p")  # as a keyboard repeats it
        my_page.keyboard.up("p")
    my_page.locator(".toast", has_text="inned").first.wait_for()
    pinned = told.value.json()["memory"]["pinned"]
    assert mine.client.get(f"/api/memories/{mine.ids['decision']}")["memory"]["pinned"] is pinned
    my_page.locator(".row").first.focus()
    for _ in range(3):
        my_page.keyboard.down("j")
    my_page.keyboard.up("j")
    until(my_page, "document.activeElement === document.querySelectorAll('.row')[3]")
