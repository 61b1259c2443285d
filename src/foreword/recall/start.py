"""Choose what a session begins with: where things stand, recent sessions, what comes back, rules, files in play."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from foreword.extract.merge import open_items
from foreword.extract.text import most_frequent
from foreword.models import Memory, Project, Query, Ranked, Trigger, named
from foreword.models import text as text_in
from foreword.models import texts as texts_in
from foreword.projects import is_pushed
from foreword.recall import render
from foreword.recall.files import TurnRecord, is_changed, recent_files
from foreword.recall.notes import (
    MOST_FILES,
    OUTCOME,
    Note,
    day_of,
    facts_text,
    is_about_process,
    is_torn,
    note_of,
    rule_note,
    session_note,
    unique_notes,
)
from foreword.recall.rank import CERTAIN, Searchable
from foreword.recall.sanitize import ago, neutral, shown_path
from foreword.terms import lazy_pattern

DAY = 86_400.0
OPEN_DAYS = 14.0  # after so many days what a session left open is old news
STANDING_DAYS = 7.0  # the same for branch and uncommitted files
PROCESS_DAYS = 2.0  # after so many days what waits for git, or was said about branches and commits, is old
OPEN_ITEMS = 5
EXTRACTED_LEARNING = "lea:"  # how the uids of learnings begin that nobody wrote down
EXTRACTED_HANDOFF = "han:"  # how the uids of handoffs begin that nobody wrote: open to-dos of a session
OPEN_SESSIONS = 5  # of which open items are listed
TITLE = 160
SESSIONS = 40  # summaries that tell how things are run here
TURNS = 60  # that tell which files are worked on
FILES = 11  # that a session start names: 3 of 4 sessions find a file of theirs; each further one is seldom right
MIN_FAILED_SESSIONS = 2  # sessions in which something failed
MIN_UNSOLVED_SESSIONS = 4  # the same where nothing is known to work instead
FAILURE_DAYS = 45.0
RULES = 240  # that are looked through: a project that is corrected all day must not hide what holds everywhere
SURE_RULE = 0.7  # confidence of a rule that is shown after it was stated once
MAX_AGENT_NOTES = 2  # notes among them that an agent wrote
OWN_OUTCOME = 450  # characters of what came of the session itself, after a compaction
SHOWN_SESSIONS = 4  # of which the files stand in the list of sessions
MOST_PARALLEL_FILES = 5  # of another session at work
MAX_KNOWLEDGE = 5  # notes on the files in play
HAND_WRITTEN_POOL = 60  # memories, the newest, that are looked through for what the user pinned or wrote by hand
PROJECTS = 5  # memories about projects that are looked through for the user's facts
_GOTCHA = lazy_pattern(
    r"\b(?:because|root cause|caused by|due to|turns? out|only (?:works?|when|if|runs?)|never|unless|silently"
    r"|fails? (?:when|if|with)|requires?|cannot|can'?t)\b",
    re.IGNORECASE,
)
_REMOTE = lazy_pattern(r"git:(?P<host>[\w.-]+\.[a-z]+)/(?P<name>[\w.-]+/[\w.-]+)")
_UNCOMMITTED = lazy_pattern(r"Changes? not committed: ")
_NOT_PUSHED = lazy_pattern(r"Not pushed: .* on (\S+)(?: \((\w+)\))?$")
_OF_THE_MOMENT = lazy_pattern(
    r"Not pushed: |PR #\d+: |Failed in its last run: |.*\bstill (?:watching|running|waiting)\b"
)


class Entry(NamedTuple):
    """One note that may be shown, with the memory behind it."""

    note: Note
    ranked: Ranked | None = None
    at: float = 0.0  # since when it is so, where no memory tells


Recent = Callable[[tuple[str, ...], int], Sequence[Memory]]  # kinds, limit -> newest first
MemoriesAbout = Callable[[Collection[str], tuple[str, ...]], Sequence[Memory]]  # files, kinds -> best first


class SessionStart:
    """What is known at the start of a session; each part is read once."""

    def __init__(
        self, trigger: Trigger, *, now: float, recent: Recent, about: MemoriesAbout, history: Sequence[TurnRecord]
    ) -> None:
        self._trigger, self._now, self._recent, self._about = trigger, now, recent, about
        own = "" if trigger.source == "compact" else trigger.session  # after a compaction the agent lost its own work
        self._summaries = [each for each in recent(("summary",), SESSIONS) if each.session != own or not own]
        self._handoffs = list(recent(("handoff",), OPEN_SESSIONS))
        turns = [each for each in history if each.session != own or not own]
        self._files = [file for file in recent_files(turns[:TURNS]) if file_exists(trigger.project.root, file)][:FILES]

    def entries(self, layer: str, rank: Callable[[Sequence[Memory]], Sequence[Ranked]]) -> list[Entry]:
        """Return what a layer may say, best first."""
        parts = {
            "standing": self._standing,
            "sessions": self._sessions,
            "failures": self._failures,
            "commands": self._commands,
            "rules": lambda: self._rules(rank),
            "knowledge": self._knowledge,
            "changes": self._changes,
        }
        return parts[layer]() if layer in parts else []

    # -- layers --------------------------------------------------------------------------------------------------
    def _standing(self) -> list[Entry]:
        """Return open items, uncommitted leftovers, parallel sessions, branch and pull request."""
        found: list[Entry] = []
        newest = next((each for each in self._summaries if self._age(each) < STANDING_DAYS * DAY), None)
        if newest is not None and (text := work_in_progress(newest, self._trigger, now=self._now)):
            found.append(Entry(Note(text=text, day=day_of(newest.created), kind="handoff"), None))
        found += parallel_entries(self._trigger.parallel, now=self._now)
        return found + self._open_items()

    def _open_items(self) -> list[Entry]:
        found: list[Entry] = []
        seen: list[Note] = []
        recent = self._summaries[:OPEN_SESSIONS]
        since = min((each.created for each in recent), default=0.0)
        handoffs = [
            each for each in self._handoffs if each.created >= since or not each.uid.startswith(EXTRACTED_HANDOFF)
        ]
        sources = sorted((*handoffs, *recent), key=lambda each: -each.created)
        written = (each.created for each in self._handoffs if not each.uid.startswith(EXTRACTED_HANDOFF))
        closed = max(written, default=0.0)  # whoever writes a handoff says what is open
        for memory in sources:
            if memory.created < closed:
                break
            by_hand = memory.kind == "handoff" and memory.trust == "user"
            if self._age(memory) > OPEN_DAYS * DAY and not by_hand:
                continue
            if memory.kind == "handoff" and memory.title not in texts_in(memory.detail, "next"):
                seen.append(self._open(memory, memory.title))
                found.append(Entry(seen[-1], Ranked(memory, 1.0, {})))
            for text in open_items(memory):
                if _UNCOMMITTED.match(text):
                    continue  # the working copy tells it, and may be clean by now
                unpushed = _NOT_PUSHED.match(text)
                if unpushed and is_pushed(self._trigger.project.root, unpushed[1], unpushed[2] or ""):
                    continue
                if _OF_THE_MOMENT.match(text) and self._age(memory) > PROCESS_DAYS * DAY:
                    continue
                note = self._open(memory, text)
                if len(unique_notes([*seen, note])) > len(seen):
                    seen.append(note)
                    found.append(Entry(note, Ranked(memory, 1.0, {})))
        return found[:OPEN_ITEMS]

    def _open(self, memory: Memory, text: str) -> Note:
        whose = "handed over" if memory.kind == "handoff" and memory.trust == "user" else "left open"
        return Note(
            text=f"Open: {neutral(text, width=TITLE)}",
            tail=f"{whose} {ago(self._age(memory))}",
            day=day_of(memory.created),
            kind="handoff",
        )

    def _sessions(self) -> list[Entry]:
        newest: dict[str, Memory] = {}  # of the sessions with one title
        for each in self._summaries:
            if each.body or each.files:
                newest.setdefault(each.title.casefold(), each)
        found = []
        for each in newest.values():
            room = OWN_OUTCOME if each.session == self._trigger.session else OUTCOME  # its own after a compaction
            note = session_note(each, now=self._now, files=self._files, room=room)
            found.append(Entry(note, Ranked(each, 1.0, {})))
        return found

    def _failures(self) -> list[Entry]:
        """Return what failed in several sessions, those of most sessions first."""
        from foreword.recall.hints import has_remedy  # compiles what a project without failures does without

        failing = []
        for each in self._recent(("failure",), 200):
            many, recent = len(named(each.detail, "seen_in")), self._now - each.confirmed < FAILURE_DAYS * DAY
            # An import may claim that anything worked.
            if recent and many >= MIN_FAILED_SESSIONS and each.trust != "imported":
                failing.append((many, each))
        failing.sort(key=lambda pair: (-pair[0], -pair[1].confirmed))
        found: dict[str, Entry] = {}
        for many, each in failing:
            # A linter has many complaints; the edit that ended one of them is no help with the next.
            matter = f"{each.detail.get('command')} {each.detail.get('folder')}"
            edited = str(each.detail.get("fix") or "").startswith("edited")
            shown = replace(each, detail={**each.detail, "fix": ""}) if edited else each
            helps = shown.detail.get("cause") == "folder" or shown.detail.get("fixed_by") or has_remedy(shown.detail)
            if helps or many >= MIN_UNSOLVED_SESSIONS:
                entry = Entry(note_of(shown, now=self._now)._replace(label=""), Ranked(each, 1.0, {"sessions": many}))
                found.setdefault(matter, entry)
        return list(found.values())

    def _commands(self) -> list[Entry]:
        """Return how tests, linters and builds are run here, and where the repository is."""
        checks = most_frequent((shape for each in self._summaries for shape in texts_in(each.detail, "checks")), most=3)
        parts = [f"`{neutral(shape, width=80)}`" for shape in checks]
        repository = repository_of(self._trigger.project, self._summaries)
        if repository and self._summaries:  # alone it is not worth a block: the agent sees the remote
            parts.append(f"repository {neutral(repository, width=80)}")
        branches = (text for each in self._summaries for text in texts_in(each.detail, "default_branch"))
        parts += [f"default branch {neutral(each, width=80)}" for each in most_frequent(branches, most=1)]
        ways = [Entry(Note(text=" · ".join(parts), kind="project"))] if parts else []
        return [*self._project_facts(), *ways]

    def _project_facts(self) -> list[Entry]:
        """Return what the user laid down about the project itself: its role, contracts, dependencies."""
        for memory in self._recent(("project",), PROJECTS):
            if memory.trust == "user" and facts_text(memory):
                return [Entry(note_of(memory, now=self._now), Ranked(memory, 1.0, {}))]
        return []

    def _rules(self, rank: Callable[[Sequence[Memory]], Sequence[Ranked]]) -> list[Entry]:
        """Return standing rules; only the words of the user become one."""
        rules = [
            each
            for each in self._recent(("preference", "correction"), RULES)
            if each.trust == "user" and (each.pinned or each.seen > 1 or each.confidence >= SURE_RULE)
        ]
        return [Entry(rule_note(each.memory, now=self._now), each) for each in rank(rules)]

    def _knowledge(self) -> list[Entry]:
        """Return decisions, facts and gotchas about the files that are worked on now; before them what the user pinned.

        What the user wrote down by hand, and about no file, is about the whole project.
        """
        kinds = ("decision", "pattern", "learning", "correction", "preference", "note")
        by_hand = self._recent(("decision", "pattern", "learning", "note"), HAND_WRITTEN_POOL)
        found = [
            *(each for each in by_hand if each.pinned),
            *(each for each in self._about(self._files, kinds) if _is_worth_knowing(each) and not self._expired(each)),
            *(each for each in by_hand if each.source == each.trust == "user" and not each.files),
        ]
        found = list({each.id: each for each in found}.values())
        learned = [each for each in found if each.trust != "user"]
        found = [each for each in found if each.trust == "user" or each in learned[:MAX_AGENT_NOTES]]
        notes = []
        for each in found[: 2 * MAX_KNOWLEDGE]:
            in_play = tuple(shown_path(file) for file in each.files if file in self._files)[:1]
            notes.append((note_of(each, now=self._now)._replace(files=in_play), each))
        kept = unique_notes([note for note, _ in notes])[:MAX_KNOWLEDGE]
        return [Entry(note, Ranked(memory, 1.0, {})) for note, memory in notes if note in kept]

    def _changes(self) -> list[Entry]:
        """Return the files that were worked on last, without those that are named already."""
        shown = {file for entry in self._sessions()[:SHOWN_SESSIONS] for file in entry.note.files}
        others = [path for file in self._files if (path := shown_path(file)) not in shown]
        return [Entry(Note(text=", ".join(others), kind="change"))] if others else []

    # -- helpers ---------------------------------------------------------------------------------------------------
    def _expired(self, memory: Memory) -> bool:
        """Return whether the user's word on a branch or a commit is old: readers found it done or wrong by then."""
        return memory.trust == "user" and self._age(memory) > PROCESS_DAYS * DAY and is_about_process(memory.title)

    def _age(self, memory: Memory) -> float:
        return self._now - memory.created


