"""Decide who wrote a prompt: a person who typed it, somebody whose text was pasted, or a machine.

Only what is wholly typed can become a rule, so every doubt counts against it:

1. Texts that clients write in the user's name are known by how they begin.
2. Wrappers that are closed properly are taken out, innermost first. A tag that is left over ends the typed words.
3. The first thing that nobody types (a log line, code, a mail header, mark-up ...) ends them too; its lead-in stays.
4. What is left is typed if it is one line of plain words, or a few sentences below each other. A blank line, a
   quotation, a label or a wrapper beside it make it mixed: the words stay the user's, and no rule is made of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from foreword.terms import lazy_pattern

Author = Literal["typed", "mixed", "pasted", "machine"]


class Authorship(NamedTuple):
    """Who wrote a prompt, the part of it that a person typed, and what tells so."""

    author: Author  # rules are made of `typed` prompts alone
    typed: str
    reason: str


MOST_TYPED = 12_000  # characters; the longest dictated prompt has 2,500
LEAD_IN = 700  # characters in front of a paste; the longest real ones have 500
REPEATED = 6  # words in a row that also stand in an earlier text; fewer are idioms
DEEPEST = 20  # wrappers inside each other
CODE_PROSE = 400  # characters from which prose is tested for names of code
CODE_SHARE = 1 / 15  # names of code per word: typed prose has up to 0.05, generated task texts 0.07 and more
TYPESET = 200  # characters; shorter prompts may owe a dash to a phone's keyboard


def authorship_of(prompt: str, *, earlier: Sequence[str] = ()) -> Authorship:
    """Return who wrote *prompt*; *earlier* are texts of this session that a person may have pasted from."""
    text = IMAGE.sub("", "\n".join(prompt.splitlines())).strip("\n").rstrip()
    if not text.strip():
        return Authorship("machine", "", "no words")
    if start := MACHINE_START.match(text.lstrip()):
        return Authorship("machine", "", f"begins as texts of the client do: {_shown(start[0])}")
    if OUR_MARKER.search(text):
        return Authorship("pasted", "", "holds a marker of our own context blocks")
    if command := SLASH_COMMAND.match(text):
        typed = authorship_of(command[1] or "", earlier=earlier).typed
        return Authorship("mixed" if typed else "machine", typed, "a slash command, written out by the client")
    wrapper = ""
    if IDE_CONTEXT.match(text):
        text, wrapper = text.rpartition(IDE_REQUEST)[2] if IDE_REQUEST in text else "", IDE_REQUEST
    masked = NAMED_CODE.sub(lambda code: "x" * len(code[0]), text)
    for _ in range(DEEPEST):
        closed = list(WRAPPER.finditer(masked))
        if not closed:
            break
        wrapper, spans = wrapper or closed[0][0].partition(">")[0] + ">", [each.span() for each in closed]
        text, masked = _without(text, spans), _without(masked, spans)
    found = _judge(text, masked, wrapper, earlier) if text.strip() else Authorship("pasted", "", "stands inside tags")
    by_client = CLIENT_TAG.match(prompt) or wrapper == IDE_REQUEST
    return found._replace(author="machine") if by_client and not found.typed else found


def _judge(text: str, masked: str, wrapper: str, earlier: Sequence[str]) -> Authorship:
    """Return who wrote *text*, which holds no closed wrappers; *masked* is the same without inline code."""
    signs = ((match.start(), name) for name, each in SIGNS.items() if (match := each.search(masked[:MOST_TYPED])))
    at, sign = min(signs, default=(len(masked), ""))  # the first thing that nobody types
    begin, sentence = _first_repeated(text, earlier)
    if begin < at:
        at, sign = begin, f"a repetition of this session: {_shown(sentence)}"
    lead = "" if masked.startswith("</", at) else text[:at].strip()  # what an end tag ends began earlier
    if sign:
        typed = lead if len(lead) <= LEAD_IN and lead.count("\n\n") < 2 and re.search(r"\w{2}", lead) else ""
        if typed:
            return Authorship("mixed", typed, f"a typed lead-in before {sign}")
        return Authorship("pasted", "", f"holds {sign}")
    if len(lead) > MOST_TYPED:
        return Authorship("pasted", "", "longer than what people type")
    if len(lead) >= TYPESET and (found := TYPOGRAPHY.search(lead)):
        return Authorship("pasted", "", f"typeset: holds {found[0]}")
    if len(lead) >= CODE_PROSE and len(CODE.findall(ADDRESS.sub("", lead))) >= CODE_SHARE * len(lead.split()):
        return Authorship("machine", "", "names code throughout, as generated task texts do")
    if wrapper:
        return Authorship("mixed", lead, f"typed beside {_shown(wrapper)}")
    doubt = next((name for name, pattern in DOUBTS.items() if pattern.search(lead)), "")
    return Authorship("mixed", lead, f"holds {doubt}") if doubt else Authorship("typed", lead, "plain words")


def _first_repeated(text: str, earlier: Sequence[str]) -> tuple[int, str]:
    """Return where the first sentence stands that an earlier text holds too; the length of the text without one."""
    at = 0
    held = [_flat(each) for each in earlier]
    for sentence in SENTENCE_END.split(text[:MOST_TYPED]) if held else ():
        begin = text.index(sentence, at)
        at = begin + len(sentence)
        flat = _flat(sentence)
        if flat.count(" ") > REPEATED and any(flat in each for each in held):
            return begin, sentence
    return len(text), ""


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return *text* without these parts of it, each replaced by a space."""
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    return " ".join(text[begin:end] for begin, end in zip(edges[::2], edges[1::2], strict=True))


