"""What every client must show, a function a step: it returns what it saw, or raises what went wrong."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tests.clients import scripts
from tests.clients.fake_model import Say, Use
from tests.clients.run import COMPACTS_AT, Codex, end
from tests.e2e import homes, places
from tests.e2e.requests import Part, holding, parts_of
from tests.e2e.trial import Cannot, Trial, ours, turns, wait_for

ROOT = Path(__file__).resolve().parents[2]

HELLO = "Good morning! What is this project about?"
AGAIN = "The import of members crashes with a UnicodeDecodeError in read_members(), have we seen that before?"
FAILURE = "UnicodeDecodeError in read_members(): the export of members is Latin-1"
FIX = "open() the members file with encoding='latin-1'"
ASK_MEMORY = "Ask your memory how prices are kept, please."
YEAR = 365 * 86_400
LOOK_AT = "Have a look at the rooms."
LEARNED = "Prices are shown with two digits"
GO_ON = "Where were we?"
QUICKLY, ONCE_MORE, RED = "Now the quick tests, please.", "Try them once more.", "They are red again, are they?"
HINT = "[foreword, history] "
LOOK = {
    "claude-code": Use("Bash", {"command": "ls rooms"}),
    "opencode": Use("bash", {"command": "ls rooms", "description": "Look"}),
    "codex": Use("exec_command", {"cmd": "ls rooms"}),
}
# How each client names a tool of a server.
TOOLS = {
    "claude-code": "mcp__{server}__{tool}",
    "opencode": "{server}_{tool}",
    "codex": "mcp__{server}/{tool}",
    "gemini": "mcp_{server}_{tool}",
    "copilot": "{server}-{tool}",
}


def plain(trial: Trial) -> str:
    """Before Foreword: the client runs, its own first files are written, and the home is looked at."""
    trial.talk()
    requests = trial.say(HELLO, Say("A plan of rehearsal rooms."))
    trial.hang_up()
    assert not any(ours(parts_of(each.body)) for each in requests)
    assert _rang(trial), "the user's own hook did not run"
    trial.before, trial.servers = homes.looked_at(trial.home), homes.servers(trial.client)
    return f"{len(trial.before)} files"


def install(trial: Trial) -> str:
    """`foreword install`, twice: the second time changes nothing."""
    trial.foreword("install", trial.host, "--yes", *trial.form)
    once = homes.looked_at(trial.home)
    trial.foreword("install", trial.host, "--yes", *trial.form)
    again = homes.differences(once, homes.looked_at(trial.home), host=trial.host)
    assert not again, f"a second install changed the home: {again}"
    changed = [name for name in once if trial.before.get(name) != once[name] and not name.startswith(".foreword/")]
    return ", ".join(changed) or "a plugin"


def first_session(trial: Trial) -> str:
    """Edits, commands that fail, what fixed them, a decision and a rule; nothing more is known, so nothing is said."""
    script = scripts.SESSIONS[trial.host]
    first = next(at for at, step in enumerate(script.steps) if isinstance(step, Say)) + 1
    trial.talk()
    requests = trial.say(script.prompts[0], *script.steps[:first])
    run = scripts.RUNS[trial.host]
    tests, wrong = run(scripts.RUN_TESTS), run(scripts.WRONG_CALL)
    _spoil(trial)
    requests += trial.say(RED, tests, *scripts.REPAIRS[trial.host], tests, Say("The import was wrong."))
    requests += trial.say(QUICKLY, wrong, tests, Say("Three tests pass."))
    requests += trial.say(script.prompts[1], *script.steps[first:])
    trial.hang_up()
    parts = [part for each in requests for part in parts_of(each.body)]
    too_soon = [part.text[:200] for part in (*ours(parts), *holding(parts, HINT))]
    assert not too_soon, f"something was said though nothing was known: {too_soon[0]!r}"
    wanted = {"failure", "decision", "preference", "summary"}
    wait_for(lambda: is_extracted(trial))
    kinds = wait_for(lambda: kinds_of(trial) if wanted <= set(kinds_of(trial)) else None)
    assert kinds, f"what became of it: {kinds_of(trial)}"
    return ", ".join(f"{many} {kind}" for kind, many in sorted(kinds.items()))


def second_session(trial: Trial) -> str:
    """The next session's first request holds what matters, in its place, once, and the same bytes in later ones."""
    _seen_long_ago(trial)
    trial.talk(more=trial.options)
    requests = trial.say(HELLO, Say("Rooms, by the hour."))
    injection = trial.injection("session_start")
    text = injection["text"]
    _remembered(text)
    (first, *later) = turns(requests)
    if wrong := places.at_start(trial.host, first, text, prompt=HELLO):
        raise AssertionError(f"{wrong}; ours: {_briefly(ours(first))}")
    assert len(ours(first)) == 1, f"more than one block: {_briefly(ours(first))}"
    assert all(len(holding(each, text)) == 1 for each in later)
    trial.start = text
    return f"{injection['tokens']} tokens in {places.named(first, text)}"


