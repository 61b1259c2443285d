"""What a session begins with: where things stand, what came before, what comes back, rules, the files in play."""

from __future__ import annotations

from dataclasses import replace

from foreword.models import Context, Memory, Project, Trigger
from foreword.recall.files import TurnRecord, recent_files
from foreword.recall.start import FILES, OPEN_ITEMS, repository_of, resume, work_in_progress
from tests.tables import table
from tests.unit.recalling import DAY, HERE, HOUR, NOW, a_memory, ask


def a_session(number: int = 0, **more: object) -> Memory:
    about = {
        "session": f"s{number}",
        "uid": f"sum:{number}",
        "age": (number + 1) * DAY,
        "trust": "agent",
        "source": "codex",
    }
    body = more.pop("body", f"It swims in pool number {number} now.")
    return a_memory(more.pop("title", f"Walrus{number}"), kind="summary", body=body, **{**about, **more})


def a_failure(command: str, *sessions: str, worked: str = "", last: float = NOW - DAY, **more: object) -> Memory:
    detail = {
        "command": command,
        "error": "no rule to make target",
        "seen_in": dict.fromkeys(sessions, 1),
        "worked": {worked: list(sessions)} if worked else {},
        "last": last,
    }
    return a_memory(command, kind="failure", trust="tool", uid=command, confirmed=last, **{"detail": detail, **more})


def start_text(store, **more) -> str:
    got = ask(store, "session_start", **more)
    return got.text if isinstance(got, Context) else ""


def part(text: str, heading: str) -> list[str]:
    """Return the lines under a heading."""
    rows = text.split("\n")
    if f"## {heading}" not in rows:
        return []
    start = rows.index(f"## {heading}") + 1
    return rows[start : rows.index("", start)]


# -- where things stand ------------------------------------------------------------------------------------------------
def test_the_branch_what_is_not_committed_and_parallel_sessions_come_first(store):
    about = {"branch": "wait", "pull_request": "#41", "uncommitted": ["a.py", "b.py", "c.py", "d.py"]}
    store.memories.put([a_session(detail=about)])
    text = start_text(store, parallel=((NOW - 600, ("prices.py",)),))
    assert part(text, "Where things stand") == [
        "- Branch wait, pull request #41; 4 files edited yesterday and not committed: a.py, b.py, c.py and 1 more",
        "- Another session works in this folder since 10m: prices.py",
    ]
    # What git does not call changed was committed since, and files that are gone are not named.
    assert "not committed" not in start_text(store, changed=frozenset())
    assert "2 files edited yesterday and not committed: b.py, d.py" in start_text(
        store, changed=frozenset(("b.py", "d.py"))
    )


@table(
    ("detail", "text"),
    [
        ({"branch": "main"}, ""),
        ({"branch": "trunk", "default_branch": "trunk"}, ""),
        ({"branch": "x", "fate": "merged"}, "Branch x, merged"),
        ({"branch": "main", "pull_request": "#7"}, "Pull request #7"),
        ({"uncommitted": ["a.py"]}, "1 file edited yesterday and not committed: a.py"),
        ({"branch": 7, "uncommitted": {"a": 1}, "pull_request": ["#1"]}, "Pull request #1"),
    ],
)
def test_work_in_progress_is_told_as_far_as_it_is_known(detail, text):
    assert work_in_progress(a_session(detail=detail), Trigger("session_start", HERE), now=NOW) == text


def test_files_that_are_gone_are_not_named(store, tmp_path):
    (tmp_path / "here.py").touch()
    project = Project(key=HERE.key, name="rooms", root=str(tmp_path))
    store.memories.put([a_session(detail={"uncommitted": ["here.py", "gone.py"]}, files=("gone.py", "here.py"))])
    text = start_text(store, project=project)
    assert "here.py" in text
    assert "gone.py" not in text


