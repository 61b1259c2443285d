"""Find the sentences of some texts in other texts, and replace these verbatim copies by a marker.

Case, white space and JSON escapes make no difference: a sentence is found in a log line, in a payload, and in JSON that
holds JSON. Other wordings are other sentences.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from foreword.store.memories import as_json as to_json

MARK = "[forgotten]"
# UTF-8 bytes from which on a sentence is looked for everywhere: four or five words (eight Chinese characters), which
# two people hardly write alike by chance. "done", "fix tests" and "run the tests again" are shorter.
SHORTEST = 24
LONGEST = 8192  # characters of a text that is looked for as a whole, besides its sentences
FEW = 64  # sentences up to which each is searched for by itself, at the speed of str.find

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|[\r\n]+")
_AROUND = " \t\r\n.,;:!?…。！？\"'`*_#>-"  # stripped from both ends, so that a copy without its full stop is found
# Every run of white space and its escapes but a single blank, and backslashes.
_BLANK = re.compile(r"(?: (?=\s|\\+[nrt])|[^\S ]|\\+[nrt])(?:\\+[nrt]|\s)*|\\+")


class Sentences:
    """The sentences of *texts* that have at least *shortest* bytes.

    With *whole_words*, a sentence is only found where no word goes on over its ends.
    """

    def __init__(self, texts: Iterable[str], *, shortest: int = SHORTEST, whole_words: bool = False) -> None:
        self.all = frozenset(
            form
            for text in texts
            for sentence in split(text)
            if is_long(sentence, shortest=shortest)
            for form in _forms(sentence)
        )
        self.longest = max(map(len, self.all), default=0)
        self._shortest, self._whole_words = shortest, whole_words
        # By how many characters candidates are looked up: as many as the beginning of every sentence has.
        begun = (form.encode("utf-8", "replace")[:shortest].decode("utf-8", "ignore") for form in self.all)
        self._head = min(map(len, begun), default=0)
        self._by_head: dict[str, list[str]] = {}
        for form in sorted(self.all, key=len, reverse=True):
            self._by_head.setdefault(form[: self._head], []).append(form)

    def __contains__(self, text: str) -> bool:
        """Return whether *text* is nothing but one of the sentences."""
        return _Plain.of(text.strip(_AROUND)).text in self.all

    def found(self, text: str) -> frozenset[str]:
        """Return the sentences that *text* holds."""
        plain = _Plain.of(text)
        return frozenset(plain.text[start:end] for start, end in self._spans(plain.text))

    def cut(self, text: str) -> str:
        """Return *text* with the marker in place of every copy."""
        plain = _Plain.of(text)
        pieces, done = [], 0
        for start, end in self._spans(plain.text):
            pieces.append(text[done : plain.origin(start)])
            done = plain.origin(end - 1) + 1
        return MARK.join([*pieces, text[done:]])

    def cut_json(self, text: str) -> str:
        """Do the same for a text that may be JSON, which stays JSON."""
        if not self.found(text):
            return text
        return each_string(text, self.cut)

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
            end = start + len(form)
            if plain.startswith(form, start) and not (self._whole_words and _inside_a_word(plain, start, end)):
                return end
        # Titles are cut to a width: the beginning of a sentence with an ellipsis behind it is a copy, too.
        clipped = plain.find("…", start, start + self.longest)
        if clipped < 0 or len(plain[start:clipped].encode("utf-8", "replace")) < self._shortest:
            return 0
        return clipped + 1 if any(form.startswith(plain[start:clipped]) for form in forms) else 0


def split(text: str) -> Iterator[str]:
    """Yield the sentences and lines of *text*, and the whole of it, without punctuation around them."""
    for part in text.split(MARK):
        for each in {part if len(part) <= LONGEST else "", *_SENTENCE_END.split(part)}:
            sentence = each.strip(_AROUND)
            if not _is_path(sentence):
                yield sentence


def is_long(sentence: str, *, shortest: int = SHORTEST) -> bool:
    """Return whether a sentence has enough bytes to be looked for, runs of white space counted as one blank."""
    return len(_Plain.of(sentence).text.encode("utf-8", "replace")) >= shortest


def each_string(text: str, change: Callable[[str], str]) -> str:
    """Apply *change* to each string of the JSON in *text*, at any depth, or to *text* itself where it is no JSON."""
    if text[:1] in ("{", "["):
        try:
            stored = json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            changed = _walk(stored, lambda each: each_string(each, change))
            return text if changed == stored else to_json(changed)
    return change(text)


def _walk(item: Any, change: Callable[[str], str]) -> Any:
    if isinstance(item, str):
        return change(item)
    if isinstance(item, dict):
        return {change(name): _walk(each, change) for name, each in item.items()}
    if isinstance(item, list):  # what is nothing but a copy leaves no item behind
        return [changed for each in item if (changed := _walk(each, change)) != MARK]
    return item


@dataclass(frozen=True)
class _Plain:
    """A text in lower case, its white space as single blanks and without backslashes, and where each part came from."""

    text: str
    starts: list[int]  # of parts in it
    origins: list[int]  # where those begin in the original text

    @classmethod
    def of(cls, text: str) -> _Plain:
        parts, starts, origins, size, done = [], [0], [0], 0, 0
        for run in _BLANK.finditer(text):
            blank = " " if run[0].strip("\\") else ""
            parts += [text[done : run.start()], blank]
            size += run.start() - done + len(blank)
            done = run.end()
            starts.append(size)
            origins.append(done)
        return cls(_lower("".join((*parts, text[done:]))), starts, origins)

    def origin(self, at: int) -> int:
        part = bisect_right(self.starts, at) - 1
        return self.origins[part] + at - self.starts[part]


def _lower(text: str) -> str:
    """Return *text* in lower case, every character at its place: `lower` makes two of İ, and Σ depends on its place."""
    return text.lower() if text.isascii() else text.replace("İ", "i").replace("Σ", "σ").lower()


def _forms(sentence: str) -> Iterator[str]:
    """Yield a sentence as it stands in a text, and as JSON in ASCII writes it."""
    yield _Plain.of(sentence).text
    if not sentence.isascii():
        yield _Plain.of(json.dumps(sentence)[1:-1]).text


def _is_path(text: str) -> bool:
    """Return whether a text is the name of a file or an address: a name belongs to whoever uses it."""
    return ("/" in text or "\\" in text) and not any(map(str.isspace, text))


def _inside_a_word(plain: str, start: int, end: int) -> bool:
    return any(
        0 < at < len(plain) and plain[at - 1 : at + 1].isascii() and plain[at - 1 : at + 1].isalnum()
        for at in (start, end)
    )
