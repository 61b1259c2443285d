"""The text of an architecture decision record -> what was decided, and why; both of Nygard's form and of MADR's."""

from __future__ import annotations

import re
from dataclasses import dataclass

BODY, CONTEXT, OUTCOME, WHY = 1_500, 800, 600, 300  # characters: who wants more opens the file

STATUSES = {
    **{"accepted": "accepted", "approved": "accepted", "adopted": "accepted", "implemented": "accepted"},
    **{"decided": "accepted", "active": "accepted", "done": "accepted", "amended": "accepted"},
    **{"proposed": "proposed", "draft": "proposed", "pending": "proposed", "open": "proposed", "wip": "proposed"},
    **{"rejected": "rejected", "declined": "rejected", "withdrawn": "rejected", "abandoned": "rejected"},
    **{"deprecated": "deprecated", "obsolete": "deprecated", "retired": "deprecated"},
    **{"superseded": "superseded", "superceded": "superseded", "replaced": "superseded"},
}
SECTIONS = {
    "status": r"status",
    "context": r"context( and problem statement)?|problem( statement)?|background|motivation|issue",
    "drivers": r"decision drivers?",
    "options": r"considered options|options( considered)?|alternatives( considered)?|considered alternatives",
    "decision": r"decision( outcome)?|decision|resolution|solution|outcome",
    "consequences": r"(positive |negative )?consequences|implications|results?",
}


@dataclass(frozen=True)
class Decision:
    """What a decision record says; targets of links are paths or numbers of other records."""

    title: str
    status: str  # accepted, proposed, rejected, deprecated, superseded; empty where it tells none
    date: str  # YYYY-MM-DD, or empty
    context: str
    body: str  # the decision itself
    why: str
    options: tuple[str, ...]
    consequences: str
    supersedes: tuple[str, ...]
    superseded_by: tuple[str, ...]


def decision_of(text: str) -> Decision | None:
    """What *text* decides; None where it has no title, or neither a status nor a decision: then it is no record."""
    front, text = _front_matter(text)
    heading = re.search(r"^# +(.+)$", text, re.M) or re.search(r"^(\S.{0,200})\n={3,}$", text, re.M)
    if heading is None:
        return None
    sections = _sections(text)
    told = front.get("status") or _field(text, "status") or sections.get("status", "")
    decided = sections.get("decision", "")
    if not told and not decided:
        return None
    body = _cut(plain(decided) or plain(sections.get("context", "")), BODY)
    context = _cut(plain(sections.get("context", "")), CONTEXT)
    return Decision(
        title=_title(plain(heading[1]).strip("# ")),
        status=_status(told),
        date=_date(front.get("date") or _field(text, "date") or told),
        context=context,
        body=body,
        why=_why(body, context),
        options=_options(sections.get("options", "")),
        consequences=_cut(plain(sections.get("consequences", "")), OUTCOME),
        supersedes=_targets(rf"{told}\n{text[:2000]}", r"supersedes|supercedes|replaces"),
        superseded_by=_targets(told, r"(?:superseded|superceded|replaced)(?: by)?"),
    )


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    """The `name: value` lines between two rulers at the top, and the rest."""
    found = re.match(r"---\n(.{0,4000}?)\n---\n", text, re.S)
    if not found:
        return {}, text
    lines = (line.partition(":") for line in found[1].splitlines())
    return {name.strip().lower(): said.strip().strip("\"'") for name, _, said in lines if said.strip()}, text[
        found.end() :
    ]


def _sections(text: str) -> dict[str, str]:
    """What stands below each heading that we know, deeper headings included; of two with one name, both."""
    parts: dict[str, list[str]] = {}
    matches = list(re.finditer(r"^(#{2,4}) +(.+)$|^(\S.{2,60})\n-{3,}$", text, re.M))
    for number, match in enumerate(matches):
        words = _words(match)
        name = next((name for name, form in SECTIONS.items() if re.fullmatch(form, words, re.IGNORECASE)), "")
        if not name:
            continue
        level = len(match[1] or "##")
        end = next((other.start() for other in matches[number + 1 :] if _ends(other, level)), len(text))
        parts.setdefault(name, []).append(text[match.end() : end].strip())
    return {name: "\n\n".join(said) for name, said in parts.items()}


