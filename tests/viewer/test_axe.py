"""axe-core on every page and every dialog, light and dark: nothing serious or critical keeps anybody out.

What it finds of less weight is written to artefacts/viewer/axe.txt.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from foreword.trouble import Trouble, note
from tests.viewer.conftest import ARTEFACTS, LOOKS, go, still, visit
from tests.viewer.test_memories_several import kept
from tests.viewer.test_walk import CONTROLS, DESKTOP, NAMED, PAGES, PHONE, address, aside, name_of

pytestmark = pytest.mark.timeout(300)  # each look at a page takes seconds on a machine that is busy

GRAVE = ("serious", "critical")
SCHEMES = ("light", "dark")
# What depends on colours; all other rules say the same in both schemes of a page that has one shape in both.
COLOURS = ("color-contrast", "link-in-text-block")
RUN = """([within, rules]) => axe.run(within ? document.querySelector(within) : document,
        { preload: false, iframes: false, resultTypes: ["violations"], ...(rules ? { runOnly: rules } : {}) })
    .then((told) => told.violations.map((each) => ({ id: each.id, impact: each.impact, help: each.help,
        nodes: each.nodes.slice(0, 5).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary.slice(0, 200)}`)
    })))"""
# Every element, what is said of it and where it stands: all that a rule can see, but for colours.
SHAPE = """() => [document.documentElement.outerHTML, ...[...document.querySelectorAll("*")].map(
    (node) => [...node.getClientRects()].map(({ x, y, width, height }) => [x, y, width, height]).join())].join(";")"""
# What a person can have open: more of the same page, each with something else to see.
MORE = {
    "memory-superseded": lambda viewer: f"/memories/{viewer.ids['superseded']}",
    "memory-note": lambda viewer: f"/memories/{viewer.ids['note']}",
    "memory-proposal": lambda viewer: f"/memories/{viewer.ids['proposal']}",
    "memory-goal": lambda viewer: f"/memories/{viewer.ids['goal']}",
    "memories-found": lambda _: "/memories?q=checkout",
    "memories-nothing": lambda _: "/memories?q=zzzz",
    "now-codex": lambda viewer: f"/now/{viewer.sessions['codex']}",
    "timeline-live": lambda viewer: f"/timeline/{viewer.sessions['live']}",
    "try-unasked": lambda _: "/try",
    "no-such-page": lambda _: "/nothing",
    "no-such-memory": lambda _: "/memories/dec-00000000",
}
phone_and_desktop = pytest.mark.parametrize(
    "look", [look for look in LOOKS if look.scheme == "light"], indirect=True, ids=str
)


@pytest.fixture(scope="module")
def report() -> Iterator[list[str]]:
    """What is less grave, for who wants to make it better."""
    lines: list[str] = []
    yield lines
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    (ARTEFACTS / "axe.txt").write_text("".join(f"{line}\n" for line in sorted(set(lines))) or "nothing\n")


def grave(page: Any, axe: str, what: str, report: list[str], *, within: str = "") -> list[str]:
    """What axe finds that is serious or critical, in both themes."""
    found, shapes = [], set()
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        if not page.evaluate("() => 'axe' in window"):
            # By the browser's own door: the policy of the page lets no text become a script, which is as it should be.
            session = page.context.new_cdp_session(page)
            session.send("Runtime.evaluate", {"expression": f"{axe}; void 0"})
            session.detach()
        shape = page.evaluate(SHAPE)
        for each in page.evaluate(RUN, [within, COLOURS if shape in shapes else None]):
            said = f"{what} {scheme}: {each['impact']} {each['id']}: {each['help']}"
            report += [] if each["impact"] in GRAVE else [f"{said} ({len(each['nodes'])})"]
            found += [f"{said}: {node}" for node in each["nodes"]] if each["impact"] in GRAVE else []
        shapes.add(shape)
    return found


ASKING = ("dialog[open]", "main form:not([role=search])")


@phone_and_desktop
@pytest.mark.parametrize("path", PAGES)
def test_every_page_keeps_nobody_out(page, viewer, look, axe, report, path):
    visit(page, address(viewer, path))
    still(page)
    assert grave(page, axe, f"{name_of(path)} {look.place}", report) == []


@pytest.mark.parametrize("name", MORE)
def test_whatever_a_page_shows_keeps_nobody_out(page, viewer, axe, report, watch, name):
    watch.expects("404")
    visit(page, f"{viewer.origin}{MORE[name](viewer)}")
    still(page)
    page.evaluate("() => document.querySelectorAll('main details').forEach((node) => (node.open = true))")
    still(page)
    assert grave(page, axe, name, report) == []


def test_the_list_of_keys_keeps_nobody_out(page, viewer, axe, report):
    for path in ("/memories", "/try"):  # one dialog for all: the longest list, and one beside a form
        visit(page, address(viewer, path))
        still(page)
        aside(page)
        page.keyboard.press("?")
        page.locator("dialog[open]").wait_for()
        assert grave(page, axe, f"keys of {path}", report, within="dialog[open]") == []


@pytest.mark.parametrize(
    ("look", "names"), [(DESKTOP, ("note", "proposal")), (PHONE, ("pinned",))], indirect=["look"], ids=str
)
def test_every_dialog_and_form_keeps_nobody_out(fresh_page, fresh, axe, report, look, names):
    """Each button of each page is pressed; where a dialog or a form opens, it is looked at."""
    page, seen, found = fresh_page, 0, []
    for here in ("/memories/" + fresh.ids[name] for name in names):
        visit(page, fresh.origin + here)
        still(page)
        names = page.evaluate(
            f"() => ({CONTROLS})().filter((node) => node.matches('main .mem-detail button[data-do]')).map({NAMED})"
        )
        for name in names:
            if name.startswith("Set aside"):
                continue  # it asks nothing, and the next would begin with a visit
            if page.url != fresh.origin + here:
                go(page, fresh.origin + here)
                still(page)
            button = page.locator(".mem-detail button[data-do]", has_text=name.split(" ")[0]).first
            if not button.count():
                continue  # what was pressed before has made it needless
            button.click()
            if name.startswith(("Edit", "Supersede", "Forget")):
                page.locator(", ".join(ASKING)).first.wait_for()
            still(page)
            for within in ASKING:
                if page.locator(within).count():
                    seen += 1
                    found += grave(page, axe, f"{here} {name} {within} {look.place}", report, within=within)
            page.keyboard.press("Escape")
            still(page)
    assert found == []
    assert seen >= 3, "edit, supersede and forget ask something"


def test_what_is_selected_and_its_bar_keep_nobody_out(page, viewer, axe, report):
    visit(page, f"{viewer.origin}/memories")
    for at in range(3):
        page.locator(".mem-tick input").nth(at).check()
    page.locator(".mem-bar-count", has_text="3 selected").wait_for()
    still(page)
    found = grave(page, axe, "selected", report)
    page.keyboard.press("t")
    page.locator("dialog[open]").wait_for()
    assert [*found, *grave(page, axe, "tags of several", report, within="dialog[open]")] == []


def test_what_comes_of_writing_deciding_and_forgetting_keeps_nobody_out(fresh_page, fresh, axe, report):
    """A question before words are lost, what others wrote meanwhile, a toast, a receipt, several notes at once."""
    page, found, (id, *_) = fresh_page, [], kept(fresh, "gaff", 3, kind="note")

    def look(what: str, within: str) -> None:
        page.locator(within).first.wait_for()
        still(page)
        found.extend(grave(page, axe, what, report, within=within))

    visit(page, f"{fresh.origin}/memories/{id}")
    page.locator("[data-do=edit]").click()
    title = page.get_by_role("form", name="Edit").get_by_label("Title")
    title.fill("gaff of ash")
    page.keyboard.press("Escape")
    look("discard your changes", "dialog[open]")
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    fresh.client.post(f"/api/memories/{id}", {"title": "gaff of spruce"})
    page.get_by_role("button", name="Keep mine").wait_for()
    look("changed by two", "main form:not([role=search])")
    page.get_by_role("button", name="Take theirs").click()
    page.keyboard.press("Escape")
    page.locator("[data-do=pin]").click()
    look("a toast", ".toast")
    page.locator("[data-do=forget]").click()
    page.locator("dialog[open] button.danger").click()
    look("a receipt", ".mem-receipt")
    visit(page, f"{fresh.origin}/memories?q=gaff&kind=note")
    for at in range(2):
        page.locator(".mem-tick input").nth(at).check()
    page.locator(".mem-bar").get_by_role("button", name="Promote").click()
    look("promote several", "dialog[open]")
    assert found == []


def test_a_viewer_that_is_in_trouble_or_closed_keeps_nobody_out(fresh_page, fresh, axe, report, watch):
    watch.expects_it_gone()
    for at, what in enumerate(("the store is locked", "a hook ended with 1")):
        note(str(fresh.home.trouble), Trouble(time.time() + at, where="hook", what=what))
    with fresh_page.expect_response("**/api/live"):  # who does not listen yet cannot be told why
        visit(fresh_page, f"{fresh.origin}/health")
    fresh_page.get_by_text("the store is locked").first.wait_for()
    still(fresh_page)
    found = grave(fresh_page, axe, "health with troubles", report)
    fresh.client.post("/api/view", {"do": "close"})
    fresh_page.locator("#closed", has_text="asked to close").wait_for()
    assert [*found, *grave(fresh_page, axe, "closed", report)] == []
