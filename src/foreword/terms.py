"""Split text into search terms: identifiers into parts, scripts without spaces into pairs, no stop words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

# Every ASCII character that is no letter and no digit parts words, as the index's own tokenizer has it.
# Tables for bytes of UTF-8: `str.translate` takes 2 ms for 50 KB that are not all ASCII, this 0.1.
_BREAKS = bytes(code if code > 127 or chr(code).isalnum() else 32 for code in range(256))
_BREAKS_BUT_UNDERSCORES = _BREAKS[:95] + b"_" + _BREAKS[96:]

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

# The index's tokenizer takes an accent off a Latin letter but not off these, unless it stands by itself (as in the
# file names of macOS): both spellings, and the one without, become one word.
_FOLDED = str.maketrans("йёїўѓќ", "иеіугк")

TAIL = 60  # characters at the end of a text that tell whether it asks
MOST_RUN = 300  # characters of writing without spaces that are looked for: a page of it is told by its ends
MOST_TEXT = 20_000  # characters of a text that are counted in or taken in pairs
_ENDINGS = ("ings", "ing", "ed", "ies", "es", "ly", "s", "e", "y")

# Words that say nothing about a topic: English function words, and what people say to an agent all day.
STOP_WORDS = frozenset(
    """a about above accordingly actually after again all also although always am an and another any anything are
    aren arent as at away back be because been before being below best better between both but by bye came can
    cannot cant could couldn couldnt did didn didnt different do does doesn doesnt doing don done dont down during
    each either else enough even ever every everything everywhere few first for from further get gets getting give
    given go goes going gone good got great had happen happened happening happens has hasn hasnt have haven havent
    having he hello help her here hers hey hi him his how however i id if ill im in into is isn isnt it its itself
    ive just keep know last least less let lets like little ll look looks lot made make makes making many may maybe
    me mean might mine more most much must my myself need needs never new next nice no nobody none nor not nothing
    now of off ok okay old on once one only onto or other others ought our ours out over own perhaps please possible
    probably put quite rather re really right said same say says second see seem seems shall she should shouldn
    shouldnt show since so some something soon sounds still stuff such sure take tell than thank thanks that thats
    the their theirs them then there theres these they thing things think this those though through thus to together
    too toward tried try trying under until up upon us use used uses using ve very via want wants was wasn wasnt way
    we well went were weren werent what whatever whats when where whether which while who whole whom whose why will
    with within without won wont work works would wouldn wouldnt yeah yes yet you your youre yours yourself""".split()  # noqa: SIM905 - a list literal of 300 strings is unreadable
)

# Words of any project's day: they name an activity or a part that all software has. They find, but tell little about
# whether a prompt is about this project.
GENERIC = frozenset(
    """able across actual add added adding addition adds ahead allow allows almost alone along already alternative
    alternatives answer answers apart api app apply approach argument arguments around ask asked asking attempt
    attempts automatic automatically avoid backward bad basic become begin beginning behavior behaviour behind
    big bit bottom branch branches bring broke broken bug bugs build builds bullet bullets bump bunch call
    called calls careful case cases certain change changed changelog changes check checks choose chore chunk
    chunks ci class classes clean cleanup clear clearly cli client code come command commands comment comments
    commit commits common compare complete completely complex complicated concise config configuration confirm
    conflict conflicts consider constant constants continue continued continues correct correctly couple
    coverage crash crashed crashes create created current currently custom cut data deal debug decide default
    defaults define defined defines definition delete deleted dependencies dependency deprecate deprecated
    detail details dev develop diff difference differently difficult directly directory disable doc docs
    docstring docstrings document documentation documented double draft drop duplicate duplicates earlier early
    easier easily easy edge edges edit enable end english ensure entire entry env error errors exact exactly
    example examples exception exist existing expect expected explain explained explains explicit extra extract
    fail failed failing fails failure failures fast faster feat feature features field fields file files final
    find finding finds fine finish finished fix fixed fixes fixing flag flaky folder follow format formatting
    forward found full fully function functions general guess half handle handled handles handling hang hanging
    hangs hard helper helpers hint hints hit hits hold idea ignore implement implementation implemented import
    important imports improve improved improvement improvements include included increase info initial inline
    input inside install instead internal issue issues item items job key keys kind large late later latest
    leave left lib library line lines link lint linter list lists load local log logging logs long longer
    looking main major manually mention merge message messages method methods middle mind minor minute minutes
    miss missed missing mistake mistakes mock mocks mode model module modules move moved moving multiple name
    named names necessary newer note nowhere null number numbers object objects obvious often older open option
    optional options ordering original output outside package packages page paragraph param parameter parameters
    params parse part pass passed passing paste pasted path paths perf performance pick piece pieces place plain
    plan plugin point pr prefer prepare prevent previous previously print printed printing prints problem
    problems proceed process project projects proper properly provide pull push pushed pushes python query
    question questions quick quickly raise ran read reading readme ready real reason rebase recent recommend
    recommendation recommended reduce ref refactor refactored refs related release releases remove removed
    removes removing rename renamed repeat replace replaced repo report request require required requirements
    rerun resolve response rest restart result results return returned returns revert review reword rewrite
    rewritten rid rule rules run running runs safe save screenshot script scripts search searching section seen
    sentence separate server service set sets setting settings setup ship shipped short shorter side sides
    similar simple simpler simplest simplify simply single size skip slow slower small snippet snippets solution
    solve somehow somewhere sorry sort source spec specific split squash stack start state status step steps
    stop string strings structure stuck style suggest suggestion summarize summary support supported supports
    switch system table tag talk talking target task telling temp template temporary term test tested testing
    tests text three throw time title todo tool tools top touch traceback track true turn tweak two type types
    typing typo ui understand undo unit unrelated unused update updated updates updating upgrade upgraded url
    usage user users usual util utils valid validate value values variable variables verbose version versions
    view wait warning warnings web weird wise wording workflow worth wrap write writes writing written wrong
    wrote""".split()  # noqa: SIM905 - as above
)


# A text of more words is partly pasted: its beginning and its end are the user's, and the middle is sifted.
_LONG = 150
_OWN = 60  # words at the beginning, and as many at the end
_SIFTED = 8_000  # characters at both ends of the middle, in which words are counted: 0.5 ms
_ERRORS = ("Error", "ERROR", "error:", "Exception", "FAILED", "panic", "fatal")
_LINES = 6  # with each of these, the last first: where a failure ends, it is named
# What code and logs say on every line, whatever they are about.
_EVERYWHERE = frozenset(
    """arg args assert async await bool break call case catch char class const continue debug def default elif enum
    except export extends false file final finally float func function http https import info int interface kwargs
    lambda len let line main none null number object package pass private public raise return self static str string
    struct super switch this throw throws traceback true type undefined value var void warn warning www yield""".split()  # noqa: SIM905
)


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

    In the order of the text; of a long one, the words of its beginning and its end, of errors, and the frequent ones.
    """
    found: dict[str, None] = {}
    long = len(text) > _LONG and len(text.split(None, _LONG)) > _LONG
    for part, share in _telling(text) if long else ((text, 1.0),):
        _collect(found, part, most=min(limit, len(found) + round(limit * share)), sifted=long)
    return tuple(found)[:limit]


