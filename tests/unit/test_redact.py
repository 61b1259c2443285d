"""What redact promises: known secrets are gone, other text is not touched, and neither size nor nesting hurts."""

from __future__ import annotations

import json
import random
import re
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.redact import CUT, DEEPEST, EDGE, keywords, patterns, private_tags, redact, redact_all, shorten
from tests.corpora import assert_holds, read_corpus
from tests.growth import assert_linear
from tests.planted import ALNUM, CARRIERS, FORMATS, HEX, chars, secrets_of
from tests.tables import table

MODULE = sys.modules["foreword.redact"]


def assert_gone(secret: str, text: str) -> None:
    left = [secret[i : i + 8] for i in range(max(1, len(secret) - 7)) if secret[i : i + 8] in text]
    assert not left, f"{left} of {secret!r} is left in {text!r}"


def test_no_window_of_a_secret_is_left_in_any_carrier() -> None:
    for name in FORMATS:
        for known, body in secrets_of(name, 1):
            for carrier in CARRIERS.values():
                text = carrier.replace("{}", known + body)
                if "office" in known and "@" in carrier:
                    continue  # a Teams webhook is no user's name, and holds an @ itself
                clean = redact(text)
                assert_gone(body, clean)
                assert redact(clean) == clean
                for around in carrier.split("{}"):
                    assert around in clean, clean


def test_the_mark_names_the_format() -> None:
    for name in FORMATS:
        for known, body in secrets_of(name):
            assert re.fullmatch(r"(?:12|acme\.)?\[redacted:[a-z0-9-]+\]", redact(known + body))


TRIGGERS = [trigger for row in patterns.FORMATS for trigger in row.prefixes]


