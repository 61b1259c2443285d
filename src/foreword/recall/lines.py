"""A ranked memory -> what it says in a layer, in lines or elements, and the same in fewer and fewer tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from time import gmtime, strftime
from typing import Any

from foreword.recall.sanitize import age, ago, brief, neutral
from foreword.types import KINDS, Memory, Ranked

TITLE = 160  # characters; of 4,197 commit subjects 99 % have 83 or fewer, so only prose is cut
# The specification's 40 characters, and what is left of them where twelve must share 500 tokens: some 7 tokens each,
# which are 24 characters of English, 10 of an identifier, 5 of Chinese and one emoji.
INDEX_TITLES = (40, 31, 24, 18, 13, 9, 6, 4, 2)
TELLING = 9  # characters of Latin letters that still say something; fewer are cut off only of other scripts
INDEX_COST = {"xml": (85, 50)}  # tokens of the frame and of a line, by form, where titles still say something
INDEX_COST_ELSE = (60, 36)
BODIES = (300, 160, 80)
SIGNATURE = 140
ROWS = (6, 3, 1)  # what a handoff comes down to where all of it does not fit
CODES = (  # each code of a session with its names in a detail, and how many are worth a line
    ("next", ("next", "next_steps"), 4),
    ("block", ("block", "blockers"), 3),
    ("dec", ("dec", "decisions"), 3),
    ("open", ("open", "questions", "open_questions"), 2),
)
MOST_DONE = 3  # lines of a session in codes
CODE_OF = {
    "summary": "impl",
    "handoff": "hand",
    "pattern": "pat",
    "observation": "obs",
    "change": "impl",
    "learning": "know",
    "preference": "rule",
    "correction": "rule",
    "goal": "goal",
    "project": "know",
}
CATEGORIES = ("architecture", "convention", "gotcha")
RULES = ("preference", "correction")
FACTS = (
    ("contracts", "contracts"),
    ("depends_on", "depends on"),
    ("related", "related to"),
)  # of a project, and before them
NO_ID = "-"
# What had to be quoted otherwise can be itself again where it is escaped.
_ENTITIES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", 0x2039: "&lt;", 0x203A: "&gt;"}


def versions(
    ranked: Ranked,
    *,
    moment: str,
    layer: str,
    now: float,
    form: str = "markdown",
    alone: bool = False,
    widths: Sequence[int] = INDEX_TITLES[:1],
) -> tuple[str, ...]:
    """What a memory says at a moment, and the same in fewer and fewer tokens; *alone* it may say more than a title."""
    form = form_at(moment, form)
    if moment in ("prompt", "question"):
        full = moment == "question"
        width = TITLE if full else INDEX_TITLES[0]
        more = alone or full or _criteria(ranked.memory) or has_facts(ranked.memory)
        bodies = _with_body(ranked, now=now, form=form, width=width) if more else ()
        return (*bodies, *_entries(ranked, now=now, form=form, widths=(TITLE, *widths) if full else widths))
    text = line(ranked, layer=layer, now=now, form=form)
    if layer == "knowledge" and has_facts(ranked.memory):
        bare = replace(ranked, memory=replace(ranked.memory, detail={}))
        return _distinct((text, line(bare, layer=layer, now=now, form=form)))
    rows = text.split("\n") if layer == "continuity" else ()
    return (text, *("\n".join(rows[:most]) for most in ROWS if most < len(rows)))


def line(ranked: Ranked, *, layer: str, now: float, form: str = "markdown") -> str:
    """What one memory says in a layer: one line, or one for each code of a handoff."""
    memory = ranked.memory
    if form == "xml":
        return _element(memory, layer=layer)
    if form == "codes":
        return _code_lines(memory, now=now)
    if layer == "continuity":
        return _continuity(memory, now=now)
    if layer == "changes":
        whole = f"- {_signature(memory)} ({_joined(file_of(memory), _what(memory))})"
        return whole if form == "plain" else f"  {_signature(memory)}  [{_what(memory)}]"
    if layer == "session" or (form == "plain" and layer in ("sessions", "past")):
        return _established(memory, now=now)
    if layer == "sessions":
        return f"- [{_joined(_when(memory, now=now), _source(memory))}] {_told(memory, 'done')}"
    if layer == "rules":
        often = f"{memory.seen}x, last {_when(memory, now=now)}" if memory.seen > 1 else ""
        return f"- {_joined(_source(memory) or 'user', often)}: {_title(memory)}"
    if layer == "knowledge":
        return _known(memory)
    return _past(memory, now=now)


def compact(ranked: Ranked, *, now: float) -> str:
    """`[kind] id | title | age | score`: what fits an index of many."""
    return _entries(ranked, now=now, form="markdown", widths=INDEX_TITLES[:1])[0]


def holds(budget: int, *, form: str) -> int:
    """How many lines of an index *budget* tokens have room for, however dear their titles are."""
    frame, one = INDEX_COST.get(form, INDEX_COST_ELSE)
    return max(0, (budget - frame) // one)


def has_codes(memory: Memory) -> bool:
    """Whether a memory says what comes next, what blocks, what was decided or what is open."""
    return any(_texts(memory.detail, name) for _, names, _ in CODES for name in names)


def has_facts(memory: Memory) -> bool:
    """Whether a memory says what its project is: contracts, dependencies, related projects."""
    return memory.kind == "project" and any(
        _raw(memory.detail, name) for name in ("role", *(name for name, _ in FACTS))
    )


def named(memory: Memory) -> str:
    """`[kind] id`, as a line about it begins."""
    return f"[{_kind(memory)}] {id_of(memory)}"


def said_by(memory: Memory) -> str:
    """Who said it, and never the user where it was somebody else."""
    return _source(memory) or "user"


def form_at(moment: str, form: str) -> str:
    """The form that a moment takes: a summariser reads plain text, and codes are a form of session starts."""
    if moment == "compaction":
        return "plain"
    return "markdown" if form == "codes" and moment != "session_start" else form


def id_of(memory: Memory) -> str:
    """The id as it may be typed back; ids are ours, but an imported row may claim anything."""
    return memory.id if _is_name(memory.id) else NO_ID


def file_of(memory: Memory) -> str:
    """The file that it is about, as a heading of its lines."""
    return (neutral(memory.files[0], width=TITLE) if memory.files else "") or "(no file)"


def attribute(text: str) -> str:
    """*text* between the quotes of an attribute."""
    return _escaped(text).replace('"', "&quot;")


# ---- lines


def _entries(ranked: Ranked, *, now: float, form: str, widths: Sequence[int]) -> tuple[str, ...]:
    """A memory's line in an index, its title cut to each of *widths*."""
    memory = ranked.memory
    title = _title(memory)
    if title.isascii():
        widths = [width for width in widths if width >= TELLING]
    if form == "xml":
        fixed = " (fixed)" if memory.kind == "failure" and _is_fixed(memory) else ""
        return _distinct(_xml_entry(memory, brief(title, width=width) + fixed) for width in widths)
    title = title.replace("|", "/")  # it must not look like our columns
    head = f"[{_kind(memory)}] {id_of(memory)} | "
    by = _source(memory) if memory.kind in RULES else ""  # what reads like a rule, and is none
    tail = f" | {_joined(age(now - _at(memory)), by)} | {ranked.score:.2f}"
    return _distinct(f"{head}{brief(title, width=width)}{tail}" for width in widths)


