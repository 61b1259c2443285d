"""`foreword eval` as people run it: a real process, real stores, sets in files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).parents[2].parent / "shared"
DAY = 86_400
KEYS = {"ndcg_at_10", "r_at_5", "r_at_10", "r_at_20", "mrr", "silent"}

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a command with a home of its own, which it must not even make, and a folder for scratch."""
    (tmp_path / "scratch").mkdir()

    def ran(*words: object, code: int = 0, **environ: str) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run(
            [sys.executable, "-m", "foreword", "eval", *map(str, words)],
            check=False,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=100,
            env={
                "PATH": os.environ["PATH"],
                "LANG": "C.UTF-8",
                "TMPDIR": str(tmp_path / "scratch"),
                "FOREWORD_HOME": str(tmp_path / "home"),
                **environ,
            },
        )
        assert ended.returncode == code, ended.stderr
        assert not (tmp_path / "home").exists()
        assert list((tmp_path / "scratch").iterdir()) == []
        return ended

    return ran


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """A folder with two small sets."""
    for name, words in (("shop", ("cents", "invoices", "carts")), ("zoo", ("giraffes", "lions", "keepers"))):
        folder = tmp_path / "sets" / name
        folder.mkdir(parents=True)
        memories = [
            {"id": word, "kind": "decision", "at": DAY, "title": f"About {word} in the {name}", "files": [f"{word}.py"]}
            for word in words
        ]
        queries = [
            {"id": f"q-{word}", "at": 2 * DAY, "prompt": f"why {word}?", "files": [f"{word}.py"], "relevant": {word: 1}}
            for word in words
        ]
        for file, rows in (("memories", memories), ("queries", queries)):
            (folder / f"{file}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path / "sets"


def answered(ended: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert ended.stderr == ""  # no bar and no remark where nobody looks
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def test_retrieval_tells_each_set_and_the_mean_as_json(run: Run, sets: Path) -> None:
    answer = answered(run("retrieval", sets, "--json"))
    assert [row["name"] for row in answer["sets"]] == ["shop", "zoo"]
    for row in (*answer["sets"], answer["mean"]):
        assert row.keys() >= KEYS
        assert row["baseline"].keys() >= KEYS
        assert (row["ndcg_at_10"], row["silent"]) == (1.0, 0.0)
    assert answer["mean"]["ratio_ndcg_at_10"] == 1.0
    assert "silence" not in answer


def test_retrieval_prints_a_table(run: Run, sets: Path) -> None:
    said = run("retrieval", sets / "shop", sets / "zoo", "--silence")
    assert [line.split()[0] for line in said.stdout.splitlines()[:4]] == ["set", "shop", "zoo", "mean"]
    assert "1.000 / 1.000" in said.stdout
    assert "<- the product's threshold" in said.stdout


def test_silence_tells_the_whole_curve_as_json(run: Run, sets: Path) -> None:
    told = answered(run("retrieval", sets, "--silence", "--json"))["silence"]
    assert told["prompts"] == 6
    assert told["curve"][0]["silent"] == 1.0  # strangers share no word with these sets
    assert {"threshold", "silent", "r_at_10_kept"} <= told["curve"][0].keys()
    assert told["baseline"]["curve"]
    assert next(point for point in told["curve"] if point.get("product"))["threshold"] == told["threshold"]


def test_the_environment_may_set_what_is_measured(run: Run, sets: Path) -> None:
    answer = answered(run("retrieval", sets, "--json", FOREWORD_THRESHOLD_PROMPT="1.0"))
    assert answer["mean"]["silent"] == 1.0
    assert answer["mean"]["ndcg_at_10"] == 1.0  # what is found has no threshold


def test_context_tells_worth_and_cost_by_budget(run: Run, sets: Path) -> None:
    answer = answered(run("context", sets, "--budget", "250", "--family", "o200k", "--json"))
    assert (answer["budget"], answer["family"]) == (250, "o200k")
    assert [row["budget"] for row in answer["curve"]] == [100, 200, 250, 300, 500, 800, 1200, 2000]
    assert (answer["mean"]["relevant_share"], answer["mean"]["files_share"]) == (1.0, 1.0)
    assert answer["mean"]["baseline"].keys() == {"recency", "fts5"}
    said = run("context", sets)
    assert "At 500 tokens (claude-4.7)" in said.stdout


def test_tokens_tells_families_and_categories(run: Run, tmp_path: Path) -> None:
    samples = tmp_path / "samples.jsonl"
    samples.write_text(json.dumps({"category": "prose", "text": "word " * 100, "claude_3": 1000, "o200k": 1000}))
    answer = answered(run("tokens", samples, "--json"))
    assert [each["family"] for each in answer["families"]] == ["claude-3", "o200k"]
    assert answer["passes"] is False
    said = run("tokens", samples).stdout
    assert "prose" in said
    assert "FAILS" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("retrieval", "nowhere"), "nowhere is not a folder"),
        (("retrieval", "sets/shop", "--silence"), "two sets or more"),
        (("context", "sets", "--family", "morse"), "unknown tokenizer family"),
        (("tokens", "nowhere.jsonl"), "nowhere.jsonl is missing"),
    ],
)
def test_a_wrong_question_is_an_error_and_its_hint(run: Run, sets: Path, words: tuple[str, ...], says: str) -> None:
    told = run(*words, code=1).stderr.splitlines()
    assert len(told) == 2
    assert told[0].startswith("error: ")
    assert says in told[0]
    assert told[1].startswith("hint: ")


def test_a_broken_line_is_told_with_its_number(run: Run, sets: Path) -> None:
    with (sets / "zoo" / "queries.jsonl").open("a") as file:
        file.write('{"id": "q", "at": 1, "prompt": "x", "relevant": {"elephants": 1}}\n')
    told = run("retrieval", sets, code=1).stderr
    assert "queries.jsonl, line 4: `relevant` names 'elephants'" in told


@pytest.mark.skipif(not (SHARED / "bench").is_dir(), reason="the public benchmarks are not beside this repository")
def test_public_sets_are_measured_the_same_twice(run: Run) -> None:
    folders = [SHARED / "bench" / "devmem", SHARED / "bench" / "replay" / "litestream"]
    first, second = (answered(run("retrieval", *folders, "--json")) for _ in range(2))
    for answer in (first, second):
        for row in (*answer["sets"], *answer["groups"].values(), answer["mean"]):
            del row["seconds"]
    assert first == second
    devmem = first["sets"][0]
    assert (devmem["queries"], devmem["answerable"]) == (200, 175)
    assert devmem["auc_unanswerable"] > 0.5
