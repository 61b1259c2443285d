"""`config` and `model`: list and change the settings, and show and try the optional model that they choose."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, refuse_agents, this_home
from foreword.cli.options import Json
from foreword.config import SETTINGS, Loaded, change, load, unset
from foreword.errors import ModelError
from foreword.hook.build import refresh
from foreword.layout import window_budget

TRIAL_SECONDS = 630.0  # the longest `model_seconds`, and some for the worker

app = typer.Typer(name="config", rich_markup_mode=None)
model_app = typer.Typer(name="model", rich_markup_mode=None)
Name = Annotated[str, typer.Argument(metavar="NAME", help="A setting, such as inject or layout.prompt.budget.")]


@app.callback(invoke_without_command=True)
def config(context: typer.Context, json: Json = False) -> None:
    """Show and change the settings.

    Without a command: every setting, its value, where that comes from, and what it does. Settings are kept in
    config.toml in the Foreword home; what you write there by hand is not touched.
    """
    if context.invoked_subcommand is not None:
        return
    loaded, file = load(this_home(), os.environ), this_home().config
    settings = _settings(loaded)
    if json:
        output.write_json({"file": str(file), "settings": settings, "problems": list(loaded.problems)})
    else:
        rows = [(each["name"], _text(each["value"]), each["from"], each["what"]) for each in settings]
        output.table(rows, headings=("setting", "value", "from", "what it does"))
        output.remark(f"file: {file}")
    output.warn(loaded.problems)


@app.command("set")
def change_setting(
    name: Name,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="The new value; separate list entries by commas.")],
) -> None:
    """Change one setting; a running worker adopts it within two seconds."""
    refuse_agents()
    change(this_home(), name, value)
    loaded = _reload()
    output.write(f"{name} = {_text(getattr(loaded.settings, name, value))}")
    if loaded.origin[name.partition(".")[0]] == "environment":
        output.warn([f"FOREWORD_{name.upper()} in the environment overrides the file"])
    output.warn(loaded.problems)


@app.command("unset")
def remove_setting(name: Name) -> None:
    """Remove one setting from the file, so that its default applies again."""
    refuse_agents()
    removed = unset(this_home(), name)
    _reload()
    output.write(f"{name} {'is no longer' if removed else 'was not'} in the file")


@model_app.callback(invoke_without_command=True)
def model(context: typer.Context, json: Json = False) -> None:
    """Show and try the optional model that improves summaries.

    Without a command: which model is chosen, its state, and what it cost in the last 24 hours. It is off by default;
    docs/model.md explains how to turn it on and what is sent where.
    """
    if context.invoked_subcommand is not None:
        return
    about = connect().get("/api/model")
    if json:
        output.write_json(about)
    elif about["provider"] == "off":
        output.write("model  off; docs/model.md explains how to turn it on")
    else:
        fields = [
            ("model", f"{about['provider']} {about['model']}".strip()),
            ("where", about["where"] or "-"),
            ("state", "not usable" if about["problem"] else "usable"),
            ("spent", f"{about['spent_tokens']:,} of {about['daily_tokens']:,} tokens in the last 24 hours"),
            ("waiting", f"{about['waiting']} sessions"),
            ("problem", about["problem"]),
        ]
        output.fields(fields)


@model_app.command("try")
def try_model() -> None:
    """Ask the model for one word, and print what that took; the tokens count for the daily limit."""
    answer = connect(seconds=TRIAL_SECONDS).post("/api/model", {})
    if not answer["ok"]:
        raise ModelError(answer["error"], hint=answer["hint"])
    tokens = [str(count) if count >= 0 else "?" for count in (answer["tokens_in"], answer["tokens_out"])]
    cost = f"{tokens[0]} tokens in, {tokens[1]} out, {output.duration(answer['took_ms'] / 1000)}"
    output.write(f"{answer['provider']} {answer['model']} at {answer['where']} answers: {cost}")


def _reload() -> Loaded:
    """Return the settings after a change, and write them into the hook, which must obey before a worker runs again."""
    loaded = load(this_home(), os.environ)
    refresh(this_home(), loaded.settings)
    return loaded


def _settings(loaded: Loaded) -> list[dict[str, Any]]:
    """Return every setting, and the budgets of the layout without the numbers of its single layers."""
    settings, layout = loaded.settings, loaded.settings.layout
    units = {each.name: f" ({each.unit})" if each.unit else "" for each in SETTINGS}
    rows = [(each.name, getattr(settings, each.name), each.what + units[each.name]) for each in SETTINGS]
    window = "Maximum of all of them in one context window. (tokens)"
    rows += [(f"layout.window.{name}", tokens, window) for name, tokens in window_budget(layout).items()]
    layers = "Maximum of a {}; docs/settings.md has its layers. (tokens)"
    rows += [(f"layout.{name}.budget", each.budget, layers.format(name)) for name, each in layout.items()]
    return [
        {"name": name, "value": value, "from": loaded.origin[name.partition(".")[0]], "what": what}
        for name, value, what in rows
    ]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(value) if isinstance(value, (tuple, list)) else str(value)
