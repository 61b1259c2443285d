"""Walk once through every page of the viewer: each is opened, each main action done, each route answered."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import pytest

from foreword.viewer.app import ROUTES
from foreword.worker.routes import route_of
from foreword.worker.sessions import TRIGGERS
from tests.viewer.conftest import Viewer, Watch, settled, still, visit
from tests.viewer.filled import LIVE_PROMPTS
from tests.viewer.steps import CARDS, ROW, asks, keep, memory, open_list, rows, shows, toast, until, until_rows

FIRST, SECOND = LIVE_PROMPTS
NEXT = "Where does the met office time out, and which test shows it?"
LONG = f"{'Count the herons at the pier once more, please. ' * 30}And the gulls?"


@pytest.mark.timeout(300)
def test_every_page_opens_every_action_works_and_every_route_is_answered(
    page: Any, viewer: Viewer, watch: Watch
) -> None:
    enter(page, viewer)
    now(page, viewer)
    timeline(page, viewer)
    health(page, viewer)
    search_and_open(page, viewer)
    edit_and_pin(page, viewer)
    waiting(page, viewer)
    forget(page, viewer)
    try_a_prompt(page, viewer)
    nowhere(page, viewer, watch)
    answered = {(method, route_of(ROUTES, path)) for method, path in watch.answered}
    every = {(method, path) for path, methods in ROUTES.items() for method in methods}
    assert sorted(every - answered) == [], "the walk did not visit these"
    close(page, viewer, watch)


def enter(page: Any, viewer: Viewer) -> None:
    """A link opens the viewer once and leaves no token in the address; the header leads to every page and back."""
    page.context.clear_cookies()
    page.goto(viewer.link())
    page.wait_for_url(f"{viewer.origin}/now")
    settled(page)
    assert page.context.cookies()[0]["httpOnly"]
    for link in page.locator("header nav a").all():
        link.click()
        settled(page)
        assert urlsplit(page.url).path == link.get_attribute("href")
        assert link.get_attribute("aria-current") == "page"
        assert page.locator("main h1").count() == 1
    page.go_back()
    page.go_back()
    settled(page)
    assert page.title() == "Memories · Foreword"


def now(page: Any, viewer: Viewer) -> None:
    """The live session is shown as its agent saw it, and goes on by itself when a hook speaks."""
    visit(page, f"{viewer.origin}/now")
    page.wait_for_selector(CARDS)
    prompts = page.locator(f"{CARDS} q")
    assert prompts.all_text_contents() == [SECOND, FIRST]
    newest = viewer.client.get("/api/injections", session_id=viewer.sessions["live"], limit=1, text=1)["injections"][0]
    assert page.locator(CARDS).first.locator("details.text pre").text_content() == newest["text"]
    assert page.locator(CARDS).first.locator(".item").count() == len(newest["items"])
    asks(viewer, NEXT)
    page.wait_for_function("text => document.querySelector('.trigger q')?.textContent === text", arg=NEXT)
    assert page.locator(CARDS).first.locator(".chip.good").text_content() == "new"
    query = {"project_path": viewer.projects["havn"], "session_id": "long", "trigger": "compaction"}
    asks(viewer, FIRST, session="long")
    for number in range(TRIGGERS + 2):
        viewer.client.get("/api/context", **query, prompt="bookings", budget=900 + number)
    visit(page, f"{viewer.origin}/now/long")
    page.get_by_role("button", name="Show older ones").click()
    until(page, f"document.querySelectorAll('{CARDS}').length === {TRIGGERS + 3}")
    page.locator(CARDS).last.locator("details.text summary").click()
    until(page, f"[...document.querySelectorAll('{CARDS}')].at(-1).querySelector('pre').textContent")
    asks(viewer, LONG, session="long")  # a card shows its beginning, and all of it can be tried
    visit(page, f"{viewer.origin}/now/long")
    prompts.first.wait_for()
    page.keyboard.press("j")
    page.keyboard.press("t")
    page.wait_for_url(f"{viewer.origin}/try?*")
    page.wait_for_function("text => document.querySelector('textarea')?.value === text", arg=LONG)


def timeline(page: Any, viewer: Viewer) -> None:
    """Sessions stand under their days; one is opened as its story, and leads to what it was given."""
    visit(page, f"{viewer.origin}/timeline")
    page.locator(".session").nth(15).wait_for()
    text = page.locator(".days").inner_text()
    for words in ("Changed", "~ MODIFIED", "+ NEW", "Failed", "Decided", "claude-code", "codex", "havn", "shop"):
        assert words in text
    visit(page, f"{viewer.origin}/timeline/{viewer.sessions['live']}")
    shown_text = page.locator(".steps").inner_text()
    for words in ("Started", "Injected", "Prompt", "✗ Failed", "Changed", "Answer", "havn/prices.py"):
        assert words in shown_text
    page.locator(".step.injected a").first.click()
    page.wait_for_url(f"{viewer.origin}/now/*")
    page.locator(".trigger").first.wait_for()


def health(page: Any, viewer: Viewer) -> None:
    visit(page, f"{viewer.origin}/health")
    page.locator(".verdict-line", has_text="All is well: ").wait_for()
    page.get_by_role("table", name="Items by kind").wait_for()
    page.get_by_role("button", name="90 days").click()
    page.wait_for_url("**/health?days=90")
    still(page)


def search_and_open(page: Any, viewer: Viewer) -> None:
    open_list(page, viewer)
    page.keyboard.press("/")
    page.keyboard.type("picking queue")
    until(page, "new URL(location).searchParams.get('q') === 'picking queue'")
    page.locator(f"{ROW} mark").first.wait_for()
    page.locator(ROW, has_text="Use PostgreSQL advisory locks for the picking queue").click()
    shows(page, "Use PostgreSQL advisory locks for the picking queue")
    visit(page, f"{viewer.origin}/memories/{viewer.ids['superseded']}")
    shows(page, "Search uses trigram similarity instead of Elasticsearch")
    for part in ("Origin", "Links", "How it ranks now", "Shown and used", "History"):
        page.locator(".mem-one").get_by_role("heading", name=part).wait_for()
    page.locator(".mem-part", has_text="Links").get_by_role("link").click()
    shows(page, "Search uses Meilisearch")
    open_list(page, viewer)
    page.get_by_label(re.compile("^pattern")).first.check()
    until(page, "new URL(location).searchParams.get('kind') === 'pattern'")
    page.locator("details[data-facet=project] label", has_text="tern").click()
    until_rows(page, 1)
    assert rows(page) == ["Close every response body"]


def edit_and_pin(page: Any, viewer: Viewer) -> None:
    (id,) = keep(viewer, "cleat", 1)
    visit(page, f"{viewer.origin}/memories/{id}")
    page.locator("[data-do=edit]").click()
    page.get_by_role("form", name="Edit").get_by_label("Title").fill("cleat of bronze")
    page.keyboard.press("Control+Enter")
    toast(page, "Revised: title").get_by_role("button", name="Undo").click()
    toast(page, "Undone")
    shows(page, "cleat 0")
    page.locator("[data-do=pin]").click()
    toast(page, "Pinned")
    assert memory(viewer, id)["pinned"]


def waiting(page: Any, viewer: Viewer) -> None:
    keep(viewer, "capstan", 1, kind="note")
    open_list(page, viewer, "?view=waiting")
    page.get_by_role("button", name="Discard").first.click()
    toast(page, "Discarded")


def forget(page: Any, viewer: Viewer) -> None:
    """What will go is shown and asked for; a receipt tells that nothing is left."""
    (id,) = keep(viewer, "zanzibar", 1)
    visit(page, f"{viewer.origin}/memories/{id}")
    shows(page, "zanzibar 0")
    page.locator("[data-do=forget]").click()
    dialog = page.get_by_role("dialog", name="Forget this for good?")
    dialog.get_by_text("zanzibar 0").wait_for()
    page.keyboard.press("Enter")  # too easily done: it forgets nothing
    dialog.get_by_role("button", name="Cancel").click()
    assert memory(viewer, id)["status"] == "active"
    page.locator("[data-do=forget]").click()
    dialog.get_by_role("button", name="Forget for good").click()
    page.locator(".mem-receipt", has_text="of the text: none left").wait_for()
    page.locator(ROW, has_text="zanzibar 0").wait_for(state="detached")


def try_a_prompt(page: Any, viewer: Viewer) -> None:
    visit(page, f"{viewer.origin}/try")
    page.locator("#project").select_option(label="shop")
    page.locator("#prompt").fill("why does reserve_stock deadlock when two pickers lock rows of the queue?")
    page.wait_for_function("() => document.querySelector('.try-text pre')?.textContent.includes('DeadlockDetected')")
    fits = page.locator(".tried:not(.left)")
    before = fits.count()
    page.locator("#budget").fill("180")
    until(page, "document.querySelector('.meter-words')?.textContent.includes('of 180 tokens')")
    assert 0 < fits.count() < before


def nowhere(page: Any, viewer: Viewer, watch: Watch) -> None:
    """A mistyped address and an unknown id are told with a way on."""
    watch.expects("404")
    visit(page, f"{viewer.origin}/nothing")
    page.get_by_role("link", name="Go to Now").click()
    page.wait_for_url(f"{viewer.origin}/now")
    settled(page)
    for path in ("/memories/dec-00000000", "/now/nobody", "/timeline/nobody"):
        visit(page, f"{viewer.origin}{path}")
        page.get_by_role("alert").get_by_text(re.compile("there is no|no session", re.I)).first.wait_for()
    page.goto(viewer.origin)
    settled(page)
    assert page.title() == "Now · Foreword"


def close(page: Any, viewer: Viewer, watch: Watch) -> None:
    """A page that is open when the viewer is closed says so."""
    watch.expects_it_gone()
    with page.expect_response("**/api/changes"):  # a page that does not listen yet cannot be told why
        visit(page, f"{viewer.origin}/now")
    viewer.close("its command ended")
    page.locator("#closed", has_text="its command ended. Run foreword view").wait_for()
