"""What is forgotten stays so wherever it was before: in a merged project, an older backup, a learning, or the log."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foreword.amendments import Amendment
from foreword.errors import NotFound
from foreword.paths import Home
from foreword.store import forgetting
from foreword.types import Event, Link, Memory, Project
from foreword.worker.keeper import Keeper
from foreword.worker.projects import united

RNG = random.Random(66)


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture
def keeper(home: Home) -> Iterator[Keeper]:
    for folder in (home.logs, home.spool, home.backups):
        folder.mkdir(parents=True, exist_ok=True)
    made = Keeper(home, now=Clock())
    yield made
    made.close()


def noise(length: int = 40) -> str:
    return "".join(RNG.choices("ABCDEFGHJKLMNPQRSTUVWXYZ234567", k=length))


def forget(keeper: Keeper, **asked: Any) -> dict[str, Any]:
    return keeper._forgetting.asked(asked)


def kept(keeper: Keeper, *memories: Memory) -> list[Memory]:
    made = [
        replace(each, project=each.project or "a", created=each.created or 5.0, confirmed=each.confirmed or 5.0)
        for each in memories
    ]
    return list(keeper.store.keep(made))


def merge(keeper: Keeper, key: str, into: str) -> None:
    keeper.store.merge_project(key, into=into, unite=united, who="user", at=keeper.now())


def test_a_memory_whose_project_was_merged_goes_from_the_backup_of_before(home: Home, keeper: Keeper) -> None:
    text = "the payroll database is at ten dot four"
    (one,) = kept(keeper, Memory("decision", text, uid="dec:a:1"))
    keeper.store._flush()
    keeper.store._db.execute("VACUUM INTO ?", (str(home.backups / "before.db"),))
    merge(keeper, "a", "b")
    forget(keeper, ids=[one.id])
    assert b"payroll" not in (home.backups / "before.db").read_bytes()


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_was_forgotten_is_not_brought_back_under_the_key_of_another_time(keeper: Keeper, when: str) -> None:
    (one,) = kept(keeper, Memory("failure", "short", uid="fai:a:1"))
    if when == "before":
        forget(keeper, ids=[one.id])
        merge(keeper, "a", "b")
    else:
        merge(keeper, "a", "b")
        forget(keeper, ids=[one.id])
    again = Memory("failure", "in another wording", uid="fai:b:1", project="b", created=5.0)
    assert keeper.store.bring([again]) == ()


def test_a_project_is_forgotten_by_the_folder_of_its_alias(keeper: Keeper, tmp_path: Path) -> None:
    folder = tmp_path / "clone"
    folder.mkdir()
    own = keeper.registry.at(str(folder)).key
    (one,) = kept(keeper, Memory("decision", "a thing of the project", project=own))
    merge(keeper, own, "b")
    receipt = forget(keeper, project=str(folder))
    assert receipt["memories"] == 1
    assert keeper.store.by_id([one.id]) == ()


def test_what_is_noted_of_other_projects_stays_when_one_is_forgotten(keeper: Keeper) -> None:
    kept(keeper, Memory("note", "of the one", project="/src/foo"))
    names = ("tidied: /src/foo", "tidied: /src/foobar", "git:/src/foobar")
    for name in names:
        keeper.store.set_mark(name, "1", at=1.0)
    live = keeper.store.forgetting
    going = live.ask(lambda execute: forgetting.doomed(execute, projects=("/src/foo",)))
    live.begin(going, at=9.0)
    live.remove(going)
    live.end({}, who="user", why="", at=9.0, ids=())
    assert [keeper.store.mark(name) for name in names] == ["", "1", "1"]


def test_what_a_forgotten_failure_taught_tells_it_no_more(home: Home, keeper: Keeper) -> None:
    message = "payroll.example.internal refuses port 7788"
    (one,) = kept(keeper, Memory("failure", message, uid="fai:a:1", session="s1"))
    made = Memory("pattern", message, uid="pat:a:1", project="a", scope="project:a", created=6.0, confirmed=6.0,
                  detail={"from": [one.uid], "problem": message, "solution": "open the port"})  # fmt: skip
    link = Link(made.uid, "caused-by", one.id)
    keeper.store.amend([Amendment("learn", new=(made,), links=(link,))], who="tidy", at=7.0)
    forget(keeper, ids=[one.id])
    assert b"payroll" not in home.database.read_bytes()


def test_what_only_forgotten_sessions_said_is_not_learned_any_more(home: Home, keeper: Keeper) -> None:
    said = "Turns out payroll exports vanish without a trailing newline"
    for session in ("s1", "s2"):
        keeper.store.append([Event(session, "h", "p", "prompt", session, "a", "/", 5.0, {"prompt": said})])
        kept(keeper, Memory("summary", f"Exports {session}", uid=f"sum:{session}", session=session, trust="agent",
                            detail={"learned": [said]}))  # fmt: skip
    keeper._tidying.run([Project("a", "a", "")])
    assert [each.kind for each in keeper.store.of_kinds(("learning",))] == ["learning"]
    for session in ("s1", "s2"):
        forget(keeper, session=session)
    assert b"payroll" not in home.database.read_bytes()
    assert keeper.store.of_kinds(("learning",)) == ()


def test_what_was_learned_and_forgotten_is_not_learned_again(keeper: Keeper) -> None:
    said = "Exports vanish without a trailing newline in the payroll"
    for session in ("s1", "s2"):
        kept(keeper, Memory("summary", f"Exports {session}", uid=f"sum:{session}", session=session, trust="agent",
                            detail={"learned": [said]}))  # fmt: skip
    project = Project("a", "a", "")
    keeper._tidying.run([project])
    (one,) = keeper.store.of_kinds(("learning",))
    forget(keeper, ids=[one.id])
    assert keeper._tidying.run([project], dry_run=True)["by"] == {}
    before = len(keeper.store.log(limit=1000))
    assert keeper._tidying.run([project])["by"] == {}
    assert len(keeper.store.log(limit=1000)) == before
    assert keeper.store.of_kinds(("learning",)) == ()


def test_what_a_forgotten_one_superseded_can_be_taken_back(keeper: Keeper) -> None:
    old, new = kept(keeper, Memory("decision", "Use Redis for it"), Memory("decision", "Use Valkey for it"))
    after = replace(old, status="superseded", superseded_by=new.id)
    (entry,) = keeper.store.amend([Amendment("supersede", changed=((old, after),))], who="user", at=6.0)
    forget(keeper, ids=[new.id])
    undone = keeper.store.undo(keeper.store.log(numbers=[entry.number]), who="user", at=keeper.now())
    assert not undone.refused
    (back,) = keeper.store.by_id([old.id])
    assert (back.status, back.superseded_by) == ("active", "")


def test_nothing_is_taken_back_that_leads_to_what_was_forgotten(keeper: Keeper) -> None:
    old, new = kept(keeper, Memory("decision", "Use Redis for it"), Memory("decision", "Use Valkey for it"))
    aside = replace(old, status="superseded", superseded_by=new.id)
    link = Link(new.id, "supersedes", old.id)
    keeper.store.amend([Amendment("supersede", changed=((old, aside),), links=(link,))], who="user", at=6.0)
    (aside,) = keeper.store.by_id([old.id])
    back = replace(aside, status="active", superseded_by="")
    (entry,) = keeper.store.amend([Amendment("restore", changed=((aside, back),), unlinked=(link,))], who="user", at=7)
    forget(keeper, ids=[new.id])
    keeper.store.undo(keeper.store.log(numbers=[entry.number]), who="user", at=keeper.now())
    (now,) = keeper.store.by_id([old.id])
    assert now.superseded_by != new.id
    assert keeper.store.linked(old.id) == ()


def test_no_stored_text_is_in_the_hook(home: Home, keeper: Keeper) -> None:
    before = home.hook.read_bytes(), home.hook_client.read_bytes()
    said = noise()
    (one,) = kept(keeper, Memory("decision", said, session="s"))
    keeper.store.append([Event("k", "h", "p", "prompt", "s", "a", "/", 5.0, {"prompt": said})])
    keeper.reload()
    keeper.tend()
    forget(keeper, ids=[one.id])
    keeper.reload()
    assert (home.hook.read_bytes(), home.hook_client.read_bytes()) == before


@pytest.mark.parametrize(
    "text",
    [
        "Straße nach Zürich über Łódź — ÄÖÜ ẞ İstanbul",
        "決定：決済サービスは夜間に停止する。再起動は手動で行う",
        "cafe\u0301 und re\u0301sume\u0301 im Geheimbericht",
        'with "quotes", a \\ backslash and\ttabs',
        "🦭" * 12,
    ],
)
def test_any_script_goes_from_every_file(home: Home, keeper: Keeper, text: str) -> None:
    (one,) = kept(keeper, Memory("decision", text, session="s", uid="dec:a:x"))
    forms = [text, text.upper(), json.dumps(text), json.dumps(json.dumps(text))]
    for number, form in enumerate(forms):
        keeper.store.append([Event(f"k{number}", "h", "p", "prompt", "s", "a", "/", 5.0, {"prompt": f"say: {form}"})])
    (home.root / "export.jsonl").write_text(json.dumps({"said": text}) + "\n" + text + "\n")
    shutil.copy(home.root / "export.jsonl", home.root / "utf8.txt")
    receipt = forget(keeper, ids=[one.id])
    assert receipt["left"] == []
    letters = [text[at : at + 4] for at in range(0, len(text) - 4, 4) if not text[at : at + 4].isspace()]
    for path in (home.database, home.root / "export.jsonl", home.root / "utf8.txt"):
        data = path.read_bytes()
        assert [each for each in letters if len(each.encode()) >= 6 and each.encode() in data] == []


@pytest.mark.parametrize("match", ["100%", "_", "a*b", '"x" OR y', "it's", "\\", "%'); --"])
def test_signs_are_looked_for_as_they_are(keeper: Keeper, match: str) -> None:
    kept(keeper, Memory("note", f"holds {match} here"), Memory("note", "holds nothing of it, once 1"))
    keeper.store.append([Event("k", "h", "p", "prompt", "s", "a", "/", 5.0, {"prompt": "x"})])
    assert forget(keeper, match=match, project="a")["memories"] == 1


def test_nothing_that_is_about_to_go_is_fetched_any_more(keeper: Keeper) -> None:
    (one,) = kept(keeper, Memory("decision", "walrus"))
    live = keeper.store.forgetting
    live.begin(live.ask(lambda execute: forgetting.doomed(execute, ids=[one.id])), at=9.0)
    with pytest.raises(NotFound):
        keeper.memory(one.id)


def test_what_a_forgotten_session_saw_and_fixed_of_anothers_memory_goes_with_it(home: Home, keeper: Keeper) -> None:
    fix, other = noise(30), noise(30)
    both = {"gone": 2, "later": 1}
    one, two = kept(
        keeper,
        Memory(
            "failure",
            "pool is closed",
            session="later",
            detail={"seen_in": both, "fixed_in": {"gone": fix}, "fixed_by": fix},
        ),
        Memory(
            "failure",
            "lock is held",
            session="later",
            detail={"seen_in": both, "fixed_in": {"later": other, "gone": fix}, "fixed_by": fix},
        ),
    )
    keeper.store.append([Event("k", "h", "UserPromptSubmit", "prompt", "gone", "a", "/", 5.0, {"prompt": "hello"})])
    shown = forget(keeper, session="gone", dry_run=True)
    receipt = forget(keeper, session="gone")
    assert sorted(receipt["cut_memories"]) == sorted(shown["cut_memories"]) == sorted([one.id, two.id])
    first, second = keeper.store.by_id([one.id, two.id])
    assert first.detail == {"seen_in": {"later": 1}}
    assert second.detail == {"seen_in": {"later": 1}, "fixed_in": {"later": other}, "fixed_by": other}
    keeper.close()
    data = home.database.read_bytes()
    assert [at for at in range(len(fix) - 5) if fix[at : at + 6].encode() in data] == []
