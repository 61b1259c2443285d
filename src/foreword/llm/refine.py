"""Let a model improve the summary of a session, and check every line of its answer.

Its input may be hostile, and its answer may be anything. So nothing depends on its obedience: it has no tools, its
answer is data of a fixed form, each text of it is one plain line within its length, redacted, and dropped where it
names a file, a function, an address, an option or a number that was not in the input. None of it is ever a rule:
there is no place for one, and its trust is the lowest of its inputs, never the user's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foreword.audit import REVISED
from foreword.encoding import storable
from foreword.models import Memory, Trust, lowest_trust
from foreword.recall.sanitize import cut_at_word, visible
from foreword.recall.tokens import count
from foreword.redact import redact

MOST_IN = 3_500  # tokens of the whole prompt, by the dearest tokenizer: under half a cent of a small model
MOST_OUT = 1_200  # tokens of an answer in which every field is full
DRAFT_LINE, DRAFT_LINES = 600, 10  # characters of one line of a draft, and lines of one kind
EXCERPT = 1_200  # characters; the head and the tail of a longer one
TITLE, TEXT, ITEM = 80, 500, 240  # characters that are kept
SLACK = 4  # models do not count characters: a text of so many times as many is cut, a longer one is dropped
ITEMS = 5  # of each list

SYSTEM = (Path(__file__).parent / "prompt.txt").read_text("utf-8").strip().format(TITLE=TITLE, TEXT=TEXT, ITEMS=ITEMS)


@dataclass(frozen=True)
class Refined:
    """A model's version of a summary; where a field is empty, the summary's own stays."""

    title: str
    done: str
    learned: tuple[str, ...]
    next: tuple[str, ...]
    source: str  # model:NAME
    trust: Trust  # the lowest of its inputs, and never the user's


def refine(
    complete: Callable[[str], dict[str, Any]],
    draft: Sequence[str],
    *,
    model: str,
    excerpts: Sequence[str] = (),
    trusts: Sequence[str] = (),
    fence: str,
) -> Refined | None:
    """Return the draft in better words; None where nothing usable came of it.

    *complete* sends a prompt and returns the object that the model answers with. *trusts* are those of all inputs;
    *fence* is random, and must be new for every call.
    """
    inputs = _read(draft, excerpts, fence=fence)
    if not inputs:
        return None
    answer = complete(_prompt(inputs, fence=fence))
    input_text = " ".join(" ".join(inputs).lower().split())

    def line(value: object, most: int) -> str:
        if not isinstance(value, str) or len(value) > SLACK * most:
            return ""
        text = plain(value, most=most)
        for name in _names(text):  # which the input has, and not only as a part of a longer one
            before, after = (r"(?<!\w)" if name[0].isalnum() else "", r"(?!\w)" if name[-1].isalnum() else "")
            if not re.search(f"{before}{re.escape(name)}{after}", input_text):
                return ""
        return text

    def lines(name: str) -> tuple[str, ...]:
        items = answer.get(name)
        kept = [line(each, ITEM) for each in items[:ITEMS]] if isinstance(items, list) else []
        return tuple(dict.fromkeys(filter(None, kept)))

    refined = Refined(
        title=line(answer.get("title"), TITLE),
        done=line(answer.get("done"), TEXT),
        learned=lines("learned"),
        next=lines("next"),
        source=plain(f"model:{model}", most=TITLE),
        trust=lowest_trust(("agent", *trusts) if trusts else ()),  # without inputs imported, and never the user's
    )
    return refined if any((refined.title, refined.done, refined.learned, refined.next)) else None


def draft_of(memories: Sequence[Memory]) -> list[str]:
    """Return a session's summary and its other memories, as the lines that the model is given."""
    of = {kind: [each for each in memories if each.kind == kind] for kind in ("summary", "decision", "failure")}
    (summary,) = of["summary"]
    detail = summary.detail
    parts = {
        "request": ["; ".join((summary.title, *detail.get("request", ())))],
        "done": ["; ".join(detail.get("done", ()))],
        "learned": detail.get("learned", ()),
        "decided": [f"{each.title} | {each.detail.get('why', '')}" for each in of["decision"]],
        "failed": [f"{each.title}; fixed by {each.detail.get('fixed_by', '?')}" for each in of["failure"]],
        "next": detail.get("next", ()),
        "files": [", ".join(summary.files[:40])],
    }
    return [f"{name}: {text}" for name, texts in parts.items() for text in texts[:DRAFT_LINES] if text.strip()]


