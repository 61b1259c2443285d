"""Who calls whom, by name, in every language with a grammar; bounded, and honest about what was not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from foreword.code.callgraph import Call, Calls, read_calls
from foreword.errors import BadRequest, NotFound
from tests.tables import table

CALLING = {
    "a.py": "def low(): pass\ndef high(): return low()\n",
    "a.js": "function low() {}\nconst high = () => low()\n",
    "a.ts": "function low(): void {}\nfunction high(): void { low() }\n",
    "a.tsx": "const low = () => <a/>\nfunction high() { return <low/> }\n",
    "a.go": "package p\nfunc low() {}\nfunc high() { low() }\n",
    "a.rs": "fn low() {}\nfn high() { low(); }\n",
    "A.java": "class A { void low() {}\n void high() { low(); } }\n",
    "a.c": "void low(void) {}\nvoid high(void) { low(); }\n",
    "a.cpp": "void low() {}\nvoid high() { low(); }\n",
    "a.rb": "def low(a)\nend\ndef high\n  low(1)\nend\n",
    "a.php": "<?php\nfunction low() {}\nfunction high() { low(); }\n",
    "a.cs": "class A { void low() {}\n void high() { low(); } }\n",
    "a.sh": "low() { :; }\nhigh() { low; }\n",
    "a.lua": "function low() end\nfunction high() low() end\n",
    "a.kt": "fun low() {}\nfun high() { low() }\n",
    "a.scala": "object A {\n def low() = 1\n def high() = low()\n}\n",
    "a.swift": "func low() {}\nfunc high() { low() }\n",
}


def graph(**files: str) -> Calls:
    calls = Calls()
    for name, text in files.items():
        calls.add(name.replace("_", "."), text.encode())
    return calls


@table("name", sorted(CALLING))
def test_every_language_tells_caller_and_called(name: str):
    calls = Calls()
    calls.add(name, CALLING[name].encode())
    (low,), (high,) = calls.named("low"), calls.named("high")
    assert calls.callers([low]) == [Call(high.function, name, high.line + (name == "a.rb"))]
    assert [call.function for call in calls.called([high])] == [low.function]


def test_calls_are_matched_by_name():
    calls = graph(
        a_py="class Store:\n    def save(self): self.write()\n    def write(self): pass\n",
        b_py="def one(): save()\ndef two(store): store.save()\n",
        c_py="def save(): pass\n",
    )
    method = calls.named("Store.save")
    assert {each.function for each in calls.named("save")} == {"Store.save", "save"}
    assert [call.function for call in calls.callers(method)] == ["one", "two"]
    assert [call.function for call in calls.called(method)] == ["Store.write"]
    assert calls.called(calls.named("two")) == [Call("save", "b.py", 2, several=2)]
    # What a file does by itself is a caller too.
    calls = graph(a_py="def f(): pass\n\nf()\n")
    assert calls.callers(calls.named("f()")) == [Call("", "a.py", 3)]
    # An unknown name is told with near ones.
    calls = graph(a_py="class A:\n    def offer_slot(self): pass\n")
    with pytest.raises(NotFound) as caught:
        calls.named("offer_slots")
    assert "offer_slot" in caught.value.hint
    with pytest.raises(NotFound) as caught:
        calls.named("B.offer_slot")
    assert "A.offer_slot" in caught.value.hint


def test_files_of_others_are_not_read_and_bounds_are_told(tmp_path: Path):
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "x.js").write_text("function theirs() {}\n")
    for number in range(5):
        (tmp_path / f"f{number}.py").write_text(f"def f{number}(): pass\n")
    (tmp_path / "link.py").symlink_to("f0.py")
    whole = read_calls(str(tmp_path))
    assert (whole.files, whole.complete, sorted(whole.defined)) == (5, True, [f"f{number}" for number in range(5)])
    bounded = read_calls(str(tmp_path), seconds=0)
    assert not bounded.complete
    assert bounded.files < 5
    with pytest.raises(BadRequest):
        read_calls(str(tmp_path / "nowhere"))
