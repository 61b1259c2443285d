"""Actions that no other test of a page needs: several at once, a rule for everywhere, words that others wrote."""

from __future__ import annotations

from typing import Any

from tests.viewer.conftest import still, visit
from tests.viewer.test_memories import begin, said, until_rows
from tests.viewer.test_memories_several import bar, kept, memory


def proposed(viewer: Any, word: str, count: int) -> list[str]:
    """Memories of this test's own for which an agent proposes other words."""
    ids = kept(viewer, word, count)
    for number, id in enumerate(ids):
        viewer.client.post(f"/api/memories/{id}", {"title": f"{word} {number}, in other words", "by": "codex"})
    return ids


def chosen(page: Any, word: str, count: int) -> Any:
    """The rows with this word, selected; their bar."""
    for row in page.locator(".mem-row", has_text=word).all():
        row.locator(".mem-tick input").check()
    return bar(page, count)


def test_proposals_are_accepted_and_refused_together(my_page, mine):
    page = my_page
    taken, left = proposed(mine, "gunwale", 2), proposed(mine, "transom", 2)
    begin(page, mine, "?view=waiting")
    chosen(page, "gunwale", 2).get_by_role("button", name="Accept").click()
    said(page, "2 memories accepted")
    still(page)
    page.keyboard.press("Escape")
    chosen(page, "transom", 2).get_by_role("button", name="Refuse").click()
    said(page, "2 memories refused")
    assert [memory(mine, id)["title"] for id in taken] == [f"gunwale {n}, in other words" for n in range(2)]
    assert [memory(mine, id)["title"] for id in left] == ["transom 0", "transom 1"]


def test_other_words_that_are_accepted_are_not_called_a_rule(my_page, mine):
    page, (id,) = my_page, proposed(mine, "keelson", 1)
    begin(page, mine, "?view=waiting")
    page.locator(".mem-row", has_text="keelson").get_by_role("button", name="Accept").click()
    said(page, "Accepted: the decision has these words now.")
    assert memory(mine, id)["title"] == "keelson 0, in other words"


def test_a_rule_is_accepted_for_everywhere(my_page, mine):
    page = my_page
    begin(page, mine, "?view=waiting")
    rule = page.locator(".mem-row", has=page.get_by_role("button", name="Accept everywhere")).first
    id = rule.get_attribute("data-of")
    rule.get_by_role("button", name="Accept everywhere").click()
    said(page, "Accepted: it is a rule now")
    kept_ = memory(mine, id)
    assert (kept_["scope"], kept_["status"]) == ("universal", "active")


def test_several_are_unpinned_brought_back_and_lose_a_tag(my_page, mine):
    page, ids = my_page, kept(mine, "scupper", 3, tags=["deck", "iron"])
    begin(page, mine, "?q=scupper")
    until_rows(page, 3)
    chosen(page, "scupper", 3)
    for words, off in (("3 memories pinned", False), ("3 memories no longer pinned", True)):
        page.keyboard.press("p")
        said(page, words)
        assert {memory(mine, id)["pinned"] for id in ids} == {not off}
    page.keyboard.press("t")
    page.get_by_role("dialog").get_by_label("Remove").fill("iron")
    page.keyboard.press("Enter")
    said(page, "ags changed on 3 memories")
    assert {tuple(memory(mine, id)["tags"]) for id in ids} == {("deck",)}
    page.keyboard.press("a")
    said(page, "3 memories set aside")
    begin(page, mine, "?q=scupper&status=discarded")
    until_rows(page, 3)
    chosen(page, "scupper", 3).get_by_role("button", name="Bring back").click()
    said(page, "3 memories brought back")
    assert {memory(mine, id)["status"] for id in ids} == {"active"}


def test_one_that_was_set_aside_is_brought_back(my_page, mine):
    page, (id,) = my_page, kept(mine, "fairlead", 1)
    visit(page, f"{mine.origin}/memories/{id}")
    page.locator("[data-do='set aside']").click()
    page.locator("[data-do='bring back']").click()
    said(page, "Brought back")
    assert memory(mine, id)["status"] == "active"


def test_words_of_others_are_taken_where_both_changed_the_same(my_page, mine):
    page, (id,) = my_page, kept(mine, "jackstay", 1)
    visit(page, f"{mine.origin}/memories/{id}")
    page.locator("[data-do=edit]").click()
    form = page.get_by_role("form", name="Edit")
    form.get_by_label("Title").fill("jackstay of wire")
    mine.client.post(f"/api/memories/{id}", {"title": "jackstay of webbing"})
    form.get_by_role("button", name="Take theirs").click()
    assert form.get_by_label("Title").input_value() == "jackstay of webbing"
    page.keyboard.press("Control+Enter")  # nothing is different: it is only left
    page.locator("#mem-title", has_text="jackstay of webbing").wait_for()
    assert memory(mine, id)["title"] == "jackstay of webbing"
