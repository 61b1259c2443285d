"""What a session came to -> what a model is given of it; what the model made of it -> the summary in better words."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from foreword.audit import REVISED
from foreword.llm.refine import Decision, Draft, Refined
from foreword.models import Memory

SURE = 0.6  # of a decision that only a model read out of a conversation


def given(memories: Sequence[Memory]) -> Draft:
    """The draft that a model is given: the summary, and what else was kept of the session."""
    (summary,) = _of("summary", memories)
    told = summary.detail
    return Draft(
        request="; ".join((summary.title, *told.get("request", ()))),
        done="; ".join(told.get("done", ())),
        learned=tuple(told.get("learned", ())),
        next=tuple(told.get("next", ())),
        files=summary.files,
        decisions=tuple(Decision(each.title, each.detail.get("why", "")) for each in _of("decision", memories)),
        failures=tuple(
            "; fixed by ".join(filter(None, (each.title, each.detail.get("fixed_by", ""))))
            for each in _of("failure", memories)
        ),
    )


def put(summary: Memory, told: Refined) -> list[Memory]:
    """The summary in the model's words where it has some, what came without it beside, and decisions that it found.

    What somebody still has to do, and what is in the way, stays as the session itself told it; and all of it stays
    that somebody put into words of his own.
    """
    if summary.detail.get(REVISED):
        return [_decision(summary, told, each) for each in told.decisions]
    # A session that goes on is refined again: what came without a model is then what the first time kept beside.
    plain = summary.detail.get("without_model") or {"title": summary.title, **summary.detail}
    detail: dict[str, Any] = {name: each for name, each in plain.items() if name != "title"}
    detail["without_model"] = plain
    for name, said in (("request", [told.request]), ("done", [told.done]), ("learned", told.learned)):
        if any(said):
            detail[name] = list(said)
    if not detail.get("next") and told.next:
        detail["next"] = list(told.next)
    better = replace(summary, title=told.title or summary.title, source=told.source, trust=told.trust, detail=detail)
    return [better, *(_decision(summary, told, each) for each in told.decisions)]


def _of(kind: str, memories: Sequence[Memory]) -> list[Memory]:
    return [each for each in memories if each.kind == kind]


def _decision(summary: Memory, told: Refined, one: Decision) -> Memory:
    mark = hashlib.blake2b(one.what.lower().encode("utf-8", "replace"), digest_size=8).hexdigest()
    return replace(
        summary,
        kind="decision",
        title=one.what,
        id="",
        uid=f"dec:{summary.project}:{summary.session}:{mark}",
        tags=(),
        source=told.source,
        trust=told.trust,
        pinned=False,
        used=0,
        ignored=0,
        confidence=SURE,
        detail={"why": one.why} if one.why else {},
    )
