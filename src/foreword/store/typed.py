"""What somebody has typed so far -> an expression of the words index, and how well a title answers it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import exp2
from unicodedata import category

from foreword.terms import STOP_WORDS, any_of, broken, plain, root, terms

MOST_TYPED = 400  # characters; who pastes a page is found by how it begins
MOST_WORDS = 12
# Letters with which so many words begin that reading them out of the index takes long: at 100,000 memories 10 ms for
# three, 90 ms for one, and 0.3 from five on.
SHORT, TINY, LONG = 3, 2, 5
LEAST = 4  # letters that are left of a beginning which the index knows only by its stem
ENDING = 6  # letters that a stem lacks at most: authenticat|ion is kept as authent
# What a title is worth: that it begins with what was typed decides; how new a memory is decides between equals.
BEGINS, ALL, SOME, WHOLE, NEW, ASIDE = 4.0, 2.0, 1.0, 0.5, 1.0, -1.0
HALF_LIFE = 90 * 86_400.0  # seconds after which being new counts half


@dataclass(frozen=True)
class Typed:
    """Words that must all be there; the last may be only the beginning of one."""

    said: str  # all of it, in small letters
    whole: tuple[str, ...] = ()  # those that are complete
    begun: str = ""  # the one that is being typed
    signs: tuple[str, ...] = ()  # what the index does not know: pictures, a single letter that is not ASCII

    @property
    def empty(self) -> bool:
        return not self.whole and not self.begun

    @property
    def short(self) -> bool:
        """Whether the last word has only just been begun."""
        return self.begun.isascii() and 0 < len(self.begun) <= SHORT

    @property
    def long(self) -> bool:
        """Whether so much of the last word is there that the index soon tells who holds it."""
        return not self.begun.isascii() or len(self.begun) >= LONG

    def expression(self, *, begun: bool = True) -> str:
        """What the index is asked: every word, the last as a beginning, or left out."""
        asked = [_asked(word) for word in self.whole]
        if begun and self.begun:
            asked.append(_asked(self.begun, begun=True))
        return " AND ".join(f"({each})" for each in asked if each)

    @property
    def stems(self) -> str:
        """What the index is asked for a word of which it keeps less than was typed: its shorter beginnings, whole."""
        shorter = [any_of((self.begun[: len(self.begun) - cut].lower(),)) for cut in self.cuts()]
        asked = [*(_asked(word) for word in self.whole), " OR ".join(shorter)]
        return " AND ".join(f"({each})" for each in asked if each) if shorter else ""

    @property
    def first(self) -> str:
        """What the index is asked for titles that begin with all of it; empty where that cannot be asked."""
        if not self.said.isascii() or 0 < len(self.begun) <= TINY:
            return ""
        return f"title : ^ {any_of((self.said + ('*' if self.begun else ''),))}"

    def cuts(self) -> Iterator[int]:
        """How many letters the word being typed may lack, where the index knows only stems of it."""
        if self.begun.isascii() and self.begun.isalpha():
            yield from range(1, min(ENDING, len(self.begun) - LEAST) + 1)

    def in_text(self, text: str) -> bool:
        """Whether a word of *text* begins with the one that is being typed."""
        return f" {self.begun.lower()}" in plain(text)

    def fitting(self, newest: float) -> Callable[[str, float, bool], float]:
        """How well a memory answers: by its title, by its age against that of the *newest*, and put aside or not."""
        asked = [root(word.lower()) for word in self.whole]
        begun = f" {self.begun.lower()}"
        last = f" {self.said.rpartition(' ')[2]} "
        every = len(asked) + bool(self.begun)

        def fit(title: str, created: float, aside: bool) -> float:
            titled = f"{plain(title)} "
            held = sum(each in titled for each in asked) + (begun in titled if self.begun else 0)
            score = NEW * exp2(min(0.0, created - newest) / HALF_LIFE) + (ASIDE if aside else 0.0)
            if not held:
                return score
            score += SOME * held / every + (ALL if held == every else 0.0) + (WHOLE if last in titled else 0.0)
            return score + (BEGINS if titled.lstrip().startswith(self.said) else 0.0)

        return fit


def typed(text: str) -> Typed:
    """What *text* asks for: words that say nothing are left out, unless they are all there is."""
    parted = broken(text[:MOST_TYPED])
    tokens = parted.split()[:MOST_WORDS]
    signs = tuple(dict.fromkeys(_plainly(each) for each in tokens if _is_sign(each)))
    tokens = [each for each in tokens if not _is_sign(each) and any(map(str.isalnum, each))]
    ends = parted[-1:].isspace() or len(tokens) == MOST_WORDS
    begun = "" if ends or not tokens else tokens[-1]
    said = tokens[:-1] if begun else tokens
    telling = tuple(dict.fromkeys(each for each in said if each.lower() not in STOP_WORDS and _asked(each)))
    if not telling and not begun and said:
        begun = said[-1]
    return Typed(said=plain(" ".join(tokens)).strip(), whole=telling, begun=begun, signs=signs)


def _is_sign(token: str) -> bool:
    """Whether it is a picture, an arrow and the like, or one letter, which the index does not keep; no punctuation."""
    if token.isascii() or _asked(token):
        return False
    return (len(token) == 1 and token.isalpha()) or any(category(each)[0] == "S" for each in token)


def _plainly(sign: str) -> str:
    """Without what only chooses how it is drawn: some keyboards write it, others do not."""
    return "".join(each for each in sign if category(each) != "Mn") or sign


def _asked(token: str, *, begun: bool = False) -> str:
    """One word as the index has it: itself, or its parts (`HTTPTransport`, scripts without spaces) together."""
    star = "*" if begun else ""
    found = terms(token)
    if not token.isascii():
        return " AND ".join(any_of((_starred(each, star if each == found[-1] else ""),)) for each in found)
    itself = any_of((f"{token.lower()}{star}",))
    parts = [each for each in found if each != token.lower()]
    if not parts:
        return itself
    together = " AND ".join(any_of((f"{each}{star if each == parts[-1] else ''}",)) for each in parts)
    return f"{itself} OR ({together})"


def _starred(term: str, star: str) -> str:
    return term if term.endswith("*") else f"{term}{star}"