def prompt(trial: Trial) -> str:
    """A later prompt brings a note on what it is about: here a failure too old for a session's start."""
    id = next(each["id"] for each in trial.known() if each["title"] == FAILURE)
    assert id not in trial.start
    requests = trial.say(AGAIN, Say("Yes: it is Latin-1."))
    injection = trial.injection("prompt")
    line = f'<note id="{id}" kind="failure"' if trial.host == "opencode" else f" [{id}]"
    assert line in injection["text"], f"no line of the failure {id} in {injection['text']!r}"
    assert "encoding=" in injection["text"], f"what fixed it is not told: {injection['text']!r}"
    request = turns(requests)[-1]
    if wrong := places.at_prompt(trial.host, request, injection["text"], prompt=AGAIN):
        raise AssertionError(f"{wrong}; ours: {_briefly(ours(request))}")
    if trial.host == "opencode":  # it sends its system messages again with every request
        assert len(holding(request, trial.start)) == 1, "the system message is not byte-identical any more"
    return f"{injection['tokens']} tokens in {places.named(request, injection['text'])}"


def memory_tools(trial: Trial) -> str:
    """The model asks by MCP through its client; the results hold the memory, and count for the right session."""
    decision = next(each for each in trial.known() if each["kind"] == "decision")
    search, get = tool(trial, "memory_search"), tool(trial, "memory_get")
    keep = {"kind": "learning", "title": LEARNED}
    uses = [
        Use(search, {"query": "integer cents"}),
        Use(get, {"ids": [decision["id"]]}),
        Use(tool(trial, "memory_remember"), keep),
    ]
    if trial.host == "codex":  # offers the tools of servers only to a model that has looked for them
        uses.insert(0, Use("tool_search", {"query": "memory_search memory_get memory_remember clock_now", "limit": 12}))
    requests = trial.say(ASK_MEMORY, *uses, Say("In integer cents."))
    got = turns(requests)[-1]
    results = [part.text for part in got if part.role == "tool"][-3:]
    assert len(results) == 3, f"no results of all tools: {_briefly(got)}"
    assert decision["id"] in results[0], f"memory_search did not find {decision['id']}: {results[0]!r}"
    assert "17.50 / 3" in results[1], f"memory_get did not show why: {results[1]!r}"
    own = tool(trial, "clock_now", server="clock")
    assert own in {name for each in requests for name in each.tools}, f"the user's own server is not offered: {own}"
    [session] = [each["session"] for each in trial.known() if each["title"] == LEARNED]
    assert session == trial.sessions()[0]["id"], (
        f"the call counts for session {session!r}, not for the one that made it"
    )
    return f"{search}, {get} and memory_remember, of the right session, beside the user's {own}"


def compaction(trial: Trial) -> str:
    """The client shortens its conversation; afterwards the context is there again, once."""
    if trial.host not in LOOK:
        raise Cannot("no hook of this host can give context at a compaction, and none tells the end of one")
    if trial.host == "claude-code":
        requests = trial.say("/compact")
    else:
        requests = trial.say(LOOK_AT, replace(LOOK[trial.host], read=COMPACTS_AT + 10_000), Say("Two files."))
    shortened = [parts_of(each.body) for each in requests if each.compaction]
    assert shortened, "the client did not ask for a summary"
    how = _prompted(trial, shortened[-1])
    later = trial.say(GO_ON, Say("At the prices."))
    request = turns(later)[-1]
    assert len(ours(request)) == 1, f"not one block of ours afterwards: {_briefly(ours(request))}"
    _remembered(ours(request)[0].text)
    return how


def _prompted(trial: Trial, request: Sequence[Part]) -> str:
    """What the request for a summary was given: OpenCode's plain text; to others nothing is said there."""
    last = max(part.message for part in request)
    there = [part for part in ours(request) if part.message == last]
    if trial.host != "opencode":
        assert not there, f"something was said in the request for a summary: {_briefly(there)}"
        return "a session start of source compact"
    injection = trial.injection("compaction")
    assert holding(there, injection["text"].strip()), f"nothing in the request for a summary: {_briefly(request[-1:])}"
    return f"{injection['tokens']} tokens of plain text at the end of its prompt, and the system message again"


