"""A request that a client sent to its model -> what was said in it, part by part, the same for all dialects."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """One part of a request: whose it is, in which message it stands, and its text."""

    role: str  # system, developer, user, assistant or tool
    message: int  # -1 before all messages
    text: str


def parts_of(body: Mapping[str, Any]) -> list[Part]:
    """Every text of a request, in its order."""
    head = body.get("system") or body.get("instructions") or body.get("systemInstruction") or ()
    parts = [Part("system", -1, text) for text in _texts(head)]
    messages = body.get("messages") or body.get("input") or body.get("contents") or ()
    for number, message in enumerate(messages if not isinstance(messages, str) else [{"content": messages}]):
        parts += _message(message, number)
    return parts


def holding(parts: Sequence[Part], text: str) -> list[Part]:
    """The parts that hold a text; one that holds it twice is there twice."""
    return [part for part in parts for _ in range(part.text.count(text))]


def _message(message: Mapping[str, Any], number: int) -> Iterator[Part]:
    role = {"model": "assistant"}.get(message.get("role", ""), message.get("role", "user"))
    if "output" in message:  # Responses: what a tool gave
        yield Part("tool", number, _joined(message["output"]))
        return
    if role == "tool":
        yield Part("tool", number, _joined(message.get("content", "")))
        return
    content = message.get("content", message.get("parts", ()))
    for each in [content] if isinstance(content, str) else content or ():
        block = each if isinstance(each, dict) else {"text": each}
        if block.get("type") == "tool_result":
            yield Part("tool", number, _joined(block.get("content", "")))
        elif "functionResponse" in block:
            yield Part("tool", number, _joined(block["functionResponse"].get("response", "")))
        elif isinstance(block.get("text"), str):
            yield Part(role, number, _unescaped(block["text"]))


def _unescaped(text: str) -> str:
    """Gemini CLI escapes what a hook said."""
    return html.unescape(text) if text.startswith("<hook_context>") else text


def _texts(item: Any) -> list[str]:
    if isinstance(item, str):
        return [item]
    if isinstance(item, dict):
        return _texts(item.get("parts") or item.get("text") or ())
    return [text for each in item for text in _texts(each)]


def _joined(item: Any) -> str:
    """What a tool gave, as one text, whatever it is wrapped in; a text that is JSON is unwrapped too."""
    if isinstance(item, str):
        if item[:1] in "[{":
            try:
                return _joined(json.loads(item)) or item
            except ValueError:
                return item
        return item
    if isinstance(item, dict):
        return "\n".join(filter(None, (_joined(each) for name, each in item.items() if name != "type")))
    return "\n".join(filter(None, map(_joined, item))) if isinstance(item, list) else ""
