"""What somebody wrote -> its sentences and points, each on one line; code, logs and quotations are not somebody's words."""

from __future__ import annotations

import re

MOST_TEXT = 8_000  # characters of one message that are read; past it people paste, and agents repeat themselves
MOST_PIECES = 200
LONGEST = 400  # characters of a sentence; a longer one is no sentence

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_POINT = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)]|\[[ xX]\])\s+")
_HEADING = re.compile(r"^\s*#{1,6}\s+")
# A full stop ends a sentence, not an abbreviation, a number or an initial; people type prompts without capitals.
_END = re.compile(
    r"(?<=[^\W\d_]{2}[.!])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\betc\.)(?<!\bcf\.)(?<!\bca\.)[\"')\]]?\s+(?=[\"'(`*]?\w)"
    r"|(?<=[])`'\"0-9][.!])\s+(?=[\"'(`*]?[A-Z`])|(?<=\?)\s+|(?<=[。！？])"
)
_LOG = re.compile(
    r"^\s*(?:at\s\S+\(|File \"|Traceback|>>>|\$ |[{}\[\]<>|]|\d{4}-\d\d-\d\d[T ]\d\d:|E\s{2,}|\+\+\+|---|@@|[-+]{1,2}\s{2,}"
    r"|\d{4}[-/]\d\d[-/]\d\d[T ]\d|\d\d:\d\d:\d\d\b|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d\b"  # its time first
    r"|(?:DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|TRACE|SEVERE)\b(?=\s*[:\[(|-]|\s{2,})|(?:error|warning)(?:\[\w+\])?: "
    r"|npm (?:ERR!|error|WARN|warn) |(?:[\w$]+\.)+[A-Z]\w*(?:Error|Exception)\b|[A-Z]\w*(?:Error|Exception): |Caused by: |\.\.\. \d+ more)"
)
_MARKUP = re.compile(r"\*\*|__(?=\w)|(?<=\w)__|(?<![\w`])\*(?=\S)|(?<=\S)\*(?![\w`])")


def prose(text: str) -> str:
    """*text* without blocks of code and what was pasted."""
    text = _FENCE.sub("\n", text[:MOST_TEXT])
    return "\n\n".join("\n".join(_written(part.split("\n"))) for part in text.split("\n\n"))


def _written(lines: list[str]) -> list[str]:
    """The lines of a paragraph that somebody wrote: what stands between two lines of a log is of the log."""
    pasted = [at for at, line in enumerate(lines) if _LOG.match(line)]
    first, last = (pasted[0], pasted[-1]) if pasted else (len(lines), -1)
    return [line for at, line in enumerate(lines) if not (first <= at <= last or line.lstrip().startswith(">"))]


def fenced(text: str, *, languages: tuple[str, ...]) -> list[str]:
    """The lines that stand in blocks of code of these languages, without their indentation."""
    found: list[str] = []
    for block in _FENCE.finditer(text[:MOST_TEXT]):
        head, *lines = block.group(0).split("\n")
        if head.strip("`~ \t").lower() in languages:
            found += [line.strip() for line in lines[:-1] if line.strip()]
    return found


def pieces(text: str) -> list[str]:
    """The sentences and points of *text* in order, without markup."""
    found: list[str] = []
    for line in _joined(prose(text)):
        plain = _HEADING.sub("", _POINT.sub("", line))
        plain = " ".join(_MARKUP.sub("", plain).split())
        found += [each.strip() for each in _END.split(plain) if each and each.strip()]
        if len(found) >= MOST_PIECES:
            break
    return [each for each in found[:MOST_PIECES] if len(each) <= LONGEST]


def cut(text: str, width: int) -> str:
    """*text* within *width* characters, ended between words and, where it can be, between clauses; code in it is closed."""
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    if text.count("`") % 2:  # one that stands by itself opens nothing
        return _ended(text, width)
    head = _ended(text, width)
    return head if head.count("`") % 2 == 0 else _closed(_ended(text, width - 2))


def _ended(text: str, width: int) -> str:
    head = text[:width]
    for joint in ("; ", " — ", ", ", " (", " because ", " so that ", " and "):
        at = head.rfind(joint)
        if at > width * 0.6:
            return head[:at].rstrip(" ,;:—-(")
    return head[: head.rfind(" ")].rstrip(" ,;:—-(") + "…" if " " in head else head[:-1] + "…"


def _closed(head: str) -> str:
    """*head* with a backtick behind the code that it was cut in, or without that code where nothing is left of it."""
    if head.count("`") % 2 == 0:
        return head
    before, _, code = head.rpartition("`")
    return f"{head.rstrip('…')}…`" if code.strip("… ") else before.rstrip(" ,;:—-(") + "…"


def begun(text: str) -> str:
    """*text* with a capital, as a sentence begins; a name of code at its head stays as it is called."""
    head = text.partition(" ")[0]
    return text if _NAME.search(head) else text[:1].upper() + text[1:]


_NAME = re.compile(r"\w[_./(]\w*|\d|[a-z][A-Z]")


def _joined(text: str) -> list[str]:
    """Lines, with those that only a narrow window has broken put together again."""
    found: list[str] = []
    for line in text.split("\n"):
        fresh = not line.strip() or _POINT.match(line) or _HEADING.match(line)
        if found and found[-1].strip() and not fresh and len(found[-1]) > 60 and line.strip()[:1].islower():
            found[-1] = f"{found[-1].rstrip()} {line.strip()}"
        else:
            found.append(line)
    return [line for line in found if line.strip()]
