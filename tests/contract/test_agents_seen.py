"""What a store tells of hosts: their sessions, their last event, what they were given last."""

from __future__ import annotations

from foreword.models import Event, Injection, Session


def event(session: str, *, host: str = "codex", at: float = 100.0, name: str = "Stop") -> Event:
    return Event(
        key=f"{session}-{name}-{at}",
        host=host,
        name=name,
        kind="stop",
        session=session,
        project="p",
        cwd="/p",
        at=at,
        payload={},
    )


def injection(session: str, *, host: str = "codex", at: float = 100.0, tokens: int = 7) -> Injection:
    return Injection(
        id=f"inj-{session}-{at}",
        trigger="prompt",
        session=session,
        project="p",
        host=host,
        at=at,
        tokens=tokens,
        budget=500,
        build_ms=1.0,
        layers={},
        skipped={},
        items=(),
    )


def test_each_host_has_its_sessions_and_what_it_was_given_last(make_store):
    # Nothing was seen in an empty store.
    store = make_store()
    assert store.stats.agents() == {}
    # Each host has its sessions its last event and what it was given last.
    store = make_store()
    store.events.append([event("a", at=100), event("b", at=300, name="SessionEnd"), event("a", at=200)])
    store.events.append([event("c", host="gemini", at=50)])
    store.injections.record(injection("a", at=150))
    store.injections.record(injection("b", at=250, tokens=0))  # a silence gave nothing
    seen = store.stats.agents()
    assert seen["codex"] == {
        "last_event": {"at": 300.0, "name": "SessionEnd"},
        "last_injection": {"at": 150.0, "trigger": "prompt", "tokens": 7},
        "sessions": 2,
    }
    assert (seen["gemini"]["last_event"]["at"], seen["gemini"]["last_injection"]) == (50.0, None)
    # What an import told of a session is no event of its host.
    store = make_store()
    store.save(Session(id="old", host="codex", project="p", cwd="/p", started=1.0, last=9_000.0))
    assert store.stats.agents() == {}
    store.events.append([event("a", at=100)])
    codex = store.stats.agents()["codex"]
    assert (codex["sessions"], codex["last_event"]["at"]) == (1, 100.0)
