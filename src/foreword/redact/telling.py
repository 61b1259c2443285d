"""Bytes -> where passwords and keys stand that only their place gives away: `password = …`, `Authorization: …`.

Light, and without `re`. A telling word is looked for; the rest of its name, what separates name from value, and the value
itself are read from there on, each within a bound. What a value must look like depends on the word: next to `password`
anything counts that is no placeholder and no code; next to `secret`, `token`, `key`, `auth` only 16 characters or more
that look random. Hence hashes and ids in ordinary places stay.
"""

from __future__ import annotations

from foreword.redact.formats import CLASSES, WORD, is_random

TYPE_CHECKING = False
if TYPE_CHECKING:
    from foreword.redact.formats import Span

LONGEST = 4096  # bytes of a value; a longer one is data
_NAME = WORD + b"-."
_SPACE = b" \t"
_QUOTES = b"\"'`"
_DIGITS = CLASSES["digit"]
_LETTERS = CLASSES["alnum"].translate(None, _DIGITS)

PASSWORD, SECRET, HEADER, COOKIE, BEARER = "password", "secret", "authorization", "cookie", "bearer"
# The words that tell, and of what kind their values are. `pass`, `key` and `auth` are parts of other words too.
_WORDS = (
    (b"pass", PASSWORD),
    (b"pwd", PASSWORD),
    (b"identified by", PASSWORD),
    (b"secret", SECRET),
    (b"token", SECRET),
    (b"key", SECRET),
    (b"credential", SECRET),
    (b"auth", SECRET),
    (b"signature", SECRET),
    (b"sessid", SECRET),
    (b"jsessionid", SECRET),
    (b"connect.sid", SECRET),
    (b"bearer", BEARER),
    (b"cookie", COOKIE),
)
_PASSES = (b"word", b"wd", b"phrase", b"code", b"wort")
_WHOLE = (b"db", b"pg", b"user", b"my", b"admin", b"root", b"ftp", b"smtp", b"mail", b"ssh", b"ldap", b"redis")
_WHOLE += (b"require", b"\\n", b"\\t", b"\\r")
# What a key is for, where its name says that it is one to a lock: a cache_key or a primary_key is none.
_KEYS = (
    *(b"api", b"access", b"secret", b"private", b"auth", b"account", b"encrypt", b"encryption", b"signing", b"sign"),
    *(b"master", b"shared", b"sharedaccess", b"app", b"application", b"license", b"client", b"storage", b"admin"),
    *(b"deploy", b"webhook", b"jwt", b"crypto", b"hmac", b"cipher", b"aes", b"ssh", b"bot", b"rest", b"live", b"service"),
    *(b"server", b"subscription", b"consumer", b"security", b"session", b"write", b"ingest", b"project", b"user", b"data"),
    *(b"integration", b"publish", b"management", b"dd", b"datadog", b"secure", b"salt", b"pepper", b"fernet", b"decrypt"),
)
# A name that goes on like this names something about the secret, not the secret.
_ABOUT = (
    *(b"file", b"path", b"field", b"name", b"type", b"url", b"uri", b"endpoint", b"len", b"min", b"max", b"polic", b"label"),
    *(b"hint", b"count", b"prompt", b"help", b"placeholder", b"title", b"desc", b"expir", b"ttl", b"version", b"env", b"var"),
    *(b"ref", b"regex", b"pattern", b"reset", b"id", b"dir", b"folder", b"limit", b"size", b"age", b"valid", b"check"),
    *(b"required", b"enabled", b"confirm", b"error", b"message", b"manager", b"store", b"provider", b"usage", b"budget"),
    *(b"_", b"ize", b"isation", b"ization", b"ifier", b"ity", b"or", b"entic", b"board", b"word", b"s.", b"hash_algo", b"less"),
)
_PLACEHOLDERS = frozenset(
    b"""password passwd passwort passphrase pass pwd secret token key apikey api_key none null nil undefined true false
    yes no on off str string bytes bool int text any object optional required hidden unset empty default example sample
    test dummy foo bar baz changeme change_me changeit xxx todo tbd redacted masked private public basic bearer digest
    username user prompt input self this value values anonymous anonymous@ unknown ask const field enter
    function return async await lambda default_value type number boolean float char varchar sha256 sha512 md5 bcrypt
    oauth2 base64 utf8 utf-8 latin1 ascii strict auto always never missing incorrect correct invalid valid wrong expired
    and or not is was the with for from here there login logout signup""".split()
)
_IN_SENTENCES = frozenset(
    b"a an the your you to of is are was for must be in on at or and not with this that it if please enter type has have "
    b"no can should from by as will may least new old use".split()
)


