"""Tell the user's own statements from what somebody else is said to hold: both are typed, and only one is a rule.

*Marta told me we must never …*, *from the ticket: …* and *handbook, section 4, one must …* announce words of others.
Two checks, in doubt against the sentence: words that announce them anywhere in the prompt (reported.txt), and what
stands before the statement in its own sentence.
"""

from __future__ import annotations

import re

from foreword.encoding import read_words
from foreword.terms import lazy_pattern


def reported_words(text: str) -> str:
    """Return the words of *text* that announce somebody else's; empty where nothing does."""
    stated = CONDITION.sub("", text)
    found = REPORTED.search(stated) or ANNOUNCED.search(stated) or SIGNED.search(text)
    found = found or next((each for each in COLON.finditer(text) if not OWN_COLON.search(each[1])), None)
    return found[0] if found else ""


def is_own_voice(head: str, stated: str) -> bool:
    """Return whether what stands before a statement in its sentence leaves it the user's own.

    `the kernel docs explain that you must never …`, `snyk reports you should …` and `handbook, section 4, one must …`
    do not; `I think that you …`, `for tests we always …` and `the list is slow, it must never …` do.
    """
    if stated[0] == "," or IS_TO.match(stated):
        return _may_lead(head, sign=stated[0] == ",")
    if embedded := EMBEDDED.match(head):
        return RELATIVE.match(embedded[1]) is not None or _may_lead(embedded[1])
    if PRONOUN.match(stated) or ENDS_IN_PRONOUN.search(head):
        before = ENDS_IN_PRONOUN.sub("", head).rstrip()
        if not before or before[-1] == "," or JOINS.search(before):
            return not before or before[-1] != "," or _may_lead(before[:-1], sign=True)
        return _may_lead(before.rpartition(",")[2].strip())
    before, comma, last = head.rpartition(",")
    return not comma or JOINED.search(last) is not None or _may_lead(before, sign=True)


def _may_lead(lead: str, *, sign: bool = False) -> bool:
    """Return whether the user's own statement may follow *lead*; behind a *sign* it may be any clause."""
    return bool(OWN_LEAD.search(lead) or (sign and CLAUSE.search(lead)))


def _compile(form: str) -> re.Pattern[str]:
    return lazy_pattern(form, re.IGNORECASE)


# --- words that announce what somebody else said ---

