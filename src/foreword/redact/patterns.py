"""Find tokens of known formats: one table (formats.txt), one compiled expression per row.

A token begins with a literal prefix and goes on with a run of characters of one class. Most text holds no prefix in any
word that is long enough for a token, so the expressions run only where a prefix is. Every run is read once per row:
an attempt that fails because of what the run holds goes on behind the run, which keeps the search linear.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from foreword.encoding import read_table, read_words

Span = tuple[int, int, str]  # from, to, the name of what is there
Check = Callable[[str], object]

WORDS = read_words(__file__, "words.txt")
CLASSES = {use[6:]: words[0] for use, words in WORDS.items() if use.startswith("class-")}


class Format(NamedTuple):
    """One line of formats.txt."""

    name: str
    least: int  # characters behind the prefix
    kind: str  # of CLASSES
    check: Check  # what it must fulfil besides
    begins: str  # "", "word", or the class of the characters before the prefix
    before: int  # how many of those there are
    prefixes: list[str]


MOST = 1000  # secrets of a kind that are marked one by one; a text of more is a dump, and its rest goes as a whole
SEAM = "\n\0\1\0\n"  # between texts that are redacted together: no secret reaches across it
SHORTEST = 20  # characters of an AWS key; a shorter word holds no token

_DIGIT, _SMALL, _CAPITAL, _NO_DIGIT_OR_SIGN = map(re.compile, ("[0-9]", "[a-z]", "[A-Z]", r"[^0-9\-_.+/=%]"))


def is_random(text: str) -> bool:
    """Return whether *text* holds a digit and a letter, or both cases: no word, no number."""
    if _DIGIT.search(text):
        return _NO_DIGIT_OR_SIGN.search(text) is not None
    return (_SMALL.search(text) is None) == (_CAPITAL.search(text) is None)


def _has_digit_and_case(body: str) -> bool:
    # A digit, and either both cases or 24 characters without a dash: names such as sk-cube-grid have neither.
    if not _DIGIT.search(body):
        return False
    return not (body.islower() or body.isupper()) or bool(re.search("[^_-]{24}", body[:4096]))


# What a run must fulfil where its length alone is no proof.
CHECKS: dict[str, Check] = {
    "-": lambda _: True,
    "random": is_random,
    "short": lambda body: len(body) <= 400 and is_random(body),  # a program in base64 begins so, too
    "openai": _has_digit_and_case,
    "resend": lambda body: body.find("_") == 8 and is_random(body[9:]),
    "slack-app": lambda body: body[:2] in ("1-", "2-") or (body[:20].isalnum() and is_random(body[:64])),
    "groups": lambda body: body.upper() == body and all(len(part) in (5, 6) for part in body[:34].split("-")[:-1]),
}


def _read_format(line: str) -> Format:
    name, least, kind, check, begins, *prefixes = line.split()
    begins, _, before = begins.strip("-").partition(":")
    test = re.compile(check[1:-1]).match if check[0] == "/" else CHECKS[check]
    return Format(name, int(least), kind, test, begins, int(before or 0), prefixes)


FORMATS = [_read_format(line) for line in read_table(__file__, "formats.txt")]


_HEX2 = "[0-9a-fA-F]{2}"
# What ends in a letter or digit and is no part of a word: \n, %3D, \x22, \u0022, ESC [K, ESC [1;31m.
_ESCAPES = [r"\\[nrtbf]", f"%{_HEX2}", rf"\\x{_HEX2}", rf"\\u00{_HEX2}", r"\[[mK]"]
_ESCAPES += [rf"[\[;][0-9]{{{count}}}m" for count in (1, 2, 3)]
_WORD_BEGINS = "(?:" + "|".join(("(?<![0-9A-Za-z])", *(f"(?<={each})" for each in _ESCAPES))) + ")"


@cache
def _compile_row(number: int) -> re.Pattern[str]:
    """Return the expression of a row of FORMATS; its group `run` is what follows the prefix."""
    row = FORMATS[number]
    prefix = f"(?:{'|'.join(map(re.escape, row.prefixes))})"
    if row.before:
        prefix += f"(?<=[{CLASSES[row.begins]}]{{{row.before}}}{prefix})"
    elif row.begins:
        prefix = _WORD_BEGINS + prefix
    one = f"[{CLASSES[row.kind]}]"
    run = f"{one}{{{row.least},}}+"
    if "/" in one:  # JSON may write a slash as \/
        run = rf"(?=(?:{one}|\\(?=/)){{{row.least}}}){one}*+(?>(?:\\/{one}*+)*)"
    return re.compile(f"{prefix}(?P<run>{run})")


def _split_prefixes() -> tuple[list[tuple[str, int]], dict[str, list[int]]]:
    """Return the prefixes to look for as they are, and the rows of all others by the heads of their prefixes.

    A head reaches to the last sign of a prefix (`pypi-` of `pypi-AgE`), or to its end if it begins words only.
    """
    literals: list[tuple[str, int]] = []
    heads: dict[str, list[int]] = {}
    for number, row in enumerate(FORMATS):
        for prefix in row.prefixes:
            head = re.match("[0-9A-Za-z]{2,}.*[^0-9A-Za-z]", prefix)
            if head or (row.begins == "word" and not row.before):
                heads.setdefault(head[0] if head else prefix, []).append(number)
            else:
                literals.append((prefix, number))
    return literals, heads


@cache
def _compile_heads() -> list[re.Pattern[str]]:
    """Return what finds the heads: their last group is a head, and at least 12 characters of a token follow.

    A sign is rare, so it is looked for first, the letters before it in a look-behind. One alternation of all prefixes
    would be tried at every letter and read 10 MB a second.
    """
    signs: dict[str, dict[int, list[str]]] = {}
    words: list[str] = []
    for head in sorted(_HEADS, key=len, reverse=True):
        if head[-1].isalnum():
            words.append(re.escape(head))
        else:
            signs.setdefault(head[-1], {}).setdefault(len(head), []).append(re.escape(head))
    follows = rf"[{CLASSES['any']}\\]{{12}}"
    escape = f"[nrtbfmK]|{_HEX2}|x{_HEX2}|u00{_HEX2}|[0-9]{{1,3}}m"
    found = [rf"[^0-9A-Za-z](?:{escape})?(?=({'|'.join(words)}){follows})"]
    for sign, lengths in signs.items():
        heads = "|".join(f"(?<=({'|'.join(heads)}))" for heads in lengths.values())
        found.append(rf"{re.escape(sign)}(?<=[0-9A-Za-z].)(?={follows})(?:{heads})")
    return [re.compile(each) for each in found]


_LITERALS, _HEADS = _split_prefixes()


@cache
def _rows_of(head: str) -> list[tuple[int, int]]:
    """Return the rows to try at *head*, and where in it each begins: csk- ends with sk-, EAAA begins with EAA."""
    return [
        (row, len(head) - len(other) if head.endswith(other) else 0)
        for other, rows in _HEADS.items()
        if head.endswith(other) or head.startswith(other)
        for row in rows
    ]


# A word that is long enough for a token and holds a digit or a capital, with the character before it: one percent of a
# source. (Of 20 random small letters and digits, one in 700 has neither; every format of those has 30 or more.)
_ANY = rf"{CLASSES['any']}\\"
_WORD = re.compile(rf"[^{_ANY}](?=[a-z_\-.+%/=$!,~:@\\]*+[0-9A-Z])[{_ANY}]{{{SHORTEST},}}+")
_NAME = re.compile("[0-9A-Za-z_]*+")


def find_tokens(text: str) -> list[Span]:
    """Return where tokens stand, in order; of two that overlap, the one whose format comes first gives its name."""
    words = list(_WORD.finditer(f"\n{text}"))
    if not words:
        return []
    joined = "".join([word[0] for word in words])  # each begins with a character that is in no token
    found: list[tuple[int, int, int]] = []
    for prefix, number in _LITERALS:
        if prefix in joined:
            found += _check(number, joined, _compile_row(number).finditer(joined))
    # To compile what finds the heads takes 4 ms; most short texts hold none of them.
    short = len(joined) < 4096 and not any(map(joined.__contains__, _HEADS))
    for finder in () if short else _compile_heads():
        done: dict[int, int] = {}
        for place in finder.finditer(joined):
            group = place.lastindex or 0
            at = place.start(group)
            for number, offset in _rows_of(place[group]):
                if at + offset >= done.get(number, 0) and (match := _compile_row(number).match(joined, at + offset)):
                    done[number] = match.end()
                    found += _check(number, joined, [match])
    if not found:
        return []
    begins = list(accumulate((len(word[0]) for word in words), initial=0))
    spans: list[Span] = []
    for start, number, end in sorted(found):
        at = bisect(begins, start) - 1
        moved = words[at].start() - 1 - begins[at]
        spans.append((start + moved, end + moved, FORMATS[number].name))
    return merge_spans(spans)


def _check(number: int, text: str, matches: Iterable[re.Match[str]]) -> Iterator[tuple[int, int, int]]:
    """Yield (start, row, end) of each match that is a token."""
    row = FORMATS[number]
    for match in matches:
        body = match["run"].rstrip(".:,%!~")  # the end of a sentence
        if len(body) >= row.least and row.check(body):
            end = _NAME.match(text, match.start("run") + len(body))
            yield match.start() - row.before, number, end.end() if end else 0


def merge_spans(spans: list[Span]) -> list[Span]:
    """Return *spans*, ordered by their beginnings, as spans that do not overlap; the first gives its name."""
    merged: list[Span] = []
    for start, end, name in spans:
        if not merged or start >= merged[-1][1]:
            merged.append((start, end, name))
        elif end > merged[-1][1]:
            merged[-1] = merged[-1][0], end, merged[-1][2]
    return merged


def end_or_rest(text: str, end: int, count: int) -> int:
    """Return *end*; from the secret after MOST of its kind on the end of its text, so that the rest goes with it."""
    seam = -1 if count <= MOST else text.find(SEAM, end)
    return end if count <= MOST else seam if seam >= 0 else len(text)


def mark(name: str) -> str:
    """Return the mark that replaces a secret of this kind."""
    return f"[redacted:{name}]"


def replace_spans(text: str, spans: list[Span]) -> str:
    """Return *text* with a mark for each span; they are in order and do not overlap."""
    kept: list[str] = []
    done = 0
    for start, end, name in spans:
        kept += (text[done:start], f"[redacted:{name}]")
        done = end
    return "".join((*kept, text[done:]))
