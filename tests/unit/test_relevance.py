"""When a prompt deserves context, and which notes concern the very thing that it is about."""

from __future__ import annotations

from foreword.recall.relevance import (
    Candidate,
    PromptKind,
    anchors_of,
    choose,
    classify,
    content_words,
    is_anchored,
    is_titled,
    means_pull_request,
    references,
    subject_of,
    topic_words,
    word_weights,
)
from tests.growth import assert_linear
from tests.tables import table

# A hundred ways to answer, to go on or to ask for a routine, none of which names a topic.
SILENT = """yes|y|yeah|yep|yup|sure|ok|okay|okay thanks|thanks|thank you|perfect|great|nice|cool|looks good|lgtm
|sounds good|no|nope|not yet|never mind|wait|stop|continue|Continue|please continue|go on|keep going|carry on
|proceed|go ahead|go for it|go with it|go with the fix|go ahead with the plan|do it|do that|do both|do all
|do all of them|do #2|fix it|fix both|fix all|fix all of these|try again|try it again please|again|next|next one
|what's next?|option 1|option 2|Option B|2|7|b|a and c|the first one|the second option|both|all of them|neither
|1 and 3 please|3 seems like a good one|yes, option 2 please|commit|Commit|comit|commit this|commit it
|commit your changes|commit and push|and push|push|push it|looks good, push it|commit then|yes, commit it
|ok commit this|amend the commit|squash it|open a pr|create the PR|merge it|push and open a pr|rebase on main
|back to main please|ok switch back to main|pull the latest|switch branch|run the tests|rerun the tests
|run tests again|run lint|run the linter|fix lint|format it|build it|rebuild|restart the server|release it
|tag the release|you good there?|are you done?|still failing|it works now|ok now it works|post it|yes please
|yes, delete them|exactly|correct|sounds great, lets do it|that's fine|good idea, do that
|ja bitte|nein, noch nicht|passt so, danke|oui vas y|non merci|sí, dale|perfecto, gracias
|はい、お願いします|続けてください"""


@table("prompt", [each.strip() for each in SILENT.split("|")])
def test_replies_and_routines_stay_silent(prompt: str) -> None:
    for first in (True, False):
        kind = classify(prompt, typed=prompt, author="typed", first=first, session_words=())
        assert kind.kind in ("reply", "routine"), kind
        strong = note("a", "yes option plan fix release tests main", "yes option plan fix release tests main")
        assert not choose(word_weights(kind.topic, {}, 50), [strong], kind=kind).notes


@table("prompt", [each.strip() for each in SILENT.split("|")])
def test_replies_and_routines_mean_no_earlier_pull_request(prompt: str) -> None:
    assert not means_pull_request(prompt) or prompt == "create the PR"  # which a routine answers


@table(
    "prompt, expected",
    [
        ("there are some comments on that pr", True),
        ("address the review comments please", True),
        ("coderabbit found three things", True),
        ("the migration pull request needs a rebase", True),
        ("new comments from the reviewer, have a look", True),
        ("review https://example.com/band/rooms/pull/41, the PR of Ann", False),
        ("there is a comment on pr 41", False),
        ("open a pr with these prices", False),
        ("the printer shows the wrong hour", False),
    ],
)
def test_knows_a_pull_request_that_is_meant_and_not_named(prompt: str, expected: bool) -> None:
    assert means_pull_request(prompt) is expected


def test_the_table_of_silent_prompts_has_a_hundred_rows() -> None:
    assert len({each.strip() for each in SILENT.split("|")}) >= 100


PLAN = (
    "# Plan: Offer waiting slots\n\n## Context\nFull evenings need a list.\n\n## Steps\n"
    + "- change rooms/waiting.py\n" * 30
)


