"""A name -> the file of ours that goes by it, read once; whoever asks for another is told so."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files as within
from importlib.resources.abc import Traversable

from foreword.errors import NotFound
from foreword.worker.http import Response

KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def file(name: str) -> Response:
    """One of our files; a name is one of those that lie here, so no path leads out of the folder."""
    if name not in names():
        raise NotFound(f"there is no file {name[:80]!r}", hint="/ is where the viewer begins")
    return Response(status=200, body=_read(name), kind=KINDS[name.rpartition(".")[2]])


@cache
def names() -> frozenset[str]:
    """The files of the page; those of a page that has several lie in a folder of its name."""
    return frozenset(_within(_folder()))


@cache
def stamp() -> str:
    """Another one whenever any file of the page is: a page that is open learns that it is an old one."""
    seen = hashlib.blake2b(digest_size=8)
    for name in sorted(names()):
        seen.update(_read(name))
    return seen.hexdigest()


def _within(folder: Traversable, before: str = "") -> Iterator[str]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _within(each, f"{before}{each.name}/")
        elif each.name.rpartition(".")[2] in KINDS:
            yield f"{before}{each.name}"


@cache
def _read(name: str) -> bytes:
    return (_folder() / name).read_bytes()


def _folder() -> Traversable:
    return within("foreword.viewer") / "static"