def test_every_format_of_the_table_is_made_up_here() -> None:
    made = [known + body for name in FORMATS for known, body in secrets_of(name, 1)]
    rare = {"MD", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT", "Oj", "Oz"}  # other first digits of a Discord user
    assert {trigger for trigger in TRIGGERS if not any(trigger in each for each in made)} <= rare


def chars_of(kind: str) -> set[str]:
    return set(re.findall(f"[{patterns.CLASSES[kind]}]", "".join(map(chr, range(128)))))


def test_the_table_says_what_it_means() -> None:
    for row in patterns.FORMATS:
        assert re.fullmatch(r"[a-z0-9-]+", row.name)
        assert row.kind in patterns.CLASSES
        assert row.begins in ("", "word") or (row.begins in patterns.CLASSES and row.before)
        assert chars_of(row.kind) <= chars_of("any"), "words would break there"
        assert all(row.before + len(prefix) + row.least >= patterns.SHORTEST for prefix in row.prefixes), row


def test_secrets_without_a_gap_are_all_gone() -> None:
    for first in FORMATS:
        rng = random.Random(first)
        for known, make in rng.sample(list(FORMATS.values()), 12):
            one, other = FORMATS[first][0] + FORMATS[first][1](rng), known + make(rng)
            for glue in ("\n", ",", "=", "\\n", ":", "|", "&"):
                clean = redact(one + glue + other)
                assert_gone(one[-16:], clean)
                assert_gone(other[-16:], clean)
                assert redact(clean) == clean


# --- ordinary text ---

ORDINARY = """
task-sk-learn sk-learn risk-averse-investors-of-the-2020s-and-later disk-usage-monitor-service-v2-Beta
hf_hub_download hf_hub_url npm_config_registry npm_package_version npm_lifecycle_event ghp_ gho_x ghs_something
sk-estimator-doc-link sk-toggleable__content sk-container-id-10 sk-cube-grid sk-folding-cube-animation-delay
task-0f3a9b1c2d4e5f60718293a4b5c6d7e8 desk-ant-colony-simulation-in-python3-with-numpy
disk_test_performancebenchmark1 task_live_reloadingserver2 sk_test_ sk_live_ pk_live_51HabcdefGHIJKLMN0pqrstu
MSG.some_long_module_name_here.another_rather_long_attribute_name_here SG.x.y
AKIA ASIA ASIAPACIFIC MAKIAVELLI AIza eyJ eyJhbGciOiJIUzI1NiJ9 eyJhbGciOiJIUzI1NiJ9.abc
xoxo-hugs-and-kisses-to-everyone xapp-onboarder-and-its-friends xoxb- glpat- glpat-short pypi-AgE pypi-server-name
private Private PRIVATE the private key, private: int x; #private @private /private/tmp </privateer> <privateKey>
<private-note>x</private-note> <private.x> <private:x> <privates> if (a < privateCount) List<privateType> a <private)
-----BEGIN CERTIFICATE----- MIIB -----END CERTIFICATE----- -----BEGIN PUBLIC KEY----- x -----END PUBLIC KEY-----
PRIVATE KEY BEGIN PRIVATE KEY -- BEGIN PRIVATE KEY --
https://example.com:8080/@scope/name http://localhost:4873/@types/node git@github.com:org/repo.git@v1 ssh://git@host:22/x
http://localhost:${port}/@vite/client https://user@host/x mailto:a@b.c https://host/a:b@c http://[::1]:8080/@x
postgres://user:${PASSWORD}@host/db https://{user}:{password}@host https://%s:%s@host https://user:***@host https://u:@h
jdbc:oracle:thin:@host:1521 hooks.slack.com/services/ https://hooks.slack.com https://api.slack.com/services/a/b/c
[redacted:github-token] [redacted:private] [cut]
"""


def test_ordinary_words_are_not_touched() -> None:
    for line in ORDINARY.splitlines():
        for word in (line, *line.split()):
            assert redact(word) == word
    assert redact(ORDINARY) == ORDINARY


STDLIB = Path(sysconfig.get_path("stdlib"))


def test_at_most_one_false_hit_in_a_megabyte_of_ordinary_source() -> None:
    # All of the standard library but its tests (made-up passwords, cookies and keys on purpose) and what pip installed.
    # Two places of 12 MB are hit, and both hold a password: the examples of urllib.request and distutils.register.
    paths = [path for path in sorted(STDLIB.rglob("*.py")) if not TESTS.intersection(path.parts)]
    hits, size = [], 0
    for path in random.Random(7).sample(paths, min(len(paths), 400)):
        text = path.read_text(encoding="utf-8", errors="replace")
        size += len(text)
        clean = redact(text)
        hits += [path.name] * (clean.count("[redacted:") - text.count("[redacted:"))
    assert size > 2_000_000
    assert len(hits) <= size / 1_000_000, hits


TESTS = {"test", "tests", "idle_test", "site-packages"}


def test_text_without_a_secret_is_the_same_object() -> None:
    text = "sk-learn task-list-of-everything-there-is disk-usage npm_config_registry hf_hub_download ghs_x eyJ xoxo "
    text += "the private key of /private/tmp, List<String> private; <privateKey> https://a.b:80/@c x@y.z  "
    text *= 50
    assert redact(text) is text
    assert redact(text + " end", cut="head") == text + " [cut]"
    value = {"a": [text]}
    assert redact_all(value) is value


PRIVATE = "[redacted:private]"


# --- private keys ---

DASHES = "-" * 5


def key_block(label: str, body: str, *, line: str = "\n", end: bool = True) -> str:
    closing = f"{line}{DASHES}END {label}{DASHES}" if end else ""
    return f"{DASHES}BEGIN {label}{DASHES}{line}{body}{closing}"


KEY_LABELS = ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY", "OPENSSH PRIVATE KEY"]
KEY_LABELS += ["ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK", "ANY PRIVATE KEY", "X25519 PRIVATE KEY"]


@pytest.mark.parametrize("line", ["\n", "\r\n", "\\n", "\\r\\n", "\\\\n", "\n+", "\n-", "\n    ", "\n> ", "%0A", " "])
@pytest.mark.parametrize("label", KEY_LABELS)
def test_a_private_key_is_gone_and_what_is_around_stays(label: str, line: str) -> None:
    rng = random.Random(label)
    rows = [chars(rng, ALNUM + "+/", 64) for _ in range(5)]
    body = line.join(["Proc-Type: 4,ENCRYPTED", *rows] if "RSA" in label else rows)
    clean = redact(f"before {key_block(label, body, line=line)} after")
    assert clean == "before [redacted:private-key] after"
    for row in rows:
        for half in (key_block(label, body, line=line, end=False), f"{body}{line}{DASHES}END {label}{DASHES}"):
            assert_gone(row, redact(f"before {half}"))
    assert redact(f"before {key_block(label, body, line=line, end=False)} more") == "before [redacted:private-key]"


def test_public_keys_and_certificates_stay() -> None:
    for label in ("CERTIFICATE", "PUBLIC KEY", "RSA PUBLIC KEY", "PGP PUBLIC KEY BLOCK", "CERTIFICATE REQUEST"):
        text = key_block(label, "QUJD" * 40)
        assert redact(text) is text
    both = (
        key_block("CERTIFICATE", "QUJD")
        + "\n"
        + key_block("PRIVATE KEY", "REVG")
        + "\n"
        + key_block("CERTIFICATE", "R0hJ")
    )
    assert redact(both).count("CERTIFICATE") == 4
    assert "REVG" not in redact(both)


def test_other_writings_of_a_private_key_are_known() -> None:
    for text in (
        "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nSECRETS\n---- END SSH2 ENCRYPTED PRIVATE KEY ----",
        f"{DASHES}BEGIN%20RSA%20PRIVATE%20KEY{DASHES}%0ASECRETS%0A{DASHES}END%20RSA%20PRIVATE%20KEY{DASHES}",
        f"{DASHES}BEGIN+PRIVATE+KEY{DASHES}SECRETS{DASHES}END+PRIVATE+KEY{DASHES}",
    ):
        assert redact(f"{text} after") == "[redacted:private-key] after"


# --- passwords in URLs ---


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("https://user:", "@example.com/x"),
        ("postgres://user:", "@db:5432/name?sslmode=on"),
        ("redis://:", "@localhost:6379/0"),
        ("mongodb+srv://u.v:", "@a,b,c/d"),
        ('{"url": "https://user:', '@example.com"}'),
        ('{"url": "https:\\/\\/user:', '@example.com\\/x"}'),
        ("pip install git+https://oauth2:", "@gitlab.com/x/y.git@v1.0"),
        ("http_proxy=http://u%40x:", "@proxy:3128"),
        ("+  url = https://user:", "@example.com/@scope/name"),
        ("(https://user:", "@h) and x@y.z"),
    ],
)
@pytest.mark.parametrize(
    "password", ["hunter22", "p@ss@word", "a:b:c", "pa%2Fss", "12345678", "$ecret!", "pa/ss#w?rd", "[x]{y}", "пароль"]
)
def test_only_the_password_of_a_url_is_replaced(before: str, after: str, password: str) -> None:
    assert redact(before + password + after) == f"{before}[redacted:url-password]{after}"


