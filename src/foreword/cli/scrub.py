"""What is stored -> what in it is now known to be secret, taken out or only counted, and never shown."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json

if TYPE_CHECKING:
    from foreword.paths import Home


def scrub(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be taken out.")] = False,
    json: Json = False,
) -> None:
    """Take out of what is stored what is now known to be secret.

    What was kept under older rules is looked at again: memories, events, sessions, injections, logs, what waits, and
    the backups. Values of secret variables in your environment are looked for too. Then the index is built anew and
    the files are rewritten, so that no old byte is left in them. It can be stopped, and begun again.

    \b
    Examples:
      foreword scrub --dry-run
      foreword scrub
    """
    home = door.here()
    client = door.worker(home, seconds=door.LONG)
    hidden = _hidden(home)
    after: list[object] = []
    found: dict[str, Counter[str]] = {}
    kinds: Counter[str] = Counter()
    with screen.console(stderr=True).status("looking") as shown:
        while True:
            told = client.post("/api/scrub", {"after": after, "dry_run": dry_run, "hidden": hidden})
            for table, each in told["tables"].items():
                found.setdefault(table, Counter()).update(seen=each["seen"], changed=each["changed"])
                kinds.update(each["kinds"])
            after = told["after"]
            if not after:
                break
            rows = sum(found.values(), Counter())
            shown.update(f"{after[0]}: {rows['seen']:,} seen, {rows['changed']:,} changed")
    _tell({table: each for table, each in found.items() if each["seen"]}, kinds, dry_run=dry_run, json=json)


def _hidden(home: Home) -> str:
    """Digests of the secret variables here, as a hook tells them."""
    from foreword.hook.build import key_of
    from foreword.hook.client import digests, secret_values

    return digests(secret_values(), key=key_of(home))


def _tell(found: dict[str, Counter[str]], kinds: Counter[str], *, dry_run: bool, json: bool) -> None:
    if json:
        tables = {table: {"seen": each["seen"], "changed": each["changed"]} for table, each in found.items()}
        screen.as_json({"dry_run": dry_run, "tables": tables, "kinds": dict(sorted(kinds.items()))})
        return
    rows = [[table, f"{each['seen']:,}", f"{each['changed']:,}"] for table, each in sorted(found.items())]
    screen.table(rows, headings=("where", "seen", "would change" if dry_run else "changed"))
    for kind, times in sorted(kinds.items()):
        screen.say(f"{times:,} x {kind}")
    if not kinds:
        screen.say("no secrets were found")
