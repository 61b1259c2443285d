"""Bytes -> where passwords and keys stand that only their place gives away: `password = …`, `Authorization: …`.

Light, and without `re`. A telling word is looked for; the rest of its name, what stands between name and value, and the
value itself are read from there on, each within a bound. What a value must look like depends on the word (`looks.py`):
next to `password` anything counts that is no placeholder and no code; next to `secret`, `token`, `key` or `auth` only
what looks random. Hence hashes and ids in ordinary places stay.
"""

from __future__ import annotations

from dataclasses import dataclass

from foreword.redact.formats import CLASSES, WORD, is_random

TYPE_CHECKING = False
if TYPE_CHECKING:
    from foreword.redact.formats import Span

LONGEST = 4096  # bytes of a value; a longer one is data
_NAME = WORD + b"-."
PASSWORD, SECRET, HEADER, COOKIE = "password", "secret", "authorization", "cookie"
# The words that tell, and of what kind their values are. `pass`, `pwd`, `key` and `auth` are parts of other words too.
_WORDS = (
    (b"pass", PASSWORD),
    (b"pwd", PASSWORD),
    (b"identified by", PASSWORD),
    (b"secret", SECRET),
    (b"token", SECRET),
    (b"key", SECRET),
    (b"credential", SECRET),
    (b"auth", SECRET),
    (b"sessid", SECRET),
    (b"jsessionid", SECRET),
    (b"connect.sid", SECRET),
    (b"bearer", HEADER),
    (b"cookie", COOKIE),
)
_PASSES = (b"word", b"wd", b"phrase", b"code", b"wort")
# Before `pass`, where it is a part of a name by itself: dbpass, userPass; not bypass, compass.
_WHOLE = tuple(b"db pg user my admin root ftp smtp mail ssh ldap redis require".split())
# Before `key`, where its name says that it is one to a lock: a cache_key or a primary_key is none.
_KEYS = tuple(
    b"""api access secret private auth account encrypt encryption signing sign master shared sharedaccess app service
    application license client storage admin deploy webhook jwt crypto hmac cipher aes ssh bot rest live server user
    subscription consumer security session write ingest project data integration publish management dd datadog secure
    salt pepper fernet decrypt""".split()
)
# A name that goes on like this names something about the secret, not the secret.
_ABOUT = tuple(
    b"""file path field name type url uri endpoint len min max polic label hint count prompt help placeholder title desc
    expir ttl version env var ref regex pattern reset id dir folder limit size age valid check required enabled confirm
    error message manager store provider usage budget _ ize isation ization ifier ity or entic board s. hash_algo
    less""".split()
)


@dataclass(frozen=True)
class _Name:
    """A telling word in its text, with the name that it is part of."""

    raw: bytes
    low: bytes
    begins: int  # the name, a dash or two before it included
    at: int  # the word
    end: int  # the name
    kind: str


@dataclass(frozen=True)
class _Place:
    """Where a value begins, and what that place is like."""

    at: int
    sure: bool = False  # NAME=x on a line of its own, <name>x</name>: any word is a value
    line: bool = False  # `name: x` on a line of its own: a word of some length is one
    tight: bool = False  # `name=x`, `--name x`: a short one, or a number
    whole: bool = False  # the value goes on to the next space, whatever comes before it
    element: bool = False  # … or to the next tag


def secrets(raw: bytes) -> list[Span]:
    """Where such values stand, in order and apart, each with what it is."""
    low = raw.lower()
    found: list[Span] = []
    for word, kind in _WORDS:
        at = low.find(word)
        while at >= 0:
            end = at + len(word)
            span = _secret_at(raw, low, at, end, kind)
            if span is not None:
                found.append(span)
                end = max(end, span[1])
            at = low.find(word, end)
    if b" -" in low:
        found += _flags(raw, low)
    return _apart(found)


def is_secret(name: str, value: str) -> str:
    """What the value of a field with this name is, as a mark calls it; empty where it is nothing to hide."""
    quoted = value.encode("utf-8", "surrogatepass").replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    spans = secrets(b'"%s": "%s"' % (name.encode("utf-8", "surrogatepass")[-64:], quoted[:LONGEST]))
    return spans[0][2] if spans else ""


