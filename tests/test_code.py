"""The package's types and layers; tests among others, so that no core waits for them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
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


SAYS_NOTHING = frozenset("told given asked said heard stands going looks aside anew".split())  # noqa: SIM905


def names_in(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno
            case ast.alias(name=name, asname=other):
                yield (other or name).rpartition(".")[2], node.lineno


def without_hypothesis(tree: ast.Module) -> ast.Module:
    """Remove `given` of Hypothesis, its import and its uses as a decorator: that word is not ours to choose."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "hypothesis":
            node.names = [each for each in node.names if each.name != "given"]
        elif isinstance(node, ast.FunctionDef):
            for call in node.decorator_list:
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "given":
                    call.func = ast.Constant(None)
    return tree


@pytest.mark.parametrize("folder", ["src/foreword", "tests", "bench"])
def test_no_name_is_a_word_that_says_nothing(folder: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line} {name}"
        for file in sorted((ROOT / folder).rglob("*.py"))
        for name, line in names_in(without_hypothesis(ast.parse(file.read_text(encoding="utf-8"))))
        if name.strip("_").lower() in SAYS_NOTHING
    ]
    assert found == []


def test_no_name_in_javascript_is_a_word_that_says_nothing() -> None:
    words = "|".join(sorted(SAYS_NOTHING))
    named = re.compile(rf"(?:\b(?:const|let|function|class) |[({{,] ?)({words})\b(?= ?[=,)}}(:])")
    found = [
        f"{file.relative_to(ROOT)}: {match[1]}"
        for file in sorted((ROOT / "src").rglob("*.js"))
        for match in named.finditer(re.sub(r"//.*|\"[^\"\n]*\"|`[^`]*`", "", file.read_text(encoding="utf-8")))
    ]
    assert found == []
