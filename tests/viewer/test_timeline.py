"""The Timeline in a real browser: days and sessions, one opened as its story, by mouse and by keys, as it goes on."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from foreword.payloads import Delivery
from tests.viewer.conftest import Viewer, every_look, visit
from tests.viewer.filled import hooked


def opened(page: Any, viewer: Viewer, path: str = "/timeline") -> None:
    visit(page, f"{viewer.origin}{path}")
    page.wait_for_selector(".session, .moment, .empty, .trouble")


def told(viewer: Viewer, session: str, event: str, *, host: str = "claude-code", **more: object) -> None:
    """What an agent's hook tells just now."""
    raw = json.dumps({"session_id": session, "cwd": viewer.projects["shop"], "hook_event_name": event, **more})
    hooked(viewer.client, Delivery(host, event, time.time(), raw.encode()))


def chosen(page: Any) -> str:
    return str(page.evaluate("document.activeElement.dataset.session ?? ''"))


def sideways(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))


@every_look
def test_sessions_stand_under_their_days_with_what_came_of_them(page, viewer, shot):
    opened(page, viewer)
    days = page.locator("section.day h2").all_inner_texts()
    assert any(each.startswith("Today") for each in days) or any(each.startswith("Yesterday") for each in days)
    assert page.locator(".session").count() >= 15
    text = page.locator(".days").inner_text()
    for words in ("Changed", "~ MODIFIED", "+ NEW", "Failed", "Decided", "claude-code", "codex", "havn", "shop"):
        assert words in text
    assert not sideways(page)
    shot(page, "timeline")


@every_look
def test_a_story_tells_every_moment_of_a_session(page, viewer, shot):
    opened(page, viewer, f"/timeline/{viewer.sessions['live']}")
    text = page.locator(".moments").inner_text()
    for words in ("Started", "Given", "Asked", "✗ Failed", "Changed", "Answered", "havn/prices.py"):
        assert words in text
    given = page.locator(".moment.given details").first
    given.locator("summary").click()
    assert given.locator("a[href^='/memories/']").count() > 0
    assert given.locator(f"a[href='/now/{viewer.sessions['live']}']").count() == 1
    assert not sideways(page)
    shot(page, "story")


def test_a_failure_of_another_host_stands_with_what_fixed_it(page, viewer):
    opened(page, viewer, f"/timeline/{viewer.sessions['codex'][:8]}")
    failed = page.locator(".moment.failed").first
    assert "tests/test_stock.py" in failed.inner_text()
    failed.locator("summary").click()
    assert "DeadlockDetected" in failed.locator("pre").inner_text()
    assert "shop/stock.py" in page.locator(".moment.fixed").inner_text()
    page.locator(".moment.fixed a").click()
    page.wait_for_url("**/memories/fai-*")


def test_keys_walk_the_sessions_open_one_and_come_back_to_the_same_place(page, viewer):
    opened(page, viewer)
    for _ in range(8):
        page.keyboard.press("j")
    page.keyboard.press("k")
    was, top = chosen(page), page.evaluate("scrollY")
    assert was == page.locator(".session").nth(6).get_attribute("data-session")
    assert top > 0
    page.keyboard.press("Enter")
    page.wait_for_selector(".moment")
    assert page.url.endswith(f"/timeline/{was}")
    page.keyboard.press("j")
    assert page.locator(".moment.chosen").count() == 1
    page.keyboard.press("Escape")
    page.wait_for_selector(".session.chosen")
    assert (chosen(page), page.evaluate("scrollY")) == (was, top)
    page.keyboard.press("o")
    page.wait_for_selector(".moment")
    page.go_back()
    page.wait_for_selector(".session.chosen")
    assert chosen(page) == was


def test_a_project_is_chosen_in_the_address_and_shows_its_own_sessions_alone(page, viewer):
    opened(page, viewer)
    page.get_by_label("Project").select_option(label="shop")
    page.wait_for_url("**/timeline?project=*")
    page.locator(".session").nth(1).wait_for(state="detached")
    assert page.locator(".session").get_attribute("data-session") == viewer.sessions["codex"]
    page.reload()
    page.wait_for_selector(".session")
    assert page.locator(".session").count() == 1
    assert page.get_by_label("Project").input_value()


def test_a_session_that_nobody_knows_tells_the_way_out(page, viewer, watch):
    watch.expects("404")
    opened(page, viewer, "/timeline/nobody")
    assert "foreword sessions" in page.get_by_role("alert").inner_text()
    page.keyboard.press("Escape")
    page.wait_for_selector(".session")


def test_an_empty_project_says_how_sessions_come(page, viewer):
    opened(page, viewer, "/timeline?project=nobody")
    assert "foreword install" in page.locator(".empty").inner_text()


def test_older_sessions_come_by_themselves_at_the_end_of_the_list(fresh_page, fresh):
    for number in range(30):
        told(fresh, f"many-{number}", "UserPromptSubmit", prompt=f"question {number}", prompt_id=f"p{number}")
    opened(fresh_page, fresh)
    assert fresh_page.locator(".session").count() == 30
    fresh_page.keyboard.press("End")
    fresh_page.locator(".session").nth(50).wait_for()
    ids = fresh_page.locator(".session").evaluate_all("all => all.map(each => each.dataset.session)")
    assert len(ids) == len(set(ids))
    assert fresh_page.get_by_role("button", name="Older sessions").is_hidden()
    fresh_page.locator(".session").nth(45).locator("h3 a").click()
    fresh_page.wait_for_selector(".moment")
    fresh_page.go_back()
    fresh_page.wait_for_selector(".session.chosen")
    assert chosen(fresh_page) == ids[45]


