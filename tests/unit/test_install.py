"""What is installed into real files can be undone, whatever happened in between."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import stat
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from foreword.agents.setup import AgentResidue, Block, Entry, OwnedFile, Setup
from foreword.cli.install import diff
from foreword.errors import BadConfig, ForewordError
from foreword.install import jsonc, manifest, toml_block
from foreword.install.plan import Plan, PlannedFile, apply, plan, undo
from foreword.install.plan import undo_plan as planned_undo
from foreword.install.status import install_target, version_of
from foreword.paths import Home
from tests.tables import table

ADAPTER = "claude-code"
SETTINGS = """\
{
  // mine
  "model": "opus", /* why not */
  "hooks": {
    "Stop": [
      { "hooks": [{ "type": "command", "command": "say done" }] }
    ],
  },
  "apiKey": "sk-1234567890abcdefghij",
}
"""
TOML = 'model = "gpt"\n\n[mcp_servers.mine]\ncommand = "x"  # mine'


class Machine:
    """A user's home with our own in it, and a host that is wired in every way there is."""

    def __init__(self, root: Path) -> None:
        self.user = root / "user"
        self.user.mkdir()
        self.home = Home(root / "h")
        self.home.prepare()
        self.environ = {"HOME": str(self.user), "PATH": os.environ["PATH"]}
        self.settings = self.user / ".agent" / "settings.json"
        self.toml = self.user / ".agent" / "config.toml"
        self.own = self.user / ".agent" / "plugins" / "deep" / "foreword.js"

    def group(self, event: str, **more: Any) -> dict[str, Any]:
        command = install_target(self.home, self.environ).command(ADAPTER, event)
        return {"matcher": "*", "hooks": [{"type": "command", "command": command, **more}]}

    def changes(self, *, timeout: int = 5, events: tuple[str, ...] = ("SessionStart", "Stop")) -> tuple[Any, ...]:
        mcp = str(self.home.mcp)
        return (
            *(
                Entry(self.settings, ("hooks", event), self.group(event, timeout=timeout), append=True)
                for event in events
            ),
            Entry(self.settings, ("mcpServers", "foreword"), {"command": mcp, "args": []}),
            Entry(self.settings, ("model",), "sonnet", default=True),
            Block(self.toml, f'[mcp_servers.foreword]\ncommand = "{mcp}"\n'),
            OwnedFile(self.own, "// foreword\nexport default 1\n"),
        )

    def setup(self, *changes: Any, **how: Any) -> Setup:
        return Setup("agent", self.user / ".agent", changes or self.changes(**how))

    def plan(self, *changes: Any, **how: Any) -> Plan:
        return plan(self.setup(*changes, **how), agent=ADAPTER, home=self.home)

    def install(self, *changes: Any, **how: Any) -> None:
        apply(self.plan(*changes, **how), home=self.home)

    def uninstall(self) -> None:
        undo(ADAPTER, home=self.home)

    def have(self, file: Path, text: str, *, mode: int = 0o644) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        file.chmod(mode)

    def have_all(self) -> None:
        self.have(self.settings, SETTINGS, mode=0o640)
        self.have(self.toml, TOML)

    def tree(self) -> dict[str, Any]:
        """Everything in the user's home: links, bytes and rights."""
        found: dict[str, Any] = {}
        for path in sorted(self.user.rglob("*")):
            mode = stat.S_IMODE(path.lstat().st_mode)
            answer = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            found[str(path.relative_to(self.user))] = (answer, mode)
        return found

    def read(self, file: Path | None = None) -> Any:
        from foreword.install.jsonc import read

        return read((file or self.settings).read_text())


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed loses nothing that it gave to the kernel; a busy disk would take most of the time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


SHAPES = ("nothing", "folder", "files")
anywhere = table("shape", SHAPES)


def machine_with(shape: str, root: Path) -> Machine:
    """A machine on which the host has left nothing, a folder, or files of its own."""
    machine = Machine(root)
    if shape == "folder":
        machine.settings.parent.mkdir()
    if shape == "files":
        machine.have_all()
    return machine


