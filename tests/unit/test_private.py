"""What stands within `<private>` is never kept, however the tag is written; nor what is behind one without an end."""

from __future__ import annotations

import json
import os
import random
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.hook import client
from foreword.redact import redact, redact_all
from foreword.redact.private_tags import LOOKALIKES, UNSEEN, styled

PRIVATE = "[redacted:private]"
FORMS = int(os.environ.get("FOREWORD_FORMS", "3000"))  # `make fuzz-private` tries 50,000
HIDDEN = [  # H is hidden, everything else stays
    "<private>H</private>",
    "a <private>H</private> b",
    "<PRIVATE>H</PRIVATE>",
    "<Private>H</pRiVaTe>",
    "<private>\nH\nH\n</private>\n",
    "<private >H</private >",
    "< private >H</ private >",
    "< private >H< / private >",
    "<\tprivate\n>H<\n/private\n>",
    '<private reason="x">H</private>',
    "<PRIVATE reason='a b' n=1>H</PRIVATE>",
    '<private reason="a > b">H</private>',
    "<private\nreason=x\n>H</private>",
    "<private><private>H</private>H</private> b",
    "<private>H<PRIVATE x>H< private >H</private>H</private>H</private> b",
    "<private>H<private/>H</private> b",
    "<private>H</private> b <private>H</private> c",
    "<private>H</private><private>H</private>",
    "<private></private>",
    "a <private>H",
    "a <private>H</privat",
    "a <private>H</private",
    "a <private>H</private H",
    "a <private>H</private x>H",
    "a <private>H</privateKey>H",
    "a <private H",
    "a <private",
    "a <private\n",
    "a <private/H",
    "a <private <b>H</b>",
    "a <private>H<private>H</private>H",
    "H</private> b",
    "H H\nH</private> b",
    "<private>H</private>H</private> b",
    "<private/>H</private> b",
    "H-----END</private> b",
    "&lt;private&gt;H&lt;/private&gt; b",
    "&LT;private&GT;H&LT;/private&GT; b",
    "&amp;lt;private&amp;gt;H&amp;lt;/private&amp;gt; b",
    "&#60;private&#62;H&#60;/private&#62; b",
    "&#x3c;private&#x3E;H&#x3C;&#x2f;private&#x3e; b",
    "&lt;private reason=&quot;x&quot;&gt;H&lt;/private&gt; b",
    "\\u003cprivate\\u003eH\\u003c/private\\u003e b",
    "\\u003Cprivate\\u003EH\\u003C\\/private\\u003E b",
    "\\x3cprivate\\x3eH\\x3c/private\\x3e b",
    "%3Cprivate%3EH%3C%2Fprivate%3E b",
    "%253Cprivate%253EH%253C%252Fprivate%253E b",
    "<private>H<\\/private> b",
    '{"a": "<private reason=\\"x\\">H</private>", "b": 1}',
    '{"a": "<private>\\nH\\n<\\/private>", "b": 1}',
    "＜private＞H＜/private＞ b",
    "＜ｐｒｉｖａｔｅ＞H＜／ｐｒｉｖａｔｅ＞ b",
    "＜ＰＲＩＶＡＴＥ＞H＜／ＰＲＩＶＡＴＥ＞ b",
    "<pri\u200bvate>H</pri\u200bvate> b",
    "<\u200bprivate\u200b>H<\ufeff/private\u2060> b",
    "<p\u00adr\u200ci\u200dv\u2060a\ufefft\u200be>H</private> b",
    "<\u3000private\u00a0>H</private\u3000> b",
    "<private密码H</private> b",
    "<private>H&lt;/private&gt; b",
    "`<private>H</private>` b",
    "<x><private>H</private></x>",
    "> <private>\n> H\n> </private>\n> b",
    "a<private>H</private>b",
    "<private>H-----BEGIN</private> b",
    "<private,>H</private> b",
    "<private;>H</private> b",
    "<private, now>H</private> b",
    "<private>H<//private> b",
    "<private>H</ /private> b",
    "<private>H<///private > b",
    "<рrivate>H</рrivate> b",
    "<prіvаtе>H</рrіvаtе> b",
    "<ргіѵатe>H</ргіѵатe> b",
    "<ρrivate>H</ρrivate> b",
    "<prινατε>H</prινατε> b",
    "<𝐩𝐫𝐢𝐯𝐚𝐭𝐞>H</𝐩𝐫𝐢𝐯𝐚𝐭𝐞> b",
    "<𝓅𝓇𝒾𝓋𝒶𝓉𝑒>H</𝘱𝘳𝘪𝘷𝘢𝘵𝘦> b",
    "<ⓟⓡⓘⓥⓐⓣⓔ>H</ⓟⓡⓘⓥⓐⓣⓔ> b",
    "<ᴘʀɪᴠᴀᴛᴇ>H</ᴘʀɪᴠᴀᴛᴇ> b",
    "<prívàté>H</prívàté> b",
    "<p\u0332r\u0332i\u0332v\u0332a\u0332t\u0332e\u0332>H</private> b",
    "‹private›H‹/private› b",
    "〈private〉H〈/private〉 b",
    "⟨private⟩H⟨/private⟩ b",
    "❮private❯H❮/private❯ b",
    "<private>H<⁄private> b",
    "<private>H<∕private> b",
    '<"private">H</"private"> b',
    "<*private*>H</*private*> b",
    "<`private`>H</`private`> b",
    "<<private>>H<</private> b",
    "<private\u200b,>H</private> b",
    "＜рrivate＞H＜／рrivate＞ b",
    "&lt;рrivate&gt;H&lt;/рrivate&gt; b",
    "%3Cрrivate%3EH%3C/рrivate%3E b",
]


