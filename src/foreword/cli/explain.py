"""An injection's id -> what was given there or why nothing was; a memory's id -> where it was shown, what it weighs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json, Project
from foreword.errors import NotFound
from foreword.worker.client import Client

INJECTION = "inj-"
USED = {
    "fetched": "the agent fetched it",
    "command": "a command of it was run",
    "function": "a function of it was changed or called",
    "file": "a file of it was read or edited",
    "words": "the answer said it in other words",
}


def explain(
    id: Annotated[str, typer.Argument(metavar="[ID]", help="An injection or a memory; else the last injection.")] = "",
    json: Json = False,
    project: Project = "",
) -> None:
    """Tell what an agent was given, and why, or why it was given nothing; or where a memory was shown.

    Without an id it is the last injection of this project: when and to whom, the text exactly as the agent saw it,
    every factor of every score, whether each memory was used, and what was left out and why. Where the last prompt got
    nothing, it tells why first. For a memory: where it was shown, how often it was used, and what it weighs now.

    \b
    Examples:
      foreword explain
      foreword explain inj-7k2m9qxwab
      foreword explain dec-7k2m9qxw
    """
    client = door.worker(door.here())
    if not id:
        answer = _last(client, door.folder(project))
    elif id.startswith(INJECTION):
        answer = client.get(door.path("/api/injections", id))
    else:
        answer = client.get(door.path("/api/memories", id), explain=1)
    if json:
        screen.as_json(answer)
        return
    if answer.get("silence"):
        _print_silence(answer["silence"])
        screen.say("")
    if answer.get("injection"):
        _print_injection(answer["injection"])
    elif "memory" in answer:
        _print_memory(answer)


def _last(client: Client, folder: str) -> dict[str, Any]:
    """What was given last in a project, and why nothing was said since, where that is so."""
    given = client.get("/api/injections", project_path=folder, limit=1)["injections"]
    silent = client.get("/api/silences", project_path=folder, limit=1)["silences"]
    if not (given or silent):
        raise NotFound("nothing was given in this project yet", hint="`foreword context` tells what would be given")
    silence = silent[0] if silent and (not given or silent[0]["at"] > given[0]["at"]) else None
    told = client.get(door.path("/api/injections", given[0]["id"])) if given else {"injection": None}
    return {**told, "silence": silence}


def factors(why: dict[str, float]) -> str:
    return " × ".join(f"{name} {factor:.3f}" for name, factor in why.items())


def told_use(item: dict[str, Any]) -> str:
    """Whether an item was used, as far as anybody can tell."""
    if item["used"]:
        return f"used: {USED.get(item['how'], item['how'])}"
    if item["used"] is False:
        return "not used"
    return "cannot tell whether it was used" if item["how"] else "not judged yet"


def nearest_of(silence: dict[str, Any]) -> str:
    """The best that was weighed, with its score and the one that it needed."""
    if not silence["nearest"]:
        return ""
    scored = silence["why"] == "below" and silence["score"] < silence["needed"]
    scores = f", {silence['score']:.3f}, needed {silence['needed']:.3f}" if scored else ""
    return f"{silence['nearest']}  {silence['title'] or '(no longer there)'}{scores}"


def _print_silence(silence: dict[str, Any]) -> None:
    screen.say(f"nothing was injected: {silence['says'] or silence['why']}")
    rows = (
        ("nearest", nearest_of(silence)),
        ("silence", silence["id"]),
        (
            "trigger",
            " ".join(filter(None, (silence["trigger"], f"({silence['source']})" if silence["source"] else ""))),
        ),
        ("when", _when(silence["at"])),
        ("host", f"{silence['host']}{', by the hook alone: the worker was away' if silence['away'] else ''}"),
        ("session", silence["session"]),
    )
    screen.rows((name, told) for name, told in rows if told)
    _print_rejected(silence.get("rejected", ()))


def _print_rejected(rejected: Iterable[dict[str, Any]]) -> None:
    """What was weighed and left out, and why each."""
    for each in rejected:
        screen.say(f"left out: {screen.memory({**each, 'id': each['memory']})}")
        screen.say(f"  {each['why']}")


def _print_injection(given: dict[str, Any]) -> None:
    trigger = " ".join(filter(None, (given["trigger"], f"({given['source']})" if given["source"] else "")))
    screen.rows(
        (name, told)
        for name, told in (
            ("injection", given["id"]),
            ("trigger", f"{trigger}, as {given['form']}"),
            ("when", _when(given["at"])),
            ("host", f"{given['host']}{', by the hook alone: the worker was away' if given['away'] else ''}"),
            ("session", given["session"]),
            ("project", given["project"]),
            ("cost", f"{given['tokens']} of {given['budget']} tokens, {given['build_ms']:.1f} ms"),
            ("looked for", ", ".join(given["terms"])),
            ("files", ", ".join(given["files"])),
            ("layers", ", ".join(f"{name} {tokens}" for name, tokens in given["layers"].items())),
        )
        if told
    )
    screen.say("")
    screen.exactly(given["text"])
    screen.say("")
    for item in given["items"]:
        screen.say(
            f"{item['memory']}  {item['layer']}, {item['tokens']} tokens  {item['title'] or '(no longer there)'}"
        )
        screen.say(f"  {factors(item['why'])} = {item['score']:.4f}")
        screen.say(f"  {told_use(item)}")
    _print_rejected(given.get("rejected", ()))
    for layer, why in given["skipped"].items():
        if why != "empty":
            screen.say(f"skipped {layer}: {why}")


def _print_memory(answer: dict[str, Any]) -> None:
    memory = answer["memory"]
    screen.say(screen.memory(memory))
    screen.say(f"now, without words to match: {factors(answer['why'])} = {answer['score']:.4f}")
    if memory["status"] != "active":
        screen.say(f"never shown any more: it is {memory['status']}")
    use = answer["use"]
    if answer["shown"]:
        untold = use["shown"] - use["used"] - use["ignored"]
        screen.say(f"shown {use['shown']}x: used {use['used']}x, not used {use['ignored']}x, not judged {untold}x")
    else:
        screen.aside("it was never shown")
    for each in answer["shown"]:
        where = ", ".join(filter(None, (each["trigger"], each["layer"], each["host"], each["session"])))
        screen.say(f"{each['injection']}  {_when(each['at'])}, {where}")
        screen.say(f"  {factors(each['why'])} = {each['score']:.4f}")
        screen.say(f"  {told_use(each)}")


def _when(at: float) -> str:
    from foreword.recall.render import ago

    return f"{screen.minute(at)} ({ago(time.time() - at)})"
