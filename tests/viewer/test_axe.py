"""axe-core on every page and every dialog, light and dark: nothing serious or critical keeps anybody out.

What it finds of less weight is written to artefacts/viewer/axe.txt.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.viewer.conftest import ARTEFACTS, LOOKS, visit
from tests.viewer.test_walk import CONTROLS, NAMED, PAGES, address, aside, name_of, still

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
    "memories-waiting": lambda _: "/memories?view=waiting",
    "now-codex": lambda viewer: f"/now/{viewer.sessions['codex']}",
    "timeline-live": lambda viewer: f"/timeline/{viewer.sessions['live']}",
    "try-unasked": lambda _: "/try",
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


@phone_and_desktop
@pytest.mark.parametrize("path", PAGES)
def test_every_page_keeps_nobody_out(page, viewer, look, axe, report, path):
    visit(page, address(viewer, path))
    still(page)
    assert grave(page, axe, f"{name_of(path)} {look.place}", report) == []


@pytest.mark.parametrize("name", MORE)
def test_whatever_a_page_shows_keeps_nobody_out(page, viewer, axe, report, name):
    visit(page, f"{viewer.origin}{MORE[name](viewer)}")
    still(page)
    page.evaluate("() => document.querySelectorAll('main details').forEach((node) => (node.open = true))")
    still(page)
    assert grave(page, axe, name, report) == []


def test_the_list_of_keys_keeps_nobody_out(page, viewer, axe, report):
    for path in PAGES:
        visit(page, address(viewer, path))
        aside(page)
        page.keyboard.press("?")
        page.locator("dialog[open]").wait_for()
        assert grave(page, axe, f"keys of {path}", report, within="dialog[open]") == []


def test_every_dialog_and_form_keeps_nobody_out(fresh_page, fresh, axe, report):
    """Each button of each page is pressed; where a dialog or a form opens, it is looked at."""
    page, seen, found = fresh_page, 0, []
    for here in ("/memories/" + fresh.ids[name] for name in ("pinned", "note", "proposal")):
        visit(page, fresh.origin + here)
        still(page)
        names = page.evaluate(
            f"() => ({CONTROLS})().filter((node) => node.matches('main .mem-detail button[data-do]')).map({NAMED})"
        )
        for name in names:
            if name.startswith("Set aside"):
                continue  # it asks nothing, and the next would begin with a visit
            if page.url != fresh.origin + here:
                visit(page, fresh.origin + here)
                still(page)
            button = page.locator(".mem-detail button[data-do]", has_text=name.split(" ")[0]).first
            if not button.count():
                continue  # what was pressed before has made it needless
            button.click()
            still(page)
            for within in ("dialog[open]", "main form:not([role=search])"):
                if page.locator(within).count():
                    seen += 1
                    found += grave(page, axe, f"{here} {name} {within}", report, within=within)
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