def is_telling(name: str) -> bool:
    """Whether a field of this name may hold a secret: asked of every name, before anything is looked at."""
    low = name.lower()
    return any(word in low for word in ("pass", "pwd", "secret", "token", "key", "cred", "auth", "cookie"))


def _apart(found: list[Span]) -> list[Span]:
    apart: list[Span] = []
    for span in sorted(found):
        if not apart or span[0] >= apart[-1][1]:
            apart.append(span)
        elif span[1] > apart[-1][1]:
            apart[-1] = apart[-1][0], span[1], apart[-1][2]
    return apart


# --- the name ---


def _secret_at(raw: bytes, low: bytes, at: int, end: int, kind: str) -> Span | None:
    word = low[at:end]
    if kind == COOKIE:
        return _cookie(raw, end)
    if kind == HEADER:
        return _bearer(raw, at, end)
    if word == b"auth" and low.startswith(b"orization", end):
        return _header(raw, low, end + 9)
    if not _tells(raw, low, at, end):
        return None
    tail = low[end : end + 40]
    tail = tail[: len(tail) - len(tail.lstrip(_NAME))]
    about = tail[4:] if kind == PASSWORD and tail.startswith(_PASSES) else tail
    if about.lstrip(b"_-.").startswith(_ABOUT):
        return None
    end += len(tail) - tail.endswith((b"-", b"."))  # the end of a sentence is not the name's
    before = raw[max(0, at - 64) : at]
    name = _Name(raw, low, at - len(before) + len(before.rstrip(_NAME)), at, end, kind)
    place = _place(name)
    return _value(name, place) if place else None


def _tells(raw: bytes, low: bytes, at: int, end: int) -> bool:
    """Whether the word is one of ours here, and not a part of another: compass, monkey, author."""
    word, after = low[at:end], low[end : end + 1]
    if word == b"pass":
        return low.startswith(_PASSES, end) or (not after.isalnum() and _is_whole(low, at))
    if word == b"pwd":
        if raw[at:end] == b"PWD" and not (low[at - 1 : at].isalnum() or low[at - 1 : at] == b"_"):
            return False  # the shell's own, a folder
        return not after.isalpha() and low[max(0, at - 3) : at] != b"old"
    if word == b"key":
        return _is_key(raw, low, at)
    if word == b"token":
        return low[max(0, at - 9) : at] != b"publickey"
    if word == b"auth":
        return not after.isalpha() or low.startswith((b"key", b"token", b"secret"), end)
    return True


def _is_whole(low: bytes, at: int) -> bool:
    before = low[max(0, at - 7) : at]
    return not before[-1:].isalpha() or before.endswith(_WHOLE) or before.endswith((b"\\n", b"\\t", b"\\r"))


def _is_key(raw: bytes, low: bytes, at: int) -> bool:
    before = low[max(0, at - 24) : at].rstrip(b"_-. ")
    if before.endswith(_KEYS):
        return True
    # SOME_KEY in capitals is a variable of the environment; of those, most keys are secret.
    part = raw[max(0, at - 40) : at + 3]
    name = part[len(part.rstrip(WORD)) :]
    ordinary = before.endswith((b"public", b"primary", b"foreign", b"cache"))
    return name.endswith(b"_KEY") and name.isupper() and not ordinary


# --- what stands between a name and its value ---


