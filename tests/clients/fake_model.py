"""A script of steps -> a model on loopback that plays them, in the four dialects that real clients speak.

A step is `Say(text)` or `Use(tool, with_)`. The n-th request that offers tools is answered with the n-th step: nothing
of the script stands in a prompt, so that recorded prompts read as a person wrote them. Requests without tools (titles,
counts) get a short text and take no step, and so do those that ask for a summary of the conversation. A step may claim
to have read so many tokens that a client thinks its window full. Every request is kept, and logged where one asks so.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TITLE = "Fix bookings"
READ, WROTE = 1200, 40  # tokens of every request and answer, unless a step claims another number
SUMMARY = "The tests of bookings were looked at."
SEARCH = "tool_search"  # where Codex lets a model look for the tools of MCP servers
# How clients ask for a summary: Claude Code for one in tags, Codex and OpenCode by these words of their prompts.
COMPACTIONS = ("<summary>", "CONTEXT CHECKPOINT COMPACTION", "summary of the conversation", "anchored summary")


@dataclass(frozen=True)
class Say:
    """The agent answers, and its turn is over."""

    text: str
    read: int = READ  # tokens that it claims to have read


@dataclass(frozen=True)
class Use:
    """The agent uses a tool; a text instead of fields is for tools without a schema."""

    tool: str  # `space/name` for one that is offered inside a namespace
    with_: Mapping[str, Any] | str = field(default_factory=dict)
    name: str = ""  # what this use shows, for the file it is recorded in
    read: int = READ


Step = Say | Use


@dataclass(frozen=True)
class ModelRequest:
    """One request of a client."""

    path: str
    body: Any
    tools: frozenset[str] = frozenset()
    compaction: bool = False  # whether it asked for a summary of the conversation

    @property
    def turn(self) -> bool:
        """Whether it was the agent's turn: titles, counts and summaries are not."""
        return bool(self.tools) and not self.compaction


class FakeModel:
    """A model that follows *steps*, for as long as it is open; `offered` and `requests` tell what clients sent."""

    def __init__(self, steps: Sequence[Step] = (), *, log: Path | None = None) -> None:
        self.steps = steps
        self.at = 0
        self.offered: set[str] = set()
        self.requests: list[ModelRequest] = []
        self._log = log
        self._turn = threading.Lock()
        model = self

        class Handler(_Handler):
            fake = model

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FakeModel:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def play(self, steps: Sequence[Step]) -> int:
        """Follow these steps from now on; how many requests there were before."""
        with self._turn:
            self.steps, self.at = steps, 0
            return len(self.requests)

    def next(self, request: ModelRequest) -> tuple[Step, int]:
        """What to answer now, and its number, which no other answer has."""
        with self._turn:
            self.offered |= request.tools
            self.requests.append(request)
            number = len(self.requests)
            if self._log:
                line = {"number": number, "path": request.path, "compaction": request.compaction, "body": request.body}
                with self._log.open("a") as file:
                    file.write(json.dumps(line) + "\n")
            if request.compaction:
                return Say(f"<summary>{SUMMARY}</summary>"), number
            if not request.turn or self.at >= len(self.steps):
                return Say(TITLE), number
            self.at += 1
            step = self.steps[self.at - 1]
            if isinstance(step, Use) and step.tool not in request.tools:
                return Say(f"{step.tool} is not offered, only {', '.join(sorted(request.tools))}"), number
            return step, number


