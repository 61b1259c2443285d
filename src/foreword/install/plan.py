"""What a host must be told x its files as they are -> each file as it would be, and as it would be without us."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foreword.agents.setup import AgentResidue, Block, Entry, OwnedFile, Setup
from foreword.errors import BadConfig, ForewordError
from foreword.install import blocks, files, jsonedit, left, looks, manifest
from foreword.install.jsonedit import MISSING, Keys
from foreword.install.manifest import Filed, Manifest
from foreword.paths import Home

HEAD = 500  # characters in which a file of ours says whose it is


@dataclass(frozen=True)
class Planned:
    """One file: as it is, as it would be, and as it is without us. None where there is no file."""

    file: Path
    old: bytes | None
    new: bytes | None
    base: bytes | None
    filed: Filed | None = None  # what the manifest tells of it then; None where it is ours no longer
    executable: bool = False
    aside: bool = False  # a file of ours that somebody changed: their version is kept

    @property
    def changed(self) -> bool:
        return self.old != self.new


@dataclass(frozen=True)
class Plan:
    """All that installing or uninstalling a host would do."""

    host: str
    files: tuple[Planned, ...] = ()
    gone: tuple[Path, ...] = ()  # whole files and folders that the host made because of us, and that go
    left: tuple[AgentResidue, ...] = ()  # what the manifest tells of such things then
    theirs: tuple[AgentResidue, ...] = ()
    after: tuple[str, ...] = ()
    plugin: bool = False

    @property
    def changed(self) -> bool:
        return bool(self.gone) or any(each.changed for each in self.files)


def plan(setup: Setup, *, host: str, home: Home, plugin: bool = False) -> Plan:
    """How to tell a host what it must know; where its files stand in the way, an error, and nothing is written."""
    known = manifest.load(home, host) or Manifest(host)
    wanted, lefts = _sorted(setup)
    planned = [
        _told(file, changes, known.files.get(str(file)), host=host, home=home) for file, changes in wanted.items()
    ]
    for path, filed in known.files.items():
        if Path(path) not in wanted:
            planned.append(_untold(Path(path), (), filed, host=host, home=home))
    were_here = any(each.old not in (None, each.base) for each in planned)
    theirs = (*known.theirs, *left.stood(lefts, besides=known.left, were_here=were_here))
    stale = [each for each in known.left if each not in lefts]
    planned, gone = _without_left(planned, stale, theirs=theirs)
    all_left = tuple(dict.fromkeys((*known.left, *lefts)))
    return Plan(host, tuple(planned), gone, all_left, theirs, after=setup.after, plugin=plugin)


def undo_plan(setup: Setup | None, *, host: str, home: Home) -> Plan:
    """How to leave a host as it was: by the manifest, and by looks where that is gone."""
    known = manifest.load(home, host)
    wanted, lefts = _sorted(setup)
    if known is None:
        planned = [_untold(file, changes, None, host=host, home=home) for file, changes in wanted.items()]
    else:
        planned = [_untold(Path(path), (), filed, host=host, home=home) for path, filed in known.files.items()]
    if known is not None and (known.left or not known.plugin):
        lefts, theirs = known.left, known.theirs
    else:  # no manifest, or one of a version that did not tell
        theirs = left.stood(lefts, were_here=True)
    planned, gone = _without_left(planned, lefts, theirs=theirs)
    return Plan(host, tuple(each for each in planned if each.changed or known is not None), gone)


def _sorted(setup: Setup | None) -> tuple[dict[Path, list[Entry | Block | OwnedFile]], tuple[AgentResidue, ...]]:
    """What we write, by its file, and what the host does."""
    wanted: dict[Path, list[Entry | Block | OwnedFile]] = {}
    lefts = []
    for change in setup.changes if setup is not None else ():
        if isinstance(change, AgentResidue):
            lefts.append(change)
        else:
            wanted.setdefault(change.file, []).append(change)
    return wanted, tuple(lefts)


def _without_left(
    planned: Sequence[Planned], lefts: Sequence[AgentResidue], *, theirs: Sequence[AgentResidue]
) -> tuple[list[Planned], tuple[Path, ...]]:
    """The same files and some more, without what the host wrote into them because of us; and what goes as a whole."""
    done = {each.file: each for each in planned}
    entries: dict[Path, list[AgentResidue]] = {}
    for each in lefts:
        if each.keys:
            entries.setdefault(each.file, []).append(each)
    for file, here in entries.items():
        found = done.get(file) or _as_it_is(file)
        bare, base = (
            None if data is None else left.without(data, here, theirs=theirs) for data in (found.new, found.base)
        )
        if bare != found.new or file in done:
            done[file] = replace(found, new=bare, base=base)
    return list(done.values()), tuple(each.file for each in lefts if left.goes(each, theirs=theirs))


def _as_it_is(file: Path) -> Planned:
    try:
        data = files.read(file)
    except ForewordError:
        data = None  # it is the host's, and nothing of it was ours to write
    return Planned(file, data, data, data)


# --- one file, with us ---


def _told(
    file: Path, changes: Sequence[Entry | Block | OwnedFile], filed: Filed | None, *, host: str, home: Home
) -> Planned:
    old = files.read(file)
    first = changes[0]
    try:
        if isinstance(first, OwnedFile):
            return _own(first, old, filed, host=host, home=home)
        base = without(old, changes, filed, host=host, home=home)
        text = _text(old)
        if isinstance(first, Block):
            body = "\n".join(each.text.strip("\n") for each in changes if isinstance(each, Block))
            new, told = _with_block(file, text, body, filed or Filed(), host=host)
        else:
            entries = [each for each in changes if isinstance(each, Entry)]
            new, told = _with_entries(text, entries, filed or Filed(), host=host)
    except BadConfig as exc:
        raise BadConfig(f"{file}: {exc}", hint=exc.hint) from exc
    data = old if new == text else new.encode()
    return Planned(file, old, data, base, told)


def _own(change: OwnedFile, old: bytes | None, filed: Filed | None, *, host: str, home: Home) -> Planned:
    new = change.text.encode()
    ours = filed is not None or old is None or old == new
    if not ours and not _says_foreword(old):
        raise BadConfig(
            "a file of your own stands there", hint=f"move it away, then run `foreword install {host}` again"
        )
    edited = old not in (None, new) and not (filed is not None and manifest.digest(old or b"") in filed.known)
    base = None if filed is None or edited else without(old, (change,), filed, host=host, home=home)
    told = Filed(existed=base is not None, own=True)
    return Planned(change.file, old, new, base, told, executable=change.executable, aside=edited)


def _with_block(file: Path, text: str, body: str, filed: Filed, *, host: str) -> tuple[str, Filed]:
    is_toml = file.suffix == ".toml"
    if blocks.holds(text, body, host=host, toml=is_toml):
        return text, Filed(block=body, gap=filed.gap)
    bare = blocks.remove(text, host=host, body=filed.block, gap=filed.gap)
    if is_toml:
        blocks.check_toml(bare, body, host=host)
    placed = blocks.put(text if _is_marked(text, host=host) else bare, body, host=host)
    if is_toml:
        blocks.check_result(placed.text)
    return placed.text, Filed(block=body, gap=filed.gap if _is_marked(text, host=host) else placed.gap)


def _is_marked(text: str, *, host: str) -> bool:
    return f"# >>> foreword {host}" in text


def _with_entries(text: str, entries: Sequence[Entry], filed: Filed, *, host: str) -> tuple[str, Filed]:
    made, was = list(filed.made), dict(filed.was)
    text = _without_stale(text, entries, filed, host=host)
    told: list[Entry] = []
    for entry in entries:
        mine = [each.value for each in filed.entries if (each.keys, each.append) == (entry.keys, entry.append)]
        place = _place(text, entry, entries, mine, host=host)
        if place is None:
            done = jsonedit.put(text, entry.keys, entry.value, append=entry.append)
            text, made, was = done.text, [*made, *done.made], {**done.was, **was}
            told.append(entry)
            continue
        now = jsonedit.find(text, place)
        ours = looks.runs_us(now, host=host) or any(jsonedit.same(now, each) for each in mine)
        if jsonedit.same(now, entry.value):
            told += [entry] if ours else []  # what the user wrote alike stays theirs
        elif ours or (mine and looks.names_us(entry.keys)):
            text = jsonedit.replace(text, place, entry.value)
            told.append(entry)
        elif not entry.default:
            raise BadConfig(
                f"`{'.'.join(entry.keys)}` stands there already, and is not ours",
                hint=f"rename it or take it out, then run `foreword install {host}` again",
            )
    text = jsonedit.emptied(text, made=made, was=was)
    return text, Filed(entries=tuple(told), made=tuple(dict.fromkeys(made)), was=was)


def _place(
    text: str, entry: Entry, entries: Sequence[Entry], mine: Sequence[Any], *, host: str
) -> tuple[str | int, ...] | None:
    """Where an entry stands, or an older one that it takes the place of."""
    there = jsonedit.find(text, entry.keys)
    if not entry.append:
        return None if there is MISSING else entry.keys
    if not isinstance(there, list):
        return None
    alike = [place for place, item in enumerate(there) if jsonedit.same(item, entry.value)]
    others = [each.value for each in entries if each.append and each.keys == entry.keys]
    older = [
        place
        for place, item in enumerate(there)
        if (looks.runs_us(item, host=host) or any(jsonedit.same(item, each) for each in mine))
        and not any(jsonedit.same(item, each) for each in others)
    ]
    found = alike or older
    return (*entry.keys, found[0]) if found else None


def _without_stale(text: str, entries: Sequence[Entry], filed: Filed, *, host: str) -> str:
    """Without what an older version of us wrote and this one does not: also what is more than it writes now."""
    lists: dict[Keys, int] = {}
    for entry in entries:
        if entry.append:
            lists[entry.keys] = lists.get(entry.keys, 0) + 1
    wanted = {entry.keys for entry in entries}
    for entry in reversed(filed.entries):
        if entry.keys not in wanted:
            text = _without_entry(text, entry)
    for unit in reversed(_units(text, host=host)):
        place = unit[-1]
        if isinstance(place, int) and unit[:-1] in lists:
            there = [each for each in _units(text, host=host) if each[:-1] == unit[:-1]]
            item = jsonedit.find(text, unit)
            values = [each.value for each in entries if each.append and each.keys == unit[:-1]]
            if len(there) > lists[unit[:-1]] and not any(jsonedit.same(item, each) for each in values):
                text = jsonedit.remove(text, unit)
        elif unit not in wanted:
            text = jsonedit.remove(text, unit)
    return text


def _units(text: str, *, host: str) -> list[tuple[Any, ...]]:
    document = jsonedit.read(text) if looks.may_run_us(text) else MISSING
    return [] if document is MISSING else [unit for unit in looks.units(document, host=host) if unit]


# --- one file, without us ---


def _untold(
    file: Path, changes: Sequence[Entry | Block | OwnedFile], filed: Filed | None, *, host: str, home: Home
) -> Planned:
    old = files.read(file)
    try:
        base = without(old, changes, filed, host=host, home=home)
    except BadConfig as exc:
        raise BadConfig(f"{file}: {exc}", hint=exc.hint) from exc
    own = filed.own if filed is not None else bool(changes) and isinstance(changes[0], OwnedFile)
    known = (
        filed.known
        if filed is not None
        else tuple(manifest.digest(each.text.encode()) for each in changes if isinstance(each, OwnedFile))
    )
    aside = own and old is not None and base is None and manifest.digest(old) not in known
    return Planned(file, old, base, base, aside=aside)


def without(
    old: bytes | None, changes: Sequence[Entry | Block | OwnedFile], filed: Filed | None, *, host: str, home: Home
) -> bytes | None:
    """A file as it would be had we never been there; exactly, where nobody else wrote to it since."""
    if old is None:
        return None
    if filed is not None and manifest.digest(old) in filed.known:
        original = manifest.kept(home, filed.original) if filed.existed else None
        if original is not None or not filed.existed:
            return original
    if (filed is not None and filed.own) or any(isinstance(each, OwnedFile) for each in changes):
        return None if filed is not None or _says_foreword(old) else old
    text = _text(old)
    has_block = bool(filed.block) if filed is not None else any(isinstance(each, Block) for each in changes)
    if has_block:
        bare = blocks.remove(
            text,
            host=host,
            body=filed.block if filed is not None else "",
            gap=filed.gap if filed is not None else "\n",
        )
    else:
        wanted = [each for each in changes if isinstance(each, Entry)]
        bare = _without_entries(text, wanted, filed, host=host)
    if bare == text:
        return old
    return None if filed is not None and not filed.existed and not bare.strip() else bare.encode()


def _without_entries(text: str, wanted: Sequence[Entry], filed: Filed | None, *, host: str) -> str:
    for entry in reversed(filed.entries if filed is not None else ()):
        text = text if entry.default else _without_entry(text, entry)
    if filed is not None:
        # First exactly, then what somebody has changed since: only the part that runs us.
        text = jsonedit.emptied(text, made=filed.made, was=filed.was)
    for unit in reversed(_units(text, host=host)):
        text = jsonedit.remove(text, unit)
        text = text if filed is not None else _pruned(text, unit)
    if filed is not None:
        text = jsonedit.emptied(text, made=filed.made, was=filed.was)
        return jsonedit.emptied(_without_defaults(text, filed), made=filed.made, was=filed.was)
    for entry in wanted:
        bare = _without_entry(text, entry) if looks.names_us([entry.keys, entry.value]) else text
        if bare != text:  # else what is empty on the way is the user's own
            text = _pruned(bare, (*entry.keys, 0) if entry.append else entry.keys)
    return text


def _without_defaults(text: str, filed: Filed) -> str:
    """Without what a file must say whoever uses it, unless somebody else uses it now: Cursor wants its version."""
    for entry in filed.entries:
        beside = jsonedit.find(text, entry.keys[:-1]) if entry.default else MISSING
        if isinstance(beside, dict) and set(beside) == {entry.keys[-1]}:
            text = _without_entry(text, entry)
    return text


def _without_entry(text: str, entry: Entry) -> str:
    there = jsonedit.find(text, entry.keys)
    if entry.append:
        items = there if isinstance(there, list) else []
        place = next((at for at, item in enumerate(items) if jsonedit.same(item, entry.value)), None)
        return text if place is None else jsonedit.remove(text, (*entry.keys, place))
    ours = there is not MISSING and (jsonedit.same(there, entry.value) or looks.names_us(entry.keys[-1]))
    return jsonedit.remove(text, entry.keys) if ours else text


def _pruned(text: str, path: tuple[Any, ...]) -> str:
    """Without the containers on the way that are empty now; the document itself stays."""
    for end in range(len(path) - 1, 0, -1):
        if jsonedit.find(text, path[:end]) not in ({}, []):
            return text
        text = jsonedit.remove(text, path[:end])
    return text


def _text(data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as exc:
        raise BadConfig("it is not UTF-8", hint="save it as UTF-8, then try again") from exc


def _says_foreword(data: bytes | None) -> bool:
    return "foreword" in (data or b"")[:HEAD].decode(errors="replace").lower()