@pytest.mark.parametrize("form", HIDDEN)
def test_nothing_within_private_is_left(form: str) -> None:
    assert len(HIDDEN) >= 90
    text = form.replace("H", "hidden things")
    clean = redact(text)
    assert "hidden" not in clean
    assert "things" not in clean
    assert PRIVATE in clean
    assert redact(clean) == clean
    for outside in (" b", "a "):
        assert (outside in clean) == (outside in text.replace("a b", "").replace("a > b", "")), clean


def test_the_outer_end_ends_it_and_the_rest_survives() -> None:
    text = "one <private>x <private>y</private> z</private> two <private>z</private> three"
    assert redact(text) == f"one {PRIVATE} two {PRIVATE} three"


def test_an_empty_tag_hides_nothing() -> None:
    for text in ("a <private/> b", "a <private /> b", "a < PRIVATE / > b", "&lt;private/&gt;"):
        assert redact(text) == text


@given(st.lists(st.sampled_from(["<private>", "</private>", "<PRIVATE x>", "</ private>", "<private/>", "word "])))
def test_what_is_within_any_private_is_hidden_whatever_the_nesting(pieces: list[str]) -> None:
    depth, text, hidden = 0, "", []
    for number, piece in enumerate(pieces):
        if piece == "word ":
            text += f"w{number:05} "
            hidden += [f"w{number:05}"] if depth else []
        else:
            text += piece
            depth += (piece in ("<private>", "<PRIVATE x>")) - (piece.startswith("</") and depth > 0)
    clean = redact(text)
    assert not [word for word in hidden if word in clean]
    assert not depth or clean.endswith(PRIVATE)


# --- forms that a generator makes ---

UNSEEN_CHARS = re.findall(f"[{UNSEEN}]", "".join(map(chr, range(0x10000))))


def a_form(rng: random.Random) -> str:
    """A tag around H, written in one of the ways that people, pages, keyboards and encoders write it."""
    alike = {sign: others + (styled(sign) if sign.isalpha() else "") for sign, others in LOOKALIKES.items()}

    def sign(plain: str, *others: str) -> str:
        return rng.choice([plain, plain, plain, *others, rng.choice(alike[plain])])

    def less() -> str:
        return sign("<", "&lt;", "&LT;", "&#60;", "&#x3c;", "\\u003c", "\\x3C", "%3C", "%253c", "&amp;lt;")

    def more() -> str:
        return sign(">", "&gt;", "&#62;", "&#x3E;", "\\u003e", "%3E", "&amp;gt;")

    def slash() -> str:
        return rng.choice(["", "\\"]) + rng.choice([sign("/", "&#47;", "%2F", "\\u002f"), "//", "/ /"])

    def space() -> str:
        return rng.choice(["", "", "", " ", "\t", "\n", "  ", "\u00a0", "\u3000", rng.choice(UNSEEN_CHARS)])

    def name() -> str:
        odd = rng.random() < 0.5
        letters = []
        for letter in "private":
            letters.append(
                rng.choice(alike[letter]) if odd and rng.random() < 0.5 else rng.choice((letter, letter.upper()))
            )
            letters.append(rng.choice(UNSEEN_CHARS) if odd and rng.random() < 0.2 else "")
        return "".join(letters)

    def adorned() -> str:
        mark = rng.choice(["", "", "", "", '"', "'", "*", "`"])
        return f"{mark}{name()}{mark}"

    rest = rng.choice(["", "", "", " x", ' reason="a b"', " n=1", ",", ";", " <b>", "\nx"])
    opening = f"{less()}{space()}{adorned()}{rest}{space()}{more()}"
    closing = f"{less()}{space()}{slash()}{space()}{adorned()}{space()}{more()}"
    return rng.choice(
        [
            f"{opening}H{closing} b",
            f"{opening}H{closing} b",
            f"a {opening}H",
            f"H{closing} b",
            f"{opening}H{opening}H{closing}H",
        ]
    )


def test_nothing_within_a_generated_form_is_left() -> None:
    rng = random.Random(17)
    left = []
    for _ in range(FORMS):
        form = a_form(rng)
        clean = redact(form.replace("H", "hidden things"))
        if "hidden" in clean or "things" in clean:
            left.append(form)
    assert not left, left[:20]


def test_generated_forms_are_hidden_within_json_values_too() -> None:
    rng = random.Random(18)
    for _ in range(300):
        form = a_form(rng).replace("H", "hidden things")
        assert "hidden" not in str(redact_all({"a": [form], "b": {"c": form}, form: 1}))


def test_the_end_of_a_huge_payload_is_not_kept_behind_any_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(client.CONFIG, "package", sys.path[0])
    rng = random.Random(19)
    for number in range(300):
        form = a_form(rng)
        if form.startswith("H"):
            continue  # its beginning lies in the part that was read
        raw = form if number % 2 else json.dumps(form)
        assert client.may_open_private(raw.encode()), raw