@anywhere
def test_uninstalling_leaves_the_home_as_it_was(tmp_path: Path, shape: str) -> None:
    machine = machine_with(shape, tmp_path)
    before = machine.tree()
    machine.install()
    assert machine.tree() != before
    machine.uninstall()
    assert machine.tree() == before
    assert list(machine.home.installed.iterdir()) == []


def test_what_the_user_has_stays_and_what_we_wrote_goes(tmp_path_factory):
    # The host is told everything and the user loses nothing.
    machine = Machine(tmp_path_factory.mktemp("m"))
    machine.have_all()
    machine.install()
    answer = machine.read()
    assert answer["model"] == "opus"
    assert answer["hooks"]["Stop"][0]["hooks"][0]["command"] == "say done"
    assert answer["hooks"]["Stop"][1] == machine.group("Stop", timeout=5)
    assert answer["hooks"]["SessionStart"] == [machine.group("SessionStart", timeout=5)]
    assert answer["mcpServers"] == {"foreword": {"command": str(machine.home.mcp), "args": []}}
    toml = tomllib.loads(machine.toml.read_text())
    assert toml["mcp_servers"] == {"mine": {"command": "x"}, "foreword": {"command": str(machine.home.mcp)}}
    assert machine.own.read_text().startswith("// foreword")
    lines = machine.settings.read_text().splitlines()
    assert all(line in lines or f"{line}," in lines for line in SETTINGS.splitlines())
    # What the user and the host wrote since stays.
    machine = Machine(tmp_path_factory.mktemp("m"))
    machine.have_all()
    machine.install()
    answer = machine.read()
    answer["theme"] = "dark"
    answer["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "later"}]})
    answer["hooks"]["SessionStart"][0]["hooks"][0]["timeout"] = 77  # the user made it patient
    machine.settings.write_text(json.dumps(answer))  # the host writes it its own way
    machine.toml.write_text(machine.toml.read_text() + '\n[mcp_servers.other]\ncommand = "y"\n')
    machine.uninstall()
    left = machine.read()
    assert left["theme"] == "dark"
    assert [each["hooks"][0]["command"] for each in left["hooks"]["Stop"]] == ["say done", "later"]
    assert "SessionStart" not in left["hooks"]
    assert "mcpServers" not in left
    assert "foreword" not in machine.settings.read_text() + machine.toml.read_text()
    assert tomllib.loads(machine.toml.read_text())["mcp_servers"] == {
        "mine": {"command": "x"},
        "other": {"command": "y"},
    }
    assert not machine.own.parent.parent.exists()
    # A hook that the user put beside ours stays.
    machine = Machine(tmp_path_factory.mktemp("m"))
    machine.install()
    answer = machine.read()
    answer["hooks"]["Stop"][0]["hooks"].insert(0, {"type": "command", "command": "mine"})
    machine.settings.write_text(json.dumps(answer, indent=4))
    machine.uninstall()
    left = machine.read()
    assert left["hooks"] == {"Stop": [{"matcher": "*", "hooks": [{"type": "command", "command": "mine"}]}]}
    assert left["model"] == "sonnet"  # a default, without which a host may not read the user's hook
    # After the users own changes an upgrade can still be undone.
    machine = Machine(tmp_path_factory.mktemp("m"))
    machine.have_all()
    machine.install()
    machine.settings.write_text(machine.settings.read_text().replace('"opus"', '"haiku"'))
    machine.install(timeout=9)
    machine.uninstall()
    assert machine.settings.read_text() == SETTINGS.replace('"opus"', '"haiku"')
    # What a default finds in place stays the users.
    machine = Machine(tmp_path_factory.mktemp("m"))
    machine.have(machine.settings, '{"model": "sonnet"}')
    machine.install()
    machine.settings.write_text(machine.settings.read_text() + "\n")
    machine.uninstall()
    assert machine.read() == {"model": "sonnet"}


@anywhere
def test_installing_twice_is_the_same_as_once(tmp_path: Path, shape: str) -> None:
    machine = machine_with(shape, tmp_path)
    before = machine.tree()
    machine.install()
    once = machine.tree()
    assert not machine.plan().changed
    machine.install()
    assert machine.tree() == once
    machine.uninstall()
    assert machine.tree() == before


@anywhere
def test_an_upgrade_changes_only_what_differs(tmp_path: Path, shape: str) -> None:
    machine = machine_with(shape, tmp_path)
    before = machine.tree()
    machine.install(timeout=5, events=("SessionStart", "Stop", "Old"))
    planned = machine.plan(timeout=9, events=("SessionStart", "Stop", "New"))
    assert [each.file for each in planned.files if each.changed] == [machine.settings]
    apply(planned, home=machine.home)
    hooks = machine.read()["hooks"]
    assert list(hooks) in (["SessionStart", "Stop", "New"], ["Stop", "SessionStart", "New"])
    assert machine.settings.read_text().count("foreword-hook --host") == 3
    assert machine.settings.read_text().count('"timeout": 9') == 3
    machine.uninstall()
    assert machine.tree() == before


@anywhere
def test_a_file_that_a_newer_version_does_not_need_is_as_it_was(tmp_path: Path, shape: str) -> None:
    machine = machine_with(shape, tmp_path)
    before = machine.tree()
    machine.install()
    machine.install(*machine.changes()[:1])
    assert not machine.own.exists()
    assert machine.toml.exists() == (".agent/config.toml" in before)
    machine.uninstall()
    assert machine.tree() == before


def test_what_an_earlier_version_installed_is_removed(machine: Machine) -> None:
    before = '{"model": "opus", "hooks": {}}\n'
    ours = {"command": "/old/mcp"}
    group = {"hooks": [{"type": "command", "command": "/old/hook Stop"}]}
    installed = {"model": "opus", "hooks": {"Stop": [group]}, "mcpServers": {"foreword": ours}}
    machine.have(machine.settings, json.dumps(installed))
    how = {"file": str(machine.settings), "default": False}
    record = {
        "existed": True,
        "entries": [
            {**how, "keys": ["hooks", "Stop"], "value": group, "append": True},
            {**how, "keys": ["mcpServers", "foreword"], "value": ours, "append": False},
        ],
        "made": [["hooks", "Stop"], ["mcpServers"]],
        "was": [[["hooks"], ""]],
        "block": "",
        "gap": "\n",
        "own": "",
    }
    stored = {"agent": ADAPTER, "files": {str(machine.settings): record}, "folders": [], "residue": []}
    (machine.home.installed / f"{ADAPTER}.json").write_text(json.dumps({**stored, "plugin": False, "version": "1"}))
    machine.uninstall()
    assert machine.settings.read_text() == before.strip()


@anywhere
def test_without_the_manifest_nothing_is_doubled_and_all_of_ours_goes(tmp_path: Path, shape: str) -> None:
    machine = machine_with(shape, tmp_path)
    machine.install()
    shutil.rmtree(machine.home.installed)
    machine.home.prepare()
    assert not machine.plan().changed
    machine.install()
    machine.uninstall()
    assert not any(b"foreword" in (answer or b"") for answer, _ in machine.tree().values())
    assert not machine.own.exists()


@table(
    "text",
    ['{"hooks": {"Stop": []}}', '{"hooks":{"Stop":{}},"mcpServers":{}}', '{"hooks":{},"a":1,"hooks":{"Stop":[ ]}}'],
)
def test_what_the_user_has_empty_stays_empty(machine: Machine, text: str) -> None:
    machine.have(machine.settings, text)
    machine.uninstall()
    assert machine.settings.read_text() == text
    with suppress(BadConfig):
        machine.install()
    machine.uninstall()
    assert machine.settings.read_text() == text


def test_entries_of_ours_are_replaced_and_those_of_others_stay(tmp_path_factory):
    # Entries of another host are left alone.
    machine = Machine(tmp_path_factory.mktemp("m"))
    other = {
        "hooks": [
            {"type": "command", "command": install_target(machine.home, machine.environ).command("codex", "Stop")}
        ]
    }
    machine.have(machine.settings, json.dumps({"hooks": {"Stop": [other]}}))
    machine.install()
    assert other in machine.read()["hooks"]["Stop"]


def test_what_stands_in_the_way_is_told_and_nothing_is_written(tmp_path_factory):
    # A name that the user has taken is told and nothing is written.
    machine = Machine(tmp_path_factory.mktemp("m"))
    machine.have(machine.settings, '{"mcpServers": {"foreword": {"command": "my-foreword"}}}')
    before = machine.tree()
    with pytest.raises(BadConfig, match=r"settings.json: `mcpServers.foreword` is there already") as raised:
        machine.install()
    assert "rename it or take it out" in raised.value.hint
    assert machine.tree() == before
    # Bytes that are no text are told.
    machine = Machine(tmp_path_factory.mktemp("m"))
    machine.have(machine.settings, "")
    machine.settings.write_bytes('{"a": "é"}'.encode("utf-16"))
    with pytest.raises(BadConfig, match="is not UTF-8"):
        machine.install()
    # A file of the users is never taken for ours.
    machine = Machine(tmp_path_factory.mktemp("m"))
    machine.have(machine.own, "// mine\n")
    with pytest.raises(BadConfig, match="a file of your own is there"):
        machine.install()
    machine.uninstall()
    assert machine.own.read_text() == "// mine\n"
    # A read only file is told and nothing is written.
    machine = Machine(tmp_path_factory.mktemp("m"))
    machine.have_all()
    machine.toml.chmod(0o444)
    before = machine.tree()
    with pytest.raises(ForewordError, match=r"config\.toml is read-only"):
        machine.install()
    assert machine.tree() == before
    assert manifest.load(machine.home, ADAPTER) is None
    # A folder in the place of a file is told.
    machine = Machine(tmp_path_factory.mktemp("m"))
    machine.settings.mkdir(parents=True)
    with pytest.raises(ForewordError, match="is not a settings file"):
        machine.install()
    # A file that changes in between is told.
    machine = Machine(tmp_path_factory.mktemp("m"))
    machine.have_all()
    planned = machine.plan()
    machine.settings.write_text("{}")
    with pytest.raises(ForewordError, match="was changed by another program meanwhile"):
        apply(planned, home=machine.home)
    assert machine.settings.read_text() == "{}"


@table(
    ("file", "text", "answer"),
    [
        ("settings", '{"hooks": []}', "`hooks` in line 1 is not an object"),
        ("settings", "{\n oops }", "it is not JSON: Expecting property name enclosed in double quotes in line 2"),
        ("toml", '[mcp_servers.foreword]\ncommand = "mine"\n', "do not fit behind"),
        ("toml", 'mcp_servers = { foreword = { command = "x" } }\n', "do not fit behind"),
        ("toml", 'mcp_servers = { mine = { command = "x" } }\n', "do not fit behind"),
        ("toml", "a = \n", "not TOML"),
    ],
)
def test_a_file_where_ours_does_not_fit_is_told_and_stays(machine: Machine, file: str, text: str, answer: str) -> None:
    path = getattr(machine, file)
    machine.have(machine.settings, "{}")
    machine.have(path, text)
    before = machine.tree()
    with pytest.raises(BadConfig, match=rf"{path.name}: .*{re.escape(answer)}"):
        machine.install()
    assert machine.tree() == before


@table("text", ["", "\n", "a = 1", "a = 1\n", "a = 1\r\n[b]\r\n", "\ufeffa = 1\n\n\n"])
@table("more", ["", "[later]\nx = 1\n"])
def test_a_block_goes_and_leaves_what_stands_around_it(text: str, more: str) -> None:
    body = '[x.foreword]\ncommand = "/h/bin/foreword-mcp"'
    placed, gap = toml_block.put(text, body, agent="codex")
    assert toml_block.holds(placed, body)
    left = toml_block.remove(placed + more, body, agent="codex", gap=gap)
    assert left == text + more or (more and left in (f"{text}\n{more}", f"{text}\r\n{more}"))


def test_a_block_of_toml_goes_alone_whatever_was_done_around_it(machine: Machine):
    # A table that a host adds between our marks stays.
    body = '[mcp_servers.foreword]\ncommand = "/h/bin/foreword-mcp"'
    theirs = '\n[projects."/x"]\ntrust_level = "trusted"\n'
    placed, gap = toml_block.put("a = 1\n", body, agent="codex")
    mixed = placed.replace("# <<< foreword", f"{theirs}# <<< foreword")
    left = toml_block.remove(mixed, body, agent="codex", gap=gap)
    assert tomllib.loads(left) == {"a": 1, "projects": {"/x": {"trust_level": "trusted"}}}
    assert "foreword" not in left
    edited = mixed.replace("command =", "enabled = true\ncommand =")
    assert tomllib.loads(toml_block.remove(edited, body, agent="codex")) == tomllib.loads(left)
    # Codex writes the tables anew and ours are still known.
    machine.have(machine.toml, TOML + "\n")
    machine.install()
    text = machine.toml.read_text()
    begin = text.index("# >>> foreword")
    rewritten = text[:begin] + text[text.index("[mcp_servers.foreword]") :]
    rewritten = rewritten.replace("# <<< foreword", '\n[mcp_servers.other]\ncommand = "y"\n# <<< foreword')
    machine.toml.write_text(rewritten)
    assert not machine.plan().changed
    machine.install()
    machine.uninstall()
    assert machine.toml.read_text() == TOML + '\n\n[mcp_servers.other]\ncommand = "y"\n'
    # Our table goes where the marks are lost.
    body = '[mcp_servers.foreword]\ncommand = "/h/bin/foreword-mcp"'
    text = f'a = 1\n\n{body}\n\n[mcp_servers.foreword.env]\nX = "1"\n\n[b]\nc = 2\n'
    assert tomllib.loads(toml_block.remove(text, body, agent="codex")) == {"a": 1, "b": {"c": 2}}
    placed, _ = toml_block.put("a = 1\n", body, agent="codex")
    without_end = placed.replace("# <<< foreword codex\n", "[b]\nc = 2\n")
    assert tomllib.loads(toml_block.remove(without_end, body, agent="codex")) == {"a": 1, "b": {"c": 2}}
    # A remark of the users is never taken for ours.
    body = '[mcp_servers.foreword]\ncommand = "/h/bin/foreword-mcp"'
    theirs = '[mcp_servers.mine]\ncommand = "x"  # not /h/bin/foreword-mcp\n'
    note = "# what stands below is mine\n[b]\nc = 2\n"
    assert toml_block.remove(f"{theirs}\n{body}\n\n{note}", body, agent="codex") == f"{theirs}\n\n{note}"
    # Lines between our marks keep their ends.
    body = '[mcp_servers.foreword]\ncommand = "/h/bin/foreword-mcp"'
    theirs = "[projects.x]\r\ntrust = 1\r\n"
    placed, gap = toml_block.put("a = 1\r\n", body, agent="codex")
    mixed = placed.replace("# <<< foreword", f"{theirs}# <<< foreword")
    assert toml_block.remove(mixed, body, agent="codex", gap=gap) == f"a = 1\r\n{theirs}"


def test_what_is_recorded_is_private_and_a_crash_leaves_nothing(tmp_path_factory):
    # The manifest is for the user alone.
    machine = Machine(tmp_path_factory.mktemp("m"))
    machine.have_all()
    machine.install()
    for path in machine.home.installed.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(machine.home.installed.stat().st_mode) == 0o700
    # What a crash left beside a file is taken away.
    machine = Machine(tmp_path_factory.mktemp("m"))
    machine.have_all()
    manifest.write(machine.settings, SETTINGS.encode())
    left = machine.settings.with_name(".foreword-new-settings")
    left.write_text("half")
    machine.install()
    assert not left.exists()


def test_links_are_written_through_and_stay_links(tmp_path_factory):
    # A linked settings file is written through.
    machine = Machine(tmp_path_factory.mktemp("m"))
    real = machine.user / "dotfiles" / "settings.json"
    machine.have(real, SETTINGS, mode=0o604)
    machine.settings.parent.mkdir()
    machine.settings.symlink_to("../dotfiles/settings.json")
    before = machine.tree()
    machine.install()
    assert machine.settings.is_symlink()
    assert "foreword" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o604
    machine.uninstall()
    assert machine.tree() == before
    # A link to nowhere stays a link.
    machine = Machine(tmp_path_factory.mktemp("m"))
    machine.settings.parent.mkdir()
    machine.settings.symlink_to("../dotfiles/settings.json")
    before = machine.tree()
    machine.install()
    assert machine.settings.is_symlink()
    machine.uninstall()
    assert machine.tree() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_of_a_file_stays(machine: Machine) -> None:
    machine.have_all()
    os.chown(machine.settings, 1234, 1235)
    machine.install()
    found = machine.settings.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 1235, 0o640)