def _ends(heading: re.Match[str], level: int) -> bool:
    """Whether a section ends here: at the next heading that is no deeper, or that is a section of its own."""
    known = any(re.fullmatch(form, _words(heading), re.IGNORECASE) for form in SECTIONS.values())
    return len(heading[1] or "##") <= level or known


def _words(heading: re.Match[str]) -> str:
    return re.sub(r"^[\d.]+ *", "", (heading[2] or heading[3])[:80]).strip(" :*_#")


def _field(text: str, name: str) -> str:
    """`Status: accepted`, `* Status: accepted` or `**Status**: accepted` near the top."""
    found = re.search(rf"^[*\-\s]*\**{name}\**\s*:\**\s*(.+)$", text[:2000], re.IGNORECASE | re.MULTILINE)
    return found[1].strip() if found else ""


def _status(told: str) -> str:
    """Where several stand, the last counts: a record is accepted first and superseded later."""
    words = re.findall(r"[a-z]+", re.sub(r"\([^()]*\)", " ", told.lower()))
    found = [STATUSES[word] for word in words if word in STATUSES]
    return "superseded" if "superseded" in found else found[-1] if found else ""


def _date(told: str) -> str:
    found = re.search(r"\b((?:19|20)\d\d)[-/.](\d{1,2})[-/.](\d{1,2})\b", told)
    return f"{found[1]}-{int(found[2]):02}-{int(found[3]):02}" if found else ""


def _title(heading: str) -> str:
    return (
        re.sub(r"^(ADR[- ]?)?[#\d]*\d[.:\-)–— ]+\s*(?=\S)|^ADR[:\- ]+", "", heading, flags=re.IGNORECASE).strip()
        or heading
    )


def _why(body: str, context: str) -> str:
    """What follows the first `because` of the decision; else the sentence that its context begins with."""
    if found := re.search(r"\bbecause:?\s+(.+)", body, re.S | re.IGNORECASE):
        return _cut(re.split(r"(?<=[.!?])\s", found[1])[0].rstrip("."), WHY)
    first = re.split(r"(?<=[.!?])\s", context)[0].rstrip(".")
    ordinary = first[:1].isupper() and (first[1:2].islower() or first[1:2] == " ") and not first.startswith("I ")
    return _cut(first[:1].lower() + first[1:] if ordinary else first, WHY)


def _options(section: str) -> tuple[str, ...]:
    items = re.findall(r"^(?:[*\-+]|\d+[.)]) +(.+)$|^#{3,5} +(.+)$", section, re.M)
    return tuple(_cut(plain(one or other), 120) for one, other in items)[:10]


def _targets(text: str, relation: str) -> tuple[str, ...]:
    """Where the links behind this word lead, and the numbers that stand there without one."""
    found = []
    for each in re.finditer(rf"\b(?:{relation})\b:?([^\n]{{0,500}})", text, re.IGNORECASE):
        links = re.findall(r"\]\(([^)\s]+\.(?:md|markdown))[^)]*\)", each[1])
        found += links or [
            str(int(number)) for number in re.findall(r"(?:ADR[- ]?|#)?\b0*(\d{1,5})\b(?!-\d)", each[1])[:1]
        ]
    return tuple(dict.fromkeys(found))


def plain(markdown: str) -> str:
    """The words of some markdown: no links, pictures, bold marks or comments. Every pattern is bounded."""
    text = without(markdown, "<!--", "-->")
    text = re.sub(r"!\[[^\]\n]{0,200}\]\([^)\n]{0,500}\)", "", text)
    text = re.sub(r"\[([^\]\n]{1,200})\](?:\([^)\n]{0,500}\)|\[[^\]\n]{0,100}\])", r"\1", text)
    text = re.sub(r"`([^`<\n]{1,200}) ?<[^>\n]{1,500}>`_{1,2}", r"\1", text)
    text = re.sub(r"</?[a-zA-Z][^>\n]{0,200}>", "", text)
    return re.sub(r"(\*\*|__)([^*_\n]{1,200})\1", r"\2", text).strip()


def without(text: str, begin: str, end: str) -> str:
    """*text* without what stands between two signs; one that is not closed reaches to the end."""
    kept = []
    while begin in text:
        before, _, rest = text.partition(begin)
        kept.append(before)
        text = rest.partition(end)[2]
    return "".join((*kept, text))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most].rsplit(' ', 1)[0]} …"
