"""Plan what installing or uninstalling does to each file of an agent; then do it, all of it or nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foreword.agents.setup import AgentResidue, Block, Entry, OwnedFile, Setup
from foreword.errors import BadConfig, ForewordError
from foreword.install import jsonc, manifest, toml_block
from foreword.install.jsonc import MISSING, Keys
from foreword.install.manifest import FileRecord, Manifest
from foreword.paths import Home

FRAME = {"version"}  # what a list of an agent's holds when it lists nothing
_OURS = re.compile(r"/bin/foreword-(?:hook|mcp)(?![\w.-])")  # the launchers, wherever our home is or was
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
    leftovers: tuple[Path, ...] = ()  # whole files and folders that the agent made because of us, and that go
    residue: tuple[AgentResidue, ...] = ()  # what the agent may write by itself because of us
    after: tuple[str, ...] = ()
    plugin: bool = False
    version: str = ""

    @property
    def changed(self) -> bool:
        return bool(self.leftovers) or any(each.changed for each in self.files)


def plan(setup: Setup, *, agent: str, home: Home, plugin: bool = False, version: str = "") -> Plan:
    """Plan the installation for an agent; BadConfig where its files do not allow it."""
    known = manifest.load(home, agent) or Manifest(agent)
    residue = [change for change in setup.changes if isinstance(change, AgentResidue)]
    wanted: dict[Path, list[Written]] = {}
    for change in setup.changes:
        if not isinstance(change, AgentResidue):
            wanted.setdefault(change.file, []).append(change)
    planned = [_with_us(file, changes, known.files.get(str(file)), agent=agent) for file, changes in wanted.items()]
    planned += [
        _without_us(Path(path), record, agent=agent) for path, record in known.files.items() if Path(path) not in wanted
    ]
    planned, leftovers = _without_residue(planned, [each for each in known.residue if each not in residue])
    every = tuple(dict.fromkeys((*known.residue, *residue)))
    return Plan(agent, tuple(planned), leftovers, every, setup.after, plugin, version)


def undo_plan(agent: str, *, home: Home) -> Plan:
    """Plan how to leave an agent as it was, by the manifest."""
    known = manifest.load(home, agent) or Manifest(agent)
    planned = [_without_us(Path(path), record, agent=agent) for path, record in known.files.items()]
    planned, leftovers = _without_residue(planned, known.residue)
    return Plan(agent, tuple(planned), leftovers)


def apply(plan: Plan, *, home: Home) -> None:
    """Do what *plan* says, recorded before the first byte. After an error all is as it was, or can still be undone."""
    _check(plan.files)
    before = manifest.load(home, plan.agent)
    known = before or Manifest(plan.agent)
    made = [each.file for each in plan.files if each.changed]
    # By the agent, later; a folder that is not named after us goes again where it is empty.
    made += [each.file if each.keys else each.file / "any" for each in plan.residue if each not in known.residue]
    folders = [str(folder) for file in made for folder in manifest.missing_folders(file)]
    records = {str(each.file): each.record for each in plan.files if each.record is not None}
    every = tuple(dict.fromkeys((*known.folders, *folders)))
    done = Manifest(plan.agent, records, every, plan.residue, plan.plugin, plan.version)
    # Until all is written, a file is as the old record says or already as the new one: both can be undone by this.
    either = dict(known.files)
    for path, new in records.items():
        old = known.files.get(path, FileRecord())
        entries = (*new.entries, *(each for each in old.entries if each not in new.entries))
        either[path] = replace(new, entries=entries, made=(*old.made, *new.made), was={**new.was, **old.was})
    manifest.save(home, replace(done, files=either))
    try:
        _write(plan.files)
        manifest.save(home, done)
    except BaseException:
        if _roll_back(plan.files):
            _remove_folders(folders)
            with suppress(OSError):
                manifest.save(home, before) if before else manifest.drop(home, plan.agent)
        raise
    _remove(plan.leftovers)


def undo(agent: str, *, home: Home) -> None:
    """Leave an agent as it was. After an error its files are as they were."""
    plan, known = undo_plan(agent, home=home), manifest.load(home, agent)
    _check(plan.files)
    try:
        _write(plan.files[::-1])
    except BaseException:
        _roll_back(plan.files)
        raise
    _remove(plan.leftovers)
    _remove_folders(known.folders if known else ())
    manifest.drop(home, agent)


# --- one file, with us ---


def _with_us(file: Path, changes: Sequence[Written], record: FileRecord | None, *, agent: str) -> PlannedFile:
    """Plan one file: first without anything of ours, then with all that is wanted now."""
    if isinstance(changes[0], OwnedFile):
        current, ours = manifest.read(file), changes[0].text.encode()
        if current not in (None, ours) and record is None:
            hint = f"move it away, then run `foreword install {agent}` again"
            raise BadConfig(f"{file}: a file of your own is there", hint=hint)
        return PlannedFile(file, current, ours, FileRecord(existed=False, own=manifest.digest(ours)))
    planned = _without_us(file, record or FileRecord(), agent=agent)
    try:
        text, bare = _text(planned.old), _text(planned.new)
        if isinstance(changes[0], Block):
            gap = record.gap if record else "\n"
            body = "\n".join(each.text.strip("\n") for each in changes if isinstance(each, Block))
            is_same = toml_block.holds(text, body)
            new, gap = (text, gap) if is_same else toml_block.put(bare, body, agent=agent)
            updated = FileRecord(block=body, gap=gap)
        else:
            new, updated = _with_entries(bare, [each for each in changes if isinstance(each, Entry)], agent=agent)
            is_same = _unordered(jsonc.read(text)) == _unordered(jsonc.read(new))
    except BadConfig as exc:
        raise BadConfig(f"{file}: {exc}", hint=exc.hint) from exc
    updated = replace(updated, existed=planned.new is not None)
    return replace(planned, new=planned.old if is_same else new.encode(), record=updated)


def _with_entries(text: str, entries: Sequence[Entry], *, agent: str) -> tuple[str, FileRecord]:
    added: list[Keys] = []
    insides: dict[Keys, str] = {}
    ours = []
    for entry in entries:
        if has_entry(text, entry) and not entry.default:
            ours.append(entry)  # of an earlier installation whose manifest is gone
        elif entry.append or jsonc.find(text, entry.keys) is MISSING:
            placed = jsonc.put(text, entry.keys, entry.value, append=entry.append)
            text, added, insides = placed.text, [*added, *placed.added], {**placed.insides, **insides}
            ours.append(entry)
        elif not entry.default:
            raise BadConfig(
                f"`{'.'.join(entry.keys)}` is there already, and is not ours",
                hint=f"rename it or take it out, then run `foreword install {agent}` again",
            )
    return text, FileRecord(entries=tuple(ours), made=tuple(dict.fromkeys(added)), was=insides)


def _unordered(item: Any) -> Any:
    """Return a value in which the order of lists does not count, to compare it."""
    if isinstance(item, dict):
        return {key: _unordered(each) for key, each in item.items()}
    return sorted(json.dumps(_unordered(each), sort_keys=True) for each in item) if isinstance(item, list) else item


def _text(data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as exc:
        raise BadConfig("it is not UTF-8", hint="save it as UTF-8, then try again") from exc


# --- one file, without us ---


def _without_us(file: Path, record: FileRecord, *, agent: str) -> PlannedFile:
    """Plan one file as it would be without us; byte for byte where nobody else wrote to it since."""
    old = manifest.read(file)
    if old is None or record.own:
        return PlannedFile(file, old, None)
    try:
        text = without = _text(old)
        if record.entries:
            without = _without_entries(text, record, agent=agent)
    except BadConfig as exc:
        raise BadConfig(f"{file}: {exc}", hint=exc.hint) from exc
    if record.block:
        without = toml_block.remove(text, record.block, agent=agent, gap=record.gap)
    if without == text:
        return PlannedFile(file, old, old)
    return PlannedFile(file, old, without.encode() if record.existed or without.strip() else None)


def _without_entries(text: str, record: FileRecord, *, agent: str) -> str:
    """Remove our entries; of one that somebody has changed since, the part that runs us or has our name."""
    for entry in reversed(record.entries):
        text = text if entry.default else _without_entry(text, entry)
    for path in reversed(list(_commands_of_ours(jsonc.read(text), agent=agent))):
        text = jsonc.remove(text, path)
        if len(path) > 2 and isinstance(path[-3], int) and jsonc.find(text, path[:-1]) == []:
            text = jsonc.remove(text, path[:-2])  # a matcher with its list of hooks, which were all ours
    for entry in record.entries:
        if not entry.append and not entry.default and "foreword" in entry.keys[-1]:
            text = jsonc.remove(text, entry.keys)
    text = jsonc.emptied(text, added=record.made, insides=record.was)
    for entry in record.entries:
        # What a file must hold whoever uses it goes unless somebody else uses it now: Cursor wants its version.
        beside = jsonc.find(text, entry.keys[:-1]) if entry.default else MISSING
        if isinstance(beside, dict) and (record.existed or set(beside) == {entry.keys[-1]}):
            text = _without_entry(text, entry)
    return jsonc.emptied(text, added=record.made, insides=record.was)


def has_entry(text: str, entry: Entry) -> bool:
    """Return whether an entry is in a file, exactly as we wrote it."""
    return _without_entry(text, entry) != text


def _without_entry(text: str, entry: Entry) -> str:
    """Remove an entry where it is exactly as we wrote it."""
    current = jsonc.find(text, entry.keys)
    if not entry.append:
        return jsonc.remove(text, entry.keys) if current is not MISSING and jsonc.same(current, entry.value) else text
    values = current if isinstance(current, list) else []
    index = next((at for at, item in enumerate(values) if jsonc.same(item, entry.value)), None)
    return text if index is None else jsonc.remove(text, (*entry.keys, index))


def _commands_of_ours(item: Any, path: jsonc.Path = (), *, agent: str) -> Iterator[jsonc.Path]:
    """Yield the paths of the objects whose command runs us, for this agent, in the order of the document."""
    inner: Iterable[tuple[Any, Any]] = enumerate(item) if isinstance(item, list) else ()
    if isinstance(item, dict):
        inner = item.items()
        commands = " ".join(str(item[key]) for key in _COMMANDS if key in item)
        named = _AGENT.search(commands)
        if path and _OURS.search(commands) and (named is None or named[1].strip("',") == agent):
            yield path
            return
    for key, each in inner:
        yield from _commands_of_ours(each, (*path, key), agent=agent)


# --- what the agent writes by itself because of us ---


def _without_residue(
    planned: Sequence[PlannedFile], residue: Sequence[AgentResidue]
) -> tuple[list[PlannedFile], tuple[Path, ...]]:
    """Take what the agent wrote because of us out of its files; return them and what goes as a whole."""
    by_file = {each.file: each for each in planned}
    for file in dict.fromkeys(each.file for each in residue if each.keys):
        try:
            before = by_file.get(file) or PlannedFile(file, manifest.read(file), manifest.read(file))
            keys = [each.keys for each in residue if each.keys and each.file == file]
            without = _without_keys(before.new, keys)
        except (UnicodeDecodeError, ForewordError):
            continue  # what is no JSON is the agent's to mend, and stays
        if without != before.new:
            by_file[file] = replace(before, new=without)
    leftovers = (each.file for each in residue if not each.keys and "foreword" in each.file.name)
    return list(by_file.values()), tuple(path for path in leftovers if os.path.lexists(path))


def _without_keys(data: bytes | None, keys: Sequence[Keys]) -> bytes | None:
    """Return a JSON file without these entries and the containers that are empty then; None where nothing is left."""
    text = without = (data or b"").decode()
    for path in keys:
        without = jsonc.remove(without, path)
    if without == text:
        return data
    without = jsonc.emptied(without, added={each[:end] for each in keys for end in range(1, len(each))}, insides={})
    document = jsonc.read(without)
    return None if isinstance(document, dict) and document.keys() <= FRAME else without.encode()


# --- on the disk ---


def _check(planned: Sequence[PlannedFile]) -> None:
    for plan in planned:
        if manifest.read(plan.file) != plan.old:
            raise ForewordError(f"{plan.file} was changed by another program meanwhile", hint="run the command again")
        if plan.changed:
            manifest.check_writable(plan.file)


def _write(planned: Sequence[PlannedFile]) -> None:
    for plan in planned:
        manifest.sweep(plan.file)
        if plan.changed:
            for folder in manifest.missing_folders(plan.file) if plan.new is not None else ():
                os.mkdir(folder, manifest.OUR_FOLDER)
            manifest.write(plan.file, plan.new)


def _roll_back(planned: Sequence[PlannedFile]) -> bool:
    """Restore every file; False where one could not be: then the manifest stays for `uninstall`."""
    is_whole = True
    for plan in reversed(planned):
        try:
            if manifest.read(plan.file) != plan.old:
                manifest.write(plan.file, plan.old)
        except (ForewordError, OSError):  # a disk that is full takes back no byte either
            is_whole = False
    return is_whole


def _remove(paths: Iterable[Path]) -> None:
    """Remove files and folders that an agent made because of us."""
    for path in paths:
        with suppress(OSError):
            os.unlink(path) if path.is_symlink() or not path.is_dir() else shutil.rmtree(path)


def _remove_folders(folders: Iterable[str]) -> None:
    for folder in reversed(list(folders)):
        with suppress(OSError):
            os.rmdir(folder)  # only where nothing of the user's came into it
