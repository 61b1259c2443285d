"""Measure the viewer over a large store: the answer time of what its pages ask, and how long a hook waits meanwhile.

`make bench ARGS=viewer`, or `python bench/viewer.py --memories 20000`. No time is asserted.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
from store import SEED, Words, bulk, key_of, memories, quantile, say, shares

from foreword.models import UNIVERSAL, Injection, Item, Memory, Project, Session
from foreword.paths import Home
from foreword.store import Store
from foreword.viewer.app import ViewerServer
from foreword.worker import lifecycle
from foreword.worker.client import Client

TAGS = 400
SESSIONS = 1_000  # with an injection each
STATUSES = {"active": 88, "superseded": 6, "stale": 3, "discarded": 3}
TRUSTED = {"agent": 60, "tool": 25, "imported": 10, "user": 5}
CLIENTS = 4  # that ask the viewer without a pause while a hook asks for its context
ROUTES = (
    "/api/memories", "/api/facets", "/api/memories?q={q}", "/api/facets?q={q}", "/api/memories?tag={q}",
    "/api/memories?file=src/", "/api/timeline", "/api/live", "/api/health?full=1", "/api/stats?days=30",
)  # fmt: skip


def main() -> None:
    options = arguments()
    root = Path(tempfile.mkdtemp(prefix="fw-"))
    home = Home(root / "h")
    home.prepare()
    os.environ["FOREWORD_HOME"] = str(home.root)
    try:
        say(f"{options.memories:,} memories: building ...")
        grown(home.database, options.memories, options.seed)
        lifecycle.start(home)
        server = ViewerServer(home)
        server.start()
        try:
            found = measured(home, server, root / "work", options)
        finally:
            server.close("the benchmark ended")
            lifecycle.stop(home)
    finally:
        shutil.rmtree(root)
    print(report(found))
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=20, help="that each route is asked, and prompts of a hook")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--json", metavar="FILE", help="write every number there too")
    return parser.parse_args()


def grown(path: Path, size: int, seed: int) -> None:
    """Memories of 50 projects and some of everybody, of every status and trust, with tags; and sessions."""
    words = Words(seed)
    tags = words.content(TAGS)
    parts = [(f"project:{key_of(at)}", at, count) for at, count in enumerate(shares(size))]
    everywhere = [
        (scope, len(parts) + at, max(20, size // 200)) for at, scope in enumerate(("language:python", UNIVERSAL))
    ]
    store = bulk(
        path, ((scope, dressed(words, tags, scope, part, count)) for scope, part, count in (*parts, *everywhere))
    )
    store.projects.see([Project(key_of(at), f"bench-{at:02}", "") for at in range(len(parts))], at=time.time())
    lived(store, path, random.Random(seed))
    store.close()


def dressed(words: Words, tags: list[str], scope: str, part: int, count: int) -> Iterator[Memory]:
    """The memories of a scope as a year leaves them: some were replaced, some pinned, most have a tag."""
    chance = random.Random(f"{SEED} {part}")
    often = [1 / rank for rank in range(1, len(tags) + 1)]
    for memory in memories(words, part, count, key=key_of(part % 50), now=time.time()):
        yield replace(
            memory,
            scope=scope,
            status=chance.choices(list(STATUSES), weights=list(STATUSES.values()))[0],
            trust=chance.choices(list(TRUSTED), weights=list(TRUSTED.values()))[0],
            pinned=chance.random() < 0.005,
            used=int(chance.expovariate(1.0)),
            tags=tuple(dict.fromkeys(chance.choices(tags, weights=often, k=chance.randint(0, 4)))),
        )


def lived(store: Store, path: Path, chance: random.Random) -> None:
    """Sessions of the last month, with an injection each."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    known = [id for (id,) in db.execute("SELECT id FROM memories ORDER BY place LIMIT 5000")]
    named = [
        (session, project)
        for session, project in db.execute(
            "SELECT session, min(project) FROM memories GROUP BY session ORDER BY count(*) DESC LIMIT ?", (SESSIONS,)
        )
    ]
    db.close()
    for number, (session, project) in enumerate(named):
        at = time.time() - number * 2_500.0
        store.save(Session(session, "claude-code", project, "/", at, at + 1_800.0, at + 1_800.0, events=40))
        items = tuple(Item(id, "index", 0.5, 40, {"words": 0.5}) for id in chance.sample(known, min(8, len(known))))
        injection = Injection(
            id=f"inj-{number:08}", trigger="session_start", session=session, project=project, host="claude-code", at=at,
            tokens=320, budget=1500, build_ms=2.0, layers={"index": 320}, skipped={}, items=items, text="given " * 200,
        )  # fmt: skip
        store.injections.record(injection)