@lru_cache(maxsize=256)
def _flat(text: str) -> str:
    """Return the words of *text* in lower case, with one space around each."""
    return f" {' '.join(re.findall(r'[a-z0-9]+', text.lower()))} "


def _shown(text: str) -> str:
    """Return the beginning of *text* in one line, for a reason."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 40 else f"{flat[:39]}…"


# --- texts that clients write ---------------------------------------------------------------------------------------

MACHINE_START = lazy_pattern(
    r"(?:please )?implement the following plan\b"
    r"|(?:exited |leaving )?plan mode\b[^\n]{0,20}\b(?:is|still|was|active|exited)\b"
    r"|(?:the )?(?:user (?:has )?)?approved (?:the|this) plan\b"
    r"|this session is being continued from|caveat: the messages below|\[request interrupted"
    r"|(?:\w+ )?hook (?:feedback|blocking error|error)\b"
    r"|(?:stop|subagentstop|pretooluse|posttooluse)\b[^\n]{0,40}\bhook\b"
    r"|base directory for this skill:|# AGENTS\.md instructions\b|your task is to create a detailed summary"
    r"|(?:\[|<<|\()?\s?(?:scheduled|autonomous|automatic|loop|cron)[ _-]?(?:wake[ _-]?up|loop|task|check|prompt|tick)\b"
    r"|you are (?:an?|the|now) [^\n.]{0,60}\b(?:agent|assistant|subagent|expert|engineer|reviewer|model)\b"
    r"|perform a web search for the query|\[?system\b\s?[\]:]"
    r"|(?:background )?(?:task|command|agent) \S{1,80} (?:has )?(?:completed|finished|failed|was stopped)\b",
    re.IGNORECASE,
)
OUR_MARKER = lazy_pattern(
    r"--- (?:end )?foreword\b|\[(?:end )?foreword\b|</?(?:foreword|hook)_context\b", re.IGNORECASE
)
IMAGE = lazy_pattern(r"\[Image(?: #?\d+|: source)?[^\]\n]{0,300}\]:?")  # where a client shows that a picture was added
IDE_CONTEXT = lazy_pattern(r"\s*#+ Context from my IDE\b")
IDE_REQUEST = "## My request for Codex:"  # its IDE plugin writes what is open in front of what was typed
CLIENT_TAG = lazy_pattern(r"\s*<[A-Za-z]+[-_]")  # as clients name theirs: task-notification, environment_context
SLASH_COMMAND = lazy_pattern(
    r"\s*<command-(?:name|message)>(?:[^<]|<(?!command-args>))*(?:<command-args>([^<]*)</command-args>\s*$)?"
)

# --- what nobody types ----------------------------------------------------------------------------------------------

# Code that is named in passing, `<so>` or as `Vec<u8>`: what looks like a tag in it begins nothing.
NAMED_CODE = lazy_pattern(r"(?<!`)`[^`\n]{1,100}`(?!`)|\b[A-Z]\w{0,60}<[\w\[\], .|&]{1,60}>|<[A-Z]\w{0,60} ?/>")
WRAPPER = lazy_pattern(
    r"<([A-Za-z][\w:.-]{0,60})(?:\s[^<>]{0,2000})?>[^<]*</\1\s*>|<[A-Za-z][^<>]{0,2000}/>|<!--[^<>]{0,2000}-->"
)


def _sign(*forms: str, flags: int = 0) -> re.Pattern[str]:
    return lazy_pattern("|".join(forms), re.MULTILINE | flags)


# Nobody types these, and whatever stands behind one is not typed either.
SIGNS = {
    "a tag": _sign(r"</?[A-Za-z!%?|]", r"<<[A-Za-z]", r"\[/?INST\]", r"&(?:lt|#\d{1,6}|#x\w{1,6});"),
    "a code fence": _sign(r"```", r"~~~"),
    "an indented block": _sign(r"^(?:[^\S\n]{2,}|[^\S\n ])(?![ \t]*(?:[-*+]|\d{1,2}[.)])\s)[^\S\n]*\S"),
    "mark-up": _sign(
        r"^ {0,3}(?:#{1,6}\s|>|\||[-*+] \[[ xX]\])",
        r"\*\*\S|^__\w|!\[|^(?:---|===|\*\*\*|___)",
        r"^[ \t]*[•▪◦–—│├└╭╰✓✗✖✔✘●❯⚠❌✅]|[🟠🔴🟡🛠📝💡🤖🧹]",
    ),
    "output of git": _sign(
        r"^(?:diff --git |index [0-9a-f]{6,}\.\.|--- [ab]?/|\+|@@ |Merge(?:: | pull request| branch)|On branch \S+$)",
        r"^(?:commit [0-9a-f]{7,40}\b|Author: .{1,80}<)|^[*|\\/ ]{0,20}[0-9a-f]{7,40} [\w(]",
        r"^(?:Signed-off-by|Co-authored-by|Reviewed-by|Change-Id):",
    ),
    "a stack trace": _sign(
        r"Traceback \(most|^[ \t]*File \"|^[ \t]*at \S{1,300}(?: \(|:\d+|\))|^Caused by:",
        r"^(?:panic: |goroutine \d|thread '|Exception in )|\b\w*(?:Error|Exception): ",
    ),
    "a log": _sign(
        r"\d{4}[-/]\d\d[-/]\d\d[T ,]\s?\d\d:\d\d|(?<![\d:])\d\d:\d\d:\d\d|(?:^|\s)\[[\w.:/#-]{1,60}\] ",
        r"^(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERR(?:OR)?|FATAL|CRITICAL|FAIL(?:ED)?|PASS(?:ED)?)\b[\s:\]|]",
        r"^(?:[Ee]rror|[Ww]arning|fatal|hint|HINT|DETAIL)(?:\[\w{1,20}\])?: |^npm (?:ERR!|error|warn)",
        r"\blevel=(?:info|warn|error|debug)|^[ \t]*\d+:\d+\s+(?:error|warning)|^E\s{2,}",
        r"^[\w./-]{1,120}\.\w{1,5}:\d+|^(?:stdout|stderr|exit code)\b\s*[:\d]|^[\w-]{1,40} +\| ",
    ),
    "a shell session": _sign(
        r"^[$%#] [a-z./]\S*|^[\w.-]{1,40}@[\w.-]{1,40}[ :][^%$#\n]{0,80}[%$#] |^>>> ",
    ),
    "code": _sign(
        r"^(?:import|from) [\w./{@\"'*]+(?: import .*| from .*|;|$)|^(?:async )?(?:def|func|fn|function) \w+\s?[(<]",
        r"^(?:const|let|var) \w+ ?[:=]|^(?:#include|#!/|//|/\*|-- [A-Z])|^(?:TODO|FIXME|XXX)\b\s?[(:]",
        r"(?:\s\{|;|=>)$|^[}\])]+[;,)]*$|\w\(.{0,200}\)\s?[{;]$",
    ),
    "data": _sign(r"^[ \t]*[{\[](?:[ \t]*$|[{\[\"])|^[ \t]*\"[\w .$-]{1,60}\"\s*:|^[A-Z][A-Z0-9_]{3,60}=\S"),
    "a mail": _sign(
        r"^[ \t]*(?:From|To|Cc|Subject|Sent|Date|Reply-To|Von|An|Betreff|Objet|De)\s?: \S|\bwrote:[ \t]*$|^--\s?$",
        r"^(?:Hi|Hello|Dear|Hey|Hallo|Bonjour|Good (?:morning|afternoon))\b[^.?!\n]{0,40},[ \t]*$",
        r"^[ \t]*(?:(?:best|kind|warm|many) )?(?:regards|wishes|thanks|cheers|sincerely|mfg)[,.!]?[ \t]*\n",
        flags=re.IGNORECASE,
    ),
    "a message of a chat": _sign(
        r"^\W{0,3}(?:user|assistant|human|ai|bot|developer|claude|agent|model|chatgpt|gpt[\w.-]*)\W{0,4}:",
        r"\b(?:human|assistant):\s|^\[?(?:[A-Z][\w ]{1,40},?\s+)?\[?\d{1,2}:\d\d(?: ?[AP]M)?\]?(?:$| [A-Z])",
        flags=re.IGNORECASE,
    ),
    "a form": _sign(r"^\w[\w /-]{0,24}:(?: .*)?\n\w[\w /-]{0,24}:(?: |$)"),
    "a document with titles": _sign(r"(?<=\n)[A-Z][\w'/&()-]*(?: [\w'/&()-]+){0,5}\n+[A-Z].{60}"),
    "a long list": _sign(r"(?:^[ \t]*(?:[-*+]|\d{1,2}[.)])\s.*\n+){8}|^[ \t]*(?:[-*+]|\d{1,2}[.)])\s.{200}"),
    "a text announced by a colon": _sign(r"(?<=:\n)\n*(?![-*+\s\d])(?:[^a-z\s].*|.{160})"),
    "a cut": _sign(r"\[\d+ characters left out\]|\[Pasted text|^\[\.\.\.\]"),
}
TYPOGRAPHY = lazy_pattern(r"[—→←⇒•“”]")  # keyboards have no keys for them
_LINE = r"(?:(?:[-*+]|\d{1,2}[.)]) .*|\S+(?: +\S+){5,}[.?!:])"  # an item, or a sentence of six words and more
# What may be somebody else's words: they stay the user's, and no rule is made of them.
DOUBTS = {
    "lines that are no sentences": lazy_pattern(rf"\A(?=.*\n)(?!{_LINE}(?:\n{_LINE})*\Z)"),
    "a quotation": lazy_pattern(
        r"(?<!\w)[\"'`“«„‘‹「『](?>(?:[^\"'`”»’“«„‘\s]++ ++){3,})[^\"'`”»’“«„‘]*+[\"'`”»’›」』]"
    ),
    "a beginning that is no word": lazy_pattern(r"^[^\w\"'`/]|^\w{1,2}[.)]\s"),
    "a label": lazy_pattern(r"^[^\s:]+(?: [^\s:]+){0,2}: |: (?!I\b)[\"“A-Z]"),
    "reported words": lazy_pattern(
        r"\b(?:says|said|reads|states|wrote|writes|printed)(?:: |,? [A-HJ-Z]| (?:you|that|to|never|always|all) )|\bme: "
    ),
    "a greeting or a signature": lazy_pattern(
        r"^(?:hi|hello|hey|dear) [\w ]{1,30}, [A-Z]|\b(?:regards|cheers|sincerely|thanks)[,!.]* \w+$|-- ?\w+$",
        re.IGNORECASE,
    ),
    "typeset characters": TYPOGRAPHY,
    "what may be a tag": lazy_pattern(r"<[A-Za-z/!]"),
    "words in brackets": lazy_pattern(r"\(\w+(?: [^\s()]+){3,}\)"),
    "a mark of where a text begins or ends": lazy_pattern(r"\b(?:BEGIN|END|STDOUT|STDERR|OUTPUT)\b"),
}
CODE = lazy_pattern(
    r"`[^`\n]{1,200}`|[\w.)-]{1,60}/[\w.][\w./-]*|\b\w+\([^)\n]{0,80}\)|\b[a-z]+[A-Z]\w*|\b\w+_\w+|\b\w+\.[a-z]{1,4}\b"
)
ADDRESS = lazy_pattern(r"https?://\S+")
SENTENCE_END = lazy_pattern(r"(?<=[.!?])\s+|\n+")