def secrets(raw: bytes) -> list[Span]:
    """Where such values stand, in order and apart, each with what it is."""
    low = raw.lower()
    found: list[Span] = []
    for word, kind in _WORDS:
        at = low.find(word)
        while at >= 0:
            end = at + len(word)
            span = _value_of(raw, low, at, end, kind)
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
    return any(word in low for word in ("pass", "pwd", "secret", "token", "key", "cred", "auth", "cookie", "signature"))


def _apart(found: list[Span]) -> list[Span]:
    apart: list[Span] = []
    for span in sorted(found):
        if not apart or span[0] >= apart[-1][1]:
            apart.append(span)
        elif span[1] > apart[-1][1]:
            apart[-1] = apart[-1][0], span[1], apart[-1][2]
    return apart


# --- the name ---


def _value_of(raw: bytes, low: bytes, at: int, end: int, kind: str) -> Span | None:
    after = low[end : end + 1]
    if kind == PASSWORD and low[at:end] == b"pass":
        if low.startswith(_PASSES, end):
            pass
        elif after.isalnum() or not _is_whole(low, at):
            return None
    elif kind == PASSWORD and low[at:end] == b"pwd":
        if after.isalpha() or not (_is_whole(low, at) or low[at - 1 : at].isalpha() and low[at - 3 : at] != b"old"):
            return None
        if not low[at - 1 : at].isalnum() and raw[at:end] == b"PWD" and low[at - 1 : at] != b"_":
            return None  # the shell's own, a folder
    elif low[at:end] == b"key":
        if not _is_key(raw, low, at):
            return None
    elif low[at:end] == b"auth":
        if low.startswith(b"orization", end):
            return _header(raw, low, at, end + 9)
        if after.isalpha() and not low.startswith((b"key", b"token", b"secret"), end):
            return None
    elif kind == COOKIE:
        return _cookie(raw, low, at, end + (after == b"2"))
    elif kind == BEARER:
        return _bearer(raw, at, end)
    return _after_name(raw, low, at, end, kind)


def _is_whole(low: bytes, at: int) -> bool:
    """Whether `pass` is a part of a name by itself: db_pass, userPass; not bypass, compass."""
    before = low[max(0, at - 7) : at]
    return not before[-1:].isalpha() or before.endswith(_WHOLE)


def _is_key(raw: bytes, low: bytes, at: int) -> bool:
    before = low[max(0, at - 24) : at].rstrip(b"_-. ")
    if before.endswith(_KEYS):
        return True
    # SOME_KEY in capitals is a variable of the environment; of those, most keys are secret.
    start = at - len(raw[max(0, at - 40) : at]) + len(raw[max(0, at - 40) : at].rstrip(WORD))
    name = raw[start : at + 3]
    return name[-4:] == b"_KEY" and name.isupper() and not before.endswith((b"public", b"primary", b"foreign", b"cache"))


