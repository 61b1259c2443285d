"""What every store promises to whoever looks around in all that is remembered."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foreword.models import STATUSES, TRUSTS, Memory
from foreword.store.browsing import FACETS, SHOWN_STATUSES, MemoryFilter

KINDS = ("note", "decision", "failure")
SCOPES = ("project:here", "project:there", "language:python", "universal")


def filled(store):
    """Two memories of each kind, status and scope, each with its own words, tags and files."""
    every = itertools.product(KINDS, STATUSES, SCOPES, (0, 1))
    return store.memories.put(
        [
            Memory(
                kind,
                f"Walrus {number} of a {kind}",
                body=f"{status} ice floe, seen from {'the shore' if twin else 'a boat'}",
                scope=scope,
                project="there" if scope == "project:there" else "here",
                status=status,
                trust=TRUSTS[number % 4],
                tags=("arctic", f"t{number % 5}"),
                files=(f"src/sea/{kind}.py", f"src/{number % 7}.md"),
                created=float(number // 3),
            )
            for number, (kind, status, scope, twin) in enumerate(every)
        ]
    )


def passes(memory, wanted, *, but=""):
    """What a filter means, said a second time and slowly."""
    checks = {
        "kind": not wanted.kinds or memory.kind in wanted.kinds,
        "scope": not wanted.scopes or memory.scope in wanted.scopes,
        "project": not wanted.project or memory.project == wanted.project,
        "tag": not wanted.tag or wanted.tag in memory.tags,
        "file": not wanted.file or wanted.file in memory.files,
        "status": not wanted.statuses or memory.status in wanted.statuses,
        "trust": not wanted.trusts or memory.trust in wanted.trusts,
        "pinned": wanted.pinned is None or memory.pinned == wanted.pinned,
    }
    return memory.status != "forgotten" and all(good for name, good in checks.items() if name != but)


def newest_first(memories):
    return sorted(memories, key=lambda memory: -memory.created)


def all_pages(store, wanted, *, limit):
    found = []
    while True:
        memories, _ = store.browsing.page(wanted, offset=len(found), limit=limit)
        assert len(memories) <= limit
        found += memories
        if not memories:
            return found


def test_what_is_being_forgotten_is_on_no_page_and_in_no_count(store):
    kept = filled(store)
    gone = next(memory for memory in kept if memory.status == "forgotten")
    for wanted in (
        MemoryFilter(statuses=("forgotten",)),
        MemoryFilter(statuses=(), words=gone.id),
        MemoryFilter(statuses=()),
    ):
        assert all(memory.status != "forgotten" for memory in all_pages(store, wanted, limit=200))
        assert "forgotten" not in dict(store.browsing.facets(wanted)["status"])


def test_what_is_typed_letter_by_letter_is_found_at_every_letter(store):
    (wanted,) = store.memories.put(
        [Memory("decision", "Authentication uses HTTPTransport in src/auth/tokens.py", body="é 内存泄漏")]
    )
    filled(store)
    for text in (
        "Authentication",
        "authentication uses httpTrans",
        "tokens.py",
        "HTTPTransport",
        "transport",
        "内存泄漏",
    ):
        for end in range(1, len(text) + 1):
            assert wanted in store.browsing.page(MemoryFilter(words=text[:end]), limit=200)[0], text[:end]


def test_an_id_is_found_as_it_is_typed(store):
    shown = next(memory for memory in filled(store) if memory.status == "active")
    for end in range(5, len(shown.id) + 1):
        assert shown in store.browsing.page(MemoryFilter(words=shown.id[:end]))[0]
    assert dict(store.browsing.facets(MemoryFilter(words=f" {shown.id.upper()} "))["kind"]) == {shown.kind: 1}


@pytest.mark.parametrize("words", ["don’t retry", "retry — login", "retry – log", "login …", "“login”", "login…"])
def test_what_phones_write_between_words_is_passed_over(store, words):
    (kept,) = store.memories.put([Memory("note", "We don't retry the login", project="p")])
    assert store.browsing.page(MemoryFilter(words=words))[0] == (kept,)


@given(text=st.text() | st.text(alphabet="\"*^:(){}[]+-\\'ANDORNEAR \0内é\ud800"))
def test_whatever_is_typed_is_answered(shared_store, text):
    for wanted in (
        MemoryFilter(words=text),
        MemoryFilter(tag=text),
        MemoryFilter(file=text),
        MemoryFilter(project=text, kinds=(text,)),
    ):
        shared_store.browsing.page(wanted)
        shared_store.browsing.facets(wanted)


NUMBERS = itertools.count()
TAGS = ("arctic", "two words", "...", 'a "quoted" one', "back\\slash", "ünïcode 内存", "new\nline")
FOLDERS = ("src/", "src/sea/", "docs/")
made = st.builds(
    Memory,
    st.sampled_from(KINDS),
    st.sampled_from(("ice", "ice floe", "walrus on ice", "seal")),
    scope=st.sampled_from(SCOPES),
    tags=st.lists(st.sampled_from(TAGS), unique=True).map(tuple),
    files=st.lists(st.sampled_from(("src/a.py", "src/sea/a.py", "docs/b.md")), unique=True).map(tuple),
    status=st.sampled_from(STATUSES),
    trust=st.sampled_from(TRUSTS),
    created=st.integers(0, 9).map(float),
)
wishes = st.builds(
    MemoryFilter,
    words=st.sampled_from(("", "ice ", "ic", "wal", "walrus ic", "gone")),
    kinds=st.lists(st.sampled_from(KINDS), unique=True).map(tuple),
    scopes=st.lists(st.sampled_from(SCOPES), unique=True).map(tuple),
    tag=st.sampled_from(("", *TAGS)),
    file=st.sampled_from(("", "a.py", "src/sea/a.py", *FOLDERS)),
    statuses=st.sampled_from((SHOWN_STATUSES, (), ("stale",))),
    trusts=st.lists(st.sampled_from(TRUSTS), unique=True).map(tuple),
    pinned=st.sampled_from((None, True, False)),
)


def test_of_equal_matches_the_newest_comes_first(store):
    store.memories.put([Memory("note", f"walrus {at}", project="p", created=float(at)) for at in (2, 3, 1)])
    found = store.browsing.page(MemoryFilter(words="walrus"))[0]
    assert [memory.title for memory in found] == ["walrus 3", "walrus 2", "walrus 1"]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(memories=st.lists(made, min_size=1, max_size=25), wanted=wishes)
def test_a_page_and_its_counts_are_those_of_a_plain_look_at_all(shared_store, memories, wanted):
    here = f"p{next(NUMBERS)}"
    kept = shared_store.memories.put(
        [replace(each, title=f"{each.title} {number}", project=here) for number, each in enumerate(memories)]
    )
    wanted = wanted._replace(project=here)

    def fits(memory, *, but=""):
        named = but == "file" or not wanted.file or any(_names(path, wanted.file) for path in memory.files)
        texts = re.findall(r"\w+", " ".join((memory.title, *memory.tags, *memory.files)))
        held = all(any(text.startswith(word) for text in texts) for word in wanted.words.split())
        return held and named and passes(memory, wanted._replace(file=""), but=but)

    expected = [memory for memory in kept if fits(memory)]
    found = all_pages(shared_store, wanted, limit=7)
    assert sorted(memory.id for memory in found) == sorted(memory.id for memory in expected)
    if not wanted.words:
        assert [memory.created for memory in found] == [memory.created for memory in newest_first(expected)]
    assert shared_store.browsing.page(wanted)[1] == len(expected)
    counted = shared_store.browsing.facets(wanted)
    for name in set(FACETS) - {"project"}:
        counts = Counter(each for memory in kept if fits(memory, but=name) for each in _of(memory, name))
        assert dict(counted[name]) == counts, name


def _names(path, file):
    return path == file or (
        path.startswith(file) if file.endswith("/") else path.endswith(f"/{file}") and "/" not in file
    )


def _of(memory, name):
    return {"tag": memory.tags, "file": memory.files}.get(
        name, (str(int(memory.pinned)),) if name == "pinned" else (getattr(memory, name, ""),)
    )