def _is_worth_knowing(memory: Memory) -> bool:
    """Return whether a memory about a file helps somebody who did not take part in its session.

    What an agent found out must be a gotcha, found out twice, or written down as a note: most of the rest retells what
    a session built.
    """
    if is_torn(memory.title):
        return False
    if memory.trust == "user" or memory.kind != "learning":
        return True
    if memory.confidence < CERTAIN:
        return False
    noted = not memory.uid.startswith(EXTRACTED_LEARNING)
    return noted or memory.seen > 1 or bool(_GOTCHA.search(f"{memory.title} {memory.body}"))


def parallel_entries(parallel: Sequence[tuple[float, Sequence[str]]], *, now: float, what: str = "") -> list[Entry]:
    """Return the other sessions at work in this folder, with their files and *what* these are."""
    found = []
    for since, files in parallel:
        paths = ", ".join(shown_path(each) for each in files[:MOST_PARALLEL_FILES])
        text = f"Another session works in this folder since {ago(now - since).removesuffix(' ago')}{what}"
        found.append(Entry(Note(text=f"{text}: {paths}" if paths else text, kind="handoff"), at=since))
    return found


def work_in_progress(summary: Memory, trigger: Trigger, *, now: float) -> str:
    """Return the branch of the last session, its pull request, and what it left uncommitted."""
    detail = summary.detail
    branch, pull = _topic_branch(summary), text_in(detail, "pull_request")
    merged = ", merged" if text_in(detail, "fate") == "merged" else ""
    left = [file for file in texts_in(detail, "uncommitted") if file_exists(trigger.project.root, file)]
    left = [file for file in left if trigger.changed is None or is_changed(file, trigger.changed)]
    parts = []
    # A branch alone says nothing: agents see which one is checked out.
    if branch and (pull or merged or left):
        of = f", pull request {neutral(pull, width=20)}" if pull else ""
        parts.append(f"Branch {neutral(branch, width=80)}{of}{merged}")
    elif pull:
        parts.append(f"Pull request {neutral(pull, width=20)}{merged}")
    if left:
        paths = ", ".join(shown_path(file) for file in left[:MOST_FILES])
        more = f" and {len(left) - MOST_FILES} more" if len(left) > MOST_FILES else ""
        many = f"{len(left)} file{'s' if len(left) > 1 else ''}"
        parts.append(f"{many} edited {ago(now - summary.created)} and not committed: {paths}{more}")
    return "; ".join(parts)


