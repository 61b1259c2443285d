"""tokens: near the truth in every family, and able to count anything."""

import base64
import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.recall.tokens import CLAUDE_3, CLAUDE_4_7, FAMILIES, MOST_EXPENSIVE, O200K, count, family_of
from tests.tables import table

SAMPLES = Path(__file__).parents[3] / "shared" / "tokens" / "samples.jsonl"
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)

# Text with its count for Claude 4.7, Claude 3 and o200k, by the reconstructions of their tokenizers.
KNOWN = (
    ("[decision] dec-7k2m9q8x | permissions no longer cascade | 12d | 0.64", 34, 27, 27),
    ('More: memory_search("...") finds, memory_get("han-f8qy40yg") shows all.', 31, 27, 22),
    ("--- foreword: notes from earlier sessions in datasette (history, not instructions) ---", 29, 18, 18),
    ("  check_visibility(actor, action, resource) -> tuple[bool, bool]  [MODIFIED]", 36, 23, 21),
    ("- user, 4x, last yesterday: run tests with `uv run pytest -n auto`", 29, 22, 21),
    ("内部データベースは起動時に再構築されるため、テストで書いた行は消える", 28, 28, 26),
)


@table("place", range(3))
def test_is_near_the_truth_for_lines_like_ours(place):
    errors = [count(text, family=FAMILIES[place]) / true[place] - 1 for text, *true in KNOWN]
    assert sum(map(abs, errors)) / len(errors) < 0.12  # single lines scatter more than blocks do
    assert min(errors) > -0.2


# What no vocabulary holds, made up, with its true count as above.
RANDOM = (
    ("base64", (386, 362, 265)),
    ("base32", (465, 379, 306)),
    ("cherokee", (691, 727, 639)),
    ("ethiopic", (455, 451, 439)),
    ("yi", (691, 687, 596)),
    ("syriac", (491, 487, 439)),
    ("tibetan", (484, 472, 432)),
)
SCRIPTS = {
    "cherokee": (0x13A0, 0x13F4),
    "ethiopic": (0x1200, 0x1246),
    "yi": (0xA000, 0xA48C),
    "syriac": (0x710, 0x72F),
    "tibetan": (0xF49, 0xF6C),
}


def random_text(name):
    rng = random.Random(name)
    if name in SCRIPTS:
        return " ".join("".join(chr(rng.randint(*SCRIPTS[name])) for _ in range(5)) for _ in range(40))
    return {"base64": base64.b64encode, "base32": base64.b32encode}[name](rng.randbytes(300)).decode()


@table("place", range(3))
def test_random_keys_and_rare_scripts_are_not_cheap(place):
    for name, true in RANDOM:
        error = count(random_text(name), family=FAMILIES[place]) / true[place] - 1
        assert -0.12 < error < 0.75, (name, error)
    errors = [count(random_text(name), family=FAMILIES[place]) / true[place] - 1 for name, true in RANDOM]
    assert sum(errors) >= 0


@table(("family", "column"), [(CLAUDE_4_7, "claude_4_7"), (CLAUDE_3, "claude_3")])
def test_mean_error_is_within_eight_percent_and_no_category_is_cheap(family, column):
    if not SAMPLES.exists():
        pytest.skip(f"no token samples at {SAMPLES}: the error of the estimator is NOT measured in this run")
    errors: dict[str, list[float]] = {}
    for row in map(json.loads, SAMPLES.read_text("utf-8").splitlines()):
        errors.setdefault(row["category"], []).append(count(row["text"], family=family) / row[column] - 1)
    every = [error for some in errors.values() for error in some]
    assert sum(map(abs, every)) / len(every) <= 0.08
    for category, some in errors.items():
        assert sum(some) / len(some) > -0.1, category
        assert sum(map(abs, some)) / len(some) <= 0.1, category


def test_nothing_unknown_and_nameless_have_a_count_and_a_family():
    # Nothing costs nothing.
    assert [count("", family=family) for family in FAMILIES] == [0, 0, 0]
    # An unknown family is the dearest.
    text = "apply the allow block to create-token, seen 3x in datasette/app.py"
    assert count(text, family="unheard of") == count(text) == count(text, family=MOST_EXPENSIVE)
    assert count(text) >= max(count(text, family=family) for family in FAMILIES)
    # Names for people and no name find their family.
    assert family_of("Claude Sonnet 4.5") == CLAUDE_3
    assert family_of("") == family_of("  ") == MOST_EXPENSIVE


@given(ANY_TEXT, st.sampled_from(FAMILIES))
def test_any_text_has_a_count_and_a_word_more_never_makes_it_cheaper(text, family):
    cost = count(text, family=family)
    assert isinstance(cost, int)
    assert cost >= (1 if text.strip() else 0)
    assert count(text + " word", family=family) >= cost


@given(ANY_TEXT, ANY_TEXT)
def test_lines_cost_together_what_they_cost_apart(first, second):
    """`fit` estimates with single lines; rounding up, a shared newline and a foreign word nearby may differ."""
    together, apart = count(first + "\n" + second), count(first + "\n") + count(second)
    assert abs(together - apart) <= 3 + 0.7 * len((first + second).split())


@table(
    ("family", "models"),
    [
        (
            CLAUDE_4_7,
            "claude-opus-4-7 claude-opus-4-7[1m] claude-opus-4.10 claude-sonnet-5 claude-haiku-5-5-20260801 sonnet opus"
            " anthropic/claude-opus-4.8 gemini-3-pro grok-4 composer-1 deepseek-v4 llama o",
        ),
        (
            CLAUDE_3,
            "claude-3-opus-20240229 claude-3-5-sonnet-20241022 claude-3-7-sonnet-latest claude-opus-4-20250514"
            " claude-opus-4-1 claude-sonnet-4@20250514 us.anthropic.claude-sonnet-4-5-20250929-v1:0 claude-opus-4-6"
            " openrouter/anthropic/claude-sonnet-4.5 sonnet-4.5",
        ),
        (O200K, "gpt-5 gpt-5.2-codex gpt-4o o3 o4-mini openai/o1 codex-mini-latest GPT-5"),
    ],
)
def test_models_find_their_family(family, models):
    assert {model: family_of(model) for model in models.split()} == dict.fromkeys(models.split(), family)


@given(ANY_TEXT)
def test_any_model_name_has_a_family(model):
    assert family_of(model) in FAMILIES
