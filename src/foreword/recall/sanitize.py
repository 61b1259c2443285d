"""Make stored text harmless and short enough to show, and format ages ("3 days ago")."""

from __future__ import annotations

PLAIN_BEGIN, PLAIN_END = "[foreword]", "[end foreword]"  # a block of ours, which no stored text may open or end
MINUTE, HOUR, DAY = 60, 3600, 86400
_ANGLES = {ord("<"): "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}", ord(">"): "\u203a", 0: "->", 1: "=>"}
_OPENERS = frozenset("#-=+*>~_")
_UNITS = {"d": "days", "w": "weeks", "mo": "months", "y": "years"}
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0").union(
    map(chr, range(0x180B, 0x1810)), map(chr, range(0xFE00, 0xFE10)), map(chr, range(0xE0100, 0xE01F0))
)
_END_OF_TIME = 1e11  # seconds; some 3,000 years, and still a number after division


def neutral(text: str, *, width: int) -> str:
    """Return *text* on one line of *width* characters, unable to open a tag, a fence, a heading or a block of ours."""
    if not isinstance(text, str):  # an imported row may hold anything
        return ""
    head = text[: 4 * width + 200] if width > 0 else ""  # a body of megabytes costs no more than its beginning
    clean = visible(head)
    if "<" in clean or ">" in clean:  # arrows of signatures survive: without a `<` they close nothing
        clean = clean.replace("->", "\0").replace("=>", "\1").translate(_ANGLES)
    clean = clean.replace("```", "'''").replace("~~~", "'''")
    low = clean.lower()
    if "foreword" in low:
        clean = clean.replace("---", "\N{EN DASH}" * 3)
        if "[foreword" in low or "[end foreword" in low:  # a block, or a hint
            clean = clean.replace("[", "(").replace("]", ")")
    while clean[:1] in _OPENERS:  # "## x", "- x", "---": what opens a heading, an item or a rule
        opener, _, rest = clean.partition(" ")
        if opener.strip("#-=+*>~_"):
            break
        clean = rest
    return cut_at_word(clean, width=width, more=len(head) < len(text))


def shown_path(path: str, *, width: int = 160) -> str:
    """Return a path as it is shown: one that begins with a dot keeps it behind `./`, where no sentence swallows it."""
    clean = neutral(path, width=width)
    return f"./{clean}" if clean.startswith(".") and not clean.startswith(("./", "../")) else clean


def age(seconds: float) -> str:
    """Return how old, as short as it goes: now, 5m, 2h, 5d, 3w, 8mo, 2y."""
    amount, unit = _span(seconds)
    return f"{amount}{unit}" if amount else "now"


def ago(seconds: float) -> str:
    """Return how long ago, as people say it; a clock that jumped means just now."""
    amount, unit = _span(seconds)
    if not amount:
        return "just now"
    if unit == "d" and amount == 1:
        return "yesterday"
    return f"{amount}{unit} ago" if unit in ("m", "h") else f"{amount} {_UNITS[unit]} ago"


def visible(text: str) -> str:
    """Return *text* with what cannot be seen gone, and every run of white space one space."""
    if not text.isprintable() or not (text.isascii() or _FILLERS.isdisjoint(text)):
        # Fillers and selectors claim to be printable.
        unseen = [char for char in set(text) if not char.isprintable() or char in _FILLERS]
        ends_word = {char for char in unseen if char.isspace() or char < " " or "\x7f" <= char <= "\x9f"}
        ends_word |= {"\u2800", "\u3164"}
        text = text.translate({ord(char): " " if char in ends_word else None for char in unseen})
    return " ".join(text.split())


def cut_at_word(text: str, *, width: int, more: bool) -> str:
    """Return *text* within *width* characters, ended at a word with an ellipsis where something is missing."""
    if len(text) <= width and not more:
        return text
    if width <= 0:
        return ""
    cut = text[: width - 1]
    if text[width - 1 : width].strip():  # in the middle of a word
        word = cut.rfind(" ")
        cut = cut[:word] if word > width // 2 else cut
    return cut.rstrip(" ,;:.") + "\N{HORIZONTAL ELLIPSIS}"


def _span(seconds: float) -> tuple[int, str]:
    """Return the amount and its unit; 0 for less than a minute, the future and what is no number."""
    if not seconds >= MINUTE:
        return 0, ""
    whole = int(min(seconds, _END_OF_TIME))
    days = whole // DAY
    if whole < DAY:
        return (whole // MINUTE, "m") if whole < HOUR else (whole // HOUR, "h")
    if days < 61:
        return (days, "d") if days < 14 else (days // 7, "w")
    return (days * 12 // 365, "mo") if days < 730 else (days // 365, "y")