def _after_name(raw: bytes, low: bytes, at: int, end: int, kind: str) -> Span | None:
    """The value that a name leads to, if it is one to hide."""
    tail = low[end : end + 40]
    rest = tail.lstrip(_NAME)
    tail = tail[: len(tail) - len(rest)]
    about = tail[4:] if tail.startswith(_PASSES) and kind == PASSWORD else tail
    about = about.lstrip(b"_-.")
    if about and about.startswith(_ABOUT) and not about.startswith((b"word", b"value")):
        return None
    begins = at - len(raw[max(0, at - 64) : at]) + len(raw[max(0, at - 64) : at].rstrip(_NAME))
    i = end + len(tail)
    if tail.endswith((b"-", b".")):  # `tokens - 1`, the end of a sentence
        i -= 1
    place = _separated(raw, low, begins, at, i, kind)
    if place is None:
        return None
    i, how = place
    return _value(raw, low, begins, i, how, kind)


# --- what stands between a name and its value ---

_ENV, _LINE, _TIGHT, _LOOSE, _FLAG, _SAID, _ELEMENT = "env", "line", "tight", "loose", "flag", "said", "element"


def _separated(raw: bytes, low: bytes, begins: int, at: int, i: int, kind: str) -> tuple[int, str] | None:
    """Where the value begins, and how sure the place is that it is one; None where nothing follows the name."""
    first = raw[i : i + 1]
    if first == b">" and raw[begins - 1 : begins] == b"<":
        return i + 1, _ELEMENT
    closed = _skip_quote(raw, i)
    spaced = closed
    while raw[spaced : spaced + 1] in (b" ", b"\t") and spaced - closed < 16:
        spaced += 1
    sign = raw[spaced : spaced + 1]
    if sign in (b"=", b":"):
        j = spaced + 1
        while raw[j : j + 1] in (b"=", b">", b":") and j - spaced < 3:
            j += 1
        is_line = _begins_line(raw, begins)
        tight = sign == b"=" and spaced == i and raw[j : j + 1] not in (b" ", b"\t")
        if tight and is_line and raw[begins:i].upper() == raw[begins:i]:
            how = _ENV
        elif tight:
            how = _TIGHT
        else:
            how = _LINE if is_line and spaced == i else _LOOSE
        return _skip_space(raw, j), how
    if sign == b"!" and raw[spaced + 1 : spaced + 2] == b"=":
        return _skip_space(raw, spaced + 2), _LOOSE
    if low.startswith((b"%3d", b"%3a"), i):
        return i + 3, _LOOSE
    if raw[begins : begins + 1] == b"-" and spaced == closed == i and raw[i : i + 1] == b"\n":
        return _skip_space(raw, i + 1), _FLAG  # a list of arguments, one on a line
    if spaced > i and closed == i and (raw[begins : begins + 1] == b"-" or raw[begins - 1 : begins] == b"-"):
        return spaced, _FLAG
    if kind == PASSWORD:
        if raw[spaced : spaced + 1] == b"'" and spaced > i and closed == i and i - at > 4:
            return spaced, _LOOSE  # SET PASSWORD 'x', IDENTIFIED BY 'x'
        if raw[i : i + 2] in (b"('", b'("') and low[begins:i] in (b"password", b"setpassword", b"set_password"):
            return i + 1, _LOOSE
        if spaced > i and closed == i and _is_configured(low, begins, i):
            return spaced, _FLAG
        if spaced > i and low.startswith((b"is ", b"was ", b"is: ", b"to "), spaced):
            return _skip_space(raw, low.index(b" ", spaced)), _SAID
    return _value_beside(raw, low, closed)


def _is_configured(low: bytes, begins: int, i: int) -> bool:
    """`machine x login y password z` of .netrc, and `requirepass z` of Redis."""
    return low[begins:i] == b"requirepass" or b"login " in low[max(0, begins - 80) : begins].rpartition(b"\n\n")[2]