def _place(name: _Name) -> _Place | None:
    """Where the value begins; None where nothing follows the name."""
    raw, low, end = name.raw, name.low, name.end
    if raw[end : end + 1] == b">" and raw[name.begins - 1 : name.begins] == b"<":
        return _Place(end + 1, sure=True, element=True)
    closed = _behind_quote(raw, end)
    spaced = _behind_space(raw, closed)
    sign = raw[spaced : spaced + 1]
    if sign in (b"=", b":"):
        return _assigned(name, spaced)
    if sign == b"!" and raw[spaced + 1 : spaced + 2] == b"=":
        return _Place(_behind_space(raw, spaced + 2))
    if low.startswith((b"%3d", b"%3a"), end):
        return _Place(end + 3)
    if closed == end and (spaced > end or raw[end : end + 1] == b"\n") and _is_flag(name):
        return _Place(_behind_space(raw, spaced + (spaced == end)), tight=True)
    said = _said(name, spaced) if name.kind == PASSWORD and closed == end else None
    return said or _beside(raw, low, closed)


def _assigned(name: _Name, at: int) -> _Place:
    """What follows `=`, `:`, `:=`, `=>`, `==`."""
    raw, end = name.raw, name.end
    after = at + 1
    while raw[after : after + 1] in (b"=", b">", b":") and after - at < 3:
        after += 1
    begins_line = _begins_line(raw, name.begins)
    tight = at == end and raw[at : at + 1] == b"=" and raw[after : after + 1] not in (b" ", b"\t")
    whole = begins_line and (tight or at == end)
    capitals = raw[name.begins : end]
    sure = tight and begins_line and capitals == capitals.upper()
    return _Place(_behind_space(raw, after), sure=sure, line=whole, tight=tight, whole=whole and (sure or not tight))


def _is_flag(name: _Name) -> bool:
    return b"-" in (name.raw[name.begins : name.begins + 1], name.raw[name.begins - 1 : name.begins])


def _said(name: _Name, spaced: int) -> _Place | None:
    """SET PASSWORD 'x', PASSWORD('x'), `machine a login b password x`, `requirepass x`, "the password is x"."""
    raw, low, end = name.raw, name.low, name.end
    if raw[end : end + 2] in (b"('", b'("') and low[name.begins : end] in (
        b"password",
        b"setpassword",
        b"set_password",
    ):
        return _Place(end + 1)
    if spaced == end:
        return None
    if raw[spaced : spaced + 1] == b"'" and end - name.at > 4:
        return _Place(spaced)
    if low[name.begins : end] == b"requirepass" or b"login " in low[max(0, name.begins - 80) : name.begins]:
        return _Place(spaced, tight=True)
    if low.startswith((b"is ", b"was ", b"is: "), spaced) or (end - name.at > 4 and low.startswith(b"to ", spaced)):
        return _Place(_behind_space(raw, low.index(b" ", spaced)))
    return None


def _beside(raw: bytes, low: bytes, at: int) -> _Place | None:
    """{"name": "DB_PASSWORD", "value": "x"}, <add key="password" value="x"/>, and the same as lines of YAML."""
    near = low[at : at + 40]
    rest = near.lstrip(b" \t\r\n,;\"'\\n")
    if not rest.startswith(b"value") or len(rest) == len(near):
        return None
    at = _behind_space(raw, _behind_quote(raw, at + len(near) - len(rest) + 5))
    return _Place(_behind_space(raw, at + 1), line=True, whole=True) if raw[at : at + 1] in (b"=", b":") else None


def _behind_quote(raw: bytes, at: int) -> int:
    """Behind a quote, with the backslashes before it, and a bracket behind it; the same place where there is none."""
    part = raw[at : at + 9]
    quote = at + len(part) - len(part.lstrip(b"\\"))
    if raw[quote : quote + 1] in (b'"', b"'", b"`"):
        return quote + 1 + (raw[quote + 1 : quote + 2] == b"]")
    return at + 6 if raw.startswith(b"&quot;", at) else at


def _behind_space(raw: bytes, at: int) -> int:
    part = raw[at : at + 16]
    return at + len(part) - len(part.lstrip(b" \t"))


_BEFORE = frozenset(b"+ - > # $ export set env ENV ARG declare -x".split())


def _begins_line(raw: bytes, at: int) -> bool:
    """Whether nothing but spaces, a diff's sign, a list's dash, a quote or `export` stands before it on its line."""
    start = max(0, at - 40)
    line = raw[start:at]
    newline = max(line.rfind(b"\n"), line.rfind(b"\\n") + 1)
    if newline > 0 or line.startswith(b"\n"):
        line = line[newline + 1 :]
    elif start:
        return False
    return _BEFORE.issuperset(line.translate(None, b"\"'\\").split())


