"""Any text or JSON value -> the same without secrets; every path passes here before a byte is written.

Light: `re` is imported only where a text may hold a secret. The order is part of the promise: blocks, then the edges
of a cut, then tokens, then passwords in URLs. No step leaves anything that an earlier one would find: a mark holds `[`,
`:` and `]`, which no tag, key or token may hold, and a token is taken to the end of its run of letters and digits, so
that no new word begins behind a mark. Hence twice is the same as once.

Every pattern is linear: repeats are possessive or bounded, and an attempt that fails has read either a bounded stretch
or one that no other attempt reads; where neither holds, it takes the stretch as `keep`, so that nobody reads it again.
"""

from __future__ import annotations

from foreword.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Match
    from typing import Any, Literal

    Cut = Literal["", "head", "tail"]

CUT = "[cut]"
EDGE = 4096  # characters; longer than any token we know, and a longer run is data that must not be lost whole
DEEPEST = 100  # levels of a JSON value; no host nests past 20, and json itself gives up near 1,000


def redact(text: str, *, cut: Cut = "") -> str:
    """The text with a typed mark for each secret; *cut* says whether it is the head or the tail of a longer one."""
    text = _without_blocks(text)
    text = _without_edge(text, cut=cut)
    for rule in RULES:
        if _may_hold(rule, text):
            text = _without_tokens(text, rule=rule)
    return _without_passwords(text) if _may_hold_password(text) else text


def suspicious(text: str) -> bool:
    """False only where redact would return the text as it is; asked without `re`, whose import costs a hook 12 ms."""
    return (
        _may_hold_tag(text)
        or _may_hold_key(text)
        or _may_hold_password(text)
        or any(_may_hold(rule, text) for rule in RULES)
    )


def redact_all(item: Any) -> Any:
    """A JSON value with every string in it redacted, keys included; what lies deeper than DEEPEST levels is dropped."""
    texts = _texts_in(item)
    if texts is not None and not suspicious("\n".join(texts)):
        return item  # one look at everything: a payload without any trigger is the ordinary case
    return _redact_nested(item, room=DEEPEST)


def leaves_open(text: str) -> bool:
    """Whether something private begins in *text* and does not end there."""
    return (_may_hold_tag(text) or _may_hold_key(text)) and not _without_blocks(f"{text}\n{_SEAM}").endswith(_SEAM)


_SEAM = "foreword-seam"  # what stands behind a text and is gone where the text leaves something open


@value
class Rule:
    """One format of token: each begins with a trigger and goes on for at least *least* characters without a space."""

    name: str
    triggers: tuple[str, ...]  # of equal length
    least: int
    body: str  # what follows the trigger; it must take letters and digits to the end of their run
    word: bool = False  # only where a word begins, since ordinary words end like the trigger (task-, MSG.)


_A = "[A-Za-z0-9]"
_W = "[A-Za-z0-9_]"
_B = "[A-Za-z0-9_-]"
_SLASH = r"(?:\\{0,4}/|%2[fF])"  # JSON may write \/ and a query %2F

