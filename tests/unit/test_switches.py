"""What is switched off in a project: by settings, or by a file of the repository that can never switch anything on."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword import policy
from foreword.errors import BadRequest
from foreword.models import Project
from foreword.policy import BOTH, FILE, Policy, findings, off, opted_out, refuse_to_write
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


@table(
    ("text", "wanted"),
    [
        (b"", BOTH),
        (b"\n \n", BOTH),
        (b"capture", ("capture",)),
        (b"  inject\r\n", ("inject",)),
        (b"capture\ninject\n", BOTH),
        (b"inject\ninject\n", ("inject",)),
        (b"Capture\n", BOTH),
        (b"# capture\n", BOTH),
        (b"capture # only\n", BOTH),
        (b"capture\ncapture = on\n", BOTH),
        (b"on\n", BOTH),
        (b"\xff\xfe", BOTH),
        (b"\xef\xbb\xbfcapture\n", BOTH),
        (b"capture\n" * 513, BOTH),
        (b"capture\0", BOTH),
    ],
)
def test_the_file_means_what_it_says_or_both(tmp_path, text, wanted):
    (tmp_path / FILE).write_bytes(text)
    assert opted_out(str(tmp_path)) == wanted


@given(text=st.binary(max_size=60), choices=st.fixed_dictionaries({"capture": st.booleans(), "inject": st.booleans()}))
def test_no_file_switches_anything_on(tmp_path_factory, text, choices):
    root = tmp_path_factory.mktemp("shop")
    without = off(here(root), {**ON, **choices})
    (root / FILE).write_bytes(text)
    with_it = off(here(root), {**ON, **choices})
    assert not (without.capture and not with_it.capture)
    assert not (without.inject and not with_it.inject)
    assert with_it.capture or with_it.inject


def test_whatever_lies_there_counts_as_both_and_links_are_followed(tmp_path):
    # Whatever else lies there counts as both and nobody waits for it.
    def folder(path: Path) -> None:
        path.mkdir()

    def link(path: Path) -> None:
        path.symlink_to(tmp_path / "nowhere")

    def device(path: Path) -> None:
        path.symlink_to("/dev/zero")

    def loop(path: Path) -> None:
        path.symlink_to(path)

    for number, make in enumerate((folder, link, device, loop, os.mkfifo)):
        root = tmp_path / str(number)
        root.mkdir()
        make(root / FILE)
        assert opted_out(str(root)) == BOTH, make
    # A link is followed as the resolver does.
    (tmp_path / "elsewhere").write_text("inject\n")
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    assert opted_out(str(tmp_path)) == ("inject",)


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_counts_as_both(tmp_path):
    (tmp_path / FILE).write_text("inject\n")
    (tmp_path / FILE).chmod(stat.S_IWUSR)
    assert opted_out(str(tmp_path)) == BOTH


@given(st.text(max_size=30))
def test_no_root_makes_it_fail(root):
    opted_out(root)
