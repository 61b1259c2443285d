"""Read a project's own files: what it is, how it is built and tested, its decision records, its agent instructions.

An agent has its instruction file (CLAUDE.md, AGENTS.md, …) in every prompt. Repeating it would cost tokens and teach
nothing, and a file is not the user's own word: none of it becomes a rule. It is stored with a confidence at which
nothing is injected, so that a search finds it, also from an agent that does not read that file.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from foreword.importers.base import Batch, Offer, Source, plural
from foreword.models import Link, Memory, Project

MOST_BYTES = 256 * 1024  # of one file; a README of more is a book
MOST_DECISIONS = 500
INSTRUCTION_TEXT = 8_000  # characters of an instruction file that are looked for
ROLE = 240  # characters: what the project is, in one line
BACKGROUND = 0.4  # confidence at which nothing is injected, see rank.CERTAIN

READMES = ("README.md", "README.rst", "README.txt", "README", "readme.md", "Readme.md", "README.markdown")
INSTRUCTIONS = (
    *("CLAUDE.md", "AGENTS.md", "GEMINI.md", ".cursorrules", ".windsurfrules", ".github/copilot-instructions.md"),
    *(".claude/CLAUDE.md", "CONTRIBUTING.md", ".github/CONTRIBUTING.md", "docs/CONTRIBUTING.md"),
)
DECISIONS = (
    *("docs/adr", "docs/adrs", "doc/adr", "adr", "docs/decisions", "doc/decisions", "decisions"),
    *("doc/architecture/decisions", "docs/architecture/decisions", "docs/architecture/adr"),
)

BODY, CONTEXT, OUTCOME, WHY = 1_500, 800, 600, 300  # characters: who wants more opens the file

# The beginnings of the words that people use for a status, and what each means.
STATUSES = {
    "superse": "superseded", "superce": "superseded", "replace": "superseded",
    "deprec": "deprecated", "obsol": "deprecated", "retire": "deprecated",
    "reject": "rejected", "declin": "rejected", "withdraw": "rejected", "abandon": "rejected",
    "propos": "proposed", "draft": "proposed", "pending": "proposed", "open": "proposed", "wip": "proposed",
    "accept": "accepted", "approv": "accepted", "adopt": "accepted", "implement": "accepted", "decided": "accepted",
}  # fmt: skip
# The beginnings of headings below which each part of a decision record stands.
SECTIONS = {
    "options": ("considered", "options", "alternatives"),
    "decision": ("decision outcome", "decision", "resolution", "solution", "outcome"),
    "context": ("context", "problem", "background", "motivation", "issue"),
    "consequences": ("consequences", "positive cons", "negative cons", "implications"),
}

# Each purpose of a command: the words that name it, and the title of its memory.
PURPOSES = {
    "test": ("test tests check pytest spec", "Run the tests with {}"),
    "build": ("build compile dist", "Build with {}"),
    "run": ("run dev start serve server", "Run it with {}"),
    "lint": ("lint typecheck type-check types mypy clippy", "Lint with {}"),
    "format": ("format fmt", "Format with {}"),
    "setup": ("setup install bootstrap deps init", "Set up with {}"),
}
RUNNERS = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"), ("bun.lock", "bun"))


@dataclass(frozen=True)
class File:
    """A project file: its path from the root, its text, and when it was modified."""

    path: str
    text: str
    at: float


class Files(Source):
    """The files of a project; the same file is the same memory, changed with it."""

    def offer(self, project: Project, *, environ: Mapping[str, str]) -> Offer | None:
        del environ
        root = project.root
        named = [name for name in (*READMES, *INSTRUCTIONS) if _is_file(root, name)]
        decisions = len(_decision_paths(root))
        about = list(dict.fromkeys(os.path.basename(name) for name in named))
        about += [plural(decisions, "decision record")] if decisions else []
        if not about and not _commands(root):
            return None
        return Offer(source=self.name, about=", ".join(about) or "build files", count=len(named) + decisions)

    def read(self, project: Project, *, environ: Mapping[str, str], checkpoint: str) -> Iterator[Batch]:
        del environ, checkpoint  # few and small: all are read, and what did not change is left alone
        root = project.root
        instructions = _instructions(root)
        in_prompts = [file.text for file in instructions if not file.path.endswith("CONTRIBUTING.md")]  # for people
        memories = [
            *_about(project),
            *_command_memories(project, known=" ".join(in_prompts)),
            *(_instruction(file, project=project) for file in instructions),
        ]
        yield Batch(tuple(memories), done=len(memories), total=len(memories))
        decisions, links = _decisions(project)
        if decisions:
            count = len(memories) + len(decisions)
            yield Batch(decisions, links, done=count, total=count)


# ---- what the project is


def _about(project: Project) -> Iterator[Memory]:
    """Yield one memory of what this is, in the words of its package file or of its README."""
    readme = next(filter(None, (_file(project.root, name) for name in READMES)), None)
    package, described = _described(project.root)
    prose = _first_prose(readme.text) if readme else ""
    role = described or prose
    if not role:
        return
    file = package if package and described else readme
    assert file is not None
    yield _memory(
        "project",
        f"{project.name}: {_shorten(role, ROLE)}",
        file,
        uid=f"files:{project.key}:about",
        body=prose if prose != role else "",
        detail={"role": _shorten(role, 2 * ROLE)},
    )


def _memory(kind: str, title: str, file: File, **more: Any) -> Memory:
    """Return what a file says; the source that is shown is its name: readme, makefile, package-json."""
    source = re.sub(r"[^a-z0-9]+", "-", os.path.basename(file.path).lower().removesuffix(".md")).strip("-")
    usual: dict[str, Any] = {
        "files": (file.path,),
        "source": source,
        "trust": "imported",
        "created": file.at,
        "confirmed": file.at,
    }
    return Memory(kind=kind, title=title, **(usual | more))


def _described(root: str) -> tuple[File | None, str]:
    """Return the line with which a package describes itself."""
    for name, ways in (
        ("pyproject.toml", (("project", "description"), ("tool", "poetry", "description"))),
        ("package.json", (("description",),)),
        ("Cargo.toml", (("package", "description"),)),
    ):
        file = _file(root, name)
        parsed = _parsed(file) if file else {}
        for way in ways:
            found: Any = parsed
            for step in way:
                found = found.get(step) if isinstance(found, dict) else None
            if isinstance(found, str) and len(found.split()) > 2:
                return file, " ".join(found.split())
    return None, ""


def _first_prose(text: str) -> str:
    """Return the first paragraph of prose: no heading, badge, picture, table, list or code."""
    if text.startswith("---\n"):
        text = text.partition("\n---\n")[2]
    for begin, end in (("<!--", "-->"), ("\n```", "\n```"), ("\n~~~", "\n~~~")):
        text = without(text, begin, end)
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in paragraph.strip().splitlines()]
        lines = [
            line
            for line in lines
            if line and not re.match(r"(#|!\[|\[!\[|<|\||=+$|-+$|~+$|\.\. |:\w+:|\* |- |\d+\. )", line)
        ]
        prose = plain(" ".join(lines).removeprefix("> "))
        if len(prose.split()) > 5 and sum(char.isalpha() for char in prose) > len(prose) / 2:
            return prose
    return ""


def _shorten(text: str, most: int) -> str:
    """Return as many whole sentences as fit; a longer first one is cut at a word."""
    if len(text) <= most:
        return text
    ends = [found.end() for found in re.finditer(r"[.!?](?=\s)", text[:most])]
    return text[: ends[-1]] if ends and ends[-1] > most // 4 else f"{text[:most].rsplit(' ', 1)[0]} …"


# ---- how it is built and tested


def _command_memories(project: Project, *, known: str) -> Iterator[Memory]:
    """Yield one memory for each purpose; what an instruction file names (*known*) is in every prompt already."""
    for purpose, found in _commands(project.root).items():
        commands = [command for command, _ in found[:4]]
        yield _memory(
            "learning",
            PURPOSES[purpose][1].format(f"`{commands[0]}`"),
            found[0][1],
            uid=f"files:{project.key}:command:{purpose}",
            body=f"Also: {', '.join(f'`{other}`' for other in commands[1:])}" if commands[1:] else "",
            tags=("command", purpose),
            confidence=BACKGROUND if commands[0] in known else 0.8,
            detail={"category": "convention", "commands": commands},
        )


def _commands(root: str) -> dict[str, list[tuple[str, File]]]:
    """Return the commands that the project's files name, by purpose; those of its own build file first."""
    named: list[dict[str, tuple[str, File]]] = []  # by target, for each file
    for name, tool, pattern in (
        ("Makefile", "make", r"^([\w-]+)\s*:(?!=)"),
        ("justfile", "just", r"^@?([\w-]+)[^:=\n]*:(?!=)"),
    ):
        if file := _file(root, name):
            named.append({target: (f"{tool} {target}", file) for target in re.findall(pattern, file.text, re.M)})
    if file := _file(root, "package.json"):
        runner = next((tool for lock, tool in RUNNERS if _is_file(root, lock)), "npm")
        scripts = _parsed(file).get("scripts")
        scripts = scripts if isinstance(scripts, dict) else {}
        real = [name for name, text in scripts.items() if "no test specified" not in str(text)]
        run = {name: f"{runner} {name}" if name in ("test", "start") else f"{runner} run {name}" for name in real}
        named.append({name: (command, file) for name, command in run.items()})
    if (file := _file(root, "pyproject.toml")) and "[tool.pytest" in file.text:
        runner = next((f"{tool} run " for tool in ("uv", "poetry", "pdm") if _is_file(root, f"{tool}.lock")), "")
        named.append({"pytest": (f"{runner}pytest", file)})
    found = {
        purpose: [targets[word] for targets in named for word in words.split() if word in targets]
        for purpose, (words, _) in PURPOSES.items()
    }
    return {purpose: commands for purpose, commands in found.items() if commands}


