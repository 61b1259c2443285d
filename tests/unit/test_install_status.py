"""How a host is wired is read from its files as they lie: whole, missing, changed, unreadable, switched off."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from foreword.agents import find
from foreword.agents.setup import AgentResidue, Block, Entry, OwnedFile, Setup
from foreword.install import status
from foreword.paths import Home
from tests.tables import table


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
            OwnedFile(folder / "plugin.js", "export {}\n"),
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


def lacks(found: status.InstallStatus) -> list[tuple[str, str]]:
    return [(lack.how, lack.what) for lack in found.gaps]


def installed_in(folder: Path) -> Setup:
    made = setup_of(folder)
    write(made)
    return made


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return installed_in(tmp_path)


def test_how_a_host_is_wired_is_read_from_its_files(tmp_path_factory, tmp_path):
    # What install wrote stands beside what the user has.
    setup = installed_in(tmp_path_factory.mktemp("x"))
    found = status.check(setup)
    assert (found.begun, found.there, found.gaps) == (True, 4, ())
    # A host that nobody wired is not begun.
    found = status.check(setup_of(tmp_path))
    assert not found.begun
    assert {how for how, _ in lacks(found)} == {"missing"}
    # What was taken out is missing.
    setup = installed_in(tmp_path_factory.mktemp("x"))
    (setup.folder / "hooks.json").write_text('{"version": 1, "hooks": {"Stop": []}}')
    assert lacks(status.check(setup)) == [("missing", "hooks.Stop"), ("missing", "servers.foreword")]
    # What says something else is changed.
    setup = installed_in(tmp_path_factory.mktemp("x"))
    text = (setup.folder / "hooks.json").read_text()
    (setup.folder / "hooks.json").write_text(text.replace("--host codex", "--host gemini").replace('"x"', '"y"'))
    (setup.folder / "plugin.js").write_text("export default 1\n")
    (setup.folder / "config.toml").write_text("[mcp_servers.foreword]\ncommand = 'z'\n")
    found = status.check(setup)
    assert {how for how, _ in lacks(found)} == {"changed"}
    assert found.begun
    # Settings that the host wrote anew still hold what install wrote.
    setup = installed_in(tmp_path_factory.mktemp("x"))
    (setup.folder / "config.toml").write_text('[mcp_servers]\n[mcp_servers.foreword]\nenabled = true\ncommand = "x"\n')
    assert status.check(setup).gaps == ()
    # A file that cannot be read is told as such.
    setup = installed_in(tmp_path_factory.mktemp("x"))
    (setup.folder / "hooks.json").write_text('{"hooks": ')
    assert ("unreadable", "hooks.Stop") in lacks(status.check(setup))
    # A pipe in place of a file keeps nobody waiting.
    setup = installed_in(tmp_path_factory.mktemp("x"))
    (setup.folder / "hooks.json").unlink()
    os.mkfifo(setup.folder / "hooks.json")
    assert ("unreadable", "hooks.Stop") in lacks(status.check(setup))
    # Comments and commas too many are passed over.
    setup = installed_in(tmp_path_factory.mktemp("x"))
    text = (setup.folder / "hooks.json").read_text()
    (setup.folder / "hooks.json").write_text("// mine\n" + text[:-1] + ", /* more */ }\n")
    assert status.check(setup).gaps == ()


def test_launchers_that_are_gone_are_named(setup, tmp_path):
    # A launcher that is gone is named.
    home = Home(tmp_path / "home")
    place = status.place_of(home, {"HOME": str(tmp_path)})
    assert str(home.launcher) in status.missing_launchers(status.check(setup), place=place)
    for path in (home.launcher, home.mcp):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o700)
    assert status.missing_launchers(status.check(setup), place=place) == ()
    os.remove(home.launcher)
    assert status.missing_launchers(status.check(setup), place=place) == (str(home.launcher),)
    os.remove(home.mcp)  # which none of these files names
    assert status.missing_launchers(status.check(setup), place=place) == (str(home.launcher),)
    elsewhere = status.place_of(Home(tmp_path / "elsewhere"), {"HOME": str(tmp_path)})
    assert status.missing_launchers(status.check(setup), place=elsewhere) == (str(home.launcher),)
    # A home with a space in its name is no other home.
    folder = tmp_path / "my folder"
    folder.mkdir()
    setup = setup_of(folder)
    write(setup)
    home = Home(folder / "home")
    for path in (home.launcher, home.mcp):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o700)
    assert status.missing_launchers(status.check(setup), place=status.place_of(home, {"HOME": str(folder)})) == ()
    # What a host writes by itself is not missed and is no sign of us.
    made = AgentResidue(tmp_path / "known.json", ("foreword",))
    setup = Setup(binary="claude", folder=tmp_path, changes=(made,))
    assert (status.check(setup).gaps, status.check(setup).files) == ((), ())
    made.file.write_text('{"foreword": {}}')
    assert not status.check(setup).begun


@table(
    ("host", "file", "text"),
    [
        ("claude-code", "settings.json", '{"disableAllHooks": true}'),
        ("claude-code", "settings.json", '{"allowManagedHooksOnly": true}'),
        ("codex", "config.toml", "[features]\nhooks = false\n"),
        ("gemini", "settings.json", '{"hooksConfig": {"enabled": false}} // mine'),
    ],
)
def test_a_switch_of_the_host_is_named_with_its_file(home, tmp_path, host, file, text):
    found = find(host).setup(status.place_of(home, {"HOME": str(tmp_path)}))
    setup = replace(found, folder=tmp_path, changes=())
    assert status.check(setup).off == ""
    (tmp_path / file).write_text(text)
    assert str(tmp_path / file) in status.check(setup).off


def test_when_it_was_wired_is_told_by_what_install_left(home):
    assert status.install_status(home, {"HOME": "/nowhere"}) == {} or all(
        each.since == 0 for each in status.install_status(home, {"HOME": "/nowhere"}).values()
    )
    (home.installed / "codex.json").write_text("{}")
    assert status._written(home.installed, "codex") > 0
