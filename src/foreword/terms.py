"""Split text into search terms: identifiers into parts, scripts without spaces into pairs, no stop words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from foreword.encoding import read_words

# Every ASCII character that is no letter and no digit parts words, as the index's own tokenizer has it.
# Tables for bytes of UTF-8: `str.translate` takes 2 ms for 50 KB that are not all ASCII, this 0.1.
_BREAKS = bytes(code if code > 127 or chr(code).isalnum() else 32 for code in range(256))

# Scripts that put no spaces between words: the index gets their characters in overlapping pairs.
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # the signs for a repeated and a closed character, and zero
    (0x3040, 0x312F),  # Hiragana, Katakana, Bopomofo
    (0x31F0, 0x31FF),
    (0x3400, 0x9FFF),  # Han
    (0xAC00, 0xD7AF),  # Hangul spaces its words but glues particles to them
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),
    (0x20000, 0x3FFFF),
)

# The index's tokenizer takes an accent off a Latin letter but not off these, unless it is by itself (as in the
# file names of macOS): both spellings, and the one without, become one word.
_FOLDED = str.maketrans("йёїўѓќ", "иеіугк")

TAIL = 60  # characters at the end of a text that tell whether it asks
MOST_RUN = 300  # characters of writing without spaces that are looked for: a page of it is known by its ends
MOST_TEXT = 20_000  # characters of a text that are compared, counted in or taken in pairs
MOST_PAIRS = 16
_ENDINGS = ("ings", "ing", "ed", "ies", "es", "ly", "s", "e", "y")


WORDS = {use: frozenset(words) for use, words in read_words(__file__, "words.txt").items()}
STOP_WORDS, GENERIC, TALK = WORDS["stop"], WORDS["generic"], WORDS["talk"]

# A text of more words is partly pasted: its beginning and its end are the user's.
_LONG = 150
_OWN = 60  # words at the beginning, and as many at the end
_MIDDLE = 1_000  # words between them that are read
_ERRORS = ("Error", "ERROR", "error:", "Exception", "FAILED", "panic", "fatal")
_LINES = 6  # with each of these, the last first: where a failure ends, it is named


def split(text: str) -> str:
    """Return the extra words of *text* that the index's tokenizer would not find by itself."""
    found: dict[str, None] = {}
    for token in _tokens(text):
        if not token.isascii():
            found.update(dict.fromkeys(_pairs(token)))
        elif not token.islower() or not token.isalpha():
            found.update(dict.fromkeys(_parts(token)))
    return " ".join(found)


def terms(text: str, *, limit: int = 64) -> tuple[str, ...]:
    """Return the distinct words of *text* worth a search, at most *limit*; a final `*` asks for a prefix.

    In the order of the text; of a long one, those of its beginning, its end and its errors before the others.
    """
    found: dict[str, None] = {}
    long = len(text) > _LONG and len(text.split(None, _LONG)) > _LONG
    for part, share in _telling(text) if long else ((text, 1.0),):
        _collect(found, part, most=min(limit, len(found) + round(limit * share)), sifted=long)
    return tuple(found)[:limit]


def pairs(text: str) -> tuple[str, ...]:
    """Return the words worth a search that are side by side in *text*, two each, in its order."""
    found: dict[str, None] = {}
    before = ""
    for token in broken(text[:MOST_TEXT]).lower().split():
        word = token if len(token) > 1 and token.isascii() and token not in STOP_WORDS else ""
        if word and before:
            found[f"{before} {word}"] = None
            if len(found) >= MOST_PAIRS:
                break
        before = word
    return tuple(found)


def text_in(detail: object, *, deep: int = 4) -> str:
    """Return every text in a detail, however it is nested, as one."""
    if isinstance(detail, str):
        return detail
    parts = detail.values() if isinstance(detail, dict) else detail if isinstance(detail, (list, tuple)) else ()
    return " ".join(filter(None, (text_in(part, deep=deep - 1) for part in parts))) if deep else ""


def plain(text: str) -> str:
    """Return *text* in small letters with a space before every word, so that `root` is found where a word begins."""
    return f" {broken(text[:MOST_TEXT]).lower()}"


def root(term: str) -> str:
    """Return a stem that `plain` text holds with any form of *term*: rough, for counting what the index has found."""
    if not term.isascii() or not term.isalpha():
        return term.rstrip("*")
    if term.endswith(_ENDINGS):  # few words do, and a hook asks for thousands
        for ending in _ENDINGS:
            if term.endswith(ending) and len(term) - len(ending) > 2:
                return f" {term[: -len(ending)]}"
    return f" {term}"


def any_of(words: Sequence[str]) -> str:
    """Return the full-text expression that finds any of *words*, whatever characters they hold."""
    return " OR ".join(
        f'"{word[:-1]}"*' if word.endswith("*") and len(word) > 1 else f'"{word}"'
        for word in (word.replace('"', " ").replace("\0", " ") for word in words)
    )


def broken(text: str) -> str:
    """Return *text* with a space for every ASCII character that parts words."""
    return text.encode("utf-8", "surrogatepass").translate(_BREAKS).decode("utf-8", "surrogatepass")