def test_open_items_are_told_once_with_who_left_them_and_when(store):
    store.memories.put(
        [
            a_session(1, detail={"next": ["send the offer by mail", "Changes not committed: a.py"]}),
            a_session(
                2,
                detail={
                    "next": ["Send the offer by mail!", "delete the old table"],
                    "done_since": ["delete the old table"],
                },
            ),
            a_session(3, detail={"next": ["write the docs of the pool"]}),
            a_session(40, detail={"next": ["something of last month"]}),
        ]
    )
    assert part(start_text(store), "Where things stand") == [
        "- Open: send the offer by mail (left open 2 days ago)",
        "- Open: write the docs of the pool (left open 4 days ago)",
    ]


def test_what_a_person_hands_over_is_told_however_old_it_is(store):
    handoff = a_memory(
        "The mail works, limits are missing", kind="handoff", age=40 * DAY, detail={"next": ["limit it"]}
    )
    store.memories.put(
        [handoff, *(a_session(n, detail={"next": [f"do thing number{n} of the list"]}) for n in range(50, 60))]
    )
    lines = part(start_text(store), "Where things stand")
    assert lines == [
        "- Open: The mail works, limits are missing (handed over 5 weeks ago)",
        "- Open: limit it (handed over 5 weeks ago)",
    ]


def test_of_many_open_items_few_are_told(store):
    store.memories.put(
        [a_session(n, detail={"next": [f"write chapter number{n}{m} of it" for m in range(5)]}) for n in range(9)]
    )
    assert len(part(start_text(store), "Where things stand")) <= OPEN_ITEMS


# -- sessions, failures, commands --------------------------------------------------------------------------------------
def test_recent_sessions_are_told_newest_first_and_its_own_is_not(store):
    kept = store.memories.put([a_session(n) for n in (3, 1, 5, 2, 4)])
    own, empty = a_session(0, title="Now"), a_session(6, title="Said hello", body="")
    store.memories.put([own, empty])
    lines = part(start_text(store, session="s0"), "Recent sessions")
    assert [line.split(": ")[1] for line in lines] == ["Walrus1", "Walrus2", "Walrus3", "Walrus4"]
    assert all(line.startswith("- ") and line.endswith("]") for line in lines)
    assert f"[{kept[1].id}]" in lines[0]


def test_after_a_compaction_the_sessions_own_work_comes_first(store):
    store.memories.put([a_session(n) for n in (1, 2, 3)])
    body = (
        "hold() keeps a slot for half an hour, because members pay by hand and the bank needs its time for that. " * 3
    )
    store.memories.put([a_session(0, title="Now", body=body, detail={"next": ["send the offer by mail"]})])
    text = start_text(store, session="s0", source="compact")
    lines = part(text, "Recent sessions")
    assert body.strip(" .") in lines[0]
    assert [line.split(": ")[1] for line in lines] == ["Now", "Walrus1", "Walrus2", "Walrus3"]
    assert any("send the offer by mail" in line for line in part(text, "Where things stand"))


def test_only_what_comes_back_and_lately_is_told_with_what_works(store):
    store.memories.put(
        [
            a_failure("make unit", "a", "b", worked="make test"),
            a_failure("make once", "a", worked="make test"),
            a_failure("make often", *"abcd"),
            a_failure("make rarely", *"abc"),  # nothing is known to help, and it came up three times
            a_failure("make old", "a", "b", worked="make test", last=NOW - 90 * DAY),
        ]
    )
    lines = part(start_text(store), "Comes back")
    assert [line.split("`")[1] for line in lines] == ["make often", "make unit"]
    assert (
        lines[1]
        == '- `make unit` fails (2 sessions, last yesterday): "no rule to make target"; `make test` worked in 2'
    )


def test_what_helped_in_one_session_alone_is_no_way_out(store):
    once = a_failure("make port", *"abc")
    store.memories.put([replace(once, detail={**once.detail, "worked": {"make kill": ["a"]}})])
    assert part(start_text(store), "Comes back") == []


