"""A text tells what it defines, in every language we read; no text of any kind breaks anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from foreword.code import languages
from foreword.code.definitions import WIDTH, Definition, definitions_in
from foreword.code.languages import GRAMMARS, LARGEST, LONGEST, language_of
from tests.tables import table

SAMPLES = {path.name.removesuffix(".txt"): path for path in (Path(__file__).parent / "code_samples").iterdir()}
NAMES = sorted(SAMPLES)

# Kind, qualified name, signature, first and last line.
DEFINED = {
    "Sample.java": (
        ("class", "Sample", "class Sample<T> extends Base implements Runnable", 3, 14),
        ("method", "Sample.map", "Sample.map(int a, String... b) throws IOException", 7, 9),
        ("method", "Sample.Sample", "Sample.Sample(int x)", 11, 11),
        ("interface", "Sample.Inner", "interface Sample.Inner", 13, 13),
        ("method", "Sample.Inner.z", "Sample.Inner.z()", 13, 13),
        ("record", "Pair", "record Pair(int a, int b)", 15, 15),
    ),
    "sample.c": (
        ("macro", "MAX", "MAX(a, b) ((a) > (b) ? (a) : (b))", 1, 1),
        ("function", "name", "name(const char *a, int b)", 3, 6),
        ("struct", "node", "struct node", 7, 7),
        ("type", "pair", "type pair", 8, 8),
    ),
    "sample.cpp": (
        ("class", "Foo", "class Foo : public Bar", 2, 7),
        ("method", "Foo.Foo", "Foo.Foo(int a) : x(a)", 4, 4),
        ("method", "Foo.size", "Foo.size() const", 5, 5),
        ("method", "Foo.get", "Foo.get(int a) const noexcept", 9, 11),
        ("function", "operator==", "operator==(const A& a, const B& b)", 12, 12),
        ("function", "ref", "ref(int a)", 13, 13),
    ),
    "sample.cs": (
        ("class", "Cart", "class Cart<T> : Base where T : class", 2, 9),
        ("method", "Cart.Cart", "Cart.Cart(int a) : base(a)", 3, 3),
        ("method", "Cart.Total", 'Cart.Total<K>(int a, string b = "x")', 4, 7),
        ("record", "Pair", "record Pair(int A)", 10, 10),
        ("interface", "IPaying", "interface IPaying", 11, 11),
        ("method", "IPaying.Pay", "IPaying.Pay()", 11, 11),
    ),
    "sample.go": (
        ("function", "Add", "Add(a, b int) (int, error)", 4, 7),
        ("method", "Server.Handle", "Server.Handle(w http.ResponseWriter, r *http.Request)", 9, 10),
        ("struct", "Server", "struct Server[T any]", 12, 14),
        ("interface", "Reader", "interface Reader", 16, 16),
        ("type", "Id", "type Id", 17, 17),
    ),
    "sample.js": (
        ("function", "add", "add(a, b)", 2, 2),
        ("function", "gen", "gen()", 3, 5),
        ("class", "Shop", "class Shop extends Base", 6, 9),
        ("method", "Shop.open", "Shop.open(x)", 7, 7),
        ("method", "Shop.handle", "Shop.handle = (event)", 8, 8),
        ("function", "arrow", "arrow = async (a, { b })", 10, 12),
        ("method", "api.get", "api.get(id)", 14, 14),
        ("method", "api.post", "api.post: async (x)", 15, 15),
        ("function", "foo", "foo = function (y)", 17, 17),
        ("method", "Foo.bar", "Foo.bar = function (x)", 18, 18),
        ("function", "default", "default(z)", 19, 19),
        ("function", "View", "View = memo((props)", 20, 20),
    ),
    "sample.kt": (
        ("class", "Cart", "class Cart(val size: Int) : Base()", 1, 5),
        ("method", "Cart.total", "Cart.total(a: Int): String", 2, 4),
        ("class", "Paying", "class Paying", 6, 8),
        ("method", "Paying.pay", "Paying.pay()", 7, 7),
        ("object", "One", "object One", 9, 11),
        ("method", "One.only", "One.only() = 1", 10, 10),
        ("function", "top", "top(a: T): T = a", 12, 12),
    ),
    "sample.lua": (
        ("method", "M.add", "M.add(a, b)", 2, 4),
        ("method", "M.close", "M.close()", 5, 5),
        ("function", "helper", "helper(...)", 6, 6),
        ("method", "M.later", "M.later = function(x) return x", 7, 7),
    ),
    "sample.php": (
        ("class", "Cart", "class Cart extends Base implements Countable", 3, 7),
        ("method", "Cart.open", "Cart.open(int $a, ?string $b = null): ?array", 4, 6),
        ("interface", "Paying", "interface Paying", 8, 8),
        ("method", "Paying.pay", "Paying.pay()", 8, 8),
        ("function", "top", "top($x)", 9, 9),
        ("function", "later", "later = fn($y)", 10, 10),
    ),
    "sample.py": (
        ("function", "fetch", "fetch(url: str, *, retries: int = 3) -> bytes | None", 7, 12),
        ("class", "Store", "class Store(Base)", 15, 23),
        ("method", "Store.path", "Store.path(self)", 19, 20),
        ("class", "Store.Inner", "class Store.Inner", 22, 23),
        ("method", "Store.Inner.deep", "Store.Inner.deep(self)", 23, 23),
        ("function", "make", "make()", 26, 30),
        ("class", "make.Local", "class make.Local", 27, 29),
        ("method", "make.Local.method", "make.Local.method(self)", 28, 29),
    ),
    "sample.rb": (
        ("module", "Shop", "module Shop", 1, 13),
        ("class", "Shop.Cart", "class Shop.Cart < Base", 2, 12),
        ("method", "Shop.Cart.open", "Shop.Cart.open(a, b = 1)", 3, 5),
        ("method", "Shop.Cart.empty?", "Shop.Cart.empty?(x)", 7, 7),
        ("method", "Shop.Cart.total", "Shop.Cart.total", 9, 11),
        ("function", "top", "top", 15, 15),
    ),
    "sample.rs": (
        ("struct", "Point", "struct Point<T>", 1, 1),
        ("enum", "Kind", "enum Kind", 2, 2),
        ("method", "Point.fmt", "Point.fmt(&self, f: &mut Formatter<'_>) -> Result<(), Error>", 4, 6),
        ("trait", "Shape", "trait Shape: Sized", 8, 10),
        ("method", "Shape.area", "Shape.area(&self) -> f64", 9, 9),
        ("macro", "square", "square { ($x:expr)", 11, 11),
        ("function", "it_works", "it_works()", 14, 14),
    ),
    "sample.scala": (
        ("class", "Cart", "class Cart(size: Int) extends Base", 1, 5),
        ("method", "Cart.total", "Cart.total(a: Int)(implicit b: C): String", 2, 4),
        ("object", "One", "object One", 6, 6),
        ("method", "One.only", "One.only()", 6, 6),
        ("trait", "Paying", "trait Paying", 7, 7),
        ("method", "Paying.pay", "Paying.pay(): Unit", 7, 7),
    ),
    "sample.sh": (
        ("function", "greet", "greet()", 3, 5),
        ("function", "leave", "leave", 6, 6),
    ),
    "sample.swift": (
        ("class", "Cart", "class Cart: Base", 1, 6),
        ("method", "Cart.init", "Cart.init(size: Int)", 2, 2),
        ("method", "Cart.total", "Cart.total(_ a: Int, b: String) -> Int", 3, 5),
        ("class", "Pair", "class Pair", 7, 7),
        ("protocol", "Paying", "protocol Paying", 8, 8),
        ("function", "top", "top<T>(a: T) async throws -> T", 9, 9),
    ),
    "sample.ts": (
        ("interface", "Slot", "interface Slot<T> extends Base", 1, 1),
        ("type", "Id", "type Id = string", 2, 2),
        ("enum", "Kind", "enum Kind", 3, 3),
        ("class", "Service", "class Service<T> implements Closing", 4, 10),
        ("method", "Service.constructor", "Service.constructor(private readonly db: Db)", 5, 5),
        ("method", "Service.find", "Service.find<K>(key: K): Promise<T | undefined>", 6, 8),
        ("method", "Service.close", "Service.close = (why: string): void", 9, 9),
        ("function", "parse", "parse(text: any): void", 12, 12),
        ("function", "within", "within()", 13, 13),
    ),
    "sample.tsx": (
        ("function", "Button", "Button = ({ label }: Props): JSX.Element", 1, 1),
        ("function", "Page", "Page()", 2, 2),
    ),
}


def definitions(text: str, *, file: str) -> tuple[Definition, ...]:
    return definitions_in(text.encode("utf-8", "replace"), file=file) or ()


def text_of(name: str) -> str:
    return SAMPLES[name].read_text(encoding="utf-8")


@table("name", NAMES)
def test_a_file_tells_what_it_defines_whatever_its_line_ends(name: str):
    found = definitions(text_of(name), file=name)
    reported = tuple((each.kind, each.qualified, each.signature, each.line, each.end_line) for each in found)
    assert reported == DEFINED[name]
    text = text_of(name)
    assert definitions(text.replace("\n", "\r\n"), file=name) == definitions(text, file=name)
    text = text_of(name)
    short = [each.qualified for each in definitions(text.rstrip("\n"), file=name)]
    assert short == [each.qualified for each in definitions(text, file=name)]


def test_every_grammar_has_a_sample_and_loads():
    assert {language_of(name, head=text_of(name).encode()) for name in NAMES} >= set(GRAMMARS)
    for language in GRAMMARS:
        assert languages.compile_query(language, "definitions") is not None, language
        assert languages.compile_query(language, "calls") is not None, language


@table("name", NAMES)
def test_without_its_grammar_nothing_is_told_of_a_file(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(languages, "_load", lambda _language: None)
    assert definitions_in(text_of(name).encode(), file=name) is None


def test_a_parse_that_takes_too_long_is_given_up(monkeypatch):
    text = "def first():\n    pass\n" * 5_000
    monkeypatch.setattr(languages, "PARSE_MS", 0.05)
    assert definitions_in(text.encode(), file="a.py") is None
    monkeypatch.undo()
    assert definitions("def second(a):\n    pass\n", file="a.py")[0].signature == "second(a)"


@table(
    "text",
    [
        "def f():\n    pass\n" + "#" * LARGEST,
        "def f(): pass\n" * (LONGEST + 1),
        "function f(){}" + ";var a=1" * 1_000,
    ],
)
def test_what_no_person_writes_defines_nothing(text: str):
    assert definitions(text, file="a.py" if text.startswith("def") else "a.js") == ()


def test_the_language_and_encoding_of_a_file_are_found():
    # Files that define nothing are not read.
    for name in ("README.md", "data.json", "a.css", "notes", "a.ipynb", "a.ex", "a.sql", "Makefile", ".env", ""):
        assert definitions("def f():\n    pass\n", file=name) == ()
    # A first line tells the language of a file without ending.
    assert definitions("#!/usr/bin/env python3\ndef f(): pass\n", file="bin/run")[0].name == "f"
    assert definitions("#!/bin/sh\nf() { :; }\n", file="run")[0].name == "f"
    # A header is read as what it holds.
    assert definitions("class A { int f() { return 1; } };\n", file="a.h")[0].kind == "class"
    assert definitions("struct class_of { int a; };\n", file="a.h")[0].qualified == "class_of"
    # Other encodings and marks are read.
    text = "def größe(ä: int):\n    pass\n"
    (plain,) = definitions(text, file="a.py")
    assert plain.signature == "größe(ä: int)"
    assert definitions_in(text.encode("utf-8-sig"), file="a.py") == (plain,)
    (latin,) = definitions_in("def f(a='ä'):\n    pass\n".encode("latin-1"), file="a.py")
    assert latin.name == "f"


def test_a_body_is_the_same_where_the_code_is_the_same():
    # The same code has the same body whatever its comments and white space.
    (one,) = definitions("def f(a, b):\n    # why\n    return g(a,b)\n", file="a.py")
    (other,) = definitions("def f(a,  b):\n\n    return g(a, b)  # how\n", file="a.py")
    (moved,) = definitions("def f(a, b):\n    if a:\n        x()\n    return g(a, b)\n", file="a.py")
    (inside,) = definitions("def f(a, b):\n    if a:\n        x()\n        return g(a, b)\n", file="a.py")
    assert one.body == other.body
    assert moved.body != inside.body
    # A class keeps its body when only its methods change.
    before = "class A:\n    x = 1\n\n    def f(self):\n        return 1\n"
    one = definitions(before, file="a.py")[0]
    two = definitions(before.replace("return 1", "return 2") + "\n    def g(self):\n        pass\n", file="a.py")[0]
    three = definitions(before.replace("x = 1", "x = 2"), file="a.py")[0]
    assert one.body == two.body != three.body
    # A long signature is cut.
    (one,) = definitions(f"def f({', '.join(f'argument_{n}' for n in range(100))}):\n    pass\n", file="a.py")
    assert len(one.signature) == WIDTH
    assert one.signature.endswith("…")


DEEP = 100_000
NESTED = {
    "a.py": ("(", "[[[", "def f():\n", "lambda:", "not ", "class A:\n ", "f'{", "@a\n", "if x:\n "),
    "a.js": ("(", "{", "`${", "function f(){", "()=>", "[{a:", "<a>", "a?", "class A{m(){"),
    "a.ts": ("<", "type A<", "namespace N{", "{a:"),
    "a.cpp": ("(", "a<", "template<", "class A{", "namespace a{", "int f(){", "#if 1\n", "*"),
    "a.c": ("(", "{", "int (*", "#if 1\n"),
    "a.sh": ("$(", "<<E\n", "`", "${", "f(){", "if "),
    "a.rb": ("def f ", "class A\n", "%w[", '"#{', "->{", "module M\n"),
    "a.php": ("<?php ", "<?php function f(){", "<?php <<<E\n"),
    "a.go": ("func(){", "(", "[]", "type A struct{"),
    "a.rs": ("fn f(){", "<", "mod a{", "impl A{", "!["),
    "a.java": ("class A{", "(", "@A(", "<"),
    "a.cs": ("class A{", "(", "namespace A{", "<"),
    "a.lua": ("function f() ", "{", "("),
    "a.kt": ("class A{", "fun f(){", "<"),
    "a.swift": ("class A{", "func f(){", "<"),
    "a.scala": ("class A{", "def f={", "["),
}


@pytest.mark.long
@table("name", sorted(NESTED))
def test_no_depth_of_nesting_ends_the_process(name: str):
    """In a process of its own: the parsers are C, and would take this one with them."""
    code = (
        "import sys\nfrom foreword.code.definitions import definitions_in\n"
        f"for piece in {NESTED[name]!r}:\n"
        f"    for text in (piece * {DEEP}, (piece * {DEEP})[:{LARGEST} - 1], '\\n'.join([piece * 20] * 2000)):\n"
        f"        definitions_in(text[:{LARGEST} - 1].encode(), file={name!r})\n"
        "print('alive')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=110, check=False)
    assert ran.stdout == "alive\n", ran.stderr[-2000:]


CODE = st.text(
    alphabet=st.sampled_from("(){}[]<>:;,.=\"'`#$@!?&|*/\\ \t\n\r\0-+abdefclsnoiqrtuw0é漢😀\ud800"), max_size=400
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.sampled_from(NAMES), CODE | st.text(max_size=200), st.integers(0, 2_000), st.integers(0, 50))
@example("sample.py", "\0", 5, 0)
@example("sample.py", "\r", 17, 3)
def test_any_text_defines_something_or_nothing_within_its_lines(name: str, text: str, at: int, cut: int):
    """Any text, and any text in the midst of a real file."""
    sample = text_of(name)
    for whole in (text, sample[:at] + text + sample[at + cut :]):
        last = whole.count("\n") + 1
        for each in definitions(whole, file=name):
            assert 1 <= each.line <= each.end_line <= last
            assert each.name
            assert each.qualified.endswith(each.name)
            assert "\n" not in each.signature
            assert len(each.signature) <= WIDTH
