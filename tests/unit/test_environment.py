"""What a hook tells of its environment is enough to take the values out, and does not tell them."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.hook import client, offline
from foreword.redact import env
from foreword.redact.env import hiding
from tests.planted import ALNUM, chars

KEY = 0x1234567890ABCDEF
VALUES = [chars(random.Random(number), ALNUM, size).encode() for number, size in enumerate((8, 12, 12, 20, 64))]
MARK = "[redacted:env]"


def found(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    raw = {name.encode(): value.encode() for name, value in environ.items()}
    monkeypatch.setattr(client, "posix", SimpleNamespace(environ=raw))
    return client.secret_values()


def told(values: list[bytes]) -> str:
    return client.digests(values, key=KEY).removeprefix("&hidden=")


PLACES = [
    "{}",
    "a {} b",
    "x={};",
    "'{}'",
    '"{}"',
    "u:{}@h",
    "?k={}&n",
    "/{}/",
    "密{}。",
    "a\\n{}",
    "%3D{}",
    "\\u0022{}",
    "-p {}",
    "x -p{} y",
]


@pytest.mark.parametrize("place", PLACES)
def test_a_value_is_gone_wherever_it_begins(place: str) -> None:
    hide = hiding(told(VALUES), key=KEY)
    assert hide is not None
    for value in VALUES:
        text = place.replace("{}", value.decode())
        assert hide(text) == place.replace("{}", MARK)
        assert hide(hide(text)) == hide(text)


def test_no_digest_tells_a_value() -> None:
    line = told(VALUES)
    assert not [value for value in VALUES if value[:6].decode() in line]
    other = hiding(line, key=KEY + 1)
    assert other is not None
    assert other(VALUES[0].decode()) == VALUES[0].decode()


@given(st.text(max_size=80))
def test_any_other_text_is_the_same_object(text: str) -> None:
    hide = hiding(told(VALUES), key=KEY)
    assert hide is not None
    assert hide(text) is text


@given(st.text(max_size=40))
def test_what_makes_no_sense_hides_nothing_and_raises_nothing(line: str) -> None:
    hide = hiding(line, key=KEY)
    assert hide is None or hide("some text") == "some text"


def test_more_values_do_not_mean_more_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    monkeypatch.setattr(env, "source_hash", lambda key, part: looks.append(part) or b"")
    rng = random.Random(3)
    counts = []
    for values in (VALUES, [chars(rng, ALNUM, 16 + number % 40).encode() for number in range(200)]):
        looks.clear()
        hide = hiding(told(values), key=KEY)
        assert hide is not None
        hide("a.b=c-d/e some words of a source, as they come " * 20)
        counts.append(len(looks))
    assert counts[0] == counts[1] > 0


def test_values_under_telling_names_are_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {
        "GITHUB_TOKEN": "zq7Zq7Zq7Zq7Zq7Zq7",
        "DB_PASSWORD": "hunter22",
        "STRIPE_SECRET": "a1b2c3d4e5f6a7b8",
        "SOME_KEY": "Zx9-Zx9-Zx9-Zx9",
        "DATABASE_URL": "postgres://ada:w0mbat-w0mbat@db/shop",
    }
    values = found(environ, monkeypatch)
    assert values == [*(each.encode() for each in list(environ.values())[:4]), b"w0mbat-w0mbat"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/usr/bin:/bin"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-x1/agent.12"),
        ("SOME_TOKEN", "true"),
        ("AUTH_ENABLED", "enabled-everywhere"),
        ("DB_PASSWORD", "short"),
        ("DB_PASSWORD", "password"),
        ("API_KEY_FILE", "~/keys/api-1234.txt"),
        ("TOKEN_URL", "https://auth.example.com/oauth2/token"),
        ("TOKEN_LIFETIME", "8640000000"),
        ("KEYBOARD_LAYOUT", "us-international"),
        ("AUTHOR", "ada lovelace 1815"),
        ("FOREWORD_EMBEDDINGS_KEY_ENV", "OPENAI_API_KEY"),
        ("HOME_KEY", "home-12345678"),
        ("LESSKEY", ""),
    ],
)
def test_ordinary_values_are_not(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    assert found({name: value, "HOME": "/home-12345678/ada"}, monkeypatch) == []


def test_without_a_worker_the_hook_takes_them_out_itself() -> None:
    values = [b"zq7Zq7Zq7Zq7", b'quo"ted\\77', "pässwörd77".encode()]
    raw = b'{"a": "zq7Zq7Zq7Zq7 quo\\"ted\\\\77 p\\u00e4ssw\\u00f6rd77"}'
    hide = offline._hider(values, raw)
    assert hide is not None
    assert hide('zq7Zq7Zq7Zq7 quo"ted\\77 pässwörd77') == " ".join([MARK] * 3)
    assert offline._hider(values, b"nothing of them") is None
