"""The optional model, by hand: what it is and costs, whether it answers, and every call that was made of it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json
from foreword.errors import ModelError

PATIENCE = 630.0  # seconds; the longest `model_seconds`, and some for the worker

app = typer.Typer(
    rich_markup_mode=None,
    invoke_without_command=True,
    help="""The optional model that improves summaries.

    Without a subcommand: which one is chosen, whether it is well, and what the last 24 hours cost. It is off unless you
    turned it on; docs/model.md tells how, and what is sent where.

    \b
    Examples:
      foreword model
      foreword model try
      foreword model ledger --json
    """,
)


@app.callback()
def status(context: typer.Context, json: Json = False) -> None:
    if context.invoked_subcommand is not None:
        return
    about = door.worker(door.here()).get("/api/model")
    screen.as_json(about) if json else screen.rows(_lines(about))


@app.command("try")
def attempt(json: Json = False) -> None:
    """Ask the model for one word, and say what that took; exit 1 if it does not answer.

    It is asked also while it rests after failures; what it costs is in the ledger and counts for the cap.

    \b
    Example:
      foreword model try
    """
    got = door.worker(door.here(), seconds=PATIENCE).post("/api/model", {})
    if json:
        screen.as_json(got)
    elif got["ok"]:
        tokens = [str(each) if each >= 0 else "?" for each in (got["tokens_in"], got["tokens_out"])]
        cost = f"{tokens[0]} tokens in, {tokens[1]} out, {screen.lasting(got['took_ms'] / 1000)}"
        screen.say(f"{got['provider']} {got['model']} at {got['where']} answers as asked: {cost}")
    else:
        raise ModelError(got["error"], hint=got["hint"])
    if not got["ok"]:
        raise typer.Exit(1)


@app.command()
def ledger(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many calls, newest first.")] = 20,
    json: Json = False,
) -> None:
    """List the calls of models, newest first: when, for what, their tokens, and how they ended.

    \b
    Examples:
      foreword model ledger
      foreword model ledger --limit 100 --json
    """
    about = door.worker(door.here()).get("/api/model", ledger=limit)
    if json:
        kept = {name: about[name] for name in ("daily_tokens", "spent_tokens", "ledger")}
        screen.as_json(kept)
        return
    if not about["ledger"]:
        screen.say("no model was ever asked")
        return
    headings = ("when", "purpose", "model", "in", "out", "ms", "session", "outcome")
    screen.table([_row(each) for each in about["ledger"]], headings=headings)


def _lines(about: dict[str, Any]) -> list[tuple[str, str]]:
    if about["provider"] == "off":
        return [("model", "off: none is asked; docs/model.md tells how to turn it on")]
    state = f"failed, and is not asked for {screen.lasting(about['paused_s'])}" if about["paused_s"] else "well"
    spent = f"{about['spent_tokens']:,} of {about['daily_tokens']:,} tokens in the last 24 hours"
    lines = [
        ("model", f"{about['provider']} {about['model']}".strip()),
        ("where", about["where"] or "-"),
        ("state", "cannot be asked" if about["problem"] else state),
        ("spent", spent),
        ("waiting", f"{about['waiting']} sessions"),
    ]
    return [*lines, ("problem", about["problem"])] if about["problem"] else lines


def _row(each: dict[str, Any]) -> list[str]:
    when = screen.minute(each["at"])
    cost = [f"{each[name]:,}" for name in ("tokens_in", "tokens_out")]
    model = f"{each['provider']} {each['model']}"
    return [when, each["purpose"], model, *cost, f"{each['ms']:.0f}", each["session"] or "-", each["outcome"]]
