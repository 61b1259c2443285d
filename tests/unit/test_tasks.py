"""tasks: the task is guessed where the words speak for one, and left open where they do not."""

from hypothesis import given
from hypothesis import strategies as st

from foreword.recall.task import SIGNS, task_of
from foreword.types import EVENTS
from tests.tables import table

TASKS = {"", *SIGNS}


@table(
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


def test_failures_ties_and_pastes_do_not_overrule_words():
    # A tie is open.
    assert task_of("crash implement") == ""
    # A failure a moment ago speaks for debugging.
    assert task_of("try again", ("tool_failure", "tool")) == "debugging"
    assert task_of("try again", ("tool", "tool", "tool", "tool_failure")) == ""
    assert task_of("still slow?", ("tool", "tool_failure")) == "debugging"
    # A failure does not overrule what was said.
    assert task_of("Now write the documentation", ("tool_failure",)) == "documentation"
    # What was pasted into the middle does not decide.
    assert task_of(f"Please document this {'x ' * 200}{'error bug crash ' * 500}{'x ' * 200}") == "documentation"


@given(st.text(), st.lists(st.sampled_from(EVENTS), max_size=5))
def test_any_prompt_has_one_of_the_tasks(prompt, recent):
    assert task_of(prompt, recent) in TASKS