def apply(summary: Memory, refined: Refined) -> Memory:
    """Return the summary in the model's words, with the original beside.

    Open items stay as the session itself has them, and a summary that the user revised stays as it is.
    """
    if summary.detail.get(REVISED):
        return summary
    # A session that goes on is refined again: the original is then what the first time kept.
    original = summary.detail.get("without_model") or {"title": summary.title, **summary.detail}
    detail: dict[str, Any] = {name: each for name, each in original.items() if name != "title"}
    detail["without_model"] = original
    for name, texts in (("done", [refined.done]), ("learned", refined.learned)):
        if any(texts):
            detail[name] = list(texts)
    if refined.next and not detail.get("next"):
        detail["next"] = list(refined.next)
    title = refined.title or summary.title
    return replace(summary, title=title, source=refined.source, trust=refined.trust, detail=detail)


# ---- what the model is given


def _read(draft: Sequence[str], excerpts: Sequence[str], *, fence: str) -> list[str]:
    """Return the input of the model, redacted and bounded: the draft, then as many excerpts as there is room."""
    cleaned = [redact(storable(each))[:DRAFT_LINE] for each in draft]  # redact first: half a secret is not recognised
    for whole in (redact(storable(each)) for each in excerpts if each.strip()):
        half = EXCERPT // 2
        cleaned.append(f"excerpt: {whole if len(whole) <= EXCERPT else f'{whole[:half]} [cut] {whole[-half:]}'}")
    tokens_left = MOST_IN - count(SYSTEM) - count(_prompt((), fence=fence))
    inputs: list[str] = []
    for text in (each.replace(fence, "") for each in cleaned):
        cost = count(json.dumps(text, ensure_ascii=False)) + 2
        if cost <= tokens_left:  # skip, not stop: one long excerpt must not hide ten short ones
            inputs.append(text)
            tokens_left -= cost
    return inputs


def _prompt(inputs: Sequence[str], *, fence: str) -> str:
    """Return each text as one JSON string on a line of its own: none can end its line, and none holds the fence."""
    quoted = "\n".join(json.dumps(each, ensure_ascii=False) for each in inputs)
    return f"<record {fence}>\n{quoted}\n</record {fence}>\nReport on the record above as one JSON object."


# ---- what comes back


def plain(text: str, *, most: int) -> str:
    """Return *text* on one line of at most *most* characters, redacted, without invisible characters."""
    # Unseen characters go first: they could stand in the middle of a secret.
    return cut_at_word(redact(visible(storable(text))), width=most, more=False)


_AROUND = "\"'`()[]{}<>,;:!?.…“”‘’«»*|"
_PROSE = r"[^\W\d_]+(?:[-'’.·][^\W\d_]+)*"  # a word, well-known, don't
_CODED = r"[a-z][A-Z]|\.[^\W\d_]{2}"  # camelCase; a name with an ending, or a domain
_SMALL = r"\d{1,2}(?:[.,:]\d{1,2})?(?:%|-?[a-z]{1,7})?"  # counts, times of a day: a summary makes them itself


def _names(line: str) -> Iterator[str]:
    """Yield what in a line is not prose, in lower case: files, functions, ids, versions, addresses, options, code."""
    for quoted in re.findall(r"`([^`]+)`", line):
        if inner := quoted.strip().lower():
            yield inner.removesuffix("()")
    for word in line.split():
        stripped = word.strip(_AROUND).removesuffix("'s").removesuffix("’s")
        if not re.search(r"\w", stripped) or re.fullmatch(_SMALL, stripped) or stripped.startswith("redacted:"):
            continue
        if not re.fullmatch(_PROSE, stripped) or re.search(_CODED, stripped):
            stripped = re.sub(r"(?::\d+){1,2}$", "", stripped).lower()  # file.py:12 is a place in file.py
            first, has_slash, second = stripped.partition("/")
            are_words = has_slash and re.fullmatch(_PROSE, first) and re.fullmatch(_PROSE, second)
            yield from (first, second) if are_words else (stripped,)  # read/write, where either was spoken of
