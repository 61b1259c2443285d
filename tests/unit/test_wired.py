"""How a host is wired is read from its files as they lie: whole, missing, changed, unreadable, switched off."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from foreword.hosts import find
from foreword.install import wired
from foreword.paths import Home
from foreword.wiring import Block, Entry, Left, Own, Setup


def setup_of(folder: Path) -> Setup:
    hook = {"hooks": [{"type": "command", "command": f"{folder}/home/bin/foreword-hook --host codex Stop"}]}
    return Setup(
        binary="codex",
        folder=folder,
        changes=(
            Entry(folder / "hooks.json", ("version",), 1, default=True),
            Entry(folder / "hooks.json", ("hooks", "Stop"), hook, append=True),
            Entry(folder / "hooks.json", ("servers", "foreword"), {"command": "x"}),
            Block(folder / "config.toml", "[mcp_servers.foreword]\ncommand = 'x'\n"),
            Own(folder / "plugin.js", "export {}\n"),
        ),
    )


def write(setup: Setup) -> None:
    """What install would leave."""
    said = {
        "version": 1,
        "hooks": {"Stop": [{"hooks": ["the user's own"]}, setup.changes[1].value]},
        "servers": {"foreword": {"command": "x"}, "other": {}},
    }
    (setup.folder / "hooks.json").write_text(json.dumps(said))
    (setup.folder / "config.toml").write_text("model = 'm'\n[mcp_servers.foreword]\ncommand = 'x'\n")
    (setup.folder / "plugin.js").write_text("export {}\n")


def lacks(found: wired.Wired) -> list[tuple[str, str]]:
    return [(lack.how, lack.what) for lack in found.lacks]


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    made = setup_of(tmp_path)
    write(made)
    return made


def test_what_install_wrote_stands_beside_what_the_user_has(setup):
    found = wired.stands(setup)
    assert (found.begun, found.there, found.lacks) == (True, 4, ())


def test_a_host_that_nobody_wired_is_not_begun(tmp_path):
    found = wired.stands(setup_of(tmp_path))
    assert not found.begun
    assert {how for how, _ in lacks(found)} == {"missing"}


def test_what_was_taken_out_is_missing(setup):
    (setup.folder / "hooks.json").write_text('{"version": 1, "hooks": {"Stop": []}}')
    assert lacks(wired.stands(setup)) == [("missing", "hooks.Stop"), ("missing", "servers.foreword")]


def test_what_says_something_else_is_changed(setup):
    text = (setup.folder / "hooks.json").read_text()
    (setup.folder / "hooks.json").write_text(text.replace("--host codex", "--host gemini").replace('"x"', '"y"'))
    (setup.folder / "plugin.js").write_text("export default 1\n")
    (setup.folder / "config.toml").write_text("[mcp_servers.foreword]\ncommand = 'z'\n")
    found = wired.stands(setup)
    assert {how for how, _ in lacks(found)} == {"changed"}
    assert found.begun


def test_settings_that_the_host_wrote_anew_still_hold_what_install_wrote(setup):
    (setup.folder / "config.toml").write_text('[mcp_servers]\n[mcp_servers.foreword]\nenabled = true\ncommand = "x"\n')
    assert wired.stands(setup).lacks == ()


def test_a_file_that_cannot_be_read_is_told_as_such(setup):
    (setup.folder / "hooks.json").write_text('{"hooks": ')
    assert ("unreadable", "hooks.Stop") in lacks(wired.stands(setup))


def test_a_pipe_in_place_of_a_file_keeps_nobody_waiting(setup):
    (setup.folder / "hooks.json").unlink()
    os.mkfifo(setup.folder / "hooks.json")
    assert ("unreadable", "hooks.Stop") in lacks(wired.stands(setup))


def test_comments_and_commas_too_many_are_passed_over(setup):
    text = (setup.folder / "hooks.json").read_text()
    (setup.folder / "hooks.json").write_text("// mine\n" + text[:-1] + ", /* more */ }\n")
    assert wired.stands(setup).lacks == ()


def test_a_launcher_that_is_gone_is_named(setup, tmp_path):
    home = Home(tmp_path / "home")
    place = wired.place_of(home, {"HOME": str(tmp_path)})
    assert str(home.launcher) in wired.strays(wired.stands(setup), place=place)
    for path in (home.launcher, home.mcp):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o700)
    assert wired.strays(wired.stands(setup), place=place) == ()
    os.remove(home.launcher)
    assert wired.strays(wired.stands(setup), place=place) == (str(home.launcher),)
    os.remove(home.mcp)  # which none of these files names
    assert wired.strays(wired.stands(setup), place=place) == (str(home.launcher),)
    elsewhere = wired.place_of(Home(tmp_path / "elsewhere"), {"HOME": str(tmp_path)})
    assert wired.strays(wired.stands(setup), place=elsewhere) == (str(home.launcher),)


def test_a_home_with_a_space_in_its_name_is_no_other_home(tmp_path):
    folder = tmp_path / "my folder"
    folder.mkdir()
    setup = setup_of(folder)
    write(setup)
    home = Home(folder / "home")
    for path in (home.launcher, home.mcp):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o700)
    assert wired.strays(wired.stands(setup), place=wired.place_of(home, {"HOME": str(folder)})) == ()


def test_what_a_host_writes_by_itself_is_not_missed_and_is_no_sign_of_us(tmp_path):
    made = Left(tmp_path / "known.json", ("foreword",))
    setup = Setup(binary="claude", folder=tmp_path, changes=(made,))
    assert (wired.stands(setup).lacks, wired.stands(setup).files) == ((), ())
    made.file.write_text('{"foreword": {}}')
    assert not wired.stands(setup).begun


@pytest.mark.parametrize(
    ("host", "file", "text"),
    [
        ("claude-code", "settings.json", '{"disableAllHooks": true}'),
        ("claude-code", "settings.json", '{"allowManagedHooksOnly": true}'),
        ("codex", "config.toml", "[features]\nhooks = false\n"),
        ("gemini", "settings.json", '{"hooksConfig": {"enabled": false}} // mine'),
    ],
)
def test_a_switch_of_the_host_is_named_with_its_file(home, tmp_path, host, file, text):
    found = find(host).setup(wired.place_of(home, {"HOME": str(tmp_path)}))
    setup = replace(found, folder=tmp_path, changes=())
    assert wired.stands(setup).off == ""
    (tmp_path / file).write_text(text)
    assert str(tmp_path / file) in wired.stands(setup).off


def test_when_it_was_wired_is_told_by_what_install_left(home):
    assert wired.look(home, {"HOME": "/nowhere"}) == {} or all(
        each.since == 0 for each in wired.look(home, {"HOME": "/nowhere"}).values()
    )
    (home.installed / "codex.json").write_text("{}")
    assert wired._written(home.installed, "codex") > 0
