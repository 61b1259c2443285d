"""Decide who wrote a prompt: a person who typed it, somebody whose text was pasted, or a machine.

Only typed words can become a rule, so doubt always means "not typed". The steps, in order:

1. Texts that clients write in the user's name are known by how they begin.
2. Tags are parsed with nesting; what stands between them was not typed, nor what an unclosed tag leaves open.
3. The first line that looks pasted (log, code, mail, heading ...) ends the typed words; a lead-in before it stays.
4. Sentences that the session already holds, long quotations, and prose that names code all over are not typed either.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Author = Literal["typed", "mixed", "pasted", "machine"]


@dataclass(frozen=True)
class Authorship:
    """Who wrote a prompt, the part of it that a person typed, and what tells so."""

    author: Author
    typed: str
    reason: str


def authorship_of(prompt: str, *, earlier: Sequence[str] = ()) -> Authorship:
    """Return who wrote *prompt*; *earlier* are texts of this session that a person may have pasted from."""
    if INDENTED.match(prompt):
        return Authorship("pasted", "", "begins with an indented block")
    text = IMAGE.sub("", prompt.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if not text:
        return Authorship("machine", "", "no words")
    if starts := MACHINE_START.match(text):
        return Authorship("machine", "", f"begins as texts of the client do: {_shown(starts[0])}")
    if OUR_MARKER.search(text):
        return Authorship("pasted", "", "holds a marker of our own context blocks")
    if IDE_CONTEXT.match(text):
        text = text.rpartition(IDE_REQUEST)[2].strip() if IDE_REQUEST in text else ""
    outside = _outside_tags(text)
    if outside.broken and outside.machine:
        return Authorship("machine", "", f"a tag of the client is not closed: {_shown(outside.broken)}")
    if outside.command:
        return _typed_after_command(outside, earlier)
    body = outside.text.strip()
    if not body:
        by = "the client's tags" if outside.machine else "tags"
        return Authorship(
            "machine" if outside.machine else "pasted", "", f"stands between {by}: {_shown(outside.first)}"
        )
    found = _typed_part(body, earlier)
    if outside.first and found.author == "typed":
        return Authorship("mixed", found.typed, f"typed around {_shown(outside.first)}")
    return found


# --- texts that clients write ---------------------------------------------------------------------------------------


def _any(*forms: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile("|".join(forms), flags)


MACHINE_START = _any(
    r"(?:please )?implement the following plan\b",
    r"(?:exited |leaving )?plan mode\b[^\n]{0,20}\b(?:is|still|was|active|exited)\b",
    r"(?:the )?(?:user (?:has )?)?approved (?:the|this) plan\b",
    r"this session is being continued from",
    r"caveat: the messages below",
    r"\[request interrupted",
    r"(?:\w+ )?hook (?:feedback|blocking error|error)\b",
    r"(?:stop|subagentstop|pretooluse|posttooluse)\b[^\n]{0,40}\bhook\b",
    r"base directory for this skill:",
    r"# AGENTS\.md instructions\b",
    r"your task is to create a detailed summary",
    r"(?:\[|<<|\()?\s?(?:scheduled|autonomous|automatic|loop|cron)[ _-]?(?:wake[ _-]?up|loop|task|check|prompt|tick)\b",
    r"you are (?:an?|the|now) [^\n.]{0,60}\b(?:agent|assistant|subagent|expert|engineer|reviewer|model)\b",
    r"perform a web search for the query",
    r"\[system\b",
    r"system:",
    r"(?:background )?(?:task|command|agent) \S{1,80} (?:has )?(?:completed|finished|failed|was stopped)\b",
    flags=re.IGNORECASE,
)
OUR_MARKER = re.compile(
    r"--- (?:end )?foreword\b|\[(?:end )?foreword\b[^\]\n]{0,40}\]|</?foreword_context\b|</?hook_context\b",
    re.IGNORECASE,
)
INDENTED = re.compile(r"\n*(?:\t| {4})[ \t]*\S")
IMAGE = re.compile(r"\[Image(?: #?\d+|: source)?[^\]\n]{0,300}\]")  # where a client shows that a picture was added
IDE_CONTEXT = re.compile(r"#+ Context from my IDE\b")
IDE_REQUEST = "## My request for Codex:"  # its IDE plugin writes what is open in front of what was typed


# --- tags -----------------------------------------------------------------------------------------------------------

TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]{0,60})((?:\s[^<>]{0,2000})?)>")
TYPE_NAME = re.compile(r"\b[A-Z]\w{0,60}$")  # in front of `<`: a type with its parameter, such as `Vec<u8>`
TAG_LIKE = re.compile(r"<\||<<[A-Za-z]|\[/?INST\]|&lt;/?[A-Za-z]")  # doubtful forms: what follows is not typed
INLINE_CODE = re.compile(r"(?<!`)`[^`\n]{1,100}`(?!`)")
VOID = ("br", "hr", "img", "input")
COMMAND = ("command-name", "command-message", "command-args", "command-contents")
MACHINE_TAGS = re.compile(
    r"command-\w+|system[-_]\w+|current_datetime|local-command-\w+|bash-\w+|task-notification|user-prompt-submit-hook"
    r"|environment_context|(?:user_)?instructions|turn_aborted|user_shell_command|ide_\w+|persisted-output|skill"
)
# Clients invent new ones; these endings are theirs.
MACHINE_ENDING = re.compile(r"[-_](?:event|notification|reminder|hook|caveat|stdout|stderr|context|output|result)$")


@dataclass(frozen=True)
class _Outside:
    """The text outside of tags, and what the tags were."""

    text: str
    first: str = ""  # the first tag that wraps something
    broken: str = ""  # a tag that is not closed or not opened
    machine: bool = False  # whether one of the tags is the client's
    command: bool = False  # whether the client wrote out a slash command
    arguments: str = ""  # what was typed behind a slash command


def _outside_tags(text: str) -> _Outside:
    """Return what of *text* stands outside of every tag; what is left open by a broken tag stands inside."""
    masked = INLINE_CODE.sub(lambda found: "`" + " " * (len(found[0]) - 2) + "`", text)
    stack: list[str] = []
    kept: list[str] = []
    names: list[str] = []
    first = broken = arguments = ""
    start = at = 0
    for found in TAG.finditer(masked):
        closing, name, rest = found[1], found[2].lower(), found[3]
        if rest.rstrip().endswith("/") or name in VOID:
            continue
        if not closing and TYPE_NAME.search(masked, max(0, found.start() - 61), found.start()):
            continue
        names.append(name)
        first = first or found[0]
        if not closing:
            if not stack:
                kept.append(text[at : found.start()])
                start = found.end()
            stack.append(name)
        elif name in stack:
            while stack.pop() != name:
                pass
            at = found.end()
            if not stack and name == "command-args":
                arguments = text[start : found.start()]
        elif not stack:  # closes what nobody opened: all before may belong to it
            broken, at = found[0], found.end()
            kept.clear()
    if stack:
        broken = f"<{stack[0]}>"
    else:
        kept.append(text[at:])
    outside = "".join(kept)
    if doubtful := TAG_LIKE.search(outside):
        before = _without_rules(outside[: doubtful.start()])
        first, broken, outside = first or doubtful[0], broken or doubtful[0], before
    machine = any(MACHINE_TAGS.fullmatch(name) or MACHINE_ENDING.search(name) for name in names)
    return _Outside(outside, first, broken, machine, any(name in COMMAND for name in names), arguments.strip())


def _typed_after_command(outside: _Outside, earlier: Sequence[str]) -> Authorship:
    """Return what was typed behind a slash command; what it was expanded to is the client's."""
    if outside.text.strip() or not outside.arguments:
        return Authorship("machine", "", "a slash command, written out by the client")
    found = authorship_of(outside.arguments, earlier=earlier)
    if found.typed:
        return Authorship("mixed", found.typed, "typed behind a slash command")
    return Authorship("machine", "", "a slash command, written out by the client")