def hints(trial: Trial) -> str:
    """A command that failed in the first session is warned of, once; a failure comes with what fixed it then."""
    run = scripts.RUNS[trial.host]
    trial.talk(more=trial.options)
    requests = trial.say(QUICKLY, run(scripts.WRONG_CALL), Say("There is no such option."))
    warned = trial.injection("tool")
    assert f"`{scripts.WRONG_CALL}`" in warned["text"], f"another hint: {warned['text']!r}"
    assert trial.host != "claude-code" or warned["source"] == "before", "it was not given before the command"
    seen = holding(turns(requests)[-1], warned["text"])
    assert len(seen) == 1, f"it is in the request {len(seen)} times: {_briefly(turns(requests)[-1][-3:])}"
    requests = trial.say(ONCE_MORE, run(scripts.WRONG_CALL), Say("Still none."))
    again = {part.text for part in turns(requests)[-1] if HINT in part.text}
    assert len(again) == 1, f"it was said again: {again}"
    _spoil(trial)
    requests = trial.say(RED, run(scripts.RUN_TESTS), Say("The import again."))
    fixed = trial.injection("tool")
    assert "fixed then: edited rooms/bookings.py" in fixed["text"], f"no fix: {fixed['text']!r}"
    assert len(holding(turns(requests)[-1], fixed["text"])) == 1
    return f"{warned['tokens']} and {fixed['tokens']} tokens in {places.named(turns(requests)[-1], fixed['text'])}"


def _spoil(trial: Trial) -> None:
    """Somebody spoils a file of the project, behind the agent's back."""
    file = trial.project / "rooms/bookings.py"
    file.write_text(file.read_text().replace(scripts.IMPORTED, scripts.MISSING))


def slash(trial: Trial) -> str:
    """A command of ours expands in the client."""
    requests = trial.say("/foreword:search the rounding of prices", Say("Integer cents."))
    request = turns(requests)[-1]
    words = "Search the memory of this project for:\n\nthe rounding of prices"
    assert holding(request, words), f"it did not expand: {_briefly(request[-3:])}"
    return "/foreword:search"


def trust(trial: Trial) -> str:
    """Codex runs no hook that its user has not trusted: without, nothing is said; with it kept in its settings, all."""
    client = trial.client
    assert isinstance(client, Codex)
    client.trusting = ()
    try:
        trial.talk()
        untrusted = trial.say(HELLO, Say("Rooms."))
        assert not any(ours(each) for each in turns(untrusted)), "an untrusted hook was run"
        trial.trusted = _trusted(client)
        with (trial.home / ".codex/config.toml").open("a") as file:
            file.write(trial.trusted)
        trial.talk()
        requests = trial.say(HELLO, Say("Rooms."))
        trial.hang_up()
    finally:
        client.trusting = Codex.trusting
    text = trial.injection("session_start")["text"]
    if wrong := places.at_start(trial.host, turns(requests)[0], text, prompt=HELLO):
        raise AssertionError(wrong)
    return "nothing without, everything with trust kept in config.toml as /hooks keeps it"


