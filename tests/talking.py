"""What the endpoint of a model answers on loopback, in the words of either kind, well or badly."""

from __future__ import annotations

import json
from typing import Any

from tests.endpoint import Answer, Request

FULL = {
    "title": "Waiting list added",
    "done": "Added the table and offer_slot() in rooms/waiting.py",
    "learned": ["The clocks go back in October"],
    "next": ["Send the offer by mail"],
}


def answers(text: str, *, usage: Any = (100, 50)) -> Answer:
    """A model that says *text*; a usage that is no pair is sent as it is."""

    def answer(request: Request) -> None:
        request.send(200, json.dumps(answer_of(request.path, text, usage)).encode())

    return answer


def answer_of(path: str, text: str, usage: Any) -> dict[str, Any]:
    chat = path.endswith("/chat/completions")
    names = ("prompt_tokens", "completion_tokens") if chat else ("input_tokens", "output_tokens")
    body = dict(zip(names, usage, strict=True)) if isinstance(usage, tuple) else usage
    if chat:
        return {"choices": [{"message": {"role": "assistant", "content": text}}], "usage": body}
    return {"type": "message", "content": [{"type": "text", "text": text}], "usage": body}


def data(content: object = FULL, *, usage: Any = (100, 50)) -> Answer:
    return answers(json.dumps(content), usage=usage)


def endless(request: Request) -> None:
    request.send_response(200)
    request.end_headers()
    while True:
        request.wfile.write(b" " * 2**16)


def cut_short(request: Request) -> None:
    """Half of an answer, as a server that dies gives it."""
    body = json.dumps(answer_of(request.path, json.dumps(FULL), (1, 1))).encode()
    request.send_response(200)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body[: len(body) // 2])
    request.wfile.flush()
    request.connection.close()


def sent_texts(server: Any) -> str:
    """Everything that was sent to a model."""
    return "\n".join(json.dumps(body, ensure_ascii=False) for _, _, body in server.requests)
