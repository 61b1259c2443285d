"""The package's types and layers; tests among others, so that no core waits for them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.first
@pytest.mark.timeout(600)  # mypy without a cache, beside everything else
@pytest.mark.parametrize("tool", ["mypy", "lint-imports"])
def test_types_and_layers_hold(tool: str) -> None:
    ended = subprocess.run(
        [Path(sys.executable).with_name(tool)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"\n{ended.stdout}{ended.stderr}"


def test_no_expression_repeats_a_group_possessively() -> None:
    """Before Python 3.11.5, which Debian 12 has, `(...)*+` matches wrongly (gh-106052); `(?>(...)*)` is right."""
    repeated = re.compile(r"\)(?:[*+?]|\{\{?[0-9,]+\}\}?)\+")
    found = [path for path in (ROOT / "src").rglob("*.py") if repeated.search(path.read_text(encoding="utf-8"))]
    assert found == []
