"""Plan what installing or uninstalling would do to each file of an agent; nothing is written here."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foreword.agents.setup import AgentResidue, Block, Entry, OwnedFile, Setup
from foreword.errors import BadConfig, ForewordError
from foreword.install import files, jsonc, manifest, toml_block
from foreword.install.jsonc import MISSING, Keys
from foreword.install.manifest import FileRecord, Manifest
from foreword.paths import Home

FRAME = {"version"}  # what a list of an agent's holds when it lists nothing
HEAD = 500  # characters in which a file of ours says whose it is
# The launchers wherever our home is or was, and the hook itself for those who registered it by hand.
_OURS = re.compile(r"/bin/foreword-(?:hook|mcp)(?![\w.-])|/hook\.py['\"]? --host ")
_AGENT = re.compile(r"--host (\S+)")
_COMMANDS = ("command", "bash", "args")  # the fields that agents run; elsewhere a path is only mentioned

Written = Entry | Block | OwnedFile


@dataclass(frozen=True)
class PlannedFile:
    """One file: as it is, and as it would be; None where there is no file."""

    file: Path
    old: bytes | None
    new: bytes | None
    record: FileRecord | None = None  # what the manifest records of it then; None where it is no longer ours

    @property
    def changed(self) -> bool:
        return self.old != self.new


@dataclass(frozen=True)
class Plan:
    """All that installing or uninstalling would do for one agent."""

    agent: str
    files: tuple[PlannedFile, ...] = ()
    gone: tuple[Path, ...] = ()  # whole files and folders that the agent made because of us, and that go
    residue: tuple[AgentResidue, ...] = ()  # what the agent may write by itself because of us
    after: tuple[str, ...] = ()
    plugin: bool = False
    version: str = ""

    @property
    def changed(self) -> bool:
        return bool(self.gone) or any(each.changed for each in self.files)


def plan(setup: Setup, *, agent: str, home: Home, plugin: bool = False, version: str = "") -> Plan:
    """Plan the installation for an agent; BadConfig where its files do not allow it."""
    known = manifest.load(home, agent) or Manifest(agent)
    wanted, residue = _by_file(setup)
    planned = [_with_us(file, changes, known.files.get(str(file)), agent=agent) for file, changes in wanted.items()]
    planned += [
        _without_us(Path(path), record, agent=agent) for path, record in known.files.items() if Path(path) not in wanted
    ]
    planned, gone = _without_residue(planned, [each for each in known.residue if each not in residue])
    every = tuple(dict.fromkeys((*known.residue, *residue)))
    return Plan(agent, tuple(planned), gone, every, setup.after, plugin, version)


def undo_plan(setup: Setup | None, *, agent: str, home: Home) -> Plan:
    """Plan how to leave an agent as it was: by the manifest; where that is gone, by what its entries run."""
    known = manifest.load(home, agent)
    wanted, residue = _by_file(setup)
    if known is None:
        records = {str(file): _guessed_record(file, changes, agent=agent) for file, changes in wanted.items()}
        known = Manifest(agent, {path: record for path, record in records.items() if record is not None})
        known = replace(known, residue=residue)
    planned = [_without_us(Path(path), record, agent=agent) for path, record in known.files.items()]
    planned, gone = _without_residue(planned, known.residue)
    return Plan(agent, tuple(planned), gone)


def _by_file(setup: Setup | None) -> tuple[dict[Path, list[Written]], tuple[AgentResidue, ...]]:
    """Return what we write, by its file, and what the agent itself writes."""
    wanted: dict[Path, list[Written]] = {}
    residue = []
    for change in setup.changes if setup is not None else ():
        if isinstance(change, AgentResidue):
            residue.append(change)
        else:
            wanted.setdefault(change.file, []).append(change)
    return wanted, tuple(residue)


# --- one file, with us ---


def _with_us(file: Path, changes: Sequence[Written], record: FileRecord | None, *, agent: str) -> PlannedFile:
    """Plan one file: first without anything of ours, then with all that is wanted now."""
    record = record or _guessed_record(file, changes, agent=agent)
    if isinstance(changes[0], OwnedFile):
        return _own(changes[0], ours=record is not None, agent=agent)
    without = _without_us(file, record or FileRecord(), agent=agent)
    try:
        text, bare = _text(without.old), _text(without.new)
        if isinstance(changes[0], Block):
            body = "\n".join(each.text.strip("\n") for each in changes if isinstance(each, Block))
            gap = record.gap if record else "\n"
            same = toml_block.holds(text, body)
            new, gap = (text, gap) if same else toml_block.put(bare, body, agent=agent)
            now = FileRecord(block=body, gap=gap)
        else:
            new, now = _with_entries(bare, [each for each in changes if isinstance(each, Entry)], agent=agent)
            same = _unordered(jsonc.read(text)) == _unordered(jsonc.read(new))
    except BadConfig as exc:
        raise BadConfig(f"{file}: {exc}", hint=exc.hint) from exc
    now = replace(now, existed=without.new is not None)
    return replace(without, new=without.old if same else new.encode(), record=now)


def _own(change: OwnedFile, *, ours: bool, agent: str) -> PlannedFile:
    old, new = files.read(change.file), change.text.encode()
    if old not in (None, new) and not ours:
        hint = f"move it away, then run `foreword install {agent}` again"
        raise BadConfig(f"{change.file}: a file of your own is there", hint=hint)
    return PlannedFile(change.file, old, new, FileRecord(existed=False, own=manifest.digest(new)))


def _with_entries(text: str, entries: Sequence[Entry], *, agent: str) -> tuple[str, FileRecord]:
    made: list[Keys] = []
    was: dict[Keys, str] = {}
    ours = []
    for entry in entries:
        there = jsonc.find(text, entry.keys)
        alike = there if entry.append and isinstance(there, list) else [there]
        if any(jsonc.same(each, entry.value) for each in alike if each is not MISSING):
            continue  # what the user wrote alike stays theirs
        if entry.append or there is MISSING:
            done = jsonc.put(text, entry.keys, entry.value, append=entry.append)
            text, made, was = done.text, [*made, *done.made], {**done.was, **was}
            ours.append(entry)
        elif not entry.default:
            raise BadConfig(
                f"`{'.'.join(entry.keys)}` is there already, and is not ours",
                hint=f"rename it or take it out, then run `foreword install {agent}` again",
            )
    return text, FileRecord(entries=tuple(ours), made=tuple(dict.fromkeys(made)), was=was)


def _unordered(item: Any) -> Any:
    """Return a value in which the order of lists does not count, to compare it."""
    if isinstance(item, dict):
        return {key: _unordered(each) for key, each in item.items()}
    return sorted(json.dumps(_unordered(each), sort_keys=True) for each in item) if isinstance(item, list) else item


# --- one file, without us ---


def _without_us(file: Path, record: FileRecord, *, agent: str) -> PlannedFile:
    """Plan one file as it would be without us; byte for byte where nobody else wrote to it since."""
    old = files.read(file)
    if old is None or record.own:
        return PlannedFile(file, old, None)
    try:
        text = _text(old)
        bare = _without_entries(text, record, agent=agent) if record.entries else text
    except BadConfig as exc:
        raise BadConfig(f"{file}: {exc}", hint=exc.hint) from exc
    if record.block:
        bare = toml_block.remove(text, record.block, agent=agent, gap=record.gap)
    return PlannedFile(file, old, old if bare == text else bare.encode() if record.existed or bare.strip() else None)


def _guessed_record(file: Path, changes: Sequence[Written], *, agent: str) -> FileRecord | None:
    """Return what a lost manifest would say of a file; None where nothing of ours is in it."""
    old = files.read(file)
    if old is None:
        return None
    if isinstance(changes[0], OwnedFile):
        ours = "foreword" in old[:HEAD].decode(errors="replace").lower()
        return FileRecord(own=manifest.digest(old)) if ours else None
    try:
        text = _text(old)
        if isinstance(changes[0], Block):
            body = "\n".join(each.text.strip("\n") for each in changes if isinstance(each, Block))
            ours = f"# >>> foreword {agent}" in text or toml_block.holds(text, body)
            return FileRecord(block=body) if ours else None
        entries = [each for each in changes if isinstance(each, Entry) and not each.default]
        found = tuple(entry for entry in entries if _without_entry(text, entry) != text)
        if not found and not _own_entries(text, agent=agent):
            return None
    except BadConfig as exc:
        raise BadConfig(f"{file}: {exc}", hint=exc.hint) from exc
    made = {entry.keys[:end] for entry in entries for end in range(1, len(entry.keys) + entry.append)}
    return FileRecord(entries=found or tuple(entries[:1]), made=tuple(made))


def _without_entries(text: str, record: FileRecord, *, agent: str) -> str:
    for entry in reversed(record.entries):
        text = text if entry.default else _without_entry(text, entry)
    # First exactly, then what somebody has changed since: only the part that runs us.
    text = jsonc.emptied(text, made=record.made, was=record.was)
    for own in reversed(_own_entries(text, agent=agent)):
        text = jsonc.remove(text, own)
    for entry in record.entries:
        if not entry.append and not entry.default and "foreword" in entry.keys[-1]:
            text = jsonc.remove(text, entry.keys)  # under our name, whatever somebody made of it
    text = jsonc.emptied(text, made=record.made, was=record.was)
    for entry in record.entries:
        # What a file must hold whoever uses it goes unless somebody else uses it now: Cursor wants its version.
        beside = jsonc.find(text, entry.keys[:-1]) if entry.default else MISSING
        if isinstance(beside, dict) and (record.existed or set(beside) == {entry.keys[-1]}):
            text = _without_entry(text, entry)
    return jsonc.emptied(text, made=record.made, was=record.was)


def _without_entry(text: str, entry: Entry) -> str:
    """Remove an entry where it is exactly as we wrote it."""
    there = jsonc.find(text, entry.keys)
    if not entry.append:
        return jsonc.remove(text, entry.keys) if there is not MISSING and jsonc.same(there, entry.value) else text
    items = there if isinstance(there, list) else []
    place = next((at for at, item in enumerate(items) if jsonc.same(item, entry.value)), None)
    return text if place is None else jsonc.remove(text, (*entry.keys, place))


def _own_entries(text: str, *, agent: str) -> list[tuple[Any, ...]]:
    document = jsonc.read(text) if "foreword" in text or "hook.py" in text else MISSING
    return [] if document is MISSING else [own for own in own_entries(document, agent=agent) if own]


def _runs_us(text: str, *, agent: str) -> bool:
    """Return whether a command runs us, for this agent."""
    named = _AGENT.search(text)
    return bool(_OURS.search(text)) and (named is None or named[1] == agent)


def own_entries(item: Any, *, agent: str, path: jsonc.Path = ()) -> list[jsonc.Path]:
    """Return the paths of the smallest entries that run us and nothing else, in the order of the document."""
    if isinstance(item, list):
        return [own for place, each in enumerate(item) for own in own_entries(each, agent=agent, path=(*path, place))]
    if not isinstance(item, dict):
        return []
    commands = [item.get(key) for key in _COMMANDS]
    commands += [each for value in commands if isinstance(value, list) for each in value]
    if any(isinstance(each, str) and _runs_us(each, agent=agent) for each in commands):
        return [path]
    found = [own for key, each in item.items() for own in own_entries(each, agent=agent, path=(*path, key))]
    # A matcher with its list of hooks goes as a whole where all that it lists is ours.
    lists = [(key, each) for key, each in item.items() if isinstance(each, dict | list)]
    wholly = lists and all(
        isinstance(each, list) and each and all((*path, key, place) in found for place in range(len(each)))
        for key, each in lists
    )
    return [path] if wholly and path and isinstance(path[-1], int) else found


def _text(data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as exc:
        raise BadConfig("it is not UTF-8", hint="save it as UTF-8, then try again") from exc


# --- what the agent writes by itself because of us ---


def _without_residue(
    planned: Sequence[PlannedFile], residue: Sequence[AgentResidue]
) -> tuple[list[PlannedFile], tuple[Path, ...]]:
    """Take what the agent wrote because of us out of its files; return them and what goes as a whole."""
    done = {each.file: each for each in planned}
    for file in dict.fromkeys(each.file for each in residue if each.keys):
        try:
            found = done.get(file) or PlannedFile(file, files.read(file), files.read(file))
            bare = _without_keys(found.new, [each.keys for each in residue if each.keys and each.file == file])
        except (UnicodeDecodeError, ForewordError):
            continue  # what is no JSON is the agent's to mend, and stays
        if bare != found.new:
            done[file] = replace(found, new=bare)
    gone = (each.file for each in residue if not each.keys and "foreword" in each.file.name)
    return list(done.values()), tuple(path for path in gone if os.path.lexists(path))


def _without_keys(data: bytes | None, keys: Sequence[Keys]) -> bytes | None:
    """Return a JSON file without these entries and the containers that are empty then; None where nothing is left."""
    text = (data or b"").decode()
    bare = text
    for each in keys:
        bare = jsonc.remove(bare, each)
    if bare == text:
        return data
    bare = jsonc.emptied(bare, made={each[:end] for each in keys for end in range(1, len(each))}, was={})
    document = jsonc.read(bare)
    return None if isinstance(document, dict) and document.keys() <= FRAME else bare.encode()
