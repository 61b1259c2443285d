"""The Health page in a real browser: one sentence, plots that are seen, walked and read, and a broken store."""

from __future__ import annotations

import re
from datetime import date

import pytest

from foreword.config.editing import change
from tests import endpoint
from tests.flow.conftest import wait_for
from tests.talking import data
from tests.viewer.conftest import every_look, visit

expect = pytest.importorskip("playwright.sync_api").expect
PLOTS = ("Tokens given a day", "What became of items", "Time to build a context", "Size of the store", "Memories")


def plot(page, title):
    return page.locator("figure", has=page.get_by_role("heading", name=title, exact=True))


@every_look
def test_everything_is_told_and_nothing_scrolls_sideways(page, viewer, look, shot):
    visit(page, f"{viewer.origin}/health")
    expect(page.locator(".verdict-line")).to_contain_text("All is well: 2 agents heard this week")
    for heading in ("Agents", "Went wrong", "Worker", "Store", "What was given", "Model", "Settings"):
        expect(page.get_by_role("region", name=heading, exact=True)).to_be_visible()
    hosts = page.get_by_role("region", name="Agents")
    expect(hosts.get_by_role("heading", name="codex")).to_be_visible()
    expect(hosts).to_contain_text("last event")
    expect(page.get_by_role("region", name="Model")).to_contain_text("nothing is sent anywhere")
    for title in PLOTS:
        expect(plot(page, title).get_by_role("img")).to_have_accessible_name(re.compile(rf"^{title}\. .+\."))
    assert page.evaluate("document.documentElement.scrollWidth") <= look.width
    shot(page, "health", whole=True)


def test_days_and_project_are_in_the_address_and_the_way_back_leads_back(page, viewer):
    visit(page, f"{viewer.origin}/health?days=7")
    plot(page, "Tokens given a day").get_by_text("as a table").click()
    rows = plot(page, "Tokens given a day").locator("tbody tr")
    expect(rows).to_have_count(7)
    page.get_by_role("button", name="90 days").click()
    expect(rows).to_have_count(90)
    assert page.url == f"{viewer.origin}/health?days=90"
    page.get_by_label("Project").select_option(label="tern")
    expect(plot(page, "Tokens given a day")).to_contain_text("Nothing in these days.")
    assert "project=" in page.url
    page.go_back()
    page.go_back()
    plot(page, "Tokens given a day").get_by_text("as a table").click()
    expect(rows).to_have_count(7)
    page.keyboard.press("3")
    expect(rows).to_have_count(30)


OF_ALL = re.compile(r"^[\d,]+ items: [\d,]+ used, [\d,]+ not used, [\d,]+ not judged\.$")
# Whether the line below a plot says what the last row of its table does: the worker may still be judging.
TODAY = """(plot) => {
    const cells = [...plot.querySelectorAll("tbody tr:last-child td")];
    const [used, ignored, unjudged] = cells.map((each) => each.textContent);
    const says = `: ${used} used, ${ignored} not used, ${unjudged} not judged`;
    return plot.querySelector(".plot-told").textContent.endsWith(says);
}"""


def test_a_plot_is_walked_by_keys_and_says_what_its_table_says(page, viewer):
    visit(page, f"{viewer.origin}/health?days=30")
    this = plot(page, "What became of items")
    area, told = this.get_by_role("group", name="day by day"), this.locator(".plot-told")
    expect(told).to_have_text(OF_ALL)
    this.get_by_text("as a table").click()
    expect(this.locator("tbody tr")).to_have_count(30)
    area.focus()
    page.keyboard.press("ArrowLeft")  # from nowhere to today
    page.wait_for_function(TODAY, arg=this.element_handle())
    page.keyboard.press("Home")
    expect(told).to_have_text(re.compile(": 0 used, 0 not used, 0 not judged$"))
    page.keyboard.press("End")
    page.keyboard.press("7")  # fewer days, and still the last one
    expect(this.locator("tbody tr")).to_have_count(7)
    page.wait_for_function(TODAY, arg=this.element_handle())
    page.keyboard.press("3")
    page.keyboard.press("Escape")
    expect(told).to_have_text(OF_ALL)
    assert date.fromisoformat(this.locator("tbody th").last.inner_text()) >= date(2026, 1, 1)


def test_a_pointer_over_a_day_tells_its_figures(page, viewer):
    visit(page, f"{viewer.origin}/health?days=7")
    this = plot(page, "Memories")
    image = this.get_by_role("img")
    image.scroll_into_view_if_needed()
    box = image.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + box["height"] / 2)
    expect(this.locator(".plot-told")).to_have_text(re.compile(r": [\d,]+ memories$"))
    page.mouse.move(2, 2)
    expect(this.locator(".plot-told")).to_have_text(re.compile("of the last 7 days"))


def test_the_ledger_of_a_model_is_a_table_while_one_is_on(fresh_page, fresh, shot):
    with endpoint.listening() as server:
        server.answer = data({"word": "walrus"}, usage=(30, 10))
        for name, text in {"name": "m-1", "url": server.url, "provider": "openai"}.items():
            change(fresh.home, f"model_{name}", text)
        wait_for(lambda: fresh.client.post("/api/model", {})["ok"])
    visit(fresh_page, f"{fresh.origin}/health")
    model = fresh_page.get_by_role("region", name="Model", exact=True)
    expect(model).to_contain_text("40 of 50,000 tokens in the last 24 hours")
    expect(model.get_by_role("row").last).to_contain_text("✓ ok")
    expect(fresh_page.get_by_role("region", name="Settings", exact=True)).to_contain_text("model_url")
    shot(fresh_page, "health-model", whole=True)


