"""What every store promises: any text survives, projects stay apart, everything is found, nothing is kept twice."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import unicodedata
from dataclasses import replace

import apsw
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.tables import table

from foreword.errors import BadRequest, StoreError
from foreword.models import BASE32, KINDS, Change, Event, Injection, Item, Link, Memory, Query
from foreword.store import Store
from foreword.store.sessions import SAME_EVENT_SECONDS
from foreword.terms import terms

# Composed for trouble: NUL, astral, bidi, combining, zero width, CJK, quotes and what full-text queries are made of.
ODD = (
    "\0 \x1f\x7f\u00ad\u0301\u200b\u200d\u202e\u2066\ufeff\ufffd\uffff\U0001f600\U000e0041\U0010ffff版本กิ한й"
    + "\"'*^:(){}-+,\\"
)
TEXT = st.text(max_size=60) | st.text(alphabet=ODD, max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
fresh = map("p{}".format, itertools.count())  # projects that no other test has seen


def a_memory(title, *, kind="note", **more):
    return Memory(kind, title, **{"project": "here", "created": 1.0, **more})


def an_event(key, *, at=1000.0, kind="prompt", session="s", payload=None, **more):
    fields = {"host": "claude-code", "name": "X", "project": "here", "cwd": "/p", "payload": payload or {}, **more}
    return Event(key=key, kind=kind, session=session, at=at, **fields)


def found(store, text, *, project="here", **more):
    query = Query(scopes=(f"project:{project}",), terms=terms(text), **more)
    return [hit.memory.title for hit in store.search.by_words(query)]


def recent(store, *, project="here", **more):
    return [hit.memory.title for hit in store.search.by_recency(Query(scopes=(f"project:{project}",), **more))]


def settled(store):
    """What was written a moment later is there when a later change has been."""
    store.save(changes=[])
    return store


# -- any text survives ------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(
    texts=st.tuples(TEXT, TEXT, TEXT, TEXT),
    lists=st.tuples(*[st.lists(TEXT, max_size=3).map(tuple)] * 3),
    detail=st.dictionaries(TEXT, JSON, max_size=3),
)
def test_any_memory_survives_exactly(shared_store, texts, lists, detail):
    title, body, session, source = texts
    tags, files, functions = lists
    memory = a_memory(title, body=body, session=session, source=source, project=next(fresh))
    memory = replace(memory, tags=tags, files=files, functions=functions, detail=detail)
    (kept,) = shared_store.memories.put([memory])
    assert shared_store.memories.get([kept.id]) == (kept,)
    assert replace(kept, id="", uid="", scope="") == memory


@settings(deadline=None, max_examples=30)
@given(payload=st.dictionaries(TEXT, JSON, max_size=4), text=TEXT)
def test_any_event_survives_exactly(shared_store, payload, text):
    event = an_event(next(fresh), payload=payload, session=next(fresh), cwd=text, name=text)
    assert shared_store.events.append([event]) == (True,)
    (kept,) = shared_store.events.list(event.session)
    assert kept._replace(number=0) == event


def test_naughty_strings_survive_in_every_field(store, shared):
    strings = json.loads((shared / "corpora" / "blns.json").read_text(encoding="utf-8"))
    kept = store.memories.put(
        [
            a_memory(text, body=text, tags=(text, text), files=(text,), functions=(text,), detail={text: [text]})
            for text in strings
        ]
    )
    assert store.memories.get([memory.id for memory in kept]) == kept
    for text in strings:
        store.search.by_words(Query(scopes=("project:here",), terms=(*terms(text), text)))


def test_a_lone_surrogate_costs_one_character_and_nothing_else(store):
    bad = "a\ud800b"
    (kept,) = store.memories.put(
        [a_memory(bad, body=bad, uid=bad, files=(bad,), detail={bad: bad}, project=bad, session=bad)]
    )
    assert store.memories.put([replace(kept, body="again")])[0].id == kept.id
    (read,) = store.memories.get([kept.id, bad])
    assert (read.title, read.files, dict(read.detail)) == ("a?b", ("a?b",), {"a?b": "a?b"})
    assert store.events.append([an_event("k", session=bad, payload={bad: bad}, cwd=bad)]) == (True,)
    assert len(store.events.list(bad)) == 1
    store.save(changes=[Change(bad, bad, bad, "NEW", session=bad)])
    assert len(store.sessions.changes(bad, limit=5)) == 1
    store.memories.put([], links=[Link(f"{bad}!", "relates-to", kept.id), Link(bad, "caused-by", kept.id)])
    assert len(store.memories.links(f"{bad}!")) == 1
    assert Link(kept.id, "caused-by", kept.id) in store.memories.links(kept.id)  # an end that is a uid is that memory
    store.injections.record(an_injection("i", session=bad, items=(Item(bad, "index", 1.0, 1, {}),)))
    store.memories.record_access([bad], how=bad, at=1.0, session=bad)
    assert settled(store).injections.shown(bad) == {"a?b", kept.id}
    assert store.database.problems() == ()
    assert len(store.search.by_words(Query(scopes=(f"project:{bad}",), terms=(bad, "\udfff*", "a")))) == 1


# -- ids and uids -----------------------------------------------------------------------------------------------------


def test_an_id_tells_its_kind_and_a_uid_is_one_memory(make_store):
    # Ids have the prefix of their kind and eight characters that can be read aloud.
    store = make_store()
    kept = store.memories.put([a_memory("x", kind=kind) for kind in KINDS for _ in range(20)])
    for memory in kept:
        assert re.fullmatch(f"{KINDS[memory.kind]}-[{BASE32}]{{8}}", memory.id)
    assert len({memory.id for memory in kept}) == len({memory.uid for memory in kept}) == 20 * len(KINDS)
    # The same uid is the same memory and keeps its id.
    store = make_store()
    (first,) = store.memories.put([a_memory("one", uid="u")])
    (again,) = store.memories.put([a_memory("one", uid="u")])
    (changed,) = store.memories.put([a_memory("two", uid="u", kind="decision")])
    assert first.id == again.id == changed.id
    assert store.stats.row_counts()["memories"] == 1
    assert store.memories.get([first.id]) == (changed,)
    # One call may hold the same memory twice.
    store = make_store()
    kept = store.memories.put([a_memory("alpha", uid="u"), a_memory("beta", uid="u")])
    assert kept[0].id == kept[1].id
    assert (found(store, "alpha"), found(store, "beta")) == ([], ["beta"])
    # Ids come back in the order asked once each without the unknown.
    store = make_store()
    one, two = store.memories.put([a_memory("one"), a_memory("two")])
    assert store.memories.get([two.id, "not-00000000", one.id, two.id]) == (two, one)
    assert store.memories.get([]) == ()
    # A thousand ids may be asked at once.
    store = make_store()
    kept = store.memories.put([a_memory(f"t{number}") for number in range(1200)])
    assert store.memories.get([memory.id for memory in kept]) == kept
    # An unknown kind is refused with the known ones.
    store = make_store()
    with pytest.raises(BadRequest) as refused:
        store.memories.put([a_memory("x", kind="rumour")])
    assert "decision" in refused.value.hint


# -- changing, moving, superseding ------------------------------------------------------------------------------------


def test_a_memory_that_changed_or_moved_is_found_as_it_is_now(make_store):
    # A changed memory is found by its new words and not by its old ones.
    store = make_store()
    (kept,) = store.memories.put([a_memory("walrus", body="old tusk", tags=("arctic",), files=("src/ice.py",))])
    store.memories.put([replace(kept, title="penguin", body="new beak", tags=("south",), files=("src/snow.py",))])
    for gone in ("walrus", "tusk", "arctic", "ice"):
        assert found(store, gone) == []
    for here in ("penguin", "beak", "south", "snow"):
        assert found(store, here) == ["penguin"]
    # Moving a memory to another scope moves it.
    store = make_store()
    (kept,) = store.memories.put([a_memory("walrus")])
    (moved,) = store.memories.put([replace(kept, scope="universal")])
    assert (moved.id, moved.uid) == (kept.id, kept.uid)
    assert (found(store, "walrus"), recent(store)) == ([], [])
    assert [hit.memory for hit in store.search.by_words(Query(scopes=("universal",), terms=("walrus",)))] == [moved]
    (back,) = store.memories.put([replace(moved, scope="project:here")])
    assert (found(store, "walrus"), recent(store)) == (["walrus"], ["walrus"])
    assert store.search.by_words(Query(scopes=("universal",), terms=("walrus",))) == ()
    assert back.id == kept.id
    # Many superseded memories do not hide the active one.
    store = make_store()
    old = [a_memory("walrus", status="superseded") for _ in range(100)]
    store.memories.put([*old, a_memory("the walrus of today lives with many other animals", body="and eats " * 50)])
    assert len(found(store, "walrus", limit=5)) == 1


@table("status", ["superseded", "stale", "forgotten"])
def test_only_active_memories_are_found(store, status):
    (kept,) = store.memories.put([a_memory("walrus")])
    store.memories.put([replace(kept, status=status, superseded_by="not-other")])
    for more in ({}, {"kinds": ("note",)}, {"since": 0.5}):
        assert found(store, "walrus", **more) == []
        assert recent(store, **more) == []
    memories = store.memories.get([kept.id])
    assert [memory.status for memory in memories] == ([status] if status != "forgotten" else [])


# -- projects stay apart ----------------------------------------------------------------------------------------------


def test_projects_stay_apart_and_scopes_are_searched_together(make_store):
    # No project ever sees another ones memory.
    store = make_store()
    projects = [f"git:example.org/team/{number}" for number in range(12)]
    for project in projects:
        store.memories.put([a_memory(f"canary {project} {n}", project=project, tags=("canary",)) for n in range(20)])
    for project in projects:
        query = Query(scopes=(f"project:{project}",), terms=("canary", "team", "example"), limit=200)
        for ask in (store.search.by_words, store.search.by_recency):
            for more in ({}, {"kinds": ("note",)}, {"since": 0.5}):
                hits = ask(query._replace(**more))
                assert len(hits) == 20
                assert {hit.memory.project for hit in hits} == {project}
    # Several scopes are searched together.
    store = make_store()
    store.memories.put(
        [a_memory("walrus a"), a_memory("walrus b", scope="universal"), a_memory("walrus c", scope="language:go")]
    )
    query = Query(scopes=("project:here", "universal"), terms=("walrus",))
    assert {hit.memory.title for hit in store.search.by_words(query)} == {"walrus a", "walrus b"}
    assert {hit.memory.title for hit in store.search.by_recency(query)} == {"walrus a", "walrus b"}


@table("scope", ["project:her", "project:", "project", "project:HERE", "project:here ", "project:%"])
def test_a_scope_is_matched_as_a_whole(store, scope):
    store.memories.put([a_memory("walrus")])
    assert store.search.by_words(Query(scopes=(scope,), terms=("walrus",))) == ()
    assert store.search.by_recency(Query(scopes=(scope,))) == ()
    assert store.search.by_recency(Query(scopes=())) == ()


# -- filters ----------------------------------------------------------------------------------------------------------


def test_filters_narrow_and_recency_gives_every_kind_its_share(make_store):
    # Kinds and since narrow what is found.
    store = make_store()
    times = {"monday": 100.0, "tuesday": 200.0, "wednesday": 300.0}
    store.memories.put([a_memory(f"walrus {day}", created=at) for day, at in times.items()])
    store.memories.put([a_memory("walrus decided", kind="decision", created=400.0)])
    for ask in (lambda **more: sorted(found(store, "walrus", **more)), lambda **more: sorted(recent(store, **more))):
        assert len(ask()) == 4
        assert ask(kinds=("decision",)) == ["walrus decided"]
        assert ask(kinds=("decision", "note"), since=300.0) == ["walrus decided", "walrus wednesday"]
        assert ask(kinds=("goal",)) == []
        assert len(ask(limit=2)) == 2
    # Recency is newest first over kinds and scopes with ties broken.
    store = make_store()
    made = store.memories.put(
        [
            a_memory(f"{number}", kind=kind, scope=scope, created=float(number // 3))
            for number, (kind, scope) in enumerate(
                itertools.product(["note", "goal", "change"], ["universal", "project:here"])
            )
        ]
    )
    query = Query(scopes=("project:here", "universal"), kinds=("change", "note", "goal"), limit=5)
    expected = sorted(made, key=lambda memory: (-memory.created, memory.id))[:5]
    assert [hit.memory for hit in store.search.by_recency(query)] == expected
    # Recency gives every kind and scope its share whatever came later.
    store = make_store()
    old = [
        a_memory("decided", kind="decision", created=1.0),
        a_memory("everywhere", kind="decision", scope="universal", created=2.0),
    ]
    store.memories.put(old + [a_memory(f"{number}", created=100.0 + number) for number in range(30)])
    query = Query(scopes=("project:here", "universal"), kinds=("decision", "note"), limit=8)
    titles = [hit.memory.title for hit in store.search.by_recency(query)]
    assert titles == ["29", "28", "27", "26", "25", "24", "everywhere", "decided"]
    # A sessions own memories are found however many others came later.
    store = make_store()
    mine = store.memories.put(
        [a_memory(f"mine {n}", kind=kind, session="s") for n, kind in enumerate(("note", "goal", "note"))]
    )
    store.memories.put([a_memory("theirs", session="s", project="there"), a_memory("old", session="s", status="stale")])
    store.memories.put([a_memory(f"later {n}", created=9.0, session="t") for n in range(300)])
    assert set(recent(store, session="s")) == {memory.title for memory in mine}
    assert set(recent(store, session="s", kinds=("note",))) == {"mine 0", "mine 2"}
    assert len(recent(store, session="s", limit=1)) == 1
    assert recent(store, session="nobody") == []


# -- words ------------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(text=TEXT, raw=st.lists(TEXT, max_size=4))
@example(text='NEAR(a b) AND title:x* OR "', raw=["*", "**", '"*', "", " ", "\0", "NOT"])
def test_no_text_makes_a_query_fail(shared_store, text, raw):
    if shared_store.stats.row_counts()["memories"] == 0:
        shared_store.memories.put([a_memory("walrus 版本 NEAR title", project="queried")])
    for words in (terms(text), tuple(raw)):
        shared_store.search.by_words(Query(scopes=("project:queried", text), terms=words))
    shared_store.search.by_words(Query(scopes=("project:queried",), terms=terms(text), kinds=("note",), since=0.5))


@pytest.mark.prove
def test_no_query_of_fifty_thousand_fails(store):
    chance = random.Random(os.environ.get("FOREWORD_SEED", "7"))
    words = "NEAR( AND OR NOT ^ * \" '' : title: ( ) - + { ; walrus 版本 ß -- /* $1 ? @x 🧊 {title body}:"
    pieces = words.split()
    pieces += ["\0", "\ud800", "\u202e", "\n", "e\u0301", "a" * 300]
    store.memories.put([a_memory("walrus 版本 NEAR title", project="queried")])
    for _ in range(50_000):
        text = chance.choice(["", " "]).join(chance.choices(pieces, k=chance.randint(1, 12)))
        store.search.by_words(Query(scopes=("project:queried",), terms=chance.choice([terms(text), (text,)])))


def test_words_find_what_they_should_and_nothing_else(make_store):
    # Thousands of words are no failure.
    store = make_store()
    store.memories.put([a_memory(" ".join(f"word{number}" for number in range(3000)))])
    query = Query(scopes=("project:here",), terms=tuple(f"word{number}" for number in range(3000)), most_terms=3000)
    assert len(store.search.by_words(query)) == 1
    assert found(store, "word2999 " * 10_000 + "x" * 100_000) == [store.search.by_recency(query)[0].memory.title]
    # A script that nobody wrote is not found.
    store = make_store()
    store.memories.put([a_memory("版本控制"), a_memory("데이터")])
    assert found(store, "本版") == found(store, "이데") == found(store, "ไทย") == []
    # What is told in a detail is found.
    store = make_store()
    detail = {"why": "two offices in other zones", "options": [{"name": "sundial"}, 7, None]}
    store.memories.put([a_memory("UTC it is", kind="decision", detail=detail)])
    for word in ("offices", "sundial", "utc"):
        assert found(store, word) == ["UTC it is"]
    # What holds more of the words comes first and of equals the newer.
    store = make_store()
    store.memories.put(
        [a_memory(title, created=at) for title, at in (("walrus a", 1.0), ("walrus b", 2.0), ("pool walrus", 0.5))]
    )
    assert found(store, "walrus pool") == ["pool walrus", "walrus b", "walrus a"]
    # Of a word that all hold the newest are found.
    store = make_store()
    store.memories.put([a_memory(f"walrus {n}", created=float(n)) for n in range(7000)])
    assert found(store, "walrus", limit=3) == ["walrus 6999", "walrus 6998", "walrus 6997"]
    # Nothing asked is nothing found.
    store = make_store()
    store.memories.put([a_memory("walrus")])
    assert store.search.by_words(Query(scopes=("project:here",))) == ()
    assert found(store, "the and of") == found(store, "unheard") == []


@table(
    ("text", "queries"),
    [
        ("resource_for_action", ["resource", "action", "resource_for_action"]),
        ("HTTPTransport", ["http", "transport", "HTTPTransport", "httptransport"]),
        ("src/foreword/store/sqlite.py", ["foreword", "store", "sqlite", "src/foreword/store/sqlite.py", "sqlite.py"]),
        ("parseJSON2Dict", ["parse", "json", "dict", "parseJSON2Dict"]),
        ("getUserByID()", ["user", "getUserByID"]),
        ("kebab-case-name", ["kebab", "case", "kebab-case-name"]),
        ("std::vector<int>", ["vector", "std"]),
        ("$HOME/.config", ["home", "config"]),
    ],
)
def test_identifiers_are_found_by_their_parts_wherever_they_stand(store, text, queries):
    named = [a_memory(field, **{field: (text,)}) for field in ("tags", "files", "functions")]
    store.memories.put([a_memory(text), a_memory("body", body=text), *named])
    for words in queries:
        assert set(found(store, words)) == {text, "body", "tags", "files", "functions"}, words


@table(
    ("text", "queries"),
    [
        ("我们使用版本控制系统。", ["版本", "控制", "系统", "版", "统", "版本控制"]),
        ("設定ファイルを読み込む", ["設定", "ファイル", "読み", "む", "設"]),
        ("人々が集まる", ["人々", "人", "々が"]),
        ("ตั้งค่าฐานข้อมูลใหม่", ["ฐานข้อมูล", "ข้อมูล", "ใหม่", "ฐาน"]),
        ("데이터베이스를 연결한다", ["데이터", "베이스", "연결", "데", "다"]),
        ("Исправлен вход: ёлка и йод", ["исправлен", "ВХОД", "ёлка", "елка", "йод"]),
        ("Việt Nam naïve façade Ångström", ["viet", "Việt", "naive", "naïve", "facade", "angstrom"]),
        ("ΟΔΥΣΣΕΥΣ", ["οδυσσευς", "ΟΔΥΣΣΕΥΣ"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("שלום עולם", ["שלום", "עולם"]),
        ("مرحبا بالعالم", ["مرحبا"]),
        ("API版本v2更新", ["api", "版本", "更新", "新", "v2"]),
        ("a字b", ["字"]),
        ("𠀀𠀁𠀂", ["𠀁𠀂", "𠀀", "𠀂"]),
        ("a connection", ["connections"]),
        ("we were testing and caching", ["tests", "cached"]),
    ],
)
def test_words_are_found_by_their_stem_and_other_scripts_by_pieces(store, text, queries):
    store.memories.put([a_memory(text)])
    for words in queries:
        assert found(store, words) == [text], words


@table("text", ["naïve façade", "Войти: ёжик", "Việt Nam", "हिन्दी"])
@table("stored", ["NFC", "NFD"])
@table("form", ["NFC", "NFD"])
def test_accents_are_found_however_they_are_spelt(store, text, stored, form):
    text = unicodedata.normalize(stored, text)
    store.memories.put([a_memory(text)])
    for word in text.replace(":", "").split():
        assert found(store, unicodedata.normalize(form, word)) == [text], word


def test_a_full_match_is_told_and_rare_words_say_more(make_store):
    # The only memory matches fully.
    store = make_store()
    store.memories.put([a_memory("walrus")])
    (hit,) = store.search.by_words(Query(scopes=("project:here",), terms=("walrus",)))
    assert sum(hit.held.values()) == hit.full > 0
    # A longer prompt does not lessen a full match.
    store = make_store()
    text, others = "quartz walrus lantern copper meadow", [f"other{letter}" for letter in "abcdefghijklmnopqrst"]
    store.memories.put([a_memory(text), *map(a_memory, others)])
    for prompt in (text, f"{text} {' '.join(others)}"):
        query = Query(scopes=("project:here",), terms=terms(prompt), most_terms=30)
        (hit,) = (hit for hit in store.search.by_words(query) if hit.memory.title == text)
        assert sum(hit.held.values()) == pytest.approx(hit.full)
    # A rare word says more than a common one.
    store = make_store()
    store.memories.put([a_memory("walrus"), *(a_memory(f"pool {n}") for n in range(30))])
    assert found(store, "pool walrus", limit=3)[0] == "walrus"


# ---- what stood around it


def a_talk(store, *texts, session="s", **more):
    return store.memories.put(
        [a_memory("", body=body, session=session, created=float(n), **more) for n, body in enumerate(texts)]
    )


def around(store, *words, **more):
    """By body, what stood around each hit: the gap, what it holds, and whether it asks."""
    hits = store.search.by_words(Query(scopes=("project:here",), terms=words, **more))
    return {hit.memory.body: {near.gap: (near.held, near.asks) for near in hit.near} for hit in hits}


def test_a_hit_comes_with_what_stood_around_it_in_its_session(make_store):
    # What stood before and after in the session comes with a hit.
    store = make_store()
    a_talk(store, "one", "two", "where is the walrus?", "by the pool", "thanks", "six", "seven")
    neighbours = around(store, "walrus")
    assert neighbours["where is the walrus?"].keys() == {-2, -1, 1, 2}
    assert neighbours["by the pool"][-1] == (("walrus",), True)  # found by what stood before it
    assert neighbours["thanks"][-2] == (("walrus",), True)
    assert "seven" not in neighbours
    # Another session in between does not part a session.
    store = make_store()
    for n in range(3):
        a_talk(store, f"walrus {n}", session="a")
        a_talk(store, f"other {n}", session="b")
    assert around(store, "walrus")["walrus 1"].keys() == {-1, 1}
    assert not any(body.startswith("other") for body in around(store, "walrus"))
    # What belongs to no session has no neighbours.
    store = make_store()
    a_talk(store, "before", "walrus", "after", session="")
    assert around(store, "walrus") == {"walrus": {}}
    # Neighbours pass the same filters.
    store = make_store()
    a_talk(store, "walrus")
    a_talk(store, "superseded", status="superseded")
    a_talk(store, "a goal", kind="goal")
    assert around(store, "walrus", kinds=("note",)).keys() == {"walrus"}
    assert around(store, "walrus", kinds=("note", "goal")).keys() == {"walrus", "a goal"}
    # A neighbours title is no word of its own.
    store = make_store()
    store.memories.put(
        [a_memory("Melanie", body="hello", session="s"), a_memory("Caroline", body="walrus", session="s")]
    )
    assert around(store, "walrus", "melanie")["walrus"] == {-1: ((), False)}
    # A plain question is answered by words alone.
    store = make_store()
    a_talk(store, "before", "walrus", "after")
    assert around(store, "walrus", plain=True) == {"walrus": {}}


# ---- the code it is about


def naming(store, *names, project="here", **more):
    votes = dict.fromkeys(names, 1.0)
    return [hit.memory.title for hit in store.search.by_code(Query(scopes=(f"project:{project}",), **more), votes)]


def test_a_memory_is_found_by_the_code_that_it_names_now(make_store):
    # A fresh memory is found at once by the code it names.
    store = make_store()
    store.memories.put([a_memory("a", files=("src/app.py",)), a_memory("b", functions=("run()",)), a_memory("c")])
    assert naming(store, "src/app.py") == ["a"]
    assert naming(store, "run()") == ["b"]
    assert naming(store, "app.py") == naming(store) == []
    # More votes and rarer code come first.
    store = make_store()
    store.memories.put([a_memory(f"common {n}", files=("README.md",)) for n in range(20)])
    store.memories.put([a_memory("rare", files=("app.py",)), a_memory("both", files=("app.py", "README.md"))])
    query = Query(scopes=("project:here",), limit=3)
    hits = store.search.by_code(query, {"README.md": 1.0, "app.py": 1.0})
    assert [hit.memory.title for hit in hits][:2] == ["both", "rare"]
    assert hits[0].held.keys() == {"README.md", "app.py"}
    assert hits[0].score > hits[1].score > hits[2].score > 0
    assert store.search.by_code(query, {"README.md": 50.0, "app.py": 1.0})[1].memory.title.startswith("common")
    # Code of another project is not found.
    store = make_store()
    store.memories.put([a_memory("here", files=("app.py",)), a_memory("there", project="there", files=("app.py",))])
    assert naming(store, "app.py") == ["here"]
    assert naming(store, "app.py", project="there") == ["there"]
    assert naming(store, "app.py", project="nowhere") == []
    # A memory that changed is found by what it names now.
    store = make_store()
    (kept,) = store.memories.put([a_memory("a", files=("old.py",), functions=("f",))])
    store.memories.put([replace(kept, files=("new.py",))])
    assert naming(store, "old.py") == []
    assert naming(store, "new.py") == naming(store, "f") == ["a"]
    # Filters hold for code too.
    store = make_store()
    store.memories.put(
        [a_memory("gone", files=("a",), status="superseded"), a_memory("late", files=("a",), created=9.0)]
    )
    store.memories.put([a_memory("goal", kind="goal", files=("a",))])
    assert naming(store, "a", kinds=("note",)) == ["late"]
    # Code is found again after the index was made anew.
    store = make_store()
    store.memories.put([a_memory("a", files=("app.py",), functions=("run",))])
    store.maintenance.reindex()
    assert naming(store, "app.py") == naming(store, "run") == ["a"]


# -- events and sessions ----------------------------------------------------------------------------------------------


def test_the_same_event_is_kept_once_and_events_come_in_order(make_store):
    # The same event told twice is one event.
    store = make_store()
    event = an_event("k")
    assert store.events.append([event, event, an_event("other")]) == (True, False, True)
    assert store.events.append([event]) == (False,)
    assert len(store.events.list("s")) == 2
    # Events without an id of their own count again after some seconds.
    store = make_store()
    within, later = 1000.0 + SAME_EVENT_SECONDS, 1000.1 + SAME_EVENT_SECONDS
    assert store.events.append([an_event("k", at=at) for at in (1000.0, within, later)]) == (True, False, True)
    assert store.events.append([an_event("k", at=1000.0 - SAME_EVENT_SECONDS)]) == (False,)
    # Events with an id of their own count once for ever.
    store = make_store()
    assert store.events.append([an_event("k", at=at, lasting=True) for at in (1000.0, 9e8, 1.0)]) == (
        True,
        False,
        False,
    )
    # Events come in order however they arrived.
    store = make_store()
    store.events.append([an_event(str(at), at=float(at)) for at in (3, 1, 2)])
    assert [event.key for event in store.events.list("s")] == ["1", "2", "3"]
    assert [event.key for event in store.events.list("s", limit=2)] == ["1", "2"]


def test_what_was_told_before_a_restart_is_still_known(make_store, tmp_path):
    store = make_store(tmp_path)
    store.events.append([an_event("k"), an_event("for ever", lasting=True)])
    store.memories.put([a_memory("walrus")])
    store.close()
    again = make_store(tmp_path)
    assert again.events.append([an_event("k"), an_event("for ever", lasting=True, at=9e8)]) == (False, False)
    assert found(again, "walrus") == ["walrus"]
    assert again.database.problems() == ()


def test_sessions_are_counted_and_end_when_they_end(make_store):
    # Sessions are counted and newest first.
    store = make_store()
    store.events.append(
        [an_event("a", at=10.0, session="one"), an_event("b", at=30.0, session="one", kind="session_end")]
    )
    store.events.append([an_event("c", at=20.0, session="two", project="there"), an_event("d", at=5.0, session="")])
    store.events.append([an_event("b", at=30.0, session="one")])
    one, two = store.sessions.list()
    assert (one.id, one.started, one.last, one.ended, one.events) == ("one", 10.0, 30.0, 30.0, 2)
    assert (two.id, two.ended, two.events, two.project) == ("two", 0.0, 1, "there")
    assert store.sessions.list("there") == (two,)
    assert store.sessions.list(limit=1) == (one,)
    # A session that goes on has not ended.
    store = make_store()
    store.events.append([an_event("a", at=10.0, kind="session_end"), an_event("b", at=20.0)])
    assert store.sessions.list()[0].ended == 0.0
    # A session takes the first project that is known.
    store = make_store()
    store.events.append([an_event("a", project=""), an_event("b", project="here"), an_event("c", project="there")])
    assert store.sessions.list()[0].project == "here"


# -- injections, windows, access --------------------------------------------------------------------------------------


def an_injection(id, *, at=1000.0, session="s", items=(), **more):
    fields = {
        "trigger": "prompt",
        "project": "here",
        "host": "claude-code",
        "tokens": 7,
        "budget": 500,
        "build_ms": 1.5,
    }
    return Injection(
        id=id,
        at=at,
        session=session,
        items=items,
        **{**fields, "layers": {"index": 7}, "skipped": {"past": "empty"}, **more},
    )


def test_injections_come_back_with_their_items(make_store):
    # What a session was given in all counts each memory once and every token.
    store = make_store()

    def items(*ids):
        return tuple(Item(id, "index", 0.5, 3, {}) for id in ids)

    assert store.injections.usage(session="s")["memories"] == 0
    store.injections.record(an_injection("inj-1", items=items("dec-1", "dec-2"), tokens=30))
    store.injections.record(
        an_injection("inj-2", at=1001.0, trigger="session_start", source="clear", items=items("dec-2"), tokens=12)
    )
    store.injections.record(an_injection("inj-3", at=1002.0, tokens=0))  # a kept silence
    store.injections.record(an_injection("inj-4", session="other", items=items("dec-3"), tokens=400))
    totals = store.injections.usage(session="s")
    assert (totals["memories"], totals["tokens"]) == (2, 42)
    assert not any(store.injections.usage(session="nobody").values())
    # Injections come back with their items.
    store = make_store()
    items = tuple(Item(f"not-{n}", "index", 0.5, 3, {"match": 0.25, "recency": 1.0}) for n in range(12))
    injection = an_injection("inj-1", items=items)
    store.injections.record(injection)
    store.injections.record(an_injection("inj-2", at=2000.0, session="other", project="there"))
    newest, older = settled(store).injections.list()
    assert (newest.id, older) == ("inj-2", injection)
    assert store.injections.list(session="s") == store.injections.list(project="here") == (injection,)
    assert store.injections.list(limit=1) == (newest,)
    # An injection recorded again takes the place of the first.
    store = make_store()
    item = Item("not-1", "index", 0.5, 3, {})
    store.injections.record(an_injection("i", items=(item, item, item)))
    store.injections.record(an_injection("i", items=(item,)))
    assert settled(store).injections.list() == (an_injection("i", items=(item,)),)
    # An injection that nobody knows is none.
    store = make_store()
    assert store.injections.get("inj-0000000000") is None
    assert store.injections.list(memory="not-00000000") == ()
    # A kept silence is not listed.
    store = make_store()
    store.injections.record(an_injection("i", tokens=0, text=""))
    assert settled(store).injections.list() == ()
    assert store.injections.get("i") == an_injection("i", tokens=0)
    assert store.injections.window_tokens("s") == {}
    # What a hook gave itself is not replaced by what a late worker would have given.
    store = make_store()
    seen, unseen = an_injection("i", away=True, text="seen"), an_injection("i", text="unseen")
    for order in ((seen, unseen), (unseen, seen)):
        for each in order:
            store.injections.record(each)
        assert settled(store).injections.get("i") == seen


@table(
    ("source", "begins"),
    [("startup", True), ("clear", True), ("compact", True), ("", True), ("resume", False), ("fork", False)],
)
def test_a_window_begins_with_a_start_a_clear_and_a_compaction_and_not_with_a_resume(store, source, begins):
    def item(id):
        return (Item(id, "index", 1.0, 1, {}),)

    store.events.append([an_event("start", at=10.0, kind="session_start", payload={"source": "startup"})])
    store.injections.record(an_injection("i", at=11.0, items=item("not-a")))
    store.injections.record(an_injection("j", at=12.0, session="other", items=item("not-b")))
    assert settled(store).injections.shown("s") == {"not-a"}
    store.events.append(
        [an_event("again", at=20.0, kind="session_start", payload={"source": source} if source else {})]
    )
    store.injections.record(an_injection("k", at=21.0, items=item("not-c")))
    assert settled(store).injections.shown("s") == ({"not-c"} if begins else {"not-a", "not-c"})
    assert store.injections.shown("other") == {"not-b"}
    assert store.injections.shown("nobody") == frozenset()


@table(("kind", "begins"), [("compaction", True), ("prompt", False), ("stop", False), ("tool", False)])
def test_a_compaction_begins_a_window_where_the_host_starts_nothing_after_it(store, kind, begins):
    store.events.append([an_event("start", at=10.0, kind="session_start")])
    store.injections.record(an_injection("i", at=11.0, items=(Item("not-a", "index", 1.0, 1, {}),)))
    store.events.append([an_event("later", at=20.0, kind=kind)])
    assert settled(store).injections.shown("s") == (frozenset() if begins else {"not-a"})


def test_a_window_holds_what_was_given_since_it_began(make_store):
    # A start that arrives late does not take the window back.
    store = make_store()
    store.events.append(
        [an_event("new", at=20.0, kind="session_start"), an_event("old", at=10.0, kind="session_start")]
    )
    store.injections.record(an_injection("i", at=15.0, items=(Item("not-a", "index", 1.0, 1, {}),)))
    assert settled(store).injections.shown("s") == frozenset()
    # A start and its own answer have one time and one window.
    store = make_store()
    store.injections.record(an_injection("old", at=9.0, trigger="session_start", source="startup", tokens=400))
    store.events.append([an_event("start", at=10.0, kind="session_start", payload={"source": "compact"})])
    item = (Item("not-a", "past", 1.0, 1, {}),)
    store.injections.record(an_injection("i", at=10.0, trigger="session_start", source="compact", items=item))
    assert store.injections.shown("s") == {"not-a"}
    assert store.injections.window_tokens("s") == {"session_start": 7}
    # What a session came to is in its window until that begins again.
    store = make_store()
    (earlier,) = store.memories.put([a_memory("earlier", session="s", created=5.0)])
    (other,) = store.memories.put([a_memory("of another", session="t", created=25.0)])
    store.events.append([an_event("start", at=10.0, kind="session_start", session="s")])
    (mine,) = store.memories.put([a_memory("mine", session="s", created=20.0)])
    assert store.injections.shown("s") == {mine.id}
    assert store.injections.shown("t") == {other.id}
    assert earlier.id not in store.injections.shown("s")
    store.events.append([an_event("compact", at=30.0, kind="compaction", session="s")])
    assert store.injections.shown("s") == frozenset()
    # What a compaction was told is not in the window.
    store = make_store()
    store.injections.record(
        an_injection("i", at=10.0, trigger="compaction", items=(Item("not-a", "past", 1.0, 1, {}),))
    )
    assert store.injections.shown("s") == frozenset()
    # A window whose beginning is told late holds what was given since.
    store = make_store()
    store.events.append([an_event("prompt", at=20.0)])
    store.events.append([an_event("start", at=10.0, kind="session_start")])
    store.injections.record(
        an_injection("i", at=10.0, trigger="session_start", items=(Item("not-a", "past", 1.0, 1, {}),))
    )
    assert store.injections.shown("s") == {"not-a"}
    # A start in xml stands in every request and no compaction takes it away.
    store = make_store()
    store.events.append([an_event("start", at=10.0, kind="session_start", payload={"source": "startup"})])
    held, lost = (Item("not-a", "past", 1.0, 1, {}),), (Item("not-b", "index", 1.0, 1, {}),)
    first = an_injection("i", at=10.0, trigger="session_start", form="xml", source="startup", items=held, text="x")
    store.injections.record(first)
    store.injections.record(an_injection("j", at=12.0, form="xml", items=lost))
    store.events.append([an_event("compacted", at=20.0, kind="compaction")])
    assert store.injections.first_start("s", project=first.project, form="xml") == first
    assert store.injections.shown("s") == {"not-a"}
    assert store.injections.window_tokens("s") == {"session_start": 7}
    assert store.injections.last_start_at("s") == 10.0


@settings(deadline=None, max_examples=25)
@given(text=TEXT, words=st.lists(TEXT, max_size=4).map(tuple), source=TEXT, away=st.booleans())
def test_any_injection_survives_exactly_and_lists_leave_its_text_out(shared_store, text, words, source, away):
    id = f"inj-{next(fresh)}"
    item = Item(f"not-{id}", "index", 0.5, 3, {"match": 0.25})
    injection = an_injection(
        id, items=(item,), text=text, terms=words, files=words, source=source, form="xml", away=away
    )
    shared_store.injections.record(injection, at_once=True)
    assert shared_store.injections.get(id) == injection
    assert shared_store.injections.list(memory=item.memory) == (replace(injection, text=""),)
    assert shared_store.injections.list(memory=item.memory, texts=True) == (injection,)


def test_a_window_knows_its_tokens_its_first_answer_and_its_prompts(make_store):
    # What a window was given is counted by moment.
    store = make_store()
    store.events.append([an_event("start", at=10.0, kind="session_start")])
    for number, (trigger, tokens) in enumerate(
        (("session_start", 900), ("prompt", 70), ("prompt", 30), ("question", 5))
    ):
        store.injections.record(
            an_injection(f"i{number}", at=10.0 + number, trigger=trigger, tokens=tokens, source="startup")
        )
    store.injections.record(an_injection("other", at=12.0, session="other", tokens=400))
    assert store.injections.window_tokens("s") == {"session_start": 900, "prompt": 100, "question": 5}
    assert store.injections.window_tokens("other") == {"prompt": 400}
    assert store.injections.window_tokens("nobody") == {}
    for number, (kind, source, left) in enumerate(
        [("session_start", "resume", 3), ("session_start", "fork", 3), ("prompt", "", 3), ("session_start", "clear", 0)]
    ):
        store.events.append([an_event(f"e{number}", at=20.0 + number, kind=kind, payload={"source": source})])
        assert len(store.injections.window_tokens("s")) == left, source
    # The first start of a window is found by its form and project.
    store = make_store()
    store.events.append([an_event("start", at=10.0, kind="session_start")])
    first = an_injection("i", at=11.0, trigger="session_start", text="first")
    store.injections.record(first)
    store.injections.record(replace(first, id="j", at=12.0, text="second"))
    about = {"session": "s", "project": first.project, "form": first.form}
    assert store.injections.first_start(**about) == first
    for other in ({"form": "plain"}, {"project": "there"}, {"session": "t"}):
        assert store.injections.first_start(**{**about, **other}) is None, other
    store.events.append([an_event("end", at=20.0, kind="compaction")])
    assert store.injections.first_start(**about) is None
    # A window knows whether it saw a prompt.
    store = make_store()
    assert not store.events.has_prompt("s", before=99.0)
    store.events.append([an_event("start", at=10.0, kind="session_start"), an_event("said", at=11.0, kind="prompt")])
    store.events.append([an_event("used", at=12.0, kind="tool")])
    assert store.events.has_prompt("s", before=11.5)
    assert not store.events.has_prompt("s", before=11.0)  # itself
    assert not store.events.has_prompt("t", before=99.0)
    store.events.append([an_event("compacted", at=20.0, kind="compaction")])
    assert not store.events.has_prompt("s", before=99.0)


@table(
    ("source", "begins"),
    [("startup", True), ("clear", True), ("compact", True), ("", False), ("resume", False), ("question", False)],
)
def test_an_answered_start_begins_a_window_where_no_event_was_kept(store, source, begins):
    store.injections.record(an_injection("i", at=10.0, items=(Item("not-a", "index", 1.0, 1, {}),)))
    store.injections.record(an_injection("j", at=20.0, trigger="session_start", source=source))
    assert store.injections.shown("s") == (frozenset() if begins else {"not-a"})


def test_links_changes_and_counts_are_told(make_store):
    # Links are seen from both ends once.
    store = make_store()
    one, two, three = store.memories.put([a_memory("1"), a_memory("2"), a_memory("3")])
    links = [Link(one.id, "supersedes", two.id), Link(three.id, "part-of", one.id), Link(one.id, "supersedes", two.id)]
    store.memories.put([], links=links)
    store.memories.put([], links=links)
    assert set(store.memories.links(one.id)) == set(links)
    assert len(store.memories.links(one.id)) == 2
    assert store.memories.links(two.id) == (links[0],)
    assert store.memories.links("nobody") == ()
    # Changes come back newest first.
    store = make_store()
    old = Change("here", "a.py", "f", "NEW", "f(x)", 3, 9, "s", 10.0)
    new = Change("here", "a.py", "f", "DELETED", at=20.0)
    store.save(changes=[new, old, Change("there", "b.py", "g", "MODIFIED", at=30.0)])
    assert store.sessions.changes("here", limit=5) == (new, old)
    assert store.sessions.changes("here", limit=1) == (new,)
    # A change that is neither new nor modified nor deleted is refused whole.
    store = make_store()
    with pytest.raises(StoreError):
        store.save(changes=[Change("here", "a.py", "f", "NEW"), Change("here", "a.py", "g", "RENAMED")])
    assert store.sessions.changes("here", limit=5) == ()
    # Counts tell how many rows of everything there are.
    store = make_store()
    (kept,) = store.memories.put([a_memory("x")], links=[Link("a", "relates-to", "b")])
    store.events.append([an_event("k")])
    store.save(changes=[Change("here", "a.py", "f", "NEW")])
    store.injections.record(an_injection("i", items=(Item("a", "b", 1.0, 1, {}),) * 3))
    store.memories.record_access([kept.id, kept.id], how="get", at=1.0)
    expected = {"memories": 1, "links": 1, "events": 1, "sessions": 1, "changes": 1, "injections": 1}
    assert settled(store).stats.row_counts().items() >= {**expected, "injection_items": 3, "access": 2}.items()


# -- many at once, and the end ----------------------------------------------------------------------------------------


def in_threads(many, work):
    """*work* in many threads that begin together; what each raised."""
    barrier, wrong = threading.Barrier(many), []

    def run(number):
        barrier.wait()
        try:
            work(number)
        except Exception as exc:
            wrong.append(exc)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    return wrong


def test_many_at_once_are_stored_once_each_and_fail_alone(make_store):
    # What 64 threads append at once is stored once each.
    store = make_store()

    def work(number):
        for n in range(10):
            # Every event is told by two of the threads.
            store.events.append([an_event(f"{number // 2}-{n}", lasting=True, session=f"s{number % 4}")])

    assert in_threads(64, work) == []
    assert store.stats.row_counts()["events"] == 320
    assert sum(session.events for session in store.sessions.list()) == 320
    # One failing change fails alone.
    store = make_store()

    def work(number):
        store.memories.put([a_memory(f"walrus {number}", kind="rumour" if number == 7 else "note")])

    wrong = in_threads(32, work)
    assert [type(exc) for exc in wrong] == [BadRequest]
    assert store.stats.row_counts()["memories"] == 31
    assert len(found(store, "walrus")) == 31
    # Readers and writers do not wait for each other.
    store = make_store()

    def work(number):
        for n in range(5):
            if number % 2:
                store.memories.put([a_memory(f"walrus {number} {n}")])
            else:
                found(store, "walrus")
                recent(store)

    assert in_threads(24, work) == []
    assert len(found(store, "walrus", limit=100)) == 60


def test_what_cannot_be_written_is_told(store):
    store.injections.record(an_injection("i", at=None))
    assert "could not be written" in " ".join(settled(store).database.problems())


def test_a_closed_store_refuses_and_never_hangs(make_store, tmp_path):
    store = make_store(tmp_path)
    stop = threading.Event()

    def work(number):
        if number == 0:
            stop.wait(0.05)
            store.close()
        else:
            for n in itertools.count():
                store.events.append([an_event(f"{number}-{n}")])

    wrong = in_threads(16, work)
    assert len(wrong) == 15
    assert {type(exc) for exc in wrong} == {StoreError}
    for ask in (
        store.stats.row_counts,
        store.sessions.list,
        lambda: store.events.append([an_event("x")]),
        lambda: recent(store),
    ):
        with pytest.raises(StoreError):
            ask()
    store.close()


# -- SQLite's own ways ------------------------------------------------------------------------------------------------


@pytest.fixture
def sqlite(tmp_path):
    store = Store(tmp_path / "memory.db", backups=tmp_path / "backups")
    yield store
    store.close()


def test_a_file_that_somebody_removed_is_an_error_of_the_store(sqlite, tmp_path):
    (tmp_path / "memory.db").unlink()
    held, wrong = threading.Event(), []

    def read():
        try:
            with sqlite.database.same_connection():
                held.wait(10)
        except BaseException as exc:
            wrong.append(exc)
            held.set()

    readers = [threading.Thread(target=read) for _ in range(3)]  # no more than one connection was open before
    for each in readers:
        each.start()
    for each in readers:
        each.join(20)
    assert wrong
    assert {type(exc) for exc in wrong} == {StoreError}


def test_many_appends_share_a_commit(sqlite):
    commits = []
    sqlite.database.connection.set_commit_hook(lambda: bool(commits.append(1)))
    in_threads(64, lambda number: [sqlite.events.append([an_event(f"{number}-{n}")]) for n in range(10)])
    assert sqlite.stats.row_counts()["events"] == 640
    assert len(commits) < 320


def test_a_full_disk_fails_those_that_were_not_stored_and_nobody_else(sqlite):
    sqlite.database.write(
        lambda: sqlite.database.connection.pragma(
            "max_page_count", int(sqlite.database.connection.pragma("page_count")) + 60
        )
    )
    stored = []

    def work(number):
        for n in range(10):
            key = f"{number}-{n}"
            sqlite.events.append([an_event(key, payload={"text": "x" * 3000})])
            stored.append(key)

    wrong = in_threads(16, work)
    assert wrong
    assert all(type(exc) is StoreError and "full" in exc.hint for exc in wrong)
    assert {event.key for event in sqlite.events.list("s")} == set(stored)
    with pytest.raises(StoreError):
        sqlite.events.append([an_event("too much", payload={"text": "x" * 1_000_000})])
    assert "full" in " ".join(sqlite.database.problems())
    sqlite.database.write(lambda: sqlite.database.connection.pragma("max_page_count", 10_000))
    assert sqlite.events.append([an_event("space again")]) == (True,)
    assert sqlite.database.problems() == ()


def test_what_was_left_for_later_is_given_up_and_reported_where_it_does_not_fit(sqlite):
    pages = int(sqlite.database.connection.pragma("page_count"))
    sqlite.database.write(lambda: sqlite.database.connection.pragma("max_page_count", pages + 5))
    sqlite.injections.record(an_injection("late", text="x" * 100_000))
    assert sqlite.events.append([an_event("small")]) == (True,)  # it fits, whatever the rest does
    assert sqlite.injections.get("late") is None
    assert "full" in " ".join(sqlite.database.problems())
    sqlite.database.write(lambda: sqlite.database.connection.pragma("max_page_count", 10_000))
    sqlite.injections.record(an_injection("later"))
    assert settled(sqlite).injections.get("later").id == "later"
    assert sqlite.database.problems() == ()


def test_of_many_who_look_at_once_one_waits_for_a_store_that_takes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("foreword.store.database.LATER_SECONDS", 600.0)  # nobody else tries to write it
    store = Store(tmp_path / "memory.db", backups=tmp_path / "backups")
    store.database.write(
        lambda: store.database.connection.pragma(
            "max_page_count", int(store.database.connection.pragma("page_count")) + 5
        )
    )
    failed = []
    store.database.connection.set_rollback_hook(lambda: failed.append(1))
    readers = [threading.Thread(target=store.injections.list) for _ in range(6)]
    with store.database.turn:
        store.injections.record(an_injection("late", text="x" * 100_000))
        for each in readers:
            each.start()
        time.sleep(0.1)  # so that they stand in line; the promise holds whether they do or not
    for each in readers:
        each.join()
    assert len(failed) == 1
    store.close()


def test_readers_cannot_write_and_the_files_are_private(sqlite, tmp_path):
    # Readers cannot write.
    with sqlite.database.same_connection() as connection, pytest.raises(apsw.ReadOnlyError):
        connection.execute("DELETE FROM memories")
    # The files are for their owner alone.
    sqlite.memories.put([a_memory("x")])
    assert {file.stat().st_mode & 0o777 for file in tmp_path.glob("memory.db*")} == {0o600}


CHILD = """
import sys, threading
from pathlib import Path
from foreword.store import Store
from foreword.models import Event
folder = Path(sys.argv[1])
store = Store(folder / "memory.db", backups=folder / "backups")
told = threading.Lock()
def work(number):
    for n in range(100_000):
        key = f"{number}-{n}"
        store.events.append([Event(key, "h", "n", "tool", "s", "p", "/", 1000.0, {"text": "x" * 500}, lasting=True)])
        with told:
            print(key, flush=True)