# ---- instructions for agents


def _instructions(root: str) -> list[File]:
    """Return every instruction file once, also where one is a link to another or a copy of it."""
    rules = [f".cursor/rules/{name}" for name in sorted(_listed(os.path.join(root, ".cursor/rules")))]
    files = filter(None, (_file(root, name) for name in (*INSTRUCTIONS, *rules)))
    once: dict[str, File] = {}
    for file in files:
        if file.text.strip():
            once.setdefault(file.text.strip(), file)
    return list(once.values())


def _instruction(file: File, *, project: Project) -> Memory:
    headings = [plain(line).strip("# ") for line in re.findall(r"^#{1,3} +(.+)$", file.text, re.M)]
    about = ", ".join(headings[:8]) or _shorten(plain(file.text[:400]), 120)
    return _memory(
        "learning",
        _shorten(f"{file.path} tells of {about}", 200),
        file,
        uid=f"files:{project.key}:{file.path}",
        body=file.text.strip()[:INSTRUCTION_TEXT],
        tags=("instructions",),
        confidence=BACKGROUND,
        detail={"category": "convention"},
    )


# ---- what was decided


def _decisions(project: Project) -> tuple[tuple[Memory, ...], tuple[Link, ...]]:
    """Return the decision records; one that another replaces is superseded."""
    memories: dict[str, Memory] = {}
    replaced: dict[str, str] = {}  # name of a record -> by that of the newer one
    for file in filter(None, (_file(project.root, path) for path in _decision_paths(project.root))):
        if record := parse_adr(file.text):
            memories[file.path] = _decision(file, record, project=project)
            name = os.path.basename(file.path)
            replaced |= dict.fromkeys(record.supersedes, name)
            replaced |= {name: record.superseded_by[0]} if record.superseded_by else {}
    links = []
    for path, memory in memories.items():
        newer = next((by for old, by in replaced.items() if _is_called(path, old)), "")
        by = next((other for other in memories if newer and other != path and _is_called(other, newer)), "")
        if by:
            memories[path] = replace(memory, status="superseded", superseded_by=memories[by].uid)
            links.append(Link(source=memories[by].uid, relation="supersedes", target=memory.uid))
    return tuple(sorted(memories.values(), key=lambda memory: (-memory.created, memory.uid))), tuple(links)


