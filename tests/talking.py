"""What the endpoint of a model answers on loopback, in the words of either kind, well or badly."""

from __future__ import annotations

import json
from typing import Any

from tests.endpoint import Answer, Asked

FULL = {
    "title": "Waiting list added",
    "done": "Added the table and offer_slot() in rooms/waiting.py",
    "learned": ["The clocks go back in October"],
    "next": ["Send the offer by mail"],
}


def answers(text: str, *, usage: Any = (100, 50)) -> Answer:
    """A model that says *text*; a usage that is no pair is told as it is."""

    def answer(asked: Asked) -> None:
        asked.send(200, json.dumps(told_by(asked.path, text, usage)).encode())

    return answer


def told_by(path: str, text: str, usage: Any) -> dict[str, Any]:
    chat = path.endswith("/chat/completions")
    names = ("prompt_tokens", "completion_tokens") if chat else ("input_tokens", "output_tokens")
    told = dict(zip(names, usage, strict=True)) if isinstance(usage, tuple) else usage
    if chat:
        return {"choices": [{"message": {"role": "assistant", "content": text}}], "usage": told}
    return {"type": "message", "content": [{"type": "text", "text": text}], "usage": told}


def data(given: object = FULL, *, usage: Any = (100, 50)) -> Answer:
    return answers(json.dumps(given), usage=usage)


def endless(asked: Asked) -> None:
    asked.send_response(200)
    asked.end_headers()
    while True:
        asked.wfile.write(b" " * 2**16)


def cut_short(asked: Asked) -> None:
    """Half of an answer, as a server that dies gives it."""
    body = json.dumps(told_by(asked.path, json.dumps(FULL), (1, 1))).encode()
    asked.send_response(200)
    asked.send_header("Content-Length", str(len(body)))
    asked.end_headers()
    asked.wfile.write(body[: len(body) // 2])
    asked.wfile.flush()
    asked.connection.close()


def said(server: Any) -> str:
    """Everything that a model was told."""
    return "\n".join(json.dumps(told, ensure_ascii=False) for _, _, told in server.requests)
