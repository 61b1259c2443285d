"""The pages a reader trusts say what the code says: weights, files, links, and what an agent sees."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bench.eval.datasets import read_sets
from foreword.cli.demo import load_story
from foreword.config import SETTINGS, load
from foreword.models import Context, Project, Trigger
from foreword.paths import Home
from foreword.recall import rank
from foreword.recall.hints import KnownFailure, hint_before
from foreword.recall.pipeline import REASONS, options_of, recall
from foreword.store import Store
from foreword.worker.routes import ROUTES
from tests.tables import table

ROOT = Path(__file__).resolve().parents[2]
RECALL = (ROOT / "docs" / "recall.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
BENCH = (ROOT / "bench" / "README.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "bench" / "README.md"])
DEFAULTS = {setting.name: setting.default for setting in SETTINGS}


def rows(page: str, *, width: int) -> Iterator[list[str]]:
    """The cells of every table row of so many columns."""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == width:
            yield cells


def table_after(page: str, *, after: str, width: int) -> list[list[str]]:
    """The rows of the first table after a text, without its heading."""
    lines = page[page.index(after) :].splitlines()[2:]
    end = next((at for at, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return list(rows("\n".join(lines[:end]), width=width))


def documented_constants() -> dict[str, tuple[float, ...]]:
    """Every `NAME` of recall/rank.py, or `module.NAME`, with a number beside it."""
    names = {}
    for name, number, _ in rows(RECALL, width=3):
        if re.fullmatch(r"`([a-z_]+\.)*[A-Z_]+`", name):
            names[name.strip("`")] = tuple(float(each) for each in number.split(","))
    return names


def test_the_page_on_recall_has_every_constant_as_it_is() -> None:
    documented = documented_constants()
    for name, numbers in documented.items():
        module, _, constant = name.rpartition(".")
        value = getattr(importlib.import_module(f"foreword.{module or 'recall.rank'}"), constant)
        assert numbers == (value if isinstance(value, tuple) else (value,)), name
    assert len(documented) > 70


def test_the_page_on_recall_misses_no_weight_of_rank() -> None:
    numbers = {
        name
        for name, held in vars(rank).items()
        if name.isupper()
        and all(isinstance(each, int | float) for each in (held if isinstance(held, tuple) else (held,)))
    }
    assert numbers - {"TYPE_CHECKING"} <= documented_constants().keys()


def test_the_page_on_recall_has_kinds_scopes_tasks_and_thresholds_as_they_are() -> None:
    kinds = table_after(RECALL, after="| kind | importance |", width=3)
    assert {kind: float(weight) for kind, weight, _ in kinds} == rank.IMPORTANCE
    assert {kind: float(days) for kind, _, days in kinds} == rank.HALF_LIFE
    scopes = table_after(RECALL, after="| scope at session start |", width=2)
    assert {scope: float(factor) for scope, factor in scopes} == rank.SCOPE_AT_START
    tasks = {
        task: {kind: float(factor) for kind, factor in (each.split() for each in factors.split(", "))}
        for task, factors in table_after(RECALL, after="| task | what is worth", width=2)
    }
    assert tasks == rank.TASKS
    for setting, default, _ in table_after(RECALL, after="| setting | default |", width=3):
        assert DEFAULTS[setting.strip("`")] == float(default), setting


def test_the_page_on_recall_explains_every_reason_for_silence() -> None:
    """But those that only say that something went wrong, or that belong to other triggers."""
    documented = {reason for reason, _ in table_after(RECALL, after="| it says | meaning |", width=2)}
    reasons = {
        key: text.format(of="prompts", so_far="", budget=500)
        for key, text in REASONS.items()
        if key not in ("given", "old", "failed")
    }
    assert documented == set(reasons.values())


@table("prompt", ["", "What did we decide about time zones?"])
def test_the_readme_shows_what_an_agent_sees(tmp_path: Path, prompt: str) -> None:
    """Ids are new every time."""
    project = Project(key="dir:rooms", name="rooms", root="")
    trigger = Trigger(name="prompt" if prompt else "session_start", project=project, prompt=prompt, languages=())
    options = options_of(load(Home(tmp_path), {}).settings, trigger.name, synonyms={})
    now = time.time()
    with closing(Store(tmp_path / "foreword.db", backups=tmp_path / "backups")) as store:
        store.memories.put(load_story(project, now=now))
        got = recall(store.search, trigger, options=options, now=now)
    assert isinstance(got, Context)
    assert prompt in README
    assert masked(got.text) in masked(README)


def test_the_readme_shows_a_hint_as_it_is_given() -> None:
    now = time.time()
    story = load_story(Project(key="dir:rooms", name="rooms", root=""), now=now)
    known = [KnownFailure("fai-2m7k1xq0", each.detail) for each in story if each.kind == "failure"]
    hint = hint_before("make unit FILE=tests/test_mail.py", known, now=now)
    assert hint is not None
    assert hint.text in README


def masked(text: str) -> str:
    return re.sub(r"\b([a-z]{3})-[0-9a-z]{8}\b", r"\1-id", text)


@table("page", PAGES)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor:
            assert anchor in {_anchor(line) for line in file.read_text(encoding="utf-8").splitlines()}, target


def _anchor(line: str) -> str:
    """The name by which a heading is linked, as GitHub makes it."""
    text = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()) if line.startswith("#") else ""
    return text.replace(" ", "-")


@pytest.mark.parametrize("page", ["AGENTS.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_files_that_a_map_of_the_code_names_exist(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.S)
    named = {each for each in re.findall(r"`([\w./]+\.(?:py|sql))`", text) if "NAME" not in each and each != "hook.py"}
    places = (ROOT, ROOT / "src" / "foreword", *(ROOT / "src" / "foreword" / name for name in ("extract", "recall")))
    assert len(named) > 10
    assert [each for each in named if not any((place / each).exists() for place in places)] == []


def test_the_page_on_architecture_follows_functions_that_exist() -> None:
    """Each list of functions is at most 15 long, and every name is in the file beside it."""
    package = ROOT / "src" / "foreword"
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    steps = re.findall(r"^(\d+)\. .*$", page, re.M)
    named = re.findall(r"((?:`[\w.]+`(?:, )?)+) in `([\w/]+\.py)`", page)
    assert max(map(int, steps)) <= 15
    assert len(named) > 35
    for names, file in named:
        text = (package / file).read_text(encoding="utf-8")
        for name in re.findall(r"([\w]+)`", names):
            assert re.search(rf"\b(def|class) {name}\b|^    {name}:", text, re.M), f"{name} in {file}"


def told_routes(page: str) -> set[str]:
    """`GET /api/pin` of every table row that begins with a route; one method holds for all that the row names."""
    routes = set()
    for first, *_ in rows(page, width=2):
        method = re.match(r"`([A-Z]+) /", first)
        for path in re.findall(r"`(?:[A-Z]+ )?(/[^`?{]*)", first) if method else ():
            routes.add(f"{method[1]} {path}")
    return routes


def test_the_page_on_the_api_tells_every_route_that_there_is_and_no_other() -> None:
    there = {f"{method} {path}" for path, methods in ROUTES.items() for method in methods}
    assert told_routes((ROOT / "docs" / "api.md").read_text(encoding="utf-8")) == there


def test_the_script_that_makes_a_set_makes_one(tmp_path: Path) -> None:
    script = next(block for block in re.findall(r"```python\n(.*?)```", BENCH, re.S) if "make_set.py" in block)
    (tmp_path / "make_set.py").write_text(script, encoding="utf-8")
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "-q")
    for number in range(4):
        (repository / f"part{number % 2}.py").write_text(f"{number}\n", encoding="utf-8")
        git(repository, "add", ".")
        git(repository, "commit", "-qm", f"Change {number}", at=1_700_000_000 + number * 60)
    made = subprocess.run(
        [sys.executable, str(tmp_path / "make_set.py"), str(repository), str(tmp_path / "set")],
        check=True,
        capture_output=True,
        text=True,
    )
    (dataset,) = read_sets([tmp_path / "set"])
    assert made.stdout == "4 memories, 2 questions\n"
    assert [question.prompt for question in dataset.questions] == ["Change 2", "Change 3"]
    assert all(question.at < 1_700_000_000 + 180 and len(question.relevant) == 1 for question in dataset.questions)


def git(folder: Path, *words: str, at: int = 0) -> None:
    who = {f"GIT_{role}_{what}": "ada@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    when = {f"GIT_{role}_DATE": f"{at} +0000" for role in ("AUTHOR", "COMMITTER")} if at else {}
    clean = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    clean |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "-C", str(folder), *words], check=True, env=clean | who | when)
