"""Project files -> what the project is, how it is built and tested, what was decided in its ADRs, what it tells agents.

A host reads its own instruction file (CLAUDE.md, AGENTS.md, …) into every prompt. Saying it again would cost tokens and
teach nothing, and a file is not the user's own word: none of it becomes a rule. It is kept with a confidence at which
nothing comes by itself, so that a search finds it, also from a host that does not read that file.
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

from foreword.importers import Batch, Found, Resolver
from foreword.importers.decisions import Decision, decision_of, plain, without
from foreword.models import Link, Memory, Project

MOST_BYTES = 256 * 1024  # of one file; a README of more is a book
MOST_DECISIONS = 500
INSTRUCTION_TEXT = 8_000  # characters of an instruction file that are looked for
ROLE = 240  # characters: what the project is, in one line
UNSAID = 0.4  # confidence below which nothing comes by itself, see rank.CERTAIN

READMES = ("README.md", "README.rst", "README.txt", "README", "readme.md", "Readme.md", "README.markdown")
INSTRUCTIONS = (
    *("CLAUDE.md", "AGENTS.md", "GEMINI.md", ".cursorrules", ".windsurfrules", ".github/copilot-instructions.md"),
    *(".claude/CLAUDE.md", "CONTRIBUTING.md", ".github/CONTRIBUTING.md", "docs/CONTRIBUTING.md"),
)
DECISIONS = (
    *("docs/adr", "docs/adrs", "doc/adr", "adr", "docs/decisions", "doc/decisions", "decisions", "docs/ADR"),
    *(
        "doc/architecture/decisions",
        "docs/architecture/decisions",
        "docs/architecture/adr",
        "docs/architecture-decisions",
    ),
)

# What a command is for, the words that say so, and the sentence that tells it.
PURPOSES = {
    "test": ("test tests check pytest spec", "Run the tests with {}"),
    "build": ("build compile dist", "Build with {}"),
    "run": ("run dev start serve server", "Run it with {}"),
    "lint": ("lint typecheck type-check types mypy clippy", "Lint with {}"),
    "format": ("format fmt", "Format with {}"),
    "setup": ("setup install bootstrap deps init", "Set up with {}"),
}
TOOLS = (
    "make just task npm pnpm yarn bun npx uv poetry pdm hatch pytest tox nox python python3 pip cargo go gradle"
    " ./gradlew mvn ./mvnw bundle rake mix dotnet cmake ctest docker docker-compose deno composer swift bazel"
)
RUNNERS = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"), ("bun.lock", "bun"))


@dataclass(frozen=True)
class File:
    """A project file: its path from the root, its text, and when it was written."""

    path: str
    text: str
    at: float


def source(_: str, options: Mapping[str, Any], _resolver: Resolver) -> Files:
    del options
    return Files()


class Files:
    """What a project's own files tell; the same file is the same memory, changed with it."""

    name = "files"

    def look(self, project: Project, *, environ: Mapping[str, str]) -> Found | None:
        del environ
        root = project.root
        named = [name for name in (*READMES, *INSTRUCTIONS) if _is_file(root, name)]
        decisions = len(_decision_paths(root))
        about = list(dict.fromkeys(os.path.basename(name) for name in named))
        about += [f"{decisions} decision record{'s' if decisions > 1 else ''}"] if decisions else []
        if not about and not _commands(root):
            return None
        return Found(source=self.name, about=", ".join(about) or "build files", count=len(named) + decisions)

    def read(self, project: Project, *, environ: Mapping[str, str], since_mark: str) -> Iterator[Batch]:
        del environ, since_mark  # few and small: all are read, and what did not change is left alone
        root = project.root
        instructions = _instructions(root)
        memories = [
            *_about(project),
            *_command_memories(project, said=" ".join(file.text for file in instructions if _is_read(file))),
            *(_instruction(file, project=project) for file in instructions),
        ]
        yield Batch(tuple(memories), done=len(memories), total=len(memories))
        decisions, links = _decisions(project)
        if decisions:
            count = len(memories) + len(decisions)
            yield Batch(decisions, links, done=count, total=count)