def test_a_token_within_a_password_takes_the_whole_password_along() -> None:
    token = "gh" + "p_" + chars(random.Random(1), ALNUM, 36)
    for password in (token, f"{token}@rest", f"a:{token}", f"{token}!rest"):
        clean = redact(f"https://u:{password}@h/x")
        assert_gone(token, clean)
        assert "rest" not in clean
        assert clean.endswith("@h/x")


# --- a piece of a longer text ---


def test_half_a_secret_at_the_cut_is_dropped() -> None:
    for name in FORMATS:
        for known, body in secrets_of(name):
            secret = known + body
            for at in range(8, len(secret), 7):
                head, tail = redact(f"a b {secret[:at]}", cut="head"), redact(f"{secret[at:]} c d", cut="tail")
                assert (head, tail) == (f"a b {CUT}", f"{CUT} c d")


def test_a_cut_at_a_space_drops_nothing() -> None:
    assert redact("a b ", cut="head") == "a b "
    assert redact("\na b", cut="tail") == "\na b"
    assert redact("", cut="head") == redact("", cut="tail") == ""


def test_a_cut_drops_no_more_than_its_bound() -> None:
    data = "x" * (3 * EDGE)
    assert redact(data, cut="head") == "x" * (2 * EDGE) + CUT
    assert redact(data, cut="tail") == CUT + "x" * (2 * EDGE)


def test_a_cut_leaves_text_without_spaces_alone() -> None:
    assert redact("今天我们决定使用这个方法ghp_abc", cut="head") == "今天我们决定使用这个方法" + CUT
    assert redact("abc_def今天我们决定", cut="tail") == CUT + "今天我们决定"


