"""Store every payload of the shared corpus in every field that a page shows, and look at all pages in a real browser.

Nothing may become of them but text: no element that our own code did not make, no attribute that acts, no script, no
dialog, no request to anywhere else and no other page. Some hundred payloads stand in each field of one project: joined
where a field is one text, one each where it is a list; every payload is the title of a memory of its own. Where a page
cuts a text (a prompt, a command, what it printed) they are told in pieces that it shows whole. Forms, dialogs and
toasts are opened over every sixth project, for they show the same fields.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from foreword.audit import MemoryChange
from foreword.capture.payload import HookCall
from foreword.models import Change, Event, Injection, Item, Link, Memory, ModelCall, Project, Session
from foreword.paths import Home
from foreword.problems import Problem, note
from foreword.store import Store
from tests.viewer.conftest import Viewer, go, still, visit, watched, window
from tests.viewer.filled import Filled, hooked, worker

MANY = 300  # payloads in one project
AT_ONCE = 45  # troubles: the page shows the last fifty
WHAT = 1_900  # characters of a trouble, of which two thousand are kept
PROMPT_LENGTH, RAN, ANSWERED = 590, 280, 1_190  # characters of a prompt, a command and an answer that pages show whole
NOTES = ("session_start", "prompt", "question", "compaction")
# Whatever comes into the page and was not made by createElement came from a text; whatever acts comes from nowhere.
GUARD = """(() => {
    const made = new WeakSet();
    const say = (text) => console.error(`a payload came to life: ${text}`);
    const acts = /^(script|iframe|frame|object|embed|link|style|base|meta|template|portal|applet|audio|video|marquee)$/;
    for (const name of ["createElement", "createElementNS"]) {
        const before = Document.prototype[name];
        Document.prototype[name] = function (...given) {
            const node = before.apply(this, given);
            made.add(node);
            if (acts.test(node.localName)) say(`<${node.localName}> was made`);
            return node;
        };
    }
    for (const name of ["alert", "confirm", "prompt", "print", "open"]) window[name] = () => say(`${name}() ran`);
    const look = (node) => {
        for (const { name, value } of node.attributes) {
            const leads = /^(href|xlink:href|src|action|formaction|data|poster)$/.test(name);
            const away = leads && !/^[/#](?![/\\\\])/.test(value);
            if (/^(on|srcdoc)/.test(name) || away) say(`${name}=${value.slice(0, 80)}`);
        }
    };
    let parsed = false;
    document.addEventListener("DOMContentLoaded", () => (parsed = true));
    new MutationObserver((records) => {
        for (const { addedNodes, target, type } of records) {
            if (type === "attributes") look(target);
            for (const added of addedNodes) {
                if (added.nodeType !== 1) continue;
                for (const node of [added, ...added.querySelectorAll("*")]) {
                    if (parsed && !made.has(node)) say(`<${node.localName}> came from a text`);
                    look(node);
                }
            }
        }
    }).observe(document, { subtree: true, childList: true, attributes: true });
})()"""


pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(500),
]  # some hundred pages in each test


@pytest.fixture(scope="module")
def payloads(shared: Path) -> list[list[str]]:
    """All of them, some hundred at a time."""
    every = (shared / "corpora/xss/Intruder/xss-payload-list.txt").read_text(encoding="utf-8").splitlines()
    assert len(every) >= 6_613
    return [every[at : at + MANY] for at in range(0, len(every), MANY)]


@pytest.fixture(scope="module")
def hostile(payloads: list[list[str]]) -> Iterator[Viewer]:
    """A viewer over a memory in which nothing is harmless."""
    root = Path(tempfile.mkdtemp(prefix="fw-"))
    home = Home(root=root / "h")
    home.prepare()
    store = Store(home.database, backups=home.backups)
    now = time.time()
    ids = {}
    try:
        for number, texts in enumerate(payloads):
            ids[str(number)] = stored(store, number, texts, now=now - number)
    finally:
        store.close()
    try:
        with worker(home, root / "user") as client:
            for number, texts in enumerate(payloads):
                answer(client, root / "told" / str(number), number, texts, now=now - number)
                revised(client, ids[str(number)], texts)
            viewer = Viewer(home, client, Filled(projects={}, ids=ids))
            try:
                yield viewer
            finally:
                viewer.close()
    finally:
        shutil.rmtree(root)


def key(number: int, texts: Sequence[str]) -> str:
    return f"dir:/{texts[number % len(texts)]}/{number}"


def session(number: int, texts: Sequence[str]) -> str:
    return f"{number} {texts[-1]}"[:200]


def stored(store: Store, number: int, texts: Sequence[str], *, now: float) -> str:
    """Into every field, straight through the store: doors would refuse or redact some; the id of the one with all."""
    joined, project, id = "\n".join(texts), key(number, texts), session(number, texts)
    about: dict[str, Any] = {"project": project, "scope": f"project:{project}", "created": now, "session": id}
    # One payload names the project whose memories are listed, all of them one that is only there to be chosen.
    named = [Project(project, name=texts[0], root=f"/{texts[0]}"), Project(f"dir:/{joined}", name=joined, root="/")]
    store.projects.see(named, at=now)
    full = Memory(
        "decision",
        texts[0],
        body=joined,
        tags=tuple(texts),
        files=tuple(texts),
        functions=tuple(texts),
        source=joined,
        detail={**{each: each for each in texts}, "why": joined, "list": list(texts), "in": {joined: list(texts)}},
        **about,
    )
    failures = [
        Memory("failure", each, detail=dict.fromkeys(("command", "message", "fixed_by", "tool"), each), **about)
        for each in texts
    ]
    kept = store.memories.put(
        [full, *failures, *(Memory("note", each.strip() or "?", body=each, **about) for each in texts)]
    )
    all_of_it, other = kept[0], kept[1]
    links = tuple(Link(all_of_it.id, each, other.id) for each in texts)
    store.audit.apply(
        [MemoryChange(joined, joined, changed=((all_of_it, all_of_it), (other, other)), links=links)],
        who=joined,
        at=now,
    )
    changes = [Change(project, each, each, what="NEW", signature=each, session=id, at=now) for each in texts]
    store.save(changes=changes)
    factors = dict.fromkeys(texts, 0.5)
    item = Item(all_of_it.id, layer=joined, score=0.5, tokens=5, why=factors, used=True, how=joined)
    store.injections.record(
        Injection(
            f"inj-{number:08}",
            NOTES[number % len(NOTES)],
            session=id,
            project=project,
            host=joined,
            at=now,
            tokens=5,
            budget=10,
            build_ms=1.0,
            layers=dict.fromkeys(texts, 1),
            skipped={each: each for each in texts},
            items=(item,),
            source=joined,
            terms=tuple(texts),
            files=tuple(texts),
            text=joined,
        ),
        at_once=True,
    )
    store.events.append(happened(number, texts, project=project, now=now))
    # All of it is told already: extraction this much would keep the worker busy through all tests, and beyond.
    store.save(Session(f"told {number}", "claude-code", project, "/", now - 400, now, now), upto=10**9)
    store.stats.record_model_call(
        ModelCall(now, joined, joined, purpose=joined, session=id, outcome=f"failed:{joined}")
    )
    return all_of_it.id


def pieces(texts: Sequence[str], most: int) -> list[str]:
    """Joined as far as they are shown whole; one that is longer stands alone."""
    found = [""]
    for each in texts:
        if found[-1] and len(found[-1]) + len(each) >= most:
            found.append("")
        found[-1] += f"\n{each}" if found[-1] else each
    return found


def happened(number: int, texts: Sequence[str], *, project: str, now: float) -> list[Event]:
    """Prompts, commands that fail and answers, each as long as a page shows it whole."""
    about = {"session_id": f"told {number}", "cwd": "/"}
    ran = {"tool_name": "Bash", "is_interrupt": False}
    short: list[tuple[str, str, dict[str, Any]]] = [
        *(("UserPromptSubmit", "prompt", {"prompt": each}) for each in pieces(texts, PROMPT_LENGTH)),
        *(
            (
                "PostToolUseFailure",
                "tool_failure",
                {**ran, "tool_input": {"command": each}, "error": f"Exit code 1\n{each}"},
            )
            for each in pieces(texts, RAN)
        ),
        *(("Stop", "stop", {"last_assistant_message": each}) for each in pieces(texts, ANSWERED)),
    ]
    return [
        Event(
            f"{number}-{place}", "claude-code", name, kind, about["session_id"], project, "/", now - 300 + place,
            {**about, "hook_event_name": name, "tool_use_id": f"s{number}-{place}", **more}, lasting=True,
        )
        for place, (name, kind, more) in enumerate(short)
    ]  # fmt: skip


def answer(client: Any, folder: Path, number: int, texts: Sequence[str], *, now: float) -> None:
    """Through the doors of hosts: prompts, commands that fail, answers, and hosts that we do not know."""
    folder.mkdir(parents=True)
    joined, id = "\n".join(texts), session(number, texts)
    known = {"session_id": id, "cwd": str(folder)}
    use = {"tool_name": "Bash", "tool_input": {"command": joined}, "tool_use_id": f"t{number}"}
    for place, (event, more) in enumerate(
        (
            ("SessionStart", {"source": "startup"}),
            ("UserPromptSubmit", {"prompt": joined, "prompt_id": f"p{number}"}),
            ("PostToolUseFailure", {**use, "error": f"Exit code 1\n{joined}", "is_interrupt": False}),
            ("Stop", {"last_assistant_message": joined, "stop_hook_active": False}),
        )
    ):
        raw = _json({**known, "hook_event_name": event, **more})
        hooked(client, HookCall("claude-code", event, now + place, raw))
    strange = {"host": joined, "event": joined, "payload": {**known, "prompt": joined}, "at": now}
    client.post("/api/events", strange)


def _json(answer: object) -> bytes:
    return json.dumps(answer).encode()


def revised(client: Any, id: str, texts: Sequence[str]) -> None:
    """What history tells as before and after."""
    joined = "\n".join(texts)
    client.post(f"/api/memories/{id}", {"why": f"{joined} "})


@pytest.fixture
def wary(browser: Any, hostile: Viewer, look: Any, watch: Any) -> Iterator[Any]:
    """A page on which whatever comes to life is told, and fails the test."""
    with window(browser, look) as mine:
        mine.add_init_script(GUARD)
        with watched(mine, hostile, watch) as page:
            yield page


def unfold(page: Any) -> None:
    page.evaluate("() => document.querySelectorAll('main details').forEach((node) => (node.open = true))")


def test_the_guard_tells_of_what_comes_to_life(wary, hostile, watch):
    visit(wary, f"{hostile.origin}/now")
    watch.expects("came to life", "refused", "Trusted")
    for what in (
        "const node = document.createElement('b'); node.setAttribute('action', 'x'); main.append(node);",
        "main.append(document.implementation.createDocument(null, 'i').documentElement);",
        "try { main.innerHTML = '<u>x</u>' } catch (error) { console.error(error.message) }",
        "try { main.setAttribute('onclick', 'x') } catch (error) { console.error(error.message) }",
        "const link = document.createElement('a'); link.href = 'javascript:alert(1)'; main.append(link);",
    ):
        wary.evaluate(f"() => {{ const main = document.querySelector('main'); {what} }}")
    wary.evaluate("() => alert(1)")
    wary.evaluate("() => new Promise((next) => setTimeout(next))")  # what watches the page is told of all that came in
    output = "\n".join(watch.messages)
    for what in ("action=x", "<i> came from a text", "'TrustedHTML'", "href=javascript", "alert() ran"):
        assert what in output, output


def test_a_list_of_memories_shows_every_title_as_it_is(wary, hostile, payloads):
    visit(wary, f"{hostile.origin}/memories")
    for number, texts in enumerate(payloads):
        request = urlencode({"project": key(number, texts), "kind": "note"})
        go(wary, f"/memories?{request}")
        wary.locator(".mem-results .row").first.wait_for()
        titles = "() => [...document.querySelectorAll('.mem-results .row-title')].map((node) => node.textContent)"
        wary.wait_for_function(
            f"(some) => ({titles})().some((each) => some.includes(each))", arg=[each.strip() for each in texts]
        )
        wary.wait_for_function(
            f"""(count) => {{ const more = document.querySelector(".mem-list > button");
                if (!more.hidden && !more.disabled) more.click();
                return ({titles})().length >= count; }}""",
            arg=len(texts),
        )
        assert sorted(wary.evaluate(titles)) == sorted(each.strip() or "?" for each in texts)
        still(wary)


def test_all_of_a_memory_is_shown_as_it_is(wary, hostile, payloads):
    visit(wary, f"{hostile.origin}/memories")
    for number, texts in enumerate(payloads):
        go(wary, f"/memories/{hostile.ids[str(number)]}")
        whole = "(body) => document.querySelector('.mem-body')?.textContent === body"
        wary.wait_for_function(whole, arg="\n".join(texts))
        unfold(wary)
        still(wary)


# Which of these no text of the page holds.
UNSEEN = """(texts) => {
    const plain = (text) => text.replace(/\\s+/g, " ").trim(), all = plain(document.getElementById("main").textContent);
    return texts.filter((each) => !all.includes(plain(each)));
}"""


def test_a_session_is_told_as_it_is_now_and_later(wary, hostile, payloads):
    unseen = {}
    visit(wary, f"{hostile.origin}/now")
    for number, texts in enumerate(payloads):
        id = quote(session(number, texts), safe="")
        joined = "\n".join(texts)
        go(wary, f"/now/{id}")
        wary.locator(".feed .trigger").first.wait_for()
        unfold(wary)
        assert joined in wary.locator("main pre").all_text_contents()
        go(wary, f"/timeline/{id}")
        wary.locator("main .step").first.wait_for()
        unfold(wary)
        go(wary, f"/timeline/told%20{number}")
        wary.locator("main .step").first.wait_for()
        unfold(wary)
        unseen[number] = wary.evaluate(UNSEEN, texts)
    # Some are cut: those that no page shows whole.
    assert sum(map(len, unseen.values())) < 0.01 * sum(map(len, payloads)), unseen
    go(wary, "/timeline")
    for _ in range(1 + len(payloads) // 10):  # what is behind the end of the list comes when it is seen
        wary.evaluate("() => scrollTo(0, document.body.scrollHeight)")
        still(wary)


def test_projects_and_what_would_be_said_are_shown_as_they_are(wary, hostile, payloads):
    visit(wary, f"{hostile.origin}/try")
    names = wary.locator("select option").all_text_contents()
    assert {" ".join("\n".join(texts).split()) for texts in payloads} <= {" ".join(each.split()) for each in names}
    for number, texts in enumerate(payloads):
        go(wary, f"/try?{urlencode({'project': key(number, texts), 'trigger': 'session_start'})}")
        wary.locator(".tried").first.wait_for()
    wary.locator("#trigger").select_option("prompt")
    for texts in payloads:
        with wary.expect_response(lambda got: got.request.method == "POST" and got.url.endswith("/api/preview")):
            wary.locator("#prompt").fill("\n".join(texts))
    still(wary)
    assert wary.locator(".trouble").count() == 0


def test_what_is_typed_asked_and_written_over_is_shown_as_it_is(wary, hostile, payloads):
    visit(wary, f"{hostile.origin}/memories?view=waiting")
    for number, texts in list(enumerate(payloads))[::6]:
        go(wary, "/memories")
        for each in texts[:3]:
            with wary.expect_response("**/api/memories?*"):
                wary.locator("#mem-q").fill(each)  # what is found is lit by the words
        go(wary, f"/memories/{hostile.ids[str(number)]}")
        wary.locator(".mem-change ins").first.wait_for()
        wary.locator("[data-do=edit]").click()
        body = wary.locator("form[aria-label=Edit] [name=body]").input_value()
        assert body == "\n".join(texts).replace("\r", "\n")
        wary.keyboard.press("Escape")
        wary.locator("form[aria-label=Edit]").wait_for(state="detached")
        if not number:  # once: every file is looked through for all that would go, which takes seconds
            wary.locator("[data-do=forget]").click()
            wary.locator("dialog[open]").wait_for(timeout=60_000)
            wary.keyboard.press("Escape")
            wary.locator("dialog").wait_for(state="detached")
        go(wary, f"/memories?{urlencode({'project': key(number, texts), 'kind': 'decision'})}")
        wary.locator("#mem-list a.row").first.click()
        wary.locator("[data-do=pin]").click()
        wary.locator(".toast").first.wait_for()
        wary.keyboard.press("Escape")


def test_health_tells_troubles_and_hosts_as_they_are(wary, hostile, payloads):
    unseen = []
    lumps = pieces([each for texts in payloads for each in texts], WHAT)
    for at in range(0, len(lumps), AT_ONCE):
        hostile.home.trouble.unlink(missing_ok=True)
        Path(f"{hostile.home.trouble}.1").unlink(missing_ok=True)
        for place, lump in enumerate(lumps[at : at + AT_ONCE]):
            note(str(hostile.home.trouble), Problem(time.time() + place, where=lump, what=lump))
        visit(wary, f"{hostile.origin}/health")
        unfold(wary)
        unseen += wary.evaluate(UNSEEN, [each for lump in lumps[at : at + AT_ONCE] for each in lump.split("\n")])
    assert unseen == []
    still(wary)