def _collect(found: dict[str, None], text: str, *, most: int, sifted: bool) -> None:
    for token in _tokens(text):
        if len(found) >= most:
            break
        if sifted and _is_data(token):
            continue
        if token.isascii():
            for word in (token.lower(), *_parts(token)):
                if len(word) > 1 and word not in STOP_WORDS:
                    found[word] = None
        else:
            ends = token if len(token) <= MOST_RUN else f"{token[: MOST_RUN // 2]} {token[-MOST_RUN // 2 :]}"
            found.update(dict.fromkeys(_foreign(ends)))


def _telling(text: str) -> Iterator[tuple[str, float]]:
    """Yield the parts of *text* worth reading, the user's own words first, each with its share of the terms."""
    *own, rest = text.split(None, _OWN)
    middle, *end = rest.rsplit(None, _OWN)
    yield " ".join(own), 0.4
    yield " ".join(reversed(end)), 0.2  # the end is nearest to what is wanted
    yield _errors(middle), 0.2
    yield " ".join(middle.split(None, _MIDDLE)[:_MIDDLE]), 1.0


def _is_data(token: str) -> bool:
    """Return whether this is a time, a hash or a count rather than a word; 404, sha256 and word2999 are words."""
    if token.isdigit():
        return not 3 <= len(token) <= 4
    if token[0].isdigit() or len(token) < 8 or token.rstrip("0123456789").isalpha():
        return token[0].isdigit()
    return sum(map(str.isdigit, token[:64])) > 3


def _errors(text: str) -> str:
    """Return the lines of *text* that name an error."""
    lines: dict[str, None] = {}
    for sign in _ERRORS:
        at = len(text)
        for _ in range(_LINES):
            at = text.rfind(sign, 0, at)
            if at < 0:
                break
            begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            lines[text[max(begin, at - 100) : min(end if end >= 0 else len(text), at + 200)]] = None
            at = begin
    return "\n".join(lines)


def _tokens(text: str) -> Iterable[str]:
    return dict.fromkeys(broken(text).split())  # each once: a log repeats the same thing a thousand times


def _parts(token: str) -> list[str]:
    """Split `HTTPTransport` into http and transport, `utf8` into utf; nothing when the token is one part."""
    if token.isalpha() and (token.islower() or token.isupper()):
        return []
    cuts = [0]
    for at in range(1, len(token)):
        before, here = token[at - 1], token[at]
        after = token[at + 1] if at + 1 < len(token) else ""
        if here.isdigit() != before.isdigit() or (
            here.isupper() and (before.islower() or (before.isupper() and after.islower()))
        ):
            cuts.append(at)
    if len(cuts) == 1:
        return []
    pieces = [token[start:end].lower() for start, end in zip(cuts, [*cuts[1:], len(token)], strict=True)]
    return [piece for piece in pieces if len(piece) > 1 and not piece.isdigit()]


def _foreign(token: str) -> Iterator[str]:
    """Yield the search terms of a token that is not plain ASCII."""
    for run, unspaced in _runs(token):
        if not unspaced:
            if run.isascii():
                yield from terms(run)
            elif len(run) > 1:
                yield run.lower().translate(_FOLDED)
        elif len(run) == 1:
            yield f"{run}*"
        else:
            yield from _bigrams(run)


def _pairs(token: str) -> Iterator[str]:
    """Yield the index words of a token that is not plain ASCII."""
    for run, unspaced in _runs(token):
        if unspaced:
            yield from _bigrams(run)
            yield run[-1]  # no pair begins with it, and a single character is looked for as the beginning of a word
        elif len(run) < len(token) or run.lower() != run.lower().translate(_FOLDED):
            yield run.lower().translate(_FOLDED)
            yield from _parts(run) if run.isascii() else ()


def _bigrams(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _runs(token: str) -> Iterator[tuple[str, bool]]:
    """Yield the stretches of letters and digits in *token*, each of one manner of writing."""
    run, manner = "", False
    for character in token:
        if not character.isalnum():
            # A vowel sign or an accent of its own does not end the word; punctuation does.
            if _is_mark(character) and not manner:
                run += character if run else ""  # the index's tokenizer deals with it, here as there
            elif not _is_mark(character) and not _is_unspaced(character):
                if run:
                    yield run, manner
                run = ""
            continue
        unspaced = _is_unspaced(character)
        if run and unspaced != manner:
            yield run, manner
            run = ""
        run, manner = run + character, unspaced
    if run:
        yield run, manner


def _is_mark(character: str) -> bool:
    return f"a{character}".isidentifier()  # for what is no letter and no digit, this is what Unicode calls a mark


def _is_unspaced(character: str) -> bool:
    code = ord(character)
    return code >= 0x0E00 and any(first <= code <= last for first, last in _UNSPACED)


# Rows that every store is thought to have besides its own: in a store of three, two are not many. 0 to 1,000 were
# tried on the sets of `make eval`; from 100 on the order hardly changes.
IMAGINED = 200


def rarity(holders: int, size: int) -> float:
    """Return the weight of something that *holders* of *size* memories hold: the fewer, the more."""
    return math.log(1 + (max(size, holders) + IMAGINED - holders + 0.5) / (holders + 0.5))


class _LazyPattern:
    """A regular expression that compiles itself when it is first used, and then hands out its methods."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._arguments = pattern, flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(*self._arguments), name)
        setattr(self, name, method)
        return method


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return what `re.compile` does, later: a hook without a worker loads hundreds of expressions and uses few."""
    return cast(re.Pattern[str], _LazyPattern(pattern, flags))
