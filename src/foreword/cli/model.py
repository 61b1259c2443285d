"""`model`: the state of the optional model, and a trial call."""

from __future__ import annotations

from typing import Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect
from foreword.cli.options import Json
from foreword.errors import ModelError

TRIAL_SECONDS = 630.0  # the longest `model_seconds`, and some for the worker

app = typer.Typer(
    rich_markup_mode=None,
    invoke_without_command=True,
    help="""Show and try the optional model that improves summaries.

    Without a command: which model is chosen, its state, and what it cost in the last 24 hours. It is off by default;
    docs/model.md explains how to turn it on and what is sent where.

    \b
    Examples:
      foreword model
      foreword model try
    """,
)


@app.callback()
def status(context: typer.Context, json: Json = False) -> None:
    if context.invoked_subcommand is not None:
        return
    about = connect().get("/api/model")
    output.write_json(about) if json else output.fields(_fields(about))


@app.command("try")
def attempt(json: Json = False) -> None:
    """Ask the model for one word, and print what that took; exit 1 if it does not answer.

    The tokens count for the daily limit.
    """
    answer = connect(seconds=TRIAL_SECONDS).post("/api/model", {})
    if json:
        output.write_json(answer)
    elif answer["ok"]:
        tokens = [str(count) if count >= 0 else "?" for count in (answer["tokens_in"], answer["tokens_out"])]
        cost = f"{tokens[0]} tokens in, {tokens[1]} out, {output.duration(answer['took_ms'] / 1000)}"
        output.write(f"{answer['provider']} {answer['model']} at {answer['where']} answers as asked: {cost}")
    else:
        raise ModelError(answer["error"], hint=answer["hint"])
    if not answer["ok"]:
        raise typer.Exit(1)


def _fields(about: dict[str, Any]) -> list[tuple[str, str]]:
    if about["provider"] == "off":
        return [("model", "off; docs/model.md explains how to turn it on")]
    return [
        ("model", f"{about['provider']} {about['model']}".strip()),
        ("where", about["where"] or "-"),
        ("state", "not usable" if about["problem"] else "usable"),
        ("spent", f"{about['spent_tokens']:,} of {about['daily_tokens']:,} tokens in the last 24 hours"),
        ("waiting", f"{about['waiting']} sessions"),
        ("problem", about["problem"]),
    ]