def _trusted(client: Codex) -> str:
    """What config.toml holds once the user has trusted every hook, by what `codex app-server` lists."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with client.start(["app-server"], **pipes) as server:
        assert server.stdin
        assert server.stdout
        try:
            for number, (method, params) in enumerate(
                (
                    ("initialize", {"clientInfo": {"name": "e2e", "title": "e2e", "version": "0"}}),
                    ("hooks/list", {"cwds": [str(client.project)]}),
                )
            ):
                server.stdin.write(json.dumps({"id": number, "method": method, "params": params}) + "\n")
                server.stdin.flush()
                answer = next(each for each in map(json.loads, server.stdout) if each.get("id") == number)
        finally:
            end(server)
    hooks = answer["result"]["data"][0]["hooks"]
    lines = [f'[hooks.state.{json.dumps(each["key"])}]\ntrusted_hash = "{each["currentHash"]}"\n' for each in hooks]
    return "\n" + "".join(lines)


def uninstall(trial: Trial) -> str:
    """`foreword uninstall`, and everything is as it was but for what the client wrote itself."""
    trial.hang_up()
    trial.foreword("uninstall", trial.host, "--yes")
    if trial.trusted:  # Codex's own, which stays; a user would take it back in /hooks
        settings = trial.home / ".codex/config.toml"
        text = settings.read_text()
        assert trial.trusted in text, "what Codex wrote meanwhile is gone"
        settings.write_text(text.replace(trial.trusted, ""))
    after = homes.looked_at(trial.home)
    differ = homes.differences(trial.before, after, host=trial.host)
    assert not differ, f"the home is not as it was: {differ}"
    assert homes.servers(trial.client) == trial.servers, "the MCP servers in .claude.json are not as they were"
    own = [*trial.home.glob(".claude.json"), *trial.home.glob(".claude/plugins/**/*.json")]
    # The user's own server lies in this checkout, whose folder may be called anything.
    naming = [path for path in own if "foreword" in path.read_text().replace(str(ROOT), "")]
    assert not naming, f"what Claude Code wrote of us by itself is still there: {naming}"
    in_project = [name for name in after if name.startswith("project/") and "foreword" in name]
    assert not in_project, f"left in the project: {in_project}"
    same = sum(after.get(name) == state for name, state in trial.before.items())
    return f"{same} of {len(trial.before)} files have the same bytes, the others are the client's own"


def plain_again(trial: Trial) -> str:
    """Without Foreword the client runs as before, and nothing of ours is said."""
    rang = _rang(trial)
    trial.talk()
    requests = trial.say(HELLO, Say("A plan of rehearsal rooms."))
    trial.hang_up()
    assert not any(ours(parts_of(each.body)) for each in requests), "something of ours is still said"
    assert _rang(trial) > rang, "the user's own hook does not run any more"
    return ""


# What the second session must be told, in words of the first one's script.
REMEMBERED = {
    "open item": ("how the price in the booking form",),
    "session": ("so a booking that starts when another ends counted as a clash", "rooms/prices.py"),
    "decision": ("integer cents for prices", "17.50 / 3"),
    "rule": ("ever touch tests/conftest.py",),
    "way to test": ("python -m pytest",),
}
STEPS: dict[str, Callable[[Trial], str]] = {
    "a plain run": plain,
    "install": install,
    "first session": first_session,
    "second session": second_session,
    "a prompt": prompt,
    "MCP": memory_tools,
    "compaction": compaction,
    "hints": hints,
    "uninstall": uninstall,
    "a plain run again": plain_again,
}
LAST = ("uninstall", "a plain run again")


def with_(more: dict[str, Callable[[Trial], str]], *, without: Sequence[str] = ()) -> dict[str, Callable[[Trial], str]]:
    """The steps with some more before the last ones, and without some."""
    first = {name: step for name, step in STEPS.items() if name not in (*LAST, *without)}
    return {**first, **more, **{name: STEPS[name] for name in LAST}}


CLAUDE = with_({"a command": slash})
PLUGIN = with_({"a command": slash}, without=["compaction"])
CODEX = with_({"trust": trust})


def _remembered(text: str) -> None:
    """Everything that the first session came to is told."""
    for what, words in REMEMBERED.items():
        missing = [word for word in words if word not in text]
        assert not missing, f"the {what} is not told: {missing[0]!r} is not in {text!r}"


def _seen_long_ago(trial: Trial) -> None:
    """Let the project have a failure from years ago, with its fix."""
    fields = {"kind": "failure", "title": FAILURE, "detail": {"fixed_by": FIX}, "project_path": str(trial.project)}
    trial.tell("/api/memories", {**fields, "created": time.time() - 3 * YEAR, "confirmed": time.time() - 3 * YEAR})


def is_extracted(trial: Trial) -> bool:
    """Whether the newest session has become memory to its last event."""
    session = trial.ask(f"/api/sessions/{trial.sessions()[0]['id']}")["session"]
    return bool(session["extracted"] == session["newest"])


def kinds_of(trial: Trial) -> dict[str, int]:
    kinds: dict[str, int] = {}
    for memory in trial.known():
        kinds[memory["kind"]] = kinds.get(memory["kind"], 0) + 1
    return kinds


def tool(trial: Trial, name: str, *, server: str = "foreword") -> str:
    """A tool of a server as this client names it; a plugin's server has a longer name."""
    if trial.form and server == "foreword":
        server = "plugin_foreword_foreword"
    return TOOLS[trial.host].format(server=server, tool=name)


def _rang(trial: Trial) -> int:
    log = trial.home / homes.RANG
    return len(log.read_text().splitlines()) if log.exists() else 0


def _briefly(parts: Sequence[Part]) -> str:
    return "; ".join(f"{part.role} {part.message}: {part.text[:160]!r}" for part in parts) or "nothing"
