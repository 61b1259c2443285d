"""A name and a value -> config.toml with that one line changed, and every other byte as it was."""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreword.config.file import File, parse, read, statements
from foreword.config.settings import Setting, checked, from_text, named
from foreword.errors import BadConfig, ForewordError
from foreword.layout import merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from foreword.paths import Home


def change(home: Home, name: str, raw_value: str) -> None:
    """Write one setting, or one number such as `recipes.prompt.budget`, and leave the rest of the file as it was."""
    path, new = _to_write(name, raw_value)
    home.prepare()
    with _alone(home):
        file = _editable(home)
        expected = _with(file.table, path, new)
        if len(path) == 1 and name not in file.table:
            text = _with_line(file.text, name, new)
        else:
            text = _edited(home, file.text, lambda document: _put(document, path, new))
        _write(home, text, expected=expected)


def unset(home: Home, name: str) -> bool:
    """Take one name out of the file, so that the default counts again; False when it was not there."""
    path = tuple(name.split("."))
    if not home.root.exists():
        return False
    with _alone(home):
        file = _editable(home)
        if not _holds(file.table, path):
            if path[0] != "recipes":
                named(name)
            return False
        expected = _with(file.table, path, None)
        _write(home, _edited(home, file.text, lambda document: _take(document, path)), expected=expected)
    return True


def _to_write(name: str, raw_value: str) -> tuple[tuple[str, ...], Any]:
    path = tuple(name.split("."))
    if path[0] != "recipes":
        setting = named(name)
        new = from_text(setting, raw_value)
        checked(setting, new)
        return path, new
    new = from_text(Setting(name, 0, "int", "", ""), raw_value)
    if wrong := merged(_with({}, path, new)["recipes"])[1]:
        raise BadConfig(wrong[0].says, hint="docs/settings.md lists the recipes, as in recipes.session_start.rules.cap")
    return path, new


def _editable(home: Home) -> File:
    file = read(home.config)
    if file.problems:
        raise BadConfig(file.problems[0], hint=f"repair {home.config} first, or move it away; it was not touched")
    return file


def _edited(home: Home, text: str, edit: Callable[[Any], None]) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        edit(document)
        return tomlkit.dumps(document)
    except (TOMLKitError, ValueError, RecursionError) as exc:
        raise _too_unusual(home) from exc


def _put(document: Any, path: tuple[str, ...], new: object) -> None:
    import tomlkit
    from tomlkit.items import InlineTable

    for name in path[:-1]:
        if name not in document:
            inline = isinstance(document, InlineTable)
            document[name] = tomlkit.inline_table() if inline else tomlkit.table(is_super_table=name != path[-2])
        document = document[name]
    document[path[-1]] = new


def _take(document: Any, path: tuple[str, ...]) -> None:
    for name in path[:-1]:
        document = document[name]
    del document[path[-1]]


def _with_line(text: str, name: str, new: object) -> str:
    """The text with a new top-level setting before the first `[table]` and the comment that belongs to it."""
    import tomlkit

    lines = re.findall(r"[^\n]*\n|[^\n]+", text)  # not splitlines(), which also splits at characters TOML allows
    at = next((line - 1 for line, is_table, _ in statements(text) if is_table), len(lines))
    while 0 < at < len(lines) and lines[at - 1].lstrip().startswith("#"):
        at -= 1
    before, after = "".join(lines[:at]), "".join(lines[at:])
    if before and not before.endswith("\n"):
        before += "\n"
    return f"{before}{name} = {tomlkit.item(new).as_string()}\n" + (f"\n{after}" if after else "")


def _holds(table: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(table, dict) or name not in table:
            return False
        table = table[name]
    return True


def _with(table: Mapping[str, Any], path: tuple[str, ...], new: object) -> dict[str, Any]:
    """The table with one value more, or less where *new* is None."""
    name, *rest = path
    changed = {key: inner for key, inner in table.items() if key != name}
    if not rest:
        return changed if new is None else {**changed, name: new}
    inner = table.get(name, {})
    if not isinstance(inner, dict):
        raise BadConfig(f"`{name}` in config.toml must be a table", hint="remove that line, then try again")
    return {**changed, name: _with(inner, tuple(rest), new)}


def _write(home: Home, text: str, *, expected: Mapping[str, Any]) -> None:
    # The editor keeps comments but has its own idea of TOML; what is written must mean what was asked, and no more.
    try:
        same = parse(text) == expected
    except RecursionError:  # a.a.a… = 1 is a table as deep as the line is long
        same = False
    if not same:
        raise _too_unusual(home)
    home.prepare()
    _replace(Path(os.path.realpath(home.config)), text.encode())  # the user's link to their dotfiles stays a link


@contextmanager
def _alone(home: Home) -> Iterator[None]:
    """One change at a time: of two at once, the second must see what the first wrote."""
    try:
        folder = os.open(home.root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as exc:
        raise BadConfig(f"{home.root} cannot be opened: {exc}", hint="run `foreword doctor`") from exc
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _too_unusual(home: Home) -> BadConfig:
    return BadConfig(
        f"{home.config} is written in a way that we cannot edit without changing more",
        hint="make this change in your editor",
    )


def _replace(path: Path, data: bytes) -> None:
    """Put *data* in the file's place, whole or not at all, readable by the user alone."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp makes it 0600
        try:
            with open(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as exc:
        raise ForewordError(f"cannot write {path}: {exc.strerror}", hint="make room or make it writable") from exc
