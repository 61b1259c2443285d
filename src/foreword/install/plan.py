"""Plan what installing or uninstalling would do to each file of an agent; nothing is written here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foreword.agents.setup import AgentResidue, Block, Entry, OwnedFile, Setup
from foreword.errors import BadConfig, ForewordError
from foreword.install import files, jsonc, manifest, ownership, toml_block
from foreword.install.jsonc import MISSING, Keys
from foreword.install.manifest import FileRecord, Manifest
from foreword.paths import Home

FRAME = {"version"}  # what a list of an agent's holds when it lists nothing
HEAD = 500  # characters in which a file of ours says whose it is


@dataclass(frozen=True)
class Planned:
    """One file: as it is, as it would be, and as it is without us. None where there is no file."""

    file: Path
    old: bytes | None
    new: bytes | None
    base: bytes | None
    record: FileRecord | None = None  # what the manifest records of it then; None where it is no longer ours
    executable: bool = False
    keep_copy: bool = False  # a file of ours that somebody changed: their version is kept

    @property
    def changed(self) -> bool:
        return self.old != self.new


@dataclass(frozen=True)
class Plan:
    """All that installing or uninstalling would do for one agent."""

    agent: str
    files: tuple[Planned, ...] = ()
    gone: tuple[Path, ...] = ()  # whole files and folders that the agent made because of us, and that go
    residue: tuple[AgentResidue, ...] = ()  # what the manifest records of such things then
    preexisting: tuple[AgentResidue, ...] = ()
    after: tuple[str, ...] = ()
    plugin: bool = False

    @property
    def changed(self) -> bool:
        return bool(self.gone) or any(each.changed for each in self.files)


def plan(setup: Setup, *, agent: str, home: Home, plugin: bool = False) -> Plan:
    """Plan the installation for an agent; BadConfig where its files do not allow it."""
    known = manifest.load(home, agent) or Manifest(agent)
    wanted, residue = _sorted(setup)
    planned = [
        _with_us(file, changes, known.files.get(str(file)), agent=agent, home=home) for file, changes in wanted.items()
    ]
    for path, record in known.files.items():
        if Path(path) not in wanted:
            planned.append(_planned_removal(Path(path), (), record, agent=agent, home=home))
    were_here = any(each.old not in (None, each.base) for each in planned)
    preexisting = (*known.preexisting, *_preexisting(residue, besides=known.residue, were_here=were_here))
    stale = [each for each in known.residue if each not in residue]
    planned, gone = _plan_residue(planned, stale, preexisting=preexisting)
    all_residue = tuple(dict.fromkeys((*known.residue, *residue)))
    return Plan(agent, tuple(planned), gone, all_residue, preexisting, after=setup.after, plugin=plugin)


def undo_plan(setup: Setup | None, *, agent: str, home: Home) -> Plan:
    """Plan how to leave an agent as it was: by the manifest; where that is gone, by what its entries run."""
    known = manifest.load(home, agent)
    wanted, residue = _sorted(setup)
    if known is None:
        planned = [_planned_removal(file, changes, None, agent=agent, home=home) for file, changes in wanted.items()]
    else:
        planned = [
            _planned_removal(Path(path), (), record, agent=agent, home=home) for path, record in known.files.items()
        ]
    if known is not None and (known.residue or not known.plugin):
        residue, preexisting = known.residue, known.preexisting
    else:  # no manifest, or one of a version that did not record it
        preexisting = _preexisting(residue, were_here=True)
    planned, gone = _plan_residue(planned, residue, preexisting=preexisting)
    return Plan(agent, tuple(each for each in planned if each.changed or known is not None), gone)


def _sorted(setup: Setup | None) -> tuple[dict[Path, list[Entry | Block | OwnedFile]], tuple[AgentResidue, ...]]:
    """Return what we write, by its file, and what the agent itself writes."""
    wanted: dict[Path, list[Entry | Block | OwnedFile]] = {}
    residue = []
    for change in setup.changes if setup is not None else ():
        if isinstance(change, AgentResidue):
            residue.append(change)
        else:
            wanted.setdefault(change.file, []).append(change)
    return wanted, tuple(residue)


def _plan_residue(
    planned: Sequence[Planned], residue: Sequence[AgentResidue], *, preexisting: Sequence[AgentResidue]
) -> tuple[list[Planned], tuple[Path, ...]]:
    """Take what the agent wrote because of us out of its files; return them and what goes as a whole."""
    done = {each.file: each for each in planned}
    entries: dict[Path, list[AgentResidue]] = {}
    for each in residue:
        if each.keys:
            entries.setdefault(each.file, []).append(each)
    for file, here in entries.items():
        found = done.get(file) or _as_it_is(file)
        bare, base = (
            None if data is None else _without_residue(data, here, preexisting=preexisting)
            for data in (found.new, found.base)
        )
        if bare != found.new or file in done:
            done[file] = replace(found, new=bare, base=base)
    return list(done.values()), tuple(each.file for each in residue if _is_removable(each, preexisting=preexisting))


def _as_it_is(file: Path) -> Planned:
    try:
        data = files.read(file)
    except ForewordError:
        data = None  # it is the agent's, and nothing of it was ours to write
    return Planned(file, data, data, data)


# --- one file, with us ---


def _with_us(
    file: Path, changes: Sequence[Entry | Block | OwnedFile], record: FileRecord | None, *, agent: str, home: Home
) -> Planned:
    old = files.read(file)
    first = changes[0]
    try:
        if isinstance(first, OwnedFile):
            return _own(first, old, record, agent=agent, home=home)
        base = without_us(old, changes, record, agent=agent, home=home)
        text = _text(old)
        if isinstance(first, Block):
            body = "\n".join(each.text.strip("\n") for each in changes if isinstance(each, Block))
            new, record = _with_block(file, text, body, record or FileRecord(), agent=agent)
        else:
            entries = [each for each in changes if isinstance(each, Entry)]
            new, record = _with_entries(text, entries, record or FileRecord(), agent=agent)
    except BadConfig as exc:
        raise BadConfig(f"{file}: {exc}", hint=exc.hint) from exc
    data = old if new == text else new.encode()
    return Planned(file, old, data, base, record)


def _own(change: OwnedFile, old: bytes | None, record: FileRecord | None, *, agent: str, home: Home) -> Planned:
    new = change.text.encode()
    ours = record is not None or old is None or old == new
    if not ours and not _says_foreword(old):
        raise BadConfig("a file of your own is there", hint=f"move it away, then run `foreword install {agent}` again")
    edited = old not in (None, new) and not (record is not None and manifest.digest(old or b"") in record.known)
    base = None if record is None or edited else without_us(old, (change,), record, agent=agent, home=home)
    record = FileRecord(existed=base is not None, own=True)
    return Planned(change.file, old, new, base, record, executable=change.executable, keep_copy=edited)


def _with_block(file: Path, text: str, body: str, record: FileRecord, *, agent: str) -> tuple[str, FileRecord]:
    is_toml = file.suffix == ".toml"
    if toml_block.holds(text, body, agent=agent, toml=is_toml):
        return text, FileRecord(block=body, gap=record.gap)
    bare = toml_block.remove(text, agent=agent, body=record.block, gap=record.gap)
    if is_toml:
        toml_block.check_toml(bare, body, agent=agent)
    placed = toml_block.put(text if _is_marked(text, agent=agent) else bare, body, agent=agent)
    if is_toml:
        toml_block.check_result(placed.text)
    return placed.text, FileRecord(block=body, gap=record.gap if _is_marked(text, agent=agent) else placed.gap)


def _is_marked(text: str, *, agent: str) -> bool:
    return f"# >>> foreword {agent}" in text


def _with_entries(text: str, entries: Sequence[Entry], record: FileRecord, *, agent: str) -> tuple[str, FileRecord]:
    made, was = list(record.made), dict(record.was)
    text = _without_stale(text, entries, record, agent=agent)
    ours_now: list[Entry] = []
    for entry in entries:
        mine = [each.value for each in record.entries if (each.keys, each.append) == (entry.keys, entry.append)]
        place = _place(text, entry, entries, mine, agent=agent)
        if place is None:
            done = jsonc.put(text, entry.keys, entry.value, append=entry.append)
            text, made, was = done.text, [*made, *done.made], {**done.was, **was}
            ours_now.append(entry)
            continue
        now = jsonc.find(text, place)
        ours = ownership.runs_us(now, agent=agent) or any(jsonc.same(now, each) for each in mine)
        if jsonc.same(now, entry.value):
            ours_now += [entry] if ours else []  # what the user wrote alike stays theirs
        elif ours or (mine and ownership.names_us(entry.keys)):
            text = jsonc.replace(text, place, entry.value)
            ours_now.append(entry)
        elif not entry.default:
            raise BadConfig(
                f"`{'.'.join(entry.keys)}` is there already, and is not ours",
                hint=f"rename it or take it out, then run `foreword install {agent}` again",
            )
    text = jsonc.emptied(text, made=made, was=was)
    return text, FileRecord(entries=tuple(ours_now), made=tuple(dict.fromkeys(made)), was=was)


def _place(
    text: str, entry: Entry, entries: Sequence[Entry], mine: Sequence[Any], *, agent: str
) -> tuple[str | int, ...] | None:
    """Return where an entry stands, or an older one that it replaces."""
    there = jsonc.find(text, entry.keys)
    if not entry.append:
        return None if there is MISSING else entry.keys
    if not isinstance(there, list):
        return None
    alike = [place for place, item in enumerate(there) if jsonc.same(item, entry.value)]
    others = [each.value for each in entries if each.append and each.keys == entry.keys]
    older = [
        place
        for place, item in enumerate(there)
        if (ownership.runs_us(item, agent=agent) or any(jsonc.same(item, each) for each in mine))
        and not any(jsonc.same(item, each) for each in others)
    ]
    found = alike or older
    return (*entry.keys, found[0]) if found else None


def _without_stale(text: str, entries: Sequence[Entry], record: FileRecord, *, agent: str) -> str:
    """Remove what an older version of us wrote and this one does not."""
    lists: dict[Keys, int] = {}
    for entry in entries:
        if entry.append:
            lists[entry.keys] = lists.get(entry.keys, 0) + 1
    wanted = {entry.keys for entry in entries}
    for entry in reversed(record.entries):
        if entry.keys not in wanted:
            text = _without_entry(text, entry)
    for own in reversed(_own_entries(text, agent=agent)):
        place = own[-1]
        if isinstance(place, int) and own[:-1] in lists:
            there = [each for each in _own_entries(text, agent=agent) if each[:-1] == own[:-1]]
            item = jsonc.find(text, own)
            values = [each.value for each in entries if each.append and each.keys == own[:-1]]
            if len(there) > lists[own[:-1]] and not any(jsonc.same(item, each) for each in values):
                text = jsonc.remove(text, own)
        elif own not in wanted:
            text = jsonc.remove(text, own)
    return text


def _own_entries(text: str, *, agent: str) -> list[tuple[Any, ...]]:
    document = jsonc.read(text) if ownership.may_run_us(text) else MISSING
    return [] if document is MISSING else [own for own in ownership.own_entries(document, agent=agent) if own]


# --- one file, without us ---


def _planned_removal(
    file: Path, changes: Sequence[Entry | Block | OwnedFile], record: FileRecord | None, *, agent: str, home: Home
) -> Planned:
    old = files.read(file)
    try:
        base = without_us(old, changes, record, agent=agent, home=home)
    except BadConfig as exc:
        raise BadConfig(f"{file}: {exc}", hint=exc.hint) from exc
    own = record.own if record is not None else bool(changes) and isinstance(changes[0], OwnedFile)
    known = (
        record.known
        if record is not None
        else tuple(manifest.digest(each.text.encode()) for each in changes if isinstance(each, OwnedFile))
    )
    keep_copy = own and old is not None and base is None and manifest.digest(old) not in known
    return Planned(file, old, base, base, keep_copy=keep_copy)


def without_us(
    old: bytes | None,
    changes: Sequence[Entry | Block | OwnedFile],
    record: FileRecord | None,
    *,
    agent: str,
    home: Home,
) -> bytes | None:
    """Return a file as it would be without us; byte for byte where nobody else wrote to it since."""
    if old is None:
        return None
    if record is not None and manifest.digest(old) in record.known:
        original = manifest.kept(home, record.original) if record.existed else None
        if original is not None or not record.existed:
            return original
    if (record is not None and record.own) or any(isinstance(each, OwnedFile) for each in changes):
        return None if record is not None or _says_foreword(old) else old
    text = _text(old)
    has_block = bool(record.block) if record is not None else any(isinstance(each, Block) for each in changes)
    if has_block:
        bare = toml_block.remove(
            text,
            agent=agent,
            body=record.block if record is not None else "",
            gap=record.gap if record is not None else "\n",
        )
    else:
        wanted = [each for each in changes if isinstance(each, Entry)]
        bare = _without_entries(text, wanted, record, agent=agent)
    if bare == text:
        return old
    return None if record is not None and not record.existed and not bare.strip() else bare.encode()


def _without_entries(text: str, wanted: Sequence[Entry], record: FileRecord | None, *, agent: str) -> str:
    for entry in reversed(record.entries if record is not None else ()):
        text = text if entry.default else _without_entry(text, entry)
    if record is not None:
        # First exactly, then what somebody has changed since: only the part that runs us.
        text = jsonc.emptied(text, made=record.made, was=record.was)
    for own in reversed(_own_entries(text, agent=agent)):
        text = jsonc.remove(text, own)
        text = text if record is not None else _pruned(text, own)
    if record is not None:
        text = jsonc.emptied(text, made=record.made, was=record.was)
        return jsonc.emptied(_without_defaults(text, record), made=record.made, was=record.was)
    for entry in wanted:
        bare = _without_entry(text, entry) if ownership.names_us([entry.keys, entry.value]) else text
        if bare != text:  # else what is empty on the way is the user's own
            text = _pruned(bare, (*entry.keys, 0) if entry.append else entry.keys)
    return text


def _without_defaults(text: str, record: FileRecord) -> str:
    """Remove what a file must hold whoever uses it, unless somebody else uses it now: Cursor wants its version."""
    for entry in record.entries:
        beside = jsonc.find(text, entry.keys[:-1]) if entry.default else MISSING
        if isinstance(beside, dict) and set(beside) == {entry.keys[-1]}:
            text = _without_entry(text, entry)
    return text


def _without_entry(text: str, entry: Entry) -> str:
    there = jsonc.find(text, entry.keys)
    if entry.append:
        items = there if isinstance(there, list) else []
        place = next((at for at, item in enumerate(items) if jsonc.same(item, entry.value)), None)
        return text if place is None else jsonc.remove(text, (*entry.keys, place))
    ours = there is not MISSING and (jsonc.same(there, entry.value) or ownership.names_us(entry.keys[-1]))
    return jsonc.remove(text, entry.keys) if ours else text


def _pruned(text: str, path: tuple[Any, ...]) -> str:
    """Remove the containers on the way that are empty now; the document itself stays."""
    for end in range(len(path) - 1, 0, -1):
        if jsonc.find(text, path[:end]) not in ({}, []):
            return text
        text = jsonc.remove(text, path[:end])
    return text


def _text(data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as exc:
        raise BadConfig("it is not UTF-8", hint="save it as UTF-8, then try again") from exc


def _says_foreword(data: bytes | None) -> bool:
    return "foreword" in (data or b"")[:HEAD].decode(errors="replace").lower()


# --- what the agent writes by itself because of us ---


def _preexisting(
    residue: Iterable[AgentResidue], *, besides: Iterable[AgentResidue] = (), were_here: bool
) -> tuple[AgentResidue, ...]:
    """Return what is there already, also of the containers on the way: it stays when we leave.

    What is named after us is ours if we were here before.
    """
    known = {way for left in besides for way in _ways(left)}
    ways = dict.fromkeys(way for left in residue for way in _ways(left) if way not in known)
    return tuple(way for way in ways if _is_there(way) and not (were_here and _is_named_after_us(way)))


def _without_residue(
    data: bytes, residue: Sequence[AgentResidue], *, preexisting: Sequence[AgentResidue]
) -> bytes | None:
    """Return an agent's file without these entries and the containers that came with them and are empty again.

    None where the file came with them and holds nothing more. What is no JSON is the agent's to mend, and stays.
    """
    try:
        text = data.decode()
        emptied: dict[Keys, str] = {}
        for left in residue:
            if left not in preexisting and jsonc.find(text, left.keys) is not MISSING:
                text = jsonc.remove(text, left.keys)
                emptied |= {way.keys: "" for way in _ways(left)[:-1]}  # as every agent writes what is empty
        came = {way.keys for left in residue for way in _ways(left)[:-1] if way not in preexisting}
        bare = jsonc.emptied(text, made=came - {()}, was=emptied)
        document = jsonc.read(bare)
    except (UnicodeDecodeError, BadConfig):
        return data
    if isinstance(document, dict) and document.keys() <= FRAME and () in came:
        return None
    return bare.encode()


def _is_removable(left: AgentResidue, *, preexisting: Sequence[AgentResidue]) -> bool:
    """Tell whether a whole file or folder goes: it came with us, and is named after us or an empty folder."""
    if left.keys or left in preexisting or not _is_there(left):
        return False
    return _is_named_after_us(left) or _is_empty(left.file)


def _ways(left: AgentResidue) -> tuple[AgentResidue, ...]:
    """Return the file, each container on the way, and the entry itself."""
    return tuple(AgentResidue(left.file, left.keys[:end]) for end in range(len(left.keys) + 1))


def _is_there(left: AgentResidue) -> bool:
    if not left.keys:
        return os.path.lexists(left.file)
    try:
        text = (files.read(left.file) or b"").decode()
        return jsonc.find(text, left.keys) is not MISSING
    except (UnicodeDecodeError, ForewordError):
        return False


def _is_named_after_us(left: AgentResidue) -> bool:
    return ownership.names_us(left.keys[-1] if left.keys else left.file.name)


def _is_empty(path: Path) -> bool:
    try:
        return not path.is_symlink() and not any(path.iterdir())
    except OSError:
        return False
