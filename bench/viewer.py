"""An empty store and a large one, both in a real browser -> first paint of every page, and search as you type.

And what a hook waits for its context while others ask the viewer all the time. `make bench-viewer`, or
`python bench/viewer.py --memories 20000`. No time is asserted: goals stand beside the numbers.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
from store import SEED, Words, bulk, key_of, memories, quantile, say, shares

from foreword.models import KINDS, UNIVERSAL, Injection, Item, Memory, Project, Session
from foreword.paths import Home
from foreword.store import Store
from foreword.worker import lifecycle
from foreword.worker.client import Client

RATIO, LONGEST = 3.0, 200  # the goals: p95 against the empty store's, and milliseconds of the longest task
PAGES = ("now", "timeline", "memories", "try", "health")
TAGS = 400
SESSIONS = 1_000  # with what each was given at its start
STATUSES = {"active": 88, "superseded": 6, "stale": 3, "discarded": 2, "proposed": 1}
TRUSTED = {"agent": 60, "tool": 25, "imported": 10, "user": 5}
PAUSE = 0.12  # seconds between two keys of somebody who types 100 words a minute
REST = 0.6  # seconds after the last key of a query: facets are counted
AFTER = 1.0  # seconds until the browser has told of long tasks
NOWHERE = "dec-00000000"  # an empty store has no memory to open: what is told then is drawn in the same place
PATIENCE = 20_000  # milliseconds for one answer
CLIENTS = 4  # that ask the viewer all the time while a hook asks for its context
TURN = 8  # prompts before others are asked, or nobody
# What costs the viewer most: beginnings that many hold, counts of everything, long answers, figures.
HEAVY = (
    "/api/memories?q={0}&limit=50", "/api/facets?q={0}", "/api/memories?q={1}&limit=50", "/api/facets?q={1}",
    "/api/memories?file=src/&limit=200", "/api/facets?file=src/", "/api/facets?kind={2}", "/api/memories?limit=200",
    "/api/timeline?limit=200", "/api/health", "/api/health/figures?days={3}", "/api/now",
)  # fmt: skip
NOBODY, ANOTHER, ITS_OWN = "nobody looks", "another worker's viewer", "its own viewer"
# Inside the page: from the key to the frame in which the list has changed, and every task over 50 ms.
WATCH = """(() => {
  performance.setResourceTimingBufferSize(10000);
  const seen = (window.seen = { key: 0, painted: [], long: [] });
  seen.observer = new PerformanceObserver((list) => seen.long.push(...list.getEntries().map((each) => each.duration)));
  seen.observer.observe({ type: "longtask", buffered: true });
  document.addEventListener("keydown", (event) => { seen.key = event.timeStamp; }, true);
  new MutationObserver((changes) => {
    if (!seen.key || !changes.some((each) => each.target.id === "mem-list")) return;
    const from = seen.key;
    seen.key = 0;
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => seen.painted.push(performance.now() - from);
      port2.postMessage(0);
    });
  }).observe(document, { subtree: true, childList: true });
})()"""
FIRST = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
DRAWN = """() => { const main = document.getElementById("main");
  return main && main.children.length && !main.hasAttribute("aria-busy") && performance.now(); }"""
DETAILED = """() => document.querySelector(".mem-detail :is(#mem-title, .trouble)") && performance.now()"""
ASKED = """(path) => performance.getEntriesByType("resource").filter((each) => new URL(each.name).pathname === path)
  .map((each) => each.duration)"""


View = tuple[str, tuple[str, str]]  # an address, and the cookie that opens it


HEAVIEST = "() => [...seen.long, ...seen.observer.takeRecords().map((each) => each.duration)]"  # all there are by now


def main() -> None:
    given = arguments()
    scratch = Path(tempfile.mkdtemp(prefix="fw-"))
    try:
        with ExitStack() as running:
            found = measured(scratch, running, given)
    finally:
        shutil.rmtree(scratch)
    print(report(found))
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memories", type=int, default=100_000, help="in the large store")
    parser.add_argument("--opened", type=int, default=10, help="times that each page is opened")
    parser.add_argument("--queries", type=int, default=12, help="that are typed, letter by letter")
    parser.add_argument("--turns", type=int, default=12, help="of prompts that a hook asks for, of each sort")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--json", metavar="FILE", help="write every number there too")
    return parser.parse_args()


# ---- the two stores


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
    """Sessions of the last month, and what each was given."""
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
        store.sessions.save_extraction(
            Session(session, "claude-code", project, "/", at, at + 1_800.0, at + 1_800.0, events=40)
        )
        items = tuple(Item(id, "index", 0.5, 40, {"words": 0.5}) for id in chance.sample(known, min(8, len(known))))
        given = Injection(
            id=f"inj-{number:08}", trigger="session_start", session=session, project=project, host="claude-code", at=at,
            tokens=320, budget=1500, build_ms=2.0, layers={"index": 320}, skipped={}, items=items, text="given " * 200,
        )  # fmt: skip
        store.injections.record(given)


@contextmanager
def viewed(home: Home) -> Iterator[tuple[str, tuple[str, str]]]:
    """The viewer of a home's own worker: its address, and the cookie that opens it."""
    os.environ["FOREWORD_HOME"] = str(home.root)
    lifecycle.start(home)
    client = Client(home, seconds=60)
    told = client.post("/api/view", {"do": "open"})
    ended = threading.Event()

    def hold() -> None:
        while not ended.wait(2.0):
            client.post("/api/view", {"do": "hold", "holder": told["holder"]})

    holding = threading.Thread(target=hold, daemon=True)
    holding.start()
    try:
        origin = f"http://127.0.0.1:{told['port']}"
        yield origin, _cookie(told["url"], told["port"])
    finally:
        ended.set()
        holding.join()
        lifecycle.stop(home)