def _with_body(ranked: Ranked, *, now: float, form: str, width: int) -> tuple[str, ...]:
    """The line of an index with what matters most of the rest, longest first; nothing where there is no rest."""
    memory = ranked.memory
    title = _title(memory)
    fix = _text(memory.detail, "fixed_by")
    parts = [memory.body or _text(memory.detail, "why"), _text(memory.detail, "solution")]
    rest = f"fixed then by: {fix}" if fix else " ".join(filter(None, (*parts, _criteria(memory), _facts(memory))))
    whole = title if form == "xml" or (rest and len(title) > width) else ""
    said = ": ".join(filter(None, (whole, rest)))
    texts = _distinct(filter(None, (neutral(said, width=most) for most in BODIES)))
    if form == "xml":
        return tuple(_xml_entry(memory, text) for text in texts)
    (head,) = _entries(ranked, now=now, form=form, widths=(width,))
    return tuple(f"{head}\n  {text}" for text in texts)


def _continuity(memory: Memory, *, now: float) -> str:
    """`next:`, `block:`, `dec:` and `open:` of a handoff or a session, each on its line; else the memory itself."""
    first, *others = (f"- {code}: {text}" if code else f"- {text}" for code, text in _codes(memory, form="markdown"))
    return "\n".join((f"{first} {_about(memory, now=now)}", *others))


def _code_lines(memory: Memory, *, now: float) -> str:
    other = CODE_OF.get(memory.kind, "note")
    first, *others = (f"{code or other}: {text}" for code, text in _codes(memory, form="codes"))
    return "\n".join((f"{first} ({_joined(age(now - _at(memory)), _source(memory))})", *others))


