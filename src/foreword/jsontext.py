"""JSON text <-> values with the C scanner alone: `import json` brings `re` and 16 ms to a hook."""

from __future__ import annotations

from foreword.errors import BadPayload

try:
    from _json import encode_basestring_ascii as _quoted  # CPython's own; PyPy has none
except ImportError:
    from json.encoder import encode_basestring_ascii as _quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SPACE = " \t\n\r"
_INFINITE = float("inf")


def loads(text: str) -> Any:
    """The value that *text* holds; anything that is not one JSON value raises BadPayload."""
    start = len(text) - len(text.lstrip(_SPACE))
    try:
        found, end = _SCAN(text, start)
    except (ValueError, StopIteration, RecursionError, MemoryError, SystemError) as exc:
        # SystemError: the C scanner has no error to raise where `json.decoder` was never imported.
        raise BadPayload(f"not JSON: {type(exc).__name__}", hint="a host sends one JSON object on stdin") from exc
    if text[end:].strip(_SPACE):
        raise BadPayload("not JSON: something follows the value", hint="a host sends one JSON object on stdin")
    return found


def dumps(item: Any) -> str:
    """The shortest ASCII JSON for *item*; what JSON has no word for becomes its text."""
    if isinstance(item, str):
        return _quoted(item)
    if isinstance(item, float):
        # NaN and the infinities are not JSON; null is what most readers expect there.
        return float.__repr__(item) if -_INFINITE < item < _INFINITE else "null"
    if item is None or item is True or item is False:
        return {None: "null", True: "true", False: "false"}[item]
    if isinstance(item, int):
        return int.__repr__(item)
    if isinstance(item, dict):
        return "{" + ",".join(f"{_quoted(str(key))}:{dumps(each)}" for key, each in item.items()) + "}"
    if isinstance(item, (list, tuple)):
        return "[" + ",".join(dumps(each) for each in item) + "]"
    return _quoted(str(item))


def decoded(raw: bytes) -> str:
    """The text of *raw*: UTF-8 with or without a mark, and what is not UTF-8 becomes U+FFFD."""
    return raw.decode("utf-8-sig" if raw[:3] == b"\xef\xbb\xbf" else "utf-8", "replace")


def storable(text: str) -> str:
    """*text* without lone surrogates, which JSON can spell and no file can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _scanner() -> Any:
    try:
        from _json import make_scanner  # CPython's own; PyPy has none
    except ImportError:
        import json

        return json.JSONDecoder(strict=False).scan_once  # type: ignore[attr-defined]
    return make_scanner(_Context())  # type: ignore[arg-type]


class _Context:
    """What the C scanner asks its decoder for; control characters inside strings are let through."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    # What is not finite becomes null, as it does when it is written again: the key of an event must stay the same.
    parse_float = staticmethod(lambda digits: number if abs(number := float(digits)) != _INFINITE else None)
    parse_int = staticmethod(lambda digits: int(digits) if len(digits) < 4000 else None)
    parse_constant = staticmethod(lambda _word: None)

    def __init__(self) -> None:
        self.memo: dict[str, str] = {}


_SCAN = _scanner()  # one for all: making it costs more than reading a short text
