"""Every payload that a real client sent a hook, ours and the shared ones -> host, event and payload of each call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foreword.agents import AGENTS, find
from tests.conftest import SHARED

PAYLOADS = Path(__file__).resolve().parent / "payloads"
# How the shared files begin, and whose they are; what is no call of a hook (handshakes, transcripts) is left out.
PREFIXES = {
    "claude-2.0.76.": "claude-code",
    "claude-2.1.197.": "claude-code",
    "claude-interactive.": "claude-code",
    "claude-plugin.": "claude-code",
    "claude.": "claude-code",
    "codex.": "codex",
    "copilot.": "copilot",
    "gemini.": "gemini",
    "opencode.": "opencode",
}
SHORT = {  # what the shared files call hooks of OpenCode
    "tool.before": "tool.execute.before",
    "tool.after": "tool.execute.after",
    "text.complete": "experimental.text.complete",
    "system.transform": "experimental.chat.system.transform",
    "messages.transform": "experimental.chat.messages.transform",
}
FOLDER = "/home/user/project"  # of every recorded session
TOPIC = " about the checkout transport, #4107"  # what a recorded prompt says besides, where memory shall have an answer


@dataclass(frozen=True)
class Recorded:
    """One call of a hook; `name` is the file it was kept in."""

    host: str
    event: str
    payload: dict[str, Any]
    name: str

    @property
    def raw(self) -> bytes:
        return json.dumps(self.payload, ensure_ascii=False).encode()

    @property
    def trigger(self) -> str:
        """The moment that may be answered here, as the host's own page says; "" where nothing is."""
        host = find(self.host)
        parsed = host.parse(self.payload)
        silent = parsed.inner or parsed.prompt.startswith("<task-notification>")  # which nobody typed
        return "" if silent else host.triggers.get(self.event, "")

    def placed(self, *, folder: str, session: str) -> Recorded:
        """The same in another folder and session, its prompt with a topic that memory knows something of."""
        parsed = find(self.host).parse(self.payload)

        def changed(text: str) -> str:
            if parsed.prompt and text.endswith(parsed.prompt):
                text += TOPIC
            elif parsed.prompt and text == json.dumps(parsed.prompt):  # as `opencode run` sends it
                text = json.dumps(parsed.prompt + TOPIC)
            text = text.replace(parsed.session, session) if parsed.session else text
            return text.replace(FOLDER, folder)

        return replace(self, payload=_mapped(self.payload, changed))


def recorded() -> list[Recorded]:
    """All of them, in the order of their names; the shared ones where they lie beside the checkout."""
    return [*_ours(), *_shared()]


def _ours() -> Iterator[Recorded]:
    for host in AGENTS:
        for path in sorted((PAYLOADS / host).glob("*.json")):
            kept = json.loads(path.read_text(encoding="utf-8"))
            yield Recorded(host, kept["event"], kept["payload"], f"{host}/{path.stem}")


def _shared() -> Iterator[Recorded]:
    for path in sorted((SHARED / "payloads").glob("*.json")):
        prefix = next((each for each in PREFIXES if path.name.startswith(each)), "")
        kept = json.loads(path.read_text(encoding="utf-8"))
        if not prefix or not isinstance(kept, dict):
            continue
        host, event = PREFIXES[prefix], path.name.removeprefix(prefix).partition(".")[0]
        if "stdin" in kept:
            yield Recorded(host, event, kept["stdin"], path.stem)
        elif "body" in kept:  # a hook of type http is sent the same
            yield Recorded(host, kept["body"]["hook_event_name"], kept["body"], path.stem)
        elif "hook" in kept:  # as the plugin passes on what OpenCode gave its hooks
            payload = {"directory": FOLDER, **{end: kept[end] for end in ("input", "output") if end in kept}}
            event = kept["hook"].removeprefix("event:")
            yield Recorded(host, SHORT.get(event, event), payload, path.stem)


def _mapped(item: Any, changed: Callable[[str], str]) -> Any:
    if isinstance(item, str):
        return changed(item)
    if isinstance(item, dict):
        return {name: _mapped(each, changed) for name, each in item.items()}
    return [_mapped(each, changed) for each in item] if isinstance(item, list) else item
