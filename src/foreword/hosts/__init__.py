"""Host payload -> what it told; context -> exactly the bytes that host accepts. One host a file. Light."""

from __future__ import annotations

from foreword.errors import BadPayload
from foreword.jsontext import dumps
from foreword.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


@value
class Told:
    """What a payload says, in our words; empty where the host does not tell."""

    session: str = ""
    cwd: str = ""
    prompt: str = ""
    source: str = ""
    model: str = ""
    id: str = ""  # the host's own id of this event
    inner: bool = False  # from a sub-agent: neither captured nor answered


@value
class Host:
    """What we know of one host."""

    name: str
    events: Mapping[str, str]  # the host's event -> ours
    moments: Mapping[str, str]  # the host's event -> the moment that may be answered there
    read: Callable[[Mapping[str, Any]], Told]
    answer: Callable[[str, str], Mapping[str, Any]]  # event, text -> the object on stdout

    def spoken(self, event: str, text: str) -> bytes:
        """The bytes for stdout: one JSON object, or nothing at all."""
        return dumps(self.answer(event, text)).encode() if text else b""


FILES = {
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini": "gemini",
    "copilot": "copilot",
    "cursor": "cursor",
    "opencode": "opencode",
}


def find(name: str) -> Host:
    """The host of that name; an unknown one is told so."""
    if name not in FILES:
        raise BadPayload(f"unknown host {name!r}", hint=f"known hosts: {', '.join(FILES)}")
    module = __import__(f"foreword.hosts.{FILES[name]}", fromlist=["HOST"])
    host: Host = module.HOST
    return host


def text_of(payload: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that holds text."""
    for name in names:
        if isinstance(found := payload.get(name), str) and found:
            return found
    return ""