def _value_beside(raw: bytes, low: bytes, i: int) -> tuple[int, str] | None:
    """{"name": "DB_PASSWORD", "value": "x"}, <add key="password" value="x"/>, and the same as lines of YAML."""
    near = low[i : i + 40]
    rest = near.lstrip(b" \t\r\n,;\"'\\n")
    if not rest.startswith(b"value") or len(rest) == len(near):
        return None
    i = _skip_quote(raw, i + len(near) - len(rest) + 5)
    i = _skip_space(raw, i)
    return (_skip_space(raw, i + 1), _LINE) if raw[i : i + 1] in (b"=", b":") else None


def _skip_quote(raw: bytes, i: int) -> int:
    """Behind a quote, with the backslashes before it, and a bracket behind it."""
    j = i
    while raw[j : j + 1] == b"\\" and j - i < 8:
        j += 1
    if raw[j : j + 1] in (b'"', b"'", b"`"):
        j += 1
        return j + 1 if raw[j : j + 1] == b"]" else j
    if raw.startswith(b"&quot;", i):
        return i + 6
    return i


def _skip_space(raw: bytes, i: int) -> int:
    part = raw[i : i + 16]
    return i + len(part) - len(part.lstrip(_SPACE))


def _begins_line(raw: bytes, at: int) -> bool:
    """Whether nothing but spaces, a diff's sign, a list's dash, a quote or `export` stands before it on its line."""
    start = max(0, at - 40)
    line = raw[start:at]
    newline = max(line.rfind(b"\n"), line.rfind(b"\\n") + 1)
    if newline > 0 or line.startswith(b"\n"):
        line = line[newline + 1 :]
    elif start:
        return False
    words = line.replace(b'"', b"").replace(b"'", b"").replace(b"\\", b"").split()
    return all(word in (b"+", b"-", b">", b"#", b"export", b"set", b"env", b"ENV", b"ARG", b"declare", b"-x", b"$") for word in words)


# --- the value ---


def _value(raw: bytes, low: bytes, begins: int, i: int, how: str, kind: str) -> Span | None:
    i = _behind_prefix(raw, i)
    most = 512 if kind == PASSWORD else LONGEST  # a longer one is none
    start, end, quoted = _bounds(raw, i, how, most)
    value = raw[start:end]
    if how in (_LINE, _TIGHT, _LOOSE) and not quoted and raw[end : end + 1] in (b" ", b"=") and _is_name(value):
        # `password: str = "x"`: a type stands between
        j = _skip_space(raw, end)
        if raw[j : j + 1] == b"=" and raw[j + 1 : j + 2] != b"=":
            i = _behind_prefix(raw, _skip_space(raw, j + 1))
            start, end, quoted = _bounds(raw, i, _LOOSE)
            value = raw[start:end]
    if kind == PASSWORD:
        hide = _is_password(value, how=how, quoted=quoted, phrase=b"phrase" in low[begins:i])
        hide = hide and not (not quoted and raw[end : end + 1] in (b"(", b"["))
    else:
        hide = is_key(value) and how != _SAID
    return (start, end, kind) if hide else None


def _behind_prefix(raw: bytes, i: int) -> int:
    # b"…", r"…", @"…" of other languages; f"…" is text with holes, which a placeholder test finds.
    return i + 1 if raw[i : i + 1] in b"bBrRuU@" and raw[i + 1 : i + 2] in (b'"', b"'") and raw[i : i + 1] else i


