"""What somebody confirms is what was shown to them."""

from __future__ import annotations

from typing import Any

import pytest

from foreword.cli import maintenance


def test_what_is_forgotten_is_what_was_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[dict[str, Any]] = []

    def post(_path: str, request: dict[str, Any], **_: Any) -> dict[str, Any]:
        requests.append(request)
        return {"memories": [{"id": "dec-q0hn5pnc"}], "left": []}

    monkeypatch.setattr(maintenance, "post_long", post)
    for name in ("refuse_agents", "_print_forget_plan"):
        monkeypatch.setattr(maintenance, name, lambda *_: None)
    monkeypatch.setattr(maintenance.output, "confirm", lambda _question: None)
    monkeypatch.setattr(maintenance, "_print_receipt", lambda _receipt: None)
    maintenance.forget(["dec-q"])
    assert [each["ids"] for each in requests] == [["dec-q"], ["dec-q0hn5pnc"]]
    maintenance.forget(["dec-q"], yes=True)
    assert requests[-1]["ids"] == ["dec-q"], "nothing was shown"
