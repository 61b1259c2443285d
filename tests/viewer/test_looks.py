"""Look at every page at desktop and phone width, light and dark, with axe-core and by the keyboard alone."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from foreword.problems import Problem, note
from foreword.viewer import app
from tests.viewer.conftest import ALL_LOOKS, ARTEFACTS, Viewer, every_look, go, settled, still, visit
from tests.viewer.steps import ROW, keep, memory, open_list, shows, toast, until, until_rows

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

DESKTOP, PHONE = ALL_LOOKS[0], ALL_LOOKS[-1]
both_widths = pytest.mark.parametrize("look", [DESKTOP, PHONE], indirect=True, ids=str)
# What stands behind a page's path: a thing of the filled memory.
THINGS = {
    "/now/": lambda viewer: viewer.sessions["ended"],
    "/timeline/": lambda viewer: viewer.sessions["ended"],
    "/memories/": lambda viewer: viewer.ids["pinned"],
}
PAGES = [*(path for path in app.PAGES if path != "/"), "/memories?view=waiting"]  # / is /now
LEADS = {"g n": "/now", "g t": "/timeline", "g m": "/memories", "g y": "/try", "g h": "/health"}


def address(viewer: Viewer, path: str) -> str:
    more = "?trigger=session_start" if path == "/try" else ""  # else it has nothing to show
    return f"{viewer.origin}{path}{THINGS[path](viewer) if path in THINGS else ''}{more}"


def name_of(path: str) -> str:
    return path.strip("/").replace("?view=", "-") + ("-one" if path in THINGS else "")


# A project, a session or a host may be called whatever somebody likes.
LONG_NAMES = "document.querySelectorAll('main select').forEach(each => each.append(new Option('x-'.repeat(90))))"
WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
    .filter((node) => node.getBoundingClientRect().right > innerWidth + 1)
    .map((node) => `${node.tagName}.${node.className} ${Math.round(node.getBoundingClientRect().right)}`)"""


@every_look
def test_every_page_is_drawn_whole_and_nothing_scrolls_sideways(page, viewer, look, shot):
    titles = set()
    for path in PAGES:
        visit(page, address(viewer, path))
        still(page)
        assert page.locator(".trouble").count() == 0, path
        assert page.locator("main h1").count() == 1, path
        assert page.locator("header nav a[aria-current=page]").count() == 1, path
        titles.add(page.title())
        shot(page, name_of(path))
        page.evaluate(LONG_NAMES)
        assert page.evaluate(WIDE) == [], f"{path} is wider than the window"
    assert len(titles) == len(PAGES) - 1, "a tab is called as what it shows; two are lists of memories"


# -- axe-core --------------------------------------------------------------------------------------------------------

# Colours differ between the two schemes of a page, everything else that a rule can see is the same in both.
COLOURS = ["color-contrast", "link-in-text-block"]
RUN = """([within, rules]) => axe.run(within ? document.querySelector(within) : document,
        { preload: false, iframes: false, resultTypes: ["violations"], ...(rules ? { runOnly: rules } : {}) })
    .then((told) => told.violations.map((each) => ({ id: each.id, impact: each.impact, help: each.help,
        nodes: each.nodes.slice(0, 5).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary.slice(0, 200)}`)
    })))"""
MORE = {
    "superseded": lambda viewer: f"/memories/{viewer.ids['superseded']}",
    "note": lambda viewer: f"/memories/{viewer.ids['note']}",
    "goal": lambda viewer: f"/memories/{viewer.ids['goal']}",
    "found": lambda _: "/memories?q=checkout",
    "nothing found": lambda _: "/memories?q=zzzz",
    "codex": lambda viewer: f"/now/{viewer.sessions['codex']}",
    "live": lambda viewer: f"/timeline/{viewer.sessions['live']}",
    "unasked": lambda _: "/try",
    "no page": lambda _: "/nothing",
    "no memory": lambda _: "/memories/dec-00000000",
}