# --- lines that were pasted -----------------------------------------------------------------------------------------

# Output, code and the like: nobody types these, so what stands before was most likely typed about them.
HARD = {
    "a code fence": _any(r"```", r"~~~"),
    "a diff": _any(r"^diff --git ", r"^index [0-9a-f]{6,}\.\.", r"^--- [ab]?/", r"^\+", r"^@@ "),
    "output of git": _any(
        r"^commit [0-9a-f]{7,40}\b",
        r"^Merge: [0-9a-f]{6,}",
        r"^On branch \S+$",
        r"^Author: .{1,80}<",
        r"^[0-9a-f]{7,12} \w+[(:]",
        r"^[*|\\/ ]{0,20}[0-9a-f]{7,12} \(",
        r"^Merge (?:pull request #\d|branch ')",
    ),
    "a stack trace": _any(
        r"^\s*Traceback \(most",
        r"^\s*File \"",
        r"^\s*at \S{1,300}(?: \(|:\d+|\))",
        r"^\s+at [\w.$<>/]{2,200}$",
        r"^\s*Caused by:",
        r"^panic: ",
        r"^goroutine \d",
        r"^thread '.{1,80}' panicked",
        r"^\s*[\w.]{0,80}(?:Error|Exception)\b(?::|$)",
        r"^During handling of the above",
        r"^Exception in thread",
    ),
    "a log": _any(
        r"^\s*\[?\d{4}[-/]\d\d[-/]\d\d[T ,]\s?\d\d:\d\d",
        r"^\s*\[?\d\d:\d\d:\d\d",
        r"^\w{3} [ \d]\d \d\d:\d\d:\d\d",
        r"^\s*\[[\w .:/#-]{1,60}\]\s",
        r"^\s*(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERR(?:OR)?|FATAL|CRITICAL|PANIC)\b[\s:\]|]",
        r"^\s*(?:FAIL(?:ED)?|PASS(?:ED)?|OK|SKIPPED)\b[\s:\]|]",
        r"^\s*(?:[Ee]rror|[Ww]arning|fatal|note|hint|info|debug|HINT|DETAIL|help)(?:\[\w{1,20}\])?: ",
        r"^npm (?:ERR!|error|warn)",
        r"\blevel=(?:info|warn|error|debug)",
        r"^\s*\d+:\d+\s+(?:error|warning)",
        r"^\s*[✓✗✖⨯✔×●✘❯│├└╭╰⚠❌✅]",
        r"^E\s{2,}",
        r"^={4,}",
        r"^(?:stdout|stderr|exit code|exited with)\b\s*[:\d]",
        r"^[\w-]{1,40} +\| ",
    ),
    "a shell session": _any(
        r"^[$%#] [a-z./]\S*",
        r"^[\w.-]{1,40}@[\w.-]{1,40}[ :][^%$#]{0,80}[%$#] ",
        r"^>>> ",
        r"^\(\w{1,40}\) [$%] ",
        r"^PS [A-Z]:",
        r"^> \S+@\d",
    ),
    "code": _any(
        r"^(?:import|from) [\w./{@\"'*]+(?: import .*| from .*|;|$)",
        r"^(?:async )?(?:def|func|fn|function) \w+\s?[(<]",
        r"^(?:export |public |private |static |pub )+(?:\w+ ){0,3}\w+\s?[({=<]",
        r"^(?:const|let|var) \w+ ?[:=]",
        r"^class \w+[^.]{0,80}[:{]$",
        r"^(?:#include|#!/|//|/\*|\*/|<!--|-- [A-Z])",
        r"^(?:TODO|FIXME|XXX)\b\s?[(:]",
        r"^(?:if|for|while|switch) ?\(.*\)\s*\{?$",
        r"^[}\])]+[;,)]*$",
        r"\w\(.{0,200}\)\s?[{;]$",
        r"(?:\s\{|;|=>)$",
    ),
    "data": _any(
        r"^\s*[{\[]\s*$",
        r"^\s*[{\[][{\[\"]",
        r"^\s*\"[\w .$-]{1,60}\"\s*:",
        r"^\|.*\|\s*$",
        r"^[A-Z][A-Z0-9_]{3,60}=\S",
    ),
    "an indented block": _any(r"^\t+\S", r"^ {4,}\S"),
    "a cut": _any(r"\[\d+ characters left out\]", r"\[Pasted text", r"^\[\.\.\.\]"),
}
# Documents of others: what stands before may be their first paragraph.
SOFT = {
    "a quotation": _any(r"^\s{0,3}>\s?\S"),
    "a heading": _any(
        r"^\s{0,3}#{1,6}\s+\S",
        r"^\s*(?:\*\*|__)[^*_\n]{1,80}(?:\*\*|__):?\s*$",
        r"^(?:---|===|\*\*\*|___|###)",
        r"^(?:={1,5}|h[1-6]\.) \S",
    ),
    "bold mark-up": _any(r"\*\*[^*\n]{2,200}\*\*", r"!\[[^\]\n]{0,100}\]\(", r"^\s*[-*] \[[ xX]\] "),
    "a mail": _any(
        r"^\s*(?:From|To|Cc|Bcc|Subject|Sent|Date|Reply-To|Message-ID|Von|An|Betreff|Objet|De)\s?: \S",
        r"^.{5,120}\bwrote:\s*$",
        r"^(?:Hi|Hello|Dear|Hey|Hallo|Bonjour|Good (?:morning|afternoon))\b[^.?!\n]{0,40},\s*$",
        r"^--\s?$",
        r"^Sent from my ",
    ),
    "a trailer of a commit": _any(
        r"^(?:Signed-off-by|Co-authored-by|Reviewed-by|Change-Id|Fixes|Closes|BREAKING CHANGE): ?\S"
    ),
    "a review": _any(
        r"^\s*(?:[-*] )?(?:nit(?:pick)?|suggestion|issue|praise|blocking|blocker|minor|major|critical|polish|typo)"
        r"(?:\s?\([^)\n]{1,40}\))?\s?: ",
        r"^Suggested (?:change|fix)",
        r"^(?:@\w[\w-]*|\w[\w-]*\[bot\])\s?(?::|commented|left|requested|approved|reviewed)",
        r"^\w[\w-]{0,40} (?:commented on|commented \d|requested changes|left a comment|approved these|reviewed \d)",
        r"^(?:In )?`?[\w./-]{1,120}\.\w{1,5}`?:\d+",
        r"^Comment on lines? ",
        r"^[_*\s]*[⚠🟠🔴🟡🛠📝💡🤖🧹]",
    ),
    "an advisory": _any(
        r"^\s*(?:CVE-\d{4}|GHSA-\w|CWE-\d|CVSS)",
        r"^\s*Severity\s?:",
        r"^\s*(?:Affected|Patched|Vulnerable) (?:versions?|packages?)\b",
        flags=re.IGNORECASE,
    ),
    "an issue": _any(
        r"^\s*Describe the (?:bug|issue)",
        r"^\s*(?:Steps|How) to reproduce",
        r"^\s*To reproduce",
        r"^\s*(?:Expected|Actual|Current|Desired) (?:behaviou?r|result|outcome)",
        r"^\s*(?:Acceptance criteria|Definition of done|Additional context|User story)",
        r"^\s*(?:Environment\s*:|Version\s*:\s*v?\d|Issue #?\d+|(?:Feature|Bug) (?:request|report)\b)",
        r"^\s*As an? [\w ]{2,40}, I want",
        flags=re.IGNORECASE,
    ),
    "a message of a chat": _any(
        r"^\W{0,3}(?:user|assistant|human|ai|bot|system|developer|claude|agent|model|chatgpt|gpt[\w.-]*)\W{0,4}:",
        r"(?:^|\W|\\n)(?:human|assistant):\s",
        r"^[A-Z]\w+(?: [A-Z]\w+)?,?\s+\[?\d{1,2}:\d\d(?: ?[AP]M)?\]?",
        r"^\[?\d{1,2}:\d\d(?: ?[AP]M)?\]?(?:$| [A-Z])",
        flags=re.IGNORECASE,
    ),
    "typeset text": _any(r"^\s*[•▪◦–—]\s", r"^[\"“«][^\"”»\n]{20,}[\"”»]?\s*(?:[-–—]|$)"),
}
SIGN_OFF = _any(
    r"^[ \t]*(?:(?:best|kind|warm|many) )?(?:regards|wishes|greetings|thanks|cheers|sincerely|best|mfg)[,.!]?[ \t]*$",
    r"^Sent from my ",
    r"^(?:Signed-off-by|Co-authored-by): ",
    flags=re.IGNORECASE | re.MULTILINE,
)
FIELD = re.compile(r"^\w[\w /-]{0,24}:(?: \S|$)")  # `Severity: high`; two in a row are a form that nobody types
LIST_ITEM = re.compile(r"^\s{0,3}(?:[-*+]|\d{1,2}[.)])\s+\S")
TITLE = re.compile(r"^[A-Z][\w'/&()-]*(?: [\w'/&()-]+){0,5}$")
# Words that turn a sentence into a rule: where it is doubtful who wrote a line, these decide against the user.
STANDING = re.compile(
    r"\b(?:always|never|must|should|shall|do not|don'?t|make sure|ensure|only|every|whenever|remember|from now on"
    r"|prefer|avoid|required?|forbidden|not allowed|by default)\b",
    re.IGNORECASE,
)
MOST_LINES, MOST_TYPED = 200, 12_000  # lines and characters; the longest dictated prompt has 2,500 in one line
LEAD_LINE = 160  # characters of a line right above a paste; longer ones are its first line
LEAD_PARAGRAPH = 700  # characters of a paragraph in front of a paste; the longest real ones have 500
LIST_ITEMS, ITEM = 8, 200  # what people type as a list; longer lists come from documents
CODE_PROSE = 400  # characters from which prose is tested for names of code
CODE_SHARE = 1 / 15  # names of code per word: typed prose has up to 0.05, generated task texts 0.07 and more
CODE = re.compile(
    r"`[^`\n]{1,200}`|[\w.)-]{1,60}/[\w.][\w./-]*|\b\w+\([^)\n]{0,80}\)|\b[a-z]+[A-Z]\w*|\b\w+_\w+|\b\w+\.[a-z]{1,4}\b"
)
TYPOGRAPHY = re.compile(r"[—→←⇒•“”]")  # keyboards have no keys for them
TYPOGRAPHY_FROM = 200  # characters; shorter prompts may owe a dash to a phone's keyboard
ADDRESS = re.compile(r"https?://\S+")


