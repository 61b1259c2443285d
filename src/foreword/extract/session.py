"""Extract the memories of one session from its actions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from foreword.extract.actions import Action, Turn, turns_of
from foreword.extract.facts import commits_of, facts_of
from foreword.extract.failure_memory import failure_body, failure_detail, failure_title
from foreword.extract.failures import failures_of
from foreword.extract.names import MOST_PIECE, respelled
from foreword.extract.statements import Statement, retracts, statements_of
from foreword.extract.summary import learned_of, outcome_of, outcome_of_session, title_of
from foreword.extract.tasks import Tasks, tasks_of
from foreword.extract.text import cut, most_frequent, sentences
from foreword.models import Change, Edit, Link, Memory, Project, Session, Trust
from foreword.terms import terms

# What is kept of a session that goes on: enough for two days of work, and bounded.
MOST_ACTIONS = 4_000
FIRST_ACTIONS = 400  # that stay when the oldest of the rest go
MOST_OUTPUT = 6_000  # characters of an output, head and tail: where errors stand
MOST_TEXT = 20_000  # of a prompt or an answer
MOST_CHANGES = 300
MOST_FILES = 20  # that a summary or a turn names
USER_WORDS = 600  # characters of the user's words that a turn keeps
EXCERPT = 2_500  # characters of a final message that a turn keeps: what passages are cut from
MOST_COMMANDS = 4  # of a turn
OF_TESTS = 0.4  # confidence: what a test is called says less than the function that it tests
FOUND_OUT, WRITTEN_DOWN = 0.6, 0.7  # confidence of a sentence in an answer, and of one in a commit message

ChangesOf = Callable[[Edit], Sequence[Change]]


@dataclass(frozen=True)
class Extraction:
    """The result of extraction: the memories of a session, their links, changed functions and open items."""

    turns: tuple[Turn, ...] = ()
    complete: bool = True  # all actions were there: what was extracted before and is not any more, is gone
    memories: tuple[Memory, ...] = ()
    links: tuple[Link, ...] = ()
    changes: tuple[Change, ...] = ()
    retracted: tuple[str, ...] = ()  # uids of what the session no longer says
    done: tuple[str, ...] = ()  # what was finished, in words: open items of earlier sessions may be among it
    open: tuple[str, ...] = ()  # what it leaves open itself


class SessionExtractor:
    """Collect the actions of one session while it goes on, and extract its memories on demand."""

    def __init__(self, session: Session, project: Project, *, changes_of: ChangesOf = lambda _: ()) -> None:
        self.session = session
        self.project = project
        self._changes_of = changes_of
        self._actions: list[Action] = []
        self._trimmed = False
        self._changes: dict[tuple[str, str], Change] = {}
        self._functions: list[tuple[float, str]] = []  # when a function was changed

    def add(self, action: Action) -> None:
        """Read what happened next."""
        times = (action.at,) if not self.session.started else (self.session.started, action.at)
        self.session = replace(self.session, started=min(times), last=max(self.session.last, action.at))
        for edit in action.edits if not action.failed else ():
            for change in tuple(self._changes_of(edit))[:MOST_CHANGES]:
                self._change(replace(change, project=self.project.key, session=self.session.id, at=action.at))
        self._actions.append(_trimmed(action))
        if len(self._actions) > MOST_ACTIONS:
            del self._actions[FIRST_ACTIONS : FIRST_ACTIONS + MOST_ACTIONS // 10]
            self._trimmed = True

    @property
    def excerpts(self) -> tuple[str, ...]:
        """Return the first prompt and the last turns: enough for a model to sum the session up in better words."""
        prompts = [each.text for each in self._actions if each.kind == "prompt"]
        answers = [each.text for each in self._actions if each.kind == "answer"]
        return (*prompts[:1], *prompts[1:][-3:], *answers[-3:])

    def extract(self) -> Extraction:
        """Return everything that is worth knowing later."""
        turns = turns_of(self._actions)
        tasks = tasks_of(turns)
        kept, retracted = self._statements(turns)
        summary = self._summary(turns, tasks)
        changes, source = tuple(self._changes.values()), self.session.host or "session"
        changed = [memory_of_change(each, project=self.project, source=source, trust="tool") for each in changes]
        handoff = self._handoff(tasks, summary)
        found = (*kept, *self._learned(turns), *self._failures(turns), *changed)
        memories = (summary, *map(self._turn, turns), *found, handoff)
        return Extraction(
            turns=turns,
            complete=not self._trimmed,
            memories=tuple(filter(None, memories)),
            links=tuple(Link(each.uid, "part-of", summary.uid) for each in kept) if summary else (),
            changes=changes,
            retracted=(*retracted, *(() if handoff else (self._uid("handoff", self.session.id),))),
            done=(*tasks.done, *(each.function for each in changes)),
            open=tasks.open,
        )

    # -- the kinds of memories ------------------------------------------------------------------------------------
    def _summary(self, turns: Sequence[Turn], tasks: Tasks) -> Memory | None:
        title = title_of(turns)
        if not title or not any(each.answer or each.edited or each.runs for each in turns):
            return None  # aborted, or a question that nobody has answered yet
        edited = most_frequent((file for turn in turns for file in _inside(turn.edited)), most=MOST_FILES)
        return self._memory(
            "summary",
            title,
            self.session.id,
            body=outcome_of_session(turns),
            trust="agent",
            files=tuple(edited),
            functions=tuple(dict.fromkeys(each.function for each in self._changes.values()))[:MOST_FILES],
            detail={"next": list(tasks.open), **facts_of(turns)},
        )

    def _turn(self, turn: Turn) -> Memory | None:
        """Return the memory of one turn; None where it had no effect."""
        outcome = outcome_of(turn)
        edited = _inside(turn.edited)
        if turn.prompt is None or not (edited or outcome):
            return None
        commits = [each.subject for each in commits_of((turn,))][:3]
        functions = (name for at, name in self._functions if turn.began <= at <= turn.ended)
        detail = {
            "user": cut(turn.typed, USER_WORDS),
            "author": f"{turn.author.author}: {turn.author.reason}",
            "outcome": outcome,
            "commits": commits,
            "commands": [cut(each.command, 120) for each in turn.runs if each.failed is False][-MOST_COMMANDS:],
            "read": list(turn.read)[:8],
            "respelled": respelled(edit for each in turn.actions if not each.failed for edit in each.edits),
        }
        return self._memory(
            "turn",
            cut(next(iter(commits), "") or outcome or turn.typed or edited[0], 160),
            f"{self.session.id}:{turn.prompt.id or turn.number}",
            body=_excerpt(turn.answer),
            at=turn.ended,
            trust="agent",
            files=edited[:MOST_FILES],
            functions=tuple(dict.fromkeys(functions))[:MOST_FILES],
            detail=detail,
        )

    def _statements(self, turns: Sequence[Turn]) -> tuple[list[Memory], list[str]]:
        """Return what the user laid down, and the uids of what the user took back in the same session."""
        found = statements_of(turns)
        by_key: dict[str, list[Statement]] = {}
        for each in found:
            by_key.setdefault(_key(each.kind, each.text), []).append(each)
        edited = {turn.number: turn.edited for turn in turns}
        touched = {file for turn in turns for file in (*turn.edited, *turn.read)}
        kept, back = [], []
        for key, some in by_key.items():
            if any(other.at > some[0].at and retracts(other, some[0].text) for other in found):
                back.append(self._uid(some[0].kind, key))
                continue
            one, seen_in = some[-1], {self.session.id: len(some)}
            quote = one.quote if one.quote != one.text else ""
            memory = self._memory(
                one.kind,
                one.text,
                key,
                at=one.at,
                trust="user",
                confidence=one.confidence,
                seen=len(some),
                files=_inside((*_named_files(one.text, touched), *edited.get(one.turn, ())))[:MOST_FILES],
                detail={"why": one.why, "instead_of": one.instead_of, "quote": quote, "seen_in": seen_in},
            )
            kept.append(memory)
        return kept, sorted(back)

    def _learned(self, turns: Sequence[Turn]) -> list[Memory]:
        return [
            self._memory(
                "learning",
                each.text,
                _key("learning", each.text),
                at=each.turn.ended,
                trust="agent",
                confidence=WRITTEN_DOWN if each.written_down else FOUND_OUT,
                files=_inside(each.turn.edited)[:8],
            )
            for each in learned_of(turns)
        ]

    def _failures(self, turns: Sequence[Turn]) -> list[Memory]:
        found = failures_of(turns, root=self.project.root)
        details = ((each, failure_detail(each, self.session.id)) for each in found)
        return [
            self._memory(
                "failure",
                failure_title(detail),
                _digest(detail["key"]),
                body=failure_body(detail),
                at=failure.last,
                files=failure.files[:8],
                trust="tool",
                confidence=0.9 if failure.fix else 0.7,
                seen=failure.times,
                detail=detail,
            )
            for failure, detail in details
        ]

    def _handoff(self, tasks: Tasks, summary: Memory | None) -> Memory | None:
        """Return the open to-dos as a handoff, so that the next session begins with them."""
        if not tasks.todos or summary is None:
            return None
        return self._memory(
            "handoff",
            tasks.todos[0],
            self.session.id,
            at=self.session.last + 0.001,  # after the summary of its session
            trust="agent",
            files=summary.files[:5],
            detail={"next": list(tasks.todos)},
        )

    # -- helpers ---------------------------------------------------------------------------------------------------
    def _change(self, change: Change) -> None:
        key = change.file, change.function
        before = self._changes.get(key)
        if before is not None:
            if before.what == "NEW" and change.what == "DELETED":  # made and taken away again
                del self._changes[key]
                return
            what = "NEW" if before.what == "NEW" else "DELETED" if change.what == "DELETED" else "MODIFIED"
            change = replace(change, what=what)
        if before is not None or len(self._changes) < MOST_CHANGES:
            self._changes[key] = change
            self._functions.append((change.at, change.function))
            del self._functions[: -4 * MOST_CHANGES]

    def _memory(self, kind: str, title: str, key: str, **more: Any) -> Memory:
        """Return a memory of this session; details that say nothing are left out, but for a failure's."""
        at = more.pop("at", self.session.last)
        detail = {name: value for name, value in more.pop("detail", {}).items() if value or kind == "failure"}
        more |= {"scope": self.project.scope, "project": self.project.key, "session": self.session.id}
        more |= {"source": self.session.host or "session", "created": at, "confirmed": at}
        return Memory(kind, title, uid=self._uid(kind, key), detail=detail, **more)

    def _uid(self, kind: str, key: str) -> str:
        return f"{'trn' if kind == 'turn' else kind[:3]}:{self.project.key}:{key}"


