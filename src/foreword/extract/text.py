"""Split what agents and people write into blocks and sentences, without mark-up; and cut it to a length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Literal, NamedTuple

from foreword.terms import lazy_pattern, terms

MOST_TEXT = 64_000  # characters of a message that are read; hooks cap texts there as well
MOST_SENTENCES = 600
LONGEST = 600  # characters of a sentence; what is longer is a log or data in one line
LONG_LINE = 60  # characters; a line that long without an end was wrapped, its sentence goes on in the next one
LABEL = 80  # characters of a bold line, or of a line that ends in a colon, which is taken for a heading

BlockKind = Literal["heading", "item", "text"]


class Block(NamedTuple):
    """A heading, a list item or a paragraph, in one line and without mark-up but the backticks of code."""

    kind: BlockKind
    text: str
    heading: str = ""  # above it; of an indented item: what its parent says
    done: bool | None = None  # of an item: ticked or not; None without a box


def blocks(markdown: str) -> list[Block]:
    """Return the blocks of *markdown* in order; code fences, tables, rules and quotations are left out."""
    found: list[Block] = []
    heading = ""
    parents: list[tuple[int, str]] = []  # depth and text of the items that the next one may lie in
    joins = False  # whether the next line goes on with the last block
    for line in _prose_lines(markdown):
        stripped = line.strip()
        if not stripped or _RULE.match(stripped):
            joins = False
            continue
        item = _ITEM.match(line)
        title = _HEADING.match(stripped)
        before = found[-1].text if joins else ""
        if title or (not item and _is_label(stripped)):
            heading = plain_line(title[1] if title else stripped).rstrip(" :")
            if heading:
                found.append(Block("heading", heading))
            joins, parents = False, []
        elif before and not item and (line[:1] in " \t" or (len(before) > LONG_LINE and before[-1] not in ".!?:;")):
            found[-1] = found[-1]._replace(text=f"{before} {plain_line(stripped)}")
        else:
            depth = len(item[1].expandtabs(4)) if item else -1  # paragraphs behind a list do not lie in its items
            while parents and parents[-1][0] >= depth:
                parents.pop()
            text, done = _box(item[2] if item else stripped)
            text = plain_line(text)
            if text:
                over = parents[-1][1].rstrip(" :") if parents else heading
                found.append(Block("item" if item else "text", text, over, done))
                parents += [(depth, text)] if item else []
            joins = bool(text)
    return found


def sentences(text: str) -> list[str]:
    """Return the sentences and list items of *text* in order, without mark-up but the backticks of code."""
    found: list[str] = []
    for block in blocks(text):
        if block.kind != "heading":
            found += split_sentences(block.text)
        if len(found) >= MOST_SENTENCES:
            break
    return [each for each in found[:MOST_SENTENCES] if len(each) <= LONGEST]


def split_sentences(line: str) -> list[str]:
    """Split one line of plain text; a full stop in code, a file name, a number or an abbreviation ends nothing."""
    masked = _CODE.sub(lambda code: "`" + "x" * (len(code[0]) - 2) + "`", line)
    found, at = [], 0
    for end in _END.finditer(masked):
        if _ABBREVIATION.search(masked, max(0, end.start() - 12), end.start()):
            continue
        found.append(line[at : end.start()].strip())
        at = end.end()
    found.append(line[at:].strip())
    return [each for each in found if each]


def plain_line(line: str) -> str:
    """Return one line without bold, links, images, HTML tags and emoji; code keeps its backticks."""
    if "](" in line:
        line = _LINK.sub(r"\1", line)
    parts = [_EMOJI.sub("", _TAG.sub("", _EMPHASIS.sub("", part))) for part in _CODE.split(line)]
    codes = [*_CODE.findall(line), ""]
    return " ".join("".join(part + code for part, code in zip(parts, codes, strict=True)).split())


def cut(text: str, width: int) -> str:
    """Cut *text* to *width* characters, at a clause where there is one late enough, never inside a word."""
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    head = text[: width + 1]
    for joint in _JOINTS:
        at = head.rfind(joint)
        # Less than six tenths of the room would say too little; then the last word is the better place.
        begin = head[: max(0, at)]
        balanced = begin.count("`") % 2 == 0 and begin.count("(") <= begin.count(")") and begin.count('"') % 2 == 0
        if at > width * 0.6 and balanced:
            return begin.rstrip(_LOOSE)
    head = text[: width - 1]
    at = head.rfind(" ")
    head = (head[:at] if at > 0 else head).rstrip(_LOOSE)
    if head.count("`") % 2:
        before = head.rpartition("`")[0]
        head = before.rstrip(_LOOSE) or head.replace("`", "")
    return f"{head}…"


def capitalised(text: str) -> str:
    """Return *text* with a capital as a sentence begins; a name of code at its head stays as it is."""
    head = text.partition(" ")[0]
    return text if _NAME.search(head) or head[:1] == "`" else text[:1].upper() + text[1:]


def stem(word: str) -> str:
    """Return *word* without its ending, where enough of it is left."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) > 3:
            return word[: -len(ending)]
    return word