# ---- what the project is


def _about(project: Project) -> Iterator[Memory]:
    """One memory of what this is, in the words of its package file or of its README."""
    readme = next(filter(None, (_file(project.root, name) for name in READMES)), None)
    package, described = _described(project.root)
    prose = _first_prose(readme.text) if readme else ""
    role = described or prose
    if not role:
        return
    file = readme or package
    assert file is not None
    yield Memory(
        kind="project",
        title=f"{project.name}: {_short(role, ROLE)}",
        body=prose if prose != role else "",
        uid=f"files:{project.key}:about",
        files=(file.path,),
        source=_source(package.path if package and described else file.path),
        trust="imported",
        created=file.at,
        confirmed=file.at,
        detail={"role": _short(role, 2 * ROLE)},
    )


def _described(root: str) -> tuple[File | None, str]:
    """The line with which a package describes itself."""
    for name, ways in (
        ("pyproject.toml", (("project", "description"), ("tool", "poetry", "description"))),
        ("package.json", (("description",),)),
        ("Cargo.toml", (("package", "description"),)),
    ):
        file = _file(root, name)
        told = _parsed(file) if file else {}
        for way in ways:
            found: Any = told
            for step in way:
                found = found.get(step) if isinstance(found, dict) else None
            if isinstance(found, str) and len(found.split()) > 2:
                return file, " ".join(found.split())
    return None, ""


def _first_prose(text: str) -> str:
    """The first paragraph that says something: no heading, badge, picture, table, list or code."""
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
        said = plain(" ".join(lines).removeprefix("> "))
        if len(said.split()) > 5 and sum(char.isalpha() for char in said) > len(said) / 2:
            return said
    return ""


def _short(text: str, most: int) -> str:
    """As many whole sentences as fit; a longer first one is cut at a word."""
    if len(text) <= most:
        return text
    ends = [found.end() for found in re.finditer(r"[.!?](?=\s)", text[:most])]
    return text[: ends[-1]] if ends and ends[-1] > most // 4 else f"{text[:most].rsplit(' ', 1)[0]} …"


# ---- how it is built and tested


def _command_memories(project: Project, *, said: str) -> Iterator[Memory]:
    """One memory for each purpose; what an instruction file *said* already is in front of every prompt."""
    for purpose, found in _commands(project.root).items():
        command, file = found[0]
        others = [other for other, _ in found[1:4]]
        yield Memory(
            kind="learning",
            title=PURPOSES[purpose][1].format(f"`{command}`"),
            body=f"Also: {', '.join(f'`{other}`' for other in others)}" if others else "",
            uid=f"files:{project.key}:command:{purpose}",
            tags=("command", purpose),
            files=(file.path,),
            source=_source(file.path),
            trust="imported",
            confidence=UNSAID if command in said else 0.8,
            created=file.at,
            confirmed=file.at,
            detail={"category": "convention", "commands": [command, *others]},
        )


def _commands(root: str) -> dict[str, list[tuple[str, File]]]:
    """By purpose, the commands that the project's files name, those of its own build file first."""
    named = [*_make_targets(root), *_scripts(root), *_shell_lines(root), *_pytest(root)]
    found: dict[str, list[tuple[str, File]]] = {}
    for purpose, command, file in named:
        known = found.setdefault(purpose, [])
        if command not in [each for each, _ in known]:
            known.append((command, file))
    return {purpose: found[purpose] for purpose in PURPOSES if purpose in found}


def _purpose(word: str) -> str:
    return next((purpose for purpose, (words, _) in PURPOSES.items() if word in words.split()), "")


def _make_targets(root: str) -> Iterator[tuple[str, str, File]]:
    for name, tool, pattern in (
        ("Makefile", "make", r"^([\w-]+)\s*:(?!=)"),
        ("justfile", "just", r"^@?([\w-]+)[^:=\n]*:(?!=)"),
    ):
        file = _file(root, name)
        targets = re.findall(pattern, file.text, re.M) if file else []
        ordered = sorted(set(targets), key=_rank)
        yield from ((_purpose(target), f"{tool} {target}", file) for target in ordered if file and _purpose(target))