def _is_called(path: str, name: str) -> bool:
    """Return whether a link's file name, or a number, means the record at *path*."""
    base = os.path.basename(path)
    return bool(re.match(rf"0*{int(name)}\D", base)) if name.isdigit() else base == name


def _decision(file: File, record: Decision, *, project: Project) -> Memory:
    at = _day(record.date) or file.at
    settled = record.status in ("", "accepted", "superseded", "deprecated")
    return _memory(
        "decision",
        record.title if settled else f"{record.status.capitalize()}: {record.title}",
        file,
        uid=f"files:{project.key}:{file.path}",
        body=record.body,
        tags=("adr", *((record.status,) if record.status else ())),
        source="adr",
        confidence=0.9 if settled else BACKGROUND,
        created=at,
        confirmed=max(at, file.at),
        status={"superseded": "superseded", "deprecated": "stale"}.get(record.status, "active"),
        detail={name: value for name, value in record.detail.items() if value},
    )


def _decision_paths(root: str) -> list[str]:
    found = [
        f"{folder}/{name}"
        for folder in DECISIONS
        for name in sorted(_listed(os.path.join(root, folder)))
        if name.lower().endswith((".md", ".markdown"))
        and not re.match(r"(readme|index|template|.*template)\b", name, re.IGNORECASE)
    ]
    return [path for path in found if _is_file(root, path)][:MOST_DECISIONS]


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _day(date: str) -> float:
    try:
        return datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp() if date else 0.0
    except ValueError:
        return 0.0


