"""Find passwords and keys by the names beside them: `password = …`, `--token …`, `Authorization: …`, `mysql -p…`.

What counts as a value depends on the name: next to `password` all that is no placeholder, no variable and no code; next
to `secret`, `token`, `key` or `auth` only what looks random. Hence hashes and ids in ordinary places stay. Expressions
that find names run over the text in lower case; each repeat in them is possessive or bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from foreword.redact.patterns import CLASSES, WORDS, Span, end_or_rest, is_random, merge_spans
from foreword.terms import lazy_pattern

LONGEST = 4096  # characters of a value; a longer one is data
PASSWORD, SECRET, HEADER, COOKIE = "password", "secret", "authorization", "cookie"

# --- names ---

_NAME = r"[0-9a-z_.\-]"
# A name that goes on like this names something about the secret, not the secret.
_ABOUT = rf"(?![_.\-]*+(?=[a-z])(?:{'|'.join(WORDS['about'])}))"
# `pass` as a part of a name by itself: dbpass, userPass; not bypass, compass.
_PASS_ALONE = "|".join(("(?<![a-z]pass)", *(f"(?<={word}pass)" for word in WORDS["before-pass"])))
_KEY_KINDS = tuple(WORDS["before-key"])
_PASSWORD_NAMES = {
    "pass": rf"pass(?:(?:word|code|wort){_ABOUT}|wd|phrase|(?![a-z0-9]){_ABOUT}(?:{_PASS_ALONE}))",
    "pwd": rf"pwd(?<!oldpwd)(?![a-z]){_ABOUT}",
    "identified": r"identified(?: with \S{1,40})? by",
}
_SECRET_NAMES = {
    "secret": f"secret{_ABOUT}",
    "token": f"token(?<!publickeytoken){_ABOUT}(?:.(?:de|d').?acc?[eè]s{{1,2}}o?)?",
    "key": rf"key(?<=[a-z_. \-]key){_ABOUT}",
    "credential": f"credential{_ABOUT}",
    "auth": f"auth(?:(?![a-z])|(?=key|token|secret)){_ABOUT}",
    "sessid": f"sessid{_ABOUT}",
    "jsessionid": f"jsessionid{_ABOUT}",
    "connect.sid": rf"connect\.sid{_ABOUT}",
}
_FOREIGN_PASSWORDS, _FOREIGN_SECRETS = (
    {word: f"{name}{_ABOUT}" for word, _, name in (each.partition("=") for each in WORDS[f"{kind}-name"])}
    for kind in ("password", "secret")
)
_ALL_NAMES = (*_PASSWORD_NAMES, *_SECRET_NAMES, *_FOREIGN_PASSWORDS, *_FOREIGN_SECRETS)
_TELLING = lazy_pattern(
    "|".join(("pass|pwd|secret|token|key|cred|auth|cookie", *_FOREIGN_PASSWORDS, *_FOREIGN_SECRETS)), re.IGNORECASE
)

# --- what is between a name and its value ---

_REST = rf"(?P<rest>(?>(?:{_NAME}{{0,39}}[0-9a-z_])?))"  # of the name
_SPACE = r"[ \t]{0,16}+"
_GAP = r"[ \t]{1,16}+"
_QUOTE = r"(?>(?:\\{0,8}[\"'`]|&quot;)?)[\]})*]{0,2}+"
_BEGINS_QUOTED = r"(?=[bru@]?\\{0,8}[\"'`])"
_LINES = r"(?:\r?\n|\\r\\n|\\n)"
_ASSIGNED = (
    # var name string = "x", const name: &str = "x", char name[] = "x"
    rf"(?P<typed>(?:\[[0-9]{{0,6}}\]|{_SPACE}:?{_SPACE}[&*]{{0,2}}+[a-z_][0-9a-z_.<>\[\]&]{{0,40}}+){_SPACE}=(?!=)"
    rf"{_SPACE}{_BEGINS_QUOTED})"
    # <name>, name = , name ??= , name -> , name: >- with the value on the next line, name%3D
    rf"|(?P<tag>>)|{_QUOTE}{_SPACE}(?:[?.|+&-]{{0,2}}+(?P<sign>[=:]|(?<=-)>|<-)[=>:]{{0,2}}+\*{{0,2}}+|!=){_SPACE}"
    # str("x"), Secret::new("x")
    rf"(?>(?:(?:new |b)?(?:str|string|secret(?:::new|str)?|bytes|buffer\.from)?\(\s{{0,16}}+(?=[\"'`]))?)"
    rf"(?>(?:[|>][+-]?[ \t]{{0,8}}{_LINES}{_GAP})?)|%3[da]"
    # {"name": "DB_PASSWORD", "value": "x"}, <add key="password" value="x"/>, and the same as lines of YAML
    rf"|(?P<beside>{_QUOTE}(?>(?:[ \t]{{1,8}}(?!value)[a-z\-]{{1,20}}=[\"'][^\"'\n]{{0,60}}[\"']){{0,4}})"
    rf"[ \t\r\n,;\"'\\n]{{1,35}}+value{_QUOTE}{_SPACE}[=:]{_SPACE})"
    # define("name", "x"), getenv("name", "x"), ["name", "x"]; | name | x |; a field of a form; "the name is x"
    rf"|(?P<pair>\\{{0,8}}[\"'`]\s{{0,16}}+,\s{{0,16}}+(?>(?:default(?:_value)?{_SPACE}[=:]{_SPACE})?){_BEGINS_QUOTED})"
    rf"|(?P<fallback>{_QUOTE}\)?{_SPACE}(?:\|\||\?\?|\?:|or){_SPACE}{_BEGINS_QUOTED})"
    rf"|(?P<cell>[`*]{{0,2}}[ \t]{{0,16}}+\|[ \t]{{0,16}}+`?|\t{{1,4}}+)"
    rf"|(?P<form>\\{{0,8}}\"{_LINES}{{2}})"
    rf"|(?P<prose>{_GAP}(?:is:?|was:?|to|ist:?|lautet:?|è) {_SPACE})"
)
# "password for the database: x", "the password of ada is x"; the same in other languages, which need no spaces.
_WORDS_OF = r"(?: [^\W_][\w'.\-]{0,20})"
_OF = rf"|(?P<of>{_GAP}(?:for|of|on|at|to|in|für|de|zu|para){_WORDS_OF}{{1,4}}(?: is| was|:| =) {_SPACE})"
_IS = r"(?:is|[eé]s|est|ist|lautet|è|é|är|er|on|je|jest|to|es):? "
_FOREIGN_OF = (
    rf"|(?P<foreign>{_WORDS_OF}{{0,3}}(?:{_SPACE}[:=：—–]|{_GAP}{_IS}){_SPACE}"
    rf"|{_SPACE}(?:是|为|為|は|는|은)[：:]?{_SPACE}|(?<=пароль) )"
)
_IN_SQL = rf"|(?P<call>\()(?=[\"'])|(?P<sql>{_GAP}(?=[\"']))"  # PASSWORD('x'), SET PASSWORD 'x'
_DECLARED = rf"|(?P<declared>{_GAP})"  # ENV name x, set -x name x, #define name "x", (setq name "x"), :name "x"
_MARKED = r"(?=\S)(?![\"'`\\]{0,9}\[redacted:)"  # and neither nothing nor a mark of ours follows


_TYPE = r"[a-z_][0-9a-z_]{0,63} [ \t]{0,15}=(?!=)[ \t]{0,16}"  # password: str = "x"
_SIGNS = r"&()?;<>{}\[\]"  # in quotes, a key may hold these too
_LONG = (  # as a key is
    rf"(?=(?>(?:{_TYPE})?)[bru@]?\\{{0,8}}(?:(?:[\"'`]{{1,3}}+|&quot;)[{CLASSES['any']}#^*|{_SIGNS}]{{16}}|[{CLASSES['any']}#^*|]{{16}}))"
)


def _behind_names(names: dict[str, str], kind: str, between: str, word: str = "") -> list[tuple[str, str, str]]:
    return [(word or each, kind, f"{name}{_REST}(?:{between}){_MARKED}") for each, name in names.items()]


def _behind_flags(*names: str, kind: str) -> tuple[str, str, str]:
    flag = rf"-(?<!{_NAME}-){_NAME}{{0,64}}(?:{'|'.join(names)}){_REST}"
    return "-", kind, rf"{flag}(?P<flag>{_GAP}|\n{_SPACE}){_MARKED}"


# A word that must be there, the kind of the value, and what finds the place where it begins; compiled when first used.
_PLACES = (
    *_behind_names(_PASSWORD_NAMES, PASSWORD, _ASSIGNED + _OF + _IN_SQL + _DECLARED),
    *_behind_names(_FOREIGN_PASSWORDS, PASSWORD, _ASSIGNED + _FOREIGN_OF),
    *_behind_names(_FOREIGN_SECRETS, SECRET, f"(?:{_ASSIGNED}{_FOREIGN_OF}){_LONG}"),
    *_behind_names(_SECRET_NAMES, SECRET, f"(?:{_ASSIGNED}{_DECLARED}){_LONG}"),
    _behind_flags(*_PASSWORD_NAMES.values(), kind=PASSWORD),
    _behind_flags(_SECRET_NAMES["key"], kind=SECRET),
    _behind_flags(*(name for word, name in _SECRET_NAMES.items() if word != "key"), kind=SECRET),
    # machine a login b password x; requirepass x
    *_behind_names(_PASSWORD_NAMES, PASSWORD, f"(?P<login>{_GAP})", word="login "),
    ("requirepass", PASSWORD, rf"requirepass(?<!{_NAME}requirepass)(?P<rest>)(?P<flag>{_GAP}){_MARKED}"),
)
# Most flags name no secret, and those above take 3 ms to compile: first look for one that does.
_MAY_BE_FLAG = lazy_pattern(rf"-(?<!{_NAME}-){_NAME}{{0,64}}(?:{'|'.join((*_PASSWORD_NAMES, *_SECRET_NAMES))})")
_compile = cache(re.compile)
_NAME_BEGINS = lazy_pattern(r"(?>(?s:.*[^0-9a-z_.\-])?)")
# Nothing but spaces, a diff's sign, a list's dash, quotes or `export` is before it on its line.
_LINE_BEGINS = lazy_pattern(
    r"(?:(?s:.*)(?:\n|\\n)|\A)(?>(?:[\s\"'\\]++|(?:[+>#$-]|-x|export|set|env|ENV|ARG|declare)(?![^\s\"'\\]))*)\Z"
)


_CALL_BEGINS = lazy_pattern(r"(?s:.*)\w\(\s*+\\{0,8}[\"'`]\Z")  # define("…
_CELL_BEGINS = lazy_pattern(r"(?s:.*)\|[ \t*`]*+\Z")
_DECLARATION_BEGINS = lazy_pattern(
    r"(?:(?s:.*)[\n({;&]|\A)\s*+(?:(?:env|arg|setx|#[ \t]*+define|set -[a-z]+)[ \t]++|set\(|setq[ \t]++|:)\Z"
    r"|(?s:.*)[ \t({]:\Z"
)


_MARK = re.compile(r"(?<=\[redacted:)[a-z0-9-]{1,39}(?=\])")


def _lower(text: str) -> str:
    """Return *text* in lower case, and as long: of all letters a Turkish capital i alone would become two."""
    return text.replace("\u0130", "I").lower()


def find_words(text: str) -> set[str]:
    """Return the words of *text* that names of secrets hold, and the commands; no mark adds one."""
    low = _lower(text)
    return {word for word in (*_ALL_NAMES, *_OTHER_WORDS) if word in low}


def find_secrets(text: str, words: set[str]) -> list[Span]:
    """Return where such values stand, in order and without overlaps, each with what it is."""
    if not words:
        return []
    low = _lower(text)
    low = _MARK.sub(lambda found: "-" * len(found[0]), low)  # a mark is no name of a secret
    spans: list[Span] = []
    if names := words.intersection(_ALL_NAMES):
        may_be_flag = _MAY_BE_FLAG.search(low) is not None
        for word, kind, expression in _PLACES:
            if word in words or (may_be_flag and word == "-"):
                spans += _find_named(text, low, kind, _compile(expression))
        spans += _find_columns(text, low, names)
    for word, header in (("authorization", _HEADER), ("bearer", _BEARER)):
        if word in words:
            spans += _find_headers(text, low, header)
    if "cookie" in words:
        spans += _find_cookies(text, low)
    for word, flag, named in _COMMANDS:
        if word in words:
            spans += _find_flags(text, low, word, _compile(flag), named=named)
    return merge_spans(sorted(spans))


def is_secret(name: str, value: str) -> str:
    """Return the kind of secret that a field of this name holds; empty where it is nothing to hide."""
    quoted = value[:LONGEST].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    text = f'"{name[-64:]}": "{quoted[:LONGEST]}"'
    spans = find_secrets(text, find_words(text))
    return spans[0][2] if spans else ""


def is_telling(name: str) -> bool:
    """Return whether a field of this name may hold a secret."""
    return bool(_TELLING.search(name))


def _find_named(text: str, low: str, kind: str, expression: re.Pattern[str]) -> Iterator[Span]:
    at = count = 0
    in_vain: set[tuple[int, str]] = set()  # what stood around names without a secret; hostile text repeats it
    while match := expression.search(low, at):
        at = match.start("rest")  # where the word ends: the rest of the name may hold another one
        before = min(match.start(), 200)
        around = slice(match.start() - before, match.end() + 400)  # all that the answer depends on
        if (in_vain and (before, text[around]) in in_vain) or (low[at - 1] in "yd" and _is_other_word(text, low, at)):
            continue
        if span := _read_clear(text, match, kind) or _read_value(text, low, match, kind):
            count += 1
            at = end_or_rest(text, span[1], count)
            yield span[0], at, kind
        elif len(in_vain) < 1000:
            in_vain.add((before, text[around]))


def _is_other_word(text: str, low: str, at: int) -> bool:
    """Return whether the word that ends at *at* is no name of a secret: $PWD, and keys such as cache_key."""
    if low.endswith("key", 0, at):
        before = low[max(0, at - 27) : at - 3].rstrip("_-. ")
        if before.endswith(_KEY_KINDS):
            return False
        # SOME_KEY in capitals is a variable of the environment; of those, most keys are secret.
        variable = re.search("(?<![0-9A-Za-z_])[0-9A-Z_]*_KEY$", text[max(0, at - 43) : at])
        return not variable or before.endswith(("public", "primary", "foreign", "cache"))
    before = text[at - 4 : at - 3]
    return text.endswith("PWD", 0, at) and not (before.isalnum() or before == "_")


def _read_clear(text: str, match: re.Match[str], kind: str) -> Span | None:
    """Return the span of a value that needs no closer look, as most passwords and keys: letters and digits alone."""
    if match.lastgroup not in ("sign", "flag") or not (clear := _CLEAR.match(text, match.end())):
        return None
    start, end = clear.span(clear.lastindex or 0)
    value = text[start:end]
    if kind == SECRET:
        return (start, end, kind) if is_key(value) else None
    low = value.lower()
    is_name = "pass" in low or "pwd" in low or low.startswith(_MADE_UP) or low in _PLACEHOLDERS
    return (start, end, kind) if not is_name and len(set(low)) > 2 else None


def _read_value(text: str, low: str, match: re.Match[str], kind: str) -> Span | None:
    """Return the span of the value behind a name, if it is a secret."""
    how, at, name_end = match.lastgroup, match.end(), match.end("rest")
    begins = _NAME_BEGINS.match(low, max(0, match.start() - 64), match.start())
    begin = begins.end() if begins else match.start()
    # `NAME=x` on a line of its own and <name>x</name> are sure: any word is a value. `name: x` on a line of its own: a
    # word of some length is one. `name=x`, `--name x` are tight: a short one, or a number.
    sure = in_tag = how == "tag"
    if how == "declared" and low[max(0, begin - 5) : begin].strip() in ("env", "arg"):
        sure = True
    line = whole = how in ("beside", "form")
    tight = how in ("flag", "login")
    if how == "sign" and match.start("sign") == name_end:
        tight = low[name_end] == "=" and low[at - 1] not in " \t"
        line = _LINE_BEGINS.match(text, max(0, begin - 40), begin) is not None
        sure = tight and line and text[begin:name_end] == text[begin:name_end].upper()
        whole = line and (sure or not tight)  # the value goes on to the next space, whatever comes before it
    elif (
        (in_tag and text[begin - 1 : begin] != "<")
        or (how == "call" and low[begin:name_end] not in ("password", "setpassword", "set_password"))
        or (how == "login" and "login " not in low[max(0, begin - 80) : begin])
        or (name_end - match.start() <= 4 and (how == "sql" or low[name_end:at].strip() == "to"))  # "pass 'x' to"
        or (how == "cell" and name_end - begin <= 4)  # of a table of tests
        or (how == "cell" and low[at - 1] != "\t" and not _CELL_BEGINS.match(text, max(0, begin - 40), begin))
        or (how == "declared" and not _DECLARATION_BEGINS.match(low, max(0, begin - 40), begin))
    ):
        return None
    start, end, quoted = _value_bounds(text, at, whole=whole, in_tag=in_tag, most=512 if kind == PASSWORD else LONGEST)
    if not quoted and not sure and (typed := _TYPED.match(text, start)):  # password: str = "x"
        sure = line = tight = False
        start, end, quoted = _value_bounds(text, typed.end())
    value = text[start:end]
    if kind == SECRET:
        return (start, end, SECRET) if is_key(value, quoted=quoted) else None
    if not quoted and text[end : end + 1] in ("(", "["):
        return None
    if how == "pair" and not _CALL_BEGINS.match(text, max(0, begin - 40), begin):
        quoted = False  # a list may hold words that are no values: ["password", "email"]
    phrase = "phrase" in low[begin:name_end]
    number = how in ("pair", "declared", "cell", "prose", "sign", "of", "foreign")
    line = line and ("pas" in low[begin:name_end] or "pwd" in low[begin:name_end])  # other languages: no plain word
    hide = is_password(value, quoted=quoted, sure=sure, line=line, tight=tight, number=number, phrase=phrase)
    return (start, end, PASSWORD) if hide else None


# --- values ---

# Letters and digits, and where they end is beyond doubt.
_MIXED = "((?=[A-Za-z]+[0-9]|[0-9]+[A-Za-z])[0-9A-Za-z]{6,64}+)"
_CLEAR = lazy_pattern(rf"\"{_MIXED}\"|'{_MIXED}'|{_MIXED}(?=[ \t\r\n]|\Z)(?![ \t]{{1,16}}=)")
_TYPED = lazy_pattern(_TYPE, re.IGNORECASE)
_OPENING = lazy_pattern(r"(?>(?:[bru@](?=[\"']))?)(\\{0,8})(\"{3}|'{3}|[\"'`])")  # f"…" is a text with holes
_BARE, _WHOLE = (
    lazy_pattern(rf"[^{stops}]*+(?>(?:\\(?![nrt\"'\\])[^{stops}]*+)*)")
    for stops in (r" \t\r\n\"'`\\&;,)\]}<>", r" \t\r\n\"'`\\")
)


def _value_bounds(
    text: str, at: int, *, whole: bool = False, in_tag: bool = False, most: int = LONGEST
) -> tuple[int, int, bool]:
    """Return where the value begins and ends, and whether it is in quotes or in a tag."""
    if opening := _OPENING.match(text, at):
        return opening.end(), _find_quote(text, opening.end(), opening[2], escapes=len(opening[1])), True
    if in_tag or text.startswith("&quot;", at):
        start = at if in_tag else at + 6
        return start, max(start, text.find("<" if in_tag else "&quot;", start, start + LONGEST)), True
    bare = (_WHOLE if whole else _BARE).match(text, at, at + most)
    end = bare.end() if bare else at
    sentence = ",;" if whole else "." if text[end : end + 1] in (" ", "\n", "") else ""
    while end > at and sentence and text[end - 1] in sentence:
        end -= 1
    return at, end, False


def _find_quote(text: str, start: int, quote: str, *, escapes: int) -> int:
    """Return where a quoted value ends: at a quote with no more backslashes than the first had, else with its line."""
    most = min(len(text), start + LONGEST)
    at = start - 1
    while (at := text.find(quote, at + 1, most)) >= 0:
        slashes = 0
        while slashes < min(64, at - start) and text[at - slashes - 1] == "\\":
            slashes += 1
        if slashes <= escapes if escapes else slashes % 2 == 0:
            return at - slashes if escapes else at
    line = text.find("\n", start, most)
    return line if line >= 0 else most


_PLACEHOLDERS, _IN_SENTENCES = frozenset(WORDS["placeholder"]), frozenset(WORDS["sentence"])
_MADE_UP = ("your", "my-", "my_", "example", "placeholder", "insert", "replace", "enter", "xxx", "...")
_HOLE = lazy_pattern(r"\$[{(]|\{[{}]|%[(s]|<%|#\{|\[redacted:")
# $PASSWORD, <password>, {password}, a label, a path
_STAND_IN = lazy_pattern(
    rf"(?i:{'|'.join(map(re.escape, _MADE_UP))})|/|\.{{1,2}}/|~/|…|(?:<(?s:.*)>|\{{(?s:.*)\}}|\[(?s:.*)\]|%(?s:.*)%)\Z"
    r"|\$(?:[A-Z0-9_][0-9A-Za-z_:]*|[a-z]*)\Z|[A-Za-z]+[:?]\Z"
)
_CODE = lazy_pattern(r"[(\[{<|]|->|::|=>|//|==|\A[A-Za-z_][0-9A-Za-z_]*(?:\.[A-Za-z_][0-9A-Za-z_]*)+\Z")
_DIGIT_OR_SIGN = lazy_pattern("[0-9!@#$%^&*+?~]")
_PLAIN = lazy_pattern(r"[0-9A-Za-z_.\-]*\Z")
_KEY = lazy_pattern(rf"[{CLASSES['any']}#^*|]{{16,}}+\Z")
_KEY_IN_QUOTES = lazy_pattern(rf"[{CLASSES['any']}#^*|{_SIGNS}]{{16,}}+\Z")
_ONE_CASE = lazy_pattern(r"(?:[0-9a-z]+|[0-9A-Z]+)\Z")
_SIGN_BYTES = b"_-./:=%!@#$^&*()+?,;<>{}[]|~"
_KINDS = bytes.maketrans(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", b"l" * 26 + b"u" * 26 + b"d" * 10
)
PIECE = 4.2  # characters; random letters and digits change their kind after 2.1 on average, names after 5


def is_placeholder(value: str) -> bool:
    """Return whether *value* is a placeholder or a variable: useful to the reader, and no secret."""
    if value.lower() in _PLACEHOLDERS or (len(set(value)) <= 2 and value.isascii()):
        return True
    return "://" in value or bool(_STAND_IN.match(value) or _HOLE.search(value))


def _size(value: str) -> int:
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def is_password(value: str, *, quoted: bool, sure: bool, line: bool, tight: bool, number: bool, phrase: bool) -> bool:
    """Return whether a value next to `password` is one.

    Without quotes a plain word is one only where the place is *sure* (`NAME=x` on a line of its own, an element), or
    where name and word are the whole *line*; a short one only there, or where both stand *tight* together. A *number*
    of six digits is one where the place may hold numbers. A *phrase* may hold spaces.
    """
    if not 4 <= _size(value) <= 256 or is_placeholder(value):
        return False
    if " " in value or "\n" in value:
        return quoted and _is_phrase(value, phrase=phrase)
    if _PLAIN.match(value):
        low = value.lower()
        if ("pass" in low or "pwd" in low) and not (quoted and is_random(value) and value != low):
            return False  # the name of a field or a variable: new_password, DB_PASS, password2
        bare = re.sub("[_.-]", "", value)
        if bare.isdigit():
            return len(bare) >= 6 and (quoted or sure or line or tight or number)
        if bare.isalpha():
            if quoted:
                return "." not in value and "_" not in value.strip("_") and len(value) >= 5
            return sure or (line and len(value) >= 6 and value.islower() and bare == value)
    if quoted:
        return True
    return (
        _size(value) >= (4 if sure or line or tight else 6)
        and _DIGIT_OR_SIGN.search(value) is not None
        and not is_code(value)
    )


def is_key(value: str, *, quoted: bool = False) -> bool:
    """Return whether a value looks random: 16 characters or more, digits and letters, in pieces shorter than words."""
    head = value[:256]
    if not (_KEY_IN_QUOTES if quoted else _KEY).match(head):
        return False
    kinds = head.encode().translate(_KINDS)
    pieces = 1 + sum(map(kinds.count, (b"ld", b"dl", b"ud", b"du", b"lu")))
    # One case without any sign is no name; of 16 such random characters, one in 200 has fewer than three digits.
    if not (_ONE_CASE.match(head) and pieces >= 3) and pieces * PIECE < len(kinds.translate(None, _SIGN_BYTES)):
        return False
    if "://" in head or (head.startswith(("/", "./", "~/")) and head.count("/") > 1):
        return False
    return is_random(head) and not _HOLE.search(head)


def are_credentials(value: str) -> bool:
    """Return whether a value behind a scheme (`Basic`, `Bearer`) is one, and not the next word of a sentence."""
    if _size(value) < 6 or is_placeholder(value) or is_code(value):
        return False
    if value.isalpha() and (value.islower() or value.istitle() or value.isupper()):
        return False  # "Basic authentication"
    return is_random(value) or value.endswith("=")


def is_code(value: str) -> bool:
    """Return whether *value* is code: `self.password`, `getpass()`, `os.environ['X']`, `a->b`, `Vec<u8>`, `&str`."""
    if _CODE.search(value):
        return True
    return value[:1] in tuple("&*-+=!:.,#") and (len(value) < 8 or not is_random(value))


def _is_phrase(value: str, *, phrase: bool) -> bool:
    words = value.split()
    if phrase:
        return len(words) <= 12 and not any(word.lower() in _IN_SENTENCES for word in words[:2])
    plain = (word.isalpha() and word.islower() and word not in _IN_SENTENCES for word in words)
    return 4 <= len(words) <= 12 and all(plain)


# --- columns of tables: markdown, psql, CSV, what kubectl prints ---

_COLUMNS = tuple(
    (kind, lazy_pattern(rf"[\w .\-]{{0,40}}?(?:{'|'.join((*names.values(), *others.values()))})s?\Z"))
    for kind, names, others in (
        (PASSWORD, _PASSWORD_NAMES, _FOREIGN_PASSWORDS),
        (SECRET, _SECRET_NAMES, _FOREIGN_SECRETS),
    )
)
_SEPARATORS = [*map(re.compile, (r"(\|)", r"(\t)", "(;)", "(,)", "( {2,})"))]
_ENDS_CELL = r"\w{0,6}+[\"'`*]{0,3}+(?:  | ?[|│┃\t;,\r\n]| ?\Z)"
_TITLE = lazy_pattern(r"#?\Z|[^\W\d_][\w.\-/()#]*(?: [\w.\-/()#]+){0,3}\Z")
_RULER = lazy_pattern(r"(?=\S| +[|+])[\s\-+=|:─━┼├┤╇┡┩]*\Z")
_BARS = str.maketrans("│┃", "||")
_LINE, _AROUND = lazy_pattern(r"[^\n]+"), " \t\r\"'`*"
_MOST_HEADER = 1000  # characters of a line that names columns


def _find_columns(text: str, low: str, names: set[str]) -> Iterator[Span]:
    """Yield the values below a telling name in a line of names; no line is read twice for one name."""
    headers: set[tuple[int, int]] = set()
    for word in names:
        done = 0
        for found in _compile(re.escape(word) + _ENDS_CELL).finditer(low):
            if found.start() >= done:
                begin, end = low.rfind("\n", done, found.start()) + 1 or done, low.find("\n", found.start())
                done = end if end >= 0 else len(low)
                headers.add((begin, done))
    text = text.translate(_BARS) if headers and not text.isascii() else text
    is_secret_cell, read_header = cache(_is_cell_secret), cache(_read_header)  # rows repeat
    done = 0
    for begin, end in sorted(headers):
        if begin < done or end - begin > _MOST_HEADER or not (header := read_header(text[begin:end])):
            continue
        separator, columns = header
        done, count = end, 0
        for row in _LINE.finditer(text, end + 1):
            cells = separator.split(row[0])  # every other one is what separates them
            if row.start() != done + 1 or (len(cells) < 3 and not _RULER.match(row[0])):
                break  # behind an empty line, or no row
            done, count = row.end(), count + 1
            for number, kind in columns:
                value = cells[number].strip(_AROUND) if number < len(cells) else ""
                if (
                    len(value) > 3
                    and value[0] != "["
                    and is_secret_cell(value, kind, cells[number].strip()[0] in "\"'")
                ):
                    start = text.find(value, row.start() + sum(map(len, cells[:number])))
                    value_end = end_or_rest(text, start + len(value), count)
                    done = max(done, value_end)
                    yield start, value_end, kind


def _read_header(line: str) -> tuple[re.Pattern[str], list[tuple[int, str]]] | None:
    """Return what separates the columns of a table, and the number and the kind of each that holds secrets."""
    separator = next((each for each in _SEPARATORS if each.search(line)), None)
    if not separator:
        return None
    names = [name.strip(_AROUND).lower() for name in separator.split(line)[::2]]
    columns = [(2 * number, kind) for number, name in enumerate(names) for kind, form in _COLUMNS if form.match(name)]
    is_header = columns and sum(map(bool, names)) > 1 and all(map(_TITLE.match, names))
    return (separator, columns) if is_header else None


def _is_cell_secret(value: str, kind: str, quoted: bool) -> bool:
    if kind == SECRET:
        return is_key(value, quoted=quoted)
    return is_password(value, quoted=quoted, sure=False, line=False, tight=True, number=True, phrase=False)


# --- headers, cookies, flags ---

_SCHEME = "(?P<scheme>basic|bearer|token|digest|negotiate|apikey|ssws|bot|key|oauth)"
_HEADER = (
    rf"authorization{_QUOTE}(?>(?:(?=[:=, ])[ \t:=>,('\"\\]{{0,24}}+)?)(?>(?:{_SCHEME}(?: |%20){_SPACE})?){_MARKED}"
)
_BEARER = rf"bearer(?<![0-9a-z]bearer){_GAP}{_LONG}"
_COOKIE = rf"cookie{_QUOTE}[:=](?!=){_SPACE}{_QUOTE}(?P<line>[^\r\n\"'`\\]{{0,{LONGEST}}}+)"
# A pair whose value looks like a session's, behind a semicolon, another header or nothing.
_SESSION = (
    rf"(?i)(?:\A|;|cookie\\*[\"'`]?[:=])\s*+[0-9A-Za-z_.\-]++=(?P<value>[{CLASSES['sums']}]{{8,}}+)(?=\s*+(?:;|\Z))"
)
_MOST_COMMAND, _ENDS_LINE = 512, lazy_pattern(r"\n|\\n")  # characters of a command before the flag
# Commands whose flag takes a password: a word that must be there, the flag, and whether a name and a colon come first.
_COMMANDS = (
    ("mysql", " -p(?=[^ ])", False),
    ("mariadb", " -p(?=[^ ])", False),
    ("sshpass", f" -p{_SPACE}", False),
    ("redis-cli", f" -a {_SPACE}", False),
    ("docker login", f" -p {_SPACE}", False),
    ("ldapsearch", f" -w {_SPACE}", False),
    ("curl", f" -(?:u|-user) {_SPACE}", True),
)


_OTHER_WORDS = ("login ", "requirepass", "authorization", "bearer", "cookie", *(command for command, _, _ in _COMMANDS))


def _find_headers(text: str, low: str, expression: str) -> Iterator[Span]:
    """Yield the credentials of `Authorization: SCHEME CREDENTIALS`, whatever quotes and signs are between."""
    for match in _compile(expression).finditer(low):
        start, end, _ = _value_bounds(text, match.end())
        if are_credentials(text[start:end]) if match.lastgroup == "scheme" else is_key(text[start:end]):
            yield start, end, HEADER


def _find_cookies(text: str, low: str) -> Iterator[Span]:
    """Yield `a=b; c=d` of a cookie, all of it where any value looks like one of a session."""
    for match in _compile(_COOKIE).finditer(low):
        start, end = match.span("line")
        for pair in _compile(_SESSION).finditer(text[start:end]):
            value = pair["value"]
            if is_random(value) and re.search("[0-9]", value) and not is_placeholder(value):
                yield start, end, COOKIE
                break


def _find_flags(text: str, low: str, command: str, flag: re.Pattern[str], *, named: bool) -> Iterator[Span]:
    """Yield the passwords of mysql -pX, sshpass -p X, curl -u name:X, redis-cli -a X."""
    done = hidden = count = 0
    for match in flag.finditer(text):
        if match.start() < hidden:
            continue
        begin = low.rfind(command, max(done, match.start() - _MOST_COMMAND), match.start())
        if begin < 0 or low[begin - 1 : begin].encode().isalnum() or _ENDS_LINE.search(low, begin, match.start()):
            continue
        done = match.end()
        start, end, _ = _value_bounds(text, done)
        if named:
            start = text.find(":", start, end) + 1
        value = text[start:end]
        if start and _size(value) >= 3 and value[0] not in "$-" and not is_placeholder(value):
            count += 1
            hidden = end_or_rest(text, end, count)
            yield start, hidden, PASSWORD
