"""What a month with one project promises of memory: what it says at the end holds, is said once, and was of use."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.month import measures
from tests.month.golden import page
from tests.month.play import Month, is_useful, play
from tests.month.story import LINES, REFUSED, REVIEWS, SESSIONS
from tests.scratch import scratch_folder

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]  # the month is played before the first test
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "month-day-30.md"


@pytest.fixture(scope="module")
def month():
    with scratch_folder() as folder:
        yield play(folder / "month")


def test_the_story_is_a_month_of_sixty_sessions_by_three_people():
    assert len(SESSIONS) == 60
    assert {session.who for session in SESSIONS} == {"mia", "jonas", "priya"}
    assert sum(len(choices) - 1 for choices in LINES.values()) >= 5
    assert [session.at for session in SESSIONS] == sorted(session.at for session in SESSIONS)


def test_what_is_injected_on_day_30_is_what_a_person_has_judged(month: Month):
    text = page(month)
    if os.environ.get("RENEW_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_the_same_month_is_the_same_to_the_byte(month: Month, tmp_path: Path):
    again = play(tmp_path / "month", days=9)
    expected = [(each.day, each.injection.text) for each in month.contexts if each.day <= 9]
    assert [(each.day, each.injection.text) for each in again.contexts] == expected


def test_a_choice_that_was_replaced_is_never_told_as_what_holds(month: Month):
    assert [line for each in month.contexts for line in measures.said_as_current(each)] == []


def test_a_session_that_chose_what_was_replaced_is_told_as_such(month: Month):
    assert [line for each in month.contexts for line in measures.remembered_as_current(each)] == []


def test_code_that_is_gone_is_never_told_as_if_it_were_there(month: Month):
    assert [line for each in month.contexts for line in measures.gone_as_current(each)] == []


def test_the_choice_that_holds_is_among_what_is_remembered(month: Month):
    for subject, choices in LINES.items():
        holds = [each for each in month.active if each.kind == "decision" and measures.says(each.title, choices[-1])]
        assert len(holds) == 1, subject


def test_hardly_anything_is_remembered_twice(month: Month):
    twice = [(one.title, two.title) for one, two in measures.duplicates(month.active)]
    assert measures.share_of_duplicates(month.active) <= 0.02, twice


def test_what_is_merged_keeps_all_of_its_evidence(month: Month):
    utc = [each for each in month.active if each.kind == "decision" and "UTC" in each.title]
    assert len(utc) == 1
    assert utc[0].seen >= 3


def test_what_was_refused_or_thrown_away_is_never_injected_again(month: Month):
    assert {memory.title for _, memory in month.refused}, "the users said no to something"
    for day, memory in month.refused:
        for each in month.contexts:
            if each.day > day:
                assert memory.id not in each.memories, (each.day, memory.title)
    for each in month.contexts:
        text = each.injection.text.lower()
        assert not any(word in text for word in REFUSED) or each.day <= max(REVIEWS), each.day


def test_what_the_agent_used_and_what_it_ignored_is_told_apart(month: Month):
    judged = Counter(item.used for each in month.judged.values() for item in each.items)
    assert judged[True] > 50
    assert judged[False] > 50


def test_used_memories_rank_better_than_ignored_ones(month: Month):
    """By judgement, as the product sees it, and by fate, where nothing but use can tell the two groups apart."""
    judged = measures.by_judgement(month)
    assert judged.better < judged.worse, judged
    fate = measures.by_fate(month, useful=is_useful)
    assert fate.better < fate.worse, fate


def test_what_the_users_keep_correcting_is_a_rule_at_the_start(month: Month):
    rules = month.scene["start"].partition("## Rules\n")[2].partition("\n\n")[0]
    assert all(words in rules for words in ("Never commit to main", "uv run pytest", "British spelling")), rules


def test_what_was_never_mended_is_still_told(month: Month):
    assert "met office" in month.scene["start"] + month.scene["prompt 1"]


def test_tidying_again_changes_nothing(month: Month):
    assert sum(night.tidied for night in month.nights) > 0
    assert month.again == 0


def test_the_store_does_not_grow_faster_at_the_end_than_at_the_beginning(month: Month):
    """Blocks fill up while there is little to say, so their rows are compared from the tenth day on."""

    def grows(of, first, last):
        return measures.growth(month.nights, of, first=first, last=last)

    assert grows(lambda night: night.active, 20, 29) <= grows(lambda night: night.active, 1, 10)
    for of in (lambda night: sum(night.rows.values()), lambda night: night.bytes):
        assert grows(of, 20, 29) <= 1.25 * grows(of, 10, 20)