@table(
    "prompt, author, first, session, expected",
    [
        ("the confirmation mail shows the wrong hour for Lisbon", "typed", True, "", "new topic"),
        ("the waiting list forgets its oldest member", "typed", False, "mail lisbon hour", "new topic"),
        ("the lisbon mail still has it", "typed", False, "mail lisbon hour", "same topic"),
        ("why did we drop the sandbox sender?", "typed", False, "sandbox sender", "past"),
        ("how do I reset the sandbox again?", "typed", True, "", "past"),
        ("didn't we store slots in utc?", "typed", False, "slots utc", "past"),
        ("we decided on cents last week, apply that to vouchers", "typed", True, "", "past"),
        ("warum haben wir die Absender der Sandbox verworfen?", "typed", False, "sandbox", "past"),
        ("pourquoi le créneau était faux en hiver ?", "typed", True, "", "past"),
        ("¿por qué habíamos puesto los precios en céntimos?", "typed", True, "", "past"),
        ("予約が重なった原因は何だったっけ？", "typed", True, "", "past"),
        ("予約の一覧画面が遅い", "typed", True, "", "new topic"),
        ("wenn man zurück geht ist der Gutschein verloren", "typed", True, "", "new topic"),
        ("replace the sandbox logo, which was drawn by hand, by the poster", "typed", True, "", "new topic"),
        ("Implement the following plan:\n\n" + PLAN, "machine", True, "", "plan"),
        (PLAN, "pasted", True, "", "plan"),
        ("<event>check failed</event>", "machine", False, "", "machine"),
        ("Traceback: KeyError in slots", "pasted", False, "", "pasted"),
        ("have a look at https://example.com/band/rooms", "typed", True, "", "reply"),
        ("yes, and the waiting list needs vouchers, refunds, invoices and reminders", "typed", False, "", "new topic"),
    ],
)
def test_classifies_prompts(prompt: str, author: str, first: bool, session: str, expected: str) -> None:
    typed = "" if author in ("machine", "pasted") else prompt
    kind = classify(prompt, typed=typed, author=author, first=first, session_words=content_words(session))
    assert kind.kind == expected, kind


@table(
    "prompt, kind",
    [
        ("commit", "routine"),
        ("push it", "routine"),
        ("run the tests", "routine"),
        ("update the changelog", "routine"),
        ("hm", "reply"),
    ],
)
def test_knows_a_routine(prompt: str, kind: str) -> None:
    assert classify(prompt, typed=prompt, author="typed", first=False, session_words=()).kind == kind


def test_the_same_issue_is_known_however_it_is_written() -> None:
    assert references("see https://example.com/band/rooms/issues/41, #41 and PR 57") == ("#41", "#57")
    assert "#41" in content_words("closes #41")
    assert topic_words("look at issue 41")[0] == "#41"


def note(id: str, words: str, shown: str, *, at: float = 0.0) -> Candidate:
    return Candidate(id, at, content_words(words), content_words(shown))


TOPIC = "confirmation mail shows the wrong hour for lisbon venue"
HOLDERS = {"confirmation": 2, "mail": 5, "hour": 3, "lisbon": 1, "venu": 4}


def asks(prompt: str = TOPIC, kind: str = "new topic") -> tuple[dict[str, float], PromptKind]:
    topic = topic_words(prompt)
    return word_weights(topic, HOLDERS, 200), PromptKind(kind, topic)  # type: ignore[arg-type]


GOOD = note("good", TOPIC, "the confirmation mail formats the hour in the zone of the Lisbon venue")


def test_gives_the_note_on_this_very_thing() -> None:
    weights, kind = asks()
    other = note("other", "the mail is sent by a job of the queue", "the mail is sent by a job")
    choice = choose(weights, [other, GOOD], kind=kind)
    assert [each.id for each in choice.notes] == ["good"]
    assert set(choice.rejected) == {"other"}


@table(
    "change, why",
    [
        ({"in_context": True}, "the agent has it already"),
        ({"substance": False}, "says nothing of what came of it"),
        ({"shown": frozenset({"lisbon"})}, "holds"),
    ],
)
def test_leaves_notes_out_with_a_reason(change: dict[str, object], why: str) -> None:
    weights, kind = asks()
    choice = choose(weights, [GOOD._replace(**change)], kind=kind)  # type: ignore[arg-type]
    assert not choice.notes
    assert choice.rejected["good"].startswith(why)


def test_the_newer_of_two_alike_notes_stays() -> None:
    weights, kind = asks()
    for first, second in ((1.0, 2.0), (2.0, 1.0)):
        pair = [GOOD._replace(id="one", at=first), GOOD._replace(id="two", at=second)]
        newest = max(pair, key=lambda each: each.at).id
        assert [each.id for each in choose(weights, pair, kind=kind).notes] == [newest]


def test_a_running_conversation_needs_a_better_match() -> None:
    weights = {word: 0.8 * weight for word, weight in asks()[0].items()}
    weak = note("weak", "mail hour", "the mail has the hour")._replace(anchored=True)
    for each, expected in ((GOOD, [True, True]), (weak, [True, False])):
        kinds = ("new topic", "same topic")
        assert [bool(choose(weights, [each], kind=asks(kind=kind)[1]).notes) for kind in kinds] == expected


def test_what_was_only_said_gives_way_to_what_was_done() -> None:
    weights, kind = asks()
    mentioned = GOOD._replace(id="said", without_changes=True, at=9.0)
    done = note("done", TOPIC, "set the hour of each confirmation mail for Lisbon")
    assert [each.id for each in choose(weights, [mentioned], kind=kind).notes] == ["said"]
    assert [each.id for each in choose(weights, [mentioned, done], kind=kind).notes] == ["done"]


