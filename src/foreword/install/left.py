"""What a host writes down by itself because of us -> what of it stood there before, and its files without the rest."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from foreword.agents.setup import AgentResidue
from foreword.errors import BadConfig, ForewordError
from foreword.install import files, jsonedit, looks
from foreword.install.jsonedit import MISSING, Keys

FRAME = {"version"}  # what a list of a host's says when it lists nothing


def stood(
    lefts: Iterable[AgentResidue], *, besides: Iterable[AgentResidue] = (), were_here: bool
) -> tuple[AgentResidue, ...]:
    """What is there already, also of the containers on the way: it stays. What is named after us is ours if we were."""
    known = {way for left in besides for way in _ways(left)}
    ways = dict.fromkeys(way for left in lefts for way in _ways(left) if way not in known)
    return tuple(way for way in ways if _is_there(way) and not (were_here and _is_named_after_us(way)))


def without(data: bytes, lefts: Sequence[AgentResidue], *, theirs: Sequence[AgentResidue]) -> bytes | None:
    """A file of a host's without these entries, and without the containers that came with them and are empty again.

    None where the file came with them too, and says nothing more. What is no JSON is the host's to mend, and stays.
    """
    try:
        text = data.decode()
        emptied: dict[Keys, str] = {}
        for left in lefts:
            if left not in theirs and jsonedit.find(text, left.keys) is not MISSING:
                text = jsonedit.remove(text, left.keys)
                emptied |= {way.keys: "" for way in _ways(left)[:-1]}  # as every host writes what is empty
        came = {way.keys for left in lefts for way in _ways(left)[:-1] if way not in theirs}
        bare = jsonedit.emptied(text, made=came - {()}, was=emptied)
        document = jsonedit.read(bare)
    except (UnicodeDecodeError, BadConfig):
        return data
    if isinstance(document, dict) and document.keys() <= FRAME and () in came:
        return None
    return bare.encode()


def goes(left: AgentResidue, *, theirs: Sequence[AgentResidue]) -> bool:
    """Whether a whole file or folder goes: it came with us, and is named after us or a folder with nothing in it."""
    if left.keys or left in theirs or not _is_there(left):
        return False
    return _is_named_after_us(left) or _is_empty(left.file)


def take_away(path: Path) -> None:
    """Without it; what was put into a folder in this moment, and is not named after us, stays."""
    with suppress(OSError):
        if path.is_symlink() or not path.is_dir():
            os.unlink(path)
        elif _is_named_after_us(AgentResidue(path)):
            shutil.rmtree(path)
        else:
            os.rmdir(path)


def _ways(left: AgentResidue) -> tuple[AgentResidue, ...]:
    """The file, each container on the way, and the entry itself."""
    return tuple(AgentResidue(left.file, left.keys[:end]) for end in range(len(left.keys) + 1))


def _is_there(left: AgentResidue) -> bool:
    if not left.keys:
        return os.path.lexists(left.file)
    try:
        text = (files.read(left.file) or b"").decode()
        return jsonedit.find(text, left.keys) is not MISSING
    except (UnicodeDecodeError, ForewordError):
        return False


def _is_named_after_us(left: AgentResidue) -> bool:
    return looks.names_us(left.keys[-1] if left.keys else left.file.name)


def _is_empty(path: Path) -> bool:
    try:
        return not path.is_symlink() and not any(path.iterdir())
    except OSError:
        return False
