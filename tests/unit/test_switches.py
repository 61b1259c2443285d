"""What is switched off in a project: by settings, or by a file of the repository that can never switch anything on."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword import policy
from foreword.config import load
from foreword.errors import BadRequest
from foreword.models import Project
from foreword.paths import Home
from foreword.policy import FILE, Policy, findings, off, refuse_to_write
from foreword.worker import services
from tests.tables import table

ON: dict[str, Any] = {
    "capture": True,
    "inject": True,
    "off_projects": (),
    "read_only_projects": (),
    "silent_projects": (),
}


def here(root: Path | str = "/nowhere/shop") -> Project:
    return Project(key="git:host/shop", name="shop", root=str(root))


def test_people_are_told_what_is_off_and_the_way_out():
    # Nothing is off unless somebody said so.
    assert off(here(), ON) == Policy()
    assert off(None, ON) == Policy()
    # People are reported what is off by what and the way out.
    (only,) = findings(off(here(), {**ON, "off_projects": ("/nowhere",)}), here())
    assert only == (
        "shop is off (off_projects): nothing is captured or injected here",
        "foreword project on; where a folder is named: foreword config unset off_projects",
    )
    both = {**ON, "read_only_projects": ("/nowhere",), "silent_projects": ("/nowhere",)}
    assert [says.split(" (")[0] for says, _ in findings(off(here(), both), here())] == [
        "shop is read-only",
        "shop is silent",
    ]
    assert list(findings(off(here(), {**ON, "capture": False, "inject": False}), here())) == []
    # Every switch has a way out.
    from foreword.policy import HINTS

    assert set(HINTS) == {*policy.CHOICES, FILE}
    # Only a projects own switch refuses what somebody asks to be kept.
    refuse_to_write(off(here(), {**ON, "capture": False, "silent_projects": ("/nowhere",)}), here())
    for choice, says in (("off_projects", "switched off"), ("read_only_projects", "read-only")):
        with pytest.raises(BadRequest, match=says) as reported:
            refuse_to_write(off(here(), {**ON, choice: ("/nowhere",)}), here())
        assert choice in reported.value.hint


@table(
    ("choices", "wanted"),
    [
        ({"capture": False}, Policy(capture="capture")),
        ({"inject": False}, Policy(inject="inject")),
        ({"off_projects": ("git:host/shop",)}, Policy("off_projects", "off_projects", "off_projects")),
        ({"off_projects": ("/nowhere",)}, Policy("off_projects", "off_projects", "off_projects")),
        ({"read_only_projects": ("/nowhere/shop/",)}, Policy(capture="read_only_projects", write="read_only_projects")),
        ({"silent_projects": ("git:host/shop",)}, Policy(inject="silent_projects")),
        (
            {"read_only_projects": ("/nowhere",), "silent_projects": ("/nowhere",)},
            Policy("read_only_projects", "silent_projects", "read_only_projects"),
        ),
        (
            {"capture": False, "read_only_projects": ("/nowhere",)},
            Policy("read_only_projects", "", "read_only_projects"),
        ),
        ({"off_projects": ("/nowhere/sho", "/no", "", "git:host")}, Policy()),
    ],
)
def test_each_switch_says_what_it_switches_and_only_that(choices, wanted):
    assert off(here(), {**ON, **choices}) == wanted


@given(choices=st.fixed_dictionaries({"capture": st.booleans(), "inject": st.booleans()}), root=st.text(max_size=30))
def test_a_file_in_the_project_switches_both_off_whatever_it_is(tmp_path_factory, choices, root):
    off(Project("k", "shop", root), {**ON, **choices})  # no root makes it fail
    for make in (Path.touch, Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nowhere")):
        shop = tmp_path_factory.mktemp("shop")
        make(shop / FILE)
        assert off(here(shop), {**ON, **choices}) == Policy(FILE, FILE, FILE)


def test_a_switch_holds_for_everybody_once_anybody_sees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "h")
    home.prepare()
    app = services.Services(home)
    begun, may_end = threading.Event(), threading.Event()

    def slow(*where: Any) -> Any:
        begun.set()
        assert may_end.wait(20)
        return load(*where)

    monkeypatch.setattr(services, "load", slow)
    home.config.write_text('off_projects = ["/nowhere/shop"]\n')
    upkeep = threading.Thread(target=app.follow_settings)
    upkeep.start()
    assert begun.wait(20)
    seen: list[Any] = []

    def ask() -> None:
        app.follow_settings()
        seen.append((app.settings.off_projects, home.hook.exists()))

    request = threading.Thread(target=ask)
    request.start()
    request.join(0.5)  # it would have ended long ago
    may_end.set()
    upkeep.join()
    request.join()
    assert seen == [(("/nowhere/shop",), True)], "the hook has them too"