def test_a_block_without_its_end_or_beginning_reaches_to_the_cut() -> None:
    assert redact("a <private>x y", cut="head") == f"a {PRIVATE}"
    assert redact("a <private>x\n", cut="head") == f"a {PRIVATE}"
    assert redact("x y</private> b", cut="tail") == f"{PRIVATE} b"
    assert redact("a<private>b c d", cut="tail") == CUT
    assert redact("a <private>b c", cut="tail") == f"{CUT} {PRIVATE}"
    assert redact(f"QUJD QUJD\n{DASHES}END RSA PRIVATE KEY{DASHES}\nb", cut="tail") == "[redacted:private-key]\nb"
    assert redact(f"b\n{DASHES}BEGIN RSA PRIVATE KEY{DASHES}\nQUJD", cut="head") == "b\n[redacted:private-key]"


# --- JSON values ---


def test_every_string_of_a_value_is_redacted_keys_too() -> None:
    token = "gh" + "p_" + chars(random.Random(2), ALNUM, 36)
    value = {token: [token, 1, None, True, 2.5, {"deep": {token: token}}, (token,)], "ok": "text", "": []}
    clean = redact_all(value)
    mark = "[redacted:github-token]"
    assert clean == {mark: [mark, 1, None, True, 2.5, {"deep": {mark: mark}}, [mark]], "ok": "text", "": []}
    assert redact_all(clean) == clean


def test_two_secret_keys_keep_both_their_values() -> None:
    rng = random.Random(3)
    value = {"gh" + "p_" + chars(rng, ALNUM, 36): number for number in range(4)}
    clean = redact_all(value)
    assert sorted(clean.values()) == [0, 1, 2, 3]
    assert redact_all(clean) == clean


def test_a_block_over_several_lines_of_a_list_is_hidden() -> None:
    assert redact_all({"lines": ["a", "+<private>", "+hidden", "+</private>", " b"]}) == {
        "lines": ["a", f"+{PRIVATE}", " b"]
    }
    key = key_block("PRIVATE KEY", "QUJD\nREVG").split("\n")
    assert redact_all(["a", *key, "b"]) == ["a", "[redacted:private-key]", "b"]
    assert redact_all(["a", "<private>x</private>", "b"]) == ["a", PRIVATE, "b"]
    assert redact_all(["a\nb", "c"]) == ["a\nb", "c"]


@pytest.mark.parametrize("levels", [DEEPEST - 1, DEEPEST + 1, 100_000])
@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"k": inner}, lambda inner: [1, {"k": inner}]])
def test_depth_never_breaks_it(levels: int, wrap) -> None:
    token = "gh" + "p_" + chars(random.Random(4), ALNUM, 36)
    value: object = token
    for _level in range(levels):
        value = wrap(value)
    text = json.dumps(redact_all(value))
    assert token not in text
    assert "[redacted:" in text


# --- for any text ---

RNG = random.Random(5)
SECRETS = [known + make(RNG) for known, make in FORMATS.values()]
SHARDS = [known for known, _make in FORMATS.values()] + TRIGGERS
SHARDS += r"""
    <private <private> </private> <private/> &lt; \u003c private < > / [ ] :// :\/\/ ://u: @ : pw@ https ? #
    8080/ $ { } * % %3D %2F ;3m - -- BLOCK \n n m K . .. _ a Z 9 abcd1234 1- , ' 密 é [redacted:private]
    [redacted:github-token] [redacted: [cut services/ a/ sk ant-api03-
""".split()  # noqa: SIM905 - data, read as text
SHARDS += [
    "\u200b",
    f"{DASHES}BEGIN ",
    f"{DASHES}END ",
    "RSA ",
    "PRIVATE KEY",
    DASHES,
    "\\",
    " ",
    "\n",
    "aB3" * 12,
    "x" * 40,
    "0f" * 16,
    '"',
    CUT,
]

TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from(SHARDS + SECRETS), max_size=12).map("".join),
    st.lists(st.one_of(st.sampled_from(SHARDS + SECRETS), st.text(max_size=3)), max_size=12).map("".join),
)
CUTS = st.sampled_from(["", "head", "tail"])