def session_uid(prefix: str, *, project: str, session: str) -> str:
    """Return the uid of what a session has one of in a project: its summary (`sum`), its handoff (`han`)."""
    return f"{prefix}:{project}:{session}"


def memory_of_change(change: Change, *, project: Project, source: str, trust: Trust) -> Memory:
    """Return the one memory of a function: whoever changes it last says what became of it."""
    name = f"{change.function}()" if "(" in change.signature else change.function
    return Memory(
        kind="change",
        title=f"{name} {'deleted from' if change.what == 'DELETED' else 'in'} {change.file}",
        uid=f"chg:{project.key}:{change.file}:{change.function}",
        scope=project.scope,
        project=project.key,
        session=change.session,
        source=source,
        trust=trust,
        confidence=OF_TESTS if is_test(change.file) else 1.0,
        created=change.at,
        confirmed=change.at,
        files=(change.file,),
        functions=(change.function,),
        detail={each: getattr(change, each) for each in ("what", "signature", "line", "end_line")},
    )


def is_test(file: str) -> bool:
    """Return whether a file holds tests, by its name and folders."""
    name = file.rpartition("/")[2].lower()
    marks = ("_test.", ".test.", ".spec.")
    return name.startswith("test_") or "/tests/" in f"/{file}" or any(each in name for each in marks)