# ---- files


def _is_file(root: str, path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(os.path.join(root, path)).st_mode)
    except (OSError, ValueError):
        return False


def _file(root: str, path: str) -> File | None:
    """Read a file of the project; None where it leads out of it, is no file or cannot be read."""
    whole = os.path.join(root, path)
    if not _is_file(root, path) or not os.path.realpath(whole).startswith(os.path.join(os.path.realpath(root), "")):
        return None
    try:
        with open(whole, "rb") as file:
            raw = file.read(MOST_BYTES)
            at = os.fstat(file.fileno()).st_mtime
    except OSError:
        return None
    return File(path=path, text=raw.decode("utf-8-sig", "replace").replace("\r\n", "\n"), at=at)


def _parsed(file: File) -> dict[str, Any]:
    try:
        parsed = json.loads(file.text) if file.path.endswith(".json") else tomllib.loads(file.text)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


# ---- decision records


@dataclass(frozen=True)
class Decision:
    """A decision record; `supersedes` and `superseded_by` are names of files, or numbers."""

    title: str
    status: str  # accepted, proposed, rejected, deprecated, superseded; empty where there is none
    date: str  # YYYY-MM-DD, or empty
    body: str  # the decision itself
    detail: Mapping[str, Any]  # why, alternatives, context, outcome, date
    supersedes: tuple[str, ...]
    superseded_by: tuple[str, ...]


