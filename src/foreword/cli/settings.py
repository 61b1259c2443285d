"""`config`, `model` and `project`: show and change the settings, the optional model, and what is known of a project."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import LONG, connect, folder, refuse_agents, this_home
from foreword.cli.options import Json, Project, Yes
from foreword.config import SETTINGS, Loaded, change, load, unset
from foreword.encoding import plural
from foreword.errors import BadRequest, ModelError
from foreword.hook.build import refresh
from foreword.layout import window_budget
from foreword.policy import FILE
from foreword.projects import resolve
from foreword.worker.client import Client

TRIAL_SECONDS = 630.0  # the longest `model_seconds`, and some for the worker
OFF, READ_ONLY, SILENT = "off_projects", "read_only_projects", "silent_projects"
STATES = {
    OFF: "off: nothing is captured or injected",
    READ_ONLY: "read-only: nothing is captured",
    SILENT: "silent: nothing is injected",
}

config_app = typer.Typer(name="config", rich_markup_mode=None)
model_app = typer.Typer(name="model", rich_markup_mode=None)
project_app = typer.Typer(name="project", rich_markup_mode=None, no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="A setting, such as inject or layout.prompt.budget.")]
Which = Annotated[str, typer.Argument(metavar="[PATH|KEY]", help="A folder, key or name (default: this folder).")]
Capture = Annotated[bool, typer.Option("--capture", help="Only stop or start capturing.")]
Inject = Annotated[bool, typer.Option("--inject", help="Only stop or start injecting.")]


@config_app.callback(invoke_without_command=True)
def config(context: typer.Context, json: Json = False) -> None:
    """Show and change the settings.

    Without a command: every setting, its value, where that comes from, and what it does. Settings are kept in
    config.toml in the Foreword home; what you write there by hand is not touched.
    """
    if context.invoked_subcommand is not None:
        return
    loaded, file = load(this_home(), os.environ), this_home().config
    settings = _settings(loaded)
    output.warn(loaded.problems)
    output.exit_with_json({"file": str(file), "settings": settings, "problems": list(loaded.problems)}, enabled=json)
    rows = [(row["name"], _text(row["value"]), row["from"], row["what"]) for row in settings]
    output.table(rows, headings=("setting", "value", "from", "what it does"))
    output.remark(f"file: {file}")


@config_app.command("set")
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


@config_app.command("unset")
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
    output.exit_with_json(about, enabled=json)
    if about["provider"] == "off":
        output.write("model  off; docs/model.md explains how to turn it on")
        return
    output.fields(
        [
            ("model", f"{about['provider']} {about['model']}".strip()),
            ("where", about["where"] or "-"),
            ("state", "not usable" if about["problem"] else "usable"),
            ("spent", f"{about['spent_tokens']:,} of {about['daily_tokens']:,} tokens in the last 24 hours"),
            ("waiting", f"{about['waiting']} sessions"),
            ("problem", about["problem"]),
        ]
    )


@model_app.command("try")
def try_model() -> None:
    """Ask the model for one word, and print what that took; the tokens count for the daily limit."""
    answer = connect(seconds=TRIAL_SECONDS).post("/api/model", {})
    if not answer["ok"]:
        raise ModelError(answer["error"], hint=answer["hint"])
    tokens = [str(count) if count >= 0 else "?" for count in (answer["tokens_in"], answer["tokens_out"])]
    cost = f"{tokens[0]} tokens in, {tokens[1]} out, {output.duration(answer['took_ms'] / 1000)}"
    output.write(f"{answer['provider']} {answer['model']} at {answer['where']} answers: {cost}")


@project_app.callback()
def project() -> None:
    """Show and change what is known of a project.

    A project is found by its git remote, else by its repository's folder, else by the nearest folder with a project
    file. Where that is not what you mean, `merge` makes two projects one.
    """


@project_app.command("show")
def show_project(which: Which = "", json: Json = False) -> None:
    """Show folders, memories by kind, facts, aliases and switches of a project."""
    answer = _about(connect(), which)
    output.exit_with_json(answer, enabled=json)
    kinds = ", ".join(f"{count} {kind}" for kind, count in answer["kinds"].items())
    output.fields(
        [
            ("name", answer["name"]),
            ("key", answer["key"]),
            ("folders", "\n".join(answer["roots"])),
            ("memories", f"{answer['memories']}{f' ({kinds})' if kinds else ''}"),
            ("sessions", str(answer["sessions"])),
            ("last seen", output.local_time(answer["last"])),
            *_facts(answer),
            ("aliases", "\n".join(answer["aliases"])),
            ("switched", "\n".join(_states(which, answer))),
        ]
    )
    for hint in answer["hints"]:
        output.remark(hint)


@project_app.command("list")
def list_projects(json: Json = False) -> None:
    """List all projects, the last used first."""
    answer = connect().get("/api/projects")
    output.exit_with_json(answer, enabled=json)
    lines = []
    for project in answer["projects"]:
        key = f"{project['key']} -> {project['alias_of']}" if project["alias_of"] else str(project["key"])
        counts = [str(project["memories"]), str(project["sessions"])]
        lines.append([project["name"] or "-", *counts, output.local_time(project["last"]), key])
    output.table(lines, headings=("name", "memories", "sessions", "last seen", "key"))


@project_app.command("set")
def set_facts(
    *,
    role: Annotated[str | None, typer.Option(metavar="TEXT", help="What the project is for, in a line.")] = None,
    contract: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="What others rely on; repeatable.")] = None,
    depends_on: Annotated[list[str] | None, typer.Option(metavar="NAME", help="What it needs; repeatable.")] = None,
    project: Project = "",
) -> None:
    """Describe a project to agents. What you give replaces the old value; an empty text removes it."""
    refuse_agents()
    client, path = connect(), folder(project)
    facts = {"role": role, "contracts": contract, "depends_on": depends_on}
    facts = {name: value for name, value in facts.items() if value is not None}
    if not facts:
        raise BadRequest("no value to set", hint="give --role, --contract or --depends-on")
    about = client.get("/api/project", project_path=path)
    detail = {name: value for name, value in {**about["facts"], **facts}.items() if value not in ("", [""])}
    memory = {"kind": "project", "title": detail.get("role") or about["name"], "uid": about["uid"]}
    client.post("/api/memories", {**memory, "detail": detail, "project_path": path})
    answer = client.get("/api/project", project_path=path)
    output.fields(_facts(answer))
    output.remark(f"stored for {answer['name']} ({answer['key']})")


@project_app.command()
def merge(
    other: Annotated[str, typer.Argument(metavar="OTHER", help="Another project, by folder, key or name.")],
    *,
    into: Annotated[str, typer.Option(metavar="PATH", help="A folder of the target (default: this one).")] = "",
    yes: Yes = False,
) -> None:
    """Move everything of another project here, and treat its folder or key as this project from now on.

    Of two equal memories, the one here counts. It cannot be undone.
    """
    refuse_agents()
    client = connect(seconds=LONG)
    if not yes:
        contents = client.get("/api/project", of=_name_or_folder(other))
        counts = f"{plural(contents['memories'], 'memories')} and {plural(contents['sessions'], 'sessions')}"
        output.confirm(f"Move all of {contents['key']} here ({counts})? This cannot be undone.")
    answer = client.post("/api/project/merge", {"other": _name_or_folder(other), "project_path": folder(into)})
    rows = ", ".join(f"{count:,} {table}" for table, count in answer["rows"].items() if count and table != "log")
    output.write(f"{answer['from']} -> {answer['into']}: {rows or 'nothing was stored there'}")


@project_app.command()
def off(which: Which = "", *, capture: Capture = False, inject: Inject = False) -> None:
    """Capture and inject nothing in a project, or stop one of the two."""
    _switch(which, capture=capture, inject=inject, on=False)


@project_app.command()
def on(which: Which = "", *, capture: Capture = False, inject: Inject = False) -> None:
    """Capture and inject again in a project."""
    _switch(which, capture=capture, inject=inject, on=True)


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


def _switch(which: str, *, capture: bool, inject: bool, on: bool) -> None:
    """Write the keys of a project and its aliases into the settings, or take them out."""
    refuse_agents()
    names = [name for name, chosen in ((READ_ONLY, capture), (SILENT, inject)) if chosen]
    names = names or (list(STATES) if on else [OFF])
    home, client = this_home(), connect()
    about = _about(client, which)
    keys, before = [about["key"], *about["aliases"]], load(home, os.environ).settings
    for name in names:
        others = [each for each in getattr(before, name) if each not in keys]
        after = others if on else [*others, *keys]
        if wrong := [each for each in after if "," in each]:
            raise BadRequest(f"{wrong[0]} has a comma in it", hint=f"write {name} into {home.config} by hand")
        if tuple(after) != tuple(getattr(before, name)):
            change(home, name, ",".join(after))
    _reload()
    about = _about(client, which)
    states = _states(which, about)
    output.write(f"{about['name'] or about['key']} is {'; '.join(states) or 'on: captured and injected'}")


def _about(client: Client, which: str) -> dict[str, Any]:
    return client.get("/api/project", of=_name_or_folder(which), project_path=folder())


def _states(which: str, about: dict[str, Any]) -> list[str]:
    """Return what is switched off by the settings, and by a file in the repository itself."""
    path = _name_or_folder(which) or folder()
    root = about["root"] or (resolve(path).root if path.startswith("/") else "")
    by_file = [f"off by its own {FILE}"] if root and os.path.lexists(os.path.join(root, FILE)) else []
    return [*(STATES[name] for name, is_off in about["switches"].items() if is_off), *by_file]


def _facts(about: dict[str, Any]) -> list[tuple[str, str]]:
    facts = about["facts"].items()
    return [(name.replace("_", " "), value if name == "role" else "\n".join(value)) for name, value in facts]


def _name_or_folder(name: str) -> str:
    """Return a folder as its absolute path, and a key or name as it is."""
    is_folder = name.startswith(("/", "~", ".")) or (name and os.path.isdir(name))
    return folder(name) if is_folder else name
