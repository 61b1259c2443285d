"""The user's own sentences -> decisions, preferences and corrections; only what the user said may become a rule.

It is better to miss a rule than to make one up: a question, a quotation, a wish about the program ("the API should
always answer 404") and an order for this moment ("run the tests") are none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from foreword.distill.sentences import begun, cut, pieces

LONGEST = 240  # characters; longer sentences tell stories
SHORTEST = 3  # words


@dataclass(frozen=True)
class Said:
    """One thing that the user laid down."""

    kind: str  # decision, preference or correction
    text: str
    why: str = ""
    instead_of: str = ""  # what was not chosen, or was wrong


def said(text: str, *, first: bool = False) -> tuple[Said, ...]:
    """What a prompt lays down; in a session's *first* prompt there is nothing yet to correct."""
    found: list[Said] = []
    sentences = pieces(text)
    for at, sentence in enumerate(sentences):
        following = sentences[at + 1] if at + 1 < len(sentences) else ""
        one = _one(sentence, following=following, first=first)
        if one and all(one.text.lower() != other.text.lower() for other in found):
            found.append(one)
    return tuple(found)


def takes_back(later: Said, earlier: Said) -> bool:
    """Whether *later* chooses something else in place of what *earlier* chose, and for no other purpose."""
    choice = (
        earlier.text.lower().replace(earlier.instead_of.lower(), "") if earlier.instead_of else earlier.text.lower()
    )
    chosen, not_chosen = set(re.findall(r"\w+", choice)), set(re.findall(r"\w+", later.instead_of.lower()))
    purposes = re.findall(r"\b(?:for|in|on|when|during|inside) (?:the |our |all |a )?(\w+)", later.text.lower())
    return bool(not_chosen) and not_chosen <= chosen and set(purposes) <= chosen


_LEADS = re.compile(
    r"^(?:(?:also|and|but|so|then|ok(?:ay)?|right|great|good|perfect|thanks|thank you|please|btw|by the way|hey|hi|oh|well"
    r"|yes|yeah|yep|sure|one more thing|note|remember(?! to)|important|fyi|again|now|ah|hmm|and also)\b[\s,:;.!—-]*)+",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"^(?:what|why|how|which|who|where)\b|^(?:can|could|would|will|should|do|does|did|is|are) (?:you|we|i|it|the|that|this|there)\b",
    re.I,
)
_INTRODUCES = re.compile(
    r"^[^:]{3,60}\b(?:preferences?|things?|notes?|rules?|reminders?|points?|to work)\b[^:]{0,20}:\s*", re.I
)
_OF_PROGRAM = re.compile(  # somebody other than the two who talk is the subject: it is about the program
    r"^(?:the|a|an|it|this|that|there|if|when|each|every|all|our|their|its|some|users?|\w+s)\b"
    r"(?!.*\b(?:i|we|you)\s+(?:always|never|prefer|like|want|don'?t|do not)\b).*\b(?:should|must|will|would|can|is|are|was|gets?|has|have|returns?)\b",
    re.I,
)

# --- preferences: what counts beyond this moment ---
_RULE = re.compile(
    r"^(?:always|never)\s+\w+"
    r"|^(?:don'?t|do not|avoid)\b.*\b(?:ever|again|any ?more|unless|without (?:asking|telling|my)|in (?:the )?future|in files|in this (?:repo|project|codebase))\b"
    r"|^(?:no|not?) (?:more )?[\w -]{3,40} without (?:asking|telling|my|a)\b"
    r"|^(?:from now on|going forward|in (?:the )?future|as a rule)\b.*\w"
    r"|^(?:by default|generally|in general|whenever you|every time you|for all \w+)\b[^.]*?[\w,] (?:please )?(?:use|prefer|keep|write|avoid|do|don'?t|never|always|put|name|add|run|update|check|ask|make)\b"
    r"|^(?:make sure (?:that )?)?you (?:should |must |have to )?(?:always|never) \w+|^make sure to always \w+"
    r"|^(?:don'?t|do not) (?:commit|push|deploy)\b(?!.*\b(?:yet|now|this|that|it until|these|anything)\b)"
    r"|^remember to \w+.*\b(?:after|before|when|whenever|every|each)\b"
    r"|^(?:i|we) (?:always|never|prefer|usually|(?:really )?(?:don'?t|do not) (?:like|want|use|do)|hate|like (?:to|my|it when)|only use)\b"
    r"|^(?:prefer|stick to|keep (?:your |the |all )?(?:responses|answers|replies|commits?|messages|functions|explanations) )"
    r"|^use [\w@./+ -]{2,40} (?:for (?:all|every|everything|any)|everywhere|throughout|by default)\b"
    r"|\b(?:i|we) (?:always|never) \w+|\b(?:i|we) (?:don'?t|do not) like\b|\b(?:i|we) prefer\b"
    r"|^[\w@./+ -]{2,40} (?:only|for all [\w ]+)\s*(?:$|[—,-])",
    re.I,
)
_NOT_RULE = re.compile(
    r"\b(?:never mind|nevermind|always (?:fails?|returns?|gets?|crash\w*|shows?|happens?|been|was|is)|never (?:worked|works|seen|got|saw|heard|came|found|went|did|\w+ed"
    r"|been|gets?|called|returns?|had|happens?)|i never|prefer (?:to )?not (?:now|yet))\b",
    re.I,
)