# --- the value ---


def _value(name: _Name, place: _Place) -> Span | None:
    from foreword.redact.looks import is_key, is_name, is_password  # 0.1 ms that most hooks need not pay

    raw = name.raw
    start, end, quoted = _bounds(raw, place, most=512 if name.kind == PASSWORD else LONGEST)
    if not quoted and not place.sure and raw[end : end + 1] in (b" ", b"=") and is_name(raw[start:end]):
        after = _behind_space(raw, end)  # `password: str = "x"`: a type stands between
        if raw[after : after + 1] == b"=" and raw[after + 1 : after + 2] != b"=":
            place = _Place(_behind_space(raw, after + 1))
            start, end, quoted = _bounds(raw, place)
    found = raw[start:end]
    if name.kind != PASSWORD:
        return (start, end, name.kind) if is_key(found) else None
    if not quoted and raw[end : end + 1] in (b"(", b"["):
        return None
    phrase = b"phrase" in name.low[name.begins : name.end]
    hide = is_password(found, quoted=quoted, sure=place.sure, line=place.line, tight=place.tight, phrase=phrase)
    return (start, end, PASSWORD) if hide else None


def _bounds(raw: bytes, place: _Place, *, most: int = LONGEST) -> tuple[int, int, bool]:
    """Where the value begins and ends, and whether it stands in quotes."""
    at = place.at
    if raw[at : at + 1] in (b"b", b"r", b"u", b"@") and raw[at + 1 : at + 2] in (b'"', b"'"):
        at += 1  # as other languages write their texts; f"…" is one with holes
    part = raw[at : at + 9]
    quote = at + len(part) - len(part.lstrip(b"\\"))
    if raw[quote : quote + 1] in (b'"', b"'", b"`"):
        return quote + 1, _closing(raw, quote + 1, escapes=quote - at), True
    if raw.startswith(b"&quot;", at) or place.element:
        start = at if place.element else at + 6
        end = raw.find(b"<" if place.element else b"&quot;", start, start + LONGEST)
        return start, max(start, end), True
    return at, _ending(raw, at, whole=place.whole, most=most), False


def _closing(raw: bytes, start: int, *, escapes: int) -> int:
    """Where a quoted value ends: at its quote with no more backslashes than the first had, else with its line."""
    quote, most = raw[start - 1 : start], min(len(raw), start + LONGEST)
    at = start - 1
    while (at := raw.find(quote, at + 1, most)) >= 0:
        near = raw[max(start, at - 64) : at]
        slashes = len(near) - len(near.rstrip(b"\\"))
        if slashes <= escapes if escapes else slashes % 2 == 0:
            return at - slashes if escapes else at
    line = raw.find(b"\n", start, most)
    return line if line >= 0 else most


# What ends a value without quotes, as one newline: a search for one of them reads the value once.
_SPACES = bytes.maketrans(b" \t\r\"'`\\", b"\n" * 7)
_STOPS = bytes.maketrans(b" \t\r\"'`\\&;,)]}<>", b"\n" * 15)
_ESCAPED = (b"n", b"r", b"t", b'"', b"'", b"\\")


def _ending(raw: bytes, start: int, *, whole: bool, most: int) -> int:
    stops, end, seen = _SPACES if whole else _STOPS, start, start + min(512, most)
    while True:
        part = raw[end:seen].translate(stops)
        at = part.find(b"\n")
        end += at if at >= 0 else len(part)
        if at < 0 and end == seen < start + most:
            seen = start + most
        elif at >= 0 and raw[end : end + 1] == b"\\" and raw[end + 1 : end + 2] not in _ESCAPED:
            end += 1  # a backslash of its own
        else:
            break
    sentence = b",;" if whole else b"." if raw[end : end + 1] in (b" ", b"\n", b"") else b""
    return start + len(raw[start:end].rstrip(sentence)) if sentence else end


