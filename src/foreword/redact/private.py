"""Text -> the same without `<private>` and without private keys; a block whose end is missing reaches to that end.

Light but for `re`, which is imported only where a text may hold a block. Tags are looked for in a copy in which
letters, brackets and slashes that look like ours are ours, one for one, so that places in it are places in the text.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PRIVATE = "[redacted:private]"
KEY = "[redacted:private-key]"

_UNSEEN = "\u200b"  # stands for every character that is not seen
_REACH = 160  # characters before the name: 16 spaces, 4 slashes with 16 each, and a bracket


def without_blocks(text: str) -> str:
    """The text with a mark for each block."""
    if may_hold_tag(text):
        text = _without_spans(text, folded(text), pattern=tag_pattern(odd=not text.isascii()), nests=True, mark=PRIVATE)
    if may_hold_key(text):
        text = _without_spans(text, text, pattern=KEY_PATTERN, nests=False, mark=KEY)
    return text


def leaves_open(text: str) -> bool:
    """Whether something private begins in *text* and does not end there."""
    return (may_hold_tag(text) or may_hold_key(text)) and not without_blocks(f"{text}\n{_SEAM}").endswith(_SEAM)


def may_open(part: bytes) -> bool:
    """Whether a tag in letters of other alphabets may stand in a part of a payload, as bytes or as JSON writes them."""
    if not part.translate(None, _PLAIN) and b"\\u" not in part:
        return False
    _READ[0] += len(part)
    if _READ[0] > _MOST:
        return True  # reading more of it so closely would take too long
    for space in (b"\\t", b"\\n", b"\\r", b"\\f"):
        part = part.replace(space, b" ")
    first, *rest = part.decode("utf-8", "ignore").split("\\u")
    text = first + "".join(map(_unescaped, rest))
    return may_hold_tag(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore"))  # pairs become one


# ASCII, what follows the first byte of a character, and the first bytes of Chinese, Japanese and Korean ones.
_PLAIN = bytes((*range(0xC0), *range(0xE3, 0xEE)))
_MOST = 4 << 20  # bytes; 0.3 s
_READ = [0]  # in this process, which is a hook with a huge payload


def _unescaped(piece: str) -> str:
    """What stands behind a `\\u`, the character in place of its four digits."""
    try:
        return chr(int(piece[:4], 16)) + piece[4:]
    except ValueError:
        return piece


_SEAM = "foreword-seam"  # what stands behind a text and is gone where the text leaves something open


def _without_spans(text: str, seen: str, *, pattern: str, nests: bool, mark: str) -> str:
    import re

    kept: list[str] = []
    depth = done = 0
    for found in re.finditer(pattern, seen):
        if found.lastgroup in ("open", "opened"):
            if not depth:
                kept += (text[done : found.start()], mark)
            depth = depth + 1 if nests else 1
        elif found.lastgroup in ("close", "closed"):
            if not depth:  # its beginning is not here: a page of a file, a miscounted nesting
                kept = [mark]
            depth = max(depth - 1, 0)
            done = found.end()
    return "".join(kept) + ("" if depth else text[done:])


def may_hold_tag(text: str) -> bool:
    """False only where there is no tag; asked without `re`, whose import costs a hook 12 ms."""
    low = text.lower() if text.isascii() else folded(text).replace(_UNSEEN, "").lower()
    at = low.find("private")
    while at >= 0:
        after = low[at + 7 : at + 8]
        if not ((after.isascii() and after.isalnum()) or after == "_"):
            before = low[max(0, at - _REACH) : at].rstrip(" \t\r\n\f\v\"'*`\u3000\u00a0")
            if before.endswith(("2f", "2f;")) or (before.endswith(("47", "47;")) and "#" in before[-8:]):
                return True
            before = before.rstrip("/\\ \t\r\n\f\v\u3000\u00a0")
            if before.endswith(("<", "&lt", "&lt;", ";lt", ";lt;", "3c", "3c;")):
                return True
            if before.endswith(("60", "60;")) and "#" in before[-8:]:
                return True
        at = low.find("private", at + 7)
    return False


def folded(text: str) -> str:
    """The same number of characters, those that look like a tag's as the tag's own."""
    if text.isascii():
        return text
    if not _FOLDS:
        _FOLDS.update(_folds())
        _FOLDED.update(map(chr, _FOLDS))
    return text if _FOLDED.isdisjoint(text) else text.translate(_FOLDS)


# Each letter with those of other alphabets that look like it; nobody hides his own tag on purpose, but keyboards,
# web pages and fonts bring them along.
_ALIKE = (
    ("<", "＜﹤‹〈⟨❮❬ᐸ˂⧼≺≪«《⟪"),
    (">", "＞﹥›〉⟩❯❭ᐳ˃⧽≻≫»》⟫"),
    ("/", "／⁄∕⧸╱"),
    ("p", "рρϱᴘþƿṕṗƥРΡҏⲣ"),
    ("r", "гᴦɼɾʀŕřṙŗȑȓяⲅ"),
    ("i", "іιɩıɪìíîïīĭįǐȉịіІΙİÌÍÎÏỉҭӏⅰ"),
    ("v", "ѵνᴠʋṽṿѴⅴ∨"),
    ("a", "аαɑᴀàáâãäåāăąǎạảАΑÀÁÂÃÄÅ"),
    ("t", "тτᴛţťŧƭṫṭțТΤ"),
    ("e", "еεҽєᴇèéêëēĕėęěẹẻЕΕÈÉÊËℯ"),
)
_INVISIBLE = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u3164\ufeff\uffa0"
_RANGES = ((0x0300, 0x0370), (0x200B, 0x2010), (0x202A, 0x202F), (0x2060, 0x2070), (0xFE00, 0xFE10))
_FOLDS: dict[int, str] = {}  # made when the first text needs it: ASCII never does
_FOLDED: set[str] = set()  # its keys, as characters


def _folds() -> Mapping[int, str]:
    found = {ord(other): ours for ours, others in _ALIKE for other in others}
    found.update(dict.fromkeys(map(ord, _INVISIBLE), _UNSEEN))
    for first, last in _RANGES:
        found.update(dict.fromkeys(range(first, last), _UNSEEN))
    for letter in "privatePRIVATE":
        place = ord(letter.lower()) - ord("a")
        found[0xFEE0 + ord(letter)] = letter  # full width
        found[(0x24D0 if letter.islower() else 0x24B6) + place] = letter  # in circles
        found[0x249C + place] = letter  # in brackets
        found[0x1F130 + place] = found[0x1F150 + place] = found[0x1F170 + place] = letter  # in squares
        for alphabet in range(13):  # of mathematics: bold, italic, script, …, each 52 letters
            found[0x1D400 + 52 * alphabet + place + (26 if letter.islower() else 0)] = letter
    return found


def tag_pattern(*, odd: bool) -> str:
    """What finds the tags; linear: every repeat is possessive or bounded."""
    unseen, space = (f"{_UNSEEN}{{0,8}}+", rf"[\s{_UNSEEN}]{{0,16}}+") if odd else ("", r"\s{0,16}+")
    name = "".join(f"[{letter}{letter.upper()}]{unseen}" for letter in "private")
    less = _sign("<", html="[lL][tT]|#0{0,4}60|#[xX]0{0,4}3[cC]", code="3[cC]")
    more = _sign(">", html="[gG][tT]|#0{0,4}62|#[xX]0{0,4}3[eE]", code="3[eE]")
    slash = _sign("/", html="#0{0,4}47|#[xX]0{0,4}2[fF]", code="2[fF]")
    adorned = r"(?:[\"'*`]|\\[\"']){0,4}+"
    # <privateKey>, <private-note> and `a <private)` are something else. `[` too, lest a mark make a tag of a word.
    other = r"(?:[A-Za-z0-9_\[)\]]|[.:-][A-Za-z0-9_\[])"
    empty = rf"{space}{slash}{space}\\{{0,8}}{more}"  # <private/> hides nothing
    close = rf"(?:\\{{0,8}}{slash}{space}){{1,4}}+{adorned}{name}{adorned}{space}\\{{0,8}}{more}"
    # The bracket stands before the choice: `re` then leaps to the next character that may begin one, 10 times faster.
    return f"{less}{space}(?:(?P<close>{close})|{adorned}{name}(?:{empty}|(?P<open>(?!{other}))))"


def _sign(plain: str, *, html: str, code: str) -> str:
    return rf"(?:{plain}|&(?:amp;){{0,4}}(?:{html});?|\\(?:u00|x){code}|%(?:25){{0,4}}{code})"


_GAP = r"(?: |\+|%20)"
_LABEL = rf"{_GAP}[A-Z0-9 +%]{{0,40}}?PRIVATE{_GAP}KEY"
# The beginning needs no dashes behind it and the end does: in doubt the block is longer. PuTTY has words for both ends.
KEY_PATTERN = (
    rf"-----? ?(?:(?P<open>BEGIN{_LABEL}|BEGIN OpenVPN Static key)"
    rf"|(?P<close>END{_LABEL}(?:{_GAP}BLOCK)? ?-----?|END OpenVPN Static key V1 ?-----?))"
    r"|Private-(?:(?P<opened>Lines: ?[0-9])|(?P<closed>MAC: ?[0-9a-f]{8,128}))"
)


def may_hold_key(text: str) -> bool:
    """False only where there is no private key."""
    return (
        "PRIVATE KEY" in text
        or "PRIVATE+KEY" in text
        or "PRIVATE%20KEY" in text
        or "Private-Lines:" in text
        or "Private-MAC:" in text
        or "OpenVPN Static key" in text
    )