def test_a_title_is_listed_once_and_old_states_of_git_are_not(store):
    old = {"next": ["Not pushed: 2 commits on feat/rooms", "PR #7: review and merge", "Offer slots by mail"]}
    store.memories.put(
        [a_session(0, title="Colour the rooms"), a_session(1, title="Colour the rooms"), a_session(2, detail=old)]
    )
    text = start_text(store)
    assert text.count("Colour the rooms") == 1
    assert "Open: Offer slots by mail" in text
    assert "Not pushed" not in text
    assert "PR #7" not in text


def test_the_place_of_one_sessions_error_is_not_told(store):
    failure = a_failure("make lint", *"abcd")
    error = "rooms/mail.py:41:80: E501 line too long"
    store.memories.put([replace(failure, detail={**failure.detail, "error": error})])
    assert '(4 sessions, last yesterday): "E501 line too long"' in start_text(store)


def test_how_things_are_run_is_what_most_sessions_ran(store):
    about = {"repository": "band/rooms", "default_branch": "main"}
    store.memories.put(
        [
            a_session(1, detail={"checks": ["uv run pytest", "make lint"], **about}),
            a_session(2, detail={"checks": ["uv run pytest"]}),
            a_session(3, detail={"checks": [7, None], "repository": {"a": 1}}),
        ]
    )
    assert part(start_text(store), "How things are run here") == [
        "- `uv run pytest` · `make lint` · repository band/rooms · default branch main"
    ]


def test_the_repository_is_left_out_where_nothing_tells_it_for_certain():
    def sessions(*details):
        return [a_session(number, detail=each) for number, each in enumerate(details, 1)]

    here, elsewhere = {"repository": "band/rooms"}, {"repository": "lib/dates"}
    remote, folder = Project("git:github.com/band/rooms", "rooms", ""), Project("dir:/rooms", "rooms", "")
    assert repository_of(remote, sessions(elsewhere, elsewhere)) == "band/rooms"
    assert repository_of(folder, sessions(here)) == "band/rooms"
    assert repository_of(folder, sessions(here, elsewhere, here)) == "band/rooms"
    assert repository_of(folder, sessions(here, elsewhere)) == ""
    assert repository_of(Project("git:/srv/rooms.git", "rooms", ""), []) == ""
    mirror = Project("git:git.example.com/mirrors/rooms", "rooms", "")
    assert [repository_of(mirror, sessions(*each)) for each in ([here], [])] == ["band/rooms", "mirrors/rooms"]


# -- rules, files in play ----------------------------------------------------------------------------------------------
def test_only_the_users_words_become_rules_and_only_sure_ones(store):
    store.memories.put(
        [
            a_memory("Prices are whole cents", kind="preference"),
            a_memory("Use tabs", kind="preference", trust="agent", source="codex"),
            a_memory("Use spaces", kind="correction", trust="imported", source="lore"),
            a_memory("Maybe shorter names", kind="preference", confidence=0.5),
            a_memory("Names end in _at", kind="correction", confidence=0.5, seen=2),
            a_memory("Old rule", kind="preference", status="superseded", superseded_by="x"),
            a_memory("Discarded rule", kind="preference", status="discarded"),
        ]
    )
    assert {line.split(" (")[0] for line in part(start_text(store), "Rules")} == {
        "- Prices are whole cents",
        "- Names end in _at",
    }
    for form in ("xml", "plain", "codes"):
        assert not any(
            text in start_text(store, form=form) for text in ("Use tabs", "Use spaces", "shorter", "Old", "Waiting")
        )


def test_a_rule_for_all_projects_is_not_hidden_by_a_project_that_is_corrected_all_day(store):
    rules = [a_memory(f"Rule {n}: so it is", kind="correction", uid=f"c{n}", age=HOUR) for n in range(90)]
    store.memories.put([a_memory("Answer in German", kind="preference", scope="universal", age=300 * DAY), *rules])
    for budget in (0, 300):
        assert "- Answer in German (you, 9 months ago)" in start_text(store, budget=budget)