# --- what the host writes by itself ---


class Lists:
    """A host's own files, into which it writes of us when it is started."""

    def __init__(self, machine: Machine) -> None:
        self.folder = machine.user / ".agent" / "own"
        self.known, self.state = self.folder / "known.json", machine.user / ".agent.json"
        self.data, self.room = self.folder / "data" / "foreword-x", self.folder / "room"

    def changes(self) -> tuple[AgentResidue, ...]:
        return (
            AgentResidue(self.known, ("plugins", "foreword@x")),
            AgentResidue(self.state, ("usage", "foreword@x")),
            AgentResidue(self.state, ("usage", "foreword:go")),
            AgentResidue(self.data),
            AgentResidue(self.room),
        )

    def start(self) -> None:
        """Let the host load us, as a host writes its lists: whole, and in its own form."""
        for file, frame, path in (
            (self.known, {"version": 2, "plugins": {}}, "plugins"),
            (self.state, {"starts": 1}, "usage"),
        ):
            answer = json.loads(file.read_text()) if file.exists() else frame
            answer.setdefault(path, {})["foreword@x"] = {"at": "/somewhere"}
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(answer, indent=2))
        self.data.mkdir(parents=True, exist_ok=True)
        (self.data / "some").write_text("x")
        self.room.mkdir(exist_ok=True)


