"""Find what the user laid down: standing rules, corrections, decisions and facts, in the user's own words.

Three sources, all of the user: typed prompts, answers to the agent's questions, and short replies that choose one of
the options in the agent's last message. A sentence counts where its form says that it holds beyond the task at hand.
Better no rule than a false one: what only looks like a rule stays in its turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from foreword.extract.actions import Choice, Turn
from foreword.extract.authorship import authorship_of
from foreword.extract.text import cut, plain_line
from foreword.extract.voice import is_own_voice, reported_words
from foreword.terms import root, terms

Kind = Literal["preference", "correction", "decision", "learning"]


@dataclass(frozen=True)
class Statement:
    """One thing that the user laid down."""

    kind: Kind
    text: str  # the user's sentence, or the question and its answer; stands alone
    at: float
    turn: int
    why: str = ""  # the reason, where one is known
    instead_of: str = ""  # what the user does not want
    quote: str = ""  # the words as typed or chosen, where `text` has more or less
    confidence: float = 0.7


def statements_of(turns: Sequence[Turn]) -> tuple[Statement, ...]:
    """Return the statements of one session in their order, each once."""
    found: dict[str, Statement] = {}
    answer = ""
    for turn in turns:
        # A prompt that holds anything but typed words lays down nothing, nor does one that tells what others said.
        own = turn.author.author == "typed" and not reported_words(turn.typed)
        typed = (*_from_reply(turn, answer), *_from_typed(turn)) if own else ()
        for each in (*typed, *_from_choices(turn)):
            found.setdefault(each.text.lower(), each)
        answer = turn.answer or answer
    return tuple(found.values())


def retracts(later: Statement, earlier_text: str) -> bool:
    """Return whether *later* takes back what *earlier_text* states."""
    if _same(later.text, earlier_text):
        return False
    new, old, unwanted = _content(later.text), _content(earlier_text), _content(later.instead_of)
    if unwanted and len(unwanted & old) * 2 > len(unwanted):
        return True
    shared = len(new & old)
    if shared < LEAST_SHARED:
        return False
    question, _, _ = later.text.partition("? ")
    if question != later.text and earlier_text.startswith(f"{question}? "):
        return True  # the same question, answered differently
    if shared < SHARED * min(len(new), len(old)):
        return False
    return bool(WITHDRAWN.search(later.text)) or bool(NEGATED.search(later.text)) != bool(NEGATED.search(earlier_text))


LEAST_SHARED = 2  # words; one is no topic
SHARED = 0.5  # of the shorter one's words: below, two rules on one topic look like a contradiction
NEGATED = re.compile(r"\b(?:not|never|no|none|without|avoid|stop|\w+n'?t)\b", re.IGNORECASE)
WITHDRAWN = re.compile(
    r"\b(?:no longer|any ?more|forget|scrap|drop|withdraw|changed my mind|after all|wrong|back to)\b", re.IGNORECASE
)


def _content(text: str) -> set[str]:
    return {root(term.rstrip("*")) for term in terms(text)}


def _same(one: str, other: str) -> bool:
    return _content(one) == _content(other) and bool(NEGATED.search(one)) == bool(NEGATED.search(other))


# --- typed sentences ------------------------------------------------------------------------------------------------


def _any(*forms: str) -> re.Pattern[str]:
    return re.compile("|".join(forms), re.IGNORECASE)


@dataclass(frozen=True)
class _Cue:
    """A form of words that states something lasting."""

    kind: Kind
    confidence: float
    form: re.Pattern[str]
    unless: re.Pattern[str] | None = None  # the same form in a report or in a step of the work at hand
    question: bool = False  # whether it counts in a question


_NEG = r"(?:do not|don'?t|dont)"
REMEMBER = _any(  # an explicit wish to be remembered
    r"(?:^|\b(?:please|and|also|to|must|should|just) |, )(?:remember|keep in mind)\b(?! (?:when|how|if|me)\b)",
    r"\bmemori[sz]e\b|\bfrom now on\b|\bgoing forward\b|\b(?:in|for) (?:the |all )?future sessions?\b",
    r"\bnext time(?:,| (?:please|you|do)\b)",
    r"\b(?:can|could|would) (?:you|we) (?:please )?always\b",
    r"\bwhenever (?!I\b)[^.]*\b(?:should|must|needs? to|always|please|add|update|run|use)\b",
    # German, French, Spanish and Japanese
    r"\bmerk(?:e|t)? (?:dir|euch)\b|\bab (?:jetzt|sofort) (?:bitte|immer|nie|nur|keine)\b",
    r"\b(?:dorénavant|désormais),? (?:\w+ )?(?:toujours|jamais|ne|que)\b|(?:^|\bet |, )(?:retiens|souviens-toi)\b",
    r"(?:^|\by |, )recuerda\b(?! (?:cuando|si|cómo)\b)",
    r"\b(?:a partir de ahora|de ahora en adelante),? (?:\w+ )?(?:siempre|nunca|no|usa)\b",
    r"(?:今後|必ず|絶対に)[^。]{0,60}(?:ください|下さい|(?:使わ|し)ないで)|覚えておいて",
)
WHY = _any(  # questions that correct: why it was done so, why not otherwise
    r"\bwhy (?:are|were|do|did) (?:you|we) (?:still|even|again|not|always|keep|using)\b|\bwhy would (?:you|we)\b",
    r"\bwhy (?:aren'?t|don'?t|didn'?t|wouldn'?t|shouldn'?t) ?(?:you|we)\b|\bwhy not (?:just|simply|use)\b",
    r"^(?:shouldn'?t|can'?t) (?:this|we|it|the|that|you|these|those)\b|\bwouldn'?t it be\b",
    r"\bshould (?:it|this|that|these|we) not\b",
)
ALWAYS = _any(
    r"\b(?:should|must|may|can|will|need to|have to|is|are|it'?s|we|you) (?:\w+ ){0,2}?(?:never|always)\b",
    r"^(?:never|always)\b|(?:,|\band|\bbut|\bor) (?:never|always) \w+|\bnot\b[^.]{0,40} ever\b|\bnot allowed\b",
    rf"(?<!\bI ){_NEG} ever \w+|\bnothing (?:in|under) \S+ (?:may|must|should)\b",
)
REPORT = _any(  # of what it always does
    r"\balways (?:\w+ing|\w+ed|shown|null|empty|wrong|true|false|zero|the same)\b|\bfails?\b|\bcrash",
    r"\bI(?:'ve| have)? (?:never|always)\b|\b(?:is|are|was|were|it) never \w+(?:ed|wn|nt|en|un)\b",
)
TASTE = _any(
    r"\bI(?:'d| would)? (?:\w+ly |much )?(?:prefer|favou?r|rather)\b|\b(?:better|best) (?:not )?to\b",
    r"\bwhere(?:ver)? possible\b|^(?:use|keep|write|name)\b[^.?!]*\beverywhere\b",
    r"\b(?:use|show|apply|enable|display|allow)\b[^.]*\bonly (?:on|in|for|when)\b",
)
WISH = _any(  # for the thing that is built; `I want a page` and `I want you to` are tasks
    rf"\bI (?:(?:only|really|actually|{_NEG}) ){{0,2}}(?:want|would like) (?:to (?:use|keep|avoid|stick|only)\b"
    r"|(?!to\b|you\b|an?\b|some\b|another\b|your\b|more\b|it\b|us\b|this\b))",
    r"\bI would (?:only|call)\b|\bI(?:'d| would) expect\b(?!.* but )|\binstead of\b|\brather than\b",
)
PROHIBITION = _any(  # with a reason or a general object
    rf"(?<!\bI )\b(?:{_NEG}|stop) \w+\b[^.]*"
    r"\b(?:every time|ever|directly|anymore|because|since|as (?:that|this|it)|but only)\b"
)
GATE = _any(rf"\b{_NEG} (?:you|we|know|think|have|need|worry|change|touch|commit|push)\b|^(?:if|when|they|users?)\b")
BEHAVIOUR = _any(  # of the thing that is built
    r"(?<!\bwe)(?<!\bI)(?<!\bthere)(?<!\byou) (?:should|must) (?:not|only|be|live|appear|display|follow|branch|stay)\b",
    r"\bwe (?:should|must) (?:not|only|have)\b",
)
TASK = _any(
    r"\b(?:should|must) be (?:addressed|done|fixed|added|updated|checked|reviewed|removed|changed|merged|handled"
    r"|working|enough|fine|ok|okay|good|able|easy|possible|there|ready|safe|clear|simple)\b",
    r"\bbut (?:it|is|are|I|now)\b|\bseems?\b",
)
# A purpose or a second step of the task that the sentence begins with: `export all of it, I want the totals`.
STEP = _any(
    r"^(?!(?:in|on|at|for|from|with|to|of|if|as|by|not|we|i|like|since|because|instead|when|wherever)\b)"
    r"\w+ (?:all|the|an?|it|this|that|these|those)\b.*(?:,| and)(?: so| then)? (?:I (?:only |really )?want|let'?s)\b"
)
AGREED = _any(
    r"\blet'?s (?:only|use|stick|avoid|keep (?!going|it\b)|not (?!worry))",
    r"\b(?:let'?s|we'?ll|we will) (?!see\b|check\b|look\b|try\b|go\b|wait\b)\w+ [^.?!\n]{3,160}\b(?:because|since)\b",
    r"\bwe (?:store|save|keep|put|use|send|serve|host|deploy|cache|name|write) [^.?!\n]{3,160}\b(?:because|since)\b",
)
FACT = _any(
    r"\bwe (?:\w+ )?no longer\b|\b(?:does not|doesn'?t|do not) support\b|\bit'?s called\b",
    r"\b(?:isn'?t|is not|aren'?t|are not) (?:relevant|needed|necessary|supported|an option)\b",
    r"\b(?:is|are) (?:at|under) (?=[~@\w.-]*[/.])",
    r"\b(?:is|are|be) (?:located|installed|stored|hosted|deployed|generated|done|documented|defined|kept)"
    r" (?:\w+ )?(?:at|in|on|under|using|by|via|with|from)\b",
)
CUES = (
    _Cue("preference", 0.9, REMEMBER, question=True),
    _Cue("correction", 0.8, WHY, question=True),
    _Cue("preference", 0.9, ALWAYS, unless=REPORT),
    _Cue("preference", 0.8, TASTE),
    _Cue("decision", 0.75, WISH, unless=STEP),
    _Cue("correction", 0.75, PROHIBITION, unless=GATE),
    _Cue("decision", 0.7, BEHAVIOUR, unless=TASK),
    _Cue("decision", 0.75, AGREED, unless=STEP),
    _Cue("learning", 0.75, FACT),
)
# Thinking aloud, reports, and steps of the work at hand.
OPEN = _any(
    r"\b(?:theoretically|the question is|my assumption|alternatively|i wonder|in theory|probably|i guess|impression)\b",
    r"\b(?:we could|could it|(?:just|not) yet|yet(?=\W*$)|i (?:still )?feel the|this time|for example)\b",
    r"^(?:validate|verify|check|make sure|mention|tell|explain|draft|translate)\b",
    r"^(?:answer|ask|reply to) (?!me\b).*\b(?:that|if|whether)\b",
    r"\b(?:mentions?|says?|states?|claims?|suggests?) (?:that|to)\b",  # what somebody else holds
)
# What only this moment explains: something that both see, a point of a list, an option on the table, a next step.
HERE = _any(
    r"\b(?:this|these|those)\b(?! (?:project|repo|repository|codebase|app|application|team|machine)\b)",
    r"\bthe (?:last|first|second|other|current|new) (?:one|page|screen|section|button|column|row|tab)s?\b",
    r"\b(?:bullet|step|item|point|option|direction|variant|phase|task) (?:#?\d+|[A-E])\b",
    r"\b(?:prefer|favou?r|like) the\b|\bin that case\b|^go ahead\b",
)
ASKS = _any(r"^(?:can|could|should|would|why|how about|what about)\b")
SENTENCE = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<!\s\d\.)\s+(?=\S)|\n+|(?<=[。！？])"
)
FILLER = re.compile(
    r"^(?:(?:https?://\S+|ok(?:ay)?|yes|yeah|yep|no|nope|sure|hm+|u+m+|a+h+|oh|well|great|perfect|thanks|good|cool|also"
    r"|btw|by the way|und|aber|et|mais|pero|y|and|but|so|then|now|actually|honestly|basically|obviously|plus|wait|right"
    r"|alright|please|pls)\b[\s,.:;!-]*)+",
    re.IGNORECASE,
)
LOOSE_END = re.compile(r"\s*[:;,-]\s*\.$")  # of a sentence whose last part was no text, such as a picture
LISTED = re.compile(r"\s*(?:[-*+]|\d{1,2}[.)])\s")
POINTS_BACK = re.compile(
    r"^(?:it|this|that|these|those|they|same)(?:'s)?\s+(?:should|must|is|are|was|can|needs?|also|will|has)\b",
    re.IGNORECASE,
)
REQUEST = re.compile(r", (?:(?:so|and|but) )?(?:can|could|would) (?:you|we)\b.*$", re.IGNORECASE)
NEXT_STEP = re.compile(r",? (?:so|and) (?:we need to|you can|can you|we can|please|then)\b.*$", re.IGNORECASE)
REASON = re.compile(r"\b(?:because|since|so that|due to|as (?:that|this|it|we|they))\b.+", re.IGNORECASE)
UNWANTED = re.compile(
    r"\b(?:instead of|rather than|and not|, not)\s+((?:(?! because| since| so that)[^,.;?!])+)", re.IGNORECASE
)
REJECTS = re.compile(r"\s*(?:no|nope)\b[\s,.:;!-]", re.IGNORECASE)
LONGEST = 280  # characters of a text; at 240, main clauses of dictated sentences are lost
MOST_READ = 1_000  # characters of a sentence; who has no full stop in a page has no rule in it
FEWEST = 4  # words of a sentence that says something
NAMES_ITSELF = 8  # words from which a sentence names what it is about
ONE_TASK = 0.65  # confidence of what is mostly about one task: it does not come by itself, unless it is repeated


def _from_typed(turn: Turn) -> Iterator[Statement]:
    """Yield what the sentences of a typed prompt lay down."""
    before = ""
    for sentence in SENTENCE.split(turn.typed):
        text = _trimmed(sentence)
        cue = None if LISTED.match(sentence) or len(sentence) > MOST_READ else _cue(text)
        if cue and (whole := _standing_alone(text, before)):
            why, unwanted = REASON.search(text), UNWANTED.search(text)
            corrects = cue.kind == "decision" and REJECTS.match(sentence)
            asks = text.endswith("?") or cue.form is WHY or ASKS.match(text)
            # Why it holds may well point to what both see; and who wants it remembered says that it is for good.
            points = cue.form is not REMEMBER and HERE.search(text, 0, why.start() if why else len(text))
            one_task = bool(corrects or asks or points)
            yield Statement(
                "correction" if corrects else cue.kind,
                whole,
                turn.began,
                turn.number,
                why=why[0] if why else "",
                instead_of=unwanted[1].strip() if unwanted else "",
                quote="" if whole == sentence.strip() else sentence.strip(),
                confidence=min(cue.confidence, ONE_TASK) if one_task else cue.confidence,
            )
        before = text


def _cue(text: str) -> _Cue | None:
    """Return the first cue of a sentence; None where it asks, thinks aloud or is about the work at hand."""
    if _size(text) < FEWEST or OPEN.search(text):
        return None
    cues = (cue for cue in CUES if cue.question or not text.endswith("?"))
    found = ((cue, cue.form.search(text)) for cue in cues if not (cue.unless and cue.unless.search(text)))
    return next((cue for cue, match in found if match and is_own_voice(text[: match.start()], match[0])), None)


def _size(text: str) -> int:
    """Return how many words a text has, or would have with spaces between them."""
    return max(len(text.split()), len(terms(text)) // 3)


def _trimmed(sentence: str) -> str:
    """Return a sentence without the words around what it states."""
    text = LOOSE_END.sub("", FILLER.sub("", " ".join(sentence.split()))).strip(" ,:;-")
    stated = REQUEST.sub("", text)  # "the price list is at docs/prices.csv, can you read it?"
    text = stated if len(stated.split()) >= FEWEST else text
    shorter = NEXT_STEP.sub("", text)
    return shorter if len(shorter.split()) >= 2 * FEWEST else text


def _standing_alone(text: str, before: str) -> str:
    """Return *text*, with the sentence *before* where it points back; empty where it cannot be read alone."""
    if len(text) > LONGEST:
        text = cut(text, LONGEST)
        return text if _cue(text) else ""
    points_back = POINTS_BACK.match(text)
    short = _size(text) < NAMES_ITSELF
    joins = points_back or (short and not before.endswith("?"))
    if joins and before and len(before) + len(text) < LONGEST:
        return f"{before} {text}"
    return "" if points_back and short else text


# --- answers to the agent's questions -------------------------------------------------------------------------------

PROCESS = _any(
    r"\b(?:more questions|next area|move (?:on )?to|would you like|do you want|want me to|which areas)\b",
    r"\b(?:shall (?:I|we)|should I|can I|may I|proceed|continue|go ahead|ready to)\b",
)
DELEGATED = _any(
    r"^(?:you decide|up to you|your (?:call|choice)|whatever|either|any of|skip|not sure|no preference)\b",
    r"^(?:it depends|later|i don'?t (?:know|care)|work on|done|next|continue|h+m+)\b",
)
RECOMMENDED = re.compile(r"\s*\(recommended\)\s*$", re.IGNORECASE)
SCOPE = _any(r"^(?:yes|yep|yeah|no|nope|ok|sure|correct|right|exactly)\b")  # agrees to a step of the work at hand
DEICTIC = _any(r"\bwhich(?: \w+)?\s*\?$", r"^(?:\w+ ){0,5}(?:it|them|this|that|these|those)\b[^?]{0,30}\?$")


def _from_choices(turn: Turn) -> Iterator[Statement]:
    """Yield the decisions in the agent's questions that the user answered."""
    for choice in turn.choices:
        answer = choice.answer.strip()
        if not answer or answer.endswith("?") or PROCESS.search(choice.question) or DELEGATED.search(answer):
            continue
        offered = answer in choice.options
        if offered and (RECOMMENDED.search(answer) or SCOPE.search(answer)):
            continue  # what the agent would have done anyway
        if not offered and (authorship_of(choice.answer).author != "typed" or reported_words(answer)):
            continue
        against = any(RECOMMENDED.search(option) for option in choice.options)
        yield Statement(
            "decision",
            _question_and_answer(choice, offered=offered),
            turn.began,
            turn.number,
            why=choice.about,
            quote=f"{choice.question} {choice.answer}",
            confidence=0.85 if against or not offered else 0.65,
        )


