"""tasks: the task is guessed where the words speak for one, and left open where they do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.tasks import SIGNS, task_of
from foreword.types import EVENTS

TASKS = {"", *SIGNS}


@pytest.mark.parametrize(
    ("prompt", "task"),
    [
        ("Add a --json option to the status command", "coding"),
        ("feat(vfs): support creating new databases in write mode", "coding"),
        ("Refactor the parser and write tests", "coding"),
        ("why does create-token ignore database allow blocks?", "debugging"),
        ("fix(db): suppress double-rollback error", "debugging"),
        ("The import hangs, and it doesn't say anything", "debugging"),
        ("It doesn’t work", "debugging"),
        ("Fix a typo in the README", "documentation"),
        ("Add docs for the permissions API", "documentation"),
        ("Write a docstring for each public function", "documentation"),
        ("How should we design the storage layer? Compare two approaches", "architecture"),
        ("Why did we decide on one process, and what were the alternatives?", "architecture"),
        ("thanks!", ""),
        ("go on", ""),
        ("What JWT signing algorithm is used?", ""),
        ("look at tests/test_exceptions.py and fix_errors.sh", ""),
        ("", ""),
    ],
)
def test_a_prompt_speaks_for_its_task(prompt, task):
    assert task_of(prompt) == task


def test_a_tie_is_open():
    assert task_of("crash implement") == ""


def test_a_failure_a_moment_ago_speaks_for_debugging():
    assert task_of("try again", ("tool_failure", "tool")) == "debugging"
    assert task_of("try again", ("tool", "tool", "tool", "tool_failure")) == ""
    assert task_of("still slow?", ("tool", "tool_failure")) == "debugging"


def test_a_failure_does_not_overrule_what_was_said():
    assert task_of("Now write the documentation", ("tool_failure",)) == "documentation"


def test_what_was_pasted_into_the_middle_does_not_decide():
    assert task_of(f"Please document this {'x ' * 200}{'error bug crash ' * 500}{'x ' * 200}") == "documentation"


@given(st.text(), st.lists(st.sampled_from(EVENTS), max_size=5))
def test_any_prompt_has_one_of_the_tasks(prompt, recent):
    assert task_of(prompt, recent) in TASKS
