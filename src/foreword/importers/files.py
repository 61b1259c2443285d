"""Read a project's own files: what it is, how it is built and tested, its decision records, its agent instructions.

An agent has its instruction file (CLAUDE.md, AGENTS.md, …) in every prompt. Repeating it would cost tokens and teach
nothing, and a file is not the user's own word: none of it becomes a rule. It is stored with a confidence at which
nothing is injected, so that a search finds it, also from an agent that does not read that file.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foreword.agents import dict_of
from foreword.encoding import plural, timestamp
from foreword.extract.text import blocks, cut, plain_line
from foreword.importers import Batch, Source
from foreword.models import Memory, Project

MOST_BYTES = 256 * 1024  # of one file; a README of more is a book
MOST_DECISIONS = 500
INSTRUCTION_TEXT = 8_000  # characters of an instruction file that are looked for
ROLE = 240  # characters: what the project is, in one line
BODY, CONTEXT, WHY = 1_500, 800, 300  # characters of a decision: who wants more opens the file
BACKGROUND = 0.4  # confidence at which nothing is injected, see rank.CERTAIN

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
TABLE: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
READMES, INSTRUCTIONS, PURPOSES = TABLE["readmes"], TABLE["instructions"], TABLE["purposes"]


@dataclass(frozen=True)
class File:
    """A project file: its path from the root, its text, and when it was modified."""

    path: str
    text: str
    at: float


class Files(Source):
    """The files of a project; the same file is the same memory, changed with it."""

    def offer(self, project: Project) -> str:
        root = project.root
        named = [os.path.basename(name) for name in (*READMES, *INSTRUCTIONS) if _file(root, name)]
        decisions = len(_decision_paths(root))
        about = [*dict.fromkeys(named), *([plural(decisions, "decision records")] if decisions else [])]
        return ", ".join(about) or ("build files" if _commands(root) else "")

    def read(self, project: Project) -> Iterator[Batch]:
        root = project.root
        instructions = _instructions(root)
        in_prompts = [file.text for file in instructions if not file.path.endswith("CONTRIBUTING.md")]  # for people
        decisions = [_decision(file, project) for path in _decision_paths(root) if (file := _file(root, path))]
        memories = [
            *_about(project),
            *_command_memories(project, instructions=" ".join(in_prompts)),
            *(_instruction(file, project) for file in instructions),
            *(each for each in decisions if each),
        ]
        yield Batch(memories, done=len(memories), total=len(memories))


def _memory(kind: str, title: str, file: File, **fields: Any) -> Memory:
    """Return what a file says; the source that is shown is its name: readme, makefile, package-json."""
    source = re.sub(r"[^a-z0-9]+", "-", os.path.basename(file.path).lower().removesuffix(".md")).strip("-")
    defaults: dict[str, Any] = {"files": (file.path,), "source": source, "created": file.at, "confirmed": file.at}
    return Memory(kind=kind, title=title, trust="imported", **(defaults | fields))


# ---- what the project is


def _about(project: Project) -> Iterator[Memory]:
    """Yield one memory of what this is, in the words of its package file or of its README."""
    file = next(filter(None, (_file(project.root, name) for name in READMES)), None)
    prose = role = _first_prose(file.text) if file else ""
    for name, *keys in TABLE["descriptions"]:
        package = _file(project.root, name)
        value: Any = _parsed(package) if package else {}
        for step in keys:
            value = dict_of(value).get(step)
        if isinstance(value, str) and len(value.split()) > 2:
            file, role = package, " ".join(value.split())
            break
    if file and role:
        yield _memory(
            "project",
            f"{project.name}: {cut(role, ROLE)}",
            file,
            uid=f"files:{project.key}:about",
            body=prose if prose != role else "",
            detail={"role": cut(role, 2 * ROLE)},
        )


def _first_prose(text: str) -> str:
    """Return the first paragraph of prose: no heading, badge, table, list or code."""
    front = re.match(r"---\n.*?\n---\n", text, re.S)
    for block in blocks(_COMMENT.sub("", text[front.end() :] if front else text)):
        is_prose = block.kind == "text" and not re.match(r"\.\. |:\w+:", block.text)  # no directive of a README.rst
        if is_prose and len(block.text.split()) > 5 and sum(map(str.isalpha, block.text)) > len(block.text) / 2:
            return block.text
    return ""


def _plain(markdown: str) -> str:
    return " ".join(block.text for block in blocks(_COMMENT.sub("", markdown)))


# ---- how it is built and tested


def _command_memories(project: Project, *, instructions: str) -> Iterator[Memory]:
    """Yield one memory for each purpose; what an instruction file names (*instructions*) is in every prompt already."""
    for purpose, commands in _commands(project.root).items():
        texts = [command for command, _ in commands[:4]]
        yield _memory(
            "learning",
            PURPOSES[purpose][1].format(f"`{texts[0]}`"),
            commands[0][1],
            uid=f"files:{project.key}:command:{purpose}",
            body=f"Also: {', '.join(f'`{other}`' for other in texts[1:])}" if texts[1:] else "",
            tags=("command", purpose),
            confidence=BACKGROUND if texts[0] in instructions else 0.8,
            detail={"category": "convention", "commands": texts},
        )


def _commands(root: str) -> dict[str, list[tuple[str, File]]]:
    """Return the commands that the project's files name, by purpose; those of its own build file first."""
    by_target: list[dict[str, tuple[str, File]]] = []  # by target, for each file
    for name, (tool, pattern) in TABLE["targets"].items():
        if file := _file(root, name):
            by_target.append({target: (f"{tool} {target}", file) for target in re.findall(pattern, file.text, re.M)})
    if file := _file(root, "package.json"):
        runner = next((tool for lock, tool in TABLE["runners"].items() if _file(root, lock)), "npm")
        scripts = dict_of(_parsed(file).get("scripts"))
        names = [name for name, script in scripts.items() if "no test specified" not in str(script)]
        texts = {name: f"{runner} {name}" if name in ("test", "start") else f"{runner} run {name}" for name in names}
        by_target.append({name: (command, file) for name, command in texts.items()})
    if (file := _file(root, "pyproject.toml")) and "[tool.pytest" in file.text:
        runner = next((f"{tool} run " for tool in ("uv", "poetry", "pdm") if _file(root, f"{tool}.lock")), "")
        by_target.append({"pytest": (f"{runner}pytest", file)})
    by_purpose = {
        purpose: [targets[word] for targets in by_target for word in words.split() if word in targets]
        for purpose, (words, _) in PURPOSES.items()
    }
    return {purpose: commands for purpose, commands in by_purpose.items() if commands}