LISTS = ("no lists", "lists")


def lists_on(machine: Machine, present: str) -> Lists:
    found = Lists(machine)
    machine.have(found.state, json.dumps({"starts": 1}, indent=2))
    if present == "lists":
        machine.have(found.known, json.dumps({"version": 2, "plugins": {"mine": [1, {"a": "b"}]}}, indent=2))
        machine.have(found.folder / "data" / "mine" / "some", "x")
        found.room.mkdir()
    return found


@table("shape, present", itertools.product(SHAPES, LISTS))
def test_what_a_host_writes_of_us_is_not_written_by_us(tmp_path: Path, shape: str, present: str) -> None:
    machine = machine_with(shape, tmp_path)
    lists = lists_on(machine, present)
    before = machine.tree()
    machine.install(*lists.changes())
    assert machine.tree() == before
    assert not machine.plan(*lists.changes()).changed
    machine.uninstall()
    assert machine.tree() == before


@table("shape, present", itertools.product(SHAPES, LISTS))
def test_what_a_host_wrote_of_us_goes_with_the_rest(tmp_path: Path, shape: str, present: str) -> None:
    machine = machine_with(shape, tmp_path)
    lists = lists_on(machine, present)
    before = machine.tree()
    machine.install(*machine.changes(), *lists.changes())
    lists.start()
    assert not machine.plan(*machine.changes(), *lists.changes()).changed
    machine.install(*machine.changes(), *lists.changes())
    lists.start()
    machine.uninstall()
    assert machine.tree() == before