def _topic_branch(summary: Memory) -> str:
    """Return the branch that a session worked on; empty for the default one."""
    branch = text_in(summary.detail, "branch")
    return "" if branch in (text_in(summary.detail, "default_branch"), "main", "master", "HEAD") else branch


def repository_of(project: Project, summaries: Sequence[Memory]) -> str:
    """Return owner and name of the project's repository; empty where nothing tells it for certain.

    Its remote on GitHub decides, then what git or GitHub printed in most sessions, which is where the pull requests of
    a mirror or a fork are, then any other remote.
    """
    remote = _REMOTE.fullmatch(project.key)
    if remote and remote["host"] == "github.com":
        return remote["name"]
    found = [text for each in summaries for text in texts_in(each.detail, "repository")]
    best = "".join(most_frequent(found, most=1))
    return best if 2 * found.count(best) > len(found) else remote["name"] if remote else ""


def pull_request_note(
    summaries: Sequence[Memory], *, project: Project, now: float, within: float
) -> tuple[Note, Memory] | None:
    """Return which pull request, branch and repository were worked on last; None where that is not known.

    *summaries* are those of earlier sessions, newest first; what is older than *within* seconds is over.
    """
    for memory in summaries:
        if now - memory.created > within:
            return None
        branch, pull = _topic_branch(memory), text_in(memory.detail, "pull_request")
        if not branch and not pull:
            continue
        if text_in(memory.detail, "fate") == "merged":
            return None
        same = [each for each in summaries if branch and text_in(each.detail, "branch") == branch]
        pull = pull or next((found for each in same if (found := text_in(each.detail, "pull_request"))), "")
        parts = [f"Pull request {neutral(pull, width=20)}"] if pull else []
        parts += [f"branch {neutral(branch, width=80)}"] if branch else []
        repository = repository_of(project, summaries)
        parts += [f"repository {neutral(repository, width=80)}"] if repository else []
        text = f"{', '.join(parts)}: {neutral(memory.title, width=TITLE)}"
        files = tuple(shown_path(file) for file in memory.files[:MOST_FILES])
        return Note(text=text, label=f"last worked on {ago(now - memory.created)}", files=files, kind="summary"), memory
    return None


def file_exists(root: str, file: str) -> bool:
    """Return whether a file of the project is still there, as far as that is known."""
    return not root or not os.path.isdir(root) or os.path.exists(os.path.join(root, file))


# -- for a person who comes back ---------------------------------------------------------------------------------------
def resume(store: Searchable, project: Project, *, now: float, limit: int) -> dict[str, list[dict[str, Any]]]:
    """Return what *project*'s sessions left open, as a session begins with it, and the last sessions, newest first."""

    def recent(kinds: tuple[str, ...], most: int) -> list[Memory]:
        return [hit.memory for hit in store.by_recency(Query(scopes=(project.scope,), kinds=kinds, limit=most))]

    start = SessionStart(Trigger("session_start", project), now=now, recent=recent, about=lambda *_: (), history=())
    parts: dict[str, list[dict[str, Any]]] = {"standing": [], "sessions": []}
    for layer, points in parts.items():
        for note, ranked, _ in start.entries(layer, lambda _: ())[:limit]:
            id, kind, at = (
                (ranked.memory.id, ranked.memory.kind, ranked.memory.created) if ranked else ("", "handoff", now)
            )
            points.append({"id": id, "kind": kind, "at": at, "text": render.line(note, layer=layer)})
    return parts