# ---- instructions for agents


def _instructions(root: str) -> list[File]:
    """Return every instruction file once, also where one is a link to another or a copy of it."""
    rules = [f".cursor/rules/{name}" for name in _listed(root, ".cursor/rules")]
    files = [file for name in (*INSTRUCTIONS, *rules) if (file := _file(root, name)) and file.text.strip()]
    return list({file.text.strip(): file for file in reversed(files)}.values())[::-1]


def _instruction(file: File, project: Project) -> Memory:
    headings = [plain_line(line).strip("# ") for line in re.findall(r"^#{1,3} +(.+)$", file.text, re.M)]
    about = ", ".join(headings[:8]) or cut(_plain(file.text[:400]), 120)
    return _memory(
        "learning",
        cut(f"{file.path} tells of {about}", 200),
        file,
        uid=f"files:{project.key}:{file.path}",
        body=file.text.strip()[:INSTRUCTION_TEXT],
        tags=("instructions",),
        confidence=BACKGROUND,
        detail={"category": "convention"},
    )


# ---- what was decided


def _decision_paths(root: str) -> list[str]:
    paths = [
        f"{folder}/{name}"
        for folder in TABLE["decisions"]
        for name in _listed(root, folder)
        if re.search(r"\.(md|markdown)$", name, re.I) and not re.match(r"(readme|index|.*template)\b", name, re.I)
    ]
    return paths[:MOST_DECISIONS]