def _cookie(url: str, port: int) -> tuple[str, str]:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    line.request("GET", url.partition(f":{port}")[2])
    name, _, text = line.getresponse().headers["Set-Cookie"].partition(";")[0].partition("=")
    line.close()
    return name, text


# ---- what is measured


def measured(scratch: Path, running: ExitStack, given: argparse.Namespace) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    program = shutil.which(os.environ.get("CHROMIUM") or "chromium")
    if program is None:
        sys.exit("there is no chromium: apt-get install chromium, or name one in CHROMIUM")
    homes = {name: Home(scratch / name) for name in ("empty", "large")}
    for home in homes.values():
        home.prepare()
    say(f"{given.memories:,} memories: building ...")
    grown(homes["large"].database, given.memories, given.seed)
    size = homes["large"].database.stat().st_size
    asked = queries(homes["large"].database, given.queries, random.Random(given.seed))
    browser = running.enter_context(sync_playwright()).chromium.launch(executable_path=program, args=["--no-sandbox"])
    running.callback(browser.close)
    views = {name: running.enter_context(viewed(home)) for name, home in homes.items()}
    pages = {name: _opened(browser, *view) for name, view in views.items()}
    say(f"{size / 1e6:,.0f} MB; opening pages ...")
    chance = random.Random(given.seed)
    first = {name: {page: [] for page in PAGES} for name in homes}
    drawn = {name: {page: [] for page in PAGES} for name in homes}
    long: dict[str, list[float]] = {name: [] for name in homes}
    for turn in range(given.opened + 1):
        for at in PAGES:
            for name in chance.sample(list(homes), 2):
                page, origin = pages[name]
                page.goto(f"{origin}/{at}", wait_until="load")
                ready = page.wait_for_function(DRAWN, timeout=PATIENCE).json_value()
                if turn:  # the first time warms up
                    first[name][at].append(page.evaluate(FIRST))
                    drawn[name][at].append(ready)
                    long[name] += settled(page)
    say("typing ...")
    keys: dict[str, list[float]] = {name: [] for name in homes}
    by_length: dict[str, dict[int, list[float]]] = {name: {} for name in homes}
    facets: dict[str, list[float]] = {}
    answers: dict[str, list[float]] = {}
    for page, origin in pages.values():
        page.goto(f"{origin}/memories", wait_until="load")
        page.wait_for_function(DRAWN, timeout=PATIENCE)
    typed(pages, "warm up", chance)
    for text in asked:
        for name, times in typed(pages, text, chance).items():
            keys[name] += times
            for at, each in enumerate(times, 1):
                by_length[name].setdefault(at, []).append(each)
    for name, (page, _) in pages.items():
        long[name] += settled(page)
        facets[name] = page.evaluate(ASKED, "/api/facets")
        answers[name] = page.evaluate(ASKED, "/api/memories")
    say("bursts, the end of the list, and one memory ...")
    opened: dict[str, list[float]] = {name: [] for name in homes}
    for turn in range(given.opened + 1):
        for name in chance.sample(list(homes), 2):
            times, tasks = hurried(*pages[name], asked[turn % len(asked)])
            if turn:
                opened[name] += times
            long[name] += tasks
    say("hooks ...")
    twin = Home(scratch / "twin")
    twin.prepare()
    copied(homes["large"].database, twin.database)
    views["twin"] = running.enter_context(viewed(twin))
    waited = beside(homes["large"], views, scratch / "work", given)
    return {
        "memories": given.memories,
        "file_mb": round(size / 1e6, 1),
        "queries": asked,
        "first_paint": first,
        "drawn": drawn,
        "keys": keys,
        "by_length": by_length,
        "answers": answers,
        "facets": facets,
        "opened": opened,
        "long_tasks": long,
        "hooks": waited,
        "load": [round(each, 1) for each in os.getloadavg()],
    }


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
        asked = (" ".join(title.split()[:3]), " ".join(chance.sample(words, 2)), words[-1], file, title, id)
        found.append(asked[number % len(asked)][:40])
    db.close()
    return found


