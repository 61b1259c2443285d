"""The benchmarks run, and `make bench` finds its figures in what they print."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.table import HERE, SCRIPTS

TINY = {
    "hook": "--runs 1 --large 1000",
    "capture": "--events 400 --hooks 2 --mb 1",
    "store": "--sizes 1000 --queries 5 --keep 500 --events 64",
    "recall": "--sizes 1000 --prompts 5",
    "redact": "--mb 0.02 --runs 1",
    "transcripts": "--mb 1 --runs 1",
}  # `day_one` and `size` read this repository's history and install it


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("script", TINY)
def test_a_benchmark_runs_and_has_its_rows(script: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = [sys.executable, HERE / f"{script}.py", *TINY[script].split(), "--json", out]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    rows = list(SCRIPTS[script][0](json.loads(out.read_text())))
    assert rows
    assert all(row.value >= 0 for row in rows)