# --- corrections: the agent did or said something else ---
_WRONG = re.compile(
    r"^(?:no|nope|nah)\b[,.:;!\s—-]+(?!problem|worries|need|rush|idea|more|other|new|one)\w+"
    r"|^(?:that'?s|this is|it'?s|you'?re) (?:not (?:right|correct|what)|wrong|incorrect)\b.*"
    r"|^(?:wrong|incorrect)\b[,.:;!\s—-]+\w+"
    r"|^i (?:said|told you|asked (?:you )?(?:for|to|not)|meant|didn'?t (?:ask|want|say|mean))\b"
    r"|^(?:you (?:forgot|missed|should(?:n'?t| not)? have|were supposed|keep|still|used|changed|removed|deleted|broke))\b"
    r"|^stop \w+ing\b|^(?:actually|wait)\b[,\s]+(?:use|it|we|the|don'?t|no|that|this|not)\b",
    re.I,
)
_SWAP = re.compile(  # Y instead of X, in the ways people put it
    r"\b(?:use|do|call|go with|make it|take|try|write|put|want|switch to)\s+(?P<right>[^,;.]{2,60}?)(?:,|\s—|\s-)?\s+(?:instead of|rather than|not|over)\s+(?P<wrong>[^,;.]{2,60})"
    r"|\b(?:don'?t|do not|stop|never)\s+(?:use|using|do|doing|call|calling)\s+(?P<wrong2>[^,;.—]{2,60}?)\s*[,;.—-]+\s*(?:but |just )?(?:use|do|call|go with)\s+(?P<right2>[^,;.]{2,60})"
    r"|\binstead of\s+(?P<wrong3>[^,;.]{2,60}?),?\s+(?:use|do|call|go with)\s+(?P<right3>[^,;.]{2,60})"
    r"|\bnot\s+(?P<wrong4>[^,;.]{2,60}?),?\s+but\s+(?P<right4>[^,;.]{2,60})"
    r"|^(?:no,? )?not\s+(?P<wrong6>[^,;.]{2,60}?),\s+(?:use|do|call|go with)\s+(?P<right6>[^,;.:]{2,60})"
    r"|\b(?:use|it'?s|should be|is)\s+(?P<right5>[^,;.]{2,60}?),\s+not\s+(?P<wrong5>[^,;.]{2,60})",
    re.I,
)

# --- decisions: a choice that outlives the moment ---
_CHOICE = re.compile(
    r"\blet'?s (?:just )?(?:use|go with|switch|keep|store|drop|move to|stick|stay|replace|adopt|avoid|not |make (?:it|them|all)|call it|name it|do it with)\b"
    r"|\b(?:we|i)(?:'ll| will|'m going to|'re going to| are going to| should)? (?:use(?! (?:it|this|that|them)\b)|go with|went with|decided|chose|choose|switch(?:ed)?|moved?|keep(?! \w+ing)|store|adopt(?:ed)?|agreed)\b"
    r"|\b(?:we|i)(?:'re| are|'m| am) (?:using|going with|switching|moving|keeping|dropping|adopting)\b"
    r"|\b(?:i|we) (?:also )?want (?:to (?:use|switch|go|store|keep|have|avoid)|them|it|everything|\w+[- ]?(?:based|only)|per-|async|no )"
    r"|^(?:decision|decided|agreed)\b\s*:?|\bgo(?:ing)? with\b"
    r"|^(?:use|store|keep|put|make|replace|switch|drop|prefer|go with|stay with) [\w`@/.\"'+-]+",
    re.I,
)
_CHOSEN_OVER = re.compile(
    r"\b(?:should|must|will) (?:be|live|go|stay|use|run)\b.*(?:,| and) not\b",
    re.I,
)
_REASON = re.compile(
    r"\s*(?:[,;(—-]+\s*)?\b(?:because|since|so that|as (?:it|they|we|the|that|this)|due to|in order to|otherwise|to avoid|the reason(?: is|:)"
    r"|that way|so (?:we|it|they|the|that))\b\s*(?P<why>.{6,})$",
    re.I,
)
_NOW = re.compile(  # an order for this moment, whatever verb it begins with
    r"\b(?:for now,? just|once more|the (?:bug|error|failing|above|following|last|same)|these (?:lines|changes|files)|this (?:file|line|function|test|branch|pr|one|error|warning|message)"
    r"|get started|see (?:if|what|how)|try (?:it|that|this|again)|going (?:again|on)|it as is|keep going|an eye)\b",
    re.I,
)