def _opened(browser: Any, origin: str, cookie: tuple[str, str]) -> tuple[Any, str]:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB")
    name, text = cookie
    context.add_cookies([{"name": name, "value": text, "url": origin, "httpOnly": True, "sameSite": "Strict"}])
    context.add_init_script(WATCH)
    return context.new_page(), origin


def typed(pages: dict[str, tuple[Any, str]], text: str, chance: random.Random) -> dict[str, list[float]]:
    """Milliseconds from each key to the frame with its list, the two pages by turns."""
    for page, _ in pages.values():
        page.fill("#mem-q", "")
        page.focus("#mem-q")
    time.sleep(REST)
    for page, _ in pages.values():
        page.evaluate("seen.painted.length = seen.key = 0")
    for at, letter in enumerate(text, 1):
        for name in chance.sample(list(pages), 2):
            page, _ = pages[name]
            page.bring_to_front()
            page.keyboard.press("Space" if letter == " " else letter)
            page.wait_for_function("(at) => seen.painted.length >= at", arg=at, timeout=PATIENCE)
            time.sleep(PAUSE)
    time.sleep(REST)
    return {name: page.evaluate("seen.painted") for name, (page, _) in pages.items()}


def settled(page: Any) -> list[float]:
    """Milliseconds of every long task, also of those that come a moment after the page was drawn."""
    time.sleep(AFTER)
    return list(page.evaluate(HEAVIEST))


def hurried(page: Any, origin: str, text: str) -> tuple[list[float], list[float]]:
    """Somebody in a hurry: keys without a pause, End thrice, a memory opened. What opening took, and long tasks."""
    page.bring_to_front()
    page.goto(f"{origin}/memories", wait_until="load")
    page.wait_for_function(DRAWN, timeout=PATIENCE)
    page.focus("#mem-q")
    page.keyboard.type(text)  # not one answer is waited for
    page.wait_for_function("(q) => new URL(location).searchParams.get('q') === q", arg=text.strip(), timeout=PATIENCE)
    page.fill("#mem-q", "")
    time.sleep(REST)
    page.keyboard.press("ArrowDown")
    for _ in range(3):
        page.keyboard.press("End")
    time.sleep(REST)
    row = page.locator(".mem-results .row")
    tasks = settled(page)
    if not row.count():
        page.goto(f"{origin}/memories/{NOWHERE}", wait_until="load")
    else:
        page.goto(f"{origin}{row.last.get_attribute('href')}", wait_until="load")
    ready = page.wait_for_function(DETAILED, timeout=PATIENCE).json_value()
    return [ready], tasks + settled(page)


# ---- a hook beside the viewer


def copied(path: Path, to: Path) -> None:
    """The same store once more, as another worker's."""
    source, target = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY), apsw.Connection(str(to))
    with target.backup("main", source, "main") as copying:
        while not copying.done:
            copying.step(10_000)
    target.close()
    source.close()


def beside(home: Home, views: dict[str, View], folder: Path, given: argparse.Namespace) -> dict[str, list[float]]:
    """Milliseconds of a prompt's context over the socket, by turns: nobody looks, or clients ask without a pause.

    They ask another worker, with as many memories, or this one: what the first takes is the machine's, what the second
    takes beyond it is ours.
    """
    git = folder / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(f'[remote "origin"]\n\turl = https://{key_of(0)}.git\n')
    chance, client = random.Random(given.seed), Client(home, seconds=60)
    prompts = [f"why does {text} fail?" for text in queries(home.database, 40, chance)]
    kinds = multiprocessing.get_context("spawn")
    whom, asked = kinds.Value("i", 0), kinds.Value("i", 0)
    targets = (views["twin"], views["large"])
    crowd = [
        kinds.Process(target=ask_on, args=(targets, whom, asked, at, prompts), daemon=True) for at in range(CLIENTS)
    ]
    for each in crowd:
        each.start()
    waited: dict[str, list[float]] = {name: [] for name in (NOBODY, ANOTHER, ITS_OWN)}
    try:
        for turn in range(given.turns + 1):
            for number, name in chance.sample(list(enumerate(waited)), len(waited)):
                whom.value = number
                time.sleep(0.5)  # until the answers before are through
                for prompt in chance.sample(prompts, TURN):
                    began = time.perf_counter()
                    client.get("/api/context", project_path=folder, prompt=prompt, trigger="prompt", preview=1)
                    if turn:  # the first time warms up
                        waited[name].append((time.perf_counter() - began) * 1000)
                    time.sleep(0.02)
    finally:
        for each in crowd:
            each.terminate()
            each.join()
    say(f"the viewers answered {asked.value:,} times meanwhile")
    return waited


