"""`search`, `context`, `explain`, `resume`, `sessions`, `graph`, `stats`: what is known, and what agents were given."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, folder, route
from foreword.cli.options import AllProjects, Json, Project, Since
from foreword.encoding import plural, sized
from foreword.errors import NotFound
from foreword.projects import resolve
from foreword.worker.client import Client

BODY = 240  # characters of a body in a list of results; `show` prints the rest
USED = {
    "fetched": "the agent fetched it",
    "command": "a command of it was run",
    "function": "a function of it was changed or called",
    "file": "a file of it was read or edited",
    "words": "the answer repeats it in other words",
}


def search(
    query: Annotated[list[str], typer.Argument(metavar="QUERY…", help="Words, function names or paths.")],
    *,
    kind: Annotated[list[str] | None, typer.Option(metavar="KIND", help="Only this kind; repeatable.")] = None,
    since: Since = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Maximum number of results (default: setting search_limit).")
    ] = None,
    compact: Annotated[bool, typer.Option("--compact", help="Print one line per result.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Print every factor of every score.")] = False,
    json: Json = False,
    project: Project = "",
) -> None:
    """Search memories, best match first.

    Searches this project's memories, those of its languages and the universal ones. Identifiers are found by their
    parts: `action` finds resource_for_action.
    """
    answer = connect().get(
        "/api/search",
        q=" ".join(query),
        project_path=folder(project),
        kinds=",".join(kind or ()),
        since=since,
        limit=limit,
        compact=int(compact) or None,
        explain=int(explain) or None,
    )
    output.exit_with_json(answer, enabled=json)
    output.warn(answer["problems"])
    if not answer["results"]:
        output.remark(f"nothing found in {answer['project']}")
    for number, result in enumerate(answer["results"]):
        if compact:
            output.write(result["line"])
        else:
            output.write("") if number else None
            _print_result(result)
        if explain:
            output.write(f"  {_factors(result)}")


def context(
    prompt: Annotated[list[str] | None, typer.Argument(metavar="[PROMPT]…", help="Default: a session start.")] = None,
    json: Json = False,
    project: Project = "",
) -> None:
    """Print exactly the context that an agent would get here, now.

    The context goes to stdout, its cost to stderr. Without a prompt it is what a new session begins with. When nothing
    relevant is known, stdout stays empty.
    """
    answer = connect().get("/api/context", prompt=" ".join(prompt or ()), project_path=folder(project), preview=1)
    output.exit_with_json(answer, enabled=json)
    if answer["context"]:
        output.write_raw(answer["context"])
    layers, skipped = _layers(answer)
    cost = [] if answer["context"] else [answer["why"] or "nothing relevant is known, so nothing is injected"]
    cost += [f"{answer['tokens']} of {answer['budget']} tokens", f"{answer['build_ms']:.1f} ms"]
    cost += [f"layers: {layers}"] if layers else []
    output.remark("; ".join([*cost, *([f"skipped: {skipped}"] if skipped else [])]))


def explain(
    id: Annotated[str, typer.Argument(metavar="[ID]", help="An injection or a memory (default: last injection).")] = "",
    json: Json = False,
    project: Project = "",
) -> None:
    """Explain what was injected and why, or why nothing was.

    Without an id: the last injection of this project, with its text exactly as the agent saw it, every factor of every
    score, whether each memory was used, and what was left out and why. When the last prompt got nothing, the reason
    comes first. For a memory: where it was shown, how often it was used, and its score now.
    """
    client = connect()
    if not id:
        answer = _last(client, folder(project))
    elif id.lower().startswith("inj"):
        answer = client.get(route("/api/injections", id))
    else:
        answer = client.get(route("/api/memories", id), full=1)
    output.exit_with_json(answer, enabled=json)
    for name in ("silence", "injection"):
        if answer.get(name):
            _print_answer(answer[name])
    if "memory" in answer:
        _print_shown(answer)


def resume(
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="Maximum number of sessions.")] = 10,
    json: Json = False,
    project: Project = "",
) -> None:
    """Print where things stand: handoffs, open items, recent sessions.

    It is the beginning of a session start's context; reading it here does not count as an injection.
    """
    answer = connect().get("/api/resume", project_path=folder(project), limit=limit)
    output.exit_with_json(answer, enabled=json)
    for heading, points in (("Where things stand", answer["standing"]), ("Recent sessions", answer["sessions"])):
        if points:
            output.write("\n".join([heading, *(point["text"] for point in points), ""]))
    if not answer["standing"] + answer["sessions"]:
        output.remark(f"nothing is known yet of {answer['name']}")


def sessions(
    id: Annotated[str, typer.Argument(metavar="[ID]", help="A session, or the beginning of its id.")] = "",
    *,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Maximum number of sessions.")] = 20,
    everything: AllProjects = False,
    json: Json = False,
    project: Project = "",
) -> None:
    """List this project's sessions, or show one in full.

    A session in full: its outcome, what is still open, its memories by kind, the functions it changed, and what was
    injected. `foreword show ID` has more of each memory.
    """
    client = connect()
    if id:
        story = client.get(route("/api/sessions", id))
        output.exit_with_json(story, enabled=json)
        _print_story(story)
        return
    answer = client.get("/api/sessions", project_path="" if everything else folder(project), limit=limit)
    output.exit_with_json({"sessions": answer["sessions"]}, enabled=json)
    for session in answer["sessions"]:
        about = f"{output.age(session['last'])}, {session['host']}, {plural(session['events'], 'events')}"
        output.write(f"{session['id'][:8]}  {session['title'] or '(untitled)'}  ({about})")
    if not answer["sessions"]:
        output.remark("no sessions here yet")


def graph(
    id: Annotated[str, typer.Argument(metavar="[ID]", help="A memory's id, or enough of its beginning.")] = "",
    *,
    calls: Annotated[str, typer.Option(metavar="NAME", help="A function or Class.method, instead of a memory.")] = "",
    json: Json = False,
    project: Project = "",
) -> None:
    """Show a memory's links, or a function's callers and calls.

    With --calls, the project's source files are read now; nothing is stored. Calls are matched by name, not by type:
    `a.save()` may call any `save`, and where several are defined, their number is printed.
    """
    if bool(id) == bool(calls):
        raise typer.BadParameter("give either the id of a memory, or --calls NAME")
    if calls:
        _print_calls(calls, folder(project), json=json)
        return
    answer = connect().get(route("/api/memories", id), full=1)
    output.exit_with_json({name: answer[name] for name in ("memory", "links")}, enabled=json)
    output.write(f"[{answer['memory']['kind']}] {_titled(answer['memory'])}")
    for link in answer["links"]:
        arrow = f"{link['relation']} ->" if link["forth"] else f"<- {link['relation']}"
        output.write(f"  {arrow} [{link['kind']}] {_titled(link)}")


def stats(
    project: Project = "",
    everything: AllProjects = False,
    days: Annotated[int, typer.Option("--days", "-d", metavar="N", min=1, max=3650, help="Days, with today.")] = 30,
    json: Json = False,
) -> None:
    """Show what was injected, whether it was used, and what it cost.

    Injections and their tokens, items used and ignored, why nothing was injected, build times, memories by kind, and
    the size of the store.
    """
    answer = connect().get("/api/stats", days=days, **({} if everything else {"project_path": folder(project)}))
    output.exit_with_json(answer, enabled=json)
    name = answer["name"] or answer["project"] or "all projects"
    output.write(f"{name}, {answer['from']} to {answer['to']} (local days)\n")
    injections, tokens, items = (answer[part] for part in ("injections", "tokens", "items"))
    away = f", {injections['away']:,} of them by hooks without the worker" if injections["away"] else ""
    average = f", {tokens['per_injection']:,.0f} each" if injections["total"] else ""
    fields = [
        ("injections", f"{injections['total']:,}{away}"),
        ("tokens", f"{tokens['given']:,}{average}"),
        ("items", "{shown:,} shown: {used:,} used, {ignored:,} ignored, {unjudged:,} unknown".format(**items)),
        ("hit rate", _percent(items["hit_rate"])),
        ("per used item", f"{tokens['per_used_item']:,.0f} tokens" if items["used"] else "-"),
        ("memories", f"{answer['memories']['total']:,}"),
        ("store", f"{sized(answer['store']['bytes'])} for all projects"),
    ]
    output.fields(fields)
    used = "{used:,} used, {ignored:,} ignored, {shown:,} shown"
    took = "median {median:.1f} ms, p95 {p95:.1f}, max {max:.1f}"
    tables: dict[str, list[list[str]]] = {
        "injections by trigger": [[name, f"{n:,}"] for name, n in injections["by_trigger"].items()],
        "used of used and ignored, by kind": [
            [name, _percent(each["hit_rate"]), used.format(**each)] for name, each in items["by_kind"].items()
        ],
        "no context, by reason": [
            [trigger, why, f"{n:,}"] for trigger, reasons in answer["no_context"].items() for why, n in reasons.items()
        ],
        "build time": [[name, took.format(**each)] for name, each in answer["build_ms"].items()],
        "memories by kind": [[name, f"{n:,}"] for name, n in answer["memories"]["by_kind"].items()],
    }
    for title, rows in tables.items():
        if rows:
            output.write(f"\n{title}")
            output.table([[f"  {first}", *rest] for first, *rest in rows], headings=())


def _print_result(result: dict[str, Any]) -> None:
    output.write(result["title"], style=output.BOLD)
    about = [result["id"], result["kind"], output.age(result["created"]), f"score {result['score']:.2f}"]
    about += ["dormant"] if result.get("asleep") else []
    output.write("  " + "  ".join(about + result["files"][:3]), style=output.DIM)
    detail = result["detail"]
    substance = detail.get("fixed_by") or detail.get("solution") or detail.get("why") or result["body"]
    if text := " ".join(str(substance).split()):
        output.write(f"  {text[:BODY]}{'…' if len(text) > BODY else ''}")


def _factors(item: dict[str, Any]) -> str:
    """Return the factors of a score as a product."""
    product = " × ".join(f"{name} {factor:.3f}" for name, factor in item["why"].items())
    return f"{product} = {item['score']:.4f}"


def _layers(answer: dict[str, Any]) -> tuple[str, str]:
    """Return the layers of a context with their tokens, and those that were left out with the reason."""
    layers = ", ".join(f"{name} {tokens}" for name, tokens in answer["layers"].items())
    return layers, ", ".join(f"{name} ({why})" for name, why in answer["skipped"].items() if why != "empty")


def _titled(memory: dict[str, Any]) -> str:
    status = "" if memory["status"] == "active" else f" ({memory['status']})"
    return f"{memory['id']}  {memory['title']}{status}"


def _last(client: Client, folder: str) -> dict[str, Any]:
    """Return the last injection of a project, and the last trigger without context if that was later."""
    injections = client.get("/api/injections", project_path=folder, limit=1)["injections"]
    nothing = client.get("/api/injections", project_path=folder, limit=1, empty=1)["injections"]
    if not (injections or nothing):
        raise NotFound("nothing was injected in this project yet", hint="`foreword context` prints what would be")
    later = nothing[0] if nothing and (not injections or nothing[0]["at"] > injections[0]["at"]) else None
    last = client.get(route("/api/injections", injections[0]["id"])) if injections else {"injection": None}
    return {**last, "silence": later}


def _print_answer(row: dict[str, Any]) -> None:
    """Print an injection with its text and items, or when and why nothing was injected; and what was left out."""
    nearest = f"{row['nearest']}  {row['title'] or '(removed)'}" if row.get("nearest") else ""
    if nearest and row["why"] == "below":
        nearest += f", scored {row['score']:.3f}, needed {row['needed']:.3f}"
    if not row["tokens"]:
        output.write(f"nothing was injected: {row['says'] or row['why']}")
    layers, skipped = _layers(row)
    fields = [
        ("trigger", f"{row['trigger']} ({row['source']})" if row["source"] else row["trigger"]),
        ("when", output.time_and_age(row["at"])),
        ("agent", f"{row['host']}{', answered by the hook itself: no worker ran' if row['away'] else ''}"),
        ("session", row["session"]),
        ("project", row["project"]),
        ("id", row["id"]),
        ("nearest", nearest),
        ("cost", f"{row['tokens']} of {row['budget']} tokens, {row['build_ms']:.1f} ms"),
        ("searched for", ", ".join(row["terms"])),
        ("files", ", ".join(row["files"])),
        ("layers", layers),
        ("skipped", skipped),
    ]
    output.fields(fields)
    output.write_raw(f"\n{row['text']}\n") if row.get("text") else None
    for item in row.get("items", ()):
        output.write(f"{item['memory']}  {item['layer']}, {item['tokens']} tokens  {item['title'] or '(removed)'}")
        _print_score_and_usage(item)
    for rejected in row.get("rejected", ()):
        output.write(f"left out: {output.memory_line({**rejected, 'id': rejected['memory']})}\n  {rejected['why']}")


def _print_shown(answer: dict[str, Any]) -> None:
    """Print where a memory was shown, how often it was used, and its score now."""
    memory, use = answer["memory"], answer["use"]
    output.write(output.memory_line(memory))
    output.write(f"score now, without words to match: {_factors(answer)}")
    if memory["status"] != "active":
        output.write(f"no longer injected: it is {memory['status']}")
    unknown = use["shown"] - use["used"] - use["ignored"]
    output.write(f"shown {use['shown']}x: used {use['used']}x, not used {use['ignored']}x, unknown {unknown}x")
    for shown in answer["shown"]:
        where = ", ".join(filter(None, (shown["trigger"], shown["layer"], shown["host"], shown["session"])))
        output.write(f"{shown['injection']}  {output.time_and_age(shown['at'])}, {where}")
        _print_score_and_usage(shown)


def _print_score_and_usage(item: dict[str, Any]) -> None:
    if item["used"] is None:
        usage = "cannot tell whether it was used" if item["how"] else "not evaluated yet"
    else:
        usage = f"used: {USED.get(item['how'], item['how'])}" if item["used"] else "not used"
    output.write(f"  {_factors(item)}\n  {usage}")


def _print_story(story: dict[str, Any]) -> None:
    """Print a session: its outcome, what is open, its memories with their substance, its changes, what it was given."""
    session, blocks = story["session"], [each for each in story["steps"] if each["what"] == "injected"]
    tokens, lasted = sum(each["tokens"] for each in blocks), session["last"] - session["started"]
    reasons = Counter(each["says"] or each["why"] for each in story["no_context"])
    fields = [
        ("session", session["id"]),
        ("agent", session["host"]),
        ("when", f"{output.time_and_age(session['started'])}, for {output.duration(lasted)}"),
        ("title", session["title"]),
        ("still open", "\n".join(session["next"])),
        ("was given", f"{plural(len(blocks), 'blocks')}, {tokens} tokens"),
        ("was given nothing", "\n".join(f"{times} × {why}" for why, times in reasons.most_common())),
    ]
    output.fields(fields)
    for memory in sorted(story["memories"], key=lambda memory: memory["kind"] != "summary"):
        detail = {**memory["detail"], **(memory.get("here") or {})}
        more = detail.get("fix") or detail.get("outcome") or detail.get("why")
        more = more or (memory["body"] if memory["kind"] == "summary" else "")
        output.write(f"[{memory['kind']}] {_titled(memory)}" + (f"\n  → {more}" if more else ""))
    for change in session["changed"]:
        output.write(f"{change['file']}  {change['signature'] or change['function']}  [{change['what']}]")


def _print_calls(name: str, path: str, *, json: bool) -> None:
    """Print who calls a function and what it calls; one call may be of any definition of a name, and is listed once."""
    from foreword.code.callgraph import read_calls

    with output.console().status("reading files"):
        read = read_calls(resolve(path).root)
    if not read.complete:
        output.warn([f"only {read.files} files were read within the limits of time and size"])
    places = read.named(name)
    calls = {"called_by": read.callers(places), "calls": read.called(places)}
    rows_of = {heading: [call._asdict() for call in each] for heading, each in calls.items()}
    about = {"definitions": [vars(place) for place in places], "files": read.files, "complete": read.complete}
    output.exit_with_json({**about, **rows_of}, enabled=json)
    for place in places:
        output.write(f"{place.signature or place.function}  {place.file}:{place.line}")
    for heading, rows in rows_of.items():
        title = heading.replace("_", " ")
        output.write(f"\n{title}:" if rows else f"\n{title}: nothing that is defined here")
        for row in rows:
            mark = f"  (one of {row['several']})" if row["several"] else ""
            output.write(f"  {row['function'] or '(the file itself)'}  {row['file']}:{row['line']}{mark}")


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate * 100:.0f} %"