def pairs(text: str, *, limit: int = 16) -> tuple[str, ...]:
    """Return the words worth a search that are side by side in *text*, two each, in its order."""
    found: dict[str, None] = {}
    before = ""
    for token in broken(text[:MOST_TEXT]).lower().split():
        word = token if len(token) > 1 and token.isascii() and token not in STOP_WORDS else ""
        if word and before:
            found[f"{before} {word}"] = None
            if len(found) >= limit:
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


def broken(text: str, breaks: bytes = _BREAKS) -> str:
    """Return *text* with a space for every ASCII character that parts words."""
    return text.encode("utf-8", "surrogatepass").translate(breaks).decode("utf-8", "surrogatepass")


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
    yield " ".join(_frequent(middle)), 1.0


def _is_data(token: str) -> bool:
    """Tell whether this is a time, a hash or a count rather than a word; 404, sha256 and word2999 are words."""
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


def _frequent(text: str) -> list[str]:
    """Return the words of *text* that name its things: identifiers, and frequent words that are not on every line."""
    if len(text) > 2 * _SIFTED:
        text = f"{text[:_SIFTED].rpartition(' ')[0]}\n{text[-_SIFTED:].partition(' ')[2]}"
    counts: dict[str, int] = {}
    for word in broken(text, _BREAKS_BUT_UNDERSCORES).split():
        counts[word] = counts.get(word, 0) + 1
    many = 5 + text.count("\n") // 3
    scores: dict[str, int] = {}
    for word, count in counts.items():
        lower = word.lower()
        if len(word) < 3 or word[0].isdigit() or lower in STOP_WORDS or lower in _EVERYWHERE or _is_data(word):
            continue
        named = "_" in word[1:-1] or not (lower == word or word[1:].islower() or word.isupper())
        scores[word] = (3 if named else 1) * (1 if count > many else min(count, 8))
    return sorted(scores, key=scores.__getitem__, reverse=True)


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