def ask_on(views: Sequence[View], whom: Any, asked: Any, seed: int, words: Sequence[str]) -> None:
    """One client: ask whichever viewer is told, without a pause, until ended."""
    chance = random.Random(seed)
    letters = "".join(words)
    while True:
        if not whom.value:
            time.sleep(0.02)
            continue
        origin, (name, text) = views[whom.value - 1]
        begun = [letters[at : at + size].strip() or "a" for size in (1, 3) for at in [chance.randrange(len(letters))]]
        path = chance.choice(HEAVY).format(*map(quote, begun), chance.choice(list(KINDS)), chance.randint(1, 90))
        line = http.client.HTTPConnection(origin.removeprefix("http://"), timeout=60)
        line.request("GET", path, headers={"Cookie": f"{name}={text}", "Sec-Fetch-Site": "same-origin"})
        answer = line.getresponse()
        answer.read()
        if answer.status != 200:
            sys.exit(f"{path} was answered {answer.status}")
        line.close()
        with asked.get_lock():
            asked.value += 1


# ---- the report


def report(found: dict[str, Any]) -> str:
    lines = [f"{found['memories']:,} memories ({found['file_mb']} MB) beside none; load {found['load'][0]}", ""]
    lines.append(f"{'milliseconds':28}{'empty p50':>10}{'p95':>8}{'large p50':>11}{'p95':>8}{'p95 ratio':>11}")
    for label, part in (("first paint", "first_paint"), ("drawn", "drawn")):
        lines += [
            _line(f"{label}, {page}", *(found[part][name][page] for name in ("empty", "large"))) for page in PAGES
        ]
    lines.append(_line("key to list", found["keys"]["empty"], found["keys"]["large"], goal=True))
    for at in (1, 2, 3, 4):
        both = (found["by_length"][name].get(at, [0.0]) for name in ("empty", "large"))
        lines.append(_line(f"  key {at}", *both))
    lines.append(_line("  of it the answer", found["answers"]["empty"], found["answers"]["large"]))
    lines.append(_line("facets, after a rest", found["facets"]["empty"], found["facets"]["large"]))
    lines.append(_line("a memory opened", found["opened"]["empty"], found["opened"]["large"], goal=True))
    longest = {name: max(each, default=0.0) for name, each in found["long_tasks"].items()}
    met = "met" if longest["large"] <= LONGEST else "missed"
    lines.append(f"longest task: {longest['empty']:.0f} empty, {longest['large']:.0f} large (goal <= {LONGEST}: {met})")
    quiet, *busy = found["hooks"].items()
    lines += ["", f"{'a hook waits, milliseconds':40}{'p50':>8}{'p95':>8}{'p95 ratio':>11}"]
    for name, times in (quiet, *busy):
        shown = [quantile(times, share) for share in (0.5, 0.95)]
        ratio = shown[1] / quantile(quiet[1], 0.95)
        label = name if name == NOBODY else f"{CLIENTS} clients ask {name}"
        lines.append(f"{label:40}{shown[0]:8.1f}{shown[1]:8.1f}{ratio:11.2f}")
    return "\n".join(lines)


def _line(label: str, empty: list[float], large: list[float], *, goal: bool = False) -> str:
    shown = [quantile(each or [0.0], share) for each in (empty, large) for share in (0.5, 0.95)]
    ratio = shown[3] / shown[1] if shown[1] else 0.0
    told = (
        f"  (goal <= {RATIO:.0f}: {'met' if ratio <= RATIO else 'missed'})" if goal or label.startswith("first") else ""
    )
    return f"{label:28}{shown[0]:10.1f}{shown[1]:8.1f}{shown[2]:11.1f}{shown[3]:8.1f}{ratio:11.2f}{told}"


if __name__ == "__main__":
    main()
