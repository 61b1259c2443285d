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
    *("docs/adr", "docs/adrs", "doc/adr", "adr", "docs/decisions", "doc/decisions", "decisions", "docs/ADR"),
    *(
        "doc/architecture/decisions",
        "docs/architecture/decisions",
        "docs/architecture/adr",
        "docs/architecture-decisions",
    ),
)

BODY, CONTEXT, OUTCOME, WHY = 1_500, 800, 600, 300  # characters: who wants more opens the file

STATUSES = {
    **{"accepted": "accepted", "approved": "accepted", "adopted": "accepted", "implemented": "accepted"},
    **{"decided": "accepted", "active": "accepted", "done": "accepted", "amended": "accepted"},
    **{"proposed": "proposed", "draft": "proposed", "pending": "proposed", "open": "proposed", "wip": "proposed"},
    **{"rejected": "rejected", "declined": "rejected", "withdrawn": "rejected", "abandoned": "rejected"},
    **{"deprecated": "deprecated", "obsolete": "deprecated", "retired": "deprecated"},
    **{"superseded": "superseded", "superceded": "superseded", "replaced": "superseded"},
}
SECTIONS = {
    "status": r"status",
    "context": r"context( and problem statement)?|problem( statement)?|background|motivation|issue",
    "drivers": r"decision drivers?",
    "options": r"considered options|options( considered)?|alternatives( considered)?|considered alternatives",
    "decision": r"decision( outcome)?|decision|resolution|solution|outcome",
    "consequences": r"(positive |negative )?consequences|implications|results?",
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
        memories = [
            *_about(project),
            *_command_memories(project, known=" ".join(file.text for file in instructions if _is_in_prompt(file))),
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
    file = readme or package
    assert file is not None
    yield Memory(
        kind="project",
        title=f"{project.name}: {_shorten(role, ROLE)}",
        body=prose if prose != role else "",
        uid=f"files:{project.key}:about",
        files=(file.path,),
        source=_source_name(package.path if package and described else file.path),
        trust="imported",
        created=file.at,
        confirmed=file.at,
        detail={"role": _shorten(role, 2 * ROLE)},
    )


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
        command, file = found[0]
        others = [other for other, _ in found[1:4]]
        yield Memory(
            kind="learning",
            title=PURPOSES[purpose][1].format(f"`{command}`"),
            body=f"Also: {', '.join(f'`{other}`' for other in others)}" if others else "",
            uid=f"files:{project.key}:command:{purpose}",
            tags=("command", purpose),
            files=(file.path,),
            source=_source_name(file.path),
            trust="imported",
            confidence=BACKGROUND if command in known else 0.8,
            created=file.at,
            confirmed=file.at,
            detail={"category": "convention", "commands": [command, *others]},
        )


def _commands(root: str) -> dict[str, list[tuple[str, File]]]:
    """Return the commands that the project's files name, by purpose; those of its own build file first."""
    named = [*_make_targets(root), *_scripts(root), *_pytest(root)]
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
    """Return the place of a target among the words of its purpose: `test` before `check`."""
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


def _pytest(root: str) -> Iterator[tuple[str, str, File]]:
    file = _file(root, "pyproject.toml")
    tools = _parsed(file).get("tool") if file else None
    if file and isinstance(tools, dict) and "pytest" in tools:
        runner = next((f"{tool} run " for tool in ("uv", "poetry", "pdm") if _is_file(root, f"{tool}.lock")), "")
        yield "test", f"{runner}pytest", file


# ---- instructions for agents


def _instructions(root: str) -> list[File]:
    """Return every instruction file once, also where one is a link to another or a copy of it."""
    files = filter(None, (_file(root, name) for name in INSTRUCTIONS))
    once: dict[str, File] = {}
    for file in files:
        if file.text.strip():
            once.setdefault(file.text.strip(), file)
    return list(once.values())


def _is_in_prompt(file: File) -> bool:
    """Return whether some agent has it in every prompt; CONTRIBUTING is for people."""
    return not file.path.endswith("CONTRIBUTING.md")


def _instruction(file: File, *, project: Project) -> Memory:
    headings = [plain(line).strip("# ") for line in re.findall(r"^#{1,3} +(.+)$", file.text, re.M)]
    about = ", ".join(headings[:8]) or _shorten(plain(file.text[:400]), 120)
    return Memory(
        kind="learning",
        title=_shorten(f"{file.path} tells of {about}", 200),
        body=file.text.strip()[:INSTRUCTION_TEXT],
        uid=f"files:{project.key}:{file.path}",
        tags=("instructions",),
        files=(file.path,),
        source=_source_name(file.path),
        trust="imported",
        confidence=BACKGROUND,
        created=file.at,
        confirmed=file.at,
        detail={"category": "convention"},
    )


# ---- what was decided


def _decisions(project: Project) -> tuple[tuple[Memory, ...], tuple[Link, ...]]:
    """Return the decision records; one that another replaces is superseded."""
    files = [file for file in (_file(project.root, path) for path in _decision_paths(project.root)) if file]
    found = {file.path: (file, decision) for file in files if (decision := parse_adr(file.text))}
    uids = {path: f"files:{project.key}:{path}" for path in found}
    replaced: dict[str, str] = {}  # path -> by the path of the newer one, where that is known
    for path, (_, decision) in found.items():
        for target in decision.supersedes:
            if older := _resolve_link(target, near=path, known=uids):
                replaced.setdefault(older, path)
        for target in decision.superseded_by:
            if newer := _resolve_link(target, near=path, known=uids):
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


def _decision(file: File, record: Decision, *, project: Project) -> Memory:
    at = _day(record.date) or file.at
    settled = record.status in ("", "accepted", "superseded", "deprecated")
    return Memory(
        kind="decision",
        title=record.title if settled else f"{record.status.capitalize()}: {record.title}",
        body=record.body,
        uid=f"files:{project.key}:{file.path}",
        tags=("adr", *((record.status,) if record.status else ())),
        files=(file.path,),
        source="adr",
        trust="imported",
        confidence=0.9 if settled else BACKGROUND,
        created=at,
        confirmed=max(at, file.at),
        status={"superseded": "superseded", "deprecated": "stale"}.get(record.status, "active"),  # type: ignore[arg-type]
        detail={
            name: value
            for name, value in (
                ("why", record.why),
                ("alternatives", list(record.options)),
                ("context", record.context),
                ("outcome", record.consequences),
                ("date", record.date),
            )
            if value
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


def _resolve_link(target: str, *, near: str, known: Mapping[str, str]) -> str:
    """Return the path of the record that a link or a number means; empty where that is not sure."""
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


def _source_name(path: str) -> str:
    """Return the source shown beside a memory: readme, makefile, package-json."""
    return re.sub(r"[^a-z0-9]+", "-", os.path.basename(path).lower().removesuffix(".md")).strip("-")


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
    """A decision record; targets of links are paths or numbers of other records."""

    title: str
    status: str  # accepted, proposed, rejected, deprecated, superseded; empty where there is none
    date: str  # YYYY-MM-DD, or empty
    context: str
    body: str  # the decision itself
    why: str
    options: tuple[str, ...]
    consequences: str
    supersedes: tuple[str, ...]
    superseded_by: tuple[str, ...]


def parse_adr(text: str) -> Decision | None:
    """Parse a decision record of Nygard's form or of MADR's; None where *text* is none."""
    front, text = _front_matter(text)
    heading = re.search(r"^# +(.+)$", text, re.M) or re.search(r"^(\S.{0,200})\n={3,}$", text, re.M)
    if heading is None:
        return None
    sections = _sections(text)
    status = front.get("status") or _field_in(text, "status") or sections.get("status", "")
    decided = sections.get("decision", "")
    if not status and not decided:
        return None
    body = _cut(plain(decided) or plain(sections.get("context", "")), BODY)
    context = _cut(plain(sections.get("context", "")), CONTEXT)
    return Decision(
        title=_adr_title(plain(heading[1]).strip("# ")),
        status=_status_in(status),
        date=_date_in(front.get("date") or _field_in(text, "date") or status),
        context=context,
        body=body,
        why=_reason(body, context),
        options=_options(sections.get("options", "")),
        consequences=_cut(plain(sections.get("consequences", "")), OUTCOME),
        supersedes=_targets(rf"{status}\n{text[:2000]}", r"supersedes|supercedes|replaces"),
        superseded_by=_targets(status, r"(?:superseded|superceded|replaced)(?: by)?"),
    )


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    """Return the `name: value` lines between two rulers at the top, and the rest."""
    found = re.match(r"---\n(.{0,4000}?)\n---\n", text, re.S)
    if not found:
        return {}, text
    lines = (line.partition(":") for line in found[1].splitlines())
    fields = {name.strip().lower(): value.strip().strip("\"'") for name, _, value in lines if value.strip()}
    return fields, text[found.end() :]


def _sections(text: str) -> dict[str, str]:
    """Return the text below each known heading, deeper headings included; of two with one name, both."""
    parts: dict[str, list[str]] = {}
    matches = list(re.finditer(r"^(#{2,4}) +(.+)$|^(\S.{2,60})\n-{3,}$", text, re.M))
    for number, match in enumerate(matches):
        words = _heading(match)
        name = next((name for name, form in SECTIONS.items() if re.fullmatch(form, words, re.IGNORECASE)), "")
        if not name:
            continue
        level = len(match[1] or "##")
        end = next((other.start() for other in matches[number + 1 :] if _ends_section(other, level)), len(text))
        parts.setdefault(name, []).append(text[match.end() : end].strip())
    return {name: "\n\n".join(texts) for name, texts in parts.items()}


def _ends_section(heading: re.Match[str], level: int) -> bool:
    """Return whether a section ends here: at a heading that is no deeper, or that is a known one."""
    known = any(re.fullmatch(form, _heading(heading), re.IGNORECASE) for form in SECTIONS.values())
    return len(heading[1] or "##") <= level or known


def _heading(heading: re.Match[str]) -> str:
    return re.sub(r"^[\d.]+ *", "", (heading[2] or heading[3])[:80]).strip(" :*_#")


def _field_in(text: str, name: str) -> str:
    """Return the value of `Status: accepted`, `* Status: accepted` or `**Status**: accepted` near the top."""
    found = re.search(rf"^[*\-\s]*\**{name}\**\s*:\**\s*(.+)$", text[:2000], re.IGNORECASE | re.MULTILINE)
    return found[1].strip() if found else ""


def _status_in(status: str) -> str:
    """Return the last status: a record is accepted first and superseded later."""
    words = re.findall(r"[a-z]+", re.sub(r"\([^()]*\)", " ", status.lower()))
    found = [STATUSES[word] for word in words if word in STATUSES]
    return "superseded" if "superseded" in found else found[-1] if found else ""


def _date_in(status: str) -> str:
    found = re.search(r"\b((?:19|20)\d\d)[-/.](\d{1,2})[-/.](\d{1,2})\b", status)
    return f"{found[1]}-{int(found[2]):02}-{int(found[3]):02}" if found else ""


def _adr_title(heading: str) -> str:
    return (
        re.sub(r"^(ADR[- ]?)?[#\d]*\d[.:\-)–— ]+\s*(?=\S)|^ADR[:\- ]+", "", heading, flags=re.IGNORECASE).strip()
        or heading
    )


def _reason(body: str, context: str) -> str:
    """Return what follows the first `because` of the decision; else the first sentence of its context."""
    if found := re.search(r"\bbecause:?\s+(.+)", body, re.S | re.IGNORECASE):
        return _cut(re.split(r"(?<=[.!?])\s", found[1])[0].rstrip("."), WHY)
    first = re.split(r"(?<=[.!?])\s", context)[0].rstrip(".")
    ordinary = first[:1].isupper() and (first[1:2].islower() or first[1:2] == " ") and not first.startswith("I ")
    return _cut(first[:1].lower() + first[1:] if ordinary else first, WHY)


def _options(section: str) -> tuple[str, ...]:
    items = re.findall(r"^(?:[*\-+]|\d+[.)]) +(.+)$|^#{3,5} +(.+)$", section, re.M)
    return tuple(_cut(plain(one or other), 120) for one, other in items)[:10]


def _targets(text: str, relation: str) -> tuple[str, ...]:
    """Return the targets of links after this word, or a number without a link."""
    found = []
    for each in re.finditer(rf"\b(?:{relation})\b:?([^\n]{{0,500}})", text, re.IGNORECASE):
        links = re.findall(r"\]\(([^)\s]+\.(?:md|markdown))[^)]*\)", each[1])
        found += links or [
            str(int(number)) for number in re.findall(r"(?:ADR[- ]?|#)?\b0*(\d{1,5})\b(?!-\d)", each[1])[:1]
        ]
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


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most].rsplit(' ', 1)[0]} …"