def _rank(target: str) -> int:
    """`test` tells more than `check`: the words of a purpose stand in their order."""
    words = PURPOSES.get(_purpose(target), ("", ""))[0].split()
    return words.index(target) if target in words else len(words)


def _scripts(root: str) -> Iterator[tuple[str, str, File]]:
    file = _file(root, "package.json")
    scripts = _parsed(file).get("scripts") if file else None
    if not file or not isinstance(scripts, dict):
        return
    runner = next((tool for lock, tool in RUNNERS if _is_file(root, lock)), "npm")
    for name in sorted((each for each in scripts if isinstance(each, str)), key=_rank):
        if _purpose(name) and "no test specified" not in str(scripts[name]):
            plain = f"{runner} {name}" if name in ("test", "start") else f"{runner} run {name}"
            yield _purpose(name), plain, file


def _shell_lines(root: str) -> Iterator[tuple[str, str, File]]:
    """Commands in the code blocks of README and CONTRIBUTING whose own words say what they are for."""
    for name in (*READMES, *(path for path in INSTRUCTIONS if path.endswith("CONTRIBUTING.md"))):
        if file := _file(root, name):
            for line in _in_blocks(file.text):
                command = re.sub(r"^[$>] +", "", line.partition(" #")[0].strip())
                words = command.split()[:5]
                if words and words[0] in TOOLS.split() and len(command) < 100 and (purpose := _said_purpose(words)):
                    yield purpose, command, file


def _said_purpose(words: list[str]) -> str:
    """What a command is for by its own words; to install the finished thing is not to set up a checkout."""
    purpose = next(filter(None, (_purpose(word.strip("\"'.:;,")) for word in words)), "")
    return "" if purpose == "setup" and words[0] not in ("make", "just", "task", "uv", "poetry") else purpose


def _in_blocks(text: str) -> Iterator[str]:
    """The lines of shell blocks."""
    fence, shell = "", False
    for line in text.splitlines():
        mark = line.strip()[:3]
        if fence:
            fence = "" if mark == fence else fence
            if fence and shell:
                yield line
        elif mark in ("```", "~~~"):
            fence, shell = mark, line.strip()[3:].strip().lower() in ("", "sh", "shell", "bash", "console", "zsh")


def _pytest(root: str) -> Iterator[tuple[str, str, File]]:
    file = _file(root, "pyproject.toml")
    tools = _parsed(file).get("tool") if file else None
    if file and isinstance(tools, dict) and "pytest" in tools:
        runner = next((f"{tool} run " for tool in ("uv", "poetry", "pdm") if _is_file(root, f"{tool}.lock")), "")
        yield "test", f"{runner}pytest", file


# ---- what it tells agents


def _instructions(root: str) -> list[File]:
    """Every instruction file once, also where one is a link to another or says the same."""
    files = filter(None, (_file(root, name) for name in INSTRUCTIONS))
    once: dict[str, File] = {}
    for file in files:
        if file.text.strip():
            once.setdefault(file.text.strip(), file)
    return list(once.values())


def _is_read(file: File) -> bool:
    """Whether some host puts it in front of every prompt; CONTRIBUTING is for people."""
    return not file.path.endswith("CONTRIBUTING.md")


def _instruction(file: File, *, project: Project) -> Memory:
    headings = [plain(line).strip("# ") for line in re.findall(r"^#{1,3} +(.+)$", file.text, re.M)]
    about = ", ".join(headings[:8]) or _short(plain(file.text[:400]), 120)
    return Memory(
        kind="learning",
        title=_short(f"{file.path} tells of {about}", 200),
        body=file.text.strip()[:INSTRUCTION_TEXT],
        uid=f"files:{project.key}:{file.path}",
        tags=("instructions",),
        files=(file.path,),
        source=_source(file.path),
        trust="imported",
        confidence=UNSAID,
        created=file.at,
        confirmed=file.at,
        detail={"category": "convention"},
    )