def stems(text: str) -> frozenset[str]:
    """Return the words that tell what *text* is about, without their endings."""
    return frozenset(stem(term) for term in terms(text, limit=60) if not PARTICLE.match(term))


def holds(words: Collection[str], item: Collection[str], *, share: float = 0.75) -> bool:
    """Return whether *words* hold this *share* of the words of *item*."""
    return bool(item) and sum(each in words for each in item) >= share * len(item)


def names_code(text: str) -> bool:
    """Return whether *text* names a file, a function, an option or a command."""
    return bool(_CODE.search(text) or CODE_NAME.search(text))


def says_something(text: str) -> bool:
    """Return whether *text* tells anything beside names of code, commits and checks that passed."""
    without_code, codes = CODE_NAME.subn(" ", _CODE.sub(" ` ", text))
    codes += without_code.count("`")
    words = {each for each in stems(_HASH.sub(" ", without_code)) - _STEMS_OF_ROUTINE if not each.isdigit()}
    return len(words) >= max(FEWEST, min(codes, FEWEST + 1))


# Of scripts that part no words `terms` gives pairs of characters: those with Hiragana are endings and particles.
PARTICLE = lazy_pattern(r".?[\u3040-\u309f]")
FEWEST = 2  # words beside a name; beside three names or more, one further
_STEMS_OF_ROUTINE = stems(
    "commit committed amended squashed fixup rebased merged pushed lease branch main master upstream origin pull"
    " request PR review done finished complete pre hooks tests passed linted typechecked build clean green checks"
)
_HASH = lazy_pattern(r"\b(?:(?=[a-f]*\d)[0-9a-f]{7,40}|commits?)\b(?: on [\w./-]+)?")
CODE_NAME = lazy_pattern(
    r"\b[\w-]{1,60}(?:[/.][\w-]{1,60}){0,12}\.(?:[a-z][a-z0-9]{0,4})\b(?!\.)(?<!e\.g)(?<!i\.e)"  # a file
    r"|\b\w+\(\)"  # a call
    r"|\b[a-z]+[A-Z]\w+|\b[A-Z][a-z0-9]+[A-Z]\w*"  # camel case
    r"|\b[a-zA-Z]\w*_\w+"  # snake case
    r"|(?<![\w-])--?[a-z][\w-]+\b(?=[ =,.)]|$)"  # an option
    r"|\b[A-Z]{2,}_[A-Z_]+\b"
)

