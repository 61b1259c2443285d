"""From the list to the end of what is done with a memory, by keys alone: no pointer, nothing focused by a script."""

from __future__ import annotations

from typing import Any

from tests.viewer.conftest import still, visit
from tests.viewer.test_memories import ROW, focused, said, told
from tests.viewer.test_memories_several import kept, memory

AT = """() => { const node = document.activeElement;
    return (node.getAttribute("aria-label") || node.labels?.[0]?.textContent || node.textContent || "").trim(); }"""


def tab_to(page: Any, words: str) -> None:
    """Press Tab until what has the focus is called so, as somebody does who listens."""
    for _ in range(60):
        if str(page.evaluate(AT)).startswith(words):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no Tab leads to {words!r}")


def opened(page: Any, viewer: Any, word: str) -> None:
    """Search for a word, go down to what is found and open it."""
    visit(page, f"{viewer.origin}/now")
    page.keyboard.press("/")  # leads to Memories, and there into the box
    page.wait_for_url("**/memories")
    page.wait_for_function("() => document.activeElement.id === 'mem-q'")
    page.keyboard.type(word)
    page.locator(ROW, has_text=f"{word} 0").wait_for()
    still(page)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    told(page, f"{word} 0")
    still(page)


def test_a_memory_is_found_opened_and_forgotten(my_page, mine):
    page = my_page
    kept(mine, "oakum", 1)
    opened(page, mine, "oakum")
    tab_to(page, "Forget")
    page.keyboard.press("Enter")
    page.locator("dialog[open]").wait_for()
    page.keyboard.type("rotten")  # the box for the reason has the focus
    tab_to(page, "Forget for good")
    page.keyboard.press("Enter")
    page.locator(".mem-receipt", has_text="none left").wait_for()
    assert page.evaluate("() => document.activeElement.matches('.mem-receipt')"), "what was done is read first"
    page.keyboard.press("Escape")
    page.locator(".mem-hint").wait_for()
    page.locator(ROW, has_text="oakum 0").wait_for(state="detached")


def test_a_memory_is_superseded_by_new_words_and_by_one_that_is_known(my_page, mine):
    page, (id, other) = my_page, kept(mine, "marline", 2)
    opened(page, mine, "marline")
    tab_to(page, "Supersede")
    page.keyboard.press("Enter")
    page.get_by_role("form", name="Supersede").wait_for()
    page.keyboard.type("marline is tarred")
    tab_to(page, "Supersede")
    page.keyboard.press("Enter")
    said(page, "Superseded by")
    assert memory(mine, id)["status"] == "superseded"
    still(page)
    page.keyboard.press("Escape")
    page.wait_for_function("() => location.pathname === '/memories'")
    still(page)
    for _ in range(5):  # its row is gone, and the box has the focus: arrows lead out of it
        if focused(page) != other:
            page.keyboard.press("ArrowDown")
    assert focused(page) == other
    page.keyboard.press("Enter")
    told(page, "marline 1")
    still(page)
    page.keyboard.press("s")
    page.get_by_role("form", name="Supersede").wait_for()
    tab_to(page, "Find")
    page.keyboard.type("marline is tarred")
    page.get_by_role("radio").first.wait_for()
    still(page)
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    tab_to(page, "Supersede")
    page.keyboard.press("Enter")
    page.locator(".mem-head", has_text="Superseded by marline is tarred").wait_for()


def test_a_note_is_promoted(my_page, mine):
    page, (id,) = my_page, kept(mine, "ratline", 1, kind="note")
    opened(page, mine, "ratline")
    tab_to(page, "What the note becomes")
    page.keyboard.type("lear")  # as a choice is made by its first letters
    tab_to(page, "Promote")
    page.keyboard.press("Enter")
    said(page, "it is a learning now")
    page.keyboard.press("u")
    said(page, "Taken back")
    assert memory(mine, id)["status"] == "active"