@table("shape, present", itertools.product(SHAPES, LISTS))
def test_what_is_not_wanted_any_more_goes_at_the_next_install(tmp_path: Path, shape: str, present: str) -> None:
    machine = machine_with(shape, tmp_path)
    lists = lists_on(machine, present)
    before = machine.tree()
    machine.install(*machine.changes())
    without = machine.tree()
    machine.install(*machine.changes(), *lists.changes())
    lists.start()
    assert machine.plan(*machine.changes()).changed
    machine.install(*machine.changes())
    left = {path: answer for path, answer in machine.tree().items() if answer != without.get(path)}
    assert all(answer is None for answer, _ in left.values())  # folders that the host made, which go at last
    machine.uninstall()
    assert machine.tree() == before


def test_what_the_host_wrote_of_us_goes_and_what_others_wrote_stays(tmp_path_factory):
    # What others wrote beside us since stays.
    machine = Machine(tmp_path_factory.mktemp("m"))
    lists = Lists(machine)
    machine.install(*machine.changes(), *lists.changes())
    lists.start()
    answer = json.loads(lists.known.read_text())
    lists.known.write_text(json.dumps(answer | {"plugins": answer["plugins"] | {"mine": 1}}))
    (lists.room / "theirs").write_text("{}")
    machine.uninstall()
    assert json.loads(lists.known.read_text()) == {"version": 2, "plugins": {"mine": 1}}
    assert json.loads(lists.state.read_text()) == {"starts": 1}
    assert [path.name for path in sorted(lists.folder.rglob("*"))] == ["known.json", "room", "theirs"]
    assert not machine.settings.exists()
    # Installed again without the manifest what is named after us is still ours.
    machine = Machine(tmp_path_factory.mktemp("m"))
    lists = Lists(machine)
    changes = (*machine.changes(), *lists.changes())
    machine.install(*changes)
    lists.start()
    shutil.rmtree(machine.home.root)
    machine.home.prepare()
    machine.install(*changes)
    machine.uninstall()
    assert not lists.data.exists()
    assert not lists.known.exists()
    assert "foreword" not in lists.state.read_text()
    # A link named after us goes and what it leads to stays.
    machine = Machine(tmp_path_factory.mktemp("m"))
    lists = Lists(machine)
    machine.install(*lists.changes())
    machine.have(machine.user / "mine" / "some", "x")
    lists.data.parent.mkdir(parents=True)
    lists.data.symlink_to(machine.user / "mine")
    machine.uninstall()
    assert list(machine.tree()) == ["mine", "mine/some"]