class _Handler(BaseHTTPRequestHandler):
    fake: FakeModel
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Silent: what was asked is kept in `asked`."""

    def do_HEAD(self) -> None:
        self._give({})

    def do_GET(self) -> None:
        self._give({"object": "list", "data": [{"id": "fake-model", "object": "model"}], "models": []})

    def do_POST(self) -> None:
        raw = self._body()
        try:
            body = json.loads(raw)
        except ValueError:
            body = {}
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._give({"input_tokens": len(raw) // 4 + 1})
        elif path.endswith(":countTokens"):
            self._give({"totalTokens": len(raw) // 4 + 1})
        elif path.endswith("/messages"):
            self._speak(body, path, parts=_anthropic, whole=_anthropic_whole)
        elif path.endswith("/chat/completions"):
            self._speak(body, path, parts=_chat, whole=_chat_whole)
        elif path.endswith("/responses"):
            self._speak(body, path, parts=_responses, whole=_responses_whole)
        elif "enerateContent" in path:
            self._speak({**body, "stream": "stream" in path}, path, parts=_gemini, whole=_gemini_whole)
        else:
            self._give({})

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            raw = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        return gzip.decompress(raw) if self.headers.get("content-encoding") == "gzip" else raw

    def _speak(self, body: dict[str, Any], path: str, *, parts: Any, whole: Any) -> None:
        step, number = self.fake.next(ModelRequest(path, body, frozenset(_names(body)), _is_compaction(body)))
        model = body.get("model", "fake-model")
        if not body.get("stream"):
            self._give(whole(step, number, model))
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for kind, data in parts(step, number, model):
            head = f"event: {kind}\n" if kind else ""
            try:
                self.wfile.write(f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode())
                self.wfile.flush()
            except (BrokenPipeError, ConnectionResetError):  # a client that was ended
                return

    def _give(self, answer: Any) -> None:
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _names(body: Mapping[str, Any]) -> set[str]:
    """The tools that a request offers, in any dialect; Codex's newer models are offered theirs in the conversation."""
    items = body.get("input")
    later = [each for item in items if "tools" in item for each in item["tools"]] if isinstance(items, list) else []
    found = set()
    for tool in (*(body.get("tools") or ()), *later):
        inside = {each.get("name", "") for name in ("functionDeclarations", "tools") for each in tool.get(name, ())}
        found |= inside | {f"{tool['name']}/{name}" for name in inside if tool.get("name")}
        found.add(tool.get("name") or tool.get("function", {}).get("name") or tool.get("type", ""))
    return found - {""}


def _is_compaction(body: Mapping[str, Any]) -> bool:
    """Whether the last thing said in a request is the client's own wish for a summary."""
    messages = next((body[name] for name in ("messages", "input", "contents") if body.get(name)), [])
    last = json.dumps(messages[-1:] if isinstance(messages, list) else messages, ensure_ascii=False)
    return any(mark in last for mark in COMPACTIONS)


# -- Anthropic Messages -------------------------------------------------------------------------------------------
def _anthropic_whole(step: Step, number: int, model: str) -> dict[str, Any]:
    return {
        "id": f"msg_{number:04}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [_block(step, number)],
        "stop_reason": "tool_use" if isinstance(step, Use) else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": step.read, "output_tokens": WROTE},
    }


def _block(step: Step, number: int) -> dict[str, Any]:
    if isinstance(step, Say):
        return {"type": "text", "text": step.text}
    return {"type": "tool_use", "id": f"toolu_{number:04}", "name": step.tool, "input": step.with_}