def _codes(memory: Memory, *, form: str) -> list[tuple[str, str]]:
    """What a memory says, by code: at least one, with no code where the kind alone says what it is."""
    title = _title(memory)
    if memory.kind == "failure":
        if _is_fixed(memory):
            return [("fixed", _told(memory, "fixed_by", joint=": "))]
        often = f"seen {memory.seen}x" if memory.seen > 1 and form != "xml" else ""
        return [("block", _joined(title, often, "not fixed yet"))]
    if memory.kind == "decision":
        return [("dec", _told(memory, "why", joint=", because "))]
    if memory.kind == "change" and form == "codes":
        return [("", f"{_signature(memory)} {_what(memory)} {file_of(memory)}")]
    codes = [
        (code, text)
        for code, names, most in CODES
        for text in [said for name in names for said in _texts(memory.detail, name)][:most]
    ]
    if memory.kind == "summary" and form == "codes":
        return [("", text) for text in _texts(memory.detail, "done")[:MOST_DONE] or [title]] + codes
    if not codes or (memory.kind == "handoff" and all(text != title for _, text in codes)):
        codes.insert(0, ("", title))
    return codes


def _known(memory: Memory) -> str:
    label, title = _labelled(memory)
    source = f" ({_source(memory)})" if _source(memory) else ""
    return f"- {label.capitalize()}{source}: {title}" if label else f"- {title}{source}"


def _labelled(memory: Memory) -> tuple[str, str]:
    """What sort of knowledge a memory is, as far as it tells, and its title without that word."""
    said = (_text(memory.detail, "category"), _text(memory.detail, "type"), *memory.tags)
    words = [word.lower() for word in said if isinstance(word, str)]
    label = "project" if memory.kind == "project" else next((name for name in CATEGORIES if name in words), "")
    title = _title(memory)
    if label and title.lower().startswith(f"{label}:"):
        title = title[len(label) + 1 :].lstrip()
    return label, _joint(title, _facts(memory))


def _facts(memory: Memory) -> str:
    """What the user said a project is, besides its role."""
    if memory.kind != "project":
        return ""
    told = ((label, _texts(memory.detail, name)) for name, label in FACTS)
    return "; ".join(f"{label}: {', '.join(texts)}" for label, texts in told if texts)


def _criteria(memory: Memory) -> str:
    told = _texts(memory.detail, "criteria") if memory.kind == "goal" else ()
    return f"done when: {'; '.join(told)}" if told else ""


def _established(memory: Memory, *, now: float) -> str:
    if memory.kind == "change":
        return f"- {_title(memory)} ({_joined(file_of(memory), _what(memory))})"
    if memory.kind == "decision":
        return f"- {_told(memory, 'why', joint=', because ')} {_about(memory, now=now)}"
    more = {"summary": "done", "pattern": "solution"}.get(memory.kind, "fixed_by")
    return f"- {_told(memory, more)} {_about(memory, now=now)}"


def _past(memory: Memory, *, now: float) -> str:
    fix = neutral(_text(memory.detail, "fixed_by"), width=TITLE)
    often = f"seen {memory.seen}x" if memory.kind == "failure" and memory.seen > 1 and not fix else ""
    label = f"{_kind(memory)} {id_of(memory)}"
    about = _joined(label, _when(memory, now=now), _source(memory), "fixed" if fix else often)
    if memory.kind == "failure":
        error = neutral(_text(memory.detail, "message") or _text(memory.detail, "error"), width=TITLE) or _title(memory)
        quoted = '"' + error.replace('"', "'") + '"'
        return f"- [{about}] {quoted}: {fix}" if fix else f"- [{about}] {quoted}"
    return f"- [{about}] {_explained(memory)}"


def _explained(memory: Memory) -> str:
    if memory.kind == "decision":
        return _told(memory, "why", joint=", because ")
    return _told(memory, "solution", joint=": ")


def _told(memory: Memory, name: str, *, joint: str = "; ") -> str:
    """The title and, after *joint*, what the detail says under *name*."""
    more = neutral(_text(memory.detail, name), width=TITLE).removeprefix(joint[2:])  # many a reason says because itself
    return f"{_title(memory).removesuffix('.')}{joint}{more}" if more else _title(memory)


# ---- elements


