"""The settings with their values and where each came from; one of them -> changed, in the user's own file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json
from foreword.errors import BadConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.config import Loaded
    from foreword.layout import Layout

app = typer.Typer(rich_markup_mode=None)
Name = Annotated[str, typer.Argument(metavar="NAME", help="A setting, such as inject or recipes.prompt.budget.")]


@app.callback(invoke_without_command=True)
def config(context: typer.Context, json: Json = False) -> None:
    """Show and change the settings.

    Without a command: every setting, its value, where that came from, and what it does. They live in config.toml in
    your Foreword home; what you write there by hand stays as it is.

    \b
    Examples:
      foreword config
      foreword config set inject off
      foreword config set recipes.prompt.budget 300
    """
    if context.invoked_subcommand is not None:
        return
    found = _loaded()
    settings = _all(found)
    if json:
        screen.as_json({"file": str(door.here().config), "settings": settings, "problems": list(found.problems)})
    else:
        _print_table(settings)
        screen.aside(f"file: {door.here().config}")
    screen.warn(found.problems)


@app.command()
def get(name: Name, json: Json = False) -> None:
    """Print the value of one setting.

    \b
    Example:
      foreword config get recipes.session_start.budget
    """
    here = _one(_loaded(), name)
    screen.as_json(here) if json else screen.say(_shown(here["value"]))


@app.command("set")
def change(
    name: Name,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="The new value; a list has commas in it.")],
) -> None:
    """Change one setting; a running worker takes it over within a second or two.

    \b
    Examples:
      foreword config set deadline_prompt_ms 200
      foreword config set off_projects ~/secret,~/other
    """
    from foreword.config.editing import change as write

    write(door.here(), name, value)
    found = _taken_over()
    here = _one(found, name)
    screen.say(f"{name} = {_shown(here['value'])}")
    if here["from"] == "environment":
        screen.warn([f"FOREWORD_{name.upper()} in the environment counts before the file"])
    screen.warn(found.problems)


@app.command()
def unset(name: Name) -> None:
    """Take one setting out of the file, so that the default counts again.

    \b
    Example:
      foreword config unset deadline_prompt_ms
    """
    from foreword.config.editing import unset as take_out

    if take_out(door.here(), name):
        _taken_over()
        screen.say(f"{name} is no longer in the file")
    else:
        screen.say(f"{name} was not in the file")


def _taken_over() -> Loaded:
    """The settings as they are now, in the hook as well: it must know of a switch before a worker is there again."""
    from foreword.hook.build import refresh

    found = _loaded()
    refresh(door.here(), found.settings)
    return found


def _loaded() -> Loaded:
    from foreword.config import load

    return load(door.here(), os.environ)


def _all(found: Loaded) -> list[dict[str, Any]]:
    from foreword.config import SETTINGS
    from foreword.layout import window_totals

    own = [
        {
            "name": each.name,
            "value": getattr(found.settings, each.name),
            "from": found.origin[each.name],
            "what": f"{each.what}{f' ({each.unit})' if each.unit else ''}",
        }
        for each in SETTINGS
    ]
    budgets = [
        {
            "name": f"recipes.{trigger}.budget",
            "value": recipe.budget,
            "from": found.origin["recipes"],
            "what": f"The most a {trigger} is given; docs/settings.md has its layers. (tokens)",
        }
        for trigger, recipe in found.settings.recipes.items()
    ]
    totals = [
        {
            "name": f"recipes.ledger.{name}",
            "value": tokens,
            "from": found.origin["recipes"],
            "what": "The most that one context window is given of it. (tokens)",
        }
        for name, tokens in window_totals(found.settings.recipes).items()
    ]
    return own + budgets + totals


def _one(found: Loaded, name: str) -> dict[str, Any]:
    here = next((each for each in _all(found) if each["name"] == name), None)
    value = _number(found.settings.recipes, name) if here is None else 0
    return here or {"name": name, "value": value, "from": found.origin["recipes"], "what": ""}


def _number(recipes: Mapping[str, Layout], name: str) -> int:
    """One number of a recipe, such as `recipes.session_start.rules.cap`."""
    match name.split("."):
        case ["recipes", trigger, layer, what] if trigger in recipes:
            for rule in recipes[trigger].layers:
                numbers = {"cap": rule.cap, "limit": rule.limit, "limit_away": rule.limit_away, **rule.groups}
                if rule.name == layer and what in numbers:
                    return numbers[what]
    raise BadConfig(f"{name!r} is not a setting", hint="`foreword config` lists the settings")


def _print_table(settings: list[dict[str, Any]]) -> None:
    screen.table(
        [(each["name"], _shown(each["value"]), each["from"], each["what"]) for each in settings],
        headings=("setting", "value", "from", "what it does"),
        bold={number for number, each in enumerate(settings) if each["from"] != "default"},
    )


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(value) if isinstance(value, (tuple, list)) else str(value)
