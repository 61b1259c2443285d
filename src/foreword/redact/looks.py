"""The value beside a telling name -> whether it is a secret, or a placeholder, a variable, code or prose. Light."""

from __future__ import annotations

from foreword.redact.formats import CLASSES, WORD, is_random

LONGEST = 4096  # bytes of a key; a longer one is data
PIECE = 3.6  # characters; random letters and digits change their kind after 2.1 on average, names after 5
_DIGITS = CLASSES["digit"]
_SIGNS = b"!@#$%^&*+?~"
_PLACEHOLDERS = frozenset(
    b"""password passwd passwort passphrase pass pwd secret token key apikey api_key none null nil undefined true false
    yes no on off str string bytes bool int text any object optional required hidden unset empty default example sample
    test dummy foo bar baz changeme change_me changeit xxx todo tbd redacted masked private public basic bearer digest
    username user prompt input self this value values anonymous anonymous@ unknown ask const field enter function return
    async await lambda default_value type number boolean float char varchar sha256 sha512 md5 bcrypt oauth2 base64 utf8
    utf-8 latin1 ascii strict auto always never missing incorrect correct invalid valid wrong expired and or not is was
    the with for from here there login logout signup""".split()
)
_IN_SENTENCES = frozenset(
    b"""a an the your you to of is are was for must be in on at or and not with this that it if please enter type has
    have no can should from by as will may least new old use""".split()
)
_HOLES = (b"${", b"{{", b"%(", b"%s", b"$(", b"<%", b"#{", b"{}", b"[redacted:")
_MADE_UP = (b"your", b"my-", b"my_", b"example", b"placeholder", b"insert", b"replace", b"enter", b"xxx", b"...")
_CODE = (b"(", b"[", b"{", b"->", b"::", b"=>", b"<", b"|", b"//", b"==")


def is_password(value: bytes, *, quoted: bool, sure: bool, line: bool, tight: bool, phrase: bool) -> bool:
    """Whether a value next to `password` is one.

    Without quotes a plain word is one only where the place is *sure* (`NAME=x` on a line of its own, an element), or
    where name and word are the whole *line*; a number or a short one only there, or where both stand *tight* together.
    A *phrase* may hold spaces.
    """
    if not 4 <= len(value) <= 256 or stands_for_one(value):
        return False
    if b" " in value or b"\n" in value:
        return quoted and _is_phrase(value, phrase=phrase)
    low = value.lower()
    plain = not value.translate(None, WORD + b"-.")
    if plain and (b"pass" in low or b"pwd" in low) and not (quoted and is_random(value) and value != low):
        return False  # the name of a field or a variable: new_password, DB_PASS, password2
    bare = value.translate(None, b"_-.")
    if bare.isdigit():
        return len(bare) >= 6 and (quoted or sure or line or tight)
    if bare.isalpha() and plain:
        if quoted:
            return b"." not in value and b"_" not in value.strip(b"_") and len(value) >= 5
        return sure or (line and len(value) >= 6 and value.islower() and bare == value)
    if quoted:
        return True
    return (
        len(value) >= (4 if sure or line or tight else 6)
        and not is_code(value)
        and any(each in value for each in _DIGITS + _SIGNS)
    )


def is_key(value: bytes) -> bool:
    """Whether a value looks random: 16 characters or more, digits and letters, in pieces shorter than words are."""
    if not 16 <= len(value) <= LONGEST or value.translate(None, CLASSES["any"] + b"#^*|"):
        return False
    if b"://" in value or (value.startswith((b"/", b"./", b"~/")) and value.count(b"/") > 1):
        return False
    if not is_random(value) or any(hole in value for hole in _HOLES):
        return False
    head = value[:256]
    return _pieces(head) * PIECE >= len(head.translate(None, b"_-./:=%"))


def are_credentials(value: bytes) -> bool:
    """Whether a value behind a scheme (`Basic`, `Bearer`) is one, and not the next word of a sentence."""
    if len(value) < 6 or stands_for_one(value) or is_code(value):
        return False
    if value.isalpha() and (value.islower() or value.istitle() or value.isupper()):
        return False  # "Basic authentication"
    return is_random(value) or value.endswith(b"=")


def is_given(value: bytes) -> bool:
    """Whether a value behind a flag that takes a password is one."""
    return len(value) >= 3 and value[:1] not in (b"$", b"-") and not stands_for_one(value)


def stands_for_one(value: bytes) -> bool:
    """${PASSWORD}, {password}, <password>, %s, ***, changeme, a path, a URL: useful to the reader and no secret."""
    low = value.lower()
    if low in _PLACEHOLDERS or low.startswith(_MADE_UP) or len(set(value)) <= 2:
        return True
    ends = value[:1] + value[-1:]
    if ends in (b"<>", b"{}", b"[]", b"%%") or any(hole in value for hole in _HOLES):
        return True
    if value[:1] == b"$" and not value[1:].translate(None, WORD + b":"):
        name = value[1:]
        return name[:1].isupper() or name[:1] in b"_0123456789" or (name.islower() and name.isalpha())
    if value[-1:] in (b":", b"?") and value[:-1].isalpha():
        return True  # a label
    return b"://" in value or value.startswith((b"/", b"./", b"../", b"~/", "…".encode()))


def is_code(value: bytes) -> bool:
    """`self.password`, `getpass()`, `os.environ['X']`, `a->b`, `Vec<u8>`, `&str`: something that is computed."""
    if any(sign in value for sign in _CODE):
        return True
    if value[:1] in (b"&", b"*", b"-", b"+", b"=", b"!", b":", b".", b",", b"#"):
        return len(value) < 8 or not is_random(value)
    parts = value.split(b".")
    return len(parts) > 1 and all(map(is_name, parts))


def is_name(value: bytes) -> bool:
    """Whether it could be the name of a variable or a type."""
    return bool(value) and not value.translate(None, WORD) and not value[:1].isdigit()


def _is_phrase(value: bytes, *, phrase: bool) -> bool:
    words = value.split()
    if phrase:
        return len(words) <= 12 and not any(word.lower() in _IN_SENTENCES for word in words[:2])
    plain = (word.isalpha() and word.islower() and word not in _IN_SENTENCES for word in words)
    return 4 <= len(words) <= 12 and all(plain)


_KINDS = bytes.maketrans(CLASSES["alnum"], b"u" * 26 + b"l" * 26 + b"d" * 10)


def _pieces(value: bytes) -> int:
    """How often letters, capitals and digits follow each other, but for a capital that begins a word."""
    kinds = value.translate(_KINDS)
    return 1 + sum(kinds.count(pair) for pair in (b"ld", b"dl", b"ud", b"du", b"lu"))
