"""Take the steps that several tests share: wait for what a page shows, keep memories, tell a prompt."""

from __future__ import annotations

from typing import Any

from tests.flow.conftest import HookRunner
from tests.viewer.conftest import Viewer, visit

ROW = ".mem-results .row"
CARDS = ".trigger"


def rows(page: Any) -> list[str]:
    return list(page.locator(f"{ROW} .row-title").all_text_contents())


def until(page: Any, holds: str) -> None:
    """Wait until something holds; as a function, for the policy of the page lets no string be evaluated."""
    page.wait_for_function(f"() => {holds}")


def until_rows(page: Any, count: int) -> None:
    until(page, f"document.querySelectorAll('{ROW}').length === {count}")


def open_list(page: Any, viewer: Viewer, more: str = "") -> None:
    visit(page, f"{viewer.origin}/memories{more}")
    page.locator(ROW).first.wait_for()


def shows(page: Any, title: str) -> None:
    """Wait until the memory with this title is open."""
    page.locator("#mem-title", has_text=title).wait_for()


def toast(page: Any, words: str) -> Any:
    found = page.locator(".toast", has_text=words).last
    found.wait_for()
    return found


def focused(page: Any) -> str:
    return str(page.evaluate("document.activeElement.dataset.id ?? document.activeElement.id"))


def keep(viewer: Viewer, word: str, count: int, **more: Any) -> list[str]:
    """Add memories of the test's own, found by a word that nothing else has; their ids."""
    known = {"kind": "decision", "project_path": viewer.projects["havn"]}
    own = [{**known, "title": f"{word} {n}", "created": 1e9 - n, **more} for n in range(count)]
    return [each["id"] for each in viewer.client.post("/api/memories", {"memories": own})["memories"]]


def memory(viewer: Viewer, id: str) -> dict[str, Any]:
    return dict(viewer.client.get(f"/api/memories/{id}", full=1)["memory"])


def asks(viewer: Viewer, prompt: str, *, session: str = "", project: str = "havn") -> str:
    """Tell a prompt by a real hook, of the live session or of another; what the agent is given."""
    payload = {"session_id": session or viewer.sessions["live"], "cwd": viewer.projects[project], "prompt": prompt}
    return HookRunner(viewer.home).context("UserPromptSubmit", payload)