def _typed_part(body: str, earlier: Sequence[str]) -> Authorship:
    """Return who wrote *body*, which holds no tags."""
    lines = body.split("\n")
    number, sign, hard = _first_pasted(lines[:MOST_LINES])
    if not sign and (len(lines) > MOST_LINES or len(body) > MOST_TYPED):
        return Authorship("pasted", "", "longer than what people type")
    if SIGN_OFF.search(body) and len(lines) > 2:
        number, sign, hard = _before_mail(lines, number), "a mail", False
    if sign == ANNOUNCED and (lead := _prose("\n".join(lines[:number]).strip())).typed:
        found = _not_repeated(Authorship("mixed", lead.typed, f"typed before {sign}"), earlier)
    elif sign:
        typed = _lead_in(lines, number, hard=hard)
        rest = Authorship("mixed", typed, f"a typed lead-in before {sign}")
        found = _not_repeated(rest, earlier) if typed else Authorship("pasted", "", f"holds {sign}")
    else:
        found = _not_repeated(_prose(body), earlier)
    return _without_quotations(found)


def _first_pasted(lines: list[str]) -> tuple[int, str, bool]:
    """Return the number of the first line that was pasted, what tells so, and whether it is output or code."""
    items = 0
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        for signs, hard in ((HARD, True), (SOFT, False)):
            for sign, pattern in signs.items():
                if pattern.search(line[:LONGEST]):
                    return number, sign, hard
        if LIST_ITEM.match(line):
            items += 1
            if items > LIST_ITEMS or len(line) > ITEM or "—" in line:
                return _list_start(lines, number), "a long list", False
        after = lines[number + 1] if number + 1 < len(lines) else ""
        if FIELD.match(line) and FIELD.match(after):
            return number, "a form", False
        if number and TITLE.match(line.strip()) and len(after) > TITLE_BODY and after[:1].isupper():
            return number, "a document with titles", False
        if _announces(lines, number):
            return number + 1, ANNOUNCED, False
    return len(lines), "", False