# Alternatives for an expression, by their use.
SPOKEN = {use: "|".join(words).replace("_", " ") for use, words in read_words(__file__, "reported.txt").items()}
_MODAL = r"(?:must|should|can|may|will|would|needs?|has|have|is|are|was|were|be|do|does|don't|never|always)\b"
_THE = r"(?:the|an?|our|my|your|his|her|their|this|that|some|one|another|yesterday's|[A-Z]\w+'s)"
_WORD, _PLACE = r"[\w'-]{1,40}", r"(?:in|on|at|by|with|over|from|of)"
_ONE = "we|you|one|it|they"
_END = r"(?:[,.:;)\n]| [-–—]|\Z)"
_WHOM = r"(?:me|us|you|him|her|them|everyone|people|users|clients|back)"
_CLAUSE = r"(?:that|how|whether|we|you|one|they|it|always|never|not|from now|must|should|use|let's|so|que|dass)\b"
# A report goes on with a clause, stands before a sign, or ends its sentence.
_GOES_ON = (
    rf"(?: {_WHOM})?(?: (?:to )?{_PLACE}(?: {_WORD}){{1,5}}(?= that|:))?(?:: | (?:to\b|the following\b|{_CLAUSE})"
    rf"|(?: {_WORD}){{1,6}} (?:must|should|always|never|only|no longer|instead)\b"
)
_SUBJECT = rf"(?<![\w'])(?!(?:{SPOKEN['own']})\b){_WORD},? (?:(?:{SPOKEN['adverb']}) ){{0,2}}"
# What is a condition reports nothing.
CONDITION = _compile(r"\b(?:if(?! you ask)|when|whenever|unless|until|once|before|after|as long as)\b[^,.:\n]{1,80}")
REPORTED = lazy_pattern(
    rf"{_SUBJECT}(?:{SPOKEN['says']}){_GOES_ON}|[,;]| [-–—] |[.!]?\Z|[.!] |\n)"
    rf"|{_SUBJECT}(?:{SPOKEN['answers']})\b"
    rf"|{_SUBJECT}(?:{SPOKEN['wants']})(?:: | {_WHOM} | to (?=always|never|not)| {_CLAUSE})"
    rf"|\b(?:{_THE} (?:{_WORD} ){{1,4}}|(?:s?he|it|who|someone|somebody|that) )(?:{SPOKEN['prints']}){_GOES_ON})"
    rf"|\b(?:{SPOKEN['plural']}|the \w+s) (?:{SPOKEN['say']}){_GOES_ON})"
    rf"|\b(?:what (?!I\b|we\b|you\b)(?:{_WORD} ){{1,3}}(?:{SPOKEN['says']}|{SPOKEN['say']})"
    rf"|(?:what|that) (?!I\b|we\b|you\b)(?:(?!{_MODAL}){_WORD} ){{1,3}}(?:{SPOKEN['sent']}))\b"
    rf"|, (?:{SPOKEN['says']}|{SPOKEN['prints']}) (?:{_THE}|(?-i:[A-Z]))"
    rf"|\b(?:make|let) (?:{_WORD} ){{1,4}}say\b",
    re.IGNORECASE,
)
ANNOUNCED = lazy_pattern(
    rf"(?<!\w)(?:{SPOKEN['copied']})(?!\w)"
    rf"|(?:\b(?:from|per|via|off|out of)|(?-i:\b[A-Z]\w+) (?:in|on|over on)) (?:{_THE} )?(?:{_WORD} ){{0,2}}"
    rf"(?:{SPOKEN['source']})(?: \w+){{0,2}}{_END}"
    rf"|^(?:{_THE} )?(?:{_WORD} ){{0,2}}(?:{SPOKEN['source']})(?: \w+)?(?:[,:](?=\s)| [-–—])"
    rf"|\b(?!review of)(?:{SPOKEN['text']}) (?:from|of|by) (?:(?!{_MODAL}){_WORD}[ ]?){{1,5}}{_END}"
    rf"|\b(?:{SPOKEN['text']})(?: {_PLACE}(?: (?!{_MODAL}){_WORD}){{1,4}}?)? (?:that|saying) (?:{_ONE}|says?|said)\b"
    rf"|\b(?:{SPOKEN['text']}) {_PLACE} (?!this|our|my)(?:{_WORD} ){{1,3}}(?:is|are|was) (?:to|that|{_ONE})\b"
    rf"|\b(?!(?:it|let|that|what|here|there)'s)(?:\w{{1,40}}'s|their|his|her) (?:{SPOKEN['text']})\b"
    rf"|\b(?:there(?:'s| is| was) (?:an?|this|some)|the following)(?! pull) (?:{_WORD} )?(?:{SPOKEN['text']})\b"
    r"|\b(?:here(?:'s| is| are| goes)|see|this is|that is|that's|look at|read) (?:what|how) (?!I\b|we\b|it\b)"
    rf"|\bI(?:'ve| have| just| also)? (?:{SPOKEN['heard']})(?: this)? (?:that|on|in|from|{_ONE})\b",
    re.IGNORECASE,
)
SIGNED = lazy_pattern(r":\n(?![-*+\d])|[-–—] ?[A-Z]\w+[.]?\Z")  # a line that announces the next one; a name
# A clause before a colon that is not about what the user wants announces words that are not the user's, either.
COLON = lazy_pattern(r"(?:\A|[.!?\n])([^.!?:\n]{1,200}): (?=[^\W\d_])")
OWN_COLON = lazy_pattern(
    r"\b(?:I (?:want|need|think|prefer|mean|say|repeat|decided|would)|I'd|we (?:decided|agreed|want|need|said)|let's"
    r"|my (?:rule|preference|wish)|remember|from now on|important|things?)\b",
    re.IGNORECASE,
)

# --- what may stand before a statement of the user's own ---

EMBEDDED = _compile(r"(.{3,}?)(?<! so) (?:(?:that|whether|saying|how)\b(?! is\b)(?: [^\s,]+){0,8}|to)\s*$")
RELATIVE = _compile(r"(?:(?:the|an?|all|any|every|each|our|my|your|those|some) )?\S+$")  # `the function that opens it`
IS_TO = _compile(r"(?:is|are|was) to (?:always|never)")
PRONOUN = _compile(r"(?:we|you|it|let's)\b")
ENDS_IN_PRONOUN = _compile(r"(?:^|(?<=\s))(?:we|you|one|they|it|people|everyone)(?: \w+n't)?\s*$")
JOINS, JOINED = _compile(rf"\b(?:{SPOKEN['joins']})$|[;:]$"), _compile(rf"^ (?:{SPOKEN['joins']})\b|\b(?:and|or)\b")
OWN_LEAD = _compile(rf"\b(?:{SPOKEN['first']})\b|^(?:{SPOKEN['adverbial']})\b")
CLAUSE = _compile(rf"\b(?:{SPOKEN['finite']})\b|n't\b|^(?:{SPOKEN['order']})\b")