# Headings and labels of what is open, translated: German, Spanish, French, Italian, Portuguese and Japanese.
OPEN_TRANSLATED = (
    r"(?:noch )?offen\w*|nächste schritte|ausstehend\w*|pendientes?|por hacer|falta\w*|próximos pasos"
    r"|(?:reste )?à faire|il (?:manque|reste)(?: encore)?|prochaines étapes|da fare|a fazer"
    r"|残り\w*|残タスク|次の\w*|未完了\w*|未対応\w*"
)
_CODE = lazy_pattern(r"`[^`]{1,300}`")
_FENCED = lazy_pattern(r"^[^\S\n]*(`{3,}|~{3,})[^\n]*(?:\n(?![^\S\n]*\1)[^\n]*)*(?:\n[^\n]*)?", re.MULTILINE)
_HEADING = lazy_pattern(r"#{1,6}\s+(.*)")
_ITEM = lazy_pattern(r"^(\s*)(?:[-*+•–]|\d{1,2}[.)])\s+(.*)")
_RULE = lazy_pattern(r"[-*_=═─━—\s]{3,}$")
_BOX = lazy_pattern(r"(?:(\[[xX]\]|✅|✓|✔|☑|☒)|(?:\[[ ~-]\]|⬜|☐|⏳|🔲|🚧))\ufe0f?\s*")
_LINK = lazy_pattern(r"!?\[([^\]\n]{0,300})\]\([^()\n]{0,500}(?:\([^()\n]{0,200}\)[^()\n]{0,200})?\)")
_TAG = lazy_pattern(r"</?(?:b|i|em|strong|code|br|p|details|summary|kbd|div|span)\b[^<>]{0,200}>")
_EMPHASIS = lazy_pattern(
    r"\*\*|(?<![\w*])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])|(?<!\w)__(?=\w)|(?<=\w)__(?!\w)"
    r"|(?<!\w)_(?=[A-Za-z][^_\n]*_(?!\w))"
)
_EMOJI = lazy_pattern(r"[\U0001F000-\U0001FAFF\u2600-\u27BF\u25A0-\u25FF\u2B00-\u2BFF\ufe0f\u200d]")
_END = lazy_pattern(
    r"(?<=[^\W\d_]{2}[.!])[\"')\]”’]?\s+(?=[\"'(`“\[]?\w)"  # two letters and a stop: no initial, no "v1."
    r"|(?<=[])`'\"”’0-9A-Z][.!])\s+(?=[\"'(`“\[]?[A-Z`])"
    r"|(?<=[.!]['\"”’)\]])\s+(?=[\"'(`“\[]?[A-Z`])"
    r"|(?<=\?)[\"')\]]?\s+"
    r"|(?<=[。！？])"
)
_ABBREVIATION = lazy_pattern(
    r"(?:\b(?:e\.g|i\.e|vs|etc|cf|ca|approx|resp|incl|esp|Dr|Mr|Mrs|St|no|fig|ref|sec|a\.k\.a|bzw|usw|ggf|z\.\s?B|d\.\s?h|p\.\s?ej)\.)$"
)
_JOINTS = ("; ", " — ", " – ", ": ", ", so ", " because ", ", ", " (", " so that ", " which ", " with ", " and ")
_LOOSE = " ,;:—–-(+&/"
_NAME = lazy_pattern(r"\w[_./(]\w*|\d|[a-z][A-Z]")


def _prose_lines(markdown: str) -> Iterator[str]:
    """Yield the lines of *markdown* that are neither code nor table nor quotation."""
    for line in _FENCED.sub("", markdown[:MOST_TEXT]).splitlines():
        bare = line.strip()
        table = (bare[:1] == "|" and bare[-1:] == "|") or not bare.strip("|:- \t")
        yield "" if table or bare[:1] == ">" else line


def _is_label(line: str) -> bool:
    """Return whether a line is a heading: all bold, or short and ended by a colon."""
    bare = line.rstrip(" :")
    if len(bare) > LABEL:
        return False
    bold = bare.startswith("**") and bare.endswith("**") and bare.count("**") == 2 and bare[-3:-2] not in ".!"
    return bold or (line.rstrip("* ").endswith(":") and ". " not in line)


def _box(text: str) -> tuple[str, bool | None]:
    """Return the text of an item without its box, and whether that is ticked."""
    found = _BOX.match(text)
    return (text[found.end() :], found[1] is not None) if found else (text, None)


def is_routine(typed: str) -> bool:
    """Return whether a short prompt asks for what is done in every session: commit, push, run the tests."""
    return len(typed) <= 160 and bool(_ROUTINE.search(typed))


_ROUTINE = lazy_pattern(
    r"\b(?:comm?it(?:s|ted|ting)?|amend|squash|fixup|h?push(?:ed|ing)?|prs?|pull request|merge request|merge[ds]?"
    r"|branch|rebase|checkout|check out|back to (?:main|master)|switch to|pull (?:in )?(?:the )?latest|stash|tests?|ci"
    r"|(?:run|rerun|re-run|fix|check) (?:all )?(?:the )?(?:\w+ )?(?:suite|specs|checks|pipeline)"
    r"|lint(?:er|ing)?|format(?:ter|ting)?|type-?check|(?:re)?build|compile|start the (?:\w+ )?server|restart"
    r"|release|publish|deploy|tag|bump|version|changelog)\b",
    re.IGNORECASE,
)


def most_frequent(items: Iterable[str], *, most: int) -> list[str]:
    """Return the items that occur most often, best first."""
    counts = Counter(items)
    return sorted(counts, key=lambda each: (-counts[each], each))[:most]