@pytest.fixture
def grave(axe: str) -> Any:
    """What axe finds serious or critical in both themes; the rest is written to artefacts/viewer/axe.txt."""
    lesser: list[str] = []

    def found(page: Any, what: str, *, within: str = "") -> list[str]:
        answer = []
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            if not page.evaluate("() => 'axe' in window"):
                # Through the debugger: the page's policy lets no text become a script, as it should.
                session = page.context.new_cdp_session(page)
                session.send("Runtime.evaluate", {"expression": f"{axe}; void 0"})
                session.detach()
            for each in page.evaluate(RUN, [within, COLOURS if scheme == "dark" else None]):
                line = f"{what} {scheme}: {each['impact']} {each['id']}: {each['help']}: {each['nodes']}"
                (answer if each["impact"] in ("serious", "critical") else lesser).append(line)
        return answer

    yield found
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    with open(ARTEFACTS / "axe.txt", "a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lesser)


@both_widths
def test_no_page_keeps_anybody_out(page, viewer, look, watch, grave):
    watch.expects("404")
    found = []
    for path in PAGES:
        visit(page, address(viewer, path))
        still(page)
        found += grave(page, f"{path} {look.place}")
    for name, path in MORE.items() if look is DESKTOP else ():
        visit(page, f"{viewer.origin}{path(viewer)}")
        still(page)
        page.evaluate("() => document.querySelectorAll('main details').forEach((node) => (node.open = true))")
        still(page)
        found += grave(page, name)
    assert found == []


def test_no_form_dialog_toast_or_receipt_keeps_anybody_out(page, viewer, grave):
    found: list[str] = []
    form, dialog = "main form:not([role=search])", "dialog[open]"

    def look(what: str, within: str) -> None:
        page.locator(within).first.wait_for()
        still(page)
        found.extend(grave(page, what, within=within))

    id, *_ = keep(viewer, "gaff", 3, kind="note")
    visit(page, f"{viewer.origin}/memories/{id}")
    page.locator("[data-do=edit]").click()
    look("edit", form)
    page.get_by_role("form", name="Edit").get_by_label("Title").fill("gaff of ash")
    page.keyboard.press("Escape")
    look("discard your changes", dialog)
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    page.keyboard.press("Control+Enter")
    page.locator("[data-do=pin]").click()
    look("a toast", ".toast")
    page.locator("[data-do=forget]").click()
    look("forget", dialog)
    page.locator("dialog[open] button.danger").click()
    look("a receipt", ".mem-receipt")
    page.locator("#help").click()
    look("keys", dialog)
    assert found == []


def test_a_viewer_in_trouble_or_closed_keeps_nobody_out(fresh_page, fresh, watch, grave):
    watch.expects_it_gone()
    for at, what in enumerate(("the store is locked", "a hook ended with 1")):
        note(str(fresh.home.trouble), Problem(time.time() + at, where="hook", what=what))
    with fresh_page.expect_response("**/api/changes"):  # a page that does not listen yet cannot be told why
        visit(fresh_page, f"{fresh.origin}/health")
    fresh_page.get_by_text("the store is locked").first.wait_for()
    still(fresh_page)
    found = grave(fresh_page, "health with troubles")
    fresh.close("its command ended")
    fresh_page.locator("#closed", has_text="its command ended").wait_for()
    assert [*found, *grave(fresh_page, "closed")] == []


# -- the keyboard alone ----------------------------------------------------------------------------------------------

# Every control that a reader of this page could want: it is shown, and not switched off. A toast goes by itself.
CONTROLS = """() => {
    window.busy = new Set(); // what loads a list when it comes into sight is switched off meanwhile
    new MutationObserver((all) => all.forEach((each) => window.busy.add(each.target)))
        .observe(document, { subtree: true, attributeFilter: ["disabled"] });
    window.controls = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
        .filter((node) => node.tabIndex >= 0 && !node.disabled && node.getClientRects().length
            && node.checkVisibility({ visibilityProperty: true }) && !node.closest("[inert], #toasts")
            && !(node.type === "radio" && !node.checked && document.querySelector(`[name="${node.name}"]:checked`)));
    return window.controls.length; }"""
AT = """() => { const node = document.activeElement, style = getComputedStyle(node);
    const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
    return [window.controls.indexOf(node), node.outerHTML.slice(0, 200), outlined || style.boxShadow !== "none"]; }"""
MISSED = """(seen) => window.controls
    .filter((node, at) => !seen.includes(at) && node.checkVisibility() && !window.busy.has(node))
    .map((node) => node.outerHTML.slice(0, 200))"""


@both_widths
def test_tab_reaches_every_control_in_order_and_shows_where_it_is(page, viewer, look):
    for path in PAGES if look is DESKTOP else ("/memories", "/memories/"):  # where the widths have two shapes
        visit(page, address(viewer, path))
        still(page)
        count = page.evaluate(CONTROLS)
        assert count > 5
        seen, unseen = [], []
        for _ in range(count + 300):  # once around, from wherever a page put the focus; a list may load more meanwhile
            page.keyboard.press("Tab")
            at, html, shown = page.evaluate(AT)
            if at in seen:
                break
            if at >= 0:
                seen.append(at)
                unseen += [] if shown else [html]
        assert page.evaluate(MISSED, seen) == [], f"no Tab leads there on {path}"
        first = seen.index(min(seen))
        assert [*seen[first:], *seen[:first]] == sorted(seen), f"not in the order in which {path} is read"
        assert unseen == [], f"nothing tells that these have the focus on {path}"


# Pressed in the page, one right behind the other: a page waits for the second of two keys no longer than a moment.
PRESS = """(all) => all.forEach((given) => document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", { bubbles: true, cancelable: true, ...given })))"""


def test_keys_lead_to_every_page_and_are_listed_on_each(page, viewer):
    visit(page, f"{viewer.origin}/health")
    for keys, there in LEADS.items():
        page.locator("main").focus()
        page.evaluate(PRESS, [{"key": key} for key in keys.split(" ")])
        page.wait_for_url(lambda url, there=there: urlsplit(url).path == there)
        settled(page)
        page.locator("#help").click()
        labels = page.locator("dialog .keys td").all_text_contents()
        assert len(labels) == len(set(labels)) > len(LEADS)
        page.keyboard.press("Escape")
        page.locator("dialog").wait_for(state="detached")


def test_the_first_tab_offers_the_way_past_the_frame(page, viewer):
    visit(page, f"{viewer.origin}/timeline")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Skip to the page"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.getElementById('main').contains(document.activeElement)")