def parse_adr(text: str) -> Decision | None:
    """Parse a decision record of Nygard's form or of MADR's; None where *text* is none."""
    heading = re.search(r"^# +(.+)$", text, re.M)
    sections = _sections(text)
    # `Status: x`, `* Status: x`, `**Status:** x`, a line of front matter, or a section of that name.
    stated = re.search(r"^[#*\-\s]{0,9}status\b[:*\s]{0,9}(.{0,2000}?)(?=\n#|\Z)", text, re.IGNORECASE | re.M | re.S)
    status = stated[1] if stated else ""
    if heading is None or not (status or sections.get("decision")):
        return None
    date = re.search(r"\b((?:19|20)\d\d-\d\d-\d\d)\b", text[:2000])
    context = _shorten(plain(sections.get("context", "")), CONTEXT)
    body = _shorten(plain(sections.get("decision", "")), BODY) or context
    items = re.findall(r"^(?:[*\-+]|\d+[.)]) +(.+)$", sections.get("options", ""), re.M)
    detail = {
        "why": _reason(body, context),
        "alternatives": [_shorten(plain(item), 120) for item in items[:10]],
        "context": context,
        "outcome": _shorten(plain(sections.get("consequences", "")), OUTCOME),
        "date": date[1] if date else "",
    }
    return Decision(
        title=re.sub(r"^(ADR)?[- #\d]*\d[.:\-)–— ]+(?=\S)|^ADR[:\- ]+", "", plain(heading[1]).strip("# ")),
        status=_status_in(status),
        date=str(detail["date"]),
        body=body,
        detail=detail,
        supersedes=_targets(f"{status}\n{text[:2000]}", r"supersedes|supercedes|replaces"),
        superseded_by=_targets(status, r"(?:superseded|superceded|replaced)(?: by)?"),
    )


def _sections(text: str) -> dict[str, str]:
    """Return the text below each known heading."""
    parts = re.split(r"^#{2,3} +(.{1,200})$", text, flags=re.M)
    found: dict[str, str] = {}
    for heading, below in zip(parts[1::2], parts[2::2], strict=True):
        words = re.sub(r"^[\d. ]+", "", heading).strip(" :*_#").lower()
        name = next((name for name, words_of in SECTIONS.items() if words.startswith(words_of)), "")
        if name and not words.startswith("decision driver"):
            found[name] = f"{found[name]}\n\n{below.strip()}" if name in found else below.strip()
    return found


def _status_in(status: str) -> str:
    """Return what the first line says, unless a later one says that it was superseded."""
    words = re.findall(r"[a-z]+", re.sub(r"\([^()\n]*\)", " ", status.lower()))
    found = [STATUSES[start] for word in words for start in STATUSES if word.startswith(start) and word != "supersedes"]
    return "superseded" if "superseded" in found else found[0] if found else ""


def _reason(body: str, context: str) -> str:
    """Return what follows the first `because` of the decision; else the first sentence of its context."""
    because = re.search(r"\bbecause:?\s+(.+)", body, re.S | re.IGNORECASE)
    return _shorten(re.split(r"(?<=[.!?])\s", because[1] if because else context)[0].rstrip("."), WHY)


def _targets(text: str, relation: str) -> tuple[str, ...]:
    """Return the file names of links after this word, or a number without a link."""
    found: list[str] = []
    for each in re.finditer(rf"\b(?:{relation})\b:?([^\n]{{0,500}})", text, re.IGNORECASE):
        links = re.findall(r"\]\(([^)\s]+\.(?:md|markdown))[^)]*\)", each[1])
        numbers = re.findall(r"\b0*(\d{1,5})\b(?!-\d)", each[1])[:1]
        found += [os.path.basename(link) for link in links] or numbers
    return tuple(dict.fromkeys(found))


def plain(markdown: str) -> str:
    """Return the words of some markdown: no links, pictures, bold marks or comments. Every pattern is bounded."""
    text = without(markdown, "<!--", "-->")
    text = re.sub(r"!\[[^\]\n]{0,200}\]\([^)\n]{0,500}\)", "", text)
    text = re.sub(r"\[([^\]\n]{1,200})\](?:\([^)\n]{0,500}\)|\[[^\]\n]{0,100}\])", r"\1", text)
    text = re.sub(r"`([^`<\n]{1,200}) ?<[^>\n]{1,500}>`_{1,2}", r"\1", text)
    text = re.sub(r"</?[a-zA-Z][^>\n]{0,200}>", "", text)
    return re.sub(r"(\*\*|__)([^*_\n]{1,200})\1", r"\2", text).strip()


def without(text: str, begin: str, end: str) -> str:
    """Return *text* without what is between two signs; one that is not closed reaches to the end."""
    kept = []
    while begin in text:
        before, _, rest = text.partition(begin)
        kept.append(before)
        text = rest.partition(end)[2]
    return "".join((*kept, text))