def test_parts_of_a_word_do_not_count_beside_it() -> None:
    weights, kind = asks("PowerShell")
    assert not choose(weights, [note("a", "PowerShell", "PowerShell")], kind=kind).notes


def test_a_note_on_the_same_issue_fits_whatever_else_it_says() -> None:
    weights, kind = asks("what about https://example.com/band/rooms/issues/41")
    assert choose(weights, [note("a", "fixed in #41", "for #41 the sender is verified now")], kind=kind).notes
    # Where the passage does not name it, the note may list ten of them.
    assert not choose(weights, [note("a", "see #39, #40 and #41", "the sender is verified now")], kind=kind).notes


def test_a_note_that_answered_a_prompt_about_the_same_issue_fits_too() -> None:
    weights, kind = asks("https://example.com/band/rooms/issues/41 is still not fixed")
    answer = note("a", "#41 sender domain", "the sender of the domain is verified now")
    assert not choose(weights, [answer], kind=kind).notes
    assert choose(weights, [answer._replace(same_thing=True)], kind=kind).notes


def test_the_fewer_hold_a_word_the_more_it_weighs_and_one_that_none_holds_weighs_less() -> None:
    weights = word_weights(("#41", "#99", "lisbon"), {"#41": 1, "lisbon": 3}, 200)
    assert weights["#41"] > weights["lisbon"] > weights["#99"]


def test_a_note_named_after_the_thing_needs_less_than_any_other_and_half_of_the_topic() -> None:
    topic = "the voucher printer smears the logo"
    holders = {"voucher": 6, "printer": 6, "logo": 6}
    words = topic_words(topic)
    weights, kind = word_weights(words, holders, 200), PromptKind("new topic", words)
    near = note("a", "voucher printer queue", "the voucher printer waits for its queue")
    assert not choose(weights, [near], kind=kind).notes
    assert choose(weights, [near._replace(titled=True)], kind=kind).notes
    far = note("a", "voucher queue", "the voucher waits for its queue")
    assert not choose(weights, [far._replace(titled=True)], kind=kind).notes
    assert is_titled(weights, text="Voucher queue", files=("rooms/voucher_queue.py",))
    assert not is_titled(weights, text="Voucher queue", files=("rooms/mail.py",))
    assert not is_titled(weights, text="Mail queue", files=("rooms/voucher.py",))
    assert not is_titled({"voucher": 0.2}, text="Voucher queue", files=("rooms/voucher.py",))  # all of it is vouchers


def test_a_note_about_a_thing_that_the_prompt_names_needs_less() -> None:
    prompt = "format_slot() in rooms/slots.py shows the wrong hour"
    anchors = anchors_of(prompt, files=("rooms/slots.py",), functions=("format_slot",))
    assert is_anchored(anchors, files=("app/rooms/slots.py",), words=())
    assert is_anchored(anchors, files=(), words=content_words("format_slot takes the venue"))
    assert not is_anchored(anchors, files=("rooms/mail.py",), words=content_words("the mail shows the wrong hour"))
    assert is_anchored(anchors_of("see #41", files=(), functions=()), files=(), words=content_words("closes #41"))
    weights, kind = asks()
    weak = note("weak", "mail hour of some member", "the mail has the hour")
    assert not choose(weights, [weak], kind=kind).notes
    assert choose(weights, [weak._replace(anchored=True)], kind=kind).notes


def test_an_article_is_no_answer() -> None:
    kinds = {
        prompt: classify(prompt, typed=prompt, author="typed", first=False, session_words=()).kind
        for prompt in ("a member books twice in Lisbon", "a", "a.", "a and c please", "b sounds right for Lisbon")
    }
    assert list(kinds.values()) == ["new topic", "reply", "reply", "reply", "reply"]


def test_long_texts_are_read_in_linear_time() -> None:
    for text in ("#" * 64_000, "why did we " * 6_000, "- a\n" * 16_000, "https://" + "a/" * 32_000, "is " * 21_000):
        classify(text, typed=text, author="typed", first=True, session_words=())


def test_the_errors_of_a_pasted_log_are_part_of_what_a_prompt_is_about():
    typed = "the nightly run is red again"
    log = (
        "collected 12 items\n  reading plans\nbooking failed after 3s error=cannot lock slots.db\n  held by walrus_feed"
    )
    assert "walrus_feed" in subject_of(f"{typed}\n{log}", typed)
    assert "collected" not in subject_of(f"{typed}\n{log}", typed)
    prose = f"{typed}\nErrors were handled badly then, which cannot be. Nothing failed."
    assert subject_of(prose, typed) == typed
    for piece in ("a", "error ", "error a b c d ", "x="):
        assert_linear(lambda text: subject_of(text, ""), piece, size=5_000)