@settings(max_examples=400, deadline=None)
@given(TEXTS, CUTS)
def test_twice_is_the_same_as_once(text: str, cut: str) -> None:
    once = redact(text, cut=cut)
    assert redact(once, cut=cut) == once
    assert redact(once) == once


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(SECRETS), st.text("abc XYZ,.;\n=\"'()é密", max_size=40), st.text("abc XYZ,;\n\"'()é密", max_size=40)
)
def test_the_text_around_a_secret_survives(secret: str, before: str, after: str) -> None:
    clean = redact(f"{before} {secret} {after}")
    assert re.fullmatch(re.escape(before) + r" (?:12|acme\.)?\[redacted:[a-z0-9-]+\] " + re.escape(after), clean)


@settings(max_examples=60, deadline=None)
@given(st.recursive(TEXTS | st.none() | st.integers(), lambda x: st.lists(x) | st.dictionaries(TEXTS, x), max_leaves=8))
def test_any_value_is_clean_after_one_pass(value: object) -> None:
    once = redact_all(value)
    assert redact_all(once) == once


# --- linear in any text ---


def repeats(tree) -> list[tuple[str, int, object]]:
    """(kind, greatest count, what is repeated) for each repeat in a parsed pattern.

    An atomic group of one repeat is a possessive repeat, written so that Python 3.11.2 understands it.
    """
    found = []
    for op, arg in tree:
        if str(op) == "ATOMIC_GROUP" and len(arg) == 1 and str(arg[0][0]) == "MAX_REPEAT":
            _, most, what = arg[0][1]
            found += [("POSSESSIVE_REPEAT", most, what), *repeats(what)]
            continue
        if str(op) in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            found.append((str(op), arg[1], arg[2]))
        inner = [arg] if not isinstance(arg, tuple | list) else arg
        for part in inner:
            for tree_of in part if isinstance(part, list) else [part]:
                if type(tree_of).__name__ == "SubPattern":
                    found += repeats(tree_of)
    return found


def test_no_expression_that_runs_over_a_text_can_go_back_over_an_unbounded_stretch() -> None:
    expressions = [
        private_tags.compile_tag(),
        private_tags.KEY_BLOCK,
        re.compile(MODULE._PASSWORD),
        re.compile(MODULE._USER),
        keywords._MAY_BE_FLAG,
        patterns._WORD,
        *patterns._compile_heads(),
    ]
    expressions += [patterns._compile_row(number) for number in range(len(patterns.FORMATS))]
    expressions += [keywords._compile(pattern) for _, _, pattern in keywords._PLACES]
    expressions += [keywords._compile(pattern) for _, pattern, _ in keywords._COMMANDS]
    expressions += map(keywords._compile, (keywords._HEADER, keywords._BEARER, keywords._COOKIE))
    expressions += [keywords._BARE, keywords._WHOLE]
    for expression in expressions:
        for kind, most, _what in repeats(re._parser.parse(expression.pattern)):
            assert kind == "POSSESSIVE_REPEAT" or int(most) <= 128, expression


TABLES = ["password,x\n1,2\n", "a|password\n", "user  password\nx  y1\n", "password|", "user;password\nx;a1b2c3\n"]
TABLES += ["contraseña: a1b2c3 ", "contraseña a b ", "https://aaaaaaaaaaaaaaaaaaaa1@h ", "password for a "]
HOSTILE = r"""
    <private <private> </private> < &amp; %25 ＜ｐｒ private - QUJD a1B2 @ eyJ eyJ. -eyJaaaaaaaaaaaa
    eyJaaaaaaaaaaaa. eyJaaaaaaaaaaaa.b. sk- sk-ant- -sk-aB \nsk- :// ://a: ://a:b/ ://a:b@ :\/\/a:b
    ://[redacted:x] xapp-1 SG.aaaaaaaaaaaaaaaaaaaa whsec_\/ password= pass <password>
""".split()  # noqa: SIM905 - data, read as text
HOSTILE += [
    "<private ",
    "< ",
    "\\",
    "<\u200b",
    f"{DASHES}BEGIN",
    f"{DASHES}BEGIN A",
    "PRIVATE KEY ",
    f"{DASHES}END PRIVATE KEY{DASHES}",
    "sk- ",
    "password: ",
    'password="',
    "password='\\",
    "--password ",
    "token: a1",
    "Cookie: a=",
    "key=" * 3,
    "authorization: bearer ",
    "mysql -p",
    "curl -u a:",
    "password is ",
    "api_key: a1B2c3D4",
    *TABLES,
]
HOSTILE += [row.prefixes[-1] + "a1" for row in patterns.FORMATS if row.check or row.begins][::4]