# --- headers, cookies, flags ---

_SCHEMES = tuple(b"basic bearer token digest negotiate apikey ssws bot key oauth".split())


def _header(raw: bytes, low: bytes, end: int) -> Span | None:
    """Authorization: SCHEME CREDENTIALS, whatever quotes and signs stand between."""
    from foreword.redact.looks import are_credentials, is_key

    at = _behind_quote(raw, end)
    part = raw[at : at + 24]
    if part[:1] in (b":", b"=", b",", b" ", b")"):
        at += len(part) - len(part.lstrip(b" \t:=>,('\"\\"))
    word = low[at : at + 13].replace(b"%20", b" ").partition(b" ")
    if not word[1] or word[0] not in _SCHEMES:
        start, end, _ = _bounds(raw, _Place(at))
        return (start, end, HEADER) if is_key(raw[start:end]) else None
    at += len(word[0])
    start, end, _ = _bounds(raw, _Place(_behind_space(raw, at + (3 if raw[at : at + 1] == b"%" else 1))))
    return (start, end, HEADER) if are_credentials(raw[start:end]) else None


def _bearer(raw: bytes, at: int, end: int) -> Span | None:
    from foreword.redact.looks import is_key

    if raw[end : end + 1] not in (b" ", b"\t") or raw[at - 1 : at].isalnum():
        return None
    start, end, _ = _bounds(raw, _Place(_behind_space(raw, end)))
    return (start, end, HEADER) if is_key(raw[start:end]) else None


def _cookie(raw: bytes, end: int) -> Span | None:
    """Cookie: a=b; c=d and Set-Cookie: a=b; Path=/, all of it where any value looks like one of a session."""
    at = _behind_quote(raw, end)
    if raw[at : at + 1] not in (b":", b"=") or raw[at + 1 : at + 2] == b"=":
        return None
    start = _behind_quote(raw, _behind_space(raw, at + 1))
    part = raw[start : start + LONGEST].translate(_LINES).partition(b"\n")[0]
    return (start, start + len(part), COOKIE) if any(map(_is_session, part.split(b";"))) else None


def _is_session(pair: bytes) -> bool:
    from foreword.redact.looks import stands_for_one

    name, _, held = pair.strip().partition(b"=")
    if not name or name.translate(None, _NAME) or len(held) < 8 or held.translate(None, CLASSES["sums"]):
        return False
    return is_random(held) and any(each in held for each in CLASSES["digit"]) and not stands_for_one(held)


_LINES = bytes.maketrans(b"\r\"'`\\", b"\n" * 5)
# Commands whose flag takes a password; whether it stands right behind the flag, and whether a name comes first.
_COMMANDS = (
    (b"mysql", b" -p", True, False),
    (b"mariadb", b" -p", True, False),
    (b"sshpass", b" -p", False, False),
    (b"redis-cli", b" -a ", False, False),
    (b"docker login", b" -p ", False, False),
    (b"ldapsearch", b" -w ", False, False),
    (b"curl", b" -u ", False, True),
    (b"curl", b" --user ", False, True),
)


def _flags(raw: bytes, low: bytes) -> list[Span]:
    """mysql -pX, sshpass -p X, curl -u name:X, redis-cli -a X."""
    found: list[Span] = []
    for command, flag, glued, named in _COMMANDS:
        at = low.find(command)
        while at >= 0:
            from foreword.redact.looks import is_given

            line = raw[at : at + 512].partition(b"\n")[0].partition(b"\\n")[0]
            place = line.find(flag)
            start = at + place + len(flag)
            if place >= 0 and not low[at - 1 : at].isalnum() and not (glued and raw[start : start + 1] in (b" ", b"")):
                start, end, _ = _bounds(raw, _Place(_behind_space(raw, start)))
                if named:
                    start = raw.find(b":", start, end) + 1
                if start and is_given(raw[start:end]):
                    found.append((start, end, PASSWORD))
            at = low.find(command, at + len(command))
    return found