def _element(memory: Memory, *, layer: str) -> str:
    """What one memory is in a section: one element, or one for each code of a handoff."""
    if layer == "continuity":
        codes = [(code or _kind(memory), text) for code, text in _codes(memory, form="xml")]
        about = [_attributes(memory), *[""] * len(codes)]
        return "\n".join(
            f"    <{code}{attributes}>{_escaped(text)}</{code}>"
            for (code, text), attributes in zip(codes, about, strict=False)
        )
    if layer == "sessions":
        parts = {
            "summary": _told(memory, "done"),
            "decisions": "; ".join(_texts(memory.detail, "decisions")[:3]),
            "concepts": ", ".join((_texts(memory.detail, "concepts") or _neutrals(memory.tags))[:5]),
        }
        held = "".join(f"<{tag}>{_escaped(text)}</{tag}>" for tag, text in parts.items() if text)
        return f"    <session{_attributes(memory, id=True)}>{held}</session>"
    if layer == "changes":
        return f'      <function what="{_what(memory)}">{_escaped(_signature(memory))}</function>'
    if layer == "rules":
        return f"    <rule{_attributes(memory)}>{_escaped(_title(memory))}</rule>"
    if layer == "knowledge":
        label, title = _labelled(memory)
        return f"    <{label or 'fact'}{_attributes(memory)}>{_escaped(title)}</{label or 'fact'}>"
    fixed = " (fixed)" if memory.kind == "failure" and _is_fixed(memory) else ""
    return _xml_entry(memory, _explained(memory) + fixed)


def _xml_entry(memory: Memory, text: str) -> str:
    return f"    <entry{_attributes(memory, id=True, kind=True)}>{_escaped(text)}</entry>"


def _attributes(memory: Memory, *, id: bool = False, kind: bool = False) -> str:
    """The day it was first said, which never changes, and who said it, where that is not the user."""
    known = {
        "id": id_of(memory) if id and id_of(memory) != NO_ID else "",
        "kind": _kind(memory) if kind else "",
        "when": _day(memory.created),
        "by": _source(memory),
    }
    return "".join(f' {name}="{text}"' for name, text in known.items() if text)


def _day(at: float) -> str:
    try:
        return strftime("%Y-%m-%d", gmtime(at))
    except (ValueError, OverflowError, OSError):  # no calendar has it
        return ""


def _escaped(text: str) -> str:
    return text.translate(_ENTITIES)


# ---- words


def _title(memory: Memory, *, width: int = TITLE) -> str:
    return neutral(memory.title, width=width) or neutral(memory.body, width=width) or "(untitled)"


def _kind(memory: Memory) -> str:
    return memory.kind if memory.kind in KINDS else "note"


def _source(memory: Memory) -> str:
    """Who said it, where that is not the user; a source cannot claim more trust than the memory has."""
    if memory.trust == "user":
        return ""
    return memory.source if _is_name(memory.source) and memory.source.strip("-_").lower() != "user" else memory.trust


def _is_name(text: str) -> bool:
    """Whether *text* is a plain word that cannot be taken for anything else where we put it."""
    return len(text) <= 40 and text.isascii() and text.replace("-", "").replace("_", "").isalnum()


def _signature(memory: Memory) -> str:
    told = (_text(memory.detail, "signature"), *memory.functions[:1], memory.title)
    return next(filter(None, (neutral(text, width=SIGNATURE) for text in told)), "(unnamed)")


def _what(memory: Memory) -> str:
    what = _text(memory.detail, "what").upper()
    return what if what in ("NEW", "MODIFIED", "DELETED") else "MODIFIED"


def _at(memory: Memory) -> float:
    """The last time for what repeats, the first time for what was said once."""
    repeats = memory.kind in ("failure", "preference", "correction", "learning")
    return max(memory.created, memory.confirmed) if repeats else memory.created


def _when(memory: Memory, *, now: float) -> str:
    return ago(now - _at(memory))


def _about(memory: Memory, *, now: float) -> str:
    return f"({_joined(_kind(memory), _when(memory, now=now), _source(memory))})"


def _is_fixed(memory: Memory) -> bool:
    return isinstance(memory.detail, dict) and bool(memory.detail.get("fixed_by"))


def _joint(*words: str) -> str:
    return "; ".join(filter(None, words))


def _joined(*words: str) -> str:
    return ", ".join(filter(None, words))


def _text(detail: Mapping[str, Any], name: str) -> str:
    return next(iter(_raw(detail, name)), "")


def _texts(detail: Mapping[str, Any], name: str) -> list[str]:
    return _neutrals(_raw(detail, name))


def _neutrals(texts: Sequence[str]) -> list[str]:
    return [text for each in texts if (text := neutral(each, width=TITLE))]


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _raw(detail: Mapping[str, Any], name: str) -> list[str]:
    """A detail's texts under *name*, whether one or several were stored; what is no text says nothing."""
    told = detail.get(name) if isinstance(detail, dict) else None
    several = told if isinstance(told, (list, tuple)) else (told,)
    return [each for each in several if isinstance(each, str)]