_UNNAMED = re.compile(  # a choice that nobody understands without what was said before it
    r"\b(?:use|go with|take|chose|choose|prefer|like|keep|want) (?:your \w+$|option \w\b|(?:the )?(?:first|second|third|last|other|former|latter|old|new)(?: (?:one|option|approach|way|variant|version|solution))?(?=$|[,.;]| because| since))",
    re.I,
)


def _one(sentence: str, *, following: str, first: bool) -> Said | None:
    plain = _LEADS.sub("", _INTRODUCES.sub("", _LEADS.sub("", sentence))).strip()
    words = plain.split()
    if not len(words) >= SHORTEST or len(plain) > LONGEST or plain.endswith("?") or _ASKS.match(plain):
        return None
    reason = _REASON.search(plain)
    swap = _SWAP.search(plain[: reason.start()] if reason else plain) or _SWAP.search(plain)
    if _is_correction(plain, swap=swap, first=first):
        return Said(kind="correction", text=_tidy(plain), instead_of=_wrong(swap))
    if _UNNAMED.search(plain):
        return None
    of_now = re.match(r"(?:i|we) (?:really )?(?:don'?t|do not) want\b", plain, re.I) and _NOW.search(plain)
    if _RULE.search(plain) and not (_NOT_RULE.search(plain) or _OF_PROGRAM.match(plain) or of_now):
        return Said(kind="preference", text=_tidy(plain), instead_of=_wrong(swap))
    if _NOW.search(plain) and not _REASON.search(plain):
        return None
    return _decision(plain, following=following, swap=swap)


def _is_correction(plain: str, *, swap: re.Match[str] | None, first: bool) -> bool:
    if first:
        return False
    if swap is not None and swap["wrong2"]:  # "don't use X, use Y"
        return True
    return bool(_WRONG.match(plain)) and (swap is not None or len(plain.split()) >= 4)  # "no, wait" tells nothing


def _decision(plain: str, *, following: str, swap: re.Match[str] | None) -> Said | None:
    reason = _REASON.search(plain)
    choice, over = _CHOICE.search(plain), swap is not None or bool(_CHOSEN_OVER.search(plain))
    if (
        not (choice and (reason or over or _is_laying_down(plain)))
        and not (reason and over)
        and not _CHOSEN_OVER.search(plain)
    ):
        return None
    why = reason["why"].strip(" .)") if reason else ""
    if not why and _explains(following):
        why = following.strip(" .")
    text = plain[: reason.start()] if reason else plain
    return Said(
        kind="decision",
        text=_tidy(_WANTS.sub("", _TAKEN_BACK.sub("", text))),
        why=cut(why, LONGEST),
        instead_of=_wrong(swap),
    )


def _is_laying_down(plain: str) -> bool:
    """Whether a choice is put as one, and not as the next thing to do."""
    return bool(
        re.match(
            r"(?:let'?s (?:use|go with|switch|keep|stick|stay|adopt|store|not (?:use|add|keep|store))|(?:we|i)\b(?! (?:also )?want (?:it|them|everything)\b)|decision|decided|agreed)",
            plain,
            re.I,
        )
    )


def _explains(sentence: str) -> bool:
    begins = re.match(
        r"(?:it|that|this|they|those|the|we|[A-Z][\w.-]+) (?:is|are|was|has|have|needs?|works?|gives?|keeps?|makes?|avoids?|would|can'?t|don'?t|'s)\b",
        sentence,
    )
    return bool(begins) and not sentence.endswith("?") and len(sentence) <= LONGEST


def _wrong(swap: re.Match[str] | None) -> str:
    if swap is None:
        return ""
    found = next((told for name, told in swap.groupdict().items() if name.startswith("wrong") and told), "")
    return found.strip(" .`\"'")


# Of a decision the choice is kept, not that somebody wants it.
_WANTS = re.compile(
    r"^(?:let'?s (?:just )?|(?:i|we)(?:'d| would)? (?:also )?(?:want|like) (?:to |(?!it\b|them\b|everything\b))|(?:i|we)(?:'ll| will| should|'re going to|'m going to) "
    r"|(?:decision|decided|agreed)\s*:\s*)",
    re.I,
)


_TAKEN_BACK = re.compile(
    r"^(?:(?:no|nope|nah|wrong)\s*[,.:;!—-]+\s*|(?:actually|wait|hmm|oh|sorry)\b\s*[,.:;!—-]*\s*)+", re.I
)


def _tidy(text: str) -> str:
    text = _TAKEN_BACK.sub("", text)
    text = text.strip(" .;:,—-!")
    return cut(begun(text), 160)
