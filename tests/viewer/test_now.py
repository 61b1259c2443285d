"""The page "Now" in a real browser: it changes by itself when a real hook speaks, and leaves its reader in peace."""

from __future__ import annotations

from typing import Any

from foreword.web.now import MOST, TEXTS
from tests.flow.conftest import Host
from tests.viewer.conftest import Viewer, every_look, settled, visit
from tests.viewer.filled import LIVE_PROMPTS

FIRST, SECOND = LIVE_PROMPTS
NEXT = "Where does the met office time out, and which test shows it?"
CARDS = ".moment"
AT_TOP = "document.querySelector('.moment.chosen').getBoundingClientRect().top"


def asks(viewer: Viewer, prompt: str, *, session: str = "", project: str = "havn") -> str:
    """A real hook tells a prompt of the live session, or of another."""
    told = {"session_id": session or viewer.sessions["live"], "cwd": viewer.projects[project], "prompt": prompt}
    return Host(viewer.home).context("UserPromptSubmit", told)


def prompts(page: Any) -> list[str]:
    return page.locator(f"{CARDS} q").all_text_contents()


def pressed(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


@every_look
def test_the_live_session_is_shown_as_its_agent_saw_it(page, viewer, look, shot):
    visit(page, f"{viewer.origin}/now")
    page.wait_for_selector(CARDS)
    assert prompts(page) == [SECOND, FIRST]
    assert page.locator(".pulse").text_content() == "live"
    newest = page.locator(CARDS).first
    given = viewer.client.get("/api/injections", session_id=viewer.sessions["live"], limit=1, text=1)["injections"][0]
    assert newest.locator("details.text pre").text_content() == given["text"]
    assert newest.locator(".item").count() == len(given["items"])
    assert newest.locator(".item").first.locator(".factors li").count() == len(given["items"][0]["why"])
    assert page.evaluate("document.documentElement.scrollWidth") <= look.width
    shot(page, "now")


def test_what_a_hook_says_appears_by_itself_and_is_announced(fresh_page, fresh):
    page = fresh_page
    visit(page, f"{fresh.origin}/now")
    page.wait_for_selector(CARDS)
    asks(fresh, NEXT)
    page.wait_for_function("text => document.querySelector('.moment q')?.textContent === text", arg=NEXT)
    assert prompts(page) == [NEXT, SECOND, FIRST]
    assert page.locator(CARDS).first.locator(".chip.good").text_content() == "new"
    page.locator("#said", has_text="New: for a prompt Where does the met office").wait_for(state="attached")


def test_what_a_score_is_stays_said_when_something_becomes_of_an_item(fresh_page, fresh):
    page = fresh_page
    visit(page, f"{fresh.origin}/now")
    told = page.locator(CARDS, has_text="A score is the product of its factors")
    assert told.count() == 1
    id = told.locator(".item").first.get_attribute("data-memory")
    fresh.client.post("/api/supersede", {"old": id, "title": "something else by now"})
    told.get_by_text("It has since been superseded.").wait_for()  # its card was drawn anew
    assert told.count() == 1


def test_whoever_reads_keeps_place_focus_and_folds_when_something_new_comes(fresh_page, fresh):
    page = fresh_page
    page.set_viewport_size({"width": 1280, "height": 500})
    visit(page, f"{fresh.origin}/now")
    page.wait_for_selector(CARDS)
    pressed(page, "j", "j", "j", "o")  # down to the start of the session, and its text
    chosen = page.locator(f"{CARDS}.chosen")
    assert "At session start" in chosen.locator("h2").text_content()
    assert chosen.locator("details.text").get_attribute("open") is not None
    page.evaluate("document.querySelector('.moment.chosen details.text pre').focus()")
    page.evaluate("document.querySelector('.moment.chosen').scrollIntoView({block: 'start'})")
    before = page.evaluate(AT_TOP)
    asks(fresh, NEXT)
    page.wait_for_function("text => document.querySelector('.moment q')?.textContent === text", arg=NEXT)
    assert abs(page.evaluate(AT_TOP) - before) <= 1
    assert page.evaluate("document.activeElement.matches('.moment.chosen details.text pre')")
    assert chosen.locator("details.text").get_attribute("open") is not None
    page.locator(".now-above", has_text="1 new moment").click()
    page.locator(".now-above").wait_for(state="hidden")
    assert page.locator(f"{CARDS}.chosen q").text_content() == NEXT


def test_a_prompt_without_an_answer_is_told_as_silence(fresh_page, fresh):
    page = fresh_page
    visit(page, f"{fresh.origin}/now")
    page.wait_for_selector(CARDS)
    assert asks(fresh, "Translate Ozymandias into Esperanto verses please") == ""
    silent = page.locator(CARDS, has_text="Nothing was said: nothing")  # at first it is being looked for
    silent.wait_for()
    assert asks(fresh, "ok, and now?") == ""
    page.locator(CARDS, has_text="Nothing was said: it names no topic").wait_for()
    assert asks(fresh, "Start the Esperanto course") == ""
    near = page.locator(CARDS, has_text="Start the Esperanto course")
    near.get_by_text("nothing fits well enough").wait_for()
    told = fresh.client.get("/api/silences", session_id=fresh.sessions["live"], limit=1)["silences"][0]
    said = f"Nearest: {told['title']} {told['score']:.3f}, needed {told['needed']:.3f}"
    assert said in near.text_content()
    pressed(page, "j", "t")
    page.wait_for_url(f"{fresh.origin}/try?*")
    page.wait_for_function("() => document.querySelector('textarea')?.value === 'Start the Esperanto course'")
    page.get_by_text("Nothing would be said").first.wait_for()


def test_keys_lead_through_moments_sessions_and_memories(page, viewer):
    visit(page, f"{viewer.origin}/now")
    page.wait_for_selector(CARDS)
    pressed(page, "j", "j")
    assert page.evaluate("document.activeElement.querySelector('q').textContent") == FIRST
    pressed(page, "k", "Enter")
    newest = page.locator(f"{CARDS}.chosen details.text")
    assert newest.get_attribute("open") is None  # it was open, as the newest is
    pressed(page, "o")
    assert newest.get_attribute("open") is not None
    pressed(page, "]")
    page.wait_for_url(f"{viewer.origin}/now/*")
    settled(page)  # the address is the next page's before its keys are
    page.wait_for_selector(".now-head h1")
    pressed(page, "[")
    page.wait_for_url(f"{viewer.origin}/now/{viewer.sessions['live']}")
    settled(page)
    page.wait_for_selector(CARDS)
    pressed(page, "j", "m")
    page.wait_for_url(f"{viewer.origin}/memories/*")
    page.go_back()
    page.wait_for_function("() => document.activeElement.matches('.moment.chosen')")
    page.locator(".now-switch select").focus()
    pressed(page, "ArrowDown")
    page.wait_for_url(f"{viewer.origin}/now/{viewer.sessions['codex']}")
    page.wait_for_function("() => document.activeElement.matches('.now-switch select')")


def test_a_past_session_is_shown_in_the_same_way(page, viewer):
    visit(page, f"{viewer.origin}/now/{viewer.sessions['codex']}")
    page.wait_for_selector(".now-head h1")
    assert "codex" in page.locator(".now-head .figures").text_content()
    assert page.locator(".now-switch option:checked").text_content().startswith("shop · ")
    page.get_by_text("the session that goes on").click()
    page.wait_for_url(f"{viewer.origin}/now")


def test_a_session_that_is_not_there_is_told(page, viewer, watch):
    watch.expects("404")
    visit(page, f"{viewer.origin}/now/nobody")
    assert "no session" in page.get_by_role("alert").filter(has_text="session").text_content()


def test_another_session_that_goes_on_does_not_take_the_place_of_the_one_that_is_read(fresh_page, fresh):
    page = fresh_page
    visit(page, f"{fresh.origin}/now")
    page.wait_for_selector(CARDS)
    asks(fresh, NEXT)  # it goes on
    page.wait_for_function("text => document.querySelector('.moment q')?.textContent === text", arg=NEXT)
    asks(fresh, "Count the guests of the shop again", session="other", project="shop")
    page.get_by_text("Another session goes on: shop, Count the guests").wait_for()
    assert prompts(page)[0] == NEXT
    page.get_by_role("button", name="Follow it").click()
    page.wait_for_function("() => document.querySelector('.now-head h1').textContent.startsWith('Count the guests')")
    assert page.locator("#session").input_value() == "other"


def test_older_moments_and_their_texts_come_when_asked_for(fresh_page, fresh):
    page = fresh_page
    asked = {"project_path": fresh.projects["havn"], "session_id": "long", "moment": "compaction"}
    for number in range(TEXTS + 3):
        fresh.client.get("/api/context", **asked, prompt="bookings", budget=900 + number)
    visit(page, f"{fresh.origin}/now/long")
    page.wait_for_selector(CARDS)
    assert page.locator(CARDS).count() == TEXTS
    page.get_by_role("button", name="Show older moments").click()
    page.wait_for_function(f"() => document.querySelectorAll('.moment').length === {TEXTS + 3}")
    oldest = page.locator(CARDS).last
    oldest.locator("details.text summary").click()
    page.wait_for_function("() => [...document.querySelectorAll('.moment')].at(-1).querySelector('pre').textContent")
    assert page.get_by_role("button", name="Show older moments").count() == 0


def test_before_anything_happened_it_says_what_to_do_first_and_goes_on_by_itself(unused):
    page, viewer = unused
    visit(page, f"{viewer.origin}/now")
    page.get_by_text("foreword install claude-code").wait_for()
    asks(viewer, "Draw the owl", session="first", project="new")
    page.wait_for_selector(CARDS)
    assert prompts(page) == ["Draw the owl"]


def test_a_long_prompt_is_tried_as_a_whole_and_in_its_session_however_long_ago(my_page, mine):
    page, session = my_page, "long-ago"
    whole = f"{'Count the herons at the pier once more, please. ' * 30}And the gulls?"
    asks(mine, whole, session=session)
    for number in range(21):  # more than the choices name
        asks(mine, "Count the guests", session=f"after-{number}")
    visit(page, f"{mine.origin}/now/{session}")
    page.wait_for_selector(CARDS)
    shown = prompts(page)[0]
    assert shown.endswith("…")
    assert len(shown) < len(whole)
    pressed(page, "j", "t")
    page.wait_for_url(f"{mine.origin}/try?*")
    page.wait_for_function("text => document.querySelector('textarea')?.value === text", arg=whole)
    page.wait_for_function("id => document.getElementById('session')?.value === id", arg=session)


def test_a_text_that_was_not_had_says_so_in_its_place_and_comes_when_it_can(my_page, mine, watch):
    page = my_page
    watch.expects("503")
    asked = {"project_path": mine.projects["havn"], "session_id": "texts", "moment": "compaction"}
    for number in range(TEXTS + 2):
        mine.client.get("/api/context", **asked, prompt="bookings", budget=900 + number)
    visit(page, f"{mine.origin}/now/texts")
    page.wait_for_selector(CARDS)
    older, said = page.get_by_role("button", name="Show older moments"), {"error": "the database is locked", "hint": ""}
    page.route("**/api/now?*", lambda asked: asked.fulfill(status=503, json=said))
    older.click()
    page.locator(".trouble", has_text="The database is locked").wait_for()
    page.unroute("**/api/now?*")
    older.click()
    page.wait_for_function(f"() => document.querySelectorAll('.moment').length === {TEXTS + 2}")
    assert page.locator(".trouble").count() == 0
    page.route("**/api/injections/*", lambda asked: asked.fulfill(status=503, json=said))
    text = page.locator(CARDS).last.locator("details.text")
    text.locator("summary").click()
    text.locator(".trouble", has_text="The database is locked").wait_for()
    assert text.locator("pre").is_hidden()
    page.unroute("**/api/injections/*")
    text.locator("summary").click()
    text.locator("summary").click()
    text.locator("pre").wait_for()
    assert text.locator("pre").text_content()
    assert text.locator(".trouble").count() == 0


def test_where_no_more_moments_are_shown_the_page_says_so(page, viewer):
    """As of a session with more than 500: there is always one more."""
    address = f"{viewer.origin}/now/{viewer.sessions['live']}"
    with page.expect_response("**/api/now?*") as first:
        visit(page, address)
    told = {**first.value.json(), "more": True}
    page.route("**/api/now?*", lambda asked: asked.fulfill(json=told))
    visit(page, address)
    older = page.get_by_role("button", name="Show older moments")
    for _ in range(MOST // TEXTS - 1):
        with page.expect_response("**/api/now?*"):
            older.click()
    page.get_by_text(f"These are the newest {MOST} moments").wait_for()
    assert older.count() == 0


# Each factor of a page: its figure, and how far its bar reaches from the middle, to the left below 0.
BARS = """() => [...document.querySelectorAll(".factors li")].filter((each) => each.checkVisibility()).map((each) => {
    const whole = each.querySelector(".bar-of").getBoundingClientRect(), bar = each.querySelector(".bar-of > span");
    const { left, right } = bar?.getBoundingClientRect() ?? { left: 0, right: 0 };
    const middle = whole.left + whole.width / 2, half = whole.width / 2;
    const reach = !bar ? 0 : left < middle - 1 ? (left - middle) / half : (right - middle) / half;
    return [Number(each.querySelector(".figure").textContent), reach]; })"""


def test_a_factor_that_lowers_the_score_reaches_to_the_left_and_one_that_raises_it_to_the_right(page, viewer):
    visit(page, f"{viewer.origin}/now")
    page.wait_for_selector(".factors")
    page.get_by_text("a bar to the left of the middle lowers it").first.wait_for()
    bars = page.evaluate(BARS)
    assert {figure < 1 for figure, _ in bars} == {True, False}
    for figure, reach in bars:
        assert abs(reach - min(1, figure - 1)) < 0.05