def measured(home: Home, server: ViewerServer, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    chance = random.Random(options.seed)
    texts = queries(home.database, options.times, chance)
    cookie = _cookie(server)
    say("asking ...")
    routes: dict[str, list[float]] = {}
    for route in ROUTES:
        ask(server, cookie, route.format(q="warm"))
        routes[route] = [ask(server, cookie, route.format(q=quote(text))) for text in texts]
    say("hooks ...")
    git = folder / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(f'[remote "origin"]\n\turl = https://{key_of(0)}.git\n')
    client = Client(home, seconds=60)

    def hooks() -> list[float]:
        times = []
        for text in texts:
            began = time.perf_counter()
            client.get(
                "/api/context", project_path=folder, prompt=f"why does {text} fail?", trigger="prompt", preview=1
            )
            times.append((time.perf_counter() - began) * 1000)
            time.sleep(0.02)
        return times

    hooks()
    waited = {"nobody looks": hooks()}
    ended = threading.Event()

    def look(seed: int) -> None:
        mine = random.Random(seed)
        while not ended.is_set():
            ask(server, cookie, mine.choice(ROUTES).format(q=quote(mine.choice(texts)[: mine.randint(1, 9)])))

    crowd = [threading.Thread(target=look, args=(at,), daemon=True) for at in range(CLIENTS)]
    for each in crowd:
        each.start()
    waited[f"{CLIENTS} clients ask the viewer"] = hooks()
    ended.set()
    for each in crowd:
        each.join()
    return {"memories": options.memories, "routes": routes, "hooks": waited, "load": os.getloadavg()[0]}


def queries(path: Path, count: int, chance: random.Random) -> list[str]:
    """What people type: how a title begins, words out of a text, a file's name, a function's, an id."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    places = [place for (place,) in db.execute("SELECT place FROM memories WHERE status = 'active'")]
    found = []
    for number, place in enumerate(chance.sample(places, count)):
        (row,) = db.execute("SELECT id, title, body, files FROM memories WHERE place = ?", (place,)).fetchall()
        id, title, body, files = row
        words = body.split()
        file = (json.loads(files) or ["src/a.py"])[0].rpartition("/")[2]
        candidates = (" ".join(title.split()[:3]), " ".join(chance.sample(words, 2)), words[-1], file, title, id)
        found.append(candidates[number % len(candidates)][:40])
    db.close()
    return found


def ask(server: ViewerServer, cookie: str, path: str) -> float:
    """Milliseconds until the viewer has answered."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", path, headers={"Cookie": cookie, "Sec-Fetch-Site": "same-origin"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status == 200, (path, body[:200])
    return (time.perf_counter() - began) * 1000


def _cookie(server: ViewerServer) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", server.auth.link().partition(f":{server.port}")[2])
    cookie = connection.getresponse().headers["Set-Cookie"].partition(";")[0]
    connection.close()
    return cookie


def report(found: dict[str, Any]) -> str:
    lines = [f"{found['memories']:,} memories; load {found['load']:.1f}", f"{'milliseconds':40}{'p50':>8}{'p95':>8}"]
    for name, times in {
        **found["routes"],
        **{f"a hook waits: {name}": t for name, t in found["hooks"].items()},
    }.items():
        lines.append(f"{name:40}{quantile(times, 0.5):8.1f}{quantile(times, 0.95):8.1f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
