"""What the worker does again after something failed, changed underneath it or was left by another worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from foreword.errors import StoreError
from foreword.models import Memory
from foreword.paths import Home
from foreword.problems import noted
from foreword.projects import resolve
from foreword.worker import forget
from foreword.worker.app import App


@pytest.fixture
def app(home: Home) -> Iterator[App]:
    home.prepare()
    made = App(home)
    yield made
    made.close()


def a_failure(project: str, title: str) -> Memory:
    owner = resolve(project)
    about = {"project": owner.key, "scope": owner.scope, "created": 1.0, "confirmed": 1.0}
    return Memory(
        "failure", title, uid=title, detail={"error": "no such table", "key": title, "cause": "usage"}, **about
    )


def test_a_damaged_stored_event_stops_no_capture_of_its_session(app: App, home: Home, project: str):
    def send(app: App, number: int) -> None:
        payload = {"session_id": "s1", "cwd": project, "prompt": f"step {number}"}
        app.capture.add_events({"events": [{"host": "claude-code", "event": "UserPromptSubmit", "payload": payload}]})

    send(app, 1)
    damage = """UPDATE events SET payload = '{"prompt": "cut'"""
    app.store.database.write(lambda: app.store.database.execute(damage))
    send(app, 2)
    again = App(home)  # it reads the session back
    try:
        send(again, 3)
        send(again, 4)
        assert again.store.stats.row_counts()["events"] == 4
    finally:
        again.close()


def test_a_problem_that_finds_no_room_is_reported_when_there_is_some(app: App, home: Home):
    home.trouble.unlink(missing_ok=True)
    home.trouble.mkdir()
    app.report("store", "the disk is full")
    app.tick()
    home.trouble.rmdir()
    app.tick()
    assert [each.what for each in noted(str(home.trouble)) if "full" in each.what] == ["the disk is full"]


def test_a_project_that_the_store_did_not_take_is_stored_at_the_next_tick(app: App, project: str, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise StoreError("the disk is full", hint="free some space")

    app.tick()
    owner, begun = resolve(project), app.store.database.write
    monkeypatch.setattr(app.store.database, "write", full)
    monkeypatch.setattr(app.store.database, "write_later", full)
    app.projects.saw(owner)
    app.tick()
    monkeypatch.setattr(app.store.database, "write", begun)
    app.tick()
    assert owner.key in app.store.projects.all()


def test_hints_and_turns_are_read_again_after_a_forget(app: App, project: str, tmp_path):
    owner, other = resolve(project), resolve(str(tmp_path))
    turn = Memory("turn", "why?", body="because", project=owner.key, scope=owner.scope, created=1.0, confirmed=1.0)
    failure, there, prompted = app.store.memories.put(
        [a_failure(project, "one"), a_failure(str(tmp_path), "two"), turn]
    )
    assert [len(app.hints._known(each)) for each in (owner, other)] == [1, 1]
    assert len(app.context._turns_of(owner)) == 1
    forget.forget(app, {"ids": [failure.id, there.id, prompted.id]})
    assert [app.hints._known(each) for each in (owner, other)] == [(), ()]
    assert app.context._turns_of(owner) == ()


def test_a_refresh_during_a_read_is_not_overwritten_by_it(app: App, project: str, monkeypatch):
    owner, read, found = resolve(project), app.store.memories.list, [a_failure(project, "two")]
    app.store.memories.put([a_failure(project, "one")])

    def read_while_another_comes(*kinds: object, **named: object) -> object:
        known = read(*kinds, **named)
        if kinds == (("failure",),) and found:
            app.store.memories.put([found.pop()])
            app.hints.refresh()
        return known

    monkeypatch.setattr(app.store.memories, "list", read_while_another_comes)
    assert len(app.hints._known(owner)) == 1
    assert len(app.hints._known(owner)) == 2


def test_the_next_worker_of_a_day_does_not_prune_again(app: App, home: Home):
    app.last_request -= 1e6
    assert app.prune._is_due()
    app.prune.run(who="worker")
    assert not app.prune._is_due()
    again = App(home)
    try:
        again.last_request -= 1e6
        assert not again.prune._is_due()
    finally:
        again.close()