ANNOUNCED = "a text announced by a colon"
LONGEST = 2_000  # characters of a line that are looked at
TITLE_BODY = 60  # characters of the line below a title


def _announces(lines: list[str], number: int) -> bool:
    """Return whether a line ends with a colon and a text of somebody else follows."""
    if not lines[number].rstrip().endswith(":"):
        return False
    after = next((line for line in lines[number + 1 :] if line.strip()), "")
    if LIST_ITEM.match(after):
        return False
    # Who goes on typing below a colon, as below a picture, begins in small letters.
    return bool(after) and not (after[:1].islower() and len(after) < LEAD_LINE)


def _list_start(lines: list[str], number: int) -> int:
    while number and (LIST_ITEM.match(lines[number - 1]) or not lines[number - 1].strip()):
        number -= 1
    return number


def _before_mail(lines: list[str], number: int) -> int:
    """Return where a mail begins: at its header, or behind a first line that announces it."""
    first = next((at for at, line in enumerate(lines) if line.rstrip().endswith(":")), -1)
    return min(number, first + 1)


def _lead_in(lines: list[str], number: int, *, hard: bool) -> str:
    """Return what a person typed in front of a paste that begins at line *number*."""
    inline = ""
    if (
        number < len(lines)
        and (fence := HARD["a code fence"].search(lines[number]))
        and not LIST_ITEM.match(lines[number])
    ):
        inline = lines[number][: fence.start()].strip()
    if inline:
        lines, number = [*lines[:number], inline, ""], number + 1
    paragraphs = [each.strip() for each in "\n".join(lines[:number]).split("\n\n") if each.strip()]
    if not paragraphs or len(paragraphs) > (2 if hard else 1) or any(len(each) > LEAD_PARAGRAPH for each in paragraphs):
        return ""
    if any(LIST_ITEM.match(line) for line in lines[:number]):
        return ""
    last = paragraphs[-1]
    if number < len(lines) and lines[number - 1].strip() and not inline:  # the paste begins right below
        above, _, line = last.rpartition("\n")
        line = _before_output(line)
        paragraphs[-1] = "" if above else line
    typed = "\n\n".join(each for each in paragraphs if each)
    if not typed.endswith((":", "?")):
        typed = _without_rules(typed)  # a rule in front of a document is part of it, for all we know
    return "" if TITLE.match(typed) and not hard else typed