# A new format is a new line. Where one holds another, the longer comes first; the name is shown to the user.
RULES = (
    Rule(
        "jwt",
        ("eyJ",),
        16,
        # Three parts, or the five of an encrypted one whose second may be empty; else the run is taken and kept.
        rf"(?:{_B}{{10,}}+\.(?:{_B}{{4,}}+\.{_B}*+|\.{_B}{{4,}}+)(?:\.{{1,2}}{_B}++)*+|(?P<keep>{_B}*+))",
    ),
    Rule(
        "slack-webhook",
        ("hooks.slack.com",),
        13,
        rf"{_SLASH}(?:services|workflows|triggers)(?:{_SLASH}{_B}++){{2,}}+",
    ),
    Rule("slack-token", ("xox",), 12, rf"(?:[abceprs]-{_B}{{10,}}+|o-[0-9]{_B}{{10,}}+|d-[A-Za-z0-9_%+/-]{{10,}}+)"),
    Rule("slack-token", ("xapp-",), 12, rf"(?:[0-9]++-{_B}{{10,}}+|(?=[A-Za-z]*+[0-9]){_A}{{20,}}+{_B}*+)"),
    Rule("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), 36, rf"{_A}{{36,}}+{_W}*+"),
    Rule("github-token", ("github_pat_",), 30, rf"{_W}{{30,}}+"),
    Rule("gitlab-token", ("glpat-",), 20, rf"{_B}{{20,}}+(?:\.[0-9a-z]{{2}}\.[0-9a-z]{{9}}{_A}*+)?+"),
    Rule("anthropic-key", ("sk-ant-",), 21, rf"[a-z]{{2,10}}[0-9]{{2}}-{_B}{{16,}}+"),
    Rule(
        "openai-key",
        ("sk-",),
        20,
        # A digit, and either both cases or 24 characters without a dash: names such as sk-cube-grid have neither.
        rf"(?:(?=[A-Za-z_-]*+[0-9])(?:(?=[a-z0-9_-]*+[A-Z])(?=[A-Z0-9_-]*+[a-z])|(?={_B}*?[a-z0-9]{{24}})){_B}{{20,}}+"
        rf"|(?P<keep>{_B}*+))",
        word=True,
    ),
    Rule(
        "stripe-key",
        ("sk_live_", "rk_live_", "sk_test_", "rk_test_"),
        16,
        rf"(?=[A-Za-z]*+[0-9]|[a-z]++[A-Z]|[A-Z]++[a-z]){_A}{{16,}}+{_W}*+",
        word=True,
    ),
    Rule("stripe-key", ("whsec_",), 24, r"(?:[A-Za-z0-9_+/-]|\\/){24,}+"),
    Rule("google-key", ("AIza",), 35, rf"{_B}{{35,}}+", word=True),
    Rule("aws-key", ("AKIA", "ASIA"), 16, rf"[A-Z0-9]{{16}}{_A}*+", word=True),
    Rule("npm-token", ("npm_",), 36, rf"{_A}{{36,}}+{_W}*+"),
    Rule("pypi-token", ("pypi-AgE",), 32, rf"{_B}{{32,}}+"),
    Rule("huggingface-token", ("hf_",), 30, rf"{_A}{{30,}}+{_W}*+"),
    Rule("sendgrid-key", ("SG.",), 49, rf"{_B}{{16,}}+\.{_B}{{32,}}+", word=True),
)


def _mark(name: str) -> str:
    return f"[redacted:{name}]"


PRIVATE = _mark("private")
_MARKS = {CUT, *(_mark(name) for name in ("private", "private-key", "url-password", *(rule.name for rule in RULES)))}


def _texts_in(item: Any) -> list[str] | None:
    """Every string of a JSON value, keys too; None where it is nested too deep to be shown."""
    texts: list[str] = []
    level: list[Any] = [item]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for each in level:
            if isinstance(each, str):
                texts.append(each)
            elif isinstance(each, dict):
                below += each
                below += each.values()
            elif isinstance(each, list | tuple):
                below += each
        if not below:
            return texts
        level = below
    return None


def _redact_nested(item: Any, *, room: int) -> Any:
    if isinstance(item, str):
        return redact(item)
    if not isinstance(item, dict | list | tuple):
        return item
    if not room:
        return _mark("too-deep")
    if isinstance(item, dict):
        return _redact_dict(item, room=room)
    if item and all(isinstance(line, str) for line in item):
        return _redact_lines(item)
    return _redact_parts(item, room=room - 1)


def _redact_dict(item: dict[Any, Any], *, room: int) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    times: dict[Any, int] = {}
    for key, inner in item.items():
        clean = name = redact(key) if isinstance(key, str) else key
        while name in found:  # two secrets with one mark: neither value may be lost
            times[clean] = times.get(clean, 1) + 1
            name = f"{clean} {times[clean]}"
        hidden = isinstance(key, str) and leaves_open(key)
        found[name] = PRIVATE if hidden else _redact_nested(inner, room=room - 1)
    return found


def _redact_parts(parts: list[Any] | tuple[Any, ...], *, room: int) -> list[Any]:
    # A message comes in parts: what one of them opens and does not close hides the rest of them.
    found: list[Any] = []
    for at, part in enumerate(parts):
        found.append(_redact_nested(part, room=room))
        if any(map(leaves_open, _texts_in(part) or ())):
            return found + [PRIVATE] * (len(parts) - at - 1)
    return found


def _redact_lines(lines: list[str] | tuple[str, ...]) -> list[str]:
    # Patches and notebooks come as lists of lines: a block opened in one of them may be closed in another.
    together = "\n".join(lines)
    if not suspicious(together):
        return list(lines)
    if _without_blocks(together) != "\n".join(map(_without_blocks, lines)):
        return redact(together).split("\n")
    return [redact(line) for line in lines]


# --- blocks: <private> and private keys; one whose end is missing reaches to that end of the text ---

# Nobody hides his own tag on purpose, but web pages bring invisible characters along and CJK keyboards wide letters.
_INVISIBLE = "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e" + (
    "\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufeff"
)
_WIDE = 0xFEE0  # from an ASCII character to its full-width form
_ODD = _INVISIBLE + "＜＞／﹤﹥" + "".join(chr(ord(letter) + _WIDE) for letter in "privatePRIVATE")
_REACH = 160  # bytes: 16 spaces, a slash and 16 spaces, at most 3 bytes each, with a bracket


def _without_blocks(text: str) -> str:
    if _may_hold_tag(text):
        text = _without_spans(text, pattern=_tag_pattern(odd=_is_odd(text)), nests=True, mark=_mark("private"))
    if _may_hold_key(text):
        text = _without_spans(text, pattern=_KEY, nests=False, mark=_mark("private-key"))
    return text


def _without_spans(text: str, *, pattern: str, nests: bool, mark: str) -> str:
    import re

    kept: list[str] = []
    depth = done = 0
    for found in re.finditer(pattern, text):
        if found.lastgroup == "open":
            if not depth:
                kept += (text[done : found.start()], mark)
            depth = depth + 1 if nests else 1
        elif found.lastgroup == "close":
            if not depth:  # its beginning is not here: a page of a file, a miscounted nesting
                kept = [mark]
            depth = max(depth - 1, 0)
            done = found.end()
    return "".join(kept) + ("" if depth else text[done:])


def _may_hold_tag(text: str) -> bool:
    raw = text.encode("utf-8", "surrogatepass").lower()  # 10 times faster than str.lower where a text is not ASCII
    if _is_odd(text):
        raw = _folded(raw)
    at = raw.find(b"private")
    while at >= 0:
        after = raw[at + 7 : at + 8]
        if not (after.isalnum() or after == b"_"):
            before = raw[max(0, at - _REACH) : at].decode("utf-8", "ignore").rstrip()
            if before.endswith(("2f", "2f;", "47", "47;")):
                return True
            if before.rstrip("/\\／").rstrip().endswith(("<", "＜", "﹤", "lt", "lt;", "60", "60;", "3c", "3c;")):
                return True
        at = raw.find(b"private", at + 7)
    return False


def _is_odd(text: str) -> bool:
    return not text.isascii() and any(char in text for char in _ODD)


def _folded(raw: bytes) -> bytes:
    for char in _INVISIBLE:
        raw = raw.replace(char.encode(), b"")
    for letter in "privatePRIVATE":
        raw = raw.replace(chr(ord(letter) + _WIDE).encode(), letter.lower().encode())
    return raw


def _tag_pattern(*, odd: bool) -> str:
    # With the odd characters `re` needs 18 ms to compile it, without them 4: a hook pays that each time.
    unseen, space = (f"[{_INVISIBLE}]{{0,8}}+", rf"[\s{_INVISIBLE}]{{0,16}}+") if odd else ("", r"\s{0,16}+")
    name = "".join(f"[{_forms(letter, odd=odd)}]{unseen}" for letter in "private")
    less = _sign("<|＜|﹤" if odd else "<", html="[lL][tT]|#0{0,4}60|#[xX]0{0,4}3[cC]", code="3[cC]")
    more = _sign(">|＞|﹥" if odd else ">", html="[gG][tT]|#0{0,4}62|#[xX]0{0,4}3[eE]", code="3[eE]")
    slash = _sign("/|／" if odd else "/", html="#0{0,4}47|#[xX]0{0,4}2[fF]", code="2[fF]")
    # <privateKey>, <private-note> and `a <private)` are something else. `[` too, lest a mark make a tag of a word.
    other = r"(?:[A-Za-z0-9_\[)\],;]|[.:-][A-Za-z0-9_\[])"
    empty = rf"{space}{slash}{space}\\{{0,8}}{more}"  # <private/> hides nothing
    close = rf"\\{{0,8}}{slash}{space}{name}{space}\\{{0,8}}{more}"
    # The bracket stands before the choice: `re` then leaps to the next character that may begin one, 10 times faster.
    return f"{less}{space}(?:(?P<close>{close})|{name}(?:{empty}|(?P<open>(?!{other}))))"


def _forms(letter: str, *, odd: bool) -> str:
    upper = letter.upper()
    return letter + upper + (chr(ord(letter) + _WIDE) + chr(ord(upper) + _WIDE) if odd else "")


def _sign(plain: str, *, html: str, code: str) -> str:
    return rf"(?:{plain}|&(?:amp;){{0,4}}(?:{html});?|\\(?:u00|x){code}|%(?:25){{0,4}}{code})"


_GAP = r"(?: |\+|%20)"
_LABEL = rf"{_GAP}[A-Z0-9 +%]{{0,40}}?PRIVATE{_GAP}KEY"
# The beginning needs no dashes behind it and the end does: in doubt the block is longer.
_KEY = rf"-----? ?(?:(?P<open>BEGIN{_LABEL})|(?P<close>END{_LABEL}(?:{_GAP}BLOCK)? ?-----?))"


def _may_hold_key(text: str) -> bool:
    return "PRIVATE KEY" in text or "PRIVATE+KEY" in text or "PRIVATE%20KEY" in text


# --- the edges of a text that was cut: half a token has no format any more ---


def _without_edge(text: str, *, cut: Cut) -> str:
    if cut == "head" and text[text.rfind("[") :] not in _MARKS:
        lost = _run_length(reversed(text[-EDGE:]))
        text = text[: len(text) - lost] + CUT if lost else text
    if cut == "tail" and text[: text.find("]") + 1] not in _MARKS:
        lost = _run_length(text[:EDGE])
        text = CUT + text[lost:] if lost else text
    return _without_blocks(text) if cut else text  # the bound may have fallen on a tag: <private/[cut]


def _run_length(chars: Any) -> int:
    # Chinese and Japanese need no spaces, and no token holds them: a whole page must not count as one word.
    length = 0
    for char in chars:
        if char.isspace() or char >= "\u2e80":
            break
        length += 1
    return length


# --- tokens ---

_ESCAPES = "\\%[;"  # one of these stands within 6 characters before a word that begins behind an escape


def _may_hold(rule: Rule, text: str) -> bool:
    for trigger in rule.triggers:
        at = text.find(trigger)
        while at >= 0:
            end = at + len(trigger)
            rest = text[end : end + rule.least]
            if len(rest) == rule.least and rest.split() == [rest] and not (rule.word and _within_word(text, at=at)):
                return True
            at = text.find(trigger, end)
    return False


def _within_word(text: str, *, at: int) -> bool:
    before = text[max(0, at - 6) : at]
    return before[-1:].isascii() and before[-1:].isalnum() and not any(char in before for char in _ESCAPES)


def _without_tokens(text: str, *, rule: Rule) -> str:
    import re

    mark = _mark(rule.name)
    start = "|".join(map(re.escape, rule.triggers))
    begins = _begins_word(len(rule.triggers[0])) if rule.word else ""

    def marked(found: Match[str]) -> str:
        return found[0] if found.lastgroup == "keep" else mark

    return re.sub(f"(?:{start}){begins}{rule.body}", marked, text)


def _begins_word(width: int) -> str:
    # Asked behind the trigger, so that the search can run for a plain string. A letter before it is not part of a word
    # where it ends an escape: \n \u0022 \x22 %3D, a colour such as ESC [1;31m, or grep's ESC [K.
    hexes = "[0-9A-Fa-f]{2}"
    escapes = (r"\\[nrtbf]", rf"\\u00{hexes}", rf"\\x{hexes}", f"%{hexes}", r"\[[mK]")
    colours = (rf"[\[;][0-9]{{{digits}}}m" for digits in (1, 2, 3))
    behind = "|".join(f"(?<={escape}.{{{width}}})" for escape in (*escapes, *colours))
    return f"(?:(?<![A-Za-z0-9].{{{width}}})|{behind})"


# --- scheme://user:password@host ---

_NOT = r"\s@\"'<>\\`"
# Up to the last @ before the path; a bare slash may stand in it, unless it begins like a port or a variable.
_PASSWORD = (
    rf"(?P<before>:(?:\\{{0,4}}/){{2}}(?:[^{_NOT}/:\[\]]|\[redacted:[a-z0-9-]{{1,40}}\])*+:)"
    rf"(?P<password>(?:(?![0-9]*+[/?#]|[$%{{(])(?:[^{_NOT}/]|/(?!/))*+@)?+(?:[^{_NOT}/?#]*+@)*+)(?<=@)"
)


def _may_hold_password(text: str) -> bool:
    plain = text.replace("\\", "")
    if "://" not in plain or "@" not in plain:
        return False
    for piece in plain.split("://")[1:]:
        login, at, _ = piece.partition("@")
        user, colon, rest = login.partition(":")
        is_port = rest.lstrip("0123456789").startswith(("/", "?", "#"))
        if at and colon and "/" not in user and not is_port and login.split() == [login]:
            return True
    return False


def _without_passwords(text: str) -> str:
    import re

    def marked(found: Match[str]) -> str:
        given = found["password"][:-1]
        if given in _MARKS or _stands_for_one(given):
            return found[0]
        return f"{found['before']}{_mark('url-password')}@"

    return re.sub(_PASSWORD, marked, text)


def _stands_for_one(given: str) -> bool:
    # {password}, ${PASSWORD}, {{ password }}, %s, *** or nothing: useful to the reader and no secret
    name = given.lstrip("$")
    braced = name.startswith("{") and name.endswith("}")
    return not given.strip("*") or given == "%s" or (braced and name.strip("{}").replace(".", "_").isidentifier())
