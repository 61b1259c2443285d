"""Actions as they come -> what a session has come to so far: bounded, and the same for the same actions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foreword.distill import gist
from foreword.distill.changes import memory_of_change
from foreword.distill.commands import Command, command_of, commands_of, does, message_of, same, shape_of
from foreword.distill.edits import Edited, line_of, listed, names_of, together
from foreword.distill.failures import Problem, failure_uid, name_of_test, outcome
from foreword.distill.request import requests
from foreword.distill.said import Said, said, takes_back
from foreword.distill.sentences import cut
from foreword.extract.actions import Action, Todo, todos_after
from foreword.tokens import count
from foreword.types import Change, Edit, Link, Memory, Project, Session
from foreword.words import terms

MOST_PROMPTS = 100  # of one session; the first and the last are kept
MOST_ANSWERS = 40
TEXT = 4_000  # characters of a prompt or an answer
MOST_SAID = 100  # rules and decisions of one session
MOST_FAILURES = 100
MOST_FILES = 500
MOST_EDITS = 400
MOST_TODOS = 200
MOST_CHANGES = 300
MOST_OBSERVATIONS = 30
MOST_CHECKS = 4  # ways in which a session ran its tests, linters and builds, and they ran well
SHARE = 0.1  # of the tokens that were said, a summary may hold
LEAST, MOST = 30, 260  # tokens of a summary's points
LEAST_OF_WORK = 90  # where code was touched: the sentence that says why is worth its tokens
CONCEPTS = 5  # words that a session was about
LATER = 0.001  # seconds: a handoff comes after the summary of its session, and closes what that leaves open

ChangesOf = Callable[[Edit], Sequence[Change]]


@dataclass(frozen=True)
class Distilled:
    """What a session came to; *gone* are the uids of what it no longer says."""

    memories: tuple[Memory, ...] = ()
    links: tuple[Link, ...] = ()
    changes: tuple[Change, ...] = ()
    gone: tuple[str, ...] = ()
    done: tuple[str, ...] = ()  # what was finished, in words: what others left open may be among it
    open: tuple[str, ...] = ()  # what it leaves open itself


class Draft:
    """One session while it goes on."""

    def __init__(self, session: Session, project: Project, *, changes_of: ChangesOf = lambda _: ()) -> None:
        self.session = session
        self.project = project
        self._changes_of = changes_of
        self._prompts: list[str] = []
        self._answers: list[str] = []
        self._said: dict[str, tuple[Said, float, int]] = {}
        self._failures: dict[str, _Failure] = {}
        self._edits: list[Edited] = []
        self._edited = 0
        self._files: dict[str, int] = {}
        self._changes: dict[tuple[str, str], Change] = {}
        self._observed: dict[str, tuple[str, float, tuple[str, ...]]] = {}
        self._todos: tuple[Todo, ...] = ()
        self._finished: dict[str, None] = {}
        self._runs: dict[str, tuple[Command, bool]] = {}
        self._checks: dict[str, int] = {}  # how checks were run that went well, and how often
        self._between: list[tuple[int, Command]] = []
        self._ran = 0
        self._passed = 0  # the last run of a test or a build that went well
        self._tokens = 0

    # -- taking in ----------------------------------------------------------------------------------------------
    def add(self, action: Action) -> None:
        """Take in what happened next."""
        times = (action.at,) if not self.session.started else (self.session.started, action.at)
        self.session = replace(self.session, started=min(times), last=max(self.session.last, action.at))
        if action.kind == "prompt":
            self._prompt(action)
        elif action.kind == "answer":
            self._answer(action)
        elif action.kind == "tool" and action.act == "run":
            self._run(action)
        elif action.kind == "tool" and action.act == "edit" and not action.failed:
            self._edit(action)
        elif action.kind == "tool" and action.act == "plan" and action.todos:
            self._plan(action.todos)

    def _prompt(self, action: Action) -> None:
        text = action.text.strip()
        if not text or text.startswith("/"):
            return
        for one in said(text, first=not self._prompts):
            key = _key(one.kind, one.text)
            _, at, times = self._said.get(key, (one, action.at, 0))
            if times or len(self._said) < MOST_SAID:
                self._said[key] = one, max(at, action.at), times + 1
        self._tokens += count(text[:TEXT])
        self._prompts.append(text[:TEXT])
        if len(self._prompts) > MOST_PROMPTS:
            del self._prompts[MOST_PROMPTS // 2]

    def _answer(self, action: Action) -> None:
        text = action.text.strip()
        if text and text[:TEXT] not in self._answers[-3:]:
            self._tokens += count(text[:TEXT])
            self._answers.append(text[:TEXT])
            if len(self._answers) > MOST_ANSWERS:
                del self._answers[MOST_ANSWERS // 2]

    def _plan(self, todos: tuple[Todo, ...]) -> None:
        self._todos = todos = todos_after(self._todos, todos)[-MOST_TODOS:]
        self._finished.update((todo.text, None) for todo in todos if todo.done)

    def _edit(self, action: Action) -> None:
        for file in action.files:
            if file in self._files or len(self._files) < MOST_FILES:
                self._files[file] = self._files.get(file, 0) + 1
        for edit in action.edits or tuple(Edit(file=file, before="", after="") for file in action.files):
            found = tuple(self._changes_of(edit))[:MOST_CHANGES]
            for change in found:
                self._change(replace(change, project=self.project.key, session=self.session.id, at=action.at))
            self._edits.append(Edited(number=self._edited, edit=edit, functions=tuple(c.function for c in found)))
            self._edited += 1
            if edit.whole and edit.before is None and not found:
                self._observe(f"Wrote {edit.file}", at=action.at, files=(edit.file,))
        del self._edits[:-MOST_EDITS]

    def _change(self, change: Change) -> None:
        key = change.file, change.function
        before = self._changes.get(key)
        if before is not None:
            what = together(before.what, change.what)
            if not what:
                del self._changes[key]
                return
            change = replace(change, what=what)
        if before is not None or len(self._changes) < MOST_CHANGES:
            self._changes[key] = change

    def _run(self, action: Action) -> None:
        command = command_of(action.command)
        if not command.program:
            return
        failed, problem = outcome(action.output, command, failed=action.failed)
        line = commands_of(action.command)
        self._ran += 1
        if failed:
            tests = [each for each in line if each.kind == "test"] if problem and problem.tests else []
            command = tests[0] if tests else command
            self._note_run(command, failed=True)
            self._fail(command, problem, action)
        else:
            for each in line:
                if each == command or (each.tells and each.program):
                    self._note_run(each, failed=False)
                    self._passed = self._ran if each.kind in ("test", "build") else self._passed
                    self._check(each)
                    self._succeed(each, action)
            self._between.extend((self._ran, each) for each in line if does(each))
            del self._between[:-50]

    def _note_run(self, command: Command, *, failed: bool) -> None:
        if command.kind != "look":
            self._runs.pop(command.program, None)  # the last to run comes last
            self._runs[command.program] = command, failed

    def _check(self, command: Command) -> None:
        shape = shape_of(command) if command.kind in ("test", "lint", "build") else ""
        if shape:
            self._checks[shape] = self._checks.get(shape, 0) + 1

    def _fail(self, command: Command, problem: Problem | None, action: Action) -> None:
        if command.kind == "look" or problem is None:
            return  # a search without a hit, a file that is not there: looking around fails all day
        known = self._failures.get(problem.fingerprint)
        if known is None:
            if len(self._failures) >= MOST_FAILURES:
                return
            known = self._failures[problem.fingerprint] = _Failure(problem, command, first=action.at)
        known.seen(command, at=action.at, edits=self._edited, runs=self._ran)

    def _succeed(self, command: Command, action: Action) -> None:
        for failure in self._failures.values():
            if failure.open and same(failure.command, command, tests=failure.problem.tests):
                failure.fix(self._fix(failure, command), at=action.at, edits=self._changed_since(failure))
        if command.kind == "install" and command.targets:
            verb = "Removed" if command.program.endswith((" remove", " uninstall", " rm")) else "Installed"
            self._observe(f"{verb} {', '.join(command.targets[:5])} ({command.program})", at=action.at)
        elif command.program in ("git commit", "gh pr"):
            message = message_of(action.command)
            if len(message.split()) > 1:
                what = "Committed" if command.program == "git commit" else "Opened a pull request"
                self._observe(f"{what}: {cut(message, 120)}", at=action.at, files=tuple(self._files)[:10])
                self._finished[cut(message, 200)] = None
        elif command.kind in ("migrate", "deploy"):
            self._observe(f"Ran `{cut(command.text, 100)}`", at=action.at)

    def _observe(self, text: str, *, at: float, files: tuple[str, ...] = ()) -> None:
        if len(self._observed) < MOST_OBSERVATIONS:
            self._observed.setdefault(text, (text, at, files))

    def _changed_since(self, failure: _Failure) -> tuple[Edited, ...]:
        return tuple(each for each in self._edits if each.number >= failure.edits)

    def _fix(self, failure: _Failure, command: Command) -> str:
        """What was done between a failure and the success after it."""
        edits = self._changed_since(failure)
        if edits:
            return line_of(edits)
        if command.text != failure.command.text and command.program == failure.command.program:
            return f"`{cut(command.text, 100)}` instead of `{cut(failure.command.text, 80)}`"
        done = [f"`{cut(each.text, 100)}`" for number, each in self._between if number > failure.runs]
        return f"ran {', '.join(dict.fromkeys(done[-2:]))}" if done else ""

    @property
    def excerpts(self) -> tuple[str, ...]:
        """What was said, the first prompt and the last turns: enough for somebody to sum it up in better words."""
        return (*self._prompts[:1], *self._prompts[1:][-3:], *self._answers[-3:])

    # -- what it came to ----------------------------------------------------------------------------------------
    def harvest(self) -> Distilled:
        """Everything that is worth knowing later."""
        failures = [self._failure_memory(each) for each in self._failures.values()]
        laid_down = self._laid_down()
        source = self.session.host or "session"
        changed = [
            memory_of_change(change, project=self.project, source=source, trust="tool")
            for change in self._changes.values()
        ]
        observed = [self._observation(*each) for each in self._observed.values()]
        summary = self._summary(laid_down)
        others = (*laid_down, *failures, *changed, *observed)
        gone = tuple(self._said_uid(self._said[key][0]) for key in sorted(self._taken_back()))
        if summary is None:
            return Distilled(memories=others, gone=gone)
        open_ones = self._open()
        handoff = self._handoff(open_ones, summary)
        return Distilled(
            memories=(summary, *((handoff,) if handoff else ()), *others),
            links=(
                *self._resolving(failures, changed),
                *(Link(each.uid, "part-of", summary.uid) for each in laid_down),
            ),
            changes=tuple(self._changes.values()),
            gone=gone if handoff else (*gone, self._uid("han")),
            done=self._done(summary),
            open=open_ones,
        )

    def _memory(self, kind: str, title: str, uid: str, **more: Any) -> Memory:
        at = more.pop("at", self.session.last)
        given = Memory(
            kind=kind,
            title=title,
            uid=uid,
            scope=self.project.scope,
            project=self.project.key,
            session=self.session.id,
            source=self.session.host or "session",
            created=at,
            confirmed=at,
        )
        return replace(given, **more)

    def _uid(self, prefix: str) -> str:
        return session_uid(prefix, project=self.project.key, session=self.session.id)

    def _said_memory(self, one: Said, at: float, times: int) -> Memory:
        reason = {name: told for name, told in (("why", one.why), ("instead_of", one.instead_of)) if told}
        sure = {"decision": 0.9 if one.why else 0.7, "preference": 0.9, "correction": 0.8}[one.kind]
        return self._memory(
            one.kind,
            one.text,
            self._said_uid(one),
            at=at,
            trust="user",
            confidence=sure,
            seen=times,
            detail={**reason, "seen_in": {self.session.id: times}},
        )

    def _failure_memory(self, failure: _Failure) -> Memory:
        problem = failure.problem
        test = name_of_test(problem.tests[0]) if problem.tests else ""
        # The error first: where only some words are shown, the name of the test would hide it.
        message = f"{cut(problem.message, 110)} ({test})" if test and test not in problem.message else problem.message
        files = [each.edit.file for each in failure.fixing] + [_known(file, self._files) for file in problem.files]
        functions = [name for each in failure.fixing for name in each.functions]
        fixed = {"fixed_by": failure.fixed_by, "fixed_in": {self.session.id: failure.fixed_by}}
        return self._memory(
            "failure",
            cut(message, 140),
            failure_uid(problem.fingerprint, project=self.project.key),
            at=failure.last,
            body=self._cause(failure),
            files=tuple(dict.fromkeys(files))[:8],
            functions=tuple(dict.fromkeys(functions))[:8],
            trust="tool",
            confidence=0.9 if failure.fixed_by else 0.7,
            seen=failure.times,
            detail={
                "command": cut(failure.command.text, 160),
                "type": problem.type,
                "message": cut(message, 140),
                "fingerprint": problem.fingerprint,
                **(fixed if failure.fixed_by else {}),
                "open": failure.open,
                "seen_in": {self.session.id: failure.times},
            },
        )

    def _cause(self, failure: _Failure) -> str:
        """The sentence of the agent that explains it best: one that says why, in words of the error or its fix."""
        if failure.open:
            return ""
        names = " ".join((*failure.problem.files, *(name for each in failure.fixing for name in each.functions)))
        about = set(terms(f"{failure.problem.message} {failure.fixed_by} {names}", limit=60))
        points = [unit for unit in gist.units((), self._answers[-8:]) if unit.kind == gist.LEARNED]
        best = max(points, key=lambda unit: (len(about.intersection(terms(unit.text))), -len(unit.text)), default=None)
        return best.text if best and len(about.intersection(terms(best.text))) >= 2 else ""

    def _observation(self, text: str, at: float, files: tuple[str, ...]) -> Memory:
        mark = f"obs:{self.project.key}:{self.session.id}:{_key('observation', text)}"
        return self._memory("observation", text, mark, at=at, files=files, trust="tool", confidence=0.8)

    def _summary(self, laid: Sequence[Memory]) -> Memory | None:
        """The session as a whole; *laid* is what its user laid down, which it need not say again."""
        asked = requests(self._prompts)
        if not self._answers and not self._files and not self._runs and not self._todos:
            return None  # a question that nobody has answered yet
        title = asked[0] if asked else self._outcome() or gist_title(self._answers)
        if not title:
            return None
        outcome = self._outcome()
        points = gist.units(self._prompts, self._answers, work=bool(self._files))
        laid_titles = tuple(memory.title for memory in laid)
        laid_down = " ".join(f"{memory.title} {memory.detail.get('why', '')}" for memory in laid)
        least = LEAST_OF_WORK if self._files else LEAST
        budget = max(least, min(MOST, round(SHARE * self._tokens)))
        covered = f"{' '.join(asked)} {outcome} {laid_down}"
        picked = gist.chosen(points, budget=budget, covered=covered)
        if not picked:  # a short session whose one answer is one long sentence
            picked = gist.chosen(points, budget=3 * budget, covered=covered)
        said_already = (
            f"{' '.join(asked)} {' '.join(self._files)} {outcome} {laid_down} {' '.join(unit.text for unit in picked)}"
        )
        names = gist.concepts([*self._prompts, *self._answers], most=CONCEPTS, covered=said_already)
        told = {
            "request": [
                *(each for each in asked[1:] if not each.startswith(laid_titles)),
                *(unit.text for unit in picked if unit.kind == gist.REQUEST),
            ],
            "done": [*filter(None, (outcome,)), *(unit.text for unit in picked if unit.kind == gist.DONE)],
            "learned": [unit.text for unit in picked if unit.kind == gist.LEARNED],
            "next": _distinct((*self._open(), *(unit.text for unit in picked if unit.kind == gist.NEXT)))[:6],
            "block": self._blocks(),
            "decisions": [cut(memory.title, 50) for memory in laid if memory.kind == "decision"][:3],
            "checks": sorted(self._checks, key=lambda shape: -self._checks[shape])[:MOST_CHECKS],
        }
        return self._memory(
            "summary",
            title,
            self._uid("sum"),
            trust="agent",
            tags=names,
            files=tuple(sorted(self._files, key=lambda file: (-self._files[file], file)))[:20],
            functions=tuple(dict.fromkeys(change.function for change in self._changes.values()))[:20],
            detail={name: list(each) for name, each in told.items() if each},
        )

    def _laid_down(self) -> list[Memory]:
        back = self._taken_back()
        return [self._said_memory(*told) for key, told in self._said.items() if key not in back]

    def _taken_back(self) -> set[str]:
        """Decisions of this session that the user changed his mind about in it."""
        return {
            key
            for key, (one, at, _) in self._said.items()
            if one.kind == "decision"
            and any(at < later and takes_back(other, one) for other, later, _ in self._said.values())
        }

    def _said_uid(self, one: Said) -> str:
        return f"{one.kind[:3]}:{self.project.key}:{_key(one.kind, one.text)}"

    def _outcome(self) -> str:
        """What became of the code, and how the last checks ended; nothing where none was touched."""
        if not self._files:
            return ""
        functions = [change for change in self._changes.values() if change.what != "DELETED"]
        known = {change.file for change in self._changes.values()}
        other = [file for file in self._files if file not in known]
        told = [*([names_of(functions)] if functions else ()), *([f"edited {listed(other, most=3)}"] if other else ())]
        checks = [f"{name} {'fails' if failed else 'passes'}" for name, (command, failed) in self._runs.items()
                  if command.kind in ("test", "lint", "build")][-2:]  # fmt: skip
        return "; ".join((*told, *checks))

    def _blocks(self) -> list[str]:
        """What still fails; of what was only tried on the way, nothing that later checks did well without."""
        open_ones = [
            failure
            for failure in self._failures.values()
            if failure.open and (failure.command.kind not in ("other", "install") or failure.ran > self._passed)
        ]
        return [cut(self._failure_memory(failure).title, 110) for failure in open_ones[-3:]]

    def _open(self) -> tuple[str, ...]:
        return tuple(cut(todo.text, 120) for todo in self._todos if not todo.done and todo.text.strip())[:6]

    def _handoff(self, open_ones: tuple[str, ...], summary: Memory) -> Memory | None:
        if not open_ones:
            return None
        blocks = self._blocks()
        return self._memory(
            "handoff",
            open_ones[0],
            self._uid("han"),
            at=self.session.last + LATER,
            trust="agent",
            files=summary.files[:5],
            detail={"next": list(open_ones), **({"blockers": blocks} if blocks else {})},
        )

    def _done(self, summary: Memory) -> tuple[str, ...]:
        fixed = (self._failure_memory(each).title for each in self._failures.values() if not each.open)
        doing = (*self._finished, *fixed, *(change.function for change in self._changes.values()))
        return (*doing, summary.title, *self._prompts[-20:]) if self._files else doing

    def _resolving(self, failures: Sequence[Memory], changed: Sequence[Memory]) -> list[Link]:
        """Which changes resolved which failures."""
        return [
            Link(change.uid, "resolves", memory.uid)
            for failure, memory in zip(self._failures.values(), failures, strict=True)
            for change in changed
            if any(
                change.files[0] == each.edit.file and change.functions[0] in each.functions for each in failure.fixing
            )
        ]


def session_uid(prefix: str, *, project: str, session: str) -> str:
    """The uid of what a session has one of in a project: its summary (`sum`), its handoff (`han`)."""
    return f"{prefix}:{project}:{session}"


def distil(
    actions: Iterable[Action], *, session: Session, project: Project, changes_of: ChangesOf = lambda _: ()
) -> Distilled:
    """What a whole session came to."""
    draft = Draft(session, project, changes_of=changes_of)
    for action in actions:
        draft.add(action)
    return draft.harvest()


class _Failure:
    """One error of a session, and what became of it."""

    def __init__(self, problem: Problem, command: Command, *, first: float) -> None:
        self.problem = problem
        self.command = command
        self.first = self.last = first
        self.times = 0
        self.open = True
        self.ran = 0  # the run that showed it last
        self.edits = self.runs = 0  # how many there were when it was seen first since it was fixed
        self.fixed_by = ""
        self.fixing: tuple[Edited, ...] = ()

    def seen(self, command: Command, *, at: float, edits: int, runs: int) -> None:
        if self.times == 0 or not self.open:
            self.edits, self.runs = edits, runs
        self.ran = runs
        self.times, self.last, self.open, self.command = self.times + 1, max(self.last, at), True, command

    def fix(self, how: str, *, at: float, edits: tuple[Edited, ...]) -> None:
        self.open, self.last = False, max(self.last, at)
        self.fixed_by, self.fixing = how or self.fixed_by, edits or self.fixing


def _distinct(items: Sequence[str]) -> list[str]:
    """*items* without those that say what an earlier one says already."""
    found: list[tuple[str, frozenset[str]]] = []
    for item in items:
        words = gist.stems(item)
        if not any(gist.holds(words, other) or gist.holds(other, words) for _, other in found):
            found.append((item, words))
    return [item for item, _ in found]


def gist_title(answers: Sequence[str]) -> str:
    points = gist.units((), answers[:1])
    return points[0].text if points else ""


def _key(kind: str, text: str) -> str:
    """The same for the same thing said again in other small words."""
    words = sorted({gist.stem(term) for term in terms(text, limit=40)}) or [text.lower()]
    return hashlib.blake2b(f"{kind} {' '.join(words)}".encode("utf-8", "replace"), digest_size=8).hexdigest()


def _known(file: str, files: dict[str, int]) -> str:
    """A file as this session knows it, where an output names its end only."""
    return next((each for each in files if each.endswith(f"/{file}")), file)
