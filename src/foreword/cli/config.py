"""`config`: list the settings with their origins, and change one in the user's file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import refuse_agents, this_home
from foreword.cli.options import Json, did_you_mean
from foreword.errors import BadConfig

if TYPE_CHECKING:
    from foreword.config import Loaded

app = typer.Typer(rich_markup_mode=None)
Name = Annotated[str, typer.Argument(metavar="NAME", help="A setting, such as inject or layout.prompt.budget.")]


@app.callback(invoke_without_command=True)
def config(context: typer.Context, json: Json = False) -> None:
    """Show and change the settings.

    Without a command: every setting, its value, where that comes from, and what it does. Settings are kept in
    config.toml in the Foreword home; what you write there by hand is not touched.

    \b
    Examples:
      foreword config
      foreword config set inject off
      foreword config set layout.prompt.budget 300
    """
    if context.invoked_subcommand is not None:
        return
    loaded = _load()
    settings = [each for each in _settings(loaded) if each["what"]]
    file = this_home().config
    if json:
        output.write_json({"file": str(file), "settings": settings, "problems": list(loaded.problems)})
    else:
        output.table(
            [(each["name"], _text(each["value"]), each["from"], each["what"]) for each in settings],
            headings=("setting", "value", "from", "what it does"),
            bold={number for number, each in enumerate(settings) if each["from"] != "default"},
        )
        output.remark(f"file: {file}")
    output.warn(loaded.problems)


@app.command("get")
def get_setting(name: Name, json: Json = False) -> None:
    """Print the value of one setting."""
    setting = _find(_load(), name)
    output.write_json(setting) if json else output.write(_text(setting["value"]))


@app.command("set")
def change_setting(
    name: Name,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="The new value; separate list entries by commas.")],
) -> None:
    """Change one setting; a running worker adopts it within two seconds.

    \b
    Examples:
      foreword config set deadline_prompt_ms 200
      foreword config set off_projects ~/secret,~/other
    """
    from foreword.config import change

    refuse_agents()
    _find(_load(), name)
    change(this_home(), name, value)
    loaded = _reload()
    setting = _find(loaded, name)
    output.write(f"{name} = {_text(setting['value'])}")
    if setting["from"] == "environment":
        output.warn([f"FOREWORD_{name.upper()} in the environment overrides the file"])
    output.warn(loaded.problems)


@app.command("unset")
def remove_setting(name: Name) -> None:
    """Remove one setting from the file, so that its default applies again."""
    from foreword.config import unset

    refuse_agents()
    _find(_load(), name)
    if unset(this_home(), name):
        _reload()
        output.write(f"{name} is no longer in the file")
    else:
        output.write(f"{name} was not in the file")


def _load() -> Loaded:
    from foreword.config import load

    return load(this_home(), os.environ)


def _reload() -> Loaded:
    """Return the settings after a change, and write them into the hook, which must obey before a worker runs again."""
    from foreword.hook.build import refresh

    loaded = _load()
    refresh(this_home(), loaded.settings)
    return loaded


def _settings(loaded: Loaded) -> list[dict[str, Any]]:
    """Return every setting; the numbers of single layers have no description and are not listed."""
    from foreword.config import SETTINGS
    from foreword.layout import window_budget

    rows: list[tuple[str, object, str]] = [
        (each.name, getattr(loaded.settings, each.name), f"{each.what}{f' ({each.unit})' if each.unit else ''}")
        for each in SETTINGS
    ]
    for name, tokens in window_budget(loaded.settings.layout).items():
        rows.append((f"layout.window.{name}", tokens, "Maximum of all of them in one context window. (tokens)"))
    for trigger, layout in loaded.settings.layout.items():
        about = f"Maximum of a {trigger}; docs/settings.md has its layers. (tokens)"
        rows.append((f"layout.{trigger}.budget", layout.budget, about))
        for rule in layout.layers:
            numbers = {"cap": rule.cap, "limit": rule.limit, **rule.groups}
            rows += [(f"layout.{trigger}.{rule.name}.{name}", number, "") for name, number in numbers.items()]
    return [
        {"name": name, "value": value, "from": loaded.origin[name.partition(".")[0]], "what": what}
        for name, value, what in rows
    ]


def _find(loaded: Loaded, name: str) -> dict[str, Any]:
    """Return one setting; an unknown name is a BadConfig with the nearest names."""
    settings = {each["name"]: each for each in _settings(loaded)}
    if name not in settings:
        names = [each for each, setting in settings.items() if setting["what"] or name.count(".") > 1]
        hint = did_you_mean(name, names, otherwise="`foreword config` lists the settings")
        raise BadConfig(f"{name!r} is not a setting", hint=hint)
    return settings[name]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(value) if isinstance(value, (tuple, list)) else str(value)