def test_decisions_and_facts_come_for_the_files_in_play_only(store):
    turn = a_memory("x", kind="turn", files=("rooms/mail.py",), trust="agent", session="s1", detail={"outcome": "x"})
    found_out = {"kind": "learning", "trust": "agent", "confidence": 0.6, "files": ("rooms/mail.py",), "uid": "lea:1"}
    store.memories.put(
        [
            turn,
            a_memory("Mails go out at night", files=("rooms/mail.py",)),
            a_memory(
                "The sandbox rejects our sender, because its domain is not verified",
                kind="learning",
                trust="agent",
                confidence=0.6,
                files=("rooms/mail.py",),
            ),
            a_memory("Unsure of the sender", kind="learning", trust="agent", confidence=0.4, files=("rooms/mail.py",)),
            a_memory("`send()` writes a row", **found_out),
            a_memory("Charts are drawn in SVG", files=("rooms/charts.py",)),
        ]
    )
    text = start_text(store)
    lines = part(text, "For the files in play")
    assert len(lines) == 2
    assert "Mails go out at night" in lines[0]
    assert "learned yesterday: The sandbox rejects our sender" in lines[1]
    assert "Charts" not in text
    assert "Unsure" not in text
    assert "writes a row" not in text  # what was built, not what to know about it
    store.memories.put([a_memory("`send()` reads two rows", **{**found_out, "seen": 2, "uid": "lea:2"})])
    assert "reads two rows" in start_text(store)  # found out twice


def test_recent_files_are_those_of_most_and_newest_turns() -> None:
    def turn(ended: float, *edited: str, read: tuple[str, ...] = ()) -> TurnRecord:
        return TurnRecord(session="s", ended=ended, edited=edited, read=read)

    often = [turn(n, "often.py") for n in range(20)]
    again = [turn(n, "again.py", "once.py" if n else "other.py")._replace(session=f"s{n}") for n in range(3)]
    assert recent_files(again)[0] == "again.py"
    assert recent_files([*often, turn(99.0, "new.py")])[:2] == ["often.py", "new.py"]
    assert recent_files([turn(1.0, "old.py"), turn(2.0, "new.py")]) == ["new.py", "old.py"]
    # A turn of many files says little of each, and reading less than editing.
    many = turn(3.0, *(f"f{n}.py" for n in range(50)))
    assert recent_files([many, turn(2.0, "one.py")])[0] == "one.py"
    assert recent_files([turn(1.0, "a.py", read=("b.py",))]) == ["a.py", "b.py"]
    # Generated, foreign and scratch files are nobody's work.
    assert (
        recent_files([turn(1.0, "node_modules/x.js", "/etc/hosts", "a.lock", "dist/x.js", "../y.py", "tmp_a.py")]) == []
    )


def test_of_recent_files_few_are_named_and_none_twice(store):
    turns = [
        a_memory(
            f"t{n}",
            kind="turn",
            uid=f"t{n}",
            files=(f"rooms/f{n}.py",),
            age=n * HOUR,
            session=f"x{n}",
            trust="agent",
            detail={"outcome": "x"},
        )
        for n in range(30)
    ]
    store.memories.put([a_session(0, files=("rooms/f1.py",)), *turns])
    (line,) = part(start_text(store), "Recently changed code")
    named = line.removeprefix("- ").split(", ")
    assert len(named) == len(set(named)) <= FILES
    assert "rooms/f0.py" in named
    assert "rooms/f1.py" not in named  # it stands beside its session


# -- for a person who comes back ---------------------------------------------------------------------------------------
def test_resume_tells_a_person_what_a_session_begins_with(store):
    store.memories.put([a_session(n, detail={"next": ["send the offer by mail"]} if n == 1 else {}) for n in range(6)])
    got = resume(store.search, HERE, now=NOW, limit=3)
    assert [point["text"] for point in got["standing"]] == ["- Open: send the offer by mail (left open 2 days ago)"]
    assert [point["kind"] for point in got["sessions"]] == ["summary"] * 3
    assert all(point["id"] for point in got["sessions"])
    assert resume(store.search, Project(key="else", name="e", root=""), now=NOW, limit=3)["sessions"] == []


def test_an_empty_store_begins_with_nothing(store):
    assert start_text(store) == ""