for number in range(8):
    threading.Thread(target=work, args=(number,)).start()
"""


@table("lines", [1, 400])
def test_what_append_has_returned_from_survives_kill_9(tmp_path, lines):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True, encoding="ascii"
    )
    with child:
        acknowledged = [child.stdout.readline() for _ in range(lines)]
        child.send_signal(signal.SIGKILL)
        acknowledged += child.stdout.readlines()
    confirmed = {line.strip() for line in acknowledged if line.endswith("\n")}
    store = Store(tmp_path / "memory.db", backups=tmp_path / "backups")
    keys = [event.key for event in store.events.list("s", limit=1_000_000)]
    assert confirmed <= set(keys)
    assert len(keys) == len(set(keys)) == store.sessions.list()[0].events
    assert store.database.connection.pragma("integrity_check") == "ok"
    store.close()


@settings(max_examples=25, deadline=None)
@given(
    times=st.lists(st.tuples(st.integers(1, 6), st.sampled_from(tuple(KINDS))), min_size=1, max_size=12),
    at=st.integers(0, 11),
    limit=st.integers(1, 5),
)
def test_what_came_before_and_after_is_nearest_in_time_and_tells_every_neighbour_once(shared_store, times, at, limit):
    project = next(fresh)
    kept = shared_store.memories.put(
        [
            a_memory(str(place), kind=kind, project=project, created=float(when))
            for place, (when, kind) in enumerate(times)
        ]
    )
    order = sorted(kept, key=lambda memory: (memory.created, memory.id))
    middle = at % len(order)
    before, after = shared_store.memories.neighbours(order[middle], scope=f"project:{project}", limit=limit)
    assert list(before) == order[max(0, middle - limit) : middle]
    assert list(after) == order[middle + 1 : middle + 1 + limit]


def test_neighbours_are_active_and_of_the_scope_that_was_asked_for(store):
    store.memories.put([a_memory("elsewhere", project="there"), a_memory("stale", status="stale"), a_memory("near")])
    [middle] = store.memories.put([a_memory("middle", scope="universal", created=2.0)])
    before, after = store.memories.neighbours(middle, scope="project:here", limit=9)
    assert [memory.title for memory in before] == ["near"]
    assert after == ()