def test_theme_and_single_letter_keys_are_chosen_for_good(page, viewer):
    visit(page, f"{viewer.origin}/now")
    ground = "() => getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    theme = page.get_by_role("button", name="Theme")
    theme.click()
    theme.click()
    dark = page.evaluate(ground)
    assert (theme.inner_text(), dark != light) == ("Theme: dark", True)
    page.keyboard.press("?")
    page.get_by_label("Single-letter shortcuts").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    settled(page)
    assert page.evaluate(ground) == dark
    page.evaluate(PRESS, [{"key": key} for key in "gh/"])
    still(page)
    assert page.url == f"{viewer.origin}/now"
    # The next viewer has another port, and knows them too: cookies know none.
    kept = {each["name"]: each for each in page.context.cookies("http://127.0.0.1:1")}
    assert (kept["foreword-keys"]["value"], kept["foreword-theme"]["value"]) == ("off", "dark")
    assert min(each["expires"] for each in kept.values() if each["expires"] > 0) > time.time() + 300 * 86_400


NAME = """() => { const node = document.activeElement;
    return (node.getAttribute("aria-label") || node.labels?.[0]?.textContent || node.textContent || "").trim(); }"""


def tab_to(page: Any, words: str) -> None:
    """Press Tab until what has the focus is called so, as somebody does who listens."""
    for _ in range(60):
        if str(page.evaluate(NAME)).startswith(words):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no Tab leads to {words!r}")


def test_memories_are_found_promoted_and_forgotten_by_keys_alone(page, viewer):
    keep(viewer, "oakum", 1)
    (other,) = keep(viewer, "ratline", 1, kind="note")

    def opened(word: str) -> None:
        go(page, "/now")
        page.keyboard.press("/")  # leads to Memories, and there into the box
        until(page, "document.activeElement.id === 'mem-q'")
        page.keyboard.type(word)
        until_rows(page, 1)
        still(page)
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        shows(page, f"{word} 0")
        still(page)

    visit(page, f"{viewer.origin}/now")
    opened("ratline")
    tab_to(page, "What the note becomes")
    page.keyboard.type("lear")  # as a choice is made by its first letters
    tab_to(page, "Promote")
    page.keyboard.press("Enter")
    toast(page, "it is a learning now")
    page.keyboard.press("u")
    toast(page, "Undone")
    assert memory(viewer, other)["status"] == "active"
    opened("oakum")
    tab_to(page, "Forget")
    page.keyboard.press("Enter")
    page.locator("dialog[open]").wait_for()
    page.keyboard.type("rotten")  # the box for the reason has the focus
    tab_to(page, "Forget for good")
    page.keyboard.press("Enter")
    page.locator(".mem-receipt", has_text="none left").wait_for()
    assert page.evaluate("() => document.activeElement.matches('.mem-receipt')"), "what was done is read first"
    page.keyboard.press("Escape")
    page.locator(ROW, has_text="oakum 0").wait_for(state="detached")


# -- other scripts ---------------------------------------------------------------------------------------------------

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


@both_widths
def test_words_that_run_from_right_to_left_do_so_wherever_they_stand(page, viewer, look, shot):
    tag = f"قرار {look} (MySQL)"
    keep(viewer, f"{RIGHT_TO_LEFT} {look}", 1, body=f"{RIGHT_TO_LEFT} " * 8, tags=[tag])
    open_list(page, viewer, f"?tag={quote(tag)}&q=UTC")
    until_rows(page, 1)
    if look.place == "phone":
        page.locator("details.mem-facets > summary").click()
    page.locator("[data-facet=tag]").wait_for(state="attached")
    shot(page, "memories-right-to-left")

    def runs(*places: str) -> None:
        for place in places:
            stand = page.locator(place, has_text="قرار").first.evaluate(STAND)
            assert stand["last"] < stand["first"], place
            assert stand["within"], f"{place} begins out of sight"

    runs(".row-title", ".row-excerpt", ".mem-chosen bdi", "[data-facet=tag] .mem-value")
    page.locator(ROW).click()
    shows(page, RIGHT_TO_LEFT)
    runs("#mem-title", ".mem-body", ".mem-named .mem-chip")
    page.locator("[data-do=edit]").click()
    form = page.get_by_role("form", name="Edit")
    for name, direction in {"title": "rtl", "body": "rtl", "tags": "rtl", "files": "ltr"}.items():
        assert form.locator(f"[name={name}]").evaluate("node => getComputedStyle(node).direction") == direction
