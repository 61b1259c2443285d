"""Hide what is in `<private>` and in private keys; a block whose end is missing reaches to the end of the text.

Tags are found in any case, nested, escaped for HTML, JSON or URLs, and in letters and brackets that look like ours.
"""

from __future__ import annotations

import re
from functools import cache

from foreword.redact.patterns import WORDS

PRIVATE = "[redacted:private]"
KEY = "[redacted:private-key]"

LOOKALIKES = {use[5:]: "".join(words) for use, words in WORDS.items() if use.startswith("like-")}
# A class of what is not seen: joiners, marks over letters, fillers.
UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u3164\ufeff\uffa0"
    "\u0300-\u036f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f"
)


def styled(letter: str) -> str:
    """Return a small *letter* in full width, in circles, brackets and squares, and in the styles of mathematics."""
    place = ord(letter) - ord("a")
    starts = (0xFF41, 0xFF21, 0x24D0, 0x24B6, 0x249C, 0x1F130, 0x1F150, 0x1F170, *range(0x1D400, 0x1D6A4, 26))
    return "".join(chr(start + place) for start in starts)


@cache
def compile_tag() -> re.Pattern[str]:
    """Return the expression of a tag; linear, because every repeat is possessive or bounded."""

    def sign(plain: str, html: str, code: str) -> str:
        escaped = rf"&(?:amp;){{0,4}}(?:{html});?|\\(?:u00|x){code}|%(?:25){{0,4}}{code}"
        return rf"(?:[{plain}{LOOKALIKES[plain]}]|{escaped})"

    less = sign("<", "[lL][tT]|#0{0,4}60|#[xX]0{0,4}3[cC]", "3[cC]")
    greater = sign(">", "[gG][tT]|#0{0,4}62|#[xX]0{0,4}3[eE]", "3[eE]")
    slash = sign("/", "#0{0,4}47|#[xX]0{0,4}2[fF]", "2[fF]")
    space = rf"[\s{UNSEEN}]{{0,16}}+"
    name = "".join(f"[{x}{x.upper()}{LOOKALIKES[x]}{styled(x)}][{UNSEEN}]{{0,8}}+" for x in "private")
    adorned = rf"(?>(?:[\"'*`]|\\[\"']){{0,4}}){name}"
    # <privateKey>, <private-note> and `a <private)` are something else. `[` too, lest a mark make a tag of a word.
    other = r"[A-Za-z0-9_\[)\]]|[.:-][A-Za-z0-9_\[]"
    empty = rf"{space}{slash}{space}\\{{0,8}}{greater}"  # <private/> hides nothing
    close = rf"(?>(?:\\{{0,8}}{slash}{space}){{1,4}}){adorned}(?>(?:[\"'*`]|\\[\"']){{0,4}}){space}\\{{0,8}}{greater}"
    # The bracket is before the choice: `re` then leaps to the next character that may begin one, 10 times faster.
    follows = rf"(?=[\\/{LOOKALIKES['/']}&%\"'*`pP{LOOKALIKES['p']}{styled('p')}])"
    return re.compile(f"{less}{space}{follows}(?:(?P<close>{close})|{adorned}(?:{empty}|(?P<open>(?!{other}))))")


_GAP = r"(?: |\+|%20)"
_LABEL = rf"{_GAP}[A-Z0-9 +%]{{0,40}}?PRIVATE{_GAP}KEY"
# The beginning needs no dashes behind it and the end does: in doubt the block is longer. PuTTY has words for both ends.
KEY_BLOCK = re.compile(
    rf"-----? ?(?:(?P<open>BEGIN{_LABEL}|BEGIN OpenVPN Static key)"
    rf"|(?P<close>END{_LABEL}(?:{_GAP}BLOCK)? ?-----?|END OpenVPN Static key V1 ?-----?))"
    r"|Private-(?:(?P<opened>Lines: ?[0-9])|(?P<closed>MAC: ?[0-9a-f]{8,128}))"
)
_KEY_WORDS = ("PRIVATE KEY", "PRIVATE+KEY", "PRIVATE%20KEY", "Private-", "OpenVPN Static key")


def hide_blocks(text: str) -> str:
    """Return *text* with a mark for each block."""
    if not text.isascii() or "private" in text.lower():
        text = _hide(text, compile_tag(), nests=True, mark=PRIVATE)
    if any(map(text.__contains__, _KEY_WORDS)):
        text = _hide(text, KEY_BLOCK, nests=False, mark=KEY)
    return text


def leaves_open(text: str) -> bool:
    """Return whether something private begins in *text* and does not end there."""
    seam = "foreword-seam"
    return not hide_blocks(f"{text}\n{seam}").endswith(seam)


def _hide(text: str, expression: re.Pattern[str], *, nests: bool, mark: str) -> str:
    kept: list[str] = []
    depth = done = 0
    for found in expression.finditer(text):
        if found.lastgroup in ("open", "opened"):
            if not depth:
                kept += (text[done : found.start()], mark)
            depth = depth + 1 if nests else 1
        elif found.lastgroup in ("close", "closed"):
            if not depth:  # its beginning is not here: a page of a file, a miscounted nesting
                kept = [mark]
            depth = max(depth - 1, 0)
            done = found.end()
    if not kept:
        return text
    return "".join(kept) + ("" if depth else text[done:])


def may_open(part: bytes) -> bool:
    """Return whether a tag is in *part* of a payload, in letters of any alphabet, plain or as JSON escapes them."""
    for space in (b"\\t", b"\\n", b"\\r", b"\\f"):
        part = part.replace(space, b" ")
    text = part.decode("utf-8", "ignore")
    if "\\u" in text:
        escaped = re.sub(rb"\\+u", rb"\\u", text.encode("raw_unicode_escape"))
        text = escaped.decode("raw_unicode_escape", "ignore")
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")  # two halves become a letter
    return compile_tag().search(text) is not None
