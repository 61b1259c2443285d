"""Find verbatim copies of forgotten texts in others, and replace them."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from foreword.store.forget import MARK, TEXTS, UNFINISHED, Target
from foreword.store.sql import as_json

# Texts in which copies are replaced; all other columns hold ids, keys, paths and numbers.
CUT: Mapping[str, tuple[str, ...]] = {
    "memories": TEXTS,
    "events": ("payload",),
    "injection_texts": ("text",),
    "injections": ("terms", "files", "skipped", "layers"),
    "log": ("why", "patch"),
    "checkpoints": ("text",),
    "model_calls": ("outcome", "purpose"),
}
# UTF-8 bytes from which on a sentence is looked for everywhere: four or five words (eight Chinese characters), which
# two people hardly write alike by chance. "done", "fix tests" and "run the tests again" are shorter.
SHORTEST = 24
SHORTEST_NEAR = 8  # ... and in the session that it came from, which holds the prompt that a short memory was made of
LONGEST = 8192  # characters of a text that is looked for as a whole, besides its sentences
FEW = 64  # sentences up to which each is searched for by itself, at the speed of str.find

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|[\r\n]+")
_AROUND = " \t\r\n.,;:!?…。！？\"'`*_#>-"  # stripped from both ends, so that a copy without its full stop is found
# Every run of white space and its escapes but a single blank, and backslashes.
_BLANK = re.compile(r"(?: (?=\s|\\+[nrt])|[^\S ]|\\+[nrt])(?:\\+[nrt]|\s)*|\\+")


class Sentences:
    """The sentences of *texts* that have at least *shortest* bytes."""

    def __init__(self, texts: Iterable[str], *, shortest: int = SHORTEST) -> None:
        self.all: set[str] = set()
        self.too_short: set[str] = set()  # texts without any sentence that is long enough
        self._shortest = shortest
        for text in texts:
            found = {form for sentence in _split(text) for form in _forms(sentence) if _size(form) >= shortest}
            self.all |= found
            if not found and text.strip(_AROUND):
                self.too_short.add(text.strip(_AROUND))
        self.longest = max(map(len, self.all), default=0)
        # By how many characters candidates are looked up: as many as the beginning of every sentence has.
        begun = (form.encode("utf-8", "replace")[:shortest].decode("utf-8", "ignore") for form in self.all)
        self._head = min(map(len, begun), default=0)
        self._by_head: dict[str, list[str]] = {}
        for form in sorted(self.all, key=len, reverse=True):
            self._by_head.setdefault(form[: self._head], []).append(form)

    def __contains__(self, text: object) -> bool:
        """Return whether *text* is nothing but one of the sentences."""
        return _plain(str(text).strip(_AROUND))[0] in self.all

    def found(self, text: str) -> frozenset[str]:
        """Return the sentences that *text* holds."""
        plain, _ = _plain(text)
        return frozenset(plain[start:end] for start, end in self._spans(plain))

    def cut(self, text: str) -> str:
        """Return *text* with the marker in place of every copy."""
        plain, origin = _plain(text)
        pieces, done = [], 0
        for start, end in self._spans(plain):
            pieces.append(text[done : origin(start)])
            done = origin(end - 1) + 1
        return MARK.join([*pieces, text[done:]])

    def cut_json(self, text: str) -> str:
        """Do the same for a text that may be JSON, which stays JSON."""
        return each_string(text, self.cut) if self.found(text) else text

    def _spans(self, plain: str) -> Iterator[tuple[int, int]]:
        """Yield where copies stand, the longest at each place, none over another."""
        done = 0
        for start in self._starts(plain):
            end = self._end(plain, start) if start >= done else 0
            if end:
                yield start, end
                done = end

    def _starts(self, plain: str) -> Iterable[int]:
        size, heads = self._head, self._by_head
        if not heads:
            return ()
        if len(heads) > FEW:
            return (at for at in range(len(plain) - size + 1) if plain[at : at + size] in heads)
        here = (head for head in heads if head in plain)
        return sorted(at.start() for head in here for at in re.finditer(f"(?={re.escape(head)})", plain))

    def _end(self, plain: str, start: int) -> int:
        """Return where the copy that begins at *start* ends; 0 where there is none."""
        forms = self._by_head[plain[start : start + self._head]]
        for form in forms:
            if plain.startswith(form, start):
                return start + len(form)
        # Titles are cut to a width: the beginning of a sentence with an ellipsis behind it is a copy, too.
        clipped = plain.find("…", start, start + self.longest)
        if clipped < 0 or _size(plain[start:clipped]) < self._shortest:
            return 0
        return clipped + 1 if any(form.startswith(plain[start:clipped]) for form in forms) else 0


def each_string(text: str, change: Callable[[str], str]) -> str:
    """Apply *change* to each string of the JSON in *text*, at any depth, or to *text* itself where it is no JSON."""
    if text[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            stored = json.loads(text)
            changed = _walk(stored, lambda each: each_string(each, change))
            return text if changed == stored else as_json(changed)
    return change(text)


def _walk(item: Any, change: Callable[[str], str]) -> Any:
    if isinstance(item, str):
        return change(item)
    if isinstance(item, dict):
        return {name: _walk(each, change) for key, each in item.items() if (name := change(key)) != MARK}
    if isinstance(item, list):  # what is nothing but a copy leaves nothing behind
        return [changed for each in item if (changed := _walk(each, change)) != MARK]
    return item


def _split(text: str) -> Iterator[str]:
    """Yield the sentences and lines of *text*, and the whole of it, without punctuation around them."""
    for part in text.split(MARK):
        for each in {part if len(part) <= LONGEST else "", *_SENTENCE_END.split(part)}:
            sentence = each.strip(_AROUND)
            is_path = ("/" in sentence or "\\" in sentence) and not any(map(str.isspace, sentence))
            if not is_path:  # the name of a file or an address belongs to whoever uses it
                yield sentence


def _forms(sentence: str) -> Iterator[str]:
    """Yield a sentence as a text holds it, and as JSON in ASCII writes it."""
    yield _plain(sentence)[0]
    if not sentence.isascii():
        yield _plain(json.dumps(sentence)[1:-1])[0]


def _plain(text: str) -> tuple[str, Callable[[int], int]]:
    """Return *text* in lower case, white space as single blanks, without backslashes; and where each character was."""
    parts, starts, origins, size, done = [], [0], [0], 0, 0
    for gap in _BLANK.finditer(text):
        blank = " " if gap[0].strip("\\") else ""
        parts += [text[done : gap.start()], blank]
        size += gap.start() - done + len(blank)
        done = gap.end()
        starts.append(size)
        origins.append(done)

    def origin(at: int) -> int:
        part = bisect_right(starts, at) - 1
        return origins[part] + at - starts[part]

    plain = "".join((*parts, text[done:]))
    # Every character keeps its place: `lower` makes two of İ, and Σ depends on its place.
    return plain.replace("İ", "i").replace("Σ", "σ").lower(), origin


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


class Cutter:
    """Replaces verbatim copies of *texts* in rows that stay, and notes which memories that changes."""

    def __init__(self, target: Target, texts: Sequence[str]) -> None:
        self.target = target
        self.sentences = Sentences(texts)
        self.cut: set[str] = set()  # uids of memories that stay without a passage
        self._short = Sentences(texts, shortest=SHORTEST_NEAR)

    def cell(self, table: str, column: str, text: str, row: Mapping[str, Any]) -> str:
        """Clean a text of a row; one that goes is left as it is."""
        is_memory, is_near = table == "memories", row.get("session") in self.target.near
        goes = row.get("status") == "forgotten" or (not is_memory and row.get("session") in self.target.sessions)
        if goes or column not in CUT.get(table, ()) or row.get("name") == UNFINISHED:
            return text
        if is_memory and self.target.spares(trust=row["trust"], project=row["project"]):
            return text
        clean = self.sentences.cut_json(text)
        if is_near and not is_memory:
            clean = self._short.cut_json(clean)
        elif is_near and column == "detail":  # a summary names the decisions of its session
            clean = each_string(clean, lambda each: MARK if each in self._short else each)
        if column == "detail":  # a fix that is nothing but a copy is none
            clean = each_string(clean, lambda each: "" if each == MARK else each)
        if is_memory and clean != text:
            self.cut.add(row["uid"])
        return clean
