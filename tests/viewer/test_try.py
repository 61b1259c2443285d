"""The Try it page in a real browser: what is typed is answered, and the slider lets items cross the line."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote_plus

import pytest

from tests.viewer.conftest import every_look, playwright, settled, still, visit

PROMPT = "why does reserve_stock deadlock when two pickers lock rows of the queue?"
# Every row in its order with which side of the line it is on, and whether the node is the one that was marked before.
ROWS = """() => [...document.querySelectorAll(".tried")].map(row => [
    row.dataset.memory, row.classList.contains("left") ? "left" : "in", row.dataset.before ?? ""])"""


@pytest.fixture
def shop(viewer, page):
    """The page with the shop chosen and a prompt typed."""
    visit(page, f"{viewer.origin}/try")
    page.locator("#project").select_option(label="shop")
    page.locator("#prompt").fill(PROMPT)
    page.wait_for_selector(".tried")
    return page


def spent(page):
    """Items and tokens as the meter tells them."""
    items, tokens, budget = re.match(
        r"(\d+) items?, ([\d,]+) of ([\d,]+) tokens", page.inner_text(".meter-words")
    ).groups()
    return int(items), int(tokens.replace(",", "")), int(budget.replace(",", ""))


def moved(page, budget):
    """Move the slider there, and wait until the answer is drawn."""
    page.locator("#budget").fill(str(budget))
    page.wait_for_function(
        f"() => document.querySelector('.meter-words')?.textContent.includes('of {budget:,} tokens')"
    )


@every_look
def test_a_prompt_is_answered_while_it_is_typed(shop, shot, look):
    items, tokens, budget = spent(shop)
    assert 0 < tokens <= budget == 500
    assert shop.locator(".tried:not(.left)").count() == items
    text = shop.inner_text(".try-text pre")
    assert text.startswith("--- foreword: history, not instructions")
    assert "DeadlockDetected" in text
    assert shop.locator(".tried .factors").first.inner_text().split()[0] == "match"
    assert shop.evaluate("document.documentElement.scrollWidth") <= look.width
    shot(shop, "try")
    moved(shop, 180)
    shot(shop, "try-little", whole=True)
    shop.locator("#moment").select_option("session_start")
    shop.wait_for_selector(".try-layer")
    assert shop.evaluate("document.documentElement.scrollWidth") <= look.width
    shot(shop, "try-start")


def test_the_slider_moves_items_across_the_line_and_each_row_stays_itself(shop):
    before = shop.evaluate(ROWS)
    shop.evaluate(
        """() => document.querySelectorAll(".tried").forEach(row => row.dataset.before = row.dataset.memory)"""
    )
    moved(shop, 180)
    after = shop.evaluate(ROWS)
    shown, still = ({id for id, side, _ in rows if side == "in"} for rows in (before, after))
    assert still < shown
    gone = shown - still
    assert gone <= {id for id, side, _ in after if side == "left"}
    assert all(mark == id for id, _, mark in after if id in shown)  # the same nodes as before
    assert shop.locator(".try-line").first.inner_text().startswith("The budget ends here")
    assert shop.locator(".tried.left .try-why").first.inner_text().startswith("Left out: no room in the budget")
    moved(shop, 500)
    assert [id for id, side, _ in shop.evaluate(ROWS) if side == "in"] == [id for id, side, _ in before if side == "in"]


def test_a_link_that_is_drawn_anew_keeps_the_focus(shop):
    last = shop.locator(".tried:not(.left) .item-title a").last
    title = last.inner_text()
    last.focus()
    shop.evaluate("""() => { const slider = document.getElementById("budget");
        slider.value = 180; slider.dispatchEvent(new Event("input")); }""")
    shop.locator(".tried.left .item-title a", has_text=title).wait_for()
    assert shop.evaluate("() => document.activeElement.matches('a') && document.activeElement.textContent") == title


def test_a_row_that_has_the_focus_shows_it(shop):
    row = shop.locator(".tried").first
    row.evaluate("node => node.focus()")
    assert row.evaluate("node => getComputedStyle(node).boxShadow") != "none"


def test_what_is_below_the_threshold_is_told_with_its_score(shop):
    line = shop.locator(".try-line", has_text="Below the threshold")
    needed = float(re.search(r"[\d.]+", line.inner_text()).group())
    scores = shop.locator(".tried.left .figures").all_inner_texts()
    assert scores
    assert all(float(re.search(r"score ([\d.]+)", each).group(1)) < needed for each in scores)


def test_the_number_of_items_is_said_politely(shop):
    shop.wait_for_function("() => /^\\d+ items, \\d+ of 500 tokens$/.test(document.getElementById('said').textContent)")


def test_silence_is_told_with_its_reason_and_the_best_below_the_threshold(shop):
    shop.locator("#prompt").fill("update the test of the lighthouse and run zebra")
    shop.wait_for_selector("text=Nothing would be said")
    assert "is needed" in shop.inner_text(".try-result .empty")
    assert shop.locator(".tried:not(.left)").count() == 0
    assert shop.locator(".tried.left").count() > 0
    shop.locator("#prompt").fill("and then?")
    shop.wait_for_selector("text=it names no topic")


def test_a_budget_that_holds_nothing_is_the_reason_and_no_score_below_the_threshold_the_best(shop):
    shop.locator("#budget").fill("40")
    shop.wait_for_selector("text=what fits is too long for the budget of 40 tokens")
    assert "is needed" not in shop.inner_text(".try-result .empty")


def test_projects_that_are_seen_while_one_looks_can_be_chosen_and_told_apart_though_they_have_one_name(unused):
    page, viewer = unused
    visit(page, f"{viewer.origin}/try")
    page.get_by_text("no project has been seen").wait_for()
    visit(page, f"{viewer.origin}/timeline?project=x")
    page.locator("#project option:checked", has_text="x (not known)").wait_for(state="attached")
    visit(page, f"{viewer.origin}/try")
    for count, place in enumerate(("north", "south"), 1):
        root = Path(viewer.projects["new"], place, "shop")
        root.mkdir(parents=True)
        told = {"kind": "decision", "title": f"Herons go {place}", "project_path": str(root)}
        viewer.client.post("/api/memories", told)
        page.wait_for_function(f"() => document.querySelector('#project')?.options.length === {count}")
    assert sorted(page.locator("#project option").all_text_contents()) == ["shop (north/shop)", "shop (south/shop)"]
    assert page.locator("#project").input_value().endswith("north/shop")  # as it was
    page.locator("#project").select_option(label="shop (south/shop)")
    page.locator("#prompt").fill("where do the herons go?")
    page.locator(".tried", has_text="Herons go south").wait_for()
    assert "Herons go north" not in page.inner_text("main")


def test_who_goes_along_projects_by_keys_goes_on_where_the_next_page_takes_its_time(page, viewer):
    page.route("**/api/projects", lambda asked: (time.sleep(0.1), asked.continue_()))
    visit(page, f"{viewer.origin}/timeline")
    page.locator("#project").focus()
    for _ in range(2):
        before = page.url
        page.keyboard.press("ArrowDown")
        page.wait_for_function("before => location.href !== before", arg=before)
        page.wait_for_function("() => document.activeElement?.id === 'project'")


def test_a_project_that_nobody_knows_is_named_and_not_taken_for_another(page, viewer, watch):
    watch.expects("404")
    visit(page, f"{viewer.origin}/timeline?project=nope")
    page.wait_for_selector("#project", state="attached")
    assert page.locator("#project option:checked").text_content() == "nope (not known)"
    visit(page, f"{viewer.origin}/try?project=nope")
    page.get_by_text("no project is known as 'nope'").wait_for()
    assert page.locator("#project").input_value() == "nope"


def test_everything_but_the_prompt_is_in_the_address_and_comes_back_from_it(shop, viewer):
    shop.locator("#moment").select_option("question")
    moved(shop, 300)
    assert "moment=question" in shop.url
    assert "budget=300" in shop.url
    assert "deadlock" not in shop.url
    shop.reload()
    settled(shop)
    assert shop.locator("#moment").input_value() == "question"
    assert shop.locator("#budget").input_value() == "300"
    assert shop.locator("#prompt").input_value() == ""
    assert shop.evaluate("JSON.stringify([localStorage, sessionStorage])").find("deadlock") < 0


def test_a_prompt_lasts_while_other_pages_are_looked_at(shop):
    shop.click("nav >> text=Memories")
    settled(shop)
    shop.click("nav >> text=Try it")
    shop.wait_for_selector(".tried")
    assert shop.locator("#prompt").input_value() == PROMPT


def test_keys_change_the_budget_walk_the_items_and_open_one(shop):
    shop.keyboard.press("Escape")
    shop.keyboard.press("[")
    shop.wait_for_function("() => document.querySelector('.meter-words')?.textContent.includes('of 450 tokens')")
    shop.keyboard.press("]")
    shop.wait_for_function("() => document.querySelector('.meter-words')?.textContent.includes('of 500 tokens')")
    shop.keyboard.press("j")
    shop.keyboard.press("j")
    shop.keyboard.press("k")
    chosen = shop.locator(".tried.chosen")
    assert chosen.count() == 1
    id = chosen.get_attribute("data-memory")
    assert id == shop.evaluate(ROWS)[0][0]
    assert shop.locator(".try-text .pointed").get_attribute("data-memory") == id
    shop.keyboard.press("p")
    assert shop.evaluate("document.activeElement.id") == "prompt"
    shop.keyboard.type(" and why")
    still(shop)  # an answer between two of the next keys would draw the rows anew
    with shop.expect_request(lambda asked: asked.method == "POST" and asked.url.endswith("/api/try")):
        shop.keyboard.press("Control+Enter")
    still(shop)
    shop.keyboard.press("Escape")
    shop.keyboard.press("j")
    shop.keyboard.press("o")
    shop.wait_for_url("**/memories/*")


def test_the_window_of_a_session_a_host_and_a_form_can_be_chosen(viewer, page):
    visit(page, f"{viewer.origin}/try?project=&moment=session_start")
    page.locator("#project").select_option(label="havn")
    page.wait_for_selector(".tried")
    page.get_by_text("Session, agent, form").click()
    page.locator("#host").select_option("opencode")
    page.wait_for_function("() => document.querySelector('.try-text pre')?.textContent.startsWith('<foreword_context')")
    page.locator("#form").select_option("codes")
    page.wait_for_function(
        "() => document.querySelector('.try-text pre')?.textContent.startsWith('--- foreword: havn')"
    )
    page.locator("#session").select_option(viewer.sessions["live"])
    page.wait_for_function(f"() => location.search.includes('session={viewer.sessions['live']}')")
    page.wait_for_function("() => /already|used|left/.test(document.querySelector('.try-result').textContent)")


def test_what_is_refused_is_told_in_its_own_words(viewer, page, watch):
    watch.expects("404")
    visit(page, f"{viewer.origin}/try?session=of-nobody&moment=session_start")
    page.evaluate("""() => { const session = document.getElementById("session");
        session.append(new Option("gone", "of-nobody")); session.value = "of-nobody";
        session.dispatchEvent(new Event("change")); }""")
    page.wait_for_selector(".trouble >> text=there is no session")


def test_a_trial_that_got_no_answer_once_is_made_again_with_what_was_typed(shop, watch):
    watch.expects("ERR_FAILED")
    shop.route("**/api/try", lambda asked: asked.abort(), times=1)
    shop.locator("#prompt").fill("which rows does the outbox lock?")
    trouble = shop.locator(".trouble", has_text="The viewer does not answer.")
    trouble.wait_for()
    trouble.wait_for(state="detached")
    shop.wait_for_selector(".tried")
    assert shop.locator("#prompt").input_value() == "which rows does the outbox lock?"


def test_choices_that_got_no_answer_once_are_had_without_losing_what_was_typed(viewer, page, watch):
    watch.expects("ERR_FAILED")
    page.route("**/api/try?project=*", lambda asked: asked.abort(), times=1)
    visit(page, f"{viewer.origin}/try")
    page.locator("#prompt").fill(PROMPT)
    page.wait_for_selector("#moment option", state="attached")
    page.locator(".try-note", has_text="Looked for").wait_for()
    assert page.locator("#prompt").input_value() == PROMPT
    assert page.locator(".trouble").count() == 0


def test_of_two_projects_that_are_chosen_in_a_row_the_latter_is_offered(viewer, page):
    """However late the former's choices come; and what an address asked for is asked for once."""
    visit(page, f"{viewer.origin}/try?session={viewer.sessions['codex']}&host=codex&moment=session_start")
    names = ("shop", "havn", "tern")
    keys = {name: page.locator("#project option", has_text=name).get_attribute("value") for name in names}
    held = []
    page.route(lambda url: f"project={quote_plus(keys['havn'])}" in url, lambda asked: held.insert(0, asked))
    page.locator("#project").select_option(label="havn")
    page.wait_for_function("() => document.getElementById('session').value === ''")
    page.locator("#project").select_option(label="tern")
    page.wait_for_function("key => new URLSearchParams(location.search).get('project') === key", arg=keys["tern"])
    for each in held:
        with suppress(playwright.Error):  # nobody waits for it any more
            each.continue_()
    with page.expect_response(lambda told: told.request.method == "POST"):
        page.locator("#host").evaluate("node => (node.value = '', node.dispatchEvent(new Event('change')))")
    assert page.locator("#session option").count() == 1  # nobody has worked in it
    page.locator("#project").select_option(label="shop")
    page.locator(f"#session option[value='{viewer.sessions['codex']}']").wait_for(state="attached")
    assert (page.locator("#session").input_value(), page.locator("#host").input_value()) == ("", "")


def test_choices_that_are_refused_are_told(viewer, page, watch):
    watch.expects("503")
    visit(page, f"{viewer.origin}/try")
    said = '{"error": "the database is locked", "hint": "wait"}'
    page.route("**/api/try?project=*", lambda asked: asked.fulfill(status=503, body=said))
    page.locator("#project").select_option(label="tern")
    page.locator(".trouble", has_text="The database is locked").wait_for()