@table("text", ["{ oops", "[]", "", "null", '{"plugins": 1}', '{"plugins": ["foreword@x"]}'])
def test_a_list_that_is_not_what_we_know_is_left_to_its_host(machine: Machine, text: str) -> None:
    lists = Lists(machine)
    machine.install(*machine.changes(), *lists.changes())
    machine.have(lists.known, text)
    machine.uninstall()
    assert lists.known.read_text() == text
    assert not machine.own.exists()


@table("text", ["{ }", '{"plugins": {\n}, "version": 2}', '{"plugins" : { "mine" : 1 , } } // mine'])
def test_a_list_in_which_nothing_of_us_stands_stays_byte_for_byte(machine: Machine, text: str) -> None:
    lists = Lists(machine)
    machine.have(lists.known, text)
    before = machine.tree()
    machine.install(*machine.changes(), *lists.changes())
    machine.uninstall()
    assert machine.tree() == before


# --- kill -9 ---

CALLS = ("replace", "mkdir", "unlink", "rmdir", "fsync")


def dies(work: Callable[[], object], *, at: int) -> bool:
    """Whether a process that does this work, killed before its n-th touch of the disk, ever came to it."""
    pid = os.fork()
    if pid == 0:
        left = at

        def deadly(real: Callable[..., Any], *args: Any, **more: Any) -> Any:
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return real(*args, **more)

        for name in CALLS:
            setattr(os, name, partial(deadly, getattr(os, name)))
        with suppress(BaseException):
            work()
            os._exit(0)
        os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def points(machine: Machine, work: Callable[[], object]) -> Iterator[int]:
    """Kills the work at every point, one after another; each time the body must put things right again."""
    at = 0
    while dies(work, at=at):
        yield at
        at += 1
    assert at > 5