def _decision(file: File, project: Project) -> Memory | None:
    """Return a decision record of Nygard's form or of MADR's as a memory; None where the file is none.

    One that no longer holds is stale; what is only proposed or was rejected says so, and stays in the background.
    """
    text = file.text
    heading = re.search(r"^# +(.+)$", text, re.M)
    sections = _sections(text)
    # `Status: x`, `* Status: x`, `**Status:** x`, a line of front matter, or a section of that name.
    stated = re.search(r"^[#*\-\s]{0,9}status\b[:*\s]{0,9}(.{0,2000}?)(?=\n#|\Z)", text, re.I | re.M | re.S)
    if heading is None or not (stated or sections.get("decision")):
        return None
    text_of_status = stated[1] if stated else ""
    status = next(
        (name for name, words in TABLE["statuses"].items() if re.search(rf"\b({words})\b", text_of_status, re.I)), ""
    )
    date = re.search(r"\b((?:19|20)\d\d-\d\d-\d\d)\b", text[:2000])
    at = timestamp(date[1], default=file.at) if date else file.at
    context = cut(_plain(sections.get("context", "")), CONTEXT)
    body = cut(_plain(sections.get("decision", "")), BODY) or context
    because = re.search(r"\bbecause:?\s+(.+)", body, re.S | re.I)
    why = re.split(r"(?<=[.!?])\s", because[1] if because else context)[0].rstrip(".")
    options = re.findall(r"^(?:[*\-+]|\d+[.)]) +(.+)$", sections.get("options", ""), re.M)
    detail = {"why": cut(why, WHY), "alternatives": [cut(_plain(item), 120) for item in options[:10]]}
    title = re.sub(r"^(ADR)?[- #\d]*\d[.:\-)–— ]+(?=\S)|^ADR[:\- ]+", "", plain_line(heading[1]).strip("# "))
    is_open = status in ("proposed", "rejected")
    return _memory(
        "decision",
        f"{status.capitalize()}: {title}" if is_open else title,
        file,
        uid=f"files:{project.key}:{file.path}",
        body=body,
        tags=("adr", *((status,) if status else ())),
        source="adr",
        confidence=BACKGROUND if is_open else 0.9,
        created=at,
        confirmed=max(at, file.at),
        status="stale" if status == "stale" else "active",
        detail={name: value for name, value in detail.items() if value},
    )


def _sections(text: str) -> dict[str, str]:
    """Return the text below each known heading."""
    parts = re.split(r"^#{2,3} +(.{1,200})$", text, flags=re.M)
    sections: dict[str, str] = {}
    for heading, below in zip(parts[1::2], parts[2::2], strict=True):
        words = re.sub(r"^[\d. ]+", "", heading).strip(" :*_#").lower()
        name = next((name for name, words_of in TABLE["sections"].items() if words.startswith(tuple(words_of))), "")
        if name and not words.startswith("decision driver"):
            sections[name] = f"{sections.get(name, '')}\n\n{below}".strip()
    return sections


# ---- files and their texts


def _listed(root: str, folder: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(root, folder)))
    except OSError:
        return []


def _file(root: str, path: str) -> File | None:
    """Read a file of the project; None where it leads out of it, is no file or cannot be read."""
    whole = Path(root, path)
    try:
        if not stat.S_ISREG(whole.stat().st_mode) or not whole.resolve().is_relative_to(Path(root).resolve()):
            return None
        with whole.open("rb") as file:
            text = file.read(MOST_BYTES).decode("utf-8-sig", "replace").replace("\r\n", "\n")
            return File(path=path, text=text, at=os.fstat(file.fileno()).st_mtime)
    except (OSError, ValueError):
        return None


def _parsed(file: File) -> Mapping[str, Any]:
    if file.path.endswith(".json"):
        return dict_of(file.text.strip())
    try:
        return tomllib.loads(file.text)
    except (ValueError, RecursionError):
        return {}
