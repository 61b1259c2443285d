"""A client and a scratch folder -> a home, a project, a model and a memory of their own, and what is asked of them."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from foreword.paths import Home
from foreword.worker import lifecycle
from foreword.worker.client import Client as Worker
from tests.clients import scripts
from tests.clients.fake_model import FakeModel, ModelRequest, Step
from tests.clients.run import CLIENTS, Answer, Conversation
from tests.e2e import homes
from tests.e2e.requests import Part, parts_of

# How a block of ours begins, in each form; the MCP server's instructions only name these, without the space.
MARKS = ("--- foreword: ", "<foreword_context ", "[foreword] ")
CHANNEL = 60.0  # seconds for what happens aside; the machine may be busy


class Cannot(Exception):
    """A host has no way to do this; the reason is printed, and it counts as no failure."""


class Trial:
    """One client in a home of its own, for as long as it is open."""

    def __init__(
        self,
        host: str,
        *,
        binary: Path,
        scratch: Path,
        form: Sequence[str] = (),
        options: Sequence[str] = (),
        patient: bool = True,
    ) -> None:
        self.host, self.scratch = host, scratch
        self.form, self.options = form, options  # of `foreword install`, and of the client in its second session
        self.home, self.project = scratch / "home", scratch / "home" / "project"
        self.model = FakeModel(log=scratch / "requests.jsonl")
        self.home.mkdir(parents=True)
        self.client = CLIENTS[host](binary, home=self.home, project=self.project, url=self.model.url)
        self.client.env["PATH"] = f"{binary.parent}:{self.client.env['PATH']}"  # so that `install` finds it
        self.patient = patient
        if patient:  # as the settings in its home say it too: a plugin does not read those
            self.client.env |= {"FOREWORD_DEADLINE_PROMPT_MS": "3000", "FOREWORD_DEADLINE_START_MS": "4000"}
        self.memory = Home(self.home / ".foreword")
        self.before: dict[str, str] = {}
        self.servers: Any = None
        self.start = ""  # what the second session was given when it began
        self.trusted = ""  # what Codex keeps of the user's trust in our hooks
        self.conversation: Conversation | None = None

    @contextmanager
    def open(self) -> Iterator[Trial]:
        """Ready to be used; nothing that it started is left running."""
        scripts.make_project(self.project)
        homes.furnish(self.client, patient=self.patient)
        with self.model:
            try:
                yield self
            finally:
                if self.conversation:
                    self.conversation.close()
                self.end_worker()

    # -- the client ---------------------------------------------------------------------------------------------
    def talk(self, **more: Any) -> Conversation:
        """A new conversation; the one before is ended."""
        self.hang_up()
        self.conversation = self.client.talk(**more)
        return self.conversation

    def hang_up(self) -> None:
        if self.conversation:
            self.conversation.close()
        self.conversation = None

    def say(self, prompt: str, *steps: Step) -> list[ModelRequest]:
        """Tell the client a prompt while the model follows all of *steps*; what was asked of the model."""
        assert self.conversation
        mark = self.model.play(scripts.placed(steps, str(self.project)))
        answer = self.conversation.say(prompt)
        self.log(prompt, answer)
        assert answer.code == 0, f"it left with {answer.code}: {(answer.err or answer.out)[-300:]!r}"
        assert not (wrong := hooks_that_failed(answer)), f"a hook failed, and it is shown: {wrong[0]}"
        missed = len(steps) - self.model.at
        assert not missed, f"the model was not asked for {missed} of its {len(steps)} steps: {answer.out[-300:]!r}"
        return self.model.requests[mark:]

    def log(self, prompt: str, answer: Answer) -> None:
        with (self.scratch / "said.txt").open("a") as file:
            file.write(f"### {prompt}\n({answer.code}, {answer.seconds:.1f} s)\n{answer.out}\n{answer.err}\n")

    # -- Foreword -----------------------------------------------------------------------------------------------
    def foreword(self, *args: str) -> str:
        """What a command of ours prints, started as the user would."""
        program = Path(sys.prefix) / "bin" / "foreword"
        ended = subprocess.run(
            [program, *args],
            env=self.client.env,
            cwd=self.project,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        with (self.scratch / "foreword.txt").open("a") as file:
            file.write(f"$ foreword {' '.join(args)}\n{ended.stdout}{ended.stderr}\n({ended.returncode})\n")
        assert ended.returncode == 0, f"foreword {args[0]}: {(ended.stderr or ended.stdout)[-400:]}"
        return ended.stdout

    def ask(self, path: str, **query: object) -> dict[str, Any]:
        """The worker's own answer."""
        if not self.worker():
            self.foreword("worker", "start")
        return Worker(self.memory, seconds=20).get(path, **query)

    def tell(self, path: str, body: Mapping[str, Any]) -> None:
        """Tell the worker something."""
        Worker(self.memory, seconds=20).post(path, body)

    def sessions(self) -> list[dict[str, Any]]:
        """The newest first."""
        return list(self.ask("/api/sessions", project_path=str(self.project))["sessions"])

    def injection(self, trigger: str, *, session: str = "") -> dict[str, Any]:
        """The last injection at a moment of this host's newest session, with its exact text."""
        session = session or self.sessions()[0]["id"]
        found = self.ask("/api/injections", session_id=session, text=1)["injections"]
        here = [each for each in found if each["trigger"] == trigger and each["text"]]
        assert here, f"nothing was given at {trigger} to session {session}: {[each['trigger'] for each in found]}"
        return dict(here[0])

    def known(self) -> list[dict[str, Any]]:
        """All memories of the project."""
        rows, after = [], 0
        while True:
            page = self.ask("/api/export", part="memory", project_path=str(self.project), after=after)
            rows += page["rows"]
            after = page["next"]
            if not after:
                return rows

    def stored_payloads(self, session: str) -> str:
        """All that is kept of what a session's hooks told, as one text."""
        with closing(sqlite3.connect(f"{self.memory.database.as_uri()}?mode=ro", uri=True)) as db:
            rows = db.execute("SELECT payload FROM events WHERE session = ? ORDER BY number", (session,)).fetchall()
        return json.dumps([json.loads(payload) for (payload,) in rows], ensure_ascii=False)

    def worker(self) -> int:
        """The id of the process of its worker, or 0."""
        return lifecycle.pid_of(self.memory)

    def end_worker(self) -> None:
        """End the worker of this home, by its id, and wait until it is gone."""
        for _ in until(10):
            pid = self.worker()
            if not pid:
                return
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
                os.kill(pid, signal.SIGKILL)