@table("shape, again", [("nothing", False), ("nothing", True), ("files", True)])
def test_killed_anywhere_while_installing_it_can_be_undone(tmp_path: Path, shape: str, again: bool) -> None:
    machine = machine_with(shape, tmp_path)
    before = machine.tree()
    for at in points(machine, machine.install):
        if again:
            machine.install()
            assert not machine.plan().changed, at
        machine.uninstall()
        assert machine.tree() == before, at


@table("shape", ("nothing", "files"))
def test_killed_anywhere_while_upgrading_it_can_be_undone(tmp_path: Path, shape: str) -> None:
    machine = machine_with(shape, tmp_path)
    before = machine.tree()
    machine.install()
    for at in points(machine, lambda: machine.install(timeout=9, events=("SessionStart", "New"))):
        machine.uninstall()
        assert machine.tree() == before, at
        machine.install()


@table("shape", ("nothing", "files"))
def test_killed_anywhere_while_uninstalling_it_can_be_done_again(tmp_path: Path, shape: str) -> None:
    machine = machine_with(shape, tmp_path)
    before = machine.tree()
    machine.install()
    for at in points(machine, machine.uninstall):
        machine.uninstall()
        assert machine.tree() == before, at
        machine.install()


@table("shape, present", [("nothing", "no lists"), ("files", "lists")])
def test_killed_anywhere_while_uninstalling_what_the_host_wrote_goes_all_the_same(
    tmp_path: Path, shape: str, present: str
) -> None:
    machine = machine_with(shape, tmp_path)
    lists = lists_on(machine, present)
    before = machine.tree()

    def install() -> None:
        machine.install(*machine.changes(), *lists.changes())
        lists.start()

    install()
    for at in points(machine, machine.uninstall):
        machine.uninstall()
        assert machine.tree() == before, at
        install()


