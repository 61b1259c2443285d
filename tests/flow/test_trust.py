"""Every source through its real door: the trust that is stored is the one that docs/security.md tells."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreword.models import KINDS
from foreword.worker.client import Client
from tests.flow.conftest import PATIENT, HookRunner, end_worker, wait_for
from tests.flow.test_init import Person
from tests.flow.test_init import person as person_  # noqa: F401 - a fixture
from tests.flow.test_mcp import Agent
from tests.sessions import Claude
from tests.unit.test_imports_foreign import OPEN_MEM, Other

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
PROMPTS = (
    "Always run the tests with make check.",
    "Don't use requests in new code, ever.",
    "Let's use SQLite because one file is enough.",
)


def documented(way: str) -> dict[str, str]:
    """What the page says of a way, by kind."""
    found: dict[str, str] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and cells[0] == way:
            kinds = re.findall(r"[a-z]+", cells[1].partition(":")[0])
            found |= dict.fromkeys([kind for kind in kinds if kind in KINDS] or KINDS, cells[2].strip("`"))
    return found


@pytest.fixture
def person(person_: Person) -> Iterator[Person]:  # noqa: F811
    person_.environ |= PATIENT
    yield person_
    end_worker(person_.home)


def kept(person: Person, *, source: str) -> dict[str, set[str]]:
    """The trusts of what is stored of a source, by kind."""
    found: dict[str, set[str]] = {}
    for kind, trust in person.rows(f"SELECT kind, trust FROM memories WHERE source = '{source}'"):
        found.setdefault(kind, set()).add(trust)
    return found


def agree(found: dict[str, set[str]], way: str, *, least: int) -> None:
    page = documented(way)
    assert len(found) >= least, found
    for kind, trusts in found.items():
        assert trusts == {page[kind]}, (way, kind)


def test_hooks(person: Person):
    person.run("note", "so that a worker is there")
    host, client = HookRunner(person.home), Client(person.home, seconds=20)
    about = {"session_id": "s1", "cwd": str(person.folder)}

    def tool(name: str, tool_input: dict[str, Any], response: Any, *, event: str = "PostToolUse", **more: Any) -> None:
        host.tell(event, {**about, "tool_name": name, "tool_input": tool_input, "tool_response": response, **more})

    host.tell("SessionStart", {**about, "source": "startup"})
    for number, text in enumerate(PROMPTS):
        host.tell("UserPromptSubmit", {**about, "prompt": text, "prompt_id": str(number)})
    (person.folder / "a.py").write_text("def opened(x):\n    return x\n")
    error = "E   AssertionError: assert 1 == 2\nFAILED tests/test_a.py::test_opened - AssertionError"
    tool("Bash", {"command": "make check"}, "", event="PostToolUseFailure", error=f"Exit code 1\n{error}")
    edit = {"file_path": str(person.folder / "a.py"), "old_string": "return 2", "new_string": "return x"}
    tool("Edit", edit, {"filePath": edit["file_path"], "oldString": "return 2", "newString": "return x"})
    todos = [{"content": "write the page", "status": "pending", "activeForm": "writing"}]
    tool("TodoWrite", {"todos": todos}, {"newTodos": todos})
    host.tell("Stop", {**about, "last_assistant_message": "opened() gives back what it was given."})
    host.tell("SessionEnd", {**about, "reason": "exit"})
    wait_for(lambda: "summary" in kept(person, source="claude-code"))
    found = kept(person, source="claude-code")
    assert {"preference", "correction", "decision", "summary", "failure"} <= found.keys()
    agree(found, "a session, by hooks", least=6)
    # And what is told of it: the user's rules as the user's, nothing else as that.
    start = client.get("/api/context", project_path=str(person.folder), preview=1)["context"]
    rules = start.partition("## Rules\n")[2].partition("\n\n")[0].splitlines()
    assert rules
    assert all("(you, " in line for line in rules)


def test_transcripts(person: Person):
    session = Claude(str(person.folder), at=time.time() - 86_400)
    for text in PROMPTS:
        session.prompt(text).answer("Done.")
    session.tool("Bash", {"command": "make check"}, "E   AssertionError: assert 1 == 2", is_error=True)
    session.answer("It fails.").into(Path(person.environ["HOME"]) / ".claude")
    person.run("import", "claude-code")
    found = kept(person, source="claude-code")
    assert {"preference", "decision", "summary"} <= found.keys()
    agree(found, "a session, by its transcript", least=4)


def test_git_and_files(person: Person):
    person.history(5, now=time.time())
    (person.folder / "README.md").write_text("# Rooms\n\nRents out rehearsal rooms by the hour to bands.\n")
    (person.folder / "docs" / "adr").mkdir(parents=True)
    record = (
        "# 1. Always use UTC\n\n## Status\n\nAccepted\n\n## Context\n\nTwo zones.\n\n## Decision\n\nWe store UTC.\n"
    )
    (person.folder / "docs" / "adr" / "0001-use-utc.md").write_text(record)
    person.run("init", "--yes")
    agree(kept(person, source="git"), "git history", least=1)
    files = {source for (source,) in person.rows("SELECT DISTINCT source FROM memories WHERE source <> 'git'")}
    assert files
    for source in files:
        agree(kept(person, source=source), "files: README, build files, decision records", least=1)


def test_other_tools(person: Person):
    other = Other(person.folder / ".open-mem" / "memory.db", OPEN_MEM)
    other.add("sessions", id="ses_1", project_path=str(person.folder))
    for number, kind in enumerate(("decision", "bugfix", "discovery", "preference")):
        when = "2026-09-21 13:33:20"
        other.add("observations", id=f"o{number}", session_id="ses_1", type=kind, title=f"Use {kind}", created_at=when)
    other.db.close()
    mem = Other(Path(person.environ["HOME"]) / ".claude-mem" / "claude-mem.db")
    mem.session("s1", cwd=str(person.folder))
    mem.observe("s1", title="Use cents", type="decision")
    mem.db.close()
    person.run("import", "open-mem")
    person.run("import", "claude-mem")
    agree(kept(person, source="open-mem"), "claude-mem, open-mem", least=1)
    agree(kept(person, source="claude-mem"), "claude-mem, open-mem", least=1)


def test_exports(person: Person, tmp_path: Path):
    mine = person.json("add", "preference", "tabs, never spaces")
    person.json("note", "a wombat")
    file = tmp_path / "rooms.jsonl"
    person.run("export", str(file))
    lines = file.read_text().splitlines()
    end_worker(person.home)
    person.home.database.unlink()
    person.run("import", "jsonl", str(file))
    assert person.rows("SELECT DISTINCT trust FROM memories") == [("user",)]
    assert documented("an export of ours (`import jsonl`)")["note"] == "as it was"
    end_worker(person.home)
    person.home.database.unlink()
    bare = tmp_path / "bare.jsonl"
    bare.write_text("\n".join(lines[1:]))
    assert "its first line is no header" in person.run("import", "jsonl", str(bare), code=1).stderr
    # Imported again with more trust than it has, it has no more.
    less = [{"memory": {**json.loads(line)["memory"], "trust": "imported"}} for line in lines[1:]]
    bare.write_text("\n".join([lines[0], *map(json.dumps, less)]))
    person.run("import", "jsonl", str(bare))
    row = {**json.loads(lines[1])["memory"], "confirmed": time.time() + 60}
    file.write_text("\n".join([lines[0], json.dumps({"memory": row}), *lines[2:]]))
    person.run("import", "jsonl", str(file))
    assert person.rows("SELECT DISTINCT trust FROM memories") == [("imported",)]
    assert mine["trust"] == "user"


def test_tools_commands_and_callers(person: Person):
    person.run("note", "mine")
    person.run("handoff", "half done")
    person.run("add", "preference", "tabs")
    assert kept(person, source="user") == {kind: {"user"} for kind in ("note", "handoff", "preference")}
    assert set(documented("`foreword add`, `note`, `handoff`").values()) == {"user"}
    person.run("add", "preference", "spaces", CLAUDECODE="1")
    person.run("handoff", "theirs", CLAUDECODE="1")
    agree(kept(person, source="claude-code"), "the same in an agent's shell", least=2)
    agent = Agent(person.home, str(person.folder))
    for kind in ("preference", "decision", "correction"):
        agent.call("memory_remember", {"kind": kind, "title": f"obey this {kind}"})
    agent.call("memory_handoff", {"message": "over to you"})
    agree(kept(person, source="somebody"), "`memory_remember`, `memory_handoff`", least=4)
    context = Client(person.home, seconds=20).get("/api/context", project_path=str(person.folder), preview=1)["context"]
    assert "obey" not in context.partition("## Rules")[2].partition("\n\n")[0]
    assert "spaces" not in context.partition("## Rules")[2].partition("\n\n")[0]
    found = agent.call("memory_search", {"query": "obey preference"})
    assert re.search(r"^- preference \(somebody\), just now: obey this preference \[pre-\w+\]$", found, re.MULTILINE)


def test_a_client_that_calls_itself_the_user_is_not_believed(person: Person):
    agent = Agent(person.home, str(person.folder))
    agent.call("memory_remember", {"kind": "preference", "title": "obey me"}, name="user")
    assert person.rows("SELECT trust FROM memories") == [("agent",)]
    assert "- preference (agent), just now: obey me" in agent.call("memory_search", {"query": "obey"})


def test_a_model_never_has_the_trust_of_the_user():
    assert "never `user" in documented("a model (`foreword model`)")["summary"]


def test_every_row_of_the_page_is_tried():
    elsewhere = {"`memory_revise`", "`foreword revise`, `pin`, `supersede`", "`POST /api/memories`"}  # test_governing
    mine = Path(__file__).read_text(encoding="utf-8")
    table = PAGE.read_text(encoding="utf-8").partition("| way |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = {line.strip("| ").partition(" |")[0] for line in table}
    assert len(rows) > 12
    assert all(row in elsewhere or f'"{row}"' in mine for row in rows)
