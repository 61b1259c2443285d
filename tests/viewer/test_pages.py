"""Use Now, Timeline, Try it and Health in a real browser: they go on by themselves, and leave their reader in peace."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from foreword.capture.payload import HookCall
from foreword.worker import lifecycle
from tests.viewer.conftest import Viewer, playwright, visit
from tests.viewer.filled import LIVE_PROMPTS, hooked
from tests.viewer.steps import CARDS, ROW, asks, until

pytestmark = pytest.mark.long

FIRST, SECOND = LIVE_PROMPTS
NEXT = "Where does the met office time out, and which test shows it?"
PROMPT = "why does reserve_stock deadlock when two pickers lock rows of the queue?"


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def tell(viewer: Viewer, session: str, prompt: str) -> None:
    """Tell a prompt of a session in the shop, as an agent's hook does."""
    answer = {"session_id": session, "cwd": viewer.projects["shop"], "prompt": prompt, "prompt_id": prompt}
    hooked(viewer.client, HookCall("claude-code", "UserPromptSubmit", time.time(), json.dumps(answer).encode()))


# -- Now -------------------------------------------------------------------------------------------------------------


def test_whoever_reads_keeps_place_focus_and_folds_when_something_new_comes(fresh_page, fresh):
    page = fresh_page
    page.set_viewport_size({"width": 1280, "height": 500})
    visit(page, f"{fresh.origin}/now")
    page.wait_for_selector(CARDS)
    press(page, "j", "j", "j", "o")  # down to the start of the session, and its text
    chosen = page.locator(f"{CARDS}.chosen")
    assert "At session start" in chosen.locator("h2").text_content()
    page.evaluate("document.querySelector('.trigger.chosen details.text pre').focus()")
    page.evaluate("document.querySelector('.trigger.chosen').scrollIntoView({block: 'start'})")
    top = "document.querySelector('.trigger.chosen').getBoundingClientRect().top"
    before = page.evaluate(top)
    asks(fresh, NEXT)
    page.wait_for_function("text => document.querySelector('.trigger q')?.textContent === text", arg=NEXT)
    page.locator("#status", has_text="New: for a prompt Where does the met office").wait_for(state="attached")
    assert abs(page.evaluate(top) - before) <= 1
    assert page.evaluate("document.activeElement.matches('.trigger.chosen details.text pre')")
    assert chosen.locator("details.text").get_attribute("open") is not None
    page.locator(".now-above", has_text="1 new entry").click()
    page.locator(".now-above").wait_for(state="hidden")
    assert page.locator(f"{CARDS}.chosen q").text_content() == NEXT
    tell(fresh, "other", "Count the guests of the shop again")
    page.get_by_text("Another session is running: shop, Count the guests").wait_for()
    assert page.locator(f"{CARDS} q").first.text_content() == NEXT
    page.get_by_role("button", name="Follow it").click()
    until(page, "document.querySelector('.now-head h1').textContent.startsWith('Count the guests')")


def test_a_prompt_without_an_answer_is_told_as_silence_with_what_came_nearest(fresh_page, fresh):
    page = fresh_page
    visit(page, f"{fresh.origin}/now")
    page.wait_for_selector(CARDS)
    near = "paint the ferry of the met office and the harbour lantern in Esperanto colours"
    for prompt, words in {
        "Translate Ozymandias into Esperanto verses please": "Nothing was injected: nothing",
        "ok, do that": "Nothing was injected: it answers or continues the running conversation",
        near: "Nothing was injected: nothing",
    }.items():
        assert asks(fresh, prompt) == ""
        page.locator(CARDS, has_text=prompt).get_by_text(words).wait_for()  # at first it is being looked for
    answer = fresh.client.get("/api/injections", session_id=fresh.sessions["live"], limit=1, empty=1)["injections"][0]
    card = page.locator(CARDS, has_text=near)
    assert [each["title"] in card.text_content() for each in answer["rejected"]] == [True] * len(answer["rejected"])
    assert answer["rejected"]
    assert answer["rejected"][0]["why"] in card.text_content()


# Each factor of a page: its figure, and how far its bar reaches from the middle, to the left below 0.


