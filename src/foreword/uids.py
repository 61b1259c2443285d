"""A memory's uid in one project -> the uid that the same memory has in another; uids hold the key of their project."""

from __future__ import annotations

import hashlib

SAID = "agent-"


def said_uid(*, project: str, kind: str, title: str) -> str:
    """The uid of what an agent asked to be kept: the same said again in a project is the same memory."""
    told = "\0".join((project, kind, " ".join(title.casefold().split())))
    return SAID + hashlib.blake2b(told.encode(), digest_size=12).hexdigest()


def moved(uid: str, *, old: str, new: str, kind: str = "", title: str = "") -> str:
    """*uid* as the distiller and the imports write it in project *new*; one that names no project stays as it is."""
    if uid == said_uid(project=old, kind=kind, title=title):
        return said_uid(project=new, kind=kind, title=title)
    prefix, colon, rest = uid.partition(":")
    if colon and (rest == old or rest.startswith(f"{old}:")):
        return f"{prefix}:{new}{rest[len(old) :]}"
    return uid