def _without_rules(text: str) -> str:
    """Return *text* without the sentences that sound like rules."""
    if not STANDING.search(text):
        return text
    return " ".join(each for each in SENTENCE_END.split(text) if not STANDING.search(each)).strip()


def _before_output(line: str) -> str:
    """Return the typed beginning of a line in which output begins: up to a colon, a question mark or a bracket."""
    line = INLINE_OUTPUT.split(line)[0].rstrip()
    found = re.match(r"[^:?\n]{3,400}[:?](?=\s|$)", line)
    if found and ADDRESS.search(found[0]) is None:
        return found[0]
    return line if len(line) <= LEAD_LINE else ""


INLINE_OUTPUT = re.compile(r"\s(?=\[[\w:. /-]{1,40}\]\s|\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d)")


def _prose(body: str) -> Authorship:
    """Return who wrote a text in which no line looks pasted."""
    plain = ADDRESS.sub("", body)
    if len(plain) >= TYPOGRAPHY_FROM and (sign := TYPOGRAPHY.search(plain)):
        return Authorship("pasted", "", f"typeset: holds {sign[0]}")
    words = len(plain.split())
    if len(plain) >= CODE_PROSE and len(CODE.findall(plain)) >= CODE_SHARE * words:
        return Authorship("machine", "", "names code throughout, as generated task texts do")
    return Authorship("typed", body, "plain words without mark-up")


SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
REPEATED = 6  # words in a row that also stand in an earlier text; fewer are idioms


def _not_repeated(found: Authorship, earlier: Sequence[str]) -> Authorship:
    """Return the same without what an earlier text of the session holds, and without what follows it."""
    if not found.typed or not earlier:
        return found
    held = [_flat(each) for each in earlier]
    at = 0
    for sentence in SENTENCE_END.split(found.typed):
        begin = found.typed.index(sentence, at)
        at = begin + len(sentence)
        flat = _flat(sentence)
        if flat.count(" ") > REPEATED and any(flat in text for text in held):
            typed = found.typed[:begin].strip()
            if typed:
                return Authorship("mixed", typed, f"repeats this session from here on: {_shown(sentence)}")
            return Authorship("pasted", "", f"repeats this session: {_shown(sentence)}")
    return found


@lru_cache(maxsize=256)
def _flat(text: str) -> str:
    """Return the words of *text* in small letters, with one space around each."""
    return f" {' '.join(re.findall(r'[a-z0-9]+', text.lower()))} "


QUOTATION = re.compile(
    r"(?<!\w)(?:\"([^\"\n]{8,2000})\"|[“«]([^”»\n]{8,2000})[”»]|'([^'\n]{8,2000})'|`([^`\n]{8,2000})`)(?!\w)"
)
QUOTED = 8  # words; shorter ones are names and labels
QUOTED_RULE = 4  # words, where they sound like a rule
REPORTED = re.compile(r"\b(?:says|said|states|reads|wrote|writes|told me|tells me|answered|replied)\s?:\s")


def _without_quotations(found: Authorship) -> Authorship:
    """Return the same with quotations left out, each marked by its ellipsis, and without reported speech."""
    if not found.typed:
        return found
    typed = QUOTATION.sub(
        lambda quote: quote[0][0] + "[…]" + quote[0][-1] if _is_quotation(quote[0]) else quote[0], found.typed
    )
    if reported := REPORTED.search(typed):
        typed = typed[: reported.end()].rstrip()
    if typed == found.typed:
        return found
    if not re.search(r"\w{2}", typed.replace("[…]", "")):
        return Authorship("pasted", "", "a quotation")
    return Authorship("mixed", typed, found.reason if found.author == "mixed" else "typed around a quotation")


def _is_quotation(quote: str) -> bool:
    words = len(quote.split())
    return words >= QUOTED or (words >= QUOTED_RULE and bool(STANDING.search(quote)))


def _shown(text: str) -> str:
    """Return the beginning of *text* in one line, for a reason."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 40 else f"{flat[:39]}…"