@table("name", [*CALLS, "fsync"])
def test_a_disk_that_fails_leaves_all_as_it_was(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = machine_with("files", tmp_path)
    before, real = machine.tree(), getattr(os, name)
    for at in range(100):
        left = at

        def failing(*args: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left == -1:
                raise OSError(28, "No space left on device")
            return real(*args, **more)

        planned = machine.plan()
        monkeypatch.setattr(os, name, failing)
        try:
            apply(planned, home=machine.home)
        except OSError:
            monkeypatch.setattr(os, name, real)
            assert machine.tree() == before, at
        else:
            break
        finally:
            monkeypatch.setattr(os, name, real)
    assert not machine.plan().changed


def test_on_a_disk_that_stays_full_what_was_written_can_be_undone_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = machine_with("files", tmp_path)
    before, real = machine.tree(), os.replace
    for most in range(1, 6):
        written: list[Any] = []

        def failing(source: Any, target: Any, *, most: int = most, written: list[Any] = written) -> None:
            if Path(target).is_relative_to(machine.user):
                written.append(target)
                if len(written) > most:
                    raise OSError(28, "No space left on device")
            real(source, target)

        monkeypatch.setattr(os, "replace", failing)
        with suppress(OSError):
            machine.install()
        monkeypatch.setattr(os, "replace", real)
        machine.uninstall()
        assert machine.tree() == before, most


def test_what_would_be_undone_is_told_beforehand(machine: Machine) -> None:
    machine.install()
    planned = planned_undo(ADAPTER, home=machine.home)
    assert {each.file for each in planned.files if each.changed} == {machine.settings, machine.toml, machine.own}
    assert all(each.new is None for each in planned.files)
    assert not planned_undo("codex", home=machine.home).changed


# --- found ---


def test_a_version_is_found_without_telling_the_program_anything(tmp_path_factory):
    # A program is asked for its version with nothing of the users.
    machine = Machine(tmp_path_factory.mktemp("m"))
    program = machine.user / "agent"
    machine.have(program, '#!/bin/sh\necho "$HOME $SECRET $1" > $(dirname $0)/seen\necho agent v4.5.6 ok\n', mode=0o755)
    environ = {"HOME": str(machine.user), "SECRET": "s3cret", "PATH": os.environ["PATH"]}
    assert version_of(str(program), environ=environ) == "4.5.6"
    seen = (machine.user / "seen").read_text()
    assert "s3cret" not in seen
    assert str(machine.user) not in seen
    assert "--version" in seen
    machine.have(program, "#!/bin/sh\nexit 1\n", mode=0o755)
    assert version_of(str(program), environ=environ) == ""


def test_secrets_beside_a_change_are_not_shown(machine: Machine) -> None:
    old = json.dumps({"apiKey": "ghp_" + "a1B2" * 9, "notes": "x" * 300})
    new = jsonc.put(old, ("mcp", "foreword"), {"command": "us"}).text
    shown = "\n".join(diff(PlannedFile(machine.settings, old.encode(), new.encode())))
    assert '"mcp"' in shown
    assert "a1B2" not in shown