def _bounds(raw: bytes, i: int, how: str, most: int = LONGEST) -> tuple[int, int, bool]:
    """Where the value at *i* begins and ends, and whether it stands in quotes."""
    j = i
    while raw[j : j + 1] == b"\\" and j - i < 8:
        j += 1
    quote = raw[j : j + 1]
    if quote and quote in _QUOTES:
        return j + 1, _closing(raw, j + 1, quote, escapes=j - i), True
    if raw.startswith(b"&quot;", i):
        end = raw.find(b"&quot;", i + 6, i + 6 + LONGEST)
        return i + 6, end if end >= 0 else i + 6, True
    if how == _ELEMENT:
        end = raw.find(b"<", i, i + LONGEST)
        return i, end if end >= 0 else i, True
    stops = _LINE_STOPS if how in (_ENV, _LINE) else _STOPS
    end, seen = i, i + 512
    while True:
        part = raw[end:seen].translate(stops)
        at = part.find(b"\n")
        end = end + at if at >= 0 else end + len(part)
        if at < 0 and end == seen < i + most:
            seen = i + most
        elif at >= 0 and raw[end : end + 1] == b"\\" and raw[end + 1 : end + 2] not in _ESCAPED:
            end += 1  # a backslash of its own
        else:
            break
    if how in (_ENV, _LINE):
        end = i + len(raw[i:end].rstrip(b",;"))
    elif how not in (_FLAG, _TIGHT) and raw[end : end + 1] in (b" ", b"\n", b""):
        end = i + len(raw[i:end].rstrip(b"."))
    return i, end, False


_ESCAPED = (b"n", b"r", b"t", b'"', b"'", b"\\")
# What ends a value without quotes, as one newline: a search for one of them reads the value once.
_LINE_STOPS = bytes(10 if byte in b" \t\r\n\"'`\\" else byte for byte in range(256))
_STOPS = bytes(10 if byte in b" \t\r\n\"'`\\&;,)]}<>" else byte for byte in range(256))


def _closing(raw: bytes, i: int, quote: bytes, *, escapes: int) -> int:
    """Where a quoted value ends: at its quote with no more backslashes than the first had, else with its line."""
    most = min(len(raw), i + LONGEST)
    at = i - 1
    while (at := raw.find(quote, at + 1, most)) >= 0:
        slashes = len(raw[i:at]) - len(raw[i:at].rstrip(b"\\")) if raw[at - 1 : at] == b"\\" else 0
        if slashes <= escapes if escapes else slashes % 2 == 0:
            return max(i, at - slashes) if escapes else at
    line = raw.find(b"\n", i, most)
    return line if line >= 0 else most


# --- is it one? ---

_HOLES = (b"${", b"{{", b"%(", b"%s", b"$(", b"<%", b"#{", b"{}", b"[redacted:")


def _is_password(value: bytes, *, how: str, quoted: bool, phrase: bool) -> bool:
    """Whether a value next to `password` is one: no placeholder, no variable, no code, no label, no prose."""
    if not 4 <= len(value) <= 256 or value.lower() in _PLACEHOLDERS or _stands_for_one(value):
        return False
    if b" " in value or b"\n" in value:
        return quoted and _is_phrase(value, phrase=phrase)
    low = value.lower()
    plain = not value.translate(None, WORD + b"-.")
    if plain and (b"pass" in low or b"pwd" in low) and not (quoted and is_random(value) and value != low):
        return False  # the name of a field or a variable: new_password, DB_PASS, password2
    bare = value.translate(None, b"_-.")
    if bare.isdigit():
        return len(bare) >= 6 and (quoted or how != _LOOSE)
    if bare.isalpha() and plain:
        if quoted:
            return b"." not in value and b"_" not in value.strip(b"_") and len(value) >= 5
        return how in (_ENV, _ELEMENT) or (how == _LINE and len(value) >= 6 and value.islower() and bare == value)
    if quoted:
        return True
    if _is_code(value):
        return False
    return len(value) >= (6 if how in (_LOOSE, _TIGHT, _SAID) else 4) and any(byte in value for byte in _DIGITS + b"!@#$%^&*+?~")