def hooks_that_failed(answer: Answer) -> list[str]:
    """What a client shows of hooks that did not end well; Claude Code tells how each of them ended."""
    lines = [json.loads(line) for line in answer.out.splitlines() if '"hook_response"' in line]
    bad = [line for line in lines if line.get("exit_code") != 0 or line.get("stderr") or line["outcome"] != "success"]
    errors = [line for line in (answer.out + answer.err).splitlines() if HOOK_ERROR.search(line)]
    return [json.dumps(line) for line in bad] + errors


# As Claude Code, Codex, Gemini CLI and Copilot CLI tell that a hook failed.
HOOK_ERROR = re.compile(r"hook[^\n{}]{0,40}(error|failed|timed out|exited with)", re.IGNORECASE)


def until(seconds: float) -> Iterator[None]:
    """Tries until the time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.1)


def wait_for(what: Callable[[], Any], *, seconds: float = CHANNEL) -> Any:
    """The first answer that is one, or the last one that is none."""
    found = None
    for _ in until(seconds):
        if found := what():
            break
    return found


def ours(parts: Sequence[Part]) -> list[Part]:
    """The parts of a request in which a block of ours begins, not counting what tools gave."""
    return [part for part in parts if part.role != "tool" and any(mark in part.text for mark in MARKS)]


def turns(requests: Sequence[ModelRequest]) -> list[list[Part]]:
    """The requests of the agent's own turns, part by part."""
    return [parts_of(each.body) for each in requests if each.turn]