# ---- what was decided


def _decisions(project: Project) -> tuple[tuple[Memory, ...], tuple[Link, ...]]:
    """The decision records, those that another one replaces marked so."""
    files = [file for file in (_file(project.root, path) for path in _decision_paths(project.root)) if file]
    found = {file.path: (file, decision) for file in files if (decision := decision_of(file.text))}
    uids = {path: f"files:{project.key}:{path}" for path in found}
    replaced: dict[str, str] = {}  # path -> by the path of the newer one, where that is known
    for path, (_, decision) in found.items():
        for target in decision.supersedes:
            if older := _meant(target, near=path, known=uids):
                replaced.setdefault(older, path)
        for target in decision.superseded_by:
            if newer := _meant(target, near=path, known=uids):
                replaced[path] = newer
    memories = []
    for path, (file, decision) in found.items():
        memory = _decision(file, decision, project=project)
        if path in replaced and replaced[path] != path:
            memory = replace(memory, status="superseded", superseded_by=uids[replaced[path]])
        memories.append(memory)
    links = tuple(
        Link(source=uids[newer], relation="supersedes", target=uids[older])
        for older, newer in replaced.items()
        if older != newer
    )
    return tuple(sorted(memories, key=lambda memory: (-memory.created, memory.uid))), links


def _decision(file: File, told: Decision, *, project: Project) -> Memory:
    at = _day(told.date) or file.at
    settled = told.status in ("", "accepted", "superseded", "deprecated")
    return Memory(
        kind="decision",
        title=told.title if settled else f"{told.status.capitalize()}: {told.title}",
        body=told.body,
        uid=f"files:{project.key}:{file.path}",
        tags=("adr", *((told.status,) if told.status else ())),
        files=(file.path,),
        source="adr",
        trust="imported",
        confidence=0.9 if settled else UNSAID,
        created=at,
        confirmed=max(at, file.at),
        status={"superseded": "superseded", "deprecated": "stale"}.get(told.status, "active"),  # type: ignore[arg-type]
        detail={
            name: said
            for name, said in (
                ("why", told.why),
                ("alternatives", list(told.options)),
                ("context", told.context),
                ("outcome", told.consequences),
                ("date", told.date),
            )
            if said
        },
    )


def _decision_paths(root: str) -> list[str]:
    found: list[str] = []
    for folder in DECISIONS:
        try:
            names = sorted(os.listdir(os.path.join(root, folder)))
        except OSError:
            continue
        found += [
            f"{folder}/{name}"
            for name in names
            if name.lower().endswith((".md", ".markdown"))
            and not re.match(r"(readme|index|template|.*template)\b", name, re.IGNORECASE)
        ]
    return [path for path in found if _is_file(root, path)][:MOST_DECISIONS]


def _meant(target: str, *, near: str, known: Mapping[str, str]) -> str:
    """The record that a link or a number speaks of; nothing where that is not sure."""
    folder = os.path.dirname(near)
    if target.isdigit():
        of_number = [path for path in known if re.match(rf"0*{int(target)}\D", os.path.basename(path))]
        return of_number[0] if len(of_number) == 1 else ""
    path = os.path.normpath(os.path.join(folder, target.partition("#")[0]))
    return path if path in known else ""


def _day(date: str) -> float:
    try:
        return datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp() if date else 0.0
    except ValueError:
        return 0.0


# ---- files


def _source(path: str) -> str:
    """A plain word for a file, as it is shown beside what it says: readme, makefile, package-json."""
    return re.sub(r"[^a-z0-9]+", "-", os.path.basename(path).lower().removesuffix(".md")).strip("-")


def _is_file(root: str, path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(os.path.join(root, path)).st_mode)
    except (OSError, ValueError):
        return False


def _file(root: str, path: str) -> File | None:
    """A file of the project; one that leads out of it, is none or cannot be read, is passed over."""
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
        told = json.loads(file.text) if file.path.endswith(".json") else tomllib.loads(file.text)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