def _stands_for_one(value: bytes) -> bool:
    """${PASSWORD}, {password}, <password>, %s, ***, …: useful to the reader and no secret."""
    first, last = value[:1], value[-1:]
    if first == b"<" and last == b">" or first == b"{" and last == b"}" or first == b"[" and last == b"]":
        return True
    if first == b"%" and last == b"%":
        return True
    if first == b"$" and not value[1:].translate(None, WORD + b":"):
        return value[1:2].isupper() or value[1:2] in b"{_0123456789" or value[1:].islower() and value[1:].isalpha()
    if len(set(value)) <= 2 or any(hole in value for hole in _HOLES):
        return True
    low = value.lower()
    if low.startswith((b"your", b"my-", b"my_", b"<", b"example", b"placeholder", b"insert", b"replace", b"enter", b"xxx", b"...")):
        return True
    if last in (b":", b"?") and value[:-1].isalpha():
        return True  # a label
    return b"://" in value or value.startswith((b"/", b"./", b"../", b"~/", b"\xe2\x80\xa6"))


def _is_code(value: bytes) -> bool:
    """`self.password`, `getpass()`, `os.environ['X']`, `a->b`, `Vec<u8>`, `&str`: something that is computed."""
    if any(sign in value for sign in (b"(", b"[", b"{", b"->", b"::", b"=>", b"<", b"|", b"//", b"==")):
        return True
    if value[:1] in (b"&", b"*", b"-", b"+", b"=", b"!", b":", b".", b",", b"#"):
        return len(value) < 8 or not is_random(value)
    parts = value.split(b".")
    return len(parts) > 1 and all(map(_is_name, parts))


def _is_name(value: bytes) -> bool:
    return bool(value) and not value.translate(None, WORD) and not value[:1].isdigit()


def _is_phrase(value: bytes, *, phrase: bool) -> bool:
    words = value.split()
    if phrase:
        return len(words) <= 12 and not any(word.lower() in _IN_SENTENCES for word in words[:2])
    return 4 <= len(words) <= 12 and all(word.isalpha() and word.islower() and word not in _IN_SENTENCES for word in words)


def is_key(value: bytes) -> bool:
    """Whether a value looks random: 16 characters or more, digits and letters, in pieces shorter than words are."""
    if not 16 <= len(value) <= LONGEST or value.translate(None, CLASSES["sums"] + b"@#^*|"):
        return False
    if value.startswith((b"/", b"./", b"~/", b"http", b"[redacted:")) and value.count(b"/") > 1 or b"://" in value:
        return False
    if not is_random(value) or any(hole in value for hole in _HOLES):
        return False
    return _pieces(value[:256]) * PIECE >= len(value[:256].translate(None, b"_-./:=%"))


PIECE = 3.6  # characters; random letters and digits change their kind after 2.1 on average, names after 5


def _pieces(value: bytes) -> int:
    """How often letters, capitals and digits follow each other, but for a capital that begins a word."""
    kinds = value.translate(_KINDS)
    return 1 + sum(
        kinds.count(pair)
        for pair in (b"ld", b"dl", b"ud", b"du", b"lu")
    )


_KINDS = bytes(
    ord("d") if byte in _DIGITS else ord("l") if 97 <= byte <= 122 else ord("u") if 65 <= byte <= 90 else ord("-")
    for byte in range(256)
)


# --- headers, cookies, flags ---

_SCHEMES = (b"basic", b"bearer", b"token", b"digest", b"negotiate", b"apikey", b"ssws", b"bot", b"key", b"oauth")


def _header(raw: bytes, low: bytes, at: int, end: int) -> Span | None:
    """Authorization: SCHEME CREDENTIALS, whatever quotes and signs stand between."""
    i = _skip_quote(raw, end)
    part = raw[i : i + 24]
    i += len(part) - len(part.lstrip(b" \t:=>,('\"\\")) if part[:1] in (b":", b"=", b",", b" ", b")") else 0
    word = low[i : i + 12]
    scheme = next((each for each in _SCHEMES if word.startswith(each + b" ") or word.startswith(each + b"%20")), b"")
    if not scheme:
        start, end, _ = _bounds(raw, i, _LOOSE)
        return (start, end, "authorization") if is_key(raw[start:end]) else None
    i = _skip_space(raw, i + len(scheme) + (2 if low[i + len(scheme) : i + len(scheme) + 1] == b"%" else 0) + 1)
    return _credentials(raw, i)