def test_hostile_text_is_clean_after_one_pass() -> None:
    for unit in HOSTILE:
        clean = redact(unit * (60_000 // len(unit)))
        assert redact(clean) == clean


@table("piece", TABLES)
def test_tables_and_names_are_read_in_linear_time(piece: str) -> None:
    assert_linear(redact, piece)


@table("form", ["password = {p}\n", "api_key={k}\n", "curl -u ada:{p} x\n", "ada,{p}\n"])
def test_the_rest_of_a_text_of_a_thousand_secrets_is_hidden_and_other_texts_are_read_on(form: str) -> None:
    rng = random.Random(form)
    secrets = [KINDS["{h}"](rng) for _ in range(patterns.MOST + 20)]
    text = "user,password\n" + "".join(re.sub(r"\{.\}", secret, form) for secret in secrets)
    clean = redact_all([text, "", text[: len(text) // 2], "end"])
    for each in clean:
        assert not any(secret in each for secret in secrets)
    assert patterns.MOST <= clean[0].count("[redacted:") <= patterns.MOST + 1
    assert clean[3] == "end"
    assert redact_all(clean) == clean


@pytest.mark.parametrize(
    "parts",
    [
        [
            {"type": "text", "text": "<private>"},
            {"type": "text", "text": "canary"},
            {"type": "text", "text": "</private>"},
        ],
        [{"lines": ["a", "<PRIVATE x=1>"]}, {"lines": ["canary"]}, {"lines": ["</private>", "b"]}],
        [1, "<private>", ["canary"], "</private>"],
        [["<private>"], ["canary"]],
        {"<private>": "canary"},
        [{"text": "-----BEGIN RSA PRIVATE " + "KEY-----"}, {"text": "canary"}],
    ],
)
def test_what_one_part_opens_hides_the_parts_behind_it(parts):
    assert "canary" not in str(redact_all({"first": "stays", "content": parts}))
    assert redact_all({"first": "stays", "content": parts})["first"] == "stays"
    once = redact_all(parts)
    assert redact_all(once) == once


# --- long texts are cut before they are read, so that every payload takes a bounded time ---


def test_a_long_text_keeps_its_head_and_its_tail_and_twice_is_once() -> None:
    item = {"out": "first " + "word " * 50_000 + "last", "short": "as it was"}
    clean = shorten(item, max_chars=4096)
    assert len(clean["out"]) <= 4096
    assert clean["out"].startswith("first word")
    assert clean["out"].endswith("word last")
    assert "characters left out" in clean["out"]
    assert clean["short"] == "as it was"
    assert shorten(clean, max_chars=4096) == clean


def test_no_secret_survives_at_any_place_of_the_cut() -> None:
    [(known, body)] = secrets_of("github ghp", 1)
    secret = known + body
    for at in range(1900, 2100):
        text = "x " * (at // 2) + secret + " y" * 4000
        assert body[:20] not in json.dumps(redact_all(shorten({"a": text, "b": text[::-1]}, max_chars=4096)))
        assert body[-20:] not in json.dumps(
            redact_all(shorten({"a": "y " * 4000 + secret + " x" * (at // 2)}, max_chars=4096))
        )


@pytest.mark.parametrize("at", [0, 1000, 2000, 3000, 30_000, 57_000, 58_500])
def test_a_private_block_across_the_cut_is_hidden_whole(at: int) -> None:
    text = "open " * 12_000
    for opens, closes in (("<private>", "</private>"), ("<private>", ""), ("", "</private>")):
        secret = f"{opens}{'wombat ' * 800}{closes}"
        clean = json.dumps(redact_all(shorten([text[:at] + secret + text[at:]], max_chars=4096)))
        assert "wombat" not in clean


def test_the_part_that_is_read_is_bounded() -> None:
    huge = {"many": ["line of a list"] * 100_000, "long": ["x " * 40_000] * 20, "deep": {"a": {"b": "y " * 900_000}}}
    clean = shorten(huge, max_chars=65_536)
    texts = json.dumps(clean)
    assert len(texts) < 8 * 65_536
    assert "items left out" in texts


@pytest.mark.parametrize(
    "between", ["password =| Tr0ub4dor9x", "--password| Tr0ub4dor9x", "api_key =| 9f8a7b6c5d4e3f2a1b0c"]
)
def test_a_name_and_its_value_on_both_sides_of_a_cut_are_redacted(between: str) -> None:
    name, value = between.split("|")
    for shift in range(-3, 4):
        filler = "word " * 8_000
        at = (4096 - 64) // 2
        head = f"{filler[: at - len(name) + shift]}{name}{value} {filler}"
        tail = f"{filler}{name}{value} {filler}"[: -len(filler)] + filler[: at - len(value) - 1 + shift]
        for text in (head, tail):
            assert value.strip() not in str(redact_all(shorten({"a": text}, max_chars=4096)))


def test_a_block_that_begins_in_what_a_list_leaves_out_hides_the_rest() -> None:
    lines = ["line"] * 6000
    for opener in ("<private>", "-----BEGIN RSA PRIVATE KEY-----"):
        items = [*lines[:1500], opener, *lines[:4400], "wombat"]
        assert "wombat" not in str(redact_all(shorten(items, max_chars=65_536)))
    items = [*lines[:2000], "--password", "wombat77", *lines[:998]]
    assert "wombat77" not in str(redact_all(shorten(items, max_chars=65_536)))


def test_marks_that_are_longer_than_secrets_change_nothing_the_second_time() -> None:
    item = {"out": "password=ab12\n" * 4681, "more": ["key=ab12cd34ef56ab78 "] * 50}
    once = shorten(redact_all(shorten(item, max_chars=65_536)), max_chars=65_536)
    again = shorten(redact_all(shorten(once, max_chars=65_536)), max_chars=65_536)
    assert once == again


# --- the corpora: tables, tokens in URLs, names in other languages ---

KINDS = {
    "{p}": lambda rng: rng.choice(
        [
            chars(rng, ALNUM, 10),
            chars(rng, ALNUM, 9) + rng.choice("!#$%&*+?") + "x",
            "wombat" + chars(rng, "0123456789", 3),
            chars(rng, "0123456789", 8),
        ]
    ),
    "{k}": lambda rng: chars(rng, ALNUM, 32),
    "{h}": lambda rng: chars(rng, HEX, 40),
    "{g}": lambda rng: "gh" + "p_" + chars(rng, ALNUM, 36),
}


def hides_its_secrets(form: str) -> bool:
    for seed in range(5):
        rng, text, secrets = random.Random(f"{seed} {form}"), form.replace("\\t", "\t"), []
        for mark, make in KINDS.items():
            while mark in text:
                secrets.append(make(rng))
                text = text.replace(mark, secrets[-1], 1)
        clean = redact(text)
        if any(secret in clean for secret in secrets) or redact(clean) != clean:
            return False
    return True


def is_unchanged(form: str) -> bool:
    text = form.replace("\\t", "\t")
    return redact(text) is text


def test_secrets_in_tables_in_urls_and_by_names_of_any_language_are_gone() -> None:
    assert_holds(read_corpus("secret_texts.txt", held_out=False), hides_its_secrets)


def test_tables_urls_and_sentences_without_a_secret_stay() -> None:
    assert_holds(read_corpus("plain_texts.txt", held_out=False), is_unchanged)


@pytest.mark.prove
def test_secrets_of_the_texts_that_were_kept_aside_are_gone() -> None:
    assert_holds(read_corpus("secret_texts.txt", held_out=True), hides_its_secrets)


@pytest.mark.prove
def test_texts_that_were_kept_aside_stay() -> None:
    assert_holds(read_corpus("plain_texts.txt", held_out=True), is_unchanged)