def extract_session(
    actions: Iterable[Action], *, session: Session, project: Project, changes_of: ChangesOf = lambda _: ()
) -> Extraction:
    """Extract a whole session at once."""
    extractor = SessionExtractor(session, project, changes_of=changes_of)
    for action in actions:
        extractor.add(action)
    return extractor.extract()


def _trimmed(action: Action) -> Action:
    """Return *action* without what no step of extraction reads: the middle of long texts."""
    pieces = ((each, _ends(each.before, MOST_PIECE), _ends(each.after, MOST_PIECE)) for each in action.edits)
    edits = tuple(each._replace(before=before, after=after) for each, before, after in pieces)
    text, output = _ends(action.text, MOST_TEXT) or "", _ends(action.output, MOST_OUTPUT) or ""
    return replace(action, text=text, output=output, command=action.command[:MOST_TEXT], edits=edits)


def _excerpt(answer: str) -> str:
    """Return the sentences of a final message, one a line: what passages are cut from later."""
    lines = sentences(answer)
    ends = accumulate(len(line) + 1 for line in lines)
    return "\n".join(line for line, end in zip(lines, ends, strict=True) if end <= EXCERPT + 1)


def _ends(text: str | None, most: int) -> str | None:
    if text is None or len(text) <= most:
        return text
    return f"{text[: most // 2]}\n[...]\n{text[-most // 2 :]}"


def _inside(files: Iterable[str]) -> tuple[str, ...]:
    """Return the files that lie in the project, without empty names."""
    return tuple(dict.fromkeys(file for file in files if file.strip() and not file.startswith("/")))


def _key(kind: str, text: str) -> str:
    """Return the same for the same statement in other small words."""
    words = sorted({term.rstrip("s") for term in terms(text, limit=40)}) or [text.lower()]
    return _digest(f"{kind} {' '.join(words)}")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _named_files(text: str, touched: Collection[str]) -> list[str]:
    """Return the files that *text* names: by a path, or by the name of one file that the session touched."""
    files: list[str] = []
    for name in dict.fromkeys(_FILE_NAME.findall(text)):
        found = [file for file in touched if f"/{file}".endswith(f"/{name}")]
        files += found if len(found) == 1 else [name] if "/" in name else []
    return files


_FILE_NAME = re.compile(r"(?<![\w./@:-])[\w@][\w.@-]*(?:/[\w.@-]+)*\.[A-Za-z]\w{0,5}(?![\w/])")
