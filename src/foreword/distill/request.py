"""Prompts -> what a session was for, in a line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from foreword.distill.said import said
from foreword.distill.sentences import begun, cut, pieces

TITLE = 90
_GREETING = re.compile(
    r"^(?:(?:hi|hey|hello|ok(?:ay)?|so|now|well|right|alright|great|good|perfect|thanks?|please|also|and|btw|by the way|quick(?:ly)?|next|then|first|sorry|one more thing|another thing)\b[\s,.!:;—-]*)+",
    re.I,
)
_ASKING = re.compile(
    r"^(?:(?:can|could|would|will) (?:you|we) (?:please |maybe |also |help me )?(?:to )?|i(?:'d| would)? (?:want|need|like) (?:you )?to |i'?m (?:trying|looking) to "
    r"|(?:let'?s|we (?:need|have|should|want)(?: to)?|you should|go ahead and|please|help me(?: to)?|time to|it'?s time to|i want|we need|i need|let us) )",
    re.I,
)
_EMPTY = re.compile(
    r"^(?:continue|go on|yes|no|ok(?:ay)?|do it|proceed|thanks?|thank you|perfect|great|good|looks good|next|try again|again|go|y|sure|lgtm|nice|cool|keep going|never ?mind|/\w+)\b[\w\s.!,]{0,20}$",
    re.I,
)

_AGREES = re.compile(
    r"^(?:that|this|it)(?:'s| is| was)? (?:fixed|works?|worked|it\b|fine|good|great|right)|^(?:yes|confirmed|down to)\b|^.{0,30}\bis fine$",
    re.I,
)


def requests(prompts: Sequence[str], *, most: int = 3) -> tuple[str, ...]:
    """What was asked for, the first first; of a long session also what it turned to later."""
    asked = [
        title
        for at, prompt in enumerate(prompts)
        if (title := _title(prompt, first=at == 0)) and (at == 0 or title[-1:] != "?")
    ]
    if len(asked) <= most:
        return tuple(dict.fromkeys(asked))
    return tuple(dict.fromkeys((asked[0], *asked[-(most - 1) :])))


def _title(prompt: str, *, first: bool) -> str:
    told = pieces(prompt)
    # What a session began with is what it was for; later a rule is a rule, and no request.
    for piece in told if first else (each for each in told if not said(each)):
        plain = _GREETING.sub("", piece)
        plain = _ASKING.sub("", plain).strip(" .!—-:")
        if len(plain.split()) >= 3 and not _EMPTY.match(piece) and not _AGREES.match(plain):
            return cut(begun(plain), TITLE)
    return ""
