"""Whatever a payload of a megabyte holds, a bounded part of it is read, in characters, parts and paths compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from foreword import redact as redact_module
from foreword.capture import parse
from foreword.capture.parse import capture_event, parse_hook
from foreword.capture.payload import HookCall
from foreword.encoding import dumps
from foreword.redact import MAX_PARTS, files

CAP = 65_536  # characters of a text
CHARACTERS = 2 * 5 * CAP  # four texts and some keys, each read twice: until nothing more is found
COMPARED = 40_000  # paths that are compared with the patterns of denied files


def tool(command: str = "make", **response: Any) -> dict[str, Any]:
    return {"session_id": "s", "cwd": "/p", "tool_input": {"command": command}, "tool_response": response}


def text_of(line: str) -> Callable[[int], dict[str, Any]]:
    return lambda size: tool(stdout=line * (size // len(line)))


SHAPES: dict[str, Callable[[int], dict[str, Any]]] = {
    "empty lists": lambda size: tool(out=[[]] * (size // 4)),
    "small lists": lambda size: tool(out=[[1, ["a"]]] * (size // 16)),
    "objects": lambda size: tool(out=[{"a": 1, "b": ["x"]}] * (size // 24)),
    "keys": lambda size: tool(**{f"key{n}": n for n in range(size // 16)}),
    "texts": lambda size: tool(out=["password = hunter22 "] * (size // 24)),
    "lists of texts": lambda size: tool(out=[["password = hunter22 "] * 10] * (size // 240)),
    "deep": lambda size: tool(out=json.loads("[" * 90 + json.dumps("password = hunter22 " * (size // 20)) + "]" * 90)),
    "a tree": lambda size: tool(out=[[[[["a"] * 4] * 4] * 4] * 4] * (size // 1500)),
    "globs": lambda size: tool("cat " + " ".join(f"a{n}*.{{b,c}}" for n in range(size // 14))),
    "braces": lambda size: tool("ls " + "{a,b}" * (size // 5)),
    "words": lambda size: tool(" ".join(f"w{n}/.en" for n in range(size // 9))),
    "commands": lambda size: tool(";".join(f"ssh h{n} x y z" for n in range(size // 14))),
    "paths": lambda size: {**tool(), "tool_input": {"paths": [f"src/a{n}*" for n in range(size // 12)]}},
    "no lines": text_of("\n"),
    "short lines": text_of("a:\n"),
    "lines of files": lambda size: tool(stdout="".join(f"d{n}/.env:x\n" for n in range(size // 14))),
    "dashes": text_of("-1-" * 300 + "\n"),
    "a patch": text_of("+++ a\n"),
    "logins": text_of("login: ada password: Tr0ub4dor9x\n"),
    "names": text_of("password = "),
    "base64": text_of("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0"),
    "tokens": text_of("sk-ant-api03-aB3aB3aB3aB3aB3aB3aB3 "),
    "JSON": lambda size: tool(stdout=json.dumps([{"path": f"a{n}", "token": "x"} for n in range(size // 28)])),
}


def work(monkeypatch: pytest.MonkeyPatch, payload: object, *, raw: bytes = b"") -> tuple[int, int]:
    """Return how many characters are searched for secrets, and how many paths are compared."""
    read, compared = [], []
    for name in ("find_tokens", "find_secrets"):
        find = getattr(redact_module, name)
        monkeypatch.setattr(
            redact_module, name, lambda text, *words, find=find: read.append(len(text)) or find(text, *words)
        )
    denied = files._denied.__wrapped__
    monkeypatch.setattr(files, "_denied", lambda path, deny: compared.append(path) or denied(path, deny))
    parse_hook(HookCall("claude-code", "PostToolUse", 1.0, raw or json.dumps(payload).encode()))
    monkeypatch.undo()
    return sum(read) // 2, len(compared)


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_read_of_a_megabyte_is_bounded(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    small, large = (work(monkeypatch, SHAPES[name](size)) for size in (500_000, 1_000_000))
    assert large[0] <= CHARACTERS
    assert large[1] <= COMPARED
    assert large[0] <= 2 * small[0] + CAP, "it grows with the size at most"
    assert large[1] <= 2 * small[1] + 1000


def test_what_is_read_of_bytes_that_are_no_json_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert work(monkeypatch, None, raw=b"password = hunter22 " * 50_000)[0] <= CHARACTERS


def test_a_payload_of_too_many_parts_keeps_its_first_levels() -> None:
    def parts(item: Any) -> int:
        inner = [*item, *item.values()] if isinstance(item, dict) else item if isinstance(item, list) else []
        return 1 + sum(map(parts, inner))

    for make in SHAPES.values():
        payload = {**make(1_000_000), "tool_use_id": "last"}
        short = redact_module.shorten(payload, max_chars=CAP)
        assert parts(short) <= MAX_PARTS + 10
        assert (short["session_id"], short["cwd"], short["tool_use_id"]) == ("s", "/p", "last")


def test_what_a_hook_redacted_is_not_redacted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "password = Tr0ub4dor9x"
    call = HookCall("claude-code", "PostToolUse", 1.0, json.dumps(tool(stdout=secret)).encode())
    first = capture_event(call, text_cap=CAP)
    spooled = HookCall(call.host, call.event, call.at, dumps(first.parsed.payload).encode(), redacted=True)
    for name in ("redact_all", "shorten", "without_denied"):
        monkeypatch.delattr(parse, name)
    again = capture_event(spooled, text_cap=CAP)
    assert again.event.key == first.event.key
    assert again.event.payload == first.event.payload
    assert "Tr0ub4dor9x" not in dumps(again.event.payload)
