"""What test runners, compilers and interpreters print when something fails: each is known by its error and its test."""

from __future__ import annotations

from pathlib import Path

from foreword.extract.commands import command_of
from foreword.distill.failures import ended_badly, name_of_test, outcome, problem_of
from tests.tables import table

# Written after each tool's own format: `=== name | error | test`, then the output.
OUTPUTS = [
    (*(part.strip() for part in head.split(" | ")), output)
    for head, _, output in (
        each.partition("\n") for each in Path(__file__).with_name("runner_outputs.txt").read_text().split("\n=== ")[1:]
    )
]
SUMS_UP = ("pytest", "unittest", "jest", "vitest", "mocha", "node test", "go ", "cargo", "gradle", "maven", "kotlin",
           "rspec", "minitest", "phpunit", "pest", "dotnet test", "dotnet custom", "dotnet build", "gtest")  # fmt: skip


@table(("name", "error", "test", "output"), OUTPUTS)
def test_every_runner_s_error_is_told_with_its_test(name, error, test, output):
    found = problem_of(output, program="x")
    assert found is not None
    assert (found.message, found.tests[:1]) == (error, (test,) if test else ())
    assert ended_badly(output) is True or not name.startswith(SUMS_UP)


@table(
    "output",
    [
        "Note: something to know\nAll done.",
        "INFO: Starting\nTotal: 5\nServer: running at http://localhost:3000",
        "shop.Queue: 5 waiting",
        "Warning: Each child in a list should have a key\n    at Rooms (src/Rooms.tsx:3:1)\n2 passed",
        "Trace: here\n    at main (a.js:3:1)",
        "E2E: all of it\nEvent: started",
        "Rooms:\n  1) Paris\n  2) Lisbon",
        "1 example, 0 failures",
        "Passed!  - Failed:     0, Passed:     3, NoContext:     0, Total:     3, Duration: 4 ms",
        "ℹ tests 1\nℹ pass 1\nℹ fail 0",
        "Tests run: 5, Failures: 0, Errors: 0, NoContext: 0\n[INFO] BUILD SUCCESS",
    ],
)
def test_what_only_looks_like_an_error_names_none(output):
    failed, _ = outcome(output, command_of("npm test"), failed=None)
    assert not failed
    assert not problem_of(output, program="x").type


@table(
    ("test", "name"),
    [
        ("tests/test_a.py::TestQueue::test_drains[a b]", "test_drains[a b]"),
        ("test_drains (tests.test_queue.Queue)", "test_drains"),
        ("book › refuses a taken room", "refuses a taken room"),
        ("src/book.test.ts > book > refuses", "refuses"),
        ("queue::tests::drains", "drains"),
        ("TestDrain/empty", "TestDrain/empty"),
        ("BookingTest#test_refuses", "test_refuses"),
    ],
)
def test_a_test_is_called_by_its_own_name(test, name):
    assert name_of_test(test) == name