def _bearer(raw: bytes, at: int, end: int) -> Span | None:
    if raw[end : end + 1] not in (b" ", b"\t") or raw[at - 1 : at].isalnum():
        return None
    start, end, _ = _bounds(raw, _skip_space(raw, end), _LOOSE)
    return (start, end, "authorization") if is_key(raw[start:end]) else None


def _credentials(raw: bytes, i: int) -> Span | None:
    start, end, _ = _bounds(raw, i, _LOOSE)
    value = raw[start:end]
    if len(value) < 6 or _stands_for_one(value) or value.lower() in _PLACEHOLDERS or _is_code(value):
        return None
    if value.isalpha() and (value.islower() or value.istitle() or value.isupper()):
        return None  # "Basic authentication"
    return (start, end, "authorization") if is_random(value) or value.endswith(b"=") else None


def _cookie(raw: bytes, low: bytes, at: int, end: int) -> Span | None:
    """Cookie: a=b; c=d and Set-Cookie: a=b; Path=/, all of it where any value looks like one of a session."""
    i = _skip_quote(raw, end)
    if raw[i : i + 1] not in (b":", b"=") or raw[i + 1 : i + 2] == b"=":
        return None
    i = _skip_space(raw, i + 1)
    j = _skip_quote(raw, i)
    part = raw[j : j + LONGEST]
    stop = len(part)
    for each in (b"\n", b"\r", b'"', b"'", b"\\n", b"\\r", b"\\", b"`"):
        if (found := part.find(each, 0, stop)) >= 0:
            stop = found
    pairs = [pair.strip().partition(b"=") for pair in part[:stop].split(b";")]
    for name, is_pair, value in pairs:
        if is_pair and name and not name.translate(None, _NAME) and len(value) >= 8 and not value.translate(None, CLASSES["sums"]):
            if is_random(value) and any(byte in value for byte in _DIGITS) and not _stands_for_one(value):
                return j, j + stop, "cookie"
    return None


_TAKES_P = (b"mysql", b"mariadb", b"sshpass")


def _flags(raw: bytes, low: bytes) -> list[Span]:
    """mysql -pX, sshpass -p X, curl -u name:X, redis-cli -a X: only behind a command whose flag it is."""
    found: list[Span] = []
    for command, flag, glued in _COMMANDS:
        at = low.find(command)
        while at >= 0:
            line = raw[at : at + 512].partition(b"\n")[0].partition(b"\\n")[0]
            place = line.find(flag)
            if place >= 0 and not low[at - 1 : at].isalnum():
                start = at + place + len(flag)
                if not glued or raw[start : start + 1] not in (b" ", b""):
                    span = _flag_value(raw, _skip_space(raw, start), user=b":" in flag or flag in (b" -u ", b" --user "))
                    if span:
                        found.append(span)
            at = low.find(command, at + len(command))
    return found


_COMMANDS = (
    (b"mysql", b" -p", True),
    (b"mariadb", b" -p", True),
    (b"sshpass", b" -p", False),
    (b"redis-cli", b" -a ", False),
    (b"curl", b" -u ", False),
    (b"curl", b" --user ", False),
    (b"wget", b" --user ", False),
    (b"docker login", b" -p ", False),
    (b"ldapsearch", b" -w ", False),
)


def _flag_value(raw: bytes, i: int, *, user: bool) -> Span | None:
    start, end, quoted = _bounds(raw, i, _FLAG)
    if user:
        name, colon, _ = raw[start:end].partition(b":")
        if not colon:
            return None
        start += len(name) + 1
    value = raw[start:end]
    if len(value) < 3 or _stands_for_one(value) or value.lower() in _PLACEHOLDERS or value[:1] in (b"$", b"-"):
        return None
    return start, end, PASSWORD
