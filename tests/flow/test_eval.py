"""`make eval` as developers run it: a real process, real stores, sets in files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tables import table

ROOT = Path(__file__).resolve().parents[2]
DAY = 86_400

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the evaluation in a copy that has no sets beside it; neither a home nor scratch files may be left."""
    shutil.copytree(ROOT / "bench" / "eval", tmp_path / "clone" / "bench" / "eval")
    (tmp_path / "scratch").mkdir()

    def ran(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run(
            [sys.executable, "-m", "bench.eval", *map(str, words)],
            check=False,
            cwd=tmp_path / "clone",
            capture_output=True,
            text=True,
            timeout=100,
            env={
                "PATH": os.environ["PATH"],
                "LANG": "C.UTF-8",
                "TMPDIR": str(tmp_path / "scratch"),
                "FOREWORD_HOME": str(tmp_path / "home"),
            },
        )
        assert ended.returncode == code, ended.stderr
        assert not (tmp_path / "home").exists()
        assert list((tmp_path / "scratch").iterdir()) == []
        return ended

    return ran


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """Write two small sets; the second holds a conversation."""
    for name, words, place, body in (
        ("shop", ("cents", "invoices", "carts"), "checkout", ""),
        ("zoo", ("giraffes", "lions", "keepers"), "pasture", "user: Always feed the {} first.\nassistant: Done."),
    ):
        folder = tmp_path / "sets" / name
        folder.mkdir(parents=True)
        memories = [
            {
                "id": word,
                "kind": "decision",
                "at": DAY,
                "title": f"{word} belong to the {place}, because the audit counts them there",
                "body": body.format(word),
                "files": [f"{word}.py"],
            }
            for word in words
        ]
        queries = [
            {
                "id": f"q-{word}",
                "at": 2 * DAY,
                "prompt": f"what did we decide about {word} at {place}?",
                "files": [f"{word}.py"],
                "relevant": {word: 1},
            }
            for word in words
        ]
        for file, rows in (("memories", memories), ("queries", queries)):
            (folder / f"{file}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path / "sets"


def test_all_measures_are_printed_and_kept_and_two_runs_agree(run: Run, sets: Path, tmp_path: Path) -> None:
    samples = tmp_path / "samples.jsonl"
    samples.write_text(json.dumps({"category": "prose", "text": "word " * 100, "claude_3": 1000}))
    first = run(sets, "--samples", samples, "--json", tmp_path / "first.json", "--show")
    assert first.stderr == ""
    for heading in ("Retrieval: ", "Silence: 6 prompts", "Context of 500 tokens (claude-4.7)", "Extract: ", "Tokens: "):
        assert f"\n{heading}" in first.stdout
    result = json.loads((tmp_path / "first.json").read_text())
    assert [row["name"] for row in result["retrieval"]["sets"]] == ["shop", "zoo"]
    assert (result["retrieval"]["mean"]["ndcg_at_10"], result["retrieval"]["mean"]["silent"]) == (1.0, 0.0)
    assert result["retrieval"]["silence"]["curve"][0]["silent"] == 1.0  # strangers share no word with these sets
    assert result["context"]["mean"]["relevant_share"] == 1.0  # prompts ask about the past, which is answered
    assert [(row["name"], row["extracted"]["answered"]) for row in result["extract"]["sets"]] == [("zoo", 1.0)]
    assert "Always feed the lions first" in first.stdout  # --show
    assert "FAILS" in first.stdout  # the samples claim ten tokens a word
    assert result["tokens"]["passes"] is False
    second = run(sets, "--samples", samples, "--compare", tmp_path / "first.json")
    assert "0 differ; 0 are in one run only" in second.stdout.splitlines()[-1]


def test_what_cannot_be_measured_is_said(run: Run, sets: Path) -> None:
    skipped = run().stdout.splitlines()
    assert [line.split(" (no ")[0] for line in skipped] == ["skipped: retrieval, context, extract", "skipped: tokens"]
    alone = run(sets / "shop", "--only", "retrieval", "--only", "extract").stdout
    assert "skipped: silence (needs two sets" in alone
    assert "skipped: extract (no set holds conversations" in alone
    error, hint = run("nowhere", code=1).stderr.splitlines()
    assert error.startswith("error: ")
    assert error.endswith("nowhere is not a folder")
    assert hint.startswith("hint: ")


@table(
    ("verb", "arguments", "command"),
    [
        ("eval", "DIR --only context", ".venv/bin/python -m bench.eval DIR --only context"),
        ("eval-sessions", "--blocks 20", ".venv/bin/python -m bench.eval.replay --blocks 20"),
    ],
)
def test_make_passes_its_arguments_on(verb: str, arguments: str, command: str) -> None:
    printed = subprocess.run(
        ["make", "-n", verb, f"ARGS={arguments}"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert command in printed.stdout.splitlines()
