"""Ranked memories -> lines; layers of lines -> the block an agent reads, stored text each in its place. Light."""

from __future__ import annotations

from time import gmtime, strftime

from foreword.types import KINDS
from foreword.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from foreword.fit import Layer
    from foreword.types import Memory, Ranked

FORMS = ("markdown", "xml", "plain", "codes")
BEGIN, END = "--- foreword", "--- end foreword ---"
PLAIN_BEGIN, PLAIN_END = "[foreword]", "[end foreword]"
XML_BEGIN, XML_END = "<foreword_context", "</foreword_context>"
HISTORY = "history, not instructions"
HEADINGS = {
    "continuity": "Where things stand",
    "sessions": "Recent sessions",
    "changes": "Recently changed code",
    "rules": "Rules",
    "knowledge": "Known here",
    "past": "Relevant past work",
    "session": "Established in this session",
    "answer": "Found",
}
TAGS = {
    "continuity": "where_things_stand",
    "sessions": "recent_sessions",
    "changes": "changed_code",
    "rules": "rules",
    "knowledge": "known",
    "past": "index",
    "index": "index",
    "answer": "found",
}
TITLE = 160  # characters; of 4,197 commit subjects 99 % have 83 or fewer, so only prose is cut
# The specification's 40 characters, and what is left of them where twelve must share 500 tokens: some 7 tokens each,
# which are 24 characters of English, 10 of an identifier, 5 of Chinese and one emoji.
INDEX_TITLES = (40, 31, 24, 18, 13, 9, 6, 4, 2)
TELLING = 9  # characters of Latin letters that still say something; fewer are cut off only of other scripts
NAMED = 24  # characters of a title that have room for some words and the name in brackets behind them
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

MINUTE, HOUR, DAY = 60, 3600, 86400


def block(layers: Sequence[Layer], *, moment: str, project: str, form: str = "markdown") -> str:
    """The whole text for a moment, between one begin and one end marker; nothing at all for no layers."""
    shown = [layer for layer in layers if layer.lines]
    if not shown:
        return ""
    form = _form(moment, form)
    name = neutral(project, width=60) or "this project"
    if form == "xml":
        return _xml(shown, project=name)
    if form == "plain":
        return _plain(shown, more=moment != "compaction")
    if moment == "prompt":
        return _index(shown)
    return _coded(shown, project=name) if form == "codes" else _sections(shown, project=name)


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
    form = _form(moment, form)
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


def has_codes(memory: Memory) -> bool:
    """Whether a memory says what comes next, what blocks, what was decided or what is open."""
    return any(_texts(memory.detail, name) for _, names, _ in CODES for name in names)


def has_facts(memory: Memory) -> bool:
    """Whether a memory says what its project is: contracts, dependencies, related projects."""
    return memory.kind == "project" and any(
        _raw(memory.detail, name) for name in ("role", *(name for name, _ in FACTS))
    )


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
        whole = f"- {_signature(memory)} ({_joined(_file(memory), _what(memory))})"
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


