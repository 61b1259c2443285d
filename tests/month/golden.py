"""The morning of day 30 -> a page that a person can judge: the story, what is injected, what a user is told."""

from __future__ import annotations

import re

from tests.month.play import SCENE, Month
from tests.month.story import GONE, GRACE, LINES

ID = re.compile(r"\b([a-z]{3})-([0-9abcdefghjkmnpqrstvwxyz]{8})\b")

STORY = """# A month with Havn: what is injected on day 30

Made by `tests/month` and checked by it; `RENEW_GOLDEN=1` writes it anew, to be read before it is committed.
Ids are numbered in the order in which they appear.

Havn books berths in a small marina. Mia writes the server, Jonas the map and the texts, Priya runs it all. In sixty
sessions over 29 days they told their agent what follows. A good memory says on day 30 what holds, and nothing else.

**What holds now**
"""
RULES = """
**What the three keep correcting**
- Tests are run with `uv run pytest`, never with plain pytest (four times, in other words).
- British spelling in the texts, cancelled and not canceled (four times).
- The logger, never print (three times).
- Single quotes in TypeScript (Jonas, day 8), double quotes (Jonas, day 16): the later holds.
- Never commit to main directly.

**What fails**
- The database schema lags behind the code: three times, mended by `uv run python -m havn.migrate` each time.
- `tsc` does not know Berth: three times, mended by `npm run types` each time.
- Port 8080 is taken: three times, mended in three ways.
- `test_storm_warning_live` times out: four times, never mended.
"""


def page(month: Month) -> str:
    """The whole page."""
    scene = month.scene
    parts = [STORY, *_choices(), RULES, *_gone()]
    parts += ["\n## A session starts\n", _quoted(scene["start"])]
    for place, prompt in enumerate(SCENE, 1):
        parts += [f"\n## Prompt {place}: {prompt}\n", _quoted(scene[f"prompt {place}"])]
    parts += ["\n## A compaction, after save_booking() was changed\n", _quoted(scene["compaction"])]
    for name in [each for each in scene if each.startswith("foreword ")]:
        parts += [f"\n## `{name}`\n", _quoted(_timeless(scene[name].rstrip()))]
    return _numbered("".join(parts))


def _choices() -> list[str]:
    lines = []
    for subject, choices in LINES.items():
        *old, new = (choice.name for choice in choices)
        before = ", then ".join(old)
        lines.append(f"- {subject.capitalize()}: **{new}** since day {choices[-1].day} (before: {before})\n")
    return [*lines, "- Times are stored in UTC (said three times), the map uses Leaflet.\n"]


def _gone() -> list[str]:
    days = {name: day - GRACE if "/" in name else day for name, day in GONE.items()}
    named = ", ".join(f"`{name}` (day {day})" for name, day in days.items())
    return [f"\n**What is no longer there**: {named}.\n"]


def _quoted(text: str) -> str:
    return f"```\n{text}\n```\n" if text else "(nothing)\n"


def _timeless(text: str) -> str:
    """What a machine took and weighs is another every time: only that it is told, is judged."""
    text = re.sub(r"\d[\d.,]*(?= ms| MB| KB)|(?<=p95 )[\d.]+|(?<=max )[\d.]+", "N", text)
    return re.sub(r"(?m)(\bN ms.*?)[ #]*$", r"\1", text)


def _numbered(text: str) -> str:
    """Ids by the order of their appearance: another draw of ids is no other month."""
    seen: dict[str, str] = {}
    return ID.sub(lambda found: seen.setdefault(found[0], f"{found[1]}-{len(seen) + 1}"), text)
