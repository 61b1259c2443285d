"""The values of secret variables leave the hook neither for the worker nor for a file."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.hook import client
from tests.planted import ALNUM, chars

VALUES = [chars(random.Random(number), ALNUM, size).encode() for number, size in enumerate((8, 12, 12, 20, 64))]
ODD = [b'quo"ted\\77', "p\u00e4ssw\u00f6rd77".encode(), b"a/b+c=d%e77"]
MARK = "[redacted:env]"


def found(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    raw = {name.encode(): value.encode() for name, value in environ.items()}
    monkeypatch.setattr(client, "posix", SimpleNamespace(environ=raw))
    return client.secret_values()


PLACES = ["{}", "a {} b", "x={};", "'{}'", "u:{}@h", "?k={}&n", "/{}/", "\u5bc6{}\u3002", "a\n{}", "-p{} y", "x{}y"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_value_is_gone_wherever_it_stands(place: str, ascii_only: bool) -> None:
    for value in (*VALUES, *ODD):
        inner = place.replace("{}", value.decode())
        payload = {"text": inner, "json": json.dumps({"a": inner}), inner: 1}
        raw = json.dumps(payload, ensure_ascii=ascii_only).encode()
        clean = json.loads(client.without_values(raw, [*VALUES, *ODD]))
        assert clean["text"] == place.replace("{}", MARK)
        if value.isascii():
            assert json.loads(clean["json"]) == {"a": place.replace("{}", MARK)}
        assert list(clean)[2] == place.replace("{}", MARK)


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=80)))
def test_any_other_payload_keeps_its_bytes(payload: dict[str, str]) -> None:
    raw = json.dumps(payload).encode()
    assert client.without_values(raw, VALUES) == raw


def test_the_cut_of_a_payload_moves_with_what_goes_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "secret_values", lambda: [b"zq7Zq7Zq7Zq7"])
    raw, head = client.hide_variables(b"ab zq7Zq7Zq7Zq7 cd" + b"zq7Zq7Zq7Zq7 tail", 18)
    assert (raw[:head], raw[head:]) == (f"ab {MARK} cd".encode(), f"{MARK} tail".encode())


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
