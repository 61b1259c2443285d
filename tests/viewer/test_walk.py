"""Every page and every action, walked in a real browser; what no test visited fails the run."""

from __future__ import annotations

from tests.viewer.conftest import every_look, settled


@every_look
def test_a_link_opens_the_viewer_once_and_leaves_no_token_in_the_address(page, viewer, look):
    page.context.clear_cookies()
    page.goto(viewer.link())
    page.wait_for_url(f"{viewer.origin}/now")
    settled(page)
    assert page.context.cookies()[0]["httpOnly"]