def test_a_commit_is_seen_without_loading_again(fresh_page, fresh):
    page = fresh_page
    visit(page, f"{fresh.origin}/health")
    before = page.locator(".verdict-line").inner_text()
    told = {"kind": "note", "title": "seen on the page", "project_path": fresh.projects["tern"]}
    fresh.client.post("/api/memories", told)
    expect(page.locator(".verdict-line")).not_to_have_text(before)
    assert page.evaluate("performance.getEntriesByType('navigation').length") == 1


def test_a_broken_store_is_told_with_the_way_out(fresh_page, fresh, watch, shot):
    watch.expects("503")
    fresh.home.database.unlink()
    fresh.home.database.write_bytes(b"this is no database, and never was one. " * 200)
    page = fresh_page
    page.goto(f"{fresh.origin}/health")
    for _ in range(40):  # the worker looks every second
        if "Not all is well" in page.locator(".verdict-line").inner_text():
            break
        page.wait_for_timeout(250)
        page.reload()
    expect(page.locator(".verdict-line")).to_contain_text("Not all is well: cannot open")
    expect(page.locator(".findings")).to_contain_text("foreword doctor")
    expect(page.get_by_role("region", name="Store", exact=True)).to_contain_text("cannot be read")
    expect(page.get_by_role("region", name="Worker", exact=True)).to_contain_text("version")
    expect(page.get_by_role("region", name="What was given")).to_contain_text("No figures while")
    shot(page, "health-broken", whole=True)


def test_figures_that_got_no_answer_once_are_asked_for_again(page, viewer, watch):
    watch.expects("ERR_FAILED")
    page.route("**/api/health/figures*", lambda request: request.abort(), times=1)
    visit(page, f"{viewer.origin}/health")
    given = page.get_by_role("region", name="What was given")
    expect(given).to_contain_text("does not answer")
    expect(given).not_to_contain_text("does not answer")
    expect(plot(page, "Tokens given a day").get_by_role("img")).to_be_visible()


def test_the_same_figures_are_drawn_again_where_a_trouble_stood_meanwhile(page, viewer, watch):
    watch.expects("ERR_FAILED")
    visit(page, f"{viewer.origin}/health")
    given = page.get_by_role("region", name="What was given")
    expect(given).to_contain_text("tokens given")
    page.route("**/api/health/figures*", lambda request: request.abort(), times=1)
    given.get_by_role("button", name="30 days").click()
    expect(given).to_contain_text("does not answer")
    expect(given).not_to_contain_text("does not answer")
    expect(given).to_contain_text("tokens given")


def test_a_table_that_is_read_keeps_the_focus_when_its_figures_change(my_page, mine):
    page = my_page
    visit(page, f"{mine.origin}/health")
    store = page.get_by_role("region", name="Store", exact=True)
    store.get_by_text("rows by table", exact=True).click()
    table = store.get_by_role("region", name="Rows by table")
    table.focus()
    before = table.inner_text()
    told = {"kind": "note", "title": "counted while one reads", "project_path": mine.projects["tern"]}
    mine.client.post("/api/memories", told)
    expect(table).not_to_have_text(before, use_inner_text=True)
    expect(table).to_be_focused()


def told_of(page, **more):
    """The page, as if the worker told these of itself."""
    with page.expect_response("**/api/health") as first:
        page.goto(f"{page.url.partition('/health')[0]}/health")
    known = first.value.json()
    told = {name: {**known[name], **some} for name, some in more.items()}
    page.route("**/api/health", lambda asked: asked.fulfill(json={**known, **told}))
    visit(page, page.url)


def test_what_waits_is_said_in_good_english_and_more_than_is_counted_has_a_plus(page, viewer):
    visit(page, f"{viewer.origin}/health")
    model = {"on": True, "provider": "openai", "model": "m-1", "where": "", "waiting": 1, "ledger": []}
    told_of(page, worker={"sessions_waiting": 100, "more_sessions_wait": True}, model=model)
    expect(page.get_by_role("region", name="Worker", exact=True)).to_contain_text("100+")
    expect(page.get_by_role("region", name="Model", exact=True)).to_contain_text("1 session waits for it")


@pytest.mark.parametrize(("path", "asked"), [("/health", "**/api/health"), ("/now", "**/api/now*")])
def test_a_slow_page_says_one_thing(page, viewer, path, asked):
    page.route(asked, lambda _: None)  # nobody answers
    page.goto(f"{viewer.origin}{path}")
    page.locator("main[aria-busy] .page").wait_for(state="attached")
    says = """() => new Set([...document.querySelectorAll("main, main *")].flatMap((node) => ["::before", "::after"]
        .map((part) => getComputedStyle(node, part).content).filter((text) => text.includes("…")))).size"""
    page.wait_for_function(f"() => ({says})() === 1")
    page.unroute(asked)