def _question_and_answer(choice: Choice, *, offered: bool) -> str:
    """Return the question with its answer; where that is long or says little, the answer with its description."""
    whole = f"{choice.question} {choice.answer}".strip()
    if not offered:
        return whole if len(whole) <= LONGEST else cut(choice.answer, LONGEST)
    sentences = [each for each in SENTENCE.split(choice.question.strip()) if each]
    question = sentences[-1] if sentences[-1].endswith("?") else choice.question
    if not DEICTIC.search(question) and len(question.split()) >= FEWEST:
        return f"{question} {choice.answer}"
    # Says what it is about in the sentence before, or in what the agent wrote beside the option.
    described = f"{choice.answer}: {SENTENCE.split(choice.about.strip())[0]}" if choice.about else ""
    return whole if len(sentences) > 1 and len(whole) <= LONGEST else described or whole


# --- short replies --------------------------------------------------------------------------------------------------

PICK = re.compile(
    r"(?:(?:yes|ok(?:ay)?),? )?(?:i (?:want|prefer|like|choose) |(?:let'?s )?(?:do|use|take|pick|go (?:for|with)) )?"
    r"(?:to use )?"
    r"(?:(?:option|approach|variant|alternative|proposal) #?(?P<named>\d{1,2}|[A-E])"
    r"|#?(?P<bare>\d{1,2}|[A-E])(?= (?:is|seems|does|sounds|looks|works)\b|\W*$)"
    r"|the (?P<order>first|second|third|fourth|last|former|latter)(?: (?:one|option|approach)|(?=\W*$)))\b",
    re.IGNORECASE,
)
ORDER = {"first": 0, "former": 0, "second": 1, "latter": 1, "third": 2, "fourth": 3, "last": -1}
OFFERS = _any(r"\b(?:options?|approach(?:es)?|alternatives?|ways to|either|variants?|which (?:one|do|would))\b")
OPTION = re.compile(
    r"^\s{0,3}(?:#{1,4}\s+)?(?:[-*|]\s+)?[*_]{0,2}(?:(?:Option|Approach|Variant|Alternative|Proposal)\s+)?"
    r"(?P<label>\d{1,2}|[A-E])(?:[*_]{0,2}\s?[.:)|—–-]|\s[—–-])[*_]{0,2}\s*(?P<text>\S.*)$",
    re.MULTILINE | re.IGNORECASE,
)
AGREES = _any(r"^(yes|yeah|yep|no|nope|correct|exactly|agreed)(?: please|,? thanks)?\W*$")
OFFER = _any(r"\b(?:want|like|shall|should (?:I|we)|let me|I (?:can|could|will)|or|next|now|first|sound|look)\b")
NEAR_END = 4_000  # characters at the end of the agent's message in which its options stand


