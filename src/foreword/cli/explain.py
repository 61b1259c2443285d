"""`explain`: what an agent was given and why, why it was given nothing, or where a memory was shown."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, folder, full_id, route
from foreword.cli.options import Json, Project
from foreword.errors import NotFound
from foreword.worker.client import Client

INJECTION = "inj-"
USED = {
    "fetched": "the agent fetched it",
    "command": "a command of it was run",
    "function": "a function of it was changed or called",
    "file": "a file of it was read or edited",
    "words": "the answer repeats it in other words",
}


def explain(
    id: Annotated[str, typer.Argument(metavar="[ID]", help="An injection or a memory (default: last injection).")] = "",
    json: Json = False,
    project: Project = "",
) -> None:
    """Explain what an agent was given and why, or why nothing.

    Without an id: the last injection of this project, with its text exactly as the agent saw it, every factor of every
    score, whether each memory was used, and what was left out and why. When the last prompt got nothing, the reason
    comes first. For a memory: where it was shown, how often it was used, and its score now.

    \b
    Examples:
      foreword explain
      foreword explain inj-7k2m9qxwab
      foreword explain dec-7k2m9qxw
    """
    client = connect()
    id = full_id(client, id) if id else ""
    if not id:
        answer = _last(client, folder(project))
    elif id.startswith(INJECTION):
        answer = client.get(route("/api/injections", id))
    else:
        answer = client.get(route("/api/memories", id), explain=1)
    if json:
        output.write_json(answer)
        return
    if answer.get("silence"):
        _print_no_context(answer["silence"])
        output.write("")
    if answer.get("injection"):
        _print_injection(answer["injection"])
    elif "memory" in answer:
        _print_memory(answer)


def factors(why: dict[str, float]) -> str:
    """Return the factors of a score as a product."""
    return " × ".join(f"{name} {factor:.3f}" for name, factor in why.items())


def _last(client: Client, folder: str) -> dict[str, Any]:
    """Return the last injection of a project, and the last time that nothing was given if that was later."""
    injections = client.get("/api/injections", project_path=folder, limit=1)["injections"]
    nothing = client.get("/api/no-context", project_path=folder, limit=1)["no_context"]
    if not (injections or nothing):
        raise NotFound("nothing was given in this project yet", hint="`foreword context` prints what would be given")
    later = nothing[0] if nothing and (not injections or nothing[0]["at"] > injections[0]["at"]) else None
    last = client.get(route("/api/injections", injections[0]["id"])) if injections else {"injection": None}
    return {**last, "silence": later}


def _print_no_context(row: dict[str, Any]) -> None:
    output.write(f"nothing was injected: {row['says'] or row['why']}")
    nearest = f"{row['nearest']}  {row['title'] or '(removed)'}" if row["nearest"] else ""
    if nearest and row["why"] == "below":
        nearest += f", scored {row['score']:.3f}, needed {row['needed']:.3f}"
    output.fields([("nearest", nearest), ("id", row["id"]), *_circumstances(row)])
    _print_rejected(row)


def _circumstances(row: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the fields that an injection and a time without one have in common."""
    source = f" ({row['source']})" if row["source"] else ""
    return [
        ("trigger", f"{row['trigger']}{source}"),
        ("when", output.time_and_age(row["at"])),
        ("agent", f"{row['host']}{', answered by the hook itself: no worker ran' if row['away'] else ''}"),
        ("session", row["session"]),
    ]


def _print_rejected(row: dict[str, Any]) -> None:
    for each in row.get("rejected", ()):
        output.write(f"left out: {output.memory_line({**each, 'id': each['memory']})}\n  {each['why']}")


def _print_injection(injection: dict[str, Any]) -> None:
    output.fields(
        [
            ("injection", injection["id"]),
            *_circumstances(injection),
            ("project", injection["project"]),
            ("cost", f"{injection['tokens']} of {injection['budget']} tokens, {injection['build_ms']:.1f} ms"),
            ("searched for", ", ".join(injection["terms"])),
            ("files", ", ".join(injection["files"])),
            ("layers", ", ".join(f"{name} {tokens}" for name, tokens in injection["layers"].items())),
            ("skipped", ", ".join(f"{name} ({why})" for name, why in injection["skipped"].items() if why != "empty")),
        ]
    )
    output.write_raw(f"\n{injection['text']}\n")
    for item in injection["items"]:
        output.write(f"{item['memory']}  {item['layer']}, {item['tokens']} tokens  {item['title'] or '(removed)'}")
        _print_score_and_usage(item)
    _print_rejected(injection)


def _print_memory(answer: dict[str, Any]) -> None:
    memory, use = answer["memory"], answer["use"]
    output.write(output.memory_line(memory))
    output.write(f"score now, without words to match: {factors(answer['why'])} = {answer['score']:.4f}")
    if memory["status"] != "active":
        output.write(f"no longer given: it is {memory['status']}")
    unknown = use["shown"] - use["used"] - use["ignored"]
    output.write(f"shown {use['shown']}x: used {use['used']}x, not used {use['ignored']}x, unknown {unknown}x")
    for each in answer["shown"]:
        where = ", ".join(filter(None, (each["trigger"], each["layer"], each["host"], each["session"])))
        output.write(f"{each['injection']}  {output.time_and_age(each['at'])}, {where}")
        _print_score_and_usage(each)


def _print_score_and_usage(item: dict[str, Any]) -> None:
    if item["used"] is None:
        usage = "cannot tell whether it was used" if item["how"] else "not evaluated yet"
    else:
        usage = f"used: {USED.get(item['how'], item['how'])}" if item["used"] else "not used"
    output.write(f"  {factors(item['why'])} = {item['score']:.4f}\n  {usage}")