def test_before_anything_happened_pages_say_what_to_do_first_and_go_on_by_themselves(unused):
    page, viewer = unused
    visit(page, f"{viewer.origin}/timeline")
    page.locator(".empty", has_text="foreword install").wait_for()
    visit(page, f"{viewer.origin}/try")
    page.get_by_text("No project yet").wait_for()
    for count, place in enumerate(("north", "south"), 1):
        root = Path(viewer.projects["new"], place, "shop")
        root.mkdir(parents=True)
        answer = {"kind": "decision", "title": f"Herons go {place}", "project_path": str(root)}
        viewer.client.post("/api/memories", answer)
        until(page, f"document.querySelector('#project')?.options.length === {count}")
    assert sorted(page.locator("#project option").all_text_contents()) == ["shop (north/shop)", "shop (south/shop)"]
    page.locator("#project").select_option(label="shop (south/shop)")
    page.locator("#prompt").fill("where do the herons go?")
    page.locator(".tried", has_text="Herons go south").wait_for()
    assert "Herons go north" not in page.inner_text("main")
    visit(page, f"{viewer.origin}/now")
    page.get_by_text("foreword install claude-code").wait_for()
    asks(viewer, "Draw the owl", session="first", project="new")
    page.locator(f"{CARDS} q", has_text="Draw the owl").wait_for()


# -- Timeline --------------------------------------------------------------------------------------------------------


# -- Health ----------------------------------------------------------------------------------------------------------


def test_a_broken_store_is_told_with_the_way_out(fresh_page, fresh, watch):
    watch.expects("503")
    fresh.home.database.unlink()
    fresh.home.database.write_bytes(b"this is no database, and never was one. " * 200)
    verdict = fresh_page.locator(".verdict-line", has_text="Not all is well: cannot open")
    for _ in range(20):  # the worker looks every second
        visit(fresh_page, f"{fresh.origin}/health")
        if verdict.count():
            break
    verdict.wait_for()
    playwright.expect(fresh_page.locator(".findings")).to_contain_text("foreword restore")
    playwright.expect(fresh_page.get_by_role("region", name="Store", exact=True)).to_contain_text("cannot be read")


# -- the frame of all pages ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "response", "shown"),
    [
        ("/timeline", "**/api/timeline*", ".session"),
        ("/timeline/{live}", "**/api/sessions/*", ".step"),
        ("/health", "**/api/health?*", ".verdict-line"),
        ("/health", "**/api/stats*", ".rates table"),
        ("/memories", "**/api/memories?*", ROW),
        ("/memories", "**/api/facets*", "[data-facet=kind]"),
        ("/memories/{pinned}", "**/api/memories/*", "#mem-title"),
        ("/try", "**/api/preview?project=*", "#trigger option"),
        ("/timeline", "**/static/timeline.js", ".session"),
    ],
)
def test_what_got_no_answer_once_is_asked_for_again_by_itself(page, viewer, watch, path, response, shown):
    watch.expects("ERR_FAILED")
    lost: list[str] = []
    page.route(response, lambda request: (lost.append(request.request.url), request.abort()), times=1)
    page.goto(viewer.origin + path.format(live=viewer.sessions["live"], pinned=viewer.ids["pinned"]))
    page.locator(shown).first.wait_for(state="attached")
    until(page, "!document.querySelector('.trouble')")
    assert len(lost) == 1


def test_pages_go_on_when_their_worker_left(fresh_page, fresh):
    visit(fresh_page, f"{fresh.origin}/now")
    lifecycle.stop(fresh.home)
    fresh_page.locator("header nav a", has_text="Memories").click()  # the viewer starts a worker for it
    fresh_page.locator(ROW).first.wait_for()
    tell(fresh, "nine", "who sees this?")
    visit(fresh_page, f"{fresh.origin}/now")
    fresh_page.locator("option[value=nine]").wait_for(state="attached")


def test_more_pages_than_a_browser_opens_connections_are_all_drawn_and_all_told(fresh_page, fresh):
    pages = [fresh_page, *(fresh_page.context.new_page() for _ in range(7))]
    for each in pages:
        visit(each, f"{fresh.origin}/now")
    tell(fresh, "eight", "who sees this?")
    for each in pages:
        each.locator("option[value=eight]").wait_for(state="attached")