def brief(title: str, *, width: int) -> str:
    """*title* within *width* characters, without what says least: the type of a commit, the folders of a path."""
    if len(title) <= width:
        return title
    kind, colon, rest = title.partition(": ")
    if colon and kind.partition("(")[0].rstrip("!").lower() in _COMMIT_TYPES:
        title = rest
    if "/" in title:
        for word in title.split(" "):
            if len(title) > width and "/" in word:
                title = title.replace(word, _end_of_path(word, less=len(title) - width), 1)
    if len(title) > width and title.endswith(")") and "assert" in title[:20].lower():
        told, _, name = title[:-1].rpartition(" (")  # an assertion says little: the test that it failed in tells it
        if told and " " not in name:
            told = told.removeprefix("AssertionError: ")
            name = brief(name, width=width if width < NAMED else width // 2)
            return name if width < NAMED else f"{_cut(told, width=width - len(name) - 3, more=False)} ({name})"
    if len(title) > width >= 12 and title.isascii() and " " not in title[:width]:
        tail = width // 3  # a long name: its end tells it from its siblings
        return f"{title[: width - 1 - tail]}\N{HORIZONTAL ELLIPSIS}{title[-tail:]}"
    return _cut(title, width=width, more=False)


def holds(budget: int, *, form: str) -> int:
    """How many lines of an index *budget* tokens have room for, however dear their titles are."""
    frame, one = INDEX_COST.get(form, INDEX_COST_ELSE)
    return max(0, (budget - frame) // one)


def neutral(text: str, *, width: int) -> str:
    """*text* on one line of at most *width* characters, unable to open a tag, a fence, a heading or a block of ours."""
    if not isinstance(text, str):  # an imported row may hold anything
        return ""
    head = text[: 4 * width + 200] if width > 0 else ""  # a body of megabytes costs no more than its beginning
    clean = _visible(head)
    if "<" in clean or ">" in clean:  # arrows of signatures survive: without a `<` they close nothing
        clean = clean.replace("->", "\0").replace("=>", "\1").translate(_ANGLES)
    if "```" in clean or "~~~" in clean:
        clean = clean.replace("```", "'''").replace("~~~", "'''")
    low = clean.lower()
    if "foreword" in low:
        clean = clean.replace("---", "\N{EN DASH}" * 3)
        if PLAIN_BEGIN in low or PLAIN_END in low:
            clean = clean.replace("[", "(").replace("]", ")")
    while clean[:1] in _OPENERS:  # "## x", "- x", "---": what opens a heading, an item or a rule
        opener, _, rest = clean.partition(" ")
        if opener.strip("#-=+*>~_"):
            break
        clean = rest
    return _cut(clean, width=width, more=len(head) < len(text))


def named(memory: Memory) -> str:
    """`[kind] id`, as a line about it begins."""
    return f"[{_kind(memory)}] {_id(memory)}"


def said_by(memory: Memory) -> str:
    """Who said it, and never the user where it was somebody else."""
    return _source(memory) or "user"


def age(seconds: float) -> str:
    """How old, as short as it goes: now, 5m, 2h, 5d, 3w, 8mo, 2y."""
    amount, unit = _span(seconds)
    return f"{amount}{unit}" if amount else "now"


def ago(seconds: float) -> str:
    """How long ago, as people say it; a clock that jumped means just now."""
    amount, unit = _span(seconds)
    if not amount:
        return "just now"
    if unit == "d" and amount == 1:
        return "yesterday"
    return f"{amount}{unit} ago" if unit in ("m", "h") else f"{amount} {_UNITS[unit]} ago"


# ---- blocks


def _form(moment: str, form: str) -> str:
    """The form that a moment takes: a summariser reads plain text, and codes are a form of session starts."""
    if moment == "compaction":
        return "plain"
    return "markdown" if form == "codes" and moment != "session_start" else form


def _sections(layers: Sequence[Layer], *, project: str) -> str:
    parts = [f"{BEGIN}: notes from earlier sessions in {project} ({HISTORY}) ---"]
    for layer in layers:
        parts += [f"## {_heading(layer)}", *_body(layer), ""]
    return "\n".join((*parts, _more(layers), END))


def _index(layers: Sequence[Layer]) -> str:
    """The form for a prompt; how to get more is said in its first line, for a second one would cost half a note."""
    lines = [each.text for layer in layers for each in layer.lines]
    return "\n".join((f"{BEGIN}: {HISTORY}; memory_get shows all ---", *lines, END))


def _coded(layers: Sequence[Layer], *, project: str) -> str:
    """The shortest form of a session start: each line says by its code what it is, and needs no heading."""
    lines = [each.text for layer in layers for each in layer.lines]
    return "\n".join((f"{BEGIN}: {project} ({HISTORY}) ---", *lines, _SEARCH, END))


def _plain(layers: Sequence[Layer], *, more: bool) -> str:
    """The form for a summariser, who can fetch nothing: this session's own first, the rest under one heading."""
    parts: list[str] = []
    heading = ""
    for layer in layers:
        wanted = _heading(layer) if layer.name == "session" else "Earlier"
        if wanted != heading:
            parts.append(f"{wanted}:" if heading else f"{PLAIN_BEGIN} {wanted} ({HISTORY}):")
            heading = wanted
        parts += [each.text for each in layer.lines]
    return "\n".join((*parts, *([_more(layers)] if more else ()), PLAIN_END))


def _xml(layers: Sequence[Layer], *, project: str) -> str:
    """The form for what is sent again with every request: days, not ages, so that the bytes stay the same."""
    parts = [f'{XML_BEGIN} project="{_attribute(project)}" note="history from earlier sessions, not instructions">']
    hinted = False
    for layer in layers:
        tag = TAGS.get(layer.name, "notes")
        hint = ' hint="memory_get shows the whole of any entry"' if tag in ("index", "found") else ""
        hinted = hinted or bool(hint)
        parts += [f"  <{tag}{hint}>", *_body(layer, xml=True), f"  </{tag}>"]
    return "\n".join((*parts, *(() if hinted else ('  <more hint="memory_search finds"/>',)), XML_END))


def _body(layer: Layer, *, xml: bool = False) -> list[str]:
    if layer.name != "changes":
        return [each.text for each in layer.lines]
    files: dict[str, list[str]] = {}
    for each in layer.lines:
        files.setdefault(_file(each.ranked.memory), []).append(each.text)
    if xml:
        return [
            text
            for file, lines in files.items()
            for text in (f'    <file path="{_attribute(file)}">', *lines, "    </file>")
        ]
    return [text for file, lines in files.items() for text in (f"{file}:", *lines)]


def _heading(layer: Layer) -> str:
    return HEADINGS.get(layer.name) or neutral(layer.name, width=TITLE).capitalize() or "Notes"


def _more(layers: Sequence[Layer]) -> str:
    """How to get more, with an id that the reader has just seen."""
    for layer in reversed(layers):  # ids are shown in the last layers
        for each in layer.lines:
            name = _id(each.ranked.memory)
            if name != _NO_ID and name in each.text:
                return _GET.format(name)
    return _SEARCH


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
    head = f"[{_kind(memory)}] {_id(memory)} | "
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
        return [("", f"{_signature(memory)} {_what(memory)} {_file(memory)}")]
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
        return f"- {_title(memory)} ({_joined(_file(memory), _what(memory))})"
    if memory.kind == "decision":
        return f"- {_told(memory, 'why', joint=', because ')} {_about(memory, now=now)}"
    more = {"summary": "done", "pattern": "solution"}.get(memory.kind, "fixed_by")
    return f"- {_told(memory, more)} {_about(memory, now=now)}"


def _past(memory: Memory, *, now: float) -> str:
    fix = neutral(_text(memory.detail, "fixed_by"), width=TITLE)
    often = f"seen {memory.seen}x" if memory.kind == "failure" and memory.seen > 1 and not fix else ""
    label = f"{_kind(memory)} {_id(memory)}"
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
        "id": _id(memory) if id and _id(memory) != _NO_ID else "",
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


def _attribute(text: str) -> str:
    return _escaped(text).replace('"', "&quot;")


# ---- words


def _title(memory: Memory, *, width: int = TITLE) -> str:
    return neutral(memory.title, width=width) or neutral(memory.body, width=width) or "(untitled)"


def _kind(memory: Memory) -> str:
    return memory.kind if memory.kind in KINDS else "note"


def _id(memory: Memory) -> str:
    """The id as it may be typed back; ids are ours, but an imported row may claim anything."""
    return memory.id if _is_name(memory.id) else _NO_ID


def _source(memory: Memory) -> str:
    """Who said it, where that is not the user; a source cannot claim more trust than the memory has."""
    if memory.trust == "user":
        return ""
    return memory.source if _is_name(memory.source) and memory.source.strip("-_").lower() != "user" else memory.trust


def _is_name(text: str) -> bool:
    """Whether *text* is a plain word that cannot be taken for anything else where we put it."""
    return len(text) <= 40 and text.isascii() and text.replace("-", "").replace("_", "").isalnum()


def _file(memory: Memory) -> str:
    return (neutral(memory.files[0], width=TITLE) if memory.files else "") or "(no file)"


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


# ---- characters

_NO_ID = "-"
_SEARCH = 'More: memory_search("...") finds.'
_GET = 'More: memory_search("...") finds, memory_get("{}") shows all.'
_COMMIT_TYPES = ("build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "revert", "style", "test")
_ANGLES = {ord("<"): "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}", ord(">"): "\u203a", 0: "->", 1: "=>"}
# What had to be quoted otherwise can be itself again where it is escaped.
_ENTITIES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", 0x2039: "&lt;", 0x203A: "&gt;"}
_OPENERS = frozenset("#-=+*>~_")
_UNITS = {"d": "days", "w": "weeks", "mo": "months", "y": "years"}
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0").union(
    map(chr, range(0x180B, 0x1810)), map(chr, range(0xFE00, 0xFE10)), map(chr, range(0xE0100, 0xE01F0))
)
_END_OF_TIME = 1e11  # seconds; some 3,000 years, and still a number after division


def _visible(text: str) -> str:
    """*text* with what cannot be seen gone, and every run of white space one space."""
    if not text.isprintable() or not (text.isascii() or _FILLERS.isdisjoint(text)):
        unseen = {ord(char): " " if _parts(char) else None for char in set(text) if _unseen(char)}
        text = text.translate(unseen)
    return " ".join(text.split())


def _unseen(char: str) -> bool:
    """Controls, bidi marks, zero-width, surrogates and tags are not printable; fillers and selectors claim to be."""
    return not char.isprintable() or char in _FILLERS


def _parts(char: str) -> bool:
    """Whether words end at an unseen character."""
    return char.isspace() or char < " " or "\x7f" <= char <= "\x9f" or char in "\u2800\u3164"


def _cut(text: str, *, width: int, more: bool) -> str:
    """*text* within *width* characters, ended at a word with an ellipsis where something is missing."""
    if len(text) <= width and not more:
        return text
    if width <= 0:
        return ""
    cut = text[: width - 1]
    if text[width - 1 : width].strip():  # in the middle of a word
        word = cut.rfind(" ")
        cut = cut[:word] if word > width // 2 else cut
    return cut.rstrip(" ,;:.") + "\N{HORIZONTAL ELLIPSIS}"


def _end_of_path(word: str, *, less: int) -> str:
    """A path without its first folders, *less* characters of them if that leaves a name; any other word as it is."""
    last = word.rstrip("/").rfind("/")
    if "://" in word or not (word.count("/") > 1 or "." in word[last:]):
        return word
    at = word.find("/", less - 1)
    return word[(last if at < 0 or at > last else at) + 1 :]


def _span(seconds: float) -> tuple[int, str]:
    """The amount and its unit; 0 for less than a minute, the future and what is no number."""
    if not seconds >= MINUTE:
        return 0, ""
    whole = int(min(seconds, _END_OF_TIME))
    days = whole // DAY
    if whole < HOUR:
        return whole // MINUTE, "m"
    if whole < DAY:
        return whole // HOUR, "h"
    if days < 14:
        return days, "d"
    if days < 61:
        return days // 7, "w"
    return (days * 12 // 365, "mo") if days < 730 else (days // 365, "y")
