"""Every page and every action, walked in a real browser and by its keyboard.

What is walked comes from the app itself: its routes, the controls of a page, and the keys that a page lists. So a new
page, button or key is walked without a word here.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from foreword.web import is_page
from foreword.web.routes import routes_of
from foreword.worker import life
from tests.viewer.conftest import LOOKS, every_look, go, playwright, settled, still, visit

pytestmark = pytest.mark.timeout(300)  # a walk has some hundred steps, on a machine that may be busy

ROUTES = routes_of(None, None)  # type: ignore[arg-type] # nothing is asked of them here
WAITING = "/memories?view=waiting"  # of the same route, and another page to whoever reads it
PAGES = [*(path for path in ROUTES if is_page(ROUTES, path) and path != "/"), WAITING]  # / is /now
# What stands behind a page's path: a thing of the filled memory.
THINGS = {
    "/now/": lambda viewer: viewer.sessions["ended"],
    "/timeline/": lambda viewer: viewer.sessions["ended"],
    "/memories/": lambda viewer: viewer.ids["pinned"],
}
# What a page must be asked before it has anything to walk over.
ASKED = {"/try": "?moment=session_start"}  # a prompt never stands in an address
# Where a walk may change what is remembered: it has a worker of its own, all others share one.
CHANGING = ("/memories", "/memories/", WAITING)
DESKTOP, PHONE = LOOKS[0], LOOKS[-1]
# Every page once, and where the two widths have two shapes, at both.
WALKS = [*((path, DESKTOP) for path in PAGES), *((path, PHONE) for path in ("/memories", "/memories/"))]
every_walk = pytest.mark.parametrize(
    ("path", "look"), WALKS, indirect=["look"], ids=[f"{path}-{look}" for path, look in WALKS]
)
# Every control that a reader of this page could want: it is shown, and not switched off. A toast goes by itself.
SORTS = "a[href], button, input, select, textarea, summary, [tabindex]"
CONTROLS = f"""() => [...document.querySelectorAll("{SORTS}")].filter(
    (node) => node.tabIndex >= 0 && !node.disabled && node.getClientRects().length
        && node.checkVisibility({{ visibilityProperty: true }})
        && !node.closest("[inert], #toasts")
        && !(node.type === "radio" && !node.checked && document.querySelector(`[name="${{node.name}}"]:checked`)))"""
NAMED = """(node) => (node.getAttribute("aria-label") || node.labels?.[0]?.textContent || node.textContent || node.title
    || node.placeholder || "").trim().replace(/\\s+/g, " ")"""
# What is there to see and to hear of a page, so that two can be compared; but for times, which pass by themselves.
STATE = """() => { const at = document.activeElement, body = document.body.cloneNode(true);
    body.querySelectorAll("time").forEach((node) => node.remove());
    return [location.href, body.innerHTML, scrollY,
    [...document.querySelectorAll("main *")].reduce((sum, node) => sum + node.scrollTop, 0),
    [...document.querySelectorAll("input, select, textarea")].map((node) => [node.value, node.checked]),
    at ? [...document.querySelectorAll("body *:not(#toasts *)")].indexOf(at) : -1]
        .map((each) => JSON.stringify(each)).join(" ") }"""
# A button that loads the rest of a list does so when it is seen, switched off meanwhile: whether it is still there.
FOCUS = """async (place) => { const node = window.controls[place], until = performance.now() + 10_000;
    do {
        node.focus();
        await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
        while (node.disabled && performance.now() < until) await new Promise((next) => setTimeout(next, 20));
    } while (node !== document.activeElement && node.getClientRects().length && performance.now() < until);
    return node.getClientRects().length > 0; }"""
KEYS = {"↓": "ArrowDown", "↑": "ArrowUp", "←": "ArrowLeft", "→": "ArrowRight", "Esc": "Escape"}
BEFORE = {"t": "x", "u": "p"}  # a key that has nothing to do before another one was pressed
LEADS = {"g n": "/now", "g t": "/timeline", "g m": "/memories", "g y": "/try", "g h": "/health"}  # of every page
PATIENCE = 6.0  # seconds until something must have happened, on a busy machine
MORE = 300  # controls that may come while a list is walked: it loads what is behind its end


def address(viewer: Any, path: str) -> str:
    return f"{viewer.origin}{path}{THINGS[path](viewer) if path in THINGS else ''}{ASKED.get(path, '')}"


def name_of(path: str) -> str:
    """What the picture of a page is called."""
    return path.strip("/").replace("?view=", "-") + ("-one" if path in THINGS else "")


@pytest.fixture
def walked(request: pytest.FixtureRequest, path: str) -> Any:
    """A page and its viewer, which a walk along *path* may change."""
    return [
        request.getfixturevalue(name) for name in (("fresh_page", "fresh") if path in CHANGING else ("page", "viewer"))
    ]


def test_there_is_an_example_for_every_page():
    assert [path for path in PAGES if path.endswith("/") and path not in THINGS] == []


# A project, a session or a host may be called whatever somebody likes.
LONG_NAMES = "document.querySelectorAll('main select').forEach(each => each.append(new Option('x-'.repeat(90))))"


@every_look
def test_a_link_opens_the_viewer_once_and_leaves_no_token_in_the_address(page, viewer, look):
    page.context.clear_cookies()
    page.goto(viewer.link())
    page.wait_for_url(f"{viewer.origin}/now")
    settled(page)
    assert page.context.cookies()[0]["httpOnly"]


@every_look
@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_drawn_whole_and_nothing_scrolls_sideways(page, viewer, look, shot, path):
    visit(page, address(viewer, path))
    assert page.locator(".trouble").count() == 0
    assert page.locator("main h1").count() == 1
    assert page.locator("main").inner_text().strip()
    assert "comes next" not in page.locator("main").inner_text()
    assert page.title().endswith("· Foreword")
    assert page.locator("header nav a[aria-current=page]").count() == 1
    shot(page, name_of(path))
    page.evaluate(LONG_NAMES)
    wide = page.evaluate(
        """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
            .filter((node) => node.getBoundingClientRect().right > innerWidth + 1)
            .map((node) => `${node.tagName}.${node.className} ${Math.round(node.getBoundingClientRect().right)}`)"""
    )
    assert wide == [], "wider than the window"
    shot(page, f"{name_of(path)}-whole", whole=True)


def test_pages_follow_the_links_and_the_way_back(page, viewer):
    visit(page, viewer.origin)
    for link in page.locator("header nav a").all():
        link.click()
        settled(page)
        assert urlsplit(page.url).path == link.get_attribute("href")
        assert link.get_attribute("aria-current") == "page"
    page.go_back()
    page.go_back()
    settled(page)
    assert urlsplit(page.url).path == "/memories"
    assert page.title() == "Memories · Foreword"


@pytest.mark.parametrize("path", ["/memories/dec-00000000", "/now/nobody", "/timeline/nobody", "/memories/%3Cb%3E"])
def test_what_is_not_there_is_told_with_the_way_out(page, viewer, watch, path):
    watch.expects("404", "400")
    visit(page, f"{viewer.origin}{path}")
    page.get_by_text(re.compile("there is no|no such|not found|unknown", re.I)).first.wait_for()


@pytest.mark.parametrize("path", ["/nothing", "/try/it", "/constructor", "/%E0%A4"])
def test_a_mistyped_address_has_its_frame_and_a_way_on(page, viewer, watch, path):
    watch.expects("404")
    visit(page, f"{viewer.origin}{path}")
    assert page.locator("main h1").inner_text() == "There is no such page"
    assert page.locator("header nav a[aria-current=page]").count() == 0
    page.get_by_role("link", name="Go to Now").click()
    page.wait_for_url(f"{viewer.origin}/now")
    settled(page)
    assert page.title() == "Now · Foreword"


def test_a_tab_is_called_as_what_it_shows(page, viewer):
    seen = set()
    for path in THINGS:
        visit(page, address(viewer, path))
        page.wait_for_function("() => document.title.split(' · ').length >= 3")
        seen.add(page.title())
    assert len(seen) == len(THINGS)
    page.locator("header nav a", has_text="Memories").click()
    settled(page)
    assert page.title() == "Memories · Foreword"


# -- the keyboard alone ----------------------------------------------------------------------------------------------


@every_walk
def test_tab_reaches_every_control_in_their_order_and_shows_where_it_is(page, viewer, path, look):
    visit(page, address(viewer, path))
    still(page)
    # What loads a list when it comes into sight is switched off meanwhile, and Tab passes it over.
    page.evaluate(
        f"""() => {{ window.controls = ({CONTROLS})();
            window.busy = new Set();
            new MutationObserver((all) => all.forEach((each) => window.busy.add(each.target)))
                .observe(document, {{ subtree: true, attributeFilter: ["disabled"] }}); }}"""
    )
    count = page.evaluate("() => window.controls.length")
    assert count > 5
    seen, unseen = [], []
    for _ in range(count + MORE):  # once around, from wherever a page has put the focus
        page.keyboard.press("Tab")
        at, name, shown = page.evaluate(
            f"""() => {{ const node = document.activeElement, style = getComputedStyle(node);
                const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
                return [window.controls.indexOf(node), ({NAMED})(node), outlined || style.boxShadow !== "none"]; }}"""
        )
        if at in seen:
            break
        if at >= 0:
            seen.append(at)
            unseen += [] if shown else [name]
    missed = page.evaluate(
        """(seen) => window.controls
            .filter((node, at) => !seen.includes(at) && node.checkVisibility() && !window.busy.has(node))
            .map((node) => node.outerHTML.slice(0, 200))""",
        seen,
    )
    assert missed == [], "no Tab leads there"
    first = seen.index(min(seen))
    assert [*seen[first:], *seen[:first]] == sorted(seen), "not in the order in which they are read"
    assert unseen == [], "nothing tells that these have the focus"


def test_every_control_has_a_name(page, viewer):
    visit(page, viewer.origin)
    for path in PAGES:
        go(page, address(viewer, path))
        still(page)
        nameless = page.evaluate(
            f"() => ({CONTROLS})().filter((node) => !({NAMED})(node) && !node.querySelector('img[alt]')"
            " && !node.getAttribute('aria-labelledby') && !['MAIN', 'DIV'].includes(node.tagName))"
            ".map((node) => node.outerHTML.slice(0, 200))"
        )
        assert nameless == [], path


@every_walk
def test_every_control_does_something_when_a_key_asks_it_to(walked, path, look):
    page, viewer = walked
    here, done, passed_over = address(viewer, path), set(), {}
    visit(page, here)
    for _ in range(120):
        still(page)
        closed(page)
        if page.url != here:
            go(page, here)
            still(page)
        # One of each sort is enough: rows of a list differ in their words alone.
        sorts = page.evaluate(
            f"""() => (window.controls = ({CONTROLS})()).map((node) =>
                [node.tagName, node.type ?? "", node.className, node.closest("main, header, dialog")?.tagName ?? "",
                 node.matches("a, tr *, li *, .row, .row *") ? "" : ({NAMED})(node)].join("|"))"""
        )
        left = [(place, sort) for place, sort in enumerate(sorts) if sort not in done]
        if not left:
            break
        place, sort = left[0]
        done.add(sort)
        if why := operate(page, place, sort):
            passed_over[sort] = why
    else:
        pytest.fail(f"there are always more controls; the last were {[sort for _, sort in left][:20]}")
    print(f"{path} {look}: {len(done)} sorts of controls, passed over:", *passed_over.items(), sep="\n")
    assert len(done) - len(passed_over) > 5


def closed(page: Any) -> None:
    """Leave a dialog, as Escape does; its answer may have opened it late."""
    while page.locator("dialog[open]").count():
        page.keyboard.press("Escape")
        page.wait_for_function("() => !document.querySelector('dialog[open]')")
        still(page)


def operate(page: Any, place: int, sort: str) -> str:
    """Give a control the focus and the key that works it: something comes of it; or why it is passed over."""
    tag, type_, *_ = sort.split("|")
    for _ in range(20):  # what loads a list when it is seen is switched off meanwhile, and loses the focus
        if not page.evaluate(FOCUS, place):
            return "what it does was done when it came into sight: nothing is left behind the end of its list"
        still(page)
        if page.evaluate("(place) => document.activeElement === window.controls[place]", place):
            break
    if tag == "A" and page.evaluate("(place) => window.controls[place].href === location.href", place):
        return "the page that is shown already"
    if tag in ("DIV", "UL", "SECTION", "MAIN", "PRE", "ARTICLE"):
        return "only something to scroll"
    key = {"range": "ArrowLeft", "checkbox": "Space", "radio": "Space"}.get(type_, "Enter")
    key = {"SELECT": "ArrowDown"}.get(tag, key)
    before = rested(page)
    if tag in ("INPUT", "TEXTAREA") and type_ not in ("range", "checkbox", "radio", "button", "submit"):
        page.keyboard.type("2" if type_ in ("number", "date") else "queue")
    else:
        page.keyboard.press(key)
        if key == "ArrowDown" and page.evaluate(STATE) == before:
            page.keyboard.press("ArrowUp")  # the last of its choices stood there
        if key == "ArrowLeft" and page.evaluate(STATE) == before:
            page.keyboard.press("ArrowRight")
    happened(page, before, sort)
    still(page)  # what it asks may open a dialog
    if page.locator("dialog[open]").count():
        inside = page.evaluate("() => document.querySelector('dialog[open]').contains(document.activeElement)")
        assert inside, f"{sort}: the focus stays behind its dialog"
    return ""


def rested(page: Any) -> str:
    """The state of a page that does nothing any more; toasts are gone, for they would go by themselves."""
    still(page)
    page.evaluate("() => document.getElementById('toasts').replaceChildren()")
    return str(page.evaluate(STATE))


def happened(page: Any, before: str, what: str) -> None:
    assert is_other(page, before), f"nothing came of {what}"


def is_other(page: Any, before: str) -> bool:
    for _ in range(int(PATIENCE / 0.05)):
        if page.evaluate(STATE) != before:
            return True
        page.wait_for_timeout(50)
    return False


def listed(page: Any) -> dict[str, str]:
    """The keys that `?` tells, with what each does; of those that do the same, each by itself."""
    aside(page)
    page.keyboard.press("?")
    rows = page.locator("dialog[open] table tr")
    rows.first.wait_for()
    told = {
        " ".join(map(pressed, keys.locator("kbd").all_inner_texts())): row.locator("td").inner_text()
        for row in rows.all()
        for keys in row.locator("th span").all()
    }
    page.keyboard.press("Escape")
    page.wait_for_function("() => !document.querySelector('dialog')")
    return told


def pressed(shown: str) -> str:
    """A key as it is pressed, from how it is shown."""
    with_shift = re.sub(r"^Shift\+([a-z])$", lambda found: f"Shift+{found[1].upper()}", shown)  # else it is sent as j
    return "+".join(KEYS.get(part, part) for part in with_shift.split("+"))


def aside(page: Any) -> None:
    """Leave a box for words, in which keys are letters."""
    while page.evaluate("() => document.activeElement.matches('input, textarea, select')"):
        page.keyboard.press("Tab")


@every_walk
def test_every_key_that_a_page_lists_does_something(walked, path, look):
    page, viewer = walked
    here = address(viewer, path)
    visit(page, here)
    still(page)
    told = listed(page)
    assert {"?", "/", *LEADS} <= set(told)
    for keys, there in LEADS.items() if path in ("/now", "/memories/") else ():  # one handler on all pages
        if there != path:
            leads(page, keys, there)
    nothing = []
    for keys in told:
        if keys in {*LEADS, "Escape"} or keys.startswith("Ctrl+"):
            continue  # there is nothing to leave, and nothing written: the page's own test presses them
        still(page)
        closed(page)
        page.keyboard.press("Escape")
        still(page)
        if page.url != here:
            go(page, here)
            still(page)
        aside(page)
        chosen = ("j", "j") if "j" in told and keys != "j" else ()  # something is chosen
        for key in (*chosen, *BEFORE.get(keys, "")):
            page.keyboard.press(key)
        before = rested(page)
        for key in keys.split(" "):
            page.keyboard.press(key)
        if not is_other(page, before):
            nothing.append((keys, told[keys], page.evaluate("() => document.activeElement.outerHTML.slice(0, 300)")))
    assert nothing == [], "nothing came of these"


def leads(page: Any, keys: str, there: str) -> None:
    """Two keys lead to another page, and the way back from it; some pages add what they show to their address."""
    here = urlsplit(page.url).path
    aside(page)
    for _ in range(3):  # a busy machine may let more pass between two keys than a page waits for the second
        for key in keys.split(" "):
            page.keyboard.press(key)
        with suppress(playwright.TimeoutError):
            page.wait_for_url(lambda url: urlsplit(url).path == there, timeout=PATIENCE / 2 * 1000)
            break
    assert urlsplit(page.url).path == there
    settled(page)
    page.go_back()
    page.wait_for_url(lambda url: urlsplit(url).path == here)
    settled(page)


def test_the_first_tab_offers_the_way_past_the_frame(page, viewer):
    visit(page, f"{viewer.origin}/timeline")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Skip to the page"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.getElementById('main').contains(document.activeElement)")


def test_keys_of_one_letter_can_be_switched_off_for_good(page, viewer):
    visit(page, f"{viewer.origin}/now")
    page.keyboard.press("?")
    page.get_by_label("Single-letter shortcuts").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    settled(page)
    page.keyboard.press("g")
    page.keyboard.press("h")
    page.keyboard.press("/")
    page.wait_for_timeout(200)
    assert page.url == f"{viewer.origin}/now"
    assert is_kept(page, "foreword-keys", "off")


def is_kept(page: Any, name: str, text: str) -> bool:
    """Whether the next viewer knows it too, which has another port: cookies know none."""
    kept = {each["name"]: each for each in page.context.cookies("http://127.0.0.1:1")}
    return kept[name]["value"] == text and kept[name]["expires"] > time.time() + 300 * 86_400


# -- the frame -------------------------------------------------------------------------------------------------------


def test_a_theme_is_kept_and_changes_the_page(page, viewer):
    visit(page, f"{viewer.origin}/now")
    ground = "() => getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    theme = page.get_by_role("button", name="Theme")
    theme.click()
    theme.click()
    assert theme.inner_text() == "Theme: dark"
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    settled(page)
    assert page.evaluate(ground) == dark
    assert is_kept(page, "foreword-theme", "dark")
    theme.click()
    assert page.evaluate(ground) == light


def test_a_viewer_that_was_closed_says_so(fresh_page, fresh, watch):
    watch.expects_it_gone()
    with fresh_page.expect_response("**/api/live"):  # who does not listen yet cannot be told why
        visit(fresh_page, f"{fresh.origin}/now")
    fresh.client.post("/api/view", {"do": "close"})
    fresh_page.locator("#closed", has_text="asked to close. Run foreword view").wait_for()


def test_a_page_goes_on_when_its_viewer_comes_back(fresh_page, fresh, watch):
    watch.expects_it_gone()
    visit(fresh_page, f"{fresh.origin}/now")
    other = fresh_page.context.new_page()  # it hears of it by the first alone
    visit(other, f"{fresh.origin}/now")
    life.stop(fresh.home)
    for each in (fresh_page, other):
        each.locator("#closed", has_text="does not answer").wait_for()
    hide(other, True)
    fresh_page.locator("header nav a", has_text="Memories").click()
    fresh_page.locator(".trouble", has_text="does not answer").first.wait_for()
    life.start(fresh.home)
    fresh.again()
    fresh_page.locator("#closed").wait_for(state="hidden")
    fresh_page.locator(".trouble").first.wait_for(state="detached")
    hide(other, False)
    other.locator("#closed").wait_for(state="hidden")


def test_a_page_whose_scripts_were_not_had_is_drawn_when_it_is_gone_to(fresh_page, fresh, watch):
    watch.expects("ERR_FAILED")
    # As when the viewer leaves while the scripts of the other pages are asked for.
    fresh_page.route("**/static/plots.js", lambda asked: asked.abort())
    with fresh_page.expect_event("requestfailed"):
        visit(fresh_page, f"{fresh.origin}/now")
    fresh_page.unroute("**/static/plots.js")
    fresh_page.locator("header nav a", has_text="Health").click()
    fresh_page.get_by_role("heading", name="Health", level=1).wait_for()
    fresh_page.locator("svg").first.wait_for()


def hide(page, hidden):
    """As a browser does with a tab in the background."""
    page.evaluate("(is) => Object.defineProperty(document, 'hidden', { value: is, configurable: true })", hidden)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_more_pages_than_a_browser_opens_connections_are_all_drawn_and_all_told(fresh_page, fresh):
    pages = [fresh_page, *(fresh_page.context.new_page() for _ in range(7))]
    for each in pages:
        visit(each, f"{fresh.origin}/now")
    prompt = {"session_id": "eight", "cwd": fresh.projects["havn"], "prompt": "who sees this?"}
    fresh.client.post("/api/events", {"host": "claude-code", "event": "UserPromptSubmit", "payload": prompt})
    for each in pages:
        each.locator("option[value=eight]").wait_for(state="attached")


def test_a_script_that_was_not_had_is_had_when_the_page_asks_again(fresh_page, fresh, watch):
    watch.expects("ERR_FAILED")
    fresh_page.route("**/static/timeline.js", lambda asked: asked.abort(), times=1)
    visit(fresh_page, f"{fresh.origin}/timeline")
    fresh_page.locator(".session").first.wait_for()


PRESS = (
    "given => document.body.dispatchEvent(new KeyboardEvent('keydown', { bubbles: true, cancelable: true, ...given }))"
)


@pytest.mark.parametrize(
    "given",
    [{"altKey": True}, {"altKey": True, "ctrlKey": True, "modifierAltGraph": True}, {"modifierAltGraph": True}],
    ids=["Option", "AltGr as Ctrl and Alt", "AltGr"],
)
def test_a_sign_that_a_keyboard_writes_with_another_key_is_that_sign(page, viewer, given):
    visit(page, f"{viewer.origin}/now")
    page.evaluate(PRESS, {"key": "]", **given})
    page.wait_for_url(f"{viewer.origin}/now/*")


def test_letters_do_the_same_while_caps_lock_is_on_and_nothing_with_alt(page, viewer):
    visit(page, f"{viewer.origin}/timeline")
    at = "() => [...document.querySelectorAll('.session')].indexOf(document.activeElement)"
    for given in (
        {"key": "j", "altKey": True},
        {"key": "J"},
        {"key": "J"},
        {"key": "K"},
        {"key": "j", "ctrlKey": True},
    ):
        page.evaluate(PRESS, given)
    assert page.evaluate(at) == 0
    page.evaluate(PRESS, {"key": "j", "shiftKey": True})  # Shift is Shift, with Caps Lock too
    assert page.evaluate(at) == 0