def _anthropic(step: Step, number: int, model: str) -> Iterator[tuple[str, Any]]:
    whole = _anthropic_whole(step, number, model)
    block = whole["content"][0]
    if isinstance(step, Use):
        empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(step.with_)}
    else:
        empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": step.text}
    for kind, more in (
        ("message_start", {"message": {**whole, "content": [], "stop_reason": None}}),
        ("content_block_start", {"index": 0, "content_block": empty}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        (
            "message_delta",
            {"delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None}, "usage": whole["usage"]},
        ),
        ("message_stop", {}),
    ):
        yield kind, {"type": kind, **more}


# -- OpenAI chat --------------------------------------------------------------------------------------------------
def _chat_message(step: Step, number: int) -> dict[str, Any]:
    if isinstance(step, Say):
        return {"role": "assistant", "content": step.text}
    called = {"name": step.tool, "arguments": json.dumps(step.with_)}
    return {
        "role": "assistant",
        "tool_calls": [{"index": 0, "id": f"call_{number:04}", "type": "function", "function": called}],
    }


def _chat_base(step: Step, number: int, model: str) -> tuple[dict[str, Any], str, dict[str, int]]:
    base = {"id": f"chatcmpl-{number:04}", "created": 1_790_000_000, "model": model}
    usage = {"prompt_tokens": step.read, "completion_tokens": WROTE, "total_tokens": step.read + WROTE}
    return base, "tool_calls" if isinstance(step, Use) else "stop", usage


def _chat_whole(step: Step, number: int, model: str) -> dict[str, Any]:
    base, finish, usage = _chat_base(step, number, model)
    choice = {"index": 0, "message": {"content": None, **_chat_message(step, number)}, "finish_reason": finish}
    return {**base, "object": "chat.completion", "choices": [choice], "usage": usage}


def _chat(step: Step, number: int, model: str) -> Iterator[tuple[str, Any]]:
    base, finish, usage = _chat_base(step, number, model)
    base["object"] = "chat.completion.chunk"
    yield "", {**base, "choices": [{"index": 0, "delta": _chat_message(step, number), "finish_reason": None}]}
    yield "", {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    yield "", {**base, "choices": [], "usage": usage}
    yield "", "[DONE]"


# -- OpenAI Responses ---------------------------------------------------------------------------------------------
def _responses_item(step: Step, number: int) -> dict[str, Any]:
    if isinstance(step, Say):
        content = [{"type": "output_text", "text": step.text, "annotations": []}]
        return {
            "type": "message",
            "id": f"msg_{number:04}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    if step.tool == SEARCH:  # a kind of its own, whose answer offers what it found
        call = {"call_id": f"call_{number:04}", "execution": "client", "status": "completed"}
        return {"type": f"{SEARCH}_call", "id": f"tsc_{number:04}", **call, "arguments": step.with_}
    space, _, name = step.tool.rpartition("/")
    call = {"call_id": f"call_{number:04}", "name": name, "status": "completed"}
    if space:
        call["namespace"] = space
    if isinstance(step.with_, str):
        return {"type": "custom_tool_call", "id": f"ctc_{number:04}", **call, "input": step.with_}
    return {"type": "function_call", "id": f"fc_{number:04}", **call, "arguments": json.dumps(step.with_)}


def _responses_whole(step: Step, number: int, model: str) -> dict[str, Any]:
    usage = {
        "input_tokens": step.read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": WROTE,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": step.read + WROTE,
    }
    base = {"id": f"resp_{number:04}", "object": "response", "created_at": 1_790_000_000, "status": "completed"}
    return {**base, "model": model, "output": [_responses_item(step, number)], "usage": usage}


def _responses(step: Step, number: int, model: str) -> Iterator[tuple[str, Any]]:
    whole = _responses_whole(step, number, model)
    item = whole["output"][0]
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    for kind, more in (
        ("response.created", {"response": begun}),
        ("response.output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress"}}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": whole}),
    ):
        yield kind, {"type": kind, **more}


# -- Gemini -------------------------------------------------------------------------------------------------------
def _gemini_whole(step: Step, number: int, model: str) -> dict[str, Any]:
    if isinstance(step, Say):
        part: dict[str, Any] = {"text": step.text}
    else:
        part = {"functionCall": {"id": f"call_{number:04}", "name": step.tool, "args": step.with_}}
    counts = {"promptTokenCount": step.read, "candidatesTokenCount": WROTE}
    return {
        "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
        "usageMetadata": {**counts, "totalTokenCount": step.read + WROTE},
        "modelVersion": model,
    }


def _gemini(step: Step, number: int, model: str) -> Iterator[tuple[str, Any]]:
    yield "", _gemini_whole(step, number, model)