def test_older_sessions_that_were_not_had_are_had_when_asked_for_again(fresh_page, fresh, watch):
    watch.expects("503")
    for number in range(30):
        told(fresh, f"many-{number}", "UserPromptSubmit", prompt=f"question {number}", prompt_id=f"p{number}")
    said = json.dumps({"error": "the database is locked", "hint": "wait"})
    fresh_page.route("**/api/timeline?before=*", lambda asked: asked.fulfill(status=503, body=said))
    opened(fresh_page, fresh)
    fresh_page.keyboard.press("End")
    trouble = fresh_page.get_by_text("The database is locked")
    trouble.wait_for()
    fresh_page.unroute("**/api/timeline?before=*")
    fresh_page.get_by_role("button", name="Older sessions").click()
    fresh_page.locator(".session").nth(35).wait_for()
    assert not trouble.is_visible()


def test_a_session_that_goes_on_is_told_on_without_losing_the_place(fresh_page, fresh):
    page = fresh_page
    opened(page, fresh)
    for _ in range(4):
        page.keyboard.press("j")
    was = chosen(page)
    told(fresh, "just-now", "UserPromptSubmit", prompt="is the harbour open?", prompt_id="p1")
    page.wait_for_selector("[data-session='just-now']")
    assert chosen(page) == was
    page.get_by_role("link", name="is the harbour open?").click()
    page.wait_for_selector(".moment")
    page.keyboard.press("j")
    told(fresh, "just-now", "UserPromptSubmit", prompt="and the restaurant?", prompt_id="p2")
    page.wait_for_selector("text=and the restaurant?")
    assert page.locator(".moment.chosen").inner_text() == page.locator(".moment").first.inner_text()


@pytest.mark.parametrize(("path", "asked"), [("/timeline", "**/api/timeline*"), ("/health", "**/api/health")])
def test_a_page_that_got_no_answer_once_asks_again_by_itself(page, viewer, watch, path, asked):
    """The stream stays well all the while: nobody is told that anything was lost, and nothing is committed."""
    watch.expects("ERR_FAILED")
    visit(page, f"{viewer.origin}/now")
    page.route(asked, lambda request: request.abort(), times=1)
    page.locator(f"nav a[href='{path}']").click()
    page.locator(".trouble", has_text="does not answer").wait_for()
    page.locator(".trouble").wait_for(state="detached")
    page.locator(".session, .verdict-line").first.wait_for()


def test_a_story_that_got_no_answer_once_asks_again_by_itself(page, viewer, watch):
    watch.expects("ERR_FAILED")
    page.route("**/api/sessions/*", lambda request: request.abort(), times=1)
    visit(page, f"{viewer.origin}/timeline/{viewer.sessions['live']}")
    page.locator(".moment").first.wait_for()
    assert page.locator(".trouble").count() == 0
    assert page.locator("main h1").count() == 1


def test_the_way_back_from_a_memory_leads_to_the_same_place_however_far_down(my_page, mine):
    page = my_page
    for number in range(30):
        told(mine, f"above-{number}", "UserPromptSubmit", prompt=f"question {number}", prompt_id=f"p{number}")
    opened(page, mine)
    page.keyboard.press("End")
    page.locator(".session").nth(40).wait_for()
    link = page.locator(".session:nth-last-child(-n+3) a[href^='/memories/']").last
    link.scroll_into_view_if_needed()
    was, top = link.evaluate("node => [node.closest('.session').dataset.session, scrollY]")
    link.click()
    page.wait_for_url("**/memories/*")
    page.locator("#mem-title").wait_for()
    page.go_back()
    page.wait_for_function("id => document.activeElement.dataset.session === id", arg=was)
    page.wait_for_function("top => Math.abs(scrollY - top) < 2", arg=top)


def test_a_reload_leads_to_where_one_was_last_not_to_what_was_opened_before(page, viewer):
    opened(page, viewer)
    for key in ("j", "j", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector(".moment")
    page.keyboard.press("Escape")
    page.wait_for_selector(".session.chosen")
    before = chosen(page)
    for _ in range(6):
        page.keyboard.press("j")
    was, top = chosen(page), page.evaluate("scrollY")
    assert was != before
    page.reload()
    page.wait_for_function("id => document.activeElement.dataset?.session === id", arg=was)
    page.wait_for_function("top => Math.abs(scrollY - top) < 100", arg=top)


def test_a_link_keeps_the_focus_when_its_session_goes_on_and_moves_up(my_page, mine):
    page = my_page
    for name in ("goes-on", "comes-later"):
        told(mine, name, "UserPromptSubmit", prompt=f"what of {name}?", prompt_id="p1")
    opened(page, mine)
    page.locator("[data-session=goes-on] h3 a").focus()
    page.evaluate("() => document.querySelectorAll('.session').forEach(each => (each.seen = true))")
    told(mine, "goes-on", "UserPromptSubmit", prompt="and now?", prompt_id="p2")
    page.wait_for_function("() => document.querySelector('.session').dataset.session === 'goes-on'")
    assert (
        page.evaluate("document.activeElement.closest('[data-session=goes-on]') && document.activeElement.tagName")
        == "A"
    )
    assert page.evaluate("() => [...document.querySelectorAll('.session')].every(each => each.seen)")