def _from_reply(turn: Turn, answer: str) -> Iterator[Statement]:
    """Yield what a short reply to the agent's last message decides, in the words of that message."""
    first, shown = SENTENCE.split(turn.typed.strip())[0], answer[-NEAR_END:].strip()
    prose = "\n".join(line for line in shown.splitlines() if line[:1] != "|")  # an entry of a table is a task
    option = picked_option(first, prose) if OFFERS.search(prose) else ""
    title = re.split(r"\s[—–-]\s|\s\(|:\s|,\sor$", option)[0]
    chosen = f"Chosen: {cut(title if len(title.split()) >= FEWEST else option, LONGEST)}" if option else ""
    if text := chosen or _agreed_question(turn.typed.strip(), SENTENCE.split(shown)[-1]):
        reason = REASON.search(first)
        why = reason[0] if reason else ""
        yield Statement("decision", text, turn.began, turn.number, why=why, quote=first, confidence=0.75)


def picked_option(reply: str, shown: str) -> str:
    """Return the words of the option, or of the entry of a list or table, that *reply* names; empty for none."""
    picked = PICK.match(reply)
    if not picked:
        return ""
    options = list(OPTION.finditer(shown))
    label = (picked["named"] or picked["bare"] or "").upper()
    if label:
        chosen = next((each for each in reversed(options) if each["label"].upper() == label), None)
    else:
        place = ORDER[picked["order"].lower()]
        chosen = options[place] if -len(options) <= place < len(options) else None
    return SENTENCE.split(plain_line(chosen["text"].partition(" | ")[0]))[0] if chosen else ""


def _agreed_question(reply: str, last: str) -> str:
    """Return the question that ends the agent's message with a plain yes or no; offers to go on decide nothing."""
    agreed = AGREES.match(reply)
    if not agreed or not last.endswith("?") or PROCESS.search(last) or OFFER.search(last) or len(last) > LONGEST:
        return ""
    return f"{plain_line(last)} {agreed[1].capitalize()}"
